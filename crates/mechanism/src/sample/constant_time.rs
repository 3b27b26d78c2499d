//! # Samplers whose time does not tell
//! The exact samplers take longer for larger noise, and whoever can time a server closely enough learns something about the
//! noise. \[JMRO22\] These take the same steps whatever they draw: a fixed number of words, compared with fixed tables,
//! combined without a branch.
//!
//! **Definition.** Every comparison `U < p` uses the first 128 bits of `U` and of `p`.
//! **Error.** Cutting `p` at 128 bits changes the event's probability by less than `2^-128`. The total-variation distance from
//!   the exact sampler is at most the sum over all comparisons, plus the mass beyond the table, which is below `2^-128` too.
//!   It is computed in [`ConstantTimeLaplace::total_variation`] and [`ConstantTimeGaussian::total_variation`], and becomes
//!   part of the event.
//! **Laplace.** The digits of a geometric are independent (see [`geometric`](super::geometric)), so a fixed number of
//!   comparisons, about `log2(scale) + 8`, draws one at any scale.
//! **Gaussian.** `|Z| = #{k >= 1 : U < Pr[|Z| >= k]}`, counted over the whole table, about `13.4 σ` rows; so `σ <= 256`. Coarsen
//!   the grid of the answer to get there.

use dashu_int::UBig;
use dashu_ratio::RBig;
use whit_core::{Bits, Probability, Ratio, Scale};

use super::enclosure::{self, Enclosure};
use super::threshold::Bernoulli;

/// Digits are drawn up to the place value `2^n >= 90 b`, since `exp(-90) < 2^-128`.
const TAIL: u64 = 90;

/// Draws 128 bits, from as many words as that takes.
#[inline]
fn wide<B: Bits>(bits: &mut B) -> u128 {
    let (mut value, mut have) = (0_u128, 0);
    while have < 128 {
        // The top bits of a word that is only needed in part.
        let take = B::WIDTH.min(128 - have);
        value = (value << take) | u128::from(bits.word() >> (B::WIDTH - take));
        have += take;
    }
    value
}

/// `1` if `a < b`, else `0`, from the borrow of a subtraction and without a branch.
#[inline]
fn less(a: u128, b: u128) -> u128 {
    u128::from(a.overflowing_sub(b).1)
}

/// Discrete Laplace noise in a fixed number of steps.
#[derive(Clone)]
pub struct ConstantTimeLaplace {
    zero: u128,
    digits: Vec<u128>,
}

impl ConstantTimeLaplace {
    /// Prepares about `log2(scale) + 8` comparisons.
    pub fn new(scale: &Scale) -> Self {
        let scale = scale.ratio().as_rbig();
        let enough = scale * RBig::from(TAIL);
        let mut digits = Vec::new();
        let mut power = RBig::ONE;
        while power < enough {
            digits.push(Bernoulli::logistic(&power / scale).first_128_bits());
            power *= RBig::from(2);
        }
        Self {
            zero: Bernoulli::tanh_half(RBig::ONE / scale).first_128_bits(),
            digits,
        }
    }

    /// How far the drawn distribution may be from the exact one.
    pub fn total_variation(&self) -> Probability {
        // One comparison for zero, one per digit, and the digits that are left out.
        units(self.digits.len() as u128 + 2)
    }

    /// Draws `Z`.
    #[inline]
    pub fn sample<B: Bits>(&self, bits: &mut B) -> i128 {
        let nonzero = 1 - less(wide(bits), self.zero);
        let negative = u128::from(bits.word() >> (B::WIDTH - 1));
        let mut magnitude = 0_u128;
        for (i, &p) in self.digits.iter().enumerate() {
            magnitude |= less(wide(bits), p) << i;
        }
        signed((magnitude + 1) * nonzero, negative)
    }
}

/// Discrete Gaussian noise in a fixed number of steps.
#[derive(Clone)]
pub struct ConstantTimeGaussian {
    /// `floor(Pr[|Z| >= k] 2^128)` for `k = 1, 2, …`, or one less.
    tails: Vec<u128>,
}

