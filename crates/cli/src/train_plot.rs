//! What a training run shows over its steps, as pictures.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};
use whit_learn::curve::Chart;

use crate::plot::Picture;

/// One colour for each line of a chart; there are never more of them than quantities of one kind.
const COLOURS: [RGBColor; 3] = [
    RGBColor(10, 70, 150),
    RGBColor(200, 80, 20),
    RGBColor(30, 140, 70),
];

/// A chart that can be drawn.
pub(crate) struct Drawn<'a>(pub(crate) &'a Chart);

impl Picture for Drawn<'_> {
    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Option<()> {
        let Chart {
            title,
            x,
            y,
            curves,
        } = self.0;
        register_font("sans-serif", FontStyle::Normal, dejavu::sans::regular()).ok()?;
        area.fill(&WHITE).ok()?;
        let mut chart = ChartBuilder::on(area)
            .caption(title, ("sans-serif", 24))
            .margin(16)
            .x_label_area_size(52)
            .y_label_area_size(72)
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
        for (curve, colour) in curves.iter().zip(COLOURS.iter().cycle()) {
            let points = curve.points.iter().map(|&[step, value]| (step, value));
            let style = colour.stroke_width(3);
            let series = chart.draw_series(LineSeries::new(points, style)).ok()?;
            series
                .label(&curve.name)
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
        area.present().ok()
    }
}
