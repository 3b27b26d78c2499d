//! # A smooth composition
//! The profile of a composition that is a sum of few waves (`spectrum.rs`), worked out only where it is asked for: another way to the bounds
//! of `circle.rs`, with the same window and the same mass outside of it (`tally.rs`).
//!
//! **Profile.** In units of `e^(-θ(j-J))Πz^-k` the profile at dot `j` is `Σ_(m=1)^M a_(j+m) ρ^m (1-σ^m)`, where `M` places are left up to
//! the end of the window. The series around the circle without end is too large by what comes after, with `ρ^(M+m) (1 - σ^(M+m))` for the
//! weight of the `m`-th place beyond. Since `1 - σ^(M+m) = (1 - σ^m) + σ^m (1 - σ^M)`, that is `ρ^M (T + (1-σ^M) B)`, where `T` is the same
//! series from the last place on and `B = Σ_m a_(end+m) (ρσ)^m`. Nothing in it cancels.

use crate::Bracket;
use crate::grid::Side;
use crate::near::{Dots, Steps, Units};
use crate::sketch::Window;
use crate::spectrum::{Fall, Series, Spectrum};
use crate::tally::Tally;

/// The profiles of both sides as sums of few waves.
pub(crate) struct Smooth {
    spectrum: Spectrum,
    steps: Steps,
    upper: Composed,
    lower: Composed,
}

/// One of them.
struct Composed {
    units: Units,
    profile: Series,
    /// `T` and `B`.
    beyond: [Bracket; 2],
    /// What is missing of an upper profile, as the largest losses, or what may be too much of a lower one.
    lost: f64,
}

impl Composed {
    fn new(
        side: Side,
        tally: &Tally,
        spectrum: &Spectrum,
        steps: &Steps,
        window: &Window,
    ) -> Option<Self> {
        let (theta, step) = (steps.theta, steps.step);
        let last = place(steps, steps.cells - 1);
        let profile = spectrum.series(side, Fall::Profile(theta, step))?;
        let power = spectrum.series(side, Fall::Power(theta + step))?;
        let beyond = [&profile, &power].map(|series| {
            let found = spectrum.at(series, last);
            found.clamp(0.0, f64::INFINITY)
        });
        Some(Self {
            units: Units::new(tally),
            profile,
            beyond,
            lost: tally.lost(steps, window),
        })
    }
}

impl Smooth {
    /// None where a spectrum is of no use.
    pub(crate) fn new(
        [upper, lower]: [&Tally; 2],
        spectrum: Spectrum,
        steps: Steps,
        window: &Window,
    ) -> Option<Self> {
        let composed = |side, tally| Composed::new(side, tally, &spectrum, &steps, window);
        Some(Self {
            upper: composed(Side::Upper, upper)?,
            lower: composed(Side::Lower, lower)?,
            spectrum,
            steps,
        })
    }

    fn composed(&self, side: Side) -> &Composed {
        match side {
            Side::Upper => &self.upper,
            Side::Lower => &self.lower,
        }
    }
}

impl Dots for Smooth {
    fn steps(&self) -> &Steps {
        &self.steps
    }

    fn units(&self, side: Side) -> &Units {
        &self.composed(side).units
    }

    fn dot(&self, side: Side, index: usize) -> f64 {
        let exact = Bracket::exact;
        let Steps { theta, step, .. } = self.steps;
        let composed = self.composed(side);
        let left = exact((self.steps.cells - 1 - index) as f64);
        let around = self
            .spectrum
            .at(&composed.profile, place(&self.steps, index));
        let fall = (-(exact(theta) * left)).exp();
        let [same, power] = composed.beyond;
        let after = fall * (same - (-(exact(step) * left)).exp_m1() * power);
        let within = around - after.clamp(0.0, f64::INFINITY);
        let within = within.clamp(0.0, f64::INFINITY);
        let unit = composed.units.at(&self.steps, index);
        let lost = exact(composed.lost);
        match side {
            Side::Upper => (unit * (within + lost * fall)).upper(),
            Side::Lower => {
                let least = (within - lost).clamp(0.0, f64::INFINITY);
                (unit * least).lower().max(0.0)
            }
        }
    }

    fn between(&self, side: Side, index: usize, share: Bracket) -> f64 {
        let exact = Bracket::exact;
        let [left, right] = [index, index + 1].map(|index| exact(self.dot(side, index)));
        let found = left * (exact(1.0) - share) + right * share;
        match side {
            Side::Upper => found.upper(),
            Side::Lower => found.lower(),
        }
    }

    /// Questions are dear here: false position on the logarithm, with halved weights for the end that stays (the Illinois rule).
    fn root(
        &self,
        profile: &dyn Fn(f64) -> f64,
        delta: f64,
        (mut low, mut high): (f64, f64),
        guess: f64,
    ) -> f64 {
        let target = libm::log(delta);
        let excess = |epsilon: f64| libm::log(profile(epsilon)) - target;
        let (mut above, mut below) = (excess(low), excess(high));
        let mut next = guess;
        let mut last = 0.0;
        for _ in 0..100 {
            if !(next > low && next < high) {
                next = low.midpoint(high);
            }
            let found = excess(next);
            if found.abs() < 1e-13 || high - low <= 1e-15 * high.abs() {
                return next;
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
        high
    }
}

/// Where a dot of the window is on the circle.
fn place(steps: &Steps, index: usize) -> usize {
    (steps.start + index as i128).rem_euclid(steps.cells as i128) as usize
}

#[cfg(test)]
#[path = "smooth_test.rs"]
mod tests;
