//! Labels in a file of their own, beside rows of another format: one at a time, as far as there are rows. A file may be packed, and small for what it holds,
//! and a header may promise any number of rows: what is kept in memory is bounded by what both files hold.

use std::path::Path;

use super::binary::Rows;
use super::declaration::is_json;
use super::error::Result;
use super::idx;
use super::list::List;

/// A file of labels that stands before its next one.
pub(super) enum Labels<'a> {
    List(List),
    Idx(Rows<'a>),
}

impl<'a> Labels<'a> {
    /// `None` if there are not exactly `rows` of them.
    pub(super) fn open(path: &'a Path, rows: u64) -> Result<Option<Self>> {
        if is_json(path) {
            return Ok(List::open(path, rows)?.map(Self::List));
        }
        let found = idx::labels(path)?;
        Ok((found.header.rows == rows).then_some(Self::Idx(found)))
    }

    /// The next one, NaN for whatever is no number; `None` after the last.
    pub(super) fn next(&mut self) -> Result<Option<f64>> {
        match self {
            Self::List(list) => list.next(),
            Self::Idx(rows) => rows.label(),
        }
    }
}
