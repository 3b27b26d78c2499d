//! Where data are.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::experiment::Experiment;
use crate::failure::Failure;

/// The folder of an experiment's data; `root` is the value of `WHIT_DATA`. There is no default: nobody trains on data by accident.
pub(crate) fn find(root: Option<OsString>, experiment: &Experiment) -> Result<PathBuf, Failure> {
    within(root, experiment.folder, experiment.files)
}

/// The same for a folder that must hold these files.
pub(crate) fn within(
    root: Option<OsString>,
    folder: &str,
    files: &[&'static str],
) -> Result<PathBuf, Failure> {
    let root = root
        .filter(|root| !root.is_empty())
        .ok_or(Failure::NoData)?;
    let folder = Path::new(&root).join(folder);
    let mut files = files.iter();
    match files.find(|file| !folder.join(file).is_file()) {
        Some(file) => Err(Failure::Missing { folder, file }),
        None => Ok(folder),
    }
}

/// The same for an audit, whose files are looked for by the reader.
pub(crate) fn of(root: Option<OsString>, name: &str) -> Result<PathBuf, Failure> {
    let root = root
        .filter(|root| !root.is_empty())
        .ok_or(Failure::NoData)?;
    Ok(Path::new(&root).join(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EXPERIMENTS;
    use whit_core::Fault;

    #[test]
    fn data_that_nobody_named_are_refused_with_what_to_set() {
        for experiment in EXPERIMENTS {
            for root in [None, Some(OsString::new())] {
                let failure = find(root, experiment).expect_err("no folder");
                assert_eq!(failure.code(), "data_not_set");
                assert!(failure.suggestion().contains("WHIT_DATA"));
            }
            let failure = find(Some("no-such-folder".into()), experiment).expect_err("not there");
            assert_eq!(failure.code(), "data_missing");
            assert!(failure.suggestion().contains(experiment.files[0]));
        }
    }
}
