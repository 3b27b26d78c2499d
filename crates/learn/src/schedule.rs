//! # Learning rates over a run
//! A function of the step alone, so it is public: of the plan, and of nothing that was learned.

use serde::{Deserialize, Serialize};

use crate::error::{Result, within};

/// How the learning rate goes from its first value, which is that of the first step, to its last.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Schedule {
    /// The same in every step.
    Constant {
        /// The learning rate.
        rate: f64,
    },
    /// A straight line.
    Linear {
        /// In the first step.
        first: f64,
        /// In the last step.
        last: f64,
    },
    /// Half a wave: slow at both ends.
    Cosine {
        /// In the first step.
        first: f64,
        /// In the last step.
        last: f64,
    },
}

impl Schedule {
    /// Refuses rates that are negative or no numbers, and a first one of zero.
    pub fn check(&self) -> Result<()> {
        let (first, last) = self.ends();
        let positive = first > 0.0 && first < f64::INFINITY;
        within("learning rate", first, positive, "a number above 0")?;
        let finite = (0.0..f64::INFINITY).contains(&last);
        within("last learning rate", last, finite, "a number from 0 on")
    }

    fn ends(&self) -> (f64, f64) {
        match *self {
            Self::Constant { rate } => (rate, rate),
            Self::Linear { first, last } | Self::Cosine { first, last } => (first, last),
        }
    }

    /// The rate of step `step`, the first of which is 0, of `steps`.
    pub fn rate(&self, step: u64, steps: u64) -> f64 {
        let (first, last) = self.ends();
        let way = if steps > 1 {
            (step as f64 / (steps - 1) as f64).min(1.0)
        } else {
            0.0
        };
        let share = match self {
            Self::Constant { .. } => 0.0,
            Self::Linear { .. } => way,
            Self::Cosine { .. } => 0.5 - 0.5 * (std::f64::consts::PI * way).cos(),
        };
        first * (1.0 - share) + last * share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_go_from_the_first_to_the_last() {
        let (first, last) = (8.0, 2.0);
        let linear = Schedule::Linear { first, last };
        let cosine = Schedule::Cosine { first, last };
        for (schedule, step, expected) in [
            (Schedule::Constant { rate: 0.15 }, 3, 0.15),
            (linear, 0, 8.0),
            (linear, 1, 6.5),
            (linear, 2, 5.0),
            (linear, 4, 2.0),
            (linear, 99, 2.0),
            (cosine, 0, 8.0),
            // (1 - cos(π/4))/2 of the way.
            (cosine, 1, 8.0 - 6.0 * 0.146_446_609_406_726_24),
            (cosine, 2, 5.0),
            (cosine, 4, 2.0),
        ] {
            let found = schedule.rate(step, 5);
            assert!(
                (found - expected).abs() < 1e-12,
                "{schedule:?} {step}: {found}"
            );
        }
        assert_eq!(linear.rate(0, 1), 8.0);
        assert_eq!(linear.rate(0, 0), 8.0);
    }

    #[test]
    fn rates_that_do_not_learn_are_refused() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Schedule::Constant { rate }.check().is_err());
            let cosine = Schedule::Cosine {
                first: 1.0,
                last: rate,
            };
            assert_eq!(cosine.check().is_ok(), rate == 0.0, "{rate}");
        }
    }

    #[test]
    fn schedules_are_read_from_plans() {
        let read: Schedule =
            serde_json::from_str(r#"{"cosine":{"first":2,"last":0.1}}"#).expect("known");
        let (first, last) = (2.0, 0.1);
        assert_eq!(read, Schedule::Cosine { first, last });
        assert!(serde_json::from_str::<Schedule>(r#"{"cosine":{"first":2}}"#).is_err());
    }
}
