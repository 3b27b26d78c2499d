//! # Logistic regression by approximate-minima perturbation
//! **Definition.** Features have declared [domains](Domain): a number is its place in the interval, from -1/2 at the lower end to 1/2 at the upper, a category is one of as many features that are 0 or 1, and one feature is always 1. All are divided by a declared norm, and examples that are longer than 1 then are
//!   shortened to 1: in L2 if the budget's `δ` is above zero, in L1 else. `J(θ) = Σ ℓ(θ; x, y) + Λ/2 ‖θ‖² + ⟨b, θ⟩` with the logistic loss `ℓ` (for more than two classes that of the softmax) and noise `b`. What is released is a vector at which the gradient
//!   of `J` is verified to be at most `γ = 2^-20 max(Λ, 1)` long, with noise. \[CMS11, Alg. 2; INS+19, Alg. 1\]
//! **Requires.** Domains, classes, norm and `Λ` that were declared without the data; and so few examples that a minimum is found for certain: see `softmax_objective.rs`, whose condition a million examples meet.
//! **Guarantee.** With `K` classes let `κ = ln(1 + ρ/4Λ)` for two and `(K - 1) ln(1 + ρ/KΛ)` for more, where `ρ` bounds the squares of examples: see `Lengths`. Under add/remove of one example the exact minimum for real noise is
//!   - for normal `b` of deviation `σ`: `(ε' + κ, (K - 1) δ')`-DP wherever the Gaussian mechanism is `(ε', δ')`-DP at sensitivity `1`, or `√2` for more than two classes;
//!   - for Laplace `b` of scale `s`: `(1/s + κ)`-DP, or `2/s + κ`.
//!
//!   The whole is that, composed with the Laplace mechanism of [`minima_perturbation`](whit_mechanism::minima_perturbation), which has a fiftieth of `ε`.
//! **Proof.** `∇J` without `b` is a smooth bijection `G` of all weights, since `J` is strongly convex: `b = -G(θ)` at the minimum `θ`, whose density is that of the noise at `-G(θ)` times `det(∇G)`. Let `D'` be `D` with one example `(x, y)` more. Then
//!   `G' = G + a xᵀ` with the residual `a = p(θ) - e_y` (of the second class alone, if there are two).
//!   1. *Determinants.* `∇G' = ∇G + S ⊗ xxᵀ` with `S = diag(p) - ppᵀ >= 0` (or `p(1 - p)`), and `∇G >= Λ`. So `det ∇G'/det ∇G = Π (1 + a_i)`, where the `a_i >= 0` are the eigenvalues of `(∇G)^(-1/2) (S ⊗ xxᵀ) (∇G)^(-1/2)`. At most `K - 1` of them are not zero, since `S` takes a
//!      vector of ones to zero, and their sum is at most `tr(S) |x|²/Λ <= tr(S) ρ/Λ`, with `tr S = 1 - Σ p² <= 1 - 1/K`, or `p(1 - p) <= 1/4`. The logarithm is concave, so the largest `Σ ln(1 + a_i)` is that of equal ones: `0 <= ln det ∇G' - ln det ∇G <= κ`.
//!   2. *Laplace noise.* The logarithms of densities differ by at most `‖a xᵀ‖₁/s = ‖a‖₁ ‖x‖₁/s`, and `‖a‖₁` is at most 2, or 1 for two classes.
//!   3. *Normal noise.* They differ by `(‖b ∓ a xᵀ‖² - ‖b‖²)/2σ² = (∓2 a·(bx) + ‖a‖²‖x‖²)/2σ²`, where `b` is normal if `θ` is drawn in the world it belongs to. In `a` this is convex, and `a` is a mean of the points `e_k - e_y`, of which one is 0: so it is at
//!      most the largest of 0 and `L_k`, the same at `a = e_k - e_y` for the `K - 1` other classes. Each `L_k` is distributed as the privacy loss of a Gaussian mechanism at sensitivity `√2 ‖x‖`, or `‖x‖`. For `ε' >= 0`, `(1 - exp(ε' - max(0, L_k, …)))⁺ <= Σ (1 - exp(ε' - L_k))⁺`,
//!      whose mean is at most `(K - 1) δ'`.
//!
//!   With 1, the loss is at most that plus `κ`, in both directions. That is the first requirement of the mechanism. For the second: noise is drawn in units of `2^-40`, so that the gradient for the real noise is at most `√m 2^-40` longer than the verified one for `m` weights; that is
//!   part of `γ`. `J` is `Λ`-strongly convex, so what is found is within `γ/Λ` of the minimum in L2, `√m γ/Λ` in L1. Rounding to the output's grid of `2^-32` adds `m 2^-33`. ∎
//!   For two classes this is the loss of the Gaussian mechanism itself, and not twice its `δ` as for all linear models \[RKW23\]: residuals have the sign that the class gives them.
//! **Error.** The noise has the [`deviation`](super::Terms::deviation) in each coordinate of the gradient, where an example of full length adds up to 1. That of the output is far less.

