//! How many statements one session answers in a second: `./bench session`.
//!
//! Each of 256 threads asks tiny statements that nobody asked before, so each is parsed, priced, charged durably, executed and
//! stored. Printed are statements per second, and how long a caller waits; and the same for one caller alone.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a benchmark has files of its own and no caller"
)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use whit::OsEntropy;
use whit::session::{Catalog, Question, Session};

const CATALOG: &str = r#"
[dataset]
id = "tiny"
[budget]
epsilon = 1000.0
delta = 1e-6
[defaults]
epsilon = 0.0001
groups_per_unit = 1
rows_per_group = 1
[table.t]
source = "t.csv"
unit = "u"
[table.t.column]
x = { type = "int", range = [0, 100] }
"#;
const ROWS: u32 = 100;
const WAIT: Duration = Duration::from_secs(10);

fn main() {
    println!("| callers | statements | per second | median wait, ms | 99% wait, ms |");
    println!("| --- | --- | --- | --- | --- |");
    for callers in [1, 256] {
        let folder = tempfile::tempdir().unwrap();
        let rows = (0..ROWS).map(|row| format!("p{row},{row}\n"));
        let csv: String = std::iter::once("u,x\n".to_owned()).chain(rows).collect();
        std::fs::write(folder.path().join("t.csv"), csv).unwrap();
        let catalog = Catalog::parse(CATALOG).unwrap();
        let ledger = folder.path().join("whit.ledger");
        let session = Session::open(catalog, folder.path(), &ledger).unwrap();
        measure(&session, callers);
    }
}

fn measure(session: &Session, callers: usize) {
    let asked = AtomicU64::new(0);
    let begin = Instant::now();
    let ask = || {
        let mut waits = Vec::new();
        while begin.elapsed() < WAIT {
            let number = asked.fetch_add(1, Ordering::Relaxed);
            let sql = format!("SELECT COUNT(*) FROM t WHERE x <> {number}");
            let start = Instant::now();
            session
                .query(&Question::new(sql), &mut OsEntropy::new())
                .unwrap();
            waits.push(start.elapsed());
        }
        waits
    };
    let mut waits: Vec<Duration> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..callers).map(|_| scope.spawn(ask)).collect();
        let waits = threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap());
        waits.collect()
    });
    let seconds = begin.elapsed().as_secs_f64();
    waits.sort();
    let at = |share: f64| waits[((waits.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    println!(
        "| {callers} | {} | {:.0} | {:.1} | {:.1} |",
        waits.len(),
        waits.len() as f64 / seconds,
        at(0.5),
        at(0.99)
    );
}
