//! # Gaussian noise over samples of a fixed size
//! **Definition.** Each step draws `m` of `n` units uniformly without replacement and releases a sum over the sample with
//! Gaussian noise. Neighbours differ in one unit's contribution (replace-one). `γ = m/n` is the rate, and `σ` the standard
//! deviation over the largest L2 distance of the sums of two samples that differ in one unit: over *twice* the clipping norm.
//!
//! **One step** \[BBG18\]: with `δ_B` the profile of `N(1, σ²)` against `N(0, σ²)`,
//! `δ(ε) = γ δ_B(ln(1 + (e^ε - 1)/γ))` for `ε >= 0`, and that is exact.
//! *Proof.* Let `P_1`, `Q_1` be the laws of the answers for the two neighbours, given that the sample has the unit in
//! question, and `P_0` the law, common to both, given that it has not. Then `P = (1-γ)P_0 + γP_1`, `Q = (1-γ)P_0 + γQ_1`, and
//! with `α = e^ε`, `α' = 1 + (α-1)/γ` and `β = α/α'` (at most 1, since `γα' = α - (1-γ)` and `α >= 1`)
//! `P - αQ = γ(P_1 - α'((1-β)P_0 + βQ_1))`: both sides have `γ` of `P_1`, `-αγ = -γα'β` of `Q_1` and
//! `(1-γ)(1-α) = -γα'(1-β)` of `P_0`. The profile is convex in its second argument, so `δ` is at most `γ` times a mean of
//! the profiles at `α'` of `P_1` against `P_0` and of `P_1` against `Q_1`. The latter are mixtures over samples that differ in
//! one unit. So are the former: a sample with the unit becomes a uniform one without it when the unit is exchanged for a
//! uniform choice among those left out. Each such pair of samples has profile at most `δ_B`. It is attained: let all other
//! units contribute `v`, and the unit `v` on one side and the farthest from `v` on the other. This is
//! `(1-γ)N(0, σ²) + γN(1, σ²)` against `N(0, σ²)`, whose profile for `ε >= 0` is the stated one. ∎
//!
//! **Negative epsilons.** The relation is symmetric, so the largest profile over all neighbours has
//! `δ(-ε) = 1 - e^-ε + e^-ε δ(ε)`: for every pair, this relates the profiles of the pair and of the exchanged pair.
//!
//! **Many steps, from above.** A maximum of profiles is convex in `e^ε`, so it is the profile of some pair of distributions
//! [ZDW22, Prop. 7]; that pair dominates every step, hence its product the composition [ZDW22, Thm 10]. It has an atom at loss 0
//! and is no pair that any neighbours have: the worst neighbours in one direction are not the worst in the other.
//! So this is an upper bound and not exact; \[LRKS24\] study sharper pairs, which are not used here.
//!
//! **From below.** Constant queries and the neighbours above give, in every step, `(1-γ)f_0 + γf_1` against `f_0` and the
//! exchanged pair, and with the unit half way to either side of `v`, `(1-γ)f_0 + γf_½` against `(1-γ)f_0 + γf_-½`. These are
//! the pairs of Poisson samples at rate `γ`, the last one with twice the noise multiplier; so the profiles of their
//! compositions bound that of this mechanism from below, and a Poisson price is never an upper bound for it.
//!
//! **How the error is bounded.** Everything is a bracket of `profile.rs`, or comes from the engines below.

use crate::Bracket;
use crate::contour::Contour;
use crate::curve::{self, Curve};
use crate::gaussian::Gaussian;
use crate::pair::{Change, Pair};
use crate::pld::{Fineness, Part, Pld};
use crate::profile::{Ends, PairProfile, Profile, Tails};

/// The share of epsilon that the grid of a composition may cost.
const FINENESS: Fineness = Fineness::Relative(1e-4);

/// From here on exponentials are divided out.
const FAR: f64 = 30.0;

/// One step, as the pair with the largest profile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FixedSize {
    rate: f64,
    sigma: f64,
    /// The pair that has the largest profile for losses that are not negative.
    remove: PairProfile,
}

impl FixedSize {
    /// A rate in `(0, 1]` and a positive noise multiplier per replace-one sensitivity.
    pub(crate) fn new(rate: f64, sigma: f64) -> Self {
        Self {
            rate,
            sigma,
            remove: PairProfile::new(&sampled(rate, sigma, Change::Remove)),
        }
    }

