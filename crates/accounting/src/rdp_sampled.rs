//! # Rényi divergences of sampled Gaussians
//! Let `f_c` be the density of `N(c, σ²)`,
//! `r(x) = ((1-q) f_0 + q f_1)/f_0 = 1 - q + q e^w` with `w = (x - 1/2)/σ²`, and `r_-(x) = r(-x)`. Each pair of a
//! Poisson sample is `f_0 r_1` against `f_0 r_2`, where `(r_1, r_2)` is `(r, 1)` if a unit leaves, `(1, r)` if one
//! joins and `(r, r_-)` if one changes. With `M = ∫ f_0 r_1^α r_2^(1-α)`, `D_α = ln(M)/(α-1)`.
//!
//! **Integer orders**, unit leaves: `M = Σ_k C(α,k) (1-q)^(α-k) q^k e^(k(k-1)/(2σ²))` [MTZ19, Sec. 3.1]. The weights
//! sum to one, so `M - 1` is the same sum with `e^(…) - 1`, all terms of which are positive; it is taken in
//! logarithms.
//!
//! **Real orders.** The quadrature of `rdp_quadrature.rs`; where that is too long or overflows, the convexity of
//! `α ↦ ln M(α)` gives bounds from the integers next to the order, and quasi-convexity that of the Gaussian without
//! sampling.
//!
//! **Fixed size** `γ n` out of `n` without replacement, a unit changes, `σ` the noise over the sensitivity to that
//! change [WBK19, Thm 9]: for integers, with `ρ_j = j/(2σ²)`,
//! `M <= 1 + C(α,2) γ² min(4(e^ρ_2 - 1), 2e^ρ_2) + Σ_{j>=3} C(α,j) γ^j 2e^((j-1)ρ_j)`.

use crate::Bracket;
use crate::normal::HALF_ULP;
use crate::pair::Change;
use crate::rdp_quadrature::quadrature;

/// Integer orders beyond this have only the bound without sampling.
const ORDER_MAX: f64 = 1e5;

/// `D_α` of a Poisson sample that units enter with probability `rate`.
pub(crate) fn poisson(rate: f64, sigma: f64, change: Change, alpha: f64) -> Bracket {
    let (order, square) = (Bracket::exact(alpha), Bracket::exact(sigma) * sigma.into());
    let apart = match change {
        Change::Remove | Change::Add => Bracket::exact(1.0),
        Change::Replace => Bracket::exact(4.0),
    };
    let unsampled = apart * order / (Bracket::exact(2.0) * square);
    if rate <= 0.0 {
        return Bracket::ZERO;
    }
    if rate >= 1.0 {
        return unsampled;
    }
    let found = match change {
        Change::Remove if alpha == alpha.floor() && alpha <= ORDER_MAX => {
            binomial(rate, sigma, alpha) / (order - 1.0.into())
        }
        _ => match quadrature(rate, sigma, change, alpha) {
            Some(gain) => gain.ln_1p() / (order - 1.0.into()),
            None => interpolated(rate, sigma, change, alpha),
        },
    };
    found.meet(Bracket::new(0.0, unsampled.upper()))
}

/// Between integer orders. A unit that joins sees at most what one that leaves sees [MTZ19, Sec. 3.1].
fn interpolated(rate: f64, sigma: f64, change: Change, alpha: f64) -> Bracket {
    if change == Change::Replace || alpha > ORDER_MAX {
        return Bracket::new(0.0, f64::INFINITY);
    }
    let below = alpha.floor();
    let (low, high) = (
        binomial(rate, sigma, below),
        binomial(rate, sigma, below + 1.0),
    );
    let share = Bracket::exact(alpha) - below.into();
    let between = low + (high - low) * share;
    // Divergences grow with the order.
    let lower = if change == Change::Remove && below > 1.0 {
        (low / Bracket::exact(below - 1.0)).lower()
    } else {
        0.0
    };
    let upper = (between / (Bracket::exact(alpha) - 1.0.into())).upper();
    Bracket::new(lower.min(upper), upper)
}

/// `ln M` at an integer order, for a unit that leaves.
pub(crate) fn binomial(rate: f64, sigma: f64, alpha: f64) -> Bracket {
    if alpha < 2.0 {
        return Bracket::ZERO;
    }
    let (ln_in, ln_out) = (libm::log(rate), libm::log1p(-rate));
    let mut terms = Terms::default();
    let mut choose = LogTerm::default();
    let (mut k, twice) = (1.0, 2.0 * sigma * sigma);
    choose.add(libm::log(alpha));
    while k < alpha {
        choose.add(libm::log((alpha - k) / (k + 1.0)));
        k += 1.0;
        let power = k * (k - 1.0) / twice;
        let mut term = choose;
        term.add(k * ln_in);
        term.add((alpha - k) * ln_out);
        term.add(power);
        term.add(ln_expm1(power) - power);
        terms.0.push(term);
    }
    ln_one_plus(terms.ln_sum())
}

