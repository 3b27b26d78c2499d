//! Each part of an event has its step; and what outputs say is within what is charged.

use super::*;
use crate::{delta, price};
use whit_core::{Delta, Epsilon, Event, Probability, Scale};

fn ratio(numerator: u128, denominator: u128) -> Ratio {
    Ratio::new(numerator, denominator).expect("not zero")
}

fn gaussian(sigma: Ratio, square: Ratio, coordinates: u64) -> Mechanism {
    Mechanism::DiscreteGaussian {
        scale: Scale::new(sigma).expect("in range"),
        sensitivity_l2_square: square,
        coordinates,
    }
}

fn laplace(scale: Ratio, sensitivity_l1: Ratio, coordinates: u64) -> Mechanism {
    Mechanism::DiscreteLaplace {
        scale: Scale::new(scale).expect("in range"),
        sensitivity_l1,
        coordinates,
    }
}

fn one(mechanism: &Mechanism, side: Side) -> (Option<Step>, f64) {
    let found = steps(mechanism, side, Neighbours::AddRemove).expect("known");
    assert!(found.steps.len() <= 1);
    let step = found.steps.into_iter().next().map(|(step, count)| {
        assert_eq!(count, 1);
        step
    });
    (step, found.distance)
}

#[test]
fn whole_roots() {
    for (square, root) in [
        (ratio(0, 1), 0.0),
        (ratio(99, 100), 0.0),
        (ratio(1, 1), 1.0),
        (ratio(2, 1), 1.0),
        (ratio(4, 1), 2.0),
        (ratio(399, 100), 1.0),
    ] {
        assert_eq!(whole_root(&square), Some(root), "{square:?}");
    }
    // Right below and at a square that no float holds.
    let large = (1_u128 << 51) + 3;
    assert_eq!(whole_root(&ratio(large * large, 1)), Some(large as f64));
    let below = whole_root(&ratio(large * large - 1, 1));
    assert_eq!(below, Some((large - 1) as f64));
    assert_eq!(whole_root(&Ratio::power_of_two(120)), None);
}

/// The table of the module.
#[test]
fn each_part_has_its_step() {
    let third = laplace(ratio(3, 1), ratio(5, 2), 1);
    let (Some(Step::DiscreteLaplace { rate, sensitivity }), 0.0) = one(&third, Side::Upper) else {
        panic!("a lattice");
    };
    let third = 1.0 / 3.0..0.333_333_333_333_34;
    assert!(sensitivity == 2 && third.contains(&rate));
    let several = laplace(ratio(4, 1), ratio(3, 1), 7);
    let pure = Step::Approximate {
        epsilon: 0.75,
        delta: 0.0,
    };
    assert_eq!(one(&several, Side::Upper), (Some(pure), 0.0));
    let single = Step::DiscreteLaplace {
        rate: 0.25,
        sensitivity: 3,
    };
    assert_eq!(one(&several, Side::Lower), (Some(single), 0.0));
    // Integers that differ by less than one are equal.
    let nothing = laplace(ratio(4, 1), ratio(1, 2), 1);
    assert_eq!(one(&nothing, Side::Upper), (None, 0.0));

    let short = gaussian(ratio(7, 2), ratio(5, 1), 1);
    let lattice = Step::DiscreteGaussian {
        sigma: 3.5,
        sensitivity: 2,
    };
    assert_eq!(one(&short, Side::Upper), (Some(lattice), 0.0));
    let vector = gaussian(ratio(7, 2), ratio(4, 1), 3);
    let (Some(Step::Gaussian { sigma, sensitivity }), distance) = one(&vector, Side::Upper) else {
        panic!("rounded");
    };
    assert!(sigma == 3.5 && (2.0..2.000_000_001).contains(&sensitivity));
    assert!((distance - 3.0 * 0.1211 / 12.25).abs() < 1e-15);
    // No float is a third.
    assert!(one(&gaussian(ratio(1, 3), ratio(1, 1), 1), Side::Upper).1 > 1.0);
    let keep = Probability::new(ratio(3, 4)).expect("a share");
    let response = Mechanism::RandomizedResponse {
        keep: keep.clone(),
        categories: 2,
    };
    for side in [Side::Upper, Side::Lower] {
        let (Some(Step::RandomizedResponse { epsilon, .. }), 0.0) = one(&response, side) else {
            panic!("itself");
        };
        assert!((epsilon - 3_f64.ln()).abs() < 1e-15);
    }
    // Who mostly lies among three tells less than who mostly does not.
    let liar = Mechanism::RandomizedResponse {
        keep: Probability::new(ratio(1, 10)).expect("a share"),
        categories: 3,
    };
    assert!(matches!(
        one(&liar, Side::Upper).0,
        Some(Step::Approximate { .. })
    ));
    let certain = Mechanism::RandomizedResponse {
        keep: Probability::new(Ratio::one()).expect("a share"),
        categories: 3,
    };
    assert_eq!(steps(&certain, Side::Upper, Neighbours::AddRemove), None);
}

