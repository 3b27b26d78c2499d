//! # Data-dependent divergences of noisy maxima
//! Votes `n_1 … n_m`, of which `n_*` are the most; `S` is the normal survival function.
//!
//! **How likely the winner loses.** GNMax adds `N(0, σ²)` to each count and tells the largest. Class `j` passes the winner if a normal number of variance
//! `2σ²` is at least `n_* - n_j`, so by a union bound
//! `q = Σ_(j≠*) S((n_*-n_j)/(√2σ))`, and at most `1 - 1/m`, since the likeliest of `m` outcomes has at least `1/m` \[PSM+18, Prop. 7\]. For Laplace noise of
//! scale `λ`, a difference of two has the tail `(2+g)/4 e^(-g)` at `gλ >= 0` \[PAE+17, Lem. 4\].
//!
//! **Worst case.** Moving a vote moves the counts by `√2` in L2, so `D_α <= α/σ²` \[PSM+18, Prop. 8\]. The test `max n + N(0, σ₁²) >= T` moves by one: `α/(2σ₁²)`,
//! which is the same with `σ = √2 σ₁`.
//!
//! **Theorem 6.** Let `M` have divergences of at most `ε₁`, `ε₂` at the orders `μ₁ > 1`, `μ₂ > 1` for all neighbours, `q >= Pr[M(D) ≠ *]` and
//! `q <= e^((μ₂-1)ε₂) (μ₁/(μ₁-1) · μ₂/(μ₂-1))^(-μ₂)`. For `α <= μ₁`,
//! `D_α(M(D) ‖ M(D')) <= ln((1-q) A^(α-1) + q B^(α-1))/(α-1)`, `A = (1-q)/(1 - (q e^ε₂)^(1-1/μ₂))`, `B = e^ε₁ q^(-1/(μ₁-1))`.
//! *Proof.* Let `p`, `p'` be the laws of `M(D)`, `M(D')`, and `q`, `q'` what they give to outcomes other than `*`. The sum `Σ p_i (p_i/p'_i)^(α-1)` has two parts.
//! 1. The outcome `*`: `(1-q)((1-q)/(1-q'))^(α-1)`. Hölder's inequality gives `q' <= (q e^ε₂)^(1-1/μ₂)`, from `D_μ₂(M(D') ‖ M(D)) <= ε₂`.
//! 2. The others: `q E[(p_i/p'_i)^(α-1) | i ≠ *] <= q E[(p_i/p'_i)^(μ₁-1) | i ≠ *]^((α-1)/(μ₁-1))` by Jensen, since `α <= μ₁`, and
//!    `q E[(p_i/p'_i)^(μ₁-1) | i ≠ *] <= e^((μ₁-1)ε₁)`.
//!
//! Both sum to what is claimed at the true `q`; the condition keeps it in the range where the bound grows with `q` \[PSM+18, Lem. 9\], so that
//! an upper bound of `q` will do. ∎
//!
//! **Proposition 10** chooses `μ₂ = σ√(-ln q)` and `μ₁ = μ₂ + 1`, with `ε_i = μ_i/σ²`.
//!
//! **Laplace** has a loss of at most `ε = 2/λ`. Where `q <= 1/(1+e^ε)` the same two parts are `(1-q)((1-q)/(1-e^ε q))^(α-1) + q e^(ε(α-1))`
//! \[PAE+17, Thm 3\].
//!
//! The divergence is of `M(D)` from `M(D')`, with `q` taken at `D`: the other direction is not bounded by this.

use std::f64::consts::SQRT_2;

use crate::normal::{mills, quantile_of_ln};

/// `ln(e^x + e^y)`.
pub(crate) fn ln_add_exp(x: f64, y: f64) -> f64 {
    let (high, low) = if x >= y { (x, y) } else { (y, x) };
    if low == f64::NEG_INFINITY {
        return high;
    }
    high + libm::log1p(libm::exp(low - high))
}

/// `ln(1 - e^x)` for `x <= 0`.
pub(crate) fn ln_one_minus_exp(x: f64) -> f64 {
    // Above -ln 2 the difference is what would be lost, below it the power.
    if x > -std::f64::consts::LN_2 {
        libm::log(-libm::expm1(x))
    } else {
        libm::log1p(-libm::exp(x))
    }
}

