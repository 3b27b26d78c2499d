//! # Kernel ridge regression
//! **Definition.** Of `n` examples with classes, and a kernel `k`: the scores `s_c(x) = Σ_i a_ic k(x_i, x)` whose `a` solves `(K + λI) a = Y`, with `Y_ic = 1 - 1/m` if `i` is of class `c` and
//! `-1/m` else. The class with the largest score is said. For a few hundred examples this is as good as anything, and takes milliseconds.
//!
//! **No privacy.** The model is a function of its examples, and holds them. It is for teachers, which stay secret, and for students, which learn from public examples.
//!
//! **Solver.** Conjugate gradients, all classes at once, in single precision with dot products in double. They end when all residuals are small, or after so many rounds: in either case what comes
//! out is a function of the examples in their order, and of nothing else.

use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};
use whit_mechanism::crew;

use crate::error::{Result, within};
use crate::matmul::{Panels, Start, multiply};

/// How alike two examples are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Kernel {
    /// `1 + <x, z>/d` for `d` features.
    Linear,
    /// `exp(-‖x-z‖²/(2dw²))` for a width `w`.
    Gaussian {
        /// The width `w`.
        width: f64,
    },
}

/// What is fitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelRidge {
    /// How alike two examples are.
    pub kernel: Kernel,
    /// `λ`, above zero.
    pub penalty: f64,
}

/// Scores of classes, as a function of features. It holds its examples.
pub struct KernelModel {
    kernel: Kernel,
    depth: usize,
    classes: usize,
    examples: Vec<f32>,
    squares: Vec<f32>,
    weights: Vec<f32>,
}

/// Rounds of the solver, at most, and the residuals that are small enough, relatively.
const ROUNDS: usize = 300;
const RESIDUAL: f64 = 1e-4;
/// A lesson has no more rows than this: a matrix of a gigabyte. Further ones are left out, so that no part, however many examples reach it, makes a process run out of memory: that would be told.
pub const EXAMPLES_MAX: usize = 1 << 14;
/// Rows of a product that a thread takes at once.
const ROWS: usize = 64;

impl KernelRidge {
    /// Refuses a penalty or a width that is not above zero.
    pub fn check(&self) -> Result<()> {
        let positive = |what, value: f64| {
            let passes = value > 0.0 && value < 1e6;
            within(what, value, passes, "above zero, and below a million")
        };
        if let Kernel::Gaussian { width } = self.kernel {
            positive("the width of a kernel", width)?;
        }
        positive("the penalty", self.penalty)
    }

    /// Fits to the first [`EXAMPLES_MAX`] examples of `depth` features, row by row, with shares of classes, `classes` for each row: 1 for its class if one is known.
    pub fn fit(
        &self,
        mut examples: Vec<f32>,
        shares: &[f32],
        (depth, classes): (usize, usize),
        threads: NonZeroUsize,
    ) -> KernelModel {
        examples.truncate(EXAMPLES_MAX * depth);
        let shares = &shares[..shares.len().min(EXAMPLES_MAX * classes)];
        let squares = squares(&examples, depth);
        let rows = squares.len();
        let mut matrix = vec![0.0; rows * rows];
        let alike = Alike {
            kernel: self.kernel,
            depth,
            right: &examples,
            squares: &squares,
        };
        alike.fill(&examples, &squares, &mut matrix, threads);
        let mean = 1.0 / classes.max(1) as f32;
        let targets: Vec<f32> = shares.iter().map(|share| share - mean).collect();
        let weights = solve(&matrix, self.penalty as f32, &targets, classes, threads);
        KernelModel {
            kernel: self.kernel,
            depth,
            classes,
            examples,
            squares,
            weights,
        }
    }
}

impl KernelModel {
    /// Its examples and their weights.
    pub fn tensors(&self) -> Vec<(String, Vec<usize>, &[f32])> {
        let rows = self.squares.len();
        vec![
            (
                "examples".into(),
                vec![rows, self.depth],
                &self.examples[..],
            ),
            (
                "weights".into(),
                vec![rows, self.classes],
                &self.weights[..],
            ),
        ]
    }