#[test]
fn equal_parts_are_counted_and_many_are_left_alone() {
    let part = laplace(ratio(3, 1), ratio(1, 1), 1);
    let nested = Mechanism::Composition(vec![
        part.clone(),
        Mechanism::Composition(vec![part.clone(), part]),
    ]);
    let found = steps(&nested, Side::Upper, Neighbours::AddRemove).expect("known");
    assert!(matches!(&found.steps[..], [(_, 3)]));
    let different = |count| {
        let parts = (1..=count).map(|b| laplace(ratio(b, 1), ratio(1, 1), 1));
        steps(
            &Mechanism::Composition(parts.collect()),
            Side::Upper,
            Neighbours::AddRemove,
        )
    };
    assert!(different(3).is_some() && different(4).is_none() && different(100).is_none());
}

/// Numbers beyond 128 bits are abbreviated where they are shown: `1234567890123456789..9876543210987654321` is both of these, a
/// hundred apart. A small loss first must not stand for the large ones after it.
#[test]
fn parts_that_look_alike_are_told_apart() {
    let part = |numerator: &str| Mechanism::Pure {
        epsilon: format!("{numerator}/1000000000000000000000000000000000000000003")
            .parse()
            .expect("a ratio"),
    };
    let small = part("1234567890123456789009876543210987654321");
    let large = part("123456789012345678900009876543210987654321");
    assert_eq!(format!("{small:?}"), format!("{large:?}"));
    let mut parts = vec![small];
    parts.extend(vec![large; 20]);
    let whole = Mechanism::Composition(parts);
    let counts: Vec<_> = steps(&whole, Side::Upper, Neighbours::AddRemove)
        .expect("known")
        .steps
        .into_iter()
        .map(|(_, count)| count)
        .collect();
    assert_eq!(counts, [1, 20]);
    let slack = Delta::new(1e-6).expect("below one");
    let paid = price(&event(whole), slack).expect("priced");
    assert!(paid.epsilon.value() > 2.0, "{paid:?}");
}

/// The distance from the rounded Gaussian, added up.
#[test]
fn distance_of_the_rounded_gaussian() {
    for sigma in [0.7_f64, 1.0, 2.0, 5.0, 20.0] {
        let reach = (40.0 * sigma) as i32;
        let f = |z: i32| (-0.5 * (f64::from(z) / sigma).powi(2)).exp();
        let total: f64 = (-reach..=reach).map(f).sum();
        let upto = |x: f64| 0.5 * libm::erfc(-x / sigma / 2_f64.sqrt());
        let apart = |z: i32| {
            let z = f64::from(z);
            // From the nearer end, so that small masses keep their digits.
            let (low, high) = if z > 0.0 {
                (-z - 0.5, 0.5 - z)
            } else {
                (z - 0.5, z + 0.5)
            };
            (f(z as i32) / total - (upto(high) - upto(low))).abs()
        };
        let distance = 0.5 * (-reach..=reach).map(apart).sum::<f64>();
        let bound = ROUNDED_GAUSSIAN as f64 / 1e4 / (sigma * sigma);
        assert!(distance <= bound, "{sigma}: {distance} {bound}");
        assert!(
            sigma < 2.0 || distance > 0.15 * bound,
            "{sigma}: {distance} {bound}"
        );
    }
}

