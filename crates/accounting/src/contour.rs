//! # Profiles by a contour integral
//! For losses `L` with moments `Φ(s) = Π M_i(s)^(k_i)` and every `c > 0`,
//! `δ(ε) = 1/(2πi) ∫ Φ(s) e^(-εs) / (s(s+1)) ds` along `Re s = c`. [AGA+23, Thm 3.1]
//! *Proof.* For each `y` the integral of `e^(sy)/(s(s+1))` is `1 - e^-y` if `y > 0` and 0 otherwise, by residues; put
//! `y = L - ε`, take expectations, and exchange: the integral of `E|e^(s(L-ε))|/|s(s+1)|` is finite.
//!
//! **Step.** The trapezoid rule with step `h` along the line gives exactly `Σ_m e^(cmT) δ(ε + mT)` with `T = 2π/h` and `m` over
//! all integers (Poisson's summation formula for `e^(cε)δ(ε)`). Every term is at least zero, so the rule never gives too
//! little. The terms below, `m < 0`, are at most `e^(-cT)/(1 - e^(-cT))` together, as `δ <= 1`; those above at most
//! `Φ(r) e^(-rε) e^(-(r-c)T)/(1 - e^(-(r-c)T))` for every `r > c`, by `δ(ε) <= Φ(r) e^(-rε)` (Markov).
//! They are subtracted from the lower bound only.
//!
//! **Truncation.** Nodes beyond the last are bounded by `decay.rs`.
//!
//! **Moments.** If each `M_i(s)/M̃_i(c)` is known as `x_i` up to `η_i`, the product of powers is known up to
//! `Π(|x_i| + η_i)^(k_i) - Π|x_i|^(k_i)`; `tilt.rs` bounds the `η_i`.
//!
//! **Round-off.** Phases are sums of products of `k_i` and arguments, which err by a few `u = 2^-53` of their size; node `n` is
//! reached by `n` rotations. Both are added up node by node.
//!
//! Any `c` gives valid bounds; near the saddle point of the integrand they are sharp.

use std::cell::RefCell;

use crate::Bracket;
use crate::contour_line::Line;
use crate::contour_part::Part;
use crate::curve::Curve;
use crate::decay::{Decay, LaplaceDecay};
use crate::pair::Pair;
use crate::tilt::{Cumulants, SampledGaussian, UNIT};
use crate::tilt_laplace::SampledLaplace;

/// What is wanted of each error, relative to the value: `e^-24` is about `4e-11`.
const DIGITS: f64 = 24.0;
/// What is wanted of the truncation if a line is much shorter for it: `e^-19` is about `6e-9`.
const DIGITS_SHORT: f64 = 19.0;
/// What is wanted of the truncation where atoms keep the integrand from falling.
const LAPLACE_DIGITS: f64 = 1e-8;
/// Lines longer than this are not worth while: another engine answers.
const NODES_MAX: usize = 1 << 14;
/// Lines for one question, at most.
const DRAWS_MAX: u32 = 40;
/// A bracket this narrow is taken from the line at hand; otherwise a line is drawn through the saddle point of the question.
const SHARP: f64 = 1e-8;

/// A composition of Gaussian, Laplace and sampled mechanisms in one direction.
#[derive(Clone, Debug)]
pub(crate) struct Contour {
    parts: Vec<(Part, f64)>,
    /// Lines at hand; each serves the epsilons around its own.
    lines: Vec<Line>,
    /// How many more may be drawn: a search that needs many is left to another engine.
    draws: u32,
}

/// Where a line is drawn.
struct Place {
    c: f64,
    /// The cumulants there.
    sum: Cumulants,
    /// `T`.
    period: f64,
    /// A tilt `r > c` that bounds the aliases from above.
    alias_tilt: f64,
}

