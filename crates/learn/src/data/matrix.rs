//! Plain tables of numbers: npy arrays of two sides, CSV with a first line of names, and flat Parquet columns.

use std::path::Path;

use super::error::{DataError, Result};
use super::{csv, npy, parquet};

/// Rows of the same length. Nulls, and cells that are no numbers, are NaN.
pub(crate) struct Matrix {
    pub(crate) values: Vec<f64>,
    pub(crate) width: usize,
}

/// Reads a table by the ending of its name; `.gz` may follow.
pub(crate) fn matrix(path: &Path) -> Result<Matrix> {
    let name = path.to_string_lossy().to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let (values, width) = match name.rsplit('.').next() {
        Some("npy") => npy::matrix(path)?,
        Some("csv") => csv::matrix(path)?,
        Some("parquet") => parquet::matrix(path)?,
        _ => {
            return Err(DataError::Malformed {
                path: path.into(),
                kind: "table of numbers",
                what: "its name ends otherwise than .npy, .csv or .parquet",
                passes: "give an array of numpy.save, a CSV file with a line of names, or a Parquet file",
            });
        }
    };
    Ok(Matrix { values, width })
}
