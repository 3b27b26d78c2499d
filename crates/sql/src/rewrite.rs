//! # From a stable plan to a private one
//! A [`PrivatePlan`] holds the caps, the clamps, the noise and the one [`Event`] they imply, so that they cannot drift apart.
//! There is one way to get one: [`PrivatePlan::rewrite`]. No data is read for it, so it can be explained and priced for nothing.
//!
//! The engine's plan is made with it, so that whatever can go wrong there goes wrong before anything is paid; the secret key in it
//! is drawn when it runs. One rule per file:
//! `compute` evaluates terms and clamps to integers, `cap_unit`, `cap_rows` and `cap_groups` bound what a unit contributes,
//! `sum` adds up.
//!
//! **Guarantee.** Neighbours differ in one unit. By `analyze/contribution.rs` the vector of all groups' sums of an aggregate moves
//! by at most its L1 and L2 bounds; integer noise for these makes each aggregate as private as its event says, and the statement
//! is their composition. With private keys, first the keys are selected: a unit is in at most `G` groups after the caps, so that
//! is a composition of `G` selections; then noise is added to the sums of the keys that were shown, a function of the data
//! and of what is already public, with the same bounds.

use std::sync::Mutex;

use datafusion::logical_expr::LogicalPlan;
use whit_core::{AddRemove, Event, Fault, FaultKind};
use whit_mechanism::{Additive, PartitionSelection};

use crate::analyze::{Keys, StablePlan};
use crate::error::{Error, Result, refused};
use crate::request::Request;
use crate::table::Tables;

mod cap_groups;
mod cap_rows;
mod cap_unit;
mod compute;
mod explain;
mod keyed_hash;
mod lower;
mod split;
mod sum;

pub(crate) use compute::{Compute, Output, base_name};
pub use explain::{Expected, Explanation, KeyThreshold};
pub(crate) use keyed_hash::{HashKey, KeyedHash};
pub(crate) use lower::{KEY, UNIT, UNITS, lower, part_names};

/// An answer of public keys has so many noisy numbers at most: it is held in memory.
const NUMBERS_MAX: u64 = 1 << 22;

/// A plan whose answer is private at the price of its event.
pub struct PrivatePlan {
    pub(crate) stable: StablePlan,
    pub(crate) noise: Vec<Additive<AddRemove>>,
    pub(crate) selection: Option<PartitionSelection<AddRemove>>,
    event: Event,
    request: Request,
    /// The engine's plan and its key, until it runs.
    lowered: Mutex<Option<(LogicalPlan, HashKey)>>,
}

/// Below this an epsilon is so small that what fails is the noise, and not what else was asked.
const EPSILON_SMALL: f64 = 1e-9;

/// Noise that is beyond all numbers, in the words of who asked for it.
fn too_small(error: Error, request: &Request) -> Error {
    match error {
        Error::Refused { .. } => error,
        _ if error.kind() == FaultKind::Bug => error,
        _ if request.epsilon().value() < EPSILON_SMALL => refused(
            "epsilon_too_small",
            format!(
                "epsilon is {:e}, with which the noise is beyond all numbers here",
                request.epsilon().value()
            ),
            "give epsilon as a number above 0, up to 1024, such as 0.1",
        ),
        _ => error,
    }
}

impl PrivatePlan {
    /// Chooses the noise and states the event.
    pub fn rewrite(stable: StablePlan, request: &Request, tables: &Tables) -> Result<Self> {
        tables.check(stable.statement.tables)?;
        let groups = stable.keys.count();
        let each: u64 = stable
            .measured
            .iter()
            .map(|measured| measured.width())
            .sum();
        if groups.is_some_and(|groups| groups.saturating_mul(each) > NUMBERS_MAX) {
            return Err(refused(
                "too_many_numbers",
                format!("the answer would have more than {NUMBERS_MAX} noisy numbers"),
                "group by fewer columns, or take aggregates out",
            ));
        }
        // Whatever can go wrong in making the engine's plan goes wrong here, before anything is paid.
        let key = HashKey::undrawn();
        let lowered = lower(&stable, tables, &key).map_err(|_| Error::Bug {
            invariant: "a stable plan can be lowered",
        })?;
        let split::Split { noise, selection } =
            split::split(&stable, request).map_err(|error| too_small(error, request))?;
        let mut events = selection
            .iter()
            .map(PartitionSelection::event)
            .collect::<Vec<_>>();
        for (noise, measured) in noise.iter().zip(&stable.measured) {
            // How many private keys will be shown is not known: as many as there can be.
            let coordinates = groups.map_or(u64::MAX, |groups| groups * measured.width());
            events.push(noise.event_of(coordinates));
        }
        let mut events = events.into_iter();
        let first = events.next().ok_or_else(|| {
            refused(
                "no_aggregate",
                "there is nothing to release",
                "add COUNT(*), for example",
            )
        })?;
        let event = events.try_fold(first, Event::and)?;
        Ok(Self {
            stable,
            noise,
            selection,
            event,
            request: *request,
            lowered: Mutex::new(Some((lowered, key))),
        })
    }

    /// The engine's plan under a key that was drawn for one execution. The first gets the one that was made with this plan; whoever
    /// runs it again gets another, so that no two have the same key.
    pub(crate) fn lowered(&self, tables: &Tables, drawn: &HashKey) -> Option<LogicalPlan> {
        let made = self
            .lowered
            .lock()
            .ok()
            .and_then(|mut lowered| lowered.take());
        match made {
            Some((plan, key)) => key.become_drawn(drawn).then_some(plan),
            None => lower(&self.stable, tables, drawn).ok(),
        }
    }

    /// What an accountant needs to know, before anything is read.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// The parameters it was made for.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// How many groups the answer has before HAVING and LIMIT, if that is public.
    pub fn groups(&self) -> Option<u64> {
        self.stable.keys.count()
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.stable.keys
    }
}

impl std::fmt::Debug for PrivatePlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PrivatePlan")
            .field("contribution", &self.stable.contribution)
            .field("event", &self.event)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::request::Asked;

    #[test]
    fn a_small_epsilon_excuses_no_bug() {
        let catalog = "[dataset]\nid = \"d\"\n[budget]\nepsilon = 1\n\
             [table.t]\nsource = \"t.csv\"\nunit = \"u\"\n";
        let catalog = Catalog::parse(catalog).expect("a catalog");
        let asked = Asked {
            epsilon: whit_core::Epsilon::new(1e-30).ok(),
            ..Asked::default()
        };
        let request = Request::new(asked, &catalog).expect("a request");
        let code = |error: Error| too_small(error, &request).code();
        let invariant = "it holds";
        assert_eq!(code(Error::Bug { invariant }), "bug");
        assert_eq!(code(refused("rule", "", "")), "rule");
        let domain = whit_core::Error::OutOfDomain {
            what: "epsilon",
            given: "0".into(),
            domain: "more",
        };
        assert_eq!(code(domain.into()), "epsilon_too_small");
    }
}
