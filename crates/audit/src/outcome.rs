//! What one run of a program came to: how it ended, and what it had printed by then.
//!
//! All of it can be seen, and is part of the output. Bytes are compared as bytes: `3` and `3.0` are one number and two outcomes, and so are a line with its end and one without. Of a long text its beginning, its
//! length and its digest are kept, which differ wherever the text does: nothing is cut off, and no number is made of a part of what was printed.

use std::fmt;

use sha2::{Digest, Sha256};

/// More bytes than this are no number. The longest float that is written in full, `5e-324`, has 1076 characters.
const NUMBER_MAX: usize = 2048;
/// More bytes than this are a long text.
const TEXT_MAX: usize = 256;
/// So many bytes of a long text are kept, and of any text and number this is its form.
const BEGINNING: usize = 64;
/// So many characters of a text are quoted in the name of an event.
const QUOTED_MAX: usize = 80;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum End {
    /// With exit code 0.
    Done,
    /// With this exit code, which is not zero.
    Exit(i32),
    /// By this signal.
    Signal(i32),
    /// It had not ended when its time was over.
    TimedOut,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("exit code 0"),
            Self::Exit(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::TimedOut => f.write_str("out of time"),
        }
    }
}

/// What one run of a program came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    end: End,
    printed: Printed,
    /// The number that was printed, if it is one; it may be infinite, or none (`nan`).
    number: Option<f64>,
}

/// All that was printed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Printed {
    Whole(Box<[u8]>),
    Long(Box<Long>),
}

/// What is kept of a long text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Long {
    beginning: Vec<u8>,
    bytes: u64,
    digest: [u8; 32],
}

impl fmt::Debug for Long {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            beginning, bytes, ..
        } = self;
        let quoted = Quoted(beginning);
        write!(
            f,
            "text of {bytes} bytes that begins with {quoted}, SHA-256 "
        )?;
        self.digest[..4]
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Bytes as a text for people: what is no UTF-8 is escaped, and a long one ends early.
struct Quoted<'a>(&'a [u8]);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut text, mut characters) = (String::new(), 0);
        for chunk in self.0.utf8_chunks() {
            for character in chunk.valid().chars() {
                characters += 1;
                if characters > QUOTED_MAX {
                    return write!(f, "\"{text}\"…");
                }
                text.extend(character.escape_debug());
            }
            for byte in chunk.invalid() {
                characters += 1;
                text += &format!("\\x{byte:02x}");
            }
        }
        write!(f, "\"{text}\"")
    }
}

impl Outcome {
    /// All that was printed by a run that ended like this.
    pub fn new(end: End, printed: &[u8]) -> Self {
        let mut printing = Printing::default();
        printing.add(printed);
        printing.close();
        printing.outcome(end)
    }

    /// How it ended.
    pub fn end(&self) -> End {
        self.end
    }

    /// The number that was printed; if none was, `nan`.
    pub fn number(&self) -> f64 {
        self.number.unwrap_or(f64::NAN)
    }

    /// Which kind of outcome it is, in words.
    pub fn kind(&self) -> String {
        let printed = match (self.number, &self.printed) {
            (Some(number), _) if number.is_nan() => "not a number",
            (Some(number), _) if number.is_infinite() => "infinite",
            (Some(_), _) => "a number",
            (None, Printed::Long(_)) => "a long text",
            (None, Printed::Whole(text)) => match &text[..] {
                b"" => SILENCE,
                b"\n" | b"\r\n" => "an empty line",
                _ => "text",
            },
        };
        after(self.end, printed)
    }

    /// The kind, which prints as it is.
    pub(crate) fn plain_kind(&self) -> Category {
        Category::Kind(self.kind())
    }

    /// The kind, and what was printed if it is no number.
    pub(crate) fn category(&self) -> Category {
        match (self.number, &self.printed) {
            (None, Printed::Whole(text)) if text.is_empty() => self.plain_kind(),
            (None, _) => self.bytes(),
            (Some(_), _) => self.plain_kind(),
        }
    }

    /// All that was printed, byte by byte.
    pub(crate) fn bytes(&self) -> Category {
        Category::Text(self.end, self.printed.clone())
    }

    /// The beginning of what was printed, with every digit as 0: how numbers are written, and not which.
    pub(crate) fn form(&self) -> Category {
        let beginning = match &self.printed {
            Printed::Whole(text) => &text[..text.len().min(BEGINNING)],
            Printed::Long(long) => &long.beginning[..],
        };
        let plain = |byte: &u8| {
            if byte.is_ascii_digit() { b'0' } else { *byte }
        };
        let form: Box<[u8]> = beginning.iter().map(plain).collect();
        Category::Text(self.end, Printed::Whole(form))
    }

