//! # How far one teacher can move the cost of a query
//! At one order `α`, the cost `g` of GNMax is a function of the winner's probability to lose: Theorem 6 below a point `q₀`, the
//! worst case `α/σ²` above it.
//!
//! **One vote.** If one teacher changes its vote, `q` stays within `B_L(q) <= q' <= B_U(q)`,
//! `B(q) = (m-1) S(S^-1(q/(m-1)) ± √2/σ)`. *Proof.* Let `Q_i = Σ_(j≠i) S((n_i-n_j)/(√2σ))`; the winner has the least of them, for each term falls with `n_i`.
//! A vote that moves changes each difference by at most 2, hence each argument by at most `s = √2/σ`. So `Q_i' <= Σ F(u_j)` with `u_j = S(x_j)` and
//! `F(u) = S(S^-1(u) - s)`, which is concave: it is the power of the best test of a normal shift at size `u`. By Jensen `Q_i' <= (m-1) F(Q_i/(m-1))`; and
//! the inverse of `F` is convex, which gives the other bound. Both bounds grow with `Q_i`, so they hold for the least. ∎
//! \[PSM+18, Prop. 12\]
//!
//! **Algorithm 3.** If `g` grows up to `q₀`, the local sensitivity at `q` is at most `max(g(B_U(q)) - g(q), g(q) - g(B_L(q)))`, and on
//! `[B_L(q₀), q₀]` at most what it is at `q₁ = B_L(q₀)`. **Algorithms 4 and 5**: it grows up to `q₁` if `g(B_U(q)) - g(q)` does, and falls from `q₀` on; so at
//! distance `d` it is largest for the votes that `d` moves bring nearest to `[q₁, q₀]`: from the second class to the first, or back.
//!
//! The two conditions in that (C5 and C6 of the paper) are seen and not proven. So this is what the published program computes, for
//! owners to compare with; what is published rests on [`smooth`](super::smooth), which needs neither.

use std::f64::consts::SQRT_2;

use super::bound::{is_valid, ln_q_gaussian, ln_survival, survival_quantile, unchecked};
use crate::{Error, Result};

/// GNMax with public noise, among a public number of classes, at one order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Local {
    sigma: f64,
    classes: usize,
    order: f64,
    ln_q0: f64,
    ln_q1: f64,
    plateau: f64,
}

/// `ln q₀`: below it Theorem 6 is better than the worst case. Refused where that is nowhere.
pub fn ln_q0(sigma: f64, order: f64) -> Result<f64> {
    let excess = |ln_q: f64| unchecked(ln_q, sigma, order) - order / (sigma * sigma);
    let wide = 1.0 + 1.0 / sigma;
    let far = (order - 0.99) / sigma;
    // Above this Theorem 6 has no meaning or no orders.
    let mut high = -(wide * wide).max(far * far).max(1.0 / (sigma * sigma));
    let never = Err(Error::Unbounded {
        what: "point below which agreement lowers the cost",
    });
    if !is_valid(high, sigma, order) {
        return never;
    }
    if excess(high) < 0.0 {
        return Ok(high);
    }
    let mut low = 2.0 * high;
    // A factor of 1.5 at a time to 1e6: 40 turns.
    while excess(low) > 0.0 {
        low *= 1.5;
        if low < -1e6 {
            return never;
        }
    }
    // Bisection to the last digit.
    for _ in 0..200 {
        let middle = low.midpoint(high);
        if middle == low || middle == high {
            break;
        }
        if excess(middle) > 0.0 {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok(low)
}

impl Local {
    /// Refused where agreement never lowers the cost at this order, and for fewer than two classes.
    pub fn new(sigma: f64, classes: usize, order: f64) -> Result<Self> {
        let ln_q0 = ln_q0(sigma, order)?;
        let mut made = Self {
            sigma,
            classes,
            order,
            ln_q0,
            ln_q1: ln_q0,
            plateau: 0.0,
        };
        made.ln_q1 = made.shifted(ln_q0, 1.0);
        made.plateau = made.at(made.ln_q1);
        Ok(made)
    }

    /// `ln q₀` and `ln q₁`.
    pub fn ends(&self) -> (f64, f64) {
        (self.ln_q0, self.ln_q1)
    }

    /// `ln B_L(q)` for a sign of one, `ln B_U(q)` for minus one.
    fn shifted(&self, ln_q: f64, sign: f64) -> f64 {
        let ln_others = libm::log((self.classes.max(2) - 1) as f64);
        let place = survival_quantile((ln_q - ln_others).min(-f64::MIN_POSITIVE));
        (ln_others + ln_survival(place + sign * SQRT_2 / self.sigma)).min(0.0)
    }

    /// `g(q)`.
    fn cost(&self, ln_q: f64) -> f64 {
        if ln_q >= self.ln_q0 {
            self.order / (self.sigma * self.sigma)
        } else {
            unchecked(ln_q, self.sigma, self.order)
        }
    }

    /// Algorithm 3.
    pub fn at(&self, ln_q: f64) -> f64 {
        let ln_q = if (self.ln_q1..=self.ln_q0).contains(&ln_q) {
            self.ln_q1
        } else {
            ln_q
        };
        let cost = self.cost(ln_q);
        let up = self.cost(self.shifted(ln_q, -1.0)) - cost;
        up.max(cost - self.cost(self.shifted(ln_q, 1.0)))
    }

    /// Algorithms 4 and 5: bounds at the distances `0 … teachers - 1`.
    pub fn by_distance(&self, counts: &[f64], teachers: usize) -> Vec<f64> {
        let mut found = vec![self.plateau; teachers];
        let mut ln_q = ln_q_gaussian(counts, self.sigma);
        if (self.ln_q1..=self.ln_q0).contains(&ln_q) || counts.len() < 2 {
            return found;
        }
        let mut votes = counts.to_vec();
        votes.sort_by(|a, b| b.total_cmp(a));
        let agree = ln_q > self.ln_q0;
        for bound in &mut found {
            *bound = self.at(ln_q);
            let further = if agree {
                ln_q > self.ln_q0 && votes[1] > 0.0
            } else {
                ln_q < self.ln_q1
            };
            if !further {
                break;
            }
            let step = if agree { 1.0 } else { -1.0 };
            votes[0] += step;
            votes[1] -= step;
            // The second class may have fallen behind others; at most one turn for each class.
            let mut place = 1;
            while place + 1 < votes.len() && votes[place] < votes[place + 1] {
                votes.swap(place, place + 1);
                place += 1;
            }
            ln_q = ln_q_gaussian(&votes, self.sigma);
        }
        found
    }
}

#[cfg(test)]
#[path = "local_test.rs"]
mod tests;
