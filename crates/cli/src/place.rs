//! Which catalog, which ledger.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use whit::Failure;
use whit::session::{Catalog, Session};

use crate::{Format, demo};

/// The name of a catalog in its folder.
pub(crate) const CATALOG: &str = "whit.toml";
/// Of a ledger, and of what belongs beside it.
const ENDINGS: [&str; 3] = ["", ".key", ".mark"];

#[derive(Args)]
pub(crate) struct PlaceArguments {
    /// The catalog; else whit.toml in this folder, else the bundled demonstration
    #[arg(long, value_name = "WHIT.TOML")]
    catalog: Option<PathBuf>,
    /// The ledger; else where the catalog says, which is whit.ledger beside it
    #[arg(long, value_name = "PATH")]
    ledger: Option<PathBuf>,
}

/// A catalog that was found and read.
pub(crate) struct Place {
    pub(crate) catalog: Catalog,
    pub(crate) path: PathBuf,
    /// Where its files are.
    pub(crate) folder: PathBuf,
    pub(crate) ledger: PathBuf,
}

impl PlaceArguments {
    /// Finds and reads the catalog. People are told if it is the demonstration.
    pub(crate) fn find(self, format: Format) -> Result<Place, Failure> {
        let path = match self.catalog {
            Some(path) => path,
            None if is_there(Path::new(CATALOG)) => CATALOG.into(),
            None => {
                let folder = demo::folder()?;
                if format == Format::Table {
                    // Talk that nobody hears is no reason to stop.
                    let _ = writeln!(
                        io::stderr(),
                        "No catalog was given, so this is the bundled demonstration in {}: {}.",
                        folder.display(),
                        demo::CREDIT
                    );
                }
                folder.join(CATALOG)
            }
        };
        Place::read(&path, self.ledger)
    }
}

impl Place {
    /// The catalog at `path`, with its ledger or another.
    pub(crate) fn read(path: &Path, ledger: Option<PathBuf>) -> Result<Self, Failure> {
        let catalog = Catalog::parse(&read(path)?)?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let ledger = ledger.unwrap_or_else(|| folder.join(catalog.ledger()));
        Ok(Self {
            catalog,
            path: path.to_owned(),
            folder,
            ledger,
        })
    }

    /// Is there a ledger, or something that belongs to one? Without, one would be made.
    pub(crate) fn has_ledger(&self) -> bool {
        let mut endings = ENDINGS.into_iter();
        endings.any(|ending| is_there(&self.beside(ending)))
    }

    /// The files of catalog and ledger, whether they are there or not.
    pub(crate) fn own(&self) -> Vec<(&'static str, PathBuf)> {
        let beside = ENDINGS.map(|ending| ("the ledger", self.beside(ending)));
        let catalog = [("the catalog", self.path.clone())];
        catalog.into_iter().chain(beside).collect()
    }

    fn beside(&self, ending: &str) -> PathBuf {
        let mut path = self.ledger.as_os_str().to_owned();
        path.push(ending);
        path.into()
    }

    /// Opens tables and ledger.
    pub(crate) fn open(self) -> Result<Session, Failure> {
        Ok(Session::open(self.catalog, &self.folder, &self.ledger)?)
    }
}

/// Is there something of that name? A link to nothing is something: what it was meant to say is not known.
pub(crate) fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

#[expect(clippy::disallowed_methods, reason = "a door opens files")]
fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| {
        Failure::invalid(
            "catalog_not_read",
            &format!("the catalog {path:?} cannot be read: {error}"),
            "let this file be readable, since nearby catalogs protect their files whichever one is named; or make one with `whit init FILE.csv`",
        )
    })
}
