//! How far answers are off, beside Google's library and OpenDP on the same data and epsilon. Run with `./bench utility`, which
//! installs the peers. Root mean square error over many runs; every library gets the same rows, bounds and epsilon.

use std::process::Command;

use whit_core::{AddRemove, Confidence, Epsilon, L1, Probability, Ratio, Scale, Sensitivity};
use whit_mechanism::bounded_variance::VarianceNoise;
use whit_mechanism::{
    BoundedMean, BoundedVariance, Bounds, Contribution, Grid, Noise, OsEntropy, Quantile,
};

const RUNS: usize = 2000;
const ROWS: usize = 2000;
const RANGE: (f64, f64) = (0.0, 100.0);

/// The same rows everywhere: a deterministic, skewed sample of whole numbers in the range.
fn rows() -> Vec<f64> {
    let mut state = 12345_u64;
    (0..ROWS)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let uniform = (state >> 11) as f64 / 2_f64.powi(53);
            (17.0 + 70.0 * uniform * uniform).floor()
        })
        .collect()
}

fn rms(truth: f64, mut answer: impl FnMut() -> f64) -> f64 {
    let square = (0..RUNS).map(|_| (answer() - truth).powi(2)).sum::<f64>();
    (square / RUNS as f64).sqrt()
}

/// Laplace noise for one of `parts` that share an epsilon.
fn laplace(sensitivity: &Sensitivity<L1, AddRemove>, epsilon: f64, parts: u64) -> Noise {
    let each = Ratio::from_f64(epsilon).expect("finite");
    let scale = &sensitivity
        .bound()
        .checked_div(&each)
        .expect("epsilon is positive")
        * &Ratio::from(parts);
    Noise::Laplace(Scale::new(scale).expect("in range"))
}

fn mean_error(rows: &[f64], epsilon: f64) -> f64 {
    let truth = rows.iter().sum::<f64>() / rows.len() as f64;
    let bounds = Bounds::new(RANGE.0, RANGE.1).expect("a range");
    let mean = BoundedMean::<AddRemove>::new(bounds, Contribution::Row);
    let sum = laplace(&mean.sum_sensitivity_l1(), epsilon, 2);
    let count = laplace(&mean.count().sensitivity_l1(), epsilon, 2);
    let noisy = mean.with_noise(&sum, Some(&count)).expect("in range");
    let confidence = Confidence::new(0.95).expect("a unit");
    rms(truth, || {
        let parts = mean.aggregate(rows.iter().copied());
        let release = noisy.release(parts, confidence, &mut OsEntropy::new());
        release.expect("entropy").value().answer
    })
}

fn variance_error(rows: &[f64], epsilon: f64) -> f64 {
    let mean = rows.iter().sum::<f64>() / rows.len() as f64;
    let truth = rows.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / rows.len() as f64;
    let bounds = Bounds::new(RANGE.0, RANGE.1).expect("a range");
    let variance = BoundedVariance::<AddRemove>::new(bounds, Contribution::Row);
    let noise = VarianceNoise {
        sum: laplace(&variance.sum_sensitivity_l1(), epsilon, 3),
        squares: laplace(&variance.square_sensitivity_l1(), epsilon, 3),
        count: Some(laplace(&variance.count().sensitivity_l1(), epsilon, 3)),
    };
    let noisy = variance.with_noise(&noise).expect("in range");
    let confidence = Confidence::new(0.95).expect("a unit");
    rms(truth, || {
        let parts = variance.aggregate(rows.iter().copied());
        let release = noisy.release(parts, confidence, &mut OsEntropy::new());
        release.expect("entropy").value().answer
    })
}

/// The mean distance, as a share of the rows, of the released value's rank from the middle.
fn median_error(rows: &[f64], epsilon: f64) -> f64 {
    // OpenDP chooses among whole numbers here; declared as such, so do we.
    let whole = Grid::new(0).expect("in range");
    let bounds = Bounds::on_grid(RANGE.0, RANGE.1, whole).expect("a range");
    let half = Probability::new(Ratio::new(1, 2).expect("2")).expect("a share");
    let epsilon = Epsilon::new(epsilon).expect("a unit");
    let quantile = Quantile::<AddRemove>::new(half, bounds, Contribution::Row, epsilon);
    let n = rows.len() as f64;
    let rank_error = |value: f64| {
        let below = rows.iter().filter(|&&x| x < value).count() as f64;
        let upto = rows.iter().filter(|&&x| x <= value).count() as f64;
        (below - n / 2.0).max(n / 2.0 - upto).max(0.0) / n
    };
    let total: f64 = (0..RUNS / 4)
        .map(|_| {
            let release = quantile.release(
                quantile.aggregate(rows.iter().copied()),
                &mut OsEntropy::new(),
            );
            rank_error(*release.expect("entropy").value())
        })
        .sum();
    total / (RUNS / 4) as f64
}

/// What the peers' script prints: one error per library, `nan` where it has no such statistic.
fn peers(statistic: &str, epsilon: f64, rows: &[f64]) -> Option<(f64, f64)> {
    let python = std::env::var_os("WHIT_PEER_PYTHON")?;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peer_utility.py");
    let data: Vec<String> = rows.iter().map(f64::to_string).collect();
    let output = Command::new(python)
        .args([script, statistic, &epsilon.to_string(), &data.join(",")])
        .output()
        .expect("the peers' Python starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (google, opendp) = text.trim().split_once(' ')?;
    Some((google.parse().ok()?, opendp.parse().ok()?))
}

fn main() {
    let rows = rows();
    println!(
        "| statistic | epsilon | whit | Google (python-dp) | OpenDP | ours / the better peer |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    type Error = fn(&[f64], f64) -> f64;
    let statistics: [(&str, Error); 3] = [
        ("mean", mean_error),
        ("variance", variance_error),
        ("median", median_error),
    ];
    for (name, error) in statistics {
        for epsilon in [0.1, 1.0] {
            let ours = error(&rows, epsilon);
            match peers(name, epsilon, &rows) {
                Some((google, opendp)) => {
                    // Below one row in ten thousand all are right.
                    let ratio = ours.max(1e-4) / google.min(opendp).max(1e-4);
                    println!(
                        "| {name} | {epsilon} | {ours:.4} | {google:.4} | {opendp:.4} | {ratio:.2} |"
                    );
                }
                None => println!("| {name} | {epsilon} | {ours:.4} | not installed | | |"),
            }
        }
    }
}
