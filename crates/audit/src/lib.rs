//! Instruments that doubt a mechanism.
//!
//! A guarantee that no experiment could refute is not tested. Each instrument here can say *no*, and none of them
//! can say *yes*: an acquittal means that this much data did not show a violation, never that there is none.
//!
//! - [`mod@enumerate`]: walks through every outcome of the coins. Exact, no luck involved; small samplers only.
//! - [`fit`]: do these draws follow this distribution? Sharp, needs to know the distribution.
//! - [`mod@falsify`]: do these two worlds differ by more than the claim allows? Blunt, needs to know nothing.
//! - [`interval`]: the exact binomial bounds below it.
//!
//! The crate sees closures and the traits of `whit-core`. It knows no mechanism by name, so that whoever makes the
//! noise cannot be the one who judges it.
//!
//! # Example
//!
//! Randomized response that tells the truth three times out of four is `ln 3`-DP. Enumeration proves that it is no
//! better, and convicts the claim `ε = 1` without drawing a single sample.
//!
//! ```
//! use whit_audit::enumerate;
//! use whit_core::Bits;
//!
//! let respond = |truth: bool| enumerate::<1, bool>(8, move |tape| truth ^ (tape.word() == 1 && tape.word() == 1));
//! let epsilon_lower = respond(true).max_log_ratio_lower(&respond(false));
//! assert!(epsilon_lower > 1.0 && epsilon_lower <= 3_f64.ln());
//! ```

mod alpha;
mod attack;
mod batch;
mod binomial;
mod bootstrap;
mod bound;
mod classifier;
mod curve;
mod divergence;
mod divergence_tester;
pub mod enumerate;
mod error;
pub mod falsify;
mod fdp_one_run;
pub mod fit;
mod gdp;
mod group;
pub mod interval;
mod model;
mod neighbour;
mod normal;
mod one_run;
mod outcome;
mod power;
mod program;
mod replay;
mod report;
mod report_html;
#[cfg(test)]
mod simulate;
mod two_stages;
mod world;

pub use alpha::{ALPHA_MAX, ALPHA_MIN, Alpha};
pub use attack::Target;
pub use batch::batches_repeat;
pub use bootstrap::{Resample, area_under_curve, bootstrap};
pub use bound::{EpsilonBound, REACH_FACTOR, REACH_POWER, Ruling};
pub use curve::Search;
pub use divergence_tester::{DeltaBound, RenyiBound, Witness};
pub use enumerate::{Enumeration, Tape, Violation, enumerate};
pub use error::{Error, Result};
pub use falsify::{Claim, GdpVerdict, HalfLine, Verdict, falsify, falsify_gdp, falsify_outputs};
pub use fit::{Cells, GTest, g_test};
pub use gdp::MuBound;
pub use group::{GROUP_MAX, Group};
pub use interval::{TRIALS_MAX, clopper_pearson_lower, clopper_pearson_upper};
pub use model::{Estimate, ModelBound};
pub use neighbour::{Pair, farthest_neighbours};
pub use one_run::{CanaryScores, GuessRule, Guesses, OneRun};
pub use outcome::{End, Outcome, Printing};
pub use power::{planned_power, trials_for, trials_to_reach};
pub use program::Seen;
pub use replay::{CoinStream, Coins, Replayed, replay};
pub use report::{Kind, Report, Row};
pub use two_stages::TwoStages;
pub use world::{Counts, Event, Held, Outputs, Share, Shown, Tally, World, multi_split};
