//! Compositions as a whole: what they refuse, what they claim, and where engines meet.

use super::*;

fn epsilon(step: Step, count: u64, delta: f64) -> Bracket {
    let composition = Composition::new(Neighbours::AddRemove, [(step, count)]);
    composition
        .and_then(|composition| composition.epsilon(delta))
        .expect("priced")
        .bounds
}

#[test]
fn few_steps_have_finite_answers() {
    for count in 2..10 {
        let step = Step::PoissonGaussian {
            rate: 0.01,
            noise_multiplier: 4.0,
        };
        let found = epsilon(step, count, 1e-4);
        assert!(found.upper() < 0.05, "{count}: {found:?}");
    }
}

/// No sum of counts is taken for less than it is.
#[test]
fn counts_are_never_cut_off() {
    let batches = |epochs, count| {
        let step = Step::ShuffledBatches {
            batches: 1,
            noise_multiplier: 1e12,
            epochs,
        };
        Composition::new(Neighbours::ReplaceOne, [(step, count)])
    };
    assert!(batches(1 << 26, 1 << 26).is_ok());
    for (epochs, count) in [(1 << 40, 1 << 40), (1 << 27, 1 << 27), (1 << 53, 2)] {
        assert!(matches!(
            batches(epochs, count),
            Err(Error::OutOfRange { what: "count", .. })
        ));
    }
    let half = |sigma| {
        let step = Step::Gaussian {
            sigma,
            sensitivity: 1.0,
        };
        (step, 1 << 52)
    };
    let sum = |steps: Vec<_>| Composition::new(Neighbours::AddRemove, steps);
    assert!(sum(vec![half(1.0), half(2.0)]).is_ok());
    assert!(sum(vec![half(1.0), half(2.0), half(1.0)]).is_err());
}

/// A unit that changes its key is at two keys: `(ε, δ)` for each.
#[test]
fn selections_are_not_priced_for_units_that_move() {
    let step = Step::PartitionSelection {
        epsilon: 1.0,
        delta: 1e-3,
    };
    let new = |neighbours| Composition::new(neighbours, [(step.clone(), 1)]);
    assert!(new(Neighbours::AddRemove).is_ok());
    assert!(matches!(
        new(Neighbours::ReplaceOne),
        Err(Error::Mismatch { .. })
    ));
}

/// Which neighbour a table's first list belongs to is not known, so both are priced beside a step that cares.
#[test]
fn tables_have_no_first_list() {
    let sampled = Step::PoissonGaussian {
        rate: 0.01,
        noise_multiplier: 4.0,
    };
    let with = |p: [f64; 2], q: [f64; 2]| {
        let table = Step::Tabulated {
            p: p.to_vec(),
            q: q.to_vec(),
        };
        let steps = [(sampled.clone(), 10_000), (table, 1)];
        let composition = Composition::new(Neighbours::AddRemove, steps).expect("in range");
        composition.delta(0.94).expect("priced").bounds
    };
    let (sure, unsure) = ([1.0, 0.0], [1.0 - 1e-5, 1e-5]);
    let (one, other) = (with(sure, unsure), with(unsure, sure));
    assert_eq!(one.upper(), other.upper());
    assert!(one.upper() > 2.11e-5, "{one:?}");
}

/// Where only an upper bound is computed, nothing is claimed from below that is not so: a long discrete Laplace is nearly
/// continuous, with `δ(0) = 1 - e^(-½)`.
#[test]
fn long_lattices_claim_no_more_than_they_have() {
    let composition = |rate, sensitivity| {
        let step = Step::DiscreteLaplace { rate, sensitivity };
        Composition::new(Neighbours::AddRemove, [(step, 1)]).expect("in range")
    };
    let long = composition(1e-5, 100_000).delta(0.0).expect("priced");
    let truth = 1.0 - (-0.5_f64).exp();
    assert!(long.bounds.lower() <= truth && truth <= long.bounds.upper());
    let short = composition(1e-3, 1000).delta(0.0).expect("priced");
    assert!(short.bounds.holds(truth * (1.0 + 4e-4)) || short.bounds.relative_width() < 1e-9);
}

