//! Two looks at one claim, of which only both together convict.
//!
//! **Definition.** A first look at level `α₁` convicts nobody. If its bound is above the claim, there is a second look, from fresh runs, at level
//!   `α₂`; the claim is refuted if that bound is above it too.
//! **Guarantee.** A claim that is true is refuted with probability at most `α₁ α₂`, and one of `n` true claims with probability at most
//!   `n α₁ α₂`, however the cases depend on each other. With 300 cases, `α₁ = 1e-3` and `α₂ = 1e-7` that is `3e-8`.
//! **Proof.** Let the claim be true, `A` the event that the first bound is above it and `B` that the second one is, or would be. Each bound is
//!   above the true epsilon, and so above the claim, with probability at most its level. The second look's runs are fresh, so `B` is independent of `A`,
//!   and whether it is made depends on the first look alone: `Pr[A and B] = Pr[A] Pr[B] <= α₁ α₂`. For several claims the union bound
//!   adds these up. ∎ (That all *bounds* hold at once is another matter: that of so many first looks is only `1 - n α₁`.)
//! **Requires.** Runs of the second look that share nothing with those of the first: no seed, no state.
//! **Why.** Many cases at a level that would not alarm on one of them in a thousand years need many samples each. Two looks need them for the few
//!   that alarm: as few false convictions, for a fraction of the samples.

use whit_core::round;

use crate::{Alpha, Claim, EpsilonBound, Ruling};

/// What two looks at a claim found.
#[derive(Clone, Debug, PartialEq)]
pub struct TwoStages {
    claimed: Claim,
    first: EpsilonBound,
    second: Option<EpsilonBound>,
    false_conviction: f64,
}

impl TwoStages {
    /// Looks once, and again if that alarms. `look` gets the number of the look, 0 or 1, and its level, and makes runs of its own each time.
    pub fn look<E>(
        claimed: Claim,
        [first_level, second_level]: [Alpha; 2],
        mut look: impl FnMut(usize, Alpha) -> Result<EpsilonBound, E>,
    ) -> Result<Self, E> {
        let first = look(0, first_level)?;
        let alarmed = first.ruling(claimed) == Ruling::Violated;
        let second = alarmed.then(|| look(1, second_level)).transpose()?;
        // Bounds that were made at another level than was asked for count with their own.
        let own = |level: Alpha, bound: Option<&EpsilonBound>| {
            let own = bound.map_or(0.0, |bound| bound.alpha().value());
            level.value().max(own)
        };
        let false_conviction = round::mul_up(
            own(first_level, Some(&first)),
            own(second_level, second.as_ref()),
        );
        Ok(Self {
            claimed,
            first,
            second,
            false_conviction,
        })
    }

    /// What was measured, in the last look that was needed.
    pub fn bound(&self) -> &EpsilonBound {
        self.second.as_ref().unwrap_or(&self.first)
    }

    /// What was claimed.
    pub fn claimed(&self) -> Claim {
        self.claimed
    }

    /// Did the first look alarm?
    pub fn alarmed(&self) -> bool {
        self.second.is_some()
    }

    /// Did both?
    pub fn convicted(&self) -> bool {
        self.ruling() == Ruling::Violated
    }

    /// What the last look says of the claim; there was a second one only if the first alarmed.
    pub fn ruling(&self) -> Ruling {
        self.bound().ruling(self.claimed)
    }

