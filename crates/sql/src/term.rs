//! Total expressions: defined on every row, so that no row can make a statement fail.
//!
//! The engine's own expressions raise errors that depend on the data: `1/x`, casts, overflow. So no analyst's expression
//! is ever handed to it. They are translated to terms ([`crate::plan`]) and evaluated here:
//!
//! | case | value |
//! | --- | --- |
//! | `x / 0`, `x % 0` | NULL |
//! | a whole number beyond 64 bits | the nearest one |
//! | `inf - inf`, `0 * inf` and other things that are no number | NULL |
//! | a cast that fails | NULL |
//! | comparison with NULL | NULL, as in SQL; a filter takes that for false |
//!
//! A term looks at one row and at nothing else, so whatever it does, it does not change how many units a row touches.

use std::collections::BTreeSet;

use crate::value::{Cell, Kind, Value};

/// A total expression over the columns of a relation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Term {
    /// The column at this place.
    Column(usize),
    /// A constant.
    Literal(Value),
    /// Arithmetic.
    Arithmetic(Arithmetic, Box<Term>, Box<Term>),
    /// A comparison.
    Compare(Comparison, Box<Term>, Box<Term>),
    /// Both, in three-valued logic.
    And(Box<Term>, Box<Term>),
    /// Either, in three-valued logic.
    Or(Box<Term>, Box<Term>),
    /// The opposite, in three-valued logic.
    Not(Box<Term>),
    /// The number with the other sign.
    Negative(Box<Term>),
    /// Is it this truth value, or NULL? Never NULL itself.
    Is(Box<Term>, Option<bool>),
    /// Is there nothing? Never NULL itself.
    IsNull(Box<Term>),
    /// The value of the first condition that is true.
    Case(Vec<(Term, Term)>, Box<Term>),
    /// The first that is not NULL.
    Coalesce(Vec<Term>),
    /// As another kind, NULL where that fails.
    Cast(Box<Term>, Kind),
}

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Distinct,
    NotDistinct,
}

/// A row of a relation.
pub(crate) trait Row<'a> {
    /// The cell of a column.
    fn cell(&self, column: usize) -> Cell<'a>;
}

impl<'a> Row<'a> for &'a [Value] {
    fn cell(&self, column: usize) -> Cell<'a> {
        self.get(column).map_or(Cell::Null, borrow)
    }
}

/// The same cell, borrowing its text.
pub(crate) fn borrow(value: &Value) -> Cell<'_> {
    match value {
        Cell::Null => Cell::Null,
        Cell::Bool(b) => Cell::Bool(*b),
        Cell::Int(i) => Cell::Int(*i),
        Cell::Real(x) => Cell::Real(*x),
        Cell::Text(t) => Cell::Text(std::borrow::Cow::Borrowed(t.as_ref())),
    }
}

impl Term {
    /// The value on a row.
    pub(crate) fn evaluate<'a>(&'a self, row: &impl Row<'a>) -> Cell<'a> {
        match self {
            Self::Column(column) => row.cell(*column),
            Self::Literal(value) => borrow(value),
            Self::Arithmetic(how, left, right) => {
                arithmetic(*how, &left.evaluate(row), &right.evaluate(row))
            }
            Self::Compare(how, left, right) => {
                compare(*how, &left.evaluate(row), &right.evaluate(row))
            }
            Self::And(left, right) => match (left.truth(row), right.truth(row)) {
                (Some(false), _) | (_, Some(false)) => Cell::Bool(false),
                (Some(true), Some(true)) => Cell::Bool(true),
                _ => Cell::Null,
            },
            Self::Or(left, right) => match (left.truth(row), right.truth(row)) {
                (Some(true), _) | (_, Some(true)) => Cell::Bool(true),
                (Some(false), Some(false)) => Cell::Bool(false),
                _ => Cell::Null,
            },
            Self::Not(term) => term
                .truth(row)
                .map_or(Cell::Null, |truth| Cell::Bool(!truth)),
            Self::Negative(term) => match term.evaluate(row) {
                Cell::Int(i) => Cell::Int(i.saturating_neg()),
                Cell::Real(x) => Cell::real(-x),
                _ => Cell::Null,
            },
            Self::Is(term, truth) => Cell::Bool(term.truth(row) == *truth),
            Self::IsNull(term) => Cell::Bool(term.evaluate(row) == Cell::Null),
            Self::Case(branches, otherwise) => branches
                .iter()
                .find(|(when, _)| when.truth(row) == Some(true))
                .map_or(otherwise.as_ref(), |(_, then)| then)
                .evaluate(row),
            Self::Coalesce(terms) => terms
                .iter()
                .map(|term| term.evaluate(row))
                .find(|cell| *cell != Cell::Null)
                .unwrap_or(Cell::Null),
            Self::Cast(term, kind) => term.evaluate(row).cast(*kind),
        }
    }

