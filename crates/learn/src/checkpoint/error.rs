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
    /// The file was copied from where its run was begun, or the lock beside it is another one.
    #[error("{} is a copy: its run was begun in another folder or beside another lock, or these were copied back or restored", path.display())]
    Copied {
        /// The file.
        path: PathBuf,
    },
    /// The folder of a run under way was moved, or another one has its name now.
    #[error("the folder of the run at {} was moved or replaced while the run was under way", path.display())]
    Moved {
        /// Where it was.
        path: PathBuf,
    },
    /// The file is not the one that the run under way has read or written last.
    #[error("{} is not the checkpoint that this run has read or written last: another run has written it, or it was put back or removed", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The steps were granted to another process, of which this one is a fork.
    #[error(
        "this run belongs to another process, of which this one is a fork: each step would be taken twice"
    )]
    OtherProcess,
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
    /// An aggregation was begun, and what it told is not kept.
    #[error("the labels of the run at {} were paid for and may have been told, and are not kept", path.display())]
    LabelsLost {
        /// The file.
        path: PathBuf,
    },
    /// The public examples that a run's labels are of have changed since it was begun.
    #[error("the public examples are not those that the run at {} was begun with: its labels are of those", path.display())]
    OtherPublic {
        /// The file.
        path: PathBuf,
    },
    /// Votes of teachers that are not needed any more are still there.
    #[error("labels are kept, but the votes of teachers in {} cannot be removed: {why}", path.display())]
    VotesLeft {
        /// Where they are.
        path: PathBuf,
        /// The operating system's kind of failure.
        why: ErrorKind,
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
            | Self::OtherPublic { .. }
            | Self::Busy { .. }
            | Self::Begun { .. }
            | Self::Copied { .. }
            | Self::Moved { .. }
            | Self::Changed { .. }
            | Self::OtherProcess
            | Self::Taken { .. }
            | Self::Lost { .. }
            | Self::LabelsLost { .. }
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
            Self::Moved { .. } => "checkpoint_moved",
            Self::Changed { .. } => "checkpoint_changed",
            Self::OtherProcess => "other_process",
            Self::Taken { .. } => "out_taken",
            Self::NotBegun { .. } => "checkpoint_not_begun",
            Self::Lost { .. } => "checkpoint_lost",
            Self::LabelsLost { .. } => "labels_lost",
            Self::OtherPlan => "checkpoint_other_plan",
            Self::OtherPublic { .. } => "checkpoint_other_public",
            Self::VotesLeft { .. } => "votes_left",
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
                "go on in the folder where it was begun (between runs it may be moved on its disk, with all that is in it), or start anew in another one and pay again".into()
            }
            Self::Moved { .. } => {
                "leave the folder where it is until the run has ended; to go on, give the place where it is now as the run's folder (--out), since in another one it is a new run and is paid again; steps since it was last kept are lost".into()
            }
            Self::Changed { .. } => {
                "let one run at a time have its folder, on one machine, and leave its files alone; the same command goes on after what is counted there now, and steps since this run was last kept are lost".into()
            }
            Self::OtherProcess => "take steps in the process that has begun or taken up the run".into(),
            Self::Taken { is_begun: false, .. } => {
                "give another folder for this run, as --out OTHER".into()
            }
            Self::Taken { .. } => {
                "move that file to another folder; then the run that was begun here goes on".into()
            }
            Self::Lost { .. } => {
                "start anew in another folder and pay again, with fewer steps between what is kept; what this run has spent stays spent".into()
            }
            Self::LabelsLost { .. } => {
                "give another folder for a new run, which is paid again; what this one has spent stays spent, since nobody knows what was seen of its labels".into()
            }
            Self::NotBegun { .. } => "begin one, with a payment".into(),
            Self::Version { .. } => {
                format!(
                    "go on with the version of whit that wrote it; this one reads version {VERSION}"
                )
            }
            Self::OtherPublic { .. } => {
                "put the public file back as it was, or give another folder for a new run, which is paid again".into()
            }
            Self::VotesLeft { path, .. } => format!(
                "remove {} yourself, or see that it can be removed; then give the same command again: nothing is told twice or paid twice",
                path.display()
            ),
            Self::OtherPlan => {
                "go on with the plan that it was written for, or give another folder for this one"
                    .into()
            }
        }
    }
}
