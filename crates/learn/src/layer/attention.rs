//! Self-attention with several heads, over the positions of one example.
//!
//! With query, key and value `Q = X Wq + bq` and so on, a head takes its columns of them and gives `P V` with the softmax
//! `P = softmax(Q Kᵀ/√h)` of each row, `h` columns wide; all heads side by side go through the output's weights. Positions attend
//! to positions of the same example only. All gradients are formed for each example, in floats.

use super::{Layer, Pass, Prepared, Scratch, gradients};
use crate::matmul::{Panels, Start, multiply, multiply_transposed};
use crate::tensor::{exp, sized, sum_rows};

/// Self-attention. Its parameters are the weights (one row per output) and the bias of query, key, value and output.
#[derive(Clone, Copy, Debug)]
pub struct Attention {
    positions: usize,
    features: usize,
    heads: usize,
}

/// What is kept of one example, and what a backward pass works with.
struct Parts<'a> {
    /// Query, key and value, one after the other.
    inner: [&'a mut [f32]; 3],
    /// The softmax, head by head.
    weights: &'a mut [f32],
    /// The heads side by side.
    mixed: &'a mut [f32],
}

impl Attention {
    /// `heads` divides `features`.
    pub const fn new(positions: usize, features: usize, heads: usize) -> Self {
        Self {
            positions,
            features,
            heads,
        }
    }

    fn len(&self) -> usize {
        self.positions * self.features
    }

    fn block(&self) -> usize {
        self.features * self.features + self.features
    }

