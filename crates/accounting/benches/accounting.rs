//! How long an answer takes, beside dp-accounting and prv-accountant.
//!
//! Run with `./bench accounting`, which installs the peers. CPU time on one thread. Ours: cold, nothing cached, both directions, both
//! bounds, best and median of many. Theirs: one upper bound at their default grid (prv-accountant at an error of 0.1), in turn with ours.

use std::process::Command;

use whit_accounting::target::{Target, least_noise};
use whit_accounting::{Bracket, Composition, Step};
use whit_core::Neighbours::AddRemove;
use whit_testkit::cpu_ns;

/// The largest amount of memory this process has had, in megabytes.
fn memory_peak_mb() -> f64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "a benchmark reads its own memory use"
    )]
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux counts memory");
    let line = text.lines().find(|line| line.starts_with("VmHWM"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    kilobytes.expect("a number of kilobytes") / 1024.0
}

struct Case {
    name: &'static str,
    title: &'static str,
    /// The least ratio to dp-accounting that is asked for.
    goal: f64,
    answer: Box<dyn Fn() -> Bracket>,
}

fn epsilon(steps: Vec<(Step, u64)>, delta: f64) -> Box<dyn Fn() -> Bracket> {
    Box::new(move || {
        let composition = Composition::new(AddRemove, steps.clone()).expect("in range");
        composition.epsilon(delta).expect("priced").bounds
    })
}

/// By Fourier transforms alone.
fn by_grid(step: Step, count: u64, delta: f64) -> Box<dyn Fn() -> Bracket> {
    Box::new(move || {
        let composition = Composition::new(AddRemove, [(step.clone(), count)]).expect("in range");
        composition.epsilon_by_grid(delta).expect("priced").bounds
    })
}

fn sampled(rate: f64, noise_multiplier: f64) -> Step {
    Step::PoissonGaussian {
        rate,
        noise_multiplier,
    }
}

fn cases() -> Vec<Case> {
    let case = |name, title, goal, answer| Case {
        name,
        title,
        goal,
        answer,
    };
    let gaussian = Step::Gaussian {
        sigma: 20.0,
        sensitivity: 1.0,
    };
    let laplace = Step::Laplace {
        scale: 20.0,
        sensitivity: 1.0,
    };
    let distinct = (0..50).map(|i| {
        let i = f64::from(i);
        (sampled(0.001 + 0.0004 * i, 0.8 + 0.024 * i), 20)
    });
    let calibrate = || {
        let target = Target::new(1.0, 1e-5).expect("in range");
        let compose = |sigma| Composition::new(AddRemove, [(sampled(0.01, sigma), 1000)]);
        least_noise(compose, target).expect("in reach").bounds
    };
    vec![
        case(
            "gaussian",
            "Gaussian σ=20, 512 times",
            10_000.0,
            epsilon(vec![(gaussian, 512)], 1e-5),
        ),
        case(
            "laplace",
            "Laplace b=20, 512 times",
            20.0,
            epsilon(vec![(laplace, 512)], 1e-5),
        ),
        case(
            "c1",
            "DP-SGD q=.01 σ=4 T=10⁴",
            200.0,
            epsilon(vec![(sampled(0.01, 4.0), 10_000)], 1e-5),
        ),
        case(
            "c2",
            "DP-SGD q=256/60000 σ=1.1 T=14062",
            1_000.0,
            epsilon(vec![(sampled(256.0 / 60_000.0, 1.1), 14_062)], 1e-5),
        ),
        case(
            "c3",
            "DP-SGD q=.001 σ=.8 T=6·10⁴",
            1_000.0,
            epsilon(vec![(sampled(0.001, 0.8), 60_000)], 1e-5),
        ),
        case(
            "c4",
            "DP-SGD q=.001 σ=1 T=10⁶",
            1_000.0,
            epsilon(vec![(sampled(0.001, 1.0), 1_000_000)], 1e-6),
        ),
        case(
            "c5",
            "DP-SGD q=.01 σ=.5 T=1000",
            1_000.0,
            epsilon(vec![(sampled(0.01, 0.5), 1_000)], 1e-5),
        ),
        case(
            "distinct",
            "50 distinct sampled Gaussians",
            1_000.0,
            epsilon(distinct.collect(), 1e-6),
        ),
        case(
            "calibration",
            "σ for ε=1, q=.01, T=1000",
            500.0,
            Box::new(calibrate),
        ),
        case(
            "c1-grid",
            "DP-SGD q=.01 σ=4 T=10⁴, FFT engine",
            20.0,
            by_grid(sampled(0.01, 4.0), 10_000, 1e-5),
        ),
        case(
            "c2-grid",
            "DP-SGD q=256/60000 σ=1.1 T=14062, FFT engine",
            20.0,
            by_grid(sampled(256.0 / 60_000.0, 1.1), 14_062, 1e-5),
        ),
        case(
            "c3-grid",
            "DP-SGD q=.001 σ=.8 T=6·10⁴, FFT engine",
            20.0,
            by_grid(sampled(0.001, 0.8), 60_000, 1e-5),
        ),
        case(
            "c4-grid",
            "DP-SGD q=.001 σ=1 T=10⁶, FFT engine",
            20.0,
            by_grid(sampled(0.001, 1.0), 1_000_000, 1e-6),
        ),
        case(
            "c5-grid",
            "DP-SGD q=.01 σ=.5 T=1000, FFT engine",
            20.0,
            by_grid(sampled(0.01, 0.5), 1_000, 1e-5),
        ),
    ]
}

/// Best and median CPU nanoseconds of one answer, and the answer.
fn ours(answer: &dyn Fn() -> Bracket) -> (f64, f64, Bracket) {
    let start = cpu_ns();
    let found = answer();
    // The kernel counts in steps of up to milliseconds, so answers are repeated until some have passed.
    let batch = if cpu_ns() - start > 1e6 { 1 } else { 64 };
    let mut times: Vec<f64> = (0..5)
        .map(|_| {
            let (start, mut answers) = (cpu_ns(), 0.0);
            while cpu_ns() - start < 3e7 {
                for _ in 0..batch {
                    std::hint::black_box(answer());
                    answers += 1.0;
                }
            }
            (cpu_ns() - start) / answers
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (times[0], times[times.len() / 2], found)
}

/// CPU nanoseconds of the peer and what it found; none if it is not installed, fails or does not know the case.
fn peer(tool: &str, case: &str) -> Option<(f64, f64)> {
    let python = std::env::var_os("WHIT_PEER_PYTHON")?;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peer_accounting.py");
    let output = Command::new(python)
        .args([script, tool, case])
        .env("OMP_NUM_THREADS", "1")
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut fields = text.split_whitespace().map(str::parse::<f64>);
    Some((fields.next()?.ok()? * 1e9, fields.next()?.ok()?))
}

fn main() {
    let only = std::env::args()
        .nth(1)
        .filter(|argument| !argument.starts_with("--"));
    println!(
        "| case | whit, µs (median) | bounds | dp-accounting, ms | its answer | times faster | asked | prv-accountant, ms | times faster |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for case in cases() {
        if only.as_ref().is_some_and(|only| only != case.name) {
            continue;
        }
        let (_, median, found) = ours(&case.answer);
        let name = case.name.trim_end_matches("-grid");
        let google = peer("dp-accounting", name);
        let prv = (name != "calibration")
            .then(|| peer("prv-accountant", name))
            .flatten();
        let cell = |number: Option<f64>, digits: usize| {
            number.map_or("–".into(), |number| format!("{number:.digits$}"))
        };
        println!(
            "| {} | {:.1} | {:.10} to {:.10} | {} | {} | {} | {} | {} | {} |",
            case.title,
            median / 1e3,
            found.lower(),
            found.upper(),
            cell(google.map(|(ns, _)| ns / 1e6), 1),
            cell(google.map(|(_, answer)| answer), 6),
            cell(google.map(|(ns, _)| ns / median), 0),
            case.goal,
            cell(prv.map(|(ns, _)| ns / 1e6), 1),
            cell(prv.map(|(ns, _)| ns / median), 0),
        );
    }
    println!();
    println!("Peak memory of this process: {:.1} MB.", memory_peak_mb());
}
