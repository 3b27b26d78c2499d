//! # Bins that grow like powers
//! **Definition.** With a scale `s` and a base `b`, `B` positive bins `[0, s]`, `(s, sb]`, …, `(sb^(B-2), sb^(B-1)]` and their mirror
//!   images `[-s, 0)`, `[-sb, -s)`, …; zero, of either sign, is in `[0, s]`. Values beyond the last edge count in the last bin;
//!   what is no number is in none.
//! **Exactness.** The base is a power of two, so edges are exact floats; comparing floats does not round. Which bin a value is in
//!   depends on the value alone.

use whit_core::Error as UnitError;

use crate::{Error, Result};

/// Bins that grow like powers of a base, `B` for each sign.
#[derive(Clone, Debug, PartialEq)]
pub struct LogBins {
    /// The upper ends of the positive bins: `s b^i`.
    edges: Vec<f64>,
}

/// Edges are at most `2^900`, as [`Bounds`] are.
const EDGE_LOG2_MAX: i32 = 900;
/// From the smallest float to the largest edge there are fewer powers of two than this.
const BINS_MAX: u32 = 2000;
/// A base beyond this tells nothing.
const BASE_MAX: u32 = 1 << 16;

impl LogBins {
    /// Bins that double: the first up to `scale`, the last up to `scale 2^(bins-1)`, and as many negative ones.
    pub fn new(scale: f64, bins: u32) -> Result<Self> {
        Self::with_base(scale, bins, 2)
    }

    /// The same with another power of two as base.
    pub fn with_base(scale: f64, bins: u32, base: u32) -> Result<Self> {
        let out_of_range = |what, given: u32, min: u32, max: u32| Error::CountOutOfRange {
            what,
            given: u64::from(given),
            min: u64::from(min),
            max: u64::from(max),
        };
        if !(1..=BINS_MAX).contains(&bins) {
            return Err(out_of_range("the number of bins", bins, 1, BINS_MAX));
        }
        if !(2..=BASE_MAX).contains(&base) {
            return Err(out_of_range("the base", base, 2, BASE_MAX));
        }
        let domain = |what, given: String, domain| UnitError::OutOfDomain {
            what,
            given,
            domain,
        };
        if !base.is_power_of_two() {
            return Err(domain("the base", base.to_string(), "a power of two").into());
        }
        let log2 = (base.trailing_zeros() * (bins - 1)) as i32;
        let fits = scale > 0.0 && scale <= libm::ldexp(1.0, EDGE_LOG2_MAX - log2);
        if !fits {
            let allowed = "a positive number that keeps the last edge below 2^900";
            return Err(domain("the scale of the bins", scale.to_string(), allowed).into());
        }
        let edge = |i: u32| libm::ldexp(scale, (base.trailing_zeros() * i) as i32);
        Ok(Self {
            edges: (0..bins).map(edge).collect(),
        })
    }

    /// How many bins there are, both signs together.
    pub fn total(&self) -> u64 {
        2 * self.edges.len() as u64
    }

    /// The ends of bin `index`, counted from the most negative one.
    pub fn ends(&self, index: usize) -> (f64, f64) {
        let bins = self.edges.len();
        let end = |i: usize| if i == 0 { 0.0 } else { self.edges[i - 1] };
        if index >= bins {
            let i = (index - bins).min(bins - 1);
            (end(i), end(i + 1))
        } else {
            let i = bins - 1 - index;
            (-end(i + 1), if i == 0 { 0.0 } else { -end(i) })
        }
    }

    /// The bin of a value; none for what is no number.
    fn index(&self, value: f64) -> Option<usize> {
        let bins = self.edges.len();
        let i = self
            .edges
            .partition_point(|&edge| edge < value.abs())
            .min(bins - 1);
        match value {
            _ if value.is_nan() => None,
            _ if value < 0.0 => Some(bins - 1 - i),
            _ => Some(bins + i),
        }
    }

    /// How many values are in each bin.
    pub fn count(&self, rows: impl IntoIterator<Item = f64>) -> Vec<i64> {
        let mut counts = vec![0_i64; 2 * self.edges.len()];
        for index in rows.into_iter().filter_map(|value| self.index(value)) {
            counts[index] += 1;
        }
        counts
    }

    /// From the first to the last bin whose count is above the threshold.
    pub fn range_above(&self, counts: &[i64], threshold: i128) -> Option<(f64, f64)> {
        let passes = |&count: &i64| i128::from(count) > threshold;
        let counts = &counts[..counts.len().min(2 * self.edges.len())];
        let first = counts.iter().position(passes)?;
        let last = counts.iter().rposition(passes)?;
        Some((self.ends(first).0, self.ends(last).1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bounds;

    #[test]
    fn values_fall_where_they_belong() {
        let bins = LogBins::with_base(0.5, 3, 4).expect("bins");
        let nasty = [
            0.0,
            -0.0,
            5e-324,
            -5e-324,
            0.5,
            0.5_f64.next_up(),
            -0.5,
            2.0,
            (-2.0_f64).next_down(),
        ];
        assert_eq!(
            nasty.map(|x| bins.index(x)),
            [3, 3, 3, 2, 3, 4, 2, 4, 0].map(Some)
        );
        let far = [
            8.0,
            8.0_f64.next_up(),
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::MIN,
        ];
        assert_eq!(far.map(|x| bins.index(x)), [5, 5, 5, 0, 0].map(Some));
        assert_eq!(bins.index(f64::NAN), None);
        let ends: Vec<_> = (0..6).map(|i| bins.ends(i)).collect();
        let expected = [
            (-8.0, -2.0),
            (-2.0, -0.5),
            (-0.5, 0.0),
            (0.0, 0.5),
            (0.5, 2.0),
            (2.0, 8.0),
        ];
        assert_eq!(ends, expected);
        assert!(bins.ends(2).1.is_sign_positive());
    }

    #[test]
    fn rejects_what_are_no_bins() {
        for scale in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::MAX] {
            assert!(LogBins::new(scale, 4).is_err(), "{scale}");
        }
        assert!(LogBins::new(1.0, 0).is_err() && LogBins::new(1.0, 902).is_err());
        assert!(LogBins::new(1.0, 901).is_ok() && LogBins::new(5e-324, 1900).is_ok());
        for base in [0, 1, 3, 1 << 17] {
            assert!(LogBins::with_base(1.0, 4, base).is_err(), "{base}");
        }
    }

    #[test]
    fn every_range_makes_bounds() {
        for bins in [LogBins::new(5e-324, 1900), LogBins::with_base(1e-9, 60, 4)] {
            let bins = bins.expect("bins");
            for first in (0..bins.total() as usize).step_by(7) {
                for last in (first..bins.total() as usize).step_by(11) {
                    let (lower, upper) = (bins.ends(first).0, bins.ends(last).1);
                    assert!(Bounds::new(lower, upper).is_ok(), "{lower:e} {upper:e}");
                }
            }
        }
    }
}
