//! How large an expression can get, by interval arithmetic over the ranges that the catalog declares.
//!
//! Nothing rests on these intervals being right: a value is clamped to its interval before it is summed, so a wrong one
//! costs accuracy and never privacy. That is why plain floats, rounded any way, are enough here.

use crate::term::{Arithmetic, Term};
use crate::value::{Cell, Kind};

/// From the least to the largest value, both finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interval {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Interval {
    pub(crate) fn new(low: f64, high: f64) -> Option<Self> {
        (low.is_finite() && high.is_finite() && low <= high).then_some(Self { low, high })
    }

    fn hull(self, other: Self) -> Self {
        Self {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
        }
    }

    fn reach(self) -> f64 {
        self.low.abs().max(self.high.abs())
    }

    fn corners(self, other: Self, compute: impl Fn(f64, f64) -> f64) -> Option<Self> {
        let corners = [
            compute(self.low, other.low),
            compute(self.low, other.high),
            compute(self.high, other.low),
            compute(self.high, other.high),
        ];
        let low = corners.iter().copied().fold(f64::INFINITY, f64::min);
        let high = corners.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        corners
            .iter()
            .all(|corner| corner.is_finite())
            .then_some(())?;
        Self::new(low, high)
    }
}

/// What a term's values lie in, if the ranges of its columns say so. `columns` gives the declared range of each.
pub(crate) fn interval(
    term: &Term,
    columns: &impl Fn(usize) -> (Kind, Option<Interval>),
) -> Option<Interval> {
    let of = |term: &Term| interval(term, columns);
    match term {
        Term::Column(column) => columns(*column).1,
        Term::Literal(value) => value.number().and_then(|x| Interval::new(x, x)),
        Term::Negative(term) => of(term).and_then(|x| Interval::new(-x.high, -x.low)),
        Term::Arithmetic(how, left, right) => {
            let (a, b) = (of(left)?, of(right)?);
            match how {
                Arithmetic::Add => Interval::new(a.low + b.low, a.high + b.high),
                Arithmetic::Subtract => Interval::new(a.low - b.high, a.high - b.low),
                Arithmetic::Multiply => a.corners(b, |x, y| x * y),
                // A whole number but zero is at least one in size, and zero gives NULL.
                Arithmetic::Divide if whole(right, columns) => Interval::new(-a.reach(), a.reach()),
                Arithmetic::Divide if b.low > 0.0 || b.high < 0.0 => a.corners(b, |x, y| x / y),
                Arithmetic::Divide => None,
                Arithmetic::Remainder => {
                    let reach = a.reach().min(b.reach());
                    Interval::new(-reach, reach)
                }
            }
        }
        Term::Case(branches, otherwise) => {
            let values = branches.iter().map(|(_, then)| then);
            hull(values.chain([otherwise.as_ref()]), columns)
        }
        Term::Coalesce(terms) => hull(terms.iter(), columns),
        Term::Cast(term, Kind::Int | Kind::Real) => match of(term) {
            Some(found) => Some(found),
            None if truth(term) => Interval::new(0.0, 1.0),
            None => None,
        },
        _ => None,
    }
}

/// The hull of all values that are not NULL.
fn hull<'a>(
    terms: impl Iterator<Item = &'a Term>,
    columns: &impl Fn(usize) -> (Kind, Option<Interval>),
) -> Option<Interval> {
    let mut found: Option<Interval> = None;
    for term in terms {
        if *term == Term::Literal(Cell::Null) {
            continue;
        }
        let next = interval(term, columns)?;
        found = Some(found.map_or(next, |found| found.hull(next)));
    }
    found
}

fn whole(term: &Term, columns: &impl Fn(usize) -> (Kind, Option<Interval>)) -> bool {
    match term {
        Term::Column(column) => columns(*column).0 == Kind::Int,
        Term::Literal(value) => matches!(value, Cell::Int(_)),
        Term::Negative(term) => whole(term, columns),
        Term::Arithmetic(_, left, right) => whole(left, columns) && whole(right, columns),
        Term::Cast(_, kind) => *kind == Kind::Int,
        _ => false,
    }
}

fn truth(term: &Term) -> bool {
    matches!(
        term,
        Term::Compare(..)
            | Term::And(..)
            | Term::Or(..)
            | Term::Not(_)
            | Term::Is(..)
            | Term::IsNull(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    fn columns(column: usize) -> (Kind, Option<Interval>) {
        match column {
            0 => (Kind::Int, Interval::new(-3.0, 10.0)),
            1 => (Kind::Real, Interval::new(0.5, 2.0)),
            2 => (Kind::Real, Interval::new(-1.0, 1.0)),
            _ => (Kind::Int, None),
        }
    }

    fn column(at: usize) -> Box<Term> {
        Box::new(Term::Column(at))
    }

    fn check(term: &Term, expected: Option<(f64, f64)>) {
        let found = interval(term, &columns).map(|found| (found.low, found.high));
        assert_eq!(found, expected, "{term:?}");
    }

    #[test]
    fn bounds_follow_the_operators() {
        use Arithmetic::{Add, Divide, Multiply, Remainder, Subtract};
        let two = |how, a, b| Term::Arithmetic(how, column(a), column(b));
        check(&two(Add, 0, 1), Some((-2.5, 12.0)));
        check(&two(Subtract, 0, 0), Some((-13.0, 13.0)));
        check(&two(Multiply, 0, 0), Some((-30.0, 100.0)));
        check(&two(Divide, 0, 1), Some((-6.0, 20.0)));
        check(&two(Divide, 0, 2), None);
        check(&two(Divide, 1, 0), Some((-2.0, 2.0)));
        check(&two(Remainder, 0, 2), Some((-1.0, 1.0)));
        check(&two(Add, 0, 3), None);
        let case = Term::Case(
            vec![(Term::Literal(Cell::Bool(true)), Term::Column(0))],
            Box::new(Term::Literal(Cell::Null)),
        );
        check(&case, Some((-3.0, 10.0)));
        check(
            &Term::Coalesce(vec![Term::Column(1), Term::Literal(Cell::Int(7))]),
            Some((0.5, 7.0)),
        );
        check(&Term::Literal(Cell::Null), None);
    }

    /// Values that keep to their ranges stay within the interval.
    #[test]
    fn bounds_hold_what_rows_give() {
        let how = [
            Arithmetic::Add,
            Arithmetic::Subtract,
            Arithmetic::Multiply,
            Arithmetic::Divide,
            Arithmetic::Remainder,
        ];
        for how in how {
            for (a, b) in [(0, 0), (0, 1), (1, 0), (2, 1)] {
                let term = Term::Arithmetic(how, column(a), column(b));
                let Some(found) = interval(&term, &columns) else {
                    continue;
                };
                for i in [-3, -1, 0, 1, 10] {
                    for x in [0.5, 1.0, 2.0] {
                        let row: Vec<Value> =
                            vec![Cell::Int(i), Cell::Real(x), Cell::Real(x / 2.0 - 0.5)];
                        let row: &[Value] = &row;
                        if let Some(value) = term.evaluate(&row).number() {
                            assert!(
                                found.low <= value && value <= found.high,
                                "{term:?}: {value}"
                            );
                        }
                    }
                }
            }
        }
    }
}
