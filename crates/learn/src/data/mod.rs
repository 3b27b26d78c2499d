//! Examples in memory: features with a public shape, and a class or a number for each.
//!
//! # What is public, and what is not
//!
//! Neighbours differ in one row, so whatever can be told without looking at rows is public, and a plan that does not fit it is
//! refused with a message before anything is charged. Whatever depends on a row is private.
//!
//! | format | public: refused by name | private: the row counts as an empty example |
//! | --- | --- | --- |
//! | all | the path, whether the file can be opened and read to its end | how many rows there are |
//! | IDX, npy | magic, number type, order, shape of an item | a value that is not finite, a label out of range |
//! | CSV | the first line | a cell that is no finite number, or none of the declared categories, a label out of range, too few or too many cells |
//! | Parquet | columns and their types | a null, a value that is not finite, a label out of range |
//! | sheets | PNG, width and kind of pixels of each sheet; whether two are one file; whether the labels are one list | a label that is no number, or out of range |
//! | images | whether each declared class has a folder, empty or not, and one of its own | a file that is no picture, or one of another size; all other folders; a file with several names is no row |
//!
//! **Classes and the shape of pictures** are declared, never found: a class that is there for one row alone would change the model's shape.
//! The shape of other examples may be left to the file's header, which all neighbours share.
//!
//! Files that belong together (features and labels) and do not have equally many rows are no data set: no neighbour of a
//! data set is like that, so this is public too. No message holds a count.
//!
//! **An empty example** stays a row: it is sampled like any other and contributes exactly zero, so the number of rows, and with it
//! everything that a sampler does, is that of the file. A row that is changed into an empty example is changed as a function of
//! itself alone; neighbours stay neighbours. [`Dataset::example`] gives `None` for it, so that no layer ever sees its features.
//!
//! **Who hears of it.** Silently training on nothing because all labels are off by one helps nobody, so the owner of the data may
//! ask to be told ([`Audience::Owner`]): then a row that does not fit refuses the plan before anything is charged, with a text that
//! names the rule and what would pass, never a value, a row or a count. That there is such a row is one bit about private data that
//! no theorem covers: the text is for the owner's screen and must not go into a log, a card, a checkpoint or a ledger. Doors that
//! answer others use [`Audience::Anyone`], for whom no row changes anything but the examples.
//!
//! **Units.** If a table says whose a row is, one row of each unit is an example, chosen by that unit's rows alone (`unit.rs`): then neighbours
//! that differ in one unit, whatever rows it has, are neighbours that differ in one example.
//!
//! **Normalisation** is by constants of the plan. The mean of the data would be a query about the data.

mod binary;
mod builder;
mod csv;
mod declaration;
mod error;
mod identity;
mod idx;
mod images;
mod inputs;
mod labels;
mod list;
mod matrix;
mod normalisation;
mod npy;
mod open;
mod parquet;
mod public;
mod sheets;
mod unit;

pub use builder::{Findings, RowFault};
pub use declaration::{Classes, Declaration, Format};
pub(crate) use declaration::{Coding, Wanted};
pub use error::DataError;
pub use inputs::Inputs;
pub(crate) use matrix::{Matrix, matrix};
pub use normalisation::PerChannel;
pub(crate) use open::picture_names;
pub use open::{
    inputs, inspect, load_private, load_public, load_surveyed, survey, survey_if_there,
};
pub use public::{check_apart, load_public_beside};

/// The class of an empty example.
const EMPTY: u32 = u32::MAX;

/// Who reads what the loader says about rows that do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// The owner of the data alone, before anything is charged: such a row refuses the plan.
    Owner,
    /// Others too: such a row is an empty example, and nobody is told.
    Anyone,
}

/// Features and answers of all rows. Without `Debug`, since nobody should see them.
pub struct Dataset {
    shape: Vec<usize>,
    width: usize,
    features: Vec<f32>,
    answers: Answers,
}

/// What is to be learnt, for all rows.
enum Answers {
    /// Classes below `count`, or `EMPTY`.
    Classes { count: u32, labels: Vec<u32> },
    /// Numbers, or NaN in an empty example.
    Numbers(Vec<f32>),
}

/// One row.
#[derive(Clone, Copy)]
pub struct Example<'a> {
    /// As many as the product of the shape, all finite.
    pub features: &'a [f32],
    /// What is to be learnt of it.
    pub answer: Answer,
}

/// What is to be learnt of one row.
#[derive(Clone, Copy, PartialEq)]
pub enum Answer {
    /// One of the classes, counted from zero.
    Class(u32),
    /// A finite number.
    Number(f32),
}

impl Dataset {
    /// A data set of a program's own. `None` if the numbers of features and labels do not fit the shape and each other, or the shape
    /// holds nothing. A row with a feature that is not finite or a label that is not below `classes` is an empty example.
    pub fn with_classes(
        shape: Vec<usize>,
        features: Vec<f32>,
        labels: Vec<u32>,
        classes: u32,
    ) -> Option<Self> {
        let answers = Answers::Classes {
            count: classes,
            labels,
        };
        Self::checked(shape, features, answers)
    }

    /// The same for numbers.
    pub fn with_numbers(shape: Vec<usize>, features: Vec<f32>, numbers: Vec<f32>) -> Option<Self> {
        Self::checked(shape, features, Answers::Numbers(numbers))
    }

