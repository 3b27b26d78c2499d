//! The sum of clipped gradients, on a grid, with its sensitivity proven down to the last bit.
//!
//! **Definition.** Example `i` contributes the vector `v_i` (see [`layer`](crate::layer)) with `‖v_i‖ <= (1-η) C`, by
//! [`clip`](crate::clip). Released with noise is `S`, a vector of whole multiples of the grid step `g`, near `Σ v_i`.
//! **Claim.** Let two batches differ in one example that only one of them has. Then `‖S - S'‖ <= C`.
//! **Proof.** `v_i` is a function of the example, its seed and the parameters, whatever slot or neighbours it has (see
//! `matmul`), and zero for a gradient that is not finite. So the exact sums differ by one `v_i`, and it is left
//! to show that each `S` is within `ηC/2` of its exact sum, in L2. Let `d` be the number of parameters.
//! 1. *Up to the cap* `N` *of examples.* For each coordinate, at most `m` examples are summed by one chain of products and sums in
//!    floats. The ends of `t <= b` chains are added up in floats before they are carried: one after the other, or so in each of two halves,
//!    whose sums are then added (see `step.rs`). At most one of the chains has fewer examples than the others, which have `e <= m` each. Let `k_i` be
//!    the roundings, each of relative size `u = 2^-24`, that a term of example `i` goes through at most; how sums are formed is the same for all
//!    coordinates. The `j`-th of a chain has one for its product and one for each addition from its own on: `e - j + 2`, on average
//!    `(e+3)/2`. With the chains numbered from 1 to `t`, those of the first half before those of the second, the `c`-th has at most
//!    `t - c + 2` more: `t - c + 1` one after the other, and no more than these and one in halves. The terms of the `t` chains, `n = (t-1) e + e_s` in all with `e_s <= e` of them in the shorter
//!    chain, have at most `e (W-w) + w e_s` more in all, where `W = t(t+3)/2` is the sum over chains and `w >= 2` what the shorter one has. That is at most
//!    `n (t/2 + 2)`: it is linear in `e_s`; for `e_s = e` it is `n (t+3)/2`; and for `e_s = 0` it is at most `e (t(t+3)/2 - 2) = e (t-1)(t+4)/2`.
//!    So `Σ k_i <= n (m + b + 7)/2`. A coordinate errs by at most `Σ_i k_i u (1 + 2^-8) |v_ic|`, since `(1+u)^k - 1 <= k u (1 + 2^-8)` for
//!    `k u <= 2^-8`, and by the triangle inequality the vector errs by at most `u (1 + 2^-8) Σ k_i ‖v_i‖ <= u (1 + 2^-8) N C (m + b + 7)/2`.
//! 2. *Beyond the cap*, up to 2^25 examples, contributions are summed in `f64` instead: products of two floats are exact there,
//!    at most 2^13 examples are summed before they are carried, and the same argument gives `(2^13 + 2) 2^-53 (1 + 2^-8)
//!    2^25 C`. So there is no batch for which the claim fails, and no `δ` for large ones.
//! 3. *Underflow.* A float operation whose result is below the normal floats errs by at most 2^-150, and there are at most
//!    `2 N` of them in a coordinate: `2 N √d 2^-150`.
//! 4. *Carrying.* A partial sum is divided by `g`, which is exact since `g` is a power of two, and rounded to a whole number:
//!    at most 1/2 in each coordinate, `√d g/2` for each carry (`carry`). There are at most as many as micro-batches up to the cap, of
//!    which a smaller batch has at most one more (where their number is made even), and 2^13 beyond it, since all but the last hold
//!    more than 2^12 examples. It is the larger of both that counts.
//! 5. *From there on* sums are of 64-bit integers and exact. They cannot overflow: 2^25 examples of at most `C <= 2^37 g` each.
//!
//! Each `S` errs by less than all of this together, and `η` is twice that, rounded up. If one example is replaced, the exact
//! sums differ by at most `2 (1-η) C` and the claim holds with `2C`. ∎
//!
//! **A norm that moves** is a function of what was released. So whether a sum can be made for it must not depend on it: it would be told by an error, in a run that was paid for.
//! As shares of `C`, the errors 1 and 2 are the same for all norms; 3 is the larger the smaller `C` is, and 4 the larger the fewer units `C/g` has, which are the fewest where `C` is a power of two, and
//! nearly twice as many just below the next. [`ClippedSum::moving`] takes `η` once, for a norm below all that pass on the grid with the fewest units: it is enough for every norm, and what is refused is refused for all of them, before the first step.
//!
//! How a batch is cut and what is summed together depends on its size and the network alone, and integers add up in any order: the
//! result has the same bits for any number of threads.