/// What rounding hides of shifted noise is within what is charged for it, and nearly all of that where the best threshold is an integer.
#[test]
fn rounding_hides_no_more_than_is_charged() {
    // The largest part of the charge that was found to be needed.
    let most = |sigma: f64,
                charged: u128,
                survival: &dyn Fn(f64) -> f64,
                best: &dyn Fn(f64, f64) -> f64| {
        let mut found = 0.0_f64;
        for shift in (1..9).chain([2 * sigma.ceil() as i32]) {
            for tenths in -30..=30 {
                let (shift, epsilon) = (f64::from(shift), f64::from(tenths) / 10.0);
                let gain = |threshold: f64| {
                    survival(threshold - shift) - epsilon.exp() * survival(threshold)
                };
                let reach = (10.0 * sigma + shift) as i32 + 10;
                let rounded = (-reach..=reach)
                    .map(|whole| gain(f64::from(whole) + 0.5))
                    .fold(0.0_f64.max(1.0 - epsilon.exp()), f64::max);
                let allowed = charged as f64 / 1e4 * (1.0 + epsilon.exp()) / (sigma * sigma);
                found = found.max((gain(best(shift, epsilon)) - rounded) / allowed);
            }
        }
        found
    };
    for sigma in [0.5, 0.8, 1.0, 2.5, 20.0] {
        let survival = |x: f64| 0.5 * libm::erfc(x / sigma / 2_f64.sqrt());
        let best = |shift: f64, epsilon: f64| shift / 2.0 + sigma * sigma * epsilon / shift;
        let part = most(sigma, HIDDEN_GAUSSIAN - ROUNDED_GAUSSIAN, &survival, &best);
        assert!(
            part <= 1.0 && (sigma < 20.0 || part > 0.8),
            "{sigma}: {part}"
        );
    }
    for scale in [100.0, 300.0] {
        let survival = |x: f64| {
            let tail = 0.5 * (-x.abs() / scale).exp();
            if x > 0.0 { tail } else { 1.0 - tail }
        };
        let best = |shift: f64, epsilon: f64| (shift + scale * epsilon) / 2.0;
        let part = most(scale, HIDDEN_LAPLACE - ROUNDED_LAPLACE, &survival, &best);
        assert!(part <= 1.0 && part > 0.8, "{scale}: {part}");
    }
}

fn event(mechanism: Mechanism) -> Event {
    Event::new(Neighbours::AddRemove, mechanism)
}

fn profile(mechanism: &Mechanism, epsilon: f64) -> crate::Answer {
    let epsilon = Epsilon::new(epsilon).expect("in range");
    delta(&event(mechanism.clone()), epsilon).expect("priced")
}

/// Sums over all outputs, for integers that differ by `shift` in the first of two coordinates.
#[test]
fn profiles_hold_what_outputs_say() {
    let brute = |weight: &dyn Fn(i32) -> f64, shift: i32, epsilon: f64| {
        let total: f64 = (-400..=400).map(weight).sum();
        let gain = |z: i32| (weight(z) - epsilon.exp() * weight(z - shift)).max(0.0);
        (-400..=400).map(gain).sum::<f64>() / total
    };
    for epsilon in [0.0, 0.3, 1.0, 1.9] {
        let truth = brute(&|z| (-f64::from(z.abs()) / 3.0).exp(), 6, epsilon);
        let mechanism = laplace(ratio(3, 1), ratio(6, 1), 1);
        let found = profile(&mechanism, epsilon).bounds;
        assert!(found.lower() <= truth * (1.0 + 1e-9) && truth <= found.upper() + 1e-12);
        assert!(found.relative_width() < 1e-9, "{found:?} {truth}");
        let pair = profile(&laplace(ratio(3, 1), ratio(6, 1), 2), epsilon).bounds;
        assert!(pair.lower() <= truth * (1.0 + 1e-9) && truth <= pair.upper() + 1e-12);
        let truth = brute(&|z| (-f64::from(z * z) / 50.0).exp(), 4, epsilon);
        let found = profile(&gaussian(ratio(5, 1), ratio(16, 1), 1), epsilon).bounds;
        assert!(found.lower() <= truth * (1.0 + 1e-9) && truth <= found.upper() + 1e-12);
        assert!(found.relative_width() < 1e-9, "{found:?} {truth}");
        // The same with a distance.
        let found = profile(&gaussian(ratio(5, 1), ratio(16, 1), 2), epsilon).bounds;
        assert!(found.lower() <= truth && truth <= found.upper());
    }
}

