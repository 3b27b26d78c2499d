//! # Decision forest
//! **Definition.** Features have declared [domains](Domain), cut into bins. There are `M` trees of depth `D`. Level by level, each node of each tree is given `m` features by a public
//!   seed. Released for each of them, with independent noise of one scale: how many of the node's examples there are of each class in each bin. The split with the purest sides is chosen by
//!   these numbers. In a last round the classes of all leaves are counted, an example being `w` at its leaf. An example is of the class with the largest share in its leaves. \[BFOS84, Bre01\]
//! **Requires.** Domains, classes and shape that were declared without the data.
//! **Guarantee.** That of [`noisy_sums`](super::noisy_sums) with `D + 1` rounds, and in each `Δ₁ = Mm` and `Δ₂² = Mm`. Both are reached.
//! **Proof.** Splits are a function of the rounds before, and the features of a node one of the seed. Given them, an example comes to one node of each tree, by its own bins. There it adds 1
//!   to one number for each of `m` features, that of its bin and class: `Mm` ones in all, at different places. In the last round it adds `w` at one place for each tree,
//!   `Mw` in L1 and `Mw²` squared in L2; `w = m` for Laplace noise, whose price knows L1 alone, and for Gaussian noise, whose price knows L2 alone, the largest multiple of `2^-18` whose square is at
//!   most `m`. ∎
//!   Trees that see all examples pay for that: `M` times in L1, `√M` times in L2. Parts of the data for each would leave counts of an `M`-th, which is never better. Where the part of an
//!   example depends on how many there are, as in libraries that deal rows out evenly, one more example moves others between trees, and the noise of one count does not cover that.
//! **Error.** Each count has the noise of [`deviation`](super::Terms::deviation), those of leaves a `w`-th of it. Nodes where noise hides all splits are not split; leaves that are small
//!   beside their noise look like their parents.

use serde::{Deserialize, Serialize};
use whit_core::{Entropy, Ratio, Secret};
use whit_mechanism::Release;

use super::budget::NoiseKind;
use super::decision_tree::{Counts, DEPTH_MAX, Histogram, Tree, first_of_largest};
use super::domain::{Domain, are_whole, bins_max};
use super::interval::{UNIT, UNIT_BITS};
use super::noisy_sums::{NoisySums, Reach, sum};
use super::{Answers, Budget, COORDINATES_MAX, Classical, Fit, Takes, Terms, counted};
use crate::data::{Answer, Dataset, Example};
use crate::error::{Result, within};
use crate::model::init::Generator;
use crate::payment::Payment;

/// More trees leave nothing for each.
const TREES_MAX: usize = 1000;

/// How many trees, how deep, and what they look at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ForestShape {
    /// `M`.
    pub trees: usize,
    /// `D`.
    pub depth: usize,
    /// `m`: among so many features each node chooses; among all if there are fewer.
    pub features_per_node: usize,
    /// Public: which features a node is given follows from it.
    pub seed: u64,
}

/// What a fit of a forest would do and cost.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionForestPlan {
    domains: Vec<Domain>,
    classes: u32,
    shape: ForestShape,
    /// `w`, in units.
    leaf_weight: i64,
    /// `m`: the shape's, or all features.
    slots: usize,
    /// Of the feature with the most.
    bins: usize,
    /// For each tree, level by level from left to right, the features that a node is given.
    features: Vec<Vec<Vec<usize>>>,
    pub(super) noise: NoisySums,
}

