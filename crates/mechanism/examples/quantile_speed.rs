//! How long quantiles take: `cargo run --release -p whit-mechanism --example quantile_speed`.

use std::time::Instant;

use whit_core::{Epsilon, Probability, Ratio, ReplaceOne, Secret};
use whit_mechanism::{Bounds, Contribution, OsEntropy, Quantile, Quantiles};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bounds = Bounds::new(-100.0, 100.0)?;
    let epsilon = Epsilon::new(1.0)?;
    let mut entropy = OsEntropy::new();
    let median = Quantile::<ReplaceOne>::median(bounds, Contribution::Row, epsilon);
    for rows in [2_u64, 1000, 1_000_000, 10_000_000] {
        // A scrambled sequence without repetitions: as hard to sort as random numbers.
        let span = bounds.width();
        let value = |i: u64| bounds.lower() + (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) % span) as i64;
        let data: Vec<i64> = (0..rows).map(value).collect();
        let mut sorted = data.clone();
        let start = Instant::now();
        sorted.sort_unstable();
        let sort = start.elapsed();
        let (times, start) = ((2_000_000 / rows).max(1), Instant::now());
        for _ in 0..times {
            let _ = median.release(Secret::new(sorted.clone()), &mut entropy)?;
        }
        let chosen = start.elapsed() / times as u32;
        println!("median of {rows}: sort {sort:?}, all but the sort {chosen:?}");
        if rows > 1_000_000 {
            continue;
        }
        for count in [9_u128, 20] {
            let share = |i| Probability::new(Ratio::new(i, count + 1)?);
            let shares = (1..=count).map(share).collect::<Result<Vec<_>, _>>()?;
            let many = Quantiles::<ReplaceOne>::new(&shares, bounds, Contribution::Row, epsilon)?;
            let start = Instant::now();
            let _ = many.release(Secret::new(data.clone()), &mut entropy)?;
            println!("{count} quantiles of {rows}: {:?}", start.elapsed());
        }
    }
    Ok(())
}
