//! # Discrete Gaussian
//! **Definition.** On the integers, `M(x) = x + Z` with `Pr[Z = z] ∝ exp(-z²/(2σ²))`, independently in each coordinate.
//! **Requires.** `‖x - x'‖₂ <= Δ` for all neighbours: an L2 sensitivity over all coordinates, vouched for by the caller.
//! **Guarantee.** `ρ`-zCDP with `ρ = Δ²/(2σ²)`. [CKS20, Thm 4 and 14]
//! **Proof.** In one dimension let `μ = x - x'`, an integer, and `P`, `Q` the laws of `x + Z`, `x' + Z`. For `α > 1`,
//!   `Σ P^α Q^(1-α) = exp(α(α-1)μ²/(2σ²)) · Σ exp(-(y - αx - (1-α)x')²/(2σ²)) / N`, where `N = Σ exp(-y²/(2σ²))`. The theta
//!   sum on the right, over integers shifted by any real, is at most `N` (Poisson summation: its Fourier coefficients are
//!   positive, so it is largest at integer shifts). Hence `D_α(P‖Q) <= αμ²/(2σ²)`. Independent coordinates add their
//!   divergences, `Σ αμ_i²/(2σ²) <= αΔ²/(2σ²)`. Clamping the sum is post-processing.
//! **Sampler.** Exact over the integers; no float touches Z. [`sample::discrete_gaussian`](crate::sample) The constant-time
//!   variant is within a total-variation distance that its event states, coordinates added up.
//! **Error.** `Pr[Z >= m] <= Pr[N(0,σ²) >= m-1]` for integer `m >= 1`: the sum from `m` on is at most the integral from `m-1` on,
//!   and the normaliser `N` is at least `σ√(2π)`, by Poisson summation again.

use whit_core::{Bits, Confidence, Entropy, Event, L2, Mechanism, Relation, Scale, Secret, Sensitivity};

use crate::additive::{Draw, Integer, only, perturb};
use crate::discrete_laplace::close;
use crate::sample::{self, ConstantTimeGaussian};
use crate::{Error, Release, Result};

/// Adds discrete Gaussian noise to integers.
pub struct DiscreteGaussian<R: Relation> {
    scale: Scale,
    sensitivity: Sensitivity<L2, R>,
    sampler: Sampler,
}

enum Sampler {
    Exact(Box<sample::DiscreteGaussian>),
    ConstantTime(ConstantTimeGaussian),
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

impl<R: Relation> DiscreteGaussian<R> {
    /// Takes parsed units, so there is nothing left to check.
    pub fn new(scale: Scale, sensitivity: Sensitivity<L2, R>) -> Self {
        let sampler = Sampler::Exact(Box::new(sample::DiscreteGaussian::new(&scale)));
        Self { scale, sensitivity, sampler }
    }

    /// The same, with a sampler whose time does not depend on the noise; for scales up to 256. Its event carries a tiny
    /// total-variation distance.
    pub fn constant_time(scale: Scale, sensitivity: Sensitivity<L2, R>) -> Result<Self> {
        let sampler = Sampler::ConstantTime(ConstantTimeGaussian::new(&scale).ok_or(Error::NoConstantTime)?);
        Ok(Self { scale, sensitivity, sampler })
    }

    /// What an accountant needs to know about the release of one integer.
    pub fn event(&self) -> Event {
        self.event_of(1)
    }

    /// What an accountant needs to know about the release of a vector.
    pub fn event_of(&self, coordinates: u64) -> Event {
        let exact = Mechanism::DiscreteGaussian {
            scale: self.scale.clone(),
            sensitivity_l2_square: self.sensitivity.square().clone(),
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

    /// A `t` with `Pr[|Z| <= t] >= confidence`: the smallest for small scales, within one of it for large ones.
    pub fn half_width(&self, confidence: Confidence) -> u128 {
        let sigma = self.scale.ratio().to_f64_up();
        let miss = 1.0 - confidence.value();
        if sigma < 1024.0 {
            return half_width_by_sum(sigma, miss);
        }
        // Pr[|Z| > t] = 2 Pr[Z >= t+1] <= 2 Pr[N(0,σ²) >= t] = erfc(t / (σ√2)).
        let (mut low, mut high) = (0.0_f64, 40.0);
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if libm::erfc(middle / std::f64::consts::SQRT_2) > miss { low = middle } else { high = middle }
        }
        (high * sigma).ceil() as u128
    }
}

/// Sums the probabilities from the centre until enough is covered.
fn half_width_by_sum(sigma: f64, miss: f64) -> u128 {
    let weight = |z: u32| libm::exp(-f64::from(z) * f64::from(z) / (2.0 * sigma * sigma));
    // exp(-z²/(2σ²)) vanishes beyond 40σ, in floats.
    let last = (40.0 * sigma).ceil() as u32 + 1;
    let mut tail: f64 = (1..=last).map(|z| 2.0 * weight(z)).sum();
    let total = 1.0 + tail;
    let mut t = 0;
    while t < last && tail > miss * total {
        t += 1;
        tail -= 2.0 * weight(t);
    }
    u128::from(t)
}
