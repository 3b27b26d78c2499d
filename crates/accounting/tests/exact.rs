//! The conversion against exact deltas: it may never be below them, and should not be far above.

use whit_accounting::zcdp;
use whit_core::{Delta, Epsilon, Mechanism, Ratio, Rho, Scale};

fn delta_at(rho: Rho, epsilon: f64) -> f64 {
    let epsilon = Epsilon::new(epsilon).expect("finite and not negative");
    zcdp::delta(rho, epsilon).map_or(1.0, Delta::value)
}

/// `Phi(μ/2 - ε/μ) - e^ε Phi(-μ/2 - ε/μ)`, the delta of the continuous Gaussian with `ρ = μ²/2`. [BW18, Thm 8]
fn gaussian_delta(mu: f64, epsilon: f64) -> f64 {
    let phi = |x: f64| libm::erfc(-x / std::f64::consts::SQRT_2) / 2.0;
    phi(mu / 2.0 - epsilon / mu) - epsilon.exp() * phi(-mu / 2.0 - epsilon / mu)
}

#[test]
fn never_below_the_continuous_gaussian_and_not_far_above() {
    for mu in [0.01, 0.1, 0.5, 1.0, 2.0, 4.0] {
        let rho = Rho::new(mu * mu / 2.0).expect("finite");
        for step in 0..12 {
            let epsilon = rho.value() + mu * f64::from(step) / 2.0;
            let (ours, exact) = (delta_at(rho, epsilon), gaussian_delta(mu, epsilon));
            assert!(
                ours >= exact,
                "mu {mu} epsilon {epsilon}: {ours:e} < {exact:e}"
            );
            assert!(
                ours <= 8.0 * exact,
                "mu {mu} epsilon {epsilon}: {ours:e} >> {exact:e}"
            );
        }
    }
}

/// 4.886554… solves the exact formula for `μ = 1` and `δ = 1e-6` (mpmath 1.4.1, 60 digits).
#[test]
fn a_gaussian_of_scale_one_costs_between_4_88_and_5_6() {
    let (rho, delta) = (
        Rho::new(0.5).expect("finite"),
        Delta::new(1e-6).expect("below one"),
    );
    let epsilon = zcdp::epsilon(rho, delta).expect("finite").value();
    assert!((4.886_554..=5.6).contains(&epsilon), "{epsilon}");
}

/// The definition itself: `Σ_y (P(y) - e^ε Q(y))₊` for integers `shift` apart.
fn discrete_gaussian_delta(sigma: f64, shift: i32, epsilon: f64) -> f64 {
    let reach = (40.0 * sigma) as i32 + shift + 2;
    let weight = |y: i32| (-0.5 * (f64::from(y) / sigma).powi(2)).exp();
    let total: f64 = (-reach..=reach).map(weight).sum();
    let positive = |y: i32| (weight(y) - epsilon.exp() * weight(y - shift)).max(0.0);
    (-reach..=reach).map(positive).sum::<f64>() / total
}

#[test]
fn never_below_the_discrete_gaussian() {
    for sigma in [0.3, 0.5, 0.8, 1.0, 1.7, 3.0, 10.0, 50.0] {
        for shift in 1_i32..=3 {
            let gaussian = Mechanism::DiscreteGaussian {
                scale: Scale::new(Ratio::from_f64(sigma).expect("finite")).expect("in range"),
                sensitivity_l2_square: Ratio::from(u64::from(shift.unsigned_abs()).pow(2)),
                coordinates: 1,
            };
            let rho = zcdp::rho(&gaussian).expect("finite");
            for step in 0..40 {
                let epsilon = rho.value() * f64::from(step) / 8.0 + f64::from(step) / 40.0;
                let exact = discrete_gaussian_delta(sigma, shift, epsilon);
                let ours = delta_at(rho, epsilon);
                let place = format!("sigma {sigma} shift {shift} epsilon {epsilon}");
                assert!(ours >= exact, "{place}: {ours:e} < {exact:e}");
            }
        }
    }
}

/// Two coordinates, moved by one each: squared L2 sensitivity 2. The delta of the product is summed over the grid.
#[test]
fn never_below_two_discrete_gaussians_together() {
    for sigma in [0.5, 1.0, 2.0] {
        let reach = (40.0 * sigma) as i32 + 3;
        let weight = |y: i32| (-0.5 * (f64::from(y) / sigma).powi(2)).exp();
        let total: f64 = (-reach..=reach).map(weight).sum();
        let gaussian = Mechanism::DiscreteGaussian {
            scale: Scale::new(Ratio::from_f64(sigma).expect("finite")).expect("in range"),
            sensitivity_l2_square: Ratio::from(2_u64),
            coordinates: 2,
        };
        let rho = zcdp::rho(&gaussian).expect("finite");
        for step in 0..10 {
            let epsilon = rho.value() * f64::from(step) / 2.0;
            let mut exact = 0.0;
            for y in -reach..=reach {
                for z in -reach..=reach {
                    let moved = weight(y - 1) * weight(z - 1);
                    exact += (weight(y) * weight(z) - epsilon.exp() * moved).max(0.0);
                }
            }
            exact /= total * total;
            let ours = delta_at(rho, epsilon);
            assert!(
                ours >= exact,
                "sigma {sigma} epsilon {epsilon}: {ours:e} < {exact:e}"
            );
        }
    }
}

/// At least the truth, and hardly more.
fn check(what: &str, found: f64, truth: f64) {
    let near = found >= truth && found <= truth * (1.0 + 1e-11);
    assert!(near, "{what}: {found:e}, truth {truth:e}");
}

/// Minimised over the order with mpmath 1.4.1, 60 digits, from the textbook form in `α` (not the form in `t`).
#[test]
fn delta_matches_high_precision() {
    for (rho, epsilon, truth) in [
        (0.025, 1.0, 1.336_131_906_403_223_3e-6),
        (0.5, 5.0, 2.896_122_809_384_795e-6),
        (0.5, 0.0, 0.558_835_639_347_434_6),
        (0.125, 3.0, 2.001_433_474_824_004e-9),
        (1e-6, 0.01, 1.016_918_072_347_650_6e-15),
        (8.0, 20.0, 3.291_096_733_659_162_5e-3),
        (0.005, 2.0, 6.902_234_166_607_615e-90),
        (0.5, 30.0, 1.306_101_359_290_877e-191),
        (1e-10, 0.0, 8.577_638_849_464_107e-6),
    ] {
        let rho = Rho::new(rho).expect("finite");
        check("delta", delta_at(rho, epsilon), truth);
    }
}

/// From the same source, by bisection with 60 digits.
#[test]
fn epsilon_matches_high_precision() {
    for (rho, delta, truth) in [
        (0.025, 1e-6, 1.014_074_254_726_127_9),
        (0.5, 1e-6, 5.221_534_444_530_169),
        (0.5, 1e-10, 6.839_329_413_120_848),
        (0.125, 1e-5, 2.165_715_545_175_485),
        (1e-4, 1e-9, 0.074_362_793_114_136_25),
        (8.0, 1e-12, 36.734_297_478_827_04),
        (0.5, 1e-300, 37.544_558_965_922_12),
        (1e-12, 1e-3, 0.0),
        (100.0, 0.5, 113.096_973_372_253_52),
    ] {
        let (rho, delta) = (
            Rho::new(rho).expect("finite"),
            Delta::new(delta).expect("below one"),
        );
        let found = zcdp::epsilon(rho, delta).expect("finite").value();
        check("epsilon", found, truth);
    }
}
