//! # Pairs whose losses lie on a lattice
//! **Definition.** Index `j` has the loss `l_j = base + unit (first + stride j)` and the mass `p_j` under `P`; beside these there
//! may be an infinite loss (`Q` is zero). Losses of a composition are sums of indices, which stay integers: two ways to the
//! same loss meet exactly, however many steps there are.
//!
//! **Moments.** `M(c) = E_P[e^(cL); L < ∞]`. Directly, it is a sum of positive terms, but where losses are small its
//! logarithm is the difference of nearly equal numbers. `Σ p_j e^(-l_j)` is the mass `1 - missing` that `Q` has where `P` is
//! not zero, and `Σ p_j = 1 - infinite`, so
//! `M(c) = M(0) + Σ p_j B(c, l_j) - c (infinite - missing)` with `B(c, l) = e^(cl) - 1 + c(e^-l - 1)`,
//! in which nothing of first order is left. Both are brackets of one number, and [`Bracket::meet`] takes the better of each.
//!
//! **The tilted law** has the masses `q_j = p_j e^(c l_j)/M(c)`. See [`Law`].

use crate::Bracket;
use crate::lattice_gaussian::{
    BEYOND, SMOOTH_FROM, gaussian_exponents, ln_gaussian_moment, narrow,
};
use crate::lattice_law::{Law, normalize, tilted_masses};

/// Steeper tilts meet masses that are no floats.
const STEEP_MAX: f64 = 1e6;
/// A pair with losses on a lattice.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LatticePair {
    /// The unit of losses.
    pub(crate) unit: Bracket,
    /// Added to every loss.
    pub(crate) base: Bracket,
    /// The loss of index 0, in units.
    pub(crate) first: i64,
    /// From one index to the next, in units; positive.
    pub(crate) stride: i64,
    /// The masses.
    pub(crate) shape: Shape,
    /// The mass of `P` where `Q` is zero.
    pub(crate) infinite: Bracket,
    /// The mass of `Q` where `P` is zero.
    pub(crate) missing: Bracket,
    /// `infinite - missing`, which is often known better than both.
    pub(crate) balance: Bracket,
}

/// The masses of a lattice pair.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    /// `ln p_j` for `j = 0, 1, …`.
    Masses(Vec<Bracket>),
    /// All integers `j`, with masses `∝ e^(-j²/2σ²)`, against a shift.
    Gaussian {
        /// The scale.
        sigma: f64,
        /// The sensitivity.
        shift: f64,
        /// Losses as listed, over the true ones: 1, but for [`LatticePair::rescaled`].
        stretch: Bracket,
    },
}

/// Plain floats about the tilted law of the index, for choosing where to look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Estimate {
    /// `ln M(c)`.
    pub(crate) ln_moment: f64,
    /// The index next to the mean, and what the mean has beyond it.
    pub(crate) index: i64,
    pub(crate) offset: f64,
    /// The variance.
    pub(crate) variance: f64,
}

impl LatticePair {
    /// A pair without infinite losses that dominates itself with `P` and `Q` exchanged.
    pub(crate) fn symmetric(unit: Bracket, first: i64, stride: i64, masses: Vec<Bracket>) -> Self {
        Self {
            unit,
            base: Bracket::ZERO,
            first,
            stride,
            shape: Shape::Masses(masses),
            infinite: Bracket::ZERO,
            missing: Bracket::ZERO,
            balance: Bracket::ZERO,
        }
    }

    /// How many steps lie between the first and the last index; none if there is no end.
    pub(crate) fn span(&self) -> Option<u64> {
        match &self.shape {
            Shape::Masses(masses) => Some(masses.len() as u64 - 1),
            Shape::Gaussian { .. } => None,
        }
    }

    /// With losses that are multiples of another unit, which is off by a rounding; the masses stay. What follows from `P` and
    /// `Q` being distributions holds up to as much: `e^-l` moves by a factor of at most `e^moved`.
    pub(crate) fn rescaled(mut self, unit: Bracket) -> Self {
        let off = unit - self.unit;
        let off = off.upper().max(-off.lower());
        match &mut self.shape {
            Shape::Masses(_) => {
                let moved = (Bracket::exact(off) * self.multiple_max()).exp_m1().upper();
                let moved = Bracket::new(-moved, moved);
                self.balance = self.balance + moved;
                self.missing = self.missing + moved;
            }
            Shape::Gaussian { stretch, .. } => *stretch = *stretch * unit / self.unit,
        }
        self.unit = unit;
        self
    }

