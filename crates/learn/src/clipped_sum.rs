//! The sum of clipped gradients, on a grid, with its sensitivity proven down to the last bit.
//!
//! **Definition.** Example `i` contributes the vector `v_i` (see [`layer`](crate::layer)) with `‖v_i‖ <= (1-η) C`, by
//! [`clip`](crate::clip). Released with noise is `S`, a vector of whole multiples of the grid step `g`, near `Σ v_i`.
//! **Claim.** Let two batches differ in one example that only one of them has. Then `‖S - S'‖ <= C`.
//! **Proof.** `v_i` is a function of the example, its seed and the parameters, whatever slot or neighbours it has (see
//! `matmul`), and zero for a gradient that is not finite. So the exact sums differ by one `v_i`, and it is left
//! to show that each `S` is within `ηC/2` of its exact sum, in L2. Let `d` be the number of parameters.
//! 1. *Up to the cap* `N` *of examples.* A micro-batch holds at most `m`; its sum is one chain of products and sums in floats for
//!    each coordinate, and at most `r` of these are added up, in floats, before they are carried. A term goes through at most
//!    `m + r + 1` roundings, each of relative size `u = 2^-24`, so a coordinate errs by at most `κ Σ_i |v_ic|` with
//!    `κ = (m+r+2) u (1 + 2^-8)`, since `(1+u)^k - 1 <= k u (1 + 2^-8)` for `k u <= 2^-8`. By the triangle inequality the
//!    vector errs by at most `κ Σ ‖v_i‖ <= κ N C`.
//! 2. *Beyond the cap*, up to 2^25 examples, contributions are summed in `f64` instead: products of two floats are exact there,
//!    at most 2^13 examples are summed before they are carried, and the same argument gives `(2^13 + 2) 2^-53 (1 + 2^-8)
//!    2^25 C`. So there is no batch for which the claim fails, and no `δ` for large ones.
//! 3. *Underflow.* A float operation whose result is below the normal floats errs by at most 2^-150, and there are at most
//!    `2 N` of them in a coordinate: `2 N √d 2^-150`.
//! 4. *Carrying.* A partial sum is divided by `g`, which is exact since `g` is a power of two, and rounded to a whole number:
//!    at most 1/2 in each coordinate, `√d g/2` for each of at most 2^13 carries (`carry`).
//! 5. *From there on* sums are of 64-bit integers and exact. They cannot overflow: 2^25 examples of at most `C <= 2^37 g` each.
//!
//! Each `S` errs by less than all of this together, and `η` is twice that, rounded up. If one example is replaced, the exact
//! sums differ by at most `2 (1-η) C` and the claim holds with `2C`. ∎
//!
//! Since integers add up in any order, the result has the same bits for any number of threads.

mod rounding;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use whit_core::{Secret, round};

use crate::clip::{Clip, Clipped};
use crate::layer::{Prepared, Sum};
use crate::network::{Buffers, Examples, Network, Weights};
use crate::validate::{NetworkError, Result};
use rounding::{Rounding, carry};

/// Step 2: the most examples of a batch, and of a partial sum that is carried.
const BATCH_MAX: usize = 1 << 25;
const PART_MAX: usize = 1 << 13;

/// Half of the clip norm is the most that rounding may take; a plan that needs more is refused.
const MARGIN_MIN: f64 = 0.5;

/// A part of a batch has about as many examples: fewer would make carrying cost more, and more would leave threads idle.
const PART_EXAMPLES: usize = 256;

/// Parameters that are carried under one lock.
const CARRIED: usize = 1 << 14;

/// How a batch is summed.
pub struct ClippedSum {
    clip: Clip,
    grid: f64,
    batch_cap: usize,
    /// `1 - η`.
    margin: f64,
    /// Parts of a batch that are summed in floats.
    parts: usize,
}

/// The memory of a run, used again at every step.
#[derive(Default)]
pub struct Memory {
    prepared: Vec<Prepared>,
    workers: Vec<Worker>,
}

