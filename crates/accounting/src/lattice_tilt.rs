//! # Where to tilt a composition on a lattice
//! **Saddle point.** `A_J = e^(Λ(c) - c l_J) · Σ_r W_(J+r) e^(-chr)`. The sum over nodes gives the second factor with an absolute error,
//! so the first should be small: `Λ(c) - c l_J - ln(1 - e^(-ch))` is convex, and least where the mean loss of the tilted law is
//! `l_J + h/(e^(ch) - 1)`. Nothing but accuracy rests on having found it.
//!
//! **Exponents.** `Λ(c) - c l_J` is a difference of large numbers where losses are. Let `m_i` be an index near the tilted mean of
//! factor `i` and `m = Σ k_i m_i` in lattice steps; then `Λ(c) - c l_J = Σ k_i (ln M_i(c) - c l_(m_i)) - ch(J - m)`, where `J - m` is an
//! exact integer and the others are small.
//!
//! **The period.** `N` and `H` of `lattice_sum.rs` are chosen so that aliases are below `e^-40`, and the bounds are then computed: by
//! Chernoff's inequality, with the same exponents, or zero beyond the ends.

use crate::Bracket;
use crate::lattice::Lattice;
use crate::lattice_pair::integer;
use crate::lattice_sum::{Factor, Nodes, Plan};

/// Aliases are at most about this share.
const LN_ALIAS: f64 = -44.0;
/// `ch` is at most this, beside what neighbouring masses differ by: beyond, the next mass is below the last digit.
const DECAY_MAX: f64 = 50.0;
/// How often a window is widened that leaves too much outside: up to a thousandfold.
const WIDENINGS_MAX: u32 = 27;
/// No period is longer.
const PERIOD_MAX: f64 = 9e15;

/// Plain floats about the tilted law of the lattice index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Estimate {
    /// `Λ(c)`.
    pub(crate) ln_moment: f64,
    /// An index near the mean of each part, and of the whole.
    anchors: Vec<i64>,
    index: i128,
    /// What the mean has beyond the latter.
    offset: f64,
    /// The variance, in lattice steps.
    pub(crate) variance: f64,
}

/// The sum over nodes for indices near each other.
pub(crate) struct TiltedSum {
    tilt: f64,
    /// `Λ(c) - c l_m`, and `m`.
    exponent: Bracket,
    anchor: i128,
    nodes: Nodes,
    indices: (i128, i128),
}

impl TiltedSum {
    /// Whether the bounds of the aliases hold for an index.
    pub(crate) fn serves(&self, index: i128) -> bool {
        self.indices.0 <= index && index <= self.indices.1
    }

    /// `A_J` and `D_J`.
    pub(crate) fn tail_and_excess(&self, step: Bracket, index: i128) -> (Bracket, Bracket) {
        let (tail, excess) = self.nodes.shares(index);
        let away = integer(index - self.anchor);
        let scale = (self.exponent - Bracket::exact(self.tilt) * step * away).exp();
        (scale * tail, scale * excess)
    }
}

/// Where a search among logarithms starts: a tilt of zero would have no end of halves.
fn ln_start(tilt: f64) -> f64 {
    tilt.max(f64::MIN_POSITIVE).ln()
}

impl Lattice {
    /// The law under a tilt, in plain floats.
    pub(crate) fn estimate(&self, tilt: f64) -> Estimate {
        let mut sum = Estimate::default();
        for part in self.parts() {
            let (one, count) = (part.pair.estimate(tilt), part.count as f64);
            let ratio = self.ratio(part);
            sum.ln_moment += count * one.ln_moment;
            sum.index += i128::from(part.count) * ratio * i128::from(one.index);
            sum.offset += count * ratio as f64 * one.offset;
            sum.variance += count * (ratio as f64) * (ratio as f64) * one.variance;
            sum.anchors.push(one.index);
        }
        sum
    }

    /// How far a loss is above the mean of a law, in lattice steps.
    pub(crate) fn away(&self, law: &Estimate, loss: f64) -> f64 {
        let step = self.step().estimate();
        (loss - self.loss(law.index).estimate()) / step - law.offset
    }

