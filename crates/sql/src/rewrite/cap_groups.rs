//! At most so many groups of a unit.

use datafusion::common::Result;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{ExprFunctionExt, LogicalPlanBuilder, col, lit};

use super::keyed_hash::{HashKey, keyed_hash};
use super::lower::{KEY, UNIT};

/// Keeps `groups` groups of each unit, the first in the order of the keyed hash of (unit, key). The plan has one row for each
/// unit and group, so ranks are groups.
pub(super) fn cap_groups(
    plan: LogicalPlanBuilder,
    groups: u32,
    key: &HashKey,
) -> Result<LogicalPlanBuilder> {
    let hash = keyed_hash(key, "whit_groups", vec![col(UNIT), col(KEY)]);
    let order = vec![hash.sort(true, false), col(KEY).sort(true, false)];
    let rank = row_number()
        .partition_by(vec![col(UNIT)])
        .order_by(order)
        .build()?;
    plan.window([rank.alias("group_rank")])?
        .filter(col("group_rank").lt_eq(lit(u64::from(groups))))
}
