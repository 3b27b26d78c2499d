//! # The moments of a pair, and its tilted law
//! `M(s) = E_P[e^(sL)]` for complex `s = c + it`, of the pairs of [`pair.rs`](crate::pair) whose losses have a density.
//! `M(c + it)/M(c)` is the characteristic function of the loss under the law tilted by `e^(cL)`.
//!
//! **Closed forms.** Gaussian with noise multiplier `σ`: `e^(s(s+1)/(2σ²))`. Laplace, with `a = 1/b`:
//! `½[e^(sa)(1 + 1/(2s+1)) + e^(-(s+1)a)(1 - 1/(2s+1))]`, from the masses `½` at loss `a`, `½e^-a` at `-a` and the density
//! `(a/2)e^(-ax)` of the loss `a(1-2x)`, `0 < x < 1`.
//!
//! **Sampled Gaussian.** With `A(x) = 1-q+q e^((2x-1)/(2σ²))`, `B(x) = A(-x)` and the density `N` of `N(0, σ²)`, the integrand
//! `P e^(sL)` is `N A^(s+1)` for a unit that leaves, `N A^-s` for one that joins and `N A^(s+1) B^-s` for one that changes.
//! It is analytic where `|Im x| < πσ²`: `A` vanishes only where `Im x` is an odd multiple of `πσ²`. So the trapezoid rule
//! with step `h` errs by at most `2/(e^(2πy/h) - 1) · max ∫|P e^(sL)(x ± iy)| dx` for every `0 < y < πσ²` [TW14, Thm 5.1].
//! Let `θ = y/σ²`. For the bound of the integral we use
//! - `|N(x+iy)| = N(x) e^(θ²σ²/2)`;
//! - `A(x) cos(θ/2) <= |A(x+iy)| <= A(x)`: the triangle inequality, and `|α+βe^(iθ)|² = (α+β)² - 4αβ sin²(θ/2)` with
//!   `4αβ <= (α+β)²`;
//! - `|arg A(x+iy)| <= θ`, so that the imaginary part of the exponent adds at most `e^(|t|θ)` for each of `A` and `B`.
//!
//! Hence the error, as a share of `M(c)`, is at most `2/(e^(2πθσ²/h) - 1) · e^(θ²σ²/2 + v|t|θ) cos(θ/2)^-m`, where `v` counts
//! the factors with `s` in the exponent and `m` is the power of a factor in the denominator: `(v, m)` is `(1, 0)`, `(1, c)`,
//! `(2, c)`. Any `θ` in `(0, π)` may be chosen.
//!
//! **The ends.** `σ² d/dx ln(P e^(cL)) = -x + (c+1)π_A`, `-x - cπ_A` or `-x + (c+1)π_A + cπ_B`, where `π_A = 1 - (1-q)/A` and
//! `π_B` lie between 0 and 1. Beyond `x > ρ` it is at most `ρ - x < 0` and below `x < -λ` at least `-x - λ > 0`, with
//! `(ρ, λ)` = `(c+1, 0)`, `(0, c)`, `(2c+1, 0)`; so what is left out there is at most a geometric series of the last node.
//!
//! **Round-off.** Nodes are short multiples of a short step, so `x` is exact. `w = (x-½)/σ²` has three roundings, which move
//! `ln A` by `π_A |w|` times as much. Let `z = q(1-e^w)`, so that `A = 1-z`, and `u = 2^-53`.
//! - `w >= 0`: `ln A = log1p(-z)`; four roundings of `z` move it by at most `4u|z|/(1+|z|) <= 4u ln A`, and `π_A w <= 2(1+w) ln A`: from
//!   `we^w <= (1+w)(e^w-1)` where `q(e^w-1) <= 1`, and from `π_A <= 1`, `ln A >= ln 2`, `w <= ln A + ln(1/q)` elsewhere.
//! - `w < 0`, `z <= ½`: likewise, with `z/(1-z) <= 2z <= 2|ln A|` and `π_A|w| <= 2q|w|e^w <= 2z`.
//! - `w < 0`, `z > ½`: near `z = 1` digits would cancel. `A = (1-q) + qe^w`, where `1-q` is exact as `q > ½`, and a sum of positive numbers: its relative error
//!   is at most `u(5+3|w|)`, at most `u(8+5|w|)|ln A|` since `|ln A| >= ln 2`.
//!
//! With the rounding of the logarithm, `ln A` errs by at most `u(18+8|w|)|ln A|`. Where `e^w` is beyond the floats, `ln A = w + ln q + log1p((1-q)e^(-w)/q)`, term
//! by term.

