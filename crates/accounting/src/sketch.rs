//! # A sketch of a composition
//! The cumulants `K(s) = Σ k ln E_P[e^(sL)]` of a composition, from a few hundred cells per part: enough to choose the
//! tilt, the step and the window of a grid, and to guess an epsilon. Nothing is proven here and nothing rests on it but
//! speed and sharpness.
//!
//! With `δ(ε) = (1/2πi) ∫ e^(K(s) - εs)/(s(s+1)) ds`, the saddle point is the `c > 0` with
//! `K'(c) - 1/c - 1/(c+1) = ε`, and `δ` is about `e^(K(c) - εc)/(c(c+1)√(2πv))` with `v = K'' + 1/c² + 1/(c+1)²`
//! \[AGA+23\].

use crate::grid::{Grid, Lattice};
use crate::profile::{Ends, Profile};

/// One part of a composition, in cells.
#[derive(Clone, Debug)]
pub(crate) struct Outline {
    /// Between cells, with the profile and the mass of larger losses there.
    edges: Vec<Edge>,
    /// The middle and the mass of each cell.
    cells: Vec<(f64, f64)>,
    count: f64,
}

#[derive(Clone, Copy, Debug)]
struct Edge {
    loss: f64,
    delta: f64,
    tail: f64,
}

/// `K`, `K'` and `K''`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cumulants {
    pub(crate) value: f64,
    pub(crate) mean: f64,
    pub(crate) variance: f64,
}

/// All parts.
#[derive(Clone, Debug)]
pub(crate) struct Sketch {
    outlines: Vec<Outline>,
}

/// A saddle point, and what the profile is about there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Saddle {
    pub(crate) tilt: f64,
    pub(crate) epsilon: f64,
    pub(crate) ln_delta: f64,
    pub(crate) cumulants: Cumulants,
}

/// Which part of a profile is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Aim {
    /// Where the profile is this.
    Delta(f64),
    /// At this epsilon, where the profile is asked for.
    Epsilon(f64),
    /// Around this epsilon, where an epsilon is asked for.
    Around(f64),
}

/// The smallest loss that a sketch tells from zero.
const FINEST: f64 = 1e-12;
/// How much wider each edge is than the last.
const RATIO: f64 = 1.12;
/// Tilts are looked for between these.
pub(crate) const TILTS: (f64, f64) = (1e-4, 1e9);
/// Cells heavier than this are halved, at most this often.
const CELL_MASS: f64 = 0.02;
const HALVINGS: u32 = 10;

impl Outline {
    pub(crate) fn new(profile: &(impl Profile + ?Sized), count: u64) -> Self {
        let edge = |loss: f64| {
            let tails = profile.tails(loss);
            Edge {
                loss,
                delta: profile.delta_upper(loss),
                // Nearer to the truth where that is nearly one.
                tail: tails.p.upper(),
            }
        };
        let Ends { bottom, top, .. } = profile.ends();
        // Losses far below the size that most of them have are not told apart.
        let mut finest = FINEST;
        let inner = |loss: f64| edge(-loss).tail - edge(loss).tail;
        while finest < 1e6 && inner(4.0 * finest) < 0.01 {
            finest *= 4.0;
        }
        let finest = finest * 0.1;
        let mut edges = Vec::new();
        // Downward until nothing is left below.
        let mut loss = finest;
        loop {
            let found = edge((-loss).max(bottom.lower()));
            edges.push(found);
            if found.tail >= 1.0 - 1e-17 || found.loss <= bottom.lower() || loss > 1e6 {
                break;
            }
            loss *= RATIO;
        }
        edges.reverse();
        let mut loss = finest;
        loop {
            let found = edge(loss.min(top.upper()));
            edges.push(found);
            if found.delta <= 1e-320 || found.loss >= top.upper() || loss > 1e6 {
                break;
            }
            loss *= RATIO;
        }
        let mut refined = vec![edges[0]];
        for pair in edges.windows(2) {
            refine(&edge, pair[0], pair[1], HALVINGS, &mut refined);
        }
        let edges = refined;
        let mut cells: Vec<(f64, f64)> = edges
            .windows(2)
            .map(|pair| {
                let mass = (pair[0].tail - pair[1].tail).max(0.0);
                (pair[0].loss.midpoint(pair[1].loss), mass)
            })
            .collect();
        let (first, last) = (edges[0], edges[edges.len() - 1]);
        cells.push((first.loss, (1.0 - first.tail).max(0.0)));
        cells.push((last.loss, last.tail.max(0.0)));
        cells.retain(|&(_, mass)| mass > 0.0);
        Self {
            edges,
            cells,
            count: count as f64,
        }
    }

