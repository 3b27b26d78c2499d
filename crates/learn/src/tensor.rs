//! Loops over rows of floats, and the elementary functions of layers.
//!
//! A tensor here is a slice: one example after the other, and within an example the channels (or features) vary fastest.
//! The loops are written in lanes, so that they are vectorised for the machine they run on. Each example's result is a
//! bitwise function of that example's floats.

use pulp::{Arch, Simd, WithSimd};

/// Lanes of the loops below: one vector of AVX-512, two of AVX2.
const LANES: usize = 16;

/// Runs `body` on `argument`, compiled for the machine at hand. The body must be `#[inline(always)]`, and must not capture what it
/// changes: a call that is not inlined is compiled for the oldest machine of all.
#[inline(always)]
pub(crate) fn vectorised<A, R>(argument: A, body: impl Fn(A) -> R) -> R {
    struct Run<A, F>(A, F);
    impl<A, R, F: Fn(A) -> R> WithSimd for Run<A, F> {
        type Output = R;
        #[inline(always)]
        fn with_simd<S: Simd>(self, _simd: S) -> R {
            self.1(self.0)
        }
    }
    Arch::new().dispatch(Run(argument, body))
}

/// An upper bound of the squared Euclidean norm; not finite if one of the floats is not.
///
/// **Proof.** The square of an `f32` has at most 48 digits and an exponent above -300, so it is exact in `f64`. A sum of `n`
/// numbers that are not negative, added in any order, is off by a factor of at most `(1 + 2^-53)^(n-1)`; the last line
/// multiplies by more than the inverse, its own three roundings included.
pub(crate) fn square_norm_upper(row: &[f32]) -> f64 {
    let sum = vectorised(
        row,
        #[inline(always)]
        |row: &[f32]| {
            let mut lanes = [0.0_f64; LANES];
            let (chunks, rest) = row.as_chunks::<LANES>();
            for chunk in chunks {
                for (lane, &x) in lanes.iter_mut().zip(chunk) {
                    *lane += f64::from(x) * f64::from(x);
                }
            }
            for (lane, &x) in lanes.iter_mut().zip(rest) {
                *lane += f64::from(x) * f64::from(x);
            }
            lanes.iter().sum::<f64>()
        },
    );
    sum * (1.0 + (row.len() as f64 + 8.0) * f64::EPSILON)
}

/// `out_j += Σ_i f_i x_ij` over the rows `i` with a factor that is not zero: each sum is one chain in the order of the rows,
/// added at its end.
pub(crate) fn add_scaled_rows(rows: &[f32], factors: &[f32], out: &mut [f32]) {
    let width = out.len();
    vectorised(
        out,
        #[inline(always)]
        |out: &mut [f32]| {
            let (chunks, rest) = out.as_chunks_mut::<{ 4 * LANES }>();
            let done = chunks.len() * 4 * LANES;
            for (index, chunk) in chunks.iter_mut().enumerate() {
                let mut lanes = [0.0_f32; 4 * LANES];
                for (row, &factor) in rows.chunks_exact(width).zip(factors) {
                    let row = &row[index * 4 * LANES..][..4 * LANES];
                    for (lane, &x) in lanes.iter_mut().zip(row) {
                        *lane += factor * x;
                    }
                }
                for (out, lane) in chunk.iter_mut().zip(lanes) {
                    *out += lane;
                }
            }
            for (index, out) in rest.iter_mut().enumerate() {
                let column = rows.chunks_exact(width).map(|row| row[done + index]);
                *out += column
                    .zip(factors)
                    .fold(0.0, |sum, (x, &factor)| sum + factor * x);
            }
        },
    );
}

/// The same in `f64`, where the products are exact.
pub(crate) fn add_scaled_rows_wide(rows: &[f32], factors: &[f32], out: &mut [f64]) {
    for (row, &factor) in rows.chunks_exact(out.len()).zip(factors) {
        for (out, &x) in out.iter_mut().zip(row) {
            *out += f64::from(factor) * f64::from(x);
        }
    }
}

/// `out_ij = f_i x_ij`. What falls below the normal floats becomes zero, so that each product errs by at most half a unit in
/// its last place or gets smaller.
pub(crate) fn scale_rows(rows: &[f32], factors: &[f32], out: &mut [f32]) {
    let width = rows.len() / factors.len().max(1);
    vectorised(
        out,
        #[inline(always)]
        |out: &mut [f32]| {
            let rows = rows.chunks_exact(width.max(1)).zip(factors);
            for (out, (row, &factor)) in out.chunks_exact_mut(width.max(1)).zip(rows) {
                for (out, &x) in out.iter_mut().zip(row) {
                    let product = factor * x;
                    *out = if product.abs() < f32::MIN_POSITIVE {
                        0.0
                    } else {
                        product
                    };
                }
            }
        },
    );
}