    /// Scores of rows, `classes` for each.
    pub fn scores(&self, rows: &[f32], threads: NonZeroUsize) -> Vec<f32> {
        let count = rows.len() / self.depth.max(1);
        let mut scores = vec![0.0; count * self.classes];
        if self.squares.is_empty() || self.classes == 0 {
            return scores;
        }
        let alike = Alike {
            kernel: self.kernel,
            depth: self.depth,
            right: &self.examples,
            squares: &self.squares,
        };
        let mut weights = Panels::default();
        weights.pack(&self.weights, self.classes);
        // So many rows at once that their likenesses take a few megabytes.
        let block = ((1 << 20) / self.squares.len()).max(ROWS);
        for (rows, scores) in rows
            .chunks(block * self.depth)
            .zip(scores.chunks_mut(block * self.classes))
        {
            let own = squares(rows, self.depth);
            let mut likenesses = vec![0.0; own.len() * self.squares.len()];
            alike.fill(rows, &own, &mut likenesses, threads);
            multiply(&likenesses, &weights, Start::Zero, scores);
        }
        scores
    }
}

/// `‖x‖²` of each row.
fn squares(rows: &[f32], depth: usize) -> Vec<f32> {
    let square = |row: &[f32]| {
        let sum: f64 = row.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
        sum as f32
    };
    rows.chunks_exact(depth.max(1)).map(square).collect()
}

/// Likenesses to some rows.
struct Alike<'a> {
    kernel: Kernel,
    depth: usize,
    right: &'a [f32],
    squares: &'a [f32],
}

impl Alike<'_> {
    /// Writes `k(x, z)` for each row `x`, and all `z`.
    fn fill(&self, rows: &[f32], own: &[f32], out: &mut [f32], threads: NonZeroUsize) {
        let count = self.squares.len();
        products(rows, self.right, self.depth, out, threads);
        let depth = self.depth.max(1) as f32;
        let each = out.chunks_mut(count.max(1)).zip(own);
        crew::each(threads.get(), each, |(row, own)| match self.kernel {
            Kernel::Linear => row.iter_mut().for_each(|x| *x = 1.0 + *x / depth),
            Kernel::Gaussian { width } => {
                let scale = -1.0 / (2.0 * depth * (width * width) as f32);
                for (x, other) in row.iter_mut().zip(self.squares) {
                    let distance = (own + other - 2.0 * *x).max(0.0);
                    *x = (scale * distance).exp();
                }
            }
        });
    }
}

/// `<x, z>` for each row `x` of the left and each row `z` of the right, of `depth` numbers each.
pub(super) fn products(
    left: &[f32],
    right: &[f32],
    depth: usize,
    out: &mut [f32],
    threads: NonZeroUsize,
) {
    if left.is_empty() || right.is_empty() || depth == 0 {
        return;
    }
    let count = right.len() / depth;
    let mut panels = Panels::default();
    panels.pack_transposed(right, depth, threads.get());
    let (panels, parts) = (&panels, out.chunks_mut(ROWS * count));
    let parts = left.chunks(ROWS * depth).zip(parts);
    crew::each(threads.get(), parts, |(left, out)| {
        multiply(left, panels, Start::Zero, out);
    });
}

/// Solves `(K + λI) a = y` for each column of `y`.
fn solve(
    matrix: &[f32],
    penalty: f32,
    targets: &[f32],
    columns: usize,
    threads: NonZeroUsize,
) -> Vec<f32> {
    let rows = targets.len() / columns.max(1);
    let mut found = vec![0.0; targets.len()];
    if rows == 0 {
        return found;
    }
    let (mut residual, mut direction) = (targets.to_vec(), targets.to_vec());
    let mut image = vec![0.0; targets.len()];
    let mut norms = dots(&residual, &residual, columns);
    let small: Vec<f64> = norms
        .iter()
        .map(|norm| norm * RESIDUAL * RESIDUAL)
        .collect();
    let mut panels = Panels::default();
    for _ in 0..ROUNDS {
        if norms.iter().zip(&small).all(|(norm, small)| norm <= small) {
            break;
        }
        panels.pack(&direction, columns);
        let parts = matrix
            .chunks(ROWS * rows)
            .zip(image.chunks_mut(ROWS * columns));
        crew::each(threads.get(), parts, |(matrix, image)| {
            multiply(matrix, &panels, Start::Zero, image);
        });
        for (image, direction) in image.iter_mut().zip(&direction) {
            *image += penalty * direction;
        }
        let curved = dots(&direction, &image, columns);
        // A column that is done, or along which nothing curves, stays where it is.
        let step = |column: usize| match norms[column] > small[column] && curved[column] > 0.0 {
            true => (norms[column] / curved[column]) as f32,
            false => 0.0,
        };
        let steps: Vec<f32> = (0..columns).map(step).collect();
        for (at, value) in found.iter_mut().enumerate() {
            let step = steps[at % columns];
            *value += step * direction[at];
            residual[at] -= step * image[at];
        }
        let next = dots(&residual, &residual, columns);
        let turns: Vec<f32> = next
            .iter()
            .zip(&norms)
            .map(|(next, norm)| (next / norm.max(f64::MIN_POSITIVE)) as f32)
            .collect();
        for (at, direction) in direction.iter_mut().enumerate() {
            *direction = residual[at] + turns[at % columns] * *direction;
        }
        norms = next;
    }
    found
}

