//! # A composed profile near one epsilon
//! Bounds of both sides at the dots of a window, from whoever has them ([`Dots`]: all of a circle in `circle.rs`, a sum of few waves in
//! `smooth.rs`), become bounds of `δ(ε)` at every `ε`.
//!
//! **Between dots** the profile of a grid is linear in `e^ε`. **Right of the window** the upper one is at most that of the last dot, and of
//! the lower one nothing is known but that it is not negative. **Left of it** the lower one is at least that of the first dot, and the upper
//! one, convex in `t = e^ε`, is below the chord from `Π(f+p_∞)^k` at `t = 0`. Where `ε` is among the dots is known up to rounding: a profile
//! falls, so the upper one is looked at too far left, and the lower one too far right.

use crate::Bracket;
use crate::grid::Side;
use crate::tally::Tally;

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

/// An integer as a bracket: exact up to 2^53.
pub(crate) fn whole(value: i128) -> Bracket {
    let float = value as f64;
    if float as i128 == value {
        Bracket::exact(float)
    } else {
        Bracket::new(float.next_down(), float.next_up())
    }
}

/// The units that the dots of one side are counted in.
pub(crate) struct Units {
    /// `Σ k base`.
    base: Bracket,
    /// `Σ k J`.
    centre: i128,
    /// `Σ k ln z`.
    ln_factor: Bracket,
}

impl Units {
    pub(crate) fn new(tally: &Tally) -> Self {
        Self {
            base: tally.base,
            centre: tally.centre,
            ln_factor: tally.ln_factor,
        }
    }

    /// `e^(-θ(j-J))Πz^-k`, for the dot with this index in the window.
    pub(crate) fn at(&self, steps: &Steps, index: usize) -> Bracket {
        let sum = steps.start + index as i128 - self.centre;
        (-(Bracket::exact(steps.theta) * whole(sum)) - self.ln_factor).exp()
    }
}

/// The profiles of both sides at the dots of a window.
pub(crate) trait Dots {
    fn steps(&self) -> &Steps;

    fn units(&self, side: Side) -> &Units;

    /// At least, or at most, the profile at a dot.
    fn dot(&self, side: Side, index: usize) -> f64;

    /// The same between a dot and the next, at this share of the way in `e^ε`.
    fn between(&self, side: Side, index: usize, share: Bracket) -> f64;

    /// About where the upper profile is `delta`, which it is above at the one place and not at the other.
    fn root(&self, profile: &dyn Fn(f64) -> f64, delta: f64, range: (f64, f64), guess: f64) -> f64;
}

/// The profile near one epsilon.
pub(crate) struct Near {
    dots: Box<dyn Dots>,
    /// The epsilon it is for, and what `δ` is there.
    epsilon: f64,
    there: Bracket,
    /// At least the mass of losses that are infinite, or counted so.
    pub(crate) infinite_upper: f64,
    /// At least the mass of all losses of the upper grids.
    total_upper: f64,
}

impl Near {
    /// To be looked at near `epsilon`; `upper` is what the upper dots come from.
    pub(crate) fn new(dots: Box<dyn Dots>, upper: &Tally, epsilon: f64) -> Self {
        let mut near = Self {
            dots,
            epsilon,
            there: Bracket::new(0.0, f64::INFINITY),
            infinite_upper: upper.infinite_upper(),
            total_upper: upper.total_upper(),
        };
        near.there = near.delta(epsilon);
        near
    }

    /// How many cells the circle has.
    pub(crate) fn cells(&self) -> usize {
        self.dots.steps().cells
    }

    /// Whether another tilt would hardly do better. At zero epsilon only the order of `δ` and another number is asked for, and
    /// any tilt will do.
    pub(crate) fn serves(&self, epsilon: f64) -> bool {
        epsilon == 0.0
            || self.delta(epsilon).relative_width() <= 4.0 * self.there.relative_width() + 1e-4
    }

    /// `δ(ε)` of the finite losses, at most and at least.
    pub(crate) fn delta(&self, epsilon: f64) -> Bracket {
        let mut upper = self.look(epsilon, Side::Upper).min(1.0);
        let mut lower = self.look(epsilon, Side::Lower);
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
        let &Steps {
            step, start, cells, ..
        } = self.dots.steps();
        let low = self.dots.units(Side::Upper).base.estimate() + start as f64 * step;
        let high = low + cells as f64 * step;
        let at = |epsilon: f64| self.look(epsilon, Side::Upper);
        (rest > 0.0 && at(low) > rest && at(high) <= rest)
            .then(|| self.dots.root(&at, rest, (low, high), self.epsilon))
    }

    /// At least, or at most, the profile.
    pub(crate) fn look(&self, epsilon: f64, side: Side) -> f64 {
        let exact = Bracket::exact;
        let &Steps {
            step, start, cells, ..
        } = self.dots.steps();
        let upper = side == Side::Upper;
        let toward = |value: Bracket| {
            if upper { value.lower() } else { value.upper() }
        };
        let base = self.dots.units(side).base;
        let offset = toward(exact(epsilon) - base - exact(step) * whole(start));
        if offset < 0.0 {
            let first = self.dots.dot(side, 0);
            if !upper {
                return first;
            }
            let (share, total) = (exact(offset).exp(), exact(self.total_upper));
            return (total * (exact(1.0) - share) + exact(first) * share).upper();
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
            return if upper {
                self.dots.dot(side, cells - 1)
            } else {
                0.0
            };
        }
        let distance = toward(distance).clamp(0.0, step);
        let share = exact(distance).exp_m1() / exact(step).exp_m1();
        self.dots
            .between(side, index as usize, share.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_beyond_all_floats_are_bracketed() {
        assert_eq!(whole(-7), Bracket::exact(-7.0));
        let large = (1_i128 << 80) + 1;
        assert!(whole(large).lower() < whole(large).upper());
    }
}
