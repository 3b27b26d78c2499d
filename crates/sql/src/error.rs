//! What can go wrong, and what would pass instead.
//!
//! Everything up to the permit depends on the statement, the catalog and public tables alone, so its errors may speak
//! freely. After that there is one constant message, whatever happened.

use thiserror::Error as ThisError;
use whit_core::{Fault, FaultKind};

/// A catalog or statement that does not pass, or an execution that failed.
#[derive(Clone, Debug, PartialEq, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// The catalog, or a file it names, is not as it must be.
    #[error("catalog: {reason}")]
    Catalog {
        /// A stable word for programs.
        code: &'static str,
        /// What is wrong: names and declared values, never cells.
        reason: String,
        /// What would pass.
        suggestion: String,
    },
    /// The text is no statement over the catalog's tables.
    #[error("{reason}")]
    Sql {
        /// A stable word for programs.
        code: &'static str,
        /// What is wrong, from the statement and the schema alone.
        reason: String,
        /// What would pass.
        suggestion: String,
    },
    /// A rule forbids the answer.
    #[error("{reason}")]
    Refused {
        /// The rule, as a stable word.
        code: &'static str,
        /// Why.
        reason: String,
        /// The nearest thing that would pass.
        suggestion: String,
    },
    /// A unit is out of its domain.
    #[error(transparent)]
    Unit(#[from] whit_core::Error),
    /// A mechanism does not take these parameters.
    #[error(transparent)]
    Mechanism(#[from] whit_mechanism::Error),
    /// No noise reaches the target.
    #[error(transparent)]
    Accounting(#[from] whit_accounting::Error),
    /// The permit was given for another plan.
    #[error("this permit pays for another plan")]
    OtherPlan,
    /// The plan was made for other tables.
    #[error("this plan was made for other tables")]
    OtherTables,
    /// The system gives no more threads. Found before anything is charged.
    #[error("the system has no threads left to run a statement")]
    NoThreads,
    /// The execution failed after the charge. This text is all that is ever said about it.
    #[error("the statement could not be executed; its charge stays")]
    Execution,
    /// An invariant of this crate is broken, found before any data was read.
    #[error("an invariant is broken: {invariant}")]
    Bug {
        /// What should have held.
        invariant: &'static str,
    },
}

/// Short for a result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

/// A refusal by rule.
pub(crate) fn refused(
    code: &'static str,
    reason: impl Into<String>,
    suggestion: impl Into<String>,
) -> Error {
    Error::Refused {
        code,
        reason: reason.into(),
        suggestion: suggestion.into(),
    }
}

/// A fault of the catalog.
pub(crate) fn catalog(
    code: &'static str,
    reason: impl Into<String>,
    suggestion: impl Into<String>,
) -> Error {
    Error::Catalog {
        code,
        reason: reason.into(),
        suggestion: suggestion.into(),
    }
}

/// A fault of the statement's text.
pub(crate) fn sql(
    code: &'static str,
    reason: impl Into<String>,
    suggestion: impl Into<String>,
) -> Error {
    Error::Sql {
        code,
        reason: reason.into(),
        suggestion: suggestion.into(),
    }
}

impl Fault for Error {
    fn kind(&self) -> FaultKind {
        match self {
            Self::Catalog { .. } | Self::Sql { .. } => FaultKind::Invalid,
            Self::Refused { .. } | Self::OtherPlan | Self::OtherTables | Self::NoThreads => {
                FaultKind::Refused
            }
            Self::Unit(error) => error.kind(),
            Self::Mechanism(error) => error.kind(),
            Self::Accounting(error) => error.kind(),
            Self::Execution | Self::Bug { .. } => FaultKind::Bug,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Catalog { code, .. } | Self::Sql { code, .. } | Self::Refused { code, .. } => {
                code
            }
            Self::Unit(error) => error.code(),
            Self::Mechanism(error) => error.code(),
            Self::Accounting(error) => error.code(),
            Self::OtherPlan => "other_plan",
            Self::OtherTables => "other_tables",
            Self::NoThreads => "no_threads",
            Self::Execution => "execution_failed",
            Self::Bug { .. } => "bug",
        }
    }

    fn suggestion(&self) -> String {
        match self {
            Self::Catalog { suggestion, .. }
            | Self::Sql { suggestion, .. }
            | Self::Refused { suggestion, .. } => suggestion.clone(),
            Self::Unit(error) => error.suggestion(),
            Self::Mechanism(error) => error.suggestion(),
            Self::Accounting(error) => error.suggestion(),
            Self::OtherPlan => "reserve the event of the plan that is to run".into(),
            Self::OtherTables => {
                "parse, analyze, rewrite and execute a statement over the same tables".into()
            }
            Self::NoThreads => "nothing was charged: ask again, or allow more threads".into(),
            Self::Execution => "ask the owner of the data to look at it".into(),
            Self::Bug { .. } => "please report it, with the statement and the catalog".into(),
        }
    }
}
