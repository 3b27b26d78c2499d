//! Rows on their way from the database to the sums.
//!
//! Reading a ledger of a million records is half the work of the database and half that of hashing and adding up. So beyond a
//! few thousand rows the two halves run side by side: whoever reads copies rows into a [`Batch`], and a second thread takes
//! the batches in order, checks every row and gives the empty batch back. When it is behind, the reader does the hashing of the
//! batch that would have to wait.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use crate::record::Raw;
use crate::state::State;
use crate::store::Store;
use crate::{Error, Result};

/// With fewer rows a second thread costs more than it saves.
const ROWS_FOR_TWO: usize = 4096;
/// A batch is handed over when it holds this much: small enough to stay in a processor's cache.
const BATCH_BYTES: usize = 256 << 10;
/// Batches between reader and checker, so that neither waits for the other's hiccups.
const BATCHES: usize = 4;

/// Pushes all rows of a store onto `state`.
pub(crate) fn push_all<S: Store>(store: &mut S, mut state: State) -> Result<State> {
    if store.rows()? < ROWS_FOR_TWO {
        store.read(1, u64::MAX, &mut |raw| state.push(raw))?;
        return Ok(state);
    }
    std::thread::scope(|scope| {
        let (full, to_check) = sync_channel::<Batch>(BATCHES);
        let (empty, to_fill) = sync_channel(BATCHES + 2);
        let checker = scope.spawn(move || check(state, &to_check, &empty));
        let read = fill(store, &full, &to_fill);
        // The checker ends when nothing more can come.
        drop(full);
        let state = checker.join();
        read?;
        state.map_err(|_| Error::failed("a record could not be checked"))
    })
}

fn fill<S: Store>(store: &mut S, full: &SyncSender<Batch>, empty: &Receiver<Batch>) -> Result<()> {
    let mut batch = Batch::default();
    store.read(1, u64::MAX, &mut |raw| {
        batch.push(raw);
        if batch.bytes.len() >= BATCH_BYTES {
            let next = empty.try_recv().unwrap_or_default();
            // A checker that is gone has panicked, which is found when it is joined.
            match full.try_send(std::mem::replace(&mut batch, next)) {
                Err(TrySendError::Full(mut waiting)) => {
                    waiting.hash();
                    let _ = full.send(waiting);
                }
                Ok(()) | Err(TrySendError::Disconnected(_)) => {}
            }
        }
    })?;
    let _ = full.send(batch);
    Ok(())
}

fn check(mut state: State, full: &Receiver<Batch>, empty: &SyncSender<Batch>) -> State {
    for mut batch in full {
        for (at, raw) in batch.rows().enumerate() {
            let sound = batch.sound.get(at).copied();
            state.push_hashed(&raw, sound.unwrap_or_else(|| raw.is_sound()));
        }
        batch.clear();
        let _ = empty.try_send(batch);
    }
    state
}

/// Rows, one behind the other.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    rows: Vec<Row>,
    /// Whether each row is sound, if somebody has found out.
    sound: Vec<bool>,
}

/// The number of a row, and where each of its parts ends.
struct Row {
    sequence: i64,
    ends: [usize; 4],
}

impl Batch {
    fn push(&mut self, raw: &Raw<'_>) {
        let parts = [raw.kind, raw.body, raw.previous, raw.hash];
        let ends = parts.map(|part| {
            self.bytes.extend_from_slice(part);
            self.bytes.len()
        });
        self.rows.push(Row {
            sequence: raw.sequence,
            ends,
        });
    }

    fn rows(&self) -> impl Iterator<Item = Raw<'_>> {
        let mut start = 0;
        self.rows.iter().map(move |row| {
            let [kind, body, previous, hash] = row.ends.map(|end| {
                let part = &self.bytes[start..end];
                start = end;
                part
            });
            Raw {
                sequence: row.sequence,
                kind,
                body,
                previous,
                hash,
            }
        })
    }

    fn hash(&mut self) {
        self.sound = self.rows().map(|raw| raw.is_sound()).collect();
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.sound.clear();
        self.rows.clear();
    }
}

