//! The left factor of a sum over examples, packed into strips of rows.

use crate::aligned::Aligned;
use crate::tensor::vectorised;

/// Rows of a strip: those of a tile of AVX-512.
pub(crate) const STRIP: usize = 8;

/// `f_k δ_k` for the examples `k` of a micro-batch: strips of [`STRIP`] outputs, each example by example, the last one padded with
/// zeros. It keeps its memory.
#[derive(Default)]
pub(crate) struct Strips {
    pub(super) rows: usize,
    depth: usize,
    floats: Aligned,
}

impl Strips {
    /// Packs deltas, `rows` floats for each example, times the examples' factors. What falls below the normal floats becomes
    /// zero, so that each product errs by at most half a unit in its last place or gets smaller.
    pub(crate) fn pack_scaled(&mut self, deltas: &[f32], factors: &[f32]) {
        let depth = factors.len();
        let rows = deltas.len() / depth.max(1);
        (self.rows, self.depth) = (rows, depth);
        self.floats.sized(depth * rows.next_multiple_of(STRIP));
        vectorised(
            &mut self.floats[..],
            #[inline(always)]
            move |floats: &mut [f32]| {
                let strips = floats.chunks_exact_mut((depth * STRIP).max(1));
                for (strip, first) in strips.zip((0..rows).step_by(STRIP)) {
                    let kept = STRIP.min(rows - first);
                    let deltas = deltas.chunks_exact(rows).zip(factors);
                    for (to, (delta, &factor)) in
                        strip.as_chunks_mut::<STRIP>().0.iter_mut().zip(deltas)
                    {
                        let from = &delta[first..first + kept];
                        match from.first_chunk::<STRIP>() {
                            Some(from) => *to = from.map(|x| scaled(factor, x)),
                            None => {
                                *to = [0.0; STRIP];
                                for (to, &x) in to.iter_mut().zip(from) {
                                    *to = scaled(factor, x);
                                }
                            }
                        }
                    }
                }
            },
        );
    }

    /// The strip in which this row is.
    #[inline(always)]
    pub(super) fn strip(&self, row: usize) -> &[[f32; STRIP]] {
        let first = row / STRIP * STRIP * self.depth;
        self.floats[first..first + STRIP * self.depth].as_chunks().0
    }

    /// Writes the sum of each row, one chain in the order of the examples.
    pub(crate) fn add_up(&self, sums: &mut [f32]) {
        vectorised(
            sums,
            #[inline(always)]
            move |sums: &mut [f32]| {
                for (at, sums) in sums.chunks_mut(STRIP).enumerate() {
                    let mut lanes = [0.0_f32; STRIP];
                    for deltas in self.strip(at * STRIP) {
                        for (lane, x) in lanes.iter_mut().zip(deltas) {
                            *lane += x;
                        }
                    }
                    sums.copy_from_slice(&lanes[..sums.len()]);
                }
            },
        );
    }
}

#[inline(always)]
fn scaled(factor: f32, x: f32) -> f32 {
    let product = factor * x;
    if product.abs() < f32::MIN_POSITIVE {
        0.0
    } else {
        product
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_hold_what_scaling_rows_gives() {
        for rows in [1, 8, 13, 40] {
            let deltas: Vec<f32> = (0..5 * rows).map(|i| (i % 17) as f32 - 8.0).collect();
            let factors = [1.0, 0.3, 0.0, 1e-38, 0.25];
            let mut expected = vec![0.0; 5 * rows];
            crate::tensor::scale_rows(&deltas, &factors, &mut expected);
            let mut strips = Strips::default();
            strips.pack_scaled(&deltas, &factors);
            for (row, k) in (0..rows).flat_map(|row| (0..5).map(move |k| (row, k))) {
                assert_eq!(strips.strip(row)[k][row % STRIP], expected[k * rows + row]);
            }
            let mut sums = vec![2.0; rows];
            strips.add_up(&mut sums);
            for (row, &sum) in sums.iter().enumerate() {
                let terms = (0..5).map(|k| expected[k * rows + row]);
                assert_eq!(sum, terms.fold(0.0, |sum, x| sum + x));
            }
        }
    }
}
