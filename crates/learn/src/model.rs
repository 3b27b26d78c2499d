//! `[model]` of a plan: which network is trained. It says nothing about data but shapes, which are public.
//!
//! ```toml
//! [model]
//! kind = "mlp"           # or "logistic", "cnn", "layers"
//! hidden = [1000]
//! activation = "tanh"    # or "relu", "gelu"
//! ```
//!
//! With `kind = "layers"` the layers stand in a list; what a layer gets is worked out from the one before it:
//!
//! ```toml
//! [model]
//! kind = "layers"
//! layers = [
//!   { kind = "conv2d", filters = 16, kernel = 8, stride = 2, padding = 3 },
//!   { kind = "tanh" },
//!   { kind = "max_pool", kernel = 2, stride = 1 },
//!   { kind = "flatten" },
//!   { kind = "linear", outputs = 10 },
//! ]
//! ```

mod error;
mod infer;
pub(crate) mod init;
mod spec;

use serde::{Deserialize, Serialize};

pub use error::ModelError;
pub use init::init;
pub use spec::{Image, LayerSpec, Tensor, parameters, tensors};

use error::Result;

/// More parameters than this would need noise of several gigabytes at each step.
const PARAMETERS_MAX: usize = 1 << 28;

/// What a plan says about its network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// `mlp`, `cnn`, `logistic` or `layers`.
    pub kind: String,
    /// The sizes of hidden linear layers (`mlp`, `cnn`).
    pub hidden: Option<Vec<usize>>,
    /// Between layers (`mlp`, `cnn`). Else tanh: it keeps activations bounded, so that less of a gradient is clipped away.
    pub activation: Option<String>,
    /// The share of activations that are dropped while training, after each activation (`mlp`, `cnn`).
    pub dropout: Option<f64>,
    /// How many filters each convolution has (`cnn`); else 16 and 32.
    pub filters: Option<Vec<usize>>,
    /// The sides of the filters (`cnn`); else 8 and 4.
    pub kernels: Option<Vec<usize>>,
    /// How far each filter moves on (`cnn`); else 2 and 2.
    pub strides: Option<Vec<usize>>,
    /// How many zeros are put around each picture (`cnn`); else 3 and 0.
    pub paddings: Option<Vec<usize>>,
    /// The layers (`layers`).
    pub layers: Option<Vec<LayerDescription>>,
    /// The public seed of the initial weights; else 0.
    pub seed: Option<u64>,
}

/// One layer of a list. Which fields it takes depends on its kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerDescription {
    /// The kind of layer.
    pub kind: String,
    /// How many numbers come out (`linear`).
    pub outputs: Option<usize>,
    /// How many filters there are (`conv2d`).
    pub filters: Option<usize>,
    /// The side of a filter or of a window (`conv2d`, `max_pool`, `average_pool`).
    pub kernel: Option<usize>,
    /// How far it moves on; else 1 for filters, and the side of the window for pools.
    pub stride: Option<usize>,
    /// How many zeros are put around the picture (`conv2d`); else none.
    pub padding: Option<usize>,
    /// Into how many groups channels are put (`group_norm`).
    pub groups: Option<usize>,
    /// The share that is dropped (`dropout`).
    pub rate: Option<f64>,
    /// How many different tokens there are (`embedding`).
    pub entries: Option<usize>,
    /// How many numbers a token becomes (`embedding`).
    pub features: Option<usize>,
    /// How many heads there are (`attention`).
    pub heads: Option<usize>,
}

/// A network whose shapes fit together, without its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Architecture {
    input: Vec<usize>,
    layers: Vec<LayerSpec>,
    outputs: usize,
}

impl Architecture {
    /// The shape of an example.
    pub fn input(&self) -> &[usize] {
        &self.input
    }

    /// The layers, from the input on.
    pub fn layers(&self) -> &[LayerSpec] {
        &self.layers
    }

    /// How many numbers come out.
    pub fn outputs(&self) -> usize {
        self.outputs
    }
}

impl LayerDescription {
    fn new(kind: &str) -> Self {
        Self {
            kind: kind.into(),
            ..Self::default()
        }
    }

    fn linear(outputs: usize) -> Self {
        Self {
            outputs: Some(outputs),
            ..Self::new("linear")
        }
    }
}

impl Model {
    /// The network for examples of a shape. `outputs` is the number of classes, or 1 where a number is learnt.
    pub fn architecture(&self, input: &[usize], outputs: usize) -> Result<Architecture> {
        let descriptions = self.descriptions(input, outputs)?;
        let mut shape = input.to_vec();
        let mut layers = Vec::with_capacity(descriptions.len());
        for (index, description) in descriptions.iter().enumerate() {
            let layer = LayerSpec::infer(description, &shape, index + 1)?;
            shape = layer.output();
            layers.push(layer);
            // Checked as they come, so that the sum cannot overflow.
            if parameters(&layers) > PARAMETERS_MAX {
                return Err(ModelError::TooLarge {
                    at: index + 1,
                    max: PARAMETERS_MAX,
                });
            }
        }
        if layers.is_empty() {
            return Err(ModelError::NoLayers);
        }
        if shape != [outputs] {
            return Err(ModelError::Outputs {
                gives: shape,
                passes: outputs,
            });
        }
        if parameters(&layers) == 0 {
            return Err(ModelError::NothingToTrain);
        }
        Ok(Architecture {
            input: input.to_vec(),
            layers,
            outputs,
        })
    }

