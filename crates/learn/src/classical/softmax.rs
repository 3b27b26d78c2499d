//! # Probabilities of classes, in integers
//! **Definition.** Classes have scores, and are `d_k >= 0` below the largest of them, in units of `2^-82`. Their probabilities are `exp(-d_k)/T` with `T = Σ exp(-d_k)`; given in units of `2^-67`.
//! **Claim.** What is given differs from the real probabilities by a vector that is at most [`off`] long, whatever the scores are, for up to `2^20` classes. No float is computed with.
//! **Proof.**
//!   1. *Exponentials.* With `L` the nearest integer to `2^82 ln 2`, which is 0.2 above it at most, let `d = jL + r`, `0 <= r < L`. Then `exp(-d)` is `2^-j exp(-r)`, but for a factor that is `0.2 j 2^-82` from 1. Where `j > 80` it is below `2^-80`, and zero
//!      is given. Else `x`, `r` cut to `2^-64`, changes it by a factor that is `2^-64` from 1. `exp(-x) = H_1` with `H_k = 1 - (x/k) H_{k+1}`, all between 0 and 1. Beginning with 1 for `H_21`, which is within `x/21` of it, adds `x^21/21! < 2^-76`. Each step
//!      is rounded once, to `2^-63` (two roundings down, one after the other, are one), so that what `H_1` is off by is at most `1 + x + x²/2 + … <= exp(x) <= 2` of these: `2^-62`, and `2^-61` of `H_1 >= 1/2`. So what is given is `exp(-d)(1 + δ)` with `|δ| <= 1.2·2^-61`, rounded
//!      down to a multiple of `2^-80`. Of the largest class `d = 0`, and it is exactly 1.
//!   2. *Quotients.* Let `q_k` be real, and `q_k(1 + δ_k) - ε_k` given, `0 <= ε_k <= 2^-80 = ε`; their sum `T'` is at least 1. A quotient is off by at most `(2δ q_k T + εT + Kε q_k)/(T T')`, which sums to `(2δT + 2Kε)/T'`, and `T <= T'(1 + 2δ) + 2Kε`. So the sum is below
//!      `2^-59 + K 2^-78`. The quotient itself is rounded down to a multiple of `2^-67` by long division, in numbers below `2^127`: `√C 2^-67` for `C` of them. ∎

/// Units of differences of scores.
pub(super) const SCORE_BITS: i32 = 82;
/// Units of probabilities.
pub(super) const SHARE_BITS: i32 = 67;
/// Units of exponentials.
const ODDS_BITS: u32 = 80;
/// The nearest integer to `2^82 ln 2`, by decimals of eighty places.
const LN_2: u128 = 3_351_854_093_488_004_965_279_631;
/// One, where `H_k` is in units of `2^-63`.
const ONE: u64 = 1 << 63;
/// `H_21` is taken for 1.
const TERMS: u64 = 20;
/// Quotients in two digits.
const DIGITS: [u32; 2] = [40, 27];

/// How far, in L2, `scores` probabilities of so many classes are off at most.
pub(super) fn off(classes: usize, scores: usize) -> f64 {
    let power = |bits: i32| f64::from(-bits).exp2();
    power(59) + classes as f64 * power(78) + (scores as f64).sqrt() * power(SHARE_BITS)
}

/// What classes are below the largest, which becomes their probabilities. The largest, at zero, must be among them.
pub(super) fn probabilities(below: &mut [u128]) {
    let mut total = 0;
    for class in below.iter_mut() {
        *class = exponential(*class);
        total += *class;
    }
    below.iter_mut().for_each(|odds| *odds = over(*odds, total));
}

/// `exp(-d)`.
fn exponential(d: u128) -> u128 {
    let halvings = d / LN_2;
    if halvings > u128::from(ODDS_BITS) {
        return 0;
    }
    // In units of `2^-64`, below 0.7.
    let x = (d % LN_2) >> (SCORE_BITS - 64);
    let mut h = ONE;
    for k in (1..=TERMS).rev() {
        let product = (x * u128::from(h)) >> 64;
        h = ONE - product as u64 / k;
    }
    (u128::from(h) << (ODDS_BITS - 63)) >> halvings
}

