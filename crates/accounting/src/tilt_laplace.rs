//! # The moments of Laplace noise over a Poisson sample
//! With `a = 1/b` and `A(x) = 1-q+q e^(a(2x-1))` for `0 <= x <= 1`, the ratio of the mixture to `f_0` is `A(0)` below 0, `A(x)`
//! between, and `A(1)` above 1, where `f_0` has the masses `½`, a density `(a/2)e^(-ax)`, and `½e^-a`. So the loss has two atoms and a
//! density between them. For a unit that leaves, `P e^(sL) = f_0 A^(s+1)`; for one that joins, `f_0 A^-s`.
//!
//! **Quadrature.** `x = (1 + tanh u)/2` takes the line to `(0, 1)`. In the strip `|Im u| <= η <= π/4`, `x` has a real part in `[0, 1]`
//! and an imaginary part of at most `tan(η)/2`: `tanh(u+iη) = (sinh 2u + i sin 2η)/(cosh 2u + cos 2η)`. `A` has its zeros, at which its
//! powers branch, where the imaginary part of `a(2x-1)` is an odd multiple of `π`; so, for either change, only strips with
//! `θ = a tan η < π` will do. There `|e^(-ax)| <= 1`, `A(0) cos(θ/2) <= |A(x)| <= A(1)` and `|arg A| <= θ`. With
//! `∫|x'(u+iη)| du = 2η/sin 2η <= π/2`, the trapezoid rule in `u` errs by at most
//! `2/(e^(2πη/h) - 1) · (π/2)(a/2) e^(|t|θ) · A(1)^(c+1)` or `· (A(0) cos(θ/2))^-c` [TW14, Thm 5.1].
//! Nodes beyond `|u| > 22` weigh at most `2e^-44` of the largest value of the integrand in all.
//!
//! **Decay.** `G/L'` is `e^(a-3ax) A^(c+2)/(4q)` or `e^(a-3ax) A^(1-c)/(4q)`; the derivative of its logarithm, `-3a + 2a(c+2)π` or
//! `-3a + 2a(1-c)π`, changes its sign at most once and then from minus to plus, or never, since `π = 1-(1-q)/A` rises. So its
//! variation, with the jumps at both ends, is at most twice the sum of its values at the ends.
//!
//! **Round-off.** With `u = 2^-53`, `2x-1` errs by at most `9u`: four roundings of `x`, and the difference. So `w = a(2x-1)` errs by at most
//! `12ua`, and `ln A` by `π` times that. Let `p = q(e^w - 1)`, which has four roundings.
//! - `p >= -½`: `ln A = log1p(p)` errs by `4u|p|/(1+p) <= 6u|ln A|`, and by two of its own.
//! - `p < -½`: near `-1` digits would cancel. But `A = (1-q) + q e^w`, where `1-q` is exact as `q > ½`, is a sum of positive numbers that errs by at
//!   most five roundings, and `5u <= 8u|ln A|` as `|ln A| >= ln 2`.
//!
//! Since `a` is at most 300, all powers are floats.

use crate::decay::{Cell, Decay, Windows};
use crate::pair::Change;
use crate::tilt::{Cumulants, Tilted, UNIT, lane_sum, lane_sum_units, short};

/// Where the nodes end.
const REACH: f64 = 22.0;
/// Beyond this `a` steps are too small to be worth while, as a strip has `η <= 3/a`: another engine answers.
const EPSILON_MAX: f64 = 300.0;
/// Angles `θ` from here on are too near `π`.
const ANGLE_MAX: f64 = 3.0;
/// Cells between the atoms for the windows of the decay.
const CELLS: u32 = 64;

/// Laplace noise over a Poisson sample, for a unit that leaves or joins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SampledLaplace {
    pub(crate) rate: f64,
    ln_rate: f64,
    /// `a`.
    pub(crate) epsilon: f64,
    pub(crate) change: Change,
}

#[derive(Clone, Copy)]
struct Place {
    loss: f64,
    /// `ln` of what multiplies the mass of `f_0`.
    ln_power: f64,
    loss_units: f64,
}

impl SampledLaplace {
    /// `None` for a unit that changes: which pair dominates is not proven here.
    pub(crate) fn new(rate: f64, scale: f64, change: Change) -> Option<Self> {
        let known = matches!(change, Change::Remove | Change::Add) && rate > 0.0 && rate < 1.0;
        known.then_some(Self {
            rate,
            ln_rate: libm::log(rate),
            epsilon: 1.0 / scale,
            change,
        })
    }

