//! Differential privacy, by the front door.
//!
//! A data set of people holds answers worth knowing. This crate gives such answers with noise, so that they say almost the
//! same whether any one person is in the data or not, and it says what each answer costs.
//!
//! # A first answer
//!
//! ```
//! use whit::stats::{Plan, Request, Statistic};
//! use whit::{Bounds, Epsilon, OsEntropy};
//!
//! let csv = "name,age\nAda,36\nAlan,41\nGrace,85\n";
//!
//! let mut request = Request::new(Statistic::Mean, Epsilon::new(0.5)?);
//! request.column = Some("age".into());
//! request.range = Some(Bounds::new(0.0, 120.0)?.into());
//!
//! // All that can be refused is refused here, where no data has been seen.
//! let plan = Plan::new(request)?;
//! assert_eq!(plan.charge().epsilon.value(), 0.5);
//!
//! let answer = plan.execute(csv.as_bytes(), &mut OsEntropy::new())?;
//! println!("{}", serde_json::to_string(&answer)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Five words
//!
//! - **Privacy unit.** Whom the guarantee protects: one row, or all rows that share a value of a column (a person, a
//!   household). Chosen by whoever owns the data, never by the data.
//! - **Neighbours.** Two data sets that differ in one unit: it is there or not ([`Neighbours::AddRemove`]), or it says
//!   something else ([`Neighbours::ReplaceOne`]).
//! - **Range.** The public bounds that values are clamped to. It decides how far one value can move an answer, hence how
//!   much noise is needed. Taking it from the data would tell about the data; [searching](stats::Range::Auto) for it
//!   costs a part of epsilon.
//! - **Epsilon.** No outcome is more than `e^epsilon` times as likely on one data set as on its neighbour. Small is
//!   private: 0.1 is strong, 1 is usual, 10 is weak. Epsilons of answers about the same people add up.
//! - **Delta.** What Gaussian noise needs beyond epsilon: a probability, far below one in the number of people, with which
//!   more may be learned.
//!
//! # What is where
//!
//! - `session`: private SQL over tables whose owner declared whom to protect, paid from a ledger.
//! - [`stats`]: statistics of a CSV file, from request to answer.
//! - [`explain`]: what a guarantee means for one person.
//! - [`account`]: what many mechanisms on the same data cost together, and how much noise a budget needs.
//! - [`Failure`]: how every door tells that there is no answer.
//! - [`core`], [`mechanism`], [`accounting`]: the floors below, for those who build their own statistics.
//!
//! Nothing here opens a file: callers hand over readers. After the first row of private data has been read, nothing
//! fails in a way that depends on what the data says.

pub mod account;
mod error;
pub mod explain;
mod failure;
mod rows;
#[cfg(feature = "session")]
pub mod session;
pub mod stats;

pub use whit_accounting as accounting;
pub use whit_core as core;
pub use whit_mechanism as mechanism;

pub use error::{Error, Result};
pub use failure::Failure;
pub use whit_core::{Confidence, Delta, Entropy, Epsilon, Fault, FaultKind, Neighbours};
pub use whit_mechanism::{Bounds, OsEntropy};