use crate::pair::Change;

/// The relative error of one rounded operation.
pub(crate) const UNIT: f64 = f64::EPSILON / 2.0;
/// Standard deviations beyond the last centre at which the grid ends: `e^(-10²/2) < 1e-21`.
const REACH: f64 = 10.0;
/// Larger grids are not worth while: another engine answers.
const NODES_MAX: f64 = 40_000.0;
/// `e^w` is a float up to here.
const EXPONENT_MAX: f64 = 700.0;
/// Nodes lighter than this share of the heaviest are dropped, and counted as error.
const LIGHT: f64 = 1e-19;

/// The law of one loss, tilted by `e^(cL)`, as nodes with weights.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tilted {
    /// `ln M̃(c)`, where `M̃(c)` is the sum over all nodes.
    pub(crate) ln_moment: f64,
    /// The round-off of `ln_moment`.
    pub(crate) ln_error: f64,
    pub(crate) losses: Vec<f64>,
    /// As shares of `M̃(c)`.
    pub(crate) weights: Vec<f64>,
    /// What is left out at the ends and by dropping, and the round-off of the weights, as a share of `M̃(c)`.
    pub(crate) error: f64,
    /// The mean round-off of the losses: `t` times this is an error of the characteristic function at `t`.
    pub(crate) loss_error: f64,
}

/// Mean and variance of a tilted loss, and the logarithm of its moment: estimates, to steer by.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cumulants {
    pub(crate) ln_moment: f64,
    pub(crate) mean: f64,
    pub(crate) variance: f64,
}

/// A Gaussian over a Poisson sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SampledGaussian {
    pub(crate) rate: f64,
    pub(crate) sigma: f64,
    pub(crate) change: Change,
}

/// The parts of the integrand on a rough grid, from which estimates at any tilt take one exponential per node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rough {
    /// The index of the first node.
    first: i64,
    /// `ln N`, `ln A` and `ln B` at each node; the last only where it is needed.
    nodes: Vec<[f64; 3]>,
}

impl Rough {
    fn reach(&mut self, sampled: &SampledGaussian, first: i64, last: i64) {
        let step = sampled.rough_step();
        let node = |index: i64| {
            let x = step * index as f64;
            let b = match sampled.change {
                Change::Replace => sampled.ln_a(-x).0,
                _ => 0.0,
            };
            [
                -0.5 * (x / sampled.sigma) * (x / sampled.sigma),
                sampled.ln_a(x).0,
                b,
            ]
        };
        if self.nodes.is_empty() {
            self.first = first;
        }
        let end = self.first + self.nodes.len() as i64;
        self.nodes.extend((end..=last).map(node));
        if first < self.first {
            let more: Vec<_> = (first..self.first).map(node).collect();
            self.nodes.splice(0..0, more);
            self.first = first;
        }
    }

    /// Estimates at tilt `c`.
    pub(crate) fn cumulants(&mut self, sampled: &SampledGaussian, c: f64) -> Option<Cumulants> {
        let step = sampled.rough_step();
        let (first, last) = sampled.indices(c, step)?;
        self.reach(sampled, first, last);
        let start = (first - self.first) as usize;
        let nodes = &self.nodes[start..=start + (last - first) as usize];
        let (sign, a_power, b_power) = match sampled.change {
            Change::Remove => (1.0, c + 1.0, 0.0),
            Change::Add => (-1.0, -c, 0.0),
            Change::Replace => (1.0, c + 1.0, c),
        };
        let ln_weight = |[normal, a, b]: &[f64; 3]| normal + a_power * a - b_power * b;
        let top = nodes
            .iter()
            .map(ln_weight)
            .fold(f64::NEG_INFINITY, f64::max);
        let (mut total, mut mean, mut square) = (0.0, 0.0, 0.0);
        for node in nodes {
            let below = ln_weight(node) - top;
            if below < -40.0 {
                continue;
            }
            let weight = libm::exp(below);
            let loss = sign * node[1] - node[2];
            total += weight;
            mean += weight * loss;
            square += weight * loss * loss;
        }
        let mean = mean / total;
        Some(Cumulants {
            ln_moment: libm::log(total) + top + sampled.ln_density(step),
            mean,
            variance: (square / total - mean * mean).max(0.0),
        })
    }
}

/// What is known of the integrand at one place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) loss: f64,
    /// `ln` of the integrand, up to the constant `-ln(σ√(2π))`.
    pub(crate) ln_weight: f64,
    /// The round-off of the loss, in units of `u`.
    pub(crate) loss_units: f64,
}

