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
//! A cyclic run is one Gaussian mechanism, by `plan/factor.rs`: its event holds how far one example moves all releases together, with the turns that the sampler gives it.
//!
//! **Normaliser.** Sums are divided by the *expected* batch size, from the declared number of examples: the size of a batch is secret, and under
//! add/remove so is the number of examples.

mod adaptive;
pub(crate) mod calibrate;
mod correlated;
mod factor;
mod noise;
mod parts;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use whit_accounting::{Bracket, epsilon};
use whit_core::{Delta, Event, Mechanism, Neighbours, Probability, Ratio, Sampling, round};

use crate::clip::AdaptiveQuantile;
use crate::draft::{Draft, NoiseDraft};
use crate::error::{Error, Result};
use crate::payment::Payment;
use crate::sampler::{Fingerprint, Sampler};
use calibrate::{Found, by_price, calibrate, lower};
use parts::{ClipUnits, Parts, Turns};

pub use correlated::Correlated;
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
        let (pattern, delta) = draft.check()?;
        let parts = Parts::new(draft, pattern)?;
        // A pair of sum and count costs what the multiplier that they add up to costs, so that is what is searched for.
        let plain = Parts {
            adaptive: None,
            ..parts.clone()
        };
        let of = |multiplier: f64| plain.event(multiplier, parts.steps);
        let priced = |multiplier: f64| -> Result<Found> {
            let event = parts.event(multiplier, parts.steps)?;
            let bounds = epsilon(&event, delta)?.bounds;
            Ok((event, bounds))
        };
        let (noise_multiplier, (event, epsilon)) = match draft.noise {
            NoiseDraft::Multiplier(given) => (given, priced(given)?),
            NoiseDraft::Epsilon(given) => match parts.turns {
                Turns::Sampled(Sampling::Poisson { .. }) => {
                    let found = calibrate(given, delta, of, priced)?;
                    lower(given, found, priced)
                }
                Turns::Sampled(Sampling::BallsInBins { .. }) => by_price(given, priced)?,
                _ => calibrate(given, delta, of, priced)?,
            },
        };
        if let Turns::Cyclic(cyclic) = &parts.turns {
            cyclic.check_noise(noise_multiplier)?;
        }
        Ok(Self {
            event,
            parts,
            noise_multiplier,
            delta,
            epsilon,
            examples_public: draft.examples_public,
        })
    }

    /// The event that a draft with a noise multiplier implies, without its price.
    pub(crate) fn event_of(draft: &Draft) -> Result<Event> {
        let (pattern, _) = draft.check()?;
        let parts = Parts::new(draft, pattern)?;
        match draft.noise {
            NoiseDraft::Multiplier(given) => parts.event(given, parts.steps),
            NoiseDraft::Epsilon(_) => Err(Error::Unbound),
        }
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
        batch_cap(self.expected_batch())
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
        let begun = payment.use_up(&self.event.fingerprint())?;
        let Parts { turns, steps, .. } = &self.parts;
        let sampler = match turns {
            Turns::Sampled(sampling) => {
                Sampler::new(sampling, self.examples_public, examples, *steps, begun)
            }
            Turns::Cyclic(cyclic) => {
                let epoch = cyclic.epoch(*steps);
                Sampler::cyclic(cyclic.bins, examples, *steps, begun, epoch)
            }
        };
        Ok(sampler?.of(self.run()))
    }

    /// The noise of each step. Cyclic runs have none, but a [stream](Self::correlated).
    pub fn noise(&self) -> Result<Noise> {
        match self.parts.turns {
            Turns::Sampled(_) => Noise::new(&self.parts, self.noise_multiplier, self.run()),
            Turns::Cyclic(_) => Err(Error::Unbound),
        }
    }

    /// What releases the sums of a cyclic run; `None` for others.
    pub fn correlated(&self) -> Result<Option<Correlated>> {
        let Turns::Cyclic(cyclic) = &self.parts.turns else {
            return Ok(None);
        };
        let (multiplier, steps) = (self.noise_multiplier, self.parts.steps);
        let encoded = self.parts.encoded(cyclic, multiplier, steps)?;
        let stream = Correlated::new(cyclic, encoded, self.parts.relation, self.run());
        Ok(Some(stream))
    }

    /// Refuses a model of so many parameters, if the noise of a cyclic run would have to remember more of it than a public bound.
    pub fn check_memory(&self, parameters: usize) -> Result<()> {
        match &self.parts.turns {
            Turns::Sampled(_) => Ok(()),
            Turns::Cyclic(cyclic) => cyclic.check_memory(parameters, self.parts.steps),
        }
    }

    /// The unit of what a step releases: the [grid](Self::grid), or a part of it.
    pub fn release_unit(&self) -> f64 {
        match &self.parts.turns {
            Turns::Sampled(_) => self.grid(),
            Turns::Cyclic(cyclic) => self.grid() / f64::from(1_u32 << cyclic.bits()),
        }
    }

    /// How many steps belong together in a run that is kept: what deals examples to them is secret, and so not kept.
    pub(crate) fn epoch(&self) -> u64 {
        match &self.parts.turns {
            Turns::Sampled(
                Sampling::BallsInBins { bins: count } | Sampling::Shuffled { batches: count },
            ) => *count,
            Turns::Sampled(_) => 1,
            Turns::Cyclic(cyclic) => cyclic.epoch(self.parts.steps),
        }
    }

    /// Bins and band of a cyclic run: the event holds only how far they bring neighbours apart.
    pub(crate) fn turns(&self) -> Option<[u64; 2]> {
        match &self.parts.turns {
            Turns::Sampled(_) => None,
            Turns::Cyclic(cyclic) => Some([cyclic.bins, cyclic.band()]),
        }
    }

    /// What batches and noise of this plan know each other by: the event, and whatever of the turns is not in it. Of two plans with one event, the batches of
    /// one must not be released by the other.
    fn run(&self) -> Fingerprint {
        let event = self.event.fingerprint();
        let Some([bins, band]) = self.turns() else {
            return event;
        };
        let mut hash = Sha256::new_with_prefix(event);
        for number in [bins, band, self.parts.steps] {
            hash.update(number.to_le_bytes());
        }
        hash.finalize().into()
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
            cyclic: match &self.parts.turns {
                Turns::Sampled(_) => None,
                Turns::Cyclic(cyclic) => Some(CyclicSummary {
                    bins: cyclic.bins,
                    band: cyclic.band(),
                    participations: cyclic.participations(self.parts.steps),
                    sensitivity: round::sqrt_up(
                        cyclic.sensitivity_square(self.parts.steps).to_f64_up(),
                    ),
                }),
            },
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
    /// How turns are taken and noise is correlated, if it is. The noise multiplier above is that of one release.
    #[serde(flatten)]
    pub cyclic: Option<CyclicSummary>,
}

/// A cyclic run, in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CyclicSummary {
    /// How many steps an epoch has.
    pub bins: u64,
    /// How many steps a release holds; 0 for a tree.
    pub band: u64,
    /// How often one example takes part, at most.
    pub participations: u64,
    /// How far one example moves all releases together, in clip norms.
    pub sensitivity: f64,
}

impl CyclicSummary {
    /// For people: names and values.
    pub fn words(&self) -> [(&'static str, String); 4] {
        let band = match self.band {
            0 => "a tree".into(),
            steps => steps.to_string(),
        };
        [
            ("steps of an epoch", self.bins.to_string()),
            ("steps whose noise is correlated", band),
            (
                "turns of one example, at most",
                self.participations.to_string(),
            ),
            (
                "sensitivity of the run, in clip norms",
                self.sensitivity.to_string(),
            ),
        ]
    }
}

/// A clip norm that moves, in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
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

/// Ten standard deviations above the expected size of a batch, and some.
pub(crate) fn batch_cap(expected: f64) -> u32 {
    (expected + 10.0 * expected.sqrt() + 32.0).ceil() as u32
}

#[cfg(test)]
#[path = "plan_test.rs"]
mod tests;
