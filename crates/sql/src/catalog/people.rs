//! Teams and analysts: who may ask, and what each may spend of the data set's budget.
//!
//! These caps ration the promise of the data set among people. Against people who talk to each other only the data set's own
//! cap holds, so nothing here is needed for a guarantee.

use std::collections::BTreeMap;

use whit_core::{Delta, Epsilon};

use super::{read, record};
use crate::error::{Error, Result, catalog, refused};

/// Who is declared. Where nobody is, anybody may ask under any name.
#[derive(Clone, Debug, Default)]
pub struct People {
    teams: BTreeMap<String, (Epsilon, Delta)>,
    analysts: BTreeMap<String, Analyst>,
}

#[derive(Clone, Debug)]
struct Analyst {
    team: Option<String>,
    cap: Option<(Epsilon, Delta)>,
}

/// What somebody may spend.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Promise<'a> {
    /// A team.
    Team(&'a str, Epsilon, Delta),
    /// An analyst.
    Analyst(&'a str, Epsilon, Delta),
}

impl People {
    pub(super) fn read(
        teams: &BTreeMap<String, record::Team>,
        analysts: &BTreeMap<String, record::Analyst>,
        dataset: Delta,
    ) -> Result<Self> {
        // Without a delta of its own, nobody is rationed below that of the data set.
        let cap = |epsilon, delta: Option<f64>| -> Result<(Epsilon, Delta)> {
            let delta = delta.map(Delta::new).transpose()?.unwrap_or(dataset);
            Ok((read::budget(epsilon)?, delta))
        };
        let mut people = Self::default();
        for (name, team) in teams {
            let cap = cap(team.epsilon, team.delta)?;
            people.teams.insert(name.clone(), cap);
        }
        for (name, analyst) in analysts {
            let unknown = |team: &&String| !teams.contains_key(*team);
            if let Some(team) = analyst.team.as_ref().filter(unknown) {
                return Err(catalog(
                    "unknown_team",
                    format!("analyst {name} is in the team {team}, which is not declared"),
                    format!("add [team.{team}] with its epsilon, or take `team` out"),
                ));
            }
            if analyst.epsilon.is_none() && analyst.delta.is_some() {
                return Err(catalog(
                    "delta_without_epsilon",
                    format!("analyst {name} has a delta and no epsilon"),
                    "give both, or neither",
                ));
            }
            let cap = analyst.epsilon.map(|epsilon| cap(epsilon, analyst.delta));
            let analyst = Analyst {
                team: analyst.team.clone(),
                cap: cap.transpose()?,
            };
            people.analysts.insert(name.clone(), analyst);
        }
        Ok(people)
    }

    /// The team of whoever asks. Where analysts are declared, it must be one of them.
    pub fn team_of(&self, analyst: Option<&str>) -> Result<Option<&str>> {
        if self.analysts.is_empty() {
            return Ok(None);
        }
        let found = analyst.and_then(|name| self.analysts.get(name));
        match found {
            Some(analyst) => Ok(analyst.team.as_deref()),
            None => Err(self.unknown(analyst)),
        }
    }

    /// Every cap below that of the data set.
    pub fn promises(&self) -> impl Iterator<Item = Promise<'_>> {
        let teams = self.teams.iter();
        let teams = teams.map(|(name, &(epsilon, delta))| Promise::Team(name, epsilon, delta));
        let analysts = self.analysts.iter().filter_map(|(name, analyst)| {
            let (epsilon, delta) = analyst.cap?;
            Some(Promise::Analyst(name, epsilon, delta))
        });
        teams.chain(analysts)
    }

    fn unknown(&self, analyst: Option<&str>) -> Error {
        let reason = match analyst {
            Some(name) => format!("the catalog knows no analyst {name:?}"),
            None => "the catalog declares analysts, and nobody is named".into(),
        };
        refused(
            "unknown_analyst",
            reason,
            "name a declared analyst, or let the owner add [analyst.NAME] to the catalog",
        )
    }
}
