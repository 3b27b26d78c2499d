//! # A composition on a circle
//! Grids of all parts, tilted (`grid.rs`) and convolved on a circle (`convolve.rs`), become bounds of the profile.
//!
//! **Window.** The circle has `N` places, for the sums with index `w <= j < w + N`. What is outside lands inside, on a wrong
//! place. Let `A` be the tilted mass outside, on the left and on the right; `A <= Π(Σ a_i e^(λi))^k e^(-λj)` for every `λ`
//! of the right sign, and zero if no sum is outside. For the upper bound only the right part is missing, since masses are not
//! negative: it is added as a loss that is as large as can be. For the lower bound all of `A` may be too much:
//! `A · max_x e^(-cx)(1 - e^(-x)) <= A/(1+c)` is subtracted, with `c = θ/step`.
//!
//! **Profile.** In units of `e^(-θ(j-J))Πz^-k` (see `grid.rs`) the profile at dot `j` is
//! `g_j = Σ_(i>j) a_i ρ^(i-j) (1 - σ^(i-j))`, with `ρ = e^-θ` and `σ = e^-step`. It comes from `t_j = ρ(a_(j+1) + σ t_(j+1))` and
//! `g_j = ρ g_(j+1) + (1-σ) t_j`: sums of positive numbers, six roundings a step. The error of the transform is added to
//! each `a_i`, or subtracted where that leaves something positive. Between dots the profile is linear in `e^ε`.
//!
//! **Infinite losses.** If the finite masses of an upper grid add up to `f` and those counted as infinite to `p_∞`, the composition
//! has `Π(f+p_∞)^k - Πf^k = Π(f+p_∞)^k (1 - Π(1-x)^k)` of them, with `x = p_∞/(f+p_∞)`. Left of the window the upper profile is
//! bounded by the chord from `Π(f+p_∞)^k` at `t = 0`.

use whit_core::round;

use crate::Bracket;
use crate::convolve::Convolved;
use crate::grid::{Grid, Side, TiltedGrid};
use crate::sketch::Window;

/// Far above the sum of all that may underflow: a number below `1e-307` for each of a million places.
const UNDERFLOW: f64 = 1e-290;

/// All parts of one side.
pub(crate) struct Tally {
    pub(crate) tilted: Vec<TiltedGrid>,
    /// `Σ k base`.
    pub(crate) base: Bracket,
    /// `Σ k J`.
    centre: i128,
    /// `Σ k ln z`.
    ln_factor: Bracket,
    /// The index of the largest sum.
    pub(crate) length: i128,
    /// `Σ k ln(1 - x)`, at most.
    ln_finite: f64,
    /// `Σ k ln(total mass)`, at least.
    ln_total: f64,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            tilted: Vec::new(),
            base: Bracket::ZERO,
            centre: 0,
            ln_factor: Bracket::ZERO,
            length: 0,
            ln_finite: 0.0,
            ln_total: 0.0,
        }
    }
}

/// At least what is left and right of a window, of the tilted law.
struct Outside {
    left: f64,
    right: f64,
}

impl Tally {
    pub(crate) fn add(&mut self, grid: &Grid, theta: f64, side: Side, count: u64) {
        let tilted = grid.tilt(theta, side);
        let times = Bracket::exact(count as f64);
        self.base = self.base + times * Bracket::exact(grid.lattice.base);
        self.ln_factor = self.ln_factor + times * tilted.ln_factor;
        self.centre += i128::from(count) * tilted.centre as i128;
        self.length += i128::from(count) * grid.lattice.cells as i128;
        let share = Bracket::exact(grid.infinite) / Bracket::exact(grid.total_lower());
        let ln_finite = times * (-share.clamp(0.0, 1.0)).ln_1p();
        self.ln_finite = round::add_down(self.ln_finite, ln_finite.lower());
        let ln_total = Bracket::exact(grid.total_upper()).ln().upper().max(0.0);
        self.ln_total = round::add_up(self.ln_total, round::mul_up(count as f64, ln_total));
        self.tilted.push(tilted);
    }

