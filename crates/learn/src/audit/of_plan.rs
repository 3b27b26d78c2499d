//! # An audit of somebody's plan
//! Two attacks on the plan of a training run. Both end in bounds that assume nothing about distributions, so that a claim which they exceed is false.
//!
//! - *White-box canary*: the plan's own sampler, clip, grid and noise, with canaries instead of the data. It needs no data, and doubts what the price rests on.
//! - *ClipBKD*: the plan's own network, optimizer and data, poisoned, trained many times; an adversary who sees the final model alone. It doubts the trainer as a whole.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use whit_audit::{Alpha, EpsilonBound, Group};
use whit_core::{Delta, Entropy, Epsilon, Neighbours};
use whit_mechanism::crew;

use super::bound::{Trials, best_half_line, corrected};
use super::canary::Canaries;
use super::lock_step::{LockStep, Noising};
use super::world::{Point, World};
use super::{clip_bkd, scores};
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::network::Network;
use crate::plan::Plan;
use crate::recipe::Recipe;

/// Canaries that are tried side by side.
const SIDE_BY_SIDE: usize = 256;
/// Passes, batch and learning rate of the model that the poisoned class is chosen by.
const PRETRAINING: (usize, usize, f32) = (5, 100, 0.1);

/// What a plan claims, to be compared with what is measured.
pub fn claimed(plan: &Plan) -> Result<Epsilon> {
    Ok(Epsilon::new(plan.epsilon().upper())?)
}

fn slack(plan: &Plan) -> Result<Delta> {
    Ok(Delta::new(plan.delta().value())?)
}

/// What a white-box canary finds in so many trials of each world, half of which choose the event.
pub fn white_box<E: Entropy>(
    plan: &Plan,
    trials: usize,
    alpha: Alpha,
    entropy: &mut E,
) -> Result<EpsilonBound> {
    let canaries = Canaries::new(plan, SIDE_BY_SIDE)?;
    let (shown, held) = canaries.worlds(trials, entropy)?.split();
    let event = best_half_line(&shown, slack(plan)?, alpha)?;
    Ok(held
        .count(&event)
        .epsilon_lower(slack(plan)?, Group::ONE, alpha)?)
}

/// How ClipBKD is tried.
#[derive(Clone, Debug)]
pub struct ClipBkd {
    /// How many copies of the poisoned point there are, one after the other; each gets its share of what may go wrong.
    pub groups: Vec<u32>,
    /// Trainings of each world, half of which choose the threshold.
    pub trials: usize,
    /// How many trainings run at once.
    pub threads: NonZeroUsize,
}

impl ClipBkd {
    /// What it finds. `entropy` opens the entropy of a trial, and `after` is told after each how many trainings it was.
    pub fn run<E: Entropy>(
        &self,
        (recipe, plan): (&Recipe, &Plan),
        data: Dataset,
        alpha: Alpha,
        entropy: impl Fn() -> E + Sync,
        after: impl Fn(usize) + Sync,
    ) -> Result<EpsilonBound> {
        let most = self.groups.iter().copied().max().unwrap_or(0);
        let rows = u32::try_from(data.rows()).unwrap_or(u32::MAX);
        if most == 0 || rows < most || data.classes().is_none() {
            return Err(Error::OutOfRange {
                what: "the number of poisoned examples",
                given: f64::from(most),
                range: "at least 1 and at most the number of examples, of data with classes",
            });
        }
        let (architecture, loss) = recipe.architecture(data.shape(), data.classes())?;
        let network = Network::from_specs(architecture.layers(), loss)?;
        let data = recipe.prepared(data, self.threads)?;
        let start = recipe.initial(&architecture);
        let pretrained = clip_bkd::pretrain(&data, &network, &start, PRETRAINING)?;
        let point = clip_bkd::point(&data, clip_bkd::NORM, (&network, &pretrained))?;
        let last: Vec<u32> = (0..rows).rev().take(most as usize).collect();
        let copies = vec![point.clone(); most as usize];
        let poisoned = |k: u32| match plan.relation() {
            Neighbours::AddRemove => World::adding(&data, &copies[..k as usize]),
            _ => World::replacing(&data, &last[..k as usize], &point),
        };
        let poisoned = self.groups.iter().map(|&k| poisoned(k));
        let worlds: Vec<World> = std::iter::once(World::of(&data)).chain(poisoned).collect();
        let method = recipe.method(network.param_len(), NonZeroUsize::MIN)?;
        let method = (method.clipping, method.optimizer);
        let lock_step = LockStep::new(plan, &network, &worlds, method, Noising::Plan)?;
        let found = self.scores(&lock_step, (&network, &start, &point), entropy, after)?;
        let [without, with @ ..] = &found[..] else {
            return Err(Error::Unbound);
        };
        let trials = self.groups.iter().zip(with).map(|(&k, with)| {
            Ok(Trials {
                without,
                with,
                choosing: self.trials / 2,
                group: Group::new(k)?,
                delta: slack(plan)?,
            })
        });
        corrected(&trials.collect::<Result<Vec<_>>>()?, alpha)
    }

    /// The scores of each world, trial by trial.
    fn scores<E: Entropy>(
        &self,
        lock_step: &LockStep,
        (network, start, point): (&Network, &[f32], &Point),
        entropy: impl Fn() -> E + Sync,
        after: impl Fn(usize) + Sync,
    ) -> Result<Vec<Vec<f64>>> {
        let trial = || -> Result<Vec<f64>> {
            let models = lock_step.train(start, &mut entropy())?;
            let score = |weights: &Vec<f32>| scores::clip_bkd(network, weights, point);
            models.iter().map(score).collect()
        };
        let all = Mutex::new(Ok(vec![Vec::new(); self.groups.len() + 1]));
        let lock = || all.lock().unwrap_or_else(PoisonError::into_inner);
        crew::each(self.threads.get(), 0..self.trials, |_| {
            if lock().is_err() {
                return;
            }
            let found = trial();
            let mut all = lock();
            match (&mut *all, found) {
                (Ok(worlds), Ok(found)) => {
                    let each = worlds.iter_mut().zip(found);
                    each.for_each(|(world, score)| world.push(score));
                }
                (Ok(_), Err(error)) => *all = Err(error),
                (Err(_), _) => {}
            }
            drop(all);
            after(self.groups.len() + 1);
        });
        all.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "of_plan_test.rs"]
mod tests;
