//! `whit account plot`: profiles, costs over compositions, trade-offs and training as SVG or PNG.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};
use serde::Serialize;
use whit::account::{Account, Length, Query, Sampling, Training, first_moments_accountant};
use whit::{Delta, Failure, Neighbours};

use crate::account::{Form, Whom, json, number, plain};
use crate::plot::Picture;
use crate::{Format, table};

/// Places at which a curve is computed.
const POINTS: u32 = 60;

#[derive(Args)]
#[command(arg_required_else_help = false)]
pub(crate) struct PlotArguments {
    #[command(subcommand)]
    kind: Kind,
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  whit account plot profile 'gaussian(sigma=20) x 512' --output profile.svg
      Delta over epsilon: both bounds, and what older accountants say.
  whit account plot compositions 'laplace(scale=20)' --output compositions.svg
      Epsilon over the number of compositions.
  whit account plot tradeoff 'gdp(mu=1)' --output tradeoff.png
      What a test of membership misses, over what it flags wrongly.
  whit account plot training --output training.svg
      Epsilon over epochs of training, as in [ACG+16, Fig. 2].";

#[derive(Subcommand)]
enum Kind {
    /// Delta over epsilon: both bounds, and what older accountants say
    #[command(after_help = PROFILE_EXAMPLES)]
    Profile {
        #[command(flatten)]
        form: Form,
        /// The smallest delta to draw
        #[arg(
            long,
            value_name = "DELTA",
            default_value = "1e-12",
            allow_hyphen_values = true
        )]
        least: String,
        #[command(flatten)]
        output: Output,
    },
    /// Epsilon over the number of compositions
    #[command(after_help = COMPOSITIONS_EXAMPLES)]
    Compositions {
        #[command(flatten)]
        form: Form,
        /// The slack
        #[arg(
            long,
            value_name = "DELTA",
            default_value = "1e-4",
            allow_hyphen_values = true
        )]
        delta: String,
        /// How often the form is composed at most
        #[arg(long, value_name = "TIMES", default_value_t = 512)]
        most: u64,
        #[command(flatten)]
        output: Output,
    },
    /// What a test of membership misses, over what it flags wrongly
    #[command(after_help = TRADEOFF_EXAMPLES)]
    Tradeoff {
        #[command(flatten)]
        form: Form,
        #[command(flatten)]
        output: Output,
    },
    /// Epsilon over epochs of training by noisy gradients
    #[command(after_help = TRAINING_EXAMPLES)]
    Training {
        /// The probability with which each example is in a sample
        #[arg(
            long,
            value_name = "RATE",
            default_value = "0.01",
            allow_hyphen_values = true
        )]
        rate: String,
        /// The standard deviation of the noise over the clipping norm
        #[arg(
            long,
            value_name = "SIGMA",
            default_value = "4",
            allow_hyphen_values = true
        )]
        sigma: String,
        /// The slack
        #[arg(
            long,
            value_name = "DELTA",
            default_value = "1e-5",
            allow_hyphen_values = true
        )]
        delta: String,
        /// How many epochs to draw
        #[arg(long, value_name = "EPOCHS", default_value_t = 400)]
        epochs: u32,
        #[command(flatten)]
        whom: Whom,
        #[command(flatten)]
        output: Output,
    },
}

const PROFILE_EXAMPLES: &str = "\
Examples:
  whit account plot profile 'gaussian(sigma=20) x 512' --output profile.svg
  whit account plot profile 'poisson(0.01, gaussian(sigma=4)) x 60000' --output training.png";

const COMPOSITIONS_EXAMPLES: &str = "\
Examples:
  whit account plot compositions 'laplace(scale=20)' --output compositions.svg
  whit account plot compositions 'gaussian(sigma=20)' --most 10000 --output gaussian.png";

const TRADEOFF_EXAMPLES: &str = "\
Examples:
  whit account plot tradeoff 'gaussian(sigma=20) x 512' --output tradeoff.svg
  whit account plot tradeoff 'gaussian(sigma=20) x 100' --group 3 --output family.png";

