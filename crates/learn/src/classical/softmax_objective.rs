//! # A convex objective, and a minimum of it that is verified
//! **Definition.** Examples have sparse features `x` with `|x|² <= ρ <= 1`, as integers in units of `2^-18`, and one of `K` classes. There is a vector of weights for each of `C` scores: one score for two classes, that of
//!   the second against the first; `K` scores for more. `J(θ) = Σ ℓ(θ; x, y) + Λ/2 ‖θ‖² + ⟨b, θ⟩`, where `ℓ` is the logistic loss (of the softmax of scores) and `b` noise in units of `2^-40`. Its gradient is `Σ (p - y) xᵀ + Λθ + b`.
//! **Claim.** [`SoftmaxObjective::minimum`] gives weights `θ`, in units of `2^-64`, at which the real gradient has `‖∇J(θ)‖ <= γ`. For up to `2^30` examples, `m <= 2^20` weights, `Λ >= 0.001` and noise `‖b‖ <= 2^31` it ends, whatever the examples and the noise are, if `γ >= ` [`attainable`].
//! **Proof.** *Of what it gives.* It is what [`verified`](SoftmaxObjective::verified) has passed, which bounds all that differs between the real gradient and the computed one, as a vector. Scores are sums of products of integers, without rounding, and so is how far each is below the
//!   largest. Residuals of an example are off by a vector of length `η`, [`softmax::off`]; times `x`, for `n` examples, that is `n √ρ η`. Their products with `x` are summed without rounding: below `2^67 2^18 2^30`. That sum, `Λθ` and `b` are added in units of `2^-60`, to which the first is rounded once and the second
//!   twice, each downwards: less than `2^-58` for each weight, `√m 2^-58`. So `e_g = n √ρ η + √m 2^-58`. It is added to the norm of what was computed, with a thousandth more for the roundings of that norm, and of the numbers it is of: below `20u` of it, `u = 2^-53`, as [`norm`] says.
//!   *That it ends.* There are Newton's steps in floats, 400 at most, which are only there to be fast. Then it takes steps along verified gradients. Let `v` be the verified norm. Newton's step is tried, and halved up to nine times, until `v` falls by a quarter of the step's share of itself; that is then all that is
//!   `enough` for the next try. If none of them does that, `v/2` is enough for the next. A try is made only where `v` is no more than enough, and above `γ`: so there are finitely many, `log2(v/γ) + 1` that fail and `2^11 ln(v/γ) + 1` that do not. Between them are plain steps, `s = g/β` with
//!   `β >= Λ + nρ/2`, which bounds the second derivative (`diag(p) - ppᵀ <= 1/2`). Let `e = e_g + β √m 2^-65`, where the second is what `β` makes of the rounding of weights. Then `‖βs - ∇J‖ <= e + 4u(‖∇J‖ + e)`, the last for quotients in floats, and
//!   `J(θ - s) <= J(θ) - ⟨∇J, s⟩ + β‖s‖²/2 = J(θ) - (‖∇J‖² - ‖βs - ∇J‖²)/2β`. So while `‖∇J‖ >= 2e` a plain step lowers `J` by at least `‖∇J‖²/4β`, which is `Λ/2β` of what `J` is above its minimum. That is `v²/2Λ` at most where a try failed, and `‖∇J‖²/2β` at least. So after at most
//!   `(2β/Λ) ln(25β/Λ) + 1` of them `‖∇J‖` is below `v/5` or below `2e`: then what is verified, `1.001 (‖∇J‖ + 2e)` at most, is below `v/2`, or at most `4.004e`. [`attainable`] is `4.01e` at `n = 2^30`.
//!   *That nothing overflows.* `J(t) <= J(0) = n ln K` at the minimum `t`, and losses are not negative, so `‖t‖ <= R = 2‖b‖/Λ + √(2n ln K/Λ)`. Newton's steps are taken only to weights that are no longer. Plain ones come nearer to `t`: `θ - ∇J/β` is `1 - Λ/β` times as far at most, and `Λ/β >= 2^-39` is more than what
//!   rounding takes, but for `e/Λ`. So weights are never longer than `3.1R`. With `Λ >= 0.001` and `‖b‖ <= 2^31` that is below `2^44`: scores and their differences are below `2^(44 + 82 + 1/2)` in units. `Λ` times it is below `2^35`, in units of `2^-60`. ∎
//!   How many steps there are follows from examples and noise. The bound above is public but for `n`, and far beyond what is seen: some ten passes, mostly one.

use super::interval::{UNIT, UNIT_BITS};
use super::softmax::{self, SCORE_BITS, SHARE_BITS};

