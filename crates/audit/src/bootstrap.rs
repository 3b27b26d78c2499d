//! Resampling, for those who want to know how much a number wobbles.
//!
//! **Definition.** The statistic of the data, and quantiles of the same statistic on samples of the data with replacement \[Efr79\].
//! **Guarantee.** None. Quantiles of resamples cover the truth in the limit, for smooth statistics; epsilons of rare events are neither. So
//!   what comes out is an [`Estimate`], which has no ruling and becomes none: an audit may print it beside its bounds.

use whit_core::Bits;

use crate::world::below;
use crate::{Error, Estimate, Result};

/// How to resample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resample {
    /// How many resamples.
    pub times: usize,
    /// The share of resamples left out on each side, below one half.
    pub tail: f64,
}

/// The statistic of scores in two worlds, and where most of its resamples lie.
pub fn bootstrap(
    one: &[f64],
    other: &[f64],
    resample: Resample,
    bits: &mut impl Bits,
    statistic: impl Fn(&[f64], &[f64]) -> f64,
) -> Result<Estimate> {
    let Resample { times, tail } = resample;
    if times == 0 || !(0.0..0.5).contains(&tail) || one.is_empty() || other.is_empty() {
        return Err(Error::OutOfDomain {
            what: "tail of a bootstrap",
            given: tail,
            domain: "a number from 0 up to, but not including, 0.5, with resamples to take and scores to take them of",
        });
    }
    let mut draw = |scores: &[f64]| -> Vec<f64> {
        (0..scores.len())
            .map(|_| scores[below(scores.len() as u64, bits) as usize])
            .collect()
    };
    let mut values: Vec<f64> = (0..times)
        .map(|_| statistic(&draw(one), &draw(other)))
        .collect();
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values[((times - 1) as f64 * share).round() as usize];
    Ok(Estimate {
        value: statistic(one, other),
        low: at(tail),
        high: at(1.0 - tail),
        method: "bootstrap",
    })
}

/// The share of pairs that are in order: the area under the receiver operating curve, ties counted half. One half means that
/// the scores tell nothing.
pub fn area_under_curve(one: &[f64], other: &[f64]) -> f64 {
    let mut all: Vec<(f64, bool)> = one
        .iter()
        .map(|score| (*score, true))
        .chain(other.iter().map(|score| (*score, false)))
        .collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Twice the number of pairs in order; ranks of ties are shared.
    let (mut pairs, mut below_count, mut at) = (0.0, 0.0, 0);
    while at < all.len() {
        let ties = all[at..]
            .iter()
            .take_while(|entry| entry.0.total_cmp(&all[at].0).is_eq());
        let (mut ones, mut others) = (0.0, 0.0);
        for (_, is_one) in ties {
            if *is_one {
                ones += 1.0;
            } else {
                others += 1.0;
            }
        }
        pairs += ones * (2.0 * below_count + others);
        below_count += others;
        at += (ones + others) as usize;
    }
    pairs / (2.0 * one.len() as f64 * other.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::normal;
    use whit_testkit::SeededBits;

    fn mean(scores: &[f64]) -> f64 {
        scores.iter().sum::<f64>() / scores.len() as f64
    }

    #[test]
    fn resamples_of_a_mean_spread_as_its_error_does() {
        let (mut one, mut other) = (normal(1), normal(2));
        let one: Vec<f64> = (0..1000).map(|_| one()).collect();
        let other: Vec<f64> = (0..1000).map(|_| other()).collect();
        let resample = Resample {
            times: 2000,
            tail: 0.025,
        };
        let estimate = bootstrap(&one, &other, resample, &mut SeededBits::new(1), |a, b| {
            mean(a) - mean(b)
        })
        .expect("valid");
        let width = estimate.high - estimate.low;
        // Four standard errors of a difference of two means of 1000: 3.92 · √(2/1000) = 0.1753.
        assert!((width - 0.1753).abs() < 0.02, "{estimate:?}");
        assert!(estimate.low < estimate.value && estimate.value < estimate.high);
    }

    #[test]
    fn areas_have_their_closed_forms() {
        assert_eq!(area_under_curve(&[2.0, 3.0], &[0.0, 1.0]), 1.0);
        assert_eq!(area_under_curve(&[0.0, 1.0], &[2.0, 3.0]), 0.0);
        assert_eq!(area_under_curve(&[1.0, 1.0], &[1.0]), 0.5);
        assert_eq!(area_under_curve(&[1.0, 3.0], &[2.0]), 0.5);
    }

    #[test]
    fn rejects_what_cannot_be_resampled() {
        let resample = |times, tail| {
            bootstrap(
                &[1.0],
                &[2.0],
                Resample { times, tail },
                &mut SeededBits::new(1),
                |_, _| 0.0,
            )
        };
        assert!(resample(0, 0.1).is_err() && resample(10, 0.5).is_err());
        assert!(resample(10, 0.0).is_ok());
    }
}
