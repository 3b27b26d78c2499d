//! Cells: the values that expressions are computed on, on both sides of the noise.
//!
//! There is one kind of nothing and one kind of zero: what is no number becomes NULL, and `-0` becomes `0`, so that
//! equal cells have equal bytes and a group cannot split in two.

use std::borrow::Cow;
use std::cmp::Ordering;

/// A cell of a table, borrowed from it where it is text.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell<'a> {
    /// Nothing.
    Null,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A real number, never NaN, never `-0`; infinities are numbers.
    Real(f64),
    /// Text.
    Text(Cow<'a, str>),
}

/// A cell that borrows from nothing.
pub type Value = Cell<'static>;

/// What a cell can hold besides NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Nothing but NULL.
    Null,
    /// Truth values.
    Bool,
    /// Whole numbers of 64 bits.
    Int,
    /// Floats.
    #[serde(rename = "float")]
    Real,
    /// Text.
    Text,
}

impl Kind {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Real => "float",
            Self::Text => "text",
        }
    }

    /// The kind that holds both, if there is one.
    pub(crate) fn join(self, other: Self) -> Option<Self> {
        match (self, other) {
            (same, also) if same == also => Some(same),
            (Self::Null, kind) | (kind, Self::Null) => Some(kind),
            (Self::Int, Self::Real) | (Self::Real, Self::Int) => Some(Self::Real),
            _ => None,
        }
    }

    pub(crate) fn is_number(self) -> bool {
        matches!(self, Self::Null | Self::Int | Self::Real)
    }
}

/// Longer texts are cut, so that the work one row can make is bounded.
pub(crate) const TEXT_BYTES_MAX: usize = 4096;

impl<'a> Cell<'a> {
    /// A real number in its one form.
    pub fn real(value: f64) -> Self {
        if value.is_nan() {
            Self::Null
        } else {
            Self::Real(value + 0.0)
        }
    }

