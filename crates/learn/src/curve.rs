//! What is shown over the steps of a run: epsilon so far, and what was measured on data that are declared public or was released with
//! noise and charged. Nothing else may be shown: a loss on private data is a query about them.
//!
//! This is the plot without its picture: title, axes and points, which the doors draw as they draw their other plots.

use serde::Serialize;

/// More points than this cannot be told apart in a plot.
const POINTS_MAX: usize = 2000;

/// Points of one line: the step, and a value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// What the line shows.
    pub name: String,
    /// In order of steps; all finite.
    pub points: Vec<[f64; 2]>,
}

/// An axis from its lowest to its highest value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Axis {
    /// What it measures.
    pub name: String,
    /// Both ends, which differ.
    pub range: [f64; 2],
}

/// One picture.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Chart {
    /// What stands above it.
    pub title: String,
    /// Steps.
    pub x: Axis,
    /// What is measured.
    pub y: Axis,
    /// The lines.
    pub curves: Vec<Curve>,
}

/// What a value over steps is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Quantity {
    /// An upper bound on epsilon after this many steps.
    EpsilonUpper,
    /// A share of public examples that were classified rightly.
    Accuracy,
    /// A mean loss on public examples.
    Loss,
}

/// The first line of the numbers.
const HEADER: &str = "quantity,name,step,value";

impl Quantity {
    const ALL: [Self; 3] = [Self::EpsilonUpper, Self::Accuracy, Self::Loss];

    /// The name of its axis.
    pub fn name(self) -> &'static str {
        match self {
            Self::EpsilonUpper => "epsilon",
            Self::Accuracy => "accuracy on public data",
            Self::Loss => "loss on public data",
        }
    }
}

/// All that was noted during a run, in order of steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History(Vec<(Quantity, String, Vec<[f64; 2]>)>);

impl History {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes a value. **The caller vouches** that it is a bound of the accountant, comes from data that are declared public, or is a
    /// release. What is not finite leaves a gap; a step that is not after the last one replaces what it had.
    pub fn note(&mut self, quantity: Quantity, name: &str, step: u64, value: f64) {
        let known = self
            .0
            .iter()
            .position(|(found, of, _)| *found == quantity && of == name);
        let place = known.unwrap_or_else(|| {
            self.0.push((quantity, name.into(), Vec::new()));
            self.0.len() - 1
        });
        let points = &mut self.0[place].2;
        while points.last().is_some_and(|[last, _]| *last >= step as f64) {
            points.pop();
        }
        if value.is_finite() {
            points.push([step as f64, value]);
        }
    }

    /// What [`csv`](Self::csv) has written, up to a step; `None` if it was not that. A number whose end was cut off would be another number, so that each line must have
    /// its end.
    pub fn from_csv(text: &str, last: u64) -> Option<Self> {
        let mut lines = text.strip_suffix('\n')?.lines();
        if lines.next() != Some(HEADER) {
            return None;
        }
        let mut history = Self::new();
        for line in lines {
            let (quantity, rest) = line.split_once(",\"")?;
            let (name, rest) = rest.rsplit_once("\",")?;
            let (step, value) = rest.split_once(',')?;
            let (step, value): (f64, f64) = (step.parse().ok()?, value.parse().ok()?);
            let quantity = Quantity::ALL.into_iter().find(|of| of.name() == quantity)?;
            if step >= 0.0 && step <= last as f64 {
                history.note(quantity, &name.replace("\"\"", "\""), step as u64, value);
            }
        }
        Some(history)
    }

    /// One chart for each quantity that was noted.
    pub fn charts(&self, title: &str) -> Vec<Chart> {
        let mut quantities: Vec<_> = self.0.iter().map(|(quantity, ..)| *quantity).collect();
        quantities.sort_unstable();
        quantities.dedup();
        let charts = quantities.into_iter().filter_map(|quantity| {
            let curves: Vec<Curve> = self
                .0
                .iter()
                .filter(|(found, _, points)| *found == quantity && !points.is_empty())
                .map(|(_, name, points)| Curve {
                    name: name.clone(),
                    points: thinned(points),
                })
                .collect();
            let all = || curves.iter().flat_map(|curve| &curve.points);
            let steps = all().map(|[step, _]| *step).reduce(f64::max)?;
            let highest = all().map(|[_, value]| *value).reduce(f64::max)?;
            let lowest = all().map(|[_, value]| *value).fold(0.0, f64::min);
            let top = match quantity {
                Quantity::Accuracy => 1.0,
                _ if highest > lowest => lowest + (highest - lowest) * 1.05,
                _ => lowest + 1.0,
            };
            Some(Chart {
                title: title.into(),
                x: Axis {
                    name: "steps".into(),
                    range: [0.0, steps.max(1.0)],
                },
                y: Axis {
                    name: quantity.name().into(),
                    range: [lowest, top],
                },
                curves,
            })
        });
        charts.collect()
    }

