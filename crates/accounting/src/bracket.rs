//! Two floats with the truth between them.
//!
//! Operations round outward, so that a bracket computed from brackets holds the true value whenever its operands did. What
//! overflows becomes infinite on its side; a bracket is never empty and never holds NaN.

use whit_core::round;

/// `lower <= truth <= upper`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bracket {
    lower: f64,
    upper: f64,
}

impl Bracket {
    /// Exactly zero.
    pub const ZERO: Self = Self {
        lower: 0.0,
        upper: 0.0,
    };

    /// Both ends. A NaN, or ends in the wrong order, give the bracket that holds everything: nothing is known.
    pub fn new(lower: f64, upper: f64) -> Self {
        if lower <= upper {
            Self { lower, upper }
        } else {
            Self {
                lower: f64::NEG_INFINITY,
                upper: f64::INFINITY,
            }
        }
    }

    /// A number that is known exactly.
    pub fn exact(value: f64) -> Self {
        Self::new(value, value)
    }

    /// `value` with everything that is at most `error` away; an error that is not a number is infinite.
    pub fn around(value: f64, error: f64) -> Self {
        Self::new(round::sub_down(value, error), round::add_up(value, error))
    }

    /// The lower end.
    pub fn lower(self) -> f64 {
        self.lower
    }

    /// The upper end.
    pub fn upper(self) -> f64 {
        self.upper
    }

    /// A float between both ends: the middle, if both are finite.
    pub fn estimate(self) -> f64 {
        if self.lower == self.upper || !self.lower.is_finite() {
            self.upper
        } else if self.upper.is_finite() {
            self.lower.midpoint(self.upper)
        } else {
            self.lower
        }
    }

    /// How far the ends are apart, as a share of the upper one; 0 if they are equal.
    pub fn relative_width(self) -> f64 {
        if self.lower == self.upper {
            0.0
        } else {
            (self.upper - self.lower) / self.upper.abs().max(self.lower.abs())
        }
    }

    /// Whether `value` is not excluded.
    pub fn holds(self, value: f64) -> bool {
        self.lower <= value && value <= self.upper
    }

    /// The part within `[low, high]`, for a truth that is known to be there.
    pub fn clamp(self, low: f64, high: f64) -> Self {
        Self::new(self.lower.clamp(low, high), self.upper.clamp(low, high))
    }

    /// What holds both.
    pub fn hull(self, other: Self) -> Self {
        Self::new(self.lower.min(other.lower), self.upper.max(other.upper))
    }

    /// The larger of the two truths.
    pub fn max(self, other: Self) -> Self {
        Self::new(self.lower.max(other.lower), self.upper.max(other.upper))
    }

    /// What both hold: two proofs of one number. If they exclude each other, one of them is wrong, and the hull is returned.
    pub fn meet(self, other: Self) -> Self {
        let (lower, upper) = (self.lower.max(other.lower), self.upper.min(other.upper));
        if lower <= upper {
            Self { lower, upper }
        } else {
            self.hull(other)
        }
    }

    /// The square root of a number that is not negative.
    pub fn sqrt(self) -> Self {
        Self::new(
            round::sqrt_down(self.lower.max(0.0)),
            round::sqrt_up(self.upper.max(0.0)),
        )
    }

    /// The exponential function.
    pub fn exp(self) -> Self {
        Self::new(round::exp_down(self.lower), round::exp_up(self.upper))
    }

    /// `e^x - 1`. `libm` documents less than one unit in the last place for `expm1`; two are stepped outward.
    pub fn exp_m1(self) -> Self {
        let down = |x: f64| {
            if x == 0.0 {
                0.0
            } else {
                libm::expm1(x).next_down().next_down().max(-1.0)
            }
        };
        let up = |x: f64| {
            if x == 0.0 {
                0.0
            } else {
                libm::expm1(x).next_up().next_up()
            }
        };
        Self::new(down(self.lower), up(self.upper))
    }

    /// The natural logarithm of a number that is not negative; `-∞` at zero.
    pub fn ln(self) -> Self {
        let down = |x: f64| {
            if x <= 0.0 {
                f64::NEG_INFINITY
            } else {
                round::ln_down(x)
            }
        };
        let up = |x: f64| {
            if x <= 0.0 {
                f64::NEG_INFINITY
            } else {
                round::ln_up(x)
            }
        };
        Self::new(down(self.lower), up(self.upper))
    }

    /// `ln(1 + x)` for `x >= -1`.
    pub fn ln_1p(self) -> Self {
        let down = |x: f64| {
            if x <= -1.0 {
                f64::NEG_INFINITY
            } else if x == 0.0 {
                0.0
            } else {
                libm::log1p(x).next_down().next_down()
            }
        };
        let up = |x: f64| {
            if x <= -1.0 {
                f64::NEG_INFINITY
            } else if x == 0.0 {
                0.0
            } else {
                libm::log1p(x).next_up().next_up()
            }
        };
        Self::new(down(self.lower), up(self.upper))
    }
}

