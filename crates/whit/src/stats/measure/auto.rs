//! A statistic of numbers whose bounds are searched for first.
//!
//! **Guarantee.** The search is released with its own part of the budget. The statistic that follows is one of a family, one for each
//! range that can be found, and every member keeps to the same rest of the budget: an accountant is told only this (`Pure` or
//! `Approximate`), before any data is read. So the price is the same whatever is found, and by basic (adaptive) composition it
//! is the sum. After the search, the member that was chosen is priced once more and withheld if it were dearer.
//!
//! Nothing can fail by what is found: all ranges lie between the extremes, for which the statistic was built beforehand.

use std::io::Read;

use whit_core::{Confidence, Entropy, Event, Relation};
use whit_mechanism::Contribution;

use super::bounds::Search;
use super::ranged::Ranged;
use super::{Outcome, ends};
use crate::stats::input::Input;
use crate::stats::target::Target;
use crate::stats::{SearchedRange, Statistic, Value};
use crate::{Error, Result};

pub(crate) struct Auto<R: Relation> {
    search: Search<R>,
    search_target: Target,
    statistic: Statistic,
    /// What the statistic may cost.
    rest: Target,
    contribution: Contribution,
}

impl<R: Relation> Auto<R> {
    pub(super) fn new(
        statistic: &Statistic,
        target: Target,
        contribution: Contribution,
    ) -> Result<Self> {
        let (search_target, rest) = target.split()?;
        let search = Search::new(&search_target, contribution)?;
        for bounds in search.extremes()? {
            let ranged = Ranged::<R>::new(statistic, &rest, contribution, bounds)?;
            if !rest.covers(&ranged.event())? {
                return Err(Error::Overcharged);
            }
        }
        Ok(Self {
            search,
            search_target,
            statistic: statistic.clone(),
            rest,
            contribution,
        })
    }

    pub(super) fn event(&self) -> Event {
        let statistic = self.rest.event(R::NEIGHBOURS);
        let both = self.search.event().and(statistic);
        both.expect("both speak of the relation R")
    }

    /// Spends one `event`, even if no bounds are found: that nothing was found is an answer too.
    pub(super) fn release(
        &self,
        input: &mut Input<impl Read>,
        confidence: Confidence,
        entropy: &mut impl Entropy,
    ) -> Result<Outcome> {
        // Both steps see the same rows, bounded in the same way.
        let values: Vec<f64> = input.numbers().collect();
        let found = self.search.release(values.iter().copied(), entropy)?;
        if *found.event() != self.search.event() {
            return Err(Error::EventChanged);
        }
        let outcome = |value, noise, range: Option<[f64; 2]>| Outcome {
            event: self.event(),
            value,
            noise,
            range: Some(SearchedRange {
                low: range.map(|[low, _]| low),
                high: range.map(|[_, high]| high),
                epsilon: self.search_target.epsilon,
            }),
        };
        let Some(found) = found.into_value() else {
            return Ok(outcome(Value::no_bounds(), Vec::new(), None));
        };
        let bounds = found.bounds()?;
        let ranged = Ranged::<R>::new(&self.statistic, &self.rest, self.contribution, bounds)?;
        if !self.rest.covers(&ranged.event())? {
            return Err(Error::EventChanged);
        }
        let release = ranged.release(values.into_iter(), confidence, entropy)?;
        if *release.event() != ranged.event() {
            return Err(Error::EventChanged);
        }
        Ok(outcome(
            release.into_value(),
            ranged.noise(),
            Some(ends(bounds)),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{NoiseKind, Request};
    use whit_core::{AddRemove, Delta, Epsilon, ReplaceOne};
    use whit_mechanism::Bounds;

    fn target(statistic: &Statistic, epsilon: f64, mechanism: NoiseKind) -> Target {
        let epsilon = Epsilon::new(epsilon).expect("a unit");
        let mut request = Request::new(statistic.clone(), epsilon);
        if mechanism == NoiseKind::Gaussian {
            request.delta = Delta::new(1e-6).expect("a unit");
        }
        request.mechanism = Some(mechanism);
        Target::new(&request).expect("can be spent")
    }

    /// Returns how many ranges there were, if the request can be answered at all.
    fn check<R: Relation>(
        statistic: &Statistic,
        target: Target,
        of: Contribution,
        each: usize,
    ) -> usize {
        let Ok(auto) = Auto::<R>::new(statistic, target, of) else {
            return 0;
        };
        let ranges: Vec<(f64, f64)> = auto.search.ranges().step_by(each).collect();
        for &(lower, upper) in &ranges {
            let bounds = Bounds::new(lower, upper).expect("a range");
            let ranged = Ranged::<R>::new(statistic, &auto.rest, of, bounds).expect("in reach");
            let covered = auto.rest.covers(&ranged.event());
            assert!(covered.expect("priced"), "{statistic} {lower} {upper}");
        }
        ranges.len()
    }

    /// Nothing can fail by what is found, and nothing is dearer than was announced, up to the ends of what can be asked.
    #[test]
    fn every_range_that_can_be_found_keeps_to_the_rest() {
        let (laplace, gaussian) = (NoiseKind::Laplace, NoiseKind::Gaussian);
        let units = Contribution::rows_per_unit(7).expect("a cap");
        let statistics = [Statistic::Sum, Statistic::Mean, Statistic::Variance];
        let mut tried = 0;
        for statistic in &statistics {
            for power in (-20..=20).step_by(2) {
                let target = target(statistic, 10_f64.powi(power) / 3.0, laplace);
                tried += check::<AddRemove>(statistic, target, units, 151);
                tried += check::<ReplaceOne>(statistic, target, Contribution::Row, 151);
            }
            let target = |mechanism| target(statistic, 0.7, mechanism);
            tried += check::<AddRemove>(statistic, target(laplace), Contribution::Row, 9);
            tried += check::<ReplaceOne>(statistic, target(gaussian), units, 499);
        }
        let median = Statistic::Median;
        let choice = target(&median, 0.7, NoiseKind::Exponential);
        tried += check::<AddRemove>(&median, choice, units, 31);
        assert!(tried > 3000, "{tried}");
    }
}
