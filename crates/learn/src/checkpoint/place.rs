//! The file of a checkpoint.

use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
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
        let path = file(folder, &run);
        // The lock is a file of its own, since the checkpoint is replaced at each write.
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path.with_extension("lock"))
            .map_err(|error| closed(folder, &error))?;
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

    /// Refuses a folder that holds what another run has left, or somebody else: a model, a card, curves. Whatever a run writes there stands
    /// beside its own card, which is written first and [names](Run::name) the run. Writes nothing.
    #[expect(clippy::disallowed_methods, reason = "the run's own card")]
    pub fn is_own(folder: &Path, run: &Run) -> Result<()> {
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
        let mut left = RESULTS.iter().map(|name| (*name).to_owned()).chain(curves);
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
        let tried = tried.and_then(fs::remove_file);
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
    fn write_part(
        &self,
        write: impl FnOnce(&mut File) -> std::io::Result<()>,
    ) -> std::io::Result<PathBuf> {
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
        Ok(part)
    }

    #[expect(clippy::disallowed_methods, reason = "the run's own checkpoint")]
    fn replace(&self, bytes: &[u8]) -> std::io::Result<()> {
        fs::rename(self.write_part(|file| file.write_all(bytes))?, &self.path)?;
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

/// The card of a run.
const CARD: &str = "card.md";

/// What a run leaves beside its checkpoint, and the words of its curves.
const RESULTS: [&str; 4] = [CARD, "model.safetensors", "model.onnx", "curve.csv"];
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
#[path = "place_test.rs"]
mod tests;
