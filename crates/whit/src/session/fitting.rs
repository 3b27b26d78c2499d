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
use whit_learn::data::{Audience, Classes, Inputs, inputs, load_surveyed};
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
    /// What the model takes, by the public part of the file.
    pub inputs: Inputs,
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
    inputs: Inputs,
    plan: AnyPlan,
}

impl Session {
    /// Pays for a fit, reads its rows and makes it.
    pub fn fit(&self, order: &FitOrder<'_>, entropy: &mut impl Entropy) -> Result<Fitted> {
        let Protected {
            account,
            recipe,
            inputs,
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
        let data = load_surveyed(&recipe.data, order.folder, Audience::Anyone, &inputs);
        let model = data
            .map_err(whit_learn::Error::from)
            .and_then(|data| plan.on(&data)?.release(payment, entropy));
        let model = self.trained_or_suspend(sequence, model)?;
        Ok(Fitted {
            model,
            recipe,
            inputs,
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
    // Doors read recipes as they are meant, and others may not have.
    let mut recipe = order.recipe.clone().read_as_meant();
    let given = (order.table, order.folder);
    recipe.data = protect_data(catalog, tables, folder, given, recipe.data)?;
    let inputs = inputs(&recipe.data, order.folder).map_err(|error| unfit(order.table, error))?;
    let width = inputs.shape.iter().product();
    let plan = recipe.plan(Some(width))?;
    // A fit would refuse these data when all is paid.
    let classes = recipe.data.classes.as_ref().map(Classes::count);
    plan.takes().check(width, classes)?;
    Ok(Protected {
        account,
        recipe,
        inputs,
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

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "files of the tests' own")]

    use whit_core::Fault;
    use whit_testkit::Seeded;

    use super::*;

    const CATALOG: &str = "[dataset]\nid = 'points'\n[budget]\nepsilon = 64.0\ndelta = 1e-4\n\
                           [table.points]\nsource = 'points.csv'\nunit = 'who'\nrows_per_unit = 1\n";
    const DATA: &str = "[data]\npath = 'points.csv'\nlabel = 'side'\ncolumns = ['x', 'hue']\n";
    const HUE: &str = "[data.categories]\nhue = ['red', 'green', 'blue']\n";
    const REST: &str = "[bounds]\nx = [-1, 1]\n[plan]\nepsilon = 4.0\ndelta = 1e-6\n";

    /// What comes of a recipe that nobody has read as it is meant, and what is left.
    fn fitted(data: &str, rest: &str) -> (Result<Fitted>, f64) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut points = String::from("who,x,hue,side\n");
        for row in 0..60 {
            let (x, hue) = (row % 7 - 3, ["red", "green", "blue"][row as usize % 3]);
            points += &format!("p{row},0.{},{hue},{}\n", row % 9, i32::from(x > 0));
        }
        std::fs::write(folder.path().join("points.csv"), points).expect("writable");
        let recipe: FitRecipe = toml::from_str(&format!("{data}{rest}")).expect("a recipe");
        let catalog = Catalog::parse(CATALOG).expect("a catalog");
        let ledger = folder.path().join("whit.ledger");
        let session = Session::open(catalog, folder.path(), &ledger).expect("opens");
        let order = FitOrder {
            table: "points",
            recipe: &recipe,
            analyst: None,
            folder: folder.path(),
        };
        let made = session.fit(&order, &mut Seeded::new(11));
        let left = session.budget(None).expect("there is a cap").dataset;
        (made, left.epsilon)
    }

    /// Categories of models with bins were read as one feature for each, and a fit that was paid for was refused.
    #[test]
    fn a_recipe_means_the_same_whoever_has_read_it() {
        let data = format!("{DATA}classes = 2\n{HUE}");
        for model in [
            "kind = 'naive_bayes'",
            "kind = 'forest'\ntrees = 1\ndepth = 1\nbins = 2",
            "kind = 'boosted_stumps'\nepochs = 1\nbins = 2",
            "kind = 'minima_perturbation'",
        ] {
            let (made, left) = fitted(&data, &format!("{REST}[model]\n{model}\n"));
            let made = made.map_err(|error| error.to_string());
            let model_made = made.map(|made| made.plan.takes().features);
            let features = if model.contains("bayes") { 4 } else { 2 };
            assert_eq!(model_made, Ok(features), "{model}");
            assert!(left < 64.0);
        }
    }

    #[test]
    fn a_fit_that_cannot_be_is_not_paid_for() {
        let line = "[model]\nkind = 'linear_regression'\n";
        let rest = format!("{}{line}", REST.replace("x =", "side = [0, 1]\nx ="));
        let (made, left) = fitted(&format!("{DATA}classes = 2\n{HUE}"), &rest);
        let refused = made.err().expect("classes are no numbers");
        assert_eq!(refused.code(), "plan_field_unused");
        // What is left is rounded down, and the fit would have taken much more than that.
        assert!(left > 63.99, "{left}");
        assert!(refused.suggestion().contains("classes"), "{refused}");
        let (made, left) = fitted(&format!("{DATA}{HUE}"), &rest);
        assert!(made.is_ok() && left < 64.0);
    }

    /// The data come through a pipe that gives the first line and then nothing: whoever looks for a row waits until the pipe is closed.
    #[cfg(unix)]
    #[test]
    fn a_refused_fit_has_read_no_row() {
        use std::io::Write;
        use std::sync::mpsc::channel;
        use std::time::Duration;

        use whit_core::FaultKind;

        let classes = format!("{DATA}classes = 2\n{HUE}");
        let numbers = format!("{DATA}{HUE}");
        let check = |data: &str, model: &str| {
            let bounds = match model.contains("regression") {
                true => REST.replace("x =", "side = [0, 1]\nx ="),
                false => REST.to_owned(),
            };
            let recipe: FitRecipe =
                toml::from_str(&format!("{data}{bounds}[model]\n{model}\n")).expect("a recipe");
            let folder = tempfile::tempdir().expect("a folder");
            let pipe = folder.path().join("points.csv");
            std::fs::write(&pipe, "who,x,hue,side\n").expect("writable");
            let small = CATALOG.replace("epsilon = 64.0", "epsilon = 0.01");
            let catalog = Catalog::parse(&small).expect("a catalog");
            let ledger = folder.path().join("whit.ledger");
            let session = Session::open(catalog, folder.path(), &ledger).expect("opens");
            std::fs::remove_file(&pipe).expect("there");
            let made = std::process::Command::new("mkfifo").arg(&pipe).status();
            assert!(made.expect("runs").success());
            let (refused, heard) = channel::<()>();
            let writer = std::thread::spawn(move || {
                // Waits until somebody opens it.
                let file = std::fs::OpenOptions::new().write(true).open(&pipe);
                let mut file = file.expect("a pipe");
                file.write_all(b"who,x,hue,side\n").expect("a reader");
                // Far longer than a refusal takes; only whoever waits for rows gets here.
                heard.recv_timeout(Duration::from_secs(60)).is_err()
            });
            let order = FitOrder {
                table: "points",
                recipe: &recipe,
                analyst: None,
                folder: folder.path(),
            };
            let answer = session.fit(&order, &mut Seeded::new(12));
            // The writer may have given up already.
            let _ = refused.send(());
            let waited_for_rows = writer.join().expect("ends");
            let answer = answer.err().expect("too dear");
            assert_eq!(
                (answer.kind(), answer.code()),
                (FaultKind::Exhausted, "budget_exhausted"),
                "{model}"
            );
            assert!(!waited_for_rows, "{model}");
        };
        for model in [
            "kind = 'naive_bayes'",
            "kind = 'k_means'\nclusters = 2",
            "kind = 'pca'\ncomponents = 1",
            "kind = 'forest'\ntrees = 1\ndepth = 1\nbins = 2",
            "kind = 'boosted_stumps'\nepochs = 1\nbins = 2",
            "kind = 'minima_perturbation'",
        ] {
            check(&classes, model);
        }
        check(&numbers, "kind = 'linear_regression'");
    }
}
