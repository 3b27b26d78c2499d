//! # What an event costs
//! The cheapest `(ε, δ')` with `δ'` within the given `δ` that pure accounting or zCDP proves. Two things are taken out
//! first and added again at the end:
//! 1. What inexact samplers add, by `close.rs`: their distances `τ` are collected, and the mechanism that was meant is
//!    priced once.
//! 2. What parts with a delta of their own add, by `approximate.rs`: `(ε_A, δ_A)` by basic composition.
//!
//! If the rest is `(ε, δ)`-DP, what was meant is `(ε + ε_A, δ + δ_A)`-DP, and what was sampled is
//! `(ε + ε_A, δ + δ_A + (1 + e^(ε + ε_A))τ)`-DP: the closeness is to the whole, so its slack is taken at the whole epsilon.

use whit_core::{Delta, Epsilon, Event, Mechanism, Neighbours};

use crate::approximate::split;
use crate::bound::{Added, Bound, converted_bound, pure_bound};
use crate::close::idealize;
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

/// The smallest epsilon that is proven for `event` at no more than `delta`.
///
/// Pure accounting leaves all of `delta` unspent, but for what an inexact sampler and parts with a delta of their own
/// need, and is preferred when it is no dearer; converted losses spend `delta` whole.
pub fn price(event: &Event, delta: Delta) -> Result<Price> {
    check_relation(event.mechanism(), event.neighbours())?;
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

/// Randomized response publishes one report per unit, so it hides what a unit says and not that it is there.
fn check_relation(mechanism: &Mechanism, neighbours: Neighbours) -> Result<()> {
    match mechanism {
        Mechanism::RandomizedResponse { .. } if neighbours != Neighbours::ReplaceOne => {
            Err(Error::WrongRelation {
                mechanism: pure::name(mechanism),
                neighbours,
            })
        }
        Mechanism::Close { inner, .. } => check_relation(inner, neighbours),
        Mechanism::Composition(parts) => parts
            .iter()
            .try_for_each(|part| check_relation(part, neighbours)),
        _ => Ok(()),
    }
}

pub(crate) fn cheapest(mechanism: &Mechanism, delta: Delta) -> Result<Bound> {
    let (ideal, distance) = idealize(mechanism);
    let (rest, approximate) = split(&ideal);
    let added = Added {
        approximate,
        distance,
    };
    let pure = pure::epsilon(&rest).and_then(|epsilon| pure_bound(epsilon, added, delta));
    let converted = zcdp::rho(&rest).and_then(|rho| converted_bound(rho, added, delta));
    match (pure, converted) {
        (Ok(pure), Ok(converted)) if converted.epsilon < pure.epsilon => Ok(converted),
        (Ok(bound), _) | (Err(_), Ok(bound)) => Ok(bound),
        // That a mechanism is not pure is no news to somebody who can have it at a delta.
        (Err(Error::NoGuarantee { .. }), Err(error)) => Err(error),
        (Err(pure), Err(converted)) if offered(&converted) < offered(&pure) => Err(converted),
        (Err(error), Err(_)) => Err(error),
    }
}

/// The delta that a refusal offers; infinite if it offers none.
fn offered(error: &Error) -> f64 {
    match error {
        Error::TooCoarse { delta_passing, .. } | Error::NoRoom { delta_passing, .. } => {
            *delta_passing
        }
        _ => f64::INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound::{PURE, ZCDP};
    use whit_core::{Probability, Ratio, Rho, Scale};

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

    fn approximate(epsilon: f64, delta: f64) -> Mechanism {
        let delta = Ratio::from_f64(delta).expect("finite");
        Mechanism::Approximate {
            epsilon: Ratio::from_f64(epsilon).expect("finite"),
            delta: Probability::new(delta).expect("at most one"),
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
    fn randomized_response_hides_nobodys_presence() {
        let keep = whit_core::Probability::new(whit_core::Ratio::new(3, 4).expect("4"))
            .expect("below one");
        let response = Mechanism::RandomizedResponse {
            keep,
            categories: 2,
        };
        let both = Mechanism::Composition(vec![response.clone(), response]);
        let priced = |neighbours| price(&Event::new(neighbours, both.clone()), Delta::ZERO);
        assert!(matches!(
            priced(Neighbours::AddRemove),
            Err(Error::WrongRelation { .. })
        ));
        assert!(priced(Neighbours::ReplaceOne).is_ok());
    }

    #[test]
    fn one_pure_mechanism_spends_no_delta() {
        for delta in [0.0, 1e-6] {
            let found = priced(laplace(2.0), delta).expect("pure");
            assert_eq!((found.epsilon.value(), found.delta.value()), (0.5, 0.0));
            assert_eq!(
                (found.theorem, found.neighbours),
                (PURE[0][0], Neighbours::AddRemove)
            );
        }
    }

    #[test]
    fn many_pure_mechanisms_are_cheaper_concentrated() {
        let many = Mechanism::Composition(vec![laplace(16.0); 1024]);
        let found = priced(many.clone(), 1e-6).expect("both bounds exist");
        assert_eq!((found.theorem, found.delta.value()), (ZCDP[0][0], 1e-6));
        assert!(found.epsilon.value() < 20.0);
        let found = priced(many, 0.0).expect("the pure bound exists");
        assert_eq!((found.theorem, found.epsilon.value()), (PURE[0][0], 64.0));
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
    fn nothing_costs_nothing() {
        let found = priced(Mechanism::Composition(vec![]), 0.0).expect("nothing was done");
        assert_eq!((found.epsilon, found.delta), (Epsilon::ZERO, Delta::ZERO));
    }

    #[test]
    fn every_price_names_what_proves_it() {
        let tau = 2.0_f64.powi(-60);
        for (rest, table) in [(laplace(2.0), PURE), (gaussian(1.0), ZCDP)] {
            let mixed = Mechanism::Composition(vec![rest.clone(), approximate(0.5, 1e-9)]);
            for (mechanism, basic) in [(rest, 0), (mixed, 1)] {
                let exact = priced(mechanism.clone(), 1e-6).expect("small losses");
                assert_eq!(exact.theorem, table[basic][0]);
                let close = priced(close(mechanism, tau), 1e-6).expect("tau is small");
                assert_eq!(close.theorem, table[basic][1]);
            }
        }
    }
}
