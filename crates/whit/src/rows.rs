//! The rows of a CSV file, one at a time.
//!
//! Commas, quotes as in RFC 4180, a header line, any line ending. The header is the public schema and may be complained
//! about. The rows are private, and reading them knows no error but that of the device: cells need not be text, a row may
//! have too few cells (the rest are empty) or too many (the rest are ignored). Lines without any character are no rows.
//!
//! The guarantee speaks of the rows that come out here. So whoever writes the file must quote what people typed: a lone
//! quote at the start of a cell joins it with all that follows.

use std::io::Read;

use csv::ByteRecord;

use crate::{Error, Result};

/// Reads ahead so many bytes.
const BUFFER_BYTES: usize = 1 << 16;

/// A CSV file behind its header.
pub(crate) struct Rows<R> {
    reader: csv::Reader<R>,
    names: Vec<String>,
    record: ByteRecord,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Reading,
    Ended,
    Failed,
}

/// A place in each row, found by name in the header.
#[derive(Clone, Copy)]
pub(crate) struct Column(usize);

/// One row.
pub(crate) struct Row<'a>(&'a ByteRecord);

impl<R: Read> Rows<R> {
    /// Reads the header. `wanted` only makes complaints clearer.
    pub(crate) fn open(csv: R, wanted: Option<&str>) -> Result<Self> {
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .buffer_capacity(BUFFER_BYTES)
            .from_reader(csv);
        let mut record = ByteRecord::new();
        let column = wanted.map(String::from);
        if !reader
            .read_byte_record(&mut record)
            .map_err(|_| Error::Unreadable)?
        {
            return Err(Error::NoHeader { column });
        }
        let name = |cell: &[u8]| Some(std::str::from_utf8(cell.trim_ascii()).ok()?.to_owned());
        let names = record.iter().map(name).collect::<Option<Vec<_>>>();
        let names = names.ok_or(Error::HeaderNotText { column })?;
        Ok(Self {
            reader,
            names,
            record,
            state: State::Reading,
        })
    }

    /// The column of this name.
    pub(crate) fn column(&self, name: &str) -> Result<Column> {
        let name = name.trim_ascii();
        let mut places = (0..self.names.len()).filter(|&place| self.names[place] == name);
        match (places.next(), places.next()) {
            (Some(place), None) => Ok(Column(place)),
            (None, _) => Err(Error::MissingColumn {
                column: name.into(),
            }),
            (Some(_), Some(_)) => Err(Error::RepeatedColumn {
                column: name.into(),
            }),
        }
    }

    /// How many columns the header names.
    pub(crate) fn columns(&self) -> usize {
        self.names.len()
    }

    /// The next row, until the file ends or fails.
    pub(crate) fn next(&mut self) -> Option<Row<'_>> {
        if self.state == State::Reading {
            self.state = match self.reader.read_byte_record(&mut self.record) {
                Ok(true) => return Some(Row(&self.record)),
                Ok(false) => State::Ended,
                Err(_) => State::Failed,
            };
        }
        None
    }

    /// Was the whole file read?
    pub(crate) fn finish(&self) -> Result<()> {
        if self.state == State::Ended {
            Ok(())
        } else {
            Err(Error::Unreadable)
        }
    }
}

/// Longest name of a unit, as in private SQL.
const UNIT_BYTES_MAX: usize = 4096;

