//! # Privacy loss distributions, composed by a tilted Fourier transform
//! The engine that takes every pair: each part of a composition is put on a grid from above and from below
//! (`discretize.rs`, `contract.rs`), both grids are composed at once (`convolve.rs`), and the two profiles enclose that of the
//! composition (`grid.rs`, `circle.rs`). It is also the Privacy Buckets of \[SMM19\] with buckets of second order instead of first: see `buckets.rs`.
//!
//! **Tilting.** Composed masses far out are smaller than the round-off of a transform of size-one numbers. So masses at loss
//! `l` are multiplied by `e^(cl)` before and divided after, with `c` the saddle point of the profile at the asked epsilon:
//! there the tilted law has its bulk, and small deltas are as precise as large ones.
//!
//! **Few waves.** A sum of many losses is smooth: of a circle of 2^18 places some dozens of frequencies tell everything. Then only these
//! are computed, and the profile where it is asked for (`convolve.rs`, [`Smooth`]); else, as for losses with atoms, the whole circle is
//! transformed.
//!
//! **Choice of the step.** Grids spread a loss by a variance between `-step²/12` and `step²/6`, so epsilon is known up to about
//! `(c+1) k step²/8`. A [`sketch`](crate::sketch) tells `c` and how wide the window must be. Answers do not rest on it.

use whit_core::round;

use crate::Bracket;
use crate::circle::{Near, Steps, Tally};
use crate::contract;
use crate::convolve::{Factor, Spectrum, compose};
use crate::curve::{self, Curve, Root};
use crate::discretize;
use crate::grid::{Grid, Lattice, Masses, Side, Smooth, short};
use crate::pair::Pair;
use crate::profile::{Ends, PairProfile, Profile};
use crate::sketch::{Aim, Outline, Saddle, Sketch, TILTS, Window};

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

/// The profile near one epsilon: all of it, or a sum of few waves.
enum Worked {
    Whole(Box<Near>),
    Smooth(Box<Smooth>),
}

impl Worked {
    fn delta(&self, epsilon: f64) -> Bracket {
        match self {
            Self::Whole(near) => near.delta(epsilon),
            Self::Smooth(smooth) => smooth.delta(epsilon),
        }
    }

    fn serves(&self, epsilon: f64) -> bool {
        match self {
            Self::Whole(near) => near.serves(epsilon),
            Self::Smooth(smooth) => smooth.serves(epsilon),
        }
    }

    fn crossing(&self, delta: f64) -> Option<f64> {
        match self {
            Self::Whole(near) => near.crossing(delta),
            Self::Smooth(smooth) => smooth.crossing(delta),
        }
    }

    fn cells(&self) -> usize {
        match self {
            Self::Whole(near) => near.cells(),
            Self::Smooth(smooth) => smooth.cells(),
        }
    }

    fn infinite_upper(&self) -> f64 {
        match self {
            Self::Whole(near) => near.infinite_upper,
            Self::Smooth(smooth) => smooth.infinite_upper,
        }
    }
}

/// A composition, with the profile near one epsilon worked out.
pub(crate) struct Pld {
    parts: Vec<Part>,
    sketch: Sketch,
    fineness: Fineness,
    near: Option<Worked>,
    cells_max: usize,
    /// The delta that an epsilon is asked for, or infinity: a saddle point may take it for larger.
    delta_asked: f64,
    /// How often [`Curve::delta`] may aim anew: a search for an epsilon stays near one.
    aims_left: u32,
}

