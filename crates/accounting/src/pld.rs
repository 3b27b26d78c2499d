//! # Privacy loss distributions, composed by a tilted Fourier transform
//! The engine that takes every pair: each part of a composition is put on a grid from above and from below
//! (`discretize.rs`, `contract.rs`), both grids are composed at once (`convolve.rs`), and the two profiles enclose that of the
//! composition (`tally.rs`, `near.rs`). It is also the Privacy Buckets of \[SMM19\] with buckets of second order instead of first: see `buckets.rs`.
//!
//! **Tilting.** Composed masses far out are smaller than the round-off of a transform of size-one numbers. So masses at loss
//! `l` are multiplied by `e^(cl)` before and divided after, with `c` the saddle point of the profile at the asked epsilon:
//! there the tilted law has its bulk, and small deltas are as precise as large ones.
//!
//! **Few waves.** A sum of many losses is smooth: of a circle of 2^18 places some dozens of frequencies tell everything. Then only these
//! are computed, and the profile where it is asked for (`spectrum.rs`, `smooth.rs`); else, as for losses with atoms, the whole circle is
//! transformed (`circle.rs`). How fine the grids are, and where the circle is, is chosen in `pld_layout.rs`.

use whit_core::round;

use crate::Bracket;
use crate::circle::Circle;
use crate::convolve::compose;
use crate::curve::{self, Curve, Root};
use crate::grid::{Grid, Side, short};
use crate::near::{Dots, Near, Steps};
use crate::pair::Pair;
use crate::pld_layout::{Frame, STEP_MAX};
use crate::profile::{PairProfile, Profile};
use crate::sketch::{Aim, Outline, Sketch, TILTS};
use crate::smooth::Smooth;
use crate::spectrum::Spectrum;
use crate::tally::{Tally, factors};

/// A pair and how often it is composed.
pub(crate) struct Part {
    pub(crate) profile: Box<dyn Profile>,
    pub(crate) count: u64,
}

impl Part {
    pub(crate) fn new(pair: &Pair, count: u64) -> Self {
        Self {
            profile: Box::new(PairProfile::new(pair)),
            count,
        }
    }
}

/// How fine the grid is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fineness {
    /// As it takes to know epsilon up to about this share.
    Relative(f64),
    /// This many cells for the composition, rounded up to a power of two.
    Cells(usize),
}

impl Fineness {
    /// Widths of epsilon below a thousandth.
    pub(crate) const USUAL: Self = Self::Relative(4e-4);
    /// Four times as wide, with half of the cells.
    pub(crate) const ROUGH: Self = Self::Relative(16e-4);
}

/// A composition, with the profile near one epsilon worked out.
pub(crate) struct Pld {
    pub(crate) parts: Vec<Part>,
    pub(crate) sketch: Sketch,
    pub(crate) fineness: Fineness,
    near: Option<Near>,
    pub(crate) cells_max: usize,
    /// The delta that an epsilon is asked for, or infinity: a saddle point may take it for larger.
    pub(crate) delta_asked: f64,
    /// How often [`Curve::delta`] may aim anew: a search for an epsilon stays near one.
    aims_left: u32,
}

/// More cells would take more than 20 MB.
const CELLS_MAX: usize = 1 << 19;
/// Unless it takes more to be as narrow as [`Fineness::USUAL`].
const CELLS_MAX_REFINED: usize = 1 << 20;
/// How much of delta may be lost outside of windows, as a share of what the step is allowed to cost.
const OUTSIDE: f64 = 1e-2;
/// The largest tilt of one step.
const THETA_MAX: f64 = 30.0;
/// An answer is narrow if its width is below this many of the shares that were asked for.
const NARROW: f64 = 2.5;
/// How often a search for an epsilon may aim anew.
const AIMS: u32 = 4;
/// How often a grid is refined to get there.
const REFINEMENTS: u32 = 2;
/// The first step of a search from a crossing, as a share of it: far below the width of every grid.
const ROOT_STEP: f64 = 1e-12;
/// What [`Fineness::Cells`] allows to be lost outside of windows.
const OUTSIDE_CELLS: f64 = 1e-8;

