//! # The law of an index under a tilt
//! **Definition.** `q_j = p_j e^(c l_j)/M(c)`, and its characteristic function around a centre `μ`,
//! `ψ(θ) = Σ_j q_j e^(iθ(j-μ))`. Any float serves as the centre; near the mean is best.
//!
//! **Logarithm.** `ψ - 1 = Σ q_j (e^(iθ(j-μ)) - 1)`, since the true masses add up to one; so an error of the masses counts only
//! as far as the exponentials differ from 1. With `u = 2^-53`, `x_j = θ(j-μ)` is rounded by at most `6u|x_j|` and sine and
//! half-angle by an ulp each, so a term errs by at most `(16u + e)|x_j| q_j` where `e` is the relative error of `q_j`; sums are
//! compensated. An error `η` of `ψ` is at most `-ln(1 - η/|ψ|)` of its logarithm. Multiplied by `k` steps, at the places
//! `θ ~ 1/(σ√k)` that matter, this is `√k` times an ulp and not `k` times.
//!
//! **Far away.** `|ψ|` is at most each of
//! - `√(1 - 4 a sin²(θ/2))` with `a = Σ q_j q_(j+1)`: `1 - |ψ|² = Σ_(i,j) q_i q_j (1 - cos θ(i-j))`, of which only neighbours are kept;
//! - `V_r / (2 sin(θ/2))^r` with the `r`-th differences `V_r = Σ |Δ^r q_j|`: summation by parts.
//!
//! Both fall with `θ` up to `π`. A third does not, but tells where a law with two heavy masses `q, q'` at the distance `D` is not near
//! its period: `|ψ| <= √((q+q')² - 4qq' sin²(Dθ/2))` plus the rest of the mass.
//!
//! **Gaussian lattice** with `σ >= 8`: by Poisson summation `ψ(θ) = e^(-σ²θ²/2)` up to a factor `1 ± 3e^(-π²σ²)` for
//! `|θ| <= π/2`, and `|ψ| <= e e^(-σ²π²/8)` from there to `π`.

use std::f64::consts::{FRAC_PI_2, TAU};

use crate::Bracket;

/// Half a unit in the last place of 1.
pub(crate) const U: f64 = f64::EPSILON / 2.0;
/// Lighter shares are dropped, and counted.
const LIGHT: f64 = 1e-50;

/// The tilted law of one index.
#[derive(Clone, Debug)]
pub(crate) enum Law {
    /// Finitely many masses.
    Masses(Masses),
    /// A discrete Gaussian that is smooth to all digits.
    Gaussian {
        /// The scale.
        sigma: f64,
        /// The centre, as a float.
        center: f64,
        /// What the true mean has beyond it, and how far it may still be off.
        center_low: f64,
        center_error: f64,
    },
}

/// Masses with a common relative error.
#[derive(Clone, Debug)]
pub(crate) struct Masses {
    from: i64,
    masses: Vec<f64>,
    error: f64,
    dropped: f64,
    center: f64,
    /// `Σ q_j q_(j+1)`, rounded down.
    adjacent: f64,
    /// The two heaviest masses and their distance.
    heavy: (f64, f64, f64),
    /// `ln V_r`, rounded up, for `r = 1, 2, 3, 4`.
    ln_variation: [f64; 4],
}

/// A complex logarithm and how far both its parts may be off.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Logarithm {
    pub(crate) re: f64,
    pub(crate) im: f64,
    pub(crate) error: f64,
    /// An upper bound of the real part, which holds even where the error is too large to be of use.
    pub(crate) most: f64,
}

/// Exponentials in proportion.
pub(crate) struct Normalized {
    /// `ln Σ e^x`.
    pub(crate) ln_total: Bracket,
    terms: Vec<Bracket>,
    total: Bracket,
}

/// `e^(x_j - max x)` and `ln Σ e^(x_j)`.
pub(crate) fn normalize(exponents: &[Bracket]) -> Normalized {
    let most = exponents
        .iter()
        .map(|x| x.estimate())
        .fold(f64::NEG_INFINITY, f64::max);
    let shift = Bracket::exact(if most.is_finite() { most } else { 0.0 });
    let terms: Vec<Bracket> = exponents.iter().map(|&x| (x - shift).exp()).collect();
    let total = terms.iter().fold(Bracket::ZERO, |sum, &term| sum + term);
    Normalized {
        ln_total: shift + total.ln(),
        terms,
        total,
    }
}

