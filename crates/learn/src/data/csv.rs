//! Comma-separated values. The first line names the columns and is public; every other record is a row, whatever it holds. If a column says
//! whose a row is, one row of each unit is kept (`unit.rs`).

use std::io::Read;
use std::path::Path;

use csv::{ByteRecord, ReaderBuilder};

use super::binary::malformed;
use super::builder::{Builder, Raw, RowFault, number};
use super::error::{DataError, Result};
use super::open::{builder, stream};
use super::unit::{OneEach, Place};
use super::{Coding, Declaration, Wanted};

const KIND: &str = "CSV file";

pub(super) fn read(declaration: &Declaration, path: &Path) -> Result<Builder> {
    let Table {
        mut reader,
        names,
        columns,
        kinds,
        mut builder,
    } = open(declaration, path)?;
    let mut owned = columns.unit.map(OneEach::new);
    let mut record = ByteRecord::new();
    let mut values = Vec::with_capacity(columns.features.len());
    while reader
        .read_byte_record(&mut record)
        .map_err(|_| broken(path))?
    {
        let cell = |column: usize| {
            let cell = record.get(column)?;
            std::str::from_utf8(cell).ok()
        };
        values.clear();
        let mut known = Ok(());
        for (column, kind) in columns.features.iter().zip(&kinds) {
            known = known.and(kind.push(cell(*column), &mut values));
        }
        let values = match known {
            _ if record.len() != names => Err(RowFault::WrongLength),
            known => known.map(|()| &values[..]),
        };
        let answer = match columns.label {
            Some(label) => cell(label).map_or(Raw::Missing, Raw::Text),
            None => Raw::Number(0.0),
        };
        match owned.as_mut().map(|owned| owned.place(&record)) {
            None | Some(Place::New) => builder.row(values, answer),
            Some(Place::InsteadOf(place)) => builder.row_instead(place, values, answer),
            Some(Place::Nowhere) => {}
        }
    }
    Ok(builder)
}

/// The columns that are features, and what becomes of them, by the first line: reads no row.
pub(super) fn survey(declaration: &Declaration, path: &Path) -> Result<Builder> {
    open(declaration, path).map(|table| table.builder)
}

/// All numbers of a table, and how many stand in a row. Cells that are none are NaN.
pub(super) fn matrix(path: &Path) -> Result<(Vec<f64>, usize)> {
    let mut reader = ReaderBuilder::new()
        .flexible(true)
        .from_reader(stream(path)?);
    let names = reader.byte_headers().map_err(|_| broken(path))?.clone();
    let cell = |cell: &[u8]| std::str::from_utf8(cell).map_or(f64::NAN, number);
    let first: Vec<f64> = names.iter().map(cell).collect();
    let numbered = (0..).zip(&first).all(|(i, name)| *name == f64::from(i));
    // A file without names would lose its first row in silence. Columns may be called 0, 1, 2, as data frames do.
    if !numbered && first.iter().any(|name| name.is_finite()) {
        return Err(malformed(
            path,
            KIND,
            "its first line holds numbers, and not the names of columns",
            "give a first line that names the columns",
        ));
    }
    // It would be read as one more column of numbers, and all others be taken for their neighbours.
    if names.len() > 1
        && names
            .get(0)
            .is_some_and(|name| name.trim_ascii().is_empty())
    {
        return Err(malformed(
            path,
            KIND,
            "its first column has no name, as the numbers of rows have that data frames write",
            "leave that column out (index=False where pandas writes the file), or give it a name if it is meant",
        ));
    }
    let mut all = Vec::new();
    let mut record = ByteRecord::new();
    while reader
        .read_byte_record(&mut record)
        .map_err(|_| broken(path))?
    {
        if record.len() != names.len() {
            return Err(malformed(
                path,
                KIND,
                "a row has more or fewer cells than the first line",
                "give every row one cell for each name in the first line",
            ));
        }
        all.extend(record.iter().map(cell));
    }
    Ok((all, names.len()))
}