    /// Refuses what no shape of examples would mend, in the same words as [`architecture`](Self::architecture).
    pub fn check(&self, outputs: usize) -> Result<()> {
        use ModelError::{BatchNorm, FieldMissing, FieldUnused, UnknownLayer};
        let descriptions = self.descriptions(&[1], outputs)?;
        for (index, description) in descriptions.iter().enumerate() {
            let layer = LayerSpec::infer(description, &[1], index + 1);
            let is_any = |error: &ModelError| {
                matches!(
                    error,
                    BatchNorm { .. }
                        | FieldMissing { .. }
                        | FieldUnused { .. }
                        | UnknownLayer { .. }
                )
            };
            if let Some(error) = layer.err().filter(is_any) {
                return Err(error);
            }
        }
        let last = descriptions.last().ok_or(ModelError::NoLayers)?;
        match last.outputs {
            Some(given) if last.kind == "linear" && given != outputs => Err(ModelError::Outputs {
                gives: vec![given],
                passes: outputs,
            }),
            _ => Ok(()),
        }
    }

    /// The layers as if they stood in the plan.
    fn descriptions(&self, input: &[usize], outputs: usize) -> Result<Vec<LayerDescription>> {
        let takes: &[&str] = match self.kind.as_str() {
            "logistic" => &[],
            "mlp" => &["hidden", "activation", "dropout"],
            "cnn" => &[
                "hidden",
                "activation",
                "dropout",
                "filters",
                "kernels",
                "strides",
                "paddings",
            ],
            "layers" => &["layers"],
            _ => {
                return Err(ModelError::UnknownModel {
                    kind: self.kind.clone(),
                });
            }
        };
        let given = [
            ("hidden", self.hidden.is_some()),
            ("activation", self.activation.is_some()),
            ("dropout", self.dropout.is_some()),
            ("filters", self.filters.is_some()),
            ("kernels", self.kernels.is_some()),
            ("strides", self.strides.is_some()),
            ("paddings", self.paddings.is_some()),
            ("layers", self.layers.is_some()),
        ];
        let unused = given
            .iter()
            .find(|(field, given)| *given && !takes.contains(field));
        if let Some((field, _)) = unused {
            return Err(ModelError::FieldUnused {
                of: format!("a model of kind {:?}", self.kind),
                field,
            });
        }
        if let Some(layers) = &self.layers {
            return Ok(layers.clone());
        }
        let activation = self.activation.as_deref().unwrap_or("tanh");
        if !["relu", "tanh", "gelu"].contains(&activation) {
            return Err(ModelError::Domain {
                of: "the model".into(),
                field: "activation",
                given: format!("{activation:?}"),
                passes: "\"tanh\", \"relu\" or \"gelu\"".into(),
            });
        }
        let mut layers = Vec::new();
        let activate = |layers: &mut Vec<LayerDescription>| {
            layers.push(LayerDescription::new(activation));
            if self.dropout.is_some() {
                layers.push(LayerDescription {
                    rate: self.dropout,
                    ..LayerDescription::new("dropout")
                });
            }
        };
        let mut hidden: &[usize] = &[];
        match self.kind.as_str() {
            "layers" => return Err(ModelError::NoLayers),
            "mlp" => {
                hidden = self.hidden.as_deref().ok_or(ModelError::FieldMissing {
                    of: "a model of kind \"mlp\"".into(),
                    field: "hidden",
                    example: "hidden = [128]",
                })?;
            }
            "cnn" => {
                hidden = self.hidden.as_deref().unwrap_or(&[32]);
                for convolution in self.convolutions()? {
                    layers.push(convolution);
                    activate(&mut layers);
                    layers.push(LayerDescription {
                        kernel: Some(2),
                        stride: Some(1),
                        ..LayerDescription::new("max_pool")
                    });
                }
            }
            _ => {}
        }
        if input.len() > 1 {
            layers.push(LayerDescription::new("flatten"));
        }
        for size in hidden {
            layers.push(LayerDescription::linear(*size));
            activate(&mut layers);
        }
        layers.push(LayerDescription::linear(outputs));
        Ok(layers)
    }