use serde::{Deserialize, Serialize};
use whit_accounting::{Bracket, epsilon, price};
use whit_core::{
    AddRemove, Delta, Entropy, Epsilon, Event, Mechanism, Neighbours, Probability, Ratio, Scale,
    Secret, Sensitivity, round,
};
use whit_mechanism::{MinimaPerturbation, ObjectiveNoise, Release};

use super::decision_tree::first_of_largest;
use super::domain::Domain;
use super::interval::UNIT;
use super::noisy_sums::{NoisySums, Reach};
use super::pca::shorten;
use super::residual::{length, scores_of};
use super::softmax_objective::{SoftmaxObjective, SparseRows};
use super::{Answers, Budget, COORDINATES_MAX, Classical, Fit, Takes, Terms, counted};
use crate::data::{Answer, Dataset};
use crate::error::{Error, Result, within};
use crate::payment::{Payment, Priced, sealed::Sealed};

/// The grid of the noise.
const NOISE_BITS: i32 = 40;
/// The grid of the output.
const OUTPUT_BITS: i32 = 32;
/// `γ` is `max(Λ, 1)` times two to minus this.
const GAMMA_BITS: i32 = 20;
/// The output has a fiftieth of the budget: its noise is small anyway.
const OUTPUT_SHARE: f64 = 0.02;
/// With smaller ones the output would be so far from the minimum, as far as that is verified, that its noise would be seen.
const PENALTY_MIN: f64 = 0.001;
/// The penalty takes this share of epsilon, or less.
const PENALTY_SHARE: f64 = 0.3;
/// What sums of rounded numbers may take of an epsilon.
const ROUNDING: f64 = 1.0 / (1_u64 << 40) as f64;

/// What is declared of the objective.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Penalised {
    /// How long examples are, at most: in L2 if the budget's delta is above zero, in L1 else. Longer ones are shortened.
    pub norm: f64,
    /// `Λ`.
    pub penalty: f64,
}

impl Penalised {
    /// A norm that shortens nothing, and a penalty that takes three tenths of epsilon: weights that are held less are worth some noise. But no less than one over the square of the norm, which is a penalty of 1 for the weights of features as they were before they were divided: less than that would buy nothing.
    pub fn fitting(domains: &[Domain], classes: u32, budget: Budget) -> Self {
        let lengths = Lengths::of(domains);
        let norm = match budget.delta() == Delta::ZERO {
            true => lengths.l1.to_f64_up(),
            false => lengths.l2_square.to_f64_up().sqrt(),
        };
        let square = lengths.square(norm, budget.delta());
        let square = square.map_or(1.0, |square| square.to_f64_up());
        let (parts, of) = curvature(classes.max(2) as usize);
        let each = PENALTY_SHARE * budget.epsilon().value() / parts as f64;
        let shared = square / (of as f64 * each.exp_m1());
        Self {
            norm,
            penalty: shared.max(norm.powi(-2)).max(PENALTY_MIN),
        }
    }
}

