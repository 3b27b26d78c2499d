//! How far an experiment is, on stderr: a bar if that is a terminal, and a line for each model that is finished.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::run::Trained;

/// The bar is drawn again this often.
const EVERY: Duration = Duration::from_millis(200);
/// The width of the bar.
const CELLS: u64 = 30;

/// All steps of all models of a command.
pub(crate) struct Progress {
    steps_total: u64,
    steps_done: u64,
    seeds: u64,
    accuracy: Option<f64>,
    start: Instant,
    shown: Option<Instant>,
    terminal: bool,
}

impl Progress {
    pub(crate) fn new(steps_total: u64, seeds: u64) -> Self {
        Self {
            steps_total,
            steps_done: 0,
            seeds,
            accuracy: None,
            start: Instant::now(),
            shown: None,
            terminal: io::stderr().is_terminal(),
        }
    }

    /// The last accuracy on public data.
    pub(crate) fn note(&mut self, accuracy: f64) {
        self.accuracy = Some(accuracy);
    }

    /// These steps were taken by a run before, and say nothing about how fast this one is.
    pub(crate) fn skip(&mut self, steps: u64) {
        self.steps_total = self.steps_total.saturating_sub(steps);
    }

    /// One more step was taken.
    pub(crate) fn step(&mut self, seed: u64, step: u64, steps: u64) {
        self.steps_done += 1;
        let due = self.shown.is_none_or(|shown| shown.elapsed() >= EVERY);
        if !self.terminal || !due {
            return;
        }
        self.shown = Some(Instant::now());
        let filled = self.steps_done * CELLS / self.steps_total.max(1);
        let bar: String = (0..CELLS)
            .map(|cell| if cell < filled { '#' } else { '-' })
            .collect();
        let mut line = format!(
            "[{bar}] seed {seed} ({} in all), step {step} of {steps}",
            self.seeds
        );
        if let Some(accuracy) = self.accuracy {
            line += &format!(", accuracy {accuracy:.4} on public data");
        }
        let each = self.start.elapsed().as_secs_f64() / self.steps_done as f64;
        let left = each * self.steps_total.saturating_sub(self.steps_done) as f64;
        line += &format!(", {:.0} min left", (left / 60.0).ceil());
        // Talk that nobody hears is no reason to stop.
        let _ = write!(io::stderr(), "\r\x1b[K{line} ");
    }

    /// A model is finished.
    pub(crate) fn finished(&mut self, setting: &str, trained: &Trained) {
        let wipe = if self.terminal { "\r\x1b[K" } else { "" };
        self.accuracy = None;
        let _ = writeln!(
            io::stderr(),
            "{wipe}{setting}, seed {}: accuracy {:.4} on public data, {:.0} s",
            trained.seed,
            trained.accuracy(),
            trained.seconds
        );
    }
}
