//! # The profile of a search from a table of that of one run
//! `best_of.rs` bounds the profile of a search by `E_{Q'}[h(x)]`, `x = dQ/dQ'`, with `h(x) = sup_s (f'(1-s) x - e^ε f'(1-T(s)))₊`. Here that is made finite.
//!
//! 1. *Knots.* `0 = x_0 < x_1 < …`, half of them reciprocals of the others, and one in the middle. At each, `H(x_k) <= D_k`: from the profile above one, by
//!    complements below, and `H(0) = 1`.
//! 2. *Cells.* For `s` between `s_i` and `s_(i+1)` the line is at most `a_i x - b_i` with `a_i = f'(1-s_i)` and `b_i = e^ε f'(1-T(s_(i+1)))`, as `T` grows and `f'` does
//!    not fall; `T` is the least of the lines `x_k s + D_k`.
//! 3. *Chords.* Let `σ_k` be the slope from `x_k` to `x_(k+1)` of the largest line or zero, or that before it if that is larger, and the last one `f'(1) = E[K]`. The
//!    polygon from zero with these slopes is above all lines: it is at the knots, by induction, and lines are straight between them; beyond the last no line is
//!    steeper. So `E[h] <= Σ_k (σ_k - σ_(k-1)) D_k` with `σ_(-1) = 0`, and no term is negative.
//!
//! Everything is rounded up, but for `b_i`, which is rounded down.

use whit_core::{Mechanism, Neighbours, round};

use crate::best_of::Law;
use crate::event_profile::deltas_upper;
use crate::{Error, Result};

/// Knots above one. Where `ln δ` falls by 32 over the table, it falls by a third from knot to knot, and chords are above it by 1.5%, which is a
/// thousandth of epsilon.
const KNOTS: u32 = 96;
/// Cells of `s`, closer together near zero, where `T` is steep.
const CELLS: u32 = 2048;
/// Above this losses of one run are beyond all measure.
const REACH_MAX: f64 = 300.0;

/// What is known of one run.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// `x_k` and `D_k`, by `x_k`.
    knots: Vec<(f64, f64)>,
    /// `a_i/E[K]`, and `ln(b_i/E[K]) - ε`.
    lines: Vec<(f64, f64)>,
    /// `E[K]`.
    mean: f64,
    /// The last knot, as an epsilon, and the largest change of `ln f'`.
    reach: f64,
}

impl Table {
    /// Asks for the profiles of all of `among`, up to the epsilon `reach`.
    pub(crate) fn new(
        law: Law,
        among: &[Mechanism],
        neighbours: Neighbours,
        reach: f64,
    ) -> Result<Self> {
        if reach.is_nan() || reach > REACH_MAX {
            return Err(Error::Unbounded {
                what: "epsilon of the best of several runs, of which one has more than 300",
            });
        }
        // Even where a run costs nothing there is something to ask for.
        let last = reach.max(1e-9);
        let epsilons: Vec<f64> = (0..=KNOTS)
            .map(|k| last * f64::from(k) / f64::from(KNOTS))
            .collect();
        let mut worst = vec![0.0_f64; epsilons.len()];
        for one in among {
            let found = deltas_upper(one, neighbours, &epsilons)?;
            for (worst, found) in worst.iter_mut().zip(found) {
                *worst = worst.max(found);
            }
        }
        let knots = knots(&epsilons, &worst);
        let change = law.exponent(1.0.into()).upper();
        Ok(Self {
            lines: lines(law, &knots),
            mean: law.mean().upper(),
            reach: round::add_up(last, change),
            knots,
        })
    }

    /// From this epsilon on a bound says no more.
    pub(crate) fn reach(&self) -> f64 {
        self.reach
    }

    /// `δ(ε)` of the search, from above; more than one says nothing.
    pub(crate) fn delta(&self, epsilon: f64) -> f64 {
        let lines: Vec<(f64, f64)> = self
            .lines
            .iter()
            .map(|&(slope, ln)| {
                (
                    slope,
                    round::exp_down(round::add_down(epsilon, ln)).max(0.0),
                )
            })
            .collect();
        // No line is above zero before this; rounded down.
        let first = lines
            .iter()
            .map(|&(slope, fall)| round::div_down(fall, slope))
            .fold(f64::INFINITY, f64::min);
        let height = |x: f64| {
            if x < first {
                return 0.0;
            }
            let highest = lines
                .iter()
                .map(|&(slope, fall)| round::sub_up(round::mul_up(slope, x), fall))
                .fold(0.0, f64::max);
            // The line through zero, which no other exceeds.
            highest.min(x)
        };
        let (mut sum, mut slope, mut before) = (0.0, 0.0_f64, 0.0);
        for (k, &(x, most)) in self.knots.iter().enumerate() {
            let next = match self.knots.get(k + 1) {
                Some(&(further, _)) => {
                    let (here, there) = (before, height(further));
                    before = there;
                    round::div_up(
                        round::sub_up(there, here).max(0.0),
                        round::sub_down(further, x),
                    )
                }
                None => 1.0,
            };
            let next = next.max(slope);
            sum = round::add_up(sum, round::mul_up(round::sub_up(next, slope), most));
            slope = next;
        }
        round::mul_up(sum, self.mean)
    }
}

/// Zero, the reciprocals, and the rest.
fn knots(epsilons: &[f64], deltas: &[f64]) -> Vec<(f64, f64)> {
    // δ does not grow, and never exceeds one.
    let mut least = 1.0_f64;
    let above: Vec<(f64, f64)> = epsilons
        .iter()
        .zip(deltas)
        .map(|(&epsilon, &delta)| {
            least = least.min(delta);
            let x = if epsilon == 0.0 {
                1.0
            } else {
                round::exp_up(epsilon)
            };
            (x, least)
        })
        .collect();
    let below = above.iter().skip(1).rev().map(|&(x, delta)| {
        let y = round::div_down(1.0, x);
        let most = round::add_up(round::sub_up(1.0, y), round::mul_up(y, delta));
        (y, most.min(1.0))
    });
    let zero = std::iter::once((0.0, 1.0));
    let mut knots: Vec<(f64, f64)> = zero.chain(below).chain(above.iter().copied()).collect();
    // Of equal knots, which tiny losses have, one is enough; its bound is one for both.
    knots.dedup_by(|next, kept| {
        let same = next.0 <= kept.0;
        if same {
            kept.1 = kept.1.max(next.1);
        }
        same
    });
    knots
}

fn lines(law: Law, knots: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let most = |s: f64| {
        let lines = knots
            .iter()
            .map(|&(x, most)| round::add_up(round::mul_up(x, s), most));
        lines.fold(1.0, f64::min)
    };
    let place = |i: u32| (f64::from(i) / f64::from(CELLS)).powi(2);
    (0..CELLS)
        .map(|i| {
            let slope = law.weight(place(i)).upper();
            let fall = law.exponent(most(place(i + 1)).into()).upper();
            (slope, -fall)
        })
        .collect()
}
