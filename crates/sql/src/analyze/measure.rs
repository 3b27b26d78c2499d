//! What is summed for each aggregate: integers, one or two for each row.

use whit_mechanism::{Bounds, Grid};

use crate::error::Result;
use crate::interval::Interval;
use crate::plan::Typed;
use crate::term::{Row, Term};
use crate::value::{Cell, Kind};

/// A number in fixed point: whole steps of a public grid, clamped to public bounds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fixed {
    pub(crate) term: Term,
    pub(crate) bounds: Bounds,
    /// Are steps ones, so that answers are exact whole numbers?
    pub(crate) whole: bool,
    /// What answers are.
    pub(crate) kind: Kind,
}

/// The largest whole number that keeps to a grid of ones.
const WHOLE_MAX: f64 = (1_u64 << 60) as f64;

impl Fixed {
    pub(super) fn new(value: &Typed, interval: Interval) -> Result<Self> {
        let whole =
            value.kind == Kind::Int && interval.low >= -WHOLE_MAX && interval.high <= WHOLE_MAX;
        let bounds = if whole {
            let (low, high) = (interval.low.floor(), interval.high.ceil());
            // A constant gets room for one step, so that there is something to add noise for.
            let high = if low < high { high } else { low + 1.0 };
            Bounds::on_grid(low, high, Grid::new(0)?)?
        } else {
            let wide = (interval.low.abs() * 1e-3).max(1e-9);
            let high = if interval.low < interval.high {
                interval.high
            } else {
                interval.low + wide
            };
            Bounds::new(interval.low, high)?
        };
        Ok(Self {
            term: value.term.clone(),
            bounds,
            whole,
            kind: value.kind,
        })
    }

    /// In steps; none for NULL.
    fn steps<'a>(&'a self, row: &impl Row<'a>) -> Option<i64> {
        match self.term.evaluate(row) {
            Cell::Int(i) if self.whole => Some(i.clamp(self.bounds.lower(), self.bounds.upper())),
            cell => self.bounds.fix(cell.number()?),
        }
    }
}

/// An aggregate as sums of integers.
#[derive(Clone, Debug)]
pub(crate) enum Measured {
    /// How many rows, or how many with a value.
    Count(Part),
    /// How many units.
    Units,
    /// The sum of clamped values.
    Sum(Fixed, Part),
    /// The sums of the distances from both ends of the range: of each row, `U - L` in total.
    Mean(Fixed, [Part; 2]),
}

/// What a row adds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    what: What,
    filter: Option<Term>,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    One,
    Present(Term),
    Value(Fixed),
    Above(Fixed),
    Below(Fixed),
}

impl Measured {
    pub(super) fn count(present: Option<Term>, filter: Option<Term>) -> Self {
        let what = present.map_or(What::One, What::Present);
        Self::Count(Part { what, filter })
    }

    pub(super) fn units() -> Self {
        Self::Units
    }

    pub(super) fn sum(fixed: Fixed, filter: Option<Term>) -> Self {
        let what = What::Value(fixed.clone());
        Self::Sum(fixed, Part { what, filter })
    }

    pub(super) fn mean(fixed: Fixed, filter: Option<Term>) -> Self {
        let above = Part {
            what: What::Above(fixed.clone()),
            filter: filter.clone(),
        };
        let below = Part {
            what: What::Below(fixed.clone()),
            filter,
        };
        Self::Mean(fixed, [above, below])
    }

    /// What rows add; nothing for units, which are counted apart.
    pub(crate) fn parts(&self) -> &[Part] {
        match self {
            Self::Count(part) | Self::Sum(_, part) => std::slice::from_ref(part),
            Self::Units => &[],
            Self::Mean(_, parts) => parts,
        }
    }

    /// The most that one row adds, over all parts together; none for units.
    pub(crate) fn reach(&self) -> Option<u64> {
        match self {
            Self::Count(_) => Some(1),
            Self::Units => None,
            Self::Sum(fixed, _) => Some(fixed.bounds.reach()),
            Self::Mean(fixed, _) => Some(fixed.bounds.width()),
        }
    }

