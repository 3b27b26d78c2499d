//! Writes that fail: the handle stops, nobody gets a permit, and the file says what is true.

use rusqlite::Connection;
use whit_accounting::budget::Mode;
use whit_accounting::reserve::{Account, Filter, Level, Permit, Unreserved};
use whit_core::{Delta, Epsilon, Event, Mechanism, Neighbours, Ratio};

use crate::ledger::writer_over;
use crate::sqlite::{Access, Sqlite};
use crate::tamper_test::Folder;
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
