//! # What an event costs
//! The cheapest `(ε, δ')` with `δ'` within the given `δ` that pure accounting, the exact composition of its parts or zCDP proves. Two things
//! are taken out first and added again at the end:
//! 1. What inexact samplers add, by `close.rs`: their distances `τ` are collected, and the mechanism that was meant is
//!    priced once.
//! 2. What parts with a delta of their own add, by `approximate.rs`: `(ε_A, δ_A)` by basic composition. (Not for the exact
//!    composition, which has them among its parts.)
//!
//! If the rest is `(ε, δ)`-DP, what was meant is `(ε + ε_A, δ + δ_A)`-DP, and what was sampled is
//! `(ε + ε_A, δ + δ_A + (1 + e^(ε + ε_A))τ)`-DP: the closeness is to the whole, so its slack is taken at the whole epsilon.

use whit_core::{Delta, Epsilon, Event, Mechanism, Neighbours, round};

use crate::approximate::split;
use crate::best_of::{self, Search};
use crate::bound::{Added, Bound, converted_bound, pure_bound};
use crate::close::{idealize, slack};
use crate::event_sampled;
use crate::event_steps::{Steps, steps};
use crate::lower::Side;
use crate::{Composition, Error, Result, Step, pure, zcdp};

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
    } = cheapest(event, delta)?;
    Ok(Price {
        epsilon,
        delta,
        neighbours: event.neighbours(),
        theorem,
    })
}

/// Randomized response publishes one report per unit, so it hides what a unit says and not that it is there. Samplers are priced
/// for the relations that their theorems speak of.
pub(crate) fn check_relation(mechanism: &Mechanism, neighbours: Neighbours) -> Result<()> {
    match mechanism {
        Mechanism::RandomizedResponse { .. } if neighbours != Neighbours::ReplaceOne => {
            Err(Error::WrongRelation {
                mechanism: pure::name(mechanism),
                neighbours,
            })
        }
        Mechanism::Sampled { sampling, .. } => event_sampled::check_relation(sampling, neighbours),
        Mechanism::Close { inner, .. } => check_relation(inner, neighbours),
        Mechanism::Composition(parts) | Mechanism::BestOf { among: parts, .. } => parts
            .iter()
            .try_for_each(|part| check_relation(part, neighbours)),
        _ => Ok(()),
    }
}

fn cheapest(event: &Event, delta: Delta) -> Result<Bound> {
    let (ideal, distance) = idealize(event.mechanism());
    let known = by_notions(&ideal, distance, delta);
    let neighbours = event.neighbours();
    if let Some(search) = Search::of(&ideal) {
        // What is only known as pure is not searched for a smaller epsilon at a delta that it does not need.
        return match best_of::bound(&search?, distance, neighbours, delta) {
            Ok(Some(found)) if is_worth(&found, known.as_ref().ok()) => Ok(found),
            Ok(None) if delta > Delta::ZERO => known.map_err(|_| Error::Unbounded {
                what: "epsilon of the best of several runs at this delta",
            }),
            Ok(_) => known,
            Err(error) => known.or(Err(error)),
        };
    }
    match composed_bound(&ideal, distance, neighbours, delta, known.as_ref().ok()) {
        Some(composed) => Ok(composed),
        None => known,
    }
}

/// Is a bound that spends delta cheaper than what is known?
fn is_worth(found: &Bound, known: Option<&Bound>) -> bool {
    known.is_none_or(|known| {
        let share = if known.delta < found.delta {
            WORTH_A_DELTA
        } else {
            1.0
        };
        found.epsilon.value() < known.epsilon.value() * share
    })
}

/// Of a pure mechanism, delta is not spent for less than this share of its epsilon.
const WORTH_A_DELTA: f64 = 0.99;
/// How often the room for the slack of a distance is found anew.
const ROOM_TRIES: u32 = 6;
const CLOSE_TO_COMPOSED: &str =
    "exact composition of dominating pairs [ZDW22, Thm 10], and closeness in total variation";

