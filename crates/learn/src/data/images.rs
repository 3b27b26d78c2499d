//! A folder of folders of pictures, one folder for each class: PNG or JPEG, 8 bits, of one declared size.
//!
//! The classes are those that the plan names, and other folders are not looked at: a folder that is there for one person's pictures alone
//! would tell of that person, by its name and by the model's shape. Files are read in order of their names, which no sampler may depend on.
//! Files whose names begin with a dot are no pictures. Where no classes are wanted, for predictions, it is a folder of pictures, or one picture.
//!
//! **A file with several names.** Links of either kind may put one file into a folder twice, or into two folders. It is no row then, by any of its names.
//! So neighbours differ in one row at most, whether whoever is added or taken away is a file with all its names, or one name that no other link goes through: a file that gets a
//! second name is one row less, one that gets a third is none before and after, and nobody else's row is another. (Were the first name a row, to take that one away would make the second one a
//! row, of another class perhaps; were they empty rows, one file would be several.) The owner is told of it. Copies are other files.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufReader, Seek};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use image::io::{Limits, Reader};
use image::{DynamicImage, ImageFormat};

use super::builder::{Builder, Raw, RowFault};
use super::error::{DataError, Result};
use super::identity::Identity;
use super::open::{builder, file, unreadable};
use super::{Classes, Declaration, Wanted};

/// Beyond this a picture is not decoded: it could not be of any size that a plan can declare.
const BYTES_MAX: u64 = 1 << 29;

pub(super) fn read(declaration: &Declaration, path: &Path) -> Result<Builder> {
    let shape = declaration.shape.clone().unwrap_or_default();
    let mut builder = builder(declaration, path, shape.clone(), 1.0 / 255.0, 0)?;
    let mut values = Vec::with_capacity(builder.width());
    let listed = listed(declaration, path)?;
    let mut names = BTreeMap::new();
    for identity in listed
        .iter()
        .filter_map(|(_, _, identity)| identity.as_ref())
    {
        *names.entry(identity).or_insert(0_u64) += 1;
    }
    for (label, picture, identity) in &listed {
        // What leads nowhere has no second name.
        let count = identity.as_ref().and_then(|identity| names.get(identity));
        if count.is_some_and(|names| *names > 1) {
            builder.no_row(RowFault::SeveralNames);
            continue;
        }
        // A decoder that panics would tell that there is a picture which makes it.
        let decoded = catch_unwind(AssertUnwindSafe(|| decode(picture, &shape, &mut values)))
            .unwrap_or(Err(RowFault::NoPicture))
            .map(|()| &values[..]);
        builder.row(decoded, *label);
    }
    Ok(builder)
}

/// A picture: its label, where it is, and which file it is.
type Listed<'a> = (Raw<'a>, PathBuf, Option<Identity>);

/// The files of pictures that are rows, by their names in the folder `path`, or the one that it is. They are the caller's own, or public.
pub(super) fn names(declaration: &Declaration, path: &Path) -> Result<Vec<String>> {
    let listed = listed(declaration, path)?.into_iter();
    let name = |(_, picture, _): Listed<'_>| {
        let within = picture.strip_prefix(path).ok();
        let within = within.filter(|within| !within.as_os_str().is_empty());
        let own = || picture.file_name().map(Path::new).unwrap_or(&picture);
        within.unwrap_or_else(own).to_string_lossy().into_owned()
    };
    Ok(listed.map(name).collect())
}

fn listed<'a>(declaration: &'a Declaration, path: &Path) -> Result<Vec<Listed<'a>>> {
    match declaration.wanted {
        Wanted::Labelled => of_classes(declaration, path),
        Wanted::Features => of_no_class(path),
    }
}

/// The pictures of all declared classes.
fn of_classes<'a>(declaration: &'a Declaration, path: &Path) -> Result<Vec<Listed<'a>>> {
    let classes = declaration.classes.as_ref().and_then(Classes::names);
    let mut listed = Vec::new();
    for class in classes.unwrap_or_default() {
        let folder = path.join(class);
        if !folder.is_dir() {
            return Err(DataError::ClassFolder {
                path: path.into(),
                class: class.clone(),
            });
        }
        for picture in entries(&folder)? {
            let identity = Identity::of(&picture);
            listed.push((Raw::Text(class), picture, identity));
        }
    }
    Ok(listed)
}

