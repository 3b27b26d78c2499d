//! # The plan of a run
//! How examples are drawn, how far each is clipped, how much noise is added and how often: fixed together, before any data is read, with
//! the one [`Event`] that they imply. A [`Plan`] alone makes the [`Sampler`] and the [`Noise`] of its run, so what is done cannot drift
//! from what is paid for.
//!
//! **Guarantee.** Whoever sees all noisy sums of a run, and with them every model on the way, sees what the plan's event describes: it is
//! `(epsilon_upper, delta)`-DP for the plan's relation.
//! *Requires*, of whoever sums: an example adds a vector of L2 norm at most the clip norm `C` to the sum of its batch, errors of the
//! arithmetic included, as a function of itself and of the parameters alone; sums are whole multiples of the [grid](Plan::grid) `g`. An example
//! is all that a privacy unit has: of units with several examples, each example is protected, and no unit. And of one payment, one
//! [sampler](Plan::sampler): whoever makes a second one runs the plan twice.
//! *Proof.* In units of `g`, sums of samples that differ in one example are at most `C/g` apart, or `2C/g` if it is replaced, and leaving it
//! out moves them half as far. [`Noise`] adds rounded Gaussian noise of scale `zC/g` to integers, which is post-processing of Gaussian noise.
//! So each step is the event's inner mechanism, on samples of the event's sampling, with queries that depend on the answers before. Dividing by a
//! public number and everything an optimizer does are post-processing.
//!
//! **Normaliser.** Sums are divided by the *expected* batch size, from the declared number of examples: the size of a batch is secret, and under
//! add/remove so is the number of examples.

use std::num::NonZeroUsize;

use serde::Serialize;
use whit_accounting::target::{Target, least_noise};
use whit_accounting::{Bracket, composition, epsilon};
use whit_core::{
    AddRemove, Delta, Entropy, Event, L2, Mechanism, Neighbours, Ratio, Relation, ReplaceOne,
    Sampling, Scale, Secret, Sensitivity,
};
use whit_mechanism::{Release, RoundedGaussian};

use crate::draft::{CLIP_RANGE, Draft, NOISE_RANGE, NoiseDraft};
use crate::error::{Error, Result};
use crate::sampler::{Batch, Fingerprint, Sampler};

/// A grid step is the clip norm's power of two over this one's: rounding to it is far below the noise, and sums of `2^25` examples are
/// within 64 bits.
const GRID_BITS: i32 = 36;
/// Calibrated noise is rounded up to multiples of `2^-24`: short numbers, for next to no noise.
const NOISE_UNIT: f64 = 16_777_216.0;
/// Noise that no scale holds.
const OUT_OF_REACH: whit_accounting::Error = whit_accounting::Error::NoEngine {
    what: "noise beyond all scales",
};
/// A batch that another plan pays for.
const OTHER_PLAN: whit_accounting::Error = whit_accounting::Error::NoEngine {
    what: "a batch of another plan",
};
/// How often calibrated noise may be raised until the price keeps the target, by a millionth each.
const RAISES: u32 = 8;

/// A checked plan with its price.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    event: Event,
    parts: Parts,
    noise_multiplier: f64,
    delta: Delta,
    epsilon: Bracket,
    examples_public: u64,
}

/// An event and its epsilon.
type Priced = (Event, Bracket);

/// What the event is made of, but for the noise.
#[derive(Clone, Debug, PartialEq)]
struct Parts {
    sampling: Sampling,
    steps: u64,
    clip_norm: f64,
    /// The same in units of the grid.
    clip_units: Ratio,
    /// The grid step is two to this power.
    grid_exponent: i32,
    relation: Neighbours,
}

impl Plan {
    /// Checks, calibrates if an epsilon was asked for, and prices. Reads no data.
    pub fn new(draft: &Draft) -> Result<Self> {
        let (sampling, delta) = draft.check()?;
        let parts = Parts::new(draft, sampling)?;
        let of = |multiplier: f64| parts.event(multiplier, parts.steps);
        let priced = |multiplier: f64| -> Result<Priced> {
            let event = of(multiplier)?;
            let bounds = epsilon(&event, delta)?.bounds;
            Ok((event, bounds))
        };
        let (noise_multiplier, (event, epsilon)) = match draft.noise {
            NoiseDraft::Multiplier(given) => (given, priced(given)?),
            NoiseDraft::Epsilon(given) => calibrate(given, delta, of, priced)?,
        };
        Ok(Self {
            event,
            parts,
            noise_multiplier,
            delta,
            epsilon,
            examples_public: draft.examples_public,
        })
    }

    /// What the whole run does to the data.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// The smallest epsilon at the plan's delta, between proven bounds.
    pub fn epsilon(&self) -> Bracket {
        self.epsilon
    }

    /// The slack.
    pub fn delta(&self) -> Delta {
        self.delta
    }

    /// Whom it protects.
    pub fn relation(&self) -> Neighbours {
        self.parts.relation
    }

    /// How many steps are paid for.
    pub fn steps(&self) -> u64 {
        self.parts.steps
    }

