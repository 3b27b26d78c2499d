//! # Teachers are trained, and heard, at the expense of a ledger
//! From a catalogued table to labels of public examples: [`Session::teach`] deals the table's units out to teachers, trains them, and tells what an aggregator tells of their votes.
//!
//! **Whom it protects.** A catalog protects units, by adding or removing one. One row of each unit is an example, chosen by that unit's rows alone, and an example reaches one teacher by a hash of itself: so a unit more or less changes one teacher.
//! A plan that deals examples out by their place has no price here, and is refused.
//!
//! **In which order**, as for [training runs](Session::train): what can be refused for what is public is refused, and with it what the budget has no room for; the folder is tried; the charge is kept; it is settled with what is promised; the folder is begun, which uses the
//! permit up; rows are read; teachers are trained, and their votes wait in the folder; the one aggregation is counted there, and then run. A run that stops goes on from there and pays nothing. Labels that were told are told again, and no row is read; votes
//! are removed once labels are kept. A folder that was begun with other public examples is refused: its labels are of those.
//!
//! **What is the owner's.** An analyst is charged for what noise leaves. Votes as they are, what a run cost at them, and how fast teachers come are the owner's: a run that an analyst asks for keeps no votes, does not count what they cost, and tells nobody how far it is.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use serde::Serialize;
use whit_accounting::reserve::{Account, Filter};
use whit_core::{Bits, Delta, Entropy, Event, Neighbours, Secret};
use whit_learn::Payment;
use whit_learn::checkpoint::{CheckpointError, Place, Run};
use whit_learn::data::{Audience, Inputs, inputs, load_surveyed};
use whit_learn::pate::ballots::Afterwards;
use whit_learn::pate::recipe::RESULTS;
use whit_learn::pate::{
    Accounting, Aggregation, EnsembleRecipe, Outcome, Owner, Room, VotesError, owner,
};
use whit_sql::{Catalog, Tables};

use super::rehearsal::opening;
use super::training::{
    Begun, Desk, Quoted, cover_at, fits, key, protect_data, quoted_for, tried, unfit,
};
use super::{Charge, Error, Remaining, Result, Session, account, terms};

/// Which ensemble, on what, by whom.
#[derive(Clone, Copy, Debug)]
pub struct TeachOrder<'a> {
    /// The private table of the catalog that teachers learn from.
    pub table: &'a str,
    /// What to do. Its data are that table's file.
    pub recipe: &'a EnsembleRecipe,
    /// Who asks.
    pub analyst: Option<&'a str>,
    /// The folder that the recipe's paths are relative to.
    pub folder: &'a Path,
    /// What becomes of the teachers' votes, as they are, once labels are kept.
    pub votes: Afterwards,
}

/// What teachers have told.
#[non_exhaustive]
pub struct Taught {
    /// Labels.
    pub outcome: Outcome,
    /// What it cost at these votes: there only if teachers voted now, and no analyst asked.
    pub owner: Option<Secret<Owner>>,
    /// As ordered, with the unit that the catalog protects.
    pub recipe: EnsembleRecipe,
    /// What was paid for.
    pub aggregation: Aggregation,
    /// What was charged just now: nothing, if the run was paid for before.
    pub charge: Charge,
    /// What is left at every level.
    pub remaining: Remaining,
    /// Was it begun and paid for before?
    pub resumed: bool,
    /// The hash that commits the ledger to what this run promises, and to everything before it.
    pub receipt: String,
}

/// What the ledger keeps: the guarantee, and which run it is.
#[derive(Serialize)]
struct Promise<'a> {
    teachers: Words<'a>,
}

#[derive(Serialize)]
struct Words<'a> {
    run: &'a str,
    unit: &'a str,
    count: usize,
    epsilon: f64,
    delta: f64,
    event: &'a Event,
}

/// An order whose examples are units of a catalog.
struct Protected {
    account: Account,
    recipe: EnsembleRecipe,
    aggregation: Aggregation,
    delta: Delta,
}

