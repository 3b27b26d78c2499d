//! # Gradient-boosted stumps
//! **Definition.** Features have declared [domains](Domain), cut into bins. Scores of classes (see `residual.rs`) are sums of one function for each feature, constant in each bin. First, round after round, the
//!   examples of each class in each bin of one feature are counted. Then, in each of `T` epochs, each feature has its turn, in an order that a public seed gives: its bins are cut into a few
//!   leaves by the seed and the noisy counts, so that leaves are about equally large on average; released for each leaf: the sum of its examples' residuals. The feature's function moves by a multiple of sum over
//!   count. All with independent noise of one scale. \[Fri01, NCB+21\]
//! **Requires.** Domains, classes and shape that were declared without the data.
//! **Guarantee.** That of [`noisy_sums`](super::noisy_sums) with `(T + 1)d` rounds, and in each `Δ₁ = Δ₂² = 1` for two classes, and 2 for more. All are reached.
//! **Proof.** Scores and leaves are a function of the rounds before, the seed, and, for scores, of the example's own bins. Given them, an example is in one leaf, and adds its
//!   residuals there: at most `Δ₁` in L1 and `Δ₂²` squared in L2, as `residual.rs` shows. When it is counted it adds one number at one place, the weight `w`: 1 for two classes; for more,
//!   2 for Laplace noise, whose price knows L1 alone, and for Gaussian noise, whose price knows L2 alone, the largest multiple of `2^-18` whose square is at most 2. ∎
//! **Rounds.** They never stop early: when would be a question about the data.
//! **Error.** Sums have the noise of [`deviation`](super::Terms::deviation), counts a `w`-th of it. Many leaves are blurred by noise, few by their width; steps of leaves that are small beside the noise are short.

use serde::{Deserialize, Serialize};
use whit_core::{Entropy, Ratio, Secret};
use whit_mechanism::Release;

use super::budget::NoiseKind;
use super::decision_tree::first_of_largest;
use super::domain::{Domain, are_whole, bins_max};
use super::interval::{UNIT, UNIT_BITS};
use super::noisy_sums::{NoisySums, Reach};
use super::residual::{length, residuals, scores_of};
use super::{Answers, Budget, COORDINATES_MAX, Classical, Fit, Takes, Terms, counted};
use crate::data::{Answer, Dataset};
use crate::error::{Result, within};
use crate::model::init::Generator;
use crate::payment::Payment;

/// More rounds leave nothing for each.
const ROUNDS_MAX: usize = 4096;
/// More leaves are no stump.
const LEAVES_MAX: usize = 64;
/// A step of three moves odds twentyfold. Longer ones come of noise.
const STEP_MAX: f64 = 3.0;
/// Bins with fewer examples than this many deviations of the noise are taken for a fifth of what was counted when leaves are cut: sums of many empty bins are noise.
const DEVIATIONS: f64 = 2.0;
/// The fifth.
const DOUBTFUL: f64 = 0.2;

/// How often, how finely and how fast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Boosting {
    /// `T`: how often each feature has its turn.
    pub epochs: usize,
    /// Into how many leaves its bins are cut: two are a stump.
    pub leaves: usize,
    /// By which share of Newton's step scores move.
    pub rate: f64,
    /// Public: the order of features, and where bins are cut, follow from it and from what is released.
    pub seed: u64,
}

impl Boosting {
    /// More epochs the more may be spent: by experience with the census data of `record/classical.md`, and by public numbers alone.
    pub fn fitting(features: usize, budget: Budget) -> Self {
        let (factor, most) = match budget.noise() {
            NoiseKind::Laplace => (6.0, 20),
            NoiseKind::Gaussian => (18.0, 40),
        };
        let epochs = (factor * budget.epsilon().value().sqrt()).round() as usize;
        let rounds = (ROUNDS_MAX / features.max(1)).saturating_sub(1);
        Self {
            epochs: epochs.clamp(2, most).min(rounds).max(1),
            leaves: 3,
            rate: 0.8,
            seed: 0,
        }
    }
}

/// What a fit of boosted stumps would do and cost.
#[derive(Clone, Debug, PartialEq)]
pub struct BoostedStumpsPlan {
    domains: Vec<Domain>,
    classes: usize,
    boosting: Boosting,
    /// `w`, in units.
    weight: i64,
    pub(super) noise: NoisySums,
}

