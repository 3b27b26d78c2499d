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

use whit_core::{
    Bits, Confidence, Entropy, Event, L2, Mechanism, Relation, Scale, Secret, Sensitivity,
};

use crate::additive::{Draw, Integer, normal_half_width, only, perturb};
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
        Self {
            scale,
            sensitivity,
            sampler,
        }
    }

    /// The same, with a sampler whose time does not depend on the noise; for scales up to 256. Its event carries a tiny
    /// total-variation distance.
    pub fn constant_time(scale: Scale, sensitivity: Sensitivity<L2, R>) -> Result<Self> {
        let sampler =
            Sampler::ConstantTime(ConstantTimeGaussian::new(&scale).ok_or(Error::NoConstantTime)?);
        Ok(Self {
            scale,
            sensitivity,
            sampler,
        })
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
    pub fn release<T: Integer>(
        &self,
        x: Secret<T>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<T>> {
        Ok(self.release_vector(x.map(|x| vec![x]), entropy)?.map(only))
    }

    /// Spends one `event_of` the vector's length, which must be public.
    pub fn release_vector<T: Integer>(
        &self,
        x: Secret<Vec<T>>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Vec<T>>> {
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
        (normal_half_width(miss) * sigma).ceil() as u128
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{self, Shape, TapeEntropy, confidence, judge, scale, seed};
    use whit_audit::enumerate;
    use whit_core::{AddRemove, Epsilon, Ratio};
    use whit_testkit::{FailingEntropy, Seeded};

    fn mechanism(sigma: (u128, u128), sensitivity: u64) -> DiscreteGaussian<AddRemove> {
        DiscreteGaussian::new(
            scale(sigma.0, sigma.1),
            Sensitivity::new(Ratio::from(sensitivity)),
        )
    }

    fn pmf(sigma: f64) -> impl Fn(i64) -> f64 {
        let weight = move |z: i64| (-((z * z) as f64) / (2.0 * sigma * sigma)).exp();
        let last = (40.0 * sigma) as i64 + 2;
        let total: f64 = (-last..=last).map(weight).sum();
        move |z| weight(z) / total
    }

    #[test]
    fn closed_form() {
        for (sigma, c) in [
            ((10, 1), 0.95),
            ((1, 1), 0.95),
            ((1, 3), 0.99),
            ((1000, 7), 0.5),
            ((2000, 1), 0.999),
        ] {
            let p = pmf(sigma.0 as f64 / sigma.1 as f64);
            let within = |t: i64| (-t..=t).map(&p).sum::<f64>();
            let t = mechanism(sigma, 1).half_width(confidence(c)) as i64;
            assert!(
                within(t) >= c - 1e-12,
                "{sigma:?} at {c}: {t} is too narrow"
            );
            assert!(
                t == 0 || within(t - 2) < c,
                "{sigma:?} at {c}: {t} is too wide"
            );
        }
        let event = mechanism((10, 3), 4).event_of(7);
        let Mechanism::DiscreteGaussian {
            sensitivity_l2_square,
            coordinates,
            ..
        } = event.mechanism()
        else {
            panic!("another event")
        };
        assert_eq!(
            (sensitivity_l2_square, *coordinates),
            (&Ratio::from(16_u64), 7)
        );
    }

    #[test]
    fn distribution() {
        let mut entropy = Seeded::new(seed(211));
        let exact = mechanism((5, 2), 1);
        let constant = DiscreteGaussian::<AddRemove>::constant_time(
            scale(5, 2),
            Sensitivity::new(Ratio::one()),
        );
        for mechanism in [exact, constant.expect("a small scale")] {
            let x = [7_i64, -3, 0];
            let mut draws: Vec<Vec<i128>> = vec![Vec::new(); x.len()];
            for _ in 0..50_000 {
                let release = mechanism
                    .release_vector(Secret::new(x.to_vec()), &mut entropy)
                    .expect("entropy");
                for ((draws, y), x) in draws.iter_mut().zip(release.value()).zip(x) {
                    draws.push(i128::from(y - x));
                }
            }
            for draws in draws {
                let mut next = draws.iter().copied();
                let p = Shape::gaussian(&scale(5, 2))
                    .p_value(draws.len() as u64, || next.next().expect("one per draw"));
                assert!(p >= doubt::ALPHA, "p = {p:e}");
            }
        }
    }

    /// The claim at ε = 0: the largest difference any event can show, summed from the exact probabilities.
    fn total_variation(sigma: f64, shift: i64) -> f64 {
        let p = pmf(sigma);
        (-400..=400).map(|y| (p(y - shift) - p(y)).max(0.0)).sum()
    }

    fn seen(sigma: (u128, u128)) -> whit_audit::Verdict {
        let mechanism = mechanism(sigma, 10);
        let (mut one, mut other) = (Seeded::new(seed(212)), Seeded::new(seed(213)));
        // Half way between the two means.
        let event = |x: i64, entropy: &mut Seeded| {
            *mechanism
                .release(Secret::new(x), entropy)
                .expect("entropy")
                .value()
                >= 5
        };
        judge(
            0.0,
            total_variation(10.0, 10),
            100_000,
            || event(10, &mut one),
            || event(0, &mut other),
        )
    }

    #[test]
    fn falsifier() {
        let verdict = seen((10, 1));
        assert!(!verdict.convicted, "{verdict:?}");
    }

    #[test]
    fn falsifier_has_teeth() {
        assert!(seen((9, 1)).convicted);
    }

    /// Every tape on both neighbours: the hockey-stick divergence agrees with the one summed from the exact probabilities.
    #[test]
    fn enumeration_of_neighbours() {
        let run = |sigma: (u128, u128), x: i64| {
            let mechanism = mechanism(sigma, 1);
            enumerate::<1, i64>(18, |tape| {
                *mechanism
                    .release(Secret::new(x), &mut TapeEntropy(Some(tape)))
                    .expect("one release")
                    .value()
            })
        };
        let exact = |sigma: f64| {
            let p = pmf(sigma);
            (-200..=200)
                .map(|y| (p(y - 1) - p(y)).max(0.0))
                .sum::<f64>()
        };
        let (low, high) = {
            let (one, other) = (run((1, 1), 1), run((1, 1), 0));
            (
                one.hockey_stick_lower(&other, Epsilon::ZERO),
                one.hockey_stick_upper(&other, Epsilon::ZERO),
            )
        };
        assert!(
            low <= exact(1.0) && exact(1.0) <= high,
            "{low} {} {high}",
            exact(1.0)
        );
        let twin = run((1, 2), 1).hockey_stick_lower(&run((1, 2), 0), Epsilon::ZERO);
        assert!(twin > exact(1.0), "{twin}");
    }

    #[test]
    fn ends_saturate_and_nothing_wraps() {
        let mut entropy = Seeded::new(214);
        for sigma in [(1, 1 << 40), (1, 1), (1 << 40, 1), (1 << 90, 1)] {
            let mechanism = mechanism(sigma, 1);
            for _ in 0..50 {
                let low = *mechanism
                    .release(Secret::new(i64::MIN), &mut entropy)
                    .expect("entropy")
                    .value();
                let high = *mechanism
                    .release(Secret::new(i64::MAX), &mut entropy)
                    .expect("entropy")
                    .value();
                if sigma.0 <= 1 << 40 {
                    assert!(low < i64::MIN / 2 && high > i64::MAX / 2, "{low} {high}");
                }
                let _ = mechanism
                    .release(Secret::new(i128::MIN), &mut entropy)
                    .expect("entropy");
            }
        }
    }

    #[test]
    fn no_entropy_no_release() {
        assert!(
            mechanism((1, 1), 1)
                .release(Secret::new(0_i64), &mut FailingEntropy)
                .is_err()
        );
    }

    #[test]
    fn constant_time_refuses_large_scales() {
        let sensitivity = || Sensitivity::<L2, AddRemove>::new(Ratio::one());
        assert!(matches!(
            DiscreteGaussian::constant_time(scale(257, 1), sensitivity()),
            Err(Error::NoConstantTime)
        ));
        let event = DiscreteGaussian::constant_time(scale(256, 1), sensitivity())
            .expect("small enough")
            .event();
        assert!(matches!(event.mechanism(), Mechanism::Close { .. }));
    }
}
