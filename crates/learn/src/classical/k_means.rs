//! # k-means
//! **Definition.** Features have declared bounds, between which a clamped example has a place `c` in `[-1, 1]^d`. There are `k` centres. In each of `T` rounds an example is of the centre that
//!   is nearest to it; released for each centre, with independent noise of one scale: the number of its examples and `Σ c`. A centre moves to the quotient. \[BDMN05, SCL+16\]
//! **Requires.** Bounds, centres and rounds that were declared without the data. The first centres are spread over the box by a public seed.
//! **Guarantee.** That of [`noisy_sums`](super::noisy_sums) with `T` rounds, and in each, for all centres together, `Δ₁ = 1 + d` and `Δ₂² = 1 + d`.
//!   Both are reached.
//! **Proof.** Centres are a function of the seed and of the rounds before. Given them, an example is of one centre, chosen by its own place, and adds 1 and `c` there: `1 + Σ|c_j|` in L1,
//!   `1 + Σ c_j²` squared in L2, both largest at the corners. Which centre is nearest is found in floats; whatever they say, it is one centre, and the same whoever else is there.
//!   Places are whole multiples of `2^-18`, so that this holds for integers exactly. ∎
//! **Rounds.** They never stop early: when would be a question about the data. Each has a `T`-th of `ε`, or of `μ²`. A few are enough: noise grows with the others.
//! **Splitting.** A centre with fewer than two deviations of the noise is lost: it goes beside the one with the most examples, if that has many, so that the two share them. Where it goes follows from the
//!   seed and from what was released: post-processing. After the last round nothing is moved.
//! **Error.** A centre of `n` examples has noise of about `σ/n`.

use serde::{Deserialize, Serialize};
use whit_core::{Entropy, Ratio, Secret};
use whit_mechanism::Release;

use super::interval::{Interval, UNIT, UNIT_BITS};
use super::noisy_sums::{NoisySums, Reach, sum};
use super::{Answers, Budget, COORDINATES_MAX, Classical, Fit, Takes, Terms, counted};
use crate::data::{Dataset, Example};
use crate::error::{Result, within};
use crate::model::init::Generator;
use crate::payment::Payment;

/// More rounds leave nothing for each.
const ROUNDS_MAX: usize = 1000;
/// More clusters than this take too long to spread.
const CLUSTERS_MAX: usize = 1024;
/// Of so many places for each first centre, those are taken that are farthest from the others.
const CANDIDATES: usize = 16;
/// Centres with fewer examples than this many deviations of the noise are lost.
const DEVIATIONS: f64 = 2.0;
/// With more than this many deviations a centre is shared with a lost one.
const MANY: f64 = 8.0;
/// So far from each other two begin that share examples, in half widths of each interval: less than clusters are apart, and more than noise moves centres.
const BESIDE: f64 = 0.2;

/// How many centres, how often they move, and where they begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lloyd {
    /// `k`.
    pub clusters: usize,
    /// `T`.
    pub rounds: usize,
    /// Public: the first centres follow from it.
    pub seed: u64,
}

/// What a clustering would do and cost.
#[derive(Clone, Debug, PartialEq)]
pub struct KMeansPlan {
    features: Vec<Interval>,
    lloyd: Lloyd,
    pub(super) noise: NoisySums,
}

impl KMeansPlan {
    /// For examples with these features.
    pub fn new(features: Vec<Interval>, lloyd: Lloyd, budget: Budget) -> Result<Self> {
        let d = features.len();
        let most = "a whole number from 1 to 2^20";
        counted("features", d, COORDINATES_MAX, most)?;
        let most = "a whole number from 1 to 1024";
        counted("clusters", lloyd.clusters, CLUSTERS_MAX, most)?;
        let most = "a whole number from 1 to 1000";
        counted("rounds", lloyd.rounds, ROUNDS_MAX, most)?;
        let coordinates = lloyd.clusters * (d + 1);
        let range =
            "at most 2^20 clusters times numbers per cluster, which are the features and one";
        let passes = coordinates <= COORDINATES_MAX;
        within("the number of sums", coordinates as f64, passes, range)?;
        let length = Ratio::from(d as u64 + 1);
        let reach = Reach {
            l1: length.clone(),
            l2_square: length,
            coordinates,
            bits: UNIT_BITS,
        };
        let noise = NoisySums::new(reach, lloyd.rounds as u64, budget)?;
        Ok(Self {
            features,
            lloyd,
            noise,
        })
    }