impl Session {
    /// Pays for an ensemble, trains it and tells what its votes tell, or goes on with one that was paid for. `after` hears how many teachers have voted, unless an analyst asks: how fast they come tells how large their parts are.
    pub fn teach(
        &self,
        order: &TeachOrder<'_>,
        room: &Room,
        desk: &Desk<'_>,
        after: &(dyn Fn(usize) + Sync),
        entropy: &mut impl Entropy,
    ) -> Result<Taught> {
        let protected = protected(&self.catalog, &self.tables, &self.folder, order)?;
        let Protected {
            account,
            recipe,
            aggregation,
            delta,
        } = protected;
        let inputs = fits_room(order, &recipe, room)?;
        let standings = self.ledger.standings(&account)?;
        let priced = (&aggregation, delta);
        let (event, charge) = cover_at(&self.catalog, &self.filter, priced, &standings)?;
        let run = recipe.run(&aggregation);
        Place::is_own_with(desk.out, &run, &RESULTS).map_err(whit_learn::Error::from)?;
        let mut begun = match Place::is_begun(desk.out, &run) {
            true => self.paid_before(&run, &account, desk).map_err(of_labels)?,
            false => {
                let paid = (&recipe, &aggregation, &event);
                let begun = (&run, room.fingerprint());
                self.pay_teachers(paid, begun, &account, desk, entropy)?
            }
        };
        let place = &mut begun.place;
        let public = room.fingerprint();
        let told = aggregation.told_in(place, public)?.0;
        let (outcome, owner) = match told {
            Some(outcome) => (outcome, None),
            None => {
                let is_owner = order.analyst.is_none();
                let after: &(dyn Fn(usize) + Sync) = if is_owner { after } else { &|_| {} };
                let votes = self.cast_or_suspend(begun.sequence, || {
                    let data =
                        load_surveyed(&recipe.data, order.folder, Audience::Anyone, &inputs)?;
                    recipe.votes(room, &data, Some(desk.out), desk.threads, after)
                })?;
                let outcome = aggregation.run_in(place, public, &votes, entropy)?;
                let terms = aggregation.terms();
                let seen = || owner::owner(terms, &votes, &outcome, Accounting::Realised);
                let seen = is_owner.then(seen);
                (outcome, seen)
            }
        };
        let settled = order.votes.settle(desk.out, &run);
        settled.map_err(whit_learn::Error::from)?;
        Ok(Taught {
            outcome,
            owner,
            recipe,
            aggregation,
            charge: match begun.resumed {
                true => charge.nothing(),
                false => charge,
            },
            remaining: self.remaining(&account)?,
            resumed: begun.resumed,
            receipt: begun.receipt,
        })
    }

    /// Whatever keeps teachers from voting may be in the rows that they learn from: that it failed is a bit about them that nobody has paid for, and a panic is one like an error. The aggregation was not counted yet, so the run
    /// goes on from its folder once the owner has looked into it, and pays nothing.
    fn cast_or_suspend<T>(
        &self,
        charged: u64,
        cast: impl FnOnce() -> whit_learn::Result<T>,
    ) -> Result<T> {
        // What was half done by a panic is never seen again: votes are kept whole, or not.
        let cast = catch_unwind(AssertUnwindSafe(cast));
        let cast = cast.unwrap_or_else(|_| Err(VotesError::Uncast.into()));
        if cast.is_err() {
            self.ledger.suspend(charged)?;
        }
        Ok(cast?)
    }

    /// Charges the aggregation, settles that with what it promises, and begins the folder.
    fn pay_teachers(
        &self,
        (recipe, aggregation, event): (&EnsembleRecipe, &Aggregation, &Event),
        (run, public): (&Run, &[u8; 32]),
        account: &Account,
        desk: &Desk<'_>,
        entropy: &mut impl Entropy,
    ) -> Result<Begun> {
        self.ledger.running()?;
        let standings = self.ledger.standings(account)?;
        fits(&self.filter, event, account, standings)?;
        let labels = usize::try_from(aggregation.terms().queries).unwrap_or(usize::MAX);
        let place = tried(desk, run, labels.saturating_add(public.len()))?;
        let mut bits = entropy.open().map_err(whit_learn::Error::from)?;
        let id = format!("{:016x}{:016x}", bits.word(), bits.word());
        drop(bits);
        let mut journal = self.ledger.charge(key(run, &id, account), run.plan);
        let permit = self.filter.reserve(event, account, &mut journal)?;
        let sequence = permit.sequence();
        let (payment, redeemed) = Payment::charged(aggregation, permit, id.clone())?;
        let promise = Promise {
            teachers: Words {
                run: &id,
                unit: recipe.data.unit.as_deref().unwrap_or_default(),
                count: recipe.teachers.count,
                epsilon: aggregation.epsilon(),
                delta: aggregation.terms().delta,
                event: aggregation.event(),
            },
        };
        let promise = serde_json::to_string(&promise).expect("plain data");
        let settled = self.ledger.settle(redeemed, &promise);
        let receipt = settled.map_err(Error::Unsettled)?;
        aggregation.start_in(&place, payment, public)?;
        Ok(Begun {
            place,
            sequence,
            receipt: receipt.to_string(),
            resumed: false,
        })
    }

