//! One list of numbers in a JSON file, such as `[6, 9, 9, 4]`: labels that stand beside their rows, one after the other.
//!
//! A reader that refuses the whole file because of a word, of a number with too many digits or of a list within the list would tell that one row has such a label. So only
//! the brackets around the list, which are no row's, are looked for, and whatever stands between two of its commas is the label of one row, whatever it is.
//!
//! **Which commas** are those of the list? A file is cut at all of them, or at those that stand neither in quotes nor in inner brackets, whichever gives as many labels
//! as there are rows.
//! **Claim.** Let `n` labels be written as a list, for `n` rows. If every label is JSON (a string, a list, an object, ...), or if no label holds a comma, then each is read as the label of its own row, and
//! none changes another's: whatever one of them is replaced by under the same condition, the file is not refused. (But `[]` is a list of no labels, and not of one that is empty.)
//! **Proof.** In JSON, commas outside of quotes and inner brackets are those of the list, and the others belong to a label. A list of `n` labels has `n - 1` of the first kind. If there are no others, both cuts are the
//! same one; if there are, a cut at all of them gives more than `n`, and is not taken. Of labels without commas, all commas are those of the list, and a cut at fewer of them gives fewer labels. ∎
//! More cannot be claimed: a comma in the label of one row, and a lone quote in that of another, are a file that could be cut in several ways. It is no JSON, and how a file is written is its owner's affair, as for
//! [CSV](super::csv). Whether it is a list is public.
//!
//! **Memory.** Labels are counted first, and then read one by one beside their rows: a small packed file may hold very many.

use std::io::{BufReader, Bytes, Read};
use std::path::{Path, PathBuf};

use super::binary::malformed;
use super::builder::number;
use super::error::{DataError, Result};
use super::open::stream;

const KIND: &str = "list of labels";

/// The most bytes of a label that are kept. Longer ones are no numbers that anybody writes.
const LABEL_BYTES_MAX: usize = 4096;

/// At which commas a list is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// At all.
    Commas,
    /// At those that stand neither in quotes nor in inner brackets.
    Json,
}

/// A list that stands before its next label.
pub(super) struct List {
    path: PathBuf,
    bytes: Bytes<BufReader<Box<dyn Read>>>,
    cut: Cut,
    label: Vec<u8>,
    /// How many were read.
    read: u64,
    /// The last byte that is not blank.
    last: Option<u8>,
    is_over: bool,
    /// How many inner brackets are open, and whether a quote is, and the next byte is escaped.
    depth: u64,
    in_quotes: bool,
    is_escaped: bool,
}

impl List {
    /// `None` if there are not exactly `rows` labels.
    pub(super) fn open(path: &Path, rows: u64) -> Result<Option<Self>> {
        for cut in [Cut::Commas, Cut::Json] {
            if Self::cut(path, cut)?.has(rows)? {
                return Self::cut(path, cut).map(Some);
            }
        }
        Ok(None)
    }

    fn cut(path: &Path, cut: Cut) -> Result<Self> {
        Ok(Self {
            path: path.into(),
            bytes: BufReader::new(stream(path)?).bytes(),
            cut,
            label: Vec::new(),
            read: 0,
            last: None,
            is_over: false,
            depth: 0,
            in_quotes: false,
            is_escaped: false,
        })
    }

    /// Are there exactly so many labels, and are all quotes and brackets closed that it was cut by?
    fn has(mut self, rows: u64) -> Result<bool> {
        while self.next()?.is_some() {
            if self.read > rows {
                return Ok(false);
            }
        }
        let is_closed = self.depth == 0 && !self.in_quotes;
        Ok(self.read == rows && (is_closed || self.cut == Cut::Commas))
    }

    /// The next label, NaN for whatever is no number; `None` after the last.
    pub(super) fn next(&mut self) -> Result<Option<f64>> {
        if self.is_over {
            return Ok(None);
        }
        self.label.clear();
        while let Some(byte) = self.bytes.next() {
            let byte = byte.map_err(|_| self.broken("it cannot be read to its end"))?;
            if byte.is_ascii_whitespace() {
                // A word of blanks is as good as one of them.
                if self.label.last().is_some_and(|last| *last != b' ') {
                    self.label.push(b' ');
                }
                self.is_escaped = false;
                continue;
            }
            match self.last.replace(byte) {
                None if byte == b'[' => {}
                None => return Err(self.broken("it does not begin with a bracket")),
                _ if self.is_end_of_label(byte) => {
                    self.read += 1;
                    return Ok(Some(value(&self.label)));
                }
                _ if self.label.len() > LABEL_BYTES_MAX => {}
                _ => self.label.push(byte),
            }
        }
        self.is_over = true;
        self.last_label()
    }

    fn last_label(&mut self) -> Result<Option<f64>> {
        if self.last != Some(b']') {
            return Err(self.broken("it does not end with a bracket"));
        }
        let label = self.label.trim_ascii_end();
        let label = label.strip_suffix(b"]").unwrap_or(label);
        if self.read == 0 && label.trim_ascii().is_empty() {
            return Ok(None);
        }
        self.read += 1;
        Ok(Some(value(label)))
    }

    /// Follows quotes and brackets. Total: a bracket that closes nothing is a letter as any other.
    fn is_end_of_label(&mut self, byte: u8) -> bool {
        let is_escaped = std::mem::take(&mut self.is_escaped);
        match byte {
            b',' if self.cut == Cut::Commas => return true,
            _ if is_escaped => {}
            b'\\' => self.is_escaped = self.in_quotes,
            b'"' => self.in_quotes = !self.in_quotes,
            _ if self.in_quotes => {}
            b'[' | b'{' => self.depth += 1,
            b']' | b'}' => self.depth = self.depth.saturating_sub(1),
            b',' => return self.depth == 0,
            _ => {}
        }
        false
    }

