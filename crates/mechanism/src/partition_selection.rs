//! # Partition selection
//! **Definition.** For keys that are not public: a key of `n` units is shown with probability `π(n)`, independently of the others, where
//!   `π(0) = 0` and `π(n) = min(r π(n-1) + δ, 1 - (1 - π(n-1) - δ)/r, 1)` with `r = e^ε`. No curve that is `(ε, δ)`-DP for each key
//!   shows more. \[DVGM22\]
//! **Requires.** The number of *units* of each key, not of rows, and each unit in at most `k` keys. [`aggregate`] sees to both.
//! **Guarantee.** For add/remove the composition of `k` selections, each `(ε, δ)`-DP; for replace-one of `2k`.
//! **Proof.** One unit more or less moves the number of units of at most `k` keys by one; keys are decided independently, so the
//!   rest has the same distribution. For one key with `n-1` or `n` units both outcomes must be close in both directions:
//!   1. `π(n) <= r π(n-1) + δ`, by the first argument of the minimum;
//!   2. `1 - π(n-1) <= r (1 - π(n)) + δ`, by the second;
//!   3. `π(n-1) <= π(n)` and so `1 - π(n) <= 1 - π(n-1)`, since all three arguments are at least `π(n-1)`: the other two directions.
//!
//!   A key without units is never shown, in either world; so it does not matter which keys exist. Replacing a unit takes it out
//!   of up to `k` keys and puts it into up to `k` others.
//! **Exactness.** The curve that is sampled is rounded so that 1 to 3 hold for it exactly ([`sample`](crate::sample), `selection_curve`),
//!   and the Bernoulli draws are exact.
//! **Other.** On demand, how many memberships (units times keys) were *not* shown, with noise of its own: given the keys that are
//!   shown, this sum moves by at most `k` under either relation, since a unit adds between 0 and `k` to it. An adaptive
//!   composition with fixed parameters.
//! **Error.** A key of one unit is shown with probability `δ`, and from about `(2/ε) ln(ε/2δ)` units on always.

use std::collections::BTreeMap;
use std::hash::Hash;

use whit_core::{
    Delta, Entropy, Epsilon, Error as UnitError, Event, Mechanism, Probability, Ratio, Relation,
    Secret, Sensitivity,
};

use crate::additive::{Additive, Noise};
use crate::count_distinct::first_distinct;
use crate::sample::Bernoulli;
use crate::sample::selection_curve::{CURVE_MAX, curve};
use crate::{Error, Release, Result};

/// Which keys are shown, and how much was not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partitions<T> {
    /// What is shown, in the order of the keys.
    pub shown: Vec<T>,
    /// A noisy count of the memberships in keys that are not shown, if it was asked for.
    pub other: Option<i64>,
}

/// Shows keys by the optimal curve.
pub struct PartitionSelection<R: Relation> {
    epsilon: Epsilon,
    delta: Delta,
    keys_max: u32,
    /// For 1, 2, … units; with more a key is always shown.
    curve: Vec<Bernoulli>,
    /// The first number of units with which a key is shown at least every other time.
    units_half: u64,
    other: Other<R>,
}

/// More keys per unit than this leave nothing of a budget.
const KEYS_MAX: u32 = 1 << 12;

impl<R: Relation> PartitionSelection<R> {
    /// The budget of *one* key, and in how many keys a unit may be. `delta` must not be zero, since without it nothing can be
    /// shown.
    pub fn new(epsilon: Epsilon, delta: Delta, keys_max: u32) -> Result<Self> {
        check_keys(keys_max)?;
        let delta_ratio = positive(delta)?;
        let Some(curve) = curve(&epsilon.to_ratio(), &delta_ratio) else {
            return Err(Error::CountOutOfRange {
                what: "the number of units from which on a key is always shown",
                given: CURVE_MAX + 1,
                min: 1,
                max: CURVE_MAX,
            });
        };
        let half = Ratio::power_of_two(-1);
        let below = curve.iter().take_while(|shown| shown.ratio() < &half);
        Ok(Self {
            epsilon,
            delta,
            keys_max,
            units_half: below.count() as u64 + 1,
            curve: curve.iter().map(Bernoulli::new).collect(),
            other: Other(None),
        })
    }

