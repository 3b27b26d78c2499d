//! The file of a checkpoint.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::time::UNIX_EPOCH;

use super::error::{CheckpointError, Result};
use super::{Checkpoint, Run, Seen, hex};
use crate::payment::Payment;

/// Where the checkpoint of one run is kept, held by one process at a time.
pub struct Place {
    run: Run,
    path: PathBuf,
    /// Unlocked when it is dropped, and by the system when the process ends in any way.
    lock: File,
    /// The folder as it was when it was taken.
    held: Option<[u64; 2]>,
    /// Who took it: a lock is shared with a fork of that process.
    process: u32,
}

impl Place {
    /// Tries whether a folder can be made and written to, and leaves nothing of that: for whoever has other things to do before there is a
    /// run to keep in it.
    pub fn rehearse(folder: &Path) -> Result<()> {
        let missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
        let made: Vec<&Path> = folder.ancestors().take_while(missing).collect();
        let trial = folder.join(trial());
        let tried = fs::create_dir_all(folder).and_then(|()| {
            File::create_new(&trial)?;
            fs::remove_file(&trial)
        });
        for folder in made {
            // Removes nothing but empty ones: what somebody has put there meanwhile is theirs.
            let _ = fs::remove_dir(folder);
        }
        tried.map_err(|error| closed(folder, &error))
    }

    /// The same as [`open`](Self::open), in a folder that is made if it is not there.
    pub fn make(folder: &Path, run: Run) -> Result<Self> {
        fs::create_dir_all(folder).map_err(|error| closed(folder, &error))?;
        Self::open(folder, run)
    }

