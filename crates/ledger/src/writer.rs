//! Many callers, one transaction.
//!
//! A [`Writer`] does what is asked inside one transaction of its store: first it reads what other processes have appended since,
//! then it lets each [`Task`] check and append, signs the new head and commits. Only then does anybody hear an answer. A
//! task that is refused has appended nothing and does not disturb the others; a failure of the store fails all of
//! them and stops the writer for good.

use std::sync::mpsc::{Receiver, SyncSender};

use whit_accounting::budget::Cap;
use whit_accounting::reserve::{Entry, Level, Outcome, Standing};
use whit_core::{Delta, Epsilon};

use crate::body::{self, Accept, CapBody, Hex, Reserved};
use crate::key::{HeadKey, is_signed};
use crate::ledger::{Found, Terms};
use crate::record::{Hash, Kind, Receipt, Record};
use crate::state::State;
use crate::store::{SignedHead, Store};
use crate::{Error, Result};

/// Tasks per transaction at most, so that nobody waits for more than so many others.
const BATCH_MAX: usize = 1024;

/// Something to do inside a transaction.
pub(crate) trait Task<S>: Send {
    /// Checks and appends. Called at most once.
    fn run(&mut self, writer: &mut Writer<S>);
    /// Answers, when the transaction is durable or has failed.
    fn finish(self: Box<Self>, committed: Result<()>);
}

/// A task by a closure, whose answer somebody waits for.
pub(crate) struct Waiting<T, F> {
    work: Option<F>,
    answer: Option<Result<T>>,
    reply: SyncSender<Result<T>>,
}

impl<T, F> Waiting<T, F> {
    pub(crate) fn new(work: F, reply: SyncSender<Result<T>>) -> Self {
        Self {
            work: Some(work),
            answer: None,
            reply,
        }
    }
}

impl<S, T: Send, F: FnOnce(&mut Writer<S>) -> Result<T> + Send> Task<S> for Waiting<T, F> {
    fn run(&mut self, writer: &mut Writer<S>) {
        self.answer = self.work.take().map(|work| work(writer));
    }

    fn finish(self: Box<Self>, committed: Result<()>) {
        let unanswered = || Err(Error::failed("it has stopped"));
        let Self { answer, reply, .. } = *self;
        let answer = committed.and_then(|()| answer.unwrap_or_else(unanswered));
        // Whoever does not wait any more has been charged all the same.
        let _ = reply.send(answer);
    }
}

/// Answers tasks until nobody can ask any more.
pub(crate) fn serve<S: Store + 'static>(mut writer: Writer<S>, tasks: &Receiver<Box<dyn Task<S>>>) {
    while let Ok(first) = tasks.recv() {
        let mut batch = vec![first];
        batch.extend(tasks.try_iter().take(BATCH_MAX - 1));
        writer.batch(batch);
    }
}

/// Which way a cap goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Raise,
    Lower,
}

/// The one who appends.
pub(crate) struct Writer<S> {
    store: S,
    state: State,
    key: HeadKey,
    /// The head that was last seen or written, whose signature is known to be good.
    seen: Option<SignedHead>,
    appended: bool,
    stopped: Option<Error>,
}

/// Reads all rows of a store and compares them with the signed head. To be called inside a transaction.
pub(crate) fn load<S: Store>(store: &mut S) -> Result<(State, Option<SignedHead>)> {
    let mut state = State::new(store.rows()?);
    store.read(1, u64::MAX, &mut |raw| state.push(raw))?;
    let head = store.head()?;
    if state.is_new() && head.is_none() {
        return Ok((state, None));
    }
    let public = state.opening().map(|opening| opening.public_key.0);
    let signed = head.filter(|head| public.is_some_and(|public| is_signed(head, &public)));
    state.check_head(signed.map(|signed| signed.head));
    Ok((state, signed))
}

