//! # Partition selection by noisy counts
//! **Definition.** For keys that are not public: the number of units of each key that has any gets independent integer noise `Z`, and
//!   the key is shown, with its noisy count, if that is *greater* than `τ`: the smallest integer with `Pr[1 + Z > τ] <= δ/k`, that is
//!   `Pr[Z >= τ] <= δ/k`. (A count is an integer, so `1 + z > τ` is `z >= τ`. A test with `>=` would need `τ + 1`.) \[KKMN09\]
//! **Requires.** The number of *units* of each key, not of rows, and each unit in at most `k` keys.
//!   [`aggregate`] sees to both.
//! **Guarantee.** The composition of the noise, at the sensitivities below, and of a `(0, δ)`-DP mechanism:
//!
//! | | L1 | L2 squared |
//! | --- | --- | --- |
//! | add/remove | `k` | `k` |
//! | replace-one | `2k` | `2k` |
//!
//! **Proof.** Take neighbours `D`, `D'`. Noise is independent, so the keys fall into two groups that are decided independently.
//!   1. Keys that have units in both. Their counts differ by one in at most `k` keys (`2k` for replace-one, where one unit leaves
//!      and one comes), and what is shown of them is a function of the noisy counts. Other coordinates have the same
//!      distribution, so at most so many coordinates matter, however many keys there are.
//!   2. Keys that have units in one only: then it is one unit, the one that is not in the other, so there are at most `k` of
//!      them in `D` and at most `k` in `D'`. Each is shown with probability at most `δ/k`, so with probability at least `1 - δ`
//!      nothing of this group is seen, in either world. Two distributions with a common outcome of probability at least
//!      `1 - δ` in both are at most `δ` apart in total variation, which is `(0, δ)`-DP. (Bernoulli: `1-(1-δ/k)^k <= δ`.)
//!
//!   The pair of output distributions is a product of pairs of these two kinds: their composition.
//! **Threshold.** From rigorous bounds of the tail in integers. (`crate::sample::tail`) The threshold of one noise is no threshold
//!   for another.
//! **Other.** As in [`partition_selection`](crate::partition_selection).
//! **Error.** A shown count has the error of the noise, but was chosen for being large: small keys are shown with counts that are
//!   too high. To show more keys without counts, use [`PartitionSelection`](crate::PartitionSelection).

use std::collections::BTreeMap;
use std::hash::Hash;

use whit_core::{
    Delta, Entropy, Event, L1, L2, Mechanism, Probability, Ratio, Relation, Secret, Sensitivity,
};

use crate::additive::{Additive, Noise};
use crate::partition_selection::{Other, Partitions, aggregate, check_keys, positive};
use crate::sample::tail::{gaussian_threshold, laplace_threshold};
use crate::{Error, Release, Result};

/// Shows keys whose noisy number of units is above a threshold, with that number.
pub struct PartitionThreshold<R: Relation> {
    delta: Ratio,
    keys_max: u32,
    threshold: i64,
    noise: Additive<R>,
    other: Other<R>,
}

/// Thresholds beyond this many units are refused: nothing would be shown.
const THRESHOLD_MAX: u64 = 1 << 62;

impl<R: Relation> PartitionThreshold<R> {
    /// The noise of each count, the slack for all keys of a unit together, and in how many keys a unit may be. `delta` must not
    /// be zero, since without it nothing can be shown.
    pub fn new(noise: &Noise, delta: Delta, keys_max: u32) -> Result<Self> {
        check_keys(keys_max)?;
        let delta = positive(delta)?;
        let keys = Ratio::from(u64::from(keys_max));
        let each = delta.checked_div(&keys).expect("at least one key");
        let threshold = match noise {
            Noise::Laplace(scale) => laplace_threshold(scale, &each),
            Noise::Gaussian(scale) => gaussian_threshold(scale, &each),
        };
        let threshold = threshold.and_then(|threshold| u64::try_from(threshold).ok());
        let threshold = threshold.unwrap_or(u64::MAX);
        if threshold > THRESHOLD_MAX {
            return Err(Error::CountOutOfRange {
                what: "the number of units above which a key is shown",
                given: threshold,
                min: 1,
                max: THRESHOLD_MAX,
            });
        }
        let moved = &keys * &Ratio::from(R::pick(1_u64, 2));
        let l1 = Sensitivity::<L1, R>::new(moved.clone());
        let l2 = Sensitivity::<L2, R>::from_square(moved);
        Ok(Self {
            delta,
            keys_max,
            threshold: threshold as i64,
            noise: Additive::new(noise, l1, l2),
            other: Other(None),
        })
    }

