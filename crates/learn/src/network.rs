//! A network: layers one after the other, a loss, and one flat list of parameters.
//!
//! A micro-batch goes through all layers at once. Its memory is that of a few examples' activations and deltas, whatever the batch
//! is, and is used again at every step. What belongs to an example (see [`layer`](crate::layer)) does not depend on its slot or
//! on the other slots.

mod contribution;
mod specs;

pub(crate) use contribution::{Grouping, Shape};

use crate::aligned::Aligned;
use crate::data::{Answer, Dataset};
use crate::layer::{Layer, Pass, Prepared, Scratch};
use crate::loss::Loss;
use crate::tensor::sized;
use crate::validate::{NetworkError, Result, check};

/// Examples of a micro-batch, at most: enough for weights to be read seldom, few enough for activations to stay in the second
/// cache and for sums of floats to be exact.
const SLOTS: usize = 32;

/// The floats that a micro-batch may keep on a thread, gradients, windows, activations and deltas: 16 MiB. Networks with more of them for an
/// example get fewer slots.
const FLOATS_MAX: usize = 1 << 22;

/// Where examples come from.
pub trait Examples: Sync {
    /// Writes the features of a row and returns its target. `None` is an empty example, which contributes exactly zero.
    fn load(&self, row: u32, input: &mut [f32]) -> Option<f32>;
}

impl Examples for Dataset {
    fn load(&self, row: u32, input: &mut [f32]) -> Option<f32> {
        let example = self.example(row as usize)?;
        if example.features.len() != input.len() {
            return None;
        }
        input.copy_from_slice(example.features);
        Some(match example.answer {
            Answer::Class(class) => class as f32,
            Answer::Number(number) => number,
        })
    }
}

/// Layers, a loss, and where each layer's parameters stand.
pub struct Network {
    layers: Vec<Box<dyn Layer>>,
    loss: Loss,
    /// One more than there are layers; the last is the number of all parameters.
    offsets: Vec<usize>,
    /// The first layer with parameters: no delta is needed before it.
    first: usize,
    slots: usize,
}

impl Network {
    /// Layers that fit together, each of which was put to the [test](crate::validate).
    pub fn new(layers: Vec<Box<dyn Layer>>, loss: Loss) -> Result<Self> {
        let mut offsets = vec![0];
        let mut gets = None;
        for (layer, at) in layers.iter().zip(1..) {
            check(&**layer, at)?;
            let (name, takes) = (layer.name(), layer.input_len());
            if let Some(gets) = gets.filter(|&gets| gets != takes) {
                return Err(NetworkError::Shape {
                    at,
                    name,
                    takes,
                    gets,
                });
            }
            gets = Some(layer.output_len());
            offsets.push(offsets[at - 1] + layer.param_len());
        }
        let first = layers.iter().position(|layer| layer.param_len() > 0);
        let (Some(first), Some(outputs)) = (first, gets) else {
            return Err(NetworkError::Empty);
        };
        if !loss.fits(outputs) {
            return Err(NetworkError::Outputs { outputs });
        }
        let kept = layers.iter().map(|layer| {
            let activations = layer.input_len() + layer.output_len();
            layer.gradient_len() + layer.kept_len() + activations
        });
        let slots = (FLOATS_MAX / kept.sum::<usize>().max(1)).clamp(1, SLOTS);
        Ok(Self {
            loss,
            offsets,
            first,
            slots: contribution::joint_slots(&layers).unwrap_or(slots),
            layers,
        })
    }

    /// Floats of an example.
    pub fn input_len(&self) -> usize {
        self.layers[0].input_len()
    }

    /// Floats that come out.
    pub fn output_len(&self) -> usize {
        self.layers[self.layers.len() - 1].output_len()
    }

    /// All parameters.
    pub fn param_len(&self) -> usize {
        self.offsets[self.layers.len()]
    }

    /// Layers with parameters, for a clip per layer.
    pub fn trained_layers(&self) -> usize {
        self.layers
            .iter()
            .filter(|layer| layer.param_len() > 0)
            .count()
    }