/// An upper bound of `D_α` for a sample of fixed size, `rate` its share.
pub(crate) fn fixed_size(rate: f64, sigma: f64, alpha: f64) -> f64 {
    let (order, square) = (Bracket::exact(alpha), Bracket::exact(sigma) * sigma.into());
    let unsampled = (order / (Bracket::exact(2.0) * square)).upper();
    if rate <= 0.0 || rate >= 1.0 || alpha > ORDER_MAX {
        return if rate <= 0.0 { 0.0 } else { unsampled };
    }
    let below = alpha.floor();
    let (low, high) = (
        fixed_size_ln(rate, sigma, below),
        fixed_size_ln(rate, sigma, below + 1.0),
    );
    let share = order - below.into();
    let between = if share == Bracket::ZERO {
        low
    } else {
        low * (Bracket::exact(1.0) - share) + high * share
    };
    (between / (order - 1.0.into())).upper().min(unsampled)
}

/// The bound of `ln M` at an integer order.
fn fixed_size_ln(rate: f64, sigma: f64, alpha: f64) -> Bracket {
    if alpha < 2.0 {
        return Bracket::ZERO;
    }
    let (ln_in, twice) = (libm::log(rate), 2.0 * sigma * sigma);
    let mut terms = Terms::default();
    let mut choose = LogTerm::default();
    choose.add(libm::log(alpha));
    let mut k = 1.0;
    while k < alpha {
        choose.add(libm::log((alpha - k) / (k + 1.0)));
        k += 1.0;
        let mut term = choose;
        term.add(k * ln_in);
        let whole = k * (k - 1.0) / twice;
        if k == 2.0 {
            let (narrow, wide) = (
                libm::log(4.0) + ln_expm1(whole),
                std::f64::consts::LN_2 + whole,
            );
            term.add(narrow.min(wide));
            // The two numbers above have roundings of their own.
            term.error += 8.0 * HALF_ULP * (whole + libm::log(4.0) + (narrow - whole).abs());
        } else {
            term.add(std::f64::consts::LN_2);
            term.add(whole);
        }
        terms.0.push(term);
    }
    ln_one_plus(terms.ln_sum())
}

/// `ln(e^x - 1)` for `x > 0`. Relative to `x` and to its distance from `x`, it errs by a few units.
fn ln_expm1(x: f64) -> f64 {
    if x < 1.0 {
        libm::log(libm::expm1(x))
    } else {
        x + libm::log1p(-libm::exp(-x))
    }
}

/// `ln(1 + e^x)`.
fn ln_one_plus(x: Bracket) -> Bracket {
    if x.upper() < 700.0 {
        x.exp().ln_1p()
    } else {
        x + Bracket::new(0.0, (-x).exp().upper())
    }
}

/// A logarithm as a sum, with a bound of its absolute error.
#[derive(Clone, Copy, Default)]
struct LogTerm {
    value: f64,
    error: f64,
}

impl LogTerm {
    /// Adds a number that errs by at most six units of itself, and one of one (as the logarithm of a quotient does).
    fn add(&mut self, other: f64) {
        self.value += other;
        self.error += HALF_ULP * (12.0 * other.abs() + 2.0 + 2.0 * self.value.abs());
    }
}

#[derive(Default)]
struct Terms(Vec<LogTerm>);

