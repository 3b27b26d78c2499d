//! # Cells over the normal curve
//! **Definition.** Boxes in the quarter plane that do not overlap and together cover what lies under `f(x) = exp(-x²/2)`, `x >= 0`. A
//!   point is drawn uniformly from all boxes and kept if it lies under the curve.
//! **Boxes.** Heights are counted in *fine units* of `1/M`. The strip `[ih, (i+1)h)`, `h = 2^-e`, `i < n`, has `ℓ_i` boxes of `2^r` fine
//!   units on top of each other, which are *sure*: they lie under the curve; and above them one *doubtful* box up to `H_i`
//!   fine units, where the strip is above the curve. Beyond `R = nh` come *tail* boxes `j = 0, 1, …`: `[R+j, R+j+1)`, of height
//!   `T h 2^-(j+1)` fine units.
//! **Guarantee.** The `x` of a point that is kept has exactly the density `f(x)/√(π/2)` on the half-line.
//! **Proof.** *Sure*: `ℓ_i 2^r <= M f((i+1)h)` and `f` falls. *Covered*: `H_i >= M f(ih)` in the strips. In the tail,
//!   `f(R+j+1)/f(R+j) = exp(-R-j-1/2) <= exp(-3/2) < 1/2`, as `R >= 1`; so `T h 2^-(j+1) >= M f(R+j)` follows for all `j` from the
//!   case `j = 0`, which is asserted. *Uniform*: all boxes of a strip have the same width, so the area of a sure one is `2^r`, that
//!   of a doubtful one `H_i - ℓ_i 2^r`, and that of tail box `j` is `T 2^-(j+1)`, in units of `h/M`. The tail takes what is left
//!   over, so that the sum is exactly `2^(k+r)`. The first `k` bits drawn choose one of `2^k` equal shares: the first `S = Σ ℓ_i` are
//!   the sure boxes, and in the others `r` bits more choose a unit of the doubtful boxes or of the tail; in the tail, coins choose
//!   `j` with probability `2^-(j+1)`. Then `x` is uniform in the box's width and `y` in its height (a doubtful box's unit is one
//!   slice of it). A uniform point that is kept is uniform under the curve, and its `x` has a density proportional to `f`.
//!   Rounded bounds of `f` only move area between sure, doubtful and tail boxes; they never move the law.
//! Whether a point lies under the curve is decided in [`gaussian_point`](super::gaussian_point).

use std::sync::OnceLock;

use dashu_int::{IBig, UBig};
use dashu_ratio::RBig;
use whit_core::Bits;

use super::enclosure::{self, Enclosure};
use super::gaussian_point::{Cell, take};
use super::real::sign;

/// Digits of the curve from which the table is made: far more than a fine unit needs, as a wider enclosure costs time, not truth.
const CURVE_BITS: usize = 96;

/// How the area is cut up.
#[derive(Clone, Copy)]
pub(super) struct Cut {
    /// `e`: a strip is `2^-e` wide.
    pub(super) width_bits: u32,
    /// `n`: how many strips there are; from `2^e` to 256, so that a byte names one, and at most `2^(k-3)`.
    pub(super) strips: u64,
    /// `k`: the table has `2^k` shares.
    pub(super) table_bits: u32,
    /// `r`: a share has `2^r` fine units.
    pub(super) fine_bits: u32,
}

impl Cut {
    /// Sixteen kilobytes of table, which stay in the nearest cache. Two draws in a hundred meet a doubtful box, six in ten thousand the
    /// tail.
    pub(super) const FINE: Self = Self {
        width_bits: 6,
        strips: 256,
        table_bits: 14,
        fine_bits: 32,
    };
}

/// The boxes of one cut.
#[derive(Clone)]
pub(super) struct Cells {
    pub(super) cut: Cut,
    /// The strip of each sure share.
    pub(super) sure: Vec<u8>,
    /// `M`.
    units: u64,
    /// `ℓ_i 2^r`, where the doubtful box of each strip begins.
    floors: Vec<u64>,
    /// How many fine units the doubtful boxes have up to the end of each strip.
    sums: Vec<u64>,
    /// `T`.
    tail: u64,
}

/// Encloses `exp(-x²/2) 2^CURVE_BITS` for `x = i h`.
fn curve(i: u64, width_bits: u32) -> Enclosure {
    let square = RBig::from_parts(
        IBig::from(i * i),
        UBig::ONE << (2 * width_bits as usize + 1),
    );
    enclosure::exp_neg(&square, CURVE_BITS)
}

