//! # Many trainings at once
//! One trial trains the same plan in several worlds side by side: the same steps as [`Trainer`](crate::train::Trainer) takes, from the same parts, with one
//! sample and one draw of noise for all worlds of the trial.
//!
//! **Claim.** The model of each world is, to the last bit, the one that a `Trainer` of its own would have made from the same entropy. So it has
//! the distribution of a real training. Models of one trial are *not* independent of each other; models of different trials are, if
//! their entropy is.
//! **Proof.** 1. *Samples.* Poisson coins are read row by row, so that a world with fewer rows gets the same coins for the rows that it has; and where everybody takes part
//! there are no coins. Other samplers are refused unless all worlds have as many rows. 2. *Sums* are those of [`ClippedSum`], for each world by itself. 3. *Noise* is what
//! the plan's [`Noise`] releases of the zero vector. The sampler adds a draw to each value that does not depend on it, but for the ends of
//! `i64`, where the sum saturates; so to add the draw of zero is to be given the release, as long as no draw alone is at these ends, which are
//! `2^24` deviations away. 4. *The optimizer* is the trainer's. A test compares the weights bit by bit. ∎
//!
//! **Why sharing is sound.** A bound on epsilon puts a lower bound on the probability of an event in one world beside an upper bound in the
//! other, each from the trials of that world alone, and joins them by the union bound, which asks for no independence between the two. What
//! must be independent are the trials of one world. So noise is drawn once and used in every world, which is most of the cost of a small model.

use std::num::NonZeroUsize;

use whit_core::{Bits, Entropy, Secret};

use super::world::World;
use crate::clip::Clip;
use crate::clipped_sum::{BatchRows, ClippedSum, Memory};
use crate::error::{Error, Result};
use crate::network::Network;
use crate::optimizer::Optimizer;
use crate::payment::{Payment, Uncharged};
use crate::plan::{Noise, Plan};
use crate::sampler::Batch;
use crate::train::Clipping;

/// What is added to sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noising {
    /// The plan's noise.
    Plan,
    /// Nothing, which is **not private**: to see what an attack finds where nothing is in its way.
    Nothing,
}

/// A plan, ready to be trained in many worlds.
pub struct LockStep<'a> {
    plan: &'a Plan,
    network: &'a Network,
    sum: ClippedSum,
    noise: Option<Noise>,
    optimizer: Optimizer,
    worlds: &'a [World<'a>],
    rows: usize,
}

impl<'a> LockStep<'a> {
    /// All that can be refused is refused here.
    pub fn new(
        plan: &'a Plan,
        network: &'a Network,
        worlds: &'a [World<'a>],
        (clipping, optimizer): (Clipping, Optimizer),
        noising: Noising,
    ) -> Result<Self> {
        if plan.adaptive()?.is_some() || plan.turns().is_some() {
            return Err(Error::Word {
                field: "sampler",
                given: "one whose noise or clip norm depends on steps before".into(),
                passes: "\"poisson\" and a clip norm that stays, which is what trainings in lock-step share",
            });
        }
        let clip = Clip::of(clipping, plan.clip_norm(), network.trained_layers())?;
        let sum = ClippedSum::new(network, clip, plan.grid(), plan.batch_cap())?;
        if sum.norm_upper() > plan.clip_norm() || sum.grid() != plan.grid() {
            return Err(Error::Unbound);
        }
        let rows = worlds.iter().map(World::rows).max().unwrap_or(0);
        let apart = matches!(plan.summary().sampler, "poisson" | "all");
        if !apart && worlds.iter().any(|world| world.rows() != rows) {
            return Err(Error::OtherNumberOfExamples {
                declared: rows as u64,
                relation: plan.relation(),
            });
        }
        Ok(Self {
            plan,
            network,
            sum,
            noise: match noising {
                Noising::Plan => Some(plan.noise()?),
                Noising::Nothing => None,
            },
            optimizer,
            worlds,
            rows,
        })
    }

    /// One trial: the weights of all worlds after the last step, from the same initial ones.
    pub fn train<E: Entropy>(&self, start: &[f32], entropy: &mut E) -> Result<Vec<Vec<f32>>> {
        let mut weights = vec![start.to_vec(); self.worlds.len()];
        self.watched(&mut weights, entropy, |_, _| ())?;
        Ok(weights)
    }

    /// The same, from weights of each world; `after` sees each step's weights of all worlds.
    pub fn watched<E: Entropy>(
        &self,
        weights: &mut [Vec<f32>],
        entropy: &mut E,
        mut after: impl FnMut(u64, &[Vec<f32>]),
    ) -> Result<()> {
        let payment = Payment::uncharged(self.plan, Uncharged);
        let mut sampler = self.plan.sampler(self.rows, payment)?;
        let mut optimizers = vec![self.optimizer.clone(); self.worlds.len()];
        let mut memory = Memory::default();
        let unit = self.sum.grid() / self.plan.expected_batch();
        let mut buffer = Vec::new();
        for step in 0..self.plan.steps() {
            let batch = sampler.draw(entropy)?;
            let rows = batch.expose().to_vec();
            let mut bits = entropy.open()?;
            let seeds: Vec<u64> = rows.iter().map(|_| bits.word()).collect();
            let noise = self.draw(batch, entropy)?;
            let each = self.worlds.iter().zip(&mut *weights).zip(&mut optimizers);
            for ((world, weights), optimizer) in each {
                // Where worlds differ in rows, a sample is in order.
                let own = rows.partition_point(|&row| (row as usize) < world.rows());
                let own = if world.rows() == self.rows {
                    rows.len()
                } else {
                    own
                };
                let rows = BatchRows {
                    examples: world,
                    rows: &rows[..own],
                    seeds: &seeds[..own],
                };
                let taken = std::mem::take(&mut buffer);
                let summed = self
                    .sum
                    .sum(self.network, weights, rows, 1, &mut memory, taken)?;
                let mut sum = summed.sum.expose();
                if let Some(noise) = &noise {
                    let each = sum.iter_mut().zip(noise);
                    each.for_each(|(sum, noise)| *sum = sum.saturating_add(*noise));
                }
                optimizer.step_on(NonZeroUsize::MIN, weights, &sum, unit)?;
                buffer = sum;
            }
            after(step, weights);
        }
        Ok(())
    }

    /// The noise of a step, which uses its batch up.
    fn draw<E: Entropy>(&self, batch: Batch, entropy: &mut E) -> Result<Option<Vec<i64>>> {
        let Some(noise) = &self.noise else {
            return Ok(None);
        };
        let zero = Secret::new(vec![0; self.network.param_len()]);
        Ok(Some(noise.release(batch, zero, entropy)?.into_value()))
    }
}

#[cfg(test)]
#[path = "lock_step_test.rs"]
mod tests;
