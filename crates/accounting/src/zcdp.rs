//! # Zero-concentrated differential privacy
//! **Definition.** `M` is `ρ`-zCDP if `D_α(M(x) ‖ M(x')) <= α ρ` for all neighbours and all orders `α > 1`, where
//! `D_α(P ‖ Q) = ln E_Q[(P/Q)^α]/(α-1)` is the Rényi divergence. [BS16, Def. 1.1]
//!
//! **Discrete Gaussian** of scale `σ` in each coordinate, independently, on integer vectors at most `Δ` apart in L2:
//! `ρ = Δ²/(2σ²)`. [CKS20, Thm 4 for one coordinate]
//! *Proof.* One coordinate, integers `u, v` [CKS20, Prop. 5]: completing the square,
//! `E_Q[(P/Q)^α] = exp(α(α-1)(u-v)²/(2σ²)) θ(c)/θ(0)`, where `θ(c) = Σ_{y∈ℤ} exp(-(y-c)²/(2σ²))` and `c = αu + (1-α)v`.
//! By Poisson summation `θ(c) = Σ_k a_k cos(2πkc)` with all `a_k > 0`, so `θ(c) <= θ(0)` and `D_α <= α(u-v)²/(2σ²)`.
//! Many coordinates: the divergence of product distributions is the sum of the divergences, `Σ_j α(u_j-v_j)²/(2σ²)
//! = α‖u-v‖²/(2σ²)`, whatever their number.
//!
//! **Gaussian** noise of scale `σ` on real vectors: the same, with integrals for sums and `θ` constant. [BS16, Prop. 1.6] A function
//! of what was released has no larger divergences. **Sampled** Gaussians: `event_sampled.rs`.
//!
//! **Pure `ε`-DP** gives `ρ = min(ε²/2, ε)`. The first is [BS16, Prop. 1.4]; the second holds since
//! `D_α <= D_∞ <= ε <= αε`.
//!
//! **Bounded range `ε`** gives `ρ = min(ε²/8, ε)`, by the proof in `bounded_range.rs`; `ε`-DP alone does not.
//! [CR21, Lem. 3.2 and 3.4]
//!
//! What has a delta has no `ρ`: on an event of that probability the loss may be infinite, and with it every divergence.
//!
//! **Composition** adds: divergences of product distributions add. [BS16, Lem. 1.7]
//!
//! **Conversion.** `ρ`-zCDP is `(ε, δ)`-DP with, for every `α > 1`,
//! `δ = exp((α-1)(αρ-ε)) · (1-1/α)^α/(α-1)`. [CKS20, Prop. 12 and Cor. 13]
//! *Proof.* The smallest `δ` for a pair is `sup_S P(S) - e^ε Q(S) = E_P[(1 - e^{ε-L})₊]`, where `L = ln(P/Q)`. For
//! `u > 0` let `x = e^{-u}`: `(1-e^{-u}) e^{-(α-1)u} = (1-x) x^{α-1}` is largest at `x = 1-1/α`, where it is
//! `c = (1/α)(1-1/α)^{α-1} = (1-1/α)^α/(α-1)`. With `u = L-ε`, `(1-e^{ε-L})₊ <= c e^{(α-1)(L-ε)}` for every `L`, and
//! taking expectations, `δ <= c e^{-(α-1)ε} E_P[(P/Q)^{α-1}] = c e^{(α-1)(D_α(P‖Q)-ε)} <= c e^{(α-1)(αρ-ε)}`.
//!
//! **Evaluation.** With `t = α-1`, `ln δ = t((1+t)ρ-ε) - ln(1+t) - t ln(1+1/t)`: the last two never cancel. Every
//! `t > 0` gives a valid bound, so the search for the best one is free to err; the evaluation at the one it finds is
//! rounded up at every step. Its derivative `(1+2t)ρ - ε - ln(1+1/t)` increases in `t`, so the best `t` is its only root.

use whit_core::{Delta, Epsilon, Mechanism, Rho, round};

use crate::logarithm::log1p_down;
use crate::search::smallest_passing_f64;
use crate::{Error, Result, bounded_range, event_sampled, pure};

/// Where the order `1 + t` is searched. Losses and epsilons whose best order lies outside get a valid, looser bound.
const ORDER_OFFSETS: (f64, f64) = (f64::MIN_POSITIVE, 1e300);

/// `ln` of the smallest positive float is -744.44…; below this, that float is an upper bound.
const LN_UNDERFLOW: f64 = -745.0;

