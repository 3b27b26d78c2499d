//! # What is known of an event, from both sides
//! [`price()`] gives what is charged. Here is the whole profile: [`delta()`] at an epsilon, [`epsilon()`] at a delta, each between a bound that
//! no mechanism of the event's description exceeds and one that some mechanism of it reaches; and the [`composition()`] that answers more.

use whit_core::{Delta, Epsilon, Event, Mechanism, Neighbours, round};

use crate::approximate::split;
use crate::best_of::{self, BEST_OF, Search};
use crate::bound::{PURE, ZCDP};
use crate::close::{idealize, slack};
use crate::event_steps::{Steps, steps};
use crate::lower::Side;
use crate::price::{by_notions, check_relation, price};
use crate::{Answer, Bracket, Composition, Error, Result, pure, zcdp};

/// The steps that price `event` from above, to be asked for more than one number. Refused for what has none, and for what is only close to
/// its steps.
pub fn composition(event: &Event) -> Result<Composition> {
    check_relation(event.mechanism(), event.neighbours())?;
    let (ideal, distance) = idealize(event.mechanism());
    match steps(&ideal, Side::Upper, event.neighbours()) {
        Some(found) if distance == 0.0 && found.distance == 0.0 => {
            Composition::new(event.neighbours(), found.steps)
        }
        _ => Err(Error::NoEngine {
            what: "an event of this kind",
        }),
    }
}

/// `ε(δ)` of an event, between proven bounds: no mechanism of this description has more, and some has no less than the lower bound. The
/// upper one is never above the [`price()`]. Where a part is only close to what was meant, nothing is claimed from below.
pub fn epsilon(event: &Event, delta: Delta) -> Result<Answer> {
    check_relation(event.mechanism(), event.neighbours())?;
    let (ideal, distance) = idealize(event.mechanism());
    let steps = |side| {
        steps(&ideal, side, event.neighbours())
            .filter(|found| distance == 0.0 && found.distance == 0.0 && !found.steps.is_empty())
    };
    let ask = |found: Steps| {
        let composition = Composition::new(event.neighbours(), found.steps).ok()?;
        composition.epsilon(delta.value()).ok()
    };
    let (upper, lower) = (steps(Side::Upper), steps(Side::Lower));
    // Where parameters are floats both sides are the same, and one question answers both: some engines take seconds for it.
    if upper == lower
        && delta != Delta::ZERO
        && let Some(answer) = upper.and_then(ask)
    {
        let known = by_notions(&ideal, distance, delta);
        return Ok(match known {
            Ok(known) if known.epsilon.value() < answer.bounds.upper() => {
                between(answer.bounds.lower(), known.epsilon, known.theorem)
            }
            _ => answer,
        });
    }
    let paid = price(event, delta)?;
    let least = match Search::of(&ideal) {
        // With a score that is always the same, the best run is any run.
        Some(search) if distance == 0.0 => search?.one().map_or(0.0, |run| {
            let run = Event::new(event.neighbours(), run.clone());
            epsilon(&run, delta).map_or(0.0, |answer| answer.bounds.lower())
        }),
        Some(_) => 0.0,
        None => lower
            .and_then(ask)
            .map_or(0.0, |answer| answer.bounds.lower()),
    };
    Ok(between(least, paid.epsilon, paid.theorem))
}

fn between(lower: f64, upper: Epsilon, theorem: &'static str) -> Answer {
    let upper = upper.value();
    Answer {
        bounds: Bracket::new(lower.min(upper), upper),
        engine: "price",
        theorem,
    }
}

