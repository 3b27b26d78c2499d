//! Why there is no answer. Every text is made of public parameters and constants; none of private data.

use thiserror::Error as ThisError;
use whit_core::{Fault, FaultKind, Neighbours};

use crate::stats::NoiseKind;

/// A request that cannot be answered, or a file that cannot be read.
#[derive(Clone, Debug, PartialEq, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// A unit is out of its domain.
    #[error(transparent)]
    Unit(#[from] whit_core::Error),
    /// A mechanism does not take these parameters.
    #[error(transparent)]
    Mechanism(#[from] whit_mechanism::Error),
    /// No noise reaches the target, or the event has no price.
    #[error(transparent)]
    Accounting(#[from] whit_accounting::Error),
    /// A statistic lacks a parameter.
    #[error("a {statistic} needs a {parameter}")]
    Missing {
        /// The statistic.
        statistic: &'static str,
        /// What it lacks.
        parameter: &'static str,
    },
    /// A parameter that the statistic would ignore.
    #[error("a {statistic} takes no {parameter}")]
    Unused {
        /// The statistic.
        statistic: &'static str,
        /// What was given in vain.
        parameter: &'static str,
    },
    /// A mechanism that has no use for a delta was asked for with one.
    #[error("the {mechanism} mechanism spends no delta, but delta is {delta}")]
    DeltaUnused {
        /// The mechanism.
        mechanism: NoiseKind,
        /// The delta as given.
        delta: f64,
    },
    /// Gaussian noise was asked for without a delta.
    #[error("Gaussian noise needs a delta above zero")]
    DeltaMissing,
    /// The statistic is not made with this mechanism.
    #[error("a {statistic} is not made with the {mechanism} mechanism")]
    UnfitMechanism {
        /// The statistic.
        statistic: &'static str,
        /// What was asked for.
        mechanism: NoiseKind,
    },
    /// Shares of quantiles that are no list of growing shares.
    #[error("the shares of quantiles do not grow, or there are none or more than {max}")]
    SharesNotGrowing {
        /// The most shares that pass.
        max: usize,
    },
    /// A list of categories that is empty, or holds an empty or a repeated one.
    #[error(
        "the categories of the column {column:?} are none, or one of them is empty or stands there twice"
    )]
    NoCategories {
        /// The column.
        column: String,
    },
    /// A table over the same column twice.
    #[error("the column {column:?} is asked for twice")]
    ColumnTwice {
        /// The column.
        column: String,
    },
    /// A unit without a bound on its rows.
    #[error("the unit {unit:?} has no bound on its number of rows")]
    RowsPerUnitMissing {
        /// The unit column.
        unit: String,
    },
    /// A bound on the rows of a unit, and no unit.
    #[error("a number of rows per unit was given, but no unit")]
    RowsPerUnitUnused,
    /// The noise that the request asks for is too little or too much to be sampled.
    #[error("no noise fits this request: {0}")]
    NoNoise(whit_core::Error),
    /// A neighbour relation that is newer than this program.
    #[error("statistics are not proven for the neighbour relation {relation}")]
    UnknownRelation {
        /// The relation.
        relation: Neighbours,
    },
    /// The file has no header line.
    #[error("the file is empty{}", wanted(column))]
    NoHeader {
        /// The column that was wanted.
        column: Option<String>,
    },
    /// The header is no text.
    #[error("the header line is not UTF-8 text{}", wanted(column))]
    HeaderNotText {
        /// The column that was wanted.
        column: Option<String>,
    },
    /// The header does not name the column. What it names instead is not told: a file without a header has a person's row
    /// in that place.
    #[error("the header line names no column {column:?}")]
    MissingColumn {
        /// The column that was wanted.
        column: String,
    },
    /// The header names the column more than once.
    #[error("the header line names the column {column:?} more than once")]
    RepeatedColumn {
        /// The column that was wanted.
        column: String,
    },
    /// Under replace-one every row must be seen, and in a file of one column an empty cell is an empty line.
    #[error(
        "in a file of one column an empty cell is an empty line, which is no row, so the number of rows is not public"
    )]
    OneColumn,
    /// The reader failed, at the header or later. Always the same text.
    #[error("the file cannot be read")]
    Unreadable,
    /// The planned release costs more than was asked for.
    #[error("the planned release costs more than was asked for, so no data was read")]
    Overcharged,
    /// The release did something else than was planned.
    #[error("the release differs from its plan, so it was withheld")]
    EventChanged,
}

/// Short for a result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

fn wanted(column: &Option<String>) -> String {
    match column {
        Some(column) => format!(", so it names no column {column:?}"),
        None => String::new(),
    }
}

