//! What a network must be so that its training can be private, checked before any data is read.
//!
//! The rule of a [`Layer`] is that what belongs to an example depends on that example alone. Layers of this crate keep it by
//! construction. A layer of a program's own is put to the test: examples are moved and their neighbours exchanged, and a layer
//! whose outputs, deltas or norms change by one bit is refused. That convicts batch norm at once. So is one whose sums, joint ones
//! too, are not those of single examples, or whose contributions are longer than it says (`contribution.rs`). It cannot acquit: a
//! layer that mixes examples only when it sees certain numbers passes, and whoever writes one owns the guarantee.
//!
//! Parameters that no example moves, or that several layers share through one layer, are no trouble: norms and sums are of
//! what is contributed.

mod contribution;

use thiserror::Error as ThisError;
use whit_core::{Fault, FaultKind};

use crate::layer::{Layer, Pass, Prepared, Scratch};

/// A network that cannot be, or not privately. All values are of the plan, which is public.
#[derive(Clone, Debug, PartialEq, ThisError)]
#[non_exhaustive]
pub enum NetworkError {
    /// There is nothing to train.
    #[error("the network has no parameters")]
    Empty,
    /// Two layers do not fit.
    #[error("layer {at} ({name}) takes {takes} numbers and gets {gets}")]
    Shape {
        /// Which layer, counted from one.
        at: usize,
        /// Its name.
        name: &'static str,
        /// What it takes.
        takes: usize,
        /// What comes out of the layer before it, or of the data.
        gets: usize,
    },
    /// A layer without inputs or outputs, or larger than a machine holds.
    #[error("layer {at} ({name}) has no numbers, or too many")]
    Size {
        /// Which layer, counted from one.
        at: usize,
        /// Its name.
        name: &'static str,
    },
    /// A layer of another crate that is too large to be put to the test.
    #[error(
        "layer {at} ({name}) is no layer of ours and too large to be put to the test, so that nothing says that it keeps examples apart"
    )]
    Untested {
        /// Which layer, counted from one.
        at: usize,
        /// Its name.
        name: &'static str,
    },
    /// The loss is one of another number of outputs.
    #[error("the loss does not fit {outputs} outputs")]
    Outputs {
        /// How many there are.
        outputs: usize,
    },
    /// A layer mixes examples.
    #[error(
        "layer {at} ({name}) makes what belongs to one example depend on others, so that no example's gradient can be bounded by itself"
    )]
    MixesExamples {
        /// Which layer, counted from one.
        at: usize,
        /// Its name.
        name: &'static str,
    },
    /// A layer adds up something else than it says.
    #[error("layer {at} ({name}) does not agree with itself: {what}")]
    Disagrees {
        /// Which layer, counted from one.
        at: usize,
        /// Its name.
        name: &'static str,
        /// What does not.
        what: &'static str,
    },
    /// Norms for another number of layers.
    #[error("{given} clip norms were given for {layers} layers with parameters")]
    Norms {
        /// How many norms there are.
        given: usize,
        /// How many layers have parameters.
        layers: usize,
    },
    /// A number of the plan out of its range.
    #[error("{what} is {given:e}")]
    OutOfRange {
        /// Which number.
        what: &'static str,
        /// What was given.
        given: f64,
    },
    /// Sums of floats would be too inexact.
    #[error(
        "a batch of {cap} examples cannot be summed in floats: rounding could reach {share:.2} of the clip norm"
    )]
    Rounding {
        /// The public cap.
        cap: u32,
        /// What rounding could reach.
        share: f64,
    },
    /// More parameters than numbers were given, or fewer.
    #[error("{given} numbers were given for {expected} parameters")]
    Parameters {
        /// How many there are.
        given: usize,
        /// How many the network has.
        expected: usize,
    },
    /// A batch of more examples than sums in 64 bits can hold.
    #[error("a batch has more examples than the {max} that can be summed")]
    Batch {
        /// How many can be.
        max: usize,
    },
    /// A sum that was made for another network, whose rounding it has not bounded.
    #[error("the sum was made for another network")]
    OtherNetwork,
    /// Seeds of dropout masks for other rows than the batch has.
    #[error("there is not one seed for each row of the batch")]
    Seeds,
}

/// Short for a result with this module's error.
pub type Result<T> = std::result::Result<T, NetworkError>;