impl DecisionForestPlan {
    /// For examples with features of these domains, of so many classes.
    pub fn new(
        domains: Vec<Domain>,
        classes: u32,
        shape: ForestShape,
        budget: Budget,
    ) -> Result<Self> {
        let most = "a whole number from 1 to 2^20";
        counted("features", domains.len(), COORDINATES_MAX, most)?;
        counted("classes", classes as usize, COORDINATES_MAX, most)?;
        let most = "a whole number from 1 to 1000";
        counted("trees", shape.trees, TREES_MAX, most)?;
        let most = "a whole number from 1 to 16";
        counted("depth", shape.depth, DEPTH_MAX, most)?;
        let most = "a whole number from 1 to 2^20";
        let slots = shape.features_per_node;
        counted("features_per_node", slots, COORDINATES_MAX, most)?;
        let slots = slots.min(domains.len());
        let coordinates = coordinates(&domains, classes as usize, shape, slots);
        let range = "at most 2^20 trees times nodes of the last level, features of a node, bins and classes";
        let passes = coordinates <= COORDINATES_MAX;
        within("the number of sums", coordinates as f64, passes, range)?;
        let length = Ratio::from((shape.trees * slots) as u64);
        let reach = Reach {
            l1: length.clone(),
            l2_square: length,
            coordinates,
            bits: UNIT_BITS,
        };
        let noise = NoisySums::new(reach, shape.depth as u64 + 1, budget)?;
        let leaf_weight = match noise.kind() {
            NoiseKind::Laplace => slots as i64 * UNIT,
            NoiseKind::Gaussian => (slots as i64 * UNIT * UNIT).isqrt(),
        };
        let mut generator = Generator(shape.seed);
        let mut node = |_| generator.some_of(domains.len(), slots);
        let mut tree = |_| (1..1 << shape.depth).map(&mut node).collect();
        let features = (0..shape.trees).map(&mut tree).collect();
        Ok(Self {
            bins: bins_max(&domains),
            domains,
            classes,
            shape,
            leaf_weight,
            slots,
            features,
            noise,
        })
    }

    /// All rounds, for whoever watches: the trees before each round, and what was released about them.
    fn rounds(
        &self,
        data: &Secret<Dataset>,
        payment: Payment,
        entropy: &mut impl Entropy,
        mut watch: impl FnMut(&[Tree], &[f64]),
    ) -> Result<Release<DecisionForest>> {
        let mut rounds = self.noise.begin(payment)?;
        let bare = vec![Tree::default(); self.shape.trees];
        let noisy = rounds.release(self.sums(data, &bare), entropy)?;
        watch(&bare, noisy.value());
        let mut trees = noisy.map(|sums| self.grown(bare, &sums));
        for _ in 0..self.shape.depth {
            let noisy = rounds.release(self.sums(data, trees.value()), entropy)?;
            watch(trees.value(), noisy.value());
            let both = trees.and(noisy)?;
            trees = both.map(|(trees, sums)| self.grown(trees, &sums));
        }
        let trees = rounds.finish(trees)?;
        Ok(trees.map(|trees| DecisionForest {
            domains: self.domains.clone(),
            classes: self.classes,
            trees,
        }))
    }

    fn sums(&self, data: &Secret<Dataset>, trees: &[Tree]) -> Secret<Vec<i128>> {
        let coordinates = coordinates(&self.domains, self.classes as usize, self.shape, self.slots);
        sum(data, coordinates, |example, sums| {
            self.add(example, trees, sums);
        })
    }

    /// What one example adds.
    fn add(&self, example: Example<'_>, trees: &[Tree], sums: &mut [i128]) {
        let Answer::Class(class) = example.answer else {
            return;
        };
        let class = class as usize;
        let bin = |feature: usize| self.domains[feature].bin(example.features[feature]);
        for (index, tree) in trees.iter().enumerate() {
            let node = tree.node(bin);
            if tree.levels.len() == self.shape.depth {
                sums[self.leaf(index, node) + class] += i128::from(self.leaf_weight);
                continue;
            }
            for (slot, feature) in self.given(index, tree, node).iter().enumerate() {
                let at = self.histogram(index, tree, node, slot);
                let at = at + bin(*feature) * self.classes as usize + class;
                sums[at] += i128::from(UNIT);
            }
        }
    }

