//! `whit pate train`: from private data to a student, by way of teachers.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use whit::session::{Desk, Quoted, Taught, TeachOrder, quote_teaching_unopened, rehearse_teaching};
use whit::{Failure, OsEntropy};
use whit_learn::checkpoint::Place;
use whit_learn::data::{Audience, load_private, survey};
use whit_learn::pate::ballots::{self, Afterwards};
use whit_learn::pate::recipe::RESULTS;
use whit_learn::pate::{Accounting, Aggregation, EnsembleRecipe, Outcome, Owner, Room, owner};
use whit_learn::{Payer, Payment, Uncharged};

use crate::account::{plain, up};
use crate::catalogued::Catalogued;
use crate::pate_result::{Paid, owner_alone, private_part};
use crate::sheet::quoted;
use crate::train::room as room_left;
use crate::train_plan::{Asked, check_public, find, parse};
use crate::train_result::{charged, write_whole};
use crate::{Format, query, table};

/// Trains teachers on parts of private data, and a student from what they tell.
///
/// The private examples of [data] are dealt out to teachers, each to one of them; every teacher learns from its part, without any noise, and votes on the first of the [public] examples. What leaves is what the [aggregator] tells: the class with most votes,
/// with noise, where the teachers agree. The [student] learns from these labels and from all public examples, and may be shown to everybody.
///
/// The guarantee is fixed by the numbers of [aggregator] alone. With rule = "hash", which is usual, it is about one example, or one unit of a catalog, that is added or removed; with rule = "place" about one row that is replaced. If the data are a private table of a
/// catalog, its ledger is charged before a row is read.
///
/// The folder gets labels.csv (what was told), student.csv (what the student says of every public example), student.safetensors and card.md; all of these are as private as the guarantee says. While teachers are trained it also has a folder that begins with teachers- and ends in .private, with the votes of each teacher as they
/// are: those are for nobody's eyes, and are removed once the labels are kept. The same command goes on where it was stopped: teachers that have voted are not trained again, labels that were told are told again, and nothing is paid twice.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The plan, a TOML file
    plan: PathBuf,
    /// Shows the guarantee, and what would be charged, and reads no private row
    #[arg(long)]
    dry_run: bool,
    /// The folder for what comes of it; else one named like the plan
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// How many teachers are trained at the same time; else as many as there are processors
    #[arg(long, value_name = "NUMBER")]
    threads: Option<NonZeroUsize>,
    /// Show what is private, too: what the run cost at these votes, and how far the teachers agree. In the run in which they vote, and not to an analyst
    #[arg(long)]
    owner: bool,
    /// Keep the votes of each teacher, as they are, in the folder teachers-….private when the labels are kept. They are private, no noise hides anything in them, and they are not for an analyst
    #[arg(long)]
    keep_votes: bool,
    /// The catalog of the data; else whit.toml in the folder of the data or above it
    #[arg(long, value_name = "WHIT.TOML")]
    catalog: Option<PathBuf>,
    /// The ledger of catalogued data; else where the catalog says
    #[arg(long, value_name = "PATH")]
    ledger: Option<PathBuf>,
    /// Who asks, and is charged besides the data set, if the data are catalogued
    #[arg(long, value_name = "NAME")]
    analyst: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  whit pate train plan.toml --dry-run
      The guarantee of the plan.
  whit pate train plan.toml --out digits
      Teachers, labels and the student, in the folder digits.
  whit pate train plan.toml --catalog whit.toml --analyst ann
      Charges the ledger of the catalog, whose private table the data are.

