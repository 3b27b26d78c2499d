//! A linear layer: `y = W x + b` at every position.
//!
//! **One position.** The gradient of the weights is `δ ⊗ a`, so its squared norm is `|a|² |δ|²`, and with the bias
//! `(|a|² + 1) |δ|²`: nothing needs to be formed (a ghost norm). The clipped sum is one product, `Δ'ᵀ A` with
//! `δ'_i = fl(f_i δ_i)`: exactly the sum of `δ'_i ⊗ a_i`, up to the rounding of sums that `clipped_sum` bounds. It is taken over
//! several micro-batches at once where the weights do not fit in a fast cache: a few of them stay there while all are summed.
//! **Several positions.** The gradient `Σ_t δ_t ⊗ a_t` is formed for each example, in floats, and these floats are what is
//! contributed: a bound by `Σ |a_t| |δ_t|` would not be one by the clip norm.

use super::{Kept, Layer, Pass, Prepared, Scratch, Sum, gradients};
use crate::aligned::Aligned;
use crate::matmul::{
    BLOCK, Rows, STRIP, Start, add_transposed, add_transposed_unpacked, add_transposed_wide,
    add_up, multiply, multiply_transposed,
};
use crate::tensor::{
    add_scaled_rows, add_scaled_rows_wide, scale_rows, sized, square_norm_upper, sum_rows,
};

/// With at most so many outputs, inputs are not packed.
const UNPACKED_ROWS: usize = 2 * STRIP;

/// Rows of weights that are summed together, at most: strips that use a panel of inputs while it is near, in few passes over all inputs.
const JOINT_ROWS: usize = 32 * STRIP;

/// Into how many pieces the rows fall at least, if they are enough: something for every thread.
const JOINT_PIECES: usize = 8;

/// A linear layer. Its parameters are the weights, one row per output, and then the bias.
#[derive(Clone, Copy, Debug)]
pub struct Linear {
    inputs: usize,
    outputs: usize,
    positions: usize,
}

impl Linear {
    /// From `inputs` to `outputs`, once per example.
    pub const fn new(inputs: usize, outputs: usize) -> Self {
        Self::at_positions(inputs, outputs, 1)
    }

    /// The same at each of several positions, such as the words of a text.
    pub const fn at_positions(inputs: usize, outputs: usize, positions: usize) -> Self {
        Self {
            inputs,
            outputs,
            positions,
        }
    }

    fn weights(&self) -> usize {
        self.inputs * self.outputs
    }

    /// Are inputs summed jointly as they lie? For few outputs they are read so seldom that packing them costs more than it saves.
    fn keeps_rows(&self) -> bool {
        self.outputs <= UNPACKED_ROWS
    }

    /// The rows of weights in a joint piece; none in the last, which is the bias.
    fn joint_rows(&self, piece: usize) -> std::ops::Range<usize> {
        let at = |piece: usize| (piece * self.rows_of_piece()).min(self.outputs);
        at(piece)..at(piece + 1)
    }

    fn rows_of_piece(&self) -> usize {
        let even = self.outputs.div_ceil(JOINT_PIECES);
        even.next_multiple_of(STRIP).min(JOINT_ROWS)
    }
}

