//! # How fast a characteristic function falls
//! Upper bounds on `|φ(t)|`, `φ(t) = M(c+it)/M(c)`, for all `t` of an interval: what bounds the part of a contour that is not
//! summed. Values at single places say nothing about what lies between them, so these are theorems about intervals.
//!
//! **By a window.** Let `L, L'` be independent with the tilted law and `Δ = L - L'`. For every set `B` of losses in an interval
//! of length `2β`, and `2βt <= √12`, `|φ(t)|² = E[cos tΔ] <= 1 - E[1 - cos tΔ; L, L' ∈ B] <= 1 - t² (1 - (2βt)²/12) V_B` with
//! `V_B = ½E[Δ²; L, L' ∈ B]`, from `1 - cos y >= y²/2 - y⁴/24`. Windows of several lengths serve several ranges of `t`.
//!
//! *With the rest by variation.* Losses outside of `B` need not be given up: where they have a density, their part of `φ` is at most
//! `V_C/t` with the total variation `V_C` of `G/L'` outside (below), jumps at the edges of `B` included. With the mass `p_C`
//! outside from below, `|φ(t)| <= √((1-p_C)² - t²(1 - (2βt)²/12) V_B) + V_C/t`. This is what counts for losses with a heavy tail.
//!
//! *The windows' `V_B` from below.* The line is cut into cells of width `h` around the nodes `x_i`. On a cell the integrand `G` is
//! at least `G(x_i) e^(-S_i h/2)`, where `S_i` bounds `|(ln G)'|` there. Within a cell the mean of the loss differs from
//! `L(x_i)` by at most `e_i = sup|L''| h²/24`. By Jensen's inequality in each pair of cells and Minkowski's over pairs,
//! `√(2V_B) >= √(Σ p_i p_j (L(x_i) - L(x_j))²) - 2 max(e_i) Σ p_i` with the cells' masses `p_i` from below.
//!
//! *The ends.* Beyond its last centre `ρ` (`tilt.rs`) `G(x) <= G(ρ)e^(-(x-ρ)²/(2σ²))`, and before it `G(x) >= G(ρ)e^(-(x-ρ)²/(2σ²))`,
//! since `σ²(ln G)' <= ρ - x` on both sides. So beyond `ρ + 7σ` there is less than `2Q(7) < 3e-12` of the whole, and likewise at the other
//! end. What is left out is neither in a window nor counted as mass outside.
//!
//! **By variation.** Where the loss has a density with respect to `x`, integration by parts gives `|∫ G e^(itL) dx| <= V/t`,
//! with `V` the total variation of `G/L'`. For a unit that leaves or joins, `σ²(ln(G/L'))'` is `-x - 1 + (c+2)π_A` or
//! `-x - 1 + (1-c)π_A`: the difference of a line and a logistic curve, with at most three zeros, so `G/L'` has at most two
//! maxima and `V <= 4 sup G/L'`. The supremum exceeds the largest node by at most `e^(h²D/8)`, where `D` bounds the
//! second derivative of the logarithm. For a unit that changes,
//! `σ²(ln(G/L'))' = -x + (c+1)π_A + cπ_B - (π_A(1-π_A) - π_B(1-π_B))/(π_A+π_B)`, whose derivative is at most
//! `1 + ((2c+1)/4 + 3)/σ²`; so `V <= ∫ |(G/L')'|` is bounded cell by cell.
//!
//! **Laplace.** `M(s) = e^(-a/2)[cosh((s+½)a) + sinh((s+½)a)/(2s+1)]`, so that
//! `|M(s)| <= e^(-a/2)[√(cosh²α - sin²(at)) + coshα/(2t)]` with `α = (c+½)a`.

use crate::pair::Change;
use crate::tilt::SampledGaussian;

/// Each window is this much longer than the one before.
const LONGER: f64 = 1.25;
/// Room for the rounding of the estimates here: all of them are far from their bounds' last digits.
const ROOM: f64 = 1e-9;
/// Standard deviations beyond the last centre at which the cells of a sampled Gaussian end.
const REACH: f64 = 7.0;