    /// How many numbers are released for each group.
    pub(crate) fn width(&self) -> u64 {
        match self {
            Self::Mean(..) => 2,
            _ => 1,
        }
    }
}

impl Part {
    /// What this row adds. Rows that the filter does not take, and rows without a value, add nothing.
    pub(crate) fn value<'a>(&'a self, row: &impl Row<'a>) -> i128 {
        if self
            .filter
            .as_ref()
            .is_some_and(|filter| filter.truth(row) != Some(true))
        {
            return 0;
        }
        let found = match &self.what {
            What::One => Some(1),
            What::Present(term) => (term.evaluate(row) != Cell::Null).then_some(1),
            What::Value(fixed) => fixed.steps(row).map(i128::from),
            What::Above(fixed) => fixed
                .steps(row)
                .map(|x| i128::from(x) - i128::from(fixed.bounds.lower())),
            What::Below(fixed) => fixed
                .steps(row)
                .map(|x| i128::from(fixed.bounds.upper()) - i128::from(x)),
        };
        found.unwrap_or(0)
    }

    pub(crate) fn columns(&self, into: &mut std::collections::BTreeSet<usize>) {
        if let Some(filter) = &self.filter {
            filter.columns(into);
        }
        match &self.what {
            What::One => {}
            What::Present(term) => term.columns(into),
            What::Value(fixed) | What::Above(fixed) | What::Below(fixed) => {
                fixed.term.columns(into)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    fn fixed(kind: Kind, low: f64, high: f64) -> Fixed {
        let typed = Typed {
            term: Term::Column(0),
            kind,
        };
        Fixed::new(&typed, Interval::new(low, high).expect("finite")).expect("a range")
    }

    fn hostile() -> Vec<Value> {
        let reals = [
            f64::NEG_INFINITY,
            -1e300,
            -1.0,
            0.0,
            0.4,
            7.0,
            1e300,
            f64::INFINITY,
        ];
        let ints = [i64::MIN, -1, 0, 5, i64::MAX].map(Cell::Int);
        let mut cells: Vec<Value> = reals.into_iter().map(Cell::Real).collect();
        cells.extend(ints);
        cells.extend([Cell::Null, Cell::Bool(true), Cell::text("x")]);
        cells
    }

    /// No cell whatever adds more than the reach that noise is made for.
    #[test]
    fn no_row_adds_more_than_its_reach() {
        let ranges = [
            (Kind::Int, 0.0, 10.0),
            (Kind::Int, -7.0, 3.0),
            (Kind::Int, 5.0, 5.0),
            (Kind::Real, -0.5, 2.5),
            (Kind::Real, 1e15, 1e15),
            (Kind::Int, -9e18, 9e18),
        ];
        for (kind, low, high) in ranges {
            let fixed = fixed(kind, low, high);
            for measured in [
                Measured::sum(fixed.clone(), None),
                Measured::mean(fixed.clone(), None),
            ] {
                let reach = i128::from(measured.reach().expect("rows add"));
                assert!(reach > 0);
                for cell in hostile() {
                    let row: &[Value] = std::slice::from_ref(&cell);
                    let all: i128 = measured
                        .parts()
                        .iter()
                        .map(|part| part.value(&row).abs())
                        .sum();
                    assert!(all <= reach, "{cell:?} in {low},{high}");
                }
            }
        }
    }

    #[test]
    fn infinities_clamp_and_nothing_adds_nothing() {
        let fixed = fixed(Kind::Real, 0.0, 8.0);
        let sum = Measured::sum(fixed.clone(), None);
        let value = |cell: Value| {
            let row: &[Value] = std::slice::from_ref(&cell);
            sum.parts()[0].value(&row)
        };
        assert_eq!(
            value(Cell::Real(f64::INFINITY)),
            i128::from(fixed.bounds.upper())
        );
        assert_eq!(value(Cell::Real(f64::NEG_INFINITY)), 0);
        assert_eq!(value(Cell::Null), 0);
        let filtered = Measured::count(None, Some(Term::Literal(Cell::Null)));
        let row: &[Value] = &[];
        assert_eq!(filtered.parts()[0].value(&row), 0, "NULL is not true");
    }
}
