//! # Truncated geometric mechanism
//! **Definition.** For a count known to lie in `0..=n`, `M(x)` is `x` plus discrete Laplace noise, clamped to `0..=n`.
//! **Requires.** `|x - x'| <= Δ` for all neighbours, and a public `n`.
//! **Guarantee.** `ε`-DP with `ε = Δ/b`, the same as without the clamp. [GRS09, Thm 2.4: for a count (Δ = 1) it is the best
//!   `ε`-DP mechanism for every consumer with a prior and a monotone loss at once.]
//! **Proof.** Clamping to a public range is post-processing of [`DiscreteLaplace`].
//! **Sampler.** That of the discrete Laplace mechanism.
//! **Error.** With `q = exp(-1/b)`: `Pr[M(x) = 0] = q^x/(1+q)`, `Pr[M(x) = n] = q^(n-x)/(1+q)`, and `(1-q)/(1+q) q^|y-x|` between.

use whit_core::{Confidence, Entropy, Event, L1, Relation, Scale, Secret, Sensitivity};

use crate::{DiscreteLaplace, Release, Result};

/// Adds two-sided geometric noise to a count and keeps it in its public range.
pub struct Geometric<R: Relation> {
    noise: DiscreteLaplace<R>,
    count_max: i64,
}

impl<R: Relation> Geometric<R> {
    /// Counts lie in `0..=count_max`; a count outside is clamped first, which moves neighbours no further apart.
    pub fn new(scale: Scale, sensitivity: Sensitivity<L1, R>, count_max: u32) -> Self {
        Self {
            noise: DiscreteLaplace::new(scale, sensitivity),
            count_max: i64::from(count_max),
        }
    }

    /// What an accountant needs to know.
    pub fn event(&self) -> Event {
        self.noise.event()
    }

    /// Spends one `event`.
    pub fn release(&self, x: Secret<i64>, entropy: &mut impl Entropy) -> Result<Release<i64>> {
        let range = 0..=self.count_max;
        let clamp = move |x: i64| x.clamp(*range.start(), *range.end());
        Ok(self.noise.release(x.map(&clamp), entropy)?.map(&clamp))
    }

    /// A `t` with `Pr[|M(x) - x| <= t] >= confidence`.
    pub fn half_width(&self, confidence: Confidence) -> u128 {
        self.noise.half_width(confidence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{self, judge, scale, seed};
    use whit_audit::g_test;
    use whit_core::{AddRemove, Ratio};
    use whit_testkit::Seeded;

    fn mechanism(b: (u128, u128), count_max: u32) -> Geometric<AddRemove> {
        Geometric::new(scale(b.0, b.1), Sensitivity::new(Ratio::one()), count_max)
    }

    #[test]
    fn closed_form() {
        let plain = DiscreteLaplace::<AddRemove>::new(scale(2, 1), Sensitivity::new(Ratio::one()));
        assert_eq!(mechanism((2, 1), 5).event(), plain.event());
        assert_eq!(
            mechanism((2, 1), 5).half_width(doubt::confidence(0.95)),
            plain.half_width(doubt::confidence(0.95))
        );
    }

    #[test]
    fn distribution() {
        let (b, n) = (2.0_f64, 5_i64);
        let q = (-1.0 / b).exp();
        for x in [0_i64, 2, 5] {
            let mut counts = vec![0_u64; n as usize + 1];
            let mut entropy = Seeded::new(seed(221));
            let mechanism = mechanism((2, 1), 5);
            for _ in 0..100_000 {
                let y = *mechanism
                    .release(Secret::new(x), &mut entropy)
                    .expect("entropy")
                    .value();
                counts[y as usize] += 1;
            }
            let p = |y: i64| match y {
                0 => q.powi(x as i32) / (1.0 + q),
                y if y == n => q.powi((n - x) as i32) / (1.0 + q),
                y => (1.0 - q) / (1.0 + q) * q.powi((y - x).abs() as i32),
            };
            let probabilities: Vec<f64> = (0..=n).map(p).collect();
            let p_value = g_test(&counts, &probabilities)
                .expect("probabilities")
                .p_value;
            assert!(p_value >= doubt::ALPHA, "x = {x}: p = {p_value:e}");
        }
    }

    /// At the end of the range the clamp helps nobody: the event `0` still shows all of ε.
    fn seen(b: (u128, u128)) -> whit_audit::Verdict {
        let mechanism = mechanism(b, 5);
        let (mut one, mut other) = (Seeded::new(seed(222)), Seeded::new(seed(223)));
        let event = |x: i64, entropy: &mut Seeded| {
            *mechanism
                .release(Secret::new(x), entropy)
                .expect("entropy")
                .value()
                == 0
        };
        judge(
            1.0,
            0.0,
            100_000,
            || event(0, &mut one),
            || event(1, &mut other),
        )
    }

    #[test]
    fn falsifier() {
        let verdict = seen((1, 1));
        assert!(
            !verdict.convicted && verdict.epsilon_lower > 0.93,
            "{verdict:?}"
        );
    }

    #[test]
    fn falsifier_has_teeth() {
        assert!(seen((9, 10)).convicted);
    }

    #[test]
    fn counts_outside_the_range_are_clamped_first() {
        let mut entropy = Seeded::new(224);
        for x in [i64::MIN, -1, 6, i64::MAX] {
            let y = *mechanism((1, 1 << 20), 5)
                .release(Secret::new(x), &mut entropy)
                .expect("entropy")
                .value();
            assert_eq!(y, x.clamp(0, 5));
        }
    }
}
