//! # Rényi divergences of sampled Gaussians at real orders
//! With `r_1`, `r_2` and `M` as in `rdp_sampled.rs`:
//!
//! **Real orders.** As `∫ f_0 r_1 = ∫ f_0 r_2 = 1`, `M - 1 = ∫ f_0 r_2 G(r_1/r_2)` with
//! `G(t) = t^α - 1 - α(t-1) >= 0`: nothing cancels, however small `q`. The trapezoid rule of step `h` on the line
//! errs by at most `2N/(e^(2πy/h)-1)`, where the integrand is analytic for `|Im x| <= y` and `N` bounds the integral of
//! its modulus along each line of the strip [TW14, Thm 5.1].
//! 1. `r` has its zeros at `Im x = ±πσ²` and beyond; so `y = θσ²` with `θ < π`.
//! 2. `|f_0(x+iy)| = e^(y²/(2σ²)) f_0(x)`, `|r(x+iy)| <= r(x)` by the triangle inequality, and
//!    `|r(x+iy)|² = (A+B)² cos²(θ/2) + (A-B)² sin²(θ/2) >= r(x)² cos²(θ/2)` with `A = 1-q`, `B = q e^w`.
//! 3. Hence `N <= e^(θ²σ²/2) (C M + 2α - 1)`, with `C = cos(θ/2)^(1-α)`, or 1 where `r_2 = 1`. `M` is on both sides
//!    and solved for.
//!
//! The line is cut where what is left out, at most `f_0 (r_1^α r_2^(1-α) + (α-1) r_2)` per node, is bounded in closed
//! form. Every node carries a bound of its round-off.

use std::f64::consts::PI;

use crate::Bracket;
use crate::normal::{FRAC_1_SQRT_2PI, HALF_ULP, density, survival};
use crate::pair::Change;
use crate::rdp::{EXCESS_ERROR, excess};

/// How many nodes a quadrature may have.
const NODES_MAX: f64 = 16_384.0;
/// The largest `ln M` that nodes can hold.
const LN_MAX: f64 = 600.0;

