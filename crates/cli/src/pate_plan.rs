//! `whit pate plan`: noise and threshold for an epsilon, on votes that are nobody's secret, or by private ones for a price.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use whit::Failure;
use whit_learn::pate::{Choice, Declared, Goal, Terms, Votes, simulated, tune};

use crate::account::{number, plain, up};
use crate::catalogued::protects;
use crate::pate_aggregate::LayoutWord;
use crate::{Format, pate_choice, table};

/// How many teachers are simulated if nobody says.
const TEACHERS: u64 = 250;

/// Finds the threshold and the noise that answer most queries for an epsilon.
///
/// To choose them by looking at private votes would tell about those votes. So they are tried on votes that are public (--public-votes, such as those of teachers that were trained on public
/// data of the same kind), or on simulated ones: teachers of a given accuracy, on queries from easy to hard.
///
/// With --private-votes the choice is among those that are best for simulated teachers of six accuracies, and which of them it is depends on private votes: the one whose simulated teachers agree as far as yours is likeliest, by the exponential mechanism, and rather one for worse teachers than one for better ones, whose answers would be
/// wrong more often than --agreement allows. That costs --choice-epsilon, beside what the choice itself costs when it is used, and is charged before it is made if --catalog and --table name a private table whose units went to one teacher each. Nothing else is shown of those votes.
///
/// Every choice keeps the epsilon as a guarantee, whatever the votes will be; how many answers it gives depends on them. Of the choices whose answers are the winner of the votes as often as
/// --agreement says, those with most answers are shown.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The guarantee's epsilon, at most
    #[arg(long, value_name = "NUMBER")]
    epsilon: String,
    /// Its delta
    #[arg(long, value_name = "NUMBER")]
    delta: String,
    /// How many queries will be asked
    #[arg(long, value_name = "NUMBER")]
    queries: u64,
    /// Which share of the answers should be the winner of the votes
    #[arg(long, value_name = "SHARE", default_value = "0.95")]
    agreement: String,
    /// How many teachers are simulated, 250 if it is not said; or how many have cast private votes, which is checked, and must be said if a ledger is charged
    #[arg(long, value_name = "NUMBER", conflicts_with = "public_votes")]
    pub(crate) teachers: Option<u64>,
    /// Among how many classes. Of private votes it must be said, unless they are a histogram
    #[arg(long, value_name = "NUMBER")]
    pub(crate) classes: Option<usize>,
    /// How accurate a simulated teacher is
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "0.84",
        conflicts_with_all = ["public_votes", "private_votes"]
    )]
    accuracy: String,
    /// Votes that are public: .npy, .csv or .parquet
    #[arg(long, value_name = "FILE")]
    public_votes: Option<PathBuf>,
    /// Votes that are private, by which one choice is made for the price of --choice-epsilon
    #[arg(long, value_name = "FILE", conflicts_with_all = ["public_votes", "show"], requires = "choice_epsilon")]
    pub(crate) private_votes: Option<PathBuf>,
    /// The epsilon of a choice by private votes: the larger, the likelier the best
    #[arg(long, value_name = "NUMBER", requires = "private_votes")]
    pub(crate) choice_epsilon: Option<String>,
    /// How the file of votes holds them
    #[arg(long, value_enum, default_value_t = LayoutWord::Votes)]
    pub(crate) layout: LayoutWord,
    /// How many choices are shown
    #[arg(long, value_name = "NUMBER", default_value_t = 5)]
    show: usize,
    /// The catalog whose ledger pays for a choice by private votes; with --table
    #[arg(
        long,
        value_name = "WHIT.TOML",
        requires = "table",
        requires = "private_votes"
    )]
    pub(crate) catalog: Option<PathBuf>,
    /// The private table that the teachers were trained on, each unit's rows by one of them
    #[arg(long, value_name = "TABLE", requires = "catalog")]
    pub(crate) table: Option<String>,
    /// The ledger; else where the catalog says
    #[arg(long, value_name = "PATH", requires = "catalog")]
    pub(crate) ledger: Option<PathBuf>,
    /// Who asks, and is charged besides the data set
    #[arg(long, value_name = "NAME", requires = "catalog")]
    pub(crate) analyst: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  whit pate plan --epsilon 2 --delta 1e-5 --queries 640 --classes 10
      For 250 teachers of 84% accuracy.
  whit pate plan --epsilon 1 --delta 1e-6 --queries 2000 --public-votes votes.npy --format json
  whit pate plan --epsilon 2 --delta 1e-5 --queries 640 --classes 10 --teachers 250 --private-votes votes.npy --choice-epsilon 0.5 --catalog whit.toml --table patients
      Which of six choices is for teachers like those of private votes, for an epsilon of 0.5.";

