//! An exact, non-negative rational number.
//!
//! Scales, sensitivities and probabilities are rationals so that a privacy proof about the formula is a proof about the
//! program. A finite `f64` is a rational already, so nothing is lost at the door.

use std::fmt;
use std::str::FromStr;

use dashu_base::{Abs, Approximation, Sign, UnsignedAbs};
use dashu_int::{IBig, UBig};
use dashu_ratio::RBig;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Error, Result};

/// An exact rational number, never negative. Written `n/d` (or `n`) in records.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ratio(RBig);

/// Records hold ratios as text; a longer one than this is no honest parameter (an `f64` needs at most about 650 digits).
const TEXT_CHARS_MAX: usize = 4096;

impl Ratio {
    /// Zero.
    pub fn zero() -> Self {
        Self(RBig::ZERO)
    }

    /// One.
    pub fn one() -> Self {
        Self(RBig::ONE)
    }

    /// `numerator / denominator`, in lowest terms.
    pub fn new(numerator: u128, denominator: u128) -> Result<Self> {
        if denominator == 0 {
            return Err(Error::OutOfDomain {
                what: "denominator",
                given: "0".into(),
                domain: "a positive integer",
            });
        }
        Ok(Self(RBig::from_parts(
            IBig::from(numerator),
            UBig::from(denominator),
        )))
    }

    /// The exact value of a finite, non-negative float. `None` for anything else.
    pub fn from_f64(value: f64) -> Option<Self> {
        if !value.is_finite() || value < 0.0 {
            return None;
        }
        RBig::try_from(value).ok().map(Self)
    }

    /// `2^exponent`.
    pub fn power_of_two(exponent: i32) -> Self {
        let power = RBig::from(UBig::ONE << exponent.unsigned_abs() as usize);
        Self(if exponent < 0 {
            RBig::ONE / power
        } else {
            power
        })
    }

    /// From a rational of the arithmetic library. `None` if negative.
    pub fn from_rbig(value: RBig) -> Option<Self> {
        (value.sign() == Sign::Positive || value.is_zero()).then_some(Self(value))
    }

    /// The rational of the arithmetic library.
    pub fn as_rbig(&self) -> &RBig {
        &self.0
    }

    /// Is this zero?
    pub fn is_zero(&self) -> bool {
        self.0.is_zero()
    }

    /// `self / other`. `None` if `other` is zero.
    pub fn checked_div(&self, other: &Self) -> Option<Self> {
        (!other.is_zero()).then(|| Self(&self.0 / &other.0))
    }

    /// The smallest integer at least as large.
    pub fn ceil(&self) -> UBig {
        self.0.ceil().unsigned_abs()
    }

    /// The largest integer at most as large.
    pub fn floor(&self) -> UBig {
        self.0.floor().unsigned_abs()
    }

    /// The smallest float at least as large; infinity beyond the floats.
    pub fn to_f64_up(&self) -> f64 {
        let near = self.nearest_f64();
        match RBig::try_from(near) {
            Ok(exact) if exact < self.0 => near.next_up(),
            _ => near,
        }
    }

    /// The largest float at most as large.
    pub fn to_f64_down(&self) -> f64 {
        let near = self.nearest_f64();
        match RBig::try_from(near) {
            Ok(exact) if exact <= self.0 => near,
            _ => near.next_down(),
        }
    }

    fn nearest_f64(&self) -> f64 {
        match self.0.to_f64() {
            Approximation::Exact(value) | Approximation::Inexact(value, _) => value,
        }
    }
}

impl std::ops::Add for &Ratio {
    type Output = Ratio;
    fn add(self, other: Self) -> Ratio {
        Ratio(&self.0 + &other.0)
    }
}

impl std::ops::Mul for &Ratio {
    type Output = Ratio;
    fn mul(self, other: Self) -> Ratio {
        Ratio(&self.0 * &other.0)
    }
}

impl From<u64> for Ratio {
    fn from(value: u64) -> Self {
        Self(RBig::from(value))
    }
}

impl From<u128> for Ratio {
    fn from(value: u128) -> Self {
        Self(RBig::from(UBig::from(value)))
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for Ratio {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let not_a_number = || Error::NotANumber { what: "ratio" };
        if text.len() > TEXT_CHARS_MAX {
            return Err(not_a_number());
        }
        let (numerator, denominator) = text.split_once('/').unwrap_or((text, "1"));
        let parse = |digits: &str| {
            let all_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            all_digits
                .then(|| UBig::from_str(digits).ok())
                .flatten()
                .ok_or_else(not_a_number)
        };
        let (numerator, denominator) = (parse(numerator)?, parse(denominator)?);
        if denominator.is_zero() {
            return Err(not_a_number());
        }
        Ok(Self(
            RBig::from_parts(IBig::from(numerator), denominator).abs(),
        ))
    }
}

impl Serialize for Ratio {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Ratio {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn floats_are_exact() {
        for value in [0.0, -0.0, 1.0, 0.1, 5e-324, f64::MAX, f64::MIN_POSITIVE] {
            let ratio = Ratio::from_f64(value).expect("finite and not negative");
            assert_eq!((ratio.to_f64_up(), ratio.to_f64_down()), (value, value));
        }
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, -5e-324] {
            assert_eq!(Ratio::from_f64(value), None);
        }
    }

    #[test]
    fn rounding_brackets_what_is_no_float() {
        let third = Ratio::new(1, 3).expect("denominator is 3");
        assert!(third.to_f64_down() < third.to_f64_up());
        assert_eq!(third.to_f64_down().next_up(), third.to_f64_up());
        let huge = &Ratio::from_f64(f64::MAX).expect("finite") * &Ratio::from(3_u64);
        assert_eq!(huge.to_f64_up(), f64::INFINITY);
        assert_eq!(huge.to_f64_down(), f64::MAX);
        let tiny = &Ratio::power_of_two(-1074) * &Ratio::new(1, 3).expect("denominator is 3");
        assert_eq!((tiny.to_f64_down(), tiny.to_f64_up()), (0.0, 5e-324));
    }

    #[test]
    fn rejects_text_that_is_no_ratio() {
        for text in [
            "", "-1", "1/0", "1/-2", "a", "1.5", "1/2/3", "+1", " 1", "1_000", "/", "1/",
        ] {
            assert!(text.parse::<Ratio>().is_err(), "{text:?} parsed");
        }
        assert!("9".repeat(TEXT_CHARS_MAX + 1).parse::<Ratio>().is_err());
    }

    proptest! {
        #[test]
        fn text_round_trips(numerator: u128, denominator in 1_u128..) {
            let ratio = Ratio::new(numerator, denominator).expect("denominator is positive");
            prop_assert_eq!(&ratio.to_string().parse::<Ratio>().expect("own text"), &ratio);
            prop_assert!(Ratio::from_f64(ratio.to_f64_down()).expect("finite") <= ratio);
            prop_assert!(Ratio::from_f64(ratio.to_f64_up()).expect("finite") >= ratio);
        }
    }
}