/// `M - 1` at a real order, or nothing where it would take too long or overflow.
pub(crate) fn quadrature(rate: f64, sigma: f64, change: Change, alpha: f64) -> Option<Bracket> {
    let square = sigma * sigma;
    let (numerator, denominator) = (change != Change::Add, change != Change::Remove);
    let apart = if change == Change::Replace { 4.0 } else { 1.0 };
    if apart * alpha * (alpha - 1.0) / (2.0 * square) > LN_MAX || square <= 1e-100 {
        return None;
    }
    // About the second-order term, which M - 1 is not far below; only the number of nodes rests on it.
    let second = alpha * (alpha - 1.0) / 2.0 * rate * rate * libm::expm1(1.0 / square);
    let digits = 40.0 + libm::log(2.0 * alpha + 1.0) + libm::log1p(1.0 / second);
    let damping = |theta: f64| {
        let cosine = if denominator {
            -(alpha - 1.0) * libm::log(libm::cos(theta / 2.0))
        } else {
            0.0
        };
        theta * theta * square / 2.0 + cosine
    };
    let (mut step, mut theta) = (0.0, 0.0);
    for power in 0..32 {
        let candidate = 3.1 * 0.8_f64.powi(power);
        let width = 2.0 * PI * candidate * square / (digits + damping(candidate));
        if width > step {
            (step, theta) = (width, candidate);
        }
    }
    // Eight bits, so that all nodes are exact floats.
    let step = f64::from_bits(step.to_bits() & !((1 << 44) - 1));
    let reach = (2.0 * digits).sqrt() * sigma;
    let left = 1.0 + reach;
    let right = if numerator {
        alpha.max(1.0) + reach
    } else {
        1.0 + reach
    };
    if !(step > 0.0 && (left + right) / step < NODES_MAX) {
        return None;
    }
    let (first, last) = ((-left / step).floor(), (right / step).ceil());
    let (mut sum, mut error, mut count) = (0.0, 0.0, 0.0);
    let mut k = first;
    while k <= last {
        let x = k * step;
        let (w, mirrored) = ((x - 0.5) / square, (-x - 0.5) / square);
        let (over, over_error) = if numerator {
            ln_ratio(rate, w)
        } else {
            (0.0, 0.0)
        };
        let (under, under_error) = match change {
            Change::Remove => (0.0, 0.0),
            Change::Add => ln_ratio(rate, w),
            Change::Replace => ln_ratio(rate, mirrored),
        };
        let node = Node {
            alpha,
            loss: over - under,
            loss_error: over_error + under_error + HALF_ULP * (over.abs() + under.abs()),
            base: under - x * x / (2.0 * square),
            base_error: under_error + 8.0 * HALF_ULP * (x * x / (2.0 * square) + under.abs() + 1.0),
        };
        let (value, value_error) = node.evaluate();
        sum += value;
        error += value_error;
        count += 1.0;
        k += 1.0;
    }
    if !sum.is_finite() {
        return None;
    }
    // Each rounding of the sum is at most u of the whole; a node that underflows is below e^(300-740).
    let rounding = 1.01 * error + 2.0 * count * HALF_ULP * sum + count * 1e-180;
    let sum = Bracket::around(sum, rounding);
    let weight = Bracket::exact(step) / Bracket::exact(sigma)
        * Bracket::new(FRAC_1_SQRT_2PI.next_down(), FRAC_1_SQRT_2PI.next_up());
    let inner = (sum * weight).clamp(0.0, f64::INFINITY);
    let cut = cut(
        rate,
        sigma,
        change,
        alpha,
        step,
        (-first * step, last * step),
    );
    let whole = inner + Bracket::new(0.0, cut);
    // |whole - (M - 1)| <= η (C M + 2α - 1), rounded up generously: all of it is below 1e-15.
    let fall = libm::exp(-2.0 * PI * theta * square / step);
    let eta = 1.000_001 * 2.0 * fall / (1.0 - fall) * libm::exp(theta * theta * square / 2.0);
    let spread = if denominator {
        1.000_001 * libm::cos(theta / 2.0).powf(1.0 - alpha)
    } else {
        1.0
    };
    let solvable = eta * spread < 0.5;
    if !solvable {
        return None;
    }
    let moment = (1.0 + whole.upper() + eta * 2.0 * alpha) / (1.0 - eta * spread) * 1.000_001;
    let aliased = eta * (spread * moment + 2.0 * alpha);
    Some((whole + Bracket::new(-aliased, aliased)).clamp(0.0, f64::INFINITY))
}

/// `ln r` at `w`, and a bound of its absolute error given that `w` errs by `3u`.
fn ln_ratio(rate: f64, w: f64) -> (f64, f64) {
    if w < 700.0 {
        let power = rate * libm::expm1(w);
        if power < -0.5 {
            // Near -1 digits would cancel: 1 - q is exact, as q > ½, and the sum is of positive numbers.
            let ratio = (1.0 - rate) + rate * libm::exp(w);
            let (value, rising) = (libm::log(ratio), rate * libm::exp(w) / ratio);
            let error = rising * 4.0 * w.abs() + 8.0 + 4.0 * value.abs();
            return (value, error * HALF_ULP);
        }
        let value = libm::log1p(power);
        let ratio = 1.0 + power;
        let rising = rate * libm::exp(w) / ratio;
        let error = rising * 3.0 * w.abs() + 8.0 * power.abs() / ratio + 4.0 * value.abs();
        (value, error * HALF_ULP)
    } else {
        let value = w + libm::log(rate);
        // What 1 - q adds is below e^-700/q.
        let rest = (1.0 - rate) / rate * libm::exp(-w);
        (value, 8.0 * HALF_ULP * (w + value.abs()) + rest)
    }
}

/// One node: `e^base (e^(α loss) - 1 - α (e^loss - 1))`.
struct Node {
    alpha: f64,
    loss: f64,
    loss_error: f64,
    base: f64,
    base_error: f64,
}

