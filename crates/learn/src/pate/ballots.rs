//! # Votes of teachers that wait on the owner's disk
//! An ensemble takes long to train, and may be stopped. So each teacher's votes are kept in a folder of the owner's as soon as there are any, and the same command goes on with the teachers that are missing. **They are private**, and say so
//! in their first line: whoever reads them sees what no noise hides. On Unix nobody but the owner of the file may. They can be removed once labels were told.
//!
//! A file belongs to a lesson, the queries and the words of the plan, by a hash of all three: votes of another part, or by another rule, are not taken for these.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::view::Lesson;
use crate::checkpoint::CheckpointError;

/// Where votes are kept.
pub struct Ballots {
    folder: PathBuf,
    /// Of the plan and the queries.
    words: [u8; 32],
}

/// The name of the folder within a run's.
pub const FOLDER: &str = "teachers.private";
/// How a file begins.
const MARK: &[u8] = b"PRIVATE: votes of one teacher, as they are. Not for others' eyes.\n";

impl Ballots {
    /// In a folder, which is made if it is not there. `plan` is the fingerprint of all that teachers are made by; queries are rows of numbers.
    pub fn open(folder: &Path, plan: [u8; 32], queries: &[f32]) -> Result<Self, CheckpointError> {
        let folder = folder.join(FOLDER);
        fs::create_dir_all(&folder).map_err(|error| unwritable(&folder, &error))?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let closed = fs::Permissions::from_mode(0o700);
            fs::set_permissions(&folder, closed).map_err(|error| unwritable(&folder, &error))?;
        }
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
    #[expect(clippy::disallowed_methods, reason = "the run's own votes")]
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
        let written = fs::write(&part, whole).and_then(|()| fs::rename(&part, &path));
        written.map_err(|error| unwritable(&path, &error))
    }
}

fn bytes(floats: &[f32]) -> Vec<u8> {
    floats
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

fn unwritable(path: &Path, error: &std::io::Error) -> CheckpointError {
    CheckpointError::Unwritable {
        path: path.to_owned(),
        why: error.kind(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn votes_are_found_again_for_their_lesson_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = |plan| Ballots::open(folder.path(), [plan; 32], &[1.0, 2.0]).expect("writable");
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
        let ballots = Ballots::open(folder.path(), [1; 32], &[]).expect("writable");
        ballots.keep(0, &[0; 32], &[1]).expect("writable");
        let inner = folder.path().join(FOLDER);
        let mode = fs::metadata(&inner).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let text = fs::read(inner.join("00000.votes")).expect("there");
        assert!(text.starts_with(b"PRIVATE"));
    }
}
