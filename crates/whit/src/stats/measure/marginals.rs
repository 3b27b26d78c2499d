//! How many rows there are with each combination of categories.

use std::io::Read;

use whit_core::{Confidence, Entropy, Event, Relation};
use whit_mechanism::{
    Column, Contribution, Estimate, Marginals, Noise, NoisyMarginals, Release, Unknown,
};

use super::top::distinct_categories;
use crate::stats::input::Input;
use crate::stats::target::{Target, added};
use crate::stats::{AddedNoise, CategoryColumn, Cell, Part, Value};
use crate::{Error, Result};

pub(crate) struct Table<R: Relation> {
    columns: Vec<CategoryColumn>,
    marginals: Marginals<R>,
    noise: Noise,
    noisy: NoisyMarginals<R>,
}

impl<R: Relation> Table<R> {
    pub(super) fn new(
        target: &Target,
        contribution: Contribution,
        columns: &[CategoryColumn],
    ) -> Result<Self> {
        if columns.is_empty() {
            return Err(Error::Missing {
                statistic: "contingency table",
                parameter: "column",
            });
        }
        let trimmed = |CategoryColumn { column, categories }: &CategoryColumn| {
            Ok(CategoryColumn {
                column: column.clone(),
                categories: distinct_categories(column, categories)?,
            })
        };
        let columns = columns.iter().map(trimmed).collect::<Result<Vec<_>>>()?;
        for (place, column) in columns.iter().enumerate() {
            let same = |other: &CategoryColumn| other.column.trim() == column.column.trim();
            if columns[..place].iter().any(same) {
                let column = column.column.clone();
                return Err(Error::ColumnTwice { column });
            }
        }
        let domain =
            |column: &CategoryColumn| Column::new(column.categories.clone(), Unknown::Drop);
        let domains = columns
            .iter()
            .map(domain)
            .collect::<whit_mechanism::Result<_>>()?;
        let all: Vec<usize> = (0..columns.len()).collect();
        let marginals = Marginals::new(domains, &[&all], contribution)?;
        let noise = target.noise(1, marginals.sensitivity_l1(), marginals.sensitivity_l2())?;
        let noise = target.sharpen(noise, |noise| Some(marginals.with_noise(noise).event()));
        Ok(Self {
            noisy: marginals.with_noise(&noise),
            columns,
            marginals,
            noise,
        })
    }

    pub(super) fn event(&self) -> Event {
        self.noisy.event()
    }

    pub(super) fn noise(&self) -> Vec<AddedNoise> {
        vec![added(Part::Cell, &self.noise)]
    }

    pub(super) fn release(
        &self,
        input: &mut Input<impl Read>,
        confidence: Confidence,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Value>> {
        let rows = input.bounded(|row, columns| {
            let cells = columns.iter().map(|&column| row.cell(column));
            // What is no text is not on a list.
            let texts = cells.map(|cell| std::str::from_utf8(cell).unwrap_or_default().to_owned());
            texts.collect::<Vec<String>>()
        });
        let counts = self.marginals.aggregate(rows);
        let release = self.noisy.release(counts, confidence, entropy)?;
        Ok(release.map(|tables| {
            let cells = tables.iter().flat_map(|table| table.cells());
            Value::Marginals {
                columns: self
                    .columns
                    .iter()
                    .map(|column| column.column.clone())
                    .collect(),
                cells: cells
                    .zip(0..)
                    .map(|(cell, place)| self.cell(*cell, place))
                    .collect(),
            }
        }))
    }

    /// Post-processing: names a cell. The last column changes fastest.
    fn cell(&self, Estimate { answer, low, high }: Estimate, place: usize) -> Cell {
        let mut rest = place;
        let mut categories: Vec<String> = Vec::with_capacity(self.columns.len());
        for column in self.columns.iter().rev() {
            let size = column.categories.len();
            categories.push(column.categories[rest % size].clone());
            rest /= size;
        }
        categories.reverse();
        Cell {
            categories,
            answer,
            interval: [low, high],
        }
    }
}
