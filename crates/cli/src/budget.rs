//! `whit budget`: what is left.

use clap::Args;
use serde::Serialize;
use whit::Failure;
use whit::accounting::reserve::{Level, Standing};
use whit::session::Left;

use crate::place::PlaceArguments;
use crate::{Format, sheet, table};

/// What is left of the budget, for everybody who has one.
///
/// A budget is a cap on what all answers together may reveal about one unit, as an epsilon and a delta. In pure mode the epsilons
/// and deltas of answers are added up. In zcdp mode (a cap with a delta) concentrated losses are, called rho: about half the square of
/// an answer's epsilon. That lets through many more answers of a small epsilon, and fewer of a large one. What is left is then told
/// as the epsilon and delta that all of it converts to, which is more than one answer can have: whit query --explain tells what an
/// answer adds.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: PlaceArguments,
    /// Only what this analyst can spend: of their own, of their team's and of the data set's
    #[arg(long, value_name = "NAME")]
    analyst: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  whit budget
  whit budget --catalog shop/whit.toml --analyst ann --format json";

/// Where one level stands.
#[derive(Serialize)]
pub(crate) struct Line {
    level: &'static str,
    name: Option<String>,
    cap: Option<Left>,
    remaining: Option<Left>,
    /// The most delta that one statement can be charged.
    statement_delta: Option<f64>,
    spent: Spent,
}

/// The sums of a level: epsilon and delta in pure mode, rho and delta in zcdp mode.
#[derive(Serialize)]
struct Spent {
    epsilon: Option<f64>,
    rho: Option<f64>,
    delta: f64,
}

#[derive(Serialize)]
struct Budget {
    dataset: String,
    mode: &'static str,
    levels: Vec<Line>,
}

pub(crate) fn run(arguments: Arguments, format: Format) -> Result<String, Failure> {
    let session = arguments.place.find(format)?.open()?;
    let standings = match arguments.analyst.as_deref() {
        Some(analyst) => session.standings(Some(analyst))?,
        None => session.ledger().all_standings()?,
    };
    let mode = whit::session::terms(session.catalog()).mode;
    let budget = Budget {
        dataset: session.catalog().dataset().to_owned(),
        mode: mode.word(),
        levels: standings
            .iter()
            .map(|standing| line(standing, mode))
            .collect(),
    };
    match format {
        Format::Json => Ok(serde_json::to_string(&budget).expect("plain data")),
        Format::Table => Ok(words(&budget)),
    }
}

/// Where a level stands, for people and programs.
pub(crate) fn line(standing: &Standing, mode: whit::accounting::budget::Mode) -> Line {
    let (level, name) = match &standing.level {
        Level::Dataset => ("dataset", None),
        Level::Team(name) => ("team", Some(name.clone())),
        Level::Analyst(name) => ("analyst", Some(name.clone())),
        _ => ("other", None),
    };
    let pure = mode == whit::accounting::budget::Mode::Pure;
    let loss = standing.spent.loss.to_f64_up();
    Line {
        level,
        name,
        cap: standing
            .cap
            .map(|cap| Left::new(cap.epsilon(), cap.delta())),
        remaining: Left::of(standing),
        statement_delta: standing.cap.map(|cap| {
            let left = cap.remaining(standing.spent).left;
            left.delta.to_f64_down()
        }),
        spent: Spent {
            epsilon: pure.then_some(loss),
            rho: (!pure).then_some(loss),
            delta: standing.spent.delta.to_f64_up(),
        },
    }
}

fn words(budget: &Budget) -> String {
    let lines = budget.levels.iter().map(|line| words_of(line, budget));
    table::lines(&lines.collect::<Vec<_>>())
}

fn words_of(line: &Line, budget: &Budget) -> (String, String) {
    let whose = match &line.name {
        Some(name) => format!("{} {}", line.level, sheet::printable(name)),
        None => format!("{} {}", line.level, sheet::printable(&budget.dataset)),
    };
    (whose, spent(line))
}

/// What is left and what was spent, in a sentence.
pub(crate) fn spent(line: &Line) -> String {
    let pair = |left: &Left| match left.delta {
        0.0 => format!("epsilon {}", sheet::short_down(left.epsilon)),
        delta => format!(
            "epsilon {}, delta {}",
            sheet::short_down(left.epsilon),
            sheet::short_down(delta)
        ),
    };
    let (word, loss) = match line.spent.rho {
        Some(rho) => ("rho", rho),
        None => ("epsilon", line.spent.epsilon.unwrap_or_default()),
    };
    let mut sums = format!("spent {word} {}", sheet::short_up(loss));
    if line.spent.delta > 0.0 {
        sums += &format!(" and delta {}", sheet::short_up(line.spent.delta));
    }
    match (&line.remaining, &line.cap) {
        (Some(left), Some(cap)) => {
            let mut text = format!("{} left of {}; {sums}", pair(left), pair(cap));
            // Part of what is left is for converting sums, and no statement can have it.
            if let Some(delta) = line.statement_delta.filter(|delta| *delta < left.delta) {
                text += &format!("; statements can spend delta {}", sheet::short_down(delta));
            }
            text
        }
        _ => format!("no cap of its own; {sums}"),
    }
}
