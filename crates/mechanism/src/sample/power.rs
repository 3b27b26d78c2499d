//! # Powers, rounded up
//! **Definition.** A number at least `exp(-g m)`, for any integer `m` and a rational rate `g >= 0`, that is either above it by a
//!   factor of less than `1 + 2^-51`, or below `2^-143`.
//! **Method.** One table for each six bits of `m`, rounded up to 64 bits. Ranks are visited in order, so that the product of the
//!   upper tables is at hand: one multiplication for each.
//! **Proof.** The first entry of a table is above the truth by a factor of at most `1 + 2^-63 + 2^-76`, further ones are its
//!   multiples, each rounded up by at most `1 + 2^-63`: at most `2 · 63` such factors. Eleven tables, one factor from outside
//!   (made in the same way as first entries) and the products of them make less than `1500 < 2^11` of them, hence `1 + 2^-52` and,
//!   second orders included, less than `1 + 2^-51`. What falls below `2^-144` on the way is replaced by it, all factors are at most
//!   one, and below `2^-143` further ones may be left out.

use dashu_base::BitTest;
use dashu_int::UBig;
use dashu_ratio::RBig;

use super::weighted;

const DIGIT_BITS: usize = 6;
const DIGITS: usize = 1 << DIGIT_BITS;
const TABLES: usize = 11;
/// Powers below `2^-FAR` count as that: times `2^62 · 2^64` it is far below one, as is twice as much, and rounded up it is one.
const FAR: u32 = 144;
/// `exp(-100) < 2^-144`.
const FAR_X: u64 = 100;

/// `mantissa · 2^-(63 + shift)`, with the first bit of the mantissa set: a number in `(0, 1]`.
#[derive(Clone, Copy)]
pub(super) struct Power {
    mantissa: u64,
    shift: u32,
}

impl Power {
    pub(super) const ONE: Self = Self {
        mantissa: 1 << 63,
        shift: 0,
    };
    const LEAST: Self = Self {
        mantissa: 1 << 63,
        shift: FAR,
    };

    /// `exp(-x)`, rounded up.
    pub(super) fn exp_neg(x: &RBig) -> Self {
        if x.is_zero() {
            return Self::ONE;
        }
        if *x >= RBig::from(FAR_X) {
            return Self::LEAST;
        }
        // exp(-x) is above 2^-(3x/2), so 79 of these bits are left; the enclosure is three units wide at most.
        let whole = usize::try_from(x.ceil()).expect("at most a hundred");
        let precision = 80 + 3 * whole / 2;
        let (_, high) = weighted::exp_neg(x, precision);
        let drop = high.bit_len() - 64;
        let mantissa = (high + ((UBig::ONE << drop) - UBig::ONE)) >> drop;
        let shift = (precision - 63 - drop) as u32;
        match u64::try_from(mantissa) {
            Ok(mantissa) => Self { mantissa, shift },
            // Rounded up to 2^64.
            Err(_) => Self {
                mantissa: 1 << 63,
                shift: shift - 1,
            },
        }
    }

    /// The product, rounded up.
    #[inline]
    fn times(self, other: Self) -> Self {
        let product = u128::from(self.mantissa) * u128::from(other.mantissa);
        // In [2^126, 2^128). It is below 2^127 if both are one, so a shift of zero is not lowered.
        let carry = (product >> 127) as u32;
        let drop = 63 + carry;
        let mantissa = (product + ((1_u128 << drop) - 1)) >> drop;
        let shift = self.shift + other.shift - carry;
        if shift > FAR {
            return Self::LEAST;
        }
        match u64::try_from(mantissa) {
            Ok(mantissa) => Self { mantissa, shift },
            Err(_) => Self {
                mantissa: 1 << 63,
                shift: shift - 1,
            },
        }
    }

    /// `ceil(count · 2^unit_bits · self)`, for a count below `2^62`.
    #[inline]
    pub(super) fn weigh(self, count: u64, unit_bits: u32) -> u128 {
        let product = u128::from(count) * u128::from(self.mantissa);
        let drop = 63 + self.shift;
        if drop < unit_bits {
            return product << (unit_bits - drop);
        }
        let drop = drop - unit_bits;
        if drop > 126 {
            return u128::from(product > 0);
        }
        (product + ((1_u128 << drop) - 1)) >> drop
    }
}

/// The powers of `exp(-rate)`.
#[derive(Clone)]
pub(super) struct Powers {
    rate: RBig,
    /// `tables[l][d]` is at least `exp(-rate · d · 64^l)`.
    tables: Vec<[Power; DIGITS]>,
}

