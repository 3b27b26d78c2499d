//! The program `whit`: differentially private answers at the command line.
//!
//! This crate reads arguments, opens files and prints. What is computed, and what may be refused, is decided in the crate
//! `whit`. stdout is data, stderr is talk.

mod account;
mod account_plot;
mod audit;
mod audit_cases;
mod audit_command;
mod audit_neighbours;
mod audit_runner;
mod audit_self;
mod audit_stop;
mod audit_train;
mod budget;
mod catalogued;
mod census;
mod check;
mod demo;
mod explain;
mod init;
mod ledger;
mod outcome;
mod pate;
mod pate_aggregate;
mod pate_choice;
mod pate_plan;
mod pate_plot;
mod pate_quote;
mod pate_result;
mod pate_train;
mod place;
mod plot;
mod predict;
mod progress;
mod query;
mod sheet;
mod stats;
mod table;
mod train;
mod train_fit;
mod train_plan;
mod train_plot;
mod train_result;
mod train_search;
mod train_stop;
mod train_watch;
mod train_words;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand, ValueEnum};
use whit::{Failure, FaultKind};

/// Planning a statement is thousands of small allocations, which takes a fifth longer with the system's own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Differentially private answers about private data.
///
/// Noise is added to every answer, just enough that it says almost the same whether any one person is in the data or not.
/// Each answer comes with its error bars and with what it cost.
#[derive(Parser)]
#[command(name = "whit", version, after_help = EXAMPLES, arg_required_else_help = false)]
struct Arguments {
    #[command(subcommand)]
    command: Command,

    /// How to print: a table for people, JSON for programs, failures included, or CSV for the rows of a query or of predictions
    #[arg(long, global = true, value_enum, default_value_t = Print::Table)]
    format: Print,
}

const EXAMPLES: &str = "\
Examples:
  whit query 'SELECT weekday, COUNT(*) AS n FROM purchases GROUP BY weekday'
      Private answers to SQL, paid from a budget; without a catalog, about the bundled shop.
  whit init visits.csv
      A first catalog for your own tables: whom to protect, and how much may be spent.
  whit budget
      What is left.
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
  whit train plan.toml --dry-run
      What training a model would cost; without --dry-run, the model.
  whit predict plan --data new.csv
      What the model says of other rows.
  whit pate plan --epsilon 2 --delta 1e-5 --queries 640
      Noise for the votes of teachers; whit pate aggregate turns votes into labels.
  whit audit self --quick
      What really leaks, measured; whit audit command doubts any other program.

Exit codes:
  0  answered
  1  invalid input or usage
  2  refused by a rule
  3  the budget is exhausted, or an audit refuted a claim
  4  an error inside this program, or damaged files
  130, 143  ended by Ctrl-C or SIGTERM. Training that says that it was stopped has kept what was done,
            says what is lost, and goes on by the same command;
            where nothing is said it goes on after what was kept last, and a search
            or a classical model is lost with what was paid for it";

#[derive(Subcommand)]
enum Command {
    Query(query::Arguments),
    Budget(budget::Arguments),
    Ledger(ledger::Arguments),
    Init(init::Arguments),
    Check(check::Arguments),
    Stats(stats::Arguments),
    Explain(explain::Arguments),
    Account(account::Arguments),
    Train(train::Arguments),
    Predict(predict::Arguments),
    Pate(pate::Arguments),
    Audit(audit::Arguments),
}

/// How to print, as it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Print {
    /// For people
    Table,
    /// For programs: one object on one line
    Json,
    /// For spreadsheets: a header and rows, and ' before text that looks like a formula; only for whit query and whit predict
    Csv,
}

impl Print {
    /// How to print what has no rows.
    fn format(self) -> Result<Format, Failure> {
        match self {
            Self::Table => Ok(Format::Table),
            Self::Json => Ok(Format::Json),
            Self::Csv => Err(Failure::invalid(
                "usage",
                "only the rows of whit query and whit predict are printed as CSV",
                "use --format table or --format json",
            )),
        }
    }
}

