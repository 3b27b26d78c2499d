//! Why votes are no votes. Texts name the rule and never a vote, a teacher or a query; that there is such a vote is for the owner to hear.

use thiserror::Error as ThisError;
use whit_core::{Fault, FaultKind};

/// Votes that do not fit their layout, or what was declared of them.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum VotesError {
    /// Nobody votes, or on nothing.
    #[error("there is no {what}")]
    Empty {
        /// Teacher or query.
        what: &'static str,
    },
    /// A vote between fewer than two classes.
    #[error("there {} to choose from", if *classes == 1 { "is one class".into() } else { format!("are {classes} classes") })]
    Classes {
        /// How many.
        classes: usize,
    },
    /// Rows that are not all of the same length.
    #[error("the votes are ragged: they are no rows of {width} numbers each")]
    Ragged {
        /// What a row should have.
        width: usize,
    },
    /// A number that is no class.
    #[error("a vote is for no class from 0 to {last}")]
    OutOfRange {
        /// The last class.
        last: usize,
    },
    /// A count that is none.
    #[error("a count of votes is no whole number from 0 to {most}")]
    NoCount {
        /// What passes at most.
        most: u64,
    },
    /// Queries on which more or fewer teachers voted than on others, or than were declared.
    #[error("not every query has the votes of {} teachers", teachers.map_or("equally many".into(), |count| count.to_string()))]
    Unequal {
        /// As declared; `None` if nobody did.
        teachers: Option<u64>,
    },
    /// Fewer queries than the terms say.
    #[error("the votes are on {found} queries, and {declared} are to be asked")]
    TooFew {
        /// As declared.
        declared: u64,
        /// In the file; public, as is the list of queries.
        found: usize,
    },
    /// Votes between other classes than the terms have.
    #[error("the votes are between {found} classes, and {declared} were declared")]
    OtherClasses {
        /// As declared.
        declared: usize,
        /// By the shape of the votes.
        found: usize,
    },
}

impl Fault for VotesError {
    fn kind(&self) -> FaultKind {
        FaultKind::Invalid
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Empty { .. } => "votes_empty",
            Self::Classes { .. } => "votes_classes",
            Self::Ragged { .. } => "votes_ragged",
            Self::OutOfRange { .. } => "votes_out_of_range",
            Self::NoCount { .. } => "votes_no_count",
            Self::Unequal { .. } => "votes_unequal",
            Self::TooFew { .. } => "votes_too_few",
            Self::OtherClasses { .. } => "votes_other_classes",
        }
    }

    fn suggestion(&self) -> String {
        match self {
            Self::Empty { .. } => "give the votes of at least one teacher on at least one query".into(),
            Self::Classes { .. } => "give at least two classes".into(),
            Self::Ragged { .. } => "give every row as many numbers as the first".into(),
            Self::OutOfRange { last } => format!(
                "number the classes from 0 to {last}, or declare more of them; --layout histogram is for counts"
            ),
            Self::NoCount { .. } => {
                "give for each query how many teachers vote for each class; --layout votes is for class numbers".into()
            }
            Self::Unequal { teachers: None } => {
                "if teachers may abstain, declare how many there are: that number must be public".into()
            }
            Self::Unequal { .. } => "declare as many teachers as vote on any query, or more".into(),
            Self::TooFew { found, .. } => format!("ask at most {found} queries, or give votes on more"),
            Self::OtherClasses { found, .. } => format!("declare {found} classes, or leave it to the histogram"),
        }
    }
}
