//! From a declaration to examples: the one place of this crate that opens a plan's data.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use whit_core::Secret;

use super::builder::Builder;
use super::error::{DataError, Result};
use super::normalisation::Normalisation;
use super::{
    Audience, Classes, Dataset, Declaration, Findings, Format, Inputs, RowFault, csv, identity,
    idx, images, npy, parquet, sheets,
};

/// The rows of private data. `folder` is the plan's, which paths are relative to.
///
/// Rows that do not fit are empty examples; with [`Audience::Owner`] they refuse the plan instead, and then the error's text is for
/// the owner alone.
pub fn load_private(
    declaration: &Declaration,
    folder: &Path,
    audience: Audience,
) -> Result<Secret<Dataset>> {
    let builder = read(declaration, folder)?;
    private(declaration, folder, audience, builder)
}

/// The same, of a file whose public part is still what [`inputs`] has found: whatever is said of a model later is said of what it was trained on.
pub fn load_surveyed(
    declaration: &Declaration,
    folder: &Path,
    audience: Audience,
    surveyed: &Inputs,
) -> Result<Secret<Dataset>> {
    let changed = || DataError::Changed {
        path: folder.join(&declaration.path),
    };
    let builder = read(declaration, folder).map_err(|error| match error {
        // All that is declared was found by then. What stands in its place now may be somebody's row, of which nothing is told.
        DataError::Column { .. } | DataError::ColumnType { .. } | DataError::Shape { .. } => {
            changed()
        }
        other => other,
    })?;
    match taken(declaration, &builder)? == *surveyed {
        true => private(declaration, folder, audience, builder),
        false => Err(changed()),
    }
}

fn private(
    declaration: &Declaration,
    folder: &Path,
    audience: Audience,
    builder: Builder,
) -> Result<Secret<Dataset>> {
    let (data, findings) = builder.finish();
    match findings.first() {
        Some((fault, _)) if audience == Audience::Owner => {
            Err(unfit(declaration, folder, fault, None))
        }
        _ => Ok(Secret::new(data)),
    }
}

/// The rows of data that are declared public, such as a test set. A row that does not fit is refused by its place.
pub fn load_public(declaration: &Declaration, folder: &Path) -> Result<Dataset> {
    let (data, findings) = read(declaration, folder)?.finish();
    match findings.first() {
        Some((fault, row)) => Err(unfit(declaration, folder, fault, Some(row))),
        None => Ok(data),
    }
}

/// The name of the file of each row, in order, if rows are pictures in files of their own. They are declared public.
pub(crate) fn picture_names(declaration: &Declaration, path: &Path) -> Result<Option<Vec<String>>> {
    match declaration.format()? {
        Format::Images => images::names(declaration, path).map(Some),
        _ => Ok(None),
    }
}

/// The shape of an example, as far as a file's header or first line tells it, so that all that is public about a run can be refused before
/// anything is charged. Reads no row. The shape of pictures is declared.
pub fn survey(declaration: &Declaration, folder: &Path) -> Result<Vec<usize>> {
    Ok(surveyed(declaration, folder)?.shape().to_vec())
}

/// What a model of these data takes, by what is declared and by the public part of the file. Reads no row.
pub fn inputs(declaration: &Declaration, folder: &Path) -> Result<Inputs> {
    taken(declaration, &surveyed(declaration, folder)?)
}

fn taken(declaration: &Declaration, builder: &Builder) -> Result<Inputs> {
    let (scale, mean, std) = builder.normalisation().constants();
    Ok(Inputs {
        format: declaration.format()?,
        columns: builder.columns().to_vec(),
        categories: declaration.categories.clone().unwrap_or_default(),
        shape: builder.shape().to_vec(),
        scale,
        mean: mean.to_vec(),
        std: std.to_vec(),
    })
}

