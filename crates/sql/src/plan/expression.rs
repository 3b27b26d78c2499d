//! From the planner's expressions to total terms. What is not on this list is refused by name.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

use crate::error::{Error, Result, refused, sql};
use crate::term::{Arithmetic, Comparison, Term};
use crate::value::{Cell, Kind};

use super::meter::Meter;

/// A term with the kind of its values.
#[derive(Clone, Debug)]
pub(crate) struct Typed {
    pub(crate) term: Term,
    pub(crate) kind: Kind,
}

impl Typed {
    fn new(term: Term, kind: Kind) -> Self {
        Self { term, kind }
    }

    fn boxed(self) -> Box<Term> {
        Box::new(self.term)
    }
}

/// The columns that an expression may speak of.
pub(super) struct Scope<'a> {
    pub(super) schema: &'a DFSchema,
    pub(super) columns: &'a [Typed],
    pub(super) meter: &'a Meter,
}

/// Terms nest this deep at most, columns of subqueries written out. They are walked by recursion on the threads that read
/// rows: one that overflowed a stack there would end the process, and a CASE could choose for whose row.
const DEPTH_MAX: usize = 200;

impl Scope<'_> {
    pub(super) fn bind(&self, expr: &Expr) -> Result<Typed> {
        shallow(self.at(expr, 0)?)
    }

    /// A condition.
    pub(super) fn condition(&self, expr: &Expr) -> Result<Term> {
        Ok(shallow(self.truth(expr, 0)?)?.term)
    }

    fn at(&self, expr: &Expr, depth: usize) -> Result<Typed> {
        if depth > DEPTH_MAX {
            return Err(too_deep());
        }
        let next = |expr: &Expr| self.at(expr, depth + 1);
        match expr {
            Expr::Alias(alias) => next(&alias.expr),
            Expr::Column(column) => {
                let found = self.schema.maybe_index_of_column(column);
                let found = found.and_then(|at| self.columns.get(at)).ok_or_else(|| {
                    sql(
                        "unknown_column",
                        format!("there is no column {column} here"),
                        "name a column of the tables in FROM",
                    )
                })?;
                self.meter.copy(found)
            }
            Expr::Literal(value, _) => literal(value),
            Expr::BinaryExpr(binary) => self.binary(binary, depth),
            Expr::Not(inner) => Ok(Typed::new(
                Term::Not(self.truth(inner, depth)?.boxed()),
                Kind::Bool,
            )),
            Expr::Negative(inner) => {
                let inner = number(next(inner)?)?;
                let kind = inner.kind;
                Ok(Typed::new(Term::Negative(inner.boxed()), kind))
            }
            Expr::IsNull(inner) => Ok(Typed::new(Term::IsNull(next(inner)?.boxed()), Kind::Bool)),
            Expr::IsNotNull(inner) => {
                let is_null = Term::IsNull(next(inner)?.boxed());
                Ok(Typed::new(Term::Not(Box::new(is_null)), Kind::Bool))
            }
            Expr::IsTrue(inner) => self.is(inner, Some(true), depth),
            Expr::IsFalse(inner) => self.is(inner, Some(false), depth),
            Expr::IsUnknown(inner) => self.is(inner, None, depth),
            Expr::IsNotTrue(inner) => Ok(not(self.is(inner, Some(true), depth)?)),
            Expr::IsNotFalse(inner) => Ok(not(self.is(inner, Some(false), depth)?)),
            Expr::IsNotUnknown(inner) => Ok(not(self.is(inner, None, depth)?)),
            Expr::Between(between) => {
                let value = next(&between.expr)?;
                let low = compare(
                    Comparison::GreaterOrEqual,
                    self.meter.copy(&value)?,
                    next(&between.low)?,
                )?;
                let high = compare(Comparison::LessOrEqual, value, next(&between.high)?)?;
                let within = Typed::new(Term::And(low.boxed(), high.boxed()), Kind::Bool);
                Ok(if between.negated { not(within) } else { within })
            }
            Expr::InList(list) => {
                let value = next(&list.expr)?;
                let mut any = Term::Literal(Cell::Bool(false));
                for item in list.list.iter().rev() {
                    let same = compare(Comparison::Equal, self.meter.copy(&value)?, next(item)?)?;
                    any = Term::Or(same.boxed(), Box::new(any));
                }
                let any = Typed::new(balanced(any), Kind::Bool);
                Ok(if list.negated { not(any) } else { any })
            }
            Expr::Case(case) => self.case(case, depth),
            Expr::Cast(cast) => convert(next(&cast.expr)?, cast.field.data_type()),
            Expr::TryCast(cast) => convert(next(&cast.expr)?, cast.field.data_type()),
            Expr::ScalarFunction(call) => match (call.func.name(), call.args.as_slice()) {
                ("coalesce", [_, ..]) => {
                    let terms = call.args.iter().map(next).collect::<Result<Vec<_>>>()?;
                    let kind = common(&terms)?;
                    let terms = terms.into_iter().map(|term| widen(term, kind)).collect();
                    Ok(Typed::new(Term::Coalesce(terms), kind))
                }
                ("nullif", [value, other]) => {
                    let value = next(value)?;
                    let kind = value.kind;
                    let same = compare(Comparison::Equal, self.meter.copy(&value)?, next(other)?)?;
                    let nothing = Term::Literal(Cell::Null);
                    Ok(Typed::new(
                        Term::Case(vec![(same.term, nothing)], value.boxed()),
                        kind,
                    ))
                }
                (name, _) => Err(function_refused(name)),
            },
            Expr::AggregateFunction(call) => Err(refused(
                "nested_aggregate",
                format!("{} stands where a plain value is wanted", call.func.name()),
                "use aggregates in the select list, HAVING and ORDER BY only",
            )),
            Expr::Exists(_)
            | Expr::InSubquery(_)
            | Expr::ScalarSubquery(_)
            | Expr::SetComparison(_) => Err(refused(
                "subquery_in_expression",
                "a subquery inside an expression could ask about one person",
                "join the tables, or put the subquery into FROM",
            )),
            Expr::WindowFunction(_) => Err(refused(
                "window",
                "window functions are not supported",
                "use GROUP BY with COUNT, SUM or AVG",
            )),
            other => Err(refused(
                "expression_not_allowed",
                format!(
                    "{} is not on the list of total expressions",
                    other.variant_name()
                ),
                "use columns, literals, + - * / %, comparisons, AND, OR, NOT, BETWEEN, IN (…), CASE, COALESCE, CAST",
            )),
        }
    }

    fn truth(&self, expr: &Expr, depth: usize) -> Result<Typed> {
        let bound = self.at(expr, depth + 1)?;
        match bound.kind {
            Kind::Bool | Kind::Null => Ok(bound),
            other => Err(mismatch("a condition", other)),
        }
    }

    fn is(&self, expr: &Expr, truth: Option<bool>, depth: usize) -> Result<Typed> {
        Ok(Typed::new(
            Term::Is(self.truth(expr, depth)?.boxed(), truth),
            Kind::Bool,
        ))
    }

    fn binary(&self, BinaryExpr { left, op, right }: &BinaryExpr, depth: usize) -> Result<Typed> {
        let comparison = match op {
            Operator::And | Operator::Or => {
                let (left, right) = (self.truth(left, depth)?, self.truth(right, depth)?);
                let (left, right) = (left.boxed(), right.boxed());
                let both = if *op == Operator::And {
                    Term::And(left, right)
                } else {
                    Term::Or(left, right)
                };
                return Ok(Typed::new(both, Kind::Bool));
            }
            Operator::Eq => Comparison::Equal,
            Operator::NotEq => Comparison::NotEqual,
            Operator::Lt => Comparison::Less,
            Operator::LtEq => Comparison::LessOrEqual,
            Operator::Gt => Comparison::Greater,
            Operator::GtEq => Comparison::GreaterOrEqual,
            Operator::IsDistinctFrom => Comparison::Distinct,
            Operator::IsNotDistinctFrom => Comparison::NotDistinct,
            _ => {
                let how = match op {
                    Operator::Plus => Arithmetic::Add,
                    Operator::Minus => Arithmetic::Subtract,
                    Operator::Multiply => Arithmetic::Multiply,
                    Operator::Divide => Arithmetic::Divide,
                    Operator::Modulo => Arithmetic::Remainder,
                    other => {
                        return Err(refused(
                            "operator_not_allowed",
                            format!("the operator {other} is not on the list of total expressions"),
                            "use + - * / %, comparisons, AND, OR and NOT",
                        ));
                    }
                };
                let left = number(self.at(left, depth + 1)?)?;
                let right = number(self.at(right, depth + 1)?)?;
                let kind = left.kind.join(right.kind).unwrap_or(Kind::Real);
                return Ok(Typed::new(
                    Term::Arithmetic(how, left.boxed(), right.boxed()),
                    kind,
                ));
            }
        };
        compare(
            comparison,
            self.at(left, depth + 1)?,
            self.at(right, depth + 1)?,
        )
    }

    fn case(&self, case: &datafusion::logical_expr::Case, depth: usize) -> Result<Typed> {
        let operand = case
            .expr
            .as_deref()
            .map(|expr| self.at(expr, depth + 1))
            .transpose()?;
        let mut conditions = Vec::new();
        let mut values = Vec::new();
        for (when, then) in &case.when_then_expr {
            conditions.push(match &operand {
                Some(operand) => {
                    compare(
                        Comparison::Equal,
                        self.meter.copy(operand)?,
                        self.at(when, depth + 1)?,
                    )?
                    .term
                }
                None => self.truth(when, depth)?.term,
            });
            values.push(self.at(then, depth + 1)?);
        }
        values.push(match case.else_expr.as_deref() {
            Some(otherwise) => self.at(otherwise, depth + 1)?,
            None => Typed::new(Term::Literal(Cell::Null), Kind::Null),
        });
        let kind = common(&values)?;
        let mut values: Vec<Term> = values.into_iter().map(|value| widen(value, kind)).collect();
        let otherwise = values.pop().unwrap_or(Term::Literal(Cell::Null));
        let branches = conditions.into_iter().zip(values).collect();
        Ok(Typed::new(Term::Case(branches, Box::new(otherwise)), kind))
    }
}