#[derive(Default)]
struct Worker {
    buffers: Buffers,
    narrow: Vec<f32>,
    wide: Vec<f64>,
    squares: Vec<f64>,
    own: Vec<f32>,
    below: i64,
    /// Set while a partial sum is not carried yet: if a step panicked, the next one starts with new memory.
    under_way: bool,
}

/// What a batch comes to, in secret.
pub struct Summed {
    /// The sum in units of the grid: neighbours are at most `clip norm / grid` apart, in L2.
    pub sum: Secret<Vec<i64>>,
    /// How many examples had norms of at most the clip norm: neighbours are at most 1 apart. An adaptive clip releases it, with
    /// noise of its own and charged; nobody else may.
    pub below: Secret<i64>,
}

/// The rows of a batch and the seeds of their dropout masks.
#[derive(Clone, Copy)]
pub struct BatchRows<'a> {
    /// Where the rows are.
    pub examples: &'a dyn Examples,
    /// Which rows, in any order.
    pub rows: &'a [u32],
    /// One for each row, all drawn anew at each step, from entropy; or none, and nothing is dropped. They must be independent of each
    /// other and of the rows' numbers: a neighbour's rows have other numbers, and only so can the examples that both have be given the same
    /// masks in both worlds, which the proof above takes for granted.
    pub seeds: &'a [u64],
}

impl<'a> BatchRows<'a> {
    /// Some rows that follow each other, with their seeds.
    fn part(self, range: std::ops::Range<usize>) -> Self {
        Self {
            rows: &self.rows[range.clone()],
            seeds: self.seeds.get(range).unwrap_or_default(),
            ..self
        }
    }

    /// Micro-batches.
    fn chunks(self, slots: usize) -> impl Iterator<Item = Self> + use<'a> {
        let count = self.rows.len();
        (0..count)
            .step_by(slots)
            .map(move |first| self.part(first..(first + slots).min(count)))
    }
}

impl ClippedSum {
    /// `batch_cap` is public: the expected batch and a generous tail. Larger batches are slower, and as private.
    pub fn new(network: &Network, clip: Clip, grid: f64, batch_cap: u32) -> Result<Self> {
        let (given, layers) = (clip.layers(), network.trained_layers());
        if let Some(given) = given.filter(|&given| given != layers) {
            return Err(NetworkError::Norms { given, layers });
        }
        let norm = clip.norm_upper();
        let steps = norm / grid;
        let power_of_two = grid.is_normal() && grid > 0.0 && grid.to_bits() << 12 == 0;
        if !power_of_two || !(1024.0..=137_438_953_472.0).contains(&steps) {
            let what = "the step of the grid";
            return Err(NetworkError::OutOfRange { what, given: grid });
        }
        let cap = (batch_cap as usize).clamp(1, BATCH_MAX);
        let parts = (cap / PART_EXAMPLES)
            .clamp(2, BATCH_MAX / PART_MAX)
            .max(cap.div_ceil(PART_MAX));
        let micro_batches = cap.div_ceil(network.slots());
        let error = Rounding {
            micro_batch: network.slots(),
            added: micro_batches.div_ceil(parts),
            cap,
            parameters: network.param_len(),
            norm,
            grid,
        }
        .error_upper();
        let share = round::div_up(2.0 * error, norm);
        let margin = round::sub_down(1.0, share);
        if margin.is_nan() || margin < MARGIN_MIN {
            let cap = batch_cap;
            return Err(NetworkError::Rounding { cap, share });
        }
        Ok(Self {
            clip,
            grid,
            batch_cap: cap,
            margin,
            parts,
        })
    }

    /// The same for another clip norm, when it adapts.
    pub fn with_clip(&self, network: &Network, clip: Clip, grid: f64) -> Result<Self> {
        Self::new(
            network,
            clip,
            grid,
            u32::try_from(self.batch_cap).unwrap_or(u32::MAX),
        )
    }

    /// No two neighbouring sums are further apart, in L2.
    pub fn norm_upper(&self) -> f64 {
        self.clip.norm_upper()
    }

    /// The step of the grid.
    pub fn grid(&self) -> f64 {
        self.grid
    }

    /// `1 - η`: what is left of the clip norm for an example.
    pub fn margin(&self) -> f64 {
        self.margin
    }

