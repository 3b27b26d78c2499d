//! Why a network cannot be trained, or not privately. Layers are counted from one, as they stand in the plan.

use thiserror::Error as ThisError;
use whit_core::{Fault, FaultKind};

/// A description that does not make a network.
#[derive(Clone, Debug, PartialEq, ThisError)]
#[non_exhaustive]
pub enum ModelError {
    /// No such kind of model.
    #[error("there is no model of kind {kind:?}")]
    UnknownModel {
        /// As given.
        kind: String,
    },
    /// No such kind of layer.
    #[error("layer {at} is of a kind that is not known: {kind:?}")]
    UnknownLayer {
        /// Which layer.
        at: usize,
        /// As given.
        kind: String,
    },
    /// A layer that mixes examples.
    #[error(
        "layer {at} is a batch norm, which makes the output for one example depend on others, so that no example's gradient can be bounded by itself"
    )]
    BatchNorm {
        /// Which layer.
        at: usize,
    },
    /// A field is missing.
    #[error("{of} lacks `{field}`")]
    FieldMissing {
        /// The layer or model.
        of: String,
        /// The field.
        field: &'static str,
        /// What would pass.
        example: &'static str,
    },
    /// A field that would be ignored.
    #[error("{of} takes no `{field}`")]
    FieldUnused {
        /// The layer or model.
        of: String,
        /// The field.
        field: &'static str,
    },
    /// A field out of its domain.
    #[error("`{field}` of {of} is {given}")]
    Domain {
        /// The layer or model.
        of: String,
        /// The field.
        field: &'static str,
        /// As given.
        given: String,
        /// What would pass.
        passes: String,
    },
    /// A layer gets a shape that it cannot take.
    #[error("layer {at} ({kind}) gets the shape {gets:?}")]
    Input {
        /// Which layer.
        at: usize,
        /// Its kind.
        kind: String,
        /// The shape that comes out of the layer before.
        gets: Vec<usize>,
        /// What would pass.
        passes: String,
    },
    /// The last layer does not give one number for each class.
    #[error("the last layer gives the shape {gives:?}")]
    Outputs {
        /// The shape that comes out.
        gives: Vec<usize>,
        /// How many numbers would pass.
        passes: usize,
    },
    /// There are no layers.
    #[error("the model has no layers")]
    NoLayers,
    /// No layer has parameters.
    #[error("no layer of the model has anything to train")]
    NothingToTrain,
    /// There are too many parameters.
    #[error("with layer {at} the model has more than {max} parameters")]
    TooLarge {
        /// Which layer.
        at: usize,
        /// The most that pass.
        max: usize,
    },
}

/// Short for a result with this error.
pub(super) type Result<T> = std::result::Result<T, ModelError>;

impl Fault for ModelError {
    fn kind(&self) -> FaultKind {
        match self {
            Self::BatchNorm { .. } => FaultKind::Refused,
            _ => FaultKind::Invalid,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::UnknownModel { .. } => "unknown_model",
            Self::UnknownLayer { .. } => "unknown_layer",
            Self::BatchNorm { .. } => "batch_norm",
            Self::FieldMissing { .. } => "model_field_missing",
            Self::FieldUnused { .. } => "model_field_unused",
            Self::Domain { .. } => "model_field_domain",
            Self::Input { .. } => "layer_input",
            Self::Outputs { .. } => "model_outputs",
            Self::NoLayers => "no_layers",
            Self::NothingToTrain => "nothing_to_train",
            Self::TooLarge { .. } => "model_too_large",
        }
    }

    fn suggestion(&self) -> String {
        match self {
            Self::UnknownModel { .. } => {
                "give `kind` as \"mlp\", \"cnn\", \"logistic\" or \"layers\", or of the models without steps as \"naive_bayes\", \"linear_regression\", \"minima_perturbation\" (logistic regression), \"forest\", \"boosted_stumps\", \"k_means\" or \"pca\"".into()
            }
            Self::UnknownLayer { .. } => format!("give one of {}", super::spec::KINDS.join(", ")),
            Self::BatchNorm { .. } => {
                "put { kind = \"group_norm\", groups = 4 } in its place, which looks at one example at a time; the number of groups must divide the number of channels"
                    .into()
            }
            Self::FieldMissing { example, .. } => format!("give it, such as {example}"),
            Self::FieldUnused { field, .. } => format!("leave `{field}` out"),
            Self::Domain { field, passes, .. } => format!("give `{field}` as {passes}"),
            Self::Input { passes, .. } => passes.clone(),
            Self::Outputs { passes, .. } => format!(
                "let the last layer be {{ kind = \"linear\", outputs = {passes} }}, one for each class, or 1 where a number is learnt"
            ),
            Self::NoLayers => {
                "give layers = [{ kind = \"flatten\" }, { kind = \"linear\", outputs = 10 }] or more of them"
                    .into()
            }
            Self::NothingToTrain => "add a layer that has parameters, such as linear".into(),
            Self::TooLarge { .. } => "make layers smaller, or pool before the first linear one".into(),
        }
    }
}
