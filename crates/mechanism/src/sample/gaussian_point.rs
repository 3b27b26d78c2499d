//! # A point at the normal curve
//! **Definition.** A point of a box whose `x` and `y` are digits drawn so far, as in [`gaussian_cells`](super::gaussian_cells). Does it lie under
//!   `f(x) = exp(-x²/2)`?
//! **Proof.** What is known of `x` and `y` are intervals. The answer is given if `y` is below `f` on all of them, or above it on all of
//!   them; digits are drawn until one of these holds. As `f` falls, corners and enclosures of `f` there are enough. Points on the
//!   curve, where it never ends, have no area. A quick look in 64 bits decides nearly always.
//! **Margin of the quick look.** In units of `2^-64`: `x < 16` is known to `2^-60`, so `x²/2` is off by less than `16·2^-60`, 256 units,
//!   and one more for rounding; `exp` does not stretch differences and its filter adds [`exp_filter::ERROR`]` = 16`: below 512.

use dashu_int::UBig;
use dashu_ratio::RBig;
use whit_core::Bits;

use super::enclosure::{self, Enclosure};
use super::exp_filter;

/// What the quick look may be off by, in units of `2^-64`; see above.
const MARGIN: u64 = 512;
const _: () = assert!(MARGIN > 257 + exp_filter::ERROR);

/// A box that the curve passes through, or a slice of one.
pub(super) struct Cell {
    /// `e`: a strip is `2^-e` wide.
    pub(super) strip_bits: u32,
    /// `M`: so many fine units are as high as one.
    pub(super) units: u64,
    /// Its left end, in widths of a strip.
    pub(super) start: u64,
    /// It is `2^-width_bits` wide.
    pub(super) width_bits: u32,
    /// It begins at this height, in fine units,
    pub(super) floor: u64,
    /// and is `height 2^-height_bits` fine units high.
    pub(super) height: u64,
    pub(super) height_bits: u64,
}

impl Cell {
    /// Draws a point in the box. Its `x`, if it lies under the curve.
    pub(super) fn keep<B: Bits>(&self, bits: &mut B) -> Option<Fraction> {
        let mut x = Fraction::draw(bits);
        let mut y = Fraction::draw(bits);
        if B::WIDTH == 64
            && let Some(kept) = self.quickly(x.head, y.head)
        {
            return kept.then_some(x);
        }
        self.exactly(&mut x, &mut y, bits).then_some(x)
    }

    /// Does the point lie under the curve? From the first 64 bits of both fractions, if they are enough.
    fn quickly(&self, x: u64, y: u64) -> Option<bool> {
        let (e, height_bits) = (self.strip_bits, u32::try_from(self.height_bits).ok()?);
        if self.start >> e >= 15 || height_bits >= 64 {
            return None;
        }
        // x 2^60, rounded down; below 2^64.
        let x = (self.start << (60 - e)) + (x >> (4 + self.width_bits));
        let gamma = (u128::from(x) * u128::from(x)) >> 57;
        let curve = u128::from(self.units) * u128::from(exp_filter::exp_neg(gamma));
        let slack = u128::from(self.units) * u128::from(MARGIN);
        // y M 2^64, rounded down, and what may be missing: V is known to one of its last bits, and the shift loses one unit.
        let low = (u128::from(self.floor) << 64)
            + ((u128::from(y) * u128::from(self.height)) >> height_bits);
        let high = low + (u128::from(self.height) >> height_bits) + 2;
        if high + slack <= curve {
            Some(true)
        } else if low >= curve + slack {
            Some(false)
        } else {
            None
        }
    }

    /// The same, drawing on until it is certain.
    #[cold]
    fn exactly<B: Bits>(&self, x: &mut Fraction, y: &mut Fraction, bits: &mut B) -> bool {
        // Ends with probability one, after one or two rounds for 64-bit words.
        loop {
            let ((x_low, x_high), x_bits) = self.x(x, B::WIDTH);
            let ((y_low, y_high), y_bits) = self.y(y, B::WIDTH);
            let digits = x_bits + 64;
            // exp(-x²/2), M times and in units of 2^-(digits + y_bits); y in the same.
            let curve = |x: UBig| {
                let half_square = RBig::from_parts((&x * &x).into(), UBig::ONE << (2 * x_bits + 1));
                let Enclosure { low, high } = enclosure::exp_neg(&half_square, digits);
                ((low * self.units) << y_bits, (high * self.units) << y_bits)
            };
            if y_high << digits <= curve(x_high).0 {
                return true;
            }
            if y_low << digits >= curve(x_low).1 {
                return false;
            }
            x.refine(bits);
            y.refine(bits);
        }
    }

    /// `low <= x < high` in units of `2^-bits`, for a fraction of the box's width.
    pub(super) fn x(&self, fraction: &Fraction, width: u32) -> (Span, usize) {
        let (value, bits) = fraction.digits(width);
        let start = UBig::from(self.start) << bits;
        // In units of a strip, of which a box is at least one wide.
        let wide = (self.strip_bits - self.width_bits) as usize;
        let low = start + (&value << wide);
        let high = &low + (UBig::ONE << wide);
        ((low, high), bits + self.strip_bits as usize)
    }

    /// `low <= y M <= high` in units of `2^-bits`, for a fraction of the box's height.
    fn y(&self, fraction: &Fraction, width: u32) -> (Span, usize) {
        let (value, digits) = fraction.digits(width);
        let bits = digits + self.height_bits as usize;
        let low = (UBig::from(self.floor) << bits) + value * self.height;
        let high = &low + UBig::from(self.height);
        ((low, high), bits)
    }
}

/// A lower and an upper end.
type Span = (UBig, UBig);

