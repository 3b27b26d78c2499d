//! A product, tile by tile: sums that stay in registers while a chain runs.

use pulp::{Simd, WithSimd};

use super::factors::{Factors, Place, Tile};
use super::panels::{PANEL, firsts};
use super::strips::STRIP;

/// Some rows of a product, written to `out`, or added to what it holds if `ADD`.
pub(super) struct Product<'a, F, const ADD: bool> {
    pub(super) factors: F,
    /// Which rows; the first of them starts a strip.
    pub(super) rows: std::ops::Range<usize>,
    pub(super) out: &'a mut [f32],
}

impl<F: Factors, const ADD: bool> WithSimd for Product<'_, F, ADD> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let (panels, end) = (firsts(self.factors.columns()), self.rows.end);
        if F::PANELS_OUTSIDE {
            for (first, width) in panels {
                for part in 0..self.factors.parts() {
                    let mut row = self.rows.start;
                    while row < end {
                        row += self.rows_at(simd, part, row, first, width);
                    }
                }
            }
        } else {
            let panels: Vec<_> = panels.collect();
            let mut row = self.rows.start;
            while row < end {
                let mut done = 1;
                for &(first, width) in &panels {
                    for part in 0..self.factors.parts() {
                        done = self.rows_at(simd, part, row, first, width);
                    }
                }
                row += done;
            }
        }
    }
}

impl<F: Factors, const ADD: bool> Product<'_, F, ADD> {
    /// As many rows of one panel as fit in the registers; returns how many, which does not depend on the panel.
    #[inline(always)]
    fn rows_at<S: Simd>(
        &mut self,
        simd: S,
        part: usize,
        row: usize,
        first: usize,
        width: usize,
    ) -> usize {
        let place = Place {
            part,
            row,
            first,
            at: 0,
            turn: (row - self.rows.start) / STRIP,
            turns: self.rows.len().div_ceil(STRIP),
        };
        match self.rows.end - row {
            8.. if S::REGISTER_COUNT > 16 => self.columns_at::<S, 8>(simd, place, width),
            4.. => self.columns_at::<S, 4>(simd, place, width),
            2.. => self.columns_at::<S, 2>(simd, place, width),
            _ => self.columns_at::<S, 1>(simd, place, width),
        }
    }

    /// With sixteen lanes the whole panel is one tile, else each block of it is.
    #[inline(always)]
    fn columns_at<S: Simd, const R: usize>(
        &mut self,
        simd: S,
        place: Place,
        width: usize,
    ) -> usize {
        match (S::F32_LANES, width) {
            (16, 48) => self.tiles::<S, R, 3, 3>(simd, place),
            (16, 32) => self.tiles::<S, R, 2, 2>(simd, place),
            (16, _) => self.tiles::<S, R, 1, 1>(simd, place),
            (8, 48) => self.tiles::<S, R, 2, 6>(simd, place),
            (8, 32) => self.tiles::<S, R, 2, 4>(simd, place),
            (8, _) => self.tiles::<S, R, 2, 2>(simd, place),
            (4, 48) => self.tiles::<S, R, 4, 12>(simd, place),
            (4, 32) => self.tiles::<S, R, 4, 8>(simd, place),
            (4, _) => self.tiles::<S, R, 4, 4>(simd, place),
            _ => (0..R).for_each(|r| {
                let row = place.row + r;
                self.entries(Place { row, ..place }, width);
            }),
        }
        R
    }

    #[inline(always)]
    fn tiles<S: Simd, const R: usize, const V: usize, const W: usize>(
        &mut self,
        simd: S,
        place: Place,
    ) {
        for at in (0..W).step_by(V) {
            let (place, column) = (Place { at, ..place }, place.first + at * S::F32_LANES);
            let start = self.factors.start().tile(simd, column);
            let sums = self.factors.sums::<S, R, V, W>(simd, place, start);
            if self.adds(place) {
                self.store::<S, R, V, true>(simd, place.row, column, sums);
            } else {
                self.store::<S, R, V, false>(simd, place.row, column, sums);
            }
        }
    }

    /// Later parts are added to the first.
    #[inline(always)]
    fn adds(&self, place: Place) -> bool {
        ADD || place.part > 0
    }

    /// Writes a tile, or adds it. Its sums are named by constants everywhere, so that they stay in registers.
    #[expect(
        clippy::needless_range_loop,
        reason = "sums that are named by constants stay in registers"
    )]
    #[inline(always)]
    fn store<S: Simd, const R: usize, const V: usize, const ADDS: bool>(
        &mut self,
        simd: S,
        row: usize,
        column: usize,
        sums: Tile<S, R, V>,
    ) {
        let (columns, row) = (self.factors.columns(), row - self.rows.start);
        let width = V * S::F32_LANES;
        if column + width <= columns {
            for r in 0..R {
                let out = &mut self.out[(row + r) * columns + column..][..width];
                let out = &mut S::as_mut_simd_f32s(out).0[..V];
                for v in 0..V {
                    out[v] = match ADDS {
                        true => simd.add_f32s(out[v], sums[r][v]),
                        false => sums[r][v],
                    };
                }
            }
            return;
        }
        let rows = self.out[row * columns..].chunks_exact_mut(columns);
        for (r, out) in rows.take(R).enumerate() {
            let mut floats = [0.0; PANEL];
            let vectors = &mut S::as_mut_simd_f32s(&mut floats).0[..V];
            for q in 0..R {
                for v in 0..V {
                    if q == r {
                        vectors[v] = sums[q][v];
                    }
                }
            }
            let out = out[column.min(columns)..].iter_mut();
            for (out, &sum) in out.zip(&floats[..width]) {
                *out = if ADDS { *out + sum } else { sum };
            }
        }
    }

    /// A machine whose vectors are of no known width: one entry after the other.
    fn entries(&mut self, place: Place, width: usize) {
        let columns = self.factors.columns();
        for column in place.first..columns.min(place.first + width) {
            let at = (place.row - self.rows.start) * columns + column;
            let start = self.factors.start().at(column);
            let sum = self.factors.sum(place.part, place.row, column, start);
            self.out[at] = if self.adds(place) {
                self.out[at] + sum
            } else {
                sum
            };
        }
    }
}
