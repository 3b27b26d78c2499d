//! IDX, the format of MNIST: two zero bytes, a number type, a number of sides, each side as four bytes, then numbers; the most
//! significant byte first. The first side is the number of rows.

use std::io::Read;
use std::path::Path;

use super::binary::{Header, Number, Order, Rows, Wrong, read as read_rows};
use super::builder::Builder;
use super::error::Result;
use super::open::builder;
use super::{Declaration, Wanted};

const KIND: &str = "IDX file";

/// Pictures without channels get one: a file of `[60000, 28, 28]` holds examples of shape `[1, 28, 28]`.
pub(super) fn read(declaration: &Declaration, path: &Path, labels: &Path) -> Result<Builder> {
    let items = Rows::open(path, KIND, header)?;
    let labels = match declaration.wanted {
        Wanted::Labelled => Some(Rows::open(labels, KIND, header)?),
        Wanted::Features => None,
    };
    let shape = found(&items);
    read_rows(declaration, items, labels, shape)
}

/// The labels of rows that are kept in another format.
pub(super) fn labels(path: &Path) -> Result<Rows<'_>> {
    let labels = Rows::open(path, KIND, header)?;
    labels.check_labels()?;
    Ok(labels)
}

/// What becomes of an example, by the header: reads no row.
pub(super) fn survey(declaration: &Declaration, path: &Path) -> Result<Builder> {
    let items = Rows::open(path, KIND, header)?;
    let scale = items.header.number.scale_otherwise();
    builder(declaration, path, found(&items), scale, 0)
}

fn found(items: &Rows<'_>) -> Vec<usize> {
    match items.header.item[..] {
        [] => vec![1],
        [height, width] => vec![1, height, width],
        _ => items.header.item.clone(),
    }
}