/// A file behind its first line.
struct Table {
    reader: csv::Reader<Box<dyn Read>>,
    names: usize,
    columns: Columns,
    kinds: Vec<Kind>,
    builder: Builder,
}

/// What the cells of a column mean.
enum Kind {
    Number,
    /// One of these texts.
    Category(Vec<String>, Coding),
}

impl Kind {
    fn of(declaration: &Declaration, column: &str) -> Self {
        match declaration.categories_of(column) {
            Some(names) => {
                let names = names.iter().map(|name| name.trim().to_owned());
                Self::Category(names.collect(), declaration.coding)
            }
            None => Self::Number,
        }
    }

    /// The features of a cell, always equally many.
    fn push(&self, cell: Option<&str>, values: &mut Vec<f64>) -> std::result::Result<(), RowFault> {
        let (names, coding) = match self {
            Self::Number => {
                values.push(cell.map_or(f64::NAN, number));
                return Ok(());
            }
            Self::Category(names, coding) => (names, coding),
        };
        let place = cell.and_then(|text| names.iter().position(|name| name == text.trim()));
        match coding {
            Coding::Indicators => {
                let of = |index| f64::from(u8::from(place == Some(index)));
                values.extend((0..names.len()).map(of));
            }
            Coding::Place => values.push(place.map_or(0.0, |place| place as f64)),
        }
        place.map(|_| ()).ok_or(RowFault::UnknownCategory)
    }
}

fn open(declaration: &Declaration, path: &Path) -> Result<Table> {
    let mut reader = ReaderBuilder::new()
        .flexible(true)
        .from_reader(stream(path)?);
    let names: Vec<String> = reader
        .byte_headers()
        .map_err(|_| broken(path))?
        .iter()
        .map(|name| String::from_utf8_lossy(name).trim().to_owned())
        .collect();
    if names.iter().all(String::is_empty) {
        return Err(malformed(
            path,
            KIND,
            "its first line names no columns",
            "give a first line with the names of the columns",
        ));
    }
    let columns = columns(declaration, path, &names)?;
    let named = columns.features.iter().map(|place| names[*place].as_str());
    let width = named
        .clone()
        .map(|column| declaration.width_of(column))
        .sum();
    let kinds = named
        .clone()
        .map(|column| Kind::of(declaration, column))
        .collect();
    for column in declaration
        .categories
        .iter()
        .flatten()
        .map(|(column, _)| column)
    {
        if !named.clone().any(|name| name == column) {
            return Err(DataError::Column {
                path: path.into(),
                column: column.clone(),
                twice: false,
                found: names,
            });
        }
    }
    if declaration.columns.is_none() {
        are_names(path, named.clone())?;
    }
    let builder = builder(declaration, path, vec![width], 1.0, 0)?;
    let builder = builder.of_columns(named.map(str::to_owned).collect());
    Ok(Table {
        reader,
        names: names.len(),
        columns,
        kinds,
        builder,
    })
}

/// Refuses numbers in the place of names, where nobody has declared that columns are called so: in a file without a first line they are somebody's row. Columns
/// may be counted, from 0 or from 1, as data frames do.
fn are_names<'a>(path: &Path, names: impl Iterator<Item = &'a str> + Clone) -> Result<()> {
    let is_counted = |first: u32| {
        (first..)
            .zip(names.clone())
            .all(|(at, name)| number(name) == f64::from(at))
    };
    let is_number = |name: &str| number(name).is_finite();
    if names.clone().any(is_number) && !is_counted(0) && !is_counted(1) {
        return Err(malformed(
            path,
            KIND,
            "its first line holds numbers where names of columns should be",
            "give a first line that names the columns; if they are called so, list them as `columns`",
        ));
    }
    Ok(())
}

fn broken(path: &Path) -> DataError {
    malformed(
        path,
        KIND,
        "it cannot be read to its end",
        "give the whole file, unpacked or as .gz",
    )
}

/// The places of columns in a table.
pub(super) struct Columns {
    pub(super) features: Vec<usize>,
    /// None where labels are not wanted.
    pub(super) label: Option<usize>,
    pub(super) unit: Option<usize>,
}

