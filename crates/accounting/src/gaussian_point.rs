//! # One place of the Gaussian profile
//! **Profile.** With `a = ε/μ - μ/2` and `b = ε/μ + μ/2`, `δ(ε) = S(a) - e^ε S(b)` [BW18, Thm 8]. Since
//! `e^ε φ(b) = φ(a)`, this is `φ(a)(m(a) - m(b))` with Mills' ratio `m`, from which nothing overflows. It grows with
//! `μ`, at the rate `φ(a)`, and falls with `ε`, at the rate `φ(a) m(b)`. The pair is symmetric, so
//! `δ(-ε) = 1 - e^-ε + e^-ε δ(ε)`.
//!
//! **Cancellation.** Where `a` and `b` are close, `m(a) - m(b) = ∫_a^b I_1`, and with the middle `c = ε/μ`
//! `∫_a^b I_1 = μ (I_1(c) + μ²/24 I_3(c) + μ⁴/1920 I_5(c) + μ⁶/322560 I_7(x))` for some `x` in `[a, b]`: Taylor's
//! formula, of which the odd terms cancel; `0 < I_7(x) <= I_7(a)`.
//!
//! **How the error is bounded.** `a` is computed in two floats, so that `φ(a)` is good to the last digits however far
//! out; the relative errors of `normal.rs` are added up with the amplification by the difference. Everything else is
//! monotone.

use crate::Bracket;
use crate::normal::{
    DENSITY_ERROR, HALF_ULP, MILLS_ERROR, UNDERFLOWS_FROM, bell, density, mills, mills_ratio,
    odd_moments, survival, survival_at, within,
};

/// Up to here the evaluation in two floats is exact enough; beyond, plain brackets are used.
pub(crate) const MU_REGULAR: f64 = 1e8;
/// A `μ` below this is scaled before it divides.
const SMALL: f64 = 1e-100;
/// The same for epsilon, unless it is zero or μ small.
pub(crate) const EPSILON_REGULAR: (f64, f64) = (1e-200, 1e200);
/// Below this share of `1 + c`, the middle formula is used: there it errs by
/// less than 1e-12, and the difference of Mills' ratios by as much above.
const CLOSE: f64 = 0.01;

/// `δ(ε)` at a float `μ >= 0`.
pub(crate) fn delta_at(mu: f64, epsilon: f64) -> Bracket {
    if epsilon < 0.0 {
        let power = (Bracket::exact(epsilon)).exp();
        let gain = -Bracket::exact(epsilon).exp_m1();
        return (gain + power * delta_at(mu, -epsilon)).clamp(0.0, 1.0);
    }
    if mu <= 0.0 || epsilon == f64::INFINITY {
        return Bracket::ZERO;
    }
    if mu.is_nan() || epsilon.is_nan() {
        return Bracket::new(0.0, 1.0);
    }
    if mu > MU_REGULAR || epsilon > EPSILON_REGULAR.1 {
        return delta_far(mu, epsilon);
    }
    if epsilon > 0.0 && epsilon < EPSILON_REGULAR.0 && mu > SMALL {
        // Next to zero, as seen from μ.
        let lower = delta_at(mu, EPSILON_REGULAR.0).lower();
        return Bracket::new(lower, delta_at(mu, 0.0).upper());
    }
    if epsilon / mu - mu / 2.0 >= 2.0 * UNDERFLOWS_FROM {
        return Bracket::new(0.0, f64::from_bits(1));
    }
    let point = Point::new(mu, epsilon);
    if point.a >= UNDERFLOWS_FROM {
        return Bracket::new(0.0, f64::from_bits(1));
    }
    if point.a <= -UNDERFLOWS_FROM {
        return Bracket::new(1.0 - f64::EPSILON, 1.0);
    }
    let Evaluated { value, error, .. } = point.evaluate();
    within(value, error).clamp(0.0, 1.0)
}

/// Beyond all numbers that matter: plain brackets.
fn delta_far(mu: f64, epsilon: f64) -> Bracket {
    let (mu, epsilon) = (Bracket::exact(mu), Bracket::exact(epsilon));
    let (middle, half) = (epsilon / mu, mu * Bracket::exact(0.5));
    let (a, b) = (middle - half, middle + half);
    (survival(a) - density(a) * mills_ratio(b))
        .clamp(0.0, 1.0)
        .meet(Bracket::new(0.0, survival(a).upper()))
}

/// Where the profile is looked at: `a` in two floats, `b` and `c` in one.
pub(crate) struct Point {
    mu: f64,
    pub(crate) a: f64,
    a_rest: f64,
    b: f64,
    c: f64,
}

/// `δ` up to a relative error, and the factor `m(a) - m(b)` or what stands for it.
pub(crate) struct Evaluated {
    pub(crate) value: f64,
    error: f64,
    /// `-d ln δ/dε`.
    pub(crate) slope: f64,
    /// `d ln δ/dμ`.
    pub(crate) slope_mu: f64,
    /// `d² ln δ/dε²` over the square of the slope.
    pub(crate) curvature: f64,
}

impl Point {
    pub(crate) fn new(mu: f64, epsilon: f64) -> Self {
        // A power of two, so that nothing underflows; epsilon is at most 78 times a small μ here.
        let scale = if mu < SMALL { 2.0_f64.powi(600) } else { 1.0 };
        let (divisor, dividend) = (mu * scale, epsilon * scale);
        let c = dividend / divisor;
        // The remainder of a division is a float, so c + c_rest errs by u² c.
        let c_rest = (-c).mul_add(divisor, dividend) / divisor;
        let half = mu / 2.0;
        let sum = c - half;
        let sum_rest = {
            let half_seen = sum - c;
            let c_seen = sum - half_seen;
            (c - c_seen) + (-half - half_seen)
        };
        let rest = sum_rest + c_rest;
        let a = sum + rest;
        Self {
            mu,
            a,
            a_rest: rest - (a - sum),
            b: c + half,
            c,
        }
    }

