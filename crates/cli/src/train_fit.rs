//! `whit train` for classical models: a plan becomes a price, and then a model, without steps.

use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use whit::session::{FitOrder, quote_fit_unopened, rehearse_fit};
use whit::{Failure, OsEntropy};
use whit_learn::checkpoint::Place;
use whit_learn::classical::{
    AnyModel, AnyPlan, Classical, Document, FitCard, FitRecipe, FitSummary, Promise,
};
use whit_learn::data::{Audience, Inputs, check_apart, inputs, load_public, load_surveyed};
use whit_learn::predict::Taken;
use whit_learn::{Payer, Payment, Priced, Uncharged};

use crate::account::plain;
use crate::catalogued::Catalogued;
use crate::train::{Arguments, between, room};
use crate::train_plan::{Asked, find};
use crate::train_result::{Paid, charged, unwritable, write_whole};
use crate::{Format, query, table};

/// The model, what it takes, and what is promised of it, in the order in which they are written: what was paid for comes first.
const FILES: [&str; 3] = ["model.json", "inputs.json", "card.md"];

pub(crate) fn run(
    recipe: &FitRecipe,
    arguments: &Arguments,
    format: Format,
) -> Result<String, Failure> {
    if arguments.keep_every.is_some() {
        return Err(Failure::invalid(
            "no_steps",
            "a classical model is fitted at once, and has no steps to keep",
            "leave --keep-every out",
        ));
    }
    let folder = arguments.plan.parent().unwrap_or(Path::new(""));
    let asked = Asked {
        catalog: arguments.catalog.as_deref(),
        ledger: arguments.ledger.as_deref(),
        analyst: arguments.analyst.as_deref(),
        dry_run: arguments.dry_run,
    };
    let found = find((&recipe.data, recipe.test.as_ref()), folder, &asked)?;
    if let Some(test) = &recipe.test {
        check_apart(test, &recipe.data, folder).map_err(whit_learn::Error::from)?;
    }
    let plan = match found {
        // The session opens the file, and checks the whole.
        Some(_) => recipe.plan_unopened()?,
        None => recipe.plan_unread(folder)?,
    };
    let job = Job {
        recipe,
        folder,
        arguments,
    };
    if arguments.dry_run {
        return job.price(&plan, found, format);
    }
    let public = recipe.test.as_ref().map(|test| load_public(test, folder));
    let public = public.transpose().map_err(whit_learn::Error::from)?;
    let out = arguments.out();
    is_free(&out)?;
    Place::rehearse(&out).map_err(whit_learn::Error::from)?;
    let _held = Held::take(&out)?;
    // Another fit may have ended meanwhile.
    is_free(&out)?;
    let made = match found {
        Some(found) => job.charged(found)?,
        None => job.uncharged(plan)?,
    };
    let result = public.map(|public| made.model.evaluate(&public));
    made.write(&out, result)?;
    Ok(made.show(&out, result, format))
}

/// A model that is there was paid for, and is not written over.
fn is_free(out: &Path) -> Result<(), Failure> {
    match FILES
        .iter()
        .find(|name| out.join(name).symlink_metadata().is_ok())
    {
        Some(name) => Err(Failure::refused(
            "out_taken",
            &format!("the folder {out:?} holds {name} already"),
            "give another folder as --out; what is there was paid for, and a new fit is paid again",
        )),
        None => Ok(()),
    }
}

/// A folder that no other fit writes to: it would be paid, too, and one of two models would be lost.
struct Held {
    /// Unlocked when it is dropped, and by the system when the process ends in any way.
    lock: File,
    path: PathBuf,
    /// Folders that were not there, from the innermost on.
    made: Vec<PathBuf>,
}

