//! How much one privacy unit may contribute, and how it is held to that.

use std::collections::HashMap;
use std::hash::Hash;

use crate::{Error, Result};

/// What a privacy unit is, in rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contribution {
    /// Each row is a unit of its own.
    Row,
    /// A unit may have any number of rows; at most this many are used. Made by [`rows_per_unit`](Self::rows_per_unit), which
    /// checks the number.
    #[non_exhaustive]
    RowsPerUnit(u32),
}

/// More rows per unit than this leave nothing of an answer.
const ROWS_MAX: u32 = 1 << 24;

impl Contribution {
    /// At most `rows_max` rows of each unit.
    pub fn rows_per_unit(rows_max: u32) -> Result<Self> {
        if (1..=ROWS_MAX).contains(&rows_max) {
            return Ok(Self::RowsPerUnit(rows_max));
        }
        let given = u64::from(rows_max);
        Err(Error::CountOutOfRange {
            what: "the number of rows per unit",
            given,
            min: 1,
            max: u64::from(ROWS_MAX),
        })
    }

    /// The most rows of one unit that are used.
    pub fn rows_max(self) -> u32 {
        match self {
            Self::Row => 1,
            Self::RowsPerUnit(rows_max) => rows_max,
        }
    }

    /// Keeps the first rows of each unit, up to the cap, in the order given.
    ///
    /// Which rows of a unit are kept depends on that unit's rows alone. So data sets that differ in one unit differ, after
    /// this, in at most `rows_max` rows of that unit and in nothing else.
    pub fn bound<U: Eq + Hash, V>(
        self,
        rows: impl IntoIterator<Item = (U, V)>,
    ) -> impl Iterator<Item = V> {
        // The map is only asked for counts; its order never shows.
        let mut used: HashMap<U, u32> = HashMap::new();
        let rows_max = self.rows_max();
        rows.into_iter().filter_map(move |(unit, value)| {
            let used = used.entry(unit).or_insert(0);
            let keep = *used < rows_max;
            *used += u32::from(keep);
            keep.then_some(value)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_beyond_the_cap_are_dropped() {
        let rows = [("a", 1), ("b", 2), ("a", 3), ("a", 4), ("b", 5)];
        let kept: Vec<i32> = Contribution::RowsPerUnit(2).bound(rows).collect();
        assert_eq!(kept, [1, 2, 3, 5]);
    }

    #[test]
    fn neighbours_differ_only_in_their_unit() {
        let with: Vec<(u32, u32)> = (0..100).map(|i| (i % 7, i)).collect();
        let without: Vec<(u32, u32)> = with
            .iter()
            .copied()
            .filter(|&(unit, _)| unit != 3)
            .collect();
        let bound = Contribution::RowsPerUnit(4);
        let (one, other): (Vec<u32>, Vec<u32>) =
            (bound.bound(with).collect(), bound.bound(without).collect());
        assert_eq!(one.len(), other.len() + 4);
        assert_eq!(
            one.into_iter().filter(|i| i % 7 != 3).collect::<Vec<_>>(),
            other
        );
    }

    #[test]
    fn rejects_no_rows_and_too_many() {
        assert!(
            Contribution::rows_per_unit(0).is_err()
                && Contribution::rows_per_unit(u32::MAX).is_err()
        );
        assert_eq!(
            Contribution::rows_per_unit(3),
            Ok(Contribution::RowsPerUnit(3))
        );
    }
}