A plan:
  [data]
  path = \"people.csv\"
  label = \"income\"
  classes = [\"<=50K\", \">50K\"]
  columns = [\"age\", \"hours_per_week\"]
  [public]
  path = \"others.csv\"
  label = \"income\"
  classes = [\"<=50K\", \">50K\"]
  columns = [\"age\", \"hours_per_week\"]
  [teachers]
  count = 250
  learner = { kind = \"kernel_ridge\", penalty = 0.3 }
  [aggregator]
  threshold = 200
  sigma1 = 150
  sigma2 = 40
  queries = 640
  answers_max = 286
  delta = 1e-5
  [student]
  learner = { kind = \"network\", model = { kind = \"logistic\" }, epochs = 30 }
  held_out = 1000";

pub(crate) fn run(arguments: &Arguments, format: Format) -> Result<String, Failure> {
    let recipe: EnsembleRecipe = parse(
        &arguments.plan,
        "[data], [public], [teachers], [aggregator] and [student] as in the example of whit pate train --help",
    )?;
    for shown in [
        ("--owner", arguments.owner),
        ("--keep-votes", arguments.keep_votes),
    ] {
        owner_alone(shown, arguments.analyst.as_deref())?;
    }
    let folder = arguments.plan.parent().unwrap_or(Path::new(""));
    let asked = Asked {
        catalog: arguments.catalog.as_deref(),
        ledger: arguments.ledger.as_deref(),
        analyst: arguments.analyst.as_deref(),
        dry_run: arguments.dry_run,
    };
    check_public(("public", "public_private"), &recipe.public, folder, &asked)?;
    let found = find((&recipe.data, None), folder, &asked)?;
    recipe.check(folder)?;
    let aggregation = recipe.aggregation()?;
    let job = Job {
        recipe: &recipe,
        folder,
        arguments,
        out: match &arguments.out {
            Some(out) => out.clone(),
            None => arguments.plan.with_extension(""),
        },
        threads: arguments
            .threads
            .unwrap_or_else(|| std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)),
    };
    if arguments.dry_run {
        return job.price(&aggregation, found, format);
    }
    let room = recipe.room(folder, job.threads)?;
    let told = match found {
        Some(found) => job.charged(found, &room)?,
        None => job.uncharged(&aggregation, &room)?,
    };
    // How long a student learns tells of public examples and of labels that were told.
    let is_terminal = io::stderr().is_terminal();
    if is_terminal {
        // Talk that nobody hears is no reason to stop.
        let _ = write!(
            io::stderr(),
            "\r\x1b[K{} labels are told and kept; a student learns from them (stopped here, the same command goes on from the labels) ",
            told.outcome.answered()
        );
    }
    let student = told.recipe.teach(&room, &told.outcome, job.threads)?;
    let accuracy = room.accuracy(&*student, job.threads)?;
    if is_terminal {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
    let done = Done {
        told: &told,
        accuracy,
        held_out: room.held_out(),
        out: &job.out,
        owner: told.owner.as_ref().filter(|_| arguments.owner),
        votes: job.afterwards(),
    };
    if arguments.owner && told.owner.is_none() {
        // Talk that nobody hears is no reason to stop.
        let _ = writeln!(
            io::stderr(),
            "The labels were told before. What they cost at these votes is shown by the run in which teachers vote, and by no later one."
        );
    }
    let says = room.says(&*student, job.threads)?;
    // Another run may have written there since this one began.
    let run = told.recipe.run(&told.aggregation);
    Place::is_own_with(&job.out, &run, &RESULTS).map_err(whit_learn::Error::from)?;
    let notes = BTreeMap::from([("privacy".to_owned(), done.guarantee())]);
    done.write(&says, room.safetensors(&*student, &notes))?;
    Ok(done.show(format))
}

/// What to do, and by which words.
struct Job<'a> {
    recipe: &'a EnsembleRecipe,
    folder: &'a Path,
    arguments: &'a Arguments,
    out: PathBuf,
    threads: NonZeroUsize,
}

/// What teachers have told.
struct Told {
    outcome: Outcome,
    /// There only if they voted now.
    owner: Option<Owner>,
    recipe: EnsembleRecipe,
    aggregation: Aggregation,
    resumed: bool,
    paid: Option<Paid>,
}

impl Job<'_> {
    fn order<'a>(&'a self, table: &'a str) -> TeachOrder<'a> {
        TeachOrder {
            table,
            recipe: self.recipe,
            analyst: self.arguments.analyst.as_deref(),
            folder: self.folder,
            votes: self.afterwards(),
        }
    }

    fn bar(&self) -> Bar {
        let analyst = self.arguments.analyst.as_deref();
        let count = self.recipe.teachers.count;
        Bar::new(count, analyst, io::stderr().is_terminal())
    }

    fn afterwards(&self) -> Afterwards {
        match self.arguments.keep_votes {
            true => Afterwards::Keep,
            false => Afterwards::Remove,
        }
    }

    fn price(
        &self,
        aggregation: &Aggregation,
        found: Option<Catalogued>,
        format: Format,
    ) -> Result<String, Failure> {
        let mut all = json!({
            "epsilon_guaranteed": aggregation.epsilon(),
            "delta": aggregation.terms().delta,
            "relation": aggregation.terms().neighbours,
            "teachers": self.recipe.teachers.count,
            "queries": aggregation.terms().queries,
            "answers_max": aggregation.terms().answers_max,
        });
        let mut lines = vec![("guarantee".to_owned(), guarantee(aggregation, self.recipe))];
        if let Some(Catalogued { place, table }) = found {
            let dataset = place.catalog.dataset().to_owned();
            let order = self.order(&table);
            let quoted: Quoted = match place.has_ledger() {
                true => place.open()?.quote_teaching(&order)?,
                false => quote_teaching_unopened(&place.catalog, &place.folder, &order)?,
            };
            all["charge"] = json!(quoted.charge);
            all["remaining"] = json!(quoted.remaining);
            all["room"] = json!(quoted.room);
            all["objection"] = json!(quoted.objection);
            lines.extend(charged(&quoted.charge, false));
            lines.extend(query::left(&quoted.remaining, &dataset));
            lines.push(("room".into(), room_left(&quoted)));
        }
        Ok(match format {
            Format::Json => all.to_string(),
            Format::Table => table::lines(&lines),
        })
    }

    /// A private table is paid from its ledger, and protects whom its catalog says.
    fn charged(&self, found: Catalogued, room: &Room) -> Result<Told, Failure> {
        let Catalogued { place, table } = found;
        let order = self.order(&table);
        let desk = Desk {
            out: &self.out,
            interval: NonZeroUsize::MIN,
            threads: self.threads,
        };
        // A ledger begins with what could be charged, and not with what is refused.
        if !place.has_ledger() {
            rehearse_teaching(&place.catalog, &place.folder, &order, room, &desk)?;
        }
        let session = place.open()?;
        let bar = self.bar();
        let taught = session.teach(
            &order,
            room,
            &desk,
            &|done| bar.show(done),
            &mut OsEntropy::new(),
        );
        bar.wipe();
        let Taught {
            outcome,
            owner,
            recipe,
            aggregation,
            charge,
            remaining,
            resumed,
            receipt,
            ..
        } = taught?;
        Ok(Told {
            outcome,
            // Shown if the owner asks for it.
            owner: owner.map(|owner| owner.expose()),
            recipe,
            aggregation,
            resumed,
            paid: Some(Paid {
                dataset: session.catalog().dataset().to_owned(),
                charge,
                remaining,
                receipt,
            }),
        })
    }

    /// Data that no catalog protects.
    fn uncharged(&self, aggregation: &Aggregation, room: &Room) -> Result<Told, Failure> {
        let shape = survey(&self.recipe.data, self.folder).map_err(whit_learn::Error::from)?;
        room.check(&shape)?;
        let run = self.recipe.run(aggregation);
        Place::is_own_with(&self.out, &run, &RESULTS).map_err(whit_learn::Error::from)?;
        let resumed = Place::is_begun(&self.out, &run);
        let place = Place::make(&self.out, run.clone());
        let mut place = place.map_err(whit_learn::Error::from)?;
        if !resumed {
            let payment = Payment::uncharged(aggregation, Uncharged);
            aggregation.start_in(&place, payment, room.fingerprint())?;
        }
        let (told, payer) = aggregation.told_in(&place, room.fingerprint())?;
        if payer != Payer::Nobody {
            return Err(Failure::refused(
                "other_run",
                &format!("the run at {:?} was charged to {payer}", place.path()),
                "go on with its catalog, as --catalog, or give another folder as --out",
            ));
        }
        let (outcome, owner) = match told {
            Some(outcome) => (outcome, None),
            None => {
                // What does not fit is told to the owner alone: see the documents of `data`.
                let data = load_private(&self.recipe.data, self.folder, Audience::Owner);
                let data = data.map_err(whit_learn::Error::from)?;
                let bar = self.bar();
                let after = |done: usize| bar.show(done);
                let votes = self
                    .recipe
                    .votes(room, &data, Some(&self.out), self.threads, &after);
                bar.wipe();
                let votes = votes?;
                let public = room.fingerprint();
                let outcome =
                    aggregation.run_in(&mut place, public, &votes, &mut OsEntropy::new())?;
                let accounting = Accounting::Realised;
                let seen = owner::owner(aggregation.terms(), &votes, &outcome, accounting);
                (outcome, Some(seen.expose()))
            }
        };
        let settled = self.afterwards().settle(&self.out, &run);
        settled.map_err(whit_learn::Error::from)?;
        Ok(Told {
            outcome,
            owner,
            recipe: self.recipe.clone(),
            aggregation: aggregation.clone(),
            resumed,
            paid: None,
        })
    }
}

/// Hears how many teachers have voted. How fast they come tells how large their parts are, so that it is for the owner alone, on a terminal.
struct Bar {
    count: usize,
    hears: bool,
}

impl Bar {
    fn new(count: usize, analyst: Option<&str>, is_terminal: bool) -> Self {
        let hears = is_terminal && analyst.is_none();
        Self { count, hears }
    }

    fn show(&self, done: usize) {
        if self.hears {
            // Talk that nobody hears is no reason to stop.
            let _ = write!(
                io::stderr(),
                "\r\x1b[K{done} of {} teachers have voted ",
                self.count
            );
        }
    }

    fn wipe(&self) {
        if self.hears {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

fn guarantee(aggregation: &Aggregation, recipe: &EnsembleRecipe) -> String {
    let terms = aggregation.terms();
    let who = match &recipe.data.unit {
        Some(unit) => format!("for one {unit}"),
        None => "for one example".into(),
    };
    format!(
        "epsilon {} at delta {}, {} {who}, whatever the votes",
        up(aggregation.epsilon(), 6),
        plain(terms.delta),
        terms.neighbours
    )
}

/// A run that has ended.
struct Done<'a> {
    told: &'a Told,
    accuracy: Option<f64>,
    held_out: usize,
    out: &'a Path,
    owner: Option<&'a Owner>,
    votes: Afterwards,
}

impl Done<'_> {
    fn guarantee(&self) -> String {
        guarantee(&self.told.aggregation, &self.told.recipe)
    }

    fn write(&self, says: &[usize], student: Option<Vec<u8>>) -> Result<(), Failure> {
        let Told {
            outcome, recipe, ..
        } = self.told;
        let name = |class: usize| match recipe.data.classes.as_ref().and_then(|all| all.names()) {
            Some(names) => quoted(names.get(class).map_or("", String::as_str)),
            None => class.to_string(),
        };
        let mut labels = String::from("query,label\n");
        for (query, label) in outcome.labels.iter().enumerate() {
            if let Some(label) = label {
                labels += &format!("{query},{}\n", name(*label));
            }
        }
        let mut said = String::from("example,class\n");
        for (example, class) in says.iter().enumerate() {
            said += &format!("{example},{}\n", name(*class));
        }
        // First of all, since it names the run that the others are of: see `Place::is_own`.
        write_whole(&self.out.join("card.md"), self.card().as_bytes())?;
        let files = [Some(labels.into_bytes()), Some(said.into_bytes()), student];
        for (name, bytes) in RESULTS.iter().zip(files) {
            if let Some(bytes) = bytes {
                write_whole(&self.out.join(name), &bytes)?;
            }
        }
        Ok(())
    }

    /// What is promised of labels and student. Public.
    fn card(&self) -> String {
        let Told {
            outcome, recipe, ..
        } = self.told;
        let title = recipe.title.as_deref().unwrap_or("A student of teachers");
        let accuracy = match self.accuracy {
            Some(accuracy) => format!(
                "Accuracy on {} public examples that were held out: {accuracy:.4}.\n",
                self.held_out
            ),
            None => String::new(),
        };
        let paid = match &self.told.paid {
            Some(paid) => format!(
                "Charged to the ledger of {}, receipt {}.",
                paid.dataset, paid.receipt
            ),
            None => "No ledger was charged.".into(),
        };
        let votes = match self.votes {
            Afterwards::Keep => format!(
                "The folder `{}` beside this file is not covered: it holds votes as they are. Remove it before you share the others.\n\n",
                ballots::folder(&recipe.run(&self.told.aggregation))
            ),
            Afterwards::Remove => String::new(),
        };
        format!(
            "# {title}\n\n**Guarantee.** {}. It covers the labels in `labels.csv`, what the student says, and all that is made of them. {paid}\n\n\
             {} teachers; {} of {} queries that were looked at were answered. {accuracy}\n\
             {votes}Plan {}.\n",
            self.guarantee(),
            recipe.teachers.count,
            outcome.answered(),
            outcome.tested,
            recipe.run(&self.told.aggregation).name(),
        )
    }

    fn show(&self, format: Format) -> String {
        match format {
            Format::Json => self.json().to_string(),
            Format::Table => self.table(),
        }
    }

    fn json(&self) -> Value {
        let Told {
            outcome,
            aggregation,
            recipe,
            ..
        } = self.told;
        let terms = aggregation.terms();
        let mut all = json!({
            "answered": outcome.answered(),
            "tested": outcome.tested,
            "labels": outcome.labels,
            "epsilon_independent": aggregation.epsilon(),
            "epsilon_guaranteed": aggregation.epsilon(),
            "epsilon_sanitised": outcome.sanitised.map(|told| told.epsilon),
            "sanitised": outcome.sanitised,
            "delta": terms.delta,
            "relation": terms.neighbours,
            "teachers": recipe.teachers.count,
            "accuracy": self.accuracy,
            "held_out": self.held_out,
            "out": self.out.display().to_string(),
            "resumed": self.told.resumed,
        });
        if let Some(owner) = self.owner {
            all["epsilon"] = json!(owner.published.epsilon);
            all["order"] = json!(owner.published.order);
            all["epsilon_tight"] = json!(owner.tight.epsilon);
            all["expected_answered"] = json!(owner.expected_answered);
            all["consensus"] = json!(owner.consensus);
            all["private"] = json!(true);
        }
        if let Some(paid) = &self.told.paid {
            all["charge"] = json!(paid.charge);
            all["remaining"] = json!(paid.remaining);
            all["receipt"] = json!(paid.receipt);
        }
        all
    }

    fn table(&self) -> String {
        let Told { outcome, .. } = self.told;
        let line = |name: &str, text: String| (name.to_owned(), text);
        let mut lines = vec![
            line("guarantee", self.guarantee()),
            line(
                "answered",
                format!(
                    "{} of {} queries that were looked at{}",
                    outcome.answered(),
                    outcome.tested,
                    if self.told.resumed {
                        ", by a run that was begun before"
                    } else {
                        ""
                    }
                ),
            ),
        ];
        if let Some(accuracy) = self.accuracy {
            let text = format!(
                "{accuracy:.4} on {} public examples that were held out",
                self.held_out
            );
            lines.push(line("student", text));
        }
        if let Some(told) = &outcome.sanitised {
            let text = format!(
                "{:.3} ({:.3} to {:.3} with {}% confidence): an estimate, and no guarantee",
                told.epsilon,
                told.low,
                told.high,
                plain(100.0 * told.confidence)
            );
            lines.push(line("sanitised epsilon", text));
        }
        if let Some(paid) = &self.told.paid {
            lines.extend(charged(&paid.charge, self.told.resumed));
            lines.extend(query::left(&paid.remaining, &paid.dataset));
            lines.push(line("receipt", paid.receipt.clone()));
        }
        lines.push(line("folder", self.out.display().to_string()));
        let text = table::lines(&lines);
        match self.owner {
            Some(owner) => format!("{text}\n{}", private_part(owner, Accounting::Realised)),
            None => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_fast_teachers_come_is_shown_to_the_owner_alone() {
        assert!(Bar::new(9, None, true).hears);
        assert!(!Bar::new(9, Some("ann"), true).hears);
        assert!(!Bar::new(9, None, false).hears);
    }
}
