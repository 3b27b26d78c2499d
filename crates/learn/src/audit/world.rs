//! Data sets that differ in a few examples.

use crate::data::{Answer, Dataset};
use crate::network::Examples;

/// An example that an adversary puts into the data.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// As many as the data have.
    pub features: Vec<f32>,
    /// Its class.
    pub class: u32,
}

impl Point {
    /// A row of the data; `None` for an empty example.
    pub fn of(data: &Dataset, row: usize) -> Option<Self> {
        let example = data.example(row)?;
        match example.answer {
            Answer::Class(class) => Some(Self {
                features: example.features.to_vec(),
                class,
            }),
            Answer::Number(_) => None,
        }
    }
}

/// The data with some rows replaced, or with some more. What is not replaced is shared.
#[derive(Clone)]
pub struct World<'a> {
    base: &'a Dataset,
    /// By number; those from the number of the data's rows on are added.
    changed: Vec<(u32, &'a Point)>,
    rows: usize,
}

impl<'a> World<'a> {
    /// The data as they are.
    pub fn of(base: &'a Dataset) -> Self {
        Self {
            base,
            changed: Vec::new(),
            rows: base.rows(),
        }
    }

    /// With these rows replaced, each by the same point: as many replacements away as there are rows.
    pub fn replacing(base: &'a Dataset, rows: &[u32], point: &'a Point) -> Self {
        Self {
            base,
            changed: rows.iter().map(|&row| (row, point)).collect(),
            rows: base.rows(),
        }
    }

    /// With these points added at the end: as many additions away.
    pub fn adding(base: &'a Dataset, points: impl IntoIterator<Item = &'a Point>) -> Self {
        let first = base.rows() as u32;
        let changed: Vec<_> = (first..).zip(points).collect();
        let rows = base.rows() + changed.len();
        Self {
            base,
            changed,
            rows,
        }
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many rows of the data are other ones here, or more.
    pub fn distance(&self) -> usize {
        self.changed.len()
    }
}

impl Examples for World<'_> {
    fn load(&self, row: u32, input: &mut [f32]) -> Option<f32> {
        let changed = self.changed.iter().find(|(at, _)| *at == row);
        let Some((_, point)) = changed else {
            return self.base.load(row, input);
        };
        if point.features.len() != input.len() || !point.features.iter().all(|x| x.is_finite()) {
            return None;
        }
        input.copy_from_slice(&point.features);
        Some(point.class as f32)
    }
}
