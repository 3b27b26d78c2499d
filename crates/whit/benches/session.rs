//! What one session does in a second, and what a tiny statement costs beyond the engine: `./bench session`.
//!
//! 1. Many threads share one session. Each charge is durable before a row is read, and settled afterwards; charges of callers who come
//!    at the same time share a write to the disk. First with a statistic of a few rows, so that charging is nearly all there is to do; then
//!    with statements that nobody asked before, each of them parsed, priced, planned and run by the engine.
//! 2. A tiny statement step by step, beside the same statement on the engine alone. Budgets are kept in memory there, so no disk is
//!    waited for. The least of many rounds counts, since whatever else the machine does only adds to it.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a benchmark has files of its own and no caller"
)]

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use datafusion::prelude::{CsvReadOptions, SessionContext};
use whit::accounting::budget::{Cap, Mode};
use whit::accounting::reserve::{Account, Filter, Memory};
use whit::session::{Asked, Catalog, PrivatePlan, Question, Request, Session};
use whit::stats::{self, Statistic};
use whit::{Confidence, Delta, Epsilon, OsEntropy};
use whit_core::Neighbours;
use whit_sql::{StablePlan, Statement, Tables, execute};

/// As the program `whit` has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CATALOG: &str = r#"
[dataset]
id = "shop"
[budget]
epsilon = 1000.0
delta = 1e-6
[defaults]
epsilon = 0.0001
groups_per_unit = 2
rows_per_group = 3
[table.orders]
source = "orders.csv"
unit = "person"
[table.orders.column]
plan = { values = ["free", "pro", "team"] }
amount = { type = "int", range = [0, 100] }
"#;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("orders.csv");
    let rows = (0..100).map(|at| {
        let plan = ["free", "pro", "team"][at % 3];
        format!("p{},{plan},place{},{at}\n", at % 40, at % 5)
    });
    let rows = format!("person,plan,place,amount\n{}", rows.collect::<String>());
    std::fs::write(&file, &rows).unwrap();

    println!("| callers | what | done | per second | median wait, ms | 99% wait, ms |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for callers in [1, 256] {
        let session = open(folder.path(), &format!("statistics{callers}"));
        in_a_second("statistics", callers, |_| {
            let epsilon = Epsilon::new(0.0001).unwrap();
            let mut request = stats::Request::new(Statistic::Count, epsilon);
            request.rows_per_unit = Some(3);
            let csv = || Ok(rows.as_bytes());
            let entropy = &mut OsEntropy::new();
            let measured = session.measure("orders", request, None, csv, entropy);
            assert!(!measured.unwrap().receipt.is_empty());
        });
    }
    for callers in [1, 256] {
        let session = open(folder.path(), &format!("statements{callers}"));
        in_a_second("statements", callers, |number| {
            let sql = format!("SELECT COUNT(*) FROM orders WHERE amount <> {number}");
            let reply = session.query(&Question::new(sql), &mut OsEntropy::new());
            assert!(!reply.unwrap().reused);
        });
    }
    beside_the_engine(folder.path(), &file);
}

fn open(folder: &Path, ledger: &str) -> Session {
    let catalog = Catalog::parse(CATALOG).unwrap();
    Session::open(catalog, folder, &folder.join(ledger)).unwrap()
}

const WAIT: Duration = Duration::from_secs(10);