    fn place(&self, x: f64, c: f64) -> Place {
        let w = self.epsilon * (2.0 * x - 1.0);
        let ln_a = ln_mixed(self.rate, w);
        // π, which is at most 1; its own errors are within the room between 12 and 16. The last number is for what underflows.
        let share = libm::exp((w + self.ln_rate - ln_a).min(0.0));
        let loss_units = 12.0 * ln_a.abs() + 16.0 * self.epsilon * share + 1e-300;
        match self.change {
            Change::Add => Place {
                loss: -ln_a,
                ln_power: -c * ln_a,
                loss_units,
            },
            _ => Place {
                loss: ln_a,
                ln_power: (c + 1.0) * ln_a,
                loss_units,
            },
        }
    }

    /// Whether there are steps worth while; if not, numbers here need not even be finite.
    fn is_tame(&self) -> bool {
        self.epsilon <= EPSILON_MAX
    }

    /// Atoms first, then nodes: loss, mass under `f_0` and place.
    fn masses(&self, c: f64, step: f64) -> Vec<(f64, Place)> {
        let last = (REACH / step).ceil() as i64;
        let mut masses = Vec::with_capacity(2 * last as usize + 3);
        masses.push((0.5, self.place(0.0, c)));
        masses.push((0.5 * libm::exp(-self.epsilon), self.place(1.0, c)));
        for i in -last..=last {
            let u = step * i as f64;
            let x = 1.0 / (1.0 + libm::exp(-2.0 * u));
            let slope = 2.0 * libm::exp(-2.0 * u.abs()) * x.max(1.0 - x) * x.max(1.0 - x);
            let mass = step * slope * 0.5 * self.epsilon * libm::exp(-self.epsilon * x);
            masses.push((mass, self.place(x, c)));
        }
        masses
    }

    pub(crate) fn cumulants(&self, c: f64) -> Option<Cumulants> {
        if !self.is_tame() {
            return None;
        }
        let masses = self.masses(c, 0.5);
        let top = top(&masses);
        let (mut total, mut first, mut second) = (0.0, 0.0, 0.0);
        for (mass, place) in &masses {
            let weight = mass * libm::exp(place.ln_power - top);
            total += weight;
            first += weight * place.loss;
            second += weight * place.loss * place.loss;
        }
        let mean = first / total;
        Some(Cumulants {
            ln_moment: libm::log(total) + top,
            mean,
            variance: (second / total - mean * mean).max(0.0),
        })
    }

    /// `ln` of the bound of the integrand in the strip, without `e^(|t|θ)`; infinite if the strip is too wide.
    fn ln_sup(&self, theta: f64, c: f64) -> f64 {
        if theta >= ANGLE_MAX {
            return f64::INFINITY;
        }
        match self.change {
            Change::Add => self.place(0.0, c).ln_power - c * libm::log(libm::cos(theta / 2.0)),
            _ => self.place(1.0, c).ln_power,
        }
    }

    /// The angles `η` that are tried, with their `θ`.
    fn angles(&self) -> impl Iterator<Item = (f64, f64)> {
        let epsilon = self.epsilon;
        let widest = libm::atan(0.99 * ANGLE_MAX / epsilon).min(0.784);
        (1..=14).map(move |i| {
            let eta = widest / 14.0 * f64::from(i);
            (eta, epsilon * libm::tan(eta))
        })
    }

    /// The quadrature error as a share of `e^ln_moment`.
    pub(crate) fn quadrature_error(&self, step: f64, c: f64, t_max: f64, ln_moment: f64) -> f64 {
        let size = libm::log(self.epsilon) - ln_moment;
        self.angles()
            .map(|(eta, theta)| {
                let gain = std::f64::consts::TAU * eta / step;
                if gain >= 4.0 {
                    2.2 * libm::exp(size + self.ln_sup(theta, c) + t_max * theta - gain)
                } else {
                    f64::INFINITY
                }
            })
            .fold(f64::INFINITY, f64::min)
    }

    pub(crate) fn step(&self, c: f64, t_max: f64, digits: f64) -> Option<f64> {
        let ln_moment = self.cumulants(c)?.ln_moment;
        let size = libm::log(self.epsilon) - ln_moment;
        let steps = self.angles().map(|(eta, theta)| {
            let cost = (size + self.ln_sup(theta, c) + t_max * theta).max(0.0);
            std::f64::consts::TAU * eta / (digits + 1.0 + cost)
        });
        let step = short(steps.fold(0.0, f64::max).min(0.5));
        (step > 1e-3).then_some(step)
    }

