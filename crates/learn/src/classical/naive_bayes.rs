//! # Gaussian naive Bayes
//! **Definition.** Each of `d` features has declared bounds, between which a clamped value has a place `c_j` in `[-1, 1]`. Released for each declared
//!   class, with independent noise of one scale: the number of its examples, `Σ c_j` and `Σ (c_j² - 1/2)`. The model of a class is its share of
//!   the examples and a normal distribution for each feature; an example is of the class under which it is likeliest. \[VSB13\]
//! **Requires.** Bounds and classes that were declared without the data.
//! **Guarantee.** That of [`noisy_sums`](super::noisy_sums) with one round and, for all classes together,
//!   `Δ₁ = 1 + 3d/2` and `Δ₂² = 1 + 5d/4`. Both are reached.
//! **Proof.** An example is of one class, and touches its coordinates alone: classes come for nothing. There it adds `1`, `c_j` and `c_j² - 1/2`. For
//!   `|c| <= 1`, `c² + (c² - 1/2)² = c⁴ + 1/4 <= 5/4`, which with the count is `Δ₂²`. `|c| + |c² - 1/2|` is at most `3/2`: from
//!   `c² = 1/2` on it grows with `|c|`, and before it is `|c| - c² + 1/2 <= 3/4`. All are reached where every `|c_j| = 1`. Places are rounded to `2^-18` and clamped as integers
//!   ([`interval`](super::Interval)), so `c_j`, its square and the half are whole multiples of `2^-36`, and what was said holds for them
//!   exactly. An example whose class is none of those declared is empty, and adds nothing. ∎
//!   Squares less a half, and not squares, since they are nearer to nothing: `Δ₂²` would be `1 + 2d` with those.
//! **Error.** Counts, sums and squares have the noise of [`deviation`](Terms::deviation). Of a class with no more examples than two deviations nothing is
//!   known: its features are taken as spread over their intervals.

use serde::{Deserialize, Serialize};
use whit_core::{Entropy, Ratio, Secret};
use whit_mechanism::Release;

use super::interval::{Interval, UNIT, UNIT_BITS};
use super::noisy_sums::{NoisySums, Reach, sum};
use super::{Answers, Budget, COORDINATES_MAX, Classical, Fit, Takes, Terms, counted};
use crate::data::{Answer, Dataset, Example};
use crate::error::{Result, within};
use crate::payment::Payment;

/// The grid of all sums: that of products of two places.
const BITS: i32 = 2 * UNIT_BITS;
/// The variance of a number that is spread evenly from -1 to 1.
const VARIANCE_OF_ANY: f64 = 1.0 / 3.0;
/// A spread of three hundredths of the half width is the least that is believed: features that are nearly all the same would else decide alone.
const VARIANCE_MIN: f64 = 1e-3;
/// Classes with fewer examples than this many deviations of the noise are not looked at.
const DEVIATIONS: f64 = 2.0;

/// What a fit of naive Bayes would do and cost.
#[derive(Clone, Debug, PartialEq)]
pub struct NaiveBayesPlan {
    features: Vec<Interval>,
    classes: u32,
    pub(super) noise: NoisySums,
}

impl NaiveBayesPlan {
    /// For examples with these features, of so many classes.
    pub fn new(features: Vec<Interval>, classes: u32, budget: Budget) -> Result<Self> {
        let d = features.len();
        counted(
            "features",
            d,
            COORDINATES_MAX,
            "a whole number from 1 to 2^20",
        )?;
        counted(
            "classes",
            classes as usize,
            COORDINATES_MAX,
            "a whole number from 1 to 2^20",
        )?;
        let coordinates = Layout(d).coordinates(classes as usize);
        let range =
            "at most 2^20 classes times numbers per class, which are twice the features and one";
        let passes = coordinates <= COORDINATES_MAX;
        within("the number of sums", coordinates as f64, passes, range)?;
        let reach = Reach {
            l1: Ratio::new(2 + 3 * d as u128, 2)?,
            l2_square: Ratio::new(4 + 5 * d as u128, 4)?,
            coordinates,
            bits: BITS,
        };
        let noise = NoisySums::new(reach, 1, budget)?;
        Ok(Self {
            features,
            classes,
            noise,
        })
    }

