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
    /// For sums that are clipped to the norm of the first step (an adaptive one moves). Made once: its constants take as long as thousands of draws.
    of_first: Box<Gaussian>,
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
        let (relation, norms_apart) = (parts.relation, parts.norms_apart());
        // Whatever could be refused is refused here, and not in a step.
        let of_first = Gaussian::of_sum(multiplier, &parts.clip, &norms_apart, relation)?;
        Ok(Self {
            run,
            multiplier,
            of_first: Box::new(of_first),
            relation,
            norms_apart,
            count,
        })
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
        self.of_first.release(sum, entropy)
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
        self.of_first.release_on(threads, sum, entropy)
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
        let of_sum = Gaussian::of_sum(self.multiplier, &clip, &self.norms_apart, self.relation)?;
        let scale = Scale::new(count.clone())?;
        let of_count = Gaussian::new(scale, self.norms_apart.clone(), self.relation);
        Ok(Both {
            sum: of_sum.release_on(threads, sum, entropy)?,
            count: of_count.release_on(NonZeroUsize::MIN, Secret::new(signs), entropy)?,
        })
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

/// The mechanism, for one of the two relations.
enum Gaussian {
    AddRemove(RoundedGaussian<AddRemove>),
    ReplaceOne(RoundedGaussian<ReplaceOne>),
}

impl Gaussian {
    fn new(scale: Scale, distance: Ratio, relation: Neighbours) -> Self {
        fn of<R: Relation>(scale: Scale, distance: Ratio) -> RoundedGaussian<R> {
            RoundedGaussian::new(scale, Sensitivity::<L2, R>::new(distance))
        }
        match relation {
            Neighbours::AddRemove => Self::AddRemove(of(scale, distance)),
            // There are no others: the accountant has refused them.
            _ => Self::ReplaceOne(of(scale, distance)),
        }
    }

    /// For sums that are clipped to this norm, in units of its grid.
    fn of_sum(
        multiplier: f64,
        clip: &ClipUnits,
        norms_apart: &Ratio,
        relation: Neighbours,
    ) -> Result<Self> {
        let scale = scale(multiplier, clip)?;
        Ok(Self::new(scale, norms_apart * &clip.units, relation))
    }

    fn release(
        &self,
        sum: Secret<Vec<i64>>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Vec<i64>>> {
        Ok(match self {
            Self::AddRemove(noise) => noise.release(sum, entropy),
            Self::ReplaceOne(noise) => noise.release(sum, entropy),
        }?)
    }

    fn release_on<E: Entropy<Bits: Send>>(
        &self,
        threads: NonZeroUsize,
        sum: Secret<Vec<i64>>,
        entropy: &mut E,
    ) -> Result<Release<Vec<i64>>> {
        Ok(match self {
            Self::AddRemove(noise) => noise.release_on(threads, sum, entropy),
            Self::ReplaceOne(noise) => noise.release_on(threads, sum, entropy),
        }?)
    }
}
