//! Arrays of NumPy: `\x93NUMPY`, a version, the length of a header, the header as the text of a Python dictionary, then numbers.
//! The first side is the number of rows.

use std::io::Read;
use std::path::Path;

use super::binary::{Header, Number, Order, Rows, Wrong, read as read_rows};
use super::builder::Builder;
use super::error::Result;
use super::open::builder;
use super::{Declaration, Wanted};

const KIND: &str = "npy file";

/// Headers are a few dozen bytes; NumPy pads them to 64.
const HEADER_MAX: usize = 1 << 16;

/// Items keep their shape; pictures must have their channels first.
pub(super) fn read(declaration: &Declaration, path: &Path, labels: &Path) -> Result<Builder> {
    let items = Rows::open(path, KIND, header)?;
    let labels = match declaration.wanted {
        Wanted::Labelled => Some(Rows::open(labels, KIND, header)?),
        Wanted::Features => None,
    };
    let shape = found(&items);
    read_rows(declaration, items, labels, shape)
}

/// What becomes of an example, by the header: reads no row.
pub(super) fn survey(declaration: &Declaration, path: &Path) -> Result<Builder> {
    let items = Rows::open(path, KIND, header)?;
    let scale = items.header.number.scale_otherwise();
    builder(declaration, path, found(&items), scale, 0)
}

/// All numbers of an array with two sides, and how many stand in a row.
pub(super) fn matrix(path: &Path) -> Result<(Vec<f64>, usize)> {
    let rows = Rows::open(path, KIND, header)?;
    match rows.header.item[..] {
        [width] => Ok((rows.numbers()?, width)),
        _ => Err(rows.malformed(
            "it has another number of sides than two",
            "save an array of rows and columns",
        )),
    }
}

fn found(items: &Rows<'_>) -> Vec<usize> {
    match items.header.item[..] {
        [] => vec![1],
        _ => items.header.item.clone(),
    }
}

fn header(bytes: &mut impl Read) -> std::result::Result<Header, Wrong> {
    const NO_ARRAY: Wrong = (
        "it does not begin as NumPy writes it",
        "save an array with numpy.save",
    );
    let mut start = [0; 8];
    bytes.read_exact(&mut start).map_err(|_| NO_ARRAY)?;
    let [0x93, b'N', b'U', b'M', b'P', b'Y', version, _] = start else {
        return Err(NO_ARRAY);
    };
    let length = match version {
        1 => {
            let mut length = [0; 2];
            bytes.read_exact(&mut length).map_err(|_| NO_ARRAY)?;
            usize::from(u16::from_le_bytes(length))
        }
        2 | 3 => {
            let mut length = [0; 4];
            bytes.read_exact(&mut length).map_err(|_| NO_ARRAY)?;
            u32::from_le_bytes(length) as usize
        }
        _ => return Err(NO_ARRAY),
    };
    if length > HEADER_MAX {
        return Err(NO_ARRAY);
    }
    let mut text = vec![0; length];
    bytes.read_exact(&mut text).map_err(|_| NO_ARRAY)?;
    let text = String::from_utf8(text).map_err(|_| NO_ARRAY)?;
    parse(&text)
}