fn shallow(bound: Typed) -> Result<Typed> {
    if bound.term.depth() > DEPTH_MAX {
        return Err(too_deep());
    }
    Ok(bound)
}

fn too_deep() -> Error {
    refused(
        "too_deep",
        format!("an expression nests deeper than {DEPTH_MAX}, columns of subqueries written out"),
        "use IN (…) or CASE instead of long chains, or split the statement",
    )
}

/// A function that is not on the list.
pub(super) fn function_refused(name: &str) -> Error {
    let scalars = super::provider::SCALARS.join(", ");
    let aggregates = super::provider::AGGREGATES.join(", ");
    refused(
        "function_not_allowed",
        format!("the function {name} is not on the list of total functions"),
        format!("use {scalars}, CAST, CASE and arithmetic, and the aggregates {aggregates}"),
    )
}

fn mismatch(what: &str, found: Kind) -> Error {
    sql(
        "type_mismatch",
        format!("{what} is of type {}", found.word()),
        "compare like with like, CAST(x AS …), or give the column a `type` in the catalog",
    )
}

fn number(bound: Typed) -> Result<Typed> {
    if bound.kind.is_number() {
        Ok(bound)
    } else {
        Err(mismatch("an operand of arithmetic", bound.kind))
    }
}

fn not(bound: Typed) -> Typed {
    Typed::new(Term::Not(bound.boxed()), Kind::Bool)
}

