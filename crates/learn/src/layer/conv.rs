//! A convolution over pictures, as a product with the windows.
//!
//! The windows of an example are laid out as rows (`im2col`), so the output is `windows · weights` and the gradient of an
//! example is `windowsᵀ · δ`. That gradient is formed for each example, in floats, and these floats are what is contributed.
//!
//! Inside, a filter stands as (row, column, channel) since the channels of a pixel stand together, and outside as (channel,
//! row, column): the order is changed once per step for the weights and once per micro-batch for their sum.

use super::{Layer, Pass, Prepared, Scratch, Sum, gradients};
use crate::matmul::{Start, multiply, multiply_transposed};
use crate::tensor::{add_scaled_rows, add_scaled_rows_wide, sized, square_norm_upper, sum_rows};

/// A square window that moves over a picture whose channels stand together.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Rows of the picture.
    pub height: usize,
    /// Columns of the picture.
    pub width: usize,
    /// Numbers of a pixel.
    pub channels: usize,
    /// The side of the window.
    pub kernel: usize,
    /// How far it moves on.
    pub stride: usize,
    /// Zeros on each side of the picture.
    pub padding: usize,
}

impl Window {
    /// Does the window fit in the picture?
    pub fn fits(&self) -> bool {
        let shorter = self.height.min(self.width) + 2 * self.padding;
        self.kernel >= 1 && self.stride >= 1 && self.channels >= 1 && self.kernel <= shorter
    }

    /// Rows of windows.
    pub fn rows(&self) -> usize {
        (self.height + 2 * self.padding - self.kernel) / self.stride + 1
    }

    /// Columns of windows.
    pub fn columns(&self) -> usize {
        (self.width + 2 * self.padding - self.kernel) / self.stride + 1
    }

    pub(super) fn pixels(&self) -> usize {
        self.height * self.width
    }

    /// Numbers in a window.
    fn size(&self) -> usize {
        self.kernel * self.kernel * self.channels
    }

    /// Calls `visit(floats of a window's row before the picture, range within the picture)` for each row of each window, in
    /// order; the range is empty where the row lies outside.
    #[inline(always)]
    fn each_row(&self, mut visit: impl FnMut(usize, std::ops::Range<usize>)) {
        for top in (0..self.rows()).map(|row| row * self.stride) {
            for left in (0..self.columns()).map(|column| column * self.stride) {
                // Columns of the picture under the window, both ends with the padding.
                let from = left.clamp(self.padding, self.padding + self.width);
                let to = (left + self.kernel).clamp(self.padding, self.padding + self.width);
                for row in top..top + self.kernel {
                    if row < self.padding || row >= self.padding + self.height || from >= to {
                        visit(0, 0..0);
                        continue;
                    }
                    let start = (row - self.padding) * self.width;
                    let (first, last) = (from - self.padding, to - self.padding);
                    visit(
                        (from - left) * self.channels,
                        (start + first) * self.channels..(start + last) * self.channels,
                    );
                }
            }
        }
    }

    /// The windows of one picture as rows.
    fn unfold(&self, picture: &[f32], windows: &mut [f32]) {
        let mut rows = windows.chunks_exact_mut(self.kernel * self.channels);
        self.each_row(|before, range| {
            let Some(row) = rows.next() else { return };
            let after = before + range.len();
            row[..before].fill(0.0);
            row[before..after].copy_from_slice(&picture[range]);
            row[after..].fill(0.0);
        });
    }

    /// Adds windows up where they overlap: the transpose of `unfold`.
    fn fold(&self, windows: &[f32], picture: &mut [f32]) {
        picture.fill(0.0);
        let mut rows = windows.chunks_exact(self.kernel * self.channels);
        self.each_row(|before, range| {
            let Some(row) = rows.next() else { return };
            let row = &row[before..];
            for (sum, x) in picture[range].iter_mut().zip(row) {
                *sum += x;
            }
        });
    }
}

/// A convolution. Its parameters are the filters, each channel by channel, and then one bias per filter.
#[derive(Clone, Copy, Debug)]
pub struct Conv2d {
    window: Window,
    filters: usize,
}

impl Conv2d {
    /// The window must [fit](Window::fits).
    pub const fn new(window: Window, filters: usize) -> Self {
        Self { window, filters }
    }

    fn positions(&self) -> usize {
        self.window.rows() * self.window.columns()
    }