/// The logarithm of a probability that makes no difference to any sum.
const LN_NOTHING: f64 = -1e290;

/// `ln √(2π)`.
const LN_ROOT: f64 = 0.918_938_533_204_672_7;

/// `ln S(x)`.
pub(crate) fn ln_survival(x: f64) -> f64 {
    if x >= 0.0 {
        libm::log(mills(x)) - 0.5 * x * x - LN_ROOT
    } else {
        ln_one_minus_exp(libm::log(mills(-x)) - 0.5 * x * x - LN_ROOT)
    }
}

/// The `x` with `ln S(x) = ln`, for `ln < 0`: which a standard normal number passes with that probability.
pub fn survival_quantile(ln: f64) -> f64 {
    if ln <= -std::f64::consts::LN_2 {
        quantile_of_ln(ln)
    } else {
        -quantile_of_ln(ln_one_minus_exp(ln))
    }
}

/// The most votes for one class; zero if there is no class.
pub(crate) fn most(counts: &[f64]) -> f64 {
    counts.iter().copied().reduce(f64::max).unwrap_or_default()
}

/// `ln Σ_(j≠*) tail(n_* - n_j)`, at most `ln(1 - 1/m)`.
fn ln_loses(counts: &[f64], ln_tail: impl Fn(f64) -> f64) -> f64 {
    let most = most(counts);
    let winner = counts.iter().position(|count| *count == most);
    let others = counts
        .iter()
        .enumerate()
        .filter(|(i, _)| Some(*i) != winner);
    let sum = others.fold(f64::NEG_INFINITY, |sum, (_, count)| {
        ln_add_exp(sum, ln_tail(most - count))
    });
    sum.min(ln_least(counts.len()))
}

/// `ln(1 - 1/m)`.
pub(crate) fn ln_least(classes: usize) -> f64 {
    libm::log1p(-1.0 / classes.max(1) as f64)
}

/// `ln q` of GNMax with noise `σ`, for at least two classes.
pub fn ln_q_gaussian(counts: &[f64], sigma: f64) -> f64 {
    ln_loses(counts, |gap| ln_survival(gap / (SQRT_2 * sigma)))
}

/// `ln q` of LNMax with noise of scale `λ`, for at least two classes.
pub fn ln_q_laplace(counts: &[f64], lambda: f64) -> f64 {
    ln_loses(counts, |gap| {
        let gap = gap / lambda;
        libm::log((2.0 + gap) / 4.0) - gap
    })
}

/// `ln Pr[most votes + N(0, σ₁²) >= T]`, with the most votes rounded to a whole number: what interactive aggregation tests is no whole number, and the
/// cost must move by whole votes.
pub fn ln_answered(counts: &[f64], threshold: f64, sigma: f64) -> f64 {
    ln_survival((threshold - libm::rint(most(counts))) / sigma)
}

/// Theorem 6 with the orders of Proposition 10, ready for any order of the result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gaussian {
    variance: f64,
    /// `None` where the theorem says nothing.
    dependent: Option<Dependent>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Dependent {
    mu1: f64,
    ln_q: f64,
    /// `ln(1 - q)`.
    ln_wins: f64,
    ln_a: f64,
    ln_b: f64,
}

impl Gaussian {
    /// GNMax with noise `σ`, where the winner loses with probability at most `q`.
    pub fn new(ln_q: f64, sigma: f64) -> Self {
        let variance = sigma * sigma;
        Self {
            variance,
            dependent: Dependent::new(ln_q, sigma).filter(|found| found.holds(sigma)),
        }
    }

    /// The test of Confident-GNMax with noise `σ₁`, answered with probability `e^ln_answered`.
    pub fn threshold(ln_answered: f64, sigma: f64) -> Self {
        Self::new(
            ln_answered.min(ln_one_minus_exp(ln_answered)),
            SQRT_2 * sigma,
        )
    }

