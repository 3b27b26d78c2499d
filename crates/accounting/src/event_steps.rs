//! # From events to steps
//! An [`Event`](whit_core::Event) names exact parameters; the accountant's [`Step`](crate::Step)s have floats. Each part of an event becomes a step that is at
//! least as bad on the upper side of a bound, and one that it can be as bad as on the lower side.
//!
//! | part | upper side | lower side |
//! | --- | --- | --- |
//! | discrete Laplace, one coordinate | its rate rounded up, the largest whole shift | the rate rounded down |
//! | the same with a long lattice | a rounded Laplace, and a distance | likewise |
//! | discrete Laplace, several | `ε`-DP with `ε = Δ/b` | all of the shift in one coordinate |
//! | discrete Gaussian, one coordinate, a short lattice | itself, if `σ` is a float | itself |
//! | discrete Gaussian otherwise | a rounded Gaussian, and a distance | the largest whole shift in one coordinate |
//! | randomized response | the log-ratio rounded up | rounded down |
//! | what is known by epsilon or delta | rounded up | rounded down |
//! | what is known by rho | rounded up | the Gaussian with `1/(2σ²) = ρ`, which is one such mechanism |
//! | Gaussian noise, sampled or not | [`event_sampled.rs`](crate) | likewise |
//!
//! **Rates.** More discrete Laplace noise is less of it plus independent noise: with `r = e^(-rate)` its characteristic function is
//! `(1-r)²/(1-2r cos t+r²)`, and for `r' > r` the quotient of two such is `αφ_(r') + β` up to a positive factor, with
//! `β = r/r'` and `α = (1-r/r')(1-rr')`, both positive: a mixture of nothing and of noise. Adding noise is post-processing. Randomized response with a
//! smaller log-ratio is one with a larger one, repeated.
//!
//! **Shifts.** Integers differ by whole numbers, so `Δ` may be rounded down; and the largest shift is the worst. For noise that is log-concave the best tests are thresholds,
//! and at the same rate of false positives `Pr[Z >= τ]` the power `Pr[Z >= τ - s]` grows with the shift `s`.
//!
//! **The rounded Gaussian.** Let `f(x) = e^(-x²/(2σ²))`, `p(z) = f(z)/Σf` the discrete Gaussian and `r(z)` the mass that `N(0, σ²)` has within a half of `z`.
//! Their distance is at most `0.1211/σ²`. *Proof.* `∫ f - f(z)` over the cell of `z` is `∫ K(x-z) f''(x) dx` with `K(u) = (½-|u|)²/2`, between 0 and 1/8 (Taylor's
//! formula; the odd term cancels). So `Σ_z |∫ f - f(z)| <= ∫|f''|/8 = 4 max|f'|/8 = e^(-1/2)/(2σ) < 0.30327/σ =: B`, and as much for `|Σf - σ√(2π)|`. Hence
//! `½Σ|p - r| <= ½(|1 - Σf/(σ√(2π))| + B/(σ√(2π))) <= B/(σ√(2π)) < 0.1211/σ²`. So a discrete Gaussian in `d` coordinates is within `d` times this of a Gaussian whose sum
//! with integers was rounded, which is post-processing of Gaussian noise at the same L2 sensitivity. [`close.rs`](crate) prices the distance.
//!
//! **The rounded Laplace** likewise: `f(x) = e^(-|x|/b)` has `∫|f''| = 4/b`, the bend at zero included, and mass `2b`: at most `1/(4b²)`.
//!
//! **From below** rounding counts, too: it hides where between two integers an output was. For shifts by `s` the best test of noise that is not
//! rounded is a threshold `τ` with `g(τ) = Pr[s + X >= τ] - e^ε Pr[X >= τ]`; rounded outputs have those half-way between integers, and one of them is within a
//! half of `τ`. At `τ + h` the two densities in `g'` have a quotient of `e^(sh/σ²)` and a geometric mean of at most
//! `m = e^(ε/2) e^(-s²/(8σ²))/(σ√(2π))`, so they differ by at most `2m sinh(s|h|/(2σ²))`, and `g` falls by at most `m(cosh w - 1)/w <= (m w/2) e^(w²/12)` with
//! `w = s/(4σ²)`. With `u = s/σ` that is `e^(ε/2) u e^(-cu²)/(8σ²√(2π))`, `c = 1/8 - 1/(192σ²)`; for `σ² >= 0.24` it is at most `0.0666 e^(ε/2)/σ²`, since
//! `u e^(-cu²) <= 1/√(2ce)`. Beside other parts with the loss `L`, `ε` is `ε - L`, and the mean of `e^(-L/2)` is the sum of `√(pq)`, at most one: so each part adds no more
//! than it does alone, one after the other. As `e^(ε/2) <= (1 + e^ε)/2`, this is a distance of `0.0333/σ²` more, `0.155/σ²` in all. Where `σ² < 0.24`, so much of it is
//! above one half, and nothing is claimed. For Laplace noise the quotient is at most `e^(2|h|/b)` and `m = e^(ε/2)/(2b)`: `g` falls by at most
//! `e^(ε/2)(cosh(1/(2b)) - 1) < 0.1251 e^(ε/2)/b²` where `b >= 100`, and it is `0.313/b²` in all. Coordinates that do not differ need no distance.

