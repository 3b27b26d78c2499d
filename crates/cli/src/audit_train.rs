//! `whit audit train`: what a plan of training promises, beside what attacks on it find.

use std::io::{self, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use whit::core::round;
use whit::{Failure, OsEntropy};
use whit_audit::{Alpha, Report, Row};
use whit_learn::audit::of_plan::{ClipBkd, claimed, usual_trials, white_box};
use whit_learn::data::{Audience, load_private};
use whit_learn::{Plan, Recipe};

use crate::Format;
use crate::audit::{Audited, REPORT_NOT_WRITTEN};
use crate::pate_result::tried;
use crate::train_plan::{Asked, Read, find, read};

/// Attacks a plan of `whit train`, and compares what is found with its epsilon.
///
/// A white-box canary doubts the plan's own sampler, clip and noise, and needs no data. Under Poisson samples, and where everybody takes part, one run is many trials; under other samplers it is one, and
/// there are fewer. ClipBKD trains the plan's network on its data many times, with and
/// without a poisoned example, and tells the final models apart: with --trainings. Both give lower bounds that assume nothing; one above the claimed epsilon
/// refutes the claim, and then the exit code is 3.
///
/// What ClipBKD shows is about the data, and is not private: thousands of models of them. So the data must not be a private table of a catalog, and the report is
/// for their owner.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The plan, as whit train reads it
    #[arg(value_name = "PLAN.toml")]
    plan: PathBuf,
    /// Trials of the canary in each world, half of which choose the event; 200,000 if not given, or what takes a minute or so
    #[arg(long, value_name = "N")]
    trials: Option<usize>,
    /// Trainings of ClipBKD in each world, half of which choose the threshold; without, no data are read
    #[arg(long, value_name = "N")]
    trainings: Option<usize>,
    /// How many copies of the poisoned example are tried, one after the other
    #[arg(
        long,
        value_name = "K",
        value_delimiter = ',',
        default_value = "1,2,4,8"
    )]
    group: Vec<u32>,
    /// With which confidence the bounds hold together
    #[arg(long, value_name = "SHARE", default_value_t = 0.99)]
    confidence: f64,
    /// How many threads make trials and train; else as many as the machine has
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Write a report here as well: JSON if the name ends with .json, otherwise one HTML file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  whit audit train plan.toml
      The canary alone: a minute at most or so, and no data.
  whit audit train plan.toml --trainings 1000 --report audit.html
      ClipBKD as well, with 1,000 trainings of each world, and a page with plots.";

impl Arguments {
    fn threads(&self) -> NonZeroUsize {
        let cores = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        self.threads.unwrap_or_else(cores)
    }
}

pub(crate) fn run(arguments: &Arguments, format: Format) -> Result<Audited, Failure> {
    let Read::Steps(recipe) = read(&arguments.plan)? else {
        return Err(Failure::refused(
            "audit_of_a_fit",
            "the plan is of a model that is fitted at once, and not in steps",
            "give a plan with [plan] and [optimizer]; what is fitted at once is audited by whit audit self",
        ));
    };
    let plan = recipe.plan()?;
    let claim = claimed(&plan)?;
    let attacks = 1 + usize::from(arguments.trainings.is_some());
    // Rounded down, so that the confidence is at least what was asked for.
    let alpha = round::sub_down(1.0, arguments.confidence);
    let alpha = Alpha::new(alpha).and_then(|alpha| alpha.split(attacks));
    let alpha = alpha.map_err(whit_learn::Error::from)?;
    if arguments
        .trainings
        .is_some_and(|trainings| !(2..=TRAININGS_MAX).contains(&trainings))
    {
        return Err(Failure::invalid(
            "trainings",
            "the number of trainings is below 2 or above 2^24",
            "give a number such as --trainings 1000",
        ));
    }
    // Before the work, which would be lost with it.
    if let Some(path) = &arguments.report {
        tried(path, REPORT_NOT_WRITTEN)?;
    }
    let trials = arguments.trials.map_or_else(|| usual_trials(&plan), Ok)?;
    let (bar, done) = (Bar::new("trial", trials), AtomicUsize::new(0));
    let size = (trials, arguments.threads());
    let found = white_box(&plan, size, alpha, OsEntropy::new, |more| {
        let done = done.fetch_add(more, Ordering::Relaxed) + more;
        bar.show(done.min(trials));
    });
    bar.wipe();
    let found = found?;
    let mut rows = vec![Row::of_bound("white-box canary", &found, Some(claim))];
    if let Some(trainings) = arguments.trainings {
        let found = clip_bkd(arguments, (&*recipe, &plan), trainings, alpha)?;
        rows.push(Row::of_bound("ClipBKD", &found, Some(claim)));
    }
    let command = format!("whit audit train {}", arguments.plan.display());
    let mut report = Report::new("A plan of training, audited", rows)
        .with_setting("command", command)
        .with_setting("trials of the canary in each world", trials.to_string());
    if let Some(trainings) = arguments.trainings {
        let groups: Vec<String> = arguments.group.iter().map(u32::to_string).collect();
        report = report
            .with_setting("trainings in each world", trainings.to_string())
            .with_setting("copies of the poisoned example", groups.join(", "));
    }
    let text = match format {
        Format::Json => {
            serde_json::to_string(&report).expect("a report is made of numbers and strings")
        }
        Format::Table => table(&report),
    };
    let path = arguments.report.as_deref();
    Ok(Audited::new(text, report.verdict(), &report, path))
}

