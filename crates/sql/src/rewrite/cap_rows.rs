//! At most so many rows of a unit in a group.

use datafusion::common::Result;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{Expr, ExprFunctionExt, LogicalPlanBuilder, SortExpr, col, lit};

use super::keyed_hash::{HashKey, keyed_hash};
use super::lower::{KEY, UNIT, part_names};

/// Keeps `rows` rows of each unit in each group, chosen by the hash of what they add; equal rows are interchangeable.
pub(super) fn cap_rows(
    plan: LogicalPlanBuilder,
    rows: u32,
    parts: usize,
    key: &HashKey,
) -> Result<LogicalPlanBuilder> {
    let values: Vec<Expr> = part_names(parts).map(col).collect();
    let hashed = [vec![col(UNIT), col(KEY)], values.clone()].concat();
    let mut order: Vec<SortExpr> =
        vec![keyed_hash(key, "whit_group_rows", hashed).sort(true, false)];
    order.extend(values.into_iter().map(|value| value.sort(true, false)));
    let rank = row_number()
        .partition_by(vec![col(UNIT), col(KEY)])
        .order_by(order)
        .build()?;
    plan.window([rank.alias("row_rank")])?
        .filter(col("row_rank").lt_eq(lit(u64::from(rows))))
}
