//! # Sums over paths
//! **Definition.** Values `x_1 <= … <= x_n` on the points `a, …, b`. Cell `i`, from `0` to `n`, holds the points at or above exactly `i`
//!   values: `w_i = x_(i+1) - x_i` of them, with `x_0 = a` and `x_(n+1) = b + 1`. A path is `i_1 <= … <= i_m`, and its weight
//!   `W = Π_(j=1)^(m+1) K_j(i_j - i_(j-1)) · Π_i w_i^(k_i)/k_i!`, where `i_0 = 0`, `i_(m+1) = n`, `k_i` counts how often `i` occurs, and
//!   `K_j(d) = exp(-g|d - τ_j|)` for a rate `g` and a target `τ_j` between zero and `n`.
//! **Programme.** `A_j(i)` is the sum over beginnings `i_1 … i_j` with `i_j = i` whose run of equal cells ends there, and `C_j(i)` the sum over those
//!   that have just arrived, without what `i_j` itself is worth: `C_1(i) = K_1(i)`, `C_j(i) = Σ_(l<i) A_(j-1)(l) K_j(i-l)` and
//!   `A_j(i) = Σ_(k>=1) C_(j-k+1)(i) w_i^k/k! · K_(j-k+2)(0) ⋯ K_j(0)`. The sum of all is `Z = Σ_i A_m(i) K_(m+1)(n-i)`.
//!   [GJK21, Sec. 4], with [`joint_kernel`](super::joint_kernel) in place of a Fourier transform.
//! **Runs.** Those longer than `k` are together worth at most `A_(j-k)(i) · w_i^k/k! · K_(j-k+1)(0) ⋯ K_j(0)`, because `(k+r)! >= k! r!`. Where this is
//!   below `2^-17` of the sum, they are left out: with many values nearly always from `k = 2` on. What a table lacks costs proposals, which are rejected a
//!   little more often, and nothing else.
//! **Error.** With `u = 2^-62`, and other entries taken as they were computed, `A_j(i)` is below its formula by at most `(5n + 6m + 2^45 + 16)u` of it:
//!   `5n + 10` for `C`, five for each step of a run, `m` for the sum, `2^45` for runs left out, and six. `Z` and `C`, summed up from [`arrivals`](JointSums::arrivals),
//!   lack at most `(3n + 3)u`, and one of these alone `(2n + 2)u`.

use dashu_ratio::RBig;

use super::joint_kernel::{Inflow, Kernel, Step};
use super::rank_cells::Field;
use super::scaled::Scaled;

/// Cells whose levels are computed together, so that they are still at hand.
const TILE: usize = 256;
/// What is so many bits below a sum may be left out of it, and
const GAP: i64 = 19;
/// what is so many below is less than one unit of a choice.
const GAP_OF_CHOICE: i64 = 72;

/// Some cells that follow each other, at all levels.
struct Tile {
    /// `e^(gi)` for each cell, and `e^(-g(i-1))`, one more.
    up: [Scaled; TILE],
    down: [Scaled; TILE + 1],
    widths: Vec<Scaled>,
    /// `C_j`.
    arrived: Vec<Vec<Scaled>>,
}

impl Tile {
    fn new(levels: usize) -> Self {
        let one = Scaled::from_integer(1);
        Self {
            up: [one; TILE],
            down: [one; TILE + 1],
            widths: Vec::with_capacity(TILE),
            arrived: vec![Vec::with_capacity(TILE); levels],
        }
    }

    /// From the cells before to those that begin here.
    fn turn(&mut self, begin: usize, step: Step) {
        if begin > 0 {
            self.up[0] = self.up[TILE - 1].times(step.grow);
            self.down[0] = self.down[TILE];
            self.down[1] = self.down[0].times(step.shrink);
        }
        for at in 1..TILE {
            self.up[at] = self.up[at - 1].times(step.grow);
            self.down[at + 1] = self.down[at].times(step.shrink);
        }
        self.widths.clear();
        self.arrived.iter_mut().for_each(Vec::clear);
    }
}

