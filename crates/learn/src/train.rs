//! # A training run
//! A [`Trainer`] takes the steps that a [`Plan`] pays for: a batch from the plan's sampler, the sum of its clipped gradients in secret, the
//! plan's noise, and an optimizer that sees the noisy sum alone.
//!
//! **Claim.** Whoever sees the parameters after every step, the evaluations on public data and all that is shown on the way, sees a
//! function of the releases that the plan's event describes, and of public numbers.
//! **Proof.** 1. *Initial parameters* are given, from a public seed. 2. *Each step* draws a batch and its dropout seed from fresh entropy;
//! neither looks at the data. The sum of a batch is that of [`ClippedSum`], whose [`norm_upper`](ClippedSum::norm_upper) is at most the plan's
//! clip norm and whose grid is the plan's: both are checked when a trainer is made. So it is what [`plan`](crate::plan) requires, and it
//! leaves through [`Noise`] only, which uses the batch up. An empty batch has the sum zero and is released with noise as any other. 3. *The
//! optimizer* gets the release, the grid and the expected batch size of the plan; so the parameters after the step are post-processing.
//! 4. *How many steps* there are is the plan's to say, or that of whoever looks at what was shown. 5. *Errors* within a step depend on entropy
//! alone: all that could be refused about data, network and sizes is refused before the first step. ∎
//!
//! **Same bits on any number of threads**, for the same entropy: sums are of integers, and noise is drawn in blocks of a fixed size.

use std::num::NonZeroUsize;

use whit_core::{Bits, Entropy, Mechanism, Sampling, Secret};

use crate::checkpoint::{Checkpoint, CheckpointError, Place, Run};
use crate::clip::Clip;
use crate::clipped_sum::{BatchRows, ClippedSum, Memory, Summed};
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::evaluate::{Evaluation, evaluate};
use crate::loss::Loss;
use crate::network::Network;
use crate::optimizer::{Average, Optimizer};
use crate::plan::{Noise, Plan};
use crate::sampler::Sampler;

/// The most examples of a data set: every batch of them can be summed, so that no step fails for the size of its batch.
const EXAMPLES_MAX: u32 = 1 << 25;

/// The names under which a checkpoint keeps the optimizer.
const FIRST: &str = "first";
const SECOND: &str = "second";
const AVERAGE: &str = "average";
const TAKEN: &str = "taken";
const AVERAGED: &str = "averaged";

/// How a gradient is clipped to the plan's norm.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Clipping {
    /// The gradient as a whole.
    Flat,
    /// Each layer for itself, all to the same norm.
    PerLayer,
    /// Every gradient is brought near the norm, short ones too.
    Automatic {
        /// What keeps the shortest from being blown up.
        gamma: f64,
    },
}

/// What becomes of the noisy sums. All of it is public.
#[derive(Clone, Debug, PartialEq)]
pub struct Method {
    /// How gradients are clipped.
    pub clipping: Clipping,
    /// How weights are moved.
    pub optimizer: Optimizer,
    /// The mean of the weights that is the model, instead of the last ones.
    pub average: Option<Average>,
    /// How many threads work. The result does not depend on it.
    pub threads: NonZeroUsize,
}

/// A run between two steps.
pub struct Trainer {
    plan: Plan,
    network: Network,
    data: Secret<Dataset>,
    sum: ClippedSum,
    noise: Noise,
    /// `None` once all steps were begun.
    sampler: Option<Sampler>,
    method: Method,
    parameters: Vec<f32>,
    memory: Memory,
    buffer: Vec<i64>,
}