/// More cells would take more than 20 MB.
const CELLS_MAX: usize = 1 << 19;
/// Unless it takes more to be as narrow as [`Fineness::USUAL`].
const CELLS_MAX_REFINED: usize = 1 << 20;
const CELLS_MIN: usize = 1 << 8;
/// How much of delta may be lost outside of windows, as a share of what the step is allowed to cost.
const OUTSIDE: f64 = 1e-2;
/// Up to this many sums all are on the circle, whether it is needed or not.
const ALL: f64 = 4096.0;
/// How many of the cells a sketched window takes: the window of the grids themselves may be a little wider.
const CELLS_USED: f64 = 0.94;
/// Atoms that are fewer steps apart are not met one by one.
const ATOMS_APART: f64 = 4.0;
/// The largest tilt of one step.
const THETA_MAX: f64 = 30.0;
/// Squares of larger steps are beyond the floats.
const STEP_MAX: f64 = 1e100;
/// How much wider than asked a step may be to save half of the cells.
const WIDER: f64 = 1.5;
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

    fn count(&self) -> f64 {
        self.parts.iter().map(|part| part.count as f64).sum()
    }

    /// Step, grids, window, transform and profile.
    fn work_out(&self, aim: Aim) -> Option<Worked> {
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
        let mut circle = self.circle(aim, &saddle, step, &grids, outside);
        // A window that does not fit takes wider steps, and new grids for them.
        let fitting = circle.window.width() / (0.99 * self.cells_max as f64);
        if circle.cells > self.cells_max {
            if fitting.is_nan() || fitting >= STEP_MAX {
                return None;
            }
            step = self.aligned(fitting);
            grids = self.grids(&saddle, step, outside);
            circle = self.circle(aim, &saddle, step, &grids, outside);
            circle.cells = self.cells_max;
        }
        Some(self.transform(&circle, step, grids))
    }

    /// A step with which epsilon is known as well as asked, or the window has as many cells. None if that takes so many cells
    /// that nothing worth while would come of those there may be.
    fn step(&self, aim: Aim, saddle: &Saddle, outside: f64) -> Option<f64> {
        let (_, window) = self.tilt(&self.sketch, saddle, outside);
        let (bottom, top) = self.sketch.ends();
        let width = window
            .width()
            .clamp(1e-9 * (top - bottom).max(1e-290), 1e300);
        let mut worthless = f64::INFINITY;
        let mut step = match self.fineness {
            Fineness::Relative(share) => {
                let scale = match aim {
                    Aim::Delta(_) | Aim::Around(_) => saddle.epsilon.max(0.3 / saddle.tilt),
                    Aim::Epsilon(_) => 1.0 / saddle.tilt,
                };
                let wanted = (8.0 * share * scale / ((saddle.tilt + 1.0) * self.count())).sqrt();
                // Few losses do not smooth each other: then the profile changes as fast as it falls from zero on.
                let smooth = 0.05 * saddle.cumulants.variance.sqrt();
                let wanted = match aim {
                    Aim::Epsilon(_) => wanted,
                    _ => wanted.min(saddle.epsilon.max(smooth) / 16.0),
                };
                // Errors go with the square of the step.
                worthless = wanted * (0.5 / share).sqrt();
                // The number of cells is a power of two: a little fewer than wanted, or all of them.
                let cells = (width / wanted / WIDER).clamp(CELLS_MIN as f64, self.cells_max as f64);
                let cells = (cells as usize).next_power_of_two();
                let fitted = width / (CELLS_USED * cells as f64);
                fitted.clamp(wanted / 4.0, WIDER * wanted)
            }
            Fineness::Cells(cells) => {
                let cells = cells.clamp(CELLS_MIN, self.cells_max).next_power_of_two();
                width / (CELLS_USED * cells as f64)
            }
        };
        // No part may take more cells than the whole.
        let (mass, delta) = self.cut(saddle, outside);
        for outline in self.sketch.outlines() {
            let span = outline.top(delta) - outline.bottom(mass);
            step = step.max(span / (self.cells_max / 2) as f64);
        }
        (step <= worthless && step > 0.0 && step < STEP_MAX).then(|| self.aligned(step))
    }

    /// How much of one part may be below its grid, and how much of its profile beyond.
    fn cut(&self, saddle: &Saddle, outside: f64) -> (f64, f64) {
        let share = outside / self.count();
        let delta = libm::exp(saddle.ln_delta).min(self.delta_asked);
        (share, delta * share)
    }

    fn grids(&self, saddle: &Saddle, step: f64, outside: f64) -> Vec<[Grid; 2]> {
        let (mass, delta) = self.cut(saddle, outside);
        // A small share of what the cells cost.
        let budget = 0.02 * (saddle.tilt + 1.0) * step * step / 8.0;
        let each = self.parts.iter().zip(self.sketch.outlines());
        each.map(|(part, outline)| {
            let profile = &*part.profile;
            let (bottom, top) = (outline.bottom(mass), outline.top(delta));
            let anchor = outline.anchor(profile, step);
            let [above, below] = lattices(profile, bottom, top, step, anchor);
            let dots = outline.dots(&above, saddle.tilt, anchor);
            [
                discretize::upper(profile, above, &dots),
                contract::lower(profile, below, &dots, budget),
            ]
        })
        .collect()
    }

    /// The window, by the moments of the grids themselves.
    fn circle(
        &self,
        aim: Aim,
        saddle: &Saddle,
        step: f64,
        grids: &[[Grid; 2]],
        outside: f64,
    ) -> Circle {
        let each = grids.iter().zip(&self.parts);
        let outlines = each.map(|([upper, _], part)| Outline::of_grid(upper, part.count));
        let sketch = Sketch::new(outlines.collect());
        let saddle = sketch.at(aim, (saddle.tilt / 1.5, saddle.tilt * 1.5));
        let (tilt, window) = self.tilt(&sketch, &saddle, outside);
        let mut cells = (window.width() / step).ceil() + 8.0;
        // Where all sums fit, none is outside.
        let all = grids
            .iter()
            .zip(&self.parts)
            .fold(1.0, |sum, ([upper, _], part)| {
                sum + part.count as f64 * upper.lattice.cells as f64
            });
        if all <= ALL.max(1.2 * cells) {
            cells = all;
        }
        Circle {
            epsilon: saddle.epsilon,
            tilt,
            window,
            cells: (cells.clamp(CELLS_MIN as f64, 4.0 * self.cells_max as f64) as usize)
                .next_power_of_two(),
        }
    }

    fn transform(&self, circle: &Circle, step: f64, grids: Vec<[Grid; 2]>) -> Worked {
        // Beyond, neighbours are not told apart by their mass but by the tilt alone, and products underflow.
        let theta = short((circle.tilt * step).min(THETA_MAX));
        let mut upper = Tally::default();
        let mut lower = Tally::default();
        let mut masses = Masses::NONE;
        for ([above, below], part) in grids.into_iter().zip(&self.parts) {
            masses.add(&above, part.count);
            upper.add(&above, theta, Side::Upper, part.count);
            lower.add(&below, theta, Side::Lower, part.count);
        }
        let steps = Steps {
            theta,
            step,
            start: circle.start(step, &upper),
            cells: circle.cells,
        };
        let counts: Vec<u64> = self.parts.iter().map(|part| part.count).collect();
        let both = upper.tilted.iter().zip(&lower.tilted);
        let factors: Vec<Factor> = both
            .zip(&counts)
            .map(|((upper, lower), &count)| Factor {
                upper: &upper.masses,
                lower: &lower.masses,
                count,
            })
            .collect();
        let (window, epsilon) = (&circle.window, circle.epsilon);
        if let Some(spectrum) = Spectrum::new(&factors, steps.cells)
            && let Some(smooth) = Smooth::new(
                [&upper, &lower],
                &counts,
                (spectrum, masses),
                (steps, window),
                epsilon,
            )
        {
            return Worked::Smooth(Box::new(smooth));
        }
        let convolved = compose(&factors, steps.cells);
        let both = [upper, lower];
        Worked::Whole(Box::new(Near::new(
            both, &counts, steps, &convolved, window, epsilon,
        )))
    }

    /// The tilt of the transform, and the window it needs. At the saddle point δ is largest as a share of the tilted law; but
    /// where single losses may be large, that law is wide, and a smaller tilt does with a smaller window.
    fn tilt(&self, sketch: &Sketch, saddle: &Saddle, outside: f64) -> (f64, Window) {
        // The transform errs by about 1e-14 for each part: what is asked for must be well above.
        let least = libm::log(1e-10 * self.count()).min(-4.0);
        let mut best: Option<(f64, Window)> = None;
        for factor in [1.0, 0.6, 0.35, 0.2, 0.1] {
            let tilt = saddle.tilt * factor;
            let cumulants = sketch.cumulants(tilt);
            // The share of δ at ε, in units of the tilted law.
            let ln_profile = saddle.ln_delta + tilt * saddle.epsilon - cumulants.value;
            if factor < 1.0 && ln_profile < least {
                break;
            }
            let ln_share = (ln_profile + libm::log((1.0 + tilt) * outside)).clamp(-1e4, -1.0);
            let mut window = sketch.window(tilt, &cumulants, ln_share);
            let lopsided = window.top - cumulants.mean > 1.3 * (cumulants.mean - window.bottom);
            window.bottom = window.bottom.min(saddle.epsilon);
            window.top = window.top.max(saddle.epsilon);
            let (bottom, top) = sketch.ends();
            window.bottom = window.bottom.max(bottom);
            window.top = window.top.min(top).max(window.bottom);
            match &best {
                Some((_, known)) if known.width() <= window.width() => break,
                _ => best = Some((tilt, window)),
            }
            if !lopsided {
                break;
            }
        }
        best.unwrap_or_else(|| {
            let window = sketch.window(saddle.tilt, &saddle.cumulants, -40.0);
            (saddle.tilt, window)
        })
    }

    /// A step of about this size that divides the span between the two atoms of the part that matters most.
    fn aligned(&self, step: f64) -> f64 {
        let spans = self.parts.iter().filter_map(|part| {
            let Ends {
                bottom, top, atoms, ..
            } = part.profile.ends();
            let span = top.estimate() - bottom.estimate();
            // Four steps, or less if there is nothing in between: then a few times as many cells are worth it.
            let least = if is_two_atoms(&*part.profile) {
                0.25
            } else {
                ATOMS_APART
            };
            // Beyond, no float is a multiple of the step.
            (atoms && span >= least * step && span <= 1e15 * step)
                .then_some((span, part.count as f64 * span))
        });
        let heaviest = spans.max_by(|a, b| a.1.total_cmp(&b.1));
        heaviest.map_or(step, |(span, _)| span / (span / step * 0.999).ceil())
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
            round::add_up(near.infinite_upper(), finite.upper()).clamp(0.0, 1.0),
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

/// The circle of a transform, and the part of a tilted law that is on it.
struct Circle {
    epsilon: f64,
    tilt: f64,
    window: Window,
    cells: usize,
}

impl Circle {
    /// The index of the first sum in the window.
    fn start(&self, step: f64, tally: &Tally) -> i128 {
        if tally.length < self.cells as i128 {
            return 0;
        }
        let middle = self.window.bottom.midpoint(self.window.top);
        let index = ((middle - tally.base.estimate()) / step).floor();
        let start = index as i128 - self.cells as i128 / 2;
        start.clamp(0, tally.length + 1 - self.cells as i128)
    }
}

/// Whether there is nothing between the least and the largest loss.
fn is_two_atoms(profile: &dyn Profile) -> bool {
    let Ends { bottom, top, atoms } = profile.ends();
    let between = 1e-6 * (top.estimate() - bottom.estimate());
    let tail = |loss: f64| profile.tails(loss).p.estimate();
    atoms && tail(bottom.upper() + between) - tail(top.lower() - between) <= 1e-9
}

/// The lattices of a part, for the upper and for the lower grid. They differ only where an atom has to be just within or just
/// beyond the last dot.
fn lattices(
    profile: &dyn Profile,
    bottom: f64,
    reach: f64,
    step: f64,
    anchor: f64,
) -> [Lattice; 2] {
    let (ends, room) = (profile.ends(), profile.atom_room());
    let (least, last) = (ends.bottom.estimate(), ends.top.estimate());
    let cells_between = (last - least) / step;
    // If the step does not meet both atoms, it should meet the heavier.
    let meets_both = (cells_between - cells_between.round()).abs() < 1e-6 && cells_between > 0.5;
    let meets_all = meets_both && is_two_atoms(profile);
    let known = ends.bottom.lower().is_finite() && ends.top.upper().is_finite();
    if ends.atoms && known && (meets_all || cells_between >= ATOMS_APART) {
        let near = 0.25 * step;
        let at_top = profile.tails(last - near).p.upper();
        let at_bottom = 1.0 - profile.tails(least + near).p.lower();
        // Far more than the errors of tails, so that it is known on which side of its dot an atom is.
        let pad = 4096.0 * f64::EPSILON * (last.abs() + least.abs()) + room;
        let lattice = |base: f64, cells: f64| Lattice {
            base,
            step,
            cells: cells as usize,
        };
        if (meets_both || at_top >= at_bottom) && reach >= last - 1e-9 * last.abs() {
            let cells = ((last - bottom) / step - 1e-6).ceil().max(1.0);
            return [
                lattice(ends.top.upper() - cells * step + pad, cells),
                lattice(ends.top.lower() - cells * step - pad, cells),
            ];
        }
        if at_bottom > at_top && bottom <= least + 1e-9 * least.abs() {
            let cells = ((reach - least) / step + 1e-6).ceil().max(1.0);
            return [
                lattice(ends.bottom.upper() + pad, cells),
                lattice(ends.bottom.lower() - pad, cells),
            ];
        }
    }
    let (first, last) = (
        ((bottom - anchor) / step).floor(),
        ((reach - anchor) / step).ceil(),
    );
    let lattice = Lattice {
        base: anchor + first * step,
        step,
        cells: (last - first).max(1.0) as usize,
    };
    [lattice, lattice]
}

#[cfg(test)]
#[path = "pld_test.rs"]
mod tests;
