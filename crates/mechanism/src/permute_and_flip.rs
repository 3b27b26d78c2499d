//! # Permute and flip
//! **Definition.** Go through the options in a uniformly random order; stop at option `i` with probability
//!   `w_i = exp(ε (q_i - q*)/S)`, where `q*` is the best score. [MS20, Alg. 1]
//! **Requires.** As the [exponential mechanism](crate::exponential): scores of spread `S`.
//! **Guarantee.** `ε`-DP. *Not* bounded range: nothing better than `ε`-DP may be charged. Never a larger expected error than the
//!   exponential mechanism of the same `ε`, and up to half of it. [MS20, Thm. 2]
//! **Proof.**
//!   1. Throw each option's coin beforehand and let `A` be the set of heads; the best option is always in it. The first member of
//!      `A` in a random order is uniform in `A`. So: `A` holds each `i` independently with probability `w_i`, and the choice is
//!      uniform in `A`.
//!   2. Add to each score independent exponential noise `Z_i` of scale `b = S/ε`. `Pr[q_i + Z_i >= q*] = w_i` independently, and
//!      given that it is, what is above `q*` is again exponential with scale `b`. Hence the largest noisy score is that of a
//!      uniform member of such an `A`: the same law. \[DKS21\]
//!   3. Fix `i` and all other noise. `i` is the largest iff `Z_i > t`, `t = max_{j≠i}(q_j + Z_j) - q_i`. For a neighbour, `t' <= t + S`,
//!      since `q'_j - q_j` and `q'_i - q_i` lie in an interval of length `S`. And `Pr[Z > t + S] >= e^(-S/b) Pr[Z > t]` for
//!      every real `t`, because `Pr[Z > t] = min(1, e^(-t/b))`. So `Pr'[i] >= e^-ε Pr[i]`.
//!
//!   With one uniform arrival time per option, `Pr[i] = w_i ∫₀¹ Π_{j≠i} (1 - u w_j) du`.
//! **Sampler.** By step 1: every coin is thrown, exactly, and one of the heads is chosen by an exact uniform number. Throwing them
//!   all costs a little more than stopping at the first, and its time tells less.
//! **Error.** That of the exponential mechanism: with probability at least `1 - β` less than `(S/ε) ln(n/β)` below the best. (An option
//!   further below is among the heads with probability at most `β/n`.)

use whit_core::{Confidence, Entropy, Event, Mechanism, Ratio, Relation, Secret};

use crate::sample::{ExpCoin, uniform_below};
use crate::score::{Scores, distances};
use crate::{Exponential, Release, Result};

/// Chooses an option with a good score, better than the exponential mechanism does.
pub struct PermuteAndFlip<R: Relation> {
    epsilon: Ratio,
    scores: Scores<R>,
    coin: ExpCoin,
}

impl<R: Relation> PermuteAndFlip<R> {
    /// Takes parsed units, so there is nothing left to check.
    pub fn new(epsilon: Ratio, scores: Scores<R>) -> Self {
        let coin = ExpCoin::new(&scores.rate(&epsilon));
        Self {
            epsilon,
            scores,
            coin,
        }
    }