    /// Post-processing: one level more, or the shares of the leaves.
    fn grown(&self, mut trees: Vec<Tree>, sums: &[f64]) -> Vec<Tree> {
        for (index, tree) in trees.iter_mut().enumerate() {
            match tree.levels.len() == self.shape.depth {
                true => tree.shares = self.shares(index, sums),
                false => {
                    let nodes = 0..1 << tree.levels.len();
                    let level = nodes.map(|node| self.split(index, tree, node, sums));
                    let level = level.collect();
                    tree.levels.push(level);
                }
            }
        }
        trees
    }

    fn split(
        &self,
        index: usize,
        tree: &Tree,
        node: usize,
        sums: &[f64],
    ) -> Option<super::decision_tree::Split> {
        let classes = self.classes as usize;
        let given = self.given(index, tree, node).iter().enumerate();
        let histograms: Vec<_> = given
            .map(|(slot, &feature)| {
                let (at, domain) = (
                    self.histogram(index, tree, node, slot),
                    self.domains[feature],
                );
                Histogram {
                    feature,
                    domain,
                    counts: &sums[at..][..domain.bins() * classes],
                }
            })
            .collect();
        let deviation = self.noise.deviation();
        Counts { classes, deviation }.split(&histograms)
    }

    fn shares(&self, index: usize, sums: &[f64]) -> Vec<Vec<f64>> {
        let classes = self.classes as usize;
        let weight = self.leaf_weight as f64 / UNIT as f64;
        let leaves = &sums[self.leaf(index, 0)..][..classes << self.shape.depth];
        let leaves: Vec<f64> = leaves.iter().map(|count| count / weight).collect();
        let deviation = self.noise.deviation() / weight;
        Counts { classes, deviation }.shares(&leaves)
    }

    /// The features that a node of the level to come is given.
    fn given(&self, index: usize, tree: &Tree, node: usize) -> &[usize] {
        let before = (1 << tree.levels.len()) - 1;
        &self.features[index][before + node]
    }

    /// Where the counts of one feature of one node are, bin by bin, class by class.
    fn histogram(&self, index: usize, tree: &Tree, node: usize, slot: usize) -> usize {
        let place = ((index << tree.levels.len()) + node) * self.slots + slot;
        place * self.bins * self.classes as usize
    }

    /// Where the counts of a leaf are, class by class.
    fn leaf(&self, index: usize, leaf: usize) -> usize {
        ((index << self.shape.depth) + leaf) * self.classes as usize
    }
}

/// As many as the longest round has.
fn coordinates(domains: &[Domain], classes: usize, shape: ForestShape, slots: usize) -> usize {
    let cells = slots.saturating_mul(bins_max(domains));
    // The last level has half as many nodes as there are leaves.
    let longest = (cells << (shape.depth - 1)).max(1 << shape.depth);
    shape.trees.saturating_mul(longest).saturating_mul(classes)
}

impl Classical for DecisionForestPlan {
    type Model = DecisionForest;

    fn takes(&self) -> Takes {
        Takes {
            features: self.domains.len(),
            answers: Answers::Classes(self.classes),
        }
    }

    fn terms(&self) -> Terms {
        self.noise.terms()
    }

    fn spend(
        fit: Fit<'_, Self>,
        payment: Payment,
        entropy: &mut impl Entropy,
    ) -> Result<Release<DecisionForest>> {
        let (plan, data) = (fit.plan(), fit.data());
        plan.rounds(data, payment, entropy, |_, _| {})
    }
}

/// Trees with shares of classes at their leaves. Public.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DecisionForest {
    domains: Vec<Domain>,
    classes: u32,
    trees: Vec<Tree>,
}

impl DecisionForest {
    /// Do its parts fit each other? A file may say anything.
    pub(super) fn is_whole(&self) -> bool {
        let fits = |tree: &Tree| tree.is_whole(&self.domains, self.classes as usize);
        let domains = are_whole(&self.domains);
        let trees = (1..=TREES_MAX).contains(&self.trees.len());
        domains && self.classes > 0 && trees && self.trees.iter().all(fits)
    }

    /// How many features it looks at.
    pub(super) fn features(&self) -> usize {
        self.domains.len()
    }

