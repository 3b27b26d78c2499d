//! Students over epsilon: what each cost at its votes, and what is guaranteed, with the figure of the paper beside it.

use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};

use crate::pate::{Ensembles, Trained};
use crate::plot::{COLOURS, PIXELS};

/// None if the drawing fails.
pub(crate) fn over_epsilon(experiment: &Ensembles, trained: &[Trained]) -> Option<String> {
    register_font("sans-serif", FontStyle::Normal, dejavu::sans::regular()).ok()?;
    let guarantee = experiment.guarantee()?;
    let accuracies = trained.iter().map(|one| 100.0 * one.figures[0]);
    let lowest = accuracies
        .chain([100.0 * experiment.accuracy])
        .fold(100.0, f64::min);
    let floor = (lowest - 1.0).floor();
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, PIXELS).into_drawing_area();
        area.fill(&WHITE).ok()?;
        let mut chart = ChartBuilder::on(&area)
            .caption(experiment.title, ("sans-serif", 22))
            .margin(16)
            .x_label_area_size(52)
            .y_label_area_size(64)
            .build_cartesian_2d(
                0.0..guarantee.max(experiment.epsilon) * 1.15,
                floor..100.0_f64.min(lowest + 4.0),
            )
            .ok()?;
        chart
            .configure_mesh()
            .x_desc("epsilon at delta 1e-5")
            .y_desc("accuracy on held-out examples, %")
            .label_style(("sans-serif", 15))
            .draw()
            .ok()?;
        let dots = |place: fn(&Trained, f64) -> f64| {
            let points = trained
                .iter()
                .map(move |one| (place(one, guarantee), 100.0 * one.figures[0]));
            points.collect::<Vec<_>>()
        };
        let series = [
            (
                "at these votes: the owner's, no guarantee",
                dots(|one, _| one.figures[3]),
            ),
            ("the guarantee", dots(|_, guarantee| guarantee)),
            (
                "the paper, at its votes",
                vec![(experiment.epsilon, 100.0 * experiment.accuracy)],
            ),
        ];
        for ((name, points), colour) in series.into_iter().zip(COLOURS) {
            chart
                .draw_series(
                    points
                        .into_iter()
                        .map(|point| Circle::new(point, 6, colour.filled())),
                )
                .ok()?
                .label(name)
                .legend(move |(x, y)| Circle::new((x + 8, y), 5, colour.filled()));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerRight)
            .background_style(WHITE)
            .border_style(BLACK)
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

    #[test]
    fn plots_hold_every_student_and_the_paper() {
        let one = || Trained {
            figures: vec![0.99, 0.0, 0.0, 0.8],
            seconds: 1.0,
        };
        let text = over_epsilon(&crate::pate::MNIST, &[one(), one()]).expect("drawn");
        assert!(text.contains("<svg") && text.matches("<circle").count() >= 5);
    }
}
