//! # From steps to pairs
//! What each [`Step`](crate::Step) puts into a composition, for one direction and one side of the bound. On the upper side that is a pair which
//! dominates the mechanism; on the lower side one that some mechanism of that description attains on some neighbours. Where both
//! are the same, so are the two sides, and one computation serves both. Parameters that are quotients of floats are
//! rounded against the caller on the upper side and in his favour on the lower one.

use whit_core::{Neighbours, round};

use crate::allocation::{Allocation, Direction};
use crate::discrete_pair;
use crate::exponential_pair::{bounded_range, bounded_range_reached};
use crate::fixed_size::FixedSize;
use crate::loss_list::LossList;
use crate::optimal::Discrete;
use crate::pair::{Change, Pair};
use crate::rdp::Divergence;
use crate::shuffle::Shuffled;
use crate::shuffled_batches::{Changed, ShuffledBatches};
use crate::{Bracket, Error, Result, Step};

/// Which bound is being computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Upper,
    Lower,
}

/// How neighbours are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// A unit leaves, or the first of two.
    Forth,
    /// A unit joins, or the second of two.
    Back,
}

/// One step on one side and in one direction.
#[derive(Clone, Debug)]
pub(crate) enum Lowered {
    /// Has moments in closed form or by quadrature.
    Pair(Pair, u64),
    /// Has finitely many losses, or a lattice of them.
    Discrete(Discrete, u64),
    /// Has a profile of its own.
    FixedSize(FixedSize, u64),
    Allocation(Box<Allocation>, u64),
    ShuffledBatches(ShuffledBatches),
    Shuffled(Shuffled, u64),
    /// Only divergences are known.
    Divergence(Divergence, u64),
    /// Nothing happens.
    Nothing,
}

