//! # A fit is paid from the catalog's ledger
//! Whole, and before a private row is read, as [training runs](Session::train) are: [`Session::fit`] is the only way from a catalogued table to a classical model.
//!
//! **Whom it protects**, and **what is charged**, is as for runs: one row of each unit is an example; the fit's own event, or its guarantee, whichever takes less of what is left.
//!
//! **In which order.** What can be refused for what is public is refused, and with it what the budget has no room for; the charge is kept; it is settled with what the fit promises, which
//! uses the permit up; rows are read; the model is released. A fit has no steps to go on with: one that stops after it was charged stays paid, and the next is another fit.

use std::path::Path;

use serde::Serialize;
use whit_accounting::reserve::{Account, Filter, Standing};
use whit_core::{Bits, Delta, Entropy, Event};
use whit_learn::classical::{AnyModel, AnyPlan, Classical, FitRecipe, FitSummary};
use whit_learn::data::{Audience, load_private, survey};
use whit_learn::{Payer, Payment, Priced};
use whit_ledger::Key;
use whit_mechanism::Release;
use whit_sql::{Catalog, Tables};

use super::rehearsal::opening;
use super::training::{Quoted, cover_at, fits, protect_data, quoted_for, unfit};
use super::{Charge, Error, Remaining, Result, Session, account, terms};

/// Which fit, on what, by whom.
#[derive(Clone, Copy, Debug)]
pub struct FitOrder<'a> {
    /// The private table of the catalog that is fitted to.
    pub table: &'a str,
    /// What to fit. Its data are that table's file.
    pub recipe: &'a FitRecipe,
    /// Who fits.
    pub analyst: Option<&'a str>,
    /// The folder that the recipe's paths are relative to.
    pub folder: &'a Path,
}

/// A fit that was paid for and made.
#[non_exhaustive]
pub struct Fitted {
    /// The model.
    pub model: Release<AnyModel>,
    /// As ordered, with the unit that the catalog protects.
    pub recipe: FitRecipe,
    /// The plan that was paid for.
    pub plan: AnyPlan,
    /// Who has paid.
    pub payer: Payer,
    /// What was charged.
    pub charge: Charge,
    /// What is left at every level.
    pub remaining: Remaining,
    /// The hash that commits the ledger to what this fit promises, and to everything before it.
    pub receipt: String,
}

/// What the ledger keeps of a fit: the guarantee, and which fit it is.
#[derive(Serialize)]
struct Promise<'a> {
    fit: Terms<'a>,
}

#[derive(Serialize)]
struct Terms<'a> {
    run: &'a str,
    unit: &'a str,
    #[serde(flatten)]
    summary: FitSummary,
    event: &'a Event,
}

/// An order whose examples are units of a catalog.
struct Protected {
    account: Account,
    recipe: FitRecipe,
    plan: AnyPlan,
}

impl Session {
    /// Pays for a fit, reads its rows and makes it.
    pub fn fit(&self, order: &FitOrder<'_>, entropy: &mut impl Entropy) -> Result<Fitted> {
        let Protected {
            account,
            recipe,
            plan,
        } = protected(&self.catalog, &self.tables, &self.folder, order)?;
        self.ledger.running()?;
        let standings = self.ledger.standings(&account)?;
        let (event, charge) = covered(&self.catalog, &self.filter, &plan, &standings)?;
        fits(&self.filter, &event, &account, standings)?;
        let mut bits = entropy.open().map_err(whit_learn::Error::from)?;
        let id = format!("{:016x}{:016x}", bits.word(), bits.word());
        drop(bits);
        let words = recipe.fingerprint();
        let mut journal = self.ledger.charge(key(&words, &id, &account), words);
        let permit = self.filter.reserve(&event, &account, &mut journal)?;
        let sequence = permit.sequence();
        let (payment, redeemed) = Payment::charged(&plan, permit, id.clone())?;
        let payer = payment.payer().clone();
        let promise = Promise {
            fit: Terms {
                run: &id,
                unit: recipe.data.unit.as_deref().unwrap_or_default(),
                summary: recipe.summary(&plan),
                event: plan.event(),
            },
        };
        let promise = serde_json::to_string(&promise).expect("plain data");
        let settled = self.ledger.settle(redeemed, &promise);
        let receipt = settled.map_err(Error::Unsettled)?.to_string();
        let data = load_private(&recipe.data, order.folder, Audience::Anyone);
        let model = data
            .map_err(whit_learn::Error::from)
            .and_then(|data| plan.on(&data)?.release(payment, entropy));
        let model = self.trained_or_suspend(sequence, model)?;
        Ok(Fitted {
            model,
            recipe,
            plan,
            payer,
            charge,
            remaining: self.remaining(&account)?,
            receipt,
        })
    }

