//! # Sums of log-normal variables, in convex order
//! `S_n` is the sum of `n` independent `W = e^(Z/σ - 1/(2σ²))`, `Z` standard normal. We need `E f(S_n)` from above and from below
//! for functions that are convex and not negative, and monotone.
//!
//! **Order.** Replacing what lies in an interval by its mean lowers `E f`, and replacing a point by two points around it with the
//! same mean raises it (Jensen). Since `y ↦ E f(y + Y)` is convex with `f`, the same may be done to each of two independent
//! summands, and again to their sum. So, with `n` written in binary and the laws doubled,
//! - *upper*: what lies between two dots is moved onto them, keeping mass and mean. Beyond the last dot, mass stays on it, and the
//!   mean that is left is carried along as `escaped`: the limit of a vanishing mass at ever larger places, where a growing `f`
//!   here has slope 1 and a falling one vanishes;
//! - *lower*: all that lies in a cell is put at its mean.
//!
//! Both err by the square of the distance of the dots, which are evenly spaced in `ln y` where the law has its mass.
//!
//! **One term.** In a cell, `W` has mass `Φ(z_b) - Φ(z_a)` and mean times mass `Φ(z_b - 1/σ) - Φ(z_a - 1/σ)`, with
//! `z = σ ln w + 1/(2σ)`; beyond a place `y` it has `E(W-y)_+ = δ(ln y)`, the Gaussian profile of `μ = 1/σ`.
//!
//! **How the error is bounded.** All numbers are positive, so shares of errors add up. Let a law be exact by definition with
//! the places and masses that are stored. Each convolution then errs in masses by at most a share `e` of roundings, and in
//! places too; upper laws have masses too large from the start and lower ones too small, within brackets. As `f` is monotone and
//! not negative, the truth is enclosed if masses are enlarged by [`Law::mass_error`] and places moved by a share
//! [`Law::place_error`] (both ways: a growing `f` needs one, a falling one the other). Masses are scaled by `2^400`, and what
//! underflows is counted as `lost`: mass somewhere below `reach`. A cell of a convolution gathers mass and mass times distance
//! from its left end, both sums of positive numbers; the share that stays on the left dot is a difference, and is enlarged by
//! the error of both.

use whit_core::round;

use crate::Bracket;
use crate::gaussian::Gaussian;
use crate::normal::{HALF_ULP, cdf, survival, survival_quantile};

/// `2^400`.
const SCALE: f64 = f64::from_bits(1423 << 52);
/// Masses below this (scaled; 4e-301 as they are) are dropped from lower laws: products with them would not be sharp.
const FAINT: f64 = 1e-180;
/// Places stay between this and its inverse.
const PLACE_MAX: f64 = 1e150;
/// How many dots: with one sum nothing is squared, and with two only once.
const DOTS: [usize; 3] = [6000, 3400, 1250];

/// The share of the range over which dots are even.
const BEND: f64 = 0.25;

/// Both bounds of a law.
#[derive(Clone, Debug)]
pub(crate) struct Laws {
    pub(crate) upper: Law,
    pub(crate) lower: Law,
}

/// A law on finitely many places, in order.
#[derive(Clone, Debug)]
pub(crate) struct Law {
    places: Vec<f64>,
    /// Scaled.
    masses: Vec<f64>,
    /// Mean beyond all places, scaled.
    escaped: f64,
    /// Mass that underflowed, scaled, and what it is below.
    lost: f64,
    reach: f64,
    /// Shares by which masses and places may err.
    mass_error: f64,
    place_error: f64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Upper,
    Lower,
}

