//! How far a sum can be from the exact one, and how it gets on the grid. The proof is in the module above.

use std::ops::Add;

use whit_core::round;

use super::{BATCH_MAX, PART_MAX};
use crate::tensor::vectorised;

/// The numbers of the proof.
pub(super) struct Rounding {
    pub(super) chain: usize,
    pub(super) chains: usize,
    pub(super) carries: usize,
    pub(super) cap: usize,
    pub(super) parameters: usize,
    pub(super) norm: f64,
    pub(super) grid: f64,
}

impl Rounding {
    /// The sum of the four errors, rounded up; infinite where a condition of the proof fails.
    pub(super) fn error_upper(&self) -> f64 {
        let up = |factors: &[f64]| {
            factors
                .iter()
                .fold(1.0, |product, &x| round::mul_up(product, x))
        };
        let (slack, tiny) = (1.0 + 1.0 / 256.0, f64::EPSILON / 2.0);
        // No term goes through more than m + b + 2, and the average is at most (m + b + 7)/2: halves of whole numbers are exact.
        if self.chain + self.chains + 2 > 65_536 {
            return f64::INFINITY;
        }
        let roundings = (self.chain + self.chains + 7) as f64 / 2.0;
        let root = round::sqrt_up(self.parameters as f64);
        let narrow = up(&[roundings / 16_777_216.0, slack, self.cap as f64, self.norm]);
        let wide = up(&[
            (PART_MAX + 2) as f64 * tiny,
            slack,
            BATCH_MAX as f64,
            self.norm,
        ]);
        let underflow = up(&[2.0 * BATCH_MAX as f64, root, 2.0_f64.powi(-150)]);
        let carried = up(&[self.carries as f64, root, self.grid, 0.5]);
        [narrow, wide, underflow, carried]
            .iter()
            .fold(0.0, |sum, &x| round::add_up(sum, x))
    }
}

/// Adds `round(x/g)` to each sum, `x` being the sum of two halves, of which the second may be missing; a fresh sum counts as zero, whatever it holds.
///
/// `x/g` is exact and below 2^51, so that adding `1.5·2^52` leaves a float whose spacing is 1, rounded to the nearest: its bits
/// less those of `1.5·2^52` are the whole number.
pub(super) fn carry<T: Copy + Add<Output = T>>(
    [first, second]: [&[T]; 2],
    widen: impl Fn(T) -> f64 + Copy,
    grid: f64,
    sums: &mut [i64],
    fresh: bool,
) {
    const SHIFT: f64 = 6_755_399_441_055_744.0;
    let steps = 1.0 / grid;
    let whole = move |x: T| ((widen(x) * steps + SHIFT).to_bits() as i64) - SHIFT.to_bits() as i64;
    vectorised(
        sums,
        #[inline(always)]
        move |sums: &mut [i64]| {
            if second.is_empty() {
                put(first.iter().map(|&x| whole(x)), sums, fresh);
            } else {
                let both = first.iter().zip(second);
                put(both.map(|(&a, &b)| whole(a + b)), sums, fresh);
            }
        },
    );
}

#[inline(always)]
fn put(each: impl Iterator<Item = i64>, sums: &mut [i64], fresh: bool) {
    let each = sums.iter_mut().zip(each);
    if fresh {
        each.for_each(|(sum, x)| *sum = x);
    } else {
        each.for_each(|(sum, x)| *sum += x);
    }
}
