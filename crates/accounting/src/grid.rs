//! # A loss distribution on a grid
//! Masses of `P` at the losses `base + i·step`, and the mass that is counted as an infinite loss. Nothing asks the masses to
//! add up to one: an upper grid may weigh a little more than its pair, a lower one less.
//!
//! **Why grids compose.** For measures `(P, Q)` let `h(t) = ∫(dP - t dQ)_+`, `t >= 0`. For a product with `(R, S)`,
//! `h_(P×R, Q×S)(t) = ∫ h_(P,Q)(t dS/dR) dR` (by Fubini, with `h(0)` where `dS = 0`). So if `h_(P,Q) <= h_(P',Q')` for all
//! `t >= 0`, the same holds for every product with a third pair, and by induction for every composition. This is
//! [ZDW22, Thm 10] without the need for probability measures, and it serves both sides: a grid whose `h` lies above that of
//! the pair gives an upper bound of every composition, and one below a lower bound. More mass is always more `h`.
//!
//! **Tilting.** `a_i = p_i e^(θi) z e^(-θJ)` with the integer `J` and the factor `z` such that the `a_i` add up to about one.
//! `θ` is a float of 24 bits, so that `θ(i-J)` is exact; each `a_i` is rounded in the direction of its side. With
//! `a^(*)` for the composition of all tilted parts, `p^(*)_j = a^(*)_j e^(-θ(j - ΣkJ)) Π z^-k`.

use whit_core::round;

use crate::Bracket;

/// Which way a grid bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The profile is at or above that of the pair.
    Upper,
    /// At or below.
    Lower,
}

/// The losses `base + i·step` for `0 <= i <= cells`, as real numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Lattice {
    pub(crate) base: f64,
    pub(crate) step: f64,
    pub(crate) cells: usize,
}

impl Lattice {
    /// The loss of a dot, up to [`error`](Self::error).
    pub(crate) fn loss(&self, index: f64) -> f64 {
        self.base + index * self.step
    }

    /// How far [`loss`](Self::loss) may be off: two roundings.
    pub(crate) fn error(&self) -> f64 {
        2.0 * f64::EPSILON * (self.base.abs() + self.cells as f64 * self.step)
    }
}

/// A loss distribution on a lattice.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    pub(crate) lattice: Lattice,
    /// One for each dot.
    pub(crate) masses: Vec<f64>,
    /// Losses beyond the last dot, as an upper grid counts them; for a lower grid those that are truly infinite.
    pub(crate) infinite: f64,
}

/// A tilted grid: masses that add up to about one.
#[derive(Clone, Debug)]
pub(crate) struct TiltedGrid {
    pub(crate) masses: Vec<f64>,
    /// `J`.
    pub(crate) centre: usize,
    /// `ln z`.
    pub(crate) ln_factor: Bracket,
}

/// A float of at most 24 bits near `value`.
pub(crate) fn short(value: f64) -> f64 {
    f64::from(value as f32)
}

impl Grid {
    /// All mass, rounded up.
    pub(crate) fn total_upper(&self) -> f64 {
        round::mul_up(self.sum(), 1.0 + f64::EPSILON * self.masses.len() as f64)
    }

    /// All mass, rounded down.
    pub(crate) fn total_lower(&self) -> f64 {
        (self.sum() * (1.0 - 2.0 * f64::EPSILON * self.masses.len() as f64)).max(0.0)
    }

    /// Rounded to nearest, a sum of n positive numbers errs by less than n units, in any order; eight sums at a time are faster than one.
    fn sum(&self) -> f64 {
        let mut sums = [0.0; 8];
        let chunks = self.masses.chunks_exact(sums.len());
        let rest: f64 = chunks.remainder().iter().sum();
        for chunk in chunks {
            for (sum, mass) in sums.iter_mut().zip(chunk) {
                *sum += mass;
            }
        }
        sums.iter().sum::<f64>() + rest + self.infinite
    }

