//! At most so many rows of a unit altogether: the cap that its table declares, enforced and not trusted.

use datafusion::common::Result;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{Expr, ExprFunctionExt, LogicalPlanBuilder, SortExpr, col, lit};

use super::keyed_hash::{HashKey, keyed_hash};
use super::lower::{KEY, UNIT, part_names};

/// Keeps `rows` rows of each unit, chosen by the hash of what they add. Rows that add the same to the same group are
/// interchangeable, so it does not matter which of them stay.
pub(super) fn cap_unit(
    plan: LogicalPlanBuilder,
    rows: u32,
    parts: usize,
    key: &HashKey,
) -> Result<LogicalPlanBuilder> {
    let mut values: Vec<Expr> = vec![col(UNIT), col(KEY)];
    values.extend(part_names(parts).map(col));
    let mut order: Vec<SortExpr> =
        vec![keyed_hash(key, "whit_unit_rows", values.clone()).sort(true, false)];
    order.extend(
        values
            .into_iter()
            .skip(1)
            .map(|value| value.sort(true, false)),
    );
    let rank = row_number()
        .partition_by(vec![col(UNIT)])
        .order_by(order)
        .build()?;
    plan.window([rank.alias("unit_rank")])?
        .filter(col("unit_rank").lt_eq(lit(u64::from(rows))))
}
