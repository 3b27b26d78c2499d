//! Rows become examples here, one at a time and each by itself: whatever the format, this is the one place where a row is
//! normalised, judged, and emptied if it does not fit.

use std::fmt;

use super::normalisation::Normalisation;
use super::{Answers, Classes, Dataset, EMPTY, width};

/// The most features that memory is reserved for on a file's word: a header may promise more than the file holds.
const RESERVED_MAX: usize = 1 << 28;

/// The rule that a row breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum RowFault {
    /// A feature is missing, no number, or not finite.
    NotANumber,
    /// So is what is to be learnt, where no classes are declared.
    LabelNotANumber,
    /// The label is none of the declared classes.
    LabelOutOfRange,
    /// A text is none of the declared categories.
    UnknownCategory,
    /// There are too few or too many cells.
    WrongLength,
    /// The file is no picture that can be read.
    NoPicture,
    /// The picture has another size.
    PictureSize,
    /// The picture is there by several names, which is no row.
    SeveralNames,
}

impl RowFault {
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::NotANumber => "row_not_a_number",
            Self::LabelNotANumber => "row_label_not_a_number",
            Self::LabelOutOfRange => "row_label_out_of_range",
            Self::UnknownCategory => "row_unknown_category",
            Self::WrongLength => "row_wrong_length",
            Self::NoPicture => "row_no_picture",
            Self::PictureSize => "row_picture_size",
            Self::SeveralNames => "row_several_names",
        }
    }
}

impl fmt::Display for RowFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotANumber => "a value is missing, no number, or not finite",
            Self::LabelNotANumber => {
                "a label is missing, no number, or not finite, and no classes are declared"
            }
            Self::LabelOutOfRange => "a label is none of the declared classes",
            Self::UnknownCategory => "a text is none of the declared categories",
            Self::WrongLength => "a row has too few or too many cells",
            Self::NoPicture => "a file is no picture",
            Self::PictureSize => "a picture has another size",
            Self::SeveralNames => "a picture is there by several names",
        })
    }
}

/// Which rules were broken, how often, and where first. As private as the rows: for the owner's eyes.
#[derive(Clone, Default)]
pub struct Findings(Vec<(RowFault, u64, u64)>);

impl Findings {
    /// The rule, the number of rows that broke it, and the first of them, counted from one; in order of the rules.
    pub fn iter(&self) -> impl Iterator<Item = (RowFault, u64, u64)> + '_ {
        self.0.iter().copied()
    }

    /// The rule that was broken first, and where.
    pub(super) fn first(&self) -> Option<(RowFault, u64)> {
        self.iter()
            .map(|(fault, _, row)| (fault, row))
            .min_by_key(|(_, row)| *row)
    }

    fn add(&mut self, fault: RowFault, row: u64) {
        match self.0.binary_search_by_key(&fault, |(known, _, _)| *known) {
            Ok(place) => self.0[place].1 += 1,
            Err(place) => self.0.insert(place, (fault, 1, row)),
        }
    }
}

/// What a format found where the answer stands.
#[derive(Clone, Copy)]
pub(super) enum Raw<'a> {
    Number(f64),
    Text(&'a str),
    Missing,
}

/// A data set that grows.
pub(super) struct Builder {
    shape: Vec<usize>,
    width: usize,
    normalisation: Normalisation,
    names: Option<Vec<String>>,
    columns: Vec<String>,
    features: Vec<f32>,
    answers: Answers,
    findings: Findings,
}

impl Builder {
    /// `normalisation` has a channel for each entry of the shape's first side; `rows` is how many are expected, if the format says so.
    /// `None` for a shape that holds nothing or too much.
    pub(super) fn new(
        shape: Vec<usize>,
        classes: Option<&Classes>,
        normalisation: Normalisation,
        rows: usize,
    ) -> Option<Self> {
        let width = width(&shape)?;
        let reserved = rows.min(RESERVED_MAX / width);
        Some(Self {
            shape,
            width,
            normalisation,
            names: classes.and_then(Classes::names).map(<[String]>::to_vec),
            columns: Vec::new(),
            features: Vec::with_capacity(reserved * width),
            answers: Answers::new(classes.map(Classes::count), reserved),
            findings: Findings::default(),
        })
    }

