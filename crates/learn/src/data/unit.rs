//! # One row of each unit
//! A run protects one example. To protect a person, all of whose rows may be added, removed or changed at once, at most one row of each person
//! may be an example.
//!
//! **Rule.** Of a unit's rows the one is kept whose cells have the smallest SHA-256. Rows of nobody (whose unit is empty, longer than 4,096
//! bytes or no UTF-8 text) are left out, as in private SQL. White space around a name does not count.
//! **Claim.** Data sets that differ in the rows of one unit become examples that differ in one example.
//! **Proof.** Which row is kept, or that none is, is a function of the unit's own rows, as a set: not of their order, of other rows, or of
//! coins. So all other units have the same example in both. ∎
//!
//! The hash is public, so that whoever has several rows can know which one will count. That is no matter of privacy.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use csv::ByteRecord;
use sha2::{Digest, Sha256};

/// Longest name of a unit, as in private SQL.
const UNIT_BYTES_MAX: usize = 4096;

/// The rows that are kept so far.
pub(super) struct OneEach {
    column: usize,
    /// By unit: the hash of the row that is kept, and its place.
    kept: BTreeMap<Vec<u8>, ([u8; 32], usize)>,
}

/// Where a row belongs among the examples.
#[derive(Debug, PartialEq)]
pub(super) enum Place {
    /// Behind all others.
    New,
    /// In the place of another row of the same unit.
    InsteadOf(usize),
    /// It is not kept.
    Nowhere,
}

impl OneEach {
    /// `column` says whose a row is.
    pub(super) fn new(column: usize) -> Self {
        Self {
            column,
            kept: BTreeMap::new(),
        }
    }

    /// Where the next row belongs.
    pub(super) fn place(&mut self, record: &ByteRecord) -> Place {
        let cell = record.get(self.column).unwrap_or_default();
        let is_told_apart = cell.len() <= UNIT_BYTES_MAX && std::str::from_utf8(cell).is_ok();
        let owner = cell.trim_ascii();
        if owner.is_empty() || !is_told_apart {
            return Place::Nowhere;
        }
        let (hash, next) = (hash(record), self.kept.len());
        match self.kept.entry(owner.to_vec()) {
            Entry::Vacant(none) => {
                none.insert((hash, next));
                Place::New
            }
            Entry::Occupied(mut kept) => {
                let (smallest, place) = *kept.get();
                if hash >= smallest {
                    return Place::Nowhere;
                }
                kept.insert((hash, place));
                Place::InsteadOf(place)
            }
        }
    }
}

/// Of all cells, each with its length, so that no two rows look the same that are not.
fn hash(record: &ByteRecord) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for cell in record {
        hasher.update((cell.len() as u64).to_le_bytes());
        hasher.update(cell);
    }
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(cells: &[&[u8]]) -> ByteRecord {
        ByteRecord::from(cells.to_vec())
    }

    #[test]
    fn nobodys_rows_are_left_out_and_names_are_read_as_in_private_sql() {
        let mut each = OneEach::new(0);
        let long = [b'x'; UNIT_BYTES_MAX + 1];
        for nobody in [&b""[..], b" \t", b"\xff", &long] {
            assert_eq!(each.place(&record(&[nobody, b"1"])), Place::Nowhere);
        }
        assert_eq!(each.place(&record(&[])), Place::Nowhere, "too short a row");
        assert_eq!(each.place(&record(&[b"ann", b"1"])), Place::New);
        assert_ne!(each.place(&record(&[b" ann ", b"2"])), Place::New);
        assert_eq!(each.place(&record(&[b"Ann", b"1"])), Place::New);
    }

    /// Rows come in every order, and the same one is left.
    #[test]
    fn the_smallest_hash_is_kept_in_any_order() {
        let rows: Vec<_> = (0..6).map(|row| record(&[b"ann", &[b'0' + row]])).collect();
        let smallest = rows.iter().map(hash).min().expect("six");
        for first in 0..6 {
            let mut each = OneEach::new(0);
            for step in 0..6 {
                let place = each.place(&rows[(first + 5 * step) % 6]);
                assert_eq!(place == Place::New, step == 0);
            }
            assert_eq!(each.kept[&b"ann"[..]], (smallest, 0));
        }
    }

    #[test]
    fn cells_are_told_apart() {
        assert_ne!(hash(&record(&[b"ab", b"c"])), hash(&record(&[b"a", b"bc"])));
    }
}
