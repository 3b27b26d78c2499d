//! Why no price or no scale was given, and what would pass.

use thiserror::Error as ThisError;
use whit_core::{Fault, FaultKind};

/// A refusal to price or to calibrate. All values are public parameters.
#[derive(Clone, Debug, PartialEq, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// A number is no unit, such as a noise scale beyond its ends.
    #[error(transparent)]
    Unit(#[from] whit_core::Error),
    /// Noise was asked for where no unit can change the answer.
    #[error("the sensitivity is zero, so there is nothing to protect")]
    NothingToProtect,
    /// A target that no finite noise reaches.
    #[error("{what} is zero, which no finite noise reaches")]
    ZeroTarget {
        /// Which of the target's numbers.
        what: &'static str,
    },
    /// Randomized response among fewer than two values.
    #[error("randomized response over {categories} categories has nothing to choose from")]
    TooFewCategories {
        /// How many there were.
        categories: u64,
    },
    /// A parameter of a step that is out of its range.
    #[error("{step}: {what} is {found}; it must be {range}")]
    OutOfRange {
        /// The step's name.
        step: &'static str,
        /// The parameter.
        what: &'static str,
        /// What was given.
        found: f64,
        /// What would pass.
        range: &'static str,
    },
    /// A sampler or mechanism that is not priced for this neighbour relation.
    #[error("{step} is not priced under {neighbours}; it is under {passes}")]
    Mismatch {
        /// The step's name.
        step: &'static str,
        /// The relation of the composition.
        neighbours: whit_core::Neighbours,
        /// The relation that would pass, and why.
        passes: &'static str,
    },
    /// No theorem here gives what a group sees of this step.
    #[error("{step} has no proven price for groups of several units")]
    GroupUnknown {
        /// The step's name.
        step: &'static str,
    },
    /// A composition of nothing.
    #[error("there is no mechanism to account for")]
    Empty,
    /// No engine proves a bound for this composition.
    #[error("no engine here prices {what} together with the other steps")]
    NoEngine {
        /// What stands in the way.
        what: &'static str,
    },
    /// A notion of privacy that this mechanism does not satisfy with any finite parameter.
    #[error("{mechanism} has no finite {notion} by itself")]
    NoGuarantee {
        /// The mechanism's name.
        mechanism: String,
        /// The notion, such as `pure epsilon`.
        notion: &'static str,
    },
    /// A mechanism that protects nobody under this neighbour relation.
    #[error("{mechanism} is not private under {neighbours}")]
    WrongRelation {
        /// The mechanism's name.
        mechanism: String,
        /// The relation of the event.
        neighbours: whit_core::Neighbours,
    },
    /// A mechanism that is newer than this accountant. There is no default price.
    #[error("{mechanism} is not known to this accountant")]
    UnknownMechanism {
        /// The mechanism's name.
        mechanism: String,
    },
    /// A concentrated loss was to be turned into an epsilon without slack.
    #[error("a concentrated loss of rho {rho} has no epsilon at delta 0")]
    NeedsDelta {
        /// The loss.
        rho: f64,
    },
    /// The loss is infinite, or too large for any statement.
    #[error("no {what} can be proven")]
    Unbounded {
        /// What has no bound, in words.
        what: &'static str,
    },
    /// The sampler is too far from the meant distribution for the delta at hand.
    #[error(
        "a sampler {total_variation:e} away from the meant distribution does not fit into delta {delta:e}"
    )]
    TooCoarse {
        /// The total-variation distance, over all parts together.
        total_variation: f64,
        /// The delta that was asked for.
        delta: f64,
        /// A delta that passes for this distance; none if it is one or more.
        delta_passing: f64,
        /// A distance that passes for this delta.
        total_variation_passing: f64,
    },
    /// Parts that have a delta themselves need more than there is, or leave nothing to other parts that need some.
    #[error(
        "parts with a delta of their own, {delta_parts:e} together, leave no room within delta {delta:e}"
    )]
    NoRoom {
        /// What these parts need together.
        delta_parts: f64,
        /// The delta that was asked for.
        delta: f64,
        /// A delta that passes for the whole; none is offered if it is one or more.
        delta_passing: f64,
    },
    /// The target needs more noise than the largest scale.
    #[error("no noise scale up to 2^96 reaches epsilon {epsilon:e} at delta {delta:e}")]
    OutOfReach {
        /// The asked epsilon.
        epsilon: f64,
        /// The asked delta.
        delta: f64,
    },
    /// A calibrated parameter failed its own check.
    #[error("the calibrated {what} misses its target; please report this")]
    Unverified {
        /// Which parameter.
        what: &'static str,
    },
}

/// Short for a result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

