//! # Linear regression
//! **Definition.** Features and the number that is learnt have declared bounds, between which clamped values have places `c_1, …, c_d` and `y` in `[-1, 1]`.
//!   Let `φ = (1, c)`. Released together, with independent noise of one scale: the upper triangle of `Σ φφᵀ`, with `Σ (c_j² - 1/2)` on the diagonal for `j >= 1`,
//!   and `Σ φ y`: the sufficient statistics of least squares, with the number of examples among them. [VS09, Wan18]
//! **Requires.** Bounds that were declared without the data.
//! **Guarantee.** That of [`noisy_sums`](super::noisy_sums) with one round, `Δ₁ = 2 + 2d + d²/2` and `Δ₂² = 2 + 7d/4 + d²/2`. Both are
//!   reached.
//! **Proof.** All coordinates of what one example adds are at most 1 in size, those of the `d` squares at most 1/2; with `d(d-1)/2` products of two features, `d` sums,
//!   `d` products with `y`, `Σ y` and the count that is `Δ₁`. With `s_j = c_j²` and `t = y²` the square of its length is
//!   `1 + Σ s_j + Σ (s_j - 1/2)² + Σ_{j<k} s_j s_k + t (1 + Σ s_j)`, convex in each `s_j` and linear in `t`, so largest where all are 0 or 1. There the squares add `d/4`,
//!   and the rest grows with the number of ones: `1 + d + d/4 + d(d-1)/2 + 1 + d`. Both are reached where all places are `±1`. Places are whole multiples of
//!   `2^-18` within these bounds, so all of it holds exactly for integers on a grid of `2^-36`. ∎
//! **Fit.** Post-processing: `A β = b` with the noisy `A` and `b`. Noise makes small eigenvalues of `A` anything, also negative. They are raised to the size of the noise,
//!   `σ√(d+1)`, half of where the largest eigenvalue of the noise alone is; so directions in which the data do not spread are left alone. Whoever wants more gives a `ridge`, a number of
//!   examples, which is added to all. Both are public.
//! **Error.** For coefficients near those of the data, the noise must be small against `n` times the smallest variance in any direction, where half widths are one. No interval is
//!   claimed.

use serde::{Deserialize, Serialize};
use whit_core::{Entropy, Ratio, Secret};
use whit_mechanism::Release;

use super::eigen::{Eigen, Triangle, eigen};
use super::interval::{Interval, UNIT, UNIT_BITS};
use super::noisy_sums::{NoisySums, Reach, sum};
use super::{Answers, Budget, Classical, Fit, MATRIX_MAX, MATRIX_RANGE, Takes, Terms, counted};
use crate::data::{Answer, Dataset, Example};
use crate::error::{Result, within};
use crate::payment::Payment;

/// The grid of all sums: that of products of two places.
const BITS: i32 = 2 * UNIT_BITS;

/// What a fit of a linear model would do and cost.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearRegressionPlan {
    features: Vec<Interval>,
    target: Interval,
    ridge: f64,
    pub(super) noise: NoisySums,
}

impl LinearRegressionPlan {
    /// For examples with these features and a number to be learnt, with no ridge but what the noise asks for.
    pub fn new(features: Vec<Interval>, target: Interval, budget: Budget) -> Result<Self> {
        let d = features.len();
        counted("features", d, MATRIX_MAX, MATRIX_RANGE)?;
        let triangle = Triangle(d + 1);
        let square = (d * d) as u128;
        let reach = Reach {
            l1: Ratio::new(4 + 4 * d as u128 + square, 2)?,
            l2_square: Ratio::new(8 + 7 * d as u128 + 2 * square, 4)?,
            coordinates: triangle.entries() + d + 1,
            bits: BITS,
        };
        let noise = NoisySums::new(reach, 1, budget)?;
        Ok(Self {
            features,
            target,
            ridge: 0.0,
            noise,
        })
    }

    /// The same with a ridge of so many examples, where half widths are one. It changes no event.
    pub fn with_ridge(mut self, ridge: f64) -> Result<Self> {
        let passes = ridge >= 0.0 && ridge.is_finite();
        within("ridge", ridge, passes, "a finite number from 0 on")?;
        self.ridge = ridge;
        Ok(self)
    }

    fn triangle(&self) -> Triangle {
        Triangle(self.features.len() + 1)
    }

    fn sums(&self, data: &Secret<Dataset>) -> Secret<Vec<i128>> {
        let triangle = self.triangle();
        let mut phi = Vec::with_capacity(triangle.0);
        sum(data, triangle.entries() + triangle.0, |example, sums| {
            self.add(example, &mut phi, sums);
        })
    }

