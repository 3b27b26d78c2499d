//! Declared domains of a feature, cut into bins.
//!
//! **Claim.** [`Domain::bin`] is a function of the value and of what was declared, and below [`Domain::bins`], whatever the value.
//! **Proof.** A number has a place of at most `2^18` units ([`Interval`]), whose bin is computed in integers. A category is rounded and
//! clamped as an integer. ∎

use serde::{Deserialize, Serialize};

use super::counted;
use super::interval::{Interval, UNIT};
use crate::error::Result;

/// More bins than this are finer than what noise leaves.
const BINS_MAX: usize = 4096;

/// Where the values of one feature lie, as their owner declares it without looking at the data, and how finely a model looks at them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Domain {
    kind: Kind,
    bins: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Numbers(Interval),
    Categories,
}

impl Domain {
    /// Numbers in an interval that is cut into so many bins of one width. What lies outside counts as the nearest end.
    pub fn numbers(interval: Interval, bins: usize) -> Result<Self> {
        counted("bins", bins, BINS_MAX, "a whole number from 1 to 4096")?;
        let kind = Kind::Numbers(interval);
        Ok(Self { kind, bins })
    }

    /// So many categories, numbered from zero, without an order. What is no such number counts as the nearest.
    pub fn categories(count: usize) -> Result<Self> {
        let most = "a whole number from 1 to 4096";
        counted("categories", count, BINS_MAX, most)?;
        let kind = Kind::Categories;
        Ok(Self { kind, bins: count })
    }

    /// Is it one that could have been made? A file may say anything.
    pub(super) fn is_whole(self) -> bool {
        let values = match self.kind {
            Kind::Numbers(interval) => interval.is_whole(),
            Kind::Categories => true,
        };
        values && (1..=BINS_MAX).contains(&self.bins)
    }

    /// How many bins there are.
    pub fn bins(self) -> usize {
        self.bins
    }

    /// Do neighbouring bins hold neighbouring values?
    pub(super) fn is_ordered(self) -> bool {
        matches!(self.kind, Kind::Numbers(_))
    }

    /// Where a number lies, from `-2^18` at the lower end to `2^18` at the upper; nothing for a category.
    pub(super) fn place(self, value: f32) -> Option<i64> {
        match self.kind {
            Kind::Numbers(interval) => Some(interval.units(value)),
            Kind::Categories => None,
        }
    }

    /// The bin of a value.
    pub(super) fn bin(self, value: f32) -> usize {
        let bins = self.bins as i64;
        let bin = match self.kind {
            Kind::Numbers(interval) => (interval.units(value) + UNIT) * bins / (2 * UNIT),
            // A cast takes what is too large to the ends, and what is no number to zero.
            Kind::Categories => value.round() as i64,
        };
        // The upper end belongs to the last bin.
        bin.clamp(0, bins - 1) as usize
    }
}

/// Is each of them one that could have been made, and is there one?
pub(super) fn are_whole(domains: &[Domain]) -> bool {
    !domains.is_empty() && domains.iter().all(|domain| domain.is_whole())
}

/// The most bins of any of these.
pub(super) fn bins_max(domains: &[Domain]) -> usize {
    let bins = domains.iter().map(|domain| domain.bins);
    bins.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_core::Fault;

    #[test]
    fn whatever_comes_has_a_bin() {
        let interval = Interval::new(2.0, 6.0).expect("an interval");
        for domain in [
            Domain::numbers(interval, 1),
            Domain::numbers(interval, 7),
            Domain::numbers(interval, BINS_MAX),
            Domain::categories(1),
            Domain::categories(9),
        ] {
            let domain = domain.expect("a domain");
            for value in [
                0.0,
                -0.0,
                2.0,
                6.0,
                f32::MAX,
                f32::MIN,
                f32::INFINITY,
                f32::NEG_INFINITY,
                f32::NAN,
                1e-45,
            ] {
                assert!(domain.bin(value) < domain.bins(), "{value} in {domain:?}");
            }
        }
    }

    #[test]
    fn bins_have_one_width() {
        let interval = Interval::new(2.0, 6.0).expect("an interval");
        let numbers = Domain::numbers(interval, 4).expect("a domain");
        let seen = [0.0, 2.0, 2.99, 3.0, 4.5, 5.99, 6.0, 9.0].map(|value| numbers.bin(value));
        assert_eq!(seen, [0, 0, 0, 1, 2, 3, 3, 3]);
        let categories = Domain::categories(3).expect("a domain");
        let seen = [-1.0, 0.0, 0.4, 1.0, 2.0, 7.0].map(|value| categories.bin(value));
        assert_eq!(seen, [0, 0, 0, 1, 2, 2]);
        assert!(numbers.is_ordered() && !categories.is_ordered());
        let places = [0.0, 2.0, 4.0, 6.0, 9.0].map(|value| numbers.place(value));
        assert_eq!(places, [-UNIT, -UNIT, 0, UNIT, UNIT].map(Some));
        assert_eq!(categories.place(1.0), None);
        assert_eq!(bins_max(&[numbers, categories]), 4);
    }

    #[test]
    fn rejects_no_bins_and_too_many() {
        let interval = Interval::new(0.0, 1.0).expect("an interval");
        for bins in [0, BINS_MAX + 1] {
            for refused in [Domain::numbers(interval, bins), Domain::categories(bins)] {
                let refused = refused.expect_err("no domain");
                assert_eq!(refused.code(), "plan_out_of_range");
                assert!(refused.suggestion().contains("from 1 to 4096"));
            }
        }
    }
}
