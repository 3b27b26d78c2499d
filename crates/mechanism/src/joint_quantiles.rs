//! # Quantiles, all at once
//! **Definition.** Shares `q_1 < … < q_m`. Points `r_1 <= … <= r_m` cut the `n` rows into `m + 1` gaps with `c_j` rows each, where `s_j n` should be,
//!   `s_j = q_j - q_(j-1)` (with 0 before the first and 1 behind the last). The error is `e(r) = Σ|c_j - s_j n|`, and one exponential mechanism
//!   chooses all points: `Pr[r] ∝ v(r) exp(-ε e(r)/(2Δ))`, where `v(r)` is how many orders `r_1 … r_m` have. [GJK21, Sec. 3]
//! **Ties.** As in [`quantiles`](crate::quantiles): a row is its value and a number drawn for it alone, uniform on `0..2^t`; points are
//!   such pairs too, and only their values are released.
//! **Requires.** Rows bounded by the same [`Contribution`] the statistic was made with, at most `k` for each unit.
//! **Guarantee.** Given the numbers that order ties, which are drawn independently of the data, bounded range `ε`; hence priced as such:
//!   `ε`-DP and `ε²/8`-zCDP, with the sensitivity `Δ` of the error:
//!
//! | add/remove | replace-one |
//! | --- | --- |
//! | `2k(1 - min s_j)` | `2k` |
//!
//! **Proof.** Fix the numbers that order ties, the same for rows that both neighbours have, and `r`. A row in gap `j` adds `e_j - s` to the
//!   vector `c - sn`, where `e_j` is a unit vector and `s` the vector of shares, which sum to one; a row that is no number adds nothing.
//!   The error is the L1 norm of the sum. Add/remove: each of up to `k` rows changes it by at most
//!   `‖e_j - s‖ = (1 - s_j) + Σ_(l≠j) s_l = 2(1 - s_j)`. Replace-one: up to `k` vectors out of `e_j - s` are taken away and up to `k` others added. The
//!   same number of both: pairs, each at most `‖e_j - e_l‖ <= 2`; and those that are left over at most `2(1 - s_j) <= 2` each: at most `2k`. So
//!   `|e(r) - e'(r)| <= Δ` for every `r`, while `v` does not depend on rows: the logarithm of the ratio of the probabilities is a number
//!   common to all `r` plus a term in `[-ε/2, ε/2]`. The law of the release is the average over the numbers that order ties, whose law is the same
//!   for both neighbours. The average may have a wider range (1.015 `ε` in a test of [`sample::joint_law`](crate::sample)); but the divergences
//!   by which events are priced are jointly quasi-convex, so that they are no larger than for the worst numbers, alone or
//!   composed with other events. Dropping the numbers is post-processing.
//! **Sampler.** Exact over the integers: a dynamic programme proposes, and one coin undoes its rounding errors.
//!   [`sample::joint_path`](crate::sample) One sort and, for each quantile, a few operations for each row; `16 mn` bytes. Of a rate `ε/(2Δ)` above
//!   1024 no more than that is used.
//! **Error.** If no two rows are equal in value and number, some `r` has `e(r) <= m + 2`: cut at the whole numbers next to `q_j n`, which moves
//!   each gap by at most one, and do not cut before a row at the lower bound. So `Pr[e > m + 2 + t] <= N^m exp(-εt/(2Δ))` for `N` points. A
//!   quantile's rank is off by at most `e/2`, because what is missing on one side of it is too much on the other. (Rows with
//!   equal values and equal numbers come on top.)
//! **Which.** [`Quantiles`](crate::Quantiles) divides its budget between `floor(log2 m) + 1` levels; it takes hardly longer for many shares than
//!   for one, and needs no table. Mean rank errors of a thousand rows, uniform on a twentieth of the range, `ε = 1`:
//!
//! | shares | 1 | 2 | 3 | 5 | 9 | 20 | 31 | 50 |
//! | --- | --- | --- | --- | --- | --- | --- | --- | --- |
//! | replace-one, together | 2.0 | 2.7 | 3.2 | 4.4 | 5.8 | 8.1 | 13 | 33 |
//! | replace-one, in levels | 1.9 | 4.2 | 4.4 | 7.9 | 12 | 20 | 19 | 24 |
//! | add/remove, together | 1.0 | 1.8 | 2.4 | 3.8 | 5.3 | 7.9 | 13 | 31 |
//! | add/remove, in levels | 0.9 | 2.7 | 2.3 | 4.1 | 5.5 | 8.2 | 9.0 | 11 |
//!
//!   So together under replace-one for up to about twenty shares, fewer if there is little budget (nine at `ε = 0.1`); under add/remove it
//!   makes no difference up to about ten, and levels are better beyond.
//!
//! ```
//! use whit_core::{Epsilon, Probability, Ratio, ReplaceOne};
//! use whit_mechanism::{Bounds, Contribution, JointQuantiles, OsEntropy};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let ages = (0..1000).map(|i| f64::from(i % 90));
//! let quarter = |n| Probability::new(Ratio::new(n, 4)?);
//! let quartiles = [quarter(1)?, quarter(2)?, quarter(3)?];
//! let (bounds, row) = (Bounds::new(0.0, 120.0)?, Contribution::Row);
//! let joint = JointQuantiles::<ReplaceOne>::new(&quartiles, bounds, row, Epsilon::new(4.0)?)?;
//! let release = joint.release(joint.aggregate(ages), &mut OsEntropy::new())?;
//! assert!(release.value().is_sorted() && (30.0..60.0).contains(&release.value()[1]));
//! # Ok(())
//! # }
//! ```

