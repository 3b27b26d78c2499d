//! What a draw of noise costs, beside OpenDP's vector release of the same noise.
//!
//! Run with `./bench noise`, which installs the peer. CPU time on one thread, ours and theirs in turn, best of five rounds each.

use std::hint::black_box;
use std::process::Command;

use whit_core::{AddRemove, L1, L2, Ratio, Scale, Secret, Sensitivity};
use whit_mechanism::{DiscreteGaussian, DiscreteLaplace, OsEntropy, RoundedGaussian};
use whit_testkit::cpu_ns;

const DRAWS: usize = 1_000_000;
const ROUNDS: usize = 5;

/// Nanoseconds per draw of releases of a million values each: as many as it takes for a fifth of a second, since the CPU's clock may
/// tick only every few milliseconds. The values are ones, so that their memory is there before the first draw.
fn ours(release: impl Fn(Secret<Vec<i64>>)) -> f64 {
    let (mut spent, mut draws) = (0.0, 0);
    while spent < 2e8 {
        let ones = Secret::new(vec![1_i64; DRAWS]);
        let start = cpu_ns();
        release(ones);
        spent += cpu_ns() - start;
        draws += DRAWS;
    }
    spent / draws as f64
}

/// Nanoseconds per draw of the peer, which times itself. `None` if it is not installed.
fn peer(noise: &str, scale: f64) -> Option<f64> {
    let python = std::env::var_os("WHIT_PEER_PYTHON")?;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peer_opendp.py");
    let output = Command::new(python)
        .arg(script)
        .arg(noise)
        .arg(scale.to_string())
        .output()
        .expect("the peer's Python starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().parse().ok()
}

struct Row {
    name: &'static str,
    peer_name: &'static str,
    scale: u64,
    release: Box<dyn Fn(Secret<Vec<i64>>)>,
}

fn rows() -> Vec<Row> {
    let scale = |scale: u64| Scale::new(Ratio::from(scale)).expect("in range");
    let l1 = || Sensitivity::<L1, AddRemove>::new(Ratio::one());
    let l2 = || Sensitivity::<L2, AddRemove>::new(Ratio::one());
    let mut rows = Vec::new();
    for b in [1, 10, 1_000_000] {
        let laplace = DiscreteLaplace::new(scale(b), l1());
        let gaussian = DiscreteGaussian::new(scale(b), l2());
        let constant_laplace = DiscreteLaplace::constant_time(scale(b), l1());
        rows.push(Row {
            name: "discrete Laplace",
            peer_name: "laplace",
            scale: b,
            release: Box::new(move |x| {
                drop(black_box(laplace.release_vector(x, &mut OsEntropy::new())))
            }),
        });
        rows.push(Row {
            name: "discrete Gaussian",
            peer_name: "gaussian",
            scale: b,
            release: Box::new(move |x| {
                drop(black_box(gaussian.release_vector(x, &mut OsEntropy::new())))
            }),
        });
        rows.push(Row {
            name: "discrete Laplace, constant time",
            peer_name: "laplace",
            scale: b,
            release: Box::new(move |x| {
                drop(black_box(
                    constant_laplace.release_vector(x, &mut OsEntropy::new()),
                ))
            }),
        });
        if let Ok(constant_gaussian) = DiscreteGaussian::constant_time(scale(b), l2()) {
            rows.push(Row {
                name: "discrete Gaussian, constant time",
                peer_name: "gaussian",
                scale: b,
                release: Box::new(move |x| {
                    drop(black_box(
                        constant_gaussian.release_vector(x, &mut OsEntropy::new()),
                    ))
                }),
            });
        }
    }
    // Up to the scales of training, where a unit is a tiny part of the clip norm. The peer's is a discrete Gaussian.
    for sigma in [1, 1_000_000, 1 << 36, 1 << 38, 1 << 40] {
        let rounded = RoundedGaussian::new(scale(sigma), l2());
        rows.push(Row {
            name: "rounded Gaussian",
            peer_name: "gaussian",
            scale: sigma,
            release: Box::new(move |x| drop(black_box(rounded.release(x, &mut OsEntropy::new())))),
        });
    }
    rows
}

fn main() {
    println!("| noise | scale | whit, ns per draw | OpenDP, ns per draw | ratio |");
    println!("| --- | --- | --- | --- | --- |");
    for row in rows() {
        let (mut best, mut best_peer) = (f64::INFINITY, None);
        for _ in 0..ROUNDS {
            best = best.min(ours(&row.release));
            if let Some(ns) = peer(row.peer_name, row.scale as f64) {
                best_peer = Some(best_peer.map_or(ns, |best: f64| best.min(ns)));
            }
        }
        let (theirs, ratio) = match best_peer {
            Some(ns) => (format!("{ns:.0}"), format!("{:.0}×", ns / best)),
            None => ("not installed".into(), "-".into()),
        };
        println!(
            "| {} | {} | {best:.1} | {theirs} | {ratio} |",
            row.name, row.scale
        );
    }
}
