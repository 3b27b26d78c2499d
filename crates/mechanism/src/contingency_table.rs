//! Columns with public categories, and tables over them: what [`Marginals`](crate::Marginals) take and give.

use crate::{Error, Estimate, Result};

/// What becomes of a value that is not on the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// It belongs to an extra category, the last one.
    Other,
    /// Its row is left out of all marginals with this column.
    Drop,
}

/// A column with a public list of categories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    categories: Vec<String>,
    unknown: Unknown,
}

/// More cells than this are no table.
pub(crate) const CELLS_MAX: u64 = 1 << 24;

impl Column {
    /// Categories in the order in which cells will come. Two of the same name are one too many and refused, and so is a column
    /// without any category.
    pub fn new(categories: Vec<String>, unknown: Unknown) -> Result<Self> {
        let mut sorted: Vec<&String> = categories.iter().collect();
        sorted.sort_unstable();
        sorted.dedup();
        let column = Self {
            unknown,
            categories: categories.clone(),
        };
        let distinct = sorted.len() == categories.len();
        let size = if distinct { column.size() as u64 } else { 0 };
        check("the number of different categories", size, CELLS_MAX)?;
        Ok(column)
    }

    /// How many categories there are, the extra one included.
    pub fn size(&self) -> usize {
        self.categories.len() + usize::from(self.unknown == Unknown::Other)
    }

    /// What becomes of other values.
    pub fn unknown(&self) -> Unknown {
        self.unknown
    }

    /// The name of a category; none for the extra one.
    pub fn category(&self, index: usize) -> Option<&str> {
        self.categories.get(index).map(String::as_str)
    }
}

/// A count that must be at least one.
pub(crate) fn check(what: &'static str, given: u64, max: u64) -> Result<()> {
    if (1..=max).contains(&given) {
        return Ok(());
    }
    Err(Error::CountOutOfRange {
        what,
        given,
        min: 1,
        max,
    })
}

/// A noisy contingency table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub(crate) columns: Vec<usize>,
    pub(crate) shape: Vec<usize>,
    pub(crate) cells: Vec<Estimate>,
}

impl Table {
    /// Its columns, in the order of the domain.
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// How many categories each of its columns has.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// All cells; the last column changes fastest.
    pub fn cells(&self) -> &[Estimate] {
        &self.cells
    }

    /// The cell with these categories, one for each column of the table. None if there is no such cell.
    pub fn cell(&self, categories: &[usize]) -> Option<Estimate> {
        if categories.len() != self.shape.len() {
            return None;
        }
        let at = categories
            .iter()
            .zip(&self.shape)
            .try_fold(0, |at, (&category, &size)| {
                (category < size).then_some(at * size + category)
            });
        self.cells.get(at?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn categories_are_different_and_some() {
        let names = |names: &[&str]| {
            let names = names.iter().map(|name| name.to_string());
            names.collect::<Vec<_>>()
        };
        assert!(Column::new(names(&["a", "a"]), Unknown::Drop).is_err());
        assert!(Column::new(names(&[]), Unknown::Drop).is_err());
        let only_other = Column::new(names(&[]), Unknown::Other).expect("one category");
        assert_eq!((only_other.size(), only_other.category(0)), (1, None));
        let two = Column::new(names(&["a", ""]), Unknown::Drop).expect("two categories");
        assert_eq!((two.size(), two.category(1)), (2, Some("")));
    }

    #[test]
    fn the_last_column_changes_fastest() {
        let cell = |answer: f64| Estimate {
            answer,
            low: answer,
            high: answer,
        };
        let table = Table {
            columns: vec![1, 4],
            shape: vec![2, 3],
            cells: (0..6).map(|i| cell(f64::from(i))).collect(),
        };
        let at = |categories: &[usize]| table.cell(categories).map(|cell| cell.answer);
        assert_eq!((at(&[0, 2]), at(&[1, 0])), (Some(2.0), Some(3.0)));
        assert_eq!((at(&[0, 3]), at(&[2, 0]), at(&[1])), (None, None, None));
    }
}
