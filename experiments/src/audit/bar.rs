//! How far an audit is, on stderr: a bar with the time that is left, if that is a terminal.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// The bar is drawn again this often.
const EVERY: Duration = Duration::from_millis(500);
/// The width of the bar.
const CELLS: u64 = 30;

/// Trainings of a command.
pub(crate) struct Bar {
    total: u64,
    done: u64,
    start: Instant,
    shown: Option<Instant>,
    terminal: bool,
}

impl Bar {
    pub(crate) fn new(total: u64) -> Self {
        Self {
            total,
            done: 0,
            start: Instant::now(),
            shown: None,
            terminal: io::stderr().is_terminal(),
        }
    }

    /// Some more are done.
    pub(crate) fn step(&mut self, trainings: u64, what: &str) {
        self.done += trainings;
        let due = self.shown.is_none_or(|shown| shown.elapsed() >= EVERY);
        if !self.terminal || !due {
            return;
        }
        self.shown = Some(Instant::now());
        let filled = self.done * CELLS / self.total.max(1);
        let bar: String = (0..CELLS)
            .map(|cell| if cell < filled { '#' } else { '-' })
            .collect();
        let each = self.start.elapsed().as_secs_f64() / self.done.max(1) as f64;
        let left = each * self.total.saturating_sub(self.done) as f64;
        // Talk that nobody hears is no reason to stop.
        let _ = write!(
            io::stderr(),
            "\r\x1b[K[{bar}] {} of {} trainings, {what}, {:.0} min left ",
            self.done,
            self.total,
            (left / 60.0).ceil()
        );
    }

    /// A line that stays.
    pub(crate) fn say(&self, line: &str) {
        let wipe = if self.terminal { "\r\x1b[K" } else { "" };
        let _ = writeln!(io::stderr(), "{wipe}{line}");
    }

    /// For how long it runs.
    pub(crate) fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }
}
