//! Parquet: flat columns of integers, floats or booleans, and a label that may be text. Columns and their types are public.

use std::fs::File;
use std::panic::catch_unwind;
use std::path::Path;

use parquet::basic::{ConvertedType, LogicalType, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;

use super::binary::malformed;
use super::builder::{Builder, Raw};
use super::csv::{Columns, columns};
use super::error::{DataError, Result};
use super::open::{builder, file};
use super::{Classes, Declaration};

const KIND: &str = "Parquet file";

/// Rows that are decoded at a time; a page of each column is in memory in any case.
const BATCH: usize = 1024;

/// A decoder that panics at a damaged file has not read it to its end either.
pub(super) fn read(declaration: &Declaration, path: &Path) -> Result<Builder> {
    catch_unwind(|| read_through(declaration, path)).unwrap_or_else(|_| Err(broken(path)))
}

fn broken(path: &Path) -> DataError {
    malformed(
        path,
        KIND,
        "it cannot be read to its end",
        "write it whole, with snappy, zstd or no compression, and without encryption",
    )
}

/// The columns that are features, and what becomes of them: reads no row.
pub(super) fn survey(declaration: &Declaration, path: &Path) -> Result<Builder> {
    let found = || {
        let reader = SerializedFileReader::new(file(path)?).map_err(|_| broken(path))?;
        let places = places(declaration, path, &reader)?;
        named(declaration, path, (&reader, &places), 0)
    };
    catch_unwind(found).unwrap_or_else(|_| Err(broken(path)))
}

/// What examples are added to, of the columns that are features.
fn named(
    declaration: &Declaration,
    path: &Path,
    (reader, places): (&SerializedFileReader<File>, &Places),
    rows: usize,
) -> Result<Builder> {
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let places = &places.places[..places.features];
    let name = |place: &usize| schema.column(*place).path().string();
    let builder = builder(declaration, path, vec![places.len()], 1.0, rows)?;
    Ok(builder.of_columns(places.iter().map(name).collect()))
}

/// The places of columns that are read.
struct Places {
    /// How many of them are features.
    features: usize,
    /// Those of the features, and last that of the label if it is wanted.
    places: Vec<usize>,
}

fn places(
    declaration: &Declaration,
    path: &Path,
    reader: &SerializedFileReader<File>,
) -> Result<Places> {
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let names: Vec<String> = schema
        .columns()
        .iter()
        .map(|column| column.path().string())
        .collect();
    let Columns {
        features: mut places,
        label,
        ..
    } = columns(declaration, path, &names)?;
    let features = places.len();
    places.extend(label);
    let named = declaration.classes.as_ref().and_then(Classes::names);
    for (index, place) in places.iter().enumerate() {
        let column = schema.column(*place);
        let text = index == features && named.is_some() && is_text(&column);
        if !text && !is_number(&column) {
            return Err(DataError::ColumnType {
                path: path.into(),
                column: names[*place].clone(),
            });
        }
    }
    Ok(Places { features, places })
}

fn read_through(declaration: &Declaration, path: &Path) -> Result<Builder> {
    let broken = |_| broken(path);
    let reader = SerializedFileReader::new(file(path)?).map_err(broken)?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let found = places(declaration, path, &reader)?;
    // The number of rows is private, but memory that is reserved for them is as much as they take.
    let rows = usize::try_from(reader.metadata().file_metadata().num_rows()).unwrap_or(0);
    let mut builder = named(declaration, path, (&reader, &found), rows)?;
    let Places { features, places } = found;
    let mut cells: Vec<Cells> = places
        .iter()
        .map(|place| Cells::new(&schema.column(*place)))
        .collect();
    let mut values = vec![0.0; features];
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(broken)?;
        let mut readers = places
            .iter()
            .map(|place| group.get_column_reader(*place).map_err(broken))
            .collect::<Result<Vec<_>>>()?;
        let mut left = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        while left > 0 {
            let batch = left.min(BATCH);
            for (reader, cells) in readers.iter_mut().zip(&mut cells) {
                let found = cells.read(reader, batch).map_err(broken)?;
                if found != batch {
                    // A column that is shorter than its group: the footer does not tell the truth.
                    return Err(broken(parquet::errors::ParquetError::EOF(String::new())));
                }
            }
            for row in 0..batch {
                for (value, cells) in values.iter_mut().zip(&cells) {
                    *value = cells.numbers[row];
                }
                let answer = match cells.get(features) {
                    Some(label) => match label.texts.get(row) {
                        Some(Some(text)) => text.as_utf8().map_or(Raw::Missing, Raw::Text),
                        Some(None) => Raw::Missing,
                        None => Raw::Number(label.numbers[row]),
                    },
                    None => Raw::Number(0.0),
                };
                builder.row(Ok(&values), answer);
            }
            left -= batch;
        }
    }
    Ok(builder)
}

