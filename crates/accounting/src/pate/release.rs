//! # What publishing a cost costs
//! **Release.** `f(D) + N(0, (σ S(D))²)`, with `S` a `β`-smooth bound of the local sensitivity of `f`.
//!
//! **Theorem.** For `1 < α < 1/(1-e^(-2β))` let `r = 1 - α(1-e^(-2β)) > 0`. Then
//! `D_α <= α e^(-2β)/(2σ² r) + (-½ ln r - αβ)/(α-1)`, and there are functions and bounds that reach it.
//! *Proof.* The outputs of neighbours are `N(f, s²)` and `N(f', s'²)` with `s = σS`, `s' = s e^t`, `|t| <= β`, and
//! `|f-f'| <= min(S, S') = (s/σ) min(1, e^t)`. With `s*² = (1-α)s² + αs'² = s²(1-α+αe^(2t))`, completing the square gives
//! `D_α = α(f-f')²/(2s*²) + (αt - ½ ln(s*²/s²))/(α-1)`, and infinity if `s*² <= 0`.
//! 1. The first term. For `t <= 0` it is at most `α/(2σ²(α - (α-1)e^(-2t)))`, for `t >= 0` at most `α/(2σ²(1-α+αe^(2t)))`: largest at `t = -β`, where it is the claim's.
//! 2. The second, `h(t)`, has `h' = α(e^(2t)-1)/(1-α+αe^(2t))`: it falls up to 0 and grows from there. And `h(-β) >= h(β)`, that is
//!    `ln(1-α+αw) - ln(1-α+α/w) >= 4αβ` with `w = e^(2β)`: both are 0 at `β = 0`, and the left's derivative is `2α(1/a + 1/b)` with `a = α-(α-1)/w` and
//!    `b = α-(α-1)w`, whose sum is at most 2, so that `1/a + 1/b >= 4/(a+b) >= 2`. ∎
//!
//! The published cost [PSM+18, Thm 23], `αe^(2β)/σ² + (αβ - ½ ln(1-2αβ))/(α-1)`, takes the sign of `αβ` the other way around, and `S` for `S'`; for some parameters it is
//! below the true divergence, at `α = 20`, `β = 0.02`, `σ = 10` by four tenths (0.272 for 0.465). It is not used.
//!
//! **As (ε, δ).** Any order gives a bound [CKS20, Prop. 12]; the best is searched, and rounded up where it is found.

use whit_core::{Delta, Epsilon};

use super::smooth::SMOOTHNESS_SLACK;
use crate::rdp::epsilon_upper;
use crate::{Bracket, Error, Result};

/// The public parameters of a release.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Release {
    beta: f64,
    sigma: f64,
}

/// Orders that are tried for a price, evenly between the ends of their range.
const ORDERS: u32 = 400;

impl Release {
    /// Refused unless both are above zero and finite.
    pub fn new(beta: f64, sigma: f64) -> Result<Self> {
        let check = |what, found: f64| {
            if found > 0.0 && found.is_finite() {
                return Ok(());
            }
            Err(Error::OutOfRange {
                step: "a cost with noise by its smooth sensitivity",
                what,
                found,
                range: "above zero, and finite",
            })
        };
        check("beta", beta)?;
        check("noise over sensitivity", sigma)?;
        Ok(Self { beta, sigma })
    }

    /// The smoothness `β` that sensitivities must have.
    pub fn beta(&self) -> f64 {
        self.beta
    }

    /// The noise, in smooth sensitivities.
    pub fn sigma(&self) -> f64 {
        self.sigma
    }

    /// `1/(1-e^(-2β))`, from below: all orders up to here, and one at least, have a finite divergence.
    pub fn order_limit(&self) -> f64 {
        let beta = Bracket::exact(self.beta) + SMOOTHNESS_SLACK.into();
        let fall = -(Bracket::exact(-2.0) * beta).exp_m1();
        (Bracket::exact(1.0) / fall).lower()
    }

    /// `D_α`, rounded up; infinite from [`order_limit`](Self::order_limit) on.
    pub fn divergence(&self, order: f64) -> f64 {
        let exact = Bracket::exact;
        let beta = exact(self.beta) + SMOOTHNESS_SLACK.into();
        let (alpha, power) = (exact(order), exact(order) - 1.0.into());
        let fall = (exact(-2.0) * beta).exp_m1();
        let rest = exact(1.0) + alpha * fall;
        if !(order > 1.0 && rest.lower() > 0.0) {
            return f64::INFINITY;
        }
        let spread = exact(2.0) * exact(self.sigma) * exact(self.sigma) * rest;
        let shift = alpha * (exact(1.0) + fall) / spread;
        let widths = (exact(-0.5) * (alpha * fall).ln_1p() - alpha * beta) / power;
        // A divergence is not negative.
        (shift + widths.clamp(0.0, f64::INFINITY)).upper()
    }

    /// The smallest epsilon that is found at a delta above zero.
    pub fn epsilon(&self, delta: Delta) -> Result<Epsilon> {
        let limit = self.order_limit() - 1.0;
        let at = |order: f64| epsilon_upper(self.divergence(order), order, delta.value());
        let best = (1..ORDERS)
            .map(|i| at(1.0 + limit * f64::from(i) / f64::from(ORDERS)))
            .filter(|epsilon| epsilon.is_finite())
            .fold(f64::INFINITY, f64::min);
        Epsilon::new(best).map_err(|_| Error::Unbounded {
            what: "epsilon for a cost with noise by its smooth sensitivity",
        })
    }
}

#[cfg(test)]
#[path = "release_test.rs"]
mod tests;
