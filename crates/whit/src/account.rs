//! # The accountant at the front door
//! What a plan of many mechanisms on the same data costs, and how much noise, sampling or repetition a budget allows. Every
//! answer is a pair of proven bounds with the engine and the theorem behind it.
//!
//! An [`Account`] is written for people, or as JSON for programs:
//!
//! ```
//! use whit::Neighbours;
//! use whit::account::{Account, Case, Query};
//!
//! let training = Account::parse("poisson(0.01, gaussian(sigma=4)) x 10000", Neighbours::AddRemove)?;
//! let answer = training.ask(Query::Epsilon { delta: 1e-5 })?;
//! assert!(answer.lower <= answer.upper && answer.upper < 0.9469);
//!
//! let noise = Account::parse("gaussian(sigma=?)", Neighbours::AddRemove)?;
//! let answer = noise.ask(Query::Parameter { epsilon: 1.0, delta: 1e-5 })?;
//! assert!(answer.quantity == "sigma" && answer.upper < 3.731);
//!
//! let json = r#"{"id":1,"mechanisms":[{"type":"laplace","scale":20,"count":512}],"query":{"delta":1e-5}}"#;
//! assert!(Case::all(json)?[0].line().is_answered());
//! # Ok::<(), whit::account::Error>(())
//! ```
//!
//! # The readable form
//!
//! | mechanism | form | beside it |
//! | --- | --- | --- |
//! | Gaussian noise | `gaussian(sigma=20) x 512` | `sensitivity`, 1 if left out |
//! | Laplace noise | `laplace(scale=20)` | `sensitivity` |
//! | on the integers | `discrete_gaussian(sigma=10)`, `discrete_laplace(scale=10)`, `geometric(epsilon=0.1)` | `sensitivity`, a whole number; `rate` for `1/scale` |
//! | randomized response | `rr(epsilon=1, values=10)` | 2 values if left out |
//! | a choice | `exponential(epsilon=0.1)`, `permute_and_flip(epsilon=0.1)` | |
//! | keys | `partition_selection(epsilon=1, delta=1e-6)` | |
//! | a black box | `dp(epsilon=0.1, delta=1e-8)`, `zcdp(rho=0.5)`, `gdp(mu=1)` | |
//! | any two distributions | `tabulated(p=[0.5, 0.5], q=[0.25, 0.75])` | |
//! | a Poisson sample | `poisson(0.01, gaussian(sigma=4))`, `poisson(256/60000, laplace(scale=1))` | add/remove; Gaussian also replace-one |
//! | a sample of fixed size | `fixed_size(0.01, gaussian(sigma=1))` | replace-one |
//! | one of several steps | `allocation(100, gaussian(sigma=1)) x 2` | add/remove; so many epochs |
//! | shuffled batches | `batches(100, gaussian(sigma=1)) x 2` | replace-one; so many epochs |
//! | shuffled reports | `shuffle(1000, epsilon=1)` | replace-one |
//!
//! `x`, `*` and `×` mean times, `+` joins mechanisms, `1/3` is a quotient, and `?` is the one number to be found. Within a
//! Poisson sample and in batches, sigma is per the largest norm of one unit, under either relation; elsewhere the sensitivity is
//! that of the relation.

mod case;
mod error;
mod form;
mod kind;
mod question;
mod strict;
mod term;
mod training;

pub use case::{Case, Line};
pub use error::{Error, Result};
pub use kind::{JsonType, json_types};
pub use question::{Account, Answer, Query, Safe};
pub use training::{Length, Sampling, Training, first_moments_accountant};