    /// All rounds, for whoever watches: each round's centres, and what was released about them.
    fn rounds(
        &self,
        data: &Secret<Dataset>,
        payment: Payment,
        entropy: &mut impl Entropy,
        mut watch: impl FnMut(&Centres, &[f64]),
    ) -> Result<Release<KMeans>> {
        let mut rounds = self.noise.begin(payment)?;
        let mut generator = Generator(self.lloyd.seed);
        let first = self.spread(&mut generator);
        let noisy = rounds.release(self.sums(data, &first), entropy)?;
        watch(&first, noisy.value());
        let centres = noisy.map(|sums| self.moved(first, &sums));
        let mut counts = centres.clone().map(|(_, counts)| counts).into_value();
        let mut centres = centres.map(|(centres, _)| centres);
        for _ in 1..self.lloyd.rounds {
            centres = centres.map(|centres| self.shared(centres, &counts, &mut generator));
            let noisy = rounds.release(self.sums(data, centres.value()), entropy)?;
            watch(centres.value(), noisy.value());
            let both = centres.and(noisy)?;
            let moved = both.map(|(centres, sums)| self.moved(centres, &sums));
            counts.clone_from(&moved.value().1);
            centres = moved.map(|(centres, _)| centres);
        }
        let centres = rounds.finish(centres)?;
        Ok(centres.map(|centres| KMeans {
            intervals: self.features.clone(),
            centres,
        }))
    }

    fn sums(&self, data: &Secret<Dataset>, centres: &Centres) -> Secret<Vec<i128>> {
        let mut units = Vec::with_capacity(self.features.len());
        let coordinates = self.lloyd.clusters * (self.features.len() + 1);
        sum(data, coordinates, |example, sums| {
            self.add(example, centres, &mut units, sums);
        })
    }

    /// What one example adds.
    fn add(
        &self,
        example: Example<'_>,
        centres: &Centres,
        units: &mut Vec<i64>,
        sums: &mut [i128],
    ) {
        units.clear();
        let each = self.features.iter().zip(example.features);
        units.extend(each.map(|(interval, value)| interval.units(*value)));
        let nearest = centres.nearest(units.iter().map(|c| *c as f64 / UNIT as f64));
        let width = self.features.len() + 1;
        let sums = &mut sums[nearest * width..][..width];
        sums[0] += i128::from(UNIT);
        for (sum, c) in sums[1..].iter_mut().zip(units.iter()) {
            *sum += i128::from(*c);
        }
    }

    /// Post-processing: centres where their examples are, and how many each has.
    fn moved(&self, mut centres: Centres, sums: &[f64]) -> (Centres, Vec<f64>) {
        let least = DEVIATIONS * self.noise.deviation();
        let sums = sums.chunks_exact(self.features.len() + 1);
        let counts = sums.clone().map(|sums| sums[0]).collect();
        for (centre, sums) in centres.0.iter_mut().zip(sums) {
            if sums[0] <= least {
                continue;
            }
            for (place, sum) in centre.iter_mut().zip(&sums[1..]) {
                *place = (sum / sums[0]).clamp(-1.0, 1.0);
            }
        }
        (centres, counts)
    }

    /// Post-processing: lost centres beside those that have many examples.
    fn shared(&self, mut centres: Centres, counts: &[f64], generator: &mut Generator) -> Centres {
        let noise = self.noise.deviation();
        let mut left = counts.to_vec();
        for lost in (0..counts.len()).filter(|index| counts[*index] <= DEVIATIONS * noise) {
            let most = (0..left.len()).max_by(|one, other| left[*one].total_cmp(&left[*other]));
            let Some(most) = most.filter(|most| left[*most] > MANY * noise) else {
                break;
            };
            let beside = centres.0[most].iter();
            let beside = beside.map(|place| place + BESIDE * f64::from(generator.within(1.0)));
            centres.0[lost] = beside.map(|place| place.clamp(-1.0, 1.0)).collect();
            left[most] /= 2.0;
            left[lost] = left[most];
        }
        centres
    }

