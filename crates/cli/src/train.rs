//! `whit train`: a plan becomes a price, and then a model.
//!
//! What is shown on the way is the step, bounds of the accountant, and what the model does on data that are declared public; and to
//! whoever sits at the terminal, how long it may still take.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use whit::{Failure, OsEntropy};
use whit_learn::card::{Card, Guarantee, Training};
use whit_learn::checkpoint::Place;
use whit_learn::clip::Clip;
use whit_learn::clipped_sum::ClippedSum;
use whit_learn::curve::History;
use whit_learn::data::{Audience, load_private, load_public};
use whit_learn::evaluate::Evaluation;
use whit_learn::model::{Architecture, tensors};
use whit_learn::network::Network;
use whit_learn::onnx::OnnxError;
use whit_learn::safetensors::Weights;
use whit_learn::{Plan, Recipe, Summary, onnx};

use crate::account::{down, plain, up};
use crate::plot::Picture;
use crate::train_plot::Drawn;
use crate::train_watch::{SHOWN, Watch};
use crate::{Format, catalogued, table};

/// Trains a model with differential privacy, as a plan says.
///
/// The plan is a TOML file: [data] says where the examples are and what is public about them, [model] which network is trained,
/// [plan] how examples are drawn, how far each one's gradient is clipped and how much noise is added, or which epsilon to keep, and
/// [optimizer] what becomes of the noisy sums. Loss and accuracy are shown of the public data in [test], and of nothing else.
///
/// With --dry-run no data is read: the plan is priced. Else the run is written to a folder: model.safetensors, model.onnx where its
/// layers allow it, card.md with the guarantee, curve.csv and plots. If the run is stopped, the same command goes on with it; steps that
/// were begun and lost stay spent.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The plan
    #[arg(value_name = "PLAN.toml")]
    plan: PathBuf,
    /// Price the plan, and read no data
    #[arg(long)]
    dry_run: bool,
    /// Where to write the model; else a folder beside the plan, named as the plan is without its ending
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// How many threads work; else as many as the machine has. The model does not depend on it
    #[arg(long, value_name = "NUMBER")]
    threads: Option<NonZeroUsize>,
    /// After how many steps the run is kept on disk; else twenty times in all
    #[arg(long, value_name = "STEPS")]
    keep_every: Option<NonZeroUsize>,
    /// Training is not charged to a ledger yet, so that this is refused
    #[arg(long, value_name = "PATH", hide = true)]
    ledger: Option<PathBuf>,
    /// As --ledger
    #[arg(long, value_name = "WHIT.TOML", hide = true)]
    catalog: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  whit train plan.toml --dry-run
      Which epsilon the plan has, or how much noise its epsilon needs.
  whit train plan.toml --dry-run --format json
  whit train plan.toml --out digits
      Trains, and writes the model and its card to the folder digits.

