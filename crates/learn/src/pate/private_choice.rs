//! # A choice of noise by private votes, which is paid for
//! Which noise and threshold are good depends on how far the teachers agree, so that to choose by private votes tells about them. Here the choice is among *public* candidates, by the exponential mechanism, and has an event of its own that is charged.
//!
//! **Candidates.** For teachers of each of [six accuracies](ACCURACIES) the choice that [`tune`] finds best on [`simulated`] votes: each keeps the goal's epsilon as a guarantee, whatever the votes, and agrees as often as was asked on *its* simulated votes. No private vote is looked at.
//!
//! **Level.** Where the most votes on query `q` are `m_q`, the level of votes is `L = Σ_q m_q`: how many votes the winners have, over `Q` queries. That of the simulated votes is the level `ℓ` of their candidate, scaled to `Q` queries and rounded down. It is public.
//!
//! **Score.** `s(L) = ℓ - k max(ℓ - L, 0)`, with `k` a whole number (`SHORT`). Candidates at or below the level of the votes score by their own level, so that the highest of them is best, which gives most answers; those above lose `k` for each vote that is missing. Up to `L`, which is the same for all of them and changes no choice, that is
//! `-(L - ℓ)` below and `-(k-1)(ℓ - L)` above: the nearest level wins, and a vote too few weighs `k - 1` times as much as one too many. For a candidate that was tuned for better teachers answers more often and is wrong more often, which the goal does not allow; one that was tuned for worse teachers agrees
//! as often as was asked, or more, and only answers less. (How many answers to expect is no score: the candidate for the best teachers asks for next to no agreement, and answers most on any votes.)
//!
//! **Claim.** Between neighbours, all scores' differences lie in an interval of length `S = kQ`: what the exponential mechanism requires. So the choice is `ε`-DP, by an event of bounded range `ε`.
//! **Proof.** 1. One teacher differs: replaced, trained on another example, or abstaining. Its vote on a query moves two counts, or one, by one each; so `m_q` moves by at most one, up, down or not at all.
//! 2. `L` is a sum of `Q` of them: it moves by some `d` with `|d| <= Q`.
//! 3. A score as a function of `L` has steps of `k` up to `ℓ` and of nothing from there on: it never falls, and rises by at most `k` with each vote. So if `d >= 0`, the scores of all candidates move by numbers in `[0, kd]`, and if `d <= 0` by numbers in `[kd, 0]`: an interval of length at most `kQ`. ∎
//! All of it is in integers: no rounding is left out. It is reached where the winner of every query gets a vote more, one candidate is at or below the votes, and another above them.
//!
//! **How large that is.** A candidate whose level is `g` votes a query above that of the votes, where another one meets it, is chosen with odds of at most `e^(-ε(k-1)g/k)`, and one as far below with `e^(-εg/k)`, whatever the number of queries: for 250 teachers, among whom levels are up to 25 votes apart, an `ε` of a half is enough.
//!
//! What leaves is which candidate it was. The level of these votes is not told, and neither is how many answers they give.

use whit_core::{
    AddRemove, Confidence, Entropy, Event, Linf, Neighbours, Ratio, Relation, ReplaceOne, Secret,
    Sensitivity, round,
};
use whit_mechanism::{Exponential, Scores};

use super::VotesError;
use super::tune::{Choice, Goal, simulated, tune};
use super::votes::Votes;
use crate::payment::{Payment, Priced, sealed};
use crate::{Error, Result};

/// How accurate the simulated teachers are for whom candidates are best, from the lowest on.
pub const ACCURACIES: [f64; 6] = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95];
/// `k`: a vote that a candidate counts on and that is missing weighs three times as much as one that it does not use. Halfway between two levels of 250 teachers the lower candidate is then about twenty times as likely as the higher one, for an epsilon of a half.
const SHORT: i64 = 4;
/// With at most `2^32` queries no score overflows: `2^32 · 10^6 · 4` is below `2^54`.
const TEACHERS_MAX: u64 = 1_000_000;
/// A larger epsilon tells everything.
const EPSILON_MAX: f64 = 100.0;