impl Row<'_> {
    /// The cell without the white space around it. Empty if the row is too short.
    pub(crate) fn cell(&self, column: Column) -> &[u8] {
        self.0.get(column.0).unwrap_or_default().trim_ascii()
    }

    /// Whom the row belongs to: the name without the white space around it. None if there is none, or none that can be told from
    /// others, since it is too long or no text: if it were cut or mended, two units would share one bound, and one of them
    /// would move the other's rows. Private SQL reads units in the same way.
    pub(crate) fn owner(&self, column: Column) -> Option<&[u8]> {
        let cell = self.0.get(column.0).unwrap_or_default();
        let is_told_apart = cell.len() <= UNIT_BYTES_MAX && std::str::from_utf8(cell).is_ok();
        Some(cell.trim_ascii()).filter(|name| is_told_apart && !name.is_empty())
    }

    /// The cell as a number. What is none is `NaN`; what is too large is infinite.
    pub(crate) fn number(&self, column: Column) -> f64 {
        let text = std::str::from_utf8(self.cell(column)).ok();
        text.and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, Cursor};

    #[test]
    fn units_are_names_that_can_be_told_apart() {
        let long = "x".repeat(UNIT_BYTES_MAX);
        let csv = [
            b"u,x\n a ,1\na,2\n\xff,3\n \t,4\n".as_slice(),
            format!("{long},5\n{long}x,6\n").as_bytes(),
        ]
        .concat();
        let mut rows = Rows::open(csv.as_slice(), None).expect("a header");
        let unit = rows.column("u").expect("named once");
        let owners = std::iter::from_fn(|| {
            let row = rows.next()?;
            Some(row.owner(unit).map(<[u8]>::to_vec))
        });
        let a = Some(b"a".to_vec());
        let expected = [a.clone(), a, None, None, Some(long.into_bytes()), None];
        assert_eq!(owners.collect::<Vec<_>>(), expected);
    }

    fn numbers(csv: &[u8]) -> Vec<f64> {
        let mut rows = Rows::open(csv, None).expect("a header");
        let column = rows.column("x").expect("named once");
        let numbers = std::iter::from_fn(|| rows.next().map(|row| row.number(column))).collect();
        rows.finish().expect("memory does not fail");
        numbers
    }

    fn check(cell: &[u8], expected: f64) {
        let found = numbers(&[b"y,x\n0,", cell, b"\n"].concat());
        assert_eq!(found.len(), 1);
        assert!(
            found[0] == expected || (found[0].is_nan() && expected.is_nan()),
            "{cell:?}: {found:?}"
        );
    }

    #[test]
    fn cells_are_numbers_or_absent() {
        for (cell, number) in [
            ("1", 1.0),
            (" -2.5\t", -2.5),
            ("1e3", 1000.0),
            ("+7", 7.0),
            ("\"8\"", 8.0),
        ] {
            check(cell.as_bytes(), number);
        }
        for (cell, number) in [
            ("inf", f64::INFINITY),
            ("-1e400", f64::NEG_INFINITY),
            ("1e308", 1e308),
        ] {
            check(cell.as_bytes(), number);
        }
        for cell in [
            "", "?", "NaN", "-nan", "SECRET", "0x10", "1 2", "1_000", "１",
        ] {
            check(cell.as_bytes(), f64::NAN);
        }
        check(b"\xff\xfe", f64::NAN);
        check(&vec![b'9'; 1_000_000], f64::INFINITY);
    }

    #[test]
    fn ragged_rows_have_absent_cells() {
        let found = numbers(b"y,x\n1\n1,2\n1,2,3\n,\n\n5,6");
        assert_eq!(found.len(), 5);
        assert_eq!(found.iter().filter(|x| x.is_nan()).count(), 2);
    }

    #[test]
    fn header_may_have_a_byte_order_mark_and_spaces() {
        assert_eq!(numbers(b"\xef\xbb\xbf x ,y\r\n3,4\r\n"), [3.0]);
        assert_eq!(numbers(b"\"x\",y\r3,4"), [3.0]);
    }

    #[test]
    fn quoted_cells_hold_commas_and_lines() {
        assert_eq!(numbers(b"y,x\n\"a,b\nc\"\"\",3\n"), [3.0]);
    }

    #[test]
    fn complaints_name_the_wanted_column_and_no_other() {
        let open =
            |csv: &'static [u8]| Rows::open(csv, Some("age")).and_then(|rows| rows.column("age"));
        let complaint = |csv| open(csv).err().expect("refused");
        for csv in [
            b"".as_slice(),
            b"\n\n",
            b"\xff\xfe\x00",
            b"name,CANARY\n",
            b"age,age\n",
        ] {
            let text = complaint(csv).to_string();
            assert!(
                text.contains("\"age\"") && !text.contains("CANARY"),
                "{text}"
            );
        }
        assert!(matches!(complaint(b""), Error::NoHeader { .. }));
        assert!(matches!(
            complaint(b"\xff,age\n"),
            Error::HeaderNotText { .. }
        ));
        assert!(matches!(complaint(b"b,c\n"), Error::MissingColumn { .. }));
        assert!(matches!(
            complaint(b"age,b, age\n"),
            Error::RepeatedColumn { .. }
        ));
        let twins: &[u8] = b"b,b,age\n";
        assert!(
            Rows::open(twins, None).is_ok_and(|rows| rows.column("age").is_ok()),
            "unused twins do no harm"
        );
    }

    struct Broken;

    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("SECRET-4711"))
        }
    }

    #[test]
    fn a_broken_reader_is_one_constant() {
        assert_eq!(Rows::open(Broken, None).err(), Some(Error::Unreadable));
        let mut rows = Rows::open(Cursor::new("x\n1\n2\n").chain(Broken), None).expect("a header");
        while rows.next().is_some() {}
        assert_eq!(rows.finish(), Err(Error::Unreadable));
    }

    #[test]
    fn a_file_that_was_not_read_to_its_end_is_not_finished() {
        let rows = Rows::open(Cursor::new("x\n1\n"), None).expect("a header");
        assert_eq!(rows.finish(), Err(Error::Unreadable));
    }
}
