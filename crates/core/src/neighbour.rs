//! Neighbour relations: which pairs of data sets a guarantee speaks of.
//!
//! Both are at the level of the *privacy unit* the data owner declared (a person, a household, one row): neighbours differ
//! in all that one unit contributed.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A neighbour relation at run time, as events and records carry it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Neighbours {
    /// One unit is in one data set and not in the other. The number of units is secret.
    AddRemove,
    /// One unit's contribution is replaced by another. The number of units is public.
    ReplaceOne,
}

impl fmt::Display for Neighbours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AddRemove => "add/remove",
            Self::ReplaceOne => "replace-one",
        })
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::AddRemove {}
    impl Sealed for super::ReplaceOne {}
}

/// A neighbour relation at compile time, so that sensitivities of different relations do not mix.
pub trait Relation: sealed::Sealed + Copy + fmt::Debug + Send + Sync + 'static {
    /// The same relation at run time.
    const NEIGHBOURS: Neighbours;

    /// The value that goes with this relation. Having to give both, nobody can forget one.
    fn pick<T>(add_remove: T, replace_one: T) -> T;
}

/// One unit is present or absent.
#[derive(Clone, Copy, Debug)]
pub struct AddRemove;

/// One unit is replaced by another.
#[derive(Clone, Copy, Debug)]
pub struct ReplaceOne;

impl Relation for AddRemove {
    const NEIGHBOURS: Neighbours = Neighbours::AddRemove;

    fn pick<T>(add_remove: T, _: T) -> T {
        add_remove
    }
}

impl Relation for ReplaceOne {
    const NEIGHBOURS: Neighbours = Neighbours::ReplaceOne;

    fn pick<T>(_: T, replace_one: T) -> T {
        replace_one
    }
}
