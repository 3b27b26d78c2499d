//! Factors of a product, and the chains of a tile that each kind of them makes.

use pulp::Simd;

use super::panels::{BLOCK, Panels, firsts};
use super::strips::{STRIP, Strips};
use crate::tensor::{LINE, fetch};

/// The sums of `R` rows and `V` vectors of columns.
pub(super) type Tile<S, const R: usize, const V: usize> = [[<S as Simd>::f32s; V]; R];

/// Steps of a chain that are taken without a look at lengths.
const CHUNK: usize = 8;

/// How the sums of a tile come about: from one chain for each, or from those of several parts, which are added in their order. All rows
/// go through one part of a panel before the next, so that it stays near.
pub(super) trait Factors {
    /// Does a product go through all rows before the next panel? Else it goes through all panels before the next rows.
    const PANELS_OUTSIDE: bool;

    /// Columns of the product.
    fn columns(&self) -> usize;

    /// How many parts there are.
    fn parts(&self) -> usize {
        1
    }

    /// What chains start from.
    fn start(&self) -> Start<'_> {
        Start::Zero
    }

    /// One part of the sums of the rows from `row` on and of the vectors from `at` on of the panel that starts at column `first` and
    /// has `W` vectors in a row, from what they are at its start.
    fn sums<S: Simd, const R: usize, const V: usize, const W: usize>(
        &self,
        simd: S,
        place: Place,
        sums: Tile<S, R, V>,
    ) -> Tile<S, R, V>;

    /// The same for one sum, for a machine without vectors.
    fn sum(&self, part: usize, row: usize, column: usize, sum: f32) -> f32;
}

/// Where a tile is, and which part of its chains.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) part: usize,
    pub(super) row: usize,
    pub(super) first: usize,
    pub(super) at: usize,
    /// Which of how many tiles of this part of the panel it is.
    pub(super) turn: usize,
    pub(super) turns: usize,
}

impl Place {
    /// The share of what comes after this part of the panel that is fetched during this turn.
    #[inline(always)]
    fn share<'a>(&self, next: &'a [f32]) -> &'a [f32] {
        let share = next
            .len()
            .div_ceil(self.turns.max(1))
            .next_multiple_of(LINE);
        let from = (self.turn * share).min(next.len());
        &next[from..(from + share).min(next.len())]
    }
}

/// One step of the chains of a tile.
#[expect(
    clippy::needless_range_loop,
    reason = "sums that are named by constants stay in registers"
)]
#[inline(always)]
fn step<S: Simd, const R: usize, const V: usize, const W: usize>(
    simd: S,
    left: impl Fn(usize) -> f32,
    right: &[S::f32s; W],
    at: usize,
    sums: &mut Tile<S, R, V>,
) {
    let right = &right[at..at + V];
    for r in 0..R {
        let value = simd.splat_f32s(left(r));
        for v in 0..V {
            sums[r][v] = simd.mul_add_e_f32s(value, right[v], sums[r][v]);
        }
    }
}

#[inline(always)]
fn vectors<S: Simd, const W: usize>(right: &Panels, first: usize) -> &[[S::f32s; W]] {
    S::as_simd_f32s(right.panel(first)).0.as_chunks().0
}

/// The entry of a packed matrix.
fn entry(right: &Panels, k: usize, column: usize) -> f32 {
    let (first, width) = firsts(right.columns)
        .take_while(|&(first, _)| first <= column)
        .last()
        .unwrap_or((0, BLOCK));
    right.panel(first)[k * width + column - first]
}

/// What the chains of a product start from.
#[derive(Clone, Copy)]
pub(crate) enum Start<'a> {
    /// Zero.
    Zero,
    /// The same row for every row.
    Row(&'a [f32]),
}

impl Start<'_> {
    #[inline(always)]
    pub(super) fn tile<S: Simd, const R: usize, const V: usize>(
        self,
        simd: S,
        column: usize,
    ) -> Tile<S, R, V> {
        match self {
            Start::Zero => [[simd.splat_f32s(0.0); V]; R],
            Start::Row(start) => {
                let lanes = |v: usize| (column + v * S::F32_LANES).min(start.len());
                [std::array::from_fn(|v| simd.partial_load_f32s(&start[lanes(v)..])); R]
            }
        }
    }

    pub(super) fn at(self, column: usize) -> f32 {
        match self {
            Start::Zero => 0.0,
            Start::Row(start) => start[column],
        }
    }
}

