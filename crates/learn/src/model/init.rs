//! Initial weights from a public seed.
//!
//! They are drawn before any data are read, and anyone may know them: nothing about privacy rests on this generator, which must
//! not be used for anything else. The same seed gives the same bits on every machine, since only a square root and products
//! are computed, each rounded as IEEE 754 says.

use std::collections::BTreeMap;

use super::spec::LayerSpec;

/// All parameters of a network, in the order of [`tensors`](super::tensors).
///
/// Weights are uniform within `±√(6/fan_in)` before a ReLU or GELU [HZRS15, Sec. 2.2], and within `±√(6/(fan_in + fan_out))`
/// elsewhere [GB10, Eq. 16]; embeddings have variance 1 over the number of features; biases are 0, and gains 1.
pub fn init(layers: &[LayerSpec], seed: u64) -> Vec<f32> {
    let mut generator = Generator(seed);
    let mut weights = Vec::with_capacity(super::parameters(layers));
    for (index, layer) in layers.iter().enumerate() {
        let bound = bound(layer, &layers[index + 1..]);
        let gain = matches!(
            layer,
            LayerSpec::GroupNorm { .. } | LayerSpec::LayerNorm { .. }
        );
        for (name, shape) in layer.shapes() {
            let count = shape.iter().product();
            let weight = name.ends_with("weight");
            weights.extend((0..count).map(|_| match (weight, gain) {
                (true, false) => generator.within(bound),
                (true, true) => 1.0,
                (false, _) => 0.0,
            }));
        }
    }
    weights
}

/// What comes after a layer decides how much of its output is lost.
fn bound(layer: &LayerSpec, after: &[LayerSpec]) -> f64 {
    let (fan_in, fan_out) = match layer {
        LayerSpec::Linear {
            inputs, outputs, ..
        } => (*inputs, *outputs),
        LayerSpec::Conv2d {
            input,
            filters,
            kernel,
            ..
        } => (input.channels * kernel * kernel, filters * kernel * kernel),
        LayerSpec::Attention { features, .. } => (*features, *features),
        LayerSpec::Embedding { features, .. } => return (3.0 / *features as f64).sqrt(),
        _ => return 0.0,
    };
    let activation = after.iter().find(|layer| {
        matches!(
            layer,
            LayerSpec::Relu { .. }
                | LayerSpec::Gelu { .. }
                | LayerSpec::Tanh { .. }
                | LayerSpec::Linear { .. }
                | LayerSpec::Conv2d { .. }
                | LayerSpec::Attention { .. }
        )
    });
    match activation {
        Some(LayerSpec::Relu { .. } | LayerSpec::Gelu { .. }) => (6.0 / fan_in as f64).sqrt(),
        _ => (6.0 / (fan_in as f64 + fan_out as f64)).sqrt(),
    }
}

/// SplitMix64 [SLF14]: one addition and a mix of its bits.
pub(crate) struct Generator(pub(crate) u64);

impl Generator {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Uniform on 2^24 places between `-bound` and `bound`.
    pub(crate) fn within(&mut self, bound: f64) -> f32 {
        let place = (self.next() >> 40) as f64 + 0.5;
        ((place / (1_u64 << 23) as f64 - 1.0) * bound) as f32
    }

    /// One of so many, as evenly as 64 bits allow. Zero if there is none.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        ((u128::from(self.next()) * count as u128) >> 64) as usize
    }

    /// So many of `0..count`, or all of them, in random order: the first of them after a shuffle. However large the count is, in time and memory of those that are wanted.
    pub(crate) fn some_of(&mut self, count: usize, wanted: usize) -> Vec<usize> {
        // What is in places where it was not before.
        let mut moved = BTreeMap::new();
        let mut some = Vec::new();
        for place in 0..wanted.min(count) {
            let other = place + self.below(count - place);
            let here = moved.get(&place).copied().unwrap_or(place);
            some.push(moved.insert(other, here).unwrap_or(other));
        }
        some
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Model, tensors};
    use super::*;

    fn layers(text: &str, input: &[usize]) -> Vec<LayerSpec> {
        let model: Model = toml::from_str(text).expect("a description");
        model
            .architecture(input, 10)
            .expect("fits")
            .layers()
            .to_vec()
    }

    /// The first outputs for seed 1234567, as published with the generator.
    #[test]
    fn generator_is_the_published_one() {
        let mut generator = Generator(1_234_567);
        let found = [generator.next(), generator.next()];
        assert_eq!(
            found,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]
        );
    }

    #[test]
    fn some_are_all_different() {
        let mut generator = Generator(5);
        let mut seen = [0_u32; 7];
        for _ in 0..7000 {
            let some = generator.some_of(7, 3);
            assert!(
                some.len() == 3 && some[0] != some[1] && some[1] != some[2] && some[0] != some[2]
            );
            some.iter().for_each(|place| seen[*place] += 1);
        }
        // 3000 each, with a deviation of 41.
        assert!(
            seen.iter().all(|count| count.abs_diff(3000) < 250),
            "{seen:?}"
        );
        assert_eq!(generator.some_of(2, 9).len(), 2);
        assert_eq!(generator.below(0), 0);
    }

    /// As many steps as are wanted, and the same numbers as a shuffle of all, of which seeds of plans are.
    #[test]
    fn some_are_the_first_of_a_shuffle() {
        for (count, wanted) in [(1, 1), (7, 3), (7, 7), (100, 99), (1000, 4)] {
            for seed in 0..20 {
                let mut generator = Generator(seed);
                let mut all: Vec<usize> = (0..count).collect();
                for place in 0..wanted {
                    all.swap(place, place + generator.below(count - place));
                }
                let some = Generator(seed).some_of(count, wanted);
                assert_eq!(some, all[..wanted]);
            }
        }
        assert_eq!(Generator(3).some_of(usize::MAX, 4).len(), 4);
    }

    #[test]
    fn seeds_decide_everything() {
        let layers = layers("kind = 'cnn'", &[1, 28, 28]);
        let bits = |seed| -> Vec<u32> { init(&layers, seed).iter().map(|w| w.to_bits()).collect() };
        assert_eq!(bits(1), bits(1));
        assert_ne!(bits(1), bits(2));
    }

    #[test]
    fn weights_have_the_variance_of_their_layer() {
        for (activation, expected) in [("relu", 2.0 / 784.0), ("tanh", 2.0 / (784.0 + 300.0))] {
            let text = format!("kind = 'mlp'\nhidden = [300]\nactivation = '{activation}'");
            let layers = layers(&text, &[784]);
            let weights = init(&layers, 3);
            let tensors = tensors(&layers);
            let first = &weights[..tensors[1].offset];
            let bound = f64::sqrt(3.0 * expected) as f32;
            assert!(first.iter().all(|weight| weight.abs() <= bound));
            let square = |weight: &f32| f64::from(*weight).powi(2);
            let variance = first.iter().map(square).sum::<f64>() / first.len() as f64;
            // 235,200 squares of a uniform: a standard error of 0.2 %.
            assert!((variance / expected - 1.0).abs() < 0.02, "{variance}");
            let biases = &weights[tensors[1].offset..tensors[2].offset];
            assert!(biases.iter().all(|bias| *bias == 0.0));
        }
    }

    #[test]
    fn gains_are_one() {
        let text = "kind = 'layers'\nlayers = [{ kind = 'group_norm', groups = 2 }, { kind = 'linear', outputs = 10 }]";
        let weights = init(&layers(text, &[4]), 0);
        assert_eq!(weights[..8], [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(weights.len(), 8 + 50);
    }
}