impl From<f64> for Bracket {
    fn from(value: f64) -> Self {
        Self::exact(value)
    }
}

impl std::ops::Add for Bracket {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self::new(
            round::add_down(self.lower, other.lower),
            round::add_up(self.upper, other.upper),
        )
    }
}

impl std::ops::Neg for Bracket {
    type Output = Self;
    fn neg(self) -> Self {
        Self::new(-self.upper, -self.lower)
    }
}

impl std::ops::Sub for Bracket {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl std::ops::Mul for Bracket {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        // Zero times infinity is zero here: the infinite end stands for finite numbers without a bound.
        let product = |multiply: fn(f64, f64) -> f64, a: f64, b: f64| {
            if a == 0.0 || b == 0.0 {
                0.0
            } else {
                multiply(a, b)
            }
        };
        let pairs = [
            (self.lower, other.lower),
            (self.lower, other.upper),
            (self.upper, other.lower),
            (self.upper, other.upper),
        ];
        let lower = pairs.map(|(a, b)| product(round::mul_down, a, b));
        let upper = pairs.map(|(a, b)| product(round::mul_up, a, b));
        Self::new(
            lower.into_iter().fold(f64::INFINITY, f64::min),
            upper.into_iter().fold(f64::NEG_INFINITY, f64::max),
        )
    }
}

impl std::ops::Div for Bracket {
    type Output = Self;
    /// By a bracket that holds zero: nothing is known.
    fn div(self, other: Self) -> Self {
        if other.holds(0.0) {
            return Self::new(f64::NEG_INFINITY, f64::INFINITY);
        }
        let pairs = [
            (self.lower, other.lower),
            (self.lower, other.upper),
            (self.upper, other.lower),
            (self.upper, other.upper),
        ];
        let lower = pairs.map(|(a, b)| round::div_down(a, b));
        let upper = pairs.map(|(a, b)| round::div_up(a, b));
        if lower.iter().chain(&upper).any(|end| end.is_nan()) {
            return Self::new(f64::NEG_INFINITY, f64::INFINITY);
        }
        Self::new(
            lower.into_iter().fold(f64::INFINITY, f64::min),
            upper.into_iter().fold(f64::NEG_INFINITY, f64::max),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use whit_core::Ratio;

    fn ratio(value: f64) -> Ratio {
        Ratio::from_f64(value).expect("finite and not negative")
    }

    proptest! {
        /// Against exact rationals, for numbers that are not negative.
        #[test]
        fn operations_hold_the_truth(a in 0.0..1e6_f64, b in 1e-6..1e6_f64) {
            let (x, y) = (Bracket::exact(a), Bracket::exact(b));
            let check = |found: Bracket, truth: Ratio| {
                ratio(found.lower().max(0.0)) <= truth && truth <= ratio(found.upper())
            };
            prop_assert!(check(x + y, &ratio(a) + &ratio(b)));
            prop_assert!(check(x * y, &ratio(a) * &ratio(b)));
            prop_assert!(check(x / y, ratio(a).checked_div(&ratio(b)).expect("b is positive")));
            let root = x.sqrt();
            prop_assert!(&ratio(root.lower()) * &ratio(root.lower()) <= ratio(a));
            prop_assert!(&ratio(root.upper()) * &ratio(root.upper()) >= ratio(a));
        }

        #[test]
        fn functions_undo_each_other(a in -30.0..30.0_f64) {
            let x = Bracket::exact(a);
            prop_assert!(x.exp().ln().holds(a));
            prop_assert!(x.exp_m1().ln_1p().holds(a));
            prop_assert!((x - x).holds(0.0) && (-x).holds(-a));
        }
    }

    #[test]
    fn nothing_is_known_of_what_is_no_number() {
        let unknown = Bracket::new(f64::NAN, 1.0);
        assert!(unknown.holds(f64::MAX) && unknown.holds(f64::MIN));
        assert!((Bracket::exact(1.0) / Bracket::new(-1.0, 1.0)).holds(1e300));
        assert_eq!(Bracket::exact(0.0) * unknown, Bracket::ZERO);
    }

    #[test]
    fn two_proofs_meet() {
        let (a, b) = (Bracket::new(1.0, 3.0), Bracket::new(2.0, 4.0));
        assert_eq!(a.meet(b), Bracket::new(2.0, 3.0));
        assert_eq!(a.hull(b), Bracket::new(1.0, 4.0));
        assert_eq!(a.max(b), Bracket::new(2.0, 4.0));
    }
}