use whit_core::{Mechanism, Neighbours, Ratio, round};

use crate::discrete_pair::MASSES_MAX;
use crate::event_sampled;
use crate::lower::Side;
use crate::{Bracket, Step, pure};

/// The distance of a discrete Gaussian from a rounded one, times `σ²`, in ten-thousandths.
const ROUNDED_GAUSSIAN: u128 = 1211;
/// That of a discrete Laplace, times `b²`.
const ROUNDED_LAPLACE: u128 = 2500;
/// The same with what rounding hides.
const HIDDEN_GAUSSIAN: u128 = 1550;
/// Likewise.
const HIDDEN_LAPLACE: u128 = 3130;
/// Discrete Gaussians with more noise than this are priced as rounded ones: their lattices are long.
const LATTICE_SIGMA: f64 = 256.0;
/// Discrete Laplace noise of smaller rates is nearly continuous: a distance below `1e-12`.
const RATE_LONG: f64 = 1e-6;
/// Likewise for shifts from here on.
const SHIFT_MAX: f64 = 4_294_967_296.0;
/// Whole numbers below this are floats, and so are their successors.
const WHOLE_MAX: f64 = 4_503_599_627_370_496.0;
/// A composition of more different steps than this takes long.
const STEPS_MAX: usize = 64;

/// Of these, so many may be something else than Gaussian: the losses of different discrete mechanisms multiply.
const OTHERS_MAX: usize = 3;

/// An ideal mechanism as steps.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Steps {
    pub(crate) steps: Vec<(Step, u64)>,
    /// How far the event is from these, in total variation; rounded up.
    pub(crate) distance: f64,
}

/// The steps of a mechanism without inexact samplers; `None` if a part has none, or there are too many for an exact answer.
pub(crate) fn steps(ideal: &Mechanism, side: Side, neighbours: Neighbours) -> Option<Steps> {
    let mut found = Steps {
        steps: Vec::new(),
        distance: 0.0,
    };
    // Equal parts are common, and are counted before they are read. Equal is what is equal, not what looks the same: text of long numbers is
    // abbreviated. There are at most STEPS_MAX different ones to compare with.
    let mut parts: Vec<(&Mechanism, u64)> = Vec::new();
    for part in flat(ideal) {
        match parts.iter_mut().find(|(known, _)| *known == part) {
            Some((_, count)) => *count += 1,
            None => parts.push((part, 1)),
        }
        if parts.len() > STEPS_MAX {
            return None;
        }
    }
    for (part, count) in parts {
        found.add(part, count, side, neighbours)?;
    }
    let others = found
        .steps
        .iter()
        .filter(|(step, _)| !matches!(step, Step::Gaussian { .. }));
    (others.count() <= OTHERS_MAX).then_some(found)
}

