//! # Rényi differential privacy
//! **Definition.** `M` is `(α, ρ)`-RDP if `D_α(M(x) ‖ M(x')) = ln E_Q[(P/Q)^α]/(α-1) <= ρ` for all neighbours [Mir17,
//! Def. 4]. The moments accountant bounds the same thing: its moment of order `λ` is `λ D_(λ+1)` [ACG+16, Thm 2].
//! Orders are real here, and moments accountants the case of integers.
//!
//! **Composition** adds, order by order, also where later mechanisms depend on earlier answers [Mir17, Prop. 1].
//!
//! **Conversion.** As in `zcdp.rs`, for every `α > 1`: `δ <= e^((α-1)(ρ-ε)) (1-1/α)^α/(α-1)` [CKS20, Prop. 12];
//! solved for the epsilon, `ε = ρ + ln(1-1/α) - (ln δ + ln α)/(α-1)`. Any order gives a bound, so the search among
//! them is free to err, and the evaluation at the one it finds is rounded up.
//!
//! **Closed forms** of the dominating pairs, `ε_α = D_α`:
//! - Gaussian of noise multiplier `σ`: `α/(2σ²)` [Mir17, Prop. 7].
//! - Laplace of scale `b`: `ln(α/(2α-1) e^((α-1)/b) + (α-1)/(2α-1) e^(-α/b))/(α-1)` [Mir17, Prop. 6]. Since the two
//!   weights sum to one and the linear terms of the two powers cancel, with `g(x) = e^x - 1 - x` it is
//!   `ln(1 + (α g((α-1)/b) + (α-1) g(-α/b))/(2α-1))/(α-1)`, all positive.
//! - Randomized response among `k` values with likelihood ratio `e^ε`: the sum `p^α q^(1-α) + q^α p^(1-α) + (k-2) q`,
//!   where `p = e^ε q` and `q = 1/(e^ε+k-1)`, less one is `q (e^(αε) - 1)(1 - e^(-(α-1)ε))`: multiply out.
//! - Pure `ε`: every pair with losses within `±ε` is a post-processing of binary randomized response \[KOV15\], so
//!   `k = 2` bounds it, and no better bound holds for all of them.

use crate::normal::{HALF_ULP, within};
use crate::pair::Change;
use crate::{Bracket, rdp_sampled};

/// A mechanism, by what is known of its Rényi divergences in one direction.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Divergence {
    /// Noise multiplier `sigma`.
    Gaussian { sigma: Bracket },
    /// Scale over L1 sensitivity.
    Laplace { scale: Bracket },
    /// Likelihood ratio `e^epsilon` among `categories` values.
    RandomizedResponse { epsilon: Bracket, categories: u64 },
    /// Only a bound on the loss is known.
    Pure { epsilon: Bracket },
    /// `rho`-zCDP and nothing else.
    Concentrated { rho: Bracket },
    /// A Gaussian over a Poisson sample, see `rdp_sampled.rs`.
    SampledGaussian {
        rate: f64,
        sigma: f64,
        change: Change,
    },
    /// A Gaussian over a sample of fixed size; integer orders only, others by interpolation.
    FixedSizeGaussian { rate: f64, sigma: f64 },
}

impl Divergence {
    /// `D_α` of the dominating pair, for `α > 1`. The lower end is that of the pair, or zero where only a bound is
    /// known.
    pub(crate) fn at(&self, alpha: f64) -> Bracket {
        let order = Bracket::exact(alpha);
        let found = match *self {
            Self::Gaussian { sigma } => order / (Bracket::exact(2.0) * sigma * sigma),
            Self::Laplace { scale } => laplace(scale, alpha),
            Self::RandomizedResponse {
                epsilon,
                categories,
            } => response(epsilon, categories as f64, alpha),
            Self::Pure { epsilon } => response(epsilon, 2.0, alpha),
            Self::Concentrated { rho } => Bracket::new(0.0, (order * rho).upper()),
            Self::SampledGaussian {
                rate,
                sigma,
                change,
            } => rdp_sampled::poisson(rate, sigma, change, alpha),
            Self::FixedSizeGaussian { rate, sigma } => {
                Bracket::new(0.0, rdp_sampled::fixed_size(rate, sigma, alpha))
            }
        };
        // Divergences are not negative.
        found.clamp(0.0, f64::INFINITY)
    }
}

/// Divergences that add up, each as often as its count says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Composition {
    parts: Vec<(Divergence, Bracket)>,
}

/// An upper bound, and the order that gave it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AtOrder {
    pub(crate) value: f64,
    pub(crate) alpha: f64,
}

impl Composition {
    pub(crate) fn new(parts: impl IntoIterator<Item = (Divergence, Bracket)>) -> Self {
        Self {
            parts: parts.into_iter().collect(),
        }
    }

