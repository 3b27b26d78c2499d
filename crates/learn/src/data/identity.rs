//! Which file it is that a path leads to, whatever its names.
//!
//! A person whose picture, or whose sheet, is read under two names would be two examples, while the price is that of one. Names do not tell: there are links, and
//! file systems that do not tell letters apart. On Unix a file is told by the numbers of its device and of itself, which links of both kinds share. Elsewhere it is
//! told by its whole path once all links on the way are followed, and hard links are not seen. A copy is another file everywhere.

use std::path::{Path, PathBuf};

use super::error::{DataError, Result};

/// A file or a folder that is there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity {
    #[cfg(unix)]
    number: (u64, u64),
    #[cfg(not(unix))]
    path: PathBuf,
}

impl Identity {
    /// Where a path leads to; `None` if that is nowhere.
    pub(super) fn of(path: &Path) -> Option<Self> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let found = path.metadata().ok()?;
            let number = (found.dev(), found.ino());
            Some(Self { number })
        }
        #[cfg(not(unix))]
        {
            let path = path.canonicalize().ok()?;
            Some(Self { path })
        }
    }
}

/// Refuses paths of which two lead to one file or folder. What is not there is refused by whoever opens it.
pub(super) fn once(field: &'static str, paths: &[PathBuf]) -> Result<()> {
    let found = paths
        .iter()
        .filter_map(|path| Some((Identity::of(path)?, path)));
    let mut sorted: Vec<_> = found.collect();
    sorted.sort();
    match sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(DataError::SameFile {
            field,
            one: pair[0].1.clone(),
            other: pair[1].1.clone(),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::open::tests::folder;
    use super::*;

    #[test]
    fn a_file_is_itself_by_any_path() {
        let folder = folder(&[("a", b"1"), ("b", b"1"), ("c/d", b"")]);
        let of = |name: &str| Identity::of(&folder.path().join(name));
        assert!(of("a").is_some());
        assert_eq!(of("a"), of("c/../a"));
        assert_eq!(of("c"), of("c/."));
        assert_ne!(of("a"), of("b"), "a copy");
        assert_eq!(of("nothing"), None);
    }

    #[test]
    fn what_is_there_twice_is_told_and_what_is_nowhere_is_not() {
        let folder = folder(&[("a", b"1"), ("b", b"1")]);
        let check = |names: &[&str]| {
            let paths: Vec<_> = names.iter().map(|name| folder.path().join(name)).collect();
            once("sheets", &paths).is_ok()
        };
        assert!(check(&["a", "b", "nothing", "nothing"]));
        assert!(!check(&["b", "a", "./b"]));
    }
}