/// The programme's table for one set of values.
pub(super) struct JointSums<'a> {
    field: Field<'a>,
    /// `K_1, …, K_(m+1)`.
    kernels: Vec<Kernel>,
    step: Step,
    /// `1/k`.
    reciprocals: Vec<Scaled>,
    /// `A_j`, counted from zero.
    pub(super) left: Vec<Vec<Scaled>>,
}

impl<'a> JointSums<'a> {
    /// Fills the table: `gaps` are the shares of all values between the quantiles, one more than there are quantiles.
    pub(super) fn new(rate: &RBig, gaps: &[RBig], field: Field<'a>) -> Self {
        let count = field.sorted.len();
        let kernel = |gap: &RBig| Kernel::new(rate, gap * RBig::from(count));
        let levels = gaps.len() - 1;
        let row = |_| Vec::with_capacity(count + 1);
        let mut sums = Self {
            field,
            kernels: gaps.iter().map(kernel).collect(),
            step: Step::new(rate),
            reciprocals: (1..=levels as u64).map(Scaled::reciprocal).collect(),
            left: (0..levels).map(row).collect(),
        };
        sums.fill();
        sums
    }

    /// Where a cell begins.
    pub(super) fn begin(&self, cell: usize) -> i64 {
        let sorted = self.field.sorted;
        match cell {
            0 => self.field.first,
            _ => sorted.get(cell - 1).map_or(self.field.last + 1, |x| *x),
        }
    }

    /// How many points a cell has.
    pub(super) fn width(&self, cell: usize) -> u64 {
        self.begin(cell + 1).abs_diff(self.begin(cell))
    }

    fn fill(&mut self) {
        let (count, levels) = (self.field.sorted.len(), self.left.len());
        let mut inflows: Vec<Inflow> = self.kernels.iter().map(Inflow::new).collect();
        let mut first = self.kernels[0].walk(0, self.step);
        let mut tile = Tile::new(levels);
        for begin in (0..=count).step_by(TILE) {
            let cells = begin..(begin + TILE).min(count + 1);
            tile.turn(begin, self.step);
            let width = |cell| Scaled::from_integer(self.width(cell));
            tile.widths.extend(cells.clone().map(width));
            for (level, inflow) in inflows.iter_mut().enumerate().take(levels) {
                let mut arrived = std::mem::take(&mut tile.arrived[level]);
                if level == 0 {
                    arrived.extend(cells.clone().map(|_| first.next()));
                } else {
                    let from = &self.left[level - 1];
                    let kernel = &self.kernels[level];
                    let arrive = |cell| {
                        let powers = (tile.down[cell - begin], tile.up[cell - begin]);
                        inflow.next(kernel, self.step, from, powers, cell)
                    };
                    arrived.extend(cells.clone().map(arrive));
                }
                tile.arrived[level] = arrived;
                let mut left = std::mem::take(&mut self.left[level]);
                self.leave(level, begin, &tile, &mut left);
                self.left[level] = left;
            }
        }
    }

    /// Appends `A(i)` of a level for the cells of a tile. All levels before are known, and what has arrived at this one.
    fn leave(&self, level: usize, begin: usize, tile: &Tile, left: &mut Vec<Scaled>) {
        let arrived = tile.arrived[level].iter().zip(&tile.widths);
        if level == 0 {
            left.extend(arrived.map(|(arrived, width)| arrived.times(*width)));
            return;
        }
        let before = &self.left[level - 1][begin..];
        let still = self.kernels[level].at_zero.bits() + GAP;
        let cells = arrived.zip(before).enumerate();
        left.extend(cells.map(|(at, ((arrived, width), before))| {
            let sum = arrived.times(*width);
            // A cell without points has nothing here and nothing before.
            if before.bits() + width.bits() + still < sum.bits() {
                sum
            } else {
                self.add_runs(level, begin, at, tile, sum)
            }
        }));
    }