    /// The loss.
    pub fn loss(&self) -> Loss {
        self.loss
    }

    /// Examples of a micro-batch.
    pub(crate) fn slots(&self) -> usize {
        self.slots
    }

    /// Refuses any other number of parameters.
    pub(crate) fn checked(&self, params: &[f32]) -> Result<()> {
        let (given, expected) = (params.len(), self.param_len());
        if given == expected {
            return Ok(());
        }
        Err(NetworkError::Parameters { given, expected })
    }

    /// Once per step: packs what the products want. The list keeps its memory.
    pub(crate) fn prepare(&self, params: &[f32], threads: usize, prepared: &mut Vec<Prepared>) {
        prepared.resize_with(self.layers.len(), Prepared::default);
        for (at, prepared) in prepared.iter_mut().enumerate() {
            prepared.needs_delta = at > self.first;
            prepared.threads = threads;
            self.layers[at].prepare(self.params(params, at), prepared);
        }
    }

    fn params<'a, T>(&self, all: &'a [T], at: usize) -> &'a [T] {
        &all[self.offsets[at]..self.offsets[at + 1]]
    }

    fn pass<'a>(&self, weights: Weights<'a>, at: usize, seeds: &'a [u64]) -> Pass<'a> {
        Pass {
            params: self.params(weights.params, at),
            prepared: &weights.prepared[at],
            seeds,
        }
    }

    /// The outputs for examples one after the other, of a model in use: nothing is dropped out.
    pub fn predict(&self, params: &[f32], inputs: &[f32]) -> Result<Vec<f32>> {
        self.checked(params)?;
        let mut prepared = Vec::new();
        self.prepare(params, 1, &mut prepared);
        let weights = Weights {
            params,
            prepared: &prepared,
        };
        let (mut buffers, mut outputs) = (Buffers::default(), Vec::new());
        for rows in inputs.chunks(self.slots * self.input_len()) {
            let examples = rows.len() / self.input_len();
            let rows = &rows[..examples * self.input_len()];
            buffers.shape(self, examples);
            buffers.activations[0][..rows.len()].copy_from_slice(rows);
            self.forward(weights, &mut buffers, &[]);
            let last = &buffers.activations[self.layers.len()];
            outputs.extend_from_slice(&last[..examples * self.output_len()]);
        }
        Ok(outputs)
    }

    /// Through all layers, from `buffers.activations[0]` on.
    fn forward(&self, weights: Weights, buffers: &mut Buffers, seeds: &[u64]) {
        let examples = buffers.examples;
        for (at, layer) in self.layers.iter().enumerate() {
            let (before, after) = buffers.activations.split_at_mut(at + 1);
            let input = &before[at][..examples * layer.input_len()];
            let output = &mut after[0][..examples * layer.output_len()];
            layer.forward(
                self.pass(weights, at, seeds),
                input,
                output,
                &mut buffers.scratch[at],
            );
        }
    }

    /// Forward and backward for the loaded examples: all that `norms` and `accumulate` want.
    pub(crate) fn differentiate(&self, weights: Weights, buffers: &mut Buffers) {
        let seeds = std::mem::take(&mut buffers.seeds);
        self.forward(weights, buffers, &seeds);
        let (examples, last) = (buffers.examples, self.layers.len());
        let outputs = &buffers.activations[last][..examples * self.output_len()];
        let deltas = &mut buffers.deltas[last][..examples * self.output_len()];
        self.loss.deltas(outputs, &buffers.targets, deltas);
        for (at, layer) in self.layers.iter().enumerate().skip(self.first).rev() {
            let (before, after) = buffers.deltas.split_at_mut(at + 1);
            let delta = &after[0][..examples * layer.output_len()];
            let input_delta = &mut before[at][..];
            let input_delta =
                (at > self.first).then(|| &mut input_delta[..examples * layer.input_len()]);
            let input = &buffers.activations[at][..examples * layer.input_len()];
            let scratch = &mut buffers.scratch[at];
            layer.backward(
                self.pass(weights, at, &seeds),
                input,
                delta,
                input_delta,
                scratch,
            );
        }
        buffers.seeds = seeds;
    }

    /// The bounds of squared norms: for each layer with parameters, those of all examples.
    pub(crate) fn square_norms(&self, buffers: &mut Buffers) {
        self.norms(buffers, |_| true);
    }

    /// Forms the gradients that are formed, and takes no other norms.
    pub(crate) fn form(&self, buffers: &mut Buffers) {
        self.norms(buffers, |layer| layer.gradient_len() > 0);
    }

    fn norms(&self, buffers: &mut Buffers, wanted: impl Fn(&dyn Layer) -> bool) {
        let examples = buffers.examples;
        let trained = self.trained();
        let norms = sized(&mut buffers.norms, self.trained_layers() * examples);
        let each = trained.zip(norms.chunks_exact_mut(examples.max(1)));
        for (at, norms) in each.filter(|&(at, _)| wanted(&*self.layers[at])) {
            let layer = &self.layers[at];
            let input = &buffers.activations[at][..examples * layer.input_len()];
            let delta = &buffers.deltas[at + 1][..examples * layer.output_len()];
            layer.square_norms(input, delta, &mut buffers.scratch[at], norms);
        }
    }

    /// Makes zero all that is kept of an example.
    pub(crate) fn forget(&self, buffers: &mut Buffers, example: usize) {
        for (at, layer) in self.layers.iter().enumerate().skip(self.first) {
            let (input, output) = (layer.input_len(), layer.output_len());
            buffers.activations[at][example * input..(example + 1) * input].fill(0.0);
            buffers.deltas[at + 1][example * output..(example + 1) * output].fill(0.0);
            layer.forget(example, &mut buffers.scratch[at]);
        }
    }

    fn trained(&self) -> impl Iterator<Item = usize> {
        (0..self.layers.len()).filter(|&at| self.layers[at].param_len() > 0)
    }
}