    /// The cells of a grid that was made from an outline.
    pub(crate) fn of_grid(grid: &Grid, count: u64) -> Self {
        let masses = grid.masses.iter().enumerate();
        Self {
            edges: Vec::new(),
            cells: masses
                .filter(|(_, mass)| **mass > 0.0)
                .map(|(index, &mass)| (grid.lattice.loss(index as f64), mass))
                .collect(),
            count: count as f64,
        }
    }

    /// A loss below which there is at most `mass`.
    pub(crate) fn bottom(&self, mass: f64) -> f64 {
        let place = self.edges.partition_point(|edge| 1.0 - edge.tail <= mass);
        self.edges[place.saturating_sub(1)].loss
    }

    /// A loss at which the profile is at most `delta`.
    pub(crate) fn top(&self, delta: f64) -> f64 {
        let place = self.edges.partition_point(|edge| edge.delta > delta);
        self.edges[place.min(self.edges.len() - 1)].loss
    }

    /// A loss that should be a dot of a lattice with this step, if much of the mass is within a few steps of the largest or
    /// the least loss: the mass at that end cannot be brought to a dot with mass from beyond, so it should be on one when it
    /// is merged. Zero if it does not matter.
    pub(crate) fn anchor(&self, profile: &(impl Profile + ?Sized), step: f64) -> f64 {
        let (mut mode, mut most) = (0.0, 0.0);
        for left in &self.edges {
            let end = left.loss + step;
            let place = self.edges.partition_point(|edge| edge.loss <= end);
            let mass = left.tail - self.edges[place.min(self.edges.len() - 1)].tail;
            if mass > most {
                (mode, most) = (left.loss + 0.5 * step, mass);
            }
        }
        if most < 0.05 {
            return 0.0;
        }
        // A little lower, so that what is to be on the dot is known not to be left of it.
        let lowered = |loss: f64| loss - 1e-6 * step - 1e-13;
        // All of it, as one.
        let edge = 1.5 * step;
        let outer = profile.tails(edge).p.upper() + 1.0 - profile.tails(-edge).p.lower();
        if outer <= 0.01 {
            return lowered(0.0);
        }
        let beyond = profile.tails(mode + 2.5 * step).p.upper();
        let below = 1.0 - profile.tails(mode - 2.5 * step).p.lower();
        // How far the merged mass beyond a dot, and half a step before it, is from the dot.
        let top = |dot: f64| {
            let tails = profile.tails(dot - 0.5 * step);
            libm::log(tails.p.lower() / tails.q.upper()) - 0.5 * step
        };
        let bottom = |dot: f64| {
            let end = dot + 0.5 * step;
            let tails = profile.tails(end);
            let rest = 1.0 - tails.q.lower() * libm::exp(-end);
            libm::log((1.0 - tails.p.upper()) / rest) - dot
        };
        let (mut low, mut high) = (mode - 4.0 * step, mode + 4.0 * step);
        for _ in 0..60 {
            let middle = low.midpoint(high);
            let distance = if beyond < 0.02 {
                top(middle)
            } else if below < 0.02 {
                bottom(middle)
            } else {
                return 0.0;
            };
            // Where nothing is beyond, the dot is too high; where nothing is below, too low.
            let too_low = if distance.is_nan() {
                beyond >= 0.02
            } else {
                distance > 0.0
            };
            if too_low {
                low = middle;
            } else {
                high = middle;
            }
        }
        lowered(low)
    }

