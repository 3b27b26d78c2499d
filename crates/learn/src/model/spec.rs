//! Layers with their shapes, and where their parameters stand.
//!
//! **Order of parameters.** One flat list, layer by layer from the input on. Within a layer: its weights, row-major with the output
//! first (`[outputs][inputs]`, `[filters][channels][kernel][kernel]`), then its bias. Norms have gains before biases. Attention has
//! the weights and the bias of query, key, value and output, in that order. [`tensors`] is that order in code.

use super::PARAMETERS_MAX;

/// The kinds of layers that a plan can name.
pub(super) const KINDS: [&str; 13] = [
    "linear",
    "conv2d",
    "max_pool",
    "average_pool",
    "flatten",
    "relu",
    "tanh",
    "gelu",
    "group_norm",
    "layer_norm",
    "dropout",
    "embedding",
    "attention",
];

/// The shape of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    /// How many numbers a pixel has.
    pub channels: usize,
    /// How many rows.
    pub height: usize,
    /// How many columns.
    pub width: usize,
}

impl Image {
    fn windows(self, kernel: usize, stride: usize, padding: usize) -> (usize, usize) {
        let count = |side: usize| (side + 2 * padding - kernel) / stride + 1;
        (count(self.height), count(self.width))
    }
}

/// A layer whose shapes are known and fit.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum LayerSpec {
    /// `y = W x + b`, at each position.
    Linear {
        /// 1 for a flat input.
        positions: usize,
        /// Numbers in.
        inputs: usize,
        /// Numbers out.
        outputs: usize,
    },
    /// A square convolution (no flip), zeros around.
    Conv2d {
        /// What comes in.
        input: Image,
        /// Channels that come out.
        filters: usize,
        /// The side of a filter.
        kernel: usize,
        /// How far it moves on.
        stride: usize,
        /// Zeros on each side.
        padding: usize,
    },
    /// The largest value of a square window.
    MaxPool {
        /// What comes in.
        input: Image,
        /// The side of the window.
        kernel: usize,
        /// How far it moves on.
        stride: usize,
    },
    /// The mean of a square window.
    AveragePool {
        /// What comes in.
        input: Image,
        /// The side of the window.
        kernel: usize,
        /// How far it moves on.
        stride: usize,
    },
    /// The same numbers in one row.
    Flatten {
        /// The shape that comes in.
        input: Vec<usize>,
    },
    /// `max(x, 0)`.
    Relu {
        /// The shape that passes through.
        shape: Vec<usize>,
    },
    /// The hyperbolic tangent.
    Tanh {
        /// The shape that passes through.
        shape: Vec<usize>,
    },
    /// `x Φ(x)`, with the tanh approximation of `Φ`: `x (1 + tanh(√(2/π) (x + 0.044715 x³)))/2`.
    Gelu {
        /// The shape that passes through.
        shape: Vec<usize>,
    },
    /// Mean 0 and variance 1 within each group of channels of one example.
    GroupNorm {
        /// The shape that passes through; the first side is the channels.
        shape: Vec<usize>,
        /// Divides the number of channels.
        groups: usize,
    },
    /// Mean 0 and variance 1 over the last side of one example's shape.
    LayerNorm {
        /// The shape that passes through.
        shape: Vec<usize>,
    },
    /// A share of the numbers is dropped while training.
    Dropout {
        /// The shape that passes through.
        shape: Vec<usize>,
        /// The share.
        rate: f64,
    },
    /// A row of a table for each token.
    Embedding {
        /// Tokens in.
        positions: usize,
        /// Rows of the table.
        entries: usize,
        /// Numbers out for each token.
        features: usize,
    },
    /// Self-attention with several heads.
    Attention {
        /// Positions.
        positions: usize,
        /// Numbers at each position.
        features: usize,
        /// Divides the number of features.
        heads: usize,
    },
}

/// Where a tensor stands in the flat list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Such as `0.weight`, with the layer counted from zero.
    pub name: String,
    /// Sides, the slowest first.
    pub shape: Vec<usize>,
    /// Where it begins.
    pub offset: usize,
}