    /// What an ensemble would be charged. Reads no private row, charges nothing.
    pub fn quote_teaching(&self, order: &TeachOrder<'_>) -> Result<Quoted> {
        let protected = protected(&self.catalog, &self.tables, &self.folder, order)?;
        let standings = self.ledger.standings(&protected.account)?;
        let priced = (&protected.aggregation, protected.delta);
        let covered = cover_at(&self.catalog, &self.filter, priced, &standings)?;
        let mut quoted = quoted_for(covered, &self.filter, &protected.account, standings)?;
        if let Err(stopped) = self.ledger.running() {
            quoted.room = 0;
            quoted.objection = Some(stopped.to_string());
        }
        Ok(quoted)
    }
}

/// The same by a ledger that does not exist yet, and that this does not make.
pub fn quote_teaching_unopened(
    catalog: &Catalog,
    folder: &Path,
    order: &TeachOrder<'_>,
) -> Result<Quoted> {
    let tables = Tables::open(catalog, folder)?;
    let protected = protected(catalog, &tables, folder, order)?;
    let filter = Filter::new(terms(catalog).mode);
    let standings = opening(catalog, &protected.account)?;
    let priced = (&protected.aggregation, protected.delta);
    let covered = cover_at(catalog, &filter, priced, &standings)?;
    quoted_for(covered, &filter, &protected.account, standings)
}

/// Would an ensemble be charged, by a ledger that begins with it? Reads no private row, and leaves nothing behind.
pub fn rehearse_teaching(
    catalog: &Catalog,
    folder: &Path,
    order: &TeachOrder<'_>,
    room: &Room,
    desk: &Desk<'_>,
) -> Result<()> {
    let tables = Tables::open(catalog, folder)?;
    let protected = protected(catalog, &tables, folder, order)?;
    fits_room(order, &protected.recipe, room)?;
    let filter = Filter::new(terms(catalog).mode);
    let standings = opening(catalog, &protected.account)?;
    let priced = (&protected.aggregation, protected.delta);
    let (event, _) = cover_at(catalog, &filter, priced, &standings)?;
    // A ledger that begins now has not paid for what was begun before.
    let run = protected.recipe.run(&protected.aggregation);
    if Place::is_begun(desk.out, &run) {
        let path = desk.out.to_owned();
        return Err(Error::OtherRun { path });
    }
    Place::is_own_with(desk.out, &run, &RESULTS).map_err(whit_learn::Error::from)?;
    fits(&filter, &event, &protected.account, standings)?;
    Ok(Place::rehearse(desk.out).map_err(whit_learn::Error::from)?)
}

/// Refuses what is public and does not fit, and prices the rest.
fn protected(
    catalog: &Catalog,
    tables: &Tables,
    folder: &Path,
    order: &TeachOrder<'_>,
) -> Result<Protected> {
    let account = account(catalog, order.analyst)?;
    if let (Some(analyst), Afterwards::Keep) = (order.analyst, order.votes) {
        return Err(Error::VotesKept {
            analyst: analyst.to_owned(),
        });
    }
    let mut recipe = order.recipe.clone();
    let given = (order.table, order.folder);
    recipe.data = protect_data(catalog, tables, folder, given, recipe.data)?;
    let aggregation = recipe.aggregation()?;
    let given = aggregation.terms().neighbours;
    if given != Neighbours::AddRemove {
        return Err(Error::OtherRelation {
            budget: Neighbours::AddRemove,
            given,
        });
    }
    let delta = Delta::new(aggregation.terms().delta).map_err(whit_learn::Error::from)?;
    Ok(Protected {
        account,
        recipe,
        aggregation,
        delta,
    })
}

/// What is lost of a run of labels has no steps.
fn of_labels(error: Error) -> Error {
    match error {
        Error::Learn(whit_learn::Error::Checkpoint(CheckpointError::Lost { path })) => {
            whit_learn::Error::from(CheckpointError::LabelsLost { path }).into()
        }
        other => other,
    }
}

/// Private examples have the shape of the public ones, by their header alone.
fn fits_room(order: &TeachOrder<'_>, recipe: &EnsembleRecipe, room: &Room) -> Result<Inputs> {
    let inputs = inputs(&recipe.data, order.folder).map_err(|error| unfit(order.table, error))?;
    room.check(&inputs.shape)?;
    Ok(inputs)
}

#[cfg(test)]
mod tests;