pub(crate) fn run(arguments: &Arguments, format: Format) -> Result<String, Failure> {
    let goal = Goal {
        epsilon: number("epsilon", &arguments.epsilon)?,
        delta: number("delta", &arguments.delta)?,
        queries: arguments.queries,
        agreement: number("the agreement", &arguments.agreement)?,
    };
    if let (Some(path), Some(epsilon)) = (&arguments.private_votes, &arguments.choice_epsilon) {
        let epsilon = number("the epsilon of the choice", epsilon)?;
        return pate_choice::run(arguments, path, (&goal, epsilon), format);
    }
    let votes = match &arguments.public_votes {
        Some(path) => {
            if let Some(private) = protects(path, None)? {
                return Err(private.as_votes(
                    path,
                    "tune on simulated votes (leave --public-votes out), or on those of teachers of public data: which noise does well tells about votes; or pay for a choice by votes of teachers, in a file that no catalog has as a private table, with --private-votes, --choice-epsilon, --catalog and --table",
                ));
            }
            let declared = Declared {
                classes: arguments.classes,
                teachers: None,
            };
            // Declared public by whoever asks.
            Votes::read(path, arguments.layout.layout(), declared)?.expose()
        }
        None => {
            let accuracy = number("the accuracy", &arguments.accuracy)?;
            simulated(
                arguments.teachers.unwrap_or(TEACHERS),
                arguments.classes.unwrap_or(10),
                accuracy,
            )?
        }
    };
    let choices = tune(&votes, &goal, arguments.show.max(1))?;
    if choices.is_empty() {
        return Err(Failure::refused(
            "no_choice",
            "no noise and threshold that were tried keep this epsilon and agree as often",
            "ask fewer queries, train more teachers, or allow a larger epsilon or less agreement",
        ));
    }
    let on = match arguments.public_votes {
        Some(_) => "public votes",
        None => "simulated votes",
    };
    Ok(match format {
        Format::Json => {
            json!({ "votes": on, "choices": choices.iter().map(value).collect::<Vec<_>>() })
                .to_string()
        }
        Format::Table => shown(&choices, on),
    })
}

fn value(choice: &Choice) -> Value {
    let mut all = parameters(choice);
    all["expected_answered"] = json!(choice.answers);
    all["agreement"] = json!(choice.agreement);
    all
}

/// The public numbers of a choice, and what it costs when it is used.
pub(crate) fn parameters(choice: &Choice) -> Value {
    let Terms {
        test,
        sigma,
        queries,
        answers_max,
        delta,
        ..
    } = choice.aggregation.terms();
    json!({
        "threshold": test.map(|test| test.threshold),
        "sigma1": test.map(|test| test.sigma),
        "sigma2": sigma,
        "queries": queries,
        "answers_max": answers_max,
        "epsilon": choice.aggregation.epsilon(),
        "delta": delta,
    })
}

/// The same as options of `whit pate aggregate`.
pub(crate) fn options(choice: &Choice) -> String {
    let Terms {
        test,
        sigma,
        queries,
        answers_max,
        delta,
        ..
    } = choice.aggregation.terms();
    let test = test.map(|test| {
        format!(
            "--threshold {} --sigma1 {} ",
            plain(test.threshold),
            plain(test.sigma)
        )
    });
    format!(
        "{}--sigma2 {} --queries {queries} --answers-max {answers_max} --delta {}",
        test.unwrap_or_default(),
        plain(*sigma),
        plain(*delta)
    )
}

fn shown(choices: &[Choice], on: &str) -> String {
    let mut lines = Vec::new();
    for (place, choice) in choices.iter().enumerate() {
        lines.push((format!("{}", place + 1), options(choice)));
        lines.push((
            String::new(),
            format!(
                "about {:.0} answers, {:.1}% of them the winner of the votes; epsilon {}",
                choice.answers,
                100.0 * choice.agreement,
                up(choice.aggregation.epsilon(), 6)
            ),
        ));
    }
    format!(
        "{}\nExpected on {on}; the epsilon holds on any.",
        table::lines(&lines)
    )
}
