//! Runs a program many times, on one of two files each time, and says what every run came to.
//!
//! No shell is involved. Runs on the two files come in pairs whose order is drawn by a coin, so that a machine that
//! becomes slower or warmer does so for both. Each run is a process group of its own, which is killed as a whole when its time is over.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use whit::core::{Bits, Entropy};
use whit::{Failure, OsEntropy};
use whit_audit::Outcome;

/// More than this of what a run prints is not read.
const BYTES_MAX: u64 = 16 << 20;
/// How much of what a failing program says on stderr is shown.
const COMPLAINT_MAX: usize = 400;
/// How long a process that has closed its output is left alone before it is looked at again.
const POLL: Duration = Duration::from_millis(1);
/// A line on the terminal this often.
const LINE_EVERY: Duration = Duration::from_millis(200);

/// What is run, and how.
pub(crate) struct Program {
    /// Its name and its arguments, in which `{}` stands for the file.
    pub(crate) words: Vec<OsString>,
    pub(crate) timeout: Duration,
    /// How many lines, each a run of its own, it prints. One number otherwise.
    pub(crate) batch: Option<usize>,
    /// How many run at the same time.
    pub(crate) jobs: usize,
}

/// How a process ended.
enum End {
    Exit(ExitStatus, Vec<u8>),
    TimedOut,
}

