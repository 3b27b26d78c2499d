//! `whit audit self`: what whit ships, doubted by its own instruments.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use clap::Args;
use whit::Failure;
use whit_audit::{Report, Row, Ruling};
use whit_trial::{Case, Effort, Finding, Share, cases, trial};

use crate::Format;
use crate::audit::write_report;

/// Puts the mechanisms that whit ships on trial.
///
/// Three hundred cases, each a mechanism with two neighbouring inputs and an event whose probabilities are known, are sampled in both worlds and
/// compared with what is claimed. A first look at level 1e-3 convicts nobody; what alarms there is sampled again, four times as often and with
/// fresh entropy, at level 1e-7. With a million samples (the default) every case would show ten percent too little noise; `--quick` takes seconds, and would show half.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A few thousand samples of each case: seconds instead of minutes
    #[arg(long, conflicts_with = "samples")]
    quick: bool,

    /// Samples of each world in the first look
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

pub(crate) fn run(arguments: &Arguments, format: Format) -> Result<(String, Ruling), Failure> {
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
    let cases = cases();
    let findings = findings(&cases, effort)?;
    let rows = cases.iter().zip(&findings).map(|(case, finding)| {
        Row::of_bound(case.name(), &finding.bound, Some(case.claimed())).in_series(case.family())
    });
    let report = Report::new("whit, audited by itself", rows.collect());
    if let Some(path) = &arguments.report {
        write_report(&report, path)?;
    }
    let text = match format {
        Format::Json => {
            serde_json::to_string(&report).expect("a report is made of numbers and strings")
        }
        Format::Table => table(&cases, &findings, &report),
    };
    Ok((text, report.verdict()))
}

/// Every case once, on all cores.
fn findings(cases: &[Case], effort: Effort) -> Result<Vec<Finding>, Failure> {
    let next = AtomicUsize::new(0);
    let found: Mutex<Vec<Option<Finding>>> = Mutex::new(vec![None; cases.len()]);
    let (terminal, started) = (io::stderr().is_terminal(), Instant::now());
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(case) = cases.get(at) else { return };
            let finding = trial(case, Share::ALL, effort).ok();
            found.lock().unwrap_or_else(PoisonError::into_inner)[at] = finding;
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
    let findings: Option<Vec<Finding>> = found.into_iter().collect();
    findings.ok_or_else(|| {
        Failure::bug(
            "entropy",
            "the operating system gave no entropy, so not every case was tried",
            "try again",
        )
    })
}

fn table(cases: &[Case], findings: &[Finding], report: &Report) -> String {
    // (cases, first alarms, convicted, least and largest share of the claimed loss that was measured)
    let mut families: Vec<(&str, usize, usize, usize, f64)> = Vec::new();
    for (case, finding) in cases.iter().zip(findings) {
        if families.last().is_none_or(|last| last.0 != case.family())
            && !families.iter().any(|known| known.0 == case.family())
        {
            families.push((case.family(), 0, 0, 0, 0.0));
        }
        if let Some(family) = families.iter_mut().find(|known| known.0 == case.family()) {
            family.1 += 1;
            family.2 += usize::from(finding.alarmed);
            family.3 += usize::from(finding.convicted());
            family.4 = family
                .4
                .max(finding.bound.epsilon_lower() / case.claimed().value());
        }
    }
    let width = families
        .iter()
        .map(|family| family.0.len())
        .max()
        .unwrap_or(0);
    let mut text = format!(
        "{:<width$}  cases  alarms  convicted  measured/claimed, at most\n",
        "mechanism"
    );
    for (name, cases, alarms, convicted, share) in &families {
        text += &format!("{name:<width$}  {cases:>5}  {alarms:>6}  {convicted:>9}  {share:>8.3}\n");
    }
    text + "\n" + report.sentence()
}