impl Contour {
    /// None if a pair has no moments here.
    pub(crate) fn new(pairs: &[(Pair, u64)]) -> Option<Self> {
        let mut parts = Vec::with_capacity(pairs.len());
        for (pair, count) in pairs {
            let part = match *pair {
                Pair::Gaussian { sigma } => Part::Gaussian { sigma },
                Pair::Laplace { scale } => Part::Laplace {
                    epsilon: 1.0 / scale,
                },
                Pair::SampledGaussian { rate: 0.0, .. } => continue,
                Pair::SampledGaussian {
                    rate,
                    sigma,
                    change,
                } if rate < 1.0 => {
                    let sampled = SampledGaussian {
                        rate,
                        sigma,
                        change,
                    };
                    Part::Sampled(sampled, RefCell::default())
                }
                Pair::SampledLaplace {
                    rate,
                    scale,
                    change,
                } => Part::SampledLaplace(SampledLaplace::new(rate, scale, change)?),
                Pair::SampledGaussian { .. } => return None,
            };
            parts.push((part, *count as f64));
        }
        (!parts.is_empty()).then_some(Self {
            parts,
            lines: Vec::new(),
            draws: DRAWS_MAX,
        })
    }

    fn cumulants(&self, c: f64) -> Option<Cumulants> {
        let mut sum = Cumulants::default();
        for (part, count) in &self.parts {
            let one = part.cumulants(c)?;
            sum.ln_moment += count * one.ln_moment;
            sum.mean += count * one.mean;
            sum.variance += count * one.variance;
        }
        Some(sum)
    }

    /// The tilt at which the integrand for `epsilon` is smallest along the real line.
    fn saddle_of_epsilon(&self, epsilon: f64) -> Option<f64> {
        self.search(|c, sum| sum.mean - 1.0 / c - 1.0 / (c + 1.0) - epsilon)
    }

    /// The tilt and the epsilon at which Laplace's method says that the profile is `delta`.
    fn saddle_of_delta(&self, delta: f64) -> Option<(f64, f64)> {
        let epsilon_at = |c: f64, sum: &Cumulants| sum.mean - 1.0 / c - 1.0 / (c + 1.0);
        let target = delta.ln();
        let c = self.search(|c, sum| {
            let bend = sum.variance + 1.0 / (c * c) + 1.0 / ((c + 1.0) * (c + 1.0));
            let exponent = sum.ln_moment - c * epsilon_at(c, &sum) - (c * (c + 1.0)).ln();
            target - (exponent - 0.5 * (std::f64::consts::TAU * bend).ln())
        })?;
        Some((c, epsilon_at(c, &self.cumulants(c)?)))
    }

    /// Where a function that rises with the tilt crosses zero, roughly.
    fn search(&self, rises: impl Fn(f64, Cumulants) -> f64) -> Option<f64> {
        let start = self.cumulants(0.0)?.variance.sqrt();
        let at = |ln_c: f64| -> Option<f64> {
            let c = ln_c.exp();
            let value = rises(c, self.cumulants(c)?);
            // Moments may explode within a small step: false position needs values of one size.
            value
                .is_finite()
                .then(|| libm::log1p(value.abs()).copysign(value))
        };
        // A loss with spread v is tilted by a few 1/v.
        let mut place = (4.0 / start).clamp(1e-3, 1e9).ln();
        let mut value = at(place)?;
        let mut step = if value < 0.0 { 0.7 } else { -0.7 };
        let (mut other, mut other_value) = (place, value);
        for _ in 0..60 {
            (other, other_value) = (place, value);
            place += step;
            value = at(place)?;
            if (value < 0.0) != (other_value < 0.0) {
                break;
            }
            step *= 1.5;
        }
        for _ in 0..40 {
            if (place - other).abs() < 1e-3 || value == other_value {
                break;
            }
            let next = place - value * (place - other) / (value - other_value);
            let (low, high) = (place.min(other), place.max(other));
            let margin = 0.05 * (high - low);
            let next = next.clamp(low + margin, high - margin);
            let found = at(next)?;
            if (found < 0.0) == (value < 0.0) {
                (place, value) = (next, found);
                other_value /= 2.0;
            } else {
                (other, other_value) = (place, value);
                (place, value) = (next, found);
            }
            if found.abs() < 0.1 {
                break;
            }
        }
        Some(place.exp())
    }

