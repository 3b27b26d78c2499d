//! Processes that are killed: what a client has heard is in the ledger, and what is in the ledger besides is at most what was in flight.
//! `WHIT_KILLS` says how often.
#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    reason = "a test says by its name what must not fail"
)]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use whit_ledger::verify::show;
use whit_ledger::{Ledger, Receipt, verify};

const PROCESSES: usize = 2;
const THREADS: usize = 4;

/// Cargo builds examples before it runs tests, beside them.
fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(Path::parent).unwrap();
    folder.join("examples").join("spend")
}

fn start(ledger: &Path, name: &str) -> Child {
    Command::new(program())
        .arg(ledger)
        .arg(name)
        .arg(THREADS.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("the example `spend` is built together with this test")
}

/// What the clients of all processes have heard.
#[derive(Default)]
struct Heard {
    reserved: BTreeSet<u64>,
    receipts: Vec<Receipt>,
    killed_threads: u64,
}

impl Heard {
    fn take(&mut self, line: &str) {
        match line.split_once(' ') {
            Some(("reserved", sequence)) => {
                let first = self.reserved.insert(sequence.parse().unwrap());
                assert!(first, "one charge for two permits");
            }
            Some(("settled", receipt)) => self.receipts.push(receipt.parse().unwrap()),
            _ => panic!("{line:?}"),
        }
    }
}

#[test]
fn nothing_that_was_heard_is_lost() {
    let folder = std::env::temp_dir().join(format!("whit-ledger-kill-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let ledger = folder.join("whit.ledger");
    let asked = std::env::var("WHIT_KILLS").ok();
    let long = std::env::var_os("WHIT_LONG").is_some();
    let kills: u64 = match asked.and_then(|kills| kills.parse().ok()) {
        Some(kills) => kills,
        None if long => 200,
        None => 20,
    };
    let mut heard = Heard::default();
    let mut spent_before = 0;
    for round in 0..kills {
        let names = (0..PROCESSES).map(|process| format!("p{round}-{process}"));
        let mut children: Vec<Child> = names.map(|name| start(&ledger, &name)).collect();
        let pipes: Vec<_> = children
            .iter_mut()
            .map(|child| child.stdout.take().unwrap())
            .collect();
        let mut lines: Vec<_> = pipes
            .into_iter()
            .map(|pipe| BufReader::new(pipe).lines())
            .collect();
        // A moment that the ledger chooses, another one each time: between none and some dozens of answers.
        for _ in 0..round * 7 % 61 {
            heard.take(&lines[0].next().unwrap().unwrap());
        }
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        // What was said before the kill was heard; a line that was cut off was not.
        for lines in &mut lines {
            let rest: Vec<String> = lines.map_while(Result::ok).collect();
            rest.iter()
                .filter(|line| is_whole(line))
                .for_each(|line| heard.take(line));
        }
        heard.killed_threads += (PROCESSES * THREADS) as u64;
        if round == 0 && !ledger.exists() {
            continue;
        }
        let Ok(report) = verify(&ledger) else {
            // Killed before the first record.
            assert!(heard.reserved.is_empty(), "{:?}", verify(&ledger).err());
            continue;
        };
        let in_flight = heard.killed_threads;
        let (reserved, settled) = (heard.reserved.len() as u64, heard.receipts.len() as u64);
        assert!((reserved..=reserved + in_flight).contains(&report.reserved));
        assert!((settled..=settled + in_flight).contains(&report.settled));
        let spent = report.standings[0].spent.loss.units() >> 64;
        assert_eq!(spent, u128::from(report.reserved), "each charge costs one");
        assert!(spent >= spent_before, "spend shrank");
        spent_before = spent;
    }
    let records = show(&ledger, 1, u64::MAX).unwrap();
    let kept: BTreeSet<u64> = records
        .iter()
        .filter(|record| record.kind == "reserve")
        .map(|record| record.sequence as u64)
        .collect();
    assert!(heard.reserved.is_subset(&kept), "a permit without a charge");
    assert!(
        heard.receipts.len() > 100,
        "{} answers",
        heard.receipts.len()
    );
    let ledger = Ledger::attach(&ledger).unwrap();
    for receipt in &heard.receipts {
        assert!(
            ledger.holds(*receipt).unwrap(),
            "a receipt without a record"
        );
    }
    drop(ledger);
    fs::remove_dir_all(&folder).unwrap();
}

fn is_whole(line: &str) -> bool {
    match line.split_once(' ') {
        Some(("settled", receipt)) => receipt.parse::<Receipt>().is_ok(),
        Some(("reserved", sequence)) => sequence.parse::<u64>().is_ok(),
        _ => false,
    }
}
