//! The engine of some tables: threads and a planner that are made once, on first use.
//!
//! None of the engine's optimisers that move, merge or drop parts of a plan are there: the plans of [`crate::rewrite`] are
//! written as they are to run. What is left decides how to join, and puts in the sorts and exchanges that operators ask for;
//! the last rule, the engine's own, checks that they are there. Then the physical plan, the very one that runs, is shown to a
//! check of the caller's.

use std::sync::{Arc, OnceLock};

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::join_selection::JoinSelection;
use datafusion::physical_optimizer::sanity_checker::SanityCheckPlan;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionConfig;
use tokio::runtime::{Builder, Runtime};

mod exchange;

use exchange::Exchange;

/// Made on first use, so that who only prices statements starts no threads.
#[derive(Default)]
pub(crate) struct Engine(OnceLock<Option<Started>>);

struct Started {
    /// Taken out when it is dropped, and at no other time.
    runtime: Option<Runtime>,
    state: SessionState,
}

impl Engine {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Runs a plan whose physical form passes the check. An error or a panic is none, whatever it was.
    pub(crate) fn run(
        &self,
        plan: &LogicalPlan,
        check: impl FnOnce(&dyn ExecutionPlan) -> bool + Send,
    ) -> Option<Vec<RecordBatch>> {
        let started = self.0.get_or_init(Started::new).as_ref()?;
        let runtime = started.runtime.as_ref()?;
        // On a thread of its own: the caller's may belong to another runtime, which must not be blocked on; and a panic ends there.
        let work = || {
            runtime.block_on(async {
                let physical = started.plan(plan).await?;
                if !check(physical.as_ref()) {
                    return None;
                }
                collect(physical, started.state.task_ctx()).await.ok()
            })
        };
        std::thread::scope(|scope| scope.spawn(work).join().ok().flatten())
    }

    /// The physical plan alone.
    #[cfg(test)]
    pub(crate) fn physical(&self, plan: &LogicalPlan) -> Option<Arc<dyn ExecutionPlan>> {
        let started = self.0.get_or_init(Started::new).as_ref()?;
        started.runtime.as_ref()?.block_on(started.plan(plan))
    }
}

impl Started {
    fn new() -> Option<Self> {
        let runtime = Builder::new_multi_thread().enable_all().build().ok()?;
        let rules: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> = vec![
            Arc::new(JoinSelection::new()),
            Arc::new(Exchange),
            Arc::new(SanityCheckPlan::new()),
        ];
        let state = SessionStateBuilder::new()
            .with_config(SessionConfig::new())
            .with_analyzer_rules(vec![])
            .with_optimizer_rules(vec![])
            .with_physical_optimizer_rules(rules)
            .build();
        Some(Self {
            runtime: Some(runtime),
            state,
        })
    }

    async fn plan(&self, plan: &LogicalPlan) -> Option<Arc<dyn ExecutionPlan>> {
        let planner = self.state.query_planner();
        planner.create_physical_plan(plan, &self.state).await.ok()
    }
}

impl Drop for Started {
    /// Waiting for threads is not allowed everywhere that tables can be dropped, and nothing is left to wait for.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Engine")
    }
}