    /// A line near the saddle point `saddle`, good for epsilons near the given one.
    fn draw(&self, saddle: f64, epsilon: f64) -> Option<Line> {
        let sum = self.cumulants(saddle)?;
        // The value is about e^(K - cε)/(c(c+1)) times the width of the saddle, so at least this small.
        let ln_value = sum.ln_moment
            - saddle * epsilon
            - (saddle * (saddle + 1.0)).ln()
            - 0.5 * (1.0 + sum.variance).ln()
            - 2.0;
        let Place {
            c,
            sum,
            period,
            alias_tilt,
        } = self.place(saddle, sum, epsilon, ln_value)?;
        let step = std::f64::consts::TAU / period;
        let decays: Option<Vec<_>> = self.parts.iter().map(|(part, _)| part.decay(c)).collect();
        let width = (sum.variance + 1.0 / (c * c)).sqrt();
        // The sum over nodes that gives this value.
        let whole = libm::exp(ln_value - sum.ln_moment + c * epsilon) * period;
        let (nodes, truncated) = self.truncate(&decays?, step, width, whole)?;
        let t_max = step * nodes as f64;
        let mut line = Line {
            c,
            epsilon,
            step,
            ln_moment: 0.0,
            ln_error: 0.0,
            real: Vec::new(),
            imaginary: Vec::new(),
            error: truncated,
            turns: 0.0,
            sizes: 0.0,
            terms: self.parts.len() as f64,
            alias: (alias_tilt, 0.0),
        };
        let mut ln_size = vec![0.0; nodes + 1];
        let mut phase = vec![0.0; nodes + 1];
        let mut phase_size = vec![0.0; nodes + 1];
        let mut excess = vec![0.0; nodes + 1];
        for (part, count) in &self.parts {
            part.along(c, step, t_max, *count, &mut line, &mut |n, x| {
                ln_size[n] += count * x.ln_size;
                phase[n] += count * x.phase;
                phase_size[n] += (count * x.phase).abs();
                excess[n] += count * x.excess;
            })?;
        }
        let moments: Option<Vec<f64>> = self
            .parts
            .iter()
            .map(|(part, count)| Some(count * part.ln_moment_upper(alias_tilt)?))
            .collect();
        line.alias.1 = moments?.into_iter().sum::<f64>() + 1e-9;
        // The tail was bounded relative to Φ(c), and the sum is relative to the product of the M̃_i(c).
        line.error *= libm::exp(excess[0]);
        let terms = self.parts.len() as f64;
        for n in 0..=nodes {
            let t = step * n as f64;
            let size = libm::exp(ln_size[n]);
            // 1/(s(s+1)) with s = c + it.
            let (re, im) = (c * (c + 1.0) - t * t, t * (2.0 * c + 1.0));
            let square = re * re + im * im;
            let (sin, cos) = libm::sincos(phase[n]);
            let weight = if n == 0 { 1.0 } else { 2.0 };
            let scale = weight * size / square;
            let (real, imaginary) = (scale * (cos * re + sin * im), scale * (sin * re - cos * im));
            let modulus = weight * size / square.sqrt();
            line.real.push(real);
            line.imaginary.push(imaginary);
            let rounding = UNIT * (16.0 + (4.0 + terms) * (phase_size[n] + ln_size[n].abs()));
            line.error += modulus * (libm::expm1(excess[n]) * 1.0001 + rounding);
            line.turns += n as f64 * modulus;
            line.sizes += modulus;
        }
        Some(line)
    }

    /// Where to draw the line: through the saddle point, or to the left of it if moments explode soon on its right: aliases from
    /// above then ask for a long period, and a few digits that cancel are the lesser evil.
    fn place(&self, saddle: f64, sum: Cumulants, epsilon: f64, ln_value: f64) -> Option<Place> {
        let below = |c: f64| (DIGITS - ln_value).max(1.0) / c;
        let (above, alias_tilt, at_alias) = self.alias(saddle, below(saddle), epsilon, ln_value)?;
        let mut best = Place {
            c: saddle,
            sum,
            period: below(saddle).max(above),
            alias_tilt,
        };
        // The value is this many digits, to the base e, above the round-off of its moments.
        let count: f64 = self.parts.iter().map(|(_, count)| count).sum();
        let spare = libm::log(1e-9 / (20.0 * UNIT * count)).min(8.0);
        for share in [0.85, 0.7, 0.55, 0.4] {
            let c = saddle * share;
            let period = (at_alias / (alias_tilt - c)).max(below(c));
            if best.period < 2.0 * below(best.c) || period > 0.8 * best.period {
                break;
            }
            let sum = self.cumulants(c)?;
            let lost = sum.ln_moment - c * epsilon - (c * (c + 1.0)).ln() - ln_value - 2.0;
            if lost > spare {
                break;
            }
            best = Place {
                c,
                sum,
                period,
                alias_tilt,
            };
        }
        Some(best)
    }

