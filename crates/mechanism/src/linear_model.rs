//! # Linear models from noisy moments
//! **Definition.** The least-squares line `y ≈ a + Σ b_j x_j` of some columns of [`Moments`]: with `C` the covariances of the `x` and `g`
//!   those with `y`, both where half widths are one, `b = (C + λI)⁻¹ g`, then turned back into the units of the columns.
//! **Guarantee.** That of the moments: nothing else of the data is looked at. [VS09, Wan18]
//! **Ridge.** `λ` is the ridge that was asked for. Noise can make `C` singular or worse: if `C + λI` has no Cholesky factor, `λ` grows, from
//!   the size of the noise on, by doubling, until it has one. That comes to an end, since a matrix with a diagonal that exceeds
//!   the sum of the rest of its rows has one. The model tells which `λ` it used.
//! **Error.** The coefficients are those of the noisy moments; for coefficients near those of the data, the noise must be small against
//!   `n` times the smallest eigenvalue of `C`. No interval is claimed.

use crate::Moments;

/// A line through data.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearModel {
    /// The value where all columns are zero.
    pub intercept: f64,
    /// One slope for each of the columns asked for, in that order.
    pub slopes: Vec<f64>,
    /// The ridge that was needed, where half widths are one. Zero is ordinary least squares.
    pub ridge: f64,
}

/// Each doubling of the ridge passes once; from any positive float to any other there are fewer.
const DOUBLINGS_MAX: u32 = 2200;

impl Moments {
    /// Predicts column `target` from `columns`, with at least this `ridge`. None if a column is not there, is named twice or is
    /// the target, or if there are none: all of that is public.
    pub fn linear_model(
        &self,
        target: usize,
        columns: &[usize],
        ridge: f64,
    ) -> Option<LinearModel> {
        let mut named = columns.to_vec();
        named.push(target);
        named.sort_unstable();
        named.dedup();
        let fits = named.iter().all(|&j| j < self.columns()) && named.len() == columns.len() + 1;
        if !fits || columns.is_empty() {
            return None;
        }
        let gram: Vec<Vec<f64>> = columns
            .iter()
            .map(|&j| {
                columns
                    .iter()
                    .map(|&k| self.unit_covariance(j, k))
                    .collect()
            })
            .collect();
        let with_target: Vec<f64> = columns
            .iter()
            .map(|&j| self.unit_covariance(j, target))
            .collect();
        let mut ridge = if ridge.is_finite() {
            ridge.max(0.0)
        } else {
            0.0
        };
        let noise = self.unit_error().max(f64::MIN_POSITIVE);
        for _ in 0..DOUBLINGS_MAX {
            if let Some(solution) = solve(&gram, ridge, &with_target) {
                return Some(self.model(target, columns, &solution, ridge));
            }
            ridge = (2.0 * ridge).max(noise);
        }
        None
    }

    fn model(
        &self,
        target: usize,
        columns: &[usize],
        unit_slopes: &[f64],
        ridge: f64,
    ) -> LinearModel {
        let (_, target_half) = self.middle_and_half(target);
        let slopes: Vec<f64> = columns
            .iter()
            .zip(unit_slopes)
            .map(|(&j, slope)| slope * target_half / self.middle_and_half(j).1)
            .collect();
        let explained: f64 = columns
            .iter()
            .zip(&slopes)
            .map(|(&j, slope)| slope * self.mean_of(j).answer)
            .sum();
        LinearModel {
            intercept: self.mean_of(target).answer - explained,
            slopes,
            ridge,
        }
    }
}

impl LinearModel {
    /// The value on the line. Columns in the order of the slopes; missing ones count as zero.
    pub fn predict(&self, columns: &[f64]) -> f64 {
        let slopes = self.slopes.iter().zip(columns);
        self.intercept + slopes.map(|(slope, value)| slope * value).sum::<f64>()
    }
}

/// A pivot below this share of its diagonal is rounding.
const PIVOT_MIN: f64 = 1e-12;

