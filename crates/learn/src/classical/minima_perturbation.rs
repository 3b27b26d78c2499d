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
mod tests {
    use super::*;
    use crate::classical::Interval;
    use crate::classical::doubt::{budget, fitted, judge_pure, nasty, refused, seed, seeded};
    use crate::payment::Uncharged;
    use whit_audit::{Alpha, Claim, Verdict, falsify};
    use whit_core::Fault;
    use whit_testkit::SeededBits;

    fn domains() -> Vec<Domain> {
        let interval = Interval::new(-1.0, 1.0).expect("an interval");
        let number = Domain::numbers(interval, 2).expect("a domain");
        let category = Domain::categories(3).expect("a domain");
        vec![number, number, category]
    }

    fn plan(classes: u32, (epsilon, delta): (f64, f64)) -> MinimaPerturbationPlan {
        let budget = budget(epsilon, delta);
        let objective = Penalised::fitting(&domains(), classes, budget);
        MinimaPerturbationPlan::new(domains(), classes, objective, budget).expect("a plan")
    }

    fn data(rows: &[(Vec<f32>, u32)], classes: u32) -> Secret<Dataset> {
        let features = rows.iter().flat_map(|row| row.0.clone()).collect();
        let labels = rows.iter().map(|row| row.1).collect();
        let data = Dataset::with_classes(vec![3], features, labels, classes);
        Secret::new(data.expect("fits"))
    }

    /// Epsilon is that of the noise, `κ` for the determinants and a fiftieth for the output; and the noise is what that leaves.
    #[test]
    fn closed_form() {
        // Two numbers and a category: 1 + 1/2 + 1/2 + 1 in L1, and squares of 1 + 1/4 + 1/4 + 1.
        let (norm, square) = (3.0, 2.5 / 9.0);
        for (classes, parts, of, length) in
            [(2, 1.0, 4.0, 1.0), (3, 2.0, 3.0, 2.0), (10, 9.0, 10.0, 2.0)]
        {
            for epsilon in [0.1, 1.0, 10.0] {
                let pure = plan(classes, (epsilon, 0.0));
                assert_eq!(pure.objective.norm, norm);
                let shared: f64 = square / (of * (0.3 * epsilon / parts).exp_m1());
                let penalty = shared.max(1.0 / 9.0);
                assert!((pure.objective.penalty / penalty - 1.0).abs() < 1e-9);
                let determinants = parts * (square / (of * penalty)).ln_1p();
                let expected = std::f64::consts::SQRT_2 * length / (0.98 * epsilon - determinants);
                assert!((pure.terms().deviation / expected - 1.0).abs() < 1e-6);
                let upper = pure.terms().epsilon.upper();
                assert!(upper <= epsilon && upper > 0.999_999 * epsilon, "{upper}");
                let Mechanism::Composition(parts) = pure.event().mechanism() else {
                    panic!("another event")
                };
                let Mechanism::Pure { epsilon: first } = &parts[0] else {
                    panic!("another event")
                };
                assert!((first.to_f64_up() / (0.98 * epsilon) - 1.0).abs() < 1e-9);
                let gaussian = plan(classes, (epsilon, 1e-6));
                let upper = gaussian.terms().epsilon.upper();
                assert!(upper <= epsilon && upper > 0.999_999 * epsilon, "{upper}");
                let Mechanism::Composition(parts) = gaussian.event().mechanism() else {
                    panic!("another event")
                };
                let Mechanism::Approximate {
                    epsilon: first,
                    delta,
                } = &parts[0]
                else {
                    panic!("another event")
                };
                assert!((first.to_f64_up() / (0.98 * epsilon) - 1.0).abs() < 1e-9);
                assert!(delta.ratio().to_f64_up() <= 1e-6 && delta.ratio().to_f64_up() > 0.999e-6);
            }
        }
        // The exact analysis of the Gaussian mechanism needs σ = 4.22467… at ε = 1 and δ = 1e-6 (mpmath).
        let exact = noise(2, 1.0, Delta::new(1e-6).expect("a delta")).expect("in reach");
        assert!((4.224_67..4.224_69).contains(&exact.deviation()));
    }

