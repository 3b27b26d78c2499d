//! Neighbouring sums of every kind of layer, with features, weights and clip norms of all sizes: at most the clip norm apart, whatever the others are.

use super::*;
use crate::layer::oracle::draws;
use crate::layer::{
    Activation, Attention, Conv2d, Dropout, Embedding, Flatten, Function, Layer, Linear, Norm,
    Pool, Pooling, Window,
};
use crate::loss::Loss;

/// Rows of features and targets.
struct Table(Vec<(Vec<f32>, f32)>);

impl Examples for Table {
    fn load(&self, row: u32, input: &mut [f32]) -> Option<f32> {
        let (features, target) = &self.0[row as usize];
        input.copy_from_slice(features);
        Some(*target)
    }
}

fn networks() -> Vec<Network> {
    let window = |side, channels, kernel, stride, padding| Window {
        height: side,
        width: side,
        channels,
        kernel,
        stride,
        padding,
    };
    let all: Vec<(Vec<Box<dyn Layer>>, Loss)> = vec![
        (
            vec![
                Box::new(Conv2d::new(window(6, 1, 3, 1, 1), 4)),
                Box::new(Norm::group(36, 4, 2)),
                Box::new(Activation::new(Function::Tanh, 144)),
                Box::new(Pool::new(window(6, 4, 2, 2, 0), Pooling::Average)),
                Box::new(Conv2d::new(window(3, 4, 2, 1, 0), 5)),
                Box::new(Flatten::new(5, 4)),
                Box::new(Dropout::new(20, 0.2, 0)),
                Box::new(Linear::new(20, 3)),
            ],
            Loss::CrossEntropy,
        ),
        (
            vec![
                Box::new(Embedding::new(6, 9, 4)),
                Box::new(Attention::new(6, 4, 2)),
                Box::new(Norm::layer(6, 4)),
                Box::new(Linear::at_positions(4, 5, 6)),
                Box::new(Activation::new(Function::Gelu, 30)),
                Box::new(Linear::new(30, 3)),
            ],
            Loss::CrossEntropy,
        ),
        (
            vec![
                Box::new(Linear::new(36, 1000)),
                Box::new(Activation::new(Function::Relu, 1000)),
                Box::new(Linear::new(1000, 3)),
            ],
            Loss::CrossEntropy,
        ),
        (vec![Box::new(Linear::new(6, 1))], Loss::Squared),
    ];
    let made = all
        .into_iter()
        .map(|(layers, loss)| Network::new(layers, loss));
    made.map(|network| network.expect("it fits")).collect()
}

#[test]
fn no_example_moves_a_sum_by_more_than_the_clip_norm_whatever_the_numbers_are() {
    const ROWS: u32 = 70;
    const SIZES: [f32; 12] = [
        0.0,
        1e-44,
        1e-30,
        1e-19,
        1e-3,
        1.0,
        1e3,
        1e12,
        1e19,
        1e30,
        f32::MAX,
        f32::INFINITY,
    ];
    let mut draw = draws(606);
    let mut moved = 0;
    for network in networks() {
        for weights in [0.0, 1e-35, 1.0, 1e8, 1e25, f32::NAN] {
            let params: Vec<f32> = (0..network.param_len()).map(|_| weights * draw()).collect();
            let rows = (0..ROWS).map(|row| {
                // Some rows of one size, and some of all.
                let size = |at: usize| match row % 3 {
                    0 => SIZES[row as usize / 3 % 12],
                    1 => 1.0,
                    _ => SIZES[(row as usize + at) % 12],
                };
                let features = (0..network.input_len()).map(|at| match at {
                    0 if row == 13 => f32::NAN,
                    _ => size(at) * draw(),
                });
                let features: Vec<f32> = features.collect();
                let target = match network.loss() {
                    Loss::CrossEntropy => (row % 4) as f32,
                    _ => size(1) * draw(),
                };
                (features, target)
            });
            let table = Table(rows.collect());
            for norm in [1e-8, 0.3, 1e9] {
                let layers = network.trained_layers();
                for clip in [
                    Clip::flat(norm),
                    Clip::per_layer_even(norm, layers),
                    Clip::automatic(norm, 1e-9),
                ] {
                    let clip = clip.expect("in range");
                    let grid = 2.0_f64.powi(norm.log2().floor() as i32 - 36);
                    // Narrow sums with and without one, and those of a cap between both.
                    for cap in [ROWS, ROWS - 1] {
                        let sum = ClippedSum::new(&network, clip.clone(), grid, cap);
                        let sum = sum.expect("it is proven");
                        let mut memory = Memory::default();
                        let mut of = |rows: &[u32], threads: usize| {
                            let seeds: Vec<u64> = rows.iter().map(|&row| row.into()).collect();
                            let batch = BatchRows {
                                examples: &table,
                                rows,
                                seeds: &seeds,
                            };
                            let buffer = Vec::new();
                            let summed =
                                sum.sum(&network, &params, batch, threads, &mut memory, buffer);
                            let summed = summed.expect("it fits");
                            (summed.sum.expose(), summed.below.expose())
                        };
                        let all: Vec<u32> = (0..ROWS).collect();
                        let whole = of(&all, 1);
                        assert!(of(&all, 2) == whole && of(&all, 64) == whole);
                        for gone in [0, 13, 14, 30, 33, 35, 69] {
                            let rest: Vec<u32> =
                                all.iter().copied().filter(|&row| row != gone).collect();
                            let (rest, below) = of(&rest, 2);
                            let apart = whole.0.iter().zip(&rest);
                            let apart = apart.map(|(a, b)| ((a - b) as f64 * grid).powi(2));
                            let apart = apart.sum::<f64>().sqrt();
                            assert!(
                                apart <= norm,
                                "{clip:?} {weights} {cap} without {gone}: {apart}"
                            );
                            assert!((0..=1).contains(&(whole.1 - below)));
                            moved += usize::from(apart > 0.9 * norm);
                        }
                    }
                }
            }
        }
    }
    // Where nothing moved, nothing was shown.
    assert!(moved > 200, "{moved}");
}
