//! Why data cannot be trained on. Texts are made of the plan and of what is public in a file (see the module above), never of rows.

use std::path::PathBuf;

use thiserror::Error as ThisError;
use whit_core::{Fault, FaultKind};

use super::RowFault;

/// A declaration that makes no sense, or a file that does not fit it.
#[derive(Clone, Debug, PartialEq, ThisError)]
#[non_exhaustive]
pub enum DataError {
    /// A file or folder cannot be opened or read.
    #[error("{} cannot be read: {}", path.display(), in_words(*why))]
    Unreadable {
        /// Where it should be.
        path: PathBuf,
        /// The operating system's kind of failure.
        why: std::io::ErrorKind,
    },
    /// The kind of file is neither declared nor told by its name.
    #[error("the name {} does not say what kind of data it holds", path.display())]
    FormatUnknown {
        /// The path as declared.
        path: PathBuf,
    },
    /// A file is not of its kind, or ends too early.
    #[error("{} is no {kind} that can be read: {what}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The kind of file.
        kind: &'static str,
        /// What is wrong with its public part, in constant words.
        what: &'static str,
        /// What would pass.
        passes: &'static str,
    },
    /// A field that this kind of data needs, or has no use for.
    #[error("{kind} data {} `{field}`", if *missing { "need" } else { "take no" })]
    Field {
        /// The kind of data.
        kind: &'static str,
        /// The field of the plan.
        field: &'static str,
        /// Is it missing? Else it is there in vain.
        missing: bool,
        /// An example of what would pass; empty if it is to be left out.
        passes: &'static str,
    },
    /// A field whose value is out of its domain.
    #[error("`{field}` is {given}")]
    Domain {
        /// The field of the plan.
        field: &'static str,
        /// What was given.
        given: String,
        /// What would pass.
        passes: String,
    },
    /// A column that is declared and not there, or there twice.
    #[error("{}", no_column(path, column, *twice, found))]
    Column {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// Is its name there more than once?
        twice: bool,
        /// The columns that are there. In a file without a first line of names they are somebody's row, so that none is told but one that is the declared name in other letters.
        found: Vec<String>,
    },
    /// A column that holds something else than numbers.
    #[error("the column {column:?} of {} is no flat column of numbers", path.display())]
    ColumnType {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
    },
    /// The declared shape has another number of features than the file.
    #[error("the declared shape {declared:?} does not hold the {} features of an item of {}", features(found), path.display())]
    Shape {
        /// The file.
        path: PathBuf,
        /// As declared.
        declared: Vec<usize>,
        /// What the file's public part says.
        found: Vec<usize>,
    },
    /// The public part of a file is another one than when the plan was checked.
    #[error("{} was replaced after the plan was checked: its columns or its shape are others", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// Features and labels do not belong together.
    #[error("{} and {} do not hold equally many rows", features.display(), labels.display())]
    Unequal {
        /// The file of the features.
        features: PathBuf,
        /// The file of the labels.
        labels: PathBuf,
    },
    /// A declared class has no folder.
    #[error("{} has no folder for the class {class:?}", path.display())]
    ClassFolder {
        /// The folder of folders.
        path: PathBuf,
        /// The class as declared.
        class: String,
    },
    /// Two names in a plan lead to one file or folder, whose rows would be read twice.
    #[error("{} and {} in `{field}` are the same", one.display(), other.display())]
    SameFile {
        /// The field of the plan.
        field: &'static str,
        /// One of them.
        one: PathBuf,
        /// The other.
        other: PathBuf,
    },
    /// Data that are called public are opened where the private ones are.
    #[error("{} of [test] is private", path.display())]
    Private {
        /// The file or folder.
        path: PathBuf,
    },
    /// Rows that do not fit: for the owner's eyes, or about public data.
    #[error("{}{} does not fit: {fault}", path.display(), row.map_or(String::from(" holds a row that"), |row| format!(", row {row},")))]
    Row {
        /// The file.
        path: PathBuf,
        /// The rule that the row breaks.
        fault: RowFault,
        /// The first such row, counted from one; only in data that are public.
        row: Option<u64>,
        /// What would pass, from the declaration.
        passes: String,
    },
}

/// Short for a result with this error.
pub(super) type Result<T> = std::result::Result<T, DataError>;

/// How many names there are is public, and which is not: see `Column`.
fn no_column(path: &std::path::Path, column: &str, twice: bool, found: &[String]) -> String {
    let path = path.display();
    let others = match found.len() {
        1 => "its one column is called otherwise".to_owned(),
        count => format!("none of its {count} columns is called so"),
    };
    match twice {
        true => format!("{path} has more than one column {column:?}"),
        false => format!("{path} has no column {column:?}: {others}"),
    }
}

