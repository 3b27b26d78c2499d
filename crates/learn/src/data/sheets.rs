//! Sheets: large PNG files of which each row of pixels is one picture, its own rows one after the other. A sheet of pictures of 32 by 32
//! is 1,024 pixels wide and as high as there are pictures. Labels are in a file of their own, for all sheets one after the other.
//!
//! # What a sheet tells beyond its rows
//!
//! Rows are packed together: how long a file is, where its chunks end and how each row is filtered depends on every picture in it. None of this gets
//! out. No message holds a length, a place, a count or a word of the decoder's, and sheets are decoded row by row, in memory that the
//! declared shape alone bounds.
//!
//! **Damage.** A sheet that ends too early, or whose bytes are not those that were written, is refused as a whole and in constant words, wherever the
//! damage is. A writer makes a whole file of any pixels, so this is about the file and about no row of it. To empty the examples from there on would
//! be wrong: they are other people's.
//!
//! **The kind of pixels** is in the header, and a sheet of another kind is refused before a row is looked at. Programs that make PNG files smaller choose it by
//! the pixels (a sheet that is all grey becomes a grey one, one with few colours gets a palette): in their hands the header is about every
//! picture, and a refusal could tell of one. Give sheets as a writer of one fixed kind made them. Messages say what would pass, not what was found.
//!
//! **No rows.** PNG knows no sheets without rows, but the neighbour of a sheet with one row is one. A header that says so is believed.

use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use png::{Decoder, Limits, Reader, Transformations};

use super::binary::malformed;
use super::builder::{Builder, Raw};
use super::error::{DataError, Result};
use super::labels::Labels;
use super::open::{builder, file};
use super::{Declaration, Wanted};

const KIND: &str = "sheet";

/// What the decoder may reserve besides the file's own bytes: more than the longest row, which has at most 2^26 bytes. Does not grow with the rows.
const BYTES_MAX: usize = 1 << 29;

/// The eight bytes of every PNG file, and the first chunk's length and name.
const BEGINNING: &[u8; 16] = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR";

/// `path` is the folder of the sheets.
pub(super) fn read(declaration: &Declaration, path: &Path, labels: &Path) -> Result<Builder> {
    let Surveyed {
        sheets,
        shape,
        rows,
    } = survey(declaration, path)?;
    let unequal = || DataError::Unequal {
        features: path.into(),
        labels: labels.into(),
    };
    let mut answers = match declaration.wanted {
        Wanted::Labelled => Some(Labels::open(labels, rows)?.ok_or_else(unequal)?),
        Wanted::Features => None,
    };
    // A header may promise more rows than there are: memory is reserved for some of them only.
    let promised = usize::try_from(rows).unwrap_or(usize::MAX);
    let mut builder = builder(declaration, path, shape.clone(), 1.0 / 255.0, promised)?;
    let mut values = Vec::with_capacity(builder.width());
    for path in &sheets {
        caught(path, || {
            let Sheet { rows, pixels } = Sheet::open(path, &shape)?;
            let Some(mut pixels) = pixels else {
                return Ok(());
            };
            for _ in 0..rows {
                let row = pixels.next_row().ok().flatten();
                let bytes = row.map(|row| row.data()).unwrap_or_default();
                // A frame of an animation may be smaller than its header says.
                if bytes.len() != builder.width() {
                    return Err(broken(path));
                }
                values.clear();
                for channel in 0..shape[0] {
                    let plane = bytes[channel..].iter().step_by(shape[0]);
                    values.extend(plane.map(|byte| f64::from(*byte)));
                }
                let answer = match &mut answers {
                    Some(answers) => answers.next()?.ok_or_else(unequal)?,
                    None => 0.0,
                };
                builder.row(Ok(&values), Raw::Number(answer));
            }
            let is_last = matches!(pixels.next_row(), Ok(None));
            match pixels.finish() {
                Ok(()) if is_last => Ok(()),
                _ => Err(broken(path)),
            }
        })?;
    }
    // Sheets that changed since their headers were read.
    match answers.map(|mut answers| answers.next()).transpose()? {
        Some(Some(_)) => Err(unequal()),
        _ => Ok(builder),
    }
}

