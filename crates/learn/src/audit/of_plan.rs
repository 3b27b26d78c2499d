//! # An audit of somebody's plan
//! Two attacks on the plan of a training run. Both end in bounds that assume nothing about distributions, so that a claim which they exceed is false.
//!
//! - *White-box canary*: the plan's own sampler, clip, grid and noise, with canaries instead of the data. It needs no data, and doubts what the price rests on.
//! - *ClipBKD*: the plan's own network, optimizer and data, poisoned, trained many times; an adversary who sees the final model alone. It doubts the trainer as a whole.

use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

use whit_audit::{Alpha, Claim, EpsilonBound, Group, Outputs};
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

/// Trials of a canary in each world, where they are cheap.
const TRIALS: usize = 200_000;
/// About a minute of one core, in examples and draws of noise.
const WORK: f64 = 1e9;
/// About a day of one core.
const WORK_MAX: f64 = 1e12;
/// Passes, batch and learning rate of the model that the poisoned class is chosen by.
const PRETRAINING: (usize, usize, f32) = (5, 100, 0.1);

/// What a plan claims, to be compared with what is measured.
pub fn claimed(plan: &Plan) -> Result<Claim> {
    Ok(Claim {
        epsilon: Epsilon::new(plan.epsilon().upper())?,
        delta: slack(plan)?,
    })
}

fn slack(plan: &Plan) -> Result<Delta> {
    Ok(Delta::new(plan.delta().value())?)
}

/// How many trials of each world take so much work.
fn trials_of(canaries: &Canaries, work: f64) -> usize {
    let runs = work / (2.0 * canaries.work_of_a_run());
    (runs * canaries.trials_of_a_run() as f64) as usize
}

/// How many trials of each world are made if nobody says: 200,000, or what a minute or so has room for. Where a sampler deals with everybody at once, a run is one trial.
pub fn usual_trials(plan: &Plan) -> Result<usize> {
    let canaries = Canaries::side_by_side(plan)?;
    Ok(trials_of(&canaries, WORK).clamp(2, TRIALS))
}

/// What a white-box canary finds in so many trials of each world, or a few more, half of which choose the event. `entropy` opens the entropy of a run in both worlds, and `after` is told after each how many
/// trials it was. More than a machine does in a day or so is refused.
pub fn white_box<E: Entropy>(
    plan: &Plan,
    (trials, threads): (usize, NonZeroUsize),
    alpha: Alpha,
    entropy: impl Fn() -> E + Sync,
    after: impl Fn(usize) + Sync,
) -> Result<EpsilonBound> {
    let canaries = Canaries::side_by_side(plan)?;
    let most = trials_of(&canaries, WORK_MAX);
    if !(2..=most).contains(&trials) {
        return Err(Error::Trials {
            given: trials,
            most,
        });
    }
    let runs = trials.div_ceil(canaries.trials_of_a_run());
    let found = numbered(threads, runs, |_| {
        let scores = canaries.scores_of_worlds(1, &mut entropy())?;
        after(scores[1].len());
        Ok(scores)
    })?;
    let [mut with, mut without] = [Vec::new(), Vec::new()];
    for [more, others] in found {
        with.extend(more);
        without.extend(others);
    }
    let (shown, held) = Outputs::new(with, without).split();
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
        let all = numbered(self.threads, self.trials, |_| {
            let models = lock_step.train(start, &mut entropy())?;
            after(self.groups.len() + 1);
            let score = |weights: &Vec<f32>| scores::clip_bkd(network, weights, point);
            models.iter().map(score).collect::<Result<Vec<f64>>>()
        })?;
        let world = |at: usize| all.iter().map(|trial| trial[at]).collect();
        Ok((0..=self.groups.len()).map(world).collect())
    }
}

/// What comes of each number, on so many threads, in the order of the numbers and not in that in which they end: how long a run takes depends on its samples, as its score does, and which trials choose
/// the event must depend on neither.
fn numbered<T: Send>(
    threads: NonZeroUsize,
    count: usize,
    work: impl Fn(usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let all: Vec<Mutex<Option<T>>> = (0..count).map(|_| Mutex::new(None)).collect();
    let failed = Mutex::new(None);
    let has_failed = || lock(&failed).is_some();
    crew::each(threads.get(), all.iter().enumerate(), |(number, place)| {
        if has_failed() {
            return;
        }
        match work(number) {
            Ok(found) => *lock(place) = Some(found),
            Err(error) => *lock(&failed) = Some(error),
        }
    });
    if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    let found = all.into_iter().map(|place| {
        let place = place.into_inner().unwrap_or_else(PoisonError::into_inner);
        place.ok_or(Error::Unbound)
    });
    found.collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "of_plan_test.rs"]
mod tests;
