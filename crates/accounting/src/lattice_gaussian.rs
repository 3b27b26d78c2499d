//! # Discrete Gaussians as lattice pairs
//! `P` has masses `∝ e^(-y²/2σ²)` on the integers and `Q` is shifted by `d`; `j = -y`, `unit = d/2σ²`,
//! and completing the square, `M(c) = e^(c(c+1)d²/2σ²) θ(cd)/θ(0)` with `θ(x) = Σ_j e^(-(j-x)²/2σ²)`; the tilted law has masses
//! `∝ e^(-(j-cd)²/2σ²)`. By Poisson summation `θ(x) = σ√2π Σ_m e^(-2π²σ²m²) cos 2πmx`, so for `σ >= 8` the quotient is 1 up
//! to `e^-1262`, and no sum is needed.

use crate::Bracket;
use crate::lattice_law::normalize;
use crate::lattice_pair::integer;

/// From this `σ` on, sums over a Gaussian lattice are integrals, to hundreds of digits.
pub(crate) const SMOOTH_FROM: f64 = 8.0;
/// How far from its centre a narrow discrete Gaussian is summed, in units of `σ`, and what is left beyond, as a share:
/// terms `e^(-((14σ+1)² - ¼)/2σ²) <= e^-98` next to the largest, falling by at least `e^(-14/8)` from one to the next.
const REACH: f64 = 14.0;
pub(crate) const BEYOND: f64 = 1e-41;
/// What is below this changes no float.
const NOTHING: f64 = 1e-300;

/// `c(c+1)d²/2σ² + ln θ(cd) - ln θ(0) - c l_m`, of which the squares are `c (cd - 2m) d/2σ²`.
pub(crate) fn ln_gaussian_moment(sigma: f64, shift: f64, c: Bracket, index: i64) -> Bracket {
    let (d, variance) = (
        Bracket::exact(shift),
        Bracket::exact(sigma) * Bracket::exact(sigma),
    );
    let double = integer(2 * i128::from(index));
    let square = c * (c * d - double) * d / (Bracket::exact(2.0) * variance);
    if sigma >= SMOOTH_FROM {
        return square + Bracket::new(-NOTHING, NOTHING);
    }
    let ln_theta = |place: Bracket| {
        let (_, exponents) = gaussian_exponents(sigma, place);
        normalize(&exponents).ln_total + Bracket::new(0.0, BEYOND)
    };
    square + ln_theta(c * d) - ln_theta(Bracket::ZERO)
}

/// `-(j-x)²/2σ²` for the indices around `x`, and the first index. `x` is far below 2^53 wherever floats can tell integers.
pub(crate) fn gaussian_exponents(sigma: f64, place: Bracket) -> (i64, Vec<Bracket>) {
    let reach = (REACH * sigma).ceil() as i64 + 2;
    let middle = place.estimate().round() as i64;
    let twice = Bracket::exact(2.0) * Bracket::exact(sigma) * Bracket::exact(sigma);
    let exponents = (-reach..=reach)
        .map(|step| {
            let away = integer(i128::from(middle) + i128::from(step)) - place;
            let near = if away.holds(0.0) {
                0.0
            } else {
                away.lower().abs().min(away.upper().abs())
            };
            let far = away.lower().abs().max(away.upper().abs());
            let away = Bracket::new(near, far);
            -(away * away / twice)
        })
        .collect();
    (middle.saturating_sub(reach), exponents)
}

/// Mean and variance of masses `∝ e^(-(j-x)²/2σ²)` for `|x| <= ½` and `σ < 1`, where they are not those of a Gaussian.
pub(crate) fn narrow(sigma: f64, place: f64) -> (f64, f64) {
    let exponent = |j: f64| -((j - place) / sigma) * ((j - place) / sigma) / 2.0;
    let (mut total, mut mean, mut square) = (0.0, 0.0, 0.0);
    for j in -12..=12 {
        let j = f64::from(j);
        let weight = libm::exp(exponent(j) - exponent(0.0));
        total += weight;
        mean += weight * j;
        square += weight * j * j;
    }
    mean /= total;
    (mean, (square / total - mean * mean).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lattice_pair::{LatticePair, Shape};

    fn gaussian(sigma: f64, shift: f64) -> LatticePair {
        let unit = Bracket::exact(shift)
            / (Bracket::exact(2.0) * Bracket::exact(sigma) * Bracket::exact(sigma));
        let mut pair = LatticePair::symmetric(unit, shift as i64, 2, Vec::new());
        pair.shape = Shape::Gaussian {
            sigma,
            shift,
            stretch: Bracket::exact(1.0),
        };
        pair
    }

    /// On both sides of `σ = 8` by brute force.
    #[test]
    fn gaussian_moments_are_sums() {
        for (sigma, shift) in [
            (0.3, 1.0),
            (1.0, 1.0),
            (2.0, 3.0),
            (7.99, 1.0),
            (8.0, 2.0),
            (12.0, 5.0),
        ] {
            for tilt in [0.0, 0.37, 2.0, 6.5] {
                let pair = gaussian(sigma, shift);
                let (mut top, mut bottom) = (0.0, 0.0);
                for y in -400..=400 {
                    let y = f64::from(y);
                    let mass = (-y * y / (2.0 * sigma * sigma)).exp();
                    bottom += mass;
                    let loss = shift * (shift - 2.0 * y) / (2.0 * sigma * sigma);
                    top += (-y * y / (2.0 * sigma * sigma) + tilt * loss).exp();
                }
                let truth = (top / bottom).ln();
                let found = pair.ln_moment_about(tilt, 3) + Bracket::exact(tilt) * pair.loss(3);
                let room = 1e-12 * truth.abs() + 1e-13;
                assert!(
                    found.lower() <= truth + room && truth - room <= found.upper(),
                    "{sigma} {shift} {tilt}: {found:?} {truth}"
                );
                assert!(found.upper() - found.lower() <= 1e-11 * (1.0 + truth.abs()));
            }
        }
    }
}
