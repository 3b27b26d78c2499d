//! Decision trees that are grown from noisy counts. Everything here is post-processing: it sees released numbers and public ones.

use serde::{Deserialize, Serialize};

use super::domain::Domain;

/// Sides with fewer examples than this many deviations of their noise are not split off.
const DEVIATIONS: f64 = 2.0;

/// Deeper trees have more leaves than there are sums.
pub(super) const DEPTH_MAX: usize = 16;

/// A tree of which all leaves are equally deep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Tree {
    /// Level by level, the splits of all nodes from left to right. Where there is no split all examples go left.
    pub(super) levels: Vec<Vec<Option<Split>>>,
    /// For each leaf the share of each class. Empty while the tree grows.
    pub(super) shares: Vec<Vec<f64>>,
}

/// Which way examples go.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Split {
    pub(super) feature: usize,
    /// For each bin of the feature: to the right?
    pub(super) right: Vec<bool>,
}

impl Tree {
    /// The node of the last level that an example comes to, whose features have these bins.
    pub(super) fn node(&self, bin: impl Fn(usize) -> usize) -> usize {
        let mut node = 0;
        for level in &self.levels {
            let split = level[node].as_ref();
            let right = split.is_some_and(|split| split.right[bin(split.feature)]);
            node = 2 * node + usize::from(right);
        }
        node
    }

    /// Do its parts fit each other, and the features of these domains and so many classes? A file may say anything.
    pub(super) fn is_whole(&self, domains: &[Domain], classes: usize) -> bool {
        let splits_fit = |(depth, level): (usize, &Vec<Option<Split>>)| {
            let fits = |split: &Split| {
                let domain = domains.get(split.feature);
                domain.is_some_and(|domain| domain.bins() == split.right.len())
            };
            level.len() == 1 << depth && level.iter().flatten().all(fits)
        };
        self.levels.len() <= DEPTH_MAX
            && self.levels.iter().enumerate().all(splits_fit)
            && self.shares.len() == 1 << self.levels.len()
            && self.shares.iter().all(|shares| {
                shares.len() == classes && shares.iter().all(|share| (0.0..=1.1).contains(share))
            })
    }
}

/// Noisy counts of one node: bin by bin of one feature, class by class.
pub(super) struct Histogram<'a> {
    pub(super) feature: usize,
    pub(super) domain: Domain,
    pub(super) counts: &'a [f64],
}

/// What is known of the counts of a forest.
#[derive(Clone, Copy)]
pub(super) struct Counts {
    pub(super) classes: usize,
    /// Of the noise of each count.
    pub(super) deviation: f64,
}

