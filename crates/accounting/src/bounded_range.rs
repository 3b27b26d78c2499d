//! # Bounded range
//! **Definition.** `M` has range `ε` if, for all neighbours `x, x'`, the loss `L(y) = ln(Pr[M(x) = y]/Pr[M(x') = y])` of
//! all outputs `y` that one of the two can give is finite and lies in one interval `[a, a+ε]`, where `a` may depend on
//! `x` and `x'`. (Densities stand for probabilities where outputs cannot be counted.) [DDR20, Def. of bounded range]
//!
//! **The exponential mechanism** with `Pr[y] ∝ exp(ε q(x,y)/(2Δ))`, where `|q(x,y) - q(x',y)| <= Δ`, has range `ε`.
//! *Proof.* `L(y) = ε (q(x,y) - q(x',y))/(2Δ) + c`, where `c` is the logarithm of the ratio of the normalizers, the same
//! for every `y`; the first term lies in `[-ε/2, ε/2]`.
//!
//! **It is `ε`-DP.** *Proof.* With `P = M(x)` and `Q = M(x')`, `E_Q[e^L] = Σ_y P(y) = 1`, so `L` is neither everywhere
//! above nor everywhere below zero: `a <= 0 <= a+ε`, and `-ε <= L <= ε`.
//!
//! **It is `ε²/8`-zCDP**: `D_α(M(x) ‖ M(x')) <= α ε²/8` for every `α > 1`. [CR21, Lem. 3.2 and 3.4]
//! *Proof.*
//! 1. Let `K(s) = ln E_Q[e^{sL}]`. Since `L` is bounded, `K` is finite and may be differentiated under the expectation.
//!    `K(0) = 0`, `K(1) = ln Σ_y P(y) = 0`, and `K(α) = ln E_Q[(P/Q)^α] = (α-1) D_α(P ‖ Q)`.
//! 2. `K''(s)` is the variance of `L` under the distribution `∝ Q e^{sL}`. That lives on `[a, a+ε]` as well, and the
//!    variance is at most the mean square distance from the interval's middle: `K''(s) <= ε²/4`. (Hoeffding's lemma.)
//! 3. Fix `α > 1`, let `c = K(α)/(α(α-1))` and `F(s) = K(s) - c s(s-1)`. `F` is zero at `0`, `1` and `α`, so by Rolle's
//!    theorem `F'` is zero at two places and `F''` at one, say `ξ`: `K''(ξ) = 2c`. Hence `c <= ε²/8`.
//! 4. `D_α(P ‖ Q) = K(α)/(α-1) = c α <= α ε²/8`. Exchanging `P` and `Q` turns `L` into `-L`, whose range is the same.
//!
//! **Never from `ε`-DP alone.** All that `ε`-DP says is that `L` lies in `[-ε, ε]`, a range of `2ε`, for which the same
//! proof gives `(2ε)²/8 = ε²/2`. Randomized response and permute-and-flip (report noisy max with exponential noise) use
//! it up, the latter for small `ε`: the tests below show both above `ε²/8`.

use whit_core::round;

