//! Exact noise and what it is added to.
//!
//! - [`sample`]: exact samplers over the integers, and constant-time ones.
//! - Mechanisms, one per file: [`DiscreteLaplace`], [`DiscreteGaussian`], [`Geometric`], [`RandomizedResponse`], and
//!   [`Laplace`] and [`Gaussian`] for real values on a public [`Grid`].
//! - Statistics: [`Count`], [`BoundedSum`], [`BoundedMean`], [`Histogram`].
//!
//! A mechanism takes a [`Secret`](whit_core::Secret) and gives a [`Release`], which nothing else can make. Prices and budgets
//! are not known here; a mechanism describes its [`Event`](whit_core::Event), and others price it.
//!
//! ```
//! use whit_core::{AddRemove, Confidence, Epsilon, Scale};
//! use whit_mechanism::{Contribution, Count, Noise, OsEntropy};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let count = Count::<AddRemove>::new(Contribution::Row);
//! // One row moves the count by one, so noise of scale 1/ε makes the answer ε-private.
//! let epsilon = Epsilon::new(0.5)?;
//! let scale = count.sensitivity_l1().bound().checked_div(&epsilon.to_ratio()).ok_or("epsilon is zero")?;
//! let noisy = count.with_noise(&Noise::Laplace(Scale::new(scale)?));
//! let rows = vec!["a"; 1000];
//! let release = noisy.release(count.aggregate(rows.len() as u64), Confidence::new(0.95)?, &mut OsEntropy::new())?;
//! assert!(release.value().low <= release.value().answer && release.value().answer <= release.value().high);
//! # Ok(())
//! # }
//! ```

pub mod additive;
#[cfg(test)]
mod attack;
pub mod bounded_mean;
pub mod bounded_sum;
pub mod contribution;
pub mod count;
pub mod discrete_gaussian;
pub mod discrete_laplace;
#[cfg(test)]
mod doubt;
pub mod entropy;
mod error;
pub mod estimate;
pub mod fixed_point;
pub mod gaussian;
pub mod geometric;
pub mod grid;
pub mod histogram;
pub mod laplace;
pub mod randomized_response;
pub mod release;
pub mod sample;

pub use additive::{Additive, Integer, Noise};
pub use bounded_mean::{BoundedMean, MeanParts, NoisyMean};
pub use bounded_sum::{BoundedSum, NoisySum};
pub use contribution::Contribution;
pub use count::{Count, NoisyCount};
pub use discrete_gaussian::DiscreteGaussian;
pub use discrete_laplace::DiscreteLaplace;
pub use entropy::{ChaChaBits, OsEntropy};
pub use error::{Error, Result};
pub use estimate::Estimate;
pub use fixed_point::Bounds;
pub use gaussian::Gaussian;
pub use geometric::Geometric;
pub use grid::Grid;
pub use histogram::{Histogram, NoisyHistogram};
pub use laplace::Laplace;
pub use randomized_response::RandomizedResponse;
pub use release::Release;