    /// The largest loss in units, up or down. Beyond 80 standard deviations a Gaussian has less mass than any float.
    pub(crate) fn multiple_max(&self) -> Bracket {
        let most = match &self.shape {
            Shape::Masses(masses) => {
                let last =
                    i128::from(self.first) + i128::from(self.stride) * (masses.len() as i128 - 1);
                return integer(last.abs().max(i128::from(self.first).abs()));
            }
            Shape::Gaussian { sigma, shift, .. } => shift + 2.0 * (80.0 * sigma + 1.0),
        };
        Bracket::exact(most.next_up())
    }

    /// The loss of an index.
    pub(crate) fn loss(&self, index: i64) -> Bracket {
        let multiple = i128::from(self.first) + i128::from(self.stride) * i128::from(index);
        self.base + self.unit * integer(multiple)
    }

    /// By how much the logarithms of neighbouring masses differ at most: no tilt beyond this brings out a further mass.
    pub(crate) fn steepest(&self) -> f64 {
        match &self.shape {
            Shape::Masses(masses) => masses
                .windows(2)
                .map(|two| (two[1].estimate() - two[0].estimate()).abs())
                .fold(0.0, f64::max)
                .min(STEEP_MAX),
            Shape::Gaussian { .. } => STEEP_MAX,
        }
    }

    /// `ln M(c) - c l_m`. Where the mean loss is large, this is small if `m` is near the mean.
    pub(crate) fn ln_moment_about(&self, tilt: f64, index: i64) -> Bracket {
        let c = Bracket::exact(tilt);
        match &self.shape {
            Shape::Masses(masses) => {
                let direct = normalize(&self.exponents(masses, tilt, index)).ln_total;
                direct.meet(self.bent(masses, tilt) - c * self.loss(index))
            }
            Shape::Gaussian {
                sigma,
                shift,
                stretch,
            } => ln_gaussian_moment(*sigma, *shift, c * *stretch, index),
        }
    }

    /// The law tilted by `e^(cL)`.
    pub(crate) fn tilted(&self, tilt: f64) -> Law {
        match &self.shape {
            Shape::Masses(masses) => {
                let Estimate { index, .. } = self.estimate(tilt);
                tilted_masses(&self.exponents(masses, tilt, index), 0, 0.0)
            }
            Shape::Gaussian {
                sigma,
                shift,
                stretch,
            } if *sigma >= SMOOTH_FROM => {
                let center = tilt * shift;
                // The stretch is 1 up to a few roundings.
                let off = Bracket::exact(center) * (*stretch - Bracket::exact(1.0));
                Law::Gaussian {
                    sigma: *sigma,
                    center,
                    center_low: libm::fma(tilt, *shift, -center),
                    center_error: off.upper().max(-off.lower()) * (1.0 + 1e-9),
                }
            }
            Shape::Gaussian {
                sigma,
                shift,
                stretch,
            } => {
                let place = Bracket::exact(tilt) * *stretch * Bracket::exact(*shift);
                let (from, exponents) = gaussian_exponents(*sigma, place);
                tilted_masses(&exponents, from, BEYOND)
            }
        }
    }

    /// The same in plain floats.
    pub(crate) fn estimate(&self, tilt: f64) -> Estimate {
        match &self.shape {
            Shape::Masses(masses) => {
                let step = self.unit.estimate() * self.stride as f64;
                let exponent = |j: usize| masses[j].estimate() + tilt * step * j as f64;
                let (mut heaviest, mut most) = (0, f64::NEG_INFINITY);
                for j in 0..masses.len() {
                    if exponent(j) > most {
                        (heaviest, most) = (j, exponent(j));
                    }
                }
                let (mut total, mut mean, mut square) = (0.0, 0.0, 0.0);
                for j in 0..masses.len() {
                    let away = j as f64 - heaviest as f64;
                    let weight = libm::exp(exponent(j) - most);
                    total += weight;
                    mean += weight * away;
                    square += weight * away * away;
                }
                mean /= total;
                let near = mean.round();
                Estimate {
                    ln_moment: most + total.ln() + tilt * self.loss(0).estimate(),
                    index: heaviest as i64 + near as i64,
                    offset: mean - near,
                    variance: (square / total - mean * mean).max(0.0),
                }
            }
            Shape::Gaussian { sigma, shift, .. } => {
                let (ratio, place) = (shift / sigma, tilt * shift);
                let near = place.round();
                let (offset, variance) = if *sigma >= 1.0 {
                    (place - near, sigma * sigma)
                } else {
                    narrow(*sigma, place - near)
                };
                Estimate {
                    ln_moment: 0.5 * tilt * (tilt + 1.0) * ratio * ratio,
                    index: near as i64,
                    offset,
                    variance,
                }
            }
        }
    }