    /// The most that one example may add to a sum, in L2.
    pub fn clip_norm(&self) -> f64 {
        self.parts.clip_norm
    }

    /// The step of the grid that sums are on: a power of two.
    pub fn grid(&self) -> f64 {
        power(self.parts.grid_exponent)
    }

    /// Standard deviation over clip norm.
    pub fn noise_multiplier(&self) -> f64 {
        self.noise_multiplier
    }

    /// The declared number of examples times the rate: what sums are divided by. Public.
    pub fn expected_batch(&self) -> f64 {
        self.rate() * self.examples_public as f64
    }

    /// A size that batches hardly ever exceed, by ten standard deviations and some: public, for whoever sums in floats.
    pub fn batch_cap(&self) -> u32 {
        let expected = self.expected_batch();
        (expected + 10.0 * expected.sqrt() + 32.0).ceil() as u32
    }

    /// How likely an example is in a step, by itself.
    pub fn rate(&self) -> f64 {
        rate(&self.parts.sampling)
    }

    /// What all models up to and including that of step `taken` cost together, at the plan's delta. A statement about a number of steps that
    /// was fixed beforehand: who stops early because of what the models say has spent the whole plan.
    pub fn epsilon_after(&self, taken: u64) -> Result<Bracket> {
        if taken == 0 {
            return Ok(Bracket::ZERO);
        }
        if taken >= self.parts.steps {
            return Ok(self.epsilon);
        }
        let prefix = self.parts.event(self.noise_multiplier, taken)?;
        let found = epsilon(&prefix, self.delta)?.bounds;
        // A part of the run costs no more than all of it, whichever engine says so.
        let upper = found.upper().min(self.epsilon.upper());
        Ok(Bracket::new(found.lower().min(upper), upper))
    }

    /// Draws the batches of this run from `examples` examples.
    pub fn sampler(&self, examples: usize) -> Result<Sampler> {
        self.sampler_after(examples, 0)
    }

    /// The same for a run of which so many steps were taken, lost ones included: a step that is taken twice costs twice. An epoch that was
    /// begun is not begun again: such a run goes on after the *next* multiple of its length, and what was left of it is lost.
    pub fn sampler_after(&self, examples: usize, taken: u64) -> Result<Sampler> {
        let Parts {
            sampling, steps, ..
        } = &self.parts;
        let sampler = Sampler::new(sampling, self.examples_public, examples, *steps, taken)?;
        Ok(sampler.of(self.event.fingerprint()))
    }

    /// The noise of each step.
    pub fn noise(&self) -> Result<Noise> {
        let scale = self.parts.scale(self.noise_multiplier)?;
        let distance = self.parts.distance();
        let either = match self.parts.relation {
            Neighbours::AddRemove => Either::AddRemove(gaussian(scale, distance)),
            // There are no others: the accountant has refused them.
            _ => Either::ReplaceOne(gaussian(scale, distance)),
        };
        Ok(Noise {
            either,
            run: self.event.fingerprint(),
        })
    }

    /// What a dry run shows.
    pub fn summary(&self) -> Summary {
        Summary {
            epsilon_lower: self.epsilon.lower(),
            epsilon_upper: self.epsilon.upper(),
            delta: self.delta.value(),
            noise_multiplier: self.noise_multiplier,
            steps: self.parts.steps,
            rate: self.rate(),
            sampler: match self.parts.sampling {
                Sampling::Poisson { .. } => "poisson",
                Sampling::FixedSize { .. } => "fixed_size",
                Sampling::BallsInBins { .. } => "balls_in_bins",
                Sampling::Shuffled { .. } => "shuffled",
                _ => "all",
            },
            relation: self.parts.relation,
            clip_norm: self.parts.clip_norm,
            expected_batch: self.expected_batch(),
        }
    }
}

/// What a plan promises, in numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// Some run of this description costs no less.
    pub epsilon_lower: f64,
    /// No run of this plan costs more.
    pub epsilon_upper: f64,
    /// The slack.
    pub delta: f64,
    /// Standard deviation over clip norm.
    pub noise_multiplier: f64,
    /// How many steps.
    pub steps: u64,
    /// How likely an example is in a step.
    pub rate: f64,
    /// How examples are drawn.
    pub sampler: &'static str,
    /// Whom it protects.
    pub relation: Neighbours,
    /// The most that one example may add.
    pub clip_norm: f64,
    /// What sums are divided by.
    pub expected_batch: f64,
}

/// Adds the noise of one step. Made by its plan alone; each release uses up a batch of the same plan, and a sampler draws as many of these as
/// steps were paid for.
pub struct Noise {
    either: Either,
    run: Fingerprint,
}

enum Either {
    AddRemove(RoundedGaussian<AddRemove>),
    ReplaceOne(RoundedGaussian<ReplaceOne>),
}