/// All numbers of a table, row by row, and how many stand in a row. Nulls are NaN.
pub(super) fn matrix(path: &Path) -> Result<(Vec<f64>, usize)> {
    catch_unwind(|| matrix_through(path)).unwrap_or_else(|_| Err(broken(path)))
}

fn matrix_through(path: &Path) -> Result<(Vec<f64>, usize)> {
    let reader = SerializedFileReader::new(file(path)?).map_err(|_| broken(path))?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    if let Some(column) = schema.columns().iter().find(|column| !is_number(column)) {
        return Err(DataError::ColumnType {
            path: path.into(),
            column: column.path().string(),
        });
    }
    let width = schema.columns().len();
    let mut all = Vec::new();
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(|_| broken(path))?;
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        let start = all.len();
        all.resize(start + rows * width, f64::NAN);
        for place in 0..width {
            let mut cells = Cells::new(&schema.column(place));
            let mut column = group.get_column_reader(place).map_err(|_| broken(path))?;
            let found = cells.read(&mut column, rows).map_err(|_| broken(path))?;
            if found != rows {
                return Err(broken(path));
            }
            for (row, value) in cells.numbers.iter().enumerate() {
                all[start + row * width + place] = *value;
            }
        }
    }
    Ok((all, width))
}

fn is_flat(column: &ColumnDescriptor) -> bool {
    column.max_rep_level() == 0 && column.max_def_level() <= 1 && column.path().parts().len() == 1
}

/// Dates, times and decimals are stored as integers too, but mean something else.
fn is_number(column: &ColumnDescriptor) -> bool {
    let plain = match column.physical_type() {
        Type::BOOLEAN | Type::FLOAT | Type::DOUBLE => true,
        Type::INT32 | Type::INT64 => match column.logical_type_ref() {
            Some(kind) => matches!(kind, LogicalType::Integer(_)),
            None => {
                let signed = [
                    ConvertedType::NONE,
                    ConvertedType::INT_8,
                    ConvertedType::INT_16,
                    ConvertedType::INT_32,
                    ConvertedType::INT_64,
                ];
                is_unsigned(column) || signed.contains(&column.converted_type())
            }
        },
        _ => false,
    };
    plain && is_flat(column)
}

fn is_unsigned(column: &ColumnDescriptor) -> bool {
    match column.logical_type_ref() {
        Some(LogicalType::Integer(integer)) => !integer.is_signed,
        _ => {
            let unsigned = [
                ConvertedType::UINT_8,
                ConvertedType::UINT_16,
                ConvertedType::UINT_32,
                ConvertedType::UINT_64,
            ];
            unsigned.contains(&column.converted_type())
        }
    }
}

fn is_text(column: &ColumnDescriptor) -> bool {
    column.physical_type() == Type::BYTE_ARRAY && is_flat(column)
}

/// One batch of a column: NaN or `None` where there is a null. `texts` is empty unless the column is text.
struct Cells {
    unsigned: bool,
    numbers: Vec<f64>,
    texts: Vec<Option<ByteArray>>,
}

