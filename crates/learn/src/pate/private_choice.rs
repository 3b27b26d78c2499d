//! # A choice of noise by private votes, which is paid for
//! Which noise and threshold give most answers depends on the votes, so that to choose by private ones tells about them. Here the choice is among *public* candidates, by the exponential mechanism, and has an event of its own that is charged.
//!
//! **Candidates.** For teachers of each of [six accuracies](ACCURACIES) the choice that [`tune`] finds best on [`simulated`] votes: each keeps the goal's epsilon as a guarantee, whatever the votes. No private vote is looked at.
//!
//! **Score.** How many answers to expect: `Σ_q Pr[m_q + N(0, σ₁²) >= T]` with the most votes `m_q` on query `q`, and at most the cap. It is counted in whole numbers: a candidate has a table `t(m)` of that
//! probability in steps of an answer, for `m` from 0 to the public number of teachers, made before there are votes; its score is the sum of `t(m_q)` over the `Q` queries, at most its cap in the same unit.
//!
//! **Claim.** Between neighbours, all scores' differences lie in an interval of length `S = Q max_(c,m) (t_c(m+1) - t_c(m))`: what the exponential mechanism requires. So the choice is `ε`-DP, by an event of bounded range `ε`.
//! **Proof.** 1. One teacher differs. Its vote on a query moves two counts, or one, by one each; so `m_q` moves by at most one, up, down or not at all, for all queries at once.
//! 2. Tables are the same for all votes, and never fall. So where `m_q` rises the terms `t_c(m_q)` of all candidates `c` rise, by at most `d = S/Q`, and where it falls they fall by at most that.
//! 3. If `m_q` rises on `U` queries and falls on `V`, the sum of each candidate moves by a number in `[-Vd, Ud]`: an interval that holds zero, of length at most `Qd`.
//! 4. The least of the sum and of a public cap moves in the same direction, and by no more: it stays in that interval. ∎ All of it is in integers: no rounding is left out.
//!
//! **How large that is.** The normal density is at most `1/(σ√(2π))`, so a vote moves a term by at most `1/(σ₁√(2π))` of an answer, and a step; a run of 640 queries with `σ₁ = 150` by 1.7 answers.
//!
//! What leaves is which candidate it was. How many answers it gives at these votes is not told, and neither is how the others would have done.

use whit_accounting::pate::bound::ln_answered;
use whit_core::{
    AddRemove, Confidence, Entropy, Event, Linf, Neighbours, Ratio, Relation, ReplaceOne, Secret,
    Sensitivity,
};
use whit_mechanism::{Exponential, Scores};

use super::VotesError;
use super::tune::{Choice, Goal, simulated, tune};
use super::votes::Votes;
use crate::payment::{Payment, Priced, sealed};
use crate::{Error, Result};

/// How accurate the simulated teachers are for whom candidates are best.
pub const ACCURACIES: [f64; 6] = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95];
/// Steps to an expected answer.
const STEPS: u64 = 1 << 20;
/// A table has an entry for each number of votes.
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

/// A public choice, and how it does.
struct Candidate {
    choice: Choice,
    /// The probability of an answer by the most votes, in steps.
    table: Vec<i64>,
    /// In the unit of scores.
    cap: i64,
}

/// A choice among public candidates, priced.
pub struct PrivateChoice {
    shape: Shape,
    queries: u64,
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
        let mut choices: Vec<Choice> = Vec::new();
        check(&shape, goal, epsilon)?;
        for accuracy in ACCURACIES {
            let votes = simulated(shape.teachers, shape.classes, accuracy)?;
            for choice in tune(&votes, goal, 1)? {
                let terms = choice.aggregation.terms();
                if choices
                    .iter()
                    .all(|other| other.aggregation.terms() != terms)
                {
                    choices.push(choice);
                }
            }
        }
        Self::among(choices, goal.queries, shape, epsilon, neighbours)
    }

    /// The same among any public choices, of which each asks `queries`.
    fn among(
        choices: Vec<Choice>,
        queries: u64,
        shape: Shape,
        epsilon: f64,
        neighbours: Neighbours,
    ) -> Result<Self> {
        let candidates = choices.into_iter();
        let candidates: Vec<Candidate> = candidates
            .map(|choice| Candidate::new(choice, queries, &shape))
            .collect();
        if candidates.is_empty() {
            return Err(VotesError::NoCandidate.into());
        }
        let rises = candidates.iter().map(Candidate::steepest).max();
        // If votes change nothing, any positive spread will do.
        let rise = Ratio::from(rises.unwrap_or(0).unsigned_abs().max(1));
        let law = Law {
            options: candidates.len() as u64,
            epsilon: Ratio::from_f64(epsilon).unwrap_or_else(Ratio::one),
            spread: &rise * &Ratio::from(shape.queries as u64),
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
            queries,
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

    /// How many fewer answers than the best candidate the chosen one gives at most, in expectation and with this probability. Public.
    pub fn error(&self, confidence: Confidence) -> Result<f64> {
        let steps = self.law.mechanism::<ReplaceOne>()?.error(confidence);
        let queries = self.queries as f64 / self.shape.queries.max(1) as f64;
        Ok(steps / STEPS as f64 * queries)
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
        let most = |query| votes.counts(query).iter().copied().max().unwrap_or(0);
        let most: Vec<u64> = (0..votes.queries()).map(most).collect();
        let candidates = self.candidates.iter();
        candidates.map(|candidate| candidate.score(&most)).collect()
    }
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
    fn new(choice: Choice, queries: u64, shape: &Shape) -> Self {
        let terms = *choice.aggregation.terms();
        let mut highest = 0;
        let entry = |votes: u64| {
            let answered = match terms.test {
                Some(test) => ln_answered(&[votes as f64], test.threshold, test.sigma).exp(),
                None => 1.0,
            };
            // A float that is not quite right makes another table, and no other proof; but a table never falls.
            highest = highest.max((answered.clamp(0.0, 1.0) * STEPS as f64) as i64);
            highest
        };
        let table = (0..=shape.teachers).map(entry).collect();
        let all = u128::from(terms.answers_max) * shape.queries as u128 * u128::from(STEPS);
        let cap = all / u128::from(queries.max(1));
        Self {
            choice,
            table,
            cap: i64::try_from(cap).unwrap_or(i64::MAX),
        }
    }

    /// How much the table rises at most, from one number of votes to the next.
    fn steepest(&self) -> i64 {
        let rises = self.table.windows(2).map(|pair| pair[1] - pair[0]);
        rises.max().unwrap_or(0)
    }

    /// Up to `2^32` queries of `2^20` steps: no sum overflows.
    fn score(&self, most: &[u64]) -> i64 {
        let last = self.table.len() - 1;
        let entry = |votes: &u64| self.table[(*votes as usize).min(last)];
        most.iter().map(entry).sum::<i64>().min(self.cap)
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
