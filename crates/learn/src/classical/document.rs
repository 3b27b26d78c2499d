//! A fitted model as a file: JSON that says what it is, what was promised about it, what its features are, and its numbers.
//!
//! ```json
//! { "format": "whit classical model", "version": 1,
//!   "promise": { "epsilon": 1.0, "delta": 1e-6, "relation": "add_remove", "unit": "example", "event": "7a0c…" },
//!   "columns": ["age"], "categories": {}, "classes": ["no", "yes"],
//!   "model": { "kind": "naive_bayes", … } }
//! ```

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use whit_core::Neighbours;

use super::{AnyModel, FitRecipe, Prediction};
use crate::data::Classes;
use crate::error::{Error, Result};

/// What such files say they are.
const FORMAT: &str = "whit classical model";
/// Raised when a reader of this one could misread the next.
const VERSION: u32 = 1;

/// A model, and what is public about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    format: String,
    version: u32,
    promise: Promise,
    /// The features, in order, as columns of a table; empty where there are none.
    columns: Vec<String>,
    /// Columns of text, with all that they may hold.
    categories: BTreeMap<String, Vec<String>>,
    /// By number or by name; absent where no class is learnt.
    classes: Option<Classes>,
    model: AnyModel,
}

/// What was promised when it was fitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Promise {
    /// Not more than this.
    pub epsilon: f64,
    /// The slack.
    pub delta: f64,
    /// Between which data sets.
    pub relation: Neighbours,
    /// What they differ in one of.
    pub unit: String,
    /// The fingerprint of what was done to the data.
    pub event: String,
}

impl Document {
    /// Of a model that was fitted by this recipe.
    pub fn new(recipe: &FitRecipe, promise: Promise, model: AnyModel) -> Self {
        let data = &recipe.data;
        Self {
            format: FORMAT.into(),
            version: VERSION,
            promise,
            columns: data.columns.clone().unwrap_or_default(),
            categories: data.categories.clone().unwrap_or_default(),
            classes: data.classes.clone(),
            model,
        }
    }

    /// As a file holds it.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain data") + "\n"
    }

    /// The model of a file. Refused if it is none, or of a later version.
    pub fn from_json(text: &str) -> Result<Self> {
        let passes = "the model.json of a classical model, of version 1";
        let other = |given: String| Error::Word {
            field: "model",
            given,
            passes,
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

    /// What was promised when it was fitted.
    pub fn promise(&self) -> &Promise {
        &self.promise
    }

    /// The model.
    pub fn model(&self) -> &AnyModel {
        &self.model
    }

    /// What the model says of an example with these features, which are those of a data set that was read by the same declaration.
    pub fn predict(&self, features: &[f32]) -> Prediction {
        self.model.predict(features)
    }

    /// The name of a class, if classes have names.
    pub fn class_name(&self, class: u32) -> Option<&str> {
        let names = self.classes.as_ref()?.names()?;
        names.get(class as usize).map(String::as_str)
    }
}
