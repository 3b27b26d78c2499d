//! # Logistic regression by approximate-minima perturbation
//! **Definition.** Features have declared [domains](Domain): a number is its place in the interval, from -1/2 at the lower end to 1/2 at the upper, a category is one of as many features that are 0 or 1, and one feature is always 1. All are divided by a declared norm, and examples that are longer than 1 then are
//!   shortened to 1: in L2 if the budget's `δ` is above zero, in L1 else. `J(θ) = Σ ℓ(θ; x, y) + Λ/2 ‖θ‖² + ⟨b, θ⟩` with the logistic loss `ℓ` (for more than two classes that of the softmax) and noise `b`. What is released is a vector at which the gradient
//!   of `J` is verified to be at most `γ = 2^-20 max(Λ, 1)` long, folded at the radius `W = 2^20/Λ`, with noise. \[CMS11, Alg. 2; INS+19, Alg. 1\]
//! **Requires.** Domains, classes, norm and `Λ` that were declared without the data; and no more than `2^30` examples.
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
//! **Fold.** It is found for *all* examples and noise: `softmax_objective.rs` proves it where `‖b‖ <= 2^31`, but noise has no end. So it is not the minimum `t` that is looked for, but `f(t)`, the same direction at the distance `‖t‖` up to `W`, `2W - ‖t‖` up to `2W`, and zero beyond. The mechanism allows for any
//!   fixed function of the minimum. No two points are further apart after `f` than before: along the radius it has the slopes 1, -1 and 0, and across it shrinks. So `f` of what is found is as near to `f(t)`; it is computed in floats, which are off by at most `2^-27/Λ`, and a sixty-fourth of `γ` is kept for that.
//!   `Λt = -b - Σ a xᵀ`, so `‖t‖ >= 2W` wherever `‖b‖ >= 2WΛ + √2ρ n`: for noise that is longer than that at `2^30` examples, below `2^31`, zero *is* `f(t)`, and nothing has to be found. Plans whose noise is usually as long as `WΛ/4` are refused.
//!   *When it is seen.* Since `J(t) <= J(0)`, `Λ‖t‖²/2 <= ‖b‖‖t‖ + n ln K`. With `‖t‖ > W` and `‖b‖ <= WΛ/4` that asks for `nΛ >= 2^38/ln K`, and `Λt = -b - Σ a xᵀ` for `n √(2ρ) >= 3/4 2^20`. So the minimum is folded, and the model is as private as ever and worth little,
//!   where very many examples meet a penalty above `256/ln K`: three million examples and one of ten million, say. [`Penalised::fitting`] gives at most about `1/0.3ε`, which is that for an epsilon below `ln K/77` alone.
//!   For two classes this is the loss of the Gaussian mechanism itself, and not twice its `δ` as for all linear models \[RKW23\]: residuals have the sign that the class gives them.
//! **Error.** The noise has the [`deviation`](super::Terms::deviation) in each coordinate of the gradient, where an example of full length adds up to 1. That of the output is far less.

use serde::{Deserialize, Serialize};
use whit_accounting::{Bracket, price};
use whit_core::{
    AddRemove, Entropy, Epsilon, Event, Mechanism, Neighbours, Probability, Ratio, Scale, Secret,
    round,
};
use whit_mechanism::{MinimaPerturbation, Release};

use super::budget::NoiseKind;
use super::decision_tree::first_of_largest;
use super::domain::{Domain, are_whole};
use super::interval::UNIT;
use super::objective_noise::{Influence, ObjectivePerturbation};
use super::pca::shorten;
use super::residual::scores_of;
use super::softmax_objective::{
    EXAMPLES_MAX, NOISE_BITS, Shape, SoftmaxObjective, SparseRows, WEIGHT_BITS, norm, values,
};
use super::{Answers, Budget, COORDINATES_MAX, Classical, Fit, Takes, Terms, counted};
use crate::data::{Answer, Dataset};
use crate::error::{Error, Result, within};
use crate::payment::{Payment, Priced, sealed::Sealed};

