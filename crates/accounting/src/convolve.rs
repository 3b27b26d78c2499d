//! # Many-fold circular convolution, with a bound of its error
//! [`compose`] takes, for each part of a composition, two vectors of masses (an upper and a lower one) and a count, and returns
//! both circular convolutions of all of them, each up to an error that is stated and proven. One complex transform
//! (`fft.rs`) carries the upper vector as its real and the lower one as its imaginary part.
//!
//! **Powers.** If `|ẑ - z| <= e`, let `m = |ẑ| + e`. Then `|ẑ^k - z^k| <= k e m^(k-1)`, and `k-1` rounded products, in any
//! order, err by at most `((1+√5u)^(k-1) - 1) |ẑ|^k` [BPZ07, Thm 1]. Products of parts add up by
//! `|ŷ_1ŷ_2 - y_1y_2| <= E_1 B_2 + B_1 E_2` with `B >= |y|, |ŷ|`, and one more rounding. All this is computed along with the
//! powers and summed over the frequencies; the transform back adds `γ` of the sum of the moduli. Underflow adds at most
//! `1e-290`. Masses that go around the circle `n` times are rounded `n` times as they are added up, by `n u` of their sum in all.

use crate::fft::{Plan, UNIT, places, product};

/// Room for the rounding of the bounds themselves: they are sums and products of at most a few million positive numbers.
pub(crate) const SLACK: f64 = 1.0 + 1e-8;
/// Far below every mass that counts, far above what underflows.
pub(crate) const UNDERFLOW: f64 = 1e-290;
/// Powers below `e^-NEGLIGIBLE` are taken as zero, and counted as error.
const NEGLIGIBLE: f64 = 120.0;

/// Masses on a circle, for one factor of a composition.
#[derive(Clone, Debug)]
pub(crate) struct Factor<'a> {
    /// Wrapped around if there are more than fit.
    pub(crate) upper: &'a [f64],
    /// The same for the lower bound.
    pub(crate) lower: &'a [f64],
    /// How often it is composed.
    pub(crate) count: u64,
}

/// Both circular convolutions.
#[derive(Clone, Debug)]
pub(crate) struct Convolved {
    pub(crate) upper: Vec<f64>,
    pub(crate) lower: Vec<f64>,
    /// No entry of `upper` is further from the truth.
    pub(crate) upper_error: f64,
    /// No entry of `lower` is further from the truth.
    pub(crate) lower_error: f64,
}

/// Convolves all factors on a circle of `size` places, a power of two of at least 4.
pub(crate) fn compose(factors: &[Factor], size: usize) -> Convolved {
    let plan = Plan::new(size);
    let mut re = vec![0.0; size];
    let mut im = vec![0.0; size];
    let mut product = Vec::new();
    let mut sums = Sums::default();
    for (index, factor) in factors.iter().enumerate() {
        let (first, last) = (index == 0, index + 1 == factors.len());
        re.fill(0.0);
        im.fill(0.0);
        let mass = wrap(&mut re, factor.upper) + wrap(&mut im, factor.lower);
        // What is added onto a place is rounded there each time.
        let wraps = factor.upper.len().max(factor.lower.len()) / size;
        plan.forward(&mut re, &mut im);
        // Both spectra are half sums of two values.
        let error = (plan.error() + (2 + wraps) as f64 * UNIT) * mass * SLACK + UNDERFLOW;
        let power = Power::new(factor.count, error);
        for pair in 0..=size / 2 {
            let (at, mirror) = places(pair);
            let spectra = split(re[at], im[at], re[mirror], im[mirror]);
            let mut both = spectra.map(|(x, y)| power.raise(x, y));
            if !first {
                let before: [Value; 2] = product[pair];
                both = [both[0].times(before[0]), both[1].times(before[1])];
            }
            if last {
                let weight = if at == mirror { 1.0 } else { 2.0 };
                sums.add(&both, weight);
                let [upper, lower] = both;
                // upper + i lower at k, and what conjugates of both give at N - k.
                (re[at], im[at]) = (upper.re - lower.im, upper.im + lower.re);
                (re[mirror], im[mirror]) = (upper.re + lower.im, lower.re - upper.im);
            } else if first {
                product.push(both);
            } else {
                product[pair] = both;
            }
        }
    }
    drop(product);
    plan.backward(&mut re, &mut im);
    // Sizes are far below 2^53.
    let share = 1.0 / size as f64;
    for value in re.iter_mut().chain(im.iter_mut()) {
        *value *= share;
    }
    let moved = (plan.error() + 2.0 * UNIT) * (sums.bound[0] + sums.bound[1]);
    let bound = |error: f64| (error + moved) * share * SLACK + UNDERFLOW;
    Convolved {
        upper_error: bound(sums.error[0]),
        lower_error: bound(sums.error[1]),
        upper: re,
        lower: im,
    }
}

