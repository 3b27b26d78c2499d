//! # Report noisy max
//! **Definition.** Add independent discrete Laplace noise of scale `b` to each integer score and tell which is largest, the first of
//!   them if several are. The noisy scores themselves stay secret. [DR14, Sec. 3.3]
//! **Requires.** Scores of spread `S` ([`Scores`]).
//! **Guarantee.** `ε`-DP with `ε = S/b`.
//! **Proof.** Fix `i` and all other noise. Since ties go to the first, `i` is told iff `q_i + Z_i > q_j + Z_j` for all `j < i` and `>=` for all
//!   `j > i`, that is iff `Z_i >= t` for an integer `t` which is a maximum of terms `q_j - q_i + Z_j + [j < i]`. For a neighbour each
//!   of these is larger by at most `S`, an integer `s <= S` since all scores are: `t' <= t + s`. And
//!   `Pr[Z >= t + s] = Σ_{z >= t} Pr[Z = z + s] >= e^(-s/b) Pr[Z >= t]`, since `|z + s| <= |z| + s`. So `Pr'[i] >= e^(-S/b) Pr[i]` for
//!   every value of the other noise, hence on average. (Any tie-break that depends on the indices alone has the same proof; one
//!   that depends on the scores would not.)
//! **Sampler.** Exact: [`sample::DiscreteLaplace`].
//! **Error.** With probability at least `1 - β` at most `2t` below the best, `t = b ln(2n/β)`: each of `n` draws is beyond `±t` with
//!   probability at most `2 exp(-t/b) = β/n`.
//!
//! With Gumbel instead of Laplace noise this would be the [exponential mechanism](crate::exponential), with exponential noise
//! [permute-and-flip](crate::permute_and_flip), which is the best of the three; both are there, exact and without any noise
//! on scores. This one is for comparison, and for scores that somebody else adds noise to.

use whit_core::{Confidence, Entropy, Event, Mechanism, Ratio, Relation, Scale, Secret, round};

use crate::score::Scores;
use crate::{Release, Result, sample};

/// Tells the option whose noisy score is largest.
pub struct ReportNoisyMax<R: Relation> {
    epsilon: Ratio,
    scale: Scale,
    scores: Scores<R>,
    noise: sample::DiscreteLaplace,
}

impl<R: Relation> ReportNoisyMax<R> {
    /// Noise of scale `S/ε`. Refused if there is no such scale, as for an epsilon of zero.
    pub fn new(epsilon: Ratio, scores: Scores<R>) -> Result<Self> {
        // An epsilon of zero has an infinite scale, which no scale is.
        let inverse = scores.rate(&epsilon);
        let scale = Ratio::one()
            .checked_div(&inverse)
            .unwrap_or_else(|| Ratio::power_of_two(1000));
        let scale = Scale::new(scale)?;
        Ok(Self {
            noise: sample::DiscreteLaplace::new(&scale),
            epsilon,
            scale,
            scores,
        })
    }

    /// The scale of the noise on each score.
    pub fn scale(&self) -> &Scale {
        &self.scale
    }

    /// What an accountant needs to know.
    pub fn event(&self) -> Event {
        let mechanism = Mechanism::Pure {
            epsilon: self.epsilon.clone(),
        };
        Event::new(R::NEIGHBOURS, mechanism)
    }

