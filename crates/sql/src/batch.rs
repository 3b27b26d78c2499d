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
use datafusion::physical_plan::stream::{
    RecordBatchReceiverStreamBuilder, RecordBatchStreamAdapter,
};
use datafusion::physical_plan::streaming::PartitionStream;

use crate::engine::Width;
use crate::record::{Rows, Unreadable, Wanted};
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
#[derive(Clone, Debug)]
pub(crate) struct CsvStream {
    pub(crate) path: std::path::PathBuf,
    /// The header that the file had when the plan was made.
    pub(crate) header: Vec<String>,
    pub(crate) wanted: Vec<Wanted>,
    pub(crate) schema: SchemaRef,
}

impl CsvStream {
    /// Nothing is read before the first batch is asked for.
    fn batches(self) -> CsvBatches {
        let batches = Batches::new(Arc::clone(&self.schema));
        CsvBatches {
            file: self,
            rows: None,
            batches,
            ended: false,
        }
    }
}

/// The file's batches, one after the other, until its end or until it cannot be read.
struct CsvBatches {
    file: CsvStream,
    rows: Option<Rows>,
    batches: Batches,
    ended: bool,
}

impl CsvBatches {
    fn read(&mut self) -> Result<Option<RecordBatch>, Unreadable> {
        let rows = match &mut self.rows {
            Some(rows) => rows,
            none => {
                let CsvStream {
                    path,
                    header,
                    wanted,
                    ..
                } = &self.file;
                none.insert(Rows::open(path, header, wanted)?)
            }
        };
        while let Some(row) = rows.next()? {
            if let Some(batch) = self.batches.push(row) {
                return Ok(Some(batch));
            }
        }
        self.ended = true;
        Ok(self.batches.finish())
    }
}

impl Iterator for CsvBatches {
    type Item = Result<RecordBatch, DataFusionError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let batch = self.read();
        self.ended |= batch.is_err();
        batch.map_err(|_| engine_error()).transpose()
    }
}

impl PartitionStream for CsvStream {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let file = self.clone();
        let schema = Arc::clone(&self.schema);
        let width = context.session_config().get_extension::<Width>();
        if width.as_deref() == Some(&Width::Narrow) {
            // Read by the thread that computes, sooner than another would wake up.
            let batches = futures_util::stream::iter(file.batches());
            return Box::pin(RecordBatchStreamAdapter::new(schema, batches));
        }
        let mut stream = RecordBatchReceiverStreamBuilder::new(schema, 4);
        let sender = stream.tx();
        // On one of the engine's own threads: another might not be had, and it is paid by now.
        stream.spawn(async move {
            for batch in file.batches() {
                // A receiver that is gone wants no more rows.
                if sender.send(Ok(batch?)).await.is_err() {
                    break;
                }
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
