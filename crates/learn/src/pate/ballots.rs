//! # Votes of teachers that wait on the owner's disk
//! An ensemble takes long to train, and may be stopped. So each teacher's votes are kept in a folder of the owner's as soon as there are any, and the same command goes on with the teachers that are missing. **They are private**, and say so
//! in their first line: whoever reads them sees what no noise hides. On Unix nobody but the owner of the file may, from the moment that there is one. Once labels are kept nothing needs them, and [`Afterwards`] says what becomes of them.
//!
//! A file belongs to a lesson, the queries and the words of the plan, by a hash of all three: votes of another part, or by another rule, are not taken for these. The folder is called after the run, so that two runs beside each other neither take nor remove each other's.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::view::Lesson;
use crate::checkpoint::{CheckpointError, Run};

/// Where votes are kept.
pub struct Ballots {
    folder: PathBuf,
    /// Of the plan and the queries.
    words: [u8; 32],
}

/// The name of the folder with a run's votes, within the folder of its results.
pub fn folder(run: &Run) -> String {
    format!("teachers-{}.private", &run.name()[..16])
}

/// How a file begins.
const MARK: &[u8] = b"PRIVATE: votes of one teacher, as they are. Not for others' eyes.\n";

impl Ballots {
    /// For a run, in the folder of its results, which is made if it is not there. `plan` is the fingerprint of all that teachers are made by; queries are rows of numbers.
    pub fn open(
        out: &Path,
        run: &Run,
        plan: [u8; 32],
        queries: &[f32],
    ) -> Result<Self, CheckpointError> {
        let inner = out.join(folder(run));
        let made = fs::create_dir_all(out).and_then(|()| closed_folder(&inner));
        made.map_err(|error| unwritable(&inner, &error))?;
        let folder = inner;
        let mut hash = Sha256::new_with_prefix(plan);
        hash.update(bytes(queries));
        Ok(Self {
            folder,
            words: hash.finalize().into(),
        })
    }

    /// What a teacher's file must say to be taken: a hash of its lesson, which is private.
    pub(super) fn key(&self, lesson: &Lesson) -> [u8; 32] {
        let mut hash = Sha256::new_with_prefix(self.words);
        hash.update((lesson.features.len() as u64).to_le_bytes());
        hash.update(bytes(&lesson.features));
        hash.update(bytes(&lesson.shares));
        hash.finalize().into()
    }

    fn path(&self, teacher: usize) -> PathBuf {
        self.folder.join(format!("{teacher:05}.votes"))
    }

    /// The votes that are there for this lesson.
    #[expect(clippy::disallowed_methods, reason = "the run's own votes")]
    pub(super) fn load(&self, teacher: usize, key: &[u8; 32], queries: usize) -> Option<Vec<u32>> {
        let found = fs::read(self.path(teacher)).ok()?;
        let rest = found.strip_prefix(MARK)?.strip_prefix(key)?;
        let (votes, rest) = rest.as_chunks::<4>();
        (votes.len() == queries && rest.is_empty())
            .then(|| votes.iter().map(|vote| u32::from_le_bytes(*vote)).collect())
    }

    /// Keeps votes: the file is there as a whole, or not.
    pub(super) fn keep(
        &self,
        teacher: usize,
        key: &[u8; 32],
        votes: &[u32],
    ) -> Result<(), CheckpointError> {
        let (path, part) = (
            self.path(teacher),
            self.path(teacher).with_extension("part"),
        );
        let mut whole = [MARK, key].concat();
        whole.extend(votes.iter().flat_map(|vote| vote.to_le_bytes()));
        let written = closed_file(&part).and_then(|mut file| {
            file.write_all(&whole)?;
            file.sync_all()?;
            fs::rename(&part, &path)
        });
        written.map_err(|error| unwritable(&path, &error))
    }
}

/// What becomes of votes once labels are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Afterwards {
    /// They are removed.
    #[default]
    Remove,
    /// They stay where they are, since their owner wants them.
    Keep,
}

impl Afterwards {
    /// To be called once the labels of a run are kept durably. What is in its folder and was not put there by [`Ballots`] stays, and is told of.
    pub fn settle(self, out: &Path, run: &Run) -> Result<(), CheckpointError> {
        let inner = out.join(folder(run));
        let removed = match self {
            Self::Keep => Ok(()),
            Self::Remove => remove(&inner),
        };
        removed.map_err(|error| CheckpointError::VotesLeft {
            path: inner,
            why: error.kind(),
        })
    }
}

fn remove(inner: &Path) -> io::Result<()> {
    let found = match fs::read_dir(inner) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    for entry in found {
        let path = entry?.path();
        let is_number = |stem: &str| stem.bytes().all(|byte| byte.is_ascii_digit());
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let ending = path.extension().and_then(|ending| ending.to_str());
        if stem.is_some_and(is_number) && matches!(ending, Some("votes" | "part")) {
            fs::remove_file(&path)?;
        }
    }
    fs::remove_dir(inner)
}

