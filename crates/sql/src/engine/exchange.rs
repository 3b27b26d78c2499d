//! The exchanges and sorts that operators ask for, put in as they ask and nothing else: the engine's own rule weighs every way
//! to order a plan, which takes longer than a small statement itself.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::config::ConfigOptions;
use datafusion::physical_expr::{Distribution, LexOrdering, Partitioning};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::streaming::StreamingTableExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

type Plan = Arc<dyn ExecutionPlan>;

/// Rows go where operators need them, in the order they need.
#[derive(Debug)]
pub(super) struct Exchange;

impl PhysicalOptimizerRule for Exchange {
    fn optimize(&self, plan: Plan, config: &ConfigOptions) -> Result<Plan> {
        ready(plan, config.execution.target_partitions)
    }

    fn name(&self) -> &str {
        "whit_exchange"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The node over inputs that are as it needs them. From the leaves up, so that a node is made anew once or twice: that is most of the
/// work.
fn ready(mut node: Plan, partitions: usize) -> Result<Plan> {
    if node.is::<StreamingTableExec>() && partitions > 1 {
        // One thread reads the file, all compute.
        return repartition(node, Partitioning::RoundRobinBatch(partitions));
    }
    let children = node.children().into_iter().cloned();
    let below = children.map(|child| ready(child, partitions));
    let mut inputs = below.collect::<Result<Vec<Plan>>>()?;
    // Rows that meet in a join must be in the same of equally many places, also where one place would do for one side.
    let together = inputs.len() > 1;
    // What a node needs may change with what it stands on. Whether it has it in the end, the engine's own check says.
    for _ in 0..2 {
        let places = node.input_distribution_requirements().into_per_child();
        let orders = node.required_input_ordering();
        let each = inputs.into_iter().zip(places).zip(orders);
        let each = each.map(|((input, place), order)| {
            let input = placed(input, place, partitions, together)?;
            Ok(match order {
                Some(order) => sorted(input, order.into_single().into()),
                None => input,
            })
        });
        inputs = each.collect::<Result<_>>()?;
        let before = node.children();
        if (inputs.iter().zip(before)).all(|(now, before)| Arc::ptr_eq(now, before)) {
            break;
        }
        let anew = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        node = node.replace_children(inputs.clone(), anew)?;
    }
    Ok(node)
}

fn placed(input: Plan, place: Distribution, partitions: usize, together: bool) -> Result<Plan> {
    let there = input.output_partitioning();
    let known = input.equivalence_properties();
    let apart = together && matches!(place, Distribution::KeyPartitioned(_));
    let enough = !apart || there.partition_count() == partitions;
    if enough && there.satisfaction(&place, known, false).is_satisfied() {
        return Ok(input);
    }
    Ok(match place {
        Distribution::KeyPartitioned(by) if partitions > 1 => {
            repartition(input, Partitioning::Hash(by, partitions))?
        }
        _ => Arc::new(CoalescePartitionsExec::new(input)),
    })
}

fn repartition(input: Plan, how: Partitioning) -> Result<Plan> {
    Ok(Arc::new(RepartitionExec::try_new(input, how)?))
}

/// By a sort, also where the engine would think that rows are in order by themselves: the caps rest on it.
fn sorted(input: Plan, by: LexOrdering) -> Plan {
    let known = input.downcast_ref::<SortExec>();
    if known.is_some_and(|sort| *sort.expr() == by) {
        return input;
    }
    Arc::new(SortExec::new(by, input).with_preserve_partitioning(true))
}
