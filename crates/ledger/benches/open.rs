//! How long a ledger of a million records takes to verify, and to open. Run with `cargo bench -p whit-ledger --bench open`.
//! `WHIT_BENCH_DIR` says where the ledger is made, `WHIT_BENCH_KEEP` leaves it there, and `WHIT_BENCH_LEDGER` takes one that was
//! left.

use std::path::{Path, PathBuf};
use std::time::Instant;

use whit_accounting::budget::Mode;
use whit_accounting::reserve::{Account, Filter, Level};
use whit_core::{Delta, Epsilon, Event, Mechanism, Neighbours, Ratio, Scale};
use whit_ledger::{Key, Ledger, Terms, verify};

const RECORDS: u64 = 1_000_000;
const CALLERS: u64 = 512;

fn main() {
    let folder = std::env::var_os("WHIT_BENCH_DIR").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target"),
        PathBuf::from,
    );
    let folder = folder.join(format!("ledger-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let kept = std::env::var_os("WHIT_BENCH_LEDGER").map(PathBuf::from);
    let path = kept.clone().unwrap_or_else(|| folder.join("whit.ledger"));
    let terms = Terms {
        dataset: "shop".into(),
        catalog: [1; 32],
        mode: Mode::Zcdp,
        neighbours: Neighbours::AddRemove,
        caps: vec![(
            Level::Dataset,
            Epsilon::new(1e9).expect("finite"),
            Delta::new(1e-6).expect("below one"),
        )],
    };
    if kept.is_none() {
        fill(&path, &terms);
    }
    let size = std::fs::metadata(&path).expect("there").len();
    println!("| {RECORDS} records, {} MB | seconds |", size >> 20);
    println!("| --- | --- |");
    for _ in 0..3 {
        let start = Instant::now();
        let report = verify(&path).expect("sound");
        println!("| verify | {:.2} |", start.elapsed().as_secs_f64());
        assert!(report.head.sequence >= RECORDS);
        let start = Instant::now();
        let ledger = Ledger::open(&path, &terms).expect("opens");
        println!("| open | {:.2} |", start.elapsed().as_secs_f64());
        drop(ledger);
    }
    if std::env::var_os("WHIT_BENCH_KEEP").is_none() {
        std::fs::remove_dir_all(&folder).expect("removable");
    }
}

/// Half reservations with keys, half settlements.
fn fill(path: &Path, terms: &Terms) {
    let ledger = Ledger::open(path, terms).expect("opens");
    let spend = |caller: u64| {
        let ledger = &ledger;
        move || {
            let mechanism = Mechanism::DiscreteGaussian {
                scale: Scale::new(Ratio::from(1000_u64)).expect("in range"),
                sensitivity_l2_square: Ratio::one(),
                coordinates: 12,
            };
            let event = Event::new(Neighbours::AddRemove, mechanism);
            let account = Account::new("shop").and_then(|shop| shop.team("red")?.analyst("ann"));
            let account = account.expect("names");
            for request in 0..RECORDS / CALLERS / 2 + 1 {
                let mut charge = ledger.charge(Key::new(&format!("{caller}-{request}")), [0; 32]);
                let permit = Filter::new(Mode::Zcdp).reserve(&event, &account, &mut charge);
                let redeemed = permit.expect("room").redeem(&event).expect("its event");
                let answer = "{\"columns\":[{\"name\":\"n\",\"type\":\"double\",\"noisy\":true}],\"rows\":[[12345.6]],\"intervals\":[[[12000.1,12500.2]]]}";
                ledger.settle(redeemed, answer).expect("kept");
            }
        }
    };
    std::thread::scope(|scope| {
        for caller in 0..CALLERS {
            scope.spawn(spend(caller));
        }
    });
}
