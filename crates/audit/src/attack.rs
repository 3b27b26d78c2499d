//! Attacks: how to choose an event on shown outputs.
//!
//! Whatever is chosen here is valid, since it is counted on outputs that nobody has looked at; a good choice is a matter of power. Every
//! attack takes what is [`Shown`] and gives an [`Event`]; [`Shown::best_of`] keeps the one that promises most.
//!
//! - [`Shown::half_line`]: outputs from some point on. The best there is when the worlds are shifted against each other.
//! - [`Shown::by_cells`]: a set of cells of a histogram, those that are likelier in one world \[DWWZK18\].
//! - [`Shown::classifier`]: vectors, through a logistic regression, and then a half-line.
//!
//! **What an event promises.** The epsilon that counts like the shown ones would refute, with Wilson's interval \[Wil27\] in place of the exact
//! one, which is quick, smooth, and shy of rare events as the exact one is.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Debug};

use whit_core::Delta;

use crate::world::{Event, Share, Shown, World};
use crate::{Error, Group, Result};

/// Standard deviations in an interval: the level of half a percent on each side, as in a bound of 99 %.
const DEVIATIONS: f64 = 2.576;

/// A cell that was seen less often than this is not chosen: what happened to fall into it says nothing about the next time.
pub(crate) const SEEN_MIN: u64 = 5;

/// What an event is chosen for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// The delta of the claim.
    pub delta: Delta,
    /// In how many records the worlds differ.
    pub group: Group,
}

impl Target {
    /// Pure differential privacy between neighbours.
    pub const PURE: Self = Self {
        delta: Delta::ZERO,
        group: Group::ONE,
    };

    /// About the epsilon that such counts, or those of the complement, would refute. Below zero if the event is likelier
    /// in the wrong world.
    fn promise(&self, likely: Share, unlikely: Share) -> f64 {
        let k = f64::from(self.group.records());
        let slack = self.delta.value() * k;
        let (low, high) = (wilson(likely, -DEVIATIONS), wilson(unlikely, DEVIATIONS));
        let of = |p: f64, q: f64| {
            if p > slack {
                libm::log((p - slack) / q.max(1e-300)) / k
            } else {
                f64::NEG_INFINITY
            }
        };
        of(low, high).max(of(1.0 - high, 1.0 - low))
    }
}

/// One end of Wilson's interval.
fn wilson(share: Share, deviations: f64) -> f64 {
    if share.trials == 0 {
        return if deviations > 0.0 { 1.0 } else { 0.0 };
    }
    let n = share.trials as f64;
    let p = share.hits as f64 / n;
    let square = deviations * deviations;
    let spread = deviations * (p * (1.0 - p) / n + square / (4.0 * n * n)).sqrt();
    ((p + square / (2.0 * n) + spread) / (1.0 + square / n)).clamp(0.0, 1.0)
}

impl<T> Shown<T> {
    fn shares(&self, hits: (u64, u64), likelier_in: World) -> (Share, Share) {
        let one = Share {
            hits: hits.0,
            trials: self.one().len() as u64,
        };
        let other = Share {
            hits: hits.1,
            trials: self.other().len() as u64,
        };
        match likelier_in {
            World::One => (one, other),
            World::Other => (other, one),
        }
    }

    /// What this event promises, by the shown outputs.
    pub fn promise(&self, event: &Event<T>, target: Target) -> f64 {
        let count = |outputs: &[T]| outputs.iter().filter(|y| event.contains(y)).count() as u64;
        let hits = (count(self.one()), count(self.other()));
        let (likely, unlikely) = self.shares(hits, event.likelier_in());
        target.promise(likely, unlikely)
    }