    /// What a fit would be charged. Reads no private row, charges nothing.
    pub fn quote_fit(&self, order: &FitOrder<'_>) -> Result<Quoted> {
        let Protected { account, plan, .. } =
            protected(&self.catalog, &self.tables, &self.folder, order)?;
        let standings = self.ledger.standings(&account)?;
        let covered = covered(&self.catalog, &self.filter, &plan, &standings)?;
        let mut quoted = quoted_for(covered, &self.filter, &account, standings)?;
        if let Err(stopped) = self.ledger.running() {
            quoted.room = 0;
            quoted.objection = Some(stopped.to_string());
        }
        Ok(quoted)
    }
}

/// The same by a ledger that does not exist yet, and that this does not make.
pub fn quote_fit_unopened(
    catalog: &Catalog,
    folder: &Path,
    order: &FitOrder<'_>,
) -> Result<Quoted> {
    let tables = Tables::open(catalog, folder)?;
    let Protected { account, plan, .. } = protected(catalog, &tables, folder, order)?;
    let (filter, standings) = (
        Filter::new(terms(catalog).mode),
        opening(catalog, &account)?,
    );
    let covered = covered(catalog, &filter, &plan, &standings)?;
    quoted_for(covered, &filter, &account, standings)
}

/// Would a fit be charged, by a ledger that begins with it? Reads no private row, and leaves nothing behind.
pub fn rehearse_fit(catalog: &Catalog, folder: &Path, order: &FitOrder<'_>) -> Result<()> {
    let tables = Tables::open(catalog, folder)?;
    let Protected { account, plan, .. } = protected(catalog, &tables, folder, order)?;
    let (filter, standings) = (
        Filter::new(terms(catalog).mode),
        opening(catalog, &account)?,
    );
    let (event, _) = covered(catalog, &filter, &plan, &standings)?;
    fits(&filter, &event, &account, standings)
}

/// Refuses what is public and does not fit, and prices the rest.
fn protected(
    catalog: &Catalog,
    tables: &Tables,
    folder: &Path,
    order: &FitOrder<'_>,
) -> Result<Protected> {
    let account = account(catalog, order.analyst)?;
    let mut recipe = order.recipe.clone();
    let given = (order.table, order.folder);
    recipe.data = protect_data(catalog, tables, folder, given, recipe.data)?;
    let shape = survey(&recipe.data, order.folder).map_err(|error| unfit(order.table, error))?;
    let plan = recipe.plan(Some(shape.iter().product()))?;
    Ok(Protected {
        account,
        recipe,
        plan,
    })
}

fn covered(
    catalog: &Catalog,
    filter: &Filter,
    plan: &AnyPlan,
    standings: &[Standing],
) -> Result<(Event, Charge)> {
    let delta: Delta = plan.terms().budget.delta();
    cover_at(catalog, filter, (plan, delta), standings)
}

/// What the ledger knows a fit by: its plan, its number and whoever pays.
fn key(words: &[u8; 32], id: &str, account: &Account) -> Key {
    let mut text = format!("fit {words:?} {id}");
    // Names may hold anything, so each is preceded by its length.
    for level in account.levels() {
        let name = level.to_string();
        text += &format!(" {} {name}", name.len());
    }
    Key::new(&text)
}