    /// The period that keeps aliases from above below the wanted share of the value; the tilt `r` that shows it, and the exponent that is
    /// divided by `r - c`.
    fn alias(&self, c: f64, below: f64, epsilon: f64, ln_value: f64) -> Option<(f64, f64, f64)> {
        // Moments may explode just beyond c, or stay tame for long: from the middle of this list to where it is best.
        const FACTORS: [f64; 9] = [1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 6.0];
        let above = |index: usize| {
            let r = c * FACTORS[index];
            let exponent = self.cumulants(r).map_or(f64::INFINITY, |sum| {
                sum.ln_moment - r * epsilon + DIGITS - ln_value
            });
            (exponent / (r - c), r, exponent)
        };
        let (mut index, mut best) = (5_usize, above(5));
        for step in [-1_isize, 1] {
            let start = index;
            while let Some(next) = index
                .checked_add_signed(step)
                .filter(|next| *next < FACTORS.len())
            {
                let found = above(next);
                if found.0 >= best.0 || best.0 <= below {
                    break;
                }
                (index, best) = (next, found);
            }
            if index != start {
                break;
            }
        }
        best.0.is_finite().then_some(best)
    }

    /// How many nodes to sum, and a bound on the sum of all others, relative to `Φ(c)`.
    fn truncate(
        &self,
        decays: &[Decay],
        step: f64,
        width: f64,
        whole: f64,
    ) -> Option<(usize, f64)> {
        let wanted = libm::exp(-DIGITS) * whole;
        if let ([(_, count)], [Decay::Laplace(laplace)]) = (self.parts.as_slice(), decays) {
            return truncate_laplace(laplace, *count, step, LAPLACE_DIGITS * whole);
        }
        let power = |low: f64, high: f64| -> f64 {
            let exponents = self
                .parts
                .iter()
                .zip(decays)
                .map(|((_, count), decay)| count * libm::log(decay.modulus(low, high)));
            libm::exp(exponents.sum::<f64>() * (1.0 - 1e-9))
        };
        // Intervals that grow by a tenth, and faster far out, from well inside the saddle on; the last one has no end.
        let mut edges = vec![(3.0 / width).max(step)];
        let mut bounds = Vec::new();
        loop {
            let low = edges[edges.len() - 1];
            let high = low * if edges.len() < 60 { 1.1 } else { 1.3 };
            let nodes = (high - low) / step + 1.0;
            bounds.push(2.0 * power(low, high) * nodes / (low * low));
            if edges.len() % 4 != 0 {
                edges.push(high);
                continue;
            }
            let rest =
                2.0 * power(high, f64::INFINITY) * (1.0 / (high * high) + 1.0 / (high * step));
            edges.push(high);
            if rest < 0.1 * wanted || edges.len() > 400 {
                bounds.push(rest);
                break;
            }
        }
        // From far out inwards, as long as what is left out stays below the wanted share.
        let cut = |wanted: f64| {
            let mut tail = 0.0;
            let mut chosen = None;
            for (edge, bound) in edges.iter().zip(&bounds).rev() {
                if tail + bound > wanted {
                    break;
                }
                tail += bound;
                chosen = Some((*edge, tail));
            }
            // If nothing is small enough, take the longest line we can afford and say how much is missing.
            chosen.unwrap_or_else(|| (edges[edges.len() - 1], bounds[bounds.len() - 1]))
        };
        // The bounds may hardly fall for long: then some digits less make a line much shorter.
        let (sharp, short) = (cut(wanted), cut(wanted * libm::exp(DIGITS - DIGITS_SHORT)));
        let (edge, tail) = if short.0 < 0.6 * sharp.0 {
            short
        } else {
            sharp
        };
        let nodes = (edge / step).ceil();
        (nodes < NODES_MAX as f64).then_some((nodes as usize, tail * 1.0001))
    }
}

fn truncate_laplace(
    laplace: &LaplaceDecay,
    count: f64,
    step: f64,
    wanted: f64,
) -> Option<(usize, f64)> {
    let mut nodes = 64;
    loop {
        let tail = 2.0 * laplace.tail(step * (nodes + 1) as f64, step, count);
        if tail <= wanted || nodes > 8 * NODES_MAX {
            return Some((nodes, tail));
        }
        nodes *= 2;
    }
}

