//! # A cost that is smooth by construction
//! To publish the cost of a run, noise must hide how one teacher moves it. How far that is differs by orders of magnitude between votes, so the
//! noise follows the votes, by a *smooth* bound of the local sensitivity [NRS07, Def. 2.1]: `S(D) >= |f(D) - f(D')|` and `S(D) <= e^β S(D')` for all
//! neighbours. Privacy rests on both, so here they are theorems about the program, and not about formulas that it approximates.
//!
//! **Margins.** Let `q` be GNMax's bound from `bound.rs` and `t(D) = (σ/√2) S^-1(q/(m-1))`: for two classes half the winner's lead, in votes. By the
//! proposition of `local.rs` one teacher moves `t` by at most 1; capping `q` keeps that. It lies between 0 and `n/2`.
//!
//! **Cost.** `t` is cut to a cell `k = ⌊Kt⌋`, `K` cells to a vote, and the cost is `G[k]`, a table that depends on public numbers alone: Theorem 6 at the lower end of the cell,
//! where `q` is largest, made to fall with `k` by running maxima, in whole units of [`UNIT`], rounded up. Whatever the table holds, `G` is a function of `k`. Of neighbours the
//! cells differ by at most `W = K + 1`: `⌊x⌋ - ⌊y⌋ <= ⌈x-y⌉`, and the float `t` errs by far less than a half.
//!
//! **Tests** likewise: `v = ⌊max n⌋` moves by at most 1 (or not at all), and their cost is a table over `v`.
//!
//! **Bounds.** One teacher's change moves the cost of one query by at most `L[k] = max(G[k-W] - G[k], G[k] - G[k+W])`. Let `L_d(D)` be the sum over queries of the largest
//! `L` within `dW` cells of `k` (`d` of `v`), and `S(D) = max_d w_d L_d(D)` with `w_0 = 1`, `w_(d+1) >= e^-β w_d`, over `0 <= d <= n`.
//! *Proof.* `|f(D) - f(D')| <= L_0(D) <= S(D)`. For neighbours, cells within `dW` of `k` are within `(d+1)W` of `k'`, so `L_d(D) <= L_(d+1)(D')` and
//! `w_d L_d(D) <= e^β w_(d+1) L_(d+1)(D') <= e^β S(D')` for `d < n`. For `d = n` the cells are all there are, since `nW` is more than `Kn/2`: `L_n(D) = L_n(D')`. ∎
//! The two roundings of `w_d L_d` are in [`SMOOTHNESS_SLACK`], which is added to `β` where the release is priced.
//!
//! No monotonicity of Theorem 6 is needed (conditions C5 and C6 of the paper): where it failed, running maxima would only make the estimate larger.
//!
//! **Given the transcript.** Which queries were tested and answered is part of what was released before; neighbours are compared at the same transcript, as
//! in any adaptive composition. So costs are those of the *realised* answers. An expected cost would have the probabilities of answering in it,
//! which move with the votes, too.

use std::collections::BTreeMap;
use std::f64::consts::SQRT_2;

use whit_core::round;

use super::bound::{self, Gaussian, ln_least, ln_q_gaussian, ln_survival, survival_quantile};
use super::tally::Cost;

/// Costs are whole multiples of this: `2^-40`.
pub const UNIT: f64 = 1.0 / 1_099_511_627_776.0;
/// Added to `β` for the roundings of `S`: `S(D) <= e^(β + slack) S(D')`, as each product is within `2^-52` of what it stands for.
pub const SMOOTHNESS_SLACK: f64 = 1e-14;
/// Cells to a vote, for up to [`TEACHERS_FINE`] teachers; the sensitivity is overstated by one part in as many.
const CELLS: usize = 128;
const CELLS_COARSE: usize = 16;
const TEACHERS_FINE: usize = 20_000;

/// What is public about the votes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// How many teachers vote.
    pub teachers: usize,
    /// Among how many classes, at least two.
    pub classes: usize,
}

/// Tables for one aggregator at one order. Made of public numbers.
#[derive(Clone, Debug)]
pub struct Smooth {
    shape: Shape,
    sigma: f64,
    cells: usize,
    maximum: Table,
    test: Option<Table>,
}

/// A cost by place, how far a neighbour's is away, and the largest of that over a step.
#[derive(Clone, Debug)]
struct Table {
    /// How many places a neighbour can be away.
    step: usize,
    cost: Vec<u64>,
    local: Vec<u64>,
    /// `stretch[i]` is the largest `local` of the places `i - step` to `i - 1`, where places before the first count as nothing.
    stretch: Vec<u64>,
}

/// A cost and its smooth sensitivity, in units. Both are secret.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sum {
    /// The cost, in [`UNIT`]s.
    pub cost: u128,
    /// The smooth bound, in [`UNIT`]s.
    pub sensitivity: f64,
}

impl Table {
    fn new(cost: Vec<u64>, step: usize) -> Self {
        let last = cost.len().saturating_sub(1);
        let local: Vec<u64> = (0..cost.len())
            .map(|k| {
                let low = cost[k.saturating_sub(step)];
                let high = cost[(k + step).min(last)];
                low.abs_diff(cost[k]).max(high.abs_diff(cost[k]))
            })
            .collect();
        let stretch = stretches(&local, step);
        Self {
            step,
            cost,
            local,
            stretch,
        }
    }

    /// The largest `local` of `[start, start + step)`, of which only a part need exist.
    fn largest_from(&self, start: isize) -> u64 {
        let end = start.saturating_add(self.step as isize);
        usize::try_from(end)
            .ok()
            .and_then(|end| self.stretch.get(end))
            .copied()
            .unwrap_or(0)
    }

