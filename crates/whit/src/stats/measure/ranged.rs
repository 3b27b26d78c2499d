//! Statistics of numbers in bounds, which are all that `auto` can find bounds for.

use whit_core::{Confidence, Entropy, Event, Relation};
use whit_mechanism::{Bounds, Contribution, Release};

use super::histogram::Bins;
use super::mean::Mean;
use super::quantile::AtShares;
use super::sum::Sum;
use super::variance::{Root, Variance};
use crate::stats::target::Target;
use crate::stats::{AddedNoise, Share, Statistic, Value};
use crate::{Error, Result};

pub(crate) enum Ranged<R: Relation> {
    Sum(Sum<R>),
    Mean(Box<Mean<R>>),
    Variance(Box<Variance<R>>),
    Bins(Bins<R>),
    AtShares(AtShares<R>),
}

impl<R: Relation> Ranged<R> {
    pub(super) fn new(
        statistic: &Statistic,
        target: &Target,
        of: Contribution,
        bounds: Bounds,
    ) -> Result<Self> {
        let variance = |root| Variance::new(root, target, of, bounds).map(Box::new);
        Ok(match statistic {
            Statistic::Sum => Self::Sum(Sum::new(target, of, bounds)?),
            Statistic::Mean => Self::Mean(Box::new(Mean::new(target, of, bounds)?)),
            Statistic::Variance => Self::Variance(variance(Root::Variance)?),
            Statistic::Stddev => Self::Variance(variance(Root::StandardDeviation)?),
            Statistic::Histogram { bins } => Self::Bins(Bins::new(*bins, target, of, bounds)?),
            Statistic::Median => {
                let half = Share::new(0.5)?;
                Self::AtShares(AtShares::new(&[half], target, of, bounds)?)
            }
            Statistic::Quantile { q } => Self::AtShares(AtShares::new(q, target, of, bounds)?),
            other => {
                let statistic = other.word();
                return Err(Error::Unused {
                    statistic,
                    parameter: "range",
                });
            }
        })
    }

    pub(super) fn event(&self) -> Event {
        match self {
            Self::Sum(measure) => measure.event(),
            Self::Mean(measure) => measure.event(),
            Self::Variance(measure) => measure.event(),
            Self::Bins(measure) => measure.event(),
            Self::AtShares(measure) => measure.event(),
        }
    }

    pub(super) fn noise(&self) -> Vec<AddedNoise> {
        match self {
            Self::Sum(measure) => measure.noise(),
            Self::Mean(measure) => measure.noise(),
            Self::Variance(measure) => measure.noise(),
            Self::Bins(measure) => measure.noise(),
            // A choice adds no noise.
            Self::AtShares(_) => Vec::new(),
        }
    }

    pub(super) fn release(
        &self,
        values: impl Iterator<Item = f64>,
        confidence: Confidence,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Value>> {
        match self {
            Self::Sum(measure) => measure.release(values, confidence, entropy),
            Self::Mean(measure) => measure.release(values, confidence, entropy),
            Self::Variance(measure) => measure.release(values, confidence, entropy),
            Self::Bins(measure) => measure.release(values, confidence, entropy),
            Self::AtShares(measure) => measure.release(values, confidence, entropy),
        }
    }
}