    /// How many bytes were printed.
    pub(crate) fn length(&self) -> Category {
        let bytes = match &self.printed {
            Printed::Whole(text) => text.len() as u64,
            Printed::Long(long) => long.bytes,
        };
        Category::Length(self.end, bytes)
    }
}

/// Two outcomes are the same if nobody can tell them apart.
impl PartialEq for Outcome {
    fn eq(&self, other: &Self) -> bool {
        (self.end, &self.printed) == (other.end, &other.printed)
    }
}

const SILENCE: &str = "silence";

fn after(end: End, printed: &str) -> String {
    match (end, printed) {
        (End::Done, _) => printed.into(),
        (_, SILENCE) => end.to_string(),
        _ => format!("{end} after {printed}"),
    }
}

/// What outcomes are compared by that are no numbers.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Category {
    Kind(String),
    Text(End, Printed),
    Length(End, u64),
}

impl fmt::Debug for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(kind) => f.write_str(kind),
            Self::Text(end, Printed::Whole(text)) => {
                f.write_str(&after(*end, &Quoted(text).to_string()))
            }
            Self::Text(end, Printed::Long(long)) => f.write_str(&after(*end, &format!("{long:?}"))),
            Self::Length(end, bytes) => f.write_str(&after(*end, &bytes.to_string())),
        }
    }
}

/// What a run prints, piece by piece.
#[derive(Clone, Debug)]
pub struct Printing {
    keep: usize,
    beginning: Vec<u8>,
    bytes: u64,
    digest: Sha256,
    closed: bool,
}

/// Keeps as much as a number can take.
impl Default for Printing {
    fn default() -> Self {
        Self::keeping(NUMBER_MAX)
    }
}

impl Printing {
    /// Keeps the first so many bytes.
    pub fn keeping(keep: usize) -> Self {
        Self {
            keep,
            beginning: Vec::new(),
            bytes: 0,
            digest: Sha256::new(),
            closed: false,
        }
    }

    /// What comes next.
    pub fn add(&mut self, piece: &[u8]) {
        let room = self.keep - self.beginning.len();
        self.beginning
            .extend_from_slice(&piece[..piece.len().min(room)]);
        self.bytes += piece.len() as u64;
        self.digest.update(piece);
    }

    /// Nothing comes any more.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// The first bytes, as many as are kept.
    pub fn beginning(&self) -> &[u8] {
        &self.beginning
    }

    /// Are these all?
    pub fn is_whole(&self) -> bool {
        self.bytes == self.beginning.len() as u64
    }

    /// Writes `other` for each `word`, if all is kept. Both are of one length.
    pub fn replace(&mut self, word: &[u8], other: &[u8]) {
        if !self.is_whole() || word.is_empty() || word.len() != other.len() {
            return;
        }
        let mut at = 0;
        while let Some(rest) = self.beginning.get_mut(at..at + word.len()) {
            if *rest == *word {
                rest.copy_from_slice(other);
                at += word.len();
            } else {
                at += 1;
            }
        }
        self.digest = Sha256::new_with_prefix(&self.beginning);
    }

    /// What a run came to that printed this and ended so. A line that may have been cut, because the run was ended in the midst of it or because somebody still holds on to
    /// where it is printed, is no number.
    pub fn outcome(&self, end: End) -> Outcome {
        let text = &self.beginning[..];
        let may_be_cut = !self.closed || end == End::TimedOut;
        let number = || {
            let whole = self.is_whole() && text.len() <= NUMBER_MAX;
            let text = std::str::from_utf8(text).ok().filter(|_| whole)?;
            text.trim().parse().ok()
        };
        let number = number().filter(|_| !may_be_cut || text.ends_with(b"\n"));
        let printed = if self.is_whole() && text.len() <= TEXT_MAX {
            Printed::Whole(text.into())
        } else {
            Printed::Long(Box::new(Long {
                beginning: text[..text.len().min(BEGINNING)].to_vec(),
                bytes: self.bytes,
                digest: self.digest(),
            }))
        };
        Outcome {
            end,
            printed,
            number,
        }
    }