/// What examples would be added to.
fn surveyed(declaration: &Declaration, folder: &Path) -> Result<Builder> {
    declaration.check()?;
    let path = folder.join(&declaration.path);
    once(declaration, &path)?;
    match declaration.format()? {
        Format::Csv => csv::survey(declaration, &path),
        Format::Parquet => parquet::survey(declaration, &path),
        Format::Idx => idx::survey(declaration, &path),
        Format::Npy => npy::survey(declaration, &path),
        Format::Sheets => sheets::survey_builder(declaration, &path),
        Format::Images => {
            let shape = declaration.shape.clone().unwrap_or_default();
            builder(declaration, &path, shape, 1.0 / 255.0, 0)
        }
    }
}

/// The same for whoever opens nothing that is not there: what is declared, if there is no file yet.
pub fn survey_if_there(declaration: &Declaration, folder: &Path) -> Result<Option<Vec<usize>>> {
    match survey(declaration, folder) {
        Ok(shape) => Ok(Some(shape)),
        Err(DataError::Unreadable { .. }) => Ok(declaration.shape_declared()),
        Err(error) => Err(error),
    }
}

/// Which rows of private data do not fit, for the owner's eyes.
pub fn inspect(declaration: &Declaration, folder: &Path) -> Result<Secret<Findings>> {
    read(declaration, folder).map(|builder| Secret::new(builder.finish().1))
}

fn read(declaration: &Declaration, folder: &Path) -> Result<Builder> {
    declaration.check()?;
    let path = folder.join(&declaration.path);
    once(declaration, &path)?;
    match declaration.format()? {
        Format::Idx => idx::read(declaration, &path, &label_file(declaration, folder)),
        Format::Npy => npy::read(declaration, &path, &label_file(declaration, folder)),
        Format::Sheets => sheets::read(declaration, &path, &label_file(declaration, folder)),
        Format::Csv => csv::read(declaration, &path),
        Format::Parquet => parquet::read(declaration, &path),
        Format::Images => images::read(declaration, &path),
    }
}

/// Refuses classes or sheets that are one folder or one file. What the plan's names lead to is public.
fn once(declaration: &Declaration, path: &Path) -> Result<()> {
    let field = match declaration.format()? {
        Format::Images => "classes",
        Format::Sheets => "sheets",
        _ => return Ok(()),
    };
    identity::once(field, &declaration.parts(path))
}

fn label_file(declaration: &Declaration, folder: &Path) -> PathBuf {
    folder.join(declaration.label.as_deref().unwrap_or_default())
}

fn unfit(declaration: &Declaration, folder: &Path, fault: RowFault, row: Option<u64>) -> DataError {
    let passes = match (fault, &declaration.classes, declaration.shape.as_deref()) {
        (RowFault::LabelOutOfRange, Some(classes), _) if declaration.has_label_file() => {
            Classes::Count(classes.count()).words()
        }
        (RowFault::LabelOutOfRange, Some(classes), _) => classes.words(),
        (RowFault::PictureSize, _, Some([_, height, width])) => {
            format!(
                "give pictures that are {width} pixels wide and {height} high, or declare their `shape`"
            )
        }
        (RowFault::WrongLength, ..) => {
            "give every row one cell for each name in the first line".into()
        }
        (RowFault::SeveralNames, ..) => "give each picture one name, without links to it".into(),
        (RowFault::UnknownCategory, ..) => {
            "give all texts that a column may hold as its `categories`".into()
        }
        (RowFault::NoPicture, ..) => "give PNG or JPEG files of 8 bits per channel".into(),
        (RowFault::LabelNotANumber, ..) => {
            "give finite numbers as labels; or declare `classes`, if classes are to be learnt, such as classes = [\"no\", \"yes\"]".into()
        }
        _ => "give finite numbers everywhere".into(),
    };
    DataError::Row {
        path: folder.join(&declaration.path),
        fault,
        row,
        passes,
    }
}

