//! Compositions of every kind together: what basic composition, conversion and closeness add up to, by their formulas.

use whit_accounting::{Error, Price, Result, delta, price, pure, zcdp};
use whit_core::{
    Delta, Epsilon, Event, Fault, FaultKind, Mechanism, Neighbours, Probability, Ratio, Rho, Scale,
};

fn ratio(value: f64) -> Ratio {
    Ratio::from_f64(value).expect("finite and not negative")
}

fn probability(value: f64) -> Probability {
    Probability::new(ratio(value)).expect("at most one")
}

fn gaussian(scale: f64) -> Mechanism {
    Mechanism::DiscreteGaussian {
        scale: Scale::new(ratio(scale)).expect("in range"),
        sensitivity_l2_square: Ratio::one(),
        coordinates: 1,
    }
}

fn pure_known(epsilon: f64) -> Mechanism {
    let epsilon = ratio(epsilon);
    Mechanism::Pure { epsilon }
}

fn range(epsilon: f64) -> Mechanism {
    let epsilon = ratio(epsilon);
    Mechanism::BoundedRange { epsilon }
}

fn concentrated(rho: f64) -> Mechanism {
    Mechanism::Concentrated { rho: ratio(rho) }
}

fn approximate(epsilon: f64, delta: f64) -> Mechanism {
    Mechanism::Approximate {
        epsilon: ratio(epsilon),
        delta: probability(delta),
    }
}

fn selection(epsilon: f64, delta: f64) -> Mechanism {
    Mechanism::PartitionSelection {
        epsilon: ratio(epsilon),
        delta: probability(delta),
    }
}

fn close(inner: Mechanism, total_variation: f64) -> Mechanism {
    Mechanism::Close {
        inner: Box::new(inner),
        total_variation: probability(total_variation),
    }
}

fn all(parts: impl IntoIterator<Item = Mechanism>) -> Mechanism {
    Mechanism::Composition(parts.into_iter().collect())
}

fn priced(mechanism: Mechanism, delta: f64) -> Result<Price> {
    price(
        &Event::new(Neighbours::ReplaceOne, mechanism),
        Delta::new(delta)?,
    )
}

fn converted(rho: f64, delta: f64) -> f64 {
    let (rho, delta) = (
        Rho::new(rho).expect("finite"),
        Delta::new(delta).expect("below one"),
    );
    zcdp::epsilon(rho, delta).expect("finite").value()
}

#[test]
fn a_part_with_a_delta_costs_what_it_says() {
    for part in [approximate(0.5, 1e-7), selection(0.5, 1e-7)] {
        let found = priced(part.clone(), 1e-6).expect("delta is enough");
        assert_eq!((found.epsilon.value(), found.delta.value()), (0.5, 1e-7));
        assert_eq!(priced(part, 1e-7).expect("just enough"), found);
    }
}

#[test]
fn with_pure_parts_epsilons_and_deltas_add() {
    let parts = [
        pure_known(0.25),
        selection(0.5, 2.0_f64.powi(-30)),
        range(0.125),
        approximate(1.0, 2.0_f64.powi(-31)),
    ];
    let found = priced(all(parts), 1e-6).expect("delta is enough");
    assert_eq!(found.epsilon.value(), 1.875);
    assert_eq!(found.delta.value(), 3.0 * 2.0_f64.powi(-31));
}

#[test]
fn the_rest_is_converted_at_what_is_left() {
    let parts = [
        gaussian(1.0),
        approximate(0.5, 3e-7),
        range(1.0),
        concentrated(0.25),
    ];
    let found = priced(all(parts), 1e-6).expect("delta is enough");
    let expected = 0.5 + converted(0.5 + 0.125 + 0.25, 7e-7);
    let near = (found.epsilon.value() / expected - 1.0).abs() < 1e-12;
    assert!(near, "{found:?}, expected {expected}");
    assert_eq!(found.delta.value(), 1e-6);
}

#[test]
fn many_of_bounded_range_cost_half_of_as_many_pure_ones() {
    let at = |part: Mechanism| {
        let found = priced(all(vec![part; 400]), 1e-6).expect("finite");
        found.epsilon.value()
    };
    let (range, pure) = (at(range(0.1)), at(pure_known(0.1)));
    // The pair of a bounded range is not attained, and its divergences say more; pure parts are composed exactly.
    assert!((range - converted(400.0 * 0.01 / 8.0, 1e-6)).abs() < 1e-9);
    assert!(
        pure < converted(400.0 * 0.01 / 2.0, 1e-6) && pure > 9.0,
        "{pure}"
    );
    assert!(range < 0.55 * pure, "{range} {pure}");
}

#[test]
fn nesting_does_not_matter() {
    let (one, two, three) = (gaussian(2.0), selection(0.5, 1e-8), range(0.5));
    let flat = priced(
        all([one.clone(), two.clone(), three.clone(), two.clone()]),
        1e-6,
    );
    let nested = all([one, all([two.clone(), all([all([]), three])]), all([two])]);
    assert_eq!(priced(nested, 1e-6), flat);
    assert!(flat.is_ok());
}

