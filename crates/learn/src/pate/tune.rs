//! # Which noise and threshold to choose
//! Parameters must not be chosen by looking at private votes: which ones do well tells about them. So [`tune`] takes votes that are public, or [`simulated`] ones, and says so in its type: they are no
//! [`Secret`](whit_core::Secret). Whoever wants to choose by private votes pays for a [`PrivateChoice`](super::PrivateChoice).
//!
//! **The search.** The target epsilon, at the delta, is a `μ` (exactly, and rounded down), and `μ² = N/σ₁² + 2A/σ₂²` is spent whole: for a share of it on tests, that is `σ₁`; for a `σ₂`, that is the cap `A`,
//! rounded down. For each threshold the votes say how many answers to expect, at most `A`, and how often the answer is the winner of the votes. Of those that agree as often as was asked,
//! the choice with most expected answers is best.
//!
//! Tried are ten shares, forty scales of `σ₂` between a hundredth and twice the number of teachers, and thresholds at every twentieth of it. Each choice that is told has been priced as an [`Aggregation`].

use whit_accounting::gdp;
use whit_accounting::pate::bound::{ln_answered, ln_q_gaussian};
use whit_core::{Delta, Epsilon};

use super::aggregation::{Aggregation, Terms};
use super::votes::Votes;
use super::{Test, VotesError};
use crate::{Error, Result};

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// The guarantee's epsilon, at most.
    pub epsilon: f64,
    /// Its delta.
    pub delta: f64,
    /// How many queries will be asked.
    pub queries: u64,
    /// Which share of the answers should be the winner of the votes, at least.
    pub agreement: f64,
}

/// Parameters, and what to expect of them.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Checked and priced.
    pub aggregation: Aggregation,
    /// How many answers to expect.
    pub answers: f64,
    /// Which share of them to expect to be the winner of the votes.
    pub agreement: f64,
}

const SHARES: [f64; 10] = [0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.17, 0.25, 0.35, 0.5];
const SCALES: i32 = 40;
const THRESHOLDS: u32 = 20;

/// Up to `most` choices, the one with most answers first; a scale and a share are told once, with their best threshold. Empty if no choice agrees often enough.
pub fn tune(votes: &Votes, goal: &Goal, most: usize) -> Result<Vec<Choice>> {
    if !(goal.agreement > 0.0 && goal.agreement < 1.0) {
        return Err(Error::OutOfRange {
            what: "the agreement",
            given: goal.agreement,
            range: "between 0 and 1",
        });
    }
    if votes.queries() == 0 {
        return Err(VotesError::Empty { what: "query" }.into());
    }
    let (epsilon, delta) = (Epsilon::new(goal.epsilon)?, Delta::new(goal.delta)?);
    let mu = gdp::of_target(epsilon, delta).lower();
    if mu <= 0.0 || delta == Delta::ZERO {
        return Err(whit_accounting::Error::ZeroTarget { what: "delta" }.into());
    }
    let rows: Vec<Vec<f64>> = (0..votes.queries())
        .map(|query| votes.floats(query))
        .collect();
    let mut found = Vec::new();
    for sigma in scales(votes.teachers()) {
        // How often the noisy winner is that of the votes, query by query.
        let wins: Vec<f64> = rows
            .iter()
            .map(|row| -ln_q_gaussian(row, sigma).exp_m1())
            .collect();
        for share in SHARES {
            let search = Search {
                votes,
                rows: &rows,
                wins: &wins,
                goal,
                mu,
                sigma,
                share,
            };
            found.extend(search.best()?);
        }
    }
    found.sort_by(|a, b| b.answers.total_cmp(&a.answers));
    found.truncate(most);
    Ok(found)
}

/// From a hundredth of the teachers to twice as many.
fn scales(teachers: u64) -> impl Iterator<Item = f64> {
    let step = (200.0_f64).ln() / f64::from(SCALES - 1);
    let rounded = move |i: i32| three_digits(0.01 * teachers as f64 * (step * f64::from(i)).exp());
    (0..SCALES).map(rounded)
}

/// What people type. What the rounding adds is in the cap and the price, which come later.
fn three_digits(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

/// One scale of the maximum, and one share for the tests.
struct Search<'a> {
    votes: &'a Votes,
    rows: &'a [Vec<f64>],
    wins: &'a [f64],
    goal: &'a Goal,
    mu: f64,
    sigma: f64,
    share: f64,
}