A plan:
  [data]
  path = \"people.csv\"
  label = \"income\"
  classes = [\"<=50K\", \">50K\"]
  columns = [\"age\", \"hours_per_week\"]
  mean = [40, 40]
  std = [15, 15]
  n_public = 30000
  [model]
  kind = \"logistic\"
  [plan]
  sampler = \"poisson\"
  rate = 0.01
  steps = 1000
  clip = 1.0
  epsilon = 1.0
  delta = 1e-6
  [optimizer]
  kind = \"sgd\"
  rate = 0.5";

pub(crate) fn run(arguments: Arguments, format: Format) -> Result<String, Failure> {
    if arguments.ledger.is_some() || arguments.catalog.is_some() {
        return Err(Failure::refused(
            "train_ledger",
            "a training run is not charged to a ledger yet: a catalog protects units, of which each may have many rows, and a run protects rows",
            "leave --ledger and --catalog out, and write the epsilon of the card down where the budget is kept",
        ));
    }
    let recipe = read(&arguments.plan)?;
    let plan = recipe.plan()?;
    check(&recipe, &plan)?;
    if arguments.dry_run {
        return Ok(match format {
            Format::Json => value(&plan.summary()).to_string(),
            Format::Table => table::lines(&priced(&plan.summary())),
        });
    }
    let folder = arguments.plan.parent().unwrap_or(Path::new(""));
    is_not_catalogued(&recipe, folder)?;
    let public = recipe.test.as_ref();
    let public = public.map(|test| load_public(test, folder)).transpose()?;
    let out = match arguments.out {
        Some(out) => out,
        None => arguments.plan.with_extension(""),
    };
    make_folder(&out)?;
    // What does not fit is told before the first step, to the owner alone: see the documents of `data`.
    let private = load_private(&recipe.data, folder, Audience::Owner)?;
    let threads = arguments
        .threads
        .unwrap_or_else(|| std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN));
    let (mut trainer, architecture) = recipe.trainer(&plan, private, threads)?;
    let place = Place::open(&out, recipe.run(&plan))?;
    let interval = arguments.keep_every.unwrap_or_else(|| {
        let interval = usize::try_from(plan.steps() / SHOWN).unwrap_or(usize::MAX);
        NonZeroUsize::new(interval).unwrap_or(NonZeroUsize::MIN)
    });
    let mut watch = Watch::new(&plan, public.as_ref());
    let mut entropy = OsEntropy::new();
    let run = recipe.run(&plan);
    let ran = trainer.run_kept(&place, run, interval, &mut entropy, |trainer| {
        watch.after(trainer)
    });
    watch.wipe();
    let checkpoint = ran?;
    let evaluation = public.as_ref().map(|public| trainer.evaluate(public));
    let evaluation = evaluation.transpose()?;
    watch.note(plan.steps(), Some(plan.epsilon().upper()), evaluation);
    let result = Finished {
        recipe: &recipe,
        plan: &plan,
        architecture: &architecture,
        parameters: trainer.parameters(),
        steps_kept: checkpoint.steps_kept(),
        evaluation,
        history: watch.history,
    };
    let files = result.write(&out)?;
    Ok(result.show(&out, &files, format))
}

#[expect(clippy::disallowed_methods, reason = "a door opens files")]
fn read(path: &Path) -> Result<Recipe, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::invalid(
            "plan_not_read",
            &format!("the plan {path:?} cannot be read: {error}"),
            "give the path of a TOML file; whit train --help shows one",
        )
    })?;
    toml::from_str(&text).map_err(|error| {
        let place = match error.span() {
            Some(span) => {
                let before = text.get(..span.start).unwrap_or_default();
                format!(", line {}", before.matches('\n').count() + 1)
            }
            None => String::new(),
        };
        Failure::invalid(
            "plan_malformed",
            &format!("the plan {path:?}{place}: {}", error.message()),
            "give [data], [model] and [plan] as in the example of whit train --help",
        )
    })
}

/// What can be refused without opening the data, so that a dry run refuses it too.
fn check(recipe: &Recipe, plan: &Plan) -> Result<(), Failure> {
    if let Some(test) = &recipe.test {
        test.check()?;
    }
    recipe.method(0, NonZeroUsize::MIN)?;
    if let Some((architecture, loss)) = recipe.architecture_declared()? {
        let network = Network::from_specs(architecture.layers(), loss)?;
        let clip = Clip::flat(plan.clip_norm())?;
        ClippedSum::new(&network, clip, plan.grid(), plan.batch_cap())?;
    }
    Ok(())
}

/// A private table of a catalog is paid from its ledger, and training on it would be a way around.
fn is_not_catalogued(recipe: &Recipe, folder: &Path) -> Result<(), Failure> {
    let label = recipe.data.label.as_deref().map(Path::new);
    for path in [Some(recipe.data.path.as_path()), label]
        .into_iter()
        .flatten()
    {
        if let Some(found) = catalogued::find(&folder.join(path), None, None)? {
            return Err(Failure::refused(
                "train_catalogued",
                &format!(
                    "the file {path:?} is the private table {} of a catalog, and a training run is not charged to its ledger yet",
                    found.table
                ),
                "train on data that no catalog protects, or ask about these with whit query",
            ));
        }
    }
    Ok(())
}

fn make_folder(path: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(path).map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::invalid(
        "out_not_written",
        &format!("{path:?} cannot be written: {error}"),
        "give --out a folder that you may write to",
    )
}

fn value(summary: &Summary) -> Value {
    serde_json::to_value(summary).expect("plain data")
}

/// A plan's price for people, bounds rounded outward.
fn priced(summary: &Summary) -> Vec<(String, String)> {
    let line = |name: &str, text: String| (name.to_owned(), text);
    vec![
        line(
            "epsilon",
            format!(
                "{} (at least {})",
                up(summary.epsilon_upper, 6),
                down(summary.epsilon_lower, 6)
            ),
        ),
        line("delta", plain(summary.delta)),
        line("relation", summary.relation.to_string()),
        line("noise multiplier", plain(summary.noise_multiplier)),
        line("clip norm", plain(summary.clip_norm)),
        line("steps", summary.steps.to_string()),
        line("sampler", summary.sampler.replace('_', " ")),
        line("rate", plain(summary.rate)),
        line("sums divided by", plain(summary.expected_batch)),
    ]
}