#[cfg(test)]
mod tests {
    use whit_accounting::budget::Mode;
    use whit_accounting::reserve::Level;
    use whit_core::{Delta, Epsilon, Neighbours};

    use super::*;
    use crate::body;
    use crate::key::HeadKey;
    use crate::ledger::{Terms, first_caps, opening};
    use crate::record::{Kind, Record};
    use crate::store::SignedHead;

    #[test]
    fn rows_come_out_as_they_went_in() {
        let row = |sequence: i64, kind: &'static [u8], body: &'static [u8]| Raw {
            sequence,
            kind,
            body,
            previous: &[1; 32],
            hash: &[],
        };
        let rows = [
            row(1, b"open", b"{}"),
            row(-5, b"", b""),
            row(i64::MAX, b"", b"x"),
        ];
        let mut batch = Batch::default();
        for _ in 0..2 {
            rows.iter().for_each(|raw| batch.push(raw));
            batch.hash();
            assert!(batch.rows().eq(rows));
            assert_eq!(batch.sound, [false; 3]);
            batch.clear();
            assert_eq!((batch.rows().count(), batch.sound.len()), (0, 0));
        }
    }

    /// A list that is only read.
    struct Listed(Vec<Record>);

    impl Store for Listed {
        fn begin(&mut self) -> Result<()> {
            Ok(())
        }
        fn rows(&mut self) -> Result<usize> {
            Ok(self.0.len())
        }
        fn read(&mut self, _: u64, _: u64, visit: &mut dyn FnMut(&Raw<'_>)) -> Result<()> {
            self.0.iter().for_each(|record| visit(&record.raw()));
            Ok(())
        }
        fn head(&mut self) -> Result<Option<SignedHead>> {
            Ok(None)
        }
        fn append(&mut self, _: &Record) -> Result<()> {
            Err(Error::Busy)
        }
        fn commit(&mut self, _: Option<&SignedHead>) -> Result<()> {
            Err(Error::Busy)
        }
        fn abort(&mut self) {}
    }

    fn chain(length: u64) -> Vec<Record> {
        let terms = Terms {
            dataset: "shop".into(),
            catalog: [1; 32],
            mode: Mode::Pure,
            neighbours: Neighbours::AddRemove,
            caps: vec![(
                Level::Dataset,
                Epsilon::new(1.0).expect("finite"),
                Delta::ZERO,
            )],
        };
        let mut records: Vec<Record> = Vec::new();
        let mut append = |kind, body| {
            let (sequence, previous) = records
                .last()
                .map_or((1, [0; 32]), |last| (last.sequence + 1, last.hash));
            records.push(Record::new(sequence, kind, body, previous));
        };
        let open = opening(&terms, HeadKey::simulated().public());
        append(Kind::Open, body::write(&open));
        for cap in first_caps(&terms).expect("caps") {
            append(Kind::Cap, body::write(&cap));
        }
        for number in 0..length {
            let (name, key) = (number % 7, format!("{number:064x}"));
            append(
                Kind::Reserve,
                format!(
                    "{{\"loss\":\"{number}\",\"delta\":\"0\",\"team\":\"t{name}\",\"analyst\":null,\"key\":\"{key}\",\"statement\":null}}"
                ),
            );
        }
        records
    }

    /// Two threads find what one finds: sums, end and damage.
    #[test]
    fn side_by_side_is_one_after_the_other() {
        let sound = chain(10_000);
        let mut altered = sound.clone();
        altered[7_000].body.push(' ');
        let mut missing = sound.clone();
        missing.remove(5_000);
        for records in [sound, altered, missing] {
            let mut alone = State::new(0);
            records.iter().for_each(|record| alone.push(&record.raw()));
            assert!(records.len() > ROWS_FOR_TWO);
            let both = push_all(&mut Listed(records), State::new(0)).expect("readable");
            assert_eq!(both.damage(), alone.damage());
            assert_eq!(both.sound().is_ok(), alone.sound().is_ok());
            assert_eq!((both.end(), both.counts()), (alone.end(), alone.counts()));
            let all = |state: &State| -> Vec<_> {
                let levels = state.levels().into_iter();
                levels.map(|level| state.standing(level)).collect()
            };
            assert_eq!(all(&both), all(&alone));
        }
    }
}
