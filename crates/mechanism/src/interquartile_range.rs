//! # Interquartile range on a logarithmic scale
//! **Definition.** `q = x_h - x_l` with the ranks `l = ⌈n/4⌉`, `h = ⌈3n/4⌉` among `n` rows clamped to `[L, U]`,
//!   `x_i = L` below and `U` above. Two partitions of the scale are asked, one with borders at `2^j` steps and one with borders at
//!   `3·2^j`, and each tells the interval that holds `q` if it is stable there. What is shown is the intersection of those told, or nothing. After \[DL09\]
//! **Requires.** Each row is a unit, and `n` is public: replace-one. A cell that is no number is read as the value of the range
//!   nearest to zero.
//! **Guarantee.** That of two [`ProposeTestRelease`]s: together `(2ε, 2δ)`-DP.
//! **Proof.** Replacing one row gives, for all `i`, `x_i <= x'_i <= x_{i+1}` or `x_{i-1} <= x'_i <= x_i`. Let
//!   `U_k = max_{a+b=k} (x_{h+a} - x_{l-b})` and `L_k = min_{a+b=k} (x_{h-a} - x_{l+b})`; then `U_k(x) <= U_{k+1}(x')` and `L_k(x) >= L_{k+1}(x')`,
//!   since moving one end by one rank makes up for the replaced row. For the interval `[e, f)` that holds `q` let `κ` be the smallest `k`
//!   with `U_k >= f` or `L_k < e`, and `d = κ - 1`. As `U_0 = L_0 = q`, `κ >= 1`. If neighbours have the same interval, `κ(x') <= κ(x) + 1` by
//!   the above. If not, `q(x') = U_0(x') <= U_1(x)` and `q(x') >= L_1(x)`, so `κ(x) = 1`, and likewise `κ(x') = 1`: both distances are zero.
//!   These are the two requirements of the test, with the bound zero. In the lowest interval there is no `e`, as no `q` is below zero.
//! **Error.** An interval that is not near a border for the data passes. Since the borders of one partition are in the middle of
//!   the other's intervals, at least one usually does; the interval shown is at most a factor of two wide (but for the lowest ones, which start at zero), and 4/3 at best.

use whit_core::{Entropy, Event, ReplaceOne, Secret};

use crate::{Bounds, ProposeTestRelease, Release, Result, Stable};

/// Tells within a factor how far apart the quartiles are.
pub struct InterquartileRange {
    bounds: Bounds,
    test: ProposeTestRelease<ReplaceOne>,
}

/// An interval `low <= q < high`, in the unit of the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The spread is at least this,
    pub low: f64,
    /// and less than this.
    pub high: f64,
}

/// The interval of each partition, by number, with its distance.
pub struct StableSpread([Stable<u32, ReplaceOne>; 2]);

/// The first border of each partition, in steps; each further one is twice the one before.
const FIRST: [u64; 2] = [1, 3];

impl InterquartileRange {
    /// For values in this range; the test is made twice.
    pub fn new(bounds: Bounds, test: ProposeTestRelease<ReplaceOne>) -> Self {
        Self { bounds, test }
    }

    /// Clamps, sorts, and measures how far the spread is from other intervals.
    pub fn aggregate(&self, rows: impl IntoIterator<Item = f64>) -> Secret<StableSpread> {
        let absent = self.bounds.nearest_to_zero();
        let fixed = rows
            .into_iter()
            .map(|row| self.bounds.fix(row).unwrap_or(absent));
        let mut sorted: Vec<i64> = fixed.collect();
        sorted.sort_unstable();
        let quartiles = Quartiles {
            bounds: self.bounds,
            sorted: &sorted,
        };
        Secret::new(StableSpread(FIRST.map(|first| quartiles.stable(first))))
    }

    /// What an accountant needs to know.
    pub fn event(&self) -> Event {
        let both = self.test.event().and(self.test.event());
        both.expect("both are under one relation")
    }

