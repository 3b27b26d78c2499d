//! Grids, tilted grids and their compositions.

use super::*;
use crate::circle::Near;
use crate::convolve::{Factor, compose};

fn grid(masses: Vec<f64>) -> Grid {
    let cells = masses.len() - 1;
    Grid {
        lattice: Lattice {
            base: -1.0,
            step: 0.25,
            cells,
        },
        masses,
        infinite: 0.0,
    }
}

#[test]
fn tilted_masses_are_the_masses_times_a_power() {
    let grid = grid(vec![0.25, 0.0, 0.5, 1e-250, 0.25]);
    for theta in [0.0, 0.125, short(0.7), 40.0, 170.0] {
        for side in [Side::Upper, Side::Lower] {
            let tilted = grid.tilt(theta, side);
            let sum: f64 = tilted.masses.iter().sum();
            assert!((sum - 1.0).abs() < 1e-14);
            for (index, (&a, &p)) in tilted.masses.iter().zip(&grid.masses).enumerate() {
                let place = index as f64 - tilted.centre as f64;
                let exponent = theta * place + tilted.ln_factor.estimate();
                let expected = p * libm::exp(exponent);
                assert!(
                    (a - expected).abs() <= 1e-12 * expected + 1e-300,
                    "{theta} {index}"
                );
                match side {
                    Side::Upper => assert!(a >= expected * (1.0 - 1e-12) - 1e-300),
                    Side::Lower => assert!(a <= expected * (1.0 + 1e-12) + 1e-300),
                }
            }
        }
    }
}

#[test]
fn moments_are_sums() {
    let tilted = grid(vec![0.25, 0.0, 0.5, 0.25]).tilt(0.5, Side::Upper);
    for lambda in [-30.0, -1.0, 0.0, 0.3, 20.0] {
        let sum: f64 = tilted
            .masses
            .iter()
            .enumerate()
            .map(|(i, a)| a * (lambda * (i as f64 - tilted.centre as f64)).exp())
            .sum();
        let found = tilted.ln_moment_upper(lambda);
        assert!(found >= sum.ln() && found <= sum.ln() + 1e-13);
    }
}

#[test]
fn totals_are_rounded_up() {
    let grid = grid(vec![0.1; 10]);
    assert!(grid.total_upper() >= 1.0 && grid.total_upper() < 1.0 + 1e-14);
}

/// The losses of one step, with a share that is infinite.
fn one_step() -> Grid {
    let bump = |i: i32| (-0.02 * f64::from(i - 14).powi(2)).exp() + 0.01 * (-f64::from(i)).exp2();
    let raw: Vec<f64> = (0..40).map(bump).collect();
    let sum: f64 = raw.iter().sum();
    let step = 1.0 / 512.0;
    Grid {
        lattice: Lattice {
            base: -14.0 * step,
            step,
            cells: 39,
        },
        masses: raw.iter().map(|mass| mass / sum).collect(),
        infinite: 1e-12,
    }
}

const COUNT: u64 = 300;

/// Its composition by both ways, on a circle of so many places from `start` on.
fn both_ways(cells: usize, start: i128, tilt: f64) -> (Smooth, Near) {
    let part = one_step();
    let step = part.lattice.step;
    let theta = short(tilt * step);
    let tally = |side| {
        let mut tally = Tally::default();
        tally.add(&part, theta, side, COUNT);
        tally
    };
    let both = [tally(Side::Upper), tally(Side::Lower)];
    let mut masses = Masses::NONE;
    masses.add(&part, COUNT);
    let factors = [Factor {
        upper: &both[0].tilted[0].masses,
        lower: &both[1].tilted[0].masses,
        count: COUNT,
    }];
    let window = Window {
        bottom: 0.0,
        bottom_moment: 20.0,
        top: 0.0,
        top_moment: 20.0,
    };
    let steps = Steps {
        theta,
        step,
        start,
        cells,
    };
    let made = (Spectrum::new(&factors, cells).expect("smooth"), masses);
    let convolved = compose(&factors, cells);
    let tallies = [&both[0], &both[1]];
    let smooth = Smooth::new(tallies, &[COUNT], made, (steps, &window), 0.5).expect("usual rates");
    let near = Near::new(both, &[COUNT], steps, &convolved, &window, 0.5);
    (smooth, near)
}

fn epsilons() -> impl Iterator<Item = f64> {
    (-40..80).map(|place| 0.1 * f64::from(place) + 0.013)
}

/// With tilts that hardly fall from one end of the circle to the other, and with larger ones.
#[test]
fn few_waves_tell_what_the_whole_circle_tells() {
    let mut seen = 0;
    for (cells, start, tilt) in [
        (4096, 2200, 0.3),
        (4096, 2200, 4.0),
        (16_384, 0, 0.01),
        (16_384, 0, 2.0),
    ] {
        let (smooth, near) = both_ways(cells, start, tilt);
        let infinite = smooth.infinite_upper;
        assert!(infinite >= 3e-10 && infinite <= near.infinite_upper * 1.001);
        for epsilon in epsilons() {
            let (found, known) = (smooth.delta(epsilon), near.delta(epsilon));
            assert!(
                found.lower() <= known.upper() && known.lower() <= found.upper(),
                "{cells} {tilt} {epsilon}: {found:?} {known:?}"
            );
            if known.relative_width() < 1e-6 {
                seen += 1;
                assert!(
                    found.relative_width() < 2e-6,
                    "{cells} {tilt} {epsilon}: {found:?} {known:?}"
                );
            }
        }
        let place = smooth.crossing(1e-3).expect("within the window");
        let there = smooth.look(&smooth.upper, place) + infinite;
        assert!((there - 1e-3).abs() < 1e-12, "{there}");
        assert!(smooth.serves(place) && near.serves(place));
        assert_eq!(smooth.crossing(infinite), None);
    }
    assert!(seen > 40, "{seen}");
}

/// Windows that cut through the law: what is outside lands on wrong places, and both bounds know it.
#[test]
fn few_waves_hold_on_windows_that_are_too_small() {
    let (_, whole) = both_ways(16_384, 0, 2.0);
    let mut cut = 0;
    for start in [0, 100, 3900, 4200, 4300, 4500] {
        for tilt in [0.05, 2.0] {
            let (smooth, _) = both_ways(4096, start, tilt);
            for epsilon in epsilons() {
                let (found, truth) = (smooth.delta(epsilon), whole.delta(epsilon));
                assert!(
                    found.lower() <= truth.upper() && truth.lower() <= found.upper(),
                    "{start} {tilt} {epsilon}: {found:?} {truth:?}"
                );
                cut += usize::from(found.relative_width() > 0.1 && truth.relative_width() < 1e-6);
            }
        }
    }
    assert!(cut > 10, "{cut}");
}