    /// Takes the place of a run in a folder. Names are made of the plan's fingerprint alone.
    #[expect(clippy::disallowed_methods, reason = "the run's own checkpoint")]
    pub fn open(folder: &Path, run: Run) -> Result<Self> {
        let path = Self::file(folder, &run);
        // The lock is a file of its own, since the checkpoint is replaced at each write.
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path.with_extension("lock"))
            .map_err(|error| closed(folder, &error))?;
        match lock.try_lock() {
            Ok(()) => {
                let held = numbers(folder_of(&path).metadata());
                Ok(Self {
                    run,
                    path,
                    lock,
                    held,
                    process: std::process::id(),
                })
            }
            Err(fs::TryLockError::WouldBlock) => Err(CheckpointError::Busy { path }),
            Err(fs::TryLockError::Error(error)) => Err(unwritable(&path, &error)),
        }
    }

    /// Was a run begun in a folder? Writes nothing. What has the name of a checkpoint counts as one, whatever it is.
    pub fn is_begun(folder: &Path, run: &Run) -> bool {
        Self::file(folder, run).symlink_metadata().is_ok()
    }

    /// Refuses a folder that holds what another run has left, or somebody else: a model, a card, curves. Whatever a run writes there stands
    /// beside its own card, which is written first and [names](Run::name) the run. Writes nothing.
    pub fn is_own(folder: &Path, run: &Run) -> Result<()> {
        Self::is_own_with(folder, run, &[])
    }

    /// The same for a run that also leaves files of these names.
    #[expect(clippy::disallowed_methods, reason = "the run's own card")]
    pub fn is_own_with(folder: &Path, run: &Run, more: &[&str]) -> Result<()> {
        let is_begun = Self::is_begun(folder, run);
        let card = fs::read(folder.join(CARD)).unwrap_or_default();
        let name = run.name();
        if is_begun && card.windows(name.len()).any(|part| part == name.as_bytes()) {
            return Ok(());
        }
        let curves = CURVES.iter().flat_map(|word| {
            let name = |ending| format!("{word}.{ending}");
            ["svg", "png"].map(name)
        });
        let results = RESULTS.iter().chain(more);
        let mut left = results.map(|name| (*name).to_owned()).chain(curves);
        match left.find(|name| folder.join(name).symlink_metadata().is_ok()) {
            Some(name) => Err(CheckpointError::Taken {
                path: folder.join(name),
                is_begun,
            }),
            None => Ok(()),
        }
    }

    /// Tries whether a run could be kept here whose checkpoints hold up to so many floats, before anybody has paid for it: as much as
    /// its checkpoints may need is written, and taken away. Refused if one was begun here.
    pub fn probe(&self, floats: usize) -> Result<()> {
        self.is_free()?;
        let tried = self.write_part(|file| {
            let piece = [0; 1 << 16];
            let mut left = room(floats);
            while left > 0 {
                let bytes = left.min(piece.len());
                file.write_all(&piece[..bytes])?;
                left -= bytes;
            }
            Ok(())
        });
        let tried = tried.and_then(|(part, file)| {
            drop(file);
            fs::remove_file(part)
        });
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
        self.start_with(payment, parameters, BTreeMap::new())
    }

    /// The same with vectors that are there from the start.
    pub(crate) fn start_with(
        &self,
        payment: Payment,
        parameters: Vec<f32>,
        vectors: BTreeMap<String, Vec<f32>>,
    ) -> crate::Result<()> {
        self.is_free()?;
        let payer = payment.lay_down(&self.run.event.fingerprint())?;
        let mut checkpoint = Checkpoint::new(self.run.clone(), payer, parameters);
        checkpoint.vectors = vectors;
        checkpoint.home = self.home();
        Ok(self.keep(&mut checkpoint)?)
    }

    /// The numbers of the lock's file and of the folder on their disk, and when each of them was made. They are the same by any name that is given to the folder, on its disk.
    /// A copy was made later, also where it has the same numbers, as on a fresh disk or in the place of what was removed; one by hard links lies in another folder. Both are made once and
    /// neither removed nor replaced here ([`open`](Self::open)). Disks themselves are numbered anew when a machine starts.
    fn home(&self) -> Option<[u64; 4]> {
        let [lock, lock_made] = origin(self.lock.metadata())?;
        let [folder, folder_made] = origin(folder_of(&self.path).metadata())?;
        Some([lock, lock_made, folder, folder_made])
    }

    /// The checkpoint of a run in a folder. Its name is made of the plan's fingerprint alone.
    pub fn file(folder: &Path, run: &Run) -> PathBuf {
        folder.join(format!("whit-{}.checkpoint", &hex(&run.plan)[..16]))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The checkpoint that is there, if there is one.
    #[expect(clippy::disallowed_methods, reason = "the run's own checkpoint")]
    pub fn load(&self) -> Result<Option<Checkpoint>> {
        let read = |mut file: File| {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            // Of what was read, whatever is written there meanwhile.
            let sum = bytes.len().saturating_sub(SUM);
            Ok((Seen::new(file.metadata()?, &bytes[sum..]), bytes))
        };
        match File::open(&self.path).and_then(read) {
            Ok((seen, bytes)) => {
                let mut checkpoint = Checkpoint::decode(&bytes, &self.run)?;
                checkpoint.seen = Some(seen);
                match checkpoint.home == self.home() {
                    true => Ok(Some(checkpoint)),
                    false => Err(CheckpointError::Copied {
                        path: self.path.clone(),
                    }),
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.unreadable(&error)),
        }
    }

    /// Grants up to `steps` more steps, once it is durable that they were begun. None are granted at the end of the run, nor if the
    /// file cannot be written. Whoever counts has the place for oneself (`&mut`): two threads that had both read the same number would both be granted the same steps.
    pub(crate) fn begin(&mut self, checkpoint: &mut Checkpoint, steps: u64) -> Result<u64> {
        let granted = checkpoint.begin(steps);
        self.keep(checkpoint)?;
        Ok(granted)
    }

    /// Gives back steps that were granted and not taken, in whole epochs. What is counted is never less than what was taken, whether
    /// or not the file can be written.
    pub(crate) fn give_back(
        &mut self,
        checkpoint: &mut Checkpoint,
        granted: &mut u64,
        epoch: u64,
    ) -> Result<()> {
        *granted = checkpoint.give_back(*granted, epoch);
        self.keep(checkpoint)
    }

    /// Replaces the file at once and durably: whenever the machine stops, the old one or the new one is there, whole. The old one is that
    /// which this state was read from or written to last.
    pub(crate) fn keep(&self, checkpoint: &mut Checkpoint) -> Result<()> {
        if checkpoint.run != self.run {
            return Err(CheckpointError::OtherPlan);
        }
        let bytes = checkpoint.encode();
        self.keep_by(checkpoint, |file| file.write_all(&bytes))
    }

    fn keep_by(
        &self,
        checkpoint: &mut Checkpoint,
        write: impl FnOnce(&mut File) -> std::io::Result<()>,
    ) -> Result<()> {
        same_process(self.process)?;
        self.is_at(checkpoint)?;
        self.is_seen(checkpoint)?;
        let failed = |error| unwritable(&self.path, &error);
        let (part, written) = self.write_part(write).map_err(failed)?;
        // Once more, since a write takes its time: a lock may hold on one machine only.
        if let Err(changed) = self.is_seen(checkpoint) {
            let _ = fs::remove_file(part);
            return Err(changed);
        }
        fs::rename(part, &self.path).map_err(failed)?;
        checkpoint.seen = seen(&written).ok();
        self.sync_folder().map_err(failed)?;
        // Whoever grants steps must know that they were counted in the folder that is held, and not in one that had its name meanwhile: the file there is
        // the one that was written, and the folder is the one that is held.
        match numbers(self.path.symlink_metadata()) == numbers(written.metadata()) {
            true => self.is_at(checkpoint),
            false => Err(self.moved()),
        }
    }

    /// Is the folder of that name still the one in which the run was begun, on the disk where it was taken, and is the lock in it the one that is held? If not, what is written here
    /// would be found by nobody who goes on there.
    fn is_at(&self, checkpoint: &Checkpoint) -> Result<()> {
        let folder = numbers(folder_of(&self.path).metadata());
        let lock = numbers(self.path.with_extension("lock").metadata());
        let is_held = folder == self.held && lock == numbers(self.lock.metadata());
        match checkpoint.home == self.home() && is_held {
            true => Ok(()),
            false => Err(self.moved()),
        }
    }

    /// Is the file that a write would replace the one that this state was read from or written to last, or is there none, as there was none? If not, steps
    /// were counted there of which this state does not know, or were taken off.
    #[expect(clippy::disallowed_methods, reason = "the run's own checkpoint")]
    fn is_seen(&self, checkpoint: &Checkpoint) -> Result<()> {
        let found = match File::open(&self.path).and_then(|file| seen(&file)) {
            Ok(found) => Some(found),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(self.unreadable(&error)),
        };
        match found == checkpoint.seen {
            true => Ok(()),
            false => Err(CheckpointError::Changed {
                path: self.path.clone(),
            }),
        }
    }

    fn unreadable(&self, error: &std::io::Error) -> CheckpointError {
        CheckpointError::Unreadable {
            path: self.path.clone(),
            why: error.kind(),
        }
    }

    fn moved(&self) -> CheckpointError {
        CheckpointError::Moved {
            path: self.path.clone(),
        }
    }

    /// Writes a file beside the checkpoint, durably, and says where it is.
    fn write_part(
        &self,
        write: impl FnOnce(&mut File) -> std::io::Result<()>,
    ) -> std::io::Result<(PathBuf, File)> {
        let part = self.path.with_extension("part");
        // What is left of a write that failed, or a link that somebody put there, is not written through.
        without(&part)?;
        let mut file = File::create_new(&part)?;
        let written = write(&mut file).and_then(|()| file.sync_all());
        if let Err(error) = written {
            // Half of a checkpoint is of use to nobody, and the disk may be full.
            let _ = fs::remove_file(&part);
            return Err(error);
        }
        Ok((part, file))
    }

    /// A new name is durable once its folder is. (Windows cannot open folders.)
    #[expect(clippy::disallowed_methods, reason = "the run's own checkpoint")]
    fn sync_folder(&self) -> std::io::Result<()> {
        match cfg!(unix) {
            true => File::open(folder_of(&self.path))?.sync_all(),
            false => Ok(()),
        }
    }
}

/// Refuses steps to a fork of the process that they were granted to: it has them, too.
pub(crate) fn same_process(process: u32) -> Result<()> {
    match process == std::process::id() {
        true => Ok(()),
        false => Err(CheckpointError::OtherProcess),
    }
}

/// Which file this is: its numbers, and the sum at its end, which is that of all that is in it.
fn seen(mut file: &File) -> std::io::Result<Seen> {
    let found = file.metadata()?;
    // What is shorter is no checkpoint, and is compared as a whole.
    file.seek(SeekFrom::Start(found.len().saturating_sub(SUM as u64)))?;
    let mut sum = Vec::new();
    file.take(SUM as u64).read_to_end(&mut sum)?;
    Ok(Seen::new(found, &sum))
}

impl Seen {
    fn new(found: fs::Metadata, sum: &[u8]) -> Self {
        Self {
            numbers: numbers(Ok(found)),
            sum: sum.to_vec(),
        }
    }
}

/// Where a checkpoint lies.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// The numbers of a disk and of a file or folder on it, where the system has them.
fn numbers(found: std::io::Result<fs::Metadata>) -> Option<[u64; 2]> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        found.ok().map(|found| [found.dev(), found.ino()])
    }
    #[cfg(not(unix))]
    {
        let _ = found;
        None
    }
}