    /// What an accountant needs to know.
    pub fn event(&self) -> Event {
        let mechanism = Mechanism::Pure {
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
        let scores = self.scores.read(scores);
        let heads: Vec<usize> = distances(&scores)
            .enumerate()
            .filter(|&(_, distance)| self.coin.heads(distance, &mut bits))
            .map(|(option, _)| option)
            .collect();
        // The best option's coin has no tails, so there is one.
        let chosen = heads[uniform_below(heads.len() as u64, &mut bits) as usize];
        Ok(Release::new(chosen, self.event()))
    }

    /// How far below the best the chosen score is at most, with the given probability. Rounded up; infinite if epsilon is zero.
    pub fn error(&self, confidence: Confidence) -> f64 {
        Exponential::new(self.epsilon.clone(), self.scores.clone()).error(confidence)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::doubt::{self, TapeEntropy, judge, seed};
    use crate::score::tests::{any, counts, pairs, ratio};
    use dashu_int::UBig;
    use dashu_ratio::RBig;
    use whit_audit::{enumerate, g_test};
    use whit_core::ReplaceOne;
    use whit_testkit::{FailingEntropy, Seeded};

    fn index<R: Relation>(
        mechanism: &PermuteAndFlip<R>,
        scores: &[i64],
        entropy: &mut impl Entropy,
    ) -> usize {
        let scores = Secret::new(scores.to_vec());
        *mechanism.release(scores, entropy).expect("entropy").value()
    }

    /// The formula: the integrand is a polynomial in `u`, integrated term by term.
    pub(crate) fn probabilities(rate: f64, scores: &[i64]) -> Vec<f64> {
        let best = scores.iter().max().expect("an option");
        let w: Vec<f64> = scores
            .iter()
            .map(|q| (-rate * (best - q) as f64).exp())
            .collect();
        let of = |i: usize| {
            let mut polynomial = vec![1.0];
            for (_, w) in w.iter().enumerate().filter(|(j, _)| *j != i) {
                polynomial.push(0.0);
                for power in (1..polynomial.len()).rev() {
                    polynomial[power] -= w * polynomial[power - 1];
                }
            }
            let integral: f64 = polynomial
                .iter()
                .enumerate()
                .map(|(power, c)| c / (power + 1) as f64)
                .sum();
            w[i] * integral
        };
        (0..w.len()).map(of).collect()
    }

    /// The digits of the specification (F2).
    #[test]
    fn closed_form() {
        let scores = [10, 9, 8, 0, 0];
        let expected = [0.58407, 0.26497, 0.14618, 0.00240, 0.00240];
        for (p, expected) in probabilities(0.5, &scores).iter().zip(expected) {
            assert!((p - expected).abs() <= 5.1e-6, "{p} is not {expected}");
        }
        for (epsilon, error) in [(0.5, 1.2216), (1.0, 0.6052), (2.0, 0.2948)] {
            let p = probabilities(epsilon / 2.0, &scores);
            let found: f64 = p.iter().zip(scores).map(|(p, q)| p * (10 - q) as f64).sum();
            assert!((found - error).abs() <= 5.1e-5, "{found} is not {error}");
            assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
        let event = PermuteAndFlip::new(ratio(1, 3), counts(2)).event();
        assert!(
            matches!(event.mechanism(), Mechanism::Pure { epsilon } if *epsilon == ratio(1, 3))
        );
    }

    /// The whole mechanism on every tape against the formula.
    #[test]
    fn enumeration() {
        for scores in [&[0, 0][..], &[3, 1], &[0, 0, 0], &[1, 0, -2], &[7]] {
            let mechanism = PermuteAndFlip::new(Ratio::one(), any(scores.len() as u64, 1));
            let found = enumerate::<1, _>(20, |tape| {
                index(&mechanism, scores, &mut TapeEntropy(Some(tape)))
            });
            let exact = |p: f64| RBig::try_from(p).expect("finite");
            let p = probabilities(0.5, scores);
            let slack = RBig::from_parts(1.into(), UBig::ONE << 45);
            let violations = found.violations(|&i| (exact(p[i]) - &slack, exact(p[i]) + &slack));
            assert!(violations.is_empty(), "{scores:?}: {violations:?}");
            assert!(
                found.unresolved() < 1 << 11,
                "{scores:?}: {}",
                found.unresolved()
            );
        }
    }

    #[test]
    fn distribution() {
        let scores = [10, 9, 8, 0, 0];
        for (epsilon, rate) in [((1, 2), 0.25), ((1, 1), 0.5), ((2, 1), 1.0)] {
            let mechanism = PermuteAndFlip::new(ratio(epsilon.0, epsilon.1), any(5, 1));
            let mut entropy = Seeded::new(seed(321));
            let mut seen = [0; 5];
            for _ in 0..200_000 {
                seen[index(&mechanism, &scores, &mut entropy)] += 1;
            }
            let fit = |rate| {
                g_test(&seen, &probabilities(rate, &scores))
                    .expect("probabilities")
                    .p_value
            };
            assert!(fit(rate) >= doubt::ALPHA, "{}", fit(rate));
            assert!(fit(rate * 0.95) < doubt::ALPHA, "{}", fit(rate * 0.95));
        }
    }

    fn loss(rate: f64, one: &[i64], other: &[i64]) -> (f64, f64) {
        let (p, q) = (probabilities(rate, one), probabilities(rate, other));
        let ratios = p.iter().zip(&q).map(|(p, q)| (p / q).ln());
        ratios.fold((0.0, 0.0), |(low, high), r| (r.min(low), r.max(high)))
    }

    /// Exact probabilities on all neighbours: the loss reaches epsilon and never passes it; its range does pass it.
    #[test]
    fn exact_loss_of_neighbours() {
        let centres: [&[i64]; 4] = [&[0, 0, 0, 0], &[3, 1, 0, 3], &[9, 9, 1, -9], &[-5, 0, 5, 2]];
        let (mut largest, mut widest) = (0.0_f64, 0.0_f64);
        for (one, other) in pairs(&centres, &[-1, 0, 1]) {
            let (low, high) = loss(0.5, &one, &other);
            assert!(
                -low <= 1.0 + 1e-9 && high <= 1.0 + 1e-9,
                "{one:?} {other:?}: {low} {high}"
            );
            largest = largest.max(high).max(-low);
            widest = widest.max(high - low);
        }
        assert!(largest > 0.999_999, "{largest}");
        // [0, 0] and [1, -1]: ε + ln(2 - e^-ε). Whoever charges ε²/8 charges too little.
        assert!(widest > 1.3, "{widest}");
        for (one, other) in pairs(&centres, &[0, 1]) {
            let (low, high) = loss(1.0, &one, &other);
            assert!(
                -low <= 1.0 + 1e-9 && high <= 1.0 + 1e-9,
                "{one:?} {other:?}: {low} {high}"
            );
        }
    }

    #[test]
    fn never_worse_than_exponential() {
        for (scores, _) in pairs(&[&[0, 0, 0, 0]], &[-7, -1, 0, 3])
            .into_iter()
            .chain(pairs(&[&[5, 1, 0]], &[0]))
        {
            for rate in [0.1, 0.5, 2.0] {
                let best = *scores.iter().max().expect("an option");
                let w: Vec<f64> = scores
                    .iter()
                    .map(|q| (-rate * (best - q) as f64).exp())
                    .collect();
                let total: f64 = w.iter().sum();
                let exponential: f64 = w
                    .iter()
                    .zip(&scores)
                    .map(|(w, q)| w / total * (best - q) as f64)
                    .sum();
                let ours: f64 = probabilities(rate, &scores)
                    .iter()
                    .zip(&scores)
                    .map(|(p, q)| p * (best - q) as f64)
                    .sum();
                assert!(ours <= exponential + 1e-12, "{scores:?}");
            }
        }
    }

    /// Two options, tied or apart: the second is chosen half of the time, or `e^-ε/2`.
    fn epsilon_seen(mechanism: &PermuteAndFlip<ReplaceOne>) -> whit_audit::Verdict {
        let (mut entropy, mut other) = (Seeded::new(seed(322)), Seeded::new(seed(323)));
        judge(
            1.0,
            0.0,
            150_000,
            || index(mechanism, &[5, 5], &mut entropy) == 1,
            || index(mechanism, &[7, 3], &mut other) == 1,
        )
    }

    #[test]
    fn falsifier() {
        let verdict = epsilon_seen(&PermuteAndFlip::new(Ratio::one(), any(2, 2)));
        assert!(
            !verdict.convicted && verdict.epsilon_lower > 0.92,
            "{verdict:?}"
        );
    }

    #[test]
    fn falsifier_has_teeth() {
        let twin = PermuteAndFlip::new(ratio(11, 10), any(2, 2));
        assert!(epsilon_seen(&twin).convicted, "ten percent too sharp");
        let twin = PermuteAndFlip::new(Ratio::one(), any(2, 1));
        assert!(epsilon_seen(&twin).convicted, "half of the sensitivity");
    }

    #[test]
    fn edges() {
        let mut entropy = Seeded::new(324);
        for epsilon in [
            Ratio::zero(),
            ratio(1, 1 << 90),
            Ratio::one(),
            ratio(1 << 90, 1),
        ] {
            let mechanism = PermuteAndFlip::new(epsilon, any(3, 1));
            for scores in [
                &[][..],
                &[i64::MIN; 3],
                &[i64::MAX; 3],
                &[i64::MIN, 0, i64::MAX],
                &[1; 9],
            ] {
                assert!(index(&mechanism, scores, &mut entropy) < 3);
            }
        }
        let one = PermuteAndFlip::new(Ratio::one(), any(1, 1));
        assert!(
            one.release(Secret::new(vec![1]), &mut FailingEntropy)
                .is_err()
        );
    }
}
