//! One quantile, or several at once.

use whit_core::{Confidence, Entropy, Event, Linf, Ratio, Relation, Sensitivity};
use whit_mechanism::{Bounds, Contribution, GridQuantile, Quantile, Quantiles, Release};

use crate::stats::target::Target;
use crate::stats::{NoiseKind, QuantileAnswer, Share, Value};
use crate::{Error, Result};

pub(crate) struct AtShares<R: Relation> {
    shares: Vec<Share>,
    chosen: Chosen<R>,
}

enum Chosen<R: Relation> {
    One(Box<Quantile<R>>),
    OneOfFew(Box<GridQuantile<R>>),
    Many(Quantiles<R>),
}

/// More shares than this are a histogram.
const SHARES_MAX: usize = 1000;

impl<R: Relation> AtShares<R> {
    pub(super) fn new(
        shares: &[Share],
        target: &Target,
        contribution: Contribution,
        bounds: Bounds,
    ) -> Result<Self> {
        let growing = shares.windows(2).all(|pair| pair[0] < pair[1]);
        if !(1..=SHARES_MAX).contains(&shares.len()) || !growing {
            return Err(Error::SharesNotGrowing { max: SHARES_MAX });
        }
        // The levels of a binary search are paid for one by one, and no rank moves by more than all rows of a unit.
        let levels = shares.len().ilog2() + 1;
        let rows_max = Ratio::from(u64::from(contribution.rows_max()));
        target.check_choice(levels, &Sensitivity::<Linf, R>::new(rows_max))?;
        let epsilon = target.epsilon_in(levels)?;
        let probabilities: Vec<_> = shares.iter().map(|share| share.probability()).collect();
        let chosen = match probabilities.as_slice() {
            [share] if target.mechanism == NoiseKind::PermuteAndFlip => {
                let quantile = GridQuantile::new(share, bounds, contribution, epsilon)?;
                Chosen::OneOfFew(Box::new(quantile))
            }
            [share] => Chosen::One(Box::new(Quantile::new(
                share.clone(),
                bounds,
                contribution,
                epsilon,
            ))),
            shares => Chosen::Many(Quantiles::new(shares, bounds, contribution, epsilon)?),
        };
        Ok(Self {
            shares: shares.to_vec(),
            chosen,
        })
    }

    pub(super) fn event(&self) -> Event {
        match &self.chosen {
            Chosen::One(quantile) => quantile.event(),
            Chosen::OneOfFew(quantile) => quantile.event(),
            Chosen::Many(quantiles) => quantiles.event(),
        }
    }

    pub(super) fn release(
        &self,
        values: impl Iterator<Item = f64>,
        confidence: Confidence,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Value>> {
        let one = |answer, rank_error| Value::Quantile {
            answer,
            low: None,
            high: None,
            rank_error,
        };
        Ok(match &self.chosen {
            Chosen::One(quantile) => {
                let release = quantile.release(quantile.aggregate(values), entropy)?;
                release.map(|answer| one(answer, quantile.rank_error(confidence)))
            }
            Chosen::OneOfFew(quantile) => {
                let release = quantile.release(quantile.aggregate(values), entropy)?;
                release.map(|answer| one(answer, quantile.rank_error(confidence)))
            }
            Chosen::Many(quantiles) => {
                let release = quantiles.release(quantiles.aggregate(values), entropy)?;
                let named = |(share, answer): (&Share, f64)| QuantileAnswer {
                    q: share.value(),
                    answer,
                };
                release.map(|answers| Value::Quantiles {
                    quantiles: self.shares.iter().zip(answers).map(named).collect(),
                    rank_error: quantiles.rank_error(confidence),
                })
            }
        })
    }
}