    /// The divergence of the whole.
    pub(crate) fn at(&self, alpha: f64) -> Bracket {
        self.parts.iter().fold(Bracket::ZERO, |sum, (part, count)| {
            sum + part.at(alpha) * *count
        })
    }

    /// An epsilon at `delta`; infinite if no order has one.
    pub(crate) fn epsilon(&self, delta: f64) -> AtOrder {
        best_order(|alpha| epsilon_upper(self.at(alpha).upper(), alpha, delta))
    }

    /// A delta at `epsilon`, at most one.
    pub(crate) fn delta(&self, epsilon: f64) -> AtOrder {
        let found = best_order(|alpha| ln_delta_upper(self.at(alpha).upper(), alpha, epsilon));
        AtOrder {
            value: Bracket::exact(found.value).exp().upper().min(1.0),
            alpha: found.alpha,
        }
    }
}

/// `ε = ρ + ln(1-1/α) - (ln δ + ln α)/(α-1)`, rounded up, and not below zero: what holds at a smaller epsilon holds
/// at zero.
pub(crate) fn epsilon_upper(rho: f64, alpha: f64, delta: f64) -> f64 {
    if rho == 0.0 {
        return 0.0;
    }
    let (order, offset) = (Bracket::exact(alpha), Bracket::exact(alpha) - 1.0.into());
    let spread = (Bracket::exact(delta).ln() + order.ln()) / offset;
    let found = Bracket::exact(rho) - (Bracket::exact(1.0) / offset).ln_1p() - spread;
    found.upper().max(0.0)
}

/// `ln δ = (α-1)(ρ-ε) - ln α - (α-1) ln(1 + 1/(α-1))`, rounded up.
pub(crate) fn ln_delta_upper(rho: f64, alpha: f64, epsilon: f64) -> f64 {
    let (order, offset) = (Bracket::exact(alpha), Bracket::exact(alpha) - 1.0.into());
    let gain = order.ln() + offset * (Bracket::exact(1.0) / offset).ln_1p();
    let excess = Bracket::exact(rho) - Bracket::exact(epsilon);
    (offset * excess - gain).upper()
}

/// Where orders less one are searched.
const OFFSETS: (f64, f64) = (1e-6, 1e9);
/// Three to a factor of ten, so that a valley is seen before it is searched.
const COARSE_STEPS: u32 = 45;
/// The golden section leaves `0.618^30 < 1e-6` of a coarse step.
const FINE_STEPS: u32 = 30;

/// The least value over orders, as far as a coarse grid and a golden section find it.
pub(crate) fn best_order(mut value: impl FnMut(f64) -> f64) -> AtOrder {
    let (low, high) = (OFFSETS.0.ln(), OFFSETS.1.ln());
    let mut best = AtOrder {
        value: f64::INFINITY,
        alpha: 2.0,
    };
    let mut look = |place: f64, best: &mut AtOrder| {
        let alpha = 1.0 + place.exp();
        // What is no number is no bound.
        let value = Some(value(alpha)).filter(|value| !value.is_nan());
        let value = value.unwrap_or(f64::INFINITY);
        if value < best.value {
            *best = AtOrder { value, alpha };
        }
        value
    };
    let step = (high - low) / f64::from(COARSE_STEPS);
    let mut rising = 0;
    for i in 0..=COARSE_STEPS {
        let before = best.value;
        let here = look(low + step * f64::from(i), &mut best);
        // A bound that has been rising for a factor of 100 in the order does not come back down.
        rising = if here > before { rising + 1 } else { 0 };
        if rising > 6 && best.value.is_finite() {
            break;
        }
    }
    let centre = (best.alpha - 1.0).ln();
    let (mut left, mut right) = (centre - step, centre + step);
    let golden = 0.618_033_988_749_894_9;
    let (mut inner_left, mut inner_right) = (
        right - golden * (right - left),
        left + golden * (right - left),
    );
    let mut at_left = look(inner_left, &mut best);
    let mut at_right = look(inner_right, &mut best);
    for _ in 0..FINE_STEPS {
        if at_left <= at_right {
            right = inner_right;
            (inner_right, at_right) = (inner_left, at_left);
            inner_left = right - golden * (right - left);
            at_left = look(inner_left, &mut best);
        } else {
            left = inner_left;
            (inner_left, at_left) = (inner_right, at_right);
            inner_right = left + golden * (right - left);
            at_right = look(inner_right, &mut best);
        }
    }
    best
}