    fn weights(&self) -> usize {
        self.window.size() * self.filters
    }

    /// Where the weight `(row, column, channel)` of a filter stands outside, for all in their order inside.
    fn outside(&self) -> impl Iterator<Item = usize> {
        let Window {
            kernel, channels, ..
        } = self.window;
        (0..kernel * kernel).flat_map(move |pixel| {
            (0..channels).map(move |channel| channel * kernel * kernel + pixel)
        })
    }
}

impl Layer for Conv2d {
    fn name(&self) -> &'static str {
        "conv2d"
    }

    fn proven(&self) -> Option<super::Proven> {
        Some(super::Proven::here())
    }

    fn input_len(&self) -> usize {
        self.window.pixels() * self.window.channels
    }

    fn output_len(&self) -> usize {
        self.positions() * self.filters
    }

    fn param_len(&self) -> usize {
        self.weights() + self.filters
    }

    fn gradient_len(&self) -> usize {
        self.param_len()
    }

    fn kept_len(&self) -> usize {
        self.positions() * self.window.size()
    }

    fn prepare(&self, params: &[f32], prepared: &mut Prepared) {
        let size = self.window.size();
        let inside = sized(&mut prepared.work, self.weights());
        let filters = params[..self.weights()].chunks_exact(size);
        for (inside, filter) in inside.chunks_exact_mut(size).zip(filters) {
            for (inside, outside) in inside.iter_mut().zip(self.outside()) {
                *inside = filter[outside];
            }
        }
        prepared.forward.pack_transposed(inside, size, 1);
        if prepared.needs_delta {
            prepared.backward.pack(inside, size);
        }
    }

    fn forward(&self, pass: Pass, input: &[f32], output: &mut [f32], scratch: &mut Scratch) {
        let bias = &pass.params[self.weights()..];
        let unfolded = self.positions() * self.window.size();
        let examples = output.len() / self.output_len();
        let all = sized(&mut scratch.kept, examples * unfolded);
        let each = input
            .chunks_exact(self.input_len())
            .zip(all.chunks_exact_mut(unfolded));
        for ((picture, windows), output) in each.zip(output.chunks_exact_mut(self.output_len())) {
            self.window.unfold(picture, windows);
            multiply(windows, &pass.prepared.forward, Start::Row(bias), output);
        }
    }

    fn backward(
        &self,
        pass: Pass,
        _input: &[f32],
        delta: &[f32],
        input_delta: Option<&mut [f32]>,
        scratch: &mut Scratch,
    ) {
        let Some(out) = input_delta else { return };
        let windows = sized(&mut scratch.work, self.positions() * self.window.size());
        let each = delta.chunks_exact(self.output_len());
        for (delta, out) in each.zip(out.chunks_exact_mut(self.input_len())) {
            multiply(delta, &pass.prepared.backward, Start::Zero, windows);
            self.window.fold(windows, out);
        }
    }

    fn square_norms(
        &self,
        _input: &[f32],
        delta: &[f32],
        scratch: &mut Scratch,
        norms: &mut [f64],
    ) {
        let (width, unfolded) = (self.param_len(), self.positions() * self.window.size());
        let all = gradients(&mut scratch.gradients, norms.len(), width);
        let each = all
            .chunks_exact_mut(width)
            .zip(scratch.kept.chunks_exact(unfolded));
        let each = each.zip(delta.chunks_exact(self.output_len()));
        for (norm, ((gradient, windows), delta)) in norms.iter_mut().zip(each) {
            let (weights, bias) = gradient.split_at_mut(self.weights());
            scratch.panels.pack(delta, self.filters);
            // One row per weight of a filter, one column per filter.
            multiply_transposed(windows, &scratch.panels, weights);
            sum_rows(delta, bias);
            *norm = square_norm_upper(gradient);
        }
    }

    fn accumulate(
        &self,
        factors: &[f32],
        _input: &[f32],
        _delta: &[f32],
        scratch: &mut Scratch,
        sum: Sum,
    ) {
        let (size, weights) = (self.window.size(), self.weights());
        match sum {
            Sum::Narrow(out) => {
                let inside = sized(&mut scratch.work, self.param_len());
                inside.fill(0.0);
                add_scaled_rows(&scratch.gradients, factors, inside);
                for (inside, to) in inside.chunks_exact(self.filters).zip(self.outside()) {
                    for (filter, x) in inside.iter().enumerate() {
                        out[filter * size + to] += x;
                    }
                }
                for (out, x) in out[weights..].iter_mut().zip(&inside[weights..]) {
                    *out += x;
                }
            }
            Sum::Wide(out) => {
                // In this order at once: the slow path may allocate.
                let mut inside = vec![0.0; self.param_len()];
                add_scaled_rows_wide(&scratch.gradients, factors, &mut inside);
                for (inside, to) in inside.chunks_exact(self.filters).zip(self.outside()) {
                    for (filter, x) in inside.iter().enumerate() {
                        out[filter * size + to] += x;
                    }
                }
                for (out, x) in out[weights..].iter_mut().zip(&inside[weights..]) {
                    *out += x;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::oracle;
    use super::*;

    fn window(
        side: usize,
        channels: usize,
        kernel: usize,
        stride: usize,
        padding: usize,
    ) -> Window {
        Window {
            height: side,
            width: side + 1,
            channels,
            kernel,
            stride,
            padding,
        }
    }

    fn reference(window: Window, filters: usize, params: &[f64], x: &[f64]) -> Vec<f64> {
        let Window {
            height,
            width,
            channels,
            kernel,
            stride,
            padding,
        } = window;
        let pixel = |row: usize, column: usize, channel: usize| {
            let inside = (padding..padding + height).contains(&row)
                && (padding..padding + width).contains(&column);
            match inside {
                true => x[((row - padding) * width + column - padding) * channels + channel],
                false => 0.0,
            }
        };
        let mut out = Vec::new();
        for position in 0..window.rows() * window.columns() {
            let (top, left) = (position / window.columns(), position % window.columns());
            for filter in 0..filters {
                let mut sum = params[filters * channels * kernel * kernel + filter];
                for at in 0..channels * kernel * kernel {
                    let (channel, place) = (at / (kernel * kernel), at % (kernel * kernel));
                    let (row, column) = (
                        top * stride + place / kernel,
                        left * stride + place % kernel,
                    );
                    sum += params[filter * channels * kernel * kernel + at]
                        * pixel(row, column, channel);
                }
                out.push(sum);
            }
        }
        out
    }

    #[test]
    fn agrees_with_the_oracle() {
        for (window, filters) in [
            (window(6, 1, 3, 1, 0), 4),
            (window(7, 3, 4, 2, 3), 5),
            (window(4, 2, 1, 3, 0), 17),
        ] {
            oracle::check(&Conv2d::new(window, filters), |params, x, _| {
                reference(window, filters, params, x)
            });
        }
    }

    #[test]
    fn folding_is_the_transpose_of_unfolding() {
        let window = window(5, 2, 4, 2, 2);
        let pictures = window.pixels() * window.channels;
        let windows = window.rows() * window.columns() * window.size();
        let x: Vec<f32> = (0..pictures).map(|i| ((i * 7) % 11) as f32).collect();
        let y: Vec<f32> = (0..windows).map(|i| ((i * 5) % 13) as f32).collect();
        let (mut unfolded, mut folded) = (vec![9.0; windows], vec![9.0; pictures]);
        window.unfold(&x, &mut unfolded);
        window.fold(&y, &mut folded);
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        // Small integers: both sums are exact.
        assert_eq!(dot(&unfolded, &y), dot(&x, &folded));
        assert!(dot(&unfolded, &y) > 0.0);
    }

    #[test]
    fn a_filter_of_one_weight_shifts_the_picture() {
        // The filter has its only weight in row 0, column 1: the output at (r, c) is the input at (r - 1, c).
        let layer = Conv2d::new(window(3, 1, 3, 1, 1), 1);
        let mut params = vec![0.0; layer.param_len()];
        params[1] = 2.0;
        let mut prepared = Prepared::with_delta();
        layer.prepare(&params, &mut prepared);
        let pass = Pass {
            params: &params,
            prepared: &prepared,
            seeds: &[],
        };
        let picture: Vec<f32> = (1..=12).map(|i| i as f32).collect();
        let mut out = vec![9.0; 12];
        layer.forward(pass, &picture, &mut out, &mut Scratch::default());
        let expected = [
            0.0, 0.0, 0.0, 0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0,
        ];
        assert_eq!(out, expected);
    }
}
