//! How many rows a join makes of one private row.
//!
//! Caps come after the joins, so they do not bound the work: a person whose row meets a thousand public rows, each of which
//! meets a thousand more, could be found by who has to wait or by what runs out of memory. So the most that one row can be
//! multiplied by is computed from the public tables, which are known, and bounded.
//!
//! **Bound.** A joined row is a choice of one row from each public table. Take the tables in an order in which each is joined to
//! the private one or to one before it: of a table, only rows that agree with what was chosen before in the columns that the
//! joins equate can be chosen, which are at most as many as share one value of these columns. The product bounds all. The joins
//! are done in this order too, so what they make on the way is bounded as well.

use std::collections::BTreeMap;

use datafusion::arrow::record_batch::RecordBatch;

use crate::batch::Columns;
use crate::error::{Error, Result, refused};
use crate::plan::Relation;
use crate::plan::relation::Joined;
use crate::table::Tables;
use crate::term::Row;
use crate::value::{Cell, encode_all};

/// One private row becomes so many at most.
const FAN_OUT_MAX: u64 = 1 << 12;

/// Refuses joins that multiply a row of the table at `start` by more.
pub(super) fn check(relation: &Relation, start: usize, tables: &Tables) -> Result<()> {
    let joined = relation.joined_from(start).ok_or(Error::Bug {
        invariant: "every table is joined to another",
    })?;
    let mut all = 1_u64;
    for Joined { slot, on } in joined {
        let mut columns: Vec<usize> = (on.iter())
            .map(|&(_, own)| relation.bases[own].column)
            .collect();
        columns.sort_unstable();
        columns.dedup();
        let most = tables.most_alike(relation.slots[slot], &columns);
        all = all.saturating_mul(most.max(1));
        if all > FAN_OUT_MAX {
            return Err(refused(
                "join_fan_out",
                format!("the joins can make more than {FAN_OUT_MAX} rows of one"),
                "join on columns in which fewer rows of the public tables are alike",
            ));
        }
    }
    Ok(())
}

/// How many rows of a public table are alike in some columns, at most. Rows with a NULL there join with none.
pub(crate) fn most_alike(batches: &[RecordBatch], columns: &[usize]) -> u64 {
    let mut alike: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    for batch in batches {
        let places: Vec<usize> = (0..batch.num_columns()).collect();
        // Not to be told is to be too many.
        let Some(cells) = Columns::new(&places, batch.columns()) else {
            return u64::MAX;
        };
        for at in 0..batch.num_rows() {
            let row: Vec<Cell<'_>> = columns
                .iter()
                .map(|&column| cells.row(at).cell(column))
                .collect();
            if !row.contains(&Cell::Null) {
                *alike.entry(encode_all(row)).or_default() += 1;
            }
        }
    }
    alike.into_values().max().unwrap_or(0)
}