    /// Lists that are not given are those of the usual network for pictures of 28 by 28, as long as `filters` is.
    fn convolutions(&self) -> Result<Vec<LayerDescription>> {
        let filters = self.filters.as_deref().unwrap_or(&[16, 32]);
        let each = |field, given: &Option<Vec<usize>>, otherwise: [usize; 2]| match given {
            Some(values) if values.len() == filters.len() => Ok(values.clone()),
            None if filters.len() == 2 => Ok(otherwise.to_vec()),
            Some(values) => Err(ModelError::Domain {
                of: "the model".into(),
                field,
                given: format!("{values:?}"),
                passes: format!("{} whole numbers, one for each of `filters`", filters.len()),
            }),
            None => Err(ModelError::FieldMissing {
                of: "a model that has not 2 filter sizes".into(),
                field,
                example: "one whole number for each of `filters`",
            }),
        };
        let kernels = each("kernels", &self.kernels, [8, 4])?;
        let strides = each("strides", &self.strides, [2, 2])?;
        let paddings = each("paddings", &self.paddings, [3, 0])?;
        let layers = (0..filters.len()).map(|index| LayerDescription {
            filters: Some(filters[index]),
            kernel: Some(kernels[index]),
            stride: Some(strides[index]),
            padding: Some(paddings[index]),
            ..LayerDescription::new("conv2d")
        });
        Ok(layers.collect())
    }
}

#[cfg(test)]
mod tests {
    use whit_core::Fault;

    use super::*;

    fn network(text: &str, input: &[usize]) -> Result<Architecture> {
        let model: Model = toml::from_str(text).expect("a description");
        model.architecture(input, 10)
    }

    #[test]
    fn short_kinds_have_the_usual_numbers_of_parameters() {
        let check = |text: &str, expected: usize| {
            let network = network(text, &[1, 28, 28]).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(parameters(network.layers()), expected, "{text}");
        };
        check("kind = 'logistic'", 7_850);
        check("kind = 'mlp'\nhidden = [1000]", 795_010);
        check("kind = 'mlp'\nhidden = []", 7_850);
        check("kind = 'cnn'", 26_010);
        check("kind = 'cnn'\nactivation = 'relu'\ndropout = 0.5", 26_010);
        check(
            "kind = 'cnn'\nfilters = [4]\nkernels = [5]\nstrides = [1]\npaddings = [2]\nhidden = []",
            104 + 27 * 27 * 40 + 10,
        );
    }

    #[test]
    fn a_list_of_layers_is_the_network_it_describes() {
        let text = "kind = 'layers'\nlayers = [
            { kind = 'conv2d', filters = 16, kernel = 8, stride = 2, padding = 3 }, { kind = 'tanh' },
            { kind = 'max_pool', kernel = 2, stride = 1 },
            { kind = 'conv2d', filters = 32, kernel = 4, stride = 2 }, { kind = 'tanh' },
            { kind = 'max_pool', kernel = 2, stride = 1 },
            { kind = 'flatten' }, { kind = 'linear', outputs = 32 }, { kind = 'tanh' },
            { kind = 'linear', outputs = 10 } ]";
        assert_eq!(
            network(text, &[1, 28, 28]),
            network("kind = 'cnn'", &[1, 28, 28])
        );
    }

    #[test]
    fn what_does_not_fit_says_what_would_pass() {
        let check = |text: &str, code: &str, part: &str| {
            let error = network(text, &[1, 28, 28]).expect_err(text);
            let whole = format!("{error}; {}", error.suggestion());
            assert_eq!(error.code(), code, "{whole}");
            assert!(whole.contains(part), "{whole}");
        };
        check("kind = 'resnet'", "unknown_model", "\"mlp\"");
        check("kind = 'mlp'", "model_field_missing", "hidden = [128]");
        check(
            "kind = 'mlp'\nhidden = [0]",
            "model_field_domain",
            "from 1 on",
        );
        check(
            "kind = 'logistic'\nhidden = [3]",
            "model_field_unused",
            "hidden",
        );
        check(
            "kind = 'mlp'\nhidden = [3]\nactivation = 'sine'",
            "model_field_domain",
            "\"tanh\"",
        );
        check(
            "kind = 'cnn'\nfilters = [4]",
            "model_field_missing",
            "each of `filters`",
        );
        check(
            "kind = 'cnn'\nkernels = [4]",
            "model_field_domain",
            "2 whole numbers",
        );
        check("kind = 'layers'", "no_layers", "layers = [");
        check("kind = 'layers'\nlayers = []", "no_layers", "layers = [");
        check(
            "kind = 'layers'\nlayers = [{ kind = 'flatten' }]",
            "model_outputs",
            "outputs = 10",
        );
        check(
            "kind = 'mlp'\nhidden = [4000000000]",
            "model_too_large",
            "layer 2",
        );
        let same = toml::from_str::<Model>("kind = 'layers'\nlayers = [{ kind = 'relu' }]");
        let same = same.expect("a description").architecture(&[10], 10);
        assert_eq!(same.map_err(|error| error.code()), Err("nothing_to_train"));
    }
}