    /// Whatever an example is, it is at most one long; and some are.
    #[test]
    fn the_worst_example_is_as_long_as_claimed() {
        let mut bits = SeededBits::new(seed(801));
        for (delta, norm) in [
            (1e-6, 1.58),
            (0.0, 3.0),
            (1e-6, 1.0),
            (0.0, 1.25),
            (0.0, 1e-3),
            (1e-6, 1e-3),
        ] {
            let budget = budget(1.0, delta);
            let square = Lengths::of(&domains()).square(norm, budget.delta());
            let square = square.expect("a norm").to_f64_up();
            let objective = Penalised { norm, penalty: 3.0 };
            let plan = MinimaPerturbationPlan::new(domains(), 2, objective, budget);
            let plan = plan.expect("a plan");
            let (mut worst, mut worst_square) = (0.0_f64, 0.0_f64);
            for _ in 0..3000 {
                let row = plan.row(&nasty(&mut bits, 3));
                assert!(
                    row.iter()
                        .all(|(column, _)| *column < columns(&plan.domains))
                );
                let sizes = row.iter().map(|(_, value)| *value as f64 / UNIT as f64);
                let squares: f64 = sizes.clone().map(|v| v * v).sum();
                assert!(squares <= square, "{squares} of {square}");
                worst_square = worst_square.max(squares / square);
                let size: f64 = match delta > 0.0 {
                    true => sizes.map(|v| v * v).sum(),
                    false => sizes.map(f64::abs).sum(),
                };
                assert!(size <= 1.0);
                worst = worst.max(size);
            }
            assert!(worst > 1.0 - 1e-4, "{worst}");
            // Where nothing is shortened, or all of it is in L2, that bound is reached as well.
            if delta > 0.0 || norm == 3.0 {
                assert!(worst_square > 1.0 - 1e-4, "{norm}: {worst_square}");
            }
        }
        let far = Lengths::of(&domains()).square(10.0, Delta::ZERO);
        assert_eq!(far, Ok(Ratio::new(25, 1000).expect("a ratio")));
        let near = Lengths::of(&domains()).square(2.0, Delta::ZERO);
        assert_eq!(
            near,
            Ok(Ratio::new(1, 2).expect("a ratio")),
            "the largest entry"
        );
    }

    /// The logarithm of a determinant, by elimination.
    fn ln_det(mut of: Vec<Vec<f64>>) -> f64 {
        let mut sum = 0.0;
        for at in 0..of.len() {
            let pivot = of[at].clone();
            sum += pivot[at].ln();
            for row in of.iter_mut().skip(at + 1) {
                let by = row[at] / pivot[at];
                row.iter_mut().zip(&pivot).for_each(|(x, p)| *x -= by * p);
            }
        }
        sum
    }

    /// Adds an example with these probabilities to a second derivative.
    fn curve(onto: &mut [Vec<f64>], shares: &[f64], x: &[f64]) {
        let (scores, all) = (shares.len(), onto.len());
        for (row, column) in (0..all).flat_map(|row| (0..all).map(move |c| (row, c))) {
            let (k, j) = (row % scores, column % scores);
            let same = if k == j { shares[k] } else { 0.0 };
            onto[row][column] +=
                (same - shares[k] * shares[j]) * x[row / scores] * x[column / scores];
        }
    }

    /// Step 1 of the proof, for examples and probabilities of all sorts: the bound holds, is reached where nobody else is there and all classes are as likely, and is larger than nine tenths of itself.
    #[test]
    fn determinants_move_as_far_as_claimed() {
        let mut bits = SeededBits::new(seed(810));
        for (classes, penalty, square) in
            [(2, 0.05, 0.3), (2, 2.0, 1.0), (3, 0.1, 0.5), (5, 0.02, 0.1)]
        {
            let exact = Ratio::from_f64(square).expect("finite");
            let claimed = determinants(classes, &exact, penalty);
            let scores = scores_of(classes);
            let mut unit = || bits.below(1001) as f64 / 1000.0;
            let mut worst = 0.0_f64;
            for others in [0, 0, 1, 2, 5, 20].repeat(20) {
                let mut one = |equal: bool| {
                    let odds: Vec<f64> = (0..classes)
                        .map(|_| if equal { 1.0 } else { (8.0 * unit()).exp() })
                        .collect();
                    let total: f64 = odds.iter().sum();
                    let shares: Vec<f64> = odds.iter().map(|odds| odds / total).collect();
                    let part = unit();
                    let x = [part.sqrt(), (1.0 - part).sqrt()].map(|x| x * square.sqrt());
                    (shares[classes - scores..].to_vec(), x)
                };
                let mut curved = vec![vec![0.0; 2 * scores]; 2 * scores];
                (0..2 * scores).for_each(|at| curved[at][at] = penalty);
                for _ in 0..others {
                    let (shares, x) = one(false);
                    curve(&mut curved, &shares, &x);
                }
                let before = ln_det(curved.clone());
                let (shares, x) = one(others == 0);
                curve(&mut curved, &shares, &x);
                let moved = ln_det(curved) - before;
                assert!(
                    (-1e-9..=claimed + 1e-9).contains(&moved),
                    "{moved} of {claimed}"
                );
                worst = worst.max(moved);
            }
            assert!(
                worst > claimed - 1e-9 && worst > 0.9 * claimed,
                "{worst} of {claimed}"
            );
        }
    }

