//! # Choice by rank
//! **Definition.** A point `r` is chosen with probability `∝ exp(-g · error(r))`, exactly, where `error` is the rank error of
//!   [`rank_cells`](super::rank_cells) and `g >= 0` a rational rate.
//! **Sampler.** Let `w_i` be the weights of the cells, `h_i >= w_i` their bounds and `H = Σ h`. With `U` uniform on `[0,1)` the real `U H`
//!   falls on the bound of some cell `i`, at a distance `v` from where it begins; if `v < w_i` cell `i` is taken, and a uniform point of
//!   it; otherwise all is drawn anew. As many digits of `U` are drawn, and as many of `w_i` computed, as it takes to decide: nearly
//!   always one word, and none.
//! **Proof.** A round ends at cell `i` with probability `w_i/H`, hence the choice is cell `i` with probability `w_i/Σw`. Decisions
//!   are made only when all `U` that begin with the digits drawn agree; they fall with probability one, since `U H` is no end of a
//!   weight or bound. `Σw >= 2^64` because of the point of error zero, so by the bounds on `h_i` a round fails with probability
//!   below `2^-51 + (n+1) 2^-64`.

use dashu_int::UBig;
use dashu_ratio::RBig;
use whit_core::{Bits, Ratio};

use super::power::Powers;
pub(crate) use super::rank_cells::Field;
use super::rank_cells::{Cell, RankCells};
use super::{uniform_below, weighted};

/// Chooses points whose rank is close to a target.
#[derive(Clone)]
pub(crate) struct Ranked {
    powers: Powers,
    /// [`UNIT_BITS`], and less in tests.
    unit_bits: u32,
}

/// `log2` of what one point of error zero weighs.
const UNIT_BITS: u32 = 64;

impl Ranked {
    /// Prepares the tables. The rate is public.
    pub(crate) fn new(rate: &Ratio) -> Self {
        Self::with_unit(rate, UNIT_BITS)
    }

    fn with_unit(rate: &Ratio, unit_bits: u32) -> Self {
        Self {
            powers: Powers::new(rate.as_rbig()),
            unit_bits,
        }
    }

    /// A point with probability `∝ exp(-rate · error)`. The target must lie between zero and the number of values.
    pub(crate) fn choose<B: Bits>(&self, field: Field, target: &RBig, bits: &mut B) -> i64 {
        let cells = RankCells::new(&self.powers, self.unit_bits, field, target);
        loop {
            if let Some(cell) = self.draw(&cells, bits) {
                return cell.first + uniform_below(cell.points, bits) as i64;
            }
        }
    }

    /// One round: a cell, or nothing if `U` fell between the weight of a cell and its bound.
    fn draw<B: Bits>(&self, cells: &RankCells, bits: &mut B) -> Option<Cell> {
        let total = cells.total();
        let (mut drawn, mut drawn_bits) = (0_u128, 0);
        // With words of 64 bits the first decides, except with a probability of about 2^-50. Small units are never sure.
        while drawn_bits + B::WIDTH <= 64 && self.unit_bits == UNIT_BITS {
            drawn = (drawn << B::WIDTH) | u128::from(bits.word());
            drawn_bits += B::WIDTH;
            let cell = cells.locate(multiply_shift(drawn, total, drawn_bits));
            if multiply_shift(drawn + 1, total, drawn_bits) < cell.start + surely(cell.high) {
                return Some(cell);
            }
        }
        self.settle(cells, UBig::from(drawn), drawn_bits as usize, bits)
    }