    /// The SHA-256 of all that was printed.
    pub fn digest(&self) -> [u8; 32] {
        self.digest.clone().finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(printed: &[u8]) -> Outcome {
        Outcome::new(End::Done, printed)
    }

    #[test]
    fn what_is_printed_is_parsed() {
        assert_eq!(done(b" 3.5\n").number(), 3.5);
        assert_eq!(done(b"-1e400").number(), f64::NEG_INFINITY);
        assert_eq!(done(b"1e400\n").kind(), "infinite");
        assert_eq!(done(b"nan").kind(), "not a number");
        for (printed, kind) in [
            (&b"yes\n"[..], "text"),
            (b"", "silence"),
            (b"\r\n", "an empty line"),
        ] {
            assert_eq!(done(printed).kind(), kind);
            assert!(done(printed).number().is_nan());
        }
        let smallest = format!("{:.1074}", f64::from_bits(1));
        assert_eq!(done(smallest.as_bytes()).number(), f64::from_bits(1));
    }

    #[test]
    fn outcomes_are_how_a_run_ended_and_what_it_printed() {
        for (end, printed, kind) in [
            (End::Exit(3), &b""[..], "exit code 3"),
            (End::Exit(3), b"1.5\n", "exit code 3 after a number"),
            (End::Signal(9), b"", "signal 9"),
            (End::Signal(11), b"so", "signal 11 after text"),
            (End::TimedOut, b"", "out of time"),
        ] {
            assert_eq!(Outcome::new(end, printed).kind(), kind);
        }
        assert_eq!(Outcome::new(End::Exit(3), b"1.5\n").number(), 1.5);
        assert_ne!(
            Outcome::new(End::Signal(6), b""),
            Outcome::new(End::Signal(9), b"")
        );
        let text = Outcome::new(End::Exit(3), b"no");
        assert_eq!(format!("{:?}", text.category()), "exit code 3 after \"no\"");
    }

    /// Bytes that are no UTF-8 are as different as others.
    #[test]
    fn bytes_are_compared_as_bytes() {
        let [one, other] = [b"\xff", b"\xfe"].map(|byte| done(byte).category());
        assert!(one != other);
        assert_eq!(format!("{one:?}"), "\"\\xff\"");
        assert!(
            done(b"\\xff").category() != one,
            "nor is what is escaped what was printed"
        );
        for (one, other) in [
            (&b"yes "[..], &b"yes"[..]),
            (b"yes\n", b"yes"),
            (b"\n", b""),
            (b"3.0", b"3"),
            (b"9007199254740993", b"9007199254740992"),
        ] {
            assert_ne!(done(one), done(other));
            assert!(done(one).bytes() != done(other).bytes());
        }
    }

    /// How a number is written tells programs apart that print the same numbers.
    #[test]
    fn a_form_is_how_numbers_are_written() {
        let form = |printed: &[u8]| format!("{:?}", done(printed).form());
        assert_eq!(form(b"-12.5e7\n"), "\"-00.0e0\\n\"");
        assert_eq!(form(b"37"), form(b"52"));
        assert_ne!(form(b"37"), form(b"37.0"));
        assert_eq!(form(&[b'7'; 3000]), form(&[b'5'; 65]));
        let length = |printed: &[u8]| format!("{:?}", done(printed).length());
        assert_eq!(
            (length(&[b'7'; 3000]), length(b"37\n")),
            ("3000".into(), "3".into())
        );
    }

    /// A megabyte and its last byte.
    #[test]
    fn long_texts_differ_wherever_they_differ_and_take_little_room() {
        let mut text = vec![b'x'; 1 << 20];
        let one = done(&text);
        *text.last_mut().expect("a million") = b'y';
        let other = done(&text);
        assert!(one.category() != other.category());
        for outcome in [one, other] {
            assert_eq!(outcome.kind(), "a long text");
            let name = format!("{:?}", outcome.category());
            assert!(name.contains("1048576 bytes") && name.len() < 200, "{name}");
        }
        let name = format!("{:?}", done(&[b'z'; TEXT_MAX]).category());
        assert!(name.len() < QUOTED_MAX + 20, "{name}");
        // Longer than any number, and its beginning is one.
        let digits = [b'1'; NUMBER_MAX + 1];
        assert!(done(&digits).number().is_nan());
        assert_eq!(done(&digits).kind(), "a long text");
    }

    #[test]
    fn what_may_be_cut_is_no_number() {
        let of = |closed: bool, end, printed: &[u8]| {
            let mut printing = Printing::default();
            printing.add(printed);
            if closed {
                printing.close();
            }
            printing.outcome(end).number()
        };
        assert_eq!(of(true, End::Done, b"12.34"), 12.34);
        assert!(of(false, End::Done, b"12.34").is_nan());
        assert_eq!(of(false, End::Done, b"12.34\n"), 12.34);
        assert!(of(true, End::TimedOut, b"12.34").is_nan());
        assert_eq!(of(true, End::TimedOut, b"12.34\n"), 12.34);
    }

    #[test]
    fn words_are_replaced_in_what_is_kept() {
        let of = |printed: &[u8]| {
            let mut printing = Printing::default();
            // In pieces, as it comes from a pipe.
            printed.chunks(3).for_each(|piece| printing.add(piece));
            printing.replace(b"4711", b"0000");
            printing.outcome(End::Done)
        };
        assert_eq!(
            of(b"3 of 4711/data47114711"),
            done(b"3 of 0000/data00000000")
        );
        let long = [b'z'; 300];
        assert_eq!(of(&long), done(&long), "nor is a digest another");
    }
}
