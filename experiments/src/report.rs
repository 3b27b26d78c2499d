//! Tables of an experiment, as Markdown, and its files.

use std::path::Path;

use crate::experiment::{Experiment, Goal};
use crate::failure::Failure;
use crate::pate::Ensembles;
use crate::run::Outcome;
use crate::{budget, plot};

/// What there is.
pub(crate) fn list(experiments: &[&Experiment], ensembles: &[&Ensembles]) -> String {
    let mut text = String::new();
    for experiment in experiments {
        text += &format!("{}: {}\n", experiment.name, experiment.title);
        for setting in experiment.settings {
            text += &format!("    {}: {}\n", setting.name, setting.goal.words());
        }
        text += &format!("    {}\n", experiment.sources);
    }
    for ensembles in ensembles {
        text += &format!(
            "{}: {}\n    at least {:.1} % at a data-dependent epsilon of at most {}\n    {}\n",
            ensembles.name,
            ensembles.title,
            100.0 * ensembles.accuracy,
            ensembles.epsilon,
            ensembles.sources
        );
    }
    text
}

/// All tables: the means, the plans, and each seed.
pub(crate) fn table(experiment: &Experiment, outcomes: &[Outcome]) -> String {
    let mut text = format!("## {}\n\n{}\n\n", experiment.title, experiment.sources);
    text += "| plan | seeds | accuracy, mean | standard deviation | asked | reached |\n| --- | --- | --- | --- | --- | --- |\n";
    for outcome in outcomes {
        let Some(spread) = Spread::of(&finals(outcome)) else {
            continue;
        };
        text += &format!(
            "| {} | {} | {} | {} | {} | {} |\n",
            outcome.setting.name,
            outcome.trained.len(),
            percent(spread.mean),
            spread.deviation.map_or("unknown".into(), percent),
            outcome.setting.goal.words(),
            match (
                outcome.setting.goal,
                outcome.setting.goal.is_met(spread.mean)
            ) {
                (Goal::Shown, _) => "",
                (_, true) => "yes",
                (_, false) => "no",
            },
        );
    }
    text += "\n| plan | epsilon, upper bound | epsilon, lower bound | delta | noise multiplier | rate | steps | clip norm | optimizer |\n\
             | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
    for outcome in outcomes {
        let summary = outcome.plan.summary();
        text += &format!(
            "| {} | {} | {} | {:e} | {:.4} | {:.5} | {} | {} | {} |\n",
            outcome.setting.name,
            rounded(summary.epsilon_upper, Side::Up),
            rounded(summary.epsilon_lower, Side::Down),
            summary.delta,
            summary.noise_multiplier,
            summary.rate,
            summary.steps,
            summary.clip_norm,
            outcome.recipe.optimizer_words(),
        );
    }
    text += "\n| plan | seed | accuracy | training, s |\n| --- | --- | --- | --- |\n";
    for outcome in outcomes {
        for trained in &outcome.trained {
            text += &format!(
                "| {} | {} | {} | {:.0} |\n",
                outcome.setting.name,
                trained.seed,
                percent(trained.accuracy()),
                trained.seconds,
            );
        }
    }
    text
}

/// The table, the plots, and the points of the plots for other programs.
pub(crate) fn write(
    experiment: &Experiment,
    outcomes: &[Outcome],
    out: &Path,
) -> Result<(), Failure> {
    let unwritable = |path: &Path, why: &dyn std::fmt::Display| Failure::Unwritable {
        path: path.into(),
        why: why.to_string(),
    };
    std::fs::create_dir_all(out).map_err(|error| unwritable(out, &error))?;
    let mut files = vec![
        (".md", Some(table(experiment, outcomes))),
        (".csv", Some(csv(outcomes))),
        ("-steps.svg", plot::over_steps(experiment, outcomes)),
        ("-epsilon.svg", plot::over_epsilon(experiment, outcomes)),
    ];
    if !experiment.beside.is_empty() {
        files.push(("-budget.svg", budget::over_budget(experiment, outcomes)));
    }
    for (ending, text) in files {
        let path = out.join(format!("{}{ending}", experiment.name));
        let text = text.ok_or_else(|| unwritable(&path, &"it could not be drawn"))?;
        #[expect(clippy::disallowed_methods, reason = "a door writes files")]
        std::fs::write(&path, text).map_err(|error| unwritable(&path, &error))?;
    }
    Ok(())
}

fn csv(outcomes: &[Outcome]) -> String {
    let mut text = String::from("plan,seed,step,epsilon_upper,accuracy\n");
    for outcome in outcomes {
        for trained in &outcome.trained {
            for (point, accuracy) in outcome.points.iter().zip(&trained.accuracies) {
                text += &format!(
                    "{},{},{},{},{accuracy}\n",
                    outcome.setting.name, trained.seed, point.step, point.epsilon_upper
                );
            }
        }
    }
    text
}

pub(crate) fn finals(outcome: &Outcome) -> Vec<f64> {
    let trained = outcome.trained.iter();
    trained.map(|trained| trained.accuracy()).collect()
}

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

/// Several values of the same thing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) mean: f64,
    pub(crate) lowest: f64,
    pub(crate) highest: f64,
    /// Of a value, with one less than the number of values below the line; `None` for a single one.
    pub(crate) deviation: Option<f64>,
}

impl Spread {
    /// `None` for no values.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let lowest = values.iter().copied().reduce(f64::min)?;
        let highest = values.iter().copied().reduce(f64::max)?;
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (squares / (values.len() as f64 - 1.0)).sqrt();
        Some(Self {
            mean,
            lowest,
            highest,
            deviation: (values.len() > 1).then_some(deviation),
        })
    }
}

/// Which way a bound is rounded: never to the better.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Up,
    Down,
}

/// Four decimals, on the given side of the number.
fn rounded(value: f64, side: Side) -> String {
    const UNITS: f64 = 10_000.0;
    let mut units = (value * UNITS).round();
    // The product may be off by its last bit, so the decimal itself is compared.
    let shown = |units: f64| format!("{:.4}", units / UNITS);
    let is_wrong = |text: &str| {
        text.parse::<f64>().is_ok_and(|shown| match side {
            Side::Up => shown < value,
            Side::Down => shown > value,
        })
    };
    if is_wrong(&shown(units)) {
        units += if side == Side::Up { 1.0 } else { -1.0 };
    }
    shown(units)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_rounded_outward() {
        for (value, up, down) in [
            (2.93, "2.9300", "2.9300"),
            (2.929_999_937, "2.9300", "2.9299"),
            (2.930_000_1, "2.9301", "2.9300"),
            (0.499_999_999, "0.5000", "0.4999"),
        ] {
            assert_eq!(rounded(value, Side::Up), up);
            assert_eq!(rounded(value, Side::Down), down);
        }
    }

    #[test]
    fn spread_is_that_of_a_sample() {
        let spread = Spread::of(&[1.0, 2.0, 3.0, 4.0]).expect("four values");
        assert_eq!(
            (spread.mean, spread.lowest, spread.highest),
            (2.5, 1.0, 4.0)
        );
        let deviation = spread.deviation.expect("of several");
        // Squares 2.25, 0.25, 0.25, 2.25 over 3.
        assert!((deviation - (5.0_f64 / 3.0).sqrt()).abs() < 1e-15);
        assert_eq!(
            Spread::of(&[0.5]).map(|spread| spread.deviation),
            Some(None)
        );
        assert_eq!(Spread::of(&[]), None);
    }
}
