//! # Using a model
//! A [`Predictor`] is a model as `whit train` left it in a folder: a network by its `card.json` and `model.safetensors`, a classical model by its `model.json` and
//! `inputs.json`. It reads examples by the declaration that the model was trained by, and says what it makes of them.
//!
//! A model is a release, and to apply it costs nothing. What it says of an example is about that example: whoever publishes predictions about private rows publishes
//! something about these rows, and no guarantee of the model covers it.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::card::CardDocument;
use crate::checkpoint::Run;
use crate::classical::{AnyModel, Document, Prediction};
use crate::data::{
    Answer, Classes, Coding, DataError, Dataset, Declaration, Format, Inputs, PerChannel, Wanted,
    load_public, picture_names,
};
use crate::error::{Error, Result};
use crate::evaluate::largest;
use crate::features::Features;
use crate::loss::Loss;
use crate::model::tensors;
use crate::network::Network;
use crate::safetensors::Weights;

/// Examples that are predicted at once, so that memory does not grow with the data.
const AT_ONCE: usize = 512;

/// What a classical model takes, beside its `model.json`: `inputs.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Taken {
    /// What the model takes.
    pub inputs: Inputs,
    /// What was learnt: a column, or a file.
    pub label: Option<String>,
    /// By number or by name; absent where no class is learnt.
    pub classes: Option<Classes>,
}

/// The notes of weights by which they are known to belong to a card.
const PLAN: &str = "plan";
const COLUMNS: &str = "columns";

/// What the notes of weights say about the run that they are of: its [name](crate::checkpoint::Run::name), which stands on its card, and what it takes.
pub fn run_notes(run: &Run, inputs: &Inputs) -> [(String, String); 2] {
    [
        (PLAN.to_owned(), run.name()),
        (COLUMNS.to_owned(), columns(inputs)),
    ]
}

fn columns(inputs: &Inputs) -> String {
    serde_json::to_string(&inputs.feature_names()).expect("plain data")
}

/// A model, and what it takes.
pub struct Predictor {
    taken: Taken,
    kind: Kind,
}

enum Kind {
    Network {
        network: Box<Network>,
        parameters: Vec<f32>,
        features: Option<Features>,
    },
    Classical(Box<Document>),
}

/// Examples of a file, to be predicted.
pub struct Examples {
    /// Their features, and labels if there are any.
    pub rows: Dataset,
    /// Were labels there, of a model that learns them?
    pub labelled: bool,
    /// Of pictures, the name of each one's file: within the folder that was given, or its own.
    pub names: Option<Vec<String>>,
}

/// What a model says of one example.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Said {
    /// Its class; and how likely each is, where the model says so.
    Class(u32, Option<Vec<f64>>),
    /// Its number.
    Number(f64),
    /// Its place along components.
    Place(Vec<f64>),
    /// Nothing: what becomes of the example before the model sees it is not finite.
    Nothing,
}

impl Predictor {
    /// A network, by its `card.json` and the bytes of its `model.safetensors`. Weights whose [notes](run_notes) name another run are refused; weights without such notes, which
    /// another program may have written, are the caller's to keep beside their card.
    pub fn network(card: &str, weights: &[u8]) -> Result<Self> {
        let card = CardDocument::from_json(card)?;
        let other = |given: String| Error::Word {
            field: "model.safetensors",
            given,
            passes: "the file that was written together with card.json",
        };
        let weights = Weights::read(weights).map_err(|error| other(error.to_string()))?;
        let (outputs, loss) = match &card.classes {
            Some(classes) => (classes.count() as usize, Loss::CrossEntropy),
            None => (1, Loss::Squared),
        };
        let shape = match &card.features {
            Some(features) => features.shape(&card.inputs.shape)?,
            None => card.inputs.shape.clone(),
        };
        let architecture = card.model.architecture(&shape, outputs)?;
        if tensors(architecture.layers()) != weights.tensors {
            return Err(other("of another network than card.json describes".into()));
        }
        // Networks of the same layers may take other columns, or have learnt other things.
        let columns = columns(&card.inputs);
        let noted = |name: &str, own: &str| weights.notes.get(name).is_none_or(|note| note == own);
        if !noted(PLAN, &card.plan) || !noted(COLUMNS, &columns) {
            return Err(other("of another run than card.json".into()));
        }
        let network = Box::new(Network::from_specs(architecture.layers(), loss)?);
        let taken = Taken {
            inputs: card.inputs,
            label: card.label,
            classes: card.classes,
        };
        let kind = Kind::Network {
            network,
            parameters: weights.parameters,
            features: card.features,
        };
        Ok(Self { taken, kind })
    }

