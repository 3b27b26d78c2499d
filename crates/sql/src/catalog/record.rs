//! The catalog as it is written: what serde reads, before anything is checked.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The whole file.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) dataset: Dataset,
    pub(super) budget: Budget,
    #[serde(default)]
    pub(super) defaults: Defaults,
    #[serde(default)]
    pub(super) ledger: Ledger,
    #[serde(default)]
    pub(super) team: BTreeMap<String, Team>,
    #[serde(default)]
    pub(super) analyst: BTreeMap<String, Analyst>,
    #[serde(default)]
    pub(super) table: BTreeMap<String, Table>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Dataset {
    pub(super) id: String,
    /// Which state of the data this is, in the owner's words. Stored answers belong to one.
    pub(super) version: Option<String>,
    /// How many units the owner says there are, publicly. Only warnings rest on it.
    pub(super) units: Option<u64>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Budget {
    pub(super) epsilon: f64,
    pub(super) delta: Option<f64>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Team {
    pub(super) epsilon: f64,
    pub(super) delta: Option<f64>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Analyst {
    pub(super) team: Option<String>,
    pub(super) epsilon: Option<f64>,
    pub(super) delta: Option<f64>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Defaults {
    pub(super) epsilon: Option<f64>,
    pub(super) delta: Option<f64>,
    pub(super) groups_per_unit: Option<u32>,
    pub(super) rows_per_group: Option<u32>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ledger {
    pub(super) path: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    pub(super) source: String,
    pub(super) unit: Option<String>,
    #[serde(default)]
    pub(super) public: bool,
    pub(super) rows_per_unit: Option<u32>,
    #[serde(default)]
    pub(super) column: BTreeMap<String, Column>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Column {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) range: Option<[Number; 2]>,
    pub(super) values: Option<Vec<Declared>>,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub(super) enum Number {
    Int(i64),
    Real(f64),
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub(super) enum Declared {
    Bool(bool),
    Int(i64),
    Real(f64),
    Text(String),
}
