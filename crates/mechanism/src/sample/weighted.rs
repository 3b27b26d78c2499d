//! # Weighted choice
//! **Definition.** Option `i` out of finitely many has the weight `w_i = m_i exp(-r d_i)`, with a multiplicity `m_i` and a
//!   distance `d_i` that are whole numbers, and one rational rate `r >= 0`. It is chosen with probability `w_i / Σ w`, exactly.
//! **Requires.** A positive multiplicity among the options. One of zero is never chosen.
//! **Sampler.** Inverse transform: with `U` uniform on `[0,1)`, whose digits are the words of the stream, the first `i` with
//!   `U W < C_i`, where `C_i = w_0 + … + w_i` and `W` is the sum of all. After each word `U` is known to lie in `[u, u+1) 2^-B`
//!   and the sums in integer enclosures `L_i <= C_i <= H_i`. Option `i` is certain once `u L_n >= 2^B H_{i-1}` and
//!   `(u+1) H_n <= 2^B L_i`. The first 64 bits are compared with enclosures in 128 bits whose relative width is below `2^-56`;
//!   if they do not decide, further words are drawn and the enclosures made again in big integers, sharper each time.
//! **Proof.** The two conditions give `C_{i-1} <= H_{i-1} <= u L_n/2^B <= U W < (u+1) H_n/2^B <= L_i <= C_i`, so what is returned
//!   is the option that the definition assigns to `U`, and that depends on nothing but `U`. The set of `U` assigned to `i` is
//!   `[C_{i-1}, C_i)/W`, of length `w_i/W`. It ends with probability one: enclosures and the interval of `U` shrink to points,
//!   and `U` is none of the finitely many `C_i/W`. When it stops is decided by the words read so far, so that the words
//!   after them are still independent and uniform.
//!
//! All distances are taken from the smallest that has a positive multiplicity; this divides all weights by the same number.

use dashu_int::UBig;
use dashu_ratio::RBig;
use whit_core::{Bits, Ratio};

use super::enclosure;
use super::weight_filter::WeightFilter;

/// The weight `multiplicity · exp(-rate · distance)`, up to a factor that all options share.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Weight {
    /// How many equal options this one stands for; zero if it must not be chosen.
    pub multiplicity: u128,
    /// How far below the best it is.
    pub distance: u128,
}

/// A choice among weighted options.
pub struct Weighted {
    rate: RBig,
    /// The smallest distance with a positive multiplicity.
    nearest: u128,
    weights: Vec<Weight>,
    /// `L_i` in 128 bits; `H_i` follows from it by [`upper`].
    lower: Vec<u128>,
}

impl Weighted {
    /// Prepares the choice: two passes over the options.
    ///
    /// # Panics
    ///
    /// If no multiplicity is positive. Whoever passes multiplicities that depend on private data must know that this cannot be.
    pub fn new(rate: &Ratio, weights: Vec<Weight>) -> Self {
        let nearest = weights
            .iter()
            .filter(|weight| weight.multiplicity > 0)
            .map(|weight| weight.distance)
            .min()
            .expect("some option has a positive multiplicity");
        let rate = rate.as_rbig().clone();
        let filter = WeightFilter::new(&rate);
        let lower_end = |weight: &Weight| {
            // Where the multiplicity is zero the distance may be below the nearest, and does not matter.
            filter.weight(weight.multiplicity, weight.distance.saturating_sub(nearest))
        };
        // All weights below 2^largest, hence their sum below 2^(largest + bits of the count).
        let largest = weights
            .iter()
            .map(|weight| lower_end(weight).bits())
            .max()
            .expect("there is an option");
        let count_bits = (usize::BITS - weights.len().leading_zeros()) as i32;
        let unit = largest + count_bits - SUM_BITS;
        let mut sum = 0;
        let lower = weights
            .iter()
            .map(|weight| {
                sum += lower_end(weight).in_units_of(unit);
                sum
            })
            .collect();
        Self {
            rate,
            nearest,
            weights,
            lower,
        }
    }

    /// The index of the chosen option.
    pub fn sample<B: Bits>(&self, bits: &mut B) -> usize {
        let last = self.lower.len() - 1;
        let (total_low, total_high) = (self.lower[last], upper(self.lower[last], last));
        let (mut drawn, mut drawn_bits) = (0_u128, 0);
        while drawn_bits + B::WIDTH <= 64 {
            drawn = (drawn << B::WIDTH) | u128::from(bits.word());
            drawn_bits += B::WIDTH;
            let at_least = multiply_shift(drawn, total_low, drawn_bits);
            // One more than the floor is at least the ceiling.
            let below = multiply_shift(drawn + 1, total_high, drawn_bits) + 1;
            let found = self.lower.partition_point(|&sum| sum < below);
            let certain = found <= last
                && (found == 0 || upper(self.lower[found - 1], found - 1) <= at_least);
            if certain {
                return found;
            }
        }
        let enclose = |i: usize, precision: usize| self.enclose(i, precision);
        settle(
            self.lower.len(),
            enclose,
            UBig::from(drawn),
            drawn_bits as usize,
            bits,
        )
    }

