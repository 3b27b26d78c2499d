//! # Labels that spread to neighbours
//! **Definition.** Of rows, the graph in which each is joined to its `k` nearest, with weight `exp(-d²/(s_i s_j))`, where `s_i` is the distance to a near neighbour of `i`; joined twice if each is near the other. With `W`
//! its weights and `D` their sums, the shares `F` of classes follow `F ← a D^(-½) W D^(-½) F + (1-a) Y`, from the labels `Y` that are known [ZBL+04]. What lies densely together gets one class.
//!
//! Post-processing: rows are public, and labels are those that an aggregator told.

use std::num::NonZeroUsize;

use whit_mechanism::crew;

use super::kernel::products;
use crate::error::{Result, within};

/// The public numbers of spreading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The `k` nearest rows are joined to one.
    pub neighbours: usize,
    /// How much comes from neighbours in a round: `a`, below 1.
    pub share: f64,
}

/// Rounds of spreading: what is left of the first is `0.9^100` for the usual share.
const ROUNDS: usize = 100;
/// Rows whose distances to all others are taken at once.
const BLOCK: usize = 256;

impl Spread {
    /// Refuses numbers with which nothing would spread, or without end.
    pub fn check(&self) -> Result<()> {
        let count = self.neighbours as f64;
        within(
            "the number of neighbours",
            count,
            (1..=100).contains(&self.neighbours),
            "from 1 to 100",
        )?;
        let passes = self.share > 0.0 && self.share < 1.0;
        within(
            "the share of neighbours",
            self.share,
            passes,
            "above 0, and below 1",
        )
    }

    /// Shares of classes of all rows of `depth` numbers, from those labels that are known. All zero for a row that no label reaches.
    pub fn shares(
        &self,
        rows: &[f32],
        depth: usize,
        labels: &[Option<usize>],
        classes: usize,
        threads: NonZeroUsize,
    ) -> Vec<f32> {
        let graph = self.graph(rows, depth, threads);
        let mut known = vec![0.0_f32; labels.len() * classes];
        for (row, label) in labels.iter().enumerate() {
            if let Some(label) = label.filter(|label| *label < classes) {
                known[row * classes + label] = 1.0;
            }
        }
        let (share, mut found) = (self.share as f32, known.clone());
        for _ in 0..ROUNDS {
            let mut next = vec![0.0; found.len()];
            let each = next.chunks_mut(classes.max(1)).zip(&graph);
            let each = each.zip(known.chunks(classes.max(1)));
            crew::each(threads.get(), each, |((next, edges), known)| {
                for (other, weight) in edges {
                    let other = &found[other * classes..(other + 1) * classes];
                    for (sum, x) in next.iter_mut().zip(other) {
                        *sum += share * weight * x;
                    }
                }
                for (sum, x) in next.iter_mut().zip(known) {
                    *sum += (1.0 - share) * x;
                }
            });
            found = next;
        }
        found
    }

    /// For each row whom it is joined to, with normalised weights.
    fn graph(&self, rows: &[f32], depth: usize, threads: NonZeroUsize) -> Vec<Vec<(usize, f32)>> {
        let near = nearest(rows, depth, self.neighbours, threads);
        // The scale of a row is the distance to the last of its nearer half.
        let scale = |near: &Vec<(f32, usize)>| {
            let at = near.len().div_ceil(2).saturating_sub(1);
            near.get(at).map_or(0.0, |(square, _)| square.sqrt())
        };
        let scales: Vec<f32> = near.iter().map(scale).collect();
        let mut graph: Vec<Vec<(usize, f32)>> = vec![Vec::new(); near.len()];
        for (row, near) in near.iter().enumerate() {
            for (square, other) in near {
                let width = (scales[row] * scales[*other]).max(f32::MIN_POSITIVE);
                let weight = (-square / width).exp();
                graph[row].push((*other, weight));
                graph[*other].push((row, weight));
            }
        }
        let sum = |edges: &Vec<(usize, f32)>| edges.iter().map(|(_, weight)| weight).sum::<f32>();
        let sums: Vec<f32> = graph.iter().map(sum).collect();
        for (row, edges) in graph.iter_mut().enumerate() {
            for (other, weight) in edges {
                *weight /= (sums[row] * sums[*other]).max(f32::MIN_POSITIVE).sqrt();
            }
        }
        graph
    }
}

