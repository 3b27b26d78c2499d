//! Threads that work side by side and are kept for the next piece of work: to start one takes as long as thousands of draws.
//!
//! What is done on them must not depend on how many there are. A system without threads to spare gives none, and the caller does it all.
//! They do not survive a fork: a child process that wants several threads starts a program of its own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use rayon_core::{ThreadPool, ThreadPoolBuilder, Yield};

/// No more than this share the items of [`each`].
const THREADS_MAX: usize = 256;

/// How often a caller looks whether the others are done before it falls asleep: to be woken takes longer than most of them need.
const PATIENCE: usize = 1 << 10;

/// One less than there are processors, since the caller works, too. They are started once, or never if the system has none then.
fn threads() -> Option<&'static ThreadPool> {
    static THREADS: OnceLock<Option<ThreadPool>> = OnceLock::new();
    let started = THREADS.get_or_init(|| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let builder = ThreadPoolBuilder::new().num_threads(cores.clamp(2, THREADS_MAX) - 1);
        builder.build().ok()
    });
    started.as_ref()
}

/// Calls `work` with each of these at the same time, as far as there are processors: the first on the caller's thread, the others on
/// threads that all callers share. Returns when all are done. A panic of one is a panic of the caller.
pub fn side_by_side<W: Send>(workers: impl IntoIterator<Item = W>, work: impl Fn(W) + Sync) {
    let mut workers = workers.into_iter();
    let (Some(first), second) = (workers.next(), workers.next()) else {
        return;
    };
    let mut others = second.into_iter().chain(workers).peekable();
    // A thread of a pool would take up other work of that pool while it waits, and hold for as long what its own work holds: so it does
    // all of it.
    let alone = others.peek().is_none() || rayon_core::current_thread_index().is_some();
    let Some(threads) = (!alone).then(threads).flatten() else {
        work(first);
        return others.for_each(work);
    };
    let (work, left) = (&work, &AtomicUsize::new(0));
    threads.in_place_scope(|scope| {
        for worker in others {
            left.fetch_add(1, Ordering::Relaxed);
            scope.spawn(move |_| {
                work(worker);
                left.fetch_sub(1, Ordering::Relaxed);
            });
        }
        work(first);
        // Whoever waits there falls asleep at once.
        for _ in 0..PATIENCE {
            if left.load(Ordering::Relaxed) == 0 {
                break;
            }
            std::thread::yield_now();
        }
    });
}

/// Calls `work` and keeps as many of the shared threads from falling asleep until it returns, and a moment longer, in case it is called again: to
/// wake one takes as long as a part of a small step of training. For work that calls for threads again and again. In between they are busy, and
/// give way to whoever else wants their processors.
pub fn awake<T>(wanted: usize, work: impl FnOnce() -> T) -> T {
    let alone = wanted < 2 || rayon_core::current_thread_index().is_some();
    let Some(threads) = (!alone).then(threads).flatten() else {
        return work();
    };
    let _call = Counted::one_more(&CALLS);
    let wanted = (wanted - 1).min(threads.current_num_threads());
    // One that is about to leave counts, too: then threads may fall asleep in this call, and not in the next.
    let one_more = |keepers: usize| (keepers < wanted).then_some(keepers + 1);
    while KEEPERS
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more)
        .is_ok()
    {
        threads.spawn(keep);
    }
    work()
}

/// Calls of [`awake`] that have not returned.
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// Threads that are kept awake. Never more than there are, so that keepers which find each other while they yield do not pile up.
static KEEPERS: AtomicUsize = AtomicUsize::new(0);

/// How often a keeper yields without a call before it leaves: about a millisecond.
const LINGER: usize = 1 << 11;

/// Takes up whatever work there is until nobody has called for a while.
fn keep() {
    let _keeper = Counted(&KEEPERS);
    let mut idle = 0;
    while idle < LINGER {
        idle = match CALLS.load(Ordering::Relaxed) {
            0 => idle + 1,
            _ => 0,
        };
        if rayon_core::yield_now() != Some(Yield::Executed) {
            std::thread::yield_now();
        }
    }
}

