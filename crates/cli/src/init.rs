//! `whit init`: a first catalog.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use whit::Failure;
use whit::session::{catalog, header};

use crate::Format;
use crate::place::CATALOG;

/// Writes a first whit.toml for CSV files.
///
/// Only the header line of each file is read: what its columns hold, whose its rows are and what may be public is the owner's to say,
/// in the lines that are marked. Then whit check looks the catalog over, and whit query asks.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// CSV files, each of which becomes a table
    #[arg(value_name = "FILE.csv", required = true)]
    files: Vec<PathBuf>,
    /// The column that says whose a row is, in each file that has it; else it is yours to write into the catalog, which is refused without
    #[arg(long, value_name = "COLUMN")]
    unit: Option<String>,
    /// What the data set is called in its ledger; else as this folder is
    #[arg(long, value_name = "NAME")]
    dataset: Option<String>,
    /// Where to write the catalog; files are named relative to its folder
    #[arg(long, value_name = "PATH", default_value = CATALOG)]
    output: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  whit init visits.csv --unit patient
      All rows of one patient are protected together.
  whit init visits.csv wards.csv --unit patient --dataset hospital
      If wards.csv has no column patient, say in the catalog whose its rows are, or public = true.";

pub(crate) fn run(arguments: Arguments, format: Format) -> Result<String, Failure> {
    let folder = arguments.output.parent().unwrap_or(Path::new(""));
    let mut files = Vec::new();
    for path in &arguments.files {
        let name = relative(path, folder)?;
        // What is there and is no table is for its reader to say.
        if !path.exists() {
            return Err(Failure::invalid(
                "source_not_read",
                &format!("there is no file {path:?}"),
                "give the path of a CSV file whose first line names its columns",
            ));
        }
        let columns = header(path)?;
        by_commas(path, &columns)?;
        are_names(path, &columns)?;
        files.push((name, columns));
    }
    let unit = arguments.unit.as_deref().map(str::trim);
    if let Some(unit) = unit
        && !files
            .iter()
            .any(|(_, columns)| columns.iter().any(|column| column == unit))
    {
        return Err(Failure::invalid(
            "unknown_column",
            &format!("no file has a column {unit:?}"),
            "give --unit as it stands in the first line of a file, letter by letter",
        ));
    }
    let dataset = match arguments.dataset {
        Some(name) => name,
        None => folder_name(folder),
    };
    let text = catalog::draft(&dataset, &files, unit)?;
    write_new(&arguments.output, &text)?;
    let path = arguments.output.display();
    match format {
        Format::Json => Ok(json!({ "catalog": path.to_string() }).to_string()),
        Format::Table => Ok(format!(
            "wrote {path}\nNow say in it whose the rows are (`unit`, in each table that has none yet) and what the columns hold; then run whit check."
        )),
    }
}

/// A file whose columns are separated otherwise would be one column, and each of its rows a unit of its own.
fn by_commas(path: &Path, columns: &[String]) -> Result<(), Failure> {
    match columns {
        [all] if all.contains([';', '|']) => Err(Failure::invalid(
            "not_by_commas",
            &format!(
                "the first line of {path:?} is one name with ; or | in it: are there several?"
            ),
            "separate columns by commas, as in patient,ward,cost; quote cells that hold commas",
        )),
        _ => Ok(()),
    }
}

/// A file without a first line of names has somebody's row there, which must not become part of a catalog.
fn are_names(path: &Path, columns: &[String]) -> Result<(), Failure> {
    let is_number = |name: &String| name.trim().parse::<f64>().is_ok_and(f64::is_finite);
    match columns.iter().any(is_number) {
        true => Err(Failure::invalid(
            "no_names",
            &format!("the first line of {path:?} holds numbers where names of columns should be"),
            "put a line with the names of the columns before the rows; call none of them a number",
        )),
        false => Ok(()),
    }
}

/// As the catalog will find it.
fn relative(path: &Path, folder: &Path) -> Result<String, Failure> {
    let inner = path.strip_prefix(folder).unwrap_or(path);
    let is_beside = folder.as_os_str().is_empty() || inner != path || path.is_absolute();
    match inner.to_str() {
        Some(name) if is_beside => Ok(name.to_owned()),
        _ => Err(Failure::invalid(
            "file_elsewhere",
            &format!(
                "the file {path:?} is not below the folder of the catalog, or its name is no text"
            ),
            "write the catalog beside its files, or give their whole paths",
        )),
    }
}

fn folder_name(folder: &Path) -> String {
    let whole = folder.canonicalize().or_else(|_| std::env::current_dir());
    let name = whole
        .ok()
        .and_then(|whole| Some(whole.file_name()?.to_str()?.to_owned()));
    name.unwrap_or_else(|| "data".into())
}

/// Never over another file.
#[expect(clippy::disallowed_methods, reason = "a door writes files")]
fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    let file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| {
            let (reason, suggestion) = if error.kind() == std::io::ErrorKind::AlreadyExists {
                (
                    format!("{path:?} is there already"),
                    "edit it, or give --output another path",
                )
            } else {
                (
                    format!("{path:?} cannot be written: {error}"),
                    "give --output a path that you may write to",
                )
            };
            Failure::invalid("catalog_not_written", &reason, suggestion)
        })
}
