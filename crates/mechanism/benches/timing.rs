//! Does the time of a draw tell how large it is? Correlation of time with |noise|, and Welch's t between the tenth of the draws
//! with the smallest and the tenth with the largest noise, over 300,000 draws. Run with `./bench timing`.

use std::hint::black_box;
use std::time::Instant;

use whit_core::{Bits, Entropy, Ratio, Scale};
use whit_mechanism::OsEntropy;
use whit_mechanism::sample::{
    ConstantTimeGaussian, ConstantTimeLaplace, DiscreteGaussian, DiscreteLaplace,
};

const DRAWS: usize = 300_000;

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    values
        .iter()
        .map(|value| (value - mean).powi(2))
        .sum::<f64>()
        / (values.len() - 1) as f64
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let (mean_a, mean_b) = (mean(a), mean(b));
    let covariance = a
        .iter()
        .zip(b)
        .map(|(a, b)| (a - mean_a) * (b - mean_b))
        .sum::<f64>()
        / (a.len() - 1) as f64;
    covariance / (variance(a) * variance(b)).sqrt()
}

fn welch(a: &[f64], b: &[f64]) -> f64 {
    (mean(a) - mean(b)) / (variance(a) / a.len() as f64 + variance(b) / b.len() as f64).sqrt()
}

fn row<B: Bits>(name: &str, bits: &mut B, draw: impl Fn(&mut B) -> i128) {
    for _ in 0..10_000 {
        black_box(draw(bits));
    }
    let mut draws: Vec<(f64, f64)> = (0..DRAWS)
        .map(|_| {
            let start = Instant::now();
            let noise = black_box(draw(bits));
            (
                start.elapsed().as_nanos() as f64,
                noise.unsigned_abs() as f64,
            )
        })
        .collect();
    // A draw that the operating system interrupted says nothing about the sampler, and hides what others say.
    let mut times: Vec<f64> = draws.iter().map(|draw| draw.0).collect();
    times.sort_by(f64::total_cmp);
    let slowest = times[DRAWS * 999 / 1000];
    draws.retain(|draw| draw.0 <= slowest);
    let (times, noises): (Vec<f64>, Vec<f64>) = draws.iter().copied().unzip();
    // Equal noises in an order that has nothing to do with when they were drawn, or a drift of the clock would show.
    let mut draws: Vec<((f64, u64), f64)> = draws
        .iter()
        .zip(1_u64..)
        .map(|(draw, index)| ((draw.1, index.wrapping_mul(0x9E37_79B9_7F4A_7C15)), draw.0))
        .collect();
    draws.sort_by(|(a, _), (b, _)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let tenth = draws.len() / 10;
    let times_of =
        |draws: &[((f64, u64), f64)]| draws.iter().map(|draw| draw.1).collect::<Vec<f64>>();
    let t = welch(
        &times_of(&draws[..tenth]),
        &times_of(&draws[draws.len() - tenth..]),
    );
    println!(
        "| {name} | {:.0} | {:+.4} | {t:+.2} |",
        mean(&times),
        correlation(&times, &noises)
    );
}

fn main() {
    println!("| sampler | ns, with the clock | correlation of time and noise | Welch's t |");
    println!("| --- | --- | --- | --- |");
    let mut bits = OsEntropy::new().open().expect("entropy");
    for b in [1_u64, 10, 100] {
        let scale = Scale::new(Ratio::from(b)).expect("in range");
        let (laplace, gaussian) = (
            ConstantTimeLaplace::new(&scale),
            ConstantTimeGaussian::new(&scale).expect("small"),
        );
        row(
            &format!("constant-time Laplace, scale {b}"),
            &mut bits,
            |bits| laplace.sample(bits),
        );
        row(
            &format!("constant-time Gaussian, scale {b}"),
            &mut bits,
            |bits| gaussian.sample(bits),
        );
        let (laplace, gaussian) = (DiscreteLaplace::new(&scale), DiscreteGaussian::new(&scale));
        row(&format!("ordinary Laplace, scale {b}"), &mut bits, |bits| {
            laplace.sample(bits)
        });
        row(
            &format!("ordinary Gaussian, scale {b}"),
            &mut bits,
            |bits| gaussian.sample(bits),
        );
    }
    let scale = Scale::new(Ratio::power_of_two(40)).expect("in range");
    let laplace = ConstantTimeLaplace::new(&scale);
    row("constant-time Laplace, scale 2^40", &mut bits, |bits| {
        laplace.sample(bits)
    });
}
