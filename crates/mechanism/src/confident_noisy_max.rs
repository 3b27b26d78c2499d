//! # Confident Gaussian noisy max
//! **Definition.** For each query of a stream: if `max_i n_i + N(0, σ₁²) >= T`, tell the first class of the largest `n_i + N(0, σ₂²)`, with fresh noise; else tell
//!   nothing. *Interactive*: the test is `max_i (n_i - b_i) + N(0, σ₁²) >= T` for a public baseline `b`, such as the student's own opinion times
//!   the number of voters. After `N` tests or `A` answers, both public and fixed beforehand, the stream halts. [PSM+18, Alg. 1 and 2]
//! **Requires.** As for [`GaussianNoisyMax`]. Queries and baselines may depend on all answers before.
//! **Guarantee.** `μ`-GDP with `μ² = N/σ₁² + 2A/σ₂²`, whatever is asked. Queries without an answer spend none of `A`.
//! **Proof.** 1. *A test.* A vote that moves changes two of the `n_i - b_i` by one each, one up and one down, so their largest by at most 1. The test is a function of it with
//!    noise `N(0, σ₁²)`: `1/σ₁`-GDP. An answer is `√2/σ₂`-GDP (`gaussian_noisy_max.rs`).
//! 2. *A small shift is a function of the largest one.* Let `|x-x'| = d <= Δ`. From `Y`, which is `N(0, 1)` or `N(Δ/σ, 1)`, and `Z ~ N(0, 1)` of its own,
//!    `(d/Δ)Y + √(1-d²/Δ²) Z` is `N(0, 1)` or `N(d/σ, 1)`; times `σ`, and moved to `x` in the direction of `x'`, it is the noisy number of the one neighbour or the other. In more
//!    dimensions, take that direction as the first axis, and independent noise for the others.
//! 3. *The stream.* Fix two neighbours and who asks. Let somebody hold `N` draws of `N(h/σ₁, 1)` and `A` draws of `N(h√2/σ₂, 1)`, all independent, where `h` is 0 or 1. He can play the stream
//!    of one neighbour or the other without knowing which: knowing all that was told so far, he knows the next query, and both neighbours' votes on it; he takes the *next unused* draw of the
//!    kind he needs, and step 2 makes the noisy number of it. Unused draws are independent of all that was told, given `h`, so each answer has the right law. He never needs
//!    more than `N` and `A`, since the stream halts. So the transcript is a function of one Gaussian vector and coins, whose two laws are `√(N/σ₁² + 2A/σ₂²)` apart. ∎
//!    (When and how often he answers depends on private votes. That is no matter: which draws he uses does, how many he holds does not.)
//! **Cost.** [`event`](ConfidentNoisyMax::event) is that of the whole stream, and is paid before the first vote is looked at. Each answer carries what was done for it.
//! **Sampler.** Exact, in steps of `2^-32` votes, as are threshold and baseline.

use std::marker::PhantomData;

use whit_core::{Entropy, Event, Mechanism, Ratio, Relation, Sampling, Scale, Secret};

use crate::gaussian_noisy_max::{GaussianNoisyMax, STEPS_PER_VOTE, in_steps};
use crate::{Error, Release, Result, sample};

/// How much a stream may do, fixed beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// How many queries may be tested.
    pub tests: u64,
    /// How many may be answered.
    pub answers: u64,
}

/// Tells the class with most votes where voters agree.
pub struct ConfidentNoisyMax<R: Relation> {
    /// In steps, rounded up.
    threshold: i64,
    scale: Scale,
    noise: sample::RoundedGaussian,
    maximum: GaussianNoisyMax<R>,
}