/// The exact composition of the parts, if that is cheaper than what is known.
fn composed_bound(
    ideal: &Mechanism,
    distance: f64,
    neighbours: Neighbours,
    delta: Delta,
    known: Option<&Bound>,
) -> Option<Bound> {
    if delta == Delta::ZERO {
        return None;
    }
    let Steps {
        steps,
        distance: further,
    } = steps(ideal, Side::Upper, neighbours)?;
    let distance = round::add_up(distance, further);
    let composition = Composition::new(neighbours, steps).ok()?;
    let most = match known {
        Some(bound) if bound.delta < delta => bound.epsilon.value() * WORTH_A_DELTA,
        Some(bound) => bound.epsilon.value(),
        None => f64::INFINITY,
    };
    // Half of the outputs of discrete Laplace noise, and more, have its largest loss: at a little less there is hardly a smaller delta.
    if let [(Step::DiscreteLaplace { rate, sensitivity }, 1)] = composition.steps()
        && -0.5 * libm::expm1(most - rate * *sensitivity as f64) > delta.value()
    {
        return None;
    }
    // A search asks for many deltas: one of them may show that there is nothing to find. Not where units are drawn: there the exact price is
    // mostly far below, and a grid that is fit for it says little about what is so far away.
    let sampled = composition.steps().iter().any(|(step, _)| drawn(step));
    if !sampled && most.is_finite() && composition.delta(most).ok()?.bounds.upper() > delta.value()
    {
        return None;
    }
    // At a delta that leaves room for the slack at `whole`, an epsilon up to `whole` keeps the given delta.
    let within = |whole: f64| {
        let room = round::sub_down(delta.value(), slack(whole, distance));
        let found = composition.epsilon((room > 0.0).then_some(room)?).ok()?;
        let epsilon = found.bounds.upper();
        (epsilon <= whole).then_some((epsilon, found.theorem))
    };
    let (epsilon, theorem) = if distance == 0.0 {
        within(f64::INFINITY)?
    } else {
        // With half of delta for the slack there is an epsilon or there is none that is worth while. It leaves more room than that, and
        // so does what is found there.
        let half = round::mul_down(delta.value(), 0.5);
        let first = composition.epsilon(half).ok()?.bounds.upper();
        let mut best = within(first.min(most))?;
        for _ in 0..ROOM_TRIES {
            match within(best.0) {
                Some(better) if better.0 < best.0 * (1.0 - 1e-9) => best = better,
                _ => break,
            }
        }
        best
    };
    (epsilon < most).then_some(())?;
    let theorem = if distance == 0.0 {
        theorem
    } else {
        CLOSE_TO_COMPOSED
    };
    Some(Bound {
        epsilon: Epsilon::new(epsilon).ok()?,
        delta,
        theorem,
    })
}

/// Whether a step is on units that were drawn.
fn drawn(step: &Step) -> bool {
    matches!(
        step,
        Step::PoissonGaussian { .. }
            | Step::FixedSizeGaussian { .. }
            | Step::RandomAllocation { .. }
            | Step::ShuffledBatches { .. }
    )
}

