//! The handle that programs hold.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::thread::JoinHandle;

use sha2::{Digest, Sha256};
use whit_accounting::budget::{Cap, Mode};
use whit_accounting::reserve::{Account, Entry, Journal, Level, Outcome, Redeemed, Standing};
use whit_core::{Delta, Epsilon, Neighbours};

use crate::body::{self, CapBody, FORMAT, Hex, ModeWord, Opening};
use crate::key::{self, HeadKey, Name, key_path, new_key_path};
use crate::mark;
use crate::owner::{Direction, check_levels};
use crate::record::{Hash, Kind, Receipt};
use crate::sqlite::{Access, Sqlite, real_path};
use crate::state::State;
use crate::store::Store;
use crate::writer::{Task, Waiting, Writer, load, serve};
use crate::{Error, Result};

/// What an owner declares, as the catalog has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// The data set's name.
    pub dataset: String,
    /// A hash of everything in the catalog that matters for privacy, caps aside.
    pub catalog: Hash,
    /// How the budget is kept.
    pub mode: Mode,
    /// Whom it protects.
    pub neighbours: Neighbours,
    /// What levels may spend. The data set must be among them when a ledger is made.
    pub caps: Vec<(Level, Epsilon, Delta)>,
}

/// An idempotency key: the same request, sent again, is charged once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key(Hash);

impl Key {
    /// From whatever text names the request. The ledger stores its hash.
    pub fn new(text: &str) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(b"whit idempotency key 1\0");
        hasher.update(text);
        Self(hasher.finalize().into())
    }
}

/// What became of a request that was charged before.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Found {
    /// It was answered, and this is the answer.
    Answered {
        /// The record of the charge.
        sequence: u64,
        /// The hash of the statement, if one was given.
        statement: Option<Hash>,
        /// The stored answer, as JSON.
        answer: String,
        /// What the answer left with.
        receipt: Receipt,
    },
    /// It was charged, and either is being answered or the answer was lost.
    Lost {
        /// The record of the charge.
        sequence: u64,
        /// The hash of the statement, if one was given.
        statement: Option<Hash>,
    },
}

type Tasks = Sender<Box<dyn Task<Sqlite>>>;

/// A durable budget. Clones share one connection, and calls at the same time share commits.
#[derive(Clone, Debug)]
pub struct Ledger(Arc<Desk>);

/// The way to the writer, which ends when the last handle is dropped.
#[derive(Debug)]
struct Desk {
    tasks: Option<Tasks>,
    writer: Option<JoinHandle<()>>,
}

impl Drop for Desk {
    fn drop(&mut self) {
        // First the way in, then whoever waits there.
        drop(self.tasks.take());
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

impl Ledger {
    /// Opens the ledger at `path`, or makes it. All records are verified. Terms that are laxer than what is recorded are
    /// refused; a lower cap, or one where there was none, is recorded.
    pub fn open(path: &Path, terms: &Terms) -> Result<Self> {
        let ledger = Self::start(writer_at(path, Some(terms))?);
        let terms = terms.clone();
        ledger.ask(move |writer| writer.adopt(&terms))?;
        Ok(ledger)
    }

    /// Opens a ledger that exists, whatever the catalog says by now: for its owner, to look and to record changes.
    pub fn attach(path: &Path) -> Result<Self> {
        Ok(Self::start(writer_at(path, None)?))
    }

    pub(crate) fn start(writer: Writer<Sqlite>) -> Self {
        let (sender, receiver) = channel();
        let thread = std::thread::spawn(move || serve(writer, &receiver));
        Self(Arc::new(Desk {
            tasks: Some(sender),
            writer: Some(thread),
        }))
    }

    /// Has something done inside a transaction, and waits until it is durable.
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Writer<Sqlite>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let stopped = || Error::failed("it has stopped");
        let (reply, answer) = sync_channel(1);
        let task: Box<dyn Task<Sqlite>> = Box::new(Waiting::new(work, reply));
        let tasks = self.0.tasks.as_ref().ok_or_else(stopped)?;
        tasks.send(task).map_err(|_| stopped())?;
        answer.recv().map_err(|_| stopped())?
    }

    /// A journal for one request: charged once under its key, however often it is sent.
    pub fn charge(&self, key: Key, statement: Hash) -> Charge<'_> {
        Charge {
            ledger: self,
            key: Some(key),
            statement: Some(statement),
        }
    }

