//! Properties that hold for every parameter: prices rise with the loss and fall with the noise, order does not matter,
//! and calibration and pricing agree.

use proptest::prelude::*;
use whit_accounting::{Error, calibrate, price, pure, zcdp};
use whit_core::{Delta, Epsilon, Event, Mechanism, Neighbours, Probability, Ratio, Rho, Scale};

/// Room for the last digits, in which upward rounding is not monotone.
const ROOM: f64 = 1.0 + 1e-10;

fn rho(value: f64) -> Rho {
    Rho::new(value).expect("finite and not negative")
}

fn epsilon(value: f64) -> Epsilon {
    Epsilon::new(value).expect("finite and not negative")
}

fn delta(value: f64) -> Delta {
    Delta::new(value).expect("below one")
}

fn ratio(value: f64) -> Ratio {
    Ratio::from_f64(value).expect("finite and not negative")
}

fn delta_at(loss: f64, at: f64) -> f64 {
    zcdp::delta(rho(loss), epsilon(at)).map_or(1.0, Delta::value)
}

fn event(mechanism: Mechanism) -> Event {
    Event::new(Neighbours::ReplaceOne, mechanism)
}

/// All orders of magnitude alike.
fn magnitude(low: f64, high: f64) -> impl Strategy<Value = f64> {
    (low.ln()..high.ln()).prop_map(f64::exp)
}

fn mechanism() -> impl Strategy<Value = Mechanism> {
    let scale =
        || magnitude(0.1, 1e4).prop_map(|scale| Scale::new(ratio(scale)).expect("in range"));
    prop_oneof![
        (scale(), 1_u64..9).prop_map(|(scale, bound)| Mechanism::DiscreteLaplace {
            scale,
            sensitivity_l1: Ratio::from(bound),
            coordinates: bound,
        }),
        (scale(), 1_u64..9).prop_map(|(scale, square)| Mechanism::DiscreteGaussian {
            scale,
            sensitivity_l2_square: Ratio::from(square),
            coordinates: square,
        }),
        (0.01_f64..0.99, 2_u64..50).prop_map(|(keep, categories)| Mechanism::RandomizedResponse {
            keep: Probability::new(ratio(keep)).expect("at most one"),
            categories,
        }),
        magnitude(1e-4, 10.0).prop_map(|epsilon| Mechanism::BoundedRange {
            epsilon: ratio(epsilon)
        }),
        magnitude(1e-4, 10.0).prop_map(|epsilon| Mechanism::Pure {
            epsilon: ratio(epsilon)
        }),
        magnitude(1e-6, 10.0).prop_map(|rho| Mechanism::Concentrated { rho: ratio(rho) }),
    ]
}

fn approximate(epsilon: f64, delta: f64) -> Mechanism {
    Mechanism::Approximate {
        epsilon: ratio(epsilon),
        delta: Probability::new(ratio(delta)).expect("at most one"),
    }
}

/// Together at most 4e-4.
fn approximates() -> impl Strategy<Value = Vec<Mechanism>> {
    let part = (magnitude(1e-4, 5.0), magnitude(1e-15, 1e-4))
        .prop_map(|(epsilon, delta)| approximate(epsilon, delta));
    prop::collection::vec(part, 0..5)
}

