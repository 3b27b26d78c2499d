//! `whit audit command`: doubts any program that reads a file and prints a number.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use whit::core::round;
use whit::{Delta, Epsilon, Failure, Fault};
use whit_audit::{
    Alpha, Claim, EpsilonBound, Group, Outcome, Outputs, Report, Row, Ruling, Share, Target, World,
};

use crate::audit::{Audited, REPORT_NOT_WRITTEN};
use crate::audit_neighbours::Neighbours;
use crate::audit_runner::Program;
use crate::pate_result::tried;
use crate::{Format, audit_stop, sheet};

/// Runs a program on two neighbouring files, many times, and measures how far its answers tell them apart.
///
/// The program is run without a shell; {} in its arguments becomes the file. It prints one number and ends. Everything else that can happen is an outcome
/// too: how the number is written, an exit code or a signal, a timeout, bytes that are no number, nothing at all, and what was printed before a failure. What goes to stderr is not looked at. Runs are independent as far as the program is: it must
/// draw fresh noise each time.
///
/// Each run reads a copy of its own, alone in a new folder with a random name (in TMPDIR, removed at the end). The copy is called data, with the ending of the two files, which must be the same: their names, folders and
/// times are nobody's record, and are not seen.
///
/// The first half of the trials chooses what to look for, the second half counts it. The answer is a lower bound on epsilon that holds with the
/// stated confidence, whatever the program is, and a verdict: violated (the bound is above the claim), consistent (it is
/// not, and randomized response that loses twice the claim would have been convicted nine times out of ten; what shows less at once may pass), or inconclusive (too few
/// trials for that, no claim, or more than one outcome in a hundred that cannot be compared: text that is new each time, runs out of time; the share of them is said).
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// One of two files that differ in one record, and whose names end the same
    #[arg(long, value_name = "FILE")]
    neighbour_a: PathBuf,

    /// The other one
    #[arg(long, value_name = "FILE")]
    neighbour_b: PathBuf,

    /// The epsilon that the program claims
    #[arg(long, value_name = "EPSILON")]
    epsilon: Option<f64>,

    /// The delta that the program claims
    #[arg(long, value_name = "DELTA", default_value_t = 0.0)]
    delta: f64,

    /// In how many records the files differ, if it is more than one
    #[arg(long, value_name = "RECORDS", default_value_t = 1)]
    group: u32,

    /// How many answers of the program on each file
    #[arg(long, value_name = "N", default_value_t = 1000)]
    trials: usize,

    /// How often a bound made this way holds
    #[arg(long, value_name = "SHARE", default_value_t = 0.99)]
    confidence: f64,

    /// Seconds after which a run is ended, with all that it started. Ctrl-C ends those that are under way, too
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    timeout: f64,

    /// How many runs at the same time; as many as the machine has cores if not given
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,

    /// A run prints so many lines, each the answer of an independent run that the program makes itself: for programs that start slowly. Runs that print the same lines are refused
    #[arg(long, value_name = "LINES")]
    batch: Option<usize>,

    /// Write a report here as well: JSON if the name ends with .json, otherwise one HTML file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// The program and its arguments, with {} for the file
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  whit audit command --neighbour-a a.csv --neighbour-b b.csv --epsilon 1 -- whit stats count {} --epsilon 1 --format json
      Text that is no number is compared as text, and only text that repeats; a program that prints the bare number says more.
  whit audit command --neighbour-a a.csv --neighbour-b b.csv --epsilon 1 --trials 20000 --batch 1000 -- python3 mine.py {}
      mine.py prints 1000 lines, each an answer with noise of its own.

Exit codes:
  0  no claim was refuted
  1  invalid input or usage
  3  violated: the claim is false, with the stated confidence";

/// All answers are kept until they are counted: so many on each file take a few gigabytes at most.
const TRIALS_MAX: usize = 1 << 24;
/// More threads than this start no program sooner.
const JOBS_MAX: usize = 1024;

/// What the command prints for programs.
#[derive(Serialize)]
struct Answer {
    epsilon_lower: f64,
    confidence: f64,
    claimed: Option<f64>,
    verdict: Ruling,
    delta: f64,
    group: u32,
    trials: [usize; 2],
    event: Found,
    outcomes: [BTreeMap<String, usize>; 2],
    /// The share of runs that no attack could look into, in the half and on the file where it is largest.
    unseen: f64,
    sentence: String,
    /// Trials on each file from which on the verdict could have been consistent, if these are too few.
    #[serde(skip_serializing_if = "Option::is_none")]
    trials_needed: Option<u64>,
}