impl Fault for NetworkError {
    fn kind(&self) -> FaultKind {
        match self {
            Self::MixesExamples { .. }
            | Self::Disagrees { .. }
            | Self::Rounding { .. }
            | Self::Batch { .. } => FaultKind::Refused,
            _ => FaultKind::Invalid,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Empty => "network_empty",
            Self::Shape { .. } => "layer_shape",
            Self::Size { .. } => "layer_size",
            Self::Untested { .. } => "layer_untested",
            Self::Outputs { .. } => "loss_outputs",
            Self::MixesExamples { .. } => "mixes_examples",
            Self::Disagrees { .. } => "layer_disagrees",
            Self::Norms { .. } => "clip_norms",
            Self::OutOfRange { .. } => "out_of_range",
            Self::Rounding { .. } => "batch_rounding",
            Self::Parameters { .. } => "parameter_count",
            Self::Batch { .. } => "batch_too_large",
            Self::OtherNetwork => "other_network",
            Self::Seeds => "seeds_per_row",
        }
    }

    fn suggestion(&self) -> String {
        match self {
            Self::Empty => "add a linear layer".into(),
            Self::Shape { at, gets, .. } => format!("let layer {at} take {gets} numbers"),
            Self::Untested { .. } => format!(
                "cut it into layers of at most {TESTED_LEN} numbers for an example, parameters included"
            ),
            Self::Size { .. } => {
                "give every side of a shape at least 1, and windows that fit their pictures".into()
            }
            Self::Outputs { .. } => {
                "end with one output per class for cross-entropy, or with one output for the other losses"
                    .into()
            }
            Self::MixesExamples { .. } => {
                "use a norm within the example: group_norm after convolutions, layer_norm elsewhere"
                    .into()
            }
            Self::Disagrees { .. } => {
                "let square_norms, accumulate, keep and joint_sum speak of the same contributions; a layer without joint_pieces needs no keep and no joint_sum"
                    .into()
            }
            Self::Norms { layers, .. } => format!("give {layers} norms, or one for all"),
            Self::OutOfRange { .. } => {
                "give norms from 1e-9 to 1e9, shares from 0 to 1, and a grid of 2^-37 to 2^-10 of the norm".into()
            }
            Self::Rounding { .. } => "let the expected batch be smaller".into(),
            Self::Parameters { expected, .. } => format!("give {expected} numbers"),
            Self::Batch { .. } => "let the sampling rate be smaller".into(),
            Self::OtherNetwork => "make a sum for the network that is trained".into(),
            Self::Seeds => "draw one seed for each row, or none".into(),
        }
    }
}

/// How many examples the test has.
const EXAMPLES: usize = 5;

/// Beyond this many numbers per example a layer is not put to the test, which would take longer than a user waits: one of ours is
/// taken on its proof, and one of another crate is refused.
const TESTED_LEN: usize = 1 << 21;

/// Refuses a layer that has no size, that is seen to mix examples, or whose sums are not those of its examples.
pub(crate) fn check(layer: &dyn Layer, at: usize) -> Result<()> {
    let name = layer.name();
    let (input, output) = (layer.input_len(), layer.output_len());
    let sizes = [
        input,
        output,
        layer.param_len().max(1),
        layer.gradient_len().max(1),
    ];
    if sizes.iter().any(|&size| size == 0 || size > 1 << 30) {
        return Err(NetworkError::Size { at, name });
    }
    if sizes.iter().sum::<usize>() > TESTED_LEN {
        let proven = layer.proven().map(|_| ());
        return proven.ok_or(NetworkError::Untested { at, name });
    }
    // A public pattern of numbers, different at every place.
    let number = |at: usize| ((at * 2_654_435_761) % 1009) as f32 / 504.0 - 1.0;
    let numbers = |count: usize, from: usize| (from..from + count).map(number).collect::<Vec<_>>();
    let params = numbers(layer.param_len(), 7);
    let (inputs, deltas) = (
        numbers(EXAMPLES * input, 11),
        numbers(EXAMPLES * output, 13),
    );
    let order = [3, 0, 4];
    let moved = |rows: &[f32], len: usize| {
        let rows = order
            .iter()
            .flat_map(|&i| rows[i * len..(i + 1) * len].iter());
        rows.copied().collect::<Vec<_>>()
    };
    let bench = Bench::new(layer, &params);
    let all = bench.run(&inputs, &deltas, &[0, 1, 2, 3, 4]);
    let some = bench.run(&moved(&inputs, input), &moved(&deltas, output), &[3, 0, 4]);
    for (place, &i) in order.iter().enumerate() {
        let same = |one: &[f32], other: &[f32], len: usize| {
            let one = one[i * len..(i + 1) * len].iter().map(|x| x.to_bits());
            one.eq(other[place * len..(place + 1) * len]
                .iter()
                .map(|x| x.to_bits()))
        };
        let outputs = same(&all.outputs, &some.outputs, output);
        let deltas = same(&all.input_deltas, &some.input_deltas, input);
        let norms = all.norms[i].to_bits() == some.norms[place].to_bits();
        if !(outputs && deltas && norms) {
            return Err(NetworkError::MixesExamples { at, name });
        }
    }
    match contribution::disagreement(&bench, &inputs, &deltas) {
        Some(what) => Err(NetworkError::Disagrees { at, name, what }),
        None => Ok(()),
    }
}