    /// What is solved is within what the output's noise is for: the minimum for noise that is moved by half a unit, found far more exactly.
    #[test]
    fn approximate_minima_are_near_the_exact_ones() {
        let mut bits = SeededBits::new(seed(802));
        for classes in [2, 3] {
            let plan = plan(classes, (1.0, 1e-6));
            let mut any = || (nasty(&mut bits, 3), bits.below(u64::from(classes)) as u32);
            let rows: Vec<_> = (0..200).map(|_| any()).collect();
            let rows = plan.read(data(&rows, classes).as_ref().expose());
            let noise: Vec<f64> = (0..plan.weights())
                .map(|w| 3.0 * (w as f64).sin())
                .collect();
            let found = plan.solve(&rows, &noise);
            let half = f64::from(-NOISE_BITS - 1).exp2();
            let moved: Vec<f64> = noise.iter().map(|noise| noise + half).collect();
            let exact = SoftmaxObjective {
                rows: &rows,
                classes: plan.classes,
                scores: scores_of(plan.classes),
                penalty: plan.objective.penalty,
                noise: &moved,
            };
            let exact = exact.minimum(plan.objective.penalty * 1e-10);
            let one = f64::from(OUTPUT_BITS).exp2();
            let off = found
                .iter()
                .zip(&exact)
                .map(|(w, exact)| (*w as f64 - exact * one).abs());
            let off: f64 = off.sum();
            assert!(
                2.0 * off <= apart(plan.weights(), plan.objective.penalty).to_f64_down(),
                "{off}"
            );
        }
    }

    /// What the broken twins do.
    #[derive(Clone, Copy, PartialEq)]
    enum Flaw {
        Nothing,
        HalfTheNoise,
        /// The canary is twice as long as declared.
        NotShortened,
    }

    impl Flaw {
        /// How many of its residuals the canary is away.
        fn side(self) -> f64 {
            match self {
                Self::NotShortened => 2.0,
                _ => 1.0,
            }
        }
    }

    const OTHERS: usize = 20;
    const TRIALS: u64 = 10_000;

    /// One feature of one category: all examples have the same two columns. Twenty are of the first class, so that the residual of the canary, which is of the second, is near one.
    fn small((epsilon, delta): (f64, f64)) -> MinimaPerturbationPlan {
        let domain = Domain::categories(1).expect("a domain");
        let budget = budget(epsilon, delta);
        let penalty = Penalised {
            penalty: 1.0,
            ..Penalised::fitting(&[domain], 2, budget)
        };
        MinimaPerturbationPlan::new(vec![domain], 2, penalty, budget).expect("a plan")
    }

    fn world(plan: &MinimaPerturbationPlan, canary: i64) -> SparseRows {
        let mut rows = SparseRows::default();
        for (weight, class) in std::iter::repeat_n((1, 0), OTHERS).chain([(canary, 1)]) {
            let row = plan.row(&[0.0]).into_iter();
            rows.entries
                .extend(row.map(|(column, value)| (column, weight * value)));
            rows.ends.push(rows.entries.len());
            rows.classes.push(class);
        }
        rows
    }

    /// The noise that would have led to these weights if the canary were not there, and its residual if it were.
    fn implied(plan: &MinimaPerturbationPlan, weights: &[f64]) -> ([f64; 2], f64) {
        let x = plan.row(&[0.0])[0].1 as f64 / UNIT as f64;
        let p = 1.0 / (1.0 + (-(weights[0] + weights[1]) * x).exp());
        let noise = |w: f64| -(OTHERS as f64 * p * x + plan.objective.penalty * w);
        ([noise(weights[0]), noise(weights[1])], (p - 1.0) * x)
    }

    fn run(
        claimed: &MinimaPerturbationPlan,
        flaw: Flaw,
        present: bool,
        of: u64,
        event: impl Fn([f64; 2], f64) -> bool,
    ) -> impl FnMut() -> bool {
        let mut done = claimed.clone();
        if flaw == Flaw::HalfTheNoise {
            let terms = claimed.noise.terms().budget;
            let twice = noise(2, 2.0 * terms.epsilon().value(), terms.delta());
            done.noise = twice.expect("in reach");
        }
        let canary = match (present, flaw) {
            (false, _) => 0,
            (true, Flaw::NotShortened) => 2,
            (true, _) => 1,
        };
        let mut entropy = seeded(of);
        move || {
            let payment = Payment::uncharged(&done, Uncharged);
            let rows = Secret::new(world(&done, canary));
            let weights = done.release(rows, payment, &mut entropy);
            let (noise, residual) = implied(&done, weights.expect("entropy").value());
            event(noise, residual)
        }
    }

