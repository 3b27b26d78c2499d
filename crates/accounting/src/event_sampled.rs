//! # Gaussian noise in events, over samples and over everybody
//! A training run is one event: how units are drawn, how many steps there are, and the noise of each. Here it becomes one
//! [`Step`](crate::Step) of the accountant, whatever the number of steps.
//!
//! Let `σ` be the noise scale and `Δ = √sensitivity_l2_square` the distance of samples that differ in one unit by the relation of the
//! event. With `C` the most that one unit adds, `Δ = C` under add/remove; under replace-one `Δ = 2C`, and the event vouches that
//! `C <= Δ/2`.
//!
//! | sampling | relation | step | noise multiplier |
//! | --- | --- | --- | --- |
//! | Poisson | add/remove | sampled Gaussian, the larger of both directions | `σ/Δ` |
//! | Poisson | replace-one | sampled Gaussian | `σ/C = 2σ/Δ` |
//! | fixed size | replace-one | `fixed_size.rs` | `σ/Δ` |
//! | balls in bins | add/remove | `allocation.rs` | `σ/Δ` |
//! | shuffled | replace-one | `shuffled_batches.rs`: no amplification is proven | `σ/C = 2σ/Δ` |
//! | all | both | Gaussian | `σ/Δ` |
//!
//! Any other relation is refused: a sample of fixed size and a shuffled order need a public number of units, and for balls in bins
//! under replace-one no pair is proven here.
//!
//! **Poisson under replace-one.** Given the other units of a step and its query, the answers are `P = (1-q)f_0 + q f_u` and
//! `Q = (1-q)f_0 + q f_v` with `|u|, |v| <= C`, where `f_x` is the noise around `x`. The pair of the engine has `u = -v` of length `C` on a
//! line; its profile is no smaller. *Proof.* In units of `σ`, `δ(ε) = E(c + qA - e^ε qB)_+` over `x ~ f_0`, with `c = (1-q)(1-e^ε)`,
//! `A = e^(X - |u|²/2)`, `X = ⟨x,u⟩`, and `B` alike from `Y = ⟨x,v⟩`.
//! 1. *Lengths.* Let `u' = u + w` with `w` orthogonal to both. Then `A' = A e^(⟨x,w⟩ - |w|²/2)` has the mean `A` given the rest, so by
//!    Jensen `δ` does not fall; for `v` alike. There are enough dimensions: noise may be added in more of them.
//! 2. *Angle.* With the variances of `X` and `Y` fixed, the derivative of `E h(X, Y)` by their covariance is `E ∂²h/∂X∂Y`
//!    \[Plackett's identity\]; for `h = (c + qA - e^ε qB)_+`, smoothed, it is the mean of `-e^ε q² A B` times something that is not
//!    negative. So `δ` falls with the covariance, and is largest where that is `-|u||v|`: opposite directions. ∎
//!
//! The other units are drawn by the same coins for both neighbours, and a profile of mixtures is at most the mean of profiles.
//!
//! **Rates and fractions** are rounded up on the upper side: for `q' < q`, the pair at `q'` is the mixture of the pair at `q` with
//! two equal laws, so its profile is at most the mean of that and of `(1-e^ε)_+`, which is no larger than that. Domination of each
//! step carries over to compositions [ZDW22, Thm 10].
//!
//! **Part of an epoch** is a function of a whole one: upper bounds count it whole, lower bounds do not count it.
//!
//! **Concentrated loss.** Fix the coins of the sampler, which are the same for both neighbours. Then each step is a Gaussian whose
//! inputs are at most `Δ` apart, and equal where the unit takes no part. So `n` steps in which it may take part have at most
//! `ρ = nΔ²/(2σ²)`; for balls in bins and shuffled batches there is one in each epoch. Rényi divergences of mixtures are at most
//! the largest of those mixed. This forgoes all amplification, and is for budgets that add `ρ`.

use whit_core::{Mechanism, Neighbours, Ratio, Sampling, Scale};

