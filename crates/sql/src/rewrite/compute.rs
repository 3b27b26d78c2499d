//! Terms as functions of the engine: conditions, units, keys, and values clamped to integers. The engine sees columns go in
//! and results come out; it cannot look inside, so none of its own rules about expressions apply.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::arrow::array::{ArrayRef, BooleanArray, Decimal128Array, LargeBinaryBuilder};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, col,
};

use crate::analyze::{Part, PublicKeys};
use crate::batch::{Columns, engine_error};
use crate::term::Term;
use crate::value::{Cell, TEXT_BYTES_MAX, encode_all};

/// Whole numbers as the engine adds them: 128 bits, of which a sum of `2^40` values of 62 bits uses 102.
pub(super) const SUMS: DataType = DataType::Decimal128(38, 0);

/// What is computed for each row.
#[derive(Debug)]
pub(crate) enum Output {
    /// Are all of these true?
    All(Vec<Term>),
    /// The cell as bytes; NULL stays NULL.
    Unit(Term),
    /// The cells as bytes; NULL if they are none of the given keys. Keys that are not given are of bounded length, whatever
    /// the cells are: the texts of several share the room of one.
    Key(Vec<Term>, Option<Arc<PublicKeys>>),
    /// What the row adds to a sum.
    Part(Part),
}

impl Output {
    fn columns(&self) -> BTreeSet<usize> {
        let mut columns = BTreeSet::new();
        match self {
            Self::All(terms) | Self::Key(terms, _) => {
                terms.iter().for_each(|term| term.columns(&mut columns))
            }
            Self::Unit(term) => term.columns(&mut columns),
            Self::Part(part) => part.columns(&mut columns),
        }
        columns
    }

    fn name(&self) -> &'static str {
        match self {
            Self::All(_) => "whit_all",
            Self::Unit(_) => "whit_unit",
            Self::Key(..) => "whit_key",
            Self::Part(_) => "whit_part",
        }
    }
}

/// A function of the engine that computes an output.
#[derive(Debug)]
pub(crate) struct Compute {
    /// No two are taken for the same.
    id: u64,
    pub(crate) output: Output,
    /// The places of the columns that are its arguments.
    pub(crate) places: Vec<usize>,
    signature: Signature,
}

impl PartialEq for Compute {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Compute {}

impl Hash for Compute {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

/// The name of a base column in the engine's plan.
pub(crate) fn base_name(place: usize) -> String {
    format!("b{place}")
}

/// An expression of the engine that computes `output`. `anchor` is a column it is given in any case, so that even a
/// constant has as many values as there are rows.
pub(super) fn compute(output: Output, anchor: usize) -> Expr {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut places = output.columns();
    places.insert(anchor);
    let places: Vec<usize> = places.into_iter().collect();
    let arguments = places.iter().map(|&place| col(base_name(place))).collect();
    let compute = Compute {
        id: NEXT.fetch_add(1, Ordering::Relaxed),
        output,
        places,
        signature: Signature::variadic_any(Volatility::Immutable),
    };
    ScalarUDF::from(compute).call(arguments)
}

impl ScalarUDFImpl for Compute {
    fn name(&self) -> &str {
        self.output.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.output {
            Output::All(_) => DataType::Boolean,
            // Large: the keys of all groups stand in one array, which small offsets could not hold.
            Output::Unit(_) | Output::Key(..) => DataType::LargeBinary,
            Output::Part(_) => SUMS,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let arrays: Vec<ArrayRef> = args
            .args
            .into_iter()
            .map(|column| column.into_array(rows))
            .collect::<Result<_>>()?;
        let columns = Columns::new(&self.places, &arrays).ok_or_else(engine_error)?;
        let result: ArrayRef = match &self.output {
            Output::All(terms) => {
                let all = |at: usize| {
                    terms
                        .iter()
                        .all(|term| term.truth(&columns.row(at)) == Some(true))
                };
                Arc::new((0..rows).map(|at| Some(all(at))).collect::<BooleanArray>())
            }
            Output::Unit(term) => {
                let mut bytes = LargeBinaryBuilder::new();
                for at in 0..rows {
                    match term.evaluate(&columns.row(at)) {
                        Cell::Null => bytes.append_null(),
                        cell => bytes.append_value(encode_all([cell])),
                    }
                }
                Arc::new(bytes.finish())
            }
            Output::Key(terms, public) => {
                let mut bytes = LargeBinaryBuilder::new();
                let room = match public {
                    Some(_) => TEXT_BYTES_MAX,
                    None => TEXT_BYTES_MAX / terms.len().max(1),
                };
                for at in 0..rows {
                    let cells = terms.iter().map(|term| term.evaluate(&columns.row(at)));
                    let key = encode_all(cells.map(|cell| cell.shortened(room)));
                    if public
                        .as_ref()
                        .is_some_and(|public| !public.known.contains(&key))
                    {
                        bytes.append_null();
                    } else {
                        bytes.append_value(key);
                    }
                }
                Arc::new(bytes.finish())
            }
            Output::Part(part) => {
                let values = (0..rows).map(|at| Some(part.value(&columns.row(at))));
                Arc::new(values.collect::<Decimal128Array>().with_data_type(SUMS))
            }
        };
        Ok(ColumnarValue::Array(result))
    }
}
