//! Scores that are kept, so that an audit that was stopped goes on where it was: one line for each model, with the number of its trial and of its world, and what it
//! was boiled down to. Lines are appended; the last one counts only if it is whole.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The scores of one cell.
pub(crate) struct Scores {
    /// None if nothing is kept.
    path: Option<PathBuf>,
    models: BTreeMap<(u64, u64), Vec<f64>>,
}

impl Scores {
    /// What the folder has of this cell, or nothing.
    pub(crate) fn open(out: Option<&Path>, name: &str) -> Result<Self, Failure> {
        let path = out.map(|out| out.join(format!("{name}.scores")));
        let mut models = BTreeMap::new();
        if let Some(path) = path.as_ref().filter(|path| path.is_file()) {
            #[expect(clippy::disallowed_methods, reason = "a door reads files")]
            let text =
                std::fs::read_to_string(path).map_err(|_| Failure::Kept { path: path.clone() })?;
            let whole = text.rfind('\n').map_or(0, |end| end + 1);
            for line in text[..whole].lines() {
                let (key, values) =
                    parse(line).ok_or_else(|| Failure::Kept { path: path.clone() })?;
                models.insert(key, values);
            }
            if whole < text.len() {
                // A line that was cut off is written again.
                #[expect(clippy::disallowed_methods, reason = "a door writes files")]
                let written = std::fs::write(path, &text[..whole]);
                written.map_err(|error| unwritable(path, &error))?;
            }
        }
        Ok(Self { path, models })
    }

    /// Is there a score of this trial in this world?
    pub(crate) fn has(&self, trial: u64, world: u64) -> bool {
        self.models.contains_key(&(trial, world))
    }

    /// All models of a world in the order of their trials, below this number.
    pub(crate) fn of(&self, world: u64, trials: u64) -> Vec<&[f64]> {
        let each = (0..trials).filter_map(|trial| self.models.get(&(trial, world)));
        each.map(|values| &values[..]).collect()
    }

    /// Keeps some more.
    pub(crate) fn keep(&mut self, models: Vec<((u64, u64), Vec<f64>)>) -> Result<(), Failure> {
        if let Some(path) = &self.path {
            let folder = path.parent().unwrap_or(Path::new("."));
            std::fs::create_dir_all(folder).map_err(|error| unwritable(path, &error))?;
            let text: String = models.iter().map(line).collect();
            let mut options = std::fs::OpenOptions::new();
            #[expect(clippy::disallowed_methods, reason = "a door writes files")]
            let file = options.create(true).append(true).open(path);
            let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
            written.map_err(|error| unwritable(path, &error))?;
        }
        self.models.extend(models);
        Ok(())
    }
}

fn unwritable(path: &Path, why: &std::io::Error) -> Failure {
    Failure::Unwritable {
        path: path.into(),
        why: why.to_string(),
    }
}

fn line(((trial, world), values): &((u64, u64), Vec<f64>)) -> String {
    let values: Vec<String> = values.iter().map(f64::to_string).collect();
    format!("{trial} {world} {}\n", values.join(" "))
}

fn parse(line: &str) -> Option<((u64, u64), Vec<f64>)> {
    let mut words = line.split(' ');
    let key = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let values = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
    Some((key, values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_is_there_after_a_stop_and_half_a_line_is_not() {
        let folder = std::env::temp_dir().join(format!("whit-scores-{}", std::process::id()));
        let open = || Scores::open(Some(&folder), "cell").expect("readable");
        let mut scores = open();
        let models = vec![((0, 0), vec![1.0 / 3.0, -2.0]), ((0, 8), vec![0.5])];
        scores.keep(models).expect("written");
        scores.keep(vec![((1, 0), vec![7.0])]).expect("written");
        let path = folder.join("cell.scores");
        #[expect(clippy::disallowed_methods, reason = "a test reads and writes files")]
        {
            let text = std::fs::read_to_string(&path).expect("there");
            std::fs::write(&path, text + "1 8 0.12").expect("written");
        }
        let mut again = open();
        assert!(again.has(0, 8) && again.has(1, 0) && !again.has(1, 8));
        assert_eq!(again.of(0, 2), [&[1.0 / 3.0, -2.0][..], &[7.0]]);
        again.keep(vec![((1, 8), vec![9.0])]).expect("written");
        assert_eq!(open().of(8, 2), [&[0.5][..], &[9.0]]);
        std::fs::remove_dir_all(folder).expect("removed");
    }
}