/// Bounds on `|φ|` for one mechanism at one tilt.
#[derive(Clone, Debug)]
pub(crate) enum Decay {
    /// `e^(-t²/(2σ²))` exactly.
    Gaussian { sigma: f64 },
    /// Atoms at `±a` and a density between them.
    Laplace(LaplaceDecay),
    /// By windows and variation.
    Windows(Windows),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct LaplaceDecay {
    /// `a`.
    pub(crate) epsilon: f64,
    /// `e^(-a/2) coshα/M(c)`: the share of the atoms.
    pub(crate) atoms: f64,
    /// `1/cosh²α`.
    pub(crate) dip: f64,
}

#[derive(Clone, Debug)]
pub(crate) struct Windows {
    windows: Vec<Window>,
    /// The share of losses that are atoms: these do not fall.
    atoms: f64,
    variation: f64,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    /// `β`.
    reach: f64,
    /// `V_B` from below.
    spread: f64,
    /// `p_C` from below.
    outside: f64,
    /// `V_C`; infinite where nothing is known.
    variation: f64,
}

/// A piece of the tilted law, from below.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    /// The loss at the node.
    pub(crate) loss: f64,
    /// The mass, from below.
    pub(crate) mass: f64,
    /// How far losses of the cell are from `loss` at most.
    pub(crate) radius: f64,
    /// How far the mean loss of the cell is from `loss` at most.
    pub(crate) shift: f64,
    /// The density `G/L'` at the node, over `∫G`.
    pub(crate) height: f64,
    /// The variation of that density from this node to the next.
    pub(crate) variation: f64,
}

impl Decay {
    /// A bound of `|φ(t)|` that holds for all `low <= t <= high`; `high` may be infinite.
    pub(crate) fn modulus(&self, low: f64, high: f64) -> f64 {
        match self {
            Self::Gaussian { sigma } => {
                libm::exp(-0.5 * (low / sigma) * (low / sigma)) * (1.0 + ROOM)
            }
            Self::Laplace(laplace) => laplace.modulus(low, high),
            Self::Windows(windows) => windows.modulus(low, high),
        }
    }
}

impl LaplaceDecay {
    /// `|φ|` at the place `angle = at` of its period, without the part that falls.
    fn atoms_at(&self, angle: f64) -> f64 {
        let sine = libm::sin(angle);
        self.atoms * (1.0 - sine * sine * self.dip).max(0.0).sqrt()
    }

    fn modulus(&self, low: f64, high: f64) -> f64 {
        let period = std::f64::consts::PI / self.epsilon;
        let crosses = (high / period + ROOM).floor() > (low / period - ROOM).floor();
        let atoms = if !high.is_finite() || crosses {
            self.atoms
        } else {
            self.atoms_at(low * self.epsilon)
                .max(self.atoms_at(high * self.epsilon))
        };
        ((atoms + self.atoms / (2.0 * low)) * (1.0 + ROOM)).min(1.0)
    }

    /// A bound of `Σ |φ(t_n)|^k / t_n²` over all `t_n = nh >= low`: over each period of the atoms, which is symmetric and falls in
    /// its first half, nodes number at most what the integral says and one for each half.
    pub(crate) fn tail(&self, low: f64, step: f64, count: f64) -> f64 {
        const CELLS: u32 = 256;
        let falling = self.atoms / (2.0 * low);
        let power = |angle: f64| {
            let base = (self.atoms_at(angle) + falling).min(1.0) * (1.0 + ROOM);
            libm::exp(count * libm::log(base))
        };
        let width = std::f64::consts::FRAC_PI_2 / f64::from(CELLS);
        let half: f64 = (0..CELLS).map(|i| power(f64::from(i) * width)).sum::<f64>() * width;
        let per_period = 2.0 * half / (self.epsilon * step) + 2.0 * power(0.0);
        let period = std::f64::consts::PI / self.epsilon;
        // Periods start at low, low + period, …: the first at 1/low², the others by an integral.
        per_period * (1.0 / (low * low) + 1.0 / (low * period)) * (1.0 + ROOM)
    }
}

