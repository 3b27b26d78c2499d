//! # Numbers of any size
//! **Definition.** `mantissa · 2^exponent`, with 64 bits of mantissa and so wide an exponent that nothing is ever too large or too
//!   small: exponentials of a million next to each other, and sums of them.
//! **Error.** Sums and products are cut, never rounded up: `x(1 - 2^-62) < x̃ <= x` for one operation on what is exact, and for
//!   constants made here. A result is zero only if the exact one is.
//! **Proof.** The first bit of a mantissa is set, so what is cut off a product is below one unit, `2^-63` of it. A sum loses less than
//!   one unit of the larger part and, if it grows by a bit, less than one more of half the relative size.
//!
//! Also here: `exp(-x)` between two of its multiples, relative to its own size. `x` is halved until it is at most one, and what
//! [`enclosure`](super::enclosure) says of that is squared as often, the lower end rounded down and the upper one up. Each
//! squaring doubles the relative width and adds two units; the bits that are spent for it are added beforehand.

use std::hint::select_unpredictable;

use dashu_base::BitTest;
use dashu_int::UBig;
use dashu_ratio::RBig;

use super::enclosure;

/// Zero, or a positive number with the first bit of its mantissa set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scaled {
    mantissa: u64,
    exponent: i64,
}

impl Scaled {
    /// Nothing. Its exponent is below that of any number, and far from the end of `i64`.
    pub(super) const ZERO: Self = Self {
        mantissa: 0,
        exponent: i64::MIN / 4,
    };

    /// A whole number, exactly.
    pub(super) fn from_integer(value: u64) -> Self {
        match value {
            0 => Self::ZERO,
            _ => Self {
                mantissa: value << value.leading_zeros(),
                exponent: -i64::from(value.leading_zeros()),
            },
        }
    }

    /// `exp(-x)`, for `x >= 0`.
    pub(super) fn exp_neg(x: &RBig) -> Self {
        let near = Near::exp_neg(x, CONSTANT_BITS);
        Self::from_big(near.low, -near.shift)
    }

    /// `exp(x)`, for `x >= 0`.
    pub(super) fn exp(x: &RBig) -> Self {
        let near = Near::exp_neg(x, CONSTANT_BITS);
        let bits = 2 * near.high.bit_len();
        Self::from_big((UBig::ONE << bits) / near.high, near.shift - bits as i64)
    }

    /// `1/value`, for `value > 0`.
    pub(super) fn reciprocal(value: u64) -> Self {
        let bits = 2 * CONSTANT_BITS;
        Self::from_big((UBig::ONE << bits) / value, -(bits as i64))
    }

    /// `value · 2^exponent`, for a value of more than 64 bits.
    fn from_big(value: UBig, exponent: i64) -> Self {
        let drop = value.bit_len() - 64;
        Self {
            mantissa: u64::try_from(value >> drop).expect("64 bits are left"),
            exponent: exponent + drop as i64,
        }
    }

    /// It is below `2^bits` and, unless it is zero, at least half of that.
    #[inline]
    pub(super) fn bits(self) -> i64 {
        self.exponent + 64
    }

    /// A positive number that is smaller by many bits.
    pub(super) fn far_below(self) -> Self {
        Self {
            mantissa: 1 << 63,
            exponent: self.exponent - 128,
        }
    }

    /// Is it nothing?
    #[inline]
    pub(super) fn is_zero(self) -> bool {
        self.mantissa == 0
    }

    /// The product.
    #[inline]
    pub(super) fn times(self, other: Self) -> Self {
        let product = u128::from(self.mantissa) * u128::from(other.mantissa);
        if product == 0 {
            return Self::ZERO;
        }
        // In [2^126, 2^128).
        let drop = 63 + (product >> 127) as u32;
        Self {
            mantissa: (product >> drop) as u64,
            exponent: self.exponent + other.exponent + i64::from(drop),
        }
    }

    /// The sum.
    #[inline]
    pub(super) fn plus(self, other: Self) -> Self {
        // Which of them is larger is often unpredictable, so there are no branches here.
        let swap = self.exponent < other.exponent;
        let large = select_unpredictable(swap, other.mantissa, self.mantissa);
        let small = select_unpredictable(swap, self.mantissa, other.mantissa);
        let exponent = self.exponent.max(other.exponent);
        let apart = self.exponent.abs_diff(other.exponent);
        let shifted = select_unpredictable(apart < 64, small >> (apart & 63), 0);
        let (sum, carry) = large.overflowing_add(shifted);
        let carry = u32::from(carry);
        Self {
            mantissa: (sum >> carry) | (u64::from(carry) << 63),
            exponent: exponent + i64::from(carry),
        }
    }

    /// `floor(self / 2^unit)`, for a result of at most 63 bits.
    #[inline]
    pub(super) fn in_units_of(self, unit: i64) -> u64 {
        let drop = (unit - self.exponent).clamp(1, 64) as u32;
        self.mantissa.checked_shr(drop).unwrap_or(0)
    }
}

