//! # Private aggregation of teacher ensembles
//! Teachers, each trained on its own part of private data and without any privacy, vote on public examples; a noisy aggregator tells the winners; a
//! student learns from public examples and these labels, and may be shown to everybody [PAE+17, PSM+18].
//!
//! **Whom it protects.** One private example reaches one teacher, so neighbours differ in the votes of one teacher, all of them at once and in any way. That holds if the
//! part that an example goes to is fixed by that example, or, where examples are replaced and never added, by its place, and not by others; whoever trains teachers vouches for it. (`Neighbours::AddRemove`: an example more or
//! less changes one teacher. `Neighbours::ReplaceOne` is about teachers: one is replaced. An example that is replaced by one in *another* part changes two.) The number
//! of teachers is public, and so are the public examples, the number of classes and all parameters.
//!
//! | step | file | touches private data |
//! | --- | --- | --- |
//! | votes, checked once | `votes.rs` | holds them |
//! | what may be done, and what it costs | [`Aggregation`] | no |
//! | answers, after payment | [`Aggregation::run`] | yes, through exact noise |
//! | answers to a student who chooses what to ask | [`Interactive`] | yes, through exact noise |
//! | answers with Laplace noise, as in 2017 | [`LaplaceAggregation`] | yes, through exact noise |
//! | what it cost at these votes | [`owner`] | yes: for the owner's eyes |
//! | that number with noise | [`sanitise`] | yes, priced |
//! | which parameters to choose | [`tune()`] | public or simulated votes only |
//! | the same by private votes | [`PrivateChoice`] | yes, through the exponential mechanism |
//!
//! **Three epsilons.** The *guarantee* does not look at votes, is what is charged, and holds. The *data-dependent* epsilon of the papers looks at them: it is smaller where teachers agree, it is private
//! itself, and it is no promise, since it was not fixed beforehand. The *sanitised* one is the second with noise, and may be published: an estimate, with an interval.
//!
//! An ensemble plugs in by its votes: whatever makes a [`Votes`] is an ensemble.
//!
//! ```
//! use whit_core::Secret;
//! use whit_learn::pate::{Aggregation, Terms, Test, Votes};
//! use whit_learn::{Payment, Uncharged};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Three queries, on which 100 teachers agree more or less.
//! let votes = Votes::from_histogram(&[95, 3, 2, 40, 35, 25, 1, 98, 1], 3)?;
//! let terms = Terms {
//!     test: Some(Test { threshold: 60.0, sigma: 10.0 }),
//!     sigma: 10.0,
//!     queries: 3,
//!     answers_max: 2,
//!     classes: 3,
//!     delta: 1e-5,
//!     ..Terms::default()
//! };
//! let aggregation = Aggregation::new(&terms)?;
//! assert!(aggregation.epsilon() < 1.0);
//! let payment = Payment::uncharged(&aggregation, Uncharged);
//! let outcome = aggregation.run(&Secret::new(votes), payment, &mut whit_mechanism::OsEntropy::new())?;
//! assert!(outcome.labels.len() == 3 && outcome.answered() <= 2);
//! # Ok(())
//! # }
//! ```

mod aggregation;
pub mod ballots;
pub mod ensemble;
mod error;
mod interactive;
mod kept;
pub mod kernel;
mod laplace;
pub mod learner;
pub mod owner;
pub mod partition;
pub mod private_choice;
pub mod recipe;
mod room;
pub mod sanitise;
pub mod spread;
pub mod student;
pub mod tune;
mod upright;
pub mod view;
mod votes;

#[cfg(test)]
mod doubt_test;

pub use aggregation::{Aggregation, Outcome, Terms};
pub use error::VotesError;
pub use interactive::Interactive;
pub use laplace::LaplaceAggregation;
pub use owner::{Accounting, Owner};
pub use private_choice::PrivateChoice;
pub use recipe::EnsembleRecipe;
pub use room::Room;
pub use sanitise::{Sanitise, Sanitised};
pub use tune::{Choice, Goal, simulated, tune};
pub use votes::{Declared, Layout, Votes};
pub use whit_accounting::pate::Test;
