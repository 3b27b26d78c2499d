//! Values as fixed-point integers in public bounds.
//!
//! Sums of floats depend on their order, and a single large value can swallow many small ones: the sensitivity of a float sum
//! is not the one on paper \[CSVW22\]. So every value becomes a whole number of steps of a grid that the bounds alone determine,
//! and is clamped to the bounds; sums of integers are exact in any order.

use whit_core::Ratio;

use crate::grid::Grid;
use crate::{Error, Result};

/// A public range `[lower, upper]` and the grid that values in it are rounded to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    grid: Grid,
    lower: i64,
    upper: i64,
}

/// Values have this many bits below the power of two above the larger bound: a resolution of one in a trillion.
const VALUE_BITS: i32 = 40;
/// Narrow ranges far from zero get more, so that the range itself has this many bits …
const RANGE_BITS: i32 = 20;
/// … but no value more than this, so that integers hold it.
const VALUE_BITS_MAX: i32 = 60;

impl Bounds {
    /// Checks that `lower < upper`, both finite and not beyond `±2^900`, and that a grid can tell them apart.
    pub fn new(lower: f64, upper: f64) -> Result<Self> {
        let empty = Error::EmptyRange { lower, upper };
        let limit = libm::ldexp(1.0, 900);
        if !(lower < upper && lower >= -limit && upper <= limit) {
            return Err(empty);
        }
        let log2_value = log2_above(lower.abs().max(upper.abs()));
        let log2_range = log2_above(upper - lower);
        let exponent = (log2_value - VALUE_BITS)
            .min(log2_range - RANGE_BITS)
            .max(log2_value - VALUE_BITS_MAX);
        Self::on_grid(lower, upper, Grid::new(exponent.max(-1074))?)
    }

    /// The same on a grid that the owner declares, such as `Grid::new(0)` for whole numbers. A quantile then is one of them.
    pub fn on_grid(lower: f64, upper: f64, grid: Grid) -> Result<Self> {
        let empty = Error::EmptyRange { lower, upper };
        if lower.is_nan() || upper.is_nan() || lower >= upper {
            return Err(empty);
        }
        let within = |steps: i128| steps.unsigned_abs() <= 1 << (VALUE_BITS_MAX + 1);
        let [lower, upper] = [lower, upper].map(|bound| {
            let steps = Some(grid.round(bound)).filter(|&steps| within(steps))?;
            i64::try_from(steps).ok()
        });
        match (lower, upper) {
            (Some(lower), Some(upper)) if lower < upper => Ok(Self { grid, lower, upper }),
            _ => Err(empty),
        }
    }

    /// The grid.
    pub fn grid(self) -> Grid {
        self.grid
    }

    /// One step of the grid.
    pub fn step(self) -> Ratio {
        self.grid.step()
    }

    /// The lower bound, in steps.
    pub fn lower(self) -> i64 {
        self.lower
    }

    /// The upper bound, in steps.
    pub fn upper(self) -> i64 {
        self.upper
    }

    /// `upper - lower`, in steps.
    pub fn width(self) -> u64 {
        self.upper.abs_diff(self.lower)
    }

    /// The largest absolute value, in steps.
    pub fn reach(self) -> u64 {
        self.lower.unsigned_abs().max(self.upper.unsigned_abs())
    }

    /// The width of the range together with zero, in steps: how far apart a value and nothing can be.
    pub fn width_with_zero(self) -> u64 {
        self.upper.max(0).abs_diff(self.lower.min(0))
    }

    /// The value of the range that is nearest to zero, in steps.
    pub fn nearest_to_zero(self) -> i64 {
        0.clamp(self.lower, self.upper)
    }

    /// A value in steps, clamped. Infinities go to the bounds; what is no number is absent.
    pub fn fix(self, value: f64) -> Option<i64> {
        if value.is_nan() {
            return None;
        }
        let (lower, upper) = (i128::from(self.lower), i128::from(self.upper));
        Some(self.grid.round(value).clamp(lower, upper) as i64)
    }
}

/// The smallest `k` with `2^k >= value`, for a positive finite value.
fn log2_above(value: f64) -> i32 {
    let (fraction, exponent) = libm::frexp(value);
    // frexp gives value = fraction 2^exponent with fraction in [1/2, 1).
    if fraction == 0.5 {
        exponent - 1
    } else {
        exponent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_in_the_range_are_exact() {
        let bounds = Bounds::new(0.0, 120.0).expect("a range");
        for age in 0..=120 {
            let steps = bounds.fix(f64::from(age)).expect("a number");
            assert_eq!(bounds.grid().value(i128::from(steps)), f64::from(age));
        }
    }

    #[test]
    fn values_outside_are_clamped_and_nonsense_is_absent() {
        let bounds = Bounds::new(-1.0, 3.0).expect("a range");
        assert_eq!(bounds.fix(f64::INFINITY), Some(bounds.upper()));
        assert_eq!(bounds.fix(f64::NEG_INFINITY), Some(bounds.lower()));
        assert_eq!(bounds.fix(1e300), Some(bounds.upper()));
        assert_eq!(bounds.fix(f64::NAN), None);
        assert_eq!(bounds.fix(-0.0), Some(0));
        assert_eq!(bounds.nearest_to_zero(), 0);
        assert_eq!(
            Bounds::new(2.0, 3.0).map(|b| b.nearest_to_zero() == b.lower()),
            Ok(true)
        );
    }

    #[test]
    fn narrow_ranges_far_away_are_told_apart() {
        let bounds = Bounds::new(1e15, 1e15 + 1.0).expect("a range");
        assert!(bounds.width() >= 1 << 9, "{bounds:?}");
    }

    #[test]
    fn whole_numbers_can_be_declared() {
        let bounds = Bounds::on_grid(0.0, 120.0, Grid::new(0).expect("in range")).expect("a range");
        assert_eq!(
            (bounds.lower(), bounds.upper(), bounds.fix(36.6)),
            (0, 120, Some(37))
        );
        for (lower, upper, exponent) in [
            (0.0, 0.4, 0),
            (0.0, 1e30, 0),
            (1.0, 0.0, 0),
            (f64::NAN, 1.0, 0),
            (0.0, 1.0, -70),
        ] {
            let grid = Grid::new(exponent).expect("in range");
            assert!(
                Bounds::on_grid(lower, upper, grid).is_err(),
                "{lower},{upper} passed"
            );
        }
    }

    #[test]
    fn rejects_what_is_no_range() {
        for (lower, upper) in [
            (1.0, 1.0),
            (2.0, 1.0),
            (f64::NAN, 1.0),
            (0.0, f64::NAN),
            (f64::NEG_INFINITY, 0.0),
            (0.0, f64::INFINITY),
            (0.0, f64::MAX),
            (0.0, -0.0),
        ] {
            assert!(Bounds::new(lower, upper).is_err(), "{lower},{upper} passed");
        }
        assert!(Bounds::new(0.0, 5e-324).is_ok() && Bounds::new(-1e200, 1e200).is_ok());
    }
}
