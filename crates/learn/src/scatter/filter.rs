//! Morlet wavelets and the Gaussian, as frequency responses on the grid of padded pictures. [OM15, AAE+20]
//!
//! `u = (row, column)`, `θ` an angle, `u_θ` the part of `u` along `(cos θ, sin θ)` and `u_⊥` the part across:
//!
//! ```text
//! ψ(u) = s/(2pσ²) · exp(-(u_θ² + s² u_⊥²) / 2σ²) · (exp(i ξ u_θ) - K)     σ = 0.8·2^j,  ξ = 3π/4 / 2^j,  s = 4/L
//! φ(u) =  1/(2pσ²) · exp(-|u|² / 2σ²)                                       σ = 0.8·2^(J-1)
//! ```
//!
//! with `K` such that `ψ` has mean zero, and `p` nearly `π` ([`SIZE`]). Both are summed over five periods of the grid in each direction, and the real part of their
//! Fourier transform is taken: what they would have of an imaginary part is their tail beyond these periods.

use std::f64::consts::{FRAC_PI_2, PI};

/// What stands for `2π` in the sizes of filters, so that the mean has a weight of 1.00003: kymatio writes π with these digits, features that were
/// published come from it, and there is nothing to be gained by others.
#[expect(
    clippy::approx_constant,
    reason = "the digits that others have, and not π"
)]
pub(super) const SIZE: f64 = 2.0 * 3.1415;

/// Periods of the grid over which a filter is summed: these before the first and behind it.
const PERIODS: i32 = 2;

/// Widths of filters at scale 0, in pixels: the usual choice, which makes octaves overlap. [OM15]
const SIGMA: f64 = 0.8;

/// The frequency of a wavelet at scale 0, in radians per pixel.
const XI: f64 = 3.0 * PI / 4.0;

/// A real frequency response, row by row.
pub(super) struct Response {
    height: usize,
    width: usize,
    values: Vec<f64>,
}

impl Response {
    /// The wavelet of scale `2^scale` and the angle of this number among so many.
    pub(super) fn morlet(
        [height, width]: [usize; 2],
        scale: usize,
        angle: usize,
        angles: usize,
    ) -> Self {
        let octave = f64::from(1 << scale);
        let (sigma, xi, slant) = (SIGMA * octave, XI / octave, 4.0 / angles as f64);
        // Angles run backwards from the last before a right angle: the order is that of other programs.
        let first = (angles as f64 / 2.0 - 1.0).trunc();
        let theta = (first - angle as f64) * PI / angles as f64;
        let (sin, cos) = theta.sin_cos();
        let mut wave = vec![[0.0; 2]; height * width];
        let mut envelope = vec![0.0; height * width];
        for (at, (wave, envelope)) in wave.iter_mut().zip(&mut envelope).enumerate() {
            for row in periods(at / width, height) {
                for column in periods(at % width, width) {
                    let along = row * cos + column * sin;
                    let across = slant * (column * cos - row * sin);
                    let size = (-(along * along + across * across) / (2.0 * sigma * sigma)).exp();
                    let (sin, cos) = (xi * along).sin_cos();
                    wave[0] += size * cos;
                    wave[1] += size * sin;
                    *envelope += size;
                }
            }
        }
        let sum: f64 = envelope.iter().sum();
        let mean = [0, 1].map(|part| wave.iter().map(|wave| wave[part]).sum::<f64>() / sum);
        let size = slant / (SIZE * sigma * sigma);
        for (wave, envelope) in wave.iter_mut().zip(envelope) {
            *wave = [0, 1].map(|part| size * (wave[part] - mean[part] * envelope));
        }
        Self::of([height, width], wave)
    }

    /// The real part of the transform of a filter: along its rows, then along its columns.
    fn of([height, width]: [usize; 2], mut filter: Vec<[f64; 2]>) -> Self {
        for row in filter.chunks_exact_mut(width) {
            let turned = transform(row);
            row.copy_from_slice(&turned);
        }
        let mut values = vec![0.0; height * width];
        for column in 0..width {
            let entries: Vec<_> = filter.iter().skip(column).step_by(width).copied().collect();
            let turned = transform(&entries);
            for (row, [real, _]) in turned.into_iter().enumerate() {
                values[row * width + column] = real;
            }
        }
        Self {
            height,
            width,
            values,
        }
    }

    /// The response on a grid that is `2^level` times as coarse: that of the frequencies which such a grid has.
    pub(super) fn at_level(&self, level: usize) -> Self {
        let (height, width) = (self.height >> level, self.width >> level);
        let entry = |at: usize| {
            let row = frequency(at / width, height, self.height);
            self.values[row * self.width + frequency(at % width, width, self.width)]
        };
        Self {
            height,
            width,
            values: (0..height * width).map(entry).collect(),
        }
    }

    /// The response at this row and column.
    pub(super) fn at(&self, row: usize, column: usize) -> f64 {
        self.values[row * self.width + column]
    }

    /// Its largest value without its sign.
    pub(super) fn largest(&self) -> f64 {
        self.values.iter().fold(0.0, |most, x| x.abs().max(most))
    }
}

