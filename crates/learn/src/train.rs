//! # A training run
//! A [`Trainer`] takes the steps that a [`Plan`] pays for: a batch from the plan's sampler, the sum of its clipped gradients in secret, the
//! plan's noise, and an optimizer that sees the noisy sum alone.
//!
//! **Claim.** Whoever sees the parameters after every step, the evaluations on public data and all that is shown on the way, sees a
//! function of the releases that the plan's event describes, and of public numbers.
//! **Proof.** 1. *Initial parameters* are given, from a public seed. 2. *Each step* draws a batch and its dropout seed from fresh entropy;
//! neither looks at the data. There are as many as were paid for, since the sampler is that of a [`Payment`]. The sum of a batch is that of [`ClippedSum`], whose [`norm_upper`](ClippedSum::norm_upper) is at most the plan's
//! clip norm and whose grid is the plan's: both are checked when a trainer is made. So it is what [`plan`](crate::plan) requires, and it
//! leaves through [`Noise`] or [`Correlated`] only, which uses the batch up. An empty batch has the sum zero and is released with noise as any other. 3. *The
//! optimizer* gets the release, the grid and the expected batch size of the plan; so the parameters after the step are post-processing.
//! 4. *How many steps* there are is the plan's to say, or that of whoever looks at what was shown. 5. *Errors* within a step depend on entropy
//! alone: all that could be refused about data, network and sizes is refused before the first step, and where the clip norm moves, for every norm that it may have. What is refused there is public, but for data sets of
//! more than `2^25` examples, which the claim is not about. ∎
//!
//! **Same bits on any number of threads**, for the same entropy: sums are of integers, and noise is drawn in blocks of a fixed size.

mod kept;

use std::num::NonZeroUsize;

use whit_core::{Bits, Entropy, Secret};
use whit_mechanism::crew;

use crate::clip::{AdaptiveQuantile, Clip};
use crate::clipped_sum::{BatchRows, ClippedSum, Memory, Summed};
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::evaluate::{Evaluation, evaluate};
use crate::loss::Loss;
use crate::network::Network;
use crate::optimizer::{Average, Optimizer};
use crate::payment::{Payer, Payment};
use crate::plan::{Correlated, Noise, Plan};
use crate::sampler::Sampler;
use kept::Kept;

/// The most examples of a data set: every batch of them can be summed, so that no step fails for the size of its batch. The guarantee is about data sets of at most so
/// many. That there are more is told, under add/remove too; nothing else would do. To leave out the examples beyond it changes two of them, where one is added before: the
/// last one that is kept, besides. To cut a batch in two, where it is larger, doubles what the roundings of its sum may come to, of two batches that
/// differ in one example. Whoever declares more, in public, is refused before anything is paid.
pub(crate) const EXAMPLES_MAX: u32 = 1 << 25;

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
    noise: Releases,
    /// Set where the clip norm moves.
    moving: Option<AdaptiveQuantile>,
    /// `None` once all steps were begun.
    sampler: Option<Sampler>,
    payer: Payer,
    kept: Option<Kept>,
    /// Whose steps these are: a fork of it has this in its memory, too.
    process: u32,
    method: Method,
    parameters: Vec<f32>,
    memory: Memory,
    buffer: Vec<i64>,
}

/// How sums leave.
enum Releases {
    /// Each by itself.
    Independent(Noise),
    /// With noise that cancels between steps.
    Correlated(Box<Correlated>),
}

impl Trainer {
    /// A run before its first step, which nobody keeps: if it is stopped, what was paid is spent. All that can be refused is refused here;
    /// `parameters` are the initial ones, from a public seed.
    pub fn new(
        plan: &Plan,
        network: Network,
        parameters: Vec<f32>,
        data: Secret<Dataset>,
        method: Method,
        payment: Payment,
    ) -> Result<Self> {
        let payer = payment.payer().clone();
        let whole = (parameters, payer, Some(payment));
        Self::assemble(plan, network, whole, data, method)
    }

