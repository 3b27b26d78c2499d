//! # Cells of equal rank error
//! **Definition.** Values `x_1 <= … <= x_n` and points `a, a+1, …, b` are integers, all values in `[a, b]`, and `τ` in `[0, n]` is a
//!   rational target. The rank error of a point `r` is the distance of `τ` from the interval `[#{x < r}, #{x <= r}]`.
//! **Cells.** Let `x_0 = a`, `x_(n+1) = b` and `c = ceil(τ)`. The point `x_c` has error zero. The points below it are the disjoint
//!   union of `[x_i, x_(i+1))` for `i < c`, those above it of `(x_i, x_(i+1)]` for `i >= c`; all points of cell `i` have the error
//!   `|i - τ|`, and there are `x_(i+1) - x_i` of them.
//! **Proof.** At `r` in `[x_i, x_(i+1))`, `i < τ`, exactly `i` values are not above `r`, so the error is `τ - i`. At `r` in
//!   `(x_i, x_(i+1)]`, `i >= τ`, exactly `i` values are below `r`, so the error is `i - τ`. At `x_c`, if `c > 0`, at most `c - 1 < τ`
//!   values are below and at least `c >= τ` are not above. If `c = 0`, then `τ = 0`, and nothing is below `a`. Ties make cells
//!   without points, and need no care.
//! **Bounds.** The weight of cell `i` is `w_i = 2^64 (x_(i+1) - x_i) exp(-g|i - τ|)` for a rate `g`, and an integer `h_i` is kept with
//!   `w_i <= h_i < w_i (1 + 2^-51) + 1`, by [`Power`]. The point `x_c` has weight and bound `2^64`. Bounds lie one behind the other,
//!   and are summed up in blocks, so that one is found again without keeping all. Together they are below `2^127`.

use dashu_int::IBig;
use dashu_ratio::RBig;

use super::power::{Power, Powers};

/// What there is to choose from.
#[derive(Clone, Copy)]
pub(crate) struct Field<'a> {
    /// The values, in order, all of them in the range.
    pub(crate) sorted: &'a [i64],
    /// The first point.
    pub(crate) first: i64,
    /// The last point, at most `2^62` from the first.
    pub(crate) last: i64,
}

/// So many cells are summed up together.
const BLOCK: usize = 1 << 10;

/// A run of points with the same rank error.
pub(super) struct Cell {
    pub(super) first: i64,
    pub(super) points: u64,
    /// Its number, unless it is the point `x_c`.
    index: Option<usize>,
    /// Where its bound begins,
    pub(super) start: u128,
    /// and how long it is.
    pub(super) high: u128,
}

/// The bounds of one field, summed up.
pub(super) struct RankCells<'a> {
    powers: &'a Powers,
    unit_bits: u32,
    field: Field<'a>,
    target: &'a RBig,
    /// `c`, and the last integer that is not above the target.
    ceil: usize,
    floor: usize,
    /// `exp(-g(c - τ))` and `exp(-g(τ - floor))`, rounded up.
    fraction_above: Power,
    fraction_below: Power,
    /// The sums up to the end of each block, the point of error zero before all.
    sums: Vec<u128>,
}

impl<'a> RankCells<'a> {
    /// Sums up the bounds. What one point of error zero weighs is `2^unit_bits`: 64, and less in tests, where bounds should be
    /// bad.
    pub(super) fn new(
        powers: &'a Powers,
        unit_bits: u32,
        field: Field<'a>,
        target: &'a RBig,
    ) -> Self {
        let within = |integer: IBig| {
            usize::try_from(integer).expect("a target lies between zero and the number of values")
        };
        let (ceil, floor) = (within(target.ceil()), within(target.floor()));
        let fraction = |distance: RBig| Power::exp_neg(&(distance * powers.rate()));
        let (fraction_above, fraction_below) = if ceil == floor {
            (Power::ONE, Power::ONE)
        } else {
            (
                fraction(RBig::from(ceil) - target),
                fraction(target - RBig::from(floor)),
            )
        };
        let mut cells = Self {
            powers,
            unit_bits,
            field,
            target,
            ceil,
            floor,
            fraction_above,
            fraction_below,
            sums: Vec::new(),
        };
        let count = field.sorted.len() + 1;
        let mut sum = 1_u128 << unit_bits;
        let mut sums = Vec::with_capacity(count / BLOCK + 2);
        sums.push(sum);
        for block in (0..count).step_by(BLOCK) {
            cells.scan(block, (block + BLOCK).min(count), |_, high| {
                sum += high;
                false
            });
            sums.push(sum);
        }
        cells.sums = sums;
        cells
    }

