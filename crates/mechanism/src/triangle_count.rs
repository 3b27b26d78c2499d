//! # Triangles of a graph with smooth sensitivity
//! **Definition.** The number of triangles in an undirected graph over `n` public nodes, with noise in proportion to its smooth
//!   sensitivity.
//! **Requires.** The privacy unit is an edge: neighbours differ in one. Which nodes there are is public.
//! **Guarantee.** That of the [`SmoothNoise`].
//! **Proof.** For nodes `i, j` let `a_ij` be the number of their common neighbours and `b_ij` the number of other nodes that are a
//!   neighbour of exactly one. Adding or removing the edge `ij` changes the count by `a_ij`, so the local sensitivity is the largest
//!   of these. With `k` changes of other edges, a node counted in `b_ij` becomes a common neighbour by one change and one of
//!   neither by two, so the most that `a_ij` can become is `h_k = min(a_ij + ⌊(k + min(k, b_ij))/2⌋, n-2)`, and
//!   `A_k = max_ij h_k` is exactly the largest local sensitivity within `k` changes. \[NRS07\] As such it satisfies
//!   `A_k(x) <= A_{k+1}(x')`. It grows with `b`, so for each `a` only the largest `b` is kept.
//! **Error.** There is no error bar: the scale of the noise is as private as the graph.

use whit_core::{AddRemove, Entropy, Secret};

use crate::smooth_sensitivity::LocalSensitivity;
use crate::{Error, Release, Result, SmoothNoise};

/// Counts triangles over a public set of nodes, numbered from zero.
#[derive(Clone, Copy, Debug)]
pub struct TriangleCount {
    nodes: u32,
}

/// Beyond this, comparing all pairs of nodes takes longer than a second.
const NODES_MAX: u32 = 1 << 12;

impl TriangleCount {
    /// Checks that there are from 3 to 4096 nodes.
    pub fn new(nodes: u32) -> Result<Self> {
        if (3..=NODES_MAX).contains(&nodes) {
            return Ok(Self { nodes });
        }
        Err(Error::CountOutOfRange {
            what: "the number of nodes",
            given: u64::from(nodes),
            min: 3,
            max: u64::from(NODES_MAX),
        })
    }

    /// Builds the graph. Loops, repetitions and edges to nodes that do not exist add nothing.
    pub fn aggregate(&self, edges: impl IntoIterator<Item = (u32, u32)>) -> Secret<Graph> {
        let nodes = self.nodes as usize;
        let words = nodes.div_ceil(64);
        let mut adjacent = vec![0_u64; nodes * words];
        for (i, j) in edges {
            if i != j && i.max(j) < self.nodes {
                for (i, j) in [(i as usize, j as usize), (j as usize, i as usize)] {
                    adjacent[i * words + j / 64] |= 1 << (j % 64);
                }
            }
        }
        let row = |i: usize| &adjacent[i * words..(i + 1) * words];
        // For each number of common neighbours, the largest number of nodes beside only one of a pair.
        let mut beside: Vec<Option<u32>> = vec![None; nodes];
        let mut corners = 0;
        for i in 0..nodes {
            for j in 0..i {
                let pairs = || row(i).iter().zip(row(j));
                let common: u32 = pairs().map(|(a, b)| (a & b).count_ones()).sum();
                let different: u32 = pairs().map(|(a, b)| (a ^ b).count_ones()).sum();
                let joined = row(i)[j / 64] >> (j % 64) & 1 == 1;
                corners += u64::from(common) * u64::from(joined);
                // If joined, each of the two is itself a neighbour of exactly one of them, and is not meant.
                let different = different - 2 * u32::from(joined);
                let known = &mut beside[common as usize];
                *known = (*known).max(Some(different));
            }
        }
        Secret::new(Graph {
            nodes: self.nodes,
            triangles: corners / 3,
            beside,
        })
    }

    /// Adds the noise. Spends the event of `noise`. A negative count is shown as zero, which is post-processing.
    pub fn release(
        &self,
        graph: Secret<Graph>,
        noise: &SmoothNoise<AddRemove>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<u64>> {
        let count = noise.release(graph, entropy)?;
        Ok(count.map(|count| u64::try_from(count.max(0)).unwrap_or(u64::MAX)))
    }
}

/// What is needed to know of a graph.
pub struct Graph {
    nodes: u32,
    triangles: u64,
    beside: Vec<Option<u32>>,
}

impl LocalSensitivity<AddRemove> for Graph {
    fn value(&self) -> i128 {
        i128::from(self.triangles)
    }

    fn global(&self) -> u64 {
        u64::from(self.nodes - 2)
    }