impl Cells {
    /// The table that every sampler shares.
    pub(super) fn shared() -> &'static Self {
        static CELLS: OnceLock<Cells> = OnceLock::new();
        CELLS.get_or_init(|| Self::new(Cut::FINE))
    }

    pub(super) fn new(cut: Cut) -> Self {
        let strips = cut.strips;
        let e = cut.width_bits;
        assert!(
            strips <= 256 && strips >> e >= 1,
            "a byte names a strip, and the tail begins at one or beyond"
        );
        assert!(
            (4..=20).contains(&cut.table_bits) && strips << 3 <= 1 << cut.table_bits,
            "the fixed point of the samplers has room for strips"
        );
        let edges: Vec<Enclosure> = (0..=strips).map(|i| curve(i, e)).collect();
        let last = &edges[strips as usize].high;
        // Σ ceil(M f(ih)) + ceil(2 M f(R)/h) is at most M times this sum, and one more for each ceiling.
        let heights = edges[..strips as usize]
            .iter()
            .fold(last << (e as usize + 1), |sum, edge| sum + &edge.high);
        let all = 1_u64 << (cut.table_bits + cut.fine_bits);
        let units = (UBig::from(all - strips - 1) << CURVE_BITS) / heights;
        let ceil =
            |value: UBig| narrow((value + (UBig::ONE << CURVE_BITS) - UBig::ONE) >> CURVE_BITS);
        let (mut sure, mut floors, mut sums) = (Vec::new(), Vec::new(), Vec::new());
        let mut sum = 0;
        for (strip, edge) in edges.windows(2).enumerate() {
            let shares = narrow((&units * &edge[1].low) >> (CURVE_BITS + cut.fine_bits as usize));
            let floor = shares << cut.fine_bits;
            sure.extend((0..shares).map(|_| strip as u8));
            floors.push(floor);
            sum += ceil(&units * &edge[0].high) - floor;
            sums.push(sum);
        }
        let tail = all - ((sure.len() as u64) << cut.fine_bits) - sum;
        assert!(
            (UBig::from(tail) << CURVE_BITS) >= (&units * last) << (e as usize + 1),
            "the first tail box covers the curve"
        );
        Self {
            cut,
            sure,
            units: narrow(units),
            floors,
            sums,
            tail,
        }
    }

    /// Chooses a box that is not sure, from the number of a share that is none of the sure ones.
    pub(super) fn other<B: Bits>(&self, share: u64, bits: &mut B) -> Cell {
        let fine = self.cut.fine_bits;
        let unit = ((share - self.sure.len() as u64) << fine) + take(fine, bits);
        // The sums grow, so the strips that end at or before the unit come first.
        let strip = self.sums.partition_point(|&sum| sum <= unit);
        if strip < self.sums.len() {
            let before = strip.checked_sub(1).map_or(0, |before| self.sums[before]);
            return Cell {
                start: strip as u64,
                floor: self.floors[strip] + (unit - before),
                height: 1,
                ..self.cell()
            };
        }
        let mut steps = 0;
        // Ends at once with probability one half; 64 steps have no chance that matters, but are no limit either.
        while sign(bits) {
            steps += 1;
        }
        self.tail_box(steps)
    }

    /// Tail box `j`.
    pub(super) fn tail_box(&self, j: u64) -> Cell {
        Cell {
            start: self.cut.strips + (j << self.cut.width_bits),
            width_bits: 0,
            height: self.tail,
            height_bits: j + 1 + u64::from(self.cut.width_bits),
            ..self.cell()
        }
    }

    /// The sure boxes of a strip, as far as `x` is concerned.
    pub(super) fn strip(&self, strip: u8) -> Cell {
        Cell {
            start: u64::from(strip),
            ..self.cell()
        }
    }

    /// A box of this cut: no higher than zero, and as wide as a strip.
    fn cell(&self) -> Cell {
        Cell {
            strip_bits: self.cut.width_bits,
            units: self.units,
            start: 0,
            width_bits: self.cut.width_bits,
            floor: 0,
            height: 0,
            height_bits: 0,
        }
    }
}

