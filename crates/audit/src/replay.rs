//! Record and replay: the same coins on two neighbours.
//!
//! **Idea.** A mechanism is a deterministic function of data and coins. Run it once and write its coins down; run it on a neighbour with the
//!   same coins. Where noise is added to a number, the outputs then differ by exactly what the data did, and no statistics are needed: that difference
//!   must not exceed the sensitivity that was declared. And both runs must have asked for the same coins, or the control flow
//!   depends on data that nobody has protected \[CEB26\].
//! **Limits.** For additive noise whose scale does not depend on data. Selection and thresholds choose by noisy values, and may well
//!   differ under the same coins.

use std::cell::RefCell;
use std::rc::Rc;

use whit_core::{Bits, Entropy, EntropyFailure};

use crate::{Error, Result};

/// What two runs with the same coins showed.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct Replayed {
    /// The sum of the distances of all coordinates. Infinite if one is no number in one of the runs, or if the runs gave
    /// different numbers of them.
    pub distance_l1: f64,
    /// The square root of the sum of their squares.
    pub distance_l2: f64,
    /// Did both runs ask for the same number of coins in every stream?
    pub same_coins: bool,
}

/// Runs on one data set, and again on the other with the same coins.
pub fn replay<D: ?Sized, E: Entropy>(
    entropy: E,
    one: &D,
    other: &D,
    mut run: impl FnMut(&D, &mut Coins<E>) -> Vec<f64>,
) -> Result<Replayed> {
    let mut coins = Coins {
        source: entropy,
        record: Rc::new(RefCell::new(Vec::new())),
        opened: 0,
        replaying: false,
    };
    let first = run(one, &mut coins);
    coins.opened = 0;
    coins.replaying = true;
    let second = run(other, &mut coins);
    let record = coins.record.borrow();
    let same_coins = coins.opened == record.len()
        && record
            .iter()
            .all(|stream| stream.read == stream.words.len());
    let numbers = first.len() == second.len() && first.iter().chain(&second).all(|y| y.is_finite());
    let apart = || first.iter().zip(&second).map(|(a, b)| (a - b).abs());
    let (distance_l1, distance_l2) = if numbers {
        (
            apart().sum::<f64>(),
            apart().map(|d| d * d).sum::<f64>().sqrt(),
        )
    } else {
        (f64::INFINITY, f64::INFINITY)
    };
    if first.is_empty() && second.is_empty() {
        return Err(Error::NoEvents);
    }
    Ok(Replayed {
        distance_l1,
        distance_l2,
        same_coins,
    })
}

/// Entropy that writes down what falls, and then gives it again.
pub struct Coins<E: Entropy> {
    source: E,
    record: Rc<RefCell<Vec<Stream>>>,
    opened: usize,
    replaying: bool,
}

#[derive(Default)]
struct Stream {
    words: Vec<u64>,
    /// How many the second run has asked for.
    read: usize,
}

impl<E: Entropy> Entropy for Coins<E> {
    type Bits = CoinStream<E::Bits>;

    fn open(&mut self) -> std::result::Result<Self::Bits, EntropyFailure> {
        // The replay opens a live stream too, for what it asks beyond the record.
        let live = self.source.open()?;
        let at = self.opened;
        self.opened += 1;
        let mut record = self.record.borrow_mut();
        if at == record.len() {
            record.push(Stream::default());
        }
        Ok(CoinStream {
            live,
            record: Rc::clone(&self.record),
            at,
            replaying: self.replaying,
        })
    }
}

/// One stream of [`Coins`].
pub struct CoinStream<B> {
    live: B,
    record: Rc<RefCell<Vec<Stream>>>,
    at: usize,
    replaying: bool,
}

impl<B: Bits> Bits for CoinStream<B> {
    const WIDTH: u32 = B::WIDTH;

    fn word(&mut self) -> u64 {
        let mut record = self.record.borrow_mut();
        let stream = &mut record[self.at];
        if self.replaying {
            stream.read += 1;
            if let Some(word) = stream.words.get(stream.read - 1) {
                return *word;
            }
            return self.live.word();
        }
        let word = self.live.word();
        stream.words.push(word);
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_testkit::Seeded;

    /// A toy: uniform noise, so many words of it.
    fn noise<E: Entropy>(coins: &mut E, words: usize) -> f64 {
        let mut bits = coins.open().expect("seeded");
        (0..words).map(|_| (bits.word() >> 40) as f64).sum::<f64>()
    }

    fn check(
        one: &[f64],
        other: &[f64],
        run: impl FnMut(&[f64], &mut Coins<Seeded>) -> Vec<f64>,
    ) -> Replayed {
        replay(Seeded::new(1), one, other, run).expect("some output")
    }

    #[test]
    fn noise_cancels_and_the_sensitivity_is_left() {
        let clamped = check(&[1.0, 7.0], &[1.0], |rows, coins| {
            let sum: f64 = rows.iter().map(|x| x.clamp(0.0, 5.0)).sum();
            vec![sum + noise(coins, 3), rows.len() as f64 + noise(coins, 2)]
        });
        assert_eq!(
            (clamped.distance_l1, clamped.same_coins),
            (6.0, true),
            "{clamped:?}"
        );
        assert!((clamped.distance_l2 - 26_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn a_missing_clamp_is_seen_at_once() {
        let found = check(&[1.0, 700.0], &[1.0], |rows, coins| {
            vec![rows.iter().sum::<f64>() + noise(coins, 3)]
        });
        assert_eq!(found.distance_l1, 700.0);
    }

    #[test]
    fn control_flow_that_follows_the_data_is_seen() {
        let words = check(&[1.0], &[], |rows, coins| {
            vec![noise(coins, 1 + rows.len()) * 0.0]
        });
        assert_eq!((words.distance_l1, words.same_coins), (0.0, false));
        // One stream fewer, or one more.
        for (one, other) in [(&[1.0][..], &[][..]), (&[], &[1.0])] {
            let streams = check(one, other, |rows, coins| {
                for _ in rows {
                    noise(coins, 1);
                }
                vec![0.0]
            });
            assert!(!streams.same_coins);
        }
    }

    #[test]
    fn what_is_no_number_is_infinitely_far() {
        let mean = |rows: &[f64], _: &mut Coins<Seeded>| {
            vec![rows.iter().sum::<f64>() / rows.len() as f64]
        };
        assert_eq!(check(&[1.0], &[], mean).distance_l1, f64::INFINITY);
        let lengths = check(&[1.0], &[], |rows, _| rows.to_vec());
        assert_eq!(lengths.distance_l1, f64::INFINITY);
        let nothing = replay(Seeded::new(1), &[0.0][..], &[], |_: &[f64], _| Vec::new());
        assert!(nothing.is_err());
    }
}
