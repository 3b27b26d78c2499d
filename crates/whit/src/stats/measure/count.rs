//! How many rows there are, or how many have something in a column.

use std::io::Read;

use whit_core::{Confidence, Entropy, Event, Relation};
use whit_mechanism::{Contribution, Count, Noise, NoisyCount, Release};

use super::single;
use crate::Result;
use crate::stats::input::Input;
use crate::stats::target::{Target, added};
use crate::stats::{AddedNoise, Part, Value};

pub(crate) struct Rows<R: Relation> {
    count: Count<R>,
    noise: Noise,
    noisy: NoisyCount<R>,
}

impl<R: Relation> Rows<R> {
    pub(super) fn new(target: &Target, contribution: Contribution) -> Result<Self> {
        let count = Count::new(contribution);
        let noise = target.noise(1, count.sensitivity_l1(), count.sensitivity_l2())?;
        let noise = target.sharpen(noise, |noise| Some(count.with_noise(noise).event()));
        Ok(Self {
            noisy: count.with_noise(&noise),
            count,
            noise,
        })
    }

    pub(super) fn event(&self) -> Event {
        self.noisy.event()
    }

    pub(super) fn noise(&self) -> Vec<AddedNoise> {
        vec![added(Part::Count, &self.noise)]
    }

    pub(super) fn release(
        &self,
        input: &mut Input<impl Read>,
        confidence: Confidence,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Value>> {
        let counts = input.bounded(|row, columns| match columns.first() {
            Some(&column) => !row.cell(column).is_empty(),
            None => true,
        });
        let rows = counts.filter(|&counts| counts).count();
        let rows = self.count.aggregate(rows as u64);
        Ok(self.noisy.release(rows, confidence, entropy)?.map(single))
    }
}