/// A name that differs from the declared one in its letters being small or capital, or in quotes and white space, if there is one.
fn same_letters<'a>(column: &str, found: &'a [String]) -> Option<&'a String> {
    let plain = |name: &str| {
        let letters = name.chars().filter(|letter| letter.is_alphanumeric());
        letters.flat_map(char::to_lowercase).collect::<String>()
    };
    let wanted = plain(column);
    let is_it = |name: &&String| !wanted.is_empty() && plain(name) == wanted;
    found.iter().find(is_it)
}

/// What is wrong with a path.
fn in_words(why: std::io::ErrorKind) -> String {
    use std::io::ErrorKind::{IsADirectory, NotFound, PermissionDenied};
    match why {
        NotFound => "there is no such file".into(),
        PermissionDenied => "you may not read it".into(),
        IsADirectory => "it is a folder".into(),
        other => other.to_string(),
    }
}

/// How many features items of this shape have, which a file may say at will.
fn features(shape: &[usize]) -> String {
    let count = shape
        .iter()
        .try_fold(1_usize, |product, side| product.checked_mul(*side));
    count.map_or("too many".into(), |count| count.to_string())
}

impl Fault for DataError {
    fn kind(&self) -> FaultKind {
        match self {
            Self::Private { .. } => FaultKind::Refused,
            _ => FaultKind::Invalid,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "data_unreadable",
            Self::FormatUnknown { .. } => "data_format",
            Self::Malformed { .. } => "data_malformed",
            Self::Field { missing: true, .. } => "data_field_missing",
            Self::Field { .. } => "data_field_unused",
            Self::Domain { .. } => "data_field_domain",
            Self::Column { .. } => "data_column",
            Self::ColumnType { .. } => "data_column_type",
            Self::Shape { .. } => "data_shape",
            Self::Changed { .. } => "data_changed",
            Self::Unequal { .. } => "data_unequal",
            Self::ClassFolder { .. } => "data_class_folder",
            Self::SameFile { .. } => "data_same_file",
            Self::Private { .. } => "test_private",
            Self::Row { fault, .. } => fault.code(),
        }
    }

    fn suggestion(&self) -> String {
        match self {
            Self::Unreadable { .. } => {
                "give the path of a file that exists and that you may read; paths are relative to the plan"
                    .into()
            }
            Self::FormatUnknown { .. } => {
                "give `format` as \"idx\", \"npy\", \"csv\", \"parquet\", \"images\" or \"sheets\"".into()
            }
            Self::Malformed { passes, .. } => (*passes).into(),
            Self::Field {
                field,
                missing: true,
                passes,
                ..
            } => format!("give `{field}`, such as {passes}"),
            Self::Field {
                field, passes: "", ..
            } => format!("leave `{field}` out"),
            Self::Field { field, passes, .. } => format!("leave `{field}` out, or give {passes}"),
            Self::Domain { field, passes, .. } => format!("give `{field}` as {passes}"),
            Self::Column { twice: true, .. } => "give each column of the file a name of its own".into(),
            Self::Column { column, found, .. } => match same_letters(column, found) {
                Some(name) => format!("is {name:?} meant? Names are compared letter by letter"),
                None => "give a name that stands in the first line of the file; if its first line is a row already, put a line with the names of the columns before it. (Names that are there are not shown: without such a line they would be somebody's row)".into(),
            },
            Self::ColumnType { .. } => {
                "give columns of integers, floats or booleans, or name the others in no field".into()
            }
            Self::Shape { found, .. } => match super::width(found) {
                Some(count) => {
                    format!("give `shape` with {count} features in all, such as {found:?}")
                }
                None => "give a file whose items have from 1 to 67108864 features".into(),
            },
            Self::Changed { .. } => "leave the file as it is until it was read".into(),
            Self::Unequal { .. } => "give the labels of the same rows, in the same order".into(),
            Self::ClassFolder { class, .. } => {
                format!("make a folder {class}, empty if it has no pictures, or leave the class out of `classes`")
            }
            Self::SameFile { field, .. } => {
                format!("give `{field}` that are different ones, without links to each other")
            }
            Self::Private { .. } => {
                "give data in [test] and [validation] that are public, and none of the private ones, or leave them out".into()
            }
            Self::Row { passes, .. } => passes.clone(),
        }
    }
}