/// The law with masses in proportion to `e^x`, from an index on; `beyond` bounds the share of what is not listed.
pub(crate) fn tilted_masses(exponents: &[Bracket], from: i64, beyond: f64) -> Law {
    let Normalized { terms, total, .. } = normalize(exponents);
    let (mut error, mut dropped) = (beyond, beyond);
    let masses: Vec<f64> = terms
        .iter()
        .map(|&term| {
            let share = term / total;
            if share.upper() < LIGHT {
                dropped += share.upper() * (1.0 + 4.0 * U);
                return 0.0;
            }
            let mass = share.estimate();
            error = error.max((share.upper() - share.lower()) / share.lower() * (1.0 + 8.0 * U));
            mass
        })
        .collect();
    // A bracket without a lower end says nothing of its mass.
    let error = if error.is_finite() {
        error + 2.0 * U
    } else {
        f64::INFINITY
    };
    let center = from as f64
        + masses
            .iter()
            .zip(0..)
            .map(|(mass, j)| mass * f64::from(j))
            .sum::<f64>();
    let safe = 1.0 - 2.0 * error - 1e-10;
    let adjacent = masses.windows(2).map(|two| two[0] * two[1]).sum::<f64>() * safe.max(0.0);
    let mut difference = masses.clone();
    let heaviest = masses.iter().copied().fold(0.0, f64::max);
    let ln_variation = [1, 2, 3, 4].map(|order: i32| {
        difference.push(0.0);
        for j in (1..difference.len()).rev() {
            difference[j] -= difference[j - 1];
        }
        let plain: f64 = difference.iter().map(|x| x.abs()).sum();
        let doubled = f64::from(1 << order);
        // Each mass enters with coefficients of sum 2^r, so its error does as well; the same for roundings.
        let wrong = doubled * (error + 8.0 * U) * 2.0
            + difference.len() as f64 * doubled * heaviest * U * 8.0;
        libm::log((plain * (1.0 + 1e-12) + wrong) * (1.0 + 1e-12)) + 1e-13
    });
    let mut order: Vec<usize> = (0..masses.len()).collect();
    order.sort_unstable_by(|&a, &b| masses[b].total_cmp(&masses[a]));
    let heavy = match order[..] {
        [first, second, ..] => (masses[first], masses[second], first.abs_diff(second) as f64),
        _ => (1.0, 0.0, 0.0),
    };
    Law::Masses(Masses {
        heavy,
        from,
        masses,
        error,
        dropped,
        center,
        adjacent,
        ln_variation,
    })
}

impl Law {
    /// The centre.
    pub(crate) fn center(&self) -> f64 {
        match self {
            Self::Masses(masses) => masses.center,
            Self::Gaussian { center, .. } => *center,
        }
    }

    /// How many terms its characteristic function has.
    pub(crate) fn terms(&self) -> usize {
        match self {
            Self::Masses(masses) => masses.masses.len(),
            Self::Gaussian { .. } => 1,
        }
    }

    /// How much of the true law is not in it.
    pub(crate) fn dropped(&self) -> f64 {
        match self {
            Self::Masses(masses) => masses.dropped,
            Self::Gaussian { .. } => 0.0,
        }
    }

    /// `ln ψ(θ + 2πm)` for `|θ| <= π`, known up to a relative error of `4u`.
    pub(crate) fn logarithm(&self, angle: f64, turns: f64) -> Logarithm {
        let mut found = match self {
            Self::Masses(masses) => masses.logarithm(angle),
            Self::Gaussian {
                sigma,
                center_low,
                center_error,
                ..
            } => {
                if angle.abs() > FRAC_PI_2 {
                    return Logarithm {
                        re: 0.0,
                        im: 0.0,
                        error: f64::INFINITY,
                        most: self.ln_bound(angle.abs()),
                    };
                }
                let re = -0.5 * (sigma * angle) * (sigma * angle);
                let im = angle * center_low;
                Logarithm {
                    re,
                    im,
                    error: 16.0 * U * (re.abs() + im.abs()) + angle.abs() * center_error + 1e-250,
                    most: re * (1.0 - 16.0 * U) + 1e-250,
                }
            }
        };
        if turns != 0.0 {
            // e^(2πim(j-μ)) = e^(-2πimμ) for every integer j.
            let product = turns * self.center();
            let low = libm::fma(turns, self.center(), -product);
            found.im -= TAU * ((product - product.round()) + low);
            found.error += 32.0 * U;
        }
        found
    }