impl BoostedStumpsPlan {
    /// For examples with features of these domains, of so many classes.
    pub fn new(
        domains: Vec<Domain>,
        classes: u32,
        boosting: Boosting,
        budget: Budget,
    ) -> Result<Self> {
        let most = "a whole number from 1 to 2^20";
        counted("features", domains.len(), COORDINATES_MAX, most)?;
        let classes = classes as usize;
        let passes = (2..=COORDINATES_MAX).contains(&classes);
        within(
            "classes",
            classes as f64,
            passes,
            "a whole number from 2 to 2^20",
        )?;
        let passes = (2..=LEAVES_MAX).contains(&boosting.leaves);
        within(
            "leaves",
            boosting.leaves as f64,
            passes,
            "a whole number from 2 to 64",
        )?;
        let passes = boosting.rate > 0.0 && boosting.rate <= 1.0;
        within(
            "rate",
            boosting.rate,
            passes,
            "a number above 0 and at most 1",
        )?;
        counted(
            "epochs",
            boosting.epochs,
            ROUNDS_MAX,
            "a whole number from 1 to 4095",
        )?;
        let rounds = (boosting.epochs + 1).saturating_mul(domains.len());
        let range = "at most 4096 features times epochs and one";
        within(
            "the number of rounds",
            rounds as f64,
            rounds <= ROUNDS_MAX,
            range,
        )?;
        let cells = (bins_max(&domains) * classes).max(boosting.leaves * scores_of(classes));
        let range = "at most 2^20 bins times classes";
        within(
            "the number of sums",
            cells as f64,
            cells <= COORDINATES_MAX,
            range,
        )?;
        let long = length(classes);
        let reach = Reach {
            l1: Ratio::from(long),
            l2_square: Ratio::from(long),
            coordinates: cells,
            bits: UNIT_BITS,
        };
        let noise = NoisySums::new(reach, rounds as u64, budget)?;
        let weight = match noise.kind() {
            NoiseKind::Laplace => long as i64 * UNIT,
            NoiseKind::Gaussian => (long as i64 * UNIT * UNIT).isqrt(),
        };
        Ok(Self {
            domains,
            classes,
            boosting,
            weight,
            noise,
        })
    }

    /// All rounds, for whoever watches: what is asked, what was known before, and what was released.
    fn rounds(
        &self,
        data: &Secret<Dataset>,
        payment: Payment,
        entropy: &mut impl Entropy,
        mut watch: impl FnMut(&Question<'_>, &Draft, &[f64]),
    ) -> Result<Release<BoostedStumps>> {
        let mut rounds = self.noise.begin(payment)?;
        let mut generator = Generator(self.boosting.seed);
        let mut examples = data.as_ref().map(|data| self.read(data));
        let question = Question::Count { feature: 0 };
        let noisy = rounds.release(self.sums(&examples, &question), entropy)?;
        watch(&question, &Draft::default(), noisy.value());
        let mut draft = noisy.map(|sums| Draft::default().counted(self, 0, &sums));
        for feature in 1..self.domains.len() {
            let question = Question::Count { feature };
            let noisy = rounds.release(self.sums(&examples, &question), entropy)?;
            watch(&question, draft.value(), noisy.value());
            let both = draft.and(noisy)?;
            draft = both.map(|(draft, sums)| draft.counted(self, feature, &sums));
        }
        draft = draft.map(|draft| draft.begun(self));
        examples = examples.map(|examples| examples.begun(&draft.value().base));
        for _ in 0..self.boosting.epochs {
            for feature in generator.some_of(self.domains.len(), self.domains.len()) {
                let leaf = draft.value().leaves(self, feature, &mut generator);
                let question = Question::Residuals {
                    feature,
                    leaf: &leaf,
                };
                let noisy = rounds.release(self.sums(&examples, &question), entropy)?;
                watch(&question, draft.value(), noisy.value());
                let steps = draft.value().steps(self, feature, &leaf, noisy.value());
                examples = examples.map(|examples| examples.moved(feature, &steps));
                let both = draft.and(noisy)?;
                draft = both.map(|(draft, _)| draft.moved(feature, &steps));
            }
        }
        let draft = rounds.finish(draft)?;
        Ok(draft.map(|draft| BoostedStumps {
            domains: self.domains.clone(),
            classes: self.classes,
            base: draft.base,
            functions: draft.functions,
        }))
    }

    /// Bins of all examples that are not empty.
    fn read(&self, data: &Dataset) -> Examples {
        let mut examples = Examples {
            features: self.domains.len(),
            bins: Vec::new(),
            classes: Vec::new(),
            scores: Vec::new(),
        };
        for example in (0..data.rows()).filter_map(|row| data.example(row)) {
            if let Answer::Class(class) = example.answer {
                let each = self.domains.iter().zip(example.features);
                let bins = each.map(|(domain, value)| domain.bin(*value) as u16);
                examples.bins.extend(bins);
                examples.classes.push(class);
            }
        }
        examples
    }

    fn sums(&self, examples: &Secret<Examples>, question: &Question<'_>) -> Secret<Vec<i128>> {
        let scores = scores_of(self.classes);
        examples.as_ref().map(|examples| {
            let mut sums = vec![
                0;
                (bins_max(&self.domains) * self.classes)
                    .max(self.boosting.leaves * scores)
            ];
            let mut residual = vec![0; scores];
            let rows = examples.bins.chunks_exact(examples.features);
            for (row, (bins, class)) in rows.zip(&examples.classes).enumerate() {
                let class = *class as usize;
                match question {
                    Question::Count { feature } => {
                        let at = usize::from(bins[*feature]) * self.classes + class;
                        sums[at] += i128::from(self.weight);
                    }
                    Question::Residuals { feature, leaf } => {
                        let at = leaf[usize::from(bins[*feature])] * scores;
                        residuals(
                            &examples.scores[row * scores..][..scores],
                            class,
                            &mut residual,
                        );
                        for (sum, residual) in sums[at..].iter_mut().zip(&residual) {
                            *sum += i128::from(*residual);
                        }
                    }
                }
            }
            sums
        })
    }
}

/// What is asked in a round.
enum Question<'a> {
    /// How many examples of each class each bin has.
    Count { feature: usize },
    /// The sum of residuals in each leaf; for each bin its leaf.
    Residuals { feature: usize, leaf: &'a [usize] },
}

/// Private: bins, classes, and scores so far, each a function of the example and of what was released.
struct Examples {
    features: usize,
    bins: Vec<u16>,
    classes: Vec<u32>,
    scores: Vec<f64>,
}

impl Examples {
    fn begun(mut self, base: &[f64]) -> Self {
        self.scores = base.repeat(self.classes.len());
        self
    }