fn narrow(value: UBig) -> u64 {
    u64::try_from(value).expect("2^(k+r) fits a word, and so do its parts")
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::oracle;
    use super::*;
    use whit_audit::enumerate;

    /// Small enough that every outcome of its coins can be walked through. Bounds are bad here, and the tail is near.
    pub(crate) const COARSE: Cut = Cut {
        width_bits: 1,
        strips: 4,
        table_bits: 5,
        fine_bits: 2,
    };
    pub(crate) const MIDDLE: Cut = Cut {
        width_bits: 3,
        strips: 24,
        table_bits: 8,
        fine_bits: 1,
    };

    /// `M f(x 2^-bits)`, by another series than the table is made with.
    pub(crate) fn curve_at(cells: &Cells, x: UBig, bits: usize) -> RBig {
        let x = RBig::from_parts(x.into(), UBig::ONE << bits);
        RBig::from(cells.units) * oracle::exp_neg(&(&x * &x / RBig::from(2)))
    }

    /// `M f(i h)`.
    fn height(cells: &Cells, i: u64) -> RBig {
        curve_at(cells, UBig::from(i), cells.cut.width_bits as usize)
    }

    #[test]
    fn boxes_cover_the_curve_and_add_up() {
        for cut in [COARSE, MIDDLE, Cut::FINE] {
            let cells = Cells::new(cut);
            let slack = RBig::from_parts(1.into(), UBig::ONE << 400);
            let mut before = 0;
            for i in 0..cut.strips {
                let at = i as usize;
                let shares = cells.sure.iter().filter(|&&s| u64::from(s) == i).count() as u64;
                assert_eq!(cells.floors[at], shares << cut.fine_bits);
                let top = cells.floors[at] + cells.sums[at] - before;
                before = cells.sums[at];
                assert!(RBig::from(cells.floors[at]) <= height(&cells, i + 1) + &slack);
                assert!(RBig::from(top) + &slack >= height(&cells, i));
            }
            for j in 0..20 {
                let width = UBig::ONE << (cut.width_bits as usize + j + 1);
                let top = RBig::from_parts(cells.tail.into(), width);
                let left = cut.strips + ((j as u64) << cut.width_bits);
                assert!(top + &slack >= height(&cells, left), "tail box {j}");
            }
            let sure = (cells.sure.len() as u64) << cut.fine_bits;
            assert_eq!(
                sure + before + cells.tail,
                1 << (cut.table_bits + cut.fine_bits)
            );
        }
    }

    /// Speed rests on these shares, and nothing else does.
    #[test]
    fn few_shares_of_the_fine_table_are_not_sure() {
        let cells = Cells::shared();
        let all = 1_u64 << (cells.cut.table_bits + cells.cut.fine_bits);
        assert!(cells.sure.len() * 1000 > 978 << cells.cut.table_bits);
        assert!(cells.tail < all / 1000);
    }

    /// Every choice of a box: slices of doubtful boxes come as often as each other, and tail boxes as often as their area says.
    #[test]
    fn boxes_are_chosen_by_area() {
        for cut in [COARSE, MIDDLE] {
            let cells = Cells::new(cut);
            let (k, r) = (cut.table_bits, cut.fine_bits);
            let found = enumerate::<1, _>(16, |tape| {
                let share = take(k, tape);
                let cell = (share as usize >= cells.sure.len()).then(|| cells.other(share, tape));
                cell.map(|cell| (cell.start, cell.floor, cell.height_bits))
            });
            let one = 1_u64 << (found.bits() - k - r);
            assert_eq!(
                found.mass(&None),
                (cells.sure.len() as u64) << (found.bits() - k)
            );
            let mut slices = 0;
            for (choice, &mass) in found.masses() {
                match choice {
                    Some((start, floor, 0)) => {
                        let at = *start as usize;
                        let before = at.checked_sub(1).map_or(0, |before| cells.sums[before]);
                        let top = cells.floors[at] + cells.sums[at] - before;
                        assert!((cells.floors[at]..top).contains(floor));
                        assert_eq!(mass, one, "a slice of strip {start}");
                        slices += 1;
                    }
                    Some((start, _, bits)) => {
                        let j = (start - cut.strips) >> cut.width_bits;
                        assert_eq!(*bits, j + 1 + u64::from(cut.width_bits));
                        assert_eq!(mass << (j + 1), cells.tail * one, "tail box {j}");
                    }
                    None => {}
                }
            }
            assert_eq!(slices, cells.sums[cells.sums.len() - 1]);
        }
    }
}
