//! Below the aggregate: scans, filters, projections and joins, flattened.
//!
//! All joins are inner joins on equal columns (an outer join from a public table only supplies keys, so its extra rows are
//! dropped anyway). So filters and projections commute with them, and a whole tree of these is one list of tables, one list of
//! equal columns, one list of conditions, and columns as terms over the tables' own.

use datafusion::common::{JoinType, NullEquality};
use datafusion::logical_expr::{BinaryExpr, Expr, Join, LogicalPlan, Operator};

use super::expression::{Scope, Typed};
use super::meter::Meter;
use crate::error::{Result, refused};
use crate::table::{Content, Tables};
use crate::term::Term;
use crate::value::Kind;

/// A column of one of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Base {
    /// Which of the relation's tables.
    pub(crate) slot: usize,
    /// Which of its columns.
    pub(crate) column: usize,
}

/// Tables, joined and filtered.
#[derive(Clone, Debug)]
pub(crate) struct Relation {
    /// The tables, by their place in the catalog's.
    pub(crate) slots: Vec<usize>,
    /// The columns of all tables; terms speak of places in this list.
    pub(crate) bases: Vec<Base>,
    /// Pairs of columns that must be equal.
    pub(crate) equal: Vec<(usize, usize)>,
    /// Conditions that must all be true.
    pub(crate) filters: Vec<Term>,
    /// The columns that the statement sees.
    pub(crate) columns: Vec<Typed>,
    /// The slot of a public table from which an outer join goes out: it supplies keys.
    pub(crate) supplier: Option<usize>,
}

/// A table as it is joined to those before it.
pub(crate) struct Joined {
    pub(crate) slot: usize,
    /// Pairs of columns that must be equal: of a table before it, and its own.
    pub(crate) on: Vec<(usize, usize)>,
}

impl Relation {
    /// The other tables in an order in which each is joined to `start` or to one before it. None if one is joined to none.
    pub(crate) fn joined_from(&self, start: usize) -> Option<Vec<Joined>> {
        let slot = |place: usize| self.bases[place].slot;
        let mut reached = vec![start];
        let mut left: Vec<usize> = (0..self.slots.len()).filter(|&at| at != start).collect();
        let mut joined = Vec::new();
        // Each round takes one table.
        while !left.is_empty() {
            let on = |table: usize| -> Vec<(usize, usize)> {
                let pairs = self.equal.iter().flat_map(|&(a, b)| [(a, b), (b, a)]);
                pairs
                    .filter(|&(a, b)| reached.contains(&slot(a)) && slot(b) == table)
                    .collect()
            };
            let next = left.iter().position(|&table| !on(table).is_empty())?;
            let table = left.remove(next);
            joined.push(Joined {
                slot: table,
                on: on(table),
            });
            reached.push(table);
        }
        Some(joined)
    }

    fn has_private(&self, tables: &Tables) -> bool {
        self.slots
            .iter()
            .any(|&table| matches!(tables.table(table).content, Content::Private { .. }))
    }
}

/// Flattens a plan, or refuses a node of it by name.
pub(super) fn flatten(plan: &LogicalPlan, tables: &Tables, meter: &Meter) -> Result<Relation> {
    match plan {
        LogicalPlan::TableScan(scan) => {
            let found = tables.position(scan.table_name.table());
            let Some(table) = found.filter(|_| {
                scan.projection.is_none() && scan.filters.is_empty() && scan.fetch.is_none()
            }) else {
                return Err(node_refused("this table scan"));
            };
            let columns = &tables.table(table).columns;
            Ok(Relation {
                slots: vec![table],
                bases: (0..columns.len())
                    .map(|column| Base { slot: 0, column })
                    .collect(),
                equal: vec![],
                filters: vec![],
                columns: columns
                    .iter()
                    .enumerate()
                    .map(|(at, (_, column))| Typed {
                        term: Term::Column(at),
                        kind: column.kind,
                    })
                    .collect(),
                supplier: None,
            })
        }
        LogicalPlan::SubqueryAlias(alias) => flatten(&alias.input, tables, meter),
        LogicalPlan::Filter(filter) => {
            let mut relation = flatten(&filter.input, tables, meter)?;
            let scope = Scope {
                schema: filter.input.schema(),
                columns: &relation.columns,
                meter,
            };
            let condition = scope.condition(&filter.predicate)?;
            relation.filters.push(condition);
            Ok(relation)
        }
        LogicalPlan::Projection(projection) => {
            let mut relation = flatten(&projection.input, tables, meter)?;
            let scope = Scope {
                schema: projection.input.schema(),
                columns: &relation.columns,
                meter,
            };
            let columns = projection
                .expr
                .iter()
                .map(|expr| scope.bind(expr))
                .collect::<Result<_>>()?;
            relation.columns = columns;
            Ok(relation)
        }
        LogicalPlan::Join(join) => flatten_join(join, tables, meter),
        LogicalPlan::Sort(_) | LogicalPlan::Limit(_) => Err(refused(
            "limit_before_aggregate",
            "ORDER BY and LIMIT on raw rows let one person's row push out another's",
            "put ORDER BY and LIMIT after GROUP BY, where they apply to the noisy answer",
        )),
        LogicalPlan::Distinct(_) => Err(refused(
            "distinct",
            "DISTINCT on raw rows is not supported",
            "use GROUP BY, or COUNT(DISTINCT unit)",
        )),
        LogicalPlan::Aggregate(_) => Err(refused(
            "nested_aggregate",
            "an aggregate of an aggregate is not supported yet",
            "aggregate once; arithmetic, HAVING, ORDER BY and LIMIT may follow",
        )),
        LogicalPlan::Window(_) => Err(window_refused()),
        other => Err(node_refused(&node_name(other))),
    }
}

