//! Exact noise and what it is added to.
//!
//! - [`sample`]: exact samplers over the integers, and constant-time ones.
//! - Mechanisms, one per file: [`DiscreteLaplace`], [`DiscreteGaussian`], [`RoundedGaussian`], [`Geometric`], [`RandomizedResponse`], and
//!   [`Laplace`] and [`Gaussian`] for real values on a public [`Grid`].
//! - Selection: [`Exponential`], [`PiecewiseExponential`], [`PermuteAndFlip`], [`ReportNoisyMax`], [`GaussianNoisyMax`], [`TopK`], and
//!   [`SparseVector`] and [`ConfidentNoisyMax`] for streams.
//! - Statistics: [`Count`], [`CountDistinct`], [`BoundedSum`], [`BoundedMean`], [`BoundedVariance`], [`Covariance`],
//!   [`Histogram`], [`Marginals`], [`Quantile`], [`GridQuantile`], [`Quantiles`], [`JointQuantiles`], [`ApproximateBounds`].
//! - Keys: [`PartitionSelection`], [`PartitionThreshold`]. Streams: [`Stream`] and its counters.
//! - Where one person can move an answer far, but seldom does: [`SmoothNoise`] and [`SmoothGaussian`] with [`SmoothMedian`] and [`TriangleCount`];
//!   [`ProposeTestRelease`] with [`StableMode`] and [`InterquartileRange`]; [`SubsampleAggregate`].
//! - Synthetic data over a [`Domain`] of public categories: [`Mwem`].
//! - [`crew`]: threads that are kept, for long vectors.
//!
//! A mechanism takes a [`Secret`](whit_core::Secret) and gives a [`Release`]. Prices and budgets
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
//!
//! # How far can one person move an answer?
//!
//! ```
//! use whit_core::{AddRemove, ReplaceOne};
//! use whit_mechanism::{BoundedMean, Bounds, Contribution, Count, Histogram, Noise};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let row = Contribution::Row;
//! // How many people in a room have brown eyes? One person more or less changes that by one.
//! let brown = || Count::<AddRemove>::new(row).sensitivity_l1();
//! assert_eq!(brown().bound().to_f64_up(), 1.0);
//! // How many have brown, blue, green, red eyes? A person is in one bin: still one; replacing somebody changes two.
//! let eyes = Bounds::new(0.0, 4.0)?;
//! assert_eq!(Histogram::<AddRemove>::new(eyes, 4, row)?.sensitivity_l1().bound().to_f64_up(), 1.0);
//! assert_eq!(Histogram::<ReplaceOne>::new(eyes, 4, row)?.sensitivity_l1().bound().to_f64_up(), 2.0);
//! // How many have brown eyes, and how many are taller than six feet? How many families live in a zip code, and how many in
//! // its city? One person or family can be in both: two.
//! assert_eq!((brown() + brown()).bound().to_f64_up(), 2.0);
//! // The average age of N people, 0 to 120: replacing one moves the sum by 120, so the average by 120/N.
//! let age = BoundedMean::<ReplaceOne>::new(Bounds::new(0.0, 120.0)?, row);
//! assert_eq!(age.sensitivity_l1().bound().to_f64_up(), 120.0);
//! // At ε = 1, noise on the count of brown eyes is 7 or more less than once in a thousand times.
//! let noisy = Count::<AddRemove>::new(row).with_noise(&Noise::Laplace(whit_core::Scale::new(whit_core::Ratio::one())?));
//! # use whit_core::{Confidence, Entropy};
//! # let release = noisy.release(Count::<AddRemove>::new(row).aggregate(20), Confidence::new(0.999)?, &mut whit_mechanism::OsEntropy::new())?;
//! # let estimate = release.value();
//! assert!(estimate.high - estimate.answer <= 7.0);
//! # Ok(())
//! # }
//! ```

