//! # A composition on a circle
//! Grids of all parts, tilted (`grid.rs`) and convolved on a circle (`convolve.rs`), become bounds of the profile at every dot of a window.
//! What is outside of the window is counted in `tally.rs`.
//!
//! **Profile.** In units of `e^(-θ(j-J))Πz^-k` (see `grid.rs`) the profile at dot `j` is
//! `g_j = Σ_(i>j) a_i ρ^(i-j) (1 - σ^(i-j))`, with `ρ = e^-θ` and `σ = e^-step`. It comes from `t_j = ρ(a_(j+1) + σ t_(j+1))` and
//! `g_j = ρ g_(j+1) + (1-σ) t_j`: sums of positive numbers, six roundings a step. The error of the transform is added to
//! each `a_i`, or subtracted where that leaves something positive.

use crate::Bracket;
use crate::convolve::Convolved;
use crate::grid::Side;
use crate::near::{Dots, Steps, Units};
use crate::sketch::Window;
use crate::tally::Tally;

/// Far above the sum of all that may underflow: a number below `1e-307` for each of a million places.
const UNDERFLOW: f64 = 1e-290;

/// The profiles of both sides at all dots.
pub(crate) struct Circle {
    steps: Steps,
    upper: Scaled,
    lower: Scaled,
}

/// One of them, in units of `e^(-θ(j-J))Πz^-k`.
struct Scaled {
    values: Vec<f64>,
    units: Units,
}

impl Circle {
    pub(crate) fn new(
        [upper, lower]: [&Tally; 2],
        convolved: &Convolved,
        steps: Steps,
        window: &Window,
    ) -> Self {
        let (missing, too_much) = (upper.lost(&steps, window), lower.lost(&steps, window));
        let (above, below) = (&convolved.upper, &convolved.lower);
        let above = steps.profile(above, convolved.upper_error, Side::Upper, missing);
        let below = steps.profile(below, convolved.lower_error, Side::Lower, too_much);
        let scaled = |tally, values| Scaled {
            values,
            units: Units::new(tally),
        };
        Self {
            steps,
            upper: scaled(upper, above),
            lower: scaled(lower, below),
        }
    }

    fn scaled(&self, side: Side) -> &Scaled {
        match side {
            Side::Upper => &self.upper,
            Side::Lower => &self.lower,
        }
    }

    /// A value that is counted in the units of a dot, rounded to its side.
    fn counted(&self, side: Side, value: Bracket, index: usize) -> f64 {
        let found = value * self.scaled(side).units.at(&self.steps, index);
        match side {
            Side::Upper => found.upper(),
            Side::Lower => found.lower().max(0.0),
        }
    }
}

impl Dots for Circle {
    fn steps(&self) -> &Steps {
        &self.steps
    }

    fn units(&self, side: Side) -> &Units {
        &self.scaled(side).units
    }

    fn dot(&self, side: Side, index: usize) -> f64 {
        let value = Bracket::exact(self.scaled(side).values[index]);
        self.counted(side, value, index)
    }

    fn between(&self, side: Side, index: usize, share: Bracket) -> f64 {
        let exact = Bracket::exact;
        let values = &self.scaled(side).values;
        let left = exact(values[index]);
        let right = exact(values[index + 1]) * exact(-self.steps.theta).exp();
        self.counted(side, left * (exact(1.0) - share) + right * share, index)
    }

    /// Questions are cheap here: halved to the last float.
    fn root(
        &self,
        profile: &dyn Fn(f64) -> f64,
        delta: f64,
        (mut low, mut high): (f64, f64),
        _: f64,
    ) -> f64 {
        while low < low.midpoint(high) && low.midpoint(high) < high {
            let middle = low.midpoint(high);
            if profile(middle) > delta {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convolve::compose;
    use crate::grid::{Grid, Lattice, short};
    use crate::near::Near;
    use crate::tally::factors;

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
                let both = [Side::Upper, Side::Lower].map(|side| {
                    let mut tally = Tally::new(side, theta);
                    tally.add(&grid, count.into());
                    tally
                });
                let convolved = compose(&factors(&both[0], &both[1]), cells);
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
                let circle = Circle::new([&both[0], &both[1]], &convolved, steps, &window);
                let near = Near::new(Box::new(circle), &both[0], 0.3);
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
}