    /// The same, and a noisy count of what is not shown.
    pub fn with_other(self, noise: &Noise) -> Self {
        let other = Other::new(noise, self.keys_max);
        Self { other, ..self }
    }

    /// Noisy counts above this are shown.
    pub fn threshold(&self) -> i64 {
        self.threshold
    }

    /// What an accountant needs to know: nothing that depends on how many keys there are.
    pub fn event(&self) -> Event {
        let coordinates = R::pick(1, 2) * u64::from(self.keys_max);
        let noise = self.noise.event_of(coordinates);
        let new_keys = Mechanism::Approximate {
            epsilon: Ratio::zero(),
            delta: Probability::new(self.delta.clone()).expect("below one"),
        };
        let mut parts = vec![noise.mechanism().clone(), new_keys];
        parts.extend(self.other.mechanism());
        Event::new(R::NEIGHBOURS, Mechanism::Composition(parts))
    }

    /// How many units each key has, when each unit keeps its first keys, as many as it may.
    pub fn aggregate<U: Eq + Hash, K: Ord + Hash + Clone>(
        &self,
        rows: impl IntoIterator<Item = (U, K)>,
    ) -> Secret<BTreeMap<K, u64>> {
        aggregate(self.keys_max, rows)
    }

    /// Spends one `event`. A key with no units is never shown.
    pub fn release<K: Ord>(
        &self,
        units: Secret<BTreeMap<K, u64>>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Partitions<(K, i64)>>> {
        let present = units.expose().into_iter().filter(|&(_, count)| count > 0);
        let (keys, counts): (Vec<K>, Vec<u64>) = present.unzip();
        let saturate = |&count: &u64| i64::try_from(count).unwrap_or(i64::MAX);
        let secret = Secret::new(counts.iter().map(saturate).collect());
        // The event of this release would tell how many keys there are; ours does not.
        let noisy = self.noise.release_vector(secret, entropy)?.into_value();
        let (mut shown, mut hidden) = (Vec::new(), 0_u64);
        for ((key, count), noisy) in keys.into_iter().zip(counts).zip(noisy) {
            if noisy > self.threshold {
                shown.push((key, noisy));
            } else {
                hidden = hidden.saturating_add(count);
            }
        }
        let other = self.other.release(Secret::new(hidden), entropy)?;
        Ok(Release::new(Partitions { shown, other }, self.event()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{ALPHA, TapeEntropy, judge, scale, seed};
    use whit_audit::{Alpha, clopper_pearson_lower, clopper_pearson_upper, enumerate};
    use whit_core::{AddRemove, Epsilon, ReplaceOne};
    use whit_testkit::{FailingEntropy, Seeded, long};

    fn of<R: Relation>(noise: Noise, d: f64, keys_max: u32) -> PartitionThreshold<R> {
        PartitionThreshold::new(&noise, Delta::new(d).expect("a delta"), keys_max)
            .expect("in range")
    }

    fn laplace(numerator: u128, denominator: u128) -> Noise {
        Noise::Laplace(scale(numerator, denominator))
    }

    fn gaussian(numerator: u128, denominator: u128) -> Noise {
        Noise::Gaussian(scale(numerator, denominator))
    }

    #[test]
    fn closed_form() {
        // e^-τ/(1 + e^-1) <= 1e-3 from τ = 7 on: 6.67e-4, where 6 has 1.81e-3.
        assert_eq!(of::<AddRemove>(laplace(1, 1), 1e-3, 1).threshold(), 7);
        // With four keys a quarter of it: 2.45e-4 at 8.
        assert_eq!(of::<AddRemove>(laplace(1, 1), 1e-3, 4).threshold(), 8);
        // The discrete Gaussian of scale 1 has 2.7e-1 .. from 1, 5.8e-2 from 2, 4.57e-3 from 3, 1.35e-4 from 4 on.
        assert_eq!(of::<AddRemove>(gaussian(1, 1), 1e-2, 1).threshold(), 3);
        assert_eq!(of::<AddRemove>(gaussian(1, 1), 1e-3, 1).threshold(), 4);
        let event = of::<ReplaceOne>(gaussian(1, 1), 1e-3, 4)
            .with_other(&laplace(4, 1))
            .event();
        let Mechanism::Composition(parts) = event.mechanism() else {
            panic!("one part")
        };
        assert!(
            matches!(&parts[0], Mechanism::DiscreteGaussian { sensitivity_l2_square, coordinates: 8, .. }
            if *sensitivity_l2_square == Ratio::from(8_u64))
        );
        assert!(matches!(&parts[1], Mechanism::Approximate { epsilon, .. } if epsilon.is_zero()));
        assert!(
            matches!(&parts[2], Mechanism::DiscreteLaplace { sensitivity_l1, .. }
            if *sensitivity_l1 == Ratio::from(4_u64))
        );
    }

    /// Keys of one unit each: how often are they shown? \[M5\]
    fn rate(of: &PartitionThreshold<AddRemove>, rows: u64, seed_of: u64) -> (f64, f64) {
        let keys = if long() { 4_000_000 } else { 200_000 };
        let units: BTreeMap<u64, u64> = (0..keys).map(|key| (key, rows)).collect();
        let release = of.release(Secret::new(units), &mut Seeded::new(seed(seed_of)));
        let shown = release.expect("entropy").value().shown.len() as u64;
        let alpha = |value| Alpha::new(value).expect("a level");
        (
            clopper_pearson_lower(shown, keys, alpha(ALPHA)).expect("counts"),
            clopper_pearson_upper(shown, keys, alpha(1e-3)).expect("counts"),
        )
    }

    /// Deltas that a threshold just reaches: Pr[Z >= 7] for Laplace of scale 1.4, Pr[Z >= 6] for Gauss of scale 2.5.
    const LAPLACE_DELTA: f64 = 0.004_525;
    const GAUSSIAN_DELTA: f64 = 0.013_906;

    #[test]
    fn singletons_are_as_rare_as_delta() {
        // Five standard deviations of the count beyond the bound, which is at 99.9 %.
        let slack = if long() { 1.1 } else { 1.3 };
        for (noise, d, threshold) in [
            (laplace(7, 5), LAPLACE_DELTA, 7),
            (gaussian(5, 2), GAUSSIAN_DELTA, 6),
        ] {
            let of = of::<AddRemove>(noise, d, 1);
            assert_eq!(of.threshold(), threshold);
            let (lower, upper) = rate(&of, 1, 631);
            assert!(lower <= d && upper <= slack * d, "{lower} {upper}");
            assert!(upper > 0.95 * d, "the delta is used up: {upper}");
        }
    }

    #[test]
    fn broken_twins_show_too_many_singletons() {
        // `>=` instead of `>`: the same as a threshold that is one lower.
        for (noise, d) in [
            (laplace(7, 5), LAPLACE_DELTA),
            (gaussian(5, 2), GAUSSIAN_DELTA),
        ] {
            let mut twin = of::<AddRemove>(noise, d, 1);
            twin.threshold -= 1;
            assert!(rate(&twin, 1, 632).0 > d, "greater or equal");
        }
        // Rows instead of units: a unit with three rows.
        assert!(
            rate(&of(laplace(7, 5), LAPLACE_DELTA, 1), 3, 633).0 > LAPLACE_DELTA,
            "rows"
        );
        // The threshold of Laplace noise of scale 1, with the Gaussian noise of about the same epsilon.
        let mut twin = of::<AddRemove>(gaussian(5, 2), 1e-3, 1);
        twin.threshold = of::<AddRemove>(laplace(1, 1), 1e-3, 1).threshold();
        assert!(rate(&twin, 1, 634).0 > 1e-3, "the wrong noise");
        // A unit with four keys that pays for one.
        let four = of::<AddRemove>(laplace(7, 5), LAPLACE_DELTA, 4).threshold();
        assert!(four > of::<AddRemove>(laplace(7, 5), LAPLACE_DELTA, 1).threshold());
    }

    /// Every tape of the whole mechanism on neighbours. The guarantee of Laplace noise of scale 1 is `(1, δ)`.
    #[test]
    fn enumeration_of_neighbours() {
        // Pr[Z >= 3] = 0.0364.
        let (d, e) = (0.04, Epsilon::new(1.0).expect("an epsilon"));
        let run = |of: &PartitionThreshold<AddRemove>, count: u64| {
            enumerate::<1, Option<i64>>(18, |tape| {
                let units = Secret::new(BTreeMap::from([((), count)]));
                let release = of
                    .release(units, &mut TapeEntropy(Some(tape)))
                    .expect("one release");
                release.value().shown.first().map(|&(_, noisy)| noisy)
            })
        };
        let honest = of::<AddRemove>(laplace(1, 1), d, 1);
        for count in [1, 2, 5] {
            let (a, b) = (run(&honest, count), run(&honest, count - 1));
            let slack = 4.0 * (a.unresolved() + b.unresolved()) as f64 / 2_f64.powi(18);
            assert!(a.hockey_stick_upper(&b, e) <= d + slack);
            assert!(b.hockey_stick_upper(&a, e) <= d + slack);
        }
        let new =
            |of: &PartitionThreshold<AddRemove>| run(of, 1).hockey_stick_lower(&run(of, 0), e);
        assert!(new(&honest) > 0.9 * 0.0364);
        let mut twin = of::<AddRemove>(laplace(1, 1), d, 1);
        twin.threshold -= 1;
        assert!(new(&twin) > d, "greater or equal");
    }

    /// The counts of two keys of one unit, both large enough to be shown: the noise must hide both at once.
    fn seen(b: (u128, u128)) -> whit_audit::Verdict {
        let of = of::<AddRemove>(laplace(b.0, b.1), 1e-6, 2);
        let (mut one, mut other) = (Seeded::new(seed(635)), Seeded::new(seed(636)));
        let event = |count: u64, entropy: &mut Seeded| {
            let units = Secret::new(BTreeMap::from([(1, count), (2, count)]));
            let release = of.release(units, entropy).expect("entropy");
            release
                .value()
                .shown
                .iter()
                .filter(|&&(_, noisy)| noisy >= 1001)
                .count()
                == 2
        };
        judge(
            1.0,
            1e-6,
            200_000,
            || event(1001, &mut one),
            || event(1000, &mut other),
        )
    }

    #[test]
    fn falsifier() {
        let verdict = seen((2, 1));
        assert!(
            !verdict.convicted && verdict.epsilon_lower > 0.9,
            "{verdict:?}"
        );
    }

    #[test]
    fn falsifier_has_teeth() {
        assert!(seen((9, 5)).convicted, "noise a tenth too small");
    }

    #[test]
    fn shows_in_order_and_counts_the_rest() {
        let of = of::<AddRemove>(laplace(1, 4), 1e-6, 1).with_other(&laplace(1, 16));
        let units = BTreeMap::from([
            ("z", u64::MAX),
            ("m", 1000),
            ("none", 0),
            ("one", 1),
            ("two", 2),
        ]);
        let release = of
            .release(Secret::new(units), &mut Seeded::new(637))
            .expect("entropy");
        let keys: Vec<&str> = release.value().shown.iter().map(|&(key, _)| key).collect();
        assert_eq!((keys, release.value().other), (vec!["m", "z"], Some(3)));
        let empty = of.release(
            Secret::new(BTreeMap::<u8, u64>::new()),
            &mut Seeded::new(638),
        );
        assert_eq!(
            empty.expect("entropy").event(),
            release.event(),
            "the same event for all data"
        );
        assert!(
            of.release(Secret::new(BTreeMap::<u8, u64>::new()), &mut FailingEntropy)
                .is_err()
        );
    }

    #[test]
    fn refuses_what_shows_nothing() {
        let new = |noise, d, keys| {
            PartitionThreshold::<AddRemove>::new(&noise, Delta::new(d).expect("a delta"), keys)
        };
        assert!(new(laplace(1, 1), 0.0, 1).is_err());
        assert!(new(laplace(1, 1), 1e-6, 0).is_err());
        assert!(new(laplace(1 << 90, 1), 1e-6, 1).is_err());
    }
}
