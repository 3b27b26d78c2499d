//! # Optimizers
//! What becomes of a noisy sum once it was released: any function of releases and of public numbers is post-processing, and costs nothing. An
//! optimizer sees sums with noise, the expected batch size and the plan; never an example, a loss or a batch.
//!
//! With `g` the noisy mean gradient and `η` the learning rate of the step:
//! - *SGD* with momentum `β`: `v ← βv + g`, `w ← w - ηv`; Nesterov's: `w ← w - η(g + βv)`.
//! - *Adam* [KB15, Alg. 1]: `m ← β₁m + (1-β₁)g`, `s ← β₂s + (1-β₂)g²`,
//!   `w ← w - η (m/(1-β₁ᵗ))/(√(s/(1-β₂ᵗ)) + ε)` in step `t = 1, 2, …`.
//! - *Averaging*: after step `t` the mean of all weights so far, that of step `i` with weight `βᵗ⁻ⁱ`.

use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};
use whit_mechanism::crew;

use crate::error::{Error, Result, within};
use crate::schedule::Schedule;
use crate::tensor::{fetch, vectorised};

/// How a gradient moves the weights.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Rule {
    /// Along the gradient, with what is left of the ones before.
    Sgd {
        /// How much is left; zero for none.
        momentum: f32,
    },
    /// The same, looking ahead.
    Nesterov {
        /// How much is left.
        momentum: f32,
    },
    /// Each weight by its own scale.
    Adam {
        /// How much is left of the mean.
        beta1: f32,
        /// How much is left of the mean square.
        beta2: f32,
        /// What keeps the quotient finite.
        epsilon: f32,
    },
}

/// A rule, its schedule, and what it remembers of the gradients so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Optimizer {
    rule: Rule,
    schedule: Schedule,
    parameters: usize,
    steps: u64,
    taken: u64,
    /// Velocities, or means.
    first: Vec<f32>,
    /// Mean squares; empty if there are none.
    second: Vec<f32>,
}

impl Optimizer {
    /// For a model of so many parameters and a run of so many steps.
    pub fn new(rule: Rule, schedule: Schedule, parameters: usize, steps: u64) -> Result<Self> {
        schedule.check()?;
        let share = |what, value: f32| {
            let passes = (0.0..1.0).contains(&value);
            within(what, f64::from(value), passes, "a number from 0 to below 1")
        };
        let (first, second) = match rule {
            Rule::Sgd { momentum } | Rule::Nesterov { momentum } => {
                share("momentum", momentum)?;
                (if momentum > 0.0 { parameters } else { 0 }, 0)
            }
            Rule::Adam {
                beta1,
                beta2,
                epsilon,
            } => {
                share("beta1", beta1)?;
                share("beta2", beta2)?;
                let passes = epsilon > 0.0 && epsilon < f32::INFINITY;
                within(
                    "adam epsilon",
                    f64::from(epsilon),
                    passes,
                    "a number above 0",
                )?;
                (parameters, parameters)
            }
        };
        Ok(Self {
            rule,
            schedule,
            parameters,
            steps,
            taken: 0,
            first: vec![0.0; first],
            second: vec![0.0; second],
        })
    }

    /// How many steps were taken.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// What it remembers, for a checkpoint: all of it is post-processing.
    pub fn state(&self) -> [&[f32]; 2] {
        [&self.first, &self.second]
    }

    /// Goes on from a checkpoint.
    pub fn restore(&mut self, taken: u64, [first, second]: [Vec<f32>; 2]) -> Result<()> {
        for (own, given) in [(&self.first, &first), (&self.second, &second)] {
            same(own.len(), given.len())?;
        }
        (self.taken, self.first, self.second) = (taken, first, second);
        Ok(())
    }

    /// Moves the weights by one noisy sum, as it was released. `unit` turns it into a mean gradient: the step of the grid over the expected
    /// batch size, both of the plan.
    pub fn step(&mut self, weights: &mut [f32], sums: &[i64], unit: f64) -> Result<()> {
        self.step_on(NonZeroUsize::MIN, weights, sums, unit)
    }

    /// The same on several threads. Each weight moves on its own, so that the bits are the same for any number of them.
    pub fn step_on(
        &mut self,
        threads: NonZeroUsize,
        weights: &mut [f32],
        sums: &[i64],
        unit: f64,
    ) -> Result<()> {
        same(self.parameters, weights.len())?;
        same(self.parameters, sums.len())?;
        let rate = self.schedule.rate(self.taken, self.steps) as f32;
        self.taken += 1;
        let update = Update {
            rule: self.rule,
            rate,
            unit,
            taken: self.taken,
        };
        let (mut first, mut second) = (&mut self.first[..], &mut self.second[..]);
        let length = piece(weights.len());
        let pieces = weights.chunks_mut(length).zip(sums.chunks(length));
        let pieces = pieces.map(|(weights, sums)| {
            let len = weights.len();
            // Where nothing is remembered, there is nothing to take.
            let first = first.split_off_mut(..len).unwrap_or_default();
            let second = second.split_off_mut(..len).unwrap_or_default();
            (weights, first, second, sums)
        });
        crew::each(threads.get(), pieces, |(weights, first, second, sums)| {
            update.apply_ahead(weights, first, second, sums);
        });
        Ok(())
    }
}

/// Weights that one thread moves at a time, at the most.
const PIECE: usize = 1 << 14;

/// How many pieces, or a multiple of it: a number that two, four or eight threads share evenly. So each of them moves the weights whose noise it
/// has drawn.
const SHARES: usize = 8;

