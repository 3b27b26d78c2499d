//! Going on after damage.
//!
//! What a damaged record had spent is not known, and neither is how many are missing at the end if the head is damaged. So the
//! damage is not repaired: it stays where it is, a `recover` record names it row by row, and with it **the whole budget counts
//! as spent**, at every level that has a cap. An owner who knows better raises the cap, which is a record, too.
//!
//! A lost key is damage as well. The public key stands in the chain that it vouches for, so somebody without the old key can
//! write another chain, with another key in it, that is sound by itself; what gives it away is that the key file does not fit.
//! Who could also take the key file away must not win by that. A new key is made, the record says so, and the budget is closed.
//! A lost mark is damage for the same reason: an old copy is sound by itself, and nothing else beside the ledger says that there was more.
//! (Who can put a key file of their own in its place is found out only by receipts that were kept elsewhere.)
//!
//! What cannot be recovered here is a file that is no database any more; for that, put back a copy, and compare its head with
//! the receipts that have left since.

use std::path::Path;

use whit_accounting::budget::Sums;

use crate::body::{self, Damage, Hex, Recover, Units};
use crate::key::{self, HeadKey, Name, key_path, new_key_path};
use crate::ledger::{Terms, first_caps, opening};
use crate::record::{Kind, Receipt};
use crate::sqlite::{Access, Sqlite, real_path};
use crate::store::Store;
use crate::writer::{Writer, load};
use crate::{Error, Result};

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovered {
    /// Rows that are not as they were written.
    pub altered: u64,
    /// Rows that are not there.
    pub missing: u64,
    /// Whether the budget is closed now: it always is.
    pub closed: bool,
    /// The record that says so.
    pub receipt: Receipt,
}

/// Records the damage of the ledger at `path` and closes its budget, with a new key or mark if the old one is lost. `terms` say what the ledger
/// was for, should its own beginning be damaged; nothing that is recorded is changed by them.
pub fn recover(path: &Path, terms: &Terms) -> Result<Recovered> {
    if !path.exists() {
        return Err(Error::Missing);
    }
    let path = &real_path(path);
    let mut store = Sqlite::open(path, Access::Write)?;
    store.begin()?;
    let (state, seen) = load(&mut store)?;
    if state.is_new() {
        return Err(Error::Emptied);
    }
    let mut damage = state.damage().to_vec();
    let recorded = state.opening().map(|opening| opening.public_key.0);
    let key = match recorded.map(|public| key::load(path, &public)) {
        Some(Ok(found)) => Some(found),
        None | Some(Err(Error::KeyMissing | Error::KeyMismatch)) => None,
        // A key that cannot be read just now is not lost.
        Some(Err(error)) => return Err(error),
    };
    // A ledger that is just being made has no charge and needs no recovery: who opens it gives it its mark.
    let young = state.counts().0 == 0 && !key_path(path).exists();
    if store.mark()?.is_none() && !young {
        damage.push(Damage::Head);
    }
    if damage.is_empty() && key.is_some() {
        return Err(Error::NothingToRecover);
    }
    // A new key that is waiting for nothing must not take the place of the proper one.
    let (key, name) = match key {
        Some(found) => found,
        None => {
            damage.push(Damage::Key);
            let key = HeadKey::fresh()?;
            key.write(&new_key_path(path))?;
            (key, Name::New)
        }
    };
    let mut opening = match state.opening() {
        Some(found) => found.clone(),
        None => opening(terms, key.public()),
    };
    opening.public_key = Hex(key.public());
    let floor = floor(terms)?;
    let body = Recover {
        opening,
        damage: damage.clone(),
        loss_floor: Units(floor.loss),
        delta_floor: Units(floor.delta),
    };
    let mut writer = Writer::new(store, state, key, seen);
    let receipt = writer.append(Kind::Recover, body::write(&body))?;
    writer.commit()?;
    writer.found_mark()?;
    if name == Name::New {
        key::promote(path)?;
    }
    let rows = |damage: &Damage| match damage {
        Damage::Altered { .. } => (1, 0),
        Damage::Missing { first, last } => (0, last - first + 1),
        Damage::Head | Damage::Key => (0, 0),
    };
    let (altered, missing) = damage
        .iter()
        .map(rows)
        .fold((0, 0), |sum, rows| (sum.0 + rows.0, sum.1 + rows.1));
    Ok(Recovered {
        altered,
        missing,
        closed: true,
        receipt,
    })
}

/// What the data set has spent at least: all that the terms allow.
fn floor(terms: &Terms) -> Result<Sums> {
    let caps = first_caps(terms)?.into_iter();
    let limits = caps.map(|cap| (cap.loss_limit.0, cap.delta_limit.0));
    Ok(limits.fold(Sums::default(), |most, (loss, delta)| Sums {
        loss: most.loss.max(loss),
        delta: most.delta.max(delta),
    }))
}