    /// `δ(ε)` of one step, for any real `ε`. Both ends are attained by neighbours for `ε >= 0`.
    pub(crate) fn profile(&self, epsilon: f64) -> Bracket {
        let exact = Bracket::exact(epsilon);
        if epsilon < 0.0 {
            return (exact.exp() * self.profile(-epsilon) - exact.exp_m1()).clamp(0.0, 1.0);
        }
        let rate = Bracket::exact(self.rate);
        let beta = if epsilon > FAR {
            // e^ε (1 - (1-γ)e^-ε)/γ, whose exponential would overflow.
            exact - rate.ln() + ((rate - Bracket::exact(1.0)) * (-exact).exp()).ln_1p()
        } else if self.rate >= 1.0 {
            exact
        } else {
            (exact.exp_m1() / rate).ln_1p()
        };
        let base = self.base();
        let there = Bracket::new(
            base.delta(beta.upper()).lower(),
            base.delta(beta.lower()).upper(),
        );
        (rate * there).clamp(0.0, 1.0)
    }

    fn base(&self) -> Gaussian {
        Gaussian {
            mu: Bracket::exact(1.0) / Bracket::exact(self.sigma),
        }
    }

    /// What dominates `count` steps, for a composition from above.
    pub(crate) fn part(&self, count: u64) -> Part {
        Part {
            profile: Box::new(*self),
            count,
        }
    }

    /// Pairs that some neighbours have in every step: each one's composition is a lower bound.
    pub(crate) fn attained(&self) -> [Pair; 3] {
        if self.rate >= 1.0 {
            let sigma = self.sigma;
            return [(); 3].map(|()| Pair::Gaussian { sigma });
        }
        [
            sampled(self.rate, self.sigma, Change::Remove),
            sampled(self.rate, self.sigma, Change::Add),
            // Doubling a float is exact, or infinite, which is no noise less.
            sampled(self.rate, 2.0 * self.sigma, Change::Replace),
        ]
    }

    /// `δ(ε)` of `count` steps.
    pub(crate) fn delta(&self, count: u64, epsilon: f64) -> Bracket {
        if count == 1 {
            return self.profile(epsilon);
        }
        let mut above = Pld::new(vec![self.part(count)], FINENESS);
        let upper = Curve::delta(&mut above, epsilon).upper();
        let lower = self.below(count, |mut curve| Curve::delta(&mut curve, epsilon).lower());
        Bracket::new(lower.min(upper), upper)
    }

    /// `ε(δ)` of `count` steps.
    pub(crate) fn epsilon(&self, count: u64, delta: f64) -> Bracket {
        if count == 1 {
            return curve::epsilon(&mut self.clone(), delta);
        }
        let upper = Pld::new(vec![self.part(count)], FINENESS)
            .epsilon(delta)
            .upper();
        let lower = self.below(count, |mut curve| curve::epsilon(&mut curve, delta).lower());
        Bracket::new(lower.min(upper), upper)
    }

    /// The largest answer of the attained pairs that the contour engine takes; zero if it takes none.
    fn below(&self, count: u64, mut ask: impl FnMut(Contour) -> f64) -> f64 {
        self.attained()
            .into_iter()
            .filter_map(|pair| Contour::new(&[(pair, count)]))
            .map(&mut ask)
            .fold(0.0, f64::max)
    }
}

fn sampled(rate: f64, sigma: f64, change: Change) -> Pair {
    Pair::SampledGaussian {
        rate,
        sigma,
        change,
    }
}

impl Profile for FixedSize {
    fn delta_upper(&self, loss: f64) -> f64 {
        self.profile(loss).upper()
    }

    /// For `l < 0`, exchanging the two laws turns `L` into `-L`: `P(L > l) = Q(L < -l) = 1 - Q(L > -l)`, and
    /// `e^l Q(L > l) = e^l (1 - P(L > -l))`. The atom at zero is not beyond `l = 0`.
    fn tails(&self, loss: f64) -> Tails {
        if loss >= 0.0 {
            return self.remove.tails(loss);
        }
        let there = self.remove.tails(-loss);
        let (one, power) = (Bracket::exact(1.0), Bracket::exact(loss).exp());
        Tails {
            p: (one - power * there.q).clamp(0.0, 1.0),
            q: (power * (one - there.p)).clamp(0.0, power.upper()),
        }
    }

    fn ends(&self) -> Ends {
        let Ends { top, atoms, .. } = self.remove.ends();
        Ends {
            bottom: -top,
            top,
            atoms,
        }
    }
}

impl Curve for FixedSize {
    fn delta(&mut self, epsilon: f64) -> Bracket {
        self.profile(epsilon)
    }

    fn infinite(&self) -> Bracket {
        Bracket::ZERO
    }