/// A long lattice costs what Laplace noise costs: a hundred times with `Δ/b = 0.1` (exact residue sums in mpmath).
#[test]
fn laplace_on_fine_grids_costs_what_laplace_costs() {
    let part = laplace(ratio(10 << 40, 1), &ratio(1 << 40, 1) + &ratio(1, 2), 1);
    let whole = Mechanism::Composition(vec![part; 100]);
    let slack = Delta::new(1e-6).expect("below one");
    let paid = price(&event(whole), slack).expect("priced");
    assert!(
        (paid.epsilon.value() - 4.692_667_4).abs() < 1e-6,
        "{paid:?}"
    );
    // Where noise is a few steps, the distance would cost more than it saves.
    let coarse = laplace(ratio(100, 1), ratio(100_000, 1), 1);
    let found = steps(&coarse, Side::Upper, Neighbours::AddRemove).expect("known");
    assert_eq!(found.distance, 0.0);
}

/// Never dearer than before, and for fine grids the price of a Gaussian.
#[test]
fn gaussians_on_fine_grids_cost_what_gaussians_cost() {
    let sigma = Ratio::power_of_two(40);
    let slack = Delta::new(1e-6).expect("below one");
    for (square, coordinates, parts, golden) in [
        // Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ) = 1e-6 at μ = 1 and μ = 1/2.
        (Ratio::power_of_two(80), 1, 1, 4.886_554_1),
        (Ratio::power_of_two(80), 5, 1, 4.886_554_1),
        (Ratio::power_of_two(76), 5, 4, 2.254_084_7),
    ] {
        let part = gaussian(sigma.clone(), square, coordinates);
        let whole = Mechanism::Composition(vec![part; parts]);
        let paid = price(&event(whole.clone()), slack).expect("priced");
        assert!((paid.epsilon.value() - golden).abs() < 1e-5, "{paid:?}");
        assert!(paid.delta <= slack && paid.theorem.contains("ZDW22"));
        let at = profile(&whole, paid.epsilon.value()).bounds;
        assert!(at.upper() <= 1e-6 && at.lower() > 0.9999e-6, "{at:?}");
    }
}

/// A pure mechanism keeps its delta unless much is gained; parts with a delta are composed with the others.
#[test]
fn delta_is_spent_where_it_is_worth_it() {
    let slack = Delta::new(1e-6).expect("below one");
    let priced = |mechanism| price(&event(mechanism), slack).expect("priced");
    let single = priced(laplace(ratio(2, 1), ratio(1, 1), 1));
    assert_eq!((single.epsilon.value(), single.delta), (0.5, Delta::ZERO));
    let many = Mechanism::Composition(vec![laplace(ratio(10, 1), ratio(1, 1), 1); 200]);
    let many = priced(many);
    // zCDP says 8.4.
    assert!(
        many.epsilon.value() < 7.3 && many.delta == slack,
        "{many:?}"
    );
    let approximate = Mechanism::Approximate {
        epsilon: ratio(1, 10),
        delta: Probability::new(ratio(1, 1_000_000_000)).expect("a share"),
    };
    let black_boxes = priced(Mechanism::Composition(vec![approximate; 100]));
    // Basic composition says 10.
    assert!(black_boxes.epsilon.value() < 5.5, "{black_boxes:?}");
}