/// `out_j = Σ_i x_ij`, each sum one chain in the order of the rows.
pub(crate) fn sum_rows(rows: &[f32], out: &mut [f32]) {
    let width = out.len();
    vectorised(
        out,
        #[inline(always)]
        |out: &mut [f32]| {
            out.fill(0.0);
            for row in rows.chunks_exact(width) {
                for (out, &x) in out.iter_mut().zip(row) {
                    *out += x;
                }
            }
        },
    );
}

/// `out_i = f(a_i, b_i)` for every `i`.
#[inline(always)]
pub(crate) fn combine(a: &[f32], b: &[f32], out: &mut [f32], f: impl Fn(f32, f32) -> f32) {
    vectorised(
        out,
        #[inline(always)]
        |out: &mut [f32]| {
            for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
                *out = f(a, b);
            }
        },
    );
}

/// A vector of this length. What it holds is whatever was there: the caller writes all of it.
pub(crate) fn sized<T: Clone + Default>(vector: &mut Vec<T>, len: usize) -> &mut [T] {
    if vector.len() < len {
        vector.resize(len, T::default());
    }
    &mut vector[..len]
}

/// `e^x` within three units in the last place, without a branch; below -87 it is that of -87, above 88 that of 88.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // Halves of the range are exact powers of two; adding 1.5·2^23 rounds to an integer.
    const ROUND: f32 = 12_582_912.0;
    let x = x.clamp(-87.0, 88.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    // ln 2 in two parts, the first with trailing zeros so that its product with n is exact.
    let r = (x - n * 0.693_359_4) + n * 2.121_944_4e-4;
    // The Taylor polynomial of degree 7 on |r| <= ln(2)/2: its remainder is below 6e-9.
    let p = 1.0
        + r * (1.0
            + r * (0.5
                + r * (1.0 / 6.0
                    + r * (1.0 / 24.0 + r * (1.0 / 120.0 + r * (1.0 / 720.0 + r / 5040.0))))));
    // A number that is no number stays one: clamp keeps it, and so does the product.
    let power = ((shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32)).wrapping_add(127);
    p * f32::from_bits((power as u32) << 23)
}

/// The hyperbolic tangent within some units in the last place.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    let square = x * x;
    // The continued fraction x/(1 + x²/(3 + x²/(5 + x²/(7 + x²/9)))) is good to 1e-8 up to 0.6.
    let small =
        x * (945.0 + square * (105.0 + square)) / (945.0 + square * (420.0 + square * 15.0));
    let large = 1.0 - 2.0 / (exp(2.0 * x.abs()) + 1.0);
    if x.abs() < 0.6 {
        small
    } else {
        large.copysign(x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn norms_are_bounded_from_above_and_closely() {
        let row: Vec<f32> = (0..1003).map(|i| (i as f32 * 0.37).sin() * 3.0).collect();
        // Products of integers of 24 digits, in integers: the exact sum in units of 2^-298 would be needed for floats, so
        // the row is first made of multiples of 2^-16.
        let row: Vec<f32> = row
            .iter()
            .map(|x| (x * 65536.0).round() / 65536.0)
            .collect();
        let exact: i128 = row
            .iter()
            .map(|x| (x * 65536.0) as i128)
            .map(|x| x * x)
            .sum();
        let exact = exact as f64 / 4_294_967_296.0;
        let upper = square_norm_upper(&row);
        assert!(upper >= exact && upper <= exact * (1.0 + 1e-11));
        assert!(!square_norm_upper(&[1.0, f32::NAN]).is_finite());
        assert!(!square_norm_upper(&[f32::INFINITY; 40]).is_finite());
        assert_eq!(square_norm_upper(&[0.0; 7]), 0.0);
    }

    #[test]
    fn elementary_functions_are_close() {
        for i in -8700..8800 {
            let x = i as f32 * 0.01;
            let truth = f64::from(x).exp();
            assert!((f64::from(exp(x)) - truth).abs() <= 4e-7 * truth, "exp {x}");
            let truth = f64::from(x).tanh();
            assert!(
                (f64::from(tanh(x)) - truth).abs() <= 3e-7 * truth.abs(),
                "tanh {x}"
            );
        }
        assert!(exp(f32::NAN).is_nan() && tanh(f32::NAN).is_nan());
        assert!((tanh(f32::INFINITY), tanh(f32::NEG_INFINITY)) == (1.0, -1.0));
    }

    #[test]
    fn rows_are_scaled_and_summed() {
        for width in [1, 63, 64, 130] {
            let rows: Vec<f32> = (0..5 * width).map(|i| (i % 17) as f32 - 8.0).collect();
            let factors = [1.0, 0.5, 0.0, 2.0, 0.25];
            let mut wide = vec![3.0_f64; width];
            add_scaled_rows_wide(&rows, &factors, &mut wide);
            let mut out = vec![3.0_f32; width];
            add_scaled_rows(&rows, &factors, &mut out);
            // Small multiples of a quarter: both are exact.
            assert!(out.iter().zip(&wide).all(|(&x, &y)| f64::from(x) == y));
            let mut sums = vec![9.0; width];
            sum_rows(&rows, &mut sums);
            assert_eq!(sums[0], (0..5).map(|i| rows[i * width]).sum::<f32>());
        }
    }
}
