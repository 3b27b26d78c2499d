//! Why the ledger did not do what it was asked, and what would pass.

use thiserror::Error as ThisError;
use whit_accounting::budget::Mode;
use whit_accounting::reserve::Level;
use whit_core::{Fault, FaultKind, Neighbours};

/// A refusal, or a stop. Nothing in it comes from private data.
#[derive(Clone, Debug, PartialEq, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// Another process held the ledger for longer than we wait. Nothing was written.
    #[error("the ledger is in use by another process")]
    Busy,
    /// A write or a read failed. Nothing more is answered by this handle.
    #[error("the ledger cannot be used: {what}")]
    Failed {
        /// What the database or the system said.
        what: String,
    },
    /// A record, or what holds the records together, is not as it was written.
    #[error("the ledger is damaged at record {sequence}: {what}")]
    Damaged {
        /// The first record that is not as it was; zero for the head.
        sequence: u64,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A signing key, or a mark, without the records: the ledger was deleted, or emptied.
    #[error("there is a key or a mark of this ledger, but its records are gone")]
    Emptied,
    /// No such ledger.
    #[error("there is no ledger at this path")]
    Missing,
    /// A file that is something else.
    #[error("the file is no ledger of a kind that is known here")]
    NotALedger,
    /// A file with a second name, under which it would have a second log.
    #[error("the ledger's file has more than one name (hard links)")]
    Linked,
    /// The signing key is gone, or cannot be read.
    #[error("the key file beside the ledger is missing or unreadable")]
    KeyMissing,
    /// The signing key is not the one that the ledger names.
    #[error("the key file beside the ledger belongs to another ledger")]
    KeyMismatch,
    /// Nothing says how far the ledger had come: an old copy in its place would not be found out.
    #[error(
        "the mark beside the ledger is missing or makes no sense, so an older copy could stand in its place"
    )]
    MarkMissing,
    /// A ledger keeps the budget of one data set.
    #[error("the ledger is for the data set {recorded:?}, not for {given:?}")]
    OtherDataset {
        /// In the ledger.
        recorded: String,
        /// As asked.
        given: String,
    },
    /// A budget is kept in one mode.
    #[error("the ledger is kept in {} mode, not in {} mode", .recorded.word(), .given.word())]
    OtherMode {
        /// In the ledger.
        recorded: Mode,
        /// As asked.
        given: Mode,
    },
    /// A budget protects against one relation.
    #[error("the ledger is for {recorded} neighbours, not for {given} neighbours")]
    OtherRelation {
        /// In the ledger.
        recorded: Neighbours,
        /// As asked.
        given: Neighbours,
    },
    /// The catalog is not the one that the ledger was opened with, or that was accepted last.
    #[error("the catalog has changed in a way that matters for privacy")]
    CatalogChanged,
    /// A cap above the recorded one.
    #[error("the cap of the {level} is above the recorded one")]
    CapRaised {
        /// Whose cap.
        level: Level,
    },
    /// A raise that raises nothing, or a lower cap that is higher.
    #[error("the new cap of the {level} is not {direction} than the recorded one")]
    CapDirection {
        /// Whose cap.
        level: Level,
        /// `higher` or `lower`.
        direction: &'static str,
    },
    /// Two caps for one level: nobody can tell which was meant.
    #[error("there are two caps for the {level}")]
    CapTwice {
        /// Whose cap.
        level: Level,
    },
    /// A ledger without a cap for its data set.
    #[error("the data set has no cap")]
    NoCap,
    /// The same idempotency key was charged before. Its answer is stored, or lost.
    #[error("this request was charged before, as record {sequence}")]
    Charged {
        /// The record of the charge.
        sequence: u64,
    },
    /// The same idempotency key was used for another statement, another event, or by somebody else.
    #[error("this idempotency key was used for another request, in record {sequence}")]
    KeyReused {
        /// The record of the other request.
        sequence: u64,
    },
    /// A settlement for something that is no reservation of this ledger.
    #[error("record {sequence} is no reservation of this event")]
    NotReserved {
        /// The record that was named.
        sequence: u64,
    },
    /// A second settlement.
    #[error("record {sequence} is settled already")]
    Settled {
        /// The reservation.
        sequence: u64,
    },
    /// An answer that is no JSON.
    #[error("an answer is stored as JSON, and this is none")]
    NotJson,
    /// More than one record holds.
    #[error("a record of {bytes} bytes is longer than {most} bytes")]
    TooLong {
        /// Of the answer or the event, as JSON.
        bytes: usize,
        /// What one record holds.
        most: usize,
    },
    /// A text that is no receipt.
    #[error("a receipt is a number, a dash and 64 hex digits, and this is none")]
    NotAReceipt,
    /// A statement failed after its charge, and the owner has not looked into it.
    #[error("the data set is suspended since the statement of record {sequence} failed")]
    Suspended {
        /// The charge.
        sequence: u64,
    },
    /// Nothing is suspended.
    #[error("the data set is not suspended")]
    NotSuspended,
    /// There is nothing wrong with the ledger.
    #[error("the ledger is sound, and its key fits")]
    NothingToRecover,
    /// A cap that is none.
    #[error(transparent)]
    Accounting(#[from] whit_accounting::Error),
}

