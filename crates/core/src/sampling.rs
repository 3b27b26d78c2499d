//! How the units of one step are drawn from the data set, as far as an accountant needs to know.
//!
//! A sampler hides who took part: that lowers the price, and by how much depends on the sampler. So the sampler stands in the
//! event, and one sampler is never priced as another.

use serde::{Deserialize, Serialize};

use crate::Probability;

/// How units come into the steps of a [`Mechanism::Sampled`](crate::Mechanism::Sampled). All coins are secret, and are drawn
/// without looking at the data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Sampling {
    /// In every step each unit takes part with probability `rate`, independently of all others and of all other steps.
    Poisson {
        /// The probability.
        rate: Probability,
    },
    /// In every step a uniformly random set of exactly `size` units out of a public number takes part, independently of all
    /// other steps.
    FixedSize {
        /// How many take part.
        size: u64,
        /// How many units there are: public, so neighbours have as many.
        of: u64,
    },
    /// Each unit takes part in one of `bins` steps, chosen uniformly and independently of all others; after as many steps it is
    /// drawn afresh.
    BallsInBins {
        /// How many steps an epoch has.
        bins: u64,
    },
    /// The units are put in a uniformly random order and cut into `batches` of public sizes, one for each step; after as many
    /// steps the order is drawn afresh.
    Shuffled {
        /// How many steps an epoch has.
        batches: u64,
    },
    /// Every unit takes part in every step.
    All,
}
