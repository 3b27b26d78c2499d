//! Norms within one example: each set of numbers gets mean 0 and variance 1, then a gain and a bias per channel.
//!
//! The sets of a layer norm are the positions, those of a group norm are groups of channels over all positions. No set spans two
//! examples, which is what batch norm does and why it cannot be private.

use std::ops::Range;

use super::{Layer, Pass, Scratch, gradients};
use crate::tensor::sized;

/// Added to the variance, so that a constant set can be divided by its root.
const EPSILON: f64 = 1e-5;

/// What is normalised together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sets {
    Positions,
    Groups(usize),
}

/// A layer norm or a group norm. Its parameters are one gain per channel, then one bias per channel.
#[derive(Clone, Copy, Debug)]
pub struct Norm {
    positions: usize,
    channels: usize,
    sets: Sets,
}

impl Norm {
    /// Each position by itself.
    pub const fn layer(positions: usize, channels: usize) -> Self {
        Self {
            positions,
            channels,
            sets: Sets::Positions,
        }
    }

    /// Each of `groups` groups of channels by itself, over all positions. `groups` divides the channels.
    pub const fn group(positions: usize, channels: usize, groups: usize) -> Self {
        Self {
            positions,
            channels,
            sets: Sets::Groups(groups),
        }
    }

    fn set_count(&self) -> usize {
        match self.sets {
            Sets::Positions => self.positions,
            Sets::Groups(groups) => groups,
        }
    }

    /// The positions and the channels of a set.
    fn set(&self, index: usize) -> (Range<usize>, Range<usize>) {
        match self.sets {
            Sets::Positions => (index..index + 1, 0..self.channels),
            Sets::Groups(groups) => {
                let size = self.channels / groups;
                (0..self.positions, index * size..(index + 1) * size)
            }
        }
    }

    /// Calls `visit(place within the example, channel)` for each number of a set, in order.
    fn each(&self, index: usize, mut visit: impl FnMut(usize, usize)) {
        let (positions, channels) = self.set(index);
        for position in positions {
            for channel in channels.clone() {
                visit(position * self.channels + channel, channel);
            }
        }
    }

    fn len(&self) -> usize {
        self.positions * self.channels
    }

    fn set_len(&self) -> f64 {
        (self.len() / self.set_count()) as f64
    }
}

impl Layer for Norm {
    fn name(&self) -> &'static str {
        match self.sets {
            Sets::Positions => "layer_norm",
            Sets::Groups(_) => "group_norm",
        }
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
        2 * self.channels
    }

    fn gradient_len(&self) -> usize {
        self.param_len()
    }

    fn kept_len(&self) -> usize {
        self.len()
    }

    fn forward(&self, pass: Pass, input: &[f32], output: &mut [f32], scratch: &mut Scratch) {
        let (gain, bias) = pass.params.split_at(self.channels);
        let examples = output.len() / self.len();
        let normal = sized(&mut scratch.kept, output.len());
        let inverse = sized(&mut scratch.work, examples * self.set_count());
        let each = input
            .chunks_exact(self.len())
            .zip(output.chunks_exact_mut(self.len()));
        let each = each.zip(normal.chunks_exact_mut(self.len()));
        let each = each.zip(inverse.chunks_exact_mut(self.set_count()));
        for (((input, output), normal), inverse) in each {
            for (set, inverse) in inverse.iter_mut().enumerate() {
                let (mut sum, mut squares) = (0.0_f64, 0.0_f64);
                self.each(set, |at, _| sum += f64::from(input[at]));
                let mean = sum / self.set_len();
                self.each(set, |at, _| {
                    squares += (f64::from(input[at]) - mean).powi(2)
                });
                let root = 1.0 / (squares / self.set_len() + EPSILON).sqrt();
                *inverse = root as f32;
                self.each(set, |at, channel| {
                    normal[at] = ((f64::from(input[at]) - mean) * root) as f32;
                    output[at] = gain[channel] * normal[at] + bias[channel];
                });
            }
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
        let gain = &pass.params[..self.channels];
        let width = self.param_len();
        let all = gradients(&mut scratch.gradients, delta.len() / self.len(), width);
        all.fill(0.0);
        let normals = scratch.kept.chunks_exact(self.len());
        for ((delta, normal), gradient) in delta
            .chunks_exact(self.len())
            .zip(normals)
            .zip(all.chunks_exact_mut(width))
        {
            let (gains, biases) = gradient.split_at_mut(self.channels);
            let positions = delta.chunks_exact(self.channels);
            for (delta, normal) in positions.zip(normal.chunks_exact(self.channels)) {
                let sums = gains.iter_mut().zip(biases.iter_mut());
                for ((gain, bias), (&d, &x)) in sums.zip(delta.iter().zip(normal)) {
                    *gain += d * x;
                    *bias += d;
                }
            }
        }
        let Some(out) = input_delta else { return };
        let each = delta
            .chunks_exact(self.len())
            .zip(out.chunks_exact_mut(self.len()));
        let each = each.zip(scratch.kept.chunks_exact(self.len()));
        let each = each.zip(scratch.work.chunks_exact(self.set_count()));
        for (((delta, out), normal), inverse) in each {
            for (set, &inverse) in inverse.iter().enumerate() {
                let (mut sum, mut along) = (0.0_f64, 0.0_f64);
                self.each(set, |at, channel| {
                    let scaled = f64::from(delta[at]) * f64::from(gain[channel]);
                    sum += scaled;
                    along += scaled * f64::from(normal[at]);
                });
                let (mean, slope) = (sum / self.set_len(), along / self.set_len());
                self.each(set, |at, channel| {
                    let scaled = f64::from(delta[at]) * f64::from(gain[channel]);
                    let rest = scaled - mean - f64::from(normal[at]) * slope;
                    out[at] = (f64::from(inverse) * rest) as f32;
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::oracle;
    use super::*;

    fn reference(layer: Norm, params: &[f64], x: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; x.len()];
        for set in 0..layer.set_count() {
            let mut places = Vec::new();
            layer.each(set, |at, channel| places.push((at, channel)));
            let mean = places.iter().map(|&(at, _)| x[at]).sum::<f64>() / places.len() as f64;
            let variance = places.iter().map(|&(at, _)| (x[at] - mean).powi(2));
            let variance = variance.sum::<f64>() / places.len() as f64;
            for (at, channel) in places {
                let normal = (x[at] - mean) / (variance + EPSILON).sqrt();
                out[at] = params[channel] * normal + params[layer.channels + channel];
            }
        }
        out
    }

    #[test]
    fn agrees_with_the_oracle() {
        for layer in [
            Norm::layer(3, 8),
            Norm::layer(1, 11),
            Norm::group(9, 6, 2),
            Norm::group(4, 5, 5),
            Norm::group(4, 5, 1),
        ] {
            oracle::check(&layer, |params, x, _| reference(layer, params, x));
        }
    }

    #[test]
    fn sets_cover_an_example_once() {
        for layer in [Norm::layer(3, 8), Norm::group(9, 6, 2)] {
            let mut visits = vec![0; layer.len()];
            for set in 0..layer.set_count() {
                layer.each(set, |at, channel| {
                    assert_eq!(at % layer.channels, channel);
                    visits[at] += 1;
                });
            }
            assert!(visits.iter().all(|&visits| visits == 1));
        }
    }
}