    /// What one example adds.
    fn add(&self, example: Example<'_>, phi: &mut Vec<i64>, sums: &mut [i128]) {
        let Answer::Number(number) = example.answer else {
            return;
        };
        let y = self.target.units(number);
        phi.clear();
        phi.push(UNIT);
        let places = self.features.iter().zip(example.features);
        phi.extend(places.map(|(interval, value)| interval.units(*value)));
        // In the order of the triangle.
        let mut at = 0;
        for j in 0..phi.len() {
            for k in j..phi.len() {
                let half = if j == k && j > 0 { UNIT * UNIT / 2 } else { 0 };
                sums[at] += i128::from(phi[j] * phi[k] - half);
                at += 1;
            }
        }
        for (sum, place) in sums[at..].iter_mut().zip(phi.iter()) {
            *sum += i128::from(place * y);
        }
    }

    /// Post-processing.
    fn model(&self, mut sums: Vec<f64>) -> LinearRegression {
        let triangle = self.triangle();
        let right = sums.split_off(triangle.entries());
        for j in 1..triangle.0 {
            sums[triangle.at(j, j)] += 0.5 * sums[0];
        }
        let Eigen { values, vectors } = eigen(triangle, &sums);
        let floor = self.noise.deviation() * (triangle.0 as f64).sqrt();
        let mut beta = vec![0.0; triangle.0];
        for (value, vector) in values.iter().zip(&vectors) {
            let product: f64 = vector.iter().zip(&right).map(|(v, b)| v * b).sum();
            let share = product / (value + self.ridge).max(floor);
            for (beta, v) in beta.iter_mut().zip(vector) {
                *beta += share * v;
            }
        }
        let scaled = self.features.iter().zip(&beta[1..]);
        let slopes: Vec<f64> = scaled
            .map(|(interval, beta)| beta * self.target.half_width() / interval.half_width())
            .collect();
        let at_middle = self.features.iter().zip(&slopes);
        let explained: f64 = at_middle.map(|(x, slope)| slope * x.middle()).sum();
        LinearRegression {
            intercept: self.target.value(beta[0]) - explained,
            slopes,
        }
    }
}

impl Classical for LinearRegressionPlan {
    type Model = LinearRegression;

    fn takes(&self) -> Takes {
        Takes {
            features: self.features.len(),
            answers: Answers::Numbers,
        }
    }

    fn terms(&self) -> Terms {
        self.noise.terms()
    }

    fn spend(
        fit: Fit<'_, Self>,
        payment: Payment,
        entropy: &mut impl Entropy,
    ) -> Result<Release<LinearRegression>> {
        let (plan, data) = (fit.plan(), fit.data());
        let noisy = plan.noise.release(payment, || plan.sums(data), entropy)?;
        Ok(noisy.map(|sums| plan.model(sums)))
    }
}

/// A fitted line. Public.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinearRegression {
    intercept: f64,
    slopes: Vec<f64>,
}

impl LinearRegression {
    /// Is it a line? A file may say anything.
    pub(super) fn is_whole(&self) -> bool {
        let numbers = |of: &[f64]| of.iter().all(|number| number.is_finite());
        !self.slopes.is_empty() && numbers(&self.slopes) && self.intercept.is_finite()
    }

    /// How many features it looks at.
    pub(super) fn features(&self) -> usize {
        self.slopes.len()
    }

    /// The number on the line. Features that are missing count as zero.
    pub fn predict(&self, features: &[f32]) -> f64 {
        let each = self.slopes.iter().zip(features);
        self.intercept + each.map(|(slope, x)| slope * f64::from(*x)).sum::<f64>()
    }

    /// Where all features are zero.
    pub fn intercept(&self) -> f64 {
        self.intercept
    }

