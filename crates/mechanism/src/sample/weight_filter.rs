//! A quick look at `m exp(-r d)`: enough digits to decide almost every comparison, and a bound on what is missing. As
//! [`exp_filter`], but with a relative error, so that a large multiplicity may make up for a large distance; and the coin that
//! falls on heads with probability `exp(-r d)`, decided by it almost always and exactly always.

use dashu_ratio::RBig;
use whit_core::{Bits, Ratio};

use super::{Bernoulli, enclosure, exp_filter};

/// `ln 2` in units of `2^-128`, rounded down.
const LN_2: u128 = 0xB172_17F7_D1CF_79AB_C9E3_B398_03F2_F6AF;
/// From here on `exp(-x)` counts as nothing: times `2^128` it is far below one unit of any sum.
const FAR_BITS: usize = 16;

/// Lower ends of weights, within a relative `2^-57`.
pub(super) struct WeightFilter {
    rate: RBig,
    /// `floor(rate 2^111)`, if the rate is below `2^16`.
    rate_scaled: Option<u128>,
}

/// `mantissa · 2^exponent`.
#[derive(Clone, Copy)]
pub(super) struct Float {
    mantissa: u128,
    exponent: i32,
}

impl Float {
    const ZERO: Self = Self {
        mantissa: 0,
        exponent: -(1 << 24),
    };

    /// It is below `2^bits`.
    pub(super) fn bits(self) -> i32 {
        128 - self.mantissa.leading_zeros() as i32 + self.exponent
    }

    /// The largest multiple of `2^unit` that is not above.
    pub(super) fn in_units_of(self, unit: i32) -> u128 {
        let shift = self.exponent - unit;
        if shift >= 0 {
            // The caller has chosen the unit so that nothing is shifted out.
            self.mantissa << shift.min(127)
        } else {
            self.mantissa.checked_shr(shift.unsigned_abs()).unwrap_or(0)
        }
    }
}

impl WeightFilter {
    pub(super) fn new(rate: &RBig) -> Self {
        let small = *rate < RBig::from(1_u32 << FAR_BITS);
        let rate_scaled = small.then(|| {
            u128::try_from(enclosure::floor_scaled(rate, 111)).expect("below 2^16 times 2^111")
        });
        Self {
            rate: rate.clone(),
            rate_scaled,
        }
    }

    /// `x = rate · distance` in units of `2^-64`, at most two units too small; nothing if `x >= 2^16`.
    fn exponent(&self, distance: u128) -> Option<u128> {
        let scaled = if distance == 0 {
            0
        } else if distance < 1 << 47 {
            // The rate is less than one unit of 2^-111 too small, and 2^47 of these are one of 2^-64.
            distance.checked_mul(self.rate_scaled?)? >> 47
        } else {
            let x = &self.rate * RBig::from(distance);
            u128::try_from(enclosure::floor_scaled(&x, 64)).ok()?
        };
        (scaled >> (64 + FAR_BITS) == 0).then_some(scaled)
    }

    /// `l <= multiplicity · exp(-rate · distance) < l (1 + 2^-57)`; or nothing at all, where the weight is below `2^-90000`.
    ///
    /// With `x = k ln 2 + y` the weight is `multiplicity · exp(-y) · 2^-k`. Here `y` is off by at most two units of `2^-64` from
    /// `x` and one from `k ln 2`, and its exponential by at most [`exp_filter::ERROR`]` = 16` more: 19 units, and `exp(-y) 2^64` is
    /// above `2^63 (1 - 2^-12)`, so 38 of them are below `2^-57.6` of it. A multiplicity beyond 64 bits is cut to its first 64,
    /// which adds `2^-63`.
    pub(super) fn weight(&self, multiplicity: u128, distance: u128) -> Float {
        let Some(x) = self.exponent(distance).filter(|_| multiplicity > 0) else {
            return Float::ZERO;
        };
        // Below 2^17, and never above x / ln 2, since the divisor is above 2^32 ln 2.
        let halvings = ((x >> 32) as u64) / ((LN_2 >> 96) as u64 + 1);
        // 2^17 · 2^108 fits; what LN_2 lacks is far less than the unit that rounding up gives back.
        let y = x.saturating_sub(((u128::from(halvings) * (LN_2 >> 20)) >> 44) + 1);
        let exp = exp_filter::exp_neg(y).saturating_sub(19);
        let cut = 64_u32.saturating_sub(multiplicity.leading_zeros());
        Float {
            mantissa: (multiplicity >> cut) * u128::from(exp),
            exponent: cut as i32 - 64 - halvings as i32,
        }
    }
}