/// Solves `(gram + ridge I) x = right` by Cholesky's factor. None if there is none.
fn solve(gram: &[Vec<f64>], ridge: f64, right: &[f64]) -> Option<Vec<f64>> {
    let size = right.len();
    let mut factor = vec![vec![0.0; size]; size];
    for i in 0..size {
        for j in 0..=i {
            let known: f64 = (0..j).map(|k| factor[i][k] * factor[j][k]).sum();
            let own = gram[i][j] + if i == j { ridge } else { 0.0 };
            let rest = own - known;
            factor[i][j] = if i != j {
                rest / factor[j][j]
            } else if rest > PIVOT_MIN * own.abs() {
                rest.sqrt()
            } else {
                return None;
            };
        }
    }
    let mut solution = right.to_vec();
    for i in 0..size {
        let known: f64 = (0..i).map(|k| factor[i][k] * solution[k]).sum();
        solution[i] = (solution[i] - known) / factor[i][i];
    }
    for i in (0..size).rev() {
        let known: f64 = (i + 1..size).map(|k| factor[k][i] * solution[k]).sum();
        solution[i] = (solution[i] - known) / factor[i][i];
    }
    solution.iter().all(|x| x.is_finite()).then_some(solution)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{confidence, scale, seed};
    use crate::{Bounds, Contribution, Covariance, Noise};
    use whit_core::{AddRemove, Entropy};
    use whit_testkit::Seeded;

    fn moments(rows: &[[f64; 3]], sigma: (u128, u128), entropy: &mut impl Entropy) -> Moments {
        let columns = [(0.0, 10.0), (-5.0, 5.0), (-100.0, 100.0)];
        let columns = columns.map(|(lower, upper)| Bounds::new(lower, upper).expect("a range"));
        let of =
            Covariance::<AddRemove>::new(columns.to_vec(), Contribution::Row).expect("columns");
        let noisy = of
            .with_noise(&Noise::Gaussian(scale(sigma.0, sigma.1)))
            .expect("in range");
        let release = noisy.release(of.aggregate(rows), confidence(0.95), entropy);
        release.expect("entropy").into_value()
    }

    /// `y = 3 + 2 x_1 - 7 x_2`.
    fn rows(count: u32) -> Vec<[f64; 3]> {
        let row = |i: u32| {
            let (a, b) = (f64::from(i % 11) * 0.9, f64::from(i * 7 % 10) - 5.0);
            [a, b, 3.0 + 2.0 * a - 7.0 * b]
        };
        (0..count).map(row).collect()
    }

    #[test]
    fn finds_the_line_without_noise() {
        let moments = moments(&rows(1000), (1, 1 << 50), &mut Seeded::new(651));
        let model = moments
            .linear_model(2, &[0, 1], 0.0)
            .expect("three columns");
        assert!(
            (model.slopes[0] - 2.0).abs() < 1e-6 && (model.slopes[1] + 7.0).abs() < 1e-6,
            "{model:?}"
        );
        assert!((model.predict(&[1.0, 1.0]) + 2.0).abs() < 1e-5 && model.ridge == 0.0);
        let turned = moments
            .linear_model(2, &[1, 0], 0.0)
            .expect("three columns");
        assert!(
            (turned.slopes[0] - model.slopes[1]).abs() < 1e-9,
            "slopes come in the order asked for"
        );
        let shrunk = moments
            .linear_model(2, &[0, 1], 0.1)
            .expect("three columns");
        assert!(shrunk.slopes[0].abs() < model.slopes[0].abs());
    }

    #[test]
    fn noise_moves_it_a_little() {
        let mut entropy = Seeded::new(seed(652));
        let rows = rows(20_000);
        for _ in 0..20 {
            let model = moments(&rows, (10, 1), &mut entropy)
                .linear_model(2, &[0, 1], 0.0)
                .expect("three columns");
            assert!(
                (model.slopes[0] - 2.0).abs() < 0.5 && (model.slopes[1] + 7.0).abs() < 0.5,
                "{model:?}"
            );
        }
    }

    #[test]
    fn singular_moments_get_a_ridge() {
        let twins: Vec<[f64; 3]> = (0..1000)
            .map(|i| {
                [
                    f64::from(i % 10),
                    f64::from(i % 10) - 5.0,
                    f64::from(i % 10),
                ]
            })
            .collect();
        let moments_of = |rows: &[[f64; 3]]| moments(rows, (1, 1 << 50), &mut Seeded::new(653));
        let model = moments_of(&twins)
            .linear_model(2, &[0, 1], 0.0)
            .expect("three columns");
        assert!(
            model.ridge > 0.0 && (model.predict(&[3.0, -2.0]) - 3.0).abs() < 1e-3,
            "{model:?}"
        );
        // Nothing but noise, and no data at all.
        let mut entropy = Seeded::new(seed(654));
        for rows in [&twins[..1], &[]] {
            for _ in 0..50 {
                let model =
                    moments(rows, (100, 1), &mut entropy).linear_model(2, &[0, 1], f64::NAN);
                let model = model.expect("three columns");
                assert!(
                    model.predict(&[1.0, 1.0]).is_finite() && model.ridge.is_finite(),
                    "{model:?}"
                );
            }
        }
    }

    #[test]
    fn refuses_columns_that_are_not_there() {
        let moments = moments(&rows(10), (1, 1), &mut Seeded::new(655));
        for columns in [&[0, 3][..], &[0, 0], &[2], &[]] {
            assert_eq!(moments.linear_model(2, columns, 0.0), None);
        }
        assert_eq!(moments.linear_model(3, &[0], 0.0), None);
    }
}
