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

use whit_core::{Delta, round};

use crate::binomial::{Coin, upper_tail};
use crate::group::{allowed_up, refuted_epsilon};
use crate::one_run::OneRunReach;
use crate::world::{Counts, Tally};
use crate::{Alpha, Claim, Error, Group, Result, clopper_pearson_lower, clopper_pearson_upper};

/// How likely a blatant fault must have been to be convicted, for its absence to mean something.
pub const REACH_POWER: f64 = 0.9;
/// How blatant: so many times the claimed epsilon.
pub const REACH_FACTOR: f64 = 2.0;

/// What the measured bound says of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ruling {
    /// The trials were too few for silence to mean anything: of a mechanism that loses [`REACH_FACTOR`] times the claimed epsilon beside the claimed delta, by
    /// the event that shows most, less than [`REACH_POWER`] would have been convicted. Or the bound is at a smaller delta than the claim, which may lose
    /// more there. Or the outputs were such that they could not have shown it ([`EpsilonBound::unjudged`]).
    Inconclusive,
    /// Nothing was found, by trials that would have convicted such a mechanism. That is no proof that there is nothing.
    Consistent,
    /// The bound is above the claim, at its delta or a larger one. The claim is false, with the bound's confidence.
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
    unjudged: Option<String>,
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
            unjudged: None,
        }
    }

    /// The same bound of a mechanism whose outputs could not have shown what a consistent one must not, for this reason: a claim that it does not refute, it says nothing of.
    pub fn unjudged(self, why: impl Into<String>) -> Self {
        Self {
            reaches: Vec::new(),
            unjudged: Some(why.into()),
            ..self
        }
    }

    pub(crate) fn why_unjudged(&self) -> Option<&str> {
        self.unjudged.as_deref()
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

    /// What it says of a claim. Epsilon falls as delta grows: what is claimed at some delta holds at every larger one, where a bound may refute it, and at a smaller one
    /// nothing is claimed.
    pub fn ruling(&self, claim: Claim) -> Ruling {
        if self.delta.value() < claim.delta.value() {
            Ruling::Inconclusive
        } else if self.epsilon_lower > claim.epsilon.value() {
            Ruling::Violated
        } else if self.reaches.iter().any(|reach| reach.would_convict(claim)) {
            Ruling::Consistent
        } else {
            Ruling::Inconclusive
        }
    }

    /// The largest of several bounds of the same mechanism, which may come from the same runs. Their alphas are added up: the
    /// maximum is too large only if one of them is. For a whole at level `alpha`, make each at `alpha.split(n)`. All are at one delta: the largest of others would be the one
    /// at the smallest delta, and the claims that it judges not those that the rest could refute.
    pub fn best_of(bounds: Vec<Self>) -> Result<Self> {
        let delta = bounds.first().ok_or(Error::NoEvents)?.delta;
        if let Some(other) = bounds.iter().find(|bound| bound.delta != delta) {
            return Err(Error::DeltasDiffer {
                one: delta.value(),
                other: other.delta.value(),
            });
        }
        let mut alpha = 0.0;
        for bound in &bounds {
            alpha = round::add_up(alpha, bound.alpha.value());
        }
        let reaches = bounds
            .iter()
            .flat_map(|bound| bound.reaches.iter().cloned())
            .collect();
        let best = bounds
            .into_iter()
            .max_by(|a, b| a.epsilon_lower.total_cmp(&b.epsilon_lower))
            .ok_or(Error::NoEvents)?;
        // Shares are rounded down, so that their sum is at most what was shared but for the last bits.
        let alpha = Alpha::new(alpha)?;
        Ok(Self {
            alpha,
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
    /// Would a mechanism that loses [`REACH_FACTOR`] times the claim have been convicted with probability
    /// [`REACH_POWER`]? Each count stays on its side of a quantile except with half of the rest; there the bound must do.
    fn would_convict(&self, claim: Claim) -> bool {
        match self {
            Self::Pair {
                trials,
                group,
                delta,
                half,
            } => {
                let coin = Coin::with_tails(blatant_error(claim, *group));
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
                bounds.is_ok_and(|b| b.refuted_epsilon(*delta, *group) > claim.epsilon.value())
            }
            Self::OneRun(reach) => reach.would_convict(claim.epsilon),
        }
    }
}

/// How often the blatant mechanism gives its rarer answer. Of all `(ε, δ)`-DP mechanisms none shows more than the one that tells its input with probability `δ` and else is randomized
/// response at `ε` \[KOV15\]: its event has probability `δ + (1-δ) e^ε/(1+e^ε)` in one world and `(1-δ)/(1+e^ε)` in the other, which add up to one, and `(P - δ)/Q = e^ε`. Without its `δ`
/// randomized response at `2ε` may be `(ε, δ)`-DP, so that no number of trials would convict it. A group gets the `δ` that the claim allows to it.
fn blatant_error(claim: Claim, group: Group) -> f64 {
    let loss = REACH_FACTOR * claim.epsilon.value() * f64::from(group.records());
    let told = allowed_up(0.0, claim.epsilon.value(), claim.delta, group);
    (1.0 - told).max(0.0) / (1.0 + libm::exp(loss))
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
    use whit_core::Epsilon;

    fn alpha(value: f64) -> Alpha {
        Alpha::new(value).expect("in range")
    }

    fn counts(likely: u64, unlikely: u64, trials: u64) -> Counts {
        let share = |hits| Share { hits, trials };
        Counts::of_fixed_event("yes", share(likely), share(unlikely))
    }

    fn epsilon(value: f64) -> Claim {
        Claim::pure(Epsilon::new(value).expect("not negative"))
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

    /// 0.5 at delta 0.01 is true of a mechanism that shows its input in one run of a hundred and else nothing: 20 of 2000 against none, which no pure claim of 0.5
    /// explains.
    #[test]
    fn a_claim_with_a_delta_is_judged_at_that_delta_or_a_larger_one() {
        let claim = |value| Claim {
            epsilon: Epsilon::new(0.5).expect("not negative"),
            delta: Delta::new(value).expect("in range"),
        };
        let seen = counts(20, 0, 2000);
        let at = |value| {
            let delta = Delta::new(value).expect("in range");
            seen.epsilon_lower(delta, Group::ONE, alpha(0.05))
                .expect("valid")
        };
        assert!(at(0.0).epsilon_lower() > 0.5, "{:?}", at(0.0));
        assert_eq!(at(0.0).ruling(claim(0.0)), Ruling::Violated);
        assert_eq!(at(0.0).ruling(claim(0.01)), Ruling::Inconclusive);
        assert_ne!(at(0.01).ruling(claim(0.01)), Ruling::Violated);
        // What is refuted at a thousandth is refuted below it as well.
        assert!(at(0.001).epsilon_lower() > 0.5, "{:?}", at(0.001));
        assert_eq!(at(0.001).ruling(claim(0.0005)), Ruling::Violated);
        let mixed = EpsilonBound::best_of(vec![at(0.01), at(0.0)]);
        assert!(matches!(mixed, Err(Error::DeltasDiffer { .. })));
        let best = EpsilonBound::best_of(vec![at(0.0), at(0.0)]).expect("one delta");
        assert_eq!(best.ruling(claim(0.01)), Ruling::Inconclusive);
    }

    /// Whoever could have seen nothing acquits nobody, and convicts as before.
    #[test]
    fn outputs_that_cannot_be_judged_are_not_consistent() {
        let found = lower(&counts(900, 100, 1000), 0.01).unjudged("they never repeat");
        assert_eq!(found.ruling(epsilon(2.2)), Ruling::Inconclusive);
        assert_eq!(found.ruling(epsilon(1.0)), Ruling::Violated);
        assert_eq!(
            found.epsilon_lower(),
            lower(&counts(900, 100, 1000), 0.01).epsilon_lower()
        );
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

    /// Where 0.5 is claimed at delta 0.3, randomized response that loses 1 is within the claim: `ln((0.7311 - 0.3)/0.2689) = 0.47`. What tells its input with probability 0.3 beside that is not.
    #[test]
    fn a_claim_with_a_large_delta_is_within_reach() {
        let claim = |delta: f64| Claim {
            epsilon: Epsilon::new(0.5).expect("not negative"),
            delta: Delta::new(delta).expect("in range"),
        };
        let at = |delta: f64, level: f64, [likely, unlikely]: [u64; 2], trials| {
            let delta = Delta::new(delta).expect("in range");
            counts(likely, unlikely, trials)
                .epsilon_lower(delta, Group::ONE, alpha(level))
                .expect("valid")
        };
        let trials = (200..20_000)
            .step_by(100)
            .find(|trials| at(0.3, 0.01, [0, 0], *trials).ruling(claim(0.3)) == Ruling::Consistent)
            .expect("some number of trials suffices");
        let (likely, unlikely) = (0.3 + 0.7 * 0.731_059, 0.7 * 0.268_941);
        let convicted = (0..400).filter(|seed| {
            let count = |seed, p| {
                let mut flip = coin(seed, p);
                (0..trials).filter(|_| flip()).count() as u64
            };
            let seen = [count(2 * seed, likely), count(2 * seed + 1, unlikely)];
            at(0.3, 0.01, seen, trials).ruling(claim(0.3)) == Ruling::Violated
        });
        // As above: 360 are promised.
        let convicted = convicted.count();
        assert!(convicted >= 330, "{convicted} of 400 at {trials} trials");
        assert!(trials < 5000, "the promise is not idle: {trials}");
        // What is within every claim is out of reach, however often it is tried.
        for of in [2, 10_000] {
            let group = Group::new(of).expect("in range");
            let counts = counts(0, 0, 1 << 26);
            let delta = Delta::new(0.5).expect("in range");
            let bound = counts.epsilon_lower(delta, group, alpha(0.01));
            let ruling = bound.expect("valid").ruling(claim(0.5));
            assert_eq!(ruling, Ruling::Inconclusive, "{of}");
        }
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
