//! The sum against brute force, its sensitivity, its bits for any threads and slots, and examples that are not finite.

use std::cell::RefCell;

use super::*;
use crate::layer::oracle::draws;
use crate::layer::{
    Activation, Conv2d, Dropout, Embedding, Flatten, Function, Layer, Linear, Norm, Pool, Pooling,
    Window,
};
use crate::loss::Loss;

/// For clip norms near 1.
pub(super) const GRID: f64 = 1.0 / 68_719_476_736.0;

/// The largest power of two that is at most 2^-36 of the norm.
fn grid(clip: &Clip) -> f64 {
    GRID * 2.0_f64.powi(clip.norm_upper().log2().floor() as i32)
}

/// Rows with their targets; `None` is an empty example.
pub(super) struct Rows {
    features: Vec<Option<Vec<f32>>>,
    classes: u32,
}

impl Examples for Rows {
    fn load(&self, row: u32, input: &mut [f32]) -> Option<f32> {
        input.copy_from_slice(self.features[row as usize].as_ref()?);
        Some((row % self.classes) as f32)
    }
}

pub(super) fn rows(count: usize, width: usize, size: f32) -> Rows {
    let mut draw = draws(5);
    let features = (0..count).map(|_| Some((0..width).map(|_| size * draw()).collect()));
    Rows {
        features: features.collect(),
        classes: 3,
    }
}

pub(super) fn mlp() -> Network {
    let layers: Vec<Box<dyn Layer>> = vec![
        Box::new(Linear::new(4, 6)),
        Box::new(Activation::new(Function::Tanh, 6)),
        Box::new(Linear::new(6, 3)),
    ];
    Network::new(layers, Loss::CrossEntropy).expect("it fits")
}

/// One of everything that a picture passes through.
fn cnn() -> Network {
    let window = |side, channels, kernel, stride, padding| Window {
        height: side,
        width: side,
        channels,
        kernel,
        stride,
        padding,
    };
    let layers: Vec<Box<dyn Layer>> = vec![
        Box::new(Conv2d::new(window(6, 1, 3, 1, 1), 4)),
        Box::new(Norm::group(36, 4, 2)),
        Box::new(Activation::new(Function::Relu, 144)),
        Box::new(Pool::new(window(6, 4, 2, 2, 0), Pooling::Max)),
        Box::new(Flatten::new(4, 9)),
        Box::new(Dropout::new(36, 0.2, 0)),
        Box::new(Linear::new(36, 3)),
    ];
    Network::new(layers, Loss::CrossEntropy).expect("it fits")
}

fn params(network: &Network) -> Vec<f32> {
    let mut draw = draws(9);
    (0..network.param_len()).map(|_| draw()).collect()
}

/// Everything at once, on one thread unless said otherwise.
pub(super) struct Run<'a> {
    pub(super) network: &'a Network,
    pub(super) sum: ClippedSum,
    pub(super) params: Vec<f32>,
    pub(super) examples: &'a Rows,
    pub(super) threads: usize,
    /// The same for all sums, as in training: what one leaves there must not show in the next.
    memory: RefCell<Memory>,
}

impl<'a> Run<'a> {
    pub(super) fn new(network: &'a Network, examples: &'a Rows, clip: Clip, cap: u32) -> Self {
        let grid = grid(&clip);
        Self {
            network,
            sum: ClippedSum::new(network, clip, grid, cap).expect("it fits"),
            params: params(network),
            examples,
            threads: 1,
            memory: RefCell::default(),
        }
    }

    pub(super) fn both(&self, rows: &[u32]) -> (Vec<i64>, i64) {
        // An example keeps its mask wherever it stands.
        let seeds: Vec<u64> = rows.iter().map(|&row| u64::from(row) * 7919).collect();
        let batch = BatchRows {
            examples: self.examples,
            rows,
            seeds: &seeds,
        };
        // Old numbers in the buffer must not show, wherever they are.
        let buffer = vec![123; self.network.param_len()];
        let summed = self
            .sum
            .sum(
                self.network,
                &self.params,
                batch,
                self.threads,
                &mut self.memory.borrow_mut(),
                buffer,
            )
            .expect("it fits");
        (summed.sum.expose(), summed.below.expose())
    }

    pub(super) fn of(&self, rows: &[u32]) -> Vec<i64> {
        self.both(rows).0
    }

    /// The L2 distance of two sums.
    pub(super) fn distance(&self, one: &[i64], other: &[i64]) -> f64 {
        let squares = one
            .iter()
            .zip(other)
            .map(|(a, b)| ((a - b) as f64 * self.sum.grid()).powi(2));
        squares.sum::<f64>().sqrt()
    }
}

pub(super) fn flat(norm: f64) -> Clip {
    Clip::flat(norm).expect("in range")
}

