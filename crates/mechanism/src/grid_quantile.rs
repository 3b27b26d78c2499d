//! # Quantile on a short grid
//! **Definition.** Values are clamped to a public range and rounded to its grid of at most 65,537 points; what is no number is dropped. Of
//!   the `n` values that are left, a grid point `r` has the score `h(r) = max(A(r), B(r))`, with `A = #{x < r} - qn` and
//!   `B = qn - #{x <= r}`: small is good. A point is chosen by [permute and flip](crate::permute_and_flip). \[MS20\]
//! **The score.** Above zero, `h` is the rank error `e`, the distance of `qn` from `[#{x < r}, #{x <= r}]`. Where the rank `qn` lies within the
//!   rows that share the value `r`, `-h` says how deep: by how many rows the data must change before another value is the
//!   quantile. (The distance from the *middle* of those ranks, which OpenDP takes, prefers a rare value to a frequent
//!   one: if six of ten values are zero, it finds the median elsewhere.)
//! **Requires.** Rows bounded by the same [`Contribution`] the statistic was made with, at most `k` for each unit.
//! **Guarantee.** `ε`-DP, and nothing better, with the sensitivity `Δ` of the score:
//!
//! | add/remove | replace-one |
//! | --- | --- |
//! | `k max(q, 1-q)` | `k` |
//!
//! **Proof.** As for [`Quantile`](crate::quantile): each row adds to `A` either `1-q` (if `x < r`) or `-q`, and to `B` either `q` (if `x > r`) or
//!   `-(1-q)`; a dropped one adds nothing. Add/remove: up to `k` rows change each by at most `k max(q, 1-q)`. Replace-one: what up to `k`
//!   rows add to `A` lies in `[-kq, k(1-q)]`, and to `B` in `[-k(1-q), kq]`; two such amounts differ by at most `k`. A maximum changes by
//!   no more than what it is taken of. So all scores move by at most `Δ`, as [`Scores::new`] demands. With `q = N/D` the numbers
//!   `D h(r)` are whole; that they are clamped to 64 bits is a contraction.
//! **Sampler.** Exact: counts per point, whole scores, exact coins.
//! **Error.** There is always a point with `h <= 0`, so `Pr[e > t] <= M exp(-εt/(2Δ))` for `M` grid points. *The expected rank error is never
//!   above that of permute and flip by `e` itself, hence never above that of the exponential mechanism* \[MS20\]: if the deepest point has
//!   depth `d > 0`, no other has `e = 0`, and `h` makes every other coin less likely by the same factor `exp(-εd/(2Δ))`, as if each of `m`
//!   heads with errors `e_i` were kept with that probability only. The mean of `Σ e_i / (m'+1)` over those `m'` that are kept (the
//!   one more is the best point) is `(Σ e_i / m) E[m'/(m'+1)] <= Σ e_i / (m+1)`.
//!
//! ```
//! use whit_core::{Epsilon, Probability, Ratio, ReplaceOne};
//! use whit_mechanism::{Bounds, Contribution, Grid, GridQuantile, OsEntropy};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let ages = (0..1000).map(|i| f64::from(i % 90));
//! let years = Bounds::on_grid(0.0, 120.0, Grid::new(0)?)?;
//! let median = GridQuantile::<ReplaceOne>::median(years, Contribution::Row, Epsilon::new(2.0)?)?;
//! let release = median.release(median.aggregate(ages), &mut OsEntropy::new())?;
//! assert!((40.0..50.0).contains(release.value()));
//! # Ok(())
//! # }
//! ```

use whit_core::{
    Confidence, Entropy, Epsilon, Event, Linf, Probability, Ratio, Relation, Secret, Sensitivity,
};

use crate::quantile::{fix, rank_error, sensitivity};
use crate::{Bounds, Contribution, Error, PermuteAndFlip, Release, Result, Scores};

/// A value of a short grid below which a given share of all values lies.
pub struct GridQuantile<R: Relation> {
    /// `q = numerator / denominator`.
    numerator: i128,
    denominator: i128,
    bounds: Bounds,
    epsilon: Ratio,
    sensitivity: Sensitivity<Linf, R>,
    flip: PermuteAndFlip<R>,
}

/// The widest grid, in steps: each point costs a coin.
const WIDTH_MAX: u64 = 1 << 16;
/// The largest denominator of a share, more than a million: then scores of `2^43` rows fit into 64 bits.
const DENOMINATOR_MAX: u64 = 1 << 20;

