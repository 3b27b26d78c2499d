//! Lower bounds on epsilon that assume nothing about the mechanism, and what they say of a claim.
//!
//! **Guarantee.** An [`EpsilonBound`] is above the true epsilon (at its delta) with probability at most its alpha, whatever the
//!   mechanism is. It is made in two ways only: from counts on held outputs, and from guesses in one run.
//! **Proof, for counts.** The level is divided among the events; of each, the likelier world's probability gets a Clopper–Pearson bound
//!   from below and the other's one from above, at half a share. By the union bound all of them hold together except with
//!   probability alpha. Then `P(S)` and `Q(S)` are no nearer to each other than the bounds, and neither are those of the complement,
//!   with the worlds exchanged; what the bounds refute is false \[Jag20, Alg. 2\]. The arithmetic is in `group.rs`.
//! **Rulings.** [`Ruling`] says what a bound means for a claim, and no other type has one: what rests on a model, or on a resample,
//!   convicts nobody.

use std::fmt;

use whit_core::{Delta, Epsilon, round};

use crate::binomial::{Coin, upper_tail};
use crate::group::refuted_epsilon;
use crate::one_run::OneRunReach;
use crate::world::{Counts, Tally};
use crate::{Alpha, Group, Result, clopper_pearson_lower, clopper_pearson_upper};

/// How likely a blatant fault must have been to be convicted, for its absence to mean something.
pub const REACH_POWER: f64 = 0.9;
/// How blatant: so many times the claimed epsilon.
pub const REACH_FACTOR: f64 = 2.0;

/// What the measured bound says of a claimed epsilon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ruling {
    /// The trials were too few for silence to mean anything: of a mechanism that loses [`REACH_FACTOR`] times the claim, by
    /// the event that shows most, less than [`REACH_POWER`] would have been convicted.
    Inconclusive,
    /// Nothing was found, by trials that would have convicted such a mechanism. That is no proof that there is nothing.
    Consistent,
    /// The bound is above the claim. The claim is false, with the bound's confidence.
    Violated,
}

impl fmt::Display for Ruling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inconclusive => "inconclusive",
            Self::Consistent => "consistent",
            Self::Violated => "violated",
        })
    }
}

/// At most the true epsilon, with known confidence and without assumptions. Zero if nothing was found.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct EpsilonBound {
    epsilon_lower: f64,
    delta: Delta,
    alpha: Alpha,
    evidence: String,
    reaches: Vec<Reach>,
}

/// What the trials behind a bound could have shown.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reach {
    Pair {
        trials: (u64, u64),
        group: Group,
        delta: Delta,
        half: Alpha,
    },
    OneRun(OneRunReach),
}

impl EpsilonBound {
    pub(crate) fn new(
        epsilon_lower: f64,
        delta: Delta,
        alpha: Alpha,
        evidence: String,
        reaches: Vec<Reach>,
    ) -> Self {
        Self {
            epsilon_lower,
            delta,
            alpha,
            evidence,
            reaches,
        }
    }

    pub(crate) fn into_reaches(self) -> Vec<Reach> {
        self.reaches
    }

    /// The bound.
    pub fn epsilon_lower(&self) -> f64 {
        self.epsilon_lower
    }

    /// At this delta.
    pub fn delta(&self) -> Delta {
        self.delta
    }

    /// How often a bound made this way holds, at least.
    pub fn confidence(&self) -> f64 {
        self.alpha.confidence()
    }

    /// The probability that it does not, at most.
    pub fn alpha(&self) -> Alpha {
        self.alpha
    }

    /// The event, or the guesses, that gave it.
    pub fn evidence(&self) -> &str {
        &self.evidence
    }

    /// What it says of a claim.
    pub fn ruling(&self, claimed: Epsilon) -> Ruling {
        if self.epsilon_lower > claimed.value() {
            Ruling::Violated
        } else if self
            .reaches
            .iter()
            .any(|reach| reach.would_convict(claimed))
        {
            Ruling::Consistent
        } else {
            Ruling::Inconclusive
        }
    }

    /// The largest of several bounds of the same mechanism, which may come from the same runs. Their alphas are added up: the
    /// maximum is too large only if one of them is. For a whole at level `alpha`, make each at `alpha.split(n)`.
    pub fn best_of(bounds: Vec<Self>) -> Result<Self> {
        let mut alpha = 0.0;
        for bound in &bounds {
            alpha = round::add_up(alpha, bound.alpha.value());
        }
        // Epsilon falls as delta grows, so that a bound at some delta also holds at every smaller one.
        let delta = bounds
            .iter()
            .map(|bound| bound.delta)
            .min_by(|a, b| a.value().total_cmp(&b.value()))
            .ok_or(crate::Error::NoEvents)?;
        let reaches = bounds
            .iter()
            .flat_map(|bound| bound.reaches.iter().cloned())
            .collect();
        let best = bounds
            .into_iter()
            .max_by(|a, b| a.epsilon_lower.total_cmp(&b.epsilon_lower))
            .ok_or(crate::Error::NoEvents)?;
        // Shares are rounded down, so that their sum is at most what was shared but for the last bits.
        let alpha = Alpha::new(alpha)?;
        Ok(Self {
            alpha,
            delta,
            reaches,
            ..best
        })
    }
}

