//! The largest value, or the mean, of windows of a picture.

use super::{Layer, Pass, Scratch, Window};
use crate::tensor::{sized, vectorised};

/// What is taken of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// The largest value; the first of several.
    Max,
    /// The mean.
    Average,
}

/// Pooling, channel by channel.
#[derive(Clone, Copy, Debug)]
pub struct Pool {
    window: Window,
    pooling: Pooling,
}

impl Pool {
    /// The window must [fit](Window::fits) without padding, and what it has of that is not used.
    pub const fn new(window: Window, pooling: Pooling) -> Self {
        Self {
            window: Window {
                padding: 0,
                ..window
            },
            pooling,
        }
    }

    /// Where the pixels of each window start within an example, window by window.
    #[inline(always)]
    fn corners(&self) -> impl Iterator<Item = usize> {
        let Window {
            width,
            channels,
            stride,
            ..
        } = self.window;
        let columns = self.window.columns();
        (0..self.window.rows()).flat_map(move |row| {
            (0..columns).map(move |column| (row * width + column) * stride * channels)
        })
    }

    /// How far each pixel of a window is from its corner.
    #[inline(always)]
    fn offsets(&self) -> impl Iterator<Item = usize> + Clone {
        let Window {
            width,
            channels,
            kernel,
            ..
        } = self.window;
        (0..kernel)
            .flat_map(move |row| (0..kernel).map(move |column| (row * width + column) * channels))
    }
}

impl Layer for Pool {
    fn name(&self) -> &'static str {
        match self.pooling {
            Pooling::Max => "max_pool",
            Pooling::Average => "average_pool",
        }
    }

    fn proven(&self) -> Option<super::Proven> {
        Some(super::Proven::here())
    }

    fn input_len(&self) -> usize {
        self.window.pixels() * self.window.channels
    }

    fn output_len(&self) -> usize {
        self.window.rows() * self.window.columns() * self.window.channels
    }

    fn forward(&self, _pass: Pass, input: &[f32], output: &mut [f32], scratch: &mut Scratch) {
        let channels = self.window.channels;
        let share = 1.0 / (self.window.kernel * self.window.kernel) as f32;
        let winners = sized(&mut scratch.indices, output.len());
        vectorised(
            (output, winners),
            #[inline(always)]
            move |(output, winners): (&mut [f32], &mut [u32])| {
                let outputs = output.chunks_exact_mut(self.output_len());
                let winners = winners.chunks_exact_mut(self.output_len());
                let examples = input
                    .chunks_exact(self.input_len())
                    .zip(outputs.zip(winners));
                for (picture, (output, winners)) in examples {
                    let pixels = output.chunks_exact_mut(channels);
                    let pixels = pixels.zip(winners.chunks_exact_mut(channels));
                    for (corner, (output, winners)) in self.corners().zip(pixels) {
                        let window = &picture[corner..];
                        match self.pooling {
                            Pooling::Max => {
                                output.copy_from_slice(&window[..channels]);
                                winners.fill(0);
                                for (place, offset) in (0_u32..).zip(self.offsets()).skip(1) {
                                    let pixel = &window[offset..][..channels];
                                    let best = output.iter_mut().zip(winners.iter_mut());
                                    for ((best, winner), &x) in best.zip(pixel) {
                                        // What is not a number wins, so that it is not lost.
                                        let wins = x > *best || x.is_nan();
                                        *winner = if wins { place } else { *winner };
                                        *best = if wins { x } else { *best };
                                    }
                                }
                            }
                            Pooling::Average => {
                                output.fill(0.0);
                                for offset in self.offsets() {
                                    let pixel = &window[offset..][..channels];
                                    for (sum, x) in output.iter_mut().zip(pixel) {
                                        *sum += x;
                                    }
                                }
                                output.iter_mut().for_each(|sum| *sum *= share);
                            }
                        }
                    }
                }
            },
        );
    }

    fn backward(
        &self,
        _pass: Pass,
        _input: &[f32],
        delta: &[f32],
        input_delta: Option<&mut [f32]>,
        scratch: &mut Scratch,
    ) {
        let Some(out) = input_delta else { return };
        let channels = self.window.channels;
        let share = 1.0 / (self.window.kernel * self.window.kernel) as f32;
        let winners = &scratch.indices[..];
        vectorised(
            out,
            #[inline(always)]
            move |out: &mut [f32]| {
                out.fill(0.0);
                let deltas = delta.chunks_exact(self.output_len());
                // An average pool has no winners worth reading, but as many of them.
                let winners = winners.chunks_exact(self.output_len());
                let examples = out
                    .chunks_exact_mut(self.input_len())
                    .zip(deltas.zip(winners));
                for (picture, (delta, winners)) in examples {
                    let pixels = delta
                        .chunks_exact(channels)
                        .zip(winners.chunks_exact(channels));
                    for (corner, (delta, winners)) in self.corners().zip(pixels) {
                        let window = &mut picture[corner..];
                        for (place, offset) in (0_u32..).zip(self.offsets()) {
                            let pixel = window[offset..][..channels].iter_mut().zip(delta);
                            match self.pooling {
                                Pooling::Max => {
                                    for ((sum, &d), &winner) in pixel.zip(winners) {
                                        *sum += if winner == place { d } else { 0.0 };
                                    }
                                }
                                Pooling::Average => pixel.for_each(|(sum, d)| *sum += d * share),
                            }
                        }
                    }
                }
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::oracle;
    use super::*;

    fn window(kernel: usize, stride: usize) -> Window {
        Window {
            height: 5,
            width: 6,
            channels: 3,
            kernel,
            stride,
            padding: 0,
        }
    }

    fn reference(window: Window, pooling: Pooling, x: &[f64]) -> Vec<f64> {
        let mut out = Vec::new();
        for row in 0..window.rows() {
            for column in 0..window.columns() {
                for channel in 0..window.channels {
                    let pixels = (0..window.kernel * window.kernel).map(|i| {
                        let row = row * window.stride + i / window.kernel;
                        let column = column * window.stride + i % window.kernel;
                        x[(row * window.width + column) * window.channels + channel]
                    });
                    out.push(match pooling {
                        Pooling::Max => pixels.fold(f64::NEG_INFINITY, f64::max),
                        Pooling::Average => {
                            pixels.sum::<f64>() / (window.kernel * window.kernel) as f64
                        }
                    });
                }
            }
        }
        out
    }

    #[test]
    fn agrees_with_the_oracle() {
        for pooling in [Pooling::Max, Pooling::Average] {
            for window in [window(2, 1), window(2, 2), window(3, 2)] {
                oracle::check(&Pool::new(window, pooling), |_, x, _| {
                    reference(window, pooling, x)
                });
            }
        }
    }
}