/// What is public about votes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// How many teachers there are.
    pub teachers: u64,
    /// On how many queries they vote.
    pub queries: usize,
    /// Between how many classes.
    pub classes: usize,
}

impl Shape {
    /// That of votes.
    pub fn of(votes: &Votes) -> Self {
        Self {
            teachers: votes.teachers(),
            queries: votes.queries(),
            classes: votes.classes(),
        }
    }
}

/// A public choice, and for which votes.
struct Candidate {
    choice: Choice,
    /// How many votes the winners had together where it was found best.
    level: i64,
}

/// A choice among public candidates, priced.
pub struct PrivateChoice {
    shape: Shape,
    candidates: Vec<Candidate>,
    law: Law,
    event: Event,
}

/// By which probabilities is chosen.
struct Law {
    options: u64,
    epsilon: Ratio,
    /// The length of the interval that holds the differences of all scores.
    spread: Ratio,
}

impl Law {
    /// `Scores` takes half of that length, which is how far scores move if it lies evenly around zero.
    fn mechanism<R: Relation>(&self) -> Result<Exponential<R>> {
        let half = &self.spread * &Ratio::power_of_two(-1);
        let half: Sensitivity<Linf, R> = Sensitivity::new(half);
        let scores = Scores::new(self.options, &half)?;
        Ok(Exponential::new(self.epsilon.clone(), scores))
    }
}

impl PrivateChoice {
    /// Makes the candidates for a goal and prices the choice among them. Looks at no vote. Refused if no candidate keeps the goal.
    pub fn new(goal: &Goal, shape: Shape, epsilon: f64, neighbours: Neighbours) -> Result<Self> {
        check(&shape, goal, epsilon)?;
        let mut candidates: Vec<Candidate> = Vec::new();
        for accuracy in ACCURACIES {
            let votes = simulated(shape.teachers, shape.classes, accuracy)?;
            for choice in tune(&votes, goal, 1)? {
                let terms = choice.aggregation.terms();
                let is_same = |other: &Candidate| other.choice.aggregation.terms() == terms;
                // The same numbers are told but once, at the lower level: accuracies rise.
                if !candidates.iter().any(is_same) {
                    let level = scaled(level(&votes), votes.queries(), shape.queries);
                    candidates.push(Candidate { choice, level });
                }
            }
        }
        Self::among(candidates, shape, epsilon, neighbours)
    }

    /// The same among any public candidates.
    fn among(
        candidates: Vec<Candidate>,
        shape: Shape,
        epsilon: f64,
        neighbours: Neighbours,
    ) -> Result<Self> {
        if candidates.is_empty() {
            return Err(VotesError::NoCandidate.into());
        }
        let law = Law {
            options: candidates.len() as u64,
            epsilon: Ratio::from_f64(epsilon).unwrap_or_else(Ratio::one),
            spread: &Ratio::from(SHORT.unsigned_abs()) * &Ratio::from(shape.queries as u64),
        };
        let event = match neighbours {
            Neighbours::ReplaceOne => law.mechanism::<ReplaceOne>()?.event(),
            Neighbours::AddRemove => law.mechanism::<AddRemove>()?.event(),
            other => {
                return Err(whit_accounting::Error::WrongRelation {
                    mechanism: "a choice by votes".into(),
                    neighbours: other,
                }
                .into());
            }
        };
        Ok(Self {
            shape,
            candidates,
            law,
            event,
        })
    }

    /// What may be chosen. Public.
    pub fn candidates(&self) -> impl Iterator<Item = &Choice> {
        self.candidates.iter().map(|candidate| &candidate.choice)
    }

