//! # What a run cost at its votes: for the owner's eyes
//! Everything here is computed from the votes and is private: who shows it to others has told what nobody paid for. It is no guarantee either; `whit_accounting::pate` says why.

use whit_accounting::pate::{Best, Conversion, Cost, Tally};
use whit_core::Secret;

use super::aggregation::{Outcome, Terms};
use super::votes::Votes;

/// Which answers are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accounting {
    /// Those that were given.
    Realised,
    /// All queries, each weighted with the probability that it is answered, as published tables do; the cap on answers is not in it.
    Expected,
}

/// The owner's numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Owner {
    /// The data-dependent epsilon, by the conversion of the papers.
    pub published: Best,
    /// By the tighter one.
    pub tight: Best,
    /// The worst case of as many answers, by the conversion of the papers.
    pub independent: Best,
    /// How many answers were counted.
    pub answers: f64,
    /// How many answers the mean run would give, without its cap.
    pub expected_answered: f64,
    /// How many queries had a winner with so many tenths of all votes: up to one tenth, up to two, and so on.
    pub consensus: [u64; 10],
}

/// What the aggregation of `terms` cost at these votes.
pub fn owner(
    terms: &Terms,
    votes: &Secret<Votes>,
    outcome: &Outcome,
    accounting: Accounting,
) -> Secret<Owner> {
    let votes = votes.as_ref().expose();
    let cost = Cost {
        test: terms.test,
        sigma: terms.sigma,
    };
    let mut tally = Tally::new(cost);
    let (mut expected_answered, mut consensus) = (0.0, [0; 10]);
    for (query, label) in outcome.labels.iter().enumerate() {
        let counts = votes.floats(query);
        expected_answered += tally.answered(&counts);
        consensus[tenth(&counts, votes.teachers())] += 1;
        match accounting {
            Accounting::Expected => tally.expected(&counts),
            Accounting::Realised if query < outcome.tested => {
                tally.realised(&counts, label.is_some())
            }
            Accounting::Realised => {}
        }
    }
    Secret::new(Owner {
        published: tally.epsilon(terms.delta, Conversion::Published),
        tight: tally.epsilon(terms.delta, Conversion::Tight),
        independent: tally.epsilon_independent(terms.delta, Conversion::Published),
        answers: tally.answers(),
        expected_answered,
        consensus,
    })
}

/// The tenth of all votes that the winner has.
fn tenth(counts: &[f64], teachers: u64) -> usize {
    let most = counts.iter().copied().fold(0.0, f64::max);
    let share = most / teachers.max(1) as f64;
    ((share * 10.0).ceil() as usize).clamp(1, 10) - 1
}

#[cfg(test)]
mod tests {
    use super::super::{Aggregation, Test};
    use super::*;
    use crate::{Payment, Uncharged};
    use whit_testkit::Seeded;

    /// The published run: 640 queries, 250 teachers.
    fn golden() -> (Votes, serde_json::Value) {
        let text = include_str!("../../../../vectors/pate.json");
        let all: serde_json::Value = serde_json::from_str(text).expect("JSON");
        let rows: Vec<Vec<u64>> =
            serde_json::from_value(all["run"]["votes"].clone()).expect("lists");
        (
            Votes::from_histogram(&rows.concat(), 10).expect("votes"),
            all["run"].clone(),
        )
    }

    fn terms(answers_max: u64) -> Terms {
        Terms {
            test: Some(Test {
                threshold: 200.0,
                sigma: 150.0,
            }),
            sigma: 40.0,
            queries: 640,
            answers_max,
            classes: 10,
            ..Terms::default()
        }
    }

    #[test]
    fn the_golden_run_is_met() {
        let (votes, golden) = golden();
        let (votes, aggregation) = (
            Secret::new(votes),
            Aggregation::new(&terms(286)).expect("terms"),
        );
        let payment = Payment::uncharged(&aggregation, Uncharged);
        let outcome = aggregation
            .run(&votes, payment, &mut Seeded::new(931))
            .expect("entropy");
        let found = owner(aggregation.terms(), &votes, &outcome, Accounting::Expected).expose();
        let close = |found: f64, name: &str| {
            let truth = golden[name].as_f64().expect("a number");
            assert!(
                (found - truth).abs() <= 1e-9 * truth,
                "{name}: {found} {truth}"
            );
        };
        close(found.published.epsilon, "epsilon");
        close(found.published.order, "order");
        close(found.independent.epsilon, "epsilon_independent");
        close(found.expected_answered, "expected_answered");
        assert_eq!(found.consensus.iter().sum::<u64>(), 640);
        assert!(found.tight.epsilon < found.published.epsilon);
        // The guarantee for 286 answers, by the exact curve, is next to what the published accounting gives for 251 at these votes.
        assert!(
            (aggregation.epsilon() - 2.4).abs() < 0.2,
            "{}",
            aggregation.epsilon()
        );
    }

    #[test]
    fn realised_answers_are_those_that_were_given() {
        let (votes, _) = golden();
        let (votes, aggregation) = (
            Secret::new(votes),
            Aggregation::new(&terms(20)).expect("terms"),
        );
        let payment = Payment::uncharged(&aggregation, Uncharged);
        let outcome = aggregation
            .run(&votes, payment, &mut Seeded::new(932))
            .expect("entropy");
        assert!(
            outcome.answered() == 20 && outcome.tested < 120,
            "{}",
            outcome.tested
        );
        let found = owner(aggregation.terms(), &votes, &outcome, Accounting::Realised).expose();
        assert_eq!(found.answers, 20.0);
        assert!(found.published.epsilon < found.independent.epsilon + 1e-12);
    }

    #[test]
    fn tenths_are_of_all_votes() {
        assert_eq!(tenth(&[25.0, 0.0], 250), 0);
        assert_eq!(tenth(&[26.0, 0.0], 250), 1);
        assert_eq!((tenth(&[250.0, 0.0], 250), tenth(&[0.0, 0.0], 250)), (9, 0));
    }
}