proptest! {
    #[test]
    fn delta_falls_with_epsilon_and_rises_with_rho(
        loss in magnitude(1e-12, 1e3),
        at in magnitude(1e-9, 1e4),
        factor in 1.0_f64..3.0,
    ) {
        prop_assert!(delta_at(loss, at * factor) <= delta_at(loss, at) * ROOM);
        prop_assert!(delta_at(loss * factor, at) * ROOM >= delta_at(loss, at));
    }

    #[test]
    fn epsilon_falls_with_delta_and_rises_with_rho(
        loss in magnitude(1e-12, 1e3),
        slack in magnitude(1e-300, 0.3),
        factor in 1.0_f64..3.0,
    ) {
        let at = |loss, slack| zcdp::epsilon(rho(loss), delta(slack)).expect("finite").value();
        prop_assert!(at(loss, slack * factor) <= at(loss, slack) * ROOM);
        prop_assert!(at(loss * factor, slack) * ROOM >= at(loss, slack));
    }

    /// `ρ + 2 √(ρ ln(1/δ))` is the older, looser conversion. [BS16, Prop. 1.3]
    #[test]
    fn the_conversion_beats_the_older_one(
        loss in magnitude(1e-9, 1e3),
        slack in magnitude(1e-300, 0.3),
    ) {
        let ours = zcdp::epsilon(rho(loss), delta(slack)).expect("finite").value();
        prop_assert!(ours <= loss + 2.0 * (-loss * slack.ln()).sqrt());
    }

    #[test]
    fn extremes_neither_panic_nor_lose_their_meaning(loss: u64, at: u64, slack: u64) {
        let positive = |bits: u64| f64::from_bits(bits >> 1);
        let Ok(loss) = Rho::new(positive(loss)) else { return Ok(()) };
        if let Ok(at) = Epsilon::new(positive(at)) {
            match zcdp::delta(loss, at) {
                Ok(found) => prop_assert!(found.value() > 0.0 || loss.value() == 0.0),
                Err(error) => prop_assert!(matches!(error, Error::Unbounded { .. }), "{}", error),
            }
        }
        if let Ok(slack) = Delta::new(positive(slack)) && let Ok(found) = zcdp::epsilon(loss, slack) {
            prop_assert!(zcdp::delta(loss, found).expect("it passed before") <= slack);
        }
    }

    #[test]
    fn order_does_not_matter(parts in prop::collection::vec(mechanism(), 1..6), slack in magnitude(1e-12, 0.1)) {
        let mut reversed = parts.clone();
        reversed.reverse();
        let at = |parts| price(&event(Mechanism::Composition(parts)), delta(slack)).expect("finite").epsilon.value();
        let (one, other) = (at(parts), at(reversed));
        prop_assert!(one <= other * ROOM && other <= one * ROOM);
    }

    #[test]
    fn more_parts_cost_more(parts in prop::collection::vec(mechanism(), 1..6), slack in magnitude(1e-12, 0.1)) {
        let at = |parts: &[Mechanism]| {
            price(&event(Mechanism::Composition(parts.to_vec())), delta(slack)).expect("finite").epsilon.value()
        };
        prop_assert!(at(&parts[1..]) <= at(&parts) * ROOM);
    }

    #[test]
    fn a_price_keeps_within_its_delta(
        inner in mechanism(),
        tau in magnitude(1e-30, 1e-3),
        slack in magnitude(1e-12, 0.1),
    ) {
        let total_variation = Probability::new(ratio(tau)).expect("at most one");
        let exact = price(&event(inner.clone()), delta(slack)).expect("finite");
        let close = Mechanism::Close { inner: Box::new(inner), total_variation };
        match price(&event(close), delta(slack)) {
            Ok(found) => {
                prop_assert!(found.delta.value() <= slack);
                prop_assert!(found.epsilon.value() * ROOM >= exact.epsilon.value());
            }
            Err(error) => prop_assert!(matches!(error, Error::TooCoarse { .. }), "{error}"),
        }
    }

    /// Whatever is mixed: interleaved, nested or in a row, the same; never below any share of it; cheaper at more delta.
    #[test]
    fn mixed_compositions_are_monotone(
        rest in prop::collection::vec(mechanism(), 0..4),
        with_delta in approximates(),
        slack in magnitude(1e-3, 0.1),
        factor in 1.0_f64..5.0,
    ) {
        let at = |parts: &[Mechanism], slack| {
            let found = price(&event(Mechanism::Composition(parts.to_vec())), delta(slack)).expect("delta is enough");
            assert!(found.delta.value() <= slack, "{found:?}");
            found.epsilon.value()
        };
        let row: Vec<_> = rest.iter().chain(&with_delta).cloned().collect();
        let whole = at(&row, slack);
        let mut nested = vec![Mechanism::Composition(with_delta.clone())];
        nested.extend(rest.iter().rev().map(|part| Mechanism::Composition(vec![part.clone()])));
        let again = at(&nested, slack);
        prop_assert!(whole <= again * ROOM && again <= whole * ROOM);
        prop_assert!(at(&row, slack * factor) <= whole * ROOM);
        prop_assert!(at(&rest, slack) <= whole * ROOM);
        prop_assert!(at(&with_delta, slack) <= whole * ROOM);
        if let Some((_, fewer)) = row.split_last() {
            prop_assert!(at(fewer, slack) <= whole * ROOM);
        }
    }

    /// The whole is what the rest costs at what is left, and the epsilons of the other parts.
    #[test]
    fn parts_with_a_delta_add_their_epsilons(
        rest in prop::collection::vec(mechanism(), 0..4),
        own in magnitude(1e-4, 5.0),
        share in 0.01_f64..0.99,
        slack in magnitude(1e-12, 0.1),
    ) {
        let alone = price(&event(Mechanism::Composition(rest.clone())), delta(slack * (1.0 - share))).expect("finite");
        let mut parts = rest;
        parts.push(approximate(own, slack * share));
        let whole = price(&event(Mechanism::Composition(parts)), delta(slack)).expect("delta is enough");
        let expected = alone.epsilon.value() + own;
        prop_assert!(whole.epsilon.value() <= expected * ROOM && expected <= whole.epsilon.value() * ROOM);
        prop_assert!(whole.delta.value() <= slack);
    }

    #[test]
    fn refusals_offer_what_passes(
        rest in prop::collection::vec(mechanism(), 0..3),
        own in magnitude(1e-15, 0.3),
        tau in magnitude(1e-40, 1e-3),
        slack in magnitude(1e-15, 0.3),
    ) {
        let mut parts = rest;
        parts.push(approximate(0.5, own));
        let total_variation = Probability::new(ratio(tau)).expect("at most one");
        let whole = Mechanism::Close { inner: Box::new(Mechanism::Composition(parts)), total_variation };
        match price(&event(whole.clone()), delta(slack)) {
            Ok(found) => prop_assert!(own <= found.delta.value() && found.delta.value() <= slack),
            Err(Error::NoRoom { delta_passing, .. } | Error::TooCoarse { delta_passing, .. }) => {
                prop_assert!(delta_passing > slack);
                if delta_passing < 1.0 {
                    let found = price(&event(whole), delta(delta_passing));
                    prop_assert!(found.is_ok(), "{:?}", found);
                }
            }
            Err(error) => prop_assert!(false, "{error}"),
        }
    }

    /// Knowing more never costs more, and a larger loss never less.
    #[test]
    fn bounded_range_costs_at_most_what_pure_costs(
        loss in magnitude(1e-6, 30.0),
        factor in 1.0_f64..3.0,
        count in 1_usize..200,
        slack in magnitude(1e-12, 0.1),
    ) {
        let at = |part: Mechanism| {
            let parts = Mechanism::Composition(vec![part; count]);
            price(&event(parts), delta(slack)).expect("finite").epsilon.value()
        };
        let range = |loss| at(Mechanism::BoundedRange { epsilon: ratio(loss) });
        let pure = |loss| at(Mechanism::Pure { epsilon: ratio(loss) });
        prop_assert!(range(loss) <= pure(loss) * ROOM);
        prop_assert!(range(loss) <= range(loss * factor) * ROOM);
        prop_assert!(pure(loss) <= pure(loss * factor) * ROOM);
    }

    #[test]
    fn laplace_calibration_prices_at_its_target(sensitivity in 1_u64..1000, target in magnitude(1e-6, 1e3)) {
        let sensitivity_l1 = Ratio::from(sensitivity);
        let scale = calibrate::laplace_scale(&sensitivity_l1, epsilon(target)).expect("in range");
        let laplace = Mechanism::DiscreteLaplace { scale, sensitivity_l1, coordinates: 1 };
        prop_assert_eq!(pure::epsilon(&laplace), Ok(epsilon(target)));
    }

    #[test]
    fn response_calibration_prices_within_its_target(target in magnitude(1e-12, 50.0), categories in 2_u64..) {
        let keep = calibrate::randomized_response_keep(epsilon(target), categories).expect("exists");
        let response = Mechanism::RandomizedResponse { keep, categories };
        prop_assert!(pure::epsilon(&response).expect("finite") <= epsilon(target));
    }
}

proptest! {
    // A calibration prices some thirty scales, each by bisection.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn gaussian_calibration_prices_within_its_target_and_close_to_it(
        square in 1_u64..1000,
        target in magnitude(1e-3, 50.0),
        slack in magnitude(1e-15, 1e-2),
    ) {
        let sensitivity_l2_square = Ratio::from(square);
        let scale = calibrate::gaussian_scale(&sensitivity_l2_square, epsilon(target), delta(slack)).expect("in reach");
        let gaussian = Mechanism::DiscreteGaussian { scale, sensitivity_l2_square, coordinates: 1 };
        let found = price(&event(gaussian), delta(slack)).expect("finite");
        prop_assert!(found.epsilon <= epsilon(target) && found.delta <= delta(slack));
        prop_assert!(found.epsilon.value() >= target * (1.0 - 1e-5));
    }
}
