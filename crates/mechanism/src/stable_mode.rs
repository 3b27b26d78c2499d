//! # Stable mode
//! **Definition.** The most frequent key among the rows (the smallest such), shown only if a test of its lead passes. Keys need not be
//!   known beforehand. Let `g` be the lead: the largest count less the second largest, zero if there is none.
//! **Requires.** Rows bounded by the same [`Contribution`] the statistic was made with; `k` is the most rows of one unit.
//! **Guarantee.** That of [`ProposeTestRelease`]: `(ε, δ)`-DP.
//! **Proof.** The distance is `d = ⌊max(g-1, 0)/w⌋` with `w = k` for add/remove and `w = 2k` for replace-one. A row more or less changes one
//!   count by one, and with it one place of the counts in order, so `g` by at most one. Neighbours differ in at most `w` rows, so `g`
//!   changes by at most `w` and `d` by at most one. If `g > w`, the key in the lead still leads alone after `w` such changes; so if the
//!   modes of neighbours differ, `g <= w` for both and hence `d = 0` for both. Keys that do not occur have the count zero, and for no
//!   rows at all the mode is "none", which has `g = 0`.
//! **Error.** The mode is shown with probability above `1 - δ` if its lead is more than `2tw`, with the test's threshold `t`.

use std::collections::BTreeMap;

use whit_core::{Entropy, Event, Relation, Secret};

use crate::{Contribution, ProposeTestRelease, Release, Result, Stable};

/// The most frequent key, if it leads clearly.
pub struct StableMode<R: Relation> {
    test: ProposeTestRelease<R>,
    contribution: Contribution,
}

impl<R: Relation> StableMode<R> {
    /// A mode over rows that were bounded so.
    pub fn new(test: ProposeTestRelease<R>, contribution: Contribution) -> Self {
        Self { test, contribution }
    }

    /// By how much one unit changes the lead at most.
    fn lead_change(&self) -> u64 {
        let rows = u64::from(self.contribution.rows_max());
        R::pick(rows, 2 * rows)
    }

    /// Counts keys and finds the mode, if there are rows, and how far it is from another.
    pub fn aggregate<K: Ord>(
        &self,
        rows: impl IntoIterator<Item = K>,
    ) -> Secret<Stable<Option<K>, R>> {
        let mut counts: BTreeMap<K, u64> = BTreeMap::new();
        for key in rows {
            *counts.entry(key).or_insert(0) += 1;
        }
        let (mut mode, mut first, mut second) = (None, 0, 0);
        for (key, count) in counts {
            if count > first {
                (mode, first, second) = (Some(key), count, first);
            } else {
                second = second.max(count);
            }
        }
        let distance = (first - second).saturating_sub(1) / self.lead_change();
        Secret::new(Stable::new(distance, mode))
    }

    /// What an accountant needs to know.
    pub fn event(&self) -> Event {
        self.test.event()
    }

