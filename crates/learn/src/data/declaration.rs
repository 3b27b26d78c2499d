//! `[data]` of a plan: where the examples are, and what the owner declares about them.
//!
//! ```toml
//! [data]
//! path = "train-images-idx3-ubyte.gz"
//! label = "train-labels-idx1-ubyte.gz"
//! classes = 10
//! mean = 0.1307
//! std = 0.3081
//! n_public = 60000
//! ```

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::PerChannel;
use super::error::{DataError, Result};
use super::normalisation::Normalisation;

/// What a plan says about a data set. All of it is public.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Declaration {
    /// A file, or a folder of folders of pictures; relative to the plan.
    pub path: PathBuf,
    /// The kind of data; else told by the name's ending.
    pub format: Option<Format>,
    /// The column that is to be learnt (CSV, Parquet) or the file that holds it (IDX, npy).
    pub label: Option<String>,
    /// The columns that are features, in order (CSV, Parquet); else all but the label.
    pub columns: Option<Vec<String>>,
    /// The column that says whose a row is (CSV). Then of each unit one row is trained on, and the guarantee is about units.
    pub unit: Option<String>,
    /// How many rows of a unit are trained on: 1, since more would be protected one by one and not together.
    pub rows_per_unit: Option<u32>,
    /// The shape of one example: channels first for pictures, such as `[1, 28, 28]`. Else that of the file.
    pub shape: Option<Vec<usize>>,
    /// The classes, by number or by name; without them a number is learnt. Pictures need them by name: those of their folders.
    pub classes: Option<Classes>,
    /// What values are multiplied by first. Else 1, and 1/255 for bytes.
    pub scale: Option<f64>,
    /// What is then subtracted: one number, or one for each entry of the shape's first side. Else 0.
    pub mean: Option<PerChannel>,
    /// What is then divided by. Else 1.
    pub std: Option<PerChannel>,
    /// The number of rows, if the owner declares it public; else a public guess of it that rates and batch sizes are made from.
    pub n_public: Option<u64>,
}

/// A kind of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Format {
    /// The format of MNIST.
    Idx,
    /// Arrays of NumPy.
    Npy,
    /// Comma-separated values with a line of names.
    Csv,
    /// Flat columns of numbers.
    Parquet,
    /// A folder of folders of PNG or JPEG files, one folder for each class.
    Images,
}

impl Format {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Idx => "IDX",
            Self::Npy => "npy",
            Self::Csv => "CSV",
            Self::Parquet => "Parquet",
            Self::Images => "image",
        }
    }
}

/// The classes, which are public.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Classes {
    /// Labels are whole numbers from zero on, below this one.
    Count(u32),
    /// Labels are these names; in columns of numbers, their places in the list, from zero on.
    Names(Vec<String>),
}

impl Classes {
    /// How many there are.
    pub fn count(&self) -> u32 {
        match self {
            Self::Count(count) => *count,
            Self::Names(names) => u32::try_from(names.len()).unwrap_or(u32::MAX),
        }
    }

    /// Their names, if they have any.
    pub fn names(&self) -> Option<&[String]> {
        match self {
            Self::Count(_) => None,
            Self::Names(names) => Some(names),
        }
    }

    /// The labels that pass, in words.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Count(count) => {
                format!("give labels that are whole numbers from 0 to {}", count - 1)
            }
            Self::Names(names) => format!("give labels out of {}", names.join(", ")),
        }
    }
}

