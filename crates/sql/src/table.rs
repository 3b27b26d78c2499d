//! Tables as statements see them: the columns of the header, as the catalog types them.
//!
//! Of a private file only the header line is read here. Public files are read whole: they are the same for everybody.
//! Reading is total: cells that are missing are NULL, cells too many are ignored, bytes that are no text are replaced.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::catalog::{Access, Catalog, Column};
use crate::error::{Result, catalog};
use crate::value::{Cell, Kind, Value};

/// The tables of a catalog, with their headers.
#[derive(Clone, Debug)]
pub struct Tables {
    tables: Vec<Source>,
}

/// One table with its columns.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) columns: Vec<(String, Column)>,
    pub(crate) content: Content,
}

/// What is known of a table's rows before a statement is paid for.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// Everything.
    Public(Arc<Vec<Vec<Value>>>),
    /// Nothing; `unit` is the place of the column that says whose a row is.
    Private {
        unit: usize,
        rows_per_unit: Option<u32>,
    },
}

/// Public tables are held in memory, up to this many rows.
const PUBLIC_ROWS_MAX: usize = 4_000_000;

impl Tables {
    /// Reads the headers of all tables and the rows of public ones. Paths are relative to `directory`.
    pub fn open(catalog: &Catalog, directory: &Path) -> Result<Self> {
        let mut tables = Vec::new();
        for (name, table) in catalog.tables() {
            let path = directory.join(table.source());
            let header = header(&path)?;
            tables.push(open(name, table, path, header)?);
        }
        Ok(Self { tables })
    }

    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.tables.iter().position(|table| table.name == name)
    }

    pub(crate) fn table(&self, at: usize) -> &Source {
        &self.tables[at]
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.tables.iter().map(|table| table.name.as_str())
    }
}

fn open(
    name: &str,
    table: &crate::catalog::Table,
    path: PathBuf,
    header: Vec<String>,
) -> Result<Source> {
    for (at, column) in header.iter().enumerate() {
        if column.is_empty() || header[..at].contains(column) {
            return Err(catalog(
                "bad_header",
                format!(
                    "table {name}: column {} has no name, or one that was there before",
                    at + 1
                ),
                "give every column of the header line a name of its own",
            ));
        }
    }
    let known = |column: &str| header.iter().position(|found| found == column);
    let missing = |column: &str| {
        catalog(
            "unknown_column",
            format!("table {name} has no column {column}"),
            format!("use one of its columns: {}", header.join(", ")),
        )
    };
    if let Some(column) = table
        .columns()
        .keys()
        .find(|column| known(column).is_none())
    {
        return Err(missing(column));
    }
    let columns: Vec<(String, Column)> = header
        .iter()
        .map(|column| {
            let declared = table.columns().get(column).cloned();
            (column.clone(), declared.unwrap_or_else(Column::text))
        })
        .collect();
    let content = match table.access() {
        Access::Private {
            unit,
            rows_per_unit,
        } => Content::Private {
            unit: known(unit).ok_or_else(|| missing(unit))?,
            rows_per_unit: *rows_per_unit,
        },
        Access::Public => {
            let mut rows = Vec::new();
            let kinds: Vec<(usize, Kind)> = columns
                .iter()
                .map(|(_, column)| column.kind)
                .enumerate()
                .collect();
            let whole = read_rows(&path, &kinds, |row| {
                rows.push(row.into_iter().map(Cell::into_value).collect());
                rows.len() <= PUBLIC_ROWS_MAX
            });
            if whole.is_err() || rows.len() > PUBLIC_ROWS_MAX {
                return Err(catalog(
                    "public_table_not_read",
                    format!("public table {name} could not be read whole"),
                    format!("give a readable CSV file of up to {PUBLIC_ROWS_MAX} rows"),
                ));
            }
            Content::Public(Arc::new(rows))
        }
    };
    Ok(Source {
        name: name.to_owned(),
        path,
        columns,
        content,
    })
}

/// The columns that the first line of a CSV file names. Nothing else is read of it.
pub fn header(path: &Path) -> Result<Vec<String>> {
    let unreadable = || {
        catalog(
            "source_not_read",
            format!("{} has no readable header line", path.display()),
            "give the path of a readable CSV file with a header line",
        )
    };
    let mut reader = reader(path).map_err(|_| unreadable())?;
    let header = reader.byte_headers().map_err(|_| unreadable())?;
    let names: Vec<String> = header
        .iter()
        .map(|name| {
            String::from_utf8_lossy(name)
                .trim_start_matches('\u{feff}')
                .trim()
                .to_owned()
        })
        .collect();
    if names.is_empty() || names == [""] {
        return Err(unreadable());
    }
    Ok(names)
}

fn reader(path: &Path) -> csv::Result<csv::Reader<std::fs::File>> {
    csv::ReaderBuilder::new().flexible(true).from_path(path)
}

/// The file could not be read. Says nothing else, since it may be a private one.
pub(crate) struct Unreadable;

/// Gives the chosen columns of each row, as their kinds, until the callback says no.
pub(crate) fn read_rows(
    path: &Path,
    columns: &[(usize, Kind)],
    mut give: impl FnMut(Vec<Cell<'_>>) -> bool,
) -> std::result::Result<(), Unreadable> {
    let mut reader = reader(path).map_err(|_| Unreadable)?;
    let mut record = csv::ByteRecord::new();
    while reader
        .read_byte_record(&mut record)
        .map_err(|_| Unreadable)?
    {
        let texts: Vec<_> = columns
            .iter()
            .map(|&(at, _)| record.get(at).map_or("".into(), String::from_utf8_lossy))
            .collect();
        let cells = texts
            .iter()
            .zip(columns)
            .map(|(text, &(_, kind))| Cell::parse(text, kind));
        if !give(cells.collect()) {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(bytes: &[u8], columns: &[(usize, Kind)]) -> Vec<Vec<Value>> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.csv");
        #[expect(clippy::disallowed_methods, reason = "a file of the test's own")]
        std::fs::write(&path, bytes).expect("written");
        let mut rows = Vec::new();
        let read = read_rows(&path, columns, |row| {
            rows.push(row.into_iter().map(Cell::into_value).collect());
            true
        });
        assert!(read.is_ok());
        rows
    }

    /// Rows that would make a strict reader fail are read as far as they go.
    #[test]
    fn every_file_can_be_read() {
        let columns = [(0, Kind::Text), (1, Kind::Int)];
        let found = rows(
            b"u,x\na,1\nb\nc,2,3,4\n\xff\xfe,zz\n\"q\"\"r,\n5\",6\n",
            &columns,
        );
        let ints: Vec<&Value> = found.iter().map(|row| &row[1]).collect();
        assert_eq!(
            ints,
            [
                &Cell::Int(1),
                &Cell::Null,
                &Cell::Int(2),
                &Cell::Null,
                &Cell::Int(6)
            ]
        );
        assert_eq!(found[3][0], Cell::text("\u{fffd}\u{fffd}"));
    }
}