    /// Text, cut to a bounded length.
    pub(crate) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(cut(text.into(), TEXT_BYTES_MAX))
    }

    /// The same, its text cut to so many bytes.
    pub(crate) fn shortened(self, bytes: usize) -> Self {
        match self {
            Self::Text(text) => Self::Text(cut(text, bytes)),
            other => other,
        }
    }

    /// A cell of a file. An empty cell is NULL, and so is one that cannot be read as what the catalog says it is.
    pub(crate) fn parse(text: &'a str, kind: Kind) -> Self {
        if text.is_empty() {
            return Self::Null;
        }
        match kind {
            Kind::Null => Self::Null,
            Kind::Text => Self::text(text),
            _ => Self::text(text).cast(kind),
        }
    }

    /// The same as another kind; NULL where there is no such thing. Reals lose their fraction on the way to whole
    /// numbers and stop at their ends.
    pub(crate) fn cast(self, kind: Kind) -> Self {
        match (self, kind) {
            (Self::Null, _) | (_, Kind::Null) => Self::Null,
            (Self::Bool(b), Kind::Bool) => Self::Bool(b),
            (Self::Bool(b), Kind::Int) => Self::Int(i64::from(b)),
            (Self::Bool(b), Kind::Real) => Self::Real(f64::from(u8::from(b))),
            (Self::Bool(b), Kind::Text) => {
                Self::Text(Cow::Borrowed(if b { "true" } else { "false" }))
            }
            (Self::Int(i), Kind::Bool) => Self::Bool(i != 0),
            (Self::Int(i), Kind::Int) => Self::Int(i),
            (Self::Int(i), Kind::Real) => Self::Real(i as f64),
            (Self::Int(i), Kind::Text) => Self::Text(Cow::Owned(i.to_string())),
            (Self::Real(x), Kind::Bool) => Self::Bool(x != 0.0),
            (Self::Real(x), Kind::Int) => Self::Int(x as i64),
            (Self::Real(x), Kind::Real) => Self::real(x),
            (Self::Real(x), Kind::Text) => Self::Text(Cow::Owned(x.to_string())),
            (Self::Text(t), Kind::Text) => Self::Text(t),
            (Self::Text(t), Kind::Int) => t.trim().parse().map_or(Self::Null, Self::Int),
            (Self::Text(t), Kind::Real) => t.trim().parse().map_or(Self::Null, Self::real),
            (Self::Text(t), Kind::Bool) => match t.trim() {
                t if t.eq_ignore_ascii_case("true") || t == "1" || t.eq_ignore_ascii_case("t") => {
                    Self::Bool(true)
                }
                t if t.eq_ignore_ascii_case("false") || t == "0" || t.eq_ignore_ascii_case("f") => {
                    Self::Bool(false)
                }
                _ => Self::Null,
            },
        }
    }

    /// As a float, if it is a number.
    pub fn number(&self) -> Option<f64> {
        match *self {
            Self::Int(i) => Some(i as f64),
            Self::Real(x) => Some(x),
            _ => None,
        }
    }

    /// Borrows from nothing any more.
    pub fn into_value(self) -> Value {
        match self {
            Self::Null => Cell::Null,
            Self::Bool(b) => Cell::Bool(b),
            Self::Int(i) => Cell::Int(i),
            Self::Real(x) => Cell::Real(x),
            Self::Text(t) => Cell::Text(Cow::Owned(t.into_owned())),
        }
    }

    /// The order of SQL's comparisons; none with NULL or between kinds that do not mix.
    pub(crate) fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            (Self::Int(a), Self::Int(b)) => Some(a.cmp(b)),
            (Self::Text(a), Self::Text(b)) => Some(a.as_ref().cmp(b.as_ref())),
            _ => self.number()?.partial_cmp(&other.number()?),
        }
    }

    /// Bytes that differ for cells that differ, and sort as the cells do. NULL sorts last.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Bool(b) => out.extend([1, u8::from(*b)]),
            Self::Int(i) => {
                out.push(2);
                out.extend((*i as u64 ^ (1 << 63)).to_be_bytes());
            }
            Self::Real(x) => {
                let bits = x.to_bits();
                let sorted = if bits >> 63 == 1 {
                    !bits
                } else {
                    bits ^ (1 << 63)
                };
                out.push(3);
                out.extend(sorted.to_be_bytes());
            }
            Self::Text(t) => {
                out.push(4);
                for &byte in t.as_bytes() {
                    out.push(byte);
                    // A zero inside is escaped, so that the end cannot be forged.
                    if byte == 0 {
                        out.push(0xff);
                    }
                }
                out.extend([0, 0]);
            }
            Self::Null => out.push(5),
        }
    }

    /// Reads cells back until the bytes end. None if they were not written by [`encode`](Self::encode).
    pub(crate) fn decode_all(mut bytes: &[u8]) -> Option<Vec<Value>> {
        let mut cells = Vec::new();
        while let Some((&tag, rest)) = bytes.split_first() {
            bytes = rest;
            cells.push(match tag {
                1 => Cell::Bool(take::<1>(&mut bytes)? == [1]),
                2 => Cell::Int((u64::from_be_bytes(take(&mut bytes)?) ^ (1 << 63)) as i64),
                3 => {
                    let sorted = u64::from_be_bytes(take(&mut bytes)?);
                    let bits = if sorted >> 63 == 0 {
                        !sorted
                    } else {
                        sorted ^ (1 << 63)
                    };
                    Cell::Real(f64::from_bits(bits))
                }
                4 => {
                    let mut text = Vec::new();
                    loop {
                        let [byte] = take(&mut bytes)?;
                        if byte == 0 && take::<1>(&mut bytes)? == [0] {
                            break;
                        }
                        text.push(byte);
                    }
                    Cell::Text(Cow::Owned(String::from_utf8(text).ok()?))
                }
                5 => Cell::Null,
                _ => return None,
            });
        }
        Some(cells)
    }
}

impl serde::Serialize for Cell<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_none(),
            Self::Bool(b) => serializer.serialize_bool(*b),
            Self::Int(i) => serializer.serialize_i64(*i),
            Self::Real(x) => serializer.serialize_f64(*x),
            Self::Text(t) => serializer.serialize_str(t),
        }
    }
}