    pub(crate) fn evaluate(&self) -> Evaluated {
        let (power, factor) = bell(self.a, self.a_rest);
        let at_b = mills(self.b);
        if self.mu < CLOSE * (1.0 + self.c) {
            return self.evaluate_close(power, factor, at_b);
        }
        if self.a >= 0.0 {
            let at_a = mills(self.a);
            let difference = at_a - at_b;
            let rounding = (MILLS_ERROR + 4.0 * HALF_ULP) * (at_a + at_b) / difference;
            return Evaluated {
                value: power * (power * (factor * difference)),
                error: 1.01 * (rounding + DENSITY_ERROR) + 8.0 * HALF_ULP,
                slope: at_b / difference,
                slope_mu: 1.0 / difference,
                curvature: self.curvature(at_b / difference, 1.0 / difference),
            };
        }
        let above = survival_at(self.a).estimate();
        let density = power * (power * factor);
        let below = density * at_b;
        let value = above - below;
        let rounding =
            32.0 * HALF_ULP * above + (MILLS_ERROR + DENSITY_ERROR + 8.0 * HALF_ULP) * below;
        Evaluated {
            value,
            error: 1.01 * rounding / value + 8.0 * HALF_ULP,
            slope: below / value,
            slope_mu: density / value,
            curvature: self.curvature(below / value, density / value),
        }
    }

    fn evaluate_close(&self, power: f64, factor: f64, at_b: f64) -> Evaluated {
        let ([one, three, five], errors) = odd_moments(self.c);
        let square = self.mu * self.mu;
        // I_7(0) = 48, I_7(-0.01) < 50 and a >= -0.01 here; also I_7(x) <= 7!/x^8.
        let seven = if self.a > 2.0 {
            5050.0 / self.a.powi(8)
        } else {
            50.0
        };
        let last = square * square * square / 322_560.0 * seven;
        let mean = one + square * (three / 24.0 + square * five / 1920.0) + last / 2.0;
        let rounding = errors[0]
            + square * (errors[1] / 24.0 + square * errors[2] / 1920.0)
            + last / 2.0
            // Of c, of which I_1 keeps the relative error at most twice (x I_2 <= 2 I_1), and of the sum.
            + 8.0 * HALF_ULP * mean;
        let difference = self.mu * mean;
        Evaluated {
            value: power * (power * (factor * difference)),
            error: 1.01 * (rounding / mean + DENSITY_ERROR) + 8.0 * HALF_ULP,
            slope: at_b / difference,
            slope_mu: 1.0 / difference,
            curvature: self.curvature(at_b / difference, 1.0 / difference),
        }
    }

    /// `δ' = -φ(a) m(b)`, so `(ln δ)'' = -s (s + (ln φ(a) m(b))')` with the slope `s`, where
    /// `(ln φ(a) m(b))' = 1 - 1/(μ m(b))`.
    fn curvature(&self, slope: f64, slope_mu: f64) -> f64 {
        let at_b = slope / slope_mu;
        -1.0 - (1.0 - 1.0 / (self.mu * at_b)) / slope
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `S(a) - e^ε S(b)` by mpmath 1.3.0 with 400 digits.
    #[test]
    fn deltas_hold_the_truth_and_are_narrow() {
        for (mu, epsilon, truth) in [
            (1e-8, 0.0, 3.989_422_804_014_327e-9),
            (1e-8, 1e-7, 7.474_560_628_317_401e-33),
            (1e-8, 3e-7, 1.631_956_978_885_027e-207),
            (0.009, 0.01, 6.071_536_924_266_035e-4),
            (0.011, 0.01, 0.001_091_892_842_681_105),
            (0.01, 0.0, 0.003_989_406_181_481_645),
            (0.5, -1.0, 0.634_633_026_414_373_1),
            (0.5, 0.0, 0.197_412_651_365_847_46),
            (1.0, 1.0, 0.126_936_737_506_643_94),
            (3.0, 30.0, 2.430_980_431_759_455e-18),
            (100.0, 5000.0, 0.496_010_976_018_643_2),
            (100.0, 4000.0, 1.0),
            (1e4, 5.03e7, 4.892_021_543_098_036e-198),
            (1e4, 5.037e7, 5.704_449_308_302_393_4e-300),
        ] {
            let found = delta_at(mu, epsilon);
            assert!(found.holds(truth), "{mu} {epsilon}: {found:?} {truth}");
            assert!(found.relative_width() < 1e-11, "{mu} {epsilon}: {found:?}");
        }
        let below = delta_at(3.0, 120.0);
        assert!(below.lower() == 0.0 && below.upper() < 3e-323, "{below:?}");
    }

    #[test]
    fn grows_with_mu_and_falls_with_epsilon() {
        for step in 0..400 {
            let epsilon = f64::from(step) * 0.02;
            for size in [0.009_999, 0.0101, 0.9, 3.0] {
                let (here, next) = (delta_at(size, epsilon), delta_at(size * 1.001, epsilon));
                assert!(here.upper() < next.lower() || next.upper() < 1e-320);
                assert!(
                    delta_at(size, epsilon + 1e-4).upper() < here.lower() || here.upper() < 1e-320
                );
            }
        }
    }
}
