//! Declared bounds of one number, and its place between them as an integer.
//!
//! **Claim.** [`Interval::units`] is a function of the value alone and at most [`UNIT`] in size, whatever the value.
//! **Proof.** What is rounded is computed in floats from the value and public numbers; the result is clamped as an integer. ∎

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Half the width of an interval is `2^18` units: finer than eight-bit pictures by a factor of two thousand, and sums of products of two numbers, `2^36`
/// at most, of `2^26` examples are within 62 bits.
pub(super) const UNIT_BITS: i32 = 18;
/// The same.
pub(super) const UNIT: i64 = 1 << UNIT_BITS;

/// The largest size of what is declared: features are below `2^128`, and squares of numbers to this size, times a count, are numbers still.
pub(super) const SIZE_MAX: f64 = 1e100;
/// The smallest width, so that squares of these are not zero.
pub(super) const SIZE_MIN: f64 = 1e-100;

/// Where a number lies, as its owner declares it without looking at the data. What lies outside is clamped.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    middle: f64,
    half_width: f64,
}

impl Interval {
    /// From the lower end to the upper.
    pub fn new(lower: f64, upper: f64) -> Result<Self> {
        // Halves first, so that nothing overflows.
        let (middle, half_width) = (0.5 * lower + 0.5 * upper, 0.5 * upper - 0.5 * lower);
        let made = Self { middle, half_width };
        match made.is_whole() {
            true => Ok(made),
            false => Err(Error::EmptyInterval { lower, upper }),
        }
    }

    /// Is it one that could have been made? A file may say anything.
    pub(super) fn is_whole(self) -> bool {
        self.middle.abs() <= SIZE_MAX && (SIZE_MIN..=SIZE_MAX).contains(&self.half_width)
    }

    /// Half way between the ends.
    pub fn middle(self) -> f64 {
        self.middle
    }

    /// From there to an end.
    pub fn half_width(self) -> f64 {
        self.half_width
    }

    /// The place of a value between `-UNIT` and `UNIT`.
    pub(super) fn units(self, value: f32) -> i64 {
        // A cast takes what is too large to the ends, and what is no number to zero.
        let place = (self.place(f64::from(value)) * UNIT as f64).round() as i64;
        place.clamp(-UNIT, UNIT)
    }

    /// The place of a value where the ends are -1 and 1. Not clamped.
    pub(super) fn place(self, value: f64) -> f64 {
        (value - self.middle) / self.half_width
    }

    /// The value at a place.
    pub(super) fn value(self, place: f64) -> f64 {
        self.middle + place * self.half_width
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_core::Fault;

    #[test]
    fn whatever_comes_stays_within_the_units() {
        for (lower, upper) in [
            (0.0, 1.0),
            (-1e30, 1e30),
            (1e15, 1e15 + 1.0),
            (-3.0, -1e-300),
            (-SIZE_MAX, SIZE_MAX),
            (0.0, 2.1 * SIZE_MIN),
        ] {
            let interval = Interval::new(lower, upper).expect("an interval");
            for value in [
                0.0,
                -0.0,
                1.0,
                -1.0,
                0.3,
                1e-45,
                f32::MAX,
                f32::MIN,
                f32::INFINITY,
                f32::NEG_INFINITY,
                f32::NAN,
                1e15,
            ] {
                let units = interval.units(value);
                assert!(
                    units.abs() <= UNIT,
                    "{value} in {lower} to {upper}: {units}"
                );
            }
        }
        let interval = Interval::new(2.0, 6.0).expect("an interval");
        let seen = [1.0, 2.0, 3.0, 4.0, 6.0, 9.0].map(|value| interval.units(value));
        assert_eq!(seen, [-UNIT, -UNIT, -UNIT / 2, 0, UNIT, UNIT]);
        assert_eq!((interval.value(-0.5), interval.place(3.0)), (3.0, -0.5));
    }

    #[test]
    fn rejects_what_is_no_interval() {
        for (lower, upper) in [
            (1.0, 1.0),
            (2.0, 1.0),
            (f64::NAN, 1.0),
            (0.0, f64::NAN),
            (f64::NEG_INFINITY, 0.0),
            (0.0, f64::INFINITY),
            (0.0, 5e-324),
            (0.0, SIZE_MIN),
            (f64::MIN, f64::MAX),
            (0.0, 2.1 * SIZE_MAX),
        ] {
            let refused = Interval::new(lower, upper).expect_err("no interval");
            assert_eq!(refused.code(), "empty_interval");
            assert!(refused.suggestion().contains("the lower one first"));
        }
    }
}
