//! # Objective perturbation, with its price
//! **Definition.** The noise that is added to an objective's gradient, and what the exact minimum costs with it.
//! **Claim.** What is charged is about what is drawn: the price is that of the noise's own event, with what determinants add. Nobody can state the one apart from the other.
//!   And which noise it is decides by which length examples are shortened: who shortens asks [`ObjectivePerturbation::kind`], and what one example does was stated for the same kind, or there is no plan.
//! **Proof.** Both are made of one [`NoisySums`], in [`ObjectivePerturbation::new`], and its parts are private to this file. For Laplace noise of scale `s` the price of its event at `δ = 0` is `Δ₁/s`, however many coordinates
//!   there are; for Gaussian noise it is an `ε'` at which the Gaussian mechanism of that scale is `(ε', δ')`-DP at sensitivity `Δ₂`. That is what the proof in `minima_perturbation.rs` asks for, and it says why `κ` and the `δ'` of all other classes are added. ∎

use whit_accounting::price;
use whit_core::{AddRemove, Delta, Epsilon, Mechanism, Probability, Ratio, Scale, Sensitivity};
use whit_mechanism::MinimaPerturbation;

use super::Budget;
use super::budget::{DELTA_MIN, NoiseKind};
use super::noisy_sums::{NoisySums, Reach};
use super::residual::length;
use super::softmax_objective::NOISE_BITS;
use crate::error::{Error, Result, within};

/// What one example does to an objective of so many classes, at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Influence {
    pub(super) classes: usize,
    /// How far it moves the gradient: in L1, and squared in L2, in examples.
    pub(super) length: u64,
    /// `κ`: by how much the logarithm of the determinant.
    pub(super) curved: f64,
    /// Beside which noise: examples are as long as that says.
    pub(super) beside: NoiseKind,
}

impl Influence {
    /// By the proof of `minima_perturbation.rs`, with the `κ` that it gives.
    pub(super) fn new(classes: usize, curved: f64, beside: NoiseKind) -> Self {
        Self {
            classes,
            length: length(classes),
            curved,
            beside,
        }
    }
}

/// Noise, and what the exact minimum costs with it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ObjectivePerturbation {
    noise: NoisySums,
    minimum: Mechanism,
}

impl ObjectivePerturbation {
    /// The least noise for which `left` of epsilon is enough, besides what determinants take.
    pub(super) fn new(influence: Influence, left: Epsilon, delta: Delta) -> Result<Self> {
        let reach = Reach {
            l1: Ratio::from(influence.length),
            l2_square: Ratio::from(influence.length),
            coordinates: 1,
            bits: NOISE_BITS,
        };
        let each = share_of(delta, influence.classes)?;
        let noise = NoisySums::new(reach, 1, Budget::new(left, each)?)?;
        if noise.kind() != influence.beside {
            return Err(Error::Unbound);
        }
        let minimum = minimum(&noise, influence)?;
        Ok(Self { noise, minimum })
    }

    /// What the mechanism draws and what it costs, with this noise of the output.
    pub(super) fn mechanism(&self, output: &Scale, apart: Ratio) -> MinimaPerturbation<AddRemove> {
        MinimaPerturbation::new(
            self.noise.objective_noise(),
            self.minimum.clone(),
            output.clone(),
            Sensitivity::new(apart),
        )
    }

    /// Of the noise alone.
    #[cfg(test)]
    pub(super) fn event(&self) -> &whit_core::Event {
        self.noise.event()
    }

    /// Which noise it is.
    pub(super) fn kind(&self) -> NoiseKind {
        self.noise.kind()
    }

    /// The standard deviation of the noise in each coordinate.
    pub(super) fn deviation(&self) -> f64 {
        self.noise.deviation()
    }
}

/// The price of this noise, and of determinants.
fn minimum(noise: &NoisySums, influence: Influence) -> Result<Mechanism> {
    let exact = |value: f64| Ratio::from_f64(value).ok_or(Error::Unbound);
    let price = price(noise.event(), noise.terms().budget.delta())?;
    let epsilon = &exact(price.epsilon.value())? + &exact(influence.curved)?;
    if noise.kind() == NoiseKind::Laplace {
        return Ok(Mechanism::Pure { epsilon });
    }
    let others = Ratio::from(influence.classes as u64 - 1);
    let delta = Probability::new(&exact(price.delta.value())? * &others)?;
    Ok(Mechanism::Approximate { epsilon, delta })
}

