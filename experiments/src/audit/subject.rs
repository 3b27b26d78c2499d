//! What is audited: data, a network, and a plan.

use std::path::Path;

use whit_core::{Bits, Neighbours};
use whit_learn::data::{Answer, Classes, Dataset, Declaration, load_public};
use whit_learn::loss::Loss;
use whit_learn::model::LayerSpec;
use whit_learn::network::Network;
use whit_learn::{Draft, NoiseDraft, Optimizer, Plan, Rule, SamplerDraft, Schedule};

use crate::failure::Failure;

/// Bits that everybody may know, for initial weights and for the choice of rows: SplitMix64.
pub(crate) struct PublicBits(pub(crate) u64);

impl Bits for PublicBits {
    const WIDTH: u32 = 64;

    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

/// A network of linear layers with ReLU between them.
pub(crate) fn layers(widths: &[usize]) -> Vec<LayerSpec> {
    let mut layers = Vec::new();
    for pair in widths.windows(2) {
        if !layers.is_empty() {
            layers.push(LayerSpec::Relu {
                shape: vec![pair[0]],
            });
        }
        layers.push(LayerSpec::Linear {
            positions: 1,
            inputs: pair[0],
            outputs: pair[1],
        });
    }
    layers
}

/// The network of these layers, for classes.
pub(crate) fn network(layers: &[LayerSpec]) -> Result<Network, Failure> {
    let network = Network::from_specs(layers, Loss::CrossEntropy);
    network.map_err(|error| Failure::Learn(error.into()))
}

/// The training split of a folder in the form of MNIST, with pixels between 0 and 1.
pub(crate) fn pictures(folder: &Path) -> Result<Dataset, Failure> {
    let mut declaration = Declaration::new("train-images-idx3-ubyte.gz");
    declaration.label = Some("train-labels-idx1-ubyte.gz".into());
    declaration.shape = Some(vec![1, 28, 28]);
    declaration.classes = Some(Classes::Count(10));
    Ok(load_public(&declaration, folder)?)
}

/// Some rows of the first classes, in random order.
pub(crate) fn part(data: &Dataset, classes: u32, rows: usize, seed: u64) -> Option<Dataset> {
    let class = |row: usize| match data.example(row)?.answer {
        Answer::Class(class) if class < classes => Some((row, class)),
        _ => None,
    };
    let mut all: Vec<(usize, u32)> = (0..data.rows()).filter_map(class).collect();
    let mut bits = PublicBits(seed);
    let rows = rows.min(all.len());
    for place in 0..rows {
        let left = (all.len() - place) as u64;
        let other = place + (bits.word() % left) as usize;
        all.swap(place, other);
    }
    all.truncate(rows);
    let features = all.iter().filter_map(|&(row, _)| data.example(row));
    let features = features.flat_map(|example| example.features.iter().copied());
    let labels = all.iter().map(|&(_, class)| class).collect();
    Dataset::with_classes(data.shape().to_vec(), features.collect(), labels, classes)
}

/// Numbers of a plan with true Poisson sampling.
#[derive(Clone, Copy)]
pub(crate) struct Numbers {
    pub(crate) examples: u64,
    pub(crate) batch: u64,
    pub(crate) steps: u64,
    pub(crate) clip: f64,
    pub(crate) noise: f64,
    pub(crate) relation: Neighbours,
}

/// Noise of a plan whose noise is left out: it draws the samples.
const STAND_IN: f64 = 1.0;

impl Numbers {
    pub(crate) fn plan(self) -> Result<Plan, Failure> {
        Ok(Plan::new(&Draft {
            sampler: SamplerDraft::Poisson {
                rate: self.batch as f64 / self.examples as f64,
            },
            steps: self.steps,
            clip_norm: self.clip,
            adaptive: None,
            noise: NoiseDraft::Multiplier(if self.noise > 0.0 {
                self.noise
            } else {
                STAND_IN
            }),
            delta: 1e-5,
            relation: self.relation,
            examples_public: self.examples,
        })?)
    }
}

/// Plain SGD.
pub(crate) fn sgd(network: &Network, rate: f64, steps: u64) -> Result<Optimizer, Failure> {
    let schedule = Schedule::Constant { rate };
    let rule = Rule::Sgd { momentum: 0.0 };
    Ok(Optimizer::new(rule, schedule, network.param_len(), steps)?)
}

/// Some rows of the data.
pub(crate) fn rows(data: &Dataset, rows: std::ops::Range<usize>) -> Option<Dataset> {
    let examples = rows.filter_map(|row| data.example(row));
    let (mut features, mut labels) = (Vec::new(), Vec::new());
    for example in examples {
        features.extend_from_slice(example.features);
        labels.push(match example.answer {
            Answer::Class(class) => class,
            Answer::Number(_) => return None,
        });
    }
    Dataset::with_classes(data.shape().to_vec(), features, labels, data.classes()?)
}
