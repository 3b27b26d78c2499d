//! Golden values, and the theorem against exact divergences.

use super::super::golden::{close, golden, number, numbers};
use super::*;

#[test]
fn golden_probabilities() {
    for case in golden("ln_q_gaussian") {
        let found = ln_q_gaussian(&numbers(&case, "counts"), number(&case, "sigma"));
        close(found, number(&case, "ln_q"));
    }
}

#[test]
fn golden_divergences() {
    for case in golden("gaussian") {
        let bound = Gaussian::new(number(&case, "ln_q"), number(&case, "sigma"));
        for (order, golden) in numbers(&case, "orders")
            .into_iter()
            .zip(numbers(&case, "divergences"))
        {
            close(bound.at(order), golden);
        }
    }
}

#[test]
fn golden_thresholds() {
    for case in golden("threshold") {
        let sigma = number(&case, "sigma");
        let ln = ln_answered(&numbers(&case, "counts"), number(&case, "threshold"), sigma);
        close(ln, number(&case, "ln_answered"));
        let bound = Gaussian::threshold(ln, sigma);
        for (order, golden) in numbers(&case, "orders")
            .into_iter()
            .zip(numbers(&case, "divergences"))
        {
            close(bound.at(order), golden);
        }
    }
}

#[test]
fn golden_laplace() {
    for case in golden("laplace") {
        let lambda = number(&case, "lambda");
        let ln_q = ln_q_laplace(&numbers(&case, "counts"), lambda);
        close(ln_q, number(&case, "ln_q"));
        let bound = Laplace::new(ln_q, lambda);
        for (order, golden) in numbers(&case, "orders")
            .into_iter()
            .zip(numbers(&case, "divergences"))
        {
            close(bound.at(order), golden);
        }
    }
}

/// Pr of each winner of GNMax, by Simpson's rule.
fn winners(counts: &[f64], sigma: f64) -> Vec<f64> {
    let steps = 4000;
    let (low, high) = (-12.0, most(counts) / sigma + 12.0);
    let width = (high - low) / f64::from(steps);
    let of = |i: usize| -> f64 {
        let at = |x: f64| {
            let mean = counts[i] / sigma;
            let others = counts.iter().enumerate().filter(|(j, _)| *j != i);
            let below: f64 = others
                .map(|(_, n)| libm::exp(ln_survival(n / sigma - x)))
                .product();
            libm::exp(-0.5 * (x - mean) * (x - mean) - LN_ROOT) * below
        };
        let weight = |k: i32| {
            if k == 0 || k == steps {
                1.0
            } else {
                f64::from(2 + 2 * (k % 2))
            }
        };
        (0..=steps)
            .map(|k| weight(k) * at(low + width * f64::from(k)))
            .sum::<f64>()
            * width
            / 3.0
    };
    (0..counts.len()).map(of).collect()
}

fn divergence(p: &[f64], q: &[f64], order: f64) -> f64 {
    let sum: f64 = p
        .iter()
        .zip(q)
        .map(|(p, q)| p * libm::pow(p / q, order - 1.0))
        .sum();
    libm::log(sum) / (order - 1.0)
}

/// Every neighbour, exactly: the bound holds, and is well below the worst case where teachers agree.
#[test]
fn theorem_holds_for_exact_divergences() {
    let mut helped = 0;
    for (counts, sigma) in [
        (vec![20.0, 3.0, 1.0], 3.0),
        (vec![24.0, 0.0, 0.0], 3.0),
        (vec![12.0, 8.0, 4.0], 3.0),
        (vec![40.0, 2.0], 6.0),
        (vec![15.0, 3.0, 3.0, 3.0], 2.0),
        (vec![9.0, 8.0], 1.5),
    ] {
        let p = winners(&counts, sigma);
        let ln_q = ln_q_gaussian(&counts, sigma);
        assert!(libm::exp(ln_q) >= 1.0 - p[0] - 1e-12, "{counts:?}");
        let bound = Gaussian::new(ln_q, sigma);
        for from in 0..counts.len() {
            for to in (0..counts.len()).filter(|to| *to != from) {
                let mut moved = counts.clone();
                moved[from] -= 1.0;
                moved[to] += 1.0;
                let q = winners(&moved, sigma);
                for order in [1.25, 2.0, 3.0, 5.0, 8.0] {
                    let (found, bound) = (divergence(&p, &q, order), bound.at(order));
                    assert!(
                        found <= bound + 1e-9,
                        "{counts:?} {moved:?} {order}: {found} {bound}"
                    );
                    helped += u32::from(bound < 0.5 * order / (sigma * sigma));
                }
            }
        }
    }
    assert!(helped > 40, "{helped}");
}