const TRAINING_EXAMPLES: &str = "\
Examples:
  whit account plot training --output training.svg
      As in [ACG+16, Fig. 2]: rate 0.01, noise of 4 clipping norms, delta 1e-5, 400 epochs.
  whit account plot training --rate 0.004 --sigma 1.1 --epochs 60 --output training.png";

#[derive(Args)]
struct Output {
    /// The file to write, which ends in .svg or .png
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
}

pub(crate) fn run(arguments: PlotArguments, format: Format) -> Result<String, Failure> {
    let (chart, Output { output }) = match arguments.kind {
        Kind::Profile {
            form,
            least,
            output,
        } => (profile(&form, number("least", &least)?)?, output),
        Kind::Compositions {
            form,
            delta,
            most,
            output,
        } => (compositions(&form, number("delta", &delta)?, most)?, output),
        Kind::Tradeoff { form, output } => (tradeoff(&form)?, output),
        Kind::Training {
            rate,
            sigma,
            delta,
            epochs,
            whom,
            output,
        } => {
            let run = Training {
                sampling: Sampling::Rate(number("rate", &rate)?),
                noise_multiplier: number("sigma", &sigma)?,
                length: Length::Epochs(1.0),
            };
            (
                training(run, number("delta", &delta)?, epochs, whom)?,
                output,
            )
        }
    };
    chart.write(&output)?;
    Ok(match format {
        Format::Json => json(&chart),
        Format::Table => {
            let drawn = [("plot".to_owned(), output.display().to_string())];
            table::lines(&drawn)
        }
    })
}

/// A line of a chart.
#[derive(Serialize)]
struct Curve {
    name: String,
    points: Vec<[f64; 2]>,
    #[serde(skip)]
    stroke: Stroke,
}

#[derive(Clone, Copy)]
struct Stroke {
    colour: RGBColor,
    pixels: u32,
}

const fn stroke(colour: (u8, u8, u8), pixels: u32) -> Stroke {
    Stroke {
        colour: RGBColor(colour.0, colour.1, colour.2),
        pixels,
    }
}

/// The lower bound is drawn broad, so that it shows where the upper one lies on it.
const LOWER: Stroke = stroke((150, 200, 240), 8);
const UPPER: Stroke = stroke((10, 70, 150), 2);
const BLIND: Stroke = stroke((150, 150, 150), 2);
const OLDER: [Stroke; 6] = [
    stroke((200, 80, 20), 3),
    stroke((30, 140, 70), 3),
    stroke((150, 60, 150), 3),
    stroke((130, 130, 130), 3),
    stroke((180, 150, 20), 3),
    stroke((90, 60, 40), 3),
];

/// How an axis grows.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Growth {
    Linear,
    Logarithmic,
}

#[derive(Serialize)]
struct Axis {
    name: String,
    growth: Growth,
    range: [f64; 2],
}

impl Axis {
    /// Where a value is drawn.
    fn place(&self, value: f64) -> f64 {
        match self.growth {
            Growth::Linear => value,
            Growth::Logarithmic => value.log10(),
        }
    }

    /// What is written at a place.
    fn label(&self, place: f64) -> String {
        match self.growth {
            Growth::Linear => plain((place * 1e9).round() / 1e9),
            Growth::Logarithmic if (place - place.round()).abs() > 1e-6 => {
                plain(format!("{:.1e}", 10_f64.powf(place)).parse().unwrap_or(0.0))
            }
            Growth::Logarithmic => plain(format!("1e{}", place.round()).parse().unwrap_or(0.0)),
        }
    }

    fn ends(&self) -> [f64; 2] {
        self.range.map(|end| self.place(end))
    }
}

#[derive(Serialize)]
struct Chart {
    title: String,
    x: Axis,
    y: Axis,
    #[serde(skip)]
    legend: SeriesLabelPosition,
    curves: Vec<Curve>,
}

/// Points of one curve as they are found; what is not finite is left out.
struct Curves(Vec<Curve>);

impl Curves {
    fn new() -> Self {
        Self(vec![
            Curve {
                name: "exact, lower bound".into(),
                points: Vec::new(),
                stroke: LOWER,
            },
            Curve {
                name: "exact, upper bound".into(),
                points: Vec::new(),
                stroke: UPPER,
            },
        ])
    }

