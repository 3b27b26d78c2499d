//! What a training run shows over its steps, as pictures.

use plotters::coord::Shift;
use plotters::prelude::*;
use whit_learn::curve::Chart;

use crate::plot::{Frame, Line, Picture};

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
        let lines = curves.iter().zip(COLOURS.iter().cycle());
        let lines = lines.map(|(curve, colour)| Line {
            name: &curve.name,
            points: curve
                .points
                .iter()
                .map(|&[step, value]| (step, value))
                .collect(),
            colour: *colour,
        });
        let frame = Frame {
            title,
            x: (&x.name, x.range[0]..x.range[1]),
            y: (&y.name, y.range[0]..y.range[1]),
            legend: SeriesLabelPosition::LowerRight,
        };
        frame.draw(area, lines)
    }
}
