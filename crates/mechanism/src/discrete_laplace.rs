//! # Discrete Laplace
//! **Definition.** On the integers, `M(x) = x + Z` with `Pr[Z = z] ∝ exp(-|z|/b)`, independently in each coordinate.
//! **Requires.** `‖x - x'‖₁ <= Δ` for all neighbours: an L1 sensitivity over all coordinates, vouched for by the caller.
//! **Guarantee.** `ε`-DP with `ε = Δ/b`, tight. \[GRS09\]
//! **Proof.** The normaliser is the same for every x and cancels. What is left of `Pr[M(x)=y] / Pr[M(x')=y]` is
//!   `exp(Σ (|y_i-x'_i| - |y_i-x_i|)/b) <= exp(‖x-x'‖₁/b) <= exp(Δ/b)` by the triangle inequality; equal in one dimension at
//!   `y <= min(x, x')`. Clamping the sum to the ends of the integer type is post-processing.
//! **Sampler.** Exact over the integers; no float touches Z. [`sample::discrete_laplace`](crate::sample) The constant-time
//!   variant is within a total-variation distance that its event states, coordinates added up.
//! **Error.** `Pr[|Z| >= t] = 2 exp(-t/b) / (1 + exp(-1/b))` for integer `t >= 1`.

use whit_core::{
    Bits, Confidence, Entropy, Event, L1, Mechanism, Probability, Ratio, Relation, Scale, Secret,
    Sensitivity,
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
        Self {
            scale,
            sensitivity,
            sampler,
        }
    }

    /// The same, with a sampler whose time does not depend on the noise. Its event carries a tiny total-variation distance.
    pub fn constant_time(scale: Scale, sensitivity: Sensitivity<L1, R>) -> Self {
        let sampler = Sampler::ConstantTime(ConstantTimeLaplace::new(&scale));
        Self {
            scale,
            sensitivity,
            sampler,
        }
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
    Mechanism::Close {
        inner: Box::new(exact),
        total_variation,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{self, Shape, TapeEntropy, confidence, judge, scale, seed};
    use whit_audit::enumerate;
    use whit_core::AddRemove;
    use whit_testkit::{FailingEntropy, Seeded};

    fn mechanism(b: (u128, u128), sensitivity: u64) -> DiscreteLaplace<AddRemove> {
        DiscreteLaplace::new(scale(b.0, b.1), Sensitivity::new(Ratio::from(sensitivity)))
    }

    #[test]
    fn closed_form() {
        for (b, c) in [
            ((10, 1), 0.95),
            ((1, 1), 0.95),
            ((1, 3), 0.99),
            ((1000, 7), 0.5),
            ((1 << 20, 1), 0.999),
        ] {
            let scale = b.0 as f64 / b.1 as f64;
            let within =
                |t: f64| 1.0 - 2.0 * (-(t + 1.0) / scale).exp() / (1.0 + (-1.0 / scale).exp());
            let t = mechanism(b, 1).half_width(confidence(c)) as f64;
            assert!(within(t) >= c, "{b:?} at {c}: {t} is too narrow");
            assert!(
                t == 0.0 || within(t - 1.0) < c,
                "{b:?} at {c}: {t} is too wide"
            );
        }
        let Mechanism::DiscreteLaplace {
            scale,
            sensitivity_l1,
            coordinates,
        } = mechanism((10, 3), 4).event_of(7).mechanism().clone()
        else {
            panic!("another event")
        };
        assert_eq!(
            (scale.ratio(), &sensitivity_l1, coordinates),
            (&Ratio::new(10, 3).expect("3"), &Ratio::from(4_u64), 7)
        );
    }

    #[test]
    fn distribution() {
        let mut entropy = Seeded::new(seed(201));
        for make in [
            DiscreteLaplace::<AddRemove>::new,
            DiscreteLaplace::constant_time,
        ] {
            let mechanism = make(scale(5, 2), Sensitivity::new(Ratio::one()));
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
                let p = Shape::laplace(&scale(5, 2))
                    .p_value(draws.len() as u64, || next.next().expect("one per draw"));
                assert!(p >= doubt::ALPHA, "p = {p:e}");
            }
        }
    }

    /// The best event against a shift of Δ is the half-line from the larger value on.
    fn epsilon_seen(scale_of: (u128, u128), sensitivity: i64, claim: f64) -> whit_audit::Verdict {
        let mechanism = mechanism(scale_of, sensitivity.unsigned_abs());
        let mut entropy = Seeded::new(seed(202));
        let mut other = Seeded::new(seed(203));
        let event = |x: i64, entropy: &mut Seeded| {
            *mechanism
                .release(Secret::new(x), entropy)
                .expect("entropy")
                .value()
                >= sensitivity
        };
        judge(
            claim,
            0.0,
            100_000,
            || event(sensitivity, &mut entropy),
            || event(0, &mut other),
        )
    }

    #[test]
    fn falsifier() {
        for (b, sensitivity) in [((1, 1), 1), ((5, 1), 5)] {
            let verdict = epsilon_seen(b, sensitivity, 1.0);
            assert!(
                !verdict.convicted && verdict.epsilon_lower > 0.91,
                "{verdict:?}"
            );
        }
    }

    #[test]
    fn falsifier_has_teeth() {
        assert!(epsilon_seen((9, 10), 1, 1.0).convicted);
        assert!(epsilon_seen((9, 2), 5, 1.0).convicted);
    }

    /// Every tape of the whole mechanism on both neighbours: no luck involved.
    #[test]
    fn enumeration_of_neighbours() {
        let run = |b: (u128, u128), x: i64| {
            let mechanism = mechanism(b, 1);
            enumerate::<1, i64>(18, |tape| {
                *mechanism
                    .release(Secret::new(x), &mut TapeEntropy(Some(tape)))
                    .expect("one release")
                    .value()
            })
        };
        let honest = run((1, 1), 0).max_log_ratio_lower(&run((1, 1), 1));
        assert!(honest <= 1.0 && honest > 0.9, "{honest}");
        let twin = run((9, 10), 0).max_log_ratio_lower(&run((9, 10), 1));
        assert!(twin > 1.0, "{twin}");
    }

    #[test]
    fn ends_saturate_and_nothing_wraps() {
        let mut entropy = Seeded::new(204);
        for b in [(1, 1 << 40), (1, 1), (1 << 40, 1), (1 << 90, 1)] {
            let mechanism = mechanism(b, 1);
            for _ in 0..200 {
                let low = *mechanism
                    .release(Secret::new(i64::MIN), &mut entropy)
                    .expect("entropy")
                    .value();
                let high = *mechanism
                    .release(Secret::new(i64::MAX), &mut entropy)
                    .expect("entropy")
                    .value();
                if b.0 <= 1 << 40 {
                    assert!(low < i64::MIN / 2 && high > i64::MAX / 2, "{low} {high}");
                }
                let _ = mechanism
                    .release(Secret::new(i128::MIN), &mut entropy)
                    .expect("entropy");
                let _ = mechanism
                    .release(Secret::new(i128::MAX), &mut entropy)
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
    fn constant_time_says_how_close_it_is() {
        let mechanism = DiscreteLaplace::<AddRemove>::constant_time(
            scale(10, 1),
            Sensitivity::new(Ratio::one()),
        );
        let event = mechanism.event_of(1000);
        let Mechanism::Close {
            total_variation, ..
        } = event.mechanism()
        else {
            panic!("claims to be exact")
        };
        let tv = total_variation.ratio().to_f64_up();
        assert!(tv > 0.0 && tv < 1e-33, "{tv}");
        let single = mechanism.event();
        let Mechanism::Close {
            total_variation: each,
            ..
        } = single.mechanism()
        else {
            panic!("claims to be exact")
        };
        assert_eq!(
            *total_variation.ratio(),
            each.ratio() * &Ratio::from(1000_u64)
        );
    }
}