/// One of those that a number counts, until it is dropped: also when work panics.
struct Counted(&'static AtomicUsize);

impl Counted {
    fn one_more(number: &'static AtomicUsize) -> Self {
        number.fetch_add(1, Ordering::Relaxed);
        Self(number)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Calls `work` once with each item, on at most so many threads, of which each begins with a part of the items that follow each other. See
/// [`share`].
pub fn each<T: Send>(threads: usize, items: impl IntoIterator<Item = T>, work: impl Fn(T) + Sync) {
    let parts = even(items, threads.clamp(1, THREADS_MAX));
    share(0..parts.len(), parts, |_, item| work(item));
}

/// Items in parts of about the same size, each of items that follow each other: at most so many, and none that is empty.
pub fn even<T>(items: impl IntoIterator<Item = T>, parts: usize) -> Vec<Vec<T>> {
    let mut items: Vec<T> = items.into_iter().collect();
    let (count, parts) = (items.len(), parts.min(items.len()));
    let cuts = (0..parts).rev().map(|part| part * count / parts);
    let mut even: Vec<_> = cuts.map(|cut| items.split_off(cut)).collect();
    even.reverse();
    even
}

/// Calls `work` once with each item of all parts, and with one of the workers. A worker begins with the part of its own number, and when that is
/// done it takes from the ends of the others: so whoever does the same work again finds in its caches what it left there. The last item of
/// a part is left to its own worker, who is about to take it.
pub fn share<W: Send, T: Send>(
    workers: impl IntoIterator<Item = W>,
    parts: Vec<Vec<T>>,
    work: impl Fn(&mut W, T) + Sync,
) {
    let workers: Vec<W> = workers.into_iter().collect();
    let (count, owned) = (parts.len(), workers.len());
    let parts = parts.into_iter().map(|part| Mutex::new(part.into_iter()));
    let parts: Vec<_> = parts.collect();
    let lock = |part: usize| parts[part].lock().unwrap_or_else(PoisonError::into_inner);
    let other = |part: usize| {
        let mut left = lock(part);
        let takes = left.len() > usize::from(part < owned);
        if takes { left.next_back() } else { None }
    };
    let next = |own: usize| {
        let mine = if own < count { lock(own).next() } else { None };
        mine.or_else(|| (1..=count).find_map(|by| other((own + by) % count)))
    };
    side_by_side(workers.into_iter().enumerate(), |(own, mut worker)| {
        while let Some(item) = next(own) {
            work(&mut worker, item);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn every_item_is_worked_on_once() {
        for threads in [0, 1, 2, 7, 40] {
            let mut items = vec![0_u32; 100];
            each(threads, &mut items, |item| *item += 1);
            assert!(items == [1; 100]);
            each(threads, Vec::<u32>::new(), |_| panic!("there is none"));
            let sum = AtomicU64::new(0);
            side_by_side(1..=threads as u64, |worker| {
                sum.fetch_add(worker, Ordering::Relaxed);
            });
            let expected: u64 = (1..=threads as u64).sum();
            assert_eq!(sum.into_inner(), expected);
        }
    }

    #[test]
    fn parts_are_even_and_every_item_is_taken_whoever_is_there() {
        assert_eq!(even(0..5, 2), [vec![0, 1], vec![2, 3, 4]]);
        assert_eq!(even(0..2, 7), [[0], [1]]);
        assert!(even(0..0, 3).is_empty());
        for (workers, parts) in [(1, 3), (2, 2), (5, 2), (3, 3), (2, 0)] {
            for sizes in [[0, 9, 1], [1, 1, 1], [20, 0, 0]] {
                let parts: Vec<Vec<u64>> =
                    sizes[..parts].iter().map(|&n| (1..=n).collect()).collect();
                let expected: u64 = parts.iter().flatten().sum();
                let sum = AtomicU64::new(0);
                share(0..workers, parts, |_, item| {
                    sum.fetch_add(item, Ordering::Relaxed);
                });
                assert_eq!(sum.into_inner(), expected);
            }
        }
    }

    #[test]
    fn a_panic_comes_back() {
        for bad in [0, 5] {
            let result = std::panic::catch_unwind(|| {
                side_by_side(0..8, |worker| assert!(worker != bad, "bad"));
            });
            assert!(result.is_err());
        }
        // And the threads go on.
        each(2, 0..10, |_| {});
    }

    #[test]
    fn threads_that_are_kept_awake_work_and_are_let_go() {
        for wanted in [0, 1, 2, 7] {
            let count = AtomicU64::new(0);
            let result = awake(wanted, || {
                for _ in 0..5 {
                    each(wanted, 0..10, |_| {
                        count.fetch_add(1, Ordering::Relaxed);
                    });
                }
                awake(wanted, || 11)
            });
            assert_eq!((result, count.into_inner()), (11, 50));
        }
        let panic = std::panic::catch_unwind(|| awake(3, || panic!("bad")));
        assert!(panic.is_err());
        let both = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        awake(2, || {
                            each(2, 0..4, |_| _ = both.fetch_add(1, Ordering::Relaxed));
                        });
                    }
                });
            }
        });
        assert_eq!(both.into_inner(), 800);
        // Nobody calls any more, so that all of them leave.
        let asked = std::time::Instant::now();
        while KEEPERS.load(Ordering::Relaxed) > 0 {
            assert!(asked.elapsed().as_secs() < 60, "threads stay awake");
            std::thread::yield_now();
        }
    }

    /// Work that calls for threads itself, from one of them.
    #[test]
    fn crews_within_crews() {
        let count = AtomicU64::new(0);
        each(4, 0..10, |_| {
            each(4, 0..10, |_| {
                count.fetch_add(1, Ordering::Relaxed);
            });
        });
        assert_eq!(count.into_inner(), 100);
    }
}
