//! ONNX, which runtimes of every language read: the layers of a network as nodes, its parameters as initialisers.
//!
//! The file is one protobuf message (`onnx.proto`, `ModelProto`), written here by hand: a field is a tag and a number or a run of bytes,
//! and no more of the format is needed. Dropout does nothing when a model is used and is left out. The input is the numbers of a file: the plan's normalisation is
//! the first nodes of the graph, in 32-bit floats. (Training normalises in 64 bits and rounds then, so that a feature may differ in its last digits, and in more
//! of them where a mean is far larger than its deviation.) The output is what the last layer gives (for classes: logits). Notes tell the names of features and classes.

mod message;

use thiserror::Error as ThisError;
use whit_core::{Fault, FaultKind};

use crate::data::Inputs;
use crate::model::{Architecture, LayerSpec, Tensor, tensors};

use message::Message;

/// What norms add to a variance before they divide by its root, here as in the layers.
const NORM_EPSILON: f32 = 1e-5;

/// The type `FLOAT` of a tensor.
const FLOAT: u64 = 1;

/// A network that is not written as ONNX.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum OnnxError {
    /// A layer that has no node of its own.
    #[error("layer {at} ({kind}) is not written as ONNX")]
    Layer {
        /// Which layer, counted from one.
        at: usize,
        /// Its kind.
        kind: &'static str,
    },
    /// The network takes features, and what makes them of examples has no nodes.
    #[error("the map of [features] is not written as ONNX")]
    Features,
    /// Constants of the plan that are no 32-bit floats.
    #[error("the normalisation of the plan has constants that ONNX has no room for")]
    Normalisation,
    /// The parameters are not those of the network.
    #[error("there are not as many parameters as the network has")]
    Parameters,
}

impl Fault for OnnxError {
    fn kind(&self) -> FaultKind {
        match self {
            Self::Layer { .. } | Self::Features | Self::Normalisation => FaultKind::Refused,
            Self::Parameters => FaultKind::Bug,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Layer { .. } => "onnx_layer",
            Self::Features => "onnx_features",
            Self::Normalisation => "onnx_normalisation",
            Self::Parameters => "onnx_parameters",
        }
    }

    fn suggestion(&self) -> String {
        match self {
            Self::Layer { .. } => "use the safetensors file, which holds every layer".into(),
            Self::Normalisation => {
                "use the safetensors file, and the constants of card.json in 64 bits".into()
            }
            Self::Features => {
                "use the safetensors file, and make features by `whit_learn::Features`".into()
            }
            Self::Parameters => "report this, please".into(),
        }
    }
}

/// The bytes of a file. `inputs` says what becomes of the numbers of a file before the first layer; without it, the graph begins with that. `notes` are texts about the
/// model, such as its guarantee.
pub fn write(
    architecture: &Architecture,
    parameters: &[f32],
    inputs: Option<&Inputs>,
    notes: &[(&str, &str)],
) -> Result<Vec<u8>, OnnxError> {
    let tensors = tensors(architecture.layers());
    let count: usize = tensors.iter().map(Tensor::len).sum();
    if count != parameters.len() {
        return Err(OnnxError::Parameters);
    }
    let mut graph = Graph {
        bytes: Message::default(),
        last: "features".into(),
        opset: 13,
    };
    let constants = match inputs {
        Some(inputs) => graph.normalisation(inputs)?,
        None => Vec::new(),
    };
    for (index, layer) in architecture.layers().iter().enumerate() {
        graph.layer(index, layer)?;
    }
    graph.named("outputs".into(), "Identity", &[], &[]);
    let mut bytes = graph.bytes.text(2, "whit");
    for constant in constants {
        bytes = bytes.message(5, constant);
    }
    for tensor in &tensors {
        let values = &parameters[tensor.offset..tensor.offset + tensor.len()];
        bytes = bytes.message(5, initializer(architecture, tensor, values));
    }
    bytes = bytes
        .message(11, value("features", architecture.input()))
        .message(12, value("outputs", &[architecture.outputs()]));
    let version = match graph.opset {
        ..=17 => 8,
        18..=20 => 9,
        _ => 10,
    };
    let mut model = Message::default()
        .number(1, version)
        .text(2, "whit")
        .text(3, env!("CARGO_PKG_VERSION"))
        .message(7, bytes)
        .message(8, Message::default().text(1, "").number(2, graph.opset));
    for (name, note) in notes {
        model = model.message(14, Message::default().text(1, name).text(2, note));
    }
    Ok(model.0)
}

/// Nodes as they come.
struct Graph {
    bytes: Message,
    /// The value that the next layer gets.
    last: String,
    /// The lowest set of operators that has all of them.
    opset: u64,
}

