//! # Discrete Laplace
//! **Definition.** On the integers, `M(x) = x + Z` with `Pr[Z = z] ∝ exp(-|z|/b)`, independently in each coordinate.
//! **Requires.** `‖x - x'‖₁ <= Δ` for all neighbours: an L1 sensitivity over all coordinates, vouched for by the caller.
//! **Guarantee.** `ε`-DP with `ε = Δ/b`, tight. [GRS09]
//! **Proof.** The normaliser is the same for every x and cancels. What is left of `Pr[M(x)=y] / Pr[M(x')=y]` is
//!   `exp(Σ (|y_i-x'_i| - |y_i-x_i|)/b) <= exp(‖x-x'‖₁/b) <= exp(Δ/b)` by the triangle inequality; equal in one dimension at
//!   `y <= min(x, x')`. Clamping the sum to the ends of the integer type is post-processing.
//! **Sampler.** Exact over the integers; no float touches Z. [`sample::discrete_laplace`](crate::sample) The constant-time
//!   variant is within a total-variation distance that its event states, coordinates added up.
//! **Error.** `Pr[|Z| >= t] = 2 exp(-t/b) / (1 + exp(-1/b))` for integer `t >= 1`.

use whit_core::{
    Bits, Confidence, Entropy, Event, L1, Mechanism, Probability, Ratio, Relation, Scale, Secret, Sensitivity,
};

use crate::additive::{Draw, Integer, only, perturb};
use crate::sample::{self, ConstantTimeLaplace};
use crate::{Release, Result};

/// Adds discrete Laplace noise to integers.
pub struct DiscreteLaplace<R: Relation> {
    scale: Scale,
    sensitivity: Sensitivity<L1, R>,
    sampler: Sampler,
}

enum Sampler {
    Exact(sample::DiscreteLaplace),
    ConstantTime(ConstantTimeLaplace),
}

impl Draw for Sampler {
    #[inline]
    fn draw<B: Bits>(&self, bits: &mut B) -> i128 {
        match self {
            Self::Exact(sampler) => sampler.sample(bits),
            Self::ConstantTime(sampler) => sampler.sample(bits),
        }
    }
}

impl<R: Relation> DiscreteLaplace<R> {
    /// Takes parsed units, so there is nothing left to check.
    pub fn new(scale: Scale, sensitivity: Sensitivity<L1, R>) -> Self {
        let sampler = Sampler::Exact(sample::DiscreteLaplace::new(&scale));
        Self { scale, sensitivity, sampler }
    }

    /// The same, with a sampler whose time does not depend on the noise. Its event carries a tiny total-variation distance.
    pub fn constant_time(scale: Scale, sensitivity: Sensitivity<L1, R>) -> Self {
        let sampler = Sampler::ConstantTime(ConstantTimeLaplace::new(&scale));
        Self { scale, sensitivity, sampler }
    }

    /// What an accountant needs to know about the release of one integer.
    pub fn event(&self) -> Event {
        self.event_of(1)
    }

    /// What an accountant needs to know about the release of a vector.
    pub fn event_of(&self, coordinates: u64) -> Event {
        let exact = Mechanism::DiscreteLaplace {
            scale: self.scale.clone(),
            sensitivity_l1: self.sensitivity.bound().clone(),
            coordinates,
        };
        let mechanism = match &self.sampler {
            Sampler::Exact(_) => exact,
            Sampler::ConstantTime(sampler) => close(exact, &sampler.total_variation(), coordinates),
        };
        Event::new(R::NEIGHBOURS, mechanism)
    }

    /// Spends one `event`. Saturates at the ends of the integer type, which is post-processing.
    pub fn release<T: Integer>(&self, x: Secret<T>, entropy: &mut impl Entropy) -> Result<Release<T>> {
        Ok(self.release_vector(x.map(|x| vec![x]), entropy)?.map(only))
    }

    /// Spends one `event_of` the vector's length, which must be public.
    pub fn release_vector<T: Integer>(&self, x: Secret<Vec<T>>, entropy: &mut impl Entropy) -> Result<Release<Vec<T>>> {
        let noisy = perturb(x, &self.sampler, entropy)?;
        let event = self.event_of(noisy.len() as u64);
        Ok(Release::new(noisy, event))
    }

    /// The smallest `t` with `Pr[|Z| <= t] >= confidence`, or one more where floats cannot tell.
    pub fn half_width(&self, confidence: Confidence) -> u128 {
        let b = self.scale.ratio().to_f64_up();
        let miss = 1.0 - confidence.value();
        // Pr[|Z| > t] = 2 exp(-(t+1)/b) / (1 + exp(-1/b)) <= miss.
        let t = b * libm::log(2.0 / ((1.0 + libm::exp(-1.0 / b)) * miss)) - 1.0;
        (t * (1.0 + 1e-12)).ceil().max(0.0) as u128
    }
}

/// The event of a sampler that is not exact: distances of independent coordinates add up.
pub(crate) fn close(exact: Mechanism, each: &Probability, coordinates: u64) -> Mechanism {
    let all = (each.ratio() * &Ratio::from(coordinates)).min(Ratio::one());
    let total_variation = Probability::new(all).expect("at most one");
    Mechanism::Close { inner: Box::new(exact), total_variation }
}