    /// The grid's profile at a loss, in plain floats.
    #[cfg(test)]
    pub(crate) fn profile(&self, loss: f64) -> f64 {
        let masses = self.masses.iter().enumerate();
        let above = masses.map(|(dot, mass)| {
            mass * (-libm::expm1(loss - self.lattice.loss(dot as f64))).max(0.0)
        });
        self.infinite + above.sum::<f64>()
    }

    /// `θ` must be [`short`], and there must be fewer than 2^28 dots.
    pub(crate) fn tilt(&self, theta: f64, side: Side) -> TiltedGrid {
        // Exponents are counted from the heaviest dot under the tilt: no weight overflows then.
        let mut heaviest = (0, f64::NEG_INFINITY);
        for (index, &mass) in self.masses.iter().enumerate() {
            if mass > 0.0 {
                let weight = libm::log(mass) + theta * index as f64;
                if weight > heaviest.1 {
                    heaviest = (index, weight);
                }
            }
        }
        let centre = heaviest.0;
        let mut sum = 0.0;
        let mut masses: Vec<f64> = self
            .masses
            .iter()
            .enumerate()
            .map(|(index, &mass)| {
                if mass == 0.0 {
                    return 0.0;
                }
                // In two halves, so that a small mass with a large weight does not overflow on the way.
                let half = 0.5 * theta * (index as f64 - centre as f64);
                let tilted = match side {
                    Side::Upper => {
                        let power = round::exp_up(half);
                        round::mul_up(round::mul_up(mass, power), power)
                    }
                    Side::Lower => {
                        let power = round::exp_down(half);
                        round::mul_down(round::mul_down(mass, power), power).max(0.0)
                    }
                };
                sum += tilted;
                tilted
            })
            .collect();
        let factor = if sum > 0.0 && sum.is_finite() {
            1.0 / sum
        } else {
            1.0
        };
        for mass in &mut masses {
            if *mass > 0.0 {
                *mass = match side {
                    Side::Upper => round::mul_up(*mass, factor),
                    Side::Lower => round::mul_down(*mass, factor).max(0.0),
                };
            }
        }
        TiltedGrid {
            masses,
            centre,
            ln_factor: Bracket::exact(factor).ln(),
        }
    }
}

impl TiltedGrid {
    /// At least `ln Σ a_i e^(λ(i-J))`.
    pub(crate) fn ln_moment_upper(&self, lambda: f64) -> f64 {
        let sum: f64 = self
            .masses
            .iter()
            .enumerate()
            .filter(|(_, mass)| **mass > 0.0)
            .map(|(index, mass)| {
                let exponent = lambda * (index as f64 - self.centre as f64);
                mass * round::exp_up(exponent + exponent.abs() * f64::EPSILON)
            })
            .sum();
        // Products that underflow hide less than the smallest normal float each.
        let slack = 1.0 + 2.0 * f64::EPSILON * (self.masses.len() + 2) as f64;
        let sum = round::add_up(round::mul_up(sum, slack), 1e-300);
        Bracket::exact(sum).ln().upper()
    }
}

/// The width of a cell, or of several.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Width {
    /// `e^x - 1`, or the largest float.
    pub(crate) growth: f64,
    /// `1 - e^-x`.
    pub(crate) decay: f64,
    /// `e^-x`.
    pub(crate) fall: f64,
    /// The relative error of all three: the rounding of `x`, which counts `x e^x/(e^x - 1) <= 1 + x` times, and some units of
    /// `expm1` and of the operations that follow.
    pub(crate) error: f64,
}

impl Width {
    pub(crate) fn new(x: f64) -> Self {
        Self {
            growth: libm::expm1(x).min(f64::MAX),
            decay: -libm::expm1(-x),
            fall: libm::exp(-x),
            error: (16.0 + 2.0 * x) * f64::EPSILON,
        }
    }
}

/// The result of one rounded operation, rounded up.
pub(crate) fn up(value: f64) -> f64 {
    value.next_up()
}

/// The result of one rounded operation, rounded down.
pub(crate) fn down(value: f64) -> f64 {
    value.next_down()
}

#[cfg(test)]
#[path = "grid_test.rs"]
mod tests;
