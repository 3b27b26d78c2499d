//! What comes back from a session. All of it is public.

use serde::{Deserialize, Serialize};
use whit_accounting::Price;
use whit_accounting::budget::Cost;
use whit_accounting::reserve::{Level, Standing};
use whit_core::{Delta, Epsilon};
use whit_ledger::Receipt;
use whit_sql::{Answer, Explanation, PrivatePlan};

use super::concentrated;

/// An answer, what it cost, what is left, and the receipt of both. JSON: one object.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Reply {
    /// Columns, rows and intervals.
    #[serde(flatten)]
    pub answer: Answer,
    /// What was charged for it just now.
    pub charge: Charge,
    /// What is left at every level.
    pub remaining: Remaining,
    /// Was it answered before, so that it cost nothing?
    pub reused: bool,
    /// Was it computed on made-up rows?
    pub dummy: bool,
    /// The hash that commits the ledger to this answer and everything before it.
    pub receipt: String,
    /// What a reader of the intervals must know, if there is such a thing: about the statement, and not about its rows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<&'static str>,
    /// For each column, whether its cells have intervals.
    #[serde(skip)]
    pub bounded: Vec<bool>,
}

/// What is kept with a charge, so that the same question has the same answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Stored {
    #[serde(flatten)]
    pub(super) answer: Answer,
    pub(super) charge: Charge,
}

impl Stored {
    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).expect("an answer is plain data")
    }

    pub(super) fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

impl Reply {
    pub(super) fn fresh(
        stored: Stored,
        plan: &PrivatePlan,
        remaining: Remaining,
        receipt: Receipt,
    ) -> Self {
        Self {
            notes: plan.caveats(),
            bounded: plan.bounded(),
            answer: stored.answer,
            charge: stored.charge,
            remaining,
            reused: false,
            dummy: false,
            receipt: receipt.to_string(),
        }
    }

    pub(super) fn reused(
        stored: Stored,
        plan: &PrivatePlan,
        remaining: Remaining,
        receipt: Receipt,
    ) -> Self {
        Self {
            charge: stored.charge.nothing(),
            reused: true,
            ..Self::fresh(stored, plan, remaining, receipt)
        }
    }
}

/// A price: of the statement on its own, and in the sums of the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Charge {
    /// Epsilon of the statement on its own.
    pub epsilon: f64,
    /// Delta of the statement on its own.
    pub delta: f64,
    /// What it adds to the sum of concentrated losses, if that is what the ledger adds up.
    pub rho: Option<f64>,
    /// What it adds to the sum of deltas beside it.
    pub delta0: Option<f64>,
}

impl Charge {
    pub(super) fn new(alone: Price, cost: &Cost) -> Self {
        let (rho, delta0) = concentrated(cost).unzip();
        Self {
            epsilon: alone.epsilon.value(),
            delta: alone.delta.value(),
            rho,
            delta0,
        }
    }

    /// The same kind of charge, of nothing.
    pub(super) fn nothing(self) -> Self {
        Self {
            epsilon: 0.0,
            delta: 0.0,
            rho: self.rho.map(|_| 0.0),
            delta0: self.delta0.map(|_| 0.0),
        }
    }
}

/// What is left at every level; none where there is no such level, or it has no cap.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Remaining {
    /// For everybody.
    pub dataset: Left,
    /// For the team.
    pub team: Option<Left>,
    /// For the analyst.
    pub analyst: Option<Left>,
}

/// What is left of a cap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Left {
    /// Epsilon of a whole that would use up what is left.
    pub epsilon: f64,
    /// Its delta.
    pub delta: f64,
}

impl Left {
    /// A pair of units.
    pub fn new(epsilon: Epsilon, delta: Delta) -> Self {
        Self {
            epsilon: epsilon.value(),
            delta: delta.value(),
        }
    }

    /// Where a level stands, if it has a cap.
    pub fn of(standing: &Standing) -> Option<Self> {
        let left = standing.cap?.remaining(standing.spent);
        Some(Self::new(left.epsilon, left.delta))
    }
}

impl Remaining {
    pub(super) fn new(standings: &[Standing]) -> Self {
        let left = |is: fn(&Level) -> bool| {
            let standing = standings.iter().find(|standing| is(&standing.level));
            standing.and_then(Left::of)
        };
        Self {
            // A data set without a cap has nothing to spend.
            dataset: left(|level| *level == Level::Dataset).unwrap_or_default(),
            team: left(|level| matches!(level, Level::Team(_))),
            analyst: left(|level| matches!(level, Level::Analyst(_))),
        }
    }
}

/// What a question would do and cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Explained {
    /// The plan.
    #[serde(flatten)]
    pub explanation: Explanation,
    /// What it would be charged.
    pub charge: Charge,
    /// What is left as long as nothing is charged.
    pub remaining: Remaining,
    /// For how many such statements there is room, at least. An epsilon that is left says little of that where concentrated losses
    /// are added up.
    pub room: u64,
}

/// For how many charges like this there is room at every level.
pub(super) fn room(charge: &Charge, standings: &[Standing]) -> u64 {
    let loss = charge.rho.unwrap_or(charge.epsilon);
    let delta = charge.delta0.unwrap_or(charge.delta);
    let times = |left: f64, cost: f64| {
        let times = (left / cost).floor();
        // The quotient is rounded, this is not: its sign is right.
        let is_too_much = times.mul_add(cost, -left) > 0.0;
        (if is_too_much { times - 1.0 } else { times }) as u64
    };
    let left = standings.iter().filter_map(|standing| {
        let left = standing.cap?.remaining(standing.spent).left;
        let by_loss = times(left.loss.to_f64_down(), loss);
        let by_delta = match delta {
            0.0 => u64::MAX,
            delta => times(left.delta.to_f64_down(), delta),
        };
        Some(by_loss.min(by_delta))
    });
    left.min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_counted_exactly() {
        use whit_accounting::budget::{Cap, Mode, Sums};
        use whit_core::Neighbours;
        let check = |epsilon: f64, cost: f64, times: u64| {
            let cap = Epsilon::new(epsilon).expect("an epsilon");
            let cap = Cap::new(Mode::Pure, Neighbours::AddRemove, cap, Delta::ZERO);
            let standing = Standing {
                level: Level::Dataset,
                cap: Some(cap.expect("a cap")),
                spent: Sums::default(),
            };
            let charge = Charge {
                epsilon: cost,
                delta: 0.0,
                rho: None,
                delta0: None,
            };
            assert_eq!(room(&charge, &[standing]), times, "{cost} of {epsilon}");
        };
        check(1.0, 0.5, 2);
        // A tenth as a float is more than a tenth, so the tenth one does not fit.
        check(1.0, 0.1, 9);
        check(0.75, 0.25, 3);
        check(1.0, 2.0, 0);
    }
}