    fn bounds(&mut self, [lower, upper]: [[f64; 2]; 2]) {
        for (curve, point) in self.0.iter_mut().zip([lower, upper]) {
            if point.iter().all(|value| value.is_finite()) {
                curve.points.push(point);
            }
        }
    }

    fn add(&mut self, name: &str, point: [f64; 2]) {
        if !point.iter().all(|value| value.is_finite()) {
            return;
        }
        let index = match self.0.iter().position(|curve| curve.name == name) {
            Some(index) => index,
            None => {
                let older = self.0.len() - 2;
                self.0.push(Curve {
                    name: name.into(),
                    points: Vec::new(),
                    stroke: OLDER[older % OLDER.len()],
                });
                self.0.len() - 1
            }
        };
        self.0[index].points.push(point);
    }

    fn largest(&self, axis: usize) -> f64 {
        let values = self.0.iter().flat_map(|curve| &curve.points);
        values.map(|point| point[axis]).fold(0.0, f64::max)
    }

    /// Of both bounds.
    fn exact(&self, axis: usize) -> impl Iterator<Item = f64> {
        let values = self.0.iter().take(2).flat_map(|curve| &curve.points);
        values.map(move |point| point[axis])
    }
}

/// All notions at one delta, with the point that an epsilon is drawn at.
fn notions(
    curves: &mut Curves,
    account: &Account,
    delta: f64,
    point: impl Fn(f64) -> [f64; 2],
) -> Result<(), Failure> {
    let answer = account.ask(Query::Epsilon { delta })?;
    curves.bounds([answer.lower, answer.upper].map(&point));
    let composition = account.composition()?;
    for notion in composition.notions(Delta::new(delta)?)? {
        if let Some(epsilon) = notion.epsilon.filter(|_| notion.name != "exact") {
            curves.add(notion.name, point(epsilon));
        }
    }
    Ok(())
}

fn profile(form: &Form, least: f64) -> Result<Chart, Failure> {
    if !(least > 0.0 && least < 0.1) {
        return Err(Failure::invalid(
            "out_of_range",
            &format!("the least delta is {}", plain(least)),
            "give --least as a number above 0 and below 0.1",
        ));
    }
    let account = form.account()?;
    let (mut curves, most) = (Curves::new(), 0.5_f64);
    for index in 0..=POINTS {
        let share = f64::from(index) / f64::from(POINTS);
        let delta = most * (least / most).powf(share);
        notions(&mut curves, &account, delta, |epsilon| [epsilon, delta])?;
    }
    let (reach, largest) = (curves.exact(0).fold(0.0, f64::max), curves.largest(0));
    if reach <= 0.0 {
        return Err(nothing_to_draw());
    }
    // Where older bounds are many times as large, they would press the exact ones to the edge.
    let (growth, start, legend) = if largest > 4.0 * reach {
        (
            Growth::Logarithmic,
            reach / 50.0,
            SeriesLabelPosition::LowerLeft,
        )
    } else {
        (Growth::Linear, 0.0, SeriesLabelPosition::UpperRight)
    };
    Ok(Chart {
        title: title(&form.text()),
        x: Axis {
            name: "epsilon".into(),
            growth,
            range: [start, largest],
        },
        y: Axis {
            name: "delta".into(),
            growth: Growth::Logarithmic,
            range: [least, 1.0],
        },
        legend,
        curves: curves.0,
    })
}

fn compositions(form: &Form, delta: f64, most: u64) -> Result<Chart, Failure> {
    if !(2..=1 << 40).contains(&most) {
        return Err(Failure::invalid(
            "out_of_range",
            &format!("there are {most} compositions to draw"),
            "give --most as a whole number from 2 to 2^40",
        ));
    }
    let account = form.account()?;
    let mut curves = Curves::new();
    let mut last = 0;
    for index in 0..=POINTS {
        let share = f64::from(index) / f64::from(POINTS);
        let times = (most as f64).powf(share).round() as u64;
        if times > last {
            last = times;
            let repeated = account.repeated(times)?;
            notions(&mut curves, &repeated, delta, |epsilon| {
                [times as f64, epsilon]
            })?;
        }
    }
    let positive = curves.exact(1).filter(|epsilon| *epsilon > 0.0);
    let lowest = positive.fold(f64::INFINITY, f64::min);
    if !lowest.is_finite() {
        return Err(nothing_to_draw());
    }
    let highest = curves.largest(1);
    Ok(Chart {
        title: title(&format!("{} at delta {}", form.text(), plain(delta))),
        x: Axis {
            name: "compositions".into(),
            growth: Growth::Logarithmic,
            range: [1.0, most as f64],
        },
        y: Axis {
            name: "epsilon".into(),
            growth: Growth::Logarithmic,
            range: [lowest / 1.5, highest * 1.5],
        },
        legend: SeriesLabelPosition::UpperLeft,
        curves: curves.0,
    })
}