fn header(bytes: &mut impl Read) -> std::result::Result<Header, Wrong> {
    let short = (
        "it is shorter than a header",
        "give the whole file, unpacked or as .gz",
    );
    let mut four = || {
        let mut four = [0; 4];
        bytes
            .read_exact(&mut four)
            .map(|()| four)
            .map_err(|_| short)
    };
    let [0, 0, kind, sides] = four()? else {
        return Err((
            "it does not begin with two zero bytes",
            "give a file such as train-images-idx3-ubyte, whose name ends in .gz if it is packed",
        ));
    };
    let number = match kind {
        0x08 => Number::U8,
        0x09 => Number::I8,
        0x0B => Number::I16,
        0x0C => Number::I32,
        0x0D => Number::F32,
        0x0E => Number::F64,
        _ => {
            return Err((
                "its number type is not known",
                "give numbers of type 8, 9, 11, 12, 13 or 14",
            ));
        }
    };
    if !(1..=4).contains(&sides) {
        return Err((
            "it has no sides, or too many",
            "give a file with 1 to 4 sides",
        ));
    }
    let rows = u64::from(u32::from_be_bytes(four()?));
    let item = (1..sides)
        .map(|_| four().map(|side| u32::from_be_bytes(side) as usize))
        .collect::<std::result::Result<_, _>>()?;
    Ok(Header {
        number,
        order: Order::Big,
        rows,
        item,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};

    use super::super::open::tests::{declare, folder, refusal, rows};
    use crate::data::load_public;

    const PLAN: &str = "path = 'x-ubyte'\nlabel = 'y-ubyte'\nclasses = 3";
    const LABELS: &[u8] = &[0, 0, 8, 1, 0, 0, 0, 2, 2, 0];

    fn pictures() -> Vec<u8> {
        let mut bytes = vec![0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2];
        bytes.extend([0, 255, 51, 102]);
        bytes
    }

    #[test]
    fn bytes_are_shades() {
        let folder = folder(&[("x-ubyte", &pictures()), ("y-ubyte", LABELS)]);
        let expected = [Some((vec![0.0, 1.0], 2.0)), Some((vec![0.2, 0.4], 0.0))];
        assert_eq!(rows(PLAN, &folder), expected);
        let raw = rows(&format!("{PLAN}\nscale = 1"), &folder);
        assert_eq!(raw[1], Some((vec![51.0, 102.0], 0.0)));
        let data = load_public(&declare(PLAN), folder.path()).expect("fits");
        assert_eq!(data.shape(), [1, 1, 2]);
    }

    /// A header may say anything.
    #[test]
    fn sizes_beyond_all_numbers_are_refused() {
        let sides = [0xff; 12];
        let huge = [&[0, 0, 8, 4, 0, 0, 0, 2][..], &sides, &[0; 64]].concat();
        let folder = folder(&[("x-ubyte", &huge), ("y-ubyte", LABELS)]);
        let (code, text) = refusal(PLAN, &folder);
        assert_eq!(code, "data_shape");
        assert!(text.contains("too many features"), "{text}");
        let rows_only = [&[0, 0, 8, 2, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1][..], &[1]].concat();
        let labels = [&[0, 0, 8, 1, 0xff, 0xff, 0xff, 0xff][..], &[1]].concat();
        let folder = folder_of(&rows_only, &labels);
        assert_eq!(refusal(PLAN, &folder).0, "data_malformed");
    }

    fn folder_of(items: &[u8], labels: &[u8]) -> tempfile::TempDir {
        folder(&[("x-ubyte", items), ("y-ubyte", labels)])
    }

    #[test]
    fn packed_files_are_unpacked() {
        let pack = |bytes: &[u8]| {
            let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
            packed.write_all(bytes).expect("memory");
            packed.finish().expect("memory")
        };
        let (x, y) = (pack(&pictures()), pack(LABELS));
        let folder = folder(&[
            ("x-ubyte.gz", &x),
            ("y-ubyte.gz", &y),
            ("half-ubyte.gz", &x[..x.len() / 2]),
        ]);
        let plan = PLAN.replace("ubyte", "ubyte.gz");
        assert_eq!(rows(&plan, &folder).len(), 2);
        let (code, _) = refusal(&plan.replace("x-", "half-"), &folder);
        assert_eq!(code, "data_malformed");
    }

    #[test]
    fn labels_out_of_range_are_empty_examples() {
        let folder = folder(&[("x-ubyte", &pictures()), ("y-ubyte", LABELS)]);
        let found = rows(&PLAN.replace('3', "2"), &folder);
        assert!(found[0].is_none() && found[1].is_some());
    }

    #[test]
    fn files_that_are_not_whole_are_refused_without_a_count() {
        let whole = pictures();
        let mut longer = whole.clone();
        longer.push(0);
        let cases: [(&str, &[u8], &str, &str); 6] = [
            (
                "short header",
                &whole[..9],
                "shorter than a header",
                "whole file",
            ),
            (
                "short rows",
                &whole[..whole.len() - 1],
                "read to the end",
                "whole file",
            ),
            ("long rows", &longer, "goes on", "first written"),
            ("text", b"5,1,2,3,4", "two zero bytes", "idx3-ubyte"),
            ("type", &[0, 0, 7, 1, 0, 0, 0, 0], "number type", "type 8"),
            ("sides", &[0, 0, 8, 9, 0, 0, 0, 0], "sides", "1 to 4"),
        ];
        for (name, bytes, what, passes) in cases {
            let folder = folder(&[("x-ubyte", bytes), ("y-ubyte", LABELS)]);
            let (code, text) = refusal(PLAN, &folder);
            assert_eq!(code, "data_malformed", "{name}");
            assert!(
                text.contains(what) && text.contains(passes),
                "{name}: {text}"
            );
        }
    }

    #[test]
    fn pictures_and_labels_must_be_equally_many() {
        let labels = [0, 0, 8, 1, 0, 0, 0, 3, 2, 0, 1];
        let folder = folder(&[("x-ubyte", &pictures()), ("y-ubyte", &labels)]);
        assert_eq!(refusal(PLAN, &folder).0, "data_unequal");
        let swapped = folder_swapped();
        assert_eq!(
            refusal(PLAN, &swapped).0,
            "data_malformed",
            "two labels a row"
        );
    }

    fn folder_swapped() -> tempfile::TempDir {
        folder(&[("x-ubyte", LABELS), ("y-ubyte", &pictures())])
    }
}
