//! The program `whit`: differentially private answers at the command line.
//!
//! This crate reads arguments, opens files and prints. What is computed, and what may be refused, is decided in the crate
//! `whit`. stdout is data, stderr is talk.

mod account;
mod account_plot;
mod census;
mod explain;
mod outcome;
mod plot;
mod progress;
mod stats;
mod table;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand, ValueEnum};
use whit::Failure;

/// Differentially private answers about private data.
///
/// Noise is added to every answer, just enough that it says almost the same whether any one person is in the data or not.
/// Each answer comes with its error bars and with what it cost.
#[derive(Parser)]
#[command(name = "whit", version, after_help = EXAMPLES, arg_required_else_help = false)]
struct Arguments {
    #[command(subcommand)]
    command: Command,

    /// How to print: a table for people, or JSON for programs, failures included
    #[arg(long, global = true, value_enum, default_value_t = Format::Table)]
    format: Format,
}

const EXAMPLES: &str = "\
Examples:
  whit stats count --epsilon 1
      How many rows the bundled census data has, give or take a few.
  whit stats mean people.csv --column age --range 0,120 --epsilon 0.5
      The mean of a column of your own file.
  whit stats --help
      All statistics, with more examples.
  whit explain --epsilon 0.5
      What that protects from, in plain words.
  whit account epsilon --delta 1e-5 'gaussian(sigma=20) x 512'
      What many noisy answers cost together.

Exit codes:
  0  answered
  1  invalid input or usage
  2  refused by a rule
  3  the budget is exhausted
  4  an error inside this program, or damaged files";

#[derive(Subcommand)]
enum Command {
    Stats(stats::Arguments),
    Explain(explain::Arguments),
    Account(account::Arguments),
}

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Table,
    /// For programs: one object on one line
    Json,
}

impl Format {
    /// What the arguments ask for, even if they cannot be parsed.
    fn asked(arguments: &[OsString]) -> Self {
        let json = |pair: &[OsString]| pair[0] == "--format" && pair[1] == "json";
        let asked = arguments.windows(2).any(json)
            || arguments.iter().any(|argument| argument == "--format=json");
        if asked { Self::Json } else { Self::Table }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let format = Format::asked(&arguments);
    let mut unanswered = false;
    let outcome = outcome::guard(|| run(arguments, &mut unanswered));
    let code = outcome::show(outcome, format);
    // Cases fail one by one, each with a line of its own.
    if unanswered && code == ExitCode::SUCCESS {
        ExitCode::from(2)
    } else {
        code
    }
}

/// The text for stdout; `unanswered` is set if a part of what was asked has no answer.
fn run(arguments: Vec<OsString>, unanswered: &mut bool) -> Result<String, Failure> {
    match Arguments::try_parse_from(arguments) {
        Ok(Arguments { command, format }) => match command {
            Command::Stats(arguments) => stats::run(arguments, format),
            Command::Explain(arguments) => explain::run(arguments, format),
            Command::Account(arguments) => account::run(arguments, format, unanswered),
        },
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Ok(error.to_string()),
            _ => Err(outcome::usage(&error)),
        },
    }
}
