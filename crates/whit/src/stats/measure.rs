//! How rows become a secret, and how that is released: one file for each family of statistics.
//!
//! A measure knows its event before it sees data. Its `release` reads the data once and fails only for want of entropy.

mod auto;
mod bounds;
mod count;
mod distinct;
mod histogram;
mod marginals;
mod mean;
mod quantile;
mod ranged;
mod sum;
mod top;
mod variance;

use std::io::Read;

use whit_core::{Confidence, Entropy, Event};
use whit_mechanism::{Bounds, Contribution, Estimate, Release};

use self::auto::Auto;
use self::bounds::Search;
use self::count::Rows;
use self::distinct::Distinct;
use self::marginals::Table;
use self::ranged::Ranged;
use self::top::{CountScores, Top};
use super::input::Input;
use super::target::Target;
use super::{AddedNoise, Range, Request, SearchedRange, Statistic, Value};
use crate::Result;

/// A statistic with its noise, for one neighbour relation.
pub(crate) enum Measure<R: CountScores> {
    Rows(Rows<R>),
    Distinct(Distinct<R>),
    Ranged(Ranged<R>),
    Auto(Auto<R>),
    Search(Search<R>),
    Top(Top<R>),
    Table(Table<R>),
}

/// What came out: the released value and what is told about it.
pub(crate) struct Outcome {
    /// What was done to the data.
    pub(crate) event: Event,
    pub(crate) value: Value,
    pub(crate) noise: Vec<AddedNoise>,
    /// The range that was searched for, if one was.
    pub(crate) range: Option<SearchedRange>,
}

impl Outcome {
    fn new(release: Release<Value>, noise: Vec<AddedNoise>) -> Self {
        Self {
            event: release.event().clone(),
            value: release.into_value(),
            noise,
            range: None,
        }
    }
}

impl<R: CountScores> Measure<R> {
    /// Checks the request. Sees no data and draws no noise.
    pub(crate) fn new(request: &Request, contribution: Contribution) -> Result<Self> {
        let target = Target::new(request)?;
        check_parameters(request)?;
        let column = || request.column.as_deref().unwrap_or_default();
        Ok(match (&request.statistic, request.range) {
            (Statistic::Count, _) => Self::Rows(Rows::new(&target, contribution)?),
            (Statistic::Distinct { .. }, _) => {
                Self::Distinct(Distinct::new(&target, contribution, request)?)
            }
            (Statistic::Bounds, _) => Self::Search(Search::new(&target, contribution)?),
            (Statistic::Mode { categories }, _) => {
                Self::Top(Top::mode(&target, contribution, column(), categories)?)
            }
            (Statistic::Top { k, categories }, _) => {
                Self::Top(Top::new(&target, contribution, column(), categories, *k)?)
            }
            (Statistic::Marginals { columns }, _) => {
                Self::Table(Table::new(&target, contribution, columns)?)
            }
            (statistic, Some(Range::Given(bounds))) => {
                Self::Ranged(Ranged::new(statistic, &target, contribution, bounds)?)
            }
            (statistic, Some(Range::Auto)) => {
                Self::Auto(Auto::new(statistic, target, contribution)?)
            }
            (_, None) => return Err(request.missing("range")),
        })
    }

    /// What the release will do to the data.
    pub(crate) fn event(&self) -> Event {
        match self {
            Self::Rows(measure) => measure.event(),
            Self::Distinct(measure) => measure.event(),
            Self::Ranged(measure) => measure.event(),
            Self::Auto(measure) => measure.event(),
            Self::Search(measure) => measure.event(),
            Self::Top(measure) => measure.event(),
            Self::Table(measure) => measure.event(),
        }
    }

    /// Reads the data and releases. Spends one `event`.
    pub(crate) fn release(
        &self,
        input: &mut Input<impl Read>,
        confidence: Confidence,
        entropy: &mut impl Entropy,
    ) -> Result<Outcome> {
        Ok(match self {
            Self::Rows(measure) => Outcome::new(
                measure.release(input, confidence, entropy)?,
                measure.noise(),
            ),
            Self::Distinct(measure) => Outcome::new(
                measure.release(input, confidence, entropy)?,
                measure.noise(),
            ),
            Self::Ranged(measure) => {
                let release = measure.release(input.numbers(), confidence, entropy)?;
                Outcome::new(release, measure.noise())
            }
            Self::Auto(measure) => measure.release(input, confidence, entropy)?,
            Self::Search(measure) => {
                let found = measure.release(input.numbers(), entropy)?;
                Outcome::new(found.map(bounds::value), measure.noise())
            }
            Self::Top(measure) => {
                Outcome::new(measure.release(input, confidence, entropy)?, Vec::new())
            }
            Self::Table(measure) => Outcome::new(
                measure.release(input, confidence, entropy)?,
                measure.noise(),
            ),
        })
    }
}

/// What every statistic needs must be there, and what it would ignore must not.
fn check_parameters(request: &Request) -> Result<()> {
    let (column, range) = match &request.statistic {
        Statistic::Count | Statistic::Distinct { .. } => (None, Some(false)),
        Statistic::Marginals { .. } => (Some(false), Some(false)),
        Statistic::Bounds | Statistic::Mode { .. } | Statistic::Top { .. } => {
            (Some(true), Some(false))
        }
        _ => (Some(true), Some(true)),
    };
    let check = |needed: Option<bool>, given: bool, parameter| match needed {
        Some(true) if !given => Err(request.missing(parameter)),
        Some(false) if given => Err(request.unused(parameter)),
        _ => Ok(()),
    };
    check(column, request.column.is_some(), "column")?;
    check(range, request.range.is_some(), "range")
}

/// Post-processing: names a single number.
fn single(Estimate { answer, low, high }: Estimate) -> Value {
    Value::Single { answer, low, high }
}

/// Post-processing: the ends of bounds as numbers.
fn ends(bounds: Bounds) -> [f64; 2] {
    [bounds.lower(), bounds.upper()].map(|steps| bounds.grid().value(i128::from(steps)))
}
