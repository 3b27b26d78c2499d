//! Why a run cannot be kept, or cannot go on.

use std::io::ErrorKind;
use std::path::PathBuf;

use thiserror::Error as ThisError;
use whit_core::{Fault, FaultKind};

use super::VERSION;

/// Why a run cannot be kept, or cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The file cannot be read.
    #[error("the checkpoint {} cannot be read: {why}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's kind of failure.
        why: ErrorKind,
    },
    /// The file cannot be written.
    #[error("the checkpoint {} cannot be written: {why}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The operating system's kind of failure.
        why: ErrorKind,
    },
    /// The folder cannot be made, or nothing can be written there.
    #[error("the folder {} cannot be written: {}", path.display(), in_words(*why))]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The operating system's kind of failure.
        why: ErrorKind,
    },
    /// Another run holds the place.
    #[error("another run is using the checkpoint {}", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The file is not what was written.
    #[error("the checkpoint is damaged")]
    Damaged,
    /// The file was written by another version of this program.
    #[error("the checkpoint has version {found}, which is not known here")]
    Version {
        /// As found.
        found: u32,
    },
    /// A run was begun here before.
    #[error("a run of this plan was begun at {} before", path.display())]
    Begun {
        /// The file.
        path: PathBuf,
    },
    /// The file was copied from where its run was begun.
    #[error("{} is a copy: its run was begun elsewhere, or its folder was restored", path.display())]
    Copied {
        /// The file.
        path: PathBuf,
    },
    /// The folder holds what another run has left, or somebody else.
    #[error("{} is not of this run, and would be replaced by it", path.display())]
    Taken {
        /// The file that is there.
        path: PathBuf,
        /// Was this run begun in the folder, too?
        is_begun: bool,
    },
    /// No run was begun here.
    #[error("no run of this plan was begun at {}", path.display())]
    NotBegun {
        /// The file.
        path: PathBuf,
    },
    /// All steps were begun, and none of them is kept: there is no model.
    #[error("all steps of the run at {} were begun, and none is kept: nothing is left of it but its initial weights", path.display())]
    Lost {
        /// The file.
        path: PathBuf,
    },
    /// The file belongs to another plan.
    #[error("the checkpoint is that of another plan")]
    OtherPlan,
}

/// Short for a result with this error.
pub(super) type Result<T> = std::result::Result<T, CheckpointError>;

/// What is wrong with a folder.
fn in_words(why: ErrorKind) -> String {
    match why {
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
            "a file stands there, or on the way".into()
        }
        ErrorKind::PermissionDenied => "you may not write there".into(),
        other => other.to_string(),
    }
}

impl Fault for CheckpointError {
    fn kind(&self) -> FaultKind {
        match self {
            Self::OtherPlan
            | Self::Busy { .. }
            | Self::Begun { .. }
            | Self::Copied { .. }
            | Self::Taken { .. }
            | Self::Lost { .. }
            | Self::NotBegun { .. } => FaultKind::Refused,
            _ => FaultKind::Invalid,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "checkpoint_unreadable",
            Self::Unwritable { .. } => "checkpoint_unwritable",
            Self::Folder { .. } => "out_not_written",
            Self::Busy { .. } => "checkpoint_busy",
            Self::Damaged => "checkpoint_damaged",
            Self::Version { .. } => "checkpoint_version",
            Self::Begun { .. } => "checkpoint_begun",
            Self::Copied { .. } => "checkpoint_copied",
            Self::Taken { .. } => "out_taken",
            Self::NotBegun { .. } => "checkpoint_not_begun",
            Self::Lost { .. } => "checkpoint_lost",
            Self::OtherPlan => "checkpoint_other_plan",
        }
    }

    fn suggestion(&self) -> String {
        match self {
            Self::Unreadable { .. } | Self::Unwritable { .. } => {
                "give a folder that exists and that you may read and write".into()
            }
            Self::Folder { .. } => {
                "give a folder that you may write to, or one that can be made".into()
            }
            Self::Busy { .. } => "wait for the other run, or give another folder".into(),
            Self::Damaged => {
                "start anew, in another folder; what this run has spent stays spent".into()
            }
            Self::Begun { .. } => "go on with that run, or give another folder".into(),
            Self::Copied { .. } => {
                "go on in the folder where it was begun (it may be moved on its disk), or start anew in another one and pay again".into()
            }
            Self::Taken { is_begun: false, .. } => {
                "give another folder for this run, as --out OTHER".into()
            }
            Self::Taken { .. } => {
                "move that file to another folder; then the run that was begun here goes on".into()
            }
            Self::Lost { .. } => {
                "start anew in another folder and pay again, with fewer steps between what is kept; what this run has spent stays spent, and a run with a tree cannot be stopped".into()
            }
            Self::NotBegun { .. } => "begin one, with a payment".into(),
            Self::Version { .. } => {
                format!(
                    "go on with the version of whit that wrote it; this one reads version {VERSION}"
                )
            }
            Self::OtherPlan => {
                "go on with the plan that it was written for, or give another folder for this one"
                    .into()
            }
        }
    }
}
