//! # Tails on a lattice, by a sum over one period
//! **Setting.** The index `X` of a composition is a sum of independent indices; index `n` has the loss `l_n`, rising by `h`. Under
//! the tilt `c > 0` it has the masses `W_n = P_n e^(c l_n - Λ)` with `Λ = Σ k_i ln M_i(c)`. Wanted are, for an index `J`,
//! `A_J = Σ_(n>=J) P_n` and `D_J = Σ_(n>=J) P_n (1 - e^(l_J - l_n))`: with them
//! `δ(ε) = (1 - e^(ε-l_J)) A_J + e^(ε-l_J) D_J` for `l_(J-1) <= ε <= l_J`, without a difference of large numbers.
//!
//! **Theorem.** Let `φ` be the characteristic function of `X` under the tilt and `a = e^(-ch-iθ)`, `b = e^-h`. Then
//! `A_J = e^(Λ - c l_J) Σ_(r>=0) W_(J+r) e^(-chr)`, and for `N` nodes `θ_m = 2πm/N`
//! `(1/N) Σ_m φ(θ_m) e^(-iθ_m J) K(θ_m) = Σ_(r>=0) w_r Σ_(q∈ℤ) W_(J+r+qN)`, with
//! - for `A`: `K = 1/(1-a)`, `w_r = e^(-chr)`;
//! - for `D`: `K = a(1-b)/((1-a)(1-ab)) = Σ a^r (1 - b^r)`, `w_r = e^(-chr)(1 - e^(-hr))`.
//!
//! *Proof.* Expand `K` in powers of `a`; the mean of `e^(iθ_m (n-J-r))` over the nodes is 1 if `N` divides `n-J-r`, else 0. ∎
//!
//! **Aliases** (`q ≠ 0`) are not negative. Mass at `n >= J+N` or `n < J-H` comes in with weight at most `w = max w_r` (1 for `A`,
//! `1/(1+c)` for `D`, as `y^c (1-y) <= 1/(1+c)`), up to a factor `1/(1-e^(-chN))`; mass at `J-H <= n < J` with at most the
//! largest `w_r` of `r >= N-H`. The masses have Chernoff bounds, `Pr[X >= n] <= e^(Λ(c+λ) - Λ(c) - λ l_n)` for every `λ >= 0`,
//! and are zero outside the support.
//!
//! **Nodes left out.** Where the bounds of `|φ|` in `lattice_law.rs` are below `e^-42/N`, a node only adds to the error; they fall with
//! `θ`, so from some node on all are done with at once. There are about `√k` fewer left than there are nodes, and these are
//! what one composition costs, whatever the number of steps.
//!
//! **Round-off.** Each node knows the error of its logarithm; kernels have a relative error of at most `(64 + 8ch)u`: `1-a` is
//! `(1-e^(-ch)) + 2e^(-ch) sin²(θ/2) + i e^(-ch) sin θ`, whose parts do not cancel. An error of `h` moves them by `3 + ch` times as
//! much.

use std::f64::consts::TAU;

use crate::Bracket;
use crate::lattice_law::{Compensated, Law, U};

/// Nodes whose share is below `e` to this, over the number of nodes, are left out: a tail is a share of about one in so many.
const LN_LIGHT: f64 = -42.0;
/// Nodes looked at. More come up only where strides of large numbers of steps do not fit each other.
const NODES_MAX: u64 = 1 << 20;

/// Terms summed over all nodes. More come up only where a law of thousands of masses is nearly periodic.
const TERMS_MAX: usize = 1 << 24;

/// One factor of the composition, under the tilt.
pub(crate) struct Factor {
    /// One step of it.
    pub(crate) law: Law,
    /// How many steps.
    pub(crate) count: f64,
    /// Lattice steps per index of this factor.
    pub(crate) ratio: i128,
}

/// What the sum needs to know beside its factors.
pub(crate) struct Plan {
    /// The tilt `c > 0`.
    pub(crate) tilt: f64,
    /// `h`, and its relative error.
    pub(crate) step: f64,
    pub(crate) step_error: f64,
    /// `N`, below 2^53.
    pub(crate) nodes: u64,
    /// Bounds of the aliases of `A` and `D`, beside `e^(Λ - c l_J)`.
    pub(crate) aliases: (f64, f64),
}

/// The nodes of one tilt, ready for every `J` nearby.
pub(crate) struct Nodes {
    nodes: Vec<Node>,
    /// The integer next to the centre of `X`, and what is left.
    middle: i128,
    beside: f64,
    beside_error: f64,
    errors: (f64, f64),
}