impl Pld {
    pub(crate) fn new(parts: Vec<Part>, fineness: Fineness) -> Self {
        let parts: Vec<Part> = parts.into_iter().filter(|part| part.count > 0).collect();
        let outlines = parts
            .iter()
            .map(|part| Outline::new(&*part.profile, part.count))
            .collect();
        Self {
            parts,
            sketch: Sketch::new(outlines),
            fineness,
            near: None,
            cells_max: CELLS_MAX,
            delta_asked: f64::INFINITY,
            aims_left: u32::MAX,
        }
    }

    /// Works out the profile where it is asked for; if that is not possible, what is known elsewhere must do.
    pub(crate) fn aim(&mut self, aim: Aim) {
        if let Some(near) = self.work_out(aim) {
            self.near = Some(near);
        }
    }

    /// `ε(δ)`, aimed at `delta`. Where the answer is not as narrow as was asked for, the grid is refined.
    pub(crate) fn epsilon(&mut self, delta: f64) -> Bracket {
        let asked = self.fineness;
        self.aims_left = AIMS;
        self.delta_asked = delta;
        self.aim(Aim::Delta(delta));
        // A saddle point may mislead, but a profile tells where to look instead.
        for _ in 0..AIMS {
            let crossing = self.near.as_ref().and_then(|near| {
                let place = near.crossing(delta).filter(|place| *place > 0.0)?;
                (!near.serves(place)).then_some(place)
            });
            match crossing {
                Some(place) => self.aim(Aim::Around(place)),
                None => break,
            }
        }
        let mut found = curve::epsilon(self, delta);
        if let Fineness::Relative(share) = asked {
            let mut finer = share;
            for _ in 0..REFINEMENTS {
                let excess = found.relative_width() / (NARROW * share);
                let full = self
                    .near
                    .as_ref()
                    .is_some_and(|near| near.cells() >= self.cells_max);
                // What is not known to some percent is not known for other reasons than the step.
                if full && asked == Fineness::USUAL {
                    self.cells_max = CELLS_MAX_REFINED;
                } else if full {
                    break;
                }
                if !(1.0..100.0).contains(&excess) {
                    break;
                }
                finer /= 1.5 * excess;
                self.fineness = Fineness::Relative(finer);
                self.aim(Aim::Around(found.estimate()));
                found = found.meet(curve::epsilon(self, delta));
            }
            self.fineness = asked;
            self.cells_max = CELLS_MAX;
        }
        self.aims_left = u32::MAX;
        self.delta_asked = f64::INFINITY;
        found
    }

    pub(crate) fn count(&self) -> f64 {
        self.parts.iter().map(|part| part.count as f64).sum()
    }

    /// Step, grids, window, transform and profile.
    fn work_out(&self, aim: Aim) -> Option<Near> {
        if self.parts.is_empty() {
            return None;
        }
        let saddle = self.sketch.at(aim, TILTS);
        let outside = match self.fineness {
            Fineness::Relative(share) => OUTSIDE * share,
            Fineness::Cells(_) => OUTSIDE_CELLS,
        };
        let mut step = self.step(aim, &saddle, outside)?;
        let mut grids = self.grids(&saddle, step, outside);
        let mut frame = self.frame(aim, &saddle, step, &grids, outside);
        // A window that does not fit takes wider steps, and new grids for them.
        let fitting = frame.window.width() / (0.99 * self.cells_max as f64);
        if frame.cells > self.cells_max {
            if fitting.is_nan() || fitting >= STEP_MAX {
                return None;
            }
            step = self.aligned(fitting);
            grids = self.grids(&saddle, step, outside);
            frame = self.frame(aim, &saddle, step, &grids, outside);
            frame.cells = self.cells_max;
        }
        Some(self.transform(&frame, step, grids))
    }

