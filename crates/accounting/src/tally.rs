//! # What is known of a composition before it is transformed
//! The parts of one side, tilted (`grid.rs`), with the sums over all of them that a profile needs.
//!
//! **Outside.** A circle has `N` places, for the sums with index `w <= j < w + N`. What is outside lands inside, on a wrong place. Let `A`
//! be the tilted mass outside, on the left or on the right; `A <= Π(Σ a_i e^(λi))^k e^(-λj)` for every `λ` of the right sign, and zero if
//! no sum is outside. For an upper bound only the right part is missing, since masses are not negative: it is added as a loss that is
//! as large as can be. For a lower bound all of `A` may be too much: `A · max_x e^(-cx)(1 - e^(-x)) <= A/(1+c)` is subtracted, with
//! `c = θ/step`.
//!
//! **Infinite losses.** If the finite masses of an upper grid add up to `f` and those counted as infinite to `p_∞`, the composition
//! has `Π(f+p_∞)^k - Πf^k = Π(f+p_∞)^k (1 - Π(1-x)^k)` of them, with `x = p_∞/(f+p_∞)`.

use whit_core::round;

use crate::Bracket;
use crate::convolve::Factor;
use crate::grid::{Grid, Side, TiltedGrid};
use crate::near::{Steps, whole};
use crate::sketch::Window;

/// Moments around that of a sketch, of which one may do better.
const MOMENTS: [f64; 3] = [1.0, 0.8, 1.2];
/// Where those are of no use, some that do not overflow; and these for one step, whatever the sketch says.
const MOMENTS_SMALL: [f64; 3] = [0.3, 0.1, 0.03];
const MOMENTS_STEP: [f64; 3] = [3.0, 0.3, 0.03];
/// A share that is small enough not to look for a smaller one.
const SHARE_SMALL: f64 = 1e-4;

/// All parts of one side.
pub(crate) struct Tally {
    side: Side,
    /// `θ`.
    theta: f64,
    parts: Vec<(TiltedGrid, u64)>,
    /// `Σ k base`.
    pub(crate) base: Bracket,
    /// `Σ k J`.
    pub(crate) centre: i128,
    /// `Σ k ln z`.
    pub(crate) ln_factor: Bracket,
    /// The index of the largest sum.
    pub(crate) length: i128,
    /// `Σ k ln(1 - x)`, at most.
    ln_finite: f64,
    /// `Σ k ln(total mass)`, at least.
    ln_total: f64,
}

impl Tally {
    /// Of no parts, with a tilt that is [`short`](crate::grid::short).
    pub(crate) fn new(side: Side, theta: f64) -> Self {
        Self {
            side,
            theta,
            parts: Vec::new(),
            base: Bracket::ZERO,
            centre: 0,
            ln_factor: Bracket::ZERO,
            length: 0,
            ln_finite: 0.0,
            ln_total: 0.0,
        }
    }

    pub(crate) fn add(&mut self, grid: &Grid, count: u64) {
        let tilted = grid.tilt(self.theta, self.side);
        let times = Bracket::exact(count as f64);
        self.base = self.base + times * Bracket::exact(grid.lattice.base);
        self.ln_factor = self.ln_factor + times * tilted.ln_factor;
        self.centre += i128::from(count) * tilted.centre as i128;
        self.length += i128::from(count) * grid.lattice.cells as i128;
        let share = Bracket::exact(grid.infinite) / Bracket::exact(grid.total_lower());
        let ln_finite = times * (-share.clamp(0.0, 1.0)).ln_1p();
        self.ln_finite = round::add_down(self.ln_finite, ln_finite.lower());
        let ln_total = Bracket::exact(grid.total_upper()).ln().upper().max(0.0);
        self.ln_total = round::add_up(self.ln_total, round::mul_up(count as f64, ln_total));
        self.parts.push((tilted, count));
    }

    /// What is missing of an upper profile, as the largest losses, or what may be too much of a lower one.
    pub(crate) fn lost(&self, steps: &Steps, window: &Window) -> f64 {
        // Sums are between 0 and the length, and those left of the window are at most one less than its start.
        let end = steps.start + steps.cells as i128;
        let right = if end <= self.length {
            self.beyond(window.top_moment, end, steps.step)
        } else {
            0.0
        };
        if self.side == Side::Upper {
            return right;
        }
        let left = if steps.start > 0 {
            self.beyond(-window.bottom_moment, steps.start - 1, steps.step)
        } else {
            0.0
        };
        let heaviest = 1.0 / (1.0 + steps.theta / steps.step);
        (left + right) * heaviest * (1.0 + 1e-9)
    }

    /// At least the tilted mass from `index` on, or up to there if the moment is negative.
    fn beyond(&self, moment: f64, index: i128, step: f64) -> f64 {
        let mut least = f64::INFINITY;
        let usual = moment * step;
        let few = MOMENTS.map(|factor| usual * factor);
        let small = MOMENTS_SMALL.map(|factor| usual * factor);
        let others = MOMENTS_STEP.map(|size| size.copysign(moment));
        for (tried, lambda) in few.into_iter().chain(small).chain(others).enumerate() {
            if tried >= MOMENTS.len() && least < SHARE_SMALL {
                break;
            }
            let ln_moment = self
                .parts
                .iter()
                .fold(Bracket::ZERO, |sum, (tilted, count)| {
                    let one = Bracket::exact(tilted.ln_moment_upper(lambda));
                    sum + Bracket::exact(*count as f64) * one
                });
            let ln_share = ln_moment - Bracket::exact(lambda) * whole(index - self.centre);
            least = least.min(ln_share.exp().upper());
        }
        least
    }

    /// At least the mass of all losses of upper grids.
    pub(crate) fn total_upper(&self) -> f64 {
        Bracket::exact(self.ln_total).exp().upper()
    }

    /// At least the mass of losses that are infinite, or counted so.
    pub(crate) fn infinite_upper(&self) -> f64 {
        let share = (-Bracket::exact(self.ln_finite).exp_m1()).clamp(0.0, 1.0);
        let total = Bracket::exact(self.ln_total).exp();
        (share * total).upper().min(1.0)
    }
}

/// What is convolved: the tilted masses of both sides, part by part.
pub(crate) fn factors<'a>(upper: &'a Tally, lower: &'a Tally) -> Vec<Factor<'a>> {
    let each = upper.parts.iter().zip(&lower.parts);
    each.map(|((upper, count), (lower, _))| Factor {
        upper: &upper.masses,
        lower: &lower.masses,
        count: *count,
    })
    .collect()
}