    fn assemble(
        plan: &Plan,
        network: Network,
        (parameters, payer, payment): (Vec<f32>, Payer, Option<Payment>),
        data: Secret<Dataset>,
        method: Method,
    ) -> Result<Self> {
        network.checked(&parameters)?;
        let sum = sum_of(plan, &network, method.clipping, plan.batch_cap())?;
        let data = data.expose();
        fits_all(&network, &data)?;
        plan.check_memory(network.param_len())?;
        let sampler = payment.map(|payment| plan.sampler(data.rows(), payment));
        Ok(Self {
            sampler: sampler.transpose()?,
            noise: match plan.correlated()? {
                Some(stream) => Releases::Correlated(Box::new(stream)),
                None => Releases::Independent(plan.noise()?),
            },
            moving: plan.adaptive()?,
            payer,
            kept: None,
            process: std::process::id(),
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

    /// The examples, for the next run of a search.
    pub(crate) fn into_data(self) -> Secret<Dataset> {
        self.data
    }

    /// Who has paid for this run.
    pub fn payer(&self) -> &Payer {
        &self.payer
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

    /// Takes one step of the plan, once it is counted where the run is kept.
    pub fn step<E: Entropy<Bits: Send>>(&mut self, entropy: &mut E) -> Result<()> {
        let steps = self.plan.steps();
        if self.sampler.is_none() {
            return Err(Error::StepsTaken { steps });
        }
        self.count()?;
        let threads = self.method.threads.get();
        crew::awake(threads, || self.take(entropy))?;
        if let Some(kept) = &mut self.kept {
            kept.fresh += 1;
        }
        if self.taken() >= steps {
            self.keep()?;
        }
        Ok(())
    }

    fn take<E: Entropy<Bits: Send>>(&mut self, entropy: &mut E) -> Result<()> {
        let steps = self.plan.steps();
        let sampler = self.sampler.as_mut().ok_or(Error::StepsTaken { steps })?;
        let norm = match &self.moving {
            // What was released before has moved it, so that all of this is public.
            Some(moving) => {
                let grid = self.plan.grid_of(moving.norm())?;
                self.sum = self.sum.with_clip(&self.network, moving.clip()?, grid)?;
                moving.norm()
            }
            None => self.plan.clip_norm(),
        };
        if self.sum.norm_upper() > norm {
            return Err(Error::Unbound);
        }
        let batch = sampler.draw(entropy)?;
        let mut bits = entropy.open()?;
        let seeds: Vec<u64> = batch.expose().iter().map(|_| bits.word()).collect();
        // From here to the release everything is secret, and nothing fails for what it sees.
        let rows = BatchRows {
            examples: self.data.as_ref().expose(),
            rows: batch.expose(),
            seeds: &seeds,
        };
        let threads = self.method.threads;
        let Summed { sum, below } = self.sum.sum(
            &self.network,
            &self.parameters,
            rows,
            threads.get(),
            &mut self.memory,
            std::mem::take(&mut self.buffer),
        )?;
        let expected = self.plan.expected_batch();
        let (noisy, grid) = match (&mut self.noise, &mut self.moving) {
            (Releases::Correlated(_), Some(_)) => return Err(Error::Unbound),
            (Releases::Correlated(stream), None) => (
                stream.release_on(threads, batch, sum, entropy)?,
                self.plan.release_unit(),
            ),
            (Releases::Independent(noise), None) => {
                let release = noise.release_on(threads, batch, sum, entropy)?;
                (release.into_value(), self.sum.grid())
            }
            (Releases::Independent(noise), Some(moving)) => {
                let both = noise.release_both(threads, batch, norm, (sum, below), entropy)?;
                let count = both.count.value().first().copied().unwrap_or_default();
                moving.update(count as f64 / (2.0 * expected) + 0.5);
                (both.sum.into_value(), self.sum.grid())
            }
        };
        // The rest is post-processing, by public numbers.
        let unit = grid / expected;
        let optimizer = &mut self.method.optimizer;
        optimizer.step_on(threads, &mut self.parameters, &noisy, unit)?;
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
}

/// What sums the batches of a plan that have up to so many examples, or hardly ever more: at its clip norm, and if that moves, at every norm that it may come to.
pub(crate) fn sum_of(
    plan: &Plan,
    network: &Network,
    clipping: Clipping,
    batch_cap: u32,
) -> Result<ClippedSum> {
    let (norm, grid) = (plan.clip_norm(), plan.grid());
    let clip = Clip::of(clipping, norm, network.trained_layers())?;
    let sum = match plan.adaptive()? {
        None => ClippedSum::new(network, clip, grid, batch_cap),
        Some(_) if clipping == Clipping::Flat => ClippedSum::moving(network, clip, grid, batch_cap),
        Some(_) => {
            return Err(Error::Field {
                of: "a clip norm that moves",
                field: "clipping",
                missing: false,
                passes: "",
            });
        }
    }?;
    // What the plan's proof requires of whoever sums.
    match sum.norm_upper() <= norm && sum.grid() == grid {
        true => Ok(sum),
        false => Err(Error::Unbound),
    }
}

/// The same, and more examples than can be numbered.
pub(crate) fn fits_all(network: &Network, data: &Dataset) -> Result<()> {
    fits(network, data)?;
    let most = EXAMPLES_MAX;
    match data.rows() > most as usize {
        true => Err(Error::TooManyExamples { most }),
        false => Ok(()),
    }
}

/// Refuses data of another shape, or with other classes, than the network's. Both are public.
pub(crate) fn fits(network: &Network, data: &Dataset) -> Result<()> {
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

#[cfg(test)]
#[path = "train_test.rs"]
mod tests;
