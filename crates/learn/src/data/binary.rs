//! Rows of numbers in binary files: what IDX and npy have in common.

use std::io::Read;
use std::path::Path;

use super::Declaration;
use super::builder::{Builder, Raw};
use super::error::{DataError, Result};
use super::open::{builder, stream};

/// How a number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    U8,
    I8,
    I16,
    I32,
    I64,
    F32,
    F64,
}

/// Which byte comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Big,
    Little,
}

/// What the public part of a file says, but for the number of rows, which is private.
pub(super) struct Header {
    pub(super) number: Number,
    pub(super) order: Order,
    /// Those that are left, where they are taken one by one.
    pub(super) rows: u64,
    /// The shape of one item; empty for items that are single numbers.
    pub(super) item: Vec<usize>,
}

/// A file whose header was read, and which stands at its first row.
pub(super) struct Rows<'a> {
    pub(super) path: &'a Path,
    pub(super) kind: &'static str,
    pub(super) header: Header,
    pub(super) bytes: Box<dyn Read>,
}

/// What is wrong with a header, and what would pass.
pub(super) type Wrong = (&'static str, &'static str);

impl<'a> Rows<'a> {
    /// Reads the header, in the way of the format.
    pub(super) fn open(
        path: &'a Path,
        kind: &'static str,
        header: impl FnOnce(&mut Box<dyn Read>) -> std::result::Result<Header, Wrong>,
    ) -> Result<Self> {
        let mut bytes = stream(path)?;
        let header =
            header(&mut bytes).map_err(|(what, passes)| malformed(path, kind, what, passes))?;
        Ok(Self {
            path,
            kind,
            header,
            bytes,
        })
    }
}

impl Number {
    fn size(self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::I16 => 2,
            Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 => 8,
        }
    }

    /// What bytes are multiplied by if a plan does not say: they are nearly always shades from 0 to 255.
    pub(super) fn scale_otherwise(self) -> f64 {
        match self {
            Self::U8 => 1.0 / 255.0,
            _ => 1.0,
        }
    }

    /// The numbers in `bytes`, into `values`, which is emptied first.
    fn decode(self, order: Order, bytes: &[u8], values: &mut Vec<f64>) {
        fn each<const N: usize>(
            order: Order,
            bytes: &[u8],
            values: &mut Vec<f64>,
            read: impl Fn([u8; N]) -> f64,
        ) {
            let (chunks, _) = bytes.as_chunks::<N>();
            values.extend(chunks.iter().map(|chunk| {
                let mut little = *chunk;
                if order == Order::Big {
                    little.reverse();
                }
                read(little)
            }));
        }
        values.clear();
        match self {
            Self::U8 => values.extend(bytes.iter().map(|byte| f64::from(*byte))),
            Self::I8 => each(order, bytes, values, |b| f64::from(i8::from_le_bytes(b))),
            Self::I16 => each(order, bytes, values, |b| f64::from(i16::from_le_bytes(b))),
            Self::I32 => each(order, bytes, values, |b| f64::from(i32::from_le_bytes(b))),
            Self::I64 => each(order, bytes, values, |b| i64::from_le_bytes(b) as f64),
            Self::F32 => each(order, bytes, values, |b| f64::from(f32::from_le_bytes(b))),
            Self::F64 => each(order, bytes, values, f64::from_le_bytes),
        }
    }
}

