//! # Privacy loss distributions, composed by a tilted Fourier transform
//! The engine that takes every pair: each part of a composition is put on a grid from above and from below
//! (`discretize.rs`, `contract.rs`), both grids are composed at once (`convolve.rs`), and the two profiles enclose that of the
//! composition (`grid.rs`, `circle.rs`). It is also the Privacy Buckets of \[SMM19\] with buckets of second order instead of first: see `buckets.rs`.
//!
//! **Tilting.** Composed masses far out are smaller than the round-off of a transform of size-one numbers. So masses at loss
//! `l` are multiplied by `e^(cl)` before and divided after, with `c` the saddle point of the profile at the asked epsilon:
//! there the tilted law has its bulk, and small deltas are as precise as large ones.
//!
//! **Choice of the step.** Grids spread a loss by a variance between `-step²/12` and `step²/6`, so epsilon is known up to about
//! `(c+1) k step²/8`. A [`sketch`](crate::sketch) tells `c` and how wide the window must be. Answers do not rest on it.

use whit_core::round;

use crate::Bracket;
use crate::circle::{Near, Steps, Tally};
use crate::contract;
use crate::convolve::{Factor, compose};
use crate::curve::{self, Curve};
use crate::discretize;
use crate::grid::{Grid, Lattice, Side, short};
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
}

