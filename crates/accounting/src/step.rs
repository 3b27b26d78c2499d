//! # What an accountant can be asked about
//! Mechanisms by the parameters that people know them by. Numbers are floats that mean exactly themselves. Each step says for
//! which neighbour relation it is, since a sampler or a pair for one relation is wrong for the other; and checks its
//! parameters once, here, with a message that says what would pass.

use whit_core::Neighbours;

use crate::{Error, Result};

/// One mechanism of a composition.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Step {
    /// Gaussian noise of standard deviation `sigma` on a query of the given L2 sensitivity.
    Gaussian {
        /// The standard deviation.
        sigma: f64,
        /// The L2 sensitivity.
        sensitivity: f64,
    },
    /// Laplace noise.
    Laplace {
        /// The scale `b`.
        scale: f64,
        /// The L1 sensitivity.
        sensitivity: f64,
    },
    /// Discrete Gaussian noise on one integer.
    DiscreteGaussian {
        /// The parameter `σ`.
        sigma: f64,
        /// How far neighbours are apart.
        sensitivity: u64,
    },
    /// Discrete Laplace (two-sided geometric) noise on one integer: `Pr[z] ∝ e^(-rate |z|)`.
    DiscreteLaplace {
        /// One over the scale.
        rate: f64,
        /// How far neighbours are apart.
        sensitivity: u64,
    },
    /// Randomized response among `categories` values.
    RandomizedResponse {
        /// The log-ratio of the true value's probability to another's.
        epsilon: f64,
        /// How many values there are.
        categories: u64,
    },
    /// The exponential mechanism that is `epsilon`-DP: log-probabilities change by a range of `epsilon`. With monotone scores
    /// its weights may be `e^(εq/Δ)` instead of `e^(εq/(2Δ))`; what it costs is the same.
    Exponential {
        /// The guarantee, and the range.
        epsilon: f64,
    },
    /// Permute-and-flip.
    PermuteAndFlip {
        /// The guarantee.
        epsilon: f64,
    },
    /// A mechanism of which only `(epsilon, delta)`-DP is known.
    Approximate {
        /// The loss.
        epsilon: f64,
        /// The slack.
        delta: f64,
    },
    /// Partition selection by the optimal curve, for units with one key.
    PartitionSelection {
        /// The loss for one key.
        epsilon: f64,
        /// The probability with which the key of one unit is shown.
        delta: f64,
    },
    /// The output probabilities on two neighbours. Which is which does not matter: both orders are priced, the same for all tables.
    Tabulated {
        /// On the one.
        p: Vec<f64>,
        /// On the other.
        q: Vec<f64>,
    },
    /// A mechanism of which only `rho`-zCDP is known.
    Concentrated {
        /// The bound.
        rho: f64,
    },
    /// A mechanism of which only `mu`-GDP is known.
    Gdp {
        /// The bound.
        mu: f64,
    },
    /// Gaussian noise over a Poisson sample. Under replace-one `noise_multiplier` is still per the largest norm of one unit.
    PoissonGaussian {
        /// The probability with which each unit is in the sample.
        rate: f64,
        /// Standard deviation over the largest norm of one unit.
        noise_multiplier: f64,
    },
    /// Laplace noise over a Poisson sample.
    PoissonLaplace {
        /// The probability with which each unit is in the sample.
        rate: f64,
        /// The scale `b`.
        scale: f64,
        /// The L1 sensitivity.
        sensitivity: f64,
    },
    /// Gaussian noise over a sample of fixed size without replacement; under replace-one.
    FixedSizeGaussian {
        /// Sample size over number of units.
        fraction: f64,
        /// Standard deviation over replace-one sensitivity.
        sigma: f64,
    },
    /// Each unit in one of `steps` noisy sums, chosen at random, in each of `epochs`; under add/remove.
    RandomAllocation {
        /// How many steps an epoch has.
        steps: u64,
        /// Standard deviation over the largest norm of one unit.
        noise_multiplier: f64,
        /// How often the allocation is drawn.
        epochs: u64,
    },
    /// Batches cut from a shuffled data set, each with Gaussian noise; under replace-one. Never priced as a Poisson sample.
    ShuffledBatches {
        /// How many batches an epoch has.
        batches: u64,
        /// Standard deviation over the largest norm of one unit.
        noise_multiplier: f64,
        /// How often the data set is shuffled.
        epochs: u64,
    },
    /// Reports of `users` units, each `epsilon`-DP by itself, in random order; under replace-one.
    Shuffled {
        /// How many units report.
        users: u64,
        /// What each report guarantees by itself.
        epsilon: f64,
    },
}