impl Windows {
    /// From the cells of the tilted law, one at least, in rising or falling order of their losses. Between nodes the density exceeds the
    /// larger of its neighbours by a factor of `overshoot` at most.
    pub(crate) fn new(cells: &[Cell], atoms: f64, variation: f64, overshoot: f64) -> Self {
        let total: f64 = cells.iter().map(|cell| cell.mass).sum();
        let mut below = 0.0;
        let middle = cells.iter().position(|cell| {
            below += cell.mass;
            below >= total / 2.0
        });
        let middle = middle.unwrap_or(0);
        let rest = Outside::new(cells, overshoot);
        let mut windows = Vec::new();
        let mut add = |growing: &Growing, first: usize, last: usize| {
            let variation = if atoms == 0.0 {
                rest.variation(first, last)
            } else {
                f64::INFINITY
            };
            windows.extend(growing.window(total, variation));
        };
        let distance = |from: usize, to: usize| (cells[to].loss - cells[from].loss).abs();
        // From the first cell on, for laws with one heavy tail; and around the middle.
        let mut length = 0.0;
        let mut growing = Growing::new(&cells[0]);
        for (last, cell) in cells.iter().enumerate().skip(1) {
            growing.add(cell);
            if distance(0, last) >= length && cell.mass > 1e-25 {
                add(&growing, 0, last);
                length = distance(0, last) * LONGER;
            }
        }
        let mut length = 0.0;
        let (mut first, mut last) = (middle, middle);
        let mut growing = Growing::new(&cells[middle]);
        while first > 0 || last + 1 < cells.len() {
            let down = if first > 0 {
                distance(middle, first - 1)
            } else {
                f64::INFINITY
            };
            let up = if last + 1 < cells.len() {
                distance(middle, last + 1)
            } else {
                f64::INFINITY
            };
            if down <= up {
                first -= 1;
                growing.add(&cells[first]);
            } else {
                last += 1;
                growing.add(&cells[last]);
            }
            if distance(first, last) >= length {
                add(&growing, first, last);
                length = distance(first, last) * LONGER;
            }
        }
        windows.sort_by(|one, other| one.reach.total_cmp(&other.reach));
        Self {
            windows,
            atoms,
            variation,
        }
    }

    fn modulus(&self, low: f64, high: f64) -> f64 {
        let mut least = ((self.atoms + self.variation / low) * (1.0 + ROOM)).min(1.0);
        // (2βt)² < 12; windows much shorter than that have little to say.
        let end = self
            .windows
            .partition_point(|window| window.reach * high < 1.73);
        let start = self
            .windows
            .partition_point(|window| window.reach * high < 0.2);
        let start = start.min(end.saturating_sub(1));
        for window in &self.windows[start..end] {
            let y = 2.0 * window.reach * high;
            let drop = low * low * (1.0 - y * y / 12.0) * window.spread;
            let alone = root(1.0 - drop);
            let inside = 1.0 - window.outside.max(0.0);
            let with_rest = root(inside * inside - drop) + window.variation / low;
            least = least.min(alone).min(with_rest * (1.0 + ROOM));
        }
        least
    }
}

/// A window that takes in one cell after another. Its sums are around the loss of the first cell that it had.
struct Growing {
    centre: f64,
    /// `Σp`, `Σpx` and `Σpx²`.
    sums: [f64; 3],
    /// The largest shift of a cell.
    shift: f64,
    low: f64,
    high: f64,
}

impl Growing {
    fn new(cell: &Cell) -> Self {
        let mut growing = Self {
            centre: cell.loss,
            sums: [0.0; 3],
            shift: 0.0,
            low: f64::INFINITY,
            high: f64::NEG_INFINITY,
        };
        growing.add(cell);
        growing
    }

    fn add(&mut self, cell: &Cell) {
        let loss = cell.loss - self.centre;
        self.sums[0] += cell.mass;
        self.sums[1] += cell.mass * loss;
        self.sums[2] += cell.mass * loss * loss;
        self.shift = self.shift.max(cell.shift);
        self.low = self.low.min(loss - cell.radius);
        self.high = self.high.max(loss + cell.radius);
    }