/// An attribute of a node.
enum Attribute {
    Number(u64),
    Numbers(Vec<usize>),
    Float(f32),
    Text(&'static str),
}

impl Graph {
    /// `(x · scale - mean) / std` as nodes, as far as it does something, and the constants that they take.
    fn normalisation(&mut self, inputs: &Inputs) -> Result<Vec<Message>, OnnxError> {
        let channels = inputs.shape.first().copied().unwrap_or(1);
        let mut shape = vec![1; inputs.shape.len()];
        let scale = vec![inputs.scale; channels];
        let mut constants = Vec::new();
        let steps = [
            ("Mul", "input.scale", &scale, 1.0),
            ("Sub", "input.mean", &inputs.mean, 0.0),
            ("Div", "input.std", &inputs.std, 1.0),
        ];
        for (kind, name, values, nothing) in steps {
            if values.iter().all(|value| *value == nothing) {
                continue;
            }
            let values: Vec<f32> = values.iter().map(|value| *value as f32).collect();
            let is_usable = |value: &f32| value.is_finite() && (kind == "Sub" || *value != 0.0);
            if values.len() != channels || !values.iter().all(is_usable) {
                return Err(OnnxError::Normalisation);
            }
            if let Some(first) = shape.first_mut() {
                *first = channels;
            }
            constants.push(tensor(name, &shape, &values));
            self.named(format!("{name}.node"), kind, &[name.to_owned()], &[]);
        }
        Ok(constants)
    }

    fn layer(&mut self, index: usize, layer: &LayerSpec) -> Result<(), OnnxError> {
        use Attribute::{Float, Number, Numbers, Text};
        let weights = [format!("{index}.weight"), format!("{index}.bias")];
        match layer {
            LayerSpec::Linear { positions: 1, .. } => {
                self.node(index, "Gemm", &weights, &[("transB", Number(1))]);
            }
            LayerSpec::Linear { .. } => {
                // The weight is stored the other way round; see `initializer`.
                let between = index.to_string() + ".product";
                self.named(between, "MatMul", &weights[..1], &[]);
                self.node(index, "Add", &weights[1..], &[]);
            }
            LayerSpec::Conv2d {
                kernel,
                stride,
                padding,
                ..
            } => {
                let attributes = [
                    ("kernel_shape", Numbers(vec![*kernel; 2])),
                    ("strides", Numbers(vec![*stride; 2])),
                    ("pads", Numbers(vec![*padding; 4])),
                ];
                self.node(index, "Conv", &weights, &attributes);
            }
            LayerSpec::MaxPool { kernel, stride, .. }
            | LayerSpec::AveragePool { kernel, stride, .. } => {
                let kind = match layer {
                    LayerSpec::MaxPool { .. } => "MaxPool",
                    _ => "AveragePool",
                };
                let attributes = [
                    ("kernel_shape", Numbers(vec![*kernel; 2])),
                    ("strides", Numbers(vec![*stride; 2])),
                ];
                self.node(index, kind, &[], &attributes);
            }
            LayerSpec::Flatten { .. } => self.node(index, "Flatten", &[], &[("axis", Number(1))]),
            LayerSpec::Relu { .. } => self.node(index, "Relu", &[], &[]),
            LayerSpec::Tanh { .. } => self.node(index, "Tanh", &[], &[]),
            LayerSpec::Gelu { .. } => {
                self.opset = self.opset.max(20);
                let attributes = [("approximate", Text("tanh"))];
                self.node(index, "Gelu", &[], &attributes);
            }
            LayerSpec::LayerNorm { .. } => {
                self.opset = self.opset.max(17);
                let attributes = [("epsilon", Float(NORM_EPSILON))];
                self.node(index, "LayerNormalization", &weights, &attributes);
            }
            LayerSpec::GroupNorm { shape, groups } if shape.len() > 1 => {
                self.opset = self.opset.max(21);
                let attributes = [
                    ("epsilon", Float(NORM_EPSILON)),
                    ("num_groups", Number(*groups as u64)),
                ];
                self.node(index, "GroupNormalization", &weights, &attributes);
            }
            LayerSpec::Dropout { .. } => {}
            _ => {
                return Err(OnnxError::Layer {
                    at: index + 1,
                    kind: layer.kind(),
                });
            }
        }
        Ok(())
    }

    fn node(
        &mut self,
        index: usize,
        kind: &str,
        weights: &[String],
        attributes: &[(&str, Attribute)],
    ) {
        self.named(index.to_string(), kind, weights, attributes);
    }

