//! # The tree of many quantiles
//! **Definition.** Shares `q_1 < … < q_m` in a binary tree: the middle one is the root, those before it are the left subtree, those
//!   behind it the right one. A node chooses a point by rank among the rows and the range it is given; rows up to that point
//!   and the range up to it go to the left, the other rows and the range from it on to the right. Its target is the share of its
//!   rows that is `(q - q_lo)/(q_hi - q_lo)`, where `lo` and `hi` are the nearest ancestors on both sides (or 0 and 1).
//! **Requires.** A unit has at most `k` rows.
//! **Guarantee.** Given the choices of the levels above, the choices of one level together have bounded range `ε'`, if a node with the
//!   relative share `q` has the rate (the factor of the rank error)
//!
//! | add/remove | replace-one, root | replace-one, others |
//! | --- | --- | --- |
//! | `ε'/(2kM)`, `M = max(q, 1-q)` | `ε'/(2k)` | `ε'/(4kM)` |
//!
//! **Proof.**
//! 1. Fix what the levels above have chosen. This fixes the ranges of the nodes of the level, and to which of them a row belongs
//!    depends on that row alone. A node sees its own rows and nothing else; the nodes choose independently of each other.
//! 2. If `j` rows are added to a node or removed from it, in any mixture, its rank errors change by at most `jM`, by the proof in
//!    [`quantile`](crate::quantile): the logarithm of the ratio of its probabilities has a range of at most `2 · rate · jM`. The
//!    logarithm for the whole level is the sum over its nodes, so its range is at most the sum of the ranges.
//! 3. Add/remove: the unit has at most `k` rows, each in at most one node of the level: `Σ j <= k`, and the sum is at most `ε'`.
//!    Replace-one: up to `k` rows are removed and up to `k` are added, `Σ j <= 2k`; with half the rate it is again at most `ε'`. In the
//!    root, which sees all rows, the rank errors change by at most `k`.
//!
//! **Error.** The target of a node is an average of the ranks at which its range was cut, weighted by its share: if these are off by
//!   at most `e`, so is the target. The errors of the nodes on the way to a quantile add up, no more. (A node that cuts at a
//!   point where rows lie is off by these on top.)

use dashu_ratio::RBig;
use whit_core::{Bits, Probability, Ratio, Relation, round};

use crate::Contribution;
use crate::quantile::larger_side;
use crate::sample::ranked::{Field, Ranked};

/// One share.
pub(crate) struct Node {
    /// Relative to the range it is searched in.
    pub(crate) share: RBig,
    ranked: Ranked,
    pub(crate) rate: Ratio,
}

/// `floor(log2 count) + 1`.
pub(crate) fn levels(count: usize) -> u32 {
    usize::BITS - count.leading_zeros()
}

/// The nodes for growing shares, in their order; each level has `epsilon_level`.
pub(crate) fn grow<R: Relation>(
    shares: &[Probability],
    epsilon_level: &Ratio,
    contribution: Contribution,
) -> Vec<Node> {
    let mut plan = vec![(RBig::ZERO, 0); shares.len()];
    let shares: Vec<RBig> = shares.iter().map(|q| q.ratio().as_rbig().clone()).collect();
    relative(&shares, (RBig::ZERO, RBig::ONE), 0, &mut plan);
    let node = |(share, depth): (RBig, u32)| {
        let rate = rate::<R>(epsilon_level, contribution, &share, depth);
        Node {
            share,
            ranked: Ranked::new(&rate),
            rate,
        }
    };
    plan.into_iter().map(node).collect()
}

/// The middle of so many; no more are left of it than `count/2`, and fewer right of it.
fn middle(count: usize) -> usize {
    count / 2
}

/// Shares relative to the range in which they will be searched, and the levels above.
fn relative(shares: &[RBig], ends: (RBig, RBig), depth: u32, plan: &mut [(RBig, u32)]) {
    if shares.is_empty() {
        return;
    }
    let at = middle(shares.len());
    let found = &shares[at];
    // The ends differ: one of them is a share, and there is another one between them or at the other end.
    plan[at] = ((found - &ends.0) / (&ends.1 - &ends.0), depth);
    let (left, right) = plan.split_at_mut(at);
    relative(&shares[..at], (ends.0, found.clone()), depth + 1, left);
    let ends = (found.clone(), ends.1);
    relative(&shares[at + 1..], ends, depth + 1, &mut right[1..]);
}