    /// The window of all cells so far, if its spread can be bounded.
    fn window(&self, total: f64, variation: f64) -> Option<Window> {
        let [m0, m1, m2] = self.sums;
        let square = 2.0 * (m0 * m2 - m1 * m1) - ROOM * m0 * m2;
        let root = square.max(0.0).sqrt() - 2.0 * self.shift * m0;
        (root > 0.0).then(|| Window {
            reach: (self.high - self.low) / 2.0 * (1.0 + ROOM),
            spread: 0.5 * root * root * (1.0 - ROOM),
            outside: (total - m0) * (1.0 - ROOM) - ROOM,
            variation,
        })
    }
}

/// `e^-y` from below.
fn fall(y: f64) -> f64 {
    if y < 0.2 {
        1.0 - y
    } else {
        libm::exp(-y) * (1.0 - ROOM)
    }
}

/// The square root of a number that is known up to `1e-9`, from above.
fn root(square: f64) -> f64 {
    (square + ROOM * ROOM).max(0.0).sqrt() + 1e-15
}

/// The variation of the density outside of a window, for every window.
struct Outside {
    /// `(variation, supremum)` of all cells up to this one, and from this one on.
    upto: Vec<(f64, f64)>,
    from: Vec<(f64, f64)>,
    overshoot: f64,
}

impl Outside {
    fn new(cells: &[Cell], overshoot: f64) -> Self {
        let grow = |(variation, sup): &mut (f64, f64), cell: &Cell| {
            (*variation, *sup) = (*variation + cell.variation, sup.max(cell.height));
            Some((*variation, *sup))
        };
        let upto = cells.iter().scan((0.0, 0.0), grow).collect();
        let mut from: Vec<_> = cells.iter().rev().scan((0.0, 0.0), grow).collect();
        from.reverse();
        Self {
            upto,
            from,
            overshoot,
        }
    }

    fn variation(&self, first: usize, last: usize) -> f64 {
        let left = if first == 0 {
            0.0
        } else {
            self.side(self.upto[first])
        };
        left + self.side(self.from[last])
    }

    fn whole(&self) -> f64 {
        self.side(self.from[0])
    }

    /// To the end of one side and with the jump where it meets the window; beyond the last cell the density falls to zero.
    fn side(&self, (variation, sup): (f64, f64)) -> f64 {
        // Up to three extrema between nodes, each passed up and down; one more for the edge, half a cell further.
        (variation + sup * (6.0 * (self.overshoot - 1.0) + 2.0 * self.overshoot)) * (1.0 + ROOM)
    }
}

/// The integrand of a sampled Gaussian at one place, from both sides: `B` and `π_B` only where a unit changes.
struct Sides {
    x: f64,
    ln_a: f64,
    ln_b: f64,
    /// `π_A` and `π_B`.
    a: f64,
    b: f64,
    loss: f64,
    ln_weight: f64,
}

impl SampledGaussian {
    fn sides(&self, x: f64, c: f64) -> Sides {
        let normal = -0.5 * (x / self.sigma) * (x / self.sigma);
        let (ln_a, a) = self.ln_a_and_share(x);
        let (ln_b, b) = match self.change {
            Change::Replace => self.ln_a_and_share(-x),
            Change::Remove | Change::Add => (0.0, 0.0),
        };
        let (loss, ln_weight) = match self.change {
            Change::Remove => (ln_a, normal + (c + 1.0) * ln_a),
            Change::Add => (-ln_a, normal - c * ln_a),
            Change::Replace => (ln_a - ln_b, normal + (c + 1.0) * ln_a - c * ln_b),
        };
        Sides {
            x,
            ln_a,
            ln_b,
            a,
            b,
            loss,
            ln_weight,
        }
    }

