//! # From scores to a lower bound on epsilon
//! **Definition** [Jag20, Alg. 2]. Two worlds at distance `k`, and an event about a model: its score is above a threshold, or not above it. If training
//!   is `(ε, δ)`-DP, then by group privacy `p <= e^(kε) p' + δ (1 + e^ε + … + e^((k-1)ε))` for the event's probabilities in the two worlds, in either
//!   order. Both are replaced by exact bounds, `p` from below and `p'` from above, each at half of what may go wrong.
//! **Guarantee.** `epsilon_lower` is at most the true epsilon at this `δ`, except with probability `alpha`.
//! **Proof.** The event is chosen by the first trials of both worlds, and judged by the others, which are independent of them: given the choice it is fixed. The
//!   two Clopper–Pearson bounds hold together except with probability `alpha`, by the union bound, whether or not the trials of one world are
//!   independent of those of the other; within a world they must be. Then the inequality holds for the bounds, and no `ε` at which it fails is
//!   the true one. There is no way here to judge an event by the trials that chose it.
//! **Several bounds**, such as one for each `k`, of which the largest is reported: each gets an equal share of `alpha` ([`Bound::corrected`]). The largest of several bounds at full `alpha` is what papers report; it
//!   is labelled so wherever it is shown, and no verdict rests on it.

use whit_audit::{Alpha, clopper_pearson_lower, clopper_pearson_upper};

use crate::error::{Error, Result};

/// Scores of models in two worlds.
#[derive(Clone, Copy, Debug)]
pub struct Trials<'a> {
    /// In world 0.
    pub without: &'a [f64],
    /// In world 1.
    pub with: &'a [f64],
    /// How many of each choose the event; the others judge it.
    pub choosing: usize,
    /// The distance of the worlds.
    pub group: u32,
    /// The slack of the guarantee that is doubted; zero if papers are to be followed, which leave it out.
    pub delta: f64,
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// At most the true epsilon, with the confidence below. Zero if nothing was found.
    pub epsilon_lower: f64,
    /// How often a bound made this way holds, at least.
    pub confidence: f64,
    /// Where the scores were cut.
    pub threshold: f64,
    /// Of the trials that judge, how many were above in world 0 and in world 1.
    pub above: [u64; 2],
}

/// Which side of the threshold is the event, and in which world it is the likelier one.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    /// Above it, with the poison.
    Above,
    /// Not above it, without the poison.
    NotAbove,
}

/// A threshold with its side.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cut {
    threshold: f64,
    event: Event,
}

impl Trials<'_> {
    /// The bound at confidence `1 - alpha`.
    pub fn bound(&self, alpha: Alpha) -> Result<Bound> {
        let (without, with) = (self.without, self.with);
        let least = without.len().min(with.len());
        if self.choosing == 0 || self.choosing >= least || self.group == 0 {
            return Err(Error::OutOfRange {
                what: "the number of trials that choose",
                given: self.choosing as f64,
                range: "at least 1, and less than all trials of a world",
            });
        }
        let first = [&without[..self.choosing], &with[..self.choosing]];
        let cut = self.choose(first, alpha)?;
        let judging = [&without[self.choosing..], &with[self.choosing..]];
        let above = judging.map(|scores| above(scores, cut.threshold));
        let epsilon_lower = self.epsilon(above, judging.map(<[f64]>::len), cut.event, alpha)?;
        Ok(Bound {
            epsilon_lower,
            confidence: 1.0 - alpha.value(),
            threshold: cut.threshold,
            above,
        })
    }

    /// The cut that these scores like best.
    fn choose(&self, scores: [&[f64]; 2], alpha: Alpha) -> Result<Cut> {
        let mut places: Vec<f64> = scores.concat();
        places.retain(|place| !place.is_nan());
        places.sort_by(f64::total_cmp);
        places.dedup();
        let mut best = (f64::NEG_INFINITY, Cut { threshold: 0.0, event: Event::Above });
        for threshold in places {
            let above = scores.map(|scores| above(scores, threshold));
            for event in [Event::Above, Event::NotAbove] {
                let epsilon = self.raw(above, scores.map(<[f64]>::len), event, alpha)?;
                if epsilon > best.0 {
                    best = (epsilon, Cut { threshold, event });
                }
            }
        }
        Ok(best.1)
    }

    /// The bounds of the two probabilities: that of the likelier world from below, the other from above.
    fn rates(above: [u64; 2], trials: [usize; 2], event: Event, alpha: Alpha) -> Result<[f64; 2]> {
        let half = Alpha::new(alpha.value() / 2.0).map_err(|_| Error::Unbound)?;
        let trials = trials.map(|count| count as u64);
        let (high, low) = match event {
            Event::Above => ((above[1], trials[1]), (above[0], trials[0])),
            Event::NotAbove => (
                (trials[0] - above[0], trials[0]),
                (trials[1] - above[1], trials[1]),
            ),
        };
        let lower = clopper_pearson_lower(high.0, high.1, half).map_err(|_| Error::Unbound)?;
        let upper = clopper_pearson_upper(low.0, low.1, half).map_err(|_| Error::Unbound)?;
        Ok([lower, upper])
    }

    /// What the rates say, negative values included, for the choice.
    fn raw(&self, above: [u64; 2], trials: [usize; 2], event: Event, alpha: Alpha) -> Result<f64> {
        let [lower, upper] = Self::rates(above, trials, event, alpha)?;
        Ok((lower.max(f64::MIN_POSITIVE) / upper).ln())
    }

    fn epsilon(&self, above: [u64; 2], trials: [usize; 2], event: Event, alpha: Alpha) -> Result<f64> {
        let rates = Self::rates(above, trials, event, alpha)?;
        Ok(group_epsilon(rates, self.group, self.delta))
    }
}

impl Bound {
    /// The largest of several bounds, one for each of these trials, each at its share of `alpha`.
    pub fn corrected(trials: &[Trials], alpha: Alpha) -> Result<Option<Self>> {
        let share = Alpha::new(alpha.value() / trials.len().max(1) as f64);
        let share = share.map_err(|_| Error::Unbound)?;
        let mut best: Option<Self> = None;
        for trials in trials {
            let found = trials.bound(share)?;
            if best.is_none_or(|best| found.epsilon_lower > best.epsilon_lower) {
                best = Some(found);
            }
        }
        // All of them hold together with this confidence.
        Ok(best.map(|best| Self {
            confidence: 1.0 - alpha.value(),
            ..best
        }))
    }
}

fn above(scores: &[f64], threshold: f64) -> u64 {
    scores.iter().filter(|score| **score > threshold).count() as u64
}

/// The largest `ε` at which `p > e^(kε) p' + δ (1 + … + e^((k-1)ε))`, from below; zero if there is none.
fn group_epsilon([p, other]: [f64; 2], group: u32, delta: f64) -> f64 {
    let fails = |epsilon: f64| {
        let slack: f64 = (0..group).map(|i| delta * (f64::from(i) * epsilon).exp()).sum();
        // A relative 1e-12 is far beyond the rounding of these few operations.
        p > ((f64::from(group) * epsilon).exp() * other + slack) * (1.0 + 1e-12)
    };
    if !fails(0.0) {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, 800.0 / f64::from(group));
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if fails(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
#[path = "bound_test.rs"]
mod tests;
