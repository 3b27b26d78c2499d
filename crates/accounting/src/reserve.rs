//! # Pay first, then look
//! A [`Permit`] says that the charge for one event is kept durably, at every level of an account, before private data is
//! read. Who holds one may run what it was paid for, once. There is one way to get one: [`Filter::reserve`] prices the
//! event, hands an [`Entry`] to a [`Journal`], and the journal, inside its own transaction, asks the entry for its
//! [`verdict`](Entry::verdict) on the sums of every level at that moment. The verdict's [`Approval`] cannot be made by
//! hand, so a journal that did not ask has nothing to answer with.
//!
//! **Why this keeps the caps.** The sums that a verdict sees are those of the transaction that keeps the entry; if the
//! journal's transactions are serial, so are the verdicts, and by induction no level that has a cap is ever above it. By the
//! theorem in `budget.rs` the answers that left are then within the dataset's promise, whoever asked. The caps of teams and
//! analysts ration that promise; against people who talk to each other only the dataset's holds.
//!
//! **Nothing is refunded.** A permit that is dropped, an answer that fails, a process that dies: the entry stays. Whether
//! something failed may depend on data, and a refund would tell.
//!
//! A permit is used up by value:
//! ```
//! use whit_accounting::budget::{Cap, Mode};
//! use whit_accounting::reserve::{Account, Filter, Memory, Permit};
//! use whit_core::{Delta, Epsilon, Event, Mechanism, Neighbours, Ratio};
//!
//! fn execute(permit: Permit, event: &Event) {
//!     let redeemed = permit.redeem(event).expect("paid for this event");
//!     assert_eq!(redeemed.sequence(), 1);
//! }
//!
//! let cap = Cap::new(Mode::Pure, Neighbours::AddRemove, Epsilon::new(1.0)?, Delta::ZERO)?;
//! let mut journal = Memory::new("shop", cap);
//! let event = Event::new(Neighbours::AddRemove, Mechanism::Pure { epsilon: Ratio::one() });
//! let account = Account::new("shop")?;
//! let permit = Filter::new(Mode::Pure).reserve(&event, &account, &mut journal)?;
//! execute(permit, &event);
//! // The budget is used up.
//! assert!(Filter::new(Mode::Pure).reserve(&event, &account, &mut journal).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//! It is not used twice,
//! ```compile_fail,E0382
//! # use whit_accounting::reserve::Permit;
//! # use whit_core::Event;
//! fn execute_twice(permit: Permit, event: &Event) {
//!     let _first = permit.redeem(event);
//!     let _second = permit.redeem(event);
//! }
//! ```
//! not cloned,
//! ```compile_fail,E0599
//! # use whit_accounting::reserve::Permit;
//! fn copy(permit: &Permit) -> Permit {
//!     Permit::clone(permit)
//! }
//! ```
//! not made by hand,
//! ```compile_fail,E0451
//! # use whit_accounting::reserve::Permit;
//! fn forge(fingerprint: [u8; 32]) -> Permit {
//!     Permit { fingerprint, sequence: 1, dataset: String::new() }
//! }
//! ```
//! and neither is an approval, so that a journal cannot skip the question.
//! ```compile_fail,E0451
//! # use whit_accounting::reserve::{Approval, Entry, Outcome};
//! fn wave_through(entry: &Entry) -> Outcome {
//!     let (fingerprint, cost, account) = (entry.fingerprint(), entry.cost(), entry.account().clone());
//!     Outcome::Kept { sequence: 1, approval: Approval { fingerprint, cost, account } }
//! }
//! ```

use whit_core::{Delta, Event, Fault, FaultKind, Neighbours};

use crate::budget::{Amount, Cap, Cost, Mode};
use crate::{Error, Result};

pub use crate::account::{Account, Level, Standing};
pub use crate::memory::Memory;

/// A charge that is to be kept. Only [`Filter::reserve`] makes one, so the cost is that of the event.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    event: Event,
    fingerprint: [u8; 32],
    cost: Cost,
    account: Account,
}

impl Entry {
    /// What was priced.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// The event's fingerprint.
    pub fn fingerprint(&self) -> [u8; 32] {
        self.fingerprint
    }

    /// What it adds to the sums of every level.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// Who is charged.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Whether every level of the account has room. To be asked inside the transaction that keeps the entry, with the
    /// standing of [`Account::levels`] in their order.
    pub fn verdict(&self, standings: &[Standing]) -> std::result::Result<Approval, Refusal> {
        let levels = self.account.levels();
        if !standings.iter().map(|standing| &standing.level).eq(&levels) {
            return Err(Refusal::LevelsMissing);
        }
        for (depth, standing) in standings.iter().enumerate() {
            match &standing.cap {
                Some(cap) => self.fits(standing, cap)?,
                None if depth == 0 => return Err(Refusal::NoCap),
                None => {}
            }
        }
        Ok(Approval {
            fingerprint: self.fingerprint,
            cost: self.cost,
            account: self.account.clone(),
        })
    }