/// An upper bound of the concentrated loss of `mechanism`.
pub fn rho(mechanism: &Mechanism) -> Result<Rho> {
    match mechanism {
        Mechanism::DiscreteGaussian {
            scale,
            sensitivity_l2_square,
            ..
        }
        | Mechanism::Gaussian {
            scale,
            sensitivity_l2_square,
        } => {
            let variance = scale.ratio() * scale.ratio();
            let twice = &variance + &variance;
            let loss = sensitivity_l2_square.checked_div(&twice);
            bounded(loss.expect("a scale is positive").to_f64_up())
        }
        Mechanism::Sampled { .. } => bounded(event_sampled::Run::read(mechanism)?.rho_upper()),
        Mechanism::DiscreteLaplace { .. }
        | Mechanism::RandomizedResponse { .. }
        | Mechanism::Pure { .. } => of_pure(mechanism),
        // Its divergences are not in proportion to their orders: only where it is pure there is a number for all of them.
        Mechanism::BestOf { .. } => of_pure(mechanism).map_err(|error| match error {
            Error::NoGuarantee { .. } => Error::NoGuarantee {
                mechanism: pure::name(mechanism),
                notion: "concentrated loss",
            },
            other => other,
        }),
        Mechanism::BoundedRange { .. } => {
            bounded(bounded_range::rho_upper(pure::epsilon(mechanism)?.value()))
        }
        Mechanism::Concentrated { rho } => bounded(rho.to_f64_up()),
        Mechanism::Approximate { delta, .. } | Mechanism::PartitionSelection { delta, .. }
            if delta.ratio().is_zero() =>
        {
            of_pure(mechanism)
        }
        Mechanism::Composition(parts) => {
            let none = bounded(0.0)?;
            parts.iter().try_fold(none, |sum, part| {
                bounded(round::add_up(sum.value(), rho(part)?.value()))
            })
        }
        Mechanism::Approximate { .. }
        | Mechanism::PartitionSelection { .. }
        | Mechanism::Close { .. } => Err(Error::NoGuarantee {
            mechanism: pure::name(mechanism),
            notion: "concentrated loss",
        }),
        unknown => Err(Error::UnknownMechanism {
            mechanism: pure::name(unknown),
        }),
    }
}

/// An upper bound of the delta that a loss of `rho` has at `epsilon`. Refused if it is not below one.
pub fn delta(rho: Rho, epsilon: Epsilon) -> Result<Delta> {
    Delta::new(delta_upper(rho.value(), epsilon.value())).map_err(|_| Error::Unbounded {
        what: "delta below one",
    })
}

/// The smallest epsilon at which [`delta`] was seen not to exceed the given one.
pub fn epsilon(rho: Rho, delta: Delta) -> Result<Epsilon> {
    let (rho, delta) = (rho.value(), delta.value());
    let passes = |epsilon| delta_upper(rho, epsilon) <= delta;
    if passes(0.0) {
        return Ok(Epsilon::ZERO);
    }
    if delta == 0.0 {
        return Err(Error::NeedsDelta { rho });
    }
    if !passes(f64::MAX) {
        return Err(Error::Unbounded {
            what: "finite epsilon",
        });
    }
    let smallest = smallest_passing_f64(0.0, f64::MAX, passes);
    Ok(Epsilon::new(smallest)?)
}

/// `min(ε²/2, ε)`, rounded up, for a mechanism of which only its pure epsilon is used.
fn of_pure(mechanism: &Mechanism) -> Result<Rho> {
    let epsilon = pure::epsilon(mechanism)?.value();
    let half_square = round::mul_up(round::mul_up(epsilon, epsilon), 0.5);
    bounded(half_square.min(epsilon))
}

fn bounded(rho: f64) -> Result<Rho> {
    Rho::new(rho).map_err(|_| Error::Unbounded { what: "finite rho" })
}

/// The conversion at the best order, rounded up. Zero only for no loss at all; one or more says nothing.
fn delta_upper(rho: f64, epsilon: f64) -> f64 {
    if rho == 0.0 {
        // Neighbours have the same output distribution.
        return 0.0;
    }
    let slope = |t: f64| (1.0 + 2.0 * t) * rho - epsilon - libm::log1p(1.0 / t);
    let (least, most) = ORDER_OFFSETS;
    let t = smallest_passing_f64(least, most, |t| slope(t) >= 0.0);
    let ln_delta = ln_delta_upper(rho, epsilon, t);
    if ln_delta < LN_UNDERFLOW {
        f64::from_bits(1)
    } else {
        round::exp_up(ln_delta)
    }
}