    /// The truth value on a row; none for NULL.
    pub(crate) fn truth<'a>(&'a self, row: &impl Row<'a>) -> Option<bool> {
        match self.evaluate(row) {
            Cell::Bool(truth) => Some(truth),
            _ => None,
        }
    }

    /// The columns that are looked at.
    pub(crate) fn columns(&self, into: &mut BTreeSet<usize>) {
        if let Self::Column(column) = self {
            into.insert(*column);
        }
        self.parts().into_iter().for_each(|part| part.columns(into));
    }

    fn parts(&self) -> Vec<&Term> {
        match self {
            Self::Column(_) | Self::Literal(_) => vec![],
            Self::Arithmetic(_, left, right)
            | Self::Compare(_, left, right)
            | Self::And(left, right)
            | Self::Or(left, right) => vec![left, right],
            Self::Not(term)
            | Self::Negative(term)
            | Self::Is(term, _)
            | Self::IsNull(term)
            | Self::Cast(term, _) => vec![term],
            Self::Case(branches, otherwise) => branches
                .iter()
                .flat_map(|(when, then)| [when, then])
                .chain([otherwise.as_ref()])
                .collect(),
            Self::Coalesce(terms) => terms.iter().collect(),
        }
    }

    /// How many terms it is made of, itself included; long texts count as several.
    pub(crate) fn weight(&self) -> usize {
        let own = match self {
            Self::Literal(Cell::Text(text)) => 1 + text.len() / 32,
            _ => 1,
        };
        own + self.parts().into_iter().map(Self::weight).sum::<usize>()
    }

    /// How deeply it nests: how often a walk through it calls itself.
    pub(crate) fn depth(&self) -> usize {
        let deepest = self.parts().into_iter().map(Self::depth).max();
        1 + deepest.unwrap_or(0)
    }

    /// Joined by AND as long as they are: a row passes if it passes each.
    pub(crate) fn conjuncts(self, into: &mut Vec<Self>) {
        match self {
            Self::And(left, right) => {
                left.conjuncts(into);
                right.conjuncts(into);
            }
            other => into.push(other),
        }
    }

    /// The same over other places of the columns.
    pub(crate) fn move_columns(self, to: &impl Fn(usize) -> usize) -> Self {
        let moved = |term: Box<Term>| Box::new(term.move_columns(to));
        match self {
            Self::Column(column) => Self::Column(to(column)),
            Self::Literal(value) => Self::Literal(value),
            Self::Arithmetic(how, left, right) => Self::Arithmetic(how, moved(left), moved(right)),
            Self::Compare(how, left, right) => Self::Compare(how, moved(left), moved(right)),
            Self::And(left, right) => Self::And(moved(left), moved(right)),
            Self::Or(left, right) => Self::Or(moved(left), moved(right)),
            Self::Not(term) => Self::Not(moved(term)),
            Self::Negative(term) => Self::Negative(moved(term)),
            Self::Is(term, truth) => Self::Is(moved(term), truth),
            Self::IsNull(term) => Self::IsNull(moved(term)),
            Self::Case(branches, otherwise) => Self::Case(
                branches
                    .into_iter()
                    .map(|(when, then)| (when.move_columns(to), then.move_columns(to)))
                    .collect(),
                moved(otherwise),
            ),
            Self::Coalesce(terms) => Self::Coalesce(
                terms
                    .into_iter()
                    .map(|term| term.move_columns(to))
                    .collect(),
            ),
            Self::Cast(term, kind) => Self::Cast(moved(term), kind),
        }
    }
}

fn arithmetic(how: Arithmetic, left: &Cell<'_>, right: &Cell<'_>) -> Cell<'static> {
    if let (&Cell::Int(a), &Cell::Int(b)) = (left, right) {
        return match how {
            Arithmetic::Add => Cell::Int(a.saturating_add(b)),
            Arithmetic::Subtract => Cell::Int(a.saturating_sub(b)),
            Arithmetic::Multiply => Cell::Int(a.saturating_mul(b)),
            Arithmetic::Divide if b == 0 => Cell::Null,
            Arithmetic::Divide => Cell::Int(a.saturating_div(b)),
            Arithmetic::Remainder if b == 0 => Cell::Null,
            Arithmetic::Remainder => Cell::Int(a.wrapping_rem(b)),
        };
    }
    let (Some(a), Some(b)) = (left.number(), right.number()) else {
        return Cell::Null;
    };
    match how {
        Arithmetic::Add => Cell::real(a + b),
        Arithmetic::Subtract => Cell::real(a - b),
        Arithmetic::Multiply => Cell::real(a * b),
        Arithmetic::Divide | Arithmetic::Remainder if b == 0.0 => Cell::Null,
        Arithmetic::Divide => Cell::real(a / b),
        Arithmetic::Remainder => Cell::real(a % b),
    }
}