    /// What the choice does to the data, and what is charged.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// How much further than the nearest candidate's the level of the chosen one is at most from that of the votes, in votes a query, with this probability. What a candidate has above the votes counts three times. Public.
    pub fn error(&self, confidence: Confidence) -> Result<f64> {
        let votes = self.law.mechanism::<ReplaceOne>()?.error(confidence);
        Ok(round::div_up(votes, self.shape.queries.max(1) as f64))
    }

    /// Uses the payment up and chooses. Refused, before the payment is used, for votes of another shape than declared.
    pub fn run(
        &self,
        votes: &Secret<Votes>,
        payment: Payment,
        entropy: &mut impl Entropy,
    ) -> Result<&Choice> {
        // Shape and relation are public.
        let votes = votes.as_ref().expose();
        self.check(votes)?;
        payment.lay_down(&self.event.fingerprint())?;
        let scores = Secret::new(self.scores(votes));
        let chosen = match self.event.neighbours() {
            Neighbours::AddRemove => self
                .law
                .mechanism::<AddRemove>()?
                .release(scores, entropy)?,
            _ => self
                .law
                .mechanism::<ReplaceOne>()?
                .release(scores, entropy)?,
        };
        Ok(&self.candidates[chosen.into_value()].choice)
    }

    /// Whether these votes can be chosen by: all that must be public about them.
    pub fn check(&self, votes: &Votes) -> std::result::Result<(), VotesError> {
        votes.check_relation(self.event.neighbours())?;
        let (declared, found) = (&self.shape, Shape::of(votes));
        if found.classes != declared.classes {
            return Err(VotesError::OtherClasses {
                declared: declared.classes,
                found: found.classes,
            });
        }
        if found.queries != declared.queries {
            return Err(VotesError::OtherQueries {
                declared: declared.queries,
                found: found.queries,
            });
        }
        if found.teachers != declared.teachers {
            return Err(VotesError::Unequal {
                teachers: Some(declared.teachers),
            });
        }
        Ok(())
    }

    /// Private.
    fn scores(&self, votes: &Votes) -> Vec<i64> {
        let level = level(votes);
        let candidates = self.candidates.iter();
        candidates.map(|candidate| candidate.score(level)).collect()
    }
}

/// How many votes the winners of all queries have together. Private if the votes are.
fn level(votes: &Votes) -> i64 {
    let most = |query| votes.counts(query).iter().copied().max().unwrap_or(0);
    let sum: u64 = (0..votes.queries()).map(most).sum();
    i64::try_from(sum).unwrap_or(i64::MAX)
}

/// A level for another number of queries, rounded down.
fn scaled(level: i64, from: usize, to: usize) -> i64 {
    let scaled = i128::from(level) * to as i128 / from.max(1) as i128;
    i64::try_from(scaled).unwrap_or(i64::MAX)
}

fn check(shape: &Shape, goal: &Goal, epsilon: f64) -> Result<()> {
    let range = |what, given, passes: bool, range| match passes {
        true => Ok(()),
        false => Err(Error::OutOfRange { what, given, range }),
    };
    range(
        "the epsilon of the choice",
        epsilon,
        epsilon > 0.0 && epsilon <= EPSILON_MAX,
        "above 0, and at most 100",
    )?;
    range(
        "the number of teachers",
        shape.teachers as f64,
        shape.teachers <= TEACHERS_MAX,
        "at most 1,000,000 for a choice by their votes",
    )?;
    super::aggregation::within("the number of queries", goal.queries)?;
    super::aggregation::within("the number of queries", shape.queries as u64)
}

impl Candidate {
    fn score(&self, level: i64) -> i64 {
        self.level - SHORT * (self.level - level).max(0)
    }
}

impl sealed::Sealed for PrivateChoice {}

impl Priced for PrivateChoice {
    fn event(&self) -> &Event {
        &self.event
    }

    fn guarantee(&self) -> Result<Event> {
        Ok(self.event.clone())
    }
}

#[cfg(test)]
#[path = "private_choice_test.rs"]
mod tests;
