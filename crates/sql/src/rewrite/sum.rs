//! Integer sums, first for each unit and group, then for each group. Integers of 128 bits: order and partitioning cannot
//! change a sum, and none can overflow.

use datafusion::common::Result;
use datafusion::functions_aggregate::expr_fn::{count, sum};
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, col, lit};

use super::lower::{KEY, UNIT, UNITS, part_names};

/// One row for each unit and group.
pub(super) fn sum_of_units(plan: LogicalPlanBuilder, parts: usize) -> Result<LogicalPlanBuilder> {
    plan.aggregate([col(UNIT), col(KEY)], sums(parts))
}

/// One row for each group, with the number of its units.
pub(super) fn sum_of_groups(plan: LogicalPlanBuilder, parts: usize) -> Result<LogicalPlanBuilder> {
    let mut all = sums(parts);
    all.push(count(lit(1_i64)).alias(UNITS));
    plan.aggregate([col(KEY)], all)
}

fn sums(parts: usize) -> Vec<Expr> {
    part_names(parts)
        .map(|name| sum(col(&name)).alias(name))
        .collect()
}