impl Noise {
    /// Spends one step of the plan: the sum of this batch, in units of the grid. Refused for a batch of another plan, whose event says
    /// nothing about this noise.
    pub fn release(
        &self,
        batch: Batch,
        sum: Secret<Vec<i64>>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Vec<i64>>> {
        self.check(batch)?;
        Ok(match &self.either {
            Either::AddRemove(noise) => noise.release(sum, entropy)?,
            Either::ReplaceOne(noise) => noise.release(sum, entropy)?,
        })
    }

    /// The same on several threads.
    pub fn release_on<E: Entropy<Bits: Send>>(
        &self,
        threads: NonZeroUsize,
        batch: Batch,
        sum: Secret<Vec<i64>>,
        entropy: &mut E,
    ) -> Result<Release<Vec<i64>>> {
        self.check(batch)?;
        Ok(match &self.either {
            Either::AddRemove(noise) => noise.release_on(threads, sum, entropy)?,
            Either::ReplaceOne(noise) => noise.release_on(threads, sum, entropy)?,
        })
    }

    /// Uses up the batch. What is compared is public: both are events.
    fn check(&self, batch: Batch) -> Result<()> {
        if *batch.run() == self.run {
            return Ok(());
        }
        Err(OTHER_PLAN.into())
    }
}

fn gaussian<R: Relation>(scale: Scale, distance: Ratio) -> RoundedGaussian<R> {
    RoundedGaussian::new(scale, Sensitivity::<L2, R>::new(distance))
}

impl Parts {
    fn new(draft: &Draft, sampling: Sampling) -> Result<Self> {
        let clip_norm = draft.clip_norm;
        let refused = Error::OutOfRange {
            what: "clip",
            given: clip_norm,
            range: CLIP_RANGE,
        };
        let clip = Ratio::from_f64(clip_norm).ok_or(refused)?;
        let grid_exponent = exponent(clip_norm) - GRID_BITS;
        Ok(Self {
            sampling,
            steps: draft.steps,
            clip_norm,
            clip_units: &clip * &Ratio::power_of_two(-grid_exponent),
            grid_exponent,
            relation: draft.relation,
        })
    }

    /// The noise scale in units of the grid.
    fn scale(&self, multiplier: f64) -> Result<Scale> {
        let refused = Error::OutOfRange {
            what: "noise_multiplier",
            given: multiplier,
            range: NOISE_RANGE,
        };
        let multiplier = Ratio::from_f64(multiplier).ok_or(refused)?;
        Ok(Scale::new(&multiplier * &self.clip_units)?)
    }

    /// How far samples are apart that differ in one example, in units of the grid.
    fn distance(&self) -> Ratio {
        match self.relation {
            Neighbours::AddRemove => self.clip_units.clone(),
            // Also for relations that are not known here, which the accountant refuses.
            _ => &self.clip_units + &self.clip_units,
        }
    }

    fn event(&self, multiplier: f64, steps: u64) -> Result<Event> {
        let distance = self.distance();
        let inner = Mechanism::Gaussian {
            scale: self.scale(multiplier)?,
            sensitivity_l2_square: &distance * &distance,
        };
        let run = Mechanism::Sampled {
            sampling: self.sampling.clone(),
            steps,
            inner: Box::new(inner),
        };
        Ok(Event::new(self.relation, run))
    }
}

/// The least noise whose price keeps the target, a short number. What the search found was tried, and what is rounded up is tried again: its
/// price is the one that counts.
fn calibrate(
    epsilon: f64,
    delta: Delta,
    of: impl Fn(f64) -> Result<Event>,
    priced: impl Fn(f64) -> Result<Priced>,
) -> Result<(f64, Priced)> {
    let compose = |multiplier: f64| match of(multiplier) {
        Ok(event) => composition(&event),
        Err(_) => Err(OUT_OF_REACH),
    };
    let found = least_noise(compose, Target::new(epsilon, delta.value())?)?;
    let mut multiplier = (found.bounds.upper() * NOISE_UNIT).ceil() / NOISE_UNIT;
    for _ in 0..RAISES {
        let price = priced(multiplier)?;
        if price.1.upper() <= epsilon {
            return Ok((multiplier, price));
        }
        multiplier = (multiplier * (1.0 + 1e-6) * NOISE_UNIT).ceil() / NOISE_UNIT;
    }
    let what = "noise_multiplier";
    Err(whit_accounting::Error::Unverified { what }.into())
}

/// How likely an example is in a step, by itself.
fn rate(sampling: &Sampling) -> f64 {
    match sampling {
        Sampling::Poisson { rate } => rate.ratio().to_f64_up(),
        Sampling::FixedSize { size, of } => *size as f64 / *of as f64,
        Sampling::BallsInBins { bins: count } | Sampling::Shuffled { batches: count } => {
            1.0 / *count as f64
        }
        _ => 1.0,
    }
}

/// The exponent of a positive normal float: the largest `e` with `2^e <= value`.
fn exponent(value: f64) -> i32 {
    ((value.to_bits() >> 52) & 0x7ff) as i32 - 1023
}

/// `2^exponent`, for exponents of normal floats.
fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

#[cfg(test)]
#[path = "plan_test.rs"]
mod tests;
