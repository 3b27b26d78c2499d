//! # One line of a contour
//! The integrand of `contour.rs` at the nodes of one line, and the bracket of delta that it gives for an epsilon: the trapezoid rule with all
//! that its sum may miss, and for the lower bound the aliases.

use crate::Bracket;
use crate::tilt::UNIT;

/// The integrand along one line, ready for every epsilon.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) c: f64,
    /// The epsilon that the line was drawn for.
    pub(crate) epsilon: f64,
    pub(crate) step: f64,
    /// `Σ k_i ln M̃_i(c)` and its round-off.
    pub(crate) ln_moment: f64,
    pub(crate) ln_error: f64,
    /// `φ(t_n)/(s_n(s_n+1))`, from `n = 0` on.
    pub(crate) real: Vec<f64>,
    pub(crate) imaginary: Vec<f64>,
    /// What the moments and the truncation may change in the sum.
    pub(crate) error: f64,
    /// `Σ n|a_n|` and `Σ |a_n|`, for the round-off of the rotations.
    pub(crate) turns: f64,
    pub(crate) sizes: f64,
    /// How many parts were added up.
    pub(crate) terms: f64,
    /// A place `r > c` and an upper bound of `ln Φ(r)`.
    pub(crate) alias: (f64, f64),
}

impl Line {
    pub(crate) fn delta(&self, epsilon: f64) -> Bracket {
        let (mut cos, mut sin) = (1.0, 0.0);
        let (turn_sin, turn_cos) = libm::sincos(-epsilon * self.step);
        let mut sum = 0.0;
        for (re, im) in self.real.iter().zip(&self.imaginary) {
            sum += re * cos - im * sin;
            (cos, sin) = (
                cos * turn_cos - sin * turn_sin,
                cos * turn_sin + sin * turn_cos,
            );
        }
        let turn = epsilon.abs() * self.step;
        let rounding =
            UNIT * (self.turns * (6.0 + 2.0 * turn) + self.sizes * (self.real.len() as f64 + 6.0));
        let error = (self.error + rounding) * (1.0 + 1e-9);
        // (h/2π) Φ(c) e^(-cε), with the round-off of its exponent.
        let exponent = Bracket::around(
            self.ln_moment,
            self.ln_error * 1.01 + UNIT * (8.0 + self.terms) * self.ln_moment.abs(),
        ) - Bracket::exact(self.c) * Bracket::exact(epsilon);
        let scale = exponent.exp() * Bracket::exact(self.step)
            / (Bracket::exact(std::f64::consts::TAU) * Bracket::new(1.0 - 1e-15, 1.0 + 1e-15));
        let rule = Bracket::around(sum, error) * scale;
        let upper = if rule.upper().is_nan() {
            1.0
        } else {
            rule.upper()
        };
        let period = std::f64::consts::TAU / self.step;
        let series = |rate: f64| {
            let ratio = libm::exp(-rate * period * (1.0 - 1e-12));
            ratio / (1.0 - ratio)
        };
        let below = series(self.c);
        let above =
            libm::exp(self.alias.1 - self.alias.0 * epsilon + 1e-12 * epsilon.abs() * self.alias.0)
                * series(self.alias.0 - self.c);
        let aliases = (below + above) * (1.0 + 1e-9);
        let lower = if aliases.is_finite() {
            rule.lower() - aliases
        } else {
            0.0
        };
        Bracket::new(lower.next_down().clamp(0.0, 1.0), upper.clamp(0.0, 1.0))
    }
}