    fn guess(&mut self, delta: f64) -> f64 {
        // The base at delta/γ, and back: ε = ln(1 + γ(e^β - 1)).
        let beta = self.base().epsilon(delta / self.rate);
        libm::log1p(self.rate * libm::expm1(beta.estimate()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_values_of_one_step() {
        // Reference cases pub-072 and pub-073, 18 digits.
        let check = |rate, sigma, epsilon, expected: f64| {
            let found = FixedSize::new(rate, sigma).delta(1, epsilon);
            assert!(found.relative_width() < 1e-11, "{found:?}");
            assert!(
                (found.estimate() / expected - 1.0).abs() < 1e-11,
                "{found:?}"
            );
        };
        check(0.01, 1.0, 0.5, 2.214_519_013_153_061_6e-7);
        check(0.1, 2.0, 0.3, 3.840_933_426_074_664e-5);
    }

    #[test]
    fn the_whole_data_set_is_a_gaussian() {
        let fixed = FixedSize::new(1.0, 2.0);
        for epsilon in [-3.0, -0.1, 0.0, 0.5, 4.0] {
            let mu = Bracket::exact(0.5);
            let gaussian = Gaussian { mu }.delta(epsilon);
            let found = fixed.profile(epsilon);
            assert!(found.lower() <= gaussian.upper() && gaussian.lower() <= found.upper());
        }
        let many = fixed.epsilon(9, 1e-5);
        let mu = Bracket::exact(1.5);
        let gaussian = Gaussian { mu }.epsilon(1e-5);
        assert!(many.lower() <= gaussian.upper() && gaussian.lower() <= many.upper());
        assert!(many.relative_width() < 1e-3, "{many:?} {gaussian:?}");
    }

    /// All pairs that neighbours have lie below the profile, at all epsilons.
    #[test]
    fn attained_pairs_are_below() {
        for (rate, sigma) in [(0.01, 1.0), (0.3, 0.4), (0.5, 3.0), (0.999, 0.1)] {
            let fixed = FixedSize::new(rate, sigma);
            for pair in fixed.attained() {
                let attained = PairProfile::new(&pair);
                for step in -80..=80 {
                    let loss = f64::from(step) * 0.05;
                    let tails = attained.tails(loss);
                    let (found, below) = (fixed.delta_upper(loss), (tails.p - tails.q).lower());
                    assert!(
                        below <= found,
                        "{rate} {sigma} {pair:?} {loss}: {below} {found}"
                    );
                }
            }
        }
    }

    #[test]
    fn tails_are_those_of_the_profile() {
        let fixed = FixedSize::new(0.2, 0.7);
        for step in -200..=200 {
            let loss = f64::from(step) * 0.02;
            let (tails, delta) = (fixed.tails(loss), fixed.profile(loss));
            let gap = tails.p - tails.q;
            assert!(
                gap.lower() <= delta.upper() && delta.lower() <= gap.upper(),
                "{loss}"
            );
            // The supporting line p - q e^(x-l) is nowhere above the profile.
            for other in -40..=40 {
                let place = f64::from(other) * 0.1;
                let line = tails.p - tails.q * Bracket::exact(place - loss).exp();
                let there = fixed.delta_upper(place);
                assert!(
                    line.lower() <= there + 1e-13,
                    "{loss} {place}: {line:?} {there}"
                );
            }
        }
    }

    #[test]
    fn many_steps_are_enclosed() {
        for (rate, sigma, count, delta) in [(0.01, 1.0, 1000, 1e-5), (0.1, 2.0, 100, 1e-6)] {
            let fixed = FixedSize::new(rate, sigma);
            let found = fixed.epsilon(count, delta);
            let poisson = Contour::new(&[(sampled(rate, sigma, Change::Remove), count)])
                .map(|mut curve| curve::epsilon(&mut curve, delta))
                .expect("the contour engine takes it");
            assert!(found.lower() >= poisson.lower() && found.upper() > poisson.upper());
            assert!(found.upper() < 1.5 * found.lower(), "{found:?}");
            let back = fixed.delta(count, found.upper());
            assert!(
                back.lower() <= delta && back.upper() <= delta * 1.01,
                "{back:?}"
            );
        }
    }

    #[test]
    fn extremes() {
        for rate in [1e-300, 1e-9, 0.5, 1.0] {
            for sigma in [1e-9, 0.1, 1.0, 1e9] {
                let fixed = FixedSize::new(rate, sigma);
                let mut last = 1.0;
                for epsilon in [-1e6, -5.0, -1e-12, 0.0, 1e-300, 1e-6, 1.0, 50.0, 800.0, 1e6] {
                    let found = fixed.profile(epsilon);
                    assert!(found.lower() >= 0.0 && found.upper() <= 1.0);
                    assert!(found.lower() <= last, "{rate} {sigma} {epsilon}: {found:?}");
                    last = found.upper();
                }
                for delta in [1e-300, 1e-12, 0.4] {
                    let found = fixed.epsilon(1, delta);
                    assert!(found.lower() >= 0.0 && found.upper() < f64::INFINITY);
                }
            }
        }
    }
}
