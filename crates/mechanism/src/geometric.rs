//! # Truncated geometric mechanism
//! **Definition.** For a count known to lie in `0..=n`, `M(x)` is `x` plus discrete Laplace noise, clamped to `0..=n`.
//! **Requires.** `|x - x'| <= Δ` for all neighbours, and a public `n`.
//! **Guarantee.** `ε`-DP with `ε = Δ/b`, the same as without the clamp. [GRS09, Thm 2.4: for a count (Δ = 1) it is the best
//!   `ε`-DP mechanism for every consumer with a prior and a monotone loss at once.]
//! **Proof.** Clamping to a public range is post-processing of [`DiscreteLaplace`](crate::DiscreteLaplace).
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
        Self { noise: DiscreteLaplace::new(scale, sensitivity), count_max: i64::from(count_max) }
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
