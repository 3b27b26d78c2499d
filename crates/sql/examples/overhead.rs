//! What a tiny private statement costs beyond the same statement on the engine alone, over the same CSV file.
//!
//! `cargo run --release -p whit-sql --example overhead` prints the least time of each step in milliseconds: what else the machine does
//! only adds to it. Budgets are kept in memory, so no disk is waited for.

use std::time::Instant;

use datafusion::prelude::{CsvReadOptions, SessionContext};
use whit_accounting::budget::{Cap, Mode};
use whit_accounting::reserve::{Account, Filter, Memory};
use whit_core::{Confidence, Epsilon, Neighbours};
use whit_mechanism::OsEntropy;
use whit_sql::{Asked, Catalog, PrivatePlan, Request, StablePlan, Statement, Tables, execute};

const CATALOG: &str = r#"
    [dataset]
    id = "shop"
    [budget]
    epsilon = 1000.0
    delta = 1e-6
    [defaults]
    epsilon = 0.5
    groups_per_unit = 2
    rows_per_group = 3
    [table.orders]
    source = "orders.csv"
    unit = "person"
    [table.orders.column]
    plan = { values = ["free", "pro", "team"] }
    amount = { type = "int", range = [0, 100] }
"#;

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

const ROUNDS: usize = 50;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("orders.csv");
    let rows = (0..100).map(|at| {
        let plan = ["free", "pro", "team"][at % 3];
        format!("p{},{plan},place{},{}\n", at % 40, at % 5, at)
    });
    #[expect(clippy::disallowed_methods, reason = "a file of the benchmark's own")]
    std::fs::write(
        &path,
        format!("person,plan,place,amount\n{}", rows.collect::<String>()),
    )?;

    let catalog = Catalog::parse(CATALOG)?;
    let tables = Tables::open(&catalog, directory.path())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let context = SessionContext::new();
    let file = path.to_str().ok_or("a path that is text")?;
    runtime.block_on(context.register_csv("orders", file, CsvReadOptions::new()))?;

    println!("Least of {ROUNDS}, in milliseconds:\n");
    println!(
        "| statement | parse | analyze | rewrite | reserve | execute | whit | plain | beyond |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for (sql, delta) in STATEMENTS {
        let (mut steps, mut plain) = (vec![Vec::new(); 6], Vec::new());
        for _ in 0..ROUNDS {
            for (step, time) in steps.iter_mut().zip(ours(sql, delta, &catalog, &tables)?) {
                step.push(time);
            }
            let start = Instant::now();
            runtime.block_on(async { context.sql(sql).await?.collect().await })?;
            plain.push(start.elapsed().as_secs_f64() * 1e3);
        }
        let steps: Vec<f64> = steps.iter().map(|times| least(times)).collect();
        let plain = least(&plain);
        let cells = steps.iter().map(|time| format!("{time:.2}"));
        let cells = cells.collect::<Vec<_>>().join(" | ");
        let beyond = steps[5] - plain;
        println!("| `{sql}` | {cells} | {plain:.2} | {beyond:.2} |");
    }
    Ok(())
}

/// The time of each step, and of all.
fn ours(
    sql: &str,
    delta: f64,
    catalog: &Catalog,
    tables: &Tables,
) -> Result<[f64; 6], Box<dyn std::error::Error>> {
    let asked = Asked {
        delta: Some(whit_core::Delta::new(delta)?),
        ..Asked::default()
    };
    let request = Request::new(asked, catalog)?;
    let (whole, whole_delta) = catalog.budget();
    let cap = Cap::new(
        Mode::Zcdp,
        Neighbours::AddRemove,
        Epsilon::new(whole.value())?,
        whole_delta,
    )?;
    let mut journal = Memory::new("shop", cap);
    let account = Account::new("shop")?;
    let mut times = vec![Instant::now()];
    let statement = Statement::parse(sql, tables)?;
    times.push(Instant::now());
    let stable = StablePlan::analyze(statement, &request, tables)?;
    times.push(Instant::now());
    let plan = PrivatePlan::rewrite(stable, &request, tables)?;
    times.push(Instant::now());
    let permit = Filter::new(Mode::Zcdp).reserve(plan.event(), &account, &mut journal)?;
    times.push(Instant::now());
    let mut entropy = OsEntropy::new();
    let (secrets, _settle) = execute(&plan, tables, permit, &mut entropy)?;
    secrets.release(Confidence::new(0.95)?, &mut entropy)?;
    times.push(Instant::now());
    let since = |from: usize, to: usize| (times[to] - times[from]).as_secs_f64() * 1e3;
    Ok([
        since(0, 1),
        since(1, 2),
        since(2, 3),
        since(3, 4),
        since(4, 5),
        since(0, 5),
    ])
}

fn least(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}
