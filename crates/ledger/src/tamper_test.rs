//! Every change to every record is found; whatever else changes in the file is harmless or stops the start.
#![expect(clippy::disallowed_methods, reason = "a test of what happens to files")]

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use whit_accounting::budget::Mode;
use whit_accounting::reserve::{Account, Filter, Level};
use whit_core::{Delta, Epsilon, Event, Mechanism, Neighbours, Ratio};

use crate::key::is_signed;
use crate::record::Raw;
use crate::sqlite::{Access, Sqlite};
use crate::state::State;
use crate::store::{SignedHead, Store};
use crate::{Error, Key, Ledger, Terms, verify};

const RECORDS: u64 = 100;

fn terms() -> Terms {
    let (epsilon, delta) = (Epsilon::new(50.0), Delta::new(1e-6));
    Terms {
        dataset: "shop".into(),
        catalog: [1; 32],
        mode: Mode::Zcdp,
        neighbours: Neighbours::AddRemove,
        caps: vec![(
            Level::Dataset,
            epsilon.expect("finite"),
            delta.expect("below one"),
        )],
    }
}

/// A folder of its own for each test, removed before and after.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("whit-ledger-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    pub(crate) fn ledger(&self) -> PathBuf {
        self.0.join("whit.ledger")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A hundred records of every kind that an honest ledger has.
fn hundred(path: &Path) {
    let ledger = Ledger::open(path, &terms()).expect("opens");
    let account = Account::new("shop")
        .and_then(|shop| shop.team("red"))
        .expect("names");
    let mechanism = Mechanism::BoundedRange {
        epsilon: Ratio::new(1, 10).expect("ten"),
    };
    let event = Event::new(Neighbours::AddRemove, mechanism);
    ledger.accept([2; 32]).expect("recorded");
    let more = Epsilon::new(60.0).expect("finite");
    let delta = Delta::new(1e-6).expect("below one");
    ledger
        .raise_cap(Level::Dataset, more, delta)
        .expect("recorded");
    while ledger.head().expect("a head").sequence < RECORDS {
        let key = Key::new(&format!("{:?}", ledger.head()));
        let mut charge = ledger.charge(key, [3; 32]);
        let permit = Filter::new(Mode::Zcdp).reserve(&event, &account, &mut charge);
        let redeemed = permit.expect("room").redeem(&event).expect("its event");
        if !redeemed.sequence().is_multiple_of(5) && redeemed.sequence() < RECORDS {
            ledger
                .settle(redeemed, r#"{"rows":[[1,2.5]]}"#)
                .expect("kept");
        }
    }
}

#[derive(Clone, PartialEq)]
struct Row {
    sequence: i64,
    parts: [Vec<u8>; 4],
}

impl Row {
    fn raw(&self) -> Raw<'_> {
        let [kind, body, previous, hash] = &self.parts;
        Raw {
            sequence: self.sequence,
            kind,
            body,
            previous,
            hash,
        }
    }
}

fn rows(path: &Path) -> (Vec<Row>, SignedHead) {
    let mut store = Sqlite::open(path, Access::Read).expect("a ledger");
    store.begin().expect("readable");
    let mut rows = Vec::new();
    let read = store.read(1, u64::MAX, &mut |raw| {
        let parts = [raw.kind, raw.body, raw.previous, raw.hash].map(<[u8]>::to_vec);
        rows.push(Row {
            sequence: raw.sequence,
            parts,
        });
    });
    read.expect("readable");
    let head = store.head().expect("readable").expect("a head");
    (rows, head)
}

fn is_sound(rows: &[Row], head: SignedHead) -> bool {
    let mut state = State::new(0);
    rows.iter().for_each(|row| state.push(&row.raw()));
    let public = state.opening().map(|opening| opening.public_key.0);
    let signed = public.is_some_and(|public| is_signed(&head, &public));
    state.check_head(signed.then_some(head.head));
    state.sound().is_ok()
}

#[test]
fn every_flipped_bit_of_every_record_is_found() {
    let folder = Folder::new("bits");
    hundred(&folder.ledger());
    let (rows, head) = rows(&folder.ledger());
    assert_eq!(rows.len() as u64, RECORDS);
    assert!(is_sound(&rows, head));
    // What is damaged in the first rows stays damaged: only a `recover` record could say otherwise, and there is none.
    let mut before = State::new(0);
    let mut flips = 0;
    for row in &rows {
        let mut check = |changed: &Row| {
            let mut state = before.clone();
            state.push(&changed.raw());
            assert!(
                state.sound().is_err(),
                "record {} changed unnoticed",
                row.sequence
            );
            flips += 1;
        };
        for bit in 0..64 {
            let mut changed = row.clone();
            changed.sequence ^= 1 << bit;
            check(&changed);
        }
        for part in 0..4 {
            for bit in 0..row.parts[part].len() * 8 {
                let mut changed = row.clone();
                changed.parts[part][bit / 8] ^= 1 << (bit % 8);
                check(&changed);
            }
        }
        before.push(&row.raw());
    }
    assert!(flips > 100_000, "{flips}");
}

#[test]
fn every_flipped_bit_of_the_head_is_found() {
    let folder = Folder::new("head");
    hundred(&folder.ledger());
    let (rows, head) = rows(&folder.ledger());
    for bit in 0..64 + 256 + 512 {
        let mut changed = head;
        match bit {
            0..64 => changed.head.sequence ^= 1 << bit,
            64..320 => changed.head.hash[(bit - 64) / 8] ^= 1 << (bit % 8),
            _ => changed.signature[(bit - 320) / 8] ^= 1 << (bit % 8),
        }
        assert!(!is_sound(&rows, changed), "bit {bit}");
    }
}

