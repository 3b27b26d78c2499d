//! Whom a run protects is the catalog's to say.

use std::path::Path;

use whit_learn::Recipe;
use whit_learn::data::{Classes, Declaration};
use whit_sql::{Catalog, Table, Tables};

use super::Order;
use crate::session::{Error, Kind, Result, is_same_file};

/// The recipe for examples of which each is one unit's, or why there is none.
pub(super) fn protect_examples<P>(
    catalog: &Catalog,
    tables: &Tables,
    folder: &Path,
    order: &Order<'_, P>,
) -> Result<Recipe> {
    let mut recipe = order.recipe.clone();
    let given = (order.table, order.folder);
    recipe.data = protect_data(catalog, tables, folder, given, recipe.data)?;
    Ok(recipe)
}

/// The same for what is declared of the data of a table; paths are relative to the folder that is given with it.
pub(in crate::session) fn protect_data(
    catalog: &Catalog,
    tables: &Tables,
    folder: &Path,
    (name, given_in): (&str, &Path),
    mut data: Declaration,
) -> Result<Declaration> {
    let table = catalog.table(name);
    let unit = table.and_then(|table| table.unit());
    let (Some(table), Some(unit), Some(columns)) = (table, unit, tables.columns(name)) else {
        let table = name.to_owned();
        return Err(Error::NoTable { table });
    };
    let (file, given) = (folder.join(table.source()), given_in.join(&data.path));
    if !is_same_file(&file, &given) {
        return Err(Error::OtherFile {
            table: name.to_owned(),
            file,
            given,
        });
    }
    // Examples tell units apart as text. A number can be written in several ways.
    let text = |&(column, kind): &(&str, Kind)| column == unit && kind == Kind::Text;
    if !columns.iter().any(text) {
        return Err(Error::UnitNotText {
            table: name.to_owned(),
            unit: unit.to_owned(),
        });
    }
    if let Some(given) = data.unit.as_ref().filter(|given| *given != unit) {
        return Err(Error::OtherUnit {
            table: name.to_owned(),
            unit: unit.to_owned(),
            given: given.clone(),
        });
    }
    only_declared_words(name, table, &data)?;
    data.unit = Some(unit.to_owned());
    // A declared cap is enforced, not trusted.
    let asked = data.rows_per_unit.or(table.rows_per_unit());
    if asked != Some(1) {
        return Err(Error::SeveralRows {
            table: name.to_owned(),
            unit: unit.to_owned(),
        });
    }
    data.rows_per_unit = asked;
    Ok(data)
}

/// Refuses words that the catalog does not declare where it declares any. Rows with other words are empty examples: a run on a word that is misspelt
/// would be paid for and learn nothing, and nobody could be told.
fn only_declared_words(name: &str, table: &Table, data: &Declaration) -> Result<()> {
    let none = |column: &str, given: &[String]| {
        let Some(words) = table.words(column) else {
            return Ok(());
        };
        match given.iter().find(|given| !words.contains(&given.as_str())) {
            None => Ok(()),
            Some(given) => Err(Error::OtherWord {
                table: name.to_owned(),
                column: column.to_owned(),
                given: given.clone(),
                words: words.into_iter().map(str::to_owned).collect(),
            }),
        }
    };
    if let (Some(label), Some(Classes::Names(classes))) = (&data.label, &data.classes) {
        none(label, classes)?;
    }
    let categories = data.categories.iter().flatten();
    for (column, given) in categories.clone() {
        none(column, given)?;
    }
    // Columns of words that are read as numbers.
    let is_category = |column: &String| categories.clone().any(|(name, _)| name == column);
    let numbers = data.columns.iter().flatten();
    for column in numbers.filter(|column| !is_category(column)) {
        none(column, &["a number".to_owned()])?;
    }
    Ok(())
}