    /// Adds to `sum`, the term for a run of one, those for longer ones.
    fn add_runs(
        &self,
        level: usize,
        begin: usize,
        at: usize,
        tile: &Tile,
        mut sum: Scaled,
    ) -> Scaled {
        let width = tile.widths[at];
        let mut power = width;
        for start in (0..level).rev() {
            let still = self.kernels[start + 1].at_zero;
            let rest = self.left[start][begin + at].bits() + power.bits() + still.bits();
            if rest + GAP < sum.bits() {
                break;
            }
            power = self.longer(power, width, level - start + 1, start);
            sum = sum.plus(tile.arrived[start][at].times(power));
        }
        sum
    }

    /// From the weight of a run of `length - 1` to that of one more, which begins at level `start`.
    fn longer(&self, power: Scaled, width: Scaled, length: usize, start: usize) -> Scaled {
        let still = self.kernels[start + 1].at_zero;
        let each = self.reciprocals[length - 1];
        power.times(width).times(still).times(each)
    }

    /// The terms of `Z`, or of `C(i)` of a level behind the first: for the cells from the last before `cell` down.
    pub(super) fn arrivals(&self, level: usize, cell: usize) -> impl Iterator<Item = Scaled> {
        // Behind the last value a point may come right before the end.
        let nearest = usize::from(level < self.left.len());
        let mut walk = self.kernels[level].walk(nearest, self.step);
        let before = self.left[level - 1][..cell].iter().rev();
        before.map(move |left| walk.next().times(*left))
    }

    /// The terms of `A(i)`, for each length of the run, from one on. Those that are far too small to matter are replaced by
    /// something as small; but one is zero only if it should be.
    pub(super) fn runs(&self, level: usize, cell: usize) -> Vec<Scaled> {
        let total = self.left[level][cell];
        let width = Scaled::from_integer(self.width(cell));
        let mut power = width;
        let powers: Vec<Scaled> = (0..=level)
            .rev()
            .map(|start| {
                if start < level {
                    power = self.longer(power, width, level - start + 1, start);
                }
                power
            })
            .collect();
        // A run that begins at `start` is worth power · C, and C is at most A/width of that level.
        let matters = |(back, power): (usize, &Scaled)| {
            let bound = self.left[level - back][cell].bits() + power.bits() - width.bits();
            bound + GAP_OF_CHOICE >= total.bits()
        };
        let only_one = !powers.iter().enumerate().skip(1).any(matters);
        let term = |(back, power): (usize, &Scaled)| {
            let start = level - back;
            if start > 0 && self.begin(cell) == self.field.first {
                // There is no point before this cell, so the first level is in it.
                return Scaled::ZERO;
            }
            if back == 0 && only_one {
                return total;
            }
            if back > 0 && !matters((back, power)) {
                return total.far_below();
            }
            let arrived = match start {
                0 => self.first(cell),
                _ => sum(self.arrivals(start, cell)),
            };
            arrived.times(*power)
        };
        powers.iter().enumerate().map(term).collect()
    }

    /// `C_1(i) = K_1(i)`.
    fn first(&self, cell: usize) -> Scaled {
        let mut walk = self.kernels[0].walk(0, self.step);
        for _ in 0..cell {
            walk.next();
        }
        walk.next()
    }

    /// `Σ|d - τ|` of a path.
    pub(super) fn distance(&self, path: &[usize]) -> RBig {
        let count = self.field.sorted.len();
        let mut before = 0;
        let ends = path.iter().copied().chain([count]);
        let off = |(cell, kernel): (usize, &Kernel)| {
            let off = RBig::from(cell - before) - &kernel.target;
            before = cell;
            off.clone().max(-off)
        };
        let parts = ends.zip(&self.kernels).map(off);
        parts.fold(RBig::ZERO, |sum, off| sum + off)
    }
}