/// The pictures of a folder, or the one that is named: their label is not looked at.
fn of_no_class(path: &Path) -> Result<Vec<Listed<'static>>> {
    let pictures = match path.is_dir() {
        true => entries(path)?,
        false => vec![path.into()],
    };
    let listed = pictures.into_iter().map(|picture| {
        let identity = Identity::of(&picture);
        (Raw::Number(0.0), picture, identity)
    });
    Ok(listed.collect())
}

/// What is in a folder, in order of names.
pub(super) fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let listed = fs::read_dir(folder).map_err(|error| unreadable(folder, &error))?;
    let mut entries = Vec::new();
    for entry in listed {
        let entry = entry.map_err(|error| unreadable(folder, &error))?;
        if !entry.file_name().as_encoded_bytes().starts_with(b".") {
            entries.push(entry.path());
        }
    }
    entries.sort_unstable();
    Ok(entries)
}

/// The picture's bytes, one channel after the other. Whatever is wrong is the row's own affair.
fn decode(
    path: &Path,
    shape: &[usize],
    values: &mut Vec<f64>,
) -> std::result::Result<(), RowFault> {
    let [channels, height, width] = *shape else {
        return Err(RowFault::PictureSize);
    };
    let size = open(path)?.into_dimensions();
    let size = size.map_err(|_| RowFault::NoPicture)?;
    if (size.0 as usize, size.1 as usize) != (width, height) {
        return Err(RowFault::PictureSize);
    }
    let mut reader = open(path)?;
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(BYTES_MAX);
    reader.limits(limits);
    let picture = reader.decode().map_err(|_| RowFault::NoPicture)?;
    let bytes = match (channels, picture) {
        (1, DynamicImage::ImageLuma8(picture)) => picture.into_raw(),
        (1, picture) => picture.into_luma8().into_raw(),
        (_, picture) => picture.into_rgb8().into_raw(),
    };
    values.clear();
    for channel in 0..channels {
        let plane = bytes[channel..].iter().step_by(channels);
        values.extend(plane.map(|byte| f64::from(*byte)));
    }
    Ok(())
}

