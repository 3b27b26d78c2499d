//! Sums over several micro-batches at once, and how often a term is rounded.

use super::step::{Cut, halves};
use super::tests::{GRID, Run, first, flat, mlp, rows};
use super::*;
use crate::layer::{Activation, Function, Layer, Linear};
use crate::loss::Loss;
use crate::network::Grouping;

fn two_layers(inputs: usize, hidden: usize) -> Network {
    let layers: Vec<Box<dyn Layer>> = vec![
        Box::new(Linear::new(inputs, hidden)),
        Box::new(Activation::new(Function::Relu, hidden)),
        Box::new(Linear::new(hidden, 3)),
    ];
    Network::new(layers, Loss::CrossEntropy).expect("it fits")
}

/// A network whose sums are taken jointly.
fn wide_mlp() -> Network {
    two_layers(160, 210)
}

/// A large one. Its inputs fill no whole blocks.
fn large_mlp() -> Network {
    two_layers(150, 900)
}

#[test]
fn joint_sums_are_within_half_of_eta_and_have_the_same_bits_for_any_threads() {
    let (wide, large) = (wide_mlp(), large_mlp());
    assert!(matches!(wide.grouping(64), Grouping::Joint(kept) if kept * wide.slots() < 1500));
    assert!(matches!(large.grouping(104), Grouping::Joint(kept) if kept * large.slots() < 1500));
    is_within_half_of_eta(&wide, 160);
    is_within_half_of_eta(&large, 150);
}

fn is_within_half_of_eta(network: &Network, inputs: usize) {
    let examples = rows(1500, inputs, 2.0);
    let mut run = Run::new(network, &examples, flat(1.0), 1500);
    // Several groups of micro-batches, few of them, an odd number of them, one micro-batch, one example.
    for count in [1500, 1300, 700, 130, 20, 1] {
        let mut exact = vec![0; network.param_len()];
        for row in 0..count {
            exact
                .iter_mut()
                .zip(run.of(&[row]))
                .for_each(|(sum, x)| *sum += x);
        }
        run.threads = 1;
        let one = run.both(&first(count));
        let distance = run.distance(&exact, &one.0);
        assert!(distance <= (1.0 - run.sum.margin()) / 2.0, "{distance}");
        for threads in [2, 3, 5] {
            run.threads = threads;
            assert!(run.both(&first(count)) == one, "{threads} threads");
        }
        let without: Vec<u32> = (1..count).collect();
        assert!(run.distance(&one.0, &run.of(&without)) <= 1.0);
    }
    assert_eq!(run.both(&[]), (vec![0; network.param_len()], 0));
}

/// One whose gradients are formed and too many for totals of each thread's own.
fn large_formed() -> Network {
    let layers: Vec<Box<dyn Layer>> = vec![
        Box::new(Linear::at_positions(200, 200, 2)),
        Box::new(Activation::new(Function::Tanh, 400)),
        Box::new(Linear::new(400, 3)),
    ];
    Network::new(layers, Loss::CrossEntropy).expect("it fits")
}

/// The total is cut into chunks, of which each must be cleared and carried: the wide sum of the same batch knows nothing of them.
#[test]
fn large_loose_sums_are_those_of_wide_floats() {
    let network = large_formed();
    assert!(matches!(network.grouping(32), Grouping::Loose(_)) && network.param_len() > 40_000);
    let examples = rows(300, 400, 2.0);
    // Nothing is clipped, so that factors are one for both margins.
    let mut narrow = Run::new(&network, &examples, flat(1e6), 300);
    // Beyond its cap it sums in wide floats.
    let wide = Run::new(&network, &examples, flat(1e6), 1);
    for count in [300, 33, 2] {
        narrow.threads = 1;
        let one = narrow.both(&first(count));
        let margins = [&narrow, &wide].map(|run| 1.0 - run.sum.margin());
        let off = narrow.distance(&one.0, &wide.of(&first(count)));
        // Factors follow the margins, which are not the same.
        assert!(
            off <= f64::from(count) * (margins[0] + margins[1]) + 1e-6,
            "{off}"
        );
        for threads in [2, 3, 5] {
            narrow.threads = threads;
            assert!(narrow.both(&first(count)) == one, "{threads} threads");
        }
    }
    assert_eq!(narrow.both(&[]), (vec![0; network.param_len()], 0));
}

/// In training they change at every step, and the memory stays.
#[test]
fn new_weights_are_packed_by_every_thread_at_every_step() {
    for (network, width) in [(mlp(), 4), (wide_mlp(), 160), (large_mlp(), 150)] {
        let examples = rows(300, width, 2.0);
        let mut kept = Run::new(&network, &examples, flat(1.0), 300);
        for step in 0..3 {
            for weight in &mut kept.params {
                *weight *= -0.7;
            }
            for threads in [1, 2, 3] {
                kept.threads = threads;
                let mut fresh = Run::new(&network, &examples, flat(1.0), 300);
                fresh.params.clone_from(&kept.params);
                assert!(
                    kept.both(&first(300)) == fresh.both(&first(300)),
                    "step {step}, {threads} threads"
                );
            }
        }
    }
}

/// The same lengths everywhere, and other layers that are trained.
#[test]
fn one_memory_serves_networks_that_begin_elsewhere() {
    let tanh = || -> Box<dyn Layer> { Box::new(Activation::new(Function::Tanh, 4)) };
    let linear = || -> Box<dyn Layer> { Box::new(Linear::new(4, 4)) };
    let networks = [
        vec![tanh(), tanh(), linear()],
        vec![linear(), tanh(), linear()],
    ];
    let examples = rows(9, 4, 1.0);
    let mut memory = Memory::default();
    for layers in networks {
        let network = Network::new(layers, Loss::CrossEntropy).expect("it fits");
        let run = Run::new(&network, &examples, flat(1.0), 64);
        let (rows, seeds) = (first(3), []);
        let batch = BatchRows {
            examples: &examples,
            rows: &rows,
            seeds: &seeds,
        };
        let sum = run
            .sum
            .sum(&network, &run.params, batch, 1, &mut memory, Vec::new());
        assert!(sum.expect("it fits").sum.expose() == run.of(&rows));
    }
}