    fn at_distance(&self, changes: u64) -> u64 {
        // After twice as many changes as there are nodes nothing grows any more.
        let changes = changes.min(2 * u64::from(self.nodes));
        let reached =
            |(common, beside): (u64, u32)| common + (changes + changes.min(u64::from(beside))) / 2;
        let known = (0..).zip(&self.beside);
        let pairs = known.filter_map(|(common, beside)| beside.map(|beside| (common, beside)));
        pairs.map(reached).max().unwrap_or(0).min(self.global())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{judge, seed};
    use crate::smooth_certificate::{Input, cauchy_holds};
    use dashu_ratio::RBig;
    use whit_core::Epsilon;
    use whit_testkit::Seeded;

    const NODES: u32 = 5;

    /// The pairs of five nodes; a graph is a set of them, as bits.
    fn pairs() -> Vec<(u32, u32)> {
        (0..NODES)
            .flat_map(|i| (0..i).map(move |j| (i, j)))
            .collect()
    }

    fn graph(code: usize) -> Graph {
        let edges = pairs().into_iter().enumerate();
        let edges = edges.filter_map(|(bit, edge)| (code >> bit & 1 == 1).then_some(edge));
        let count = TriangleCount::new(NODES).expect("nodes");
        count.aggregate(edges).expose()
    }

    fn all() -> Vec<Graph> {
        (0..1 << pairs().len()).map(graph).collect()
    }

    /// All 1024 graphs on five nodes: the count against the definition, and the local sensitivity at every distance against
    /// what walking from graph to graph finds.
    #[test]
    fn closed_form() {
        let graphs = all();
        let edges = pairs();
        for (code, graph) in graphs.iter().enumerate() {
            let has = |i, j| {
                let at = edges.iter().position(|&pair| pair == (i, j));
                code >> at.expect("ordered") & 1 == 1
            };
            let triples =
                (0..NODES).flat_map(|i| (0..i).flat_map(move |j| (0..j).map(move |k| (i, j, k))));
            let triangles = triples.filter(|&(i, j, k)| has(i, j) && has(i, k) && has(j, k));
            assert_eq!(graph.triangles, triangles.count() as u64);
        }
        let neighbours = |code: usize| (0..edges.len()).map(move |bit| code ^ 1 << bit);
        let mut largest: Vec<u64> = (0..graphs.len())
            .map(|code| {
                let change =
                    |other: usize| graphs[code].triangles.abs_diff(graphs[other].triangles);
                neighbours(code).map(change).max().expect("edges")
            })
            .collect();
        for changes in 0..=12 {
            for (graph, largest) in graphs.iter().zip(&largest) {
                assert_eq!(graph.at_distance(changes), *largest, "{changes} changes");
            }
            largest = (0..graphs.len())
                .map(|code| {
                    neighbours(code)
                        .map(|other| largest[other])
                        .fold(largest[code], u64::max)
                })
                .collect();
        }
    }

    /// Every output on every pair of neighbours among all graphs on five nodes.
    #[test]
    fn exact_comparison_of_all_neighbours() {
        let claim = Epsilon::new(0.6).expect("an epsilon");
        let noise = SmoothNoise::<AddRemove>::cauchy(claim).expect("in range");
        let (alpha, exact) = (noise.alpha(), claim.to_ratio());
        let broken = |sense: &dyn Fn(&Graph) -> RBig| {
            let inputs: Vec<Input> = all().iter().map(|x| (x.value(), sense(x))).collect();
            let pairs =
                (0..inputs.len()).flat_map(|code| (0..10).map(move |bit| (code, code ^ 1 << bit)));
            pairs
                .filter(|&(one, other)| {
                    !cauchy_holds(
                        &inputs[one],
                        &inputs[other],
                        alpha.as_rbig(),
                        exact.as_rbig(),
                    )
                })
                .count()
        };
        let smooth = |x: &Graph| x.smooth(noise.smoothness()).steps().clone();
        assert_eq!(broken(&smooth), 0);
        // Twins: the local sensitivity itself, and one that forgets that some nodes need a single change only.
        let local = |x: &Graph| RBig::from(x.at_distance(0).max(1));
        assert!(broken(&local) > 0);
        let forgetful = |x: &Graph| {
            let common = x.at_distance(0);
            let bound = noise.smoothness().bound(x.global(), |k| common + k / 2);
            bound.steps().clone()
        };
        assert!(broken(&forgetful) > 0);
    }

    #[test]
    fn what_is_no_edge_adds_nothing() {
        let count = TriangleCount::new(3).expect("nodes");
        let graph = count
            .aggregate([(0, 1), (1, 0), (1, 1), (2, 9), (u32::MAX, 0)])
            .expose();
        assert_eq!((graph.value(), graph.at_distance(0)), (0, 0));
        let none = count.aggregate([]).expose();
        assert_eq!((none.value(), none.global()), (0, 1));
        assert!(TriangleCount::new(2).is_err() && TriangleCount::new(5000).is_err());
    }

    /// Two nodes that share all others, joined or not.
    fn seen(claimed: f64) -> whit_audit::Verdict {
        let count = TriangleCount::new(40).expect("nodes");
        let noise =
            SmoothNoise::cauchy(Epsilon::new(claimed).expect("an epsilon")).expect("in range");
        let (mut one, mut other) = (Seeded::new(seed(5401)), Seeded::new(seed(5402)));
        let event = |joined: bool, entropy: &mut Seeded| {
            let edges = (2..40).flat_map(|node| [(0, node), (1, node)]);
            let graph = count.aggregate(edges.chain(joined.then_some((0, 1))));
            *count
                .release(graph, &noise, entropy)
                .expect("entropy")
                .value()
                == 0
        };
        judge(
            1.0,
            0.0,
            40_000,
            || event(false, &mut one),
            || event(true, &mut other),
        )
    }

    #[test]
    fn falsifier() {
        let verdict = seen(1.0);
        assert!(
            !verdict.convicted && verdict.epsilon_lower > 0.55,
            "{verdict:?}"
        );
    }

    #[test]
    fn falsifier_has_teeth() {
        assert!(seen(2.0).convicted);
    }
}
