//! # Who takes part in a step
//! One [`Sampler`] per run, made by its [`Plan`](crate::plan::Plan) and for its steps alone: each draw is one that was paid for, and
//! after the last there is none. Coins come from a fresh stream of [`Entropy`] for each draw, and never from the data.
//!
//! - *Poisson*: each example by its own coin, in `poisson.rs`.
//! - *Fixed size*: the first places of a partial Fisher-Yates shuffle. From any order, place `i` gets a uniform choice among those not yet
//!   placed, so the set is uniform whatever the order was, and independent of all earlier ones.
//! - *Balls in bins*: each example draws its bin for the epoch.
//! - *Cyclic*: each example draws its bin once, and bins are visited in turn. So it takes part in every `bins`-th step and in no other, whoever asks.
//! - *Shuffled*: a whole Fisher-Yates shuffle for each epoch, cut into batches whose sizes differ by at most one and follow from
//!   public numbers.
//! - *All*: everybody.
//!
//! **What a batch may show.** Under add/remove its size and its members are secret: a [`Batch`] can be neither printed nor compared, and what is
//! computed from it must leave through a mechanism.

use std::sync::atomic::{AtomicU64, Ordering};

use whit_core::{Bits, Entropy, Neighbours, Sampling};
use whit_mechanism::sample::uniform_below;

use crate::error::{Error, Result, within};
use crate::poisson::Coins;

/// The numbers of the examples of one step, each at most once. Not even its length may be shown.
#[must_use = "a batch that is drawn is a step that was paid for"]
pub struct Batch {
    rows: Vec<u32>,
    run: Fingerprint,
    sampler: u64,
    step: u64,
}

/// That of the event of a run, and of its pattern where that is not in the event: a batch is paid for by one, and only the noise of that one
/// releases it.
pub(crate) type Fingerprint = [u8; 32];

impl Batch {
    /// The numbers. Whoever calls this owns the guarantee: only what sums clipped contributions in secret should.
    pub fn expose(&self) -> &[u32] {
        &self.rows
    }

    /// The run that paid for it.
    pub(crate) fn run(&self) -> &Fingerprint {
        &self.run
    }

    /// The number of the sampler that drew it, of all in this process.
    pub(crate) fn sampler(&self) -> u64 {
        self.sampler
    }

    /// The number of its step, from zero.
    pub(crate) fn step(&self) -> u64 {
        self.step
    }
}

/// How many samplers there were in this process.
static SAMPLERS: AtomicU64 = AtomicU64::new(0);

/// Draws the batches of one run.
pub struct Sampler {
    kind: Kind,
    rows: u32,
    steps: u64,
    taken: u64,
    run: Fingerprint,
    number: u64,
}

enum Kind {
    Poisson(Coins),
    /// All examples in the order that the last draw left, and how many are drawn.
    FixedSize {
        order: Vec<u32>,
        size: usize,
    },
    /// The bins and examples of this epoch that are left, the next bin last.
    BallsInBins {
        bins: u64,
        left: Vec<(u64, u32)>,
    },
    /// The bins of all examples, once they are drawn, the first bin last.
    Cyclic {
        bins: u64,
        thrown: Option<Vec<(u64, u32)>>,
    },
    /// The order of this epoch.
    Shuffled {
        batches: u64,
        order: Vec<u32>,
    },
    All,
}

impl Sampler {
    /// For `rows` examples, of `steps` steps the ones after `taken`. Only plans make samplers.
    pub(crate) fn new(
        sampling: &Sampling,
        declared: u64,
        rows: usize,
        steps: u64,
        taken: u64,
    ) -> Result<Self> {
        let rows = numbered(rows)?;
        let public = || {
            if u64::from(rows) == declared {
                return Ok(());
            }
            Err(Error::OtherNumberOfExamples {
                declared,
                relation: Neighbours::ReplaceOne,
            })
        };
        let kind = match sampling {
            Sampling::Poisson { rate } => Kind::Poisson(Coins::new(rate)),
            Sampling::FixedSize { size, of } => {
                public()?;
                within(
                    "batch size",
                    *size as f64,
                    size <= of,
                    "at most the number of examples",
                )?;
                Kind::FixedSize {
                    order: (0..rows).collect(),
                    size: usize::try_from(*size).unwrap_or(usize::MAX),
                }
            }
            Sampling::BallsInBins { bins } => {
                whole_epochs(taken, *bins)?;
                Kind::BallsInBins {
                    bins: *bins,
                    left: Vec::new(),
                }
            }
            Sampling::Shuffled { batches } => {
                public()?;
                whole_epochs(taken, *batches)?;
                Kind::Shuffled {
                    batches: *batches,
                    order: (0..rows).collect(),
                }
            }
            Sampling::All => Kind::All,
            unknown => {
                return Err(whit_accounting::Error::UnknownMechanism {
                    mechanism: format!("{unknown:?}"),
                }
                .into());
            }
        };
        Ok(Self::of_kind(kind, rows, steps, taken))
    }

