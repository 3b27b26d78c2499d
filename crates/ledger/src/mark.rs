//! How far a ledger has come, beside it: the head of the last commit, in a file of its own.
//!
//! A copy from yesterday, or a file whose log was thrown away, is sound by itself and remembers less. The mark remembers that there was
//! more. It is written after a commit is durable, so it is never ahead of the records; it is not synced and may be behind;
//! what cannot be read says nothing. Whoever wants to deceive removes it, too: against them only receipts help that were
//! kept elsewhere.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::key::beside;
use crate::record::{Receipt, hex};

/// The file that is written after each commit, if it can be.
pub(crate) struct Mark(Option<File>);

impl Mark {
    pub(crate) fn open(ledger: &Path) -> Self {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        #[expect(clippy::disallowed_methods, reason = "the ledger's own mark")]
        Self(options.open(mark_path(ledger)).ok())
    }

    /// Failing to leave a mark is no failure: the records are kept.
    pub(crate) fn write(&mut self, head: Receipt) {
        let text = text(head);
        let put = |file: &mut File| file.rewind().and_then(|()| file.write_all(text.as_bytes()));
        if self.0.as_mut().is_some_and(|file| put(file).is_err()) {
            self.0 = None;
        }
    }
}

/// The head that was marked last, if that can be read.
pub(crate) fn read(ledger: &Path) -> Option<Receipt> {
    #[expect(clippy::disallowed_methods, reason = "the ledger's own mark")]
    let file = File::open(mark_path(ledger)).ok()?;
    let mut found = String::new();
    file.take(256).read_to_string(&mut found).ok()?;
    let head = found.lines().next()?.parse().ok()?;
    (found == text(head)).then_some(head)
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
        assert_eq!(read(&ledger), None);
        let mut mark = Mark::open(&ledger);
        assert_eq!(read(&ledger), None, "nothing was marked yet");
        for sequence in [1, 12, u64::MAX, 3] {
            let head = Receipt {
                sequence,
                hash: [sequence as u8; 32],
            };
            mark.write(head);
            assert_eq!(read(&ledger), Some(head));
        }
        let whole = text(Receipt {
            sequence: 3,
            hash: [3; 32],
        });
        for at in 0..whole.len() {
            let mut torn = whole.clone();
            torn.replace_range(at..=at, "7");
            if torn != whole {
                #[expect(clippy::disallowed_methods, reason = "a test of what happens to files")]
                std::fs::write(mark_path(&ledger), torn).expect("writable");
                assert_eq!(read(&ledger), None, "{at}");
            }
        }
    }
}
