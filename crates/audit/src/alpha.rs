//! The chance of convicting the innocent.

use whit_core::round;

use crate::{Error, Result};

/// The smallest significance level. Far below any use, and far above where a binomial tail underflows.
pub const ALPHA_MIN: f64 = 1e-100;
/// The largest significance level: up to here a one-sided bound lies on its side of the estimate.
pub const ALPHA_MAX: f64 = 0.5;

/// A significance level: an upper bound on the probability that an honest mechanism is convicted. In `[1e-100, 1/2]`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Alpha(f64);

impl Alpha {
    /// Checks the domain once and for all.
    pub fn new(value: f64) -> Result<Self> {
        if (ALPHA_MIN..=ALPHA_MAX).contains(&value) {
            Ok(Self(value))
        } else {
            let domain = "a number from 1e-100 to 0.5";
            Err(Error::OutOfDomain {
                what: "significance level",
                given: value,
                domain,
            })
        }
    }

    /// The number.
    pub const fn value(self) -> f64 {
        self.0
    }

    /// One share of `tests` equal ones, rounded down. If each of that many tests errs with at most this
    /// probability, then by the union bound any of them errs with at most `self` (Bonferroni). Dependence between
    /// the tests does not matter.
    pub fn split(self, tests: usize) -> Result<Self> {
        Self::new(round::div_down(self.0, tests as f64))
    }

    /// `1 - self`, rounded down.
    pub fn confidence(self) -> f64 {
        round::sub_down(1.0, self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_what_is_no_significance_level() {
        for value in [0.0, -0.1, 0.6, 1.0, 1e-101, f64::NAN, f64::INFINITY] {
            assert!(Alpha::new(value).is_err(), "{value}");
        }
        assert!(Alpha::new(ALPHA_MIN).is_ok() && Alpha::new(ALPHA_MAX).is_ok());
    }

    #[test]
    fn shares_add_up_to_no_more_than_the_whole() {
        let alpha = Alpha::new(0.1).expect("in range");
        for tests in [1, 2, 3, 7, 10] {
            let share = alpha.split(tests).expect("in range").value();
            assert!((0..tests).fold(0.0, |sum, _| round::add_down(sum, share)) <= 0.1);
        }
        assert!(alpha.split(0).is_err(), "no tests, no share");
        assert!(alpha.confidence() < 0.9, "the float 0.1 is above a tenth");
    }
}
