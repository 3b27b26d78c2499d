//! What a folder keeps of models that were trained, so that a command that was stopped goes on where it was.
//!
//! One line for each model: the fingerprint of its plan, of which the seed is a part, how long it took, and its accuracies. A plan that was changed has another
//! fingerprint, so that its models are trained again; the trainer itself has none, and whoever changes it takes a new folder. Each experiment writes a file of its own, so that several
//! can run at once, and reads all of them: a plan that stands in two experiments is trained once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// How names of such files end.
const ENDING: &str = "kept";

/// The models of one experiment that are there already.
pub(crate) struct Kept {
    /// None if nothing is kept.
    path: Option<PathBuf>,
    models: BTreeMap<String, Model>,
    /// Those of other experiments.
    others: BTreeMap<String, Model>,
}

/// What is kept of a model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Model {
    pub(crate) seconds: f64,
    pub(crate) accuracies: Vec<f64>,
}

impl Kept {
    /// What the folder has, or nothing if it has none.
    pub(crate) fn open(out: Option<&Path>, name: &str) -> Result<Self, Failure> {
        let path = out.map(|out| out.join(format!("{name}.{ENDING}")));
        let mut kept = Self {
            path,
            models: BTreeMap::new(),
            others: BTreeMap::new(),
        };
        let files = out.and_then(|out| std::fs::read_dir(out).ok());
        for file in files.into_iter().flatten().flatten() {
            let file = file.path();
            if file.extension().is_some_and(|ending| ending == ENDING) {
                let models = read(&file).ok_or_else(|| Failure::Kept { path: file.clone() })?;
                match kept.path.as_ref() == Some(&file) {
                    true => kept.models = models,
                    false => kept.others.extend(models),
                }
            }
        }
        Ok(kept)
    }

    /// A model whose accuracies were found at so many points.
    pub(crate) fn model(&self, name: &str, points: usize) -> Option<&Model> {
        let model = self.models.get(name).or_else(|| self.others.get(name))?;
        (model.accuracies.len() == points).then_some(model)
    }

    /// Keeps a model: after this it will not be trained again. The file is there as a whole, before and after.
    pub(crate) fn keep(&mut self, name: String, model: Model) -> Result<(), Failure> {
        self.models.insert(name, model);
        let Some(path) = &self.path else {
            return Ok(());
        };
        let text: String = self.models.iter().map(line).collect();
        let next = path.with_extension("kept-next");
        let folder = path.parent().unwrap_or(Path::new("."));
        #[expect(clippy::disallowed_methods, reason = "a door writes files")]
        let written = std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&next, text))
            .and_then(|()| std::fs::rename(&next, path));
        written.map_err(|error| Failure::Unwritable {
            path: path.clone(),
            why: error.to_string(),
        })
    }
}

fn read(path: &Path) -> Option<BTreeMap<String, Model>> {
    #[expect(clippy::disallowed_methods, reason = "a door reads files")]
    let text = std::fs::read_to_string(path).ok()?;
    text.lines().map(parse).collect()
}

fn line((name, model): (&String, &Model)) -> String {
    let accuracies: Vec<String> = model.accuracies.iter().map(f64::to_string).collect();
    format!("{name} {} {}\n", model.seconds, accuracies.join(" "))
}

fn parse(line: &str) -> Option<(String, Model)> {
    let (name, numbers) = line.split_once(' ')?;
    let numbers = numbers.split(' ').map(|word| word.parse().ok());
    let numbers: Vec<f64> = numbers.collect::<Option<_>>()?;
    let (seconds, accuracies) = numbers.split_first()?;
    let model = Model {
        seconds: *seconds,
        accuracies: accuracies.to_vec(),
    };
    Some((name.into(), model))
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_core::Fault;

    #[test]
    fn what_was_kept_is_there_after_a_stop_and_only_for_its_plan() {
        let folder = std::env::temp_dir().join(format!("whit-kept-{}", std::process::id()));
        let open = || Kept::open(Some(&folder), "digits");
        let model = Model {
            seconds: 12.25,
            accuracies: vec![0.1, 1.0 / 3.0],
        };
        let mut kept = open().expect("nothing yet");
        assert_eq!(kept.model("a", 2), None);
        kept.keep("a".into(), model.clone()).expect("written");
        let again = open().expect("one model");
        assert_eq!(again.model("a", 2), Some(&model), "bit by bit");
        assert_eq!((again.model("b", 2), again.model("a", 3)), (None, None));
        let mut other = Kept::open(Some(&folder), "clothes").expect("of another");
        assert_eq!(other.model("a", 2), Some(&model), "trained once");
        other.keep("b".into(), model.clone()).expect("written");
        assert!(open().expect("two files").model("b", 2).is_some());
        let path = folder.join("digits.kept");
        #[expect(clippy::disallowed_methods, reason = "a test writes files")]
        std::fs::write(&path, "a 12.25 0.1 x\n").expect("written");
        let refused = open().err().map(|failure| failure.code());
        assert_eq!(refused, Some("kept_malformed"));
        std::fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn without_a_folder_nothing_is_kept() {
        let mut kept = Kept::open(None, "digits").expect("nothing");
        let model = Model {
            seconds: 1.0,
            accuracies: vec![0.5],
        };
        kept.keep("a".into(), model).expect("nowhere");
        assert!(kept.model("a", 1).is_some());
    }
}
