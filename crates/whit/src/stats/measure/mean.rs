//! The mean of values in bounds: a sum and, unless it is public, a count, for half of the budget each.

use whit_core::{Confidence, Entropy, Event, Relation};
use whit_mechanism::{BoundedMean, Bounds, Contribution, Noise, NoisyMean, Release};

use super::single;
use crate::Result;
use crate::stats::target::{Target, added, own_words};
use crate::stats::{AddedNoise, Part, Value};

pub(crate) struct Mean<R: Relation> {
    mean: BoundedMean<R>,
    sum_noise: Noise,
    count_noise: Option<Noise>,
    noisy: NoisyMean<R>,
}

impl<R: Relation> Mean<R> {
    pub(super) fn new(target: &Target, contribution: Contribution, bounds: Bounds) -> Result<Self> {
        let mean = BoundedMean::new(bounds, contribution);
        let parts = if mean.count_is_public() { 1 } else { 2 };
        let (l1, l2) = (mean.sum_sensitivity_l1(), mean.sum_sensitivity_l2());
        let sum_noise = target.noise(parts, l1, l2)?;
        let count_noise = if mean.count_is_public() {
            None
        } else {
            let count = mean.count();
            Some(target.noise(parts, count.sensitivity_l1(), count.sensitivity_l2())?)
        };
        let noisy = mean
            .with_noise(&sum_noise, count_noise.as_ref())
            .map_err(own_words)?;
        Ok(Self {
            mean,
            sum_noise,
            count_noise,
            noisy,
        })
    }

    pub(super) fn event(&self) -> Event {
        self.noisy.event()
    }

    pub(super) fn noise(&self) -> Vec<AddedNoise> {
        let sum = added(Part::Sum, &self.sum_noise);
        let count = self.count_noise.as_ref();
        let count = count.map(|noise| added(Part::Count, noise));
        [sum].into_iter().chain(count).collect()
    }

    pub(super) fn release(
        &self,
        values: impl Iterator<Item = f64>,
        confidence: Confidence,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Value>> {
        let parts = self.mean.aggregate(values);
        Ok(self.noisy.release(parts, confidence, entropy)?.map(single))
    }
}
