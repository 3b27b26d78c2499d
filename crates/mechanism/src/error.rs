//! What can go wrong in a mechanism, before private data is touched. Afterwards nothing can but a missing source of
//! entropy, and that does not depend on the data.

use thiserror::Error as ThisError;
use whit_core::{EntropyFailure, Fault, FaultKind};

/// A parameter that does not fit, or no entropy.
#[derive(Clone, Debug, PartialEq, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// A unit is out of its domain.
    #[error(transparent)]
    Unit(#[from] whit_core::Error),
    /// No entropy.
    #[error(transparent)]
    Entropy(#[from] EntropyFailure),
    /// The bounds of a range are reversed, equal or not finite.
    #[error("the range {lower:e},{upper:e} is empty, not finite, or beyond what can be told apart")]
    EmptyRange {
        /// The lower bound as given.
        lower: f64,
        /// The upper bound as given.
        upper: f64,
    },
    /// A count that must be at least one (bins, categories, rows per unit) or is too large.
    #[error("{what} is {given}")]
    CountOutOfRange {
        /// What is counted.
        what: &'static str,
        /// The count as given.
        given: u64,
        /// The smallest count that passes.
        min: u64,
        /// The largest count that passes.
        max: u64,
    },
    /// A mean was given noise for a public count, or none for a secret one.
    #[error("the count of this mean is {}", if *public { "public and takes no noise" } else { "secret and needs noise" })]
    CountNoise {
        /// Is the count public?
        public: bool,
    },
    /// Shares of several quantiles that are not in order, or not different.
    #[error("shares do not grow")]
    SharesNotGrowing,
    /// A share with too large a denominator for scores that are whole numbers.
    #[error("a share is no fraction with a denominator up to {max}")]
    ShareTooFine {
        /// The largest denominator that passes.
        max: u64,
    },
    /// What one statistic made of the data was given to the noise of another.
    #[error("these sums are those of another statistic")]
    OtherStatistic,
    /// The constant-time table would be too long.
    #[error("noise of this scale has no constant-time sampler")]
    NoConstantTime,
    /// A stream of queries has given all the answers above its threshold that were paid for.
    #[error("this stream has given all {answers} answers above its threshold that were paid for")]
    Halted {
        /// How many were paid for.
        answers: u64,
    },
}

/// Short for a result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

impl Fault for Error {
    fn kind(&self) -> FaultKind {
        match self {
            Self::Unit(error) => error.kind(),
            Self::EmptyRange { .. }
            | Self::CountOutOfRange { .. }
            | Self::CountNoise { .. }
            | Self::SharesNotGrowing
            | Self::ShareTooFine { .. }
            | Self::OtherStatistic => FaultKind::Invalid,
            Self::NoConstantTime | Self::Halted { .. } => FaultKind::Refused,
            Self::Entropy(_) => FaultKind::Bug,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Unit(error) => error.code(),
            Self::Entropy(_) => "no_entropy",
            Self::EmptyRange { .. } => "empty_range",
            Self::CountOutOfRange { .. } => "count_out_of_range",
            Self::CountNoise { .. } => "count_noise",
            Self::SharesNotGrowing => "shares_not_growing",
            Self::ShareTooFine { .. } => "share_too_fine",
            Self::OtherStatistic => "other_statistic",
            Self::NoConstantTime => "no_constant_time",
            Self::Halted { .. } => "halted",
        }
    }

    fn suggestion(&self) -> String {
        match self {
            Self::Unit(error) => error.suggestion(),
            Self::Entropy(_) => "run where the operating system's random source works".into(),
            Self::EmptyRange { .. } => {
                "give a lower bound that is less than the upper one, both finite".into()
            }
            Self::CountOutOfRange { what, min, max, .. } => {
                format!("give {what} from {min} to {max}")
            }
            Self::CountNoise { public: true } => "give noise for the sum alone".into(),
            Self::CountNoise { public: false } => "give noise for the count too".into(),
            Self::SharesNotGrowing => "give each share once, the smallest first".into(),
            Self::ShareTooFine { .. } => "round the share, to six digits for example".into(),
            Self::OtherStatistic => {
                "release with noise prepared by the statistic that read the data".into()
            }
            Self::NoConstantTime => {
                "coarsen the grid until the scale is at most 256 grid steps".into()
            }
            Self::Halted { .. } => "start a new stream, with a new budget".into(),
        }
    }
}
