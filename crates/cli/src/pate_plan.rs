//! `whit pate plan`: noise and threshold for an epsilon, on votes that are nobody's secret.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use whit::Failure;
use whit_learn::pate::{Choice, Declared, Goal, Terms, Votes, simulated, tune};

use crate::account::{number, plain, up};
use crate::catalogued::protects;
use crate::pate_aggregate::LayoutWord;
use crate::{Format, table};

/// Finds the threshold and the noise that answer most queries for an epsilon.
///
/// To choose them by looking at private votes would tell about those votes. So they are tried on votes that are public (--public-votes, such as those of teachers that were trained on public
/// data of the same kind), or on simulated ones: teachers of a given accuracy, on queries from easy to hard.
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
    /// How many teachers are simulated
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 250,
        conflicts_with = "public_votes"
    )]
    teachers: u64,
    /// Among how many classes
    #[arg(long, value_name = "NUMBER")]
    classes: Option<usize>,
    /// How accurate a simulated teacher is
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "0.84",
        conflicts_with = "public_votes"
    )]
    accuracy: String,
    /// Votes that are public: .npy, .csv or .parquet
    #[arg(long, value_name = "FILE")]
    public_votes: Option<PathBuf>,
    /// How that file holds them
    #[arg(long, value_enum, default_value_t = LayoutWord::Votes)]
    layout: LayoutWord,
    /// How many choices are shown
    #[arg(long, value_name = "NUMBER", default_value_t = 5)]
    show: usize,
}

const EXAMPLES: &str = "\
Examples:
  whit pate plan --epsilon 2 --delta 1e-5 --queries 640 --classes 10
      For 250 teachers of 84% accuracy.
  whit pate plan --epsilon 1 --delta 1e-6 --queries 2000 --public-votes votes.npy --format json";

pub(crate) fn run(arguments: Arguments, format: Format) -> Result<String, Failure> {
    let goal = Goal {
        epsilon: number("epsilon", &arguments.epsilon)?,
        delta: number("delta", &arguments.delta)?,
        queries: arguments.queries,
        agreement: number("the agreement", &arguments.agreement)?,
    };
    let votes = match &arguments.public_votes {
        Some(path) => {
            if let Some(private) = protects(path, None)? {
                return Err(Failure::refused(
                    "private_votes",
                    &format!(
                        "the file {path:?} is the private table {} of {:?}",
                        private.table, private.place.path
                    ),
                    "tune on public or simulated votes: which noise does well tells about votes",
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
                arguments.teachers,
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

fn value(choice: &Choice) -> serde_json::Value {
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
        "expected_answered": choice.answers,
        "agreement": choice.agreement,
    })
}

fn shown(choices: &[Choice], on: &str) -> String {
    let mut lines = Vec::new();
    for (place, choice) in choices.iter().enumerate() {
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
        let text = format!(
            "{}--sigma2 {} --queries {queries} --answers-max {answers_max} --delta {}",
            test.unwrap_or_default(),
            plain(*sigma),
            plain(*delta)
        );
        lines.push((format!("{}", place + 1), text));
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