impl Terms {
    /// The logarithm of the sum of the powers. All of them are positive: one that is beyond the floats, or no number, leaves the sum unknown.
    fn ln_sum(&self) -> Bracket {
        if self.0.is_empty() {
            return Bracket::exact(f64::NEG_INFINITY);
        }
        if self.0.iter().any(|term| !term.value.is_finite()) {
            return Bracket::new(f64::NEG_INFINITY, f64::INFINITY);
        }
        let top = self
            .0
            .iter()
            .fold(f64::NEG_INFINITY, |top, term| top.max(term.value));
        let (mut sum, mut error) = (0.0, 0.0);
        for term in &self.0 {
            let power = libm::exp(term.value - top);
            sum += power;
            let room = term.error + 8.0 * HALF_ULP * (1.0 + (term.value - top).abs());
            error += power * libm::expm1(room);
        }
        let count = self.0.len() as f64;
        let relative = 1.01 * error / sum + 2.0 * count * HALF_ULP;
        let known = relative < 0.01;
        if !known {
            return Bracket::new(f64::NEG_INFINITY, f64::INFINITY);
        }
        let sum = Bracket::new(sum * (1.0 - relative), sum * (1.0 + relative));
        Bracket::exact(top) + Bracket::new(sum.lower().next_down(), sum.upper().next_up()).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By mpmath 1.3.0: adaptive quadrature of the definition with 40 digits. The first three are the golden cases
    /// pub-065 to 067.
    #[test]
    fn poisson_divergences_hold_the_truth() {
        for (rate, sigma, change, alpha, truth) in [
            (
                0.01,
                4.0,
                Change::Remove,
                32.0,
                0.000_105_263_606_590_817_26,
            ),
            (0.01, 1.1, Change::Remove, 2.5, 0.000_162_077_409_370_003_72),
            (0.004, 0.8, Change::Remove, 16.0, 6.610_441_705_211_118),
            (1e-6, 1.0, Change::Remove, 1.5, 1.288_709_630_023_207e-12),
            (1e-6, 1.0, Change::Remove, 7.3, 6.271_818_505_825_539e-12),
            (0.2, 0.6, Change::Remove, 9.5, 11.395_660_895_502_386),
            (0.5, 20.0, Change::Remove, 40.5, 0.012_980_589_464_414_797),
            (0.01, 1.1, Change::Add, 2.5, 0.000_151_656_344_912_545_53),
            (0.3, 0.7, Change::Add, 12.0, 0.246_901_477_020_621_3),
            (0.9, 2.0, Change::Add, 1.01, 0.100_036_341_117_027_25),
            (1e-6, 1.0, Change::Add, 3.0, 2.577_394_882_139_979_3e-12),
            (0.01, 1.1, Change::Replace, 2.5, 0.000_453_599_888_795_657_9),
            (0.3, 2.0, Change::Replace, 8.0, 0.390_286_123_867_778_2),
            (1e-6, 0.9, Change::Replace, 1.2, 3.775_098_788_318_811_5e-12),
        ] {
            let found = poisson(rate, sigma, change, alpha);
            let what = (rate, sigma, change, alpha);
            assert!(found.holds(truth), "{what:?}: {found:?} {truth}");
            assert!(found.relative_width() < 1e-9, "{what:?}: {found:?}");
        }
    }

    /// The binomial sum by mpmath 1.3.0 with 40 digits.
    #[test]
    fn large_integer_orders_hold_the_truth() {
        for (rate, sigma, alpha, truth) in [
            (0.01, 0.3, 256.0, 1_417.598_992_545_308_9),
            (1e-5, 5.0, 2000.0, 28.481_315_192_626_084),
            (0.5, 1.0, 3.0, 0.696_889_118_598_044),
        ] {
            let found = poisson(rate, sigma, Change::Remove, alpha);
            assert!(found.holds(truth), "{found:?} {truth}");
            assert!(found.relative_width() < 1e-11, "{found:?}");
        }
    }

    #[test]
    fn orders_rates_and_noise_are_monotone() {
        for change in [Change::Remove, Change::Add, Change::Replace] {
            let at = |rate, sigma, alpha| poisson(rate, sigma, change, alpha);
            let mut last = 0.0;
            for alpha in [
                1.0001, 1.01, 1.5, 2.0, 2.5, 3.0, 10.5, 60.0, 60.5, 1000.25, 1e6,
            ] {
                let found = at(0.02, 0.9, alpha);
                assert!(
                    found.upper() >= last && found.upper().is_finite(),
                    "{change:?} {alpha}"
                );
                last = found.lower();
            }
            assert!(at(0.01, 1.0, 4.5).upper() <= at(0.02, 1.0, 4.5).lower());
            assert!(at(0.01, 1.1, 4.5).upper() <= at(0.01, 1.0, 4.5).lower());
            assert_eq!(at(0.0, 1.0, 3.0), Bracket::ZERO);
            assert!(at(1.0, 1.0, 3.0).holds(if change == Change::Replace { 6.0 } else { 1.5 }));
            assert!(at(1.0 - 1e-16, 1.0, 3.0).upper() <= 6.01);
        }
    }

    /// A unit that joins sees no more than one that leaves.
    #[test]
    fn leaving_is_the_worse_direction() {
        for (rate, sigma) in [(0.01, 1.0), (0.3, 0.6), (0.8, 5.0)] {
            for alpha in [1.1, 2.0, 5.5, 13.0] {
                let leaves = poisson(rate, sigma, Change::Remove, alpha);
                let joins = poisson(rate, sigma, Change::Add, alpha);
                assert!(joins.lower() <= leaves.upper(), "{rate} {sigma} {alpha}");
            }
        }
    }

    #[test]
    fn extremes_are_neither_panics_nor_numbers_that_are_none() {
        for rate in [1e-300, 1e-20, 0.5, 1.0 - 1e-16] {
            for sigma in [1e-60, 1e-3, 1.0, 1e3, 1e100] {
                for alpha in [1.0 + 1e-9, 1.5, 2.0, 1e4, 1e12] {
                    for change in [Change::Remove, Change::Add, Change::Replace] {
                        let found = poisson(rate, sigma, change, alpha);
                        let most = 2.1 * alpha / sigma / sigma;
                        assert!(found.lower() >= 0.0 && found.upper() <= most.max(5e-324));
                    }
                    assert!(fixed_size(rate, sigma, alpha) >= 0.0);
                }
            }
        }
    }

    /// Where floats end, what is known without sampling is left, and never nothing.
    #[test]
    fn noise_at_the_ends_of_floats_is_not_free() {
        for rate in [1e-300, 1e-9, 0.5, 1.0 - 1e-16] {
            for alpha in [2.0, 3.0, 3.5, 64.0, 1e4] {
                for sigma in [1e-150, 1e-154, 1e-155, 1e-160, 1e-200, 1e-300, 5e-324] {
                    // The one unit in the sample is seen: ln(q^α e^(α(α-1)/(2σ²)))/(α-1).
                    let least = alpha / 2.5 / sigma / sigma;
                    let found = poisson(rate, sigma, Change::Remove, alpha);
                    assert!(found.upper() >= least, "{rate} {sigma} {alpha}: {found:?}");
                    assert!(fixed_size(rate, sigma, alpha) >= least);
                    assert!(binomial(rate, sigma, alpha).upper() >= least);
                }
                for sigma in [1e150, 1e154, 1e155, 1e160, 1e300] {
                    let found = poisson(rate, sigma, Change::Remove, alpha);
                    assert!(found.upper() > 0.0, "{rate} {sigma} {alpha}: {found:?}");
                    assert!(found.upper() <= (alpha / sigma / sigma).max(alpha * 1e-307));
                    assert!(fixed_size(rate, sigma, alpha) > 0.0);
                }
            }
        }
    }

    #[test]
    fn sums_of_what_is_no_number_are_unknown() {
        let term = |value: f64| LogTerm { value, error: 0.0 };
        let sum =
            |values: &[f64]| Terms(values.iter().map(|&value| term(value)).collect()).ln_sum();
        for values in [
            &[f64::NAN][..],
            &[1.0, f64::NAN],
            &[f64::NAN, f64::NEG_INFINITY],
            &[f64::INFINITY, f64::NAN],
            &[f64::NEG_INFINITY],
        ] {
            let found = sum(values);
            assert_eq!(
                (found.lower(), found.upper()),
                (f64::NEG_INFINITY, f64::INFINITY)
            );
        }
        assert_eq!(sum(&[]).upper(), f64::NEG_INFINITY);
        assert!(sum(&[0.0, 0.0]).holds(2.0_f64.ln()));
    }

    /// The formula as it is printed, and that it is above the divergence of the true pair: `(1-γ) f_0 + γ f_1` against
    /// `(1-γ) f_0 + γ f_-1` with sensitivity two, which one replaced unit can cause.
    #[test]
    fn fixed_size_follows_the_formula() {
        let (rate, sigma, alpha) = (0.01_f64, 1.0_f64, 4);
        let rho = |j: f64| j / (2.0 * sigma * sigma);
        let second = (4.0 * (rho(2.0).exp() - 1.0)).min(2.0 * rho(2.0).exp());
        let sum = 1.0
            + 6.0 * rate * rate * second
            + 4.0 * rate.powi(3) * 2.0 * (2.0 * rho(3.0)).exp()
            + rate.powi(4) * 2.0 * (3.0 * rho(4.0)).exp();
        let truth = sum.ln() / 3.0;
        let found = fixed_size(rate, sigma, f64::from(alpha));
        assert!((found / truth - 1.0).abs() < 1e-12, "{found} {truth}");
        let pair = poisson(rate, 2.0 * sigma, Change::Replace, 4.0);
        assert!(pair.upper() <= found, "{pair:?} {found}");
        assert!(fixed_size(rate, sigma, 3.5) <= found);
        assert!(fixed_size(rate, sigma, 1.5) <= fixed_size(rate, sigma, 2.0));
    }
}
