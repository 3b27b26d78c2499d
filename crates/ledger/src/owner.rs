//! What owners record: caps, catalogs, and that they have looked into a failure. Each is checked whole before anything is appended, so that what is refused leaves no trace.

use whit_accounting::budget::Cap;
use whit_accounting::reserve::{Account, Level};
use whit_core::{Delta, Epsilon};

use crate::body::{self, Accept, CapBody, Hex, Resume, Suspend};
use crate::ledger::Terms;
use crate::record::{Hash, Kind, Receipt};
use crate::store::Store;
use crate::writer::Writer;
use crate::{Error, Result};

/// Which way a cap goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Raise,
    Lower,
}

impl<S: Store + 'static> Writer<S> {
    /// Records a cap.
    pub(crate) fn set_cap(
        &mut self,
        level: Level,
        (epsilon, delta): (Epsilon, Delta),
        direction: Direction,
    ) -> Result<Receipt> {
        check_level(&level)?;
        let opening = self.state().sound()?;
        let cap = Cap::new(opening.mode.0, opening.neighbours, epsilon, delta)?;
        let before = self.state().standing(level.clone()).cap;
        // A cap where there was none lowers; the data set has always had one, or has lost it and is closed.
        let fits = match (direction, before) {
            (Direction::Raise, Some(before)) => cap.exceeds(&before),
            (Direction::Lower, Some(before)) => before.exceeds(&cap) && !cap.exceeds(&before),
            (_, None) => true,
        };
        let word = match direction {
            Direction::Raise => "higher",
            Direction::Lower => "lower",
        };
        if !fits {
            return Err(Error::CapDirection {
                level,
                direction: word,
            });
        }
        let body = CapBody::new(&level, &cap).ok_or(Error::NoCap)?;
        self.append(Kind::Cap, body::write(&body))
    }

    /// Records a changed catalog.
    pub(crate) fn accept(&mut self, catalog: Hash) -> Result<Receipt> {
        let body = body::write(&Accept {
            catalog: Hex(catalog),
        });
        let receipt = self.append(Kind::Accept, body)?;
        // Whoever accepts through this handle knows it. Other handles are asked to open the ledger again.
        if self.follows() {
            self.follow(catalog);
        }
        Ok(receipt)
    }

    /// Stops all charges, since the statement of this one failed.
    pub(crate) fn suspend(&mut self, of: u64) -> Result<Receipt> {
        self.reservation(of)?;
        self.append(Kind::Suspend, body::write(&Suspend { of }))
    }

    /// Lets charges through again.
    pub(crate) fn resume(&mut self) -> Result<Receipt> {
        match self.state().running() {
            Ok(()) => Err(Error::NotSuspended),
            Err(_) => self.append(Kind::Resume, body::write(&Resume {})),
        }
    }

    /// Compares what an owner declares with what is recorded. What is stricter is recorded, what is laxer refused.
    pub(crate) fn adopt(&mut self, terms: &Terms) -> Result<()> {
        check_levels(terms)?;
        let opening = self.state().sound()?;
        if opening.dataset != terms.dataset {
            return Err(Error::OtherDataset {
                recorded: opening.dataset.clone(),
                given: terms.dataset.clone(),
            });
        }
        if opening.mode.0 != terms.mode {
            return Err(Error::OtherMode {
                recorded: opening.mode.0,
                given: terms.mode,
            });
        }
        if opening.neighbours != terms.neighbours {
            return Err(Error::OtherRelation {
                recorded: opening.neighbours,
                given: terms.neighbours,
            });
        }
        if opening.catalog != Hex(terms.catalog) {
            return Err(Error::CatalogChanged);
        }
        let mut lower = Vec::new();
        for (level, epsilon, delta) in &terms.caps {
            let cap = Cap::new(terms.mode, terms.neighbours, *epsilon, *delta)?;
            match self.state().standing(level.clone()).cap {
                Some(before) if cap.exceeds(&before) => {
                    let level = level.clone();
                    return Err(Error::CapRaised { level });
                }
                Some(before) if !before.exceeds(&cap) => {}
                // Its cap was lost with a damaged record: a new one is a promise, and not for a catalog to make.
                None if *level == Level::Dataset => return Err(Error::NoCap),
                _ => lower.push((level.clone(), (*epsilon, *delta))),
            }
        }
        for (level, promise) in lower {
            self.set_cap(level, promise, Direction::Lower)?;
        }
        self.follow(terms.catalog);
        Ok(())
    }
}

/// That each level has a proper name, and no other cap: of two the last would hold, whatever the owner meant.
pub(crate) fn check_levels(terms: &Terms) -> Result<()> {
    for (at, (level, ..)) in terms.caps.iter().enumerate() {
        check_level(level)?;
        if terms.caps[..at].iter().any(|(other, ..)| other == level) {
            let level = level.clone();
            return Err(Error::CapTwice { level });
        }
    }
    Ok(())
}

/// That an account can have this level.
fn check_level(level: &Level) -> Result<()> {
    let anybody = Account::new("x")?;
    match level {
        Level::Team(name) => anybody.team(name)?,
        Level::Analyst(name) => anybody.analyst(name)?,
        _ => anybody,
    };
    Ok(())
}