impl<R: Relation> GridQuantile<R> {
    /// Is the grid short enough, and the share round enough? Otherwise there is [`Quantile`](crate::Quantile).
    pub fn fits(share: &Probability, bounds: Bounds) -> bool {
        bounds.width() <= WIDTH_MAX && parts(share).is_some()
    }

    /// The quantile at `share`, over rows that were bounded so.
    pub fn new(
        share: &Probability,
        bounds: Bounds,
        contribution: Contribution,
        epsilon: Epsilon,
    ) -> Result<Self> {
        if bounds.width() > WIDTH_MAX {
            return Err(Error::CountOutOfRange {
                what: "the number of grid points",
                given: bounds.width().saturating_add(1),
                min: 2,
                max: WIDTH_MAX + 1,
            });
        }
        let (numerator, denominator) = parts(share).ok_or(Error::ShareTooFine {
            max: DENOMINATOR_MAX,
        })?;
        let epsilon = epsilon.to_ratio();
        let each = sensitivity::<R>(share, contribution);
        let scaled = Sensitivity::new(&each * &Ratio::from(denominator));
        let scores = Scores::new(bounds.width() + 1, &scaled)?;
        Ok(Self {
            numerator: i128::from(numerator),
            denominator: i128::from(denominator),
            bounds,
            flip: PermuteAndFlip::new(epsilon.clone(), scores),
            epsilon,
            sensitivity: Sensitivity::new(each),
        })
    }

    /// The quantile at one half.
    pub fn median(bounds: Bounds, contribution: Contribution, epsilon: Epsilon) -> Result<Self> {
        let half = Probability::new(Ratio::power_of_two(-1)).expect("one half is below one");
        Self::new(&half, bounds, contribution, epsilon)
    }

    /// The most that one unit changes the score of any point, in rows.
    pub fn sensitivity(&self) -> &Sensitivity<Linf, R> {
        &self.sensitivity
    }

    /// Clamps and rounds to the grid, in steps; what is no number is dropped.
    pub fn aggregate(&self, rows: impl IntoIterator<Item = f64>) -> Secret<Vec<i64>> {
        Secret::new(fix(self.bounds, rows))
    }

    /// What an accountant needs to know.
    pub fn event(&self) -> Event {
        self.flip.event()
    }

