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
    /// Epsilon so far of samplers whose price takes seconds (balls in bins) is left out until the end.
    prices: bool,
    epsilon: Option<f64>,
    evaluation: Option<Evaluation>,
    terminal: bool,
    started: Option<(Instant, u64)>,
    shown: Option<Instant>,
    diverged: bool,
}

/// What helps a run whose weights grow without end.
const SMALLER: &str = "the learning rate (rate in [optimizer]) is too large for this noise";

fn is_finite(parameters: &[f32]) -> bool {
    parameters.iter().all(|parameter| parameter.is_finite())
}

/// What should be known of a model that did not learn, by its weights, which are released, and by its loss on public data: nothing else is looked at.
pub(crate) fn diverged(
    parameters: &[f32],
    evaluation: Option<Evaluation>,
    classes: Option<u32>,
) -> Option<String> {
    if !is_finite(parameters) {
        return Some(format!(
            "weights are not finite, and the model is of no use: {SMALLER}"
        ));
    }
    let guess = f64::from(classes?).ln();
    let loss = evaluation?.loss;
    if !loss.is_finite() {
        return Some(format!("the loss on [test] is not finite: {SMALLER}"));
    }
    (loss > guess).then(|| {
        format!(
            "the loss on [test] is above {guess:.3}, that of a model that finds all classes equally likely: {SMALLER}, or more epsilon, a larger sampling rate or fewer steps are needed"
        )
    })
}

impl<'a> Watch<'a> {
    pub(crate) fn new(plan: &'a Plan, public: Option<&'a Dataset>) -> Self {
        Self {
            plan,
            public,
            history: History::new(),
            prices: matches!(
                plan.summary().sampler,
                "poisson" | "fixed_size" | "shuffled" | "all" | "cyclic_banded" | "cyclic_tree"
            ),
            epsilon: None,
            evaluation: None,
            terminal: io::stderr().is_terminal(),
            started: None,
            shown: None,
            diverged: false,
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
            self.warn(trainer, taken);
        }
        let due = self.shown.is_none_or(|shown| shown.elapsed() >= LINE_EVERY);
        if self.terminal && due {
            self.line(taken, steps);
        }
        Ok(())
    }

    /// Says once, on the way, that the weights are no numbers any more. They are releases, so that whoever sees this sees nothing new.
    fn warn(&mut self, trainer: &Trainer, taken: u64) {
        if self.diverged || is_finite(&trainer.parameters()) {
            return;
        }
        self.diverged = true;
        self.wipe();
        // Talk that nobody hears is no reason to stop.
        let _ = writeln!(
            io::stderr(),
            "whit: note: after step {taken} weights are not finite, and no step will mend that: {SMALLER}. Ctrl-C stops the run"
        );
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
        match self.epsilon {
            Some(epsilon) => line += &format!(", epsilon {} so far", up(epsilon, 3)),
            None if !self.prices => {
                let whole = up(self.plan.epsilon().upper(), 3);
                line += &format!(", epsilon {whole} in all (so far: too slow to price here)");
            }
            None => {}
        }
        if let Some(accuracy) = self.evaluation.and_then(|found| found.accuracy) {
            line += &format!(", public accuracy {accuracy:.3}");
        }
        if let Some((start, first)) = self.started
            && taken > first
        {
            let each = start.elapsed().as_secs_f64() / (taken - first) as f64;
            line += &format!(", {} left", lasting(each * (steps - taken) as f64));
        }
        // Talk that nobody hears is no reason to stop. (A line that was longer than the terminal would stay there.)
        let _ = write!(io::stderr(), "\r\x1b[K{line}");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_learn_is_told_by_weights_and_public_loss_alone() {
        let seen = |loss| {
            Some(Evaluation {
                loss,
                accuracy: None,
            })
        };
        assert!(diverged(&[f32::NAN], None, None).is_some_and(|it| it.contains("not finite")));
        assert!(diverged(&[1.0], seen(0.7), Some(2)).is_some_and(|it| it.contains("0.693")));
        assert_eq!(diverged(&[1.0], seen(0.6), Some(2)), None);
        assert_eq!(diverged(&[1.0], seen(9.0), None), None);
        assert_eq!(diverged(&[1.0], None, Some(2)), None);
    }
}
