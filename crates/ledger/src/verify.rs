//! Looking at a ledger without changing it.

use std::path::Path;

use whit_accounting::budget::Mode;
use whit_accounting::reserve::Standing;
use whit_core::Neighbours;

use crate::key::{self, Name};
use crate::mark;
use crate::record::{Hash, Receipt, hex};
use crate::sqlite::{Access, Sqlite, real_path};
use crate::store::Store;
use crate::writer::load;
use crate::{Error, Result};

/// What a sound ledger says.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// The data set.
    pub dataset: String,
    /// How the budget is kept.
    pub mode: Mode,
    /// Whom it protects.
    pub neighbours: Neighbours,
    /// The catalog that was accepted last.
    pub catalog: Hash,
    /// By which heads are verified.
    pub public_key: Hash,
    /// The last record.
    pub head: Receipt,
    /// How many charges there are.
    pub reserved: u64,
    /// How many of them have an answer.
    pub settled: u64,
    /// The charge whose statement failed, if the owner has not looked into it.
    pub suspended: Option<u64>,
    /// Where every level stands.
    pub standings: Vec<Standing>,
    /// The secret key beside the file, without which nothing more can be charged.
    pub key: Beside,
    /// The mark beside the file, without which an older copy of it would not be found out.
    pub mark: Beside,
}

/// What was found of a file that belongs beside a ledger. A copy for auditors has neither key nor mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Beside {
    /// It is there, and fits.
    Fits,
    /// It is not there, or makes no sense.
    Missing,
    /// It could not be read, by whoever asked.
    Unreadable,
}

impl Beside {
    /// The word that machines read.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Fits => "fits",
            Self::Missing => "missing",
            Self::Unreadable => "unreadable",
        }
    }
}

/// Verifies every record, every link, every cap, and the signature of the head. Needs the file alone, and not the secret key;
/// if there is a key file that can be read, it must be the right one, and there must be a mark. That the public key is the one it always was, and that
/// the head is no older than the last receipt, only somebody can say who has kept them.
pub fn verify(path: &Path) -> Result<Report> {
    let path = &real_path(path);
    let mut store = open(path)?;
    store.begin()?;
    let loaded = load(&mut store);
    store.abort();
    let (state, _) = loaded?;
    let opening = state.sound()?;
    let public = opening.public_key.0;
    let (key, name) = match key::load(path, &public) {
        Ok((_, name)) => (Beside::Fits, Some(name)),
        Err(Error::KeyMismatch) => return Err(Error::KeyMismatch),
        Err(Error::KeyMissing) => (Beside::Missing, None),
        Err(_) => (Beside::Unreadable, None),
    };
    let mark = match mark::read(path) {
        Ok(Some(_)) => Beside::Fits,
        Ok(None) if name == Some(Name::Proper) => return Err(Error::MarkMissing),
        Ok(None) => Beside::Missing,
        Err(_) => Beside::Unreadable,
    };
    let (reserved, settled) = state.counts();
    let levels = state.levels().into_iter();
    Ok(Report {
        dataset: opening.dataset.clone(),
        mode: opening.mode.0,
        neighbours: opening.neighbours,
        catalog: opening.catalog.0,
        public_key: opening.public_key.0,
        head: state.head().ok_or(Error::Emptied)?,
        reserved,
        settled,
        suspended: match state.running() {
            Err(Error::Suspended { sequence }) => Some(sequence),
            _ => None,
        },
        standings: levels.map(|level| state.standing(level)).collect(),
        key,
        mark,
    })
}

/// A record as it is found, verified or not.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shown {
    /// Its number.
    pub sequence: i64,
    /// What it is about.
    pub kind: String,
    /// Its JSON.
    pub body: String,
    /// Its hash, as hex digits.
    pub hash: String,
}

/// The last records, in order, as they are found.
pub fn last(path: &Path, count: u64) -> Result<Vec<Shown>> {
    let mut store = open(path)?;
    store.begin()?;
    let rows = store.rows();
    store.abort();
    drop(store);
    show(path, (rows? as u64).saturating_sub(count) + 1, u64::MAX)
}

/// The records of these numbers, in order, as they are found.
pub fn show(path: &Path, first: u64, last: u64) -> Result<Vec<Shown>> {
    let mut store = open(path)?;
    store.begin()?;
    let mut shown = Vec::new();
    let read = store.read(first, last, &mut |raw| {
        shown.push(Shown {
            sequence: raw.sequence,
            kind: String::from_utf8_lossy(raw.kind).into_owned(),
            body: String::from_utf8_lossy(raw.body).into_owned(),
            hash: hex(raw.hash),
        });
    });
    store.abort();
    read.map(|()| shown)
}

fn open(path: &Path) -> Result<Sqlite> {
    // Looked for before the file: whoever is making a ledger makes these after it.
    let beside = key::key_path(path).exists() || mark::exists(path);
    if path.exists() {
        Sqlite::open(path, Access::Read)
    } else if beside {
        Err(Error::Emptied)
    } else {
        Err(Error::Missing)
    }
}