/// What `count` times `step` is, for `group` units that change together.
pub(crate) fn lower(
    step: &Step,
    count: u64,
    group: u64,
    neighbours: Neighbours,
    side: Side,
    way: Way,
) -> Result<Lowered> {
    let times = Bracket::exact(group as f64);
    // Noise per sensitivity: less noise is the worse case.
    let per = |noise: f64, sensitivity: f64| {
        let quotient = Bracket::exact(noise) / (Bracket::exact(sensitivity) * times);
        match side {
            Side::Upper => quotient.lower(),
            Side::Lower => quotient.upper(),
        }
    };
    // A loss: more is the worse case.
    let loss = |epsilon: f64| {
        let product = Bracket::exact(epsilon) * times;
        match side {
            Side::Upper => product.upper(),
            Side::Lower => product.lower(),
        }
    };
    let unknown = Error::GroupUnknown { step: step.name() };
    let alone = if group == 1 {
        Ok(())
    } else {
        Err(unknown.clone())
    };
    let shift = |sensitivity: u64| sensitivity.checked_mul(group).ok_or(unknown.clone());
    let change = match (neighbours, way) {
        (Neighbours::AddRemove, Way::Forth) => Change::Remove,
        (Neighbours::AddRemove, Way::Back) => Change::Add,
        // The composition has refused relations that are not known.
        _ => Change::Replace,
    };
    let lattice = |pair| Lowered::Discrete(Discrete::Lattice(pair), count);
    Ok(match step {
        Step::Gaussian { sensitivity, .. }
        | Step::Laplace { sensitivity, .. }
        | Step::PoissonLaplace { sensitivity, .. }
            if *sensitivity == 0.0 =>
        {
            Lowered::Nothing
        }
        Step::Gaussian { sigma, sensitivity } => Lowered::Pair(
            Pair::Gaussian {
                sigma: per(*sigma, *sensitivity),
            },
            count,
        ),
        Step::Gdp { mu } if *mu == 0.0 => Lowered::Nothing,
        Step::Gdp { mu } => Lowered::Pair(
            Pair::Gaussian {
                sigma: per(1.0, *mu),
            },
            count,
        ),
        Step::Laplace { scale, sensitivity } => Lowered::Pair(
            Pair::Laplace {
                scale: per(*scale, *sensitivity),
            },
            count,
        ),
        Step::DiscreteGaussian { sigma, sensitivity } => {
            let shift = u32::try_from(shift(*sensitivity)?).map_err(|_| unknown)?;
            if shift == 0 {
                Lowered::Nothing
            } else {
                lattice(discrete_pair::discrete_gaussian(*sigma, shift))
            }
        }
        Step::DiscreteLaplace { rate, sensitivity } => {
            let shift = shift(*sensitivity)?;
            match discrete_pair::discrete_laplace(*rate, shift) {
                _ if shift == 0 => Lowered::Nothing,
                Some(pair) => lattice(pair),
                // Too many losses to list: the largest says enough for an upper bound.
                None => {
                    let largest = Bracket::exact(*rate) * Bracket::exact(shift as f64);
                    match side {
                        Side::Upper => lattice(discrete_pair::pure(largest.upper())),
                        Side::Lower => Lowered::Nothing,
                    }
                }
            }
        }
        Step::RandomizedResponse {
            epsilon,
            categories,
        } => {
            alone?;
            lattice(discrete_pair::randomized_response(*epsilon, *categories))
        }
        Step::Exponential { epsilon } => lattice(match side {
            Side::Upper => bounded_range(loss(*epsilon)),
            Side::Lower => bounded_range_reached(loss(*epsilon)),
        }),
        Step::PermuteAndFlip { epsilon } => match side {
            Side::Upper => lattice(discrete_pair::pure(loss(*epsilon))),
            Side::Lower => flip(if group == 1 { *epsilon } else { 0.0 }, way, count),
        },
        Step::Approximate { epsilon, delta } if group == 1 || *delta == 0.0 => {
            lattice(discrete_pair::approximate(loss(*epsilon), *delta))
        }
        Step::Approximate { .. } => return Err(unknown),
        Step::PartitionSelection { epsilon, delta } => {
            alone?;
            match side {
                Side::Upper => lattice(discrete_pair::approximate(*epsilon, *delta)),
                // The key of one unit: shown with probability delta, or not there.
                Side::Lower => {
                    let (p, q) = (vec![*delta, 1.0 - *delta], vec![0.0, 1.0]);
                    tabulated(&p, &q, way, count).unwrap_or(Lowered::Nothing)
                }
            }
        }
        Step::Tabulated { p, q } => {
            alone?;
            tabulated(p, q, way, count).ok_or(Error::NoEngine { what: "tabulated" })?
        }
        // Divergences of zero are those of equal laws; a conversion would say a little more.
        Step::Concentrated { rho } if *rho == 0.0 => Lowered::Nothing,
        Step::Concentrated { rho } => match side {
            Side::Upper => {
                let rho = Bracket::exact(*rho) * times * times;
                Lowered::Divergence(Divergence::Concentrated { rho }, count)
            }
            // The Gaussian with 1/(2σ²) = ρ is one such mechanism.
            Side::Lower => {
                let mu = (Bracket::exact(2.0) * Bracket::exact(*rho)).sqrt() * times;
                Lowered::Pair(
                    Pair::Gaussian {
                        sigma: round::div_up(1.0, mu.lower()),
                    },
                    count,
                )
            }
        },
        Step::PoissonGaussian {
            rate,
            noise_multiplier,
        } => {
            alone?;
            let (rate, sigma) = (*rate, *noise_multiplier);
            Lowered::Pair(sampled_gaussian(rate, sigma, change), count)
        }
        Step::PoissonLaplace {
            rate,
            scale,
            sensitivity,
        } => {
            alone?;
            let (rate, scale) = (*rate, per(*scale, *sensitivity));
            let pair = if rate == 1.0 {
                Pair::Laplace { scale }
            } else {
                Pair::SampledLaplace {
                    rate,
                    scale,
                    change,
                }
            };
            Lowered::Pair(pair, count)
        }
        Step::FixedSizeGaussian { fraction, sigma } => {
            alone?;
            if *fraction == 1.0 {
                Lowered::Pair(Pair::Gaussian { sigma: *sigma }, count)
            } else {
                let fixed = FixedSize::new(*fraction, *sigma);
                match side {
                    Side::Upper => Lowered::FixedSize(fixed, count),
                    // Its own pair dominates and is not attained; this one is.
                    Side::Lower => {
                        let [attained, ..] = fixed.attained();
                        Lowered::Pair(attained, count)
                    }
                }
            }
        }
        Step::RandomAllocation {
            steps,
            noise_multiplier,
            epochs,
        } => {
            alone?;
            let direction = if way == Way::Forth {
                Direction::Remove
            } else {
                Direction::Add
            };
            let allocation = Allocation::new(*steps, *noise_multiplier, direction);
            Lowered::Allocation(Box::new(allocation), all_epochs(count, *epochs)?)
        }
        Step::ShuffledBatches {
            batches,
            noise_multiplier,
            epochs,
        } => {
            alone?;
            let epochs = all_epochs(count, *epochs)?;
            Lowered::ShuffledBatches(ShuffledBatches::new(
                *batches,
                epochs,
                *noise_multiplier,
                Changed::Replaced,
            ))
        }
        Step::Shuffled { users, epsilon } => {
            alone?;
            match side {
                Side::Upper => Lowered::Shuffled(Shuffled::new(*users, *epsilon), count),
                // That the clone pair is attained is not known.
                Side::Lower => Lowered::Nothing,
            }
        }
    })
}

fn all_epochs(count: u64, epochs: u64) -> Result<u64> {
    count.checked_mul(epochs).ok_or(Error::NoEngine {
        what: "more than 2^64 epochs",
    })
}

/// A sample of everybody is no sample: under replace-one the unit moves twice as far.
fn sampled_gaussian(rate: f64, sigma: f64, change: Change) -> Pair {
    match change {
        _ if rate < 1.0 => Pair::SampledGaussian {
            rate,
            sigma,
            change,
        },
        Change::Replace => Pair::Gaussian { sigma: sigma / 2.0 },
        _ => Pair::Gaussian { sigma },
    }
}

/// Permute-and-flip with two candidates whose scores are equal, or two sensitivities apart: it gives the worse one with
/// probability `½`, or `½e^-ε`.
fn flip(epsilon: f64, way: Way, count: u64) -> Lowered {
    let least = 0.5 * libm::exp(-epsilon).next_up().next_up().min(1.0);
    tabulated(&[0.5, 0.5], &[least, 1.0 - least], way, count).unwrap_or(Lowered::Nothing)
}

fn tabulated(p: &[f64], q: &[f64], way: Way, count: u64) -> Option<Lowered> {
    let atoms = match way {
        Way::Forth => LossList::tabulated(p, q)?,
        Way::Back => LossList::tabulated(q, p)?,
    };
    Some(Lowered::Discrete(Discrete::Atoms(atoms), count))
}