/// The grid of the output.
const OUTPUT_BITS: i32 = 32;
/// `γ` is `max(Λ, 1)` times two to minus this.
const GAMMA_BITS: i32 = 20;
/// `WΛ`.
const FOLD: f64 = (1_u64 << 20) as f64;
/// The output has a fiftieth of the budget: its noise is small anyway.
const OUTPUT_SHARE: f64 = 0.02;
/// With smaller ones the output would be so far from the minimum, as far as that is verified, that its noise would be seen.
const PENALTY_MIN: f64 = 0.001;
/// Norms within which a feature that is 1 keeps eight bits at least, and does not overflow.
const NORMS: std::ops::RangeInclusive<f64> = 1e-3..=1024.0;
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
    /// A norm that shortens nothing, unless examples may be longer than 1024, and a penalty that takes three tenths of epsilon: weights that are held less are worth some noise. But no less than one over the square of the norm, which is a penalty of 1 for the weights of features as they were before they were divided: less than that would buy nothing.
    pub fn fitting(domains: &[Domain], classes: u32, budget: Budget) -> Self {
        let lengths = Lengths::of(domains);
        let norm = match budget.noise() {
            NoiseKind::Laplace => lengths.l1.to_f64_up(),
            NoiseKind::Gaussian => lengths.l2_square.to_f64_up().sqrt(),
        };
        let norm = norm.min(*NORMS.end());
        let square = lengths.square(norm, budget.noise());
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

    /// `ρ`, of examples that are shortened for this noise.
    fn square(&self, norm: f64, beside: NoiseKind) -> Result<Ratio> {
        let inverse = Ratio::new(UNIT as u128, units_of(norm) as u128)?;
        let square = &self.l2_square * &(&inverse * &inverse);
        let square = square.min(Ratio::one());
        Ok(match beside {
            NoiseKind::Laplace => square.min(inverse),
            NoiseKind::Gaussian => square,
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
    perturbation: ObjectivePerturbation,
    output: Scale,
    event: Event,
    epsilon: Bracket,
}

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
        let passes = (2..=COORDINATES_MAX).contains(&classes);
        let range = "a whole number from 2 to 2^20";
        within("classes", classes as f64, passes, range)?;
        let weights = columns(&domains).saturating_mul(scores_of(classes));
        let range = "at most 2^20 features, with each category one of its own, times classes";
        within(
            "the number of weights",
            weights as f64,
            weights <= COORDINATES_MAX,
            range,
        )?;
        let norm = objective.norm;
        let passes = NORMS.contains(&norm);
        within("norm", norm, passes, "a number from 0.001 to 1024")?;
        let penalty = objective.penalty;
        let passes = (PENALTY_MIN..=1e9).contains(&penalty);
        within("penalty", penalty, passes, "a number from 0.001 to 10^9")?;
        let beside = budget.noise();
        let square = Lengths::of(&domains).square(norm, beside)?;
        let curved = determinants(classes, &square, penalty);
        let influence = Influence::new(classes, curved, beside);
        Self::made(domains, objective, budget, influence)
    }

    /// With noise and a price for what one example does.
    fn made(
        domains: Vec<Domain>,
        objective: Penalised,
        budget: Budget,
        influence: Influence,
    ) -> Result<Self> {
        let (classes, penalty) = (influence.classes, objective.penalty);
        // What is left of epsilon for the noise.
        let whole = budget.epsilon().value();
        let taken = round::add_up(whole * OUTPUT_SHARE, influence.curved);
        let left = round::sub_down(whole, taken) * (1.0 - ROUNDING);
        let range = "so large that the logarithm of 1 and a quarter over it (for more than two classes, one over it) is well below epsilon";
        within("penalty", penalty, left >= whole / 64.0, range)?;
        let left = Epsilon::new(left)?;
        let perturbation = ObjectivePerturbation::new(influence, left, budget.delta())?;
        let weights = columns(&domains) * scores_of(classes);
        let each = Epsilon::new(whole * OUTPUT_SHARE)?;
        let output = whit_accounting::calibrate::laplace_scale(&apart(weights, penalty), each)?;
        let mechanism = perturbation.mechanism(&output, apart(weights, penalty));
        let event = mechanism.event();
        let price = price(&event, budget.delta())?;
        if price.epsilon > budget.epsilon() || price.delta > budget.delta() {
            let what = "noise of the objective";
            return Err(whit_accounting::Error::Unverified { what }.into());
        }
        let plan = Self {
            domains,
            classes,
            objective,
            budget,
            perturbation,
            output,
            event,
            // The event is a guarantee and no description of the fit, so what it costs at least says nothing of the fit.
            epsilon: Bracket::new(0.0, price.epsilon.value()),
        };
        plan.check_that_it_ends()?;
        Ok(plan)
    }

    /// Refuses, by public numbers, what might not end, and what would be folded.
    fn check_that_it_ends(&self) -> Result<()> {
        let weights = self.weights();
        let long = (weights as f64).sqrt() * self.perturbation.deviation();
        let range = "at most 2^18 for all weights together: fewer of them, or a larger epsilon";
        within("the noise", long, long <= FOLD / 4.0, range)?;
        // Holds for all that was not refused before, as a test shows.
        let found = self.shape()?.attainable(weights);
        let range = "below what a minimum is verified to: fewer weights, or a larger penalty";
        within("what rounding may do", found, found <= self.gamma(), range)
    }

    /// How short gradients are verified to be.
    fn gamma(&self) -> f64 {
        // A sixty-fourth is for the fold, and a unit of the noise in each coordinate for its rounding. Powers of two are exact, the rest is rounded down.
        let gamma = self.objective.penalty.max(1.0) * f64::from(-GAMMA_BITS).exp2();
        let root = round::sqrt_up(self.weights() as f64);
        let rounded = round::mul_up(root, f64::from(-NOISE_BITS).exp2());
        round::sub_down(round::mul_down(gamma, 1.0 - 1.0 / 64.0), rounded)
    }

    fn shape(&self) -> Result<Shape> {
        let lengths = Lengths::of(&self.domains);
        let square = lengths.square(self.objective.norm, self.perturbation.kind())?;
        Ok(Shape {
            classes: self.classes,
            scores: scores_of(self.classes),
            penalty: self.objective.penalty,
            square: square.to_f64_up(),
        })
    }

    fn weights(&self) -> usize {
        columns(&self.domains) * scores_of(self.classes)
    }

    fn mechanism(&self) -> MinimaPerturbation<AddRemove> {
        let apart = apart(self.weights(), self.objective.penalty);
        self.perturbation.mechanism(&self.output, apart)
    }

    /// The released weights. Rows are asked for when all is paid.
    fn release(
        &self,
        rows: impl FnOnce() -> Secret<SparseRows>,
        payment: Payment,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Vec<f64>>> {
        payment.lay_down(&self.event.fingerprint())?;
        let (mechanism, shape) = (self.mechanism(), self.shape()?);
        if mechanism.event() != self.event {
            return Err(Error::Unbound);
        }
        let rows = rows();
        let solve = |noise: Secret<Vec<i128>>| {
            let noise = noise.expose();
            rows.map(|rows| self.solve(&rows, shape, &noise))
        };
        let noisy = mechanism.release(self.weights(), solve, entropy)?;
        let one = f64::from(OUTPUT_BITS).exp2();
        Ok(noisy.map(|noisy| noisy.iter().map(|w| *w as f64 / one).collect()))
    }

    /// The verified minimum, folded, on the grid of the output.
    fn solve(&self, rows: &SparseRows, shape: Shape, noise: &[i128]) -> Vec<i64> {
        let one = f64::from(NOISE_BITS).exp2();
        let long = norm(&noise.iter().map(|b| *b as f64 / one).collect::<Vec<f64>>());
        // A hundredth more, for roundings.
        let most = 1.01 * (2.0 * FOLD + (2.0 * shape.square).sqrt() * EXAMPLES_MAX);
        if long > most {
            return vec![0; noise.len()];
        }
        let objective = SoftmaxObjective { rows, shape, noise };
        folded(&objective.minimum(self.gamma()), FOLD / shape.penalty)
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
        match self.perturbation.kind() {
            NoiseKind::Laplace => shorten_l1(&mut values),
            NoiseKind::Gaussian => shorten(&mut values),
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

/// `f` of weights, at the radius `W`, on the grid of the output, and cut to its ends.
fn folded(weights: &[i128], radius: f64) -> Vec<i64> {
    const FINER: i32 = WEIGHT_BITS - OUTPUT_BITS;
    let found = values(weights);
    let long = norm(&found);
    if long <= radius {
        let ends = i128::from(i64::MIN)..=i128::from(i64::MAX);
        let nearest = |w: &i128| (w + (1 << (FINER - 1))) >> FINER;
        let cut = |w: &i128| nearest(w).clamp(*ends.start(), *ends.end()) as i64;
        return weights.iter().map(cut).collect();
    }
    let share = (2.0 * radius - long).max(0.0) / long * f64::from(OUTPUT_BITS).exp2();
    found.iter().map(|w| (w * share).round() as i64).collect()
}

/// How far apart outputs of neighbours are, given the exact minimum, in units of the output: twice `√m γ/Λ` and what the rounding adds.
fn apart(weights: usize, penalty: f64) -> Ratio {
    let root = (weights as u64).isqrt() + 1;
    // Not below one, nor above a thousand.
    let over = round::div_up(1.0, penalty.min(1.0)).ceil() as u64;
    Ratio::from(2 * over * (root << (OUTPUT_BITS - GAMMA_BITS)) + weights as u64 + 1)
}

impl Sealed for MinimaPerturbationPlan {}

impl Priced for MinimaPerturbationPlan {
    fn event(&self) -> &Event {
        &self.event
    }

    fn guarantee(&self) -> Result<Event> {
        let exact = |value: f64| Ratio::from_f64(value).ok_or(Error::Unbound);
        let epsilon = exact(self.epsilon.upper())?;
        let guarantee = match self.perturbation.kind() {
            NoiseKind::Laplace => Mechanism::Pure { epsilon },
            NoiseKind::Gaussian => Mechanism::Approximate {
                epsilon,
                delta: Probability::new(exact(self.budget.delta().value())?)?,
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
            deviation: self.perturbation.deviation(),
        }
    }

    fn spend(
        fit: Fit<'_, Self>,
        payment: Payment,
        entropy: &mut impl Entropy,
    ) -> Result<Release<LogisticRegression>> {
        let (plan, data) = (fit.plan(), fit.data());
        let rows = || data.as_ref().map(|data| plan.read(data));
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
        are_whole(&self.domains)
            && (2..=COORDINATES_MAX).contains(&self.classes)
            && NORMS.contains(&self.norm)
            && weights == Some(self.weights.len())
            && self.weights.iter().all(|weight| weight.is_finite())
    }

    /// How many features it looks at.
    pub(super) fn features(&self) -> usize {
        self.domains.len()
    }

    /// How many classes it knows.
    pub(super) fn classes(&self) -> u32 {
        self.classes as u32
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