impl Held {
    #[expect(clippy::disallowed_methods, reason = "a door writes files")]
    fn take(out: &Path) -> Result<Self, Failure> {
        let missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
        let made = out.ancestors().take_while(missing);
        let made = made.map(Path::to_owned).collect();
        let path = out.join(".whit-fit.lock");
        std::fs::create_dir_all(out).map_err(|error| unwritable(out, &error))?;
        let mut file = File::options();
        let lock = file.create(true).truncate(false).write(true).open(&path);
        let lock = lock.map_err(|error| unwritable(&path, &error))?;
        match lock.try_lock() {
            Ok(()) if is_at(&lock, &path) => Ok(Self { lock, path, made }),
            Ok(()) | Err(TryLockError::WouldBlock) => Err(Failure::refused(
                "out_busy",
                &format!("another fit is under way for the folder {out:?}"),
                "wait until it has ended, or give another folder as --out: each fit is paid",
            )),
            Err(TryLockError::Error(error)) => Err(unwritable(&path, &error)),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // While it is locked: whoever has opened it by then sees that its name is gone.
        let _ = std::fs::remove_file(&self.path);
        for folder in &self.made {
            // Removes nothing but empty ones: of a fit that was refused nothing is left.
            let _ = std::fs::remove_dir(folder);
        }
        let _ = self.lock.unlock();
    }
}

/// Has a file that is locked still the name by which it was opened? Who held it before has taken the name away, and others may hold another file of that name.
fn is_at(lock: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let id = |found: &std::fs::Metadata| (found.dev(), found.ino());
        matches!((lock.metadata(), path.metadata()), (Ok(lock), Ok(path)) if id(&lock) == id(&path))
    }
    #[cfg(not(unix))]
    {
        let _ = (lock, path);
        true
    }
}

/// What to fit, and by which words.
struct Job<'a> {
    recipe: &'a FitRecipe,
    folder: &'a Path,
    arguments: &'a Arguments,
}

/// A model, by which plan, and who has paid.
struct Made {
    model: AnyModel,
    recipe: FitRecipe,
    inputs: Inputs,
    plan: AnyPlan,
    payer: Payer,
    paid: Option<Paid>,
}

impl Job<'_> {
    fn order<'a>(&'a self, table: &'a str) -> FitOrder<'a> {
        FitOrder {
            table,
            recipe: self.recipe,
            analyst: self.arguments.analyst.as_deref(),
            folder: self.folder,
        }
    }

    fn price(
        &self,
        plan: &AnyPlan,
        found: Option<Catalogued>,
        format: Format,
    ) -> Result<String, Failure> {
        let summary = self.recipe.summary(plan);
        let (mut all, mut lines) = (value(&summary), priced(&summary));
        if let Some(Catalogued { place, table }) = found {
            let dataset = place.catalog.dataset().to_owned();
            let order = self.order(&table);
            let quoted = match place.has_ledger() {
                true => place.open()?.quote_fit(&order)?,
                false => quote_fit_unopened(&place.catalog, &place.folder, &order)?,
            };
            all["charge"] = json!(quoted.charge);
            all["remaining"] = json!(quoted.remaining);
            all["room"] = json!(quoted.room);
            all["objection"] = json!(quoted.objection);
            lines.extend(charged(&quoted.charge, false));
            lines.extend(query::left(&quoted.remaining, &dataset));
            lines.push(("room".into(), room(&quoted)));
        }
        Ok(match format {
            Format::Json => all.to_string(),
            Format::Table => table::lines(&lines),
        })
    }

    /// A private table is paid from its ledger, and protects whom its catalog says.
    fn charged(&self, found: Catalogued) -> Result<Made, Failure> {
        let Catalogued { place, table } = found;
        let order = self.order(&table);
        // A ledger begins with what could be charged, and not with what is refused.
        if !place.has_ledger() {
            rehearse_fit(&place.catalog, &place.folder, &order)?;
        }
        let session = place.open()?;
        let fitted = session.fit(&order, &mut OsEntropy::new())?;
        let paid = Paid {
            dataset: session.catalog().dataset().to_owned(),
            charge: fitted.charge,
            remaining: fitted.remaining,
            receipt: fitted.receipt,
        };
        Ok(Made {
            model: fitted.model.into_value(),
            recipe: fitted.recipe,
            inputs: fitted.inputs,
            plan: fitted.plan,
            payer: fitted.payer,
            paid: Some(paid),
        })
    }

    /// Data that no catalog protects.
    fn uncharged(&self, plan: AnyPlan) -> Result<Made, Failure> {
        // What does not fit is told before the fit, to the owner alone: see the documents of `data`.
        let (data, folder) = (&self.recipe.data, self.folder);
        let inputs = inputs(data, folder).map_err(whit_learn::Error::from)?;
        let private = load_surveyed(data, folder, Audience::Owner, &inputs);
        let private = private.map_err(whit_learn::Error::from)?;
        let payment = Payment::uncharged(&plan, Uncharged);
        let model = plan.on(&private)?.release(payment, &mut OsEntropy::new())?;
        Ok(Made {
            model: model.into_value(),
            recipe: self.recipe.clone(),
            inputs,
            plan,
            payer: Payer::Nobody,
            paid: None,
        })
    }
}