/// What was meant at the whole epsilon, and the slack there, fit together; and a slack taken at the epsilon of the rest alone would have let too
/// much through.
#[test]
fn the_slack_of_a_close_sampler_is_taken_at_the_whole_epsilon() {
    let (own, tau) = (3.0_f64, 1e-10);
    for rest in [gaussian(1.0), concentrated(0.01), pure_known(1.0)] {
        let meant = all([rest.clone(), approximate(own, 1e-7)]);
        let whole = all([close(rest.clone(), tau), approximate(own, 1e-7)]);
        let found = priced(whole, 1e-6).expect("tau is small");
        let epsilon = found.epsilon.value();
        let slack = (1.0 + epsilon.exp()) * tau;
        let known = if pure::epsilon(&rest).is_ok() {
            assert_eq!(epsilon, 4.0);
            1e-7
        } else {
            let event = Event::new(Neighbours::ReplaceOne, meant.clone());
            let exact = delta(&event, found.epsilon).expect("priced").bounds.upper();
            // The better of the exact composition and of zCDP beside basic composition.
            let at = Epsilon::new((epsilon - own).max(0.0).next_down().max(0.0)).expect("finite");
            let rho = zcdp::rho(&rest).expect("concentrated");
            exact.min(1e-7 + zcdp::delta(rho, at).expect("below one").value())
        };
        let sum = known + slack;
        assert!(sum <= 1e-6 * (1.0 + 1e-9), "{rest:?}: {sum:e}");
        let near = (sum / found.delta.value() - 1.0).abs() < 1e-3;
        assert!(near, "{rest:?}: {sum:e} of {:?}", found.delta);
        let around = close(meant, tau);
        assert_eq!(priced(around, 1e-6), Ok(found));
    }
}

#[test]
fn what_does_not_fit_is_refused_with_what_would() {
    let refused = priced(approximate(1.0, 1e-5), 1e-6).expect_err("too much delta");
    assert_eq!(
        refused.to_string(),
        "parts with a delta of their own, 1e-5 together, leave no room within delta 1e-6"
    );
    assert_eq!(
        refused.suggestion(),
        "ask for a delta of 1e-5 or more, or have fewer parts with a delta of their own, or smaller deltas in them"
    );
    assert_eq!(
        (refused.kind(), refused.code()),
        (FaultKind::Refused, "no_room_for_delta")
    );
    // The last part needs some delta itself, so that what just covers the others does not pass.
    let mixed = all([selection(1.0, 1e-5), gaussian(1.0)]);
    for delta in [0.0, 1e-6, 1e-5] {
        let refused = priced(mixed.clone(), delta).expect_err("nothing is left");
        assert!(
            refused.suggestion().starts_with("ask for a delta of 2e-5"),
            "{}",
            refused.suggestion()
        );
    }
    // Independent parts leave a chance of one in ten thousand that none of them tells all.
    let whole = priced(all(vec![approximate(0.0, 0.9); 4]), 0.999).expect_err("all of it");
    assert!(
        whole.suggestion().starts_with("have fewer parts"),
        "{}",
        whole.suggestion()
    );
}

#[test]
fn what_a_refusal_offers_passes() {
    // Purely, e^100 times the coarser distances is more than one; concentrated, about e^40 is not.
    let many = all(vec![pure_known(0.25); 400]);
    for rest in [all([]), pure_known(1.0), gaussian(1.0), range(3.0), many] {
        for own in [1e-320, 1e-6, 0.4] {
            for tau in [0.0, 1e-60, 1e-40, 1e-13] {
                let whole = close(all([rest.clone(), selection(0.5, own)]), tau);
                for delta in [0.0, own / 2.0, own.next_down()] {
                    let place = format!("{own:e} {tau:e} {delta:e}");
                    let refused = priced(whole.clone(), delta).expect_err(&place);
                    let Error::NoRoom {
                        delta_parts,
                        delta_passing,
                        ..
                    } = refused
                    else {
                        panic!("{place}: refused for another reason: {refused}");
                    };
                    assert!(delta_parts == own && delta_passing >= own, "{place}");
                    if delta_passing < 1.0 {
                        let found = priced(whole.clone(), delta_passing);
                        assert!(found.is_ok(), "{place}: {delta_passing:e} {found:?}");
                    } else {
                        let coarse = tau > 1e-40 || (tau == 1e-40 && own == 1e-320);
                        assert!(coarse, "{place}: nothing was offered");
                    }
                }
            }
        }
    }
}

#[test]
fn no_delta_helps_against_an_unbounded_part() {
    let response = Mechanism::RandomizedResponse {
        keep: probability(1.0),
        categories: 2,
    };
    for other in [response, pure_known(f64::MAX)] {
        let parts = [other, approximate(f64::MAX, 1e-9), gaussian(1.0)];
        for delta in [0.0, 1e-9, 1e-6] {
            let refused = priced(all(parts.clone()), delta);
            assert!(
                matches!(refused, Err(Error::Unbounded { .. })),
                "{refused:?}"
            );
        }
    }
}
