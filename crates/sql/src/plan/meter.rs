//! How much a statement may grow while it is read.

use super::expression::Typed;
use crate::error::{Result, refused};

/// So many terms are enough for the longest list, and few enough to be computed for every row.
const TERMS_MAX: usize = 1 << 16;

/// How many terms a statement may still copy. A column of a subquery stands for a whole term, and so does the operand of IN,
/// BETWEEN and CASE: a few dozen levels that each copy it twice would fill any memory.
pub(super) struct Meter(std::cell::Cell<usize>);

impl Meter {
    pub(super) fn new() -> Self {
        Self(std::cell::Cell::new(TERMS_MAX))
    }

    /// A copy, paid for.
    pub(super) fn copy(&self, term: &Typed) -> Result<Typed> {
        let left = self.0.get().checked_sub(term.term.weight());
        let left = left.ok_or_else(|| {
            refused(
                "too_large",
                format!("written out, the statement has more than {TERMS_MAX} terms"),
                "use columns of subqueries less often, or split the statement",
            )
        })?;
        self.0.set(left);
        Ok(term.clone())
    }
}