impl Fault for Error {
    fn kind(&self) -> FaultKind {
        match self {
            Self::Unit(error) => error.kind(),
            Self::NothingToProtect
            | Self::ZeroTarget { .. }
            | Self::TooFewCategories { .. }
            | Self::OutOfRange { .. }
            | Self::Empty => FaultKind::Invalid,
            Self::NoGuarantee { .. }
            | Self::Mismatch { .. }
            | Self::GroupUnknown { .. }
            | Self::NoEngine { .. }
            | Self::WrongRelation { .. }
            | Self::UnknownMechanism { .. }
            | Self::NeedsDelta { .. }
            | Self::Unbounded { .. }
            | Self::TooCoarse { .. }
            | Self::NoRoom { .. }
            | Self::OutOfReach { .. } => FaultKind::Refused,
            Self::Unverified { .. } => FaultKind::Bug,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Unit(error) => error.code(),
            Self::NothingToProtect => "nothing_to_protect",
            Self::ZeroTarget { .. } => "zero_target",
            Self::TooFewCategories { .. } => "too_few_categories",
            Self::OutOfRange { .. } => "out_of_range",
            Self::Mismatch { .. } => "sampler_mismatch",
            Self::GroupUnknown { .. } => "group_unknown",
            Self::Empty => "empty_composition",
            Self::NoEngine { .. } => "no_engine",
            Self::NoGuarantee { .. } => "no_guarantee",
            Self::WrongRelation { .. } => "wrong_relation",
            Self::UnknownMechanism { .. } => "unknown_mechanism",
            Self::NeedsDelta { .. } => "needs_delta",
            Self::Unbounded { .. } => "unbounded_loss",
            Self::TooCoarse { .. } => "sampler_too_coarse",
            Self::NoRoom { .. } => "no_room_for_delta",
            Self::OutOfReach { .. } => "out_of_reach",
            Self::Unverified { .. } => "unverified_calibration",
        }
    }

    fn suggestion(&self) -> String {
        match self {
            Self::Unit(error) => error.suggestion(),
            Self::NothingToProtect => {
                "release the value as it is, or give the sensitivity it really has".into()
            }
            Self::ZeroTarget { what } => format!("give {what} as a number above zero"),
            Self::TooFewCategories { .. } => "name at least two categories".into(),
            Self::OutOfRange { what, range, .. } => format!("give {what} as {range}"),
            Self::Mismatch { passes, .. } => format!("ask under {passes}"),
            Self::GroupUnknown { .. } => {
                "ask for one unit, or for steps that are Gaussian, Laplace, discrete or pure".into()
            }
            Self::Empty => "name at least one mechanism".into(),
            Self::NoEngine { .. } => "account for it by itself and add the costs".into(),
            Self::WrongRelation { .. } => {
                "use it under replace-one, where it is public who reports".into()
            }
            Self::NoGuarantee { .. } | Self::NeedsDelta { .. } => {
                "price the event at a delta above zero, such as 1e-6".into()
            }
            Self::UnknownMechanism { .. } => {
                "price this event with the version of whit that wrote it, or a later one".into()
            }
            Self::Unbounded { what } if what.contains("group") => {
                "a smaller epsilon, delta or group would pass: epsilon times the size of the group must stay a number, and its delta below one"
                    .into()
            }
            Self::Unbounded { .. } => {
                "add more noise; randomized response needs a keep probability above 0 and below 1"
                    .into()
            }
            Self::TooCoarse {
                delta_passing,
                total_variation_passing,
                ..
            } => {
                let sample =
                    format!("sample within {total_variation_passing:e} of the meant distribution");
                if *delta_passing < 1.0 {
                    format!("{sample}, or ask for a delta of {delta_passing:e} or more")
                } else {
                    sample
                }
            }
            Self::NoRoom { delta_passing, .. } => {
                let fewer = "have fewer parts with a delta of their own, or smaller deltas in them";
                if *delta_passing < 1.0 {
                    format!("ask for a delta of {delta_passing:e} or more, or {fewer}")
                } else {
                    fewer.into()
                }
            }
            Self::OutOfReach { .. } => {
                "ask for a larger epsilon or delta, or lower the sensitivity".into()
            }
            Self::Unverified { .. } => "report this together with the target".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_word() {
        let unit = Error::from(whit_core::Error::NotANumber { what: "epsilon" });
        assert_eq!(
            (unit.kind(), unit.code()),
            (FaultKind::Invalid, "not_a_number")
        );
        assert_eq!(Error::NothingToProtect.kind(), FaultKind::Invalid);
        assert_eq!(Error::NeedsDelta { rho: 1.0 }.kind(), FaultKind::Refused);
        assert_eq!(Error::Unverified { what: "scale" }.kind(), FaultKind::Bug);
    }

    #[test]
    fn a_delta_of_one_is_never_suggested() {
        let coarse = |delta_passing| Error::TooCoarse {
            total_variation: 0.1,
            delta: 1e-6,
            delta_passing,
            total_variation_passing: 1e-9,
        };
        assert!(coarse(0.5).suggestion().contains("delta"));
        assert!(!coarse(1.0).suggestion().contains("delta"));
        assert!(!coarse(f64::INFINITY).suggestion().contains("delta"));
        let no_room = |delta_passing| Error::NoRoom {
            delta_parts: 1e-5,
            delta: 1e-6,
            delta_passing,
        };
        assert!(
            no_room(2e-5)
                .suggestion()
                .starts_with("ask for a delta of 2e-5 or more")
        );
        assert!(!no_room(1.0).suggestion().contains("ask"));
        assert!(!no_room(f64::INFINITY).suggestion().contains("ask"));
    }
}
