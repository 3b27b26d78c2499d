//! Identical questions take turns, so that the second finds the answer of the first and costs nothing.

use std::collections::HashSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What identifies a question.
pub(super) type QuestionHash = [u8; 32];

/// The questions that are being answered right now.
#[derive(Debug, Default)]
pub(super) struct Turns {
    asked: Mutex<HashSet<QuestionHash>>,
    ended: Condvar,
}

impl Turns {
    /// Waits until nobody else is at the same question.
    pub(super) fn take(&self, question: QuestionHash) -> Turn<'_> {
        let mut asked = self.lock();
        while !asked.insert(question) {
            asked = self
                .ended
                .wait(asked)
                .unwrap_or_else(PoisonError::into_inner);
        }
        Turn {
            turns: self,
            question,
        }
    }

    /// A thread that panics holds nothing half done: the set is whole before and after each change.
    fn lock(&self) -> MutexGuard<'_, HashSet<QuestionHash>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One's turn at a question, until it is dropped.
#[must_use = "the turn ends when it is dropped"]
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    question: QuestionHash,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.turns.lock().remove(&self.question);
        self.turns.ended.notify_all();
    }
}