/// The `k` nearest others of each row, with their squared distances, the nearest first.
fn nearest(rows: &[f32], depth: usize, k: usize, threads: NonZeroUsize) -> Vec<Vec<(f32, usize)>> {
    let count = rows.len() / depth.max(1);
    let square = |row: &[f32]| row.iter().map(|x| x * x).sum::<f32>();
    let squares: Vec<f32> = rows.chunks_exact(depth.max(1)).map(square).collect();
    let mut found = vec![Vec::new(); count];
    let blocks = rows.chunks(BLOCK * depth.max(1));
    for (block, (own, found)) in blocks.zip(found.chunks_mut(BLOCK)).enumerate() {
        let mut inner = vec![0.0; found.len() * count];
        products(own, rows, depth, &mut inner, threads);
        let each = found.iter_mut().zip(inner.chunks_exact(count.max(1)));
        crew::each(threads.get(), each.enumerate(), |(at, (found, inner))| {
            let row = block * BLOCK + at;
            let others = (0..count).filter(|other| *other != row);
            let distance = |other: usize| squares[row] + squares[other] - 2.0 * inner[other];
            let mut all: Vec<(f32, usize)> = others
                .map(|other| (distance(other).max(0.0), other))
                .collect();
            let order =
                |a: &(f32, usize), b: &(f32, usize)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
            if all.len() > k {
                all.select_nth_unstable_by(k, order);
                all.truncate(k);
            }
            all.sort_by(order);
            *found = all;
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::learner::said;
    use super::*;

    const SPREAD: Spread = Spread {
        neighbours: 4,
        share: 0.9,
    };

    #[test]
    fn one_label_fills_what_lies_together() {
        // Two arcs far from each other, along which neighbours are near.
        let place = |i: usize| {
            let (arc, at) = (i % 2, (i / 2) as f32 / 30.0);
            [at + 10.0 * arc as f32, (3.0 * at).sin()]
        };
        let rows: Vec<f32> = (0..60).flat_map(place).collect();
        let mut labels = vec![None; 60];
        (labels[0], labels[59]) = (Some(2), Some(1));
        for threads in [1, 2] {
            let threads = NonZeroUsize::new(threads).expect("some");
            let shares = SPREAD.shares(&rows, 2, &labels, 3, threads);
            let said = said(&shares, 3);
            assert!((0..60).all(|i| said[i] == 2 - i % 2), "{said:?}");
        }
    }

    #[test]
    fn neighbours_are_the_nearest_and_rows_without_any_stay() {
        let near = nearest(&[0.0, 1.0, 3.0, 3.5], 1, 2, NonZeroUsize::MIN);
        assert_eq!(near[0], [(1.0, 1), (9.0, 2)]);
        assert_eq!(near[3], [(0.25, 2), (6.25, 1)]);
        let alone = SPREAD.shares(&[1.0], 1, &[Some(0)], 2, NonZeroUsize::MIN);
        assert!(alone[0] > 0.0 && alone[1] == 0.0);
        let none = SPREAD.shares(&[1.0, 1.0], 1, &[None, None], 2, NonZeroUsize::MIN);
        assert!(none.iter().all(|share| *share == 0.0));
        assert!(SPREAD.shares(&[], 3, &[], 2, NonZeroUsize::MIN).is_empty());
    }

    #[test]
    fn what_would_not_spread_is_refused() {
        assert!(SPREAD.check().is_ok());
        for bad in [
            Spread {
                neighbours: 0,
                ..SPREAD
            },
            Spread {
                share: 1.0,
                ..SPREAD
            },
            Spread {
                share: f64::NAN,
                ..SPREAD
            },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}
