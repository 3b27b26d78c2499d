//! Programs as mechanisms: the attacks that are tried on what runs come to.
//!
//! Whatever can be seen of a run is part of its output: a number, but also that there was none, that it failed and how, that it took too long. A
//! program that crashes on one neighbour only is told apart by the crash.

use std::collections::BTreeMap;

use crate::Result;
use crate::attack::{SEEN_MIN, Target, Value};
use crate::outcome::{End, Outcome};
use crate::world::{Event, Shown, Tally};

/// A larger share of outcomes that no attack can look into, in either world, leaves nothing to be said of the rest: what leaks may be in them.
const BLIND_MAX: f64 = 0.1;
/// Of independent runs, so many in the first half and none in the second are rarer than `2^-32`.
const CHANGED_MIN: u64 = 32;

/// Bins of the histogram attack: enough to find a bump, few enough to be seen often each.
const BINS: usize = 20;

impl Shown<Outcome> {
    /// The best of all attacks on programs: kinds of outcomes and texts, half-lines, bins, single values and last binary digits of numbers. They are fitted
    /// to one part of what is shown and compared on the other: an attack with many choices looks good wherever it was fitted.
    pub fn program_event(&self, target: Target) -> Result<Event<Outcome>> {
        let (fitted, compared) = self.parts();
        let numbers = fitted.map(Outcome::number);
        let seen = |event: Event<f64>| event.of(Outcome::number);
        let values = numbers.cells("the number", target, |y: &f64| Value(*y));
        let mut events = vec![
            seen(numbers.half_line(target)),
            seen(numbers.bins(BINS, target)),
            seen(numbers.grain(target)),
            seen(values),
            fitted.cells("the outcome", target, Outcome::plain_kind),
            fitted.cells("the outcome", target, Outcome::category),
        ];
        // An event that nothing is in promises as much as one that everything is in, and is harder to understand.
        let some = |event: &Event<Outcome>| fitted.share(|outcome| event.contains(outcome)) > 0.0;
        if events.iter().any(some) {
            events.retain(some);
        }
        compared.best_of(events, target)
    }

