//! # Histogram over public bins
//! **Definition.** How many values fall in each of `N` bins of equal width over `[L, U]`, each count with independent integer noise.
//!   Values outside are clamped into the first or last bin; what is no number is in none. The last bin holds `U`.
//! **Requires.** Rows bounded by the same [`Contribution`] the statistic was made with. Bins are public, so empty ones are
//!   released too.
//! **Guarantee.** That of the noise on the whole vector; `k` is the most rows of one unit:
//!
//! | | L1 | L2 squared |
//! | --- | --- | --- |
//! | add/remove | `k` | `k²` |
//! | replace-one | `2k` | `2k²` |
//!
//! **Proof.** A unit adds a vector `v >= 0` with `‖v‖₁ <= k`, hence `‖v‖₂ <= k`. The difference of two such has `‖v-v'‖₁ <= 2k` and
//!   `‖v-v'‖₂² <= ‖v‖₂² + ‖v'‖₂² <= 2k²`, since their product is not negative.
//! **Error.** That of the noise, for each bin on its own.

use whit_core::{Confidence, Entropy, Event, L1, L2, Ratio, Relation, Secret, Sensitivity};

use crate::additive::{Additive, Noise};
use crate::{Bounds, Contribution, Error, Estimate, Release, Result};

/// Counts of values in bins of equal width.
#[derive(Clone, Copy, Debug)]
pub struct Histogram<R: Relation> {
    bounds: Bounds,
    bins: u32,
    contribution: Contribution,
    relation: std::marker::PhantomData<R>,
}

/// More bins than this are no histogram.
const BINS_MAX: u32 = 1 << 20;

impl<R: Relation> Histogram<R> {
    /// A histogram of rows that were bounded so.
    pub fn new(bounds: Bounds, bins: u32, contribution: Contribution) -> Result<Self> {
        if !(1..=BINS_MAX).contains(&bins) {
            let what = "the number of bins";
            return Err(Error::CountOutOfRange {
                what,
                given: u64::from(bins),
                min: 1,
                max: u64::from(BINS_MAX),
            });
        }
        Ok(Self {
            bounds,
            bins,
            contribution,
            relation: std::marker::PhantomData,
        })
    }

    /// The most that one unit changes all bins together.
    pub fn sensitivity_l1(&self) -> Sensitivity<L1, R> {
        Sensitivity::new(&self.rows_max() * &self.sides())
    }

    /// The same in L2.
    pub fn sensitivity_l2(&self) -> Sensitivity<L2, R> {
        let rows_max = self.rows_max();
        Sensitivity::from_square(&(&rows_max * &rows_max) * &self.sides())
    }

    fn rows_max(&self) -> Ratio {
        Ratio::from(u64::from(self.contribution.rows_max()))
    }

    /// How many contributions tell neighbours apart: the one that is there or not, or the old and the new one.
    fn sides(&self) -> Ratio {
        Ratio::from(R::pick(1_u64, 2))
    }

    /// The ends of bin `index`.
    pub fn edges(&self, index: u32) -> (f64, f64) {
        let grid = self.bounds.grid();
        let [lower, upper] =
            [self.bounds.lower(), self.bounds.upper()].map(|steps| grid.value(i128::from(steps)));
        let bins = f64::from(self.bins);
        let edge = |i: u32| {
            let share = f64::from(i);
            (lower * (bins - share) + upper * share) / bins
        };
        (edge(index), edge(index + 1))
    }

    /// Sorts values into bins, in integer arithmetic.
    pub fn aggregate(&self, rows: impl IntoIterator<Item = f64>) -> Secret<Vec<i64>> {
        let mut counts = vec![0_i64; self.bins as usize];
        let (lower, width) = (
            i128::from(self.bounds.lower()),
            i128::from(self.bounds.width()),
        );
        for value in rows {
            if let Some(steps) = self.bounds.fix(value) {
                let index = (i128::from(steps) - lower) * i128::from(self.bins) / width;
                counts[(index as usize).min(self.bins as usize - 1)] += 1;
            }
        }
        Secret::new(counts)
    }

    /// Prepares the noise. No data is needed, so the event can be paid for first.
    pub fn with_noise(&self, noise: &Noise) -> NoisyHistogram<R> {
        let mechanism = Additive::new(noise, self.sensitivity_l1(), self.sensitivity_l2());
        NoisyHistogram {
            bins: self.bins,
            mechanism,
        }
    }
}

/// A histogram with its noise, ready to release as often as its event is paid for.
pub struct NoisyHistogram<R: Relation> {
    bins: u32,
    mechanism: Additive<R>,
}

impl<R: Relation> NoisyHistogram<R> {
    /// What an accountant needs to know.
    pub fn event(&self) -> Event {
        self.mechanism.event_of(u64::from(self.bins))
    }