impl Laws {
    /// Of `count` terms, with dots up to where about `tail` of mass and of mean per term is left.
    pub(crate) fn new(sigma: f64, count: u64, tail: f64) -> Self {
        let none = Self {
            upper: Law::zero(),
            lower: Law::zero(),
        };
        if count == 0 {
            return none;
        }
        let cells = DOTS[usize::try_from(count - 1).map_or(2, |index| index.min(2))];
        let one = Self::one(sigma, cells, tail);
        let mut sum = one.clone();
        let mut terms = 1_u64;
        // From the second highest bit down: at most 63 times.
        for bit in (0..count.ilog2()).rev() {
            terms *= 2;
            sum = sum.plus(&sum, cells, tail, terms);
            if count >> bit & 1 == 1 {
                terms += 1;
                sum = sum.plus(&one, cells, tail, terms);
            }
        }
        sum
    }

    fn one(sigma: f64, cells: usize, tail: f64) -> Self {
        let far = survival_quantile(Bracket::exact(tail)).estimate();
        let half = 0.5 / sigma;
        let at = |score: f64| libm::exp((score - half) / sigma);
        let dots = dots(at(-far), 1.0, at(far + 2.0 * half), cells);
        let scores = Scores::new(sigma, &dots);
        Self {
            upper: scores.spread(&dots),
            lower: scores.drawn_together(&dots),
        }
    }

    fn plus(&self, other: &Self, cells: usize, tail: f64, terms: u64) -> Self {
        let (low, high) = range(&self.upper, &other.upper, tail, terms as f64);
        let dots = dots(low, terms as f64, high, cells);
        Self {
            upper: convolve(&self.upper, &other.upper, &dots, Side::Upper),
            lower: convolve(&self.lower, &other.lower, &dots, Side::Lower),
        }
    }
}

impl Law {
    /// All mass at zero.
    fn zero() -> Self {
        Self {
            places: vec![0.0],
            masses: vec![SCALE],
            escaped: 0.0,
            lost: 0.0,
            reach: 0.0,
            mass_error: 0.0,
            place_error: 0.0,
        }
    }

    /// Places, as far as they are known, and masses.
    pub(crate) fn atoms(&self) -> impl Iterator<Item = (Bracket, f64)> + '_ {
        self.places.iter().zip(&self.masses).map(|(&place, &mass)| {
            let error = place * self.place_error;
            (Bracket::around(place, error), mass)
        })
    }

    /// A scaled number as it is.
    pub(crate) fn unscaled(&self, value: Bracket) -> Bracket {
        value * Bracket::exact(1.0 / SCALE)
    }

    /// A sum over all atoms from above, with its roundings and what masses may err.
    pub(crate) fn enlarged(&self, sum: f64) -> f64 {
        let error = (self.places.len() as f64 + 8.0) * 2.0 * HALF_ULP + self.mass_error;
        (sum * (1.0 + 1.01 * error)).next_up().next_up()
    }

    /// The same from below.
    pub(crate) fn reduced(&self, sum: f64) -> f64 {
        let error = (self.places.len() as f64 + 8.0) * 2.0 * HALF_ULP + self.mass_error;
        (sum * (1.0 - 1.01 * error))
            .next_down()
            .next_down()
            .max(0.0)
    }

    /// Mass that is somewhere.
    pub(crate) fn lost(&self) -> f64 {
        (self.lost * (1.0 + 1.01 * self.mass_error + 1e-9)).next_up()
    }

    /// What a function with slope at most 1 and at most 1 at zero gets from what is beyond all places.
    pub(crate) fn beyond(&self) -> f64 {
        let error =
            1.01 * (self.mass_error + self.place_error) + self.mass_error * self.place_error;
        ((self.escaped + self.lost * (self.reach + 1.0)) * (1.0 + error + 1e-9)).next_up()
    }

    fn total(&self) -> f64 {
        self.masses.iter().sum::<f64>() * (1.0 + 1e-9)
    }
}