/// A run that has ended.
struct Finished<'a> {
    recipe: &'a Recipe,
    plan: &'a Plan,
    architecture: &'a Architecture,
    parameters: Vec<f32>,
    steps_kept: u64,
    evaluation: Option<Evaluation>,
    history: History,
}

impl Finished<'_> {
    /// Writes everything, and says what was written.
    fn write(&self, out: &Path) -> Result<Vec<String>, Failure> {
        let Summary {
            epsilon_upper,
            delta,
            relation,
            ..
        } = self.plan.summary();
        let guarantee =
            format!("epsilon {epsilon_upper} at delta {delta}, {relation} for one example");
        let notes = BTreeMap::from([("privacy".to_owned(), guarantee.clone())]);
        let tensors = tensors(self.architecture.layers());
        let weights = Weights::write(&tensors, &self.parameters, &notes).ok_or_else(|| {
            Failure::bug(
                "weights",
                "the model's tensors do not hold its parameters",
                "please report this with the plan",
            )
        })?;
        let mut files = Vec::new();
        let mut keep = |name: &str, bytes: &[u8]| {
            write_file(&out.join(name), bytes)?;
            files.push(name.to_owned());
            Ok::<(), Failure>(())
        };
        keep("model.safetensors", &weights)?;
        match onnx::write(
            self.architecture,
            &self.parameters,
            &[("privacy", &guarantee)],
        ) {
            Ok(bytes) => keep("model.onnx", &bytes)?,
            // Not every layer has a node there, and the weights are in the other file.
            Err(OnnxError::Layer { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        keep("card.md", self.card().as_bytes())?;
        keep("curve.csv", self.history.csv().as_bytes())?;
        for chart in self.history.charts(self.title()) {
            let word = chart
                .y
                .name
                .split(' ')
                .next()
                .unwrap_or_default()
                .to_owned();
            for ending in ["svg", "png"] {
                let name = format!("{word}.{ending}");
                Drawn(&chart).write(&out.join(&name))?;
                files.push(name);
            }
        }
        Ok(files)
    }

    fn title(&self) -> &str {
        self.recipe.title.as_deref().unwrap_or("A private model")
    }

    fn card(&self) -> String {
        let summary = self.plan.summary();
        let optimizer = self.recipe.optimizer_words();
        let mut results = Vec::new();
        if let Some(Evaluation { loss, accuracy }) = self.evaluation {
            results.extend(accuracy.map(|accuracy| ("accuracy on [test]", accuracy)));
            results.push(("loss on [test]", loss));
        }
        let sampler = summary.sampler.replace('_', " ");
        let card = Card {
            title: self.title(),
            guarantee: Guarantee {
                epsilon_upper: summary.epsilon_upper,
                epsilon_lower: summary.epsilon_lower,
                delta: summary.delta,
                unit: "example",
                event: self.plan.event(),
            },
            training: Training {
                sampler: &sampler,
                rate: summary.rate,
                steps: summary.steps,
                steps_kept: self.steps_kept,
                batch_expected: summary.expected_batch,
                clip_norm: summary.clip_norm,
                noise_multiplier: summary.noise_multiplier,
                optimizer: &optimizer,
            },
            data: &self.recipe.data,
            architecture: self.architecture,
            results: &results,
            search: self.recipe.search(),
            ledger: None,
        };
        card.markdown()
    }

    fn show(&self, out: &Path, files: &[String], format: Format) -> String {
        let summary = self.plan.summary();
        match format {
            Format::Json => {
                let mut all = value(&summary);
                all["steps_kept"] = json!(self.steps_kept);
                all["test"] = json!(self.evaluation);
                all["out"] = json!(out.display().to_string());
                all["files"] = json!(files);
                all.to_string()
            }
            Format::Table => {
                let mut lines = priced(&summary);
                let mut line = |name: &str, text: String| lines.push((name.to_owned(), text));
                line("steps kept", self.steps_kept.to_string());
                if let Some(Evaluation { loss, accuracy }) = self.evaluation {
                    if let Some(accuracy) = accuracy {
                        line("accuracy on [test]", format!("{accuracy:.4}"));
                    }
                    line("loss on [test]", format!("{loss:.4}"));
                }
                line("written to", out.display().to_string());
                line("files", files.join(", "));
                table::lines(&lines)
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a door writes files")]
fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::write(path, bytes).map_err(|error| unwritable(path, &error))
}
