//! Threads on which statements are planned and run, a few for all callers.
//!
//! A thread of its own for each statement would be simpler; but hundreds of callers would then have hundreds of stacks made
//! and thrown away at once, and with them most of the machine's time. Callers wait for their turn instead. There are threads for
//! planning and others for running, so that long executions never keep prices waiting.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use rayon_core::{ThreadPool, ThreadPoolBuilder};

/// Made on first use.
#[derive(Debug)]
pub(crate) struct Workers {
    threads: OnceLock<ThreadPool>,
    per_core: usize,
    stack_bytes: usize,
}

impl Workers {
    /// So many threads for each processor, with stacks of this size. Only what is used of a stack is taken from the system.
    pub(crate) fn new(per_core: usize, stack_bytes: usize) -> Self {
        Self {
            threads: OnceLock::new(),
            per_core,
            stack_bytes,
        }
    }

    /// Runs this when it is its turn, and waits for it. None if it panicked, or if the system has no threads.
    pub(crate) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Option<T> {
        let threads = self.started()?;
        // What was half done by a panic is never seen again.
        let turn = || threads.install(|| catch_unwind(AssertUnwindSafe(work)));
        if rayon_core::current_thread_index().is_none() {
            return turn().ok();
        }
        // A caller's own pool would let its thread take up another question meanwhile, which may wait for this one: so it
        // waits in the plain way.
        std::thread::scope(|scope| {
            let waiting = std::thread::Builder::new().spawn_scoped(scope, turn).ok()?;
            waiting.join().ok()?.ok()
        })
    }

    /// The threads. If the system has none now, it may have some for the next caller.
    pub(crate) fn started(&self) -> Option<&ThreadPool> {
        if let Some(threads) = self.threads.get() {
            return Some(threads);
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let started = ThreadPoolBuilder::new()
            .num_threads(cores * self.per_core)
            .stack_size(self.stack_bytes)
            .build();
        let started = started.ok()?;
        Some(self.threads.get_or_init(|| started))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn many_callers_share_few_threads() {
        let workers = Workers::new(1, 1 << 20);
        let (busy, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = || {
            let now = busy.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(now, Ordering::SeqCst);
            std::thread::yield_now();
            busy.fetch_sub(1, Ordering::SeqCst);
        };
        std::thread::scope(|scope| {
            for _ in 0..64 {
                scope.spawn(|| (0..20).for_each(|_| workers.run(work).expect("no panic")));
            }
        });
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let most = most.into_inner();
        assert!((1..=cores).contains(&most), "{most}");
    }

    /// Questions that wait for each other in turn, asked from one thread of a pool of the caller's own: taken up one inside the other they would
    /// wait for ever.
    #[test]
    fn callers_in_a_pool_of_their_own_take_up_nothing_else_meanwhile() {
        let workers = Workers::new(1, 1 << 20);
        let turn = std::sync::Mutex::new(());
        let callers = ThreadPoolBuilder::new().num_threads(1).build();
        callers.expect("a thread").scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|_| {
                    let _turn = turn.try_lock().expect("nobody else on this thread");
                    workers.run(std::thread::yield_now).expect("no panic");
                });
            }
        });
    }

    #[test]
    fn a_panic_is_no_result_and_harms_nobody() {
        let workers = Workers::new(1, 1 << 20);
        for round in 0..50 {
            let found = workers.run(|| {
                assert!(round % 2 == 0, "odd");
                round
            });
            assert_eq!(found, (round % 2 == 0).then_some(round));
        }
    }
}
