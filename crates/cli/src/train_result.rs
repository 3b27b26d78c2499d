//! What is left of a training run: weights, card, curves, and what is shown at the end.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde_json::json;
use whit::Failure;
use whit::session::{Charge, Remaining};
use whit_learn::card::{Card, Guarantee, Training};
use whit_learn::checkpoint::{Place, Run};
use whit_learn::curve::History;
use whit_learn::evaluate::Evaluation;
use whit_learn::model::{Architecture, tensors};
use whit_learn::onnx::OnnxError;
use whit_learn::safetensors::Weights;
use whit_learn::{Features, Payer, Plan, Recipe, Summary};

use crate::plot::Picture;
use crate::train::{noted, priced, value};
use crate::train_plot::Drawn;
use crate::{Format, query, sheet, table};

/// What was seen on the way, as numbers.
const CURVE: &str = "curve.csv";

/// What a ledger was charged for a run.
pub(crate) struct Paid {
    pub(crate) dataset: String,
    pub(crate) charge: Charge,
    pub(crate) remaining: Remaining,
    pub(crate) receipt: String,
}

/// Where this program has found a run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// There was none.
    New,
    /// So many steps were begun before.
    After(u64),
    /// All were.
    AtTheEnd,
}

impl Start {
    /// What a person would want to know, if anything.
    fn words(self) -> Option<String> {
        match self {
            Self::New => None,
            Self::After(steps) => Some(format!(
                "went on after {steps} steps that were begun before"
            )),
            Self::AtTheEnd => Some("was at its end before: no step was taken now".into()),
        }
    }
}

/// A run that has ended.
pub(crate) struct Finished<'a> {
    pub(crate) recipe: &'a Recipe,
    pub(crate) plan: &'a Plan,
    pub(crate) architecture: &'a Architecture,
    pub(crate) parameters: Vec<f32>,
    pub(crate) payer: &'a Payer,
    pub(crate) paid: Option<&'a Paid>,
    pub(crate) start: Start,
    pub(crate) steps_kept: u64,
    pub(crate) evaluation: Option<Evaluation>,
    pub(crate) history: History,
}

impl Finished<'_> {
    /// Writes everything, and says what was written.
    pub(crate) fn write(&self, out: &Path) -> Result<Vec<String>, Failure> {
        let Summary {
            epsilon_upper,
            delta,
            relation,
            ..
        } = self.plan.summary();
        let unit = self.unit();
        let guarantee =
            format!("epsilon {epsilon_upper} at delta {delta}, {relation} for one {unit}");
        let model = ModelFiles {
            recipe: self.recipe,
            architecture: self.architecture,
            parameters: &self.parameters,
            guarantee,
            card: self.card(),
        };
        let mut files = model.write(out, &self.recipe.run(self.plan))?;
        // Curves tell what was seen on the way: where no step was taken, nothing was.
        let stays = |name: &str| self.start == Start::AtTheEnd && out.join(name).exists();
        if !stays(CURVE) {
            write_file(&out.join(CURVE), self.history.csv().as_bytes())?;
        }
        files.push(CURVE.to_owned());
        for chart in self.history.charts(self.title()) {
            let word = chart
                .y
                .name
                .split(' ')
                .next()
                .unwrap_or_default()
                .to_owned();
            for ending in ["svg", "png"] {
                let name = format!("{word}.{ending}");
                if !stays(&name) {
                    Drawn(&chart).write(&out.join(&name))?;
                }
                files.push(name);
            }
        }
        Ok(files)
    }

    /// How many steps this program has taken.
    fn steps_now(&self) -> u64 {
        match self.start {
            Start::New => self.plan.steps(),
            Start::After(before) => self.plan.steps() - before,
            Start::AtTheEnd => 0,
        }
    }

    /// Whom the guarantee protects one of.
    fn unit(&self) -> &str {
        self.recipe.data.unit.as_deref().unwrap_or("example")
    }

    fn title(&self) -> &str {
        self.recipe.title.as_deref().unwrap_or("A private model")
    }

    fn card(&self) -> String {
        let summary = self.plan.summary();
        let optimizer = self.recipe.optimizer_words();
        let features = self.recipe.features.as_ref().map(Features::words);
        let mut results = Vec::new();
        if let Some(Evaluation { loss, accuracy }) = self.evaluation {
            results.extend(accuracy.map(|accuracy| ("accuracy on [test]", accuracy)));
            results.push(("loss on [test]", loss));
        }
        let sampler = summary.sampler.replace('_', " ");
        let card = Card {
            title: self.title(),
            guarantee: Guarantee {
                epsilon_upper: summary.epsilon_upper,
                epsilon_lower: summary.epsilon_lower,
                delta: summary.delta,
                unit: self.unit(),
                event: self.plan.event(),
            },
            training: Training {
                sampler: &sampler,
                rate: summary.rate,
                steps: summary.steps,
                steps_kept: self.steps_kept,
                batch_expected: summary.expected_batch,
                clip_norm: summary.clip_norm,
                noise_multiplier: summary.noise_multiplier,
                adaptive: summary.adaptive,
                optimizer: &optimizer,
                clipping: self.recipe.plan.clipping_word(),
            },
            data: &self.recipe.data,
            features: features.as_deref(),
            architecture: self.architecture,
            results: &results,
            search: self.recipe.search(),
            payer: self.payer,
            receipt: self.paid.map(|paid| paid.receipt.as_str()),
            plan: &self.recipe.run(self.plan).name(),
        };
        card.markdown()
    }

    pub(crate) fn show(&self, out: &Path, files: &[String], format: Format) -> String {
        let summary = self.plan.summary();
        match format {
            Format::Json => {
                let mut all = value(&summary);
                all["steps_kept"] = json!(self.steps_kept);
                all["test"] = json!(self.evaluation);
                all["out"] = json!(out.display().to_string());
                all["files"] = json!(files);
                all["resumed"] = json!(self.start != Start::New);
                all["steps_now"] = json!(self.steps_now());
                if let Some(paid) = self.paid {
                    all["charge"] = json!(paid.charge);
                    all["remaining"] = json!(paid.remaining);
                    all["receipt"] = json!(paid.receipt);
                }
                all.to_string()
            }
            Format::Table => {
                let mut lines = priced(&summary);
                lines.extend(noted(self.recipe));
                let mut line = |name: &str, text: String| lines.push((name.to_owned(), text));
                line("steps kept", self.steps_kept.to_string());
                if let Some(words) = self.start.words() {
                    line("run", words);
                }
                if let Some(Evaluation { loss, accuracy }) = self.evaluation {
                    if let Some(accuracy) = accuracy {
                        line("accuracy on [test]", format!("{accuracy:.4}"));
                    }
                    line("loss on [test]", format!("{loss:.4}"));
                }
                line("written to", out.display().to_string());
                line("files", files.join(", "));
                if let Some(paid) = self.paid {
                    lines.extend(charged(&paid.charge, self.start != Start::New));
                    lines.extend(query::left(&paid.remaining, &paid.dataset));
                    lines.push(("receipt".into(), paid.receipt.clone()));
                }
                table::lines(&lines)
            }
        }
    }
}

