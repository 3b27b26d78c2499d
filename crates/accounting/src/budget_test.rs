//! Costs and caps to the last unit, and the theorem on trees that are small enough to be looked at whole.

use super::*;
use proptest::prelude::*;
use whit_core::{Probability, Scale};

const ONE: u128 = 1 << 64;

fn ratio(numerator: u128, denominator: u128) -> Ratio {
    Ratio::new(numerator, denominator).expect("the denominator is positive")
}

fn probability(value: Ratio) -> Probability {
    Probability::new(value).expect("at most one")
}

fn pure_event(epsilon: Ratio) -> Mechanism {
    Mechanism::Pure { epsilon }
}

fn selection(epsilon: Ratio, delta: Ratio) -> Mechanism {
    let delta = probability(delta);
    Mechanism::PartitionSelection { epsilon, delta }
}

fn gaussian(scale: u64) -> Mechanism {
    Mechanism::DiscreteGaussian {
        scale: Scale::new(Ratio::from(scale)).expect("in range"),
        sensitivity_l2_square: Ratio::one(),
        coordinates: 1,
    }
}

fn close(inner: Mechanism, total_variation: Ratio) -> Mechanism {
    Mechanism::Close {
        inner: Box::new(inner),
        total_variation: probability(total_variation),
    }
}

fn cost_at(mechanism: Mechanism, mode: Mode, delta: f64) -> Result<Sums> {
    let event = Event::new(Neighbours::AddRemove, mechanism);
    Cost::of(&event, mode, Delta::new(delta)?).map(|cost| cost.sums())
}

fn cost(mechanism: Mechanism, mode: Mode) -> Result<Sums> {
    cost_at(mechanism, mode, 0.0)
}

fn check(mechanism: Mechanism, loss: u128, delta: u128) {
    let expected = Sums {
        loss: Amount(loss),
        delta: Amount(delta),
    };
    assert_eq!(
        cost(mechanism.clone(), Mode::Zcdp),
        Ok(expected),
        "{mechanism:?}"
    );
}

fn cap(mode: Mode, epsilon: f64, delta: f64) -> Cap {
    let (epsilon, delta) = (Epsilon::new(epsilon), Delta::new(delta));
    let (epsilon, delta) = (epsilon.expect("epsilon"), delta.expect("delta"));
    Cap::new(mode, Neighbours::AddRemove, epsilon, delta).expect("a cap")
}

#[test]
fn costs_in_zcdp_mode() {
    check(pure_event(ratio(1, 2)), ONE / 8, 0);
    check(pure_event(ratio(4, 1)), 4 * ONE, 0);
    check(
        Mechanism::BoundedRange {
            epsilon: ratio(1, 2),
        },
        ONE / 32,
        0,
    );
    check(gaussian(1), ONE / 2, 0);
    check(gaussian(2), ONE / 8, 0);
    check(Mechanism::Concentrated { rho: ratio(3, 4) }, ONE / 4 * 3, 0);
    check(selection(ratio(1, 2), ratio(1, 1 << 20)), ONE / 8, 1 << 44);
    check(selection(ratio(8, 1), ratio(1, 1 << 20)), 8 * ONE, 1 << 44);
    check(selection(ratio(1, 2), Ratio::zero()), ONE / 8, 0);
    let approximate = Mechanism::Approximate {
        epsilon: Ratio::one(),
        delta: probability(ratio(1, 4)),
    };
    check(approximate.clone(), ONE / 2, ONE / 4);
    check(
        Mechanism::Composition(vec![gaussian(1), approximate, pure_event(ratio(1, 2))]),
        ONE / 8 * 9,
        ONE / 4,
    );
    check(Mechanism::Composition(vec![]), 0, 0);
}