impl Declaration {
    /// A file, and nothing else said.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            format: None,
            label: None,
            columns: None,
            unit: None,
            rows_per_unit: None,
            shape: None,
            classes: None,
            scale: None,
            mean: None,
            std: None,
            n_public: None,
        }
    }

    /// The kind of data, as declared or told by the name. Names that end in nothing known are folders of pictures only if declared so.
    pub fn format(&self) -> Result<Format> {
        if let Some(format) = self.format {
            return Ok(format);
        }
        let name = self.path.file_name().and_then(|name| name.to_str());
        let name = name.unwrap_or_default().to_ascii_lowercase();
        let bare = name.strip_suffix(".gz").unwrap_or(&name);
        let ends = |endings: &[&str]| endings.iter().any(|ending| bare.ends_with(ending));
        if ends(&["-ubyte", ".idx"]) {
            Ok(Format::Idx)
        } else if ends(&[".npy"]) {
            Ok(Format::Npy)
        } else if ends(&[".csv"]) {
            Ok(Format::Csv)
        } else if ends(&[".parquet"]) {
            Ok(Format::Parquet)
        } else {
            let path = self.path.clone();
            Err(DataError::FormatUnknown { path })
        }
    }

    /// The shape of an example, as far as this tells it: by `shape`, or by the columns of a table.
    pub fn shape_declared(&self) -> Option<Vec<usize>> {
        let columns = self.columns.as_ref().map(|columns| vec![columns.len()]);
        self.shape.clone().or(columns)
    }

    /// Refuses what can be refused without opening a file.
    pub fn check(&self) -> Result<()> {
        let format = self.format()?;
        let domain = |field, given: String, passes: &str| {
            Err(DataError::Domain {
                field,
                given,
                passes: passes.into(),
            })
        };
        if let Some(classes) = &self.classes {
            let twice = classes.names().is_some_and(|names| {
                let mut sorted: Vec<_> = names.iter().map(|name| name.trim()).collect();
                sorted.sort_unstable();
                sorted.first() == Some(&"") || sorted.windows(2).any(|pair| pair[0] == pair[1])
            });
            if twice || !(2..=1 << 20).contains(&classes.count()) {
                let passes = "a whole number from 2 to 1048576, or as many different names";
                let given = match classes {
                    Classes::Count(count) => count.to_string(),
                    Classes::Names(names) => format!("{names:?}"),
                };
                return domain("classes", given, passes);
            }
        }
        if let Some(shape) = &self.shape
            && super::width(shape).is_none()
        {
            let passes = "a list of whole numbers from 1 on, such as [1, 28, 28], with at most 67108864 features";
            return domain("shape", format!("{shape:?}"), passes);
        }
        if self.n_public == Some(0) {
            return domain("n_public", "0".into(), "a whole number from 1 on");
        }
        let table = matches!(format, Format::Csv | Format::Parquet);
        let missing = |field, passes| Err(self.field(format, field, true, passes));
        match (format, &self.label) {
            (Format::Images, Some(_)) => return Err(self.field(format, "label", false, "")),
            (Format::Images, None) => {}
            (_, None) if table => return missing("label", "label = \"the name of a column\""),
            (_, None) => return missing("label", "label = \"the file of the labels\""),
            (_, Some(_)) => {}
        }
        if self.columns.is_some() && !table {
            return Err(self.field(format, "columns", false, ""));
        }
        if self.columns.as_ref().is_some_and(Vec::is_empty) {
            return domain("columns", "[]".into(), "a list of at least one column");
        }
        if self.unit.is_some() && format != Format::Csv {
            return Err(self.field(format, "unit", false, ""));
        }
        match (&self.unit, self.rows_per_unit) {
            (None, None) | (Some(_), Some(1)) => {}
            (Some(_), None) => return missing("rows_per_unit", "rows_per_unit = 1"),
            (None, Some(_)) => {
                return missing("unit", "unit = \"the column that says whose a row is\"");
            }
            (Some(_), Some(given)) => {
                let passes = "1: of each unit one row is trained on, since the guarantee is about one example of each";
                return domain("rows_per_unit", given.to_string(), passes);
            }
        }
        if let Some(unit) = &self.unit
            && (self.label.as_ref() == Some(unit)
                || self
                    .columns
                    .as_ref()
                    .is_some_and(|columns| columns.contains(unit)))
        {
            let passes = "a column that is neither a feature nor what is to be learnt";
            return domain("unit", format!("{unit:?}"), passes);
        }
        if format == Format::Images {
            match self.shape.as_deref() {
                Some([1 | 3, _, _]) => {}
                Some(shape) => {
                    let passes = "[channels, height, width] with 1 channel or 3";
                    return domain("shape", format!("{shape:?}"), passes);
                }
                None => return missing("shape", "shape = [3, 32, 32]"),
            }
            // Which folders there are depends on whose pictures are in them.
            match &self.classes {
                Some(Classes::Names(_)) => {}
                Some(Classes::Count(count)) => {
                    let passes = "the names of the folders, such as [\"cat\", \"dog\"]";
                    return domain("classes", count.to_string(), passes);
                }
                None => {
                    let passes = "classes = [\"cat\", \"dog\"], the names of the folders that are looked into: \
                                  they are not taken from the data, which are private";
                    return missing("classes", passes);
                }
            }
        }
        let channels = self.shape_declared().map(|shape| shape[0]);
        Normalisation::check(self.scale, self.mean.as_ref(), self.std.as_ref(), channels)
    }

    fn field(
        &self,
        format: Format,
        field: &'static str,
        missing: bool,
        passes: &'static str,
    ) -> DataError {
        DataError::Field {
            kind: format.word(),
            field,
            missing,
            passes,
        }
    }
}

#[cfg(test)]
mod tests {
    use whit_core::Fault;

    use super::*;

    fn read(text: &str) -> Declaration {
        toml::from_str(text).expect("a declaration")
    }

