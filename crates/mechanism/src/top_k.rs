//! # Private top-k
//! **Definition.** `k` rounds of the [exponential mechanism](crate::exponential), each with range `ε` and each on the options that no
//!   earlier round chose. The list is in the order of choice.
//! **Requires.** Scores of spread `S` ([`Scores`]), and `k <= n`.
//! **Guarantee.** The composition of `k` mechanisms of range `ε`: `kε`-DP, `kε²/8`-zCDP, and whatever else an accountant proves.
//! **Proof.** Given what the rounds before have chosen, which is released, a round is the exponential mechanism on the remaining
//!   options. Restricted to them, the scores' differences still lie in the same interval of length `S`. Its `ε` was fixed
//!   beforehand. So this is adaptive composition.
//! **Sampler.** Exact, `k` times. The `k` largest of `ε q_i/S` plus Gumbel noise, drawn once, have the same law as this list \[DR19\];
//!   that is a quicker way to sample it in real arithmetic, and not a cheaper mechanism. One-shot Laplace noise has other
//!   guarantees and is not offered.
//! **Error.** With probability at least `1 - β` no option is left out whose score exceeds the `j`-th chosen one's by
//!   `(S/ε) ln(nk/β)` or more, for any `j`: in each round, the exponential mechanism's error with `β/k`.

use whit_core::{Confidence, Entropy, Event, Mechanism, Ratio, Relation, Secret, round};

use crate::sample::Weighted;
use crate::score::Scores;
use crate::{Error, Exponential, Release, Result};

/// Chooses `k` different options of high score.
pub struct TopK<R: Relation> {
    k: usize,
    epsilon_each: Ratio,
    rate: Ratio,
    options: usize,
    round: Exponential<R>,
}

impl<R: Relation> TopK<R> {
    /// `k` options, each of which costs `epsilon_each`.
    pub fn new(k: u64, epsilon_each: Ratio, scores: Scores<R>) -> Result<Self> {
        let options = scores.options();
        if !(1..=options as u64).contains(&k) {
            return Err(Error::CountOutOfRange {
                what: "the number of options to choose",
                given: k,
                min: 1,
                max: options as u64,
            });
        }
        Ok(Self {
            k: k as usize,
            rate: scores.rate(&epsilon_each),
            options,
            round: Exponential::new(epsilon_each.clone(), scores),
            epsilon_each,
        })
    }

    /// What an accountant needs to know.
    pub fn event(&self) -> Event {
        let each = Mechanism::BoundedRange {
            epsilon: self.epsilon_each.clone(),
        };
        Event::new(R::NEIGHBOURS, Mechanism::Composition(vec![each; self.k]))
    }