impl Node {
    /// The value, and a bound of its absolute error.
    fn evaluate(&self) -> (f64, f64) {
        let Self {
            alpha, loss, base, ..
        } = *self;
        let high = alpha * loss;
        if high.abs().max(loss.abs()) < 300.0 {
            let (big, small) = (excess(high), alpha * excess(loss));
            let weight = libm::exp(base);
            let value = (big - small).max(0.0);
            // The derivative by the loss is α (e^(α loss) - e^loss); its own change over the error is covered by a
            // tenth.
            let slope = alpha * (libm::exp(high) - libm::exp(loss)).abs();
            let error = 1.1 * slope * self.loss_error
                + 4.0 * alpha * alpha * (1.0 + libm::exp(high)) * self.loss_error * self.loss_error
                + (EXCESS_ERROR + 4.0 * HALF_ULP * (1.0 + high.abs())) * (big + small);
            (
                value * weight,
                weight * (error + value * (self.base_error + 8.0 * HALF_ULP)),
            )
        } else {
            let powers = [high + base, loss + base, base].map(libm::exp);
            let weights = [1.0, -alpha, alpha - 1.0];
            let value = powers[0] + weights[1] * powers[1] + weights[2] * powers[2];
            let room = alpha * self.loss_error
                + self.base_error
                + 8.0 * HALF_ULP * (1.0 + high.abs() + loss.abs() + base.abs());
            let size = powers[0] + alpha * (powers[1] + powers[2]);
            (value.max(0.0), 1.1 * room * size)
        }
    }
}

/// What the nodes before `-left` and after `right` hold at most, rounded up.
fn cut(
    rate: f64,
    sigma: f64,
    change: Change,
    alpha: f64,
    step: f64,
    (left, right): (f64, f64),
) -> f64 {
    let exact = Bracket::exact;
    let (order, width, spacing) = (exact(alpha), exact(sigma), exact(step));
    // Nodes of step h beyond x of a density that falls there: the first one and an integral.
    let beyond = |distance: f64| {
        let z = exact(distance.max(0.0)) / width;
        spacing / width * density(z) + survival(z)
    };
    let (numerator, denominator) = (change != Change::Add, change != Change::Remove);
    // r >= 1 - q; where r_2 is above one its power is at most one.
    let lowest = if denominator {
        ((exact(1.0) - order) * (-exact(rate)).ln_1p()).exp()
    } else {
        exact(1.0)
    };
    let near = |distance: f64| beyond(distance) + beyond(distance - 1.0);
    let mut sum = (lowest + order) * near(left) + order * near(right);
    if numerator {
        // r <= ρ e^w with ρ = q + (1-q) e^(-w) at the end, and f_0 e^(αw) = e^(α(α-1)/(2σ²)) f_α.
        let square = width * width;
        let w = (exact(right) - 0.5.into()) / square;
        let share = exact(rate) + (exact(1.0) - exact(rate)) * (-w).exp();
        let power = order * (order - 1.0.into()) / (exact(2.0) * square) + order * share.ln();
        if right < alpha {
            return f64::INFINITY;
        }
        sum = sum + lowest * power.exp() * beyond(right - alpha);
    }
    sum.upper()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rdp_sampled::binomial;

    /// Two independent evaluations of one number.
    #[test]
    fn the_sum_and_the_quadrature_agree() {
        for rate in [1e-7, 1e-3, 0.1, 0.7, 0.999] {
            for sigma in [0.4, 1.0, 3.0, 30.0] {
                for alpha in [2.0, 3.0, 7.0, 20.0] {
                    if let Some(gain) = quadrature(rate, sigma, Change::Remove, alpha) {
                        let (left, right) = (gain.ln_1p(), binomial(rate, sigma, alpha));
                        let met = left.lower() <= right.upper() && right.lower() <= left.upper();
                        assert!(met, "{rate} {sigma} {alpha}: {left:?} {right:?}");
                        assert!(
                            left.relative_width() < 1e-8,
                            "{rate} {sigma} {alpha}: {left:?}"
                        );
                    }
                }
            }
        }
    }
}