impl ConstantTimeGaussian {
    /// The largest scale for which the table is short enough to be read through for each draw.
    pub fn scale_max() -> Ratio {
        Ratio::from(256_u64)
    }

    /// Computes the table. `None` beyond [`scale_max`](Self::scale_max).
    pub fn new(scale: &Scale) -> Option<Self> {
        (*scale.ratio() <= Self::scale_max()).then(|| Self {
            tails: tails(scale.ratio().as_rbig()),
        })
    }

    /// How far the drawn distribution may be from the exact one.
    pub fn total_variation(&self) -> Probability {
        // One uniform decides all rows. It makes a difference if it falls between a row and its exact tail, at most two units
        // each, or below the tail of the first row that is left out, at most two units too.
        units(2 * self.tails.len() as u128 + 2)
    }

    /// Draws `Z`.
    #[inline]
    pub fn sample<B: Bits>(&self, bits: &mut B) -> i128 {
        let negative = u128::from(bits.word() >> (B::WIDTH - 1));
        let uniform = wide(bits);
        let magnitude: u128 = self.tails.iter().map(|&tail| less(uniform, tail)).sum();
        signed(magnitude, negative)
    }
}

/// `count 2^-128`.
fn units(count: u128) -> Probability {
    let ratio = &Ratio::from(count) * &Ratio::power_of_two(-128);
    Probability::new(ratio).expect("tables are far shorter than 2^128")
}

/// The magnitude with a sign, without a branch: `(m ^ -s) + s`.
#[inline]
fn signed(magnitude: u128, negative: u128) -> i128 {
    ((magnitude ^ 0_u128.wrapping_sub(negative)).wrapping_add(negative)) as i128
}

/// The tails `Pr[|Z| >= k]`, `k = 1, 2, …`, cut at 128 bits: each exact value minus at most two units of `2^-128`.
///
/// **Proof.** Weights `w_k = exp(-k²/(2σ²))` are enclosed by the recurrence `w_(k+1) = w_k r_k`, `r_(k+1) = r_k c` with `c =
/// exp(-1/σ²)`, rounded outward at `WORK` bits, up to a `K` with `w_K < 2^-170`. Ratios of weights only fall, so all that follow
/// add up to at most `w_K / (1 - r_K)`. Tails are quotients of sums of enclosures: from below with the largest total, from above
/// with the smallest. That both ends, rounded outward, are at most two units apart is checked for every row.
fn tails(sigma: &RBig) -> Vec<u128> {
    const WORK: usize = 224;
    let one = UBig::ONE << WORK;
    let rate = RBig::ONE / (sigma * sigma);
    let Enclosure {
        low: c_low,
        high: c_high,
    } = enclosure::exp_neg(&rate, WORK);
    let Enclosure {
        low: mut r_low,
        high: mut r_high,
    } = enclosure::exp_neg(&(rate / RBig::from(2)), WORK);
    let (mut w_low, mut w_high) = (one.clone(), one.clone());
    let down = |a: &UBig, b: &UBig| (a * b) >> WORK;
    let up = |a: &UBig, b: &UBig| ((a * b) >> WORK) + UBig::ONE;
    let mut weights = Vec::new();
    // exp(-k²/(2σ²)) < 2^-170 from k = 15.4 σ on: at most 3931 rounds.
    let negligible = UBig::ONE << (WORK - 170);
    while w_high > negligible {
        (w_low, w_high) = (down(&w_low, &r_low), up(&w_high, &r_high));
        (r_low, r_high) = (down(&r_low, &c_low), up(&r_high, &c_high));
        weights.push((w_low.clone(), w_high.clone()));
    }
    // Beyond the last weight w_K < 2^-170 the ratios are at most r_K, so the rest is below w_K / (1 - r_K).
    let rest = (&w_high << WORK) / (&one - &r_high).max(UBig::ONE) + UBig::ONE;
    let (mut low, mut high) = (UBig::ZERO, rest);
    let mut sums = Vec::new();
    for (w_low, w_high) in weights.iter().rev() {
        low += w_low;
        high += w_high;
        sums.push((low.clone(), high.clone()));
    }
    // Pr[|Z| >= k] = 2 S_k / (1 + 2 S_1).
    let (total_low, total_high) = (&one + (&low << 1), &one + (&high << 1));
    let tail = |(low, high): &(UBig, UBig)| {
        let floor = ((low << 1) << 128) / &total_high;
        let ceiling = ((high << 1) << 128) / &total_low + UBig::ONE;
        assert!(
            ceiling - &floor <= UBig::from(2_u32),
            "the enclosures are far narrower than that"
        );
        u128::try_from(floor).expect("a tail is below one")
    };
    let mut tails: Vec<u128> = sums.iter().rev().map(tail).collect();
    while tails.last() == Some(&0) {
        tails.pop();
    }
    tails
}