use dashu_ratio::RBig;
use whit_core::{
    Bits, Confidence, Entropy, Epsilon, Event, Linf, Mechanism, Probability, Ratio, Relation,
    Secret, Sensitivity, round,
};

use crate::quantile::{check_shares, fix, tie_bits};
use crate::sample::joint_path::{Field, JointPath};
use crate::sample::uniform_below;
use crate::{Bounds, Contribution, Release, Result};

/// Values below which given shares of all values lie, chosen together.
pub struct JointQuantiles<R: Relation> {
    bounds: Bounds,
    contribution: Contribution,
    /// `s_1 … s_(m+1)`.
    gaps: Vec<RBig>,
    epsilon: Ratio,
    path: JointPath,
    /// `t`.
    tie_bits: u32,
    relation: std::marker::PhantomData<R>,
}

/// Tables grow with the shares, and long before this [`Quantiles`](crate::Quantiles) is better.
const SHARES_MAX: usize = 100;

impl<R: Relation> JointQuantiles<R> {
    /// Checks that there are shares and that they grow.
    pub fn new(
        shares: &[Probability],
        bounds: Bounds,
        contribution: Contribution,
        epsilon: Epsilon,
    ) -> Result<Self> {
        check_shares(shares, SHARES_MAX)?;
        let mut before = RBig::ZERO;
        let ends = shares.iter().map(|share| share.ratio().as_rbig());
        let gaps: Vec<RBig> = ends
            .chain([&RBig::ONE])
            .map(|end| {
                let gap = end - &before;
                before = end.clone();
                gap
            })
            .collect();
        let epsilon = epsilon.to_ratio();
        let twice = &sensitivity::<R>(&gaps, contribution) * &Ratio::from(2_u64);
        let rate = epsilon
            .checked_div(&twice)
            .expect("two gaps have a share below one, and a unit has a row");
        Ok(Self {
            bounds,
            contribution,
            path: JointPath::new(&rate, gaps.clone()),
            gaps,
            epsilon,
            tie_bits: tie_bits(bounds),
            relation: std::marker::PhantomData,
        })
    }

    /// The most that one unit changes the error of any points.
    pub fn sensitivity(&self) -> Sensitivity<Linf, R> {
        Sensitivity::new(sensitivity::<R>(&self.gaps, self.contribution))
    }

    /// Clamps and rounds to the grid, in steps; what is no number is dropped.
    pub fn aggregate(&self, rows: impl IntoIterator<Item = f64>) -> Secret<Vec<i64>> {
        Secret::new(fix(self.bounds, rows))
    }

