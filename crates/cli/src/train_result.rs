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
use whit_learn::data::{Classes, Inputs};
use whit_learn::evaluate::Evaluation;
use whit_learn::model::{Architecture, tensors};
use whit_learn::onnx::OnnxError;
use whit_learn::predict::run_notes;
use whit_learn::safetensors::Weights;
use whit_learn::{Payer, Plan, Recipe, Summary};

use crate::plot::Picture;
use crate::train::{noted, priced, value};
use crate::train_plot::Drawn;
use crate::train_stop::Notebook;
use crate::train_watch::diverged;
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
    pub(crate) inputs: &'a Inputs,
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
            inputs: self.inputs,
            card: self.card(),
        };
        let run = self.recipe.run(self.plan);
        let mut files = model.write(out, &run)?;
        // Curves tell what was seen on the way: where no step was taken, nothing was, unless the notebook has it still.
        let is_told = self.start == Start::AtTheEnd && !Notebook::beside(out, &run).is_there();
        let stays = |name: &str| is_told && out.join(name).exists();
        if !stays(CURVE) {
            write_whole(&out.join(CURVE), self.history.csv().as_bytes())?;
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
                    whole(&out.join(&name), |part| Drawn(&chart).write(part))?;
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

    fn diverged(&self) -> Option<String> {
        let classes = self.recipe.data.classes.as_ref().map(Classes::count);
        diverged(&self.parameters, self.evaluation, classes)
    }

    /// Whom the guarantee protects one of.
    fn unit(&self) -> &str {
        self.recipe.data.unit.as_deref().unwrap_or("example")
    }

    fn title(&self) -> &str {
        self.recipe.title.as_deref().unwrap_or("A private model")
    }

    fn card(&self) -> [String; 2] {
        let summary = self.plan.summary();
        let optimizer = self.recipe.optimizer_words();
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
                cyclic: summary.cyclic,
                optimizer: &optimizer,
                clipping: self.recipe.plan.clipping_word(),
            },
            data: &self.recipe.data,
            inputs: self.inputs,
            features: self.recipe.features.as_ref(),
            model: &self.recipe.model,
            architecture: self.architecture,
            results: &results,
            search: self.recipe.search(),
            payer: self.payer,
            receipt: self.paid.map(|paid| paid.receipt.as_str()),
            plan: &self.recipe.run(self.plan).name(),
        };
        [card.markdown(), card.json()]
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
                all["note"] = json!(self.diverged());
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
                if let Some(words) = self.diverged() {
                    line("note", words);
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
    pub(crate) inputs: &'a Inputs,
    /// For people and for programs.
    pub(crate) card: [String; 2],
}

impl ModelFiles<'_> {
    /// Writes them to the folder of a run, and says what was written.
    pub(crate) fn write(&self, out: &Path, run: &Run) -> Result<Vec<String>, Failure> {
        let mut notes = BTreeMap::from([("privacy".to_owned(), self.guarantee.clone())]);
        notes.extend(run_notes(run, self.inputs));
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
            write_whole(&out.join(name), bytes)?;
            files.push(name.to_owned());
            Ok::<(), Failure>(())
        };
        let [people, programs] = &self.card;
        keep("card.md", people.as_bytes())?;
        keep("card.json", programs.as_bytes())?;
        keep("model.safetensors", &weights)?;
        let names = json!(self.inputs.feature_names()).to_string();
        let classes = json!(self.recipe.data.classes).to_string();
        let notes = [
            ("privacy", self.guarantee.as_str()),
            (
                "input",
                "numbers as they stand in a file, in the order of columns; the normalisation is in the graph",
            ),
            ("columns", names.as_str()),
            ("classes", classes.as_str()),
            (
                "output",
                "logits, one for each class, of which softmax gives probabilities; or the number that is learnt",
            ),
        ];
        let (layers, inputs) = (self.architecture, self.inputs);
        match self.recipe.onnx(layers, self.parameters, inputs, &notes) {
            Ok(bytes) => keep("model.onnx", &bytes)?,
            // Not every layer has a node there, nor have features, and the weights are in the other file.
            Err(OnnxError::Layer { .. } | OnnxError::Features | OnnxError::Normalisation) => {}
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

/// A file of a run, which under its name is whole or not there.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    whole(path, |part| {
        #[expect(clippy::disallowed_methods, reason = "a door writes files")]
        let written = std::fs::write(part, bytes);
        written.map_err(|error| unwritable(path, &error))
    })
}