    /// Adds `times` the bounds at the distances `0 … sums.len() - 1` of place `k`.
    fn add_bounds(&self, k: usize, times: u64, sums: &mut [u128]) {
        let (k, step) = (k as isize, self.step as isize);
        let mut largest = self.local[k as usize];
        let (mut left, mut right) = (k, k + 1);
        for sum in sums {
            *sum += u128::from(largest) * u128::from(times);
            left -= step;
            largest = largest
                .max(self.largest_from(left))
                .max(self.largest_from(right));
            right += step;
        }
    }
}

/// By two running maxima, forwards and backwards within blocks of a step: every stretch is the end of one block and the beginning of the next.
fn stretches(local: &[u64], step: usize) -> Vec<u64> {
    let padded = local.len() + 2 * step;
    let at = |i: usize| {
        i.checked_sub(step)
            .and_then(|i| local.get(i))
            .copied()
            .unwrap_or(0)
    };
    let mut forwards = vec![0; padded];
    let mut backwards = vec![0; padded];
    for i in 0..padded {
        let before = if i % step == 0 { 0 } else { forwards[i - 1] };
        forwards[i] = at(i).max(before);
    }
    for i in (0..padded).rev() {
        let after = if (i + 1) % step == 0 || i + 1 == padded {
            0
        } else {
            backwards[i + 1]
        };
        backwards[i] = at(i).max(after);
    }
    // The stretch that ends before place `end` of `local` begins at padded place `end`.
    (0..=local.len() + step)
        .map(|end| backwards[end].max(forwards[(end + step - 1).min(padded - 1)]))
        .collect()
}

/// Whole units, rounded up, and no more than a divergence of 1024, beyond which nothing is private: what is no number or too large is still a function of its place.
fn units(cost: f64) -> u64 {
    ((cost / UNIT).ceil() as u64).min(1 << 50)
}

impl Smooth {
    /// Tables for noise and threshold at an order.
    pub fn new(cost: Cost, shape: Shape, order: f64) -> Self {
        let Shape { teachers, classes } = shape;
        let cells = if teachers <= TEACHERS_FINE {
            CELLS
        } else {
            CELLS_COARSE
        };
        let ln_others = libm::log((classes.max(2) - 1) as f64);
        let margin = |k: usize| {
            let t = k as f64 / cells as f64;
            let ln_q = ln_others + ln_survival(SQRT_2 * t / cost.sigma);
            units(Gaussian::new(ln_q.min(ln_least(classes)), cost.sigma).at(order))
        };
        let mut margins: Vec<u64> = (0..=teachers * cells / 2).map(margin).collect();
        for k in (1..margins.len()).rev() {
            margins[k - 1] = margins[k - 1].max(margins[k]);
        }
        let test = cost.test.map(|test| {
            let at = |v: usize| {
                let ln = ln_survival((test.threshold - v as f64) / test.sigma);
                units(Gaussian::threshold(ln, test.sigma).at(order))
            };
            Table::new((0..=teachers).map(at).collect(), 1)
        });
        Self {
            shape,
            sigma: cost.sigma,
            cells,
            maximum: Table::new(margins, cells + 1),
            test,
        }
    }

    /// The cell of the winner's margin.
    fn margin(&self, counts: &[f64]) -> usize {
        let ln_others = libm::log((self.shape.classes.max(2) - 1) as f64);
        let ln_q = ln_q_gaussian(counts, self.sigma) - ln_others;
        let t = self.sigma / SQRT_2 * survival_quantile(ln_q.min(-f64::MIN_POSITIVE));
        // What is negative or no number is the first cell, what is too large the last.
        ((t * self.cells as f64) as usize).min(self.maximum.cost.len() - 1)
    }

    fn votes(&self, counts: &[f64]) -> usize {
        (bound::most(counts) as usize).min(self.shape.teachers)
    }

    /// The cost of queries that were tested, and answered or not, and its smooth sensitivity for `β > 0`.
    pub fn sum<'a>(&self, queries: impl IntoIterator<Item = (&'a [f64], bool)>, beta: f64) -> Sum {
        // How often each place is met: equal queries are looked up once.
        let (mut tests, mut answers) = (BTreeMap::new(), BTreeMap::new());
        for (counts, answered) in queries {
            if self.test.is_some() {
                *tests.entry(self.votes(counts)).or_insert(0_u64) += 1;
            }
            if answered {
                *answers.entry(self.margin(counts)).or_insert(0_u64) += 1;
            }
        }
        let mut bounds = vec![0_u128; self.shape.teachers + 1];
        let mut cost = 0;
        for (table, places) in [(Some(&self.maximum), answers), (self.test.as_ref(), tests)] {
            let Some(table) = table else { continue };
            for (k, times) in places {
                cost += u128::from(table.cost[k]) * u128::from(times);
                table.add_bounds(k, times, &mut bounds);
            }
        }
        Sum {
            cost,
            sensitivity: discounted(&bounds, beta),
        }
    }
}

/// `max_d w_d L_d`, rounded up.
fn discounted(bounds: &[u128], beta: f64) -> f64 {
    let factor = round::exp_up(-beta);
    let mut weight = 1.0;
    let mut largest = 0.0_f64;
    for bound in bounds {
        // At most a unit in the last place below the truth, and a step up is above it.
        let bound = if *bound < 1 << 53 {
            *bound as f64
        } else {
            (*bound as f64).next_up()
        };
        largest = largest.max(round::mul_up(weight, bound));
        weight = round::mul_up(weight, factor);
    }
    largest
}

#[cfg(test)]
#[path = "smooth_test.rs"]
mod tests;