    /// `Λ(c) - c l_m` for the anchors `m`.
    fn exponent(&self, tilt: f64, anchors: &[i64]) -> Bracket {
        let parts = self.parts().iter().zip(anchors);
        parts.fold(Bracket::ZERO, |sum, (part, &index)| {
            let one = part.pair.ln_moment_about(tilt, index);
            sum + Bracket::exact(part.count as f64) * one
        })
    }

    /// `Λ(c) - cε` for any real `c`.
    pub(crate) fn ln_moment_at(&self, tilt: f64, epsilon: f64) -> Bracket {
        let law = self.estimate(tilt);
        let above = self.loss(law.index) - Bracket::exact(epsilon);
        self.exponent(tilt, &law.anchors) + Bracket::exact(tilt) * above
    }

    /// The tilt below `from` whose mean loss is `ε`, roughly.
    pub(crate) fn tilt_down(&self, from: f64, epsilon: f64) -> f64 {
        let step = self.step().estimate();
        let spread = self.ahead().variance.sqrt().max(1e-300);
        let mut far = (DECAY_MAX / step).ln();
        let mut near = ln_start(1e-3 / (step * spread)).min(far - 3.0);
        while far - near > 0.1 {
            let middle = near.midpoint(far);
            let law = self.estimate(from - middle.exp());
            if self.away(&law, epsilon) < 0.0 {
                near = middle;
            } else {
                far = middle;
            }
        }
        from - near.exp()
    }

    /// `e^(Λ(c) - cε) c^c/(1+c)^(1+c)`.
    pub(crate) fn chernoff(&self, epsilon: f64) -> f64 {
        let tilt = self.saddle(self.index_near(epsilon));
        let c = Bracket::exact(tilt);
        let more = c + Bracket::exact(1.0);
        // c ln c - (1+c) ln(1+c) = -c ln(1 + 1/c) - ln(1+c).
        let kernel = -(c * (Bracket::exact(1.0) / c).ln_1p()) - more.ln();
        (self.ln_moment_at(tilt, epsilon) + kernel).exp().upper()
    }

    /// The saddle point for an index, roughly.
    fn saddle(&self, index: i128) -> f64 {
        let step = self.step().estimate();
        let slope = |tilt: f64| {
            let law = self.estimate(tilt);
            (law.index - index) as f64 + law.offset - 1.0 / libm::expm1(tilt * step)
        };
        let steepest = self
            .parts()
            .iter()
            .map(|part| DECAY_MAX + part.pair.steepest())
            .fold(DECAY_MAX, f64::max);
        let (mut high, most) = (DECAY_MAX / step, steepest / step);
        while slope(high) <= 0.0 {
            if high >= most {
                return high;
            }
            high = (2.0 * high).min(most);
        }
        let spread = self.ahead().variance.sqrt().max(1e-300);
        let distance = (self.ahead().index - index) as f64;
        let low = (1e-4 / (step * (spread + distance.abs()))).min(high / 2.0);
        let (mut low, mut high) = (ln_start(low), high.ln());
        while high - low > 0.02 {
            let middle = low.midpoint(high);
            if slope(middle.exp()) < 0.0 {
                low = middle;
            } else {
                high = middle;
            }
        }
        low.midpoint(high).exp()
    }