    fn moved(mut self, feature: usize, steps: &[Vec<f64>]) -> Self {
        let width = steps.first().map_or(1, Vec::len);
        let rows = self.bins.chunks_exact(self.features);
        for (bins, scores) in rows.zip(self.scores.chunks_exact_mut(width)) {
            let step = &steps[usize::from(bins[feature])];
            scores
                .iter_mut()
                .zip(step)
                .for_each(|(score, step)| *score += step);
        }
        self
    }
}

/// What is known so far. Public.
#[derive(Default)]
struct Draft {
    /// Feature by feature the size of each bin, and how many there are of each class.
    sizes: Vec<Vec<f64>>,
    of_class: Vec<f64>,
    base: Vec<f64>,
    functions: Vec<Vec<Vec<f64>>>,
    /// Newton's: how fast a residual changes with its score.
    slope: f64,
}

impl Draft {
    /// Post-processing of a round of counts.
    fn counted(mut self, plan: &BoostedStumpsPlan, feature: usize, sums: &[f64]) -> Self {
        let one = plan.weight as f64 / UNIT as f64;
        let bins = sums
            .chunks_exact(plan.classes)
            .take(plan.domains[feature].bins());
        self.of_class.resize(plan.classes, 0.0);
        let mut sizes = Vec::new();
        for bin in bins {
            sizes.push((bin.iter().sum::<f64>() / one).max(0.0));
            for (total, count) in self.of_class.iter_mut().zip(bin) {
                // Each class was counted once for each feature.
                *total += count / one / plan.domains.len() as f64;
            }
        }
        self.sizes.push(sizes);
        self
    }

    /// Scores begin with the shares of classes, and no function.
    fn begun(mut self, plan: &BoostedStumpsPlan) -> Self {
        let of_class: Vec<f64> = self.of_class.iter().map(|n| n.max(1.0)).collect();
        let total: f64 = of_class.iter().sum();
        let share = |n: &f64| n / total;
        self.base = match of_class.as_slice() {
            [no, yes] => vec![(yes / no).ln()],
            more => more.iter().map(|n| share(n).ln()).collect(),
        };
        let even = 1.0 / plan.classes as f64;
        let least = of_class.iter().map(share).fold(1.0, f64::min);
        let slope = if plan.classes == 2 { least } else { even };
        self.slope = slope * (1.0 - slope);
        let none = |domain: &Domain| vec![vec![0.0; self.base.len()]; domain.bins()];
        self.functions = plan.domains.iter().map(none).collect();
        self
    }

