//! What is seen of a training run while it goes on: steps, epsilon so far, what the model does on public data, and on a terminal how long it
//! may still take.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use whit_learn::curve::{History, Quantity};
use whit_learn::data::Dataset;
use whit_learn::evaluate::Evaluation;
use whit_learn::{Plan, Trainer};

use crate::account::up;

/// How often loss, accuracy and epsilon so far are computed in a run.
pub(crate) const SHOWN: u64 = 20;

/// A line on the terminal this often.
const LINE_EVERY: Duration = Duration::from_millis(200);

/// What is seen of a run while it goes on.
pub(crate) struct Watch<'a> {
    plan: &'a Plan,
    public: Option<&'a Dataset>,
    /// What may be shown, by what the theorems say: bounds of the accountant, and public data.
    pub(crate) history: History,
    /// Epsilon so far of samplers whose price takes minutes is left out until the end.
    prices: bool,
    epsilon: Option<f64>,
    evaluation: Option<Evaluation>,
    terminal: bool,
    started: Option<(Instant, u64)>,
    shown: Option<Instant>,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(plan: &'a Plan, public: Option<&'a Dataset>) -> Self {
        Self {
            plan,
            public,
            history: History::new(),
            prices: matches!(
                plan.summary().sampler,
                "poisson" | "shuffled" | "all" | "cyclic_banded" | "cyclic_tree"
            ),
            epsilon: None,
            evaluation: None,
            terminal: io::stderr().is_terminal(),
            started: None,
            shown: None,
        }
    }

    pub(crate) fn after(&mut self, trainer: &Trainer) -> whit_learn::Result<()> {
        let (taken, steps) = (trainer.taken(), self.plan.steps());
        self.started.get_or_insert_with(|| (Instant::now(), taken));
        let share = |step: u64| u128::from(step) * u128::from(SHOWN) / u128::from(steps);
        if share(taken) > share(taken - 1) {
            if self.prices {
                self.epsilon = Some(self.plan.epsilon_after(taken)?.upper());
            }
            let public = self.public.map(|public| trainer.evaluate(public));
            self.evaluation = public.transpose()?;
            self.note(taken, self.epsilon, self.evaluation);
        }
        let due = self.shown.is_none_or(|shown| shown.elapsed() >= LINE_EVERY);
        if self.terminal && due {
            self.line(taken, steps);
        }
        Ok(())
    }

    pub(crate) fn note(&mut self, step: u64, epsilon: Option<f64>, evaluation: Option<Evaluation>) {
        let noted = [
            (Quantity::EpsilonUpper, "upper bound", epsilon),
            (
                Quantity::Accuracy,
                "test",
                evaluation.and_then(|found| found.accuracy),
            ),
            (Quantity::Loss, "test", evaluation.map(|found| found.loss)),
        ];
        for (quantity, name, value) in noted {
            if let Some(value) = value {
                self.history.note(quantity, name, step, value);
            }
        }
    }

    fn line(&mut self, taken: u64, steps: u64) {
        self.shown = Some(Instant::now());
        let mut line = format!("step {taken} of {steps}");
        if let Some(epsilon) = self.epsilon {
            line += &format!(", epsilon {} so far", up(epsilon, 3));
        }
        if let Some(accuracy) = self.evaluation.and_then(|found| found.accuracy) {
            line += &format!(", accuracy {accuracy:.3} on public data");
        }
        if let Some((start, first)) = self.started
            && taken > first
        {
            let each = start.elapsed().as_secs_f64() / (taken - first) as f64;
            line += &format!(", {} left", lasting(each * (steps - taken) as f64));
        }
        // Talk that nobody hears is no reason to stop.
        let _ = write!(io::stderr(), "\r\x1b[K{line} ");
    }

    pub(crate) fn wipe(&self) {
        if self.shown.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

fn lasting(seconds: f64) -> String {
    match seconds {
        ..90.0 => format!("{seconds:.0} s"),
        ..5400.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}