/// `<x, z>` of each column.
fn dots(left: &[f32], right: &[f32], columns: usize) -> Vec<f64> {
    let mut sums = vec![0.0; columns];
    for (left, right) in left.chunks_exact(columns).zip(right.chunks_exact(columns)) {
        for ((sum, x), z) in sums.iter_mut().zip(left).zip(right) {
            *sum += f64::from(*x) * f64::from(*z);
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: NonZeroUsize = NonZeroUsize::MIN;

    /// `(K + λI) a = Y`, checked by hand in double precision.
    #[test]
    fn weights_solve_the_equations() {
        let rows = [0.0, 1.0, 0.5, -1.0, 2.0, 0.3_f32];
        let shares = [1.0, 0.0, 0.0, 1.0, 1.0, 0.0_f32];
        for kernel in [Kernel::Linear, Kernel::Gaussian { width: 0.7 }] {
            let ridge = KernelRidge {
                kernel,
                penalty: 0.2,
            };
            let model = ridge.fit(rows.to_vec(), &shares, (2, 2), ONE);
            let alike = |i: usize, j: usize| {
                let (x, z) = (&rows[2 * i..2 * i + 2], &rows[2 * j..2 * j + 2]);
                let pairs = || x.iter().zip(z).map(|(x, z)| (f64::from(*x), f64::from(*z)));
                match kernel {
                    Kernel::Linear => 1.0 + pairs().map(|(x, z)| x * z).sum::<f64>() / 2.0,
                    Kernel::Gaussian { width } => {
                        let square: f64 = pairs().map(|(x, z)| (x - z) * (x - z)).sum();
                        (-square / (4.0 * width * width)).exp()
                    }
                }
            };
            let scores = model.scores(&rows, ONE);
            for i in 0..3 {
                for c in 0..2 {
                    let of = |j: usize| f64::from(model.weights[2 * j + c]);
                    let sum: f64 = (0..3).map(|j| alike(i, j) * of(j)).sum();
                    let target = f64::from(shares[2 * i + c]) - 0.5;
                    assert!((sum + 0.2 * of(i) - target).abs() < 1e-3, "{kernel:?}");
                    assert!((f64::from(scores[2 * i + c]) - sum).abs() < 1e-4);
                }
            }
            assert_eq!(model.tensors()[0].1, [3, 2]);
        }
    }

    /// Everything in one part: it costs a gigabyte, and no more.
    #[test]
    fn examples_beyond_the_cap_are_left_out() {
        let ridge = KernelRidge {
            kernel: Kernel::Linear,
            penalty: 1e5,
        };
        let rows = EXAMPLES_MAX + 5;
        let model = ridge.fit(vec![0.0; rows], &vec![1.0; 2 * rows], (1, 2), ONE);
        assert_eq!(model.tensors()[0].1, [EXAMPLES_MAX, 1]);
    }

    #[test]
    fn without_examples_all_scores_are_zero() {
        let ridge = KernelRidge {
            kernel: Kernel::Linear,
            penalty: 1.0,
        };
        let model = ridge.fit(Vec::new(), &[], (2, 3), ONE);
        assert_eq!(model.scores(&[1.0, 2.0], ONE), [0.0; 3]);
    }
}
