//! # What an event costs
//! The cheapest `(ε, δ')` with `δ'` within the given `δ` that pure accounting or zCDP proves. What inexact samplers add
//! is the business of `close.rs`: their distances are collected first, and the mechanism that was meant is priced once.

use whit_core::{Delta, Epsilon, Event, Mechanism, Neighbours, Rho, round};

use crate::close::{distance_within, idealize, slack};
use crate::search::smallest_passing_f64;
use crate::{Error, Result, pure, zcdp};

/// A proven guarantee: the event is `(epsilon, delta)`-DP for its neighbour relation.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Price {
    /// The loss, rounded up.
    pub epsilon: Epsilon,
    /// The slack, rounded up and never more than was asked for.
    pub delta: Delta,
    /// Whom the guarantee protects.
    pub neighbours: Neighbours,
    /// What proves it, with the key of its reference.
    pub theorem: &'static str,
}

/// What proves a pure price: for an exact sampler, and for one that is only close.
const PURE: [&str; 2] = [
    "pure composition [DR14, Thm 3.14]",
    "pure composition [DR14, Thm 3.14] and closeness in total variation",
];
/// What proves a converted price, likewise.
const ZCDP: [&str; 2] = [
    "zero-concentrated DP [BS16], converted by [CKS20, Cor. 13]",
    "zero-concentrated DP [BS16], converted by [CKS20, Cor. 13], and closeness in total variation",
];

/// The smallest epsilon that is proven for `event` at no more than `delta`.
///
/// Pure accounting leaves all of `delta` unspent, but for what an inexact sampler needs, and is preferred when it is no
/// dearer; converted losses spend `delta` whole.
pub fn price(event: &Event, delta: Delta) -> Result<Price> {
    let Bound {
        epsilon,
        delta,
        theorem,
    } = cheapest(event.mechanism(), delta)?;
    Ok(Price {
        epsilon,
        delta,
        neighbours: event.neighbours(),
        theorem,
    })
}

/// A price before anybody asked for whom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bound {
    pub(crate) epsilon: Epsilon,
    pub(crate) delta: Delta,
    theorem: &'static str,
}

pub(crate) fn cheapest(mechanism: &Mechanism, delta: Delta) -> Result<Bound> {
    let (ideal, distance) = idealize(mechanism);
    let pure = pure::epsilon(&ideal).and_then(|epsilon| pure_bound(epsilon, distance, delta));
    let converted = zcdp::rho(&ideal).and_then(|rho| converted_bound(rho, distance, delta));
    match (pure, converted) {
        (Ok(pure), Ok(converted)) if converted.epsilon < pure.epsilon => Ok(converted),
        (Ok(bound), _) | (Err(_), Ok(bound)) => Ok(bound),
        // That a mechanism is not pure is no news to somebody who can have it at a delta.
        (Err(Error::NoGuarantee { .. }), Err(error)) | (Err(error), Err(_)) => Err(error),
    }
}

fn pure_bound(epsilon: Epsilon, distance: f64, delta: Delta) -> Result<Bound> {
    let needed = slack(epsilon.value(), distance);
    if needed > delta.value() {
        return Err(Error::TooCoarse {
            total_variation: distance,
            delta: delta.value(),
            delta_passing: needed,
            total_variation_passing: distance_within(delta.value(), epsilon.value()),
        });
    }
    Ok(Bound {
        epsilon,
        delta: Delta::new(needed)?,
        theorem: PURE[usize::from(distance > 0.0)],
    })
}

