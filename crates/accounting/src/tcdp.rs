//! # Truncated concentrated differential privacy
//! **Definition.** `M` is `(ρ, ω)`-tCDP if `D_α(M(x) ‖ M(x')) <= αρ` for all neighbours and all orders `1 < α < ω`
//! [BDRS18, Def. 1]. `ω = ∞` is zCDP.
//!
//! **Composition.** `(Σ ρ_i, min ω_i)`: divergences add, at the orders that all parts have \[BDRS18\].
//!
//! **Conversion.** For every order `1 < α < ω` the conversion of `rdp.rs` holds with the divergence `αρ`, by the
//! proof in `zcdp.rs`, which uses one order only. So the best order below `ω` is taken; the published conversion
//! \[BDRS18\] is the same with the weaker `δ = e^((α-1)(αρ-ε))` and never better.
//!
//! **Evaluation.** The slope of `ε(α)` at a fixed `δ` is `ρ + ln(αδ)/(α-1)²`, whose sign changes once, as
//! `ρ(α-1)² + ln(αδ)` grows. The best order is found by halving over floats; any order is sound, and the evaluation
//! is rounded up.

use whit_core::{Delta, Epsilon, Order, Rho, round};

use crate::rdp::{epsilon_upper, ln_delta_upper};
use crate::search::smallest_passing_f64;
use crate::{Bracket, Error, Result};

/// A truncated concentrated loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Truncated {
    /// The loss per order.
    pub rho: Rho,
    /// Orders below this have it.
    pub omega: Order,
}

/// Orders are searched up to here, or up to omega.
const ORDER_MAX: f64 = 1e300;

impl Truncated {
    /// Both on the same data. Rounds up.
    pub fn and(self, other: Self) -> Result<Self> {
        let sum = round::add_up(self.rho.value(), other.rho.value());
        let rho = Rho::new(sum).map_err(|_| Error::Unbounded { what: "finite rho" })?;
        let omega = if self.omega < other.omega {
            self.omega
        } else {
            other.omega
        };
        Ok(Self { rho, omega })
    }

    /// An upper bound of the epsilon at `delta`.
    pub fn epsilon(self, delta: Delta) -> Result<Epsilon> {
        let (rho, delta) = (self.rho.value(), delta.value());
        if rho == 0.0 {
            return Ok(Epsilon::ZERO);
        }
        if delta == 0.0 {
            return Err(Error::NeedsDelta { rho });
        }
        let slope = |alpha: f64| {
            let offset = alpha - 1.0;
            rho + (libm::log(delta) + libm::log(alpha)) / offset / offset
        };
        let alpha = self.best(|alpha| slope(alpha) >= 0.0);
        let divergence = round::mul_up(alpha, rho);
        let found = epsilon_upper(divergence, alpha, delta);
        Epsilon::new(found).map_err(|_| Error::Unbounded {
            what: "finite epsilon",
        })
    }

    /// An upper bound of the delta at `epsilon`, refused if it is not below one.
    pub fn delta(self, epsilon: Epsilon) -> Result<Delta> {
        let (rho, epsilon) = (self.rho.value(), epsilon.value());
        if rho == 0.0 {
            return Ok(Delta::ZERO);
        }
        // The slope of the logarithm of delta by the order, as in zcdp.rs.
        let slope = |alpha: f64| {
            let offset = alpha - 1.0;
            (1.0 + 2.0 * offset) * rho - epsilon - libm::log1p(1.0 / offset)
        };
        let alpha = self.best(|alpha| slope(alpha) >= 0.0);
        let ln = ln_delta_upper(round::mul_up(alpha, rho), alpha, epsilon);
        let delta = Bracket::exact(ln).exp().upper();
        Delta::new(delta).map_err(|_| Error::Unbounded {
            what: "delta below one",
        })
    }

