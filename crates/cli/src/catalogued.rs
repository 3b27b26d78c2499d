//! Is a file a private table of a catalog? Then its statistics are paid from that catalog's ledger.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use whit::Failure;
use whit::session::is_same_file;

use crate::place::{CATALOG, Place, is_there};

/// A private table, and where its catalog is.
pub(crate) struct Catalogued {
    pub(crate) place: Place,
    pub(crate) table: String,
}

/// What a ledger has beside it for a while: a key in the making, and what its database writes ahead.
const BESIDE_A_LEDGER: [&str; 4] = [".key.new", "-wal", "-shm", "-journal"];

/// Where standard input is, for the system.
const STDIN: &str = "/dev/stdin";

/// The private table that a file is, by the catalog that is named or by one of those that a person at this file would think of. A catalog
/// that cannot be read is no reason to answer without it, and to name another one is no way around the ledger of the one that is there.
pub(crate) fn find(
    file: &Path,
    catalog: Option<&Path>,
    ledger: Option<&Path>,
) -> Result<Option<Catalogued>, Failure> {
    // Standard input that comes from a file is that file.
    let is_stdin = file == Path::new("-");
    let file = if is_stdin { Path::new(STDIN) } else { file };
    let is_file = match file.metadata() {
        Ok(found) => found.is_file(),
        // Whoever opens it will say why.
        Err(_) if !is_stdin => return Ok(None),
        Err(_) => false,
    };
    // What comes through a pipe is no file.
    let nearby = match is_file {
        true => in_one_of(above(file), file, ledger)?,
        false => None,
    };
    let Some(named) = catalog else {
        return Ok(nearby);
    };
    let found = match is_file {
        true => in_one_of(vec![named.to_owned()], file, ledger)?,
        false => None,
    };
    match (nearby, found) {
        (None, Some(found)) => Ok(Some(found)),
        // A link to a catalog has neither the files nor the ledger beside it.
        (Some(nearby), _) if is_same_file(&nearby.place.path, named) => Ok(Some(nearby)),
        (Some(nearby), _) => Err(Failure::refused(
            "other_catalog",
            &format!(
                "the file {file:?} is a private table of {:?}, whose ledger is charged and not that of {named:?}",
                nearby.place.path
            ),
            "leave --catalog out",
        )),
        (None, None) => Err(Failure::invalid(
            "not_in_catalog",
            &format!("the file {file:?} is no private table of {named:?}"),
            "leave --catalog out, or add the file to it with its unit",
        )),
    }
}

/// Refuses an option about ledgers, for data that no ledger is charged for.
pub(crate) fn uncharged(option: &str, data: &str) -> Failure {
    Failure::invalid(
        "not_in_catalog",
        &format!("{option} was given, and {data} no private table of a catalog"),
        &format!(
            "give --catalog with a catalog that has the data as a table with its unit, or leave {option} out"
        ),
    )
}

/// The private table that a file is which somebody calls public: by the catalog that is named, or by any that [`find`] would think of.
pub(crate) fn protects(file: &Path, catalog: Option<&Path>) -> Result<Option<Catalogued>, Failure> {
    let mut candidates = above(file);
    candidates.extend(catalog.map(Path::to_owned));
    in_one_of(candidates, file, None)
}

/// What of a catalog an answer would be written over: a private table, the catalog itself, or its ledger and what belongs beside that. In words, for people.
pub(crate) fn in_the_way(out: &Path, catalog: Option<&Path>) -> Result<Option<String>, Failure> {
    if let Some(found) = protects(out, catalog)? {
        return Ok(Some(format!(
            "the private table {} of a catalog",
            found.table
        )));
    }
    let mut candidates = above(out);
    candidates.extend(catalog.map(Path::to_owned));
    for path in candidates {
        let place = Place::read(&path, None)?;
        let mut own = place.own().into_iter();
        if let Some((what, _)) = own.find(|(_, own)| is_one(own, out)) {
            return Ok(Some(format!("{what} of {path:?}")));
        }
        let beside = BESIDE_A_LEDGER.map(|ending| {
            let mut name = place.ledger.clone().into_os_string();
            name.push(ending);
            PathBuf::from(name)
        });
        if beside.iter().any(|beside| is_one(beside, out)) {
            return Ok(Some(format!("a file of the ledger of {path:?}")));
        }
    }
    Ok(None)
}

/// Do both names lead to one file, or would they, if there were one?
pub(crate) fn is_one(one: &Path, other: &Path) -> bool {
    let same = location(one).is_some_and(|here| location(other) == Some(here));
    is_same_file(one, other) || same
}

/// The folder of a file that need not be there, by its one name, and the file's name in it.
fn location(path: &Path) -> Option<(PathBuf, OsString)> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
    Some((folder, path.file_name()?.to_owned()))
}

/// Refuses a private table as votes of teachers. Without a catalog nobody would be charged for its rows; with one, the table that teachers were trained on
/// would be, for one teacher's change: and one unit more may be one teacher more, of whom the number is public, or a whole query.
pub(crate) fn refuse_as_votes(file: &Path, catalog: Option<&Path>) -> Result<(), Failure> {
    let passes = "give votes of teachers in a file that no catalog has as a private table, with --catalog and --table naming the private table that the teachers were trained on";
    match protects(file, catalog)? {
        Some(private) => Err(private.as_votes(file, passes)),
        None => Ok(()),
    }
}

impl Catalogued {
    /// The file is no votes to be told of, or by; `passes` says what would be.
    pub(crate) fn as_votes(&self, file: &Path, passes: &str) -> Failure {
        Failure::refused(
            "private_votes",
            &format!(
                "the file {file:?} is the private table {} of {:?}: these are rows of its units, and not votes of teachers that were trained on it",
                self.table, self.place.path
            ),
            passes,
        )
    }
}

/// The first of these catalogs in which the file is a private table.
fn in_one_of(
    candidates: Vec<PathBuf>,
    file: &Path,
    ledger: Option<&Path>,
) -> Result<Option<Catalogued>, Failure> {
    for path in candidates {
        let place = Place::read(&path, ledger.map(Path::to_owned))?;
        let is_it = |source: &str| is_same_file(&place.folder.join(source), file);
        let tables = place.catalog.sources().filter(|(_, source)| is_it(source));
        // If the file is declared twice, the declaration that protects somebody counts.
        let private = tables.map(|(name, _)| name.to_owned()).find(|name| {
            place
                .catalog
                .table(name)
                .is_some_and(|table| table.unit().is_some())
        });
        if let Some(table) = private {
            return Ok(Some(Catalogued { place, table }));
        }
    }
    Ok(None)
}

/// The catalogs in the folder where the file is and above it, the same for the folder by which it was named (one of them may be a link
/// to the other), and the same for the folder of whoever asks, since a catalog can name files elsewhere.
fn above(file: &Path) -> Vec<PathBuf> {
    let here = std::env::current_dir().unwrap_or_default();
    let named = here.join(file);
    let whole = file.canonicalize().unwrap_or_else(|_| named.clone());
    let folders = whole.ancestors().skip(1);
    let folders = folders.chain(named.ancestors().skip(1));
    let folders = folders.chain(here.ancestors());
    let mut found: Vec<PathBuf> = Vec::new();
    for path in folders.map(|folder| folder.join(CATALOG)) {
        if is_there(&path) && !found.contains(&path) {
            found.push(path);
        }
    }
    found
}
