//! What samplers add that are only close to what was meant: prices rise gently, and every refusal offers what passes.

use whit_accounting::{Error, Price, Result, delta, price};
use whit_core::{Delta, Event, Mechanism, Neighbours, Probability, Ratio, Scale};

fn scale(value: f64) -> Scale {
    Scale::new(Ratio::from_f64(value).expect("finite")).expect("in range")
}

fn laplace(value: f64) -> Mechanism {
    Mechanism::DiscreteLaplace {
        scale: scale(value),
        sensitivity_l1: Ratio::one(),
        coordinates: 1,
    }
}

fn gaussian(value: f64) -> Mechanism {
    Mechanism::DiscreteGaussian {
        scale: scale(value),
        sensitivity_l2_square: Ratio::one(),
        coordinates: 1,
    }
}

fn close(inner: Mechanism, total_variation: f64) -> Mechanism {
    let ratio = Ratio::from_f64(total_variation).expect("finite");
    let total_variation = Probability::new(ratio).expect("at most one");
    Mechanism::Close {
        inner: Box::new(inner),
        total_variation,
    }
}

fn priced(mechanism: Mechanism, delta: f64) -> Result<Price> {
    price(
        &Event::new(Neighbours::ReplaceOne, mechanism),
        Delta::new(delta)?,
    )
}

#[test]
fn a_close_pure_mechanism_spends_its_slack() {
    let tau = 2.0_f64.powi(-40);
    let found = priced(close(laplace(1.0), tau), 1e-6).expect("tau is small");
    let slack = (1.0 + 1.0_f64.exp()) * tau;
    assert_eq!(found.epsilon.value(), 1.0);
    assert!(found.delta.value() >= slack && found.delta.value() < slack * (1.0 + 1e-14));
}

/// Finer and finer distances, from far too coarse to next to nothing: refused first, then dear, then cheap; and
/// whatever is granted fits its delta by the definition, in plain floats with room for their error.
#[test]
fn a_close_gaussian_costs_a_little_more() {
    let exact = priced(gaussian(1.0), 1e-6)
        .expect("concentrated")
        .epsilon
        .value();
    let (mut last, mut granted) = (f64::INFINITY, 0);
    for step in 0..300 {
        let tau = 1e-6 * 0.9_f64.powi(step);
        match priced(close(gaussian(1.0), tau), 1e-6) {
            Ok(found) => {
                let epsilon = found.epsilon.value();
                assert!(
                    exact <= epsilon && epsilon <= last * (1.0 + 1e-8),
                    "tau {tau:e}: {epsilon}"
                );
                let meant = Event::new(Neighbours::ReplaceOne, gaussian(1.0));
                let spent = delta(&meant, found.epsilon).expect("priced");
                let spent = spent.bounds.upper();
                let whole = spent + (1.0 + epsilon.exp()) * tau;
                assert!(whole <= 1e-6 * (1.0 + 1e-12), "tau {tau:e}: {whole:e}");
                assert_eq!(found.delta.value(), 1e-6);
                (last, granted) = (epsilon, granted + 1);
            }
            Err(error) => {
                assert!(
                    matches!(error, Error::TooCoarse { .. }) && granted == 0,
                    "{error}"
                );
            }
        }
    }
    assert!(granted > 200 && last < exact * (1.0 + 1e-6));
}

#[test]
fn distances_add_across_parts_and_layers() {
    let tau = 2.0_f64.powi(-40);
    let apart = Mechanism::Composition(vec![close(laplace(2.0), tau), close(laplace(2.0), tau)]);
    let (both, sum) = (Mechanism::Composition(vec![laplace(2.0); 2]), 2.0 * tau);
    let expected = priced(close(both.clone(), sum), 1e-6).expect("tau is small");
    assert_eq!(priced(apart, 1e-6), Ok(expected));
    assert_eq!(priced(close(close(both, tau), tau), 1e-6), Ok(expected));
}

#[test]
fn a_distance_of_zero_is_no_distance() {
    assert_eq!(
        priced(close(laplace(2.0), 0.0), 0.0),
        priced(laplace(2.0), 0.0)
    );
    assert_eq!(
        priced(close(gaussian(2.0), 0.0), 1e-9),
        priced(gaussian(2.0), 1e-9)
    );
}

#[test]
fn what_a_refusal_offers_passes() {
    let mixed = Mechanism::Composition(vec![gaussian(1.0), laplace(1.0)]);
    for inner in [laplace(1.0), gaussian(1.0), gaussian(0.3), mixed] {
        for (tau, delta) in [(1e-3, 1e-6), (1e-9, 1e-9), (1e-12, 1e-13), (1e-30, 1e-31)] {
            let refused = priced(close(inner.clone(), tau), delta).expect_err("tau is coarse");
            let Error::TooCoarse {
                delta_passing,
                total_variation_passing,
                ..
            } = refused
            else {
                panic!("refused for another reason: {refused}");
            };
            let finer = close(inner.clone(), total_variation_passing);
            assert!(priced(finer, delta).is_ok(), "{inner:?} {tau} {delta}");
            assert!(delta_passing > delta);
            if delta_passing < 1.0 {
                assert!(priced(close(inner.clone(), tau), delta_passing).is_ok());
            }
        }
    }
    assert!(priced(close(laplace(1.0), 1e-30), 0.0).is_err());
    assert!(priced(close(gaussian(1.0), 1e-30), 0.0).is_err());
}

#[test]
fn huge_losses_and_full_distances_are_refused() {
    assert!(
        priced(close(laplace(1e-3), 1e-300), 0.5).is_err(),
        "e^1000 is no float"
    );
    assert!(priced(close(gaussian(1.0), 1.0), 0.9).is_err());
    let response = Mechanism::RandomizedResponse {
        keep: Probability::new(Ratio::one()).expect("one"),
        categories: 2,
    };
    let unbounded = Err(Error::Unbounded {
        what: "finite epsilon",
    });
    assert_eq!(priced(response.clone(), 1e-6), unbounded);
    let both = Mechanism::Composition(vec![gaussian(1.0), response]);
    assert_eq!(priced(both, 1e-6), unbounded);
}
