//! One quantile, or several at once.

use whit_core::{Confidence, Entropy, Event, Linf, Ratio, Relation, Sensitivity};
use whit_mechanism::{Bounds, Contribution, Quantile, Quantiles, Release};

use crate::stats::target::Target;
use crate::stats::{QuantileAnswer, Share, Value};
use crate::{Error, Result};

pub(crate) struct AtShares<R: Relation> {
    shares: Vec<Share>,
    chosen: Chosen<R>,
}

enum Chosen<R: Relation> {
    One(Box<Quantile<R>>),
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
            Chosen::Many(quantiles) => quantiles.event(),
        }
    }

    pub(super) fn release(
        &self,
        values: impl Iterator<Item = f64>,
        confidence: Confidence,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Value>> {
        Ok(match &self.chosen {
            Chosen::One(quantile) => {
                let release = quantile.release(quantile.aggregate(values), entropy)?;
                release.map(|answer| Value::Quantile {
                    answer,
                    low: None,
                    high: None,
                    rank_error: quantile.rank_error(confidence),
                })
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