pub mod above_threshold;
pub mod additive;
pub mod approximate_bounds;
#[cfg(test)]
mod attack;
pub mod best_of;
pub mod bounded_mean;
pub mod bounded_sum;
pub mod bounded_variance;
pub mod confident_noisy_max;
pub mod contingency_table;
pub mod continual_count;
pub mod contribution;
pub mod count;
pub mod count_distinct;
pub mod covariance;
pub mod crew;
pub mod discrete_gaussian;
pub mod discrete_laplace;
#[cfg(test)]
mod doubt;
pub mod empty_bins;
pub mod entropy;
mod error;
pub mod estimate;
pub mod exponential;
pub mod fixed_point;
pub mod gaussian;
pub mod gaussian_noisy_max;
pub mod geometric;
pub mod grid;
pub mod grid_quantile;
pub mod histogram;
pub mod interquartile_range;
pub mod joint_quantiles;
pub mod laplace;
pub mod linear_model;
pub mod log_bins;
pub mod marginals;
pub mod minima_perturbation;
pub mod moments;
pub mod multiplicative_weights;
pub mod mwem;
#[cfg(test)]
mod mwem_audit;
#[cfg(test)]
mod partition_audit;
pub mod partition_selection;
pub mod partition_threshold;
pub mod permute_and_flip;
pub mod piecewise_exponential;
pub mod propose_test_release;
pub mod quantile;
pub mod quantile_tree;
pub mod quantiles;
pub mod randomized_response;
pub mod release;
pub mod report_noisy_max;
pub mod rounded_gaussian;
pub mod sample;
pub mod score;
pub mod share_interval;
#[cfg(test)]
mod smooth_certificate;
pub mod smooth_gaussian;
pub mod smooth_median;
pub mod smooth_noise;
pub mod smooth_sensitivity;
pub mod sparse_vector;
#[cfg(test)]
mod sparse_vector_variants;
pub mod square_root_count;
pub mod stable_mode;
pub mod standard_deviation;
pub mod subsample_aggregate;
pub mod synthetic;
pub mod top_k;
pub mod triangle_count;
pub mod workload;

pub use above_threshold::{AboveThreshold, Answer};

pub use additive::{Additive, Integer, Noise};
pub use approximate_bounds::{ApproximateBounds, FoundRange, NoisyApproximateBounds};
pub use best_of::{Best, BestOf};
pub use bounded_mean::{BoundedMean, MeanParts, NoisyMean};
pub use bounded_sum::{BoundedSum, NoisySum};
pub use bounded_variance::{BoundedVariance, NoisyVariance, VarianceNoise, VarianceParts};
pub use confident_noisy_max::{Caps, ConfidentNoisyMax, ConfidentStream};
pub use contingency_table::{Column, Table, Unknown};
pub use continual_count::{Stream, TreeCounter};
pub use contribution::Contribution;
pub use count::{Count, NoisyCount};
pub use count_distinct::CountDistinct;
pub use covariance::{Covariance, MomentParts, NoisyMoments};
pub use discrete_gaussian::DiscreteGaussian;
pub use discrete_laplace::DiscreteLaplace;
pub use empty_bins::{Success, Threshold};
pub use entropy::{ChaChaBits, OsEntropy};
pub use error::{Error, Result};
pub use estimate::Estimate;
pub use exponential::Exponential;
pub use fixed_point::Bounds;
pub use gaussian::Gaussian;
pub use gaussian_noisy_max::GaussianNoisyMax;
pub use geometric::Geometric;
pub use grid::Grid;
pub use grid_quantile::GridQuantile;
pub use histogram::{Histogram, NoisyHistogram};
pub use interquartile_range::{InterquartileRange, Spread, StableSpread};
pub use joint_quantiles::JointQuantiles;
pub use laplace::Laplace;
pub use linear_model::LinearModel;
pub use log_bins::LogBins;
pub use marginals::{Marginals, NoisyMarginals};
pub use minima_perturbation::{MinimaPerturbation, ObjectiveNoise};
pub use moments::Moments;
pub use multiplicative_weights::MultiplicativeWeights;
pub use mwem::{Iterate, Mwem, Rounds};
pub use partition_selection::{PartitionSelection, Partitions};
pub use partition_threshold::PartitionThreshold;
pub use permute_and_flip::PermuteAndFlip;
pub use piecewise_exponential::{Piece, PiecewiseExponential};
pub use propose_test_release::{ProposeTestRelease, ProposedSensitivity, Stable};
pub use quantile::Quantile;
pub use quantiles::Quantiles;
pub use randomized_response::RandomizedResponse;
pub use release::Release;
pub use report_noisy_max::ReportNoisyMax;
pub use rounded_gaussian::RoundedGaussian;
pub use score::Scores;
pub use smooth_gaussian::{SmoothGaussian, Smoothed};
pub use smooth_median::{OrderedRows, SmoothMedian};
pub use smooth_noise::SmoothNoise;
pub use smooth_sensitivity::{LocalSensitivity, SmoothSensitivity, Smoothness};
pub use sparse_vector::SparseVector;
pub use square_root_count::SquareRootCounter;
pub use stable_mode::StableMode;
pub use standard_deviation::standard_deviation;
pub use subsample_aggregate::{BlockValues, Blocks, NoisyBlockMean, SubsampleAggregate};
pub use synthetic::{Measurement, Synthetic};
pub use top_k::TopK;
pub use triangle_count::{Graph, TriangleCount};
pub use workload::{Domain, Query, Workload};
