//! How long quantiles take if they are chosen together: `cargo run --release -p whit-mechanism --example joint_speed`.

use std::time::Instant;

use whit_core::{Epsilon, Probability, Ratio, ReplaceOne, Secret};
use whit_mechanism::{Bounds, Contribution, JointQuantiles, OsEntropy, Quantiles};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bounds = Bounds::new(-100.0, 100.0)?;
    let mut entropy = OsEntropy::new();
    for (rows, count, epsilon) in [
        (1000_u64, 3_u128, 1.0),
        (1000, 9, 1.0),
        (1_000_000, 3, 1.0),
        (1_000_000, 9, 1.0),
        (1_000_000, 20, 1.0),
        (1_000_000, 20, 10.0),
        (1_000_000, 20, 0.0001),
    ] {
        // A scrambled sequence without repetitions: as hard to sort as random numbers.
        let span = bounds.width();
        let value = |i: u64| bounds.lower() + (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) % span) as i64;
        let data: Vec<i64> = (0..rows).map(value).collect();
        let share = |i| Probability::new(Ratio::new(i, count + 1)?);
        let shares = (1..=count).map(share).collect::<Result<Vec<_>, _>>()?;
        let (row, epsilon) = (Contribution::Row, Epsilon::new(epsilon)?);
        let joint = JointQuantiles::<ReplaceOne>::new(&shares, bounds, row, epsilon)?;
        let apart = Quantiles::<ReplaceOne>::new(&shares, bounds, row, epsilon)?;
        let start = Instant::now();
        let _ = joint.release(Secret::new(data.clone()), &mut entropy)?;
        let together = start.elapsed();
        let start = Instant::now();
        let _ = apart.release(Secret::new(data.clone()), &mut entropy)?;
        let levels = start.elapsed();
        println!("{count} quantiles of {rows}, {epsilon:?}: {together:?}, in levels {levels:?}");
    }
    Ok(())
}