/// A layer that is put to the test.
struct Bench<'a> {
    layer: &'a dyn Layer,
    params: &'a [f32],
    prepared: Prepared,
}

/// What it made of some examples.
struct Outcome {
    outputs: Vec<f32>,
    input_deltas: Vec<f32>,
    norms: Vec<f64>,
    scratch: Scratch,
}

impl<'a> Bench<'a> {
    fn new(layer: &'a dyn Layer, params: &'a [f32]) -> Self {
        let mut prepared = Prepared::with_delta();
        layer.prepare(params, &mut prepared);
        Self {
            layer,
            params,
            prepared,
        }
    }

    /// There and back, with one seed for each example.
    fn run(&self, inputs: &[f32], deltas: &[f32], seeds: &[u64]) -> Outcome {
        let pass = Pass {
            params: self.params,
            prepared: &self.prepared,
            seeds,
        };
        // What was there before must not show: it is something else for an example alone than for several.
        let junk = if seeds.len() == 1 { 0.5 } else { f32::NAN };
        let mut outcome = Outcome {
            outputs: vec![junk; deltas.len()],
            input_deltas: vec![junk; inputs.len()],
            norms: vec![f64::from(junk); seeds.len()],
            scratch: Scratch::default(),
        };
        let scratch = &mut outcome.scratch;
        let (layer, back) = (self.layer, Some(&mut outcome.input_deltas[..]));
        layer.forward(pass, inputs, &mut outcome.outputs, scratch);
        layer.backward(pass, inputs, deltas, back, scratch);
        layer.square_norms(inputs, deltas, scratch, &mut outcome.norms);
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::{Dropout, Linear, Norm};

    /// Subtracts the mean of the batch, as batch norm does.
    struct BatchMean(usize);

    impl Layer for BatchMean {
        fn name(&self) -> &'static str {
            "batch_norm"
        }
        fn input_len(&self) -> usize {
            self.0
        }
        fn output_len(&self) -> usize {
            self.0
        }
        fn forward(&self, _: Pass, input: &[f32], output: &mut [f32], _: &mut Scratch) {
            let mean = input.iter().sum::<f32>() / input.len() as f32;
            for (output, x) in output.iter_mut().zip(input) {
                *output = x - mean;
            }
        }
        fn backward(
            &self,
            _: Pass,
            _: &[f32],
            delta: &[f32],
            input_delta: Option<&mut [f32]>,
            _: &mut Scratch,
        ) {
            if let Some(input_delta) = input_delta {
                input_delta.copy_from_slice(delta);
            }
        }
    }

    #[test]
    fn batch_norm_is_refused_and_group_norm_suggested() {
        let error = check(&BatchMean(2), 3).expect_err("it mixes examples");
        let (at, name) = (3, "batch_norm");
        assert_eq!(error, NetworkError::MixesExamples { at, name });
        assert_eq!(
            (error.kind(), error.code()),
            (FaultKind::Refused, "mixes_examples")
        );
        assert!(error.suggestion().contains("group_norm"));
    }

    #[test]
    fn layers_of_this_crate_pass() {
        let layers: [&dyn Layer; 4] = [
            &Linear::new(3, 50),
            &Linear::at_positions(3, 4, 2),
            &Norm::group(4, 6, 2),
            &Dropout::new(9, 0.5, 1),
        ];
        for layer in layers {
            assert_eq!(check(layer, 1), Ok(()));
        }
    }

    #[test]
    fn layers_without_a_size_are_refused() {
        assert_eq!(
            check(&Linear::new(0, 2), 2),
            Err(NetworkError::Size {
                at: 2,
                name: "linear"
            })
        );
    }

    /// What cannot be tested is refused, unless it is ours.
    #[test]
    fn large_layers_of_others_are_refused() {
        let refused = Err(NetworkError::Untested {
            at: 1,
            name: "batch_norm",
        });
        assert_eq!(check(&BatchMean(TESTED_LEN), 1), refused);
        assert_eq!(check(&Dropout::new(TESTED_LEN, 0.5, 1), 1), Ok(()));
    }
}