    /// A classical model, by its `model.json` and `inputs.json`.
    pub fn classical(model: &str, taken: &str) -> Result<Self> {
        let other = |given: String| Error::Word {
            field: "inputs.json",
            given,
            passes: "the file that whit train wrote beside model.json",
        };
        let taken: Taken = serde_json::from_str(taken).map_err(|error| other(error.to_string()))?;
        let document = Document::from_json(model)?;
        if !document.takes(&taken.inputs, taken.classes.as_ref()) {
            return Err(other("of another model than model.json".into()));
        }
        let kind = Kind::Classical(Box::new(document));
        Ok(Self { taken, kind })
    }

    /// The classes that were learnt. Clusters and components are none of those that the data have.
    fn learnt(&self) -> Option<&Classes> {
        let classes = self.taken.classes.as_ref();
        classes.filter(|_| self.learns_label())
    }

    /// The name of a class: as declared, or its number.
    pub fn class_name(&self, class: u32) -> String {
        let names = self.learnt().and_then(Classes::names);
        let name = names.and_then(|names| names.get(class as usize));
        name.cloned().unwrap_or_else(|| class.to_string())
    }

    /// How many classes there are, if classes are told apart by what was learnt.
    pub fn classes(&self) -> Option<u32> {
        self.learnt().map(Classes::count)
    }

    /// The examples of a file, which is of the form of the data that the model was trained on, and their labels, if they are there: those of the label's column in a table,
    /// those of a file of labels elsewhere. A row that does not fit is told by its place, so the file must be public, or the caller's own.
    pub fn load(&self, data: &Path, labels: Option<&Path>) -> Result<Examples> {
        let mut declared = self.declaration(data);
        let format = declared.format()?;
        let is_table = matches!(format, Format::Csv | Format::Parquet);
        let has_classes = format == Format::Images && in_classes(&declared, data);
        let nowhere = Path::new("");
        match (labels, is_table) {
            (Some(_), true) => {
                return Err(Error::Field {
                    of: "a table, in which the label is a column,",
                    field: "labels",
                    missing: false,
                    passes: "",
                });
            }
            (Some(_), false) if !self.learns_label() => {
                return Err(Error::Field {
                    of: "a model that learns no label",
                    field: "labels",
                    missing: false,
                    passes: "",
                });
            }
            (Some(labels), false) => declared.label = labels.to_str().map(str::to_owned),
            // Pictures have labels if they lie in folders of all classes, and are found there whether or not labels are learnt.
            (None, false) if has_classes => {}
            (None, true) if self.learns_label() => {}
            (None, _) => declared.wanted = Wanted::Features,
        }
        let names = picture_names(&declared, data)?;
        let rows = match load_public(&declared, nowhere) {
            Err(DataError::Column {
                column,
                twice: false,
                ..
            }) if is_table && Some(&column) == declared.label.as_ref() => {
                declared.wanted = Wanted::Features;
                // Without labels there are no classes to compare them with.
                declared.classes = None;
                load_public(&declared, nowhere)
            }
            loaded => loaded,
        }?;
        if names != picture_names(&declared, data)? {
            return Err(DataError::Changed { path: data.into() }.into());
        }
        Ok(Examples {
            rows,
            labelled: declared.wanted == Wanted::Labelled && self.learns_label(),
            names,
        })
    }

    fn learns_label(&self) -> bool {
        match &self.kind {
            Kind::Network { .. } => true,
            Kind::Classical(document) => learns_label(document.model()),
        }
    }

    fn declaration(&self, data: &Path) -> Declaration {
        let Inputs {
            format,
            columns,
            categories,
            shape,
            scale,
            mean,
            std,
        } = self.taken.inputs.clone();
        let mut declared = Declaration::new(data);
        let is_table = |format| matches!(format, Format::Csv | Format::Parquet);
        // A table is a table, and an array of numbers one of the same shape.
        let told = declared
            .format()
            .ok()
            .filter(|told| is_table(*told) == is_table(format));
        declared.format = Some(told.unwrap_or(format));
        if declared.format == Some(Format::Sheets) {
            // One sheet, by its name in its folder.
            let name = data.file_name().map(|name| name.to_string_lossy().into());
            declared.path = data.parent().unwrap_or(Path::new("")).into();
            declared.sheets = Some(name.into_iter().collect());
        }
        declared.label = self.taken.label.clone().filter(|_| self.learns_label());
        declared.classes = match declared.format {
            // They are the folders that pictures lie in, whatever is learnt.
            Some(Format::Images) => self.taken.classes.clone(),
            _ => self.learnt().cloned(),
        };
        declared.columns = Some(columns).filter(|columns| !columns.is_empty());
        declared.categories = Some(categories).filter(|categories| !categories.is_empty());
        declared.shape = Some(shape);
        declared.scale = Some(scale);
        declared.mean = Some(PerChannel::Each(mean));
        declared.std = Some(PerChannel::Each(std));
        if let Kind::Classical(document) = &self.kind
            && matches!(
                document.model(),
                AnyModel::Forest(_) | AnyModel::BoostedStumps(_) | AnyModel::MinimaPerturbation(_)
            )
        {
            declared.coding = Coding::Place;
        }
        declared
    }