impl Cells {
    fn new(column: &ColumnDescriptor) -> Self {
        Self {
            unsigned: is_unsigned(column),
            numbers: Vec::with_capacity(BATCH),
            texts: Vec::new(),
        }
    }

    /// How many rows were there.
    fn read(&mut self, reader: &mut ColumnReader, rows: usize) -> parquet::errors::Result<usize> {
        let numbers = &mut self.numbers;
        match reader {
            ColumnReader::BoolColumnReader(column) => {
                spread(column, rows, numbers, f64::NAN, |value| {
                    f64::from(u8::from(value))
                })
            }
            ColumnReader::Int32ColumnReader(column) if self.unsigned => {
                spread(column, rows, numbers, f64::NAN, |value| {
                    f64::from(value.cast_unsigned())
                })
            }
            ColumnReader::Int32ColumnReader(column) => {
                spread(column, rows, numbers, f64::NAN, f64::from)
            }
            ColumnReader::Int64ColumnReader(column) if self.unsigned => {
                spread(column, rows, numbers, f64::NAN, |value| {
                    value.cast_unsigned() as f64
                })
            }
            ColumnReader::Int64ColumnReader(column) => {
                spread(column, rows, numbers, f64::NAN, |value| value as f64)
            }
            ColumnReader::FloatColumnReader(column) => {
                spread(column, rows, numbers, f64::NAN, f64::from)
            }
            ColumnReader::DoubleColumnReader(column) => {
                spread(column, rows, numbers, f64::NAN, |value| value)
            }
            ColumnReader::ByteArrayColumnReader(column) => {
                spread(column, rows, &mut self.texts, None, Some)
            }
            // Refused by `is_number` before anything is read.
            _ => Ok(0),
        }
    }
}

