//! # Exponential mechanism
//! **Definition.** Out of finitely many options, `i` is chosen with `Pr[i] ∝ m_i exp(ε q_i/S)`, where `q` are secret scores and `m` a
//!   public base measure of whole numbers (all ones unless given). \[MT07\]
//! **Requires.** The scores' differences between neighbours lie in an interval of length `S`: the spread of
//!   [`Scores`], `2Δ` in general and `Δ` for monotone scores. With `S = 2Δ` this is the usual `exp(ε q/(2Δ))`.
//! **Guarantee.** Range `ε`: over all options that can be chosen, `ln(Pr[i]/Pr'[i])` lies in an interval of length `ε`. Hence `ε`-DP
//!   and `ε²/8`-zCDP, which an accountant may use.
//! **Proof.** `ln(Pr[i]/Pr'[i]) = ε (q_i - q'_i)/S + ln(N'/N)` with normalisers that do not depend on `i`; the base measure cancels.
//!   The first term lies in an interval of length `ε`. Both are distributions on the same options, so neither is above the
//!   other everywhere: the interval contains zero, and no loss is above `ε`.
//! **Sampler.** Exact: [`sample::Weighted`](crate::sample::Weighted) with rate `ε/S`. No float, no Gumbel noise. (The largest of
//!   `ε q_i/S` plus independent Gumbel noise has the same law; floats would make it another one.)
//! **Error.** With probability at least `1 - β` the chosen score is above `max q - (S/ε) ln(M/(m β))`, where `M` is the sum of the base
//!   measure and `m` its smallest positive value: the options below that have less than `M exp(-ln(M/(mβ))) = mβ` together, beside
//!   at least `m` for the best one. For the best option to count, its `m_i` must be positive.

use whit_core::{Confidence, Entropy, Event, Mechanism, Ratio, Relation, Secret, round};

use crate::sample::{Weight, Weighted};
use crate::score::{Scores, distances};
use crate::{Error, Release, Result};

/// Chooses an option with a probability that grows exponentially with its score.
pub struct Exponential<R: Relation> {
    epsilon: Ratio,
    scores: Scores<R>,
    /// None if all are one.
    base: Option<Vec<u64>>,
}

impl<R: Relation> Exponential<R> {
    /// Takes parsed units, so there is nothing left to check. An epsilon of zero chooses regardless of the scores.
    pub fn new(epsilon: Ratio, scores: Scores<R>) -> Self {
        Self {
            epsilon,
            scores,
            base: None,
        }
    }

    /// The same with a base measure, which is public: one number for each option, not all of them zero. An option of zero is
    /// never chosen.
    pub fn with_base(self, base: Vec<u64>) -> Result<Self> {
        let options = self.scores.options() as u64;
        let (given, positive) = (
            base.len() as u64,
            base.iter().filter(|&&weight| weight > 0).count() as u64,
        );
        if given != options {
            return Err(Error::CountOutOfRange {
                what: "the length of the base measure",
                given,
                min: options,
                max: options,
            });
        }
        if positive == 0 {
            return Err(Error::CountOutOfRange {
                what: "the number of positive base weights",
                given: positive,
                min: 1,
                max: options,
            });
        }
        Ok(Self {
            base: Some(base),
            ..self
        })
    }

    /// What an accountant needs to know.
    pub fn event(&self) -> Event {
        let mechanism = Mechanism::BoundedRange {
            epsilon: self.epsilon.clone(),
        };
        Event::new(R::NEIGHBOURS, mechanism)
    }

