//! A journal without a disk.

use std::collections::BTreeMap;
use std::convert::Infallible;

use crate::account::{Level, Standing};
use crate::budget::{Amount, Cap, Sums};
use crate::reserve::{Entry, Journal, Outcome, Refusal};

/// A journal that lives as long as the process: for tests, and for programs that answer for their budget themselves.
#[derive(Clone, Debug)]
pub struct Memory {
    dataset: String,
    caps: BTreeMap<Level, Cap>,
    spent: BTreeMap<Level, Sums>,
    kept: u64,
}

impl Memory {
    /// Nothing spent, and a cap for the data set.
    pub fn new(dataset: &str, cap: Cap) -> Self {
        Self {
            dataset: dataset.to_owned(),
            caps: BTreeMap::from([(Level::Dataset, cap)]),
            spent: BTreeMap::new(),
            kept: 0,
        }
    }

    /// The same with a cap for one more level.
    pub fn with_cap(mut self, level: Level, cap: Cap) -> Self {
        self.caps.insert(level, cap);
        self
    }

    /// Where a level stands.
    pub fn standing(&self, level: Level) -> Standing {
        Standing {
            cap: self.caps.get(&level).copied(),
            spent: self.spent.get(&level).copied().unwrap_or_default(),
            level,
        }
    }
}

impl Journal for Memory {
    type Error = Infallible;

    fn keep(&mut self, entry: &Entry) -> std::result::Result<Outcome, Infallible> {
        if entry.account().dataset() != self.dataset {
            return Ok(Outcome::Refused(Refusal::NoCap));
        }
        let levels = entry.account().levels().into_iter();
        let standings: Vec<Standing> = levels.map(|level| self.standing(level)).collect();
        let approval = match entry.verdict(&standings) {
            Ok(approval) => approval,
            Err(refusal) => return Ok(Outcome::Refused(refusal)),
        };
        for standing in standings {
            let sum = standing.spent.checked_add(entry.cost().sums());
            // Levels without a cap may grow beyond all amounts, and stay there.
            let most = Sums {
                loss: Amount::from_units(u128::MAX),
                delta: Amount::from_units(u128::MAX),
            };
            self.spent.insert(standing.level, sum.unwrap_or(most));
        }
        self.kept += 1;
        Ok(Outcome::Kept {
            sequence: self.kept,
            approval,
        })
    }
}