    #[test]
    fn names_tell_the_format() {
        let check =
            |path: &str, expected| assert_eq!(Declaration::new(path).format(), Ok(expected));
        check("a/train-images-idx3-ubyte", Format::Idx);
        check("train-images-idx3-ubyte.gz", Format::Idx);
        check("x.NPY", Format::Npy);
        check("x.csv.gz", Format::Csv);
        check("x.parquet", Format::Parquet);
        let unknown = Declaration::new("pictures").check().expect_err("a folder");
        assert_eq!(unknown.code(), "data_format");
    }

    #[test]
    fn numbers_and_lists_are_read() {
        let text = "path = 'x.csv'\nlabel = 'y'\nclasses = ['a', 'b']\nmean = [1, 2.5]\nstd = 2";
        let declaration = read(text);
        assert_eq!(declaration.check(), Ok(()));
        assert_eq!(declaration.classes.map(|classes| classes.count()), Some(2));
        assert_eq!(declaration.mean, Some(PerChannel::Each(vec![1.0, 2.5])));
        assert_eq!(declaration.std, Some(PerChannel::All(2.0)));
        assert!(toml::from_str::<Declaration>("path = 'x.csv'\nlabels = 'y'").is_err());
    }

    #[test]
    fn what_makes_no_sense_is_refused_before_a_file_is_opened() {
        let check = |text: &str, code: &str, passes: &str| {
            let error = read(text).check().expect_err(text);
            assert_eq!(error.code(), code, "{text}");
            let suggestion = error.suggestion();
            assert!(suggestion.contains(passes), "{text}: {suggestion}");
        };
        check(
            "path = 'x.csv'",
            "data_field_missing",
            "the name of a column",
        );
        check(
            "path = 'x.npy'",
            "data_field_missing",
            "the file of the labels",
        );
        check(
            "path = 'x.csv'\nlabel = 'y'\nclasses = 1",
            "data_field_domain",
            "from 2",
        );
        check(
            "path = 'x.csv'\nlabel = 'y'\nclasses = ['a', 'a']",
            "data_field_domain",
            "different",
        );
        check(
            "path = 'x.csv'\nlabel = 'y'\nshape = [0]",
            "data_field_domain",
            "from 1 on",
        );
        check(
            "path = 'x.csv'\nlabel = 'y'\ncolumns = []",
            "data_field_domain",
            "at least one",
        );
        let table = "path = 'x.csv'\nlabel = 'y'\n";
        for (rest, code, passes) in [
            ("unit = 'u'", "data_field_missing", "rows_per_unit = 1"),
            ("rows_per_unit = 1", "data_field_missing", "whose a row is"),
            (
                "unit = 'u'\nrows_per_unit = 2",
                "data_field_domain",
                "1: of each unit",
            ),
            (
                "unit = 'y'\nrows_per_unit = 1",
                "data_field_domain",
                "neither",
            ),
            (
                "unit = 'u'\nrows_per_unit = 1\ncolumns = ['u']",
                "data_field_domain",
                "neither",
            ),
        ] {
            check(&format!("{table}{rest}"), code, passes);
        }
        check(
            "path = 'x.parquet'\nlabel = 'y'\nunit = 'u'\nrows_per_unit = 1",
            "data_field_unused",
            "leave `unit` out",
        );
        check(
            "path = 'x.npy'\nlabel = 'y.npy'\ncolumns = ['a']",
            "data_field_unused",
            "leave",
        );
        check(
            "path = 'x.csv'\nlabel = 'y'\nn_public = 0",
            "data_field_domain",
            "from 1 on",
        );
        for constants in ["std = 0", "std = [1, 0]", "scale = 0", "mean = []"] {
            let text = format!("{table}{constants}");
            check(&text, "data_field_domain", "finite number");
        }
        let two = format!("{table}columns = ['a', 'b']\nmean = [1, 2, 3]");
        check(&two, "data_field_domain", "or 2 of them");
        check(
            "path = 'x'\nformat = 'images'",
            "data_field_missing",
            "[3, 32, 32]",
        );
        check(
            "path = 'x'\nformat = 'images'\nshape = [2, 4, 4]",
            "data_field_domain",
            "1 channel or 3",
        );
        check(
            "path = 'x'\nformat = 'images'\nshape = [1, 4, 4]\nlabel = 'y'",
            "data_field_unused",
            "leave",
        );
        // One example in a folder of its own must not change the model's shape.
        check(
            "path = 'x'\nformat = 'images'\nshape = [1, 4, 4]",
            "data_field_missing",
            "classes = [\"cat\", \"dog\"]",
        );
        check(
            "path = 'x'\nformat = 'images'\nshape = [1, 4, 4]\nclasses = 2",
            "data_field_domain",
            "names of the folders, such as [\"cat\", \"dog\"]",
        );
    }
}