/// A left factor that lies row by row.
pub(super) struct ByRow<'a> {
    pub(super) left: &'a [f32],
    pub(super) right: &'a Panels,
    pub(super) start: Start<'a>,
}

impl Factors for ByRow<'_> {
    const PANELS_OUTSIDE: bool = true;

    fn columns(&self) -> usize {
        self.right.columns
    }

    #[inline(always)]
    fn start(&self) -> Start<'_> {
        self.start
    }

    #[inline(always)]
    fn sums<S: Simd, const R: usize, const V: usize, const W: usize>(
        &self,
        simd: S,
        place: Place,
        mut sums: Tile<S, R, V>,
    ) -> Tile<S, R, V> {
        let depth = self.right.depth;
        let rows: [&[f32]; R] =
            std::array::from_fn(|r| &self.left[(place.row + r) * depth..][..depth]);
        let whole = rows.map(|row| row.as_chunks::<CHUNK>().0);
        let (chunks, rest) = vectors::<S, W>(self.right, place.first).as_chunks::<CHUNK>();
        let next = place.share(self.right.panel_after(place.first));
        let stride = next.len().div_ceil(LINE * chunks.len().max(1)).max(1) * LINE;
        let mut next = next.chunks(stride);
        for (c, right) in chunks.iter().enumerate() {
            if let Some(lines) = next.next() {
                fetch(lines);
            }
            let left: [&[f32; CHUNK]; R] = std::array::from_fn(|r| &whole[r][c]);
            for k in 0..CHUNK {
                step(simd, |r| left[r][k], &right[k], place.at, &mut sums);
            }
        }
        let done = chunks.len() * CHUNK;
        for (k, right) in rest.iter().enumerate() {
            step(simd, |r| rows[r][done + k], right, place.at, &mut sums);
        }
        sums
    }

    fn sum(&self, _part: usize, row: usize, column: usize, sum: f32) -> f32 {
        let depth = self.right.depth;
        let left = self.left[row * depth..][..depth].iter().enumerate();
        left.fold(sum, |sum, (k, a)| sum + a * entry(self.right, k, column))
    }
}

/// A left factor whose transpose lies row by row, `stride` floats in a row.
pub(super) struct ByColumn<'a> {
    pub(super) left: &'a [f32],
    pub(super) stride: usize,
    pub(super) right: &'a Panels,
}

impl Factors for ByColumn<'_> {
    const PANELS_OUTSIDE: bool = false;

    fn columns(&self) -> usize {
        self.right.columns
    }

    #[inline(always)]
    fn sums<S: Simd, const R: usize, const V: usize, const W: usize>(
        &self,
        simd: S,
        place: Place,
        mut sums: Tile<S, R, V>,
    ) -> Tile<S, R, V> {
        let left = self.left.chunks_exact(self.stride);
        for (left, right) in left.zip(vectors::<S, W>(self.right, place.first)) {
            let left = &left[place.row..place.row + R];
            step(simd, |r| left[r], right, place.at, &mut sums);
        }
        sums
    }

    fn sum(&self, _part: usize, row: usize, column: usize, sum: f32) -> f32 {
        let left = self.left.chunks_exact(self.stride).enumerate();
        left.fold(sum, |sum, (k, left)| {
            sum + left[row] * entry(self.right, k, column)
        })
    }
}

/// The same with a right factor that lies row by row and is not packed: for few rows it is read no more often than packing would.
/// Its columns are a multiple of [`BLOCK`].
pub(super) struct Unpacked<'a> {
    pub(super) left: &'a [f32],
    pub(super) stride: usize,
    pub(super) right: &'a [f32],
    pub(super) columns: usize,
}