    /// What the model says of each row, in order.
    pub fn predict(&self, data: Dataset, threads: std::num::NonZeroUsize) -> Result<Vec<Said>> {
        let Kind::Network {
            network,
            parameters,
            features,
        } = &self.kind
        else {
            return Ok(self.classical_says(&data));
        };
        let data = match features {
            Some(features) => features.of(data, threads)?,
            None => data,
        };
        let mut said = Vec::with_capacity(data.rows());
        let mut examples = Vec::new();
        for start in (0..data.rows()).step_by(AT_ONCE) {
            let rows = start..data.rows().min(start + AT_ONCE);
            examples.clear();
            for example in rows.clone().filter_map(|row| data.example(row)) {
                examples.extend_from_slice(example.features);
            }
            let outputs = network.predict(parameters, &examples)?;
            let mut outputs = outputs.chunks_exact(network.output_len());
            said.extend(rows.map(|row| {
                let output = data.example(row).and_then(|_| outputs.next());
                output.map_or(Said::Nothing, |output| of_output(network.loss(), output))
            }));
        }
        Ok(said)
    }

    fn classical_says(&self, data: &Dataset) -> Vec<Said> {
        let Kind::Classical(document) = &self.kind else {
            return Vec::new();
        };
        let each = |row| match data.example(row) {
            None => Said::Nothing,
            Some(example) => match document.predict(example.features) {
                Prediction::Class(class) => Said::Class(class, None),
                Prediction::Number(number) => Said::Number(number),
                Prediction::Place(place) => Said::Place(place),
            },
        };
        (0..data.rows()).map(each).collect()
    }
}

fn learns_label(model: &AnyModel) -> bool {
    !matches!(model, AnyModel::KMeans(_) | AnyModel::Pca(_))
}

/// Has the folder one for each of the declared classes?
fn in_classes(declared: &Declaration, folder: &Path) -> bool {
    let names = declared.classes.as_ref().and_then(Classes::names);
    names.is_some_and(|names| names.iter().all(|name| folder.join(name).is_dir()))
}

/// The share of rows whose class was said, of rows that have one; `None` where no class is learnt or there are no rows. Whatever else is said of a row, and nothing, is wrong.
pub fn accuracy(said: &[Said], answers: &[Option<Answer>]) -> Option<f64> {
    let (mut right, mut seen) = (0_u64, 0_u64);
    for (said, answer) in said.iter().zip(answers) {
        if let Some(Answer::Class(true_class)) = answer {
            right += u64::from(matches!(said, Said::Class(class, _) if class == true_class));
            seen += 1;
        }
    }
    (seen > 0).then(|| right as f64 / seen as f64)
}