    fn outside(&self, steps: &Steps, counts: &[u64], window: &Window) -> Outside {
        let end = steps.start + steps.cells as i128;
        let share = |moment: f64, index: i128| {
            let mut least = f64::INFINITY;
            let usual = moment * steps.step;
            // Of the sketch; and, where that was of no use, some that do not overflow.
            let few = [1.0, 0.8, 1.2].map(|factor| usual * factor);
            let more = [0.3, 0.1, 0.03].map(|factor| usual * factor);
            let sizes = [3.0, 0.3, 0.03].map(|size: f64| size.copysign(moment));
            for (tried, lambda) in few.into_iter().chain(more).chain(sizes).enumerate() {
                if tried >= few.len() && least < 1e-4 {
                    break;
                }
                let ln_moment =
                    self.tilted
                        .iter()
                        .zip(counts)
                        .fold(Bracket::ZERO, |sum, (tilted, &count)| {
                            sum + Bracket::exact(count as f64)
                                * Bracket::exact(tilted.ln_moment_upper(lambda))
                        });
                let ln_share = ln_moment - Bracket::exact(lambda) * whole(index - self.centre);
                least = least.min(ln_share.exp().upper());
            }
            least
        };
        Outside {
            // Sums are between 0 and the length, and those below w are at most w - 1.
            left: if steps.start > 0 {
                share(-window.bottom_moment, steps.start - 1)
            } else {
                0.0
            },
            right: if end <= self.length {
                share(window.top_moment, end)
            } else {
                0.0
            },
        }
    }

    fn scale(&self, values: Vec<f64>) -> Scaled {
        Scaled {
            values,
            base: self.base,
            centre: self.centre,
            ln_factor: self.ln_factor,
        }
    }
}

/// An integer as a bracket: exact up to 2^53.
fn whole(value: i128) -> Bracket {
    let float = value as f64;
    if float as i128 == value {
        Bracket::exact(float)
    } else {
        Bracket::new(float.next_down(), float.next_up())
    }
}

/// The circle that a composition is on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steps {
    /// `θ`, the tilt of one step.
    pub(crate) theta: f64,
    pub(crate) step: f64,
    /// `w`, the first index.
    pub(crate) start: i128,
    /// `N`.
    pub(crate) cells: usize,
}

impl Steps {
    /// `g_j` for the dots of the window, from masses on the circle that err by at most `error`; `outside` is added as the
    /// largest losses of an upper profile, and subtracted from a lower one.
    fn profile(&self, circle: &[f64], error: f64, side: Side, outside: f64) -> Vec<f64> {
        let exact = Bracket::exact;
        let (rho, sigma) = (exact(-self.theta).exp(), exact(-self.step).exp());
        let rest = -exact(-self.step).exp_m1();
        // Six roundings a step, each of half a unit.
        let rounding = 4.0 * f64::EPSILON * self.cells as f64;
        let (rho, sigma, rest, error, scale) = match side {
            Side::Upper => (
                rho.upper(),
                sigma.upper(),
                rest.upper(),
                error,
                1.0 + rounding,
            ),
            Side::Lower => (
                rho.lower(),
                sigma.lower(),
                rest.lower(),
                -error,
                1.0 - rounding,
            ),
        };
        let cells = self.cells;
        let first = self.start.rem_euclid(cells as i128) as usize;
        let mut values = vec![0.0; cells];
        let (mut total, mut tail) = match side {
            Side::Upper => (rho * outside, 0.0),
            Side::Lower => (0.0, 0.0),
        };
        // What is no number could be anything.
        let unknown = match side {
            Side::Upper => f64::INFINITY,
            Side::Lower => 0.0,
        };
        let at = |index: usize| {
            let mass = circle[(first + index) & (cells - 1)] + error;
            if mass.is_nan() {
                unknown
            } else {
                mass.max(0.0)
            }
        };
        values[cells - 1] = total;
        for index in (0..cells - 1).rev() {
            tail = rho * (at(index + 1) + sigma * tail);
            total = rho * total + rest * tail;
            values[index] = total;
        }
        // Roundings next to the smallest floats are not relative; they are below the last constant.
        for value in &mut values {
            *value = match side {
                Side::Upper => *value * scale + UNDERFLOW,
                Side::Lower => {
                    let known = *value * scale - outside - UNDERFLOW;
                    (known * (1.0 - f64::EPSILON)).max(0.0)
                }
            };
        }
        values
    }
}

/// A profile at the dots, in units of `e^(-θ(j-J))Πz^-k`.
struct Scaled {
    values: Vec<f64>,
    base: Bracket,
    centre: i128,
    ln_factor: Bracket,
}

/// The profile near one epsilon.
pub(crate) struct Near {
    /// The epsilon it is for, and what `δ` is there.
    epsilon: f64,
    there: Bracket,
    steps: Steps,
    upper: Scaled,
    lower: Scaled,
    /// At least the mass of losses that are infinite, or counted so.
    pub(crate) infinite_upper: f64,
    /// At least the mass of all losses of the upper grids.
    total_upper: f64,
}

