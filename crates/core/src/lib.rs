//! The ground floor of `whit`: the words that every other crate speaks.
//!
//! - [`mod@unit`]: [`Epsilon`], [`Delta`], [`Rho`], [`Mu`], [`Order`], [`Scale`], [`Rate`]: numbers that cannot be wrong.
//! - [`Sensitivity`]: how far one privacy unit can move an answer, in a named norm, for a named neighbour relation.
//! - [`Event`]: what a mechanism did, told to an accountant; [`Sampling`]: to whom.
//! - [`Secret`]: a value computed from private data. Only a mechanism turns one into something that may leave.
//! - [`Entropy`] and [`Bits`]: where noise gets its randomness.
//! - [`round`]: arithmetic that errs in the direction its caller names.
//!
//! Nothing here reads a file, a clock or a random number.

mod entropy;
mod error;
mod event;
mod neighbour;
mod ratio;
mod repeats;
pub mod round;
mod sampling;
mod secret;
mod sensitivity;
pub mod unit;

pub use entropy::{Bits, Entropy, EntropyFailure};
pub use error::{Error, Fault, FaultKind, Result};
pub use event::{EVENT_VERSION, Event, Mechanism};
pub use neighbour::{AddRemove, Neighbours, Relation, ReplaceOne};
pub use ratio::Ratio;
pub use repeats::Repeats;
pub use sampling::Sampling;
pub use secret::Secret;
pub use sensitivity::{L0, L1, L2, Linf, Norm, Sensitivity};
pub use unit::{Confidence, Delta, Epsilon, Mu, Order, Probability, Rate, Rho, Scale};
