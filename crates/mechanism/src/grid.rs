//! A public grid for real values.
//!
//! Noise that is added to floats is not the noise of the theorem: the sampler's outputs have holes \[Mir12\] and the sum takes
//! the precision of its coarser part \[HDH22\]. So a real value is first rounded to a multiple of a step `2^k`, and integer
//! noise is added to the multiple. The step is a function of public parameters only.
//!
//! **Rounding.** `r(x) = floor(x/2^k + 1/2)`, clamped to `±2^100`; infinities go to the ends and what is no number to zero. It is
//! monotone, and `r(x + j 2^k) = r(x) + j` until the clamp, which is a contraction. Hence for `|x - x'| <= Δ`:
//! `|r(x) - r(x')| <= ceil(Δ/2^k)`; and for vectors, since each coordinate of `r(x) - x/2^k` varies by less than one,
//! `‖r(x) - r(x')‖ < ‖x - x'‖/2^k + ‖(1,…,1)‖` in any norm that grows with each coordinate.

use whit_core::{Error as UnitError, Ratio, Scale};

use crate::Result;

/// Multiples of `2^exponent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    exponent: i32,
}

/// The ends of a grid, in steps: far beyond any noise, far within `i128`.
const STEPS_MAX: i128 = 1 << 100;

/// How many steps make one noise scale, at least, as a power of two: rounding then adds less than a billionth of the scale.
const STEPS_PER_SCALE: i32 = 30;

impl Grid {
    /// The grid of multiples of `2^exponent`, from `2^-1074` (the smallest float) to `2^900`.
    pub fn new(exponent: i32) -> Result<Self> {
        if (-1074..=900).contains(&exponent) {
            return Ok(Self { exponent });
        }
        let given = exponent.to_string();
        Err(UnitError::OutOfDomain {
            what: "the grid's exponent",
            given,
            domain: "an integer from -1074 to 900",
        }
        .into())
    }

    /// A grid fine enough that rounding to it is lost in noise of this scale.
    pub fn for_scale(scale: &Scale) -> Self {
        let scale = scale.ratio();
        // Scales lie between 2^-64 and 2^96, so this finds one.
        let log2 = (-64..=96)
            .rev()
            .find(|&k| Ratio::power_of_two(k) <= *scale)
            .unwrap_or(-64);
        Self {
            exponent: log2 - STEPS_PER_SCALE,
        }
    }

    /// `k` of the step `2^k`.
    pub fn exponent(self) -> i32 {
        self.exponent
    }

    /// The step itself.
    pub fn step(self) -> Ratio {
        Ratio::power_of_two(self.exponent)
    }

    /// The nearest multiple, counted in steps; ties go up. Defined for every float, in integer arithmetic.
    pub fn round(self, x: f64) -> i128 {
        if x.is_nan() {
            return 0;
        }
        if x.is_infinite() {
            return if x > 0.0 { STEPS_MAX } else { -STEPS_MAX };
        }
        let (mantissa, exponent) = decode(x);
        let shift = exponent - self.exponent;
        if shift >= 0 {
            // A mantissa has at most 53 bits: from 47 on the clamp decides.
            let far = shift > 47;
            let steps = if far {
                mantissa.signum().saturating_mul(STEPS_MAX)
            } else {
                mantissa << shift
            };
            return steps.clamp(-STEPS_MAX, STEPS_MAX);
        }
        // Below 2^-60 steps the value rounds to zero; the shift would leave the integers.
        let down = (-shift).min(120);
        (mantissa + (1 << (down - 1))) >> down
    }

    /// The float nearest to so many steps: post-processing.
    pub fn value(self, steps: i128) -> f64 {
        libm::ldexp(steps as f64, self.exponent)
    }
}

/// `x = mantissa 2^exponent`, exactly, for finite `x`.
fn decode(x: f64) -> (i128, i32) {
    let bits = x.to_bits();
    let biased = (bits >> 52 & 0x7ff) as i32;
    let fraction = (bits & ((1 << 52) - 1)) as i128;
    let (magnitude, exponent) = if biased == 0 {
        (fraction, -1074)
    } else {
        (fraction | 1 << 52, biased - 1075)
    };
    (
        if x.is_sign_negative() {
            -magnitude
        } else {
            magnitude
        },
        exponent,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use dashu_ratio::RBig;
    use proptest::prelude::*;

    #[test]
    fn special_values_are_defined() {
        let grid = Grid::new(0).expect("in range");
        for (x, steps) in [
            (f64::NAN, 0),
            (-f64::NAN, 0),
            (f64::INFINITY, STEPS_MAX),
            (f64::NEG_INFINITY, -STEPS_MAX),
            (f64::MAX, STEPS_MAX),
            (f64::MIN, -STEPS_MAX),
            (-0.0, 0),
            (5e-324, 0),
            (-5e-324, 0),
            (0.5, 1),
            (-0.5, 0),
            (1.5, 2),
            (-1.5, -1),
            (0.49999999999999994, 0),
        ] {
            assert_eq!(grid.round(x), steps, "{x}");
        }
    }

    proptest! {
        #[test]
        fn rounds_to_the_nearest_step(bits: u64, exponent in -1074..=900) {
            let x = f64::from_bits(bits);
            prop_assume!(x.is_finite());
            let grid = Grid::new(exponent).expect("in range");
            let steps = grid.round(x);
            let exact = RBig::try_from(x).expect("finite") / grid.step().as_rbig();
            let two = RBig::from(2);
            let rounded = RBig::from((exact + RBig::ONE / two).floor());
            let limit = RBig::from(STEPS_MAX);
            let clamped = rounded.max(-limit.clone()).min(limit);
            prop_assert_eq!(RBig::from(steps), clamped);
        }
    }
}