/// Noise is in units of two to minus this.
pub(super) const NOISE_BITS: i32 = 40;
/// Weights are.
pub(super) const WEIGHT_BITS: i32 = SCORE_BITS - UNIT_BITS;
/// Gradients are.
const GRADIENT_BITS: i32 = 60;
/// Of more examples than these nothing is claimed. Each takes 16 bytes, and 16 for each feature that is not zero.
pub(super) const EXAMPLES_MAX: f64 = (1_u64 << 30) as f64;
/// Newton's steps in floats converge in about ten; in about a hundred where classes are many, separable and hardly held.
const NEWTON_MAX: usize = 400;
/// Conjugate gradients for one of them.
const CONJUGATE_MAX: usize = 200;
/// How often a step is halved.
const HALVINGS_MAX: usize = 30;
/// Of how many lengths a step along a verified gradient is tried.
const POLISHED_MAX: u64 = 10;
/// So many probabilities are kept, in 128 MiB, and others computed again: however many examples and classes there are.
const SHARES_MAX: usize = 1 << 24;
/// A direction that solves Newton's equation up to this share of the gradient is good enough.
const FORCING: f64 = 0.1;

/// The features of one example that are not zero: which, and in units.
type Features<'a> = &'a [(usize, i64)];

/// Examples with sparse features. Private.
#[derive(Default)]
pub(super) struct SparseRows {
    /// Where the entries of each example end.
    pub(super) ends: Vec<usize>,
    /// Which feature, and its value in units.
    pub(super) entries: Vec<(usize, i64)>,
    pub(super) classes: Vec<usize>,
}

impl SparseRows {
    fn rows(&self) -> impl Iterator<Item = (Features<'_>, usize)> {
        let starts = std::iter::once(&0).chain(&self.ends);
        let ranges = starts
            .zip(&self.ends)
            .map(|(start, end)| &self.entries[*start..*end]);
        ranges.zip(self.classes.iter().copied())
    }
}

/// What is public of an objective.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// `K`.
    pub(super) classes: usize,
    /// `C`.
    pub(super) scores: usize,
    /// `Λ`.
    pub(super) penalty: f64,
    /// `ρ`, rounded up.
    pub(super) square: f64,
}

impl Shape {
    /// How short a gradient is found for certain, of so many weights, whatever the examples and the noise are: `4.01e`.
    pub(super) fn attainable(self, weights: usize) -> f64 {
        let rounded = self.curvature(EXAMPLES_MAX) * (weights as f64).sqrt();
        4.01 * (self.off(EXAMPLES_MAX, weights) + rounded * f64::from(-WEIGHT_BITS - 1).exp2())
    }

    /// `e_g`: how far a computed gradient is off, for so many examples.
    fn off(self, examples: f64, weights: usize) -> f64 {
        let residuals = examples * self.square.sqrt() * softmax::off(self.classes, self.scores);
        residuals + (weights as f64).sqrt() * f64::from(2 - GRADIENT_BITS).exp2()
    }

    /// `β`, a little up.
    fn curvature(self, examples: f64) -> f64 {
        (self.penalty + 0.5 * self.square * examples) * (1.0 + 4.0 * f64::EPSILON)
    }
}

/// `J`.
pub(super) struct SoftmaxObjective<'a> {
    pub(super) rows: &'a SparseRows,
    pub(super) shape: Shape,
    /// `b`, feature by feature for all scores, in units.
    pub(super) noise: &'a [i128],
}

/// A gradient, and how long the real one is at most.
struct Verified {
    gradient: Vec<f64>,
    norm_upper: f64,
}

/// Weights, and the probabilities of all classes with them for the first examples, as many as are kept.
struct Point {
    weights: Vec<f64>,
    shares: Vec<f64>,
}