/// The same of a file that somebody has named, who may have other files beside it: those are not touched. Who may read the old one may read the new one.
#[expect(clippy::disallowed_methods, reason = "a door writes files")]
pub(crate) fn write_named(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let found = path.metadata();
    // Into a pipe or a device one writes, and through a link: none of them is replaced.
    let is_link = path
        .symlink_metadata()
        .is_ok_and(|found| found.is_symlink());
    if is_link || found.as_ref().is_ok_and(|found| !found.is_file()) {
        return std::fs::write(path, bytes).map_err(|error| unwritable(path, &error));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let part = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
    by_way_of(&part, path, |part| {
        let written = std::fs::write(part, bytes).and_then(|()| match &found {
            Ok(found) => std::fs::set_permissions(part, found.permissions()),
            Err(_) => Ok(()),
        });
        written.map_err(|error| unwritable(path, &error))
    })
}

/// The same of whatever writes a file that has a name: it gets another one with the same ending, and no link that somebody has put there.
fn whole(path: &Path, write: impl FnOnce(&Path) -> Result<(), Failure>) -> Result<(), Failure> {
    let ending = path.extension().unwrap_or_default().to_string_lossy();
    let part = path.with_extension(format!("part.{ending}"));
    by_way_of(&part, path, write)
}

fn by_way_of(
    part: &Path,
    path: &Path,
    write: impl FnOnce(&Path) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let _ = std::fs::remove_file(part);
    let written = write(part).and_then(|()| {
        #[expect(clippy::disallowed_methods, reason = "a door writes files")]
        let file = std::fs::OpenOptions::new().write(true).open(part);
        // Its bytes are there before its name is.
        file.and_then(|file| file.sync_all())
            .and_then(|()| std::fs::rename(part, path))
            .map_err(|error| unwritable(path, &error))
    });
    if written.is_err() {
        // Half of a file is of use to nobody, and the disk may be full.
        let _ = std::fs::remove_file(part);
    }
    written
}

pub(crate) fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::invalid(
        "out_not_written",
        &format!("{path:?} cannot be written: {error}"),
        "give --out a place that you may write to",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever reads a file while it is written again finds the old one, whole; and nothing is written through a link.
    #[test]
    fn files_are_replaced_and_not_written_into() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let [path, old] = ["curve.csv", "old.csv"].map(|name| folder.path().join(name));
        let read = |path: &Path| {
            #[expect(clippy::disallowed_methods, reason = "the test's own file")]
            let text = std::fs::read_to_string(path);
            text.expect("there")
        };
        write_whole(&path, b"first").expect("writable");
        std::fs::hard_link(&path, &old).expect("linked");
        write_whole(&path, b"second").expect("writable");
        assert_eq!((read(&path), read(&old)), ("second".into(), "first".into()));
        let failed = whole(&path, |part| {
            write_whole(part, b"ha")?;
            Err(unwritable(part, &io::ErrorKind::StorageFull.into()))
        });
        assert!(failed.is_err());
        assert_eq!(read(&path), "second");
        let files = std::fs::read_dir(folder.path()).expect("there");
        assert_eq!(files.count(), 2, "no half is left");
        write_named(&path, b"third").expect("writable");
        assert_eq!((read(&path), read(&old)), ("third".into(), "first".into()));
        let files = std::fs::read_dir(folder.path()).expect("there");
        assert_eq!(files.count(), 2, "no half is left");
    }

    /// A device of that name is not removed, nor does a file that only its owner may read become everybody's.
    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_written_to_and_permissions_stay() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::TempDir::new().expect("a folder");
        let path = folder.path().join("said.csv");
        write_named(&path, b"first").expect("writable");
        let mine = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&path, mine).expect("mine");
        write_named(&path, b"second").expect("writable");
        let mode = path.metadata().expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let null = folder.path().join("null");
        std::os::unix::fs::symlink("/dev/null", &null).expect("writable");
        write_named(&null, b"nowhere").expect("writable");
        let kept = null.symlink_metadata().expect("there");
        assert!(kept.file_type().is_symlink());
    }
}