impl Trainer {
    /// A run before its first step. All that can be refused is refused here; `parameters` are the initial ones, from a public seed.
    pub fn new(
        plan: &Plan,
        network: Network,
        parameters: Vec<f32>,
        data: Secret<Dataset>,
        method: Method,
    ) -> Result<Self> {
        network.checked(&parameters)?;
        let norm = plan.clip_norm();
        let clip = match method.clipping {
            Clipping::Flat => Clip::flat(norm),
            Clipping::PerLayer => Clip::per_layer_even(norm, network.trained_layers()),
            Clipping::Automatic { gamma } => Clip::automatic(norm, gamma),
        }?;
        let sum = ClippedSum::new(&network, clip, plan.grid(), plan.batch_cap())?;
        // What the plan's proof requires of whoever sums.
        if sum.norm_upper() > norm || sum.grid() != plan.grid() {
            return Err(Error::Unbound);
        }
        let data = data.expose();
        fits(&network, &data)?;
        let most = EXAMPLES_MAX;
        if data.rows() > most as usize {
            return Err(Error::TooManyExamples { most });
        }
        Ok(Self {
            sampler: Some(plan.sampler(data.rows())?),
            noise: plan.noise()?,
            plan: plan.clone(),
            network,
            data: Secret::new(data),
            sum,
            method,
            parameters,
            memory: Memory::default(),
            buffer: Vec::new(),
        })
    }

    /// Goes on from a checkpoint of the same run: steps that were begun and not kept are lost. A checkpoint that does not count the steps
    /// that were taken here is refused, since they would be taken twice.
    fn restore(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        let damaged = || Error::from(CheckpointError::Damaged);
        if checkpoint.run().event != *self.plan.event() {
            return Err(CheckpointError::OtherPlan.into());
        }
        let vector = |name| checkpoint.vectors.get(name).cloned().unwrap_or_default();
        let count = |name| match checkpoint.scalars.get(name) {
            Some(&count) if count >= 0.0 => Ok(count as u64),
            None => Ok(0),
            _ => Err(damaged()),
        };
        self.network.checked(&checkpoint.parameters)?;
        let begun = checkpoint.steps_begun();
        if begun < self.taken() {
            return Err(Error::Unbound);
        }
        // At the end of a run there is nothing to draw, wherever its last epoch was cut.
        self.sampler = match begun < self.plan.steps() {
            true => Some(self.plan.sampler_after(self.rows(), begun)?),
            false => None,
        };
        if checkpoint.steps_kept() > 0 {
            let state = [vector(FIRST), vector(SECOND)];
            self.method.optimizer.restore(count(TAKEN)?, state)?;
            if let Some(average) = &mut self.method.average {
                average.restore(count(AVERAGED)?, vector(AVERAGE))?;
            }
        }
        self.parameters.clone_from(&checkpoint.parameters);
        Ok(())
    }

    /// How many steps were begun, those before a crash included: what epsilon so far is about.
    pub fn taken(&self) -> u64 {
        let all = self.plan.steps();
        self.sampler.as_ref().map_or(all, Sampler::taken)
    }

    /// The plan of this run.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The parameters of the model as it is now: releases, and nothing else.
    pub fn parameters(&self) -> Vec<f32> {
        let average = self.method.average.as_ref();
        let average = average.and_then(Average::weights);
        average.unwrap_or_else(|| self.parameters.clone())
    }

    /// How good the model is now, on public data.
    pub fn evaluate(&self, public: &Dataset) -> Result<Evaluation> {
        fits(&self.network, public)?;
        evaluate(&self.network, &self.parameters(), public)
    }

    /// Takes one step of the plan.
    pub fn step<E: Entropy<Bits: Send>>(&mut self, entropy: &mut E) -> Result<()> {
        let steps = self.plan.steps();
        let sampler = self.sampler.as_mut().ok_or(Error::StepsTaken { steps })?;
        let batch = sampler.draw(entropy)?;
        let mut bits = entropy.open()?;
        let seeds: Vec<u64> = batch.expose().iter().map(|_| bits.word()).collect();
        // From here to the release everything is secret, and nothing fails for what it sees.
        let rows = BatchRows {
            examples: self.data.as_ref().expose(),
            rows: batch.expose(),
            seeds: &seeds,
        };
        let Summed { sum, below: _ } = self.sum.sum(
            &self.network,
            &self.parameters,
            rows,
            self.method.threads.get(),
            &mut self.memory,
            std::mem::take(&mut self.buffer),
        )?;
        let release = self
            .noise
            .release_on(self.method.threads, batch, sum, entropy)?;
        // The rest is post-processing, by public numbers.
        let noisy = release.into_value();
        let unit = self.plan.grid() / self.plan.expected_batch();
        let optimizer = &mut self.method.optimizer;
        optimizer.step(&mut self.parameters, &noisy, unit)?;
        if let Some(average) = &mut self.method.average {
            average.update(&self.parameters)?;
        }
        self.buffer = noisy;
        Ok(())
    }