/// How many eigenvalues a loss's second derivative has, and one over what each is at most if they are equal, for an example of length one.
fn curvature(classes: usize) -> (usize, usize) {
    match classes {
        2 => (1, 4),
        more => (more - 1, more),
    }
}

/// How long examples are at most, before they are divided by the norm.
///
/// **Claim.** After that, with entries `v` in units: `Σ v²` is at most `UNIT²` times [`Self::square`].
/// **Proof.** An entry is at most 1 in size, or 1/2 for numbers, times `UNIT²/N`, where `N` is the norm in units: division of integers rounds to zero, and so does shortening. So `Σ v²` is at most `l2_square (UNIT²/N)²`; it is
/// at most the largest entry times `Σ |v|`, which is `UNIT` at most if examples are shortened in L1; and at most `UNIT²` in either case. ∎
struct Lengths {
    l1: Ratio,
    l2_square: Ratio,
}

impl Lengths {
    fn of(domains: &[Domain]) -> Self {
        let numbers = domains.iter().filter(|domain| domain.is_ordered()).count();
        let whole = 1 + domains.len() - numbers;
        let sum = |part: u128| {
            let sum = Ratio::new(part * whole as u128 + numbers as u128, part);
            sum.expect("two and four are not zero")
        };
        Self {
            l1: sum(2),
            l2_square: sum(4),
        }
    }

    /// `ρ`.
    fn square(&self, norm: f64, delta: Delta) -> Result<Ratio> {
        let inverse = Ratio::new(UNIT as u128, units_of(norm) as u128)?;
        let square = &self.l2_square * &(&inverse * &inverse);
        let square = square.min(Ratio::one());
        Ok(match delta == Delta::ZERO {
            true => square.min(inverse),
            false => square,
        })
    }
}

/// A norm in units.
fn units_of(norm: f64) -> i64 {
    ((norm * UNIT as f64).round() as i64).max(1)
}

/// `κ`, rounded up.
fn determinants(classes: usize, square: &Ratio, penalty: f64) -> f64 {
    let (parts, of) = curvature(classes);
    let each = round::div_up(square.to_f64_up(), round::mul_down(of as f64, penalty));
    round::mul_up(parts as f64, round::ln_up(round::add_up(1.0, each)))
}

/// What a fit of logistic regression would do and cost.
#[derive(Clone, Debug, PartialEq)]
pub struct MinimaPerturbationPlan {
    domains: Vec<Domain>,
    classes: usize,
    objective: Penalised,
    budget: Budget,
    /// In the objective.
    noise: NoisySums,
    minimum: Mechanism,
    output: Scale,
    event: Event,
    epsilon: Bracket,
}

/// More classes are refused. What rounding may do to the gradient of `2^25` examples, the most that there can be, is `2^25 (2K + 41) √K u`, and a
/// minimum is verified only if that is below `γ`, `2^-20` or more: it is 0.88 of that for 12 classes, and more than that for 14. A fit that is never
/// verified does not end, which would tell that there are so many examples.
const CLASSES_MAX: usize = 12;

