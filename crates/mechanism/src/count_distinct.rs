//! # Count distinct
//! **Definition.** Either the number of different units, or the number of different values of another column, for which each unit
//!   keeps the first `k` different values among its own rows. Plus integer noise.
//! **Requires.** Units are the privacy units.
//! **Guarantee.** That of the noise at sensitivity `1` for units and `k` for values, under add/remove *and* under replace-one.
//! **Proof.** Which values a unit keeps depends on its own rows alone. Let `B` be all that the other units keep and `K` what this one
//!   keeps, `|K| <= k`. Then `|B ∪ K| = |B| + |K \ B|` lies between `|B|` and `|B| + k`. Add/remove compares it with `|B|`: at most
//!   `k` apart. Replace-one compares `|B ∪ K|` with `|B ∪ K'|`: two numbers in the same interval of length `k`, so again at most
//!   `k` apart, and not `2k`. For units, `K` is the unit itself and `k = 1`. (If all units count, replace-one does not move their
//!   number at all; but callers count units that have some property.)
//! **Sharper.** The sensitivity is reached (values that nobody else has). But the count itself can be larger for the same price:
//!   the largest number of values that can be covered when every unit may cover `k` of its own, a maximal flow, has sensitivity
//!   `k` too, and is what \[KS23\] release; here a value that all units keep first hides others. With `k = 1` per unit, or
//!   values that hardly overlap, the two agree. Where the values come from a public list, a [`Histogram`](crate::Histogram) or
//!   a marginal tells more.
//! **Error.** That of the noise, for the number of *kept* values, which is at most the number of all.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use whit_core::{L1, L2, Relation, Secret, Sensitivity};

use crate::additive::Noise;
use crate::count::NoisyCount;
use crate::{Contribution, Count, Result};

/// How many different units or values there are.
#[derive(Clone, Copy, Debug)]
pub struct CountDistinct<R: Relation> {
    values_max: u32,
    /// A count that one unit moves by at most `values_max`.
    count: Count<R>,
}

impl<R: Relation> CountDistinct<R> {
    /// Counts units.
    pub fn units() -> Self {
        Self {
            values_max: 1,
            count: Count::new(Contribution::Row),
        }
    }

    /// Counts values, of which each unit keeps at most so many.
    pub fn values(values_max: u32) -> Result<Self> {
        let contribution = Contribution::rows_per_unit(values_max)?;
        Ok(Self {
            values_max,
            count: Count::new(contribution),
        })
    }

    /// The most that one unit changes it.
    pub fn sensitivity_l1(&self) -> Sensitivity<L1, R> {
        self.count.sensitivity_l1()
    }

    /// The same; in one dimension all norms agree.
    pub fn sensitivity_l2(&self) -> Sensitivity<L2, R> {
        self.count.sensitivity_l2()
    }

    /// Counts the units of these rows.
    pub fn aggregate_units<U: Eq + Hash>(&self, rows: impl IntoIterator<Item = U>) -> Secret<i64> {
        let units: HashSet<U> = rows.into_iter().collect();
        self.count.aggregate(units.len() as u64)
    }

    /// Counts the values that are kept.
    pub fn aggregate<U: Eq + Hash, V: Eq + Hash + Clone>(
        &self,
        rows: impl IntoIterator<Item = (U, V)>,
    ) -> Secret<i64> {
        let kept: HashSet<V> = first_distinct(self.values_max, rows).collect();
        self.count.aggregate(kept.len() as u64)
    }

    /// Prepares the noise. No data is needed, so the event can be paid for first.
    pub fn with_noise(&self, noise: &Noise) -> NoisyCount<R> {
        self.count.with_noise(noise)
    }
}

