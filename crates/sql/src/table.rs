//! Tables as statements see them: the columns of the header, as the catalog types them.
//!
//! Of a private file only the header line is read here. Public files are read whole: they are the same for everybody.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use datafusion::arrow::record_batch::RecordBatch;

use crate::analyze::most_alike;
use crate::batch::{Batches, schema};
use crate::catalog::{Access, Catalog, Column};
use crate::engine::{Engine, Width};
use crate::error::{Error, Result, catalog};
use crate::record::{Rows, Unreadable, Wanted, read_header};
use crate::value::Kind;
use crate::workers::Workers;

/// The tables of a catalog, with their headers, and the engine that reads them.
#[derive(Clone, Debug)]
pub struct Tables {
    tables: Vec<Source>,
    id: u64,
    engine: Arc<Engine>,
    planners: Arc<Workers>,
    /// How many rows of public tables are alike in some columns: found once, asked for by every join.
    alike: Arc<Mutex<Alike>>,
}

/// By table and columns.
type Alike = BTreeMap<(usize, Vec<usize>), u64>;

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
    /// Everything, in the columns of the header.
    Public(Arc<Vec<RecordBatch>>),
    /// Nothing; `unit` is the place of the column that says whose a row is.
    Private {
        unit: usize,
        rows_per_unit: Option<u32>,
    },
}

/// The planner walks deep expressions by recursion; so many bytes are enough for the longest text.
const PLANNER_STACK_BYTES: usize = 256 << 20;

/// Up to so many bytes are read before another thread would have started.
const NARROW_BYTES_MAX: u64 = 1 << 20;

/// Public tables are held in memory, up to this many rows.
const PUBLIC_ROWS_MAX: usize = 4_000_000;

impl Tables {
    /// Reads the headers of all tables and the rows of public ones. Paths are relative to `directory`.
    pub fn open(catalog: &Catalog, directory: &Path) -> Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut tables = Vec::new();
        for (name, table) in catalog.tables() {
            let path = directory.join(table.source());
            let header = header(&path)?;
            tables.push(open(name, table, path, header)?);
        }
        Ok(Self {
            tables,
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            engine: Arc::new(Engine::new()),
            planners: Arc::new(Workers::new(1, PLANNER_STACK_BYTES)),
            alike: Arc::default(),
        })
    }

    /// What tells these tables from all others that were opened. A plan speaks of places of tables and columns, so it must not
    /// meet other tables than those it was made for.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn check(&self, id: u64) -> Result<()> {
        if self.id == id {
            Ok(())
        } else {
            Err(Error::OtherTables)
        }
    }

    /// How many rows of a public table are alike in some of its columns, at most.
    pub(crate) fn most_alike(&self, table: usize, columns: &[usize]) -> u64 {
        let Content::Public(batches) = &self.tables[table].content else {
            return u64::MAX;
        };
        let key = (table, columns.to_vec());
        let known = self
            .alike
            .lock()
            .ok()
            .and_then(|alike| alike.get(&key).copied());
        known.unwrap_or_else(|| {
            let most = most_alike(batches, columns);
            if let Ok(mut alike) = self.alike.lock() {
                alike.insert(key, most);
            }
            most
        })
    }

    /// Where statements are planned.
    pub(crate) fn planners(&self) -> &Workers {
        &self.planners
    }

    /// How many threads a statement is worth, by what the files of private tables hold now.
    pub(crate) fn width(&self) -> Width {
        let private = |source: &&Source| matches!(source.content, Content::Private { .. });
        let bytes = |source: &Source| std::fs::metadata(&source.path).map_or(0, |file| file.len());
        let bytes: u64 = self.tables.iter().filter(private).map(bytes).sum();
        if bytes <= NARROW_BYTES_MAX {
            Width::Narrow
        } else {
            Width::Wide
        }
    }

    /// Makes the threads that statements run on. To be called before one is paid for: afterwards, that there are none could not be told
    /// from rows that cannot be read.
    pub fn start(&self) -> Result<()> {
        self.engine.start().ok_or(Error::NoThreads)
    }

    /// Where they run.
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The columns of the table of that name, and what each holds.
    pub fn columns(&self, name: &str) -> Option<Vec<(&str, Kind)>> {
        let table = self.table(self.position(name)?);
        let columns = table.columns.iter();
        Some(
            columns
                .map(|(name, column)| (name.as_str(), column.kind))
                .collect(),
        )
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
        } => {
            let unit = known(unit).ok_or_else(|| missing(unit))?;
            let (column, declared) = &columns[unit];
            if declared.kind == Kind::Real {
                return Err(catalog(
                    "unit_of_floats",
                    format!(
                        "table {name}: the unit {column} is of type float, in which long numbers are not told apart"
                    ),
                    "give the unit's column type = \"int\" or \"text\"",
                ));
            }
            Content::Private {
                unit,
                rows_per_unit: *rows_per_unit,
            }
        }
        Access::Public => {
            let wanted: Vec<Wanted> = (columns.iter().enumerate())
                .map(|(place, (_, column))| Wanted {
                    place,
                    kind: column.kind,
                    unit: false,
                })
                .collect();
            let kinds = columns
                .iter()
                .map(|(name, column)| (name.as_str(), column.kind));
            let mut batches = Batches::new(schema(kinds));
            let (mut done, mut count) = (Vec::new(), 0);
            let mut read = || -> std::result::Result<(), Unreadable> {
                let mut rows = Rows::open(&path, &header, &wanted)?;
                while count <= PUBLIC_ROWS_MAX
                    && let Some(row) = rows.next()?
                {
                    count += 1;
                    done.extend(batches.push(row));
                }
                Ok(())
            };
            let whole = read();
            if whole.is_err() || count > PUBLIC_ROWS_MAX {
                return Err(catalog(
                    "public_table_not_read",
                    format!("public table {name} could not be read whole"),
                    format!("give a readable CSV file of up to {PUBLIC_ROWS_MAX} rows"),
                ));
            }
            done.extend(batches.finish());
            Content::Public(Arc::new(done))
        }
    };
    Ok(Source {
        name: name.to_owned(),
        path,
        columns,
        content,
    })
}

/// The columns that the first line of a CSV file names. Nothing else is told of it.
pub fn header(path: &Path) -> Result<Vec<String>> {
    if !path.exists() {
        return Err(catalog(
            "source_not_read",
            format!("there is no file {}", path.display()),
            "check the path; that of a table is relative to the catalog",
        ));
    }
    read_header(path)
        .filter(|names| names.iter().any(|name| !name.is_empty()))
        .ok_or_else(|| {
            catalog(
                "source_not_read",
                format!("{} has no readable header line", path.display()),
                "give the path of a readable CSV file whose first line names its columns, each on that line and within 256 bytes",
            )
        })
}