/// As many parameters and slots, and one chain more where batches may be large: another margin is proven for it.
#[test]
fn a_sum_that_was_proven_for_fewer_chains_is_refused() {
    let [few, more] = [(6530, 10), (5936, 11)].map(|(inputs, hidden)| two_layers(inputs, hidden));
    assert_eq!(few.param_len(), more.param_len());
    let sum = ClippedSum::new(&few, flat(1.0), GRID, 5000).expect("it fits");
    let examples = rows(1, 5936, 1.0);
    let batch = BatchRows {
        examples: &examples,
        rows: &[0],
        seeds: &[],
    };
    let params = vec![0.0; more.param_len()];
    let taken = sum.sum(&more, &params, batch, 1, &mut Memory::default(), Vec::new());
    assert!(matches!(taken, Err(NetworkError::OtherNetwork)));
}

#[test]
fn the_plain_sum_is_that_of_gradients_that_are_not_clipped() {
    let (small, wide, large) = (mlp(), wide_mlp(), large_mlp());
    for (network, width) in [(&small, 4), (&wide, 160), (&large, 150)] {
        let examples = rows(100, width, 0.5);
        let run = Run::new(network, &examples, flat(1e6), 100);
        let rows = first(100);
        let batch = BatchRows {
            examples: &examples,
            rows: &rows,
            seeds: &[],
        };
        let (mut memory, mut plain) = (Memory::default(), vec![7.0; 3]);
        non_private_sum(network, &run.params, batch, &mut memory, &mut plain).expect("it fits");
        for (&one, &other) in plain.iter().zip(&run.of(&rows)) {
            let other = other as f64 * run.sum.grid();
            assert!((f64::from(one) - other).abs() < 1e-4 * (1.0 + other.abs()));
        }
    }
}

/// Counts the roundings of every term, for batches of all sizes, by the cut that is used.
#[test]
fn terms_go_through_at_most_the_roundings_of_the_proof() {
    let networks = [mlp(), wide_mlp(), large_mlp()];
    for (network, cap) in networks
        .iter()
        .flat_map(|each| [(each, 1000), (each, 5000)])
    {
        let slots = network.slots_for(cap);
        let (chain, chains) = network.chains(slots);
        let most = Cut::new(network, slots, cap).micro_batches + 1;
        for n in 1..=cap {
            let cut = Cut::new(network, slots, n);
            assert!(cut.micro_batches <= most);
            let sizes: Vec<usize> = (0..cut.micro_batches).map(|i| cut.rows(i).len()).collect();
            assert_eq!(sizes.iter().sum::<usize>(), n);
            assert!(sizes.iter().all(|&size| size >= 1 && size <= slots));
            // Each micro-batch is a chain, and those that are carried together are added one after the other, or so in halves, whose
            // sums are added.
            let mut roundings = 0;
            let grouping = network.grouping(slots);
            let groups = cut.groups(grouping);
            let all: Vec<usize> = groups.iter().cloned().flatten().collect();
            assert!(all.into_iter().eq(0..sizes.len()), "each once, in order");
            for group in groups {
                let count = group.len();
                assert!((1..=chains).contains(&count));
                let parts = match grouping.is_joint() {
                    true => halves(count).to_vec(),
                    false => [0..count, count..count].to_vec(),
                };
                assert!(parts.iter().cloned().flatten().eq(0..count));
                let both = usize::from(parts.iter().filter(|part| !part.is_empty()).count() > 1);
                for part in parts {
                    for at in part.clone() {
                        let (e, later) = (sizes[group.start + at], part.end - at + both);
                        roundings += (1..=e).map(|i| e - i + 2 + later).sum::<usize>();
                    }
                }
            }
            assert!(2 * roundings <= n * (chain + chains + 7), "{n} examples");
        }
    }
}

#[test]
fn the_margin_is_that_of_the_proof() {
    let (small, wide, large) = (mlp(), wide_mlp(), large_mlp());
    // Four chains of 32, sixteen of 64 and nine of 104, carried together. Where batches may be large, twenty-one of 48.
    for (network, cap, chain, chains) in [
        (&small, 1000, 32.0, 4.0),
        (&wide, 1000, 64.0, 16.0),
        (&large, 1000, 104.0, 9.0),
        (&small, 5000, 32.0, 4.0),
        (&wide, 5000, 48.0, 21.0),
        (&large, 5000, 48.0, 21.0),
    ] {
        let sum = ClippedSum::new(network, flat(2.0), GRID, cap).expect("it fits");
        assert!(
            sum.slots as f64 <= chain,
            "chains of more examples than are counted"
        );
        let (norm, slack, root) = (2.0, 1.0 + 1.0 / 256.0, (network.param_len() as f64).sqrt());
        let narrow = (chain + chains + 7.0) / 2.0 / 16_777_216.0 * slack * f64::from(cap) * norm;
        let wide = 8194.0 * 2.0_f64.powi(-53 + 25) * slack * norm;
        // Sums of batches beyond the cap are carried more often than any of these.
        let carried = 8192.0 * root * GRID / 2.0;
        let expected = 2.0 * (narrow + wide + carried) / norm;
        let eta = 1.0 - sum.margin();
        assert!(
            eta >= expected && eta < expected * (1.0 + 1e-9),
            "{eta} {expected}"
        );
    }
}