struct Node {
    angle: f64,
    size: f64,
    phase: f64,
    error: f64,
    tail: (f64, f64),
    excess: (f64, f64),
}

impl Nodes {
    /// None where too many nodes would have to be looked at.
    pub(crate) fn new(factors: &[Factor], plan: &Plan) -> Option<Self> {
        let count = plan.nodes as f64;
        let light = LN_LIGHT - count.ln();
        let (mut middle, mut beside, mut beside_error) = (0_i128, 0.0, 0.0);
        for factor in factors {
            let (integer, rest) = centre(factor);
            middle += integer;
            beside += rest;
            beside_error += 4.0 * U * (1.0 + rest.abs());
        }
        beside_error += 4.0 * U * beside.abs() * factors.len() as f64;
        let dropped: f64 = factors
            .iter()
            .map(|factor| factor.count * factor.law.dropped())
            .sum();
        let mut found = Self {
            nodes: Vec::new(),
            middle,
            beside,
            beside_error,
            errors: (
                plan.aliases.0 + 1.01 * dropped,
                plan.aliases.1 + 1.01 * dropped / (1.0 + plan.tilt),
            ),
        };
        if plan.nodes / 2 > NODES_MAX {
            // Only if all that are too many are done with at once.
            let angle = TAU * (NODES_MAX as f64 / count);
            let own = factors.iter().filter(|factor| factor.ratio == 1);
            let onward: f64 = own
                .map(|factor| factor.count * factor.law.ln_bound(angle).min(0.0))
                .sum();
            if onward >= light {
                return None;
            }
        }
        let terms: usize = factors.iter().map(|factor| factor.law.terms()).sum();
        let decay = plan.tilt * plan.step;
        let kernel_error = (64.0 + 8.0 * decay) * U + (4.0 + 2.0 * decay) * plan.step_error;
        for m in 0..=plan.nodes / 2 {
            if m > NODES_MAX || found.nodes.len() * terms > TERMS_MAX {
                return None;
            }
            let weight = if m == 0 || 2 * m == plan.nodes {
                1.0
            } else {
                2.0
            };
            let angle = TAU * (m as f64 / count);
            let (tail, excess) = kernels(plan, angle);
            let sizes = (size(tail), size(excess));
            // Factors whose index is the lattice's own have bounds that hold for all angles from here on.
            let (mut here, mut onward) = (0.0, 0.0);
            for factor in factors {
                let (angle, _) = folded(m, factor.ratio, plan.nodes);
                let law = &factor.law;
                let bound = factor.count * law.ln_bound(angle.abs()).min(0.0);
                here += bound.min(factor.count * law.ln_bound_here(angle));
                if factor.ratio == 1 {
                    onward += bound;
                }
            }
            if onward < light {
                let left = 1.01 * libm::exp(onward);
                found.errors.0 += left * sizes.0;
                found.errors.1 += left * sizes.1;
                break;
            }
            if here < light {
                let left = 1.01 * weight / count * libm::exp(here);
                found.errors.0 += left * sizes.0;
                found.errors.1 += left * sizes.1;
                continue;
            }
            let (mut re, mut im, mut error, mut most) = (0.0, 0.0, 0.0, 0.0);
            for factor in factors {
                let (angle, turns) = folded(m, factor.ratio, plan.nodes);
                let log = factor.law.logarithm(angle, turns);
                re += factor.count * log.re;
                im += factor.count * log.im;
                most += factor.count * log.most;
                error += factor.count * log.error
                    + 4.0 * U * factor.count * (log.re.abs() + log.im.abs())
                    + 2.0 * U * (re.abs() + im.abs());
            }
            if error.is_nan() || error > 0.5 {
                let left = 1.01 * weight / count * libm::exp(most.min(0.0));
                found.errors.0 += left * sizes.0;
                found.errors.1 += left * sizes.1;
                continue;
            }
            found.nodes.push(Node {
                angle,
                size: weight / count * libm::exp(re),
                phase: im,
                error: error + kernel_error,
                tail,
                excess,
            });
        }
        Some(found)
    }