    /// Why nothing can be said of a claim that these outcomes and this event do not refute, if that is so; `held` is what was counted of it.
    ///
    /// A program that always prints the same has been seen, and shows nothing. One that never prints the same twice, in a text, has not been seen: every set of texts that an attack could choose is new
    /// the next time.
    pub fn why_unjudged(&self, event: &Event<Outcome>, held: &Tally) -> Option<&'static str> {
        let (fitted, _) = self.parts();
        let mut seen = BTreeMap::new();
        for outcome in fitted.one().iter().chain(fitted.other()) {
            *seen.entry(outcome.category()).or_insert(0) += 1;
        }
        let often = |outcome: &Outcome| seen.get(&outcome.category()) >= Some(&SEEN_MIN);
        if self.share(|outcome| outcome.end() == End::TimedOut) > BLIND_MAX {
            return Some(
                "many runs were out of time, and what they would have come to was not seen. More time would help, or fewer runs at once.",
            );
        }
        if self.share(|outcome| outcome.is_text() && !often(outcome)) > BLIND_MAX {
            return Some(
                "much of the text that the program prints is new each time, or came too seldom to be compared. It would help to print one number and nothing else, or to make many more runs if texts do come again.",
            );
        }
        let mut shown = (0, 0);
        for outcome in self.one().iter().chain(self.other()) {
            shown.0 += u64::from(event.contains(outcome));
            shown.1 += 1;
        }
        let hits = held.likely().hits + held.unlikely().hits;
        let trials = held.likely().trials + held.unlikely().trials;
        let gone = shown.0 >= CHANGED_MIN && hits == 0;
        let came = shown.1 - shown.0 >= CHANGED_MIN && hits == trials;
        (gone || came).then_some(
            "what the first half of the runs showed did not come again in the second, so that they are not like each other. It would help to print nothing that changes over time.",
        )
    }

    /// The share of such outcomes, in the world where it is larger.
    fn share(&self, such: impl Fn(&Outcome) -> bool) -> f64 {
        let of = |world: &[Outcome]| {
            let count = world.iter().filter(|outcome| such(outcome)).count();
            count as f64 / world.len().max(1) as f64
        };
        of(self.one()).max(of(self.other()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::End;
    use crate::simulate::{assert_false_alarms, coin, normal};
    use crate::world::Outputs;
    use crate::{Alpha, Group};
    use whit_core::Delta;

    fn number(value: f64) -> Outcome {
        Outcome::new(End::Done, value.to_string().as_bytes())
    }

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
    fn every_kind_of_outcome_is_evidence() {
        let usual = || number(1.0);
        for odd in [
            number(f64::NAN),
            number(f64::INFINITY),
            number(2.0),
            Outcome::new(End::Done, b"no"),
            Outcome::new(End::Done, b"\xff"),
            Outcome::new(End::Done, &[b'x'; 1000]),
            Outcome::new(End::Done, b""),
            Outcome::new(End::Exit(1), b""),
            Outcome::new(End::Exit(1), b"1"),
            Outcome::new(End::Signal(9), b""),
            Outcome::new(End::TimedOut, b""),
        ] {
            // One world does something odd half of the time.
            let mut flip = coin(1, 0.5);
            let outputs = Outputs::run(400, || if flip() { odd.clone() } else { usual() }, usual);
            let found = lower(outputs, 0.01);
            assert!(found > 2.0, "{odd:?}: {found}");
        }
        for [one, other] in [
            [(End::Done, &b"yes"[..]), (End::Done, b"no")],
            [(End::Done, b"\xff"), (End::Done, b"\xfe")],
            [(End::Exit(3), b""), (End::Exit(4), b"")],
            [(End::Exit(3), b"1"), (End::Exit(4), b"1")],
            [(End::Signal(6), b""), (End::Signal(9), b"")],
            [(End::Exit(3), b"yes"), (End::Exit(3), b"no")],
        ] {
            let always = |(end, printed)| vec![Outcome::new(end, printed); 100];
            let found = lower(Outputs::new(always(one), always(other)), 0.01);
            assert!(found > 2.0, "{one:?} {other:?}: {found}");
        }
    }

    /// Why these worlds cannot be judged, in words.
    fn of_worlds(one: Vec<Outcome>, other: Vec<Outcome>) -> &'static str {
        let (shown, held) = Outputs::new(one, other).split();
        let event = shown.program_event(Target::PURE).expect("some events");
        let counts = held.count(&event);
        let why = shown.why_unjudged(&event, &counts.tallies()[0]);
        why.unwrap_or("nothing")
    }

    /// The same, of worlds that do not differ.
    fn unjudged(trials: usize, mut run: impl FnMut(usize) -> Outcome) -> &'static str {
        let (one, other) = (0..trials).map(|at| (run(at), run(at))).unzip();
        of_worlds(one, other)
    }

    /// A constant has been seen, and so have numbers and texts that come again; what is new each time has not.
    #[test]
    fn what_has_not_been_seen_is_not_judged() {
        let text = |text: String| Outcome::new(End::Done, text.as_bytes());
        let mut noise = normal(1);
        assert_eq!(unjudged(200, |_| text("always".into())), "nothing");
        assert_eq!(unjudged(200, |_| Outcome::new(End::Done, b"")), "nothing");
        assert_eq!(unjudged(200, |_| number(noise())), "nothing");
        let often = |at: usize| text(format!("answer {}", at / 2 % 5));
        assert_eq!(unjudged(200, often), "nothing");
        let new = |noise: f64| text(format!("answer {noise}"));
        assert!(unjudged(200, |_| new(noise())).contains("is new each time"));
        let long = |noise: f64| text(format!("{noise} {}", "x".repeat(5000)));
        assert!(unjudged(200, |_| long(noise())).contains("is new each time"));
        // A few of them hide nothing, and more do.
        let every = |n: usize| {
            let mut noise = normal(2);
            unjudged(600, move |at| {
                if at.is_multiple_of(n) {
                    new(noise())
                } else {
                    text("no".into())
                }
            })
        };
        assert_eq!(every(25), "nothing");
        assert!(every(5).contains("is new each time"));
        let late = |at: usize| {
            if at.is_multiple_of(2) {
                Outcome::new(End::TimedOut, b"")
            } else {
                number(1.0)
            }
        };
        assert!(unjudged(200, late).contains("out of time"));
        // Told apart at first, and the same later on.
        let world = |first: f64| [vec![number(first); 100], vec![number(2.0); 100]].concat();
        assert!(of_worlds(world(1.0), world(3.0)).contains("not like each other"));
    }

    /// Numbers that never come twice: an attack on single values fits them perfectly, and finds nothing.
    #[test]
    fn an_attack_that_only_fits_is_not_chosen() {
        let (mut one, mut other) = (normal(1), normal(2));
        let outputs = Outputs::run(1000, || number(100.0 * one()), || number(other()));
        let found = lower(outputs, 0.01);
        assert!(found > 2.0, "{found}");
    }

    #[test]
    fn false_alarms_are_as_rare_as_promised() {
        assert_false_alarms(0.05, |seed| {
            let (mut one, mut other) = (normal(2 * seed), normal(2 * seed + 1));
            let rounded = |y: f64| {
                if y.abs() > 1.5 {
                    Outcome::new(End::Exit(1), b"")
                } else {
                    number((y * 4.0).round())
                }
            };
            let outputs = Outputs::run(100, || rounded(one()), || rounded(other()));
            lower(outputs, 0.05) > 0.0
        });
    }
}