    /// Goes on after `drawn_bits` digits of `U` did not decide.
    #[cold]
    fn settle<B: Bits>(
        &self,
        cells: &RankCells,
        drawn: UBig,
        drawn_bits: usize,
        bits: &mut B,
    ) -> Option<Cell> {
        let total = UBig::from(cells.total());
        let (mut drawn, mut drawn_bits) = (drawn, drawn_bits);
        loop {
            drawn = (drawn << B::WIDTH as usize) + UBig::from(bits.word());
            drawn_bits += B::WIDTH as usize;
            // U H lies in [low, high) 2^-drawn_bits.
            let low = &drawn * &total;
            let high = &low + &total;
            let first = u128::try_from(&low >> drawn_bits).expect("below the total, which fits");
            let cell = cells.locate(first);
            if high > UBig::from(cell.start + cell.high) << drawn_bits {
                continue;
            }
            let start = UBig::from(cell.start) << drawn_bits;
            // As many digits of the weight as of U H, and the bits that its points and the unit take away.
            let (more, x) = (128, self.powers.rate() * cells.error(&cell));
            let (exp_low, exp_high) = weighted::exp_neg(&x, drawn_bits + more);
            let weigh = |exp: UBig| (exp * cell.points) << self.unit_bits as usize;
            if (high - &start) << more <= weigh(exp_low) {
                return Some(cell);
            }
            if (low - &start) << more >= weigh(exp_high) {
                return None;
            }
        }
    }
}

/// At most every weight `w` with a bound `h`: `h < w (1 + 2^-51) + 1`, so `w > h - 1 - h/2^51`, and `h/2^51` is less than the larger of
/// 1 and `floor(h/2^50)`.
fn surely(high: u128) -> u128 {
    high.saturating_sub(2 + (high >> 50))
}

/// `floor(factor · sum / 2^shift)` for `factor <= 2^shift`, `shift <= 64` and `sum < 2^127`.
fn multiply_shift(factor: u128, sum: u128, shift: u32) -> u128 {
    let (high, low) = (sum >> 64, sum & u128::from(u64::MAX));
    // The first product is below 2^(shift + 63), the second at most 2^64 (2^64 - 1).
    ((factor * high) << (64 - shift)) + ((factor * low) >> shift)
}

#[cfg(test)]
mod tests {
    use super::super::oracle;
    use super::*;
    use crate::doubt;
    use whit_audit::{enumerate, g_test};
    use whit_testkit::SeededBits;

    fn ratio(numerator: u128, denominator: u128) -> Ratio {
        Ratio::new(numerator, denominator).expect("not zero")
    }

    /// The definition, point by point.
    fn probabilities(rate: &Ratio, field: Field, target: &RBig) -> Vec<RBig> {
        let weight = |r: i64| {
            let below = RBig::from(field.sorted.iter().filter(|&&x| x < r).count());
            let not_above = RBig::from(field.sorted.iter().filter(|&&x| x <= r).count());
            let error = (below - target).max(target - not_above).max(RBig::ZERO);
            oracle::exp_neg(&(rate.as_rbig() * error))
        };
        let weights: Vec<RBig> = (field.first..=field.last).map(weight).collect();
        let total = weights.iter().fold(RBig::ZERO, |sum, w| sum + w);
        weights.into_iter().map(|w| w / &total).collect()
    }

    fn check(ranked: &Ranked, rate: &Ratio, field: Field, target: &RBig, depth: u32) {
        let p = probabilities(rate, field, target);
        let found = enumerate::<1, _>(depth, |tape| ranked.choose(field, target, tape));
        let slack = oracle::slack() * RBig::from(1 << 20);
        let violations = found.violations(|&r| {
            let p = &p[(r - field.first) as usize];
            (p - &slack, p + &slack)
        });
        assert!(
            violations.is_empty(),
            "{:?} {target}: {violations:?}",
            field.sorted
        );
        let open = found.unresolved() as f64 / f64::from(1 << depth);
        assert!(open < 0.2, "{open} is open");
    }

