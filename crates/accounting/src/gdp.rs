//! # Gaussian differential privacy
//! **Definition.** `M` is `μ`-GDP if telling neighbours apart is at least as hard as telling `N(0, 1)` from
//! `N(μ, 1)`: every test with false positive rate `α` has a false negative rate of at least
//! `G_μ(α) = Φ(Φ^-1(1-α) - μ)` [DRS22, Def. 2.6].
//!
//! **Composition.** `√(Σ μ_i²)`, also where later mechanisms depend on earlier answers [DRS22, Cor. 3.3]; a group of
//! `g` units has `gμ` [DRS22, Thm 2.14].
//!
//! **Conversion.** `μ`-GDP is the whole profile of `gaussian.rs`, and the same statement [DRS22, Cor. 2.13]. One pair
//! `(ε, δ)` with `δ > 0` proves no `μ`, for the mechanism may be anything at smaller deltas. Pure `ε`-DP does:
//!
//! **Pure.** `ε`-DP is `μ`-GDP with `μ = 2Φ^-1(e^ε/(1+e^ε))`, and with no smaller one.
//! *Proof.* `ε`-DP says that the false negative rate is at least `f(α) = max(0, 1 - e^ε α, e^-ε(1-α))`
//! [DRS22, Prop. 2.5]: two lines, from `(0, 1)` and from `(1, 0)`, that meet on the diagonal at `α* = 1/(1+e^ε)`.
//! `G_μ` is convex, symmetric about the diagonal and starts at `(0, 1)` too; so it is below `f` everywhere if it is
//! at `α*`. `G_μ(α*) = α*` says `Φ^-1(1-α*) - μ = -Φ^-1(1-α*)`, which is the claim.
//!
//! **How the error is bounded.** `normal.rs` encloses quantile and distribution function; everything is monotone.

use whit_core::{Delta, Epsilon, Mu};

use crate::Bracket;
use crate::gaussian::{self, Gaussian};
use crate::normal::{cdf, density, survival_quantile};

/// `√(Σ μ_i²)`.
pub fn compose(parts: impl IntoIterator<Item = Mu>) -> Bracket {
    let square = |mu: Mu| Bracket::exact(mu.value()) * mu.value().into();
    parts
        .into_iter()
        .fold(Bracket::ZERO, |sum, mu| sum + square(mu))
        .sqrt()
}

/// `δ(ε)`.
pub fn delta(mu: Bracket, epsilon: Epsilon) -> Bracket {
    Gaussian { mu }.delta(epsilon.value())
}

/// `ε(δ)`.
pub fn epsilon(mu: Bracket, delta: Delta) -> Bracket {
    Gaussian { mu }.epsilon(delta.value())
}

/// The largest `μ` all of whose mechanisms are `(ε, δ)`-DP.
pub fn of_target(epsilon: Epsilon, delta: Delta) -> Bracket {
    gaussian::mu(epsilon.value(), delta.value())
}

/// The smallest `μ` that all `ε`-DP mechanisms have.
pub fn of_pure(epsilon: Epsilon) -> Bracket {
    if epsilon == Epsilon::ZERO {
        return Bracket::ZERO;
    }
    // Far out e^ε overflows, and Φ^-1 of its inverse is at most √(2ε): S(x) <= e^(-x²/2)/2 for x >= 0.
    let loss = Bracket::exact(epsilon.value());
    let two = Bracket::exact(2.0);
    let most = two * (two * loss).sqrt();
    let meeting = Bracket::exact(1.0) / (Bracket::exact(1.0) + loss.exp());
    let found = two * survival_quantile(meeting.clamp(0.0, 0.5));
    let found = found.meet(Bracket::new(0.0, most.upper()));
    if epsilon.value() > 1e-3 {
        return found;
    }
    // Near the middle digits are lost to the one half: there Φ(x) - 1/2 = tanh(ε/2)/2 = d, and φ(0) x >= d >= φ(x) x.
    let fall = (-loss).exp_m1();
    let twice = -fall / (two + fall);
    let least = twice / (two * density(Bracket::ZERO));
    let most = twice / (two * density(Bracket::exact(2.0 * least.upper())));
    found.meet(two * Bracket::new(least.lower(), most.upper()))
}

