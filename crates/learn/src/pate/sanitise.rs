//! # Publishing what a run cost at its votes
//! The data-dependent cost is private. With noise in proportion to its smooth sensitivity it may be published: an estimate without bias, never a charge, at a price
//! that is part of the run's event. All parameters are public and fixed beforehand; to choose them by the votes, as published tables did, would leak what it hides.
//!
//! **What is released.** At one order `α`: the cost `f` of `whit_accounting::pate::smooth`, as `f + N(0, (σS)²)`; and `ln S + N(0, (βz)²)`, so that everybody can say how wide the noise
//! was. Since `S` is `β`-smooth, `ln S` moves by at most `β`: `1/z`-GDP. The first is priced by `whit_accounting::pate::release`, as `(ε, δ)`; both are in the event.
//!
//! **The estimate.** `ε̂ = f̂ + c(α) + ln(1/δ)/(α-1)`, where `c(α)` is the divergence of both releases: what a Rényi accountant would say of the run *and* its
//! publication. That of the first is by the theorem of `whit_accounting::pate::release`; that of the second is `αΔ²/(2(βz)²)` for a Gaussian whose mean moves by `Δ`, which is one `β` and two roundings: `α/(2z²)`, and next to nothing more. Their noises are independent, and
//! given the votes neither depends on the other, so that divergences add up. The interval has its confidence over the noise: half of what may miss is for `ln S`, half for `f`.

use serde::Serialize;
use whit_accounting::pate::Cost;
use whit_accounting::pate::bound::survival_quantile;
use whit_accounting::pate::release::Release;
use whit_accounting::pate::smooth::{SMOOTHNESS_SLACK, Shape, Smooth, Sum, UNIT};
use whit_core::{
    AddRemove, Confidence, Delta, Entropy, Event, L2, Mechanism, Neighbours, Probability, Ratio,
    Relation, ReplaceOne, Scale, Secret, Sensitivity,
};
use whit_mechanism::{RoundedGaussian, SmoothGaussian, Smoothed};

use super::aggregation::{Outcome, Terms};
use super::votes::Votes;
use crate::{Error, Result};

/// The public parameters of the publication.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sanitise {
    /// The Rényi order `α` at which costs are added up.
    pub order: f64,
    /// The smoothness `β`.
    pub beta: f64,
    /// The noise `σ`, in smooth sensitivities.
    pub sigma: f64,
    /// The noise `z` on the logarithm of the sensitivity, in `β`s.
    pub width_noise: f64,
    /// The delta that is spent on it, part of the whole.
    pub delta: f64,
    /// The slack for which the estimate is told: the whole delta.
    pub delta_told: f64,
    /// How often the interval is to hold the cost.
    pub confidence: f64,
}

/// A cost with noise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sanitised {
    /// An estimate of the data-dependent epsilon, its own publication included.
    pub epsilon: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// How often the interval holds it.
    pub confidence: f64,
    /// The order, which was fixed beforehand.
    pub order: f64,
}

/// Steps to a `β` in which `ln S` is counted.
const STEPS: i64 = 1 << 20;
/// How far neighbours' steps are apart at most: one `β` and two roundings, of the float and of the step.
const STEPS_APART: u64 = (1 << 20) + 2;
/// More noise than this says nothing, and would leave the range of the sampler.
const SIGMA_MAX: f64 = 8192.0;

fn range(what: &'static str, given: f64, holds: bool, range: &'static str) -> Result<()> {
    if holds {
        return Ok(());
    }
    Err(Error::OutOfRange { what, given, range })
}

impl Sanitise {
    fn priced(&self) -> Result<Release> {
        let Self {
            order, beta, sigma, ..
        } = *self;
        range(
            "the sensitivity's smoothness",
            beta,
            (1e-6..=1.0).contains(&beta),
            "from 1e-6 to 1",
        )?;
        range(
            "the noise on the cost",
            sigma,
            (1e-3..=SIGMA_MAX).contains(&sigma),
            "from 0.001 to 8192 sensitivities",
        )?;
        let noise = self.width_noise;
        range(
            "the noise on the width",
            noise,
            (0.1..=1e6).contains(&noise),
            "from 0.1 to 1e6",
        )?;
        let release = Release::new(beta, sigma)?;
        let limit = release.order_limit();
        range(
            "the order of the sanitised cost",
            order,
            order > 1.0 && order < limit,
            "above 1, and below 1/(1 - exp(-2 beta)), where its noise has no divergence",
        )?;
        Ok(release)
    }

    fn cost<R: Relation>(&self) -> Result<SmoothGaussian<R>> {
        let delta = Delta::new(self.delta)?;
        range(
            "the delta of the sanitised cost",
            self.delta,
            self.delta > 0.0,
            "above 0",
        )?;
        let epsilon = self.priced()?.epsilon(delta)?.to_ratio();
        let delta = Ratio::from_f64(self.delta).unwrap_or_else(Ratio::one);
        let cost = Mechanism::Approximate {
            epsilon,
            delta: Probability::new(delta)?,
        };
        let multiplier = Ratio::from_f64(self.sigma).unwrap_or_else(Ratio::one);
        Ok(SmoothGaussian::new(multiplier, cost))
    }