/// What was counted on the second half.
#[derive(Serialize)]
struct Found {
    name: String,
    likelier_in: &'static str,
    hits_a: u64,
    counted_a: u64,
    hits_b: u64,
    counted_b: u64,
}

pub(crate) fn run(arguments: Arguments, format: Format) -> Result<Audited, Failure> {
    let asked = Asked::new(&arguments)?;
    // Before the work, which would be lost with it.
    if let Some(path) = &arguments.report {
        tried(path, REPORT_NOT_WRITTEN)?;
    }
    let program = asked.program;
    audit_stop::watch();
    let neighbours = Neighbours::new([&arguments.neighbour_a, &arguments.neighbour_b])?;
    let rehearsed = program.rehearse(&neighbours)?;
    let runs = arguments.trials.div_ceil(program.batch.unwrap_or(1)).max(1);
    let [a, b] = program.run_on(&neighbours, runs, rehearsed)?;
    drop(neighbours);
    let outcomes = [&a, &b].map(|outcomes| kinds(outcomes));
    let trials = [a.len(), b.len()];
    let (shown, held) = Outputs::new(a, b).split();
    let event = shown.program_event(asked.target).map_err(fault)?;
    let seen = shown.count(&event, held);
    let counts = seen.counts();
    let mut bound = counts
        .epsilon_lower(asked.target.delta, asked.target.group, asked.alpha)
        .map_err(fault)?;
    let ruling = |bound: &EpsilonBound| {
        let claimed = asked.claimed;
        claimed.map_or(Ruling::Inconclusive, |claimed| bound.ruling(claimed))
    };
    let mut unjudged = false;
    if ruling(&bound) == Ruling::Consistent
        && let Some(why) = seen.why_unjudged()
    {
        bound = bound.unjudged(why);
        unjudged = true;
    }
    let verdict = ruling(&bound);
    let tally = &counts.tallies()[0];
    let (in_a, in_b) = match event.likelier_in() {
        World::One => (tally.likely(), tally.unlikely()),
        World::Other => (tally.unlikely(), tally.likely()),
    };
    let row = Row::of_bound(event.name(), &bound, asked.claimed);
    let name = program.words[0].to_string_lossy();
    let report = Report::new(format!("Audit of {name}"), vec![row])
        .with_setting("command", spoken(&program.words))
        .with_setting("trials", format!("{} on a, {} on b", trials[0], trials[1]))
        .with_setting("event", event.name())
        .with_setting("counted on a", format!("{} of {}", in_a.hits, in_a.trials))
        .with_setting("counted on b", format!("{} of {}", in_b.hits, in_b.trials))
        .with_setting("outcomes of a", list(&outcomes[0]))
        .with_setting("outcomes of b", list(&outcomes[1]))
        .with_setting("not seen", not_seen(seen.unseen()));
    // Where nothing can be judged, more of it would not help.
    let too_few = verdict == Ruling::Inconclusive && !unjudged;
    let needed = asked.claimed.filter(|_| too_few);
    let answer = Answer {
        epsilon_lower: bound.epsilon_lower(),
        confidence: arguments.confidence,
        claimed: arguments.epsilon,
        verdict,
        delta: arguments.delta,
        group: arguments.group,
        trials,
        event: found(&event, in_a, in_b),
        outcomes,
        unseen: seen.unseen(),
        sentence: report.sentence().to_owned(),
        trials_needed: needed
            .and_then(|claimed| {
                whit_audit::trials_to_reach(claimed, asked.target.group, asked.alpha)
            })
            // As many again are shown.
            .map(|held| 2 * held),
    };
    let text = match format {
        Format::Json => {
            serde_json::to_string(&answer).expect("an answer is made of numbers and strings")
        }
        Format::Table => table(&answer),
    };
    Ok(Audited::new(
        text,
        verdict,
        &report,
        arguments.report.as_deref(),
    ))
}