/// A second opinion agrees with the first.
#[test]
fn grids_hold_what_contours_find() {
    for (rate, noise_multiplier, count, delta) in [
        (0.01, 4.0, 10_000, 1e-5),
        (256.0 / 60_000.0, 1.1, 14_062, 1e-5),
        (0.001, 0.8, 60_000, 1e-5),
        (0.001, 1.0, 1_000_000, 1e-6),
        (0.01, 0.5, 1_000, 1e-5),
    ] {
        let step = Step::PoissonGaussian {
            rate,
            noise_multiplier,
        };
        let composition =
            Composition::new(Neighbours::AddRemove, [(step, count)]).expect("in range");
        let first = composition.epsilon(delta).expect("priced").bounds;
        let second = composition.epsilon_by_grid(delta).expect("priced").bounds;
        assert!(
            second.lower() <= first.upper() && first.lower() <= second.upper(),
            "{first:?} {second:?}"
        );
        assert!(second.relative_width() < 1.2e-3, "{second:?}");
    }
}

/// A second opinion is asked for nothing else than the first, and claims nothing that rounded noise would not have.
#[test]
fn grids_are_asked_what_other_engines_are() {
    let step = Step::Gaussian {
        sigma: 10.0,
        sensitivity: 3.0,
    };
    let composition = Composition::new(Neighbours::AddRemove, [(step, 10)]).expect("in range");
    assert!(!composition.tight());
    let first = composition.epsilon(1e-5).expect("priced").bounds;
    let second = composition.epsilon_by_grid(1e-5).expect("priced").bounds;
    assert!(second.lower() <= first.lower() && first.upper() <= second.upper());
    for delta in [f64::NAN, -1e-5, 1.0, f64::INFINITY] {
        for found in [
            composition.epsilon(delta),
            composition.epsilon_by_grid(delta),
        ] {
            assert!(
                matches!(found, Err(Error::OutOfRange { what: "delta", .. })),
                "{delta}"
            );
        }
    }
}

#[test]
fn pure_losses_end() {
    let step = Step::Laplace {
        scale: 1000.0,
        sensitivity: 1.0,
    };
    let composition = Composition::new(Neighbours::AddRemove, [(step, 300)]).expect("in range");
    assert_eq!(
        composition.delta(1.0).expect("priced").bounds,
        Bracket::ZERO
    );
}

/// No divergence is no difference: `δ(ε)` is zero, and the step beside it is priced as if alone.
#[test]
fn zcdp_of_nothing_costs_nothing() {
    let nothing = Step::Concentrated { rho: 0.0 };
    let gaussian = Step::Gaussian {
        sigma: 2.0,
        sensitivity: 1.0,
    };
    let table = Step::Tabulated {
        p: vec![0.75, 0.25],
        q: vec![0.25, 0.75],
    };
    let new = |steps: &[Step]| {
        let steps = steps.iter().map(|step| (step.clone(), 10));
        Composition::new(Neighbours::AddRemove, steps).expect("in range")
    };
    let ask = |steps: &[Step]| {
        let delta = new(steps).delta(0.5).expect("priced").bounds;
        (delta, new(steps).epsilon(1e-5).expect("priced").bounds)
    };
    assert_eq!(
        ask(std::slice::from_ref(&nothing)),
        (Bracket::ZERO, Bracket::ZERO)
    );
    let pure = new(std::slice::from_ref(&nothing))
        .epsilon(0.0)
        .expect("priced");
    assert_eq!(pure.bounds, Bracket::ZERO);
    for step in [gaussian, table, Step::Concentrated { rho: 0.1 }] {
        assert_eq!(ask(&[nothing.clone(), step.clone()]), ask(&[step]));
    }
}

#[test]
fn gaussian_losses_do_not() {
    for step in [
        Step::Gaussian {
            sigma: 1e300,
            sensitivity: 1.0,
        },
        Step::DiscreteGaussian {
            sigma: 10.0,
            sensitivity: 1,
        },
        Step::PoissonGaussian {
            rate: 0.01,
            noise_multiplier: 4.0,
        },
    ] {
        assert_eq!(epsilon(step, 100, 0.0), Bracket::exact(f64::INFINITY));
    }
}
