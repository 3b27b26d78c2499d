//! The exchanges and sorts that operators ask for, put in as they ask and nothing else: the engine's own rule weighs every way
//! to order a plan, which takes longer than a small statement itself.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
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
        let partitions = config.execution.target_partitions;
        let done = plan.transform_up(|node| {
            if node.is::<StreamingTableExec>() && partitions > 1 {
                // One thread reads the file, all compute.
                return Ok(Transformed::yes(repartition(
                    node,
                    Partitioning::RoundRobinBatch(partitions),
                )?));
            }
            let inputs: Vec<Plan> = node.children().into_iter().cloned().collect();
            if inputs.is_empty() {
                return Ok(Transformed::no(node));
            }
            let places = node.input_distribution_requirements().into_per_child();
            let orders = node.required_input_ordering();
            let ready = (inputs.iter().zip(places).zip(orders)).map(|((input, place), order)| {
                let input = placed(Arc::clone(input), place, partitions)?;
                Ok(match order {
                    Some(order) => sorted(input, order.into_single().into()),
                    None => input,
                })
            });
            let ready = ready.collect::<Result<Vec<_>>>()?;
            // Making a node anew is most of the work.
            if ready
                .iter()
                .zip(&inputs)
                .all(|(now, before)| Arc::ptr_eq(now, before))
            {
                return Ok(Transformed::no(node));
            }
            let anew = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            Ok(Transformed::yes(node.replace_children(ready, anew)?))
        });
        Ok(done?.data)
    }

    fn name(&self) -> &str {
        "whit_exchange"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn placed(input: Plan, place: Distribution, partitions: usize) -> Result<Plan> {
    let there = input.output_partitioning();
    let known = input.equivalence_properties();
    if there.satisfaction(&place, known, false).is_satisfied() {
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

fn sorted(input: Plan, by: LexOrdering) -> Plan {
    Arc::new(SortExec::new(by, input).with_preserve_partitioning(true))
}