    /// Takes all steps that are left; `after` sees the run after each of them, and ends it by an error.
    pub fn run<E: Entropy<Bits: Send>>(
        &mut self,
        entropy: &mut E,
        mut after: impl FnMut(&Self) -> Result<()>,
    ) -> Result<()> {
        while self.taken() < self.plan.steps() {
            self.step(entropy)?;
            after(self)?;
        }
        Ok(())
    }

    /// The same, kept in a place: about every `interval` steps the run is written there, and no step is taken before the place has
    /// counted it. What was kept there before goes on. Gives what is kept at the end.
    pub fn run_kept<E: Entropy<Bits: Send>>(
        &mut self,
        place: &Place,
        run: Run,
        interval: NonZeroUsize,
        entropy: &mut E,
        mut after: impl FnMut(&Self) -> Result<()>,
    ) -> Result<Checkpoint> {
        let mut checkpoint = match place.load()? {
            Some(checkpoint) => checkpoint,
            None => Checkpoint::new(run, self.parameters.clone()),
        };
        self.restore(&checkpoint)?;
        let epoch = epoch(&self.plan);
        let interval = (interval.get() as u64).next_multiple_of(epoch);
        loop {
            // Writes what was done before, and that the next ones are begun.
            let granted = place.begin(&mut checkpoint, interval)?;
            if granted == 0 {
                return Ok(checkpoint);
            }
            for _ in 0..granted {
                self.step(entropy)?;
                after(self)?;
            }
            self.save(&mut checkpoint);
            checkpoint.done(granted);
        }
    }

    fn save(&self, checkpoint: &mut Checkpoint) {
        checkpoint.parameters.clone_from(&self.parameters);
        let optimizer = &self.method.optimizer;
        let [first, second] = optimizer.state().map(<[f32]>::to_vec);
        let mut keep = |name: &str, vector, count: Option<(&str, u64)>| {
            checkpoint.vectors.insert(name.into(), vector);
            if let Some((name, count)) = count {
                checkpoint.scalars.insert(name.into(), count as f64);
            }
        };
        keep(FIRST, first, Some((TAKEN, optimizer.taken())));
        keep(SECOND, second, None);
        if let Some(average) = &self.method.average {
            let (taken, sums) = average.state();
            keep(AVERAGE, sums.to_vec(), Some((AVERAGED, taken)));
        }
    }

    /// For samplers alone.
    fn rows(&self) -> usize {
        self.data.as_ref().expose().rows()
    }
}

/// Refuses data of another shape, or with other classes, than the network's. Both are public.
fn fits(network: &Network, data: &Dataset) -> Result<()> {
    let (takes, gives) = (network.input_len(), data.width());
    if takes != gives {
        return Err(Error::OtherFeatures { takes, gives });
    }
    let (outputs, classes) = (network.output_len(), data.classes());
    let passes = match network.loss() {
        Loss::CrossEntropy => classes.is_some_and(|count| count as usize == outputs),
        Loss::Logistic => classes == Some(2),
        _ => classes.is_none(),
    };
    if !passes {
        return Err(Error::OtherAnswers { outputs, classes });
    }
    Ok(())
}

/// How many steps belong together: a deal of examples to steps is secret, and so not kept.
fn epoch(plan: &Plan) -> u64 {
    match plan.event().mechanism() {
        Mechanism::Sampled {
            sampling: Sampling::BallsInBins { bins: count } | Sampling::Shuffled { batches: count },
            ..
        } => (*count).max(1),
        _ => 1,
    }
}

#[cfg(test)]
#[path = "train_test.rs"]
mod tests;
