//! Is it one file, whatever its names?

use std::path::Path;

/// Links have other names for the same rows; so have file systems that do not tell letters apart. What is not there is not the same as anything.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let id = |path: &Path| path.metadata().map(|found| (found.dev(), found.ino()));
        if let (Ok(one), Ok(other)) = (id(one), id(other)) {
            return one == other;
        }
    }
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}
