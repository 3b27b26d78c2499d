//! # What somebody wants
//! The numbers of a plan as they come from outside. They are checked once, here, and a refusal says what would pass.

use whit_core::{Delta, Neighbours, Probability, Ratio, Sampling};

use crate::error::{Error, Result, within};

/// No run has more steps than this, so that all counts are exact everywhere.
const STEPS_MAX: u64 = 1 << 40;
/// Within these, gradients in single precision keep their digits.
pub(crate) const CLIP_RANGE: &str = "a number from 1e-9 to 1e9";
/// More than this promises nothing, and the search for its noise is slow: seconds at 1e4, minutes at 1e5.
const EPSILON_MAX: f64 = 1e4;
/// Less noise protects nobody, and more leaves nothing to learn.
pub(crate) const NOISE_RANGE: &str = "a number from 0.001 to 1e6";

/// What a plan is made of, not yet checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// How examples are drawn.
    pub sampler: SamplerDraft,
    /// How many steps.
    pub steps: u64,
    /// The L2 norm that each example's gradient is clipped to.
    pub clip_norm: f64,
    /// Set if that norm is only the first, and follows a quantile from there.
    pub adaptive: Option<AdaptiveDraft>,
    /// How much noise; where the norm moves, of sum and count together.
    pub noise: NoiseDraft,
    /// The slack of the guarantee.
    pub delta: f64,
    /// Whom the guarantee protects.
    pub relation: Neighbours,
    /// A number of examples that is public: under replace-one the true one, under add/remove any, such as a rounded one.
    pub examples_public: u64,
}

/// How examples are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum SamplerDraft {
    /// Each by its own coin in each step.
    Poisson {
        /// The probability.
        rate: f64,
    },
    /// A uniform set of this size in each step.
    FixedSize {
        /// How many.
        size: u64,
    },
    /// Each in one step of each epoch, by its own coin.
    BallsInBins {
        /// How many steps an epoch has.
        bins: u64,
    },
    /// Each in every `bins`-th step, from one that it draws by its own coin. Nothing is amplified; noise is correlated between steps instead, so
    /// that it cancels in sums of steps.
    Cyclic {
        /// How many steps an epoch has.
        bins: u64,
        /// How noise is correlated.
        factor: FactorDraft,
    },
    /// A shuffled data set, cut into batches. No amplification is proven: this costs much more than the others.
    Shuffled {
        /// How many steps an epoch has.
        batches: u64,
    },
    /// Everybody in each step.
    All,
}

/// How noise is correlated between steps.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum FactorDraft {
    /// Each release holds the sums of the last steps, with falling weights.
    Banded {
        /// How many steps: 1 is independent noise.
        band: u64,
    },
    /// Sums of 1, 2, 4, … steps.
    Tree,
}

/// Who takes part in which step, checked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Pattern {
    /// Drawn at each step or epoch.
    Sampled(Sampling),
    /// In turn.
    Cyclic { bins: u64, factor: FactorDraft },
}

impl SamplerDraft {
    /// How likely an example is in a step, about: what plans are made from says it exactly.
    pub fn rate(&self, examples_public: u64) -> f64 {
        match *self {
            Self::Poisson { rate } => rate,
            Self::FixedSize { size } => size as f64 / examples_public.max(1) as f64,
            Self::BallsInBins { bins: count }
            | Self::Cyclic { bins: count, .. }
            | Self::Shuffled { batches: count } => 1.0 / count.max(1) as f64,
            Self::All => 1.0,
        }
    }

    /// The relation under which this is usually asked for.
    pub fn relation(&self) -> Neighbours {
        match self {
            Self::FixedSize { .. } | Self::Shuffled { .. } => Neighbours::ReplaceOne,
            Self::Poisson { .. } | Self::BallsInBins { .. } | Self::Cyclic { .. } | Self::All => {
                Neighbours::AddRemove
            }
        }
    }
}

/// How much noise, or how little privacy loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NoiseDraft {
    /// The standard deviation over the clip norm.
    Multiplier(f64),
    /// The least noise that keeps this epsilon.
    Epsilon(f64),
}

/// A clip norm that follows a quantile of the gradients' norms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaptiveDraft {
    /// The share of gradients that are to be below the norm.
    pub quantile: f64,
    /// How fast it moves: by a factor of at most about `exp(rate)` in a step.
    pub rate: f64,
    /// The standard deviation of the noise on the number of gradients below it.
    pub count_noise: f64,
}

/// A whole number that is at least one.
fn counted(what: &'static str, given: u64) -> Result<()> {
    let range = "a whole number from 1 to 2^40";
    within(what, given as f64, (1..=STEPS_MAX).contains(&given), range)
}

impl Draft {
    /// The sampling and the slack, once all numbers are in their ranges. Which sampler is priced for which relation, the accountant says.
    pub(crate) fn check(&self) -> Result<(Pattern, Delta)> {
        counted("steps", self.steps)?;
        counted("n_public", self.examples_public)?;
        let clips = (1e-9..=1e9).contains(&self.clip_norm);
        within("clip", self.clip_norm, clips, CLIP_RANGE)?;
        let slack = self.delta > 0.0 && self.delta < 1.0;
        within("delta", self.delta, slack, "a number above 0 and below 1")?;
        match self.noise {
            NoiseDraft::Multiplier(given) => {
                let passes = (1e-3..=1e6).contains(&given);
                within("noise_multiplier", given, passes, NOISE_RANGE)?;
            }
            NoiseDraft::Epsilon(given) => {
                let passes = given > 0.0 && given <= EPSILON_MAX;
                let range = "a number above 0 and at most 10000, or noise_multiplier for less noise than that asks for";
                within("epsilon", given, passes, range)?;
            }
        }
        Ok((self.pattern()?, Delta::new(self.delta)?))
    }

    fn pattern(&self) -> Result<Pattern> {
        Ok(Pattern::Sampled(match self.sampler {
            SamplerDraft::Cyclic { bins, factor } => {
                counted("bins", bins)?;
                // Sums of several steps are released together, and a norm that moves would be another one in each.
                if self.adaptive.is_some() {
                    return Err(Error::Word {
                        field: "clipping",
                        given: "adaptive".into(),
                        passes: "\"flat\", \"per_layer\" or \"automatic\" with a cyclic sampler",
                    });
                }
                return Ok(Pattern::Cyclic { bins, factor });
            }
            SamplerDraft::Poisson { rate } => {
                let refused = Error::OutOfRange {
                    what: "rate",
                    given: rate,
                    range: "a number above 0 and at most 1",
                };
                // The float itself is the rate, to its last digit.
                let exact = Ratio::from_f64(rate).filter(|rate| !rate.is_zero());
                let exact = exact.and_then(|exact| Probability::new(exact).ok());
                Sampling::Poisson {
                    rate: exact.ok_or(refused)?,
                }
            }
            SamplerDraft::FixedSize { size } => {
                let passes = (1..=self.examples_public).contains(&size);
                let range = "a whole number from 1 to n_public";
                within("batch size", size as f64, passes, range)?;
                Sampling::FixedSize {
                    size,
                    of: self.examples_public,
                }
            }
            SamplerDraft::BallsInBins { bins } => {
                counted("bins", bins)?;
                Sampling::BallsInBins { bins }
            }
            SamplerDraft::Shuffled { batches } => {
                counted("batches", batches)?;
                Sampling::Shuffled { batches }
            }
            SamplerDraft::All => Sampling::All,
        }))
    }
}