impl Contour {
    /// Draws another line if there is one to be drawn.
    fn add_line(&mut self, c: f64, epsilon: f64) -> Option<&Line> {
        self.draws = self.draws.checked_sub(1)?;
        let line = self.draw(c, epsilon)?;
        self.lines.push(line);
        self.lines.last()
    }

    /// The line that was drawn for the nearest epsilon.
    fn nearest(&self, epsilon: f64) -> Option<&Line> {
        let distance = |line: &&Line| (epsilon - line.epsilon).abs() * line.c;
        self.lines
            .iter()
            .min_by(|one, other| distance(one).total_cmp(&distance(other)))
    }
}

impl Curve for Contour {
    fn delta(&mut self, epsilon: f64) -> Bracket {
        let mut known = Bracket::new(0.0, 1.0);
        if let Some(line) = self.nearest(epsilon) {
            known = line.delta(epsilon);
            let drawn_for_this = (epsilon - line.epsilon).abs() * line.c <= 3.0;
            if known.relative_width() <= SHARP || drawn_for_this {
                return known;
            }
        }
        let Some(c) = self.saddle_of_epsilon(epsilon) else {
            return known;
        };
        match self.add_line(c, epsilon) {
            Some(line) => known.meet(line.delta(epsilon)),
            None => known,
        }
    }

    fn infinite(&self) -> Bracket {
        Bracket::ZERO
    }

    fn epsilon_max(&self) -> Option<f64> {
        let mut sum = Bracket::ZERO;
        for (part, count) in &self.parts {
            match part {
                Part::Laplace { epsilon } => {
                    sum = sum
                        + Bracket::around(*epsilon, 2.0 * UNIT * epsilon) * Bracket::exact(*count)
                }
                _ => return None,
            }
        }
        Some(sum.upper())
    }