impl Search<'_> {
    fn best(&self) -> Result<Option<Choice>> {
        let square = self.mu * self.mu;
        let test = three_digits((self.goal.queries as f64 / (self.share * square)).sqrt());
        let tests = self.goal.queries as f64 / (test * test);
        // A little less than fits, for the roundings of this sum; the price below decides.
        let cap = (square - tests) * self.sigma * self.sigma / 2.0 * (1.0 - 1e-12);
        let cap = (cap.max(0.0) as u64).min(self.goal.queries);
        if cap == 0 {
            return Ok(None);
        }
        let mut best: Option<(f64, f64, f64)> = None;
        for step in 0..=THRESHOLDS {
            let threshold = self.votes.teachers() as f64 * f64::from(step) / f64::from(THRESHOLDS);
            let (answers, agreement) = self.expected(threshold, test, cap);
            if agreement >= self.goal.agreement && best.is_none_or(|(most, ..)| answers > most) {
                best = Some((answers, agreement, threshold));
            }
        }
        let Some((answers, agreement, threshold)) = best else {
            return Ok(None);
        };
        let aggregation = Aggregation::new(&Terms {
            test: Some(Test {
                threshold,
                sigma: test,
            }),
            sigma: self.sigma,
            queries: self.goal.queries,
            answers_max: cap,
            classes: self.votes.classes(),
            delta: self.goal.delta,
            ..Terms::default()
        })?;
        let keeps = aggregation.epsilon() <= self.goal.epsilon;
        Ok(keeps.then_some(Choice {
            aggregation,
            answers,
            agreement,
        }))
    }

    /// How many answers, and which share of them is right, if the queries to come are like these.
    fn expected(&self, threshold: f64, sigma: f64, cap: u64) -> (f64, f64) {
        let (mut answers, mut right) = (0.0, 0.0);
        for (row, wins) in self.rows.iter().zip(self.wins) {
            let answered = ln_answered(row, threshold, sigma).exp();
            answers += answered;
            right += answered * wins;
        }
        let scale = self.goal.queries as f64 / self.rows.len() as f64;
        (
            (answers * scale).min(cap as f64),
            right / answers.max(f64::MIN_POSITIVE),
        )
    }
}

/// Votes of teachers of a given mean accuracy, on 500 queries from hard to easy: nobody's data. On a query of ease `u`, evenly spread, the share of right votes is
/// `(1-(1-u)^(1/b))^(1/3)`, which has many easy queries and few hard ones (a Kumaraswamy law, with `b` by the accuracy); half of the wrong votes go to one class, half of the rest to
/// the next, and so on.
pub fn simulated(teachers: u64, classes: usize, accuracy: f64) -> Result<Votes> {
    const QUERIES: u32 = 500;
    if !(accuracy > 0.0 && accuracy < 1.0) {
        return Err(Error::OutOfRange {
            what: "the accuracy of teachers",
            given: accuracy,
            range: "between 0 and 1",
        });
    }
    if classes < 2 {
        return Err(VotesError::Classes { classes }.into());
    }
    let eases = (0..QUERIES).map(|i| (f64::from(i) + 0.5) / f64::from(QUERIES));
    let share = |u: f64, b: f64| (1.0 - (1.0 - u).powf(1.0 / b)).cbrt();
    let mean = |b: f64| eases.clone().map(|u| share(u, b)).sum::<f64>() / f64::from(QUERIES);
    // The mean falls with b: bisection in its logarithm, from e^-12 to e^12.
    let (mut low, mut high) = (-12.0_f64, 12.0_f64);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if mean(middle.exp()) > accuracy {
            low = middle;
        } else {
            high = middle;
        }
    }
    let b = low.exp();
    let mut counts = Vec::new();
    for u in eases {
        let right = (share(u, b) * teachers as f64).round() as u64;
        let mut left = teachers - right.min(teachers);
        counts.push(teachers - left);
        for class in 1..classes {
            let votes = if class + 1 == classes {
                left
            } else {
                left.div_ceil(2)
            };
            counts.push(votes);
            left -= votes;
        }
    }
    Ok(Votes::from_histogram(&counts, classes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOAL: Goal = Goal {
        epsilon: 2.0,
        delta: 1e-5,
        queries: 640,
        agreement: 0.95,
    };

    #[test]
    fn choices_keep_the_target_and_agree() {
        let votes = simulated(250, 10, 0.84).expect("votes");
        let choices = tune(&votes, &GOAL, 5).expect("a goal");
        assert_eq!(choices.len(), 5);
        for choice in &choices {
            assert!(choice.aggregation.epsilon() <= 2.0 && choice.agreement >= 0.95);
            assert!(choice.answers <= choice.aggregation.terms().answers_max as f64);
        }
        assert!(
            choices[0].answers >= choices[4].answers && choices[0].answers > 100.0,
            "{}",
            choices[0].answers
        );
        assert!(
            choices[0].aggregation.epsilon() > 1.9,
            "nearly all of it is spent"
        );
        let twice = Goal {
            epsilon: 4.0,
            ..GOAL
        };
        let more = tune(&votes, &twice, 1).expect("a goal");
        assert!(more[0].answers > choices[0].answers);
    }

    #[test]
    fn what_cannot_be_reached_is_empty() {
        let votes = simulated(4, 10, 0.5).expect("votes");
        let goal = Goal {
            epsilon: 0.01,
            agreement: 0.999,
            ..GOAL
        };
        assert!(tune(&votes, &goal, 5).expect("a goal").is_empty());
        for bad in [
            Goal { delta: 0.0, ..GOAL },
            Goal {
                agreement: 1.0,
                ..GOAL
            },
            Goal {
                epsilon: f64::NAN,
                ..GOAL
            },
        ] {
            assert!(tune(&votes, &bad, 5).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn simulated_teachers_are_as_accurate_as_asked() {
        for accuracy in [0.3, 0.84, 0.97] {
            let votes = simulated(250, 10, accuracy).expect("votes");
            let right: u64 = (0..votes.queries())
                .map(|query| votes.counts(query)[0])
                .sum();
            let found = right as f64 / 250.0 / votes.queries() as f64;
            assert!((found - accuracy).abs() < 0.01, "{accuracy}: {found}");
            assert_eq!(votes.teachers(), 250);
        }
        assert!(
            simulated(250, 1, 0.8).is_err()
                && simulated(0, 3, 0.8).is_err()
                && simulated(9, 3, f64::NAN).is_err()
        );
    }
}
