//! What events cost, and how much noise a target needs.
//!
//! - [`pure`]: the epsilon that no output exceeds.
//! - [`zcdp`]: concentrated losses, which add up more gently, and their conversion to an epsilon at a delta.
//! - [`price()`]: the cheapest epsilon that one of these proves for an [`Event`](whit_core::Event), with what inexact
//!   samplers and parts with a delta of their own add.
//! - [`budget`]: costs and caps in whole numbers, pure and concentrated, for questions that depend on past answers.
//! - [`reserve`]: a permit for one event, once a journal has kept its cost.
//! - [`interpret`]: what a guarantee means for one person, and for a group.
//! - [`best_of`]: what it costs to choose the best of several runs.
//! - [`calibrate`]: the least noise whose price stays within a target.
//!
//! **Every cost is a proven upper bound of the true one**, rounding errors included; every grant is rounded down. What
//! this crate does not know it refuses by name. It draws no noise and reads no data.
//!
//! ```
//! use whit_accounting::{calibrate, price};
//! use whit_core::{Delta, Epsilon, Event, Mechanism, Neighbours, Ratio};
//!
//! let (epsilon, delta) = (Epsilon::new(1.0)?, Delta::new(1e-6)?);
//! let scale = calibrate::gaussian_scale(&Ratio::one(), epsilon, delta)?;
//! let gaussian = Mechanism::DiscreteGaussian { scale, sensitivity_l2_square: Ratio::one(), coordinates: 1 };
//! let paid = price(&Event::new(Neighbours::AddRemove, gaussian), delta)?;
//! assert!(paid.epsilon <= epsilon && paid.delta <= delta);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod account;
pub mod advanced;
mod allocation;
mod approximate;
mod atoms;
pub mod best_of;
mod best_of_profile;
mod best_of_renyi;
mod bound;
mod bounded_range;
mod bracket;
pub mod buckets;
pub mod budget;
pub mod calibrate;
mod circle;
mod close;
mod composition;
mod contour;
mod contour_line;
mod contour_part;
mod contract;
mod convex_sum;
mod convolve;
mod curve;
mod decay;
mod discrete_pair;
mod discretize;
mod engine;
mod error;
mod event_profile;
mod event_sampled;
mod event_steps;
mod exponential_pair;
mod fft;
pub mod filter;
mod fixed_size;
mod gaussian;
mod gaussian_point;
pub mod gdp;
mod grid;
pub mod interpret;
mod lattice;
mod lattice_gaussian;
mod lattice_law;
mod lattice_pair;
mod lattice_sum;
mod lattice_tilt;
mod logarithm;
mod loss_grid;
mod loss_list;
mod lower;
mod memory;
mod mixture;
mod near;
mod normal;
mod notion;
pub mod odometer;
mod optimal;
mod pair;
pub mod pate;
mod pld;
mod pld_layout;
mod price;
mod profile;
pub mod pure;
mod rdp;
mod rdp_quadrature;
mod rdp_sampled;
pub mod reserve;
mod residue;
mod search;
mod shuffle;
mod shuffled_batches;
mod sketch;
mod smooth;
mod spectrum;
mod step;
mod tally;
pub mod target;
pub mod tcdp;
mod tilt;
mod tilt_laplace;
mod tradeoff;
pub mod zcdp;

pub use bracket::Bracket;
pub use composition::{Answer, Composition};
pub use error::{Error, Result};
pub use event_profile::{composition, delta, epsilon};
pub use notion::Notion;
pub use price::{Price, price};
pub use step::Step;