/// A part of a total that is at least one and at most `2^20`.
fn over(part: u128, total: u128) -> u128 {
    let [first, second] = DIGITS;
    let (digit, rest) = ((part << first) / total, (part << first) % total);
    (digit << second) + (rest << second) / total
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classical::doubt::seed;
    use crate::classical::exact::{exact, length, shares};
    use whit_testkit::SeededBits;

    fn at(d: f64) -> u128 {
        (d * f64::from(SCORE_BITS).exp2()) as u128
    }

    /// Exponentials of exact numbers by decimals of eighty places, cut to units.
    #[test]
    fn closed_form() {
        for (d, expected) in [
            (0.0, 1 << 80),
            (0.5, 0x9b45_97e3_7cb0_4ff3_d675),
            (1.0, 0x5e2d_58d8_b3bc_df1a_bade),
            (3.25, 0x9ed_1b42_90c8_1695_1747),
            (20.0, 0x8_da43_2af9_b933_u128),
        ] {
            let off = exponential(at(d)).abs_diff(expected);
            let most = 1.2 * f64::from(-61).exp2() * expected as f64 + 1.0;
            assert!(off as f64 <= most, "{d}: {off} of {most}");
        }
        assert_eq!(exponential(at(56.5)), 0);
        assert_eq!(exponential(u128::MAX >> 2), 0);
        let one = 1_u128 << SHARE_BITS;
        let mut two = [0, 0];
        probabilities(&mut two);
        assert_eq!(two, [one / 2, one / 2]);
        let mut far = [at(1e3), 0, u128::MAX >> 2];
        probabilities(&mut far);
        assert_eq!(far, [0, one, 0]);
    }

    /// Against exponentials of many digits: what is given is off by no more than [`off`] in L2, and comes within a factor of it.
    #[test]
    fn probabilities_are_off_as_little_as_is_claimed() {
        let mut bits = SeededBits::new(seed(799));
        let mut worst = 0.0_f64;
        for (classes, problems) in [(2, 400), (3, 400), (10, 100), (300, 10)] {
            for _ in 0..problems {
                // Near each other, or far.
                let size = bits.below(6);
                let mut any = |_| u128::from(bits.below(1 << 60)) << (18 + size);
                let mut below: Vec<u128> = (0..classes).map(&mut any).collect();
                below[classes - 1] = 0;
                let scores: Vec<_> = below
                    .iter()
                    .map(|d| exact(-(*d as i128), SCORE_BITS))
                    .collect();
                let expected = shares(&scores);
                probabilities(&mut below);
                let each = below.iter().zip(&expected);
                let apart: Vec<_> = each
                    .map(|(share, expected)| exact(*share as i128, SHARE_BITS) - expected)
                    .collect();
                let share = length(&apart) / off(classes, classes);
                assert!(share <= 1.0, "{share} of what is claimed, of {classes}");
                worst = worst.max(share);
            }
        }
        assert!(worst > 1.0 / 64.0, "{worst}");
    }

    /// Against floats, and against itself: a product of exponentials is that of the sum.
    #[test]
    fn whatever_the_scores_are_probabilities_are_near() {
        let mut bits = SeededBits::new(seed(794));
        for _ in 0..20_000 {
            let (a, b) = (bits.below(1 << 40) as f64, bits.below(1 << 42) as f64);
            let [a, b] = [a, b].map(|d| d * f64::from(-38).exp2());
            let [one, other, both] = [a, b, a + b].map(|d| exponential(at(d)));
            let ratio = f64::from(ODDS_BITS as i32).exp2();
            assert!((one as f64 / ratio / (-a).exp() - 1.0).abs() < 4.0 * f64::EPSILON);
            // In integers, to 2^-59 of the product, and to what is cut off of the factors.
            let product = ((one >> 17) * (other >> 17)) >> 46;
            assert!(
                product.abs_diff(both) <= (both >> 59) + (1 << 18),
                "{a} {b}"
            );
        }
        for classes in [2, 3, 17, 1000] {
            let mut below: Vec<u128> = (0..classes).map(|_| at(bits.below(40) as f64)).collect();
            below[0] = 0;
            let odds: Vec<f64> = below
                .iter()
                .map(|d| (-(*d as f64) / f64::from(SCORE_BITS).exp2()).exp())
                .collect();
            let total: f64 = odds.iter().sum();
            probabilities(&mut below);
            let sum: u128 = below.iter().sum();
            let one = 1_u128 << SHARE_BITS;
            assert!(one - sum <= classes as u128, "quotients are cut");
            for (share, odds) in below.iter().zip(odds) {
                let share = *share as f64 / one as f64;
                assert!((share - odds / total).abs() < 1e-15);
            }
        }
        let mut many = vec![0; 1 << 20];
        probabilities(&mut many);
        assert!(many.iter().all(|share| *share == 1 << (SHARE_BITS - 20)));
    }
}
