//! What stands in a record: JSON without spaces, fields in a fixed order.
//!
//! Numbers that decide are texts of digits, since readers of JSON round numbers. What adding up needs comes first in each
//! body, and what can be long comes last behind a marker: opening a ledger of a million records reads only the first part.
//! (The marker holds bare quotes, which inside a JSON string are escaped, so its first appearance is the field.)

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use whit_accounting::budget::{Amount, Cap, Mode, Sums};
use whit_accounting::reserve::{Entry, Level};
use whit_core::{Delta, Epsilon, Neighbours};

use crate::Error;
use crate::record::{Hash, hex, unhex};

/// The version of all bodies.
pub(crate) const FORMAT: u16 = 1;

/// Longest body. SQLite's own limit is ten times as far.
const BODY_BYTES_MAX: usize = 64 << 20;

/// Ends the part of a reservation that adds up.
pub(crate) const CHARGE_END: &[u8] = b",\"statement\":";
/// Begins the answer of a settlement.
pub(crate) const ANSWER: &[u8] = b",\"answer\":";

/// 32 bytes as hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hex(pub(crate) Hash);

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&str>::deserialize(deserializer)?;
        let found = unhex(text).map(Self);
        found.ok_or_else(|| serde::de::Error::custom("64 hex digits"))
    }
}

/// An amount as digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Units(pub(crate) Amount);

impl Serialize for Units {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0.units())
    }
}

impl<'de> Deserialize<'de> for Units {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&str>::deserialize(deserializer)?;
        let units = text.parse().map_err(serde::de::Error::custom)?;
        Ok(Self(Amount::from_units(units)))
    }
}

/// A float as the shortest digits that are read as the same float.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Digits(pub(crate) f64);

impl Serialize for Digits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:e}", self.0))
    }
}

impl<'de> Deserialize<'de> for Digits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&str>::deserialize(deserializer)?;
        text.parse().map(Self).map_err(serde::de::Error::custom)
    }
}

/// A mode by its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ModeWord(pub(crate) Mode);

impl Serialize for ModeWord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.word())
    }
}

impl<'de> Deserialize<'de> for ModeWord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&str>::deserialize(deserializer)?;
        let found = Mode::from_word(text).map(Self);
        found.ok_or_else(|| serde::de::Error::custom("a mode"))
    }
}

/// A level in a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LevelName {
    Dataset,
    Team(String),
    Analyst(String),
}

impl LevelName {
    pub(crate) fn new(level: &Level) -> Option<Self> {
        match level {
            Level::Dataset => Some(Self::Dataset),
            Level::Team(name) => Some(Self::Team(name.clone())),
            Level::Analyst(name) => Some(Self::Analyst(name.clone())),
            _ => None,
        }
    }
}

impl From<LevelName> for Level {
    fn from(name: LevelName) -> Self {
        match name {
            LevelName::Dataset => Self::Dataset,
            LevelName::Team(name) => Self::Team(name),
            LevelName::Analyst(name) => Self::Analyst(name),
        }
    }
}

/// Kind `open`, and part of kind `recover`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Opening {
    pub(crate) format: u16,
    pub(crate) dataset: String,
    pub(crate) mode: ModeWord,
    pub(crate) neighbours: Neighbours,
    pub(crate) catalog: Hex,
    pub(crate) public_key: Hex,
}

/// Kind `cap`. The owner's numbers, and what they came to when they were written down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CapBody {
    pub(crate) level: LevelName,
    pub(crate) epsilon: Digits,
    pub(crate) delta: Digits,
    pub(crate) loss_limit: Units,
    pub(crate) delta_limit: Units,
}

impl CapBody {
    pub(crate) fn new(level: &Level, cap: &Cap) -> Option<Self> {
        Some(Self {
            level: LevelName::new(level)?,
            epsilon: Digits(cap.epsilon().value()),
            delta: Digits(cap.delta().value()),
            loss_limit: Units(cap.limit().loss),
            delta_limit: Units(cap.limit().delta),
        })
    }

    /// The cap again, with limits no higher than what was written down, should conversions have changed since.
    pub(crate) fn cap(&self, mode: Mode, neighbours: Neighbours) -> Option<Cap> {
        let (epsilon, delta) = (Epsilon::new(self.epsilon.0), Delta::new(self.delta.0));
        let cap = Cap::new(mode, neighbours, epsilon.ok()?, delta.ok()?).ok()?;
        Some(cap.at_most(Sums {
            loss: self.loss_limit.0,
            delta: self.delta_limit.0,
        }))
    }
}

/// A statement failed after its charge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Suspend {
    /// The charge.
    pub(crate) of: u64,
}

/// The owner has looked into it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Resume {}

/// Kind `accept`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Accept {
    pub(crate) catalog: Hex,
}

/// What was found wrong, in a `recover` record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Damage {
    /// A row that is not as it was written, by a digest of all that was found.
    Altered { sequence: i64, digest: Hex },
    /// Rows that are not there.
    Missing { first: u64, last: u64 },
    /// The signed head does not belong to the last record, or no mark says how far the chain had come.
    Head,
    /// The key that signed is gone. Whoever rewrites the records signs them with a key of their own, so without the old one
    /// nothing says that they are the records that were written.
    Key,
}