    /// A journal for one request that is not sent again.
    pub fn charge_once(&self) -> Charge<'_> {
        Charge {
            ledger: self,
            key: None,
            statement: None,
        }
    }

    /// What became of a request that may have been charged before. Whoever has the key gets the answer, so a key that others
    /// could guess must name the account.
    pub fn find(&self, key: Key) -> Result<Option<Found>> {
        self.ask(move |writer| writer.find(key.0))
    }

    /// Stores the answer of a charge, durably. Only then may it leave, with the receipt.
    pub fn settle(&self, redeemed: Redeemed, answer: &str) -> Result<Receipt> {
        let body = body::write_settle(redeemed.sequence(), answer)?;
        self.ask(move |writer| writer.settle(&redeemed, body))
    }

    /// Stores the answer of a charge like [`settle`](Self::settle), and tells where the levels of an account stand then.
    pub fn settle_and_stand(
        &self,
        redeemed: Redeemed,
        answer: &str,
        account: &Account,
    ) -> Result<(Receipt, Vec<Standing>)> {
        let body = body::write_settle(redeemed.sequence(), answer)?;
        let levels = account.levels();
        self.ask(move |writer| {
            let receipt = writer.settle(&redeemed, body)?;
            Ok((receipt, writer.standings(levels)))
        })
    }

    /// Where the levels of an account stand.
    pub fn standings(&self, account: &Account) -> Result<Vec<Standing>> {
        let levels = account.levels();
        self.ask(move |writer| Ok(writer.standings(levels)))
    }

    /// Where every level stands that has a cap or was charged.
    pub fn all_standings(&self) -> Result<Vec<Standing>> {
        self.ask(move |writer| Ok(writer.standings(writer.state().levels())))
    }

    /// Records a higher cap: a new promise, for everything that was spent and that will be.
    pub fn raise_cap(&self, level: Level, epsilon: Epsilon, delta: Delta) -> Result<Receipt> {
        self.ask(move |writer| writer.set_cap(level, (epsilon, delta), Direction::Raise))
    }

    /// Records a lower cap, or one where there was none.
    pub fn lower_cap(&self, level: Level, epsilon: Epsilon, delta: Delta) -> Result<Receipt> {
        self.ask(move |writer| writer.set_cap(level, (epsilon, delta), Direction::Lower))
    }

    /// Records that the owner has seen a changed catalog and wants it.
    pub fn accept(&self, catalog: Hash) -> Result<Receipt> {
        self.ask(move |writer| writer.accept(catalog))
    }

    /// Records that the statement of a charge failed: nothing more is charged until the owner has looked into it. A failure is a bit
    /// about the data that no charge covers, so there must not be many.
    pub fn suspend(&self, sequence: u64) -> Result<Receipt> {
        self.ask(move |writer| writer.suspend(sequence))
    }

    /// Refused while the owner has not looked into a failure. For what was paid before and reads rows again.
    pub fn running(&self) -> Result<()> {
        self.ask(|writer| writer.state().running())
    }

    /// Records that the owner has looked into a failure.
    pub fn resume(&self) -> Result<Receipt> {
        self.ask(Writer::resume)
    }

    /// The end of the chain, which commits to everything in it. Kept elsewhere, it shows whether the file was put back.
    pub fn head(&self) -> Result<Receipt> {
        self.ask(|writer| writer.state().head().ok_or(Error::Emptied))
    }

    /// Whether the chain has the record that a receipt names.
    pub fn holds(&self, receipt: Receipt) -> Result<bool> {
        self.ask(move |writer| writer.holds(receipt))
    }
}

/// A [`Journal`] for one request.
#[derive(Clone, Debug)]
pub struct Charge<'a> {
    ledger: &'a Ledger,
    key: Option<Key>,
    statement: Option<Hash>,
}

