//! Comma-separated values. The first line names the columns and is public; every other record is a row, whatever it holds.

use std::path::Path;

use csv::{ByteRecord, ReaderBuilder};

use super::Declaration;
use super::binary::malformed;
use super::builder::{Builder, Raw, RowFault, number};
use super::error::{DataError, Result};
use super::open::{builder, stream};

const KIND: &str = "CSV file";

pub(super) fn read(declaration: &Declaration, path: &Path) -> Result<Builder> {
    let broken = || {
        malformed(
            path,
            KIND,
            "it cannot be read to its end",
            "give the whole file, unpacked or as .gz",
        )
    };
    let mut reader = ReaderBuilder::new()
        .flexible(true)
        .from_reader(stream(path)?);
    let names: Vec<String> = reader
        .byte_headers()
        .map_err(|_| broken())?
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
    let (features, label) = columns(declaration, path, &names)?;
    let mut builder = builder(declaration, path, vec![features.len()], 1.0, 0)?;
    let mut record = ByteRecord::new();
    let mut values = Vec::with_capacity(features.len());
    while reader.read_byte_record(&mut record).map_err(|_| broken())? {
        let cell = |column: usize| {
            let cell = record.get(column)?;
            std::str::from_utf8(cell).ok()
        };
        values.clear();
        let found = features
            .iter()
            .map(|column| cell(*column).map_or(f64::NAN, number));
        values.extend(found);
        let values = if record.len() == names.len() {
            Ok(&values[..])
        } else {
            Err(RowFault::WrongLength)
        };
        builder.row(values, cell(label).map_or(Raw::Missing, Raw::Text));
    }
    Ok(builder)
}

/// The places of the features and of the label among the names of a table.
pub(super) fn columns(
    declaration: &Declaration,
    path: &Path,
    names: &[String],
) -> Result<(Vec<usize>, usize)> {
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
    let label = place(declaration.label.as_deref().unwrap_or_default())?;
    let features: Vec<usize> = match &declaration.columns {
        Some(columns) => columns
            .iter()
            .map(|column| place(column))
            .collect::<Result<_>>()?,
        None => (0..names.len()).filter(|place| *place != label).collect(),
    };
    if features.is_empty() || features.contains(&label) {
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
    Ok((features, label))
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
    fn numbers_can_be_learnt() {
        let folder = folder(&[("a.csv", b"a,kind\n1,0.5\n2,\n3,nan\n")]);
        let plan = "path = 'a.csv'\nlabel = 'kind'";
        assert_eq!(rows(plan, &folder), [Some((vec![1.0], 0.5)), None, None]);
    }

    #[test]
    fn columns_that_are_not_there_are_refused_with_those_that_are() {
        let files: [(&str, &[u8]); 3] = [
            ("a.csv", b"kind,a,a\n"),
            ("only.csv", b"kind\ndog\n"),
            ("empty.csv", b""),
        ];
        let folder = folder(&files);
        let check = |plan: &str, code: &str, part: &str| {
            let (found, text) = refusal(plan, &folder);
            assert_eq!(found, code, "{plan}");
            assert!(text.contains(part), "{text}");
        };
        check(
            &PLAN.replace("kind", "type"),
            "data_column",
            "it has kind, a, a",
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