mod rounding;
mod step;

use whit_core::{Secret, round};

use crate::clip::{Clip, NORMS};
use crate::layer::Prepared;
use crate::network::{Examples, Network, Shape};
use crate::validate::{NetworkError, Result};
use rounding::{Rounding, carry};
use step::{Cut, Packed, Step, Waiting, Worker};

/// Step 2: the most examples of a batch, and of a partial sum that is carried.
const BATCH_MAX: usize = 1 << 25;
const PART_MAX: usize = 1 << 13;

/// Half of the clip norm is the most that rounding may take; a plan that needs more is refused.
const MARGIN_MIN: f64 = 0.5;

/// Up to so many parameters each thread packs all weights for itself.
const OWN_WEIGHTS: usize = 1 << 17;

/// More threads than this are not started.
const THREADS_MAX: usize = 256;

/// How a batch is summed.
pub struct ClippedSum {
    clip: Clip,
    grid: f64,
    batch_cap: usize,
    /// Examples of a micro-batch, at most.
    slots: usize,
    /// `1 - η`.
    margin: f64,
    /// What `η` is enough for.
    least: Least,
    /// Of the network that it was made for: all that `η` and the clip rest on.
    shape: Shape,
}

/// The smallest norm, and the fewest units of the grid in a norm, for which `η` is enough: it is for all that are not less.
#[derive(Clone, Copy)]
struct Least {
    norm: f64,
    units: f64,
}

/// The memory of a run, used again at every step.
#[derive(Default)]
pub struct Memory {
    prepared: Vec<Prepared>,
    workers: Vec<Worker>,
    waiting: Waiting,
}

impl Memory {
    /// What the steps of a batch use: the weights, one worker for each thread, and room for micro-batches that wait. Each thread packs small
    /// weights for itself when it needs them, which is faster than to fetch them from another.
    fn parts<'a>(
        &'a mut self,
        network: &Network,
        params: &'a [f32],
        threads: usize,
    ) -> (Packed<'a>, &'a mut [Worker], &'a mut Waiting) {
        let room = self.workers.len().max(threads);
        self.workers.resize_with(room, Worker::default);
        let workers = &mut self.workers[..threads];
        workers.iter_mut().for_each(Worker::begin);
        let common = (network.param_len() > OWN_WEIGHTS).then(|| {
            network.prepare(params, threads, &mut self.prepared);
            &self.prepared[..]
        });
        (Packed { params, common }, workers, &mut self.waiting)
    }
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
}

impl ClippedSum {
    /// `batch_cap` is public: the expected batch and a generous tail. Larger batches are slower, and as private.
    pub fn new(network: &Network, clip: Clip, grid: f64, batch_cap: u32) -> Result<Self> {
        let least = Least {
            norm: clip.norm_upper(),
            units: units(network, &clip, grid)?,
        };
        Self::for_least(network, clip, grid, batch_cap, least)
    }

    /// The same for a clip norm that moves, and grids that are as far below it: made for every norm that passes, or refused for all of them.
    pub fn moving(network: &Network, clip: Clip, grid: f64, batch_cap: u32) -> Result<Self> {
        let least = Least {
            norm: power_of_two_below(*NORMS.start()),
            units: power_of_two_below(units(network, &clip, grid)?),
        };
        Self::for_least(network, clip, grid, batch_cap, least)
    }

    fn for_least(
        network: &Network,
        clip: Clip,
        grid: f64,
        batch_cap: u32,
        least: Least,
    ) -> Result<Self> {
        let cap = (batch_cap as usize).clamp(1, BATCH_MAX);
        let slots = network.slots_for(cap);
        let micro_batches = Cut::new(network, slots, cap).micro_batches;
        let (chain, chains) = network.chains(slots);
        let error = Rounding {
            chain,
            chains,
            carries: (micro_batches + 1).max(BATCH_MAX / (PART_MAX / 2)),
            cap,
            parameters: network.param_len(),
            norm: least.norm,
            // Exact: of one norm it is its grid, and of powers of two a power of two.
            grid: least.norm / least.units,
        }
        .error_upper();
        let share = round::div_up(2.0 * error, least.norm);
        let margin = round::sub_down(1.0, share);
        if margin.is_nan() || margin < MARGIN_MIN {
            let cap = batch_cap;
            return Err(NetworkError::Rounding { cap, share });
        }
        Ok(Self {
            clip,
            grid,
            batch_cap: cap,
            slots,
            margin,
            least,
            shape: network.shape(cap),
        })
    }