    fn named(
        &mut self,
        name: String,
        kind: &str,
        weights: &[String],
        attributes: &[(&str, Attribute)],
    ) {
        let mut inputs = vec![self.last.as_str()];
        inputs.extend(weights.iter().map(String::as_str));
        let mut node = Message::default()
            .texts(1, &inputs)
            .text(2, &name)
            .text(3, &name)
            .text(4, kind);
        for (name, attribute) in attributes {
            let named = Message::default().text(1, name);
            // The last number is the type of the attribute: FLOAT, INT, STRING or INTS.
            let attribute = match attribute {
                Attribute::Float(value) => named.float(2, *value).number(20, 1),
                Attribute::Number(value) => named.number(3, *value).number(20, 2),
                Attribute::Text(value) => named.text(4, value).number(20, 3),
                Attribute::Numbers(values) => {
                    let each = values
                        .iter()
                        .fold(named, |message, value| message.number(8, *value as u64));
                    each.number(20, 7)
                }
            };
            node = node.message(5, attribute);
        }
        self.bytes = std::mem::take(&mut self.bytes).message(1, node);
        self.last = name;
    }
}

/// A tensor of parameters. `MatMul` wants the weight of a linear layer as `[inputs][outputs]`.
fn initializer(architecture: &Architecture, tensor: &Tensor, values: &[f32]) -> Message {
    let index = tensor.name.split('.').next();
    let index = index.and_then(|index| index.parse::<usize>().ok());
    let layer = index.and_then(|index| architecture.layers().get(index));
    let (shape, values) = match (layer, &tensor.shape[..]) {
        (Some(LayerSpec::Linear { positions, .. }), [outputs, inputs]) if *positions > 1 => {
            let turned = (0..*inputs)
                .flat_map(|input| (0..*outputs).map(move |output| values[output * inputs + input]));
            (vec![*inputs, *outputs], turned.collect::<Vec<_>>())
        }
        _ => (tensor.shape.clone(), values.to_vec()),
    };
    self::tensor(&tensor.name, &shape, &values)
}

/// A tensor of floats.
fn tensor(name: &str, shape: &[usize], values: &[f32]) -> Message {
    let raw: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    shape
        .iter()
        .fold(Message::default(), |message, side| {
            message.number(1, *side as u64)
        })
        .number(2, FLOAT)
        .text(8, name)
        .bytes(9, &raw)
}

/// The name and shape of an input or output; the number of examples is open.
fn value(name: &str, shape: &[usize]) -> Message {
    let batch = Message::default().text(2, "batch");
    let sides = shape
        .iter()
        .map(|side| Message::default().number(1, *side as u64));
    let sides = std::iter::once(batch)
        .chain(sides)
        .fold(Message::default(), |message, side| message.message(1, side));
    let tensor = Message::default().number(1, FLOAT).message(2, sides);
    let kind = Message::default().message(1, tensor);
    Message::default().text(1, name).message(2, kind)
}

#[cfg(test)]
mod tests {
    use super::message::read::{all, numbers, texts};
    use super::*;
    use crate::model::{Model, init};

    fn architecture(text: &str, input: &[usize]) -> Architecture {
        let model: Model = toml::from_str(text).expect("a description");
        model.architecture(input, 10).expect("fits")
    }

    fn graph(text: &str, input: &[usize]) -> (Vec<u8>, Vec<u8>, Vec<f32>) {
        let architecture = architecture(text, input);
        let parameters = init(architecture.layers(), 5);
        let notes = [("epsilon_upper", "1")];
        let model = write(&architecture, &parameters, None, &notes).expect("fits");
        let graph = all(&model, 7).remove(0);
        (model, graph, parameters)
    }

    fn kinds(graph: &[u8]) -> Vec<String> {
        let nodes = all(graph, 1);
        nodes.iter().flat_map(|node| texts(node, 4)).collect()
    }

    #[test]
    fn a_network_of_convolutions_reads_back() {
        let (model, graph, parameters) = graph("kind = 'cnn'", &[1, 28, 28]);
        let expected = [
            "Conv", "Tanh", "MaxPool", "Conv", "Tanh", "MaxPool", "Flatten", "Gemm", "Tanh",
            "Gemm", "Identity",
        ];
        assert_eq!(kinds(&graph), expected);
        let first = &all(&graph, 1)[0];
        assert_eq!(texts(first, 1), ["features", "0.weight", "0.bias"]);
        let attributes: Vec<_> = all(first, 5)
            .iter()
            .map(|attribute| (texts(attribute, 1).remove(0), numbers(attribute, 8)))
            .collect();
        let attribute = |name: &str, values: &[u64]| (name.to_owned(), values.to_vec());
        assert_eq!(
            attributes,
            [
                attribute("kernel_shape", &[8, 8]),
                attribute("strides", &[2, 2]),
                attribute("pads", &[3, 3, 3, 3])
            ]
        );
        let mut stored = Vec::new();
        for tensor in all(&graph, 5) {
            assert_eq!(numbers(&tensor, 2), [FLOAT]);
            stored.extend(all(&tensor, 9).concat());
        }
        let raw: Vec<u8> = parameters.iter().flat_map(|w| w.to_le_bytes()).collect();
        assert_eq!(stored, raw);
        assert_eq!(texts(&all(&model, 14)[0], 2), ["1"]);
    }