    fn transform(&self, frame: &Frame, step: f64, grids: Vec<[Grid; 2]>) -> Near {
        // Beyond, neighbours are not told apart by their mass but by the tilt alone, and products underflow.
        let theta = short((frame.tilt * step).min(THETA_MAX));
        let (mut upper, mut lower) = (
            Tally::new(Side::Upper, theta),
            Tally::new(Side::Lower, theta),
        );
        for ([above, below], part) in grids.into_iter().zip(&self.parts) {
            upper.add(&above, part.count);
            lower.add(&below, part.count);
        }
        let steps = Steps {
            theta,
            step,
            start: frame.start(step, &upper),
            cells: frame.cells,
        };
        let (both, factors) = ([&upper, &lower], factors(&upper, &lower));
        let smooth = Spectrum::new(&factors, steps.cells)
            .and_then(|spectrum| Smooth::new(both, spectrum, steps, &frame.window));
        let dots: Box<dyn Dots> = match smooth {
            Some(smooth) => Box::new(smooth),
            None => {
                let convolved = compose(&factors, steps.cells);
                Box::new(Circle::new(both, &convolved, steps, &frame.window))
            }
        };
        Near::new(dots, &upper, frame.epsilon)
    }
}

impl Curve for Pld {
    fn delta(&mut self, epsilon: f64) -> Bracket {
        if epsilon.is_nan() {
            return Bracket::new(0.0, 1.0);
        }
        let least = (-Bracket::exact(epsilon).exp_m1()).lower().max(0.0);
        if self.parts.is_empty() {
            return Bracket::new(least, (-Bracket::exact(epsilon).exp_m1()).upper().max(0.0));
        }
        let aimed = self.near.as_ref().is_some_and(|near| near.serves(epsilon));
        if !aimed && epsilon.is_finite() && self.aims_left > 0 {
            self.aims_left -= 1;
            self.aim(Aim::Epsilon(epsilon));
        }
        let infinite = self.infinite();
        let Some(near) = &self.near else {
            return Bracket::new(least, 1.0);
        };
        let finite = near.delta(epsilon);
        Bracket::new(
            round::add_down(infinite.lower(), finite.lower())
                .max(least)
                .clamp(0.0, 1.0),
            round::add_up(near.infinite_upper, finite.upper()).clamp(0.0, 1.0),
        )
    }

    fn infinite(&self) -> Bracket {
        let ln_finite = self.parts.iter().fold(Bracket::ZERO, |sum, part| {
            sum + Bracket::exact(part.count as f64) * (-part.profile.infinite()).ln_1p()
        });
        (-ln_finite.exp_m1()).clamp(0.0, 1.0)
    }

    fn epsilon_max(&self) -> Option<f64> {
        let top = self.parts.iter().fold(Bracket::ZERO, |sum, part| {
            sum + Bracket::exact(part.count as f64) * part.profile.ends().top
        });
        top.upper().is_finite().then_some(top.upper().max(0.0))
    }

    /// Where the upper profile crosses: the lower one is a few steps away, by the slope.
    fn root(&mut self, delta: f64) -> Option<Root> {
        let near = self.near.as_ref()?;
        let place = near.crossing(delta).filter(|place| *place > 0.0)?;
        let further = place * (1.0 + 1e-3);
        let fall = self.delta(place).upper().ln() - self.delta(further).upper().ln();
        let slope = fall / (further - place);
        (slope > 0.0 && slope.is_finite()).then_some(Root {
            place,
            slope,
            step: place * ROOT_STEP,
        })
    }

    fn guess(&mut self, delta: f64) -> f64 {
        self.sketch.at(Aim::Delta(delta), TILTS).epsilon
    }
}

#[cfg(test)]
#[path = "pld_test.rs"]
mod tests;