use crate::event_steps::towards;
use crate::lower::Side;
use crate::{Error, Result, Step, pure};

/// Gaussian noise by its noise multiplier; `None` where no unit can move anything.
pub(crate) fn gaussian(scale: &Scale, square: &Ratio, side: Side) -> Option<Step> {
    Some(Step::Gaussian {
        sigma: multiplier(scale, square, 1, side)?,
        sensitivity: 1.0,
    })
}

/// `times σ/Δ`, rounded against the caller on the upper side. `None` if `Δ` is zero.
fn multiplier(scale: &Scale, square: &Ratio, times: u64, side: Side) -> Option<f64> {
    let scaled = scale.ratio() * &Ratio::from(times);
    let quotient = (&scaled * &scaled).checked_div(square)?;
    Some(match side {
        Side::Upper => root_down(&quotient),
        Side::Lower => root_up(&quotient),
    })
}

/// A float whose square is at most this; the largest, where the square has all its digits.
fn root_down(square: &Ratio) -> f64 {
    let mut root = libm::sqrt(square.to_f64_down()).next_up();
    // At most a few times: `sqrt` is correctly rounded, and zero always fits.
    while exact_square(root).is_none_or(|found| found > *square) {
        root = root.next_down();
    }
    root
}

/// A float whose square is at least this; infinity beyond the floats.
fn root_up(square: &Ratio) -> f64 {
    let mut root = libm::sqrt(square.to_f64_up()).next_down().max(0.0);
    while exact_square(root).is_some_and(|found| found < *square) {
        root = root.next_up();
    }
    root
}

fn exact_square(root: f64) -> Option<Ratio> {
    let root = Ratio::from_f64(root)?;
    Some(&root * &root)
}

/// Whether this sampler is priced for this relation.
pub(crate) fn check_relation(sampling: &Sampling, neighbours: Neighbours) -> Result<()> {
    let (step, relation, passes) = match sampling {
        Sampling::Poisson { .. } | Sampling::All => return Ok(()),
        Sampling::FixedSize { .. } => (
            FIXED_SIZE,
            Neighbours::ReplaceOne,
            "replace_one: samples of fixed size have no neighbours with one unit more",
        ),
        Sampling::Shuffled { .. } => (
            SHUFFLED,
            Neighbours::ReplaceOne,
            "replace_one: a unit more would move others from batch to batch",
        ),
        Sampling::BallsInBins { .. } => (BALLS, Neighbours::AddRemove, "add_remove"),
        unknown => return Err(unknown_sampling(unknown)),
    };
    if neighbours == relation {
        return Ok(());
    }
    Err(Error::Mismatch {
        step,
        neighbours,
        passes,
    })
}

const FIXED_SIZE: &str = "fixed_size sampling";
const SHUFFLED: &str = "shuffled sampling";
const BALLS: &str = "balls_in_bins sampling";

fn unknown_sampling(sampling: &Sampling) -> Error {
    Error::UnknownMechanism {
        mechanism: format!("{sampling:?}"),
    }
}

/// A sampled mechanism whose parameters were checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run<'a> {
    sampling: &'a Sampling,
    steps: u64,
    scale: &'a Scale,
    square: &'a Ratio,
}

impl<'a> Run<'a> {
    /// Refuses what is not a sampled Gaussian, a sampler that cannot be, and steps of steps.
    pub(crate) fn read(mechanism: &'a Mechanism) -> Result<Self> {
        let Mechanism::Sampled {
            sampling,
            steps,
            inner,
        } = mechanism
        else {
            return Err(Error::UnknownMechanism {
                mechanism: pure::name(mechanism),
            });
        };
        let Mechanism::Gaussian {
            scale,
            sensitivity_l2_square,
        } = &**inner
        else {
            return Err(Error::UnknownMechanism {
                mechanism: format!("a sampled {}", pure::name(inner)),
            });
        };
        match sampling {
            Sampling::FixedSize { size, of } => within(
                FIXED_SIZE,
                "size",
                *size,
                size <= of && *of > 0,
                "at most the number of units, which is at least 1",
            )?,
            Sampling::BallsInBins { bins: count } | Sampling::Shuffled { batches: count } => {
                within(
                    if matches!(sampling, Sampling::Shuffled { .. }) {
                        SHUFFLED
                    } else {
                        BALLS
                    },
                    "number of steps in an epoch",
                    *count,
                    *count > 0,
                    "at least 1",
                )?
            }
            Sampling::Poisson { .. } | Sampling::All => {}
            unknown => return Err(unknown_sampling(unknown)),
        }
        Ok(Self {
            sampling,
            steps: *steps,
            scale,
            square: sensitivity_l2_square,
        })
    }