impl Counts {
    /// The largest `ε` that these counts refute at `delta`, in worlds that differ in `group` records.
    pub fn epsilon_lower(&self, delta: Delta, group: Group, alpha: Alpha) -> Result<EpsilonBound> {
        let half = self.half_share(alpha)?;
        let mut best = (0.0, &self.tallies()[0]);
        for tally in self.tallies() {
            let bounds = ProbabilityBounds::new(tally, half)?;
            let epsilon = bounds.refuted_epsilon(delta, group);
            if epsilon > best.0 {
                best = (epsilon, tally);
            }
        }
        let (epsilon_lower, tally) = best;
        let reach = Reach::Pair {
            trials: (tally.likely().trials, tally.unlikely().trials),
            group,
            delta,
            half,
        };
        Ok(EpsilonBound::new(
            epsilon_lower,
            delta,
            alpha,
            tally.event().to_owned(),
            vec![reach],
        ))
    }

    /// Each event has two bounds.
    pub(crate) fn half_share(&self, alpha: Alpha) -> Result<Alpha> {
        alpha.split(2 * self.tallies().len())
    }
}

/// What counts say of the probabilities of an event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProbabilityBounds {
    /// At most the probability in the world where it is likelier.
    pub(crate) likely: f64,
    /// At least the probability in the other.
    pub(crate) unlikely: f64,
}

impl ProbabilityBounds {
    pub(crate) fn new(tally: &Tally, half: Alpha) -> Result<Self> {
        let (likely, unlikely) = (tally.likely(), tally.unlikely());
        Ok(Self {
            likely: clopper_pearson_lower(likely.hits, likely.trials, half)?,
            unlikely: clopper_pearson_upper(unlikely.hits, unlikely.trials, half)?,
        })
    }

    /// The same of the complement, with the worlds exchanged.
    pub(crate) fn complement(self) -> Self {
        Self {
            likely: round::sub_down(1.0, self.unlikely),
            unlikely: round::sub_up(1.0, self.likely),
        }
    }

    fn refuted_epsilon(self, delta: Delta, group: Group) -> f64 {
        [self, self.complement()]
            .into_iter()
            .map(|bounds| refuted_epsilon(bounds.likely, bounds.unlikely, delta, group))
            .fold(0.0, f64::max)
    }
}

impl Reach {
    /// Would randomized response that loses [`REACH_FACTOR`] times the claim have been convicted with probability
    /// [`REACH_POWER`]? Each count stays on its side of a quantile except with half of the rest; there the bound must do.
    fn would_convict(&self, claimed: Epsilon) -> bool {
        match self {
            Self::Pair {
                trials,
                group,
                delta,
                half,
            } => {
                let loss = REACH_FACTOR * claimed.value() * f64::from(group.records());
                let coin = Coin::with_tails(1.0 / (1.0 + libm::exp(loss)));
                let miss = (1.0 - REACH_POWER) / 2.0;
                let likely = quantile(trials.0, coin, 1.0 - miss);
                // By symmetry: so many heads in one world are so many tails in the other.
                let unlikely = trials.1 - quantile(trials.1, coin, 1.0 - miss);
                let bounds = clopper_pearson_lower(likely, trials.0, *half).and_then(|low| {
                    let high = clopper_pearson_upper(unlikely, trials.1, *half)?;
                    Ok(ProbabilityBounds {
                        likely: low,
                        unlikely: high,
                    })
                });
                bounds.is_ok_and(|b| b.refuted_epsilon(*delta, *group) > claimed.value())
            }
            Self::OneRun(reach) => reach.would_convict(claimed),
        }
    }
}