impl Fault for Error {
    fn kind(&self) -> FaultKind {
        match self {
            Self::Unit(error) => error.kind(),
            Self::Mechanism(error) => error.kind(),
            Self::Accounting(error) => error.kind(),
            Self::Missing { .. }
            | Self::Unused { .. }
            | Self::DeltaUnused { .. }
            | Self::DeltaMissing
            | Self::UnfitMechanism { .. }
            | Self::SharesNotGrowing { .. }
            | Self::NoCategories { .. }
            | Self::ColumnTwice { .. }
            | Self::RowsPerUnitMissing { .. }
            | Self::RowsPerUnitUnused
            | Self::NoNoise(_)
            | Self::NoHeader { .. }
            | Self::HeaderNotText { .. }
            | Self::MissingColumn { .. }
            | Self::RepeatedColumn { .. }
            | Self::Unreadable => FaultKind::Invalid,
            Self::UnknownRelation { .. } | Self::OneColumn => FaultKind::Refused,
            Self::Overcharged | Self::EventChanged => FaultKind::Bug,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Unit(error) => error.code(),
            Self::Mechanism(error) => error.code(),
            Self::Accounting(error) => error.code(),
            Self::Missing { .. } => "missing_parameter",
            Self::Unused { .. } => "unused_parameter",
            Self::DeltaUnused { .. } => "unused_delta",
            Self::DeltaMissing => "missing_delta",
            Self::UnfitMechanism { .. } => "unfit_mechanism",
            Self::SharesNotGrowing { .. } => "shares_not_growing",
            Self::NoCategories { .. } => "no_categories",
            Self::ColumnTwice { .. } => "column_twice",
            Self::RowsPerUnitMissing { .. } => "missing_rows_per_unit",
            Self::RowsPerUnitUnused => "unused_rows_per_unit",
            Self::NoNoise(_) => "no_noise",
            Self::UnknownRelation { .. } => "unknown_relation",
            Self::NoHeader { .. } => "no_header",
            Self::HeaderNotText { .. } => "header_not_text",
            Self::MissingColumn { .. } => "missing_column",
            Self::RepeatedColumn { .. } => "repeated_column",
            Self::OneColumn => "one_column",
            Self::Unreadable => "unreadable_file",
            Self::Overcharged => "overcharged",
            Self::EventChanged => "event_changed",
        }
    }

    fn suggestion(&self) -> String {
        let text = match self {
            Self::Unit(error) => return error.suggestion(),
            Self::Mechanism(error) => return error.suggestion(),
            Self::Accounting(error) => return error.suggestion(),
            Self::Missing {
                parameter: "range", ..
            } => {
                "give the range that values can have, such as 0,120 for ages, which must not come from the data; or auto, which finds one for a part of epsilon"
            }
            Self::Missing { parameter, .. } => return format!("give a {parameter}"),
            Self::Unused { parameter, .. } => return format!("leave the {parameter} out"),
            Self::DeltaUnused { .. } => "use mechanism gaussian, or leave delta out",
            Self::DeltaMissing => {
                "give a delta far below one in the number of people, such as 1e-6"
            }
            Self::UnfitMechanism { .. } => "leave the mechanism out",
            Self::SharesNotGrowing { .. } => {
                "give shares from 0 to 1 in growing order, such as 0.25,0.5,0.75"
            }
            Self::NoCategories { .. } => {
                "list each category that counts once; the list must not come from the data"
            }
            Self::ColumnTwice { .. } => "name each column once",
            Self::RowsPerUnitMissing { .. } => {
                "give the most rows per unit that count, with --rows-per-unit or as rows_per_unit of the table in its catalog: noise can hide a unit only if its share is bounded, and further rows are left out"
            }
            Self::RowsPerUnitUnused => {
                "give the unit too: the column that names whom a row belongs to"
            }
            Self::NoNoise(_) => {
                "choose an epsilon nearer to 1, or measure the values in a unit that suits their range"
            }
            Self::UnknownRelation { .. } => "use add-remove or replace",
            Self::NoHeader { .. } => "give a CSV file whose first line names its columns",
            Self::HeaderNotText { .. } => "save the file as CSV in UTF-8",
            Self::MissingColumn { .. } | Self::RepeatedColumn { .. } => {
                "compare with the first line of the file, which must name each column that is used exactly once, with commas between"
            }
            Self::OneColumn => {
                "use add-remove, or add a column that is never empty, such as a row number"
            }
            Self::Unreadable => {
                "check that it is a file, that you may read it, and that its disk is well"
            }
            Self::Overcharged | Self::EventChanged => {
                "please report this together with the request"
            }
        };
        text.into()
    }
}