/// A share of delta for each of the other classes, so that all together are no more. Refused if it is too small: a share that is rounded to zero would ask for Laplace noise beside examples that are shortened for Gaussian noise.
fn share_of(delta: Delta, classes: usize) -> Result<Delta> {
    if delta == Delta::ZERO || classes == 2 {
        return Ok(delta);
    }
    let share = (delta.value() / (classes - 1) as f64).next_down();
    let range = "0, or at least 1.001e-300 times the number of classes but one";
    within("delta", delta.value(), share >= DELTA_MIN, range)?;
    Ok(Delta::new(share)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What one example does, for the noise that this delta asks for.
    fn influence(classes: usize, curved: f64, delta: f64) -> Influence {
        let beside = crate::classical::doubt::budget(1.0, delta).noise();
        Influence::new(classes, curved, beside)
    }

    fn made(influence: Influence, delta: f64) -> ObjectivePerturbation {
        let delta = Delta::new(delta).expect("a delta");
        let left = Epsilon::new(1.0).expect("an epsilon");
        ObjectivePerturbation::new(influence, left, delta).expect("in reach")
    }

    #[test]
    fn closed_form() {
        // The exact analysis of the Gaussian mechanism needs σ = 4.22467… at ε = 1 and δ = 1e-6 (mpmath).
        let exact = made(influence(2, 0.0, 1e-6), 1e-6).deviation();
        assert!((4.224_67..4.224_69).contains(&exact));
        // For three classes each of two others has half of delta, and gradients are longer by the root of two.
        let ratio = made(influence(3, 0.0, 2e-6), 2e-6).deviation() / exact;
        assert!((ratio / 2.0_f64.sqrt() - 1.0).abs() < 1e-5, "{ratio}");
    }

    /// By the scales that the mechanism draws with, and not by what was asked for.
    #[test]
    fn the_charge_is_that_of_the_noise_that_is_drawn() {
        for (classes, curved) in [(2, 0.0), (2, 0.25), (5, 0.25)] {
            let pure = made(influence(classes, curved, 0.0), 0.0);
            let Mechanism::DiscreteLaplace {
                scale,
                sensitivity_l1,
                ..
            } = pure.event().mechanism()
            else {
                panic!("another event")
            };
            assert_eq!(
                pure.noise.objective_noise(),
                whit_mechanism::ObjectiveNoise::Laplace(scale.clone()),
            );
            let Mechanism::Pure { epsilon } = &pure.minimum else {
                panic!("another price")
            };
            let drawn = sensitivity_l1.to_f64_up() / scale.ratio().to_f64_up() + curved;
            assert!((epsilon.to_f64_up() / drawn - 1.0).abs() < 1e-9);
            assert!(epsilon.to_f64_up() >= drawn * (1.0 - 1e-15));
            let gaussian = made(influence(classes, curved, 1e-6), 1e-6);
            let Mechanism::Gaussian { scale, .. } = gaussian.event().mechanism() else {
                panic!("another event")
            };
            assert_eq!(
                gaussian.noise.objective_noise(),
                whit_mechanism::ObjectiveNoise::Gaussian(scale.clone()),
            );
            let Mechanism::Approximate { epsilon, delta } = &gaussian.minimum else {
                panic!("another price")
            };
            let epsilon = epsilon.to_f64_up() - curved;
            assert!((0.999_99..1.000_001).contains(&epsilon), "{epsilon}");
            assert!((0.999e-6..=1e-6).contains(&delta.ratio().to_f64_up()));
        }
    }

    /// All shares together are no more than delta, and next to nothing less.
    #[test]
    fn delta_is_divided_among_the_other_classes() {
        for classes in [2, 3, 5, 1000, 1 << 19] {
            for delta in [1e-6, 1e-12, 1e-290, 0.3] {
                let share = share_of(Delta::new(delta).expect("a delta"), classes);
                let share = Ratio::from_f64(share.expect("a share").value()).expect("finite");
                let all = &share * &Ratio::from(classes as u64 - 1);
                assert!(all <= Ratio::from_f64(delta).expect("finite"));
                assert!(all.to_f64_up() >= delta * (1.0 - 1e-15));
            }
            assert_eq!(share_of(Delta::ZERO, classes), Ok(Delta::ZERO));
        }
    }

    /// Shares of tiny deltas were rounded to zero, which made Laplace noise beside examples that were shortened in L2.
    #[test]
    fn noise_is_that_for_which_examples_are_shortened() {
        for classes in [3, 5, 1 << 19] {
            let (mut refused, mut made) = (0, 0);
            for delta in [
                5e-324, 1e-323, 2e-323, 2.6e-318, 1e-310, 1e-300, 2.1e-300, 1e-294, 1e-200,
            ] {
                let delta = Delta::new(delta).expect("a delta");
                let left = Epsilon::new(1.0).expect("an epsilon");
                for beside in [NoiseKind::Gaussian, NoiseKind::Laplace] {
                    let influence = Influence::new(classes, 0.0, beside);
                    match ObjectivePerturbation::new(influence, left, delta) {
                        Ok(found) => {
                            made += 1;
                            assert_eq!((found.kind(), beside), (NoiseKind::Gaussian, beside));
                            assert!(matches!(
                                found.noise.objective_noise(),
                                whit_mechanism::ObjectiveNoise::Gaussian(_)
                            ));
                        }
                        Err(_) => refused += 1,
                    }
                }
            }
            assert!(made >= 2 && refused >= 14, "{made} and {refused}");
        }
    }
}
