//! Lower bounds over the epsilon of plans, as SVG: one line for each attack, and a thin one where both are the same.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};

use crate::failure::Failure;
use crate::plot::{COLOURS, PIXELS};

/// Points of one attack, by epsilon.
pub(crate) type Line = (String, Vec<(f64, f64)>);

/// Writes the picture into the folder, if there is one and something to draw.
pub(crate) fn write(
    out: Option<&Path>,
    name: &str,
    title: &str,
    lines: &[Line],
) -> Result<(), Failure> {
    let Some(out) = out.filter(|_| lines.iter().any(|(_, points)| points.len() > 1)) else {
        return Ok(());
    };
    let path = out.join(format!("{name}.svg"));
    let unwritable = |why: String| Failure::Unwritable {
        path: path.clone(),
        why,
    };
    let text = draw(title, lines).ok_or_else(|| unwritable("it could not be drawn".into()))?;
    #[expect(clippy::disallowed_methods, reason = "a door writes files")]
    std::fs::write(&path, text).map_err(|error| unwritable(error.to_string()))
}

fn draw(title: &str, lines: &[Line]) -> Option<String> {
    register_font("sans-serif", FontStyle::Normal, dejavu::sans::regular()).ok()?;
    let all = || lines.iter().flat_map(|(_, points)| points);
    let right = all().map(|(x, _)| *x).fold(1.0, f64::max) * 1.2;
    let left = all().map(|(x, _)| *x).fold(right, f64::min) / 1.2;
    let top = all().map(|(_, y)| *y).fold(0.1, f64::max) * 1.2;
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, PIXELS).into_drawing_area();
        area.fill(&WHITE).ok()?;
        let mut chart = ChartBuilder::on(&area)
            .caption(title, ("sans-serif", 22))
            .margin(16)
            .x_label_area_size(52)
            .y_label_area_size(64)
            .build_cartesian_2d((left..right).log_scale(), 0.0..top)
            .ok()?;
        chart
            .configure_mesh()
            .x_desc("tight epsilon of the plan, replace one, delta 1e-5")
            .y_desc("epsilon at least, 99 %")
            .axis_desc_style(("sans-serif", 17))
            .label_style(("sans-serif", 14))
            .light_line_style(WHITE)
            .draw()
            .ok()?;
        let same = (1..=50).map(|step| left + (right - left) * f64::from(step) / 50.0);
        let same = same.take_while(|x| *x <= top).map(|x| (x, x));
        chart
            .draw_series(LineSeries::new(same, BLACK.mix(0.4)))
            .ok()?
            .label("as much as the plan may lose")
            .legend(|(x, y)| PathElement::new([(x, y), (x + 24, y)], BLACK.mix(0.4)));
        for ((name, points), colour) in lines.iter().zip(COLOURS.into_iter().cycle()) {
            let style = colour.stroke_width(3);
            chart
                .draw_series(LineSeries::new(points.iter().copied(), style).point_size(4))
                .ok()?
                .label(name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], style));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
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

    #[test]
    fn a_picture_has_a_line_for_each_attack() {
        let lines = [
            ("ClipBKD".to_owned(), vec![(1.0, 0.2), (8.0, 1.5)]),
            ("backdoor".to_owned(), vec![(1.0, 0.0), (8.0, 0.1)]),
        ];
        let text = draw("Clothes", &lines).expect("drawn");
        for part in [
            "<svg",
            "Clothes",
            "ClipBKD",
            "backdoor",
            "<polyline",
            "</svg>",
        ] {
            assert!(text.contains(part), "{part}");
        }
    }
}
