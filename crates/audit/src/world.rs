//! Outputs of two neighbouring worlds, and how an event may be chosen on them.
//!
//! **The trap.** A threshold that was chosen by looking at the outputs, and then counted on the same outputs, fits their noise:
//!   the bound that follows is too large more often than it says. Several published audits did so.
//! **The way out.** [`Outputs`] can only be split. What is [`Shown`] may be looked at, and events are chosen there; what is [`Held`]
//!   has no method that tells anything about it but to count, once, a list of events that are there before. Its level is divided
//!   by the length of that list (Bonferroni), which the counts remember. So the form without a correction cannot be written by mistake.
//! **What types cannot see.** Whoever has the outputs before they come here can look at them, and whoever has counts of many events can hand in those of
//!   one as if it had been fixed ([`Counts::of_fixed_event`]); an event may write down what it is asked about; and the largest of several bounds is no bound at their level, but for
//!   [`EpsilonBound::best_of`](crate::EpsilonBound::best_of). Two splits of the same outputs are two looks: for these there is [`multi_split`], which corrects for it.
//! **Proof.** Runs are independent, so the held ones are independent of the shown ones and of every event chosen by them: given the
//!   event, the held counts are binomial.

use std::fmt;

use crate::{Alpha, Error, Result};

/// Which of the two neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum World {
    /// The first.
    One,
    /// The other.
    Other,
}

/// An event: a yes or no to every output, and the world in which it is thought to be likelier.
///
/// A wrong guess of the world costs power and not validity. The complement is thought likelier in the other world, and
/// needs no test of its own: it follows from the same two bounds.
pub struct Event<T> {
    name: String,
    likelier_in: World,
    contains: Box<dyn Fn(&T) -> bool + Send + Sync>,
}

impl<T> Event<T> {
    /// An event with a name that people read.
    pub fn new(
        name: impl Into<String>,
        likelier_in: World,
        contains: impl Fn(&T) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            likelier_in,
            contains: Box::new(contains),
        }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The world in which it is thought to be likelier.
    pub fn likelier_in(&self) -> World {
        self.likelier_in
    }

    /// Is this output in it?
    pub fn contains(&self, output: &T) -> bool {
        (self.contains)(output)
    }

    /// The event that some function of the output is in this one.
    pub fn of<U: 'static>(self, map: impl Fn(&U) -> T + Send + Sync + 'static) -> Event<U>
    where
        T: 'static,
    {
        let Self {
            name,
            likelier_in,
            contains,
        } = self;
        Event::new(name, likelier_in, move |output| contains(&map(output)))
    }
}

impl<T> fmt::Debug for Event<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Event({:?}, {:?})", self.name, self.likelier_in)
    }
}

/// Outputs of independent runs in two neighbouring worlds. Nothing can be counted in them before they are split.
pub struct Outputs<T> {
    one: Vec<T>,
    other: Vec<T>,
}

/// Not the outputs: some of them may be held later.
impl<T> fmt::Debug for Outputs<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Outputs({} and {})", self.one.len(), self.other.len())
    }
}

impl<T> Outputs<T> {
    /// Outputs that were made elsewhere, in the order in which they were made.
    pub fn new(one: Vec<T>, other: Vec<T>) -> Self {
        Self { one, other }
    }

    /// Runs both worlds, in turns, so that what drifts over time drifts in both.
    pub fn run(
        trials_per_world: usize,
        mut one: impl FnMut() -> T,
        mut other: impl FnMut() -> T,
    ) -> Self {
        let (one, other) = (0..trials_per_world).map(|_| (one(), other())).unzip();
        Self { one, other }
    }

    /// The first half of each world is shown, the rest is held.
    pub fn split(self) -> (Shown<T>, Held<T>) {
        let (one, other) = (self.one.len() / 2, self.other.len() / 2);
        self.cut(one, other)
    }

