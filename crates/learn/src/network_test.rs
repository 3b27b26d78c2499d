//! Networks that do not fit, and the order of numbers in those of plans.

use super::*;
use crate::layer::oracle::draws;
use crate::layer::{Activation, Conv2d, Function, Linear, Window};
use crate::model::{Image, LayerSpec};

fn refusal(layers: Vec<Box<dyn Layer>>, loss: Loss) -> Option<NetworkError> {
    Network::new(layers, loss).err()
}

#[test]
fn layers_that_do_not_fit_are_refused() {
    let layers = || -> Vec<Box<dyn Layer>> {
        vec![Box::new(Linear::new(3, 4)), Box::new(Linear::new(5, 2))]
    };
    let (at, name, takes, gets) = (2, "linear", 5, 4);
    let shape = NetworkError::Shape {
        at,
        name,
        takes,
        gets,
    };
    assert_eq!(refusal(layers(), Loss::CrossEntropy), Some(shape));
    assert_eq!(
        refusal(Vec::new(), Loss::Squared),
        Some(NetworkError::Empty)
    );
    let relu = Activation::new(Function::Relu, 2);
    assert_eq!(
        refusal(vec![Box::new(relu)], Loss::CrossEntropy),
        Some(NetworkError::Empty)
    );
    let linear = || Box::new(Linear::new(3, 2));
    let outputs = NetworkError::Outputs { outputs: 2 };
    assert_eq!(refusal(vec![linear()], Loss::Squared), Some(outputs));
    assert_eq!(refusal(vec![linear()], Loss::CrossEntropy), None);
}

/// What a plan's network means, channel by channel, in `f64`: a convolution, a max pool and a linear layer.
fn reference(params: &[f64], x: &[f64]) -> Vec<f64> {
    let (filters, bias, linear) = (&params[..54], &params[54..57], &params[57..]);
    let mut conv = vec![0.0; 3 * 16];
    for (at, sum) in conv.iter_mut().enumerate() {
        let (f, row, column) = (at / 16, at / 4 % 4, at % 4);
        *sum = bias[f];
        for w in 0..18 {
            let (channel, r, c) = (w / 9, row + w / 3 % 3, column + w % 3);
            *sum += filters[f * 18 + w] * x[channel * 36 + r * 6 + c];
        }
    }
    let pooled: Vec<f64> = (0..12)
        .map(|at| {
            let corner = at / 4 * 16 + at / 2 % 2 * 8 + at % 2 * 2;
            [0, 1, 4, 5]
                .map(|i| conv[corner + i])
                .into_iter()
                .fold(f64::MIN, f64::max)
        })
        .collect();
    (0..2)
        .map(|j| {
            let weights = &linear[j * 12..][..12];
            linear[24 + j] + weights.iter().zip(&pooled).map(|(w, x)| w * x).sum::<f64>()
        })
        .collect()
}

#[test]
fn pictures_of_plans_stand_channel_by_channel() {
    let image = |channels, side| Image {
        channels,
        height: side,
        width: side,
    };
    let specs = [
        LayerSpec::Conv2d {
            input: image(2, 6),
            filters: 3,
            kernel: 3,
            stride: 1,
            padding: 0,
        },
        LayerSpec::MaxPool {
            input: image(3, 4),
            kernel: 2,
            stride: 2,
        },
        LayerSpec::Flatten {
            input: vec![3, 2, 2],
        },
        LayerSpec::Linear {
            positions: 1,
            inputs: 12,
            outputs: 2,
        },
    ];
    let network = Network::from_specs(&specs, Loss::CrossEntropy).expect("it fits");
    assert_eq!(network.param_len(), crate::model::parameters(&specs));
    let mut draw = draws(3);
    let params: Vec<f32> = (0..network.param_len()).map(|_| draw()).collect();
    // More examples than slots.
    let inputs: Vec<f32> = (0..40 * 72).map(|_| draw()).collect();
    let outputs = network.predict(&params, &inputs).expect("it fits");
    let wide = |floats: &[f32]| floats.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
    for (input, output) in inputs.chunks_exact(72).zip(outputs.chunks_exact(2)) {
        for (one, other) in reference(&wide(&params), &wide(input)).iter().zip(output) {
            assert!((one - f64::from(*other)).abs() < 1e-5, "{one} {other}");
        }
    }
    let short = network.predict(&params[1..], &inputs).err();
    assert!(matches!(short, Some(NetworkError::Parameters { .. })));
}

#[test]
fn every_kind_of_a_plan_is_built() {
    let shape = || vec![4, 6];
    let specs = [
        LayerSpec::Embedding {
            positions: 4,
            entries: 10,
            features: 6,
        },
        LayerSpec::Attention {
            positions: 4,
            features: 6,
            heads: 2,
        },
        LayerSpec::LayerNorm { shape: shape() },
        LayerSpec::Gelu { shape: shape() },
        LayerSpec::Linear {
            positions: 4,
            inputs: 6,
            outputs: 6,
        },
        LayerSpec::GroupNorm {
            shape: shape(),
            groups: 2,
        },
        LayerSpec::Tanh { shape: shape() },
        LayerSpec::Dropout {
            shape: shape(),
            rate: 0.5,
        },
        LayerSpec::Flatten { input: shape() },
        LayerSpec::Linear {
            positions: 1,
            inputs: 24,
            outputs: 1,
        },
    ];
    let network = Network::from_specs(&specs, Loss::Squared).expect("it fits");
    assert_eq!(network.param_len(), crate::model::parameters(&specs));
    let outputs = network.predict(&vec![0.1; network.param_len()], &[1.0, 9.0, 0.0, 3.0]);
    assert!(outputs.expect("it fits")[0].is_finite());
}

#[test]
fn formed_gradients_limit_the_slots() {
    let large = Linear::at_positions(1000, 1000, 2);
    let layers: Vec<Box<dyn Layer>> = vec![Box::new(large), Box::new(Linear::new(2000, 2))];
    let network = Network::new(layers, Loss::CrossEntropy).expect("it fits");
    assert_eq!(network.slots(), 4);
}

/// Windows of convolutions are many times what goes in: they must not make a thread's memory as many times larger.
#[test]
fn what_is_kept_between_passes_limits_the_slots() {
    let conv = |channels, filters| {
        let window = Window {
            height: 32,
            width: 32,
            channels,
            kernel: 3,
            stride: 1,
            padding: 1,
        };
        Box::new(Conv2d::new(window, filters)) as Box<dyn Layer>
    };
    let layers = vec![
        conv(3, 32),
        conv(32, 32),
        Box::new(Linear::new(32 * 1024, 2)),
    ];
    let kept = 1024 * (27 + 288);
    let network = Network::new(layers, Loss::CrossEntropy).expect("it fits");
    assert!((1..16).contains(&network.slots()));
    assert!(network.slots() * kept <= FLOATS_MAX);
}