/// From zero, then from `low` to `high`: evenly in the logarithm near `centre`, and farther apart farther out.
fn dots(low: f64, centre: f64, high: f64, cells: usize) -> Vec<f64> {
    let low = low.clamp(1.0 / PLACE_MAX, PLACE_MAX);
    let high = high.clamp(low * (1.0 + 1e-9), PLACE_MAX * 2.0);
    let span = libm::log(high / low);
    let left = libm::log(centre / low).clamp(span * 0.3, span * 0.7);
    let bend = span * BEND;
    let (first, last) = (-libm::asinh(left / bend), libm::asinh((span - left) / bend));
    let step = (last - first) / cells as f64;
    let mut dots = vec![0.0, low];
    dots.extend(
        (1..=cells)
            .map(|index| low * libm::exp(left + bend * libm::sinh(first + step * index as f64))),
    );
    // Strictly growing, also where the range is narrow.
    dots.dedup_by(|next, last| *next <= *last);
    dots
}

/// Tails of `Z` and of `Z - 1/σ` at each dot.
struct Scores {
    base: Gaussian,
    /// Mass and mean between one dot and the next.
    cells: Vec<(Bracket, Bracket)>,
    /// Beyond the last dot.
    beyond: (Bracket, Bracket),
}

impl Scores {
    fn new(sigma: f64, dots: &[f64]) -> Self {
        let mu = Bracket::exact(1.0) / Bracket::exact(sigma);
        let ends: Vec<[Tails; 2]> = dots
            .iter()
            .map(|&dot| {
                let score =
                    Bracket::exact(sigma) * Bracket::exact(dot).ln() + mu * Bracket::exact(0.5);
                if dot == 0.0 {
                    [Tails::least(); 2]
                } else {
                    [Tails::new(score), Tails::new(score - mu)]
                }
            })
            .collect();
        let cells = ends
            .windows(2)
            .map(|pair| {
                let part = |which: usize| pair[0][which].until(&pair[1][which]);
                (part(0), part(1))
            })
            .collect();
        let last = &ends[ends.len() - 1];
        Self {
            base: Gaussian { mu },
            cells,
            beyond: (last[0].above, last[1].above),
        }
    }

    fn spread(&self, dots: &[f64]) -> Law {
        let mut masses = vec![0.0; dots.len()];
        let scale = Bracket::exact(SCALE);
        for (index, &(mass, mean)) in self.cells.iter().enumerate() {
            let (left, right) = (Bracket::exact(dots[index]), Bracket::exact(dots[index + 1]));
            let width = right - left;
            let to_right = (mean - left * mass) / width * scale;
            let to_left = (right * mass - mean) / width * scale;
            let most = (mass * scale).upper();
            masses[index] = round::add_up(masses[index], to_left.upper().clamp(0.0, most));
            masses[index + 1] = to_right.upper().clamp(0.0, most);
        }
        let last = dots.len() - 1;
        let (mass, _) = self.beyond;
        masses[last] = round::add_up(masses[last], (mass * scale).upper());
        let escaped = self.base.delta(round::ln_down(dots[last])).upper();
        Law {
            places: dots.to_vec(),
            masses,
            escaped: round::mul_up(escaped, SCALE),
            lost: 0.0,
            reach: dots[last],
            mass_error: 0.0,
            place_error: 0.0,
        }
    }

    fn drawn_together(&self, dots: &[f64]) -> Law {
        let (mut places, mut masses, mut place_error) = (Vec::new(), Vec::new(), 0.0_f64);
        let ends = dots.windows(2).map(|pair| (pair[0], pair[1]));
        let beyond = (dots[dots.len() - 1], f64::INFINITY);
        for (&(mass, mean), (left, right)) in self
            .cells
            .iter()
            .chain([&self.beyond])
            .zip(ends.chain([beyond]))
        {
            let scaled = round::mul_down(mass.lower().max(0.0), SCALE);
            let place = (mean / mass).clamp(left, right);
            if scaled < FAINT || !(place.lower() > 0.0 && place.upper() < f64::INFINITY) {
                continue;
            }
            let middle = place.estimate();
            place_error = place_error.max((place.upper() - place.lower()) / place.lower());
            places.push(middle);
            masses.push(scaled);
        }
        Law {
            places,
            masses,
            escaped: 0.0,
            lost: 0.0,
            reach: 0.0,
            mass_error: 0.0,
            place_error: place_error * (1.0 + 1e-9),
        }
    }
}