#[cfg(test)]
mod tests {
    use super::super::oracle;
    use super::*;
    use whit_testkit::SeededBits;

    fn scale(numerator: u128, denominator: u128) -> Scale {
        Scale::new(Ratio::new(numerator, denominator).expect("not zero")).expect("in range")
    }

    fn as_ratio(units: u128) -> RBig {
        RBig::from(UBig::from(units)) / RBig::from(UBig::ONE << 128)
    }

    /// The whole table against the oracle's pmf: the distance is exactly what is claimed, or less.
    #[test]
    fn gaussian_tables_are_as_close_as_they_say() {
        for (numerator, denominator) in [(1, 1), (1, 3), (10, 1), (37, 10), (1, 1 << 30), (256, 1)]
        {
            let scale = scale(numerator, denominator);
            let table = ConstantTimeGaussian::new(&scale).expect("short enough");
            let pmf = oracle::gaussian_pmf(
                scale.ratio().as_rbig(),
                40 + 28 * numerator.div_ceil(denominator) as u64,
            );
            let (mut tail, mut tail_before, mut entry_before) =
                (RBig::ZERO, RBig::ZERO, RBig::ZERO);
            let mut twice_distance = RBig::ZERO;
            for (k, p) in pmf.iter().enumerate().rev() {
                tail += if k == 0 { p.clone() } else { p * RBig::from(2) };
                let entry = match k {
                    0 => RBig::ONE,
                    k => table
                        .tails
                        .get(k - 1)
                        .map_or(RBig::ZERO, |&units| as_ratio(units)),
                };
                assert!(
                    entry <= &tail + oracle::slack(),
                    "row {k} of {scale:?} is above the exact tail"
                );
                assert!(
                    &tail - &entry <= as_ratio(2) + oracle::slack(),
                    "row {k} of {scale:?} is more than two units off"
                );
                // The probabilities of |Z| = k, here and exactly.
                let difference = (&entry - &entry_before) - (&tail - &tail_before);
                twice_distance += if difference < RBig::ZERO {
                    -difference
                } else {
                    difference
                };
                (tail_before, entry_before) = (tail.clone(), entry);
            }
            let distance = twice_distance / RBig::from(2);
            assert!(
                *table.total_variation().ratio().as_rbig() >= distance,
                "{scale:?} is further away than it says"
            );
        }
    }