fn flat(mechanism: &Mechanism) -> Vec<&Mechanism> {
    match mechanism {
        Mechanism::Composition(parts) => parts.iter().flat_map(flat).collect(),
        single => vec![single],
    }
}

/// The largest whole number whose square is at most this, if floats can tell.
fn whole_root(square: &Ratio) -> Option<f64> {
    let guess = bracket(square).sqrt().lower().floor();
    let fits = |root: f64| {
        let root = Ratio::from_f64(root)?;
        Some(&root * &root <= *square)
    };
    let mut root = guess.max(0.0);
    if root < WHOLE_MAX && fits(root + 1.0)? {
        root += 1.0;
    }
    (root < WHOLE_MAX && fits(root)? && !fits(root + 1.0)?).then_some(root)
}

/// The float on the side that is asked for.
pub(crate) fn towards(value: &Ratio, side: Side) -> f64 {
    match side {
        Side::Upper => value.to_f64_up(),
        Side::Lower => value.to_f64_down(),
    }
}

/// The other one: less noise is the worse case.
fn noise(scale: &Ratio, side: Side) -> f64 {
    match side {
        Side::Upper => scale.to_f64_down(),
        Side::Lower => scale.to_f64_up(),
    }
}

impl Steps {
    fn add(
        &mut self,
        part: &Mechanism,
        count: u64,
        side: Side,
        neighbours: Neighbours,
    ) -> Option<()> {
        let step = match part {
            Mechanism::DiscreteLaplace {
                scale,
                sensitivity_l1,
                coordinates,
            } => {
                let shift = u64::try_from(sensitivity_l1.floor()).ok()?;
                let rate = towards(&Ratio::one().checked_div(scale.ratio())?, side);
                let long = shift >= MASSES_MAX && shift < WHOLE_MAX as u64 && rate <= RATE_LONG;
                match (shift, *coordinates) {
                    (0, _) => return Some(()),
                    (_, 0 | 1) if long => {
                        let constant = match side {
                            Side::Upper => ROUNDED_LAPLACE,
                            Side::Lower => HIDDEN_LAPLACE,
                        };
                        self.is_apart(constant, scale.ratio(), 1, count)?;
                        Step::Laplace {
                            scale: noise(scale.ratio(), side),
                            sensitivity: shift as f64,
                        }
                    }
                    (_, 2..) if side == Side::Upper => pure_step(part)?,
                    _ => Step::DiscreteLaplace {
                        rate,
                        sensitivity: shift,
                    },
                }
            }
            Mechanism::DiscreteGaussian {
                scale,
                sensitivity_l2_square,
                coordinates,
            } => {
                let (sigma, coordinates) = (scale.ratio(), (*coordinates).max(1));
                let shift = match (coordinates, whole_root(sensitivity_l2_square)) {
                    (1, Some(whole)) => whole,
                    (_, Some(whole)) if side == Side::Lower => whole,
                    (_, None) if side == Side::Lower => 0.0,
                    _ => bracket(sensitivity_l2_square).sqrt().upper(),
                };
                let exact = sigma.to_f64_down() == sigma.to_f64_up();
                let short = sigma.to_f64_up() <= LATTICE_SIGMA && shift < SHIFT_MAX;
                if shift == 0.0 {
                    return Some(());
                } else if coordinates == 1 && exact && short {
                    Step::DiscreteGaussian {
                        sigma: sigma.to_f64_up(),
                        sensitivity: shift as u64,
                    }
                } else {
                    match side {
                        Side::Upper => {
                            self.is_apart(ROUNDED_GAUSSIAN, sigma, coordinates, count)?
                        }
                        Side::Lower => self.is_apart(HIDDEN_GAUSSIAN, sigma, 1, count)?,
                    }
                    Step::Gaussian {
                        sigma: noise(sigma, side),
                        sensitivity: shift,
                    }
                }
            }
            Mechanism::RandomizedResponse { keep, categories } => {
                let uniform = Ratio::new(1, u128::from(*categories)).ok()?;
                let epsilon = match (side, *keep.ratio() >= uniform) {
                    (Side::Upper, true) => pure::epsilon(part).ok()?.value(),
                    (Side::Upper, false) => {
                        self.steps.push((pure_step(part)?, count));
                        return Some(());
                    }
                    (Side::Lower, true) => response_epsilon_lower(keep.ratio(), *categories)?,
                    (Side::Lower, false) => return Some(()),
                };
                Step::RandomizedResponse {
                    epsilon,
                    categories: *categories,
                }
            }
            Mechanism::BoundedRange { epsilon } => Step::Exponential {
                epsilon: towards(epsilon, side),
            },
            Mechanism::Pure { epsilon } => Step::Approximate {
                epsilon: towards(epsilon, side),
                delta: 0.0,
            },
            // An event has as many selections as keys that neighbours differ at, whatever the relation.
            Mechanism::PartitionSelection { .. } if side == Side::Lower => return Some(()),
            Mechanism::Approximate { epsilon, delta }
            | Mechanism::PartitionSelection { epsilon, delta } => Step::Approximate {
                epsilon: towards(epsilon, side),
                delta: towards(delta.ratio(), side),
            },
            Mechanism::Concentrated { rho } if rho.is_zero() => return Some(()),
            Mechanism::Concentrated { rho } => match side {
                Side::Upper => Step::Concentrated {
                    rho: rho.to_f64_up(),
                },
                Side::Lower => Step::Gaussian {
                    sigma: 1.0,
                    sensitivity: (Bracket::exact(2.0) * bracket(rho)).sqrt().lower().max(0.0),
                },
            },
            Mechanism::Gaussian {
                scale,
                sensitivity_l2_square,
            } => match event_sampled::gaussian(scale, sensitivity_l2_square, side) {
                Some(step) => step,
                None => return Some(()),
            },
            Mechanism::Sampled { .. } => {
                let run = event_sampled::Run::read(part).ok()?;
                if let Some((step, times)) = run.step(neighbours, side) {
                    self.steps.push((step, times.checked_mul(count)?));
                }
                return Some(());
            }
            _ => return None,
        };
        self.steps.push((step, count));
        Some(())
    }