    /// Sums a batch. `buffer` is filled and given back in the sum, so that a run can use it again. The sum has the same bits for
    /// any number of threads.
    pub fn sum(
        &self,
        network: &Network,
        params: &[f32],
        batch: BatchRows,
        threads: usize,
        memory: &mut Memory,
        mut buffer: Vec<i64>,
    ) -> Result<Summed> {
        network.checked(params)?;
        let examples = batch.rows.len();
        if examples > BATCH_MAX {
            return Err(NetworkError::Batch { max: BATCH_MAX });
        }
        if ![0, examples].contains(&batch.seeds.len()) {
            return Err(NetworkError::Seeds);
        }
        network.prepare(params, &mut memory.prepared);
        let weights = Weights {
            params,
            prepared: &memory.prepared,
        };
        let parts = Parts::new(self, network.slots(), examples);
        buffer.resize(network.param_len(), 0);
        let total: Vec<Mutex<Carried>> = buffer
            .chunks_mut(CARRIED)
            .map(|sums| Mutex::new(Carried { sums, fresh: true }))
            .collect();
        let threads = threads.clamp(1, parts.count.max(1));
        let room = memory.workers.len().max(threads);
        memory.workers.resize_with(room, Worker::default);
        let next = AtomicUsize::new(0);
        let work = |worker: &mut Worker, offset: usize| {
            worker.below = 0;
            loop {
                let part = next.fetch_add(1, Ordering::Relaxed);
                if part >= parts.count {
                    break;
                }
                let rows = batch.part(parts.range(part));
                worker.part(self, network, weights, rows, parts.wide);
                worker.carry(self.grid, parts.wide, &total, offset);
            }
        };
        std::thread::scope(|scope| {
            let (first, others) = memory.workers[..threads].split_at_mut(1);
            for (index, worker) in others.iter_mut().enumerate() {
                let offset = total.len() * (index + 1) / threads;
                scope.spawn(move || work(worker, offset));
            }
            first.iter_mut().for_each(|worker| work(worker, 0));
        });
        for carried in total {
            let carried = carried
                .into_inner()
                .unwrap_or_else(|poisoned| poisoned.into_inner());
            if carried.fresh {
                carried.sums.fill(0);
            }
        }
        let below = memory.workers[..threads]
            .iter()
            .map(|worker| worker.below)
            .sum();
        Ok(Summed {
            sum: Secret::new(buffer),
            below: Secret::new(below),
        })
    }
}

/// The plain sum of a batch's gradients, with **no privacy**: what speed is compared with, and for public data. `gradient` is
/// overwritten.
pub fn non_private_sum(
    network: &Network,
    params: &[f32],
    batch: BatchRows,
    memory: &mut Memory,
    gradient: &mut Vec<f32>,
) -> Result<()> {
    network.checked(params)?;
    network.prepare(params, &mut memory.prepared);
    let weights = Weights {
        params,
        prepared: &memory.prepared,
    };
    if memory.workers.is_empty() {
        memory.workers.push(Worker::default());
    }
    let worker = &mut memory.workers[0];
    gradient.clear();
    gradient.resize(network.param_len(), 0.0);
    for part in batch.chunks(network.slots()) {
        worker.load(network, part);
        network.differentiate(weights, &mut worker.buffers);
        network.form(&mut worker.buffers);
        let factors = network.trained_layers() * part.rows.len();
        worker.buffers.factors.clear();
        worker.buffers.factors.resize(factors, 1.0);
        network.accumulate(&mut worker.buffers, Sum::Narrow(gradient));
    }
    Ok(())
}

/// How a batch is cut: into whole micro-batches, as evenly as can be, by its size and nothing else.
struct Parts {
    count: usize,
    examples: usize,
    slots: usize,
    wide: bool,
}

impl Parts {
    fn new(sum: &ClippedSum, slots: usize, examples: usize) -> Self {
        let wide = examples > sum.batch_cap;
        // Beyond the cap parts hold whole micro-batches of 2^13 examples at most.
        let most = PART_MAX / slots * slots;
        let count = if wide {
            examples.div_ceil(most)
        } else {
            sum.parts.min(examples.div_ceil(slots))
        };
        Self {
            count,
            examples,
            slots,
            wide,
        }
    }

