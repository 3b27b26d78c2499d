//! From request to answer.
//!
//! [`Plan::new`] refuses all that can be refused: it calibrates the noise, prices the event of the release to come, and
//! compares the price with what was asked. [`Plan::execute`] checks that the release was that event. What is left to fail
//! once data is read is the device it is read from and the operating system's entropy.

use std::io::Read;

use whit_accounting::{Price, price};
use whit_core::{AddRemove, Entropy, Event, Neighbours, ReplaceOne};
use whit_mechanism::Contribution;

use super::answer::Cost;
use super::input::Input;
use super::measure::{Measure, Outcome};
use super::{Answer, NoiseKind, Request};
use crate::{Error, Result};

/// A request that nothing speaks against. Not `Clone`: one plan, one release.
#[must_use = "a plan that is not executed answers nothing"]
pub struct Plan {
    request: Request,
    mechanism: NoiseKind,
    contribution: Contribution,
    query: Query,
    event: Event,
    charge: Price,
}

/// The query, for its neighbour relation.
enum Query {
    AddRemove(Measure<AddRemove>),
    ReplaceOne(Measure<ReplaceOne>),
}

impl Plan {
    /// Checks the request. Sees no data and draws no noise.
    pub fn new(request: Request) -> Result<Self> {
        let contribution = request.contribution()?;
        let mechanism = request.mechanism()?;
        let query = match request.relation {
            Neighbours::AddRemove => Query::AddRemove(Measure::new(&request, contribution)?),
            Neighbours::ReplaceOne => Query::ReplaceOne(Measure::new(&request, contribution)?),
            relation => return Err(Error::UnknownRelation { relation }),
        };
        let event = match &query {
            Query::AddRemove(measure) => measure.event(),
            Query::ReplaceOne(measure) => measure.event(),
        };
        let charge = price(&event, request.delta)?;
        if charge.epsilon > request.epsilon || charge.delta > request.delta {
            return Err(Error::Overcharged);
        }
        Ok(Self {
            request,
            mechanism,
            contribution,
            query,
            event,
            charge,
        })
    }

    /// What the release will do to the data.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// What that costs; never more than was asked.
    pub fn charge(&self) -> &Price {
        &self.charge
    }

    /// Reads the data and releases one answer. Complaints are about the header only; a reader that fails gives one
    /// constant error, whatever was read before.
    pub fn execute(self, csv: impl Read, entropy: &mut impl Entropy) -> Result<Answer> {
        let outcome = self.release(csv, entropy)?;
        let cost = Cost {
            epsilon: self.charge.epsilon,
            delta: self.charge.delta,
        };
        Ok(Answer::new(self.request, self.mechanism, cost, outcome))
    }

    fn release(&self, csv: impl Read, entropy: &mut impl Entropy) -> Result<Outcome> {
        let mut input = Input::open(csv, &self.request, self.contribution)?;
        let confidence = self.request.confidence;
        let outcome = match &self.query {
            Query::AddRemove(measure) => measure.release(&mut input, confidence, entropy),
            Query::ReplaceOne(measure) => measure.release(&mut input, confidence, entropy),
        }?;
        input.finish()?;
        if outcome.event != self.event {
            return Err(Error::EventChanged);
        }
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests;
