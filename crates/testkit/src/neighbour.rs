//! Random neighbours with the values that break things.

use whit_core::Bits;

use crate::SeededBits;

/// Two data sets of floats that differ in one row.
#[derive(Clone, Debug)]
pub struct NeighbourPair {
    /// Without the row, or with the row before it was replaced.
    pub one: Vec<f64>,
    /// With the row, or with the row after it was replaced.
    pub other: Vec<f64>,
}

/// Values at which other systems broke: special floats, both zeros, the smallest and the largest.
const NASTY: [f64; 10] = [
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    0.0,
    -0.0,
    f64::MIN_POSITIVE,
    5e-324,
    f64::MAX,
    f64::MIN,
    9.007_199_254_740_993e15,
];

impl NeighbourPair {
    /// One row more.
    pub fn add_remove(bits: &mut SeededBits) -> Self {
        let one = rows(bits);
        let mut other = one.clone();
        let at = bits.below(one.len() as u64 + 1) as usize;
        other.insert(at, value(bits));
        Self { one, other }
    }

    /// One row replaced. There is always a row to replace.
    pub fn replace_one(bits: &mut SeededBits) -> Self {
        let mut one = rows(bits);
        one.push(value(bits));
        let mut other = one.clone();
        let at = bits.below(one.len() as u64) as usize;
        other[at] = value(bits);
        Self { one, other }
    }
}

/// Two data sets of `(unit, value)` rows that differ in all rows of one unit.
#[derive(Clone, Debug)]
pub struct UnitPair {
    /// Without the unit, or before it was replaced.
    pub one: Vec<(u64, f64)>,
    /// With the unit, or after it was replaced.
    pub other: Vec<(u64, f64)>,
}

/// The unit that makes the difference; others have smaller numbers.
const VICTIM: u64 = 7;

impl UnitPair {
    /// One unit more, with any number of rows among those of others.
    pub fn add_remove(bits: &mut SeededBits) -> Self {
        let one = unit_rows(bits);
        let other = with_victim(&one, bits);
        Self { one, other }
    }

    /// One unit's rows replaced by others, maybe more or fewer.
    pub fn replace_one(bits: &mut SeededBits) -> Self {
        let others = unit_rows(bits);
        Self {
            one: with_victim(&others, bits),
            other: with_victim(&others, bits),
        }
    }
}

fn unit_rows(bits: &mut SeededBits) -> Vec<(u64, f64)> {
    (0..bits.below(30))
        .map(|_| (bits.below(VICTIM), value(bits)))
        .collect()
}

fn with_victim(others: &[(u64, f64)], bits: &mut SeededBits) -> Vec<(u64, f64)> {
    let mut rows = others.to_vec();
    for _ in 0..1 + bits.below(6) {
        rows.insert(
            bits.below(rows.len() as u64 + 1) as usize,
            (VICTIM, value(bits)),
        );
    }
    rows
}

fn rows(bits: &mut SeededBits) -> Vec<f64> {
    let count = bits.below(40);
    (0..count).map(|_| value(bits)).collect()
}

fn value(bits: &mut SeededBits) -> f64 {
    match bits.below(4) {
        0 => NASTY[bits.below(NASTY.len() as u64) as usize],
        // Any bit pattern at all.
        1 => f64::from_bits(bits.word()),
        2 => bits.below(200) as f64 - 100.0,
        _ => (bits.word() as i64 as f64) / 1e17,
    }
}