    /// Cuts the bins of a feature at random, where examples are: for each bin its leaf.
    fn leaves(
        &self,
        plan: &BoostedStumpsPlan,
        feature: usize,
        generator: &mut Generator,
    ) -> Vec<usize> {
        let bins = plan.domains[feature].bins();
        let order = match plan.domains[feature].is_ordered() {
            true => (0..bins).collect(),
            false => generator.some_of(bins, bins),
        };
        let doubtful = DEVIATIONS * self.deviation(plan);
        let weight = |size: f64| {
            if size < doubtful {
                DOUBTFUL * size
            } else {
                size
            }
        };
        let sizes = &self.sizes[feature];
        let total: f64 = sizes.iter().map(|size| weight(*size)).sum();
        let mut cut = |_| 0.5 + f64::from(generator.within(0.5));
        let cuts: Vec<f64> = (1..plan.boosting.leaves).map(&mut cut).collect();
        let mut leaf = vec![0; bins];
        let mut before = 0.0;
        for bin in order {
            before += weight(sizes[bin]);
            leaf[bin] = cuts.iter().filter(|cut| **cut * total < before).count();
        }
        leaf
    }

    /// The deviation of the noise of a bin's size.
    fn deviation(&self, plan: &BoostedStumpsPlan) -> f64 {
        plan.noise.deviation() * UNIT as f64 / plan.weight as f64
    }

    /// How far the function moves in each bin.
    fn steps(
        &self,
        plan: &BoostedStumpsPlan,
        feature: usize,
        leaf: &[usize],
        sums: &[f64],
    ) -> Vec<Vec<f64>> {
        let mut sizes = vec![0.0; plan.boosting.leaves];
        for (leaf, size) in leaf.iter().zip(&self.sizes[feature]) {
            sizes[*leaf] += size;
        }
        let width = self.base.len();
        let of_leaf = |leaf: &usize| -> Vec<f64> {
            let curvature = sizes[*leaf] * self.slope + plan.noise.deviation();
            let step =
                |sum: &f64| (plan.boosting.rate * sum / curvature).clamp(-STEP_MAX, STEP_MAX);
            sums[leaf * width..][..width].iter().map(step).collect()
        };
        leaf.iter().map(of_leaf).collect()
    }

    fn moved(mut self, feature: usize, steps: &[Vec<f64>]) -> Self {
        for (function, steps) in self.functions[feature].iter_mut().zip(steps) {
            function
                .iter_mut()
                .zip(steps)
                .for_each(|(score, step)| *score += step);
        }
        self
    }
}

impl Classical for BoostedStumpsPlan {
    type Model = BoostedStumps;

    fn takes(&self) -> Takes {
        Takes {
            features: self.domains.len(),
            answers: Answers::Classes(self.classes as u32),
        }
    }

    fn terms(&self) -> Terms {
        self.noise.terms()
    }

    fn spend(
        fit: Fit<'_, Self>,
        payment: Payment,
        entropy: &mut impl Entropy,
    ) -> Result<Release<BoostedStumps>> {
        let (plan, data) = (fit.plan(), fit.data());
        plan.rounds(data, payment, entropy, |_, _, _| {})
    }
}

/// A function of each feature, whose sum is the score. Public.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BoostedStumps {
    domains: Vec<Domain>,
    classes: usize,
    base: Vec<f64>,
    functions: Vec<Vec<Vec<f64>>>,
}

