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
//!
//! **Many grids.** [`Smooth`] is the profile of a composition that has few frequencies; any other is worked out as a whole, in `circle.rs`.

use whit_core::round;

use crate::Bracket;
use crate::circle::{Steps, Tally};
use crate::convolve::{Fall, Series, Spectrum};
use crate::sketch::Window;

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

/// The composition of many grids, whose profile is a sum of few waves (`convolve.rs`): it is worked out only where it is asked for. The
/// window, what is outside of it and infinite losses are those of `circle.rs`, of which this is another way to the same bounds.
///
/// In units of `e^(-θ(j-J))Πz^-k` the profile at dot `j` is `Σ_(m=1)^M a_(j+m) ρ^m (1-σ^m)`, where `M` places are left up to the end of the
/// window. The series around the circle without end is too large by what comes after, with `ρ^(M+m) (1 - σ^(M+m))` for the weight of the
/// `m`-th place beyond: `ρ^M (T + (1-σ^M) B)`, where `T` is the same series from the last place on and `B = Σ_m a_(end+m) (ρσ)^m`. Nothing
/// cancels.
pub(crate) struct Smooth {
    spectrum: Spectrum,
    steps: Steps,
    upper: Composed,
    lower: Composed,
    /// The epsilon it is for, and what `δ` is there.
    epsilon: f64,
    there: Bracket,
    total_upper: f64,
    /// At least the mass of losses that are infinite, or counted so.
    pub(crate) infinite_upper: f64,
}

/// The mass of composed upper grids.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Masses {
    /// `Σ k ln(1 - x)`, with the share `x` of infinite losses.
    ln_finite: Bracket,
    /// `Σ k ln(total mass)`, at least.
    ln_total: Bracket,
}

impl Masses {
    pub(crate) const NONE: Self = Self {
        ln_finite: Bracket::ZERO,
        ln_total: Bracket::ZERO,
    };

    pub(crate) fn add(&mut self, grid: &Grid, count: u64) {
        let times = Bracket::exact(count as f64);
        let share = Bracket::exact(grid.infinite) / Bracket::exact(grid.total_lower());
        self.ln_finite = self.ln_finite + times * (-share.clamp(0.0, 1.0)).ln_1p();
        let total = Bracket::exact(grid.total_upper()).ln().upper().max(0.0);
        self.ln_total = self.ln_total + times * Bracket::exact(total);
    }

    /// At least all of it.
    fn total(&self) -> f64 {
        self.ln_total.exp().upper()
    }

    /// At least that of losses that are infinite, or counted so.
    fn infinite(&self) -> f64 {
        let share = (-self.ln_finite.exp_m1()).clamp(0.0, 1.0);
        (share * self.ln_total.exp()).upper().min(1.0)
    }
}

/// One side of a composition.
struct Composed {
    side: Side,
    /// `Σ k base`.
    base: Bracket,
    /// `Σ k J`.
    centre: i128,
    /// `Σ k ln z`.
    ln_factor: Bracket,
    profile: Series,
    /// `T` and `B`.
    beyond: [Bracket; 2],
    /// What is missing of an upper profile, as the largest losses, or what may be too much of a lower one.
    outside: f64,
}

/// Moments around that of a sketch, of which one may do better; the later ones only where these do not.
const MOMENTS: [f64; 6] = [1.0, 0.8, 1.2, 0.3, 0.1, 0.03];
const MOMENTS_FEW: usize = 3;

