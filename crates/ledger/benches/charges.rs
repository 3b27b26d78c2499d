//! Charges per second with many callers of one handle, and how long each waits. Run with `cargo bench -p whit-ledger --bench charges`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use whit_accounting::budget::Mode;
use whit_accounting::reserve::{Account, Filter, Level};
use whit_core::{Delta, Epsilon, Event, Mechanism, Neighbours, Ratio};
use whit_ledger::{Key, Ledger, Terms};

const SECONDS: u64 = 10;

fn main() {
    // Beside the program, so that the disk is measured and not memory; elsewhere with WHIT_BENCH_DIR.
    let folder = std::env::var_os("WHIT_BENCH_DIR").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target"),
        PathBuf::from,
    );
    let folder = folder.join(format!("ledger-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    println!("| callers | charges/s | p50 ms | p99 ms | most ms |");
    println!("| --- | --- | --- | --- | --- |");
    for callers in [1, 16, 256] {
        let path = folder.join(format!("ledger-{callers}"));
        measure(callers, &path);
    }
    std::fs::remove_dir_all(&folder).expect("removable");
}

fn measure(callers: usize, path: &std::path::Path) {
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
    let ledger = Ledger::open(path, &terms).expect("opens");
    let start = Instant::now();
    let call = |caller: usize| {
        let ledger = &ledger;
        move || {
            let epsilon = Ratio::new(1, 1000).expect("a thousand");
            let event = Event::new(Neighbours::AddRemove, Mechanism::Pure { epsilon });
            let account =
                Account::new("shop").and_then(|shop| shop.analyst(&format!("a{}", caller % 7)));
            let account = account.expect("names");
            let mut waits = Vec::new();
            while start.elapsed() < Duration::from_secs(SECONDS) {
                let key = Key::new(&format!("{caller}-{}", waits.len()));
                let asked = Instant::now();
                let mut charge = ledger.charge(key, [0; 32]);
                let permit = Filter::new(Mode::Zcdp).reserve(&event, &account, &mut charge);
                waits.push(asked.elapsed());
                let redeemed = permit.expect("room").redeem(&event).expect("its event");
                ledger
                    .settle(redeemed, "{\"rows\":[[12345.6]]}")
                    .expect("kept");
            }
            waits
        }
    };
    let mut waits: Vec<Duration> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..callers)
            .map(|caller| scope.spawn(call(caller)))
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().expect("no panic"))
            .collect()
    });
    let seconds = start.elapsed().as_secs_f64();
    waits.sort();
    let at = |share: f64| waits[((waits.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    println!(
        "| {callers} | {:.0} | {:.1} | {:.1} | {:.1} |",
        waits.len() as f64 / seconds,
        at(0.5),
        at(0.99),
        at(1.0)
    );
}
