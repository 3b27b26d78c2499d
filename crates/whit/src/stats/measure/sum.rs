//! The sum of values in bounds.

use whit_core::{Confidence, Entropy, Event, Relation};
use whit_mechanism::{BoundedSum, Bounds, Contribution, Noise, NoisySum, Release};

use super::single;
use crate::Result;
use crate::stats::target::{Target, added, own_words};
use crate::stats::{AddedNoise, Part, Value};

pub(crate) struct Sum<R: Relation> {
    sum: BoundedSum<R>,
    noise: Noise,
    noisy: NoisySum<R>,
}

impl<R: Relation> Sum<R> {
    pub(super) fn new(target: &Target, contribution: Contribution, bounds: Bounds) -> Result<Self> {
        let sum = BoundedSum::new(bounds, contribution);
        let noise = target.noise(1, sum.sensitivity_l1(), sum.sensitivity_l2())?;
        let noise = target.sharpen(noise, |noise| Some(sum.with_noise(noise).ok()?.event()));
        Ok(Self {
            noisy: sum.with_noise(&noise).map_err(own_words)?,
            sum,
            noise,
        })
    }

    pub(super) fn event(&self) -> Event {
        self.noisy.event()
    }

    pub(super) fn noise(&self) -> Vec<AddedNoise> {
        vec![added(Part::Sum, &self.noise)]
    }

    pub(super) fn release(
        &self,
        values: impl Iterator<Item = f64>,
        confidence: Confidence,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Value>> {
        let sum = self.sum.aggregate(values);
        Ok(self.noisy.release(sum, confidence, entropy)?.map(single))
    }
}