    /// Adds `constant/(10⁴ scale²)` to the distance, for each coordinate of each part.
    fn is_apart(
        &mut self,
        constant: u128,
        scale: &Ratio,
        coordinates: u64,
        count: u64,
    ) -> Option<()> {
        let each = Ratio::new(constant, 10_000)
            .ok()?
            .checked_div(&(scale * scale))?;
        let all = &(&each * &Ratio::from(coordinates)) * &Ratio::from(count);
        self.distance = round::add_up(self.distance, all.to_f64_up());
        Some(())
    }
}

fn pure_step(part: &Mechanism) -> Option<Step> {
    Some(Step::Approximate {
        epsilon: pure::epsilon(part).ok()?.value(),
        delta: 0.0,
    })
}

/// `ln(keep (m-1)/(1-keep))` from below.
fn response_epsilon_lower(keep: &Ratio, categories: u64) -> Option<f64> {
    let lie = Ratio::from_rbig(Ratio::one().as_rbig() - keep.as_rbig())?;
    let odds = (keep * &Ratio::from(categories - 1)).checked_div(&lie)?;
    Some(Bracket::exact(odds.to_f64_down()).ln().lower().max(0.0))
}

fn bracket(ratio: &Ratio) -> Bracket {
    Bracket::new(ratio.to_f64_down(), ratio.to_f64_up())
}

#[cfg(test)]
#[path = "event_steps_test.rs"]
mod tests;
