//! Histories that are sound by themselves, and are not what happened.

use std::fs;

use rusqlite::Connection;
use whit_accounting::reserve::Level;
use whit_core::Delta;
use whit_ledger::{Error, Found, Key, Ledger, recover, verify};

use super::{Folder, epsilon, one, open, reserve, shop, spent, stop, terms};

/// Somebody who may write the folder, and cannot read the key, puts a history of their own into it.
#[test]
fn a_history_under_another_key_does_not_reopen_the_budget() {
    let (folder, forger) = (Folder::new("forged"), Folder::new("forger"));
    let ledger = open(&folder, 3.0);
    for _ in 0..3 {
        drop(reserve(&ledger).unwrap());
    }
    drop(ledger);
    drop(open(&forger, 3.0));
    fs::copy(forger.ledger(), folder.ledger()).unwrap();
    fs::remove_file(folder.file("whit.ledger.mark")).unwrap();
    let refused = |error: Error| {
        let opened = Ledger::open(&folder.ledger(), &terms(3.0));
        assert_eq!(opened.err(), Some(error));
    };
    refused(Error::KeyMismatch);
    fs::remove_file(folder.file("whit.ledger.key")).unwrap();
    refused(Error::KeyMissing);
    // The owner does what the message says.
    let recovered = recover(&folder.ledger(), &terms(3.0)).unwrap();
    assert!(recovered.closed);
    let ledger = open(&folder, 3.0);
    assert_eq!(spent(&ledger), 3);
    assert!(reserve(&ledger).is_err());
}

/// Yesterday's file, or one without the log that a killed process has left, is sound by itself, and remembers less.
#[test]
fn a_ledger_that_went_back_is_found_by_its_mark() {
    let folder = Folder::new("went-back");
    let ledger = open(&folder, 10.0);
    drop(reserve(&ledger).unwrap());
    drop(ledger);
    let yesterday = fs::read(folder.ledger()).unwrap();
    let ledger = open(&folder, 10.0);
    drop(reserve(&ledger).unwrap());
    // As a killed process leaves it: the last charge is in the log alone.
    let killed = fs::read(folder.ledger()).unwrap();
    drop(ledger);
    let whole = fs::read(folder.ledger()).unwrap();
    for old in [yesterday, killed] {
        fs::write(folder.ledger(), &old).unwrap();
        let missing = Error::Damaged {
            sequence: 4,
            what: "it is missing",
        };
        assert_eq!(verify(&folder.ledger()).err(), Some(missing.clone()));
        let opened = Ledger::open(&folder.ledger(), &terms(10.0));
        assert_eq!(opened.err(), Some(missing));
    }
    fs::write(folder.ledger(), &whole).unwrap();
    assert_eq!(spent(&open(&folder, 10.0)), 2);
    // Another history of the same length is another history, also under the same key.
    fs::write(folder.ledger(), &whole).unwrap();
    let mark = fs::read(folder.file("whit.ledger.mark")).unwrap();
    let ledger = open(&folder, 10.0);
    drop(reserve(&ledger).unwrap());
    drop(ledger);
    let further = fs::read(folder.file("whit.ledger.mark")).unwrap();
    fs::write(folder.ledger(), &whole).unwrap();
    fs::write(folder.file("whit.ledger.mark"), mark).unwrap();
    let ledger = open(&folder, 10.0);
    ledger.accept([1; 32]).unwrap();
    drop(ledger);
    fs::write(folder.file("whit.ledger.mark"), further).unwrap();
    let opened = Ledger::open(&folder.ledger(), &terms(10.0));
    assert!(matches!(opened, Err(Error::Damaged { sequence: 5, .. })));
    recover(&folder.ledger(), &terms(10.0)).unwrap();
    let ledger = open(&folder, 10.0);
    assert_eq!(spent(&ledger), 10);
}

#[test]
fn a_recovered_tail_is_named_and_closed() {
    let folder = Folder::new("tail");
    let ledger = open(&folder, 10.0);
    drop(reserve(&ledger).unwrap());
    drop(ledger);
    let yesterday = fs::read(folder.ledger()).unwrap();
    let ledger = open(&folder, 10.0);
    for _ in 0..5 {
        drop(reserve(&ledger).unwrap());
    }
    drop(ledger);
    fs::write(folder.ledger(), yesterday).unwrap();
    let recovered = recover(&folder.ledger(), &terms(10.0)).unwrap();
    assert_eq!((recovered.altered, recovered.missing), (0, 5));
    assert!(verify(&folder.ledger()).is_ok());
    let ledger = open(&folder, 10.0);
    assert_eq!(spent(&ledger), 10);
    // Neither is a ledger begun anew where there was one.
    drop(ledger);
    for file in ["whit.ledger", "whit.ledger.key"] {
        fs::remove_file(folder.file(file)).unwrap();
    }
    let anew = Ledger::open(&folder.ledger(), &terms(10.0));
    assert_eq!(anew.err(), Some(Error::Emptied));
}

