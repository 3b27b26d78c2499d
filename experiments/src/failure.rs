//! Why an experiment did not run.

use std::path::PathBuf;

use thiserror::Error;
use whit_core::{Fault, FaultKind};

/// What stops an experiment.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// Nobody said where the data are.
    #[error("WHIT_DATA is not set, so that the data are not found")]
    NoData,
    /// The folder does not hold them.
    #[error("there is no {file} in the folder {folder:?} that WHIT_DATA leads to")]
    Missing { folder: PathBuf, file: &'static str },
    /// A plan of this program names no public data.
    #[error("a plan of this program has no [test]")]
    NoTest,
    /// A plan of this program is malformed.
    #[error("a plan of this program cannot be read: {0}")]
    Plan(#[from] toml::de::Error),
    /// The trainer refused.
    #[error(transparent)]
    Learn(#[from] whit_learn::Error),
    /// The trainer could not read the data.
    #[error(transparent)]
    Data(#[from] whit_learn::data::DataError),
    /// What was kept of models cannot be read.
    #[error("{path:?} is not what a run before has kept")]
    Kept { path: PathBuf },
    /// A file of the data cannot be read.
    #[error("{path:?} cannot be read: {why}")]
    Unread { path: PathBuf, why: String },
    /// A file could not be written.
    #[error("{path:?} cannot be written: {why}")]
    Unwritable { path: PathBuf, why: String },
}

impl Fault for Failure {
    fn kind(&self) -> FaultKind {
        match self {
            Self::Learn(error) => error.kind(),
            Self::Data(error) => error.kind(),
            Self::Plan(_) | Self::NoTest => FaultKind::Bug,
            Self::NoData
            | Self::Missing { .. }
            | Self::Kept { .. }
            | Self::Unread { .. }
            | Self::Unwritable { .. } => FaultKind::Invalid,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::NoData => "data_not_set",
            Self::Missing { .. } => "data_missing",
            Self::Plan(_) | Self::NoTest => "plan_malformed",
            Self::Learn(error) => error.code(),
            Self::Data(error) => error.code(),
            Self::Kept { .. } => "kept_malformed",
            Self::Unread { .. } => "data_unreadable",
            Self::Unwritable { .. } => "out_not_written",
        }
    }

    fn suggestion(&self) -> String {
        match self {
            Self::NoData | Self::Missing { .. } | Self::Unread { .. } => {
                "set WHIT_DATA to a folder with the subfolders mnist and fashion-mnist, each with its four files as published: train-images-idx3-ubyte.gz, \
                 train-labels-idx1-ubyte.gz, t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz; and cifar-10 with data_batch_1.png and the others \
                 that experiments/fetch-cifar-10 puts there; and adult with adult.data.gz and adult.test.gz"
                    .into()
            }
            Self::Kept { .. } => {
                "give --out another folder, or remove the file: its models are trained again".into()
            }
            Self::Plan(_) | Self::NoTest => "please report this".into(),
            Self::Learn(error) => error.suggestion(),
            Self::Data(error) => error.suggestion(),
            Self::Unwritable { .. } => "give --out a folder that you may write to".into(),
        }
    }
}