    /// The same, and a noisy count of what is not shown.
    pub fn with_other(self, noise: &Noise) -> Self {
        let other = Other::new(noise, self.keys_max);
        Self { other, ..self }
    }

    /// The first number of units with which a key is shown with probability at least one half.
    pub fn units_half(&self) -> u64 {
        self.units_half
    }

    /// The first number of units with which a key is always shown.
    pub fn units_always(&self) -> u64 {
        self.curve.len() as u64 + 1
    }

    /// What an accountant needs to know.
    pub fn event(&self) -> Event {
        let epsilon = self.epsilon.to_ratio();
        let delta = Probability::new(positive(self.delta).expect("checked in new"));
        let delta = delta.expect("below one");
        // The event of a selection speaks of one unit more or less; for replaced ones only the bound is claimed.
        let each = R::pick(
            Mechanism::PartitionSelection {
                epsilon: epsilon.clone(),
                delta: delta.clone(),
            },
            Mechanism::Approximate { epsilon, delta },
        );
        let mut parts = vec![each; R::pick(1, 2) * self.keys_max as usize];
        parts.extend(self.other.mechanism());
        let mechanism = match parts.len() {
            1 => parts.swap_remove(0),
            _ => Mechanism::Composition(parts),
        };
        Event::new(R::NEIGHBOURS, mechanism)
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
    ) -> Result<Release<Partitions<K>>> {
        let mut bits = entropy.open()?;
        let (mut shown, mut hidden) = (Vec::new(), 0_u64);
        for (key, count) in units.expose() {
            if self.shows(count, &mut bits) {
                shown.push(key);
            } else {
                hidden = hidden.saturating_add(count);
            }
        }
        let other = self.other.release(Secret::new(hidden), entropy)?;
        Ok(Release::new(Partitions { shown, other }, self.event()))
    }

    fn shows<B: whit_core::Bits>(&self, count: u64, bits: &mut B) -> bool {
        let Some(index) = count.checked_sub(1) else {
            return false;
        };
        let coin = usize::try_from(index)
            .ok()
            .and_then(|at| self.curve.get(at));
        coin.is_none_or(|coin| coin.sample(bits))
    }
}

/// How many units each key has, when each unit keeps its first keys up to the cap. A unit counts once for each key, however many
/// rows it has there.
pub fn aggregate<U: Eq + Hash, K: Ord + Hash + Clone>(
    keys_max: u32,
    rows: impl IntoIterator<Item = (U, K)>,
) -> Secret<BTreeMap<K, u64>> {
    let mut units = BTreeMap::new();
    for key in first_distinct(keys_max, rows) {
        *units.entry(key).or_insert(0) += 1;
    }
    Secret::new(units)
}

/// Checks the number of keys per unit.
pub(crate) fn check_keys(keys_max: u32) -> Result<()> {
    if (1..=KEYS_MAX).contains(&keys_max) {
        return Ok(());
    }
    Err(Error::CountOutOfRange {
        what: "the number of keys per unit",
        given: u64::from(keys_max),
        min: 1,
        max: u64::from(KEYS_MAX),
    })
}

/// The exact value of a delta that must not be zero.
pub(crate) fn positive(delta: Delta) -> Result<Ratio> {
    let ratio = Ratio::from_f64(delta.value()).filter(|ratio| !ratio.is_zero());
    ratio.ok_or_else(|| {
        UnitError::OutOfDomain {
            what: "delta",
            given: delta.to_string(),
            domain: "a number between 0 and 1, both excluded",
        }
        .into()
    })
}