pub(super) fn first(count: u32) -> Vec<u32> {
    (0..count).collect()
}

/// The loss of the two-layer network in `f64`.
fn loss(params: &[f64], x: &[f32], class: usize) -> f64 {
    let (first, second) = params.split_at(30);
    let project = |p: &[f64], x: &[f64], outputs: usize| {
        let (weights, bias) = p.split_at(outputs * x.len());
        let rows = weights.chunks_exact(x.len()).zip(bias);
        rows.map(|(w, b)| b + w.iter().zip(x).map(|(w, x)| w * x).sum::<f64>())
            .collect::<Vec<_>>()
    };
    let x: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
    let hidden: Vec<f64> = project(first, &x, 6).iter().map(|x| x.tanh()).collect();
    let out = project(second, &hidden, 3);
    out.iter().map(|x| x.exp()).sum::<f64>().ln() - out[class]
}

#[test]
fn the_sum_is_that_of_brute_force() {
    let (network, examples) = (mlp(), rows(70, 4, 2.0));
    for (clip, norm) in [(flat(0.5), 0.5), (flat(100.0), 100.0)] {
        let run = Run::new(&network, &examples, clip, 100);
        let wide: Vec<f64> = run.params.iter().map(|&p| f64::from(p)).collect();
        let mut expected = vec![0.0; wide.len()];
        for (row, features) in examples.features.iter().enumerate() {
            let features = features.as_ref().expect("not empty");
            let gradient = (0..wide.len()).map(|at| {
                let value = |step: f64| {
                    let mut moved = wide.clone();
                    moved[at] += step;
                    loss(&moved, features, row % 3)
                };
                (value(1e-6) - value(-1e-6)) / 2e-6
            });
            let gradient: Vec<f64> = gradient.collect();
            let length = gradient.iter().map(|x| x * x).sum::<f64>().sqrt();
            let factor = (run.sum.margin() * norm / length).min(1.0);
            expected
                .iter_mut()
                .zip(&gradient)
                .for_each(|(sum, x)| *sum += factor * x);
        }
        for (sum, expected) in run.of(&first(70)).iter().zip(&expected) {
            let sum = *sum as f64 * run.sum.grid();
            assert!(
                (sum - expected).abs() < 2e-5 * (1.0 + expected.abs()),
                "{sum} {expected}"
            );
        }
    }
}

#[test]
fn neighbouring_sums_are_at_most_the_clip_norm_apart() {
    // Features of size 50: most gradients are clipped, so the bound is nearly reached.
    let (mlp, cnn) = (mlp(), cnn());
    for (network, width) in [(&mlp, 4), (&cnn, 36)] {
        let examples = rows(150, width, 50.0);
        let layers = network.trained_layers();
        let clips = [
            flat(0.3),
            Clip::per_layer_even(0.3, layers).expect("in range"),
            Clip::automatic(0.3, 0.01).expect("in range"),
        ];
        for clip in clips {
            let run = Run::new(network, &examples, clip.clone(), 160);
            let all = run.of(&first(150));
            let mut furthest = 0.0_f64;
            for gone in [0, 1, 2, 31, 32, 77, 148, 149] {
                let without: Vec<u32> = first(150).into_iter().filter(|&row| row != gone).collect();
                let distance = run.distance(&all, &run.of(&without));
                assert!(distance <= 0.3, "{clip:?}: {distance}");
                furthest = furthest.max(distance);
            }
            // A sum that lost its gradients would be just as close.
            assert!(furthest > 0.28, "{clip:?}: {furthest}");
        }
    }
}

#[test]
fn bits_are_the_same_for_any_threads() {
    let (network, examples) = (cnn(), rows(700, 36, 1.0));
    // A cap of 100: the narrow sum for 90 examples, and the wide one for 700.
    for (cap, count) in [(800, 700), (100, 90), (100, 700)] {
        let mut run = Run::new(&network, &examples, flat(1.0), cap);
        let one = run.both(&first(count));
        for threads in [2, 3, 16] {
            run.threads = threads;
            assert!(run.both(&first(count)) == one, "{threads} threads");
        }
    }
}

#[test]
fn other_orders_differ_by_rounding_only() {
    let (network, examples) = (cnn(), rows(300, 36, 1.0));
    let run = Run::new(&network, &examples, flat(1.0), 320);
    let (there, back) = (first(300), first(300).into_iter().rev().collect::<Vec<_>>());
    let distance = run.distance(&run.of(&there), &run.of(&back));
    assert!(distance > 0.0 && distance <= 1.0 - run.sum.margin());
}

