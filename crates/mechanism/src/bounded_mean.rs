//! # Bounded mean
//! **Definition.** With the middle `m = (L+U)/2`: `m + (Σ (clamp(x_i) - m) + Z) / n`. Under replace-one with each row a unit, `n` is
//!   the public number of rows. Otherwise `n` is a noisy count of the rows that have a value, at least 1. The answer is
//!   clamped to `[L, U]`.
//! **Requires.** Rows bounded by the same [`Contribution`] the statistic was made with.
//! **Guarantee.** The composition of the noise on the centred sum and, where there is one, on the count, at these
//!   sensitivities; `w = U - L`, `k` the most rows of one unit:
//!
//! | | centred sum | count |
//! | --- | --- | --- |
//! | add/remove | `k w/2` | `k` |
//! | replace-one, up to `k` rows | `k w` | `k` |
//! | replace-one, each row a unit | `w` | public |
//!
//! **Proof.** A centred value lies in `[-w/2, w/2]`, an absent cell adds zero, which lies there too. A unit's total lies in
//!   `[-k w/2, k w/2]`: one end is at most `k w/2` from zero and the ends are `k w` apart. The count is that of
//!   [`Count`](crate::Count). Division and clamping are post-processing. Fixed point counts half steps, so that `m` is exact.
//! **Error.** Each of the two noisy parts stays within its own half-width except with half the missing probability, so both do
//!   with the stated confidence, and the interval holds every quotient they allow.

use whit_core::{Confidence, Entropy, L1, L2, Neighbours, Ratio, Relation, Secret, Sensitivity};

use crate::additive::{Additive, Noise};
use crate::{Bounds, Contribution, Count, Error, Estimate, Release, Result};

/// The mean of values in public bounds.
#[derive(Clone, Copy, Debug)]
pub struct BoundedMean<R: Relation> {
    bounds: Bounds,
    contribution: Contribution,
    relation: std::marker::PhantomData<R>,
}

/// What the data gives to a mean: the centred sum in half steps, and how many values there are.
pub struct MeanParts {
    centred: Secret<i128>,
    present: Secret<i64>,
    rows: Secret<i64>,
}

impl<R: Relation> BoundedMean<R> {
    /// A mean over rows that were bounded so.
    pub fn new(bounds: Bounds, contribution: Contribution) -> Self {
        Self { bounds, contribution, relation: std::marker::PhantomData }
    }

    /// Is the number of rows public, so that only the sum needs noise?
    pub fn count_is_public(&self) -> bool {
        R::NEIGHBOURS == Neighbours::ReplaceOne && self.contribution == Contribution::Row
    }

    /// The most that one unit changes the centred sum, in the unit of the values.
    pub fn sum_sensitivity_l1(&self) -> Sensitivity<L1, R> {
        Sensitivity::new(&self.half_steps() * &self.half_step())
    }

    /// The same; in one dimension all norms agree.
    pub fn sum_sensitivity_l2(&self) -> Sensitivity<L2, R> {
        Sensitivity::new(&self.half_steps() * &self.half_step())
    }

    /// The count that divides the sum, when it needs noise.
    pub fn count(&self) -> Count<R> {
        Count::new(self.contribution)
    }

    fn half_step(&self) -> Ratio {
        &self.bounds.step() * &Ratio::power_of_two(-1)
    }

    fn half_steps(&self) -> Ratio {
        // A width of w steps is 2w half steps; half of it is w.
        let width = u128::from(self.bounds.width());
        let each = R::pick(width, 2 * width);
        Ratio::from(each * u128::from(self.contribution.rows_max()))
    }

    /// Centres and adds up; what is no number is absent.
    pub fn aggregate(&self, rows: impl IntoIterator<Item = f64>) -> MeanParts {
        let twice_middle = i128::from(self.bounds.lower()) + i128::from(self.bounds.upper());
        let (mut centred, mut present, mut count) = (0_i128, 0_i64, 0_i64);
        for value in rows {
            count += 1;
            if let Some(steps) = self.bounds.fix(value) {
                centred += 2 * i128::from(steps) - twice_middle;
                present += 1;
            }
        }
        MeanParts { centred: Secret::new(centred), present: Secret::new(present), rows: Secret::new(count) }
    }

    /// Adds the noise and the error bars. `count_noise` is needed exactly when [`count_is_public`](Self::count_is_public) is
    /// false.
    pub fn release(
        &self,
        parts: MeanParts,
        sum_noise: &Noise,
        count_noise: Option<&Noise>,
        confidence: Confidence,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Estimate>> {
        if self.count_is_public() != count_noise.is_none() {
            return Err(Error::CountNoise { public: self.count_is_public() });
        }
        // Each of the two parts may miss with half the probability.
        let confidence = match count_noise {
            Some(_) => Confidence::new(0.5 + 0.5 * confidence.value())?,
            None => confidence,
        };
        let sum_noise = sum_noise.in_steps(&self.half_step())?;
        let half_steps = self.half_steps();
        let mechanism =
            Additive::<R>::new(&sum_noise, Sensitivity::new(half_steps.clone()), Sensitivity::new(half_steps));
        let sum_half_width = mechanism.half_width(confidence) as f64;
        let sum = mechanism.release(parts.centred, entropy)?;
        let quotient = Quotient { bounds: self.bounds, sum_half_width };
        let Some(count_noise) = count_noise else {
            // The number of rows is the same for all neighbours: it may leave without noise.
            let rows = parts.rows.expose() as f64;
            return Ok(sum.map(|sum| quotient.estimate(sum as f64, Estimate { answer: rows, low: rows, high: rows })));
        };
        let count = self.count().release(parts.present, count_noise, confidence, entropy)?;
        Ok(sum.and(count)?.map(|(sum, count)| quotient.estimate(sum as f64, count)))
    }
}

/// Post-processing: from a noisy sum and a count to a mean.
struct Quotient {
    bounds: Bounds,
    sum_half_width: f64,
}

impl Quotient {
    fn estimate(&self, sum: f64, count: Estimate) -> Estimate {
        let grid = self.bounds.grid();
        let [lower, upper] = [self.bounds.lower(), self.bounds.upper()].map(|steps| grid.value(i128::from(steps)));
        let half_step = 0.5 * grid.value(1);
        let mean = |sum: f64, count: f64| (lower + 0.5 * (upper - lower) + sum * half_step / count.max(1.0)).clamp(lower, upper);
        let (sum_low, sum_high) = (sum - self.sum_half_width, sum + self.sum_half_width);
        // A quotient with a positive divisor is extreme at the ends of both.
        let ends = [(sum_low, count.low), (sum_low, count.high), (sum_high, count.low), (sum_high, count.high)];
        let ends = ends.map(|(sum, count)| mean(sum, count));
        Estimate {
            answer: mean(sum, count.answer),
            low: ends.into_iter().fold(upper, f64::min),
            high: ends.into_iter().fold(lower, f64::max),
        }
    }
}