    #[test]
    fn each_node_gets_what_the_one_before_gives() {
        let text = "kind = 'mlp'\nhidden = [4, 3]\nactivation = 'relu'\ndropout = 0.5";
        let (_, graph, _) = graph(text, &[2, 3]);
        let nodes = all(&graph, 1);
        assert_eq!(
            kinds(&graph),
            [
                "Flatten", "Gemm", "Relu", "Gemm", "Relu", "Gemm", "Identity"
            ]
        );
        let mut last = "features".to_owned();
        for node in &nodes {
            assert_eq!(texts(node, 1)[0], last);
            last = texts(node, 2).remove(0);
        }
        assert_eq!(last, "outputs");
        assert_eq!(texts(&all(&graph, 12)[0], 1), [last]);
        assert_eq!(texts(&all(&graph, 11)[0], 1), ["features"]);
    }

    #[test]
    fn the_normalisation_of_the_plan_comes_first() {
        let architecture = architecture("kind = 'logistic'", &[2, 3, 3]);
        let parameters = init(architecture.layers(), 5);
        let mut inputs = Inputs {
            format: crate::data::Format::Idx,
            columns: Vec::new(),
            categories: Default::default(),
            shape: vec![2, 3, 3],
            scale: 1.0 / 255.0,
            mean: vec![0.5, 0.25],
            std: vec![0.3, 0.2],
        };
        let written = |inputs: &Inputs| write(&architecture, &parameters, Some(inputs), &[]);
        let graph = all(&written(&inputs).expect("fits"), 7).remove(0);
        let found = kinds(&graph);
        assert_eq!(found[..3], ["Mul", "Sub", "Div"]);
        let nodes = all(&graph, 1);
        assert_eq!(texts(&nodes[0], 1), ["features", "input.scale"]);
        assert_eq!(texts(&nodes[3], 1)[0], texts(&nodes[2], 2)[0]);
        let mean = all(&graph, 5)
            .into_iter()
            .find(|it| texts(it, 8) == ["input.mean"]);
        let mean = mean.expect("a constant");
        assert_eq!(numbers(&mean, 1), [2, 1, 1], "one for each channel");
        let raw: Vec<u8> = [0.5_f32, 0.25]
            .iter()
            .flat_map(|x| x.to_le_bytes())
            .collect();
        assert_eq!(all(&mean, 9), [raw]);
        inputs.scale = 1.0;
        inputs.mean = vec![0.0; 2];
        let graph = all(&written(&inputs).expect("fits"), 7).remove(0);
        assert_eq!(kinds(&graph)[0], "Div", "what does nothing is left out");
        inputs.std[1] = 1e-60;
        assert_eq!(written(&inputs), Err(OnnxError::Normalisation));
    }

    #[test]
    fn a_linear_layer_over_positions_is_turned() {
        let text = "kind = 'layers'\nlayers = [{ kind = 'linear', outputs = 3 }, { kind = 'layer_norm' }, { kind = 'gelu' }, { kind = 'flatten' }, { kind = 'linear', outputs = 10 }]";
        let (model, graph, parameters) = graph(text, &[4, 2]);
        assert_eq!(
            kinds(&graph),
            [
                "MatMul",
                "Add",
                "LayerNormalization",
                "Gelu",
                "Flatten",
                "Gemm",
                "Identity"
            ]
        );
        let first = &all(&graph, 5)[0];
        assert_eq!(numbers(first, 1), [2, 3]);
        let raw = all(first, 9).remove(0);
        let second = f32::from_le_bytes(raw[4..8].try_into().expect("four"));
        assert_eq!(second, parameters[2], "row 1 of [3][2] begins at 2");
        assert_eq!(numbers(&all(&model, 8)[0], 2), [20]);
    }

    #[test]
    fn layers_without_a_node_are_refused() {
        let text = "kind = 'layers'\nlayers = [{ kind = 'embedding', entries = 9, features = 2 }, { kind = 'flatten' }, { kind = 'linear', outputs = 10 }]";
        let architecture = architecture(text, &[3]);
        let parameters = init(architecture.layers(), 0);
        let error = write(&architecture, &parameters, None, &[]).expect_err("an embedding");
        assert_eq!(
            error,
            OnnxError::Layer {
                at: 1,
                kind: "embedding"
            }
        );
        assert!(error.suggestion().contains("safetensors"));
        let short = write(&architecture, &parameters[1..], None, &[]);
        assert_eq!(short, Err(OnnxError::Parameters));
    }
}
