//! Programs as mechanisms: what a run can come to, and the attacks that are tried on it.
//!
//! Whatever can be seen of a run is part of its output: a number, but also that there was none, that it failed and how, that it took too long. A
//! program that crashes on one neighbour only is told apart by the crash.

use crate::Result;
use crate::attack::Target;
use crate::world::{Event, Shown};

/// Bins of the histogram attack: enough to find a bump, few enough to be seen often each.
const BINS: usize = 20;

/// What one run of a program came to.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// It printed a number, which may be infinite or none (`nan`).
    Number(f64),
    /// It printed something else.
    Text(String),
    /// It printed nothing.
    Silence,
    /// It ended with this exit code, which is not zero.
    Failed(i32),
    /// A signal ended it.
    Killed,
    /// It had not ended when its time was over.
    TimedOut,
}

impl Outcome {
    /// What was printed, by a run that ended well.
    pub fn printed(text: &str) -> Self {
        let text = text.trim();
        if text.is_empty() {
            Self::Silence
        } else {
            text.parse()
                .map_or_else(|_| Self::Text(text.to_owned()), Self::Number)
        }
    }

    /// The number, if it is one.
    pub fn number(&self) -> f64 {
        match self {
            Self::Number(number) => *number,
            _ => f64::NAN,
        }
    }

    /// Which kind of outcome it is, in words.
    pub fn kind(&self) -> String {
        match self {
            Self::Number(number) if number.is_nan() => "not a number".into(),
            Self::Number(number) if number.is_infinite() => "infinite".into(),
            Self::Number(_) => "a number".into(),
            Self::Text(_) => "text".into(),
            Self::Silence => "silence".into(),
            Self::Failed(code) => format!("exit code {code}"),
            Self::Killed => "ended by a signal".into(),
            Self::TimedOut => "out of time".into(),
        }
    }

    /// The kind, and the text if it is one.
    fn category(&self) -> String {
        match self {
            Self::Text(text) => format!("text {text:?}"),
            other => other.kind(),
        }
    }
}

impl Shown<Outcome> {
    /// The best of all attacks on programs: kinds and texts, half-lines, bins, single values and last binary digits of numbers. They are fitted
    /// to one part of what is shown and compared on the other: an attack with many choices looks good wherever it was fitted.
    pub fn program_event(&self, target: Target) -> Result<Event<Outcome>> {
        let (fitted, compared) = self.parts();
        let numbers = fitted.map(Outcome::number);
        let seen = |event: Event<f64>| event.of(Outcome::number);
        let values = numbers.cells("the number", target, |y: &f64| Value(*y));
        let events = vec![
            seen(numbers.half_line(target)),
            seen(numbers.bins(BINS, target)),
            seen(numbers.grain(target)),
            seen(values),
            fitted.cells("the outcome", target, Outcome::category),
        ];
        compared.best_of(events, target)
    }
}

/// A float with a total order, printed as a number.
#[derive(Clone, Copy)]
struct Value(f64);

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Value {}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{assert_false_alarms, coin, normal};
    use crate::world::Outputs;
    use crate::{Alpha, Group};
    use whit_core::Delta;

    fn lower(outputs: Outputs<Outcome>, level: f64) -> f64 {
        let (shown, held) = outputs.split();
        let event = shown.program_event(Target::PURE).expect("some events");
        held.count(&event)
            .epsilon_lower(
                Delta::ZERO,
                Group::ONE,
                Alpha::new(level).expect("in range"),
            )
            .expect("valid")
            .epsilon_lower()
    }

    #[test]
    fn what_is_printed_is_parsed() {
        assert_eq!(Outcome::printed(" 3.5\n"), Outcome::Number(3.5));
        assert_eq!(
            Outcome::printed("-1e400"),
            Outcome::Number(f64::NEG_INFINITY)
        );
        assert_eq!(Outcome::printed("yes\n"), Outcome::Text("yes".into()));
        assert_eq!(Outcome::printed(" \n"), Outcome::Silence);
        assert_eq!(Outcome::printed("nan").kind(), "not a number");
        assert!(Outcome::Failed(3).number().is_nan());
    }

    #[test]
    fn every_kind_of_outcome_is_evidence() {
        let usual = || Outcome::Number(1.0);
        for odd in [
            Outcome::Number(f64::NAN),
            Outcome::Number(f64::INFINITY),
            Outcome::Number(2.0),
            Outcome::Text("no".into()),
            Outcome::Silence,
            Outcome::Failed(1),
            Outcome::Killed,
            Outcome::TimedOut,
        ] {
            // One world does something odd half of the time.
            let mut flip = coin(1, 0.5);
            let outputs = Outputs::run(400, || if flip() { odd.clone() } else { usual() }, usual);
            let found = lower(outputs, 0.01);
            assert!(found > 2.0, "{odd:?}: {found}");
        }
        let outputs = Outputs::new(
            vec![Outcome::Text("yes".into()); 100],
            vec![Outcome::Text("no".into()); 100],
        );
        assert!(lower(outputs, 0.01) > 2.0);
    }

    /// Numbers that never come twice: an attack on single values fits them perfectly, and finds nothing.
    #[test]
    fn an_attack_that_only_fits_is_not_chosen() {
        let (mut one, mut other) = (normal(1), normal(2));
        let outputs = Outputs::run(
            1000,
            || Outcome::Number(100.0 * one()),
            || Outcome::Number(other()),
        );
        let found = lower(outputs, 0.01);
        assert!(found > 2.0, "{found}");
    }

    #[test]
    fn false_alarms_are_as_rare_as_promised() {
        assert_false_alarms(0.05, |seed| {
            let (mut one, mut other) = (normal(2 * seed), normal(2 * seed + 1));
            let rounded = |y: f64| {
                if y.abs() > 1.5 {
                    Outcome::Failed(1)
                } else {
                    Outcome::Number((y * 4.0).round())
                }
            };
            let outputs = Outputs::run(100, || rounded(one()), || rounded(other()));
            lower(outputs, 0.05) > 0.0
        });
    }
}
