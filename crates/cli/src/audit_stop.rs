//! What is under way when an audit is stopped.
//!
//! Each run of an audited program is a process group of its own, so that Ctrl-C on the terminal reaches whit alone. Whoever stops whit means the runs as well: they are ended, with all that they
//! started, and the folder of their files is removed, before whit ends by the same signal. **Claim.** None is left: runs are started and listed, and the list is gone through, under one lock, which is not given back once a signal has come. (A
//! program that moves to a session of its own leaves its group, and is not found; nor is anything if whit is killed by SIGKILL, which nobody hears.)

use std::fs::{self, DirBuilder};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How often a folder is tried to be removed, in which somebody may still write.
const REMOVALS: u32 = 100;
/// So long after each other.
const REMOVE_AGAIN: Duration = Duration::from_millis(10);

/// What is under way.
struct Running {
    /// The process groups, by the number of their first process.
    groups: Vec<u32>,
    /// The folder that everything was copied to.
    folder: Option<PathBuf>,
}

static RUNNING: Mutex<Running> = Mutex::new(Running {
    groups: Vec::new(),
    folder: None,
});

fn running() -> MutexGuard<'static, Running> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Running {
    fn remove_folder(&mut self) {
        let Some(folder) = self.folder.take() else {
            return;
        };
        for _ in 0..REMOVALS {
            if fs::remove_dir_all(&folder).is_ok() || !folder.exists() {
                return;
            }
            thread::sleep(REMOVE_AGAIN);
        }
    }
}

/// Makes a folder for its owner alone, which is removed when a signal ends whit. There is one at a time.
pub(crate) fn make_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let mut running = running();
    builder.create(folder)?;
    running.folder = Some(folder.to_owned());
    Ok(())
}

/// Removes it, with all that is in it.
pub(crate) fn remove_folder() {
    running().remove_folder();
}

/// Comes back unless a signal has come.
pub(crate) fn pass() {
    drop(running());
}

/// Starts a process in a group of its own, which is on the list from its first moment on.
pub(crate) fn start(command: &mut Command) -> std::io::Result<Child> {
    own_group(command);
    let mut running = running();
    let child = command.spawn()?;
    running.groups.push(child.id());
    Ok(child)
}

/// Takes a group off the list: before its status is asked for, which gives its number free for others.
pub(crate) fn forget(child: &Child) {
    running().groups.retain(|id| *id != child.id());
}

#[cfg(unix)]
fn own_group(command: &mut Command) {
    std::os::unix::process::CommandExt::process_group(command, 0);
}

#[cfg(not(unix))]
fn own_group(_: &mut Command) {}

/// Ends a group, if it is there.
#[cfg(unix)]
pub(crate) fn kill_group(id: u32) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let group = i32::try_from(id).ok().and_then(Pid::from_raw);
    if let Some(group) = group {
        // If nobody is left to be ended, that is as well.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

#[cfg(not(unix))]
pub(crate) fn kill_group(_: u32) {}

/// From here on, a signal that asks whit to end ends what is under way first, and says so. One that was ignored when whit was started, as `nohup` does with SIGHUP, stays ignored: whoever started it
/// means it to go on. Where signals cannot be heard of, all is as it was.
#[cfg(unix)]
pub(crate) fn watch() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::{emulate_default_handler, signal_name};
    use std::io::Write;

    let ignored = ignored();
    let heard = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];
    let heard = heard
        .into_iter()
        .filter(|signal| ignored >> (signal - 1) & 1 == 0);
    let Ok(mut signals) = Signals::new(heard) else {
        return;
    };
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            // Never given back: nothing is started after this.
            let mut running = running();
            running.groups.iter().for_each(|id| kill_group(*id));
            running.remove_folder();
            let name = signal_name(signal).unwrap_or("a signal");
            let count = running.groups.len();
            let were = if count == 1 { "run was" } else { "runs were" };
            // Talk that nobody hears is no reason to go on.
            let _ = writeln!(
                std::io::stderr(),
                "\nstopped by {name}: {count} {were} under way and {were_ended} ended; nothing was concluded",
                were_ended = if count == 1 { "was" } else { "were" },
            );
            let _ = emulate_default_handler(signal);
            // Only if the signal did not end us.
            std::process::exit(1);
        }
    });
}

/// The signals that are ignored, a bit for each from the first on: as Linux says it of every process. Elsewhere nobody says it without a call that this program does not make, and none is.
#[cfg(unix)]
fn ignored() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "a door asks its system")]
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(not(unix))]
pub(crate) fn watch() {}