#[test]
fn an_example_contributes_the_same_in_any_slot() {
    let (network, mut examples) = (cnn(), rows(64, 36, 3.0));
    let kept = 7;
    for (row, features) in examples.features.iter_mut().enumerate() {
        if row != kept {
            *features = None;
        }
    }
    let run = Run::new(&network, &examples, flat(0.1), 64);
    let alone = run.of(&[kept as u32]);
    assert!(alone.iter().any(|&x| x != 0));
    for slot in [0, 1, 9, 31, 40] {
        let mut rows: Vec<u32> = first(64)
            .into_iter()
            .filter(|&row| row != kept as u32)
            .collect();
        rows.insert(slot, kept as u32);
        assert!(run.of(&rows) == alone, "slot {slot}");
    }
}

#[test]
fn what_is_not_finite_contributes_exactly_zero() {
    let (mlp, cnn) = (mlp(), cnn());
    for (network, width) in [(&mlp, 4), (&cnn, 36)] {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX] {
            let (mut with, mut without) = (rows(40, width, 1.0), rows(40, width, 1.0));
            with.features[11] = Some(
                (0..width)
                    .map(|i| if i % 2 == 0 { bad } else { -bad })
                    .collect(),
            );
            without.features[11] = None;
            let count = |examples: &Rows| {
                let run = Run::new(network, examples, flat(1.0), 64);
                (run.both(&first(40)), run.of(&[11]))
            };
            let ((with, _), alone) = count(&with);
            let ((without, _), _) = count(&without);
            if bad.is_finite() {
                // Finite numbers this large may still have a finite, clipped gradient.
                let largest = alone.iter().map(|x| x.abs()).max().expect("parameters");
                assert!(largest as f64 * GRID <= 1.0);
            } else {
                assert!(with == without && alone.iter().all(|&x| x == 0), "{bad}");
            }
        }
    }
}

#[test]
fn beyond_the_cap_contributions_are_the_same() {
    let (network, examples) = (cnn(), rows(200, 36, 20.0));
    let narrow = Run::new(&network, &examples, flat(1.0), 256);
    let wide = Run::new(&network, &examples, flat(1.0), 99);
    // Margins differ with the cap, and so do factors, by this much.
    let gap = (narrow.sum.margin() - wide.sum.margin()).abs() + 1e-6;
    let distance = narrow.distance(&narrow.of(&first(200)), &wide.of(&first(200)));
    assert!(distance <= 200.0 * gap + 1.0 - narrow.sum.margin());
    // One example more than the cap is a neighbour of the cap.
    let distance = wide.distance(&wide.of(&first(99)), &wide.of(&first(100)));
    assert!(distance <= 1.0 && distance > 0.9, "{distance}");
}

/// Nothing is clipped here, so that factors are one whatever is kept off for rounding, and caps decide about the sum alone.
#[test]
fn beyond_the_cap_sums_are_wide() {
    let (network, examples) = (cnn(), rows(200, 36, 1.0));
    let of = |cap: u32, count: u32| Run::new(&network, &examples, flat(1e6), cap).of(&first(count));
    assert!(of(150, 151) == of(10, 151), "one more than the cap is wide");
    assert!(of(151, 151) != of(10, 151), "and as many are not");
}

/// Of three parts of 2^13 examples, each is carried by itself, as if it were alone.
#[test]
fn wide_sums_are_carried_part_by_part() {
    let (network, examples) = (mlp(), rows(300, 4, 1.0));
    let run = Run::new(&network, &examples, flat(1e6), 1);
    assert!(PART_MAX.is_multiple_of(run.sum.slots));
    let rows: Vec<u32> = (0..3 * PART_MAX as u32)
        .map(|row| row * 7 % 299 + row % 2)
        .collect();
    let mut expected = vec![0; network.param_len()];
    for part in rows.chunks(PART_MAX) {
        let sums = expected.iter_mut().zip(run.of(part));
        sums.for_each(|(sum, x)| *sum += x);
    }
    assert!(run.of(&rows) == expected);
}

#[test]
fn sums_are_within_half_of_eta_of_the_exact_ones() {
    let (network, examples) = (mlp(), rows(400, 4, 30.0));
    let run = Run::new(&network, &examples, flat(1.0), 400);
    // One example at a time there is next to no rounding: whole numbers, added exactly.
    let mut exact = vec![0; network.param_len()];
    for row in 0..400 {
        exact
            .iter_mut()
            .zip(run.of(&[row]))
            .for_each(|(sum, x)| *sum += x);
    }
    let distance = run.distance(&exact, &run.of(&first(400)));
    assert!(
        distance > 0.0 && distance <= (1.0 - run.sum.margin()) / 2.0,
        "{distance}"
    );
}