    /// The event that promises most.
    pub fn best_of(&self, events: Vec<Event<T>>, target: Target) -> Result<Event<T>> {
        events
            .into_iter()
            .map(|event| (self.promise(&event, target), event))
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, event)| event)
            .ok_or(Error::NoEvents)
    }

    /// The set of cells that promises most. `cell` says in which cell an output lies; cells that were not seen are not in the event.
    ///
    /// It remembers what it was fitted to: what it promises *there* is too much, and an event that was chosen by such a promise wastes what is held. So it is for this crate only, and
    /// others have [`by_cells`](Self::by_cells), which compares on outputs that it was not fitted to.
    pub(crate) fn cells<K: Ord + Clone + Debug + Send + Sync + 'static>(
        &self,
        what: &str,
        target: Target,
        cell: impl Fn(&T) -> K + Send + Sync + 'static,
    ) -> Event<T> {
        let mut counts: BTreeMap<K, (u64, u64)> = BTreeMap::new();
        for output in self.one() {
            counts.entry(cell(output)).or_default().0 += 1;
        }
        for output in self.other() {
            counts.entry(cell(output)).or_default().1 += 1;
        }
        let (all_one, all_other) = (self.one().len() as f64, self.other().len() as f64);
        let often = |seen: &(K, (u64, u64))| seen.1.0 + seen.1.1 >= SEEN_MIN;
        let mut order: Vec<(K, (u64, u64))> = counts.into_iter().filter(often).collect();
        // Half a hit more in each world: a cell that was seen once is no certainty.
        let ratio = |counts: (u64, u64)| {
            (counts.0 as f64 + 0.5) * (all_other + 1.0)
                / ((counts.1 as f64 + 0.5) * (all_one + 1.0))
        };
        order.sort_by(|a, b| ratio(b.1).total_cmp(&ratio(a.1)));
        // Every beginning of the order is likelier in the first world, and its rest in the other [Din67].
        let mut best = (f64::NEG_INFINITY, 0, World::One);
        for likelier_in in [World::One, World::Other] {
            let mut hits = (0, 0);
            let mut step = |at: usize, entry: &(K, (u64, u64))| {
                hits.0 += entry.1.0;
                hits.1 += entry.1.1;
                let (likely, unlikely) = self.shares(hits, likelier_in);
                let promise = target.promise(likely, unlikely);
                if promise > best.0 {
                    best = (promise, at + 1, likelier_in);
                }
            };
            match likelier_in {
                World::One => order.iter().enumerate().for_each(|(at, e)| step(at, e)),
                World::Other => order
                    .iter()
                    .rev()
                    .enumerate()
                    .for_each(|(at, e)| step(at, e)),
            }
        }
        let (_, count, likelier_in) = best;
        if likelier_in == World::Other {
            order.reverse();
        }
        let chosen: BTreeSet<K> = order.into_iter().take(count).map(|(key, _)| key).collect();
        let name = match chosen.first() {
            None => format!("{what} is one of none, as none was seen often"),
            Some(only) if chosen.len() == 1 => format!("{what} is {only:?}"),
            Some(first) if chosen.len() <= 3 => {
                let rest: Vec<String> = chosen.iter().skip(1).map(|k| format!("{k:?}")).collect();
                format!("{what} is {first:?} or {}", rest.join(" or "))
            }
            _ => format!("{what} is one of {} values", chosen.len()),
        };
        Event::new(name, likelier_in, move |output| {
            chosen.contains(&cell(output))
        })
    }
}

impl<T: Clone + 'static> Shown<T> {
    /// A set of cells, fitted to one part of these outputs and kept only if it promises something on the other; otherwise an event that nothing is in.
    pub fn by_cells<K: Ord + Clone + Debug + Send + Sync + 'static>(
        &self,
        what: &str,
        target: Target,
        cell: impl Fn(&T) -> K + Send + Sync + 'static,
    ) -> Event<T> {
        let (fitted, compared) = self.parts();
        let event = fitted.cells(what, target, cell);
        if compared.promise(&event, target) > 0.0 {
            return event;
        }
        Event::new(format!("{what} is none"), World::One, |_| false)
    }
}