impl Factors for Unpacked<'_> {
    const PANELS_OUTSIDE: bool = true;

    fn columns(&self) -> usize {
        self.columns
    }

    #[inline(always)]
    fn sums<S: Simd, const R: usize, const V: usize, const W: usize>(
        &self,
        simd: S,
        place: Place,
        mut sums: Tile<S, R, V>,
    ) -> Tile<S, R, V> {
        let left = self.left.chunks_exact(self.stride);
        for (left, right) in left.zip(self.right.chunks_exact(self.columns)) {
            let left = &left[place.row..place.row + R];
            if let Some(right) = S::as_simd_f32s(&right[place.first..]).0.first_chunk::<W>() {
                step(simd, |r| left[r], right, place.at, &mut sums);
            }
        }
        sums
    }

    fn sum(&self, _part: usize, row: usize, column: usize, sum: f32) -> f32 {
        let left = self.left.chunks_exact(self.stride);
        let terms = left.zip(self.right.chunks_exact(self.columns));
        terms.fold(sum, |sum, (left, right)| sum + left[row] * right[column])
    }
}

/// The right factor of one of several products.
pub(crate) trait Summand: Copy {
    /// Its columns.
    fn columns(self) -> usize;

    /// The vectors of the panel that starts at column `first`, row by row.
    fn panel<'a, S: Simd, const W: usize>(
        self,
        first: usize,
    ) -> impl Iterator<Item = &'a [S::f32s; W]>
    where
        Self: 'a;

    /// One entry.
    fn entry(self, k: usize, column: usize) -> f32;
}

impl Summand for &Panels {
    fn columns(self) -> usize {
        self.columns
    }

    #[inline(always)]
    fn panel<'a, S: Simd, const W: usize>(
        self,
        first: usize,
    ) -> impl Iterator<Item = &'a [S::f32s; W]>
    where
        Self: 'a,
    {
        vectors::<S, W>(self, first).iter()
    }

    fn entry(self, k: usize, column: usize) -> f32 {
        entry(self, k, column)
    }
}

/// Rows one after the other, not packed, with a line to spare: what a panel holds beyond the last column is of the next row, and no
/// lane of it is ever written.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    /// With the line to spare.
    pub(crate) floats: &'a [f32],
    /// In a row.
    pub(crate) columns: usize,
}

impl Summand for Rows<'_> {
    fn columns(self) -> usize {
        self.columns
    }

    #[inline(always)]
    fn panel<'a, S: Simd, const W: usize>(
        self,
        first: usize,
    ) -> impl Iterator<Item = &'a [S::f32s; W]>
    where
        Self: 'a,
    {
        (first..).step_by(self.columns).map(move |at| {
            let row = S::as_simd_f32s(&self.floats[at..][..W * S::F32_LANES]).0;
            row.first_chunk().expect("a slice of as many floats")
        })
    }

    fn entry(self, k: usize, column: usize) -> f32 {
        self.floats[k * self.columns + column]
    }
}

/// Several products of one shape: one chain for each of them, and the ends of the chains added in their order.
pub(super) struct Joint<'a, B> {
    pub(super) blocks: &'a [(&'a Strips, B)],
}

impl<B: Summand> Factors for Joint<'_, B> {
    const PANELS_OUTSIDE: bool = true;

    fn columns(&self) -> usize {
        self.blocks[0].1.columns()
    }

    #[inline(always)]
    fn parts(&self) -> usize {
        self.blocks.len()
    }

    #[inline(always)]
    fn sums<S: Simd, const R: usize, const V: usize, const W: usize>(
        &self,
        simd: S,
        place: Place,
        mut sums: Tile<S, R, V>,
    ) -> Tile<S, R, V> {
        let rows = place.row % STRIP..place.row % STRIP + R;
        let (strips, right) = self.blocks[place.part];
        let right = right.panel::<S, W>(place.first);
        for (left, right) in strips.strip(place.row).iter().zip(right) {
            let left = &left[rows.clone()];
            step(simd, |r| left[r], right, place.at, &mut sums);
        }
        sums
    }

    fn sum(&self, part: usize, row: usize, column: usize, sum: f32) -> f32 {
        let (strips, right) = self.blocks[part];
        let left = strips.strip(row).iter().enumerate();
        left.fold(sum, |sum, (k, left)| {
            sum + left[row % STRIP] * right.entry(k, column)
        })
    }
}