#[test]
fn embeddings_are_summed_entry_by_entry() {
    let layers: Vec<Box<dyn Layer>> = vec![
        Box::new(Embedding::new(5, 9, 4)),
        Box::new(Flatten::new(4, 5)),
        Box::new(Linear::new(20, 3)),
    ];
    let network = Network::new(layers, Loss::CrossEntropy).expect("it fits");
    let mut examples = rows(90, 5, 1.0);
    for features in examples.features.iter_mut().flatten() {
        features
            .iter_mut()
            .for_each(|x| *x = (x.abs() * 9.0).floor());
    }
    let run = Run::new(&network, &examples, flat(1.0), 128);
    let mut exact = vec![0; network.param_len()];
    for row in 0..90 {
        exact
            .iter_mut()
            .zip(run.of(&[row]))
            .for_each(|(sum, x)| *sum += x);
    }
    assert!(run.distance(&exact, &run.of(&first(90))) <= (1.0 - run.sum.margin()) / 2.0);
}

#[test]
fn examples_below_the_norm_are_counted() {
    let (network, mut examples) = (mlp(), rows(50, 4, 1.0));
    examples.features[3] = Some(vec![f32::NAN; 4]);
    examples.features[4] = None;
    let run = |norm| {
        Run::new(&network, &examples, flat(norm), 64)
            .both(&first(50))
            .1
    };
    assert_eq!((run(1e-6), run(1e6)), (0, 48));
    let some = run(1.0);
    assert!(some > 0 && some < 48);
}

#[test]
fn an_empty_batch_is_zero() {
    let (network, examples) = (mlp(), rows(1, 4, 1.0));
    let run = Run::new(&network, &examples, flat(1.0), 64);
    assert_eq!(run.both(&[]), (vec![0; network.param_len()], 0));
}

#[test]
fn a_sum_for_one_network_is_none_for_another() {
    let wide: Vec<Box<dyn Layer>> = vec![Box::new(Linear::new(4, 9)), Box::new(Linear::new(9, 3))];
    let wide = Network::new(wide, Loss::CrossEntropy).expect("it fits");
    let clip = Clip::flat(1.0).expect("a norm");
    let sum = ClippedSum::new(&mlp(), clip, GRID, 64).expect("proven");
    let data = rows(3, 4, 1.0);
    let batch = BatchRows {
        examples: &data,
        rows: &[0, 1, 2],
        seeds: &[],
    };
    let of = |network: &Network| {
        let params = params(network);
        let sum = sum.sum(
            network,
            &params,
            batch,
            1,
            &mut Memory::default(),
            Vec::new(),
        );
        sum.map(|_| ())
    };
    assert_eq!(of(&mlp()), Ok(()));
    assert_eq!(of(&wide), Err(NetworkError::OtherNetwork));
}

#[test]
fn sums_that_cannot_be_proven_are_refused() {
    let network = mlp();
    let refusal = |clip: Clip, grid: f64, cap: u32| {
        ClippedSum::new(&network, clip, grid, cap)
            .err()
            .map(|error| whit_core::Fault::code(&error))
    };
    assert_eq!(refusal(flat(1.0), GRID, 1 << 24), Some("batch_rounding"));
    for grid in [
        0.0,
        -GRID,
        3.0 * GRID,
        f64::NAN,
        f64::INFINITY,
        GRID / 4.0,
        0.25,
    ] {
        assert_eq!(
            refusal(flat(1.0), grid, 100),
            Some("out_of_range"),
            "{grid}"
        );
    }
    let three = Clip::per_layer(vec![1.0; 3]).expect("in range");
    assert_eq!(refusal(three, GRID, 100), Some("clip_norms"));
    assert_eq!(refusal(flat(1.0), GRID, 100), None);
}

#[test]
fn carrying_rounds_to_the_nearest_whole_number() {
    let values = [
        0.0,
        0.4,
        0.5,
        0.6,
        1.5,
        -0.5,
        -0.6,
        -7.3,
        1e15,
        -1e15 + 0.25,
        1.125e15,
    ];
    let expected = values.map(|x: f64| x.round_ties_even() as i64);
    let (partial, mut sums) = (values.map(|x| x * GRID), [5; 11]);
    carry([&partial, &[]], |x| x, GRID, &mut sums, true);
    assert_eq!(sums, expected);
    carry([&partial, &[]], |x| x, GRID, &mut sums, false);
    assert_eq!(sums, expected.map(|x| 2 * x));
    // Two halves are added before they are rounded.
    let (halves, mut sums) = ([GRID * 0.3, GRID * 2.0], [7; 2]);
    carry([&halves, &halves], |x| x, GRID, &mut sums, true);
    assert_eq!(sums, [1, 4]);
    carry([&halves, &halves], |x| x, GRID, &mut sums, false);
    assert_eq!(sums, [2, 8]);
}
