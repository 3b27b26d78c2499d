//! # Many quantiles
//! **Definition.** Shares `q_1 < … < q_m`. The middle one is found among all rows by the exponential mechanism of
//!   [`Quantile`](crate::Quantile). Rows up to the point that was chosen go to the left, the others to the right, and so do the
//!   range and the shares, each relative to its side: `(q_i - q_lo)/(q_hi - q_lo)`, where `lo` and `hi` are the nearest shares that
//!   have been found (or 0 and 1). Then each side in turn. The answers come in order. [KSS22, Alg. 1]
//! **Ties.** A row is its value and a number drawn for it alone, uniform on `0..2^t`, which orders equal values; points are such
//!   pairs too, and of the one that was chosen only the value is released. So a value that many rows share is divided between
//!   the sides as if its rows were spread over one step of the grid.
//! **Requires.** Rows bounded by the same [`Contribution`] the statistic was made with, at most `k` for each unit.
//! **Guarantee.** Given the numbers that order ties, which are drawn independently of the data, a composition of
//!   `D = floor(log2 m) + 1` mechanisms, one for each level of the recursion, each of bounded range `ε/D`. Hence it is priced as such:
//!   `ε`-DP and `ε²/(8D)`-zCDP. What a level does depends on the answers of those above. (The release alone, an average over
//!   the numbers, may have a wider range.)
//! **Proof.** Fix the numbers that order ties, the same ones for rows that both neighbours have. Then each level, given those above,
//!   has bounded range `ε/D`: see [`quantile_tree`](crate::quantile_tree). The law of the release is the average over these numbers,
//!   whose law is the same for both neighbours. All divergences by which events are priced (hockey-stick, Rényi) are jointly
//!   quasi-convex, so the average is no further apart than the worst of its parts, alone or composed with other events: as if the
//!   numbers were published first, for nothing.
//!   Dropping the numbers from the answers is post-processing.
//! **Sampler.** Exact: that of `Quantile`, on the grid refined by `t` bits. One sort, and one pass for each level.
//! **Which.** [`JointQuantiles`](crate::JointQuantiles) finds them all at once. Under replace-one its errors are half to two thirds for up to twenty shares,
//!   where each level but the first pays twice; it takes longer, and the more so the more shares there are. Figures are there.
//! **Error.** If each node's rank error is at most its own `t_v = ln(mN/β)/rate`, which holds for all together with probability
//!   `1 - β`, then a quantile is off by at most the sum of `t_v` on the way to it: the target of a node is an average of the ranks
//!   where its range was cut, weighted by its share, so errors above are not amplified. A cut inside a row moves what follows by up to one row on each
//!   level. (Rows with equal values and equal numbers come on top.)

use whit_core::{
    Confidence, Entropy, Epsilon, Event, Mechanism, Probability, Ratio, Relation, Secret, round,
};

use crate::quantile::{check_shares, fix, tie_bits};
use crate::quantile_tree::{Node, grow, levels, search, worst_path};
use crate::sample::ranked::Field;
use crate::sample::uniform_below;
use crate::{Bounds, Contribution, Release, Result};

/// Values below which given shares of all values lie.
pub struct Quantiles<R: Relation> {
    bounds: Bounds,
    /// One for each share, in the order of shares.
    nodes: Vec<Node>,
    /// What one level costs.
    epsilon_level: Ratio,
    /// `t`.
    tie_bits: u32,
    relation: std::marker::PhantomData<R>,
}

/// More shares than this are a histogram.
const SHARES_MAX: usize = 1000;

impl<R: Relation> Quantiles<R> {
    /// Checks that there are shares and that they grow.
    pub fn new(
        shares: &[Probability],
        bounds: Bounds,
        contribution: Contribution,
        epsilon: Epsilon,
    ) -> Result<Self> {
        check_shares(shares, SHARES_MAX)?;
        let epsilon_level = epsilon
            .to_ratio()
            .checked_div(&Ratio::from(u64::from(levels(shares.len()))))
            .expect("there is a level");
        let nodes = grow::<R>(shares, &epsilon_level, contribution);
        Ok(Self {
            bounds,
            nodes,
            epsilon_level,
            tie_bits: tie_bits(bounds),
            relation: std::marker::PhantomData,
        })
    }

