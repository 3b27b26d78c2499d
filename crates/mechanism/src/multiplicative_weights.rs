//! # Multiplicative weights
//! **Definition.** A distribution `x` over the cells of a [`Domain`], at first uniform. It learns that the share of rows in a [`Query`] `f`
//!   is about `a` by `x(u) ∝ x(u) exp(f(u) (a - f(x))/2)`, and then goes `replays` times through all that it has learnt so far, from the last
//!   to the first. \[HLM12\]
//! **Requires.** Nothing: it is given released values, and sees no data. Whatever it computes, in floats too, is post-processing.
//! **Error.** Each step towards a share `a` leaves `x` closer to any distribution `p`, in relative entropy, by at least
//!   `((f(p) - f(x))² - (a - f(p))²)/4`.
//! **Proof.** With `c = (a - f(x))/2`, so that `|c| <= 1/2`, the entropy relative to `p` falls by
//!   `c f(p) - ln Σ x(u) exp(c f(u)) = c f(p) - ln(1 + f(x) (e^c - 1))`. There `e^c <= 1 + c + c²`, hence the logarithm is at most
//!   `f(x) (c + c²) <= c f(x) + c²`, and it falls by at least `c (f(p) - f(x)) - c²`. Put in `e = f(p) - f(x)` and `v = a - f(p)`, with
//!   `c = (e + v)/2`: it is `(e² - v²)/4`. \[HLM12\] The entropy is at most `ln U` at first and never negative, so after `T` steps
//!   `Σ e_t² <= 4 ln U + Σ v_t²`: errors as large as the noise permits cannot go on.

use crate::workload::{Domain, Query};

/// A distribution over cells that learns from answers.
#[derive(Clone, Debug)]
pub struct MultiplicativeWeights {
    /// Not negative, with the sum `total` up to rounding.
    weights: Vec<f64>,
    total: f64,
    replays: u32,
    lessons: Vec<(Query, f64)>,
}

/// Weights are divided by their sum before it leaves this factor around one.
const TOTAL_MAX: f64 = 1e9;

impl MultiplicativeWeights {
    /// The uniform distribution, which knows nothing.
    pub fn uniform(domain: &Domain, replays: u32) -> Self {
        Self {
            weights: vec![1.0 / domain.size() as f64; domain.size()],
            total: 1.0,
            replays,
            lessons: Vec::new(),
        }
    }

    /// The probability of each cell.
    pub fn probabilities(&self) -> &[f64] {
        &self.weights
    }

    /// Learns one share and goes through what it knows. A share below zero or above one is clamped; what is no number, and a query
    /// with a cell that is not there, teach nothing.
    pub fn learn(&mut self, query: Query, share: f64) {
        let known = query.members().all(|cell| cell < self.weights.len());
        if share.is_nan() || !known {
            return;
        }
        self.lessons.push((query, share.clamp(0.0, 1.0)));
        let lessons = std::mem::take(&mut self.lessons);
        if let Some((query, share)) = lessons.last() {
            self.step(query, *share);
        }
        for _ in 0..self.replays {
            for (query, share) in lessons.iter().rev() {
                self.step(query, *share);
            }
        }
        self.lessons = lessons;
        self.normalise();
    }

    /// One update. The weights outside of the query keep theirs; only the sum changes.
    fn step(&mut self, query: &Query, share: f64) {
        let mass = query.answer(&self.weights);
        let factor = libm::exp(0.5 * (share - (mass / self.total).min(1.0)));
        for cell in query.members() {
            self.weights[cell] *= factor;
        }
        self.total += mass * (factor - 1.0);
        if !(1.0 / TOTAL_MAX..TOTAL_MAX).contains(&self.total) {
            self.normalise();
        }
    }

