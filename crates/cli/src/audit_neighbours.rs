//! The two files of an audit, and the copy of one of them that each run gets.
//!
//! Two files differ in their names, folders and times as well, which are nobody's record, and no run sees these. Each gets a copy of its own, in a folder of its own; the file has the same name
//! in every run, and the folder a name that is drawn anew, so that neither tells which file it is. What a run does to its copy, or leaves beside it, no other run finds.
//!
//! All of these folders lie in one, for nobody else to read, which is removed in the end, also by a signal that is heard.

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use whit::Failure;
use whit::core::Bits;

use crate::audit_runner::coins;
use crate::audit_stop;

/// What every copy is called, but for its ending.
const NAME: &str = "data";
/// A longer word after a dot is no ending.
const ENDING_MAX: usize = 16;

/// Two files that differ, and the folder in which their copies are.
pub(crate) struct Neighbours {
    files: [PathBuf; 2],
    name: String,
    folder: PathBuf,
}

/// A copy for one run, which goes with it.
pub(crate) struct Copy {
    folder: PathBuf,
    /// What the run reads.
    pub(crate) file: PathBuf,
    /// What was drawn for its folder.
    pub(crate) word: String,
}

impl Drop for Copy {
    fn drop(&mut self) {
        // What cannot be removed now, because somebody still writes there, goes with all the others.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        audit_stop::remove_folder();
    }
}

impl Neighbours {
    pub(crate) fn new(files: [&Path; 2]) -> Result<Self, Failure> {
        for file in files {
            check_file(file)?;
        }
        if equal(files)? {
            return Err(Failure::invalid(
                "neighbours_equal",
                "the two files are the same, byte for byte, so that no program can tell them apart",
                "name two files that differ in one record",
            ));
        }
        let name = name(files)?;
        let folder = std::env::temp_dir().join(format!("whit-audit-{}", word()?));
        audit_stop::make_folder(&folder).map_err(|error| no_room(&folder, &error))?;
        Ok(Self {
            files: files.map(Path::to_owned),
            name,
            folder,
        })
    }

    /// A copy of the file of one world.
    pub(crate) fn copy(&self, world: usize) -> Result<Copy, Failure> {
        let word = word()?;
        let folder = self.folder.join(&word);
        let file = folder.join(&self.name);
        let copied = fs::create_dir(&folder).and_then(|()| copy(&self.files[world], &file));
        let copy = Copy { folder, file, word };
        copied.map_err(|error| {
            // The folder may have gone because somebody stops us, and that is not to be called an error.
            audit_stop::pass();
            no_room(&copy.folder, &error)
        })?;
        Ok(copy)
    }
}

fn check_file(file: &Path) -> Result<(), Failure> {
    if file.is_file() {
        return Ok(());
    }
    let reason = format!("{} is no file", file.display());
    Err(Failure::invalid(
        "file_missing",
        &reason,
        "name two files that are there and differ in one record",
    ))
}

/// The name of all copies. Programs look at how a name ends to know what is in a file, so that copies end as both files do; if these end differently, no name is right for both.
fn name(files: [&Path; 2]) -> Result<String, Failure> {
    let [one, other] = files.map(endings);
    let common = one
        .iter()
        .zip(&other)
        .take_while(|(one, other)| one == other);
    let mut name = NAME.to_owned();
    for (ending, _) in common.collect::<Vec<_>>().into_iter().rev() {
        name.push('.');
        name += ending;
    }
    if one.first() == other.first() {
        return Ok(name);
    }
    Err(Failure::invalid(
        "endings_differ",
        "the names of the two files end differently, by which a program would know them",
        "give both names the same ending, such as .csv",
    ))
}

/// The words after dots at the end of a name, the last first: `gz` and `csv` of `visits.csv.gz`. A word with a blank, or a number, says nothing of what is in a file.
fn endings(file: &Path) -> Vec<String> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let is_ending = |word: &&str| {
        word.len() <= ENDING_MAX
            && word.chars().all(|c| c.is_ascii_alphanumeric())
            && word.chars().any(|c| c.is_ascii_alphabetic())
    };
    let words: Vec<&str> = name.split('.').skip(1).collect();
    let endings = words.into_iter().rev().take_while(is_ending);
    endings.map(str::to_owned).collect()
}

#[expect(clippy::disallowed_methods, reason = "a door opens files")]
fn open(file: &Path) -> io::Result<fs::File> {
    fs::File::open(file)
}

/// Do both files have the same bytes?
fn equal(files: [&Path; 2]) -> Result<bool, Failure> {
    let unreadable = |file: &Path, error: &io::Error| {
        let reason = format!("{} cannot be read: {error}", file.display());
        Failure::invalid(
            "file_unreadable",
            &reason,
            "name two files that you may read",
        )
    };
    let open = |file: &Path| match open(file) {
        Ok(opened) => Ok(BufReader::new(opened)),
        Err(error) => Err(unreadable(file, &error)),
    };
    let (mut one, mut other) = (open(files[0])?, open(files[1])?);
    loop {
        let (left, right) = (
            one.fill_buf()
                .map_err(|error| unreadable(files[0], &error))?,
            other
                .fill_buf()
                .map_err(|error| unreadable(files[1], &error))?,
        );
        let both = left.len().min(right.len());
        if left[..both] != right[..both] {
            return Ok(false);
        }
        if both == 0 {
            return Ok(left.len() == right.len());
        }
        one.consume(both);
        other.consume(both);
    }
}

/// With none of what the file has beside its bytes: its owner may read and write every copy.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    #[expect(clippy::disallowed_methods, reason = "a door writes files")]
    let mut to = options.open(to)?;
    io::copy(&mut open(from)?, &mut to)?;
    Ok(())
}

fn no_room(folder: &Path, error: &io::Error) -> Failure {
    let reason = format!("a file cannot be copied to {}: {error}", folder.display());
    Failure::invalid(
        "no_copy",
        &reason,
        "make room there for a copy for each run at a time, or name another folder in TMPDIR",
    )
}

/// A word that nobody guesses, and that is in no file.
fn word() -> Result<String, Failure> {
    let mut bits = coins()?;
    Ok(format!("{:016x}{:016x}", bits.word(), bits.word()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_end_as_both_files_do() {
        let name_of = |one: &str, other: &str| name([Path::new(one), Path::new(other)]).ok();
        for (one, other, expected) in [
            ("with.csv", "a/without.csv", Some("data.csv")),
            ("with.csv.gz", "without.csv.gz", Some("data.csv.gz")),
            ("visits.2024.csv", "visits.2025.csv", Some("data.csv")),
            ("x.in.csv", "x.out.csv", Some("data.csv")),
            ("yes", "no", Some("data")),
            ("v1.5 of it", "v1.6 of it", Some("data")),
            ("with.csv", "without.txt", None),
            ("with.csv", "without", None),
        ] {
            assert_eq!(name_of(one, other).as_deref(), expected, "{one} {other}");
        }
    }
}