    fn parts<'a>(&self, floats: &'a mut [f32]) -> Parts<'a> {
        let (query, rest) = floats.split_at_mut(self.len());
        let (key, rest) = rest.split_at_mut(self.len());
        let (value, rest) = rest.split_at_mut(self.len());
        let (mixed, weights) = rest.split_at_mut(self.len());
        Parts {
            inner: [query, key, value],
            weights,
            mixed,
        }
    }

    /// A head's numbers at a position.
    fn at(&self, head: usize, position: usize) -> std::ops::Range<usize> {
        let width = self.features / self.heads;
        let start = position * self.features + head * width;
        start..start + width
    }

    fn scale(&self) -> f32 {
        1.0 / ((self.features / self.heads) as f32).sqrt()
    }

    /// The weights of one head at one position, and the mix of values.
    fn attend(&self, parts: &mut Parts, head: usize, position: usize) {
        let [query, key, value] = &parts.inner;
        let start = (head * self.positions + position) * self.positions;
        let weights = &mut parts.weights[start..start + self.positions];
        let query = &query[self.at(head, position)];
        let mut largest = f32::NEG_INFINITY;
        for (other, weight) in weights.iter_mut().enumerate() {
            *weight = self.scale() * dot(query, &key[self.at(head, other)]);
            largest = largest.max(*weight);
        }
        let mut sum = 0.0;
        for weight in weights.iter_mut() {
            *weight = exp(*weight - largest);
            sum += *weight;
        }
        let mixed = &mut parts.mixed[self.at(head, position)];
        mixed.fill(0.0);
        for (other, weight) in weights.iter_mut().enumerate() {
            *weight /= sum;
            add(mixed, *weight, &value[self.at(head, other)]);
        }
    }

    /// The deltas of query, key and value of one head at one position, added to those of the example.
    fn attend_back(
        &self,
        kept: &Parts,
        mixed_delta: &[f32],
        deltas: &mut Parts,
        head: usize,
        position: usize,
    ) {
        let start = (head * self.positions + position) * self.positions;
        let weights = &kept.weights[start..start + self.positions];
        let slopes = &mut deltas.weights[..self.positions];
        let delta = &mixed_delta[self.at(head, position)];
        let mut along = 0.0;
        for (other, (slope, &weight)) in slopes.iter_mut().zip(weights).enumerate() {
            add(&mut deltas.inner[2][self.at(head, other)], weight, delta);
            *slope = dot(delta, &kept.inner[2][self.at(head, other)]);
            along += weight * *slope;
        }
        for (other, (&slope, &weight)) in slopes.iter().zip(weights).enumerate() {
            let slope = self.scale() * weight * (slope - along);
            let [query, key, _] = &mut deltas.inner;
            add(
                &mut query[self.at(head, position)],
                slope,
                &kept.inner[1][self.at(head, other)],
            );
            add(
                &mut key[self.at(head, other)],
                slope,
                &kept.inner[0][self.at(head, position)],
            );
        }
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add(sums: &mut [f32], factor: f32, row: &[f32]) {
    for (sum, x) in sums.iter_mut().zip(row) {
        *sum += factor * x;
    }
}

impl Layer for Attention {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn proven(&self) -> Option<super::Proven> {
        Some(super::Proven::here())
    }

    fn input_len(&self) -> usize {
        self.len()
    }

    fn output_len(&self) -> usize {
        self.len()
    }

    fn param_len(&self) -> usize {
        4 * self.block()
    }

    fn gradient_len(&self) -> usize {
        self.param_len()
    }

    fn prepare(&self, params: &[f32], prepared: &mut Prepared) {
        prepared.more.resize_with(4, Default::default);
        let blocks = params.chunks_exact(self.block());
        for (block, (forward, backward)) in blocks.zip(&mut prepared.more) {
            let weights = &block[..self.features * self.features];
            forward.pack_transposed(weights, self.features, 1);
            backward.pack(weights, self.features);
        }
    }

    fn kept_len(&self) -> usize {
        4 * self.len() + self.heads * self.positions * self.positions
    }

    fn forward(&self, pass: Pass, input: &[f32], output: &mut [f32], scratch: &mut Scratch) {
        let bias = |which: usize| {
            &pass.params[(which + 1) * self.block() - self.features..(which + 1) * self.block()]
        };
        let kept = sized(
            &mut scratch.kept,
            output.len() / self.len() * self.kept_len(),
        );
        let each = input
            .chunks_exact(self.len())
            .zip(output.chunks_exact_mut(self.len()));
        for ((input, output), kept) in each.zip(kept.chunks_exact_mut(self.kept_len())) {
            let mut parts = self.parts(kept);
            for (which, inner) in parts.inner.iter_mut().enumerate() {
                multiply(
                    input,
                    &pass.prepared.more[which].0,
                    Start::Row(bias(which)),
                    inner,
                );
            }
            for head in 0..self.heads {
                for position in 0..self.positions {
                    self.attend(&mut parts, head, position);
                }
            }
            multiply(
                parts.mixed,
                &pass.prepared.more[3].0,
                Start::Row(bias(3)),
                output,
            );
        }
    }

    fn backward(
        &self,
        pass: Pass,
        input: &[f32],
        delta: &[f32],
        mut input_delta: Option<&mut [f32]>,
        scratch: &mut Scratch,
    ) {
        let (examples, width) = (delta.len() / self.len(), self.param_len());
        let all = gradients(&mut scratch.gradients, examples, width);
        let work = sized(&mut scratch.work, self.kept_len() + 2 * self.len());
        let (mixed_delta, work) = work.split_at_mut(self.len());
        let (partial, work) = work.split_at_mut(self.len());
        let square = self.features * self.features;
        let form = |delta: &[f32], input: &[f32], panels: &mut Panels, gradient: &mut [f32]| {
            let (weights, bias) = gradient.split_at_mut(square);
            panels.pack(input, self.features);
            multiply_transposed(delta, panels, weights);
            sum_rows(delta, bias);
        };
        for example in 0..examples {
            let input = &input[example * self.len()..][..self.len()];
            let delta = &delta[example * self.len()..][..self.len()];
            let gradient = &mut all[example * width..][..width];
            let kept = &mut scratch.kept[example * self.kept_len()..][..self.kept_len()];
            let kept = self.parts(kept);
            work.fill(0.0);
            let mut deltas = self.parts(work);
            multiply(delta, &pass.prepared.more[3].1, Start::Zero, mixed_delta);
            for head in 0..self.heads {
                for position in 0..self.positions {
                    self.attend_back(&kept, mixed_delta, &mut deltas, head, position);
                }
            }
            let (inner, output) = gradient.split_at_mut(3 * self.block());
            form(delta, kept.mixed, &mut scratch.panels, output);
            let blocks = inner.chunks_exact_mut(self.block());
            for (which, gradient) in blocks.enumerate() {
                form(deltas.inner[which], input, &mut scratch.panels, gradient);
            }
            if let Some(out) = &mut input_delta {
                let out = &mut out[example * self.len()..][..self.len()];
                out.fill(0.0);
                for (which, delta) in deltas.inner.iter().enumerate() {
                    multiply(delta, &pass.prepared.more[which].1, Start::Zero, partial);
                    add(out, 1.0, partial);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::oracle;
    use super::*;

    fn project(x: &[f64], block: &[f64], features: usize) -> Vec<f64> {
        let (weights, bias) = block.split_at(features * features);
        let rows = x.chunks_exact(features).flat_map(|row| {
            (0..features).map(move |j| {
                let weights = &weights[j * features..][..features];
                bias[j] + row.iter().zip(weights).map(|(x, w)| x * w).sum::<f64>()
            })
        });
        rows.collect()
    }

    fn reference(layer: Attention, params: &[f64], x: &[f64]) -> Vec<f64> {
        let Attention {
            positions,
            features,
            heads,
        } = layer;
        let block = |which: usize| &params[which * layer.block()..][..layer.block()];
        let [query, key, value] = [0, 1, 2].map(|which| project(x, block(which), features));
        let width = features / heads;
        let mut mixed = vec![0.0; x.len()];
        for head in 0..heads {
            for i in 0..positions {
                let column = |m: &[f64], row: usize, c: usize| m[row * features + head * width + c];
                let scores = (0..positions).map(|j| {
                    let dot = (0..width).map(|c| column(&query, i, c) * column(&key, j, c));
                    (dot.sum::<f64>() / (width as f64).sqrt()).exp()
                });
                let scores: Vec<f64> = scores.collect();
                let total: f64 = scores.iter().sum();
                for c in 0..width {
                    let sum = scores
                        .iter()
                        .enumerate()
                        .map(|(j, s)| s * column(&value, j, c));
                    mixed[i * features + head * width + c] = sum.sum::<f64>() / total;
                }
            }
        }
        project(&mixed, block(3), features)
    }

    #[test]
    fn agrees_with_the_oracle() {
        for layer in [Attention::new(5, 6, 2), Attention::new(3, 4, 1)] {
            oracle::check(&layer, |params, x, _| reference(layer, params, x));
        }
    }
}