    fn fits(&self, standing: &Standing, cap: &Cap) -> std::result::Result<(), Refusal> {
        if cap.mode() != self.cost.mode() {
            return Err(Refusal::OtherMode {
                cap: cap.mode(),
                cost: self.cost.mode(),
            });
        }
        if cap.neighbours() != self.cost.neighbours() {
            return Err(Refusal::OtherRelation {
                cap: cap.neighbours(),
                cost: self.cost.neighbours(),
            });
        }
        let (asked, spent, limit) = (self.cost.sums(), standing.spent, cap.limit());
        let loss = match cap.mode() {
            Mode::Pure => "epsilon",
            Mode::Zcdp => "rho",
        };
        for (what, asked, spent, limit) in [
            (loss, asked.loss, spent.loss, limit.loss),
            ("delta", asked.delta, spent.delta, limit.delta),
        ] {
            let within = spent.checked_add(asked).is_some_and(|sum| sum <= limit);
            if !within {
                return Err(Refusal::Exhausted {
                    level: standing.level.clone(),
                    what,
                    asked,
                    left: limit.left_after(spent),
                });
            }
        }
        Ok(())
    }
}

/// That an entry fits. Made by [`Entry::verdict`] alone, and used up by saying that the entry was kept.
#[derive(Debug, PartialEq)]
#[must_use = "an entry that fits must also be kept"]
pub struct Approval {
    fingerprint: [u8; 32],
    cost: Cost,
    account: Account,
}

impl Approval {
    /// Whether this is about the same event, at the same cost, charged to the same account.
    fn is_of(&self, entry: &Entry) -> bool {
        self.fingerprint == entry.fingerprint
            && self.cost == entry.cost
            && self.account == entry.account
    }
}

/// Why an entry does not fit.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A level has too little left.
    #[error(
        "the {level} has {what} {:e} left, and this costs {:e}",
        .left.to_f64_down(),
        .asked.to_f64_up()
    )]
    Exhausted {
        /// The first level that has too little.
        level: Level,
        /// Which of the sums.
        what: &'static str,
        /// What the entry costs.
        asked: Amount,
        /// What is left.
        left: Amount,
    },
    /// Nobody said what the data set may spend.
    #[error("the data set has no cap")]
    NoCap,
    /// The cost was computed for another mode than the cap.
    #[error("the budget is kept in {} mode and the cost is in {} mode", .cap.word(), .cost.word())]
    OtherMode {
        /// That of the budget.
        cap: Mode,
        /// That of the cost.
        cost: Mode,
    },
    /// The event protects somebody else than the budget promises to.
    #[error("the budget is for {cap} neighbours and the event for {cost} neighbours")]
    OtherRelation {
        /// That of the budget.
        cap: Neighbours,
        /// That of the event.
        cost: Neighbours,
    },
    /// The journal did not show the levels that are to be charged.
    #[error("the journal does not know all levels of the account; please report this")]
    LevelsMissing,
    /// The journal answered with the approval of another entry.
    #[error("the journal kept another entry than the one it was given; please report this")]
    OtherEntry,
}

impl Fault for Refusal {
    fn kind(&self) -> FaultKind {
        match self {
            Self::Exhausted { .. } => FaultKind::Exhausted,
            Self::NoCap | Self::OtherMode { .. } | Self::OtherRelation { .. } => FaultKind::Refused,
            Self::LevelsMissing | Self::OtherEntry => FaultKind::Bug,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Exhausted { .. } => "budget_exhausted",
            Self::NoCap => "no_cap",
            Self::OtherMode { .. } => "other_mode",
            Self::OtherRelation { .. } => "other_relation",
            Self::LevelsMissing => "levels_missing",
            Self::OtherEntry => "other_entry",
        }
    }

    fn suggestion(&self) -> String {
        match self {
            Self::Exhausted { what, .. } => {
                format!("ask for something with a smaller {what}, or let the owner raise the cap")
            }
            Self::NoCap => "give the data set a cap".into(),
            Self::OtherMode { cap, .. } => format!("price the event in {} mode", cap.word()),
            Self::OtherRelation { cap, .. } => format!("use mechanisms for {cap} neighbours"),
            Self::LevelsMissing | Self::OtherEntry => "report this with the journal's kind".into(),
        }
    }
}

/// What a journal did with an entry.
#[derive(Debug)]
pub enum Outcome {
    /// It is durable, and counts from now on.
    Kept {
        /// Its number, by which it is found again.
        sequence: u64,
        /// What the verdict said.
        approval: Approval,
    },
    /// The verdict was no, and nothing was kept.
    Refused(Refusal),
}

/// Keeps entries durably. An implementation must, in one transaction that excludes all others: find out where each level of
/// the account stands, ask for the verdict, and keep the entry if that is an approval. It answers [`Outcome::Kept`] only
/// after the entry would survive a crash; if it does not know whether it would, it answers with an error.
pub trait Journal {
    /// Why nothing is known to be kept.
    type Error;