impl Composed {
    fn new(
        side: Side,
        (tally, counts): (&Tally, &[u64]),
        spectrum: &Spectrum,
        steps: &Steps,
        window: &Window,
    ) -> Option<Self> {
        let index = usize::from(side == Side::Lower);
        let (theta, step) = (steps.theta, steps.step);
        let last = place(steps, steps.cells - 1);
        let profile = spectrum.series(index, Fall::Profile(theta, step))?;
        let power = spectrum.series(index, Fall::Power(theta + step))?;
        let beyond = [&profile, &power].map(|series| {
            let found = spectrum.at(series, last);
            found.clamp(0.0, f64::INFINITY)
        });
        let (mut centre, mut ln_factor) = (0, Bracket::ZERO);
        for (tilted, &count) in tally.tilted.iter().zip(counts) {
            centre += i128::from(count) * tilted.centre as i128;
            ln_factor = ln_factor + Bracket::exact(count as f64) * tilted.ln_factor;
        }
        let share = |moment: f64, index: i128| {
            let mut least = f64::INFINITY;
            for (tried, factor) in MOMENTS.into_iter().enumerate() {
                if tried >= MOMENTS_FEW && least < 1e-4 {
                    break;
                }
                let lambda = factor * moment * step;
                let each = tally.tilted.iter().zip(counts);
                let ln_moment = each.fold(Bracket::ZERO, |sum, (tilted, &count)| {
                    let found = Bracket::exact(tilted.ln_moment_upper(lambda));
                    sum + Bracket::exact(count as f64) * found
                });
                let ln_share = ln_moment - Bracket::exact(lambda) * integer(index - centre);
                least = least.min(ln_share.exp().upper());
            }
            least
        };
        // Sums are between 0 and the length, and those left of the window are at most one less than its start.
        let end = steps.start + steps.cells as i128;
        let mut outside = 0.0;
        if end <= tally.length {
            outside = share(window.top_moment, end);
        }
        if side == Side::Lower {
            if steps.start > 0 {
                outside += share(-window.bottom_moment, steps.start - 1);
            }
            outside *= (1.0 + 1e-9) / (1.0 + theta / step);
        }
        Some(Self {
            side,
            base: tally.base,
            centre,
            ln_factor,
            profile,
            beyond,
            outside,
        })
    }
}

impl Smooth {
    /// Both sides, to be looked at near `epsilon`. None where a spectrum is of no use.
    pub(crate) fn new(
        [upper, lower]: [&Tally; 2],
        counts: &[u64],
        (spectrum, masses): (Spectrum, Masses),
        (steps, window): (Steps, &Window),
        epsilon: f64,
    ) -> Option<Self> {
        let composed =
            |side, tally| Composed::new(side, (tally, counts), &spectrum, &steps, window);
        let mut smooth = Self {
            upper: composed(Side::Upper, upper)?,
            lower: composed(Side::Lower, lower)?,
            spectrum,
            steps,
            epsilon,
            there: Bracket::new(0.0, f64::INFINITY),
            total_upper: masses.total(),
            infinite_upper: masses.infinite(),
        };
        smooth.there = smooth.delta(epsilon);
        Some(smooth)
    }

    /// How many cells the circle has.
    pub(crate) fn cells(&self) -> usize {
        self.steps.cells
    }

    /// Whether another tilt would hardly do better: as in `circle.rs`.
    pub(crate) fn serves(&self, epsilon: f64) -> bool {
        epsilon == 0.0
            || self.delta(epsilon).relative_width() <= 4.0 * self.there.relative_width() + 1e-4
    }

    /// `δ(ε)` of the finite losses.
    pub(crate) fn delta(&self, epsilon: f64) -> Bracket {
        let mut upper = self.look(&self.upper, epsilon).min(1.0);
        let mut lower = self.look(&self.lower, epsilon);
        // A profile falls.
        if epsilon <= self.epsilon {
            lower = lower.max(self.there.lower());
        }
        if epsilon >= self.epsilon {
            upper = upper.min(self.there.upper());
        }
        Bracket::new(lower.min(upper), upper)
    }

    /// About where the upper profile is `delta`, if that is within the window: false position on the logarithm, with halved weights
    /// for the end that stays (the Illinois rule).
    pub(crate) fn crossing(&self, delta: f64) -> Option<f64> {
        let target = libm::log(delta - self.infinite_upper);
        let excess = |epsilon: f64| libm::log(self.look(&self.upper, epsilon)) - target;
        let first = self.upper.base.estimate() + self.steps.start as f64 * self.steps.step;
        let (mut low, mut high) = (first, first + self.steps.cells as f64 * self.steps.step);
        let (mut above, mut below) = (excess(low), excess(high));
        if !(above > 0.0 && below <= 0.0) {
            return None;
        }
        // The epsilon it is for is mostly near.
        let mut next = self.epsilon;
        let mut last = 0.0;
        for _ in 0..100 {
            if !(next > low && next < high) {
                next = low.midpoint(high);
            }
            let found = excess(next);
            if found.abs() < 1e-13 || high - low <= 1e-15 * high.abs() {
                return Some(next);
            }
            let stays = found * last > 0.0;
            if found > 0.0 {
                (low, above) = (next, found);
                below *= if stays { 0.5 } else { 1.0 };
            } else {
                (high, below) = (next, found);
                above *= if stays { 0.5 } else { 1.0 };
            }
            last = found;
            next = low + (high - low) * (above / (above - below));
        }
        Some(high)
    }

