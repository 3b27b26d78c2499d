//! How the contributions of micro-batches are added up.
//!
//! A small sum stays in the first caches: it is added up over a few micro-batches, one after the other, and carried to the total
//! (*loosely*). A large one would come and go for every micro-batch, and so it is taken over several at once (*jointly*), piece by piece,
//! after all of them were differentiated. Which it is depends on the network alone.

use super::{Buffers, Network};
use crate::layer::{Kept, Layer, Sum};

/// Networks with at most as many parameters are always summed loosely.
const SMALL: usize = 1 << 15;

/// Examples that are summed jointly, at most.
const JOINT_EXAMPLES: usize = 1024;

/// Those of a micro-batch, at most: more where there are more parameters than that, since such weights do not fit in the second cache, and are read
/// once for a micro-batch.
const JOINT_SLOTS: usize = 64;
const LARGE: usize = 1 << 17;
const LARGE_SLOTS: usize = 104;

/// If a batch may have more examples than that, a micro-batch has fewer at most: what rounding takes of the clip norm grows with both.
const MANY: usize = 1024;
const MANY_SLOTS: usize = 48;

/// The floats that examples of a group may keep until they are summed: 16 MiB.
const JOINT_FLOATS: usize = 4 << 20;

/// Micro-batches of a small network whose sums are added up before they are carried. Where gradients are formed it is one, since
/// an example costs so much more there than carrying does.
const LOOSE_FEW: usize = 4;

/// Where gradients are formed and are many, about as many examples are summed before the sum is carried.
const LOOSE_EXAMPLES: usize = 256;

/// How micro-batches are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grouping {
    /// So many are differentiated, at most, before they are summed jointly.
    Joint(usize),
    /// The sums of so many are added up, at most, before they are carried.
    Loose(usize),
}

impl Grouping {
    /// Are sums taken jointly?
    pub(crate) fn is_joint(self) -> bool {
        matches!(self, Self::Joint(_))
    }

    /// How many are carried together, at most.
    pub(crate) fn most(self) -> usize {
        match self {
            Self::Joint(most) | Self::Loose(most) => most,
        }
    }
}

/// What a sum must know of the network it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    parameters: usize,
    layers: usize,
    /// The most examples of one, and how many.
    chains: (usize, usize),
}

/// Examples of a micro-batch, at most, if sums of these layers are taken jointly.
pub(super) fn joint_slots(layers: &[Box<dyn Layer>]) -> Option<usize> {
    jointly(layers).then(|| match param_len(layers) {
        ..=LARGE => JOINT_SLOTS,
        _ => LARGE_SLOTS,
    })
}

fn param_len(layers: &[Box<dyn Layer>]) -> usize {
    layers.iter().map(|layer| layer.param_len()).sum()
}

/// Are sums of these layers taken jointly?
fn jointly(layers: &[Box<dyn Layer>]) -> bool {
    // Pieces that left parameters out would leave what stood there before in the sum.
    let whole = |layer: &dyn Layer| {
        let pieces = (0..layer.joint_pieces()).map(|piece| layer.joint_len(piece));
        pieces.sum::<usize>() == layer.param_len()
    };
    let mut trained = layers.iter().filter(|layer| layer.param_len() > 0);
    param_len(layers) > SMALL && trained.all(|layer| whole(&**layer))
}

impl Network {
    /// Examples of a micro-batch, at most, if a batch has up to so many.
    pub(crate) fn slots_for(&self, batch_cap: usize) -> usize {
        if batch_cap > MANY && jointly(&self.layers) {
            self.slots.min(MANY_SLOTS)
        } else {
            self.slots
        }
    }

    /// How this network's micro-batches of up to so many examples are grouped, whatever the batch and the threads are.
    pub(crate) fn grouping(&self, slots: usize) -> Grouping {
        if !jointly(&self.layers) {
            let formed = self.layers.iter().any(|layer| layer.gradient_len() > 0);
            return Grouping::Loose(match (self.param_len() <= SMALL, formed) {
                (true, true) => 1,
                (true, false) => LOOSE_FEW,
                (false, _) => (LOOSE_EXAMPLES / slots).max(1),
            });
        }
        let ends = self.trained().map(|at| &self.layers[at]);
        let floats: usize = ends
            .map(|layer| layer.input_len() + layer.output_len())
            .sum();
        Grouping::Joint((JOINT_EXAMPLES.min(JOINT_FLOATS / floats) / slots).max(1))
    }

    /// How a term of a sum is rounded: the longest chain of examples, and how many chains are added up at most.
    pub(crate) fn chains(&self, slots: usize) -> (usize, usize) {
        (slots, self.grouping(slots).most())
    }

    /// What the proofs of a clipped sum take from a network, for batches of up to so many examples.
    pub(crate) fn shape(&self, batch_cap: usize) -> Shape {
        Shape {
            parameters: self.param_len(),
            layers: self.trained_layers(),
            chains: self.chains(self.slots_for(batch_cap)),
        }
    }

    /// Adds the contributions of a micro-batch, `buffers.factors` being the factors layer by layer.
    pub(crate) fn accumulate(&self, buffers: &mut Buffers, mut sum: Sum) {
        let examples = buffers.examples;
        let factors = buffers.factors.chunks_exact(examples.max(1));
        for (at, factors) in self.trained().zip(factors) {
            let layer = &self.layers[at];
            let input = &buffers.activations[at][..examples * layer.input_len()];
            let delta = &buffers.deltas[at + 1][..examples * layer.output_len()];
            let range = self.offsets[at]..self.offsets[at + 1];
            let sum = match &mut sum {
                Sum::Narrow(sum) => Sum::Narrow(&mut sum[range]),
                Sum::Wide(sum) => Sum::Wide(&mut sum[range]),
            };
            layer.accumulate(factors, input, delta, &mut buffers.scratch[at], sum);
        }
    }

    /// Keeps the contributions of a micro-batch for a joint sum, layer by layer.
    pub(crate) fn keep(&self, buffers: &mut Buffers, kept: &mut Vec<Kept>) {
        let examples = buffers.examples;
        let factors = buffers.factors.chunks_exact(examples.max(1));
        kept.resize_with(self.layers.len(), Kept::default);
        for (at, factors) in self.trained().zip(factors) {
            let layer = &self.layers[at];
            let input = &mut buffers.activations[at];
            let delta = &buffers.deltas[at + 1][..examples * layer.output_len()];
            layer.keep(factors, input, delta, &mut kept[at]);
        }
    }

    /// The pieces of a joint sum, as `(layer, piece, parameters)`: all parameters in their order.
    pub(crate) fn joint_pieces(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        self.trained().flat_map(|at| {
            let layer = &self.layers[at];
            (0..layer.joint_pieces()).map(move |piece| (at, piece, layer.joint_len(piece)))
        })
    }

    /// The parameters of one piece.
    pub(crate) fn joint_len(&self, at: usize, piece: usize) -> usize {
        self.layers[at].joint_len(piece)
    }

    /// Writes one piece of the sum of what was kept.
    pub(crate) fn joint_sum(&self, at: usize, piece: usize, kept: &[&[Kept]], out: &mut [f32]) {
        let kept: Vec<&Kept> = kept.iter().map(|layers| &layers[at]).collect();
        self.layers[at].joint_sum(piece, &kept, out);
    }
}
