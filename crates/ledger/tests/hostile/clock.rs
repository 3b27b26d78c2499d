//! No decision depends on a clock: no source asks for the time, and files from the past or the future are like any others.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use whit_ledger::verify;

use super::{Folder, open, reserve, spent};

#[test]
fn files_from_any_time_hold_the_same_budget() {
    let folder = Folder::new("times");
    let year = Duration::from_secs(365 * 24 * 3600);
    let epoch = SystemTime::UNIX_EPOCH;
    let mut expected = 0;
    // The order matters: to the far future, and back to before everything.
    for time in [epoch + 30 * year, epoch + 110 * year, epoch + year, epoch] {
        let ledger = open(&folder, 4.0);
        assert_eq!(spent(&ledger), expected);
        drop(reserve(&ledger).unwrap());
        expected += 1;
        drop(ledger);
        for file in fs::read_dir(&folder.0).unwrap() {
            let file = File::options().append(true).open(file.unwrap().path());
            file.unwrap().set_modified(time).unwrap();
        }
        assert_eq!(
            u128::from(verify(&folder.ledger()).unwrap().reserved),
            expected
        );
    }
    assert!(reserve(&open(&folder, 4.0)).is_err());
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn no_source_asks_for_the_time() {
    let ledger = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    sources(&ledger, &mut found);
    let accounting = ledger.join("../../accounting/src");
    let files = ["account.rs", "budget.rs", "memory.rs", "reserve.rs"];
    found.extend(files.map(|file| accounting.join(file)));
    assert!(found.len() > 15, "{found:?}");
    let clocks = [
        "SystemTime",
        "Instant",
        "chrono::",
        "jiff::",
        "strftime",
        "julianday",
        "unixepoch",
        "datetime(",
        "CURRENT_TIME",
        "CURRENT_DATE",
        ".modified()",
        ".created()",
        ".mtime()",
        ".ctime()",
    ];
    for file in found {
        let text = fs::read_to_string(&file).unwrap();
        for clock in clocks {
            assert!(!text.contains(clock), "{} names {clock}", file.display());
        }
    }
}
