//! Plots as SVG or PNG, by the ending of the file's name.

use std::ops::Range;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};
use whit::Failure;

/// The size of a plot.
const PIXELS: (u32, u32) = (900, 640);

/// One line of a plot.
pub(crate) struct Curve {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
    pub(crate) colour: RGBColor,
}

/// Lines over the unit square.
pub(crate) struct Plot {
    pub(crate) title: String,
    pub(crate) x_name: &'static str,
    pub(crate) y_name: &'static str,
    pub(crate) curves: Vec<Curve>,
}

/// The kinds of pictures.
pub(crate) enum Ending {
    Svg,
    Png,
}

/// The kind of picture that a file's name says it is.
pub(crate) fn ending(path: &Path) -> Result<Ending, Failure> {
    let ending = path.extension().and_then(|ending| ending.to_str());
    match ending.map(str::to_ascii_lowercase).as_deref() {
        Some("svg") => Ok(Ending::Svg),
        Some("png") => Ok(Ending::Png),
        _ => {
            let reason = "the plot's file name does not say what kind of picture it is";
            Err(Failure::invalid(
                "plot_kind",
                reason,
                "let it end in .svg or .png",
            ))
        }
    }
}

/// Something that can be drawn.
pub(crate) trait Picture {
    /// None if the backend fails.
    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Option<()>;

    /// Draws and writes the file.
    fn write(&self, path: &Path) -> Result<(), Failure> {
        let drawn = match ending(path)? {
            Ending::Svg => self.draw(&SVGBackend::new(path, PIXELS).into_drawing_area()),
            Ending::Png => self.draw(&BitMapBackend::new(path, PIXELS).into_drawing_area()),
        };
        drawn.ok_or_else(|| {
            let suggestion = "name a file in a folder that exists and that you may write to";
            Failure::invalid(
                "plot_unwritable",
                "the plot could not be written",
                suggestion,
            )
        })
    }
}

impl Picture for Plot {
    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Option<()> {
        let lines = self.curves.iter().map(|curve| Line {
            name: &curve.name,
            points: curve.points.clone(),
            colour: curve.colour,
        });
        let frame = Frame {
            title: &self.title,
            x: (self.x_name, 0.0..1.0),
            y: (self.y_name, 0.0..1.0),
            legend: SeriesLabelPosition::UpperRight,
        };
        frame.draw(area, lines)
    }
}

/// One line with its colour.
pub(crate) struct Line<'a> {
    pub(crate) name: &'a str,
    pub(crate) points: Vec<(f64, f64)>,
    pub(crate) colour: RGBColor,
}

/// What is around the lines: title, axes with their ranges, and where the legend is.
pub(crate) struct Frame<'a> {
    pub(crate) title: &'a str,
    pub(crate) x: (&'a str, Range<f64>),
    pub(crate) y: (&'a str, Range<f64>),
    pub(crate) legend: SeriesLabelPosition,
}

impl Frame<'_> {
    /// None if the backend fails.
    pub(crate) fn draw<'a, B: DrawingBackend>(
        self,
        area: &DrawingArea<B, Shift>,
        lines: impl Iterator<Item = Line<'a>>,
    ) -> Option<()> {
        register_font("sans-serif", FontStyle::Normal, dejavu::sans::regular()).ok()?;
        area.fill(&WHITE).ok()?;
        let mut chart = ChartBuilder::on(area)
            .caption(self.title, ("sans-serif", 24))
            .margin(16)
            // The last number of the axis below is centred at its end.
            .margin_right(48)
            .x_label_area_size(52)
            .y_label_area_size(72)
            .build_cartesian_2d(self.x.1, self.y.1)
            .ok()?;
        chart
            .configure_mesh()
            .x_desc(self.x.0)
            .x_label_formatter(&|x| whole_or_short(*x))
            .y_desc(self.y.0)
            .axis_desc_style(("sans-serif", 17))
            .label_style(("sans-serif", 14))
            .light_line_style(WHITE)
            .draw()
            .ok()?;
        for line in lines {
            let style = line.colour.stroke_width(3);
            let series = chart
                .draw_series(LineSeries::new(line.points, style))
                .ok()?;
            series
                .label(line.name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], style));
        }
        chart
            .configure_series_labels()
            .position(self.legend)
            .margin(12)
            .background_style(WHITE.mix(0.9))
            .border_style(BLACK.mix(0.3))
            .label_font(("sans-serif", 15))
            .draw()
            .ok()?;
        area.present().ok()
    }
}

/// A number of an axis as people write it: steps have no decimals.
fn whole_or_short(number: f64) -> String {
    let text = format!("{number:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_an_axis_are_short() {
        for (number, expected) in [
            (400.0, "400"),
            (0.1 + 0.2, "0.3"),
            (0.0, "0"),
            (1000.5, "1000.5"),
        ] {
            assert_eq!(whole_or_short(number), expected);
        }
    }
}