    /// The options again, for another choice.
    pub fn into_weights(self) -> Vec<Weight> {
        self.weights
    }

    fn enclose(&self, option: usize, precision: usize) -> (UBig, UBig) {
        let Weight {
            multiplicity,
            distance,
        } = self.weights[option];
        let distance = distance.saturating_sub(self.nearest);
        // As many bits more as the multiplicity takes away.
        let more = 128 - multiplicity.leading_zeros() as usize;
        let (low, high) = exp_neg(&(&self.rate * RBig::from(distance)), precision + more);
        let (low, high) = (low * multiplicity, high * multiplicity);
        (
            low >> more,
            (high + (UBig::ONE << more) - UBig::ONE) >> more,
        )
    }
}

/// Chooses among `count` options by enclosures of their weights alone: `enclose(i, n)` is `(low, high)` with
/// `low <= w_i 2^n <= high`, whose width must tend to nothing beside `2^n`. Some weight must be positive, and one of zero is never
/// chosen. It goes fastest if the largest weight is about one. Slow: big integers for each option and each word.
#[cfg(test)]
fn choose_by<B: Bits>(
    count: usize,
    enclose: impl Fn(usize, usize) -> (UBig, UBig),
    bits: &mut B,
) -> usize {
    settle(count, enclose, UBig::ZERO, 0, bits)
}

/// `(low, high)` with `low <= exp(-x) 2^precision <= high`, for `x >= 0`.
pub(crate) fn exp_neg(x: &RBig, precision: usize) -> (UBig, UBig) {
    let enclosure::Enclosure { low, high } = enclosure::exp_neg(x, precision);
    (low, high)
}

/// Goes on after `drawn_bits` digits of `U` did not decide.
#[cold]
fn settle<B: Bits>(
    count: usize,
    enclose: impl Fn(usize, usize) -> (UBig, UBig),
    mut drawn: UBig,
    mut drawn_bits: usize,
    bits: &mut B,
) -> usize {
    // Each round fails with a probability of about count · 2^-drawn_bits.
    loop {
        drawn = (drawn << B::WIDTH as usize) + UBig::from(bits.word());
        drawn_bits += B::WIDTH as usize;
        // 64 bits more than U has, and twice as fast, so that weights far below one are reached too.
        let precision = 2 * drawn_bits + 64;
        let mut sums = Vec::with_capacity(count);
        let (mut low, mut high) = (UBig::ZERO, UBig::ZERO);
        for option in 0..count {
            let (weight_low, weight_high) = enclose(option, precision);
            low += weight_low;
            high += weight_high;
            sums.push((low.clone(), high.clone()));
        }
        assert!(!high.is_zero(), "some option has a positive weight");
        let at_least = &drawn * &low;
        let below = (&drawn + UBig::ONE) * &high;
        let found = sums.partition_point(|(low, _)| (low.clone() << drawn_bits) < below);
        let certain =
            found < count && (found == 0 || sums[found - 1].1.clone() << drawn_bits <= at_least);
        if certain {
            return found;
        }
    }
}

/// The sum of all quick weights stays below `2^SUM_BITS`, and with its error below `2^122`.
const SUM_BITS: i32 = 120;

/// `H_i` from `L_i`: each weight is below `(l + 1)(1 + 2^-57)` for its own lower end `l`. Summed over `i + 1` options this is
/// below `L + L/2^57 + (i+1)(1 + 2^-57)`.
fn upper(lower: u128, option: usize) -> u128 {
    lower + (lower >> 57) + 2 * (option as u128 + 1) + 1
}

/// `floor(factor · sum / 2^shift)` for `factor <= 2^shift`, `shift <= 64` and `sum < 2^122`.
fn multiply_shift(factor: u128, sum: u128, shift: u32) -> u128 {
    let (high, low) = (sum >> 64, sum & u128::from(u64::MAX));
    // The first product is below 2^(shift + 58), the second at most 2^64 (2^64 - 1).
    ((factor * high) << (64 - shift)) + ((factor * low) >> shift)
}

