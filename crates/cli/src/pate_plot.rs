//! How far teachers agree, as a picture. Private.

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use whit::Failure;

use crate::plot::{Frame, Line, Picture};

struct Consensus<'a>(&'a [u64; 10]);

/// Draws how many queries have a winner with up to so many tenths of the votes.
pub(crate) fn consensus(path: &Path, counts: &[u64; 10]) -> Result<(), Failure> {
    Consensus(counts).write(path)
}

impl Picture for Consensus<'_> {
    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Option<()> {
        let most = self.0.iter().copied().max().unwrap_or(0).max(1) as f64;
        // The outline of the bars.
        let mut points = vec![(0.0, 0.0)];
        for (tenth, count) in self.0.iter().enumerate() {
            let (left, height) = (10.0 * tenth as f64, *count as f64);
            points.extend([(left, height), (left + 10.0, height)]);
        }
        points.push((100.0, 0.0));
        let frame = Frame {
            title: "How far the teachers agree (private)",
            x: ("the winner's share of the votes, percent", 0.0..100.0),
            y: ("queries", 0.0..most * 1.1),
            legend: SeriesLabelPosition::UpperLeft,
        };
        let line = Line {
            name: "queries",
            points,
            colour: RGBColor(10, 70, 150),
        };
        frame.draw(area, std::iter::once(line))
    }
}