impl Shown<f64> {
    /// The half-line that promises most. What is no number lies in none.
    pub fn half_line(&self, target: Target) -> Event<f64> {
        let mut all: Vec<(f64, bool)> = self
            .one()
            .iter()
            .map(|y| (*y, true))
            .chain(self.other().iter().map(|y| (*y, false)))
            .filter(|(y, _)| !y.is_nan())
            .collect();
        all.sort_by(|a, b| b.0.total_cmp(&a.0));
        let total = all.iter().fold((0, 0), |sum: (u64, u64), (_, is_one)| {
            (sum.0 + u64::from(*is_one), sum.1 + u64::from(!*is_one))
        });
        // (promise, threshold, from here up?, likelier in)
        let mut best = (f64::NEG_INFINITY, 0.0, true, World::One);
        let mut above = (0, 0);
        for (at, (y, is_one)) in all.iter().enumerate() {
            above = (above.0 + u64::from(*is_one), above.1 + u64::from(!*is_one));
            let own = (u64::from(*is_one), u64::from(!*is_one));
            // Only between different values is there a place for a threshold.
            if all.get(at + 1).is_none_or(|next| next.0 < *y) {
                for likelier_in in [World::One, World::Other] {
                    let (likely, unlikely) = self.shares(above, likelier_in);
                    let promise = target.promise(likely, unlikely);
                    if promise > best.0 {
                        best = (promise, *y, true, likelier_in);
                    }
                }
            }
            if at == 0 || all[at - 1].0 > *y {
                let below = (total.0 + own.0 - above.0, total.1 + own.1 - above.1);
                for likelier_in in [World::One, World::Other] {
                    let (likely, unlikely) = self.shares(below, likelier_in);
                    let promise = target.promise(likely, unlikely);
                    if promise > best.0 {
                        best = (promise, *y, false, likelier_in);
                    }
                }
            }
        }
        let (_, threshold, up, likelier_in) = best;
        if up {
            Event::new(format!("at least {threshold}"), likelier_in, move |y| {
                *y >= threshold
            })
        } else {
            Event::new(format!("at most {threshold}"), likelier_in, move |y| {
                *y <= threshold
            })
        }
    }

    /// A histogram of about `count` bins with equally many outputs each. As [`cells`](Self::cells).
    pub(crate) fn bins(&self, count: usize, target: Target) -> Event<f64> {
        let mut all: Vec<f64> = self.one().iter().chain(self.other()).copied().collect();
        all.retain(|y| !y.is_nan());
        all.sort_by(f64::total_cmp);
        let mut edges: Vec<f64> = (1..count)
            .filter_map(|bin| all.get(bin * all.len() / count).copied())
            .collect();
        edges.dedup();
        self.cells("the bin", target, move |y: &f64| {
            if y.is_nan() {
                return Bin::NoNumber;
            }
            let bin = edges.partition_point(|edge| edge <= y);
            let from = bin.checked_sub(1).and_then(|before| edges.get(before));
            Bin::Between(
                Value(from.copied().unwrap_or(f64::NEG_INFINITY)),
                Value(edges.get(bin).copied().unwrap_or(f64::INFINITY)),
            )
        })
    }

    /// The place of the last binary digit: what floating-point noise gives away \[Mir12\]. A sum has no finer digits than the coarser of its
    /// two summands, so that some outputs of one world are impossible in the other.
    pub(crate) fn grain(&self, target: Target) -> Event<f64> {
        self.cells("the last binary digit", target, |y: &f64| last_digit(*y))
    }
}

/// A float with a total order, printed as a number.
#[derive(Clone, Copy)]
pub(crate) struct Value(pub(crate) f64);

impl Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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

/// A bin of a histogram, printed in words.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Bin {
    /// From the first on, and below the second.
    Between(Value, Value),
    /// What is no number lies in no bin, and has one of its own.
    NoNumber,
}

impl Debug for Bin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNumber => f.write_str("that of what is no number"),
            Self::Between(Value(f64::NEG_INFINITY), Value(f64::INFINITY)) => {
                f.write_str("that of all numbers")
            }
            Self::Between(Value(f64::NEG_INFINITY), to) => write!(f, "below {to:?}"),
            Self::Between(from, Value(f64::INFINITY)) => write!(f, "from {from:?} on"),
            Self::Between(from, to) => write!(f, "from {from:?} to {to:?}"),
        }
    }
}

/// The place of a last binary digit, printed as a power of two.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LastDigit {
    Power(i32),
    /// Zero, infinities and what is no number have no last digit.
    None,
}

impl Debug for LastDigit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Power(power) => write!(f, "2^{power}"),
            Self::None => f.write_str("none, as of zero, infinity or no number"),
        }
    }
}