impl Made {
    /// The model first, and what can be made of its numbers by whoever has them; the card is words about it.
    fn write(&self, out: &Path, result: Option<(&str, f64)>) -> Result<(), Failure> {
        let summary = self.recipe.summary(&self.plan);
        let card = FitCard {
            recipe: &self.recipe,
            summary: &summary,
            event: self.plan.event(),
            result,
            payer: &self.payer,
            receipt: self.paid.as_ref().map(|paid| paid.receipt.as_str()),
        };
        let bytes = self.plan.event().fingerprint();
        let promise = Promise {
            epsilon: summary.epsilon_upper,
            delta: summary.delta,
            relation: summary.relation,
            unit: self.recipe.data.unit.clone().unwrap_or("example".into()),
            event: bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        };
        let document = Document::new(&self.recipe, promise, self.model.clone());
        let taken = Taken {
            inputs: self.inputs.clone(),
            label: self.recipe.data.label_column().map(str::to_owned),
            classes: self.recipe.data.classes.clone(),
        };
        let taken = serde_json::to_string_pretty(&taken).expect("plain data") + "\n";
        let texts = [document.to_json(), taken, card.markdown()];
        let each = FILES.iter().zip(&texts);
        let written = each
            .clone()
            .try_for_each(|(name, text)| write_whole(&out.join(name), text.as_bytes()));
        if written.is_err() {
            let missing = each.filter(|(name, _)| !out.join(name).exists());
            rescue(missing);
        }
        written
    }

    fn show(&self, out: &Path, result: Option<(&str, f64)>, format: Format) -> String {
        let summary = self.recipe.summary(&self.plan);
        match format {
            Format::Json => {
                let mut all = value(&summary);
                all["test"] = match result {
                    Some((name, value)) => json!({ name.replace(' ', "_"): value }),
                    None => Value::Null,
                };
                all["out"] = json!(out.display().to_string());
                all["files"] = json!(FILES);
                if let Some(paid) = &self.paid {
                    all["charge"] = json!(paid.charge);
                    all["remaining"] = json!(paid.remaining);
                    all["receipt"] = json!(paid.receipt);
                }
                all.to_string()
            }
            Format::Table => {
                let mut lines = priced(&summary);
                if let Some((name, value)) = result {
                    lines.push((format!("{name} on [test]"), format!("{value:.4}")));
                }
                lines.push(("written to".into(), out.display().to_string()));
                lines.push(("files".into(), FILES.join(", ")));
                if let Some(paid) = &self.paid {
                    lines.extend(charged(&paid.charge, false));
                    lines.extend(query::left(&paid.remaining, &paid.dataset));
                    lines.push(("receipt".into(), paid.receipt.clone()));
                }
                table::lines(&lines)
            }
        }
    }
}

/// What was paid for and could not be written is printed, so that somebody can keep it: another fit would be paid again.
fn rescue<'a>(texts: impl Iterator<Item = (&'a &'a str, &'a String)>) {
    let mut talk = std::io::stderr();
    for (name, text) in texts {
        // There is nobody left to tell that this failed, too.
        let _ = writeln!(
            talk,
            "{name} could not be written: keep what follows as that file, since another fit costs as much again\n{}",
            text.trim_end()
        );
    }
}

fn value(summary: &FitSummary) -> Value {
    serde_json::to_value(summary).expect("plain data")
}

/// A fit's price for people, bounds rounded outward.
fn priced(summary: &FitSummary) -> Vec<(String, String)> {
    [
        (
            "epsilon",
            between(summary.epsilon_upper, summary.epsilon_lower),
        ),
        ("delta", plain(summary.delta)),
        ("relation", summary.relation.to_string()),
        ("model", summary.kind.word().replace('_', " ")),
        ("features", summary.features.to_string()),
        ("noise", summary.mechanism.to_owned()),
        ("noise deviation", plain(summary.noise_deviation)),
        ("rounds", summary.rounds.to_string()),
    ]
    .map(|(name, text)| (name.to_owned(), text))
    .to_vec()
}