/// A raise is lost, and with it the reason why so much could be spent. What was spent is counted all the same.
#[test]
fn spending_beyond_a_lost_raise_counts() {
    let folder = Folder::new("lost-raise");
    let ledger = open(&folder, 1.0);
    ledger
        .raise_cap(Level::Dataset, epsilon(5.0), Delta::ZERO)
        .unwrap();
    for _ in 0..5 {
        drop(reserve(&ledger).unwrap());
    }
    drop(ledger);
    let connection = Connection::open(folder.ledger()).unwrap();
    let damage = "UPDATE record SET body = replace(body, '5', '6') WHERE sequence = 3";
    connection.execute_batch(damage).unwrap();
    drop(connection);
    assert!(verify(&folder.ledger()).is_err());
    recover(&folder.ledger(), &terms(1.0)).unwrap();
    let owner = Ledger::attach(&folder.ledger()).unwrap();
    assert_eq!(spent(&owner), 5);
    owner
        .raise_cap(Level::Dataset, epsilon(6.0), Delta::ZERO)
        .unwrap();
    drop(reserve(&owner).unwrap());
    assert!(reserve(&owner).is_err());
}

/// An answer that was changed in the file while the ledger was open does not leave, and nothing else does any more.
#[test]
fn an_answer_that_was_changed_in_use_does_not_leave() {
    let folder = Folder::new("changed-answer");
    let ledger = open(&folder, 10.0);
    let key = Key::new("request");
    let permit = whit_accounting::reserve::Filter::new(whit_accounting::budget::Mode::Pure)
        .reserve(&one(), &shop(), &mut ledger.charge(key, [0; 32]))
        .unwrap();
    let redeemed = permit.redeem(&one()).unwrap();
    ledger.settle(redeemed, r#"{"rows":[[41]]}"#).unwrap();
    drop(reserve(&ledger).unwrap());
    assert!(matches!(
        ledger.find(key).unwrap(),
        Some(Found::Answered { .. })
    ));
    let other = Connection::open(folder.ledger()).unwrap();
    let change = "UPDATE record SET body = replace(body, '41', '42') WHERE kind = 'settle'";
    other.execute_batch(change).unwrap();
    assert!(matches!(ledger.find(key), Err(Error::Damaged { .. })));
    assert!(matches!(stop(&ledger), Error::Damaged { .. }));
}

/// A process that was opened with one catalog does not go on after the owner has accepted another.
#[test]
fn a_catalog_that_was_replaced_is_not_charged_for() {
    let folder = Folder::new("stale-catalog");
    let old = open(&folder, 10.0);
    drop(reserve(&old).unwrap());
    let owner = Ledger::attach(&folder.ledger()).unwrap();
    owner.accept([2; 32]).unwrap();
    assert_eq!(stop(&old), Error::CatalogChanged);
    // The owner's own handle has no catalog, and one that accepts knows what it accepts.
    drop(reserve(&owner).unwrap());
    owner.accept([1; 32]).unwrap();
    drop(reserve(&old).unwrap());
    old.accept([3; 32]).unwrap();
    drop(reserve(&old).unwrap());
    assert_eq!(spent(&old), 4);
}

#[test]
fn two_caps_for_one_level_are_refused() {
    for caps in [[1.0, 5.0], [5.0, 1.0], [5.0, 5.0]] {
        let mut twice = terms(caps[0]);
        twice.caps.extend(terms(caps[1]).caps);
        let folder = Folder::new("twice");
        let refused = Some(Error::CapTwice {
            level: Level::Dataset,
        });
        assert_eq!(Ledger::open(&folder.ledger(), &twice).err(), refused);
        drop(open(&folder, 10.0));
        assert_eq!(Ledger::open(&folder.ledger(), &twice).err(), refused);
        // Nothing was recorded by what was refused.
        assert_eq!(verify(&folder.ledger()).unwrap().head.sequence, 2);
    }
}

#[test]
fn handles_with_different_caps_share_the_lowest() {
    let folder = Folder::new("different-caps");
    let high = open(&folder, 10.0);
    drop(reserve(&high).unwrap());
    let low = open(&folder, 2.0);
    drop(reserve(&high).unwrap());
    assert!(reserve(&high).is_err() && reserve(&low).is_err());
    let reopened = Ledger::open(&folder.ledger(), &terms(10.0));
    assert!(matches!(reopened, Err(Error::CapRaised { .. })));
}