/// The places of the features, of the label and of the unit among the names of a table.
pub(super) fn columns(declaration: &Declaration, path: &Path, names: &[String]) -> Result<Columns> {
    let place = |column: &str| {
        let mut places = (0..names.len()).filter(|place| names[*place] == column);
        match (places.next(), places.next()) {
            (Some(place), None) => Ok(place),
            (first, _) => Err(DataError::Column {
                path: path.into(),
                column: column.into(),
                twice: first.is_some(),
                found: names.to_vec(),
            }),
        }
    };
    let label = match declaration.wanted {
        Wanted::Labelled => Some(place(declaration.label.as_deref().unwrap_or_default())?),
        Wanted::Features => None,
    };
    let unit = declaration.unit.as_deref().map(place).transpose()?;
    // What is to be learnt is no feature, also where nobody looks for it.
    let is_label = |place: &usize| declaration.label.as_ref() == Some(&names[*place]);
    let features: Vec<usize> = match &declaration.columns {
        Some(columns) => columns
            .iter()
            .map(|column| place(column))
            .collect::<Result<_>>()?,
        None => (0..names.len())
            .filter(|place| !is_label(place) && Some(*place) != unit)
            .collect(),
    };
    if features.is_empty() || label.is_some_and(|label| features.contains(&label)) {
        return Err(DataError::Domain {
            field: "columns",
            given: if features.is_empty() {
                "empty, since the file has no column but the label".into()
            } else {
                "a list that holds the label".into()
            },
            passes: "at least one column that is not what is to be learnt".into(),
        });
    }
    Ok(Columns {
        features,
        label,
        unit,
    })
}

#[cfg(test)]
mod tests {
    use super::super::open::tests::{folder, refusal, rows};

    const PLAN: &str = "path = 'a.csv'\nlabel = 'kind'\nclasses = ['cat', 'dog']";

    #[test]
    fn columns_are_taken_by_name_and_in_order() {
        let table = b"kind, a,b\ndog,1,2\n\"cat\",\"3\",4e1\n";
        let folder = folder(&[("a.csv", table)]);
        let all = [Some((vec![1.0, 2.0], 1.0)), Some((vec![3.0, 40.0], 0.0))];
        assert_eq!(rows(PLAN, &folder), all);
        let turned = [Some((vec![2.0, 1.0], 1.0)), Some((vec![40.0, 3.0], 0.0))];
        assert_eq!(
            rows(&format!("{PLAN}\ncolumns = ['b', 'a']"), &folder),
            turned
        );
        let one = rows(&format!("{PLAN}\ncolumns = ['b']\nmean = 2"), &folder);
        assert_eq!(one, [Some((vec![0.0], 1.0)), Some((vec![38.0], 0.0))]);
    }

    #[test]
    fn rows_of_any_kind_are_rows() {
        let table =
            b"a,kind\n1,dog\n,dog\nx,dog\ninf,dog\n1\n1,dog,2\n1,cow\n\xff,dog\n1,\xff\n2,cat\n";
        let folder = folder(&[("a.csv", table)]);
        let found = rows(PLAN, &folder);
        assert_eq!(found.len(), 10);
        let kept: Vec<_> = (0..10).filter(|row| found[*row].is_some()).collect();
        assert_eq!(kept, [0, 9]);
    }

