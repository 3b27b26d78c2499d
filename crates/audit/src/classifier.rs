//! Attacks on outputs that are vectors: a logistic regression tells the worlds apart, and the event is a half-line of its score.
//!
//! **Features.** Of each coordinate two: the number, brought to mean zero and variance one, and whether it is finite at all. Before, numbers are clamped to the shortest
//! interval with half of those that are shown, and three of its lengths on either side: no normal number is beyond (`4.7σ`), and one output of `1e200` in a hundred, or in three, does not
//! become all that is seen. The regression is fitted to shown outputs by gradient steps with a small penalty. A poor fit costs power and not validity.

use crate::attack::Target;
use crate::world::{Event, Shown};
use crate::{Error, Result};

/// Gradient steps. The loss is convex and its coordinates are of one size, so that a few hundred come close to the minimum.
const STEPS: u32 = 300;
/// The length of a step, below the inverse of the largest curvature (a quarter for each coordinate of variance one).
const RATE: f64 = 1.0;
/// Lengths of the shortest half beyond which a number is clamped: where boxplots call it far out [Tuk77].
const FAR: f64 = 3.0;
/// What keeps weights finite where the worlds do not overlap.
const PENALTY: f64 = 1e-3;

impl Shown<Vec<f64>> {
    /// A half-line of the score of a logistic regression. All outputs must have the same length.
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
        let column = |at: usize| rows.iter().map(|(y, _)| y[at]).collect();
        let fences = (0..width).map(|at| Fence::around(column(at))).collect();
        let mut score = Score {
            fences,
            centre: vec![0.0; 2 * width],
            inverse_spread: vec![1.0; 2 * width],
            weights: vec![0.0; 2 * width],
        };
        let raw: Vec<Vec<f64>> = rows.iter().map(|(y, _)| score.scale(y)).collect();
        for at in 0..2 * width {
            let column = || raw.iter().map(|x| x[at]);
            let mean = column().sum::<f64>() / n;
            let variance = column().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
            score.centre[at] = mean;
            score.inverse_spread[at] = if variance > 0.0 {
                1.0 / variance.sqrt()
            } else {
                0.0
            };
        }
        let scaled: Vec<Vec<f64>> = rows.iter().map(|(y, _)| score.scale(y)).collect();
        let varying = score.inverse_spread.iter().filter(|s| **s > 0.0).count();
        let step = RATE / (varying as f64).max(1.0);
        for _ in 0..STEPS {
            let mut gradient = vec![0.0; 2 * width];
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

/// Where a coordinate is clamped.
#[derive(Clone, Copy)]
struct Fence {
    low: f64,
    high: f64,
}

impl Fence {
    fn around(mut column: Vec<f64>) -> Self {
        column.retain(|y| y.is_finite());
        column.sort_by(f64::total_cmp);
        let n = column.len();
        // The shortest interval with so many numbers; of more of them, if so many are equal.
        let mut rest = n / 2;
        loop {
            let pairs = column
                .iter()
                .zip(column.iter().skip(n.saturating_sub(rest + 1)));
            // Halved, so that no length overflows.
            let shortest = pairs
                .map(|(low, high)| (high / 2.0 - low / 2.0, *low, *high))
                .min_by(|a, b| a.0.total_cmp(&b.0));
            let Some((half, low, high)) = shortest else {
                return Self {
                    low: 0.0,
                    high: 0.0,
                };
            };
            if half > 0.0 || rest == 0 {
                let finite = |y: f64| y.clamp(f64::MIN, f64::MAX);
                return Self {
                    low: finite(low - 2.0 * FAR * half),
                    high: finite(high + 2.0 * FAR * half),
                };
            }
            rest /= 2;
        }
    }

    /// Between -1 and 1, and zero for what is no number.
    fn place(self, y: f64) -> f64 {
        let half = self.high / 2.0 - self.low / 2.0;
        if y.is_nan() || half == 0.0 {
            return 0.0;
        }
        let middle = self.low / 2.0 + self.high / 2.0;
        (y.clamp(self.low, self.high) / 2.0 - middle / 2.0) / (half / 2.0)
    }
}

#[derive(Clone)]
struct Score {
    fences: Vec<Fence>,
    centre: Vec<f64>,
    inverse_spread: Vec<f64>,
    weights: Vec<f64>,
}

impl Score {
    fn scale(&self, output: &[f64]) -> Vec<f64> {
        let features = output.iter().zip(&self.fences).flat_map(|(y, fence)| {
            let odd = if y.is_finite() { 0.0 } else { 1.0 };
            [fence.place(*y), odd]
        });
        features
            .zip(self.centre.iter().zip(&self.inverse_spread))
            .map(|(x, (centre, inverse))| (x - centre) * inverse)
            .collect()
    }

    fn of(&self, output: &[f64]) -> f64 {
        let scaled = self.scale(output);
        scaled.iter().zip(&self.weights).map(|(x, w)| x * w).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{assert_false_alarms, normal};
    use crate::world::Outputs;
    use crate::{Alpha, Group};

    /// Vectors of 10 normal numbers; in one world each is moved by `shift`.
    fn found(shift: f64, trials: usize, level: f64, seed: u64) -> f64 {
        let (mut one, mut other) = (normal(2 * seed), normal(2 * seed + 1));
        let outputs = Outputs::run(
            trials,
            || (0..10).map(|_| one() + shift).collect(),
            || (0..10).map(|_| other()).collect::<Vec<f64>>(),
        );
        mu_lower(outputs, level)
    }

    fn mu_lower(outputs: Outputs<Vec<f64>>, level: f64) -> f64 {
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

    /// One output in five is beyond all measure, in both worlds alike; the others show what they show.
    #[test]
    fn outliers_do_not_blind() {
        for outlier in [1e200, f64::MAX, f64::NEG_INFINITY, f64::NAN] {
            let (mut one, mut other) = (normal(4), normal(5));
            let mut next = 0_u32;
            let mut spoilt = |y: f64| {
                next += 1;
                if next.is_multiple_of(5) { outlier } else { y }
            };
            let outputs = (0..4000).map(|_| {
                let pair = [one() + 2.0, other()];
                pair.map(|y| vec![spoilt(y)])
            });
            let (one, other) = outputs.map(|[one, other]| (one, other)).unzip();
            let lower = mu_lower(Outputs::new(one, other), 0.01);
            assert!(lower > 1.0, "{outlier}: {lower}");
        }
    }

    /// What is no number in one world alone tells it, though no number does.
    #[test]
    fn what_is_not_finite_is_evidence() {
        let (mut one, mut other) = (normal(6), normal(7));
        let outputs = Outputs::run(
            2000,
            || vec![if one() > 0.0 { f64::NAN } else { 0.0 }],
            || vec![if other() > 2.0 { f64::NAN } else { 0.0 }],
        );
        let lower = mu_lower(outputs, 0.01);
        assert!(lower > 1.0, "{lower}");
    }

    #[test]
    fn fences_stand_around_most_of_what_is_there() {
        let fence = |column: &[f64]| {
            let fence = Fence::around(column.to_vec());
            (fence.low, fence.high)
        };
        assert_eq!(fence(&[0.0, 1.0, 3.0, 1e200]), (-3.0, 4.0));
        // Half of them are equal, so that more are taken.
        assert_eq!(fence(&[0.0, 0.0, 0.0, 1.0]), (-3.0, 4.0));
        assert_eq!(fence(&[7.0; 3]), (7.0, 7.0));
        assert_eq!(fence(&[f64::NAN]), (0.0, 0.0));
        assert_eq!(fence(&[f64::MIN, f64::MAX]), (f64::MIN, f64::MAX));
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
        let nothing = Outputs::new(vec![vec![]; 8], vec![vec![]; 8]);
        assert_eq!(mu_lower(nothing, 0.05), 0.0);
    }
}
