//! Writes that fail: the handle stops, nobody gets a permit, and the file says what is true.

use std::sync::mpsc::{Receiver, sync_channel};

use rusqlite::Connection;
use whit_accounting::budget::Mode;
use whit_accounting::reserve::{Account, Filter, Level, Permit, Unreserved};
use whit_core::{Delta, Epsilon, Event, Mechanism, Neighbours, Ratio};

use crate::ledger::writer_over;
use crate::owner::Direction;
use crate::sqlite::{Access, Sqlite};
use crate::tamper_test::Folder;
use crate::writer::{Task, Waiting, Writer};
use crate::{Error, Ledger, Result, Terms, verify};

fn terms() -> Terms {
    let epsilon = Epsilon::new(1000.0).expect("finite");
    Terms {
        dataset: "shop".into(),
        catalog: [1; 32],
        mode: Mode::Pure,
        neighbours: Neighbours::AddRemove,
        caps: vec![(Level::Dataset, epsilon, Delta::ZERO)],
    }
}

fn one() -> Event {
    let epsilon = Ratio::one();
    Event::new(Neighbours::AddRemove, Mechanism::Pure { epsilon })
}

fn reserve(ledger: &Ledger) -> Result<Permit> {
    let account = Account::new("shop").expect("a name");
    match Filter::new(Mode::Pure).reserve(&one(), &account, &mut ledger.charge_once()) {
        Ok(permit) => Ok(permit),
        Err(Unreserved::Journal(error)) => Err(error),
        Err(other) => panic!("{other}"),
    }
}

fn spent(folder: &Folder) -> u128 {
    let report = verify(&folder.ledger()).expect("sound");
    report.standings[0].spent.loss.units() >> 64
}

/// A ledger over a connection on which something was set beforehand.
fn limited(folder: &Folder, pragma: &str) -> Ledger {
    let connection = Connection::open(folder.ledger()).expect("a database");
    let store = Sqlite::over(connection, &folder.ledger(), Access::Write).expect("a ledger");
    let writer = writer_over(store, &folder.ledger(), None).expect("a ledger");
    writer.store().limit(pragma);
    Ledger::start(writer)
}

fn stops(folder: &Folder, ledger: Ledger) -> u128 {
    let permits = (0..10_000).map_while(|_| reserve(&ledger).ok()).count() as u128;
    for _ in 0..3 {
        assert!(matches!(reserve(&ledger), Err(Error::Failed { .. })));
        assert!(
            ledger.head().is_err(),
            "a handle that has stopped answers nothing"
        );
    }
    drop(ledger);
    assert_eq!(
        spent(folder),
        permits,
        "every permit is charged, and nothing else"
    );
    permits
}

/// What a caller has done.
type Work = fn(&mut Writer<Sqlite>) -> Result<u64>;

/// What each of several callers in one transaction hears.
fn together(folder: &Folder, pragma: &str, tasks: Vec<Work>) -> Vec<Result<u64>> {
    let store = Sqlite::open(&folder.ledger(), Access::Write).expect("a ledger");
    let mut writer = writer_over(store, &folder.ledger(), None).expect("a ledger");
    writer.store().limit(pragma);
    let (answers, batch): (Vec<_>, Vec<_>) = tasks
        .into_iter()
        .map(|task| {
            let (reply, answer) = sync_channel(1);
            let task: Box<dyn Task<Sqlite>> = Box::new(Waiting::new(task, reply));
            (answer, task)
        })
        .unzip();
    writer.batch(batch);
    let heard = |answer: &Receiver<Result<u64>>| answer.recv().expect("an answer");
    answers.iter().map(heard).collect()
}

fn accept(writer: &mut Writer<Sqlite>) -> Result<u64> {
    writer.accept([1; 32]).map(|receipt| receipt.sequence)
}

fn lower_to_nowhere(writer: &mut Writer<Sqlite>) -> Result<u64> {
    let promise = (Epsilon::new(2000.0).expect("finite"), Delta::ZERO);
    let receipt = writer.set_cap(Level::Dataset, promise, Direction::Lower);
    receipt.map(|receipt| receipt.sequence)
}

