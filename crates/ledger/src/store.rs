//! What is asked of a database: one transaction at a time, over all processes; rows in order; a commit that survives.

use crate::record::{Hash, Kind, Raw, Receipt, Record};
use crate::{Error, Result};

/// The end of the chain, signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SignedHead {
    pub(crate) head: Receipt,
    pub(crate) signature: [u8; 64],
}

/// That a record is not what it was when the ledger was opened.
pub(crate) fn changed(sequence: u64) -> Error {
    let what = "it has changed while the ledger was in use";
    Error::Damaged { sequence, what }
}

/// A place for records. All calls but [`begin`](Self::begin) happen between it and [`commit`](Self::commit) or
/// [`abort`](Self::abort).
pub(crate) trait Store {
    /// Excludes all other writers. [`Error::Busy`](crate::Error::Busy) if they do not give way in time.
    fn begin(&mut self) -> Result<()>;

    /// How many rows there are at most, to make room.
    fn rows(&mut self) -> Result<usize>;

    /// Shows the rows from a number on, up to another one, in order.
    fn read(&mut self, first: u64, last: u64, visit: &mut dyn FnMut(&Raw<'_>)) -> Result<()>;

    /// The head that was committed last, as it is found.
    fn head(&mut self) -> Result<Option<SignedHead>>;

    /// Adds a row to the transaction.
    fn append(&mut self, record: &Record) -> Result<()>;

    /// Makes the transaction durable. After an error nobody knows whether it is.
    fn commit(&mut self, head: Option<&SignedHead>) -> Result<()>;

    /// Forgets the transaction.
    fn abort(&mut self);

    /// How far the chain had come once, if anybody has noted it outside.
    fn mark(&mut self) -> Result<Option<Receipt>> {
        Ok(None)
    }

    /// The hash that stands in a row.
    fn hash_at(&mut self, sequence: u64) -> Result<Option<Hash>> {
        let mut found = None;
        self.read(sequence, sequence, &mut |raw| {
            found = raw.hash.try_into().ok();
        })?;
        Ok(found)
    }

    /// The text and the hash of a record of some kind, as they were written. What has changed since is an error.
    fn body_at(&mut self, sequence: u64, kind: Kind) -> Result<Option<(String, Hash)>> {
        let mut found = Ok(None);
        self.read(sequence, sequence, &mut |raw| {
            let body = String::from_utf8(raw.body.to_vec()).ok();
            let sound = body
                .zip(raw.hash.try_into().ok())
                .filter(|_| raw.is_sound());
            found = match sound {
                Some(_) if raw.kind != kind.word().as_bytes() => Ok(None),
                Some(sound) => Ok(Some(sound)),
                None => Err(changed(sequence)),
            };
        })?;
        found
    }
}