impl Journal for Charge<'_> {
    type Error = Error;

    fn keep(&mut self, entry: &Entry) -> Result<Outcome> {
        let (key, statement) = (self.key.map(|key| key.0), self.statement);
        let body = body::write_reserve(entry, key, statement)?;
        let entry = entry.clone();
        self.ledger
            .ask(move |writer| writer.reserve(&entry, key, statement, body))
    }
}

fn writer_at(path: &Path, terms: Option<&Terms>) -> Result<Writer<Sqlite>> {
    let path = &real_path(path);
    // Looked for before the file: whoever is making a ledger makes these after it.
    let beside = key_path(path).exists() || mark::exists(path);
    if !path.exists() {
        if path.is_symlink() {
            return Err(Error::failed("its path is a symbolic link to nothing"));
        }
        if beside {
            return Err(Error::Emptied);
        }
        if terms.is_none() {
            return Err(Error::Missing);
        }
    }
    writer_over(Sqlite::open(path, Access::Write)?, path, terms)
}

/// A writer over an open file, whose records it verifies.
pub(crate) fn writer_over(
    mut store: Sqlite,
    path: &Path,
    terms: Option<&Terms>,
) -> Result<Writer<Sqlite>> {
    store.begin()?;
    let loaded = load(&mut store);
    let (state, seen) = match loaded {
        Ok(loaded) => loaded,
        Err(error) => {
            store.abort();
            return Err(error);
        }
    };
    if state.is_new() && seen.is_none() {
        return match terms {
            Some(terms) => create(store, state, path, terms),
            None => Err(Error::Missing),
        };
    }
    store.abort();
    let public = state.sound()?.public_key.0;
    let (key, name) = key::load(path, &public)?;
    // Looked for after the key: whoever named it had founded the mark.
    if store.mark()?.is_none() {
        // Without charges, under a new key, a crash came before the mark, and nothing can be missing.
        if name == Name::Proper || state.counts().0 > 0 {
            return Err(Error::MarkMissing);
        }
        store.found_mark()?;
    } else {
        // Somebody may have founded it after this store was opened.
        store.open_mark()?;
    }
    if name == Name::New {
        key::promote(path)?;
    }
    Ok(Writer::new(store, state, key, seen))
}

/// The first records, in the transaction that found none.
fn create(mut store: Sqlite, state: State, path: &Path, terms: &Terms) -> Result<Writer<Sqlite>> {
    if key_path(path).exists() || mark::exists(path) {
        store.abort();
        return Err(Error::Emptied);
    }
    let caps = first_caps(terms)?;
    let key = HeadKey::left_or_fresh(&new_key_path(path))?;
    let opening = opening(terms, key.public());
    let mut writer = Writer::new(store, state, key, None);
    writer.append(Kind::Open, body::write(&opening))?;
    for cap in caps {
        writer.append(Kind::Cap, body::write(&cap))?;
    }
    writer.commit()?;
    writer.found_mark()?;
    key::promote(path)?;
    Ok(writer)
}

impl Writer<Sqlite> {
    /// Makes the mark of what was committed, durably.
    pub(crate) fn found_mark(&mut self) -> Result<()> {
        self.store_mut().found_mark()
    }
}

/// How a ledger for these terms begins.
pub(crate) fn opening(terms: &Terms, public_key: Hash) -> Opening {
    Opening {
        format: FORMAT,
        dataset: terms.dataset.clone(),
        mode: ModeWord(terms.mode),
        neighbours: terms.neighbours,
        catalog: Hex(terms.catalog),
        public_key: Hex(public_key),
    }
}

/// The caps of these terms, that of the data set among them.
pub(crate) fn first_caps(terms: &Terms) -> Result<Vec<CapBody>> {
    Account::new(&terms.dataset)?;
    check_levels(terms)?;
    if !terms
        .caps
        .iter()
        .any(|(level, ..)| *level == Level::Dataset)
    {
        return Err(Error::NoCap);
    }
    let body = |(level, epsilon, delta): &(Level, Epsilon, Delta)| {
        let cap = Cap::new(terms.mode, terms.neighbours, *epsilon, *delta)?;
        CapBody::new(level, &cap).ok_or(Error::NoCap)
    };
    terms.caps.iter().map(body).collect()
}