    /// Spends one `event`. Rows are in steps of the grid, in any order; they are clamped once more.
    pub fn release(
        &self,
        rows: Secret<Vec<i64>>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<f64>> {
        let scores = rows.map(|rows| self.scores(&rows));
        let chosen = self.flip.release(scores, entropy)?;
        let (grid, first) = (self.bounds.grid(), i128::from(self.bounds.lower()));
        Ok(chosen.map(|index| grid.value(first + index as i128)))
    }

    /// `-D h(r)` for every grid point: large is good.
    fn scores(&self, rows: &[i64]) -> Vec<i64> {
        let (first, last) = (self.bounds.lower(), self.bounds.upper());
        let mut counts = vec![0_i128; self.bounds.width() as usize + 1];
        for row in rows {
            counts[row.clamp(&first, &last).abs_diff(first) as usize] += 1;
        }
        let target = self.numerator * rows.len() as i128;
        let mut below = 0;
        let score = |count: i128| {
            let not_above = below + count;
            let error =
                (self.denominator * below - target).max(target - self.denominator * not_above);
            below = not_above;
            (-error).clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
        };
        counts.into_iter().map(score).collect()
    }

    /// A rank error, in rows, that is exceeded with no more than what the confidence leaves; infinite without any budget.
    pub fn rank_error(&self, confidence: Confidence) -> f64 {
        rank_error(self.bounds, &self.sensitivity, &self.epsilon, confidence)
    }
}

/// The share as a fraction of small numbers.
fn parts(share: &Probability) -> Option<(u64, u64)> {
    let share = share.ratio().as_rbig();
    let denominator = u64::try_from(share.denominator()).ok()?;
    let numerator = u64::try_from(share.numerator()).ok()?;
    (denominator <= DENOMINATOR_MAX).then_some((numerator, denominator))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Grid;
    use crate::doubt::{self, TapeEntropy, confidence, judge, seed};
    use crate::permute_and_flip::tests::probabilities;
    use whit_audit::{enumerate, g_test};
    use whit_core::{AddRemove, Mechanism, ReplaceOne};
    use whit_testkit::{FailingEntropy, Seeded};

    fn whole(lower: f64, upper: f64) -> Bounds {
        Bounds::on_grid(lower, upper, Grid::new(0).expect("in range")).expect("a range")
    }

    fn share(numerator: u128, denominator: u128) -> Probability {
        Probability::new(Ratio::new(numerator, denominator).expect("not zero")).expect("a share")
    }

    fn quantile<R: Relation>(q: (u128, u128), last: i64, epsilon: f64) -> GridQuantile<R> {
        units(q, last, 1, epsilon)
    }

    fn units<R: Relation>(q: (u128, u128), last: i64, k: u32, epsilon: f64) -> GridQuantile<R> {
        GridQuantile::new(
            &share(q.0, q.1),
            whole(0.0, last as f64),
            Contribution::RowsPerUnit(k),
            Epsilon::new(epsilon).expect("not negative"),
        )
        .expect("short")
    }

    #[test]
    fn closed_form() {
        let median = quantile::<AddRemove>((1, 2), 4, 0.25);
        // Ranks 0..1 are zeros, 1..4 ones, 4..6 threes; the target is 3. Twice -h.
        assert_eq!(median.scores(&[0, 1, 1, 1, 3, 3]), [-4, 2, -2, -2, -6]);
        assert_eq!(median.scores(&[]), [0; 5]);
        assert_eq!(median.scores(&[i64::MIN, i64::MAX]), [0; 5]);
        assert_eq!(median.sensitivity().bound(), &Ratio::power_of_two(-1));
        let third = units::<ReplaceOne>((1, 3), 4, 7, 1.0);
        assert_eq!(third.sensitivity().bound(), &Ratio::from(7_u64));
        let epsilon = Ratio::new(1, 4).expect("4");
        let pure = Mechanism::Pure { epsilon };
        assert_eq!(median.event(), Event::new(AddRemove::NEIGHBOURS, pure));
        // (1/0.25) ln(5/0.05).
        let error = median.rank_error(confidence(0.95));
        assert!((error - 4.0 * 100_f64.ln()).abs() < 1e-9, "{error}");
        let nothing = quantile::<AddRemove>((1, 2), 4, 0.0);
        assert_eq!(nothing.rank_error(confidence(0.5)), f64::INFINITY);
    }

    /// All sets of up to `most` values on the points `0..=3`, each value or nothing.
    fn sets(most: u32) -> impl Iterator<Item = Vec<i64>> {
        (0..5_i64.pow(most)).map(move |code| {
            let digits = (0..most).map(move |i| code / 5_i64.pow(i) % 5);
            digits.filter(|&x| x < 4).collect()
        })
    }

    /// All neighbours: rows in common, and what one unit has before and after.
    fn neighbours<R: Relation>(common: u32, k: u32) -> Vec<[Vec<i64>; 2]> {
        let mut pairs = Vec::new();
        for rows in sets(common) {
            let with = |more: &[i64]| [&rows, more].concat();
            for one in sets(k) {
                let others: Vec<Vec<i64>> = R::pick(vec![vec![]], sets(k).collect());
                pairs.extend(others.iter().map(|other| [with(&one), with(other)]));
            }
        }
        pairs
    }

    fn largest_change<R: Relation>(q: (u128, u128), k: u32) -> Ratio {
        let quantile = units::<R>(q, 3, k, 1.0);
        let mut largest = 0;
        for [one, other] in neighbours::<R>(3, k) {
            let (one, other) = (quantile.scores(&one), quantile.scores(&other));
            let changes = one.iter().zip(&other).map(|(a, b)| a.abs_diff(*b));
            largest = changes.fold(largest, u64::max);
        }
        let steps = Ratio::from(quantile.denominator as u64);
        Ratio::from(largest).checked_div(&steps).expect("positive")
    }

    /// Exhaustive: the sensitivity is what the table says, no more and no less.
    #[test]
    fn sensitivity_is_exact_on_all_small_neighbours() {
        for q in [(0, 1), (1, 4), (1, 3), (1, 2), (9, 10), (1, 1)] {
            for k in 1..=2 {
                let added = units::<AddRemove>(q, 3, k, 1.0);
                assert_eq!(
                    &largest_change::<AddRemove>(q, k),
                    added.sensitivity().bound()
                );
                let replaced = units::<ReplaceOne>(q, 3, k, 1.0);
                assert_eq!(
                    &largest_change::<ReplaceOne>(q, k),
                    replaced.sensitivity().bound()
                );
            }
        }
    }

    /// The law of the choice, from the scores; `times` the budget.
    fn law<R: Relation>(quantile: &GridQuantile<R>, rows: &[i64], times: f64) -> Vec<f64> {
        let rate = quantile.epsilon.to_f64_up()
            / 2.0
            / (quantile.sensitivity.bound().to_f64_up() * quantile.denominator as f64);
        probabilities(times * rate, &quantile.scores(rows))
    }

    fn largest_loss<R: Relation>(q: (u128, u128), times: f64) -> f64 {
        let quantile = units::<R>(q, 3, 1, 1.0);
        let mut largest = 0.0_f64;
        for [one, other] in neighbours::<R>(4, 1) {
            let (p, q) = (law(&quantile, &one, times), law(&quantile, &other, times));
            let losses = p.iter().zip(&q).map(|(p, q)| (p / q).ln().abs());
            largest = losses.fold(largest, f64::max);
        }
        largest
    }

    /// Exact output probabilities of all small neighbours: within epsilon, and not far from it.
    #[test]
    fn exact_loss_of_neighbours() {
        for q in [(1, 4), (1, 2), (2, 3)] {
            let (added, replaced) = (
                largest_loss::<AddRemove>(q, 1.0),
                largest_loss::<ReplaceOne>(q, 1.0),
            );
            assert!(added <= 1.0 + 1e-9 && added > 0.6, "{q:?}: {added}");
            assert!(
                replaced <= 1.0 + 1e-9 && replaced > 0.6,
                "{q:?}: {replaced}"
            );
        }
        assert!(largest_loss::<AddRemove>((1, 2), 1.3) > 1.0, "too sharp");
    }

    fn errors(rows: &[i64], q: f64, points: i64) -> Vec<f64> {
        let target = q * rows.len() as f64;
        let error = |r: i64| {
            let below = rows.iter().filter(|&&x| x < r).count() as f64;
            let not_above = rows.iter().filter(|&&x| x <= r).count() as f64;
            (below - target).max(target - not_above).max(0.0)
        };
        (0..points).map(error).collect()
    }

    /// The expected rank error is that of the exponential mechanism or less, on all small data and on some with many ties.
    #[test]
    fn never_worse_than_exponential() {
        let tied = [
            vec![0, 0, 0, 0, 0, 0, 1, 2, 3, 3],
            [vec![1; 40], vec![2; 45]].concat(),
        ];
        let mut gain = f64::INFINITY;
        for rows in sets(5).chain(tied) {
            for q in [(1, 4), (1, 2)] {
                let quantile = quantile::<AddRemove>(q, 3, 0.8);
                let e = errors(&rows, q.0 as f64 / q.1 as f64, 4);
                let rate = 0.4 / quantile.sensitivity.bound().to_f64_up();
                let weights: Vec<f64> = e.iter().map(|e| (-rate * e).exp()).collect();
                let total: f64 = weights.iter().sum();
                let expect = |p: &[f64]| p.iter().zip(&e).map(|(p, e)| p * e).sum::<f64>();
                let exponential = expect(&weights) / total;
                let ours = expect(&law(&quantile, &rows, 1.0));
                assert!(ours <= exponential + 1e-12, "{rows:?} {q:?}");
                if exponential > 0.0 {
                    gain = gain.min(ours / exponential);
                }
            }
        }
        assert!(gain < 0.05, "{gain}");
    }

    #[test]
    fn enumeration() {
        let median = quantile::<AddRemove>((1, 2), 3, 1.0);
        for rows in [&[][..], &[0, 3], &[1, 1, 2], &[3]] {
            let found = enumerate::<1, _>(20, |tape| {
                let release =
                    median.release(Secret::new(rows.to_vec()), &mut TapeEntropy(Some(tape)));
                *release.expect("one release").value() as usize
            });
            let p = law(&median, rows, 1.0);
            let exact = |p: f64| dashu_ratio::RBig::try_from(p).expect("finite");
            let violations = found.violations(|&i| (exact(p[i] - 1e-12), exact(p[i] + 1e-12)));
            assert!(violations.is_empty(), "{rows:?}: {violations:?}");
            assert!(found.unresolved() < 1 << 12, "{}", found.unresolved());
        }
    }

    #[test]
    fn distribution() {
        let quartile = quantile::<ReplaceOne>((1, 4), 9, 0.7);
        let rows: Vec<i64> = (0..40).map(|i| i * i / 170).collect();
        let mut entropy = Seeded::new(seed(531));
        let mut seen = [0; 10];
        for _ in 0..100_000 {
            let release = quartile.release(Secret::new(rows.clone()), &mut entropy);
            seen[release.expect("entropy").into_value() as usize] += 1;
        }
        let fit = |times| {
            let p = law(&quartile, &rows, times);
            g_test(&seen, &p).expect("probabilities").p_value
        };
        assert!(fit(1.0) >= doubt::ALPHA && fit(0.93) < doubt::ALPHA);
    }

    /// A row on one side or the other of two values: the median moves from a point to its neighbour.
    fn judged<R: Relation>(epsilon: f64, one: &[f64], other: &[f64]) -> whit_audit::Verdict {
        let median = quantile::<R>((1, 2), 1, epsilon);
        let event = |rows: &[f64], entropy: &mut Seeded| {
            let rows = median.aggregate(rows.iter().copied());
            *median.release(rows, entropy).expect("entropy").value() == 1.0
        };
        let (mut first, mut second) = (Seeded::new(seed(532)), Seeded::new(seed(533)));
        judge(
            1.0,
            0.0,
            200_000,
            || event(one, &mut first),
            || event(other, &mut second),
        )
    }

    fn added(epsilon: f64) -> whit_audit::Verdict {
        judged::<AddRemove>(epsilon, &[f64::NAN], &[0.0])
    }

    fn replaced(epsilon: f64) -> whit_audit::Verdict {
        judged::<ReplaceOne>(epsilon, &[0.0, 1.0], &[0.0, -7.0])
    }

    #[test]
    fn falsifier() {
        for verdict in [added(1.0), replaced(1.0)] {
            assert!(
                !verdict.convicted && verdict.epsilon_lower > 0.93,
                "{verdict:?}"
            );
        }
    }

    #[test]
    fn falsifier_has_teeth() {
        assert!(added(1.1).convicted && replaced(1.1).convicted);
        assert!(replaced(2.0).convicted, "the sensitivity of add/remove");
    }

    /// No more often than the confidence leaves, one time in two; and not much more rarely where the bound is close: half of the rows are
    /// below the middle, a few in it, and all points above are wrong by these.
    #[test]
    fn ranks_are_no_further_off_than_the_bound_says() {
        let median = quantile::<AddRemove>((1, 2), 1 << 10, 1.0);
        let bound = median.rank_error(confidence(0.5));
        let wrong = bound.floor() as usize + 1;
        let rows = [vec![0; 2 * wrong], vec![1; wrong], vec![1 << 10; wrong]].concat();
        let e = errors(&rows, 0.5, (1 << 10) + 1);
        let mut entropy = Seeded::new(seed(535));
        let (draws, mut beyond) = (4000, 0);
        for _ in 0..draws {
            let release = median.release(Secret::new(rows.clone()), &mut entropy);
            beyond += u32::from(e[release.expect("entropy").into_value() as usize] > bound);
        }
        assert!(draws / 20 < beyond && beyond <= draws / 2, "{beyond}");
    }

    /// At the extremes of shares, budgets and values.
    #[test]
    fn edges() {
        let mut entropy = Seeded::new(534);
        for epsilon in [0.0, 1e-300, 1.0, 1e300] {
            for q in [(0, 1), (1, 3), (1, 1)] {
                let quantile = quantile::<AddRemove>(q, 1 << 10, epsilon);
                for rows in [&[][..], &[f64::NAN], &[f64::INFINITY], &[-1e300, 5.0]] {
                    let release =
                        quantile.release(quantile.aggregate(rows.iter().copied()), &mut entropy);
                    let value = release.expect("entropy").into_value();
                    assert!((0.0..=1024.0).contains(&value));
                }
            }
        }
        let sharp = quantile::<AddRemove>((9, 10), 100, 1e6);
        let mut at = |rows: Vec<f64>| {
            let release = sharp.release(sharp.aggregate(rows), &mut entropy);
            release.expect("entropy").into_value()
        };
        assert_eq!(at(vec![3.0; 100]), 3.0);
        assert_eq!((at((0..100).map(f64::from).collect()) - 89.5).abs(), 0.5);
        assert!(
            sharp
                .release(Secret::new(vec![]), &mut FailingEntropy)
                .is_err()
        );
        let (half, row) = (share(1, 2), Contribution::Row);
        let one = Epsilon::new(1.0).expect("a unit");
        let new =
            |share: &Probability, bounds| GridQuantile::<AddRemove>::new(share, bounds, row, one);
        let fits = |share: &Probability, bounds| GridQuantile::<AddRemove>::fits(share, bounds);
        let fine = share(1, 1 << 21);
        for (share, bounds, good) in [
            (&half, whole(0.0, 65_536.0), true),
            (&half, whole(0.0, 65_537.0), false),
            (&half, Bounds::new(0.0, 1.0).expect("a range"), false),
            (&fine, whole(0.0, 1.0), false),
        ] {
            assert_eq!(
                (new(share, bounds).is_ok(), fits(share, bounds)),
                (good, good)
            );
        }
        assert_eq!(
            new(&fine, whole(0.0, 1.0)).err(),
            Some(Error::ShareTooFine { max: 1 << 20 })
        );
    }
}