    /// The first `shown` of each world are shown, the rest is held.
    pub fn split_at(self, shown: usize) -> Result<(Shown<T>, Held<T>)> {
        let least = self.one.len().min(self.other.len());
        if shown > least {
            return Err(Error::OutOfDomain {
                what: "number of shown outputs",
                given: shown as f64,
                domain: "at most the number of outputs of each world",
            });
        }
        Ok(self.cut(shown, shown))
    }

    /// All of them are held: for events that were fixed before there were outputs.
    pub fn hold(self) -> Held<T> {
        self.cut(0, 0).1
    }

    fn cut(mut self, one: usize, other: usize) -> (Shown<T>, Held<T>) {
        let held = Held {
            one: self.one.split_off(one),
            other: self.other.split_off(other),
        };
        let shown = Shown {
            one: self.one,
            other: self.other,
        };
        (shown, held)
    }
}

/// Outputs that may be looked at, to choose events. They are no evidence.
#[derive(Debug)]
pub struct Shown<T> {
    one: Vec<T>,
    other: Vec<T>,
}

impl<T> Shown<T> {
    /// Those of the first world.
    pub fn one(&self) -> &[T] {
        &self.one
    }

    /// Those of the other world.
    pub fn other(&self) -> &[T] {
        &self.other
    }

    /// Every other output, and the rest: to fit events on one part and to choose among them on the other.
    pub fn parts(&self) -> (Self, Self)
    where
        T: Clone,
    {
        let part = |from: usize| Self {
            one: self.one.iter().skip(from).step_by(2).cloned().collect(),
            other: self.other.iter().skip(from).step_by(2).cloned().collect(),
        };
        (part(0), part(1))
    }

    /// The same outputs, seen through a function.
    pub fn map<U>(&self, mut map: impl FnMut(&T) -> U) -> Shown<U> {
        Shown {
            one: self.one.iter().map(&mut map).collect(),
            other: self.other.iter().map(&mut map).collect(),
        }
    }
}

/// Outputs that nobody has looked at. All that can be done with them is to count, once.
pub struct Held<T> {
    one: Vec<T>,
    other: Vec<T>,
}

impl<T> fmt::Debug for Held<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Held({} and {})", self.one.len(), self.other.len())
    }
}

impl<T> Held<T> {
    /// Counts one event.
    pub fn count(self, event: &Event<T>) -> Counts {
        Counts {
            tallies: vec![self.tally(event)],
        }
    }

    /// Counts several events, which then share the level of whatever is concluded.
    pub fn count_each(self, events: &[Event<T>]) -> Result<Counts> {
        if events.is_empty() {
            return Err(Error::NoEvents);
        }
        let tallies = events.iter().map(|event| self.tally(event)).collect();
        Ok(Counts { tallies })
    }

    /// Counts one event, and beside it others, of which no bounds are made: they take no share of the level. What they are for is to take an acquittal back.
    pub(crate) fn count_beside<const N: usize>(
        self,
        event: &Event<T>,
        beside: [&Event<T>; N],
    ) -> (Counts, [Tally; N]) {
        let beside = beside.map(|event| self.tally(event));
        (self.count(event), beside)
    }

    /// Both worlds, to instruments of this crate that take each output once.
    pub(crate) fn into_worlds(self) -> (Vec<T>, Vec<T>) {
        (self.one, self.other)
    }

    fn tally(&self, event: &Event<T>) -> Tally {
        let count = |outputs: &[T]| Share {
            hits: outputs
                .iter()
                .filter(|output| event.contains(output))
                .count() as u64,
            trials: outputs.len() as u64,
        };
        let (one, other) = (count(&self.one), count(&self.other));
        let (likely, unlikely) = match event.likelier_in {
            World::One => (one, other),
            World::Other => (other, one),
        };
        Tally {
            event: event.name.clone(),
            likely,
            unlikely,
        }
    }
}

/// So many of so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// How often the event was seen.
    pub hits: u64,
    /// How often it was looked for.
    pub trials: u64,
}

/// What was counted of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    event: String,
    likely: Share,
    unlikely: Share,
}