    /// The same for examples in bins that are visited in turn. It is begun with the run, or after whole epochs of so many steps.
    pub(crate) fn cyclic(
        bins: u64,
        rows: usize,
        steps: u64,
        taken: u64,
        epoch: u64,
    ) -> Result<Self> {
        whole_epochs(taken, epoch)?;
        let kind = Kind::Cyclic { bins, thrown: None };
        Ok(Self::of_kind(kind, numbered(rows)?, steps, taken))
    }

    fn of_kind(kind: Kind, rows: u32, steps: u64, taken: u64) -> Self {
        Self {
            kind,
            rows,
            steps,
            taken,
            run: Fingerprint::default(),
            number: SAMPLERS.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// The same, whose batches are those of this run.
    pub(crate) fn of(self, run: Fingerprint) -> Self {
        Self { run, ..self }
    }

    /// How many steps were taken, those before this sampler was made included.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// The batch of the next step. Refused once all steps of the plan were taken.
    pub fn draw(&mut self, entropy: &mut impl Entropy) -> Result<Batch> {
        if self.taken >= self.steps {
            return Err(Error::StepsTaken { steps: self.steps });
        }
        let mut bits = entropy.open()?;
        let rows = self.draw_from(&mut bits);
        let step = self.taken;
        self.taken += 1;
        Ok(Batch {
            rows,
            run: self.run,
            sampler: self.number,
            step,
        })
    }

    fn draw_from<B: Bits>(&mut self, bits: &mut B) -> Vec<u32> {
        let (rows, taken) = (self.rows, self.taken);
        match &mut self.kind {
            Kind::Poisson(coins) => coins.draw(rows, bits),
            Kind::FixedSize { order, size } => {
                place(order, *size, bits);
                order.iter().copied().take(*size).collect()
            }
            Kind::BallsInBins { bins, left } => {
                let bin = taken % *bins;
                if bin == 0 {
                    *left = throw(rows, *bins, bits);
                }
                let behind = left.partition_point(|&(other, _)| other > bin);
                left.drain(behind..).map(|(_, row)| row).collect()
            }
            Kind::Cyclic { bins, thrown } => {
                let thrown = thrown.get_or_insert_with(|| throw(rows, *bins, bits));
                let bin = taken % *bins;
                let begin = thrown.partition_point(|&(other, _)| other > bin);
                let own = thrown[begin..].iter();
                let own = own.take_while(|&&(other, _)| other == bin);
                own.map(|&(_, row)| row).collect()
            }
            Kind::Shuffled { batches, order } => {
                let batch = taken % *batches;
                if batch == 0 {
                    let all = order.len();
                    place(order, all, bits);
                }
                let cut = |batch: u64| {
                    let share = u128::from(batch) * u128::from(rows) / u128::from(*batches);
                    share as usize
                };
                order[cut(batch)..cut(batch + 1)].to_vec()
            }
            Kind::All => (0..rows).collect(),
        }
    }
}

fn numbered(rows: usize) -> Result<u32> {
    let most = u32::MAX;
    u32::try_from(rows).map_err(|_| Error::TooManyExamples { most })
}

fn whole_epochs(taken: u64, epoch: u64) -> Result<()> {
    if epoch > 0 && taken.is_multiple_of(epoch) {
        return Ok(());
    }
    Err(Error::MiddleOfEpoch { taken, epoch })
}

/// Puts a uniform choice of `size` examples, in a uniform order, into the first places.
fn place<B: Bits>(order: &mut [u32], size: usize, bits: &mut B) {
    let all = order.len();
    for first in 0..size.min(all) {
        let left = (all - first) as u64;
        let chosen = first + uniform_below(left, bits) as usize;
        order.swap(first, chosen);
    }
}

/// Each example with a uniform bin, the first bin last. Takes no memory for bins, of which a plan may have many more than examples.
fn throw<B: Bits>(rows: u32, bins: u64, bits: &mut B) -> Vec<(u64, u32)> {
    let mut thrown: Vec<(u64, u32)> = (0..rows)
        .map(|row| (uniform_below(bins, bits), row))
        .collect();
    thrown.sort_unstable_by(|a, b| b.cmp(a));
    thrown
}

#[cfg(test)]
#[path = "sampler_test.rs"]
mod tests;