#[test]
fn costs_in_pure_mode() {
    let paid = cost(pure_event(ratio(1, 2)), Mode::Pure).expect("pure");
    assert_eq!((paid.loss.0, paid.delta.0), (ONE / 2, 0));
    let paid =
        cost_at(selection(ratio(1, 2), ratio(1, 1 << 20)), Mode::Pure, 1e-6).expect("within 1e-6");
    assert_eq!((paid.loss.0, paid.delta.0), (ONE / 2, 1 << 44));
    // Gaussian noise has no epsilon without a delta, and all of it with one.
    let event = Event::new(Neighbours::AddRemove, gaussian(10));
    assert!(Cost::of(&event, Mode::Pure, Delta::ZERO).is_err());
    let delta = Delta::new(ratio(1, 1 << 20).to_f64_up()).expect("below one");
    let paid = Cost::of(&event, Mode::Pure, delta)
        .expect("at a delta")
        .sums();
    assert!(
        paid.loss.0 > ONE / 10 && paid.delta.0 == 1 << 44,
        "{paid:?}"
    );
}

#[test]
fn costs_are_rounded_up_to_the_next_unit() {
    check(pure_event(ratio(1, 1 << 100)), 1, 0);
    // Floats come first: the cost of a third is that of the float above it.
    let above = Ratio::from_f64(ratio(1, 3).to_f64_up()).expect("finite");
    let units = Amount::up(&above).expect("small").0;
    check(Mechanism::Concentrated { rho: ratio(1, 3) }, units, 0);
    assert!(units > ONE / 3);
    check(selection(Ratio::zero(), ratio(1, 1 << 100)), 0, 1);
    check(
        selection(ratio(1, 3), ratio(1, 3)),
        ONE / 18 + 1,
        ONE / 3 + 1,
    );
}

#[test]
fn closeness_to_a_pure_mechanism_costs_its_slack() {
    let near = close(pure_event(Ratio::one()), Ratio::power_of_two(-40));
    let paid = cost(near, Mode::Zcdp).expect("pure inside");
    let slack = (1.0 + 1.0_f64.exp()) * 2.0_f64.powi(-40);
    assert_eq!(paid.loss.0, ONE / 2);
    let found = paid.delta.to_f64_up();
    assert!(
        found >= slack && found <= slack * (1.0 + 1e-12) + 2.0_f64.powi(-64),
        "{found:e} {slack:e}"
    );
    let both = close(
        selection(ratio(1, 1), ratio(1, 2)),
        Ratio::power_of_two(-40),
    );
    let paid = cost(both, Mode::Zcdp).expect("approximate inside");
    assert!(paid.delta.to_f64_up() >= 0.5 + slack);
}

#[test]
fn closeness_to_gaussian_noise_is_refused() {
    let near = close(gaussian(10), Ratio::power_of_two(-60));
    assert!(matches!(
        cost(near, Mode::Zcdp),
        Err(Error::NoGuarantee { .. })
    ));
}

#[test]
fn a_relation_that_is_not_protected_is_refused_in_both_modes() {
    let response = Mechanism::RandomizedResponse {
        keep: probability(ratio(3, 4)),
        categories: 2,
    };
    for mode in [Mode::Pure, Mode::Zcdp] {
        let found = cost(Mechanism::Composition(vec![response.clone()]), mode);
        assert!(
            matches!(found, Err(Error::WrongRelation { .. })),
            "{found:?}"
        );
        let event = Event::new(Neighbours::ReplaceOne, response.clone());
        assert!(Cost::of(&event, mode, Delta::ZERO).is_ok());
    }
}

#[test]
fn what_is_beyond_all_amounts_is_refused() {
    for mode in [Mode::Pure, Mode::Zcdp] {
        assert!(cost(pure_event(Ratio::power_of_two(64)), mode).is_err());
        let most = pure_event(Ratio::power_of_two(63));
        assert!(cost(most.clone(), mode).is_ok());
        assert!(cost(Mechanism::Composition(vec![most.clone(), most]), mode).is_err());
    }
}

#[test]
fn ten_million_of_the_smallest_charges_sum_exactly() {
    let least = cost(pure_event(ratio(1, 1 << 120)), Mode::Pure).expect("tiny");
    assert_eq!(least.loss.0, 1);
    let sums = (0..10_000_000).try_fold(Sums::default(), |sums, _| sums.checked_add(least));
    assert_eq!(sums.expect("small").loss.0, 10_000_000);
}