    /// An upper bound of `ln |ψ(θ)|` at one place.
    pub(crate) fn ln_bound_here(&self, angle: f64) -> f64 {
        let Self::Masses(masses) = self else {
            return 0.0;
        };
        let (first, second, distance) = masses.heavy;
        let (both, turn) = (first + second, 0.5 * angle * distance);
        let sine = libm::sin(turn).abs() - 1e-14 * (1.0 + turn.abs());
        let sine = sine.max(0.0);
        let square = both * both - 4.0 * first * second * sine * sine;
        // Roundings and the errors of masses move this by less than so much.
        let wrong = 4.0 * masses.error + 1e-13;
        let bound = square.max(0.0).sqrt() + (1.0 - both) + wrong.sqrt().min(1.0);
        if bound < 1.0 { libm::log(bound) } else { 0.0 }
    }

    /// An upper bound of `ln |ψ(θ)|` for `0 <= θ <= π`; it never rises with `θ`.
    pub(crate) fn ln_bound(&self, angle: f64) -> f64 {
        match self {
            Self::Masses(masses) => {
                // A share below the truth, so that the bound is above it.
                let sine = libm::sin(0.5 * angle) * (1.0 - 1e-14);
                let inside = (4.0 * sine * sine * masses.adjacent).min(1.0);
                let near = 0.5 * libm::log1p(-inside) * (1.0 - 1e-12);
                let step = libm::log(2.0 * sine) - 1e-13;
                (1..)
                    .zip(masses.ln_variation)
                    .map(|(order, variation)| variation - f64::from(order) * step + 1e-13)
                    .fold(near.min(0.0), f64::min)
            }
            Self::Gaussian { sigma, .. } => {
                let at = |angle: f64| -0.5 * sigma * sigma * angle * angle * (1.0 - 1e-12);
                at(angle).max(1.0 + at(FRAC_PI_2))
            }
        }
    }
}

impl Masses {
    fn logarithm(&self, angle: f64) -> Logarithm {
        let (mut re, mut im) = (Compensated::default(), Compensated::default());
        let mut weight = 0.0;
        // What the difference is rounded by is common to all.
        let from = self.from as f64;
        let first = from - self.center;
        let back = first - from;
        let rounded = ((from - (first - back)) - (self.center + back)).abs();
        for (&mass, j) in self.masses.iter().zip(0..) {
            if mass == 0.0 {
                continue;
            }
            let away = first + f64::from(j);
            let x = angle * away;
            let (sine, cosine) = libm::sincos(0.5 * x);
            re.add(-2.0 * mass * sine * sine);
            im.add(2.0 * mass * sine * cosine);
            weight += mass * x.abs();
        }
        let (a, b) = (re.sum(), im.sum());
        let eta = ((16.0 * U + self.error) * weight + 2.0 * angle.abs() * rounded) * (1.0 + 1e-9)
            + self.dropped;
        let y = 2.0 * a + a * a + b * b;
        let (size, ln_size, rounding) = if y > -0.75 {
            let size = (1.0 + y).sqrt();
            let rounding = 4.0 * U * (2.0 * a.abs() + a * a + b * b) / (1.0 + y);
            (size, 0.5 * libm::log1p(y), rounding)
        } else {
            let size = libm::hypot(1.0 + a, b);
            (size, libm::log(size), 4.0 * U / size)
        };
        let share = eta / size * (1.0 + 1e-9);
        let error = if share < 0.5 {
            -libm::log1p(-share) + rounding + 4.0 * U * ln_size.abs()
        } else {
            f64::INFINITY
        };
        let im = libm::atan2(b, 1.0 + a);
        Logarithm {
            re: ln_size,
            im,
            error: error + 8.0 * U * im.abs(),
            most: if error < 0.5 {
                ln_size + error
            } else {
                libm::log((size + eta) * (1.0 + 1e-9))
            },
        }
    }
}