    /// What an accountant needs to know.
    pub fn event(&self) -> Event {
        let epsilon = self.epsilon.clone();
        Event::new(R::NEIGHBOURS, Mechanism::BoundedRange { epsilon })
    }

    /// Spends one `event`. Rows are in steps of the grid, in any order; they are clamped once more. One value for each share, in
    /// order.
    pub fn release(
        &self,
        rows: Secret<Vec<i64>>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Vec<f64>>> {
        let mut bits = entropy.open()?;
        let (grid, lower) = (self.bounds.grid(), self.bounds.lower());
        let steps = self.choose(rows.expose(), &mut bits);
        let value = |step: i64| grid.value(i128::from(lower + step));
        Ok(Release::new(
            steps.into_iter().map(value).collect(),
            self.event(),
        ))
    }

    /// Steps from the lower bound.
    fn choose<B: Bits>(&self, mut rows: Vec<i64>, bits: &mut B) -> Vec<i64> {
        let (lower, upper) = (self.bounds.lower(), self.bounds.upper());
        for row in &mut rows {
            let number = uniform_below(1 << self.tie_bits, bits);
            let steps = (*row).clamp(lower, upper).abs_diff(lower);
            *row = (steps << self.tie_bits | number) as i64;
        }
        rows.sort_unstable();
        let field = Field {
            sorted: &rows,
            first: 0,
            last: (((self.bounds.width() + 1) << self.tie_bits) - 1) as i64,
        };
        let points = self.path.choose(field, bits);
        points.into_iter().map(|r| r >> self.tie_bits).collect()
    }

    /// A rank error, in rows, that all of them keep together with this confidence; infinite without any budget. Rows with equal
    /// values and equal numbers come on top.
    pub fn rank_error(&self, confidence: Confidence) -> f64 {
        let shares = (self.gaps.len() - 1) as f64;
        let points = round::mul_up(
            ((self.bounds.width() + 1) as f64).next_up(),
            f64::from(1_u32 << self.tie_bits),
        );
        let miss = round::sub_down(1.0, confidence.value());
        let log = round::add_up(
            round::mul_up(shares, round::ln_up(points)),
            round::ln_up(round::div_up(1.0, miss)),
        );
        match Ratio::one().checked_div(&self.path.rate()) {
            Some(each) => {
                let error = round::add_up(shares + 2.0, round::mul_up(log, each.to_f64_up()));
                round::mul_up(0.5, error)
            }
            None => f64::INFINITY,
        }
    }
}

/// The table of the module.
fn sensitivity<R: Relation>(gaps: &[RBig], contribution: Contribution) -> Ratio {
    let smallest = gaps.iter().min().cloned().unwrap_or(RBig::ZERO);
    let added = Ratio::from_rbig(RBig::ONE - smallest).expect("a share is at most one");
    let rows_max = u64::from(contribution.rows_max().max(1));
    &R::pick(added, Ratio::one()) * &Ratio::from(2 * rows_max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{self, confidence, judge, seed};
    use crate::{Grid, Quantiles};
    use whit_audit::g_test;
    use whit_core::{AddRemove, Fault, ReplaceOne};
    use whit_testkit::{FailingEntropy, Seeded, SeededBits};

    fn shares(of: &[u64], out_of: u64) -> Vec<Probability> {
        let share = |&n: &u64| Probability::new(Ratio::new(n.into(), out_of.into()).expect("some"));
        of.iter().map(|n| share(n).expect("a share")).collect()
    }

    fn joint<R: Relation>(
        shares: &[Probability],
        range: (f64, f64),
        epsilon: f64,
    ) -> JointQuantiles<R> {
        let bounds = Bounds::new(range.0, range.1).expect("a range");
        let epsilon = Epsilon::new(epsilon).expect("not negative");
        JointQuantiles::new(shares, bounds, Contribution::Row, epsilon).expect("they grow")
    }

    #[test]
    fn closed_form() {
        let quartiles = shares(&[1, 2, 3], 4);
        let added = joint::<AddRemove>(&quartiles, (0.0, 1.0), 0.25);
        assert_eq!(added.sensitivity().bound().to_f64_up(), 1.5);
        let replaced = joint::<ReplaceOne>(&quartiles, (0.0, 1.0), 0.25);
        assert_eq!(replaced.sensitivity().bound().to_f64_up(), 2.0);
        let epsilon = Ratio::new(1, 4).expect("4");
        let bounded = Mechanism::BoundedRange { epsilon };
        assert_eq!(
            replaced.event(),
            Event::new(ReplaceOne::NEIGHBOURS, bounded)
        );
        // (5 + 16 (3 ln((2^40 + 1) 2^21) + ln 20)) / 2.
        let points = (2_f64.powi(40) + 1.0) * 2_f64.powi(21);
        let expected = (5.0 + 16.0 * (3.0 * points.ln() + 20_f64.ln())) / 2.0;
        let error = replaced.rank_error(confidence(0.95));
        assert!((error - expected).abs() < 1e-6, "{error}, {expected}");
        let nothing = joint::<AddRemove>(&quartiles, (0.0, 1.0), 0.0);
        assert_eq!(nothing.rank_error(confidence(0.5)), f64::INFINITY);
        // The largest and the smallest share leave a gap of nothing.
        let ends = joint::<AddRemove>(&shares(&[0, 1, 2], 2), (0.0, 1.0), 1.0);
        assert_eq!(ends.sensitivity().bound().to_f64_up(), 2.0);
    }

    #[test]
    fn rejects_what_are_no_shares() {
        let new = |shares: &[Probability]| {
            let bounds = Bounds::new(0.0, 1.0).expect("a range");
            let made =
                JointQuantiles::<AddRemove>::new(shares, bounds, Contribution::Row, Epsilon::ZERO);
            made.err().map(|error| error.code())
        };
        assert_eq!(new(&[]), Some("count_out_of_range"));
        assert_eq!(new(&shares(&[2, 1], 3)), Some("shares_not_growing"));
        assert_eq!(new(&shares(&[1, 1], 3)), Some("shares_not_growing"));
        for of in [&[0, 1, 3][..], &[3], &[0]] {
            assert_eq!(new(&shares(of, 3)), None);
        }
        let many: Vec<u64> = (0..101).collect();
        assert_eq!(new(&shares(&many, 200)), Some("count_out_of_range"));
        assert_eq!(new(&shares(&many[1..], 200)), None);
    }

    /// `‖c - sn‖` with the rows counted by gap; `None` is a row that is no number.
    fn error(rows: &[Option<usize>], gaps: &[RBig]) -> RBig {
        let count = RBig::from(rows.iter().flatten().count());
        let off = |(gap, share): (usize, &RBig)| {
            let inside = rows.iter().filter(|row| **row == Some(gap)).count();
            let off = RBig::from(inside) - share * &count;
            off.clone().max(-off)
        };
        let parts = gaps.iter().enumerate().map(off);
        parts.fold(RBig::ZERO, |sum, off| sum + off)
    }

    /// Exhaustive, in rationals: all that a unit of one or two rows can do beside up to two others, for fixed points. The
    /// sensitivity is what the table says, no more and no less.
    #[test]
    fn sensitivity_is_exact_on_all_small_neighbours() {
        let sets = |most: u32, gaps: usize| {
            let base = gaps + 1;
            (0..base.pow(most)).map(move |code| {
                let digit = |i| Some(code / base.pow(i) % base).filter(|&x| x < gaps);
                (0..most).map(digit).collect::<Vec<_>>()
            })
        };
        for of in [&[1][..], &[1, 2], &[1, 3], &[0, 3], &[1, 2, 3]] {
            let gaps = joint::<AddRemove>(&shares(of, 4), (0.0, 1.0), 1.0).gaps;
            for k in 1..=2 {
                let (mut added, mut replaced) = (RBig::ZERO, RBig::ZERO);
                for common in sets(2, gaps.len()) {
                    let with = |more: &[Option<usize>]| error(&[&common, more].concat(), &gaps);
                    let all: Vec<RBig> = sets(k, gaps.len()).map(|more| with(&more)).collect();
                    let distance = |a: &RBig, b: &RBig| (a - b).max(b - a);
                    for one in &all {
                        added = added.max(distance(one, &with(&[])));
                        for other in &all {
                            replaced = replaced.max(distance(one, other));
                        }
                    }
                }
                let contribution = Contribution::RowsPerUnit(k);
                let table = sensitivity::<AddRemove>(&gaps, contribution);
                assert_eq!(added, *table.as_rbig(), "{of:?}");
                let table = sensitivity::<ReplaceOne>(&gaps, contribution);
                // Reached where enough rows are missing elsewhere.
                assert!(replaced <= *table.as_rbig(), "{of:?}");
                assert!(replaced > RBig::from(k), "{of:?}");
            }
        }
    }

    /// Is the first point above `v`?
    fn seen<R: Relation>(
        (of, out_of): (&[u64], u64),
        v: f64,
        epsilon: f64,
        [one, other]: [&[f64]; 2],
    ) -> whit_audit::Verdict {
        let joint = joint::<R>(&shares(of, out_of), (0.0, 1.0), epsilon);
        let event = |rows: &[f64], entropy: &mut Seeded| {
            let release = joint.release(joint.aggregate(rows.iter().copied()), entropy);
            release.expect("entropy").value()[0] > v
        };
        let (mut first, mut second) = (Seeded::new(seed(581)), Seeded::new(seed(582)));
        judge(
            2.0,
            0.0,
            60_000,
            || event(one, &mut first),
            || event(other, &mut second),
        )
    }

    /// Two quantiles near the middle. The replaced row moves the corner where both are above `v` from an error of four to two, and the
    /// bulk from none to two. Points on both sides of `v` have two rows between them, and are rare.
    fn replaced(epsilon: f64) -> whit_audit::Verdict {
        let v = 0.75;
        let [one, other] = [f64::INFINITY, 0.0].map(|row| [0.0, v, v, row, f64::NAN]);
        seen::<ReplaceOne>((&[50, 51], 100), v, epsilon, [&one, &other])
    }

    /// The median of one row: another one moves all above `v` from an error of one to none, and all below from one to two.
    fn added(epsilon: f64) -> whit_audit::Verdict {
        let v = 0.98;
        let pair: [&[f64]; 2] = [&[v, f64::INFINITY], &[v]];
        seen::<AddRemove>((&[1], 2), v, epsilon, pair)
    }

    #[test]
    fn falsifier() {
        for (verdict, least) in [(replaced(2.0), 1.4), (added(2.0), 1.6)] {
            assert!(
                !verdict.convicted && verdict.epsilon_lower > least,
                "{verdict:?}"
            );
        }
    }

    #[test]
    fn falsifier_has_teeth() {
        assert!(replaced(2.8).convicted, "a quarter too little noise");
        assert!(added(2.5).convicted, "a fifth too little noise");
    }

    /// How often a rank is further off than the bound says.
    fn beyond(joint: &JointQuantiles<AddRemove>, rows: &[i64], of: f64, draws: u32) -> u32 {
        let bound = joint.rank_error(confidence(of));
        let mut entropy = Seeded::new(seed(588));
        let mut sorted: Vec<f64> = {
            let grid = joint.bounds.grid();
            rows.iter().map(|x| grid.value(i128::from(*x))).collect()
        };
        sorted.sort_by(f64::total_cmp);
        let mut share = RBig::ZERO;
        let shares = joint.gaps.iter().map(|gap| {
            share += gap;
            share.to_f64().value()
        });
        let shares: Vec<f64> = shares.collect();
        let mut beyond = 0;
        for _ in 0..draws {
            let release = joint.release(Secret::new(rows.to_vec()), &mut entropy);
            let off = |(value, share): (&f64, &f64)| {
                let below = sorted.partition_point(|x| x < value) as f64;
                let not_above = sorted.partition_point(|x| x <= value) as f64;
                let target = share * sorted.len() as f64;
                (below - target).max(target - not_above)
            };
            let values = release.expect("entropy").into_value();
            let worst = values.iter().zip(&shares).map(off).fold(0.0, f64::max);
            beyond += u32::from(worst > bound);
        }
        beyond
    }

    /// No more often than the confidence leaves, one time in two; and one in thirty where the bound is not far from the truth: one row on
    /// each of a few points in the middle of `2^62`, and all others are wrong by the same.
    #[test]
    fn ranks_are_no_further_off_than_the_bound_says() {
        let far = 2_f64.powi(61);
        let whole = Grid::new(0).expect("in range");
        let bounds = Bounds::on_grid(-far, far, whole).expect("a range");
        let epsilon = Epsilon::new(0.2).expect("not negative");
        let median =
            JointQuantiles::<AddRemove>::new(&shares(&[1], 2), bounds, Contribution::Row, epsilon)
                .expect("one");
        assert_eq!(median.tie_bits, 0);
        let bound = median.rank_error(confidence(0.5)).ceil() as i64;
        let rows: Vec<i64> = (-bound..=bound).collect();
        let draws = 2000;
        let found = beyond(&median, &rows, 0.5, draws);
        assert!(10 < found && found <= draws / 2, "{found}");
        let quartiles = joint::<AddRemove>(&shares(&[1, 2, 3], 4), (-1.0, 1.0), 1.0);
        let mut bits = SeededBits::new(seed(589));
        let lower = quartiles.bounds.lower();
        let row = |_| lower / 8 + bits.below(lower.unsigned_abs() / 4) as i64;
        let rows: Vec<i64> = (0..2000).map(row).collect();
        assert!(quartiles.rank_error(confidence(0.5)) < 200.0);
        assert_eq!(beyond(&quartiles, &rows, 0.5, 100), 0);
    }

    /// One share is the mechanism of `Quantile`: cell `i` between different rows has `width · exp(-ε|i - qn|/(2Δ))`, `Δ = max(q, 1-q)`.
    #[test]
    fn one_share_is_the_single_quantile() {
        let rows = [0.1, 0.15, 0.4, 0.7, 0.95];
        let one = joint::<AddRemove>(&shares(&[3], 10), (0.0, 1.0), 2.0);
        let mut entropy = Seeded::new(seed(583));
        let mut counts = [0; 6];
        for _ in 0..20_000 {
            let release = one.release(one.aggregate(rows), &mut entropy);
            let r = release.expect("entropy").value()[0];
            counts[rows.iter().filter(|&&x| x <= r).count()] += 1;
        }
        let ends = [&[0.0], &rows[..], &[1.0]].concat();
        let weight = |i: usize| {
            (ends[i + 1] - ends[i]) * (-2.0 * (i as f64 - 1.5).abs() / (2.0 * 0.7)).exp()
        };
        let total: f64 = (0..6).map(weight).sum();
        let p: Vec<f64> = (0..6).map(|i| weight(i) / total).collect();
        let fit = g_test(&counts, &p).expect("probabilities").p_value;
        assert!(fit >= doubt::ALPHA, "p = {fit:e}, {counts:?} {p:?}");
    }

    #[test]
    fn ties_are_divided_and_answers_are_in_order() {
        let deciles = shares(&[1, 2, 3, 4, 5, 6, 7, 8, 9], 10);
        let deciles = joint::<AddRemove>(&deciles, (0.0, 100.0), 10.0);
        let mut entropy = Seeded::new(seed(584));
        let mut release = |rows: Vec<f64>| {
            let release = deciles.release(deciles.aggregate(rows), &mut entropy);
            let values = release.expect("entropy").into_value();
            assert!(values.is_sorted() && values.len() == 9);
            assert!(values[0] >= 0.0 && values[8] <= 100.0);
            values
        };
        // Two thirds are zero and the others spread out: six deciles are zero, the others 10, 40 and 70.
        let spread = |i: i32| f64::from((i - 20_000).max(0)) / 100.0;
        let zeros = release((0..30_000).map(spread).collect());
        assert_eq!(zeros[..6], [0.0; 6]);
        for (found, expected) in zeros[6..].iter().zip([10.0, 40.0, 70.0]) {
            assert!((found - expected).abs() < 1.0, "{zeros:?}");
        }
        assert_eq!(release(vec![7.0; 10_000]), [7.0; 9]);
        for rows in [vec![], vec![f64::NAN], vec![f64::INFINITY; 3], vec![-0.0]] {
            release(rows);
        }
        let extreme = Secret::new(vec![i64::MIN, i64::MAX]);
        assert!(deciles.release(extreme, &mut Seeded::new(1)).is_ok());
        let nothing = Secret::new(vec![]);
        assert!(deciles.release(nothing, &mut FailingEntropy).is_err());
    }

    /// Budgets of zero and beyond all measure, and a grid of two points that leaves no doubt about ties.
    #[test]
    fn extremes_are_defined() {
        for epsilon in [0.0, 5e-324, 1e-9, 1e9, f64::MAX] {
            let grid = Grid::new(0).expect("in range");
            for bounds in [
                Bounds::on_grid(0.0, 1.0, grid).expect("a range"),
                Bounds::new(-1e200, 1e200).expect("a range"),
                Bounds::new(1e15, 1e15 + 1.0).expect("a range"),
            ] {
                let epsilon = Epsilon::new(epsilon).expect("not negative");
                let of = shares(&[0, 1, 4, 7], 7);
                let joint =
                    JointQuantiles::<AddRemove>::new(&of, bounds, Contribution::Row, epsilon);
                let joint = joint.expect("they grow");
                for rows in [
                    vec![],
                    vec![0],
                    vec![bounds.lower(); 7],
                    vec![bounds.upper(); 300],
                ] {
                    let release = joint.release(Secret::new(rows), &mut Seeded::new(seed(585)));
                    assert!(release.expect("entropy").value().is_sorted());
                }
            }
        }
    }

    /// The mean rank error over all quantiles, in rows out of a thousand.
    fn rank_errors(values: &[f64], rows: &[f64]) -> f64 {
        let gap = rows.len() as f64 / (values.len() + 1) as f64;
        let error = |(i, value): (usize, &f64)| {
            let rank = rows.iter().filter(|&x| x < value).count() as f64;
            (rank - (i + 1) as f64 * gap).abs()
        };
        values.iter().enumerate().map(error).sum::<f64>() / values.len() as f64
    }

    /// Against the recursive method at the same budget: the errors of the table above.
    #[test]
    fn few_shares_are_better_found_together() {
        let mut bits = SeededBits::new(seed(586));
        let mut entropy = Seeded::new(seed(587));
        for (count, runs) in [(5, 150), (9, 150)] {
            let of = shares(&(1..=count).collect::<Vec<_>>(), count + 1);
            let bounds = Bounds::new(-100.0, 100.0).expect("a range");
            let epsilon = Epsilon::new(1.0).expect("not negative");
            let (row, together) = (
                Contribution::Row,
                joint::<ReplaceOne>(&of, (-100.0, 100.0), 1.0),
            );
            let levels =
                Quantiles::<ReplaceOne>::new(&of, bounds, row, epsilon).expect("they grow");
            let mut means = [0.0; 2];
            for _ in 0..runs {
                let draw = |_| bits.below(1 << 50) as f64 / 2_f64.powi(50) * 10.0 - 5.0;
                let rows: Vec<f64> = (0..1000).map(draw).collect();
                let secret = || together.aggregate(rows.iter().copied());
                let both = [
                    together.release(secret(), &mut entropy),
                    levels.release(secret(), &mut entropy),
                ];
                for (mean, release) in means.iter_mut().zip(both) {
                    *mean +=
                        rank_errors(release.expect("entropy").value(), &rows) / f64::from(runs);
                }
            }
            assert!(means[0] < 0.8 * means[1], "{count}: {means:?}");
        }
    }
}