    /// The sum for indices around this one; or, where it does not work, around which it does not.
    pub(crate) fn tilted_sum(&self, index: i128) -> Result<TiltedSum, (i128, i128)> {
        let tilt = self.saddle(index);
        let step = self.step().estimate();
        let law = self.estimate(tilt);
        let exponent = self.exponent(tilt, &law.anchors);
        let spread = law.variance.sqrt();
        let reach = (spread / 2.0).min(1e15) as i128;
        let (low, high) = (index - reach, index + reach);
        // From any index of these, H below and N above hold nearly all of the law.
        let lag = (law.index - index) as f64 + law.offset;
        let mut width = (9.5 * spread + lag.abs() + reach as f64 + 2.0).ceil();
        let decay = (-LN_ALIAS / (tilt * step)).ceil();
        let chernoff = |index: i128, side: f64| self.beyond(index, tilt, &law, exponent, side);
        for _ in 0..WIDENINGS_MAX {
            let below = match self.top() {
                Some(_) => width.min(high.max(0) as f64),
                None => width,
            };
            let period = (below + decay).max(width);
            if period.is_nan() || period > PERIOD_MAX {
                break;
            }
            let (under, over) = (high - below as i128, low + period as i128);
            let inside = self.top().is_some() && under <= 0;
            let mut outside = if inside { 0.0 } else { chernoff(under, -1.0) };
            if self.top().is_none_or(|top| over <= top) {
                outside += chernoff(over, 1.0);
            }
            if outside > libm::exp(LN_ALIAS) * 10.0 {
                width = (width * 1.3).ceil();
                continue;
            }
            let rest = step * (period - below);
            let fold = libm::exp(-tilt * rest);
            let plan = Plan {
                tilt,
                step,
                step_error: self.step().relative_width() + f64::EPSILON,
                nodes: period as u64,
                aliases: (
                    1.000_001 * (outside + fold),
                    1.000_001 * (outside / (1.0 + tilt) + fold * rest.min(1.0)),
                ),
            };
            let factors: Vec<Factor> = self
                .parts()
                .iter()
                .map(|part| Factor {
                    law: part.pair.tilted(tilt),
                    count: part.count as f64,
                    ratio: self.ratio(part),
                })
                .collect();
            let Some(nodes) = Nodes::new(&factors, &plan) else {
                break;
            };
            return Ok(TiltedSum {
                tilt,
                exponent,
                anchor: law.index,
                nodes,
                indices: (low, high),
            });
        }
        Err((low, high))
    }

    /// A bound of the tilted mass from an index on, to one side: `e^(Λ(c ± λ) - Λ(c) ∓ λ l)` for a `λ`; 1 if none is small.
    fn beyond(&self, index: i128, tilt: f64, law: &Estimate, exponent: Bracket, side: f64) -> f64 {
        let step = self.step();
        let steps = (index - law.index) as f64 - law.offset;
        if side * steps <= 0.0 {
            return 1.0;
        }
        let best = side * steps / (law.variance.max(1e-300) * step.estimate());
        let few = 20.0 / step.estimate();
        [best, 0.5 * best, 2.0 * best, few, 0.25 * few]
            .into_iter()
            .filter(|turn| turn.is_finite())
            .map(|turn| {
                let moved = tilt + side * turn;
                // c ± λ is rounded; the true λ is what it differs by.
                let turn = Bracket::exact(moved) - Bracket::exact(tilt);
                let away = integer(index - law.index) * step;
                let difference = self.exponent(moved, &law.anchors) - exponent;
                (difference - turn * away).exp().upper()
            })
            .find(|&bound| bound < libm::exp(LN_ALIAS))
            .unwrap_or(1.0)
    }

    /// A guess of the epsilon at a finite delta: `ln δ ≈ Λ(c) - cε - ln c(c+1) - ½ ln 2πΛ''` at `ε = Λ'(c) - 1/c - 1/(c+1)`.
    pub(crate) fn saddle_guess(&self, delta: f64) -> f64 {
        let (target, step) = (delta.max(0.0).ln(), self.step().estimate());
        let place = |tilt: f64| {
            let law = self.estimate(tilt);
            let mean = self.loss(law.index).estimate() + step * law.offset;
            let epsilon = mean - 1.0 / tilt - 1.0 / (1.0 + tilt);
            let flat = (tilt * tilt * step * step * law.variance).max(1.0);
            let ln_delta = law.ln_moment
                - tilt * epsilon
                - (1.0 + tilt).ln()
                - 0.5 * (std::f64::consts::TAU * flat).ln();
            (epsilon, ln_delta)
        };
        let spread = self.ahead().variance.sqrt().max(1e-300);
        let mut high = (DECAY_MAX / step).ln();
        let mut low = ln_start(0.01 / (step * spread)).min(high - 3.0);
        for _ in 0..60 {
            if high - low < 0.01 {
                break;
            }
            let middle = low.midpoint(high);
            if place(middle.exp()).1 > target {
                low = middle;
            } else {
                high = middle;
            }
        }
        place(low.midpoint(high).exp()).0
    }
}