    /// Everything as lines `quantity,name,step,value`, for other programs.
    pub fn csv(&self) -> String {
        let mut text = format!("{HEADER}\n");
        for (quantity, name, points) in &self.0 {
            let name = name.replace('"', "\"\"");
            for [step, value] in points {
                text.push_str(&format!("{},\"{name}\",{step},{value}\n", quantity.name()));
            }
        }
        text
    }
}

/// The last point and evenly many of the others.
fn thinned(points: &[[f64; 2]]) -> Vec<[f64; 2]> {
    let every = points.len().div_ceil(POINTS_MAX).max(1);
    let last = points.len().saturating_sub(1);
    points
        .iter()
        .enumerate()
        .filter(|(index, _)| index % every == 0 || *index == last)
        .map(|(_, point)| *point)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_quantity_has_a_chart() {
        let mut history = History::new();
        for step in 1..=10 {
            history.note(Quantity::Accuracy, "test", step, 0.1 * step as f64);
            history.note(Quantity::EpsilonUpper, "upper bound", step, step as f64);
        }
        let charts = history.charts("Digits");
        assert_eq!(charts.len(), 2);
        assert_eq!(charts[0].y.name, "epsilon");
        assert_eq!(charts[0].y.range, [0.0, 10.5]);
        assert_eq!(charts[0].x.range, [0.0, 10.0]);
        assert_eq!(charts[1].y.range, [0.0, 1.0]);
        assert_eq!(charts[1].curves[0].points.len(), 10);
        assert!(History::new().charts("nothing").is_empty());
    }

    #[test]
    fn gaps_stay_gaps_and_steps_go_forward() {
        let mut history = History::new();
        for (step, value) in [(1, 1.0), (2, f64::NAN), (3, 3.0), (4, 4.0), (3, 5.0)] {
            history.note(Quantity::Loss, "test", step, value);
        }
        let charts = history.charts("");
        assert_eq!(charts[0].curves[0].points, [[1.0, 1.0], [3.0, 5.0]]);
        assert_eq!(
            history.csv(),
            "quantity,name,step,value\nloss on public data,\"test\",1,1\nloss on public data,\"test\",3,5\n"
        );
    }

    #[test]
    fn what_was_written_is_read_up_to_a_step() {
        let mut history = History::new();
        for step in 1..=10 {
            history.note(Quantity::Accuracy, "a \"b\", c", step, 0.1 * step as f64);
            history.note(
                Quantity::EpsilonUpper,
                "upper bound",
                step,
                1.0 / step as f64,
            );
        }
        let text = history.csv();
        assert_eq!(History::from_csv(&text, 10), Some(history));
        let part = History::from_csv(&text, 4).expect("a history");
        assert_eq!(part.charts("")[1].curves[0].points.len(), 4);
        for other in [
            "",
            "a,b\n1,2\n",
            &text[..text.len() - 4],
            &text.replace("accuracy", "age"),
        ] {
            let found = History::from_csv(other, 10);
            assert_eq!(found, None, "{other}");
        }
        // What is cut off at the end of a line is shorter, and nothing else.
        for end in 0..text.len() {
            let found = History::from_csv(&text[..end], 10);
            assert!(
                found.is_none_or(|found| text.starts_with(&found.csv())),
                "{end}"
            );
        }
        assert_eq!(
            History::from_csv("quantity,name,step,value\nage,\"x\",1,2\n", 9),
            None
        );
    }

    #[test]
    fn long_runs_are_thinned_and_keep_their_end() {
        let mut history = History::new();
        for step in 1..=9_999 {
            history.note(Quantity::EpsilonUpper, "", step, step as f64);
        }
        let points = &history.charts("")[0].curves[0].points;
        assert!(points.len() <= POINTS_MAX + 1, "{}", points.len());
        assert_eq!(points.last(), Some(&[9_999.0, 9_999.0]));
    }

    #[test]
    fn flat_lines_have_an_axis_of_some_height() {
        let mut history = History::new();
        history.note(Quantity::Loss, "", 0, 0.0);
        let chart = &history.charts("")[0];
        assert!(chart.y.range[0] < chart.y.range[1] && chart.x.range[0] < chart.x.range[1]);
    }
}
