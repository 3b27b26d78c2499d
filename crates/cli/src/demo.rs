//! The bundled demonstration: a shop with its customers and what they bought (`data/LICENSE-online-retail.md`).
//!
//! It is written to a folder of its own, so that its catalog can be read, its budget lasts, and everything works as with data of
//! one's own.

use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use whit::Failure;

/// Whose data it is.
pub(crate) const CREDIT: &str = "Online Retail, Chen 2015, UCI, CC BY 4.0";

/// Where demonstrations live, instead of the usual place for data.
const HOME_VARIABLE: &str = "WHIT_HOME";

const FILES: [(&str, Content); 4] = [
    (
        "customers.csv",
        Content::Compressed(include_bytes!("../data/shop/customers.csv.gz")),
    ),
    (
        "purchases.csv",
        Content::Compressed(include_bytes!("../data/shop/purchases.csv.gz")),
    ),
    (
        "weekdays.csv",
        Content::Plain(include_bytes!("../data/shop/weekdays.csv")),
    ),
    (
        "whit.toml",
        Content::Plain(include_bytes!("../data/shop/whit.toml")),
    ),
];

enum Content {
    Plain(&'static [u8]),
    Compressed(&'static [u8]),
}

/// The folder of the demonstration. What is missing there is written; what is there stays as it is.
pub(crate) fn folder() -> Result<PathBuf, Failure> {
    let Some(home) = home() else {
        return Err(Failure::invalid(
            "no_home",
            "there is no folder for the demonstration: neither WHIT_HOME nor HOME is set",
            "set WHIT_HOME to a folder that you may write to, or give --catalog",
        ));
    };
    let folder = home.join("demo");
    write_missing(&folder).map_err(|error| {
        Failure::invalid(
            "demo_not_written",
            &format!("the demonstration cannot be written to {folder:?}: {error}"),
            "set WHIT_HOME to a folder that you may write to, or give --catalog",
        )
    })?;
    Ok(folder)
}

/// As the XDG base directory specification has it.
fn home() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let data = || variable("XDG_DATA_HOME").map(PathBuf::from);
    let usual = || variable("HOME").map(|home| PathBuf::from(home).join(".local/share"));
    let below = |data: PathBuf| data.join("whit");
    variable(HOME_VARIABLE)
        .map(PathBuf::from)
        .or_else(|| data().or_else(usual).map(below))
}

/// Several processes may do this at once: each file appears whole, by its last name.
fn write_missing(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for (name, content) in FILES {
        let path = folder.join(name);
        if path.exists() {
            continue;
        }
        let mut bytes = Vec::new();
        match content {
            Content::Plain(plain) => bytes.extend_from_slice(plain),
            Content::Compressed(gz) => {
                GzDecoder::new(gz).read_to_end(&mut bytes)?;
            }
        }
        let unfinished = folder.join(format!(".{name}.{}", std::process::id()));
        #[expect(clippy::disallowed_methods, reason = "a door writes files")]
        std::fs::write(&unfinished, bytes)?;
        std::fs::rename(&unfinished, &path)?;
    }
    Ok(())
}
