//! # A convex objective, and a minimum of it that is verified
//! **Definition.** Examples have sparse features `x` of length at most 1, as integers in units of `2^-18`, and one of `K` classes. There is a vector of weights for each of `C` scores: one score for two classes, that of
//!   the second against the first; `K` scores for more. `J(θ) = Σ ℓ(θ; x, y) + Λ/2 ‖θ‖² + ⟨b, θ⟩`, where `ℓ` is the logistic loss (of the softmax of scores) and `b` noise. Its gradient is `Σ (p - y) xᵀ + Λθ + b`.
//! **Claim.** [`SoftmaxObjective::minimum`] ends, and gives a `θ` with `‖∇J(θ)‖ <= γ` for the real gradient at the floats `θ`.
//! **Proof.** *Of what it gives.* It is what [`verified`](SoftmaxObjective::verified) has passed, which bounds all that differs between the real gradient and the computed one. Weights are multiples of `2^-48`, so that scores are
//!   summed exactly in 128 bits, and so is how far each is below the largest, `d <= 0`, which is rounded once. With `u = 2^-53`, `exp(d)` is off by `u |d| exp(d) <= u/e` for that and by `8u exp(d)` for the exponential (4 ulps). Their sum `T` is at least 1, and off by
//!   `((K - 1)/e + (8 + K) T) u`. So a quotient is off by less than `(2K + 40)u`, whatever the scores are, if the products of `u` with itself are counted, too. Each residual is then rounded to `2^-60`, which is less than `u`, and its products with integers are summed exactly in 128 bits. Features are at most 1 long, so what the sum is off is no more than the sum over examples of `√C`
//!   times what one residual is off. The sum, `Λθ` and `b` are each rounded once and added with two roundings: `4u` of their sizes. What is off is added to the norm of what was computed, with a thousandth more for its own roundings.
//!   *That it ends.* After Newton's steps, which are only there to be fast, it takes steps `s = g/β` along verified gradients, `β = Λ + n/2`, which bounds the second derivative. With `g` off by `e`, and with it what `β` makes of the rounding
//!   of `θ`: `J(θ - s) <= J(θ) - ⟨∇J, s⟩ + β‖s‖²/2 = J(θ) - (‖∇J‖² - ‖βs - ∇J‖²)/2β <= J(θ) - (‖∇J‖² - e²)/2β`. So while `‖∇J‖ >= 2e` it falls by at least `3e²/2β`, and it is bounded from below: after finitely many steps `‖∇J‖ < 2e`,
//!   and what is verified is at most `4.004e`. That is at most `γ`, which is `2^-20 max(Λ, 1)` less `√m 2^-40`, if `e <= 0.99 2^-22 max(Λ, 1)`. The parts of `e` are `n √C (2K + 41) u` for residuals; `8u √m (n + ‖b‖)` for sums, since `Λ‖θ‖` is about `n + ‖b‖` at most where the gradient is short; and
//!   `(Λ + n/2)(√m 2^-49 + u ‖θ‖)` for the rounding of weights, where `‖θ‖ <= 2‖b‖/Λ + √(2 n ln K/Λ)`, since `J(θ) <= J(0) = n ln K`. That is so for a million examples of two classes, a hundred weights, noise of a length up to 100 and `Λ >= 1/4` (the sum is `2.0e-7`, of `2.3e-7`), and for `2^18` examples,
//!   noise up to 30 and `Λ >= 1/30`. ∎

use whit_core::round;

use super::interval::{UNIT, UNIT_BITS};

/// Weights are whole multiples of `2^-48`. Floats hold all of them below 32, and larger ones are such multiples anyway.
const WEIGHT_BITS: i32 = 48;
/// Products of weights below this, in units, with features sum up to less than `2^127` for as many features as there may be.
const WEIGHT_END: f64 = (1_u64 << 40) as f64;
/// Residuals are rounded to this many bits.
const RESIDUAL_BITS: i32 = 60;
/// Half the distance from one to the next float.
const U: f64 = f64::EPSILON / 2.0;
/// Newton's steps converge in about ten; then there are the steps that surely do.
const NEWTON_MAX: usize = 60;
/// Conjugate gradients for one of them.
const CONJUGATE_MAX: usize = 200;
/// How often a step is halved.
const HALVINGS_MAX: usize = 30;
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