impl<'de> serde::Deserialize<'de> for Value {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(untagged)]
        enum Written {
            Bool(bool),
            Int(i64),
            Real(f64),
            Text(String),
        }
        let written = Option::<Written>::deserialize(deserializer)?;
        Ok(match written {
            None => Self::Null,
            Some(Written::Bool(b)) => Self::Bool(b),
            Some(Written::Int(i)) => Self::Int(i),
            Some(Written::Real(x)) => Self::real(x),
            Some(Written::Text(t)) => Self::Text(t.into()),
        })
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*head)
}

fn cut(text: Cow<'_, str>, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return text;
    }
    let end = (0..=most)
        .rev()
        .find(|&end| text.is_char_boundary(end))
        .unwrap_or(0);
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[..end]),
        Cow::Owned(mut text) => {
            text.truncate(end);
            Cow::Owned(text)
        }
    }
}

/// Several cells as one key.
pub(crate) fn encode_all<'a>(cells: impl IntoIterator<Item = Cell<'a>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for cell in cells {
        cell.encode(&mut bytes);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells() -> Vec<Value> {
        let text = |t: &str| Cell::Text(Cow::Owned(t.to_owned()));
        vec![
            Cell::Bool(false),
            Cell::Bool(true),
            Cell::Int(i64::MIN),
            Cell::Int(-1),
            Cell::Int(0),
            Cell::Int(i64::MAX),
            Cell::Real(f64::NEG_INFINITY),
            Cell::Real(-1.5),
            Cell::Real(0.0),
            Cell::Real(5e-324),
            Cell::Real(f64::INFINITY),
            text(""),
            text("\0"),
            text("\0\0"),
            text("\0\u{1}"),
            text("a"),
            text("a\0b"),
            text("ab"),
            Cell::Null,
        ]
    }

    #[test]
    fn keys_read_as_written_and_sort_as_their_cells() {
        let cells = cells();
        let keys: Vec<Vec<u8>> = cells
            .iter()
            .map(|cell| encode_all([cell.clone()]))
            .collect();
        assert!(keys.windows(2).all(|pair| pair[0] < pair[1]));
        let all = encode_all(cells.iter().cloned());
        assert_eq!(Cell::decode_all(&all), Some(cells));
        assert_eq!(Cell::decode_all(&[9]), None);
        assert_eq!(Cell::decode_all(&[4, b'a']), None);
    }

    #[test]
    fn pairs_of_texts_are_told_apart() {
        let pair = |a: &'static str, b: &'static str| encode_all([Cell::text(a), Cell::text(b)]);
        assert_ne!(pair("a", "bc"), pair("ab", "c"));
        assert_ne!(pair("a\0", ""), pair("a", "\0"));
    }

    #[test]
    fn there_is_one_zero_and_one_nothing() {
        assert_eq!(
            encode_all([Cell::real(-0.0)]),
            encode_all([Cell::real(0.0)])
        );
        assert_eq!(Cell::real(f64::NAN), Cell::Null);
        assert_eq!(Cell::real(-f64::NAN), Cell::Null);
        assert_eq!(Cell::parse("-NaN", Kind::Real), Cell::Null);
        assert_eq!(Cell::parse("inf", Kind::Real), Cell::Real(f64::INFINITY));
    }

    #[test]
    fn what_cannot_be_read_is_null() {
        for (text, kind) in [
            ("12x", Kind::Int),
            ("9223372036854775808", Kind::Int),
            ("", Kind::Text),
            ("maybe", Kind::Bool),
        ] {
            assert_eq!(Cell::parse(text, kind), Cell::Null, "{text}");
        }
        assert_eq!(Cell::parse(" 12 ", Kind::Int), Cell::Int(12));
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let long = "é".repeat(TEXT_BYTES_MAX);
        let Cell::Text(text) = Cell::parse(&long, Kind::Text) else {
            panic!("text")
        };
        assert_eq!(text.len(), TEXT_BYTES_MAX);
    }
}