    /// Whether outputs say nothing about any unit.
    pub(crate) fn is_nothing(&self) -> bool {
        let nobody = match self.sampling {
            Sampling::Poisson { rate } => rate.ratio().is_zero(),
            Sampling::FixedSize { size, .. } => *size == 0,
            _ => false,
        };
        nobody || self.steps == 0 || self.square.is_zero()
    }

    /// In how many steps one unit can take part.
    fn steps_of_one(&self) -> u64 {
        match self.sampling {
            Sampling::BallsInBins { bins: count } | Sampling::Shuffled { batches: count } => {
                self.steps.div_ceil(*count)
            }
            _ => self.steps,
        }
    }

    /// The concentrated loss without any amplification; infinite beyond the floats.
    pub(crate) fn rho_upper(&self) -> f64 {
        if self.is_nothing() {
            return 0.0;
        }
        let variance = self.scale.ratio() * self.scale.ratio();
        let all = self.square * &Ratio::from(self.steps_of_one());
        let rho = all.checked_div(&(&variance + &variance));
        rho.map_or(f64::INFINITY, |rho| rho.to_f64_up())
    }

    /// The step, and how often it is taken; `None` if that is nothing. The relation was checked.
    pub(crate) fn step(&self, neighbours: Neighbours, side: Side) -> Option<(Step, u64)> {
        if self.is_nothing() {
            return None;
        }
        let multiplier = |times| multiplier(self.scale, self.square, times, side);
        let per_norm = match neighbours {
            Neighbours::ReplaceOne => 2,
            _ => 1,
        };
        // Whole epochs: all that were begun from above, all that were ended from below.
        let epochs = |count: u64| match side {
            Side::Upper => self.steps.div_ceil(count),
            Side::Lower => self.steps / count,
        };
        let (step, times) = match self.sampling {
            Sampling::Poisson { rate } => {
                let step = Step::PoissonGaussian {
                    rate: towards(rate.ratio(), side),
                    noise_multiplier: multiplier(per_norm)?,
                };
                (step, self.steps)
            }
            Sampling::FixedSize { size, of } => {
                let fraction = Ratio::from(*size).checked_div(&Ratio::from(*of))?;
                let step = Step::FixedSizeGaussian {
                    fraction: towards(&fraction, side),
                    sigma: multiplier(1)?,
                };
                (step, self.steps)
            }
            Sampling::BallsInBins { bins } => {
                let step = Step::RandomAllocation {
                    steps: *bins,
                    noise_multiplier: multiplier(1)?,
                    epochs: 1,
                };
                (step, epochs(*bins))
            }
            Sampling::Shuffled { batches } => {
                let step = Step::ShuffledBatches {
                    batches: *batches,
                    noise_multiplier: multiplier(per_norm)?,
                    epochs: 1,
                };
                (step, epochs(*batches))
            }
            _ => (gaussian(self.scale, self.square, side)?, self.steps),
        };
        (times > 0).then_some((step, times))
    }
}

fn within(
    step: &'static str,
    what: &'static str,
    found: u64,
    passes: bool,
    range: &'static str,
) -> Result<()> {
    if passes {
        return Ok(());
    }
    Err(Error::OutOfRange {
        step,
        what,
        found: found as f64,
        range,
    })
}

#[cfg(test)]
#[path = "event_sampled_test.rs"]
mod tests;
