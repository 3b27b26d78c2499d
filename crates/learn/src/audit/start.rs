//! Initial weights. They are part of what an audit is about: the less of them is left to chance, the more a model tells of its data.

use whit_core::Bits;

use crate::model::LayerSpec;

/// Where trainings of an audit begin.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Start {
    /// All at the same weights, which the adversary may have chosen.
    Fixed(Vec<f32>),
    /// Normal weights of so many times Glorot's standard deviation `√(2/(fan_in + fan_out))` [GB10, Eq. 12], drawn anew for each trial; biases are zero.
    Glorot(f64),
}

impl Start {
    /// The weights of one trial.
    pub fn weights<B: Bits>(&self, layers: &[LayerSpec], bits: &mut B) -> Vec<f32> {
        match self {
            Self::Fixed(weights) => weights.clone(),
            Self::Glorot(scale) => glorot(layers, *scale, bits),
        }
    }
}

/// Normal weights for linear layers, zero for all else.
pub fn glorot<B: Bits>(layers: &[LayerSpec], scale: f64, bits: &mut B) -> Vec<f32> {
    let mut weights = Vec::new();
    for layer in layers {
        let deviation = match layer {
            LayerSpec::Linear {
                inputs, outputs, ..
            } => scale * (2.0 / (*inputs + *outputs) as f64).sqrt(),
            _ => 0.0,
        };
        for (name, shape) in layer.shapes() {
            let count: usize = shape.iter().product();
            let drawn = name.ends_with("weight");
            weights.extend((0..count).map(|_| match drawn {
                true => (deviation * normal(bits)) as f32,
                false => 0.0,
            }));
        }
    }
    weights
}

/// A standard normal number, by Box and Muller. Initial weights are public; nothing private rests on it.
fn normal<B: Bits>(bits: &mut B) -> f64 {
    let mut uniform = || {
        let word = (0..64_u32.div_ceil(B::WIDTH)).fold(0_u64, |word, _| {
            (word.checked_shl(B::WIDTH).unwrap_or(0)) | bits.word()
        });
        ((word >> 11) as f64 + 0.5) / 9_007_199_254_740_992.0
    };
    let (radius, angle) = ((-2.0 * uniform().ln()).sqrt(), uniform());
    radius * (std::f64::consts::TAU * angle).cos()
}
