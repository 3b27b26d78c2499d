//! `whit audit self`: what whit ships, doubted by its own instruments.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use clap::Args;
use whit::Failure;
use whit_audit::{Report, TwoStages};
use whit_trial::{Case, Cost, Effort, Share, Untried, row, trial};

use crate::Format;
use crate::audit::{Audited, REPORT_NOT_WRITTEN};
use crate::audit_cases::{NOT_TRIED, cases};
use crate::pate_result::tried;

/// Puts what whit ships on trial: mechanisms, statistics of files, SQL, training, teachers, classical models.
///
/// More than three hundred cases, each with two neighbouring inputs and an event that was fixed beforehand, are sampled in both worlds and
/// compared with what is claimed. A first look at level 1e-3 convicts nobody; what alarms there is sampled again, four times as often and with
/// fresh entropy, at level 1e-7. A true claim is convicted by both with probability below 1e-10, and one of all with less than 1e-7.
///
/// With a million samples (the default) every case that costs a draw of noise would show ten percent too little of it. What takes longer is sampled less often, and would show half;
/// the table says which. `--quick` takes less than a minute, and would show half of it in each case 99 times in a hundred.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Five thousand samples of each case, and as many as half of the noise takes of slow ones: seconds instead of minutes
    #[arg(long, conflicts_with = "samples")]
    quick: bool,

    /// Samples of each world in the first look; slow cases take a part of them, and never fewer than half of the noise takes
    #[arg(long, value_name = "N")]
    samples: Option<u64>,

    /// Write a report here as well: JSON if the name ends with .json, otherwise one HTML file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  whit audit self --quick --report self.html
      Seconds, and a page with plots.
  whit audit self --samples 20000
      So many samples of each world; without a number a million, which takes minutes.";

/// More than this is not covered by the bounds of the second look.
const SAMPLES_MAX: u64 = 1 << 30;

pub(crate) fn run(arguments: &Arguments, format: Format) -> Result<Audited, Failure> {
    let effort = match arguments.samples {
        Some(samples @ 1..=SAMPLES_MAX) => Effort::of(samples),
        Some(_) => {
            return Err(Failure::invalid(
                "samples",
                "the number of samples is zero or above 2^30",
                "give a number such as --samples 100000",
            ));
        }
        None if arguments.quick => Effort::quick(),
        None => Effort::full(),
    };
    // Before the work, which would be lost with it.
    if let Some(path) = &arguments.report {
        tried(path, REPORT_NOT_WRITTEN)?;
    }
    let cases = cases();
    let findings = findings(&cases, effort)?;
    let rows = cases.iter().zip(&findings);
    let rows = rows.map(|(case, found)| row(case, found));
    let report = Report::new("whit, audited by itself", rows.collect())
        .with_setting("command", "whit audit self")
        .with_setting("samples of each world", effort.first.samples.to_string())
        .with_setting("samples after an alarm", effort.second.samples.to_string());
    let text = match format {
        Format::Json => {
            let mut report =
                serde_json::to_value(&report).expect("a report is made of numbers and strings");
            report["not_tried"] = NOT_TRIED.into();
            report.to_string()
        }
        Format::Table => table(&cases, &findings, &report),
    };
    let path = arguments.report.as_deref();
    Ok(Audited::new(text, report.verdict(), &report, path))
}

/// Every case once, on all cores.
fn findings(cases: &[Case], effort: Effort) -> Result<Vec<TwoStages>, Failure> {
    let next = AtomicUsize::new(0);
    let found: Mutex<Vec<Option<Result<TwoStages, Untried>>>> = Mutex::new(vec![None; cases.len()]);
    let (terminal, started) = (io::stderr().is_terminal(), Instant::now());
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(case) = cases.get(at) else { return };
            let finding = trial(case, Share::ALL, effort);
            found.lock().unwrap_or_else(PoisonError::into_inner)[at] = Some(finding);
            if terminal {
                let left = started.elapsed().as_secs_f64() / (at + 1) as f64
                    * (cases.len() - at - 1) as f64;
                // Talk that nobody hears is no reason to stop.
                let _ = write!(
                    io::stderr(),
                    "\r\x1b[Kcase {} of {}, {left:.0} s left ",
                    at + 1,
                    cases.len()
                );
            }
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(work);
        }
    });
    if terminal {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let not_tried = |case: &Case, why: &str| {
        let reason = format!("the case {} could not be tried: {why}", case.name());
        Failure::bug(
            "not_tried",
            &reason,
            "try again, with room in the system's folder for temporary files",
        )
    };
    let each = cases.iter().zip(found).map(|(case, found)| match found {
        Some(Ok(found)) => Ok(found),
        Some(Err(why)) => Err(not_tried(case, &why.to_string())),
        None => Err(not_tried(case, "its thread ended")),
    });
    each.collect()
}

