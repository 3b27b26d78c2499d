//! Between cells and the engine's columns.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, BooleanArray, BooleanBuilder, Float64Array, Float64Builder, Int64Array,
    Int64Builder, StringArray, StringBuilder,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::physical_plan::streaming::PartitionStream;

use crate::record::{Wanted, read_rows};
use crate::term::Row;
use crate::value::{Cell, Kind};

/// Rows per batch …
const BATCH_ROWS: usize = 8192;
/// … and bytes of their texts, so that rows of many long cells do not fill the memory.
const BATCH_BYTES: usize = 8 << 20;

/// The engine's type for a kind.
pub(crate) fn data_type(kind: Kind) -> DataType {
    match kind {
        Kind::Null | Kind::Text => DataType::Utf8,
        Kind::Bool => DataType::Boolean,
        Kind::Int => DataType::Int64,
        Kind::Real => DataType::Float64,
    }
}

/// A schema of nullable columns.
pub(crate) fn schema<'a>(columns: impl IntoIterator<Item = (&'a str, Kind)>) -> SchemaRef {
    let fields: Vec<Field> = columns
        .into_iter()
        .map(|(name, kind)| Field::new(name, data_type(kind), true))
        .collect();
    Arc::new(Schema::new(fields))
}

/// The one message of the engine's side; the door replaces it by another constant.
pub(crate) fn engine_error() -> DataFusionError {
    DataFusionError::Execution("whit".into())
}

enum Builder {
    Bool(BooleanBuilder),
    Int(Int64Builder),
    Real(Float64Builder),
    Text(StringBuilder),
}

/// Collects rows into batches.
pub(crate) struct Batches {
    schema: SchemaRef,
    builders: Vec<Builder>,
    rows: usize,
    bytes: usize,
}

impl Batches {
    pub(crate) fn new(schema: SchemaRef) -> Self {
        let builders = schema.fields().iter().map(|field| match field.data_type() {
            DataType::Boolean => Builder::Bool(BooleanBuilder::new()),
            DataType::Int64 => Builder::Int(Int64Builder::new()),
            DataType::Float64 => Builder::Real(Float64Builder::new()),
            _ => Builder::Text(StringBuilder::new()),
        });
        let builders = builders.collect();
        Self {
            schema,
            builders,
            rows: 0,
            bytes: 0,
        }
    }

    /// Adds a row; gives a batch when there are enough.
    pub(crate) fn push<'a>(
        &mut self,
        row: impl IntoIterator<Item = Cell<'a>>,
    ) -> Option<RecordBatch> {
        for (builder, cell) in self.builders.iter_mut().zip(row) {
            match (builder, cell) {
                (Builder::Bool(builder), Cell::Bool(b)) => builder.append_value(b),
                (Builder::Bool(builder), _) => builder.append_null(),
                (Builder::Int(builder), Cell::Int(i)) => builder.append_value(i),
                (Builder::Int(builder), _) => builder.append_null(),
                (Builder::Real(builder), Cell::Real(x)) => builder.append_value(x),
                (Builder::Real(builder), _) => builder.append_null(),
                (Builder::Text(builder), Cell::Text(t)) => {
                    self.bytes += t.len();
                    builder.append_value(t);
                }
                (Builder::Text(builder), _) => builder.append_null(),
            }
        }
        self.rows += 1;
        let full = self.rows >= BATCH_ROWS || self.bytes >= BATCH_BYTES;
        full.then(|| self.finish()).flatten()
    }

    /// What is left.
    pub(crate) fn finish(&mut self) -> Option<RecordBatch> {
        (self.rows, self.bytes) = (0, 0);
        let arrays: Vec<ArrayRef> = self
            .builders
            .iter_mut()
            .map(|builder| -> ArrayRef {
                match builder {
                    Builder::Bool(builder) => Arc::new(builder.finish()),
                    Builder::Int(builder) => Arc::new(builder.finish()),
                    Builder::Real(builder) => Arc::new(builder.finish()),
                    Builder::Text(builder) => Arc::new(builder.finish()),
                }
            })
            .collect();
        RecordBatch::try_new(Arc::clone(&self.schema), arrays).ok()
    }
}

/// A private CSV file, read when the plan runs and not before.
#[derive(Debug)]
pub(crate) struct CsvStream {
    pub(crate) path: std::path::PathBuf,
    /// The header that the file had when the plan was made.
    pub(crate) header: Vec<String>,
    pub(crate) wanted: Vec<Wanted>,
    pub(crate) schema: SchemaRef,
}

impl PartitionStream for CsvStream {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut stream = RecordBatchReceiverStreamBuilder::new(Arc::clone(&self.schema), 4);
        let sender = stream.tx();
        let (path, header) = (self.path.clone(), self.header.clone());
        let wanted = self.wanted.clone();
        let mut batches = Batches::new(Arc::clone(&self.schema));
        stream.spawn_blocking(move || {
            let mut open = true;
            let read = read_rows(&path, &header, &wanted, |row| {
                if let Some(batch) = batches.push(row) {
                    open = sender.blocking_send(Ok(batch)).is_ok();
                }
                open
            });
            read.map_err(|_| engine_error())?;
            if open && let Some(batch) = batches.finish() {
                // A receiver that is gone wants no more rows.
                let _ = sender.blocking_send(Ok(batch));
            }
            Ok(())
        });
        stream.build()
    }
}

/// The columns of a batch, by their place in the relation.
pub(crate) struct Columns<'a>(Vec<Option<Values<'a>>>);

enum Values<'a> {
    Bool(&'a BooleanArray),
    Int(&'a Int64Array),
    Real(&'a Float64Array),
    Text(&'a StringArray),
}

impl<'a> Columns<'a> {
    /// The arrays and the places they stand for. None if an array is of no kind that was asked for.
    pub(crate) fn new(places: &[usize], arrays: &'a [ArrayRef]) -> Option<Self> {
        let mut columns: Vec<Option<Values<'a>>> = Vec::new();
        for (&place, array) in places.iter().zip(arrays) {
            let any = array.as_any();
            let values = match array.data_type() {
                DataType::Boolean => Values::Bool(any.downcast_ref()?),
                DataType::Int64 => Values::Int(any.downcast_ref()?),
                DataType::Float64 => Values::Real(any.downcast_ref()?),
                DataType::Utf8 => Values::Text(any.downcast_ref()?),
                _ => return None,
            };
            columns.resize_with(columns.len().max(place + 1), || None);
            columns[place] = Some(values);
        }
        Some(Self(columns))
    }

    pub(crate) fn row(&self, at: usize) -> BatchRow<'_, 'a> {
        BatchRow { columns: self, at }
    }
}

/// One row of a batch.
pub(crate) struct BatchRow<'b, 'a> {
    columns: &'b Columns<'a>,
    at: usize,
}

impl<'a> Row<'a> for BatchRow<'_, 'a> {
    fn cell(&self, column: usize) -> Cell<'a> {
        let at = self.at;
        match self.columns.0.get(column) {
            Some(Some(Values::Bool(array))) if array.is_valid(at) => Cell::Bool(array.value(at)),
            Some(Some(Values::Int(array))) if array.is_valid(at) => Cell::Int(array.value(at)),
            Some(Some(Values::Real(array))) if array.is_valid(at) => Cell::real(array.value(at)),
            Some(Some(Values::Text(array))) if array.is_valid(at) => {
                Cell::Text(array.value(at).into())
            }
            _ => Cell::Null,
        }
    }
}
