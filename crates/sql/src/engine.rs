//! The engine of some tables: threads and a planner that are made once, on first use.
//!
//! None of the engine's optimisers that move, merge or drop parts of a plan are there: the plans of [`crate::rewrite`] are
//! written as they are to run. What is left decides how to join, and puts in the sorts and exchanges that operators ask for;
//! the last rule, the engine's own, checks that they are there. Then the physical plan, the very one that runs, is shown to a
//! check of the caller's.

use std::panic::catch_unwind;
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

use crate::workers::Workers;
use exchange::Exchange;

/// More than one, since who waits for its rows leaves the processor to others.
const EXECUTIONS_PER_CORE: usize = 2;
const STACK_BYTES: usize = 8 << 20;

/// Made on first use, so that who only prices statements starts no threads.
pub(crate) struct Engine {
    started: OnceLock<Started>,
    workers: Workers,
}

struct Started {
    /// Taken out when it is dropped, and at no other time.
    runtime: Option<Runtime>,
    /// Plans for one thread, and for all of them.
    narrow: SessionState,
    wide: SessionState,
}

/// How many threads one plan uses. It decides how long an answer takes, and nothing else: sums are integers, and what the caps keep is
/// decided by keyed hashes, so that the same rows are kept and the same numbers come out whichever thread has a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// One, for tables whose rows are summed up sooner than other threads wake up.
    Narrow,
    /// All there are.
    Wide,
}

impl Engine {
    pub(crate) fn new() -> Self {
        Self {
            started: OnceLock::new(),
            workers: Workers::new(EXECUTIONS_PER_CORE, STACK_BYTES),
        }
    }

    /// Makes all threads that running a plan needs. None if the system has too few now.
    pub(crate) fn start(&self) -> Option<()> {
        self.workers.started()?;
        self.started().map(|_| ())
    }

    fn started(&self) -> Option<&Started> {
        if let Some(started) = self.started.get() {
            return Some(started);
        }
        // The runtime panics when it gets no threads.
        let started = catch_unwind(Started::new).ok()??;
        Some(self.started.get_or_init(|| started))
    }

    /// Runs a plan whose physical form passes the check. An error or a panic is none, whatever it was.
    pub(crate) fn run(
        &self,
        plan: &LogicalPlan,
        width: Width,
        check: impl FnOnce(&dyn ExecutionPlan) -> bool + Send,
    ) -> Option<Vec<RecordBatch>> {
        let started = self.started()?;
        // Not on the caller's thread: it may belong to another runtime, which must not be blocked on; and a panic ends there.
        let work = || {
            let state = started.state(width);
            let run = async {
                let physical = planned(plan, state).await?;
                if !check(physical.as_ref()) {
                    return None;
                }
                collect(physical, state.task_ctx()).await.ok()
            };
            match width {
                Width::Narrow => Builder::new_current_thread().build().ok()?.block_on(run),
                Width::Wide => started.runtime.as_ref()?.block_on(run),
            }
        };
        self.workers.run(work).flatten()
    }

    /// The physical plan alone.
    #[cfg(test)]
    pub(crate) fn physical(
        &self,
        plan: &LogicalPlan,
        width: Width,
    ) -> Option<Arc<dyn ExecutionPlan>> {
        let started = self.started()?;
        let state = started.state(width);
        started.runtime.as_ref()?.block_on(planned(plan, state))
    }
}

impl Started {
    fn new() -> Option<Self> {
        let runtime = Builder::new_multi_thread().enable_all().build().ok()?;
        Some(Self {
            runtime: Some(runtime),
            narrow: state(
                SessionConfig::new().with_target_partitions(1),
                Width::Narrow,
            ),
            wide: state(SessionConfig::new(), Width::Wide),
        })
    }

    fn state(&self, width: Width) -> &SessionState {
        match width {
            Width::Narrow => &self.narrow,
            Width::Wide => &self.wide,
        }
    }
}

/// Whoever reads a file can tell the width from the configuration.
fn state(config: SessionConfig, width: Width) -> SessionState {
    let rules: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> = vec![
        Arc::new(JoinSelection::new()),
        Arc::new(Exchange),
        Arc::new(SanityCheckPlan::new()),
    ];
    SessionStateBuilder::new()
        .with_config(config.with_extension(Arc::new(width)))
        .with_analyzer_rules(vec![])
        .with_optimizer_rules(vec![])
        .with_physical_optimizer_rules(rules)
        .build()
}

async fn planned(plan: &LogicalPlan, state: &SessionState) -> Option<Arc<dyn ExecutionPlan>> {
    let planner = state.query_planner();
    planner.create_physical_plan(plan, state).await.ok()
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