    /// The mode, or nothing. Spends one `event`.
    pub fn release<K>(
        &self,
        mode: Secret<Stable<Option<K>, R>>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Option<K>>> {
        Ok(self.test.release(mode, entropy)?.map(Option::flatten))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{TapeEntropy, judge, seed};
    use whit_audit::{Enumeration, enumerate};
    use whit_core::{AddRemove, Delta, Epsilon, ReplaceOne};
    use whit_testkit::Seeded;

    fn mode<R: Relation>(delta: f64, contribution: Contribution) -> StableMode<R> {
        let (epsilon, delta) = (
            Epsilon::new(1.0).expect("one"),
            Delta::new(delta).expect("one"),
        );
        let test = ProposeTestRelease::new(epsilon, delta).expect("in range");
        StableMode::new(test, contribution)
    }

    fn found<R: Relation>(rows: &[u8], contribution: Contribution) -> (u64, Option<u8>) {
        let stable = mode::<R>(0.05, contribution).aggregate(rows.iter().copied());
        stable.expose().into_parts()
    }

    #[test]
    fn closed_form() {
        let row = Contribution::Row;
        let three = Contribution::RowsPerUnit(3);
        assert_eq!(found::<AddRemove>(b"", row), (0, None));
        assert_eq!(found::<AddRemove>(b"x", row), (0, Some(b'x')));
        assert_eq!(found::<AddRemove>(b"yyxx", row), (0, Some(b'x')));
        assert_eq!(found::<AddRemove>(b"xxxxxy", row), (3, Some(b'x')));
        assert_eq!(found::<ReplaceOne>(b"xxxxxy", row), (1, Some(b'x')));
        assert_eq!(found::<ReplaceOne>(b"xxxxy", row), (1, Some(b'x')));
        assert_eq!(found::<ReplaceOne>(b"xxxy", row), (0, Some(b'x')));
        assert_eq!(found::<AddRemove>(b"xxxxxxxx", three), (2, Some(b'x')));
        assert_eq!(found::<ReplaceOne>(b"xxxxxxx", three), (1, Some(b'x')));
        let event = mode::<AddRemove>(0.05, row).event();
        assert_eq!(event.neighbours(), AddRemove::NEIGHBOURS);
    }

    /// All data sets of at most five rows over four keys: both requirements, for units of one and of two rows.
    #[test]
    fn distance_keeps_its_promises() {
        fn checker<R: Relation>(contribution: Contribution) -> impl Fn(&[u8], &[u8]) {
            let mode = mode::<R>(0.05, contribution);
            move |one, other| {
                let parts =
                    |rows: &[u8]| mode.aggregate(rows.iter().copied()).expose().into_parts();
                let ((d, m), (e, n)) = (parts(one), parts(other));
                assert!(d.abs_diff(e) <= 1, "{one:?} {other:?}");
                assert!(m == n || (d, e) == (0, 0), "{one:?} {other:?}");
            }
        }
        let two = Contribution::RowsPerUnit(2);
        let added_one = checker::<AddRemove>(Contribution::Row);
        let added_two = checker::<AddRemove>(two);
        let replaced_one = checker::<ReplaceOne>(Contribution::Row);
        let replaced_two = checker::<ReplaceOne>(two);
        for code in 0..5_usize.pow(5) {
            // The fifth digit stands for no row.
            let rows: Vec<u8> = (0..5)
                .map(|place| (code / 5_usize.pow(place) % 5) as u8)
                .filter(|&key| key < 4)
                .collect();
            for key in 0..4 {
                let added: Vec<u8> = rows.iter().copied().chain([key]).collect();
                added_one(&rows, &added);
                for second in 0..4 {
                    let more: Vec<u8> = added.iter().copied().chain([second]).collect();
                    added_two(&rows, &more);
                    let swapped: Vec<u8> = rows.iter().copied().chain([second]).collect();
                    replaced_one(&added, &swapped);
                    let twice: Vec<u8> = swapped.iter().copied().chain([second]).collect();
                    let pair: Vec<u8> = added.iter().copied().chain([key]).collect();
                    replaced_two(&pair, &twice);
                }
            }
        }
    }

    fn run<R: Relation>(mechanism: &StableMode<R>, rows: &[u8]) -> Enumeration<Option<u8>> {
        enumerate::<1, _>(18, |tape| {
            let mode = mechanism.aggregate(rows.iter().copied());
            let release = mechanism.release(mode, &mut TapeEntropy(Some(tape)));
            release.expect("one release").into_value()
        })
    }

    /// Every tape of the whole mechanism on neighbours, with the mode close to changing and far from it.
    #[test]
    fn enumeration_of_neighbours() {
        let honest = mode::<AddRemove>(0.05, Contribution::Row);
        let claim = Epsilon::new(1.0).expect("one");
        for (one, other) in [
            ("", "x"),
            ("xy", "xyy"),
            ("xxy", "xxyy"),
            ("xxxx", "xxxxx"),
            ("xxxxxx", "xxxxx"),
        ] {
            let (one, other) = (run(&honest, one.as_bytes()), run(&honest, other.as_bytes()));
            assert!(one.hockey_stick_upper(&other, claim) <= 0.05);
            assert!(other.hockey_stick_upper(&one, claim) <= 0.05);
        }
        // Twins: the lead itself as the distance shows a lone row; the lead for add/remove under replace-one shows a swap.
        let lead = |distance| {
            enumerate::<1, _>(18, |tape| {
                let x = Secret::new(Stable::new(distance, Some(b'x')));
                let release = honest.release(x, &mut TapeEntropy(Some(tape)));
                release.expect("one release").into_value()
            })
        };
        let alone = lead(1).hockey_stick_lower(&run(&honest, b""), claim);
        assert!(alone > 0.05, "{alone}");
        // "xxxyy" and "xxyyy": with g = 1 both have distance zero; under replace-one g = 2 must have it too.
        let swapped = lead(1).hockey_stick_lower(&run(&honest, b"xxyyy"), claim);
        assert!(swapped > 0.05, "{swapped}");
    }

    fn seen(rows: (&'static [u8], &'static [u8]), claim: f64) -> whit_audit::Verdict {
        let mechanism = mode::<AddRemove>(0.05, Contribution::Row);
        let (mut one, mut other) = (Seeded::new(seed(5601)), Seeded::new(seed(5602)));
        let event = |rows: &[u8], entropy: &mut Seeded| {
            let mode = mechanism.aggregate(rows.iter().copied());
            mechanism
                .release(mode, entropy)
                .expect("entropy")
                .value()
                .is_some()
        };
        judge(
            claim,
            0.0,
            200_000,
            || event(rows.0, &mut one),
            || event(rows.1, &mut other),
        )
    }

    #[test]
    fn falsifier() {
        let verdict = seen((b"xxx", b"xx"), 1.0);
        assert!(
            !verdict.convicted && verdict.epsilon_lower > 0.86,
            "{verdict:?}"
        );
    }

    #[test]
    fn falsifier_has_teeth() {
        assert!(seen((b"xxx", b"xx"), 0.9).convicted);
        assert!(
            seen((b"xxxx", b"xx"), 1.0).convicted,
            "two changes are not one"
        );
    }
}