/// What becomes of a picture, by the headers of all sheets: reads no row.
pub(super) fn survey_builder(declaration: &Declaration, path: &Path) -> Result<Builder> {
    let shape = survey(declaration, path)?.shape;
    builder(declaration, path, shape, 1.0 / 255.0, 0)
}

/// What the headers of all sheets say.
struct Surveyed {
    sheets: Vec<PathBuf>,
    /// Of one picture, as declared.
    shape: Vec<usize>,
    /// Of all sheets, which is private.
    rows: u64,
}

fn survey(declaration: &Declaration, path: &Path) -> Result<Surveyed> {
    let sheets = declaration.parts(path);
    let shape = declaration.shape.clone().unwrap_or_default();
    let mut rows = 0;
    for path in &sheets {
        // Each is below 2^32, and no plan names 2^32 sheets.
        rows += caught(path, || Sheet::open(path, &shape))?.rows;
    }
    Ok(Surveyed {
        sheets,
        shape,
        rows,
    })
}

/// A sheet that stands before its first row.
struct Sheet {
    rows: u64,
    /// None if there are no rows.
    pixels: Option<Reader<BufReader<File>>>,
}

impl Sheet {
    fn open(path: &Path, shape: &[usize]) -> Result<Self> {
        let wrong = |what, passes| Err(malformed(path, KIND, what, passes));
        let mut bytes = BufReader::with_capacity(1 << 16, file(path)?);
        let mut header = [0; 29];
        let is_whole = bytes.read_exact(&mut header).is_ok();
        if !(is_whole && header.starts_with(BEGINNING)) {
            return wrong(
                "it does not begin as a PNG file",
                "give sheets as PNG files",
            );
        }
        let side = |at: usize| {
            u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let (width, rows) = (side(16), u64::from(side(20)));
        let [depth, colour, _, _, interlacing] = header[24..] else {
            return Err(broken(path));
        };
        if !matches!((depth, colour, shape), (8, 0, [1, ..]) | (8, 2, [3, ..])) {
            return Err(other_pixels(path, shape));
        }
        if interlacing != 0 {
            return wrong(
                "its rows are interlaced",
                "give a PNG file that is not interlaced",
            );
        }
        // The shape passed the check of the declaration, so the product is small.
        if width as usize != shape[1..].iter().product::<usize>() {
            return wrong(
                "it is not as wide as a picture has pixels",
                "give sheets whose rows are one picture each: as many pixels wide as the height times the width in `shape`",
            );
        }
        if rows == 0 {
            let pixels = None;
            return Ok(Self { rows, pixels });
        }
        bytes.rewind().map_err(|_| broken(path))?;
        let limits = Limits { bytes: BYTES_MAX };
        let mut decoder = Decoder::new_with_limits(bytes, limits);
        decoder.set_transformations(Transformations::IDENTITY);
        // Remarks and profiles say nothing about pixels.
        decoder.set_ignore_text_chunk(true);
        decoder.set_ignore_iccp_chunk(true);
        let pixels = decoder.read_info().map_err(|_| broken(path))?;
        // One colour may be declared to be transparent.
        if pixels.info().trns.is_some() {
            return Err(other_pixels(path, shape));
        }
        if pixels.info().animation_control.is_some() {
            return wrong("it is an animation", "give a PNG file of one frame");
        }
        let pixels = Some(pixels);
        Ok(Self { rows, pixels })
    }
}

fn other_pixels(path: &Path, shape: &[usize]) -> DataError {
    let (what, passes) = match shape {
        [1, ..] => (
            "its pixels are not grey of 8 bits",
            "give PNG files of grey pixels of 8 bits, without transparency, or declare 3 channels in `shape` for colours",
        ),
        _ => (
            "its pixels are not RGB of 8 bits",
            "give PNG files of RGB pixels of 8 bits per channel, without palette or transparency, or declare 1 channel in `shape` for grey",
        ),
    };
    malformed(path, KIND, what, passes)
}

fn broken(path: &Path) -> DataError {
    malformed(
        path,
        KIND,
        "it cannot be read to its end",
        "give the whole file as it was first written",
    )
}

/// A decoder that panics says no more than one that fails.
fn caught<T>(path: &Path, decode: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(decode)).unwrap_or_else(|_| Err(broken(path)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::Cursor;

    use image::{
        DynamicImage, GrayImage, ImageBuffer, ImageOutputFormat, Rgb, RgbImage, RgbaImage,
    };
    use tempfile::TempDir;
    use whit_core::Fault;

    use super::super::open::tests::{declare, folder, refusal, rows};
    use super::*;
    use crate::data::{Audience, load_private, load_public, survey};

    const PLAN: &str = "path = 'cifar'\nformat = 'sheets'\nsheets = ['1.png', '2.png']\nlabel = 'y.json'\n\
                        shape = [3, 1, 2]\nclasses = 3\nscale = 1";

    fn encode(picture: impl Into<DynamicImage>) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        let written = picture.into().write_to(&mut bytes, ImageOutputFormat::Png);
        written.expect("memory");
        bytes.into_inner()
    }

    /// Two pixels wide, one row for each list of six bytes.
    fn sheet(pictures: &[[u8; 6]]) -> Vec<u8> {
        let rows = u32::try_from(pictures.len()).expect("few");
        encode(RgbImage::from_raw(2, rows, pictures.concat()).expect("two pixels each"))
    }

    fn first() -> Vec<u8> {
        sheet(&[[1, 2, 3, 4, 5, 6], [10, 20, 30, 40, 50, 60]])
    }

    fn second() -> Vec<u8> {
        sheet(&[[255, 254, 253, 252, 251, 250]])
    }

    fn folder_of(one: &[u8], two: &[u8], labels: &[u8]) -> TempDir {
        folder(&[
            ("cifar/1.png", one),
            ("cifar/2.png", two),
            ("y.json", labels),
        ])
    }

    /// A PNG file with one more chunk before its pixels.
    fn with_chunk(png: &[u8], name: &[u8; 4], body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len()).expect("small").to_be_bytes();
        let named = [name, body].concat();
        let mut sum = flate2::Crc::new();
        sum.update(&named);
        let (header, rest) = png.split_at(33);
        [header, &length, &named, &sum.sum().to_be_bytes(), rest].concat()
    }

