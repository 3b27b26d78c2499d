//! Gaussian differential privacy: what two worlds say of mu.
//!
//! **Definition.** `μ`-GDP means that no test between the worlds beats the one between `N(0,1)` and `N(μ,1)`: with false positive
//!   rate `a` and false negative rate `b`, `Φ⁻¹(1-a) - Φ⁻¹(b) <= μ` \[DRS22\]. On `k` records it is `kμ`.
//! **What is free of assumptions.** With bounds on both rates from above, a smaller `μ` is refuted: a claim of `μ`-GDP can be convicted.
//! **What is not.** From `μ` to an epsilon at a small delta one assumes that the mechanism *is* Gaussian: its curve is then
//!   `δ(ε) = Φ(-ε/μ + μ/2) - e^ε Φ(-ε/μ - μ/2)` \[BW18\]. Audits that report large epsilons from few runs do that \[Nas23\]; here it has the type
//!   [`ModelBound`]. A step on a Poisson sample is no Gaussian: invert its own curve (`curve.rs`).

use whit_core::{Delta, Mu, round};

use crate::bound::ProbabilityBounds;
use crate::normal::{ERROR, distribution, quantile_upper};
use crate::world::Counts;
use crate::{Alpha, Group, ModelBound, Result};

/// At most the true mu, with known confidence. Zero if nothing was found.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct MuBound {
    mu_lower: f64,
    alpha: Alpha,
}

impl MuBound {
    pub(crate) fn new(mu_lower: f64, alpha: Alpha) -> Self {
        Self { mu_lower, alpha }
    }

    /// The bound.
    pub fn mu_lower(&self) -> f64 {
        self.mu_lower
    }

    /// How often a bound made this way holds, at least.
    pub fn confidence(&self) -> f64 {
        self.alpha.confidence()
    }

    /// Is a claim of this `μ`-GDP refuted? Needs no model: it is the claim that has one.
    pub fn refutes(&self, claimed: Mu) -> bool {
        self.mu_lower > claimed.value()
    }

    /// The epsilon at `delta`, if the mechanism is exactly Gaussian.
    pub fn epsilon_if_gaussian(&self, delta: Delta) -> ModelBound {
        ModelBound::of_curve("Gaussian mechanism", delta, self.alpha, |epsilon| {
            gaussian_delta_lower(self.mu_lower, epsilon)
        })
    }
}

impl Counts {
    /// The largest `μ` that these counts refute, in worlds that differ in `group` records.
    pub fn mu_lower(&self, group: Group, alpha: Alpha) -> Result<MuBound> {
        let half = self.half_share(alpha)?;
        let mut best: f64 = 0.0;
        for tally in self.tallies() {
            let ProbabilityBounds { likely, unlikely } = ProbabilityBounds::new(tally, half)?;
            // Φ⁻¹(1-a) = -Φ⁻¹(a), with the digits of a small `a` kept.
            let miss = round::sub_up(1.0, likely);
            let mu = round::sub_down(-quantile_upper(unlikely), quantile_upper(miss));
            best = best.max(round::div_down(mu, f64::from(group.records())));
        }
        Ok(MuBound::new(best, alpha))
    }
}

/// At most the delta of the Gaussian mechanism.
pub(crate) fn gaussian_delta_lower(mu: f64, epsilon: f64) -> f64 {
    if mu <= 0.0 {
        return 0.0;
    }
    let gain = distribution(mu / 2.0 - epsilon / mu) * (1.0 - 4.0 * ERROR);
    let paid =
        round::exp_up(epsilon) * distribution(-mu / 2.0 - epsilon / mu) * (1.0 + 4.0 * ERROR);
    (gain - paid).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{assert_false_alarms, normal};
    use crate::world::{Event, Outputs, World};

    fn alpha(value: f64) -> Alpha {
        Alpha::new(value).expect("in range")
    }

    fn audit(mu: f64, trials: usize, level: f64, seed: u64) -> MuBound {
        let (mut one, mut other) = (normal(2 * seed), normal(2 * seed + 1));
        let middle = Event::new("middle", World::One, move |y: &f64| *y >= mu / 2.0);
        Outputs::run(trials, || one() + mu, &mut other)
            .hold()
            .count(&middle)
            .mu_lower(Group::ONE, alpha(level))
            .expect("valid")
    }

    #[test]
    fn false_alarms_are_as_rare_as_promised() {
        assert_false_alarms(0.05, |seed| audit(1.0, 500, 0.05, seed).mu_lower() > 1.0);
        assert_false_alarms(0.01, |seed| audit(3.0, 500, 0.01, seed).mu_lower() > 3.0);
    }

    #[test]
    fn too_little_noise_is_convicted() {
        // Sigma is ten percent too small: mu is 1/0.9.
        let bound = audit(1.0 / 0.9, 60_000, 1e-6, 1);
        assert!(bound.refutes(Mu::new(1.0).expect("positive")), "{bound:?}");
        assert!(!audit(1.0, 60_000, 1e-6, 2).refutes(Mu::new(1.0).expect("positive")));
    }

    /// Reference values: 40-digit arithmetic.
    #[test]
    fn epsilon_has_its_closed_form() {
        let check = |mu: f64, delta: f64, expected: f64| {
            let bound = MuBound::new(mu, alpha(0.05));
            let epsilon = bound
                .epsilon_if_gaussian(Delta::new(delta).expect("in range"))
                .epsilon_lower();
            assert!(
                (epsilon - expected).abs() < 1e-6 && epsilon <= expected + 1e-9,
                "{mu} {delta}: {expected}, got {epsilon}"
            );
        };
        check(1.0, 1e-5, 4.377_178_095_681);
        check(0.5, 1e-5, 1.993_091_404_415);
        check(1.0, 0.382_924_922_548_026, 0.0);
        check(0.0, 1e-5, 0.0);
    }

    #[test]
    fn groups_divide_mu() {
        let share = |hits| crate::Share { hits, trials: 1000 };
        let counts = Counts::of_fixed_event("yes", share(900), share(100));
        let at = |k| {
            counts
                .mu_lower(Group::new(k).expect("in range"), alpha(0.05))
                .expect("valid")
                .mu_lower()
        };
        assert!((at(1) / at(4) - 4.0).abs() < 1e-12 && at(1) > 2.0);
    }
}
