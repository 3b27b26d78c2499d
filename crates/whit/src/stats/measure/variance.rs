//! The variance of values in bounds, or its root: two sums and, unless it is public, a count, for equal parts of the budget.

use whit_core::{Confidence, Entropy, Event, Ratio, Relation, Scale};
use whit_mechanism::{
    BoundedVariance, Bounds, Contribution, Noise, NoisyVariance, Release, VarianceNoise,
    standard_deviation,
};

use super::single;
use crate::Result;
use crate::stats::target::{Target, added, own_words};
use crate::stats::{AddedNoise, Part, Value};

pub(crate) struct Variance<R: Relation> {
    variance: BoundedVariance<R>,
    root: Root,
    noise: VarianceNoise,
    noisy: NoisyVariance<R>,
}

/// Which of the two.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Root {
    Variance,
    StandardDeviation,
}

/// A share of all noise.
fn lowered(noise: &VarianceNoise, share: &Ratio) -> Option<VarianceNoise> {
    let lower = |noise: &Noise| {
        let scale = |scale: &Scale| Scale::new(scale.ratio() * share).ok();
        Some(match noise {
            Noise::Laplace(full) => Noise::Laplace(scale(full)?),
            Noise::Gaussian(full) => Noise::Gaussian(scale(full)?),
        })
    };
    let count = match &noise.count {
        Some(noise) => Some(lower(noise)?),
        None => None,
    };
    Some(VarianceNoise {
        sum: lower(&noise.sum)?,
        squares: lower(&noise.squares)?,
        count,
    })
}

impl<R: Relation> Variance<R> {
    pub(super) fn new(
        root: Root,
        target: &Target,
        contribution: Contribution,
        bounds: Bounds,
    ) -> Result<Self> {
        let variance = BoundedVariance::new(bounds, contribution);
        let parts = if variance.count_is_public() { 2 } else { 3 };
        let (sum_l1, sum_l2) = (variance.sum_sensitivity_l1(), variance.sum_sensitivity_l2());
        let (square_l1, square_l2) = (
            variance.square_sensitivity_l1(),
            variance.square_sensitivity_l2(),
        );
        let count = variance.count();
        let count_noise = if variance.count_is_public() {
            None
        } else {
            Some(target.noise(parts, count.sensitivity_l1(), count.sensitivity_l2())?)
        };
        let noise = VarianceNoise {
            sum: target.noise(parts, sum_l1, sum_l2)?,
            squares: target.noise(parts, square_l1, square_l2)?,
            count: count_noise,
        };
        let share = target.share(|share| {
            let less = lowered(&noise, share)?;
            Some(variance.with_noise(&less).ok()?.event())
        });
        let noise = lowered(&noise, &share).unwrap_or(noise);
        Ok(Self {
            noisy: variance.with_noise(&noise).map_err(own_words)?,
            variance,
            root,
            noise,
        })
    }

    pub(super) fn event(&self) -> Event {
        self.noisy.event()
    }

    pub(super) fn noise(&self) -> Vec<AddedNoise> {
        let sum = added(Part::Sum, &self.noise.sum);
        let squares = added(Part::Squares, &self.noise.squares);
        let count = self.noise.count.as_ref();
        let count = count.map(|noise| added(Part::Count, noise));
        [sum, squares].into_iter().chain(count).collect()
    }

    pub(super) fn release(
        &self,
        values: impl Iterator<Item = f64>,
        confidence: Confidence,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Value>> {
        let parts = self.variance.aggregate(values);
        let release = self.noisy.release(parts, confidence, entropy)?;
        Ok(release.map(|variance| match self.root {
            Root::Variance => single(variance),
            Root::StandardDeviation => single(standard_deviation(variance)),
        }))
    }
}