    #[test]
    fn rows_of_all_sheets_are_pictures_with_their_channels_first() {
        let folder = folder_of(&first(), &second(), b"[2, 0, 1]");
        let expected = [
            Some((vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0], 2.0)),
            Some((vec![10.0, 40.0, 20.0, 50.0, 30.0, 60.0], 0.0)),
            Some((vec![255.0, 252.0, 254.0, 251.0, 253.0, 250.0], 1.0)),
        ];
        assert_eq!(rows(PLAN, &folder), expected);
        let turned = PLAN.replace("['1.png', '2.png']", "['2.png', '1.png']");
        let found = rows(&turned, &folder);
        assert_eq!(found[0].as_ref().map(|row| row.1), Some(2.0));
        assert_eq!(found[0].as_ref().map(|row| row.0[0]), Some(255.0));
        let data = load_public(&declare(PLAN), folder.path()).expect("fits");
        assert_eq!((data.classes(), data.shape()), (Some(3), &[3, 1, 2][..]));
        let shades = rows(&PLAN.replace("\nscale = 1", ""), &folder);
        assert_eq!(shades[2].as_ref().map(|row| row.0[0]), Some(1.0));
        let named = PLAN.replace("classes = 3", "classes = ['a', 'b', 'c']\nmean = [1, 2, 3]");
        let zero = vec![0.0, 3.0, 0.0, 3.0, 0.0, 3.0];
        assert_eq!(rows(&named, &folder)[0], Some((zero, 2.0)));
        assert_eq!(survey(&declare(PLAN), folder.path()), Ok(vec![3, 1, 2]));
    }

    #[test]
    fn grey_sheets_have_one_channel() {
        let grey = encode(GrayImage::from_raw(4, 2, (1..=8).collect()).expect("two rows"));
        let folder = folder(&[("cifar/1.png", &grey), ("y.json", b"[1,0]")]);
        let plan = PLAN.replace(", '2.png'", "").replace("3, 1, 2", "1, 2, 2");
        let expected = [
            Some((vec![1.0, 2.0, 3.0, 4.0], 1.0)),
            Some((vec![5.0, 6.0, 7.0, 8.0], 0.0)),
        ];
        assert_eq!(rows(&plan, &folder), expected);
    }

    #[test]
    fn labels_may_be_an_idx_file() {
        let idx = |count: u8| [&[0, 0, 8, 1, 0, 0, 0, count][..], &vec![2; count.into()]].concat();
        let files: [(&str, &[u8]); 5] = [
            ("cifar/1.png", &first()),
            ("cifar/2.png", &second()),
            ("y-ubyte", &idx(3)),
            ("more-ubyte", &idx(4)),
            ("pairs-ubyte", &[0, 0, 8, 2, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0]),
        ];
        let folder = folder(&files);
        let plan = PLAN.replace("y.json", "y-ubyte");
        assert_eq!(rows(&plan, &folder).iter().flatten().count(), 3);
        let (code, _) = refusal(&plan.replace("y-", "more-"), &folder);
        assert_eq!(code, "data_unequal");
        let (code, text) = refusal(&plan.replace("y-", "pairs-"), &folder);
        assert_eq!(code, "data_malformed");
        assert!(text.contains("more than one label"), "{text}");
    }

    #[test]
    fn labels_out_of_range_are_empty_examples() {
        let folder = folder_of(&first(), &second(), b"[2, 3, \"cat\"]");
        let kept: Vec<_> = rows(PLAN, &folder).iter().map(Option::is_some).collect();
        assert_eq!(kept, [true, false, false]);
        let named = PLAN.replace("classes = 3", "classes = ['a', 'b', 'c']");
        for plan in [PLAN, &named] {
            let error = load_private(&declare(plan), folder.path(), Audience::Owner)
                .err()
                .expect("a label of 3");
            assert_eq!(error.code(), "row_label_out_of_range");
            let passes = error.suggestion();
            assert!(passes.contains("whole numbers from 0 to 2"), "{passes}");
        }
    }

    #[test]
    fn sheets_and_labels_must_be_equally_many() {
        for labels in ["[0,0]", "[0,0,0,0]", "[]"] {
            let folder = folder_of(&first(), &second(), labels.as_bytes());
            let (code, text) = refusal(PLAN, &folder);
            assert_eq!(code, "data_unequal", "{labels}");
            let rest = text.replace(&folder.path().display().to_string(), "");
            assert!(
                !rest.contains(|letter: char| letter.is_ascii_digit()),
                "{rest}"
            );
        }
        let folder = folder_of(&first(), &second(), b"{}");
        assert_eq!(refusal(PLAN, &folder).0, "data_malformed");
    }

    /// Whoever is the only one in a sheet can be taken out of it.
    #[test]
    fn a_sheet_without_rows_is_one() {
        let mut none = second();
        none[20..24].fill(0);
        let folder = folder_of(&first(), &none, b"[0, 1]");
        assert_eq!(rows(PLAN, &folder).len(), 2);
        let folder = folder_of(&none, &none, b"[]");
        assert_eq!(rows(PLAN, &folder).len(), 0);
    }

    #[test]
    fn other_files_are_refused_by_their_headers() {
        let patched = |at: usize, byte: u8| {
            let mut bytes = first();
            bytes[at] = byte;
            bytes
        };
        let deep = ImageBuffer::<Rgb<u16>, _>::from_raw(2, 1, vec![7; 6]).expect("two pixels");
        let cases: [(&str, Vec<u8>, &str, &str); 12] = [
            ("text", b"6,9,4".to_vec(), "begin as a PNG", "PNG files"),
            (
                "short",
                first()[..28].to_vec(),
                "begin as a PNG",
                "PNG files",
            ),
            ("jpeg", jpeg(), "begin as a PNG", "PNG files"),
            (
                "grey",
                encode(GrayImage::new(2, 1)),
                "not RGB of 8 bits",
                "RGB pixels",
            ),
            (
                "alpha",
                encode(RgbaImage::new(2, 1)),
                "not RGB of 8 bits",
                "transparency",
            ),
            ("16 bits", encode(deep), "not RGB of 8 bits", "8 bits"),
            ("palette", patched(25, 3), "not RGB of 8 bits", "palette"),
            (
                "transparent",
                with_chunk(&first(), b"tRNS", &[0; 6]),
                "not RGB of 8 bits",
                "transparency",
            ),
            ("interlaced", patched(28, 1), "interlaced", "not interlaced"),
            (
                "wide",
                encode(RgbImage::new(3, 2)),
                "as wide as",
                "height times the width",
            ),
            (
                "narrow",
                encode(RgbImage::new(1, 2)),
                "as wide as",
                "height times the width",
            ),
            (
                "frames",
                with_chunk(&first(), b"acTL", &[0, 0, 0, 1, 0, 0, 0, 0]),
                "animation",
                "one frame",
            ),
        ];
        for (name, bytes, what, passes) in cases {
            // No labels are looked for, and no row of the first sheet.
            let folder = folder(&[("cifar/1.png", &first()), ("cifar/2.png", &bytes)]);
            let (code, text) = refusal(PLAN, &folder);
            assert_eq!(code, "data_malformed", "{name}");
            assert!(
                text.contains(what) && text.contains(passes),
                "{name}: {text}"
            );
            let refused = survey(&declare(PLAN), folder.path());
            assert_eq!(
                refused.err().map(|error| error.code()),
                Some(code),
                "{name}"
            );
        }
        let colours = PLAN.replace("3, 1, 2", "1, 1, 2");
        let folder = folder(&[("cifar/1.png", &first()), ("cifar/2.png", &second())]);
        let (_, text) = refusal(&colours, &folder);
        assert!(text.contains("not grey of 8 bits"), "{text}");
        assert_eq!(refusal(PLAN, &folder).0, "data_unreadable", "no labels");
        let (code, text) = refusal(&PLAN.replace("2.png", "3.png"), &folder);
        assert_eq!(code, "data_unreadable");
        assert!(text.contains("3.png"), "{text}");
    }

    fn jpeg() -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        let picture = DynamicImage::from(RgbImage::new(2, 1));
        let written = picture.write_to(&mut bytes, ImageOutputFormat::Jpeg(95));
        written.expect("memory");
        bytes.into_inner()
    }

    /// Where a file ends, or is damaged, depends on all rows before.
    #[test]
    fn damage_is_refused_in_the_same_words_wherever_it_is() {
        let pictures: Vec<_> = (0..40_u8).map(|row| [row.wrapping_mul(37); 6]).collect();
        let whole = sheet(&pictures);
        let labels = format!("[{}]", vec!["1"; 40].join(","));
        let plan = PLAN.replace(", '2.png'", "");
        let dir = folder(&[("cifar/1.png", &whole), ("y.json", labels.as_bytes())]);
        let path = dir.path().join("cifar").join("1.png");
        assert_eq!(rows(&plan, &dir).iter().flatten().count(), 40);
        let mut words = BTreeSet::new();
        for end in 29..whole.len() {
            rewrite(&path, &whole[..end]);
            words.insert(refusal(&plan, &dir).1);
        }
        for at in 29..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            rewrite(&path, &bytes);
            words.insert(refusal(&plan, &dir).1);
        }
        assert_eq!(words.len(), 1, "{words:?}");
        let text = words.first().expect("one");
        assert!(text.contains("cannot be read to its end"), "{text}");
    }

    #[expect(clippy::disallowed_methods, reason = "files of the tests' own")]
    fn rewrite(path: &Path, bytes: &[u8]) {
        std::fs::write(path, bytes).expect("writable");
    }

    #[test]
    fn a_decoder_that_panics_has_failed() {
        let path = Path::new("1.png");
        let caught = caught(path, || -> Result<()> { panic!("of the test's own") });
        assert_eq!(caught, Err(broken(path)));
    }

    /// A header may promise any number of rows.
    #[test]
    fn rows_beyond_all_numbers_take_no_memory() {
        let mut tall = first();
        tall[20..24].fill(0x7f);
        let mut sum = flate2::Crc::new();
        sum.update(&tall[12..29]);
        tall[29..33].copy_from_slice(&sum.sum().to_be_bytes());
        let folder = folder_of(&tall, &second(), b"[0]");
        assert_eq!(refusal(PLAN, &folder).0, "data_unequal");
    }

    /// A sheet that is read twice would make two examples of everybody in it.
    #[cfg(unix)]
    #[test]
    fn a_sheet_is_read_once_by_whatever_names() {
        for is_hard in [true, false] {
            let folder = folder(&[("cifar/1.png", &first()), ("y.json", b"[2, 0, 2, 0]")]);
            let [one, two] = ["1.png", "2.png"].map(|name| folder.path().join("cifar").join(name));
            let linked = match is_hard {
                true => std::fs::hard_link(one, two),
                false => std::os::unix::fs::symlink(one, two),
            };
            linked.expect("writable");
            let (code, text) = refusal(PLAN, &folder);
            assert_eq!(code, "data_same_file", "{is_hard}");
            assert!(text.contains("sheets"), "{text}");
            let refused = survey(&declare(PLAN), folder.path());
            assert_eq!(refused.err().map(|error| error.code()), Some(code));
        }
    }

    /// Whatever one person's label is, nobody else's row tells.
    #[test]
    fn labels_with_commas_are_labels_of_one_row() {
        for label in ["\"cat, dog\"", "[1, 2]", "{\"a\": 1, \"b\": [2, 3]}"] {
            let labels = format!("[2, 0, {label}]");
            let folder = folder_of(&first(), &second(), labels.as_bytes());
            let kept: Vec<_> = rows(PLAN, &folder).iter().map(Option::is_some).collect();
            assert_eq!(kept, [true, true, false], "{label}");
        }
    }

    /// A header promises many rows, and there are as many labels, packed into little, but only two rows: labels are read as far as those.
    #[test]
    fn labels_are_read_as_far_as_there_are_rows() {
        let mut tall = first();
        let promised = 3_000_000_u32;
        tall[20..24].copy_from_slice(&promised.to_be_bytes());
        let mut sum = flate2::Crc::new();
        sum.update(&tall[12..29]);
        tall[29..33].copy_from_slice(&sum.sum().to_be_bytes());
        let packed = |head: &[u8], one: &[u8], last: &[u8]| {
            let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            let all = [head, &one.repeat(promised as usize - 1), last].concat();
            std::io::Write::write_all(&mut packed, &all).expect("memory");
            packed.finish().expect("memory")
        };
        let json = packed(b"[", b"0,", b"0]");
        let side = promised.to_be_bytes();
        let idx = packed(&[&[0, 0, 8, 1][..], &side].concat(), &[0], &[0]);
        let files: [(&str, &[u8]); 3] = [
            ("cifar/1.png", &tall),
            ("y.json.gz", &json),
            ("y.idx.gz", &idx),
        ];
        let folder = folder(&files);
        let bare = PLAN.replace(", '2.png'", "");
        for labels in ["y.json.gz", "y.idx.gz"] {
            let plan = declare(&bare.replace("y.json", labels));
            let path = folder.path().join("cifar");
            let labels = folder.path().join(labels);
            let mut found = Labels::open(&labels, promised.into())
                .expect("a list")
                .expect("as many");
            assert_eq!(found.next(), Ok(Some(0.0)));
            let held = match &found {
                Labels::List(list) => list.held(),
                Labels::Idx(_) => 0,
            };
            assert!(held < 16, "{held} bytes");
            assert_eq!(
                read(&plan, &path, &labels).err(),
                Some(broken(&path.join("1.png")))
            );
        }
    }
}
