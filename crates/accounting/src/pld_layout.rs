//! # How fine a grid is, and where its circle
//! Grids spread a loss by a variance between `-step²/12` and `step²/6`, so epsilon is known up to about `(c+1) k step²/8` for a tilt `c`. A
//! [`sketch`](crate::sketch) tells `c` and how wide the window must be; atoms should be met by dots. Answers do not rest on any of it: only
//! their sharpness and speed do.

use crate::contract;
use crate::discretize;
use crate::grid::{Grid, Lattice};
use crate::pld::{Fineness, Pld};
use crate::profile::{Ends, Profile};
use crate::sketch::{Aim, Outline, Saddle, Sketch, Window};
use crate::tally::Tally;

const CELLS_MIN: usize = 1 << 8;
/// Up to this many sums all are on the circle, whether it is needed or not.
const ALL: f64 = 4096.0;
/// How many of the cells a sketched window takes: the window of the grids themselves may be a little wider.
const CELLS_USED: f64 = 0.94;
/// Atoms that are fewer steps apart are not met one by one.
const ATOMS_APART: f64 = 4.0;
/// Squares of larger steps are beyond the floats.
pub(crate) const STEP_MAX: f64 = 1e100;
/// How much wider than asked a step may be to save half of the cells.
const WIDER: f64 = 1.5;

impl Pld {
    /// A step with which epsilon is known as well as asked, or the window has as many cells. None if that takes so many cells
    /// that nothing worth while would come of those there may be.
    pub(crate) fn step(&self, aim: Aim, saddle: &Saddle, outside: f64) -> Option<f64> {
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

    pub(crate) fn grids(&self, saddle: &Saddle, step: f64, outside: f64) -> Vec<[Grid; 2]> {
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
    pub(crate) fn frame(
        &self,
        aim: Aim,
        saddle: &Saddle,
        step: f64,
        grids: &[[Grid; 2]],
        outside: f64,
    ) -> Frame {
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
        Frame {
            epsilon: saddle.epsilon,
            tilt,
            window,
            cells: (cells.clamp(CELLS_MIN as f64, 4.0 * self.cells_max as f64) as usize)
                .next_power_of_two(),
        }
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
    pub(crate) fn aligned(&self, step: f64) -> f64 {
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

/// Where the circle of a transform is, and the part of a tilted law that is on it.
pub(crate) struct Frame {
    pub(crate) epsilon: f64,
    pub(crate) tilt: f64,
    pub(crate) window: Window,
    pub(crate) cells: usize,
}

impl Frame {
    /// The index of the first sum in the window.
    pub(crate) fn start(&self, step: f64, tally: &Tally) -> i128 {
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