    /// The cells and the variation of the module text at tilt `c`, on the rough grid.
    pub(crate) fn decay(&self, c: f64) -> Option<Decay> {
        // Fine enough for windows as short as the bulk of the losses; the less noise, the more they crowd together.
        let step = self.rough_step() / if self.sigma < 2.0 { 4.0 } else { 2.0 };
        let rough = self.quadrature_error(step, c, 0.0);
        if rough.is_nan() || rough >= 0.5 {
            return None;
        }
        let square = self.sigma * self.sigma;
        let (rho, lambda) = self.ends(c);
        // One further than the centres of G: G/L' has its own, one to the left and one to the right.
        let first = ((-lambda - 1.0 - REACH * self.sigma) / step).floor();
        let last = ((rho + 1.0 + REACH * self.sigma) / step).ceil();
        let count = last - first;
        if count.is_nan() || count > 40_000.0 {
            return None;
        }
        let places: Vec<Sides> = (first as i64..=last as i64)
            .map(|i| self.sides(step * i as f64, c))
            .collect();
        let top = places
            .iter()
            .map(|place| place.ln_weight)
            .fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = places
            .iter()
            .map(|place| libm::exp(place.ln_weight - top))
            .collect();
        let total: f64 = weights.iter().sum();
        // The grid misses the true integral by the quadrature error and the ends, which are below 1e-11 of it (module text).
        let (norm_high, norm_low) = (
            total / (1.0 - rough) * (1.0 + ROOM),
            total / (1.0 + rough) * (1.0 - ROOM),
        );
        let power = match self.change {
            Change::Remove => c + 1.0,
            Change::Add => c,
            Change::Replace => 2.0 * c + 1.0,
        };
        // The density falls by at most this factor from its top to the nearest node, half a step away.
        let bend_most = (1.0 + (power + 2.0) / (4.0 * square)) / square;
        let overshoot = libm::exp(step * step * bend_most / 8.0);
        let growth = libm::exp(step / 2.0 / square) * (1.0 + ROOM);
        let mut cells: Vec<Cell> = Vec::with_capacity(places.len());
        for (place, weight) in places.iter().zip(&weights) {
            let Sides { x, a, b, .. } = *place;
            // π grows by at most e^(dw): A grows too.
            let (a_next, b_next) = ((a * growth).min(1.0), (b * growth).min(1.0));
            let slope = match self.change {
                Change::Remove => -x + (c + 1.0) * a,
                Change::Add => -x - c * a,
                Change::Replace => -x + (c + 1.0) * a + c * b,
            };
            // Both shares rise towards their side, so these bound π(1-π) on the whole cell.
            let bend = (a_next + b_next).min(0.5);
            let steepest = (slope.abs() + step / 2.0 * (1.0 + power * bend / square)) / square;
            // G/L' = σ² G/π, over ∫G = norm·step; by logarithms where π is below the floats.
            let height = if a + b > 1e-290 {
                weight / (a + b)
            } else {
                let ln_share = |x: f64, ln_a: f64| libm::log(self.rate) + (x - 0.5) / square - ln_a;
                let ln_slope = match self.change {
                    Change::Replace => ln_share(x, place.ln_a).max(ln_share(-x, place.ln_b)),
                    _ => ln_share(x, place.ln_a),
                };
                libm::exp(place.ln_weight - top - ln_slope)
            };
            let height = height * square / (norm_low * step);
            let variation = match self.change {
                Change::Replace => {
                    // (ln(G/L'))' at the node, and how much it may change up to the next one.
                    let bent = (a * (1.0 - a) - b * (1.0 - b)) / (a + b).max(f64::MIN_POSITIVE);
                    let change = step * (1.0 + (power / 4.0 + 3.0) / square);
                    let steep = ((slope - bent).abs() + change) / square;
                    height * step * steep * libm::exp(steep * step)
                }
                _ => 0.0,
            };
            if let (Some(before), Change::Remove | Change::Add) = (cells.last_mut(), self.change) {
                before.variation = (height - before.height).abs();
            }
            cells.push(Cell {
                loss: place.loss,
                mass: weight * fall(steepest * step / 2.0) / norm_high,
                radius: step / 2.0 * (a_next + b_next) / square * (1.0 + ROOM),
                shift: step * step / 24.0 * bend / (square * square) * (1.0 + ROOM),
                height,
                variation,
            });
        }
        let whole = Outside::new(&cells, overshoot).whole();
        Some(Decay::Windows(Windows::new(&cells, 0.0, whole, overshoot)))
    }
}
