//! `whit train`: a plan becomes a price, and then a model.
//!
//! What is shown on the way is the step, bounds of the accountant, and what the model does on data that are declared public; and to
//! whoever sits at the terminal, how long it may still take.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use whit::session::{Desk, Order, Quoted, quote_unopened, rehearse_run};
use whit::{Failure, OsEntropy};
use whit_learn::checkpoint::Place;
use whit_learn::data::{Audience, Inputs, inputs, load_surveyed};
use whit_learn::model::Architecture;
use whit_learn::{Payment, Plan, Recipe, Summary, Trainer, Uncharged};

use crate::account::{down, plain, up};
use crate::catalogued::Catalogued;
use crate::train_plan::{Asked, Read, check, find, read};
use crate::train_result::{Finished, Paid, Start, charged};
use crate::train_stop::{Notebook, Signal, Stop, Stopped};
use crate::train_watch::Watch;
use crate::{Format, query, table, train_fit, train_search};

/// Trains a model with differential privacy, as a plan says.
///
/// The plan is a TOML file: [data] says where the examples are and what is public about them, [model] which network is trained,
/// [plan] how examples are drawn, how far each one's gradient is clipped and how much noise is added, or which epsilon to keep, and
/// [optimizer] what becomes of the noisy sums. Loss and accuracy are shown of the public data in [test], and of nothing else.
///
/// Classical models (kind naive_bayes, linear_regression, k_means, pca, forest, boosted_stumps, minima_perturbation) are fitted at once: [bounds] says where the values of
/// each column lie, and [plan] has an epsilon and a delta, which may be 0. They become model.json and card.md.
///
/// With --dry-run no row is read, at most the header of a file: the plan is checked and priced, and for a private table of a catalog it is told what would be charged and whether there
/// is room for it; nothing is charged or made. Else the run is written to a folder: model.safetensors, model.onnx where its
/// layers allow it, card.md and card.json with the guarantee and what the model takes, curve.csv and plots; whit predict applies it.
///
/// Ctrl-C (or SIGTERM) ends the run after the step under way: what was done is kept, you are told that it was stopped, and the same command goes on with it. Where each step draws for itself (poisson, fixed_size, all) nothing is lost; else you are told
/// what is: the rest of the epoch (shuffled, balls_in_bins, cyclic), or all steps that are left (a tree). A search or a classical model is lost as a whole. The exit code is 130 (or 143). A second signal ends the run at once, with its own code, and nothing is told: the same command goes on after what was kept last.
/// Steps that were begun and lost stay spent: their noise may have been seen.
///
/// With [search] and [validation] the plan is a search: a random number of runs, each with numbers that it draws from lists, of which the best on public
/// data is kept. Its price is that of the choice. How many runs there were is not told, and a search that was stopped cannot go on.
///
/// If the data are a private table of a catalog, the whole run is charged to its ledger before a row is read, and one row of each unit is
/// trained on. A run that goes on pays nothing more; a new one, in another folder, does.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The plan
    #[arg(value_name = "PLAN.toml")]
    pub(crate) plan: PathBuf,
    /// Check and price the plan, and read no row
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Where to write the model; else a folder beside the plan, named as the plan is without its ending
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// How many threads work; else as many as the machine has. The model does not depend on it
    #[arg(long, value_name = "NUMBER")]
    threads: Option<NonZeroUsize>,
    /// After how many steps the run is kept on disk, and so how many are lost if the machine stops (in whole epochs, where these are dealt out); else after each hundredth of them, and one at least
    #[arg(long, value_name = "STEPS")]
    pub(crate) keep_every: Option<NonZeroUsize>,
    /// The catalog of the data; else whit.toml in the folder of the data or above it
    #[arg(long, value_name = "WHIT.TOML")]
    pub(crate) catalog: Option<PathBuf>,
    /// The ledger of catalogued data; else where the catalog says
    #[arg(long, value_name = "PATH")]
    pub(crate) ledger: Option<PathBuf>,
    /// Who trains, and is charged besides the data set, if the data are catalogued
    #[arg(long, value_name = "NAME")]
    pub(crate) analyst: Option<String>,
}

impl Arguments {
    /// What paths of the plan are relative to.
    pub(crate) fn folder(&self) -> &Path {
        self.plan.parent().unwrap_or(Path::new(""))
    }

