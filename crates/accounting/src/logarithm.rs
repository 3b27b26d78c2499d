//! Logarithms of one plus something, rounded outward: exact where `ln` would lose everything to cancellation.
//!
//! `libm` documents an error below one unit in the last place for `log1p`; as in [`whit_core::round`], we step two
//! outward.

use whit_core::{Ratio, round};

/// `ln(1 + value)` for `value >= 0`, rounded up.
pub(crate) fn log1p_up(value: f64) -> f64 {
    if value == 0.0 {
        0.0
    } else {
        libm::log1p(value).next_up().next_up()
    }
}

/// `ln(1 + value)` for `value >= 0`, rounded down, and never below zero.
pub(crate) fn log1p_down(value: f64) -> f64 {
    libm::log1p(value).next_down().next_down().max(0.0)
}

/// `ln(1 + excess)`, rounded up, also where `excess` is beyond the floats.
pub(crate) fn log1p_ratio_up(excess: &Ratio) -> f64 {
    let mut mantissa = excess.to_f64_up();
    if mantissa.is_finite() {
        return log1p_up(mantissa);
    }
    // ln(m 2^n) = ln m + n ln 2. Each turn takes off 512 bits, so a ratio of n bits takes at most n/512 turns.
    let (mut rest, mut bits) = (&Ratio::one() + excess, 0.0);
    while !mantissa.is_finite() {
        rest = &rest * &Ratio::power_of_two(-512);
        bits = round::add_up(bits, 512.0);
        mantissa = rest.to_f64_up();
    }
    // The float LN_2 lies below ln 2 = 0.693147180559945309…, and the next one above.
    let twos = round::mul_up(bits, std::f64::consts::LN_2.next_up());
    round::add_up(round::ln_up(mantissa), twos)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of ln(1 + x) from mpmath 1.4.1 with 60 digits.
    #[test]
    fn brackets_the_true_logarithm() {
        for (value, truth) in [
            (1.0, std::f64::consts::LN_2),
            (1e-20, 1e-20),
            (1e300, 690.775_527_898_213_7),
        ] {
            let (down, up) = (log1p_down(value), log1p_up(value));
            assert!(
                truth * (1.0 - 1e-15) < down && down < truth,
                "ln(1 + {value}): {down}"
            );
            assert!(
                truth < up && up < truth * (1.0 + 1e-15),
                "ln(1 + {value}): {up}"
            );
        }
        assert_eq!((log1p_down(0.0), log1p_up(0.0)), (0.0, 0.0));
    }

    #[test]
    fn goes_beyond_the_floats() {
        for exponent in [1025, 2048, 10_000] {
            let up = log1p_ratio_up(&Ratio::power_of_two(exponent));
            let truth = f64::from(exponent) * std::f64::consts::LN_2;
            assert!(
                up > truth && up < truth * (1.0 + 1e-14),
                "2^{exponent}: {up} for {truth}"
            );
        }
    }

    #[test]
    fn a_ratio_next_to_one_keeps_its_tiny_logarithm() {
        let tiny = Ratio::power_of_two(-200);
        let up = log1p_ratio_up(&tiny);
        assert!(up >= tiny.to_f64_up() && up < 1.000_001 * tiny.to_f64_up());
    }
}
