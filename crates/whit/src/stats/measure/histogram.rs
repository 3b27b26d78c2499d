//! How many values fall in each of several bins.

use whit_core::{Confidence, Entropy, Event, Relation};
use whit_mechanism::{Bounds, Contribution, Estimate, Histogram, Noise, NoisyHistogram, Release};

use crate::Result;
use crate::stats::target::{Target, added};
use crate::stats::{AddedNoise, Bin, Part, Value};

pub(crate) struct Bins<R: Relation> {
    histogram: Histogram<R>,
    noise: Noise,
    noisy: NoisyHistogram<R>,
}

impl<R: Relation> Bins<R> {
    pub(super) fn new(
        bins: u32,
        target: &Target,
        contribution: Contribution,
        bounds: Bounds,
    ) -> Result<Self> {
        let histogram = Histogram::new(bounds, bins, contribution)?;
        let noise = target.noise(1, histogram.sensitivity_l1(), histogram.sensitivity_l2())?;
        let noise = target.sharpen(noise, |noise| Some(histogram.with_noise(noise).event()));
        Ok(Self {
            noisy: histogram.with_noise(&noise),
            histogram,
            noise,
        })
    }

    pub(super) fn event(&self) -> Event {
        self.noisy.event()
    }

    pub(super) fn noise(&self) -> Vec<AddedNoise> {
        vec![added(Part::Bin, &self.noise)]
    }

    pub(super) fn release(
        &self,
        values: impl Iterator<Item = f64>,
        confidence: Confidence,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Value>> {
        let counts = self.histogram.aggregate(values);
        let release = self.noisy.release(counts, confidence, entropy)?;
        let bin = |(index, estimate): (u32, Estimate)| {
            let (low, high) = self.histogram.edges(index);
            Bin {
                low,
                high,
                answer: estimate.answer,
                interval: [estimate.low, estimate.high],
            }
        };
        Ok(release.map(|estimates| Value::Histogram {
            bins: (0..).zip(estimates).map(bin).collect(),
        }))
    }
}
