//! Matrix products in which every entry is one chain.
//!
//! **Claim.** In both products below the entry at `(i, j)` is `fma(a_k, b_k, s)` for `k = 0, 1, …` in this order, from the
//! stated start, whatever the other rows and columns are, how many there are, and where the row stands. **Proof.** A tile
//! holds one lane per entry and visits `k` in order; tiles of other sizes run the same operation, and an operation on
//! lanes acts on each lane alone. What differs between machines is only whether a multiply-add rounds once or twice.
//!
//! So an example's activations are bitwise a function of the example and the parameters, and never of the slot that it
//! has or of its neighbours there. A library's product does not promise that: it may choose its order of summation by the
//! shape. This one is also what keeps `unsafe` out of the workspace, since `pulp` dispatches safely.
//!
//! **Layout.** The right factor is packed into panels of up to [`PANEL`] columns, each panel row by row, the last one
//! padded with zeros to a multiple of [`BLOCK`]. Weights are packed once per step and shared by all threads.

use pulp::{Arch, Simd, WithSimd};

/// Columns of a full panel: three vectors of AVX-512, which with eight rows fill 24 of its 32 registers with sums.
const PANEL: usize = 48;

/// Panels are padded to whole multiples of this, the widest vector there is.
const BLOCK: usize = 16;

/// The right factor of a product, packed. It keeps its memory when it is packed anew.
#[derive(Default)]
pub(crate) struct Panels {
    depth: usize,
    columns: usize,
    floats: Vec<f32>,
}

impl Panels {
    fn shape(&mut self, depth: usize, columns: usize) {
        if (self.depth, self.columns) != (depth, columns) {
            (self.depth, self.columns) = (depth, columns);
            // The padding is zero from here on: packing writes only the columns that are there.
            self.floats.clear();
            self.floats
                .resize(depth * columns.next_multiple_of(BLOCK), 0.0);
        }
    }

    /// Packs a matrix of `columns` columns that lies row by row.
    pub(crate) fn pack(&mut self, rows: &[f32], columns: usize) {
        self.shape(rows.len() / columns, columns);
        for (first, width, panel) in panels_mut(&mut self.floats, self.depth, columns) {
            let kept = width.min(columns - first);
            let rows = rows.chunks_exact(columns).map(|row| &row[first..]);
            if kept == PANEL {
                // A copy of a known length is a few moves and not a call.
                let panel = panel.as_chunks_mut::<PANEL>().0;
                for (to, from) in panel
                    .iter_mut()
                    .zip(rows.filter_map(|row| row.first_chunk()))
                {
                    *to = *from;
                }
            } else {
                for (to, from) in panel.chunks_exact_mut(width).zip(rows) {
                    to[..kept].copy_from_slice(&from[..kept]);
                }
            }
        }
    }

    /// Packs the transpose of a matrix that lies row by row, `depth` floats in a row.
    pub(crate) fn pack_transposed(&mut self, rows: &[f32], depth: usize) {
        let columns = rows.len() / depth;
        self.shape(depth, columns);
        for (first, width, panel) in panels_mut(&mut self.floats, depth, columns) {
            let kept = width.min(columns - first);
            let rows = &rows[first * depth..(first + kept) * depth];
            for (k, to) in panel.chunks_exact_mut(width).enumerate() {
                for (to, row) in to.iter_mut().zip(rows.chunks_exact(depth)) {
                    *to = row[k];
                }
            }
        }
    }

    /// Calls `visit` with `(k, first column, floats)` for every row of every panel, without the padding.
    pub(crate) fn each_row(&self, mut visit: impl FnMut(usize, usize, &[f32])) {
        for (first, width, panel) in panels(&self.floats, self.depth, self.columns) {
            let kept = width.min(self.columns - first);
            for (k, row) in panel.chunks_exact(width).enumerate() {
                visit(k, first, &row[..kept]);
            }
        }
    }
}

fn panel_at(depth: usize, columns: usize, first: usize) -> (usize, std::ops::Range<usize>) {
    let width = PANEL.min((columns - first).next_multiple_of(BLOCK));
    (width, first * depth..(first + width) * depth)
}

fn panels(
    floats: &[f32],
    depth: usize,
    columns: usize,
) -> impl Iterator<Item = (usize, usize, &[f32])> {
    (0..columns).step_by(PANEL).map(move |first| {
        let (width, range) = panel_at(depth, columns, first);
        (first, width, &floats[range])
    })
}