/// A sum that carries its rounding errors along (Neumaier): the result errs by `2u` of itself and `n u²` of the absolute sum.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Compensated {
    sum: f64,
    rest: f64,
}

impl Compensated {
    pub(crate) fn add(&mut self, term: f64) {
        let next = self.sum + term;
        self.rest += if self.sum.abs() >= term.abs() {
            (self.sum - next) + term
        } else {
            (term - next) + self.sum
        };
        self.sum = next;
    }

    pub(crate) fn sum(self) -> f64 {
        self.sum + self.rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law(weights: &[f64]) -> Law {
        let exponents: Vec<Bracket> = weights
            .iter()
            .map(|&weight| Bracket::exact(weight).ln())
            .collect();
        tilted_masses(&exponents, 0, 0.0)
    }

    fn plain(weights: &[f64], center: f64, angle: f64) -> (f64, f64) {
        let total: f64 = weights.iter().sum();
        let (mut re, mut im) = (0.0, 0.0);
        for (j, weight) in weights.iter().enumerate() {
            let x = angle * (j as f64 - center);
            re += weight / total * x.cos();
            im += weight / total * x.sin();
        }
        (re, im)
    }

    #[test]
    fn logarithms_and_bounds_hold() {
        let bell: Vec<f64> = (0..60)
            .map(|j| (-(f64::from(j) - 27.3).powi(2) / 50.0).exp())
            .collect();
        for weights in [&[0.3, 0.7][..], &[0.1, 0.5, 0.4], &[0.5, 0.0, 0.5], &bell] {
            let law = law(weights);
            let mut last = f64::INFINITY;
            for step in 1..=100 {
                let angle = f64::from(step) * std::f64::consts::PI / 100.0;
                let (re, im) = plain(weights, law.center(), angle);
                let size = re.hypot(im);
                let bound = law.ln_bound(angle);
                assert!(
                    size.ln() <= bound + 1e-12 || size < 1e-14,
                    "{weights:?} {angle}"
                );
                assert!(size.ln() <= law.ln_bound_here(angle) + 1e-12);
                assert!(bound <= last);
                last = bound;
                if size < 1e-6 {
                    continue;
                }
                let found = law.logarithm(angle, 0.0);
                assert!(found.error < 1e-12 / size, "{found:?}");
                assert!(size.ln() <= found.most + 1e-14 / size);
                let room = found.error + 1e-14 / size;
                assert!(
                    (found.re - size.ln()).abs() <= room,
                    "{weights:?} {angle} {found:?}"
                );
                let turned = (found.im - im.atan2(re)).rem_euclid(TAU);
                assert!(turned.min(TAU - turned) <= room);
            }
        }
    }

    #[test]
    fn turns_are_taken_off() {
        let law = law(&[0.2, 0.5, 0.3]);
        let (re, im) = plain(&[0.2, 0.5, 0.3], law.center(), 0.7 + 3.0 * TAU);
        let found = law.logarithm(0.7, 3.0);
        let turned = (found.im - im.atan2(re)).rem_euclid(TAU);
        assert!(turned.min(TAU - turned) < 1e-13);
        assert!((found.re - re.hypot(im).ln()).abs() < 1e-13);
    }

    /// A smooth lattice against its sum.
    #[test]
    fn gaussian_law_is_its_sum() {
        let (sigma, mean): (f64, f64) = (8.0, 3.3);
        let law = Law::Gaussian {
            sigma,
            center: mean,
            center_low: 0.0,
            center_error: 0.0,
        };
        let weights: Vec<f64> = (-150..=150)
            .map(|j| (-(f64::from(j) - mean).powi(2) / (2.0 * sigma * sigma)).exp())
            .collect();
        for angle in [1e-3, 0.1, 0.5] {
            let (re, im) = plain(&weights, mean + 150.0, angle);
            let found = law.logarithm(angle, 0.0);
            assert!((found.re - re.hypot(im).ln()).abs() < 1e-11 && im.abs() < 1e-13);
            assert!(law.ln_bound(angle) >= found.re);
        }
    }
}