impl MinimaPerturbationPlan {
    /// For examples with features of these domains, of so many classes.
    pub fn new(
        domains: Vec<Domain>,
        classes: u32,
        objective: Penalised,
        budget: Budget,
    ) -> Result<Self> {
        let most = "a whole number from 1 to 2^20";
        counted("features", domains.len(), COORDINATES_MAX, most)?;
        let classes = classes as usize;
        let passes = (2..=CLASSES_MAX).contains(&classes);
        within(
            "classes",
            classes as f64,
            passes,
            "a whole number from 2 to 12 for this model",
        )?;
        let weights = columns(&domains).saturating_mul(scores_of(classes));
        let range = "at most 2^20 features, with each category one of its own, times classes";
        within(
            "the number of weights",
            weights as f64,
            weights <= COORDINATES_MAX,
            range,
        )?;
        let norm = objective.norm;
        let passes = (1e-3..=1e6).contains(&norm);
        within("norm", norm, passes, "a number from 0.001 to 10^6")?;
        let penalty = objective.penalty;
        let passes = (PENALTY_MIN..=1e9).contains(&penalty);
        within("penalty", penalty, passes, "a number from 0.001 to 10^9")?;
        let exact = |value: f64| Ratio::from_f64(value).ok_or(Error::Unbound);
        let square = Lengths::of(&domains).square(norm, budget.delta())?;
        let curved = determinants(classes, &square, penalty);
        // What is left of epsilon for the noise.
        let whole = budget.epsilon().value();
        let taken = round::add_up(whole * OUTPUT_SHARE, curved);
        let left = round::sub_down(whole, taken) * (1.0 - ROUNDING);
        let range = "so large that the logarithm of 1 and a quarter over it (for more than two classes, one over it) is well below epsilon";
        within("penalty", penalty, left >= whole / 64.0, range)?;
        let noise = noise(classes, left, budget.delta())?;
        let epsilon_of_minimum = &exact(left)? + &exact(curved)?;
        let minimum = match budget.delta() == Delta::ZERO {
            true => Mechanism::Pure {
                epsilon: epsilon_of_minimum,
            },
            false => Mechanism::Approximate {
                epsilon: epsilon_of_minimum,
                delta: Probability::new(
                    &exact(share_of(budget.delta(), classes))? * &Ratio::from(classes as u64 - 1),
                )?,
            },
        };
        let apart = apart(weights, penalty);
        let each = Epsilon::new(whole * OUTPUT_SHARE)?;
        let output = whit_accounting::calibrate::laplace_scale(&apart, each)?;
        let mechanism = mechanism(&noise, &minimum, &output, apart);
        let event = mechanism.event();
        let price = price(&event, budget.delta())?;
        if price.epsilon > budget.epsilon() || price.delta > budget.delta() {
            let what = "noise of the objective";
            return Err(whit_accounting::Error::Unverified { what }.into());
        }
        let upper = price.epsilon.value();
        let lower = epsilon(&event, budget.delta())?.bounds.lower();
        Ok(Self {
            domains,
            classes,
            objective,
            budget,
            noise,
            minimum,
            output,
            event,
            epsilon: Bracket::new(lower.min(upper), upper),
        })
    }

    fn weights(&self) -> usize {
        columns(&self.domains) * scores_of(self.classes)
    }

