//! Many callers, one transaction.
//!
//! A [`Writer`] does what is asked inside one transaction of its store: first it reads what other processes have appended since,
//! then it lets each [`Task`] check and append, signs the new head and commits. Only then does anybody hear an answer. A
//! task that is refused has appended nothing and does not disturb the others; a failure of the store fails all of
//! them and stops the writer for good.

use std::sync::mpsc::{Receiver, SyncSender};

use whit_accounting::reserve::{Entry, Level, Outcome, Redeemed, Standing};

use crate::body::{self, Hex, Reserved};
use crate::key::{HeadKey, is_signed};
use crate::ledger::Found;
use crate::record::{Hash, Kind, Receipt, Record};
use crate::rows::push_all;
use crate::state::State;
use crate::store::{SignedHead, Store, changed};
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

/// The one who appends.
pub(crate) struct Writer<S> {
    store: S,
    state: State,
    key: HeadKey,
    /// The head that was last seen or written, whose signature is known to be good.
    seen: Option<SignedHead>,
    /// The catalog by which this handle's statements are understood. Owners who only look have none.
    catalog: Option<Hash>,
    appended: bool,
    stopped: Option<Error>,
}

/// Reads all rows of a store and compares them with the signed head. To be called inside a transaction.
pub(crate) fn load<S: Store>(store: &mut S) -> Result<(State, Option<SignedHead>)> {
    let empty = State::new(store.rows()?);
    let mut state = push_all(store, empty)?;
    let head = store.head()?;
    if state.is_new() && head.is_none() {
        return Ok((state, None));
    }
    let public = state.opening().map(|opening| opening.public_key.0);
    let signed = head.filter(|head| public.is_some_and(|public| is_signed(head, &public)));
    state.check_head(signed.map(|signed| signed.head));
    if let Some(mark) = store.mark()? {
        state.check_mark(mark, store.hash_at(mark.sequence)?);
    }
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
            catalog: None,
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

    /// The store, between transactions.
    pub(crate) fn store_mut(&mut self) -> &mut S {
        &mut self.store
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
        // Asking again is of no use any more.
        let error = match error {
            Error::Busy => Error::failed("another process got in the way of a transaction"),
            error => error,
        };
        self.stopped.get_or_insert(error).clone()
    }

    /// What the store says, or the end: a store that cannot be read is not to be written.
    fn read<T>(&mut self, found: Result<T>) -> Result<T> {
        found.map_err(|error| self.stopped.get_or_insert(error).clone())
    }

    /// Takes in what others have appended, and finds out whether what was there is there still.
    fn catch_up(&mut self) -> Result<()> {
        if let Some(head) = self.state.head()
            && self.store.hash_at(head.sequence)? != Some(head.hash)
        {
            return Err(changed(head.sequence));
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
        body: String,
    ) -> Result<Outcome> {
        let opening = self.state.sound()?;
        if self
            .catalog
            .is_some_and(|known| opening.catalog != Hex(known))
        {
            return Err(Error::CatalogChanged);
        }
        self.state.running()?;
        if opening.dataset != entry.account().dataset() {
            return Err(Error::OtherDataset {
                recorded: opening.dataset.clone(),
                given: entry.account().dataset().to_owned(),
            });
        }
        if let Some(sequence) = key.and_then(|key| self.state.reserved_as(&key)) {
            let same = self.reservation(sequence)?.is_for(entry, statement);
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
        let sequence = self.append(Kind::Reserve, body)?.sequence;
        Ok(Outcome::Kept { sequence, approval })
    }

    /// Keeps the answer of a reservation.
    pub(crate) fn settle(&mut self, redeemed: &Redeemed, body: String) -> Result<Receipt> {
        let sequence = redeemed.sequence();
        let here = self.state.sound()?.dataset == redeemed.dataset();
        if !here || self.reservation(sequence)?.fingerprint != Hex(redeemed.fingerprint()) {
            return Err(Error::NotReserved { sequence });
        }
        if self.state.settled_as(sequence).is_some() {
            return Err(Error::Settled { sequence });
        }
        self.append(Kind::Settle, body)
    }

    pub(crate) fn reservation(&mut self, sequence: u64) -> Result<Reserved> {
        let found = self.store.body_at(sequence, Kind::Reserve);
        let found = self.read(found)?;
        let found = found.and_then(|(body, _)| serde_json::from_str(&body).ok());
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
        let found = self.store.body_at(settled, Kind::Settle);
        let answer = self.read(found)?.and_then(|(body, hash)| {
            let answer = body::read_answer(&body)?.to_owned();
            Some((answer, hash))
        });
        let (answer, hash) = self.read(answer.ok_or_else(|| changed(settled)))?;
        let receipt = Receipt {
            sequence: settled,
            hash,
        };
        Ok(Some(Found::Answered {
            sequence,
            statement,
            answer,
            receipt,
        }))
    }

    /// Whether the chain has a record of this number and hash.
    pub(crate) fn holds(&mut self, receipt: Receipt) -> Result<bool> {
        let found = self.store.hash_at(receipt.sequence);
        Ok(self.read(found)? == Some(receipt.hash))
    }

    /// Where levels stand.
    pub(crate) fn standings(&self, levels: Vec<Level>) -> Vec<Standing> {
        let standing = |level| self.state.standing(level);
        levels.into_iter().map(standing).collect()
    }

    /// Reserves from now on only as long as this is the catalog that was accepted last.
    pub(crate) fn follow(&mut self, catalog: Hash) {
        self.catalog = Some(catalog);
    }

    /// Whether reservations depend on a catalog.
    pub(crate) fn follows(&self) -> bool {
        self.catalog.is_some()
    }
}
