//! Spends until it is killed: `spend LEDGER NAME THREADS [CAP [REQUESTS]]`, or until each thread has sent its requests.
//!
//! Each line on stdout is something that a client has heard: `reserved SEQUENCE` with a permit, `settled RECEIPT` with an answer.
//! A test kills this program and compares the lines with the records.

use std::io::Write;
use std::path::Path;

use whit_accounting::budget::Mode;
use whit_accounting::reserve::{Account, Filter, Level};
use whit_core::{Delta, Epsilon, Event, Mechanism, Neighbours, Ratio};
use whit_ledger::{Key, Ledger, Terms};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, name, threads, rest @ ..] = arguments.as_slice() else {
        return Err("usage: spend LEDGER NAME THREADS [CAP [REQUESTS]]".into());
    };
    let threads: usize = threads.parse()?;
    let cap = rest.first().map_or(Ok(1e6), |cap| cap.parse())?;
    let requests: u64 = rest.get(1).map_or(Ok(u64::MAX), |most| most.parse())?;
    let terms = Terms {
        dataset: "shop".into(),
        catalog: [1; 32],
        mode: Mode::Pure,
        neighbours: Neighbours::AddRemove,
        caps: vec![(Level::Dataset, Epsilon::new(cap)?, Delta::ZERO)],
    };
    let ledger = Ledger::open(Path::new(path), &terms)?;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (ledger, name) = (&ledger, format!("{name}-{thread}"));
            scope.spawn(move || {
                if let Err(error) = spend(ledger, &name, requests) {
                    eprintln!("{error}");
                }
            });
        }
    });
    Ok(())
}

/// Distinct requests, one after the other.
fn spend(ledger: &Ledger, name: &str, requests: u64) -> Result<(), Box<dyn std::error::Error>> {
    let epsilon = Ratio::one();
    let event = Event::new(Neighbours::AddRemove, Mechanism::Pure { epsilon });
    let account = Account::new("shop")?.analyst(name)?;
    for request in 0..requests {
        let mut charge = ledger.charge(Key::new(&format!("{name}-{request}")), [0; 32]);
        let permit = Filter::new(Mode::Pure)
            .reserve(&event, &account, &mut charge)
            .map_err(|error| error.to_string())?;
        say(&format!("reserved {}", permit.sequence()))?;
        let receipt = ledger.settle(permit.redeem(&event)?, "{\"rows\":[]}")?;
        say(&format!("settled {receipt}"))?;
    }
    Ok(())
}

/// One line, whole or not at all.
fn say(line: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}