impl Powers {
    pub(super) fn new(rate: &RBig) -> Self {
        let table = |level: usize| {
            let x = rate * RBig::from(UBig::ONE << (DIGIT_BITS * level));
            let first = Power::exp_neg(&x);
            let mut power = Power::ONE;
            std::array::from_fn(|digit| {
                if digit > 0 {
                    power = power.times(first);
                }
                power
            })
        };
        Self {
            rate: rate.clone(),
            tables: (0..TABLES).map(table).collect(),
        }
    }

    pub(super) fn rate(&self) -> &RBig {
        &self.rate
    }

    /// Powers times a factor.
    pub(super) fn ladder(&self, factor: Power) -> Ladder<'_> {
        Ladder {
            powers: self,
            factor,
            digits: u64::MAX,
            above: factor,
        }
    }
}

/// Powers for exponents that change slowly.
pub(super) struct Ladder<'a> {
    powers: &'a Powers,
    factor: Power,
    /// The exponent without its last digit, and the power that belongs to it, with the factor.
    digits: u64,
    above: Power,
}

impl Ladder<'_> {
    /// The power for this exponent.
    #[inline]
    pub(super) fn at(&mut self, exponent: u64) -> Power {
        if exponent >> DIGIT_BITS != self.digits {
            self.climb(exponent >> DIGIT_BITS);
        }
        if self.above.shift == FAR {
            // What is below 2^-143 need not be close.
            return self.above;
        }
        self.above
            .times(self.powers.tables[0][exponent as usize % DIGITS])
    }

    fn climb(&mut self, digits: u64) {
        self.digits = digits;
        self.above = self.factor;
        let mut rest = digits;
        for table in &self.powers.tables[1..] {
            self.above = self.above.times(table[rest as usize % DIGITS]);
            rest >>= DIGIT_BITS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_core::Bits;
    use whit_testkit::SeededBits;

    /// `power` against an enclosure: not below, and above by less than `2^-51`; or both below `2^-143`.
    fn check(power: Power, x: &RBig) {
        let precision = 400;
        let (low, high) = weighted::exp_neg(x, precision);
        let scaled = UBig::from(power.mantissa) << (precision - 63 - power.shift as usize);
        assert!(scaled >= low, "exp(-{x}) is above");
        if power.shift < FAR {
            assert!(scaled <= &high + (&high >> 51), "exp(-{x}) is far below");
        } else {
            assert!(
                high < UBig::ONE << (precision + 1 - FAR as usize),
                "exp(-{x}) is larger"
            );
        }
    }

    #[test]
    fn powers_are_above_and_close() {
        let mut bits = SeededBits::new(511);
        for _ in 0..300 {
            let rate = RBig::from_parts(
                (bits.word() >> bits.below(64)).into(),
                UBig::from(1 + (bits.word() >> bits.below(64))),
            );
            let offset = RBig::from_parts(bits.below(1000).into(), UBig::from(1000_u32));
            let offset = &rate * offset;
            let powers = Powers::new(&rate);
            let mut ladder = powers.ladder(Power::exp_neg(&offset));
            for _ in 0..20 {
                let exponent = bits.word() >> bits.below(64);
                let x = &rate * RBig::from(exponent) + &offset;
                check(ladder.at(exponent), &x);
            }
        }
        // Small rates and every digit in use; a rate of zero; one beyond all bounds.
        for denominator in [70, 64, 58, 20, 1] {
            let rate = RBig::from_parts(1.into(), UBig::ONE << denominator);
            let powers = Powers::new(&rate);
            for exponent in [0, 1, 63, 64, 4095, u64::MAX / 3, u64::MAX] {
                check(
                    powers.ladder(Power::ONE).at(exponent),
                    &(&rate * RBig::from(exponent)),
                );
            }
        }
        let still = Powers::new(&RBig::ZERO);
        assert_eq!(still.ladder(Power::ONE).at(u64::MAX).weigh(3, 64), 3 << 64);
        let steep = Powers::new(&RBig::from(UBig::ONE << 1000));
        assert_eq!(steep.ladder(Power::ONE).at(0).weigh(3, 64), 3 << 64);
        assert_eq!(steep.ladder(Power::ONE).at(1).weigh((1 << 62) - 1, 64), 1);
    }

    #[test]
    fn weights_are_rounded_up() {
        let half = Power {
            mantissa: 1 << 63,
            shift: 1,
        };
        for (count, unit_bits, expected) in [
            (1, 64, 1 << 63),
            (3, 0, 2),
            (4, 0, 2),
            (0, 64, 0),
            ((1 << 62) - 1, 64, ((1_u128 << 62) - 1) << 63),
        ] {
            assert_eq!(half.weigh(count, unit_bits), expected);
        }
        assert_eq!(
            (Power::LEAST.weigh(1, 64), Power::LEAST.weigh(0, 64)),
            (1, 0)
        );
    }
}
