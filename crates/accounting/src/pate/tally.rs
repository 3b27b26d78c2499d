//! # A whole run, order by order
//! Divergences add up at each order, and each order gives an epsilon; the best is told.
//!
//! **Answers.** The test of every query that was looked at is counted, and the noisy maximum of a query
//! - *realised*: where it was answered;
//! - *expected*: weighted with the probability that it is, as the papers do. That is the mean over the noise of what a run costs, and
//!   describes no run.
//!
//! **Conversion.** The published one is `ε = ρ + ln(1/δ)/(α-1)` [Mir17, Prop. 3]. The other is never larger:
//! `ε = ρ + ln(1-1/α) - (ln δ + ln α)/(α-1)` [CKS20, Prop. 12].

use std::collections::BTreeMap;

use super::bound::{Gaussian, ln_answered, ln_q_gaussian};
use crate::rdp::epsilon_upper;

/// The orders of a tally: steps of a half up to 100, then 100 more, evenly in the logarithm, up to 1000. The half steps are those that the published tables
/// were made with.
pub fn orders() -> Vec<f64> {
    let small = (3..=200).map(|half| f64::from(half) / 2.0);
    let large = (1..=100).map(|i| 100.0 * libm::exp10(f64::from(i) / 100.0));
    small.chain(large).collect()
}

/// How an order's divergence becomes an epsilon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// That of the papers.
    Published,
    /// The tighter one.
    Tight,
}

/// An epsilon, and the order that gave it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Best {
    /// An estimate.
    pub epsilon: f64,
    /// Where it was found.
    pub order: f64,
}

/// The public numbers of an aggregator that a cost depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// The threshold and its noise; `None` if every query is answered.
    pub test: Option<Test>,
    /// The noise of the maximum.
    pub sigma: f64,
}

/// The test whether teachers agree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Test {
    /// How many votes the winner needs, up to noise.
    pub threshold: f64,
    /// The noise.
    pub sigma: f64,
}

/// What a run costs at its votes, and what it would in the worst case.
#[derive(Clone, Debug)]
pub struct Tally {
    cost: Cost,
    orders: Vec<f64>,
    dependent: Vec<f64>,
    tests: f64,
    answers: f64,
    /// Rows of tests by the most votes, which are few: their sums of weights.
    by_most: BTreeMap<u64, f64>,
    /// Weights of maxima by their `ln q`.
    by_loss: BTreeMap<u64, f64>,
    settled: bool,
}

impl Tally {
    /// Nothing yet.
    pub fn new(cost: Cost) -> Self {
        let orders = orders();
        Self {
            cost,
            dependent: vec![0.0; orders.len()],
            orders,
            tests: 0.0,
            answers: 0.0,
            by_most: BTreeMap::new(),
            by_loss: BTreeMap::new(),
            settled: true,
        }
    }

    /// The probability that a query with these votes is answered.
    pub fn answered(&self, counts: &[f64]) -> f64 {
        self.cost.test.map_or(1.0, |test| {
            libm::exp(ln_answered(counts, test.threshold, test.sigma))
        })
    }

    /// A query that was looked at, and answered or not.
    pub fn realised(&mut self, counts: &[f64], answered: bool) {
        self.add(counts, if answered { 1.0 } else { 0.0 });
    }

    /// A query by its expectation.
    pub fn expected(&mut self, counts: &[f64]) {
        self.add(counts, self.answered(counts));
    }

    fn add(&mut self, counts: &[f64], weight: f64) {
        self.settled = false;
        if let Some(test) = self.cost.test {
            self.tests += 1.0;
            let ln = ln_answered(counts, test.threshold, test.sigma);
            *self.by_most.entry((-ln).to_bits()).or_default() += 1.0;
        }
        if weight > 0.0 {
            self.answers += weight;
            let ln_q = ln_q_gaussian(counts, self.cost.sigma);
            *self.by_loss.entry((-ln_q).to_bits()).or_default() += weight;
        }
    }

    /// How many answers were counted.
    pub fn answers(&self) -> f64 {
        self.answers
    }

    fn settle(&mut self) {
        if self.settled {
            return;
        }
        let (tests, maxima) = (&self.by_most, &self.by_loss);
        let test = self.cost.test;
        let rows: Vec<(Gaussian, f64)> = tests
            .iter()
            .filter_map(|(ln, count)| {
                let bound = Gaussian::threshold(-f64::from_bits(*ln), test?.sigma);
                Some((bound, *count))
            })
            .chain(maxima.iter().map(|(ln, count)| {
                let bound = Gaussian::new(-f64::from_bits(*ln), self.cost.sigma);
                (bound, *count)
            }))
            .collect();
        for (sum, order) in self.dependent.iter_mut().zip(&self.orders) {
            *sum = rows
                .iter()
                .map(|(bound, count)| count * bound.at(*order))
                .sum();
        }
        self.settled = true;
    }

    /// The divergence at these votes, at each order of [`orders()`].
    pub fn dependent(&mut self) -> &[f64] {
        self.settle();
        &self.dependent
    }

    /// The worst case of as many tests and answers, at one order.
    pub fn independent_at(&self, order: f64) -> f64 {
        let test = self.cost.test.map_or(0.0, |test| {
            self.tests * order / (2.0 * test.sigma * test.sigma)
        });
        test + self.answers * order / (self.cost.sigma * self.cost.sigma)
    }

    /// The epsilon at these votes: the owner's, and an estimate.
    pub fn epsilon(&mut self, delta: f64, conversion: Conversion) -> Best {
        self.settle();
        best(&self.orders, &self.dependent, delta, conversion)
    }

    /// The epsilon of as many tests and answers at any votes, by the same conversion. Where answers are expected or counted after the fact, it too is the owner's.
    pub fn epsilon_independent(&self, delta: f64, conversion: Conversion) -> Best {
        let costs: Vec<f64> = self
            .orders
            .iter()
            .map(|order| self.independent_at(*order))
            .collect();
        best(&self.orders, &costs, delta, conversion)
    }
}

fn best(orders: &[f64], costs: &[f64], delta: f64, conversion: Conversion) -> Best {
    let each = orders.iter().zip(costs).map(|(&order, &cost)| Best {
        epsilon: match conversion {
            Conversion::Published => cost - libm::log(delta) / (order - 1.0),
            Conversion::Tight => epsilon_upper(cost, order, delta),
        },
        order,
    });
    let none = Best {
        epsilon: f64::INFINITY,
        order: f64::INFINITY,
    };
    each.fold(none, |best, next| {
        if next.epsilon < best.epsilon {
            next
        } else {
            best
        }
    })
}

#[cfg(test)]
#[path = "tally_test.rs"]
mod tests;
