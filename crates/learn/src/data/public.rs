//! What is called public must not be what is private. Loss and accuracy of public data are shown as they are, for nothing.
//!
//! **What is checked.** Nothing that the public declaration opens, by whatever name or link, may be a file or a class's folder of the private one, nor lie in such a folder once all
//! links are followed; pictures are looked at one by one. What the private folders hold is not looked at, so that no private file decides. So a hard link to a single
//! private picture is not seen, nor is a copy of anything.

use std::collections::BTreeSet;
use std::path::Path;

use super::error::{DataError, Result};
use super::identity::Identity;
use super::{Dataset, Declaration, Format, images, load_public};

/// Refuses public data that are the private ones. Reads no row, of either. `folder` is the plan's.
pub fn check_apart(public: &Declaration, private: &Declaration, folder: &Path) -> Result<()> {
    let secret: BTreeSet<Identity> = private
        .files(folder)
        .iter()
        .filter_map(|path| Identity::of(path))
        .collect();
    let is_secret = |path: &Path| Identity::of(path).is_some_and(|found| secret.contains(&found));
    let check = |path: &Path| {
        let lies_in = path.canonicalize().ok();
        let lies_in = lies_in.as_deref().and_then(Path::parent);
        match is_secret(path) || lies_in.is_some_and(is_secret) {
            true => Err(DataError::Private { path: path.into() }),
            false => Ok(()),
        }
    };
    for path in public.files(folder) {
        check(&path)?;
        // A folder that is not there is refused by whoever opens it.
        if public.format == Some(Format::Images) && path.is_dir() {
            for picture in images::entries(&path)? {
                check(&picture)?;
            }
        }
    }
    Ok(())
}

/// The rows of data that are declared public beside private ones, which they must not be.
pub fn load_public_beside(
    public: &Declaration,
    private: &Declaration,
    folder: &Path,
) -> Result<Dataset> {
    check_apart(public, private, folder)?;
    load_public(public, folder)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use tempfile::TempDir;
    use whit_core::{Fault, FaultKind};

    use super::super::open::tests::{declare, folder};
    use super::*;

    const IMAGES: &str =
        "path = 'a'\nformat = 'images'\nshape = [1, 1, 1]\nclasses = ['cat', 'dog']";

    fn pictures() -> TempDir {
        folder(&[
            ("a/cat/1.png", b"private"),
            ("a/dog/1.png", b"private"),
            ("b/cat/1.png", b"public"),
            ("b/dog/1.png", b"public"),
            ("x.csv", b"x,y\n1,0\n"),
        ])
    }

    /// What is refused, and where.
    fn private(folder: &TempDir, data: &str, test: &str) -> Option<PathBuf> {
        let (test, data) = (declare(test), declare(data));
        let error = check_apart(&test, &data, folder.path()).err()?;
        assert_eq!(
            (error.code(), error.kind()),
            ("test_private", FaultKind::Refused)
        );
        let loaded = load_public_beside(&test, &data, folder.path());
        assert_eq!(loaded.err(), Some(error.clone()), "nor is it loaded");
        match error {
            DataError::Private { path } => path.strip_prefix(folder.path()).ok().map(Into::into),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn the_same_files_and_folders_are_private() {
        let folder = pictures();
        let check = |data: &str, test: &str, expected: Option<&str>| {
            let found = private(&folder, data, test);
            assert_eq!(found, expected.map(PathBuf::from), "{test}");
        };
        check(IMAGES, &IMAGES.replace("'a'", "'b'"), None);
        check(IMAGES, IMAGES, Some("a/cat"));
        check(
            IMAGES,
            &IMAGES.replace("'a'", "'b/../a'"),
            Some("b/../a/cat"),
        );
        // Before anybody asks whether these are names of classes.
        let out = IMAGES.replace("'a'", "'b'").replace("'cat'", "'../a/cat'");
        check(IMAGES, &out, Some("b/../a/cat"));
        let table = "path = 'x.csv'\nlabel = 'y'";
        check(table, "path = './x.csv'\nlabel = 'y'", Some("x.csv"));
        check(
            table,
            "path = 'b'\nformat = 'npy'\nlabel = 'x.csv'",
            Some("x.csv"),
        );
        // What is not there is nobody's.
        check(IMAGES, &IMAGES.replace("'a'", "'c'"), None);
        check(&IMAGES.replace("'a'", "'c'"), IMAGES, None);
    }

    #[cfg(unix)]
    #[test]
    fn links_into_private_folders_are_private() {
        use std::os::unix::fs::symlink;
        let test = IMAGES.replace("'a'", "'b'");
        // A class's folder, a picture, and a picture by way of a link to the folder above.
        for (place, target) in [
            ("b/owl", "../a/dog"),
            ("b/cat/2.png", "../../a/cat/1.png"),
            ("b/dog/2.png", "../../link/dog/1.png"),
        ] {
            let folder = pictures();
            symlink("a", folder.path().join("link")).expect("writable");
            assert_eq!(private(&folder, IMAGES, &test), None);
            symlink(target, folder.path().join(place)).expect("writable");
            let test = match place {
                "b/owl" => test.replace("'dog'", "'owl'"),
                _ => test.clone(),
            };
            let found = private(&folder, IMAGES, &test);
            assert_eq!(found, Some(PathBuf::from(place)), "{place}");
        }
        // A public sheet that is one of the private pictures.
        let folder = pictures();
        symlink("../a/cat/1.png", folder.path().join("b/1.png")).expect("writable");
        let sheets = "path = 'b'\nformat = 'sheets'\nsheets = ['1.png']\nlabel = 'y.json'\nshape = [1, 1, 1]";
        assert_eq!(private(&folder, IMAGES, sheets), Some("b/1.png".into()));
    }

    /// Which pictures are in the private folders must not decide.
    #[test]
    fn private_folders_are_not_looked_into() {
        let folder = pictures();
        let test = IMAGES.replace("'a'", "'b'");
        std::fs::hard_link(
            folder.path().join("b/cat/1.png"),
            folder.path().join("a/cat/2.png"),
        )
        .expect("writable");
        assert_eq!(private(&folder, IMAGES, &test), None);
    }
}
