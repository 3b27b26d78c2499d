//! # Records of a CSV file
//! Read so that no file can be read wrongly for want of memory or of form: cells that are missing are absent, cells too many
//! are ignored, of a cell that is too long the start is kept. What one record costs is bounded, whatever is in it.
//!
//! **Neighbours** are tables as read here. A quote that is never closed takes in what follows it, to the end of the file: all of
//! that is one cell of that row, and cut. Who writes files from what others send must quote it, as for any reader.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use csv_core::{ReadFieldResult, Reader};

use crate::value::{Cell, Kind, TEXT_BYTES_MAX};

/// So much of a cell is kept: more than of any text, so that one that is too long can be told, and cut between characters.
const KEPT_BYTES: usize = TEXT_BYTES_MAX + 4;
/// Of a private file only the header may be told, and no header is like this: more columns, or longer names.
const COLUMNS_MAX: usize = 4096;
const NAME_BYTES_MAX: usize = 256;

/// The file could not be read. Says nothing else, since it may be a private one.
pub(crate) struct Unreadable;

/// A column that is wanted: its place in the file and how its cells are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) place: usize,
    pub(crate) kind: Kind,
    /// Does it say whose a row is? Then a cell that cannot be told from others, since it is too long or no text, is NULL: if it
    /// were cut or mended, two units would share one cap, and one of them would move the other's rows.
    pub(crate) unit: bool,
}

impl Wanted {
    fn cell<'a>(&self, bytes: &'a [u8]) -> Cell<'a> {
        match std::str::from_utf8(bytes) {
            Ok(text) if self.unit && text.len() > TEXT_BYTES_MAX => Cell::Null,
            // White space around a name makes nobody else.
            Ok(text) if self.unit => Cell::parse(text.trim_ascii(), self.kind),
            Ok(text) => Cell::parse(text, self.kind),
            Err(_) if self.unit => Cell::Null,
            Err(_) => Cell::parse(&String::from_utf8_lossy(bytes), self.kind).into_value(),
        }
    }
}

/// The columns that the first line names. None if it is no such line: names are short, and nothing in them breaks a line.
pub(crate) fn read_header(path: &Path) -> Option<Vec<String>> {
    names(&mut Records::open(path).ok()?)
}

/// The rows of a file, one after the other, in the columns that are wanted.
pub(crate) struct Rows {
    records: Records,
    wanted: Vec<Wanted>,
    fields: usize,
}

impl Rows {
    /// A file with another header than expected is not read.
    pub(crate) fn open(
        path: &Path,
        header: &[String],
        wanted: &[Wanted],
    ) -> Result<Self, Unreadable> {
        let mut records = Records::open(path)?;
        let found = names(&mut records).ok_or(Unreadable)?;
        if found != header {
            return Err(Unreadable);
        }
        let fields = wanted.iter().map(|wanted| wanted.place + 1).max();
        Ok(Self {
            records,
            wanted: wanted.to_vec(),
            fields: fields.unwrap_or(0),
        })
    }

    /// The next row, if there is one.
    pub(crate) fn next(&mut self) -> Result<Option<impl Iterator<Item = Cell<'_>>>, Unreadable> {
        if !self.records.next(self.fields)? {
            return Ok(None);
        }
        let records = &self.records;
        Ok(Some(self.wanted.iter().map(|wanted| {
            let bytes = records.field(wanted.place);
            bytes.map_or(Cell::Null, |bytes| wanted.cell(bytes))
        })))
    }
}

fn names(records: &mut Records) -> Option<Vec<String>> {
    if !records.next(COLUMNS_MAX + 1).ok()? || records.ends.len() > COLUMNS_MAX {
        return None;
    }
    (0..records.ends.len())
        .map(|at| {
            let name = std::str::from_utf8(records.field(at)?).ok()?;
            let name = name.trim_start_matches('\u{feff}').trim();
            let plain = name.len() <= NAME_BYTES_MAX && !name.chars().any(char::is_control);
            plain.then(|| name.to_owned())
        })
        .collect()
}

/// One record after the other, in a buffer that is used again.
struct Records {
    reader: Reader,
    input: BufReader<File>,
    /// The fields that were kept, one after the other, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Where a field is put together, and where what is not kept of it goes.
    field: Box<[u8]>,
    waste: Box<[u8]>,
}