/// The count of what is not shown.
pub(crate) struct Other<R: Relation>(pub(crate) Option<Additive<R>>);

impl<R: Relation> Other<R> {
    pub(crate) fn new(noise: &Noise, keys_max: u32) -> Self {
        let most = || Ratio::from(u64::from(keys_max));
        Self(Some(Additive::new(
            noise,
            Sensitivity::new(most()),
            Sensitivity::new(most()),
        )))
    }

    pub(crate) fn mechanism(&self) -> Option<Mechanism> {
        let event = self.0.as_ref().map(|additive| additive.event_of(1));
        event.map(|event| event.mechanism().clone())
    }

    pub(crate) fn release(
        &self,
        hidden: Secret<u64>,
        entropy: &mut impl Entropy,
    ) -> Result<Option<i64>> {
        let hidden = hidden.map(|hidden| i64::try_from(hidden).unwrap_or(i64::MAX));
        let release = self.0.as_ref().map(|noise| noise.release(hidden, entropy));
        Ok(release.transpose()?.map(Release::into_value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{ALPHA, TapeEntropy, scale, seed};
    use whit_audit::{Alpha, Enumeration, clopper_pearson_lower, clopper_pearson_upper, enumerate};
    use whit_core::{AddRemove, ReplaceOne};
    use whit_testkit::{FailingEntropy, Seeded, SeededBits, long};

    fn epsilon(value: f64) -> Epsilon {
        Epsilon::new(value).expect("an epsilon")
    }

    fn selection(e: f64, d: f64, keys_max: u32) -> PartitionSelection<AddRemove> {
        let delta = Delta::new(d).expect("a delta");
        PartitionSelection::new(epsilon(e), delta, keys_max).expect("in range")
    }

    fn run(of: &PartitionSelection<AddRemove>, units: &[(u8, u64)]) -> Enumeration<Vec<u8>> {
        let units: BTreeMap<u8, u64> = units.iter().copied().collect();
        enumerate::<1, Vec<u8>>(16, |tape| {
            let release = of.release(Secret::new(units.clone()), &mut TapeEntropy(Some(tape)));
            release.expect("one release").into_value().shown
        })
    }

    /// Every tape of the whole mechanism on neighbours: a key that is new, keys that grow, and two keys of one unit.
    #[test]
    fn enumeration_of_neighbours() {
        let (e, d) = (0.5, 0.125);
        let honest = selection(e, d, 1);
        type Units = &'static [(u8, u64)];
        let pairs: [(Units, Units); 5] = [
            (&[(1, 1)], &[]),
            (&[(1, 1)], &[(1, 0)]),
            (&[(1, 2)], &[(1, 1)]),
            (&[(1, 3), (2, 2)], &[(1, 3), (2, 1)]),
            (&[(1, 4), (2, 2)], &[(1, 3), (2, 2)]),
        ];
        for (one, other) in pairs {
            let (a, b) = (run(&honest, one), run(&honest, other));
            // What the paths that were not walked to their end can add.
            let unresolved = 3.0 * (a.unresolved() + b.unresolved()) as f64 / 2_f64.powi(16);
            for delta in [
                a.hockey_stick_upper(&b, epsilon(e)),
                b.hockey_stick_upper(&a, epsilon(e)),
            ] {
                assert!(delta <= d + unresolved, "{one:?} {other:?}: {delta}");
            }
        }
        // Teeth: a new key is as likely as claimed, and a curve that is one unit ahead is convicted.
        let new = |of: &PartitionSelection<AddRemove>| {
            run(of, &[(1, 1)]).hockey_stick_lower(&run(of, &[]), epsilon(e))
        };
        assert!(new(&honest) > 0.999 * d);
        let mut ahead = selection(e, d, 1);
        ahead.curve.remove(0);
        assert!(new(&ahead) > 1.5 * d);
    }

    /// Keys of one unit each: how often are they shown? \[M5\]
    fn rate(
        of: &PartitionSelection<AddRemove>,
        keys: u64,
        rows_count_as_units: u64,
        seed_of: u64,
    ) -> (f64, f64) {
        let units: BTreeMap<u64, u64> = (0..keys).map(|key| (key, rows_count_as_units)).collect();
        let release = of.release(Secret::new(units), &mut Seeded::new(seed(seed_of)));
        let shown = release.expect("entropy").value().shown.len() as u64;
        let alpha = |value| Alpha::new(value).expect("a level");
        (
            clopper_pearson_lower(shown, keys, alpha(ALPHA)).expect("counts"),
            clopper_pearson_upper(shown, keys, alpha(1e-3)).expect("counts"),
        )
    }

    #[test]
    fn singletons_are_as_rare_as_delta() {
        let (keys, d, slack) = if long() {
            (4_000_000, 1e-3, 1.1)
        } else {
            (200_000, 1e-2, 1.15)
        };
        let honest = |seed_of| {
            let (lower, upper) = rate(&selection(1.0, d, 1), keys, 1, seed_of);
            assert!(lower <= d, "{lower}");
            upper <= slack * d
        };
        // The upper bound, at 99.9 %, may be unlucky once.
        assert!(honest(621) || honest(626));
        // Teeth: a twin that counts three rows of a unit as three units.
        let (lower, _) = rate(&selection(1.0, d, 1), keys, 3, 622);
        assert!(lower > 5.0 * d, "{lower}");
    }

    /// A straight line, where every number is known; and about `(2/ε) ln(ε/2δ)` units, also for deltas that are lost beside a one.
    #[test]
    fn thresholds_are_those_of_the_curve() {
        for (e, d, half, always) in [
            (0.0, 0.25, 2, 4),
            (0.0, 0.125, 4, 8),
            (1.0, 0.9, 1, 2),
            (1.0, 0.5, 1, 2),
        ] {
            let of = selection(e, d, 1);
            assert_eq!((of.units_half(), of.units_always()), (half, always), "{d}");
        }
        for (e, d) in [(1.0, 1e-6), (0.5, 1e-17), (1.0, 1e-18), (0.1, 1e-300)] {
            let of = selection(e, d, 1);
            let about = 2.0 / e * (e / (2.0 * d)).ln();
            let near = |units: u64, about: f64| (units as f64 - about).abs() <= 3.0 + 0.02 * about;
            assert!(near(of.units_always(), about), "{e} {d}: {about}");
            assert!(near(of.units_half(), about / 2.0), "{e} {d}: {about}");
        }
    }

    /// What is drawn agrees: with one unit less a key is shown less than every other time, or not always.
    #[test]
    fn thresholds_are_those_of_what_is_drawn() {
        let of = selection(0.25, 1e-3, 1);
        let shown = |count: u64, seed_of: u64| {
            let units: BTreeMap<u64, u64> = (0..20_000).map(|key| (key, count)).collect();
            let release = of.release(Secret::new(units), &mut Seeded::new(seed(seed_of)));
            release.expect("entropy").value().shown.len() as u64
        };
        let alpha = || Alpha::new(ALPHA).expect("a level");
        let (half, always) = (of.units_half(), of.units_always());
        let upper = clopper_pearson_upper(shown(half, 627), 20_000, alpha()).expect("counts");
        let lower = clopper_pearson_lower(shown(half - 1, 628), 20_000, alpha()).expect("counts");
        assert!(upper >= 0.5 && lower < 0.5, "{upper} {lower}");
        assert_eq!(shown(always, 629), 20_000);
        assert!(shown(always - 1, 630) < 20_000);
        // Teeth: two units away it is not every other time any more.
        let lower = clopper_pearson_lower(shown(half + 1, 631), 20_000, alpha()).expect("counts");
        let upper = clopper_pearson_upper(shown(half - 2, 632), 20_000, alpha()).expect("counts");
        assert!(lower > 0.5 && upper < 0.5, "{lower} {upper}");
    }

    #[test]
    fn units_count_once_for_each_key_and_in_few_keys() {
        let of = selection(1.0, 0.1, 2);
        let rows = [(1, "b"), (1, "b"), (1, "a"), (1, "c"), (2, "c"), (2, "c")];
        let units = of.aggregate(rows).expose();
        assert_eq!(
            units.into_iter().collect::<Vec<_>>(),
            [("a", 1), ("b", 1), ("c", 1)]
        );
    }

    #[test]
    fn many_units_are_shown_and_no_units_never() {
        let of = selection(1.0, 1e-6, 1).with_other(&Noise::Laplace(scale(1, 16)));
        let units = BTreeMap::from([("z", u64::MAX), ("m", 1000), ("none", 0), ("one", 1)]);
        let release = of
            .release(Secret::new(units), &mut Seeded::new(623))
            .expect("entropy");
        assert_eq!(release.value().shown, ["m", "z"]);
        assert_eq!(release.value().other, Some(1));
        let none = of.release(
            Secret::new(BTreeMap::<u8, u64>::new()),
            &mut Seeded::new(624),
        );
        assert_eq!(none.expect("entropy").value().shown.len(), 0);
        assert!(
            of.release(Secret::new(BTreeMap::<u8, u64>::new()), &mut FailingEntropy)
                .is_err()
        );
    }

    #[test]
    fn the_rest_moves_by_no_more_than_its_sensitivity() {
        let mut bits = SeededBits::new(seed(625));
        for _ in 0..200 {
            let rows: Vec<(u64, u64)> = (0..bits.below(40))
                .map(|_| (bits.below(8), bits.below(9)))
                .collect();
            let without: Vec<_> = rows
                .iter()
                .copied()
                .filter(|&(unit, _)| unit != 0)
                .collect();
            // The unit comes back as another, with keys of its own.
            let mut replaced = without.clone();
            replaced.extend((0..bits.below(6)).map(|_| (0, bits.below(9))));
            let shown = bits.below(9);
            let rest = |rows: Vec<(u64, u64)>| -> u64 {
                let units = aggregate(3, rows).expose();
                units
                    .iter()
                    .filter(|&(&key, _)| key >= shown)
                    .map(|(_, &count)| count)
                    .sum()
            };
            let rest = [rows, without, replaced].map(rest);
            assert!(rest[0].abs_diff(rest[1]) <= 3);
            assert!(rest[0].abs_diff(rest[2]) <= 3);
        }
    }

    #[test]
    fn events_compose_over_keys() {
        let event = selection(1.0, 1e-6, 3)
            .with_other(&Noise::Laplace(scale(3, 1)))
            .event();
        let Mechanism::Composition(parts) = event.mechanism() else {
            panic!("one part")
        };
        assert_eq!(parts.len(), 4);
        assert!(matches!(parts[0], Mechanism::PartitionSelection { .. }));
        assert!(matches!(
            selection(1.0, 1e-6, 1).event().mechanism(),
            Mechanism::PartitionSelection { .. }
        ));
        let delta = Delta::new(1e-6).expect("a delta");
        let replaced =
            PartitionSelection::<ReplaceOne>::new(epsilon(1.0), delta, 1).expect("in range");
        let Mechanism::Composition(parts) = replaced.event().mechanism().clone() else {
            panic!("one part")
        };
        assert!(parts.len() == 2 && matches!(parts[0], Mechanism::Approximate { .. }));
    }

    #[test]
    fn refuses_what_shows_nothing() {
        let new = |e, d, keys| {
            PartitionSelection::<AddRemove>::new(epsilon(e), Delta::new(d).expect("a delta"), keys)
        };
        assert!(new(1.0, 0.0, 1).is_err() && new(1.0, 1e-6, 0).is_err());
        assert!(new(1e-9, 1e-12, 1).is_err(), "a curve of a billion steps");
    }
}