fn compare(how: Comparison, left: Typed, right: Typed) -> Result<Typed> {
    if left.kind.join(right.kind).is_none() {
        let what = format!("{} is compared with what", left.kind.word());
        return Err(mismatch(&what, right.kind));
    }
    Ok(Typed::new(
        Term::Compare(how, left.boxed(), right.boxed()),
        Kind::Bool,
    ))
}

fn common(values: &[Typed]) -> Result<Kind> {
    values.iter().try_fold(Kind::Null, |kind, value| {
        kind.join(value.kind)
            .ok_or_else(|| mismatch("one of several values of one expression", value.kind))
    })
}

fn widen(value: Typed, kind: Kind) -> Term {
    if value.kind == Kind::Int && kind == Kind::Real {
        Term::Cast(value.boxed(), kind)
    } else {
        value.term
    }
}

/// A chain of ORs as a tree, so that long lists do not nest deeply.
fn balanced(chain: Term) -> Term {
    let mut items = Vec::new();
    let mut rest = chain;
    while let Term::Or(first, others) = rest {
        items.push(*first);
        rest = *others;
    }
    fn tree(mut items: Vec<Term>) -> Term {
        match items.len() {
            0 => Term::Literal(Cell::Bool(false)),
            1 => items.remove(0),
            many => {
                let right = items.split_off(many / 2);
                Term::Or(Box::new(tree(items)), Box::new(tree(right)))
            }
        }
    }
    tree(items)
}

fn convert(value: Typed, to: &DataType) -> Result<Typed> {
    let kind = match to {
        DataType::Boolean => Kind::Bool,
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => Kind::Int,
        // Not to decimals: they round, and this would not.
        DataType::Float32 | DataType::Float64 => Kind::Real,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Kind::Text,
        other => {
            return Err(refused(
                "cast_not_allowed",
                format!("a cast to {other} is not supported"),
                "cast to BIGINT, DOUBLE, VARCHAR or BOOLEAN; a cast that fails gives NULL",
            ));
        }
    };
    Ok(Typed::new(Term::Cast(value.boxed(), kind), kind))
}

fn literal(value: &ScalarValue) -> Result<Typed> {
    let int = |i: i64| Typed::new(Term::Literal(Cell::Int(i)), Kind::Int);
    let real = |x: f64| Typed::new(Term::Literal(Cell::real(x)), Kind::Real);
    Ok(match value {
        ScalarValue::Boolean(Some(b)) => Typed::new(Term::Literal(Cell::Bool(*b)), Kind::Bool),
        ScalarValue::Int8(Some(i)) => int(i64::from(*i)),
        ScalarValue::Int16(Some(i)) => int(i64::from(*i)),
        ScalarValue::Int32(Some(i)) => int(i64::from(*i)),
        ScalarValue::Int64(Some(i)) => int(*i),
        ScalarValue::UInt64(Some(i)) => i64::try_from(*i).map_or_else(|_| real(*i as f64), int),
        ScalarValue::Float64(Some(x)) => real(*x),
        ScalarValue::Utf8(Some(t))
        | ScalarValue::Utf8View(Some(t))
        | ScalarValue::LargeUtf8(Some(t)) => {
            Typed::new(Term::Literal(Cell::text(t.clone())), Kind::Text)
        }
        null if null.is_null() => Typed::new(Term::Literal(Cell::Null), Kind::Null),
        other => {
            return Err(refused(
                "literal_not_allowed",
                format!("a literal of type {} is not supported", other.data_type()),
                "write numbers, 'text', TRUE, FALSE or NULL; dates as 'YYYY-MM-DD' compare as text",
            ));
        }
    })
}