impl Damage {
    /// Whether it is about rows, and is found again when they are read again.
    pub(crate) fn is_in_rows(&self) -> bool {
        matches!(self, Self::Altered { .. } | Self::Missing { .. })
    }
}

/// Kind `recover`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Recover {
    pub(crate) opening: Opening,
    pub(crate) damage: Vec<Damage>,
    pub(crate) loss_floor: Units,
    pub(crate) delta_floor: Units,
}

/// Kind `reserve`, with what a settlement and a second request under the same key are compared with.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Reserved {
    team: Option<String>,
    analyst: Option<String>,
    pub(crate) statement: Option<Hex>,
    pub(crate) fingerprint: Hex,
}

impl Reserved {
    /// Whether this was the same event for the same statement, charged to the same people.
    pub(crate) fn is_for(&self, entry: &Entry, statement: Option<Hash>) -> bool {
        let (team, analyst) = names(entry);
        let people = (&self.team, &self.analyst) == (&team, &analyst);
        let event = self.fingerprint == Hex(entry.fingerprint());
        people && event && self.statement == statement.map(Hex)
    }
}

/// The text of a body.
pub(crate) fn write<T: Serialize>(body: &T) -> String {
    serde_json::to_string(body).expect("bodies are plain data, whose keys are names")
}

/// The team and the analyst of an entry.
fn names(entry: &Entry) -> (Option<String>, Option<String>) {
    let (mut team, mut analyst) = (None, None);
    for level in entry.account().levels() {
        match level {
            Level::Team(name) => team = Some(name),
            Level::Analyst(name) => analyst = Some(name),
            _ => {}
        }
    }
    (team, analyst)
}

/// Refuses what does not fit into one record, before the database does, which would stop the ledger for everybody.
fn bounded(body: String) -> Result<String, Error> {
    let (bytes, most) = (body.len(), BODY_BYTES_MAX);
    if bytes <= most {
        Ok(body)
    } else {
        Err(Error::TooLong { bytes, most })
    }
}

/// The text of a reservation.
pub(crate) fn write_reserve(
    entry: &Entry,
    key: Option<Hash>,
    statement: Option<Hash>,
) -> Result<String, Error> {
    #[derive(Serialize)]
    struct Whole<'a> {
        loss: Units,
        delta: Units,
        team: Option<String>,
        analyst: Option<String>,
        key: Option<Hex>,
        statement: Option<Hex>,
        fingerprint: Hex,
        event: &'a whit_core::Event,
    }
    let (team, analyst) = names(entry);
    let sums = entry.cost().sums();
    bounded(write(&Whole {
        loss: Units(sums.loss),
        delta: Units(sums.delta),
        team,
        analyst,
        key: key.map(Hex),
        statement: statement.map(Hex),
        fingerprint: Hex(entry.fingerprint()),
        event: entry.event(),
    }))
}

/// The text of a settlement. The answer must be one JSON value.
pub(crate) fn write_settle(of: u64, answer: &str) -> Result<String, Error> {
    serde_json::from_str::<serde::de::IgnoredAny>(answer).map_err(|_| Error::NotJson)?;
    bounded(format!("{{\"of\":{of},\"answer\":{}}}", answer.trim()))
}

/// The answer of a settlement, as it was given.
pub(crate) fn read_answer(body: &str) -> Option<&str> {
    let at = find(body.as_bytes(), ANSWER)?;
    body.get(at + ANSWER.len()..body.len().checked_sub(1)?)
}

/// Where a marker is first.
pub(crate) fn find(body: &[u8], marker: &[u8]) -> Option<usize> {
    body.windows(marker.len()).position(|part| part == marker)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_back_as_they_were_given() {
        for answer in [
            "{}",
            "null",
            "[1, 2.50, \"\\u0041,\\\"answer\\\":\"]",
            "{\"answer\":{\"x\":1}}",
        ] {
            let body = write_settle(12, answer).expect("JSON");
            assert_eq!(read_answer(&body), Some(answer));
            assert_eq!(crate::tally::settled(body.as_bytes()), Some(12));
        }
        for bad in ["", "{", "1 2", "{}}", "nul"] {
            assert_eq!(write_settle(1, bad), Err(Error::NotJson), "{bad}");
        }
    }

    #[test]
    fn floats_keep_every_digit() {
        for value in [10.0, 0.1, 1e-6, 5e-324, f64::MAX, 1.0 / 3.0] {
            let text = write(&Digits(value));
            assert_eq!(
                serde_json::from_str::<Digits>(&text).expect("own text"),
                Digits(value)
            );
        }
    }

    #[test]
    fn units_are_digits_of_any_length() {
        let most = Units(Amount::from_units(u128::MAX));
        assert_eq!(write(&most), format!("\"{}\"", u128::MAX));
        assert_eq!(
            serde_json::from_str::<Units>(&write(&most)).expect("own text"),
            most
        );
    }
}