impl Tally {
    /// The event's name.
    pub fn event(&self) -> &str {
        &self.event
    }

    /// In the world where it is thought to be likelier.
    pub fn likely(&self) -> Share {
        self.likely
    }

    /// In the other one.
    pub fn unlikely(&self) -> Share {
        self.unlikely
    }
}

/// Counts of events on outputs that were held: what all bounds on two worlds start from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    tallies: Vec<Tally>,
}

impl Counts {
    /// Counts of one event that were made elsewhere, say by a program that keeps no outputs. The event must have been
    /// fixed before any of these runs.
    pub fn of_fixed_event(event: impl Into<String>, likely: Share, unlikely: Share) -> Self {
        Self {
            tallies: vec![Tally {
                event: event.into(),
                likely,
                unlikely,
            }],
        }
    }

    /// What was counted, one tally for each event.
    pub fn tallies(&self) -> &[Tally] {
        &self.tallies
    }
}

/// The median of bounds over several random splits of the same outputs: less luck in one split, at a known price.
///
/// `choose` names events by what is shown of a split, and `bound` gives a lower bound from their counts on what is held, at *half* of `alpha`,
/// which it is handed. Neither sees what is held, and `choose` must not remember other splits, whose shown outputs are held in this one. The outputs
/// are gone afterwards: another split of them would be another look. **Guarantee.** What is returned is too
/// large with probability at most `alpha`. **Proof.** It is the `⌈s/2⌉`-th largest of `s` bounds: if it is too large, at
/// least half of them are. Each is, with probability at most `alpha/2`, so on average at most that share of them is, and by Markov's
/// inequality the share reaches one half with probability at most `alpha` \[MMB09\].
pub fn multi_split<T: Clone>(
    outputs: Outputs<T>,
    splits: usize,
    alpha: Alpha,
    bits: &mut impl whit_core::Bits,
    choose: impl Fn(&Shown<T>) -> Result<Vec<Event<T>>>,
    bound: impl Fn(&Counts, Alpha) -> Result<f64>,
) -> Result<f64> {
    if splits == 0 {
        return Err(Error::OutOfDomain {
            what: "number of splits",
            given: 0.0,
            domain: "at least one",
        });
    }
    let half = alpha.split(2)?;
    let mut bounds = Vec::with_capacity(splits);
    for _ in 0..splits {
        let mut shuffled = Outputs {
            one: outputs.one.clone(),
            other: outputs.other.clone(),
        };
        shuffle(&mut shuffled.one, bits);
        shuffle(&mut shuffled.other, bits);
        let (shown, held) = shuffled.split();
        let counts = held.count_each(&choose(&shown)?)?;
        bounds.push(bound(&counts, half)?);
    }
    bounds.sort_by(|a, b| b.total_cmp(a));
    Ok(bounds[splits.div_ceil(2) - 1])
}

/// Fisher and Yates. Any order is as valid as another, so that a bias of `2^-40` in the indices does no harm.
fn shuffle<T>(items: &mut [T], bits: &mut impl whit_core::Bits) {
    for last in (1..items.len()).rev() {
        items.swap(last, below(last as u64 + 1, bits) as usize);
    }
}