    /// The quantiles at one and three quarters; [`release_spread`](Self::release_spread) gives the range between them.
    pub fn quartiles(bounds: Bounds, contribution: Contribution, epsilon: Epsilon) -> Result<Self> {
        let quarter = |n: u64| Probability::new(&Ratio::from(n) * &Ratio::power_of_two(-2));
        Self::new(&[quarter(1)?, quarter(3)?], bounds, contribution, epsilon)
    }

    /// Clamps and rounds to the grid, in steps; what is no number is dropped.
    pub fn aggregate(&self, rows: impl IntoIterator<Item = f64>) -> Secret<Vec<i64>> {
        Secret::new(fix(self.bounds, rows))
    }

    /// What an accountant needs to know.
    pub fn event(&self) -> Event {
        let level = || Mechanism::BoundedRange {
            epsilon: self.epsilon_level.clone(),
        };
        let count = levels(self.nodes.len());
        let composed = Mechanism::Composition((0..count).map(|_| level()).collect());
        Event::new(R::NEIGHBOURS, composed)
    }

    /// Spends one `event`. Rows are in steps of the grid, in any order; they are clamped once more. One value for each share, in
    /// order.
    pub fn release(
        &self,
        rows: Secret<Vec<i64>>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Vec<f64>>> {
        let mut bits = entropy.open()?;
        let (lower, upper) = (self.bounds.lower(), self.bounds.upper());
        let mut rows = rows.expose();
        for row in &mut rows {
            let number = uniform_below(1 << self.tie_bits, &mut bits);
            let steps = (*row).clamp(lower, upper).abs_diff(lower);
            *row = (steps << self.tie_bits | number) as i64;
        }
        rows.sort_unstable();
        let field = Field {
            sorted: &rows,
            first: 0,
            last: (((self.bounds.width() + 1) << self.tie_bits) - 1) as i64,
        };
        let mut points = vec![0; self.nodes.len()];
        search(&self.nodes, field, &mut bits, &mut points);
        let grid = self.bounds.grid();
        let value = |point: i64| grid.value(i128::from(lower + (point >> self.tie_bits)));
        let values = points.into_iter().map(value).collect();
        Ok(Release::new(values, self.event()))
    }

    /// The last quantile minus the first: of quartiles, the interquartile range. Spends one `event`.
    pub fn release_spread(
        &self,
        rows: Secret<Vec<i64>>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<f64>> {
        let release = self.release(rows, entropy)?;
        Ok(release.map(|values| values[values.len() - 1] - values[0]))
    }

    /// A rank error, in rows, that all of them keep together with this confidence; infinite without any budget.
    pub fn rank_error(&self, confidence: Confidence) -> f64 {
        let points = round::mul_up(
            ((self.bounds.width() + 1) as f64).next_up(),
            f64::from(1_u32 << self.tie_bits),
        );
        let miss = round::sub_down(1.0, confidence.value());
        let log = round::ln_up(round::div_up(
            round::mul_up(points.next_up(), self.nodes.len() as f64),
            miss,
        ));
        worst_path(
            &self.nodes,
            &|node| match Ratio::one().checked_div(&node.rate) {
                // And the row in which a target above may fall.
                Some(each) => round::add_up(1.0, round::mul_up(log, each.to_f64_up())),
                None => f64::INFINITY,
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{confidence, judge, seed};
    use whit_core::{AddRemove, Fault, Neighbours, ReplaceOne};
    use whit_testkit::{FailingEntropy, Seeded, SeededBits};

    fn shares(of: &[u64], out_of: u64) -> Vec<Probability> {
        let share = |&n: &u64| Probability::new(Ratio::new(n.into(), out_of.into()).expect("some"));
        of.iter().map(|n| share(n).expect("a share")).collect()
    }

    fn quantiles<R: Relation>(shares: &[Probability], k: u32, epsilon: f64) -> Quantiles<R> {
        let bounds = Bounds::new(0.0, 100.0).expect("a range");
        let epsilon = Epsilon::new(epsilon).expect("not negative");
        Quantiles::new(shares, bounds, Contribution::RowsPerUnit(k), epsilon).expect("they grow")
    }

    #[test]
    fn closed_form() {
        for count in 1..40 {
            let all: Vec<u64> = (1..=count).collect();
            let quantiles = quantiles::<AddRemove>(&shares(&all, count + 1), 1, 1.0);
            let levels = count.ilog2() + 1;
            assert_eq!(worst_path(&quantiles.nodes, &|_| 1.0), f64::from(levels));
            let Mechanism::Composition(parts) = quantiles.event().mechanism().clone() else {
                panic!("another event")
            };
            let epsilon = Ratio::new(1, levels.into()).expect("a level");
            assert_eq!(
                parts,
                vec![Mechanism::BoundedRange { epsilon }; levels as usize]
            );
        }
        let quartiles = quantiles::<ReplaceOne>(&shares(&[1, 3], 4), 1, 2.0);
        assert_eq!(quartiles.event().neighbours(), Neighbours::ReplaceOne);
        assert!(quartiles.rank_error(confidence(0.9)) > 100.0);
    }

    #[test]
    fn rejects_what_are_no_shares() {
        let new = |shares: &[Probability]| {
            let bounds = Bounds::new(0.0, 1.0).expect("a range");
            let made =
                Quantiles::<AddRemove>::new(shares, bounds, Contribution::Row, Epsilon::ZERO);
            made.err().map(|error| error.code())
        };
        assert_eq!(new(&[]), Some("count_out_of_range"));
        assert_eq!(new(&shares(&[2, 1], 3)), Some("shares_not_growing"));
        assert_eq!(new(&shares(&[1, 1], 3)), Some("shares_not_growing"));
        for of in [&[0, 1, 3][..], &[3], &[0]] {
            assert_eq!(new(&shares(of, 3)), None);
        }
    }

    /// The last quartile of two: a replaced row moves the sliver above `v` from an error of one to none.
    fn seen(epsilon: f64) -> whit_audit::Verdict {
        let both = quantiles::<ReplaceOne>(&shares(&[1, 2], 4), 1, epsilon);
        let v = 98.5;
        let event = |rows: [f64; 2], entropy: &mut Seeded| {
            both.release(both.aggregate(rows), entropy)
                .expect("entropy")
                .value()[1]
                > v
        };
        let (mut one, mut other) = (Seeded::new(seed(531)), Seeded::new(seed(532)));
        // The first level has half of the budget.
        judge(
            3.0,
            0.0,
            80_000,
            || event([0.0, v], &mut one),
            || event([f64::MAX, v], &mut other),
        )
    }

    #[test]
    fn falsifier() {
        let verdict = seen(6.0);
        assert!(
            !verdict.convicted && verdict.epsilon_lower > 2.2,
            "{verdict:?}"
        );
    }

    #[test]
    fn falsifier_has_teeth() {
        assert!(seen(8.0).convicted, "a quarter too little noise");
    }

    #[test]
    fn ties_are_divided_and_answers_are_in_order() {
        let deciles = quantiles::<AddRemove>(&shares(&[1, 2, 3, 4, 5, 6, 7, 8, 9], 10), 1, 10.0);
        let mut entropy = Seeded::new(seed(533));
        let mut release = |rows: Vec<f64>| {
            let release = deciles
                .release(deciles.aggregate(rows), &mut entropy)
                .expect("entropy");
            let values = release.into_value();
            assert!(
                values.is_sorted() && values.len() == 9 && values[0] >= 0.0 && values[8] <= 100.0
            );
            values
        };
        // Two thirds are zero and the others spread out: six deciles are zero, the others 10, 40 and 70.
        let zeros = release(
            (0..30_000)
                .map(|i| f64::from((i - 20_000).max(0)) / 100.0)
                .collect(),
        );
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
        assert!(
            deciles
                .release(Secret::new(vec![]), &mut FailingEntropy)
                .is_err()
        );
    }

    #[test]
    fn spread_of_quartiles() {
        let bounds = Bounds::new(-1000.0, 1000.0).expect("a range");
        let epsilon = Epsilon::new(2.0).expect("not negative");
        let quartiles =
            Quantiles::<ReplaceOne>::quartiles(bounds, Contribution::Row, epsilon).expect("two");
        let mut bits = SeededBits::new(534);
        let rows: Vec<f64> = (0..10_000)
            .map(|_| bits.below(10_000) as f64 / 100.0)
            .collect();
        let spread = quartiles.release_spread(quartiles.aggregate(rows), &mut Seeded::new(535));
        let spread = spread.expect("entropy").into_value();
        assert!((spread - 50.0).abs() < 2.0, "{spread}");
    }
}