impl Near {
    /// The profile of both sides, to be looked at near `epsilon`.
    pub(crate) fn new(
        [upper, lower]: [Tally; 2],
        counts: &[u64],
        steps: Steps,
        convolved: &Convolved,
        window: &Window,
        epsilon: f64,
    ) -> Self {
        let missing = upper.outside(&steps, counts, window).right;
        let above = steps.profile(
            &convolved.upper,
            convolved.upper_error,
            Side::Upper,
            missing,
        );
        let outside = lower.outside(&steps, counts, window);
        let heaviest = 1.0 / (1.0 + steps.theta / steps.step);
        let too_much = (outside.left + outside.right) * heaviest * (1.0 + 1e-9);
        let below = steps.profile(
            &convolved.lower,
            convolved.lower_error,
            Side::Lower,
            too_much,
        );
        let total = Bracket::exact(upper.ln_total).exp();
        let infinite = -Bracket::exact(upper.ln_finite).exp_m1();
        let mut near = Self {
            epsilon,
            there: Bracket::new(0.0, f64::INFINITY),
            steps,
            total_upper: total.upper(),
            infinite_upper: (infinite.clamp(0.0, 1.0) * total).upper().min(1.0),
            upper: upper.scale(above),
            lower: lower.scale(below),
        };
        near.there = near.delta(epsilon);
        near
    }

    /// How many cells the circle has.
    pub(crate) fn cells(&self) -> usize {
        self.steps.cells
    }

    /// Whether another tilt would hardly do better. At zero epsilon only the order of `δ` and another number is asked for, and
    /// any tilt will do.
    pub(crate) fn serves(&self, epsilon: f64) -> bool {
        epsilon == 0.0
            || self.delta(epsilon).relative_width() <= 4.0 * self.there.relative_width() + 1e-4
    }

    /// `δ(ε)` of the finite losses, at most and at least.
    pub(crate) fn delta(&self, epsilon: f64) -> Bracket {
        let mut upper = self.look(&self.upper, epsilon, Side::Upper).min(1.0);
        let mut lower = self.look(&self.lower, epsilon, Side::Lower);
        // A profile falls.
        if epsilon <= self.epsilon {
            lower = lower.max(self.there.lower());
        }
        if epsilon >= self.epsilon {
            upper = upper.min(self.there.upper());
        }
        Bracket::new(lower.min(upper), upper)
    }

    /// About where the upper profile is `delta`, if that is within the window.
    pub(crate) fn crossing(&self, delta: f64) -> Option<f64> {
        let rest = delta - self.infinite_upper;
        let first = self.upper.base.estimate() + self.steps.start as f64 * self.steps.step;
        let (mut low, mut high) = (first, first + self.steps.cells as f64 * self.steps.step);
        let at = |epsilon: f64| self.look(&self.upper, epsilon, Side::Upper);
        if !(rest > 0.0 && at(low) > rest && at(high) <= rest) {
            return None;
        }
        // Halved to the last float.
        while low < low.midpoint(high) && low.midpoint(high) < high {
            let middle = low.midpoint(high);
            if at(middle) > rest {
                low = middle;
            } else {
                high = middle;
            }
        }
        Some(high)
    }

    fn look(&self, scaled: &Scaled, epsilon: f64, side: Side) -> f64 {
        let Steps {
            theta,
            step,
            start,
            cells,
        } = self.steps;
        let exact = Bracket::exact;
        // The place of ε among the dots: a profile falls, so the upper one is looked at too far left and the lower one too far right.
        let offset = exact(epsilon) - scaled.base - exact(step) * whole(start);
        let offset = match side {
            Side::Upper => offset.lower(),
            Side::Lower => offset.upper(),
        };
        if offset < 0.0 {
            let first = self.dot(scaled, 0, side);
            return match side {
                Side::Upper => {
                    let share = exact(offset).exp();
                    let total = exact(self.total_upper);
                    (total * (exact(1.0) - share) + exact(first) * share).upper()
                }
                Side::Lower => first,
            };
        }
        let mut index = (offset / step).floor();
        // The distance from the dot, again rounded to its side.
        let mut distance = exact(offset) - exact(step) * exact(index);
        if side == Side::Upper && distance.lower() < 0.0 {
            index -= 1.0;
            distance = distance + exact(step);
        }
        if side == Side::Lower && distance.upper() > step {
            index += 1.0;
            distance = distance - exact(step);
        }
        if index < 0.0 {
            return 1.0;
        }
        if index >= (cells - 1) as f64 {
            return match side {
                Side::Upper => self.dot(scaled, cells - 1, side),
                Side::Lower => 0.0,
            };
        }
        let index = index as usize;
        let distance = match side {
            Side::Upper => distance.lower().clamp(0.0, step),
            Side::Lower => distance.upper().clamp(0.0, step),
        };
        let share = (exact(distance).exp_m1() / exact(step).exp_m1()).clamp(0.0, 1.0);
        let (left, right) = (
            exact(scaled.values[index]),
            exact(scaled.values[index + 1]) * exact(-theta).exp(),
        );
        let value = left * (exact(1.0) - share) + right * share;
        let found = value * self.unit(scaled, index);
        match side {
            Side::Upper => found.upper(),
            Side::Lower => found.lower().max(0.0),
        }
    }