impl SampledGaussian {
    /// `ln A(x)` and its round-off in units of `u`.
    pub(crate) fn ln_a(&self, x: f64) -> (f64, f64) {
        let w = (x - 0.5) / (self.sigma * self.sigma);
        if w > EXPONENT_MAX {
            let (ln_rate, rest) = (libm::log(self.rate), self.rest(w));
            let value = w + ln_rate + libm::log1p(rest);
            return (value, 8.0 * (w + ln_rate.abs() + value.abs()));
        }
        let grown = self.rate * libm::expm1(w);
        let value = if grown < -0.5 {
            libm::log((1.0 - self.rate) + self.rate * libm::exp(w))
        } else {
            libm::log1p(grown)
        };
        (value, (18.0 + 8.0 * w.abs()) * value.abs())
    }

    /// `(1-q)/(q e^w)`.
    fn rest(&self, w: f64) -> f64 {
        (1.0 - self.rate) / self.rate * libm::exp(-w)
    }

    /// `ln A(x)` and `π_A(x) = q e^w/A`, both up to `1e-11` of their size.
    pub(crate) fn ln_a_and_share(&self, x: f64) -> (f64, f64) {
        let w = (x - 0.5) / (self.sigma * self.sigma);
        if w > EXPONENT_MAX {
            return (self.ln_a(x).0, 1.0 / (1.0 + self.rest(w)));
        }
        let grown = libm::expm1(w);
        // 1 + (e^w - 1) has lost all but this much of e^w.
        let power = if w > -10.0 { 1.0 + grown } else { libm::exp(w) };
        let (a, ln_a) = if self.rate * grown < -0.5 {
            let a = (1.0 - self.rate) + self.rate * power;
            (a, libm::log(a))
        } else {
            let a = 1.0 + self.rate * grown;
            (a, libm::log1p(self.rate * grown))
        };
        (ln_a, (self.rate * power / a).min(1.0))
    }

    pub(crate) fn place(&self, x: f64, c: f64) -> Place {
        let normal = -0.5 * (x / self.sigma) * (x / self.sigma);
        let (a, a_units) = self.ln_a(x);
        match self.change {
            Change::Remove => Place {
                loss: a,
                ln_weight: normal + (c + 1.0) * a,
                loss_units: a_units,
            },
            Change::Add => Place {
                loss: -a,
                ln_weight: normal - c * a,
                loss_units: a_units,
            },
            Change::Replace => {
                let (b, b_units) = self.ln_a(-x);
                Place {
                    loss: a - b,
                    ln_weight: normal + (c + 1.0) * a - c * b,
                    loss_units: a_units + b_units,
                }
            }
        }
    }

    /// `(ρ, λ)` of the module text.
    pub(crate) fn ends(&self, c: f64) -> (f64, f64) {
        match self.change {
            Change::Remove => (c + 1.0, 0.0),
            Change::Add => (0.0, c),
            Change::Replace => (2.0 * c + 1.0, 0.0),
        }
    }

    /// `(v, m)` of the module text.
    fn factors(&self, c: f64) -> (f64, f64) {
        match self.change {
            Change::Remove => (1.0, 0.0),
            Change::Add => (1.0, c),
            Change::Replace => (2.0, c),
        }
    }

    /// What an angle costs in the exponent of the quadrature error.
    fn cost(&self, theta: f64, c: f64, t_max: f64) -> f64 {
        let (v, m) = self.factors(c);
        let square = self.sigma * self.sigma;
        theta * theta * square / 2.0 + v * t_max * theta - m * libm::log(libm::cos(theta / 2.0))
    }

    /// The bound on the quadrature error at `|t| <= t_max`, as a share of the true `M(c)`, by the best of some angles.
    pub(crate) fn quadrature_error(&self, step: f64, c: f64, t_max: f64) -> f64 {
        angles()
            .map(|theta| {
                let gain = std::f64::consts::TAU * theta * self.sigma * self.sigma / step;
                // 2/(e^g - 1) <= 2.1 e^-g for g >= 4; the rest is room for the rounding of a few dozen operations.
                if gain >= 4.0 {
                    2.2 * libm::exp(self.cost(theta, c, t_max) - gain)
                } else {
                    f64::INFINITY
                }
            })
            .fold(f64::INFINITY, f64::min)
    }

    /// A step with which the quadrature error up to `t_max` is about `e^-digits`, as a float with a short mantissa.
    pub(crate) fn step(&self, c: f64, t_max: f64, digits: f64) -> f64 {
        let steps = angles().map(|theta| {
            let gain = std::f64::consts::TAU * theta * self.sigma * self.sigma;
            gain / (digits + 1.0 + self.cost(theta, c, t_max))
        });
        short(steps.fold(0.0, f64::max))
    }