#[cfg(test)]
mod tests {
    use super::super::oracle;
    use super::*;
    use crate::doubt;
    use whit_audit::{enumerate, g_test};
    use whit_testkit::SeededBits;

    fn weight(multiplicity: u128, distance: u128) -> Weight {
        Weight {
            multiplicity,
            distance,
        }
    }

    fn weights(of: &[(u128, u128)]) -> Vec<Weight> {
        of.iter().map(|&(m, d)| weight(m, d)).collect()
    }

    fn ratio(numerator: u128, denominator: u128) -> Ratio {
        Ratio::new(numerator, denominator).expect("not zero")
    }

    /// The probabilities as formulas, within a few slacks.
    fn probabilities(rate: &Ratio, options: &[(u128, u128)]) -> Vec<RBig> {
        let nearest = options.iter().filter(|o| o.0 > 0).map(|o| o.1).min();
        let nearest = nearest.expect("one is positive");
        let weights: Vec<RBig> = options
            .iter()
            .map(|&(m, d)| {
                let x = rate.as_rbig() * RBig::from(d.saturating_sub(nearest));
                RBig::from(m) * oracle::exp_neg(&x)
            })
            .collect();
        let total = weights.iter().fold(RBig::ZERO, |sum, w| sum + w);
        weights.into_iter().map(|w| w / &total).collect()
    }

    fn cases() -> Vec<(Ratio, Vec<(u128, u128)>)> {
        vec![
            (ratio(1, 1), vec![(1, 0)]),
            (ratio(1, 1), vec![(0, 0), (1, 7), (0, 9)]),
            (ratio(1, 2), vec![(1, 3), (1, 3), (1, 3)]),
            (ratio(0, 1), vec![(3, 0), (0, 5), (5, 9), (8, 1)]),
            (ratio(1, 3), vec![(1, 0), (2, 1), (3, 2), (4, 3), (0, 0)]),
            (ratio(7, 5), vec![(10, 2), (1, 0), (1000, 5), (7, 1)]),
            // Weights of 1 and of 2^60 exp(-41), about 1.8: the multiplicity makes up for the distance.
            (ratio(1, 1), vec![(1, 0), (1 << 60, 41)]),
            (
                ratio(1, 1 << 70),
                vec![(1, 1 << 70), (1, 0), (u128::MAX, 1 << 77)],
            ),
            (ratio(1 << 100, 1), vec![(u128::MAX, 1), (1, 0), (1, 0)]),
        ]
    }

    fn check<const W: u32>(
        sampler: impl Fn(&mut whit_audit::Tape<W>) -> usize,
        depth: u32,
        p: &[RBig],
    ) {
        let found = enumerate::<W, _>(depth, sampler);
        let slack = oracle::slack() * RBig::from(UBig::ONE << 130);
        let violations = found.violations(|&i| (&p[i] - &slack, &p[i] + &slack));
        assert!(violations.is_empty(), "width {W}: {violations:?}");
        // Each boundary leaves one word open at each end.
        let open = found.unresolved();
        assert!(
            open <= 2 * p.len() as u64 * u64::pow(2, W),
            "width {W}: {open} are open"
        );
    }

    #[test]
    fn enumeration() {
        for (rate, options) in cases() {
            let p = probabilities(&rate, &options);
            let choice = Weighted::new(&rate, weights(&options));
            check::<1>(|tape| choice.sample(tape), oracle::depth(), &p);
            check::<4>(|tape| choice.sample(tape), oracle::depth(), &p);
            check::<6>(|tape| choice.sample(tape), oracle::depth(), &p);
            check::<8>(|tape| choice.sample(tape), oracle::depth(), &p);
        }
    }

    #[test]
    fn enumeration_of_enclosures_alone() {
        for (rate, options) in cases() {
            let p = probabilities(&rate, &options);
            let choice = Weighted::new(&rate, weights(&options));
            let slow = |tape: &mut whit_audit::Tape<4>| {
                choose_by(options.len(), |i, n| choice.enclose(i, n), tape)
            };
            check::<4>(slow, 12, &p);
        }
    }

    /// Both ways of deciding give the same answer to the same words.
    #[test]
    fn quick_and_slow_agree() {
        let mut data = SeededBits::new(doubt::seed(301));
        for tape in 0..2000 {
            let count = 1 + data.below(6) as usize;
            let options: Vec<Weight> = (0..count)
                .map(|i| {
                    weight(
                        u128::from(data.below(9) + u64::from(i == 0)),
                        u128::from(data.below(40)),
                    )
                })
                .collect();
            let rate = ratio(u128::from(data.below(100)), 20);
            let choice = Weighted::new(&rate, options);
            let slow = choose_by(
                count,
                |i, n| choice.enclose(i, n),
                &mut SeededBits::new(tape),
            );
            assert_eq!(
                choice.sample(&mut SeededBits::new(tape)),
                slow,
                "tape {tape}"
            );
        }
    }