    fn guess(&mut self, delta: f64) -> f64 {
        let Some((mut c, mut epsilon)) = self.saddle_of_delta(delta) else {
            return f64::NAN;
        };
        // ln δ falls by about c per unit of epsilon; draw anew until the line is near the answer.
        for _ in 0..6 {
            if epsilon <= 0.0 {
                return epsilon;
            }
            let Some(line) = self.add_line(c, epsilon) else {
                break;
            };
            let found = line.delta(epsilon).estimate();
            if found <= 0.0 {
                break;
            }
            let move_by = (found.ln() - delta.ln()) / c;
            epsilon += move_by;
            if move_by.abs() * c < 3.0 {
                break;
            }
            match self.saddle_of_epsilon(epsilon) {
                Some(saddle) => c = saddle,
                None => break,
            }
        }
        epsilon
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve;
    use crate::pair::Change::{self, Add, Remove, Replace};

    fn sampled(rate: f64, sigma: f64, change: Change) -> Pair {
        Pair::SampledGaussian {
            rate,
            sigma,
            change,
        }
    }

    fn epsilon(pairs: &[(Pair, u64)], delta: f64) -> Bracket {
        let mut contour = Contour::new(pairs).expect("has moments");
        curve::epsilon(&mut contour, delta)
    }

    fn check(found: Bracket, golden: f64, room: f64, width: f64) {
        assert!(
            found.lower() <= golden * (1.0 + room) && golden * (1.0 - room) <= found.upper(),
            "{found:?} {golden}"
        );
        let wide = found.relative_width();
        assert!(wide < width, "{found:?} {golden} width {wide:e}");
    }

    /// Contour integrals in double precision, confirmed to 12 digits by mpmath with 30 digits where noted in the vectors.
    #[test]
    fn golden_sampled_gaussian() {
        for (rate, sigma, change, count, delta, golden) in [
            (0.01, 4.0, Remove, 10_000, 1e-5, 0.9468668007643095),
            (0.01, 4.0, Add, 10_000, 1e-5, 0.9370364254020973),
            (
                0.004266666666666667,
                1.1,
                Remove,
                14_062,
                1e-5,
                2.381596921424357,
            ),
            (0.001, 0.8, Remove, 60_000, 1e-5, 1.9521717358900637),
            (0.001, 1.0, Remove, 1_000_000, 1e-6, 6.694272659734772),
            (0.01, 4.0, Remove, 10_000, 1e-10, 1.528218476663899),
            (0.01, 4.0, Remove, 10_000, 1e-15, 1.9560534829444796),
            (0.01, 4.0, Remove, 10_000, 1e-20, 2.3107969893712563),
            (0.01, 0.5, Remove, 1_000, 1e-5, 13.360823985349713),
            (0.1, 2.0, Remove, 500, 1e-6, 6.216698122825157),
            (0.5, 5.0, Remove, 1_000, 1e-6, 19.663942363391037),
            (0.0001, 0.6, Remove, 200_000, 1e-7, 1.6272050014802955),
            (0.02, 1.0, Remove, 100, 1e-6, 1.7693131437104612),
            (0.01, 4.0, Replace, 10_000, 1e-5, 1.9931200570576615),
            (0.005, 1.5, Replace, 5_000, 1e-6, 2.1484743331144793),
            (0.1, 3.0, Replace, 200, 1e-5, 4.074494201198391),
        ] {
            let found = epsilon(&[(sampled(rate, sigma, change), count)], delta);
            check(found, golden, 1e-9, 1e-6);
        }
    }

    /// Contour integrals in mpmath with 30 digits: where `ln A` would lose digits by cancellation.
    #[test]
    fn golden_rates_next_to_one() {
        for (rate, sigma, count, delta, golden) in [
            (0.999999999999, 0.23, 50, 1e-5, 1954.3871093438),
            (0.999999999, 0.25, 20, 1e-2, 611.144260414385),
            (0.99999999, 0.28, 200, 1e-2, 4873.619156398504),
            (0.999999999999, 0.21, 50, 1e-2, 2019.97220810),
        ] {
            let found = epsilon(&[(sampled(rate, sigma, Replace), count)], delta);
            check(found, golden, 1e-11, 1e-5);
        }
    }

    /// Exact residue sums in mpmath.
    #[test]
    fn golden_laplace() {
        for (scale, count, delta, golden) in [
            (20.0, 512, 1e-5, 4.986458909916051),
            (20.0, 512, 1e-15, 9.135892571930992),
            (10.0, 100, 1e-6, 4.692667414680189),
        ] {
            let found = epsilon(&[(Pair::Laplace { scale }, count)], delta);
            check(found, golden, 1e-9, 1e-6);
        }
    }

    /// Contour integrals in double precision.
    #[test]
    fn golden_sampled_laplace() {
        for (rate, scale, change, count, delta, golden) in [
            (0.01, 1.0, Remove, 1_000, 1e-6, 1.2864073997694416),
            (0.01, 1.0, Add, 1_000, 1e-6, 1.2189208857303433),
            (0.02, 2.0, Remove, 5_000, 1e-5, 2.7612038658022002),
            (0.1, 5.0, Remove, 2_000, 1e-8, 4.949397629614037),
        ] {
            let found = epsilon(
                &[(
                    Pair::SampledLaplace {
                        rate,
                        scale,
                        change,
                    },
                    count,
                )],
                delta,
            );
            check(found, golden, 1e-9, 1e-6);
        }
    }

    #[test]
    fn golden_mixtures() {
        let mut mixed = Vec::new();
        for i in 0..15 {
            mixed.push((
                Pair::Gaussian {
                    sigma: 20.0 + f64::from(i),
                },
                1,
            ));
            mixed.push((
                Pair::Laplace {
                    scale: 25.0 + f64::from(i),
                },
                1,
            ));
        }
        for i in 0..20 {
            let (rate, sigma) = (0.002 * (f64::from(i) + 1.0), 1.0 + 0.05 * f64::from(i));
            mixed.push((sampled(rate, sigma, Remove), 10));
        }
        let found = epsilon(&mixed, 1e-6);
        check(found, 1.3481764819699749, 1e-9, 1e-6);
        let distinct: Vec<_> = (0..50)
            .map(|i| {
                (
                    sampled(
                        0.001 + 0.0004 * f64::from(i),
                        0.8 + 0.024 * f64::from(i),
                        Remove,
                    ),
                    20,
                )
            })
            .collect();
        let found = epsilon(&distinct, 1e-6);
        check(found, 1.237134550720071, 1e-9, 1e-6);
    }
}
