//! Exact samplers over the integers.
//!
//! Every sampler here is exact: fed with independent uniform bits, its output has *exactly* the distribution its
//! documentation states, for any rational parameter. No float is computed on the way (the lint below keeps it so). The one
//! exception is [`constant_time`], which cuts its tables at 128 bits and says by how much that moves the distribution.
//!
//! All of them stand on one idea, in [`threshold`]: to decide an event of probability `p`, compare a uniform real with `p`,
//! word by word, and compute only as many digits of `p` as the comparison needs.

#![cfg_attr(not(test), deny(clippy::float_arithmetic))]

pub mod constant_time;
pub mod discrete_gaussian;
pub mod discrete_laplace;
mod enclosure;
mod exp_filter;
#[cfg(test)]
mod fit;
mod gaussian_cells;
mod gaussian_point;
pub mod geometric;
mod joint_kernel;
#[cfg(test)]
mod joint_law;
pub(crate) mod joint_path;
mod joint_sums;
pub(crate) mod log_normal;
#[cfg(test)]
mod oracle;
mod power;
mod rank_cells;
pub(crate) mod ranked;
pub(crate) mod real;
pub mod repeats;
pub mod rounded_gaussian;
mod scaled;
pub(crate) mod selection_curve;
pub(crate) mod tail;
pub mod threshold;
pub mod uniform;
mod weight_filter;
pub mod weighted;

pub use constant_time::{ConstantTimeGaussian, ConstantTimeLaplace};
pub use discrete_gaussian::DiscreteGaussian;
pub use discrete_laplace::DiscreteLaplace;
pub use geometric::Geometric;
pub use repeats::Runs;
pub use rounded_gaussian::RoundedGaussian;
pub use threshold::Bernoulli;
pub use uniform::uniform_below;
pub use weight_filter::ExpCoin;
pub use weighted::{Weight, Weighted};