/// A command as it was typed, but for the quotes of a shell.
fn spoken(words: &[OsString]) -> String {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

fn list(kinds: &BTreeMap<String, usize>) -> String {
    let list: Vec<String> = kinds
        .iter()
        .map(|(kind, n)| format!("{n} {kind}"))
        .collect();
    list.join(", ")
}

/// The share that no attack could look into.
fn not_seen(share: f64) -> String {
    // Rounded up: what is hidden is at most that.
    let percent = (share * 1e4 - 1e-9).max(0.0).ceil() / 100.0;
    format!(
        "{percent} % of the runs, at most: no attack could look into them, and whatever they show has passed"
    )
}

/// What was asked, in units.
struct Asked {
    claimed: Option<Claim>,
    target: Target,
    alpha: Alpha,
    program: Program,
}

impl Asked {
    fn new(arguments: &Arguments) -> Result<Self, Failure> {
        let claimed = arguments.epsilon.map(Epsilon::new).transpose();
        let delta = Delta::new(arguments.delta);
        let confidence = arguments.confidence;
        if !(0.5..1.0).contains(&confidence) {
            return Err(Failure::invalid(
                "confidence",
                "the confidence is not between one half and one",
                "give a share such as --confidence 0.99",
            ));
        }
        let alpha = Alpha::new(round::sub_down(1.0, confidence)).map_err(fault)?;
        if !arguments
            .command
            .iter()
            .any(|word| word.to_string_lossy().contains("{}"))
        {
            return Err(Failure::invalid(
                "no_place_for_the_file",
                "the command has no {}, so it would not read the files",
                "write {} where the program expects the name of its file, as in: -- python3 mine.py {}",
            ));
        }
        let positive = |what: &str, ok: bool| {
            if ok {
                return Ok(());
            }
            let reason = format!("{what} is not a positive number");
            Err(Failure::invalid("not_positive", &reason, "give at least 1"))
        };
        let at_most = |what: &str, given: usize, most: usize| {
            if given <= most {
                return Ok(());
            }
            let (reason, passes) = (format!("{what} is {given}"), format!("give at most {most}"));
            Err(Failure::invalid("too_many", &reason, &passes))
        };
        positive("--trials", arguments.trials >= 1)?;
        at_most("--trials", arguments.trials, TRIALS_MAX)?;
        positive("--batch", arguments.batch != Some(0))?;
        at_most("--batch", arguments.batch.unwrap_or(1), TRIALS_MAX)?;
        positive("--jobs", arguments.jobs != Some(0))?;
        at_most("--jobs", arguments.jobs.unwrap_or(1), JOBS_MAX)?;
        let timeout = Duration::try_from_secs_f64(arguments.timeout)
            .ok()
            .filter(|timeout| !timeout.is_zero() && timeout.as_secs() <= 1_000_000);
        positive("--timeout, up to a million,", timeout.is_some())?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let delta = delta.map_err(fault)?;
        let claimed = claimed.map_err(fault)?;
        Ok(Self {
            claimed: claimed.map(|epsilon| Claim { epsilon, delta }),
            target: Target {
                delta,
                group: Group::new(arguments.group).map_err(fault)?,
            },
            alpha,
            program: Program {
                words: arguments.command.clone(),
                timeout: timeout.unwrap_or_default(),
                batch: arguments.batch,
                jobs: arguments.jobs.unwrap_or(cores),
            },
        })
    }
}

fn fault(error: impl Fault) -> Failure {
    Failure::new(&error)
}

fn kinds(outcomes: &[Outcome]) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for outcome in outcomes {
        *kinds.entry(outcome.kind()).or_insert(0) += 1;
    }
    kinds
}

fn found(event: &whit_audit::Event<Outcome>, in_a: Share, in_b: Share) -> Found {
    Found {
        name: event.name().to_owned(),
        likelier_in: match event.likelier_in() {
            World::One => "a",
            World::Other => "b",
        },
        hits_a: in_a.hits,
        counted_a: in_a.trials,
        hits_b: in_b.hits,
        counted_b: in_b.trials,
    }
}

fn table(answer: &Answer) -> String {
    let Answer { event, delta, .. } = answer;
    let claimed = answer.claimed.map_or("nothing".into(), |epsilon| {
        format!("epsilon {epsilon}, delta {delta}")
    });
    let mut text = format!(
        "verdict    {}\nclaimed    {claimed}\nmeasured   epsilon at least {:.4}, with {} % confidence\n\
         event      {}: {} of {} on a, {} of {} on b\noutcomes   a: {}\n           b: {}\n",
        answer.verdict,
        // Rounded down, as a lower bound is.
        (answer.epsilon_lower * 1e4).floor() / 1e4,
        (answer.confidence * 1e8).round() / 1e6,
        sheet::printable(&event.name),
        event.hits_a,
        event.counted_a,
        event.hits_b,
        event.counted_b,
        list(&answer.outcomes[0]),
        list(&answer.outcomes[1]),
    );
    if answer.unseen > 0.0 {
        text += &format!("not seen   {}\n", not_seen(answer.unseen));
    }
    if let Some(needed) = answer.trials_needed {
        text += &format!("trials     {needed} on each file could tell twice the claim\n");
    }
    text + "\n" + &answer.sentence
}
