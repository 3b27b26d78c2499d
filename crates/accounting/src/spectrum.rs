//! # The few frequencies of a smooth composition
//! A composition of tilted masses on a circle (`convolve.rs`) as a sum of few waves, and sums over the circle with weights that fall, as
//! functions of their place: what a profile is made of (`smooth.rs`).
//!
//! **Few frequencies.** A sum of many losses is smooth: of its `N` frequencies all but some dozens are below `e^-50`. [`Spectrum`] finds
//! those that are not, and computes nothing else. Let `φ(t) = Σ a_j e^(-itj)` for real `t`, and `R = |φ|²`. Then
//! `R'' = -Σ a_i a_j (i-j)² cos(t(i-j))`, so `|R''| <= V = Σ a_i a_j (i-j)² <= 2 Σa Σ a_j (j-c)²` for every `c`, and a function whose second
//! derivative is at most `V` lies within `V d²/8` of its chord over an interval of length `d`. So `R` at the few multiples of `2π/n`, which
//! is a transform of `n` places of the masses folded onto them, bounds it everywhere: on an interval by its larger end plus `V d²/8`.
//! With `ln R <= R - 1`, all frequencies of an interval have a modulus of at most `exp Σ k (R - 1)/2` after composition.
//! Where this is not below `e^-50`, each frequency is computed by itself: a sum over the `D` dots in chunks of `C`, each term with a
//! root (`11u`) and a product, so the error is at most `(C + D/C + 14) u Σa`.
//!
//! **Series.** `Σ_(m>=1) a_(j+m) z^m`, around the circle without end, is `(1/N) Σ_f A_f e^(iφj) ζ/(1-ζ)` with `φ = 2πf/N` and `ζ = z e^(iφ)`, for
//! `0 < z < 1`; and for the weights `ρ^m (1 - σ^m)` the last factor is `ζ(1-σ)/((1-ζ)(1-σζ))` with `ζ = ρe^(iφ)`. For `z = e^-x`,
//! `1 - ζ = (1-e^-x) + 2z sin²(φ/2) - 2iz sin(φ/2)cos(φ/2)`: a sum of positive numbers, and an imaginary part that errs, where its cosine
//! is small, by less than the real part. Counted generously each of these errs by `40u`, a power by `66u` for `x < 64` that may itself be
//! rounded, and the whole factor by less than `256u` of its modulus, which is largest at `f = 0`. A sum over `F` frequencies adds `F + 32` roundings of the sum of moduli.

use crate::Bracket;
use crate::convolve::{Factor, Power, SLACK, UNDERFLOW, Value, split};
use crate::fft::{Plan, RootTable, UNIT, places, product};
use crate::grid::Side;

/// Intervals between the folded frequencies hold at most this many of all, where there are no more than the most folded places.
const FOLD: usize = 64;
/// The fewest and the most folded places.
const FOLDED: (usize, usize) = (64, 4096);
/// Folded places for each standard deviation of one part: then chords are within 4 % of `R`.
const PLACES: f64 = 16.0;
/// Smaller circles are transformed as they are.
const SIZE_MIN: usize = 4096;
/// What is left out has a modulus of at most `e^-LEFT_OUT`.
const LEFT_OUT: f64 = 50.0;
/// Terms for each place of the circle, above which a transform of all of it is cheaper.
const TERMS_MAX: usize = 8;
/// More waves are not few: every question is a sum of all of them.
const WAVES_MAX: usize = 512;
/// Terms that are added up before they are added to the rest.
const CHUNK: usize = 32;
/// The relative error of a factor of a series.
const SERIES_ERROR: f64 = 256.0 * UNIT;
/// Below, squares of `1 - ζ` would underflow; above, the rounding of a rate would count for more than is allowed.
const RATES: (f64, f64) = (1e-100, 64.0);

/// The frequencies of a composition that are not negligible.
pub(crate) struct Spectrum {
    size: usize,
    roots: RootTable,
    waves: Vec<Wave>,
    /// At least the sum of the moduli of all others.
    left_out: f64,
}

struct Wave {
    frequency: usize,
    /// With its mirror, if that is another.
    weight: f64,
    /// Of the upper and of the lower masses.
    values: [Value; 2],
}

/// A sum over the circle with weights that fall from its place on, as a function of the place.
pub(crate) struct Series {
    terms: Vec<(f64, f64)>,
    error: f64,
}

/// How the weights of a series fall, from the first place beyond on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fall {
    /// `e^(-xm)`; `x` may be rounded once.
    Power(f64),
    /// `e^(-θm) (1 - e^(-step m))`, with `θ` and the step.
    Profile(f64, f64),
}