    /// What was said about a ledger.
    pub(crate) fn asked(&self) -> Asked<'_> {
        Asked {
            catalog: self.catalog.as_deref(),
            ledger: self.ledger.as_deref(),
            analyst: self.analyst.as_deref(),
            dry_run: self.dry_run,
        }
    }

    pub(crate) fn threads(&self) -> NonZeroUsize {
        self.threads
            .unwrap_or_else(|| std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN))
    }

    /// Where the model is written.
    pub(crate) fn out(&self) -> PathBuf {
        match &self.out {
            Some(out) => out.clone(),
            None => self.plan.with_extension(""),
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  whit train plan.toml --dry-run
      Which epsilon the plan has, or how much noise its epsilon needs.
  whit train plan.toml --dry-run --format json
  whit train plan.toml --out digits
      Trains, and writes the model and its card to the folder digits.
  whit train plan.toml --catalog whit.toml --analyst ann
      Charges the ledger of the catalog, whose private table the data are.

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
  rate = 0.5

A plan of a classical model:
  [data]
  path = \"people.csv\"
  label = \"income\"
  classes = [\"<=50K\", \">50K\"]
  columns = [\"age\", \"sex\"]
  categories = { sex = [\"Female\", \"Male\"] }
  [bounds]
  age = [17, 90]
  [model]
  kind = \"naive_bayes\"
  [plan]
  epsilon = 1.0
  delta = 1e-6";

/// How often a run is kept on disk, if nobody says otherwise.
const KEPT: u64 = 100;

/// The text for stdout; `ended_by` is set if a signal has stopped the run.
pub(crate) fn run(
    arguments: Arguments,
    format: Format,
    ended_by: &mut Option<Signal>,
) -> Result<String, Failure> {
    let recipe = match read(&arguments.plan)? {
        Read::Steps(recipe) => *recipe,
        Read::Fit(recipe) => return train_fit::run(&recipe, &arguments, format),
    };
    if recipe.search.is_some() {
        return train_search::run(&recipe, &arguments, format);
    }
    let plan = recipe.plan()?;
    let folder = arguments.folder();
    let public = (&recipe.data, recipe.test.as_ref());
    let found = find(public, folder, &arguments.asked())?;
    check(&recipe, &plan, folder, found.is_some())?;
    let job = Job {
        recipe: &recipe,
        plan: &plan,
        folder,
        arguments: &arguments,
    };
    if arguments.dry_run {
        let files = [Some(&recipe.data), recipe.test.as_ref()];
        for path in files.into_iter().flatten().map(|data| &data.path) {
            if format == Format::Table && !folder.join(path).exists() {
                eprintln!(
                    "whit: note: {} is not there: this is the price, and training would stop before it is paid",
                    path.display()
                );
            }
        }
        return job.price(found, format);
    }
    let public = recipe.load_test(folder, job.threads())?;
    let out = arguments.out();
    let Ready {
        mut trainer,
        architecture,
        recipe,
        inputs,
        resumed,
        paid,
    } = match found {
        Some(found) => job.charged(found, &out)?,
        None => job.uncharged(&out)?,
    };
    let start = match trainer.taken() {
        _ if !resumed => Start::New,
        begun if begun < plan.steps() => Start::After(begun),
        _ => Start::AtTheEnd,
    };
    let mut watch = Watch::new(&plan, public.as_ref());
    let notebook = Notebook::beside(&out, &recipe.run(&plan));
    if resumed {
        watch.history = notebook.read(trainer.taken());
    }
    let ran = steps(&mut trainer, &mut watch, job.interval(), &notebook);
    watch.wipe();
    if let Some(signal) = ran? {
        let stopped = Stopped::of(&trainer, signal, &out);
        *ended_by = Some(signal);
        return Ok(stopped.show(format));
    }
    let evaluation = public.as_ref().map(|public| trainer.evaluate(public));
    let evaluation = evaluation.transpose()?;
    watch.note(plan.steps(), Some(plan.epsilon().upper()), evaluation);
    let result = Finished {
        recipe: &recipe,
        plan: &plan,
        architecture: &architecture,
        inputs: &inputs,
        parameters: trainer.parameters(),
        payer: trainer.payer(),
        paid: paid.as_ref(),
        start,
        steps_kept: trainer.steps_kept(),
        evaluation,
        history: watch.history,
    };
    let files = result.write(&out)?;
    notebook.remove();
    Ok(result.show(&out, &files, format))
}

/// Takes the steps that are left, or says which signal has stopped it. What was done is kept where the next steps are counted, as many at a time as
/// `interval` says, which is public, at the end, and when it is stopped: how long a step takes depends on how many examples there are, and decides nothing that is written, unless a signal comes.
fn steps(
    trainer: &mut Trainer,
    watch: &mut Watch<'_>,
    interval: NonZeroUsize,
    notebook: &Notebook,
) -> Result<Option<Signal>, Failure> {
    let steps = trainer.plan().steps();
    let mut entropy = OsEntropy::new();
    let stop = Stop::listen()?;
    while trainer.taken() < steps {
        trainer.step(&mut entropy)?;
        let shown = watch.after(trainer).map_err(Failure::from);
        let stopped = stop.asked().filter(|_| trainer.taken() < steps);
        let is_due =
            trainer.taken().is_multiple_of(interval.get() as u64) || trainer.taken() == steps;
        let noted = shown.and_then(|()| match stopped.is_some() || is_due {
            true => notebook.write(&watch.history),
            false => Ok(()),
        });
        // A full disk or a curve that cannot be shown ends the run, too, and takes no step with it.
        if stopped.is_some() || noted.is_err() {
            trainer.pause()?;
        }
        noted?;
        if stopped.is_some() {
            return Ok(stopped);
        }
    }
    Ok(None)
}

/// What to train, and by which words.
struct Job<'a> {
    recipe: &'a Recipe,
    plan: &'a Plan,
    folder: &'a Path,
    arguments: &'a Arguments,
}

/// A run before its next step, and what it was charged.
struct Ready {
    trainer: Trainer,
    architecture: Architecture,
    recipe: Recipe,
    /// By the file's header: all of it is public.
    inputs: Inputs,
    /// Was it begun before?
    resumed: bool,
    paid: Option<Paid>,
}

impl Job<'_> {
    fn order<'a>(&'a self, table: &'a str) -> Order<'a> {
        Order {
            table,
            recipe: self.recipe,
            plan: self.plan,
            analyst: self.arguments.analyst.as_deref(),
            folder: self.folder,
        }
    }

    fn price(&self, found: Option<Catalogued>, format: Format) -> Result<String, Failure> {
        let summary = self.plan.summary();
        let mut all = value(&summary);
        let mut lines = priced(&summary);
        lines.extend(noted(self.recipe));
        if let Some(Catalogued { place, table }) = found {
            let dataset = place.catalog.dataset().to_owned();
            let (order, out) = (self.order(&table), self.arguments.out());
            let quoted = match place.has_ledger() {
                true => place.open()?.quote_at(&order, &self.desk(&out))?,
                false => quote_unopened(&place.catalog, &place.folder, &order)?,
            };
            all["charge"] = json!(quoted.charge);
            all["remaining"] = json!(quoted.remaining);
            all["room"] = json!(quoted.room);
            all["goes_on"] = json!(quoted.goes_on);
            all["objection"] = json!(quoted.objection);
            lines.extend(charged(&quoted.charge, quoted.goes_on));
            lines.extend(query::left(&quoted.remaining, &dataset));
            lines.push(("room".into(), room(&quoted)));
        }
        Ok(match format {
            Format::Json => all.to_string(),
            Format::Table => table::lines(&lines),
        })
    }

    fn desk<'a>(&self, out: &'a Path) -> Desk<'a> {
        Desk {
            out,
            interval: self.interval(),
            threads: self.threads(),
        }
    }

    fn threads(&self) -> NonZeroUsize {
        self.arguments.threads()
    }

    fn interval(&self) -> NonZeroUsize {
        self.arguments.keep_every.unwrap_or_else(|| {
            let interval = usize::try_from(self.plan.steps() / KEPT).unwrap_or(usize::MAX);
            NonZeroUsize::new(interval).unwrap_or(NonZeroUsize::MIN)
        })
    }

    /// A private table is paid from its ledger, and protects whom its catalog says.
    fn charged(&self, found: Catalogued, out: &Path) -> Result<Ready, Failure> {
        let Catalogued { place, table } = found;
        let order = self.order(&table);
        let desk = self.desk(out);
        // A ledger begins with what could be charged, and not with what is refused.
        if !place.has_ledger() {
            rehearse_run(&place.catalog, &place.folder, &order, &desk)?;
        }
        let session = place.open()?;
        let course = session.train(&order, &desk, &mut OsEntropy::new())?;
        let paid = Paid {
            dataset: session.catalog().dataset().to_owned(),
            charge: course.charge,
            remaining: course.remaining,
            receipt: course.receipt,
        };
        Ok(Ready {
            resumed: course.resumed,
            trainer: course.trainer,
            architecture: course.architecture,
            recipe: course.recipe,
            inputs: course.inputs,
            paid: Some(paid),
        })
    }

    /// Data that no catalog protects.
    fn uncharged(&self, out: &Path) -> Result<Ready, Failure> {
        // Before the data are read, which may take long; and made once there is something to put into it.
        Place::rehearse(out)?;
        Place::is_own(out, &self.recipe.run(self.plan))?;
        // What does not fit is told before the first step, to the owner alone: see the documents of `data`.
        let (data, folder) = (&self.recipe.data, self.folder);
        let inputs = inputs(data, folder).map_err(whit_learn::Error::from)?;
        let private = load_surveyed(data, folder, Audience::Owner, &inputs)?;
        // Shape and classes are public.
        let public = private.as_ref().expose();
        let made = self.recipe.architecture(public.shape(), public.classes())?;
        let run = self.recipe.run(self.plan);
        let is_begun = Place::is_begun(out, &run);
        let place = Place::make(out, run)?;
        if is_begun {
            self.is_uncharged(&place)?;
        } else {
            let payment = Payment::uncharged(self.plan, Uncharged);
            place.start(payment, self.recipe.initial(&made.0))?;
        }
        let (threads, interval) = (self.threads(), self.interval());
        let kept = self
            .recipe
            .trainer_kept(self.plan, private, threads, place, interval);
        let (trainer, architecture) = kept?;
        Ok(Ready {
            trainer,
            architecture,
            recipe: self.recipe.clone(),
            inputs,
            resumed: is_begun,
            paid: None,
        })
    }

    /// A run that a ledger has paid for goes on with that ledger.
    fn is_uncharged(&self, place: &Place) -> Result<(), Failure> {
        match place.load()?.as_ref().map(|kept| kept.payer()) {
            Some(payer) if *payer != whit_learn::Payer::Nobody => Err(Failure::refused(
                "other_run",
                &format!("the run at {:?} was charged to {payer}", place.path()),
                "go on with its catalog, as --catalog, or give another folder as --out",
            )),
            _ => Ok(()),
        }
    }
}

/// For how many such runs there is room, or why for none.
pub(crate) fn room(quoted: &Quoted) -> String {
    match (&quoted.objection, quoted.room) {
        (Some(why), _) => format!("for no such run: {why}"),
        (None, _) if quoted.goes_on => {
            "not needed: this run was begun in its folder, and goes on there".to_owned()
        }
        (None, 1) => "for one such run".to_owned(),
        (None, more) => format!("for {more} such runs"),
    }
}

pub(crate) fn value(summary: &Summary) -> Value {
    serde_json::to_value(summary).expect("plain data")
}

/// What a reader of a price should know besides.
pub(crate) fn noted(recipe: &Recipe) -> Vec<(String, String)> {
    let clipping = recipe.plan.clipping_word();
    let clipping = clipping.map(|word| ("clipping".to_owned(), word.replace('_', " ")));
    let large = recipe
        .data
        .n_public
        .filter(|rows| recipe.plan.delta * *rows as f64 > 1.0);
    let large = large.map(|rows| {
        let text = format!(
            "delta is above 1/{rows}: a program that publishes one example at random would keep it"
        );
        ("note".to_owned(), text)
    });
    clipping.into_iter().chain(large).collect()
}

/// Both bounds of an epsilon, rounded outward. A lower one of zero says nothing.
pub(crate) fn between(upper: f64, lower: f64) -> String {
    match lower > 0.0 {
        true => format!("{} (at least {})", up(upper, 6), down(lower, 6)),
        false => format!("{} (at most; no lower bound is known)", up(upper, 6)),
    }
}

/// A plan's price for people, bounds rounded outward.
pub(crate) fn priced(summary: &Summary) -> Vec<(String, String)> {
    let line = |name: &str, text: String| (name.to_owned(), text);
    let mut lines = vec![
        line(
            "epsilon",
            between(summary.epsilon_upper, summary.epsilon_lower),
        ),
        line("delta", plain(summary.delta)),
        line("relation", summary.relation.to_string()),
        line("noise multiplier", plain(summary.noise_multiplier)),
        line("clip norm", plain(summary.clip_norm)),
        line("steps", summary.steps.to_string()),
        line("sampler", summary.sampler.replace('_', " ")),
        line(
            match summary.cyclic {
                Some(_) => "share in a step",
                None => "sampling rate",
            },
            plain(summary.rate),
        ),
        line("sums divided by", plain(summary.expected_batch)),
    ];
    if let Some(moves) = &summary.adaptive {
        lines.extend([
            line(
                "clip norm follows",
                format!(
                    "quantile {}, clip rate {}",
                    plain(moves.quantile),
                    plain(moves.clip_rate)
                ),
            ),
            line(
                "noise of sum",
                format!("{} clip norms", plain(moves.sum_noise_multiplier)),
            ),
            line("noise of count", plain(moves.count_noise)),
        ]);
    }
    let cyclic = summary.cyclic.iter().flat_map(|cyclic| cyclic.words());
    lines.extend(cyclic.map(|(name, text)| line(name, text)));
    lines
}