    /// Spends one `event` and tells the index of the largest noisy score.
    pub fn release(
        &self,
        scores: Secret<Vec<i64>>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<usize>> {
        let mut bits = entropy.open()?;
        let mut largest = (0, i128::MIN);
        for (option, score) in self.scores.read(scores).into_iter().enumerate() {
            // At the largest scale noise leaves the integers with probability below exp(-2^30); else nothing saturates.
            let noisy = i128::from(score).saturating_add(self.noise.sample(&mut bits));
            if noisy > largest.1 {
                largest = (option, noisy);
            }
        }
        Ok(Release::new(largest.0, self.event()))
    }

    /// How far below the best the chosen score is at most, with the given probability. Rounded up.
    pub fn error(&self, confidence: Confidence) -> f64 {
        // Pr[|Z| > t] <= 2 exp(-t/b) for every real t >= 0.
        let miss = round::sub_down(1.0, confidence.value());
        let draws = 2.0 * self.scores.options() as f64;
        let t = round::mul_up(
            self.scale.ratio().to_f64_up(),
            round::ln_up(round::div_up(draws, miss)),
        );
        2.0 * t
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{self, TapeEntropy, confidence, judge, seed};
    use crate::score::tests::{any, counts, laplace_at_most, laplace_pmf, pairs, ratio};
    use whit_audit::{enumerate, g_test};
    use whit_core::ReplaceOne;
    use whit_testkit::{FailingEntropy, Seeded};

    fn index<R: Relation>(
        mechanism: &ReportNoisyMax<R>,
        scores: &[i64],
        entropy: &mut impl Entropy,
    ) -> usize {
        let scores = Secret::new(scores.to_vec());
        *mechanism.release(scores, entropy).expect("entropy").value()
    }

    /// The sum over the winner's noise of the probability that all others stay below, or at most level if they come later.
    fn probabilities(b: f64, scores: &[i64]) -> Vec<f64> {
        let of = |i: usize| -> f64 {
            let reach = (60.0 * b) as i64 + 40;
            let given = |z: i64| -> f64 {
                let others = scores.iter().enumerate().filter(|(j, _)| *j != i);
                others
                    .map(|(j, q)| laplace_at_most(b, scores[i] + z - q - i64::from(j < i)))
                    .product()
            };
            (-reach..=reach).map(|z| laplace_pmf(b, z) * given(z)).sum()
        };
        (0..scores.len()).map(of).collect()
    }

    fn loss(b: f64, one: &[i64], other: &[i64]) -> f64 {
        let (p, q) = (probabilities(b, one), probabilities(b, other));
        let ratios = p.iter().zip(&q).map(|(p, q)| (p / q).ln().abs());
        ratios.fold(0.0, f64::max)
    }

    #[test]
    fn closed_form() {
        let mechanism = ReportNoisyMax::new(ratio(1, 2), any(3, 3)).expect("a scale");
        assert_eq!(mechanism.scale().ratio(), &Ratio::from(12_u64));
        assert!(
            matches!(mechanism.event().mechanism(), Mechanism::Pure { epsilon } if *epsilon == ratio(1, 2))
        );
        let mechanism = ReportNoisyMax::new(ratio(1, 2), counts(3)).expect("a scale");
        assert_eq!(mechanism.scale().ratio(), &Ratio::from(2_u64));
        let error = mechanism.error(confidence(0.5));
        assert!((error - 4.0 * 12_f64.ln()).abs() < 1e-9, "{error}");
        assert!(ReportNoisyMax::new(Ratio::zero(), counts(3)).is_err());
        let sum: f64 = probabilities(1.5, &[3, 1, 0, 3]).iter().sum();
        assert!((sum - 1.0).abs() < 1e-12, "{sum}");
    }

    /// Exact probabilities on all neighbours: the loss never passes epsilon, and comes near it for many options.
    #[test]
    fn exact_loss_of_neighbours() {
        let centres: [&[i64]; 4] = [&[0, 0, 0, 0], &[3, 1, 0, 3], &[9, 9, 1, -9], &[-5, 0, 5, 2]];
        for (one, other) in pairs(&centres, &[-1, 0, 1]) {
            let loss = loss(2.0, &one, &other);
            assert!(loss <= 1.0 + 1e-9, "{one:?} {other:?}: {loss}");
        }
        for (one, other) in pairs(&centres, &[0, 1]) {
            let loss = loss(1.0, &one, &other);
            assert!(loss <= 1.0 + 1e-9, "{one:?} {other:?}: {loss}");
        }
        let (mut one, mut other) = (vec![0; 200], vec![2; 200]);
        (one[0], other[0]) = (2, 0);
        assert!(
            loss(2.0, &one, &other) > 0.98,
            "{}",
            loss(2.0, &one, &other)
        );
        assert!(
            loss(1.8, &one, &other) > 1.0,
            "ten percent too little noise"
        );
    }

    #[test]
    fn distribution() {
        let scores = [5, 4, 4, 0, 5];
        let mechanism = ReportNoisyMax::new(ratio(4, 5), any(5, 1)).expect("a scale");
        let mut entropy = Seeded::new(seed(331));
        let mut seen = [0; 5];
        for _ in 0..300_000 {
            seen[index(&mechanism, &scores, &mut entropy)] += 1;
        }
        let fit = |b| {
            g_test(&seen, &probabilities(b, &scores))
                .expect("probabilities")
                .p_value
        };
        assert!(fit(2.5) >= doubt::ALPHA, "{}", fit(2.5));
        assert!(fit(2.25) < doubt::ALPHA, "{}", fit(2.25));
    }

    /// Every tape of the whole mechanism on both neighbours.
    #[test]
    fn enumeration_of_neighbours() {
        let run = |epsilon: (u128, u128), scores: &[i64]| {
            let mechanism =
                ReportNoisyMax::new(ratio(epsilon.0, epsilon.1), any(2, 1)).expect("a scale");
            enumerate::<1, _>(18, |tape| {
                index(&mechanism, scores, &mut TapeEntropy(Some(tape)))
            })
        };
        let honest = run((2, 1), &[2, 0]).max_log_ratio_lower(&run((2, 1), &[1, 1]));
        assert!(honest <= 2.0 && honest > 0.5, "{honest}");
        let twin = run((6, 1), &[2, 0]).max_log_ratio_lower(&run((6, 1), &[1, 1]));
        assert!(twin > 2.0, "{twin}");
    }

    /// The one that loses what all others gain, against many: its loss is nearly all of epsilon.
    fn epsilon_seen(mechanism: &ReportNoisyMax<ReplaceOne>) -> whit_audit::Verdict {
        let worlds = [2, 0].map(|first| {
            let mut scores = vec![2 - first; 30];
            scores[0] = first;
            scores
        });
        let (mut entropy, mut other) = (Seeded::new(seed(332)), Seeded::new(seed(333)));
        judge(
            1.0,
            0.0,
            100_000,
            || index(mechanism, &worlds[0], &mut entropy) == 0,
            || index(mechanism, &worlds[1], &mut other) == 0,
        )
    }

    #[test]
    fn falsifier() {
        let verdict =
            epsilon_seen(&ReportNoisyMax::new(Ratio::one(), any(30, 2)).expect("a scale"));
        assert!(
            !verdict.convicted && verdict.epsilon_lower > 0.71,
            "{verdict:?}"
        );
    }

    #[test]
    fn falsifier_has_teeth() {
        // The classic slip: noise of scale Δ/ε, as for a single count.
        let twin = ReportNoisyMax::new(Ratio::one(), any(30, 1)).expect("a scale");
        assert!(epsilon_seen(&twin).convicted);
    }

    #[test]
    fn edges() {
        let mut entropy = Seeded::new(334);
        for epsilon in [ratio(1, 1 << 60), Ratio::one(), ratio(1 << 60, 1)] {
            let mechanism = ReportNoisyMax::new(epsilon, any(3, 1)).expect("a scale");
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
        let quiet = ReportNoisyMax::new(ratio(1 << 60, 1), any(3, 1)).expect("a scale");
        assert_eq!(
            index(&quiet, &[4, 7, 7], &mut entropy),
            1,
            "the first of the largest"
        );
        assert!(
            quiet
                .release(Secret::new(vec![1]), &mut FailingEntropy)
                .is_err()
        );
    }
}