/// Many trainings on the plan's data, which no catalog may protect.
fn clip_bkd(
    arguments: &Arguments,
    (recipe, plan): (&Recipe, &Plan),
    trainings: usize,
    alpha: Alpha,
) -> Result<whit_audit::EpsilonBound, Failure> {
    let folder = arguments.plan.parent().unwrap_or(Path::new(""));
    let asked = Asked {
        catalog: None,
        ledger: None,
        analyst: None,
        dry_run: false,
    };
    let declared = (&recipe.data, recipe.test.as_ref());
    if let Some(found) = find(declared, folder, &asked)? {
        return Err(Failure::refused(
            "audit_catalogued",
            &format!(
                "the data are the private table {} of a catalog, and an audit is not private",
                found.table
            ),
            "audit the plan on data of the same shape that are public, or without --trainings",
        ));
    }
    // The report is for the owner of the data.
    let data = load_private(&recipe.data, folder, Audience::Owner)?.expose();
    let attack = ClipBkd {
        groups: arguments.group.clone(),
        trials: trainings,
        threads: arguments.threads(),
    };
    let (total, done) = (trainings * (attack.groups.len() + 1), AtomicUsize::new(0));
    let bar = Bar::new("training", total);
    let after = |more: usize| bar.show(done.fetch_add(more, Ordering::Relaxed) + more);
    let found = attack.run((recipe, plan), data, alpha, OsEntropy::new, after);
    bar.wipe();
    Ok(found?)
}

/// More are not kept in memory until the threshold is chosen.
const TRAININGS_MAX: usize = 1 << 24;

/// A line on the terminal this often.
const LINE_EVERY: Duration = Duration::from_millis(200);

/// How far an attack is, on stderr, if that is a terminal.
struct Bar {
    of: &'static str,
    total: usize,
    started: Instant,
    shown: Mutex<Option<Instant>>,
    terminal: bool,
}

impl Bar {
    fn new(of: &'static str, total: usize) -> Self {
        Self {
            of,
            total,
            started: Instant::now(),
            shown: Mutex::new(None),
            terminal: io::stderr().is_terminal(),
        }
    }

    fn show(&self, done: usize) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if self.terminal && shown.is_none_or(|shown| shown.elapsed() >= LINE_EVERY) {
            *shown = Some(Instant::now());
            let (of, total) = (self.of, self.total);
            let each = self.started.elapsed().as_secs_f64() / done.max(1) as f64;
            let left = each * total.saturating_sub(done) as f64;
            // Talk that nobody hears is no reason to stop.
            let _ = write!(
                io::stderr(),
                "\r\x1b[K{of} {done} of {total}, {left:.0} s left "
            );
        }
    }

    fn wipe(&self) {
        if self.terminal {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

fn table(report: &Report) -> String {
    let mut lines = Vec::new();
    for row in report.rows() {
        lines.push((
            row.attack().to_owned(),
            format!(
                "epsilon at least {:.3} at delta {:e}, of {:.3} claimed: {}",
                row.measured(),
                row.delta(),
                row.claimed().unwrap_or(f64::NAN),
                row.verdict()
                    .map_or(String::new(), |verdict| verdict.to_string()),
            ),
        ));
    }
    lines.push(("in short".into(), report.sentence().to_owned()));
    crate::table::lines(&lines)
}