    /// At least, or at most, the profile.
    fn look(&self, composed: &Composed, epsilon: f64) -> f64 {
        let exact = Bracket::exact;
        let (step, cells) = (self.steps.step, self.steps.cells);
        let upper = composed.side == Side::Upper;
        // The place of ε among the dots: a profile falls, so the upper one is looked at too far left and the lower one too far right.
        let offset = exact(epsilon) - composed.base - exact(step) * integer(self.steps.start);
        let offset = if upper {
            offset.lower()
        } else {
            offset.upper()
        };
        if offset < 0.0 {
            let first = exact(self.dot(composed, 0));
            if !upper {
                return first.lower();
            }
            let (share, total) = (exact(offset).exp(), exact(self.total_upper));
            return (total * (exact(1.0) - share) + first * share).upper();
        }
        let mut index = (offset / step).floor();
        // The distance from the dot; a quotient that is rounded across a dot goes back.
        let mut distance = exact(offset) - exact(step) * exact(index);
        if upper && distance.lower() < 0.0 {
            (index, distance) = (index - 1.0, distance + exact(step));
        }
        if !upper && distance.upper() > step {
            (index, distance) = (index + 1.0, distance - exact(step));
        }
        if index < 0.0 {
            return 1.0;
        }
        if index >= (cells - 1) as f64 {
            let last = self.dot(composed, cells - 1);
            return if upper { last } else { 0.0 };
        }
        let distance = if upper {
            distance.lower()
        } else {
            distance.upper()
        };
        let share = exact(distance.clamp(0.0, step)).exp_m1() / exact(step).exp_m1();
        let share = share.clamp(0.0, 1.0);
        let index = index as usize;
        let [left, right] = [index, index + 1].map(|index| exact(self.dot(composed, index)));
        let found = left * (exact(1.0) - share) + right * share;
        if upper { found.upper() } else { found.lower() }
    }

    /// At least, or at most, the profile at a dot of the window.
    fn dot(&self, composed: &Composed, index: usize) -> f64 {
        let exact = Bracket::exact;
        let Steps { theta, step, .. } = self.steps;
        let left = exact((self.steps.cells - 1 - index) as f64);
        let around = self
            .spectrum
            .at(&composed.profile, place(&self.steps, index));
        let fall = (-(exact(theta) * left)).exp();
        let [same, power] = composed.beyond;
        let after = fall * (same - (-(exact(step) * left)).exp_m1() * power);
        let within = around - after.clamp(0.0, f64::INFINITY);
        let within = within.clamp(0.0, f64::INFINITY);
        let sum = self.steps.start + index as i128 - composed.centre;
        let unit = (-(exact(theta) * integer(sum)) - composed.ln_factor).exp();
        let outside = exact(composed.outside);
        match composed.side {
            Side::Upper => (unit * (within + outside * fall)).upper(),
            Side::Lower => {
                let least = (within - outside).clamp(0.0, f64::INFINITY);
                (unit * least).lower().max(0.0)
            }
        }
    }
}

/// Where a dot of the window is on the circle.
fn place(steps: &Steps, index: usize) -> usize {
    (steps.start + index as i128).rem_euclid(steps.cells as i128) as usize
}

/// An integer as a bracket: exact up to 2^53.
fn integer(value: i128) -> Bracket {
    let float = value as f64;
    if float as i128 == value {
        Bracket::exact(float)
    } else {
        Bracket::new(float.next_down(), float.next_up())
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
