//! # From scores to a lower bound on epsilon
//! **Definition** [Jag20, Alg. 2]. Two worlds at distance `k`, and an event about a model: its score is above a threshold, or not above it. How likely
//!   the event is in one world and in the other bounds epsilon from below, by group privacy and exact binomial bounds (see [`whit_audit`]).
//! **Guarantee.** That of [`whit_audit::Counts::epsilon_lower`]: at most the true epsilon at this `δ`, except with probability `alpha`.
//! **Requires.** Trials of one world are independent. Those of different worlds need not be: the bounds of the two probabilities are joined by the
//!   union bound, so that worlds may share samples and noise ([`lock_step`](super::lock_step)).
//! **Choice.** The event is chosen by the first trials and judged by the others, which are independent of them. There is no way here to judge an event by the trials
//!   that chose it. It is the one that was best among them, or the one that would be best if scores were normal: a tail is known better from mean and deviation
//!   than from the few scores in it, so that fewer trials need to choose. If they are not normal, the bound is a weak one, and as true.
//! **Several bounds**, such as one for each `k`, of which the largest is reported, share `alpha` ([`corrected`]). The largest of several bounds at full `alpha` each is what
//!   papers report; it is labelled so wherever it is shown, and no verdict rests on it.

use std::num::NonZeroU64;

use whit_audit::{
    Alpha, Counts, EpsilonBound, Event, Group, MuBound, Outputs, Share, Shown, World,
};
use whit_audit::{clopper_pearson_lower, clopper_pearson_upper};
use whit_core::Delta;

use crate::error::Result;

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
    pub group: Group,
    /// The slack of the guarantee that is doubted; zero if papers are to be followed, which leave it out.
    pub delta: Delta,
}

impl Trials<'_> {
    /// The bound at confidence `1 - alpha`.
    pub fn bound(&self, alpha: Alpha) -> Result<EpsilonBound> {
        let counts = self.counts(alpha)?;
        Ok(counts.epsilon_lower(self.delta, self.group, alpha)?)
    }

    /// The same bound, by an event that is chosen as if scores were normal.
    pub fn bound_by_fit(&self, alpha: Alpha) -> Result<EpsilonBound> {
        let outputs = Outputs::new(self.with.to_vec(), self.without.to_vec());
        let trials = self.with.len().min(self.without.len());
        let judging = trials.saturating_sub(self.choosing) as u64;
        let (shown, held) = outputs.split_at(self.choosing)?;
        let threshold = fitted_threshold(&shown, self.delta, alpha, judging)?;
        let counts = held.count(&half_line(threshold));
        Ok(counts.epsilon_lower(self.delta, self.group, alpha)?)
    }

    fn counts(&self, alpha: Alpha) -> Result<Counts> {
        let outputs = Outputs::new(self.with.to_vec(), self.without.to_vec());
        let (shown, held) = outputs.split_at(self.choosing)?;
        let event = best_half_line(&shown, self.delta, alpha)?;
        Ok(held.count(&event))
    }

    /// The bound on the `μ` of Gaussian DP, by an event that was chosen for it: errors of both kinds count there, and rare events do not pay.
    pub fn mu_bound(&self, alpha: Alpha) -> Result<MuBound> {
        let outputs = Outputs::new(self.with.to_vec(), self.without.to_vec());
        let (shown, held) = outputs.split_at(self.choosing)?;
        let threshold = best_by(&shown, |[with, without]| {
            let counts = Counts::of_fixed_event("shown", with, without);
            Ok(counts.mu_lower(self.group, alpha)?.mu_lower())
        })?;
        Ok(held
            .count(&half_line(threshold))
            .mu_lower(self.group, alpha)?)
    }
}

/// The largest of several bounds, one for each of these, that hold together at confidence `1 - alpha`.
pub fn corrected(trials: &[Trials], alpha: Alpha) -> Result<EpsilonBound> {
    let share = alpha.split(trials.len().max(1))?;
    let bounds = trials.iter().map(|trials| trials.bound(share));
    Ok(EpsilonBound::best_of(bounds.collect::<Result<_>>()?)?)
}

/// Places in a sorted list that are tried: all of the first ones, and then as many as a step of a twentieth leaves, from either end.
fn places(count: usize) -> Vec<usize> {
    let (mut places, mut rank) = (Vec::new(), 0_usize);
    while rank < count {
        places.extend([rank, count - 1 - rank]);
        rank = (rank + 1).max(rank + rank / 20);
    }
    places
}

/// The half line that scores which may be looked at like best: the one whose bound would be largest if as many others fell as they did. Scores are larger in the first world.
pub fn best_half_line(shown: &Shown<f64>, delta: Delta, alpha: Alpha) -> Result<Event<f64>> {
    Ok(half_line(best_threshold(
        shown,
        delta,
        alpha,
        NonZeroU64::MIN,
    )?))
}

/// That a score is above the threshold, which is likelier in the first world.
fn half_line(threshold: f64) -> Event<f64> {
    let name = format!("score above {threshold:.4}");
    Event::new(name, World::One, move |score: &f64| *score > threshold)
}

