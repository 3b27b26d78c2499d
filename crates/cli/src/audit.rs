//! `whit audit`: doubt, at the command line.

use std::fs;
use std::path::Path;

use clap::{Args, Subcommand};
use whit::Failure;
use whit_audit::{Report, Ruling};

use crate::{Format, audit_command, audit_self, audit_train};

/// Measures what really leaks, of whit or of any other program.
///
/// A guarantee is a claim about two data sets that differ in one record: no output may be much likelier on one than on the other. An audit runs
/// a mechanism many times on both, and looks for an output that is. What it finds is a lower bound on the loss, with its
/// confidence: it can refute a claim, and never prove one.
///
/// `whit audit command` doubts any program that reads a file. `whit audit train` doubts a plan of training. `whit audit self` doubts whit.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  whit audit self --quick
      What whit ships, in seconds.
  whit audit command --neighbour-a a.csv --neighbour-b b.csv --epsilon 1 -- python3 mine.py {}
      Your own program, or somebody else's.";

#[derive(Subcommand)]
enum Command {
    #[command(name = "command")]
    Program(Box<audit_command::Arguments>),
    Train(audit_train::Arguments),
    #[command(name = "self")]
    Whole(audit_self::Arguments),
}

/// What an audit came to.
pub(crate) struct Audited {
    text: String,
    verdict: Ruling,
    report: Result<(), Failure>,
}

impl Audited {
    /// Writes the report, if one was asked for. If that fails the text is there all the same: it may stand for hours of work.
    pub(crate) fn new(text: String, verdict: Ruling, report: &Report, path: Option<&Path>) -> Self {
        Self {
            text,
            verdict,
            report: path.map_or(Ok(()), |path| write_report(report, path)),
        }
    }
}

/// `violated` is set if a claim was refuted, and `unwritten` if the report could not be written at the end.
pub(crate) fn run(
    arguments: Arguments,
    format: Format,
    violated: &mut bool,
    unwritten: &mut Option<Failure>,
) -> Result<String, Failure> {
    let audited = match arguments.command {
        Command::Program(arguments) => audit_command::run(*arguments, format)?,
        Command::Train(arguments) => audit_train::run(&arguments, format)?,
        Command::Whole(arguments) => audit_self::run(&arguments, format)?,
    };
    *violated = audited.verdict == Ruling::Violated;
    *unwritten = audited.report.err();
    Ok(audited.text)
}

/// The code of a report that cannot be written.
pub(crate) const REPORT_NOT_WRITTEN: &str = "report_not_written";

/// Writes a report: JSON if the name ends so, and HTML otherwise.
fn write_report(report: &Report, path: &Path) -> Result<(), Failure> {
    let json = path.extension().is_some_and(|ending| ending == "json");
    let text = if json {
        serde_json::to_string_pretty(report).expect("a report is made of numbers and strings")
    } else {
        report.to_html()
    };
    #[expect(clippy::disallowed_methods, reason = "this is the door")]
    fs::write(path, text).map_err(|error| {
        let reason = format!("the report cannot be written: {error}");
        Failure::invalid(
            REPORT_NOT_WRITTEN,
            &reason,
            "name a file in a folder that you can write to",
        )
    })
}
