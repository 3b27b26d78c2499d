//! Quantiles of the normal distribution, rounded in a named direction.
//!
//! The library's inverse is only a first guess. It is pushed outward until the forward function, whose error is
//! known, says that it is far enough; so no property of the inverse is relied upon. `Φ(x) = erfc(-x/√2)/2`, where
//! `libm::erfc` errs by less than one unit in the last place, and the relative rounding error of `x/√2` is
//! multiplied by about `x²`, which is below 1500 wherever `Φ` is a normal float: together a relative error below
//! [`ERROR`].

use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2};

use statrs::function::erf::erfc_inv;

/// Relative error of [`distribution`], with room to spare.
pub(crate) const ERROR: f64 = 2e-12;
/// Smaller probabilities are not told apart: they come too near to where floats lose digits.
const TAIL_MIN: f64 = 1e-300;

/// A number that is at most `Φ⁻¹(p)`, for `p` in `[0, 1]`.
pub(crate) fn quantile_lower(p: f64) -> f64 {
    // Above one half `1 - p` is exact, and Φ⁻¹(p) = -Φ⁻¹(1-p).
    if p <= 0.5 {
        tail_lower(p)
    } else {
        -tail_upper(1.0 - p)
    }
}

/// A number that is at least `Φ⁻¹(p)`, for `p` in `[0, 1]`.
pub(crate) fn quantile_upper(p: f64) -> f64 {
    if p <= 0.5 {
        tail_upper(p)
    } else {
        -tail_lower(1.0 - p)
    }
}

fn tail_lower(p: f64) -> f64 {
    if p < TAIL_MIN {
        return f64::NEG_INFINITY;
    }
    push(guess(p), -1.0, |x| distribution(x) * (1.0 + ERROR) <= p)
}

fn tail_upper(p: f64) -> f64 {
    let p = p.max(TAIL_MIN);
    push(guess(p), 1.0, |x| distribution(x) * (1.0 - ERROR) >= p)
}

fn guess(p: f64) -> f64 {
    -SQRT_2 * erfc_inv(2.0 * p)
}

/// Walks from `x` in the given direction, in steps that double, until the condition holds. Less than 60 steps pass
/// any `x`.
fn push(x: f64, direction: f64, holds: impl Fn(f64) -> bool) -> f64 {
    let mut step = 1e-14;
    while !holds(x + direction * step) {
        step *= 2.0;
    }
    x + direction * step
}

/// `Φ(x)`; keeps its digits for negative `x`.
pub(crate) fn distribution(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(p: f64, expected: f64) {
        let (lower, upper) = (quantile_lower(p), quantile_upper(p));
        assert!(
            lower <= expected && expected <= upper,
            "{p}: {lower} {expected} {upper}"
        );
        assert!(upper - lower < 2e-11, "{p}: {lower} {upper}");
    }

    /// Reference values: 30-digit arithmetic, for the doubles nearest to these `p`.
    #[test]
    fn encloses_reference_values() {
        check(1e-300, -37.047_096_299_361_2);
        check(1e-100, -21.273_453_560_965_324);
        check(1e-12, -7.034_483_825_301_132);
        check(1e-6, -4.753_424_308_822_899);
        check(1e-3, -3.090_232_306_167_813_5);
        check(0.25, -0.674_489_750_196_081_7);
        check(0.4999, -2.506_628_300_880_075e-4);
        check(0.5, 0.0);
        check(0.75, 0.674_489_750_196_081_7);
        check(0.999, 3.090_232_306_167_813);
    }

    #[test]
    fn ends_are_infinite_only_outward() {
        assert_eq!(quantile_lower(0.0), f64::NEG_INFINITY);
        assert_eq!(quantile_upper(1.0), f64::INFINITY);
        assert!(quantile_upper(0.0) > -38.0 && quantile_lower(1.0) < 38.0);
    }
}
