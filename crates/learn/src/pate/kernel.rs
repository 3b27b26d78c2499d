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

    /// Fits to examples of `depth` features, row by row, with shares of classes, `classes` for each row: 1 for its class if one is known.
    pub fn fit(
        &self,
        examples: Vec<f32>,
        shares: &[f32],
        (depth, classes): (usize, usize),
        threads: NonZeroUsize,
    ) -> KernelModel {
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
