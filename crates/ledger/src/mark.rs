//! How far a ledger has come, beside it: the head of the last commit, in a file of its own.
//!
//! A copy from yesterday, or a file whose log was thrown away, is sound by itself and remembers less. The mark remembers that there was
//! more. It is written after a commit is durable, so it is never ahead of the records; it is not synced and may be behind.
//!
//! It is founded durably after the first records are committed and before the key gets its proper name, hence before anything can be charged. A
//! ledger with a proper key and no mark is therefore never the work of a crash, and is not used. Later marks overwrite the first in
//! place, in one write of less than a sector, which a killed process has done or not done; who reads at that moment reads again. Whoever
//! wants to deceive puts an old mark back, too: against them only receipts help that were kept elsewhere.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::key::{beside, sync_folder_of};
use crate::record::{Receipt, hex};
use crate::{Error, Result};

/// How often a mark that makes no sense is read again: another process may be writing it, which takes microseconds.
const READ_TRIES: u32 = 20;
const READ_PAUSE: Duration = Duration::from_millis(2);

/// The file that is written after each commit, wherever its name leads by then.
pub(crate) struct Mark(PathBuf);

impl Mark {
    /// The mark of a ledger, which has none yet while it is being made.
    pub(crate) fn open(ledger: &Path) -> Result<Option<Self>> {
        let mark = Self(mark_path(ledger));
        match mark.writer(false) {
            Ok(_) => Ok(Some(mark)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unwritable(error)),
        }
    }

    /// Makes the mark, durably.
    pub(crate) fn found(ledger: &Path, head: Receipt) -> Result<Self> {
        let mark = Self(mark_path(ledger));
        let mut file = mark.writer(true).map_err(unwritable)?;
        let text = text(head);
        let put = file.write_all(text.as_bytes());
        // What stood there may have been longer.
        put.and_then(|()| file.set_len(text.len() as u64))
            .and_then(|()| file.sync_all())
            .map_err(unwritable)?;
        sync_folder_of(&mark.0)?;
        Ok(mark)
    }

    /// Is it still there? Without it nothing more is charged, by processes that had it open neither.
    pub(crate) fn is_there(&self) -> bool {
        self.0.symlink_metadata().is_ok()
    }

    /// Failing to move a mark on is no failure: the records are kept, and the mark is behind.
    pub(crate) fn write(&self, head: Receipt) {
        let text = text(head);
        let _ = self
            .writer(false)
            .and_then(|mut file| file.write_all(text.as_bytes()));
    }

    fn writer(&self, create: bool) -> std::io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create(create).truncate(false);
        #[expect(clippy::disallowed_methods, reason = "the ledger's own mark")]
        options.open(&self.0)
    }
}

fn unwritable(error: std::io::Error) -> Error {
    Error::failed(format!("its mark cannot be written: {error}"))
}

/// The head that was marked last; none if there is no mark, or one that makes no sense.
pub(crate) fn read(ledger: &Path) -> Result<Option<Receipt>> {
    for _ in 0..READ_TRIES {
        let mut found = Vec::new();
        #[expect(clippy::disallowed_methods, reason = "the ledger's own mark")]
        let read =
            File::open(mark_path(ledger)).and_then(|file| file.take(256).read_to_end(&mut found));
        match read {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::failed(format!("its mark cannot be read: {error}"))),
        }
        if let Some(head) = parse(&found) {
            return Ok(Some(head));
        }
        std::thread::sleep(READ_PAUSE);
    }
    Ok(None)
}

fn parse(found: &[u8]) -> Option<Receipt> {
    let found = std::str::from_utf8(found).ok()?;
    let head = found.lines().next()?.parse().ok()?;
    (found == text(head)).then_some(head)
}

/// Whether anything was ever marked: a file that is there and not empty.
pub(crate) fn exists(ledger: &Path) -> bool {
    std::fs::metadata(mark_path(ledger)).is_ok_and(|found| found.len() > 0)
}

fn mark_path(ledger: &Path) -> PathBuf {
    beside(ledger, ".mark")
}

/// Always of the same length; with a check, since two processes may write at the same time.
fn text(head: Receipt) -> String {
    let line = format!("{:020}-{}", head.sequence, hex(&head.hash));
    let check = hex(&Sha256::digest(&line));
    format!("{line}\n{check}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tamper_test::Folder;

    #[test]
    fn marks_are_read_as_written_or_not_at_all() {
        let folder = Folder::new("mark");
        let ledger = folder.ledger();
        assert_eq!((read(&ledger), exists(&ledger)), (Ok(None), false));
        assert!(Mark::open(&ledger).expect("may be missing").is_none());
        assert_eq!((read(&ledger), exists(&ledger)), (Ok(None), false));
        let first = Receipt {
            sequence: 2,
            hash: [2; 32],
        };
        drop(Mark::found(&ledger, first).expect("writable"));
        assert_eq!((read(&ledger), exists(&ledger)), (Ok(Some(first)), true));
        let mark = Mark::open(&ledger).expect("writable").expect("founded");
        assert!(mark.is_there());
        for sequence in [1, 12, u64::MAX, 3] {
            let head = Receipt {
                sequence,
                hash: [sequence as u8; 32],
            };
            mark.write(head);
            assert_eq!(read(&ledger), Ok(Some(head)));
        }
        let whole = text(Receipt {
            sequence: 3,
            hash: [3; 32],
        });
        for at in 0..whole.len() {
            let mut torn = whole.clone();
            torn.replace_range(at..=at, "7");
            if torn != whole {
                assert_eq!(parse(torn.as_bytes()), None, "{at}");
            }
        }
    }
}
