//! What a vote moves, exactly and as bounded; what is chosen; and a twin that charges for half of it.

use whit_accounting::price;
use whit_audit::{Alpha, Claim, Verdict, falsify};
use whit_core::{Delta, Epsilon, Fault, Mechanism};
use whit_testkit::Seeded;

use super::*;
use crate::Uncharged;
use crate::pate::{Aggregation, Terms, Test};

const GOAL: Goal = Goal {
    epsilon: 2.0,
    delta: 1e-5,
    queries: 640,
    agreement: 0.95,
};

fn choice(threshold: f64, sigma: f64, queries: u64, answers_max: u64) -> Choice {
    let terms = Terms {
        test: Some(Test { threshold, sigma }),
        queries,
        answers_max,
        ..Terms::default()
    };
    Choice {
        aggregation: Aggregation::new(&terms).expect("terms"),
        answers: 0.0,
        agreement: 0.0,
    }
}

/// Ten teachers on `queries` queries, among these.
fn among(choices: Vec<Choice>, queries: usize, epsilon: f64) -> PrivateChoice {
    let shape = Shape {
        teachers: 10,
        queries,
        classes: 2,
    };
    let asked = choices[0].aggregation.terms().queries;
    PrivateChoice::among(choices, asked, shape, epsilon, Neighbours::ReplaceOne).expect("choices")
}

fn votes(first: &[u64]) -> Votes {
    let counts: Vec<u64> = first.iter().flat_map(|n| [*n, 10 - n]).collect();
    Votes::from_histogram(&counts, 2).expect("votes")
}

#[test]
fn candidates_are_public_and_keep_the_goal() {
    let shape = Shape {
        teachers: 250,
        queries: 640,
        classes: 10,
    };
    let relation = Neighbours::AddRemove;
    let made = PrivateChoice::new(&GOAL, shape, 0.5, relation).expect("a goal");
    let all: Vec<&Choice> = made.candidates().collect();
    assert!((2..=6).contains(&all.len()), "{}", all.len());
    assert!(all.iter().all(|one| one.aggregation.epsilon() <= 2.0));
    let epsilon = Ratio::from_f64(0.5).expect("finite");
    let expected = Event::new(relation, Mechanism::BoundedRange { epsilon });
    assert_eq!(made.event(), &expected);
    let priced = price(made.event(), Delta::ZERO).expect("a price");
    assert_eq!(priced.epsilon.value(), 0.5);
    let error = made.error(Confidence::new(0.95).expect("a level"));
    let error = error.expect("candidates");
    assert!(error > 1.0 && error < 100.0, "{error}");
    let never = Goal {
        epsilon: 0.001,
        agreement: 0.9999,
        ..GOAL
    };
    let code = |goal: &Goal, shape, epsilon, neighbours| {
        let refused = PrivateChoice::new(goal, shape, epsilon, neighbours).err();
        refused.map(|error| error.code())
    };
    let replace = Neighbours::ReplaceOne;
    assert_eq!(code(&never, shape, 0.5, replace), Some("no_choice"));
    for epsilon in [0.0, -1.0, f64::NAN, 101.0] {
        assert_eq!(
            code(&GOAL, shape, epsilon, replace),
            Some("plan_out_of_range")
        );
    }
    let crowd = Shape {
        teachers: 1 << 29,
        ..shape
    };
    assert_eq!(code(&GOAL, crowd, 0.5, replace), Some("plan_out_of_range"));
}

/// How much of a normal number lies within `x` of its mean, by Simpson's rule.
fn middle(x: f64) -> f64 {
    let steps = 2000;
    let width = 2.0 * x / f64::from(steps);
    let at = |k: i32| (-0.5 * (width * f64::from(k) - x).powi(2)).exp();
    let weight = |k: i32| match k {
        0 => 1.0,
        _ if k == steps => 1.0,
        _ => f64::from(2 + 2 * (k % 2)),
    };
    let sum: f64 = (0..=steps).map(|k| weight(k) * at(k)).sum();
    sum * width / 3.0 / (2.0 * std::f64::consts::PI).sqrt()
}

/// The spread is what a vote moves, and no more than the formula: `Q (2^20/(σ√(2π)) + 1)` steps.
#[test]
fn closed_form() {
    for sigma in [0.1, 0.7, 3.0, 150.0] {
        for queries in [1, 7] {
            let made = among(vec![choice(5.5, sigma, 7, 7)], queries, 1.0);
            let steps = (1 << 20) as f64;
            let bound = steps / (sigma * (2.0 * std::f64::consts::PI).sqrt()) + 1.0;
            let spread = made.law.spread.to_f64_up() / queries as f64;
            assert!(spread <= bound, "{sigma}: {spread} {bound}");
            // From 5 votes to 6, on both sides of the threshold: `2Φ(1/2σ) - 1`.
            let exact = middle(0.5 / sigma) * steps;
            assert!((spread - exact).abs() <= 2.0, "{sigma}: {spread} {exact}");
        }
    }
}