/// Of each unit the first different values, up to the cap, in the order given. What a unit keeps depends on its own rows alone,
/// and it keeps no value twice.
pub(crate) fn first_distinct<U: Eq + Hash, V: Eq + Hash + Clone>(
    values_max: u32,
    rows: impl IntoIterator<Item = (U, V)>,
) -> impl Iterator<Item = V> {
    // The maps are only asked what they hold; their order never shows.
    let mut kept: HashMap<U, HashSet<V>> = HashMap::new();
    rows.into_iter().filter_map(move |(unit, value)| {
        let kept = kept.entry(unit).or_default();
        let room = kept.len() < values_max as usize;
        (room && kept.insert(value.clone())).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{confidence, judge, scale, seed};
    use whit_core::{AddRemove, Ratio, ReplaceOne};
    use whit_testkit::{Seeded, SeededBits};

    #[test]
    fn closed_form() {
        let one = CountDistinct::<ReplaceOne>::units();
        assert_eq!(one.sensitivity_l1().bound(), &Ratio::one());
        let four = CountDistinct::<ReplaceOne>::values(4).expect("some");
        assert_eq!(four.sensitivity_l1().bound(), &Ratio::from(4_u64));
        assert_eq!(four.sensitivity_l2().square(), &Ratio::from(16_u64));
        assert!(CountDistinct::<AddRemove>::values(0).is_err());
    }

    #[test]
    fn each_unit_keeps_its_first_values() {
        let rows = [("a", 1), ("b", 9), ("a", 1), ("a", 2), ("a", 3), ("b", 1)];
        let kept: Vec<i32> = first_distinct(2, rows).collect();
        assert_eq!(kept, [1, 9, 2, 1]);
        let distinct = CountDistinct::<AddRemove>::values(2).expect("some");
        assert_eq!(distinct.aggregate(rows).expose(), 3);
        assert_eq!(
            distinct
                .aggregate_units(rows.map(|(unit, _)| unit))
                .expose(),
            2
        );
        assert_eq!(distinct.aggregate::<u8, u8>([]).expose(), 0);
        assert_eq!(distinct.aggregate_units::<u8>([]).expose(), 0);
    }

    /// Rows of a few units over a few values, and other rows for one of them.
    fn neighbours(bits: &mut SeededBits) -> [Vec<(u64, u64)>; 3] {
        let count = bits.below(30);
        let one: Vec<_> = (0..count)
            .map(|_| (bits.below(5), bits.below(12)))
            .collect();
        let without: Vec<_> = one.iter().copied().filter(|&(unit, _)| unit != 0).collect();
        let mut replaced = without.clone();
        for _ in 0..bits.below(10) {
            let at = bits.below(replaced.len() as u64 + 1) as usize;
            replaced.insert(at, (99, bits.below(12)));
        }
        [one, without, replaced]
    }

    #[test]
    fn neighbours_stay_within_the_sensitivity() {
        let mut bits = SeededBits::new(seed(611));
        let mut largest = 0;
        for _ in 0..2000 {
            let [one, without, replaced] = neighbours(&mut bits);
            for cap in [1_u32, 3] {
                let distinct = CountDistinct::<AddRemove>::values(cap).expect("some");
                let of = |rows: &[(u64, u64)]| distinct.aggregate(rows.iter().copied()).expose();
                for other in [&without, &replaced] {
                    let moved = of(&one).abs_diff(of(other));
                    assert!(moved <= u64::from(cap), "{one:?} {other:?}");
                    largest = largest.max(moved);
                }
                let units = |rows: &[(u64, u64)]| {
                    let units = rows.iter().map(|&(unit, _)| unit);
                    distinct.aggregate_units(units).expose()
                };
                assert!(units(&one).abs_diff(units(&replaced)) <= 1);
                assert!(units(&one).abs_diff(units(&without)) <= 1);
            }
        }
        assert_eq!(largest, 3, "the bound is reached");
    }

    /// One unit with three values of its own, against none.
    fn seen(b: (u128, u128), cap: u32) -> whit_audit::Verdict {
        let claimed = CountDistinct::<AddRemove>::values(3).expect("some");
        let bounded = CountDistinct::<AddRemove>::values(cap).expect("some");
        let noisy = claimed.with_noise(&Noise::Laplace(scale(b.0, b.1)));
        let (mut one, mut other) = (Seeded::new(seed(612)), Seeded::new(seed(613)));
        let event = |rows: &[(u8, u8)], entropy: &mut Seeded| {
            let aggregate = bounded.aggregate(rows.iter().copied());
            let release = noisy.release(aggregate, confidence(0.95), entropy);
            release.expect("entropy").value().answer >= 4.0
        };
        let with = [(0, 0), (1, 1), (1, 2), (1, 3), (1, 4), (1, 5)];
        judge(
            1.0,
            0.0,
            100_000,
            || event(&with, &mut one),
            || event(&with[..1], &mut other),
        )
    }

    #[test]
    fn falsifier() {
        let verdict = seen((3, 1), 3);
        assert!(
            !verdict.convicted && verdict.epsilon_lower > 0.92,
            "{verdict:?}"
        );
    }

    #[test]
    fn falsifier_has_teeth() {
        assert!(seen((27, 10), 3).convicted, "noise a tenth too small");
        assert!(
            seen((3, 1), 4).convicted,
            "one value more than was paid for"
        );
    }
}