/// A builder for items of a shape that the file's public part tells.
pub(super) fn builder(
    declaration: &Declaration,
    path: &Path,
    found: Vec<usize>,
    scale_otherwise: f64,
    rows: usize,
) -> Result<Builder> {
    let width = super::width(&found);
    let shape = declaration.shape.clone().unwrap_or_else(|| found.clone());
    if width.is_none() || super::width(&shape) != width {
        return Err(DataError::Shape {
            path: path.into(),
            declared: shape,
            found,
        });
    }
    let normalisation = Normalisation::new(
        declaration.scale,
        declaration.mean.as_ref(),
        declaration.std.as_ref(),
        scale_otherwise,
        shape[0],
    )?;
    let classes = declaration.classes.as_ref();
    Builder::new(shape.clone(), classes, normalisation, rows).ok_or(DataError::Shape {
        path: path.into(),
        declared: shape,
        found,
    })
}

/// A file, for its own reader.
#[expect(
    clippy::disallowed_methods,
    reason = "the data of a plan are opened here and nowhere else"
)]
pub(super) fn file(path: &Path) -> Result<File> {
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    match file.metadata() {
        Ok(found) if found.is_dir() => Err(DataError::Unreadable {
            path: path.into(),
            why: std::io::ErrorKind::IsADirectory,
        }),
        Ok(_) => Ok(file),
        Err(error) => Err(unreadable(path, &error)),
    }
}

/// The bytes of a file from its beginning, unpacked if its name ends in `.gz`.
pub(super) fn stream(path: &Path) -> Result<Box<dyn Read>> {
    let file = BufReader::with_capacity(1 << 16, file(path)?);
    let packed = path
        .extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("gz"));
    Ok(if packed {
        Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(file)))
    } else {
        Box::new(file)
    })
}

