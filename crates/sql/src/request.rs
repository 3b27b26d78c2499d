//! What a statement may cost and how much of a unit it may use: units from the door, checked once.

use whit_core::{Delta, Epsilon};

use crate::catalog::{BOUND_MAX, Catalog, EPSILON_MAX};
use crate::error::{Result, refused};

/// The parameters of one statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    epsilon: Epsilon,
    delta: Delta,
    groups_per_unit: Option<u32>,
    rows_per_group: Option<u32>,
}

/// What the analyst said, where he said something.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Asked {
    /// The epsilon of the whole statement.
    pub epsilon: Option<Epsilon>,
    /// The delta of the whole statement.
    pub delta: Option<Delta>,
    /// In how many groups a unit counts.
    pub groups_per_unit: Option<u32>,
    /// How many rows of a unit count in a group.
    pub rows_per_group: Option<u32>,
}

impl Request {
    /// Fills what was not said from the catalog's defaults.
    pub fn new(asked: Asked, catalog: &Catalog) -> Result<Self> {
        let defaults = catalog.defaults();
        let epsilon = asked.epsilon.or(defaults.epsilon);
        let Some(epsilon) = epsilon.map(Epsilon::in_whole_steps) else {
            return Err(refused(
                "epsilon_missing",
                "the statement has no epsilon and the catalog no default",
                "give --epsilon 0.1, for example",
            ));
        };
        if epsilon == Epsilon::ZERO || epsilon.value() > EPSILON_MAX {
            let domain = "a number above 0, up to 1024";
            let given = epsilon.to_string();
            return Err(whit_core::Error::OutOfDomain {
                what: "epsilon",
                given,
                domain,
            }
            .into());
        }
        let groups_per_unit = asked.groups_per_unit.or(defaults.groups_per_unit);
        let rows_per_group = asked.rows_per_group.or(defaults.rows_per_group);
        for (what, given) in [
            ("groups_per_unit", groups_per_unit),
            ("rows_per_group", rows_per_group),
        ] {
            if given.is_some_and(|given| !(1..=BOUND_MAX).contains(&given)) {
                let given = given.unwrap_or_default().to_string();
                let domain = "a whole number from 1 to 4096";
                return Err(whit_core::Error::OutOfDomain {
                    what,
                    given,
                    domain,
                }
                .into());
            }
        }
        Ok(Self {
            epsilon,
            delta: asked.delta.or(defaults.delta).unwrap_or(Delta::ZERO),
            groups_per_unit,
            rows_per_group,
        })
    }

    /// The epsilon of the whole statement.
    pub fn epsilon(&self) -> Epsilon {
        self.epsilon
    }

    /// The delta of the whole statement.
    pub fn delta(&self) -> Delta {
        self.delta
    }

    pub(crate) fn groups_per_unit(&self) -> Option<u32> {
        self.groups_per_unit
    }

    pub(crate) fn rows_per_group(&self) -> Option<u32> {
        self.rows_per_group
    }
}