    /// One for each feature.
    pub fn slopes(&self) -> &[f64] {
        &self.slopes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classical::doubt::{
        Flaw, Twin, acquits, budget, convicts, fitted, in_grid, longest, nasty, nearly_normal,
        plus, refused, seed, spanned, stated,
    };
    use crate::payment::Priced;
    use whit_core::Fault;
    use whit_testkit::SeededBits;

    fn interval() -> Interval {
        Interval::new(-1.0, 1.0).expect("an interval")
    }

    fn plan(d: usize, (epsilon, delta): (f64, f64)) -> LinearRegressionPlan {
        let terms = budget(epsilon, delta);
        LinearRegressionPlan::new(vec![interval(); d], interval(), terms).expect("a plan")
    }

    fn data(d: usize, rows: &[(Vec<f32>, f32)]) -> Secret<Dataset> {
        let features = rows.iter().flat_map(|row| row.0.clone()).collect();
        let numbers = rows.iter().map(|row| row.1).collect();
        Secret::new(Dataset::with_numbers(vec![d], features, numbers).expect("fits"))
    }

    #[test]
    fn closed_form() {
        for (d, l1, l2_square, sums) in [(1, 4.5, 4.25, 5), (2, 8.0, 7.5, 9), (3, 12.5, 11.75, 14)]
        {
            let [gaussian, pure] = [plan(d, (1.0, 1e-6)), plan(d, (1.0, 0.0))];
            assert_eq!(stated(gaussian.event(), BITS), [(l2_square, None)]);
            assert_eq!(stated(pure.event(), BITS), [(l1, Some(sums))]);
        }
    }

    #[test]
    fn the_worst_example_is_as_long_as_claimed() {
        let mut bits = SeededBits::new(seed(721));
        for d in 1..=3 {
            let plan = plan(d, (1.0, 0.0));
            let worst = longest(4000, BITS, || {
                let mut row = || (nasty(&mut bits, d), nasty(&mut bits, 1)[0]);
                let others = vec![row(), row()];
                let mut all = others.clone();
                all.push(row());
                [all, others].map(|rows| plan.sums(&data(d, &rows)))
            });
            let size = d as f64;
            let half = size * size / 2.0;
            assert_eq!(worst, (2.0 + 2.0 * size + half, 2.0 + 1.75 * size + half));
        }
    }

    /// A canary beyond the ends of its intervals, with others and without it.
    fn twin(flaw: Flaw, form: (f64, f64)) -> Twin {
        let claimed = plan(1, form);
        let others = [[0.5, -0.5]; 5].concat();
        let others: Vec<_> = others.iter().map(|x| (vec![*x], x / 2.0)).collect();
        let mut all = others.clone();
        all.push((vec![7.0], -7.0));
        let worlds = [others, all].map(|rows| {
            let mut plan = claimed.clone();
            if flaw == Flaw::BoundsFromData {
                plan.features = vec![spanned(rows.iter().map(|row| row.0[0]))];
                plan.target = spanned(rows.iter().map(|row| row.1));
            }
            plan.sums(&data(1, &rows)).expose()
        });
        let [without, mut with] = worlds;
        if flaw == Flaw::Unclamped {
            // The number that is learnt, and its product with the feature.
            with = plus(&without, &in_grid(&[1.0, 1.0, 0.5, -7.0, -7.0], BITS));
        }
        // Products with the number that is learnt are released, and not priced.
        let cross = |twice| Ratio::new(twice, 2).expect("not zero");
        let forgetful = claimed.noise.believing(cross(5), &cross(9) * &cross(1));
        Twin::new(flaw, &claimed.noise, forgetful, [without, with])
    }

    #[test]
    fn falsifier() {
        acquits(722, twin);
    }

    #[test]
    fn falsifier_has_teeth() {
        use Flaw::{BoundsFromData, Forgotten, LessNoise, Unclamped};
        convicts(
            723,
            &[LessNoise, Forgotten, BoundsFromData, Unclamped],
            twin,
        );
    }

    #[test]
    fn learns_a_line() {
        let mut bits = SeededBits::new(723);
        let age = Interval::new(20.0, 60.0).expect("an interval");
        let size = Interval::new(0.0, 2.0).expect("an interval");
        let pay = Interval::new(-100.0, 300.0).expect("an interval");
        let rows: Vec<_> = (0..20_000)
            .map(|_| {
                let (x, z) = (
                    20.0 + bits.below(4000) as f64 / 100.0,
                    bits.below(200) as f64 / 100.0,
                );
                let y = 10.0 + 3.0 * x - 40.0 * z + 5.0 * nearly_normal(&mut bits);
                (vec![x as f32, z as f32], y as f32)
            })
            .collect();
        for terms in [(1.0, 1e-6), (3.0, 0.0)] {
            let plan = LinearRegressionPlan::new(vec![age, size], pay, budget(terms.0, terms.1));
            let plan = plan.expect("a plan");
            let line = fitted(&plan, &data(2, &rows), 724);
            assert!((line.slopes()[0] - 3.0).abs() < 0.1, "{line:?}");
            assert!((line.slopes()[1] + 40.0).abs() < 2.0, "{line:?}");
            assert!((line.intercept() - 10.0).abs() < 5.0, "{line:?}");
            assert!((line.predict(&[40.0, 1.0]) - 90.0).abs() < 2.0);
        }
    }

    /// With hardly any data there is noise only, and the line stays where numbers are.
    #[test]
    fn noise_alone_makes_no_steep_line() {
        let plan = plan(5, (0.1, 1e-6));
        for seed in 0..20 {
            let line = fitted(&plan, &data(5, &[]), seed);
            assert!(
                line.slopes().iter().all(|slope| slope.abs() < 5.0),
                "{line:?}"
            );
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let make = |d| LinearRegressionPlan::new(vec![interval(); d], interval(), budget(1.0, 0.0));
        for refused in [make(0), make(MATRIX_MAX + 1)] {
            let refused = refused.expect_err("too few or many");
            assert_eq!(
                refused.suggestion(),
                format!("give features as {MATRIX_RANGE}")
            );
        }
        assert!(plan(1, (1.0, 0.0)).with_ridge(-1.0).is_err());
        assert!(plan(1, (1.0, 0.0)).with_ridge(f64::NAN).is_err());
        let plan = plan(2, (1.0, 0.0)).with_ridge(10.0).expect("a ridge");
        assert_eq!(refused(&plan, &data(3, &[])), Some("other_columns"));
        let classes = Dataset::with_classes(vec![2], vec![], vec![], 2).expect("fits");
        assert_eq!(refused(&plan, &Secret::new(classes)), Some("other_labels"));
        fitted(&plan, &data(2, &[(vec![f32::NAN, 0.0], 1.0)]), 725);
    }
}
