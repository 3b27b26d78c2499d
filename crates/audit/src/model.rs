//! Numbers that are no bounds without an assumption, and say which.
//!
//! A [`ModelBound`] holds if the mechanism is of the shape that it names; an [`Estimate`] is a number near which the truth may lie. Neither has a
//! method that compares it with a claim: verdicts rest on [`EpsilonBound`](crate::EpsilonBound), which assumes nothing.

use whit_core::Delta;

use crate::Alpha;
use crate::interval::bisect;

/// At most the true epsilon, with known confidence, *if* the mechanism is what the model says.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct ModelBound {
    epsilon_lower: f64,
    delta: Delta,
    alpha: Alpha,
    model: String,
}

impl ModelBound {
    /// The epsilon at `delta` of a mechanism whose curve is at least `delta_lower_at` (epsilon to delta, falling): what a
    /// fit of that curve found, at level `alpha`.
    pub fn of_curve(
        model: impl Into<String>,
        delta: Delta,
        alpha: Alpha,
        delta_lower_at: impl Fn(f64) -> f64,
    ) -> Self {
        let above = |epsilon: f64| delta_lower_at(epsilon) > delta.value();
        let epsilon_lower = if above(0.0) {
            bisect(0.0, 700.0, above).0
        } else {
            0.0
        };
        Self {
            epsilon_lower,
            delta,
            alpha,
            model: model.into(),
        }
    }

    /// The bound.
    pub fn epsilon_lower(&self) -> f64 {
        self.epsilon_lower
    }

    /// At this delta.
    pub fn delta(&self) -> Delta {
        self.delta
    }

    /// How often a bound made this way holds, at least, if the model does.
    pub fn confidence(&self) -> f64 {
        self.alpha.confidence()
    }

    /// What is assumed.
    pub fn model(&self) -> &str {
        &self.model
    }
}

/// A number without a guarantee, and where most of its resamples lie.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Estimate {
    /// Of all the data.
    pub value: f64,
    /// Below this lies the lower share of the resamples that was asked for,
    pub low: f64,
    /// and above this the upper one.
    pub high: f64,
    /// How it was made.
    pub method: &'static str,
}
