//! Units: numbers that were checked once, at the door, and carry their meaning in their type.
//!
//! Only meaningful arithmetic exists. `Epsilon + Epsilon` is basic composition and rounds up; `Epsilon + Delta` does not
//! compile.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Error, Ratio, Result, round};

/// Makes a unit over `f64`: constructor, accessor, text and serde forms, each of which checks the domain.
macro_rules! float_unit {
    ($(#[$doc:meta])* $name:ident, $word:literal, $domain:literal, $holds:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
        #[serde(try_from = "f64", into = "f64")]
        pub struct $name(f64);

        impl $name {
            /// Checks the domain once and for all.
            pub fn new(value: f64) -> Result<Self> {
                let holds: fn(f64) -> bool = $holds;
                if holds(value) {
                    // Adding zero turns -0.0 into 0.0, so that equal values have equal bits and equal text.
                    Ok(Self(value + 0.0))
                } else {
                    Err(Error::OutOfDomain { what: $word, given: value.to_string(), domain: $domain })
                }
            }

            /// The number.
            pub const fn value(self) -> f64 {
                self.0
            }
        }

        impl TryFrom<f64> for $name {
            type Error = Error;
            fn try_from(value: f64) -> Result<Self> {
                Self::new(value)
            }
        }

        impl From<$name> for f64 {
            fn from(unit: $name) -> f64 {
                unit.0
            }
        }

        impl FromStr for $name {
            type Err = Error;
            fn from_str(text: &str) -> Result<Self> {
                Self::new(text.trim().parse().map_err(|_| Error::NotANumber { what: $word })?)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

float_unit!(
    /// The privacy loss that no output exceeds (up to [`Delta`]). Finite, `>= 0`; zero is what nothing costs.
    Epsilon, "epsilon", "a finite number above zero", |value| value.is_finite() && value >= 0.0
);
float_unit!(
    /// The slack of approximate differential privacy, in `[0, 1)`.
    Delta, "delta", "a number from 0 up to, but not including, 1", |value| (0.0..1.0).contains(&value)
);
float_unit!(
    /// Zero-concentrated differential privacy. Finite, `>= 0`.
    Rho, "rho", "a finite number, zero or more", |value| value.is_finite() && value >= 0.0
);
float_unit!(
    /// Gaussian differential privacy. Finite, `>= 0`.
    Mu, "mu", "a finite number, zero or more", |value| value.is_finite() && value >= 0.0
);
float_unit!(
    /// A Rényi order, `> 1`.
    Order, "order", "a finite number greater than 1", |value| value.is_finite() && value > 1.0
);
float_unit!(
    /// The probability with which a row joins a sample, in `(0, 1]`.
    Rate, "rate", "a number greater than 0 and at most 1", |value| value > 0.0 && value <= 1.0
);

float_unit!(
    /// The probability with which an interval covers the truth, in `(0, 1)`.
    Confidence, "confidence", "a number between 0 and 1, both excluded", |value| value > 0.0 && value < 1.0
);

impl Confidence {
    /// For each of two intervals that must both hold: half of what may miss.
    pub fn for_each_of_two(self) -> Self {
        // At the very end of the floats half of what may miss rounds to nothing; the closest there is stays below one.
        Self((0.5 + 0.5 * self.0).min(1.0_f64.next_down()))
    }
}

impl Epsilon {
    /// No privacy loss.
    pub const ZERO: Self = Self(0.0);

    /// The exact rational value.
    pub fn to_ratio(self) -> Ratio {
        Ratio::from_f64(self.0).expect("an epsilon is finite and not negative")
    }

    /// The largest multiple of `2^-50` that is no larger; itself if there is none but zero. The float that is nearest to a tenth is above
    /// it, so that ten of them do not fit into one. As what may be spent at most, a tenth is better taken as a little less.
    pub fn in_whole_steps(self) -> Self {
        let steps = (self.0 * STEPS).floor();
        // Powers of two: both are exact, unless the number is so large that it is a multiple anyway.
        if steps > 0.0 && steps.is_finite() {
            Self(steps / STEPS)
        } else {
            self
        }
    }
}

/// `2^50`.
const STEPS: f64 = (1_u64 << 50) as f64;

impl Delta {
    /// No slack: pure differential privacy.
    pub const ZERO: Self = Self(0.0);

    /// Slack adds up. Rounds up; `None` when nothing is left of the guarantee.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        Self::new(round::add_up(self.0, other.0)).ok()
    }
}

/// Basic composition: losses add up. Rounds up, so that the sum is never below the true one.
impl std::ops::Add for Epsilon {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        // Beyond the largest float the sum saturates; a budget that large protects nobody anyway.
        Self(round::add_up(self.0, other.0).min(f64::MAX))
    }
}

/// Concentrated losses add up. Rounds up.
impl std::ops::Add for Rho {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(round::add_up(self.0, other.0).min(f64::MAX))
    }
}

/// The scale of a noise distribution, in the unit of the answer: an exact positive rational in `[2^-64, 2^96]`.
///
/// For Laplace noise it is `b`, for Gaussian noise the standard deviation `σ` (of the continuous distribution that the
/// discrete one samples). Beyond these ends noise is either no noise at all or nothing but noise, and integer arithmetic in
/// 128 bits would need other proofs; so they are refused.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Ratio", into = "Ratio")]
pub struct Scale(Ratio);

/// Smallest scale: `2^SCALE_EXPONENT_MIN`.
const SCALE_EXPONENT_MIN: i32 = -64;
/// Largest scale: `2^SCALE_EXPONENT_MAX`. Leaves 31 bits of headroom below `i128::MAX`, which noise passes with
/// probability below `exp(-2^30)`.
const SCALE_EXPONENT_MAX: i32 = 96;

impl Scale {
    /// Checks the range.
    pub fn new(scale: Ratio) -> Result<Self> {
        let range =
            Ratio::power_of_two(SCALE_EXPONENT_MIN)..=Ratio::power_of_two(SCALE_EXPONENT_MAX);
        if range.contains(&scale) {
            Ok(Self(scale))
        } else {
            let given = format!("about {:e}", scale.to_f64_up());
            Err(Error::OutOfDomain {
                what: "noise scale",
                given,
                domain: "a positive number from 2^-64 to 2^96",
            })
        }
    }

    /// The exact rational value.
    pub fn ratio(&self) -> &Ratio {
        &self.0
    }
}

impl TryFrom<Ratio> for Scale {
    type Error = Error;
    fn try_from(ratio: Ratio) -> Result<Self> {
        Self::new(ratio)
    }
}

impl From<Scale> for Ratio {
    fn from(scale: Scale) -> Ratio {
        scale.0
    }
}

/// An exact probability in `[0, 1]`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Ratio", into = "Ratio")]
pub struct Probability(Ratio);

impl Probability {
    /// Checks the range.
    pub fn new(value: Ratio) -> Result<Self> {
        if value <= Ratio::one() {
            Ok(Self(value))
        } else {
            let given = value.to_f64_up().to_string();
            Err(Error::OutOfDomain {
                what: "probability",
                given,
                domain: "a number from 0 to 1",
            })
        }
    }

    /// The exact rational value.
    pub fn ratio(&self) -> &Ratio {
        &self.0
    }
}

impl TryFrom<Ratio> for Probability {
    type Error = Error;
    fn try_from(ratio: Ratio) -> Result<Self> {
        Self::new(ratio)
    }
}

impl From<Probability> for Ratio {
    fn from(probability: Probability) -> Ratio {
        probability.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, passes: bool) {
        assert_eq!(text.parse::<Epsilon>().is_ok(), passes, "epsilon {text:?}");
    }

    #[test]
    fn ten_tenths_fit_into_one() {
        let sum = |value: f64, count: usize| {
            let part = Epsilon::new(value).expect("an epsilon").in_whole_steps();
            let all = vec![part.to_ratio(); count];
            all.iter().fold(Ratio::from(0_u64), |sum, part| &sum + part)
        };
        for (value, count) in [
            (0.1, 10),
            (0.01, 100),
            (0.2, 5),
            (0.05, 20),
            (0.3, 10),
            (0.7, 10),
        ] {
            let whole = Ratio::from_f64((value * count as f64).round()).expect("finite");
            let sum = sum(value, count);
            assert!(sum <= whole, "{value}");
            let off = 1.0 - sum.to_f64_down() / whole.to_f64_up();
            assert!(off < 1e-12, "{value}: {off}");
        }
        for same in [0.0, 0.5, 0.0625, 3.0, 1e17, 1e300, f64::MAX, 5e-324, 1e-16] {
            let epsilon = Epsilon::new(same).expect("an epsilon");
            assert_eq!(epsilon.in_whole_steps(), epsilon);
        }
    }

    #[test]
    fn epsilon_is_finite_and_not_negative() {
        for text in ["0", "-0", "1", "0.1", "1e300", "5e-324", " 1 "] {
            check(text, true);
        }
        for text in ["", "-1", "NaN", "inf", "1e400", "one", "1,0", "-5e-324"] {
            check(text, false);
        }
    }

    #[test]
    fn delta_is_below_one() {
        assert!(Delta::new(0.0).is_ok() && Delta::new(1.0_f64.next_down()).is_ok());
        assert!(
            Delta::new(1.0).is_err() && Delta::new(-1e-9).is_err() && Delta::new(f64::NAN).is_err()
        );
    }

    #[test]
    fn order_is_above_one_and_rate_is_positive() {
        assert!(Order::new(1.0).is_err() && Order::new(1.0_f64.next_up()).is_ok());
        assert!(
            Rate::new(0.0).is_err()
                && Rate::new(1.0).is_ok()
                && Rate::new(1.0_f64.next_up()).is_err()
        );
    }

    #[test]
    fn sums_round_up_and_saturate() {
        let tiny = Epsilon::new(5e-324).expect("positive");
        let one = Epsilon::new(1.0).expect("positive");
        assert!(
            (one + tiny).value() > 1.0,
            "a subnormal charge must not be absorbed"
        );
        let huge = Epsilon::new(f64::MAX).expect("finite");
        assert_eq!((huge + huge).value(), f64::MAX);
        let most = Delta::new(0.75).expect("below one");
        assert_eq!(most.checked_add(most), None);
        assert_eq!(most.checked_add(Delta::ZERO), Some(most));
    }

    #[test]
    fn confidence_of_two_stays_below_one() {
        let each = |value| {
            Confidence::new(value)
                .expect("between zero and one")
                .for_each_of_two()
                .value()
        };
        assert_eq!(each(0.9), 0.95);
        assert!(each(1.0_f64.next_down()) < 1.0);
    }

    #[test]
    fn minus_zero_is_zero() {
        assert_eq!(
            Epsilon::new(-0.0).expect("zero").value().to_bits(),
            0.0_f64.to_bits()
        );
    }

    #[test]
    fn scale_has_ends() {
        assert!(
            Scale::new(Ratio::power_of_two(-64)).is_ok()
                && Scale::new(Ratio::power_of_two(96)).is_ok()
        );
        assert!(
            Scale::new(Ratio::power_of_two(-65)).is_err()
                && Scale::new(Ratio::power_of_two(97)).is_err()
        );
        assert!(Scale::new(Ratio::zero()).is_err());
    }

    #[test]
    fn serde_checks_the_domain_again() {
        assert!(serde_json::from_str::<Epsilon>("1.5").is_ok());
        assert!(serde_json::from_str::<Epsilon>("-1.5").is_err());
        assert!(serde_json::from_str::<Delta>("1.0").is_err());
        assert!(serde_json::from_str::<Scale>("\"0\"").is_err());
        assert!(serde_json::from_str::<Probability>("\"3/2\"").is_err());
    }
}