    /// `A_J` and `D_J` as shares of `e^(Λ - c l_J)`.
    pub(crate) fn shares(&self, index: i128) -> (Bracket, Bracket) {
        let away = (self.middle - index) as f64 + self.beside;
        let (mut tail, mut excess) = (Compensated::default(), Compensated::default());
        let (mut tail_error, mut excess_error) = self.errors;
        for node in &self.nodes {
            let turn = node.angle * away;
            let (sine, cosine) = libm::sincos(node.phase + turn);
            let error = node.error
                + 6.0 * U * (turn.abs() + node.phase.abs())
                + node.angle * self.beside_error;
            let wrong = node.size * libm::expm1(error) * (1.0 + 1e-9);
            let real = |(re, im): (f64, f64)| node.size * (re * cosine - im * sine);
            tail.add(real(node.tail));
            excess.add(real(node.excess));
            tail_error += wrong * size(node.tail);
            excess_error += wrong * size(node.excess);
        }
        let share = |sum: Compensated, error: f64| {
            let value = sum.sum();
            let error = (error + 4.0 * U * value.abs()) * (1.0 + 1e-9);
            let found = Bracket::around(value, error);
            Bracket::new(found.lower().max(0.0), found.upper().max(0.0))
        };
        (share(tail, tail_error), share(excess, excess_error))
    }
}

/// The lattice steps at the centre of a factor: the next integer, and the rest.
fn centre(factor: &Factor) -> (i128, f64) {
    let center = factor.law.center();
    let (count, ratio) = (factor.count, factor.ratio as f64);
    let steps = count * ratio;
    let steps_low = libm::fma(count, ratio, -steps);
    let product = steps * center;
    let product_low = libm::fma(steps, center, -product) + steps_low * center;
    let near = product.round();
    (near as i128, (product - near) + product_low)
}

/// `θ_m ratio` without whole turns, and those turns.
fn folded(m: u64, ratio: i128, nodes: u64) -> (f64, f64) {
    let (m, nodes) = (i128::from(m), i128::from(nodes));
    let product = m * ratio;
    let mut rest = product.rem_euclid(nodes);
    if 2 * rest > nodes {
        rest -= nodes;
    }
    let turns = (product - rest) / nodes;
    (TAU * (rest as f64 / nodes as f64), turns as f64)
}

/// The kernels of `A` and of `D`.
fn kernels(plan: &Plan, angle: f64) -> ((f64, f64), (f64, f64)) {
    let (sine, cosine) = libm::sincos(angle);
    let half = libm::sin(0.5 * angle);
    let complement = |decay: f64| {
        let left = libm::exp(-decay);
        (-libm::expm1(-decay) + 2.0 * left * half * half, left * sine)
    };
    let decay = plan.tilt * plan.step;
    let tail = inverse(complement(decay));
    let second = inverse(complement(decay + plan.step));
    let lead = -libm::expm1(-plan.step) * libm::exp(-decay);
    let product = times(tail, second);
    (tail, times(product, (lead * cosine, -lead * sine)))
}

fn inverse((re, im): (f64, f64)) -> (f64, f64) {
    let square = re * re + im * im;
    (re / square, -im / square)
}

fn times(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
}

fn size((re, im): (f64, f64)) -> f64 {
    re.hypot(im) * (1.0 + 1e-14)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lattice_law::tilted_masses;

    /// Binomial tails, by the sum itself.
    #[test]
    fn binomial_tails_are_found() {
        let (count, success, tilt, step) = (60_u32, 0.37_f64, 0.4, 0.3);
        let exponents = [1.0 - success, success].map(|p| Bracket::exact(p).ln());
        let factor = Factor {
            law: tilted_masses(&exponents, 0, 0.0),
            count: f64::from(count),
            ratio: 1,
        };
        // Here the given masses are the tilted ones, so W is this binomial.
        let mut masses = vec![(1.0 - success).powi(60)];
        for n in 0..count {
            let next = masses[n as usize] * f64::from(count - n) / f64::from(n + 1);
            masses.push(next * success / (1.0 - success));
        }
        let plan = Plan {
            tilt,
            step,
            step_error: 0.0,
            nodes: 601,
            aliases: (0.0, 0.0),
        };
        let nodes = Nodes::new(&[factor], &plan).expect("few nodes");
        for index in [0_i128, 5, 22, 30, 40] {
            let (mut tail, mut excess) = (0.0, 0.0);
            for (n, mass) in masses.iter().enumerate().skip(index as usize) {
                let r = (n as i128 - index) as f64;
                tail += mass * (-tilt * step * r).exp();
                excess += mass * (-tilt * step * r).exp() * (1.0 - (-step * r).exp());
            }
            let (found_tail, found_excess) = nodes.shares(index);
            for (found, truth) in [(found_tail, tail), (found_excess, excess)] {
                assert!(
                    (found.estimate() - truth).abs() <= 1e-13 * truth + 1e-15,
                    "{index}: {found:?} {truth}"
                );
                assert!(found.upper() - found.lower() < 1e-13);
                assert!(found.lower() <= truth + 1e-15 && truth - 1e-15 <= found.upper());
            }
        }
    }
}