    fn dot(&self, scaled: &Scaled, index: usize, side: Side) -> f64 {
        let found = Bracket::exact(scaled.values[index]) * self.unit(scaled, index);
        match side {
            Side::Upper => found.upper(),
            Side::Lower => found.lower().max(0.0),
        }
    }

    /// `e^(-θ(j-J))Πz^-k`.
    fn unit(&self, scaled: &Scaled, index: usize) -> Bracket {
        let sum = self.steps.start + index as i128 - scaled.centre;
        (-(Bracket::exact(self.steps.theta) * whole(sum)) - scaled.ln_factor).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convolve::{Factor, compose};
    use crate::grid::{Lattice, short};

    /// A fair die of losses, thrown a few times, on circles that are too small, just right and too large.
    #[test]
    fn encloses_what_enumeration_finds_on_circles_of_every_size() {
        let step = 0.125;
        let masses = vec![0.1, 0.0, 0.4, 0.3, 0.2];
        let grid = Grid {
            lattice: Lattice {
                base: -0.25,
                step,
                cells: 4,
            },
            masses: masses.clone(),
            infinite: 0.0,
        };
        let count = 6_u32;
        let mut truth = vec![1.0];
        for _ in 0..count {
            let mut next = vec![0.0; truth.len() + 4];
            for (i, x) in truth.iter().enumerate() {
                for (j, y) in masses.iter().enumerate() {
                    next[i + j] += x * y;
                }
            }
            truth = next;
        }
        let base = -0.25 * f64::from(count);
        let delta = |epsilon: f64| -> f64 {
            let sums = truth.iter().enumerate();
            sums.map(|(i, p)| p * (-libm::expm1(epsilon - base - step * i as f64)).max(0.0))
                .sum()
        };
        for (cells, start) in [(8, 8), (16, 6), (16, 9), (32, 0), (64, 0)] {
            for tilt in [0.0, 1.0, 9.0] {
                let theta = short(tilt * step);
                let tally = || {
                    let mut tally = [Tally::default(), Tally::default()];
                    tally[0].add(&grid, theta, Side::Upper, count.into());
                    tally[1].add(&grid, theta, Side::Lower, count.into());
                    tally
                };
                let both = tally();
                let factor = Factor {
                    upper: &both[0].tilted[0].masses,
                    lower: &both[1].tilted[0].masses,
                    count: count.into(),
                };
                let convolved = compose(&[factor], cells);
                let steps = Steps {
                    theta,
                    step,
                    start,
                    cells,
                };
                let window = Window {
                    bottom: 0.0,
                    bottom_moment: 4.0,
                    top: 0.0,
                    top_moment: 4.0,
                };
                let near = Near::new(tally(), &[count.into()], steps, &convolved, &window, 0.3);
                for place in -20..=20 {
                    let epsilon = 0.1 * f64::from(place) + 0.01;
                    let (found, truth) = (near.delta(epsilon), delta(epsilon));
                    assert!(
                        found.lower() <= truth * (1.0 + 1e-14) && truth <= found.upper() + 1e-15,
                        "{cells} {start} {tilt} {epsilon}: {found:?} {truth}"
                    );
                    if cells >= 32 && tilt < 5.0 && truth > 1e-3 && epsilon > base {
                        assert!(found.relative_width() < 1e-9, "{found:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_no_number_bounds_nothing() {
        let steps = Steps {
            theta: 0.5,
            step: 0.25,
            start: 0,
            cells: 8,
        };
        let circle = [0.1, f64::NAN, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1];
        let above = steps.profile(&circle, 1e-15, Side::Upper, 0.0);
        assert!(above[0].is_infinite() && above[1] < 1.0);
        let below = steps.profile(&circle, 1e-15, Side::Lower, 0.0);
        assert!(below.iter().all(|value| *value >= 0.0 && *value < 1.0));
        assert!(steps.profile(&circle, f64::NAN, Side::Upper, 0.0)[3].is_infinite());
        assert_eq!(
            steps.profile(&circle, 1e-15, Side::Lower, f64::INFINITY)[3],
            0.0
        );
    }

    #[test]
    fn integers_beyond_all_floats_are_bracketed() {
        assert_eq!(whole(-7), Bracket::exact(-7.0));
        let large = (1_i128 << 80) + 1;
        assert!(whole(large).lower() < whole(large).upper());
    }
}
