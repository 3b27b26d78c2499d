//! `whit explain`: a guarantee in plain words.

use std::path::PathBuf;

use clap::Args;
use plotters::style::RGBColor;
use whit::explain::{Explanation, Question, explain, trade_off};
use whit::{Delta, Epsilon, Failure};

use crate::account::does_not_vanish;
use crate::plot::{Curve, Picture, Plot};
use crate::{Format, table};

/// What an epsilon (and a delta) means for one person.
///
/// All numbers are worst cases: they hold for every mechanism with the guarantee, whatever an attacker knows besides, and however
/// he computes.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The loss to explain
    #[arg(long, value_name = "EPSILON", allow_hyphen_values = true)]
    epsilon: String,
    /// The slack, if there is one
    #[arg(
        long,
        value_name = "DELTA",
        default_value = "0",
        allow_hyphen_values = true
    )]
    delta: String,
    /// What somebody believes about a person before the answer, as a probability
    #[arg(
        long,
        value_name = "P",
        default_value = "0.5",
        allow_hyphen_values = true
    )]
    prior: String,
    /// How many people hang together, such as a household
    #[arg(long, value_name = "PEOPLE", default_value_t = 1)]
    group: u32,
    /// Draw what tests of membership can reach, to a file that ends in .svg or .png
    #[arg(long, alias = "output", value_name = "FILE")]
    plot: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  whit explain --epsilon 1
  whit explain --epsilon 0.1 --prior 0.01
      Somebody thinks you have a disease with 1%: what can he think afterwards?
  whit explain --epsilon 1 --delta 1e-6 --group 3
      A family of three.
  whit explain --epsilon 1 --plot region.svg";

pub(crate) fn run(arguments: Arguments, format: Format) -> Result<String, Failure> {
    for (what, text) in [
        ("epsilon", &arguments.epsilon),
        ("delta", &arguments.delta),
        ("prior", &arguments.prior),
    ] {
        does_not_vanish(what, text)?;
    }
    let question = Question {
        epsilon: arguments
            .epsilon
            .parse::<Epsilon>()
            .map_err(|error| Failure::new(&error))?,
        delta: arguments
            .delta
            .parse::<Delta>()
            .map_err(|error| Failure::new(&error))?,
        prior: arguments.prior.trim().parse().map_err(|_| {
            Failure::invalid(
                "not_a_number",
                "the prior is not a number",
                "write it as a number from 0 to 1, such as 0.01",
            )
        })?,
        group: arguments.group,
    };
    let explanation = explain(question).map_err(|error| Failure::new(&error))?;
    if let Some(path) = &arguments.plot {
        plot(question)?.write(path)?;
    }
    Ok(match format {
        Format::Json => serde_json::to_string(&explanation).expect("numbers and lists"),
        Format::Table => words(&explanation),
    })
}

fn words(explanation: &Explanation) -> String {
    let whom = match explanation.group {
        1 => "you are".to_owned(),
        people => format!("your group of {people} is"),
    };
    let delta = match explanation.delta {
        0.0 => String::new(),
        delta => format!(", delta {delta:e}"),
    };
    let growth = 100.0 * (explanation.risk_factor_max - 1.0);
    let test = |false_positives: f64| {
        explanation
            .tests
            .iter()
            .find(|test| test.false_positives == false_positives)
    };
    let mut lines = vec![
        (
            "guarantee".to_owned(),
            format!(
                "epsilon {}{delta}, whether {whom} in the data or not",
                explanation.epsilon
            ),
        ),
        (
            "risk".to_owned(),
            format!(
                "Whatever could happen because of the answer becomes at most {} times as likely: {} more.{}",
                up(explanation.risk_factor_max, 4),
                percent(growth),
                if explanation.delta > 0.0 {
                    " (Up to an extra probability of delta.)"
                } else {
                    ""
                },
            ),
        ),
        (
            "guessing".to_owned(),
            format!(
                "Somebody who has to guess whether {whom} in the data, and sees the answer, is right at most {} of the time. Without the \
                 answer, a coin gives 50%.",
                percent(100.0 * explanation.right_guesses_max)
            ),
        ),
    ];
    if let Some(test) = test(0.05) {
        let caught = percent(100.0 * (1.0 - test.false_negatives_min));
        lines.push((
            "testing".into(),
            format!("A test that wrongly flags 5% of those who are not in the data finds at most {caught} of those who are."),
        ));
    }
    let except = match explanation.posterior_except {
        0.0 => String::new(),
        except => format!(
            " (Except with a probability of at most {} on each side.)",
            up(except, 3)
        ),
    };
    lines.push((
        "belief".into(),
        format!(
            "Whoever believed something about you with {} believes it afterwards with at least {} and at most {}.{except}",
            percent(100.0 * explanation.prior),
            percent_down(100.0 * explanation.posterior_min),
            percent(100.0 * explanation.posterior_max),
        ),
    ));
    lines.push((
        "not said".into(),
        "What is true of people like you can be learned from others' data, and then be concluded about you, whether you take part or not."
            .into(),
    ));
    table::lines(&lines)
}

