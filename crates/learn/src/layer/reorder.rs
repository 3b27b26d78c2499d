//! Layers that only move numbers.
//!
//! Pictures come in and go out channel by channel, as plans describe them; between convolutions the channels of a pixel stand
//! together, since then both a window's row and a pixel's filters are contiguous.

use super::{Layer, Pass, Scratch};

/// From channel by channel to pixel by pixel.
#[derive(Clone, Copy, Debug)]
pub struct ChannelsLast {
    channels: usize,
    pixels: usize,
}

/// From pixel by pixel to channel by channel: what a linear layer after a convolution gets. With one pixel or one channel
/// nothing moves.
#[derive(Clone, Copy, Debug)]
pub struct Flatten {
    channels: usize,
    pixels: usize,
}

impl ChannelsLast {
    /// For pictures of `pixels` pixels.
    pub const fn new(channels: usize, pixels: usize) -> Self {
        Self { channels, pixels }
    }
}

impl Flatten {
    /// For pictures of `pixels` pixels.
    pub const fn new(channels: usize, pixels: usize) -> Self {
        Self { channels, pixels }
    }
}

/// Transposes each example from `rows` by `columns`.
fn transpose(input: &[f32], rows: usize, columns: usize, output: &mut [f32]) {
    let size = rows * columns;
    for (input, output) in input.chunks_exact(size).zip(output.chunks_exact_mut(size)) {
        for (column, output) in output.chunks_exact_mut(rows).enumerate() {
            for (output, input) in output.iter_mut().zip(input.chunks_exact(columns)) {
                *output = input[column];
            }
        }
    }
}

macro_rules! moves {
    ($layer:ty, $name:literal, $rows:ident, $columns:ident) => {
        impl Layer for $layer {
            fn name(&self) -> &'static str {
                $name
            }

            fn proven(&self) -> Option<super::Proven> {
                Some(super::Proven::here())
            }

            fn input_len(&self) -> usize {
                self.channels * self.pixels
            }

            fn output_len(&self) -> usize {
                self.channels * self.pixels
            }

            fn forward(&self, _: Pass, input: &[f32], output: &mut [f32], _: &mut Scratch) {
                transpose(input, self.$rows, self.$columns, output);
            }

            fn backward(
                &self,
                _: Pass,
                _: &[f32],
                delta: &[f32],
                input_delta: Option<&mut [f32]>,
                _: &mut Scratch,
            ) {
                if let Some(input_delta) = input_delta {
                    transpose(delta, self.$columns, self.$rows, input_delta);
                }
            }
        }
    };
}
moves!(ChannelsLast, "channels_last", channels, pixels);
moves!(Flatten, "flatten", pixels, channels);

#[cfg(test)]
mod tests {
    use super::super::oracle;
    use super::*;

    #[test]
    fn agrees_with_the_oracle() {
        let last = |x: &[f64]| (0..12).map(|i| x[i % 3 * 4 + i / 3]).collect();
        oracle::check(&ChannelsLast::new(3, 4), |_, x, _| last(x));
        let first = |x: &[f64]| (0..12).map(|i| x[i % 4 * 3 + i / 4]).collect();
        oracle::check(&Flatten::new(3, 4), |_, x, _| first(x));
    }

    #[test]
    fn one_undoes_the_other() {
        let picture: Vec<f32> = (0..12).map(|i| i as f32).collect();
        let mut last = vec![0.0; 12];
        transpose(&picture, 3, 4, &mut last);
        assert_eq!(last[..4], [0.0, 4.0, 8.0, 1.0]);
        let mut first = vec![0.0; 12];
        transpose(&last, 4, 3, &mut first);
        assert_eq!(first, picture);
    }
}