/// The number of a file or folder on its disk, where the system has one, and when it was made, in nanoseconds since 1970. That is 0 where the system or the kind of disk does not
/// tell it: there the number is all that a copy could be told by.
fn origin(found: std::io::Result<fs::Metadata>) -> Option<[u64; 2]> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let found = found.ok()?;
        let made = found.created().ok();
        let since = made.and_then(|made| made.duration_since(UNIX_EPOCH).ok());
        let made = since.and_then(|since| u64::try_from(since.as_nanos()).ok());
        Some([found.ino(), made.unwrap_or(0)])
    }
    #[cfg(not(unix))]
    {
        let _ = found;
        None
    }
}

/// The bytes of the sum at the end of a checkpoint.
const SUM: usize = 32;

/// The card of a run.
const CARD: &str = "card.md";

/// What a run leaves beside its checkpoint, and the words of its curves.
const RESULTS: [&str; 5] = [
    CARD,
    "card.json",
    "model.safetensors",
    "model.onnx",
    "curve.csv",
];
const CURVES: [&str; 3] = ["epsilon", "accuracy", "loss"];

/// What stands in a folder while it is tried: a name that nobody else has, and that is removed only by whoever made it.
fn trial() -> String {
    let random = RandomState::new().build_hasher().finish();
    format!("whit-{}-{random:016x}.trial", std::process::id())
}

/// The bytes that a run needs whose checkpoints hold up to so many floats: a new one is written while the old one is there. Four for each, and a
/// page for the head.
pub(crate) fn room(floats: usize) -> usize {
    2 * (4 * floats + 4096)
}

/// Removes a file if it is there.
fn without(path: &Path) -> std::io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn closed(folder: &Path, error: &std::io::Error) -> CheckpointError {
    CheckpointError::Folder {
        path: folder.into(),
        why: error.kind(),
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> CheckpointError {
    CheckpointError::Unwritable {
        path: path.into(),
        why: error.kind(),
    }
}

#[cfg(test)]
#[path = "place_test.rs"]
mod tests;
