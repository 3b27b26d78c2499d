//! What can be ordered of a session: one run, or a search.

use serde::Serialize;
use whit_core::{Delta, Neighbours};
use whit_learn::checkpoint::{Place, Run};
use whit_learn::model::Architecture;
use whit_learn::{Plan, Priced, Recipe, SearchPlan, Summary, search};

/// A plan that a ledger can be charged for, whole and before a row is read.
pub trait Planned: Priced {
    /// What it promises, in numbers.
    type Summary: Serialize;

    /// Whom it protects.
    fn relation(&self) -> Neighbours;
    /// The slack.
    fn delta(&self) -> Delta;
    /// What it promises.
    fn summary(&self) -> Self::Summary;
    /// What its folder belongs to.
    fn run(&self, recipe: &Recipe) -> Run;
    /// Refuses what can be refused by what is public about the data, and gives the network.
    fn check(&self, recipe: &Recipe, shape: &[usize]) -> whit_learn::Result<Architecture>;
    /// Refuses what was begun in a place and cannot go on.
    fn goes_on(&self, place: &Place) -> whit_learn::Result<()>;
}

impl Planned for Plan {
    type Summary = Summary;

    fn relation(&self) -> Neighbours {
        Self::relation(self)
    }

    fn delta(&self) -> Delta {
        Self::delta(self)
    }

    fn summary(&self) -> Summary {
        Self::summary(self)
    }

    fn run(&self, recipe: &Recipe) -> Run {
        recipe.run(self)
    }

    fn check(&self, recipe: &Recipe, shape: &[usize]) -> whit_learn::Result<Architecture> {
        recipe.check(self, shape)
    }

    fn goes_on(&self, _: &Place) -> whit_learn::Result<()> {
        Ok(())
    }
}

impl Planned for SearchPlan {
    type Summary = search::Summary;

    fn relation(&self) -> Neighbours {
        Self::relation(self)
    }

    fn delta(&self) -> Delta {
        Self::delta(self)
    }

    fn summary(&self) -> search::Summary {
        Self::summary(self)
    }

    fn run(&self, recipe: &Recipe) -> Run {
        Self::run(self, recipe)
    }

    fn check(&self, recipe: &Recipe, shape: &[usize]) -> whit_learn::Result<Architecture> {
        // Whoever is charged has a watch.
        if !self.is_padded() {
            return Err(whit_learn::Error::Field {
                of: "a search that a ledger is charged for",
                field: "pad",
                missing: true,
                passes: "pad = 40 in [search]: always so many runs are made, so that the time does not tell how many count",
            });
        }
        Self::check(self, recipe, shape)
    }

    fn goes_on(&self, place: &Place) -> whit_learn::Result<()> {
        self.found_in(place).map(|_| ())
    }
}