/// The same, as a threshold, if so many times as many trials as are shown are to judge: then rarer events can be seen.
pub fn best_threshold(
    shown: &Shown<f64>,
    delta: Delta,
    alpha: Alpha,
    times: NonZeroU64,
) -> Result<f64> {
    let half = alpha.split(2)?;
    let ratio = |likely: [u64; 2], mut unlikely: [u64; 2]| -> Result<f64> {
        // What was not seen at all, or once, may be seen in more trials.
        if times.get() > 1 {
            unlikely[0] = (unlikely[0] + 1).min(unlikely[1]);
        }
        let [likely, unlikely] = [likely, unlikely].map(|pair| pair.map(|n| n * times.get()));
        let lower = clopper_pearson_lower(likely[0], likely[1], half)?;
        let upper = clopper_pearson_upper(unlikely[0], unlikely[1], half)?;
        Ok((lower - delta.value()) / upper)
    };
    best_by(shown, |[with, without]| {
        // A bound takes the better of the event and its complement, which is likelier in the other world.
        let above = ratio([with.hits, with.trials], [without.hits, without.trials])?;
        let low = |share: Share| [share.trials - share.hits, share.trials];
        Ok(above.max(ratio(low(without), low(with))?))
    })
}

/// Thresholds that are tried between the ends of both worlds' scores, and how many deviations beyond their means these ends are.
const FITTED: u32 = 400;
const BEYOND: f64 = 4.0;

/// The threshold that would be best for so many trials that judge, if scores were normal, with the means of those that are shown and one deviation.
fn fitted_threshold(shown: &Shown<f64>, delta: Delta, alpha: Alpha, judging: u64) -> Result<f64> {
    let mean = |scores: &[f64]| scores.iter().sum::<f64>() / scores.len() as f64;
    let (one, other) = (shown.one(), shown.other());
    let (high, low) = (mean(one), mean(other));
    let squares = |scores: &[f64], mean: f64| -> f64 {
        scores.iter().map(|score| (score - mean).powi(2)).sum()
    };
    let count = (one.len() + other.len()) as f64;
    let deviation = ((squares(one, high) + squares(other, low)) / count).sqrt();
    if !(deviation > 0.0 && deviation.is_finite() && judging > 0) {
        return best_threshold(shown, delta, alpha, NonZeroU64::MIN);
    }
    let half = alpha.split(2)?;
    let ratio = |likely: f64, unlikely: f64| -> Result<f64> {
        let hits = |share: f64| ((share * judging as f64).round() as u64).min(judging);
        let lower = clopper_pearson_lower(hits(likely), judging, half)?;
        Ok((lower - delta.value()) / clopper_pearson_upper(hits(unlikely), judging, half)?)
    };
    let (first, last) = (low - BEYOND * deviation, high + BEYOND * deviation);
    // Where worlds are far apart many thresholds are as good as each other: the middle of the first such range.
    let (mut best, mut range, mut in_range) = (f64::NEG_INFINITY, (low, high), false);
    for step in 0..=FITTED {
        let threshold = first + (last - first) * f64::from(step) / f64::from(FITTED);
        let above = |mean: f64| {
            0.5 * libm::erfc((threshold - mean) / deviation * std::f64::consts::FRAC_1_SQRT_2)
        };
        let [with, without] = [high, low].map(above);
        let worth = ratio(with, without)?.max(ratio(1.0 - without, 1.0 - with)?);
        if worth > best {
            (best, range, in_range) = (worth, (threshold, threshold), true);
        } else if worth == best && in_range {
            range.1 = threshold;
        } else {
            in_range = false;
        }
    }
    Ok(f64::midpoint(range.0, range.1))
}

/// The threshold at which the shares of scores above it, first with the poison and then without, are worth most.
fn best_by(shown: &Shown<f64>, worth: impl Fn([Share; 2]) -> Result<f64>) -> Result<f64> {
    let mut worlds = [shown.one(), shown.other()].map(<[f64]>::to_vec);
    // What is not a number is above nothing.
    worlds.iter_mut().flatten().for_each(|score| {
        if score.is_nan() {
            *score = f64::NEG_INFINITY;
        }
    });
    worlds
        .iter_mut()
        .for_each(|scores| scores.sort_by(f64::total_cmp));
    let tried = worlds
        .iter()
        .flat_map(|scores| places(scores.len()).into_iter().map(|at| scores[at]));
    let mut best = (f64::NEG_INFINITY, 0.0);
    for threshold in tried {
        let shares = [0, 1].map(|world| {
            let scores = &worlds[world];
            let low = scores.partition_point(|score| *score <= threshold);
            Share {
                hits: (scores.len() - low) as u64,
                trials: scores.len() as u64,
            }
        });
        let found = worth(shares)?;
        if found > best.0 {
            best = (found, threshold);
        }
    }
    Ok(best.1)
}

#[cfg(test)]
#[path = "bound_test.rs"]
mod tests;
