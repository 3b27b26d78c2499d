//! The card for programs, `card.json`: the same promise, and what it takes to use the weights beside it.
//!
//! ```json
//! { "format": "whit network", "version": 1, "title": "Income",
//!   "training": { "sampler": "poisson", "rate": 0.01, "steps": 1000, "clip_norm": 1.0, "noise_multiplier": 1.2, … },
//!   "guarantee": { "epsilon_upper": 1.0, "epsilon_lower": 0.99, "delta": 1e-6, "relation": "add_remove", "unit": "example", "event": "7a0c…" },
//!   "inputs": { "format": "csv", "columns": ["age"], "categories": {}, "shape": [1], "scale": 1.0, "mean": [40.0], "std": [15.0] },
//!   "label": "income", "classes": ["<=50K", ">50K"], "model": { "kind": "logistic" } }
//! ```
//! Nothing in it is more than the plan and the public part of its files say.

use serde::{Deserialize, Serialize};
use whit_core::Neighbours;

use super::{Card, Training};
use crate::data::{Classes, Inputs};
use crate::error::{Error, Result};
use crate::features::Features;
use crate::model::Model;
use crate::plan::{AdaptiveSummary, CyclicSummary};

/// What such files say they are.
const FORMAT: &str = "whit network";
/// Raised when a reader of this one could misread the next.
const VERSION: u32 = 1;

/// What stands in the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardDocument {
    format: String,
    version: u32,
    /// The name of the model.
    pub title: String,
    /// What was promised.
    pub guarantee: Promised,
    /// Whose budget was charged.
    pub charged_to: String,
    /// The receipt of the charge, if there was one.
    pub receipt: Option<String>,
    /// How it was trained. Absent in files of older versions.
    #[serde(default)]
    pub training: Option<Trained>,
    /// The steps that the parameters hold.
    pub steps_kept: u64,
    /// What was measured on public data.
    pub results: Vec<(String, f64)>,
    /// What the model takes.
    pub inputs: Inputs,
    /// What was learnt: a column, or a file.
    pub label: Option<String>,
    /// By number or by name; absent where a number is learnt.
    pub classes: Option<Classes>,
    /// The fixed map that examples go through first.
    pub features: Option<Features>,
    /// What the plan says about the network, whose weights are in `model.safetensors`.
    pub model: Model,
    /// The fingerprint of the plan.
    pub plan: String,
}

/// What was promised when it was trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Promised {
    /// Not more than this.
    pub epsilon_upper: f64,
    /// Not less than this, for some pair of data sets.
    pub epsilon_lower: f64,
    /// The slack.
    pub delta: f64,
    /// Between which data sets.
    pub relation: Neighbours,
    /// What they differ in one of.
    pub unit: String,
    /// The fingerprint of what was done to the data.
    pub event: String,
}

/// How it was trained, as on the card for people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trained {
    /// How batches were drawn.
    pub sampler: String,
    /// The share of examples that a step sees, on average.
    pub rate: f64,
    /// The steps that were paid for.
    pub steps: u64,
    /// The public number that sums were divided by.
    pub batch_expected: f64,
    /// The largest norm of one example's gradient; of the first step, if it moves.
    pub clip_norm: f64,
    /// The noise's standard deviation over the clip norm.
    pub noise_multiplier: f64,
    /// How the clip norm moves, if it does.
    pub adaptive: Option<AdaptiveSummary>,
    /// How turns are taken and noise is correlated, if it is.
    pub cyclic: Option<CyclicSummary>,
    /// The kind of clipping, where it is not that of the whole gradient to one norm.
    pub clipping: Option<String>,
    /// The optimizer, in words.
    pub optimizer: String,
}

impl Trained {
    fn of(training: &Training) -> Self {
        Self {
            sampler: training.sampler.into(),
            rate: training.rate,
            steps: training.steps,
            batch_expected: training.batch_expected,
            clip_norm: training.clip_norm,
            noise_multiplier: training.noise_multiplier,
            adaptive: training.adaptive,
            cyclic: training.cyclic,
            clipping: training.clipping.map(str::to_owned),
            optimizer: training.optimizer.into(),
        }
    }
}

impl Card<'_> {
    /// The card for programs.
    pub fn json(&self) -> String {
        let guarantee = &self.guarantee;
        let results = self.results.iter();
        let document = CardDocument {
            format: FORMAT.into(),
            version: VERSION,
            title: self.title.into(),
            guarantee: Promised {
                epsilon_upper: guarantee.epsilon_upper,
                epsilon_lower: guarantee.epsilon_lower,
                delta: guarantee.delta,
                relation: guarantee.event.neighbours(),
                unit: guarantee.unit.into(),
                event: guarantee.fingerprint(),
            },
            charged_to: self.payer.to_string(),
            receipt: self.receipt.map(str::to_owned),
            training: Some(Trained::of(&self.training)),
            steps_kept: self.training.steps_kept,
            // JSON has no word for a loss that is no number.
            results: results
                .filter(|(_, value)| value.is_finite())
                .map(|(name, value)| ((*name).to_owned(), *value))
                .collect(),
            inputs: self.inputs.clone(),
            label: self.data.label_column().map(str::to_owned),
            classes: self.data.classes.clone(),
            features: self.features.cloned(),
            model: self.model.clone(),
            plan: self.plan.into(),
        };
        serde_json::to_string_pretty(&document).expect("plain data") + "\n"
    }
}

impl CardDocument {
    /// Reads a card. Refused if it is none, or of another version.
    pub fn from_json(text: &str) -> Result<Self> {
        let other = |given: String| Error::Word {
            field: "card.json",
            given,
            passes: "the card.json that whit train wrote, of version 1",
        };
        let read: Self = serde_json::from_str(text).map_err(|error| other(error.to_string()))?;
        match read.format == FORMAT && read.version == VERSION {
            true => Ok(read),
            false => Err(other(format!(
                "{} of version {}",
                read.format, read.version
            ))),
        }
    }
}
