//! # Execution
//! The only place that reads private rows. It takes a [`Permit`] by value and the plan that was paid for; with any other it
//! ends before a row is read. From there on nothing depends on the data but the answer: the engine's errors, whatever they
//! say, become one constant, and so do its panics.
//!
//! The engine gives one row for each group: integer sums and a number of units, all [`Secret`]. Mechanisms turn them into
//! releases. HAVING, ORDER BY and LIMIT see nothing but these.

use std::collections::BTreeMap;

use datafusion::arrow::array::{Array, Decimal128Array, Int64Array, LargeBinaryArray};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use serde::{Deserialize, Serialize};
use whit_accounting::reserve::{Permit, Redeemed};
use whit_core::{AddRemove, Confidence, Entropy, Secret};
use whit_mechanism::Additive;

use crate::analyze::{Keys, Measured};
use crate::engine::Width;
use crate::error::{Error, Result};
use crate::plan::after::{NoisyRow, Trait, apply, traits_after, whole_ends};
use crate::rewrite::{HashKey, PrivatePlan, UNITS};
use crate::table::Tables;
use crate::value::{Cell, Kind, Value};

mod verify;

/// A private answer with its error bars.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The columns.
    pub columns: Vec<AnswerColumn>,
    /// The rows.
    pub rows: Vec<Vec<Value>>,
    /// For each cell that is noisy, or computed from one noisy number and public ones by `+`, `-`, `*` and `/`, an interval that holds
    /// the value without noise, with the confidence that was asked for. What the caps and clamps left out is not in it.
    pub intervals: Vec<Vec<Option<[f64; 2]>>>,
}

/// A column of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerColumn {
    /// Its name.
    pub name: String,
    /// What its cells hold.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// Does it depend on noise?
    pub noisy: bool,
}

/// Sums and units of each group.
type Groups = BTreeMap<Vec<u8>, Group>;

#[derive(Clone, Default)]
#[cfg_attr(test, derive(Debug, PartialEq))]
struct Group {
    parts: Vec<i128>,
    units: u64,
}

/// Runs a plan that was paid for, up to its secrets. The permit is used up whether it succeeds or not.
pub fn execute<'a>(
    plan: &'a PrivatePlan,
    tables: &Tables,
    permit: Permit,
    entropy: &mut impl Entropy,
) -> Result<(Aggregates<'a>, Redeemed)> {
    tables.check(plan.stable.statement.tables)?;
    let redeemed = permit.redeem(plan.event()).map_err(|_| Error::OtherPlan)?;
    let hash = HashKey::draw(entropy).map_err(whit_mechanism::Error::from)?;
    let logical = plan.lowered(tables, &hash).ok_or(Error::Execution)?;
    let groups = run(&logical, plan, tables, tables.width())?;
    Ok((Aggregates { plan, groups }, redeemed))
}

/// Sums that nobody may see, of a plan that was paid for. Used up by [`release`](Self::release), since noise is paid for once.
#[must_use = "it was paid for"]
pub struct Aggregates<'a> {
    plan: &'a PrivatePlan,
    groups: Secret<Groups>,
}

impl Aggregates<'_> {
    /// Selects keys, adds noise, and does to the noisy numbers what the statement says. All that comes out is public.
    pub fn release(self, confidence: Confidence, entropy: &mut impl Entropy) -> Result<Answer> {
        let rows = release(self.plan, self.groups, confidence, entropy)?;
        Ok(answer(self.plan, rows))
    }
}

/// Runs the engine. An error or a panic there is one and the same constant here, and so is a physical plan without its caps.
fn run(
    logical: &LogicalPlan,
    plan: &PrivatePlan,
    tables: &Tables,
    width: Width,
) -> Result<Secret<Groups>> {
    let check = |physical: &dyn ExecutionPlan| verify::verify(physical, &plan.stable);
    let batches = tables.engine().run(logical, width, check);
    let batches = batches.ok_or(Error::Execution)?;
    let parts = plan
        .stable
        .measured
        .iter()
        .map(|measured| measured.parts().len())
        .sum();
    read(&batches, parts)
        .map(Secret::new)
        .ok_or(Error::Execution)
}

fn read(batches: &[RecordBatch], parts: usize) -> Option<Groups> {
    let mut groups = Groups::new();
    for batch in batches {
        let keys: &LargeBinaryArray = batch.column(0).as_any().downcast_ref()?;
        let sums: Vec<&Decimal128Array> = (1..=parts)
            .map(|at| batch.column(at).as_any().downcast_ref())
            .collect::<Option<_>>()?;
        let units: &Int64Array = batch.column_by_name(UNITS)?.as_any().downcast_ref()?;
        for row in 0..batch.num_rows() {
            let value = |array: &&Decimal128Array| {
                if array.is_valid(row) {
                    array.value(row)
                } else {
                    0
                }
            };
            let group = Group {
                parts: sums.iter().map(value).collect(),
                units: u64::try_from(units.value(row)).ok()?,
            };
            groups.insert(keys.value(row).to_vec(), group);
        }
    }
    Some(groups)
}