    fn range(&self, part: usize) -> std::ops::Range<usize> {
        let micro_batches = self.examples.div_ceil(self.slots);
        let at = |part: usize| (micro_batches * part / self.count * self.slots).min(self.examples);
        at(part)..at(part + 1)
    }
}

/// A piece of the total, and whether nothing was carried to it yet.
struct Carried<'a> {
    sums: &'a mut [i64],
    fresh: bool,
}

impl Worker {
    /// Adds up the contributions of one part.
    fn part(
        &mut self,
        sum: &ClippedSum,
        network: &Network,
        weights: Weights,
        batch: BatchRows,
        wide: bool,
    ) {
        if std::mem::replace(&mut self.under_way, true) {
            let below = self.below;
            *self = Self {
                below,
                under_way: true,
                ..Self::default()
            };
        }
        if wide {
            self.wide.resize(network.param_len(), 0.0);
        } else {
            self.narrow.resize(network.param_len(), 0.0);
        }
        for part in batch.chunks(network.slots()) {
            self.load(network, part);
            network.differentiate(weights, &mut self.buffers);
            network.square_norms(&mut self.buffers);
            self.clip(sum, network);
            let sum = match wide {
                true => Sum::Wide(&mut self.wide),
                false => Sum::Narrow(&mut self.narrow),
            };
            network.accumulate(&mut self.buffers, sum);
        }
    }

    fn load(&mut self, network: &Network, batch: BatchRows) {
        let buffers = &mut self.buffers;
        buffers.shape(network, batch.rows.len());
        buffers.targets.clear();
        buffers.seeds.clear();
        let inputs = buffers.activations[0].chunks_exact_mut(network.input_len());
        for (&row, input) in batch.rows.iter().zip(inputs) {
            let target = batch.examples.load(row, input);
            if target.is_none() {
                input.fill(0.0);
            }
            // What is not a number makes an example that contributes zero, as an empty one does.
            buffers.targets.push(target.unwrap_or(f32::NAN));
        }
        buffers.seeds.extend_from_slice(batch.seeds);
    }

    /// From norms to factors. What is kept of an example that is not finite becomes zero.
    fn clip(&mut self, sum: &ClippedSum, network: &Network) {
        let (examples, layers) = (self.buffers.examples, network.trained_layers());
        self.buffers.factors.resize(layers * examples, 0.0);
        self.squares.resize(layers, 0.0);
        self.own.resize(layers, 0.0);
        for example in 0..examples {
            for (layer, square) in self.squares.iter_mut().enumerate() {
                *square = self.buffers.norms[layer * examples + example];
            }
            let empty = self.buffers.targets[example].is_nan();
            let mut clipped = sum.clip.factors(sum.margin, &self.squares, &mut self.own);
            if empty {
                self.own.fill(0.0);
                clipped = Clipped::Never;
            }
            for (layer, &factor) in self.own.iter().enumerate() {
                self.buffers.factors[layer * examples + example] = factor;
            }
            match clipped {
                Clipped::Below => self.below += 1,
                Clipped::Above => {}
                Clipped::Never => network.forget(&mut self.buffers, example),
            }
        }
    }

    /// Carries the partial sum to the total and leaves zeros, piece by piece, from `offset` on so that threads do not wait.
    fn carry(&mut self, grid: f64, wide: bool, total: &[Mutex<Carried>], offset: usize) {
        for index in (offset..total.len()).chain(0..offset) {
            let mut piece = total[index]
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner());
            let Carried { sums, fresh } = &mut *piece;
            let range = index * CARRIED..index * CARRIED + sums.len();
            if wide {
                carry(&mut self.wide[range], |x| x, grid, sums, *fresh);
            } else {
                carry(&mut self.narrow[range], f64::from, grid, sums, *fresh);
            }
            *fresh = false;
        }
        self.under_way = false;
    }
}

#[cfg(test)]
#[path = "clipped_sum_test.rs"]
mod tests;