impl SoftmaxObjective<'_> {
    /// Weights, in units, where the real gradient is at most `gamma` long.
    pub(super) fn minimum(&self, gamma: f64) -> Vec<i128> {
        self.found(gamma, NEWTON_MAX).0
    }

    /// The same after so many steps in floats at most, and how often a gradient was verified.
    fn found(&self, gamma: f64, newton_max: usize) -> (Vec<i128>, u64) {
        let nothing = vec![0; self.noise.len()];
        let mut weights = self
            .near(&nothing, &self.newton(gamma, newton_max))
            .unwrap_or(nothing);
        let curvature = self.shape.curvature(self.examples());
        let mut found = self.verified(&weights);
        let (mut passes, mut enough) = (1, f64::INFINITY);
        while found.norm_upper > gamma {
            if found.norm_upper <= enough {
                let (better, tried) = self.polished(&weights, &found);
                passes += tried;
                if let Some(better) = better {
                    (weights, found) = better;
                    enough = found.norm_upper;
                    continue;
                }
                enough = found.norm_upper / 2.0;
            }
            for (weight, slope) in weights.iter_mut().zip(&found.gradient) {
                *weight -= in_units(slope / curvature);
            }
            found = self.verified(&weights);
            passes += 1;
        }
        (weights, passes)
    }

    /// Weights that are moved by these, unless they are longer than the minimum can be.
    fn near(&self, weights: &[i128], by: &[f64]) -> Option<Vec<i128>> {
        let noise = norm(&self.noise_values());
        let losses = 2.0 * self.examples() * (self.shape.classes as f64).ln();
        let penalty = self.shape.penalty;
        let most = 2.0 * noise / penalty + (losses / penalty).sqrt();
        let each = values(weights).into_iter().zip(by);
        let length = norm(&each.map(|(weight, by)| weight + by).collect::<Vec<f64>>());
        // What is no number is no shorter.
        let moved = weights.iter().zip(by);
        (length <= most).then(|| moved.map(|(w, by)| w + in_units(*by)).collect())
    }

    /// After the first of Newton's steps along a verified gradient, from the whole one down, that makes it shorter; and how many were tried.
    fn polished(&self, weights: &[i128], found: &Verified) -> (Option<(Vec<i128>, Verified)>, u64) {
        let (_, point) = self.quick(values(weights), self.kept());
        let direction = self.direction(&found.gradient, &point);
        let mut length = 1.0;
        for tried in 1..=POLISHED_MAX {
            let by: Vec<f64> = direction.iter().map(|d| length * d).collect();
            if let Some(moved) = self.near(weights, &by) {
                let next = self.verified(&moved);
                if next.norm_upper <= (1.0 - 0.25 * length) * found.norm_upper {
                    return (Some((moved, next)), tried);
                }
            }
            length *= 0.5;
        }
        (None, POLISHED_MAX)
    }

    /// Of how many examples probabilities are kept.
    fn kept(&self) -> usize {
        SHARES_MAX / self.shape.classes
    }

    fn examples(&self) -> f64 {
        self.rows.classes.len() as f64
    }

    fn noise_values(&self) -> Vec<f64> {
        let one = f64::from(NOISE_BITS).exp2();
        self.noise.iter().map(|b| *b as f64 / one).collect()
    }

    /// Scores become the probabilities of all classes.
    fn probabilities(found: &mut [f64]) {
        let largest = found.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut total = 0.0;
        for score in found.iter_mut() {
            *score = (*score - largest).exp();
            total += *score;
        }
        found.iter_mut().for_each(|odds| *odds /= total);
    }

    /// Where an example's own class is among the residuals: with one score the first class has none.
    fn own(&self, class: usize) -> Option<usize> {
        let Shape {
            classes, scores, ..
        } = self.shape;
        (class + scores).checked_sub(classes)
    }

    /// The gradient with its proof.
    fn verified(&self, weights: &[i128]) -> Verified {
        let Shape {
            classes, scores, ..
        } = self.shape;
        let first = classes - scores;
        let mut sums = vec![0_i128; weights.len()];
        let mut found = vec![0_i128; classes];
        let mut below = vec![0_u128; classes];
        let mut residual = vec![0_i128; scores];
        for (row, class) in self.rows.rows() {
            found.fill(0);
            for (feature, value) in row {
                let weights = &weights[feature * scores..][..scores];
                for (score, weight) in found[first..].iter_mut().zip(weights) {
                    *score += i128::from(*value) * weight;
                }
            }
            let largest = found.iter().copied().max().unwrap_or(0);
            for (below, score) in below.iter_mut().zip(&found) {
                *below = largest.abs_diff(*score);
            }
            softmax::probabilities(&mut below);
            for (residual, share) in residual.iter_mut().zip(&below[first..]) {
                *residual = *share as i128;
            }
            if let Some(own) = self.own(class).and_then(|own| residual.get_mut(own)) {
                *own -= 1 << SHARE_BITS;
            }
            for (feature, value) in row {
                let sums = &mut sums[feature * scores..][..scores];
                for (sum, residual) in sums.iter_mut().zip(&residual) {
                    *sum += residual * i128::from(*value);
                }
            }
        }
        let one = f64::from(GRADIENT_BITS).exp2();
        let each = sums.iter().zip(weights).zip(self.noise);
        let gradient: Vec<f64> = each
            .map(|((sum, weight), noise)| {
                let losses = sum >> (SHARE_BITS + UNIT_BITS - GRADIENT_BITS);
                let noise = noise << (GRADIENT_BITS - NOISE_BITS);
                (losses + pulled(self.shape.penalty, *weight) + noise) as f64 / one
            })
            .collect();
        let off = self.shape.off(self.examples(), weights.len());
        let norm_upper = (norm(&gradient) + off) * 1.001;
        Verified {
            gradient,
            norm_upper,
        }
    }

    /// Do these weights pass?
    #[cfg(test)]
    pub(super) fn is_verified(&self, weights: &[i128], gamma: f64) -> bool {
        self.verified(weights).norm_upper <= gamma
    }

    /// Damped Newton steps by conjugate gradients, in floats, until the gradient seems to be short enough. Whatever comes of them is verified later.
    fn newton(&self, gamma: f64, newton_max: usize) -> Vec<f64> {
        let (mut slope, mut point) = self.quick(vec![0.0; self.noise.len()], self.kept());
        for _ in 0..newton_max {
            if norm(&slope) <= 0.1 * gamma {
                break;
            }
            let direction = self.direction(&slope, &point);
            let mut length = 1.0;
            let mut better = None;
            for _ in 0..HALVINGS_MAX {
                let each = point.weights.iter().zip(&direction);
                let tried = each.map(|(w, d)| w + length * d).collect();
                let (next, found) = self.quick(tried, self.kept());
                // The square of the gradient falls along the direction, since the objective is convex.
                if norm(&next) < (1.0 - 0.25 * length) * norm(&slope) {
                    better = Some((next, found));
                    break;
                }
                length *= 0.5;
            }
            let Some(better) = better else { break };
            (slope, point) = better;
        }
        point.weights
    }

    /// The gradient in floats. Probabilities are kept for so many examples.
    fn quick(&self, weights: Vec<f64>, kept: usize) -> (Vec<f64>, Point) {
        let Shape {
            classes, scores, ..
        } = self.shape;
        let kept = kept.min(self.rows.classes.len());
        let mut shares = Vec::with_capacity(kept * classes);
        let mut slope = vec![0.0; weights.len()];
        let mut found = vec![0.0; classes];
        let mut residual = vec![0.0; scores];
        for (index, (row, class)) in self.rows.rows().enumerate() {
            self.shares(row, &weights, &mut found);
            residual.copy_from_slice(&found[classes - scores..]);
            if let Some(own) = self.own(class).and_then(|own| residual.get_mut(own)) {
                *own -= 1.0;
            }
            if index < kept {
                shares.extend_from_slice(&found);
            }
            spread(row, &residual, &mut slope);
        }
        let noise = self.noise_values();
        for ((slope, weight), noise) in slope.iter_mut().zip(&weights).zip(noise) {
            *slope += self.shape.penalty * weight + noise;
        }
        (slope, Point { weights, shares })
    }

    /// The probabilities of all classes for one example.
    fn shares(&self, row: Features<'_>, weights: &[f64], found: &mut [f64]) {
        found.fill(0.0);
        let first = self.shape.classes - self.shape.scores;
        gather(row, weights, &mut found[first..]);
        Self::probabilities(found);
    }

    /// Nearly `-H⁻¹ g`.
    fn direction(&self, slope: &[f64], point: &Point) -> Vec<f64> {
        let mut direction = vec![0.0; slope.len()];
        let mut rest: Vec<f64> = slope.iter().map(|g| -g).collect();
        let mut along = rest.clone();
        let mut square = dot(&rest, &rest);
        let enough = square * FORCING * FORCING;
        for _ in 0..CONJUGATE_MAX {
            if square <= enough {
                break;
            }
            let curved = self.curved(&along, point);
            let step = square / dot(&along, &curved);
            for index in 0..along.len() {
                direction[index] += step * along[index];
                rest[index] -= step * curved[index];
            }
            let next = dot(&rest, &rest);
            for (along, rest) in along.iter_mut().zip(&rest) {
                *along = rest + next / square * *along;
            }
            square = next;
        }
        direction
    }

    /// `Hv`.
    fn curved(&self, vector: &[f64], point: &Point) -> Vec<f64> {
        let mut curved: Vec<f64> = vector.iter().map(|v| self.shape.penalty * v).collect();
        let mut moves = vec![0.0; self.shape.scores];
        let mut found = vec![0.0; self.shape.classes];
        let mut kept = point.shares.chunks_exact(self.shape.classes);
        for (row, _) in self.rows.rows() {
            let share = match kept.next() {
                Some(share) => share,
                None => {
                    self.shares(row, &point.weights, &mut found);
                    &found
                }
            };
            moves.fill(0.0);
            gather(row, vector, &mut moves);
            let share = &share[self.shape.classes - self.shape.scores..];
            let mean = dot(share, &moves);
            moves
                .iter_mut()
                .zip(share)
                .for_each(|(m, p)| *m = p * (*m - mean));
            spread(row, &moves, &mut curved);
        }
        curved
    }
}

