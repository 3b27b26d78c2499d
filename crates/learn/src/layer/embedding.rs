//! An embedding: one row of a table for each token.
//!
//! An example's gradient has a row for each different token that it holds: the sum of the deltas where that token stands. It
//! is formed, in floats, at the token's first position, and these floats are what is contributed; the rest of the table is
//! not touched. Tokens come as floats. Fractions are cut off, and what is then no number of the table is its row 0: a private value may not be an error.

use super::{Layer, Pass, Scratch, Sum, gradients};
use crate::tensor::{sized, square_norm_upper};

/// A table of `entries` rows of `features` numbers, which are its parameters.
#[derive(Clone, Copy, Debug)]
pub struct Embedding {
    positions: usize,
    entries: usize,
    features: usize,
}

/// Marks a position whose token stood before, and an entry that has no place.
const NONE: u32 = u32::MAX;

impl Embedding {
    /// For examples of `positions` tokens. Floats can count to 2^24, and no table is larger.
    pub const fn new(positions: usize, entries: usize, features: usize) -> Self {
        Self {
            positions,
            entries,
            features,
        }
    }

    fn token(&self, x: f32) -> usize {
        // A float below zero or not a number becomes 0.
        let token = x as usize;
        if token < self.entries { token } else { 0 }
    }
}

impl Layer for Embedding {
    fn name(&self) -> &'static str {
        "embedding"
    }

    fn proven(&self) -> Option<super::Proven> {
        Some(super::Proven::here())
    }

    fn input_len(&self) -> usize {
        self.positions
    }

    fn output_len(&self) -> usize {
        self.positions * self.features
    }

    fn param_len(&self) -> usize {
        self.entries * self.features
    }

    fn gradient_len(&self) -> usize {
        self.output_len()
    }

    fn forward(&self, pass: Pass, input: &[f32], output: &mut [f32], _scratch: &mut Scratch) {
        for (&x, output) in input.iter().zip(output.chunks_exact_mut(self.features)) {
            let row = self.token(x) * self.features;
            output.copy_from_slice(&pass.params[row..row + self.features]);
        }
    }

    fn backward(
        &self,
        _pass: Pass,
        _input: &[f32],
        _delta: &[f32],
        input_delta: Option<&mut [f32]>,
        _scratch: &mut Scratch,
    ) {
        // Tokens have no direction to move in.
        if let Some(input_delta) = input_delta {
            input_delta.fill(0.0);
        }
    }

    fn square_norms(&self, input: &[f32], delta: &[f32], scratch: &mut Scratch, norms: &mut [f64]) {
        let width = self.gradient_len();
        let all = gradients(&mut scratch.gradients, norms.len(), width);
        let tokens = sized(&mut scratch.indices, input.len());
        let each = input
            .chunks_exact(self.positions)
            .zip(tokens.chunks_exact_mut(self.positions));
        let each = each.zip(delta.chunks_exact(width).zip(all.chunks_exact_mut(width)));
        for (norm, ((input, tokens), (delta, gradient))) in norms.iter_mut().zip(each) {
            gradient.copy_from_slice(delta);
            for position in 0..self.positions {
                let token = self.token(input[position]) as u32;
                let first = tokens[..position].iter().position(|&other| other == token);
                tokens[position] = if first.is_some() { NONE } else { token };
                if let Some(first) = first {
                    let (before, here) = gradient.split_at_mut(position * self.features);
                    let sums = &mut before[first * self.features..][..self.features];
                    let here = &mut here[..self.features];
                    for (sum, x) in sums.iter_mut().zip(here.iter()) {
                        *sum += x;
                    }
                    here.fill(0.0);
                }
            }
            *norm = square_norm_upper(gradient);
        }
    }

    fn accumulate(
        &self,
        factors: &[f32],
        input: &[f32],
        _delta: &[f32],
        scratch: &mut Scratch,
        sum: Sum,
    ) {
        let features = self.features;
        let rows = scratch.gradients.chunks_exact(features);
        let tokens = scratch.indices[..input.len()].iter();
        let rows = rows
            .zip(tokens)
            .enumerate()
            .filter(|(_, (_, token))| **token != NONE);
        let rows =
            rows.map(|(at, (row, &token))| (factors[at / self.positions], row, token as usize));
        match sum {
            Sum::Wide(out) => {
                for (factor, row, token) in rows {
                    for (sum, &x) in out[token * features..].iter_mut().zip(row) {
                        *sum += f64::from(factor) * f64::from(x);
                    }
                }
            }
            // Each entry's sum over this micro-batch is formed on its own, one chain over the examples, and then added.
            Sum::Narrow(out) => {
                scratch.places.resize(self.entries, NONE);
                // None is left of the micro-batch before; but one that ended in a panic may have left some.
                for &token in scratch.indices[..input.len()].iter() {
                    if let Some(place) = scratch.places.get_mut(token as usize) {
                        *place = NONE;
                    }
                }
                let (places, sums) = (&mut scratch.places, &mut scratch.work);
                sums.clear();
                for (factor, row, token) in rows {
                    if places[token] == NONE {
                        places[token] = (sums.len() / features) as u32;
                        sums.resize(sums.len() + features, 0.0);
                    }
                    let at = places[token] as usize * features;
                    for (sum, x) in sums[at..].iter_mut().zip(row) {
                        *sum += factor * x;
                    }
                }
                for &token in scratch.indices[..input.len()]
                    .iter()
                    .filter(|&&token| token != NONE)
                {
                    let token = token as usize;
                    let place = std::mem::replace(&mut places[token], NONE);
                    if place != NONE {
                        let row = &sums[place as usize * features..][..features];
                        for (out, x) in out[token * features..].iter_mut().zip(row) {
                            *out += x;
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::oracle;
    use super::*;

    #[test]
    fn agrees_with_the_oracle() {
        // Twelve positions and five entries: tokens repeat within an example and between examples.
        let layer = Embedding::new(12, 5, 3);
        let tokens = |at: usize, draw: f32| ((at % 7) as f32 + draw.abs() * 5.0).floor() % 5.0;
        oracle::check_inputs(&layer, tokens, |params, x, _| {
            let rows = x.iter().map(|&x| &params[x as usize * 3..][..3]);
            rows.flatten().copied().collect()
        });
    }

    #[test]
    fn what_is_no_token_is_the_first() {
        let layer = Embedding::new(1, 5, 3);
        for x in [f32::NAN, -1.0, 5.0, 1e30, f32::INFINITY] {
            assert_eq!(layer.token(x), 0);
        }
        assert_eq!(layer.token(4.0), 4);
    }
}