/// A number in `0..bound`, close to uniform. For splits and resamples only.
pub(crate) fn below<B: whit_core::Bits>(bound: u64, bits: &mut B) -> u64 {
    let words = 64_u32.div_ceil(B::WIDTH);
    let word = (0..words).fold(0_u64, |sum, _| {
        (if B::WIDTH < 64 { sum << B::WIDTH } else { 0 }) ^ bits.word()
    });
    ((u128::from(word) * u128::from(bound)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_testkit::SeededBits;

    fn at_least(threshold: i64) -> Event<i64> {
        Event::new(format!("at least {threshold}"), World::One, move |y| {
            *y >= threshold
        })
    }

    #[test]
    fn held_outputs_are_those_that_were_not_shown() {
        let outputs = Outputs::new((0..10).collect(), (10..17).collect());
        let (shown, held) = outputs.split();
        assert_eq!(
            (shown.one(), shown.other()),
            (&[0, 1, 2, 3, 4][..], &[10, 11, 12][..])
        );
        assert_eq!(format!("{held:?}"), "Held(5 and 4)");
        let outputs = Outputs::new(vec![4711], vec![]);
        assert_eq!(format!("{outputs:?}"), "Outputs(1 and 0)");
        let counts = held.count(&at_least(8));
        let tally = &counts.tallies()[0];
        assert_eq!(tally.likely(), Share { hits: 2, trials: 5 });
        assert_eq!(tally.unlikely(), Share { hits: 4, trials: 4 });
        assert!(Outputs::new(vec![1], vec![2, 3]).split_at(2).is_err());
    }

    #[test]
    fn worlds_take_turns() {
        let order = std::cell::RefCell::new(Vec::new());
        let world = |name: char| {
            let order = &order;
            move || order.borrow_mut().push(name)
        };
        drop(Outputs::run(3, world('a'), world('b')));
        assert_eq!(order.into_inner(), ['a', 'b', 'a', 'b', 'a', 'b']);
    }

    #[test]
    fn median_of_splits_is_the_lower_one() {
        let alpha = Alpha::new(0.1).expect("in range");
        let next = std::cell::Cell::new(0.0);
        let rising = |splits| {
            let outputs = Outputs::new(vec![1_i64; 10], vec![2; 10]);
            let choose = |_: &Shown<i64>| Ok(vec![at_least(1)]);
            multi_split(
                outputs,
                splits,
                alpha,
                &mut SeededBits::new(1),
                choose,
                |counts, level| {
                    assert_eq!(level.value(), 0.05);
                    assert_eq!(counts.tallies()[0].likely(), Share { hits: 5, trials: 5 });
                    next.set(next.get() + 1.0);
                    Ok(next.get())
                },
            )
        };
        // Of 1, 2, 3, 4 at least half are 3 or more.
        assert_eq!(rising(4), Ok(3.0));
        assert_eq!(rising(3), Ok(6.0));
        assert!(rising(0).is_err());
    }

    /// Randomized response at exactly what is claimed, split nine times over the same outputs: too large a bound as rarely as promised, and one that is of use.
    #[test]
    fn many_splits_alarm_as_rarely_as_promised() {
        use crate::Group;
        use crate::simulate::{assert_false_alarms, coin};
        use whit_core::Delta;
        let truth = |epsilon: f64| 1.0 / (1.0 + f64::exp(-epsilon));
        let bound = |epsilon: f64, trials: usize, seed: u64| {
            let (one, other) = (
                coin(2 * seed, truth(epsilon)),
                coin(2 * seed + 1, 1.0 - truth(epsilon)),
            );
            let yes =
                |_: &Shown<bool>| Ok(vec![Event::new("yes", World::One, |said: &bool| *said)]);
            let found = multi_split(
                Outputs::run(trials, one, other),
                9,
                Alpha::new(0.2).expect("in range"),
                &mut SeededBits::new(seed),
                yes,
                |counts, alpha| {
                    let bound = counts.epsilon_lower(Delta::ZERO, Group::ONE, alpha)?;
                    Ok(bound.epsilon_lower())
                },
            );
            found.expect("few trials")
        };
        assert_false_alarms(0.2, |seed| bound(1.0, 60, seed) > 1.0);
        let convicted = (0..200).filter(|seed| bound(2.0, 400, *seed) > 1.0).count();
        assert!(convicted > 190, "{convicted} of 200");
    }

    #[test]
    fn shuffles_keep_what_they_shuffle() {
        let mut items: Vec<u32> = (0..50).collect();
        shuffle(&mut items, &mut SeededBits::new(3));
        assert_ne!(items, (0..50).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn no_events_are_no_test() {
        let held = Outputs::new(vec![1_i64], vec![2]).hold();
        assert_eq!(held.count_each(&[]), Err(Error::NoEvents));
    }
}