    /// Dots of a lattice that are close where the mass is, under a tilt: cells of width `w` cost a variance of `w²` times
    /// their mass, which is least at a given number of cells if `w` goes with the inverse cube root of the density. They
    /// cost a third of what cells of one step cost anyway.
    pub(crate) fn dots(&self, lattice: &Lattice, tilt: f64, anchor: f64) -> Vec<usize> {
        let heaviest = |ln_weights: &[f64]| ln_weights.iter().copied().fold(-1e300, f64::max);
        let ln_weights: Vec<f64> = self
            .edges
            .windows(2)
            .map(|pair| {
                let mass = (pair[0].tail - pair[1].tail).max(1e-300);
                libm::log(mass) + tilt * pair[0].loss.midpoint(pair[1].loss)
            })
            .collect();
        let largest = heaviest(&ln_weights);
        let weights: Vec<f64> = ln_weights
            .iter()
            .map(|ln_weight| libm::exp(ln_weight - largest).max(1e-100))
            .collect();
        let total: f64 = weights.iter().sum();
        let widths = || {
            self.edges
                .windows(2)
                .map(|pair| pair[1].loss - pair[0].loss)
        };
        let sum: f64 = weights
            .iter()
            .zip(widths())
            .map(|(weight, width)| libm::cbrt(weight / total) * libm::pow(width, 2.0 / 3.0))
            .sum();
        let scale = (lattice.step * lattice.step / (3.0 * sum)).sqrt();
        let stride_max = (lattice.cells / 16).max(1) as f64;
        let mut dots = vec![0];
        let mut next = 1;
        for (pair, weight) in self.edges.windows(2).zip(&weights) {
            let [left, edge] = [pair[0], pair[1]];
            let width = edge.loss - left.loss;
            let wanted = scale * libm::cbrt(width * total / weight);
            // Supporting lines are of no use where the profile falls to nothing across a cell.
            let fall = |edge: Edge| edge.delta / (edge.tail - edge.delta).max(1e-300);
            let room = 0.5 * fall(left).min(fall(edge));
            let stride = (wanted.min(width).min(room) / lattice.step).clamp(1.0, stride_max);
            // A power of two, so that most neighbours are equal.
            let stride = 1_usize << (stride as usize).ilog2();
            // No wide cell reaches from where there is nothing into where there is much.
            let end = ((edge.loss - lattice.base) / lattice.step).ceil().max(0.0) as usize;
            while next < lattice.cells.min(end) {
                dots.push(next);
                next = (next + stride).min(end);
            }
        }
        while next < lattice.cells {
            dots.push(next);
            next += stride_max as usize;
        }
        // Cells around the anchor, and the last, where an atom may be, are narrow.
        let middle = ((anchor - lattice.base) / lattice.step).round().max(0.0) as usize;
        dots.extend(middle.saturating_sub(2)..=(middle + 2).min(lattice.cells));
        dots.extend([lattice.cells.saturating_sub(1), lattice.cells]);
        dots.retain(|&dot| dot <= lattice.cells);
        dots.sort_unstable();
        dots.dedup();
        dots
    }

    fn cumulants(&self, s: f64) -> Cumulants {
        let largest = self
            .cells
            .iter()
            .map(|&(loss, mass)| s * loss + if mass < 1e-10 { libm::log(mass) } else { 0.0 })
            .fold(f64::NEG_INFINITY, f64::max);
        let (mut sum, mut first, mut second) = (0.0, 0.0, 0.0);
        for &(loss, mass) in &self.cells {
            let weight = mass * libm::exp(s * loss - largest);
            sum += weight;
            first += weight * loss;
            second += weight * loss * loss;
        }
        let mean = first / sum;
        Cumulants {
            value: self.count * (libm::log(sum) + largest),
            mean: self.count * mean,
            variance: self.count * (second / sum - mean * mean).max(0.0),
        }
    }
}

