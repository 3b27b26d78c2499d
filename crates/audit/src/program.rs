//! Programs as mechanisms: the attacks that are tried on what runs come to.
//!
//! Whatever can be seen of a run is part of its output: a number and how it is written, but also that there was none, that it failed and how, that it took too long. A
//! program that crashes on one neighbour only is told apart by the crash.
//!
//! What comes again can be compared, and numbers can. **Not seen** is the rest: a text that is new each time, or a kind of outcome that is rare, and what a run that was out of time would have come to.
//! Whatever it carries passes, so it is counted on both halves of the runs, and where it is more than one in a hundred nothing is concluded of the claim. Below that its share stands beside the verdict: it is
//! about the delta that may hide there.

use std::collections::BTreeMap;

use crate::Result;
use crate::attack::{SEEN_MIN, Target, Value};
use crate::outcome::{End, Outcome};
use crate::world::{Counts, Event, Held, Share, Shown, Tally, World};

/// A larger share of outcomes that no attack can look into, in either world, leaves nothing to be said of the rest: what leaks may be in them. A smaller one would need texts to come again
/// more often than the thousand runs that are usual show.
const UNSEEN_MAX: f64 = 0.01;
/// Of independent runs, so many in the first half and none in the second are rarer than `2^-32`.
const CHANGED_MIN: u64 = 32;

/// Bins of the histogram attack: enough to find a bump, few enough to be seen often each.
const BINS: usize = 20;

impl Shown<Outcome> {
    /// The best of all attacks on programs: half-lines, bins, single values and last binary digits of numbers, kinds of outcomes, and what was printed, its form and its length. They are fitted
    /// to one part of what is shown and compared on the other: an attack with many choices looks good wherever it was fitted.
    pub fn program_event(&self, target: Target) -> Result<Event<Outcome>> {
        let (fitted, compared) = self.parts();
        let numbers = fitted.map(Outcome::number);
        let seen = |event: Event<f64>| event.of(Outcome::number);
        let values = numbers.cells("the number", target, |y: &f64| Value(*y));
        // Of those that promise the same the last is taken: the first are about bytes, and say less to people.
        let mut events = vec![
            fitted.cells("what was printed", target, Outcome::bytes),
            fitted.cells("the number of bytes printed", target, Outcome::length),
            fitted.cells("the form of what was printed", target, Outcome::form),
            seen(numbers.half_line(target)),
            seen(numbers.bins(BINS, target)),
            seen(numbers.grain(target)),
            seen(values),
            fitted.cells("the outcome", target, Outcome::plain_kind),
            fitted.cells("the outcome", target, Outcome::category),
        ];
        // An event that nothing is in promises as much as one that everything is in, and is harder to understand.
        let some = |event: &Event<Outcome>| {
            let mut shown = fitted.one().iter().chain(fitted.other());
            shown.any(|outcome| event.contains(outcome))
        };
        if events.iter().any(some) {
            events.retain(some);
        }
        compared.best_of(events, target)
    }

    /// Counts the event on the other half, and says how much of both halves could not be compared.
    pub fn count(&self, event: &Event<Outcome>, held: Held<Outcome>) -> Seen {
        let (fitted, _) = self.parts();
        let mut seen = BTreeMap::new();
        for outcome in fitted.one().iter().chain(fitted.other()) {
            *seen.entry(outcome.category()).or_insert(0_u64) += 1;
        }
        seen.retain(|_, count| *count >= SEEN_MIN);
        let is_late = |outcome: &Outcome| outcome.end() == End::TimedOut;
        let late = Event::new("out of time", World::One, is_late);
        let new = Event::new("new, or seldom", World::One, move |outcome: &Outcome| {
            !is_late(outcome) && !seen.contains_key(&outcome.category())
        });
        let (counts, [held_late, held_new]) = held.count_beside(event, [&late, &new]);
        // In each world of each half.
        let shares = |event: &Event<Outcome>, held: &Tally| {
            let of = |world: &[Outcome]| {
                let count = world
                    .iter()
                    .filter(|outcome| event.contains(outcome))
                    .count();
                count as f64 / world.len().max(1) as f64
            };
            let of_held = |share: Share| share.hits as f64 / share.trials.max(1) as f64;
            let [one, other] = [held.likely(), held.unlikely()].map(of_held);
            [of(self.one()), of(self.other()), one, other]
        };
        let (late, new) = (shares(&late, &held_late), shares(&new, &held_new));
        let largest = |shares: &[f64]| shares.iter().copied().fold(0.0, f64::max);
        let both: Vec<f64> = late
            .iter()
            .zip(&new)
            .map(|(late, new)| late + new)
            .collect();
        let unseen = largest(&both);
        let why_unjudged = if unseen > UNSEEN_MAX {
            Some(if largest(&late) >= largest(&new) {
                LATE
            } else {
                NEW
            })
        } else {
            self.has_changed(event, &counts.tallies()[0])
                .then_some(CHANGED)
        };
        Seen {
            counts,
            unseen,
            why_unjudged,
        }
    }