    /// How many classes it knows.
    pub(super) fn classes(&self) -> u32 {
        self.classes
    }

    /// The class with the largest share; the first of several. Features that are missing count as zero.
    pub fn predict(&self, features: &[f32]) -> u32 {
        first_of_largest(&self.shares(features)) as u32
    }

    /// The share of each class in the example's leaves, on average over trees.
    pub fn shares(&self, features: &[f32]) -> Vec<f64> {
        let value = |feature: usize| features.get(feature).copied().unwrap_or(0.0);
        let bin = |feature: usize| self.domains[feature].bin(value(feature));
        let mut total = vec![0.0; self.classes as usize];
        for tree in &self.trees {
            for (total, share) in total.iter_mut().zip(&tree.shares[tree.node(bin)]) {
                *total += share / self.trees.len() as f64;
            }
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classical::Interval;
    use crate::classical::doubt::{
        along, budget, fitted, judge_pure, lengths, mu_of, nasty, refused, seed, seeded, two_worlds,
    };
    use crate::payment::{Priced, Uncharged};
    use whit_audit::{GdpVerdict, Verdict};
    use whit_core::{Fault, Mechanism};
    use whit_testkit::SeededBits;

    const SHAPE: ForestShape = ForestShape {
        trees: 2,
        depth: 2,
        features_per_node: 3,
        seed: 9,
    };

    /// Numbers from -1 to 1 in seven bins, and three categories.
    fn domains(numbers: usize, categories: usize) -> Vec<Domain> {
        let interval = Interval::new(-1.0, 1.0).expect("an interval");
        let number = Domain::numbers(interval, 7).expect("a domain");
        let category = Domain::categories(3).expect("a domain");
        let both = [vec![number; numbers], vec![category; categories]];
        both.concat()
    }

    fn plan(shape: ForestShape, (epsilon, delta): (f64, f64)) -> DecisionForestPlan {
        let plan = DecisionForestPlan::new(domains(3, 2), 2, shape, budget(epsilon, delta));
        plan.expect("a plan")
    }

    fn data(rows: &[(Vec<f32>, u32)]) -> Secret<Dataset> {
        let features = rows.iter().flat_map(|row| row.0.clone()).collect();
        let labels = rows.iter().map(|row| row.1).collect();
        let data = Dataset::with_classes(vec![5], features, labels, 2);
        Secret::new(data.expect("fits"))
    }

    #[test]
    fn closed_form() {
        let grid = f64::from(UNIT_BITS).exp2();
        for (trees, depth, slots, length) in [(1, 1, 1, 1.0), (2, 3, 4, 8.0), (3, 2, 9, 15.0)] {
            let shape = ForestShape {
                trees,
                depth,
                features_per_node: slots,
                seed: 1,
            };
            let parts = |plan: &DecisionForestPlan| match plan.event().mechanism() {
                Mechanism::Composition(parts) => parts.clone(),
                other => panic!("{other:?}"),
            };
            let gaussian = plan(shape, (1.0, 1e-6));
            assert_eq!(parts(&gaussian).len(), depth + 1);
            for part in parts(&gaussian) {
                let Mechanism::Gaussian {
                    sensitivity_l2_square,
                    ..
                } = part
                else {
                    panic!("another event")
                };
                assert_eq!(sensitivity_l2_square.to_f64_up(), length * grid * grid);
            }
            for part in parts(&plan(shape, (1.0, 0.0))) {
                let Mechanism::DiscreteLaplace {
                    sensitivity_l1,
                    scale,
                    ..
                } = part
                else {
                    panic!("another event")
                };
                assert_eq!(sensitivity_l1.to_f64_up(), length * grid);
                let expected = length * grid * (depth + 1) as f64;
                assert!((scale.ratio().to_f64_up() / expected - 1.0).abs() < 1e-12);
            }
            let weight = gaussian.leaf_weight;
            let square = (length / trees as f64) * grid * grid;
            assert!((weight as f64).powi(2) <= square && ((weight + 1) as f64).powi(2) > square);
        }
    }

    /// A row with categories that are, and are not.
    fn any(bits: &mut SeededBits) -> (Vec<f32>, u32) {
        (nasty(bits, 5), bits.below(2) as u32)
    }

    #[test]
    fn the_worst_example_is_as_long_as_claimed() {
        let mut bits = SeededBits::new(seed(761));
        for terms in [(1.0, 1e-6), (1.0, 0.0)] {
            let plan = plan(SHAPE, terms);
            let mut worst = vec![(0.0_f64, 0.0_f64); 3];
            for trial in 0..300 {
                let grown = data(&(0..40).map(|_| any(&mut bits)).collect::<Vec<_>>());
                let mut stages = vec![];
                let payment = Payment::uncharged(&plan, Uncharged);
                let fit = plan.rounds(&grown, payment, &mut seeded(trial), |trees, _| {
                    stages.push(trees.to_vec());
                });
                assert!(fit.is_ok());
                assert_eq!(stages.len(), 3);
                let others = vec![any(&mut bits), any(&mut bits)];
                let all = [others.clone(), vec![any(&mut bits)]].concat();
                for (trees, worst) in stages.iter().zip(&mut worst) {
                    let [with, without] =
                        [&all, &others].map(|rows| plan.sums(&data(rows), trees).expose());
                    let apart = with.iter().zip(&without).map(|(a, b)| a - b).collect();
                    let found = lengths(Secret::new(apart), UNIT_BITS);
                    *worst = (worst.0.max(found.0), worst.1.max(found.1));
                }
            }
            // Two trees with three features each; and the leaves, whose weight is √3 or 3.
            assert_eq!(worst[..2], [(6.0, 6.0), (6.0, 6.0)]);
            match terms.1 > 0.0 {
                true => assert!(worst[2].1 <= 6.0 && worst[2].1 > 6.0 - 1e-4, "{worst:?}"),
                false => assert_eq!(worst[2].0, 6.0),
            }
        }
    }

    /// Three features with two categories, and one class: the fewest sums with the same claims.
    fn small(shape: ForestShape, (epsilon, delta): (f64, f64)) -> DecisionForestPlan {
        let two = Domain::categories(2).expect("a domain");
        let plan = DecisionForestPlan::new(vec![two; 3], 1, shape, budget(epsilon, delta));
        plan.expect("a plan")
    }

    /// With the canary, and without.
    fn small_worlds() -> [Secret<Dataset>; 2] {
        [1, 0].map(|rows| {
            let features = [1.0, 0.0, 1.0].repeat(rows);
            let data = Dataset::with_classes(vec![3], features, vec![0; rows], 1);
            Secret::new(data.expect("fits"))
        })
    }

    /// What the broken twins do.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Flaw {
        Nothing,
        LessNoise,
        /// Trees are priced as if each saw other examples.
        TreesForNothing,
        /// Levels are priced as if nodes of all levels saw different examples.
        LevelsForNothing,
        /// The chosen feature is priced, and not those it was chosen among.
        FeaturesForNothing,
    }

    /// The whole fit on one example, against none: whoever knows it knows where it would come to.
    fn seen(flaw: Flaw) -> (f64, GdpVerdict) {
        let claimed = small(SHAPE, (6.0, 1e-6));
        let mut done = claimed.clone();
        let factor = match flaw {
            Flaw::Nothing => (1, 1),
            Flaw::LessNoise => (81, 100),
            Flaw::TreesForNothing => (1, 2),
            Flaw::LevelsForNothing | Flaw::FeaturesForNothing => (1, 3),
        };
        let factor = Ratio::new(factor.0, factor.1).expect("not zero");
        done.noise = claimed.noise.with_square_of(factor);
        let worlds = small_worlds();
        let mu = mu_of(claimed.event());
        let verdict = two_worlds(mu, 762, |present, entropy| {
            let payment = Payment::uncharged(&done, Uncharged);
            let mut total = 0.0;
            let world = &worlds[usize::from(!present)];
            let fit = done.rounds(world, payment, entropy, |trees, noisy| {
                let canary = done.sums(&worlds[0], trees).expose();
                let canary: Vec<f64> = canary.iter().map(|v| *v as f64 / UNIT as f64).collect();
                total += along(noisy, &canary);
            });
            assert!(fit.is_ok());
            total / 3.0
        });
        (mu, verdict)
    }

    #[test]
    fn falsifier() {
        let (mu, verdict) = seen(Flaw::Nothing);
        assert!(
            !verdict.convicted && verdict.mu_lower > 0.9 * mu,
            "{verdict:?} of {mu}"
        );
    }

    #[test]
    fn falsifier_has_teeth() {
        for flaw in [
            Flaw::LessNoise,
            Flaw::TreesForNothing,
            Flaw::LevelsForNothing,
            Flaw::FeaturesForNothing,
        ] {
            assert!(seen(flaw).1.convicted);
        }
    }

    /// The same for Laplace noise, whose best event is a product of half-lines. Of all trials those are in it with the canary that a coin has shown once for each of its coordinates.
    fn pure_seen(shape: ForestShape, factor: (u128, u128), trials: u64) -> Verdict {
        let claimed = small(shape, (PURE, 0.0));
        let factor = Ratio::new(factor.0, factor.1).expect("not zero");
        let mut done = claimed.clone();
        done.noise = claimed.noise.with_square_of(factor);
        let worlds = small_worlds();
        let world = |absent: usize, of: u64| {
            let (done, worlds) = (&done, &worlds);
            let mut entropy = seeded(of);
            move || {
                let payment = Payment::uncharged(done, Uncharged);
                let mut all = true;
                let world = &worlds[absent];
                let fit = done.rounds(world, payment, &mut entropy, |trees, noisy| {
                    let canary = done.sums(&worlds[0], trees).expose();
                    let each = noisy.iter().zip(&canary).filter(|(_, v)| **v > 0);
                    let mut off = each.map(|(noisy, v)| noisy * UNIT as f64 - *v as f64);
                    all &= off.all(|off| off >= 0.0);
                });
                assert!(fit.is_ok());
                all
            }
        };
        judge_pure(PURE, trials, world(0, 763), world(1, 764))
    }

    /// The epsilon of pure claims.
    const PURE: f64 = 2.0;

    #[test]
    fn pure_falsifier() {
        let shape = ForestShape {
            trees: 1,
            depth: 1,
            features_per_node: 2,
            seed: 3,
        };
        // A share of 2^-3 of them are seen with the canary, and a tenth less noise is to be told from none.
        let honest = pure_seen(shape, (1, 1), 100_000);
        assert!(
            !honest.convicted && honest.epsilon_lower > 0.85 * PURE,
            "{honest:?}"
        );
        let less = pure_seen(shape, (9, 10), 100_000);
        assert!(less.convicted, "{less:?}");
        let one_feature = pure_seen(shape, (1, 2), 4000);
        assert!(one_feature.convicted, "{one_feature:?}");
    }

    /// Two trees of one level and one tree of two, each node of which looks at one feature; and two of two, of which a share of 2^-6 is seen.
    #[test]
    fn pure_falsifier_of_trees_and_levels() {
        let (trees, levels) = (
            (Flaw::TreesForNothing, (1, 2)),
            (Flaw::LevelsForNothing, (1, 3)),
        );
        let many = if whit_testkit::long() {
            100_000
        } else {
            40_000
        };
        let cases = [
            (2, 1, vec![trees], 8000),
            (1, 2, vec![levels], 8000),
            (2, 2, vec![trees, levels], many),
        ];
        for (trees, depth, flaws, trials) in cases {
            let shape = ForestShape {
                trees,
                depth,
                features_per_node: 1,
                seed: 3,
            };
            let honest = pure_seen(shape, (1, 1), trials);
            assert!(
                !honest.convicted && honest.epsilon_lower > 0.5 * PURE,
                "{honest:?}"
            );
            for (flaw, factor) in flaws {
                let verdict = pure_seen(shape, factor, trials);
                assert!(verdict.convicted, "{flaw:?}: {verdict:?}");
            }
        }
    }

    /// The class is whether two features have one sign: no single split tells, two do. And a category turns it around.
    #[test]
    fn learns_what_no_single_split_tells() {
        let mut bits = SeededBits::new(765);
        let mut draw = || {
            let row = nasty(&mut bits, 3);
            let turned = bits.below(3) as f32;
            let class = (row[0] > 0.0) != (turned == 1.0);
            let row = vec![row[0], row[1], row[2], turned, 0.0];
            (row, u32::from(class))
        };
        let rows: Vec<_> = (0..6000).map(|_| draw()).collect();
        let shape = ForestShape {
            trees: 2,
            depth: 3,
            features_per_node: 4,
            seed: 5,
        };
        for terms in [(1.0, 1e-6), (4.0, 0.0)] {
            let forest = fitted(&plan(shape, terms), &data(&rows), 766);
            let right = (0..1000).map(|_| draw());
            let right = right.filter(|(row, class)| forest.predict(row) == *class);
            let right = right.count();
            assert!(right > 900, "{right} at {terms:?}");
            let sum: f64 = forest.shares(&rows[0].0).iter().sum();
            assert!((sum - 1.0).abs() < 1e-9);
            assert!(forest.predict(&[]) < 2, "nothing is missed");
        }
    }

    /// Each node was given its features by a shuffle of all: a deep tree over a million of them took hours before anything was paid.
    #[test]
    fn nodes_of_many_features_are_given_some() {
        let shape = ForestShape {
            trees: 1,
            depth: 12,
            features_per_node: 4,
            seed: 3,
        };
        let wide = vec![Domain::categories(2).expect("a domain"); COORDINATES_MAX];
        let plan = DecisionForestPlan::new(wide, 2, shape, budget(1.0, 1e-6)).expect("a plan");
        let nodes = &plan.features[0];
        assert_eq!(nodes.len(), (1 << 12) - 1);
        let least = nodes.iter().flatten().min();
        let most = nodes.iter().flatten().max();
        assert!(least < Some(&1000) && most > Some(&(COORDINATES_MAX - 1000)));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let make = |domains: Vec<Domain>, classes, change: &dyn Fn(&mut ForestShape)| {
            let mut shape = SHAPE;
            change(&mut shape);
            DecisionForestPlan::new(domains, classes, shape, budget(1.0, 0.0)).err()
        };
        for refused in [
            make(vec![], 2, &|_| {}),
            make(domains(1, 1), 0, &|_| {}),
            make(domains(1, 1), u32::MAX, &|_| {}),
            make(domains(1, 1), 2, &|shape| shape.trees = 0),
            make(domains(1, 1), 2, &|shape| shape.trees = 1001),
            make(domains(1, 1), 2, &|shape| shape.depth = 0),
            make(domains(1, 1), 2, &|shape| shape.depth = 17),
            make(domains(1, 1), 2, &|shape| shape.features_per_node = 0),
            make(domains(9, 9), 99, &|shape| {
                (shape.trees, shape.depth) = (99, 9)
            }),
        ] {
            let refused = refused.expect("refused");
            assert_eq!(refused.code(), "plan_out_of_range");
            assert!(refused.suggestion().starts_with("give "));
        }
        let plan = plan(SHAPE, (1.0, 0.0));
        let narrow = Dataset::with_classes(vec![4], vec![], vec![], 2).expect("fits");
        assert_eq!(refused(&plan, &Secret::new(narrow)), Some("other_columns"));
        let many = Dataset::with_classes(vec![5], vec![], vec![], 3).expect("fits");
        assert_eq!(refused(&plan, &Secret::new(many)), Some("other_labels"));
        assert_eq!(refused(&plan, &data(&[])), None);
    }
}
