//! Matrix products in which every entry is one chain.
//!
//! **Claim.** In the products below the entry at `(i, j)` is `fma(a_k, b_k, s)` for `k = 0, 1, …` in this order, from the
//! stated start, whatever the other rows and columns are, how many there are, and where the row stands. **Proof.** A tile
//! holds one lane per entry and visits `k` in order; tiles of other sizes run the same operation, and an operation on
//! lanes acts on each lane alone. What differs between machines is only whether a multiply-add rounds once or twice.
//!
//! So an example's activations are bitwise a function of the example and the parameters, and never of the slot that it
//! has or of its neighbours there. A library's product does not promise that: it may choose its order of summation by the
//! shape. This one is also what keeps `unsafe` out of the workspace, since `pulp` dispatches safely.
//!
//! **Sums over examples** of several micro-batches ([`add_up`]) are one chain for each of them, and the ends of these
//! chains are added in their order: few roundings for each term, and the sum stays near.
//!
//! **Layout.** The right factor is packed into [`Panels`] of columns, and where a left factor is used by many panels it is
//! packed into [`Strips`] of rows. Both start at cache lines. Weights are packed once per step, large ones for all threads and small ones by each.

mod factors;
mod panels;
mod strips;
mod tile;

use pulp::Arch;

pub(crate) use factors::Start;
use factors::{ByColumn, ByRow, Joint, Unpacked};
pub(crate) use factors::{Rows, Summand};
pub(crate) use panels::{BLOCK, Panels};
pub(crate) use strips::{STRIP, Strips};
use tile::Product;

/// `C = start + A B` for a left factor that lies row by row, as many floats in a row as the right one has rows.
pub(crate) fn multiply(left: &[f32], right: &Panels, start: Start, out: &mut [f32]) {
    Arch::new().dispatch(Product::<_, false> {
        rows: 0..out.len() / right.columns,
        factors: ByRow { left, right, start },
        out,
    });
}

/// `C += Aᵀ B`, each entry of the product being summed on its own before it is added: one more rounding.
pub(crate) fn add_transposed(left: &[f32], right: &Panels, out: &mut [f32]) {
    transposed::<true>(left, right, out);
}

/// The same for a right factor that lies row by row and whose columns are a multiple of [`BLOCK`].
pub(crate) fn add_transposed_unpacked(
    left: &[f32],
    right: &[f32],
    columns: usize,
    out: &mut [f32],
) {
    let stride = out.len() / columns;
    Arch::new().dispatch(Product::<_, true> {
        factors: Unpacked {
            left,
            stride,
            right,
            columns,
        },
        rows: 0..stride,
        out,
    });
}

/// `C = Aᵀ B`.
pub(crate) fn multiply_transposed(left: &[f32], right: &Panels, out: &mut [f32]) {
    transposed::<false>(left, right, out);
}

fn transposed<const ADD: bool>(left: &[f32], right: &Panels, out: &mut [f32]) {
    let stride = out.len() / right.columns;
    Arch::new().dispatch(Product::<_, ADD> {
        factors: ByColumn {
            left,
            stride,
            right,
        },
        rows: 0..stride,
        out,
    });
}

/// Rows of `C = Σ_b A_bᵀ B_b`, over the micro-batches `b`; the first row starts a strip.
pub(crate) fn add_up<B: Summand>(
    blocks: &[(&Strips, B)],
    rows: std::ops::Range<usize>,
    out: &mut [f32],
) {
    let factors = Joint { blocks };
    match blocks.is_empty() {
        true => out.fill(0.0),
        false => Arch::new().dispatch(Product::<_, false> { factors, rows, out }),
    }
}

/// `C += Aᵀ B` in `f64`, where every product of two `f32` is exact. Slow, and used for batches beyond the public cap only.
pub(crate) fn add_transposed_wide(left: &[f32], right: &Panels, out: &mut [f64]) {
    let (columns, rows) = (right.columns, out.len() / right.columns);
    right.each_row(|k, first, floats| {
        for (i, &a) in left[k * rows..(k + 1) * rows].iter().enumerate() {
            let out = &mut out[i * columns + first..][..floats.len()];
            for (sum, &b) in out.iter_mut().zip(floats) {
                *sum += f64::from(a) * f64::from(b);
            }
        }
    });
}

#[cfg(test)]
#[path = "matmul_test.rs"]
mod tests;