fn tradeoff(form: &Form) -> Result<Chart, Failure> {
    let account = form.account()?;
    let mut curves = Curves::new();
    for index in 0..=POINTS {
        // Closer to both ends, where curves bend.
        let share = f64::from(index) / f64::from(POINTS);
        let rate = share * share * (3.0 - 2.0 * share);
        let answer = account.ask(Query::FalseNegatives { rate })?;
        curves.bounds([[rate, answer.lower], [rate, answer.upper]]);
    }
    let mut curves = curves.0;
    curves.insert(
        0,
        Curve {
            name: "without the answers".into(),
            points: vec![[0.0, 1.0], [1.0, 0.0]],
            stroke: BLIND,
        },
    );
    let axis = |name: &str| Axis {
        name: name.into(),
        growth: Growth::Linear,
        range: [0.0, 1.0],
    };
    Ok(Chart {
        title: title(&form.text()),
        x: axis("absent units wrongly flagged (false positives)"),
        y: axis("present units missed (false negatives)"),
        legend: SeriesLabelPosition::UpperRight,
        curves,
    })
}

fn training(run: Training, delta: f64, epochs: u32, whom: Whom) -> Result<Chart, Failure> {
    if epochs == 0 {
        return Err(Failure::invalid(
            "out_of_range",
            "there are no epochs to draw",
            "give --epochs as a whole number from 1 on",
        ));
    }
    let mut curves = Curves::new();
    let mut last = 0;
    for index in 1..=POINTS {
        let epoch = (u64::from(epochs) * u64::from(index)).div_ceil(u64::from(POINTS));
        if epoch == last {
            continue;
        }
        last = epoch;
        let epoch = epoch as f64;
        let run = Training {
            length: Length::Epochs(epoch),
            ..run
        };
        let account = run.account(whom.neighbours())?.for_group(whom.group());
        notions(&mut curves, &account, delta, |epsilon| [epoch, epsilon])?;
        if delta > 0.0
            && let Ok(first) = first_moments_accountant(&account.composition()?, delta)
        {
            curves.add("moments accountant of 2016", [epoch, first]);
        }
    }
    // Basic composition is off the chart; strong composition is what it was compared with.
    curves.0.retain(|curve| curve.name != "basic composition");
    let rate = match run.sampling {
        Sampling::Rate(rate) => rate,
        _ => f64::NAN,
    };
    let highest = curves.largest(1);
    if highest <= 0.0 {
        return Err(nothing_to_draw());
    }
    let relation = match whom.neighbours() {
        Neighbours::ReplaceOne => ", replace-one",
        _ => "",
    };
    Ok(Chart {
        title: format!(
            "Training: rate {}, noise {}, delta {}{relation}",
            plain(rate),
            plain(run.noise_multiplier),
            plain(delta)
        ),
        x: Axis {
            name: "epochs".into(),
            growth: Growth::Linear,
            range: [0.0, f64::from(epochs)],
        },
        y: Axis {
            name: "epsilon".into(),
            growth: Growth::Linear,
            range: [0.0, highest * 1.05],
        },
        legend: SeriesLabelPosition::UpperLeft,
        curves: curves.0,
    })
}

