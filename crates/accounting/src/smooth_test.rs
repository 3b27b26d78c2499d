//! Few waves against the whole circle, and the circle against windows that cut it.

use super::*;
use crate::circle::Circle;
use crate::convolve::compose;
use crate::grid::{Grid, Lattice, short};
use crate::near::Near;
use crate::tally::factors;

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

/// Its composition by both ways.
fn both_ways(cells: usize, start: i128, tilt: f64) -> [Near; 2] {
    compositions(&[(one_step(), COUNT)], cells, start, tilt)
}

/// A composition on a circle of so many places from `start` on: by few waves, and as a whole.
fn compositions(parts: &[(Grid, u64)], cells: usize, start: i128, tilt: f64) -> [Near; 2] {
    let step = parts[0].0.lattice.step;
    let theta = short(tilt * step);
    let both = [Side::Upper, Side::Lower].map(|side| {
        let mut tally = Tally::new(side, theta);
        for (part, count) in parts {
            tally.add(part, *count);
        }
        tally
    });
    let tallies = [&both[0], &both[1]];
    let factors = factors(&both[0], &both[1]);
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
    let spectrum = Spectrum::new(&factors, cells).expect("smooth");
    let smooth = Smooth::new(tallies, spectrum, steps, &window).expect("usual rates");
    let circle = Circle::new(tallies, &compose(&factors, cells), steps, &window);
    let dots: [Box<dyn Dots>; 2] = [Box::new(smooth), Box::new(circle)];
    dots.map(|dots| Near::new(dots, &both[0], 0.5))
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
        let [smooth, near] = both_ways(cells, start, tilt);
        let infinite = smooth.infinite_upper;
        assert!((3e-10..3.001e-10).contains(&infinite));
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
        let there = smooth.look(place, Side::Upper) + infinite;
        assert!((there - 1e-3).abs() < 1e-12, "{there}");
        assert!(smooth.serves(place) && near.serves(place));
        assert_eq!(smooth.crossing(infinite), None);
    }
    assert!(seen > 40, "{seen}");
}

/// Windows that cut through the law: what is outside lands on wrong places, and both bounds know it.
#[test]
fn few_waves_hold_on_windows_that_are_too_small() {
    let [_, whole] = both_ways(16_384, 0, 2.0);
    let mut cut = 0;
    for start in [0, 100, 3900, 4200, 4300, 4500] {
        for tilt in [0.05, 2.0] {
            let [smooth, _] = both_ways(4096, start, tilt);
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

/// Losses on every third or seventh dot have frequencies that come back to one; beside another part some of them are heard, and all of
/// them where nothing else is.
#[test]
fn frequencies_that_return_are_not_left_out() {
    let spaced = |spacing: usize| {
        let Grid {
            lattice, masses, ..
        } = one_step();
        let mut apart = vec![0.0; spacing * lattice.cells + 1];
        for (index, mass) in masses.into_iter().enumerate() {
            apart[spacing * index] = mass;
        }
        Grid {
            lattice: Lattice {
                base: spacing as f64 * lattice.base,
                cells: apart.len() - 1,
                ..lattice
            },
            masses: apart,
            infinite: 0.0,
        }
    };
    let mut seen = 0;
    for (parts, cells) in [
        (vec![(spaced(3), COUNT)], 8192),
        (vec![(spaced(7), COUNT)], 16_384),
        (vec![(spaced(3), COUNT), (spaced(7), 20)], 16_384),
        (vec![(spaced(3), COUNT), (one_step(), 1)], 16_384),
    ] {
        let length: u64 = parts
            .iter()
            .map(|(part, count)| count * part.lattice.cells as u64)
            .sum();
        let start = i128::from(length) * 14 / 39 - cells as i128 / 2;
        let [smooth, near] = compositions(&parts, cells, start.max(0), 1.0);
        for epsilon in epsilons() {
            let (found, known) = (smooth.delta(epsilon), near.delta(epsilon));
            assert!(
                found.lower() <= known.upper() && known.lower() <= found.upper(),
                "{cells} {epsilon}: {found:?} {known:?}"
            );
            seen += usize::from(found.relative_width() < 1e-6);
        }
    }
    assert!(seen > 50, "{seen}");
}
