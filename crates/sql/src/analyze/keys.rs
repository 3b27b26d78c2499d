//! Which groups appear in the answer, and who may know of them.
//!
//! Public keys all appear, those without rows too: the columns' declared `values`, or the rows of a public table from which an
//! outer join goes out; a WHERE takes rows away, not keys. Rows with other keys are dropped before anything is counted. Private keys appear by selection on the
//! number of their units, which needs a delta; their texts are cut to 4096 bytes altogether.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use crate::batch::Columns;
use crate::error::{Error, Result, refused};
use crate::plan::Statement;
use crate::table::{Content, Tables};
use crate::term::{Row, Term, borrow};
use crate::value::encode_all;

/// The groups of a statement.
#[derive(Clone, Debug)]
pub(crate) enum Keys {
    /// No GROUP BY: one group.
    One,
    /// These.
    Public(Arc<PublicKeys>),
    /// Whatever is found and selected.
    Private,
}

/// Keys that are shown whatever the data is, encoded.
#[derive(Debug)]
pub(crate) struct PublicKeys {
    /// In the order in which they are shown.
    pub(crate) order: Vec<Vec<u8>>,
    /// To look them up: rows with other keys are dropped.
    pub(crate) known: HashSet<Vec<u8>>,
}

impl PublicKeys {
    fn new(order: Vec<Vec<u8>>) -> Self {
        let known = order.iter().cloned().collect();
        Self { order, known }
    }
}

/// More public keys than this are refused.
const KEYS_MAX: usize = 1 << 20;

impl Keys {
    pub(super) fn find(statement: &Statement, tables: &Tables) -> Result<Self> {
        if statement.keys.is_empty() {
            return Ok(Self::One);
        }
        let places: Option<Vec<usize>> = statement
            .keys
            .iter()
            .map(|key| match key.term {
                Term::Column(place) => Some(place),
                _ => None,
            })
            .collect();
        let Some(places) = places else {
            return Ok(Self::Private);
        };
        if let Some(keys) = declared(&places, statement, tables)? {
            return Ok(keys);
        }
        Ok(supplied(&places, statement, tables)?.unwrap_or(Self::Private))
    }

    /// How many groups appear, if that is public.
    pub(crate) fn count(&self) -> Option<u64> {
        match self {
            Self::One => Some(1),
            Self::Public(keys) => Some(keys.order.len() as u64),
            Self::Private => None,
        }
    }
}

/// All combinations of declared values.
fn declared(places: &[usize], statement: &Statement, tables: &Tables) -> Result<Option<Keys>> {
    let relation = &statement.relation;
    let mut keys: Vec<Vec<u8>> = vec![Vec::new()];
    for &place in places {
        let base = relation.bases[place];
        let (_, column) = &tables.table(relation.slots[base.slot]).columns[base.column];
        let Some(values) = &column.values else {
            return Ok(None);
        };
        if keys.len().saturating_mul(values.len()) > KEYS_MAX {
            return Err(too_many());
        }
        let values: Vec<Vec<u8>> = values
            .iter()
            .map(|value| encode_all([borrow(value)]))
            .collect();
        keys = keys
            .iter()
            .flat_map(|key| {
                values
                    .iter()
                    .map(move |value| [key.as_slice(), value].concat())
            })
            .collect();
    }
    Ok(Some(Keys::Public(Arc::new(PublicKeys::new(keys)))))
}

/// The distinct rows of a public table, in the columns that are keys.
fn supplied(places: &[usize], statement: &Statement, tables: &Tables) -> Result<Option<Keys>> {
    let relation = &statement.relation;
    let Some(supplier) = relation.supplier else {
        return Ok(None);
    };
    let bases: Vec<_> = places.iter().map(|&place| relation.bases[place]).collect();
    if bases.iter().any(|base| base.slot != supplier) {
        return Ok(None);
    }
    let Content::Public(batches) = &tables.table(relation.slots[supplier]).content else {
        return Ok(None);
    };
    let mut keys: BTreeSet<Vec<u8>> = BTreeSet::new();
    for batch in batches.iter() {
        let places: Vec<usize> = (0..batch.num_columns()).collect();
        let cells = Columns::new(&places, batch.columns()).ok_or(Error::Bug {
            invariant: "public tables hold cells",
        })?;
        for at in 0..batch.num_rows() {
            let row = cells.row(at);
            keys.insert(encode_all(bases.iter().map(|base| row.cell(base.column))));
        }
    }
    if keys.len() > KEYS_MAX {
        return Err(too_many());
    }
    if keys.is_empty() {
        return Err(refused(
            "no_keys",
            "the public table has no rows and so no keys",
            "give it rows, or group by another column",
        ));
    }
    let keys = PublicKeys::new(keys.into_iter().collect());
    Ok(Some(Keys::Public(Arc::new(keys))))
}

fn too_many() -> crate::Error {
    refused(
        "too_many_keys",
        format!("the keys have more than {KEYS_MAX} combinations"),
        "group by fewer columns",
    )
}