impl BoostedStumps {
    /// Do its parts fit each other? A file may say anything.
    pub(super) fn is_whole(&self) -> bool {
        let mut each = self.domains.iter().zip(&self.functions);
        let scores = scores_of(self.classes);
        let numbers = |step: &Vec<f64>| step.len() == scores && step.iter().all(|s| s.is_finite());
        let fits = |(domain, function): (&Domain, &Vec<Vec<f64>>)| {
            function.len() == domain.bins() && function.iter().all(numbers)
        };
        (2..=COORDINATES_MAX).contains(&self.classes)
            && numbers(&self.base)
            && are_whole(&self.domains)
            && self.domains.len() == self.functions.len()
            && each.all(fits)
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

    /// For two classes the logarithm of the odds of the second; for more the logarithm of each probability, up to a number that is the same for all.
    pub fn scores(&self, features: &[f32]) -> Vec<f64> {
        let mut scores = self.base.clone();
        let each = self.domains.iter().zip(&self.functions).zip(features);
        for ((domain, function), value) in each {
            let step = &function[domain.bin(*value)];
            scores
                .iter_mut()
                .zip(step)
                .for_each(|(score, step)| *score += step);
        }
        scores
    }

    /// What a feature adds to the scores in each of its bins. `None` if there is no such feature.
    pub fn function(&self, feature: usize) -> Option<&[Vec<f64>]> {
        self.functions.get(feature).map(Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classical::Interval;
    use crate::classical::doubt::{
        budget, fitted, judge_pure, mu_of, nasty, refused, seed, seeded, two_worlds,
    };
    use crate::payment::{Priced, Uncharged};
    use whit_audit::{GdpVerdict, Verdict};
    use whit_core::{Fault, Mechanism};
    use whit_testkit::SeededBits;

    const BOOSTING: Boosting = Boosting {
        epochs: 2,
        leaves: 3,
        rate: 0.5,
        seed: 4,
    };

    /// Numbers from -1 to 1 in five bins, and one feature of three categories.
    fn plan(classes: u32, boosting: Boosting, (epsilon, delta): (f64, f64)) -> BoostedStumpsPlan {
        let interval = Interval::new(-1.0, 1.0).expect("an interval");
        let number = Domain::numbers(interval, 5).expect("a domain");
        let category = Domain::categories(3).expect("a domain");
        let domains = vec![number, number, category];
        BoostedStumpsPlan::new(domains, classes, boosting, budget(epsilon, delta)).expect("a plan")
    }

    fn data(rows: &[(Vec<f32>, u32)], classes: u32) -> Secret<Dataset> {
        let features = rows.iter().flat_map(|row| row.0.clone()).collect();
        let labels = rows.iter().map(|row| row.1).collect();
        let width = rows.first().map_or(3, |row| row.0.len());
        let data = Dataset::with_classes(vec![width], features, labels, classes);
        Secret::new(data.expect("fits"))
    }

    #[test]
    fn closed_form() {
        let grid = f64::from(UNIT_BITS).exp2();
        for (classes, length) in [(2, 1.0), (3, 2.0), (7, 2.0)] {
            let parts = |delta| match plan(classes, BOOSTING, (1.0, delta)).event().mechanism() {
                Mechanism::Composition(parts) => parts.clone(),
                other => panic!("{other:?}"),
            };
            assert_eq!(parts(1e-6).len(), 9, "three counts and two epochs");
            for part in parts(1e-6) {
                let Mechanism::Gaussian {
                    sensitivity_l2_square,
                    ..
                } = part
                else {
                    panic!("another event")
                };
                assert_eq!(sensitivity_l2_square.to_f64_up(), length * grid * grid);
            }
            for part in parts(0.0) {
                let Mechanism::DiscreteLaplace {
                    sensitivity_l1,
                    scale,
                    ..
                } = part
                else {
                    panic!("another event")
                };
                assert_eq!(sensitivity_l1.to_f64_up(), length * grid);
                assert!((scale.ratio().to_f64_up() / (9.0 * length * grid) - 1.0).abs() < 1e-12);
            }
        }
    }

    /// What the examples of a world would add to a round, by what was known before it.
    fn asked(
        plan: &BoostedStumpsPlan,
        rows: &Secret<Dataset>,
        question: &Question<'_>,
        known: &Draft,
    ) -> Vec<f64> {
        let mut examples = plan.read(rows.as_ref().expose());
        for bins in examples.bins.chunks_exact(examples.features) {
            let mut scores = known.base.clone();
            for (function, bin) in known.functions.iter().zip(bins) {
                let steps = &function[usize::from(*bin)];
                scores
                    .iter_mut()
                    .zip(steps)
                    .for_each(|(score, step)| *score += step);
            }
            examples.scores.extend(scores);
        }
        let sums = plan.sums(&Secret::new(examples), question).expose();
        sums.iter().map(|sum| *sum as f64 / UNIT as f64).collect()
    }

    /// Round by round, with what a fit to some examples has come to: what one example adds.
    #[test]
    fn the_worst_example_is_as_long_as_claimed() {
        let mut bits = SeededBits::new(seed(781));
        for (classes, terms) in [(2, (9.0, 1e-6)), (3, (9.0, 1e-6)), (3, (50.0, 0.0))] {
            let boosting = Boosting {
                rate: 1.0,
                epochs: 8,
                ..BOOSTING
            };
            let plan = plan(classes, boosting, terms);
            let length = length(classes as usize) as f64;
            let mut worst = [(0.0_f64, 0.0_f64); 2];
            for trial in 0..60 {
                let mut any = || (nasty(&mut bits, 3), bits.below(u64::from(classes)) as u32);
                let others: Vec<_> = (0..4).map(|_| any()).collect();
                let all = [others.clone(), vec![any()]].concat();
                let (others, all) = (data(&others, classes), data(&all, classes));
                let payment = Payment::uncharged(&plan, Uncharged);
                let fit = plan.rounds(&all, payment, &mut seeded(trial), |question, known, _| {
                    let [with, without] =
                        [&all, &others].map(|world| asked(&plan, world, question, known));
                    let off = with.iter().zip(&without).map(|(a, b)| (a - b).abs());
                    let found = off.fold((0.0, 0.0), |(l1, l2), v| (l1 + v, l2 + v * v));
                    let residual = matches!(question, Question::Residuals { .. });
                    let worst = &mut worst[usize::from(residual)];
                    *worst = (worst.0.max(found.0), worst.1.max(found.1));
                });
                assert!(fit.is_ok());
            }
            for (l1, l2_square) in worst {
                // Laplace noise is priced by L1 alone.
                let priced = if terms.1 > 0.0 { l2_square } else { l1 };
                assert!(priced <= length, "{worst:?}");
            }
            // Steps that are too long leave some answers nearly wrong; and counts are as long as they may be.
            let [(count_l1, count_square), (l1, l2_square)] = worst;
            assert!(l1 > 0.9 * length && l2_square > 0.8 * length, "{worst:?}");
            let counted = if terms.1 > 0.0 {
                count_square
            } else {
                count_l1
            };
            assert!(counted > length * (1.0 - 1e-5), "{worst:?}");
        }
    }

    /// The scores that are kept for each example are those of the functions so far: what is released is about their residuals.
    #[test]
    fn scores_are_those_of_the_model() {
        let plan = plan(3, BOOSTING, (1e6, 1e-6));
        let mut bits = SeededBits::new(785);
        let rows: Vec<_> = (0..20).map(|row| (nasty(&mut bits, 3), row % 3)).collect();
        let world = data(&rows, 3);
        let payment = Payment::uncharged(&plan, Uncharged);
        let model = plan.rounds(
            &world,
            payment,
            &mut seeded(786),
            |question, known, noisy| {
                let exact = asked(&plan, &world, question, known);
                let off = noisy.iter().zip(exact).map(|(noisy, exact)| noisy - exact);
                assert!(off.fold(0.0, |most: f64, off| most.max(off.abs())) < 0.1);
            },
        );
        let model = model.expect("entropy").into_value();
        let mut sum = model.base.clone();
        for feature in 0..3 {
            let function = model.function(feature).expect("a feature");
            let step = &function[plan.domains[feature].bin(rows[0].0[feature])];
            sum.iter_mut()
                .zip(step)
                .for_each(|(sum, step)| *sum += step);
        }
        assert_eq!(model.scores(&rows[0].0), sum);
        assert!(model.function(3).is_none());
    }

    /// One feature of two categories: some examples of the first class and category, and the canary, which has the second of both, so that its
    /// residuals are near one.
    fn small(classes: u32, (epsilon, delta): (f64, f64)) -> BoostedStumpsPlan {
        let two = Domain::categories(2).expect("a domain");
        let boosting = Boosting {
            epochs: 2,
            leaves: 2,
            rate: 0.1,
            seed: 6,
        };
        let plan = BoostedStumpsPlan::new(vec![two], classes, boosting, budget(epsilon, delta));
        plan.expect("a plan")
    }

    /// With the canary, and without.
    fn small_worlds(classes: u32) -> [Secret<Dataset>; 2] {
        let others = vec![(vec![0.0], 0); 12];
        let canary = vec![(vec![1.0], 1)];
        [[others.clone(), canary].concat(), others].map(|rows| data(&rows, classes))
    }

    /// What the broken twins do.
    #[derive(Clone, Copy, PartialEq)]
    enum Flaw {
        Nothing,
        LessNoise,
        /// Counts are taken for public.
        CountsForNothing,
        /// All rounds have the noise that one would need.
        RoundsForNothing,
        /// Examples of a rare class count twice, as where classes are balanced by weights.
        Weighted,
        /// Noise for residuals as short as those of two classes.
        AsForTwoClasses,
    }

    /// The whole fit with and without the canary: whoever knows all examples knows their residuals from what was released.
    fn seen(flaw: Flaw, classes: u32) -> (f64, GdpVerdict) {
        let claimed = small(classes, (6.0, 1e-6));
        let mut done = claimed.clone();
        let factor = match flaw {
            Flaw::Nothing | Flaw::Weighted => (1, 1),
            Flaw::LessNoise => (81, 100),
            Flaw::CountsForNothing => (2, 3),
            Flaw::RoundsForNothing => (1, 3),
            Flaw::AsForTwoClasses => (1, 2),
        };
        let factor = Ratio::new(factor.0, factor.1).expect("not zero");
        done.noise = claimed.noise.with_square_of(factor);
        let worlds = small_worlds(classes);
        let mu = mu_of(claimed.event());
        let verdict = two_worlds(mu, 782, |present, entropy| {
            let payment = Payment::uncharged(&done, Uncharged);
            let (mut product, mut square) = (0.0, 0.0);
            let world = &worlds[usize::from(!present)];
            let fit = done.rounds(world, payment, entropy, |question, known, noisy| {
                let [with, without] =
                    [0, 1].map(|of: usize| asked(&done, &worlds[of], question, known));
                for ((noisy, with), without) in noisy.iter().zip(with).zip(without) {
                    let weight = if flaw == Flaw::Weighted { 2.0 } else { 1.0 };
                    let more = if present { weight - 1.0 } else { 0.0 };
                    let canary = with - without;
                    product += (noisy + more * canary - without) * weight * canary;
                    square += (weight * canary).powi(2);
                }
            });
            assert!(fit.is_ok());
            product / square
        });
        (mu, verdict)
    }

    #[test]
    fn falsifier() {
        // Of three classes the third is thought possible, and takes a part of the residuals.
        for (classes, measured) in [(2, 0.85), (3, 0.8)] {
            let (mu, verdict) = seen(Flaw::Nothing, classes);
            assert!(
                !verdict.convicted && verdict.mu_lower > measured * mu,
                "{classes}: {verdict:?} of {mu}"
            );
        }
    }

    #[test]
    fn falsifier_has_teeth() {
        for flaw in [
            Flaw::LessNoise,
            Flaw::CountsForNothing,
            Flaw::RoundsForNothing,
            Flaw::Weighted,
        ] {
            assert!(seen(flaw, 2).1.convicted);
        }
        assert!(seen(Flaw::AsForTwoClasses, 3).1.convicted);
    }

    /// A whole fit with Laplace noise, for which the best event is a product of half-lines, judged by what the plan claims.
    fn pure_seen(done: &BoostedStumpsPlan, claimed: f64, trials: u64) -> Verdict {
        // So many others that the canary's residuals are very near one; whoever knows them knows what they add, since they are alike.
        const OTHERS: usize = 150;
        let classes = done.classes as u32;
        let (other, canary) = ((vec![0.0], 0), (vec![1.0], 1));
        let others = vec![other.clone(); OTHERS];
        let worlds = [[others.clone(), vec![canary.clone()]].concat(), others];
        let worlds = worlds.map(|rows| data(&rows, classes));
        let [other, canary] = [other, canary].map(|row| data(&[row], classes));
        let world = |absent: usize, of: u64| {
            let (worlds, other, canary) = (&worlds, &other, &canary);
            let mut entropy = seeded(of);
            move || {
                let payment = Payment::uncharged(done, Uncharged);
                let mut all = true;
                let world = &worlds[absent];
                let fit = done.rounds(world, payment, &mut entropy, |question, known, noisy| {
                    let [other, canary] =
                        [other, canary].map(|one| asked(done, one, question, known));
                    let mut each = noisy.iter().zip(other.iter().zip(canary));
                    // A residual near zero tells nothing.
                    all &= each.all(|(noisy, (other, v))| {
                        v.abs() < 0.05 || (noisy - OTHERS as f64 * other - v) * v >= 0.0
                    });
                });
                assert!(fit.is_ok());
                all
            }
        };
        judge_pure(claimed, trials, world(0, 783), world(1, 784))
    }

    #[test]
    fn pure_falsifier() {
        let claimed = 2.0;
        // A tenth too little noise takes minutes to see; half of it, seconds.
        let (trials, measured, noise) = match whit_testkit::long() {
            true => (120_000, 0.85, 0.9),
            false => (20_000, 0.6, 0.5),
        };
        let honest = pure_seen(&small(2, (claimed, 0.0)), claimed, trials);
        assert!(
            !honest.convicted && honest.epsilon_lower > measured * claimed,
            "{honest:?}"
        );
        let less = small(2, (claimed / noise, 0.0));
        assert!(
            pure_seen(&less, claimed, trials).convicted,
            "{noise} of the noise"
        );
    }

    /// With noise for residuals as short as those of two classes, which is half of it.
    #[test]
    fn pure_falsifier_of_three_classes() {
        let claimed = 2.0;
        let honest = pure_seen(&small(3, (claimed, 0.0)), claimed, 30_000);
        assert!(
            !honest.convicted && honest.epsilon_lower > 0.5 * claimed,
            "{honest:?}"
        );
        let as_for_two = small(3, (2.0 * claimed, 0.0));
        assert!(pure_seen(&as_for_two, claimed, 30_000).convicted);
    }

    /// A sum of a step, a slope and a category, for two classes; and for three the category alone.
    #[test]
    fn learns_sums() {
        let mut bits = SeededBits::new(787);
        let mut draw = |classes: u32| {
            let mut row = nasty(&mut bits, 2);
            let category = bits.below(3) as u32;
            row.push(category as f32);
            let score = row[0].clamp(-1.0, 1.0) + if category == 1 { 0.5 } else { -0.5 };
            match classes {
                2 => (row, u32::from(score > 0.0)),
                _ => (row, (category + 1) % 3),
            }
        };
        let boosting = Boosting {
            epochs: 10,
            ..BOOSTING
        };
        for (classes, terms) in [(2, (2.0, 1e-6)), (2, (10.0, 0.0)), (3, (2.0, 1e-6))] {
            let rows: Vec<_> = (0..4000).map(|_| draw(classes)).collect();
            let model = fitted(&plan(classes, boosting, terms), &data(&rows, classes), 788);
            let right = (0..1000).map(|_| draw(classes));
            let right = right.filter(|(row, class)| model.predict(row) == *class);
            let right = right.count();
            assert!(right > 900, "{right} for {classes} at {terms:?}");
            assert!(model.predict(&[]) < classes, "nothing is missed");
        }
    }

    #[test]
    fn more_may_be_spent_on_more_epochs() {
        let epochs = |features, terms: (f64, f64)| {
            Boosting::fitting(features, budget(terms.0, terms.1)).epochs
        };
        let pure = [0.01, 0.1, 1.0, 10.0, 1e3].map(|epsilon| epochs(14, (epsilon, 0.0)));
        assert_eq!(pure, [2, 2, 6, 19, 20]);
        let gaussian = [0.01, 0.1, 1.0, 10.0].map(|epsilon| epochs(14, (epsilon, 1e-6)));
        assert_eq!(gaussian, [2, 6, 18, 40]);
        assert_eq!(
            epochs(784, (10.0, 1e-6)),
            4,
            "as many rounds as there may be"
        );
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let make = |features: usize, classes, change: &dyn Fn(&mut Boosting)| {
            let mut boosting = BOOSTING;
            change(&mut boosting);
            let domains = vec![Domain::categories(3).expect("a domain"); features];
            BoostedStumpsPlan::new(domains, classes, boosting, budget(1.0, 0.0)).err()
        };
        for refused in [
            make(0, 2, &|_| {}),
            make(1, 1, &|_| {}),
            make(1, u32::MAX, &|_| {}),
            make(1, 1 << 19, &|_| {}),
            make(1, 2, &|boosting| boosting.leaves = 1),
            make(1, 2, &|boosting| boosting.leaves = 65),
            make(1, 2, &|boosting| boosting.epochs = 0),
            make(9, 2, &|boosting| boosting.epochs = 1000),
            make(1, 2, &|boosting| boosting.epochs = usize::MAX),
            make(1, 2, &|boosting| boosting.rate = 0.0),
            make(1, 2, &|boosting| boosting.rate = f64::NAN),
        ] {
            let refused = refused.expect("refused");
            assert_eq!(refused.code(), "plan_out_of_range");
            assert!(refused.suggestion().starts_with("give "));
        }
        let plan = plan(2, BOOSTING, (1.0, 0.0));
        let narrow = Dataset::with_classes(vec![4], vec![], vec![], 2).expect("fits");
        assert_eq!(refused(&plan, &Secret::new(narrow)), Some("other_columns"));
        assert_eq!(refused(&plan, &data(&[], 3)), Some("other_labels"));
        assert_eq!(refused(&plan, &data(&[], 2)), None);
    }
}