    /// Divides by the sum. It is positive: a step changes it by a factor of at most `e^(1/2)` either way.
    fn normalise(&mut self) {
        let sum: f64 = self.weights.iter().sum();
        for weight in &mut self.weights {
            *weight /= sum;
        }
        self.total = 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::seed;
    use crate::workload::tests::domain;
    use whit_core::Bits;
    use whit_testkit::SeededBits;

    fn unit(bits: &mut SeededBits) -> f64 {
        (bits.word() >> 11) as f64 / (1_u64 << 53) as f64
    }

    #[test]
    fn closed_form() {
        let domain = domain(&[2, 2]);
        let mut x = MultiplicativeWeights::uniform(&domain, 0);
        assert_eq!(x.probabilities(), [0.25; 4]);
        x.learn(Query::cell(&domain, &[(0, 1)]), 0.9);
        // e^((0.9 - 0.5)/2) beside one.
        let (inside, outside) = (0.2_f64.exp(), 1.0);
        let expected = [outside, outside, inside, inside].map(|w| w / (2.0 * (inside + outside)));
        for (found, expected) in x.probabilities().iter().zip(expected) {
            assert!((found - expected).abs() < 1e-15, "{found} {expected}");
        }
    }

    /// The inequality that the error bound rests on, for distributions, queries and answers of all kinds.
    #[test]
    fn each_step_gains_what_is_proven() {
        let mut bits = SeededBits::new(seed(692));
        let domain = domain(&[3, 2, 2]);
        let mut tightest = f64::INFINITY;
        for _ in 0..20_000 {
            let sharpness = 1 << bits.below(5);
            let mut weights = |zeros: bool| {
                let raw: Vec<f64> = (0..12)
                    .map(|_| {
                        let keep = !zeros || bits.below(3) > 0;
                        f64::from(keep) * unit(&mut bits).powi(sharpness) + 1e-12
                    })
                    .collect();
                let sum: f64 = raw.iter().sum();
                raw.into_iter().map(|w| w / sum).collect::<Vec<f64>>()
            };
            let (p, start) = (weights(true), weights(false));
            let cells = bits.word();
            let query = Query::of(&domain, |row| {
                cells >> (row[0] * 4 + row[1] * 2 + row[2]) & 1 == 1
            });
            let share = unit(&mut bits);
            let mut x = MultiplicativeWeights {
                weights: start.clone(),
                ..MultiplicativeWeights::uniform(&domain, 0)
            };
            x.learn(query.clone(), share);
            let entropy = |x: &[f64]| -> f64 {
                let terms = p.iter().zip(x).map(|(p, x)| p * (p / x).ln());
                terms.sum()
            };
            let fall = entropy(&start) - entropy(x.probabilities());
            let (e, v) = (
                query.answer(&p) - query.answer(&start),
                share - query.answer(&p),
            );
            let gain = fall - (e * e - v * v) / 4.0;
            assert!(gain >= -1e-12, "{fall} < ({e}² - {v}²)/4");
            tightest = tightest.min(gain);
        }
        assert!(tightest < 1e-3, "the bound is never near: {tightest}");
    }

    #[test]
    fn replays_reach_what_was_learnt() {
        let domain = domain(&[2, 2, 2]);
        let mut x = MultiplicativeWeights::uniform(&domain, 500);
        let lessons = [
            (Query::cell(&domain, &[(0, 1), (1, 1)]), 0.4),
            (Query::cell(&domain, &[(1, 1), (2, 1)]), 0.3),
            (Query::cell(&domain, &[(2, 0)]), 0.65),
        ];
        for (query, share) in lessons.clone() {
            x.learn(query, share);
        }
        for (query, share) in lessons {
            let found = query.answer(x.probabilities());
            assert!((found - share).abs() < 1e-4, "{found} for {share}");
        }
        let sum: f64 = x.probabilities().iter().sum();
        assert!((sum - 1.0).abs() < 1e-12);
    }

    /// Answers that contradict each other, that cannot be, and that say nothing.
    #[test]
    fn stays_a_distribution_whatever_it_is_told() {
        let domain = domain(&[2, 3]);
        let mut x = MultiplicativeWeights::uniform(&domain, 1000);
        let (all, none) = (Query::of(&domain, |_| true), Query::of(&domain, |_| false));
        let one = Query::cell(&domain, &[(0, 0), (1, 1)]);
        let foreign = Query::of(&super::tests::domain(&[7]), |_| true);
        for (query, share) in [
            (all.clone(), 0.0),
            (none, 1.0),
            (one.clone(), f64::INFINITY),
            (one.clone(), f64::NEG_INFINITY),
            (one, 1.0),
            (all.clone(), f64::NAN),
            (foreign, 0.5),
            (all, -0.0),
        ] {
            x.learn(query, share);
            let sum: f64 = x.probabilities().iter().sum();
            assert!((sum - 1.0).abs() < 1e-9, "{sum}");
            assert!(x.probabilities().iter().all(|p| (0.0..=1.0).contains(p)));
        }
        assert_eq!(x.lessons.len(), 6);
    }
}
