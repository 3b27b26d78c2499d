//! Sums over several micro-batches at once, and how often a term is rounded.

use super::step::Cut;
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

/// A network whose sums are taken jointly, by each thread for itself.
fn wide_mlp() -> Network {
    two_layers(160, 210)
}

/// One whose sums all threads take together. Its inputs fill no whole blocks.
fn large_mlp() -> Network {
    two_layers(150, 900)
}

#[test]
fn joint_sums_are_within_half_of_eta_and_have_the_same_bits_for_any_threads() {
    let (wide, large) = (wide_mlp(), large_mlp());
    assert!(matches!(wide.grouping(64), Grouping::Apart(kept) if kept * wide.slots() < 700));
    assert!(matches!(large.grouping(104), Grouping::Joint(kept) if kept * large.slots() < 1500));
    is_within_half_of_eta(&wide, 160);
    is_within_half_of_eta(&large, 150);
}

fn is_within_half_of_eta(network: &Network, inputs: usize) {
    let examples = rows(1500, inputs, 2.0);
    let mut run = Run::new(network, &examples, flat(1.0), 1500);
    // Several groups of micro-batches, few of them, one micro-batch, one example.
    for count in [1500, 700, 20, 1] {
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
        for threads in [2, 5] {
            run.threads = threads;
            assert!(run.both(&first(count)) == one, "{threads} threads");
        }
        let without: Vec<u32> = (1..count).collect();
        assert!(run.distance(&one.0, &run.of(&without)) <= 1.0);
    }
    assert_eq!(run.both(&[]), (vec![0; network.param_len()], 0));
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
            // Each micro-batch is a chain, and those that are carried together are added in their order.
            let mut roundings = 0;
            let groups = cut.groups(network.grouping(slots));
            let all: Vec<usize> = groups.iter().cloned().flatten().collect();
            assert!(all.into_iter().eq(0..sizes.len()), "each once, in order");
            for group in groups.into_iter().map(|group| &sizes[group]) {
                assert!((1..=chains).contains(&group.len()));
                for (j, &e) in group.iter().enumerate() {
                    let later = group.len() - j;
                    roundings += (1..=e).map(|i| e - i + 2 + later).sum::<usize>();
                }
            }
            assert!(2 * roundings <= n * (chain + chains + 5), "{n} examples");
        }
    }
}

#[test]
fn the_margin_is_that_of_the_proof() {
    let (small, wide, large) = (mlp(), wide_mlp(), large_mlp());
    // Four chains of 32, eight of 64 and nine of 104, carried together. Where batches may be large, ten or twenty-one of 48.
    for (network, cap, chain, chains) in [
        (&small, 1000, 32.0, 4.0),
        (&wide, 1000, 64.0, 8.0),
        (&large, 1000, 104.0, 9.0),
        (&small, 5000, 32.0, 4.0),
        (&wide, 5000, 48.0, 10.0),
        (&large, 5000, 48.0, 21.0),
    ] {
        let sum = ClippedSum::new(network, flat(2.0), GRID, cap).expect("it fits");
        let roundings = (chain + chains + 5.0) / 2.0;
        let narrow = roundings / 16_777_216.0 * (1.0 + 1.0 / 256.0) * f64::from(cap) * 2.0;
        let eta = 1.0 - sum.margin();
        assert!(eta >= narrow && eta < narrow + 1e-3, "{eta} {narrow}");
    }
}
