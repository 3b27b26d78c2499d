//! # The catalog
//! One reviewable file, `whit.toml`, in which the owner says what is private, whose it is, and how much may be spent. What it
//! does not say is never guessed, least of all from private values: a column of a private file is text unless the catalog
//! gives it a type or a range.
//!
//! ```
//! let catalog = whit_sql::Catalog::parse(r#"
//!     [dataset]
//!     id = "shop"
//!     [budget]
//!     epsilon = 10.0
//!     delta = 1e-6
//!     [table.orders]
//!     source = "orders.csv"
//!     unit = "user_id"
//!     [table.orders.column]
//!     amount = { type = "decimal(10,2)", range = [0, 500] }
//!     plan = { values = ["free", "pro"] }
//! "#)?;
//! assert_eq!(catalog.dataset(), "shop");
//! # Ok::<(), whit_sql::Error>(())
//! ```

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};
use whit_core::{Delta, Epsilon};

use crate::error::{Result, catalog};
use crate::interval::Interval;
use crate::value::{Kind, Value};

mod draft;
mod people;
mod read;
mod record;

pub use draft::draft;
pub use people::{People, Promise};

/// A checked catalog.
#[derive(Clone, Debug)]
pub struct Catalog {
    dataset: String,
    version: Option<String>,
    units: Option<u64>,
    people: People,
    epsilon: Epsilon,
    delta: Delta,
    defaults: Defaults,
    ledger: String,
    tables: BTreeMap<String, Table>,
    hash: [u8; 32],
}

/// What a statement gets when it does not say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Defaults {
    /// Its epsilon.
    pub epsilon: Option<Epsilon>,
    /// Its delta.
    pub delta: Option<Delta>,
    /// In how many groups a unit counts.
    pub groups_per_unit: Option<u32>,
    /// How many rows of a unit count in a group.
    pub rows_per_group: Option<u32>,
}

/// One table of the catalog.
#[derive(Clone, Debug)]
pub struct Table {
    source: String,
    access: Access,
    columns: BTreeMap<String, Column>,
}

/// Who may see a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everyone.
    Public,
    /// Nobody; all rows with the same unit are one unit's.
    Private {
        unit: String,
        rows_per_unit: Option<u32>,
    },
}

/// What the catalog says of one column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) kind: Kind,
    pub(crate) range: Option<Interval>,
    pub(crate) values: Option<Vec<Value>>,
}

impl Column {
    /// A column of which the catalog says nothing.
    pub(crate) fn text() -> Self {
        Self {
            kind: Kind::Text,
            range: None,
            values: None,
        }
    }
}

/// Caps and group bounds beyond this leave nothing of an answer.
pub(crate) const BOUND_MAX: u32 = 1 << 12;
/// More rows per unit than this are not worth declaring.
const ROWS_PER_UNIT_MAX: u32 = 1 << 24;
/// A statement may declare so many public keys in one column.
const VALUES_MAX: usize = 1 << 20;
/// Statements and budgets have an epsilon up to this; beyond it nothing is protected.
pub(crate) const EPSILON_MAX: f64 = 1024.0;

impl Catalog {
    /// Reads and checks the text of a `whit.toml`. No file is touched.
    pub fn parse(text: &str) -> Result<Self> {
        let file: record::File = toml::from_str(text).map_err(|error| {
            catalog(
                "catalog_syntax",
                error.to_string().trim_end().replace('\n', " "),
                "compare the line with a catalog made by `whit init`",
            )
        })?;
        let hash = hash(&file)?;
        if file.dataset.id.trim().is_empty() {
            return Err(catalog(
                "dataset_without_id",
                "the dataset has an empty id",
                "give [dataset] id = \"a-name\", which names it in the ledger",
            ));
        }
        let epsilon = read::budget(file.budget.epsilon)?;
        let delta = Delta::new(file.budget.delta.unwrap_or(0.0))?;
        let defaults = Defaults {
            epsilon: file.defaults.epsilon.map(read::budget).transpose()?,
            delta: file.defaults.delta.map(Delta::new).transpose()?,
            groups_per_unit: read::bound(
                "groups_per_unit",
                file.defaults.groups_per_unit,
                BOUND_MAX,
            )?,
            rows_per_group: read::bound("rows_per_group", file.defaults.rows_per_group, BOUND_MAX)?,
        };
        let mut tables = BTreeMap::new();
        for (name, table) in &file.table {
            tables.insert(name.clone(), read::table(name, table)?);
        }
        if tables.is_empty() {
            return Err(catalog(
                "no_tables",
                "no table is declared",
                "add [table.NAME] with source and unit, or run `whit init FILE`",
            ));
        }
        Ok(Self {
            dataset: file.dataset.id,
            version: file.dataset.version,
            units: file.dataset.units,
            people: People::read(&file.team, &file.analyst, delta)?,
            epsilon,
            delta,
            defaults,
            ledger: file.ledger.path.unwrap_or_else(|| "whit.ledger".into()),
            tables,
            hash,
        })
    }

