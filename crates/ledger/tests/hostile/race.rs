//! Many clients at once, on several handles and from several processes: exactly as many succeed as there is budget for.

use std::process::{Command, Stdio};

use whit_accounting::budget::Mode;
use whit_accounting::reserve::{Filter, Refusal, Unreserved};
use whit_ledger::{Key, Ledger, verify};

use super::path::program;
use super::{Folder, one, open, shop, spent};

const ROUNDS: usize = 100;
const CLIENTS: usize = 64;
const HANDLES: usize = 4;
/// Statements of each client: 1,024 in a round, and budget for a hundred.
const STATEMENTS: usize = 16;
const CAP: u32 = 100;

/// How many of a client's distinct statements are granted. Every other answer says that the budget is used up.
fn client(ledger: &Ledger, client: usize) -> u32 {
    let mut granted = 0;
    for statement in 0..STATEMENTS {
        let (key, mut hash) = (Key::new(&format!("{client} {statement}")), [0; 32]);
        (hash[0], hash[1]) = (client as u8, statement as u8);
        let asked = Filter::new(Mode::Pure).reserve(&one(), &shop(), &mut ledger.charge(key, hash));
        match asked {
            Ok(_) => granted += 1,
            Err(Unreserved::Refused(Refusal::Exhausted { .. })) => {}
            Err(other) => panic!("{other}"),
        }
    }
    granted
}

#[test]
fn of_distinct_statements_exactly_as_many_succeed_as_there_is_budget_for() {
    for round in 0..ROUNDS {
        let folder = Folder::new(&format!("race-{round}"));
        let handles: Vec<Ledger> = (0..HANDLES)
            .map(|_| open(&folder, f64::from(CAP)))
            .collect();
        let granted: u32 = std::thread::scope(|scope| {
            let start = |number: usize| {
                let ledger = &handles[number % HANDLES];
                scope.spawn(move || client(ledger, number))
            };
            let clients: Vec<_> = (0..CLIENTS).map(start).collect();
            clients
                .into_iter()
                .map(|client| client.join().unwrap())
                .sum()
        });
        assert_eq!(granted, CAP, "round {round}");
        for handle in &handles {
            assert_eq!(spent(handle), u128::from(CAP));
        }
        drop(handles);
        assert_eq!(verify(&folder.ledger()).unwrap().reserved, u64::from(CAP));
    }
}

/// Somebody who looks sees one moment, and no damage, whatever is written meanwhile.
#[test]
fn who_looks_while_others_write_finds_nothing_wrong() {
    let folder = Folder::new("look");
    let ledger = open(&folder, 1e6);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|number| {
                let ledger = &ledger;
                scope.spawn(move || {
                    (0..20)
                        .map(|round| client(ledger, number + 8 * round))
                        .sum::<u32>()
                })
            })
            .collect();
        let mut before = 0;
        while !writers.iter().all(|writer| writer.is_finished()) {
            let report = verify(&folder.ledger()).unwrap();
            assert!(report.reserved >= before);
            before = report.reserved;
        }
        let granted: u32 = writers
            .into_iter()
            .map(|writer| writer.join().unwrap())
            .sum();
        assert_eq!(granted, 8 * 20 * STATEMENTS as u32);
    });
}

/// Eight processes of eight threads, none of which knows of the others. Each line that begins with `reserved` is a permit.
#[test]
fn processes_share_one_budget() {
    let rounds = if std::env::var_os("WHIT_LONG").is_some() {
        100
    } else {
        3
    };
    for round in 0..rounds {
        let folder = Folder::new(&format!("processes-{round}"));
        let start = |process: usize| {
            Command::new(program())
                .arg(folder.ledger())
                .args([&format!("p{process}"), "8", "100", "16"])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("the example `spend` is built together with this test")
        };
        let processes: Vec<_> = (0..8).map(start).collect();
        let mut permits = 0;
        for process in processes {
            let output = process.wait_with_output().unwrap();
            let said = String::from_utf8(output.stdout).unwrap();
            permits += said
                .lines()
                .filter(|line| line.starts_with("reserved"))
                .count();
            for line in String::from_utf8(output.stderr).unwrap().lines() {
                assert!(line.contains("left, and this costs"), "{line}");
            }
        }
        assert_eq!(permits, 100, "round {round}");
        assert_eq!(verify(&folder.ledger()).unwrap().reserved, 100);
    }
}
