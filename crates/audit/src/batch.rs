//! Batches of answers that repeat each other: a generator that starts from the same seed each time.
//!
//! A run of a batch prints many lines, and whoever counts each as a trial takes them for independent. Noise from a fixed seed is the same in every run: a thousand lines of it are one trial, in which nothing may have shown.
//!
//! **Definition.** Of `m` batches of `n` lines each, `t` are equal. They repeat if `C(m, t) q^(t-1) < 2^-32`, where `q = p^n` and `p` is the share of the line that is most common.
//! **Why.** Let all lines be independent, the likeliest of probability `p`. No batch of `n` has a probability above `q`, so that `t` given ones are equal with at most `q^(t-1)`, and any `t` of `m` with at most `C(m, t)` times
//!   that. Honest short batches, which are often equal, and programs that always print the same do not repeat in this sense. `p` is an estimate; nothing else is concluded from it.

use std::collections::BTreeMap;

use crate::outcome::Outcome;

/// Independent batches look like repeated ones as often as this, as a power of two.
const LUCK: f64 = -32.0;

/// Do batches of so many `lines` each repeat each other? They are told by their digests; `outcomes` are their lines, or most of them.
pub fn batches_repeat(digests: &[[u8; 32]], lines: usize, outcomes: &[Outcome]) -> bool {
    let often = most_common(digests.iter());
    if often < 2 || outcomes.is_empty() {
        return false;
    }
    let same = most_common(outcomes.iter().map(Outcome::bytes));
    let likeliest = same as f64 / outcomes.len() as f64;
    let (all, often) = (digests.len() as f64, often as f64);
    let choices =
        libm::lgamma(all + 1.0) - libm::lgamma(often + 1.0) - libm::lgamma(all - often + 1.0);
    let luck = choices + (often - 1.0) * lines as f64 * libm::log(likeliest);
    luck < LUCK * std::f64::consts::LN_2
}

/// How often the most common of them comes.
fn most_common<K: Ord>(items: impl Iterator<Item = K>) -> usize {
    let mut counts = BTreeMap::new();
    items.for_each(|item| *counts.entry(item).or_insert(0) += 1);
    counts.into_values().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{End, Printing};
    use crate::simulate::normal;

    /// Batches that print these numbers.
    fn repeat(batches: &[Vec<i64>]) -> bool {
        let of = |batch: &Vec<i64>| {
            let mut printing = Printing::default();
            batch
                .iter()
                .for_each(|line| printing.add(format!("{line}\n").as_bytes()));
            printing.digest()
        };
        let digests: Vec<[u8; 32]> = batches.iter().map(of).collect();
        let lines = batches.iter().flatten();
        let outcomes: Vec<Outcome> = lines
            .map(|line| Outcome::new(End::Done, format!("{line}\n").as_bytes()))
            .collect();
        batches_repeat(&digests, batches[0].len(), &outcomes)
    }

    /// Noise with this deviation, as whole numbers.
    fn batch(seed: u64, lines: usize, deviation: f64) -> Vec<i64> {
        let mut noise = normal(seed);
        (0..lines)
            .map(|_| (deviation * noise()).round() as i64)
            .collect()
    }

    #[test]
    fn fixed_seeds_are_found() {
        for (lines, runs) in [(1000, 2), (50, 2), (20, 10), (4, 100)] {
            let same = vec![batch(1, lines, 3.0); runs];
            assert!(repeat(&same), "{lines} {runs}");
        }
        // Two seeds in turns, and one run among many that starts like another.
        let turns: Vec<_> = (0..20).map(|at| batch(at % 2, 100, 3.0)).collect();
        assert!(repeat(&turns));
        let pair: Vec<_> = (0..20).map(|at| batch(at % 19, 100, 3.0)).collect();
        assert!(repeat(&pair));
        // One draw for a whole run, which is printed many times.
        let constant: Vec<_> = (0..40).map(|at| vec![batch(at, 1, 1.0)[0]; 100]).collect();
        assert!(repeat(&constant));
    }

    #[test]
    fn honest_batches_are_not() {
        assert!(!repeat(&vec![vec![7; 1000]; 20]), "nothing is drawn");
        for deviation in [0.3, 0.6, 3.0] {
            for lines in [1, 2, 3, 5, 20, 200] {
                for seed in 0..10 {
                    let own = |run: u64| batch(1 + run + 1000 * seed, lines, deviation);
                    let batches: Vec<_> = (0..100).map(own).collect();
                    assert!(!repeat(&batches), "{deviation} {lines} {seed}");
                }
            }
        }
    }
}