impl Counts {
    /// The split with the purest sides. None if noise hides all of them.
    pub(super) fn split(self, histograms: &[Histogram<'_>]) -> Option<Split> {
        let best = histograms.iter().filter_map(|h| self.best_of(h));
        let best = best.max_by(|a, b| a.0.total_cmp(&b.0));
        best.map(|(_, split)| split)
    }

    /// The best split of one feature, with its score.
    fn best_of(self, histogram: &Histogram<'_>) -> Option<(f64, Split)> {
        let bins: Vec<&[f64]> = histogram.counts.chunks_exact(self.classes).collect();
        let order = match histogram.domain.is_ordered() {
            true => (0..bins.len()).collect(),
            false => self.order(&bins),
        };
        let mut right = total(&bins, self.classes);
        let mut left = vec![0.0; self.classes];
        let mut best: Option<(f64, usize)> = None;
        for cut in 1..bins.len() {
            for ((left, right), count) in left.iter_mut().zip(&mut right).zip(bins[order[cut - 1]])
            {
                *left += count;
                *right -= count;
            }
            let sides = self.purity(&left, cut);
            let score = sides.zip(self.purity(&right, bins.len() - cut));
            if let Some(score) = score.map(|(left, right)| left + right)
                && best.is_none_or(|best| score > best.0)
            {
                best = Some((score, cut));
            }
        }
        let (score, cut) = best?;
        let mut right = vec![false; bins.len()];
        for bin in &order[cut..] {
            right[*bin] = true;
        }
        let feature = histogram.feature;
        Some((score, Split { feature, right }))
    }

    /// Categories by how much more often than elsewhere they have the most frequent class: for two classes the best split is one of a
    /// row \[BFOS84\]. Rare categories stand in the middle.
    fn order(self, bins: &[&[f64]]) -> Vec<usize> {
        let total = total(bins, self.classes);
        let all = size(&total).max(1.0);
        let top = first_of_largest(&total);
        let share = (total[top] / all).clamp(0.0, 1.0);
        let score = |bin: &[f64]| {
            let more = bin[top] - share * bin.iter().sum::<f64>();
            more / (size(bin) + self.noise(1))
        };
        let scores: Vec<f64> = bins.iter().map(|bin| score(bin)).collect();
        let mut order: Vec<usize> = (0..bins.len()).collect();
        order.sort_by(|&a, &b| scores[a].total_cmp(&scores[b]));
        order
    }

    /// `Σ n_k²/n`, so that the sum over sides is largest where Gini's impurity is least; less what noise adds to squares. None if the
    /// side is no larger than its noise.
    fn purity(self, side: &[f64], bins: usize) -> Option<f64> {
        let (size, noise) = (size(side), self.noise(bins));
        let squares: f64 = side.iter().map(|n| n.max(0.0).powi(2)).sum();
        (size > DEVIATIONS * noise).then(|| (squares - noise * noise) / size)
    }

    /// The deviation of the sum of all counts of so many bins.
    fn noise(self, bins: usize) -> f64 {
        self.deviation * ((bins * self.classes) as f64).sqrt()
    }

    /// Shares of classes in all leaves, from noisy counts of them. A leaf that is small beside its noise looks like its parent.
    pub(super) fn shares(self, leaves: &[f64]) -> Vec<Vec<f64>> {
        let leaf = |counts: &[f64]| counts.to_vec();
        let mut levels: Vec<Vec<Vec<f64>>> =
            vec![leaves.chunks_exact(self.classes).map(leaf).collect()];
        while let Some(below) = levels.last().filter(|level| level.len() > 1) {
            let both = |pair: &[Vec<f64>]| total(&[&pair[0], &pair[1]], self.classes);
            let above = below.chunks_exact(2).map(both).collect();
            levels.push(above);
        }
        let depth = levels.len() - 1;
        let nothing = vec![1.0 / self.classes as f64; self.classes];
        let mut shares = vec![nothing];
        for (level, nodes) in levels.iter().rev().enumerate() {
            let noise = self.noise(1 << (depth - level));
            let parent = |node: usize| &shares[if level == 0 { 0 } else { node / 2 }];
            let each = nodes.iter().enumerate();
            shares = each
                .map(|(node, counts)| blend(counts, parent(node), noise))
                .collect();
        }
        shares
    }
}

/// Shares of these counts, nearer to the parent's the more noise there is.
fn blend(counts: &[f64], parent: &[f64], noise: f64) -> Vec<f64> {
    let size = size(counts);
    let trust = size / (size + noise + 1.0);
    let share = |(count, parent): (&f64, &f64)| {
        trust * count.max(0.0) / size.max(f64::MIN_POSITIVE) + (1.0 - trust) * parent
    };
    counts.iter().zip(parent).map(share).collect()
}

/// How many there are, if no class has fewer than none.
fn size(counts: &[f64]) -> f64 {
    counts.iter().map(|count| count.max(0.0)).sum()
}

/// Class by class.
fn total(bins: &[impl AsRef<[f64]>], classes: usize) -> Vec<f64> {
    let mut total = vec![0.0; classes];
    for bin in bins {
        for (total, count) in total.iter_mut().zip(bin.as_ref()) {
            *total += count;
        }
    }
    total
}

/// The first of the largest; zero if there is nothing.
pub(super) fn first_of_largest(scores: &[f64]) -> usize {
    let mut best = (0, f64::NEG_INFINITY);
    for (index, score) in scores.iter().enumerate() {
        if *score > best.1 {
            best = (index, *score);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::super::Interval;
    use super::*;

    fn counts(deviation: f64) -> Counts {
        Counts {
            classes: 2,
            deviation,
        }
    }

    fn numbers(bins: usize) -> Domain {
        let interval = Interval::new(0.0, 1.0).expect("an interval");
        Domain::numbers(interval, bins).expect("a domain")
    }

    fn histogram(feature: usize, domain: Domain, counts: &[f64]) -> Histogram<'_> {
        Histogram {
            feature,
            domain,
            counts,
        }
    }

    /// Of two features one tells the classes apart, at its third bin.
    #[test]
    fn splits_where_sides_are_purest() {
        let telling = [90.0, 1.0, 95.0, 5.0, 4.0, 99.0, 2.0, 80.0];
        let silent = [50.0, 48.0, 47.0, 51.0, 45.0, 50.0, 49.0, 36.0];
        let histograms = [
            histogram(3, numbers(4), &silent),
            histogram(5, numbers(4), &telling),
        ];
        let split = counts(1.0).split(&histograms).expect("a split");
        assert_eq!(split.feature, 5);
        assert_eq!(split.right, [false, false, true, true]);
        let tree = Tree {
            levels: vec![vec![Some(split)], vec![None, None]],
            shares: vec![],
        };
        let node = |at: usize| tree.node(|feature| if feature == 5 { at } else { 0 });
        assert_eq!([node(0), node(1), node(2), node(3)], [0, 0, 2, 2]);
    }

    /// Categories have no order of their own: the first and the last belong together.
    #[test]
    fn categories_are_put_in_order() {
        let domain = Domain::categories(4).expect("a domain");
        let telling = [90.0, 1.0, 4.0, 95.0, 3.0, 99.0, 92.0, 3.0];
        let split = counts(1.0)
            .split(&[histogram(0, domain, &telling)])
            .expect("a split");
        let alone = split.right[0];
        assert_eq!(split.right, [alone, !alone, !alone, alone]);
    }

    #[test]
    fn noise_hides_splits() {
        let telling = [90.0, 1.0, 5.0, 95.0];
        let split = |deviation| counts(deviation).split(&[histogram(0, numbers(2), &telling)]);
        assert!(split(20.0).is_some());
        assert!(split(200.0).is_none());
        assert!(counts(1.0).split(&[]).is_none());
        assert!(
            counts(1.0)
                .split(&[histogram(0, numbers(1), &telling[..2])])
                .is_none()
        );
    }

    /// Without noise, `n/(n + 1)` of a node's own share and the rest of its parent's.
    #[test]
    fn closed_form_of_shares() {
        let near = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
        let shares = counts(0.0).shares(&[3.0, 0.0, 0.0, 0.0]);
        let root = 0.75 + 0.25 * 0.5;
        assert!(near(&shares[0], &[0.75 + 0.25 * root, 0.25 * (1.0 - root)]));
        assert!(
            near(&shares[1], &[root, 1.0 - root]),
            "an empty leaf is its parent"
        );
        let noisy = counts(1e9).shares(&[3.0, -4.0, 5.0, 1.0]);
        assert!(
            noisy
                .iter()
                .all(|share| (share[0] - 0.5).abs() < 1e-6 && (share[1] - 0.5).abs() < 1e-6)
        );
    }
}
