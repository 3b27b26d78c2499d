//! # Whose rows, how many, and how large
//! Follows the privacy unit, what one unit contributes, and the bounds of values from the catalog up to the aggregate. What
//! comes out, a [`StablePlan`], says how far one unit can move each sum, once the caps and clamps that it names are enforced;
//! [`crate::rewrite`] enforces them.
//!
//! **Stability.** Each row of the flattened relation comes from exactly one row of the private table and from public rows,
//! so it has exactly one unit. Filters and terms look at one row at a time. So adding or removing a unit adds or removes
//! that unit's rows and changes nothing else: the relation is stable in units, though not in rows, since a join may multiply
//! them; that is why rows are capped after the joins.

use std::collections::BTreeSet;

use crate::error::{Error, Result, refused};
use crate::interval::Interval;
use crate::plan::{Aggregate, Measure, Relation, Statement};
use crate::request::Request;
use crate::table::{Content, Tables};
use crate::term::Term;
use crate::value::Kind;

mod contribution;
mod fan_out;
mod keys;
mod measure;

pub(crate) use contribution::Contribution;
pub(crate) use fan_out::most_alike;
pub(crate) use keys::{Keys, PublicKeys};
pub(crate) use measure::{Fixed, Measured, Part};

/// A statement whose unit, contribution and bounds are known.
#[derive(Debug)]
pub struct StablePlan {
    pub(crate) statement: Statement,
    /// The column that says whose a row is.
    pub(crate) unit: usize,
    pub(crate) keys: Keys,
    pub(crate) contribution: Contribution,
    pub(crate) measured: Vec<Measured>,
}

impl StablePlan {
    /// Analyzes a statement, or says which rule it breaks.
    pub fn analyze(statement: Statement, request: &Request, tables: &Tables) -> Result<Self> {
        tables.check(statement.tables)?;
        let relation = &statement.relation;
        let (unit, rows_per_unit) = find_unit(relation, tables)?;
        fan_out::check(relation, relation.bases[unit].slot, tables)?;
        let units = equal_to(unit, relation);
        for key in &statement.keys {
            if uses(&key.term, &units) {
                return Err(refused(
                    "group_by_unit",
                    "a key that is made from the unit has one unit in each group",
                    "group by something that many units share",
                ));
            }
        }
        let keys = Keys::find(&statement, tables)?;
        let only_units = statement
            .aggregates
            .iter()
            .all(|aggregate| matches!(aggregate.measure, Measure::Distinct(_)));
        let contribution = Contribution::find(request, rows_per_unit, &keys, only_units)?;
        let measured = statement
            .aggregates
            .iter()
            .map(|aggregate| measured(aggregate, &units, relation, tables))
            .collect::<Result<Vec<_>>>()?;
        Ok(Self {
            statement,
            unit,
            keys,
            contribution,
            measured,
        })
    }
}

impl StablePlan {
    /// Must groups be capped? Not where a unit may be in as many as there are: rows have public keys or are dropped.
    pub(crate) fn caps_groups(&self) -> bool {
        let groups = u64::from(self.contribution.groups);
        self.keys.count().is_none_or(|keys| groups < keys)
    }

    /// Must rows in groups be capped? Not where rows add nothing, and units alone are counted.
    pub(crate) fn caps_rows(&self) -> bool {
        let mut measured = self.measured.iter();
        measured.any(|measured| !measured.parts().is_empty())
    }
}

/// The place of the unit's column, and the declared cap of its table.
fn find_unit(relation: &Relation, tables: &Tables) -> Result<(usize, Option<u32>)> {
    let mut found = None;
    for (slot, &table) in relation.slots.iter().enumerate() {
        let Content::Private {
            unit,
            rows_per_unit,
        } = tables.table(table).content
        else {
            continue;
        };
        let place = relation
            .bases
            .iter()
            .position(|base| base.slot == slot && base.column == unit);
        if found.is_some() {
            return Err(Error::Bug {
                invariant: "a relation has one private table",
            });
        }
        found = place.map(|place| (place, rows_per_unit));
    }
    found.ok_or_else(|| {
        refused(
            "no_private_table",
            "the statement reads public tables only",
            "add a private table of the catalog; public ones hold no secrets, so read their files as they are, with any program",
        )
    })
}

/// All columns that are equal to this one in every row.
fn equal_to(column: usize, relation: &Relation) -> BTreeSet<usize> {
    let mut same = BTreeSet::from([column]);
    // Each round adds a column or is the last.
    loop {
        let before = same.len();
        for &(a, b) in &relation.equal {
            if same.contains(&a) || same.contains(&b) {
                same.extend([a, b]);
            }
        }
        if same.len() == before {
            return same;
        }
    }
}

fn uses(term: &Term, columns: &BTreeSet<usize>) -> bool {
    let mut used = BTreeSet::new();
    term.columns(&mut used);
    !used.is_disjoint(columns)
}

fn measured(
    aggregate: &Aggregate,
    units: &BTreeSet<usize>,
    relation: &Relation,
    tables: &Tables,
) -> Result<Measured> {
    let filter = aggregate.filter.clone();
    let declared = |place: usize| -> (Kind, Option<Interval>) {
        let base = relation.bases[place];
        let (_, column) = &tables.table(relation.slots[base.slot]).columns[base.column];
        (column.kind, column.range)
    };
    let fixed = |value: &crate::plan::Typed| {
        let found = crate::interval::interval(&value.term, &declared);
        let Some(interval) = found else {
            return Err(unbounded(&value.term, relation, tables));
        };
        Fixed::new(value, interval)
    };
    Ok(match &aggregate.measure {
        Measure::Rows => Measured::count(None, filter),
        Measure::Present(term) => Measured::count(Some(term.clone()), filter),
        Measure::Distinct(Term::Column(column)) if units.contains(column) => match filter {
            None => Measured::units(),
            Some(_) => {
                return Err(refused(
                    "filtered_units",
                    "COUNT(DISTINCT unit) with FILTER is not supported",
                    "put the condition into WHERE",
                ));
            }
        },
        Measure::Distinct(_) => {
            return Err(refused(
                "count_distinct",
                "only units can be counted distinctly as yet",
                "use COUNT(DISTINCT unit), with the column that the catalog names as unit",
            ));
        }
        Measure::Sum(value) => Measured::sum(fixed(value)?, filter),
        Measure::Mean(value) => Measured::mean(fixed(value)?, filter),
    })
}

fn unbounded(term: &Term, relation: &Relation, tables: &Tables) -> Error {
    let mut used = BTreeSet::new();
    term.columns(&mut used);
    let missing: Vec<String> = used
        .into_iter()
        .filter_map(|place| {
            let base = relation.bases[place];
            let table = tables.table(relation.slots[base.slot]);
            let (name, column) = &table.columns[base.column];
            column
                .range
                .is_none()
                .then(|| format!("{}.{name}", table.name))
        })
        .collect();
    let suggestion = if missing.is_empty() {
        "divide by something that cannot be near zero, or choose constants with CASE".to_owned()
    } else {
        format!(
            "declare a range for {} in the catalog, or choose constants with CASE",
            missing.join(", ")
        )
    };
    refused(
        "unbounded",
        "one row could move this sum by any amount",
        suggestion,
    )
}
