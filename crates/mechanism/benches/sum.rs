//! A bounded sum of a hundred million rows in memory, beside a plain integer sum of the same rows. Run with `./bench sum`.

use std::hint::black_box;
use std::time::Instant;

use whit_core::AddRemove;
use whit_mechanism::{BoundedSum, Bounds, Contribution};

const ROWS: usize = 100_000_000;
const ROUNDS: usize = 7;

fn main() {
    let bounds = Bounds::new(0.0, 120.0).expect("a range");
    let sum = BoundedSum::<AddRemove>::new(bounds, Contribution::Row);
    // Some values lie outside the bounds, in no order that a processor could guess.
    let mut state = 1_u64;
    let rows: Vec<i64> = (0..ROWS)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 22) as i64 - (1 << 40)
        })
        .collect();
    let (mut plain, mut bounded) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        black_box(
            black_box(&rows)
                .iter()
                .fold(0_i64, |sum, row| sum.wrapping_add(*row)),
        );
        plain = plain.min(start.elapsed().as_secs_f64());
        let start = Instant::now();
        let _ = black_box(sum.aggregate_steps(black_box(&rows)).expose());
        bounded = bounded.min(start.elapsed().as_secs_f64());
    }
    let gigabytes = (ROWS * 8) as f64 / 1e9;
    println!("| sum of 10^8 rows | seconds | GB/s | ratio |");
    println!("| --- | --- | --- | --- |");
    println!(
        "| plain, wrapping | {plain:.4} | {:.1} | 1 |",
        gigabytes / plain
    );
    println!(
        "| bounded, exact in 128 bits | {bounded:.4} | {:.1} | {:.2} |",
        gigabytes / bounded,
        bounded / plain
    );
}