    /// Words that say nothing until late: the stream agrees with the boundary 1/3 for a hundred words.
    #[test]
    fn deep_ties_are_decided_exactly() {
        struct Stubborn(u32, u64);
        impl Bits for Stubborn {
            const WIDTH: u32 = 64;
            fn word(&mut self) -> u64 {
                self.0 = self.0.saturating_sub(1);
                if self.0 == 0 { self.1 } else { u64::MAX / 3 }
            }
        }
        let choice = Weighted::new(&ratio(5, 1), weights(&[(1, 4), (2, 4)]));
        assert_eq!(choice.sample(&mut Stubborn(100, u64::MAX / 3 - 1)), 0);
        assert_eq!(choice.sample(&mut Stubborn(100, u64::MAX / 3 + 1)), 1);
    }

    #[test]
    fn distribution_over_many_options() {
        let count = 1_000_u128;
        let options: Vec<_> = (0..count).map(|i| (1 + i % 7, i * i % 500)).collect();
        let rate = ratio(1, 100);
        let choice = Weighted::new(&rate, weights(&options));
        let mut bits = SeededBits::new(doubt::seed(303));
        let mut counts = vec![0; options.len()];
        for _ in 0..1_000_000 {
            counts[choice.sample(&mut bits)] += 1;
        }
        let weight = |&(m, d): &(u128, u128)| m as f64 * (-(d as f64) / 100.0).exp();
        let total: f64 = options.iter().map(weight).sum();
        let p: Vec<f64> = options.iter().map(|o| weight(o) / total).collect();
        let fit = g_test(&counts, &p).expect("probabilities").p_value;
        assert!(fit >= doubt::ALPHA, "p = {fit:e}");
        // A rate that is 4% off is seen.
        let off = |&(m, d): &(u128, u128)| m as f64 * (-(d as f64) / 96.0).exp();
        let total: f64 = options.iter().map(off).sum();
        let p: Vec<f64> = options.iter().map(|o| off(o) / total).collect();
        assert!(g_test(&counts, &p).expect("probabilities").p_value < doubt::ALPHA);
    }

    #[test]
    fn a_million_options() {
        let options = (0..1_000_000)
            .map(|i| weight(1 + i % 1000, i / 10))
            .collect();
        let choice = Weighted::new(&ratio(1, 50), options);
        let mut bits = SeededBits::new(1);
        assert!((0..1000).all(|_| choice.sample(&mut bits) < 40_000));
    }

    /// A stream with a first word of our choice.
    struct First(Option<u64>, SeededBits);

    impl Bits for First {
        const WIDTH: u32 = 64;
        fn word(&mut self) -> u64 {
            self.0.take().unwrap_or_else(|| self.1.word())
        }
    }

    /// Words at and around every boundary, where a margin that is too small would decide wrongly.
    #[test]
    fn words_near_a_boundary_are_decided_exactly() {
        let mut data = SeededBits::new(77);
        for round in 0..60 {
            let count = 2 + data.below(6) as usize;
            let option = |data: &mut SeededBits| Weight {
                multiplicity: u128::from(1 + (data.word() >> data.below(64))),
                distance: u128::from(data.below(40)),
            };
            let options: Vec<Weight> = (0..count).map(|_| option(&mut data)).collect();
            let rate = Ratio::new(u128::from(1 + data.below(1000)), 997).expect("not zero");
            let choice = Weighted::new(&rate, options);
            let total = choice.lower[count - 1];
            for i in 0..count - 1 {
                let at = (UBig::from(choice.lower[i]) << 64) / UBig::from(total);
                let Ok(at) = u64::try_from(at) else { continue };
                for offset in 0..60_u64 {
                    let word = at.wrapping_add(offset).wrapping_sub(30);
                    let bits = || First(Some(word), SeededBits::new(round));
                    let slow = choose_by(count, |i, n| choice.enclose(i, n), &mut bits());
                    assert_eq!(choice.sample(&mut bits()), slow, "{word:x}");
                }
            }
        }
    }

    #[test]
    fn sums_of_many_weights_have_room() {
        let weight = Weight {
            multiplicity: 3,
            distance: 5,
        };
        let choice = Weighted::new(&Ratio::one(), vec![weight; 5000]);
        assert!(choice.lower.is_sorted() && choice.lower[4999] < 1 << 121);
    }
}