    /// Both coordinates of the noise on the canary's side: the likelihood ratio is largest there.
    fn pure(flaw: Flaw) -> Verdict {
        let claimed = small((3.0, 0.0));
        let side = flaw.side();
        let event =
            move |noise: [f64; 2], residual: f64| noise.iter().all(|b| *b <= side * residual);
        let worlds = [(true, 803), (false, 804)];
        let [one, other] = worlds.map(|(present, of)| run(&claimed, flaw, present, of, event));
        judge_pure(3.0, TRIALS, one, other)
    }

    /// The delta at which a small epsilon is claimed, by the Gaussian mechanism's.
    fn gaussian(flaw: Flaw) -> Verdict {
        let claimed = small((6.0, 1e-6));
        let small = Epsilon::new(0.1).expect("an epsilon");
        let side = flaw.side();
        let event = move |noise: [f64; 2], residual: f64| noise[0] + noise[1] <= side * residual;
        let worlds = [(true, 805), (false, 806)];
        let [one, other] = worlds.map(|(present, of)| run(&claimed, flaw, present, of, event));
        let delta = whit_accounting::delta(claimed.noise.event(), small).expect("a Gaussian");
        let determinants_and_output = 1.25_f64.ln() + 6.0 * OUTPUT_SHARE;
        let claim = Claim {
            epsilon: Epsilon::new(0.1 + determinants_and_output).expect("an epsilon"),
            delta: Delta::new(delta.bounds.upper()).expect("a delta"),
        };
        let alpha = Alpha::new(1e-6).expect("a level");
        falsify(claim, TRIALS, alpha, one, other).expect("enough trials")
    }

    #[test]
    fn falsifier() {
        let verdict = pure(Flaw::Nothing);
        assert!(
            !verdict.convicted && verdict.epsilon_lower > 1.5,
            "{verdict:?}"
        );
        assert!(!gaussian(Flaw::Nothing).convicted);
    }

    #[test]
    fn falsifier_has_teeth() {
        for flaw in [Flaw::HalfTheNoise, Flaw::NotShortened] {
            let verdicts = [pure(flaw), gaussian(flaw)];
            assert!(
                verdicts.iter().all(|verdict| verdict.convicted),
                "{verdicts:?}"
            );
        }
    }

    #[test]
    fn learns_a_line() {
        let mut bits = SeededBits::new(807);
        let mut draw = |classes: u32| {
            let mut row = nasty(&mut bits, 2);
            let category = bits.below(3) as u32;
            row.push(category as f32);
            let score = row[0].clamp(-1.0, 1.0) + if category == 1 { 0.7 } else { -0.7 };
            match classes {
                2 => (row, u32::from(score > 0.0)),
                _ => (row, (category + 1) % 3),
            }
        };
        for (classes, terms) in [(2, (1.0, 1e-6)), (2, (2.0, 0.0)), (3, (1.0, 1e-6))] {
            let rows: Vec<_> = (0..4000).map(|_| draw(classes)).collect();
            let model = fitted(&plan(classes, terms), &data(&rows, classes), 808);
            let right = (0..1000).map(|_| draw(classes));
            let right = right.filter(|(row, class)| model.predict(row) == *class);
            let right = right.count();
            assert!(right > 930, "{right} for {classes} at {terms:?}");
            assert!(model.predict(&[]) < classes, "nothing is missed");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let make = |domains: Vec<Domain>, classes, norm, penalty| {
            let objective = Penalised { norm, penalty };
            MinimaPerturbationPlan::new(domains, classes, objective, budget(1.0, 1e-6)).err()
        };
        for refused in [
            make(vec![], 2, 1.0, 1.0),
            make(domains(), 1, 1.0, 1.0),
            make(domains(), u32::MAX, 1.0, 1.0),
            make(domains(), 1 << 18, 1.0, 10.0),
            make(domains(), 2, 0.0, 1.0),
            make(domains(), 2, f64::NAN, 1.0),
            make(domains(), 2, 1.0, 0.0),
            make(domains(), 2, 1.0, f64::INFINITY),
            make(domains(), 2, 1.0, 0.14),
            make(domains(), 2, 1.0, 0.000_999),
        ] {
            let refused = refused.expect("refused");
            assert_eq!(refused.code(), "plan_out_of_range");
            assert!(refused.suggestion().starts_with("give "));
        }
        let plan = plan(2, (1.0, 0.0));
        let narrow = Dataset::with_classes(vec![4], vec![], vec![], 2).expect("fits");
        assert_eq!(refused(&plan, &Secret::new(narrow)), Some("other_columns"));
        assert_eq!(refused(&plan, &data(&[], 3)), Some("other_labels"));
        assert_eq!(refused(&plan, &data(&[], 2)), None);
        let other = small((1.0, 0.0));
        let rows = Secret::new(SparseRows::default());
        let stolen = plan.release(
            rows,
            Payment::uncharged(&other, Uncharged),
            &mut seeded(809),
        );
        assert_eq!(stolen.err().map(|error| error.code()), Some("other_plan"));
    }
}