    /// The released weights.
    fn release(
        &self,
        rows: Secret<SparseRows>,
        payment: Payment,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Vec<f64>>> {
        payment.lay_down(&self.event.fingerprint())?;
        let weights = self.weights();
        let apart = apart(weights, self.objective.penalty);
        let mechanism = mechanism(&self.noise, &self.minimum, &self.output, apart);
        let solve = |noise: Secret<Vec<i128>>| {
            let one = f64::from(NOISE_BITS).exp2();
            let noise = noise.map(|noise| noise.iter().map(|b| *b as f64 / one).collect());
            let noise: Vec<f64> = noise.expose();
            rows.map(|rows| self.solve(&rows, &noise))
        };
        let noisy = mechanism.release(weights, solve, entropy)?;
        if noisy.event() != &self.event {
            return Err(Error::Unbound);
        }
        let one = f64::from(OUTPUT_BITS).exp2();
        Ok(noisy.map(|noisy| noisy.iter().map(|w| *w as f64 / one).collect()))
    }

    /// The verified minimum on the grid of the output.
    fn solve(&self, rows: &SparseRows, noise: &[f64]) -> Vec<i64> {
        let penalty = self.objective.penalty;
        let objective = SoftmaxObjective {
            rows,
            classes: self.classes,
            scores: scores_of(self.classes),
            penalty,
            noise,
        };
        // A product with a power of two is exact; the rest is rounded down. It is above zero for as many weights as there may be.
        let gamma = penalty.max(1.0) * f64::from(-GAMMA_BITS).exp2();
        let rounded = round::mul_up(
            round::sqrt_up(noise.len() as f64),
            f64::from(-NOISE_BITS).exp2(),
        );
        let found = objective.minimum(round::sub_down(gamma, rounded));
        let one = f64::from(OUTPUT_BITS).exp2();
        found.iter().map(|w| (w * one).round() as i64).collect()
    }

    /// All examples that are not empty.
    fn read(&self, data: &Dataset) -> SparseRows {
        let mut rows = SparseRows::default();
        for example in (0..data.rows()).filter_map(|row| data.example(row)) {
            if let Answer::Class(class) = example.answer {
                rows.entries.extend(self.row(example.features));
                rows.ends.push(rows.entries.len());
                rows.classes.push(class as usize);
            }
        }
        rows
    }

    /// The features of an example that are not zero, no longer than one.
    fn row(&self, features: &[f32]) -> Vec<(usize, i64)> {
        let (columns, mut values) = expanded(&self.domains, self.objective.norm, features);
        match self.budget.delta() == Delta::ZERO {
            true => shorten_l1(&mut values),
            false => shorten(&mut values),
        }
        columns.into_iter().zip(values).collect()
    }
}

/// One that is always 1, and for each feature itself or its categories.
fn columns(domains: &[Domain]) -> usize {
    let each = domains.iter().map(|domain| {
        if domain.is_ordered() {
            1
        } else {
            domain.bins()
        }
    });
    each.fold(1, usize::saturating_add)
}

/// Which columns are not zero, and their values over the norm.
fn expanded(domains: &[Domain], norm: f64, features: &[f32]) -> (Vec<usize>, Vec<i64>) {
    let norm = units_of(norm);
    let over = |value: i64| value * UNIT / norm;
    let (mut columns, mut values) = (vec![0], vec![over(UNIT)]);
    let mut next = 1;
    for (domain, value) in domains.iter().zip(features) {
        match domain.place(*value) {
            Some(place) => {
                columns.push(next);
                values.push(over(place / 2));
                next += 1;
            }
            None => {
                columns.push(next + domain.bin(*value));
                values.push(over(UNIT));
                next += domain.bins();
            }
        }
    }
    (columns, values)
}

/// Makes the sum of sizes at most `UNIT`.
fn shorten_l1(values: &mut [i64]) {
    let total: i128 = values.iter().map(|value| i128::from(value.abs())).sum();
    if total > i128::from(UNIT) {
        for value in values {
            *value = (i128::from(*value) * i128::from(UNIT) / total) as i64;
        }
    }
}

/// The noise of the objective, for what is left of epsilon.
fn noise(classes: usize, left: f64, delta: Delta) -> Result<NoisySums> {
    let reach = Reach {
        l1: Ratio::from(length(classes)),
        l2_square: Ratio::from(length(classes)),
        coordinates: 1,
        bits: NOISE_BITS,
    };
    let delta = Delta::new(share_of(delta, classes))?;
    NoisySums::new(reach, 1, Budget::new(Epsilon::new(left)?, delta)?)
}

/// A share of delta for each of the other classes, so that all together are no more.
fn share_of(delta: Delta, classes: usize) -> f64 {
    match (delta == Delta::ZERO, classes) {
        (true, _) => 0.0,
        (false, 2) => delta.value(),
        (false, _) => (delta.value() / (classes - 1) as f64).next_down(),
    }
}

/// How far apart outputs of neighbours are, given the exact minimum, in units of the output: twice `√m γ/Λ` and what the rounding adds.
fn apart(weights: usize, penalty: f64) -> Ratio {
    let root = (weights as u64).isqrt() + 1;
    // Not below one, nor above a thousand.
    let over = round::div_up(1.0, penalty.min(1.0)).ceil() as u64;
    Ratio::from(2 * over * (root << (OUTPUT_BITS - GAMMA_BITS)) + weights as u64 + 1)
}

fn mechanism(
    noise: &NoisySums,
    minimum: &Mechanism,
    output: &Scale,
    apart: Ratio,
) -> MinimaPerturbation<AddRemove> {
    let noise: ObjectiveNoise = noise.objective_noise();
    MinimaPerturbation::new(
        noise,
        minimum.clone(),
        output.clone(),
        Sensitivity::new(apart),
    )
}

impl Sealed for MinimaPerturbationPlan {}

impl Priced for MinimaPerturbationPlan {
    fn event(&self) -> &Event {
        &self.event
    }

