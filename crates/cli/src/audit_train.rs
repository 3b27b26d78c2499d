//! `whit audit train`: what a plan of training promises, beside what attacks on it find.

use std::io::{self, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use clap::Args;
use whit::{Failure, OsEntropy};
use whit_audit::{Alpha, Report, Row, Ruling};
use whit_learn::audit::of_plan::{ClipBkd, claimed, white_box};
use whit_learn::data::{Audience, load_private};
use whit_learn::{Plan, Recipe};

use crate::Format;
use crate::audit::write_report;
use crate::train_plan::{Asked, Read, find, read};

/// Attacks a plan of `whit train`, and compares what is found with its epsilon.
///
/// A white-box canary doubts the plan's own sampler, clip and noise, and needs no data. ClipBKD trains the plan's network on its data many times, with and
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
    /// Trials of the canary in each world, half of which choose the event
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    trials: usize,
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
    /// How many threads train; else as many as the machine has
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Write a report here as well: JSON if the name ends with .json, otherwise one HTML file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  whit audit train plan.toml
      The canary alone: seconds, and no data.
  whit audit train plan.toml --trainings 1000 --report audit.html
      ClipBKD as well, with 1,000 trainings of each world, and a page with plots.";

pub(crate) fn run(arguments: &Arguments, format: Format) -> Result<(String, Ruling), Failure> {
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
    let alpha = Alpha::new(1.0 - arguments.confidence).and_then(|alpha| alpha.split(attacks));
    let alpha = alpha.map_err(whit_learn::Error::from)?;
    let found = white_box(&plan, arguments.trials, alpha, &mut OsEntropy::new())?;
    let mut rows = vec![Row::of_bound("white-box canary", &found, Some(claim))];
    if let Some(trainings) = arguments.trainings {
        let found = clip_bkd(arguments, (&*recipe, &plan), trainings, alpha)?;
        rows.push(Row::of_bound("ClipBKD", &found, Some(claim)));
    }
    let report = Report::new("A plan of training, audited", rows);
    if let Some(path) = &arguments.report {
        write_report(&report, path)?;
    }
    let text = match format {
        Format::Json => {
            serde_json::to_string(&report).expect("a report is made of numbers and strings")
        }
        Format::Table => table(&report),
    };
    Ok((text, report.verdict()))
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
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let attack = ClipBkd {
        groups: arguments.group.clone(),
        trials: trainings,
        threads: arguments.threads.unwrap_or(cores),
    };
    let (total, done) = (trainings * (attack.groups.len() + 1), AtomicUsize::new(0));
    let (terminal, started) = (io::stderr().is_terminal(), Instant::now());
    let after = |more: usize| {
        let done = done.fetch_add(more, Ordering::Relaxed) + more;
        if terminal {
            let left = started.elapsed().as_secs_f64() / done as f64 * (total - done) as f64;
            // Talk that nobody hears is no reason to stop.
            let _ = write!(
                io::stderr(),
                "\r\x1b[Ktraining {done} of {total}, {left:.0} s left "
            );
        }
    };
    let found = attack.run((recipe, plan), data, alpha, OsEntropy::new, after);
    if terminal {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
    Ok(found?)
}

fn table(report: &Report) -> String {
    let mut lines = Vec::new();
    for row in report.rows() {
        lines.push((
            row.attack().to_owned(),
            format!(
                "epsilon at least {:.3} at delta {:e}, of {:.3} claimed: {}",
                row.epsilon_lower(),
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