/// The kind of picture is told by its first bytes, not by its name.
fn open(path: &Path) -> std::result::Result<Reader<BufReader<fs::File>>, RowFault> {
    // A pipe among the pictures would be waited for.
    if !path.is_file() {
        return Err(RowFault::NoPicture);
    }
    let mut bytes = BufReader::new(file(path).map_err(|_| RowFault::NoPicture)?);
    bytes.rewind().map_err(|_| RowFault::NoPicture)?;
    let reader = Reader::new(bytes)
        .with_guessed_format()
        .map_err(|_| RowFault::NoPicture)?;
    match reader.format() {
        Some(ImageFormat::Png | ImageFormat::Jpeg) => Ok(reader),
        _ => Err(RowFault::NoPicture),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use image::{GrayImage, ImageOutputFormat, RgbImage};

    use super::super::open::tests::{declare, folder, refusal, rows};
    use super::*;
    use crate::data::{Audience, load_private, load_public};
    use whit_core::Fault;

    const BARE: &str = "path = '.'\nformat = 'images'\nshape = [3, 1, 2]\nscale = 1";
    const PLAN: &str =
        "path = '.'\nformat = 'images'\nshape = [3, 1, 2]\nscale = 1\nclasses = ['cat', 'dog']";

    fn encode(picture: DynamicImage, format: ImageOutputFormat) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        picture.write_to(&mut bytes, format).expect("memory");
        bytes.into_inner()
    }

    /// Two pixels wide, one high.
    fn colours() -> Vec<u8> {
        let picture = RgbImage::from_raw(2, 1, vec![1, 2, 3, 4, 5, 6]).expect("two pixels");
        encode(picture.into(), ImageOutputFormat::Png)
    }

    fn grey(width: u32, height: u32) -> Vec<u8> {
        let picture = GrayImage::from_pixel(width, height, image::Luma([128]));
        encode(picture.into(), ImageOutputFormat::Jpeg(95))
    }

    #[test]
    fn pictures_have_their_channels_first_and_the_class_of_their_folder() {
        let files: [(&str, &[u8]); 4] = [
            ("dog/b.png", &colours()),
            ("dog/a.jpg", &grey(2, 1)),
            ("cat/1.png", &colours()),
            ("cat/.hidden", b"no picture"),
        ];
        let folder = folder(&files);
        let coloured = vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0];
        let found = rows(PLAN, &folder);
        assert_eq!(found.len(), 3);
        assert_eq!(found[0], Some((coloured.clone(), 0.0)));
        assert_eq!(found[1], Some((vec![128.0; 6], 1.0)));
        assert_eq!(found[2], Some((coloured, 1.0)));
        let data = load_public(&declare(PLAN), folder.path()).expect("fits");
        assert_eq!((data.classes(), data.shape()), (Some(2), &[3, 1, 2][..]));
        let one = rows(&PLAN.replace('3', "1"), &folder);
        assert_eq!(one[1], Some((vec![128.0; 2], 1.0)));
    }

    #[test]
    fn pictures_without_classes_lie_in_one_folder_or_are_one() {
        let files: [(&str, &[u8]); 2] = [("new/b.png", &colours()), ("new/a.jpg", &grey(2, 1))];
        let folder = folder(&files);
        let features = |path: &str| {
            let mut declared = declare(&PLAN.replace("'.'", &format!("'{path}'")));
            declared.wanted = Wanted::Features;
            let data = load_public(&declared, folder.path()).expect("fits");
            let row = |row| data.example(row).map(|example| example.features[0]);
            let names = names(&declared, &folder.path().join(path)).expect("there");
            (
                (0..data.rows()).map(row).collect::<Vec<_>>(),
                names.join(" "),
            )
        };
        let both = vec![Some(128.0), Some(1.0)];
        assert_eq!(features("new"), (both, "a.jpg b.png".into()));
        assert_eq!(features("new/b.png"), (vec![Some(1.0)], "b.png".into()));
    }

    #[test]
    fn other_sizes_and_other_files_are_empty_examples_and_the_owner_learns_the_size_that_passes() {
        let files: [(&str, &[u8]); 4] = [
            ("cat/a.png", &colours()),
            ("cat/b.jpg", &grey(1, 2)),
            ("dog/c.txt", b"not a picture"),
            ("dog/d.png", &colours()[..40]),
        ];
        let folder = folder(&files);
        let kept: Vec<_> = rows(PLAN, &folder).iter().map(Option::is_some).collect();
        assert_eq!(kept, [true, false, false, false]);
        let error = load_private(&declare(PLAN), folder.path(), Audience::Owner)
            .err()
            .expect("sizes differ");
        assert_eq!(error.code(), "row_picture_size");
        let passes = error.suggestion();
        assert!(passes.contains("2 pixels wide and 1 high"), "{passes}");
    }

    #[cfg(unix)]
    #[test]
    fn pipes_and_links_to_nothing_are_empty_examples() {
        let files: [(&str, &[u8]); 2] = [("cat/a.png", &colours()), ("dog/a.png", &colours())];
        let folder = folder(&files);
        let pipe = folder.path().join("dog").join("pipe.png");
        let made = std::process::Command::new("mkfifo").arg(pipe).status();
        assert!(made.expect("runs").success());
        let link = folder.path().join("dog").join("z.png");
        std::os::unix::fs::symlink("nowhere.png", link).expect("writable");
        let kept: Vec<_> = rows(PLAN, &folder).iter().map(Option::is_some).collect();
        assert_eq!(kept, [true, true, false, false]);
    }

    /// One person's picture in a folder of its own would change the model's shape.
    #[test]
    fn folders_of_private_pictures_are_never_taken_for_classes() {
        let files: [(&str, &[u8]); 3] = [
            ("cat/a.png", &colours()),
            ("dog/a.png", &colours()),
            ("ann/a.png", &colours()),
        ];
        let without = refusal(BARE, &folder(&files[..2]));
        let with = refusal(BARE, &folder(&files));
        assert_eq!(without, with, "refused before a folder is looked into");
        assert_eq!(with.0, "data_field_missing");
        assert!(
            with.1.contains("classes = [\"cat\", \"dog\"]"),
            "{}",
            with.1
        );
        let found = load_private(&declare(PLAN), folder(&files).path(), Audience::Owner);
        assert_eq!(found.expect("two classes").expose().classes(), Some(2));
    }

    #[test]
    fn declared_classes_are_looked_at_and_no_others() {
        let files: [(&str, &[u8]); 3] = [
            ("cat/a.png", &colours()),
            ("dog/a.png", &colours()),
            ("owl/a.png", &colours()),
        ];
        let folder = folder(&files);
        let found = rows(&format!("{BARE}\nclasses = ['owl', 'cat']"), &folder);
        let classes: Vec<_> = found.iter().flatten().map(|(_, class)| *class).collect();
        assert_eq!(classes, [0.0, 1.0]);
        let (code, text) = refusal(&format!("{BARE}\nclasses = ['owl', 'cow']"), &folder);
        assert_eq!(code, "data_class_folder");
        assert!(text.contains("cow"), "{text}");
        let (code, _) = refusal(&PLAN.replace("'.'", "'cat'"), &folder);
        assert_eq!(code, "data_class_folder", "no folders in it");
    }

    /// A class that is looked into twice would make two examples of everybody in it.
    #[test]
    fn a_class_is_the_name_of_one_folder_and_given_once() {
        let files: [(&str, &[u8]); 3] = [
            ("cat/a.png", &colours()),
            ("dog/a.png", &colours()),
            ("p/cat/a.png", &colours()),
        ];
        let folder = folder(&files);
        for classes in [
            "['cat', './cat', 'dog']",
            "['cat', 'dog/../cat']",
            "['cat', 'Cat']",
            "['cat', 'cat/']",
            "['cat', 'p/cat']",
            "['cat', 'p\\cat']",
            "['cat', '.']",
            "['cat', '..']",
            "['cat', '/dog']",
        ] {
            let (code, text) = refusal(&format!("{BARE}\nclasses = {classes}"), &folder);
            assert_eq!(code, "data_field_domain", "{classes}");
            assert!(text.contains("names of folders"), "{classes}: {text}");
        }
        let twins = format!("{BARE}\nclasses = ['cat', 'dog', 'p']");
        assert_eq!(rows(&twins, &folder).len(), 3);
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_is_one_class_by_whatever_names() {
        let files: [(&str, &[u8]); 2] = [("cat/a.png", &colours()), ("cat/b.png", &colours())];
        let folder = folder(&files);
        let link = folder.path().join("dog");
        std::os::unix::fs::symlink("cat", link).expect("writable");
        let (code, text) = refusal(PLAN, &folder);
        assert_eq!(code, "data_same_file");
        assert!(text.contains("classes"), "{text}");
        let surveyed = crate::data::survey(&declare(PLAN), folder.path());
        assert_eq!(surveyed.err().map(|error| error.code()), Some(code));
    }

    /// Whether a file or one of its names is added or taken away, at most one row is.
    #[cfg(unix)]
    #[test]
    fn a_file_with_several_names_is_no_row() {
        let files: [(&str, &[u8]); 3] = [
            ("cat/a.png", &colours()),
            ("dog/a.png", &grey(2, 1)),
            ("dog/c.png", b"no picture"),
        ];
        let folder = folder(&files);
        let place = |name: &str| folder.path().join(name);
        let before = rows(PLAN, &folder);
        assert_eq!(before.len(), 3);
        std::fs::hard_link(place("cat/a.png"), place("dog/b.png")).expect("writable");
        assert_eq!(rows(PLAN, &folder), before[1..], "one row less");
        std::os::unix::fs::symlink("a.png", place("cat/b.png")).expect("writable");
        assert_eq!(rows(PLAN, &folder), before[1..], "none less");
        let error = load_private(&declare(PLAN), folder.path(), Audience::Owner);
        let error = error.err().expect("told to the owner");
        assert_eq!(error.code(), "row_several_names");
        assert!(error.suggestion().contains("without links"));
        // The file, whatever its names.
        for name in ["cat/a.png", "cat/b.png", "dog/b.png"] {
            std::fs::remove_file(place(name)).expect("there");
        }
        assert_eq!(rows(PLAN, &folder), before[1..]);
        // What is nowhere is nobody's second name.
        for name in ["cat/x.png", "cat/y.png"] {
            std::os::unix::fs::symlink("nowhere", place(name)).expect("writable");
        }
        let kept: Vec<_> = rows(PLAN, &folder).iter().map(Option::is_some).collect();
        assert_eq!(kept, [false, false, true, false]);
    }
}