impl Program {
    /// Runs it `runs` times on each file. What comes back is in the order of the runs.
    pub(crate) fn run_on(
        &self,
        files: [&Path; 2],
        runs: usize,
    ) -> Result<[Vec<Outcome>; 2], Failure> {
        let order = order(runs)?;
        let names = names(files);
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let progress = Progress::new(2 * runs);
        let found: Mutex<Vec<Option<Vec<Outcome>>>> = Mutex::new(vec![None; 2 * runs]);
        let failure: Mutex<Option<Failure>> = Mutex::new(None);
        let work = || {
            while !stop.load(Ordering::Relaxed) {
                let Some(&(world, run)) = order.get(next.fetch_add(1, Ordering::Relaxed)) else {
                    return;
                };
                match self.once(files[world], &names) {
                    Ok(outcomes) => lock(&found)[world * runs + run] = Some(outcomes),
                    Err(error) => {
                        stop.store(true, Ordering::Relaxed);
                        *lock(&failure) = Some(error);
                    }
                }
                progress.step();
            }
        };
        thread::scope(|scope| {
            for _ in 0..self.jobs.min(2 * runs) {
                scope.spawn(work);
            }
        });
        progress.wipe();
        if let Some(failure) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(failure);
        }
        let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        let other = found.split_off(runs);
        Ok([found, other].map(|world| world.into_iter().flatten().flatten().collect()))
    }

    /// A first run on each file, which is not counted: a program that fails on both is a mistake of whoever asked, and is
    /// told with its own words.
    pub(crate) fn rehearse(&self, files: [&Path; 2]) -> Result<(), Failure> {
        let mut complaints = Vec::new();
        // Both files, whatever comes of the first: what a program leaves behind on its first run, it leaves behind for both.
        for file in files {
            let (end, complaint) = self.process(file, Stdio::piped())?;
            if let End::Exit(status, _) = end
                && !status.success()
            {
                complaints.push((status, complaint));
            }
        }
        let [(status, complaint), _] = &complaints[..] else {
            return Ok(());
        };
        let complaint: String = complaint.chars().take(COMPLAINT_MAX).collect();
        let reason = format!(
            "the program fails on both files ({status}): {}",
            complaint.trim()
        );
        Err(Failure::invalid(
            "program_fails",
            &reason,
            "give a command that works on both files; a failure on one of them only is evidence, and is counted",
        ))
    }

    fn once(&self, file: &Path, names: &[&str]) -> Result<Vec<Outcome>, Failure> {
        let (end, _) = self.process(file, Stdio::null())?;
        let printed = match (end, self.batch) {
            (End::Exit(status, printed), _) if status.success() => printed,
            (End::TimedOut, Some(lines)) => return Err(broken_batch("was out of time", lines)),
            (End::Exit(status, _), Some(lines)) => {
                return Err(broken_batch(&format!("failed ({status})"), lines));
            }
            (End::TimedOut, None) => return Ok(vec![Outcome::TimedOut]),
            (End::Exit(status, _), None) => {
                return Ok(vec![status.code().map_or(Outcome::Killed, Outcome::Failed)]);
            }
        };
        let printed = String::from_utf8_lossy(&printed);
        let Some(lines) = self.batch else {
            return Ok(vec![without_names(Outcome::printed(&printed), names)]);
        };
        let outcomes: Vec<Outcome> = printed
            .lines()
            .map(|line| without_names(Outcome::printed(line), names))
            .collect();
        if outcomes.len() == lines {
            Ok(outcomes)
        } else {
            let found = format!("printed {} lines", outcomes.len());
            Err(broken_batch(&found, lines))
        }
    }

    /// Runs one process to its end, or to the end of its time.
    fn process(&self, file: &Path, stderr: Stdio) -> Result<(End, String), Failure> {
        let deadline = Instant::now() + self.timeout;
        let mut command = self.command(file)?;
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr);
        own_group(&mut command);
        let mut child = command.spawn().map_err(|error| {
            let name = self.words[0].to_string_lossy();
            let reason = format!("the program {name} cannot be started: {error}");
            Failure::invalid(
                "program_not_started",
                &reason,
                "give the program's name or path after --, as you would type it without a shell",
            )
        })?;
        let printed = read(child.stdout.take());
        let complaint = read(child.stderr.take());
        let bytes = printed.recv_timeout(left(deadline));
        let status = bytes.is_ok().then(|| wait(&mut child, deadline)).flatten();
        let Some(status) = status else {
            end_group(&mut child);
            return Ok((End::TimedOut, String::new()));
        };
        let complaint = complaint.recv_timeout(left(deadline)).unwrap_or_default();
        let complaint = String::from_utf8_lossy(&complaint).into_owned();
        Ok((End::Exit(status, bytes.unwrap_or_default()), complaint))
    }

    fn command(&self, file: &Path) -> Result<Command, Failure> {
        let mut words = Vec::with_capacity(self.words.len());
        for word in &self.words {
            words.push(if word == "{}" {
                file.as_os_str().to_owned()
            } else if let (Some(text), Some(path)) = (word.to_str(), file.to_str()) {
                text.replace("{}", path).into()
            } else if word.to_string_lossy().contains("{}") {
                return Err(Failure::invalid(
                    "file_name",
                    "the name of a file is no text, and stands inside an argument",
                    "rename the file, or let {} be an argument of its own",
                ));
            } else {
                word.clone()
            });
        }
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        Ok(command)
    }
}

/// A run of a batch that gives one outcome in place of many would make the number of outcomes depend on the outcomes: their shares would then vary far
/// more than those of independent trials, and worlds that do not differ at all would be told apart.
fn broken_batch(found: &str, lines: usize) -> Failure {
    let reason = format!("a run of a batch {found} instead of printing {lines} lines");
    Failure::invalid(
        "broken_batch",
        &reason,
        "let every run print that many lines, or leave --batch out: single runs may fail, and failures are evidence then",
    )
}

/// The names of both files, with and without their folders, the longest first: one may be a part of another.
fn names(files: [&Path; 2]) -> Vec<&str> {
    let ends = files.map(|file| file.file_name().map(Path::new));
    let mut names: Vec<&str> = files
        .into_iter()
        .chain(ends.into_iter().flatten())
        .filter_map(Path::to_str)
        .collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    names
}

