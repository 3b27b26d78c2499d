//! # A training run is paid from the catalog's ledger
//! Whole, and before a private row is read: [`Session::train`] is the only way from a catalogued table to a trainer.
//!
//! **Whom it protects.** A run protects one example, and a catalog protects units, all rows of one together. So one row of each unit is an
//! example, chosen by that unit's rows alone, and a run on units whose number of rows nobody has bounded to one is refused.
//!
//! **What is charged.** The run's own event, or that it is `(epsilon, delta)`-DP at the plan's delta. Both cover the run, so either may be
//! charged. The first counts every step as if everybody took part in it, and has no delta; the second has less concentrated loss, if there
//! are many steps of small samples, and a delta. A ledger adds up both numbers, so that neither cover is the cheaper one by itself:
//! `room.rs` says which takes less of what is left.
//!
//! **In which order.** What can be refused for what is public is refused, and with it what the budget has no room for; the folder is made and
//! tried; the charge is kept; it is settled with what the run promises; the folder is begun, which uses the permit up; rows are read; steps
//! are counted in the folder before they are taken. A run that stops after the folder was begun goes on from there and pays nothing, since
//! the ledger knows its number; before that, what was paid is spent. What there is no room for has read and written nothing, unless another
//! charge takes the room in between, or the disk is full: then the folder is there, with nothing but the run's lock in it. (A lock that was
//! made is never removed: somebody may hold it.) Where there is no ledger yet, [`rehearse_run`] refuses before one is made. A second run of
//! the same plan is another run, and pays.

mod example;
mod planned;
mod quote;
mod room;
mod search;

use std::num::NonZeroUsize;
use std::path::Path;

use serde::Serialize;
use whit_accounting::reserve::Account;
use whit_core::{Bits, Entropy, Event};
use whit_learn::checkpoint::{CheckpointError, Place, Run};
use whit_learn::data::{Audience, DataError, Inputs, inputs, load_surveyed};
use whit_learn::model::Architecture;
use whit_learn::{Payer, Payment, Plan, Recipe, Trainer};
use whit_ledger::{Found, Key};

use super::{Charge, Error, Remaining, Result, Session};
use example::protect_examples;
use quote::cover;

pub(super) use example::protect_data;
pub(super) use quote::{cover_at, fits, quoted_for};

pub use planned::Planned;
pub use quote::{Quoted, quote_unopened, rehearse_run};
pub use search::Sought;

/// Which run, on what, by whom; or which search.
#[derive(Debug)]
pub struct Order<'a, P = Plan> {
    /// The private table of the catalog that is trained on.
    pub table: &'a str,
    /// What to train, and how. Its data are that table's file.
    pub recipe: &'a Recipe,
    /// The recipe's plan.
    pub plan: &'a P,
    /// Who trains.
    pub analyst: Option<&'a str>,
    /// The folder that the recipe's paths are relative to.
    pub folder: &'a Path,
}

/// Where a run is kept, and how it works.
#[derive(Clone, Copy, Debug)]
pub struct Desk<'a> {
    /// The folder where it is kept; made if it is not there.
    pub out: &'a Path,
    /// It is written about every so many steps.
    pub interval: NonZeroUsize,
    /// How many threads work.
    pub threads: NonZeroUsize,
}

/// A run that was paid for, ready for its next step.
#[non_exhaustive]
pub struct Course {
    /// Takes the steps.
    pub trainer: Trainer,
    /// What it trains.
    pub architecture: Architecture,
    /// As ordered, with the unit that the catalog protects.
    pub recipe: Recipe,
    /// What the model takes, by the public part of the file.
    pub inputs: Inputs,
    /// What was charged just now: nothing, if the run was paid for before.
    pub charge: Charge,
    /// What is left at every level.
    pub remaining: Remaining,
    /// Was it begun and paid for before?
    pub resumed: bool,
    /// The hash that commits the ledger to what this run promises, and to everything before it.
    pub receipt: String,
}

/// What the ledger keeps of a run: the guarantee, and which run it is.
#[derive(Serialize)]
struct Promise<'a, S> {
    training: Terms<'a, S>,
}

#[derive(Serialize)]
struct Terms<'a, S> {
    run: &'a str,
    unit: &'a str,
    #[serde(flatten)]
    summary: S,
    event: &'a Event,
}

/// A run that is paid for: now, or before.
pub(super) struct Begun {
    pub(super) place: Place,
    pub(super) sequence: u64,
    pub(super) receipt: String,
    pub(super) resumed: bool,
}

impl Session {
    /// Pays for a run and reads its rows, or goes on with one that was paid for.
    pub fn train(
        &self,
        order: &Order<'_>,
        desk: &Desk<'_>,
        entropy: &mut impl Entropy,
    ) -> Result<Course> {
        let account = self.account(order.analyst)?;
        let recipe = self.protect_examples(order)?;
        let standings = self.ledger.standings(&account)?;
        let (event, charge) = cover(&self.catalog, &self.filter, order.plan, &standings)?;
        let (architecture, inputs) = check(order, &recipe)?;
        let run = recipe.run(order.plan);
        Place::is_own(desk.out, &run).map_err(whit_learn::Error::from)?;
        let begun = match Place::is_begun(desk.out, &run) {
            true => self.paid_before(&run, &account, desk)?,
            false => {
                let initial = recipe.initial(&architecture);
                let paid = (&recipe, order.plan, &event);
                self.pay(paid, (&run, initial), &account, desk, entropy)?
            }
        };
        let data = load_surveyed(&recipe.data, order.folder, Audience::Anyone, &inputs);
        let trainer = data.map_err(whit_learn::Error::from).and_then(|data| {
            recipe.trainer_kept(order.plan, data, desk.threads, begun.place, desk.interval)
        });
        let (trainer, architecture) = self.trained_or_suspend(begun.sequence, trainer)?;
        Ok(Course {
            trainer,
            architecture,
            recipe,
            inputs,
            charge: if begun.resumed {
                charge.nothing()
            } else {
                charge
            },
            remaining: self.remaining(&account)?,
            resumed: begun.resumed,
            receipt: begun.receipt,
        })
    }

