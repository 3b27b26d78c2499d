//! # Approximate-minima perturbation
//! **Definition.** A function of the data, and of a noise vector that is added to its gradient, has one minimum. Draw integer noise `b`; find in secret a vector of integers `w` near the
//!   minimum for `b`; release `w` with independent discrete Laplace noise in each coordinate. [INS+19, Alg. 1]
//! **Requires.** Vouched for by the caller, in units of the grids of noise and output:
//!   1. For *real* noise `Y`, independent normal or Laplace of the given scale, the exact minimum `m(D, Y)` is a mechanism as private as the event `minimum` says, and for each `D` it is
//!      a bijection of `Y`.
//!   2. `w` is a function of `D` and `b` alone, found for all of them, and whatever the real `Y` is within half a unit (normal) or one unit (Laplace) of `b` in each coordinate:
//!      `‖w - m(D, Y)‖₁ <= r`. Or `‖w - f(m(D, Y))‖₁ <= r` for one function `f`, fixed and public, the same for all `D` and `b`.
//!
//!   The output's sensitivity is `2r`, or more.
//! **Guarantee.** That of both together: `minimum`, and the output, which is pure with `2r` over its scale. Nobody ever computes `m`, and no density of a float is in the proof.
//! **Proof.** Let `Y` be real, and `b` its rounding: for normal noise the nearest integer, as which the sampler defines it; for Laplace noise of scale `s` the monotone coupling with the discrete
//!   Laplace distribution. There `Pr[b >= k] = exp(-k/s)/(1 + exp(-1/s))` for `k >= 1` is `Pr[Y >= y]` at `y = k + s ln((1 + exp(-1/s))/2)`, which lies between `k - 1/2` and `k`, by the inequality
//!   of the means; so if `b = k >= 1` then `k - 1/2 <= Y <= k + 1`; by symmetry the same holds below zero, and if `b = 0` then `|Y| <= 1`. So `|Y - b| <= 1` always.
//!   Consider the mechanism that releases `m(D, Y)` first, and then `w` with its noise. Given `m(D, Y) = t`, `Y` is known for each `D` since `m` is a bijection, so `b` and `w` are; and for
//!   each of two neighbours `‖w - f(t)‖₁ <= r`, `f` being the identity if there is none. So their `w` are at most `2r` apart, and the second release is the Laplace mechanism, chosen after the first: the composition of both.
//!   Leaving out the first is post-processing. Where `w` is cut to the ends of `i64`, so may be `f(t)` in the argument. ∎
//! **Failure.** There is none: "no minimum was found" would be an outcome that depends on the data, and nothing bounds its probability. A caller who cannot vouch for the second point must not ask.

use whit_core::{Bits, Entropy, Event, L1, Mechanism, Relation, Scale, Secret, Sensitivity};

use crate::{DiscreteLaplace, Release, Result, sample};

/// The noise that is added to a gradient, in units of its grid.
#[derive(Clone, Debug, PartialEq)]
pub enum ObjectiveNoise {
    /// Rounded normal noise of this standard deviation.
    Gaussian(Scale),
    /// Discrete Laplace noise of this scale.
    Laplace(Scale),
}

/// Perturbs an objective, and its approximate minimum.
pub struct MinimaPerturbation<R: Relation> {
    noise: ObjectiveNoise,
    minimum: Mechanism,
    output_event: Mechanism,
    output: DiscreteLaplace<R>,
}

impl<R: Relation> MinimaPerturbation<R> {
    /// With noise for the objective whose exact minimum is as private as `minimum`, and with noise of a scale for vectors that are `apart`.
    pub fn new(
        noise: ObjectiveNoise,
        minimum: Mechanism,
        scale: Scale,
        apart: Sensitivity<L1, R>,
    ) -> Self {
        let epsilon = apart.bound().checked_div(scale.ratio());
        let epsilon = epsilon.expect("a scale is above zero");
        Self {
            noise,
            minimum,
            output_event: Mechanism::Pure { epsilon },
            output: DiscreteLaplace::new(scale, apart),
        }
    }

    /// What an accountant needs to know. However many coordinates there are: of the output it is enough that it is pure.
    pub fn event(&self) -> Event {
        let parts = vec![self.minimum.clone(), self.output_event.clone()];
        Event::new(R::NEIGHBOURS, Mechanism::Composition(parts))
    }