/// The files differ in their names too, which are nobody's record: a program that prints the name of its file is not told apart by it. Both files' names
/// are taken out of the text of every run, whichever file it read, so that this is the same function of both worlds and brings none apart.
fn without_names(outcome: Outcome, names: &[&str]) -> Outcome {
    match outcome {
        Outcome::Text(text) => {
            let blank = |text: String, name: &&str| text.replace(name, "{}");
            Outcome::Text(names.iter().fold(text, blank))
        }
        other => other,
    }
}

/// Each run once on each file, in pairs, the order within a pair by a coin.
fn order(runs: usize) -> Result<Vec<(usize, usize)>, Failure> {
    let mut bits = OsEntropy::new().open().map_err(|_| {
        Failure::bug(
            "entropy",
            "the operating system gave no entropy",
            "try again",
        )
    })?;
    let mut order = Vec::with_capacity(2 * runs);
    for run in 0..runs {
        let first = (bits.word() & 1) as usize;
        order.extend([(first, run), (1 - first, run)]);
    }
    Ok(order)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

/// Reads to the end, on a thread of its own: a full pipe would stop the program.
fn read(from: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel();
    if let Some(mut from) = from {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            // What cannot be read is as good as not printed.
            let _ = from.by_ref().take(BYTES_MAX).read_to_end(&mut bytes);
            let _ = io::copy(&mut from, &mut io::sink());
            let _ = send.send(bytes);
        });
    }
    receive
}

/// Its status, unless its time is over first. What it started and left behind is ended with it.
fn wait(child: &mut Child, deadline: Instant) -> Option<ExitStatus> {
    #[cfg(unix)]
    while !has_ended(child) {
        if Instant::now() >= deadline {
            return None;
        }
        thread::sleep(POLL);
    }
    // Nobody has asked for its status yet, so that its number, and its group's, is still its own.
    kill_group(child);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < deadline => thread::sleep(POLL),
            _ => return None,
        }
    }
}

#[cfg(unix)]
fn own_group(command: &mut Command) {
    std::os::unix::process::CommandExt::process_group(command, 0);
}

#[cfg(not(unix))]
fn own_group(_: &mut Command) {}

#[cfg(unix)]
fn pid(child: &Child) -> Option<rustix::process::Pid> {
    let raw = i32::try_from(child.id()).ok()?;
    rustix::process::Pid::from_raw(raw)
}

/// Has it ended? Does not take its status, which would give its number free.
#[cfg(unix)]
fn has_ended(child: &Child) -> bool {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    // Whoever cannot be asked is left to `try_wait`.
    pid(child).is_none_or(|pid| !matches!(waitid(WaitId::Pid(pid), options), Ok(None)))
}

#[cfg(unix)]
fn kill_group(child: &Child) {
    if let Some(group) = pid(child) {
        // If nobody is left to be ended, that is as well.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

#[cfg(not(unix))]
fn kill_group(_: &Child) {}

/// Ends the process and, where there are groups, whatever it started.
fn end_group(child: &mut Child) {
    kill_group(child);
    let _ = child.kill();
    let _ = child.wait();
}

/// How far the runs are, on stderr, if that is a terminal.
struct Progress {
    total: usize,
    done: AtomicUsize,
    started: Instant,
    shown: Mutex<Option<Instant>>,
    terminal: bool,
}

impl Progress {
    fn new(total: usize) -> Self {
        Self {
            total,
            done: AtomicUsize::new(0),
            started: Instant::now(),
            shown: Mutex::new(None),
            terminal: io::stderr().is_terminal(),
        }
    }

    fn step(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let mut shown = lock(&self.shown);
        if self.terminal && shown.is_none_or(|shown| shown.elapsed() >= LINE_EVERY) {
            *shown = Some(Instant::now());
            let each = self.started.elapsed().as_secs_f64() / done as f64;
            let left = each * (self.total - done) as f64;
            let total = self.total;
            // Talk that nobody hears is no reason to stop.
            let _ = write!(
                io::stderr(),
                "\r\x1b[Krun {done} of {total}, {left:.0} s left "
            );
        }
    }

    fn wipe(&self) {
        if lock(&self.shown).is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