    fn guarantee(&self) -> Result<Event> {
        let exact = |value: f64| Ratio::from_f64(value).ok_or(Error::Unbound);
        let epsilon = exact(self.epsilon.upper())?;
        let delta = self.budget.delta();
        let guarantee = match delta == Delta::ZERO {
            true => Mechanism::Pure { epsilon },
            false => Mechanism::Approximate {
                epsilon,
                delta: Probability::new(exact(delta.value())?)?,
            },
        };
        Ok(Event::new(Neighbours::AddRemove, guarantee))
    }
}

impl Classical for MinimaPerturbationPlan {
    type Model = LogisticRegression;

    fn takes(&self) -> Takes {
        Takes {
            features: self.domains.len(),
            answers: Answers::Classes(self.classes as u32),
        }
    }

    fn terms(&self) -> Terms {
        Terms {
            budget: self.budget,
            epsilon: self.epsilon,
            deviation: self.noise.deviation(),
        }
    }

    fn spend(
        fit: Fit<'_, Self>,
        payment: Payment,
        entropy: &mut impl Entropy,
    ) -> Result<Release<LogisticRegression>> {
        let plan = fit.plan();
        let rows = fit.data().as_ref().map(|data| plan.read(data));
        let weights = plan.release(rows, payment, entropy)?;
        Ok(weights.map(|weights| LogisticRegression {
            domains: plan.domains.clone(),
            classes: plan.classes,
            norm: plan.objective.norm,
            weights,
        }))
    }
}

/// Weights of features for scores. Public.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogisticRegression {
    domains: Vec<Domain>,
    classes: usize,
    norm: f64,
    weights: Vec<f64>,
}

impl LogisticRegression {
    /// Do its parts fit each other? A file may say anything.
    pub(super) fn is_whole(&self) -> bool {
        let weights = columns(&self.domains).checked_mul(scores_of(self.classes));
        let domains = self.domains.iter().all(|domain| domain.is_whole());
        domains && self.classes >= 2 && weights == Some(self.weights.len())
    }

    /// The class with the largest score; the first of several. Features that are missing are not looked at.
    pub fn predict(&self, features: &[f32]) -> u32 {
        let scores = self.scores(features);
        match scores.as_slice() {
            [second] => u32::from(*second > 0.0),
            _ => first_of_largest(&scores) as u32,
        }
    }

    /// For two classes the logarithm of the odds of the second; for more the logarithm of each probability, up to a number that is the same for all. Of an example that is as long as it comes.
    pub fn scores(&self, features: &[f32]) -> Vec<f64> {
        let width = scores_of(self.classes);
        let mut scores = vec![0.0; width];
        let (columns, values) = expanded(&self.domains, self.norm, features);
        for (column, value) in columns.into_iter().zip(values) {
            let weights = &self.weights[column * width..][..width];
            for (score, weight) in scores.iter_mut().zip(weights) {
                *score += weight * value as f64 / UNIT as f64;
            }
        }
        scores
    }
}

#[cfg(test)]
#[path = "minima_perturbation_test.rs"]
mod tests;
