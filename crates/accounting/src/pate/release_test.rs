//! The divergence by quadrature, the published formula, and its fault.

use super::super::golden::{close, golden, number};
use super::*;

/// `D_α(N(0, 1) ‖ N(gap, width²))` by Simpson's rule.
fn quadrature(gap: f64, width: f64, order: f64) -> f64 {
    let spread = 1.0 - order + order * width * width;
    assert!(spread > 0.0);
    // The integrand is a Gaussian bell; its middle and width, from the exponent -αx²/2 - (1-α)(x-gap)²/(2 width²).
    let weight = order + (1.0 - order) / (width * width);
    let middle = (1.0 - order) * gap / (width * width) / weight;
    let reach = 14.0 / weight.sqrt();
    let steps = 20_000;
    let step = 2.0 * reach / f64::from(steps);
    let ln = |x: f64| {
        let other = (x - gap) / width;
        -0.5 * order * x * x - (1.0 - order) * (0.5 * other * other + libm::log(width))
    };
    let top = ln(middle);
    let sum: f64 = (0..=steps)
        .map(|k| {
            let weight = if k == 0 || k == steps {
                1.0
            } else {
                f64::from(2 + 2 * (k % 2))
            };
            weight * libm::exp(ln(middle - reach + step * f64::from(k)) - top)
        })
        .sum();
    (top + libm::log(sum * step / 3.0 / (2.0 * std::f64::consts::PI).sqrt())) / (order - 1.0)
}

fn published(beta: f64, sigma: f64, order: f64) -> f64 {
    order * libm::exp(2.0 * beta) / (sigma * sigma)
        + (-0.5 * libm::log(1.0 - 2.0 * order * beta) + beta * order) / (order - 1.0)
}

#[test]
fn divergence_is_that_of_the_worst_pair() {
    for (beta, sigma, order) in [
        (0.02, 10.0, 20.0),
        (0.01, 2.0, 20.0),
        (0.1, 5.0, 3.0),
        (0.02, 40.0, 20.0),
        (0.3, 1.0, 1.5),
    ] {
        let release = Release::new(beta, sigma).expect("positive");
        let claimed = release.divergence(order);
        // Every change of width, and every distance that goes with it; the worst is the narrowest.
        let mut largest = 0.0_f64;
        for i in -50..=50 {
            let change = beta * f64::from(i) / 50.0;
            let gap = change.min(0.0).exp() / sigma;
            largest = largest.max(quadrature(gap, change.exp(), order));
            assert!(quadrature(0.5 * gap, change.exp(), order) <= claimed);
        }
        assert!(
            largest <= claimed && largest >= claimed * (1.0 - 1e-8),
            "{beta} {sigma} {order}: {largest} {claimed}"
        );
    }
}

/// What the published formula says is its own golden value; and it is too little.
#[test]
fn published_cost_is_too_little() {
    for case in golden("release_published") {
        let (beta, sigma, order) = (
            number(&case, "beta"),
            number(&case, "sigma"),
            number(&case, "order"),
        );
        close(published(beta, sigma, order), number(&case, "divergence"));
    }
    let exact = quadrature((-0.02_f64).exp() / 10.0, (-0.02_f64).exp(), 20.0);
    assert!((exact - 0.465).abs() < 1e-3, "{exact}");
    assert!((published(0.02, 10.0, 20.0) - 0.272).abs() < 1e-3);
    assert!(
        published(0.02, 10.0, 20.0) < 0.6 * exact,
        "the twin is convicted"
    );
    assert!(Release::new(0.02, 10.0).expect("positive").divergence(20.0) >= exact);
}

#[test]
fn orders_end_where_the_divergence_is_infinite() {
    let release = Release::new(0.02, 10.0).expect("positive");
    let limit = release.order_limit();
    assert!((limit - 25.503).abs() < 1e-3, "{limit}");
    assert!(release.divergence(limit * 0.999).is_finite());
    assert_eq!(release.divergence(limit * 1.001), f64::INFINITY);
    assert_eq!(release.divergence(1.0), f64::INFINITY);
}

/// The price as (ε, δ) against the exact profile of the worst pair.
#[test]
fn price_covers_the_exact_profile() {
    let (beta, sigma) = (0.02_f64, 30.0);
    let release = Release::new(beta, sigma).expect("positive");
    let delta = Delta::new(1e-6).expect("a delta");
    let epsilon = release.epsilon(delta).expect("finite").value();
    // P = N(0, 1), Q = N(gap, width²): the mass of P above e^ε Q, by the midpoint rule.
    let (gap, width) = ((-beta).exp() / sigma, (-beta).exp());
    let bell = |x: f64, mean: f64, width: f64| {
        let z = (x - mean) / width;
        libm::exp(-0.5 * z * z) / (width * (2.0 * std::f64::consts::PI).sqrt())
    };
    let step = 1e-4;
    let mass: f64 = (-150_000..150_000)
        .map(|k| (f64::from(k) + 0.5) * step)
        .map(|x| (bell(x, 0.0, 1.0) - libm::exp(epsilon) * bell(x, gap, width)).max(0.0) * step)
        .sum();
    assert!(mass <= 1e-6 && mass > 1e-9, "{epsilon}: {mass}");
    assert!(release.epsilon(Delta::ZERO).is_err());
}

#[test]
fn refuses_what_is_no_noise() {
    for (beta, sigma) in [
        (0.0, 1.0),
        (1.0, 0.0),
        (f64::NAN, 1.0),
        (1.0, f64::INFINITY),
        (-1.0, 1.0),
    ] {
        assert!(Release::new(beta, sigma).is_err(), "{beta} {sigma}");
    }
}
