//! `kill -9`, again and again: what was answered stays charged, what is charged stays charged.

use std::collections::BTreeSet;
use std::process::Child;
use std::time::Duration;

use super::*;

const CATALOG: &str = r#"
[dataset]
id = "killed"
[budget]
epsilon = 1000.0
[defaults]
epsilon = 0.015625
groups_per_unit = 1
rows_per_group = 1
[table.t]
source = "t.csv"
unit = "u"
[table.t.column]
x = { type = "int", range = [0, 10] }
"#;
/// A statement's epsilon: a power of two, so that sums are exact.
const EPSILON: f64 = 0.015625;

/// Moments to kill at. What a process has done until then is up to the machine, so a seed repeats nothing.
struct SplitMix(u64);

impl SplitMix {
    /// From 0 to 1.
    fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        f64::from((mixed >> 40) as u32) / f64::from(1_u32 << 24)
    }
}

/// Processes that run at the same time.
fn processes() -> u64 {
    if whit_testkit::long() { 32 } else { 8 }
}

/// Processes that the signal must have found alive.
fn kills() -> u64 {
    if whit_testkit::long() { 10_000 } else { 200 }
}

/// More are not started, and the budget is enough for them: of those that were started more than half are killed.
fn started_max() -> u64 {
    6 * kills()
}

/// Starts a statement that nobody asked before.
fn start(folder: &std::path::Path, number: u64) -> Child {
    let sql = format!("SELECT SUM(x) FROM t WHERE x < 5 OR x <> {number}");
    let mut command = program();
    command
        .args(["query", &sql, "--format", "json"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command.spawn().expect("the program starts")
}

/// The charges in the ledger, and the epsilon that it counts as spent.
fn verify(folder: &std::path::Path) -> (u64, f64) {
    let mut command = program();
    command
        .args(["ledger", "verify", "--format", "json"])
        .current_dir(folder);
    let report = answer(&finish(command, b""));
    let charges = report["charges"].as_u64().expect("a number");
    (charges, number(&report["levels"][0]["spent"], "epsilon"))
}

fn holds(folder: &std::path::Path, receipts: &BTreeSet<String>) {
    let mut command = program();
    command
        .args(["ledger", "verify", "--format", "json"])
        .current_dir(folder);
    for receipt in receipts {
        command.args(["--receipt", receipt]);
    }
    let report = answer(&finish(command, b""));
    assert_eq!(report["receipts_found"], receipts.len());
}

/// A folder with a catalog and a table, and no ledger yet.
fn fresh() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("whit.toml"), CATALOG).expect("written");
    fs::write(folder.path().join("t.csv"), "u,x\na,1\nb,2\nc,3\n").expect("written");
    folder
}

/// Processes that make a ledger together, and are killed at it: whatever they leave behind, the next one goes on with.
#[test]
fn a_ledger_that_was_being_made_goes_on() {
    let mut random = SplitMix(2);
    let mut usual = Duration::ZERO;
    for round in 0..kills() / 10 {
        let (folder, begin) = (fresh(), std::time::Instant::now());
        let mut children: Vec<Child> = match round {
            // One that is left alone shows how long it takes.
            0 => Vec::new(),
            _ => (1..4).map(|number| start(folder.path(), number)).collect(),
        };
        for child in &mut children {
            std::thread::sleep(usual.mul_f64(0.7 * random.share()));
            let _ = child.kill();
        }
        for child in children {
            child.wait_with_output().expect("it ends");
        }
        let last = start(folder.path(), 0).wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&last.stdout).into_owned();
        assert!(last.status.success(), "{said}");
        let (charges, spent) = verify(folder.path());
        assert!((1..=4).contains(&charges));
        assert_eq!(spent, charges as f64 * EPSILON);
        if round == 0 {
            usual = begin.elapsed();
        }
    }
}

#[test]
fn nothing_is_lost_and_nothing_is_spent_twice() {
    let folder = fresh();
    let folder = folder.path();
    let mut random = SplitMix(1);
    // One that is left alone makes the ledger, and shows how long a statement takes here.
    let begin = std::time::Instant::now();
    let first = start(folder, 0).wait_with_output().expect("it ends");
    assert!(first.status.success());
    let mut usual = begin.elapsed();
    let (mut started, mut answered, mut killed) = (1_u64, BTreeSet::new(), 0_u64);
    let (mut charges_before, mut spent_before) = verify(folder);
    while killed < kills() {
        assert!(
            started + processes() <= started_max(),
            "{killed} of {started} were killed"
        );
        let mut children: Vec<(Child, Duration)> = (0..processes())
            .map(|at| {
                // Several run at once, so that each takes longer than one alone.
                (
                    start(folder, started + at),
                    usual.mul_f64(4.0 * random.share()),
                )
            })
            .collect();
        children.sort_by_key(|(_, delay)| *delay);
        let begin = std::time::Instant::now();
        for (child, delay) in &mut children {
            // When a process dies is what this is about, and it must be any moment.
            std::thread::sleep(delay.saturating_sub(begin.elapsed()));
            let _ = child.kill();
        }
        let before = killed;
        for (child, _) in children {
            let output = child.wait_with_output().expect("it ends");
            started += 1;
            killed += u64::from(output.status.code().is_none());
            let text = String::from_utf8(output.stdout).expect("text");
            // A line that ends is an answer that somebody has read.
            if text.ends_with('\n') {
                let reply: Value = serde_json::from_str(&text).expect("JSON");
                let receipt = reply["receipt"]
                    .as_str()
                    .unwrap_or_else(|| panic!("{reply}"));
                answered.insert(receipt.to_owned());
            }
        }
        // A machine that was busy at first, and no longer is, would be too quick to be caught.
        if 2 * (killed - before) < processes() {
            usual = usual.mul_f64(0.7);
        }
        let (charges, spent) = verify(folder);
        assert!(
            charges >= charges_before && spent >= spent_before,
            "spending never shrinks"
        );
        assert!(charges <= started, "nobody pays twice");
        assert!(
            charges > answered.len() as u64,
            "who has an answer has paid"
        );
        assert_eq!(spent, charges as f64 * EPSILON, "every charge counts, once");
        (charges_before, spent_before) = (charges, spent);
    }
    // Receipts are compared a few hundred at a time, as many as a command line holds.
    for some in answered.iter().collect::<Vec<_>>().chunks(500) {
        holds(
            folder,
            &some.iter().map(|receipt| (*receipt).clone()).collect(),
        );
    }
    println!(
        "{started} started, {killed} killed, {charges_before} charged, {} answered",
        answered.len() + 1
    );
    assert!(!answered.is_empty(), "some must have come to an end");
}