fn flatten_join(join: &Join, tables: &Tables, meter: &Meter) -> Result<Relation> {
    let (left, right) = (
        flatten(&join.left, tables, meter)?,
        flatten(&join.right, tables, meter)?,
    );
    let private = (left.has_private(tables), right.has_private(tables));
    if private == (true, true) {
        return Err(refused(
            "two_private_tables",
            "a join of two private tables is not supported yet",
            "join one private table with public ones",
        ));
    }
    if join.null_equality != NullEquality::NullEqualsNothing || join.null_aware {
        return Err(node_refused("a join that equates NULLs"));
    }
    let (slots_left, columns_left) = (left.slots.len(), left.bases.len());
    let plain = |side: &Relation| side.slots.len() == 1 && side.filters.is_empty();
    let supplier = match (join.join_type, private) {
        (JoinType::Inner, _) => left
            .supplier
            .or(right.supplier.map(|slot| slot + slots_left)),
        (JoinType::Left, (false, true)) if plain(&left) => Some(0),
        (JoinType::Right, (true, false)) if plain(&right) => Some(slots_left),
        (JoinType::Left | JoinType::Right, _) => {
            return Err(refused(
                "outer_join",
                "an outer join may only go out from one public table, which supplies the keys",
                "write FROM public_table LEFT JOIN private_table ON …, or use JOIN",
            ));
        }
        (other, _) => {
            return Err(refused(
                "join_type",
                format!("a {other} join is not supported"),
                "use JOIN … ON a.x = b.y, or LEFT JOIN from a public table",
            ));
        }
    };
    let shift = |term: Term| term.move_columns(&|column| column + columns_left);
    let mut columns = left.columns;
    columns.extend(right.columns.into_iter().map(|typed| Typed {
        term: shift(typed.term),
        kind: typed.kind,
    }));
    let mut pairs: Vec<(Expr, Expr)> = join.on.clone();
    if let Some(filter) = &join.filter {
        conjuncts(filter, &mut pairs)?;
    }
    if pairs.is_empty() {
        return Err(join_condition());
    }
    let mut equal = left.equal;
    equal.extend(
        right
            .equal
            .iter()
            .map(|&(a, b)| (a + columns_left, b + columns_left)),
    );
    let scope = Scope {
        schema: &join.schema,
        columns: &columns,
        meter,
    };
    for (one, other) in &pairs {
        let (one, other) = (scope.bind(one)?, scope.bind(other)?);
        let (&Term::Column(a), &Term::Column(b)) = (&one.term, &other.term) else {
            return Err(join_condition());
        };
        let (a, b) = if a < b { (a, b) } else { (b, a) };
        // Floats are left out: equality of computed values is rarely meant.
        let kinds =
            one.kind == other.kind && matches!(one.kind, Kind::Int | Kind::Text | Kind::Bool);
        if !(a < columns_left && b >= columns_left && kinds) {
            return Err(join_condition());
        }
        equal.push((a, b));
    }
    let mut slots = left.slots;
    slots.extend(right.slots);
    let mut bases = left.bases;
    bases.extend(right.bases.into_iter().map(|base| Base {
        slot: base.slot + slots_left,
        ..base
    }));
    let mut filters = left.filters;
    filters.extend(right.filters.into_iter().map(shift));
    Ok(Relation {
        slots,
        bases,
        equal,
        filters,
        columns,
        supplier,
    })
}

fn conjuncts(expr: &Expr, into: &mut Vec<(Expr, Expr)>) -> Result<()> {
    match expr {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::And,
            right,
        }) => {
            conjuncts(left, into)?;
            conjuncts(right, into)
        }
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::Eq,
            right,
        }) => {
            into.push(((**left).clone(), (**right).clone()));
            Ok(())
        }
        _ => Err(join_condition()),
    }
}

fn join_condition() -> crate::Error {
    refused(
        "join_condition",
        "a join must equate columns of both sides, of the same type (int, text or bool)",
        "write JOIN … ON a.x = b.y [AND …]; put other conditions into WHERE; give both columns the same `type` in the catalog",
    )
}

/// A node that is not on the list.
pub(super) fn node_refused(name: &str) -> crate::Error {
    refused(
        "node_not_allowed",
        format!("{name} is not among the operations that are supported"),
        "write SELECT keys, aggregates FROM table [JOIN …] [WHERE …] [GROUP BY keys] [HAVING …] [ORDER BY …] [LIMIT …]",
    )
}

/// OVER, in whatever function.
pub(super) fn window_refused() -> crate::Error {
    refused(
        "window_function",
        "window functions (… OVER …) are not supported",
        "use COUNT, SUM or AVG with GROUP BY; ranks and running sums can be computed from the answer, at no cost",
    )
}

/// The name of a node, for a refusal.
pub(super) fn node_name(plan: &LogicalPlan) -> String {
    let text = plan.display().to_string();
    text.split([':', ' ', '('])
        .next()
        .unwrap_or("this")
        .to_owned()
}