/// Coins that fall on heads with probability `exp(-rate · distance)`, exactly.
pub struct ExpCoin(WeightFilter);

impl ExpCoin {
    /// For distances in units of `1/rate`.
    pub fn new(rate: &Ratio) -> Self {
        Self(WeightFilter::new(rate.as_rbig()))
    }

    /// Throws one. The first 64 bits of `U` are compared with an enclosure of the probability; where it does not decide, which
    /// happens about once in `2^58` throws, the digits of the probability are computed and the comparison goes on.
    pub fn heads<B: Bits>(&self, distance: u128, bits: &mut B) -> bool {
        if distance == 0 || self.0.rate.is_zero() {
            return true;
        }
        let exact = || Bernoulli::exp_neg(&self.0.rate * RBig::from(distance));
        if B::WIDTH < 64 {
            return exact().sample(bits);
        }
        let word = bits.word();
        // Beyond 2^16 the probability is less than one unit. Else it is at most two units of 2^-64 too large in the exponent
        // and ERROR in its value.
        let (about, error) = match self.0.exponent(distance) {
            Some(x) => (exp_filter::exp_neg(x), exp_filter::ERROR + 3),
            None => (0, 1),
        };
        if word < about.saturating_sub(error) {
            true
        } else if word > about.saturating_add(error) {
            false
        } else {
            exact().sample_on(word, bits)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt;
    use dashu_int::UBig;
    use whit_testkit::SeededBits;

    fn enclose(x: &RBig, bits: usize) -> (UBig, UBig) {
        let enclosure::Enclosure { low, high } = enclosure::exp_neg(x, bits);
        (low, high)
    }

    /// Quick weights against big integers, at random and at the edges.
    #[test]
    fn quick_weights_stay_within_their_error() {
        let mut data = SeededBits::new(doubt::seed(302));
        let check = |rate: &RBig, multiplicity: u128, distance: u128| {
            let found = WeightFilter::new(rate).weight(multiplicity, distance);
            let x = rate * RBig::from(distance);
            if x >= RBig::from(1_u32 << FAR_BITS) || multiplicity == 0 {
                assert_eq!(found.mantissa, 0);
                return;
            }
            // The far ones take long: only some.
            if x > RBig::from(1000) && !distance.is_multiple_of(64) {
                return;
            }
            // Enough bits to see 100 of the smallest weight: 2^-94549.
            let precision = 300 + (-found.exponent) as usize;
            let (low, high) = enclose(&x, precision);
            let (low, high) = (low * multiplicity, high * multiplicity);
            let scaled = UBig::from(found.mantissa) << (precision as i32 + found.exponent) as usize;
            assert!(scaled <= low, "{multiplicity} exp(-{x}) is too large");
            assert!(
                high < &scaled + (scaled.clone() >> 57),
                "{multiplicity} exp(-{x}) is too small"
            );
        };
        for _ in 0..3000 {
            let rate = RBig::from_parts(
                (data.word() >> data.below(60)).into(),
                UBig::from(1 + (data.word() >> data.below(60))),
            );
            let wide = |data: &mut SeededBits| {
                (u128::from(data.word()) << 64 | u128::from(data.word())) >> data.below(128)
            };
            let (multiplicity, distance) = (wide(&mut data), wide(&mut data));
            check(&rate, multiplicity, distance);
            check(&rate, u128::MAX, data.below(50).into());
        }
        for distance in [0, 1, (1 << 47) - 1, 1 << 47, (1 << 47) + 1] {
            for shift in [0, 30, 47, 60, 111, 200] {
                check(&RBig::from_parts(1.into(), UBig::ONE << shift), 1, distance);
            }
        }
    }

    #[test]
    fn ln_2_is_what_it_says() {
        for (digits, halves) in [(LN_2, true), (LN_2 + 1, false)] {
            let x = RBig::from_parts(UBig::from(digits).into(), UBig::ONE << 128);
            let (low, high) = enclose(&x, 300);
            let half = UBig::ONE << 299;
            assert!(if halves { low > half } else { high < half });
        }
    }

    /// The filter against the exact coin, on the same words.
    #[test]
    fn coins_agree_with_the_exact_ones() {
        let mut data = SeededBits::new(doubt::seed(305));
        for tape in 0..20_000 {
            let rate = Ratio::new(
                u128::from(data.below(1000)),
                1 + u128::from(data.below(1000)),
            )
            .expect("not zero");
            let distance = u128::from(data.word() >> (40 + data.below(24)));
            let exact = Bernoulli::exp_neg(rate.as_rbig() * RBig::from(distance));
            let quick = ExpCoin::new(&rate).heads(distance, &mut SeededBits::new(tape));
            assert_eq!(
                quick,
                exact.sample(&mut SeededBits::new(tape)),
                "tape {tape}, rate {rate}, distance {distance}"
            );
        }
    }

    /// A stream whose first word is the first digit of the probability, or next to it.
    #[test]
    fn close_calls_are_decided_exactly() {
        struct Words(std::vec::IntoIter<u64>);
        impl Bits for Words {
            const WIDTH: u32 = 64;
            fn word(&mut self) -> u64 {
                self.0.next().expect("two words decide")
            }
        }
        let coin = ExpCoin::new(&Ratio::one());
        // floor(exp(-1) 2^64), see enclosure.rs; the next word of exp(-1) is neither 0 nor the largest.
        let digit = 6_786_177_901_268_885_274_u64;
        for (words, heads) in [
            (vec![digit - 1], true),
            (vec![digit, 0], true),
            (vec![digit, u64::MAX], false),
            (vec![digit + 1], false),
        ] {
            assert_eq!(coin.heads(1, &mut Words(words.into_iter())), heads);
        }
    }

    /// Words at and around the probability, where a margin that is too small would decide wrongly.
    #[test]
    fn words_near_the_probability_are_decided_exactly() {
        struct First(Option<u64>, SeededBits);
        impl Bits for First {
            const WIDTH: u32 = 64;
            fn word(&mut self) -> u64 {
                self.0.take().unwrap_or_else(|| self.1.word())
            }
        }
        let mut data = SeededBits::new(78);
        for round in 0..400 {
            let mut side = || 1 + (u128::from(data.word()) >> data.below(60));
            let rate = Ratio::new(side(), side()).expect("not zero");
            let distance = 1 + u128::from(data.word() >> data.below(64));
            let x = rate.as_rbig() * RBig::from(distance);
            if x > RBig::from(60) {
                continue;
            }
            let p = u64::try_from(enclosure::exp_neg(&x, 64).low).unwrap_or(u64::MAX);
            let (coin, exact) = (ExpCoin::new(&rate), Bernoulli::exp_neg(x));
            for offset in 0..60 {
                let word = p.saturating_add(offset).saturating_sub(30);
                let bits = || First(Some(word), SeededBits::new(round));
                assert_eq!(
                    coin.heads(distance, &mut bits()),
                    exact.sample(&mut bits()),
                    "{word:x}"
                );
            }
        }
    }
}
