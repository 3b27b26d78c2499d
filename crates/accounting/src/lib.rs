//! What events cost, and how much noise a target needs.
//!
//! - [`pure`]: the epsilon that no output exceeds.
//! - [`zcdp`]: concentrated losses, which add up more gently, and their conversion to an epsilon at a delta.
//! - [`price()`]: the cheapest epsilon that one of these proves for an [`Event`](whit_core::Event), with what inexact
//!   samplers and parts with a delta of their own add.
//! - [`interpret`]: what a guarantee means for one person, and for a group.
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

mod approximate;
mod bound;
mod bounded_range;
mod bracket;
pub mod calibrate;
mod close;
mod curve;
mod error;
pub mod interpret;
mod logarithm;
mod pair;
mod price;
pub mod pure;
mod search;
pub mod zcdp;

pub use bracket::Bracket;
pub use error::{Error, Result};
pub use price::{Price, price};