impl<S: Store + 'static> Writer<S> {
    /// Over a store whose rows add up to `state`.
    pub(crate) fn new(store: S, state: State, key: HeadKey, seen: Option<SignedHead>) -> Self {
        Self {
            store,
            state,
            key,
            seen,
            appended: false,
            stopped: None,
        }
    }

    /// What all records add up to.
    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// The store, for tests that set limits on it.
    #[cfg(test)]
    pub(crate) fn store(&self) -> &S {
        &self.store
    }

    /// One transaction for all tasks.
    pub(crate) fn batch(&mut self, mut tasks: Vec<Box<dyn Task<S>>>) {
        let committed = self.transact(|writer| {
            for task in &mut tasks {
                task.run(writer);
                if writer.stopped.is_some() {
                    break;
                }
            }
        });
        for task in tasks {
            task.finish(committed.clone());
        }
    }

    /// One transaction. After an error other than `Busy` there is no other.
    pub(crate) fn transact(&mut self, work: impl FnOnce(&mut Self)) -> Result<()> {
        if let Some(error) = &self.stopped {
            return Err(error.clone());
        }
        match self.store.begin() {
            Err(Error::Busy) => return Err(Error::Busy),
            Err(error) => return Err(self.stop(error)),
            Ok(()) => {}
        }
        self.appended = false;
        if let Err(error) = self.catch_up() {
            return Err(self.stop(error));
        }
        work(self);
        if let Some(error) = self.stopped.clone() {
            return Err(self.stop(error));
        }
        if !self.appended {
            self.store.abort();
            return Ok(());
        }
        self.commit().map_err(|error| self.stop(error))
    }

    /// Signs and commits what was appended.
    pub(crate) fn commit(&mut self) -> Result<()> {
        let head = self.state.head().ok_or(Error::Emptied)?;
        let signed = self.key.sign(head);
        self.store.commit(Some(&signed))?;
        self.seen = Some(signed);
        Ok(())
    }

    fn stop(&mut self, error: Error) -> Error {
        self.store.abort();
        self.stopped.get_or_insert(error).clone()
    }

    /// Takes in what others have appended, and finds out whether what was there is there still.
    fn catch_up(&mut self) -> Result<()> {
        if let Some(head) = self.state.head()
            && self.store.hash_at(head.sequence)? != Some(head.hash)
        {
            let (sequence, what) = (head.sequence, "it has changed while the ledger was in use");
            return Err(Error::Damaged { sequence, what });
        }
        let (next, _) = self.state.end();
        let state = &mut self.state;
        self.store
            .read(next, u64::MAX, &mut |raw| state.push(raw))?;
        let found = self.store.head()?;
        let public = self.key.public();
        if self.state.opening().map(|opening| opening.public_key) != Some(Hex(public)) {
            return Err(Error::KeyMismatch);
        }
        if found != self.seen || self.state.end().0 != next {
            let signed = found.filter(|head| is_signed(head, &public));
            self.state.check_head(signed.map(|signed| signed.head));
            self.seen = signed;
        }
        self.state.sound().map(|_| ())
    }

    /// Appends a record to the transaction.
    pub(crate) fn append(&mut self, kind: Kind, body: String) -> Result<Receipt> {
        let (sequence, previous) = self.state.end();
        let record = Record::new(sequence, kind, body, previous);
        self.appended = true;
        let appended = self.store.append(&record).and_then(|()| {
            self.state.push(&record.raw());
            self.state.sound().map(|_| ())
        });
        if let Err(error) = appended {
            return Err(self.stopped.get_or_insert(error).clone());
        }
        let hash = record.hash;
        Ok(Receipt { sequence, hash })
    }

    /// Keeps an entry, if every level has room.
    pub(crate) fn reserve(
        &mut self,
        entry: &Entry,
        key: Option<Hash>,
        statement: Option<Hash>,
    ) -> Result<Outcome> {
        let opening = self.state.sound()?;
        if opening.dataset != entry.account().dataset() {
            return Err(Error::OtherDataset {
                recorded: opening.dataset.clone(),
                given: entry.account().dataset().to_owned(),
            });
        }
        if let Some(sequence) = key.and_then(|key| self.state.reserved_as(&key)) {
            let same = self.reservation(sequence)?.statement == statement.map(Hex);
            return Err(if same {
                Error::Charged { sequence }
            } else {
                Error::KeyReused { sequence }
            });
        }
        let approval = match entry.verdict(&self.standings(entry.account().levels())) {
            Ok(approval) => approval,
            Err(refusal) => return Ok(Outcome::Refused(refusal)),
        };
        let body = body::write_reserve(entry, key, statement);
        let sequence = self.append(Kind::Reserve, body)?.sequence;
        Ok(Outcome::Kept { sequence, approval })
    }

    /// Keeps the answer of a reservation.
    pub(crate) fn settle(
        &mut self,
        sequence: u64,
        fingerprint: Hash,
        answer: &str,
    ) -> Result<Receipt> {
        if self.reservation(sequence)?.fingerprint != Hex(fingerprint) {
            return Err(Error::NotReserved { sequence });
        }
        if self.state.settled_as(sequence).is_some() {
            return Err(Error::Settled { sequence });
        }
        let body = body::write_settle(sequence, answer).ok_or(Error::NotJson)?;
        self.append(Kind::Settle, body)
    }

    fn reservation(&mut self, sequence: u64) -> Result<Reserved> {
        let mut found = None;
        self.store.read(sequence, sequence, &mut |raw| {
            if raw.kind == Kind::Reserve.word().as_bytes() {
                found = serde_json::from_slice(raw.body).ok();
            }
        })?;
        found.ok_or(Error::NotReserved { sequence })
    }

    /// What was reserved under a key, and answered.
    pub(crate) fn find(&mut self, key: Hash) -> Result<Option<Found>> {
        let Some(sequence) = self.state.reserved_as(&key) else {
            return Ok(None);
        };
        let statement = self.reservation(sequence)?.statement.map(|hex| hex.0);
        let Some(settled) = self.state.settled_as(sequence) else {
            return Ok(Some(Found::Lost {
                sequence,
                statement,
            }));
        };
        let (body, hash) = (self.store.body_at(settled)?, self.store.hash_at(settled)?);
        let answer = body.as_deref().and_then(body::read_answer);
        let (answer, hash) = answer.zip(hash).ok_or(Error::Damaged {
            sequence: settled,
            what: "it has changed while the ledger was in use",
        })?;
        Ok(Some(Found::Answered {
            sequence,
            statement,
            answer: answer.to_owned(),
            receipt: Receipt {
                sequence: settled,
                hash,
            },
        }))
    }

    /// Whether the chain has a record of this number and hash.
    pub(crate) fn holds(&mut self, receipt: Receipt) -> Result<bool> {
        Ok(self.store.hash_at(receipt.sequence)? == Some(receipt.hash))
    }

    /// Where levels stand.
    pub(crate) fn standings(&self, levels: Vec<Level>) -> Vec<Standing> {
        let standing = |level| self.state.standing(level);
        levels.into_iter().map(standing).collect()
    }

    /// Records a cap.
    pub(crate) fn set_cap(
        &mut self,
        level: Level,
        (epsilon, delta): (Epsilon, Delta),
        direction: Direction,
    ) -> Result<Receipt> {
        let opening = self.state.sound()?;
        let cap = Cap::new(opening.mode.0, opening.neighbours, epsilon, delta)?;
        let before = self.state.standing(level.clone()).cap;
        // A cap where there was none lowers; the data set has always had one, or has lost it and is closed.
        let fits = match (direction, before) {
            (Direction::Raise, Some(before)) => cap.exceeds(&before),
            (Direction::Lower, Some(before)) => before.exceeds(&cap) && !cap.exceeds(&before),
            (_, None) => true,
        };
        let word = match direction {
            Direction::Raise => "higher",
            Direction::Lower => "lower",
        };
        if !fits {
            return Err(Error::CapDirection {
                level,
                direction: word,
            });
        }
        let body = CapBody::new(&level, &cap).ok_or(Error::NoCap)?;
        self.append(Kind::Cap, body::write(&body))
    }

    /// Records a changed catalog.
    pub(crate) fn accept(&mut self, catalog: Hash) -> Result<Receipt> {
        let catalog = Hex(catalog);
        self.append(Kind::Accept, body::write(&Accept { catalog }))
    }

    /// Compares what an owner declares with what is recorded. What is stricter is recorded, what is laxer refused.
    pub(crate) fn adopt(&mut self, terms: &Terms) -> Result<()> {
        let opening = self.state.sound()?;
        if opening.dataset != terms.dataset {
            return Err(Error::OtherDataset {
                recorded: opening.dataset.clone(),
                given: terms.dataset.clone(),
            });
        }
        if opening.mode.0 != terms.mode {
            return Err(Error::OtherMode {
                recorded: opening.mode.0,
                given: terms.mode,
            });
        }
        if opening.neighbours != terms.neighbours {
            return Err(Error::OtherRelation {
                recorded: opening.neighbours,
                given: terms.neighbours,
            });
        }
        if opening.catalog != Hex(terms.catalog) {
            return Err(Error::CatalogChanged);
        }
        let mut lower = Vec::new();
        for (level, epsilon, delta) in &terms.caps {
            let cap = Cap::new(terms.mode, terms.neighbours, *epsilon, *delta)?;
            match self.state.standing(level.clone()).cap {
                Some(before) if cap.exceeds(&before) => {
                    let level = level.clone();
                    return Err(Error::CapRaised { level });
                }
                Some(before) if !before.exceeds(&cap) => {}
                // Its cap was lost with a damaged record: a new one is a promise, and not for a catalog to make.
                None if *level == Level::Dataset => return Err(Error::NoCap),
                _ => lower.push((level.clone(), (*epsilon, *delta))),
            }
        }
        for (level, promise) in lower {
            self.set_cap(level, promise, Direction::Lower)?;
        }
        Ok(())
    }
}