/// A uniform on `[0, 1)`: its first digits, and as many as were drawn since.
pub(super) struct Fraction {
    /// Its first bits, the very first one on top.
    pub(super) head: u64,
    /// So many of these are drawn.
    pub(super) known: u32,
    /// What was drawn later, a word each.
    more: Vec<u64>,
}

impl Fraction {
    pub(super) fn new(head: u64, known: u32) -> Self {
        Self {
            head,
            known,
            more: Vec::new(),
        }
    }

    fn draw<B: Bits>(bits: &mut B) -> Self {
        Self::new(bits.word() << (64 - B::WIDTH), B::WIDTH)
    }

    pub(super) fn refine<B: Bits>(&mut self, bits: &mut B) {
        self.more.push(bits.word());
    }

    /// `(v, bits)` with `v <= U 2^bits < v + 1`.
    fn digits(&self, width: u32) -> (UBig, usize) {
        let head = UBig::from(self.head) >> (64 - self.known as usize);
        let value = self.more.iter().fold(head, |value, &word| {
            (value << width as usize) + UBig::from(word)
        });
        (
            value,
            self.known as usize + self.more.len() * width as usize,
        )
    }
}

/// A number of so many bits, at most 64, from as few words as hold them. What is left of the last word is dropped.
pub(super) fn take<B: Bits>(needed: u32, bits: &mut B) -> u64 {
    let (mut value, mut have) = (0_u64, 0);
    while have < needed {
        let part = B::WIDTH.min(needed - have);
        value = (value << (part - 1) << 1) | (bits.word() >> (B::WIDTH - part));
        have += part;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::super::gaussian_cells::tests::{COARSE, curve_at};
    use super::super::gaussian_cells::{Cells, Cut};
    use super::*;
    use crate::doubt::seed;
    use dashu_int::IBig;
    use whit_audit::enumerate;
    use whit_testkit::SeededBits;

    /// At points around the curve, down to the last bit, the quick look says what the slow one says, or nothing.
    #[test]
    fn quick_look_is_never_wrong() {
        let cells = Cells::shared();
        let mut bits = SeededBits::new(seed(5200));
        let (mut decided, mut open) = (0, 0);
        for round in 0..4_000 {
            let tail = round % 4 == 3;
            let mut cell = if tail {
                let steps = bits.below(3);
                cells.tail_box(steps)
            } else {
                Cell {
                    height: 1,
                    ..cells.strip(bits.below(256) as u8)
                }
            };
            let mut x = Fraction::new(bits.word(), 64);
            // Where the curve is, in units of 2^-64 of a fine unit.
            let ((at, _), places) = cell.x(&x, 64);
            let curve = curve_at(cells, at, places) * RBig::from(UBig::ONE << 64);
            // Some within the margin, most beyond it: it is M 2^9, about 2^49.
            let off = ((i128::from(bits.word()) - (1 << 63)) << 4) >> bits.below(25);
            let aim = i128::try_from(curve.floor()).expect("it fits") + off;
            let mut y = if tail {
                let scaled =
                    (IBig::from(aim) << cell.height_bits as usize) / IBig::from(cell.height);
                Fraction::new(u64::try_from(scaled).unwrap_or(u64::MAX), 64)
            } else {
                cell.floor = u64::try_from(aim >> 64).unwrap_or(0);
                Fraction::new(aim as u64, 64)
            };
            match cell.quickly(x.head, y.head) {
                Some(kept) => {
                    decided += 1;
                    let exact = cell.exactly(&mut x, &mut y, &mut bits);
                    assert_eq!(kept, exact, "{} {off}", cell.start);
                }
                None => open += 1,
            }
        }
        assert!(decided > 1_500 && open > 100, "{decided} {open}");
    }

    /// A decision holds in the whole of what was known when it was taken, by the oracle's exponential.
    #[test]
    fn decisions_are_those_of_the_curve() {
        let mut bits = SeededBits::new(seed(5201));
        let slack = RBig::from_parts(1.into(), UBig::ONE << 400);
        let mut count = [0, 0];
        for cells in [Cells::new(COARSE), Cells::new(Cut::FINE)] {
            let others = (1 << cells.cut.table_bits) - cells.sure.len() as u64;
            for _ in 0..1_000 {
                let share = cells.sure.len() as u64 + bits.below(others);
                let cell = cells.other(share, &mut bits);
                let (mut x, mut y) = (Fraction::draw(&mut bits), Fraction::draw(&mut bits));
                let kept = cell.exactly(&mut x, &mut y, &mut bits);
                let ((left, right), x_bits) = cell.x(&x, 64);
                let ((low, high), y_bits) = cell.y(&y, 64);
                let y = |y: UBig| RBig::from_parts(y.into(), UBig::ONE << y_bits);
                let holds = if kept {
                    y(high) <= curve_at(&cells, right, x_bits) + &slack
                } else {
                    y(low) + &slack >= curve_at(&cells, left, x_bits)
                };
                assert!(holds, "a point of {} that is kept: {kept}", cell.start);
                count[usize::from(kept)] += 1;
            }
        }
        assert!(count.iter().all(|&count| count > 400), "{count:?}");
    }

    #[test]
    fn taken_bits_are_uniform() {
        fn check<const W: u32>(needed: u32) {
            let found = enumerate::<W, _>(12, |tape| take(needed, tape));
            assert_eq!(found.unresolved(), 0);
            assert_eq!(found.masses().len(), 1 << needed);
            assert!(
                found
                    .masses()
                    .values()
                    .all(|&mass| mass == found.masses()[&0])
            );
        }
        check::<1>(5);
        check::<3>(7);
        check::<4>(8);
        check::<12>(5);
    }
}