    /// Spends the event, for so many coordinates, which are public. `solve` gets the noise, as secret as the data.
    pub fn release(
        &self,
        coordinates: usize,
        solve: impl FnOnce(Secret<Vec<i128>>) -> Secret<Vec<i64>>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Vec<i64>>> {
        let noise = self.draw(coordinates, &mut entropy.open()?);
        let found = solve(noise).map(|mut found| {
            // As many as were paid for, whoever solved.
            found.resize(coordinates, 0);
            found
        });
        let noisy = self.output.release_vector(found, entropy)?;
        Ok(Release::new(noisy.into_value(), self.event()))
    }

    /// In 128 bits, as samplers give it.
    fn draw(&self, coordinates: usize, bits: &mut impl Bits) -> Secret<Vec<i128>> {
        let noise = match &self.noise {
            ObjectiveNoise::Gaussian(scale) => {
                let sampler = sample::RoundedGaussian::new(scale);
                (0..coordinates).map(|_| sampler.sample(bits)).collect()
            }
            ObjectiveNoise::Laplace(scale) => {
                let sampler = sample::DiscreteLaplace::new(scale);
                (0..coordinates).map(|_| sampler.sample(bits)).collect()
            }
        };
        Secret::new(noise)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{ALPHA, scale, seed};
    use whit_audit::{Alpha, Claim, Verdict, falsify};
    use whit_core::{AddRemove, Epsilon, Ratio};
    use whit_testkit::{FailingEntropy, Seeded};

    /// What counts as one: so many units of noise and output.
    const ONE: i64 = 4096;

    /// The function `θ²/2 - nθ + bθ` of `n` rows has its minimum at `n - b`, which Laplace noise of scale `s` ones makes `1/s`-DP.
    fn rows(noise_scale: u128, output: Scale) -> MinimaPerturbation<AddRemove> {
        let noise = ObjectiveNoise::Laplace(scale(noise_scale * ONE as u128, 1));
        let epsilon = Ratio::new(1, 1).expect("one");
        let apart = Sensitivity::new(Ratio::from(6_u64));
        MinimaPerturbation::new(noise, Mechanism::Pure { epsilon }, output, apart)
    }

    #[test]
    fn closed_form() {
        let mechanism = rows(1, scale(24, 1));
        let event = mechanism.event();
        let Mechanism::Composition(parts) = event.mechanism() else {
            panic!("another event")
        };
        let minimum = Mechanism::Pure {
            epsilon: Ratio::new(1, 1).expect("one"),
        };
        let output = Mechanism::Pure {
            epsilon: Ratio::new(1, 4).expect("a quarter"),
        };
        assert_eq!(parts, &[minimum, output]);
        let mut entropy = Seeded::new(seed(1));
        let release = mechanism.release(5, |_| Secret::new(vec![1; 9]), &mut entropy);
        let release = release.expect("entropy");
        assert_eq!((release.event(), release.value().len()), (&event, 5));
        let refused = mechanism.release(5, |_| Secret::new(vec![]), &mut FailingEntropy);
        assert!(refused.is_err());
    }

    /// The bounds of the coupling: `k - 1/2 <= y <= k`.
    #[test]
    fn laplace_noise_is_near_its_real_twin() {
        for s in [0.01_f64, 0.3, 1.0, 7.0, 1e3, 1e6] {
            let off = s * ((1.0 + (-1.0 / s).exp()) / 2.0).ln();
            assert!((-0.5 - 1e-9..=0.0).contains(&off), "{s}: {off}");
        }
    }

    /// Noise is what it is said to be: the fourth moment, over the square of the second, is 3 for normal noise and 6 for Laplace.
    #[test]
    fn noise_has_its_shape() {
        let normal = ObjectiveNoise::Gaussian(scale(1000, 1));
        let laplace = ObjectiveNoise::Laplace(scale(1000, 1));
        for (noise, deviation, tails) in [
            (normal, 1000.0, 3.0),
            (laplace, 2.0_f64.sqrt() * 1000.0, 6.0),
        ] {
            let minimum = Mechanism::Composition(vec![]);
            let apart = Sensitivity::<L1, AddRemove>::new(Ratio::from(1_u64));
            let mechanism = MinimaPerturbation::new(noise, minimum, scale(1, 1), apart);
            let mut bits = Seeded::new(seed(2)).open().expect("seeded");
            let drawn = mechanism.draw(200_000, &mut bits).expose();
            let moment = |power| {
                drawn
                    .iter()
                    .map(|b| (*b as f64 / deviation).powi(power))
                    .sum::<f64>()
                    / drawn.len() as f64
            };
            assert!((moment(2) - 1.0).abs() < 0.03 && moment(1).abs() < 0.02);
            assert!((moment(4) / tails - 1.0).abs() < 0.1, "{}", moment(4));
        }
    }

    /// What is looked at: a half-line, or the last digit, which a solver may leave as it likes.
    #[derive(Clone, Copy)]
    enum Look {
        HalfLine,
        LastDigit,
    }

    /// With one row, and with none. The solver is as bad as it may be: what it finds is three units off, or fewer, and even with the row and odd without.
    fn seen(mechanism: &MinimaPerturbation<AddRemove>, claimed: f64, look: Look) -> Verdict {
        let world = |rows: i64, of: u64| {
            let mut entropy = Seeded::new(seed(of));
            move || {
                let solve = |noise: Secret<Vec<i128>>| {
                    noise.map(|noise| vec![(rows * ONE - noise[0] as i64) / 2 * 2 + 1 - rows])
                };
                let release = mechanism.release(1, solve, &mut entropy);
                let value = release.expect("entropy").into_value()[0];
                match look {
                    Look::HalfLine => value >= ONE,
                    Look::LastDigit => value % 2 == 0,
                }
            }
        };
        let claim = Claim::pure(Epsilon::new(claimed).expect("an epsilon"));
        let alpha = Alpha::new(ALPHA).expect("a level");
        falsify(claim, 60_000, alpha, world(1, 11), world(0, 12)).expect("enough trials")
    }

    #[test]
    fn falsifier() {
        // One for the minimum, and next to nothing for an output with noise that is long beside what solvers leave and short beside a row; or a quarter.
        let line = seen(&rows(1, scale(400, 1)), 1.015, Look::HalfLine);
        assert!(!line.convicted && line.epsilon_lower > 0.88, "{line:?}");
        assert!(!seen(&rows(1, scale(24, 1)), 1.25, Look::LastDigit).convicted);
    }

    #[test]
    fn falsifier_has_teeth() {
        // A tenth too little noise in the objective; and the output as the solver leaves it, as if the approximate minimum were the exact one.
        let little = MinimaPerturbation {
            noise: ObjectiveNoise::Laplace(scale(9 * ONE as u128, 10)),
            ..rows(1, scale(400, 1))
        };
        assert!(seen(&little, 1.015, Look::HalfLine).convicted);
        let bare = rows(1, scale(1, 8));
        assert!(seen(&bare, 1.25, Look::LastDigit).convicted);
    }
}