impl<R: Relation> ConfidentNoisyMax<R> {
    /// Noise of standard deviation `scale` on the test, in votes, as is the threshold.
    pub fn new(threshold: &Ratio, scale: Scale, maximum: GaussianNoisyMax<R>) -> Result<Self> {
        let steps = threshold * &Ratio::from(STEPS_PER_VOTE.unsigned_abs());
        // A threshold beyond the integers is one that nobody passes.
        let threshold = i64::try_from(steps.ceil()).unwrap_or(i64::MAX);
        Ok(Self {
            threshold,
            noise: sample::RoundedGaussian::new(&in_steps(&scale)?),
            scale,
            maximum,
        })
    }

    fn test(&self) -> Mechanism {
        Mechanism::Gaussian {
            scale: self.scale.clone(),
            sensitivity_l2_square: Ratio::one(),
        }
    }

    /// What an accountant needs to know of a whole stream, whatever will be asked and answered.
    pub fn event(&self, caps: Caps) -> Event {
        let steps = |steps: u64, inner: Mechanism| Mechanism::Sampled {
            sampling: Sampling::All,
            steps,
            inner: Box::new(inner),
        };
        let parts = vec![
            steps(caps.tests, self.test()),
            steps(caps.answers, self.maximum.mechanism()),
        ];
        Event::new(R::NEIGHBOURS, Mechanism::Composition(parts))
    }

    /// Spends one `event` of these caps, and waits for queries.
    pub fn start(self, caps: Caps) -> ConfidentStream<R> {
        ConfidentStream {
            mechanism: self,
            caps,
            left: caps,
            relation: PhantomData,
        }
    }
}

/// A stream that has started.
pub struct ConfidentStream<R: Relation> {
    mechanism: ConfidentNoisyMax<R>,
    caps: Caps,
    left: Caps,
    relation: PhantomData<fn() -> R>,
}

impl<R: Relation> ConfidentStream<R> {
    /// What the whole stream spends.
    pub fn event(&self) -> Event {
        self.mechanism.event(self.caps)
    }

    /// How much is left.
    pub fn left(&self) -> Caps {
        self.left
    }

    /// Whether no more can be asked.
    pub fn is_halted(&self) -> bool {
        self.left.tests == 0 || self.left.answers == 0
    }

    /// Tests the votes on one query, in [`steps`](crate::gaussian_noisy_max::steps), and tells the winner or nothing. Refused, and nothing is looked at, once
    /// the stream has halted.
    pub fn ask(
        &mut self,
        votes: Secret<Vec<i64>>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Option<usize>>> {
        self.ask_beyond(votes, &[], entropy)
    }

    /// The same, tested against a public baseline, in steps; what is missing of it is zero.
    pub fn ask_beyond(
        &mut self,
        votes: Secret<Vec<i64>>,
        baseline: &[i64],
        entropy: &mut impl Entropy,
    ) -> Result<Release<Option<usize>>> {
        if self.is_halted() {
            return Err(Error::Halted {
                answers: self.caps.answers,
            });
        }
        // Spent before anything is drawn: what fails later is paid.
        self.left.tests -= 1;
        let mut votes = votes.expose();
        votes.resize(self.mechanism.maximum.classes(), 0);
        let beyond = votes
            .iter()
            .zip(baseline.iter().chain(std::iter::repeat(&0)));
        let largest = beyond
            .map(|(votes, baseline)| votes.saturating_sub(*baseline))
            .max();
        let mut noisy = [largest.unwrap_or(0)];
        self.mechanism
            .noise
            .add_to(&mut noisy, &mut entropy.open()?);
        let tested = Event::new(R::NEIGHBOURS, self.mechanism.test());
        if noisy[0] < self.mechanism.threshold {
            return Ok(Release::new(None, tested));
        }
        self.left.answers -= 1;
        let told = self
            .mechanism
            .maximum
            .release(Secret::new(votes), entropy)?;
        let event = tested.and(told.event().clone())?;
        Ok(Release::new(Some(told.into_value()), event))
    }
}

#[cfg(test)]
#[path = "confident_noisy_max_test.rs"]
mod tests;
