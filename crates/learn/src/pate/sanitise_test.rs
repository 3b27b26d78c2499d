//! Prices, noise and intervals of published costs.

use super::*;
use crate::pate::{Aggregation, Test};
use crate::{Payment, Uncharged};
use whit_testkit::Seeded;

const SANITISE: Sanitise = Sanitise {
    order: 10.0,
    beta: 0.02,
    sigma: 20.0,
    width_noise: 10.0,
    delta: 1e-6,
    delta_told: 1e-5,
    confidence: 0.9,
};

fn terms(sanitise: Option<Sanitise>) -> Terms {
    Terms {
        test: Some(Test {
            threshold: 150.0,
            sigma: 30.0,
        }),
        sigma: 30.0,
        queries: 40,
        answers_max: 40,
        classes: 4,
        sanitise,
        ..Terms::default()
    }
}

fn votes() -> Votes {
    let row = |i: u64| [190 - 2 * i, 8 + i, 2 + i, 0];
    Votes::from_histogram(&(0..40).flat_map(row).collect::<Vec<_>>(), 4).expect("votes")
}

#[test]
fn publishing_is_priced_and_part_of_the_event() {
    let (plain, told) = (
        Aggregation::new(&terms(None)),
        Aggregation::new(&terms(Some(SANITISE))),
    );
    let (plain, told) = (plain.expect("terms"), told.expect("terms"));
    let own = Release::new(0.02, 20.0)
        .expect("positive")
        .epsilon(Delta::new(1e-6).expect("a delta"));
    let own = own.expect("finite").value();
    assert!(
        told.epsilon() > plain.epsilon() + 0.5 * own,
        "{} {} {own}",
        told.epsilon(),
        plain.epsilon()
    );
    assert!(told.epsilon() < plain.epsilon() + own + 0.2);
    assert_ne!(plain.event().fingerprint(), told.event().fingerprint());
}

#[test]
fn parameters_out_of_range_are_refused() {
    for bad in [
        Sanitise {
            order: 1.0,
            ..SANITISE
        },
        Sanitise {
            order: 26.0,
            ..SANITISE
        },
        Sanitise {
            order: f64::NAN,
            ..SANITISE
        },
        Sanitise {
            beta: 0.0,
            ..SANITISE
        },
        Sanitise {
            sigma: 0.0,
            ..SANITISE
        },
        Sanitise {
            sigma: 1e9,
            ..SANITISE
        },
        Sanitise {
            width_noise: 0.0,
            ..SANITISE
        },
        Sanitise {
            delta: 0.0,
            ..SANITISE
        },
        Sanitise {
            confidence: 1.0,
            ..SANITISE
        },
    ] {
        assert!(Aggregation::new(&terms(Some(bad))).is_err(), "{bad:?}");
    }
}

/// Intervals hold the cost as often as they say, and estimates are right on average.
#[test]
fn intervals_hold_the_cost() {
    let aggregation = Aggregation::new(&terms(Some(SANITISE))).expect("terms");
    let votes = Secret::new(votes());
    let mut entropy = Seeded::new(951);
    let own = Release::new(0.02, 20.0).expect("positive").divergence(10.0);
    let (runs, mut held, mut bias, mut spread) = (200, 0, 0.0, 0.0);
    for _ in 0..runs {
        let payment = Payment::uncharged(&aggregation, Uncharged);
        let outcome = aggregation
            .run(&votes, payment, &mut entropy)
            .expect("entropy");
        let sum = SANITISE.sum(aggregation.terms(), votes.as_ref().expose(), &outcome);
        let truth = sum.cost as f64 * UNIT + own + 1e5_f64.ln() / 9.0;
        let told = outcome.sanitised.expect("asked for");
        held += u32::from(told.low <= truth && truth <= told.high);
        let z = (told.epsilon - truth) / (20.0 * sum.sensitivity * UNIT);
        bias += z;
        spread += z * z;
    }
    let runs = f64::from(runs);
    // Six deviations of a mean of normal numbers, and of their squares.
    assert!((bias / runs).abs() < 6.0 / runs.sqrt(), "{bias}");
    assert!(
        (spread / runs - 1.0).abs() < 6.0 * (2.0 / runs).sqrt(),
        "{spread}"
    );
    assert!(
        f64::from(held) >= 0.9 * runs - 6.0 * (0.09 * runs).sqrt(),
        "{held}"
    );
}