/// The largest number of heads that is reached with probability at least `probability`.
pub(crate) fn quantile(flips: u64, coin: Coin, probability: f64) -> u64 {
    let (mut low, mut high) = (0, flips + 1);
    // At most 33 rounds: the number of flips is below 2^33.
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if upper_tail(middle, flips, coin) >= probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{assert_false_alarms, coin, respond};
    use crate::world::Share;

    fn alpha(value: f64) -> Alpha {
        Alpha::new(value).expect("in range")
    }

    fn counts(likely: u64, unlikely: u64, trials: u64) -> Counts {
        let share = |hits| Share { hits, trials };
        Counts::of_fixed_event("yes", share(likely), share(unlikely))
    }

    fn epsilon(value: f64) -> Epsilon {
        Epsilon::new(value).expect("not negative")
    }

    fn lower(counts: &Counts, level: f64) -> EpsilonBound {
        counts
            .epsilon_lower(Delta::ZERO, Group::ONE, alpha(level))
            .expect("valid")
    }

    /// The published ceilings: 4.54 for one test of 500 and 500 trials at 99 %, 4.31 for the best of four.
    #[test]
    fn perfect_separation_has_the_published_ceilings() {
        let all = counts(500, 0, 500);
        assert!((lower(&all, 0.01).epsilon_lower() - 4.5419).abs() < 1e-3);
        let share = alpha(0.01).split(4).expect("in range").value();
        let four = (0..4).map(|_| lower(&all, share)).collect();
        let best = EpsilonBound::best_of(four).expect("valid");
        assert!((best.epsilon_lower() - 4.308).abs() < 1e-3, "{best:?}");
        assert!(best.confidence() >= 0.99 - 1e-15);
        let of_eight = all
            .epsilon_lower(Delta::ZERO, Group::new(8).expect("in range"), alpha(0.01))
            .expect("valid");
        assert!((of_eight.epsilon_lower() - 4.5419 / 8.0).abs() < 1e-3);
    }

    #[test]
    fn evidence_may_lie_in_the_complement() {
        // Only the other world ever says no: 100 of 1000.
        let bound = lower(&counts(1000, 900, 1000), 0.01);
        assert!(bound.epsilon_lower() > 2.0, "{bound:?}");
        // An event that is likelier in the other world than was thought shows nothing.
        assert_eq!(lower(&counts(0, 1000, 1000), 0.01).epsilon_lower(), 0.0);
    }

    #[test]
    fn rulings_depend_on_claim_and_trials() {
        let found = lower(&counts(900, 100, 1000), 0.01);
        assert_eq!(found.ruling(epsilon(1.0)), Ruling::Violated);
        assert_eq!(found.ruling(epsilon(2.2)), Ruling::Consistent);
        // 1000 trials cannot show more than about 5.2, whatever happens.
        assert_eq!(found.ruling(epsilon(6.0)), Ruling::Inconclusive);
        // They cannot tell 0.1 from 0.2 either.
        let nothing = lower(&counts(500, 500, 1000), 0.01);
        assert_eq!(nothing.ruling(epsilon(0.1)), Ruling::Inconclusive);
        assert_eq!(nothing.ruling(epsilon(0.0)), Ruling::Inconclusive);
        let many = lower(&counts(50_000, 50_000, 100_000), 0.01);
        assert_eq!(many.ruling(epsilon(0.1)), Ruling::Consistent);
    }

    /// What "consistent" promises: the blatant twin is convicted nine times out of ten.
    #[test]
    fn a_consistent_ruling_would_have_convicted_the_blatant() {
        let claimed = epsilon(0.5);
        let trials = (200..5000)
            .step_by(50)
            .find(|trials| {
                lower(&counts(trials / 2, trials / 2, *trials), 0.01).ruling(claimed)
                    == Ruling::Consistent
            })
            .expect("some number of trials suffices");
        let convicted = (0..400)
            .filter(|seed| {
                lower(&respond(1.0, trials, *seed), 0.01).ruling(claimed) == Ruling::Violated
            })
            .count();
        // 360 are promised; fewer than 330 of a true 0.9 are rarer than 1e-6.
        assert!(convicted >= 330, "{convicted} of 400 at {trials} trials");
        assert!(trials < 2000, "the promise is not idle: {trials}");
    }

    #[test]
    fn false_alarms_are_as_rare_as_promised() {
        for (level, true_epsilon, trials) in [(0.05, 1.0, 500), (0.05, 0.0, 200), (0.01, 3.0, 2000)]
        {
            assert_false_alarms(level, |seed| {
                lower(&respond(true_epsilon, trials, seed), level).epsilon_lower() > true_epsilon
            });
        }
    }

    /// With delta: the likely world always says a third thing that is impossible in the other.
    #[test]
    fn false_alarms_are_rare_with_delta_and_groups() {
        let (true_epsilon, delta, k) = (0.4_f64, 0.02, 3);
        let group = Group::new(k).expect("in range");
        let q = 0.2;
        let p = (f64::from(k) * true_epsilon).exp() * q
            + delta * (f64::from(k) * true_epsilon).exp_m1() / true_epsilon.exp_m1();
        let delta = Delta::new(delta).expect("in range");
        assert_false_alarms(0.05, |seed| {
            let count = |seed, p| {
                let mut flip = coin(seed, p);
                (0..2000).filter(|_| flip()).count() as u64
            };
            counts(count(2 * seed, p), count(2 * seed + 1, q), 2000)
                .epsilon_lower(delta, group, alpha(0.05))
                .expect("valid")
                .epsilon_lower()
                > true_epsilon
        });
    }

    #[test]
    fn quantiles_are_where_the_tail_says() {
        let coin = Coin::with_heads(0.5);
        assert_eq!(quantile(2, coin, 0.7499), 1);
        assert_eq!(quantile(2, coin, 0.7501), 0);
        assert_eq!(quantile(10, Coin::with_heads(1.0), 0.95), 10);
        assert_eq!(quantile(0, coin, 0.95), 0);
    }
}