    /// All sets of up to three values on five points, and all targets in quarters: every tape, with bounds good and bad.
    #[test]
    fn enumeration() {
        let rate = ratio(2, 3);
        for unit_bits in [64, 1] {
            let ranked = Ranked::with_unit(&rate, unit_bits);
            for code in (0..6 * 6 * 6).filter(|code| code % 6 <= code / 6 % 6) {
                let mut sorted: Vec<i64> = [code, code / 6, code / 36]
                    .into_iter()
                    .map(|digit| -2 + digit % 6)
                    .filter(|&x| x <= 2)
                    .collect();
                sorted.sort_unstable();
                let field = Field {
                    sorted: &sorted,
                    first: -2,
                    last: 2,
                };
                let quarters = 1 + 4 * sorted.len() as i64;
                let target = RBig::from_parts((code % quarters).into(), UBig::from(4_u32));
                check(&ranked, &rate, field, &target, 10);
            }
        }
    }

    #[test]
    fn deep_enumeration() {
        let sorted = [-1, 0, 0, 3, 3, 3, 4];
        let field = Field {
            sorted: &sorted,
            first: -1,
            last: 5,
        };
        for (numerator, denominator) in [(0, 1), (1, 5), (3, 1)] {
            let rate = ratio(numerator, denominator);
            for unit_bits in [64, 2] {
                let ranked = Ranked::with_unit(&rate, unit_bits);
                let target = RBig::from_parts(10.into(), UBig::from(3_u32));
                check(&ranked, &rate, field, &target, 16);
            }
        }
        // One point, and no values at all.
        check(
            &Ranked::new(&ratio(1, 1)),
            &ratio(1, 1),
            Field {
                sorted: &[4, 4],
                first: 4,
                last: 4,
            },
            &RBig::ONE,
            10,
        );
        check(
            &Ranked::new(&ratio(1, 1)),
            &ratio(1, 1),
            Field {
                sorted: &[],
                first: 0,
                last: 3,
            },
            &RBig::ZERO,
            10,
        );
    }

    /// Many values with ties, over several blocks.
    #[test]
    fn distribution() {
        let mut bits = SeededBits::new(doubt::seed(512));
        let mut sorted: Vec<i64> = (0..1500).map(|_| bits.below(200) as i64 * 3).collect();
        sorted.sort_unstable();
        let field = Field {
            sorted: &sorted,
            first: -100,
            last: 700,
        };
        let target = RBig::from_parts(1501.into(), UBig::from(7_u32));
        let (rate, off) = (ratio(1, 50), ratio(12, 500));
        let ranked = Ranked::new(&rate);
        let mut counts = vec![0; 801];
        for _ in 0..60_000 {
            counts[(ranked.choose(field, &target, &mut bits) + 100) as usize] += 1;
        }
        let p = |rate| -> Vec<f64> {
            let p = probabilities(rate, field, &target);
            p.iter().map(|p| p.to_f64().value()).collect()
        };
        let fit = g_test(&counts, &p(&rate)).expect("probabilities").p_value;
        assert!(fit >= doubt::ALPHA, "p = {fit:e}");
        let fit = g_test(&counts, &p(&off)).expect("probabilities").p_value;
        assert!(
            fit < doubt::ALPHA,
            "a rate that is 20% off is seen: {fit:e}"
        );
    }

    #[test]
    fn extremes_are_reached_and_nothing_wraps() {
        let mut bits = SeededBits::new(513);
        let far = 1 << 60;
        let all = [-far, -far, 0, far];
        for (numerator, denominator) in [(0, 1), (1, 1 << 100), (1, 1), (1 << 100, 1)] {
            let ranked = Ranked::new(&ratio(numerator, denominator));
            for n in 0..=all.len() {
                let field = Field {
                    sorted: &all[..n],
                    first: -far,
                    last: far,
                };
                for target in [RBig::ZERO, RBig::from(n) / RBig::from(2), RBig::from(n)] {
                    for _ in 0..20 {
                        let point = ranked.choose(field, &target, &mut bits);
                        assert!((-far..=far).contains(&point));
                    }
                }
            }
        }
    }

