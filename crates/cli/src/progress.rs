//! How far a long file has been read, on stderr, if that is a terminal.

use std::io::{self, IsTerminal, Read, Write};

/// A line every so many bytes: about ten per second.
const STEP_BYTES: u64 = 16 << 20;

/// Counts what is read through it.
pub(crate) struct Progress<R> {
    inner: R,
    bytes_total: Option<u64>,
    bytes_read: u64,
    bytes_shown: u64,
    shown: bool,
}

impl<R: Read> Progress<R> {
    /// Of `bytes_total`, if that is known.
    pub(crate) fn new(inner: R, bytes_total: Option<u64>) -> Self {
        Self {
            inner,
            bytes_total,
            bytes_read: 0,
            bytes_shown: 0,
            shown: io::stderr().is_terminal(),
        }
    }

    fn show(&mut self) {
        self.bytes_shown = self.bytes_read;
        let megabytes = |bytes: u64| bytes / 1_000_000;
        let of = match self.bytes_total {
            Some(total) => format!(" of {} MB", megabytes(total)),
            None => " MB".into(),
        };
        // Talk that nobody hears is no reason to stop.
        let _ = write!(io::stderr(), "\rread {}{of} ", megabytes(self.bytes_read));
    }
}

impl<R: Read> Read for Progress<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.inner.read(buffer)?;
        self.bytes_read += bytes as u64;
        if self.shown && self.bytes_read - self.bytes_shown >= STEP_BYTES {
            self.show();
        }
        Ok(bytes)
    }
}

impl<R> Drop for Progress<R> {
    fn drop(&mut self) {
        if self.bytes_shown > 0 {
            // Back to the start of the line, and wipe it.
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