fn refine(
    edge: &impl Fn(f64) -> Edge,
    left: Edge,
    right: Edge,
    halvings: u32,
    edges: &mut Vec<Edge>,
) {
    let heavy = left.tail - right.tail > CELL_MASS;
    if heavy && halvings > 0 {
        let middle = edge(left.loss.midpoint(right.loss));
        refine(edge, left, middle, halvings - 1, edges);
        refine(edge, middle, right, halvings - 1, edges);
    } else {
        edges.push(right);
    }
}

impl Sketch {
    pub(crate) fn new(outlines: Vec<Outline>) -> Self {
        Self { outlines }
    }

    pub(crate) fn outlines(&self) -> &[Outline] {
        &self.outlines
    }

    pub(crate) fn cumulants(&self, s: f64) -> Cumulants {
        let start = Cumulants {
            value: 0.0,
            mean: 0.0,
            variance: 0.0,
        };
        self.outlines.iter().fold(start, |sum, outline| {
            let Cumulants {
                value,
                mean,
                variance,
            } = outline.cumulants(s);
            Cumulants {
                value: sum.value + value,
                mean: sum.mean + mean,
                variance: sum.variance + variance,
            }
        })
    }

    /// The least and the largest sum.
    pub(crate) fn ends(&self) -> (f64, f64) {
        self.outlines
            .iter()
            .fold((0.0, 0.0), |(bottom, top), part| {
                let losses = part.cells.iter().map(|&(loss, _)| loss);
                (
                    bottom + part.count * losses.clone().fold(f64::INFINITY, f64::min),
                    top + part.count * losses.fold(f64::NEG_INFINITY, f64::max),
                )
            })
    }

    /// The saddle point whose tilt is `c`.
    fn saddle(&self, c: f64) -> Saddle {
        let cumulants = self.cumulants(c);
        let epsilon = cumulants.mean - 1.0 / c - 1.0 / (c + 1.0);
        let width = cumulants.variance + 1.0 / (c * c) + 1.0 / ((c + 1.0) * (c + 1.0));
        let ln_delta = cumulants.value
            - c * epsilon
            - libm::log(c * (c + 1.0))
            - 0.5 * libm::log(std::f64::consts::TAU * width);
        Saddle {
            tilt: c,
            epsilon,
            ln_delta,
            cumulants,
        }
    }

    /// The saddle point of an aim, between two tilts.
    pub(crate) fn at(&self, aim: Aim, tilts: (f64, f64)) -> Saddle {
        let (mut low, mut high) = (libm::log(tilts.0), libm::log(tilts.1));
        let target = match aim {
            Aim::Delta(delta) => libm::log(delta),
            Aim::Epsilon(epsilon) | Aim::Around(epsilon) => epsilon,
        };
        let mut found = self.saddle(tilts.0);
        // To about a thousandth, which is closer than a sketch is.
        while high - low > 1e-3 {
            let middle = low.midpoint(high);
            found = self.saddle(libm::exp(middle));
            let too_small = match aim {
                Aim::Delta(_) => found.ln_delta > target,
                Aim::Epsilon(_) | Aim::Around(_) => found.epsilon < target,
            };
            if too_small {
                low = middle;
            } else {
                high = middle;
            }
        }
        if let Aim::Epsilon(epsilon) | Aim::Around(epsilon) = aim {
            found.ln_delta += found.tilt * (found.epsilon - epsilon);
            found.epsilon = epsilon;
        }
        found
    }

