//! Why votes are no votes. Texts name the rule and never a vote, a teacher or a query; that there is such a vote is for the owner to hear.

use thiserror::Error as ThisError;
use whit_core::{Fault, FaultKind, Neighbours};

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
    #[error("there are {found} queries to vote on, and {declared} are to be asked")]
    TooFew {
        /// As declared.
        declared: u64,
        /// In the file; public, as is the list of queries.
        found: usize,
    },
    /// Parts by the places of examples, where one example moves the places of others.
    #[error(
        "rule = \"place\" has no price for units of a table or for folders of pictures: one more or less moves the places of others, and changes many teachers"
    )]
    Places,
    /// Votes of an ensemble whose rule deals examples out for other neighbours than those that are priced.
    #[error(
        "the rule by which examples were dealt out changes one teacher between {cast} neighbours, and {priced} neighbours were priced"
    )]
    OtherRelation {
        /// By the rule.
        cast: Neighbours,
        /// In the terms.
        priced: Neighbours,
    },
    /// No parameters that were tried keep a goal.
    #[error("no noise and threshold that were tried keep this epsilon and agree as often")]
    NoCandidate,
    /// Votes on more or fewer queries than a choice by them was priced for.
    #[error("there are {found} queries to vote on, and {declared} were declared")]
    OtherQueries {
        /// As declared.
        declared: usize,
        /// By the shape of the votes.
        found: usize,
    },
    /// Teachers that broke down: why is not told, since it may be in what they learn from.
    #[error("teachers could not be trained, and why is not told")]
    Uncast,
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
        match self {
            Self::Places | Self::OtherRelation { .. } | Self::NoCandidate => FaultKind::Refused,
            Self::Uncast => FaultKind::Bug,
            _ => FaultKind::Invalid,
        }
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
            Self::Places => "places_move",
            Self::Uncast => "teachers_broke_down",
            Self::NoCandidate => "no_choice",
            Self::OtherQueries { .. } => "votes_other_queries",
            Self::OtherRelation { .. } => "votes_other_relation",
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
            Self::Unequal { .. } => "declare as many teachers as vote on any query (of a histogram, or more), and give class numbers with a row for each teacher and a column for each query".into(),
            Self::TooFew { found, .. } => format!("ask at most {found} queries, or give more public examples, without those that are held out, or votes on more"),
            Self::Places => "give rule = \"hash\" in [teachers], or leave it out".into(),
            Self::OtherRelation { .. } => "give the terms the relation of the rule (`Rule::neighbours`), or deal examples out by the other rule".into(),
            Self::Uncast => "please report this with the plan, without the data; what was paid is not lost, and the run goes on once the owner has resumed the ledger".into(),
            Self::NoCandidate => "ask fewer queries, train more teachers, or allow a larger epsilon or less agreement".into(),
            Self::OtherQueries { found, .. } => format!("declare {found} queries"),
            Self::OtherClasses { found, .. } => format!("declare {found} classes, or leave it to the histogram"),
        }
    }
}