/// `δ(ε)` of an event, between proven bounds: no mechanism of this description has more, and some has no less than the lower
/// bound.
pub fn delta(event: &Event, epsilon: Epsilon) -> Result<Answer> {
    check_relation(event.mechanism(), event.neighbours())?;
    let (ideal, distance) = idealize(event.mechanism());
    if let Some(search) = Search::of(&ideal) {
        let found = best_of::delta_upper(&search?, event.neighbours(), epsilon)?;
        let upper = round::add_up(found, slack(epsilon.value(), distance)).min(1.0);
        return Ok(Answer {
            bounds: Bracket::new(0.0, upper),
            engine: "profile",
            theorem: BEST_OF[usize::from(distance > 0.0)],
        });
    }
    let ask = |side: Side| -> Result<(Bracket, Answer)> {
        let unknown = || Error::NoEngine {
            what: "an event of this kind",
        };
        let Steps {
            steps,
            distance: further,
        } = steps(&ideal, side, event.neighbours()).ok_or_else(unknown)?;
        let slack = slack(epsilon.value(), round::add_up(distance, further));
        if steps.is_empty() {
            let nothing = Answer::nothing();
            return Ok((Bracket::new(0.0, slack.min(1.0)), nothing));
        }
        let answer = Composition::new(event.neighbours(), steps)?.delta(epsilon.value())?;
        let bounds = Bracket::new(
            round::sub_down(answer.bounds.lower(), slack).max(0.0),
            round::add_up(answer.bounds.upper(), slack).min(1.0),
        );
        Ok((bounds, answer))
    };
    // Each is an upper bound, and either may be the smaller one: no engine is at its best with losses next to nothing or beyond all measure.
    let (upper, answer) = match (
        ask(Side::Upper),
        delta_by_notions(&ideal, distance, epsilon),
    ) {
        (Ok(exact), Ok(known)) if known.0.upper() < exact.0.upper() => known,
        (Ok(exact), _) => exact,
        (Err(_), known) => known?,
    };
    let lower = ask(Side::Lower).map_or(0.0, |(bounds, _)| bounds.lower());
    Ok(Answer {
        bounds: Bracket::new(lower.min(upper.upper()), upper.upper()),
        ..answer
    })
}

/// Upper bounds of `δ(ε)` at several epsilons, for a mechanism that is no search. Engines are made once for all of them.
pub(crate) fn deltas_upper(
    mechanism: &Mechanism,
    neighbours: Neighbours,
    epsilons: &[f64],
) -> Result<Vec<f64>> {
    check_relation(mechanism, neighbours)?;
    let (ideal, distance) = idealize(mechanism);
    let composed = steps(&ideal, Side::Upper, neighbours);
    let distance = composed
        .as_ref()
        .map_or(distance, |found| round::add_up(distance, found.distance));
    let composed = composed.map(|found| match found.steps.is_empty() {
        true => Ok(vec![0.0; epsilons.len()]),
        false => Composition::new(neighbours, found.steps)?.deltas_upper(epsilons),
    });
    let mut found = Vec::with_capacity(epsilons.len());
    for (i, &epsilon) in epsilons.iter().enumerate() {
        let exact = match &composed {
            Some(Ok(deltas)) => Ok(round::add_up(deltas[i], slack(epsilon, distance)).min(1.0)),
            Some(Err(error)) => Err(error.clone()),
            None => Err(Error::NoEngine {
                what: "an event of this kind",
            }),
        };
        let known = delta_by_notions(&ideal, distance, Epsilon::new(epsilon)?);
        found.push(match (exact, known) {
            (Ok(exact), Ok(known)) => exact.min(known.0.upper()),
            (Ok(exact), Err(_)) => exact,
            (Err(_), Ok(known)) => known.0.upper(),
            (Err(error), Err(_)) => return Err(error),
        });
    }
    Ok(found)
}

/// `δ_A + δ(ε - ε_A) + (1 + e^ε)τ`: what parts with a delta of their own add by basic composition, the rest as pure or as concentrated
/// losses.
fn delta_by_notions(
    ideal: &Mechanism,
    distance: f64,
    epsilon: Epsilon,
) -> Result<(Bracket, Answer)> {
    let (rest, approximate) = split(ideal);
    let at = round::sub_down(epsilon.value(), approximate.epsilon);
    let pure = pure::epsilon(&rest).is_ok_and(|pure| pure.value() <= at);
    let rest = if pure {
        0.0
    } else {
        let rho = zcdp::rho(&rest)?;
        match Epsilon::new(at).map(|at| zcdp::delta(rho, at)) {
            Ok(Ok(delta)) => delta.value(),
            // Less than what the other parts need is left, or nothing can be proven: one is always true.
            _ => 1.0,
        }
    };
    let sum = round::add_up(rest, approximate.delta);
    let sum = round::add_up(sum, slack(epsilon.value(), distance)).min(1.0);
    let [basic, close] = [approximate.delta > 0.0, distance > 0.0].map(usize::from);
    let (engine, theorem) = if pure {
        ("pure", PURE[basic][close])
    } else {
        ("zcdp", ZCDP[basic][close])
    };
    let answer = Answer {
        engine,
        theorem,
        ..Answer::nothing()
    };
    Ok((Bracket::new(0.0, sum), answer))
}
