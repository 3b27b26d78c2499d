//! Above the aggregate: what is done to noisy values alone. All of it is post-processing.

use std::cmp::Ordering;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, LogicalPlan};

use super::expression::{Scope, Typed};
use super::meter::Meter;
use super::relation::{node_name, node_refused};
use crate::error::{Result, refused, sql};
use crate::term::{Arithmetic, Term};
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

/// Does the steps, one after the other. `traits` are those of the columns before the first.
pub(crate) fn apply(
    steps: &[Step],
    mut traits: Vec<Trait>,
    mut rows: Vec<NoisyRow>,
) -> Vec<NoisyRow> {
    for step in steps {
        match step {
            Step::Filter(condition) => {
                rows.retain(|row| condition.truth(&row.cells.as_slice()) == Some(true))
            }
            Step::Project(columns) => {
                for row in &mut rows {
                    *row = project(columns, &traits, row);
                }
                traits = columns.iter().map(|term| trait_of(term, &traits)).collect();
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

fn project(columns: &[Term], traits: &[Trait], row: &NoisyRow) -> NoisyRow {
    let cells = columns
        .iter()
        .map(|term| term.evaluate(&row.cells.as_slice()).into_value())
        .collect();
    let intervals = columns.iter().map(|term| match term {
        Term::Column(at) => row.intervals.get(*at).copied().flatten(),
        _ => moved(term, traits, row),
    });
    NoisyRow {
        cells,
        intervals: intervals.collect(),
    }
}

/// The interval of what is computed from one noisy number: the term at the ends of that number's interval, between which it goes only
/// up or only down. Floats are rounded, so their ends move outward by a step; zero is where it is.
fn moved(term: &Term, traits: &[Trait], row: &NoisyRow) -> Option<[f64; 2]> {
    let Trait::Bounded(Some(at)) = trait_of(term, traits) else {
        return None;
    };
    let ends = row.intervals.get(at).copied().flatten()?;
    let whole = matches!(row.cells.get(at), Some(Cell::Int(_)));
    let value = |end: f64| {
        let mut cells = row.cells.clone();
        // An integer's ends are integers; beyond 64 bits they saturate, as it does.
        *cells.get_mut(at)? = match whole {
            true => Cell::Int(end as i64),
            false => Cell::Real(end),
        };
        Some(term.evaluate(&cells.as_slice()).into_value())
    };
    let ends = match (value(ends[0])?, value(ends[1])?) {
        (Cell::Int(one), Cell::Int(two)) => whole_ends([one.min(two), one.max(two)]),
        (one, two) => {
            let (one, two) = (one.number()?, two.number()?);
            let outward = |end: f64, beside: f64| if end == 0.0 { 0.0 } else { beside };
            let (low, high) = (one.min(two), one.max(two));
            [outward(low, low.next_down()), outward(high, high.next_up())]
        }
    };
    ends.iter().all(|end| end.is_finite()).then_some(ends)
}

/// As floats, of which none is inside: beyond 2^53 not every whole number is a float.
pub(crate) fn whole_ends([low, high]: [i64; 2]) -> [f64; 2] {
    let (below, above) = (low as f64, high as f64);
    [
        if below as i128 > i128::from(low) {
            below.next_down()
        } else {
            below
        },
        if (above as i128) < i128::from(high) {
            above.next_up()
        } else {
            above
        },
    ]
}

/// What is known of a column's intervals before there are rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trait {
    /// It holds no noise.
    Exact,
    /// It goes up and down with one noisy number, that of the column named, or is it.
    Bounded(Option<usize>),
    /// It depends on noise in another way.
    Noisy,
}

/// Of a term over columns of these traits.
fn trait_of(term: &Term, traits: &[Trait]) -> Trait {
    let of = |term: &Term| trait_of(term, traits);
    match term {
        Term::Column(at) => match traits.get(*at) {
            Some(Trait::Bounded(_)) => Trait::Bounded(Some(*at)),
            Some(other) => *other,
            None => Trait::Noisy,
        },
        Term::Negative(inner) | Term::Cast(inner, Kind::Int | Kind::Real) => of(inner),
        Term::Arithmetic(how, left, right) => match (how, of(left), of(right)) {
            (_, Trait::Exact, Trait::Exact) => Trait::Exact,
            (
                Arithmetic::Add | Arithmetic::Subtract | Arithmetic::Multiply | Arithmetic::Divide,
                bounded @ Trait::Bounded(_),
                Trait::Exact,
            ) => bounded,
            (
                Arithmetic::Add | Arithmetic::Subtract | Arithmetic::Multiply,
                Trait::Exact,
                bounded @ Trait::Bounded(_),
            ) => bounded,
            _ => Trait::Noisy,
        },
        other if is_noisy(other, traits) => Trait::Noisy,
        _ => Trait::Exact,
    }
}

fn is_noisy(term: &Term, traits: &[Trait]) -> bool {
    let mut used = std::collections::BTreeSet::new();
    term.columns(&mut used);
    used.into_iter()
        .any(|at| traits.get(at) != Some(&Trait::Exact))
}

/// What the steps make of the columns' traits.
pub(crate) fn traits_after(steps: &[Step], mut traits: Vec<Trait>) -> Vec<Trait> {
    for step in steps {
        if let Step::Project(columns) = step {
            traits = columns.iter().map(|term| trait_of(term, &traits)).collect();
        }
    }
    traits
}

/// Do the steps choose rows by noisy numbers? Of the rows that are left, more than usual have noise that went that way.
pub(crate) fn chooses_by_noise(steps: &[Step], mut traits: Vec<Trait>) -> bool {
    let mut sorted = false;
    for step in steps {
        match step {
            Step::Filter(condition) if is_noisy(condition, &traits) => return true,
            Step::Filter(_) => {}
            Step::Project(columns) => {
                traits = columns.iter().map(|term| trait_of(term, &traits)).collect();
            }
            Step::Sort(by) => sorted |= by.iter().any(|(term, ..)| is_noisy(term, &traits)),
            Step::Limit(skip, fetch) if sorted && (*skip > 0 || fetch.is_some()) => return true,
            Step::Limit(..) => {}
        }
    }
    false
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

/// The kind of a cell, for those who print it.
pub(crate) fn kind_of(columns: &[Typed]) -> Vec<Kind> {
    columns.iter().map(|column| column.kind).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(at: usize) -> Box<Term> {
        Box::new(Term::Column(at))
    }

    fn number(value: i64) -> Box<Term> {
        Box::new(Term::Literal(Cell::Int(value)))
    }

    /// A key, a count, a mean, and a number that was computed from several noisy ones.
    const TRAITS: [Trait; 4] = [
        Trait::Exact,
        Trait::Bounded(None),
        Trait::Bounded(None),
        Trait::Noisy,
    ];

    fn row() -> NoisyRow {
        NoisyRow {
            cells: vec![
                Cell::Int(3),
                Cell::Int(10),
                Cell::Real(0.5),
                Cell::Real(7.0),
            ],
            intervals: vec![None, Some([8.0, 12.0]), Some([0.25, 1.0]), None],
        }
    }

    #[test]
    fn intervals_follow_what_goes_up_and_down_with_one_number() {
        use Arithmetic::{Add, Divide, Multiply, Remainder, Subtract};
        let two = |how, a, b| Term::Arithmetic(how, a, b);
        let check = |term: Term, expected: Option<[f64; 2]>| {
            let found = project(std::slice::from_ref(&term), &TRAITS, &row()).intervals[0];
            assert_eq!(found, expected, "{term:?}");
            let bounded = matches!(trait_of(&term, &TRAITS), Trait::Bounded(_));
            assert_eq!(bounded, expected.is_some(), "{term:?}");
        };
        check(two(Add, column(1), number(1)), Some([9.0, 13.0]));
        check(two(Subtract, number(1), column(1)), Some([-11.0, -7.0]));
        check(two(Multiply, column(1), column(0)), Some([24.0, 36.0]));
        check(two(Multiply, number(-2), column(1)), Some([-24.0, -16.0]));
        check(two(Divide, column(1), number(3)), Some([2.0, 4.0]));
        check(Term::Negative(column(1)), Some([-12.0, -8.0]));
        let mean = two(Multiply, column(2), number(2));
        check(mean, Some([0.5_f64.next_down(), 2.0_f64.next_up()]));
        for beyond in [
            two(Divide, number(1), column(1)),
            two(Divide, column(1), column(2)),
            two(Subtract, column(1), column(1)),
            two(Remainder, column(1), number(3)),
            two(Add, column(3), number(1)),
            two(Add, column(0), number(1)),
        ] {
            check(beyond, None);
        }
        // Of nothing there is no interval, whatever the plan says.
        let nothing = two(Divide, column(1), number(0));
        assert_eq!(project(&[nothing], &TRAITS, &row()).intervals, [None]);
    }

    /// Whole numbers that no float is go to the floats around them, and zero stays.
    #[test]
    fn ends_are_never_inside() {
        const BEYOND: i64 = (1 << 53) + 1;
        let plus = |at, more| Term::Arithmetic(Arithmetic::Add, column(at), number(more));
        let check = |term: Term, row: &NoisyRow, expected: [f64; 2]| {
            let found = project(&[term], &TRAITS, row).intervals[0];
            assert_eq!(found, Some(expected));
            assert!(found.is_some_and(|ends| {
                ends.iter().all(|end| end.to_bits() != (-0.0_f64).to_bits())
            }));
        };
        let (below, above) = ((BEYOND - 1) as f64, (BEYOND + 1) as f64);
        let mut row = row();
        row.intervals[1] = Some([0.0, 0.0]);
        check(plus(1, BEYOND), &row, [below, above]);
        check(plus(1, -BEYOND), &row, [-above, -below]);
        check(plus(1, BEYOND + 1), &row, [above, above]);
        let most = i64::MAX as f64;
        check(plus(1, i64::MAX), &row, [most.next_down(), most]);
        check(plus(1, i64::MIN), &row, [-most, -most]);
        row.intervals[2] = Some([0.0, 1.0]);
        let twice = |by| Term::Arithmetic(Arithmetic::Multiply, column(2), number(by));
        check(twice(2), &row, [0.0, 2.0_f64.next_up()]);
        check(twice(-2), &row, [(-2.0_f64).next_down(), 0.0]);
    }

    #[test]
    fn rows_are_chosen_by_noise_or_not() {
        let traits = || TRAITS.to_vec();
        let filter = |at| {
            let few = crate::term::Comparison::Less;
            Step::Filter(Term::Compare(few, column(at), number(5)))
        };
        let sort = |at| Step::Sort(vec![(Term::Column(at), true, false)]);
        let check = |steps: &[Step], expected| {
            assert_eq!(chooses_by_noise(steps, traits()), expected, "{steps:?}");
        };
        check(&[filter(0)], false);
        check(&[filter(1)], true);
        check(&[sort(1)], false);
        check(&[sort(1), Step::Limit(0, Some(3))], true);
        check(&[sort(1), Step::Limit(0, None)], false);
        check(&[sort(0), Step::Limit(0, Some(3))], false);
        // After the select list columns stand elsewhere.
        check(&[Step::Project(vec![Term::Column(1)]), filter(0)], true);
    }
}
