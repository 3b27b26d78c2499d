//! How far answers are off, beside Google's library and OpenDP on the same data and epsilon, and beside each other where the same
//! question has two mechanisms. Run with `./bench utility`, which installs the peers.

use std::io::Write;
use std::process::{Command, Stdio};

use whit_core::{
    AddRemove, Confidence, Delta, Epsilon, L1, Linf, Ratio, ReplaceOne, Scale, Secret, Sensitivity,
};
use whit_mechanism::bounded_variance::VarianceNoise;
use whit_mechanism::{
    BoundedMean, BoundedVariance, Bounds, Contribution, Exponential, Grid, GridQuantile, Noise,
    OsEntropy, PermuteAndFlip, Quantile, Scores, SmoothMedian, SmoothNoise,
};

/// Runs for a root mean square error: it is then known to less than one percent.
const RUNS: usize = 20_000;
/// Data sets for a median. Which value is chosen depends on where between two values the rank falls, so one set says little.
const DATA_SETS: u64 = 100;
/// Rows of a mean or a variance.
const ROWS: usize = 500;
const RANGE: (f64, f64) = (0.0, 100.0);

/// Uniform numbers in `[0, 1)`, the same for everybody: a linear congruential generator.
struct Uniform(u64);

impl Uniform {
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / 2_f64.powi(53)
    }
}

/// A skewed sample of whole numbers in the range.
fn skewed(seed: u64, rows: usize) -> Vec<f64> {
    let mut uniform = Uniform(seed);
    let row = |_| {
        let u = uniform.next();
        (17.0 + 70.0 * u * u).floor()
    };
    (0..rows).map(row).collect()
}

/// Six in ten are zero, the others anything else.
fn mostly_zero(seed: u64, rows: usize) -> Vec<f64> {
    let mut uniform = Uniform(seed);
    let row = |_| {
        let (zero, other) = (uniform.next() < 0.6, uniform.next());
        if zero {
            0.0
        } else {
            (1.0 + 99.0 * other).floor()
        }
    };
    (0..rows).map(row).collect()
}

fn confidence() -> Confidence {
    Confidence::new(0.95).expect("a unit")
}

fn unit(epsilon: f64) -> Epsilon {
    Epsilon::new(epsilon).expect("a unit")
}

fn rms(truth: f64, mut answer: impl FnMut() -> f64) -> f64 {
    let square = (0..RUNS).map(|_| (answer() - truth).powi(2)).sum::<f64>();
    (square / RUNS as f64).sqrt()
}

/// Laplace noise for one of `parts` that share an epsilon.
fn laplace(sensitivity: &Sensitivity<L1, AddRemove>, epsilon: f64, parts: u64) -> Noise {
    let each = Ratio::from_f64(epsilon).expect("finite");
    let scale = sensitivity.bound().checked_div(&each);
    let scale = &scale.expect("epsilon is positive") * &Ratio::from(parts);
    Noise::Laplace(Scale::new(scale).expect("in range"))
}