/// The smallest `ε` seen with `δ_ρ(ε) + (1 + e^ε)τ <= δ`.
///
/// The first term falls and the second grows with `ε`. We start where the first takes half of `δ`: if the second does
/// not fit into the other half, the sampler is too coarse and the event is refused, at worst by a factor of two too
/// early. If it does, the start passes, since two floats of at most half of `δ` add up to at most `δ` in any rounding.
fn converted_bound(rho: Rho, distance: f64, delta: Delta) -> Result<Bound> {
    let bound = |epsilon| Bound {
        epsilon,
        delta,
        theorem: ZCDP[usize::from(distance > 0.0)],
    };
    if distance == 0.0 {
        return zcdp::epsilon(rho, delta).map(bound);
    }
    let half = round::mul_down(delta.value(), 0.5).max(0.0);
    let start = zcdp::epsilon(rho, Delta::new(half)?)?;
    let needed = slack(start.value(), distance);
    if needed > half {
        return Err(Error::TooCoarse {
            total_variation: distance,
            delta: delta.value(),
            delta_passing: round::mul_up(2.0, needed),
            total_variation_passing: distance_within(half, start.value()),
        });
    }
    let passes = |epsilon: f64| {
        Epsilon::new(epsilon)
            .map_err(Error::from)
            .and_then(|epsilon| zcdp::delta(rho, epsilon))
            .is_ok_and(|found| {
                round::add_up(found.value(), slack(epsilon, distance)) <= delta.value()
            })
    };
    if passes(0.0) {
        return Ok(bound(Epsilon::ZERO));
    }
    let smallest = smallest_passing_f64(0.0, start.value(), passes);
    if !passes(smallest) {
        return Err(Error::Unverified { what: "epsilon" });
    }
    Ok(bound(Epsilon::new(smallest)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_core::{Probability, Ratio, Scale};

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
            &Event::new(Neighbours::AddRemove, mechanism),
            Delta::new(delta)?,
        )
    }

    #[test]
    fn one_pure_mechanism_spends_no_delta() {
        for delta in [0.0, 1e-6] {
            let found = priced(laplace(2.0), delta).expect("pure");
            assert_eq!((found.epsilon.value(), found.delta.value()), (0.5, 0.0));
            assert_eq!(
                (found.theorem, found.neighbours),
                (PURE[0], Neighbours::AddRemove)
            );
        }
    }

    #[test]
    fn many_pure_mechanisms_are_cheaper_concentrated() {
        let many = Mechanism::Composition(vec![laplace(16.0); 1024]);
        let found = priced(many.clone(), 1e-6).expect("both bounds exist");
        assert_eq!((found.theorem, found.delta.value()), (ZCDP[0], 1e-6));
        assert!(found.epsilon.value() < 20.0);
        let found = priced(many, 0.0).expect("the pure bound exists");
        assert_eq!((found.theorem, found.epsilon.value()), (PURE[0], 64.0));
    }

    #[test]
    fn a_gaussian_is_converted_at_the_given_delta() {
        let found = priced(gaussian(1.0), 1e-6).expect("concentrated");
        let expected = zcdp::epsilon(Rho::new(0.5).expect("0.5"), Delta::new(1e-6).expect("1e-6"));
        assert_eq!((Ok(found.epsilon), found.delta.value()), (expected, 1e-6));
        assert_eq!(
            priced(gaussian(1.0), 0.0),
            Err(Error::NeedsDelta { rho: 0.5 })
        );
    }

    #[test]
    fn a_close_pure_mechanism_spends_its_slack() {
        let tau = 2.0_f64.powi(-40);
        let found = priced(close(laplace(1.0), tau), 1e-6).expect("tau is small");
        let slack = (1.0 + 1.0_f64.exp()) * tau;
        assert_eq!((found.epsilon.value(), found.theorem), (1.0, PURE[1]));
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
                        exact <= epsilon && epsilon <= last,
                        "tau {tau:e}: {epsilon}"
                    );
                    let rho = Rho::new(0.5).expect("finite");
                    let spent = zcdp::delta(rho, found.epsilon).expect("below one").value();
                    let whole = spent + (1.0 + epsilon.exp()) * tau;
                    assert!(whole <= 1e-6 * (1.0 + 1e-12), "tau {tau:e}: {whole:e}");
                    assert_eq!((found.delta.value(), found.theorem), (1e-6, ZCDP[1]));
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
        let apart =
            Mechanism::Composition(vec![close(laplace(2.0), tau), close(laplace(2.0), tau)]);
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

    #[test]
    fn nothing_costs_nothing() {
        let found = priced(Mechanism::Composition(vec![]), 0.0).expect("nothing was done");
        assert_eq!((found.epsilon, found.delta), (Epsilon::ZERO, Delta::ZERO));
    }
}