/// A form may be longer than a plot is wide.
fn title(text: &str) -> String {
    const LETTERS_MAX: usize = 72;
    match text.char_indices().nth(LETTERS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}

fn nothing_to_draw() -> Failure {
    Failure::invalid(
        "nothing_to_draw",
        "no bound of this composition is finite and above 0, so there is nothing to draw",
        "draw a composition that costs something at the deltas that are drawn",
    )
}

impl Picture for Chart {
    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Option<()> {
        register_font("sans-serif", FontStyle::Normal, dejavu::sans::regular()).ok()?;
        area.fill(&WHITE).ok()?;
        let ([left, right], [bottom, top]) = (self.x.ends(), self.y.ends());
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 20))
            .margin(16)
            .x_label_area_size(52)
            .y_label_area_size(72)
            .build_cartesian_2d(left..right, bottom..top)
            .ok()?;
        chart
            .configure_mesh()
            .x_desc(&self.x.name)
            .y_desc(&self.y.name)
            .x_label_formatter(&|place| self.x.label(*place))
            .y_label_formatter(&|place| self.y.label(*place))
            .axis_desc_style(("sans-serif", 17))
            .label_style(("sans-serif", 14))
            .light_line_style(WHITE)
            .draw()
            .ok()?;
        for curve in self.curves.iter().filter(|curve| !curve.points.is_empty()) {
            let Stroke { colour, pixels } = curve.stroke;
            let style = colour.stroke_width(pixels);
            let places = curve
                .points
                .iter()
                .map(|[x, y]| [self.x.place(*x), self.y.place(*y)]);
            let places: Vec<_> = places.collect();
            let window = [[left, right], [bottom, top]];
            let seen = places
                .windows(2)
                .filter_map(|ends| clip([ends[0], ends[1]], window));
            let pieces = seen.map(|ends| PathElement::new(ends.map(|[x, y]| (x, y)), style));
            chart
                .draw_series(pieces)
                .ok()?
                .label(&curve.name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], style));
        }
        chart
            .configure_series_labels()
            .position(self.legend.clone())
            .margin(12)
            .background_style(WHITE.mix(0.9))
            .border_style(BLACK.mix(0.3))
            .label_font(("sans-serif", 15))
            .draw()
            .ok()?;
        area.present().ok()
    }
}

/// The part of a piece of line within a window `[[left, right], [bottom, top]]`, if there is one.
fn clip([from, to]: [[f64; 2]; 2], window: [[f64; 2]; 2]) -> Option<[[f64; 2]; 2]> {
    // The logarithm of zero is nowhere.
    if !from.iter().chain(&to).all(|place| place.is_finite()) {
        return None;
    }
    let (mut start, mut end) = (0.0_f64, 1.0_f64);
    for axis in 0..2 {
        let (way, [low, high]) = (to[axis] - from[axis], window[axis]);
        if way == 0.0 {
            if !(low..=high).contains(&from[axis]) {
                return None;
            }
            continue;
        }
        let (first, second) = ((low - from[axis]) / way, (high - from[axis]) / way);
        start = start.max(first.min(second));
        end = end.min(first.max(second));
    }
    (start <= end).then(|| {
        [start, end].map(|share| [0, 1].map(|axis| from[axis] + share * (to[axis] - from[axis])))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_at_the_window() {
        let unit = [[0.0, 1.0], [0.0, 1.0]];
        let check = |from, to, expected| assert_eq!(clip([from, to], unit), expected);
        check([0.2, 0.2], [0.4, 0.6], Some([[0.2, 0.2], [0.4, 0.6]]));
        check([0.5, 0.5], [0.5, 2.5], Some([[0.5, 0.5], [0.5, 1.0]]));
        check([-1.0, 0.5], [3.0, 0.5], Some([[0.0, 0.5], [1.0, 0.5]]));
        check([2.0, 2.0], [3.0, 3.0], None);
        check([0.5, 2.0], [0.5, 3.0], None);
        check([f64::NEG_INFINITY, 0.5], [0.5, 0.5], None);
    }

    #[test]
    fn powers_of_ten_are_labelled() {
        let axis = Axis {
            name: String::new(),
            growth: Growth::Logarithmic,
            range: [1e-12, 1.0],
        };
        assert_eq!(
            [axis.label(-12.0), axis.label(0.0), axis.label(-2.5)],
            ["1e-12", "1", "0.0032"]
        );
    }
}
