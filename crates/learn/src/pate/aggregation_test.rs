//! Terms that cannot be, prices, caps, and payments.

use super::*;
use crate::Uncharged;
use whit_core::{Epsilon, Fault};
use whit_testkit::Seeded;

fn terms() -> Terms {
    Terms {
        test: Some(Test {
            threshold: 60.0,
            sigma: 10.0,
        }),
        sigma: 20.0,
        queries: 50,
        answers_max: 10,
        classes: 3,
        ..Terms::default()
    }
}

fn votes(queries: usize) -> Votes {
    Votes::from_histogram(&[80, 15, 5].repeat(queries), 3).expect("votes")
}

/// The price is that of `μ² = N/σ₁² + 2A/σ₂²` by the exact curve, rounded up and hardly more.
#[test]
fn guarantee_is_that_of_the_filter() {
    for (test, sigma, queries, answers) in [
        (Some(150.0), 40.0, 640, 286),
        (Some(10.0), 20.0, 50, 10),
        (None, 40.0, 100, 100),
    ] {
        let terms = Terms {
            test: test.map(|sigma| Test {
                threshold: 60.0,
                sigma,
            }),
            sigma,
            queries,
            answers_max: answers,
            ..terms()
        };
        let made = Aggregation::new(&terms).expect("terms");
        let tests = test.map_or(0.0, |sigma: f64| queries as f64 / (sigma * sigma));
        let square = tests + 2.0 * answers as f64 / (sigma * sigma);
        assert!(
            (made.mu() * made.mu() - square).abs() < 1e-12
                && made.mu() * made.mu() >= square * (1.0 - 1e-15)
        );
        let curve = gdp::epsilon(
            Mu::new(made.mu()).expect("finite").value().into(),
            Delta::new(1e-5).expect("a delta"),
        );
        assert!(
            (made.epsilon() - curve.upper()).abs() < 1e-9,
            "{} {curve:?}",
            made.epsilon()
        );
        let delta = gdp::delta(
            made.mu().into(),
            Epsilon::new(made.epsilon()).expect("finite"),
        );
        assert!(delta.lower() <= 1e-5);
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let test = |threshold, sigma| Some(Test { threshold, sigma });
    for bad in [
        Terms {
            sigma: 0.0,
            ..terms()
        },
        Terms {
            sigma: -1.0,
            ..terms()
        },
        Terms {
            sigma: f64::NAN,
            ..terms()
        },
        Terms {
            sigma: f64::INFINITY,
            ..terms()
        },
        Terms {
            test: test(60.0, 0.0),
            ..terms()
        },
        Terms {
            test: test(f64::NAN, 1.0),
            ..terms()
        },
        Terms {
            test: test(-5.0, 1.0),
            ..terms()
        },
        Terms {
            test: test(f64::INFINITY, 1.0),
            ..terms()
        },
        Terms {
            queries: 0,
            ..terms()
        },
        Terms {
            answers_max: 0,
            ..terms()
        },
        Terms {
            classes: 1,
            ..terms()
        },
        Terms {
            classes: 0,
            ..terms()
        },
        Terms {
            delta: 0.0,
            ..terms()
        },
        Terms {
            delta: 1.0,
            ..terms()
        },
        Terms {
            delta: f64::NAN,
            ..terms()
        },
    ] {
        assert!(
            Aggregation::new(&bad).is_err_and(|error| !error.suggestion().is_empty()),
            "{bad:?}"
        );
    }
    // No more answers are paid for than there are queries.
    let many = Aggregation::new(&Terms {
        answers_max: 500,
        ..terms()
    })
    .expect("terms");
    assert_eq!(many.terms().answers_max, 50);
}

#[test]
fn run_stops_at_the_cap_and_looks_no_further() {
    let aggregation = Aggregation::new(&terms()).expect("terms");
    let payment = Payment::uncharged(&aggregation, Uncharged);
    let outcome = aggregation
        .run(&Secret::new(votes(60)), payment, &mut Seeded::new(941))
        .expect("entropy");
    assert_eq!((outcome.labels.len(), outcome.answered()), (50, 10));
    assert!(outcome.tested < 20);
    assert!(outcome.labels[outcome.tested..].iter().all(Option::is_none));
    let plain = Aggregation::new(&Terms {
        test: None,
        ..terms()
    })
    .expect("terms");
    let payment = Payment::uncharged(&plain, Uncharged);
    let outcome = plain
        .run(&Secret::new(votes(60)), payment, &mut Seeded::new(942))
        .expect("entropy");
    assert_eq!((outcome.tested, outcome.answered()), (10, 10));
}

#[test]
fn payments_are_for_these_terms_and_votes_must_fit() {
    let aggregation = Aggregation::new(&terms()).expect("terms");
    let cheap = Aggregation::new(&Terms {
        sigma: 2000.0,
        ..terms()
    })
    .expect("terms");
    let mut entropy = Seeded::new(943);
    let wrong = aggregation.run(
        &Secret::new(votes(50)),
        Payment::uncharged(&cheap, Uncharged),
        &mut entropy,
    );
    assert_eq!(wrong, Err(Error::OtherPlan));
    let run = |votes: Votes, entropy: &mut Seeded| {
        let payment = Payment::uncharged(&aggregation, Uncharged);
        aggregation
            .run(&Secret::new(votes), payment, entropy)
            .map_err(|error| error.code())
    };
    assert_eq!(run(votes(49), &mut entropy).err(), Some("votes_too_few"));
    let two = Votes::from_histogram(&[80, 20].repeat(50), 2).expect("votes");
    assert_eq!(run(two, &mut entropy).err(), Some("votes_other_classes"));
}

/// Under either relation the same is done and paid; only whom it is about differs.
#[test]
fn relations_have_one_price() {
    let one = Aggregation::new(&terms()).expect("terms");
    let other = Aggregation::new(&Terms {
        neighbours: Neighbours::AddRemove,
        ..terms()
    })
    .expect("terms");
    assert_eq!(one.epsilon(), other.epsilon());
    assert_eq!(other.event().neighbours(), Neighbours::AddRemove);
    assert_ne!(one.event().fingerprint(), other.event().fingerprint());
}
