//! The mean of values in bounds: noise on the sums of the distances from both ends, or on one where the count is public.

use whit_core::{Confidence, Entropy, Event, Relation};
use whit_mechanism::{BoundedMean, Bounds, Contribution, Noise, NoisyMean, Release};

use super::single;
use crate::Result;
use crate::stats::target::{Target, added, own_words};
use crate::stats::{AddedNoise, Part, Value};

pub(crate) struct Mean<R: Relation> {
    mean: BoundedMean<R>,
    noise: Noise,
    noisy: NoisyMean<R>,
}

impl<R: Relation> Mean<R> {
    pub(super) fn new(target: &Target, contribution: Contribution, bounds: Bounds) -> Result<Self> {
        let mean = BoundedMean::new(bounds, contribution);
        let noise = target.noise(1, mean.sensitivity_l1(), mean.sensitivity_l2())?;
        let noise = target.sharpen(noise, |noise| Some(mean.with_noise(noise).ok()?.event()));
        let noisy = mean.with_noise(&noise).map_err(own_words)?;
        Ok(Self { mean, noise, noisy })
    }

    pub(super) fn event(&self) -> Event {
        self.noisy.event()
    }

    pub(super) fn noise(&self) -> Vec<AddedNoise> {
        let to = if self.mean.count_is_public() {
            Part::Sum
        } else {
            Part::Ends
        };
        vec![added(to, &self.noise)]
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