/// A class with probabilities, or a number.
fn of_output(loss: Loss, output: &[f32]) -> Said {
    if loss != Loss::CrossEntropy {
        return Said::Number(output.first().copied().map_or(f64::NAN, f64::from));
    }
    let Some(class) = largest(output) else {
        return Said::Nothing;
    };
    let most = f64::from(output[class as usize]);
    let odds: Vec<f64> = output
        .iter()
        .map(|x| (f64::from(*x) - most).exp())
        .collect();
    let sum: f64 = odds.iter().sum();
    let shares = odds.into_iter().map(|odds| odds / sum).collect();
    Said::Class(class, Some(shares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_become_shares_and_the_largest_is_said() {
        let said = of_output(Loss::CrossEntropy, &[0.0, 3.0_f32.ln(), 0.0]);
        let Said::Class(class, Some(shares)) = said else {
            panic!("{said:?}");
        };
        assert_eq!(class, 1);
        for (share, expected) in shares.iter().zip([0.2, 0.6, 0.2]) {
            assert!((share - expected).abs() < 1e-7);
        }
        // Large outputs have shares, too, and those of a model that diverged have none.
        let large = of_output(Loss::CrossEntropy, &[1e30, -1e30]);
        assert_eq!(large, Said::Class(0, Some(vec![1.0, 0.0])));
        let lost = of_output(Loss::CrossEntropy, &[f32::NAN, 0.0]);
        assert_eq!(lost, Said::Nothing);
        assert_eq!(of_output(Loss::Squared, &[2.5]), Said::Number(2.5));
    }

    #[test]
    fn accuracy_counts_rows_that_have_a_class_and_nothing_is_wrong() {
        let said = [
            Said::Class(1, None),
            Said::Class(0, None),
            Said::Nothing,
            Said::Nothing,
            Said::Class(1, None),
        ];
        let class = |class| Some(Answer::Class(class));
        let answers = [class(1), class(1), class(1), class(0), None];
        assert_eq!(accuracy(&said, &answers), Some(0.25));
        assert_eq!(
            accuracy(&[Said::Nothing, Said::Nothing], &answers[2..4]),
            Some(0.0)
        );
        assert_eq!(accuracy(&[], &[]), None);
    }

    /// A classical model as it is left in a folder: its two files.
    fn fitted(declared: &str, columns: [&str; 2], width: usize) -> [String; 2] {
        use crate::classical::{Classical, FitRecipe, Promise};
        use crate::payment::{Payment, Priced, Uncharged};
        use whit_core::{Neighbours, Secret};
        let text = format!(
            "[data]\npath = 'x.csv'\nlabel = 'sex'\ncolumns = {columns:?}\n{declared}\n\
             [model]\nkind = 'naive_bayes'\n[plan]\nepsilon = 1.0\ndelta = 0.0"
        );
        let recipe: FitRecipe = toml::from_str(&text).expect("a plan");
        let plan = recipe.plan(Some(width)).expect("a price");
        let data = Dataset::with_classes(vec![width], vec![0.0; width], vec![1], 2);
        let data = Secret::new(data.expect("fits"));
        let payment = Payment::uncharged(&plan, Uncharged);
        let fit = plan.on(&data).expect("of the plan's shape");
        let model = fit.release(payment, &mut whit_testkit::Seeded::new(830));
        let promise = Promise {
            epsilon: 1.0,
            delta: 0.0,
            relation: Neighbours::AddRemove,
            unit: "example".into(),
            event: format!("{:?}", plan.event().fingerprint()),
        };
        let document = Document::new(&recipe, promise, model.expect("entropy").into_value());
        let taken = Taken {
            inputs: Inputs {
                format: Format::Csv,
                columns: columns.map(str::to_owned).to_vec(),
                categories: recipe.data.categories.clone().unwrap_or_default(),
                shape: vec![width],
                scale: 1.0,
                mean: vec![0.0; width],
                std: vec![1.0; width],
            },
            label: recipe.data.label.clone(),
            classes: recipe.data.classes.clone(),
        };
        [
            document.to_json(),
            serde_json::to_string(&taken).expect("plain data"),
        ]
    }

    /// Columns in another order, categories in another order, classes in another order: a model would say something of each, and it would be wrong.
    #[test]
    fn files_of_two_fits_are_no_model() {
        let numbers = "[bounds]\nage = [0, 1]\nhours = [0, 1]";
        let texts =
            |names: &str| format!("[data.categories]\nhours = {names}\n[bounds]\nage = [0, 1]");
        let named = |names: &str, rest: &str| format!("classes = {names}\n{rest}");
        let classes = "['no', 'yes']";
        let fits = [
            fitted(&named(classes, numbers), ["age", "hours"], 2),
            fitted(&named(classes, numbers), ["hours", "age"], 2),
            fitted(&named("['yes', 'no']", numbers), ["age", "hours"], 2),
            fitted(
                &named(classes, &texts("['few', 'many']")),
                ["age", "hours"],
                3,
            ),
            fitted(
                &named(classes, &texts("['many', 'few']")),
                ["age", "hours"],
                3,
            ),
        ];
        for (i, [model, _]) in fits.iter().enumerate() {
            for (j, [_, taken]) in fits.iter().enumerate() {
                let read = Predictor::classical(model, taken);
                let code = read.err().map(|error| whit_core::Fault::code(&error));
                assert_eq!(code, (i != j).then_some("plan_word"), "{i} {j}");
            }
        }
        // Without columns the width alone tells.
        let [model, taken] = &fits[0];
        let wider = taken.replace("\"shape\":[2]", "\"shape\":[3]");
        assert!(wider != *taken && Predictor::classical(model, &wider).is_err());
    }
}