impl Rows<'_> {
    pub(super) fn malformed(&self, what: &'static str, passes: &'static str) -> DataError {
        malformed(self.path, self.kind, what, passes)
    }

    /// The next item's numbers.
    fn next(&mut self, buffer: &mut [u8], values: &mut Vec<f64>) -> Result<()> {
        if self.bytes.read_exact(buffer).is_err() {
            return Err(self.malformed(
                "it cannot be read to the end that its header promises",
                "give the whole file, unpacked or as .gz",
            ));
        }
        self.header.number.decode(self.header.order, buffer, values);
        Ok(())
    }

    /// All items, one after the other.
    pub(super) fn numbers(mut self) -> Result<Vec<f64>> {
        let item = super::width(&self.header.item).ok_or_else(|| {
            self.malformed(
                "its rows are empty or too long",
                "save rows of at least one number",
            )
        })?;
        let mut buffer = vec![0; item * self.header.number.size()];
        let (mut values, mut all) = (Vec::new(), Vec::new());
        for _ in 0..self.header.rows {
            self.next(&mut buffer, &mut values)?;
            all.extend_from_slice(&values);
        }
        Ok(all)
    }

    /// The next item as a label; `None` after the last that the header promises.
    pub(super) fn label(&mut self) -> Result<Option<f64>> {
        let Some(left) = self.header.rows.checked_sub(1) else {
            self.ends()?;
            return Ok(None);
        };
        self.header.rows = left;
        // No number is longer.
        let mut bytes = [0; 8];
        let mut answer = Vec::with_capacity(1);
        self.next(&mut bytes[..self.header.number.size()], &mut answer)?;
        Ok(answer.first().copied())
    }

    pub(super) fn check_labels(&self) -> Result<()> {
        if self.header.item.iter().any(|side| *side != 1) {
            return Err(self.malformed(
                "it holds more than one label for a row",
                "give labels as a list of numbers",
            ));
        }
        Ok(())
    }

    fn ends(&mut self) -> Result<()> {
        match self.bytes.read(&mut [0]) {
            Ok(0) => Ok(()),
            _ => Err(self.malformed(
                "it goes on after the end that its header promises",
                "give the file as it was first written",
            )),
        }
    }
}

pub(super) fn malformed(
    path: &Path,
    kind: &'static str,
    what: &'static str,
    passes: &'static str,
) -> DataError {
    DataError::Malformed {
        path: path.into(),
        kind,
        what,
        passes,
    }
}

/// Reads items and labels side by side, or items alone. `shape` is that of an item as layers see it.
pub(super) fn read(
    declaration: &Declaration,
    mut items: Rows<'_>,
    mut labels: Option<Rows<'_>>,
    shape: Vec<usize>,
) -> Result<Builder> {
    if let Some(labels) = &labels {
        labels.check_labels()?;
        if items.header.rows != labels.header.rows {
            return Err(DataError::Unequal {
                features: items.path.into(),
                labels: labels.path.into(),
            });
        }
    }
    let rows = usize::try_from(items.header.rows).unwrap_or(usize::MAX);
    let number = items.header.number;
    let mut builder = builder(
        declaration,
        items.path,
        shape,
        number.scale_otherwise(),
        rows,
    )?;
    let mut item = vec![0; builder.width() * number.size()];
    let size = labels
        .as_ref()
        .map_or(0, |labels| labels.header.number.size());
    let mut label = vec![0; size];
    let (mut values, mut answer) = (Vec::with_capacity(builder.width()), vec![0.0]);
    while builder.rows() < rows {
        items.next(&mut item, &mut values)?;
        if let Some(labels) = &mut labels {
            labels.next(&mut label, &mut answer)?;
        }
        builder.row(Ok(&values), Raw::Number(answer[0]));
    }
    items.ends()?;
    if let Some(labels) = &mut labels {
        labels.ends()?;
    }
    Ok(builder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_both_orders() {
        let check = |number: Number, little: &[u8], expected: f64| {
            let mut big = little.to_vec();
            big.reverse();
            let mut values = Vec::new();
            for (order, bytes) in [(Order::Little, little), (Order::Big, &big[..])] {
                number.decode(order, &bytes.repeat(2), &mut values);
                assert_eq!(values, [expected; 2], "{number:?} {order:?}");
            }
            assert_eq!(number.size(), little.len());
        };
        check(Number::U8, &[200], 200.0);
        check(Number::I8, &[200], -56.0);
        check(Number::I16, &(-2_i16).to_le_bytes(), -2.0);
        check(Number::I32, &70_000_i32.to_le_bytes(), 70_000.0);
        check(Number::I64, &(-5_i64).to_le_bytes(), -5.0);
        check(Number::F32, &1.5_f32.to_le_bytes(), 1.5);
        check(Number::F64, &0.1_f64.to_le_bytes(), 0.1);
    }
}
