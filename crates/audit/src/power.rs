//! How many runs a falsifier needs.
//!
//! **Setting.** Counts 1 and 0, discrete Laplace noise whose true loss is `factor` times the claimed `ε`, event
//!   `y >= 1`. With `a = e^-(factor·ε)` the event has probability `p = 1/(1+a)` in one world and `p' = a/(1+a)` in
//!   the other. It is also the setting of randomized response, event "yes".
//! **Formula.** The statistic `T = p̂ - e^ε p̂'` has mean `m = p - e^ε p'` and variance `v/n`, where
//!   `v = p(1-p) + e^2ε p'(1-p')`. A claim refused when `T` is `z_α` standard deviations above zero is refused with
//!   probability `power` once `n = v (z_α + z_power)² / m²`.
//! **Limits.** A plan, not a proof: the normal approximation is used, and one direction. The exact bounds of
//!   [`crate::falsify()`] want about twice as many runs.

use whit_core::Epsilon;

use crate::normal::quantile_lower;
use crate::world::{Counts, Share};
use crate::{Alpha, Claim, Error, Group, Result, Ruling};

/// Runs per world after which a mechanism with `factor` times the claimed epsilon is convicted at level `alpha` with
/// probability `power`, by the best test of one event. Plan twice as many for exact bounds.
pub fn trials_for(claimed: Epsilon, factor: f64, alpha: Alpha, power: f64) -> Result<u64> {
    if !(factor > 1.0 && factor.is_finite()) {
        return Err(Error::OutOfDomain {
            what: "factor",
            given: factor,
            domain: "a finite number greater than 1",
        });
    }
    if !(0.5..1.0).contains(&power) {
        return Err(Error::OutOfDomain {
            what: "power",
            given: power,
            domain: "a number from 0.5 up to, but not including, 1",
        });
    }
    let odds = libm::exp(-factor * claimed.value());
    let (likely, unlikely) = (1.0 / (1.0 + odds), odds / (1.0 + odds));
    let allowed = libm::exp(claimed.value());
    let excess = likely - allowed * unlikely;
    // In both worlds the event and its complement have the same two probabilities.
    let variance = likely * unlikely * (1.0 + allowed * allowed);
    let deviations = -quantile_lower(alpha.value()) - quantile_lower(1.0 - power);
    let trials = (variance * (deviations / excess).powi(2)).ceil();
    // Claims of zero, and those beyond all floats, cannot be told apart from their twins.
    if trials.is_finite() {
        Ok(trials as u64)
    } else {
        Err(hopeless(claimed))
    }
}

/// About with which probability the bound of [`Counts::epsilon_lower`] on an event is above the claim, by so many trials of each world. `chances` are the event's true probabilities, first where it is
/// likelier. By the normal approximation of both counts; the exact bounds of each probability, at half the level, are about as many deviations wide. The better of the event and its complement.
pub fn planned_power(chances: [f64; 2], claim: Claim, trials: u64, alpha: Alpha) -> f64 {
    let wide = -quantile_lower(alpha.value() / 2.0);
    let allowed = libm::exp(claim.epsilon.value());
    let deviation = |p: f64| (p * (1.0 - p) / trials as f64).sqrt();
    let of = |likely: f64, unlikely: f64| {
        let (one, other) = (deviation(likely), allowed * deviation(unlikely));
        let excess = likely - claim.delta.value() - allowed * unlikely - wide * (one + other);
        // An event that is certain, or impossible, in both worlds has no luck in it.
        let spread = one.hypot(other).max(f64::MIN_POSITIVE);
        0.5 * libm::erfc(-excess / spread * std::f64::consts::FRAC_1_SQRT_2)
    };
    let [likely, unlikely] = chances;
    of(likely, unlikely).max(of(1.0 - unlikely, 1.0 - likely))
}

/// The most trials that a plan considers: programs are not run more often.
const PLANNED_MAX: u64 = 1 << 27;