/// Every pair of neighbours on three queries: differences of all scores lie in an interval of the spread, which is reached.
#[test]
fn no_vote_moves_scores_apart_by_more_than_the_spread() {
    let choices = vec![
        choice(6.5, 0.2, 3, 3),
        choice(8.5, 0.2, 3, 3),
        choice(7.0, 2.0, 3, 1),
        choice(0.0, 9.0, 3, 2),
    ];
    let made = among(choices, 3, 1.0);
    let spread = made.law.spread.to_f64_up() as i64;
    let all = |n: i64| [5 + n % 6, 5 + n / 6 % 6, 5 + n / 36 % 6];
    let mut most = 0;
    for n in 0..216 {
        let here = made.scores(&votes(&all(n).map(i64::unsigned_abs)));
        for step in 0..27 {
            let moved = [step % 3 - 1, step / 3 % 3 - 1, step / 9 - 1];
            let other: Vec<i64> = all(n).iter().zip(moved).map(|(a, b)| a + b).collect();
            if other.iter().any(|votes| !(0..=10).contains(votes)) {
                continue;
            }
            let other: Vec<u64> = other.into_iter().map(i64::unsigned_abs).collect();
            let there = made.scores(&votes(&other));
            let moved = here.iter().zip(&there).map(|(a, b)| b - a);
            let (low, high) = moved.fold((0, 0), |(low, high), by| (by.min(low), by.max(high)));
            assert!(high - low <= spread, "{n} {step}: {low} {high} {spread}");
            most = most.max(high - low);
        }
    }
    assert!(most * 10 > spread * 9, "{most} {spread}");
}

#[test]
fn more_answers_are_likelier_and_caps_count() {
    // At eight of ten votes the first is nearly always answered, the second hardly ever; the third has a cap of one in four.
    let choices = || {
        vec![
            choice(6.0, 0.5, 8, 8),
            choice(9.9, 0.5, 8, 8),
            choice(6.0, 0.5, 8, 2),
        ]
    };
    let made = among(choices(), 4, 50.0);
    let scores = made.scores(&votes(&[8, 8, 2, 8]));
    let answers = |place: usize| scores[place] as f64 / (1 << 20) as f64;
    assert!(
        (answers(0) - 4.0).abs() < 1e-3 && answers(1) < 1e-3,
        "{scores:?}"
    );
    assert_eq!(answers(2), 1.0, "two of eight are one of four");
    let mut entropy = Seeded::new(1011);
    for _ in 0..20 {
        let payment = Payment::uncharged(&made, Uncharged);
        let chosen = made.run(&Secret::new(votes(&[8, 8, 2, 8])), payment, &mut entropy);
        let terms = *chosen.expect("entropy").aggregation.terms();
        assert_eq!(
            (terms.test.expect("one").threshold, terms.answers_max),
            (6.0, 8)
        );
    }
    let code = |other: Votes| {
        let payment = Payment::uncharged(&made, Uncharged);
        let refused = made.run(&Secret::new(other), payment, &mut Seeded::new(1));
        refused.err().map(|error| error.code())
    };
    assert_eq!(code(votes(&[8, 8])), Some("votes_other_queries"));
    let counts = |counts: &[u64], classes| Votes::from_histogram(counts, classes).expect("votes");
    assert_eq!(code(counts(&[9, 2].repeat(4), 2)), Some("votes_unequal"));
    let three = counts(&[8, 1, 1].repeat(4), 3);
    assert_eq!(code(three), Some("votes_other_classes"));
    let cast = votes(&[8; 4]).between(Neighbours::AddRemove);
    assert_eq!(code(cast), Some("votes_other_relation"));
    // A payment for one choice is none for another.
    let other = among(choices(), 4, 1.0);
    let payment = Payment::uncharged(&other, Uncharged);
    let refused = made.run(&Secret::new(votes(&[8; 4])), payment, &mut Seeded::new(1));
    assert!(matches!(refused, Err(Error::OtherPlan)));
}

/// Where a teacher shows most of the choice: on one query a vote more answers the first candidate, and on another a vote less leaves seven others without their answer. The first has odds of one to seven without the teacher, and of
/// `e^4` to seven with it, which is nearly the worst that bounded range allows: odds of `e^-2` and `e^2`.
fn judged(done: &PrivateChoice, claim: Claim) -> Verdict {
    let first = |votes: &Secret<Votes>, entropy: &mut Seeded| {
        let payment = Payment::uncharged(done, Uncharged);
        let chosen = done.run(votes, payment, entropy).expect("entropy");
        chosen.aggregation.terms().test.expect("one").threshold < 7.0
    };
    let (with, without) = (Secret::new(votes(&[7, 8])), Secret::new(votes(&[6, 9])));
    let (mut one, mut two) = (Seeded::new(1012), Seeded::new(1013));
    falsify(
        claim,
        20_000,
        Alpha::new(1e-6).expect("a level"),
        || first(&with, &mut one),
        || first(&without, &mut two),
    )
    .expect("trials")
}

/// The claim is what the event is priced as, at the delta for which it has hardly any epsilon left: that is where a tenth is seen.
#[test]
fn one_teacher_shows_no_more_than_the_choice_is_charged_for() {
    let others = (0..7).map(|_| choice(8.5, 0.05, 2, 2));
    let choices = std::iter::once(choice(6.5, 0.05, 2, 2)).chain(others);
    let mut made = among(choices.collect(), 2, 4.0);
    // In closed form: `tanh(ε/4)` for an epsilon of zero.
    let priced = whit_accounting::delta(made.event(), Epsilon::new(0.0).expect("zero"));
    let delta = priced.expect("a price").bounds.upper();
    assert!((delta - 1.0_f64.tanh()).abs() < 1e-6, "{delta}");
    let claim = Claim {
        epsilon: Epsilon::new(0.0).expect("zero"),
        delta: Delta::new(delta).expect("below one"),
    };
    let honest = judged(&made, claim);
    assert!(!honest.convicted, "{honest:?}");
    let whole = made.law.spread.clone();
    // Twins: a tenth more than was charged, and one that forgets that a teacher votes on all queries.
    for (by, of) in [(10, 11), (1, 2)] {
        made.law.spread = &whole * &Ratio::new(by, of).expect("not zero");
        let twin = judged(&made, claim);
        assert!(twin.convicted, "{by}/{of}: {twin:?}");
    }
}