    fn protect_examples<P>(&self, order: &Order<'_, P>) -> Result<Recipe> {
        protect_examples(&self.catalog, &self.tables, &self.folder, order)
    }

    /// Charges the run, settles that with what it promises, and begins its folder.
    fn pay<P: Planned>(
        &self,
        (recipe, plan, event): (&Recipe, &P, &Event),
        (run, initial): (&Run, Vec<f32>),
        account: &Account,
        desk: &Desk<'_>,
        entropy: &mut impl Entropy,
    ) -> Result<Begun> {
        self.ledger.running()?;
        let standings = self.ledger.standings(account)?;
        fits(&self.filter, event, account, standings)?;
        let place = tried(desk, run, recipe.floats_kept(initial.len())?)?;
        let mut bits = entropy.open().map_err(whit_learn::Error::from)?;
        let id = format!("{:016x}{:016x}", bits.word(), bits.word());
        let mut journal = self.ledger.charge(key(run, &id, account), run.plan);
        let permit = self.filter.reserve(event, account, &mut journal)?;
        let sequence = permit.sequence();
        let (payment, redeemed) = Payment::charged(plan, permit, id.clone())?;
        let promise = Promise {
            training: Terms {
                run: &id,
                unit: recipe.data.unit.as_deref().unwrap_or_default(),
                summary: plan.summary(),
                event: plan.event(),
            },
        };
        let promise = serde_json::to_string(&promise).expect("plain data");
        let settled = self.ledger.settle(redeemed, &promise);
        let receipt = settled.map_err(Error::Unsettled)?;
        place.start(payment, initial)?;
        Ok(Begun {
            place,
            sequence,
            receipt: receipt.to_string(),
            resumed: false,
        })
    }

    /// A run that was begun in the folder, if this ledger was charged for it, by this account.
    pub(super) fn paid_before(
        &self,
        run: &Run,
        account: &Account,
        desk: &Desk<'_>,
    ) -> Result<Begun> {
        // It reads rows again, and whether that fails is a bit that nobody pays for.
        self.ledger.running()?;
        let place = Place::open(desk.out, run.clone()).map_err(whit_learn::Error::from)?;
        let kept = place.load().map_err(whit_learn::Error::from)?;
        let other = || Error::OtherRun {
            path: place.path().to_owned(),
        };
        let Some(Payer::Ledger {
            dataset,
            run: id,
            sequence: noted,
        }) = kept.as_ref().map(|kept| kept.payer())
        else {
            return Err(other());
        };
        let found = self.ledger.find(key(run, id, account))?;
        let Some(Found::Answered {
            sequence,
            statement,
            receipt,
            ..
        }) = found
        else {
            return Err(other());
        };
        let is_it =
            dataset == self.catalog.dataset() && sequence == *noted && statement == Some(run.plan);
        if !is_it {
            return Err(other());
        }
        if kept.is_some_and(|kept| kept.is_lost()) {
            let path = place.path().to_owned();
            return Err(whit_learn::Error::from(CheckpointError::Lost { path }).into());
        }
        Ok(Begun {
            place,
            sequence,
            receipt: receipt.to_string(),
            resumed: true,
        })
    }

    /// As for statements: that rows could not be read is a bit about them that nobody has paid for. Public examples, by which a search is judged, are read before, and there may be any number of them: neither
    /// error is about those.
    pub(super) fn trained_or_suspend<T>(
        &self,
        charged: u64,
        made: whit_learn::Result<T>,
    ) -> Result<T> {
        use whit_learn::Error::{Data, TooManyExamples};
        if let Err(Data(_) | TooManyExamples { .. }) = &made {
            self.ledger.suspend(charged)?;
        }
        Ok(made?)
    }
}

/// Refuses what can be refused by what is public about the data, and gives the network and what it takes.
fn check<P: Planned>(order: &Order<'_, P>, recipe: &Recipe) -> Result<(Architecture, Inputs)> {
    let inputs = inputs(&recipe.data, order.folder);
    let inputs = inputs.map_err(|error| unfit(order.table, error))?;
    Ok((order.plan.check(recipe, &inputs.shape)?, inputs))
}

/// The folder of a run that is to be paid for, made if it is not there. What cannot be written is noticed here, and leaves nothing.
pub(super) fn tried(desk: &Desk<'_>, run: &Run, floats: usize) -> whit_learn::Result<Place> {
    Place::rehearse(desk.out)?;
    let place = Place::make(desk.out, run.clone())?;
    place.probe(floats)?;
    Ok(place)
}

/// What a first line names is not told: a file without one has a person's row in that place.
pub(super) fn unfit(table: &str, error: DataError) -> Error {
    match error {
        DataError::Column { column, .. } => Error::NoColumn {
            table: table.to_owned(),
            column,
        },
        other => whit_learn::Error::from(other).into(),
    }
}

/// What the ledger knows a run by: its plan, its number and whoever pays.
pub(super) fn key(run: &Run, id: &str, account: &Account) -> Key {
    let mut text = format!("training {:?} {id}", run.plan);
    // Names may hold anything, so each is preceded by its length.
    for level in account.levels() {
        let name = level.to_string();
        text += &format!(" {} {name}", name.len());
    }
    Key::new(&text)
}

#[cfg(test)]
mod tests;