/// `Φ` and `S` at one place.
#[derive(Clone, Copy)]
struct Tails {
    below: Bracket,
    above: Bracket,
}

impl Tails {
    /// Of a place below everything.
    fn least() -> Self {
        Self {
            below: Bracket::ZERO,
            above: Bracket::exact(1.0),
        }
    }

    fn new(score: Bracket) -> Self {
        Self {
            below: cdf(score),
            above: survival(score),
        }
    }

    /// The mass between two places, from the tails in which less is lost.
    fn until(&self, next: &Self) -> Bracket {
        let found = if next.below.upper() < self.above.upper() {
            next.below - self.below
        } else {
            self.above - next.above
        };
        found.clamp(0.0, 1.0)
    }
}

/// Between which places the sum of two laws has all but about `tail`: a guess, from groups of places.
fn range(x: &Law, y: &Law, tail: f64, terms: f64) -> (f64, f64) {
    let (x, y) = (groups(x), groups(y));
    let mut sums: Vec<(f64, f64, f64)> = x
        .iter()
        .flat_map(|a| {
            y.iter().map(|b| {
                (
                    a.low + b.low,
                    a.high + b.high,
                    a.mass / SCALE * b.mass / SCALE,
                )
            })
        })
        .collect();
    sums.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut mass, mut low) = (0.0, sums[0].0);
    for &(place, _, weight) in &sums {
        mass += weight;
        if mass > tail {
            break;
        }
        low = place;
    }
    sums.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (mut mass, mut mean, mut high) = (0.0, 0.0, sums[0].1);
    for &(_, place, weight) in &sums {
        if mean - mass * place > tail * terms {
            break;
        }
        high = place;
        mass += weight;
        mean += weight * place;
    }
    (low, high.max(low))
}

struct Group {
    low: f64,
    high: f64,
    mass: f64,
}

fn groups(law: &Law) -> Vec<Group> {
    const GROUPS: usize = 40;
    // Zero is far below all other places, and has next to no mass.
    let zero = usize::from(law.places.len() > 1 && law.places[0] == 0.0);
    let size = law.places.len().div_ceil(GROUPS).max(1);
    let group = |(places, masses): (&[f64], &[f64])| Group {
        low: places[0],
        high: places[places.len() - 1],
        mass: masses.iter().sum(),
    };
    let ((zeros, places), (zero_masses, masses)) =
        (law.places.split_at(zero), law.masses.split_at(zero));
    let alone = zeros.chunks(1).zip(zero_masses.chunks(1));
    alone
        .chain(places.chunks(size).zip(masses.chunks(size)))
        .map(group)
        .collect()
}

/// What a convolution gathers in a cell: mass, and mass times the distance from the left end.
#[derive(Clone, Copy, Default)]
struct Gathered {
    mass: f64,
    moment: f64,
}

