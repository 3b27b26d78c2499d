//! Above the aggregate: what is done to noisy values alone. All of it is post-processing.

use std::cmp::Ordering;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, LogicalPlan};

use super::expression::{Scope, Typed};
use super::meter::Meter;
use super::relation::{node_name, node_refused};
use crate::error::{Result, refused, sql};
use crate::term::Term;
use crate::value::{Cell, Kind, Value};

/// A step after the noise.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// HAVING and WHERE.
    Filter(Term),
    /// The select list.
    Project(Vec<Term>),
    /// ORDER BY, each with its direction and whether NULL comes first.
    Sort(Vec<(Term, bool, bool)>),
    /// OFFSET and LIMIT.
    Limit(usize, Option<usize>),
}

/// A row of an answer: its cells, and for noisy ones the interval.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NoisyRow {
    pub(crate) cells: Vec<Value>,
    pub(crate) intervals: Vec<Option<[f64; 2]>>,
}

/// The columns that a step gives, in order.
pub(super) struct Output {
    pub(super) columns: Vec<Typed>,
    pub(super) steps: Vec<Step>,
}

/// Reads a step over `output`, whose schema is that of `input`.
pub(super) fn read(
    plan: &LogicalPlan,
    input: &LogicalPlan,
    output: &mut Output,
    meter: &Meter,
) -> Result<()> {
    let kinds: Vec<Typed> = output
        .columns
        .iter()
        .enumerate()
        .map(|(at, column)| Typed {
            term: Term::Column(at),
            kind: column.kind,
        })
        .collect();
    let scope = Scope {
        schema: input.schema(),
        columns: &kinds,
        meter,
    };
    match plan {
        LogicalPlan::Filter(filter) => output
            .steps
            .push(Step::Filter(scope.condition(&filter.predicate)?)),
        LogicalPlan::Projection(projection) => {
            let columns = projection
                .expr
                .iter()
                .map(|expr| scope.bind(expr))
                .collect::<Result<Vec<_>>>()?;
            output.steps.push(Step::Project(
                columns.iter().map(|column| column.term.clone()).collect(),
            ));
            output.columns = columns;
        }
        LogicalPlan::Sort(sort) => {
            let by = sort
                .expr
                .iter()
                .map(|by| Ok((scope.bind(&by.expr)?.term, by.asc, by.nulls_first)));
            output.steps.push(Step::Sort(by.collect::<Result<_>>()?));
            if let Some(fetch) = sort.fetch {
                output.steps.push(Step::Limit(0, Some(fetch)));
            }
        }
        LogicalPlan::Limit(limit) => {
            let skip = limit
                .skip
                .as_deref()
                .map(rows)
                .transpose()?
                .flatten()
                .unwrap_or(0);
            let fetch = limit.fetch.as_deref().map(rows).transpose()?.flatten();
            output.steps.push(Step::Limit(skip, fetch));
        }
        LogicalPlan::SubqueryAlias(_) => {}
        LogicalPlan::Distinct(_) => {
            return Err(refused(
                "distinct",
                "DISTINCT is not supported",
                "use GROUP BY",
            ));
        }
        other => return Err(node_refused(&node_name(other))),
    }
    Ok(())
}

/// A number of rows: a literal, not negative; NULL is no limit.
fn rows(expr: &Expr) -> Result<Option<usize>> {
    match expr {
        Expr::Literal(ScalarValue::Int64(Some(count)), _) if *count >= 0 => {
            Ok(usize::try_from(*count).ok())
        }
        Expr::Literal(value, _) if value.is_null() => Ok(None),
        _ => Err(sql(
            "bad_limit",
            "LIMIT and OFFSET take a number of rows",
            "give a whole number from 0 on",
        )),
    }
}

/// Does the steps, one after the other.
pub(crate) fn apply(steps: &[Step], mut rows: Vec<NoisyRow>) -> Vec<NoisyRow> {
    for step in steps {
        match step {
            Step::Filter(condition) => {
                rows.retain(|row| condition.truth(&row.cells.as_slice()) == Some(true))
            }
            Step::Project(columns) => {
                for row in &mut rows {
                    *row = project(columns, row);
                }
            }
            Step::Sort(by) => rows.sort_by(|one, other| order(by, &one.cells, &other.cells)),
            Step::Limit(skip, fetch) => {
                rows.drain(..(*skip).min(rows.len()));
                rows.truncate(fetch.unwrap_or(usize::MAX));
            }
        }
    }
    rows
}

fn project(columns: &[Term], row: &NoisyRow) -> NoisyRow {
    let cells = columns
        .iter()
        .map(|term| term.evaluate(&row.cells.as_slice()).into_value())
        .collect();
    let intervals = columns.iter().map(|term| match term {
        Term::Column(at) => row.intervals.get(*at).copied().flatten(),
        _ => None,
    });
    NoisyRow {
        cells,
        intervals: intervals.collect(),
    }
}

fn order(by: &[(Term, bool, bool)], one: &[Value], other: &[Value]) -> Ordering {
    for (term, ascending, nulls_first) in by {
        let (a, b) = (term.evaluate(&one), term.evaluate(&other));
        let found = match (a == Cell::Null, b == Cell::Null) {
            (true, true) => Ordering::Equal,
            (true, false) if *nulls_first => Ordering::Less,
            (true, false) => Ordering::Greater,
            (false, true) if *nulls_first => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => {
                let order = a.compare(&b).unwrap_or(Ordering::Equal);
                if *ascending { order } else { order.reverse() }
            }
        };
        if found.is_ne() {
            return found;
        }
    }
    Ordering::Equal
}

/// Does a column of the answer depend on noise? Told from the steps alone.
pub(crate) fn noisy_columns(steps: &[Step], mut noisy: Vec<bool>) -> Vec<bool> {
    for step in steps {
        if let Step::Project(columns) = step {
            let depends = |term: &Term| {
                let mut used = std::collections::BTreeSet::new();
                term.columns(&mut used);
                used.into_iter()
                    .any(|at| noisy.get(at).copied().unwrap_or(false))
            };
            noisy = columns.iter().map(depends).collect();
        }
    }
    noisy
}

/// The kind of a cell, for those who print it.
pub(crate) fn kind_of(columns: &[Typed]) -> Vec<Kind> {
    columns.iter().map(|column| column.kind).collect()
}