#[test]
fn swapped_deleted_and_doubled_records_are_found() {
    let folder = Folder::new("swaps");
    hundred(&folder.ledger());
    let (rows, head) = rows(&folder.ledger());
    for at in 0..rows.len() {
        let mut deleted = rows.clone();
        deleted.remove(at);
        assert!(!is_sound(&deleted, head), "record {at} deleted");
        let mut moved_up = deleted.clone();
        for row in &mut moved_up[at..] {
            row.sequence -= 1;
        }
        assert!(
            !is_sound(&moved_up, head),
            "record {at} deleted, the others moved up"
        );
        let mut doubled = rows.clone();
        doubled.insert(at, rows[at].clone());
        assert!(!is_sound(&doubled, head), "record {at} doubled");
        let mut again = rows.clone();
        again.push(Row {
            sequence: RECORDS as i64 + 1,
            ..rows[at].clone()
        });
        assert!(!is_sound(&again, head), "record {at} once more at the end");
        for other in at + 1..rows.len() {
            let mut swapped = rows.clone();
            swapped.swap(at, other);
            (swapped[at].sequence, swapped[other].sequence) =
                (rows[at].sequence, rows[other].sequence);
            assert!(
                !is_sound(&swapped, head),
                "records {at} and {other} swapped"
            );
        }
    }
}

/// Statements by somebody who can write the file, and has no key.
#[test]
fn changes_by_sql_stop_the_start() {
    let folder = Folder::new("sql");
    let path = folder.ledger();
    hundred(&path);
    let sound = fs::read(&path).expect("readable");
    for statement in [
        "DELETE FROM record WHERE sequence = 100",
        "DELETE FROM record WHERE sequence > 50",
        "DELETE FROM record",
        "DELETE FROM head",
        "DELETE FROM head; DELETE FROM record",
        "DELETE FROM record WHERE sequence = 7",
        "UPDATE record SET sequence = sequence + 1000 WHERE sequence = 100",
        "UPDATE record SET body = replace(body, '\"team\":\"red\"', '\"team\":null') WHERE sequence = 5",
        "UPDATE record SET kind = 'settle' WHERE kind = 'reserve'",
        "UPDATE head SET sequence = 99",
        "UPDATE head SET sequence = 99, hash = (SELECT hash FROM record WHERE sequence = 59); DELETE FROM record WHERE sequence = 100",
        "CREATE TRIGGER forget AFTER INSERT ON record BEGIN DELETE FROM record WHERE sequence = new.sequence; END",
        "CREATE TABLE other (x)",
        "PRAGMA user_version = 2",
    ] {
        fs::write(&path, &sound).expect("writable");
        let connection = Connection::open(&path).expect("a database");
        connection.execute_batch(statement).expect("a statement");
        connection.close().expect("closes");
        assert!(verify(&path).is_err(), "verified after {statement}");
        assert!(Ledger::attach(&path).is_err(), "opened after {statement}");
    }
    fs::write(&path, &sound).expect("writable");
    assert!(verify(&path).is_ok() && Ledger::attach(&path).is_ok());
}

#[test]
fn flipped_bits_of_the_file_are_harmless_or_stop_the_start() {
    let folder = Folder::new("file");
    let path = folder.ledger();
    hundred(&path);
    let sound = fs::read(&path).expect("readable");
    let expected = verify(&path).expect("sound");
    let long = std::env::var_os("WHIT_LONG").is_some();
    // A prime, so that all places within a page are visited.
    let step = if long { 7 } else { 397 };
    let mut stopped = 0;
    for bit in (0..sound.len() * 8).step_by(step) {
        let mut changed = sound.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        for suffix in ["-wal", "-shm"] {
            let _ = fs::remove_file(folder.0.join(format!("whit.ledger{suffix}")));
        }
        fs::write(&path, &changed).expect("writable");
        match verify(&path) {
            Ok(report) => assert_eq!(report, expected, "bit {bit}"),
            Err(_) => stopped += 1,
        }
    }
    assert!(stopped > 100, "{stopped}");
}

/// Whoever makes a ledger may be late with its mark: others have charged meanwhile, and it must not be thrown back.
#[test]
fn a_mark_that_is_founded_late_is_that_of_the_last_commit() {
    let folder = Folder::new("late");
    let path = folder.ledger();
    let mut late = Sqlite::open(&path, Access::Write).expect("a ledger");
    hundred(&path);
    let (records, head) = rows(&path);
    late.found_mark().expect("writable");
    let marked = crate::mark::read(&path).expect("readable");
    assert_eq!(marked, Some(head.head));
    assert_eq!(head.head.sequence, records.len() as u64);
}

#[test]
fn a_file_that_is_something_else_is_refused() {
    let folder = Folder::new("other");
    fs::write(folder.ledger(), "user_id,amount\n1,2\n".repeat(1000)).expect("writable");
    assert_eq!(
        Ledger::open(&folder.ledger(), &terms()).err(),
        Some(Error::NotALedger)
    );
    fs::remove_file(folder.ledger()).expect("removable");
    let connection = Connection::open(folder.ledger()).expect("a database");
    connection
        .execute_batch("CREATE TABLE t (x)")
        .expect("a table");
    drop(connection);
    assert_eq!(
        Ledger::open(&folder.ledger(), &terms()).err(),
        Some(Error::NotALedger)
    );
}
