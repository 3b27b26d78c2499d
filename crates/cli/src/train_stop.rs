//! What becomes of a run that somebody stops: the step under way is finished, what was done is kept, and it is told how to go on.
//!
//! The first Ctrl-C or SIGTERM asks for that; the second ends the program at once and without a word, as any does before the first step and after the last. What was kept by
//! then is there, and the same command goes on with it. Shells see the exit code of the signal that has ended it for all of that, and only who was told that the run was stopped knows which steps are lost.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use whit::Failure;
use whit_learn::Trainer;
use whit_learn::checkpoint::{Place, Run};
use whit_learn::curve::History;

use crate::Format;
use crate::train_result::unwritable;

/// What has stopped a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// As `kill` sends it.
    Terminate,
}

impl Signal {
    const ALL: [Self; 2] = [Self::Interrupt, Self::Terminate];

    fn number(self) -> i32 {
        match self {
            Self::Interrupt => SIGINT,
            Self::Terminate => SIGTERM,
        }
    }

    /// As shells say it: 128 and the signal's number.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        }
    }
}

/// Hears signals as long as steps are taken.
pub(crate) struct Stop {
    /// The next signal ends the program.
    at_once: Arc<AtomicBool>,
    /// The number of the first signal; 0 before.
    first: Arc<AtomicUsize>,
}

impl Stop {
    pub(crate) fn listen() -> Result<Self, Failure> {
        let stop = Self {
            at_once: Arc::new(AtomicBool::new(false)),
            first: Arc::new(AtomicUsize::new(0)),
        };
        for signal in Signal::ALL {
            let (number, code) = (signal.number(), i32::from(signal.exit_code()));
            // In this order: the first signal finds the flag down, and raises it for the second.
            flag::register_conditional_shutdown(number, code, Arc::clone(&stop.at_once))
                .and_then(|_| flag::register_usize(number, Arc::clone(&stop.first), number as usize))
                .and_then(|_| flag::register(number, Arc::clone(&stop.at_once)))
                .map_err(|_| {
                    Failure::invalid(
                        "signals",
                        "this system does not let the program hear signals, so that a run could not be stopped in good order",
                        "run it where programs may handle SIGINT and SIGTERM",
                    )
                })?;
        }
        Ok(stop)
    }

    /// The signal that asks to stop, if one has come.
    pub(crate) fn asked(&self) -> Option<Signal> {
        let first = self.first.load(Ordering::SeqCst);
        Signal::ALL
            .into_iter()
            .find(|signal| usize::try_from(signal.number()) == Ok(first))
    }
}

impl Drop for Stop {
    /// Nobody asks any more, so that a signal must end the program by itself.
    fn drop(&mut self) {
        self.at_once.store(true, Ordering::SeqCst);
    }
}

/// A run that was stopped, in numbers that its checkpoint holds.
pub(crate) struct Stopped {
    signal: Signal,
    steps: u64,
    taken: u64,
    begun: u64,
    kept: u64,
    out: PathBuf,
}

impl Stopped {
    pub(crate) fn of(trainer: &Trainer, signal: Signal, out: &Path) -> Self {
        Self {
            signal,
            steps: trainer.plan().steps(),
            taken: trainer.taken(),
            begun: trainer.steps_begun(),
            kept: trainer.steps_kept(),
            out: out.to_owned(),
        }
    }

    /// People are told on stderr; programs get an object.
    pub(crate) fn show(&self, format: Format) -> String {
        let command = command();
        if format == Format::Json {
            return json!({
                "stopped": self.signal.word(),
                "steps": self.steps,
                "steps_begun": self.begun,
                "steps_kept": self.kept,
                "out": self.out.display().to_string(),
                "goes_on_with": command,
            })
            .to_string();
        }
        let mut text = format!(
            "whit: stopped by {} after step {} of {}; {} steps are kept in {}",
            self.signal.word(),
            self.taken,
            self.steps,
            self.kept,
            self.out.display()
        );
        if self.begun > self.taken {
            text += &format!(
                "\nwhit: the {} steps up to {} belong to an epoch that was dealt out in secret, and are lost",
                self.begun - self.taken,
                self.begun
            );
        }
        text += &match self.begun < self.steps {
            true => format!("\nwhit: to go on: {command}"),
            false => format!("\nwhit: no step is left; for the model as it is: {command}"),
        };
        // Talk that nobody hears is no reason to stop.
        let _ = writeln!(std::io::stderr(), "{text}");
        String::new()
    }
}

/// The command that was given, as a shell would take it again.
fn command() -> String {
    let words: Vec<String> = std::env::args_os()
        .map(|word| quoted(&word.to_string_lossy()))
        .collect();
    words.join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// What was seen of a run that has not ended, beside its checkpoint: bounds of the accountant, and what the model did on public data.
pub(crate) struct Notebook(PathBuf);

impl Notebook {
    pub(crate) fn beside(out: &Path, run: &Run) -> Self {
        Self(Place::file(out, run).with_extension("curve"))
    }

    /// Up to the step that the run goes on after. Without a file that can be read, curves begin there.
    #[expect(clippy::disallowed_methods, reason = "the run's own file")]
    pub(crate) fn read(&self, taken: u64) -> History {
        let text = std::fs::read_to_string(&self.0).ok();
        let history = text.and_then(|text| History::from_csv(&text, taken));
        history.unwrap_or_default()
    }

    /// What it holds are steps that were taken, and so were counted in the checkpoint before. If the machine stops, some of them may be lost; they were seen all the same.
    pub(crate) fn write(&self, history: &History) -> Result<(), Failure> {
        // Whole or not at all, and not through a link that somebody has put there.
        let part = self.part();
        let _ = std::fs::remove_file(&part);
        #[expect(clippy::disallowed_methods, reason = "the run's own file")]
        let file = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&part);
        file.and_then(|mut file| file.write_all(history.csv().as_bytes()))
            .map_err(|error| unwritable(&part, &error))?;
        std::fs::rename(&part, &self.0).map_err(|error| unwritable(&self.0, &error))
    }

    /// Is there something that the run's curves may not tell yet?
    pub(crate) fn is_there(&self) -> bool {
        self.0.exists()
    }

    /// Where it is written before it has its name.
    fn part(&self) -> PathBuf {
        self.0.with_extension("curve.part")
    }

    /// All of it is in the curves of the run now.
    pub(crate) fn remove(&self) {
        let _ = std::fs::remove_file(self.part());
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_given_again() {
        assert_eq!(quoted("train"), "train");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("$(x)"), "'$(x)'");
    }
}