    /// The first centres: a place anywhere, and then of some places always the one that is farthest from all centres that there are.
    fn spread(&self, generator: &mut Generator) -> Centres {
        let d = self.features.len();
        let mut anywhere = || -> Vec<f64> {
            let place = |_| f64::from(generator.within(1.0));
            (0..d).map(place).collect()
        };
        let mut centres = Centres(vec![anywhere()]);
        while centres.0.len() < self.lloyd.clusters {
            let mut best = (f64::NEG_INFINITY, vec![0.0; d]);
            for _ in 0..CANDIDATES {
                let place = anywhere();
                let nearest = &centres.0[centres.nearest(place.iter().copied())];
                let distance = distance_square(nearest, place.iter().copied());
                if distance > best.0 {
                    best = (distance, place);
                }
            }
            centres.0.push(best.1);
        }
        centres
    }
}

impl Classical for KMeansPlan {
    type Model = KMeans;

    fn takes(&self) -> Takes {
        Takes {
            features: self.features.len(),
            answers: Answers::Nothing,
        }
    }

    fn terms(&self) -> Terms {
        self.noise.terms()
    }

    fn spend(
        fit: Fit<'_, Self>,
        payment: Payment,
        entropy: &mut impl Entropy,
    ) -> Result<Release<KMeans>> {
        let (plan, data) = (fit.plan(), fit.data());
        plan.rounds(data, payment, entropy, |_, _| {})
    }
}

/// Places of centres, where intervals are from -1 to 1. Never empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Centres(Vec<Vec<f64>>);

impl Centres {
    /// The first of those that are nearest.
    fn nearest(&self, place: impl Iterator<Item = f64> + Clone) -> usize {
        let mut best = (f64::INFINITY, 0);
        for (index, centre) in self.0.iter().enumerate() {
            let distance = distance_square(centre, place.clone());
            if distance < best.0 {
                best = (distance, index);
            }
        }
        best.1
    }
}

fn distance_square(centre: &[f64], place: impl Iterator<Item = f64>) -> f64 {
    let off = centre.iter().zip(place).map(|(a, b)| a - b);
    off.map(|off| off * off).sum()
}

/// Centres of clusters. Public.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KMeans {
    intervals: Vec<Interval>,
    centres: Centres,
}

impl KMeans {
    /// Do its parts fit each other? A file may say anything.
    pub(super) fn is_whole(&self) -> bool {
        let fits = |centre: &Vec<f64>| {
            centre.len() == self.intervals.len()
                && centre.iter().all(|place| (-1.0..=1.0).contains(place))
        };
        let centres = &self.centres.0;
        let intervals = self.intervals.iter().all(|interval| interval.is_whole());
        intervals && (1..=CLUSTERS_MAX).contains(&centres.len()) && centres.iter().all(fits)
    }

    /// How many features it looks at.
    pub(super) fn features(&self) -> usize {
        self.intervals.len()
    }

    /// Which centre an example is of: the nearest, where half widths are one. Features that are missing are not looked at.
    pub fn predict(&self, features: &[f32]) -> usize {
        let each = self.intervals.iter().zip(features);
        let places = each.map(|(interval, x)| interval.place(f64::from(*x)).clamp(-1.0, 1.0));
        self.centres.nearest(places)
    }

    /// The square of how far an example is from its centre, in the features' own units.
    pub fn distance_square(&self, features: &[f32]) -> f64 {
        let centre = self.centres.0.get(self.predict(features));
        let each = self
            .intervals
            .iter()
            .zip(centre.into_iter().flatten())
            .zip(features);
        each.map(|((interval, place), x)| (interval.value(*place) - f64::from(*x)).powi(2))
            .sum()
    }