/// Short for a result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A failure with what its cause says.
    pub(crate) fn failed(cause: impl std::fmt::Display) -> Self {
        Self::Failed {
            what: cause.to_string(),
        }
    }
}

impl Fault for Error {
    fn kind(&self) -> FaultKind {
        match self {
            Self::Accounting(error) => error.kind(),
            Self::Missing
            | Self::NotALedger
            | Self::NoCap
            | Self::CapTwice { .. }
            | Self::CapDirection { .. }
            | Self::NotAReceipt => FaultKind::Invalid,
            Self::NotReserved { .. } | Self::Settled { .. } | Self::NotJson => FaultKind::Bug,
            _ => FaultKind::Refused,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Busy => "ledger_busy",
            Self::Failed { .. } => "ledger_failed",
            Self::Damaged { .. } => "ledger_damaged",
            Self::Emptied => "ledger_emptied",
            Self::Missing => "ledger_missing",
            Self::NotALedger => "not_a_ledger",
            Self::Linked => "ledger_linked",
            Self::KeyMissing => "ledger_key_missing",
            Self::KeyMismatch => "ledger_key_mismatch",
            Self::MarkMissing => "ledger_mark_missing",
            Self::OtherDataset { .. } => "other_dataset",
            Self::OtherMode { .. } => "other_mode",
            Self::OtherRelation { .. } => "other_relation",
            Self::CatalogChanged => "catalog_changed",
            Self::CapRaised { .. } => "cap_raised",
            Self::CapDirection { .. } => "cap_direction",
            Self::CapTwice { .. } => "cap_twice",
            Self::NoCap => "no_cap",
            Self::Charged { .. } => "already_charged",
            Self::KeyReused { .. } => "idempotency_key_reused",
            Self::NotReserved { .. } => "not_reserved",
            Self::Settled { .. } => "already_settled",
            Self::NotJson => "answer_not_json",
            Self::TooLong { .. } => "record_too_long",
            Self::NotAReceipt => "not_a_receipt",
            Self::Suspended { .. } => "suspended",
            Self::NotSuspended => "not_suspended",
            Self::NothingToRecover => "nothing_to_recover",
            Self::Accounting(error) => error.code(),
        }
    }

    fn suggestion(&self) -> String {
        match self {
            Self::Busy => "ask again when the other process is done".into(),
            Self::Failed { .. } => {
                "make sure that the disk has room and the file can be written, and open the ledger again"
                    .into()
            }
            Self::Damaged { .. } => {
                "put back a sound copy, or accept the loss with `whit ledger recover --close-budget`, which closes it until the caps of its levels are raised"
                    .into()
            }
            Self::Emptied => {
                "put the ledger back; or, to begin anew on other data, remove its key and its mark".into()
            }
            Self::Missing => "give the path of a ledger that exists".into(),
            Self::NotALedger => "give a path where there is a ledger or nothing".into(),
            Self::Linked => {
                "remove the other names of the file, or copy it; every program must use one path".into()
            }
            Self::KeyMissing | Self::KeyMismatch => {
                "put the key file back, or make a new key with `whit ledger recover --close-budget`, which closes it until the caps of its levels are raised"
                    .into()
            }
            Self::MarkMissing => {
                "put the mark back, or make a new one with `whit ledger recover --close-budget`, which closes it until the caps of its levels are raised"
                    .into()
            }
            Self::OtherDataset { recorded, .. } => {
                format!("name the data set {recorded:?}, or give other data a ledger of their own")
            }
            Self::OtherMode {
                recorded: Mode::Pure,
                ..
            } => {
                "take `delta` out of [budget] of the catalog, which the ledger was begun without; for a budget with one, begin a new ledger"
                    .into()
            }
            Self::OtherMode { .. } => {
                "put `delta` back into [budget] of the catalog, which the ledger was begun with; for a budget without one, begin a new ledger"
                    .into()
            }
            Self::OtherRelation { recorded, .. } => {
                format!("use mechanisms for {recorded} neighbours")
            }
            Self::CatalogChanged => {
                "undo the change, or record it with `whit ledger accept`".into()
            }
            Self::CapRaised { .. } => {
                "undo the change, or record it with `whit ledger cap`".into()
            }
            Self::CapDirection { direction, .. } => format!("give a {direction} cap"),
            Self::CapTwice { .. } => "give each level one cap".into(),
            Self::TooLong { .. } => "ask for fewer groups at a time".into(),
            Self::NotAReceipt => "give a receipt as it came with an answer".into(),
            Self::NoCap => {
                "give the data set a cap; after a recovery, record it with `whit ledger cap`".into()
            }
            Self::Charged { .. } => {
                "take the stored answer; if there is none, it was lost, and a new key pays again"
                    .into()
            }
            Self::KeyReused { .. } => "use a new key for each request".into(),
            Self::NotReserved { .. } | Self::Settled { .. } | Self::NotJson => {
                "report this together with the statement".into()
            }
            Self::Suspended { .. } => {
                "let the owner find out why, and record it with `whit ledger resume`".into()
            }
            Self::NotSuspended => "ask".into(),
            Self::NothingToRecover => "use it".into(),
            Self::Accounting(error) => error.suggestion(),
        }
    }
}