    /// The `i`-th value, counted from one; the ends of the range before the first and behind the last.
    fn value(&self, i: usize) -> i64 {
        match i {
            0 => self.field.first,
            _ => self.field.sorted.get(i - 1).map_or(self.field.last, |x| *x),
        }
    }

    /// Visits `h_i` of the cells from `begin` to `end` that have points, until told to stop.
    #[inline]
    fn scan(&self, begin: usize, end: usize, mut visit: impl FnMut(usize, u128) -> bool) {
        let middle = self.ceil.clamp(begin, end);
        let mut before = self.value(begin);
        for (from, to, fraction) in [
            (begin, middle, self.fraction_below),
            (middle, end, self.fraction_above),
        ] {
            let mut ladder = self.powers.ladder(fraction);
            for i in from..to {
                let next = self.value(i + 1);
                let points = next.abs_diff(before);
                before = next;
                if points == 0 {
                    continue;
                }
                let rank = if i < self.ceil {
                    self.floor - i
                } else {
                    i - self.ceil
                };
                let power = ladder.at(rank as u64);
                if visit(i, power.weigh(points, self.unit_bits)) {
                    return;
                }
            }
        }
    }

    /// How long all bounds are together.
    pub(super) fn total(&self) -> u128 {
        self.sums.last().copied().unwrap_or(0)
    }

    /// The cell whose bound the unit falls on. It must be below the total.
    pub(super) fn locate(&self, unit: u128) -> Cell {
        let block = self.sums.partition_point(|&sum| sum <= unit);
        if block == 0 {
            return Cell {
                first: self.value(self.ceil),
                points: 1,
                index: None,
                start: 0,
                high: self.sums[0],
            };
        }
        let mut found = None;
        let mut start = self.sums[block - 1];
        let begin = (block - 1) * BLOCK;
        let end = (begin + BLOCK).min(self.field.sorted.len() + 1);
        self.scan(begin, end, |i, high| {
            if unit < start + high {
                found = Some((i, high));
                return true;
            }
            start += high;
            false
        });
        let (i, high) = found.expect("the sum of a block is the sum of its cells");
        let offset = i64::from(i >= self.ceil);
        Cell {
            first: self.value(i) + offset,
            points: self.value(i + 1).abs_diff(self.value(i)),
            index: Some(i),
            start,
            high,
        }
    }

    /// The rank error of a cell's points.
    pub(super) fn error(&self, cell: &Cell) -> RBig {
        match cell.index {
            None => RBig::ZERO,
            Some(i) if i < self.ceil => self.target - RBig::from(i),
            Some(i) => RBig::from(i) - self.target,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dashu_int::UBig;
    use whit_core::Bits;
    use whit_testkit::SeededBits;

    use super::super::weighted;

    /// Every cell of random fields: its points have the error it says, and its bound is above its weight and close to it.
    #[test]
    fn cells_have_their_errors_and_bounds() {
        let mut bits = SeededBits::new(514);
        for round in 0..400 {
            let (first, last) = (-20, 20 + round % 3);
            let count = bits.below(12) as usize;
            let mut sorted: Vec<i64> = (0..count).map(|_| bits.below(40) as i64 - 20).collect();
            sorted.sort_unstable();
            let target =
                RBig::from_parts(bits.below(7 * count as u64 + 1).into(), UBig::from(7_u32));
            let field = Field {
                sorted: &sorted,
                first,
                last,
            };
            let rate = RBig::from_parts((bits.word() >> 40).into(), UBig::ONE << 20);
            let powers = Powers::new(&rate);
            let cells = RankCells::new(&powers, 64, field, &target);
            let (mut unit, mut points) = (0, 0);
            while unit < cells.total() {
                let cell = cells.locate(unit);
                assert_eq!(cell.start, unit);
                for r in cell.first..cell.first + cell.points as i64 {
                    let below = RBig::from(sorted.iter().filter(|&&x| x < r).count());
                    let not_above = RBig::from(sorted.iter().filter(|&&x| x <= r).count());
                    let error = (below - &target).max(&target - not_above).max(RBig::ZERO);
                    assert_eq!(cells.error(&cell), error, "{sorted:?} {target} {r}");
                }
                let (low, high) = weighted::exp_neg(&(&rate * cells.error(&cell)), 400);
                let bound = UBig::from(cell.high) << (400 - 64);
                let unit_length = UBig::ONE << (400 - 64);
                assert!(bound >= low * cell.points);
                let high = high * cell.points;
                assert!(bound <= &high + (&high >> 51) + unit_length);
                unit += cell.high;
                points += cell.points;
            }
            assert_eq!((unit, points), (cells.total(), (last - first + 1) as u64));
        }
    }
}