/// `t((1+t)ρ-ε) - ln(1+t) - t ln(1+1/t)`, rounded up. All factors outside the inner bracket are positive, so an upper
/// end of the bracket gives an upper end of the whole; overflows give `+∞` or the lowest float, never NaN.
fn ln_delta_upper(rho: f64, epsilon: f64, t: f64) -> f64 {
    let bracket = round::sub_up(round::mul_up(round::add_up(1.0, t), rho), epsilon);
    let gain = log1p_down(t);
    let more_gain = round::mul_down(t, log1p_down(round::div_down(1.0, t)));
    round::sub_up(round::sub_up(round::mul_up(t, bracket), gain), more_gain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_core::{Probability, Ratio, Scale};

    fn gaussian(scale: f64, sensitivity_l2_square: u64) -> Mechanism {
        let scale = Ratio::from_f64(scale).expect("finite");
        Mechanism::DiscreteGaussian {
            scale: Scale::new(scale).expect("in range"),
            sensitivity_l2_square: Ratio::from(sensitivity_l2_square),
            coordinates: 1,
        }
    }

    fn laplace(scale: f64) -> Mechanism {
        let scale = Ratio::from_f64(scale).expect("finite");
        Mechanism::DiscreteLaplace {
            scale: Scale::new(scale).expect("in range"),
            sensitivity_l1: Ratio::one(),
            coordinates: 1,
        }
    }

    fn delta_at(rho: f64, epsilon: f64) -> Result<f64> {
        let (rho, epsilon) = (Rho::new(rho)?, Epsilon::new(epsilon)?);
        delta(rho, epsilon).map(Delta::value)
    }

    fn epsilon_at(rho: f64, delta: f64) -> Result<f64> {
        epsilon(Rho::new(rho)?, Delta::new(delta)?).map(Epsilon::value)
    }

    #[test]
    fn closed_forms_of_rho() {
        let at = |mechanism: &Mechanism| rho(mechanism).expect("concentrated").value();
        assert_eq!(at(&gaussian(1.0, 1)), 0.5);
        assert_eq!(at(&gaussian(2.0, 3)), 0.375);
        assert_eq!(at(&gaussian(3.0, 0)), 0.0);
        assert_eq!(at(&laplace(2.0)), 0.125);
        assert_eq!(
            at(&laplace(0.125)),
            8.0,
            "epsilon itself is smaller than half its square"
        );
        let both = Mechanism::Composition(vec![gaussian(1.0, 1), laplace(2.0)]);
        assert_eq!(at(&both), 0.625);
        let third = at(&gaussian(3.0, 3));
        assert!(Ratio::from_f64(third).expect("finite") > Ratio::new(1, 6).expect("6"));
    }

    #[test]
    fn what_is_only_close_is_refused() {
        let close = Mechanism::Close {
            inner: Box::new(gaussian(1.0, 1)),
            total_variation: Probability::new(Ratio::power_of_two(-60)).expect("at most one"),
        };
        assert!(matches!(rho(&close), Err(Error::NoGuarantee { .. })));
    }

    /// The formula of the module text, evaluated naively over a grid of orders: no order does better, the best as well.
    #[test]
    fn the_order_is_the_best_one() {
        for (rho, epsilon) in [(0.5, 5.0), (0.02, 0.5), (3.0, 9.0), (0.5, 0.1)] {
            let formula = |alpha: f64| {
                ((alpha - 1.0) * (alpha * rho - epsilon)).exp() / (alpha - 1.0)
                    * (1.0 - 1.0 / alpha).powf(alpha)
            };
            let grid = (1..200_000).map(|step| formula(1.0 + f64::from(step) * 1e-3));
            let best = grid.fold(f64::INFINITY, f64::min);
            let found = delta_at(rho, epsilon).expect("below one");
            assert!(
                found <= best * (1.0 + 1e-9) && found >= best * 0.999,
                "{found} {best}"
            );
        }
    }

    #[test]
    fn the_epsilon_passes_its_own_check() {
        for rho in [1e-300, 1e-9, 0.02, 0.5, 7.0, 1e5, 1e100] {
            for delta in [5e-324, 1e-300, 1e-15, 1e-6, 0.1, 0.9] {
                let epsilon = epsilon_at(rho, delta).expect("finite");
                assert!(
                    delta_at(rho, epsilon).expect("below one") <= delta,
                    "{rho} {delta}"
                );
                if epsilon > 0.0 {
                    let below = epsilon * (1.0 - 1e-9);
                    let tight = delta_at(rho, below).map_or(true, |found| found > delta);
                    assert!(tight, "{rho} {delta}: {epsilon} could be smaller");
                }
            }
        }
    }

    #[test]
    fn no_loss_costs_nothing_and_any_loss_something() {
        assert_eq!(
            (delta_at(0.0, 0.0), epsilon_at(0.0, 0.0)),
            (Ok(0.0), Ok(0.0))
        );
        for rho in [5e-324, 1e-300, 1.0] {
            assert_eq!(epsilon_at(rho, 0.0), Err(Error::NeedsDelta { rho }));
            for epsilon in [0.0, 1.0, 1e300, f64::MAX] {
                assert!(delta_at(rho, epsilon).expect("below one") > 0.0);
            }
        }
    }

    #[test]
    fn extremes_stay_upper_bounds() {
        // The truth is about 0.86 √ρ for a tiny ρ at ε = 0; total variation alone is √(ρ/π) for a Gaussian.
        let tiny = delta_at(1e-300, 0.0).expect("below one");
        assert!((5.6e-151..1e-150).contains(&tiny), "{tiny:e}");
        // With a loss this large every delta below one is wrong, and so is every small epsilon.
        for rho in [1e3, 1e300, f64::MAX] {
            assert!(matches!(delta_at(rho, 0.0), Err(Error::Unbounded { .. })));
        }
        assert!(epsilon_at(1e300, 1e-6).expect("finite") > 1e300);
        assert!(matches!(
            epsilon_at(f64::MAX, 1e-6),
            Err(Error::Unbounded { .. })
        ));
        // Beyond the floats a positive delta is still reported as positive.
        assert_eq!(delta_at(1.0, 1e6), Ok(5e-324));
        assert_eq!(delta_at(1e-300, 1e300), Ok(5e-324));
    }
}