/// The cheaper of pure accounting and zCDP.
pub(crate) fn by_notions(ideal: &Mechanism, distance: f64, delta: Delta) -> Result<Bound> {
    let (rest, approximate) = split(ideal);
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
    use crate::{Bracket, delta};
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

    /// What pure accounting and zCDP say, without the exact composition.
    fn notions(mechanism: &Mechanism, delta: f64) -> Result<Bound> {
        let (ideal, distance) = idealize(mechanism);
        by_notions(&ideal, distance, Delta::new(delta)?)
    }

    #[test]
    fn many_pure_mechanisms_are_cheaper_concentrated() {
        let many = Mechanism::Composition(vec![laplace(16.0); 1024]);
        let known = notions(&many, 1e-6).expect("both bounds exist");
        assert_eq!((known.theorem, known.delta.value()), (ZCDP[0][0], 1e-6));
        assert!(known.epsilon.value() < 20.0);
        let found = priced(many.clone(), 1e-6).expect("all three exist");
        assert!(found.epsilon.value() < 0.95 * known.epsilon.value());
        let found = priced(many, 0.0).expect("the pure bound exists");
        assert_eq!((found.theorem, found.epsilon.value()), (PURE[0][0], 64.0));
    }

    #[test]
    fn a_gaussian_is_converted_at_the_given_delta() {
        let found = notions(&gaussian(1.0), 1e-6).expect("concentrated");
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

    /// `δ` at a price is no more than what was paid, whichever theorem found it; and next to nothing is not taken for something.
    #[test]
    fn profiles_keep_to_prices() {
        let concentrated = |rho| Mechanism::Concentrated { rho };
        let pure = |epsilon| Mechanism::Pure { epsilon };
        let different: Vec<_> = (1..9).map(|b| laplace(f64::from(b))).collect();
        for mechanism in [
            concentrated(Ratio::zero()),
            concentrated(Ratio::power_of_two(-1074)),
            concentrated(Ratio::power_of_two(-30)),
            concentrated(Ratio::power_of_two(30)),
            pure(Ratio::power_of_two(-1074)),
            pure(Ratio::power_of_two(900)),
            Mechanism::Composition(different),
            Mechanism::Composition(vec![pure(Ratio::power_of_two(900)), approximate(1.0, 0.5)]),
        ] {
            let event = Event::new(Neighbours::AddRemove, mechanism);
            for slack in [0.0, 1e-300, 1e-12, 1e-6, 0.6] {
                let Ok(paid) = price(&event, Delta::new(slack).expect("below one")) else {
                    assert!(slack < 0.5, "{event:?}");
                    continue;
                };
                let found = delta(&event, paid.epsilon).expect("priced").bounds;
                assert!(found.upper() <= slack, "{event:?}: {paid:?} {found:?}");
            }
        }
    }

    /// A loss of nothing has no delta, and of a concentrated loss no more is claimed than a Gaussian has: at `μ = 1` and `ε = 1` that is
    /// `Φ(-½) - e Φ(-1½) = 0.126937`.
    #[test]
    fn concentrated_losses_are_reached_by_gaussians() {
        let at = |rho, epsilon| {
            let event = Event::new(Neighbours::AddRemove, Mechanism::Concentrated { rho });
            let epsilon = Epsilon::new(epsilon).expect("in range");
            delta(&event, epsilon).expect("priced").bounds
        };
        assert_eq!(at(Ratio::zero(), 0.0), Bracket::ZERO);
        let found = at(Ratio::power_of_two(-1), 1.0);
        assert!((found.lower() - 0.126_937).abs() < 1e-6, "{found:?}");
        assert!(found.upper() > 0.15, "{found:?}");
    }

    /// One is always true, and is said rather than nothing.
    #[test]
    fn what_cannot_be_bounded_has_a_delta_of_one() {
        let many = (1..9).map(|b| laplace(0.01 / f64::from(b))).collect();
        let event = Event::new(Neighbours::AddRemove, Mechanism::Composition(many));
        let at = |epsilon| delta(&event, Epsilon::new(epsilon).expect("in range"));
        assert_eq!(at(0.0).expect("priced").bounds.upper(), 1.0);
        assert_eq!(at(3600.1).expect("priced").bounds, Bracket::ZERO);
    }

    #[test]
    fn every_price_names_what_proves_it() {
        let tau = 2.0_f64.powi(-60);
        for (rest, table) in [(laplace(2.0), PURE), (gaussian(1.0), ZCDP)] {
            let mixed = Mechanism::Composition(vec![rest.clone(), approximate(0.5, 1e-9)]);
            for (mechanism, basic) in [(rest, 0), (mixed, 1)] {
                let exact = notions(&mechanism, 1e-6).expect("small losses");
                assert_eq!(exact.theorem, table[basic][0]);
                let close = close(mechanism, tau);
                let known = notions(&close, 1e-6).expect("tau is small");
                assert_eq!(known.theorem, table[basic][1]);
                let found = priced(close, 1e-6).expect("tau is small");
                assert!(found.epsilon <= known.epsilon);
            }
        }
    }
}