#[test]
fn tests_hold_for_exact_divergences() {
    let mut helped = 0;
    for sigma in [1.0, 2.0, 4.0] {
        for most in 0..30 {
            let ln = |votes: f64| ln_survival((15.0 - votes) / sigma);
            let votes = f64::from(most);
            let bound = Gaussian::threshold(ln(votes), sigma);
            for moved in [votes - 1.0, votes + 1.0] {
                let pair = |votes: f64| [libm::exp(ln(votes)), libm::exp(ln(30.0 - votes))];
                for order in [1.5, 2.0, 4.0, 7.0] {
                    let found = divergence(&pair(votes), &pair(moved), order);
                    let bound = bound.at(order);
                    assert!(
                        found <= bound + 1e-9,
                        "{sigma} {votes} {moved} {order}: {found} {bound}"
                    );
                    helped += u32::from(bound < 0.5 * order / (2.0 * sigma * sigma));
                }
            }
        }
    }
    assert!(helped > 40, "{helped}");
}

/// A twin without the other direction's order would be caught: the theorem's first part is needed.
#[test]
fn exact_divergences_convict_a_twin() {
    let (counts, moved, sigma) = (vec![20.0, 3.0, 1.0], vec![19.0, 4.0, 1.0], 3.0);
    let (p, q) = (winners(&counts, sigma), winners(&moved, sigma));
    // As if q were its square: far too sure of the winner.
    let twin = Gaussian::new(2.0 * ln_q_gaussian(&counts, sigma), sigma);
    assert!(divergence(&p, &q, 2.0) > twin.at(2.0));
}

/// Theorem 6 grows with `q` wherever its conditions hold, so that an upper bound of `q` will do.
#[test]
fn bound_grows_with_q() {
    for sigma in [1.0, 5.0, 40.0, 150.0] {
        for order in [1.5, 3.0, 12.5, 40.0] {
            let mut before = 0.0;
            for i in 0..4000 {
                let ln_q = -400.0 + 0.1 * f64::from(i);
                if is_valid(ln_q, sigma, order) {
                    let here = unchecked(ln_q, sigma, order);
                    assert!(here >= before * (1.0 - 1e-12), "{sigma} {order} {ln_q}");
                    before = here;
                }
            }
        }
    }
}

#[test]
fn far_ends_are_numbers() {
    let sure = [1e9, 0.0];
    let ln_q = ln_q_gaussian(&sure, 1.0);
    for order in [1.5, 2.0, 1000.0] {
        assert_eq!(Gaussian::new(ln_q, 1.0).at(order), 0.0);
        assert_eq!(Gaussian::new(f64::NEG_INFINITY, 1.0).at(order), 0.0);
        assert!(Laplace::new(ln_q_laplace(&sure, 20.0), 20.0).at(order) <= 1e-12);
    }
    assert_eq!(
        Gaussian::new(ln_q_gaussian(&[5.0, 5.0], 3.0), 3.0).at(2.0),
        2.0 / 9.0
    );
    close(ln_survival(-1.0), -0.172_753_779_023_449_9);
    close(survival_quantile(ln_survival(-1.5)), -1.5);
    close(survival_quantile(ln_survival(60.0)), 60.0);
}