/// The least false negative rate at a false positive rate in `[0, 1]`.
pub fn false_negatives(mu: Bracket, false_positives: Bracket) -> Bracket {
    if false_positives.upper() <= 0.0 {
        return Bracket::exact(1.0);
    }
    if false_positives.lower() >= 1.0 {
        return Bracket::ZERO;
    }
    cdf(survival_quantile(false_positives) - mu).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(value: f64) -> Bracket {
        Bracket::exact(value)
    }

    fn unit(value: f64) -> Epsilon {
        Epsilon::new(value).expect("finite")
    }

    /// Golden cases pub-069 and pub-070.
    #[test]
    fn golden_trade_offs() {
        for (mu, rate, truth) in [
            (1.0, 0.01, 0.907_637_751_926_306),
            (2.5, 0.001, 0.722_482_542_003_252_5),
        ] {
            let found = false_negatives(exact(mu), exact(rate));
            assert!(found.holds(truth), "{found:?}");
            assert!(found.relative_width() < 1e-12, "{found:?}");
        }
    }

    #[test]
    fn composition_is_pythagoras() {
        let parts = [3.0, 4.0, 12.0].map(|mu| Mu::new(mu).expect("finite"));
        assert!(compose(parts).holds(13.0) && compose(parts).relative_width() < 1e-15);
        assert_eq!(compose([]), Bracket::ZERO);
    }

    #[test]
    fn conversions_undo_each_other() {
        let target = Delta::new(1e-6).expect("1e-6");
        let mu = of_target(unit(1.0), target);
        assert!(epsilon(mu, target).holds(1.0));
        assert!(delta(mu, unit(1.0)).holds(1e-6));
    }

    /// `μ` of pure mechanisms by the definition: never above the two lines, and touching them.
    #[test]
    fn pure_mechanisms_touch_their_curve() {
        for epsilon in [1e-9, 1e-3, 0.5, 1.0, 5.0, 30.0, 600.0] {
            let mu = of_pure(unit(epsilon));
            assert!(mu.relative_width() < 1e-6, "{epsilon}: {mu:?}");
            for step in 1..200 {
                let rate = f64::from(step) / 200.0;
                let lines = (1.0 - epsilon.exp() * rate).max((-epsilon).exp() * (1.0 - rate));
                let found = false_negatives(exact(mu.upper()), exact(rate));
                assert!(found.lower() <= lines.max(0.0) + 1e-15, "{epsilon} {rate}");
            }
            let meeting = 1.0 / (1.0 + epsilon.exp());
            let touched = false_negatives(mu, exact(meeting));
            assert!(
                touched.holds(meeting) || epsilon < 1e-6,
                "{epsilon}: {touched:?}"
            );
        }
        assert_eq!(of_pure(Epsilon::ZERO), Bracket::ZERO);
        let huge = of_pure(unit(1e300));
        assert!(huge.lower() <= 1.4e150 * 2.0 && huge.upper().is_finite());
        // A pure mechanism's profile is below that of its μ.
        let response =
            |epsilon: f64, at: f64| ((epsilon.exp() - at.exp()) / (1.0 + epsilon.exp())).max(0.0);
        for at in [0.0, 0.3, 0.9, 1.5] {
            assert!(delta(of_pure(unit(1.0)), unit(at)).upper() >= response(1.0, at));
        }
    }

    #[test]
    fn rates_have_honest_ends() {
        assert_eq!(false_negatives(exact(1.0), exact(0.0)), exact(1.0));
        assert_eq!(false_negatives(exact(1.0), exact(1.0)), Bracket::ZERO);
        assert!(false_negatives(Bracket::ZERO, exact(0.3)).holds(0.7));
        assert!(false_negatives(exact(100.0), exact(1e-300)).upper() < 1e-300);
        assert!(false_negatives(exact(1e300), exact(0.5)).upper() <= 5e-324);
    }
}
