//! Audits of training: what attacks find, beside what plans promise.

pub(crate) mod bar;
pub(crate) mod black_box;
pub(crate) mod canaries;
pub(crate) mod figure2;
pub(crate) mod memory;
pub(crate) mod picture;
pub(crate) mod scores;
pub(crate) mod subject;
pub(crate) mod table2;

/// Where scores belong, as they are kept, and the scores.
type Scored = ((u64, u64), Vec<f64>);

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a panic left is as good as any: whoever panics ends the command.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
