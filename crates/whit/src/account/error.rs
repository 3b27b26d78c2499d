//! Why an account has no answer. Everything here is public: parameters, never data.

use thiserror::Error as ThisError;
use whit_core::{Fault, FaultKind};

/// A question to the accountant that cannot be answered.
#[derive(Clone, Debug, PartialEq, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// The accountant refuses the composition, or a number is out of its range.
    #[error(transparent)]
    Accounting(#[from] whit_accounting::Error),
    /// The readable form breaks off or goes wrong.
    #[error("{form:?} goes wrong at letter {place}: {found}")]
    Form {
        /// All of the text.
        form: String,
        /// Where, counted in letters from 1.
        place: usize,
        /// What stands there.
        found: String,
        /// What would pass.
        passes: String,
    },
    /// A mechanism that nobody here knows.
    #[error("there is no mechanism called {name:?}")]
    UnknownMechanism {
        /// The name.
        name: String,
        /// The names that pass.
        known: String,
    },
    /// A parameter that the mechanism does not have.
    #[error("{mechanism} has no parameter called {parameter:?}")]
    UnknownParameter {
        /// The mechanism.
        mechanism: &'static str,
        /// The parameter.
        parameter: String,
        /// The parameters that pass.
        known: String,
    },
    /// A parameter that is needed.
    #[error("{mechanism} needs {parameter}")]
    MissingParameter {
        /// The mechanism.
        mechanism: &'static str,
        /// The parameter, or several of which one will do.
        parameter: &'static str,
    },
    /// A parameter by two names, or two that say the same.
    #[error("{mechanism} has both {first} and {second}")]
    GivenTwice {
        /// The mechanism.
        mechanism: &'static str,
        /// The one.
        first: String,
        /// The other.
        second: String,
    },
    /// A value that is not what is needed.
    #[error("{what} is {found}")]
    WrongValue {
        /// Which field.
        what: String,
        /// What stands there.
        found: String,
        /// What would pass.
        passes: &'static str,
    },
    /// A question with no question mark, or with several.
    #[error("there are {found} unknown parameters where there should be {wanted}")]
    Unknowns {
        /// How many question marks there are.
        found: usize,
        /// How many the question needs.
        wanted: usize,
    },
    /// A parameter that is not searched for.
    #[error("{mechanism}: {parameter} cannot be the unknown one")]
    NotSearched {
        /// The mechanism.
        mechanism: &'static str,
        /// The parameter.
        parameter: &'static str,
    },
    /// It is not clear what is asked for.
    #[error("the query asks for nothing, or for several things: {found}")]
    Query {
        /// What is known in it.
        found: String,
    },
    /// A mechanism for one relation within a case for another.
    #[error("{mechanism} is given under {its}, within a case under {whole}")]
    MixedRelations {
        /// The mechanism.
        mechanism: &'static str,
        /// The relation that stands with it.
        its: String,
        /// The relation of the case.
        whole: String,
    },
    /// Text that is not JSON.
    #[error("this is not JSON: {found}")]
    NotJson {
        /// What the parser says, with line and column.
        found: String,
    },
    /// A key that an object has twice.
    #[error("the key {key:?} stands there twice")]
    KeyTwice {
        /// The key.
        key: String,
    },
    /// A whole number beyond those that floats hold, in the digits in which it was written.
    #[error("{what} is {found}; it must be a whole number up to 2^53")]
    TooLarge {
        /// Which field.
        what: String,
        /// What stands there.
        found: String,
    },
    /// A list of cases without any.
    #[error("there is no case to answer")]
    NoCases,
}

/// Short for a result with this module's error.
pub type Result<T> = std::result::Result<T, Error>;

impl Fault for Error {
    fn kind(&self) -> FaultKind {
        match self {
            Self::Accounting(error) => error.kind(),
            Self::MixedRelations { .. } => FaultKind::Refused,
            _ => FaultKind::Invalid,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Accounting(error) => error.code(),
            Self::Form { .. } => "not_a_form",
            Self::UnknownMechanism { .. } => "unknown_mechanism",
            Self::UnknownParameter { .. } => "unknown_parameter",
            Self::MissingParameter { .. } => "missing_parameter",
            Self::GivenTwice { .. } => "given_twice",
            Self::WrongValue { .. } => "wrong_value",
            Self::Unknowns { .. } => "unknown_count",
            Self::NotSearched { .. } => "not_searched",
            Self::Query { .. } => "unclear_query",
            Self::MixedRelations { .. } => "mixed_relations",
            Self::NotJson { .. } => "not_json",
            Self::KeyTwice { .. } => "key_twice",
            Self::TooLarge { .. } => "out_of_range",
            Self::NoCases => "no_cases",
        }
    }

    fn suggestion(&self) -> String {
        match self {
            Self::Accounting(error) => error.suggestion(),
            Self::Form { passes, .. } => passes.clone(),
            Self::UnknownMechanism { known, .. } => format!("name one of {known}"),
            Self::UnknownParameter { known, .. } => format!("name one of {known}"),
            Self::MissingParameter { parameter, .. } => format!("give {parameter} as a number"),
            Self::GivenTwice { first, second, .. } => format!("give {first} or {second}, not both"),
            Self::WrongValue { passes, .. } => format!("give {passes}"),
            Self::Unknowns { wanted: 0, .. } => {
                "give a number instead of ?, or both epsilon and delta, which calibrates the parameter that is ?"
                    .into()
            }
            Self::Unknowns { .. } => {
                "write ? for the one parameter to be found, such as gaussian(sigma=?)".into()
            }
            Self::NotSearched { .. } => {
                "write ? for a noise scale, a rate, a sensitivity, a loss or a count".into()
            }
            Self::Query { .. } => {
                "give one of delta, epsilon, alpha and fpr; or epsilon and delta with one parameter that is ?"
                    .into()
            }
            Self::MixedRelations { .. } => {
                "ask about each relation in a case of its own; costs under different relations do not add up"
                    .into()
            }
            Self::NotJson { .. } => {
                "give one case, a list of cases or {\"cases\":[…]}, as in {\"mechanisms\":[{\"type\":\"gaussian\",\"sigma\":20,\
                 \"count\":512}],\"query\":{\"delta\":1e-5}}"
                    .into()
            }
            Self::KeyTwice { key } => format!("give {key:?} once: of two, nobody knows which is meant"),
            Self::TooLarge { .. } => "give a whole number up to 2^53 = 9007199254740992".into(),
            Self::NoCases => "give at least one case".into(),
        }
    }
}