fn mean_error(rows: &[f64], epsilon: f64) -> f64 {
    let truth = rows.iter().sum::<f64>() / rows.len() as f64;
    let bounds = Bounds::new(RANGE.0, RANGE.1).expect("a range");
    let mean = BoundedMean::<AddRemove>::new(bounds, Contribution::Row);
    let noise = laplace(&mean.sensitivity_l1(), epsilon, 1);
    let noisy = mean.with_noise(&noise).expect("in range");
    rms(truth, || {
        let parts = mean.aggregate(rows.iter().copied());
        let release = noisy.release(parts, confidence(), &mut OsEntropy::new());
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
    rms(truth, || {
        let parts = variance.aggregate(rows.iter().copied());
        let release = noisy.release(parts, confidence(), &mut OsEntropy::new());
        release.expect("entropy").value().answer
    })
}

/// The distance of the value's rank from the middle, as a share of the rows.
fn rank_error(sorted: &[f64], value: f64) -> f64 {
    let n = sorted.len() as f64;
    let below = sorted.partition_point(|&x| x < value) as f64;
    let upto = sorted.partition_point(|&x| x <= value) as f64;
    (below - n / 2.0).max(n / 2.0 - upto).max(0.0) / n
}

/// The mean rank error of whole-number medians. OpenDP chooses among whole numbers; declared as such, so do we.
fn median_error(data_sets: &[Vec<f64>], epsilon: f64, runs: usize) -> f64 {
    let whole = Grid::new(0).expect("in range");
    let bounds = Bounds::on_grid(RANGE.0, RANGE.1, whole).expect("a range");
    let median = GridQuantile::<AddRemove>::median(bounds, Contribution::Row, unit(epsilon));
    let median = median.expect("a short grid");
    let mut total = 0.0;
    for rows in data_sets {
        let mut sorted = rows.clone();
        sorted.sort_by(f64::total_cmp);
        for _ in 0..runs {
            let rows = median.aggregate(rows.iter().copied());
            let release = median.release(rows, &mut OsEntropy::new());
            total += rank_error(&sorted, release.expect("entropy").into_value());
        }
    }
    total / (runs * data_sets.len()) as f64
}

/// What the peers' script prints: one error per library.
fn peers(name: &str, epsilon: f64, runs: usize, data_sets: &[Vec<f64>]) -> Option<(f64, f64)> {
    let python = std::env::var_os("WHIT_PEER_PYTHON")?;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peer_utility.py");
    let mut child = Command::new(python)
        .args([script, name, &epsilon.to_string(), &runs.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the peers' Python starts");
    let mut stdin = child.stdin.take().expect("piped");
    for rows in data_sets {
        let rows: Vec<String> = rows.iter().map(f64::to_string).collect();
        writeln!(stdin, "{}", rows.join(",")).expect("the peers read");
    }
    drop(stdin);
    let output = child.wait_with_output().expect("the peers end");
    assert!(output.status.success(), "the peers' script failed");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (google, opendp) = text.trim().split_once(' ')?;
    Some((google.parse().ok()?, opendp.parse().ok()?))
}

fn line(name: &str, epsilon: f64, ours: f64, peers: Option<(f64, f64)>) {
    let Some((google, opendp)) = peers else {
        println!("| {name} | {epsilon} | {ours:.5} | not installed | | |");
        return;
    };
    // Below one row in a hundred thousand all are right.
    let ratio = ours.max(1e-5) / google.min(opendp).max(1e-5);
    println!("| {name} | {epsilon} | {ours:.5} | {google:.5} | {opendp:.5} | {ratio:.3} |");
}

fn beside_peers() {
    println!(
        "| statistic | epsilon | whit | Google (python-dp) | OpenDP | ours / the better peer |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    type Error = fn(&[f64], f64) -> f64;
    let statistics: [(&str, Error); 2] = [("mean", mean_error), ("variance", variance_error)];
    let rows = skewed(12345, ROWS);
    for (name, error) in statistics {
        for epsilon in [0.1, 1.0] {
            let ours = error(&rows, epsilon);
            let peers = peers(name, epsilon, RUNS, std::slice::from_ref(&rows));
            line(name, epsilon, ours, peers);
        }
    }
    type Law = fn(u64, usize) -> Vec<f64>;
    let laws: [(&str, Law, usize, usize); 3] = [
        ("median of 200 rows", skewed, 200, 400),
        ("median of 1,000 rows", skewed, 1000, 200),
        (
            "median of 200 rows, most of them zero",
            mostly_zero,
            200,
            100,
        ),
    ];
    for (name, law, rows, runs) in laws {
        let data_sets: Vec<Vec<f64>> = (0..DATA_SETS).map(|i| law(12345 + i, rows)).collect();
        for epsilon in [0.1, 1.0] {
            // Ours is quick, so its side of the ratio can be all but exact.
            let ours = median_error(&data_sets, epsilon, 10 * runs);
            line(
                name,
                epsilon,
                ours,
                peers("median", epsilon, runs, &data_sets),
            );
        }
    }
}

/// The mean error of a choice among five scores.
fn choices() {
    const SCORES: [i64; 5] = [10, 9, 8, 0, 0];
    const CHOICES: u32 = 400_000;
    println!(
        "\n| choice among 10, 9, 8, 0, 0 | epsilon | exponential | permute-and-flip | as computed |"
    );
    println!("| --- | --- | --- | --- | --- |");
    for (epsilon, computed) in [
        (0.5, "1.4252, 1.2216"),
        (1.0, "0.7430, 0.6052"),
        (2.0, "0.4254, 0.2948"),
    ] {
        let sensitivity = Sensitivity::<Linf, ReplaceOne>::new(Ratio::one());
        let scores = || Scores::new(SCORES.len() as u64, &sensitivity).expect("options");
        let epsilon_exact = Ratio::from_f64(epsilon).expect("finite");
        let exponential = Exponential::new(epsilon_exact.clone(), scores());
        let flip = PermuteAndFlip::new(epsilon_exact, scores());
        let error = |choose: &dyn Fn(&mut OsEntropy) -> usize| {
            let mut entropy = OsEntropy::new();
            let total: i64 = (0..CHOICES)
                .map(|_| 10 - SCORES[choose(&mut entropy)])
                .sum();
            total as f64 / f64::from(CHOICES)
        };
        let options = || Secret::new(SCORES.to_vec());
        let by_exponential = error(&|entropy| {
            let release = exponential.release(options(), entropy);
            release.expect("entropy").into_value()
        });
        let by_flip = error(&|entropy| {
            let release = flip.release(options(), entropy);
            release.expect("entropy").into_value()
        });
        println!("| | {epsilon} | {by_exponential:.4} | {by_flip:.4} | {computed} |");
    }
}

/// Medians of 1,000 uniform numbers from -5 to 5 in the range -100 to 100, under replace-one.
fn medians() {
    let bounds = Bounds::new(-100.0, 100.0).expect("a range");
    let delta = Delta::new(1e-6).expect("a unit");
    println!(
        "\n| median of 1,000 uniform numbers | epsilon | exponential | smooth sensitivity | measured for the specification |"
    );
    println!("| --- | --- | --- | --- | --- |");
    for (epsilon, measured) in [
        (0.1, "0.0200, 0.493"),
        (0.5, "0.0047, 0.084"),
        (1.0, "0.0019, 0.023"),
    ] {
        let median = Quantile::<ReplaceOne>::median(bounds, Contribution::Row, unit(epsilon));
        let smooth = SmoothMedian::new(bounds);
        let noise = SmoothNoise::laplace(unit(epsilon), delta).expect("in range");
        let mut uniform = Uniform(7);
        let mut errors = [0.0; 2];
        let runs = 1000;
        for _ in 0..runs {
            let mut rows: Vec<f64> = (0..1000).map(|_| 10.0 * uniform.next() - 5.0).collect();
            rows.sort_by(f64::total_cmp);
            let mut entropy = OsEntropy::new();
            let data = rows.iter().copied();
            let chosen = median.release(median.aggregate(data.clone()), &mut entropy);
            errors[0] += rank_error(&rows, chosen.expect("entropy").into_value());
            let noisy = smooth.release(smooth.aggregate(data), &noise, &mut entropy);
            errors[1] += rank_error(&rows, noisy.expect("entropy").into_value());
        }
        let [chosen, noisy] = errors.map(|error| error / f64::from(runs));
        println!("| | {epsilon} | {chosen:.4} | {noisy:.4} | {measured} |");
    }
}

fn main() {
    choices();
    medians();
    println!();
    beside_peers();
}
