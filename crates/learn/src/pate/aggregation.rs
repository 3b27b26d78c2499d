//! # Aggregation: what may be done with votes, what that costs, and the doing
//! An [`Aggregation`] is made of public numbers alone: noise, threshold, how many queries, and how many answers at most. Its event covers every run of it, whatever
//! the votes, since the mechanism halts at both caps (`whit_mechanism::confident_noisy_max` has the proof): `N` Gaussian tests and `A` Gaussian maxima, and what
//! a sanitised cost costs if one is asked for. [`price`] turns that into the guarantee: Gaussian steps compose exactly, to `μ² = N/σ₁² + 2A/σ₂²`, and convert by the exact
//! Gaussian curve, rounded up.
//!
//! To [`run`](Aggregation::run) it takes a [`Payment`], so a ledger that keeps the budget was charged before. The first `N` queries are asked in order, until `A` answers
//! were given; queries after that are not looked at.

use serde::Serialize;
use whit_accounting::{gdp, price};
use whit_core::{
    AddRemove, Delta, Entropy, Event, Mechanism, Mu, Neighbours, Ratio, Relation, ReplaceOne,
    Sampling, Scale, Secret, round,
};
use whit_mechanism::gaussian_noisy_max::{GaussianNoisyMax, steps};
use whit_mechanism::{Caps, ConfidentNoisyMax};

use super::Test;
use super::error::VotesError;
use super::sanitise::{Sanitise, Sanitised};
use super::votes::Votes;
use crate::payment::{Payer, Payment, Priced, sealed};
use crate::{Error, Result};

/// The public numbers of an aggregation, as somebody typed them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// The test whether teachers agree; without it every query is answered.
    pub test: Option<Test>,
    /// The noise on each count, in votes.
    pub sigma: f64,
    /// How many queries are asked at most.
    pub queries: u64,
    /// How many are answered at most.
    pub answers_max: u64,
    /// Between how many classes.
    pub classes: usize,
    /// The slack of the guarantee.
    pub delta: f64,
    /// How the cost at these votes is published, if at all.
    pub sanitise: Option<Sanitise>,
    /// Neighbours: one teacher is replaced, or one example more or less changes one teacher.
    pub neighbours: Neighbours,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            test: None,
            sigma: 40.0,
            queries: 1,
            answers_max: 1,
            classes: 2,
            delta: 1e-5,
            sanitise: None,
            neighbours: Neighbours::ReplaceOne,
        }
    }
}

/// Terms that were checked and priced.
#[derive(Clone, Debug)]
pub struct Aggregation {
    terms: Terms,
    event: Event,
    mu: f64,
    epsilon: f64,
}

/// What an aggregation tells.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// For each query in order: the winner, or nothing where the teachers did not agree or the cap was reached before.
    pub labels: Vec<Option<usize>>,
    /// How many queries were looked at.
    pub tested: usize,
    /// The cost at these votes with noise, if it was asked for.
    pub sanitised: Option<Sanitised>,
}

impl Outcome {
    /// How many queries were answered.
    pub fn answered(&self) -> usize {
        self.labels.iter().flatten().count()
    }
}

/// More queries than this are no list that somebody labels.
const QUERIES_MAX: u64 = 1 << 32;

/// A positive scale, by its exact value. Noise of more than a million million votes is nothing but noise.
pub(super) fn scale(what: &'static str, sigma: f64) -> Result<Scale> {
    let ratio = Ratio::from_f64(sigma).filter(|_| (1e-6..=1e12).contains(&sigma));
    let ratio = ratio.ok_or(Error::OutOfRange {
        what,
        given: sigma,
        range: "above zero, from 1e-6 to 1e12 votes",
    })?;
    Ok(Scale::new(ratio)?)
}

pub(super) fn within(what: &'static str, given: u64) -> Result<()> {
    if (1..=QUERIES_MAX).contains(&given) {
        return Ok(());
    }
    Err(Error::OutOfRange {
        what,
        given: given as f64,
        range: "from 1 to 2^32",
    })
}

impl Aggregation {
    /// Checks and prices the terms. Looks at no vote.
    pub fn new(terms: &Terms) -> Result<Self> {
        let mut terms = *terms;
        within("the number of queries", terms.queries)?;
        within("the cap on answers", terms.answers_max)?;
        // There are no more answers than queries.
        terms.answers_max = terms.answers_max.min(terms.queries);
        let delta = Delta::new(terms.delta)?;
        if delta == Delta::ZERO {
            return Err(Error::OutOfRange {
                what: "delta",
                given: 0.0,
                range: "above 0 and below 1, such as 1e-5: Gaussian noise has no epsilon without it",
            });
        }
        let event = match terms.neighbours {
            Neighbours::ReplaceOne => event::<ReplaceOne>(&terms)?,
            Neighbours::AddRemove => event::<AddRemove>(&terms)?,
            other => {
                return Err(whit_accounting::Error::WrongRelation {
                    mechanism: "an aggregation of votes".into(),
                    neighbours: other,
                }
                .into());
            }
        };
        let epsilon = price(&event, delta)?.epsilon.value();
        Ok(Self {
            terms,
            event,
            mu: mu(&terms)?,
            epsilon,
        })
    }

    /// As checked; the cap on answers is at most the number of queries.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The guarantee's epsilon at the terms' delta, rounded up.
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// `√(N/σ₁² + 2A/σ₂²)`, rounded up: what tests and answers are together, without a sanitised cost.
    pub fn mu(&self) -> f64 {
        self.mu
    }

