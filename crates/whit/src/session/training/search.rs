//! A search is paid from the catalog's ledger as a run is: whole, and before a private row is read. What differs is that it cannot go on once it was stopped, and that
//! what comes of it is the best run alone.

use whit_core::Entropy;
use whit_learn::checkpoint::Place;
use whit_learn::data::{Audience, Dataset, Inputs, load_surveyed};
use whit_learn::model::Architecture;
use whit_learn::{Chosen, Payer, Recipe, SearchPlan};

use super::{Desk, Order, check, cover};
use crate::session::{Charge, Remaining, Result, Session};

/// What a search that was paid for has found.
#[non_exhaustive]
pub struct Sought {
    /// The best run.
    pub chosen: Chosen,
    /// What was trained.
    pub architecture: Architecture,
    /// As ordered, with the unit that the catalog protects.
    pub recipe: Recipe,
    /// What the model takes, by the public part of the file.
    pub inputs: Inputs,
    /// Who has paid.
    pub payer: Payer,
    /// What was charged just now: nothing, if the search was paid for before.
    pub charge: Charge,
    /// What is left at every level.
    pub remaining: Remaining,
    /// Was it paid for before?
    pub resumed: bool,
    /// The hash that commits the ledger to what this search promises, and to everything before it.
    pub receipt: String,
}

impl Session {
    /// Pays for a search, reads its rows and makes all its runs; or gives what came of one that has ended in its folder. One that was stopped is refused. `validation` are
    /// public examples as they were loaded.
    pub fn search<E: Entropy<Bits: Send>>(
        &self,
        order: &Order<'_, SearchPlan>,
        validation: Dataset,
        desk: &Desk<'_>,
        entropy: &mut E,
    ) -> Result<Sought> {
        let account = self.account(order.analyst)?;
        let recipe = self.protect_examples(order)?;
        let standings = self.ledger.standings(&account)?;
        let (event, charge) = cover(&self.catalog, &self.filter, order.plan, &standings)?;
        let (architecture, inputs) = check(order, &recipe)?;
        let run = order.plan.run(&recipe);
        Place::is_own(desk.out, &run).map_err(whit_learn::Error::from)?;
        let mut begun = match Place::is_begun(desk.out, &run) {
            true => self.paid_before(&run, &account, desk)?,
            false => {
                let initial = recipe.initial(&architecture);
                let paid = (&recipe, order.plan, &event);
                self.pay(paid, (&run, initial), &account, desk, entropy)?
            }
        };
        let place = &mut begun.place;
        let kept = place.load().map_err(whit_learn::Error::from)?;
        let payer = kept.map_or(Payer::Nobody, |kept| kept.payer().clone());
        let chosen = match order.plan.found_in(place)? {
            Some(found) => found,
            None => {
                let data = load_surveyed(&recipe.data, order.folder, Audience::Anyone, &inputs);
                let chosen = data.map_err(whit_learn::Error::from).and_then(|data| {
                    let threads = desk.threads;
                    order
                        .plan
                        .choose_in(place, data, validation, threads, entropy)
                });
                self.trained_or_suspend(begun.sequence, chosen)?
            }
        };
        Ok(Sought {
            chosen,
            architecture,
            recipe,
            inputs,
            payer,
            charge: match begun.resumed {
                true => charge.nothing(),
                false => charge,
            },
            remaining: self.remaining(&account)?,
            resumed: begun.resumed,
            receipt: begun.receipt,
        })
    }
}