/// The cases of one family, and what came of them.
struct Family<'a> {
    name: &'a str,
    cases: usize,
    alarms: usize,
    convicted: usize,
    /// The largest share of a claim that was measured.
    share: f64,
    cost: Cost,
}

fn families<'a>(cases: &'a [Case], findings: &[TwoStages]) -> Vec<Family<'a>> {
    let mut families: Vec<Family> = Vec::new();
    for (case, found) in cases.iter().zip(findings) {
        let known = families
            .iter()
            .position(|family| family.name == case.family() && family.cost == case.cost());
        let at = known.unwrap_or_else(|| {
            families.push(Family {
                name: case.family(),
                cases: 0,
                alarms: 0,
                convicted: 0,
                share: 0.0,
                cost: case.cost(),
            });
            families.len() - 1
        });
        let family = &mut families[at];
        family.cases += 1;
        family.alarms += usize::from(found.alarmed());
        family.convicted += usize::from(found.convicted());
        let share = found.bound().epsilon_lower() / case.claimed().value();
        family.share = family.share.max(share);
    }
    families
}

fn table(cases: &[Case], findings: &[TwoStages], report: &Report) -> String {
    let families = families(cases, findings);
    let width = families.iter().map(|family| family.name.len()).max();
    let width = width.unwrap_or(0);
    let mut text = format!(
        "{:<width$}  cases  alarms  convicted  measured/claimed, at most\n",
        "what ships"
    );
    for family in &families {
        let Family {
            name,
            cases,
            alarms,
            convicted,
            share,
            cost,
        } = family;
        // Those that are sampled less often.
        let mark = if *cost == Cost::Draw { "" } else { " *" };
        text += &format!(
            "{name:<width$}  {cases:>5}  {alarms:>6}  {convicted:>9}  {share:>8.3}{mark}\n"
        );
    }
    let cases = cases.len();
    text += &format!(
        "{cases} cases in {} families. * slow ones, sampled less often: enough to show half of their noise.\n",
        families.len()
    );
    text += "\nNot tried:\n";
    for line in NOT_TRIED {
        text += &format!("- {line}\n");
    }
    text += &format!(
        "\nIf every claim is true, one is convicted with probability below {}.\n",
        above(1.0 - report.confidence())
    );
    text + report.sentence()
}

/// A small probability with one digit, rounded up: what is below the number is below what is printed.
fn above(probability: f64) -> String {
    let exponent = probability.log10().floor() as i32;
    match (probability / 10_f64.powi(exponent)).ceil() {
        digit if digit < 10.0 => format!("{digit}e{exponent}"),
        _ => format!("1e{}", exponent + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_doubt_is_rounded_up() {
        for (doubt, printed) in [(4.04e-8, "5e-8"), (3.9e-8, "4e-8"), (9.7e-8, "1e-7")] {
            assert_eq!(above(doubt), printed);
        }
    }

    /// The first line of the help says what is put on trial: each word of it has a case.
    #[test]
    fn whatever_the_help_names_is_tried() {
        let command = Arguments::augment_args(clap::Command::new("self"));
        let about = command.get_about().expect("help").to_string();
        let (_, named) = about.split_once(": ").expect("a list");
        let families: BTreeSet<&str> = crate::audit_cases::cases()
            .iter()
            .map(Case::family)
            .collect();
        let tried = |word: &str| families.iter().any(|family| family.contains(word));
        let words = [
            ("mechanisms", "discrete Laplace"),
            ("statistics of files", "statistic of a file"),
            ("SQL", "statement in SQL"),
            ("training", "training"),
            ("teachers", "teachers"),
            ("classical models", "classical model"),
        ];
        assert_eq!(named.split(", ").count(), words.len(), "{named}");
        for (word, family) in words {
            assert!(named.contains(word) && tried(family), "{word}");
        }
    }
}
