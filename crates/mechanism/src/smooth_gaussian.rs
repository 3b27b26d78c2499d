//! # Gaussian noise by a smooth sensitivity
//! **Definition.** `M(x) = f(x) + round(σ S(x) Y)` in whole units, with `Y` standard normal.
//! **Requires.** Of neighbours, `|f(x) - f(x')| <= min(S(x), S(x'))` and `S(x) <= e^β S(x')`, vouched for by the caller; if `S` is zero, it is for every input.
//! **Guarantee.** What the caller has priced for `σ` and `β`: no law of Gaussian noise fits this, as its width follows the data. For `α < 1/(1-e^(-2β))`
//!   the divergence is at most `α e^(-2β)/(2σ² r) + (-½ ln r - αβ)/(α-1)` with `r = 1 - α(1-e^(-2β))`; the crate `whit-accounting` proves and prices that, in
//!   `pate::release`.
//! **Proof.** `f(x)` is a whole number, so this is `round(f(x) + σS(x)Y)`: post-processing of two Gaussians that the theorem compares. Widths below the least
//!   scale are raised to it, which keeps both requirements; a width of zero is one for all inputs, and so is then `f`.
//! **Sampler.** Exact: [`sample::RoundedGaussian`], at the exact product of `σ` and `S`.
//! **Error.** `N(0, σ²S²)`, without bias; the width is private, and must not be told as it is.

use std::marker::PhantomData;

use whit_core::{Entropy, Event, Mechanism, Ratio, Relation, Scale, Secret};

use crate::{Release, Result, sample};

/// A value in whole units, and its smooth sensitivity in the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Smoothed {
    /// The value.
    pub value: i64,
    /// The bound, not negative.
    pub sensitivity: f64,
}

/// Adds Gaussian noise whose width follows the data, smoothly.
pub struct SmoothGaussian<R: Relation> {
    multiplier: Ratio,
    cost: Mechanism,
    relation: PhantomData<fn() -> R>,
}

impl<R: Relation> SmoothGaussian<R> {
    /// Noise of `multiplier` sensitivities, at a cost that was proven for it and for the smoothness of the sensitivities.
    pub fn new(multiplier: Ratio, cost: Mechanism) -> Self {
        Self {
            multiplier,
            cost,
            relation: PhantomData,
        }
    }

    /// What an accountant needs to know.
    pub fn event(&self) -> Event {
        Event::new(R::NEIGHBOURS, self.cost.clone())
    }

    /// Spends one `event`. Saturates at the ends of `i64`, which is post-processing.
    pub fn release(
        &self,
        smoothed: Secret<Smoothed>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<i64>> {
        let mut bits = entropy.open()?;
        let Smoothed { value, sensitivity } = smoothed.expose();
        let mut noisy = [value];
        if sensitivity > 0.0 {
            // What is no number has no bound: all noise there is.
            let width = Ratio::from_f64(sensitivity).unwrap_or_else(|| Ratio::power_of_two(200));
            let (least, most) = (Ratio::power_of_two(-64), Ratio::power_of_two(96));
            let width = (&width * &self.multiplier).clamp(least, most);
            sample::RoundedGaussian::new(&Scale::new(width)?).add_to(&mut noisy, &mut bits);
        }
        Ok(Release::new(noisy[0], self.event()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{Shape, judge, scale, seed};
    use whit_core::{Probability, ReplaceOne};
    use whit_testkit::Seeded;

    fn mechanism(multiplier: u64) -> SmoothGaussian<ReplaceOne> {
        let cost = Mechanism::Approximate {
            epsilon: Ratio::one(),
            delta: Probability::new(Ratio::new(1, 1000).expect("1000")).expect("a share"),
        };
        SmoothGaussian::new(Ratio::from(multiplier), cost)
    }

    fn draw(
        mechanism: &SmoothGaussian<ReplaceOne>,
        value: i64,
        sensitivity: f64,
        entropy: &mut Seeded,
    ) -> i64 {
        let smoothed = Secret::new(Smoothed { value, sensitivity });
        *mechanism
            .release(smoothed, entropy)
            .expect("entropy")
            .value()
    }

    #[test]
    fn closed_form() {
        assert!(matches!(
            mechanism(3).event().mechanism(),
            Mechanism::Approximate { .. }
        ));
        let mut entropy = Seeded::new(seed(921));
        assert_eq!(
            draw(&mechanism(3), 17, 0.0, &mut entropy),
            17,
            "what nobody moves needs no noise"
        );
        for wild in [f64::NAN, f64::INFINITY, 1e300, 1e-300] {
            let _ = draw(&mechanism(3), 17, wild, &mut entropy);
        }
        let ends = draw(&mechanism(3), 17, f64::INFINITY, &mut entropy);
        assert!(ends == i64::MIN || ends == i64::MAX || ends.unsigned_abs() > 1 << 40);
    }

    #[test]
    fn distribution() {
        let (mechanism, mut entropy) = (mechanism(30), Seeded::new(seed(922)));
        Shape::gaussian(&scale(30_000, 1)).assert_fits("noise", 50_000, || {
            i128::from(draw(&mechanism, 7, 1000.0, &mut entropy) - 7)
        });
    }

    /// How much less likely `-far` widths or beyond is for the neighbour whose bound is narrower by `e^-0.1`, and as far away as it allows.
    fn seen(multiplier: u64, far: f64, claim: (f64, f64)) -> whit_audit::Verdict {
        let (wide, narrow) = (100_000.0, 100_000.0 * (-0.1_f64).exp());
        let mechanism = mechanism(multiplier);
        let (mut one, mut other) = (Seeded::new(seed(923)), Seeded::new(seed(924)));
        let far = far * multiplier as f64 * wide;
        judge(
            claim.0,
            claim.1,
            100_000,
            || (draw(&mechanism, 0, wide, &mut one) as f64) < -far,
            || (draw(&mechanism, narrow as i64, narrow, &mut other) as f64) < -far,
        )
    }

    /// The theorem proves `(3.83, 1e-4)` for `β = 0.1` and `σ = 2`; the tail shows about half of that.
    #[test]
    fn falsifier() {
        let verdict = seen(2, 2.0, (3.83, 1e-4));
        assert!(
            !verdict.convicted && verdict.epsilon_lower > 1.5,
            "{verdict:?}"
        );
    }

    /// A tenth of the noise for which `(1.47, 1e-3)` is proven.
    #[test]
    fn falsifier_has_teeth() {
        assert!(!seen(10, 1.0, (1.47, 1e-3)).convicted);
        assert!(seen(1, 1.0, (1.47, 1e-3)).convicted);
    }
}
