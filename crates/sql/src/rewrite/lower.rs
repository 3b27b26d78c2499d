//! The engine's plan: scans and joins, conditions, units, keys and parts, the caps, the sums.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::{Column, JoinType, Result};
use datafusion::datasource::{MemTable, TableProvider, provider_as_source};
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, col};

use super::cap_groups::cap_groups;
use super::cap_rows::cap_rows;
use super::cap_unit::cap_unit;
use super::compute::{Output, base_name, compute};
use super::keyed_hash::HashKey;
use super::sum::{sum_of_groups, sum_of_units};
use crate::analyze::{Keys, StablePlan};
use crate::batch::{CsvStream, engine_error, schema};
use crate::plan::relation::Joined;
use crate::record::Wanted;
use crate::table::{Content, Tables};
use crate::term::Term;

/// The columns of the bounded relation.
pub(crate) const UNIT: &str = "unit";
pub(crate) const KEY: &str = "key";
/// The number of distinct units, after the last sum.
pub(crate) const UNITS: &str = "units";

/// The names of the columns of parts.
pub(crate) fn part_names(parts: usize) -> impl Iterator<Item = String> {
    (0..parts).map(|at| format!("part{at}"))
}

/// The plan of one execution, under its own key. Its rows: the key, each part's sum, the number of units.
pub(crate) fn lower(stable: &StablePlan, tables: &Tables, hash: &HashKey) -> Result<LogicalPlan> {
    let statement = &stable.statement;
    let (own, across) = conditions(stable);
    let mut plan = joined(stable, tables, &own)?;
    if !across.is_empty() {
        plan = plan.filter(compute(Output::All(across), stable.unit))?;
    }
    let public = match &stable.keys {
        Keys::Public(keys) => Some(Arc::clone(keys)),
        Keys::One | Keys::Private => None,
    };
    let terms = statement.keys.iter().map(|key| key.term.clone()).collect();
    let mut columns = vec![
        compute(Output::Unit(Term::Column(stable.unit)), stable.unit).alias(UNIT),
        compute(Output::Key(terms, public), stable.unit).alias(KEY),
    ];
    let parts: Vec<_> = stable
        .measured
        .iter()
        .flat_map(|measured| measured.parts().iter().cloned())
        .collect();
    let count = parts.len();
    for (name, part) in part_names(count).zip(parts) {
        columns.push(compute(Output::Part(part), stable.unit).alias(name));
    }
    plan = plan
        .project(columns)?
        .filter(col(UNIT).is_not_null().and(col(KEY).is_not_null()))?;
    let contribution = stable.contribution;
    if let Some(total) = contribution.total {
        plan = cap_unit(plan, total, count, hash)?;
    }
    if stable.caps_rows() {
        plan = cap_rows(plan, contribution.rows, count, hash)?;
    }
    plan = sum_of_units(plan, count)?;
    if stable.caps_groups() {
        plan = cap_groups(plan, contribution.groups, hash)?;
    }
    sum_of_groups(plan, count)?.build()
}

/// The conditions on rows of one table, by its slot, and those that look at several. The former are computed before the joins:
/// terms are total and joins are inner, so it is the same, with less to join.
fn conditions(stable: &StablePlan) -> (BTreeMap<usize, Vec<Term>>, Vec<Term>) {
    let relation = &stable.statement.relation;
    let mut all = Vec::new();
    for filter in &relation.filters {
        filter.clone().conjuncts(&mut all);
    }
    let (mut own, mut across): (BTreeMap<usize, Vec<Term>>, _) = Default::default();
    for term in all {
        let mut columns = BTreeSet::new();
        term.columns(&mut columns);
        let slots: BTreeSet<usize> = (columns.iter())
            .map(|&place| relation.bases[place].slot)
            .collect();
        match (slots.first(), slots.len()) {
            (Some(&slot), 1) => own.entry(slot).or_default().push(term),
            _ => Vec::push(&mut across, term),
        }
    }
    (own, across)
}

/// All tables, each with its conditions, joined on the columns that must be equal.
fn joined(
    stable: &StablePlan,
    tables: &Tables,
    own: &BTreeMap<usize, Vec<Term>>,
) -> Result<LogicalPlanBuilder> {
    let relation = &stable.statement.relation;
    let mut used = BTreeSet::from([stable.unit]);
    used.extend(relation.equal.iter().flat_map(|&(a, b)| [a, b]));
    relation
        .filters
        .iter()
        .for_each(|term| term.columns(&mut used));
    stable
        .statement
        .keys
        .iter()
        .for_each(|key| key.term.columns(&mut used));
    for part in stable.measured.iter().flat_map(|measured| measured.parts()) {
        part.columns(&mut used);
    }
    let scan = |slot: usize| -> Result<LogicalPlanBuilder> {
        let places: Vec<usize> = used
            .iter()
            .copied()
            .filter(|&place| relation.bases[place].slot == slot)
            .collect();
        let anchor = places.first().copied();
        let plan = scan(slot, relation.slots[slot], places, stable, tables)?;
        match (own.get(&slot), anchor) {
            (Some(terms), Some(anchor)) => plan.filter(compute(Output::All(terms.clone()), anchor)),
            _ => Ok(plan),
        }
    };
    let start = relation.bases[stable.unit].slot;
    let mut plan = scan(start)?;
    for Joined { slot, on } in relation.joined_from(start).ok_or_else(engine_error)? {
        let column = |place: usize| Column::from_name(base_name(place));
        let on = on.into_iter().map(|(a, b)| (column(a), column(b))).unzip();
        let (left, right): (Vec<Column>, Vec<Column>) = on;
        plan = plan.join(scan(slot)?.build()?, JoinType::Inner, (left, right), None)?;
    }
    Ok(plan)
}