impl Spectrum {
    /// None where a transform of the whole circle is cheaper: on a small one, for many masses, or if few frequencies are negligible.
    pub(crate) fn new(factors: &[Factor], size: usize) -> Option<Self> {
        if size < SIZE_MIN {
            return None;
        }
        let lists: Vec<DotList> = factors.iter().map(DotList::new).collect();
        let folded = folded(&lists, size);
        let each: usize = lists.iter().map(|list| list.dots.len()).sum();
        let room = ((TERMS_MAX * size * lists.len()) / each.max(1)).min(WAVES_MAX);
        if room < size / folded {
            return None;
        }
        let frequencies = audible(&lists, size, folded, room)?;
        let roots = RootTable::new(size);
        let powers: Vec<Power> = lists
            .iter()
            .map(|list| Power::new(list.count, list.error()))
            .collect();
        let waves = frequencies.iter().map(|&frequency| {
            let own = frequency == 0 || 2 * frequency == size;
            let each = lists.iter().zip(&powers).map(|(list, power)| {
                list.at(&roots, frequency, size)
                    .map(|(x, y)| power.raise(x, y))
            });
            let values = each.reduce(|a, b| [a[0].times(b[0]), a[1].times(b[1])]);
            Some(Wave {
                frequency,
                weight: if own { 1.0 } else { 2.0 },
                values: values?,
            })
        });
        Some(Self {
            size,
            waves: waves.collect::<Option<_>>()?,
            roots,
            left_out: size as f64 * (-LEFT_OUT).exp() * SLACK,
        })
    }

    /// A series of the upper or of the lower masses. None for rates that are hardly positive, or large.
    pub(crate) fn series(&self, side: Side, fall: Fall) -> Option<Series> {
        let usual = |rate: f64| rate > RATES.0 && rate < RATES.1;
        let usual = match fall {
            Fall::Power(rate) => usual(rate),
            Fall::Profile(rate, step) => usual(rate) && usual(step) && usual(rate + step),
        };
        if !usual {
            return None;
        }
        let share = 1.0 / self.size as f64;
        let (mut error, mut moduli) = (0.0, 0.0);
        let rounding = SERIES_ERROR + (self.waves.len() + 32) as f64 * UNIT;
        let mut terms = Vec::with_capacity(self.waves.len());
        for wave in &self.waves {
            let factor = self.factor(wave.frequency, fall);
            let modulus = wave.weight * (factor.0 * factor.0 + factor.1 * factor.1).sqrt();
            let [upper, lower] = wave.values;
            let value = match side {
                Side::Upper => upper,
                Side::Lower => lower,
            };
            let (re, im) = product((value.re, value.im), factor);
            let weight = wave.weight * share;
            terms.push((re * weight, im * weight));
            error += value.error * modulus;
            moduli += value.bound * modulus;
        }
        let most = self.factor(0, fall).0;
        let error = (error + rounding * moduli + self.left_out * most) * share * SLACK;
        Some(Series {
            terms,
            error: error + UNDERFLOW,
        })
    }

    /// What a series is at a place of the circle.
    pub(crate) fn at(&self, series: &Series, place: usize) -> Bracket {
        let each = self.waves.iter().zip(&series.terms);
        let sum: f64 = each
            .map(|(wave, (re, im))| {
                // The conjugate root, and of the product the real part: mirrors add up to twice that.
                let (x, y) = self.roots.root((wave.frequency * place) & (self.size - 1));
                re * x + im * y
            })
            .sum();
        Bracket::around(sum, series.error)
    }

    /// `ζ/(1-ζ)` or `ζ(1-σ)/((1-ζ)(1-σζ))`.
    fn factor(&self, frequency: usize, fall: Fall) -> (f64, f64) {
        let (x, y) = self.roots.root(frequency);
        // A half angle of at most a quarter of the circle.
        let angle = std::f64::consts::PI * (frequency as f64 / self.size as f64);
        let (sin, cos) = libm::sincos(angle);
        let beside = |rate: f64| {
            let power = libm::exp(-rate);
            (
                -libm::expm1(-rate) + 2.0 * power * sin * sin,
                -2.0 * power * sin * cos,
            )
        };
        match fall {
            Fall::Power(rate) => {
                let power = libm::exp(-rate);
                quotient((x * power, -y * power), beside(rate))
            }
            Fall::Profile(rate, step) => {
                let scale = -libm::expm1(-step) * libm::exp(-rate);
                let first = quotient((x * scale, -y * scale), beside(rate));
                quotient(first, beside(rate + step))
            }
        }
    }
}

fn quotient(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    let square = b.0 * b.0 + b.1 * b.1;
    let (re, im) = product(a, (b.0, -b.1));
    (re / square, im / square)
}

/// The masses of one factor that are not zero.
struct DotList {
    dots: Vec<(usize, [f64; 2])>,
    count: u64,
    /// The sum of both sides.
    mass: f64,
    /// `V` of each side, at least.
    bend: [f64; 2],
    length: usize,
}