fn panels_mut(
    floats: &mut [f32],
    depth: usize,
    columns: usize,
) -> impl Iterator<Item = (usize, usize, &mut [f32])> {
    floats
        .chunks_mut((PANEL * depth).max(1))
        .zip((0..columns).step_by(PANEL))
        .map(move |(panel, first)| (first, panel_at(depth, columns, first).0, panel))
}

/// What a product starts from.
#[derive(Clone, Copy)]
pub(crate) enum Start<'a> {
    /// Zero.
    Zero,
    /// The same row for every row.
    Row(&'a [f32]),
}

/// `C = start + A B` for a left factor that lies row by row, as many floats in a row as the right one has rows.
pub(crate) fn multiply(left: &[f32], right: &Panels, start: Start, out: &mut [f32]) {
    let rows = out.len() / right.columns;
    Arch::new().dispatch(Product {
        left: ByRow(left, right.depth),
        right,
        rows,
        start,
        add: false,
        out,
    });
}

/// `C += Aᵀ B`, each entry of the product being summed on its own before it is added: one more rounding.
pub(crate) fn add_transposed(left: &[f32], right: &Panels, out: &mut [f32]) {
    let rows = out.len() / right.columns;
    Arch::new().dispatch(Product {
        left: ByColumn(left, rows),
        right,
        rows,
        start: Start::Zero,
        add: true,
        out,
    });
}

/// `C = Aᵀ B`.
pub(crate) fn multiply_transposed(left: &[f32], right: &Panels, out: &mut [f32]) {
    let rows = out.len() / right.columns;
    Arch::new().dispatch(Product {
        left: ByColumn(left, rows),
        right,
        rows,
        start: Start::Zero,
        add: false,
        out,
    });
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

/// How a tile reads `R` rows of the left factor, for one `k` after the other.
trait Left: Copy {
    /// Does a product go through all rows before the next panel? Else it goes through all panels before the next rows.
    const PANELS_OUTSIDE: bool;
    fn tile<const R: usize>(self, row: usize) -> impl Iterator<Item = [f32; R]>;
}

#[derive(Clone, Copy)]
struct ByRow<'a>(&'a [f32], usize);

impl Left for ByRow<'_> {
    const PANELS_OUTSIDE: bool = true;
    #[inline(always)]
    fn tile<const R: usize>(self, row: usize) -> impl Iterator<Item = [f32; R]> {
        let Self(floats, depth) = self;
        let rows: [&[f32]; R] = std::array::from_fn(|r| &floats[(row + r) * depth..][..depth]);
        (0..depth).map(
            #[inline(always)]
            move |k| std::array::from_fn(|r| rows[r][k]),
        )
    }
}

#[derive(Clone, Copy)]
struct ByColumn<'a>(&'a [f32], usize);

impl Left for ByColumn<'_> {
    const PANELS_OUTSIDE: bool = false;
    #[inline(always)]
    fn tile<const R: usize>(self, row: usize) -> impl Iterator<Item = [f32; R]> {
        let Self(floats, stride) = self;
        floats.chunks_exact(stride).map(
            #[inline(always)]
            move |floats| {
                let floats = &floats[row..row + R];
                std::array::from_fn(|r| floats[r])
            },
        )
    }
}

struct Product<'a, L> {
    left: L,
    right: &'a Panels,
    rows: usize,
    start: Start<'a>,
    add: bool,
    out: &'a mut [f32],
}

impl<L: Left> WithSimd for Product<'_, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let Panels { depth, columns, .. } = *self.right;
        let floats = &self.right.floats;
        if L::PANELS_OUTSIDE {
            for (first, width, panel) in panels(floats, depth, columns) {
                let mut row = 0;
                while row < self.rows {
                    row += self.rows_at(simd, row, first, width, panel);
                }
            }
        } else {
            let mut row = 0;
            while row < self.rows {
                let mut done = 1;
                for (first, width, panel) in panels(floats, depth, columns) {
                    done = self.rows_at(simd, row, first, width, panel);
                }
                row += done;
            }
        }
    }
}