    #[test]
    fn categories_are_features_whatever_rows_hold() {
        let table = b"who,a,kind\nx,1,dog\n y,2,cat\nz,3,dog\n,4,cat\n";
        let folder = folder(&[("a.csv", table)]);
        let plan =
            format!("{PLAN}\ncolumns = ['who', 'a']\ncategories = {{ who = ['y', 'x', 'w'] }}");
        let known = [
            Some((vec![0.0, 1.0, 0.0, 1.0], 1.0)),
            Some((vec![1.0, 0.0, 0.0, 2.0], 0.0)),
            None,
            None,
        ];
        assert_eq!(rows(&plan, &folder), known);
        for (from, to, code, part) in [
            (
                "'y', 'x', 'w'",
                "'y', 'y'",
                "data_field_domain",
                "2 to 4096 different texts",
            ),
            (
                "'y', 'x', 'w'",
                "'y'",
                "data_field_domain",
                "2 to 4096 different texts",
            ),
            (
                "{ who",
                "{ kind",
                "data_field_domain",
                "columns that are in `columns`",
            ),
            (
                "columns = ['who', 'a']\ncategories = { who",
                "categories = { whose",
                "data_column",
                "whose",
            ),
            (
                "a.csv",
                "a.parquet",
                "data_field_unused",
                "leave `categories` out",
            ),
        ] {
            let (found, text) = refusal(&plan.replace(from, to), &folder);
            assert_eq!(found, code, "{text}");
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn of_each_unit_one_row_is_kept_whatever_their_order() {
        let plan = format!("{PLAN}\nunit = 'who'\nrows_per_unit = 1");
        let lines = [
            "ann,1,dog",
            "ben,2,cat",
            " ann ,3,cat",
            ",4,dog",
            "ann,x,dog",
        ];
        let kept = |order: &[usize]| {
            let rows_of = order.iter().map(|&line| lines[line]);
            let text = format!("who,a,kind\n{}", rows_of.collect::<Vec<_>>().join("\n"));
            let folder = folder(&[("a.csv", text.as_bytes())]);
            rows(&plan, &folder)
        };
        let forward = kept(&[0, 1, 2, 3, 4]);
        assert_eq!(forward.len(), 2, "a row of nobody is left out");
        assert_eq!(forward[1], Some((vec![2.0], 0.0)));
        let backward = kept(&[4, 3, 2, 1, 0]);
        assert_eq!(backward, forward);
        // Each unit's row is its own affair: without ben, ann's is the same.
        assert_eq!(kept(&[2, 0, 4]), forward[..1]);
        let other = [kept(&[0]), kept(&[2]), kept(&[4])].concat();
        assert!(other.contains(&forward[0]));
    }

    #[test]
    fn numbers_can_be_learnt() {
        let folder = folder(&[("a.csv", b"a,kind\n1,0.5\n2,\n3,nan\n")]);
        let plan = "path = 'a.csv'\nlabel = 'kind'";
        assert_eq!(rows(plan, &folder), [Some((vec![1.0], 0.5)), None, None]);
    }

    #[test]
    fn columns_that_are_not_there_are_refused_and_no_cell_is_told() {
        let files: [(&str, &[u8]); 5] = [
            ("rows.csv", b"SECRET-4711,52,dog\nb,3,cat\n"),
            ("numbers.csv", b"kind,4711,52\ndog,3,4\n"),
            ("a.csv", b"kind,a,a\n"),
            ("only.csv", b"kind\ndog\n"),
            ("empty.csv", b""),
        ];
        let folder = folder(&files);
        let check = |plan: &str, code: &str, part: &str| {
            let (found, text) = refusal(plan, &folder);
            assert_eq!(found, code, "{plan}");
            assert!(text.contains(part) && !text.contains("4711"), "{text}");
        };
        check(
            &PLAN.replace("kind", "type"),
            "data_column",
            "none of its 3 columns is called so",
        );
        check(
            &PLAN.replace("kind", "Kind "),
            "data_column",
            "is \"kind\" meant?",
        );
        // Without a first line, what stands there is somebody's row.
        check(
            &PLAN.replace("a.csv", "rows.csv"),
            "data_column",
            "if its first line is a row already",
        );
        check(
            &PLAN.replace("a.csv", "numbers.csv"),
            "data_malformed",
            "numbers where names of columns should be",
        );
        check(
            &format!("{PLAN}\ncolumns = ['a']"),
            "data_column",
            "more than one",
        );
        check(
            &format!("{PLAN}\ncolumns = ['kind']"),
            "data_field_domain",
            "not what is to be learnt",
        );
        check(
            &PLAN.replace("a.csv", "only.csv"),
            "data_field_domain",
            "at least one",
        );
        check(
            &PLAN.replace("a.csv", "empty.csv"),
            "data_malformed",
            "names of the columns",
        );
    }
}
