//! Writes that the system refuses, at every length that the files may reach. What was heard is kept, and with room again the ledger
//! goes on.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use whit_ledger::verify;
use whit_ledger::verify::show;

use super::Folder;
use super::path::program;

/// What a process hears that may not make any file longer than so many blocks: longer writes are short, and then fail.
fn spend_within(ledger: &Path, blocks: u32, name: &str) -> (Vec<u64>, String) {
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    let output = Command::new("sh")
        .args(["-c", &script])
        .arg(program())
        .arg(ledger)
        .args([name, "2", "1e6", "40"])
        .output()
        .expect("the example `spend` is built together with this test");
    let said = String::from_utf8(output.stdout).unwrap();
    let reserved = said
        .lines()
        .filter_map(|line| line.strip_prefix("reserved "));
    let complaints = String::from_utf8(output.stderr).unwrap();
    (
        reserved.map(|number| number.parse().unwrap()).collect(),
        complaints,
    )
}

fn kept(ledger: &Path) -> BTreeSet<u64> {
    let records = show(ledger, 1, u64::MAX).unwrap_or_default().into_iter();
    let reserved = records.filter(|record| record.kind == "reserve");
    reserved.map(|record| record.sequence as u64).collect()
}

#[test]
#[cfg(unix)]
fn a_disk_that_is_full_at_any_length_loses_nothing_that_was_heard() {
    let (mut stopped, mut went_on) = (0, 0);
    for blocks in (0..40).chain([60, 80, 100, 150, 200, 300, 400, 600, 900]) {
        let folder = Folder::new(&format!("full-{blocks}"));
        let ledger = folder.ledger();
        let mut heard = BTreeSet::new();
        // From nothing, and then on what that has left, for a length that is a little further.
        for (round, limit) in [blocks, blocks + 1, blocks + 40].into_iter().enumerate() {
            let (reserved, complaints) = spend_within(&ledger, limit, &format!("full{round}"));
            stopped += u32::from(complaints.contains("the ledger cannot be used"));
            for number in reserved {
                assert!(heard.insert(number), "one charge for two permits");
            }
            let kept = kept(&ledger);
            assert!(heard.is_subset(&kept), "{limit} blocks: {complaints}");
            // Two threads, each of which may have been charged for what it did not hear of.
            assert!(
                kept.len() <= heard.len() + 2 * (round + 1),
                "{limit} blocks"
            );
        }
        let (reserved, complaints) = spend_within(&ledger, 1 << 20, "room");
        assert_eq!(
            (reserved.len(), complaints.as_str()),
            (80, ""),
            "{blocks} blocks"
        );
        went_on += 1;
        let report = verify(&ledger).unwrap();
        let spent = report.standings[0].spent.loss.units() >> 64;
        assert_eq!(spent, u128::from(report.reserved));
        assert!(report.reserved >= heard.len() as u64 + 80);
    }
    assert!(stopped > 40 && went_on > 40, "{stopped} {went_on}");
}