impl Records {
    #[expect(
        clippy::disallowed_methods,
        reason = "the tables of a catalog are read here and nowhere else"
    )]
    fn open(path: &Path) -> Result<Self, Unreadable> {
        let file = File::open(path).map_err(|_| Unreadable)?;
        Ok(Self {
            reader: Reader::new(),
            input: BufReader::with_capacity(1 << 16, file),
            bytes: Vec::new(),
            ends: Vec::new(),
            field: vec![0; KEPT_BYTES].into(),
            waste: vec![0; 512].into(),
        })
    }

    /// Reads a record and keeps its first fields. False at the end of the file.
    fn next(&mut self, fields: usize) -> Result<bool, Unreadable> {
        self.bytes.clear();
        self.ends.clear();
        let mut kept = 0;
        // Each round takes bytes from the file, ends a field, or is the last.
        loop {
            let input = self.input.fill_buf().map_err(|_| Unreadable)?;
            let skip = self.ends.len() >= fields || kept == KEPT_BYTES;
            let output = if skip {
                &mut self.waste
            } else {
                &mut self.field[kept..]
            };
            let (result, read, written) = self.reader.read_field(input, output);
            self.input.consume(read);
            kept += if skip { 0 } else { written };
            match result {
                ReadFieldResult::InputEmpty | ReadFieldResult::OutputFull => {}
                ReadFieldResult::Field { record_end } => {
                    if self.ends.len() < fields {
                        self.bytes.extend_from_slice(&self.field[..kept]);
                        self.ends.push(self.bytes.len());
                        kept = 0;
                    }
                    if record_end {
                        return Ok(true);
                    }
                }
                ReadFieldResult::End => return Ok(false),
            }
        }
    }

    /// The bytes of a field that was kept.
    fn field(&self, at: usize) -> Option<&[u8]> {
        let end = *self.ends.get(at)?;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.bytes.get(start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    fn rows(bytes: &[u8], kinds: &[Kind]) -> Vec<Vec<Value>> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.csv");
        #[expect(clippy::disallowed_methods, reason = "a file of the test's own")]
        std::fs::write(&path, bytes).expect("written");
        let header = read_header(&path).expect("a header");
        let wanted = kinds.iter().enumerate().map(|(place, &kind)| Wanted {
            place,
            kind,
            unit: false,
        });
        let wanted: Vec<Wanted> = wanted.collect();
        let mut rows = Vec::new();
        let mut file = Rows::open(&path, &header, &wanted)
            .ok()
            .expect("its header");
        while let Some(row) = file.next().ok().expect("a readable file") {
            rows.push(row.map(Cell::into_value).collect());
        }
        rows
    }

    /// Rows that would make a strict reader fail are read as far as they go.
    #[test]
    fn every_file_can_be_read() {
        let text = b"u,x\na,1\nb\nc,2,3,4\n\xff\xfe,zz\n\"q\"\"r,\n5\",6\n";
        let found = rows(text, &[Kind::Text, Kind::Int]);
        let ints: Vec<&Value> = found.iter().map(|row| &row[1]).collect();
        let expected = [
            &Cell::Int(1),
            &Cell::Null,
            &Cell::Int(2),
            &Cell::Null,
            &Cell::Int(6),
        ];
        assert_eq!(ints, expected);
        assert_eq!(found[3][0], Cell::text("\u{fffd}\u{fffd}"));
        assert_eq!(found[4][0], Cell::text("q\"r,\n5"));
    }

    /// Around every size at which a buffer ends: the start of a long cell is kept and the next cell is where it should be.
    #[test]
    fn long_cells_are_cut_and_the_next_is_whole() {
        for size in [4095, 4096, 4097, 4099, 4100, 4101, 4612, 70_000, 140_000] {
            let cell = "é".repeat(size / 2) + &"e".repeat(size % 2);
            let text = format!("u,x\n{cell},7\n\"{cell}\"\"{cell}\",8\nlast,9\n");
            let found = rows(text.as_bytes(), &[Kind::Text, Kind::Int]);
            let ints: Vec<&Value> = found.iter().map(|row| &row[1]).collect();
            assert_eq!(
                ints,
                [&Cell::Int(7), &Cell::Int(8), &Cell::Int(9)],
                "{size}"
            );
            assert_eq!(found[0][0], Cell::text(cell.clone()), "{size}");
            assert_eq!(found[2][0], Cell::text("last"));
        }
    }
}
