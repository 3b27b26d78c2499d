//! Attacks on outputs that are vectors: a logistic regression tells the worlds apart, and the event is a half-line of its score.
//!
//! The regression is fitted to shown outputs whose coordinates were brought to mean zero and variance one, by gradient steps with a small
//! penalty. A poor fit costs power and not validity.

use crate::attack::Target;
use crate::world::{Event, Shown};
use crate::{Error, Result};

/// Gradient steps. The loss is convex and its coordinates are of one size, so that a few hundred come close to the minimum.
const STEPS: u32 = 300;
/// The length of a step, below the inverse of the largest curvature (a quarter for each coordinate of variance one).
const RATE: f64 = 1.0;
/// What keeps weights finite where the worlds do not overlap.
const PENALTY: f64 = 1e-3;

impl Shown<Vec<f64>> {
    /// A half-line of the score of a logistic regression. All outputs must have the same length; what is no number counts as zero.
    pub fn classifier(&self, target: Target) -> Result<Event<Vec<f64>>> {
        let score = self.fit()?;
        let scores = self.map(|output| score.of(output));
        Ok(scores
            .half_line(target)
            .of(move |output: &Vec<f64>| score.of(output)))
    }

    fn fit(&self) -> Result<Score> {
        let rows: Vec<(&Vec<f64>, f64)> = self
            .one()
            .iter()
            .map(|y| (y, 1.0))
            .chain(self.other().iter().map(|y| (y, 0.0)))
            .collect();
        let width = rows.first().map_or(0, |(y, _)| y.len());
        if let Some((odd, _)) = rows.iter().find(|(y, _)| y.len() != width) {
            return Err(Error::CellsDiffer {
                observed: odd.len(),
                expected: width,
            });
        }
        let n = rows.len().max(1) as f64;
        let mut score = Score {
            centre: vec![0.0; width],
            inverse_spread: vec![0.0; width],
            weights: vec![0.0; width],
        };
        for at in 0..width {
            let column = || rows.iter().map(|(y, _)| finite(y[at]));
            let mean = column().sum::<f64>() / n;
            let variance = column().map(|y| (y - mean).powi(2)).sum::<f64>() / n;
            score.centre[at] = mean;
            score.inverse_spread[at] = if variance > 0.0 {
                1.0 / variance.sqrt()
            } else {
                0.0
            };
        }
        let scaled: Vec<Vec<f64>> = rows.iter().map(|(y, _)| score.scale(y)).collect();
        let step = RATE / (width as f64).max(1.0);
        for _ in 0..STEPS {
            let mut gradient = vec![0.0; width];
            for (x, (_, label)) in scaled.iter().zip(&rows) {
                let value: f64 = x.iter().zip(&score.weights).map(|(x, w)| x * w).sum();
                let error = 1.0 / (1.0 + libm::exp(-value)) - label;
                for (sum, x) in gradient.iter_mut().zip(x) {
                    *sum += error * x;
                }
            }
            for (weight, sum) in score.weights.iter_mut().zip(&gradient) {
                *weight -= 4.0 * step * (sum / n + PENALTY * *weight);
            }
        }
        Ok(score)
    }
}

#[derive(Clone)]
struct Score {
    centre: Vec<f64>,
    inverse_spread: Vec<f64>,
    weights: Vec<f64>,
}

impl Score {
    fn scale(&self, output: &[f64]) -> Vec<f64> {
        output
            .iter()
            .zip(self.centre.iter().zip(&self.inverse_spread))
            .map(|(y, (centre, inverse))| (finite(*y) - centre) * inverse)
            .collect()
    }

    fn of(&self, output: &[f64]) -> f64 {
        let scaled = self.scale(output);
        scaled.iter().zip(&self.weights).map(|(x, w)| x * w).sum()
    }
}

fn finite(y: f64) -> f64 {
    if y.is_finite() { y } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{assert_false_alarms, normal};
    use crate::world::Outputs;
    use crate::{Alpha, Group};
    use whit_core::Delta;

    /// Vectors of 10 normal numbers; in one world each is moved by `shift`.
    fn found(shift: f64, trials: usize, level: f64, seed: u64) -> f64 {
        let (mut one, mut other) = (normal(2 * seed), normal(2 * seed + 1));
        let outputs = Outputs::run(
            trials,
            || (0..10).map(|_| one() + shift).collect(),
            || (0..10).map(|_| other()).collect::<Vec<f64>>(),
        );
        let (shown, held) = outputs.split();
        let event = shown.classifier(Target::PURE).expect("equal lengths");
        held.count(&event)
            .mu_lower(Group::ONE, Alpha::new(level).expect("in range"))
            .expect("valid")
            .mu_lower()
    }

    /// Together the coordinates show `√10` times what one of them does.
    #[test]
    fn evidence_of_all_coordinates_is_gathered() {
        let mu = 0.5 * 10_f64.sqrt();
        let lower = found(0.5, 8000, 0.01, 1);
        assert!(lower > 0.85 * mu && lower < mu, "{lower} {mu}");
    }

    #[test]
    fn false_alarms_are_as_rare_as_promised() {
        assert_false_alarms(0.05, |seed| found(0.0, 60, 0.05, seed) > 0.0);
    }

    #[test]
    fn odd_outputs_are_refused() {
        let shown = Outputs::new(vec![vec![1.0], vec![1.0, 2.0]], vec![vec![1.0]; 2])
            .split_at(2)
            .expect("two of each")
            .0;
        assert!(shown.classifier(Target::PURE).is_err());
        let (shown, held) = Outputs::new(vec![vec![f64::NAN]; 8], vec![vec![0.0]; 8]).split();
        let event = shown.classifier(Target::PURE).expect("equal lengths");
        let bound = held.count(&event).epsilon_lower(
            Delta::ZERO,
            Group::ONE,
            Alpha::new(0.05).expect("in range"),
        );
        assert_eq!(bound.expect("valid").epsilon_lower(), 0.0);
    }
}
