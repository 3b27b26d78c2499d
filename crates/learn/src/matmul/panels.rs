//! The right factor of a product, packed into panels of columns.

use whit_mechanism::crew;

use crate::aligned::Aligned;
use crate::tensor::{fetch, vectorised};

/// Columns of a full panel: three vectors of AVX-512, which with eight rows fill 24 of its 32 registers with sums.
pub(super) const PANEL: usize = 48;

/// Panels are padded to whole multiples of this, the widest vector there is.
pub(crate) const BLOCK: usize = 16;

/// Floats below which a matrix is packed by one thread.
const SHARED_MIN: usize = 1 << 14;

/// The right factor of a product: panels of up to [`PANEL`] columns, each row by row, the last one padded with zeros to a
/// multiple of [`BLOCK`]. It keeps its memory when it is packed anew.
#[derive(Default)]
pub(crate) struct Panels {
    pub(super) depth: usize,
    pub(super) columns: usize,
    floats: Aligned,
}

impl Panels {
    fn shape(&mut self, depth: usize, columns: usize) {
        (self.depth, self.columns) = (depth, columns);
        self.floats.sized(depth * columns.next_multiple_of(BLOCK));
    }

    /// Packs a matrix of `columns` columns that lies row by row.
    pub(crate) fn pack(&mut self, rows: &[f32], columns: usize) {
        self.shape(rows.len() / columns, columns);
        for (first, width, panel) in self.each_mut() {
            let kept = width.min(columns - first);
            vectorised(
                panel,
                #[inline(always)]
                move |panel: &mut [f32]| {
                    let rows = rows.chunks_exact(columns).map(|row| &row[first..]);
                    if kept == PANEL {
                        // A copy of a known length is a few moves and not a call.
                        let panel = panel.as_chunks_mut::<PANEL>().0.iter_mut();
                        for (to, from) in panel.zip(rows.filter_map(|row| row.first_chunk())) {
                            *to = *from;
                        }
                    } else {
                        for (to, from) in panel.chunks_exact_mut(width).zip(rows) {
                            to[..kept].copy_from_slice(&from[..kept]);
                            to[kept..].fill(0.0);
                        }
                    }
                },
            );
        }
    }

    /// Packs the transpose of a matrix that lies row by row, `depth` floats in a row, on some threads if it is large.
    pub(crate) fn pack_transposed(&mut self, rows: &[f32], depth: usize, threads: usize) {
        let columns = rows.len() / depth;
        self.shape(depth, columns);
        let pack = |(first, width, panel): (usize, usize, &mut [f32])| {
            let kept = width.min(columns - first);
            let (end, len) = ((first + kept) * depth, kept * depth);
            let (rows, later) = (&rows[first * depth..end], &rows[end..]);
            // Another thread may have changed them, and then they come from its cache.
            fetch(&later[..later.len().min(len)]);
            vectorised(
                panel,
                #[inline(always)]
                move |panel: &mut [f32]| {
                    // Squares of sixteen: as many lines as the first cache holds easily.
                    for (at, panel) in panel.chunks_mut(BLOCK * width).enumerate() {
                        for (square, rows) in rows.chunks(BLOCK * depth).enumerate() {
                            transpose(rows, depth, at * BLOCK, panel, width, square * BLOCK);
                        }
                    }
                },
            );
        };
        let shared = rows.len() >= SHARED_MIN;
        crew::each(if shared { threads } else { 1 }, self.each_mut(), pack);
    }

    /// The panel that starts at this column.
    #[inline(always)]
    pub(super) fn panel(&self, first: usize) -> &[f32] {
        let width = width(self.columns, first);
        &self.floats[first * self.depth..(first + width) * self.depth]
    }

    /// The panel after that, if there is one.
    #[inline(always)]
    pub(super) fn panel_after(&self, first: usize) -> &[f32] {
        match first + PANEL {
            next if next < self.columns => self.panel(next),
            _ => &[],
        }
    }

    fn each_mut(&mut self) -> impl Iterator<Item = (usize, usize, &mut [f32])> {
        let firsts = firsts(self.columns);
        let panels = self.floats.chunks_mut((PANEL * self.depth).max(1));
        panels
            .zip(firsts)
            .map(|(panel, (first, width))| (first, width, panel))
    }

    /// Calls `visit` with `(k, first column, floats)` for every row of every panel, without the padding.
    pub(super) fn each_row(&self, mut visit: impl FnMut(usize, usize, &[f32])) {
        for (first, width) in firsts(self.columns) {
            let kept = width.min(self.columns - first);
            for (k, row) in self.panel(first).chunks_exact(width).enumerate() {
                visit(k, first, &row[..kept]);
            }
        }
    }
}

/// The first columns of all panels, and their widths with the padding.
pub(super) fn firsts(columns: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..columns)
        .step_by(PANEL)
        .map(move |first| (first, width(columns, first)))
}

/// Writes the floats from `from` on of up to sixteen rows into as many columns, from `to` on, of a panel.
#[inline(always)]
fn transpose(rows: &[f32], depth: usize, from: usize, panel: &mut [f32], width: usize, to: usize) {
    let mut square = [[0.0; BLOCK]; BLOCK];
    let count = BLOCK.min(depth - from);
    for (floats, row) in square.iter_mut().zip(rows.chunks_exact(depth)) {
        match row[from..].first_chunk() {
            Some(row) => *floats = *row,
            None => floats[..count].copy_from_slice(&row[from..]),
        }
    }
    // Where rows are missing there is padding, and it is zero.
    let square = transposed(square);
    for (panel, columns) in panel.chunks_exact_mut(width).zip(&square) {
        if let Some(to) = panel[to..].first_chunk_mut() {
            *to = *columns;
        }
    }
}

/// The transpose of a square, in four rounds that interleave the first half of its rows with the second: if `r` and `c` are the four
/// digits of a row and a column, the place `rc` of a float moves by one digit in each round, and ends up as `cr`.
#[inline(always)]
fn transposed(mut square: [[f32; BLOCK]; BLOCK]) -> [[f32; BLOCK]; BLOCK] {
    for _ in 0..BLOCK.ilog2() {
        let mut next = [[0.0; BLOCK]; BLOCK];
        let (first, second) = square.as_flattened().split_at(BLOCK * BLOCK / 2);
        for (pair, (&a, &b)) in next
            .as_flattened_mut()
            .as_chunks_mut::<2>()
            .0
            .iter_mut()
            .zip(first.iter().zip(second))
        {
            *pair = [a, b];
        }
        square = next;
    }
    square
}

#[inline(always)]
fn width(columns: usize, first: usize) -> usize {
    PANEL.min((columns - first).next_multiple_of(BLOCK))
}