#[cfg(test)]
impl Scaled {
    /// The number itself.
    pub(super) fn exact(self) -> RBig {
        if self.is_zero() {
            return RBig::ZERO;
        }
        let power = RBig::from(UBig::ONE << self.exponent.unsigned_abs() as usize);
        let mantissa = RBig::from(self.mantissa);
        if self.exponent < 0 {
            mantissa / power
        } else {
            mantissa * power
        }
    }
}

/// Bits of constants before they are cut to 64.
const CONSTANT_BITS: usize = 80;

/// `low 2^-shift <= exp(-x) <= high 2^-shift`.
pub(super) struct Near {
    pub(super) low: UBig,
    pub(super) high: UBig,
    pub(super) shift: i64,
}

impl Near {
    /// Ends that differ by less than `2^-bits` of themselves. `x` must be between zero and `2^58`.
    pub(super) fn exp_neg(x: &RBig, bits: usize) -> Self {
        let ceil = UBig::try_from(x.ceil()).expect("not negative");
        // x <= 2^halvings.
        let halvings = ceil.bit_len();
        let work = bits + halvings + 16;
        let small = x / RBig::from(UBig::ONE << halvings);
        let enclosure::Enclosure { mut low, mut high } = enclosure::exp_neg(&small, work);
        let mut shift = work as i64;
        for _ in 0..halvings {
            (low, high) = (&low * &low, &high * &high);
            let drop = low.bit_len() - work;
            low >>= drop;
            high = (high + ((UBig::ONE << drop) - UBig::ONE)) >> drop;
            shift = 2 * shift - drop as i64;
        }
        Self { low, high, shift }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_core::Bits;
    use whit_testkit::SeededBits;

    /// `x(1 - 2^-62) < found <= x`.
    fn check(found: Scaled, x: &RBig) {
        let found = found.exact();
        let unit = RBig::from_parts(1.into(), UBig::ONE << 62);
        assert!(
            found <= *x && (found > x * (RBig::ONE - unit) || x.is_zero()),
            "{x}"
        );
    }

    #[test]
    fn one_operation_loses_less_than_one_unit() {
        let mut bits = SeededBits::new(551);
        let draw = |bits: &mut SeededBits| {
            let x = Scaled::from_integer(bits.word() >> bits.below(65).min(63));
            if x.is_zero() {
                return x;
            }
            Scaled {
                exponent: x.exponent + bits.below(300) as i64 - 150,
                ..x
            }
        };
        for _ in 0..5000 {
            let (a, b) = (draw(&mut bits), draw(&mut bits));
            check(a.times(b), &(a.exact() * b.exact()));
            check(a.plus(b), &(a.exact() + b.exact()));
            assert_eq!((a.plus(b), a.times(b)), (b.plus(a), b.times(a)));
            let below = RBig::from(UBig::ONE << 1000) * a.exact();
            let bound = RBig::from(UBig::ONE << (1000 + a.bits().max(-1000)) as usize);
            assert!(a.is_zero() || (below < bound && RBig::from(2) * below >= bound));
            let unit = a.bits() - 1 - bits.below(62) as i64;
            if !a.is_zero() {
                let scale = Scaled {
                    mantissa: 1 << 63,
                    exponent: unit - 63,
                };
                let floor = (a.exact() / scale.exact()).floor();
                assert_eq!(floor, a.in_units_of(unit).into());
            }
        }
        assert!(Scaled::ZERO.plus(Scaled::ZERO).is_zero());
        assert_eq!(Scaled::ZERO.in_units_of(-1000), 0);
    }

    #[test]
    fn constants_are_near() {
        let unit = RBig::from_parts(1.into(), UBig::ONE << 62);
        for (numerator, denominator) in [(0, 1), (1, 1_u64 << 50), (1, 3), (1, 1), (7, 2), (700, 3)]
        {
            let x = RBig::from_parts(numerator.into(), UBig::from(denominator));
            let (low, high) = super::super::weighted::exp_neg(&x, 2000);
            let bound = |exp: UBig| RBig::from(exp) / RBig::from(UBig::ONE << 2000);
            let (low, high) = (bound(low), bound(high));
            let found = Scaled::exp_neg(&x).exact();
            assert!(found <= high && found > &low * (RBig::ONE - &unit), "{x}");
            let found = Scaled::exp(&x).exact();
            let one = RBig::ONE;
            assert!(&found * &low <= one && &found * &high > &one - &unit, "{x}");
            for bits in [10, 64, 300] {
                let near = Near::exp_neg(&x, bits);
                let scale = RBig::from(UBig::ONE << near.shift as usize);
                assert!(RBig::from(near.low.clone()) <= &high * &scale);
                assert!(RBig::from(near.high.clone()) >= &low * &scale);
                assert!((&near.high - &near.low) << bits < near.low);
            }
        }
        // exp(-10^12) is about 2^-1442695040888.96.
        let far = Scaled::exp_neg(&RBig::from(1_000_000_000_000_u64));
        assert_eq!(far.bits(), -1_442_695_040_888);
        for value in [1, 2, 3, 1000, u64::MAX] {
            check(Scaled::reciprocal(value), &(RBig::ONE / RBig::from(value)));
            assert_eq!(Scaled::from_integer(value).exact(), RBig::from(value));
        }
    }
}
