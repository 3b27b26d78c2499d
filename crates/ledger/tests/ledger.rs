//! A ledger as programs use it.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test handles files, and says by its name what must not fail"
)]

use std::fs;
use std::path::PathBuf;

use whit_accounting::budget::Mode;
use whit_accounting::reserve::{Account, Filter, Level, Permit, Refusal, Unreserved};
use whit_core::{Delta, Epsilon, Event, Mechanism, Neighbours, Ratio};
use whit_ledger::verify::{Beside, Report, show};
use whit_ledger::{Error, Found, Key, Ledger, Receipt, Terms, recover, verify};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("whit-ledger-use-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn ledger(&self) -> PathBuf {
        self.0.join("whit.ledger")
    }

    fn key(&self) -> PathBuf {
        self.0.join("whit.ledger.key")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn epsilon(value: f64) -> Epsilon {
    Epsilon::new(value).unwrap()
}

fn terms(cap: f64) -> Terms {
    Terms {
        dataset: "shop".into(),
        catalog: [1; 32],
        mode: Mode::Pure,
        neighbours: Neighbours::AddRemove,
        caps: vec![(Level::Dataset, epsilon(cap), Delta::ZERO)],
    }
}

fn event(numerator: u128, denominator: u128) -> Event {
    let epsilon = Ratio::new(numerator, denominator).unwrap();
    Event::new(Neighbours::AddRemove, Mechanism::Pure { epsilon })
}

fn shop() -> Account {
    Account::new("shop").unwrap()
}

fn reserve(ledger: &Ledger, event: &Event, account: &Account) -> Result<Permit, Unreserved<Error>> {
    Filter::new(Mode::Pure).reserve(event, account, &mut ledger.charge_once())
}

fn spent(ledger: &Ledger) -> f64 {
    ledger.standings(&shop()).unwrap()[0].spent.loss.to_f64_up()
}

#[test]
fn what_was_spent_stays_spent() {
    let folder = Folder::new("stays");
    for round in 1..=4 {
        let ledger = Ledger::open(&folder.ledger(), &terms(1.0)).unwrap();
        drop(reserve(&ledger, &event(1, 4), &shop()).unwrap());
        assert_eq!(spent(&ledger), f64::from(round) / 4.0);
    }
    let ledger = Ledger::open(&folder.ledger(), &terms(1.0)).unwrap();
    let refused = reserve(&ledger, &event(1, 1 << 90), &shop());
    assert!(matches!(
        refused,
        Err(Unreserved::Refused(Refusal::Exhausted { .. }))
    ));
    drop(ledger);
    let report = verify(&folder.ledger()).unwrap();
    assert_eq!(
        (report.reserved, report.settled, report.head.sequence),
        (4, 0, 6)
    );
}

#[test]
fn every_level_is_charged_and_checked() {
    let folder = Folder::new("levels");
    let mut terms = terms(10.0);
    terms
        .caps
        .push((Level::Team("red".into()), epsilon(2.0), Delta::ZERO));
    terms
        .caps
        .push((Level::Analyst("ann".into()), epsilon(1.0), Delta::ZERO));
    let ledger = Ledger::open(&folder.ledger(), &terms).unwrap();
    let red = shop().team("red").unwrap();
    let ann = red.clone().analyst("ann").unwrap();
    let _ = reserve(&ledger, &event(1, 1), &ann).unwrap();
    let level = |refused: Result<Permit, Unreserved<Error>>| match refused {
        Err(Unreserved::Refused(Refusal::Exhausted { level, .. })) => level,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        level(reserve(&ledger, &event(1, 8), &ann)),
        Level::Analyst("ann".into())
    );
    let _ = reserve(&ledger, &event(1, 1), &red).unwrap();
    assert_eq!(
        level(reserve(&ledger, &event(1, 8), &red)),
        Level::Team("red".into())
    );
    // The same analyst in another team is the same analyst.
    let moved = shop().team("blue").unwrap().analyst("ann").unwrap();
    assert_eq!(
        level(reserve(&ledger, &event(1, 8), &moved)),
        Level::Analyst("ann".into())
    );
    assert_eq!(spent(&ledger), 2.0);
    assert_eq!(ledger.all_standings().unwrap().len(), 3);
}

#[test]
fn the_same_key_is_charged_once_and_gets_the_same_answer() {
    let folder = Folder::new("keys");
    let ledger = Ledger::open(&folder.ledger(), &terms(10.0)).unwrap();
    let (key, statement) = (Key::new("request 1"), [5; 32]);
    let ask = |ledger: &Ledger, key, statement| {
        let mut charge = ledger.charge(key, statement);
        Filter::new(Mode::Pure).reserve(&event(1, 2), &shop(), &mut charge)
    };
    assert_eq!(ledger.find(key).unwrap(), None);
    let permit = ask(&ledger, key, statement).unwrap();
    let sequence = permit.sequence();
    assert!(matches!(
        ledger.find(key).unwrap(),
        Some(Found::Lost { .. })
    ));
    let again = ask(&ledger, key, statement);
    assert_eq!(
        again.unwrap_err(),
        Unreserved::Journal(Error::Charged { sequence })
    );
    let other = ask(&ledger, key, [6; 32]);
    assert_eq!(
        other.unwrap_err(),
        Unreserved::Journal(Error::KeyReused { sequence })
    );
    let redeemed = permit.redeem(&event(1, 2)).unwrap();
    let stored = "{\"rows\": [[ 1, \"a,\\\"answer\\\":\" ]]}";
    let receipt = ledger.settle(redeemed, stored).unwrap();
    drop(ledger);
    let ledger = Ledger::open(&folder.ledger(), &terms(10.0)).unwrap();
    for _ in 0..1000 {
        assert!(ask(&ledger, key, statement).is_err());
    }
    let Some(Found::Answered {
        answer,
        receipt: found,
        ..
    }) = ledger.find(key).unwrap()
    else {
        panic!("the answer was stored");
    };
    assert_eq!((answer.as_str(), found), (stored, receipt));
    assert_eq!(spent(&ledger), 0.5);
    let _ = ask(&ledger, Key::new("request 2"), statement).unwrap();
    assert_eq!(spent(&ledger), 1.0);
}

#[test]
fn receipts_show_that_a_record_is_there() {
    let folder = Folder::new("receipts");
    drop(Ledger::open(&folder.ledger(), &terms(10.0)).unwrap());
    let yesterday = fs::read(folder.ledger()).unwrap();
    let mark = fs::read(folder.0.join("whit.ledger.mark")).unwrap();
    let ledger = Ledger::open(&folder.ledger(), &terms(10.0)).unwrap();
    let permit = reserve(&ledger, &event(1, 2), &shop()).unwrap();
    let receipt = ledger
        .settle(permit.redeem(&event(1, 2)).unwrap(), "{}")
        .unwrap();
    assert_eq!(ledger.head().unwrap(), receipt);
    assert!(ledger.holds(receipt).unwrap());
    assert_eq!(receipt.to_string().parse::<Receipt>().unwrap(), receipt);
    let forged = Receipt {
        hash: [0; 32],
        ..receipt
    };
    assert!(!ledger.holds(forged).unwrap());
    drop(ledger);
    // Yesterday's file is sound by itself; with yesterday's mark only the receipt tells.
    fs::write(folder.ledger(), yesterday).unwrap();
    fs::write(folder.0.join("whit.ledger.mark"), mark).unwrap();
    let rolled_back = Ledger::attach(&folder.ledger()).unwrap();
    assert!(!rolled_back.holds(receipt).unwrap());
}

#[test]
fn without_its_mark_a_ledger_is_not_used() {
    for (name, charged) in [("unmarked", true), ("unmarked-uncharged", false)] {
        let folder = Folder::new(name);
        let mark = folder.0.join("whit.ledger.mark");
        let ledger = Ledger::open(&folder.ledger(), &terms(10.0)).unwrap();
        if charged {
            let _ = reserve(&ledger, &event(1, 2), &shop()).unwrap();
        }
        drop(ledger);
        let kept = fs::read(&mark).unwrap();
        let open = || Ledger::open(&folder.ledger(), &terms(10.0)).err();
        let garbage: [&[u8]; 4] = [b"", b"garbage", &[0xff; 40], &kept[..kept.len() - 1]];
        for garbage in garbage {
            fs::write(&mark, garbage).unwrap();
            assert_eq!(open(), Some(Error::MarkMissing));
        }
        fs::remove_file(&mark).unwrap();
        assert_eq!(open(), Some(Error::MarkMissing));
        assert!(!mark.exists(), "looking makes none");
        assert_eq!(
            Ledger::attach(&folder.ledger()).err(),
            Some(Error::MarkMissing)
        );
        assert_eq!(verify(&folder.ledger()).err(), Some(Error::MarkMissing));
        // Put back, all is well; made anew, the budget is closed.
        fs::write(&mark, &kept).unwrap();
        assert_eq!(open(), None);
        assert_eq!(
            recover(&folder.ledger(), &terms(10.0)).err(),
            Some(Error::NothingToRecover)
        );
        fs::remove_file(&mark).unwrap();
        assert!(recover(&folder.ledger(), &terms(10.0)).unwrap().closed);
        let ledger = Ledger::open(&folder.ledger(), &terms(10.0)).unwrap();
        assert!(reserve(&ledger, &event(1, 2), &shop()).is_err());
        drop(ledger);
        assert_eq!(verify(&folder.ledger()).unwrap().mark, Beside::Fits);
    }
}

/// The name of a new key heals what a crash has left, and no ledger that was charged.
#[test]
fn a_charged_ledger_without_a_mark_is_never_one_that_is_being_made() {
    let folder = Folder::new("renamed-key");
    let ledger = Ledger::open(&folder.ledger(), &terms(10.0)).unwrap();
    let _ = reserve(&ledger, &event(1, 2), &shop()).unwrap();
    drop(ledger);
    fs::rename(folder.key(), folder.0.join("whit.ledger.key.new")).unwrap();
    fs::remove_file(folder.0.join("whit.ledger.mark")).unwrap();
    let opened = Ledger::open(&folder.ledger(), &terms(10.0)).err();
    assert_eq!(opened, Some(Error::MarkMissing));
}

/// Of handles that are open: one whose mark is gone charges nothing more, and one whose mark was replaced goes on with that.
#[test]
fn open_handles_need_the_mark_and_move_the_one_that_is_there() {
    let folder = Folder::new("mark-in-use");
    let mark = folder.0.join("whit.ledger.mark");
    let ledger = Ledger::open(&folder.ledger(), &terms(10.0)).unwrap();
    let _ = reserve(&ledger, &event(1, 2), &shop()).unwrap();
    let first = fs::read(&mark).unwrap();
    // Replaced by a copy of itself, as who restores one does.
    let copy = folder.0.join("copy");
    fs::write(&copy, &first).unwrap();
    fs::rename(&copy, &mark).unwrap();
    let _ = reserve(&ledger, &event(1, 4), &shop()).unwrap();
    assert_ne!(fs::read(&mark).unwrap(), first);
    fs::rename(&mark, &copy).unwrap();
    assert!(reserve(&ledger, &event(1, 8), &shop()).is_err());
    drop(ledger);
    fs::rename(&copy, &mark).unwrap();
    let ledger = Ledger::open(&folder.ledger(), &terms(10.0)).unwrap();
    assert_eq!(spent(&ledger), 0.75);
}

#[test]
fn a_copy_for_auditors_says_what_is_not_beside_it() {
    let folder = Folder::new("copied");
    drop(Ledger::open(&folder.ledger(), &terms(10.0)).unwrap());
    let found = |report: Report| (report.key, report.mark);
    assert_eq!(
        found(verify(&folder.ledger()).unwrap()),
        (Beside::Fits, Beside::Fits)
    );
    let key = fs::read(folder.key()).unwrap();
    fs::remove_file(folder.key()).unwrap();
    assert_eq!(
        found(verify(&folder.ledger()).unwrap()),
        (Beside::Missing, Beside::Fits)
    );
    fs::remove_file(folder.0.join("whit.ledger.mark")).unwrap();
    assert_eq!(
        found(verify(&folder.ledger()).unwrap()),
        (Beside::Missing, Beside::Missing)
    );
    // A key that cannot be opened is not lost, and nothing takes its place.
    fs::create_dir(folder.key()).unwrap();
    let opened = Ledger::open(&folder.ledger(), &terms(10.0));
    assert!(matches!(opened, Err(Error::Failed { .. })));
    let recovered = recover(&folder.ledger(), &terms(10.0));
    assert!(matches!(recovered, Err(Error::Failed { .. })));
    assert_eq!(
        found(verify(&folder.ledger()).unwrap()),
        (Beside::Unreadable, Beside::Missing)
    );
    fs::remove_dir(folder.key()).unwrap();
    fs::write(folder.key(), key).unwrap();
    assert_eq!(verify(&folder.ledger()).err(), Some(Error::MarkMissing));
}

#[test]
fn laxer_terms_are_refused_until_they_are_recorded() {
    let folder = Folder::new("terms");
    drop(Ledger::open(&folder.ledger(), &terms(1.0)).unwrap());
    let open = |terms: &Terms| Ledger::open(&folder.ledger(), terms).map(|_| ());
    assert_eq!(
        open(&terms(2.0)),
        Err(Error::CapRaised {
            level: Level::Dataset
        })
    );
    let changed = Terms {
        catalog: [2; 32],
        ..terms(1.0)
    };
    assert_eq!(open(&changed), Err(Error::CatalogChanged));
    let renamed = Terms {
        dataset: "shop2".into(),
        ..terms(1.0)
    };
    assert!(matches!(open(&renamed), Err(Error::OtherDataset { .. })));
    let other = Terms {
        neighbours: Neighbours::ReplaceOne,
        ..terms(1.0)
    };
    assert!(matches!(open(&other), Err(Error::OtherRelation { .. })));
    let zcdp = Terms {
        mode: Mode::Zcdp,
        ..terms(1.0)
    };
    assert!(matches!(open(&zcdp), Err(Error::OtherMode { .. })));

    let owner = Ledger::attach(&folder.ledger()).unwrap();
    let lower = owner.raise_cap(Level::Dataset, epsilon(0.5), Delta::ZERO);
    assert!(matches!(lower, Err(Error::CapDirection { .. })));
    owner
        .raise_cap(Level::Dataset, epsilon(2.0), Delta::ZERO)
        .unwrap();
    owner.accept([2; 32]).unwrap();
    let higher = owner.lower_cap(Level::Dataset, epsilon(3.0), Delta::ZERO);
    assert!(matches!(higher, Err(Error::CapDirection { .. })));
    drop(owner);
    assert_eq!(
        open(&Terms {
            catalog: [2; 32],
            ..terms(2.0)
        }),
        Ok(())
    );
    assert_eq!(open(&terms(2.0)), Err(Error::CatalogChanged));
    // A stricter cap needs nobody's word, and holds from then on.
    let strict = Terms {
        catalog: [2; 32],
        ..terms(0.25)
    };
    let ledger = Ledger::open(&folder.ledger(), &strict).unwrap();
    assert!(reserve(&ledger, &event(1, 2), &shop()).is_err());
    drop(ledger);
    let kinds: Vec<String> = show(&folder.ledger(), 1, u64::MAX)
        .unwrap()
        .into_iter()
        .map(|record| record.kind)
        .collect();
    assert_eq!(kinds, ["open", "cap", "cap", "accept", "cap"]);
}

#[test]
fn a_second_handle_sees_what_the_first_has_spent() {
    let folder = Folder::new("second");
    let first = Ledger::open(&folder.ledger(), &terms(2.0)).unwrap();
    let second = Ledger::open(&folder.ledger(), &terms(2.0)).unwrap();
    for ledger in [&first, &second, &second, &first] {
        drop(reserve(ledger, &event(1, 2), &shop()).unwrap());
    }
    assert!(reserve(&first, &event(1, 8), &shop()).is_err());
    assert!(reserve(&second, &event(1, 8), &shop()).is_err());
    // An answer can be settled by another handle than the one that was charged, and a raise is seen by all.
    second
        .raise_cap(Level::Dataset, epsilon(3.0), Delta::ZERO)
        .unwrap();
    let permit = reserve(&first, &event(1, 2), &shop()).unwrap();
    second
        .settle(permit.redeem(&event(1, 2)).unwrap(), "1")
        .unwrap();
    assert_eq!((spent(&first), spent(&second)), (2.5, 2.5));
}

#[test]
fn the_key_is_for_its_owner_alone() {
    let folder = Folder::new("key");
    drop(Ledger::open(&folder.ledger(), &terms(1.0)).unwrap());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(folder.key()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert!(!folder.0.join("whit.ledger.key.new").exists());
}

#[test]
fn a_deleted_ledger_is_not_a_new_one() {
    let folder = Folder::new("deleted");
    drop(Ledger::open(&folder.ledger(), &terms(1.0)).unwrap());
    fs::remove_file(folder.ledger()).unwrap();
    assert_eq!(
        Ledger::open(&folder.ledger(), &terms(1.0)).err(),
        Some(Error::Emptied)
    );
    assert_eq!(verify(&folder.ledger()).err(), Some(Error::Emptied));
    fs::write(folder.ledger(), "").unwrap();
    assert_eq!(
        Ledger::open(&folder.ledger(), &terms(1.0)).err(),
        Some(Error::Emptied)
    );
    fs::remove_file(folder.ledger()).unwrap();
    fs::remove_file(folder.key()).unwrap();
    assert_eq!(verify(&folder.ledger()).err(), Some(Error::Emptied));
    fs::remove_file(folder.0.join("whit.ledger.mark")).unwrap();
    assert_eq!(Ledger::attach(&folder.ledger()).err(), Some(Error::Missing));
    assert!(Ledger::open(&folder.ledger(), &terms(1.0)).is_ok());
}

#[test]
fn a_crash_while_a_ledger_is_made_leaves_one_that_opens() {
    let folder = Folder::new("birth");
    drop(Ledger::open(&folder.ledger(), &terms(1.0)).unwrap());
    // After the commit, before the key got its name.
    let waiting = folder.0.join("whit.ledger.key.new");
    fs::rename(folder.key(), &waiting).unwrap();
    drop(Ledger::open(&folder.ledger(), &terms(1.0)).unwrap());
    assert!(folder.key().exists() && !waiting.exists());
    // The same, before there was a mark, or with half of one.
    let mark = folder.0.join("whit.ledger.mark");
    for half in [None, Some(""), Some("00000000000000000002-ab")] {
        fs::rename(folder.key(), &waiting).unwrap();
        fs::remove_file(&mark).unwrap();
        if let Some(half) = half {
            fs::write(&mark, half).unwrap();
        }
        assert_eq!(
            recover(&folder.ledger(), &terms(1.0)).err(),
            Some(Error::NothingToRecover)
        );
        drop(Ledger::open(&folder.ledger(), &terms(1.0)).unwrap());
        assert!(folder.key().exists() && !waiting.exists());
        assert_eq!(verify(&folder.ledger()).unwrap().mark, Beside::Fits);
    }
    // Before the commit: a key that nothing names, and no records.
    let other = Folder::new("birth-early");
    fs::write(other.0.join("whit.ledger.key.new"), "whit ledger key 1\n").unwrap();
    assert!(Ledger::open(&other.ledger(), &terms(1.0)).is_ok());
}

#[test]
fn a_file_that_is_replaced_in_use_stops_the_handle() {
    let folder = Folder::new("replaced");
    let ledger = Ledger::open(&folder.ledger(), &terms(10.0)).unwrap();
    let _ = reserve(&ledger, &event(1, 1), &shop()).unwrap();
    fs::rename(folder.ledger(), folder.0.join("elsewhere")).unwrap();
    assert!(matches!(
        reserve(&ledger, &event(1, 1), &shop()),
        Err(Unreserved::Journal(Error::Failed { .. }))
    ));
    fs::rename(folder.0.join("elsewhere"), folder.ledger()).unwrap();
    assert!(
        reserve(&ledger, &event(1, 1), &shop()).is_err(),
        "stopped is stopped"
    );
    drop(ledger);
    assert_eq!(
        spent(&Ledger::open(&folder.ledger(), &terms(10.0)).unwrap()),
        1.0
    );
}

fn damage(folder: &Folder, statement: &str) {
    let connection = rusqlite::Connection::open(folder.ledger()).unwrap();
    connection.execute_batch(statement).unwrap();
}

#[test]
fn recovery_closes_the_budget_and_is_recorded() {
    for (statement, altered, missing) in [
        ("UPDATE record SET body = '{}' WHERE sequence = 4", 1, 0),
        ("DELETE FROM record WHERE sequence = 4", 0, 1),
        ("DELETE FROM record WHERE sequence > 3", 0, 2),
        ("UPDATE record SET body = '{}' WHERE sequence = 5", 1, 0),
        ("UPDATE record SET body = '{}' WHERE sequence = 1", 5, 0),
        ("UPDATE head SET signature = zeroblob(64)", 0, 0),
        ("DELETE FROM head", 0, 0),
    ] {
        let folder = Folder::new("recover");
        let ledger = Ledger::open(&folder.ledger(), &terms(10.0)).unwrap();
        for _ in 0..3 {
            drop(reserve(&ledger, &event(1, 1), &shop()).unwrap());
        }
        drop(ledger);
        assert_eq!(
            recover(&folder.ledger(), &terms(10.0)).err(),
            Some(Error::NothingToRecover)
        );
        damage(&folder, statement);
        let stopped = Ledger::open(&folder.ledger(), &terms(10.0)).err();
        assert!(
            matches!(stopped, Some(Error::Damaged { .. })),
            "{statement}: {stopped:?}"
        );
        let recovered = recover(&folder.ledger(), &terms(10.0)).unwrap();
        assert_eq!(
            (recovered.altered, recovered.missing, recovered.closed),
            (altered, missing, true),
            "{statement}"
        );
        let ledger = Ledger::attach(&folder.ledger()).unwrap();
        assert_eq!(spent(&ledger), 10.0, "{statement}");
        assert!(reserve(&ledger, &event(1, 1 << 60), &shop()).is_err());
        ledger
            .raise_cap(Level::Dataset, epsilon(11.0), Delta::ZERO)
            .unwrap();
        drop(reserve(&ledger, &event(1, 1), &shop()).unwrap());
        assert!(ledger.holds(recovered.receipt).unwrap());
        drop(ledger);
        assert!(verify(&folder.ledger()).is_ok());
        // The damage that was named is the damage that is allowed.
        damage(
            &folder,
            "UPDATE record SET body = '{\"x\":1}' WHERE sequence = 3",
        );
        assert!(verify(&folder.ledger()).is_err());
    }
}

#[test]
fn a_cap_that_was_lost_is_not_taken_from_the_catalog() {
    let folder = Folder::new("lost-cap");
    drop(Ledger::open(&folder.ledger(), &terms(10.0)).unwrap());
    damage(&folder, "UPDATE record SET body = '{}' WHERE sequence = 2");
    recover(&folder.ledger(), &terms(10.0)).unwrap();
    for cap in [1.0, 10.0, 20.0] {
        let opened = Ledger::open(&folder.ledger(), &terms(cap)).err();
        assert_eq!(opened, Some(Error::NoCap));
    }
    let owner = Ledger::attach(&folder.ledger()).unwrap();
    owner
        .raise_cap(Level::Dataset, epsilon(12.0), Delta::ZERO)
        .unwrap();
    assert!(reserve(&owner, &event(3, 1), &shop()).is_err());
    assert!(reserve(&owner, &event(2, 1), &shop()).is_ok());
}

#[test]
fn a_lost_key_is_replaced_and_the_budget_is_closed() {
    let folder = Folder::new("lost-key");
    let ledger = Ledger::open(&folder.ledger(), &terms(10.0)).unwrap();
    drop(reserve(&ledger, &event(1, 1), &shop()).unwrap());
    drop(ledger);
    let before = verify(&folder.ledger()).unwrap().public_key;
    fs::remove_file(folder.key()).unwrap();
    assert!(
        verify(&folder.ledger()).is_ok(),
        "an auditor needs no secret"
    );
    assert_eq!(
        Ledger::open(&folder.ledger(), &terms(10.0)).err(),
        Some(Error::KeyMissing)
    );
    let recovered = recover(&folder.ledger(), &terms(10.0)).unwrap();
    assert_eq!(
        (recovered.altered, recovered.missing, recovered.closed),
        (0, 0, true)
    );
    let ledger = Ledger::open(&folder.ledger(), &terms(10.0)).unwrap();
    assert_eq!(spent(&ledger), 10.0);
    assert_ne!(verify(&folder.ledger()).unwrap().public_key, before);
}

#[test]
fn the_key_of_another_ledger_is_refused() {
    let (one, two) = (Folder::new("key-one"), Folder::new("key-two"));
    drop(Ledger::open(&one.ledger(), &terms(1.0)).unwrap());
    drop(Ledger::open(&two.ledger(), &terms(1.0)).unwrap());
    fs::copy(two.key(), one.key()).unwrap();
    assert_eq!(
        Ledger::open(&one.ledger(), &terms(1.0)).err(),
        Some(Error::KeyMismatch)
    );
    assert_eq!(verify(&one.ledger()).err(), Some(Error::KeyMismatch));
}

#[test]
fn answers_that_cannot_be_stored_do_not_leave() {
    let folder = Folder::new("answers");
    let ledger = Ledger::open(&folder.ledger(), &terms(10.0)).unwrap();
    let redeem = || {
        reserve(&ledger, &event(1, 1), &shop())
            .unwrap()
            .redeem(&event(1, 1))
            .unwrap()
    };
    assert_eq!(ledger.settle(redeem(), "{").err(), Some(Error::NotJson));
    assert!(ledger.settle(redeem(), "{}").is_ok());
    // A charge of another ledger is none of this one.
    let other = Folder::new("answers-other");
    let strange = Ledger::open(&other.ledger(), &terms(10.0)).unwrap();
    let mut last = redeem();
    for _ in 0..5 {
        last = redeem();
    }
    assert!(matches!(
        strange.settle(last, "{}"),
        Err(Error::NotReserved { .. })
    ));
}

#[test]
fn a_failure_stops_all_charges_until_the_owner_has_looked() {
    let folder = Folder::new("suspend");
    let ledger = Ledger::open(&folder.ledger(), &terms(1.0)).unwrap();
    assert_eq!(ledger.resume(), Err(Error::NotSuspended));
    let nothing = ledger.suspend(7);
    assert_eq!(nothing, Err(Error::NotReserved { sequence: 7 }));
    let permit = reserve(&ledger, &event(1, 4), &shop()).unwrap();
    let sequence = permit.sequence();
    ledger.suspend(sequence).unwrap();
    // The other handle is another process, and so is one that comes later.
    let other = Ledger::open(&folder.ledger(), &terms(1.0)).unwrap();
    for handle in [&ledger, &other] {
        let refused = reserve(handle, &event(1, 4), &shop()).unwrap_err();
        assert_eq!(refused, Unreserved::Journal(Error::Suspended { sequence }));
    }
    assert_eq!(verify(&folder.ledger()).unwrap().suspended, Some(sequence));
    other.resume().unwrap();
    let _permit = reserve(&ledger, &event(1, 4), &shop()).unwrap();
    assert_eq!(spent(&ledger), 0.5);
    assert_eq!(verify(&folder.ledger()).unwrap().suspended, None);
}
