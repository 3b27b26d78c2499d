//! The caps once more, on the plan that is about to run: what was written into it is read out of it.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};

use crate::analyze::Contribution;
use crate::error::{Error, Result};

/// Walks down from the last sum: groups are capped, then rows in groups, then rows of units where that was declared.
pub(super) fn verify(plan: &LogicalPlan, contribution: Contribution) -> Result<()> {
    let mut expected = vec![
        ("group_rank", contribution.groups),
        ("row_rank", contribution.rows),
    ];
    expected.extend(contribution.total.map(|total| ("unit_rank", total)));
    let mut found = Vec::new();
    let mut node = plan;
    // A chain of single inputs down to the joins.
    while let [input] = node.inputs().as_slice() {
        if let LogicalPlan::Filter(filter) = node
            && let Some(cap) = cap(&filter.predicate)
        {
            if !matches!(input, LogicalPlan::Window(_)) {
                return Err(Error::Execution);
            }
            found.push(cap);
        }
        node = *input;
    }
    let same = found.len() == expected.len()
        && found
            .iter()
            .zip(&expected)
            .all(|(found, expected)| found.0 == expected.0 && found.1 == u64::from(expected.1));
    if same { Ok(()) } else { Err(Error::Execution) }
}

/// `rank <= n`.
fn cap(predicate: &Expr) -> Option<(String, u64)> {
    let Expr::BinaryExpr(BinaryExpr {
        left,
        op: Operator::LtEq,
        right,
    }) = predicate
    else {
        return None;
    };
    match (left.as_ref(), right.as_ref()) {
        (Expr::Column(column), Expr::Literal(ScalarValue::UInt64(Some(cap)), _)) => {
            Some((column.name.clone(), *cap))
        }
        _ => None,
    }
}
