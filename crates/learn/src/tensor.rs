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

/// Floats of a cache line.
pub(crate) const LINE: usize = 16;

/// Asks for the cache lines of these floats: they come to the second cache, from memory or from another thread's, while something else is
/// computed.
#[inline(always)]
pub(crate) fn fetch(floats: &[f32]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(machine) = pulp::core_arch::x86::Sse::try_new() {
        for float in floats.iter().step_by(LINE) {
            let line = std::ptr::from_ref(float).cast();
            machine._mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(line);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = floats;
}

/// Lengths of rows for which the squared norm is taken in floats: shorter ones gain nothing, and longer ones would lose too much.
const QUICK: std::ops::RangeInclusive<usize> = 128..=4096;

/// Between these, at most 2^12 squares that fell below the normal floats are a share of at most 2^-78 of their sum.
const QUICK_SUMS: std::ops::RangeInclusive<f64> = 1e-18..=1e30;

/// An upper bound of the squared Euclidean norm; not finite if one of the floats is not. A function of the row's floats alone.
///
/// **Proof.** *In floats:* a term of the sum goes through at most `k` roundings of relative size `u = 2^-24`, so that the exact sum
/// is at most the computed one, and what was lost below the normal floats (2^-150 for each square), over `(1-u)^k >= 1/(1 + 2ku - u)`.
/// Twice `(k+1) u` covers both. *In `f64`:* the square of an `f32` has at most 48 digits and an exponent above -300, so it is exact. A
/// sum of `n` numbers that are not negative, added in any order, is off by a factor of at most `(1 + 2^-53)^(n-1)`; the last line
/// multiplies by more than the inverse, its own three roundings included.
pub(crate) fn square_norm_upper(row: &[f32]) -> f64 {
    if QUICK.contains(&row.len()) {
        let (sum, roundings) = Arch::new().dispatch(Squares(row));
        let sum = f64::from(sum);
        if QUICK_SUMS.contains(&sum) {
            return (sum * (1.0 + (roundings + 1) as f64 / 8_388_608.0)).next_up();
        }
    }
    let sum = vectorised(
        row,
        #[inline(always)]
        move |row: &[f32]| {
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

/// The sum of the squares of a row in floats, and through how many roundings a term goes at most.
struct Squares<'a>(&'a [f32]);

impl WithSimd for Squares<'_> {
    type Output = (f32, usize);

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> (f32, usize) {
        let [mut a, mut b, mut c, mut d] = [simd.splat_f32s(0.0); 4];
        let (vectors, tail) = S::as_simd_f32s(self.0);
        let (fours, rest) = vectors.as_chunks::<4>();
        for four in fours {
            a = simd.mul_add_e_f32s(four[0], four[0], a);
            b = simd.mul_add_e_f32s(four[1], four[1], b);
            c = simd.mul_add_e_f32s(four[2], four[2], c);
            d = simd.mul_add_e_f32s(four[3], four[3], d);
        }
        for &x in rest {
            a = simd.mul_add_e_f32s(x, x, a);
        }
        let tail = simd.partial_load_f32s(tail);
        b = simd.mul_add_e_f32s(tail, tail, b);
        let sum = simd.add_f32s(simd.add_f32s(a, b), simd.add_f32s(c, d));
        // The product, its chain of at most three steps more than there are fours, two sums of vectors, and those of their lanes.
        let roundings = 1 + fours.len() + 3 + 2 + S::F32_LANES;
        (simd.reduce_sum_f32s(sum), roundings)
    }
}

/// `out_j += Σ_i f_i x_ij` over the rows `i` with a factor that is not zero: each sum is one chain in the order of the rows,
/// added at its end.
pub(crate) fn add_scaled_rows(rows: &[f32], factors: &[f32], out: &mut [f32]) {
    let width = out.len();
    vectorised(
        out,
        #[inline(always)]
        move |out: &mut [f32]| {
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
        move |out: &mut [f32]| {
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
        move |out: &mut [f32]| {
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
        move |out: &mut [f32]| {
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
        assert!(upper >= exact && upper <= exact * (1.0 + 1e-5));
        assert!(!square_norm_upper(&[1.0, f32::NAN]).is_finite());
        assert!(!square_norm_upper(&[f32::INFINITY; 40]).is_finite());
        assert_eq!(square_norm_upper(&[0.0; 7]), 0.0);
    }

    #[test]
    fn norms_in_floats_are_bounded_from_above_too() {
        let exact = |row: &[f32]| {
            // In `f64`, and each sum rounded down and up: between them is the exact one.
            let squares = row.iter().map(|&x| f64::from(x) * f64::from(x));
            squares.fold((0.0_f64, 0.0_f64), |(down, up), x| {
                ((down + x).next_down(), (up + x).next_up())
            })
        };
        for len in [127, 128, 129, 191, 784, 1000, 4095, 4096, 4097] {
            for size in [1.0_f32, 3e-22, 1e-30, 1e-12, 1e10, 1e17] {
                for kind in 0..3 {
                    let float = |i: usize| match kind {
                        // All squares round down: 1 + 2^-12 squared is 1 + 2^-11 + 2^-24.
                        0 => size * (1.0 + 1.0 / 4096.0),
                        1 => size * (i as f32 * 0.37).sin(),
                        // Squares below the normal floats beside one that is not.
                        _ => [size, size * 1e-20][usize::from(i != len / 2)],
                    };
                    let row: Vec<f32> = (0..len).map(float).collect();
                    let (upper, (down, up)) = (square_norm_upper(&row), exact(&row));
                    assert!(upper >= down, "{len} {size} {kind}");
                    assert!(upper <= up * (1.0 + 2e-4), "{len} {size} {kind}");
                }
            }
        }
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut row = vec![1.0; 300];
            row[200] = bad;
            assert!(!square_norm_upper(&row).is_finite());
        }
        assert_eq!(square_norm_upper(&[0.0; 300]), 0.0);
        assert!(square_norm_upper(&[f32::MAX; 300]).is_finite());
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