/// Reads values, and puts each where its row is.
fn spread<T: DataType, V: Clone>(
    column: &mut ColumnReaderImpl<T>,
    rows: usize,
    into: &mut Vec<V>,
    null: V,
    convert: impl Fn(T::T) -> V,
) -> parquet::errors::Result<usize> {
    let (mut present, mut values) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
    into.clear();
    while into.len() < rows {
        present.clear();
        values.clear();
        let missing = rows - into.len();
        let (found, _, _) = column.read_records(missing, Some(&mut present), None, &mut values)?;
        if found == 0 {
            break;
        }
        let mut values = values.drain(..).map(&convert);
        if present.is_empty() {
            into.extend(values.take(found));
        } else {
            let placed = present.iter().map(|level| match level {
                0 => Some(null.clone()),
                _ => values.next(),
            });
            into.extend(placed.flatten());
        }
    }
    Ok(into.len())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::basic::Compression;
    use parquet::column::writer::ColumnWriter;
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    use super::super::open::tests::{folder, refusal, rows};
    use super::*;

    const SCHEMA: &str = "message rows {
        required double a; optional int32 b; required boolean c; required int64 d (integer(64, false));
        optional binary kind (string); required int32 day (date); repeated float many; }";
    const PLAN: &str = "path = 'x.parquet'\nlabel = 'kind'\nclasses = ['cat', 'dog']\ncolumns = ['a', 'b', 'c', 'd']";

    /// Two groups of three rows; the second row of each has no `b`, the third no kind.
    fn table(compression: Compression) -> Vec<u8> {
        let schema = Arc::new(parse_message_type(SCHEMA).expect("a schema"));
        let properties = WriterProperties::builder()
            .set_compression(compression)
            .build();
        let mut bytes = Vec::new();
        let mut writer =
            SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties)).expect("a writer");
        for group in 0..2 {
            let mut rows = writer.next_row_group().expect("a group");
            let mut index = 0;
            while let Some(mut column) = rows.next_column().expect("a column") {
                let written = match column.untyped() {
                    ColumnWriter::DoubleColumnWriter(column) => {
                        let first = f64::from(group);
                        column.write_batch(&[first, 0.5, -1.0], None, None)
                    }
                    ColumnWriter::Int32ColumnWriter(column) if index == 1 => {
                        column.write_batch(&[7, 9], Some(&[1, 0, 1]), None)
                    }
                    ColumnWriter::Int32ColumnWriter(column) => {
                        column.write_batch(&[1, 2, 3], None, None)
                    }
                    ColumnWriter::BoolColumnWriter(column) => {
                        column.write_batch(&[true, false, true], None, None)
                    }
                    ColumnWriter::Int64ColumnWriter(column) => {
                        column.write_batch(&[-1, 2, 3], None, None)
                    }
                    ColumnWriter::ByteArrayColumnWriter(column) => {
                        let texts = [ByteArray::from("dog"), ByteArray::from("cat")];
                        column.write_batch(&texts, Some(&[1, 1, 0]), None)
                    }
                    ColumnWriter::FloatColumnWriter(column) => {
                        column.write_batch(&[1.0; 3], Some(&[1, 1, 1]), Some(&[0, 0, 0]))
                    }
                    _ => panic!("no such column"),
                };
                written.expect("three rows");
                column.close().expect("a column");
                index += 1;
            }
            rows.close().expect("a group");
        }
        writer.close().expect("a file");
        bytes
    }

    #[test]
    fn columns_of_all_groups_are_read_and_nulls_are_empty_examples() {
        for compression in [
            Compression::UNCOMPRESSED,
            Compression::SNAPPY,
            Compression::ZSTD(Default::default()),
        ] {
            let folder = folder(&[("x.parquet", &table(compression))]);
            let found = rows(PLAN, &folder);
            let unsigned = u64::MAX as f32;
            assert_eq!(found.len(), 6);
            assert_eq!(found[0], Some((vec![0.0, 7.0, 1.0, unsigned], 1.0)));
            assert_eq!(found[3], Some((vec![1.0, 7.0, 1.0, unsigned], 1.0)));
            let kept: Vec<_> = (0..6).filter(|row| found[*row].is_some()).collect();
            assert_eq!(kept, [0, 3], "without b, or without a kind");
        }
    }

    #[test]
    fn without_columns_that_have_nulls_rows_stand_in_their_places() {
        let folder = folder(&[("x.parquet", &table(Compression::UNCOMPRESSED))]);
        let plan = "path = 'x.parquet'\nlabel = 'b'\ncolumns = ['a', 'c']";
        let found = rows(plan, &folder);
        assert_eq!(found[0], Some((vec![0.0, 1.0], 7.0)));
        assert_eq!(found[1], None);
        assert_eq!(found[2], Some((vec![-1.0, 1.0], 9.0)));
    }

    #[test]
    fn what_is_no_flat_column_of_numbers_is_refused() {
        let whole = table(Compression::UNCOMPRESSED);
        let half = &whole[whole.len() / 2..];
        let folder = folder(&[
            ("x.parquet", &whole),
            ("y.parquet", half),
            ("z.parquet", b"PAR1"),
        ]);
        let check = |plan: &str, code: &str, part: &str| {
            let (found, text) = refusal(plan, &folder);
            assert_eq!(found, code, "{text}");
            assert!(text.contains(part), "{text}");
        };
        for column in ["day", "many", "kind"] {
            let plan = format!(
                "path = 'x.parquet'\nlabel = 'b'\nclasses = 9\ncolumns = ['a', '{column}']"
            );
            check(&plan, "data_column_type", "integers, floats or booleans");
        }
        let text = "path = 'x.parquet'\nlabel = 'kind'\nclasses = 2\ncolumns = ['a']";
        check(text, "data_column_type", "kind");
        check(
            &PLAN.replace("'b'", "'e'"),
            "data_column",
            "none of its 7 columns is called so",
        );
        check(
            &PLAN.replace("x.parquet", "y.parquet"),
            "data_malformed",
            "snappy",
        );
        check(
            &PLAN.replace("x.parquet", "z.parquet"),
            "data_malformed",
            "snappy",
        );
    }
}