    /// What all this does to the data, and what is charged.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// Whether these votes can be asked: all that must be public about them.
    pub fn check(&self, votes: &Votes) -> std::result::Result<(), VotesError> {
        votes.check_relation(self.terms.neighbours)?;
        if votes.classes() != self.terms.classes {
            return Err(VotesError::OtherClasses {
                declared: self.terms.classes,
                found: votes.classes(),
            });
        }
        if (votes.queries() as u64) < self.terms.queries {
            return Err(VotesError::TooFew {
                declared: self.terms.queries,
                found: votes.queries(),
            });
        }
        Ok(())
    }

    /// Uses the payment up: asks the queries in order and tells the answers. Refused, before the payment is used, for votes that do not fit.
    pub fn run(
        &self,
        votes: &Secret<Votes>,
        payment: Payment,
        entropy: &mut impl Entropy,
    ) -> Result<Outcome> {
        // Shape is public.
        let votes = votes.as_ref().expose();
        self.check(votes)?;
        let _payer: Payer = payment.lay_down(&self.event.fingerprint())?;
        let mut outcome = match self.terms.neighbours {
            Neighbours::AddRemove => self.ask::<AddRemove>(votes, entropy)?,
            _ => self.ask::<ReplaceOne>(votes, entropy)?,
        };
        if let Some(sanitise) = &self.terms.sanitise {
            let sanitised = sanitise.release(&self.terms, votes, &outcome, entropy)?;
            outcome.sanitised = Some(sanitised);
        }
        Ok(outcome)
    }

    fn ask<R: Relation>(&self, votes: &Votes, entropy: &mut impl Entropy) -> Result<Outcome> {
        let terms = &self.terms;
        let queries = usize::try_from(terms.queries).unwrap_or(usize::MAX);
        let mut labels = vec![None; queries.min(votes.queries())];
        let mut tested = 0;
        let counts = |query: usize| steps(Secret::new(votes.counts(query).to_vec()), terms.classes);
        let maximum = maximum::<R>(terms)?;
        match terms.test {
            Some(test) => {
                let mut stream = confident(&test, maximum)?.start(caps(terms));
                for (query, label) in labels.iter_mut().enumerate() {
                    if stream.is_halted() {
                        break;
                    }
                    *label = stream.ask(counts(query), entropy)?.into_value();
                    tested += 1;
                }
            }
            None => {
                let most = usize::try_from(terms.answers_max).unwrap_or(usize::MAX);
                for (query, label) in labels.iter_mut().enumerate().take(most) {
                    *label = Some(maximum.release(counts(query), entropy)?.into_value());
                    tested += 1;
                }
            }
        }
        Ok(Outcome {
            labels,
            tested,
            sanitised: None,
        })
    }
}

pub(super) fn caps(terms: &Terms) -> Caps {
    Caps {
        tests: terms.queries,
        answers: terms.answers_max,
    }
}

pub(super) fn maximum<R: Relation>(terms: &Terms) -> Result<GaussianNoisyMax<R>> {
    let sigma = scale("sigma2, the noise of the maximum,", terms.sigma)?;
    Ok(GaussianNoisyMax::new(sigma, terms.classes as u64)?)
}

pub(super) fn confident<R: Relation>(
    test: &Test,
    maximum: GaussianNoisyMax<R>,
) -> Result<ConfidentNoisyMax<R>> {
    let threshold = Ratio::from_f64(test.threshold).ok_or(Error::OutOfRange {
        what: "the threshold",
        given: test.threshold,
        range: "zero or more, and finite",
    })?;
    let sigma = scale("sigma1, the noise of the test,", test.sigma)?;
    Ok(ConfidentNoisyMax::new(&threshold, sigma, maximum)?)
}

/// All that a run does, whatever the votes.
fn event<R: Relation>(terms: &Terms) -> Result<Event> {
    let maximum = maximum::<R>(terms)?;
    let asked = match &terms.test {
        Some(test) => confident(test, maximum)?.event(caps(terms)),
        None => {
            let steps = Mechanism::Sampled {
                sampling: Sampling::All,
                steps: terms.answers_max,
                inner: Box::new(maximum.event().mechanism().clone()),
            };
            Event::new(R::NEIGHBOURS, steps)
        }
    };
    match &terms.sanitise {
        Some(sanitise) => Ok(asked.and(sanitise.event::<R>()?)?),
        None => Ok(asked),
    }
}

/// `√(N/σ₁² + 2A/σ₂²)`, rounded up.
fn mu(terms: &Terms) -> Result<f64> {
    let share = |count: u64, sigma: f64| {
        let rate = round::div_up(1.0, round::mul_down(sigma, sigma));
        round::sqrt_up(round::mul_up(count as f64, rate))
    };
    let tests = terms
        .test
        .map_or(0.0, |test| share(terms.queries, test.sigma));
    let answers = share(2 * terms.answers_max, terms.sigma);
    let parts = [Mu::new(tests)?, Mu::new(answers)?];
    Ok(gdp::compose(parts).upper())
}

impl sealed::Sealed for Aggregation {}

impl Priced for Aggregation {
    fn event(&self) -> &Event {
        &self.event
    }

    /// The event itself: its concentrated loss is what composes best.
    fn guarantee(&self) -> Result<Event> {
        Ok(self.event.clone())
    }
}

#[cfg(test)]
#[path = "aggregation_test.rs"]
mod tests;