    /// Spends one `event` and tells the index of the chosen option.
    pub fn release(
        &self,
        scores: Secret<Vec<i64>>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<usize>> {
        let mut bits = entropy.open()?;
        let choice = Weighted::new(&self.scores.rate(&self.epsilon), self.weights(scores));
        Ok(Release::new(choice.sample(&mut bits), self.event()))
    }

    pub(crate) fn weights(&self, scores: Secret<Vec<i64>>) -> Vec<Weight> {
        let scores = self.scores.read(scores);
        let multiplicity = |option: usize| self.base.as_ref().map_or(1, |base| base[option]);
        distances(&scores)
            .enumerate()
            .map(|(option, distance)| Weight {
                multiplicity: multiplicity(option).into(),
                distance,
            })
            .collect()
    }

    /// How far below the best the chosen score is at most, with the given probability. Rounded up; infinite if epsilon is zero.
    pub fn error(&self, confidence: Confidence) -> f64 {
        let base = self.base.as_deref().unwrap_or(&[1]);
        let copies = if self.base.is_some() {
            1
        } else {
            self.scores.options() as u128
        };
        let sum = copies * base.iter().copied().map(u128::from).sum::<u128>();
        let least = base
            .iter()
            .copied()
            .filter(|&weight| weight > 0)
            .min()
            .unwrap_or(1);
        let sum_over_least = Ratio::new(sum, least.into())
            .expect("it is positive")
            .to_f64_up();
        let miss = round::sub_down(1.0, confidence.value());
        let exponent = round::ln_up(round::div_up(sum_over_least, miss));
        round::div_up(exponent, self.scores.rate(&self.epsilon).to_f64_down())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{self, TapeEntropy, confidence, judge, seed};
    use crate::score::tests::{any, counts, pairs, ratio};
    use whit_audit::{Enumeration, enumerate, g_test};
    use whit_core::{AddRemove, ReplaceOne};
    use whit_testkit::{FailingEntropy, Seeded};

    fn index<R: Relation>(
        mechanism: &Exponential<R>,
        scores: &[i64],
        entropy: &mut impl Entropy,
    ) -> usize {
        *mechanism
            .release(Secret::new(scores.to_vec()), entropy)
            .expect("entropy")
            .value()
    }

    /// Every tape of the whole mechanism, to 50 bits: the tree is thin, since one uniform number decides.
    fn all<R: Relation>(mechanism: &Exponential<R>, scores: &[i64]) -> Enumeration<usize> {
        enumerate::<1, _>(50, |tape| {
            index(mechanism, scores, &mut TapeEntropy(Some(tape)))
        })
    }

    fn probabilities<R: Relation>(mechanism: &Exponential<R>, scores: &[i64]) -> Vec<f64> {
        let found = all(mechanism, scores);
        let unit = 2_f64.powi(-(found.bits() as i32));
        assert!((found.unresolved() as f64 * unit) < 1e-12);
        (0..scores.len())
            .map(|i| found.mass(&i) as f64 * unit)
            .collect()
    }

    /// Prices for apples: bids 1, 1, 1 and 4.01, revenue in cents. The digits are those of the specification (A2).
    #[test]
    fn closed_form() {
        let revenue = [400, 101, 401, 0];
        for (epsilon, expected, mean) in [
            (1, [0.303148, 0.208999, 0.303526, 0.184327], 2.640820),
            (5, [0.445413, 0.069377, 0.448191, 0.037019], 3.648969),
        ] {
            let mechanism = Exponential::new(ratio(epsilon, 1), any(4, 402));
            let found = probabilities(&mechanism, &revenue);
            for (p, expected) in found.iter().zip(expected) {
                assert!((p - expected).abs() <= 5.1e-7, "{p} is not {expected}");
            }
            let expected_revenue: f64 = found
                .iter()
                .zip(revenue)
                .map(|(p, cents)| p * cents as f64 / 100.0)
                .sum();
            assert!((expected_revenue - mean).abs() < 1e-6, "{expected_revenue}");
        }
        // F2's scores, for the exponential mechanism.
        for (epsilon, error) in [((1, 2), 1.4252), ((1, 1), 0.7430), ((2, 1), 0.4254)] {
            let mechanism = Exponential::new(ratio(epsilon.0, epsilon.1), any(5, 1));
            let scores = [10, 9, 8, 0, 0];
            let found: f64 = probabilities(&mechanism, &scores)
                .iter()
                .zip(scores)
                .map(|(p, q)| p * (10 - q) as f64)
                .sum();
            assert!((found - error).abs() <= 5.1e-5, "{found} is not {error}");
        }
        let mechanism = Exponential::new(ratio(1, 1), any(5, 1));
        let found = probabilities(&mechanism, &[10, 9, 8, 0, 0]);
        for (p, expected) in found
            .iter()
            .zip([0.50305, 0.30511, 0.18506, 0.00339, 0.00339])
        {
            assert!((p - expected).abs() <= 5.1e-6, "{p} is not {expected}");
        }
        let event = Exponential::new(ratio(1, 3), counts(2)).event();
        assert_eq!(
            event,
            Event::new(
                AddRemove::NEIGHBOURS,
                Mechanism::BoundedRange {
                    epsilon: ratio(1, 3)
                }
            )
        );
    }

    /// The range of the log-ratios of two neighbours over all options, and the largest of them.
    fn range<R: Relation>(mechanism: &Exponential<R>, one: &[i64], other: &[i64]) -> (f64, f64) {
        let (p, q) = (
            probabilities(mechanism, one),
            probabilities(mechanism, other),
        );
        let ratios: Vec<f64> = p
            .iter()
            .zip(&q)
            .filter(|(p, _)| **p > 0.0)
            .map(|(p, q)| (p / q).ln())
            .collect();
        let (low, high) = ratios.iter().fold((f64::MAX, f64::MIN), |(low, high), r| {
            (low.min(*r), high.max(*r))
        });
        (high - low, high.max(-low))
    }

    /// Exact probabilities on all neighbours around some scores: the range is never above epsilon, and reaches it.
    #[test]
    fn enumeration_of_neighbours() {
        let centres: [&[i64]; 4] = [
            &[0, 0, 0],
            &[3, 1, 0],
            &[5, 5, -9],
            &[i64::MAX - 1, 0, 1 - i64::MAX],
        ];
        let general = Exponential::new(Ratio::one(), any(3, 1))
            .with_base(vec![1, 5, 2])
            .expect("three");
        let monotone = Exponential::new(Ratio::one(), counts(3));
        let mut widest = (0.0_f64, 0.0_f64);
        for (one, other) in pairs(&centres, &[-1, 0, 1]) {
            let (range, loss) = range(&general, &one, &other);
            assert!(
                range <= 1.0 + 1e-6 && loss <= 1.0 + 1e-6,
                "{one:?} {other:?}: {range} {loss}"
            );
            widest.0 = widest.0.max(range);
        }
        for (one, other) in pairs(&centres, &[0, 1]) {
            let (range, _) = range(&monotone, &one, &other);
            assert!(range <= 1.0 + 1e-6, "{one:?} {other:?}: {range}");
            widest.1 = widest.1.max(range);
        }
        assert!(widest.0 > 0.999_999 && widest.1 > 0.999_999, "{widest:?}");
        // What the type forbids: the monotone rate where a row moves one score up and another down.
        assert!(range(&monotone, &[0, 1, 0], &[1, 0, 0]).0 > 1.9);
    }

    #[test]
    fn distribution() {
        let mechanism = Exponential::new(Ratio::one(), any(4, 402));
        let mut entropy = Seeded::new(seed(311));
        let mut seen = [0; 4];
        for _ in 0..400_000 {
            seen[index(&mechanism, &[400, 101, 401, 0], &mut entropy)] += 1;
        }
        let fit =
            g_test(&seen, &probabilities(&mechanism, &[400, 101, 401, 0])).expect("probabilities");
        assert!(fit.p_value >= doubt::ALPHA, "{fit:?}");
    }

    /// One option that loses what twenty others gain: its loss is nearly all of epsilon.
    fn epsilon_seen(mechanism: &Exponential<ReplaceOne>) -> whit_audit::Verdict {
        let worlds = [vec![8; 21], vec![10; 21]].map(|mut scores| {
            scores[0] = 18 - scores[1];
            scores
        });
        let (mut entropy, mut other) = (Seeded::new(seed(312)), Seeded::new(seed(313)));
        judge(
            1.0,
            0.0,
            200_000,
            || index(mechanism, &worlds[0], &mut entropy) == 0,
            || index(mechanism, &worlds[1], &mut other) == 0,
        )
    }

    #[test]
    fn falsifier() {
        let verdict = epsilon_seen(&Exponential::new(ratio(1, 1), any(21, 2)));
        assert!(
            !verdict.convicted && verdict.epsilon_lower > 0.77,
            "{verdict:?}"
        );
    }

    #[test]
    fn falsifier_has_teeth() {
        // The classic slip: exp(ε q/Δ) for scores that move both ways.
        let verdict = epsilon_seen(&Exponential::new(ratio(1, 1), any(21, 1)));
        assert!(verdict.convicted, "{verdict:?}");
        // Ten percent too sharp: too little for a hundred thousand draws of a rare event, but not for exact probabilities.
        let twin = Exponential::new(ratio(11, 10), any(3, 1));
        assert!(range(&twin, &[0, 0, 0], &[1, -1, -1]).0 > 1.09);
    }

    #[test]
    fn error_holds() {
        for (epsilon, c) in [(1, 0.5), (1, 0.95), (3, 0.999)] {
            let scores: Vec<i64> = (0..40).collect();
            let mechanism = Exponential::new(ratio(epsilon, 1), any(40, 1));
            let error = mechanism.error(confidence(c));
            let p = probabilities(&mechanism, &scores);
            let beyond: f64 = p
                .iter()
                .zip(&scores)
                .filter(|(_, q)| (39 - **q) as f64 >= error)
                .map(|(p, _)| p)
                .sum();
            assert!(beyond <= 1.0 - c, "{beyond} at {c}");
            assert!((error - 2.0 * (40.0 / (1.0 - c)).ln() / epsilon as f64).abs() < 1e-9);
        }
        let based = Exponential::new(ratio(1, 1), any(2, 1))
            .with_base(vec![3, 0])
            .expect("two");
        assert!((based.error(confidence(0.5)) - 2.0 * 2_f64.ln()).abs() < 1e-9);
        assert_eq!(
            Exponential::new(Ratio::zero(), any(2, 1)).error(confidence(0.5)),
            f64::INFINITY
        );
    }

    #[test]
    fn edges() {
        let mut entropy = Seeded::new(314);
        let mechanism = Exponential::new(Ratio::one(), any(3, 1));
        for scores in [
            &[][..],
            &[i64::MIN; 3],
            &[i64::MAX; 3],
            &[i64::MIN, 0, i64::MAX],
            &[1; 9],
        ] {
            assert!(index(&mechanism, scores, &mut entropy) < 3);
        }
        let based = Exponential::new(ratio(1 << 90, 1), any(3, 1))
            .with_base(vec![0, 1, 0])
            .expect("three");
        assert_eq!(index(&based, &[i64::MAX, i64::MIN, 0], &mut entropy), 1);
        let one = Exponential::new(Ratio::one(), any(1, 1));
        assert_eq!(index(&one, &[], &mut entropy), 0);
        assert!(
            one.release(Secret::new(vec![1]), &mut FailingEntropy)
                .is_err()
        );
        let make = || Exponential::new(Ratio::one(), any(3, 1));
        assert!(make().with_base(vec![1, 1]).is_err() && make().with_base(vec![0; 3]).is_err());
        let even = probabilities(
            &Exponential::new(Ratio::zero(), any(4, 1)),
            &[1, 100, -5, 0],
        );
        assert!(even.iter().all(|p| (p - 0.25).abs() < 1e-9));
    }
}
