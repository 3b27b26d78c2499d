//! A search for the range of a column of which nothing is known.
//!
//! Values are counted in public bins that double: up to `2^-20` (about a millionth), up to `2^-19`, and so on up to `2^35` (34
//! billion), and as many negative ones. What is larger counts in the last bin. The range goes from the first to the last bin
//! whose noisy count is above a threshold that, if all bins were empty, none would pass with probability `1 - 10^-6`; if none
//! does, less sure thresholds are tried, down to 99%. The largest searched range squared, times the rows of a unit over
//! epsilon, is still a noise scale (below `2^96`); that is why there are not more bins.

use whit_core::{Confidence, Entropy, Event, Relation};
use whit_mechanism::{
    ApproximateBounds, Bounds, Contribution, FoundRange, LogBins, Noise, NoisyApproximateBounds,
    Release, Success, Threshold,
};

use crate::Result;
use crate::stats::target::{Target, added};
use crate::stats::{AddedNoise, Ends, Part, Value};

/// The upper end of the first bin.
const FIRST_EDGE: f64 = 1.0 / 1_048_576.0;
/// How many bins there are on each side of zero.
const BINS_PER_SIDE: u32 = 56;
/// How sure to be that no empty bin passes, at first …
const SUCCESS_FIRST: f64 = 1.0 - 1e-6;
/// … and at the least.
const SUCCESS_LAST: f64 = 0.99;

pub(crate) struct Search<R: Relation> {
    bins: LogBins,
    bounds: ApproximateBounds<R>,
    noise: Noise,
    noisy: NoisyApproximateBounds<R>,
}

impl<R: Relation> Search<R> {
    pub(super) fn new(target: &Target, contribution: Contribution) -> Result<Self> {
        let bins = LogBins::new(FIRST_EDGE, BINS_PER_SIDE)?;
        let bounds = ApproximateBounds::new(bins.clone(), contribution);
        let noise = laplace(target, &bounds)?;
        let (Noise::Laplace(scale) | Noise::Gaussian(scale)) = &noise;
        let success = Success::exactly(Confidence::new(SUCCESS_FIRST)?)
            .relaxed_to(Confidence::new(SUCCESS_LAST)?);
        Ok(Self {
            noisy: bounds.with_noise(scale.clone(), Threshold::Discrete, success),
            bins,
            bounds,
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
        entropy: &mut impl Entropy,
    ) -> Result<Release<Option<FoundRange>>> {
        Ok(self.noisy.release(self.bounds.aggregate(values), entropy)?)
    }

    /// The narrowest, the widest and the furthest ranges that can be found: what works for these works for all.
    pub(super) fn extremes(&self) -> Result<Vec<Bounds>> {
        let last = self.bins.total() as usize - 1;
        let middle = self.bins.total() as usize / 2;
        let single = [0, middle - 1, middle, last].map(|bin| self.bins.ends(bin));
        let whole = (self.bins.ends(0).0, self.bins.ends(last).1);
        let ranges = single.into_iter().chain([whole]);
        Ok(ranges
            .map(|(lower, upper)| Bounds::new(lower, upper))
            .collect::<whit_mechanism::Result<_>>()?)
    }
}

#[cfg(test)]
impl<R: Relation> Search<R> {
    /// All ranges that can be found.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (f64, f64)> {
        let total = self.bins.total() as usize;
        let from = move |first| (first..total).map(move |last| (first, last));
        let pairs = (0..total).flat_map(from);
        pairs.map(|(first, last)| (self.bins.ends(first).0, self.bins.ends(last).1))
    }
}

/// The noise of a search is Laplace noise, whatever the statistic's is: the mechanism knows no other.
fn laplace<R: Relation>(target: &Target, bounds: &ApproximateBounds<R>) -> Result<Noise> {
    let l1 = bounds.sensitivity_l1();
    // Not looked at: in L2 a vector is no longer than in L1.
    let l2 = whit_core::Sensitivity::new(l1.bound().clone());
    target.noise(1, l1, l2)
}

/// Post-processing: names what was found.
pub(super) fn value(found: Option<FoundRange>) -> Value {
    match found {
        Some(FoundRange { lower, upper, .. }) => Value::Bounds {
            answer: Ends {
                low: lower,
                high: upper,
            },
        },
        None => Value::no_bounds(),
    }
}