/// Keys are chosen and noise is added; what comes out is public.
fn release(
    plan: &PrivatePlan,
    groups: Secret<Groups>,
    confidence: Confidence,
    entropy: &mut impl Entropy,
) -> Result<Vec<NoisyRow>> {
    let stable = &plan.stable;
    let selected: Vec<Vec<u8>>;
    let shown: &[Vec<u8>] = match (plan.keys(), &plan.selection) {
        (Keys::One, _) => &[Vec::new()],
        (Keys::Public(keys), _) => &keys.order,
        (Keys::Private, Some(selection)) => {
            let units = groups.as_ref().map(|groups| {
                groups
                    .iter()
                    .map(|(key, group)| (key.clone(), group.units))
                    .collect::<BTreeMap<_, _>>()
            });
            selected = selection.release(units, entropy)?.into_value().shown;
            &selected
        }
        (Keys::Private, None) => return Err(Error::Execution),
    };
    let mut rows: Vec<NoisyRow> = Vec::with_capacity(shown.len());
    for key in shown.iter() {
        let cells = Cell::decode_all(key).ok_or(Error::Execution)?;
        let intervals = vec![None; cells.len()];
        rows.push(NoisyRow { cells, intervals });
    }
    let mut first = 0;
    for (measured, noise) in stable.measured.iter().zip(&plan.noise) {
        let parts = measured.parts().len();
        let sums = groups
            .as_ref()
            .map(|groups| sums(measured, groups, shown, first));
        let noisy = noise.release_vector(sums, entropy)?.into_value();
        let width = noisy.len() / shown.len().max(1);
        for (row, noisy) in rows.iter_mut().zip(noisy.chunks(width.max(1))) {
            let (cell, interval) = estimate(measured, noise, noisy, confidence);
            row.cells.push(cell);
            row.intervals.push(Some(interval));
        }
        first += parts;
    }
    // Whatever was not released is dropped here.
    drop(groups);
    Ok(rows)
}

/// The numbers of one aggregate for the groups that are shown, in their order. A group without rows has sums of zero.
fn sums(measured: &Measured, groups: &Groups, shown: &[Vec<u8>], first: usize) -> Vec<i128> {
    let none = Group::default();
    let mut sums = Vec::new();
    for key in shown {
        let group = groups.get(key).unwrap_or(&none);
        match measured {
            Measured::Units => sums.push(i128::from(group.units)),
            _ => sums.extend(
                (first..first + measured.parts().len())
                    .map(|at| group.parts.get(at).copied().unwrap_or(0)),
            ),
        }
    }
    sums
}

/// The answer and its interval from noisy numbers: post-processing.
fn estimate(
    measured: &Measured,
    noise: &Additive<AddRemove>,
    noisy: &[i128],
    confidence: Confidence,
) -> (Value, [f64; 2]) {
    let around = |value: i128, confidence: Confidence| {
        let half = i128::try_from(noise.half_width(confidence)).unwrap_or(i128::MAX);
        [value.saturating_sub(half), value.saturating_add(half)]
    };
    let narrow = |value: i128| value.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
    let first = noisy.first().copied().unwrap_or(0);
    match measured {
        Measured::Count(_) | Measured::Units => {
            // What saturates, saturates with its interval.
            let ends = whole_ends(around(first, confidence).map(narrow));
            (Cell::Int(narrow(first)), ends)
        }
        Measured::Sum(fixed, _) => {
            let ends = around(first, confidence);
            if fixed.whole {
                return (Cell::Int(narrow(first)), whole_ends(ends.map(narrow)));
            }
            let grid = fixed.bounds.grid();
            let ends = ends.map(|end| match fixed.kind {
                Kind::Int => grid.value(end).clamp(i64::MIN as f64, i64::MAX as f64),
                _ => grid.value(end),
            });
            // Of one kind whatever the grid, so that what follows the noise can compare.
            (Cell::real(grid.value(first)).cast(fixed.kind), ends)
        }
        Measured::Mean(fixed, _) => {
            let (above, below) = (first, noisy.get(1).copied().unwrap_or(0));
            let (lower, width) = (fixed.bounds.lower() as f64, fixed.bounds.width() as f64);
            let step = fixed.bounds.step().to_f64_up();
            let mean = |share: f64| (lower + width * share.clamp(0.0, 1.0)) * step;
            // Where noise leaves less than one row, one is assumed.
            let total = (above.saturating_add(below) as f64).max(width);
            // Both sums are within their intervals at once, with the confidence asked for; the share grows with one and falls
            // with the other, and neither is negative.
            let each = confidence.for_each_of_two();
            let [a_low, a_high] = around(above, each).map(|end| end.max(0) as f64);
            let [b_low, b_high] = around(below, each).map(|end| end.max(0) as f64);
            let low = if a_low + b_high > 0.0 {
                a_low / (a_low + b_high)
            } else {
                0.0
            };
            let high = if a_high + b_low > 0.0 {
                a_high / (a_high + b_low)
            } else {
                1.0
            };
            (
                Cell::real(mean(above as f64 / total)),
                [mean(low), mean(high)],
            )
        }
    }
}

fn answer(plan: &PrivatePlan, rows: Vec<NoisyRow>) -> Answer {
    let statement = &plan.stable.statement;
    let rows = apply(&statement.steps, statement.traits(), rows);
    let traits = traits_after(&statement.steps, statement.traits());
    let columns = statement.names.iter().zip(&statement.kinds).zip(traits);
    let columns = columns.map(|((name, kind), known)| AnswerColumn {
        name: name.clone(),
        kind: *kind,
        noisy: known != Trait::Exact,
    });
    // What is beyond all floats is no number that JSON could hold.
    let finite = |cell: Value| match cell {
        Cell::Real(number) if !number.is_finite() => Cell::Null,
        other => other,
    };
    let (cells, intervals) = rows
        .into_iter()
        .map(|row| (row.cells.into_iter().map(finite).collect(), row.intervals))
        .unzip();
    Answer {
        columns: columns.collect(),
        rows: cells,
        intervals,
    }
}

#[cfg(test)]
mod attack_tests;
#[cfg(test)]
mod tests;
