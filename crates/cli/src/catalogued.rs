//! Is a file a private table of a catalog? Then its statistics are paid from that catalog's ledger.

use std::path::{Path, PathBuf};

use whit::Failure;

use crate::place::{CATALOG, Place};

/// A private table, and where its catalog is.
pub(crate) struct Catalogued {
    pub(crate) place: Place,
    pub(crate) table: String,
}

/// The catalog that is named, or that lies in the file's folder or above it, if the file is a private table there. A catalog that cannot be
/// read is no reason to answer without it.
pub(crate) fn find(
    file: &Path,
    catalog: Option<&Path>,
    ledger: Option<&Path>,
) -> Result<Option<Catalogued>, Failure> {
    let Ok(whole) = file.canonicalize() else {
        // Whoever opens it will say why.
        return Ok(None);
    };
    let above = whole.ancestors().skip(1).map(|folder| folder.join(CATALOG));
    let candidates: Vec<PathBuf> = match catalog {
        Some(named) => vec![named.to_owned()],
        None => above.filter(|path| path.exists()).collect(),
    };
    for path in candidates {
        let place = Place::read(&path, ledger.map(Path::to_owned))?;
        let is_it = |source: &str| {
            let source = place.folder.join(source).canonicalize();
            source.is_ok_and(|source| source == whole)
        };
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
    match catalog {
        None => Ok(None),
        Some(named) => Err(Failure::invalid(
            "not_in_catalog",
            &format!("the file {file:?} is no private table of {named:?}"),
            "leave --catalog out, or add the file to it with its unit",
        )),
    }
}