/// All sums of two places, by cells; the last cell is beyond the last dot.
fn gather(x: &Law, y: &Law, dots: &[f64]) -> Vec<Gathered> {
    let same = std::ptr::eq(x, y);
    let mut gathered = vec![Gathered::default(); dots.len()];
    if y.places.is_empty() {
        return gathered;
    }
    for (index, (&place, &mass)) in x.places.iter().zip(&x.masses).enumerate() {
        let mass = mass / SCALE;
        let start = if same { index } else { 0 };
        // Pairs of a law with itself are met once and count twice, but for the diagonal.
        let (first, other_mass) = if same {
            (y.masses[start] * 0.5, 2.0 * mass)
        } else {
            (y.masses[start], mass)
        };
        let lowest = place + y.places[start];
        let mut cell = dots.partition_point(|&dot| dot <= lowest).max(1) - 1;
        let (mut left, mut right) = (dots[cell], dot_after(dots, cell));
        let mut here = Gathered {
            mass: other_mass * first,
            moment: other_mass * first * (lowest - left),
        };
        for (&other, &weight) in y.places[start..].iter().zip(&y.masses[start..]).skip(1) {
            let sum = place + other;
            while sum > right {
                gathered[cell].mass += here.mass;
                gathered[cell].moment += here.moment;
                here = Gathered::default();
                cell += 1;
                (left, right) = (right, dot_after(dots, cell));
            }
            let weight = other_mass * weight;
            here.mass += weight;
            here.moment += weight * (sum - left);
        }
        gathered[cell].mass += here.mass;
        gathered[cell].moment += here.moment;
    }
    gathered
}

fn dot_after(dots: &[f64], cell: usize) -> f64 {
    dots.get(cell + 1).copied().unwrap_or(f64::INFINITY)
}