fn scan(
    slot: usize,
    table: usize,
    places: Vec<usize>,
    stable: &StablePlan,
    tables: &Tables,
) -> Result<LogicalPlanBuilder> {
    let source = tables.table(table);
    let columns: Vec<usize> = places
        .iter()
        .map(|&place| stable.statement.relation.bases[place].column)
        .collect();
    let kind = |column: usize| source.columns[column].1.kind;
    let names: Vec<String> = places.iter().map(|&place| base_name(place)).collect();
    let schema = schema(
        names
            .iter()
            .map(String::as_str)
            .zip(columns.iter().map(|&column| kind(column))),
    );
    let provider: Arc<dyn TableProvider> = match &source.content {
        Content::Private { unit, .. } => {
            let wanted = columns.iter().map(|&place| Wanted {
                place,
                kind: kind(place),
                unit: place == *unit,
            });
            let header = source.columns.iter().map(|(name, _)| name.clone());
            let stream = CsvStream {
                path: source.path.clone(),
                header: header.collect(),
                wanted: wanted.collect(),
                schema: Arc::clone(&schema),
            };
            Arc::new(StreamingTable::try_new(schema, vec![Arc::new(stream)])?)
        }
        Content::Public(batches) => {
            let named = |batch: &RecordBatch| {
                let arrays = columns
                    .iter()
                    .map(|&column| Arc::clone(batch.column(column)));
                RecordBatch::try_new(Arc::clone(&schema), arrays.collect())
            };
            let named = batches.iter().map(named).collect::<Result<_, _>>()?;
            Arc::new(MemTable::try_new(schema, vec![named])?)
        }
    };
    LogicalPlanBuilder::scan(format!("t{slot}"), provider_as_source(provider), None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::request::{Asked, Request};
    use crate::{PrivatePlan, Statement};

    /// The caps stand where they must: after joins and filters, rows before groups, and nothing after them but the sum.
    #[test]
    fn the_plan_of_a_grouped_sum() {
        let directory = tempfile::tempdir().expect("a directory");
        #[expect(clippy::disallowed_methods, reason = "files of the test's own")]
        for (name, text) in [("a.csv", "who,x,y\n"), ("b.csv", "y,z\nu,v\n")] {
            std::fs::write(directory.path().join(name), text).expect("written");
        }
        let catalog = Catalog::parse(
            "[dataset]\nid = \"d\"\n[budget]\nepsilon = 1\n\
             [table.a]\nsource = \"a.csv\"\nunit = \"who\"\nrows_per_unit = 7\n\
             [table.a.column]\nx = { type = \"int\", range = [0, 9] }\n\
             [table.b]\nsource = \"b.csv\"\npublic = true\n",
        )
        .expect("a catalog");
        let tables = Tables::open(&catalog, directory.path()).expect("tables");
        let asked = Asked {
            epsilon: Some(whit_core::Epsilon::new(1.0).expect("an epsilon")),
            delta: Some(whit_core::Delta::new(1e-6).expect("a delta")),
            groups_per_unit: Some(2),
            rows_per_group: Some(5),
        };
        let request = Request::new(asked, &catalog).expect("a request");
        let sql = "SELECT z, SUM(x) FROM a JOIN b ON a.y = b.y WHERE x > 1 GROUP BY z";
        let statement = Statement::parse(sql, &tables).expect("a statement");
        let stable = StablePlan::analyze(statement, &request, &tables).expect("stable");
        let plan = PrivatePlan::rewrite(stable, &request, &tables).expect("private");
        let lowered = lower(&plan.stable, &tables, &HashKey::undrawn()).expect("lowered");
        insta::assert_snapshot!(lowered.display_indent(), @r"
        Aggregate: groupBy=[[key]], aggr=[[sum(part0) AS part0, count(Int64(1)) AS units]]
          Filter: group_rank <= UInt64(2)
            WindowAggr: windowExpr=[[row_number() PARTITION BY [unit] ORDER BY [whit_groups(unit, key) ASC NULLS LAST, key ASC NULLS LAST] ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW AS group_rank]]
              Aggregate: groupBy=[[unit, key]], aggr=[[sum(part0) AS part0]]
                Filter: row_rank <= UInt64(5)
                  WindowAggr: windowExpr=[[row_number() PARTITION BY [unit, key] ORDER BY [whit_group_rows(unit, key, part0) ASC NULLS LAST, part0 ASC NULLS LAST] ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW AS row_rank]]
                    Filter: unit_rank <= UInt64(7)
                      WindowAggr: windowExpr=[[row_number() PARTITION BY [unit] ORDER BY [whit_unit_rows(unit, key, part0) ASC NULLS LAST, key ASC NULLS LAST, part0 ASC NULLS LAST] ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW AS unit_rank]]
                        Filter: unit IS NOT NULL AND key IS NOT NULL
                          Projection: whit_unit(t0.b0) AS unit, whit_key(t0.b0, t1.b4) AS key, whit_part(t0.b0, t0.b1) AS part0
                            Inner Join: t0.b2 = t1.b3
                              Filter: whit_all(t0.b0, t0.b1)
                                TableScan: t0
                              TableScan: t1
        ");
    }
}