/// So many digits, never below the number.
fn up(value: f64, digits: usize) -> String {
    let unit = 10_f64.powi(value.abs().log10().floor() as i32 + 1 - digits as i32);
    let shown = (value / unit - 1e-9).ceil() * unit;
    if (1e-3..1e7).contains(&shown) {
        let places = (-unit.log10().round()).max(0.0) as usize;
        format!("{shown:.places$}")
    } else {
        format!("{shown:.*e}", digits - 1)
    }
}

fn percent(value: f64) -> String {
    if value == 0.0 {
        "0%".into()
    } else {
        format!("{}%", trim(up(value, 3)))
    }
}

fn percent_down(value: f64) -> String {
    // Three digits, cut off.
    if value <= 0.0 {
        return "0%".into();
    }
    let unit = 10_f64.powi(value.log10().floor() as i32 - 2);
    let places = (-unit.log10().round()).max(0.0) as usize;
    format!(
        "{}%",
        trim(format!("{:.places$}", (value / unit + 1e-9).floor() * unit))
    )
}

fn trim(text: String) -> String {
    if text.contains('.') && !text.contains('e') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text
}

/// The line of guessing blindly, the person's guarantee and, for a group, that of the group.
fn plot(question: Question) -> Result<Plot, Failure> {
    let curve = |question: Question| trade_off(question).map_err(|error| Failure::new(&error));
    let single = Question {
        group: 1,
        ..question
    };
    let mut curves = vec![
        Curve {
            name: "without the answer".into(),
            points: vec![(0.0, 1.0), (1.0, 0.0)],
            colour: RGBColor(150, 150, 150),
        },
        Curve {
            name: "one person".into(),
            points: curve(single)?,
            colour: RGBColor(20, 90, 160),
        },
    ];
    if question.group > 1 {
        let name = format!("a group of {}", question.group);
        curves.push(Curve {
            name,
            points: curve(question)?,
            colour: RGBColor(200, 80, 20),
        });
    }
    let delta = if question.delta == Delta::ZERO {
        String::new()
    } else {
        format!(", delta {}", question.delta)
    };
    Ok(Plot {
        title: format!(
            "No test gets below these lines: epsilon {}{delta}",
            question.epsilon
        ),
        x_name: "absent people wrongly flagged (false positives)",
        y_name: "present people missed (false negatives)",
        curves,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_never_shown_too_small() {
        for (value, shown) in [
            (std::f64::consts::E, "2.719"),
            (1.105_17, "1.106"),
            (1.0, "1.000"),
            (22026.4, "22030"),
            (1e-6, "1.000e-6"),
        ] {
            assert_eq!(up(value, 4), shown);
        }
        assert_eq!(
            (percent(73.1058), percent_down(0.3704)),
            ("73.2%".into(), "0.37%".into())
        );
        assert_eq!(
            (percent(100.0), percent(0.0), percent_down(0.0)),
            ("100%".into(), "0%".into(), "0%".into())
        );
    }
}
