//! Whole ensembles that differ in one teacher, through the door that users take.

use whit_audit::{Alpha, GdpVerdict, falsify_gdp};
use whit_core::{Mu, Secret};
use whit_testkit::Seeded;

use super::{Aggregation, Terms, Test, Votes};
use crate::{Payment, Uncharged};

/// Eleven teachers on six queries; the last one votes for the other class wherever it can turn the vote.
fn ensemble(other: bool) -> Secret<Votes> {
    let mut votes = Vec::new();
    for teacher in 0..10 {
        votes.extend([u32::from(teacher % 2 == 0); 6]);
    }
    votes.extend([u32::from(other); 6]);
    Secret::new(Votes::from_votes(&votes, 6, 2).expect("votes"))
}

fn terms(sigma: f64, answers_max: u64) -> Terms {
    Terms {
        test: Some(Test {
            threshold: 5.0,
            sigma: 8.0,
        }),
        sigma,
        queries: 6,
        answers_max,
        ..Terms::default()
    }
}

/// What `done` tells, against the guarantee of `claimed`: more labels for one class than for the other.
fn judged(done: &Terms, claimed: &Terms) -> GdpVerdict {
    let aggregation = Aggregation::new(done).expect("terms");
    let claim = Aggregation::new(claimed).expect("terms").mu();
    let first = |votes: &Secret<Votes>, entropy: &mut Seeded| {
        let payment = Payment::uncharged(&aggregation, Uncharged);
        let outcome = aggregation.run(votes, payment, entropy).expect("entropy");
        let ones = outcome
            .labels
            .iter()
            .flatten()
            .filter(|label| **label == 1)
            .count();
        2 * ones > outcome.answered()
    };
    let (mut one, mut two) = (Seeded::new(961), Seeded::new(962));
    let (with, without) = (ensemble(true), ensemble(false));
    falsify_gdp(
        Mu::new(claim).expect("finite"),
        10_000,
        Alpha::new(1e-6).expect("a level"),
        || first(&with, &mut one),
        || first(&without, &mut two),
    )
    .expect("trials")
}

#[test]
fn one_teacher_shows_no_more_than_the_guarantee() {
    for answers in [1, 3, 6] {
        let terms = terms(3.0, answers);
        let verdict = judged(&terms, &terms);
        assert!(
            !verdict.convicted && verdict.mu_lower > 0.2,
            "{answers}: {verdict:?}"
        );
    }
}

/// Too little noise, and a cap that is not kept.
#[test]
fn twins_are_convicted() {
    assert!(judged(&terms(1.0, 3), &terms(3.0, 3)).convicted);
    assert!(judged(&terms(1.5, 6), &terms(1.5, 1)).convicted);
}