    #[test]
    fn laplace_is_as_close_as_it_says() {
        for (numerator, denominator) in [(1, 1), (1, 3), (10, 1), (1 << 40, 1)] {
            let scale = scale(numerator, denominator);
            let table = ConstantTimeLaplace::new(&scale);
            let b = scale.ratio().as_rbig();
            let q = oracle::exp_neg(&(RBig::ONE / b));
            let mut distance = (RBig::ONE - &q) / (RBig::ONE + &q) - as_ratio(table.zero);
            for (i, &digit) in table.digits.iter().enumerate() {
                let e = oracle::exp_neg(&(RBig::from(UBig::ONE << i) / b));
                distance += &e / (RBig::ONE + &e) - as_ratio(digit);
            }
            distance += oracle::exp_neg(&(RBig::from(UBig::ONE << table.digits.len()) / b));
            let claimed = table.total_variation().ratio().as_rbig().clone();
            assert!(
                distance <= &claimed + oracle::slack()
                    && claimed <= as_ratio(table.digits.len() as u128 + 2)
            );
            assert!(
                distance > as_ratio(1),
                "cutting so many digits costs something"
            );
        }
    }

    #[test]
    fn laplace_digits_are_the_first_128_bits() {
        for (numerator, denominator) in [(1, 1), (1, 3), (10, 1), (1 << 40, 1), (1, 1 << 40)] {
            let scale = scale(numerator, denominator);
            let table = ConstantTimeLaplace::new(&scale);
            let b = scale.ratio().as_rbig();
            for (i, &digit) in table.digits.iter().enumerate() {
                let e = oracle::exp_neg(&(RBig::from(UBig::ONE << i) / b));
                let p = &e / (RBig::ONE + &e);
                assert!(
                    as_ratio(digit) <= &p + oracle::slack()
                        && p - as_ratio(digit) <= as_ratio(1) + oracle::slack()
                );
            }
            let beyond = RBig::from(UBig::ONE << table.digits.len()) / b;
            assert!(
                oracle::exp_neg(&beyond) <= as_ratio(1),
                "what is left out is below one unit"
            );
        }
    }

    #[test]
    fn extreme_words_give_the_ends() {
        struct Fixed(u64);
        impl Bits for Fixed {
            const WIDTH: u32 = 64;
            fn word(&mut self) -> u64 {
                self.0
            }
        }
        let (laplace, gaussian) = (
            ConstantTimeLaplace::new(&scale(10, 1)),
            ConstantTimeGaussian::new(&scale(10, 1)),
        );
        let gaussian = gaussian.expect("short enough");
        assert_eq!(laplace.sample(&mut Fixed(0)), 0);
        assert_eq!(laplace.sample(&mut Fixed(u64::MAX)), -1);
        assert_eq!(gaussian.sample(&mut Fixed(0)), gaussian.tails.len() as i128);
        assert_eq!(gaussian.sample(&mut Fixed(u64::MAX)), 0);
    }

    #[test]
    fn refuses_a_table_that_would_be_too_long() {
        assert!(ConstantTimeGaussian::new(&scale(257, 1)).is_none());
    }

    #[test]
    fn narrow_words_make_wide_ones() {
        let script: Vec<u64> = (0..26).map(|i| i % 32).collect();
        let expected = (0..25).fold(0_u128, |value, i| value << 5 | (i % 32)) << 3 | (25 >> 2);
        assert_eq!(wide(&mut whit_audit::Tape::<5>::new(&script)), expected);
        assert_eq!(wide(&mut whit_audit::Tape::<64>::new(&[1, 2])), 1 << 64 | 2);
    }

    #[test]
    fn every_draw_reads_the_same_number_of_words() {
        struct Counting(SeededBits, u64);
        impl Bits for Counting {
            const WIDTH: u32 = 64;
            fn word(&mut self) -> u64 {
                self.1 += 1;
                self.0.word()
            }
        }
        let mut bits = Counting(SeededBits::new(2), 0);
        let (laplace, gaussian) = (
            ConstantTimeLaplace::new(&scale(10, 1)),
            ConstantTimeGaussian::new(&scale(10, 1)),
        );
        let gaussian = gaussian.expect("short enough");
        let mut used = std::collections::BTreeSet::new();
        for _ in 0..1000 {
            bits.1 = 0;
            let _ = (laplace.sample(&mut bits), gaussian.sample(&mut bits));
            used.insert(bits.1);
        }
        assert_eq!(used.len(), 1);
    }
}
