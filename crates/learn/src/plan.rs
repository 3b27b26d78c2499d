//! # The plan of a run
//! How examples are drawn, how far each is clipped, how much noise is added and how often: fixed together, before any data is read, with
//! the one [`Event`] that they imply. A [`Plan`] alone makes the [`Sampler`] and the [`Noise`] of its run, so what is done cannot drift
//! from what is paid for.
//!
//! **Guarantee.** Whoever sees all noisy sums of a run, and with them every model on the way, sees what the plan's event describes: it is
//! `(epsilon_upper, delta)`-DP for the plan's relation.
//! *Requires*, of whoever sums: an example adds a vector of L2 norm at most the clip norm `C` to the sum of its batch, errors of the
//! arithmetic included, as a function of itself and of the parameters alone; sums are whole multiples of the [grid](Plan::grid) `g`. An example
//! is all that a privacy unit has: of units with several examples, each example is protected, and no unit. Of one [`Payment`] there is one
//! [sampler](Plan::sampler), so that a plan is run once for each time that it was paid for.
//! *Proof.* In units of `g`, sums of samples that differ in one example are at most `C/g` apart, or `2C/g` if it is replaced, and leaving it
//! out moves them half as far. [`Noise`] adds rounded Gaussian noise of scale `zC/g` to integers, which is post-processing of Gaussian noise.
//! So each step is the event's inner mechanism, on samples of the event's sampling, with queries that depend on the answers before. Dividing by a
//! public number and everything an optimizer does are post-processing. Where the clip norm moves, a step is the pair in `plan/adaptive.rs`.
//!
//! **Normaliser.** Sums are divided by the *expected* batch size, from the declared number of examples: the size of a batch is secret, and under
//! add/remove so is the number of examples.

mod adaptive;
mod calibrate;
mod noise;
mod parts;

use serde::Serialize;
use whit_accounting::{Bracket, epsilon};
use whit_core::{Delta, Event, Mechanism, Neighbours, Probability, Ratio, Sampling};

use crate::clip::AdaptiveQuantile;
use crate::draft::{Draft, NoiseDraft};
use crate::error::{Error, Result};
use crate::payment::Payment;
use crate::sampler::Sampler;
use calibrate::{Priced, by_price, calibrate, lower};
use parts::{ClipUnits, Parts};

pub use noise::{Both, Noise};

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

impl Plan {
    /// Checks, calibrates if an epsilon was asked for, and prices. Reads no data.
    pub fn new(draft: &Draft) -> Result<Self> {
        let (sampling, delta) = draft.check()?;
        let parts = Parts::new(draft, sampling)?;
        // A pair of sum and count costs what the multiplier that they add up to costs, so that is what is searched for.
        let plain = Parts {
            adaptive: None,
            ..parts.clone()
        };
        let of = |multiplier: f64| plain.event(multiplier, parts.steps);
        let priced = |multiplier: f64| -> Result<Priced> {
            let event = parts.event(multiplier, parts.steps)?;
            let bounds = epsilon(&event, delta)?.bounds;
            Ok((event, bounds))
        };
        let (noise_multiplier, (event, epsilon)) = match draft.noise {
            NoiseDraft::Multiplier(given) => (given, priced(given)?),
            NoiseDraft::Epsilon(given) => match parts.sampling {
                Sampling::Poisson { .. } => {
                    let found = calibrate(given, delta, of, priced)?;
                    lower(given, found, priced)
                }
                Sampling::BallsInBins { .. } => by_price(given, priced)?,
                _ => calibrate(given, delta, of, priced)?,
            },
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
        self.parts.clip.norm
    }

    /// The step of the grid that sums are on: a power of two. Where the clip norm moves, that of the first step.
    pub fn grid(&self) -> f64 {
        self.parts.clip.grid()
    }

    /// The step of the grid that goes with another clip norm: as far below it, so that noise and rounding have the same share in it.
    pub fn grid_of(&self, norm: f64) -> Result<f64> {
        Ok(ClipUnits::new(norm)?.grid())
    }

    /// The clip norm of the first step, and how it moves; `None` if it stays.
    pub fn adaptive(&self) -> Result<Option<AdaptiveQuantile>> {
        let moves = |adaptive: &adaptive::Adaptive| {
            AdaptiveQuantile::new(self.clip_norm(), adaptive.quantile, adaptive.rate)
        };
        Ok(self.parts.adaptive.as_ref().map(moves).transpose()?)
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
        self.parts.rate()
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

    /// Draws the batches of this run from `examples` examples. Uses the payment up: of one, there is one sampler. Of a run that was taken up
    /// again it draws the steps that were not begun; an epoch that was begun is not begun again.
    pub fn sampler(&self, examples: usize, payment: Payment) -> Result<Sampler> {
        let run = self.event.fingerprint();
        let begun = payment.use_up(&run)?;
        let Parts {
            sampling, steps, ..
        } = &self.parts;
        let sampler = Sampler::new(sampling, self.examples_public, examples, *steps, begun)?;
        Ok(sampler.of(run))
    }

    /// The noise of each step.
    pub fn noise(&self) -> Result<Noise> {
        let run = self.event.fingerprint();
        Noise::new(&self.parts, self.noise_multiplier, run)
    }

    /// The guarantee as an event: that the run is `(epsilon_upper, delta)`-DP, and nothing else. It covers the run, since that was proven of
    /// it. For budgets that add up something in which a sample costs as much as everybody, as concentrated losses do.
    pub fn guarantee(&self) -> Result<Event> {
        let exact = |value: f64| Ratio::from_f64(value).ok_or(Error::Unbound);
        let guarantee = Mechanism::Approximate {
            epsilon: exact(self.epsilon.upper())?,
            delta: Probability::new(exact(self.delta.value())?)?,
        };
        Ok(Event::new(self.parts.relation, guarantee))
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
            sampler: self.parts.word(),
            relation: self.parts.relation,
            clip_norm: self.clip_norm(),
            expected_batch: self.expected_batch(),
            adaptive: self.parts.adaptive.as_ref().and_then(|adaptive| {
                Some(AdaptiveSummary {
                    quantile: adaptive.quantile,
                    clip_rate: adaptive.rate,
                    count_noise: adaptive.count_noise,
                    sum_noise_multiplier: adaptive.pair(self.noise_multiplier).ok()?.sum,
                })
            }),
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
    /// How the clip norm moves, if it does. The noise multiplier above is that of sum and count together.
    #[serde(flatten)]
    pub adaptive: Option<AdaptiveSummary>,
}

/// A clip norm that moves, in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AdaptiveSummary {
    /// The share of gradients that are to be below the clip norm.
    pub quantile: f64,
    /// How fast it moves.
    pub clip_rate: f64,
    /// The noise of the number of gradients below it.
    pub count_noise: f64,
    /// The noise of the sum, over the clip norm.
    pub sum_noise_multiplier: f64,
}

#[cfg(test)]
#[path = "plan_test.rs"]
mod tests;