    /// Did what was usual in the first half never come in the second, or what never came in the first always?
    fn has_changed(&self, event: &Event<Outcome>, held: &Tally) -> bool {
        let mut shown = (0, 0);
        for outcome in self.one().iter().chain(self.other()) {
            shown.0 += u64::from(event.contains(outcome));
            shown.1 += 1;
        }
        let hits = held.likely().hits + held.unlikely().hits;
        let trials = held.likely().trials + held.unlikely().trials;
        let gone = shown.0 >= CHANGED_MIN && hits == 0;
        let came = shown.1 - shown.0 >= CHANGED_MIN && hits == trials;
        gone || came
    }
}

const LATE: &str = "many runs were out of time, and what they would have come to was not seen. More time would help, or fewer runs at once.";
const NEW: &str = "much of what the program prints is no number, and is new each time or came too seldom to be compared. It would help to print one number and nothing else, or to make many more runs if texts do come again.";
const CHANGED: &str = "what the first half of the runs showed did not come again in the second, so that they are not like each other. It would help to print nothing that changes over time.";

/// What was counted of a program, and how much of it could not be compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    counts: Counts,
    unseen: f64,
    why_unjudged: Option<&'static str>,
}

impl Seen {
    /// What was counted of the event, on the half that nobody has looked at.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The share of runs that no attack could look into, in the world and in the half where it is largest.
    pub fn unseen(&self) -> f64 {
        self.unseen
    }

    /// Why nothing can be said of a claim that these outcomes do not refute, if that is so. It only takes acquittals back: a bound is true whatever was not seen.
    ///
    /// A program that always prints the same has been seen, and shows nothing. One that never prints the same twice, in a text, has not been seen: every set of texts that an attack could choose is new
    /// the next time.
    pub fn why_unjudged(&self) -> Option<&'static str> {
        self.why_unjudged
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
            [(End::Done, b"3"), (End::Done, b"3.0")],
            [(End::Done, b"yes"), (End::Done, b"yes\n")],
            [(End::Done, b""), (End::Done, b"\n")],
            [
                (End::Done, b"9007199254740992"),
                (End::Done, b"9007199254740993"),
            ],
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
        let seen = shown.count(&event, held);
        seen.why_unjudged().unwrap_or("nothing")
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
            unjudged(1200, move |at| {
                if at.is_multiple_of(n) {
                    new(noise())
                } else {
                    text("no".into())
                }
            })
        };
        assert_eq!(every(200), "nothing");
        assert!(every(50).contains("is new each time"));
        let late = |at: usize| {
            if at.is_multiple_of(2) {
                Outcome::new(End::TimedOut, b"")
            } else {
                number(1.0)
            }
        };
        assert!(unjudged(200, late).contains("out of time"));
        // Nobody looks at the second half but to count: what is new there has not been seen either.
        let later = |odd: Outcome| {
            let world = |odd| {
                [
                    vec![number(1.0); 200],
                    vec![odd; 20],
                    vec![number(1.0); 180],
                ]
                .concat()
            };
            of_worlds(world(odd), world(number(1.0)))
        };
        assert!(later(text("never before".into())).contains("new each time"));
        assert!(later(Outcome::new(End::TimedOut, b"")).contains("out of time"));
        assert!(later(Outcome::new(End::Exit(3), b"")).contains("new each time"));
        assert_eq!(later(number(2.0)), "nothing");
        // Told apart at first, and the same later on.
        let world = |first: f64| [vec![number(first); 100], vec![number(2.0); 100]].concat();
        assert!(of_worlds(world(1.0), world(3.0)).contains("not like each other"));
    }

    /// The same noise, which ends with another blank in the other world: no number and no length differs, and every outcome does.
    #[test]
    fn how_noise_is_written_is_evidence() {
        let (mut one, mut other) = (normal(1), normal(2));
        let written = |text: String| Outcome::new(End::Done, text.as_bytes());
        let outputs = Outputs::run(
            1000,
            || written(format!("{:.3} ", 1000.0 * one())),
            || written(format!("{:.3}\t", 1000.0 * other())),
        );
        let found = lower(outputs, 0.01);
        assert!(found > 2.0, "{found}");
    }

    /// The share that was not seen is said whatever the verdict.
    #[test]
    fn what_was_not_seen_is_counted_in_both_halves() {
        let world = |first: usize, second: usize| -> Vec<Outcome> {
            let half = |new: usize, from: usize| {
                (0..100).map(move |at| match at {
                    at if at < new => {
                        Outcome::new(End::Done, format!("new {}", from + at).as_bytes())
                    }
                    _ => number(1.0),
                })
            };
            half(first, 0).chain(half(second, 100)).collect()
        };
        for (one, other, expected) in [
            (world(0, 0), world(0, 0), 0.0),
            (world(0, 0), world(1, 0), 0.01),
            (world(0, 3), world(1, 0), 0.03),
            (world(2, 3), world(0, 4), 0.04),
        ] {
            let (shown, held) = Outputs::new(one, other).split();
            let event = shown.program_event(Target::PURE).expect("some events");
            let seen = shown.count(&event, held);
            assert_eq!(seen.unseen(), expected);
            assert_eq!(seen.why_unjudged().is_some(), expected > 0.01);
        }
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