/// Reads `{'descr': '<f4', 'fortran_order': False, 'shape': (60000, 784), }`.
fn parse(text: &str) -> std::result::Result<Header, Wrong> {
    const NO_HEADER: Wrong = (
        "its header cannot be read",
        "save an array of one number type with numpy.save",
    );
    const NUMBERS: &str = "save it as float32, float64, uint8 or int64, with numpy.save(path, array.astype('float32'))";
    let after = |key: &str| {
        let (_, rest) = text.split_once(key)?;
        rest.trim_start().strip_prefix(':').map(str::trim_start)
    };
    let kind = after("'descr'")
        .and_then(|rest| rest.strip_prefix('\''))
        .and_then(|rest| rest.split_once('\''))
        .map(|(kind, _)| kind)
        .ok_or(("it holds records, not numbers", NUMBERS))?;
    let (order, kind) = match kind.split_at_checked(1) {
        Some(("<" | "|" | "=", kind)) => (Order::Little, kind),
        Some((">", kind)) => (Order::Big, kind),
        _ => return Err(NO_HEADER),
    };
    let number = match kind {
        "f4" => Number::F32,
        "f8" => Number::F64,
        "u1" => Number::U8,
        "i1" => Number::I8,
        "i2" => Number::I16,
        "i4" => Number::I32,
        "i8" => Number::I64,
        _ => return Err(("its number type is not read here", NUMBERS)),
    };
    match after("'fortran_order'") {
        Some(rest) if rest.starts_with("False") => {}
        Some(rest) if rest.starts_with("True") => {
            let passes =
                "save it in C order, with numpy.save(path, numpy.ascontiguousarray(array))";
            return Err(("its numbers stand column by column", passes));
        }
        _ => return Err(NO_HEADER),
    }
    let sides = after("'shape'")
        .and_then(|rest| rest.strip_prefix('('))
        .and_then(|rest| rest.split_once(')'))
        .map(|(sides, _)| sides)
        .ok_or(NO_HEADER)?;
    let mut sides = sides
        .split(',')
        .map(str::trim)
        .filter(|side| !side.is_empty());
    let rows = sides.next().ok_or((
        "it holds a single number",
        "save an array with a row for each example",
    ))?;
    Ok(Header {
        number,
        order,
        rows: rows.parse().map_err(|_| NO_HEADER)?,
        item: sides
            .map(|side| side.parse().map_err(|_| NO_HEADER))
            .collect::<std::result::Result<_, _>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::open::tests::{declare, folder, refusal, rows};
    use super::*;
    use crate::data::load_public;

    const PLAN: &str = "path = 'x.npy'\nlabel = 'y.npy'";

    fn array(kind: &str, shape: &str, numbers: &[u8]) -> Vec<u8> {
        let text = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes.extend(numbers);
        bytes
    }

    fn floats(values: &[f32]) -> Vec<u8> {
        values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect()
    }

    #[test]
    fn number_types_are_read_with_their_labels() {
        let labels = array("<i8", "(2,)", &[1_i64, 0].map(i64::to_le_bytes).concat());
        let doubles = [0.5_f64, -1.0].map(f64::to_be_bytes).concat();
        let cases = [
            (array("<f4", "(2, 1)", &floats(&[0.5, -1.0])), [0.5, -1.0]),
            (array(">f8", "(2, 1)", &doubles), [0.5, -1.0]),
            (array("|u1", "(2, 1)", &[51, 255]), [0.2, 1.0]),
            (
                array("<i8", "(2,)", &[7_i64, -3].map(i64::to_le_bytes).concat()),
                [7.0, -3.0],
            ),
        ];
        for (items, [first, second]) in cases {
            let folder = folder(&[("x.npy", &items), ("y.npy", &labels)]);
            let expected = [Some((vec![first], 1.0)), Some((vec![second], 0.0))];
            assert_eq!(rows(&format!("{PLAN}\nclasses = 2"), &folder), expected);
        }
    }

    #[test]
    fn numbers_can_be_learnt_and_rows_that_are_not_finite_are_empty() {
        let items = array(
            "<f4",
            "(3, 2)",
            &floats(&[1.0, 2.0, f32::NAN, 0.0, 3.0, 4.0]),
        );
        let targets = array("<f4", "(3, 1)", &floats(&[0.25, 1.0, f32::INFINITY]));
        let folder = folder(&[("x.npy", &items), ("y.npy", &targets)]);
        assert_eq!(
            rows(PLAN, &folder),
            [Some((vec![1.0, 2.0], 0.25)), None, None]
        );
    }

    #[test]
    fn items_keep_their_shape() {
        let items = array("|u1", "(1, 3, 2, 2)", &[0; 12]);
        let labels = array("|u1", "(1,)", &[0]);
        let folder = folder(&[("x.npy", &items), ("y.npy", &labels)]);
        let plan = declare(&format!("{PLAN}\nclasses = 2"));
        let data = load_public(&plan, folder.path()).expect("fits");
        assert_eq!(data.shape(), [3, 2, 2]);
    }

    #[test]
    fn headers_that_are_not_read_say_what_would_pass() {
        let labels = array("|u1", "(1,)", &[0]);
        let transposed = array("<f4", "(1, 1)", &[0; 4]);
        let transposed = String::from_utf8_lossy(&transposed[10..]).replace("False", "True ");
        let mut columns = b"\x93NUMPY\x01\x00".to_vec();
        columns.extend((transposed.len() as u16 - 4).to_le_bytes());
        columns.extend(transposed.as_bytes());
        let cases: [(&[u8], &str, &str); 7] = [
            (b"PK\x03\x04 an npz", "begin as NumPy", "numpy.save"),
            (b"\x93NUMPY\x01\x00\xff\xff", "begin as NumPy", "numpy.save"),
            (&array("<c8", "(1,)", &[0; 8]), "number type", "float32"),
            (
                &array("<f4", "()", &[0; 4]),
                "single number",
                "a row for each",
            ),
            (
                &array("<f4", "(x,)", &[0; 4]),
                "cannot be read",
                "numpy.save",
            ),
            (&columns, "column by column", "ascontiguousarray"),
            (
                &array("<f4", "(1,)", &[0; 3]),
                "read to the end",
                "whole file",
            ),
        ];
        for (bytes, what, passes) in cases {
            let folder = folder(&[("x.npy", bytes), ("y.npy", &labels)]);
            let (code, text) = refusal(&format!("{PLAN}\nclasses = 2"), &folder);
            assert_eq!(code, "data_malformed");
            assert!(text.contains(what) && text.contains(passes), "{text}");
        }
        let records = "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }";
        assert!(parse(records).is_err_and(|(what, _)| what.contains("records")));
    }
}
