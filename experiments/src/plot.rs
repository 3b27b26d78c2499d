//! Test accuracy over a run, as SVG: the mean over seeds as a line, from the lowest to the highest seed as a band, and what is asked
//! as a thin line. Axes and titles are those of a trainer's chart; drawn as the other plots of this repository are.

use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};
use whit_learn::curve::Axis;

use crate::experiment::Experiment;
use crate::report::Spread;
use crate::run::{Outcome, Point};

/// The size of a plot.
pub(crate) const PIXELS: (u32, u32) = (900, 640);

/// One colour for each setting.
pub(crate) const COLOURS: [RGBColor; 5] = [
    RGBColor(10, 70, 150),
    RGBColor(200, 80, 20),
    RGBColor(30, 140, 70),
    RGBColor(120, 60, 150),
    RGBColor(110, 110, 110),
];

/// A line with what surrounds it.
struct Band<'a> {
    name: &'a str,
    asked: Option<f64>,
    points: Vec<(f64, Spread)>,
}

/// Over the steps.
pub(crate) fn over_steps(experiment: &Experiment, outcomes: &[Outcome]) -> Option<String> {
    picture(experiment, outcomes, "steps", |point| point.step as f64)
}

/// Over the upper bound on epsilon so far.
pub(crate) fn over_epsilon(experiment: &Experiment, outcomes: &[Outcome]) -> Option<String> {
    let name = "epsilon so far, upper bound";
    picture(experiment, outcomes, name, |point| point.epsilon_upper)
}

fn picture(
    experiment: &Experiment,
    outcomes: &[Outcome],
    x_name: &str,
    place: impl Fn(&Point) -> f64,
) -> Option<String> {
    let bands: Vec<Band<'_>> = outcomes
        .iter()
        .map(|outcome| Band {
            name: outcome.setting.name,
            asked: outcome.setting.goal.value(),
            points: spreads(outcome, &place),
        })
        .filter(|band| !band.points.is_empty())
        .collect();
    let end = bands
        .iter()
        .flat_map(|band| &band.points)
        .map(|(x, _)| *x)
        .fold(0.0, f64::max);
    let axes = (
        Axis {
            name: x_name.into(),
            range: [0.0, if end > 0.0 { end } else { 1.0 }],
        },
        Axis {
            name: "accuracy on the test split, %".into(),
            range: [floor(&bands), 100.0],
        },
    );
    draw(experiment.title, axes, &bands)
}

fn spreads(outcome: &Outcome, place: impl Fn(&Point) -> f64) -> Vec<(f64, Spread)> {
    let each = outcome.points.iter().enumerate();
    each.filter_map(|(index, point)| {
        let found: Vec<f64> = outcome
            .trained
            .iter()
            .filter_map(|trained| trained.accuracies.get(index))
            .map(|accuracy| 100.0 * accuracy)
            .collect();
        Spread::of(&found).map(|spread| (place(point), spread))
    })
    .collect()
}

/// The axis begins at a multiple of five below all but the first quarter of the points, so that the ends of the lines can be told apart.
fn floor(bands: &[Band<'_>]) -> f64 {
    let late = bands
        .iter()
        .flat_map(|band| &band.points[band.points.len() / 4..]);
    let lowest = late.map(|(_, spread)| spread.lowest).fold(95.0, f64::min);
    ((lowest - 1.0) / 5.0).floor() * 5.0
}

/// None if the drawing fails.
fn draw(title: &str, (x, y): (Axis, Axis), bands: &[Band<'_>]) -> Option<String> {
    register_font("sans-serif", FontStyle::Normal, dejavu::sans::regular()).ok()?;
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, PIXELS).into_drawing_area();
        area.fill(&WHITE).ok()?;
        let mut chart = ChartBuilder::on(&area)
            .caption(title, ("sans-serif", 22))
            .margin(16)
            .x_label_area_size(52)
            .y_label_area_size(64)
            .build_cartesian_2d(x.range[0]..x.range[1], y.range[0]..y.range[1])
            .ok()?;
        chart
            .configure_mesh()
            .x_desc(&x.name)
            .y_desc(&y.name)
            .axis_desc_style(("sans-serif", 17))
            .label_style(("sans-serif", 14))
            .light_line_style(WHITE)
            .draw()
            .ok()?;
        for (band, colour) in bands.iter().zip(COLOURS.into_iter().cycle()) {
            // What is below the axis is left out.
            let seen: Vec<_> = band
                .points
                .iter()
                .filter(|(_, spread)| spread.lowest >= y.range[0])
                .collect();
            let there = seen.iter().map(|(x, spread)| (*x, spread.highest));
            let back = seen.iter().rev().map(|(x, spread)| (*x, spread.lowest));
            let around: Vec<(f64, f64)> = there.chain(back).collect();
            chart
                .draw_series([Polygon::new(around, colour.mix(0.25).filled())])
                .ok()?;
            let mut label = band.name.to_owned();
            if let Some(asked) = band.asked.map(|asked| 100.0 * asked) {
                label += &format!(", asked: {asked:.1} %");
                let ends = [(x.range[0], asked), (x.range[1], asked)];
                let line = PathElement::new(ends, colour.mix(0.6).stroke_width(1));
                chart.draw_series([line]).ok()?;
            }
            let style = colour.stroke_width(3);
            let mean = seen.iter().map(|(x, spread)| (*x, spread.mean));
            chart
                .draw_series(LineSeries::new(mean, style))
                .ok()?
                .label(label)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], style));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerRight)
            .margin(12)
            .background_style(WHITE.mix(0.9))
            .border_style(BLACK.mix(0.3))
            .label_font(("sans-serif", 15))
            .draw()
            .ok()?;
        area.present().ok()?;
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn band(points: &[(f64, f64, f64)]) -> Band<'static> {
        let points = points.iter().map(|&(x, low, high)| {
            let spread = Spread::of(&[low, high]).expect("two values");
            (x, spread)
        });
        Band {
            name: "epsilon 1",
            asked: Some(0.9),
            points: points.collect(),
        }
    }

    #[test]
    fn axis_begins_below_the_later_points() {
        let rising = band(&[
            (1.0, 10.0, 30.0),
            (2.0, 88.0, 90.0),
            (3.0, 92.0, 93.0),
            (4.0, 94.0, 95.0),
        ]);
        assert_eq!(floor(&[rising]), 85.0);
        assert_eq!(floor(&[]), 90.0);
    }

    #[test]
    fn a_picture_has_its_words_a_line_and_a_band() {
        let axis = |name: &str, range| Axis {
            name: name.into(),
            range,
        };
        let bands = [band(&[(1.0, 90.0, 91.0), (2.0, 95.0, 96.0)])];
        let axes = (axis("steps", [0.0, 2.0]), axis("accuracy", [80.0, 100.0]));
        let text = draw("Digits", axes, &bands).expect("drawn");
        for part in [
            "<svg",
            "Digits",
            "epsilon 1, asked: 90.0 %",
            "<polygon",
            "<polyline",
            "</svg>",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