/// Held trials per world from which on a ruling on this claim can be [`Ruling::Consistent`](crate::Ruling): about the least number. `None`
/// if even `2^27` do not suffice, as for a claim of zero.
pub fn trials_to_reach(claim: Claim, group: Group, alpha: Alpha) -> Option<u64> {
    // Twice nothing is nothing.
    if claim.epsilon.value() == 0.0 {
        return None;
    }
    let suffices = |trials: u64| {
        let nothing = Share { hits: 0, trials };
        Counts::of_fixed_event("", nothing, nothing)
            .epsilon_lower(claim.delta, group, alpha)
            .is_ok_and(|bound| bound.ruling(claim) == Ruling::Consistent)
    };
    let mut high = 8;
    while !suffices(high) {
        high *= 2;
        if high > PLANNED_MAX {
            return None;
        }
    }
    // Counts are whole, so that the answer is not quite monotone in the trials; near enough for a plan.
    let mut low = high / 2;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if suffices(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

fn hopeless(claimed: Epsilon) -> Error {
    Error::OutOfDomain {
        what: "claimed epsilon",
        given: claimed.value(),
        domain: "a number that two worlds can show",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_core::Delta;

    fn trials(claimed: f64, factor: f64, level: f64, power: f64) -> Result<u64> {
        let claimed = Epsilon::new(claimed).expect("not negative");
        trials_for(claimed, factor, Alpha::new(level).expect("in range"), power)
    }

    /// The table of the adversarial suite, made independently of this code.
    #[test]
    fn agrees_with_the_published_plan() {
        let check = |claimed, factor, expected| {
            assert_eq!(trials(claimed, factor, 1e-3, 0.999), Ok(expected))
        };
        check(0.1, 1.10, 767_780);
        check(0.5, 1.10, 34_452);
        check(0.5, 1.05, 137_828);
        check(0.5, 1.02, 861_458);
        check(1.0, 1.10, 11_779);
        check(1.0, 1.05, 47_145);
        check(1.0, 1.02, 294_705);
        check(2.0, 1.10, 7_162);
    }

    #[test]
    fn stricter_levels_cost_more() {
        let ratio = trials(1.0, 1.1, 1e-6, 0.999).expect("valid") as f64 / 11_779.0;
        assert!((ratio - 1.61).abs() < 0.01, "{ratio}");
    }

    /// Randomized response that loses 1 where 0.8 is claimed, a thousand times: as often as it is convicted.
    #[test]
    fn planned_power_is_that_of_the_bound() {
        let claim = Claim::pure(Epsilon::new(0.8).expect("not negative"));
        let alpha = Alpha::new(0.05).expect("in range");
        let truth = 1.0 / (1.0 + (-1_f64).exp());
        let planned = planned_power([truth, 1.0 - truth], claim, 1000, alpha);
        let convicted = (0..1000).filter(|seed| {
            let counts = crate::simulate::respond(1.0, 1000, *seed);
            let bound = counts.epsilon_lower(Delta::ZERO, Group::ONE, alpha);
            bound.expect("valid").ruling(claim) == Ruling::Violated
        });
        let found = convicted.count() as f64 / 1000.0;
        assert!(
            planned > 0.1 && planned < 0.95,
            "neither seldom nor nearly always: {planned}"
        );
        // Five standard errors of a share, and three hundredths for the approximation.
        assert!((found - planned).abs() < 0.11, "{found} {planned}");
        assert!(planned_power([0.1, 0.0], claim, 1000, alpha) > 0.999);
    }

    /// An event that loses more than is claimed beside a delta, a thousand times: as often as it is convicted. Without the delta nearly all would be.
    #[test]
    fn planned_power_beside_a_delta_is_that_of_the_bound() {
        let claim = Claim {
            epsilon: Epsilon::new(0.6).expect("not negative"),
            delta: Delta::new(0.05).expect("in range"),
        };
        let alpha = Alpha::new(0.05).expect("in range");
        let planned = planned_power([0.5, 0.2], claim, 1000, alpha);
        let convicted = (0..1000).filter(|seed| {
            let share = |p: f64, seed: u64| {
                let mut flip = crate::simulate::coin(seed, p);
                let hits = (0..1000).filter(|_| flip()).count() as u64;
                Share { hits, trials: 1000 }
            };
            let (likely, unlikely) = (share(0.5, 2 * seed), share(0.2, 2 * seed + 1));
            let counts = Counts::of_fixed_event("yes", likely, unlikely);
            let bound = counts.epsilon_lower(claim.delta, Group::ONE, alpha);
            bound.expect("valid").ruling(claim) == Ruling::Violated
        });
        let found = convicted.count() as f64 / 1000.0;
        assert!(planned > 0.3 && planned < 0.9, "{planned}");
        assert!((found - planned).abs() < 0.11, "{found} {planned}");
    }

    #[test]
    fn more_trials_are_needed_for_less_claims() {
        let needed = |claimed: f64, group: u32| {
            trials_to_reach(
                Claim::pure(Epsilon::new(claimed).expect("not negative")),
                Group::new(group).expect("in range"),
                Alpha::new(0.01).expect("in range"),
            )
        };
        let [tenth, one, five] = [0.1, 1.0, 5.0].map(|claimed| needed(claimed, 1));
        assert!(one < tenth && one < five, "{tenth:?} {one:?} {five:?}");
        assert!(one.is_some_and(|trials| trials < 300), "{one:?}");
        // Two records apart, a claim of one half is as visible as one of one.
        assert_eq!(needed(0.5, 2), one);
        assert_eq!(needed(0.0, 1), None);
        assert_eq!(needed(40.0, 1), None, "an event of e^-40 is never seen");
        // Beside a delta no more is needed.
        let beside = Claim {
            epsilon: Epsilon::new(1.0).expect("not negative"),
            delta: Delta::new(0.3).expect("in range"),
        };
        let alpha = Alpha::new(0.01).expect("in range");
        let found = trials_to_reach(beside, Group::ONE, alpha);
        assert!(found.is_some_and(|trials| trials < 600), "{found:?}");
    }

    #[test]
    fn rejects_what_cannot_be_planned() {
        assert!(trials(1.0, 1.0, 1e-3, 0.999).is_err());
        assert!(trials(1.0, f64::NAN, 1e-3, 0.999).is_err());
        assert!(trials(1.0, 1.1, 1e-3, 1.0).is_err());
        assert!(trials(1.0, 1.1, 1e-3, 0.4).is_err());
        assert!(trials(0.0, 1.1, 1e-3, 0.999).is_err());
        assert!(trials(1e300, 1.1, 1e-3, 0.999).is_err());
    }
}
