//! The rows of a file, as far as a statistic may use them.

use std::io::Read;

use whit_core::Neighbours;
use whit_mechanism::Contribution;

use super::Request;
use crate::rows::{Column, Row, Rows};
use crate::{Error, Result};

/// A file behind its header, and what of it is wanted.
pub(crate) struct Input<C> {
    rows: Rows<C>,
    columns: Vec<Column>,
    unit: Option<Column>,
    contribution: Contribution,
}

/// Whom a row belongs to: a unit, or without a unit column itself alone.
#[derive(PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    Unit(Box<[u8]>),
    Row(u64),
}

impl<C: Read> Input<C> {
    /// Reads the header. Complaints are about that only.
    pub(crate) fn open(csv: C, request: &Request, contribution: Contribution) -> Result<Self> {
        let names = request.columns();
        let unit = request.unit.as_deref();
        let rows = Rows::open(csv, names.first().copied().or(unit))?;
        let columns = names
            .into_iter()
            .map(|name| rows.column(name))
            .collect::<Result<_>>()?;
        let unit = unit.map(|name| rows.column(name)).transpose()?;
        let public_rows = request.relation == Neighbours::ReplaceOne && unit.is_none();
        if public_rows && rows.columns() == 1 {
            return Err(Error::OneColumn);
        }
        Ok(Self {
            columns,
            rows,
            unit,
            contribution,
        })
    }

    /// Something of each row that is used: all rows, or the first ones of each unit.
    pub(crate) fn bounded<'a, T: 'a>(
        &'a mut self,
        item: impl Fn(&Row<'_>, &[Column]) -> T + 'a,
    ) -> Box<dyn Iterator<Item = T> + 'a> {
        let contribution = self.contribution;
        if self.unit.is_some() {
            return Box::new(contribution.bound(self.owned(item)));
        }
        Box::new(self.owned(item).map(|(_, item)| item))
    }

    /// Something of each row that belongs to somebody, however many there are.
    pub(crate) fn owned<'a, T: 'a>(
        &'a mut self,
        item: impl Fn(&Row<'_>, &[Column]) -> T + 'a,
    ) -> impl Iterator<Item = (Owner, T)> + 'a {
        let mut number = 0;
        std::iter::from_fn(move || {
            loop {
                let row = self.rows.next()?;
                let owner = match self.unit {
                    None => Owner::Row(number),
                    Some(unit) => match row.owner(unit) {
                        Some(name) => Owner::Unit(name.into()),
                        None => continue,
                    },
                };
                number += 1;
                return Some((owner, item(&row, &self.columns)));
            }
        })
    }

    /// The numbers of the only column; `NaN` where there is none.
    pub(crate) fn numbers(&mut self) -> Box<dyn Iterator<Item = f64> + '_> {
        self.bounded(|row, columns| {
            columns
                .first()
                .map_or(f64::NAN, |&column| row.number(column))
        })
    }

    /// A release of half a file is no answer.
    pub(crate) fn finish(&self) -> Result<()> {
        self.rows.finish()
    }
}
