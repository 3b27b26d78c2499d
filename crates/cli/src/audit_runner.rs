//! Runs a program many times, on one of two files each time, and says what every run came to.
//!
//! No shell is involved. Runs on the two files come in pairs whose order is drawn by a coin, so that a machine that
//! becomes slower or warmer does so for both. Each run is a process group of its own, which is killed as a whole when it has ended or its time is over.

use std::ffi::OsString;
use std::io::{self, ErrorKind, IsTerminal, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use whit::core::{Bits, Entropy};
use whit::{Failure, OsEntropy};
use whit_audit::{End, Outcome, Printing, batches_repeat};

use crate::audit_neighbours::{Copy, Neighbours};
use crate::audit_stop::{self, forget, kill_group};

/// A batch may print so many MiB in a run.
const BATCH_MIB: usize = 16;
/// How many bytes are read at once.
const PIECE: usize = 1 << 16;
/// How much of what a failing program says on stderr is shown.
const COMPLAINT_MAX: usize = 400;
/// How long a process that has closed its output is left alone before it is looked at again. Most end at once.
const POLL: Duration = Duration::from_millis(1);
/// How long one that has not is left alone: it may end, and leave its output to a child.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How long the output of a process that has ended is waited for. All that it printed is there to be read; only who has left its group can still hold on to it.
const DRAIN: Duration = Duration::from_secs(1);
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

/// The SHA-256 of what a run printed.
pub(crate) type Digest = [u8; 32];
/// What a run came to, line by line if it is a batch, and the digest of all that it printed.
type Came = (Vec<Outcome>, Digest);

/// What one process came to.
struct Ran {
    end: End,
    printed: Printing,
    complaint: Printing,
}

impl Program {
    /// Runs it `runs` times on each file. What comes back is in the order of the runs. `rehearsed` is what was printed before they began.
    pub(crate) fn run_on(
        &self,
        neighbours: &Neighbours,
        runs: usize,
        rehearsed: [Digest; 2],
    ) -> Result<[Vec<Outcome>; 2], Failure> {
        let order = order(runs)?;
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let progress = Progress::new(2 * runs);
        let found: Mutex<Vec<Option<Came>>> = Mutex::new(vec![None; 2 * runs]);
        let failure: Mutex<Option<Failure>> = Mutex::new(None);
        let work = || {
            while !stop.load(Ordering::Relaxed) {
                let Some(&(world, run)) = order.get(next.fetch_add(1, Ordering::Relaxed)) else {
                    return;
                };
                match neighbours.copy(world).and_then(|copy| self.once(&copy)) {
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
            for started in 0..self.jobs.min(2 * runs) {
                // Fewer threads do the same work; without any there is nobody to do it.
                if let Err(error) = thread::Builder::new().spawn_scoped(scope, work) {
                    if started == 0 {
                        *lock(&failure) = Some(no_thread(&error));
                    }
                    break;
                }
            }
        });
        progress.wipe();
        if let Some(failure) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(failure);
        }
        let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        let other = found.split_off(runs);
        let mut worlds = [Vec::new(), Vec::new()];
        for ((world, found), rehearsed) in worlds.iter_mut().zip([found, other]).zip(rehearsed) {
            let mut digests = vec![rehearsed];
            for (outcomes, digest) in found.into_iter().flatten() {
                world.extend(outcomes);
                digests.push(digest);
            }
            if let Some(lines) = self.batch
                && batches_repeat(&digests, lines, world)
            {
                return Err(Failure::invalid(
                    "batch_repeats",
                    "runs of a batch print the same lines, so that these are no independent answers",
                    "let the program draw fresh noise in every run: no fixed seed, and no seed from the clock",
                ));
            }
        }
        Ok(worlds)
    }

    /// A first run on each file, which is not counted. A program that fails on both in the same way, or prints nothing on either, is a mistake of whoever asked: it would be told apart by nothing, and
    /// that would mean nothing. It is told with its own words. Gives the digests of what was printed.
    pub(crate) fn rehearse(&self, neighbours: &Neighbours) -> Result<[Digest; 2], Failure> {
        let run = |world| {
            let copy = neighbours.copy(world)?;
            self.process(&copy, self.printing(), Stdio::piped())
        };
        // Both files, whatever comes of the first: what a program leaves behind on its first run, it leaves behind for both.
        let [one, other] = [run(0), run(1)];
        let (one, other) = (one?, other?);
        let digests = [&one, &other].map(|ran| ran.printed.digest());
        if one.end != other.end {
            return Ok(digests);
        }
        let words = String::from_utf8_lossy(one.complaint.beginning()).into_owned();
        let words: String = words.trim().chars().take(COMPLAINT_MAX).collect();
        let words = if words.is_empty() {
            words
        } else {
            format!(": {words}")
        };
        let silent = |ran: &Ran| ran.printed.beginning().is_empty();
        let (code, reason, suggestion) = match one.end {
            End::Done if silent(&one) && silent(&other) => (
                "program_silent",
                format!("the program prints nothing on either file{words}"),
                "let it print its answer, one number, to stdout, and a word where it has none; what goes to stderr or to a file is not looked at",
            ),
            End::Done => return Ok(digests),
            End::TimedOut => (
                "program_out_of_time",
                format!(
                    "the program has not ended within {} s on either file{words}",
                    self.timeout.as_secs_f64()
                ),
                "give a program that prints its answer and ends, or more seconds with --timeout",
            ),
            end => (
                "program_fails",
                format!("the program fails on both files ({end}){words}"),
                "give a command that works on both files; a failure on one of them only, or failures that differ, are evidence, and are counted",
            ),
        };
        Err(Failure::invalid(code, &reason, suggestion))
    }

    /// Keeps what is needed of what it prints.
    fn printing(&self) -> Printing {
        match self.batch {
            Some(_) => Printing::keeping(BATCH_MIB << 20),
            None => Printing::default(),
        }
    }

    /// One run.
    fn once(&self, copy: &Copy) -> Result<Came, Failure> {
        let ran = self.process(copy, self.printing(), Stdio::null())?;
        let digest = ran.printed.digest();
        let Some(lines) = self.batch else {
            return Ok((vec![ran.printed.outcome(ran.end)], digest));
        };
        let printed = match ran.end {
            End::Done if ran.printed.is_whole() => ran.printed.beginning(),
            End::Done => {
                let found = format!("printed more than {BATCH_MIB} MiB");
                return Err(broken_batch(&found, lines));
            }
            End::TimedOut => return Err(broken_batch("was out of time", lines)),
            end => return Err(broken_batch(&format!("failed ({end})"), lines)),
        };
        let outcomes: Vec<Outcome> = printed
            .split_inclusive(|byte| *byte == b'\n')
            .map(|line| Outcome::new(End::Done, line))
            .collect();
        if outcomes.len() == lines {
            Ok((outcomes, digest))
        } else {
            let found = format!("printed {} lines", outcomes.len());
            Err(broken_batch(&found, lines))
        }
    }

    /// Runs one process to its end, or to the end of its time, and reads what it prints.
    fn process(&self, copy: &Copy, keep: Printing, stderr: Stdio) -> Result<Ran, Failure> {
        let deadline = Instant::now() + self.timeout;
        let mut command = self.command(&copy.file)?;
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr);
        let mut child = audit_stop::start(&mut command).map_err(|error| {
            let name = self.words[0].to_string_lossy();
            let reason = format!("the program {name} cannot be started: {error}");
            Failure::invalid(
                "program_not_started",
                &reason,
                "give the program's name or path after --, as you would type it without a shell",
            )
        })?;
        let readers = Reader::new(child.stdout.take(), keep).and_then(|printed| {
            let complaint = Reader::new(child.stderr.take(), Printing::default())?;
            Ok((printed, complaint))
        });
        let (printed, complaint) = match readers {
            Ok(readers) => readers,
            Err(error) => {
                finish(&mut child);
                return Err(no_thread(&error));
            }
        };
        let end = end(&mut child, deadline, &printed);
        let mut printed = printed.finish();
        // The name of its folder was drawn for this run alone: it says nothing of the file, and whoever prints it would never print the same twice.
        let zeros = "0".repeat(copy.word.len());
        printed.replace(copy.word.as_bytes(), zeros.as_bytes());
        Ok(Ran {
            end,
            printed,
            complaint: complaint.finish(),
        })
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
                    "the name of the folder for temporary files is no text, and stands inside an argument",
                    "name another folder in TMPDIR, or let {} be an argument of its own",
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

/// Coins of the operating system.
pub(crate) fn coins() -> Result<<OsEntropy as Entropy>::Bits, Failure> {
    OsEntropy::new().open().map_err(|_| {
        Failure::bug(
            "entropy",
            "the operating system gave no entropy",
            "try again",
        )
    })
}

/// Each run once on each file, in pairs, the order within a pair by a coin.
fn order(runs: usize) -> Result<Vec<(usize, usize)>, Failure> {
    let mut bits = coins()?;
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
struct Reader {
    read: Arc<Mutex<Printing>>,
    /// Nothing comes by this. It is closed with what is read.
    closed: Receiver<()>,
}

impl Reader {
    /// Fails if there is no room for a thread: those of runs that left somebody behind, who still holds on to their output, wait for it.
    fn new(from: Option<impl Read + Send + 'static>, keep: Printing) -> io::Result<Self> {
        let (open, closed) = mpsc::channel();
        let read = Arc::new(Mutex::new(keep));
        if let Some(mut from) = from {
            let read = Arc::clone(&read);
            thread::Builder::new().spawn(move || {
                let open: mpsc::Sender<()> = open;
                let mut piece = vec![0; PIECE];
                loop {
                    match from.read(&mut piece) {
                        Ok(0) => break lock(&read).close(),
                        Ok(bytes) => lock(&read).add(&piece[..bytes]),
                        Err(error) if error.kind() == ErrorKind::Interrupted => {}
                        // What cannot be read is as good as not printed, and what was before it may have been cut.
                        Err(_) => break,
                    }
                }
                drop(open);
            })?;
        }
        Ok(Self { read, closed })
    }

    /// Is all read? Waits so long.
    fn is_closed(&self, wait: Duration) -> bool {
        self.closed.recv_timeout(wait) == Err(RecvTimeoutError::Disconnected)
    }

    /// What was read of a process that has ended.
    fn finish(self) -> Printing {
        self.is_closed(DRAIN);
        // Whoever still holds on to it is not listened to any more.
        std::mem::take(&mut *lock(&self.read))
    }
}

/// Waits for a process to end, but no longer than for its time, and ends what it started and left behind.
fn end(child: &mut Child, deadline: Instant, printed: &Reader) -> End {
    let mut closed = false;
    let in_time = loop {
        if has_ended(child) {
            break true;
        }
        let left = left(deadline);
        if left.is_zero() {
            break false;
        }
        if closed {
            thread::sleep(left.min(POLL));
        } else {
            closed = printed.is_closed(left.min(LOOK_EVERY));
        }
    };
    if !in_time {
        finish(child);
        return End::TimedOut;
    }
    // Nobody has asked for its status yet, so that its number, and its group's, is still its own.
    kill_group(child.id());
    forget(child);
    child.wait().map_or(End::TimedOut, end_of)
}

/// Ends a process that has not ended, and what it started.
fn finish(child: &mut Child) {
    kill_group(child.id());
    forget(child);
    let _ = child.kill();
    let _ = child.wait();
}

fn no_thread(error: &io::Error) -> Failure {
    Failure::invalid(
        "no_thread",
        &format!("a run could not be listened to, as the system gives no more threads: {error}"),
        "let the program end what it starts: whoever moves to a session of its own and holds on to stdout is listened to for ever; or run fewer at the same time with --jobs",
    )
}

fn end_of(status: ExitStatus) -> End {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return End::Signal(signal);
    }
    match status.code() {
        Some(0) => End::Done,
        code => End::Exit(code.unwrap_or(-1)),
    }
}

#[cfg(unix)]
fn pid(child: &Child) -> Option<rustix::process::Pid> {
    let raw = i32::try_from(child.id()).ok()?;
    rustix::process::Pid::from_raw(raw)
}

/// Has it ended? Does not take its status, which would give its number free.
#[cfg(unix)]
fn has_ended(child: &mut Child) -> bool {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    // Whoever cannot be asked is left to `wait`.
    pid(child).is_none_or(|pid| !matches!(waitid(WaitId::Pid(pid), options), Ok(None)))
}

#[cfg(not(unix))]
fn has_ended(child: &mut Child) -> bool {
    matches!(child.try_wait(), Ok(Some(_)))
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