    /// The first order at which something stops falling; the last one below omega if nothing does.
    fn best(self, rises: impl FnMut(f64) -> bool) -> f64 {
        let last = self.omega.value().next_down().min(ORDER_MAX);
        // Right next to one no order is of use; an omega there leaves one float, or none that is above one.
        let first = 1.0 + 2.0 * f64::EPSILON;
        if last <= first {
            return last.max(1.0_f64.next_up());
        }
        smallest_passing_f64(first, last, rises)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zcdp;

    fn truncated(rho: f64, omega: f64) -> Truncated {
        Truncated {
            rho: Rho::new(rho).expect("finite"),
            omega: Order::new(omega).expect("above one"),
        }
    }

    fn delta(value: f64) -> Delta {
        Delta::new(value).expect("below one")
    }

    /// An omega beyond the best order is zCDP.
    #[test]
    fn far_truncation_is_none() {
        for rho in [1e-6, 0.02, 0.5, 10.0] {
            for target in [1e-300, 1e-12, 1e-5, 0.1] {
                let whole = zcdp::epsilon(Rho::new(rho).expect("finite"), delta(target));
                let whole = whole.expect("finite").value();
                let cut = truncated(rho, 1e200)
                    .epsilon(delta(target))
                    .expect("finite");
                assert!(
                    (cut.value() - whole).abs() <= 1e-9 * whole + 1e-12,
                    "{rho} {target}"
                );
            }
        }
    }

    /// The formula of the paper, with the weaker constant.
    #[test]
    fn never_above_the_published_conversion() {
        for rho in [1e-4, 0.1, 2.0] {
            for omega in [1.5, 3.0, 20.0, 500.0] {
                for target in [1e-30_f64, 1e-9, 1e-3] {
                    let ln = (1.0 / target).ln();
                    let published = if ln <= (omega - 1.0) * (omega - 1.0) * rho {
                        rho + 2.0 * (rho * ln).sqrt()
                    } else {
                        rho * omega + ln / (omega - 1.0)
                    };
                    let found = truncated(rho, omega)
                        .epsilon(delta(target))
                        .expect("finite");
                    assert!(
                        found.value() <= published,
                        "{rho} {omega} {target}: {found}"
                    );
                    // It holds: delta at that epsilon is within the target.
                    let back = truncated(rho, omega).delta(found).expect("below one");
                    assert!(
                        back.value() <= target * (1.0 + 1e-9),
                        "{rho} {omega} {target}: {back}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_shorter_range_costs_more() {
        let mut last = 0.0;
        for omega in [1e6, 100.0, 20.0, 5.0, 2.0, 1.1] {
            let found = truncated(0.1, omega)
                .epsilon(delta(1e-8))
                .expect("finite")
                .value();
            assert!(found >= last, "{omega}");
            last = found;
        }
    }

    #[test]
    fn composition_adds_and_truncates() {
        let both = truncated(0.1, 30.0)
            .and(truncated(0.2, 7.0))
            .expect("finite");
        assert!(both.rho.value() >= 0.3 && both.rho.value() < 0.300_000_01);
        assert_eq!(both.omega.value(), 7.0);
        assert!(
            truncated(f64::MAX, 2.0)
                .and(truncated(f64::MAX, 2.0))
                .is_err()
        );
    }

    #[test]
    fn extremes() {
        assert_eq!(truncated(0.0, 2.0).epsilon(Delta::ZERO), Ok(Epsilon::ZERO));
        assert_eq!(
            truncated(1.0, 2.0).epsilon(Delta::ZERO),
            Err(Error::NeedsDelta { rho: 1.0 })
        );
        for rho in [1e-300, 1.0, 1e100] {
            for omega in [1.0 + 4.0 * f64::EPSILON, 1.000_001, 2.0, 1e300] {
                for target in [5e-324, 1e-300, 0.9] {
                    let found = truncated(rho, omega)
                        .epsilon(delta(target))
                        .expect("finite");
                    assert!(found.value() >= 0.0, "{rho} {omega} {target}");
                }
                let _ = truncated(rho, omega).delta(Epsilon::ZERO);
                let far = truncated(rho, omega).delta(Epsilon::new(1e300).expect("finite"));
                assert!(far.map_or(0.0, Delta::value) <= 0.99);
            }
        }
    }
}
