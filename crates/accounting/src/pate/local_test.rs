//! Golden values, and neighbours one by one.

use super::super::golden::{close, golden, number, numbers};
use super::*;

#[test]
fn golden_meeting_points() {
    for case in golden("ln_q0") {
        let found = ln_q0(number(&case, "sigma"), number(&case, "order"));
        close(found.expect("a point"), number(&case, "ln_q0"));
    }
}

#[test]
fn golden_sensitivities() {
    for case in golden("local_gnmax") {
        let counts = numbers(&case, "counts");
        let local = Local::new(number(&case, "sigma"), counts.len(), number(&case, "order"));
        let local = local.expect("a point");
        let found = local.by_distance(&counts, number(&case, "teachers") as usize);
        for (found, golden) in found.iter().zip(numbers(&case, "first")) {
            close(*found, golden);
        }
        close(
            found.iter().copied().fold(0.0, f64::max),
            number(&case, "largest"),
        );
    }
}

/// Proposition 12 for all votes of seven teachers among three classes, and each vote that moves.
#[test]
fn one_vote_stays_within_its_bounds() {
    for sigma in [0.5, 2.0, 7.0] {
        let local = Local {
            sigma,
            classes: 3,
            order: 2.0,
            ln_q0: -1.0,
            ln_q1: -1.0,
            plateau: 0.0,
        };
        for a in 0..=7_i32 {
            for b in 0..=7 - a {
                let counts = [a, b, 7 - a - b].map(f64::from);
                let ln_q = ln_q_gaussian(&counts, sigma);
                let (low, high) = (local.shifted(ln_q, 1.0), local.shifted(ln_q, -1.0));
                for (from, to) in [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)] {
                    let mut moved = counts;
                    moved[from] -= 1.0;
                    moved[to] += 1.0;
                    let found = ln_q_gaussian(&moved, sigma);
                    let capped = super::super::bound::ln_least(3);
                    assert!(
                        moved[from] < 0.0
                            || (found >= low.min(capped) - 1e-12 && found <= high + 1e-12)
                    );
                }
            }
        }
    }
}

#[test]
fn orders_without_a_point_are_refused() {
    for (sigma, order) in [(0.0, 2.0), (f64::NAN, 2.0), (40.0, f64::NAN)] {
        assert!(Local::new(sigma, 10, order).is_err(), "{sigma} {order}");
    }
    let (q0, q1) = Local::new(40.0, 10, 20.0).expect("a point").ends();
    assert!(q1 < q0 && q0 < 0.0);
}
