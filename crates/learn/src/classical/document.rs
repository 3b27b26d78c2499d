//! A fitted model as a file: JSON that says what it is, what was promised about it, what its features are, and its numbers.
//!
//! ```json
//! { "format": "whit classical model", "version": 2,
//!   "promise": { "epsilon": 1.0, "delta": 1e-6, "relation": "add_remove", "unit": "example", "event": "7a0c…" },
//!   "columns": ["age"], "categories": {}, "classes": ["no", "yes"],
//!   "model": { "kind": "naive_bayes", … } }
//! ```

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use whit_core::{Delta, Epsilon, Neighbours};

use super::{AnyModel, FitRecipe, Prediction};
use crate::data::{Classes, Inputs};
use crate::error::{Error, Result};

/// What such files say they are.
const FORMAT: &str = "whit classical model";
/// Raised when a reader of this one could misread the next: since 2, numbers of logistic regression are places from -1/2 to 1/2.
const VERSION: u32 = 2;

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

    /// The model of a file. Refused if it is none, of another version, or has parts that do not fit each other.
    pub fn from_json(text: &str) -> Result<Self> {
        let passes = "the model.json of a classical model, of version 2";
        let other = |given: String| Error::Word {
            field: "model",
            given,
            passes,
        };
        let read: Self = serde_json::from_str(text).map_err(|error| other(error.to_string()))?;
        if read.format != FORMAT || read.version != VERSION {
            let given = format!("{} of version {}", read.format, read.version);
            return Err(other(given));
        }
        match read.is_whole() {
            true => Ok(read),
            false => Err(other("a model whose parts do not fit each other".into())),
        }
    }

    /// Is it what could have been written?
    fn is_whole(&self) -> bool {
        let Promise { epsilon, delta, .. } = self.promise;
        let promise = Epsilon::new(epsilon).is_ok() && Delta::new(delta).is_ok();
        let declared = self.classes.as_ref().map(Classes::count);
        let classes = self
            .model
            .classes()
            .is_none_or(|known| declared == Some(known));
        let columns = self.model.has_columns(&self.columns, &self.categories);
        promise && classes && columns && self.model.is_whole()
    }

    /// Was it fitted to examples like these? Beside columns, categories and classes, which both files have, examples must be as wide as the model.
    pub(crate) fn takes(&self, inputs: &Inputs, classes: Option<&Classes>) -> bool {
        let width: Option<usize> = inputs
            .shape
            .iter()
            .try_fold(1, |all: usize, side| all.checked_mul(*side));
        self.columns == inputs.columns
            && self.categories == inputs.categories
            && self.classes.as_ref() == classes
            && width == Some(self.model.features())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classical::doubt::{fitted, nasty, seed};
    use crate::data::Dataset;
    use serde_json::{Value, json};
    use whit_core::{Fault, Secret};
    use whit_testkit::SeededBits;

    const KINDS: [&str; 7] = [
        LINE,
        "naive_bayes",
        "k_means\"\nclusters = 3\nrounds = 2\n#",
        "pca\"\ncomponents = 1\n#",
        "forest\"\ntrees = 2\ndepth = 2\nbins = 5\n#",
        "boosted_stumps\"\nepochs = 2\nbins = 5\n#",
        "minima_perturbation",
    ];

    const LINE: &str = "linear_regression";

    /// A model of some numbers of three classes, as a file holds it; of numbers for a line.
    fn document(kind: &str, bits: &mut SeededBits) -> Document {
        bounded(kind, bits, ["[-1, 1]", "[0, 2]"])
    }

    /// With these bounds of features and of the label.
    fn bounded(kind: &str, bits: &mut SeededBits, [features, label]: [&str; 2]) -> Document {
        let label = format!("label = {label}");
        let [classes, bounds] = match kind {
            LINE => ["", &label],
            _ => ["classes = 3", ""],
        };
        let text = format!(
            "[data]\npath = 'x.npy'\nlabel = 'y.npy'\nshape = [2]\n{classes}\n[bounds]\nfeatures = {features}\n{bounds}\n\
             [model]\nkind = \"{kind}\"\n[plan]\nepsilon = 1.0\ndelta = 1e-6"
        );
        let recipe: FitRecipe = toml::from_str(&text).expect("a plan");
        let plan = recipe.plan(None).expect("a price");
        let features = (0..200).flat_map(|_| nasty(bits, 2)).collect();
        let labels = (0..200).map(|row| row % 3);
        let data = match kind {
            LINE => Dataset::with_numbers(vec![2], features, labels.map(|l| l as f32).collect()),
            _ => Dataset::with_classes(vec![2], features, labels.collect(), 3),
        };
        let model = fitted(&plan, &Secret::new(data.expect("fits")), 820);
        let promise = Promise {
            epsilon: 1.0,
            delta: 1e-6,
            relation: Neighbours::AddRemove,
            unit: "example".into(),
            event: String::new(),
        };
        Document::new(&recipe, promise, model)
    }

    #[test]
    fn what_was_written_is_read_and_says_the_same() {
        let mut bits = SeededBits::new(seed(821));
        for kind in KINDS {
            let written = document(kind, &mut bits);
            let read = Document::from_json(&written.to_json()).expect("a model");
            assert_eq!(read.promise, written.promise);
            for _ in 0..50 {
                let example = nasty(&mut bits, 2);
                match (read.predict(&example), written.predict(&example)) {
                    // Numbers of JSON are read to within a unit in the last place.
                    (Prediction::Place(one), Prediction::Place(other)) => {
                        assert!((one[0] - other[0]).abs() <= 1e-12 * other[0].abs());
                    }
                    (Prediction::Number(one), Prediction::Number(other)) => {
                        assert!((one - other).abs() <= 1e-12 * other.abs());
                    }
                    (one, other) => assert_eq!(one, other),
                }
            }
            // What is missing is nothing to stop at.
            let _ = read.predict(&[]);
        }
    }

    /// Squares of very large numbers are no numbers, and JSON has no word for that: a model that was paid for could not be read.
    #[test]
    fn models_at_the_ends_of_all_bounds_are_read() {
        let mut bits = SeededBits::new(seed(825));
        let (wide, narrow) = ("[-1e100, 1e100]", "[0, 2e-100]");
        for kind in KINDS {
            for bounds in [
                [wide, wide],
                [narrow, narrow],
                [narrow, wide],
                [wide, narrow],
            ] {
                let text = bounded(kind, &mut bits, bounds).to_json();
                let read = Document::from_json(&text);
                assert!(read.is_ok(), "{kind} in {bounds:?}: {read:?}");
            }
        }
    }

    /// Whatever is taken out of a model or put in its place, it is refused, or says something of any example.
    #[test]
    fn models_whose_parts_do_not_fit_are_refused() {
        let mut bits = SeededBits::new(seed(822));
        let mut refusals = 0;
        for kind in KINDS {
            let whole: Value =
                serde_json::from_str(&document(kind, &mut bits).to_json()).expect("JSON");
            let mut places = Vec::new();
            visit(&whole["model"], String::from("/model"), &mut places);
            for place in places {
                for spoil in [json!(0), json!(70_000), json!([]), Value::Null] {
                    let mut other = whole.clone();
                    let part = other.pointer_mut(&place).expect("found before");
                    *part = match spoil.is_null() {
                        true => shorter(part),
                        false => spoil,
                    };
                    match Document::from_json(&other.to_string()) {
                        Ok(read) => {
                            let _ = read.predict(&nasty(&mut bits, 2));
                            let _ = read.predict(&[]);
                        }
                        Err(error) => {
                            assert_eq!(error.code(), "plan_word");
                            refusals += 1;
                        }
                    }
                }
            }
        }
        assert!(refusals > 100, "{refusals}");
        let mut later: Value =
            serde_json::from_str(&document("naive_bayes", &mut bits).to_json()).expect("JSON");
        later["version"] = json!(VERSION + 1);
        let refused = Document::from_json(&later.to_string()).expect_err("of a later version");
        assert!(
            refused
                .to_string()
                .contains(&format!("version {}", VERSION + 1)),
            "{refused}"
        );
    }

    /// Some to many places of a document are changed at once, or bytes of its text: what is read says something that its classes allow for, and all else is refused.
    #[test]
    fn whatever_a_file_says_it_is_refused_or_says_something() {
        let mut bits = SeededBits::new(seed(823));
        let (mut refused, mut read) = (0, 0);
        for kind in KINDS {
            let whole: Value =
                serde_json::from_str(&document(kind, &mut bits).to_json()).expect("JSON");
            let mut places = Vec::new();
            visit(&whole, String::new(), &mut places);
            for _ in 0..1500 {
                let mut other = whole.clone();
                for _ in 0..=bits.below(3) {
                    let place = &places[bits.below(places.len() as u64) as usize];
                    if let Some(part) = other.pointer_mut(place) {
                        spoil(part, &mut bits);
                    }
                }
                let mut text = other.to_string().into_bytes();
                if bits.below(3) == 0 {
                    let at = bits.below(text.len() as u64) as usize;
                    text[at] = b"0123456789-eE.,[]{}\"n"[bits.below(20) as usize];
                }
                let text = String::from_utf8(text).expect("ASCII for ASCII");
                let Ok(document) = Document::from_json(&text) else {
                    refused += 1;
                    continue;
                };
                read += 1;
                for features in [vec![], nasty(&mut bits, 2), vec![f32::NAN, f32::INFINITY]] {
                    let said = document.predict(&features);
                    if let (Prediction::Class(class), Some(classes)) =
                        (said, document.model.classes())
                    {
                        assert!(class < classes);
                    }
                }
            }
        }
        assert!(refused > 4000 && read > 300, "{refused} and {read}");
    }

    /// Puts something else in a value's place.
    fn spoil(value: &mut Value, bits: &mut SeededBits) {
        let numbers = [
            json!(-1),
            json!(0),
            json!(1e308),
            json!(-1e308),
            json!(5e-324),
            json!(u64::MAX),
            json!(4096),
            json!(0.5),
        ];
        match (bits.below(4), &mut *value) {
            (0, Value::Array(list)) => {
                let _ = list.pop();
            }
            (1, Value::Array(list)) => list.extend(list.first().cloned()),
            (2, Value::Array(list)) => {
                let at = bits.below(list.len().max(1) as u64) as usize;
                list.rotate_left(at);
            }
            (0, Value::Object(map)) => {
                let first = map.keys().next().cloned();
                first.map(|name| map.remove(&name));
            }
            (1, Value::Object(map)) => {
                map.insert("more".into(), json!(1));
            }
            (3, _) => {
                *value = [json!(null), json!("x"), json!([]), json!({}), json!(true)]
                    [bits.below(5) as usize]
                    .clone()
            }
            _ => *value = numbers[bits.below(8) as usize].clone(),
        }
    }

    /// What was read without a word before this: intervals without a width, steps for fewer classes, numbers that no fit gives.
    #[test]
    fn models_that_no_fit_gives_are_refused() {
        let mut bits = SeededBits::new(seed(824));
        for (kind, place, value) in [
            (
                KINDS[4],
                "/model/domains/0/kind/numbers/half_width",
                json!(0.0),
            ),
            (
                KINDS[5],
                "/model/domains/0/kind/numbers/half_width",
                json!(-1.0),
            ),
            (
                KINDS[6],
                "/model/domains/0/kind/numbers/half_width",
                json!(1e-310),
            ),
            (KINDS[6], "/model/norm", json!(0.0)),
            (KINDS[5], "/model/functions/0/0", json!([0.0])),
            (KINDS[5], "/model/base", json!([0.0])),
            (KINDS[4], "/model/trees/0/shares/0/0", json!(-1e300)),
            (KINDS[4], "/model/trees", json!([])),
            (KINDS[1], "/model/classes/0/features/0/variance", json!(0.0)),
            (KINDS[1], "/model/classes/0/features", json!([])),
            (KINDS[2], "/model/centres/0", json!([])),
            (KINDS[2], "/model/centres", json!([])),
            (KINDS[3], "/model/components/0", json!([1.0])),
            (KINDS[3], "/model/eigenvalues", json!([])),
            (LINE, "/model/slopes", json!([])),
            (KINDS[1], "/promise/epsilon", json!(-1.0)),
            (KINDS[1], "/promise/delta", json!(1.5)),
            (KINDS[1], "/classes", json!(4)),
            (KINDS[1], "/columns", json!(["one"])),
        ] {
            let text = document(kind, &mut bits).to_json();
            let mut other: Value = serde_json::from_str(&text).expect("JSON");
            *other.pointer_mut(place).expect(place) = value;
            let refused = Document::from_json(&other.to_string()).err();
            let code = refused.map(|error| error.code());
            assert_eq!(code, Some("plan_word"), "{kind} {place}");
        }
    }

    /// All parts of a value, by their pointers.
    fn visit(value: &Value, at: String, places: &mut Vec<String>) {
        match value {
            Value::Array(list) => {
                // The first and the last stand for all.
                for index in [0, list.len().saturating_sub(1)] {
                    if let Some(part) = list.get(index) {
                        visit(part, format!("{at}/{index}"), places);
                    }
                }
            }
            Value::Object(map) => map
                .iter()
                .for_each(|(name, part)| visit(part, format!("{at}/{name}"), places)),
            _ => {}
        }
        places.push(at);
    }

    fn shorter(value: &Value) -> Value {
        let mut value = value.clone();
        if let Some(list) = value.as_array_mut() {
            list.pop();
        }
        value
    }
}