fn convolve(x: &Law, y: &Law, dots: &[f64], side: Side) -> Law {
    let gathered = gather(x, y, dots);
    // A cell is a sum of one run for each place of x, each of at most the length of y, of terms with few roundings.
    let error = 2.0 * (x.places.len() + y.places.len() + 16) as f64 * HALF_ULP;
    let mut law = Law {
        places: Vec::with_capacity(dots.len()),
        masses: Vec::with_capacity(dots.len()),
        escaped: 0.0,
        lost: 0.0,
        reach: 0.0,
        mass_error: (x.mass_error + y.mass_error + error) * (1.0 + 1e-9)
            + x.mass_error * y.mass_error,
        place_error: x.place_error.max(y.place_error)
            + match side {
                // Sums of two places are rounded; means of cells are quotients of sums.
                Side::Upper => 4.0 * HALF_ULP,
                Side::Lower => 2.0 * error,
            },
    };
    match side {
        Side::Upper => {
            law.places.extend_from_slice(dots);
            law.masses = vec![0.0; dots.len()];
            let mut escaped = 0.0;
            for (index, &Gathered { mass, moment }) in gathered.iter().enumerate() {
                if let Some(right) = dots.get(index + 1) {
                    let to_right = moment / (right - dots[index]);
                    // The rest, with the errors of both: what is too much on the left is too much mass.
                    law.masses[index] += (mass - to_right).max(0.0) + 3.0 * error * mass;
                    law.masses[index + 1] += to_right;
                } else {
                    law.masses[index] += mass;
                    escaped = moment;
                }
            }
            let (total_x, total_y) = (x.total(), y.total());
            let pairs = x.places.len() as f64 * y.places.len() as f64;
            let carried = (x.escaped * total_y + y.escaped * total_x) / SCALE;
            law.escaped = (carried + escaped) * (1.0 + 1e-9);
            // What underflows in a product, and in a mass that is taken out of its scale, counts as the smallest float.
            let underflow = pairs * 1e-322 + x.places.len() as f64 * 1e-322 * total_y;
            law.lost = ((x.lost * total_y + y.lost * total_x) / SCALE + underflow) * (1.0 + 1e-9);
            law.reach = (x.reach + y.reach) * (1.0 + 1e-9);
        }
        Side::Lower => {
            for (index, &Gathered { mass, moment }) in gathered.iter().enumerate() {
                if mass < FAINT {
                    continue;
                }
                let place = dots[index] + moment / mass;
                law.places
                    .push(place.clamp(dots[index], dot_after(dots, index)));
                law.masses.push(mass);
            }
        }
    }
    law
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(law: &Law) -> (f64, f64) {
        let mass: f64 = law.masses.iter().sum();
        let mean: f64 = law.places.iter().zip(&law.masses).map(|(x, m)| x * m).sum();
        (mass / SCALE, (mean + law.escaped) / SCALE)
    }

    fn variance(law: &Law, mean: f64) -> f64 {
        let atoms = law.places.iter().zip(&law.masses);
        atoms.map(|(x, m)| (x - mean) * (x - mean) * m).sum::<f64>() / SCALE
    }

    #[test]
    fn masses_and_means_are_kept() {
        for (sigma, count) in [(0.4, 1), (1.0, 2), (1.0, 7), (2.0, 100), (30.0, 1000)] {
            let laws = Laws::new(sigma, count, 1e-12);
            let mean = count as f64;
            for law in [&laws.upper, &laws.lower] {
                let (mass, found) = moments(law);
                assert!((mass - 1.0).abs() < 1e-4, "{sigma} {count}: {mass}");
                assert!(
                    (found / mean - 1.0).abs() < 1e-4,
                    "{sigma} {count}: {found}"
                );
            }
            let (upper, lower) = (moments(&laws.upper).0, moments(&laws.lower).0);
            assert!(upper >= 1.0 - 1e-15 && lower <= 1.0 + 1e-15);
        }
    }

    /// The variance of the sum lies between those of the two laws, and they are close.
    #[test]
    fn the_variance_is_enclosed() {
        for (sigma, count) in [
            (1.0, 1),
            (1.0, 2),
            (2.0, 3),
            (2.0, 64),
            (2.0, 100),
            (10.0, 1000),
        ] {
            let laws = Laws::new(sigma, count, 1e-20);
            let mean = count as f64;
            let truth = mean * libm::expm1(1.0 / (sigma * sigma));
            let (above, below) = (variance(&laws.upper, mean), variance(&laws.lower, mean));
            assert!(below <= truth * (1.0 + 1e-9) && truth <= above * (1.0 + 1e-9));
            assert!(
                (above - below) / truth < 3e-3,
                "{sigma} {count}: {below} {truth} {above}"
            );
        }
    }

    /// Two laws with few places, by hand.
    #[test]
    fn a_small_sum() {
        let law = |places: &[f64], masses: &[f64]| Law {
            places: places.to_vec(),
            masses: masses.iter().map(|mass| mass * SCALE).collect(),
            reach: 4.0,
            ..Law::zero()
        };
        let (x, y) = (
            law(&[0.0, 1.0], &[0.5, 0.5]),
            law(&[1.0, 4.0], &[0.75, 0.25]),
        );
        // Sums 1, 2, 4, 5 with masses 3/8, 3/8, 1/8, 1/8.
        let dots = [0.0, 2.0, 4.0];
        let upper = convolve(&x, &y, &dots, Side::Upper);
        let masses: Vec<f64> = upper.masses.iter().map(|mass| mass / SCALE).collect();
        let near = |a: f64, b: f64| (a - b).abs() < 1e-8;
        assert!(near(masses[0], 0.1875) && near(masses[1], 0.5625) && near(masses[2], 0.25));
        assert!(near(upper.escaped / SCALE, 0.125));
        let lower = convolve(&x, &y, &dots, Side::Lower);
        // A sum on a dot may count to either side.
        assert_eq!(lower.places, [1.0, 2.5, 5.0]);
        let square = convolve(&x, &x, &dots, Side::Lower);
        assert!(near(square.places[0], 2.0 / 3.0) && near(square.places[1], 2.0));
        assert!(near(square.masses[0] / SCALE, 0.75) && near(square.masses[1] / SCALE, 0.25));
    }

    #[test]
    fn dots_are_in_order() {
        for (low, high) in [(1e-300, 1e300), (1.0, 1.0 + 1e-15), (5.0, 2.0), (1e-9, 1e9)] {
            let dots = dots(low, 1.0, high, 500);
            assert!(dots.len() >= 2 && dots.windows(2).all(|pair| pair[0] < pair[1]));
        }
    }
}