/// Adds the products of an example's features with weights.
fn gather(row: Features<'_>, weights: &[f64], sums: &mut [f64]) {
    for (feature, value) in row {
        let value = *value as f64 / UNIT as f64;
        let weights = &weights[feature * sums.len()..][..sums.len()];
        sums.iter_mut()
            .zip(weights)
            .for_each(|(sum, w)| *sum += value * w);
    }
}

/// Weights as floats.
pub(super) fn values(weights: &[i128]) -> Vec<f64> {
    let one = f64::from(WEIGHT_BITS).exp2();
    weights.iter().map(|weight| *weight as f64 / one).collect()
}

/// The nearest weight.
fn in_units(value: f64) -> i128 {
    (value * f64::from(WEIGHT_BITS).exp2()).round() as i128
}

/// `Λ` times a weight in units of a gradient, less than two of them too small. `Λ` is a normal float above `2^-11` and below `2^31`: an integer of 53 bits, times a power of two from `2^-63` to `2^-22`.
fn pulled(penalty: f64, weight: i128) -> i128 {
    let bits = penalty.to_bits();
    let exponent = (bits >> 52) as i32 - 1075;
    let whole = i128::from(bits & ((1 << 52) - 1) | 1 << 52);
    let (upper, lower) = (weight >> 64, weight & i128::from(u64::MAX));
    let shifted = |value: i128, by: i32| match by >= 0 {
        true => value << by,
        false => value >> -by,
    };
    let by = exponent + GRADIENT_BITS - WEIGHT_BITS;
    shifted(whole * upper, by + 64) + shifted(whole * lower, by)
}