    /// The same for another clip norm: of one that [moves](Self::moving), any that passes, on the grid that is as far below it. The margin stays.
    pub fn with_clip(&self, network: &Network, clip: Clip, grid: f64) -> Result<Self> {
        let (norm, units) = (clip.norm_upper(), units(network, &clip, grid)?);
        if norm < self.least.norm || units < self.least.units {
            let what = "a clip norm that moves";
            return Err(NetworkError::OutOfRange { what, given: norm });
        }
        Ok(Self {
            clip,
            grid,
            ..*self
        })
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
        if network.shape(self.batch_cap) != self.shape {
            return Err(NetworkError::OtherNetwork);
        }
        let examples = batch.rows.len();
        if examples > BATCH_MAX {
            return Err(NetworkError::Batch { max: BATCH_MAX });
        }
        if ![0, examples].contains(&batch.seeds.len()) {
            return Err(NetworkError::Seeds);
        }
        let threads = threads.clamp(1, THREADS_MAX);
        let (weights, workers, waiting) = memory.parts(network, params, threads);
        let step = Step {
            network,
            slots: self.slots,
            weights,
            batch,
            factors: |worker: &mut Worker| {
                network.square_norms(&mut worker.buffers);
                worker.clip(&self.clip, self.margin, network);
            },
        };
        buffer.resize(network.param_len(), 0);
        if examples <= self.batch_cap {
            step.narrow(workers, waiting, &mut buffer, |sums, partial, fresh| {
                carry(partial, f64::from, self.grid, sums, fresh);
            });
        } else {
            let mut fresh = true;
            step.wide(&mut workers[0], PART_MAX, |partial| {
                carry([partial, &[]], |x| x, self.grid, &mut buffer, fresh);
                fresh = false;
            });
        }
        let below = workers.iter().map(|worker| worker.below).sum();
        Ok(Summed {
            sum: Secret::new(buffer),
            below: Secret::new(below),
        })
    }
}

/// The clip norm in units of the grid, which is exact. Refuses a clip for other layers, and what is no grid of that norm.
fn units(network: &Network, clip: &Clip, grid: f64) -> Result<f64> {
    let (given, layers) = (clip.layers(), network.trained_layers());
    if let Some(given) = given.filter(|&given| given != layers) {
        return Err(NetworkError::Norms { given, layers });
    }
    let units = clip.norm_upper() / grid;
    let power_of_two = grid.is_normal() && grid > 0.0 && grid.to_bits() << 12 == 0;
    if !power_of_two || !(1024.0..=137_438_953_472.0).contains(&units) {
        let what = "the step of the grid";
        return Err(NetworkError::OutOfRange { what, given: grid });
    }
    Ok(units)
}

/// The largest power of two that is at most a positive normal float.
fn power_of_two_below(x: f64) -> f64 {
    f64::from_bits(x.to_bits() >> 52 << 52)
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
    let (weights, workers, waiting) = memory.parts(network, params, 1);
    let step = Step {
        network,
        slots: network.slots(),
        weights,
        batch,
        factors: |worker: &mut Worker| {
            let buffers = &mut worker.buffers;
            network.form(buffers);
            let factors = network.trained_layers() * buffers.examples;
            buffers.factors.clear();
            buffers.factors.resize(factors, 1.0);
        },
    };
    gradient.resize(network.param_len(), 0.0);
    step.narrow(
        workers,
        waiting,
        gradient,
        |sums, [first, second], fresh| {
            if fresh {
                sums.copy_from_slice(first);
            } else {
                add(sums, first);
            }
            add(sums, second);
        },
    );
    Ok(())
}

fn add(sums: &mut [f32], more: &[f32]) {
    sums.iter_mut().zip(more).for_each(|(sum, x)| *sum += x);
}

#[cfg(test)]
#[path = "clipped_sum_test.rs"]
mod tests;

#[cfg(test)]
#[path = "clipped_sum/joint_test.rs"]
mod joint_tests;

#[cfg(test)]
#[path = "clipped_sum/worst_test.rs"]
mod worst_tests;

#[cfg(test)]
#[path = "clipped_sum/hostile_test.rs"]
mod hostile_tests;