fn compare(how: Comparison, left: &Cell<'_>, right: &Cell<'_>) -> Cell<'static> {
    let order = left.compare(right);
    let nothing = (*left == Cell::Null, *right == Cell::Null);
    match how {
        Comparison::Distinct | Comparison::NotDistinct => {
            let same = match nothing {
                (true, true) => true,
                (false, false) => order.is_some_and(|order| order.is_eq()),
                _ => false,
            };
            Cell::Bool(same == (how == Comparison::NotDistinct))
        }
        _ => order.map_or(Cell::Null, |order| {
            Cell::Bool(match how {
                Comparison::Equal => order.is_eq(),
                Comparison::NotEqual => order.is_ne(),
                Comparison::Less => order.is_lt(),
                Comparison::LessOrEqual => order.is_le(),
                Comparison::Greater => order.is_gt(),
                _ => order.is_ge(),
            })
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lit(value: Value) -> Box<Term> {
        Box::new(Term::Literal(value))
    }

    fn value(term: &Term) -> Value {
        let row: &[Value] = &[];
        term.evaluate(&row).into_value()
    }

    fn computed(how: Arithmetic, left: Value, right: Value) -> Value {
        value(&Term::Arithmetic(how, lit(left), lit(right)))
    }

    /// Every operator on every pair of hostile operands: some value, never a panic, never NaN.
    #[test]
    fn every_operator_is_defined_everywhere() {
        let hostile = [
            Cell::Null,
            Cell::Bool(true),
            Cell::Int(i64::MIN),
            Cell::Int(-1),
            Cell::Int(0),
            Cell::Int(i64::MAX),
            Cell::Real(f64::NEG_INFINITY),
            Cell::Real(0.0),
            Cell::Real(f64::MAX),
            Cell::Real(f64::INFINITY),
            Cell::text("x"),
        ];
        let mut tried = 0;
        for a in &hostile {
            for b in &hostile {
                for how in [
                    Arithmetic::Add,
                    Arithmetic::Subtract,
                    Arithmetic::Multiply,
                    Arithmetic::Divide,
                    Arithmetic::Remainder,
                ] {
                    let found = computed(how, a.clone(), b.clone());
                    assert!(
                        !matches!(found, Cell::Real(x) if x.is_nan()),
                        "{how:?} {a:?} {b:?}"
                    );
                    tried += 1;
                }
            }
            for kind in [Kind::Bool, Kind::Int, Kind::Real, Kind::Text] {
                let found = value(&Term::Cast(lit(a.clone()), kind));
                assert!(!matches!(found, Cell::Real(x) if x.is_nan()));
            }
        }
        assert_eq!(tried, 5 * 121);
    }

    #[test]
    fn arithmetic_stops_at_the_ends() {
        use Arithmetic::{Add, Divide, Multiply, Remainder, Subtract};
        let check = |how, a: i64, b: i64, expected: Value| {
            assert_eq!(
                computed(how, Cell::Int(a), Cell::Int(b)),
                expected,
                "{how:?} {a} {b}"
            );
        };
        check(Add, i64::MAX, 1, Cell::Int(i64::MAX));
        check(Subtract, i64::MIN, 1, Cell::Int(i64::MIN));
        check(Multiply, i64::MAX, -2, Cell::Int(i64::MIN));
        check(Divide, 7, 0, Cell::Null);
        check(Divide, i64::MIN, -1, Cell::Int(i64::MAX));
        check(Divide, -7, 2, Cell::Int(-3));
        check(Remainder, i64::MIN, -1, Cell::Int(0));
        check(Remainder, 7, 0, Cell::Null);
        assert_eq!(
            computed(Divide, Cell::Real(1.0), Cell::Real(0.0)),
            Cell::Null
        );
        let infinite = || Cell::Real(f64::INFINITY);
        assert_eq!(computed(Subtract, infinite(), infinite()), Cell::Null);
    }

    #[test]
    fn logic_has_three_values() {
        let (yes, no, unknown) = (Cell::Bool(true), Cell::Bool(false), Cell::Null);
        let and = |a: &Value, b: &Value| value(&Term::And(lit(a.clone()), lit(b.clone())));
        let or = |a: &Value, b: &Value| value(&Term::Or(lit(a.clone()), lit(b.clone())));
        assert_eq!(and(&unknown, &no), no);
        assert_eq!(and(&unknown, &yes), unknown);
        assert_eq!(or(&unknown, &yes), yes);
        assert_eq!(or(&unknown, &no), unknown);
        assert_eq!(value(&Term::Not(lit(Cell::Null))), unknown);
        assert_eq!(value(&Term::Is(lit(Cell::Null), None)), yes);
        assert_eq!(value(&Term::IsNull(lit(Cell::Null))), yes);
    }

    #[test]
    fn null_is_distinct_from_values_alone() {
        let distinct =
            |a: Value, b: Value| value(&Term::Compare(Comparison::Distinct, lit(a), lit(b)));
        assert_eq!(distinct(Cell::Null, Cell::Null), Cell::Bool(false));
        assert_eq!(distinct(Cell::Null, Cell::Int(1)), Cell::Bool(true));
        assert_eq!(distinct(Cell::Int(1), Cell::Real(1.0)), Cell::Bool(false));
    }
}