#[test]
fn pure_caps_are_rounded_down() {
    let tenth = cap(Mode::Pure, 0.1, 1e-30);
    let exact = &Epsilon::new(0.1).expect("finite").to_ratio() * &Ratio::power_of_two(64);
    assert_eq!(
        Ratio::from(tenth.limit.loss.0),
        exact,
        "a float near one tenth is a whole number of units"
    );
    assert_eq!(tenth.limit.delta.0, 0, "less than one unit is none");
    let small = cap(Mode::Pure, 1e-10, 0.0);
    let exact = Epsilon::new(1e-10).expect("finite").to_ratio();
    assert!(ratio(small.limit.loss.0, ONE) < exact && exact < ratio(small.limit.loss.0 + 1, ONE));
}

#[test]
fn zcdp_caps_keep_their_promise_and_not_one_unit_less() {
    for (epsilon, delta) in [
        (10.0, 1e-6),
        (1.0, 1e-6),
        (0.1, 1e-9),
        (3.0, 1e-12),
        (0.01, 0.4),
        (40.0, 1e-5),
    ] {
        let cap = cap(Mode::Zcdp, epsilon, delta);
        let within = |units: u128| {
            let rho = Rho::new(Amount(units).to_f64_up()).expect("finite");
            zcdp::epsilon(rho, Delta::new(delta / 2.0).expect("half"))
                .expect("finite")
                .value()
        };
        let units = cap.limit.loss.0;
        assert!(units > 0 && within(units) <= epsilon, "{epsilon} {delta}");
        let more = units + units / 1_000_000_000 + 2;
        assert!(within(more) > epsilon, "{epsilon} {delta} could be larger");
        let whole = Amount::down(&Ratio::from_f64(delta).expect("finite"))
            .expect("small")
            .0;
        assert_eq!(cap.limit.delta.0, whole / 2);
    }
    let none = Cap::new(
        Mode::Zcdp,
        Neighbours::AddRemove,
        Epsilon::ZERO,
        Delta::ZERO,
    );
    assert!(matches!(none, Err(Error::ZeroTarget { .. })));
}

#[test]
fn noted_limits_only_lower_a_cap() {
    let cap = cap(Mode::Zcdp, 1.0, 1e-6);
    let Sums { loss, delta } = cap.limit;
    let more = Sums {
        loss: Amount(loss.0 + 1),
        delta: Amount(delta.0 + 1),
    };
    assert_eq!(cap.at_most(more), cap);
    let less = Sums {
        loss: Amount(loss.0 - 1),
        delta: Amount(delta.0 - 1),
    };
    assert_eq!(cap.at_most(less).limit, less);
}

#[test]
fn what_remains_shrinks_to_nothing() {
    for mode in [Mode::Pure, Mode::Zcdp] {
        let cap = cap(mode, 2.0, 1e-6);
        let untouched = cap.remaining(Sums::default());
        assert!(untouched.epsilon.value() > 2.0 * (1.0 - 1e-6) && untouched.epsilon.value() <= 2.0);
        assert!(untouched.delta.value() > 0.999e-6 && untouched.delta.value() <= 1e-6);
        let third = Sums {
            loss: Amount(cap.limit.loss.0 / 3),
            delta: Amount(cap.limit.delta.0 / 3),
        };
        let some = cap.remaining(third);
        assert!(some.epsilon < untouched.epsilon && some.delta < untouched.delta);
        let nothing = cap.remaining(cap.limit);
        assert_eq!(
            (nothing.epsilon, nothing.left),
            (Epsilon::ZERO, Sums::default())
        );
        let beyond = Sums {
            loss: Amount(u128::MAX),
            delta: Amount(u128::MAX),
        };
        assert_eq!(cap.remaining(beyond).left, Sums::default());
    }
}

/// The worst pair for `(ε, δ)`: with probability `δ` all is told, otherwise randomized response.
fn worst_pair(epsilon: f64, delta: f64) -> [(f64, f64); 4] {
    let truth = epsilon.exp() / (1.0 + epsilon.exp());
    let (p, q) = ((1.0 - delta) * truth, (1.0 - delta) * (1.0 - truth));
    [(delta, 0.0), (p, q), (q, p), (0.0, delta)]
}