    fn sums(&self, data: &Secret<Dataset>) -> Secret<Vec<i128>> {
        let coordinates = Layout(self.features.len()).coordinates(self.classes as usize);
        sum(data, coordinates, |example, sums| self.add(example, sums))
    }

    /// What one example adds.
    fn add(&self, example: Example<'_>, sums: &mut [i128]) {
        let layout = Layout(self.features.len());
        let Answer::Class(class) = example.answer else {
            return;
        };
        sums[layout.count(class)] += i128::from(UNIT * UNIT);
        for (j, (interval, value)) in self.features.iter().zip(example.features).enumerate() {
            let c = interval.units(*value);
            sums[layout.sum(class, j)] += i128::from(c * UNIT);
            sums[layout.square(class, j)] += i128::from(c * c - UNIT * UNIT / 2);
        }
    }

    /// Post-processing.
    fn model(&self, sums: &[f64]) -> NaiveBayes {
        let layout = Layout(self.features.len());
        let noise = self.noise.deviation();
        let total: f64 = (0..self.classes)
            .map(|class| sums[layout.count(class)].max(noise))
            .sum();
        let classes = (0..self.classes).map(|class| {
            let count = sums[layout.count(class)];
            let known = count > DEVIATIONS * noise;
            let normal = |j: usize| {
                if !known {
                    return Normal {
                        mean: 0.0,
                        variance: VARIANCE_OF_ANY,
                    };
                }
                let mean = (sums[layout.sum(class, j)] / count).clamp(-1.0, 1.0);
                let square = sums[layout.square(class, j)] / count + 0.5;
                let least = (noise / count).max(VARIANCE_MIN);
                Normal {
                    mean,
                    variance: (square - mean * mean).clamp(least, 1.0),
                }
            };
            Class {
                log_share: (count.max(noise) / total).ln(),
                features: (0..self.features.len()).map(normal).collect(),
            }
        });
        NaiveBayes {
            intervals: self.features.clone(),
            classes: classes.collect(),
        }
    }
}

impl Classical for NaiveBayesPlan {
    type Model = NaiveBayes;

    fn takes(&self) -> Takes {
        Takes {
            features: self.features.len(),
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
    ) -> Result<Release<NaiveBayes>> {
        let (plan, data) = (fit.plan(), fit.data());
        let noisy = plan.noise.release(payment, || plan.sums(data), entropy)?;
        Ok(noisy.map(|sums| plan.model(&sums)))
    }
}

/// Where the sums of `d` features are: class by class a count, sums and squares.
#[derive(Clone, Copy)]
struct Layout(usize);

impl Layout {
    fn coordinates(self, classes: usize) -> usize {
        classes.saturating_mul(2 * self.0 + 1)
    }

    fn count(self, class: u32) -> usize {
        class as usize * (2 * self.0 + 1)
    }

    fn sum(self, class: u32, j: usize) -> usize {
        self.count(class) + 1 + j
    }

    fn square(self, class: u32, j: usize) -> usize {
        self.sum(class, j) + self.0
    }
}

/// A fitted model. Public.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NaiveBayes {
    intervals: Vec<Interval>,
    classes: Vec<Class>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Class {
    log_share: f64,
    features: Vec<Normal>,
}

/// Where the interval is from -1 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Normal {
    mean: f64,
    variance: f64,
}

impl NaiveBayes {
    /// Do its parts fit each other? A file may say anything.
    pub(super) fn is_whole(&self) -> bool {
        let normal = |n: &Normal| n.mean.is_finite() && n.variance.is_finite() && n.variance > 0.0;
        let fits = |class: &Class| {
            class.log_share.is_finite()
                && class.features.len() == self.intervals.len()
                && class.features.iter().all(normal)
        };
        let intervals = self.intervals.iter().all(|interval| interval.is_whole());
        intervals && !self.classes.is_empty() && self.classes.iter().all(fits)
    }

    /// How many features it looks at.
    pub(super) fn features(&self) -> usize {
        self.intervals.len()
    }

    /// How many classes it knows.
    pub(super) fn classes(&self) -> u32 {
        self.classes.len() as u32
    }

    /// The likeliest class; the first of several. Features that are missing are not looked at.
    pub fn predict(&self, features: &[f32]) -> u32 {
        let mut best = (0, f64::NEG_INFINITY);
        for (class, score) in (0..).zip(self.scores(features)) {
            if score > best.1 {
                best = (class, score);
            }
        }
        best.0
    }