impl Step {
    /// The name in messages and records.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Gaussian { .. } => "gaussian",
            Self::Laplace { .. } => "laplace",
            Self::DiscreteGaussian { .. } => "discrete_gaussian",
            Self::DiscreteLaplace { .. } => "discrete_laplace",
            Self::RandomizedResponse { .. } => "randomized_response",
            Self::Exponential { .. } => "exponential",
            Self::PermuteAndFlip { .. } => "permute_and_flip",
            Self::Approximate { .. } => "approx_dp",
            Self::PartitionSelection { .. } => "partition_selection",
            Self::Tabulated { .. } => "tabulated",
            Self::Concentrated { .. } => "zcdp",
            Self::Gdp { .. } => "gdp",
            Self::PoissonGaussian { .. } => "poisson_subsampled_gaussian",
            Self::PoissonLaplace { .. } => "poisson_subsampled_laplace",
            Self::FixedSizeGaussian { .. } => "fixed_size_subsampled_gaussian",
            Self::RandomAllocation { .. } => "random_allocation_gaussian",
            Self::ShuffledBatches { .. } => "shuffled_batches_gaussian",
            Self::Shuffled { .. } => "shuffled_ldp",
        }
    }

    /// How often it is run each time: more than once only for what comes in epochs.
    pub(crate) fn epochs(&self) -> u64 {
        match self {
            Self::RandomAllocation { epochs, .. } | Self::ShuffledBatches { epochs, .. } => *epochs,
            _ => 1,
        }
    }

    /// Refuses parameters that are out of range, and relations that the mechanism is not private or not priced for.
    pub(crate) fn check(&self, neighbours: Neighbours) -> Result<()> {
        let name = self.name();
        let positive = |what, value| {
            within(
                name,
                what,
                value,
                value > 0.0 && value < f64::INFINITY,
                "a number above 0",
            )
        };
        let finite = |what, value: f64| {
            within(
                name,
                what,
                value,
                (0.0..f64::INFINITY).contains(&value),
                "a number from 0 on",
            )
        };
        let share = |what, value: f64| {
            within(
                name,
                what,
                value,
                value > 0.0 && value <= 1.0,
                "a number above 0 and at most 1",
            )
        };
        let slack = |what, value: f64| {
            within(
                name,
                what,
                value,
                (0.0..1.0).contains(&value),
                "a number from 0 to below 1",
            )
        };
        let counted = |what, value: u64, least: u64| {
            within(
                name,
                what,
                value as f64,
                value >= least && value <= COUNT_MAX,
                if least == 2 {
                    "a whole number from 2 to 2^53"
                } else {
                    "a whole number from 1 to 2^53"
                },
            )
        };
        let only = |relation: Neighbours, passes: &'static str| {
            if neighbours == relation {
                Ok(())
            } else {
                Err(Error::Mismatch {
                    step: name,
                    neighbours,
                    passes,
                })
            }
        };
        match self {
            Self::Gaussian { sigma, sensitivity } => {
                positive("sigma", *sigma).and(finite("l2_sensitivity", *sensitivity))
            }
            Self::Laplace { scale, sensitivity } => {
                positive("scale", *scale).and(finite("l1_sensitivity", *sensitivity))
            }
            Self::DiscreteGaussian { sigma, sensitivity } => positive("sigma", *sigma).and(within(
                name,
                "sensitivity",
                *sensitivity as f64,
                *sensitivity <= u64::from(u32::MAX),
                "a whole number below 2^32",
            )),
            Self::DiscreteLaplace { rate, sensitivity } => positive("rate", *rate).and(within(
                name,
                "sensitivity",
                *sensitivity as f64,
                *sensitivity <= COUNT_MAX,
                "a whole number up to 2^53",
            )),
            Self::RandomizedResponse {
                epsilon,
                categories,
            } => finite("epsilon0", *epsilon)
                .and(counted("num_values", *categories, 2))
                .and(only(
                    Neighbours::ReplaceOne,
                    "replace_one: it hides what a unit says, not that it is there",
                )),
            Self::Exponential { epsilon } | Self::PermuteAndFlip { epsilon } => {
                finite("epsilon", *epsilon)
            }
            Self::Approximate { epsilon, delta } => {
                finite("epsilon0", *epsilon).and(slack("delta0", *delta))
            }
            Self::PartitionSelection { epsilon, delta } => finite("epsilon0", *epsilon)
                .and(slack("delta0", *delta))
                .and(only(
                    Neighbours::AddRemove,
                    "add_remove: a unit that changes its key changes two; write approx_dp twice",
                )),
            Self::Tabulated { p, q } => {
                let valid = !p.is_empty() && crate::loss_list::LossList::tabulated(p, q).is_some();
                within(
                    name,
                    "p and q",
                    p.len() as f64,
                    valid,
                    "two lists of equal length, of numbers that are not negative and add up to 1",
                )
            }
            Self::Concentrated { rho } => finite("rho", *rho),
            Self::Gdp { mu } => finite("mu", *mu),
            Self::PoissonGaussian {
                rate,
                noise_multiplier,
            } => share("sampling_probability", *rate)
                .and(positive("noise_multiplier", *noise_multiplier)),
            Self::PoissonLaplace {
                rate,
                scale,
                sensitivity,
            } => share("sampling_probability", *rate)
                .and(positive("scale", *scale))
                .and(finite("l1_sensitivity", *sensitivity))
                .and(only(
                    Neighbours::AddRemove,
                    "add_remove: which pair is worst under replace_one is not proven here",
                )),
            Self::FixedSizeGaussian { fraction, sigma } => share("sampling_fraction", *fraction)
                .and(positive("sigma", *sigma))
                .and(only(
                    Neighbours::ReplaceOne,
                    "replace_one: samples of fixed size have no neighbours with one unit more",
                )),
            Self::RandomAllocation {
                steps,
                noise_multiplier,
                epochs,
            } => counted("t", *steps, 1)
                .and(within(
                    name,
                    "noise_multiplier",
                    *noise_multiplier,
                    (1e-3..=1e9).contains(noise_multiplier),
                    "a number from 0.001 to 1e9",
                ))
                .and(counted("epochs", *epochs, 1))
                .and(only(Neighbours::AddRemove, "add_remove")),
            Self::ShuffledBatches {
                batches,
                noise_multiplier,
                epochs,
            } => counted("batches", *batches, 1)
                .and(positive("noise_multiplier", *noise_multiplier))
                .and(counted("epochs", *epochs, 1))
                .and(only(
                    Neighbours::ReplaceOne,
                    "replace_one: a unit more would move others from batch to batch",
                )),
            Self::Shuffled { users, epsilon } => counted("n", *users, 1)
                .and(finite("epsilon0", *epsilon))
                .and(only(
                    Neighbours::ReplaceOne,
                    "replace_one: the number of reports is public",
                )),
        }
    }
}