    pub(crate) fn tilted(&self, c: f64, step: f64) -> Option<Tilted> {
        if !self.is_tame() {
            return None;
        }
        let masses = self.masses(c, step);
        let top = top(&masses);
        let mut tilted = Tilted::default();
        let (mut units, mut loss_units) = (0.0, 0.0);
        for (mass, place) in &masses {
            let weight = mass * libm::exp(place.ln_power - top);
            let powers = (c + 1.0) * place.loss_units + 4.0 * place.ln_power.abs();
            units += weight * (powers + 8.0 * self.epsilon);
            loss_units += weight * place.loss_units;
            tilted.losses.push(place.loss);
            tilted.weights.push(weight);
        }
        let total = lane_sum(&tilted.weights);
        if !(total > 0.0 && total.is_finite()) {
            return None;
        }
        // The integrand between the atoms is at most a/2 times the largest power, which is e^top.
        let beyond = self.epsilon * libm::exp(-2.0 * REACH) * 3.0 / total;
        let sums = lane_sum_units(tilted.losses.len()) + 2.0 * top.abs() + 40.0;
        tilted.error = beyond + UNIT * (units / total + sums);
        tilted.loss_error = UNIT * loss_units / total;
        for weight in &mut tilted.weights {
            *weight /= total;
        }
        let ln_total = libm::log(total);
        tilted.ln_moment = ln_total + top;
        tilted.ln_error = 4.0 * UNIT * (2.0 + ln_total.abs() + top.abs());
        Some(tilted)
    }

    pub(crate) fn decay(&self, c: f64) -> Option<Decay> {
        let step = self.step(c, 0.0, 20.0)?;
        let tilted = self.tilted(c, step)?;
        let slack = tilted.error + self.quadrature_error(step, c, 0.0, tilted.ln_moment) + 1e-9;
        let share = |mass: f64, place: Place| mass * libm::exp(place.ln_power - tilted.ln_moment);
        let (low, high) = (self.place(0.0, c), self.place(1.0, c));
        let atoms = [(0.5, low), (0.5 * libm::exp(-self.epsilon), high)]
            .map(|(mass, place)| share(mass, place));
        let atom = |mass: f64, place: Place| Cell {
            loss: place.loss,
            mass: mass * (1.0 - slack),
            radius: 0.0,
            shift: 0.0,
            height: 0.0,
            variation: 0.0,
        };
        let mut cells = vec![atom(atoms[0], low)];
        let width = 1.0 / f64::from(CELLS);
        for i in 0..CELLS {
            let x = (f64::from(i) + 0.5) * width;
            let place = self.place(x, c);
            let edge = self.place(x + width / 2.0, c).loss - place.loss;
            let other = self.place(x - width / 2.0, c).loss - place.loss;
            // |(ln G)'| <= a + 2a(c+1), |L'| <= 2a and |L''| <= a².
            let slope = self.epsilon * (2.0 * c + 3.0);
            let mass =
                width * 0.5 * self.epsilon * libm::exp(-self.epsilon * x - slope * width / 2.0);
            cells.push(Cell {
                loss: place.loss,
                mass: share(mass, place) * (1.0 - slack),
                radius: edge.abs().max(other.abs()) * (1.0 + 1e-9),
                shift: width * width / 24.0 * self.epsilon * self.epsilon,
                height: 0.0,
                variation: 0.0,
            });
        }
        cells.push(atom(atoms[1], high));
        // f = G/L' at the ends: e^(-ax) A^power/(4π), with π = q e^w/A.
        let height = |x: f64, place: Place| {
            let w = self.epsilon * (2.0 * x - 1.0);
            let ln_a = place.loss.abs().copysign(w);
            let ln_share = self.ln_rate + w - ln_a;
            0.25 * libm::exp(-self.epsilon * x + place.ln_power - ln_share - tilted.ln_moment)
        };
        let variation = 2.0 * (height(0.0, low) + height(1.0, high)) * (1.0 + slack);
        let atoms = (atoms[0] + atoms[1]) * (1.0 + slack);
        Some(Decay::Windows(Windows::new(
            &cells,
            atoms.min(1.0),
            variation,
            1.0,
        )))
    }
}

/// `ln(1 - q + q e^w)`, which errs by at most 12 units of itself, given that `w` does not err.
fn ln_mixed(rate: f64, w: f64) -> f64 {
    let grown = rate * libm::expm1(w);
    if grown < -0.5 {
        libm::log((1.0 - rate) + rate * libm::exp(w))
    } else {
        libm::log1p(grown)
    }
}

