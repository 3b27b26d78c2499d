//! The noise of a plan's steps.

use std::num::NonZeroUsize;

use whit_core::Sensitivity;
use whit_core::{AddRemove, Entropy, L2, Neighbours, Ratio, Relation, ReplaceOne, Scale, Secret};
use whit_mechanism::{Release, RoundedGaussian};

use super::adaptive::Pair;
use super::parts::{ClipUnits, Parts, scale};
use crate::error::{Error, Result};
use crate::sampler::{Batch, Fingerprint};

/// Adds the noise of one step. Made by its plan alone; each release uses up a batch of the same plan, and a sampler draws as many of these as
/// steps were paid for.
pub struct Noise {
    run: Fingerprint,
    /// The noise of the sum, over the clip norm.
    multiplier: f64,
    /// Of the first step; an adaptive clip moves.
    clip: ClipUnits,
    relation: Neighbours,
    norms_apart: Ratio,
    /// `z_s`, where numbers below the clip norm are released, too.
    count: Option<Ratio>,
}

/// What an adaptive step releases.
pub struct Both {
    /// The sum, in units of the grid that goes with the norm.
    pub sum: Release<Vec<i64>>,
    /// Twice the number below the norm, less the size of the batch.
    pub count: Release<Vec<i64>>,
}

impl Noise {
    pub(super) fn new(parts: &Parts, multiplier: f64, run: Fingerprint) -> Result<Self> {
        let pair = parts.adaptive.as_ref().map(|both| both.pair(multiplier));
        let (multiplier, count) = match pair.transpose()? {
            Some(Pair { sum, count }) => (sum, Some(count)),
            None => (multiplier, None),
        };
        let noise = Self {
            run,
            multiplier,
            clip: parts.clip.clone(),
            relation: parts.relation,
            norms_apart: parts.norms_apart(),
            count,
        };
        // Whatever could be refused is refused here, and not in a step.
        scale(noise.multiplier, &noise.clip)?;
        Ok(noise)
    }

    /// Spends one step of the plan: the sum of this batch, in units of the grid. Refused for a batch of another plan, whose event says
    /// nothing about this noise, and where the clip norm moves.
    pub fn release(
        &self,
        batch: Batch,
        sum: Secret<Vec<i64>>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Vec<i64>>> {
        self.check(batch, None)?;
        let (scale, distance) = self.of_sum(&self.clip)?;
        Ok(match self.relation {
            Neighbours::AddRemove => gaussian::<AddRemove>(scale, distance).release(sum, entropy),
            // There are no others: the accountant has refused them.
            _ => gaussian::<ReplaceOne>(scale, distance).release(sum, entropy),
        }?)
    }

    /// The same on several threads.
    pub fn release_on<E: Entropy<Bits: Send>>(
        &self,
        threads: NonZeroUsize,
        batch: Batch,
        sum: Secret<Vec<i64>>,
        entropy: &mut E,
    ) -> Result<Release<Vec<i64>>> {
        self.check(batch, None)?;
        self.add(threads, self.of_sum(&self.clip)?, sum, entropy)
    }

    /// Spends one step of a plan whose clip norm moves: the sum of gradients that were clipped to `norm`, on the grid that
    /// [goes with it](super::Plan::grid_of), and the number of them that were below it, each of the batch.
    pub fn release_both<E: Entropy<Bits: Send>>(
        &self,
        threads: NonZeroUsize,
        batch: Batch,
        norm: f64,
        (sum, below): (Secret<Vec<i64>>, Secret<i64>),
        entropy: &mut E,
    ) -> Result<Both> {
        let examples = batch.expose().len() as i64;
        self.check(batch, self.count.as_ref())?;
        let count = self.count.as_ref().ok_or(Error::Unbound)?;
        let clip = ClipUnits::new(norm)?;
        let signs = vec![2 * below.expose() - examples];
        let of_count = (Scale::new(count.clone())?, self.norms_apart.clone());
        Ok(Both {
            sum: self.add(threads, self.of_sum(&clip)?, sum, entropy)?,
            count: self.add(NonZeroUsize::MIN, of_count, Secret::new(signs), entropy)?,
        })
    }

    /// Scale and distance of sums that are clipped to this norm, in units of its grid.
    fn of_sum(&self, clip: &ClipUnits) -> Result<(Scale, Ratio)> {
        let scale = scale(self.multiplier, clip)?;
        Ok((scale, &self.norms_apart * &clip.units))
    }

    fn add<E: Entropy<Bits: Send>>(
        &self,
        threads: NonZeroUsize,
        (scale, distance): (Scale, Ratio),
        sum: Secret<Vec<i64>>,
        entropy: &mut E,
    ) -> Result<Release<Vec<i64>>> {
        Ok(match self.relation {
            Neighbours::AddRemove => {
                gaussian::<AddRemove>(scale, distance).release_on(threads, sum, entropy)
            }
            _ => gaussian::<ReplaceOne>(scale, distance).release_on(threads, sum, entropy),
        }?)
    }

    /// Uses up the batch. What is compared is public: both are events.
    fn check(&self, batch: Batch, count: Option<&Ratio>) -> Result<()> {
        if *batch.run() != self.run {
            return Err(Error::OtherPlan);
        }
        if self.count.as_ref() != count {
            return Err(Error::Unbound);
        }
        Ok(())
    }
}

fn gaussian<R: Relation>(scale: Scale, distance: Ratio) -> RoundedGaussian<R> {
    RoundedGaussian::new(scale, Sensitivity::<L2, R>::new(distance))
}