/// `g(x) = e^x - 1 - x >= 0` up to a relative error of [`EXCESS_ERROR`].
///
/// Near zero by `x²/2 (1 + x/3 (1 + x/4 (…)))`, where 16 factors leave less than `1e-20`; elsewhere `g` is above a
/// ninth of the numbers it is the difference of.
pub(crate) fn excess(x: f64) -> f64 {
    if x.abs() < 0.5 {
        let sum = (3..19_u32)
            .rev()
            .fold(1.0, |sum, k| 1.0 + x / f64::from(k) * sum);
        x * x * 0.5 * sum
    } else {
        libm::expm1(x) - x
    }
}

/// Of [`excess`]: `expm1` is within two units, `4u`, and the difference amplifies by at most 9.
pub(crate) const EXCESS_ERROR: f64 = 40.0 * HALF_ULP;

fn excess_bracket(x: Bracket) -> Bracket {
    // Monotone on each side of zero, where it is zero.
    let at = |x: f64| within(excess(x), EXCESS_ERROR);
    let ends = at(x.lower()).hull(at(x.upper()));
    if x.holds(0.0) {
        ends.hull(Bracket::ZERO)
    } else {
        ends
    }
}

fn laplace(scale: Bracket, alpha: f64) -> Bracket {
    let (order, offset) = (Bracket::exact(alpha), Bracket::exact(alpha) - 1.0.into());
    let (one, two) = (Bracket::exact(1.0), Bracket::exact(2.0));
    let sum = two * order - one;
    // No loss exceeds 1/b, and no divergence α/(2b²): half the square of the bound on the loss.
    let limit = (one / scale).upper();
    let cap = limit.min((order * one / (two * scale * scale)).upper());
    let found = if (offset / scale).upper() < 700.0 {
        let gain = order * excess_bracket(offset / scale) + offset * excess_bracket(-order / scale);
        (gain / sum).ln_1p() / offset
    } else {
        let rest = order / sum + offset / sum * (-sum / scale).exp();
        one / scale + rest.ln() / offset
    };
    found.meet(Bracket::new(0.0, cap))
}