    /// How many bytes of labels are kept.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.label.capacity()
    }

    fn broken(&self, what: &'static str) -> DataError {
        let passes = "give a file that is one list of whole numbers, such as [6, 9, 4]";
        malformed(&self.path, KIND, what, passes)
    }
}

fn value(label: &[u8]) -> f64 {
    match std::str::from_utf8(label) {
        Ok(text) if label.len() <= LABEL_BYTES_MAX => number(text),
        _ => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use whit_core::Fault;

    use super::super::open::tests::folder;
    use super::*;

    fn list(text: &[u8], rows: u64) -> Result<Option<Vec<f64>>> {
        let folder = folder(&[("y.json", text)]);
        let Some(mut list) = List::open(&folder.path().join("y.json"), rows)? else {
            return Ok(None);
        };
        let mut labels = Vec::new();
        while let Some(label) = list.next()? {
            labels.push(label);
        }
        Ok(Some(labels))
    }

    #[test]
    fn lists_are_read_however_they_are_laid_out() {
        let check = |text: &str, expected: &[f64]| {
            let found = list(text.as_bytes(), expected.len() as u64);
            assert_eq!(found, Ok(Some(expected.to_vec())), "{text:?}");
        };
        check("[6,9,4]", &[6.0, 9.0, 4.0]);
        check(" [\n  6,\r\n\t9 , 4.0\n]\n\n", &[6.0, 9.0, 4.0]);
        check("[7]", &[7.0]);
        check("[]", &[]);
        check("[ \n ]", &[]);
        let blanks = format!("[1,{0}2{0}]{0}", " ".repeat(10_000));
        check(&blanks, &[1.0, 2.0]);
    }

    #[test]
    fn what_is_no_number_is_the_affair_of_its_row() {
        let long = "9".repeat(10_000);
        let own = [
            "null", "\"cat\"", "NaN", "", "1e999", "-", "1 2", "[3]", "]", "[", "{", "\"", &long,
        ];
        for label in own {
            for text in [
                format!("[{label},1]"),
                format!("[0,{label}]"),
                format!("[0,{label},1]"),
            ] {
                let rows = text.matches(',').count() + 1;
                let found = list(text.as_bytes(), rows as u64).map(|found| found.map(|l| l.len()));
                assert_eq!(found, Ok(Some(rows)), "{label:.20}");
                let kept = list(text.as_bytes(), rows as u64).ok().flatten();
                let finite = kept.iter().flatten().filter(|label| label.is_finite());
                assert_eq!(finite.count(), rows - 1, "{label:.20}");
            }
        }
        let bytes = list(b"[1,\xff\xfe,2]", 3).ok().flatten().expect("three");
        assert!(bytes[1].is_nan() && bytes[2] == 2.0);
    }

    #[test]
    fn other_numbers_of_rows_are_none() {
        for (text, rows) in [
            ("[1,2]", 3),
            ("[1,2]", 1),
            ("[]", 1),
            ("[1]", 0),
            ("[1,2,]", 2),
        ] {
            assert_eq!(list(text.as_bytes(), rows), Ok(None), "{text} {rows}");
        }
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for (text, what) in [
            ("", "end with a bracket"),
            ("[", "end with a bracket"),
            ("[1,2", "end with a bracket"),
            ("{\"labels\": [1,2]}", "begin with a bracket"),
            ("1\n2\n", "begin with a bracket"),
        ] {
            let error = list(text.as_bytes(), 2).expect_err(text);
            assert_eq!(error.code(), "data_malformed", "{text}");
            let words = error.to_string();
            assert!(words.contains(what), "{text}: {words}");
            assert!(error.suggestion().contains("[6, 9, 4]"));
        }
    }

    /// Both claims of the module's text: labels that are JSON, and labels without commas.
    #[test]
    fn no_label_can_be_told_from_another_by_the_number_of_rows() {
        let json = [
            "\"cat, dog\"",
            "[1,2]",
            "[[],[1,[2,\"],\"]]]",
            "{\"a,b\":[1,2],\"c\":{}}",
            "\"\\\"a,b\"",
            "\"\\\\\"",
            "\"[,\"",
            "\"{\"",
            "\",\"",
        ];
        let bare = [
            "[", "]", "{", "}", "\"", "\\", "[[\"", "]]]]", "\"\\", "", "\0", "\0[", "a \u{1}b",
        ];
        let check = |labels: &[&str]| {
            let text = format!("[{}]", labels.join(", "));
            let found = list(text.as_bytes(), labels.len() as u64);
            let found = found.unwrap_or_else(|error| panic!("{text}: {error}"));
            let found = found.unwrap_or_else(|| panic!("{text}"));
            let expected = labels.iter().map(|label| number(label));
            let expected: Vec<u64> = expected.map(f64::to_bits).collect();
            let found: Vec<u64> = found.into_iter().map(f64::to_bits).collect();
            assert_eq!(found, expected, "{text}");
        };
        for one in json {
            check(&[one, "1"]);
            check(&["0", one]);
            for other in json {
                check(&["0", one, "2", other, "3"]);
            }
        }
        for one in bare {
            check(&["0", one, "1"]);
            for other in bare {
                check(&["7", one, "2", other, "3"]);
            }
        }
    }

    /// What cannot be claimed: a comma in one label and another label that is no JSON, as no writer of JSON makes them.
    #[test]
    fn a_list_that_is_no_json_and_has_commas_in_labels_is_none() {
        let text = b"[1, \"a, b\", \", 2]";
        assert_eq!(list(text, 4), Ok(None));
    }
}