    /// The same, of columns that have names.
    pub(super) fn of_columns(self, columns: Vec<String>) -> Self {
        Self { columns, ..self }
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    pub(super) fn rows(&self) -> usize {
        self.answers.rows()
    }

    /// Adds a row whatever it holds.
    pub(super) fn row(&mut self, values: Result<&[f64], RowFault>, answer: Raw<'_>) {
        let start = self.features.len();
        let fault = self
            .features(values)
            .and_then(|()| self.answer(answer))
            .err();
        if let Some(fault) = fault {
            // Empty examples are alike, whatever stood there.
            self.features.truncate(start);
            self.features.resize(start + self.width, 0.0);
            match &mut self.answers {
                Answers::Classes { labels, .. } => labels.push(EMPTY),
                Answers::Numbers(numbers) => numbers.push(f32::NAN),
            }
            self.findings.add(fault, self.rows() as u64);
        }
    }

    /// Notes for the owner why there is no row; its place is that of the next one.
    pub(super) fn no_row(&mut self, fault: RowFault) {
        self.findings.add(fault, self.rows() as u64 + 1);
    }

    /// Puts a row in the place of an earlier one.
    pub(super) fn row_instead(
        &mut self,
        place: usize,
        values: Result<&[f64], RowFault>,
        answer: Raw<'_>,
    ) {
        self.row(values, answer);
        let (last, width) = (self.rows() - 1, self.width);
        let new = last * width..(last + 1) * width;
        self.features.copy_within(new, place * width);
        self.features.truncate(last * width);
        // Takes the last one away, and puts it there.
        match &mut self.answers {
            Answers::Classes { labels, .. } => drop(labels.swap_remove(place)),
            Answers::Numbers(numbers) => drop(numbers.swap_remove(place)),
        }
    }

    /// Of one example.
    pub(super) fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The names of the columns that are features; none where there are no columns.
    pub(super) fn columns(&self) -> &[String] {
        &self.columns
    }

    /// By which constants values are made small.
    pub(super) fn normalisation(&self) -> &Normalisation {
        &self.normalisation
    }

    fn features(&mut self, values: Result<&[f64], RowFault>) -> Result<(), RowFault> {
        let values = values?;
        if values.len() != self.width {
            return Err(RowFault::WrongLength);
        }
        let channel_width = self.width / self.shape[0];
        for (index, value) in values.iter().enumerate() {
            let value = self.normalisation.apply(index / channel_width, *value) as f32;
            if !value.is_finite() {
                return Err(RowFault::NotANumber);
            }
            self.features.push(value);
        }
        Ok(())
    }

    /// Pushes the answer only if it fits.
    fn answer(&mut self, answer: Raw<'_>) -> Result<(), RowFault> {
        match &mut self.answers {
            Answers::Classes { count, labels } => {
                let class = match (answer, &self.names) {
                    (Raw::Number(number), _) => whole(number),
                    (Raw::Text(text), Some(names)) => {
                        let place = names.iter().position(|name| name == text.trim());
                        place.and_then(|place| u32::try_from(place).ok())
                    }
                    (Raw::Text(text), None) => text.trim().parse().ok().and_then(whole),
                    (Raw::Missing, _) => None,
                };
                let class = class.filter(|class| class < count);
                labels.push(class.ok_or(RowFault::LabelOutOfRange)?);
            }
            Answers::Numbers(numbers) => {
                let number = match answer {
                    Raw::Number(number) => number as f32,
                    Raw::Text(text) => number(text) as f32,
                    Raw::Missing => f32::NAN,
                };
                if !number.is_finite() {
                    return Err(RowFault::LabelNotANumber);
                }
                numbers.push(number);
            }
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> (Dataset, Findings) {
        self.features.shrink_to_fit();
        let data = Dataset {
            shape: self.shape,
            width: self.width,
            features: self.features,
            answers: self.answers,
        };
        (data, self.findings)
    }
}

/// A cell as a number; NaN if it is none.
pub(super) fn number(text: &str) -> f64 {
    text.trim().parse().unwrap_or(f64::NAN)
}

/// A class written as a number, such as 3 or 3.0.
fn whole(number: f64) -> Option<u32> {
    let class = number as u32;
    (f64::from(class) == number && class != EMPTY).then_some(class)
}

#[cfg(test)]
mod tests {
    use super::super::{Answer, PerChannel};
    use super::*;

    fn normalisation(scale: f64, channels: usize) -> Normalisation {
        Normalisation::new(Some(scale), None, None, 1.0, channels).expect("in domain")
    }

    #[test]
    fn a_row_is_judged_by_itself() {
        let classes = Classes::Count(2);
        let mut builder =
            Builder::new(vec![2], Some(&classes), normalisation(0.5, 2), 0).expect("shape");
        builder.row(Ok(&[2.0, 4.0]), Raw::Number(1.0));
        builder.row(Ok(&[2.0, f64::NAN]), Raw::Number(1.0));
        builder.row(Ok(&[2.0, 1e300]), Raw::Number(1.0));
        builder.row(Ok(&[2.0, 4.0]), Raw::Number(2.0));
        builder.row(Ok(&[2.0, 4.0]), Raw::Number(0.5));
        builder.row(Ok(&[2.0, 4.0]), Raw::Number(-1.0));
        builder.row(Ok(&[2.0]), Raw::Text("0"));
        builder.row(Err(RowFault::NoPicture), Raw::Text("0"));
        builder.row(Ok(&[6.0, 8.0]), Raw::Text(" 0 "));
        builder.row(Ok(&[6.0, 8.0]), Raw::Missing);
        let (data, findings) = builder.finish();
        assert_eq!(data.rows(), 10);
        let kept: Vec<usize> = (0..10).filter(|row| data.example(*row).is_some()).collect();
        assert_eq!(kept, [0, 8]);
        let last = data.example(8).expect("kept");
        assert_eq!(last.features, [3.0, 4.0]);
        assert!(last.answer == Answer::Class(0));
        let found: Vec<_> = findings.iter().collect();
        assert_eq!(
            found,
            [
                (RowFault::NotANumber, 2, 2),
                (RowFault::LabelOutOfRange, 4, 4),
                (RowFault::WrongLength, 1, 7),
                (RowFault::NoPicture, 1, 8),
            ]
        );
        assert_eq!(findings.first(), Some((RowFault::NotANumber, 2)));
    }

    #[test]
    fn labels_that_are_words_are_told_as_labels() {
        let mut builder = Builder::new(vec![1], None, normalisation(1.0, 1), 1).expect("shape");
        builder.row(Ok(&[0.0]), Raw::Text("yes"));
        builder.row(Ok(&[f64::NAN]), Raw::Number(1.0));
        let (_, findings) = builder.finish();
        let found: Vec<_> = findings.iter().collect();
        let expected = [
            (RowFault::NotANumber, 1, 2),
            (RowFault::LabelNotANumber, 1, 1),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn names_are_classes_in_their_order() {
        let classes = Classes::Names(vec!["cat".into(), "dog".into()]);
        let mut builder =
            Builder::new(vec![1], Some(&classes), normalisation(1.0, 1), 9).expect("shape");
        for text in ["dog", "cat", "cow", "1"] {
            builder.row(Ok(&[0.0]), Raw::Text(text));
        }
        builder.row(Ok(&[0.0]), Raw::Number(1.0));
        let (data, _) = builder.finish();
        let answers: Vec<_> = (0..5)
            .map(|row| match data.example(row)?.answer {
                Answer::Class(class) => Some(class),
                Answer::Number(_) => None,
            })
            .collect();
        assert_eq!(answers, [Some(1), Some(0), None, None, Some(1)]);
    }

    #[test]
    fn channels_have_constants_of_their_own() {
        let means = PerChannel::Each(vec![1.0, 2.0]);
        let deviations = PerChannel::All(4.0);
        let normalisation =
            Normalisation::new(None, Some(&means), Some(&deviations), 0.5, 2).expect("in domain");
        let mut builder = Builder::new(vec![2, 1, 2], None, normalisation, 0).expect("shape");
        builder.row(Ok(&[10.0, 18.0, 4.0, 12.0]), Raw::Number(7.0));
        let (data, _) = builder.finish();
        let example = data.example(0).expect("fits");
        assert_eq!(example.features, [1.0, 2.0, 0.0, 1.0]);
        assert!(example.answer == Answer::Number(7.0));
    }
}
