//! How long it takes to account for the votes of teachers, beside the published formulas in numpy and scipy.
//!
//! Run with `./bench pate`, which installs the peer. CPU time on one thread. 10,000 queries, 250 teachers, 10 classes: divergences of test and maximum at all
//! orders, the best order, and the smooth sensitivity at one order. The peer works query by query, as the published program does.

use std::io::Write;
use std::process::{Command, Stdio};

use whit_accounting::pate::smooth::{Shape, Smooth};
use whit_accounting::pate::{Conversion, Cost, Tally, Test, orders};
use whit_testkit::cpu_ns;

const QUERIES: usize = 10_000;
const TEACHERS: u64 = 250;
const CLASSES: usize = 10;
const ORDER: f64 = 12.0;
const BETA: f64 = 0.03;
const COST: Cost = Cost {
    test: Some(Test {
        threshold: 200.0,
        sigma: 150.0,
    }),
    sigma: 40.0,
};

/// From nearly even to unanimous, by a small generator of our own.
fn histograms() -> Vec<Vec<f64>> {
    let mut state = 1_u64;
    let mut uniform = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / 2_147_483_648.0
    };
    let row = |_| {
        let share = 0.2 + 0.8 * uniform();
        let mut counts = vec![0.0; CLASSES];
        for _ in 0..TEACHERS {
            let class = if uniform() < share {
                0
            } else {
                (uniform() * CLASSES as f64) as usize
            };
            counts[class] += 1.0;
        }
        counts
    };
    (0..QUERIES).map(row).collect()
}

/// Epsilon, expected answers and the smooth sensitivity.
fn account(rows: &[Vec<f64>]) -> (f64, f64, f64) {
    let mut tally = Tally::new(COST);
    for row in rows {
        tally.expected(row);
    }
    let shape = Shape {
        teachers: TEACHERS as usize,
        classes: CLASSES,
    };
    let smooth = Smooth::new(COST, shape, ORDER);
    let sum = smooth.sum(rows.iter().map(|row| (&row[..], true)), BETA);
    let epsilon = tally.epsilon(1e-5, Conversion::Published).epsilon;
    (
        epsilon,
        tally.answers(),
        sum.sensitivity * whit_accounting::pate::smooth::UNIT,
    )
}

fn ours(rows: &[Vec<f64>]) -> (f64, (f64, f64, f64)) {
    let mut times = Vec::new();
    let mut found = (0.0, 0.0, 0.0);
    for _ in 0..5 {
        let start = cpu_ns();
        found = std::hint::black_box(account(rows));
        times.push(cpu_ns() - start);
    }
    times.sort_by(f64::total_cmp);
    (times[2], found)
}

/// CPU seconds of the published formulas, and what they found.
fn peer(rows: &[Vec<f64>]) -> Option<[f64; 4]> {
    let python = std::env::var_os("WHIT_PEER_PYTHON")?;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peer_pate.py");
    let mut child = Command::new(python)
        .args([script, &ORDER.to_string(), &BETA.to_string()])
        .env("OMP_NUM_THREADS", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let mut stdin = child.stdin.take()?;
    let orders: Vec<String> = orders().iter().map(f64::to_string).collect();
    writeln!(stdin, "{}", orders.join(" ")).ok()?;
    for row in rows {
        let cells: Vec<String> = row.iter().map(f64::to_string).collect();
        writeln!(stdin, "{}", cells.join(" ")).ok()?;
    }
    drop(stdin);
    let output = child.wait_with_output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let fields: Vec<f64> = text
        .split_whitespace()
        .filter_map(|field| field.parse().ok())
        .collect();
    fields.try_into().ok()
}

fn main() {
    let rows = histograms();
    let (ns, found) = ours(&rows);
    println!("| what | seconds | epsilon | expected answers | smooth sensitivity |");
    println!("| --- | --- | --- | --- | --- |");
    let line = |who: &str, ns: f64, (epsilon, answers, sensitivity): (f64, f64, f64)| {
        println!(
            "| {who} | {:.3} | {epsilon:.6} | {answers:.4} | {sensitivity:.6} |",
            ns / 1e9
        );
    };
    line("whit", ns, found);
    let Some([seconds, epsilon, answers, sensitivity]) = peer(&rows) else {
        println!("\nThe peer is not installed: run ./bench pate.");
        return;
    };
    let published = (epsilon, answers, sensitivity);
    line(
        "published formulas, numpy and scipy",
        seconds * 1e9,
        published,
    );
    println!(
        "\nTimes faster: {:.0}. Asked for: a second.",
        seconds * 1e9 / ns
    );
}