/// Weights of a piece: no thread is called for a few.
fn piece(weights: usize) -> usize {
    let pieces = weights.div_ceil(PIECE).max(1).next_multiple_of(SHARES);
    weights.div_ceil(pieces).max(PIECE / SHARES)
}

/// Weights that are asked for at once, while those before them are moved: the other threads have read them, and it takes a while until
/// they are this thread's own again.
const AHEAD: usize = 512;

/// One step of a rule.
#[derive(Clone, Copy)]
struct Update {
    rule: Rule,
    rate: f32,
    unit: f64,
    taken: u64,
}

impl Update {
    /// Part by part, and asks for the weights of the next part meanwhile.
    fn apply_ahead(
        self,
        mut weights: &mut [f32],
        mut first: &mut [f32],
        mut second: &mut [f32],
        sums: &[i64],
    ) {
        for sums in sums.chunks(AHEAD) {
            let (now, later) = weights.split_at_mut(sums.len());
            fetch(&later[..later.len().min(AHEAD)]);
            let first = first.split_off_mut(..sums.len()).unwrap_or_default();
            let second = second.split_off_mut(..sums.len()).unwrap_or_default();
            self.apply(now, first, second, sums);
            weights = later;
        }
    }

    fn apply(self, weights: &mut [f32], first: &mut [f32], second: &mut [f32], sums: &[i64]) {
        let (rate, unit) = (self.rate, self.unit);
        let gradient = move |sum: i64| (sum as f64 * unit) as f32;
        match self.rule {
            Rule::Sgd { momentum } if momentum > 0.0 => vectorised(
                (weights, first),
                #[inline(always)]
                move |(weights, first): (&mut [f32], &mut [f32])| {
                    for ((w, v), &sum) in weights.iter_mut().zip(first).zip(sums) {
                        *v = momentum * *v + gradient(sum);
                        *w -= rate * *v;
                    }
                },
            ),
            Rule::Nesterov { momentum } if momentum > 0.0 => vectorised(
                (weights, first),
                #[inline(always)]
                move |(weights, first): (&mut [f32], &mut [f32])| {
                    for ((w, v), &sum) in weights.iter_mut().zip(first).zip(sums) {
                        let g = gradient(sum);
                        *v = momentum * *v + g;
                        *w -= rate * (g + momentum * *v);
                    }
                },
            ),
            Rule::Sgd { .. } | Rule::Nesterov { .. } => vectorised(
                weights,
                #[inline(always)]
                move |weights: &mut [f32]| {
                    for (w, &sum) in weights.iter_mut().zip(sums) {
                        *w -= rate * gradient(sum);
                    }
                },
            ),
            Rule::Adam {
                beta1,
                beta2,
                epsilon,
            } => {
                let [mean, square] = [beta1, beta2].map(|beta| unbias(beta, self.taken));
                vectorised(
                    (weights, first, second),
                    #[inline(always)]
                    move |(weights, means, squares): (&mut [f32], &mut [f32], &mut [f32])| {
                        let moments = means.iter_mut().zip(squares);
                        for ((w, (m, s)), &sum) in weights.iter_mut().zip(moments).zip(sums) {
                            let g = gradient(sum);
                            *m = beta1 * *m + (1.0 - beta1) * g;
                            *s = beta2 * *s + (1.0 - beta2) * g * g;
                            *w -= rate * (*m * mean) / ((*s * square).sqrt() + epsilon);
                        }
                    },
                );
            }
        }
    }
}

/// `1/(1 - βᵗ)`.
fn unbias(beta: f32, taken: u64) -> f32 {
    let left = f64::from(beta).powf(taken as f64);
    (1.0 / (1.0 - left)) as f32
}

fn same(parameters: usize, given: usize) -> Result<()> {
    if parameters == given {
        return Ok(());
    }
    Err(Error::OtherModel { parameters, given })
}

/// An exponential moving average of the weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Average {
    decay: f32,
    taken: u64,
    sums: Vec<f32>,
}

impl Average {
    /// With this much of the past left after each step.
    pub fn new(decay: f32, parameters: usize) -> Result<Self> {
        let passes = (0.0..1.0).contains(&decay);
        within(
            "average",
            f64::from(decay),
            passes,
            "a number from 0 to below 1",
        )?;
        Ok(Self {
            decay,
            taken: 0,
            sums: vec![0.0; parameters],
        })
    }

    /// Takes in the weights after a step.
    pub fn update(&mut self, weights: &[f32]) -> Result<()> {
        same(self.sums.len(), weights.len())?;
        self.taken += 1;
        let decay = self.decay;
        vectorised(
            &mut self.sums[..],
            #[inline(always)]
            move |sums: &mut [f32]| {
                for (sum, &w) in sums.iter_mut().zip(weights) {
                    *sum = decay * *sum + (1.0 - decay) * w;
                }
            },
        );
        Ok(())
    }

    /// The mean; `None` before the first step.
    pub fn weights(&self) -> Option<Vec<f32>> {
        let scale = unbias(self.decay, self.taken);
        (self.taken > 0).then(|| self.sums.iter().map(|&sum| sum * scale).collect())
    }

    /// What it remembers, for a checkpoint.
    pub fn state(&self) -> (u64, &[f32]) {
        (self.taken, &self.sums)
    }

    /// Goes on from a checkpoint.
    pub fn restore(&mut self, taken: u64, sums: Vec<f32>) -> Result<()> {
        same(self.sums.len(), sums.len())?;
        (self.taken, self.sums) = (taken, sums);
        Ok(())
    }
}

#[cfg(test)]
#[path = "optimizer_test.rs"]
mod tests;