/// Makes a folder that nobody but its owner may enter, or closes the one that is there.
fn closed_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
        made => return made,
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Makes a file that nobody but its owner may read. What is left of a write that was stopped, or a link that somebody put there, is not written through.
#[expect(clippy::disallowed_methods, reason = "the run's own votes")]
fn closed_file(path: &Path) -> io::Result<fs::File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn bytes(floats: &[f32]) -> Vec<u8> {
    floats
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

fn unwritable(path: &Path, error: &io::Error) -> CheckpointError {
    CheckpointError::Unwritable {
        path: path.to_owned(),
        why: error.kind(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pate::{Aggregation, Terms};

    fn run(plan: u8) -> Run {
        let aggregation = Aggregation::new(&Terms::default()).expect("terms");
        aggregation.run_of(&[plan])
    }

    #[test]
    fn votes_are_found_again_for_their_lesson_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = |plan| {
            Ballots::open(folder.path(), &run(0), [plan; 32], &[1.0, 2.0]).expect("writable")
        };
        let (ballots, lesson) = (open(1), Lesson::default());
        let key = ballots.key(&lesson);
        assert_eq!(ballots.load(3, &key, 2), None);
        ballots.keep(3, &key, &[7, 1]).expect("writable");
        assert_eq!(ballots.load(3, &key, 2), Some(vec![7, 1]));
        assert_eq!(
            (ballots.load(3, &key, 3), ballots.load(4, &key, 2)),
            (None, None)
        );
        let other = Lesson {
            features: vec![0.0],
            ..Lesson::default()
        };
        assert_eq!(ballots.load(3, &ballots.key(&other), 2), None);
        assert_ne!(open(2).key(&lesson), key);
    }

    #[cfg(unix)]
    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test's own file")]
    fn files_say_that_they_are_private_and_are_closed_to_others() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let ballots = Ballots::open(folder.path(), &run(1), [1; 32], &[]).expect("writable");
        ballots.keep(0, &[0; 32], &[1]).expect("writable");
        let inner = folder.path().join(super::folder(&run(1)));
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode(&inner), 0o700);
        assert_eq!(mode(&inner.join("00000.votes")), 0o600);
        // A folder that was open to others is closed, and what stood in the way of a file is not written through.
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o755)).expect("ours");
        fs::write(folder.path().join("elsewhere"), "").expect("writable");
        let link = inner.join("00001.part");
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), link).expect("a link");
        let ballots = Ballots::open(folder.path(), &run(1), [1; 32], &[]).expect("writable");
        ballots.keep(1, &[0; 32], &[1]).expect("writable");
        assert_eq!(mode(&inner), 0o700);
        assert_eq!(mode(&inner.join("00001.votes")), 0o600);
        let elsewhere = fs::read(folder.path().join("elsewhere")).expect("there");
        assert!(elsewhere.is_empty());
        let text = fs::read(inner.join("00000.votes")).expect("there");
        assert!(text.starts_with(b"PRIVATE"));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test's own file")]
    fn votes_are_removed_unless_their_owner_keeps_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join(super::folder(&run(1)));
        let fill = || {
            let ballots = Ballots::open(folder.path(), &run(1), [1; 32], &[]).expect("writable");
            ballots.keep(0, &[0; 32], &[1]).expect("writable");
            fs::write(inner.join("00001.part"), "half").expect("writable");
        };
        assert_eq!(
            Afterwards::Remove.settle(folder.path(), &run(1)),
            Ok(()),
            "none"
        );
        fill();
        assert_eq!(Afterwards::Keep.settle(folder.path(), &run(1)), Ok(()));
        assert!(inner.join("00000.votes").exists());
        assert_eq!(Afterwards::default().settle(folder.path(), &run(1)), Ok(()));
        assert!(!inner.exists());
        // Somebody's own file is not removed, and its owner hears of it; the votes are gone.
        fill();
        fs::write(inner.join("notes.txt"), "mine").expect("writable");
        let left = Afterwards::Remove.settle(folder.path(), &run(1));
        assert!(matches!(left, Err(CheckpointError::VotesLeft { .. })));
        assert!(inner.join("notes.txt").exists() && !inner.join("00000.votes").exists());
    }

    /// Two plans with one folder for their results: what one of them removes is its own.
    #[test]
    fn runs_beside_each_other_have_folders_of_their_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = |plan| Ballots::open(folder.path(), &run(plan), [1; 32], &[]).expect("writable");
        let (one, other) = (open(1), open(2));
        let key = one.key(&Lesson::default());
        assert_eq!(key, other.key(&Lesson::default()), "by the same words");
        other.keep(0, &key, &[7]).expect("writable");
        assert_eq!(one.load(0, &key, 1), None);
        one.keep(0, &key, &[5]).expect("writable");
        assert_eq!(Afterwards::Remove.settle(folder.path(), &run(1)), Ok(()));
        assert_eq!(
            (one.load(0, &key, 1), other.load(0, &key, 1)),
            (None, Some(vec![7]))
        );
    }
}
