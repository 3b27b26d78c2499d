//! # Which groups and rows of a unit are kept
//! By the order of a hash under a key that is drawn for each execution and never leaves it. So the choice is uniform, differs
//! from unit to unit, cannot be steered by who knows the function, and is not the same twice. Privacy does not rest on any
//! of that: a unit's choice depends on that unit's rows (and the key) alone, whatever the order, and ties are broken by the
//! values themselves.

use std::hash::Hasher;
use std::sync::{Arc, OnceLock};

use datafusion::arrow::array::{Array, Decimal128Array, LargeBinaryArray, UInt64Array};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use siphasher::sip::SipHasher24;
use whit_core::{Bits, Entropy, EntropyFailure};

use crate::batch::engine_error;

/// The secret of one execution. Not printed, not kept. A plan can be made before its key is drawn, and does not run without.
#[derive(Clone)]
pub(crate) struct HashKey(Arc<OnceLock<[u64; 2]>>);

impl HashKey {
    /// Of a plan that is made now and may run later.
    pub(super) fn undrawn() -> Self {
        Self(Arc::default())
    }

    /// A fresh one.
    pub(crate) fn draw(entropy: &mut impl Entropy) -> std::result::Result<Self, EntropyFailure> {
        let mut bits = entropy.open()?;
        Ok(Self(Arc::new([bits.word(), bits.word()].into())))
    }

    /// Makes this key, wherever it stands in a plan, the one that was drawn. False if there is none, or if it was given one before.
    pub(crate) fn become_drawn(&self, drawn: &Self) -> bool {
        let words = drawn.0.get();
        words.is_some_and(|&words| self.0.set(words).is_ok())
    }
}

/// The same is the same key of the same plan. So the engine, which compares and hashes functions, never looks at the words.
impl PartialEq for HashKey {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for HashKey {}

impl std::hash::Hash for HashKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

impl std::fmt::Debug for HashKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HashKey")
    }
}

/// The hash of some columns, under the key and for one purpose.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct KeyedHash {
    key: HashKey,
    pub(crate) purpose: &'static str,
    signature: Signature,
}

/// An expression that hashes columns. Each purpose has an order of its own.
pub(super) fn keyed_hash(key: &HashKey, purpose: &'static str, columns: Vec<Expr>) -> Expr {
    let hash = KeyedHash {
        key: key.clone(),
        purpose,
        signature: Signature::variadic_any(Volatility::Immutable),
    };
    ScalarUDF::from(hash).call(columns)
}

impl ScalarUDFImpl for KeyedHash {
    fn name(&self) -> &str {
        self.purpose
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::UInt64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let &[first, second] = self.key.0.get().ok_or_else(engine_error)?;
        let start = || {
            let mut hasher = SipHasher24::new_with_keys(first, second);
            write(&mut hasher, self.purpose.as_bytes());
            hasher
        };
        let mut hashers = vec![start(); rows];
        for column in args.args {
            let array = column.into_array(rows)?;
            if array.len() != rows {
                return Err(engine_error());
            }
            if let Some(bytes) = array.as_any().downcast_ref::<LargeBinaryArray>() {
                for (hasher, value) in hashers.iter_mut().zip(bytes) {
                    write(hasher, value.unwrap_or_default());
                }
            } else if let Some(numbers) = array.as_any().downcast_ref::<Decimal128Array>() {
                for (hasher, value) in hashers.iter_mut().zip(numbers) {
                    hasher.write(&value.unwrap_or_default().to_le_bytes());
                }
            } else {
                return Err(engine_error());
            }
        }
        let hashes: UInt64Array = hashers
            .into_iter()
            .map(|hasher| Some(hasher.finish()))
            .collect();
        Ok(ColumnarValue::Array(Arc::new(hashes)))
    }
}

/// With its length, so that the end of one column is not the start of the next.
fn write(hasher: &mut SipHasher24, bytes: &[u8]) {
    hasher.write(&(bytes.len() as u64).to_le_bytes());
    hasher.write(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_testkit::Seeded;

    /// A key is given once. Copies of it, wherever they stand in a plan, get it too.
    #[test]
    fn an_undrawn_key_becomes_one_drawn_key_and_no_other() {
        let draw = |seed| HashKey::draw(&mut Seeded::new(seed)).expect("entropy");
        let key = HashKey::undrawn();
        let in_a_plan = key.clone();
        assert_eq!(in_a_plan.0.get(), None);
        assert!(!key.become_drawn(&HashKey::undrawn()));
        let first = draw(1);
        assert!(key.become_drawn(&first));
        assert_eq!(in_a_plan.0.get(), first.0.get());
        assert!(!key.become_drawn(&draw(2)));
        assert_eq!(in_a_plan.0.get(), first.0.get());
    }
}