/// The largest `P(S) - e^E Q(S)` over all that can be asked within the cap, looking at every answer before the next
/// question: a transcript of likelihoods `(p, q)` is worth `(p - e^E q)₊`, or the best that can still be made of it.
fn best_attack(
    menu: &[(f64, f64, Sums)],
    cap: &Cap,
    spent: Sums,
    p: f64,
    q: f64,
    rounds: u32,
) -> f64 {
    let stop = (p - cap.epsilon.value().exp() * q).max(0.0);
    let left: &[_] = if rounds == 0 { &[] } else { menu };
    left.iter().fold(stop, |best, &(epsilon, delta, cost)| {
        let after = spent.checked_add(cost).expect("small");
        if after.loss > cap.limit.loss || after.delta > cap.limit.delta {
            return best;
        }
        let ask = |(x, y): (f64, f64)| best_attack(menu, cap, after, p * x, q * y, rounds - 1);
        best.max(worst_pair(epsilon, delta).into_iter().map(ask).sum())
    })
}

fn menu(mode: Mode, parameters: &[(f64, f64)]) -> Vec<(f64, f64, Sums)> {
    let priced = |&(epsilon, delta): &(f64, f64)| {
        let exact = |value| Ratio::from_f64(value).expect("finite");
        let event = Event::new(
            Neighbours::AddRemove,
            selection(exact(epsilon), exact(delta)),
        );
        let cost = Cost::of(&event, mode, Delta::new(delta).expect("below one")).expect("priced");
        (epsilon, delta, cost.sums())
    };
    parameters.iter().map(priced).collect()
}

#[test]
fn no_adaptive_attack_passes_the_cap() {
    let parameters = [(0.25, 0.0), (0.5, 0.01), (1.0, 0.002), (0.0, 0.02)];
    for mode in [Mode::Pure, Mode::Zcdp] {
        let menu = menu(mode, &parameters);
        for (epsilon, delta) in [(0.5, 0.05), (1.0, 0.1), (2.0, 0.04), (0.8, 0.3)] {
            let cap = cap(mode, epsilon, delta);
            let found = best_attack(&menu, &cap, Sums::default(), 1.0, 1.0, 5);
            assert!(found <= delta, "{mode:?} {epsilon} {delta}: {found}");
        }
    }
}

/// The same search convicts a budget that forgets the deltas of its parts, so it is able to.
#[test]
fn the_attack_convicts_a_budget_without_deltas() {
    let mut menu = menu(Mode::Zcdp, &[(0.25, 0.05)]);
    menu[0].2.delta = Amount::ZERO;
    let cap = cap(Mode::Zcdp, 1.0, 0.1);
    let found = best_attack(&menu, &cap, Sums::default(), 1.0, 1.0, 5);
    assert!(found > 0.1, "{found}");
}

proptest! {
    #[test]
    fn amounts_bracket_their_ratio(numerator: u64, denominator in 1_u64..) {
        let value = ratio(u128::from(numerator), u128::from(denominator));
        let (down, up) = (Amount::down(&value), Amount::up(&value));
        let (down, up) = (down.expect("below 2^64"), up.expect("below 2^64"));
        prop_assert!(down.to_ratio() <= value && value <= up.to_ratio());
        prop_assert!(up.0 - down.0 <= 1);
        let (low, high) = (Ratio::from_f64(down.to_f64_down()), Ratio::from_f64(up.to_f64_up()));
        prop_assert!(low.expect("finite") <= value && value <= high.expect("finite"));
    }

    #[test]
    fn a_larger_promise_has_larger_limits(epsilon in 0.001_f64..20.0, delta in 1e-12_f64..0.5, factor in 1.01_f64..3.0) {
        for mode in [Mode::Pure, Mode::Zcdp] {
            let (small, large) = (cap(mode, epsilon, delta), cap(mode, epsilon * factor, delta));
            prop_assert!(small.limit.loss <= large.limit.loss);
            prop_assert!(!small.exceeds(&large));
        }
    }
}