/// The sum of all.
pub(super) fn sum(terms: impl IntoIterator<Item = Scaled>) -> Scaled {
    terms.into_iter().fold(Scaled::ZERO, Scaled::plus)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dashu_int::UBig;
    use whit_testkit::SeededBits;

    /// The table as the formulas say, with other entries as they are in `sums`: term by term, without windows or walks. First without
    /// the longest runs, those that are together below `2^-17` of the sum; then with them.
    fn entry(sums: &JointSums, kernels: &[Vec<Scaled>], level: usize, cell: usize) -> [RBig; 2] {
        let arrived = |level: usize| match level {
            0 => kernels[0][cell],
            _ => sum((0..cell).map(|l| sums.left[level - 1][l].times(kernels[level][cell - l]))),
        };
        let width = RBig::from(sums.width(cell));
        let mut factor = RBig::ONE;
        let mut upto = vec![RBig::ZERO];
        for (length, start) in (1..).zip((0..=level).rev()) {
            factor = factor * &width / RBig::from(length);
            upto.push(arrived(start).exact() * &factor + &upto[length - 1]);
            factor *= kernels[start][0].exact();
        }
        let total = upto.last().cloned().unwrap_or(RBig::ZERO);
        let enough = &total * (RBig::ONE - RBig::from_parts(1.into(), UBig::ONE << 17));
        let kept = upto.into_iter().find(|sum| *sum >= enough);
        [kept.unwrap_or(RBig::ZERO), total]
    }

    /// Returns how many entries there were that could lack no run of any weight, and how many in all.
    fn check(rate: &RBig, gaps: &[RBig], sorted: &[i64], last: i64) -> [u32; 2] {
        let field = Field {
            sorted,
            first: 0,
            last,
        };
        let sums = JointSums::new(rate, gaps, field);
        let (count, levels) = (sorted.len(), gaps.len() - 1);
        let kernel = |gap: &RBig| {
            let value = |d: usize| {
                let off = RBig::from(d) - gap * RBig::from(count);
                Scaled::exp_neg(&(rate * off.clone().max(-off)))
            };
            (0..=count).map(value).collect()
        };
        let kernels: Vec<Vec<Scaled>> = gaps.iter().map(kernel).collect();
        let unit = RBig::from_parts(1.into(), UBig::ONE << 62);
        let bound = RBig::from(5 * count + 6 * levels + 16) * &unit;
        // What is summed up here is cut as well.
        let slack = RBig::from(count + 4 * levels + 4) * &unit;
        let [mut sharp, mut all] = [0, 0];
        for level in 0..levels {
            for cell in (0..=count).filter(|cell| count < 100 || cell % 7 == level) {
                let found = sums.left[level][cell].exact();
                let [kept, total] = entry(&sums, &kernels, level, cell);
                assert!(found >= &kept * (RBig::ONE - &bound), "{level} {cell}");
                assert!(found <= &total * (RBig::ONE + &slack), "{level} {cell}");
                sharp += u32::from(&kept * (RBig::ONE + &unit) >= total);
                all += 1;
            }
        }
        [sharp, all]
    }

    /// Several tiles, windows of all lengths, ties, ends; and rates from none to very steep.
    #[test]
    fn entries_are_those_of_the_formulas() {
        let mut bits = SeededBits::new(571);
        let share = |n: u64, d: u64| RBig::from_parts(n.into(), d.into());
        let even = vec![share(1, 5); 5];
        let uneven = vec![share(0, 1), share(1, 300), share(2, 3), share(99, 300)];
        let [mut sharp, mut all] = [0, 0];
        for count in [0, 1, 2, 3, 10, 30, 700] {
            for (numerator, denominator) in [(0, 1), (1, 1000), (1, 4), (30, 1)] {
                for points in [5, 1 << 40] {
                    let mut sorted: Vec<i64> =
                        (0..count).map(|_| bits.below(points) as i64).collect();
                    sorted.sort_unstable();
                    for gaps in [&even, &uneven] {
                        let rate = share(numerator, denominator);
                        let [more, of] = check(&rate, gaps, &sorted, points as i64 - 1);
                        (sharp, all) = (sharp + more, all + of);
                    }
                }
            }
        }
        assert!(2 * sharp > all, "{sharp} of {all}");
    }
}