/// Adds an example's numbers times its features.
fn spread(row: Features<'_>, numbers: &[f64], onto: &mut [f64]) {
    for (feature, value) in row {
        let value = *value as f64 / UNIT as f64;
        let onto = &mut onto[feature * numbers.len()..][..numbers.len()];
        onto.iter_mut()
            .zip(numbers)
            .for_each(|(sum, n)| *sum += value * n);
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The length of a vector, to within `20u` of itself: the sums of halves are added.
pub(super) fn norm(vector: &[f64]) -> f64 {
    fn square(part: &[f64]) -> f64 {
        match part.len() {
            0..=8 => dot(part, part),
            more => square(&part[..more / 2]) + square(&part[more / 2..]),
        }
    }
    square(vector).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classical::doubt::{nearly_normal, seed};
    use crate::classical::exact::{exact, exact_float, length, shares, times};
    use dashu_int::IBig;
    use whit_testkit::SeededBits;

    const PENALTY: f64 = 1.5;

    /// Examples with two of five features, and noise.
    fn problem(bits: &mut SeededBits, classes: usize, rows: usize) -> (SparseRows, Vec<i128>) {
        let mut examples = SparseRows::default();
        for _ in 0..rows {
            let first = bits.below(4) as usize;
            let value = |bits: &mut SeededBits| bits.below(2 * 185_000) as i64 - 185_000;
            examples.entries.push((first, value(bits)));
            examples.entries.push((4, value(bits)));
            examples.ends.push(examples.entries.len());
            let class = if bits.below(3) == 0 { 0 } else { first };
            examples.classes.push(class % classes);
        }
        let scores = if classes == 2 { 1 } else { classes };
        let noise = (0..5 * scores).map(|_| noise(3.0 * nearly_normal(bits)));
        (examples, noise.collect())
    }

    fn noise(value: f64) -> i128 {
        (value * f64::from(NOISE_BITS).exp2()) as i128
    }

    fn shape(classes: usize) -> Shape {
        Shape {
            classes,
            scores: if classes == 2 { 1 } else { classes },
            penalty: PENALTY,
            square: 1.0,
        }
    }

    fn objective<'a>(
        (rows, noise): &'a (SparseRows, Vec<i128>),
        classes: usize,
    ) -> SoftmaxObjective<'a> {
        let shape = shape(classes);
        SoftmaxObjective { rows, shape, noise }
    }

    /// The real gradient, to many digits, by nothing that ships.
    fn real_gradient(of: &SoftmaxObjective<'_>, weights: &[i128]) -> Vec<IBig> {
        let Shape {
            classes, scores, ..
        } = of.shape;
        let penalty = exact_float(of.shape.penalty);
        let each = weights.iter().zip(of.noise);
        let mut gradient: Vec<IBig> = each
            .map(|(w, b)| times(&penalty, &exact(*w, WEIGHT_BITS)) + exact(*b, NOISE_BITS))
            .collect();
        for (row, class) in of.rows.rows() {
            let mut found = vec![IBig::ZERO; classes];
            for (feature, value) in row {
                for k in 0..scores {
                    let weight = exact(weights[feature * scores + k], WEIGHT_BITS);
                    found[k + classes - scores] +=
                        times(&weight, &exact((*value).into(), UNIT_BITS));
                }
            }
            let mut residual = shares(&found);
            residual[class] -= exact(1, 0);
            for (feature, value) in row {
                for k in 0..scores {
                    let moved = times(
                        &residual[k + classes - scores],
                        &exact((*value).into(), UNIT_BITS),
                    );
                    gradient[feature * scores + k] += moved;
                }
            }
        }
        gradient
    }

    /// What is computed is as near to the real gradient as is claimed, at weights of all sizes. Noise takes nearly all of the gradient away, so that floats hold what is left and no other rounding is seen.
    #[test]
    fn gradients_are_off_as_little_as_is_claimed() {
        let mut bits = SeededBits::new(seed(798));
        let mut worst = 0.0_f64;
        for (classes, rows, scale) in [
            (2, 5, 1),
            (2, 5, 1 << 10),
            (3, 5, 1),
            (7, 5, 8),
            (2, 0, 1),
            (2, 300, 1),
        ] {
            for _ in 0..20 {
                let (examples, noise) = problem(&mut bits, classes, rows);
                let any = |_: &i128| in_units(f64::from(scale) * nearly_normal(&mut bits));
                let weights: Vec<i128> = noise.iter().map(any).collect();
                let shape = shape(classes);
                let of = SoftmaxObjective {
                    rows: &examples,
                    shape,
                    noise: &noise,
                };
                let unit = f64::from(NOISE_BITS).exp2();
                let found = of.verified(&weights);
                let less = noise.iter().zip(&found.gradient);
                let less: Vec<i128> = less.map(|(b, g)| b - (g * unit) as i128).collect();
                let of = SoftmaxObjective {
                    rows: &examples,
                    shape,
                    noise: &less,
                };
                let found = of.verified(&weights);
                let real = real_gradient(&of, &weights);
                let each = real.iter().zip(&found.gradient);
                let apart: Vec<IBig> = each.map(|(real, g)| real - exact_float(*g)).collect();
                let claimed = of.shape.off(of.examples(), weights.len());
                let share = length(&apart) / claimed;
                assert!(share <= 1.0, "{share} of what is claimed, of {classes}");
                assert!(found.norm_upper >= length(&real));
                worst = worst.max(share);
            }
        }
        assert!(worst > 1.0 / 64.0, "{worst}");
    }

    fn value(of: &SoftmaxObjective<'_>, weights: &[f64]) -> f64 {
        let mut sum = 0.5 * PENALTY * dot(weights, weights) + dot(&of.noise_values(), weights);
        for (row, class) in of.rows.rows() {
            let mut scores = vec![0.0; of.shape.classes];
            gather(
                row,
                weights,
                &mut scores[of.shape.classes - of.shape.scores..],
            );
            let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = scores.iter().map(|score| (score - largest).exp()).sum();
            sum += total.ln() + largest - scores[class];
        }
        sum
    }

    /// Against differences of the function itself, and of the gradient for what is curved.
    #[test]
    fn gradients_are_those_of_the_objective() {
        let mut bits = SeededBits::new(seed(791));
        for classes in [2, 3, 5] {
            let problem = problem(&mut bits, classes, 30);
            let of = objective(&problem, classes);
            let m = of.noise.len();
            let weights: Vec<f64> = (0..m).map(|_| nearly_normal(&mut bits)).collect();
            let (quick, point) = of.quick(weights.clone(), 30);
            let units: Vec<i128> = weights.iter().map(|w| in_units(*w)).collect();
            let exact = of.verified(&units);
            let along: Vec<f64> = (0..m).map(|_| nearly_normal(&mut bits)).collect();
            let curved = of.curved(&along, &point);
            // Probabilities that are not kept are computed again.
            for kept in [0, 7] {
                let (slope, point) = of.quick(weights.clone(), kept);
                assert_eq!(point.shares.len(), kept * classes);
                assert_eq!(
                    (slope, of.curved(&along, &point)),
                    (quick.clone(), curved.clone())
                );
            }
            let moved = |by: f64| -> Vec<f64> {
                weights
                    .iter()
                    .zip(&along)
                    .map(|(w, a)| w + by * a)
                    .collect()
            };
            let slope = (value(&of, &moved(1e-5)) - value(&of, &moved(-1e-5))) / 2e-5;
            assert!((slope - dot(&quick, &along)).abs() < 1e-6 * (1.0 + slope.abs()));
            let [up, down] = [1e-5, -1e-5].map(|by| of.quick(moved(by), 0).0);
            for index in 0..m {
                assert!((exact.gradient[index] - quick[index]).abs() < 1e-12);
                let difference = (up[index] - down[index]) / 2e-5;
                assert!((difference - curved[index]).abs() < 1e-5, "{classes}");
            }
            assert!(exact.norm_upper >= norm(&exact.gradient));
            assert!(exact.norm_upper <= norm(&exact.gradient) * 1.0011 + 1e-11);
        }
    }

    /// Of one example with two classes: the minimum solves `Λθ + b = 1 - p(θ)`.
    #[test]
    fn closed_form() {
        let rows = SparseRows {
            ends: vec![1],
            entries: vec![(0, UNIT)],
            classes: vec![1],
        };
        let of = SoftmaxObjective {
            rows: &rows,
            shape: shape(2),
            noise: &[noise(-PENALTY * 0.7 + 1.0 / (1.0 + 0.7_f64.exp()))],
        };
        assert!((values(&of.minimum(1e-9))[0] - 0.7).abs() < 1e-9);
        let none = SoftmaxObjective {
            rows: &SparseRows::default(),
            noise: &[noise(3.0)],
            ..of
        };
        let found = values(&none.minimum(1e-9))[0];
        assert!((found + 2.0).abs() < 1e-9, "no examples");
    }

    /// What is found is verified, in problems with large noise and many classes too.
    #[test]
    fn minima_are_verified() {
        let mut bits = SeededBits::new(seed(792));
        let gamma = PENALTY / f64::from(1 << 20);
        for (classes, rows, scale) in [(2, 2000, 1), (4, 500, 1), (3, 50, 10_000), (2, 0, 1)] {
            let (examples, noise) = problem(&mut bits, classes, rows);
            let noise = noise.iter().map(|noise| noise * scale).collect();
            let problem = (examples, noise);
            let of = objective(&problem, classes);
            let found = of.minimum(gamma);
            assert!(length(&real_gradient(&of, &found)) <= gamma);
            let found = values(&found);
            let least = value(&of, &found);
            for step in [1.0, -1.0] {
                let beside: Vec<f64> = found.iter().map(|w| w + step).collect();
                assert!(value(&of, &beside) > least);
            }
        }
    }

    /// The steps that surely converge do so without Newton's.
    #[test]
    fn plain_steps_end() {
        let mut bits = SeededBits::new(seed(793));
        let problem = problem(&mut bits, 3, 40);
        let of = objective(&problem, 3);
        let gamma = PENALTY / f64::from(1 << 20);
        let mut weights = vec![0; of.noise.len()];
        let mut steps = 0;
        loop {
            let found = of.verified(&weights);
            if found.norm_upper <= gamma {
                break;
            }
            steps += 1;
            assert!(steps < 2000);
            for (weight, slope) in weights.iter_mut().zip(&found.gradient) {
                *weight -= in_units(slope / of.shape.curvature(40.0));
            }
        }
        assert!(length(&real_gradient(&of, &weights)) <= gamma);
        let (newton, weights) = (values(&of.minimum(gamma)), values(&weights));
        let apart: Vec<f64> = newton.iter().zip(&weights).map(|(a, b)| a - b).collect();
        // Two points whose gradients are short are near each other.
        assert!(norm(&apart) <= 2.0 * gamma / PENALTY);
    }

    /// Memory is bounded however many classes there are.
    #[test]
    fn probabilities_are_kept_up_to_a_bound() {
        for classes in [2, 3, 1000, 1 << 19] {
            let (rows, noise) = (SparseRows::default(), []);
            let shape = shape(classes);
            let of = SoftmaxObjective {
                rows: &rows,
                shape,
                noise: &noise,
            };
            assert!(of.kept() * classes <= SHARES_MAX && of.kept() >= 32);
        }
    }

    /// Ten classes that lines tell apart, hardly held, by corners of a cube: sixty of Newton's steps in floats were not enough, and plain steps took 25,402 passes for what was left.
    #[test]
    fn separable_classes_that_are_hardly_held_end_soon() {
        const FEATURES: usize = 13;
        const CLASSES: usize = 10;
        let mut state = 17_u64.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut uniform = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1_u64 << 53) as f64
        };
        for _ in 0..10 {
            uniform();
        }
        let normal = |uniform: &mut dyn FnMut() -> f64| -> f64 {
            (0..12).map(|_| uniform()).sum::<f64>() - 6.0
        };
        let all = (FEATURES + 1) * CLASSES;
        let truth: Vec<f64> = (0..all).map(|_| normal(&mut uniform)).collect();
        let mut rows = SparseRows::default();
        let one = 1.0 / (1.0 + FEATURES as f64).sqrt();
        for _ in 0..2000 {
            let mut sign = |_| if uniform() < 0.5 { -one } else { one };
            let x: Vec<f64> = (0..FEATURES).map(&mut sign).collect();
            let score = |class: usize| -> f64 {
                let each = x.iter().enumerate();
                each.map(|(j, v)| v * truth[j * CLASSES + class]).sum()
            };
            let first = (0..CLASSES).fold(0, |best, class| {
                if score(class) > score(best) {
                    class
                } else {
                    best
                }
            });
            let each = std::iter::once(&one).chain(&x).enumerate();
            let in_units = each.map(|(column, v)| (column, (v * UNIT as f64) as i64));
            rows.entries.extend(in_units);
            rows.ends.push(rows.entries.len());
            rows.classes.push(first);
        }
        let noise: Vec<i128> = (0..all)
            .map(|_| noise(8.0 * normal(&mut uniform)))
            .collect();
        let shape = Shape {
            penalty: 0.001,
            ..shape(CLASSES)
        };
        let of = SoftmaxObjective {
            rows: &rows,
            shape,
            noise: &noise,
        };
        let gamma = 0.9 / f64::from(1 << 20);
        for (newton_max, most) in [(NEWTON_MAX, 20), (60, 200)] {
            let (found, passes) = of.found(gamma, newton_max);
            assert!(length(&real_gradient(&of, &found)) <= gamma);
            assert!(passes <= most, "{passes} after {newton_max}");
        }
    }

    /// Whatever Newton's steps come to, plain ones end: here along a gradient that no step of a length that is tried makes shorter.
    #[test]
    fn steps_that_make_nothing_shorter_are_refused() {
        let mut bits = SeededBits::new(seed(797));
        let problem = problem(&mut bits, 3, 60);
        let of = objective(&problem, 3);
        let weights = of.minimum(1e-7);
        let found = of.verified(&weights);
        // As if the gradient were nothing: it falls no further.
        let short = Verified {
            gradient: found.gradient.clone(),
            norm_upper: 0.0,
        };
        let (better, tried) = of.polished(&weights, &short);
        assert!(better.is_none() && tried == POLISHED_MAX);
        let (better, _) = of.polished(
            &vec![0; weights.len()],
            &of.verified(&vec![0; weights.len()]),
        );
        let (_, better) = better.expect("shorter");
        assert!(better.norm_upper < of.verified(&vec![0; weights.len()]).norm_upper);
    }

    /// A minimum is found to what is attainable, not only to what plans ask for: there the plain steps and Newton's along verified gradients do the rest.
    #[test]
    fn minima_are_found_as_exactly_as_is_claimed() {
        let mut bits = SeededBits::new(seed(795));
        for (classes, rows) in [(2, 3000), (5, 800), (3, 0)] {
            let problem = problem(&mut bits, classes, rows);
            let of = objective(&problem, classes);
            let attainable = of.shape.attainable(of.noise.len());
            assert!(attainable < 1e-7, "{attainable}");
            let found = of.minimum(attainable);
            assert!(length(&real_gradient(&of, &found)) <= attainable);
        }
    }

    /// Of products in whole numbers.
    #[test]
    fn penalties_are_multiplied_in_integers() {
        let mut bits = SeededBits::new(seed(796));
        for penalty in [0.001, 0.3, 1.0, 1.5, 1e3, 123_456.789, 1e9] {
            for _ in 0..2000 {
                let size = bits.below(70);
                let weight = (i128::from(bits.below(1 << 60)) << size >> 30) - (1 << (size + 20));
                let found = pulled(penalty, weight) as f64;
                let exact = penalty * weight as f64 / 16.0;
                assert!((found - exact).abs() <= 2.0 + 4.0 * f64::EPSILON * exact.abs());
            }
        }
        assert_eq!(pulled(1.5, 32), 3);
        assert_eq!(pulled(1.5, -32), -3);
        assert_eq!(pulled(0.5, 1 << 90), 1 << 85);
    }
}
