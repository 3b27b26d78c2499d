//! Four kinds of failure, the same in every crate and at every door.

use thiserror::Error as ThisError;

/// Which of the four kinds a failure is. Doors turn it into an exit code or a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// The input is malformed: fix it and ask again.
    Invalid,
    /// The input is well-formed, but a rule forbids the answer.
    Refused,
    /// The budget does not cover it.
    Exhausted,
    /// An invariant of the program is broken: please report it.
    Bug,
}

impl FaultKind {
    /// The word that machines read: `invalid`, `refused`, `exhausted` or `bug`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Refused => "refused",
            Self::Exhausted => "exhausted",
            Self::Bug => "bug",
        }
    }
}

/// What every error of every crate can say about itself.
///
/// `Display` gives the reason. Nothing in any of these texts may come from private data.
pub trait Fault: std::error::Error {
    /// Which of the four kinds.
    fn kind(&self) -> FaultKind;
    /// A stable word for programs, such as `epsilon_out_of_range`.
    fn code(&self) -> &'static str;
    /// What would pass.
    fn suggestion(&self) -> String;
}

/// A value that is no unit, or two things that do not belong together.
#[derive(Clone, Debug, PartialEq, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// A parameter lies outside its domain.
    #[error("{what} is {given}, which is outside its domain")]
    OutOfDomain {
        /// The parameter's name.
        what: &'static str,
        /// What was given, as text: a public parameter, never data.
        given: String,
        /// The values that pass, in words.
        domain: &'static str,
    },
    /// A text is no number.
    #[error("{what} is not a number")]
    NotANumber {
        /// The parameter's name.
        what: &'static str,
    },
    /// Two events of different neighbour relations were composed.
    #[error("an event under {left} cannot be composed with one under {right}")]
    MixedRelations {
        /// The first relation.
        left: crate::Neighbours,
        /// The second relation.
        right: crate::Neighbours,
    },
    /// A stored event was written by a later version of this program.
    #[error("event version {found} is not known here; versions up to {known} are")]
    UnknownVersion {
        /// The version in the record.
        found: u16,
        /// The highest version this program reads.
        known: u16,
    },
}

/// Short for a result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

impl Fault for Error {
    fn kind(&self) -> FaultKind {
        match self {
            Self::OutOfDomain { .. } | Self::NotANumber { .. } => FaultKind::Invalid,
            Self::MixedRelations { .. } | Self::UnknownVersion { .. } => FaultKind::Refused,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::OutOfDomain { .. } => "out_of_domain",
            Self::NotANumber { .. } => "not_a_number",
            Self::MixedRelations { .. } => "mixed_relations",
            Self::UnknownVersion { .. } => "unknown_event_version",
        }
    }

    fn suggestion(&self) -> String {
        match self {
            Self::OutOfDomain { what, domain, .. } => format!("give {what} as {domain}"),
            Self::NotANumber { what } => {
                format!("write {what} as a decimal number such as 1, 0.5 or 2e-3")
            }
            Self::MixedRelations { .. } => {
                "use one neighbour relation for everything that shares a budget".into()
            }
            Self::UnknownVersion { .. } => {
                "read this record with the version of whit that wrote it, or a later one".into()
            }
        }
    }
}