/// A composition, with the profile near one epsilon worked out.
pub(crate) struct Pld {
    parts: Vec<Part>,
    sketch: Sketch,
    fineness: Fineness,
    near: Option<Near>,
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
/// How much wider than asked a step may be to save half of the cells.
const WIDER: f64 = 1.5;
/// An answer is narrow if its width is below this many of the shares that were asked for.
const NARROW: f64 = 2.5;
/// How often a search for an epsilon may aim anew.
const AIMS: u32 = 4;
/// How often a grid is refined to get there.
const REFINEMENTS: u32 = 2;
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
        let mut circle = self.circle(aim, &saddle, step, &grids, outside);
        // A window that does not fit takes wider steps, and new grids for them.
        let fitting = circle.window.width() / (0.99 * self.cells_max as f64);
        if circle.cells > self.cells_max {
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
        (step <= worthless && step > 0.0).then(|| self.aligned(step))
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

    fn transform(&self, circle: &Circle, step: f64, grids: Vec<[Grid; 2]>) -> Near {
        // Beyond, neighbours are not told apart by their mass but by the tilt alone, and products underflow.
        let theta = short((circle.tilt * step).min(THETA_MAX));
        let mut upper = Tally::default();
        let mut lower = Tally::default();
        for ([above, below], part) in grids.into_iter().zip(&self.parts) {
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
        let convolved = compose(&factors, steps.cells);
        let both = [upper, lower];
        Near::new(
            both,
            &counts,
            steps,
            &convolved,
            &circle.window,
            circle.epsilon,
        )
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
            (atoms && span.is_finite() && span >= least * step)
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

    fn guess(&mut self, delta: f64) -> f64 {
        if let Some(place) = self.near.as_ref().and_then(|near| near.crossing(delta)) {
            return place;
        }
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
    if ends.atoms && (meets_all || cells_between >= ATOMS_APART) {
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
mod tests {
    use super::*;
    use crate::atoms::Atoms;
    use crate::gaussian::Gaussian;
    use crate::pair::Change::{self, Add, Remove, Replace};

    fn gaussian(sigma: f64) -> Pair {
        Pair::Gaussian { sigma }
    }

    fn laplace(scale: f64) -> Pair {
        Pair::Laplace { scale }
    }

    fn sampled(rate: f64, sigma: f64, change: Change) -> Pair {
        Pair::SampledGaussian {
            rate,
            sigma,
            change,
        }
    }

    fn sampled_laplace(rate: f64, scale: f64, change: Change) -> Pair {
        Pair::SampledLaplace {
            rate,
            scale,
            change,
        }
    }

    fn pld(parts: &[(Pair, u64)]) -> Pld {
        let parts = parts.iter().map(|(pair, count)| Part::new(pair, *count));
        Pld::new(parts.collect(), Fineness::USUAL)
    }

    /// Name, composition, delta and epsilon.
    type Golden = (&'static str, Vec<(Pair, u64)>, f64, f64);

    /// Golden values of the reference file.
    fn golden() -> Vec<Golden> {
        let mut cases = vec![
            ("001", vec![(gaussian(20.0), 512)], 1e-5, 5.052787674052982),
            ("002", vec![(gaussian(20.0), 512)], 1e-12, 8.28107254750497),
            ("003", vec![(gaussian(1.0), 1)], 1e-6, 4.886554117462212),
            ("004", vec![(gaussian(5.0), 1)], 1e-9, 1.1040402625920855),
            (
                "005",
                vec![(gaussian(50.0), 10_000)],
                1e-15,
                17.479458492636287,
            ),
            ("006", vec![(gaussian(0.5), 4)], 1e-5, 24.381610883113673),
            ("007", vec![(gaussian(3.0), 100)], 1e-30, 43.33593968812861),
            ("010", vec![(laplace(20.0), 512)], 1e-5, 4.986458909916051),
            ("011", vec![(laplace(20.0), 512)], 1e-15, 9.135892571930992),
            ("012", vec![(laplace(1.0), 1)], 1e-3, 0.997998999332833),
            ("013", vec![(laplace(2.0), 8)], 1e-5, 3.9974497611045514),
            ("014", vec![(laplace(5.0), 32)], 1e-8, 5.732744925641574),
            ("015", vec![(laplace(10.0), 100)], 1e-6, 4.692667414680189),
        ];
        let steps = [
            (
                "027",
                0.01,
                4.0,
                10_000,
                1e-5,
                0.9468668007643095,
                0.9370364254020973,
            ),
            (
                "028",
                0.004266666666666667,
                1.1,
                14_062,
                1e-5,
                2.381596921424357,
                2.243559372698864,
            ),
            (
                "029",
                0.001,
                0.8,
                60_000,
                1e-5,
                1.9521717358900637,
                1.8099635054857137,
            ),
            (
                "030",
                0.001,
                1.0,
                1_000_000,
                1e-6,
                6.694272659734772,
                6.614617413790014,
            ),
            (
                "031",
                0.01,
                4.0,
                10_000,
                1e-10,
                1.528218476663899,
                1.5039079704222202,
            ),
            (
                "032",
                0.01,
                4.0,
                10_000,
                1e-15,
                1.9560534829444796,
                1.9169356039088,
            ),
            (
                "033",
                0.01,
                4.0,
                10_000,
                1e-20,
                2.3107969893712563,
                2.2567613401214883,
            ),
            (
                "034",
                0.01,
                0.5,
                1000,
                1e-5,
                13.360823985349713,
                4.315927155944377,
            ),
            (
                "035",
                0.1,
                2.0,
                500,
                1e-6,
                6.216698122825157,
                5.487611585533918,
            ),
            (
                "036",
                0.5,
                5.0,
                1000,
                1e-6,
                19.663942363391037,
                19.185032522038316,
            ),
            (
                "037",
                0.0001,
                0.6,
                200_000,
                1e-7,
                1.6272050014802955,
                0.7385880254169487,
            ),
            (
                "038",
                0.02,
                1.0,
                100,
                1e-6,
                1.7693131437104612,
                0.7851376526070729,
            ),
        ];
        for (id, rate, sigma, count, delta, remove, add) in steps {
            cases.push((
                id,
                vec![(sampled(rate, sigma, Remove), count)],
                delta,
                remove,
            ));
            cases.push((id, vec![(sampled(rate, sigma, Add), count)], delta, add));
        }
        for (id, rate, sigma, count, delta, replace) in [
            ("042", 0.01, 4.0, 10_000, 1e-5, 1.9931200570576615),
            ("043", 0.005, 1.5, 5000, 1e-6, 2.1484743331144793),
            ("044", 0.1, 3.0, 200, 1e-5, 4.074494201198391),
        ] {
            cases.push((
                id,
                vec![(sampled(rate, sigma, Replace), count)],
                delta,
                replace,
            ));
        }
        for (id, rate, scale, count, delta, remove, add) in [
            (
                "045",
                0.01,
                1.0,
                1000,
                1e-6,
                1.2864073997694416,
                1.2189208857303433,
            ),
            (
                "046",
                0.02,
                2.0,
                5000,
                1e-5,
                2.7612038658022002,
                2.730110446969041,
            ),
            (
                "047",
                0.1,
                5.0,
                2000,
                1e-8,
                4.949397629614037,
                4.906996571669585,
            ),
        ] {
            cases.push((
                id,
                vec![(sampled_laplace(rate, scale, Remove), count)],
                delta,
                remove,
            ));
            cases.push((
                id,
                vec![(sampled_laplace(rate, scale, Add), count)],
                delta,
                add,
            ));
        }
        let range = |count: u32, start: f64, step: f64| {
            (0..count).map(move |i| start + step * f64::from(i))
        };
        let gaussians = range(50, 10.0, 0.5).map(|sigma| (gaussian(sigma), 1));
        cases.push(("054", gaussians.collect(), 1e-5, 1.4866425535161043));
        for (change, value) in [(Remove, 1.237134550720071), (Add, 1.077450328993117)] {
            let both = range(50, 0.001, 0.0004).zip(range(50, 0.8, 0.024));
            let parts = both.map(|(rate, sigma)| (sampled(rate, sigma, change), 20));
            cases.push(("055", parts.collect(), 1e-6, value));
        }
        for (change, value) in [(Remove, 1.3481764819699749), (Add, 1.1969567557985117)] {
            let first = range(15, 20.0, 1.0).map(|sigma| (gaussian(sigma), 1));
            let second = range(15, 25.0, 1.0).map(|scale| (laplace(scale), 1));
            let both = range(20, 0.002, 0.002).zip(range(20, 1.0, 0.05));
            let third = both.map(|(rate, sigma)| (sampled(rate, sigma, change), 10));
            cases.push((
                "056",
                first.chain(second).chain(third).collect(),
                1e-6,
                value,
            ));
        }
        cases
    }

    /// Values of the reference file are good to some 1e-10.
    const GOLDEN_ERROR: f64 = 1e-9;

    #[test]
    fn golden_epsilons_are_enclosed_within_a_thousandth() {
        for (id, parts, delta, value) in golden() {
            let found = pld(&parts).epsilon(delta);
            let excludes = found.lower() > value * (1.0 + GOLDEN_ERROR)
                || found.upper() < value * (1.0 - GOLDEN_ERROR);
            assert!(!excludes, "{id}: {found:?} {value}");
            assert!(found.relative_width() <= 1e-3, "{id}: {found:?} {value}");
        }
    }

    #[test]
    fn golden_deltas_are_enclosed() {
        for (id, parts, epsilon, value) in [
            ("008", (gaussian(20.0), 512), 1.0, 0.17513066265795244),
            ("009", (gaussian(10.0), 50), 8.0, 1.7736246243802656e-29),
            ("016", (laplace(4.0), 16), 1.5, 0.04527022327400773),
            (
                "039",
                (sampled(0.01, 4.0, Remove), 10_000),
                1.0,
                4.243484252480414e-06,
            ),
            (
                "039",
                (sampled(0.01, 4.0, Add), 10_000),
                1.0,
                3.529865524931966e-06,
            ),
            (
                "041",
                (sampled(0.01, 1.0, Remove), 1000),
                0.0,
                0.16101761969793632,
            ),
            (
                "041",
                (sampled(0.01, 1.0, Add), 1000),
                0.0,
                0.16101761969793632,
            ),
        ] {
            let found = pld(&[parts]).delta(epsilon);
            let error = value * GOLDEN_ERROR;
            assert!(
                found.lower() <= value + error && value - error <= found.upper(),
                "{id}: {found:?}"
            );
            assert!(found.relative_width() <= 2e-3, "{id}: {found:?}");
        }
    }

    /// Randomized response as two atoms, which a grid meets exactly; golden values 017 to 020.
    #[test]
    fn atoms_on_the_grid_are_exact() {
        for (epsilon, count, delta, value) in [
            (0.1, 500, 1e-6, 12.517879962510287),
            (1.0, 20, 1e-5, 19.99472647421367),
            (0.02, 10_000, 1e-8, 12.74438247648878),
            (0.5, 64, 1e-15, 31.984858076612486),
        ] {
            let exact = Bracket::exact;
            let mass = exact(1.0) / (exact(1.0) + exact(-epsilon).exp());
            let list = [(exact(epsilon), mass), (exact(-epsilon), exact(1.0) - mass)];
            let profile = Atoms::new(&list, Bracket::ZERO).expect("two losses");
            let part = Part {
                profile: Box::new(profile),
                count,
            };
            let found = Pld::new(vec![part], Fineness::USUAL).epsilon(delta);
            assert!(
                found.holds(value) || found.relative_width() < 1e-12,
                "{found:?} {value}"
            );
            assert!(
                found.lower() <= value * (1.0 + 1e-12) && found.upper() >= value * (1.0 - 1e-12)
            );
            assert!(found.relative_width() < 1e-6, "{found:?}");
        }
    }

    /// KOV's pair with a mass of infinite losses; golden values 023 and 024.
    #[test]
    fn infinite_losses_are_counted() {
        for (epsilon, infinite, count, delta, value) in [
            (0.1, 1e-8, 100, 1e-5, 4.3296367140166065),
            (0.5, 1e-7, 30, 1e-4, 11.970781016974067),
        ] {
            let exact = Bracket::exact;
            let rest = exact(1.0) - exact(infinite);
            let mass = rest / (exact(1.0) + exact(-epsilon).exp());
            let list = [(exact(epsilon), mass), (exact(-epsilon), rest - mass)];
            let profile = Atoms::new(&list, exact(infinite)).expect("two losses");
            let part = Part {
                profile: Box::new(profile),
                count,
            };
            let mut pld = Pld::new(vec![part], Fineness::USUAL);
            let found = pld.epsilon(delta);
            assert!(
                found.lower() <= value * (1.0 + 1e-12) && found.upper() >= value * (1.0 - 1e-12)
            );
            assert!(found.relative_width() < 1e-6, "{found:?}");
            // Below the infinite mass there is no epsilon.
            assert_eq!(pld.epsilon(infinite), Bracket::exact(f64::INFINITY));
        }
    }

    /// Against the closed form of composed Gaussians, also split into different parts.
    #[test]
    fn gaussians_of_every_size_hold_the_closed_form() {
        for (parts, mu_square) in [
            (vec![(gaussian(1.0), 1)], 1.0),
            (vec![(gaussian(1.0), 3), (gaussian(2.0), 4)], 4.0),
            (vec![(gaussian(100.0), 100)], 0.01),
            (vec![(gaussian(0.3), 2)], 2.0 / 0.09),
            (vec![(gaussian(1000.0), 1_000_000)], 1.0),
            (vec![(gaussian(8.0), 64), (gaussian(0.5), 1)], 5.0),
        ] {
            let mu = Bracket::exact(mu_square).sqrt();
            let truth = Gaussian { mu };
            for delta in [0.3, 1e-3, 1e-10, 1e-40, 1e-150] {
                let (found, known) = (pld(&parts).epsilon(delta), truth.epsilon(delta));
                assert!(
                    found.lower() <= known.upper() && known.lower() <= found.upper(),
                    "{parts:?} {delta}: {found:?} {known:?}"
                );
                let far = delta < 1e-100;
                assert!(
                    far || found.relative_width() < 2e-3,
                    "{parts:?} {delta}: {found:?}"
                );
            }
            let mut pld = pld(&parts);
            for epsilon in [-3.0, -0.1, 0.0, 1e-3, 0.5, 2.0, 10.0] {
                let (found, known) = (pld.delta(epsilon), truth.delta(epsilon));
                assert!(
                    found.lower() <= known.upper() && known.lower() <= found.upper(),
                    "{parts:?} {epsilon}: {found:?} {known:?}"
                );
            }
        }
    }

    /// `ε = k/b + ln(1 - 2^k δ)`, where only the largest sum of losses is left.
    #[test]
    fn epsilons_next_to_the_largest_loss_are_found() {
        for (scale, count, delta) in [(1.19, 1_u32, 2e-7), (0.7, 2, 2e-12), (3.0, 4, 1e-9)] {
            let top = f64::from(count) / scale;
            let truth = top + (-f64::from(count).exp2() * delta).ln_1p();
            let found = pld(&[(laplace(scale), u64::from(count))]).epsilon(delta);
            let error = 4e-15 * top;
            assert!(
                found.lower() <= truth + error && truth - error <= found.upper(),
                "{scale} {count}: {found:?} {truth}"
            );
        }
    }

    /// A composition is never cheaper than one of its parts. Here a wide tilt once overflowed, and nothing was left of the
    /// upper bound.
    #[test]
    fn a_part_is_a_lower_bound() {
        for (rate, sigma, count, delta) in [
            (
                0.00015111124577841037,
                4.49054793432297,
                17,
                1.4226861822074915e-12,
            ),
            (0.0029, 6.9, 1, 5.4e-6),
            (0.0026, 0.69, 3, 3.75e-4),
        ] {
            let pair = sampled(rate, sigma, Remove);
            let single = PairProfile::new(&pair);
            let mut pld = pld(&[(pair, count)]);
            let found = pld.epsilon(delta).upper();
            for epsilon in [0.0, found / 2.0, found, 2.0 * found, 1.0, 30.0] {
                let tails = single.tails(epsilon);
                assert!(pld.delta(epsilon).upper() >= (tails.p - tails.q).lower());
            }
            let tails = single.tails(found);
            assert!((tails.p - tails.q).lower() <= delta);
        }
    }

    #[test]
    fn more_of_anything_costs_more() {
        let at = |pair: Pair, count: u64, delta: f64| pld(&[(pair, count)]).epsilon(delta);
        let mut last = Bracket::ZERO;
        for count in [1, 2, 10, 100, 1000, 100_000] {
            let found = at(sampled(0.01, 2.0, Remove), count, 1e-6);
            assert!(found.upper() >= last.lower(), "{count}");
            last = found;
        }
        assert!(
            at(laplace(2.0), 5, 1e-6).upper() >= at(laplace(2.1), 5, 1e-6).lower()
                && at(laplace(2.0), 5, 1e-7).upper() >= at(laplace(2.0), 5, 1e-6).lower()
        );
    }

    #[test]
    fn extremes_are_answered() {
        let pairs = [
            gaussian(1e-3),
            gaussian(1e6),
            laplace(1e-3),
            laplace(1e6),
            sampled(1e-9, 0.5, Remove),
            sampled(1.0, 1.0, Add),
            sampled(0.5, 1e3, Replace),
            sampled_laplace(1e-6, 0.01, Add),
            sampled_laplace(0.999, 1.0, Replace),
        ];
        for pair in pairs {
            for count in [1, 1 << 53] {
                let mut pld = pld(&[(pair.clone(), count)]);
                for delta in [1e-300, 0.01] {
                    let found = pld.epsilon(delta);
                    assert!(
                        found.lower() >= 0.0 && !found.upper().is_nan(),
                        "{pair:?} {count}"
                    );
                    assert!(
                        found.lower().is_finite(),
                        "{pair:?} {count} {delta}: {found:?}"
                    );
                }
                for epsilon in [0.0, 1.0, 1e300, f64::INFINITY] {
                    let found = pld.delta(epsilon);
                    assert!(
                        found.lower() >= 0.0 && found.upper() <= 1.0,
                        "{pair:?} {count}"
                    );
                }
            }
        }
    }

    #[test]
    fn nothing_costs_nothing() {
        let mut none = Pld::new(Vec::new(), Fineness::USUAL);
        assert_eq!(none.epsilon(1e-6), Bracket::ZERO);
        assert_eq!(none.delta(1.0), Bracket::ZERO);
        let mut zero = pld(&[(gaussian(1.0), 0)]);
        assert_eq!(zero.epsilon(1e-6), Bracket::ZERO);
    }
}