fn look(writer: &mut Writer<Sqlite>) -> Result<u64> {
    writer
        .state()
        .head()
        .map(|head| head.sequence)
        .ok_or(Error::Emptied)
}

#[test]
fn one_who_is_refused_does_not_disturb_the_others() {
    let folder = Folder::new("together");
    drop(Ledger::open(&folder.ledger(), &terms()).expect("opens"));
    let heard = together(
        &folder,
        "PRAGMA busy_timeout = 1000",
        vec![accept, lower_to_nowhere, accept, look],
    );
    assert!(matches!(heard[1], Err(Error::CapDirection { .. })));
    assert_eq!([&heard[0], &heard[2], &heard[3]], [&Ok(3), &Ok(4), &Ok(4)]);
    assert_eq!(verify(&folder.ledger()).expect("sound").head.sequence, 4);
}

/// Also who only looked: what they have seen is not going to be.
#[test]
fn a_write_that_fails_fails_everybody_in_its_transaction() {
    let folder = Folder::new("together-full");
    drop(Ledger::open(&folder.ledger(), &terms()).expect("opens"));
    let mut tasks: Vec<Work> = vec![look];
    tasks.extend([accept as Work; 100]);
    let heard = together(&folder, "PRAGMA max_page_count = 4", tasks);
    for answer in heard {
        assert!(matches!(answer, Err(Error::Failed { .. })), "{answer:?}");
    }
    assert_eq!(verify(&folder.ledger()).expect("sound").head.sequence, 2);
}

/// A bug in the middle of a transaction ends the handle, and nothing of the transaction stays.
#[test]
fn a_panic_inside_a_transaction_stops_the_ledger() {
    let folder = Folder::new("panic");
    let ledger = Ledger::open(&folder.ledger(), &terms()).expect("opens");
    let _ = reserve(&ledger).expect("room");
    let other = ledger.clone();
    let told: Result<()> = ledger.ask(|writer| {
        writer.accept([9; 32])?;
        panic!("a bug, for a test")
    });
    assert!(matches!(told, Err(Error::Failed { .. })));
    for handle in [ledger, other] {
        assert!(matches!(reserve(&handle), Err(Error::Failed { .. })));
        assert!(handle.head().is_err());
    }
    assert_eq!(spent(&folder), 1);
    let ledger = Ledger::open(&folder.ledger(), &terms()).expect("the catalog is the old one");
    assert!(reserve(&ledger).is_ok());
}

#[test]
fn a_full_disk_stops_the_ledger() {
    let folder = Folder::new("full");
    drop(Ledger::open(&folder.ledger(), &terms()).expect("opens"));
    let permits = stops(&folder, limited(&folder, "PRAGMA max_page_count = 12"));
    assert!(permits > 5 && permits < 1000, "{permits}");
    // With room again it goes on where it was.
    let ledger = Ledger::open(&folder.ledger(), &terms()).expect("opens");
    let _ = reserve(&ledger).expect("room");
    drop(ledger);
    assert_eq!(spent(&folder), permits + 1);
}

#[test]
fn a_read_only_ledger_gives_no_permit() {
    let folder = Folder::new("read-only");
    drop(Ledger::open(&folder.ledger(), &terms()).expect("opens"));
    let permits = stops(&folder, limited(&folder, "PRAGMA query_only = ON"));
    assert_eq!(permits, 0);
    let ledger = Ledger::open(&folder.ledger(), &terms()).expect("opens");
    assert!(reserve(&ledger).is_ok());
}

#[test]
fn a_locked_ledger_is_busy_and_not_stopped() {
    let folder = Folder::new("busy");
    drop(Ledger::open(&folder.ledger(), &terms()).expect("opens"));
    let ledger = limited(&folder, "PRAGMA busy_timeout = 0");
    let other = Connection::open(folder.ledger()).expect("a database");
    other.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    assert_eq!(reserve(&ledger).err(), Some(Error::Busy));
    other.execute_batch("ROLLBACK").expect("no lock");
    assert!(reserve(&ledger).is_ok());
}
