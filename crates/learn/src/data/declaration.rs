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

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::PerChannel;
use super::error::{DataError, Result};
use super::normalisation::Normalisation;

/// What a plan says about a data set. All of it is public.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Declaration {
    /// A file, a folder of folders of pictures, or a folder of sheets; relative to the plan.
    pub path: PathBuf,
    /// The kind of data; else told by the name's ending.
    pub format: Option<Format>,
    /// The column that is to be learnt (CSV, Parquet) or the file that holds it (IDX, npy, sheets), relative to the plan.
    pub label: Option<String>,
    /// The sheets in the folder, in the order of their labels. Not written if there are none, so that plans keep their fingerprints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sheets: Option<Vec<String>>,
    /// The columns that are features, in order (CSV, Parquet); else all but the label.
    pub columns: Option<Vec<String>>,
    /// Columns of text, each with all categories that it may hold (CSV). A column becomes as many features, of which that of the row's category is 1 and the others are 0.
    /// Not written if there are none, so that plans keep their fingerprints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub categories: Option<BTreeMap<String, Vec<String>>>,
    /// Set by what reads categories as numbers, and no word of a plan: it follows from the model.
    #[serde(skip)]
    pub(crate) coding: Coding,
    /// Set by what has no use for labels, and no word of a plan.
    #[serde(skip)]
    pub(crate) wanted: Wanted,
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

/// What a category is to a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Coding {
    /// A feature for each, of which one is 1.
    #[default]
    Indicators,
    /// One feature: its place in the list, from zero on.
    Place,
}

/// What is read of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// What is learnt, too.
    #[default]
    Labelled,
    /// The features alone: the number that would be learnt is 0. A label that is declared is not looked for.
    Features,
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
    /// A folder of PNG files of which each row of pixels is one picture.
    Sheets,
}

impl Format {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Idx => "IDX",
            Self::Npy => "npy",
            Self::Csv => "CSV",
            Self::Parquet => "Parquet",
            Self::Images => "image",
            Self::Sheets => "sheet",
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
            sheets: None,
            columns: None,
            categories: None,
            coding: Coding::default(),
            wanted: Wanted::default(),
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
        let ends = |endings: &[&str]| endings.iter().any(|ending| has_ending(&self.path, ending));
        if ends(&IDX_ENDINGS) {
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
        let width =
            |columns: &Vec<String>| columns.iter().map(|column| self.width_of(column)).sum();
        let columns = self.columns.as_ref().map(|columns| vec![width(columns)]);
        self.shape.clone().or(columns)
    }

    /// The categories of a column, if it has any.
    pub(crate) fn categories_of(&self, column: &str) -> Option<&[String]> {
        let categories = self.categories.as_ref()?.get(column)?;
        Some(categories)
    }

    /// How many features a column becomes.
    pub(crate) fn width_of(&self, column: &str) -> usize {
        match (self.categories_of(column), self.coding) {
            (Some(categories), Coding::Indicators) => categories.len(),
            _ => 1,
        }
    }

    fn check_categories(&self, format: Format) -> Result<()> {
        let Some(categories) = &self.categories else {
            return Ok(());
        };
        if format != Format::Csv {
            return Err(self.field(format, "categories", false, ""));
        }
        for (column, names) in categories {
            let mut sorted: Vec<_> = names.iter().map(|name| name.trim()).collect();
            sorted.sort_unstable();
            let twice = sorted.windows(2).any(|pair| pair[0] == pair[1]);
            if twice || !(2..=CATEGORIES_MAX).contains(&names.len()) {
                return Err(DataError::Domain {
                    field: "categories",
                    given: format!("{names:?} for {column:?}"),
                    passes: "a list of 2 to 4096 different texts for each column".into(),
                });
            }
            let columns = self.columns.as_ref();
            if columns.is_some_and(|columns| !columns.contains(column)) {
                return Err(DataError::Domain {
                    field: "categories",
                    given: format!("a list for {column:?}, which is no feature"),
                    passes: "lists for columns that are in `columns`".into(),
                });
            }
        }
        Ok(())
    }

    /// All files that are opened, but for pictures, of which it is the folders of their classes. `folder` is the plan's.
    pub fn files(&self, folder: &Path) -> Vec<PathBuf> {
        let mut files = self.parts(&folder.join(&self.path));
        if self.has_label_file() {
            files.extend(self.label.as_ref().map(|label| folder.join(label)));
        }
        files
    }