impl Layer for Linear {
    fn name(&self) -> &'static str {
        "linear"
    }

    fn proven(&self) -> Option<super::Proven> {
        Some(super::Proven::here())
    }

    fn input_len(&self) -> usize {
        self.inputs * self.positions
    }

    fn output_len(&self) -> usize {
        self.outputs * self.positions
    }

    fn param_len(&self) -> usize {
        self.weights() + self.outputs
    }

    fn gradient_len(&self) -> usize {
        if self.positions == 1 {
            0
        } else {
            self.param_len()
        }
    }

    fn prepare(&self, params: &[f32], prepared: &mut Prepared) {
        let weights = &params[..self.weights()];
        let threads = prepared.threads;
        prepared
            .forward
            .pack_transposed(weights, self.inputs, threads);
        if prepared.needs_delta {
            prepared.backward.pack(weights, self.inputs);
        }
    }

    fn forward(&self, pass: Pass, input: &[f32], output: &mut [f32], _scratch: &mut Scratch) {
        let bias = &pass.params[self.weights()..];
        multiply(input, &pass.prepared.forward, Start::Row(bias), output);
    }

    fn backward(
        &self,
        pass: Pass,
        _input: &[f32],
        delta: &[f32],
        input_delta: Option<&mut [f32]>,
        _scratch: &mut Scratch,
    ) {
        if let Some(input_delta) = input_delta {
            multiply(delta, &pass.prepared.backward, Start::Zero, input_delta);
        }
    }

    fn square_norms(&self, input: &[f32], delta: &[f32], scratch: &mut Scratch, norms: &mut [f64]) {
        let inputs = input.chunks_exact(self.input_len());
        let examples = inputs.zip(delta.chunks_exact(self.output_len()));
        if self.positions == 1 {
            for (norm, (input, delta)) in norms.iter_mut().zip(examples) {
                // Two roundings of positive numbers: one step up for each.
                let bound = (square_norm_upper(input) + 1.0).next_up() * square_norm_upper(delta);
                *norm = bound.next_up();
            }
            return;
        }
        let width = self.param_len();
        let all = gradients(&mut scratch.gradients, norms.len(), width);
        let each = norms
            .iter_mut()
            .zip(all.chunks_exact_mut(width))
            .zip(examples);
        for ((norm, gradient), (input, delta)) in each {
            let (weights, bias) = gradient.split_at_mut(self.weights());
            scratch.panels.pack(input, self.inputs);
            multiply_transposed(delta, &scratch.panels, weights);
            sum_rows(delta, bias);
            *norm = square_norm_upper(gradient);
        }
    }

    fn accumulate(
        &self,
        factors: &[f32],
        input: &[f32],
        delta: &[f32],
        scratch: &mut Scratch,
        sum: Sum,
    ) {
        if self.positions > 1 {
            match sum {
                Sum::Narrow(out) => add_scaled_rows(&scratch.gradients, factors, out),
                Sum::Wide(out) => add_scaled_rows_wide(&scratch.gradients, factors, out),
            }
            return;
        }
        let scaled = sized(&mut scratch.work, delta.len());
        scale_rows(delta, factors, scaled);
        match sum {
            Sum::Narrow(out) => {
                let (weights, bias) = out.split_at_mut(self.weights());
                if self.inputs.is_multiple_of(BLOCK) && self.outputs <= UNPACKED_ROWS {
                    add_transposed_unpacked(scaled, input, self.inputs, weights);
                } else {
                    scratch.panels.pack(input, self.inputs);
                    add_transposed(scaled, &scratch.panels, weights);
                }
                let sums = sized(&mut scratch.more, self.outputs);
                sum_rows(scaled, sums);
                for (bias, sum) in bias.iter_mut().zip(sums) {
                    *bias += *sum;
                }
            }
            Sum::Wide(out) => {
                let (weights, bias) = out.split_at_mut(self.weights());
                scratch.panels.pack(input, self.inputs);
                add_transposed_wide(scaled, &scratch.panels, weights);
                for row in scaled.chunks_exact(self.outputs) {
                    for (bias, &x) in bias.iter_mut().zip(row) {
                        *bias += f64::from(x);
                    }
                }
            }
        }
    }

    /// Some rows of weights each, and the bias last.
    fn joint_pieces(&self) -> usize {
        if self.positions > 1 {
            return 0;
        }
        self.outputs.div_ceil(self.rows_of_piece()) + 1
    }

    fn joint_len(&self, piece: usize) -> usize {
        match self.joint_rows(piece).len() {
            0 => self.outputs,
            rows => rows * self.inputs,
        }
    }

    fn keep(&self, factors: &[f32], input: &mut Aligned, delta: &[f32], kept: &mut Kept) {
        kept.strips.pack_scaled(delta, factors);
        if self.keeps_rows() {
            kept.rows.sized(input.len());
            std::mem::swap(&mut kept.rows, input);
        } else {
            let rows = &input[..factors.len() * self.inputs];
            kept.panels.pack(rows, self.inputs);
        }
    }

    fn joint_sum(&self, piece: usize, kept: &[&Kept], out: &mut [f32]) {
        let rows = self.joint_rows(piece);
        let kept = kept.iter();
        if !rows.is_empty() && self.keeps_rows() {
            let columns = self.inputs;
            let as_they_lie = kept.map(|kept| {
                let floats = kept.rows.with_spare();
                (&kept.strips, Rows { floats, columns })
            });
            return add_up(&as_they_lie.collect::<Vec<_>>(), rows, out);
        }
        if !rows.is_empty() {
            let packed = kept.map(|kept| (&kept.strips, &kept.panels));
            return add_up(&packed.collect::<Vec<_>>(), rows, out);
        }
        out.fill(0.0);
        let mut sums = vec![0.0; self.outputs];
        for kept in kept {
            kept.strips.add_up(&mut sums);
            out.iter_mut().zip(&sums).for_each(|(out, sum)| *out += sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::oracle;
    use super::*;

    #[test]
    fn agrees_with_the_oracle() {
        for (layer, inputs, outputs) in [
            (Linear::new(13, 7), 13, 7),
            (Linear::new(5, 61), 5, 61),
            (Linear::new(64, 10), 64, 10),
            (Linear::at_positions(6, 9, 5), 6, 9),
        ] {
            oracle::check(&layer, |params, x, _| {
                let (weights, bias) = params.split_at(inputs * outputs);
                let rows = x.chunks_exact(inputs).flat_map(|x| {
                    weights
                        .chunks_exact(inputs)
                        .zip(bias)
                        .map(move |(weights, bias)| {
                            bias + weights.iter().zip(x).map(|(w, x)| w * x).sum::<f64>()
                        })
                });
                rows.collect()
            });
        }
    }

    /// Several micro-batches of other lengths, whose joint sum is that of `accumulate` in wide floats.
    #[test]
    fn joint_sums_are_those_of_single_ones() {
        // Several pieces of rows, and inputs that are packed or not.
        for (inputs, outputs) in [(53, 70), (20, 1100), (53, 9)] {
            joint_sum_is_that_of_single_ones(inputs, outputs);
        }
    }

    fn joint_sum_is_that_of_single_ones(inputs: usize, outputs: usize) {
        let layer = Linear::new(inputs, outputs);
        let mut draw = oracle::draws(8);
        let mut floats = |count: usize| (0..count).map(|_| draw()).collect::<Vec<f32>>();
        let mut expected = vec![0.0; layer.param_len()];
        let mut kept = Vec::new();
        for examples in [5, 9, 1, 4, 7] {
            let (input, delta, factors) = (
                floats(examples * inputs),
                floats(examples * outputs),
                floats(examples),
            );
            let mut one = Kept::default();
            layer.keep(&factors, &mut Aligned::copied(&input), &delta, &mut one);
            kept.push(one);
            let sum = Sum::Wide(&mut expected);
            layer.accumulate(&factors, &input, &delta, &mut Scratch::default(), sum);
        }
        let kept: Vec<&Kept> = kept.iter().collect();
        let mut sums = Vec::new();
        for piece in 0..layer.joint_pieces() {
            let mut sum = vec![f32::NAN; layer.joint_len(piece)];
            layer.joint_sum(piece, &kept, &mut sum);
            sums.extend(sum);
        }
        assert_eq!(sums.len(), expected.len());
        for (sum, expected) in sums.iter().zip(&expected) {
            assert!(
                (f64::from(*sum) - expected).abs() < 1e-5,
                "{sum} {expected}"
            );
        }
    }

    #[test]
    fn ghost_and_formed_gradients_have_the_same_norm() {
        let (one, input, delta) = (Linear::new(3, 2), [1.0, 2.0, 2.0], [3.0, 4.0]);
        let mut norm = [0.0];
        one.square_norms(&input, &delta, &mut Scratch::default(), &mut norm);
        assert!((norm[0] - 250.0).abs() < 1e-9);
        // The same example at the first of two positions, with nothing at the second.
        let two = Linear::at_positions(3, 2, 2);
        let (input, delta) = ([1.0, 2.0, 2.0, 5.0, 5.0, 5.0], [3.0, 4.0, 0.0, 0.0]);
        two.square_norms(&input, &delta, &mut Scratch::default(), &mut norm);
        assert!((norm[0] - 250.0).abs() < 1e-9);
    }
}