/// Calls `ask` with ever new numbers from so many threads.
fn in_a_second(what: &str, callers: usize, ask: impl Fn(u64) + Sync) {
    let asked = AtomicU64::new(0);
    let begin = Instant::now();
    let caller = || {
        let mut waits = Vec::new();
        while begin.elapsed() < WAIT {
            let start = Instant::now();
            ask(asked.fetch_add(1, Ordering::Relaxed));
            waits.push(start.elapsed());
        }
        waits
    };
    let mut waits: Vec<Duration> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..callers).map(|_| scope.spawn(caller)).collect();
        let waits = threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap());
        waits.collect()
    });
    let seconds = begin.elapsed().as_secs_f64();
    waits.sort();
    let at = |share: f64| waits[((waits.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    println!(
        "| {callers} | {what} | {} | {:.0} | {:.1} | {:.1} |",
        waits.len(),
        waits.len() as f64 / seconds,
        at(0.5),
        at(0.99)
    );
}

const STATEMENTS: [(&str, f64); 4] = [
    ("SELECT COUNT(*) FROM orders", 0.0),
    (
        "SELECT plan, COUNT(*), SUM(amount), AVG(amount) FROM orders WHERE amount > 3 GROUP BY plan",
        0.0,
    ),
    (
        "SELECT plan, COUNT(*), SUM(amount) FROM orders GROUP BY plan ORDER BY plan",
        1e-9,
    ),
    ("SELECT place, COUNT(*) FROM orders GROUP BY place", 1e-9),
];
const ROUNDS: usize = 100;

fn beside_the_engine(folder: &Path, file: &Path) {
    let catalog = Catalog::parse(CATALOG).unwrap();
    let tables = Tables::open(&catalog, folder).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let context = SessionContext::new();
    let file = file.to_str().unwrap();
    let options = CsvReadOptions::new();
    runtime
        .block_on(context.register_csv("orders", file, options))
        .unwrap();
    println!(
        "\nA tiny statement, least of {ROUNDS}, in milliseconds:\n\n\
         | statement | parse | analyze | rewrite | reserve | execute | whit | plain | beyond |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    );
    for (sql, delta) in STATEMENTS {
        let mut least = [f64::INFINITY; 7];
        for _ in 0..ROUNDS {
            let start = Instant::now();
            let frame = async { context.sql(sql).await.unwrap().collect().await };
            runtime.block_on(frame).unwrap();
            let plain = start.elapsed().as_secs_f64() * 1e3;
            let times = steps(sql, delta, &catalog, &tables);
            for (least, time) in least.iter_mut().zip(times.into_iter().chain([plain])) {
                *least = least.min(time);
            }
        }
        let cells = least.map(|time| format!("{time:.2}")).join(" | ");
        let beyond = least[5] - least[6];
        println!("| `{sql}` | {cells} | {beyond:.2} |");
    }
}

/// The time of each step, and of all.
fn steps(sql: &str, delta: f64, catalog: &Catalog, tables: &Tables) -> [f64; 6] {
    let asked = Asked {
        epsilon: Some(Epsilon::new(0.5).unwrap()),
        delta: Some(Delta::new(delta).unwrap()),
        ..Asked::default()
    };
    let request = Request::new(asked, catalog).unwrap();
    let (epsilon, whole_delta) = catalog.budget();
    let cap = Cap::new(Mode::Zcdp, Neighbours::AddRemove, epsilon, whole_delta).unwrap();
    let mut journal = Memory::new("shop", cap);
    let account = Account::new("shop").unwrap();
    let filter = Filter::new(Mode::Zcdp).with_delta(request.delta());
    let mut entropy = OsEntropy::new();

    let mut times = vec![Instant::now()];
    let statement = Statement::parse(sql, tables).unwrap();
    times.push(Instant::now());
    let stable = StablePlan::analyze(statement, &request, tables).unwrap();
    times.push(Instant::now());
    let plan = PrivatePlan::rewrite(stable, &request, tables).unwrap();
    times.push(Instant::now());
    let permit = filter
        .reserve(plan.event(), &account, &mut journal)
        .unwrap();
    times.push(Instant::now());
    let (secrets, _settle) = execute(&plan, tables, permit, &mut entropy).unwrap();
    let confidence = Confidence::new(0.95).unwrap();
    secrets.release(confidence, &mut entropy).unwrap();
    times.push(Instant::now());
    let since = |from: usize, to: usize| (times[to] - times[from]).as_secs_f64() * 1e3;
    [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5)].map(|(from, to)| since(from, to))
}