/// Counts are exact as floats up to here.
pub(crate) const COUNT_MAX: u64 = 1 << 53;

fn within(
    step: &'static str,
    what: &'static str,
    found: f64,
    passes: bool,
    range: &'static str,
) -> Result<()> {
    if passes {
        Ok(())
    } else {
        Err(Error::OutOfRange {
            step,
            what,
            found,
            range,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_would_pass() {
        let negative = Step::Gaussian {
            sigma: -1.0,
            sensitivity: 1.0,
        };
        let error = negative.check(Neighbours::AddRemove).expect_err("negative");
        assert_eq!(
            error.to_string(),
            "gaussian: sigma is -1; it must be a number above 0"
        );
        let rate = Step::PoissonGaussian {
            rate: 1.5,
            noise_multiplier: 1.0,
        };
        assert!(rate.check(Neighbours::AddRemove).is_err());
        let response = Step::RandomizedResponse {
            epsilon: 1.0,
            categories: 2,
        };
        let error = response
            .check(Neighbours::AddRemove)
            .expect_err("wrong relation");
        assert!(error.to_string().contains("replace_one"), "{error}");
        for value in [f64::NAN, f64::INFINITY] {
            assert!(
                Step::Concentrated { rho: value }
                    .check(Neighbours::AddRemove)
                    .is_err()
            );
        }
    }
}