/// Adds masses onto a circle; returns their sum.
fn wrap(circle: &mut [f64], masses: &[f64]) -> f64 {
    let mut sum = 0.0;
    for chunk in masses.chunks(circle.len()) {
        for (place, mass) in circle.iter_mut().zip(chunk) {
            *place += mass;
            sum += mass;
        }
    }
    sum
}

/// The two spectra at `k`, from the joint one at `k` and `N - k`.
pub(crate) fn split(a: f64, b: f64, c: f64, d: f64) -> [(f64, f64); 2] {
    [
        (0.5 * (a + c), 0.5 * (b - d)),
        (0.5 * (b + d), 0.5 * (c - a)),
    ]
}

#[derive(Default)]
struct Sums {
    bound: [f64; 2],
    error: [f64; 2],
}

impl Sums {
    fn add(&mut self, both: &[Value; 2], weight: f64) {
        for (side, value) in both.iter().enumerate() {
            self.bound[side] += weight * value.bound;
            self.error[side] += weight * value.error;
        }
    }
}

/// A computed number with a bound of its modulus, and of the true one's, and of their distance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Value {
    pub(crate) re: f64,
    pub(crate) im: f64,
    pub(crate) bound: f64,
    pub(crate) error: f64,
}

impl Value {
    pub(crate) fn times(self, other: Self) -> Self {
        let (re, im) = product((self.re, self.im), (other.re, other.im));
        let bound = self.bound * other.bound;
        Self {
            re,
            im,
            bound: bound * (1.0 + 4.0 * UNIT) + UNDERFLOW,
            error: self.error * other.bound
                + self.bound * other.error
                + 4.0 * UNIT * bound
                + UNDERFLOW,
        }
    }
}

/// Raises numbers that are known up to an error.
pub(crate) struct Power {
    count: u64,
    error: f64,
    /// The relative error of all products, and of the bound's.
    rounding: f64,
    /// Numbers below this have a negligible power.
    limit: f64,
}

impl Power {
    pub(crate) fn new(count: u64, error: f64) -> Self {
        let times = count as f64;
        Self {
            count,
            error,
            rounding: (3.0 * UNIT * times).exp_m1() * SLACK,
            limit: (-NEGLIGIBLE / times).exp() * (1.0 - 1e-15),
        }
    }

    pub(crate) fn raise(&self, re: f64, im: f64) -> Value {
        let modulus = ((re * re + im * im).sqrt() + self.error) * (1.0 + 4.0 * UNIT);
        if modulus < self.limit {
            return Value {
                re: 0.0,
                im: 0.0,
                bound: 1e-52,
                error: 1e-52,
            };
        }
        let (mut square, mut square_bound) = ((re, im), modulus);
        let (mut power, mut power_bound) = ((1.0, 0.0), 1.0);
        let mut left = self.count;
        while left > 0 {
            if left & 1 == 1 {
                power = product(power, square);
                power_bound *= square_bound;
            }
            left >>= 1;
            if left > 0 {
                square = product(square, square);
                square_bound *= square_bound;
            }
        }
        let bound = power_bound * (1.0 + self.rounding) + UNDERFLOW;
        Value {
            re: power.0,
            im: power.1,
            bound,
            error: bound * (self.count as f64 * self.error / modulus + self.rounding) * SLACK
                + UNDERFLOW,
        }
    }
}

#[cfg(test)]
#[path = "convolve_test.rs"]
mod tests;