    /// The first and last node of a grid at tilt `c`; none if they would be too many.
    fn indices(&self, c: f64, step: f64) -> Option<(i64, i64)> {
        let (rho, lambda) = self.ends(c);
        let first = ((-lambda - REACH * self.sigma) / step).floor();
        let last = ((rho + REACH * self.sigma) / step).ceil();
        let few = step > 0.0 && last - first <= NODES_MAX && first.abs().max(last.abs()) < 1e8;
        few.then_some((first as i64, last as i64))
    }

    fn places(&self, c: f64, step: f64) -> Option<impl Iterator<Item = Place>> {
        let (first, last) = self.indices(c, step)?;
        let this = *self;
        Some((first..=last).map(move |i| this.place(step * i as f64, c)))
    }

    /// A step that is good enough to steer by, with a proven error at `t = 0` (see [`quadrature_error`](Self::quadrature_error)).
    pub(crate) fn rough_step(&self) -> f64 {
        short((self.sigma / 3.0).min(0.6 * self.sigma * self.sigma))
    }

    fn ln_density(&self, step: f64) -> f64 {
        libm::log(step / (self.sigma * std::f64::consts::TAU.sqrt()))
    }

    /// The nodes of the trapezoid rule with the given (short) step at tilt `c`; none if they would be too many.
    pub(crate) fn tilted(&self, c: f64, step: f64) -> Option<Tilted> {
        let places: Vec<Place> = self.places(c, step)?.collect();
        let weigh = |place: &Place, top: f64| libm::exp(place.ln_weight - top);
        let top = places
            .iter()
            .map(|place| place.ln_weight)
            .fold(f64::NEG_INFINITY, f64::max);
        let mut tilted = Tilted::default();
        let (mut dropped, mut units, mut loss_units) = (0.0, 0.0, 0.0);
        for place in &places {
            let weight = weigh(place, top);
            if weight < LIGHT {
                dropped += weight;
                continue;
            }
            // The normal exponent is at most the whole one plus what the powers of A and B add to it.
            let powers = (2.0 * c + 1.0) * place.loss_units;
            units += weight * (8.0 * place.ln_weight.abs() + 8.0 * powers);
            loss_units += weight * place.loss_units;
            tilted.losses.push(place.loss);
            tilted.weights.push(weight);
        }
        let total = lane_sum(&tilted.weights);
        // Beyond the ends each node is at most this share of the one before it.
        let ratio = libm::exp(-step * REACH / self.sigma);
        let ends = places.first().into_iter().chain(places.last());
        let beyond: f64 = ends.map(|place| weigh(place, top)).sum::<f64>() / (1.0 - ratio);
        let sums = lane_sum_units(tilted.losses.len()) + 2.0 * top.abs() + 20.0;
        tilted.error = (dropped + beyond) / total * 1.001 + UNIT * (units / total + sums);
        tilted.loss_error = UNIT * loss_units / total;
        for weight in &mut tilted.weights {
            *weight /= total;
        }
        let (ln_total, ln_density) = (libm::log(total), self.ln_density(step));
        tilted.ln_moment = ln_total + top + ln_density;
        tilted.ln_error = 4.0 * UNIT * (2.0 + ln_total.abs() + top.abs() + ln_density.abs());
        Some(tilted)
    }
}

/// A sum in 16 lanes: fast, and each term is rounded only as often as its lane is long, and at the end.
pub(crate) fn lane_sum(terms: &[f64]) -> f64 {
    let mut lanes = [0.0; 16];
    let mut chunks = terms.chunks_exact(16);
    for chunk in &mut chunks {
        for (lane, term) in lanes.iter_mut().zip(chunk) {
            *lane += term;
        }
    }
    let rest: f64 = chunks.remainder().iter().sum();
    lanes.iter().sum::<f64>() + rest
}

/// A bound on the roundings that a term of [`lane_sum`] goes through.
pub(crate) fn lane_sum_units(count: usize) -> f64 {
    (count / 16) as f64 + 18.0
}

/// The angles `θ` that are tried, within `(0, π)`.
fn angles() -> impl Iterator<Item = f64> {
    (1..=15).map(|i| 0.2 * f64::from(i))
}

/// The largest float at or below `value` with a mantissa of 24 bits, so that its multiples by integers up to `2^29` are exact.
pub(crate) fn short(value: f64) -> f64 {
    f64::from_bits(value.to_bits() & !((1 << 29) - 1))
}