    /// The interval, or nothing. Spends one `event`.
    pub fn release(
        &self,
        spread: Secret<StableSpread>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Option<Spread>>> {
        let StableSpread([one, other]) = spread.expose();
        let one = self.test.release(Secret::new(one), entropy)?;
        let other = self.test.release(Secret::new(other), entropy)?;
        let grid = self.bounds.grid();
        Ok(one.and(other)?.map(|(one, other)| {
            let told = [(FIRST[0], one), (FIRST[1], other)];
            let told = told.map(|(first, bin)| bin.map(|bin| edges(first, bin)));
            let intervals = told.into_iter().flatten();
            let both = intervals.reduce(|a, b| (a.0.max(b.0), a.1.min(b.1)));
            both.map(|(low, high)| Spread {
                low: grid.value(low as i128),
                high: grid.value(high as i128),
            })
        }))
    }
}

/// The number of the interval that holds `spread`.
fn bin(first: u64, spread: u64) -> u32 {
    (spread / first).checked_ilog2().map_or(0, |log| log + 1)
}

/// `e` and `f` of an interval, in steps.
fn edges(first: u64, bin: u32) -> (u128, u128) {
    let border = |bin: u32| u128::from(first) << bin;
    (if bin == 0 { 0 } else { border(bin - 1) }, border(bin))
}

struct Quartiles<'a> {
    bounds: Bounds,
    sorted: &'a [i64],
}

impl Quartiles<'_> {
    fn at(&self, rank: i64) -> i128 {
        i128::from(if rank < 1 {
            self.bounds.lower()
        } else {
            let row = self.sorted.get(rank as usize - 1);
            row.copied().unwrap_or(self.bounds.upper())
        })
    }

    fn ranks(&self) -> (i64, i64) {
        let n = self.sorted.len() as i64;
        ((n + 3) / 4, (3 * n + 3) / 4)
    }

    fn stable(&self, first: u64) -> Stable<u32, ReplaceOne> {
        let (low, high) = self.ranks();
        let spread = (self.at(high) - self.at(low)) as u64;
        let bin = bin(first, spread);
        let (least, most) = edges(first, bin);
        let ends = self.sorted.len() as i64 + 1;
        // Ranks beyond the sentinels change nothing.
        let wider = fewest(ends - high, low, |a, b| {
            self.at(high + a) - self.at(low - b) >= most as i128
        });
        let narrower = fewest(high, ends - low, |a, b| {
            bin > 0 && self.at(high - a) - self.at(low + b) < least as i128
        });
        // One that can never leave its interval is as far from it as can be.
        let changes = wider.into_iter().chain(narrower).min();
        Stable::new(changes.map_or(u64::MAX, |changes| changes - 1), bin)
    }
}