    fn width<R: Relation>(&self) -> Result<RoundedGaussian<R>> {
        let noise = Ratio::from_f64(self.width_noise).unwrap_or_else(Ratio::one);
        let scale = Scale::new(&noise * &Ratio::from(STEPS.unsigned_abs()))?;
        let apart: Sensitivity<L2, R> = Sensitivity::new(Ratio::from(STEPS_APART));
        Ok(RoundedGaussian::new(scale, apart))
    }

    /// What the publication does to the votes.
    pub(super) fn event<R: Relation>(&self) -> Result<Event> {
        self.priced()?;
        Confidence::new(self.confidence)?;
        Ok(self.cost::<R>()?.event().and(self.width::<R>()?.event())?)
    }

    pub(super) fn release(
        &self,
        terms: &Terms,
        votes: &Votes,
        outcome: &Outcome,
        entropy: &mut impl Entropy,
    ) -> Result<Sanitised> {
        match terms.neighbours {
            Neighbours::AddRemove => self.release_for::<AddRemove>(terms, votes, outcome, entropy),
            _ => self.release_for::<ReplaceOne>(terms, votes, outcome, entropy),
        }
    }

    fn release_for<R: Relation>(
        &self,
        terms: &Terms,
        votes: &Votes,
        outcome: &Outcome,
        entropy: &mut impl Entropy,
    ) -> Result<Sanitised> {
        let (cost, steps) = self.noisy::<R>(self.sum(terms, votes, outcome), entropy)?;
        Ok(self.told(cost, steps))
    }

    /// Both numbers with their noise, which may be told.
    fn noisy<R: Relation>(&self, sum: Sum, entropy: &mut impl Entropy) -> Result<(i64, i64)> {
        let Sum { cost, sensitivity } = sum;
        let smoothed = Smoothed {
            value: i64::try_from(cost).unwrap_or(i64::MAX),
            sensitivity,
        };
        let noisy = self.cost::<R>()?.release(Secret::new(smoothed), entropy)?;
        let steps = Secret::new(vec![self.steps(sensitivity)]);
        let width = self.width::<R>()?.release(steps, entropy)?;
        Ok((*noisy.value(), width.value()[0]))
    }

    /// `ln S` in steps, of which a `β` has [`STEPS`]: neighbours' are at most [`STEPS_APART`] apart. Private.
    fn steps(&self, sensitivity: f64) -> i64 {
        // A sensitivity of nothing is one for all votes, and so is what stands for its logarithm.
        match sensitivity > 0.0 {
            true => (whit_core::round::ln_up(sensitivity) / self.beta * STEPS as f64) as i64,
            false => i64::MIN / 2,
        }
    }

    /// The cost of what was told, and its smooth sensitivity. Private.
    pub(super) fn sum(&self, terms: &Terms, votes: &Votes, outcome: &Outcome) -> Sum {
        let cost = Cost {
            test: terms.test,
            sigma: terms.sigma,
        };
        let shape = Shape {
            teachers: usize::try_from(votes.teachers()).unwrap_or(usize::MAX),
            classes: terms.classes,
        };
        let smooth = Smooth::new(cost, shape, self.order);
        let asked: Vec<(Vec<f64>, bool)> = outcome.labels
            [..outcome.tested.min(outcome.labels.len())]
            .iter()
            .enumerate()
            .map(|(query, label)| (votes.floats(query), label.is_some()))
            .collect();
        smooth.sum(
            asked
                .iter()
                .map(|(counts, answered)| (&counts[..], *answered)),
            self.beta,
        )
    }

    /// The divergence `c(α)` of both releases.
    fn own(&self) -> f64 {
        let release = Release::new(self.beta, self.sigma);
        let cost = release.map_or(f64::INFINITY, |release| release.divergence(self.order));
        let apart = STEPS_APART as f64 / (STEPS as f64 * self.width_noise);
        cost + 0.5 * self.order * apart * apart
    }

    /// Post-processing of both noisy numbers.
    fn told(&self, noisy: i64, steps: i64) -> Sanitised {
        let miss = (1.0 - self.confidence) / 4.0;
        let reach = survival_quantile(miss.ln());
        let spread = self.beta * self.width_noise;
        let ln_width = steps as f64 / STEPS as f64 * self.beta;
        // One-sided for the width, two-sided for the noise: a quarter more than is needed for each.
        let width = self.sigma * (ln_width + reach * spread).exp();
        let order = self.order;
        let epsilon = noisy as f64 * UNIT + self.own() - self.delta_told.ln() / (order - 1.0);
        let far = reach * width * UNIT * (1.0 + SMOOTHNESS_SLACK);
        Sanitised {
            epsilon,
            low: (epsilon - far).max(0.0),
            high: epsilon + far,
            confidence: self.confidence,
            order,
        }
    }
}

#[cfg(test)]
#[path = "sanitise_test.rs"]
mod tests;
