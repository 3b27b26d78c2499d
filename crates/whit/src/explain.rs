//! A guarantee in numbers that a person can weigh.

use serde::Serialize;
use whit_accounting::interpret::Guarantee;
use whit_core::{Delta, Epsilon, Probability, Ratio};

use crate::{Error, Result};

/// What to explain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question {
    /// The loss.
    pub epsilon: Epsilon,
    /// The slack.
    pub delta: Delta,
    /// What somebody believes about one person before the answer, as a probability.
    pub prior: f64,
    /// How many people hang together, such as a household.
    pub group: u32,
}

/// Bounds that hold for every mechanism with the guarantee, every attacker and all side knowledge.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The loss for the whole group.
    pub epsilon: f64,
    /// The slack for the whole group.
    pub delta: f64,
    /// How many people it is for.
    pub group: u32,
    /// The chance of anything that comes of the answer is multiplied by at most this.
    pub risk_factor_max: f64,
    /// How often a guess between present and absent is right, at most; a coin is right half the time.
    pub right_guesses_max: f64,
    /// How much more often a test flags the present than the absent, at most.
    pub advantage_max: f64,
    /// What was believed before.
    pub prior: f64,
    /// What is believed afterwards, at least.
    pub posterior_min: f64,
    /// What is believed afterwards, at most.
    pub posterior_max: f64,
    /// The probability that an answer moves the belief beyond one of these, at most.
    pub posterior_except: f64,
    /// Tests of membership: whoever flags this share of the absent …
    pub tests: Vec<Test>,
}

/// The best that a test of membership can do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Test {
    /// Wrongly flags this share of the absent.
    pub false_positives: f64,
    /// Misses at least this share of the present.
    pub false_negatives_min: f64,
}

/// The shares of false alarms that are told about.
const FALSE_POSITIVES: [f64; 3] = [0.01, 0.05, 0.2];
/// Points of a curve.
const CURVE_POINTS: u32 = 100;

/// Explains a guarantee. Refused if nothing of it is left for a group this large.
pub fn explain(question: Question) -> Result<Explanation> {
    let guarantee = guarantee(question)?;
    let prior = probability("the prior", question.prior)?;
    let posterior = guarantee.posterior(&prior);
    let test = |false_positives| {
        Ok(Test {
            false_positives,
            false_negatives_min: guarantee
                .false_negatives_min(&probability("a share", false_positives)?),
        })
    };
    Ok(Explanation {
        epsilon: guarantee.epsilon.value(),
        delta: guarantee.delta.value(),
        group: question.group,
        risk_factor_max: guarantee.risk_factor_max(),
        right_guesses_max: guarantee.right_guesses_max(),
        advantage_max: guarantee.advantage_max(),
        prior: question.prior,
        posterior_min: posterior.low,
        posterior_max: posterior.high,
        posterior_except: posterior.except,
        tests: FALSE_POSITIVES
            .into_iter()
            .map(test)
            .collect::<Result<_>>()?,
    })
}

/// The edge of what a test can reach: false positives, and the least false negatives for each.
pub fn trade_off(question: Question) -> Result<Vec<(f64, f64)>> {
    let guarantee = guarantee(question)?;
    (0..=CURVE_POINTS)
        .map(|i| {
            let false_positives = f64::from(i) / f64::from(CURVE_POINTS);
            Ok((
                false_positives,
                guarantee.false_negatives_min(&probability("a share", false_positives)?),
            ))
        })
        .collect()
}

fn guarantee(question: Question) -> Result<Guarantee> {
    if question.group == 0 {
        let given = question.group.to_string();
        return Err(whit_core::Error::OutOfDomain {
            what: "the group",
            given,
            domain: "a number of people, at least 1",
        }
        .into());
    }
    let single = Guarantee {
        epsilon: question.epsilon,
        delta: question.delta,
    };
    Ok(single.group(question.group)?)
}

fn probability(what: &'static str, value: f64) -> Result<Probability> {
    let ratio = Ratio::from_f64(value).and_then(|ratio| Probability::new(ratio).ok());
    ratio.ok_or_else(|| {
        let given = value.to_string();
        Error::from(whit_core::Error::OutOfDomain {
            what,
            given,
            domain: "a number from 0 to 1",
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(epsilon: f64, delta: f64, prior: f64, group: u32) -> Question {
        Question {
            epsilon: Epsilon::new(epsilon).expect("a unit"),
            delta: Delta::new(delta).expect("a unit"),
            prior,
            group,
        }
    }

    #[test]
    fn a_group_is_explained_as_a_whole() {
        let one = explain(question(1.0, 0.0, 0.01, 1)).expect("explained");
        let three = explain(question(1.0, 0.0, 0.01, 3)).expect("explained");
        assert_eq!((one.epsilon, three.epsilon), (1.0, 3.0));
        assert!(
            three.posterior_max > one.posterior_max
                && three.right_guesses_max > one.right_guesses_max
        );
        assert!((one.posterior_max - 0.02672).abs() < 1e-5);
    }

    #[test]
    fn a_curve_falls_from_one_to_nothing() {
        let curve = trade_off(question(1.0, 0.0, 0.5, 1)).expect("a curve");
        assert!((curve[0].1 - 1.0).abs() < 1e-12 && curve.last().expect("points").1 == 0.0);
        assert!(curve.windows(2).all(|pair| pair[0].1 >= pair[1].1));
    }

    #[test]
    fn refuses_what_has_no_meaning() {
        assert!(explain(question(1.0, 0.0, 1.5, 1)).is_err());
        assert!(explain(question(1.0, 0.0, f64::NAN, 1)).is_err());
        assert!(explain(question(1.0, 0.0, 0.5, 0)).is_err());
        assert!(explain(question(1.0, 1e-3, 0.5, 1000)).is_err());
    }
}
