//! Budgets that survive crashes, races and second thoughts.
//!
//! A [`Ledger`] is the [`Journal`](whit_accounting::reserve::Journal) behind permits: one file, made of records that form a hash chain, each of which
//! is durable before anybody hears of it. What it promises:
//! - **Every answer that left has a charge.** A reservation is committed and synced before there is a permit; one without a
//!   settlement counts as spent.
//! - **No cap is passed**, at any concurrency: each reservation is checked against every level inside the transaction that
//!   keeps it, and SQLite's locks put the transactions of all threads and processes into one order.
//! - **A crash can only over-charge**, by at most the statements in flight.
//! - **History is not changed unnoticed.** Each record holds the hash of the one before; the head is signed; a [`Receipt`] is the
//!   hash that commits to everything before it. Whoever can write the file *and* read or replace the key beside it, or can put back
//!   yesterday's file whole, is found out only by receipts and heads that were kept elsewhere. Who by
//!   accident restores an old copy, or removes the log (`-wal`) that a killed process has left with the last charges in it, is
//!   found out by a mark beside the ledger, which says how far it had come, and without which it is not used.
//! - **What is not known counts as spent.** After damage, or with a lost key, [`recover()`] closes the budget until its owner
//!   raises the cap, which is a record.
//! - **A request is charged once**, and its answer belongs to who was charged: the same key for another statement, another event
//!   or another account is refused.
//!
//! A ledger is a file with one name on a disk of this machine. Hard links are refused, and so is a file or log that was replaced
//! in use; SQLite's log does not work over network file systems, and a file that is mounted at two places has two logs. A copy
//! is a second budget: who restores one puts an end to the other.
//!
//! On any failure to write the handle stops: it answers nothing more, and what is true is what the file says when it is
//! opened again. The clock is not looked at: order is the order of sequence numbers, and no time brings budget back.
//!
//! ```
//! use whit_accounting::budget::Mode;
//! use whit_accounting::reserve::{Account, Filter, Level};
//! use whit_core::{Delta, Epsilon, Event, Mechanism, Neighbours, Ratio};
//! use whit_ledger::{Found, Key, Ledger, Terms};
//!
//! # let folder = std::env::temp_dir().join(format!("whit-ledger-example-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # let path = folder.join("whit.ledger");
//! let terms = Terms {
//!     dataset: "shop".into(),
//!     catalog: [0; 32],
//!     mode: Mode::Zcdp,
//!     neighbours: Neighbours::AddRemove,
//!     caps: vec![(Level::Dataset, Epsilon::new(10.0)?, Delta::new(1e-6)?)],
//! };
//! let ledger = Ledger::open(&path, &terms)?;
//! let event = Event::new(Neighbours::AddRemove, Mechanism::Pure { epsilon: Ratio::one() });
//! let account = Account::new("shop")?.analyst("ann")?;
//! let key = Key::new("request 1");
//!
//! // Pay; then look; then keep the answer; then let it leave.
//! let permit = Filter::new(Mode::Zcdp).reserve(&event, &account, &mut ledger.charge(key, [0; 32]))?;
//! let redeemed = permit.redeem(&event)?;
//! let receipt = ledger.settle(redeemed, r#"{"rows":[[42]]}"#)?;
//! assert!(ledger.holds(receipt)?);
//!
//! // The same request again costs nothing and gets the same answer.
//! assert!(matches!(ledger.find(key)?, Some(Found::Answered { .. })));
//! # drop(ledger);
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **How it is tested.** `cargo test -p whit-ledger` runs crash schedules against a model of fifty lines, every bit of a hundred
//! records flipped, 100 races of 64 clients on four handles, disks that are full at every length, and processes that are killed.
//! More of it:
//! ```text
//! WHIT_LONG=1 cargo test --release -p whit-ledger --lib crash_schedules    # 1,000,000 simulated crash schedules
//! WHIT_KILLS=10000 cargo test --release -p whit-ledger nothing_that_was_heard    # 10,000 kills
//! WHIT_LONG=1 cargo test --release -p whit-ledger    # everything, longer
//! cargo bench -p whit-ledger --bench charges    # charges per second, with 1, 16 and 256 callers
//! cargo bench -p whit-ledger --bench open    # a million records, verified and opened
//! ```
//!
//! **How to read this crate.** [`record`] is one link of the chain, `body` what stands in it and `tally` what of that is counted; `state`
//! adds records up, and `rows` brings it a million of them; `store` is the little that is asked of a database, and `sqlite` the database; `writer` turns many callers into one
//! transaction, and `owner` is what owners ask of it; `ledger` is the handle; [`mod@verify`] and [`mod@recover`] are for owners and auditors.

mod body;
mod error;
mod key;
mod ledger;
mod mark;
mod owner;
pub mod record;
pub mod recover;
mod rows;
mod sqlite;
mod state;
mod store;
mod tally;
pub mod verify;
mod writer;

pub use error::{Error, Result};
pub use ledger::{Charge, Found, Key, Ledger, Terms};
pub use record::Receipt;
pub use recover::recover;
pub use verify::verify;

#[cfg(test)]
mod fault_test;
#[cfg(test)]
mod model_test;
#[cfg(test)]
mod tamper_test;