/// `J`.
pub(super) struct SoftmaxObjective<'a> {
    pub(super) rows: &'a SparseRows,
    pub(super) classes: usize,
    /// `C`.
    pub(super) scores: usize,
    /// `Λ`.
    pub(super) penalty: f64,
    /// `b`, feature by feature for all scores.
    pub(super) noise: &'a [f64],
}

/// A gradient, and how far the real one is from it, at most.
struct Verified {
    gradient: Vec<f64>,
    norm_upper: f64,
}

impl SoftmaxObjective<'_> {
    /// Weights where the real gradient is at most `gamma` long.
    pub(super) fn minimum(&self, gamma: f64) -> Vec<f64> {
        let mut weights = self.newton(gamma);
        let curvature = self.penalty + 0.5 * self.rows.classes.len() as f64;
        loop {
            let found = self.verified(&weights);
            if found.norm_upper <= gamma {
                return weights;
            }
            for (weight, slope) in weights.iter_mut().zip(&found.gradient) {
                *weight = on_grid(*weight - slope / curvature);
            }
        }
    }

    /// Scores become the probabilities of all classes.
    fn probabilities(found: &mut [f64]) {
        let largest = found.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut total = 0.0;
        for score in found.iter_mut() {
            *score = round::exp_up(*score - largest);
            total += *score;
        }
        found.iter_mut().for_each(|odds| *odds /= total);
    }

    /// For each example its features, its residuals `p - y` and its probabilities. `score` adds scores to zeros, that of the first of two classes, which stays zero, among them; or what they are less the largest.
    fn residuals(
        &self,
        mut score: impl FnMut(Features<'_>, &mut [f64]),
        mut each: impl FnMut(Features<'_>, &[f64], &[f64]),
    ) {
        let mut found = vec![0.0; self.classes];
        let mut residual = vec![0.0; self.scores];
        for (row, class) in self.rows.rows() {
            found.fill(0.0);
            score(row, &mut found);
            Self::probabilities(&mut found);
            residual.copy_from_slice(&found[self.classes - self.scores..]);
            // With one score the first class has none.
            let own = (class + self.scores).checked_sub(self.classes);
            if let Some(own) = own.and_then(|own| residual.get_mut(own)) {
                *own -= 1.0;
            }
            each(row, &residual, &found);
        }
    }

    /// The gradient with its proof.
    fn verified(&self, weights: &[f64]) -> Verified {
        let mut sums = vec![0_i128; weights.len()];
        let fine = f64::from(RESIDUAL_BITS).exp2();
        let whole = |w: &f64| (w.clamp(-WEIGHT_END, WEIGHT_END) * grid()) as i128;
        let whole: Vec<i128> = weights.iter().map(whole).collect();
        let mut scores = vec![0_i128; self.classes];
        let exact = |row: Features<'_>, found: &mut [f64]| {
            scores.fill(0);
            for (feature, value) in row {
                let whole = &whole[feature * self.scores..][..self.scores];
                let scores = &mut scores[self.classes - self.scores..];
                for (score, whole) in scores.iter_mut().zip(whole) {
                    *score += i128::from(*value) * whole;
                }
            }
            let largest = scores.iter().copied().max().unwrap_or(0);
            for (found, score) in found.iter_mut().zip(&scores) {
                *found = (score - largest) as f64 / grid() / UNIT as f64;
            }
        };
        self.residuals(exact, |row, residual, _| {
            for (feature, value) in row {
                let sums = &mut sums[feature * self.scores..][..self.scores];
                for (sum, residual) in sums.iter_mut().zip(residual) {
                    *sum += (residual * fine).round() as i128 * i128::from(*value);
                }
            }
        });
        let examples = self.rows.classes.len() as f64;
        let mut off = examples * (2 * self.classes + 41) as f64 * U * (self.scores as f64).sqrt();
        let one = f64::from(RESIDUAL_BITS + UNIT_BITS).exp2();
        let each = sums.iter().zip(weights).zip(self.noise);
        let gradient: Vec<f64> = each
            .map(|((sum, weight), noise)| {
                let (sum, pull) = (*sum as f64 / one, self.penalty * weight);
                off += 4.0 * U * (sum.abs() + pull.abs() + noise.abs());
                sum + pull + noise
            })
            .collect();
        // Weights that exact sums have no room for are not verified; nor is what is no number, which passes no comparison.
        let fits = weights.iter().all(|weight| weight.abs() < WEIGHT_END);
        let off = if fits { off } else { f64::INFINITY };
        let norm_upper = (norm(&gradient) + off) * 1.001;
        Verified {
            gradient,
            norm_upper,
        }
    }

    /// Damped Newton steps by conjugate gradients, in floats, until the gradient seems to be short enough. Whatever comes of them is verified later.
    fn newton(&self, gamma: f64) -> Vec<f64> {
        let mut weights = vec![0.0; self.noise.len()];
        let (mut slope, mut shares) = self.quick(&weights);
        for _ in 0..NEWTON_MAX {
            if norm(&slope) <= 0.1 * gamma {
                break;
            }
            let direction = self.direction(&slope, &shares);
            let mut length = 1.0;
            let mut better = None;
            for _ in 0..HALVINGS_MAX {
                let each = weights.iter().zip(&direction);
                let tried: Vec<f64> = each.map(|(w, d)| on_grid(w + length * d)).collect();
                let (next, found) = self.quick(&tried);
                // The square of the gradient falls along the direction, since the objective is convex.
                if norm(&next) < (1.0 - 0.25 * length) * norm(&slope) {
                    better = Some((tried, next, found));
                    break;
                }
                length *= 0.5;
            }
            let Some(better) = better else { break };
            (weights, slope, shares) = better;
        }
        weights
    }

    /// The gradient, and the probabilities of all examples.
    fn quick(&self, weights: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let mut shares = Vec::with_capacity(self.rows.classes.len() * self.classes);
        let mut slope = vec![0.0; weights.len()];
        let first = self.classes - self.scores;
        let score =
            |row: Features<'_>, found: &mut [f64]| gather(row, weights, &mut found[first..]);
        self.residuals(score, |row, residual, found| {
            shares.extend_from_slice(found);
            spread(row, residual, &mut slope);
        });
        for ((slope, weight), noise) in slope.iter_mut().zip(weights).zip(self.noise) {
            *slope += self.penalty * weight + noise;
        }
        (slope, shares)
    }

    /// Nearly `-H⁻¹ g`.
    fn direction(&self, slope: &[f64], shares: &[f64]) -> Vec<f64> {
        let mut direction = vec![0.0; slope.len()];
        let mut rest: Vec<f64> = slope.iter().map(|g| -g).collect();
        let mut along = rest.clone();
        let mut square = dot(&rest, &rest);
        let enough = square * FORCING * FORCING;
        for _ in 0..CONJUGATE_MAX {
            if square <= enough {
                break;
            }
            let curved = self.curved(&along, shares);
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
    fn curved(&self, vector: &[f64], shares: &[f64]) -> Vec<f64> {
        let mut curved: Vec<f64> = vector.iter().map(|v| self.penalty * v).collect();
        let mut moves = vec![0.0; self.scores];
        let shares = shares.chunks_exact(self.classes);
        for ((row, _), share) in self.rows.rows().zip(shares) {
            moves.fill(0.0);
            gather(row, vector, &mut moves);
            let share = &share[self.classes - self.scores..];
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

/// The nearest weight that scores are exact for.
fn on_grid(weight: f64) -> f64 {
    (weight * grid()).round() / grid()
}

fn grid() -> f64 {
    f64::from(WEIGHT_BITS).exp2()
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

fn norm(vector: &[f64]) -> f64 {
    dot(vector, vector).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classical::doubt::{nearly_normal, seed};
    use whit_testkit::SeededBits;

    const PENALTY: f64 = 1.5;

    /// Examples with two of five features, and noise.
    fn problem(bits: &mut SeededBits, classes: usize, rows: usize) -> (SparseRows, Vec<f64>) {
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
        let noise = (0..5 * scores).map(|_| 3.0 * nearly_normal(bits)).collect();
        (examples, noise)
    }

    fn objective<'a>(
        (rows, noise): &'a (SparseRows, Vec<f64>),
        classes: usize,
    ) -> SoftmaxObjective<'a> {
        let scores = if classes == 2 { 1 } else { classes };
        SoftmaxObjective {
            rows,
            classes,
            scores,
            penalty: PENALTY,
            noise,
        }
    }

    fn value(of: &SoftmaxObjective<'_>, weights: &[f64]) -> f64 {
        let mut sum = 0.5 * PENALTY * dot(weights, weights) + dot(of.noise, weights);
        for (row, class) in of.rows.rows() {
            let mut scores = vec![0.0; of.classes];
            gather(row, weights, &mut scores[of.classes - of.scores..]);
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
            let weights: Vec<f64> = (0..m).map(|_| on_grid(nearly_normal(&mut bits))).collect();
            let (quick, shares) = of.quick(&weights);
            let exact = of.verified(&weights);
            let along: Vec<f64> = (0..m).map(|_| nearly_normal(&mut bits)).collect();
            let curved = of.curved(&along, &shares);
            let moved = |by: f64| -> Vec<f64> {
                weights
                    .iter()
                    .zip(&along)
                    .map(|(w, a)| w + by * a)
                    .collect()
            };
            let slope = (value(&of, &moved(1e-5)) - value(&of, &moved(-1e-5))) / 2e-5;
            assert!((slope - dot(&quick, &along)).abs() < 1e-6 * (1.0 + slope.abs()));
            let [up, down] = [1e-5, -1e-5].map(|by| of.quick(&moved(by)).0);
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
        let noise = [-PENALTY * 0.7 + 1.0 / (1.0 + 0.7_f64.exp())];
        let of = SoftmaxObjective {
            rows: &rows,
            classes: 2,
            scores: 1,
            penalty: PENALTY,
            noise: &noise,
        };
        assert!((of.minimum(1e-9)[0] - 0.7).abs() < 1e-9);
        let none = SoftmaxObjective {
            rows: &SparseRows::default(),
            noise: &[3.0],
            ..of
        };
        assert!((none.minimum(1e-9)[0] + 2.0).abs() < 1e-9, "no examples");
    }

    /// What is found is verified, in problems with large noise and many classes too.
    #[test]
    fn minima_are_verified() {
        let mut bits = SeededBits::new(seed(792));
        let gamma = PENALTY / f64::from(1 << 20);
        for (classes, rows, scale) in [(2, 2000, 1.0), (4, 500, 1.0), (3, 50, 1e4), (2, 0, 1.0)] {
            let (examples, noise) = problem(&mut bits, classes, rows);
            let noise = noise.iter().map(|noise| noise * scale).collect();
            let problem = (examples, noise);
            let of = objective(&problem, classes);
            let found = of.minimum(gamma);
            assert!(of.verified(&found).norm_upper <= gamma);
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
        let mut weights = vec![0.0; of.noise.len()];
        let mut steps = 0;
        loop {
            let found = of.verified(&weights);
            if found.norm_upper <= gamma {
                break;
            }
            steps += 1;
            assert!(steps < 2000);
            for (weight, slope) in weights.iter_mut().zip(&found.gradient) {
                *weight = on_grid(*weight - slope / (PENALTY + 20.0));
            }
        }
        let newton = of.minimum(gamma);
        let apart: Vec<f64> = newton.iter().zip(&weights).map(|(a, b)| a - b).collect();
        // Two points whose gradients are short are near each other.
        assert!(norm(&apart) <= 2.0 * gamma / PENALTY);
    }
}
