//! Mechanisms of which only a guarantee is known cost what it says, rounded up, and have no guarantee of another kind
//! that does not follow from it.

use whit_accounting::{Error, pure, zcdp};
use whit_core::{Epsilon, Mechanism, Probability, Ratio, Rho};

fn third() -> Ratio {
    Ratio::new(1, 3).expect("3")
}

/// Positive, and far below the floats.
fn tiny() -> Ratio {
    Ratio::power_of_two(-2000)
}

fn with_delta(epsilon: &Ratio, delta: Ratio) -> [(&'static str, Mechanism); 2] {
    let (epsilon, delta) = (
        epsilon.clone(),
        Probability::new(delta).expect("at most one"),
    );
    let selection = Mechanism::PartitionSelection {
        epsilon: epsilon.clone(),
        delta: delta.clone(),
    };
    let approximate = Mechanism::Approximate { epsilon, delta };
    [
        ("PartitionSelection", selection),
        ("Approximate", approximate),
    ]
}

#[test]
fn pure_epsilons_are_rounded_up_once() {
    for value in [Ratio::zero(), third(), Ratio::from(7_u64), tiny()] {
        let known = [
            Mechanism::BoundedRange {
                epsilon: value.clone(),
            },
            Mechanism::Pure {
                epsilon: value.clone(),
            },
        ];
        let without_delta = with_delta(&value, Ratio::zero()).map(|(_, mechanism)| mechanism);
        for mechanism in known.into_iter().chain(without_delta) {
            let found = pure::epsilon(&mechanism).map(Epsilon::value);
            assert_eq!(found, Ok(value.to_f64_up()), "{mechanism:?}");
        }
    }
}

/// `min(ε²/2, ε)`, but `min(ε²/8, ε)` for bounded range alone.
#[test]
fn only_bounded_range_concentrates_four_times_as_well() {
    let rho = |mechanism: &Mechanism| zcdp::rho(mechanism).expect("concentrated").value();
    for (epsilon, of_range, of_pure) in [(1_u64, 0.125, 0.5), (4, 2.0, 4.0), (16, 16.0, 16.0)] {
        let epsilon = Ratio::from(epsilon);
        assert_eq!(
            rho(&Mechanism::BoundedRange {
                epsilon: epsilon.clone()
            }),
            of_range
        );
        assert_eq!(
            rho(&Mechanism::Pure {
                epsilon: epsilon.clone()
            }),
            of_pure
        );
        for (_, mechanism) in with_delta(&epsilon, Ratio::zero()) {
            assert_eq!(rho(&mechanism), of_pure, "{mechanism:?}");
        }
    }
}

#[test]
fn concentrated_losses_are_rounded_up_once() {
    for value in [Ratio::zero(), third(), tiny()] {
        let concentrated = Mechanism::Concentrated { rho: value.clone() };
        assert_eq!(
            zcdp::rho(&concentrated).map(Rho::value),
            Ok(value.to_f64_up())
        );
        match pure::epsilon(&concentrated) {
            Ok(found) => assert!(value.is_zero() && found == Epsilon::ZERO),
            Err(error) => assert_eq!(
                error.to_string(),
                "Concentrated has no finite pure epsilon by itself"
            ),
        }
    }
}

#[test]
fn any_delta_leaves_neither_a_pure_nor_a_concentrated_loss() {
    for (name, mechanism) in with_delta(&Ratio::zero(), tiny()) {
        for whole in [mechanism.clone(), Mechanism::Composition(vec![mechanism])] {
            let refused = pure::epsilon(&whole).expect_err("not pure").to_string();
            assert_eq!(
                refused,
                format!("{name} has no finite pure epsilon by itself")
            );
            let refused = zcdp::rho(&whole).expect_err("not concentrated").to_string();
            assert_eq!(
                refused,
                format!("{name} has no finite concentrated loss by itself")
            );
        }
    }
}

#[test]
fn losses_beyond_the_floats_are_refused() {
    let beyond = || Ratio::power_of_two(1024);
    let unbounded = |what| Error::Unbounded { what };
    for mechanism in [
        Mechanism::Pure { epsilon: beyond() },
        Mechanism::BoundedRange { epsilon: beyond() },
    ] {
        assert_eq!(pure::epsilon(&mechanism), Err(unbounded("finite epsilon")));
        assert_eq!(zcdp::rho(&mechanism), Err(unbounded("finite epsilon")));
    }
    let concentrated = Mechanism::Concentrated { rho: beyond() };
    assert_eq!(zcdp::rho(&concentrated), Err(unbounded("finite rho")));
}