/// The parameters of a step and what was made of them.
#[derive(Clone, Copy)]
pub(crate) struct Weights<'a> {
    pub(crate) params: &'a [f32],
    pub(crate) prepared: &'a [Prepared],
}

/// The memory of one thread: a micro-batch in all layers.
#[derive(Default)]
pub(crate) struct Buffers {
    /// How many slots are taken.
    pub(crate) examples: usize,
    pub(crate) activations: Vec<Aligned>,
    deltas: Vec<Vec<f32>>,
    /// The network's first layer with parameters: there are no deltas before it.
    first: usize,
    pub(crate) targets: Vec<f32>,
    pub(crate) seeds: Vec<u64>,
    scratch: Vec<Scratch>,
    /// Layer by layer, and within a layer example by example.
    pub(crate) norms: Vec<f64>,
    pub(crate) factors: Vec<f32>,
}

impl Buffers {
    /// Makes room for so many examples, at most as many as there are slots; allocates the first time only.
    pub(crate) fn shape(&mut self, network: &Network, examples: usize) {
        self.examples = examples;
        let ends = network.layers.iter().map(|layer| layer.output_len());
        let ends = std::iter::once(network.input_len()).chain(ends);
        let sizes = ends.clone().map(|len| len * network.slots);
        let same = self.activations.iter().map(|floats| floats.len()).eq(sizes);
        if same && self.first == network.first {
            return;
        }
        // Another network's memory, or none yet.
        self.first = network.first;
        self.scratch.clear();
        let ends: Vec<usize> = ends.collect();
        let sizes = ends.iter().map(|len| len * network.slots);
        self.activations = sizes.clone().map(Aligned::zeros).collect();
        self.deltas = sizes.map(|len| vec![0.0; len]).collect();
        // Nothing asks for deltas before the first layer with parameters.
        self.deltas[..network.first].fill(Vec::new());
        self.scratch
            .resize_with(network.layers.len(), Scratch::default);
    }
}

#[cfg(test)]
#[path = "network_test.rs"]
mod tests;