/// The rate of a node: the table of the module.
fn rate<R: Relation>(
    epsilon_level: &Ratio,
    contribution: Contribution,
    share: &RBig,
    depth: u32,
) -> Ratio {
    let side = larger_side(share);
    let replaced = if depth == 0 {
        Ratio::one()
    } else {
        &side * &Ratio::from(2_u64)
    };
    let rows_max = u64::from(contribution.rows_max().max(1));
    let twice = &R::pick(side, replaced) * &Ratio::from(2 * rows_max);
    epsilon_level
        .checked_div(&twice)
        .expect("a share or what it leaves is positive, and so is the number of rows")
}

/// Finds the middle one, divides, and goes on with both sides.
pub(crate) fn search<B: Bits>(nodes: &[Node], field: Field, bits: &mut B, points: &mut [i64]) {
    if nodes.is_empty() {
        return;
    }
    let at = middle(nodes.len());
    let node = &nodes[at];
    let target = &node.share * RBig::from(field.sorted.len());
    let point = node.ranked.choose(field, &target, bits);
    let (low, high) = field
        .sorted
        .split_at(field.sorted.partition_point(|&row| row <= point));
    let (left, right) = points.split_at_mut(at);
    right[0] = point;
    let below = Field {
        sorted: low,
        last: point,
        ..field
    };
    let above = Field {
        sorted: high,
        first: point,
        ..field
    };
    search(&nodes[..at], below, bits, left);
    search(&nodes[at + 1..], above, bits, &mut right[1..]);
}