    fn checked(shape: Vec<usize>, features: Vec<f32>, mut answers: Answers) -> Option<Self> {
        let width = width(&shape)?;
        if features.len() != answers.rows().checked_mul(width)? {
            return None;
        }
        for (row, values) in features.chunks_exact(width).enumerate() {
            answers.check(row, values.iter().all(|value| value.is_finite()));
        }
        Some(Self {
            shape,
            width,
            features,
            answers,
        })
    }

    /// The same rows with features of another shape, which `map` writes. It must map each row by itself. A row whose features are not
    /// finite becomes an empty example.
    pub(crate) fn mapped(
        mut self,
        shape: Vec<usize>,
        map: impl FnOnce(&[f32], &mut [f32]) -> crate::Result<()>,
    ) -> crate::Result<Self> {
        let width: usize = shape.iter().product();
        let mut features = vec![0.0; self.rows() * width];
        map(&self.features, &mut features)?;
        for (row, values) in features.chunks_exact(width).enumerate() {
            let is_finite = values.iter().all(|value| value.is_finite());
            self.answers.check(row, is_finite);
        }
        Ok(Self {
            shape,
            width,
            features,
            answers: self.answers,
        })
    }

    /// The public shape of one example's features, such as `[1, 28, 28]`.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of features of one example.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The public number of classes; `None` where numbers are learnt.
    pub fn classes(&self) -> Option<u32> {
        match &self.answers {
            Answers::Classes { count, .. } => Some(*count),
            Answers::Numbers(_) => None,
        }
    }

    /// How many rows there are, empty examples included. **Private** if the data are and neighbours add or remove a row: samplers may
    /// use it, but no shape, text, name or number of steps may depend on it.
    pub fn rows(&self) -> usize {
        self.answers.rows()
    }

    /// A row; `None` if it is an empty example, which contributes exactly zero, or if there is no such row.
    pub fn example(&self, row: usize) -> Option<Example<'_>> {
        let answer = match &self.answers {
            Answers::Classes { labels, .. } => match *labels.get(row)? {
                EMPTY => return None,
                label => Answer::Class(label),
            },
            Answers::Numbers(numbers) => match *numbers.get(row)? {
                number if number.is_finite() => Answer::Number(number),
                _ => return None,
            },
        };
        let start = row * self.width;
        Some(Example {
            features: &self.features[start..start + self.width],
            answer,
        })
    }
}

impl Answers {
    fn new(classes: Option<u32>, rows: usize) -> Self {
        match classes {
            Some(count) => Self::Classes {
                count,
                labels: Vec::with_capacity(rows),
            },
            None => Self::Numbers(Vec::with_capacity(rows)),
        }
    }

    fn rows(&self) -> usize {
        match self {
            Self::Classes { labels, .. } => labels.len(),
            Self::Numbers(numbers) => numbers.len(),
        }
    }

    /// Empties a row whose answer is out of its domain or whose features do not pass.
    fn check(&mut self, row: usize, passes: bool) {
        match self {
            Self::Classes { count, labels } if !passes || labels[row] >= *count => {
                labels[row] = EMPTY;
            }
            Self::Numbers(numbers) if !passes => numbers[row] = f32::NAN,
            _ => {}
        }
    }
}

/// The product of a shape; `None` if it is empty, zero or more than 2^26, which is a picture of 4,000 by 4,000 in colour.
fn width(shape: &[usize]) -> Option<usize> {
    let product = shape
        .iter()
        .try_fold(1_usize, |product, side| product.checked_mul(*side))?;
    (!shape.is_empty() && (1..=1 << 26).contains(&product)).then_some(product)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_do_not_fit_stay_and_are_empty() {
        let features = vec![1.0, 2.0, f32::NAN, 4.0, 5.0, 6.0, 7.0, f32::INFINITY];
        let data = Dataset::with_classes(vec![2], features, vec![0, 1, 2, 1], 2).expect("fits");
        assert_eq!(data.rows(), 4);
        let seen: Vec<_> = (0..5).map(|row| data.example(row).is_some()).collect();
        assert_eq!(seen, [true, false, false, false, false]);
        let first = data.example(0).expect("passes");
        assert_eq!(first.features, [1.0, 2.0]);
        assert!(first.answer == Answer::Class(0));
    }

    #[test]
    fn numbers_must_be_finite() {
        let numbers = vec![0.5, f32::NAN, f32::INFINITY];
        let data = Dataset::with_numbers(vec![1], vec![0.0; 3], numbers).expect("fits");
        let seen: Vec<_> = (0..3).map(|row| data.example(row).is_some()).collect();
        assert_eq!(seen, [true, false, false]);
        assert_eq!(data.classes(), None);
    }

    #[test]
    fn shapes_and_lengths_must_agree() {
        let refused = |shape: &[usize], features: usize, labels: usize| {
            Dataset::with_classes(shape.into(), vec![0.0; features], vec![0; labels], 1).is_none()
        };
        assert!(refused(&[2], 3, 2));
        assert!(refused(&[], 1, 1));
        assert!(refused(&[0], 0, 3));
        assert!(refused(&[usize::MAX, 2], 0, 0));
        assert!(!refused(&[2], 4, 2));
        assert!(!refused(&[2], 0, 0), "no rows are a data set too");
    }
}