    /// Two losses that the composition tilted by `c` leaves with a share of at most `e^ln_share` each, and the moments that
    /// show it, as differences to `c`.
    pub(crate) fn window(&self, tilt: f64, cumulants: &Cumulants, ln_share: f64) -> Window {
        let room = -ln_share;
        // A normal law's best moment is √(2 room/variance); others are found around it.
        let usual = (2.0 * room / cumulants.variance.max(1e-300))
            .sqrt()
            .min(TILTS.1);
        let top = |s: f64| (self.cumulants(tilt + s).value - cumulants.value + room) / s;
        let bottom = |s: f64| (self.cumulants(tilt - s).value - cumulants.value + room) / s;
        let (top_moment, top) = least(usual, top);
        let (bottom_moment, bottom) = least(usual, bottom);
        let (least, most) = self.ends();
        // Where moments tell nothing, all sums are in.
        let or = |value: f64, other: f64| if value.is_nan() { other } else { value };
        Window {
            bottom: or(-bottom, least),
            bottom_moment,
            top: or(top, most),
            top_moment,
        }
    }
}

/// About where a function with one valley is least, from a start by factors, and its value there.
fn least(start: f64, function: impl Fn(f64) -> f64) -> (f64, f64) {
    let mut best = (start, function(start));
    for factor in [0.6, 1.0 / 0.6] {
        let mut moved = false;
        // Sixteen steps are a factor of 3000.
        for _ in 0..16 {
            let place = best.0 * factor;
            let value = function(place);
            if value >= best.1 || value.is_nan() {
                break;
            }
            best = (place, value);
            moved = true;
        }
        if moved {
            break;
        }
    }
    best
}

/// Where a tilted composition is, all but a share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) bottom: f64,
    pub(crate) bottom_moment: f64,
    pub(crate) top: f64,
    pub(crate) top_moment: f64,
}

impl Window {
    pub(crate) fn width(&self) -> f64 {
        self.top - self.bottom
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::{Change, Pair};
    use crate::profile::PairProfile;

    fn sketch(pair: &Pair, count: u64) -> Sketch {
        Sketch::new(vec![Outline::new(&PairProfile::new(pair), count)])
    }

    #[test]
    fn cumulants_are_near_the_closed_form() {
        for sigma in [0.5, 1.0, 20.0] {
            let sketch = sketch(&Pair::Gaussian { sigma }, 10);
            for s in [0.0, 0.5, 3.0] {
                let found = sketch.cumulants(s);
                let variance = 10.0 / (sigma * sigma);
                assert!(
                    (found.value / (0.5 * variance * s * (s + 1.0)) - 1.0).abs() < 0.05 || s == 0.0
                );
                let mean = variance * (s + 0.5);
                assert!((found.mean - mean).abs() < 0.1 * mean + 0.02 * variance.sqrt());
                assert!((found.variance / variance - 1.0).abs() < 0.2);
            }
        }
    }

    #[test]
    fn guesses_are_near_golden_values() {
        let pair = Pair::SampledGaussian {
            rate: 0.01,
            sigma: 4.0,
            change: Change::Remove,
        };
        let saddle = sketch(&pair, 10_000).at(Aim::Delta(1e-5), TILTS);
        assert!(
            (saddle.epsilon / 0.9468668 - 1.0).abs() < 0.05,
            "{saddle:?}"
        );
        let saddle = sketch(&Pair::Laplace { scale: 20.0 }, 512).at(Aim::Epsilon(4.98645), TILTS);
        assert!((saddle.ln_delta - 1e-5_f64.ln()).abs() < 0.3, "{saddle:?}");
    }

    #[test]
    fn dots_begin_and_end_with_the_lattice() {
        let outline = Outline::new(&PairProfile::new(&Pair::Gaussian { sigma: 3.0 }), 1);
        for cells in [1, 2, 3, 17, 1000] {
            let lattice = Lattice {
                base: -1.0,
                step: 2.0 / cells as f64,
                cells,
            };
            let dots = outline.dots(&lattice, 2.0, 0.0);
            assert_eq!((dots[0], dots[dots.len() - 1]), (0, cells));
            assert!(dots.windows(2).all(|pair| pair[0] < pair[1]));
        }
    }
}
