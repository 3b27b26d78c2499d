//! Who is charged, and where they stand.

use std::fmt;

use crate::Result;
use crate::budget::{Cap, Sums};

/// One of the levels that a charge is counted at, each within the one before.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Level {
    /// All answers about the data set, to anybody.
    Dataset,
    /// All answers to one team.
    Team(String),
    /// All answers to one analyst.
    Analyst(String),
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dataset => f.write_str("dataset"),
            Self::Team(name) => write!(f, "team {name}"),
            Self::Analyst(name) => write!(f, "analyst {name}"),
        }
    }
}

/// Who is charged: a data set, and within it a team and an analyst where these are named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    dataset: String,
    team: Option<String>,
    analyst: Option<String>,
}

/// Longest name of a data set, team or analyst, in bytes. Names are stored with every charge.
const NAME_BYTES_MAX: usize = 128;

impl Account {
    /// The data set alone.
    pub fn new(dataset: &str) -> Result<Self> {
        Ok(Self {
            dataset: name("dataset", dataset)?,
            team: None,
            analyst: None,
        })
    }

    /// The same within a team.
    pub fn team(mut self, team: &str) -> Result<Self> {
        self.team = Some(name("team", team)?);
        Ok(self)
    }

    /// The same for an analyst.
    pub fn analyst(mut self, analyst: &str) -> Result<Self> {
        self.analyst = Some(name("analyst", analyst)?);
        Ok(self)
    }

    /// The data set's name.
    pub fn dataset(&self) -> &str {
        &self.dataset
    }

    /// The levels that are charged, the data set first.
    pub fn levels(&self) -> Vec<Level> {
        let mut levels = vec![Level::Dataset];
        levels.extend(self.team.clone().map(Level::Team));
        levels.extend(self.analyst.clone().map(Level::Analyst));
        levels
    }
}

fn name(what: &'static str, given: &str) -> Result<String> {
    let fits = (1..=NAME_BYTES_MAX).contains(&given.len());
    if fits && !given.chars().any(char::is_control) {
        Ok(given.to_owned())
    } else {
        let given = format!("{given:?}");
        let domain = "a name of 1 to 128 bytes without control characters";
        Err(whit_core::Error::OutOfDomain {
            what,
            given,
            domain,
        }
        .into())
    }
}

/// Where a level stands: what it may spend, if anybody said so, and what it has.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// The level.
    pub level: Level,
    /// Its cap. Only the data set must have one.
    pub cap: Option<Cap>,
    /// The sums of all entries at this level.
    pub spent: Sums,
}