impl<L: Left> Product<'_, L> {
    /// As many rows of one panel as fit in the registers; returns how many, which does not depend on the panel.
    #[inline(always)]
    fn rows_at<S: Simd>(
        &mut self,
        simd: S,
        row: usize,
        first: usize,
        width: usize,
        panel: &[f32],
    ) -> usize {
        match self.rows - row {
            8.. if S::REGISTER_COUNT > 16 => {
                self.columns_at::<S, 8>(simd, row, first, width, panel)
            }
            4.. => self.columns_at::<S, 4>(simd, row, first, width, panel),
            2.. => self.columns_at::<S, 2>(simd, row, first, width, panel),
            _ => self.columns_at::<S, 1>(simd, row, first, width, panel),
        }
    }

    /// With sixteen lanes the whole panel is one tile, else each block of it is.
    #[inline(always)]
    fn columns_at<S: Simd, const R: usize>(
        &mut self,
        simd: S,
        row: usize,
        first: usize,
        width: usize,
        panel: &[f32],
    ) -> usize {
        let vectors = S::as_simd_f32s(panel).0;
        match (S::F32_LANES, width) {
            (16, 48) => self.tile::<S, R, 3>(simd, row, first, vectors.as_chunks().0.iter()),
            (16, 32) => self.tile::<S, R, 2>(simd, row, first, vectors.as_chunks().0.iter()),
            (16, _) => self.tile::<S, R, 1>(simd, row, first, vectors.as_chunks().0.iter()),
            (8, _) => self.blocks::<S, R, 2>(simd, row, first, width, vectors),
            (4, _) => self.blocks::<S, R, 4>(simd, row, first, width, vectors),
            _ => self.single::<S, R>(simd, row, first, width, vectors),
        }
        R
    }

    #[inline(always)]
    fn blocks<S: Simd, const R: usize, const V: usize>(
        &mut self,
        simd: S,
        row: usize,
        first: usize,
        width: usize,
        vectors: &[S::f32s],
    ) {
        let blocks = width / BLOCK;
        for block in 0..blocks {
            let right = vectors.as_chunks().0.iter().skip(block).step_by(blocks);
            self.tile::<S, R, V>(simd, row, first + block * BLOCK, right);
        }
    }

    /// Any other number of lanes: one vector after the other.
    #[inline(always)]
    fn single<S: Simd, const R: usize>(
        &mut self,
        simd: S,
        row: usize,
        first: usize,
        width: usize,
        vectors: &[S::f32s],
    ) {
        let count = width / S::F32_LANES;
        for vector in 0..count {
            let right = vectors.as_chunks().0.iter().skip(vector).step_by(count);
            self.tile::<S, R, 1>(simd, row, first + vector * S::F32_LANES, right);
        }
    }

    #[inline(always)]
    fn tile<'b, S: Simd, const R: usize, const V: usize>(
        &mut self,
        simd: S,
        row: usize,
        first: usize,
        right: impl Iterator<Item = &'b [S::f32s; V]>,
    ) {
        let columns = self.right.columns;
        let lanes_from = |v: usize| (first + v * S::F32_LANES).min(columns);
        let mut sums = [[simd.splat_f32s(0.0); V]; R];
        if let Start::Row(start) = self.start {
            let start: [S::f32s; V] =
                std::array::from_fn(|v| simd.partial_load_f32s(&start[lanes_from(v)..]));
            sums = [start; R];
        }
        let sums = chains(simd, self.left.tile::<R>(row), right, sums);
        // Adding to zero keeps every value but the sign of a negative zero, and so in both branches.
        let zero = simd.splat_f32s(0.0);
        if first + V * S::F32_LANES <= columns {
            for (r, sums) in sums.iter().enumerate() {
                let out = &mut self.out[(row + r) * columns + first..][..V * S::F32_LANES];
                for (out, &sum) in S::as_mut_simd_f32s(out).0.iter_mut().zip(sums) {
                    let before = if self.add { *out } else { zero };
                    *out = simd.add_f32s(before, sum);
                }
            }
        } else {
            for (r, sums) in sums.iter().enumerate() {
                let out = &mut self.out[(row + r) * columns..][..columns];
                for (v, &sum) in sums.iter().enumerate() {
                    let out = &mut out[lanes_from(v)..];
                    let before = if self.add {
                        simd.partial_load_f32s(out)
                    } else {
                        zero
                    };
                    simd.partial_store_f32s(out, simd.add_f32s(before, sum));
                }
            }
        }
    }
}

/// The chains of a tile, all at once: `R V` independent ones, kept in registers.
#[inline(always)]
fn chains<'b, S: Simd, const R: usize, const V: usize>(
    simd: S,
    left: impl Iterator<Item = [f32; R]>,
    right: impl Iterator<Item = &'b [S::f32s; V]>,
    mut sums: [[S::f32s; V]; R],
) -> [[S::f32s; V]; R] {
    for (left, right) in left.zip(right) {
        for r in 0..R {
            let value = simd.splat_f32s(left[r]);
            for v in 0..V {
                sums[r][v] = simd.mul_add_e_f32s(value, right[v], sums[r][v]);
            }
        }
    }
    sums
}

#[cfg(test)]
#[path = "matmul_test.rs"]
mod tests;