    /// The logarithm of each class's share times its density, up to a number that is the same for all.
    pub fn scores(&self, features: &[f32]) -> Vec<f64> {
        let score = |class: &Class| {
            let each = self.intervals.iter().zip(features).zip(&class.features);
            let logs = each.map(|((interval, value), normal)| {
                // As clamped as what the model was fitted to.
                let off = interval.place(f64::from(*value)).clamp(-1.0, 1.0) - normal.mean;
                -0.5 * (normal.variance.ln() + off * off / normal.variance)
            });
            class.log_share + logs.sum::<f64>()
        };
        self.classes.iter().map(score).collect()
    }

    /// The share of each class.
    pub fn shares(&self) -> Vec<f64> {
        let shares = self.classes.iter().map(|class| class.log_share.exp());
        shares.collect()
    }

    /// The mean of each feature in each class, in the features' own unit.
    pub fn means(&self) -> Vec<Vec<f64>> {
        self.each(|interval, normal| interval.value(normal.mean))
    }

    /// The variance of each feature in each class.
    pub fn variances(&self) -> Vec<Vec<f64>> {
        self.each(|interval, normal| normal.variance * interval.half_width().powi(2))
    }

    fn each(&self, of: impl Fn(&Interval, &Normal) -> f64) -> Vec<Vec<f64>> {
        let class = |class: &Class| {
            let each = self.intervals.iter().zip(&class.features);
            each.map(|(interval, normal)| of(interval, normal))
                .collect()
        };
        self.classes.iter().map(class).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classical::doubt::{
        Flaw, Twin, acquits, budget, convicts, fitted, in_grid, longest, nasty, nearly_normal,
        plus, refused, seed, spanned, stated,
    };
    use crate::payment::Priced;
    use whit_core::{Event, Fault, Neighbours};
    use whit_testkit::SeededBits;

    fn plan(d: usize, classes: u32, (epsilon, delta): (f64, f64)) -> NaiveBayesPlan {
        let interval = Interval::new(-1.0, 1.0).expect("an interval");
        NaiveBayesPlan::new(vec![interval; d], classes, budget(epsilon, delta)).expect("a plan")
    }

    fn data(d: usize, rows: &[(Vec<f32>, u32)], classes: u32) -> Secret<Dataset> {
        let features = rows.iter().flat_map(|row| row.0.clone()).collect();
        let labels = rows.iter().map(|row| row.1).collect();
        let data = Dataset::with_classes(vec![d], features, labels, classes);
        Secret::new(data.expect("fits"))
    }

    #[test]
    fn closed_form() {
        for (d, l1, l2_square) in [(1, 2.5, 2.25), (2, 4.0, 3.5), (4, 7.0, 6.0)] {
            let gaussian = plan(d, 3, (1.0, 1e-6));
            assert_eq!(stated(gaussian.event(), BITS), [(l2_square, None)]);
            let (pure, sums) = (plan(d, 3, (0.5, 0.0)), 3 * (2 * d as u64 + 1));
            assert_eq!(stated(pure.event(), BITS), [(l1, Some(sums))]);
            let deviation = std::f64::consts::SQRT_2 * 2.0 * l1;
            assert!((pure.terms().deviation / deviation - 1.0).abs() < 1e-12);
        }
        let event: &Event = &plan(1, 2, (1.0, 1e-6)).noise.event().clone();
        assert_eq!(event.neighbours(), Neighbours::AddRemove);
    }

    /// Never further than claimed, and the claim is reached.
    #[test]
    fn the_worst_example_is_as_long_as_claimed() {
        let mut bits = SeededBits::new(seed(711));
        for d in 1..=3 {
            let plan = plan(d, 2, (1.0, 0.0));
            let worst = longest(3000, BITS, || {
                let others: Vec<_> = (0..3).map(|_| (nasty(&mut bits, d), 1)).collect();
                let mut all = others.clone();
                all.push((nasty(&mut bits, d), bits.below(3) as u32));
                [all, others].map(|rows| plan.sums(&data(d, &rows, 2)))
            });
            assert_eq!(worst, (1.0 + 1.5 * d as f64, 1.0 + 1.25 * d as f64), "{d}");
        }
    }

    #[test]
    fn empty_examples_add_nothing() {
        let plan = plan(1, 2, (1.0, 0.0));
        let rows = [
            (vec![f32::NAN], 0),
            (vec![1.0], 2),
            (vec![f32::INFINITY], 1),
        ];
        assert!(
            plan.sums(&data(1, &rows, 2))
                .expose()
                .iter()
                .all(|sum| *sum == 0)
        );
    }

    /// A canary beyond the end of its interval, with others and without it.
    fn twin(flaw: Flaw, form: (f64, f64)) -> Twin {
        let claimed = plan(1, 1, form);
        let others: Vec<_> = [[0.5, -0.5]; 5]
            .concat()
            .iter()
            .map(|x| (vec![*x], 0))
            .collect();
        let mut all = others.clone();
        all.push((vec![3.0], 0));
        let worlds = [others, all].map(|rows| {
            let mut plan = claimed.clone();
            if flaw == Flaw::BoundsFromData {
                plan.features = vec![spanned(rows.iter().map(|row| row.0[0]))];
            }
            plan.sums(&data(1, &rows, 1)).expose()
        });
        let [without, mut with] = worlds;
        if flaw == Flaw::Unclamped {
            with = plus(&without, &in_grid(&[1.0, 3.0, 8.5], BITS));
        }
        // Counts and squares are released, and not priced.
        let sums_alone = claimed.noise.believing(Ratio::one(), Ratio::one());
        Twin::new(flaw, &claimed.noise, sums_alone, [without, with])
    }

    #[test]
    fn falsifier() {
        acquits(712, twin);
    }

    #[test]
    fn falsifier_has_teeth() {
        use Flaw::{BoundsFromData, Forgotten, LessNoise, Unclamped};
        convicts(
            713,
            &[LessNoise, Forgotten, BoundsFromData, Unclamped],
            twin,
        );
    }

    #[test]
    fn learns_two_clouds() {
        let mut bits = SeededBits::new(716);
        let mut draw = |class: u32| {
            let centre = if class == 0 { -0.4 } else { 0.3 };
            let mut value = || (centre + 0.15 * nearly_normal(&mut bits)) as f32;
            (vec![value(), value()], class)
        };
        let rows: Vec<_> = (0..2000).map(|row| draw(u32::from(row % 4 == 0))).collect();
        let private = data(2, &rows, 3);
        for terms in [(1.0, 1e-6), (2.0, 0.0)] {
            let plan = plan(2, 3, terms);
            let model = fitted(&plan, &private, 717);
            let right = (0..1000).map(|row| draw(row % 2));
            let right = right.filter(|(features, class)| model.predict(features) == *class);
            assert!(right.count() > 970);
            assert!(
                (model.shares()[0] - 0.75).abs() < 0.05,
                "{:?}",
                model.shares()
            );
            let (mean, variance) = (model.means()[1][0], model.variances()[0][1]);
            assert!((mean - 0.3).abs() < 0.05, "{mean}");
            assert!((variance - 0.0225).abs() < 0.04, "{variance}");
            assert!(
                model.shares()[2] < 0.05,
                "of the third class there is nothing"
            );
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let code = |result: Result<NaiveBayesPlan>| result.err().map(|error| error.code());
        let interval = Interval::new(0.0, 1.0).expect("an interval");
        let make = |d, classes| NaiveBayesPlan::new(vec![interval; d], classes, budget(1.0, 0.0));
        for refused in [make(0, 2), make(1, 0), make(1 << 19, 2), make(2, u32::MAX)] {
            assert!(
                refused
                    .as_ref()
                    .is_err_and(|error| !error.suggestion().is_empty())
            );
            assert_eq!(code(refused), Some("plan_out_of_range"));
        }
        let plan = plan(2, 2, (1.0, 0.0));
        assert_eq!(refused(&plan, &data(1, &[], 2)), Some("other_columns"));
        assert_eq!(refused(&plan, &data(2, &[], 3)), Some("other_labels"));
        let numbers = Dataset::with_numbers(vec![2], vec![], vec![]).expect("fits");
        assert_eq!(refused(&plan, &Secret::new(numbers)), Some("other_labels"));
        assert_eq!(refused(&plan, &data(2, &[], 2)), None, "no rows are data");
    }
}
