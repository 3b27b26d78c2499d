//! How many different units there are, or how many different values a column has. Empty cells are no values.

use std::io::Read;

use whit_core::{Confidence, Entropy, Event, Relation};
use whit_mechanism::{Contribution, CountDistinct, Noise, NoisyCount, Release};

use super::single;
use crate::Result;
use crate::rows::{Column, Row};
use crate::stats::input::Input;
use crate::stats::target::{Target, added};
use crate::stats::{AddedNoise, Part, Request, Value};

pub(crate) struct Distinct<R: Relation> {
    distinct: CountDistinct<R>,
    of: Of,
    noise: Noise,
    noisy: NoisyCount<R>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Units,
    /// Each row is a unit and has one value.
    ValuesOfRows,
    ValuesOfUnits,
}

impl<R: Relation> Distinct<R> {
    /// The contribution counts different values here, not rows.
    pub(super) fn new(
        target: &Target,
        contribution: Contribution,
        request: &Request,
    ) -> Result<Self> {
        let values = || CountDistinct::values(contribution.rows_max());
        let (of, distinct) = match (&request.column, &request.unit) {
            (None, _) => (Of::Units, CountDistinct::units()),
            (Some(_), None) => (Of::ValuesOfRows, values()?),
            (Some(_), Some(_)) => (Of::ValuesOfUnits, values()?),
        };
        let noise = target.noise(1, distinct.sensitivity_l1(), distinct.sensitivity_l2())?;
        let noise = target.sharpen(noise, |noise| Some(distinct.with_noise(noise).event()));
        Ok(Self {
            noisy: distinct.with_noise(&noise),
            distinct,
            of,
            noise,
        })
    }

    pub(super) fn event(&self) -> Event {
        self.noisy.event()
    }

    pub(super) fn noise(&self) -> Vec<AddedNoise> {
        vec![added(Part::Count, &self.noise)]
    }

    pub(super) fn release(
        &self,
        input: &mut Input<impl Read>,
        confidence: Confidence,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Value>> {
        let value = |row: &Row<'_>, columns: &[Column]| {
            let cell = columns.first().map(|&column| row.cell(column));
            cell.filter(|cell| !cell.is_empty()).map(Box::<[u8]>::from)
        };
        let count = match self.of {
            Of::Units => {
                let units = input.owned(|_, _| ()).map(|(owner, ())| owner);
                self.distinct.aggregate_units(units)
            }
            Of::ValuesOfRows => {
                let values = input.owned(value).filter_map(|(_, value)| value);
                self.distinct.aggregate_units(values)
            }
            Of::ValuesOfUnits => {
                let values = input.owned(value);
                let values = values.filter_map(|(owner, value)| Some((owner, value?)));
                self.distinct.aggregate(values)
            }
        };
        Ok(self.noisy.release(count, confidence, entropy)?.map(single))
    }
}
