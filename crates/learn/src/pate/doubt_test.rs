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

/// A cap that is not kept.
#[test]
fn a_run_beyond_its_cap_is_convicted() {
    assert!(judged(&terms(1.5, 6), &terms(1.5, 1)).convicted);
}

/// Who is asked once, and how.
enum Door {
    /// A list of one query.
    List,
    /// A student who expects half a vote for the first class and two for the second.
    Student,
}

/// For a `μ` of about 2.8 a tenth is `0.3`, and bounds that fail once in a million are about `0.2` below the truth.
const TRIALS: u64 = 10_000;

/// What one question tells of two histograms, against the guarantee of `claimed`.
fn judged_once(
    door: &Door,
    [done, claimed]: [&Terms; 2],
    worlds: [[u64; 2]; 2],
    event: fn(Option<usize>) -> bool,
) -> GdpVerdict {
    let aggregation = Aggregation::new(done).expect("terms");
    let claim = Aggregation::new(claimed).expect("terms").mu();
    let told = |counts: [u64; 2], entropy: &mut Seeded| {
        let payment = Payment::uncharged(&aggregation, Uncharged);
        let label = match door {
            Door::List => {
                let votes = Votes::from_histogram(&counts, 2).expect("votes");
                let outcome = aggregation.run(&Secret::new(votes), payment, entropy);
                outcome.expect("entropy").labels[0]
            }
            Door::Student => {
                let mut asking = aggregation.interactive(payment).expect("paid");
                let counts = Secret::new(counts.to_vec());
                asking.ask(counts, &[0.5, 2.0], entropy).expect("entropy")
            }
        };
        event(label)
    };
    let (mut one, mut two) = (Seeded::new(963), Seeded::new(964));
    falsify_gdp(
        Mu::new(claim).expect("finite"),
        TRIALS,
        Alpha::new(1e-6).expect("a level"),
        || told(worlds[0], &mut one),
        || told(worlds[1], &mut two),
    )
    .expect("trials")
}

/// Honest noise passes with a bound near its claim, and a tenth less of it is convicted.
fn a_tenth_is_seen(
    door: &Door,
    terms: impl Fn(f64) -> Terms,
    worlds: [[u64; 2]; 2],
    event: fn(Option<usize>) -> bool,
) {
    let honest = judged_once(door, [&terms(1.0), &terms(1.0)], worlds, event);
    let claim = Aggregation::new(&terms(1.0)).expect("terms").mu();
    assert!(
        !honest.convicted && honest.mu_lower > 0.9 * claim,
        "{honest:?}"
    );
    let twin = judged_once(door, [&terms(0.9), &terms(1.0)], worlds, event);
    assert!(twin.convicted, "{twin:?} {claim}");
}

/// Whether there is an answer at all: neighbours whose winners have 7 votes and 6, on both sides of the threshold. Noise on the answers is so large that they say nothing.
#[test]
fn the_test_of_agreement_shows_no_more_than_the_guarantee() {
    for (door, threshold) in [(Door::List, 6.5), (Door::Student, 6.0)] {
        let terms = |share: f64| Terms {
            test: Some(Test {
                threshold,
                sigma: 0.35 * share,
            }),
            sigma: 1e3,
            ..Terms::default()
        };
        a_tenth_is_seen(&door, terms, [[7, 4], [6, 5]], |told| told.is_some());
    }
}

/// Which class it is: a vote turns the winner around.
#[test]
fn the_maximum_shows_no_more_than_the_guarantee() {
    let terms = |share: f64| Terms {
        sigma: 0.5 * share,
        ..Terms::default()
    };
    a_tenth_is_seen(&Door::List, terms, [[6, 5], [5, 6]], |told| told == Some(0));
}