/// `min(ε²/8, ε)`, rounded up; the latter since `D_α <= ε <= αε`.
pub(crate) fn rho_upper(epsilon: f64) -> f64 {
    let square = round::mul_up(epsilon, epsilon);
    round::mul_up(square, 0.125).min(epsilon)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zcdp;
    use proptest::prelude::*;
    use whit_core::{Mechanism, Ratio};

    /// Orders next to one, where the bound is sharpest, up to where the loss itself is all there is.
    const ORDERS: [f64; 9] = [1.001, 1.1, 1.5, 2.0, 3.0, 5.0, 10.0, 50.0, 1000.0];
    /// Room for the plain floats of [`divergence`].
    const ROOM: f64 = 1e-9;

    fn ratio(value: f64) -> Ratio {
        Ratio::from_f64(value).expect("finite and not negative")
    }

    fn bounded_range(epsilon: f64) -> f64 {
        let epsilon = ratio(epsilon);
        let rho = zcdp::rho(&Mechanism::BoundedRange { epsilon });
        rho.expect("concentrated").value()
    }

    fn pure(epsilon: f64) -> f64 {
        let epsilon = ratio(epsilon);
        let rho = zcdp::rho(&Mechanism::Pure { epsilon });
        rho.expect("concentrated").value()
    }

    fn ln_sum_exp(terms: &[f64]) -> f64 {
        let most = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        most + terms
            .iter()
            .map(|term| (term - most).exp())
            .sum::<f64>()
            .ln()
    }

    /// Logarithms of the probabilities that are proportional to the exponentials of `scores`.
    fn normalized(scores: &[f64]) -> Vec<f64> {
        let total = ln_sum_exp(scores);
        scores.iter().map(|score| score - total).collect()
    }

    /// The Rényi divergence of order `alpha`, by its definition, from logarithms of probabilities.
    fn divergence(p: &[f64], q: &[f64], alpha: f64) -> f64 {
        let terms: Vec<f64> = p
            .iter()
            .zip(q)
            .map(|(p, q)| alpha * p + (1.0 - alpha) * q)
            .collect();
        ln_sum_exp(&terms) / (alpha - 1.0)
    }

    fn largest_loss(p: &[f64], q: &[f64]) -> f64 {
        p.iter()
            .zip(q)
            .map(|(p, q)| (p - q).abs())
            .fold(0.0, f64::max)
    }

    #[test]
    fn closed_forms() {
        assert_eq!((bounded_range(1.0), pure(1.0)), (0.125, 0.5));
        assert_eq!((bounded_range(0.5), pure(0.5)), (0.03125, 0.125));
        assert_eq!((bounded_range(0.0), pure(0.0)), (0.0, 0.0));
        // The loss itself takes over at 8 and at 2.
        assert_eq!((bounded_range(8.0), pure(2.0)), (8.0, 2.0));
        assert_eq!((bounded_range(20.0), pure(20.0)), (20.0, 20.0));
        assert_eq!(bounded_range(f64::MAX), f64::MAX);
    }

    #[test]
    fn rounding_goes_up() {
        for value in [0.1, 0.3, 1.0 / 3.0, 7.7, 1e-170, 5e-324] {
            let exact = &(&ratio(value) * &ratio(value)) * &Ratio::power_of_two(-3);
            let found = bounded_range(value);
            assert!(ratio(found) >= exact, "{value}: {found:e}");
            assert!(found <= exact.to_f64_up() * (1.0 + 1e-15) + 2e-323);
        }
    }

    proptest! {
        /// Every neighbour of every score vector: nine orders, both directions.
        #[test]
        fn exponential_mechanisms_keep_within_an_eighth_of_the_square(
            scores in prop::collection::vec((-10.0_f64..10.0, -1.0_f64..1.0), 2..12),
            extreme: bool,
            epsilon in (0.05_f64.ln()..12.0_f64.ln()).prop_map(f64::exp),
        ) {
            let moved = |step: f64| if extreme { step.signum() } else { step };
            let here: Vec<f64> = scores.iter().map(|(score, _)| epsilon / 2.0 * score).collect();
            let there: Vec<f64> =
                scores.iter().map(|(score, step)| epsilon / 2.0 * (score + moved(*step))).collect();
            let (p, q) = (normalized(&here), normalized(&there));
            prop_assert!(largest_loss(&p, &q) <= epsilon + ROOM);
            let rho = bounded_range(epsilon);
            for alpha in ORDERS {
                prop_assert!(divergence(&p, &q, alpha) <= alpha * rho + ROOM);
                prop_assert!(divergence(&q, &p, alpha) <= alpha * rho + ROOM);
            }
        }

        /// The same for `ε`-DP channels of which nothing else is known: any two log-ratios in `[-ε, ε]` that can be had.
        #[test]
        fn pure_channels_keep_within_half_the_square(
            epsilon in (0.05_f64.ln()..6.0_f64.ln()).prop_map(f64::exp),
            low in -1.0_f64..-0.01,
            high in 0.01_f64..1.0,
        ) {
            let (low, high) = (epsilon * low, epsilon * high);
            // Q(first) e^high + (1 - Q(first)) e^low = 1.
            let first = -low.exp_m1() / (high.exp() - low.exp());
            let q = [first.ln(), (-first).ln_1p()];
            let p = [q[0] + high, q[1] + low];
            for alpha in ORDERS {
                prop_assert!(divergence(&p, &q, alpha) <= alpha * pure(epsilon) + ROOM);
            }
        }
    }

    /// Two outputs whose losses are `±ε/2`: next to order one nothing is left over.
    #[test]
    fn an_eighth_of_the_square_is_tight_for_small_losses() {
        let epsilon = 0.1;
        let (p, q) = (
            normalized(&[epsilon / 2.0, 0.0]),
            normalized(&[0.0, epsilon / 2.0]),
        );
        let share = divergence(&p, &q, 1.001) / (1.001 * bounded_range(epsilon));
        assert!((0.998..=1.0).contains(&share), "{share}");
    }

    /// Randomized response is `ε`-DP, and nearly four times as far apart as bounded range would allow.
    #[test]
    fn randomized_response_breaks_an_eighth_of_the_square() {
        for epsilon in [0.1, 0.5, 1.0, 2.0, 4.0, 6.0] {
            let (p, q) = (normalized(&[epsilon, 0.0]), normalized(&[0.0, epsilon]));
            assert!((largest_loss(&p, &q) - epsilon).abs() < 1e-12);
            for alpha in [1.001, 1.1, 1.2] {
                let found = divergence(&p, &q, alpha);
                assert!(
                    found > alpha * rho_upper(epsilon) + ROOM,
                    "{epsilon} {alpha}"
                );
                assert!(found <= alpha * pure(epsilon) + ROOM, "{epsilon} {alpha}");
            }
        }
        let (p, q) = (normalized(&[0.1, 0.0]), normalized(&[0.0, 0.1]));
        assert!(divergence(&p, &q, 1.001) > 3.98 * 1.001 * rho_upper(0.1));
    }

    /// Permute-and-flip among two: the worse one, `gap` behind in sensitivities, wins with half of `e^{-ε gap/2}`.
    /// Neighbours may close a gap of two. It is `ε`-DP, but charging it `ε²/8` would be unsound.
    #[test]
    fn permute_and_flip_breaks_an_eighth_of_the_square() {
        let channel = |epsilon: f64, gap: f64| {
            let worse = (-epsilon * gap / 2.0).exp() / 2.0;
            [worse.ln(), (-worse).ln_1p()]
        };
        for epsilon in [0.1, 0.5, 1.0, 1.5, 2.0] {
            let (p, q) = (channel(epsilon, 0.0), channel(epsilon, 2.0));
            assert!((largest_loss(&p, &q) - epsilon).abs() < 1e-12);
            let range = (p[0] - q[0]) - (p[1] - q[1]);
            let expected = epsilon + (2.0 - (-epsilon).exp()).ln();
            assert!((range - expected).abs() < 1e-12, "{epsilon}: {range}");
            let found = divergence(&p, &q, 1.001);
            assert!(found > 1.001 * rho_upper(epsilon) + ROOM, "{epsilon}");
            assert!(found <= 1.001 * pure(epsilon) + ROOM, "{epsilon}");
        }
    }
}