/// The low pass along one side, which has `len` padded pixels, from level `level` to every `2^levels`-th pixel but the first and last:
/// as many rows as there are such pixels, of as many weights as there are pixels at that level. The Gaussian of the plane is the product of
/// those of its sides, and so is the map.
pub(super) fn low_pass(len: usize, level: usize, levels: usize) -> Vec<Vec<f64>> {
    let sigma = SIGMA * f64::from(1 << (levels - 1));
    let size = 1.0 / (SIZE.sqrt() * sigma);
    let gaussian: Vec<[f64; 2]> = (0..len)
        .map(|at| {
            let terms = periods(at, len).map(|x| (-x * x / (2.0 * sigma * sigma)).exp());
            [size * terms.sum::<f64>(), 0.0]
        })
        .collect();
    let response = transform(&gaussian);
    let coarse = len >> level;
    let response: Vec<f64> = (0..coarse)
        .map(|at| response[frequency(at, coarse, len)][0])
        .collect();
    let kernel = |shift: usize| {
        let terms = response.iter().enumerate();
        let terms = terms.map(|(at, x)| x * turn(at * shift, coarse).0);
        terms.sum::<f64>() / coarse as f64
    };
    let kernel: Vec<f64> = (0..coarse).map(kernel).collect();
    let step = 1 << (levels - level);
    (1..(len >> levels) - 1)
        .map(|out| {
            (0..coarse)
                .map(|at| kernel[(out * step + coarse - at) % coarse])
                .collect()
        })
        .collect()
}

/// Where pixel `at` of a side of so many lies in each period.
fn periods(at: usize, len: usize) -> impl Iterator<Item = f64> {
    (-PERIODS..=PERIODS).map(move |period| at as f64 + f64::from(period) * len as f64)
}

/// Where frequency `at` of a coarse side stands among those of a fine one: the upper half of them are negative.
fn frequency(at: usize, coarse: usize, fine: usize) -> usize {
    if at < coarse / 2 {
        at
    } else {
        fine - coarse + at
    }
}

/// Cosine and sine of `at` parts of a turn of `len` parts, exact at quarters.
pub(super) fn turn(at: usize, len: usize) -> (f64, f64) {
    let at = at % len;
    let (quarter, rest) = (4 * at / len, 4 * at % len);
    let (sin, cos) = (FRAC_PI_2 * rest as f64 / len as f64).sin_cos();
    match quarter {
        0 => (cos, sin),
        1 => (-sin, cos),
        2 => (-cos, -sin),
        _ => (sin, -cos),
    }
}

/// The Fourier transform by its definition: sides are short, and this is done once.
fn transform(x: &[[f64; 2]]) -> Vec<[f64; 2]> {
    let len = x.len();
    let turns: Vec<_> = (0..len).map(|at| turn(at, len)).collect();
    let entry = |k: usize| {
        x.iter().enumerate().fold([0.0; 2], |sum, (at, x)| {
            let (cos, sin) = turns[at * k % len];
            [
                sum[0] + x[0] * cos + x[1] * sin,
                sum[1] + x[1] * cos - x[0] * sin,
            ]
        })
    };
    (0..len).map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::TAU;

    #[test]
    fn wavelets_have_mean_zero_and_their_largest_response_at_their_frequency() {
        for (scale, angle) in [(0, 3), (1, 3), (1, 7), (0, 1)] {
            let psi = Response::morlet([36, 40], scale, angle, 8);
            assert!(psi.at(0, 0).abs() < 1e-12);
            let places = (0..36 * 40).map(|at| (psi.at(at / 40, at % 40), at));
            let (_, at) = places.max_by(|a, b| a.0.total_cmp(&b.0)).expect("some");
            // Frequencies of rows and columns, between minus a half and a half of a turn.
            let half = |x: f64| if x > 0.5 { x - 1.0 } else { x };
            let place = [(at / 40) as f64 / 36.0, (at % 40) as f64 / 40.0].map(half);
            let theta = (3.0 - angle as f64) * PI / 8.0;
            let xi = XI / f64::from(1 << scale) / TAU;
            assert!((place[0] - xi * theta.cos()).abs() < 0.03);
            assert!((place[1] - xi * theta.sin()).abs() < 0.03);
        }
    }

    #[test]
    fn low_passes_keep_what_is_constant() {
        for (len, level, levels) in [(36, 0, 2), (36, 1, 2), (20, 1, 2), (40, 2, 3)] {
            let rows = low_pass(len, level, levels);
            assert_eq!(rows.len(), (len >> levels) - 2);
            for row in rows {
                assert_eq!(row.len(), len >> level);
                let size = row.iter().sum::<f64>().powi(2) * SIZE / TAU;
                assert!((size - 1.0).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn coarse_grids_keep_low_frequencies() {
        let psi = Response::morlet([24, 20], 2, 1, 4);
        let coarse = psi.at_level(1);
        assert_eq!(coarse.at(3, 4), psi.at(3, 4));
        assert_eq!(coarse.at(11, 9), psi.at(23, 19));
        assert_eq!(coarse.at(6, 5), psi.at(18, 15));
    }
}