/// A model and its card.
pub(crate) struct ModelFiles<'a> {
    pub(crate) recipe: &'a Recipe,
    pub(crate) architecture: &'a Architecture,
    pub(crate) parameters: &'a [f32],
    pub(crate) guarantee: String,
    pub(crate) card: String,
}

impl ModelFiles<'_> {
    /// Writes them to the folder of a run, and says what was written.
    pub(crate) fn write(&self, out: &Path, run: &Run) -> Result<Vec<String>, Failure> {
        let notes = BTreeMap::from([("privacy".to_owned(), self.guarantee.clone())]);
        let tensors = tensors(self.architecture.layers());
        let weights = Weights::write(&tensors, self.parameters, &notes).ok_or_else(|| {
            Failure::bug(
                "weights",
                "the model's tensors do not hold its parameters",
                "please report this with the plan",
            )
        })?;
        // Somebody may have put a card there meanwhile. The run's own is written first: beside it all others are its own, too.
        Place::is_own(out, run)?;
        let mut files = Vec::new();
        let mut keep = |name: &str, bytes: &[u8]| {
            write_file(&out.join(name), bytes)?;
            files.push(name.to_owned());
            Ok::<(), Failure>(())
        };
        keep("card.md", self.card.as_bytes())?;
        keep("model.safetensors", &weights)?;
        let notes = [("privacy", self.guarantee.as_str())];
        match self.recipe.onnx(self.architecture, self.parameters, &notes) {
            Ok(bytes) => keep("model.onnx", &bytes)?,
            // Not every layer has a node there, nor have features, and the weights are in the other file.
            Err(OnnxError::Layer { .. } | OnnxError::Features) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(files)
    }
}

/// What was charged, for people.
pub(crate) fn charged(charge: &Charge, resumed: bool) -> Option<(String, String)> {
    let text = match (resumed, query::adds(charge)) {
        (true, _) => "nothing: this run was paid for when it began".to_owned(),
        (false, Some(sums)) => sums,
        (false, None) => format!("epsilon {}", sheet::short_up(charge.epsilon)),
    };
    Some(("charge".to_owned(), text))
}

#[expect(clippy::disallowed_methods, reason = "a door writes files")]
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::write(path, bytes).map_err(|error| unwritable(path, &error))
}

pub(crate) fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::invalid(
        "out_not_written",
        &format!("{path:?} cannot be written: {error}"),
        "give --out a folder that you may write to",
    )
}