impl Tensor {
    /// How many numbers it holds.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Does it hold none?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl LayerSpec {
    /// The kind, as plans name it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Linear { .. } => "linear",
            Self::Conv2d { .. } => "conv2d",
            Self::MaxPool { .. } => "max_pool",
            Self::AveragePool { .. } => "average_pool",
            Self::Flatten { .. } => "flatten",
            Self::Relu { .. } => "relu",
            Self::Tanh { .. } => "tanh",
            Self::Gelu { .. } => "gelu",
            Self::GroupNorm { .. } => "group_norm",
            Self::LayerNorm { .. } => "layer_norm",
            Self::Dropout { .. } => "dropout",
            Self::Embedding { .. } => "embedding",
            Self::Attention { .. } => "attention",
        }
    }

    /// The shape that comes out.
    pub fn output(&self) -> Vec<usize> {
        match self {
            Self::Linear {
                positions, outputs, ..
            } => match positions {
                1 => vec![*outputs],
                _ => vec![*positions, *outputs],
            },
            Self::Conv2d {
                input,
                filters,
                kernel,
                stride,
                padding,
            } => {
                let (height, width) = input.windows(*kernel, *stride, *padding);
                vec![*filters, height, width]
            }
            Self::MaxPool {
                input,
                kernel,
                stride,
            }
            | Self::AveragePool {
                input,
                kernel,
                stride,
            } => {
                let (height, width) = input.windows(*kernel, *stride, 0);
                vec![input.channels, height, width]
            }
            Self::Flatten { input } => vec![input.iter().product()],
            Self::Relu { shape }
            | Self::Tanh { shape }
            | Self::Gelu { shape }
            | Self::GroupNorm { shape, .. }
            | Self::LayerNorm { shape }
            | Self::Dropout { shape, .. } => shape.clone(),
            Self::Embedding {
                positions,
                features,
                ..
            }
            | Self::Attention {
                positions,
                features,
                ..
            } => vec![*positions, *features],
        }
    }

    /// Names and shapes of the parameters, in order.
    pub(crate) fn shapes(&self) -> Vec<(&'static str, Vec<usize>)> {
        match self {
            Self::Linear {
                inputs, outputs, ..
            } => vec![
                ("weight", vec![*outputs, *inputs]),
                ("bias", vec![*outputs]),
            ],
            Self::Conv2d {
                input,
                filters,
                kernel,
                ..
            } => vec![
                ("weight", vec![*filters, input.channels, *kernel, *kernel]),
                ("bias", vec![*filters]),
            ],
            Self::GroupNorm { shape, .. } => {
                vec![("weight", vec![shape[0]]), ("bias", vec![shape[0]])]
            }
            Self::LayerNorm { shape } => {
                let features = shape[shape.len() - 1];
                vec![("weight", vec![features]), ("bias", vec![features])]
            }
            Self::Embedding {
                entries, features, ..
            } => vec![("weight", vec![*entries, *features])],
            Self::Attention { features, .. } => [
                ("query.weight", "query.bias"),
                ("key.weight", "key.bias"),
                ("value.weight", "value.bias"),
                ("output.weight", "output.bias"),
            ]
            .into_iter()
            .flat_map(|(weight, bias)| {
                [
                    (weight, vec![*features, *features]),
                    (bias, vec![*features]),
                ]
            })
            .collect(),
            _ => Vec::new(),
        }
    }
}

/// All tensors of a network in the order of its parameters.
pub fn tensors(layers: &[LayerSpec]) -> Vec<Tensor> {
    let mut offset = 0;
    let mut tensors = Vec::new();
    for (index, layer) in layers.iter().enumerate() {
        for (name, shape) in layer.shapes() {
            let tensor = Tensor {
                name: format!("{index}.{name}"),
                shape,
                offset,
            };
            offset += tensor.len();
            tensors.push(tensor);
        }
    }
    tensors
}

/// The number of parameters, or more than a model may have if it has more.
pub fn parameters(layers: &[LayerSpec]) -> usize {
    let shapes = layers.iter().flat_map(LayerSpec::shapes);
    shapes.fold(0, |sum: usize, (_, shape)| {
        let size = shape.iter().copied().fold(1, usize::saturating_mul);
        sum.saturating_add(size).min(PARAMETERS_MAX + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn infer(text: &str, gets: &[usize]) -> LayerSpec {
        let description = toml::from_str(text).expect("a layer");
        LayerSpec::infer(&description, gets, 1).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn tensors_stand_one_after_the_other() {
        let layers = [
            infer("kind = 'conv2d'\nfilters = 2\nkernel = 3", &[1, 5, 4]),
            infer("kind = 'tanh'", &[2, 3, 2]),
            infer("kind = 'flatten'", &[2, 3, 2]),
            infer("kind = 'linear'\noutputs = 5", &[12]),
        ];
        let found: Vec<_> = tensors(&layers)
            .into_iter()
            .map(|tensor| (tensor.name, tensor.shape, tensor.offset))
            .collect();
        let expected = [
            ("0.weight", vec![2, 1, 3, 3], 0),
            ("0.bias", vec![2], 18),
            ("3.weight", vec![5, 12], 20),
            ("3.bias", vec![5], 80),
        ];
        assert_eq!(
            found,
            expected.map(|(name, shape, offset)| (name.into(), shape, offset))
        );
        assert_eq!(parameters(&layers), 85);
    }

    #[test]
    fn attention_has_four_matrices_and_sizes_do_not_overflow() {
        let attention = infer("kind = 'attention'\nheads = 2", &[12, 8]);
        assert_eq!(parameters(&[attention]), 4 * (64 + 8));
        let huge = infer("kind = 'linear'\noutputs = 4294967295", &[1 << 60]);
        assert_eq!(parameters(&[huge]), PARAMETERS_MAX + 1);
    }
}