    /// Spends one `event` and tells `k` different indices.
    pub fn release(
        &self,
        scores: Secret<Vec<i64>>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Vec<usize>>> {
        let mut bits = entropy.open()?;
        let mut weights = self.round.weights(scores);
        let mut chosen = Vec::with_capacity(self.k);
        for _ in 0..self.k {
            // Fewer than k <= n are gone, so one is left to choose.
            let choice = Weighted::new(&self.rate, weights);
            let option = choice.sample(&mut bits);
            weights = choice.into_weights();
            weights[option].multiplicity = 0;
            chosen.push(option);
        }
        Ok(Release::new(chosen, self.event()))
    }

    /// By how much the score of an option that was left out exceeds that of a chosen one at most, with the given probability.
    /// Rounded up; infinite if epsilon is zero.
    pub fn error(&self, confidence: Confidence) -> f64 {
        let miss = round::div_down(round::sub_down(1.0, confidence.value()), self.k as f64);
        let exponent = round::ln_up(round::div_up(self.options as f64, miss));
        round::div_up(exponent, self.rate.to_f64_down())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{self, TapeEntropy, confidence, judge, seed};
    use crate::score::tests::{any, counts, pairs, ratio};
    use whit_audit::{enumerate, g_test};
    use whit_core::ReplaceOne;
    use whit_testkit::{FailingEntropy, Seeded};

    fn list<R: Relation>(
        mechanism: &TopK<R>,
        scores: &[i64],
        entropy: &mut impl Entropy,
    ) -> Vec<usize> {
        let scores = Secret::new(scores.to_vec());
        mechanism
            .release(scores, entropy)
            .expect("entropy")
            .into_value()
    }

    /// All ordered pairs out of `n`, with their probabilities: one round after the other.
    fn probabilities(rate: f64, scores: &[i64]) -> Vec<(Vec<usize>, f64)> {
        let w: Vec<f64> = scores.iter().map(|&q| (rate * q as f64).exp()).collect();
        let total: f64 = w.iter().sum();
        let mut found = Vec::new();
        for i in 0..w.len() {
            for j in (0..w.len()).filter(|&j| j != i) {
                found.push((vec![i, j], w[i] / total * w[j] / (total - w[i])));
            }
        }
        found
    }

    #[test]
    fn closed_form() {
        let mechanism = TopK::new(3, ratio(1, 2), counts(5)).expect("three of five");
        let Mechanism::Composition(parts) = mechanism.event().mechanism().clone() else {
            panic!("another event")
        };
        assert_eq!(
            parts,
            vec![
                Mechanism::BoundedRange {
                    epsilon: ratio(1, 2)
                };
                3
            ]
        );
        let error = mechanism.error(confidence(0.9));
        assert!(
            (error - 2.0 * (5.0 * 3.0 / 0.1_f64).ln()).abs() < 1e-9,
            "{error}"
        );
        assert!(TopK::new(0, Ratio::one(), counts(5)).is_err());
        assert!(TopK::new(6, Ratio::one(), counts(5)).is_err());
    }

    /// Every tape of the whole mechanism against the formula.
    #[test]
    fn enumeration() {
        let scores = [2, 0, 1];
        let mechanism = TopK::new(2, Ratio::one(), any(3, 1)).expect("two of three");
        let found = enumerate::<1, _>(24, |tape| {
            list(&mechanism, &scores, &mut TapeEntropy(Some(tape)))
        });
        let unit = 2_f64.powi(-24);
        assert_eq!(found.masses().len(), 6);
        assert!(found.unresolved() < 2000, "{}", found.unresolved());
        for (list, p) in probabilities(0.5, &scores) {
            let (mass, open) = (
                found.mass(&list) as f64 * unit,
                found.unresolved() as f64 * unit,
            );
            assert!(
                mass <= p + 1e-12 && p <= mass + open + 1e-12,
                "{list:?}: {mass} {p}"
            );
        }
    }

    /// Exact probabilities on all neighbours: at most `kε`, and nearly that.
    #[test]
    fn exact_loss_of_neighbours() {
        let loss = |one: &[i64], other: &[i64]| {
            let (p, q) = (probabilities(0.5, one), probabilities(0.5, other));
            p.iter()
                .zip(&q)
                .map(|(p, q)| (p.1 / q.1).ln().abs())
                .fold(0.0, f64::max)
        };
        let centres: [&[i64]; 3] = [&[0, 0, 0, 0], &[3, 1, 0, 3], &[-5, 0, 5, 2]];
        for (one, other) in pairs(&centres, &[-1, 0, 1]) {
            assert!(loss(&one, &other) <= 2.0 + 1e-9, "{one:?} {other:?}");
        }
        let (mut one, mut other) = (vec![0; 300], vec![2; 300]);
        (one[0], one[1], other[0], other[1]) = (2, 2, 0, 0);
        assert!(loss(&one, &other) > 1.95);
    }

    #[test]
    fn distribution() {
        let scores = [2, 0, 1, 2];
        let mechanism = TopK::new(2, Ratio::one(), any(4, 1)).expect("two of four");
        let expected = probabilities(0.5, &scores);
        let mut entropy = Seeded::new(seed(341));
        let mut seen = vec![0; expected.len()];
        for _ in 0..200_000 {
            let list = list(&mechanism, &scores, &mut entropy);
            let place = expected.iter().position(|(other, _)| *other == list);
            seen[place.expect("two different options")] += 1;
        }
        let p: Vec<f64> = expected.iter().map(|(_, p)| *p).collect();
        let fit = g_test(&seen, &p).expect("probabilities").p_value;
        assert!(fit >= doubt::ALPHA, "p = {fit:e}");
    }

    /// Two options that lose what six others gain; the event: both are told, in either order.
    fn epsilon_seen(mechanism: &TopK<ReplaceOne>) -> whit_audit::Verdict {
        let event = |scores: [i64; 8], entropy: &mut Seeded| {
            let mut list = list(mechanism, &scores, entropy);
            list.sort_unstable();
            list == [0, 1]
        };
        let (mut entropy, mut other) = (Seeded::new(seed(342)), Seeded::new(seed(343)));
        judge(
            1.0,
            0.0,
            100_000,
            || event([2, 2, 0, 0, 0, 0, 0, 0], &mut entropy),
            || event([0, 0, 2, 2, 2, 2, 2, 2], &mut other),
        )
    }

    #[test]
    fn falsifier() {
        let mechanism = TopK::new(2, ratio(1, 2), any(8, 2)).expect("two of eight");
        let verdict = epsilon_seen(&mechanism);
        assert!(
            !verdict.convicted && verdict.epsilon_lower > 0.5,
            "{verdict:?}"
        );
    }

    #[test]
    fn falsifier_has_teeth() {
        // The whole epsilon for each round.
        let twin = TopK::new(2, ratio(1, 1), any(8, 2)).expect("two of eight");
        let verdict = epsilon_seen(&twin);
        assert!(verdict.convicted, "{verdict:?}");
    }

    #[test]
    fn edges() {
        let mut entropy = Seeded::new(344);
        for epsilon in [Ratio::zero(), Ratio::one(), ratio(1 << 90, 1)] {
            let mechanism = TopK::new(3, epsilon, any(3, 1)).expect("all of three");
            for scores in [
                &[][..],
                &[i64::MIN; 3],
                &[i64::MAX; 3],
                &[i64::MIN, 0, i64::MAX],
                &[1; 9],
            ] {
                let mut found = list(&mechanism, scores, &mut entropy);
                found.sort_unstable();
                assert_eq!(found, [0, 1, 2]);
            }
        }
        let sharp = TopK::new(2, ratio(1 << 40, 1), any(4, 1)).expect("two of four");
        assert_eq!(list(&sharp, &[3, 9, 1, 7], &mut entropy), [1, 3]);
        assert!(
            sharp
                .release(Secret::new(vec![1]), &mut FailingEntropy)
                .is_err()
        );
    }
}