fn response(epsilon: Bracket, categories: f64, alpha: f64) -> Bracket {
    let (order, offset) = (Bracket::exact(alpha), Bracket::exact(alpha) - 1.0.into());
    let others = Bracket::exact(categories) - 1.0.into();
    let found = if (order * epsilon).upper() < 700.0 {
        let gain = (order * epsilon).exp_m1() * -(-offset * epsilon).exp_m1();
        (gain / (epsilon.exp() + others)).ln_1p() / offset
    } else {
        // The same with e^(αε) in front.
        let one = Bracket::exact(1.0);
        let rest = ((one - order - offset) * epsilon).exp();
        let middle = (others - one) * (-order * epsilon).exp();
        let norm = epsilon + (others * (-epsilon).exp()).ln_1p();
        (order * epsilon - norm + (rest + middle).ln_1p()) / offset
    };
    found.meet(Bracket::new(0.0, epsilon.upper()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(value: f64) -> Bracket {
        Bracket::exact(value)
    }

    fn check(found: Bracket, truth: f64) {
        assert!(found.holds(truth), "{found:?} {truth}");
        assert!(found.relative_width() < 1e-13, "{found:?}");
    }

    /// The formulas as printed, by mpmath 1.3.0 with 40 digits.
    #[test]
    fn closed_forms() {
        for (scale, alpha, truth) in [
            (1.0, 2.0, 0.619_123_629_998_592_8),
            (1000.0, 1.5, 7.497_499_688_124_865e-7),
            (0.01, 3.0, 99.744_587_188_117_01),
            (0.001, 2.5, 999.686_664_247_169_5),
            (20.0, 300.0, 0.047_687_360_791_106_52),
        ] {
            let laplace = Divergence::Laplace {
                scale: exact(scale),
            };
            check(laplace.at(alpha), truth);
        }
        for (epsilon, categories, alpha, truth) in [
            (1.0, 2, 2.0, 0.735_325_664_055_519_2),
            (0.001, 2, 1.5, 7.499_998_437_500_437e-7),
            (3.0, 10, 7.0, 2.938_293_161_398_225_7),
            (50.0, 4, 30.0, 50.0),
        ] {
            let response = Divergence::RandomizedResponse {
                epsilon: exact(epsilon),
                categories,
            };
            check(response.at(alpha), truth);
            let pure = Divergence::Pure {
                epsilon: exact(epsilon),
            };
            assert!(pure.at(alpha).upper() >= response.at(alpha).lower());
        }
        let gaussian = Divergence::Gaussian { sigma: exact(2.0) };
        check(gaussian.at(3.0), 0.375);
    }

    /// Golden case pub-068: `ρ`-zCDP at its best order; and a Gaussian is the same.
    #[test]
    fn the_best_order_is_found() {
        for part in [
            Divergence::Concentrated { rho: exact(0.5) },
            Divergence::Gaussian { sigma: exact(1.0) },
        ] {
            let found = Composition::new([(part, exact(1.0))]).epsilon(1e-6);
            assert!((found.value / 5.221_534_444_530_168 - 1.0).abs() < 1e-9);
        }
        // dp-accounting 0.6.0 reports 1.03549 with its fixed list of orders, the truth is 0.9468668.
        let sampled = Divergence::SampledGaussian {
            rate: 0.01,
            sigma: 4.0,
            change: Change::Remove,
        };
        let found = Composition::new([(sampled, exact(1e4))]).epsilon(1e-5);
        assert!(
            found.value < 1.035_49 && found.value > 0.946_866_8,
            "{found:?}"
        );
    }

    #[test]
    fn both_conversions_agree() {
        let many = Composition::new([
            (Divergence::Laplace { scale: exact(7.0) }, exact(30.0)),
            (Divergence::Gaussian { sigma: exact(5.0) }, exact(4.0)),
            (
                Divergence::Pure {
                    epsilon: exact(0.1),
                },
                exact(10.0),
            ),
        ]);
        for delta in [1e-300, 1e-30, 1e-9, 1e-5, 0.01] {
            let epsilon = many.epsilon(delta);
            let back = many.delta(epsilon.value);
            assert!(
                (back.value.ln() / delta.ln() - 1.0).abs() < 1e-8,
                "{epsilon:?} {back:?}"
            );
            let order =
                ln_delta_upper(many.at(epsilon.alpha).upper(), epsilon.alpha, epsilon.value);
            assert!(order <= delta.ln() + 1e-9 * delta.ln().abs());
        }
    }

    /// What is no number is no bound, and does not lead the search astray.
    #[test]
    fn orders_without_a_number_are_passed_over() {
        let value = |alpha: f64| {
            if (1.5..3.2).contains(&alpha) {
                1.0 + (alpha - 3.0) * (alpha - 3.0)
            } else {
                f64::NAN
            }
        };
        let found = best_order(value);
        assert!((found.value - 1.0).abs() < 1e-6, "{found:?}");
        let none = best_order(|_| f64::NAN);
        assert_eq!(none.value, f64::INFINITY);
        for rho in [f64::NAN, f64::INFINITY] {
            assert_eq!(epsilon_upper(rho, 2.0, 1e-5), f64::INFINITY);
            assert_eq!(ln_delta_upper(rho, 2.0, 1.0), f64::INFINITY);
        }
    }

    /// No conversion is below the exact profile of a Gaussian.
    #[test]
    fn never_below_the_exact_profile() {
        for sigma in [0.3, 1.0, 10.0, 1e4] {
            let exactly = crate::gaussian::Gaussian::compose([(exact(sigma), exact(1.0))]);
            let renyi = Composition::new([(
                Divergence::Gaussian {
                    sigma: exact(sigma),
                },
                exact(1.0),
            )]);
            for delta in [1e-300, 1e-12, 1e-4, 0.1] {
                let (truth, found) = (exactly.epsilon(delta), renyi.epsilon(delta).value);
                assert!(found >= truth.lower(), "{sigma} {delta}: {found} {truth:?}");
                assert!(found <= 1.5 * truth.upper() + 0.5 / sigma);
            }
        }
    }

    #[test]
    fn extremes() {
        let nothing = Composition::default();
        assert_eq!(nothing.epsilon(1e-6).value, 0.0);
        let pure = |epsilon| {
            Composition::new([(
                Divergence::Pure {
                    epsilon: exact(epsilon),
                },
                exact(1.0),
            )])
        };
        // Large orders come as close to the pure bound as the range of orders allows.
        assert!((1.0..1.001).contains(&pure(1.0).epsilon(1e-300).value));
        assert_eq!(pure(1.0).epsilon(0.0).value, f64::INFINITY);
        for epsilon in [0.0, 1e-300, 1e-9, 1e3, 1e300] {
            let found = pure(epsilon).epsilon(1e-10).value;
            assert!(
                found >= 0.0 && found <= epsilon * 1.001 + 1e-6,
                "{epsilon}: {found}"
            );
        }
        let counts = Composition::new([(
            Divergence::Laplace { scale: exact(1e9) },
            exact(2.0_f64.powi(53)),
        )]);
        assert!(counts.epsilon(1e-10).value.is_finite());
        for x in [-1e3_f64, -0.5, -0.499, -1e-9, 0.0, 1e-9, 0.499, 0.5, 30.0] {
            let truth = if x.abs() < 1e-3 {
                x * x / 2.0 * (1.0 + x / 3.0)
            } else {
                f64::exp(x) - 1.0 - x
            };
            assert!(
                (excess(x) - truth).abs() <= 1e-14 * (truth + x.abs()),
                "{x}"
            );
        }
    }
}