    /// In the features' own units.
    pub fn centres(&self) -> Vec<Vec<f64>> {
        let value = |centre: &Vec<f64>| {
            let each = self.intervals.iter().zip(centre);
            each.map(|(interval, place)| interval.value(*place))
                .collect()
        };
        self.centres.0.iter().map(value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classical::doubt::{
        FORMS, Flaw, Seen, Twin, acquits, budget, convicts, fitted, in_grid, judge, longest, nasty,
        nearly_normal, plus, refused, seed, spanned, stated,
    };
    use crate::payment::{Priced, Uncharged};
    use whit_core::Fault;
    use whit_testkit::SeededBits;

    fn plan(
        d: usize,
        (clusters, rounds): (usize, usize),
        (epsilon, delta): (f64, f64),
    ) -> KMeansPlan {
        let interval = Interval::new(-1.0, 1.0).expect("an interval");
        let lloyd = Lloyd {
            clusters,
            rounds,
            seed: 7,
        };
        KMeansPlan::new(vec![interval; d], lloyd, budget(epsilon, delta)).expect("a plan")
    }

    fn first_centres(plan: &KMeansPlan) -> Centres {
        plan.spread(&mut Generator(plan.lloyd.seed))
    }

    fn data(d: usize, rows: &[Vec<f32>]) -> Secret<Dataset> {
        let data = Dataset::with_classes(vec![d], rows.concat(), vec![0; rows.len()], 1);
        Secret::new(data.expect("fits"))
    }

    #[test]
    fn closed_form() {
        for rounds in [1, 5] {
            let gaussian = plan(3, (4, rounds), (1.0, 1e-6));
            let each = stated(gaussian.event(), UNIT_BITS);
            assert_eq!(each, vec![(4.0, None); rounds]);
            let pure = plan(3, (4, rounds), (1.0, 0.0));
            let each = stated(pure.event(), UNIT_BITS);
            assert_eq!(each, vec![(4.0, Some(16)); rounds]);
            let deviation = std::f64::consts::SQRT_2 * 4.0 * rounds as f64;
            assert!((pure.terms().deviation / deviation - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn the_worst_example_is_as_long_as_claimed() {
        let mut bits = SeededBits::new(seed(751));
        for d in 1..=3 {
            let plan = plan(d, (3, 1), (1.0, 0.0));
            let worst = longest(3000, UNIT_BITS, || {
                let mut row = || nasty(&mut bits, d);
                let mut place = || row().iter().map(|x| f64::from(*x)).collect();
                let centres = Centres((0..3).map(|_| place()).collect());
                let others = vec![row(), row()];
                let mut all = others.clone();
                all.push(row());
                [all, others].map(|rows| plan.sums(&data(d, &rows), &centres))
            });
            assert_eq!(worst, (1.0 + d as f64, 1.0 + d as f64), "{d}");
        }
    }

    /// One round about one centre, which all examples are of.
    fn twin(flaw: Flaw, form: (f64, f64)) -> Twin {
        let claimed = plan(1, (1, 1), form);
        let others = vec![vec![vec![0.5], vec![-0.5]]; 5].concat();
        let all = [others.clone(), vec![vec![5.0]]].concat();
        let worlds = [others, all].map(|rows| {
            let mut plan = claimed.clone();
            if flaw == Flaw::BoundsFromData {
                plan.features = vec![spanned(rows.iter().map(|row| row[0]))];
            }
            let sums = plan.sums(&data(1, &rows), &first_centres(&plan));
            sums.expose()
        });
        let [without, mut with] = worlds;
        if flaw == Flaw::Unclamped {
            with = plus(&without, &in_grid(&[1.0, 5.0], UNIT_BITS));
        }
        // Sums are priced, and counts are not.
        let sums_alone = claimed.noise.believing(Ratio::one(), Ratio::one());
        Twin::new(flaw, &claimed.noise, sums_alone, [without, with])
    }

    #[test]
    fn falsifier() {
        acquits(752, twin);
    }

    #[test]
    fn falsifier_has_teeth() {
        use Flaw::{BoundsFromData, Forgotten, LessNoise, Unclamped};
        convicts(
            753,
            &[LessNoise, Forgotten, BoundsFromData, Unclamped],
            twin,
        );
    }

    /// The whole fit on one example at a corner, against none: whoever knows it knows which centre it would go to in each round.
    fn all_rounds(form: (f64, f64), done: impl Fn(&NoisySums) -> NoisySums) -> Seen {
        let claimed = plan(1, (2, 2), form);
        let mut twin = claimed.clone();
        twin.noise = done(&claimed.noise);
        let worlds = [data(1, &[]), data(1, &[vec![5.0]])];
        judge(
            &claimed.noise,
            &[1.0; 4],
            757,
            30_000,
            |present, entropy| {
                let payment = Payment::uncharged(&twin, Uncharged);
                let data = &worlds[usize::from(present)];
                let mut seen = Vec::with_capacity(4);
                let fitted = twin.rounds(data, payment, entropy, |centres, noisy| {
                    let at = 2 * centres.nearest(std::iter::once(1.0));
                    seen.extend_from_slice(&noisy[at..at + 2]);
                });
                assert!(fitted.is_ok());
                seen
            },
        )
    }

    #[test]
    fn rounds_add_up() {
        for form in FORMS {
            let honest = all_rounds(form, NoisySums::clone);
            assert!(!honest.convicted && honest.share > 0.7, "{honest:?}");
            // Each round has the noise that one would need.
            let for_one = all_rounds(form, |noise| noise.believing(Ratio::one(), Ratio::one()));
            assert!(for_one.convicted, "rounds for nothing: {for_one:?}");
        }
    }

    #[test]
    fn finds_four_clouds() {
        let mut bits = SeededBits::new(753);
        let clouds = [[-0.6, -0.6], [-0.6, 0.6], [0.6, -0.6], [0.6, 0.6]];
        let rows: Vec<Vec<f32>> = (0..8000)
            .map(|row| {
                let cloud = clouds[row % 4];
                cloud
                    .iter()
                    .map(|x| (x + 0.1 * nearly_normal(&mut bits)) as f32)
                    .collect()
            })
            .collect();
        for terms in [(1.0, 1e-6), (2.0, 0.0)] {
            let plan = plan(2, (4, 6), terms);
            let model = fitted(&plan, &data(2, &rows), 754);
            for cloud in clouds {
                let at = model.predict(&cloud.map(|x| x as f32));
                let centre = &model.centres()[at];
                let off = distance_square(centre, cloud.iter().copied());
                assert!(off < 0.01, "{cloud:?}: {model:?}");
            }
        }
    }

    #[test]
    fn first_centres_follow_from_the_seed_and_spread() {
        let plan = plan(2, (16, 1), (1.0, 0.0));
        let centres = first_centres(&plan);
        assert_eq!(centres, first_centres(&plan));
        let mut other = plan.clone();
        other.lloyd.seed = 8;
        assert_ne!(centres, first_centres(&other));
        for (j, one) in centres.0.iter().enumerate() {
            assert!(one.iter().all(|place| place.abs() < 1.0));
            for two in &centres.0[..j] {
                assert!(
                    distance_square(one, two.iter().copied()) > 0.02,
                    "{one:?} {two:?}"
                );
            }
        }
    }

    #[test]
    fn lost_centres_go_beside_those_with_many_examples() {
        let plan = plan(1, (4, 2), (1.0, 0.0));
        let noise = plan.noise.deviation();
        let centres = Centres([-0.9, -0.3, 0.3, 0.9].map(|place| vec![place]).to_vec());
        let shared = |counts: [f64; 4]| {
            let counts = counts.map(|count| count * noise);
            plan.shared(centres.clone(), &counts, &mut Generator(3)).0
        };
        assert_eq!(shared([3.0, 7.0, 1.0, -2.0]), centres.0, "nobody has many");
        let moved = shared([3.0, 40.0, 1.0, -2.0]);
        assert_eq!(moved[..2], centres.0[..2]);
        assert!(
            moved[2..]
                .iter()
                .all(|place| (place[0] + 0.3).abs() <= BESIDE)
        );
        assert_ne!(moved[2], moved[3]);
    }

    #[test]
    fn centres_of_noise_stay_in_the_box() {
        let plan = plan(3, (5, 4), (0.1, 1e-6));
        let model = fitted(&plan, &data(3, &[]), 755);
        assert!(
            model
                .centres()
                .iter()
                .flatten()
                .all(|place| place.abs() <= 1.0)
        );
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let interval = Interval::new(0.0, 1.0).expect("an interval");
        let make = |d, clusters, rounds| {
            let lloyd = Lloyd {
                clusters,
                rounds,
                seed: 1,
            };
            KMeansPlan::new(vec![interval; d], lloyd, budget(1.0, 0.0)).err()
        };
        for refused in [
            make(0, 2, 2),
            make(2, 0, 2),
            make(2, 2, 0),
            make(2, 2, 1001),
            make(2, 1025, 1),
            make(1 << 19, 4, 1),
        ] {
            let refused = refused.expect("refused");
            assert_eq!(refused.code(), "plan_out_of_range");
            assert!(refused.suggestion().starts_with("give "));
        }
        let plan = plan(2, (2, 1), (1.0, 0.0));
        assert_eq!(refused(&plan, &data(3, &[])), Some("other_columns"));
        assert_eq!(refused(&plan, &data(2, &[])), None);
    }
}