impl DotList {
    fn new(factor: &Factor) -> Self {
        let (upper, lower) = (factor.upper, factor.lower);
        let length = upper.len().max(lower.len());
        let at = |masses: &[f64], index: usize| masses.get(index).copied().unwrap_or(0.0);
        let dots: Vec<(usize, [f64; 2])> = (0..length)
            .map(|index| (index, [at(upper, index), at(lower, index)]))
            .filter(|(_, both)| both[0] != 0.0 || both[1] != 0.0)
            .collect();
        let bends = [0, 1].map(|side| {
            let sum = |weight: &dyn Fn(f64) -> f64| -> f64 {
                let each = dots.iter();
                each.map(|&(index, both)| both[side] * weight(index as f64))
                    .sum()
            };
            let mass = sum(&|_| 1.0);
            let middle = (sum(&|index| index) / mass).round();
            let square = sum(&|index| (index - middle) * (index - middle));
            (mass, 2.0 * mass * square * SLACK)
        });
        Self {
            dots,
            count: factor.count,
            mass: (bends[0].0 + bends[1].0) * SLACK,
            bend: bends.map(|(_, bend)| bend),
            length,
        }
    }

    /// How far [`at`](Self::at) may be off.
    fn error(&self) -> f64 {
        let roundings = (CHUNK + self.dots.len().div_ceil(CHUNK) + 14) as f64;
        roundings * UNIT * self.mass * SLACK + UNDERFLOW
    }

    /// Both spectra at one frequency.
    fn at(&self, roots: &RootTable, frequency: usize, size: usize) -> [(f64, f64); 2] {
        let mut sums = [(0.0, 0.0); 2];
        for chunk in self.dots.chunks(CHUNK) {
            let mut parts = [(0.0, 0.0); 2];
            for &(index, masses) in chunk {
                let (x, y) = roots.root((frequency * index) & (size - 1));
                for (part, mass) in parts.iter_mut().zip(masses) {
                    part.0 += mass * x;
                    part.1 += mass * y;
                }
            }
            for (sum, part) in sums.iter_mut().zip(parts) {
                sum.0 += part.0;
                sum.1 += part.1;
            }
        }
        sums
    }
}

/// How many places the masses are folded onto: only speed rests on it.
fn folded(lists: &[DotList], size: usize) -> usize {
    let bends = lists.iter().flat_map(|list| list.bend);
    let spread = (0.5 * bends.fold(0.0, f64::max)).sqrt();
    let wanted = ((PLACES * spread) as usize).clamp(FOLDED.0, FOLDED.1);
    wanted.next_power_of_two().max((size / FOLD).min(FOLDED.1))
}

/// The frequencies up to half the circle whose modulus may be above `e^-LEFT_OUT`; none if there are more than `room`.
fn audible(lists: &[DotList], size: usize, folded: usize, room: usize) -> Option<Vec<usize>> {
    let plan = Plan::new(folded);
    let (mut re, mut im) = (vec![0.0; folded], vec![0.0; folded]);
    let mut squares = vec![[0.0_f64; 2]; folded / 2 + 1];
    // Of each side and each interval, Σ k (R - 1)/2.
    let mut exponents = vec![[0.0_f64; 2]; folded / 2];
    let width = std::f64::consts::TAU / folded as f64;
    for list in lists {
        re.fill(0.0);
        im.fill(0.0);
        for &(index, [upper, lower]) in &list.dots {
            re[index & (folded - 1)] += upper;
            im[index & (folded - 1)] += lower;
        }
        plan.forward(&mut re, &mut im);
        let wraps = (list.length / folded + 4) as f64;
        let error = (plan.error() + wraps * UNIT) * list.mass * SLACK + UNDERFLOW;
        let bits = folded.ilog2();
        for pair in 0..=folded / 2 {
            let (at, mirror) = places(pair);
            let reversed = at.reverse_bits() >> (usize::BITS - bits);
            let frequency = reversed.min(folded - reversed);
            let spectra = split(re[at], im[at], re[mirror], im[mirror]);
            squares[frequency] = spectra.map(|(x, y)| {
                let modulus = (x * x + y * y).sqrt() + error;
                modulus * modulus * (1.0 + 16.0 * UNIT)
            });
        }
        let half = 0.5 * list.count as f64;
        for (exponent, ends) in exponents.iter_mut().zip(squares.windows(2)) {
            for side in 0..2 {
                let chord = ends[0][side].max(ends[1][side]);
                let most = (chord + list.bend[side] * width * width / 8.0) * (1.0 + 16.0 * UNIT);
                // Three roundings, each made up for.
                let term = (half * (most - 1.0).next_up()).next_up();
                exponent[side] = (exponent[side] + term).next_up();
            }
        }
    }
    let each = size / folded;
    let mut found: Vec<usize> = Vec::new();
    for (interval, exponent) in exponents.iter().enumerate() {
        // What is no number is not negligible.
        if exponent.iter().all(|exponent| *exponent <= -LEFT_OUT) {
            continue;
        }
        let first = interval * each;
        let known = usize::from(found.last() == Some(&first));
        found.extend(first + known..=first + each);
        if found.len() > room {
            return None;
        }
    }
    Some(found)
}

#[cfg(test)]
#[path = "spectrum_test.rs"]
mod tests;