    /// Keeps the entry, if its verdict is an approval.
    fn keep(&mut self, entry: &Entry) -> std::result::Result<Outcome, Self::Error>;
}

/// Why there is no permit.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Unreserved<E> {
    /// The event has no price.
    #[error(transparent)]
    NoPrice(#[from] Error),
    /// A level has no room, or is kept differently.
    #[error(transparent)]
    Refused(Refusal),
    /// The journal could not keep it.
    #[error("{0}")]
    Journal(E),
}

impl<E: Fault> Fault for Unreserved<E> {
    fn kind(&self) -> FaultKind {
        match self {
            Self::NoPrice(error) => error.kind(),
            Self::Refused(refusal) => refusal.kind(),
            Self::Journal(error) => error.kind(),
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::NoPrice(error) => error.code(),
            Self::Refused(refusal) => refusal.code(),
            Self::Journal(error) => error.code(),
        }
    }

    fn suggestion(&self) -> String {
        match self {
            Self::NoPrice(error) => error.suggestion(),
            Self::Refused(refusal) => refusal.suggestion(),
            Self::Journal(error) => error.suggestion(),
        }
    }
}

/// Prices events in one mode and has them kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Filter {
    mode: Mode,
    delta: Delta,
}

impl Filter {
    /// For budgets of this mode. In pure mode events are priced at delta zero.
    pub fn new(mode: Mode) -> Self {
        Self {
            mode,
            delta: Delta::ZERO,
        }
    }

    /// In pure mode, prices each event at no more than this delta. In zCDP mode it changes nothing.
    pub fn with_delta(self, delta: Delta) -> Self {
        Self { delta, ..self }
    }

    /// What `event` would add to the sums, with nothing spent.
    pub fn cost(&self, event: &Event) -> Result<Cost> {
        Cost::of(event, self.mode, self.delta)
    }

    /// Charges `account` for `event`: a permit, once the journal has kept it.
    pub fn reserve<J: Journal>(
        &self,
        event: &Event,
        account: &Account,
        journal: &mut J,
    ) -> std::result::Result<Permit, Unreserved<J::Error>> {
        let entry = Entry {
            event: event.clone(),
            fingerprint: event.fingerprint(),
            cost: self.cost(event)?,
            account: account.clone(),
        };
        match journal.keep(&entry).map_err(Unreserved::Journal)? {
            Outcome::Kept { sequence, approval } if approval.is_of(&entry) => Ok(Permit {
                fingerprint: entry.fingerprint,
                sequence,
                dataset: entry.account.dataset().to_owned(),
            }),
            Outcome::Kept { .. } => Err(Unreserved::Refused(Refusal::OtherEntry)),
            Outcome::Refused(refusal) => Err(Unreserved::Refused(refusal)),
        }
    }
}

/// That one event was paid for. Not `Clone`; used up by [`redeem`](Self::redeem); dropping it refunds nothing.
#[derive(Debug)]
#[must_use = "the charge is kept, and dropping the permit refunds nothing"]
pub struct Permit {
    fingerprint: [u8; 32],
    sequence: u64,
    dataset: String,
}

impl Permit {
    /// Of the event that was paid for.
    pub fn fingerprint(&self) -> [u8; 32] {
        self.fingerprint
    }

    /// The number of the entry in its journal.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The data set whose budget was charged: a permit for one is none for another.
    pub fn dataset(&self) -> &str {
        &self.dataset
    }

    /// Uses the permit up for a plan with this event. With any other event it is lost, and still paid.
    pub fn redeem(self, event: &Event) -> std::result::Result<Redeemed, OtherEvent> {
        if event.fingerprint() == self.fingerprint {
            Ok(Redeemed {
                fingerprint: self.fingerprint,
                sequence: self.sequence,
                dataset: self.dataset,
            })
        } else {
            Err(OtherEvent)
        }
    }
}

/// A permit that was used, by which the journal settles its entry.
#[derive(Debug)]
#[must_use = "an entry that is not settled has no stored answer"]
pub struct Redeemed {
    fingerprint: [u8; 32],
    sequence: u64,
    dataset: String,
}

impl Redeemed {
    /// Of the event that was paid for.
    pub fn fingerprint(&self) -> [u8; 32] {
        self.fingerprint
    }

    /// The number of the entry in its journal.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The data set whose budget was charged: a permit for one is none for another.
    pub fn dataset(&self) -> &str {
        &self.dataset
    }
}

/// A permit was shown for another event than the one that was paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the permit was paid for another event; please report this")]
pub struct OtherEvent;

impl Fault for OtherEvent {
    fn kind(&self) -> FaultKind {
        FaultKind::Bug
    }

    fn code(&self) -> &'static str {
        "other_event"
    }

    fn suggestion(&self) -> String {
        "report this together with the statement".into()
    }
}

#[cfg(test)]
#[path = "reserve_test.rs"]
mod tests;