    /// A bound of `D_α`, for `α > 1`.
    pub fn at(&self, order: f64) -> f64 {
        let independent = order / self.variance;
        match &self.dependent {
            Some(found) if found.mu1 > order => independent.min(found.at(order)),
            _ => independent,
        }
    }
}

impl Dependent {
    /// The bound without its conditions; `None` if the orders of Proposition 10 are not above one.
    fn new(ln_q: f64, sigma: f64) -> Option<Self> {
        // A q of nothing is as good as one next to nothing, and leaves no infinities to subtract.
        let ln_q = ln_q.max(LN_NOTHING);
        let variance = sigma * sigma;
        let mu2 = sigma * (-ln_q).sqrt();
        if mu2.is_nan() || mu2 <= 1.0 {
            return None;
        }
        let mu1 = mu2 + 1.0;
        let ln_wins = ln_one_minus_exp(ln_q);
        let moved = (ln_q + mu2 / variance) * (1.0 - 1.0 / mu2);
        Some(Self {
            mu1,
            ln_q,
            ln_wins,
            ln_a: ln_wins - ln_one_minus_exp(moved),
            ln_b: mu1 / variance - ln_q / mu2,
        })
    }

    /// `q <= e^((μ₂-1)ε₂) (μ₁/(μ₁-1) · μ₂/(μ₂-1))^(-μ₂)`, and `A` is positive.
    fn holds(&self, sigma: f64) -> bool {
        let (mu1, mu2) = (self.mu1, self.mu1 - 1.0);
        let epsilon2 = mu2 / (sigma * sigma);
        let room = libm::log1p(1.0 / (mu1 - 1.0)) + libm::log1p(1.0 / (mu2 - 1.0));
        self.ln_q <= (mu2 - 1.0) * epsilon2 - mu2 * room && -self.ln_q > epsilon2
    }

    fn at(&self, order: f64) -> f64 {
        let power = order - 1.0;
        let wins = self.ln_wins + power * self.ln_a;
        let loses = self.ln_q + power * self.ln_b;
        (ln_add_exp(wins, loses) / power).max(0.0)
    }
}

/// Theorem 6 at one `q`, whether its conditions hold or not; infinite where it has no meaning.
pub(crate) fn unchecked(ln_q: f64, sigma: f64, order: f64) -> f64 {
    Dependent::new(ln_q, sigma).map_or(f64::INFINITY, |found| found.at(order))
}

/// Whether Theorem 6 may be used at this `q` for this order.
pub(crate) fn is_valid(ln_q: f64, sigma: f64, order: f64) -> bool {
    Dependent::new(ln_q, sigma).is_some_and(|found| found.mu1 >= order && found.holds(sigma))
}

/// LNMax with noise of scale `λ`, where the winner loses with probability at most `q`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Laplace {
    /// The loss of one query, `2/λ`.
    epsilon: f64,
    /// `ln(1-q)`, `ln((1-q)/(1-e^ε q))` and `ln q`, where `q <= 1/(1+e^ε)`.
    dependent: Option<[f64; 3]>,
}

impl Laplace {
    /// Noise of scale `λ`.
    pub fn new(ln_q: f64, lambda: f64) -> Self {
        let epsilon = 2.0 / lambda;
        let small = ln_q <= -libm::log1p(libm::exp(epsilon));
        let ln_wins = ln_one_minus_exp(ln_q);
        let quotient = ln_wins - ln_one_minus_exp(epsilon + ln_q);
        Self {
            epsilon,
            dependent: small.then_some([ln_wins, quotient, ln_q]),
        }
    }

    /// A bound of `D_α`, for `α > 1`: the least of `ε²α/2` [BS16, Prop. 1.4], `ε`, and what `q` gives.
    pub fn at(&self, order: f64) -> f64 {
        let power = order - 1.0;
        let independent = (0.5 * self.epsilon * self.epsilon * order).min(self.epsilon);
        let dependent = self.dependent.map_or(f64::INFINITY, |[wins, quotient, q]| {
            ln_add_exp(wins + power * quotient, q + self.epsilon * power) / power
        });
        independent.min(dependent).max(0.0)
    }
}

#[cfg(test)]
#[path = "bound_test.rs"]
mod tests;