/// The largest sum of costs on the way from the root.
pub(crate) fn worst_path(nodes: &[Node], cost: &impl Fn(&Node) -> f64) -> f64 {
    if nodes.is_empty() {
        return 0.0;
    }
    let at = middle(nodes.len());
    let below = worst_path(&nodes[..at], cost).max(worst_path(&nodes[at + 1..], cost));
    round::add_up(cost(&nodes[at]), below)
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_audit::enumerate;
    use whit_core::{AddRemove, Neighbours, ReplaceOne};

    /// A tree for three shares, in tenths, whose levels have a budget of one.
    fn nodes<R: Relation>(of: [u64; 3], k: u32) -> Vec<Node> {
        let share = |n: u64| Probability::new(Ratio::new(n.into(), 10).expect("ten"));
        let shares = of.map(|n| share(n).expect("a share"));
        grow::<R>(&shares, &Ratio::one(), Contribution::RowsPerUnit(k))
    }

    #[test]
    fn closed_form() {
        let rates = |of: Vec<Node>| -> Vec<f64> { of.iter().map(|n| n.rate.to_f64_up()).collect() };
        let relative = |n: &Node| n.share.to_f64().value();
        assert_eq!(
            nodes::<AddRemove>([1, 5, 9], 1)
                .iter()
                .map(relative)
                .collect::<Vec<_>>(),
            [0.2, 0.5, 0.8]
        );
        assert_eq!(rates(nodes::<AddRemove>([1, 5, 9], 1)), [0.625, 1.0, 0.625]);
        assert_eq!(
            rates(nodes::<ReplaceOne>([1, 5, 9], 1)),
            [0.3125, 0.5, 0.3125]
        );
        assert_eq!(
            rates(nodes::<ReplaceOne>([0, 1, 10], 2)),
            [0.125, 0.25, 0.125]
        );
        let cost = |node: &Node| node.rate.to_f64_up();
        assert_eq!(worst_path(&nodes::<AddRemove>([1, 5, 9], 1), &cost), 1.625);
    }

    const POINTS: i64 = 4;

    /// Rank errors of the points of a range, by the definition.
    fn errors(rows: &[i64], (first, last): (i64, i64), share: &RBig) -> Vec<RBig> {
        let target = share * RBig::from(rows.len());
        let error = |r: i64| {
            let below = RBig::from(rows.iter().filter(|&&x| x < r).count());
            let not_above = RBig::from(rows.iter().filter(|&&x| x <= r).count());
            (below - &target).max(&target - not_above).max(RBig::ZERO)
        };
        (first..=last).map(error).collect()
    }

    /// The nodes of the second level of three shares, once the first has chosen `cut`: their rows and ranges.
    fn sides(rows: &[i64], cut: i64) -> [(Vec<i64>, (i64, i64)); 2] {
        let (low, high) = rows.iter().partition(|&&row| row <= cut);
        [(low, (0, cut)), (high, (cut, POINTS - 1))]
    }

    /// All sets of up to `most` values on four points.
    fn sets(most: u32) -> impl Iterator<Item = Vec<i64>> {
        (0..5_i64.pow(most)).map(move |code| {
            let digits = (0..most).map(move |i| code / 5_i64.pow(i) % 5);
            digits.filter(|&x| x < POINTS).collect()
        })
    }

    /// The largest range of the log-ratio of a level, over all sets of up to three rows and all that one unit can change: exact.
    fn largest_range<R: Relation>(nodes: &[Node], k: u32) -> [RBig; 2] {
        let range = |node: &Node, one: &[i64], other: &[i64], ends: (i64, i64)| {
            let of = |rows: &[i64]| errors(rows, ends, &node.share);
            let changes = of(one).into_iter().zip(of(other)).map(|(a, b)| a - b);
            let changes: Vec<RBig> = changes.collect();
            let most = changes.iter().max().expect("a point");
            (most - changes.iter().min().expect("a point")) * node.rate.as_rbig()
        };
        let mut largest = [RBig::ZERO, RBig::ZERO];
        for common in sets(3) {
            for (added, removed) in sets(k).flat_map(|a| sets(k).map(move |r| (a.clone(), r))) {
                if R::NEIGHBOURS == Neighbours::AddRemove && !removed.is_empty() {
                    continue;
                }
                let (one, other) = (
                    [&common[..], &added].concat(),
                    [&common[..], &removed].concat(),
                );
                let first = range(&nodes[1], &one, &other, (0, POINTS - 1));
                largest[0] = first.max(largest[0].clone());
                for cut in 0..POINTS {
                    let (one, other) = (sides(&one, cut), sides(&other, cut));
                    let level = (0..2).fold(RBig::ZERO, |sum, i| {
                        sum + range(&nodes[2 * i], &one[i].0, &other[i].0, one[i].1)
                    });
                    largest[1] = level.max(largest[1].clone());
                }
            }
        }
        largest
    }

    /// Exhaustive, in rationals: no level exceeds its budget, and some neighbours nearly use it up.
    #[test]
    fn no_level_exceeds_its_budget() {
        let much = RBig::from_parts(1.into(), 2_u32.into());
        let check = |ranges: [RBig; 2]| {
            let within = ranges
                .iter()
                .all(|range| (&much..=&RBig::ONE).contains(&range));
            assert!(within, "{ranges:?}");
        };
        for of in [[1, 2, 3], [1, 5, 9], [0, 3, 7]] {
            check(largest_range::<AddRemove>(&nodes::<AddRemove>(of, 2), 2));
            check(largest_range::<AddRemove>(&nodes::<AddRemove>(of, 1), 1));
            check(largest_range::<ReplaceOne>(&nodes::<ReplaceOne>(of, 1), 1));
        }
    }

    /// The twin that charges a replaced row as if it touched one node of a level.
    #[test]
    fn a_replaced_row_that_pays_for_one_node_is_convicted() {
        let nodes = nodes::<AddRemove>([1, 2, 3], 1);
        let [_, second] = largest_range::<ReplaceOne>(&nodes, 1);
        assert!(second > RBig::ONE, "{second}");
    }

    /// Every tape of the recursion against products of the probabilities of its nodes.
    #[test]
    fn enumeration() {
        let nodes = nodes::<AddRemove>([3, 5, 8], 1);
        let node = |node: &Node, rows: &[i64], ends: (i64, i64), point: i64| {
            let rate = node.rate.to_f64_up();
            let weight = |error: &RBig| (-rate * error.to_f64().value()).exp();
            let weights: Vec<f64> = errors(rows, ends, &node.share).iter().map(weight).collect();
            weights[(point - ends.0) as usize] / weights.iter().sum::<f64>()
        };
        for rows in [vec![], vec![1], vec![0, 2, 2], vec![0, 1, 3, 3, 3]] {
            let field = Field {
                sorted: &rows,
                first: 0,
                last: POINTS - 1,
            };
            let found = enumerate::<1, _>(16, |tape| {
                let mut points = [0; 3];
                search(&nodes, field, tape, &mut points);
                points
            });
            let violations = found.violations(|&[low, cut, high]| {
                assert!(low <= cut && cut <= high);
                let [left, right] = sides(&rows, cut);
                let p = node(&nodes[1], &rows, (0, POINTS - 1), cut)
                    * node(&nodes[0], &left.0, left.1, low)
                    * node(&nodes[2], &right.0, right.1, high);
                let near = |p: f64| RBig::try_from(p).expect("finite");
                (near(p - 1e-12), near(p + 1e-12))
            });
            assert!(violations.is_empty(), "{rows:?}: {violations:?}");
            assert!(found.unresolved() < 1 << 13, "{}", found.unresolved());
        }
    }
}