/// The smallest `a + b` with `a <= a_max`, `b <= b_max` at which a condition holds that stays true as `a` or `b` grows. In
/// `a_max + b_max` steps: as `a` grows, the smallest `b` does not.
fn fewest(a_max: i64, b_max: i64, holds: impl Fn(i64, i64) -> bool) -> Option<u64> {
    let mut b = b_max;
    let mut best = None;
    for a in 0..=a_max {
        if holds(a, b) {
            while b > 0 && holds(a, b - 1) {
                b -= 1;
            }
            let sum = (a + b) as u64;
            best = Some(best.map_or(sum, |best: u64| best.min(sum)));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{judge, seed};
    use whit_core::{Delta, Epsilon, Mechanism};
    use whit_testkit::{NeighbourPair, Seeded, SeededBits};

    fn range(lower: f64, upper: f64, delta: f64) -> InterquartileRange {
        let (epsilon, delta) = (Epsilon::new(1.0), Delta::new(delta));
        let test = ProposeTestRelease::new(epsilon.expect("one"), delta.expect("one"));
        let bounds = Bounds::new(lower, upper).expect("a range");
        InterquartileRange::new(bounds, test.expect("in range"))
    }

    fn stable(range: &InterquartileRange, rows: &[f64]) -> [(u64, u32); 2] {
        let spread = range.aggregate(rows.iter().copied()).expose();
        spread.0.map(Stable::into_parts)
    }

    #[test]
    fn closed_form() {
        assert_eq!(
            [0, 1, 2, 3, 4, 7, 8].map(|q| bin(1, q)),
            [0, 1, 2, 2, 3, 3, 4]
        );
        assert_eq!(
            [0, 2, 3, 5, 6, 11, 12].map(|q| bin(3, q)),
            [0, 0, 1, 1, 2, 2, 3]
        );
        for first in FIRST {
            for spread in (0..100).chain([1 << 40, (1 << 62) - 1]) {
                let (least, most) = edges(first, bin(first, spread));
                assert!((least..most).contains(&u128::from(spread)));
            }
        }
        let event = range(0.0, 1.0, 0.01).event();
        assert!(matches!(event.mechanism(), Mechanism::Composition(parts) if parts.len() == 2));
        // 1 .. 100: ranks 25 and 75, a spread of 50 in [32, 64) and [48, 96). To reach 64 takes 14 changes; below 32, 19; below
        // 48, 3; 96 needs 46.
        let range = range(0.0, 128.0, 0.01);
        let rows: Vec<f64> = (1..=100).map(f64::from).collect();
        let [(one, _), (other, _)] = stable(&range, &rows);
        assert_eq!((one, other), (13, 2));
    }

    /// The two requirements of the test, for all data sets of up to five rows over a small domain.
    #[test]
    fn distance_keeps_its_promises() {
        // A range of sixteen steps to a unit, so that borders lie between the values.
        let range = range(0.0, 16.0, 0.01);
        let values = [0.0, 1.0, 2.0, 5.0, 16.0];
        let mut differing = 0;
        for n in 1..=5 {
            for code in 0..5_usize.pow(n) {
                let rows: Vec<f64> = (0..n)
                    .map(|place| values[code / 5_usize.pow(place) % 5])
                    .collect();
                if rows.is_sorted() {
                    let one = stable(&range, &rows);
                    for (place, value) in (0..n as usize).flat_map(|p| values.map(|v| (p, v))) {
                        let mut replaced = rows.clone();
                        replaced[place] = value;
                        for (one, other) in one.into_iter().zip(stable(&range, &replaced)) {
                            assert!(one.0.abs_diff(other.0) <= 1, "{rows:?} {replaced:?}");
                            assert!(one.1 == other.1 || (one.0, other.0) == (0, 0));
                            differing += u32::from(one.1 != other.1);
                        }
                    }
                }
            }
        }
        assert!(differing > 100);
    }

    /// The distance is not only safe but exact: walking through all data sets of three rows finds the same.
    #[test]
    fn distance_is_exact() {
        let range = range(0.0, 16.0, 0.01);
        let values = [0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 16.0];
        let rows = |code: usize| [code % 7, code / 7 % 7, code / 49].map(|digit| values[digit]);
        let all: Vec<[(u64, u32); 2]> = (0..343).map(|code| stable(&range, &rows(code))).collect();
        for (code, found) in all.iter().enumerate() {
            for partition in 0..2 {
                let apart = |other: usize| {
                    let pairs = rows(code).into_iter().zip(rows(other));
                    pairs.filter(|(a, b)| a != b).count() as u64
                };
                let others =
                    (0..343).filter(|&other| all[other][partition].1 != found[partition].1);
                let nearest = others.map(apart).min().expect("some differ");
                assert_eq!(found[partition].0 + 1, nearest, "{:?}", rows(code));
            }
        }
    }

    #[test]
    fn nasty_neighbours_keep_the_promises() {
        let mut bits = SeededBits::new(seed(5701));
        for range in [
            range(0.0, 1.0, 0.01),
            range(-100.0, 50.0, 0.01),
            range(-1e200, 1e200, 0.01),
        ] {
            for _ in 0..300 {
                let NeighbourPair { one, other } = NeighbourPair::replace_one(&mut bits);
                for (one, other) in stable(&range, &one).into_iter().zip(stable(&range, &other)) {
                    assert!(one.0.abs_diff(other.0) <= 1);
                    assert!(one.1 == other.1 || (one.0, other.0) == (0, 0));
                }
            }
            assert!(
                stable(&range, &[])
                    .iter()
                    .all(|(distance, _)| *distance < u64::MAX)
            );
        }
    }

    #[test]
    fn clear_spreads_are_told() {
        let range = range(0.0, 1024.0, 1e-6);
        let rows: Vec<f64> = (0..2000).map(|i| f64::from(i) / 10.0).collect();
        let mut entropy = Seeded::new(seed(5702));
        let spread = range.aggregate(rows);
        let release = range.release(spread, &mut entropy).expect("entropy");
        let Spread { low, high } = release.into_value().expect("far from any border");
        assert!(
            low <= 100.0 && 100.0 < high && high <= 2.0 * low,
            "{low} {high}"
        );
        let none = range
            .release(range.aggregate([]), &mut entropy)
            .expect("entropy");
        assert_eq!(none.into_value(), None);
    }

    /// `Pr[Z >= t - distance]` at `ε = 1`, `δ = 0.05`, where `t = 3`: the test passes.
    fn passes(distance: u64) -> f64 {
        let q = (-1_f64).exp();
        let tail = |z: f64| q.powf(z) / (1.0 + q);
        if distance <= 3 {
            tail(3.0 - distance as f64)
        } else {
            1.0 - tail(distance as f64 - 2.0)
        }
    }

    /// The smallest `δ` at `ε` between two inputs, over all outputs of both partitions.
    fn delta(one: [(u64, u32); 2], other: [(u64, u32); 2], epsilon: f64) -> f64 {
        let outputs = [0, 1].map(|i| [None, Some(one[i].1), Some(other[i].1)]);
        let probability = |(distance, bin): (u64, u32), output: Option<u32>| match output {
            None => 1.0 - passes(distance),
            Some(told) if told == bin => passes(distance),
            Some(_) => 0.0,
        };
        let distinct = |i: usize| if one[i].1 == other[i].1 { 2 } else { 3 };
        let pairs = (0..distinct(0)).flat_map(|a| (0..distinct(1)).map(move |b| [a, b]));
        let all = pairs.map(|at| {
            let of = |x: [(u64, u32); 2]| -> f64 {
                (0..2)
                    .map(|i| probability(x[i], outputs[i][at[i]]))
                    .product()
            };
            (of(one) - epsilon.exp() * of(other)).max(0.0)
        });
        all.sum()
    }

    /// All outputs of all neighbours of five rows over a small domain; and of the twin that counts one change too many.
    #[test]
    fn exact_comparison_of_all_neighbours() {
        let range = range(0.0, 16.0, 0.05);
        assert_eq!(range.test.threshold(), 3);
        let values = [0.0, 1.0, 2.0, 5.0, 16.0];
        let (mut honest, mut pure, mut twin) = (0_f64, 0_f64, 0_f64);
        for code in 0..5_usize.pow(5) {
            let rows: Vec<f64> = (0..5)
                .map(|place| values[code / 5_usize.pow(place) % 5])
                .collect();
            for (place, value) in (0..5).flat_map(|p| values.map(|v| (p, v))) {
                if rows.is_sorted() {
                    let mut replaced = rows.clone();
                    replaced[place] = value;
                    let (one, other) = (stable(&range, &rows), stable(&range, &replaced));
                    honest = honest.max(delta(one, other, 2.0));
                    pure = pure.max(delta(one, other, 1.5));
                    let late = |x: [(u64, u32); 2]| x.map(|(distance, bin)| (distance + 1, bin));
                    twin = twin.max(delta(late(one), late(other), 2.0));
                }
            }
        }
        assert!(honest <= 0.1 && honest > 0.05, "{honest}");
        assert!(pure > 0.0 && twin > 0.1, "{twin}");
    }

    /// Equal rows, one of which is moved: the first partition's distance falls from two to one.
    fn seen(claim: f64, other_rows: [f64; 9]) -> whit_audit::Verdict {
        let range = range(0.0, 16.0, 0.05);
        let step = range.bounds.grid().value(1);
        let (mut one, mut other) = (Seeded::new(seed(5703)), Seeded::new(seed(5704)));
        let event = |rows: [f64; 9], entropy: &mut Seeded| {
            let release = range
                .release(range.aggregate(rows), entropy)
                .expect("entropy");
            release.value().is_some_and(|spread| spread.high == step)
        };
        judge(
            claim,
            0.0,
            60_000,
            || event([7.0; 9], &mut one),
            || event(other_rows, &mut other),
        )
    }

    const MOVED: [f64; 9] = [7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 9.0];

    #[test]
    fn falsifier() {
        let verdict = seen(2.0, MOVED);
        assert!(
            !verdict.convicted && verdict.epsilon_lower > 0.83,
            "{verdict:?}"
        );
    }

    #[test]
    fn falsifier_has_teeth() {
        assert!(
            seen(0.8, MOVED).convicted,
            "a charge below what one partition costs"
        );
        let twice = [7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 9.0, 9.0];
        assert!(seen(1.0, twice).convicted, "two changes are not one");
    }
}