fn top(masses: &[(f64, Place)]) -> f64 {
    masses
        .iter()
        .map(|(_, place)| place.ln_power)
        .fold(f64::NEG_INFINITY, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For an integer power the moment is a binomial sum of the moments of the Laplace pair.
    #[test]
    fn integer_moments_are_binomial_sums() {
        for (rate, scale) in [(0.01, 1.0), (0.3, 0.5), (0.9, 4.0)] {
            let sampled = SampledLaplace::new(rate, scale, Change::Remove).expect("in range");
            let a: f64 = 1.0 / scale;
            // E_Q[(f_1/f_0)^j] of the Laplace pair.
            let plain = |j: f64| {
                let inverse = 1.0 / (2.0 * j - 1.0);
                0.5 * ((a * (j - 1.0)).exp() * (1.0 + inverse) + (-a * j).exp() * (1.0 - inverse))
            };
            for power in [1_i32, 2, 5] {
                let mut binomial = 1.0;
                let mut truth = 0.0;
                for j in 0..=power {
                    truth += binomial
                        * (1.0 - rate).powi(power - j)
                        * rate.powi(j)
                        * plain(f64::from(j));
                    binomial *= f64::from(power - j) / f64::from(j + 1);
                }
                let c = f64::from(power) - 1.0;
                let step = sampled.step(c, 0.0, 34.0).expect("small");
                let tilted = sampled.tilted(c, step).expect("small");
                let error = tilted.error + sampled.quadrature_error(step, c, 0.0, tilted.ln_moment);
                let found = tilted.ln_moment.exp();
                assert!(
                    (found / truth - 1.0).abs() <= error + 1e-14,
                    "{rate} {scale} {power}: {found} {truth} {error:e}"
                );
                assert!(error < 1e-13, "{error:e}");
            }
        }
    }

    /// `A` has a zero between the nodes once `a tan η >= π`: a power of it that is no whole number has a branch point there.
    #[test]
    fn steps_err_by_less_than_is_said() {
        for change in [Change::Remove, Change::Add] {
            for (rate, scale) in [
                (0.5, 0.1),
                (0.5, 0.05),
                (0.4, 0.2),
                (0.01, 0.1),
                (0.1, 0.02),
            ] {
                let sampled = SampledLaplace::new(rate, scale, change).expect("in range");
                for c in [0.2, 0.5, 1.5, 3.3] {
                    let fine = sampled.tilted(c, 1.0 / 256.0).expect("small");
                    for step in [0.5, 0.25, 0.125, 0.0625] {
                        let found = sampled.tilted(c, step).expect("small");
                        let error = found.error
                            + fine.error
                            + sampled.quadrature_error(step, c, 0.0, found.ln_moment);
                        let off = libm::expm1(fine.ln_moment - found.ln_moment).abs();
                        assert!(
                            off <= error * 1.01,
                            "{change:?} {rate} {scale} {c} {step}: {off:e} {error:e}"
                        );
                    }
                }
            }
        }
    }

    /// Losses by mpmath 1.3.0 with 60 digits, at places that are floats: rates next to one, and below `2^-53`.
    #[test]
    fn losses_err_by_less_than_is_said() {
        let next_to_one = |power: i32| 1.0 - 2.0_f64.powi(-power);
        for (rate, scale, x, truth) in [
            (next_to_one(40), 0.03125, 0.0, -27.712_058_878_906_603),
            (next_to_one(40), 0.03125, 0.03125, -27.627_954_890_145_907),
            (next_to_one(52), 0.03125, 0.0, -31.982_618_635_618_606),
            (next_to_one(30), 0.015625, 0.25, -20.794_401_818_846_61),
            (0.999, 0.125, 0.0, -6.618_728_736_779_034),
            (0.75, 0.0625, 0.0, -1.386_294_023_514_423_4),
            (0.3, 0.25, 0.9375, 2.364_116_182_677_982),
            (0.01, 0.5, 0.125, -0.007_799_031_939_469_594),
            (
                2.0_f64.powi(-66),
                0.015625,
                0.78125,
                5.842_637_576_444_511e-5,
            ),
            (
                2.0_f64.powi(-80),
                0.0078125,
                0.6875,
                5.802_424_177_932_893e-4,
            ),
            (2.0_f64.powi(-60), 0.015625, 0.75, 6.848_710_508_543_615e-5),
            (
                2.0_f64.powi(-1000),
                0.0009765625,
                0.8125,
                8.288_439_162_873_666e-24,
            ),
        ] {
            for change in [Change::Remove, Change::Add] {
                let sampled = SampledLaplace::new(rate, scale, change).expect("in range");
                let place = sampled.place(x, 0.5);
                let off = (place.loss.abs() - f64::abs(truth)).abs();
                let what = format!("{rate:e} {scale} {x}: {} {truth}", place.loss);
                assert!(
                    off <= UNIT * (place.loss_units + 2.0 * f64::abs(truth)),
                    "{what}"
                );
                assert!(
                    place.loss_units <= 1e3 * (f64::abs(truth) + 1.0 / scale),
                    "{what}"
                );
            }
        }
    }
}