    /// `ln p_j + c (l_j - l_m)`.
    fn exponents(&self, masses: &[Bracket], tilt: f64, index: i64) -> Vec<Bracket> {
        let step = Bracket::exact(tilt) * self.unit * integer(i128::from(self.stride));
        (0..)
            .zip(masses)
            .map(|(j, mass)| *mass + step * integer(j - i128::from(index)))
            .collect()
    }

    /// `ln M(c)` by the sum that leaves out the first order.
    fn bent(&self, masses: &[Bracket], tilt: f64) -> Bracket {
        let sum = (0..)
            .zip(masses)
            .map(|(j, mass)| mass.exp() * bend(tilt, self.loss(j)))
            .fold(Bracket::ZERO, |sum, term| sum + term);
        let finite = Bracket::exact(1.0) - self.infinite;
        let grown = (sum - Bracket::exact(tilt) * self.balance) / finite;
        (-self.infinite).ln_1p() + Bracket::new(grown.lower().max(-1.0), grown.upper()).ln_1p()
    }
}

/// An integer as a bracket; exact below 2^53.
pub(crate) fn integer(value: i128) -> Bracket {
    let near = value as f64;
    if value.unsigned_abs() <= 1 << 53 {
        Bracket::exact(near)
    } else {
        Bracket::new(near.next_down(), near.next_up())
    }
}

/// `e^(cl) - 1 + c(e^-l - 1)`, which is `c(c+1)l²/2` to the first order; by its series where both parts nearly cancel.
fn bend(tilt: f64, loss: Bracket) -> Bracket {
    let c = Bracket::exact(tilt);
    let size = loss.upper().abs().max(loss.lower().abs());
    let reach = size * (1.0 + tilt.abs());
    if reach.is_nan() || reach > 0.05 {
        return (c * loss).exp_m1() + c * (-loss).exp_m1();
    }
    // Terms (c^n + c(-1)^n) l^n/n!; what follows the eighth is less than twice the bound of the ninth.
    let (mut power, mut loss_power, mut factorial, mut sum) = (c, loss, 1.0, Bracket::ZERO);
    for n in 2..=8 {
        power = power * c;
        loss_power = loss_power * loss;
        factorial *= f64::from(n);
        let sign = if n % 2 == 0 { c } else { -c };
        sum = sum + (power + sign) * loss_power / Bracket::exact(factorial);
    }
    let rest = libm::pow(reach, 8.0) * size * tilt.abs() / 180_000.0;
    sum + Bracket::new(-rest, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two(epsilon: f64) -> LatticePair {
        let unit = Bracket::exact(epsilon);
        let high = -(-unit).exp().ln_1p();
        LatticePair::symmetric(unit, -1, 2, vec![high - unit, high])
    }

    /// `M(c) = cosh((c+½)ε)/cosh(ε/2)` for two symmetric losses.
    #[test]
    fn moments_of_two_losses_are_known() {
        for epsilon in [1e-9, 1e-4, 0.1, 1.0, 5.0] {
            for tilt in [-3.0, -1.0, -0.3, 0.0, 0.01, 0.7, 3.0, 20.0] {
                let found = two(epsilon).ln_moment_about(tilt, 1)
                    + Bracket::exact(tilt) * Bracket::exact(epsilon);
                // 2 sinh(cε/2) sinh((c+1)ε/2) = cosh((c+½)ε) - cosh(ε/2).
                let above = 2.0
                    * libm::sinh(tilt * epsilon / 2.0)
                    * libm::sinh((tilt + 1.0) * epsilon / 2.0);
                let truth = libm::log1p(above / libm::cosh(epsilon / 2.0));
                let room = 1e-13 * truth.abs() + 1e-15 * epsilon * tilt.abs();
                assert!(
                    found.lower() <= truth + room && truth - room <= found.upper(),
                    "{epsilon} {tilt}: {found:?} {truth:e}"
                );
                let width = found.upper() - found.lower();
                assert!(
                    width <= 1e-13 * truth.abs() + 1e-14 * tilt.abs() * epsilon + 1e-300,
                    "{epsilon} {tilt}: {found:?}"
                );
            }
        }
    }

    #[test]
    fn the_bend_is_what_it_says() {
        for (tilt, loss) in [
            (0.5, 0.01),
            (3.0, 0.012),
            (0.5, -0.03),
            (-2.0, 0.01),
            (7.0, -0.006),
        ] {
            let found = bend(tilt, Bracket::exact(loss));
            let plain = libm::expm1(tilt * loss) + tilt * libm::expm1(-loss);
            assert!(
                (found.estimate() - plain).abs() <= 1e-16 && found.relative_width() < 1e-13,
                "{tilt} {loss}: {found:?} {plain:e}"
            );
        }
    }
}