    /// Words that were chosen beforehand, the last one first, and zeros.
    struct Stubborn(Vec<u64>);
    impl Bits for Stubborn {
        const WIDTH: u32 = 64;
        fn word(&mut self) -> u64 {
            self.0.pop().unwrap_or(0)
        }
    }

    /// `s <= w` for every `w` with `h < w (1 + 2^-51) + 1` means `s (2^51 + 1) <= (h - 1) 2^51`. Half of the slack would not do.
    #[test]
    fn what_is_sure_is_below_every_weight_with_that_bound() {
        let mut bits = SeededBits::new(doubt::seed(515));
        let holds = |sure: u128, high: u128| {
            let one = UBig::ONE << 51;
            UBig::from(sure) * (&one + UBig::ONE) <= UBig::from(high - 1) * one
        };
        let half = |high: u128| high.saturating_sub(1 + (high >> 51));
        let mut broken = 0;
        for exponent in 0..127 {
            let power = 1_u128 << exponent;
            let random = power + (u128::from(bits.word()) << 64 >> (128 - exponent).min(127));
            for high in [power, power + 1, power.max(2) - 1, 2 * power - 1, random] {
                assert!(surely(high) == 0 || holds(surely(high), high), "{high}");
                broken += u32::from(half(high) > 0 && !holds(half(high), high));
                let given = high - surely(high);
                assert!(given <= 2 + (high >> 50), "no more is given away: {high}");
            }
        }
        assert!(broken > 100, "half the slack is convicted {broken} times");
    }

    /// A bound that is above its weight by some hundred words: what falls between them is drawn anew, what falls below is taken.
    #[test]
    fn words_between_a_weight_and_its_bound_are_rejected() {
        let far = 1_i64 << 60;
        let sorted = [far; 4000];
        let (rate, target) = (ratio(1, 1 << 20), RBig::from(4000));
        let field = Field {
            sorted: &sorted,
            first: -far,
            last: far,
        };
        let ranked = Ranked::new(&rate);
        let cells = RankCells::new(&ranked.powers, UNIT_BITS, field, &target);
        let total = cells.total();
        let last = cells.locate(total - 1);
        let (low, high) = weighted::exp_neg(&(ranked.powers.rate() * cells.error(&last)), 300);
        // The end of the weight, in units of 2^-64 of a word's.
        let end = |exp: UBig| (UBig::from(last.start) << 64) + ((exp * last.points) >> (300 - 128));
        let (end_low, end_high) = (end(low), end(high) + UBig::ONE);
        let (mut taken, mut rejected) = (0, 0);
        for back in 0..4000_u64 {
            let word = u64::MAX - back;
            let from = UBig::from(word) * UBig::from(total);
            let drawn = ranked.draw(&cells, &mut Stubborn(vec![word]));
            if &from + UBig::from(total) <= end_low {
                assert!(drawn.is_some_and(|cell| cell.start == last.start), "{back}");
                taken += 1;
            } else if from >= end_high {
                assert!(drawn.is_none(), "{back} words before the end");
                rejected += 1;
            }
        }
        assert!(taken > 1000 && rejected > 10, "{taken} {rejected}");
    }

    /// The point of error zero is a quarter of all: the first word agrees with the boundary, and a later one decides.
    #[test]
    fn words_at_a_boundary_are_decided_by_later_ones() {
        let ranked = Ranked::new(&ratio(1, 1));
        let field = Field {
            sorted: &[],
            first: 0,
            last: 3,
        };
        let at = |words: &[u64]| {
            let words = words.iter().rev().copied().collect();
            ranked.choose(field, &RBig::ZERO, &mut Stubborn(words))
        };
        assert_eq!(at(&[(1 << 62) - 1, u64::MAX]), 0);
        assert_eq!(at(&[(1 << 62) - 1, u64::MAX, u64::MAX, 5]), 0);
        assert!(at(&[1 << 62, 0, 0]) > 0);
    }
}
