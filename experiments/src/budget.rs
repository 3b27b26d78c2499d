//! Accuracy over epsilon, one model for each: the mean over seeds as a line, all seeds within a band, and figures of papers as points beside it.

use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};

use crate::experiment::{Experiment, Published};
use crate::plot::{COLOURS, PIXELS};
use crate::report::{Spread, finals};
use crate::run::Outcome;

/// From the upper bounds of the models, in the order of the settings. None if the drawing fails.
pub(crate) fn over_budget(experiment: &Experiment, outcomes: &[Outcome]) -> Option<String> {
    let points: Vec<(f64, Spread)> = outcomes
        .iter()
        .filter_map(|outcome| {
            let spread = Spread::of(&finals(outcome))?;
            Some((outcome.plan.summary().epsilon_upper, spread))
        })
        .collect();
    draw(experiment.title, &points, experiment.beside)
}

/// The axis begins at a multiple of ten below everything.
fn floor(points: &[(f64, Spread)], beside: &[Published]) -> f64 {
    let own = points.iter().map(|(_, spread)| spread.lowest);
    let others = beside.iter().map(|published| published.accuracy);
    let lowest = own.chain(others).fold(0.9, f64::min);
    (10.0 * lowest - 0.1).floor() * 10.0
}

fn draw(title: &str, points: &[(f64, Spread)], beside: &[Published]) -> Option<String> {
    register_font("sans-serif", FontStyle::Normal, dejavu::sans::regular()).ok()?;
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, PIXELS).into_drawing_area();
        area.fill(&WHITE).ok()?;
        let bottom = floor(points, beside);
        let mut chart = ChartBuilder::on(&area)
            .caption(title, ("sans-serif", 22))
            .margin(16)
            .x_label_area_size(52)
            .y_label_area_size(64)
            .build_cartesian_2d((0.08..12.5).log_scale(), bottom..100.0)
            .ok()?;
        chart
            .configure_mesh()
            .x_desc("epsilon at delta 1e-5, upper bound")
            .y_desc("accuracy on the test split, %")
            .x_label_formatter(&|epsilon| format!("{epsilon}"))
            .axis_desc_style(("sans-serif", 17))
            .label_style(("sans-serif", 14))
            .light_line_style(WHITE)
            .draw()
            .ok()?;
        let own = COLOURS[0];
        let there = points
            .iter()
            .map(|(x, spread)| (*x, 100.0 * spread.highest));
        let back = points.iter().rev();
        let back = back.map(|(x, spread)| (*x, 100.0 * spread.lowest));
        let around: Vec<(f64, f64)> = there.chain(back).collect();
        chart
            .draw_series([Polygon::new(around, own.mix(0.25).filled())])
            .ok()?;
        let means: Vec<(f64, f64)> = points
            .iter()
            .map(|(x, spread)| (*x, 100.0 * spread.mean))
            .collect();
        let dots = means.iter().map(|mean| Circle::new(*mean, 4, own.filled()));
        chart.draw_series(dots).ok()?;
        chart
            .draw_series(LineSeries::new(means.clone(), own.stroke_width(3)))
            .ok()?
            .label("whit, mean over seeds, tight accounting")
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], own.stroke_width(3)));
        for (published, colour) in beside.iter().zip(COLOURS[1..].iter().cycle()) {
            let at = (published.epsilon, 100.0 * published.accuracy);
            let style = colour.stroke_width(2);
            chart
                .draw_series([Cross::new(at, 6, style)])
                .ok()?
                .label(format!("{}: {:.1} %", published.name, at.1))
                .legend(move |(x, y)| Cross::new((x + 12, y), 6, style));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerRight)
            .margin(12)
            .background_style(WHITE.mix(0.9))
            .border_style(BLACK.mix(0.3))
            .label_font(("sans-serif", 13))
            .draw()
            .ok()?;
        area.present().ok()?;
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_has_its_line_and_the_figures_beside_it() {
        let spread = |x: f64| Spread::of(&[x - 0.01, x + 0.01]).expect("two values");
        let points = [(0.1, spread(0.5)), (10.0, spread(0.9))];
        let beside = [Published {
            name: "Somebody, some accountant",
            epsilon: 3.0,
            accuracy: 0.87,
        }];
        assert_eq!(floor(&points, &beside), 40.0);
        let text = draw("Digits", &points, &beside).expect("drawn");
        for part in [
            "Digits",
            "Somebody, some accountant: 87.0 %",
            "<polygon",
            "<polyline",
            "<circle",
        ] {
            assert!(text.contains(part), "{part}");
        }
    }
}