    /// The dataset's identity in the ledger.
    pub fn dataset(&self) -> &str {
        &self.dataset
    }

    /// Which state of the data this is, if the owner says so. A stored answer is the answer of one version.
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Teams and analysts, and what they may spend.
    pub fn people(&self) -> &People {
        &self.people
    }

    /// The cap of the dataset. A delta of zero means pure accounting.
    pub fn budget(&self) -> (Epsilon, Delta) {
        (self.epsilon, self.delta)
    }

    /// What statements get that do not say.
    pub fn defaults(&self) -> Defaults {
        self.defaults
    }

    /// Where the ledger lies, relative to the catalog.
    pub fn ledger(&self) -> &str {
        &self.ledger
    }

    /// The tables by name, with their sources.
    pub fn sources(&self) -> impl Iterator<Item = (&str, &str)> {
        self.tables
            .iter()
            .map(|(name, table)| (name.as_str(), table.source.as_str()))
    }

    /// The table of that name.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.get(name)
    }

    pub(crate) fn tables(&self) -> &BTreeMap<String, Table> {
        &self.tables
    }

    /// SHA-256 of what matters for privacy, in canonical form: the data set's name and all that is said of its tables. Caps are
    /// recorded on their own; defaults, versions, comments, order and layout promise nothing.
    pub fn hash(&self) -> [u8; 32] {
        self.hash
    }

    /// What an owner should think about once more. Reads no data.
    pub fn check(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(units) = self.units {
            let limit = 1.0 / (units as f64 * units as f64);
            if self.delta.value() > limit {
                warnings.push(format!(
                    "delta is {}, more than 1/N² = {limit:e} for the declared N = {units} units: \
                     a mechanism of that delta may publish one of them outright; give delta up to {limit:e}",
                    self.delta
                ));
            }
        } else if self.delta > Delta::ZERO {
            warnings.push(
                "[dataset] units is not declared, so delta cannot be compared with 1/N²".into(),
            );
        }
        if self.epsilon.value() > 20.0 {
            warnings.push(format!(
                "epsilon is {}: that protects hardly anybody; 1 to 10 is common",
                self.epsilon
            ));
        }
        for (name, table) in &self.tables {
            if table.access == Access::Public
                && table.columns.values().any(|column| column.values.is_some())
            {
                warnings.push(format!(
                    "table {name} is public; its keys are known without `values`"
                ));
            }
        }
        warnings
    }
}

impl Table {
    /// Its file, relative to the catalog.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The column that says whose a row is. None if the table is public.
    pub fn unit(&self) -> Option<&str> {
        match &self.access {
            Access::Private { unit, .. } => Some(unit),
            Access::Public => None,
        }
    }

    /// At most so many rows of a unit are used, if the owner says so.
    pub fn rows_per_unit(&self) -> Option<u32> {
        match self.access {
            Access::Private { rows_per_unit, .. } => rows_per_unit,
            Access::Public => None,
        }
    }

    /// The words that a column may hold, if the owner has declared them.
    pub fn words(&self, column: &str) -> Option<Vec<&str>> {
        let values = self.columns.get(column)?.values.as_ref()?;
        let words = values.iter().map(|value| match value {
            Value::Text(word) => Some(&**word),
            _ => None,
        });
        words.collect()
    }

    pub(crate) fn access(&self) -> &Access {
        &self.access
    }

    pub(crate) fn columns(&self) -> &BTreeMap<String, Column> {
        &self.columns
    }
}

fn hash(file: &record::File) -> Result<[u8; 32]> {
    let canonical = serde_json::to_vec(&(&file.dataset.id, &file.table)).map_err(|_| {
        catalog(
            "catalog_syntax",
            "a number in the catalog is not finite",
            "give finite numbers",
        )
    })?;
    Ok(Sha256::digest(canonical).into())
}

#[cfg(test)]
mod tests;