fn last_digit(y: f64) -> LastDigit {
    if y == 0.0 || !y.is_finite() {
        return LastDigit::None;
    }
    let bits = y.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i32;
    let mantissa = (bits & ((1 << 52) - 1)) | if exponent == 0 { 0 } else { 1 << 52 };
    LastDigit::Power(exponent.max(1) - 1075 + mantissa.trailing_zeros() as i32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{assert_false_alarms, coin, normal};
    use crate::world::Outputs;
    use crate::{Alpha, EpsilonBound};

    fn alpha(value: f64) -> Alpha {
        Alpha::new(value).expect("in range")
    }

    fn laplace(seed: u64, epsilon: f64) -> impl FnMut() -> f64 {
        let mut sign = coin(2 * seed, 0.5);
        let mut uniform = normal(2 * seed + 1);
        move || {
            // The sum of two squared normals is exponential.
            let (a, b) = (uniform(), uniform());
            (a * a + b * b) / 2.0 / epsilon * if sign() { 1.0 } else { -1.0 }
        }
    }

    fn audit(
        outputs: Outputs<f64>,
        level: f64,
        attack: impl Fn(&Shown<f64>) -> Event<f64>,
    ) -> EpsilonBound {
        let (shown, held) = outputs.split();
        held.count(&attack(&shown))
            .epsilon_lower(Delta::ZERO, Group::ONE, alpha(level))
            .expect("valid")
    }

    fn shifted(epsilon: f64, trials: usize, seed: u64) -> Outputs<f64> {
        let (mut one, mut other) = (laplace(2 * seed, epsilon), laplace(2 * seed + 1, epsilon));
        Outputs::run(trials, || one() + 1.0, &mut other)
    }

    #[test]
    fn attacks_find_what_is_there_and_no_more() {
        let half_line = |shown: &Shown<f64>| shown.half_line(Target::PURE);
        let bins = |shown: &Shown<f64>| shown.bins(20, Target::PURE);
        for seed in 0..3 {
            let found = audit(shifted(1.0, 40_000, seed), 1e-3, half_line);
            assert!(
                found.epsilon_lower() > 0.85 && found.epsilon_lower() < 1.0,
                "{found:?}"
            );
            let found = audit(shifted(1.0, 40_000, seed), 1e-3, bins);
            assert!(
                found.epsilon_lower() > 0.8 && found.epsilon_lower() < 1.0,
                "{found:?}"
            );
        }
        assert_false_alarms(0.05, |seed| {
            audit(shifted(1.0, 300, seed), 0.05, half_line).epsilon_lower() > 1.0
        });
        assert_false_alarms(0.05, |seed| {
            audit(shifted(0.0 + 1e-9, 300, seed), 0.05, bins).epsilon_lower() > 1e-9
        });
    }

    /// The trap that the types close: the same choice, counted on the outputs that it was made on.
    #[test]
    fn counting_where_one_looked_would_exaggerate() {
        let (mut alarms, mut honest) = (0, 0);
        for seed in 0..1000 {
            // No difference at all between the worlds.
            let (mut one, mut other) = (normal(2 * seed), normal(2 * seed + 1));
            let mut outputs =
                || -> (Vec<f64>, Vec<f64>) { (0..150).map(|_| (one(), other())).unzip() };
            let (ones, others) = outputs();
            let again = Outputs::new(ones.clone(), others.clone());
            let (shown, _) = Outputs::new(ones, others).split_at(150).expect("as many");
            let event = shown.half_line(Target::PURE);
            let (fresh_ones, fresh_others) = outputs();
            let fresh = Outputs::new(fresh_ones, fresh_others);
            let alarm = |outputs: Outputs<f64>| {
                let counts = outputs.hold().count(&event);
                let bound = counts.epsilon_lower(Delta::ZERO, Group::ONE, alpha(0.05));
                u32::from(bound.expect("valid").epsilon_lower() > 0.0)
            };
            alarms += alarm(again);
            honest += alarm(fresh);
        }
        assert!(
            alarms > 60 && honest < 50 && alarms > 2 * honest,
            "{alarms} of 1000 where one looked, {honest} on fresh outputs, at 5 %"
        );
    }

    /// A value for each output, the same world twice: what was fitted remembers all of it, and what is compared elsewhere finds nothing.
    #[test]
    fn cells_that_remember_single_values_are_not_chosen() {
        let one: Vec<i64> = (0..4000).map(|at| at / 16).collect();
        let other: Vec<i64> = (0..4000).map(|at| 1000 + at / 16).collect();
        let (mixed, again): (Vec<i64>, Vec<i64>) =
            one.iter().zip(&other).map(|(a, b)| (*a, *b)).unzip();
        // Each value is seen often, and in one world only, by those that are fitted; the others have values of their own.
        let number = |at: usize, value: i64| value + if at.is_multiple_of(2) { 0 } else { 10_000 };
        let world = |values: Vec<i64>| {
            values
                .into_iter()
                .enumerate()
                .map(|(at, value)| number(at, value))
        };
        let outputs = Outputs::new(world(mixed).collect(), world(again).collect());
        let (shown, _) = outputs.split_at(4000).expect("as many");
        let remembered = shown.parts().0.cells("value", Target::PURE, |y: &i64| *y);
        assert!(shown.parts().0.promise(&remembered, Target::PURE) > 3.0);
        let event = shown.by_cells("value", Target::PURE, |y: &i64| *y);
        assert!(!(0..30_000).any(|value| event.contains(&value)));
    }

    #[test]
    fn cells_may_lie_anywhere() {
        // The worlds differ in the parity of their output only.
        let (mut one, mut other) = (coin(1, 0.8), coin(2, 0.2));
        let mut spread = normal(3);
        let mut even = |odd: bool| 2 * (spread() * 10.0) as i64 + i64::from(odd);
        let outputs = Outputs::new(
            (0..4000).map(|_| even(one())).collect(),
            (0..4000).map(|_| even(other())).collect(),
        );
        let (shown, held) = outputs.split();
        let event = shown.cells("the rest by two", Target::PURE, |y: &i64| y.rem_euclid(2));
        let bound = held
            .count(&event)
            .epsilon_lower(Delta::ZERO, Group::ONE, alpha(0.01))
            .expect("valid");
        assert!(bound.epsilon_lower() > 1.1, "{bound:?}");
        assert!(bound.evidence().starts_with("the rest by two is "));
    }

    /// Noise in floats, added in floats: outputs of a count of one are on a coarser grid than those of a count of zero.
    #[test]
    fn floating_point_noise_is_convicted_by_its_last_digit() {
        let found = |count: f64| {
            let (mut one, mut other) = (laplace(5, 0.5), laplace(6, 0.5));
            audit(
                Outputs::run(2000, || one() + count, &mut other),
                0.01,
                |shown| shown.grain(Target::PURE),
            )
        };
        assert!(found(1.0).epsilon_lower() > 3.0, "{:?}", found(1.0));
        assert_eq!(found(0.0).epsilon_lower(), 0.0);
    }

    #[test]
    fn last_digits_are_powers_of_two() {
        for (y, expected) in [
            (1.0, 0),
            (6.0, 1),
            (-0.375, -3),
            (0.1, -55),
            (5e-324, -1074),
            (1e-310_f64.next_up(), -1074),
        ] {
            let (last, expected) = (last_digit(y), LastDigit::Power(expected));
            assert!(
                last == expected || (y == 1e-310_f64.next_up() && last >= expected),
                "{y}: {last:?}"
            );
        }
        assert_eq!(last_digit(f64::NAN), last_digit(0.0));
    }

    /// People read them: no index of a bin, and no number that stands for none.
    #[test]
    fn events_are_named_in_words() {
        let name = |one: f64, other: f64| {
            let shown = || Outputs::new(vec![one; 40], vec![other; 40]).split().0;
            let (bins, grain) = (shown().bins(2, Target::PURE), shown().grain(Target::PURE));
            (bins.name().to_owned(), grain.name().to_owned())
        };
        let (bin, digit) = name(f64::NAN, f64::NAN);
        assert_eq!(bin, "the bin is that of what is no number");
        assert!(
            digit.starts_with("the last binary digit is none"),
            "{digit}"
        );
        let (bin, digit) = name(0.5, 3.0);
        assert_eq!(bin, "the bin is below 3");
        assert_eq!(digit, "the last binary digit is 2^-1");
    }

    #[test]
    fn degenerate_outputs_give_some_event() {
        let nothing = Outputs::<f64>::new(vec![], vec![]).split().0;
        assert!(!nothing.half_line(Target::PURE).contains(&f64::NAN));
        assert!(!nothing.bins(5, Target::PURE).contains(&1.0));
        let same = Outputs::new(vec![1.0; 8], vec![1.0; 8]).split().0;
        let event = same.half_line(Target::PURE);
        assert!(event.contains(&1.0));
        assert!(same.best_of(vec![], Target::PURE).is_err());
        let best = same
            .best_of(vec![event, same.grain(Target::PURE)], Target::PURE)
            .expect("one of two");
        assert!(same.promise(&best, Target::PURE) <= 0.0);
    }
}
