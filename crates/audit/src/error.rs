//! What can be wrong with the input of an instrument.

use thiserror::Error as ThisError;
use whit_core::{Fault, FaultKind};

/// The instrument was not set up in a way that its verdict would mean something.
#[derive(Clone, Debug, PartialEq, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// A parameter lies outside its domain.
    #[error("{what} is {given}, which is outside its domain")]
    OutOfDomain {
        /// The parameter's name.
        what: &'static str,
        /// What was given.
        given: f64,
        /// The values that pass, in words.
        domain: &'static str,
    },
    /// More successes than trials.
    #[error("{successes} successes in {trials} trials")]
    TooManySuccesses {
        /// How often the event was seen.
        successes: u64,
        /// How often it was looked for.
        trials: u64,
    },
    /// More trials than the error analysis covers.
    #[error("{trials} trials, and at most {trials_max} are covered")]
    TooManyTrials {
        /// What was asked for.
        trials: u64,
        /// What is covered.
        trials_max: u64,
    },
    /// Bounds at different deltas, of which none is the largest.
    #[error("bounds at delta {one} and at delta {other} are not comparable")]
    DeltasDiffer {
        /// That of the first bound.
        one: f64,
        /// Another one.
        other: f64,
    },
    /// Counts and probabilities speak of different cells.
    #[error("{observed} counts for {expected} probabilities")]
    CellsDiffer {
        /// How many counts were given.
        observed: usize,
        /// How many probabilities were given.
        expected: usize,
    },
    /// The number of guesses was not fixed before the output was seen, and a theorem that needs that was asked for.
    #[error("the number of guesses was not fixed before the output was seen")]
    GuessesNotFixed,
    /// Another number of guesses than was fixed.
    #[error("{made} guesses, and {fixed} were fixed beforehand")]
    OtherNumberOfGuesses {
        /// How many there are.
        made: usize,
        /// How many there should be.
        fixed: usize,
    },
    /// Several events were to be tried, and none was named.
    #[error("no event was named")]
    NoEvents,
}

/// Short for a result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

impl Fault for Error {
    fn kind(&self) -> FaultKind {
        match self {
            Self::GuessesNotFixed => FaultKind::Refused,
            _ => FaultKind::Invalid,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::OutOfDomain { .. } => "out_of_domain",
            Self::TooManySuccesses { .. } => "too_many_successes",
            Self::TooManyTrials { .. } => "too_many_trials",
            Self::DeltasDiffer { .. } => "deltas_differ",
            Self::CellsDiffer { .. } => "cells_differ",
            Self::GuessesNotFixed => "guesses_not_fixed",
            Self::OtherNumberOfGuesses { .. } => "other_number_of_guesses",
            Self::NoEvents => "no_events",
        }
    }

    fn suggestion(&self) -> String {
        match self {
            Self::OutOfDomain { what, domain, .. } => format!("give {what} as {domain}"),
            Self::TooManySuccesses { .. } => "count each trial at most once as a success".into(),
            Self::TooManyTrials { trials_max, .. } => format!("run at most {trials_max} trials"),
            Self::DeltasDiffer { .. } => "make all bounds at the delta of the claim".into(),
            Self::CellsDiffer { .. } => "give one count for each probability".into(),
            Self::GuessesNotFixed => {
                "fix the number of guesses before the output is seen, or ask for a bound without a delta".into()
            }
            Self::OtherNumberOfGuesses { fixed, .. } => {
                format!("make {fixed} guesses, or fix another number before the output is seen")
            }
            Self::NoEvents => "name at least one event before looking at the outputs".into(),
        }
    }
}