/// For people or for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Table,
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
    // Cases and their answers are JSON, whatever the format of the rest.
    let cases = |argument: &OsString| argument.to_string_lossy().starts_with("--json");
    let for_programs = format == Format::Json || arguments.iter().any(cases);
    let mut beside = Beside::default();
    let mut outcome = outcome::guard(|| run(arguments, &mut beside));
    let Beside {
        unanswered,
        violated,
        ended_by,
        mut unwritten,
    } = beside;
    if !for_programs {
        outcome = outcome
            .map(|text| sheet::printable_lines(&text))
            .map_err(clean);
        unwritten = unwritten.map(clean);
    }
    let code = outcome::show(outcome, format);
    // After the answer, and never in its place: what was found took its time.
    let unwritten = unwritten.as_ref().map(outcome::complain);
    // Cases fail one by one, each with a line of its own.
    if code != ExitCode::SUCCESS {
        code
    } else if unanswered {
        ExitCode::from(2)
    } else if violated {
        // An audit that refutes a claim has an answer, and is no success, whatever became of its report.
        ExitCode::from(3)
    } else if let Some(code) = unwritten {
        code
    } else if let Some(signal) = ended_by {
        ExitCode::from(signal.exit_code())
    } else {
        code
    }
}

/// What there is to say of an answer, beside its text.
#[derive(Default)]
struct Beside {
    /// A part of what was asked has no answer.
    unanswered: bool,
    /// An audit refuted a claim.
    violated: bool,
    /// Training was stopped.
    ended_by: Option<train_stop::Signal>,
    /// Why a file could not be written that was to hold the answer, too.
    unwritten: Option<Failure>,
}

/// Names and keys may hold anything. JSON has its own way to write that; elsewhere nothing may command a terminal.
fn clean(failure: Failure) -> Failure {
    let [reason, suggestion] = [failure.reason(), failure.suggestion()].map(sheet::printable_lines);
    match failure.kind() {
        FaultKind::Invalid => Failure::invalid(failure.code(), &reason, &suggestion),
        FaultKind::Refused => Failure::refused(failure.code(), &reason, &suggestion),
        FaultKind::Bug => Failure::bug(failure.code(), &reason, &suggestion),
        // Made of numbers and of names that accounts have checked.
        _ => failure,
    }
}

/// The text for stdout.
fn run(arguments: Vec<OsString>, beside: &mut Beside) -> Result<String, Failure> {
    let Beside {
        unanswered,
        violated,
        ended_by,
        unwritten,
    } = beside;
    match Arguments::try_parse_from(arguments) {
        Ok(Arguments { command, format }) => match command {
            Command::Query(arguments) => query::run(arguments, format),
            Command::Budget(arguments) => budget::run(arguments, format.format()?),
            Command::Ledger(arguments) => ledger::run(arguments, format.format()?),
            Command::Init(arguments) => init::run(arguments, format.format()?),
            Command::Check(arguments) => check::run(arguments, format.format()?),
            Command::Stats(arguments) => stats::run(arguments, format.format()?),
            Command::Explain(arguments) => explain::run(arguments, format.format()?),
            Command::Account(arguments) => account::run(arguments, format.format()?, unanswered),
            Command::Train(arguments) => train::run(arguments, format.format()?, ended_by),
            Command::Predict(arguments) => predict::run(arguments, format),
            Command::Pate(arguments) => pate::run(arguments, format.format()?, unwritten),
            Command::Audit(arguments) => {
                audit::run(arguments, format.format()?, violated, unwritten)
            }
        },
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Ok(error.to_string()),
            _ => Err(outcome::usage(&error)),
        },
    }
}

/// A bound that somebody typed.
pub(crate) fn whole_number(what: &str, text: &str) -> Result<u32, Failure> {
    text.trim().parse().map_err(|_| {
        let reason = format!("{what} is not a whole number below 2^32");
        Failure::invalid("not_a_number", &reason, "write a whole number such as 10")
    })
}