    /// What of `path` is opened: sheets or folders of classes within it, or itself.
    pub(super) fn parts(&self, path: &Path) -> Vec<PathBuf> {
        let names = match self.format {
            Some(Format::Sheets) => self.sheets.as_deref(),
            Some(Format::Images) => self.classes.as_ref().and_then(Classes::names),
            _ => None,
        };
        match names {
            Some(names) => names.iter().map(|name| path.join(name)).collect(),
            None => vec![path.into()],
        }
    }

    /// The column that is learnt, which has a name that may be shown; of labels in a file of their own the path is nobody's business.
    pub fn label_column(&self) -> Option<&str> {
        self.label.as_deref().filter(|_| !self.has_label_file())
    }

    /// Are labels numbers in a file of their own?
    pub(super) fn has_label_file(&self) -> bool {
        matches!(
            self.format(),
            Ok(Format::Idx | Format::Npy | Format::Sheets)
        )
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
            _ if self.wanted == Wanted::Features => {}
            (_, None) if table => return missing("label", "label = \"the name of a column\""),
            (_, None) => return missing("label", "label = \"the file of the labels\""),
            (Format::Sheets, Some(label)) if !is_label_file(Path::new(label)) => {
                let passes = "a file whose name ends in .json (one list of whole numbers), -ubyte or .idx, \
                              or in one of them and .gz";
                return domain("label", format!("{label:?}"), passes);
            }
            (_, Some(_)) => {}
        }
        match (format, &self.sheets) {
            (Format::Sheets, None) => return missing("sheets", SHEETS),
            (Format::Sheets, Some(sheets)) if !are_names_once(sheets) => {
                let passes = "a list of different names of files in the folder `path`, such as \
                              [\"data_batch_1.png\", \"data_batch_2.png\"]";
                return domain("sheets", format!("{sheets:?}"), passes);
            }
            (Format::Sheets, Some(_)) | (_, None) => {}
            (_, Some(_)) => {
                return Err(self.field(format, "sheets", false, "`format` as \"sheets\""));
            }
        }
        if self.columns.is_some() && !table {
            return Err(self.field(format, "columns", false, ""));
        }
        if self.columns.as_ref().is_some_and(Vec::is_empty) {
            return domain("columns", "[]".into(), "a list of at least one column");
        }
        self.check_categories(format)?;
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
        if matches!(format, Format::Images | Format::Sheets) {
            match self.shape.as_deref() {
                Some([1 | 3, _, _]) => {}
                Some(shape) => {
                    let passes = "[channels, height, width] with 1 channel or 3";
                    return domain("shape", format!("{shape:?}"), passes);
                }
                None => return missing("shape", "shape = [3, 32, 32]"),
            }
        }
        if format == Format::Images {
            // Which folders there are depends on whose pictures are in them.
            match &self.classes {
                Some(Classes::Names(names)) if !are_names_once(names) => {
                    let passes = "different names of folders in the folder `path`, such as [\"cat\", \"dog\"]";
                    return domain("classes", format!("{names:?}"), passes);
                }
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

/// As many as models with bins take.
const CATEGORIES_MAX: usize = 4096;

/// What IDX files are called.
const IDX_ENDINGS: [&str; 2] = ["-ubyte", ".idx"];

const SHEETS: &str = "sheets = [\"data_batch_1.png\", \"data_batch_2.png\"], \
                      names of files in the folder `path`, in the order of their labels";

/// Does a name end so, but for the ending of packed files?
fn has_ending(path: &Path, ending: &str) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.unwrap_or_default().to_ascii_lowercase();
    let bare = name.strip_suffix(".gz").unwrap_or(&name);
    bare.ends_with(ending)
}

pub(super) fn is_json(path: &Path) -> bool {
    has_ending(path, ".json")
}

/// Can labels of sheets be in it?
fn is_label_file(path: &Path) -> bool {
    is_json(path) || IDX_ENDINGS.iter().any(|ending| has_ending(path, ending))
}

/// Names of what is in one folder, each there once: a sheet or a class that is read twice would be two examples of everybody in it. File systems may
/// not tell letters apart. Links are looked at once there are files (`identity.rs`).
fn are_names_once(names: &[String]) -> bool {
    let is_name = |name: &String| {
        let mut parts = Path::new(name).components();
        let one = matches!(
            (parts.next(), parts.next()),
            (Some(Component::Normal(part)), None) if part.to_str() == Some(name)
        );
        one && !name.contains(['/', '\\'])
    };
    let mut sorted: Vec<_> = names.iter().map(|name| name.to_lowercase()).collect();
    sorted.sort_unstable();
    !names.is_empty()
        && names.iter().all(is_name)
        && sorted.windows(2).all(|pair| pair[0] != pair[1])
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

    #[test]
    fn sheets_are_names_of_files_each_given_once() {
        let bare = "path = 'x'\nformat = 'sheets'\nlabel = 'y.json'\nshape = [3, 4, 4]";
        let with = |sheets: &str| format!("{bare}\nsheets = {sheets}");
        for sheets in ["['1.png']", "['1.png', '2.png']", "['1.png', '.2', 'a b']"] {
            assert_eq!(read(&with(sheets)).check(), Ok(()), "{sheets}");
        }
        let check = |text: &str, code: &str, passes: &str| {
            let error = read(text).check().expect_err(text);
            assert_eq!(error.code(), code, "{text}");
            let suggestion = error.suggestion();
            assert!(suggestion.contains(passes), "{text}: {suggestion}");
        };
        check(bare, "data_field_missing", "\"data_batch_1.png\"");
        for sheets in [
            "[]",
            "['']",
            "['.']",
            "['..']",
            "['a/1.png']",
            "['1.png/']",
            "['./1.png']",
            "['a\\1.png']",
            "['/1.png']",
            "['1.png', '2.png', '1.png']",
            "['a.png', 'A.png']",
        ] {
            check(&with(sheets), "data_field_domain", "different names");
        }
        let whole = with("['1.png']");
        for (from, to, code, passes) in [
            ("shape = [3, 4, 4]", "", "data_field_missing", "[3, 32, 32]"),
            (
                "[3, 4, 4]",
                "[2, 4, 4]",
                "data_field_domain",
                "1 channel or 3",
            ),
            ("[3, 4, 4]", "[16]", "data_field_domain", "1 channel or 3"),
            (
                "label = 'y.json'",
                "",
                "data_field_missing",
                "file of the labels",
            ),
            ("y.json", "y.csv", "data_field_domain", ".json"),
            ("'sheets'", "'images'", "data_field_unused", "label"),
            (
                "'sheets'",
                "'idx'",
                "data_field_unused",
                "`format` as \"sheets\"",
            ),
            ("format = 'sheets'", "", "data_format", "\"sheets\""),
        ] {
            check(&whole.replace(from, to), code, passes);
        }
        for label in ["y.JSON", "y.json.gz", "y-ubyte", "y.idx.gz"] {
            assert_eq!(read(&whole.replace("y.json", label)).check(), Ok(()));
        }
    }

    #[test]
    fn all_files_that_are_opened_are_told() {
        let check = |text: &str, expected: &[&str]| {
            let found = read(text).files(Path::new("plans"));
            let expected: Vec<_> = expected.iter().map(PathBuf::from).collect();
            assert_eq!(found, expected, "{text}");
        };
        check("path = 'x.csv'\nlabel = 'y'", &["plans/x.csv"]);
        check(
            "path = 'x.npy'\nlabel = 'y.npy'",
            &["plans/x.npy", "plans/y.npy"],
        );
        check(
            "path = 'x'\nformat = 'images'\nclasses = ['cat', 'dog']",
            &["plans/x/cat", "plans/x/dog"],
        );
        check(
            "path = 'x'\nformat = 'sheets'\nsheets = ['1', '2']\nlabel = 'y.json'",
            &["plans/x/1", "plans/x/2", "plans/y.json"],
        );
    }

    /// Runs that were begun before there were sheets go on.
    #[test]
    fn plans_without_sheets_are_written_as_before() {
        let plan = read("path = 'x.csv'\nlabel = 'y'");
        let text = serde_json::to_string(&plan).expect("plain");
        assert!(!text.contains("sheets"), "{text}");
        assert!(text.starts_with(r#"{"path":"x.csv","format":null,"label":"y","columns":null"#));
    }
}
