//! Names, links, logs and locks: whoever comes another way must not find another budget.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use whit_ledger::{Error, Ledger, verify};

use super::{Folder, open, reserve, spent, stop, terms};

/// Cargo builds examples before it runs tests, beside them.
pub(crate) fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(Path::parent).unwrap();
    folder.join("examples").join("spend")
}

#[test]
#[cfg(unix)]
fn a_hard_link_is_no_second_budget() {
    let folder = Folder::new("hard-link");
    let first = open(&folder, 1e6);
    let link = folder.file("other.ledger");
    fs::hard_link(folder.ledger(), &link).unwrap();
    fs::hard_link(
        folder.file("whit.ledger.key"),
        folder.file("other.ledger.key"),
    )
    .unwrap();
    let second = Ledger::open(&link, &terms(1e6));
    assert_eq!(second.err(), Some(Error::Linked));
    assert_eq!(spend(&link, 1), 0, "nor from another process");
    assert_eq!(stop(&first), Error::Linked);
    drop(first);
    fs::remove_file(&link).unwrap();
    let again = open(&folder, 1e6);
    drop(reserve(&again).unwrap());
    assert_eq!(spent(&again), 1);
}

#[test]
#[cfg(unix)]
fn a_symbolic_link_leads_to_the_same_budget() {
    let (folder, other) = (Folder::new("symbolic"), Folder::new("symbolic-other"));
    let link = other.file("linked.ledger");
    std::os::unix::fs::symlink(folder.ledger(), &link).unwrap();
    let nothing = Ledger::open(&link, &terms(2.0));
    assert!(
        matches!(nothing, Err(Error::Failed { .. })),
        "a link to nothing"
    );
    let first = open(&folder, 2.0);
    let second = Ledger::open(&link, &terms(2.0)).unwrap();
    drop(reserve(&first).unwrap());
    drop(reserve(&second).unwrap());
    assert!(reserve(&first).is_err() && reserve(&second).is_err());
    assert_eq!(verify(&link), verify(&folder.ledger()));
}

#[test]
#[cfg(unix)]
fn a_log_that_is_removed_or_replaced_in_use_stops_the_handle() {
    for replaced in [false, true] {
        let folder = Folder::new(&format!("log-{replaced}"));
        let ledger = open(&folder, 10.0);
        drop(reserve(&ledger).unwrap());
        fs::remove_file(folder.file("whit.ledger-wal")).unwrap();
        if replaced {
            fs::write(folder.file("whit.ledger-wal"), "").unwrap();
        }
        assert!(matches!(stop(&ledger), Error::Failed { .. }));
        assert!(
            matches!(stop(&ledger), Error::Failed { .. }),
            "stopped is stopped"
        );
    }
}

/// A program that opens and closes the file by itself loses the locks that its own SQLite holds on it. Another process, done with the
/// ledger, may then take itself for the last one and remove the log into which the first goes on writing.
#[test]
#[cfg(unix)]
fn a_process_that_lost_its_locks_loses_no_charge() {
    let folder = Folder::new("locks");
    let ledger = open(&folder, 1e6);
    let mut permits = 0;
    for _ in 0..3 {
        permits += u64::from(reserve(&ledger).is_ok());
        drop(fs::read(folder.ledger()).unwrap());
        permits += spend(&folder.ledger(), 1);
    }
    drop(ledger);
    assert!(permits > 3, "{permits}");
    assert_eq!(verify(&folder.ledger()).unwrap().reserved, permits);
}

/// How many permits another process gets.
fn spend(ledger: &Path, requests: u32) -> u64 {
    let other = Command::new(program())
        .arg(ledger)
        .args(["other", "1", "1e6", &requests.to_string()])
        .output()
        .expect("the example `spend` is built together with this test");
    let said = String::from_utf8(other.stdout).unwrap();
    said.lines()
        .filter(|line| line.starts_with("reserved"))
        .count() as u64
}

#[test]
fn a_file_that_is_cut_off_is_never_a_smaller_spend() {
    let folder = Folder::new("cut");
    let ledger = open(&folder, 100.0);
    for _ in 0..60 {
        drop(reserve(&ledger).unwrap());
    }
    drop(ledger);
    let whole = fs::read(folder.ledger()).unwrap();
    let expected = verify(&folder.ledger()).unwrap();
    for length in (0..whole.len()).step_by(512) {
        fs::write(folder.ledger(), &whole[..length]).unwrap();
        assert!(
            verify(&folder.ledger()).is_err(),
            "verified after {length} bytes"
        );
        let opened = Ledger::open(&folder.ledger(), &terms(100.0));
        assert!(opened.is_err(), "opened after {length} bytes");
        for beside in ["whit.ledger-wal", "whit.ledger-shm"] {
            let _ = fs::remove_file(folder.file(beside));
        }
    }
    fs::write(folder.ledger(), &whole).unwrap();
    assert_eq!(verify(&folder.ledger()).unwrap(), expected);
}