    /// At most the probability that a true claim is convicted: known before anything was run.
    pub fn false_conviction(&self) -> f64 {
        self.false_conviction
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::coin;
    use crate::world::{Counts, Share};
    use crate::{Group, Result};
    use whit_core::{Delta, Epsilon};

    fn alpha(value: f64) -> Alpha {
        Alpha::new(value).expect("in range")
    }

    /// Randomized response that loses `epsilon`, so many times.
    fn run(epsilon: f64, seed: u64, trials: u64, level: Alpha) -> Result<EpsilonBound> {
        let truth = 1.0 / (1.0 + f64::exp(-epsilon));
        let share = |p: f64, seed: u64| {
            let mut coin = coin(seed, p);
            let hits = (0..trials).filter(|_| coin()).count() as u64;
            Share { hits, trials }
        };
        let (likely, unlikely) = (share(truth, 2 * seed), share(1.0 - truth, 2 * seed + 1));
        Counts::of_fixed_event("yes", likely, unlikely).epsilon_lower(
            Delta::ZERO,
            Group::ONE,
            level,
        )
    }

    fn pure(epsilon: f64) -> Claim {
        Claim::pure(Epsilon::new(epsilon).expect("not negative"))
    }

    fn looked(epsilon: f64, claimed: f64, levels: [f64; 2], seed: u64) -> TwoStages {
        let claimed = pure(claimed);
        let found = TwoStages::look(claimed, levels.map(alpha), |stage, level| {
            run(epsilon, 2 * seed + stage as u64, 400, level)
        });
        found.expect("few trials")
    }

    /// At 0.2 and 0.2 a true claim may be convicted in four of a hundred times: of 5000 at most 200, and with six deviations 285. Either look alone
    /// would alarm in up to 1000.
    #[test]
    fn true_claims_are_convicted_as_rarely_as_promised() {
        let (mut alarms, mut convicted) = (0, 0);
        for seed in 0..5000 {
            let found = looked(1.0, 1.0, [0.2, 0.2], seed);
            alarms += u32::from(found.alarmed());
            convicted += u32::from(found.convicted());
            assert!(found.alarmed() || !found.convicted());
            assert!((found.false_conviction() - 0.04).abs() < 1e-12);
        }
        assert!(
            alarms > 100,
            "{alarms}: a first look that never alarms tests nothing"
        );
        assert!(
            convicted <= 285 && convicted < alarms,
            "{convicted} {alarms}"
        );
    }

    #[test]
    fn false_claims_are_convicted_and_the_second_look_is_made_only_after_an_alarm() {
        let found = looked(3.0, 1.0, [1e-3, 1e-7], 1);
        assert!(found.alarmed() && found.convicted());
        assert_eq!(found.bound().alpha(), alpha(1e-7));
        let found = looked(0.5, 1.0, [1e-3, 1e-7], 1);
        assert!(!found.alarmed() && !found.convicted());
        assert_eq!(found.bound().alpha(), alpha(1e-3));
        // The level of the procedure, whether or not there was a second look.
        assert!(found.false_conviction() <= 1.000_001e-10 && found.false_conviction() >= 1e-10);
    }

    /// An alarm that the second look does not confirm is none.
    #[test]
    fn an_alarm_alone_convicts_nobody() {
        let found = TwoStages::look(pure(1.0), [alpha(1e-3), alpha(1e-7)], |stage, level| {
            run(if stage == 0 { 3.0 } else { 1.0 }, 7, 400, level)
        });
        let found = found.expect("few trials");
        assert!(found.alarmed() && !found.convicted());
        assert_ne!(found.ruling(), Ruling::Violated);
    }

    /// A bound at delta zero says nothing of what is claimed at a delta, and is no reason to look again.
    #[test]
    fn a_claim_with_a_delta_is_not_judged_at_a_smaller_one() {
        let claimed = Claim {
            delta: Delta::new(0.01).expect("in range"),
            ..pure(0.5)
        };
        let found = TwoStages::look(claimed, [alpha(0.025), alpha(0.025)], |_, level| {
            let share = |hits| Share { hits, trials: 2000 };
            Counts::of_fixed_event("shown", share(20), share(0)).epsilon_lower(
                Delta::ZERO,
                Group::ONE,
                level,
            )
        });
        let found = found.expect("few trials");
        assert!(found.bound().epsilon_lower() > 0.5);
        assert!(!found.alarmed() && found.ruling() == Ruling::Inconclusive);
    }
}