    /// Adds the noise and the error bars. Spends one `event`. Bins that are missing count as empty, further ones are dropped.
    pub fn release(
        &self,
        counts: Secret<Vec<i64>>,
        confidence: Confidence,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Vec<Estimate>>> {
        let half_width = self.mechanism.half_width(confidence) as f64;
        let bins = self.bins as usize;
        let counts = counts.map(|mut counts| {
            counts.resize(bins, 0);
            counts
        });
        Ok(self
            .mechanism
            .release_vector(counts, entropy)?
            .map(|noisy| {
                let estimate = |answer: f64| Estimate {
                    answer,
                    low: answer - half_width,
                    high: answer + half_width,
                };
                noisy
                    .into_iter()
                    .map(|count| estimate(count as f64))
                    .collect()
            }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{confidence, judge, scale, seed};
    use whit_core::{AddRemove, ReplaceOne};
    use whit_testkit::{NeighbourPair, Seeded, SeededBits, UnitPair};

    fn histogram<R: Relation>(bins: u32, contribution: Contribution) -> Histogram<R> {
        Histogram::new(
            Bounds::new(0.0, 100.0).expect("a range"),
            bins,
            contribution,
        )
        .expect("some bins")
    }

    #[test]
    fn closed_form() {
        let unit = Contribution::RowsPerUnit(3);
        assert_eq!(
            histogram::<AddRemove>(4, Contribution::Row)
                .sensitivity_l1()
                .bound(),
            &Ratio::one()
        );
        assert_eq!(
            histogram::<ReplaceOne>(4, Contribution::Row)
                .sensitivity_l1()
                .bound(),
            &Ratio::from(2_u64)
        );
        assert_eq!(
            histogram::<ReplaceOne>(4, unit).sensitivity_l1().bound(),
            &Ratio::from(6_u64)
        );
        assert_eq!(
            histogram::<AddRemove>(4, unit).sensitivity_l2().square(),
            &Ratio::from(9_u64)
        );
        assert_eq!(
            histogram::<ReplaceOne>(4, unit).sensitivity_l2().square(),
            &Ratio::from(18_u64)
        );
    }

    #[test]
    fn values_fall_where_they_belong() {
        let histogram = histogram::<AddRemove>(4, Contribution::Row);
        let rows = [
            -1.0,
            0.0,
            24.9,
            25.0,
            50.0,
            99.0,
            100.0,
            1e9,
            f64::INFINITY,
            f64::NAN,
            f64::NEG_INFINITY,
        ];
        assert_eq!(histogram.aggregate(rows).expose(), [4, 1, 1, 4]);
        assert_eq!(
            (histogram.edges(0), histogram.edges(3)),
            ((0.0, 25.0), (75.0, 100.0))
        );
        assert!(
            Histogram::<AddRemove>::new(
                Bounds::new(0.0, 1.0).expect("a range"),
                0,
                Contribution::Row
            )
            .is_err()
        );
    }

    fn record_and_replay<R: Relation>(pair: impl Fn(&mut SeededBits) -> NeighbourPair) {
        let mut bits = SeededBits::new(seed(291));
        let histogram = histogram::<R>(7, Contribution::Row);
        for _ in 0..200 {
            let NeighbourPair { one, other } = pair(&mut bits);
            let (a, b) = (
                histogram.aggregate(one).expose(),
                histogram.aggregate(other).expose(),
            );
            let distances = a.iter().zip(&b).map(|(a, b)| a.abs_diff(*b));
            let (l1, l2) = distances.fold((0, 0), |(l1, l2), d| (l1 + d, l2 + d * d));
            assert!(Ratio::from(l1) <= *histogram.sensitivity_l1().bound());
            assert!(Ratio::from(l2) <= *histogram.sensitivity_l2().square());
        }
    }

    #[test]
    fn neighbours_stay_within_the_sensitivity() {
        record_and_replay::<AddRemove>(NeighbourPair::add_remove);
        record_and_replay::<ReplaceOne>(NeighbourPair::replace_one);
    }

    fn replay_units<R: Relation>(pair: impl Fn(&mut SeededBits) -> UnitPair) {
        let mut bits = SeededBits::new(seed(294));
        for rows_max in [1, 3] {
            let contribution = Contribution::RowsPerUnit(rows_max);
            let histogram = histogram::<R>(5, contribution);
            for _ in 0..200 {
                let UnitPair { one, other } = pair(&mut bits);
                let counts =
                    |rows: Vec<(u64, f64)>| histogram.aggregate(contribution.bound(rows)).expose();
                let (a, b) = (counts(one), counts(other));
                let distances = a.iter().zip(&b).map(|(a, b)| a.abs_diff(*b));
                let (l1, l2) = distances.fold((0, 0), |(l1, l2), d| (l1 + d, l2 + d * d));
                assert!(Ratio::from(l1) <= *histogram.sensitivity_l1().bound());
                assert!(Ratio::from(l2) <= *histogram.sensitivity_l2().square());
            }
        }
    }

    #[test]
    fn units_stay_within_the_sensitivity() {
        replay_units::<AddRemove>(UnitPair::add_remove);
        replay_units::<ReplaceOne>(UnitPair::replace_one);
    }

    /// A replaced row leaves one bin and enters another: both must be hidden together.
    fn seen(b: (u128, u128)) -> whit_audit::Verdict {
        let histogram = histogram::<ReplaceOne>(3, Contribution::Row);
        let noisy = histogram.with_noise(&Noise::Laplace(scale(b.0, b.1)));
        let (mut one, mut other) = (Seeded::new(seed(292)), Seeded::new(seed(293)));
        let event = |row: f64, entropy: &mut Seeded| {
            let release = noisy
                .release(histogram.aggregate([row]), confidence(0.95), entropy)
                .expect("entropy");
            let bins = release.value();
            bins[0].answer >= 1.0 && bins[2].answer <= 0.0
        };
        judge(
            1.0,
            0.0,
            200_000,
            || event(0.0, &mut one),
            || event(100.0, &mut other),
        )
    }

    #[test]
    fn falsifier() {
        let verdict = seen((2, 1));
        assert!(
            !verdict.convicted && verdict.epsilon_lower > 0.93,
            "{verdict:?}"
        );
    }

    #[test]
    fn falsifier_has_teeth() {
        assert!(seen((9, 5)).convicted, "noise a tenth too small");
        assert!(
            seen((1, 1)).convicted,
            "the sensitivity of add/remove under replace-one"
        );
    }
}
