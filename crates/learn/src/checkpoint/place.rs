//! The file of a checkpoint.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::error::{CheckpointError, Result};
use super::{Checkpoint, Run, hex};
use crate::payment::Payment;

/// Where the checkpoint of one run is kept, held by one process at a time.
pub struct Place {
    run: Run,
    path: PathBuf,
    /// Unlocked when it is dropped, and by the system when the process ends in any way.
    lock: File,
}

impl Place {
    /// Takes the place of a run in a folder. Names are made of the plan's fingerprint alone.
    #[expect(clippy::disallowed_methods, reason = "the run's own checkpoint")]
    pub fn open(folder: &Path, run: Run) -> Result<Self> {
        let path = file(folder, &run);
        // The lock is a file of its own, since the checkpoint is replaced at each write.
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path.with_extension("lock"))
            .map_err(|error| unwritable(&path, &error))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { run, path, lock }),
            Err(fs::TryLockError::WouldBlock) => Err(CheckpointError::Busy { path }),
            Err(fs::TryLockError::Error(error)) => Err(unwritable(&path, &error)),
        }
    }

    /// Was a run begun in a folder? Writes nothing. What has the name of a checkpoint counts as one, whatever it is.
    pub fn is_begun(folder: &Path, run: &Run) -> bool {
        file(folder, run).symlink_metadata().is_ok()
    }

    /// Tries whether the beginning of a run of so many parameters could be kept here, before anybody has paid for it: as much as its first
    /// checkpoint has is written, and taken away. Later ones may be larger. Refused if one was begun here.
    pub fn probe(&self, parameters: usize) -> Result<()> {
        self.is_free()?;
        // Four bytes for each, and less than a page of other numbers.
        let bytes = vec![0; 4 * parameters + 4096];
        let tried = self.write_part(&bytes).and_then(fs::remove_file);
        tried.map_err(|error| unwritable(&self.path, &error))
    }

    fn is_free(&self) -> Result<()> {
        match self.path.symlink_metadata() {
            Ok(_) => Err(CheckpointError::Begun {
                path: self.path.clone(),
            }),
            Err(_) => Ok(()),
        }
    }

    /// Lays down that a run was paid for, durably, before its first step. `parameters` are the initial ones. Refused if one was begun here.
    pub fn start(&self, payment: Payment, parameters: Vec<f32>) -> crate::Result<()> {
        self.is_free()?;
        let payer = payment.lay_down(&self.run.event.fingerprint())?;
        let mut checkpoint = Checkpoint::new(self.run.clone(), payer, parameters);
        checkpoint.home = self.home();
        Ok(self.keep(&checkpoint)?)
    }

    /// The numbers of the lock's file and of the folder: a copy has others, also one by hard links, and the folder has the same by any name.
    fn home(&self) -> Option<[u64; 2]> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let folder = self.path.parent()?.metadata().ok()?;
            Some([self.lock.metadata().ok()?.ino(), folder.ino()])
        }
        #[cfg(not(unix))]
        {
            None
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The checkpoint that is there, if there is one.
    #[expect(clippy::disallowed_methods, reason = "the run's own checkpoint")]
    pub fn load(&self) -> Result<Option<Checkpoint>> {
        match fs::read(&self.path) {
            Ok(bytes) => {
                let checkpoint = Checkpoint::decode(&bytes, &self.run)?;
                match checkpoint.home == self.home() {
                    true => Ok(Some(checkpoint)),
                    false => Err(CheckpointError::Copied {
                        path: self.path.clone(),
                    }),
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(CheckpointError::Unreadable {
                path: self.path.clone(),
                why: error.kind(),
            }),
        }
    }

    /// Grants up to `steps` more steps, once it is durable that they were begun. None are granted at the end of the run, nor if the
    /// file cannot be written.
    pub(crate) fn begin(&self, checkpoint: &mut Checkpoint, steps: u64) -> Result<u64> {
        let granted = checkpoint.begin(steps);
        self.keep(checkpoint)?;
        Ok(granted)
    }

    /// Replaces the file at once and durably: whenever the machine stops, the old one or the new one is there, whole.
    pub(crate) fn keep(&self, checkpoint: &Checkpoint) -> Result<()> {
        if checkpoint.run != self.run {
            return Err(CheckpointError::OtherPlan);
        }
        self.replace(&checkpoint.encode())
            .map_err(|error| unwritable(&self.path, &error))
    }

    /// Writes a file beside the checkpoint, durably, and says where it is.
    fn write_part(&self, bytes: &[u8]) -> std::io::Result<PathBuf> {
        let part = self.path.with_extension("part");
        // What is left of a write that failed, or a link that somebody put there, is not written through.
        match fs::remove_file(&part) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = File::create_new(&part)?;
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        if let Err(error) = written {
            // Half of a checkpoint is of use to nobody, and the disk may be full.
            let _ = fs::remove_file(&part);
            return Err(error);
        }
        Ok(part)
    }

    #[expect(clippy::disallowed_methods, reason = "the run's own checkpoint")]
    fn replace(&self, bytes: &[u8]) -> std::io::Result<()> {
        fs::rename(self.write_part(bytes)?, &self.path)?;
        // The new name is durable once its folder is. (Windows cannot open folders.)
        if cfg!(unix)
            && let Some(folder) = self.path.parent()
        {
            let here = match folder.as_os_str().is_empty() {
                true => Path::new("."),
                false => folder,
            };
            File::open(here)?.sync_all()?;
        }
        Ok(())
    }
}

/// The checkpoint of a run. Its name is made of the plan's fingerprint alone.
fn file(folder: &Path, run: &Run) -> PathBuf {
    folder.join(format!("whit-{}.checkpoint", &hex(&run.plan)[..16]))
}

fn unwritable(path: &Path, error: &std::io::Error) -> CheckpointError {
    CheckpointError::Unwritable {
        path: path.into(),
        why: error.kind(),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "files of the tests' own")]

    use tempfile::TempDir;

    use super::super::tests::{checkpoint, run};
    use super::*;
    use crate::payment::Payer;

    /// As one that was started there.
    fn at_home(place: &Place, mut checkpoint: Checkpoint) -> Checkpoint {
        checkpoint.home = place.home();
        checkpoint
    }

    #[test]
    fn what_was_kept_is_loaded() {
        let folder = TempDir::new().expect("a folder");
        let place = Place::open(folder.path(), run(7)).expect("free");
        assert_eq!(place.load(), Ok(None));
        let own = at_home(&place, checkpoint());
        place.keep(&own).expect("writable");
        let read = place.load().expect("own").expect("there");
        assert_eq!(read, own);
        assert_eq!(read.parameters[1].to_bits(), (-0.0_f32).to_bits());
        let name = place.path().file_name().and_then(|name| name.to_str());
        assert_eq!(name, Some("whit-0707070707070707.checkpoint"));
    }

    /// Runs that crash at random places and go on: never more steps than were paid for, and all of them without a crash.
    #[test]
    fn crashes_never_add_steps() {
        let folder = TempDir::new().expect("a folder");
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        for plan in 0..20 {
            let calm = plan == 0;
            let (mut ran, mut kept) = (0, 0);
            loop {
                let place = Place::open(folder.path(), run(plan)).expect("free");
                let mut here = match place.load().expect("own") {
                    Some(checkpoint) => checkpoint,
                    None => {
                        let first = Checkpoint::new(run(plan), Payer::Nobody, vec![0.0; 3]);
                        at_home(&place, first)
                    }
                };
                assert!(here.steps_kept() >= kept, "kept steps stay");
                kept = here.steps_kept();
                let granted = place.begin(&mut here, 7).expect("writable");
                if granted == 0 {
                    break;
                }
                if !calm && random(3) == 0 {
                    ran += random(granted + 1);
                    continue;
                }
                ran += granted;
                here.done(granted);
                place.keep(&here).expect("writable");
            }
            assert!(ran <= 50, "{ran} steps were run");
            assert!(!calm || (ran == 50 && kept == 50), "{ran} {kept}");
        }
    }

    #[test]
    fn a_run_is_begun_once_and_by_a_payment_of_its_own() {
        let folder = TempDir::new().expect("a folder");
        assert!(!Place::is_begun(folder.path(), &run(7)));
        let place = Place::open(folder.path(), run(7)).expect("free");
        let payment = |run: &Run| Payment::rest(run.event.fingerprint(), Payer::Nobody, 0);
        let begun_before = Payment::rest(run(7).event.fingerprint(), Payer::Nobody, 3);
        assert_eq!(
            place.start(begun_before, vec![0.0]),
            Err(crate::Error::OtherPlan),
            "what was begun elsewhere"
        );
        assert_eq!(place.start(payment(&run(7)), vec![0.5]), Ok(()));
        assert!(Place::is_begun(folder.path(), &run(7)));
        let kept = place.load().expect("own").expect("there");
        assert_eq!((kept.steps_begun(), kept.payer()), (0, &Payer::Nobody));
        let again = place.start(payment(&run(7)), vec![0.5]);
        let path = place.path().to_owned();
        assert_eq!(again, Err(CheckpointError::Begun { path }.into()));
    }

    #[test]
    fn a_place_that_takes_no_file_is_noticed_before_a_run_is_begun() {
        let folder = TempDir::new().expect("a folder");
        let place = Place::open(folder.path(), run(7)).expect("free");
        assert_eq!(place.probe(1000), Ok(()));
        let part = place.path().with_extension("part");
        assert!(!part.exists() && !Place::is_begun(folder.path(), &run(7)));
        fs::create_dir(&part).expect("in the way");
        let tried = place.probe(1000);
        assert!(matches!(tried, Err(CheckpointError::Unwritable { .. })));
        fs::remove_dir(&part).expect("ours");
        let payment = Payment::rest(run(7).event.fingerprint(), Payer::Nobody, 0);
        place.start(payment, vec![0.5]).expect("free");
        let tried = place.probe(1000);
        assert!(matches!(tried, Err(CheckpointError::Begun { .. })));
    }

    /// Whoever copies a folder in which a run is under way does not take its steps a second time.
    #[cfg(unix)]
    #[test]
    fn a_copy_of_a_folder_is_no_second_run() {
        let folder = TempDir::new().expect("a folder");
        let names = ["first", "copy", "linked", "moved"];
        let [first, copy, linked, moved] = names.map(|name| folder.path().join(name));
        fs::create_dir(&first).expect("writable");
        let place = Place::open(&first, run(7)).expect("free");
        let payment = Payment::rest(run(7).event.fingerprint(), Payer::Nobody, 0);
        place.start(payment, vec![0.5]).expect("writable");
        drop(place);
        for other in [&copy, &linked] {
            fs::create_dir(other).expect("writable");
        }
        for entry in fs::read_dir(&first).expect("there") {
            let entry = entry.expect("listed");
            fs::copy(entry.path(), copy.join(entry.file_name())).expect("copied");
            fs::hard_link(entry.path(), linked.join(entry.file_name())).expect("linked");
        }
        for other in [&copy, &linked] {
            let place = Place::open(other, run(7)).expect("free");
            assert!(matches!(place.load(), Err(CheckpointError::Copied { .. })));
        }
        fs::rename(&first, &moved).expect("moved");
        let place = Place::open(&moved, run(7)).expect("free");
        assert!(place.load().is_ok_and(|found| found.is_some()));
    }

    /// A program that is killed right after its steps finds them counted.
    #[test]
    fn steps_are_counted_before_they_are_granted() {
        let folder = TempDir::new().expect("a folder");
        let place = Place::open(folder.path(), run(7)).expect("free");
        let mut here = at_home(&place, Checkpoint::new(run(7), Payer::Nobody, vec![0.0]));
        assert_eq!(place.begin(&mut here, 20), Ok(20));
        let read = place.load().expect("own").expect("there");
        assert_eq!((read.steps_begun(), read.steps_kept()), (20, 0));
        fs::remove_file(place.path()).expect("ours");
        fs::create_dir(place.path()).expect("in the way");
        assert!(
            place.begin(&mut here, 20).is_err(),
            "not durable, not granted"
        );
    }

    #[test]
    fn a_place_is_held_by_one_process_and_for_one_run() {
        let folder = TempDir::new().expect("a folder");
        let first = Place::open(folder.path(), run(7)).expect("free");
        let second = Place::open(folder.path(), run(7));
        assert!(matches!(second, Err(CheckpointError::Busy { .. })));
        let other = Checkpoint::new(run(8), Payer::Nobody, vec![]);
        assert_eq!(first.keep(&other), Err(CheckpointError::OtherPlan));
        drop(first);
        assert!(Place::open(folder.path(), run(7)).is_ok());
        let nowhere = Place::open(&folder.path().join("no"), run(7));
        assert!(matches!(nowhere, Err(CheckpointError::Unwritable { .. })));
    }

    #[test]
    fn a_half_written_file_is_never_read() {
        let folder = TempDir::new().expect("a folder");
        let place = Place::open(folder.path(), run(7)).expect("free");
        let own = at_home(&place, checkpoint());
        place.keep(&own).expect("writable");
        fs::write(place.path().with_extension("part"), b"half").expect("writable");
        assert_eq!(place.load(), Ok(Some(own.clone())));
        place.keep(&own).expect("over the half");
    }
}