/// The kind of a failure, without the system's text.
pub(super) fn unreadable(path: &Path, error: &std::io::Error) -> DataError {
    DataError::Unreadable {
        path: path.into(),
        why: error.kind(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    #![expect(clippy::disallowed_methods, reason = "files of the tests' own")]

    use std::fs;

    use tempfile::TempDir;
    use whit_core::Fault;

    use super::*;

    /// A folder with files in it.
    pub(crate) fn folder(files: &[(&str, &[u8])]) -> TempDir {
        let folder = TempDir::new().expect("a folder");
        for (name, bytes) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("in the folder")).expect("a folder");
            fs::write(path, bytes).expect("a file");
        }
        folder
    }

    pub(crate) fn declare(text: &str) -> Declaration {
        toml::from_str(text).expect("a declaration")
    }

    /// The code and the whole text of a refusal.
    pub(crate) fn refusal(text: &str, folder: &TempDir) -> (&'static str, String) {
        let error = load_private(&declare(text), folder.path(), Audience::Anyone)
            .err()
            .expect(text);
        (error.code(), format!("{error}; {}", error.suggestion()))
    }

    /// All examples of private data, `None` for empty ones.
    pub(crate) fn rows(text: &str, folder: &TempDir) -> Vec<Option<(Vec<f32>, f32)>> {
        let data = load_private(&declare(text), folder.path(), Audience::Anyone)
            .unwrap_or_else(|error| panic!("{text}: {error}"))
            .expose();
        (0..data.rows())
            .map(|row| {
                let example = data.example(row)?;
                let answer = match example.answer {
                    crate::data::Answer::Class(class) => class as f32,
                    crate::data::Answer::Number(number) => number,
                };
                Some((example.features.to_vec(), answer))
            })
            .collect()
    }

    const TABLE: &[u8] = b"x,y\n1,0\n2,7\nthree,1\n";
    const PLAN: &str = "path = 'a.csv'\nlabel = 'y'\nclasses = 2";

    #[test]
    fn only_the_owner_hears_of_rows_that_do_not_fit() {
        let folder = folder(&[("a.csv", TABLE)]);
        let plan = declare(PLAN);
        assert_eq!(
            rows(PLAN, &folder),
            [Some((vec![1.0], 0.0)), None, None],
            "for others they are empty"
        );
        let error = load_private(&plan, folder.path(), Audience::Owner)
            .err()
            .expect("a label of 7");
        assert_eq!(error.code(), "row_label_out_of_range");
        assert!(error.suggestion().contains("from 0 to 1"));
        let text = error.to_string();
        let rest = text.replace(&folder.path().display().to_string(), "");
        assert!(
            !rest.contains(|letter: char| letter.is_ascii_digit()),
            "no value, row or count: {rest}"
        );
        let findings = inspect(&plan, folder.path()).expect("can be read").expose();
        let found: Vec<_> = findings.iter().collect();
        assert_eq!(
            found,
            [
                (RowFault::NotANumber, 1, 3),
                (RowFault::LabelOutOfRange, 1, 2)
            ]
        );
    }

    #[test]
    fn what_was_surveyed_is_what_is_read() {
        let before = folder(&[("a.csv", b"x,z,y\n1,2,0\n")]);
        let plan = declare(PLAN);
        let surveyed = inputs(&plan, before.path()).expect("a first line");
        assert_eq!(surveyed.columns, ["x", "z"]);
        let load = |folder: &TempDir| {
            let loaded = load_surveyed(&plan, folder.path(), Audience::Anyone, &surveyed);
            loaded.map(|data| data.expose().rows())
        };
        assert_eq!(load(&before), Ok(1));
        let after = folder(&[("a.csv", b"z,x,y\n1,2,0\n")]);
        let changed = load(&after).expect_err("in another order");
        assert_eq!(changed.code(), "data_changed");
    }

    /// A file without a first line of names has somebody's row there, and a cell of it may be a declared name in other letters.
    #[test]
    fn of_a_file_that_was_replaced_after_the_survey_no_cell_is_told() {
        let before = folder(&[("a.csv", b"x,hue,y\n1,2,0\n")]);
        let plan = declare(&format!("{PLAN}\ncolumns = ['x', 'hue']"));
        let surveyed = inputs(&plan, before.path()).expect("a first line");
        let after = folder(&[("a.csv", b"x,HUE,y\n1,2,0\n")]);
        for audience in [Audience::Anyone, Audience::Owner] {
            let loaded = load_surveyed(&plan, after.path(), audience, &surveyed);
            let changed = loaded.err().expect("another file");
            assert_eq!(changed.code(), "data_changed");
            let told = format!("{changed} {} {changed:?}", changed.suggestion());
            assert!(!told.contains("HUE"), "{told}");
        }
    }

    #[test]
    fn public_data_are_refused_by_row() {
        let folder = folder(&[("a.csv", TABLE), ("b.csv", b"x,y\n1,0\n2,1\n")]);
        let error = load_public(&declare(PLAN), folder.path()).err().expect("7");
        assert!(error.to_string().contains("row 2"), "{error}");
        let good = load_public(&declare(&PLAN.replace("a.csv", "b.csv")), folder.path());
        assert_eq!(good.map(|data| data.rows()), Ok(2));
    }

    #[test]
    fn missing_files_say_what_would_pass() {
        let folder = folder(&[]);
        let (code, text) = refusal(PLAN, &folder);
        assert_eq!(code, "data_unreadable");
        assert!(text.contains("relative to the plan"), "{text}");
        let (code, _) = refusal(&PLAN.replace("a.csv", "."), &folder);
        assert_eq!(code, "data_format");
        let (code, _) = refusal(
            &format!("{PLAN}\nformat = 'csv'").replace("a.csv", "."),
            &folder,
        );
        assert_eq!(code, "data_unreadable", "a folder is no file");
    }

    #[test]
    fn a_shape_holds_what_the_file_has() {
        let folder = folder(&[("a.csv", b"a,b,c,d,y\n1,2,3,4,0\n")]);
        let (code, text) = refusal(&format!("{PLAN}\nshape = [1, 2, 3]"), &folder);
        assert_eq!(code, "data_shape");
        assert!(text.contains("4 features in all"), "{text}");
        let plan = declare(&format!("{PLAN}\nshape = [1, 2, 2]"));
        let data = load_public(&plan, folder.path()).expect("four");
        assert_eq!(data.shape(), [1, 2, 2]);
    }
}
