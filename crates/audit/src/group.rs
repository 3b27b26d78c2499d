//! How many records two worlds differ in.
//!
//! **Group privacy.** If `M` is `(ε, δ)`-DP, then on data sets that differ in `k` records every event has
//!   `P(S) <= e^{kε} Q(S) + δ (1 + e^ε + … + e^{(k-1)ε})`, by `k` steps of the definition.
//! **Converse.** So if `p > e^{kε} q + δ (e^{kε} - 1)/(e^ε - 1)` for one event, `M` is not `(ε, δ)`-DP. The right-hand side grows
//!   with `ε`: the largest `ε` for which that holds is a lower bound on the true one \[Jag20, Alg. 2, with the `δ` it leaves out\].
//! **Rounding.** The right-hand side is rounded up, term by term.

use whit_core::{Delta, round};

use crate::interval::bisect;
use crate::{Error, Result};

/// The largest group. Beyond, `e^{kε}` leaves no floats for any bound.
pub const GROUP_MAX: u32 = 10_000;

/// The number of records in which the two worlds differ. At least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group(u32);

impl Group {
    /// Neighbours proper.
    pub const ONE: Self = Self(1);

    /// From 1 to [`GROUP_MAX`].
    pub fn new(records: u32) -> Result<Self> {
        if (1..=GROUP_MAX).contains(&records) {
            Ok(Self(records))
        } else {
            Err(Error::OutOfDomain {
                what: "group",
                given: f64::from(records),
                domain: "a number of records from 1 to 10000",
            })
        }
    }

    /// The number.
    pub const fn records(self) -> u32 {
        self.0
    }
}

/// At least the probability that `(epsilon, delta)`-DP allows an event in one world, if it has at most `unlikely` in the other.
pub(crate) fn allowed_up(unlikely: f64, epsilon: f64, delta: Delta, group: Group) -> f64 {
    let whole = round::exp_up(round::mul_up(f64::from(group.0), epsilon));
    let scaled = if unlikely == 0.0 {
        0.0
    } else {
        round::mul_up(whole, unlikely)
    };
    if delta.value() == 0.0 {
        return scaled;
    }
    let step = round::exp_up(epsilon);
    // At most ten thousand rounds.
    let steps = (0..group.0).fold(0.0, |sum, _| round::add_up(round::mul_up(sum, step), 1.0));
    round::add_up(scaled, round::mul_up(delta.value(), steps))
}

/// The largest `ε` that is refuted by an event of probability at least `likely` in one world and at most `unlikely` in the
/// other. Zero if none is.
pub(crate) fn refuted_epsilon(likely: f64, unlikely: f64, delta: Delta, group: Group) -> f64 {
    let refuted = |epsilon: f64| likely > allowed_up(unlikely, epsilon, delta, group);
    if !refuted(0.0) {
        return 0.0;
    }
    // Beyond this nothing is refuted: e^ε times the least positive float is above one. (An event that is impossible in one
    // world would refute everything; bounds from counts are never zero.)
    bisect(0.0, 1000.0, refuted).0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(likely: f64, unlikely: f64, delta: f64, group: u32, expected: f64) {
        let delta = Delta::new(delta).expect("in range");
        let group = Group::new(group).expect("in range");
        let epsilon = refuted_epsilon(likely, unlikely, delta, group);
        assert!(
            epsilon <= expected + 1e-12 && epsilon > expected - 1e-9,
            "{likely} {unlikely} {delta:?} {group:?}: {expected}, got {epsilon}"
        );
    }

    #[test]
    fn closed_forms() {
        check(0.9, 0.1, 0.0, 1, 9_f64.ln());
        check(0.9, 0.1, 0.0, 4, 9_f64.ln() / 4.0);
        check(0.9, 0.1, 0.3, 1, 6_f64.ln());
        // k = 2: 0.9 = x² 0.1 + 0.1 (1 + x), so x² + x - 8 = 0.
        check(0.9, 0.1, 0.1, 2, ((33_f64.sqrt() - 1.0) / 2.0).ln());
        // The ceiling of the published audit: all of 500 and none, at half a percent each.
        let low = 0.005_f64.powf(1.0 / 500.0);
        check(low, 1.0 - low, 0.0, 1, (low / (1.0 - low)).ln());
        assert!(((low / (1.0 - low)).ln() - 4.54).abs() < 0.005);
    }

    #[test]
    fn nothing_is_refuted_by_what_delta_covers() {
        check(0.1, 0.1, 0.0, 1, 0.0);
        check(0.2, 0.3, 0.0, 1, 0.0);
        check(0.5, 0.1, 0.4, 1, 0.0);
        // Three records may each cost a delta.
        check(0.5, 0.1, 0.14, 3, 0.0);
        check(1.0, 1.0, 0.0, 10_000, 0.0);
    }

    /// The sum by its other formula.
    #[test]
    fn group_term_is_the_geometric_sum() {
        for (epsilon, group) in [(0.3_f64, 5), (1.0, 8), (2.5, 3), (1e-9, 100)] {
            let delta = Delta::new(1e-3).expect("in range");
            let k = f64::from(group);
            let expected = 1e-3 * (k * epsilon).exp_m1() / epsilon.exp_m1();
            let group = Group::new(group).expect("in range");
            let sum = allowed_up(0.0, epsilon, delta, group);
            assert!((sum / expected - 1.0).abs() < 1e-7, "{sum} {expected}");
        }
    }

    #[test]
    fn groups_have_a_size() {
        assert!(Group::new(0).is_err() && Group::new(GROUP_MAX + 1).is_err());
        assert_eq!(Group::new(1), Ok(Group::ONE));
    }
}
