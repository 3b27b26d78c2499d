//! Which candidate votes choose, and whether it is right for them; what a vote moves, exactly and as bounded; and a twin that charges for half of it.

use std::sync::LazyLock;

use whit_accounting::pate::bound::{ln_answered, ln_q_gaussian};
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
const SHAPE: Shape = Shape {
    teachers: 250,
    queries: 500,
    classes: 10,
};

/// Made once, since six searches take seconds.
static MADE: LazyLock<PrivateChoice> = LazyLock::new(|| {
    PrivateChoice::new(&GOAL, SHAPE, 0.5, Neighbours::ReplaceOne).expect("a goal")
});

/// A candidate for votes of that level; its threshold says which it is.
fn candidate(level: i64) -> Candidate {
    let terms = Terms {
        test: Some(Test {
            threshold: level as f64,
            sigma: 1.0,
        }),
        ..Terms::default()
    };
    let choice = Choice {
        aggregation: Aggregation::new(&terms).expect("terms"),
        answers: 0.0,
        agreement: 0.0,
    };
    Candidate { choice, level }
}

/// Ten teachers on `queries` queries, among candidates for these levels.
fn among(levels: &[i64], queries: usize, epsilon: f64) -> PrivateChoice {
    let shape = Shape {
        teachers: 10,
        queries,
        classes: 2,
    };
    let candidates = levels.iter().copied().map(candidate).collect();
    PrivateChoice::among(candidates, shape, epsilon, Neighbours::ReplaceOne).expect("candidates")
}

fn votes(first: &[u64]) -> Votes {
    let counts: Vec<u64> = first.iter().flat_map(|n| [*n, 10 - n]).collect();
    Votes::from_histogram(&counts, 2).expect("votes")
}

/// For which level a choice among [`candidate`]s was.
fn level_of(choice: &Choice) -> i64 {
    choice.aggregation.terms().test.expect("one").threshold as i64
}

fn run<'a>(made: &'a PrivateChoice, votes: &Secret<Votes>, entropy: &mut Seeded) -> &'a Choice {
    let payment = Payment::uncharged(made, Uncharged);
    made.run(votes, payment, entropy).expect("entropy")
}

/// The probability of each candidate, by the definition of the exponential mechanism.
fn odds(made: &PrivateChoice, votes: &Votes) -> Vec<f64> {
    let scores = made.scores(votes);
    let best = scores.iter().max().copied().expect("candidates");
    let rate = made.law.epsilon.to_f64_up() / made.law.spread.to_f64_up();
    let weights = scores
        .iter()
        .map(|score| ((score - best) as f64 * rate).exp());
    let weights: Vec<f64> = weights.collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

/// Which share of a choice's answers to expect to be the winner of these votes.
fn agreement(choice: &Choice, votes: &Votes) -> f64 {
    let terms = choice.aggregation.terms();
    let test = terms.test.expect("one");
    let (mut answers, mut right) = (0.0, 0.0);
    for query in 0..votes.queries() {
        let row = votes.floats(query);
        let answered = ln_answered(&row, test.threshold, test.sigma).exp();
        answers += answered;
        right += answered * -ln_q_gaussian(&row, terms.sigma).exp_m1();
    }
    right / answers
}

/// The first histograms of the published run.
fn golden() -> Votes {
    let text = include_str!("../../../../vectors/pate.json");
    let all: serde_json::Value = serde_json::from_str(text).expect("JSON");
    let rows: Vec<Vec<u64>> =
        serde_json::from_value(all["run"]["votes"].clone()).expect("histograms");
    Votes::from_histogram(&rows[..SHAPE.queries].concat(), 10).expect("votes")
}

#[test]
fn candidates_are_public_and_keep_the_goal() {
    let (shape, relation) = (SHAPE, Neighbours::AddRemove);
    let made = PrivateChoice::new(&GOAL, shape, 0.5, relation).expect("a goal");
    let all: Vec<&Choice> = made.candidates().collect();
    assert_eq!(all.len(), 6);
    assert!(all.iter().all(|one| one.aggregation.epsilon() <= 2.0));
    let epsilon = Ratio::from_f64(0.5).expect("finite");
    let expected = Event::new(relation, Mechanism::BoundedRange { epsilon });
    assert_eq!(made.event(), &expected);
    let priced = price(made.event(), Delta::ZERO).expect("a price");
    assert_eq!(priced.epsilon.value(), 0.5);
    let error = made.error(Confidence::new(0.95).expect("a level"));
    let error = error.expect("candidates");
    let formula = 4.0 / 0.5 * (6.0_f64 / 0.05).ln();
    assert!((error / formula - 1.0).abs() < 1e-9, "{error} {formula}");
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

/// The candidate that was tuned on such votes is chosen, seldom the one below, and hardly ever one above, which would be wrong more often than was asked.
#[test]
fn votes_choose_the_candidate_that_was_tuned_on_such_votes() {
    let made = &*MADE;
    let levels: Vec<i64> = made.candidates.iter().map(|one| one.level).collect();
    assert!(levels.is_sorted(), "{levels:?}");
    let mut entropy = Seeded::new(1010);
    for (place, accuracy) in ACCURACIES.into_iter().enumerate() {
        let votes = simulated(250, 10, accuracy).expect("votes");
        let found = odds(made, &votes);
        let below: f64 = found[..place].iter().sum();
        let above: f64 = found[place + 1..].iter().sum();
        assert!(found[place] > 0.8, "{accuracy}: {found:?}");
        assert!(below < 0.2 && above < 0.01, "{accuracy}: {found:?}");
        // What is drawn is by these scores: of 40, eight deviations of the rarest.
        let (votes, mut hits) = (Secret::new(votes), 0);
        for _ in 0..40 {
            let terms = *run(made, &votes, &mut entropy).aggregation.terms();
            hits += usize::from(terms == *made.candidates[place].choice.aggregation.terms());
        }
        assert!(hits >= 20, "{accuracy}: {hits}");
    }
}

/// Votes that say nothing choose the candidate that asks for most agreement.
#[test]
fn votes_at_random_choose_the_lowest_candidate() {
    let made = &*MADE;
    let even = Votes::from_histogram(&[25; 5000], 10).expect("votes");
    let found = odds(made, &even);
    assert!(found[0] > 0.99, "{found:?}");
    let lowest = *made.candidates[0].choice.aggregation.terms();
    let (even, mut entropy) = (Secret::new(even), Seeded::new(1014));
    for _ in 0..20 {
        let chosen = run(made, &even, &mut entropy);
        assert_eq!(*chosen.aggregation.terms(), lowest);
    }
}

/// The goal says how often an answer should be the winner of the votes. What is chosen keeps that at these votes, nearly always; the candidate for the best teachers would not, by far.
#[test]
fn what_is_chosen_agrees_as_often_as_was_asked() {
    let check = |votes: &Votes, kept: f64| {
        let agree = |one: &Candidate| agreement(&one.choice, votes) >= GOAL.agreement;
        let odds = odds(&MADE, votes);
        let each = MADE.candidates.iter().zip(&odds);
        let found: f64 = each
            .filter(|(one, _)| agree(one))
            .map(|(_, odds)| odds)
            .sum();
        assert!(found >= kept, "{found} {odds:?}");
        agreement(&MADE.candidates[5].choice, votes)
    };
    for accuracy in [0.5, 0.65, 0.75, 0.84] {
        let best = check(&simulated(250, 10, accuracy).expect("votes"), 0.9);
        assert!(best < 0.9, "{accuracy}: {best}");
    }
    let best = check(&golden(), 0.99);
    assert!(best < 0.7, "{best}");
}

/// The spread is `k` votes on each query, and scores are by hand.
#[test]
fn closed_form() {
    for queries in [1, 7, 640] {
        let made = among(&[9, 12], queries, 1.0);
        assert_eq!(made.law.spread, Ratio::from(4 * queries as u64));
    }
    // The winners have 8, 8, 8 and 9 votes: 33.
    let made = among(&[20, 32, 33, 34, 40], 4, 1.0);
    assert_eq!(made.scores(&votes(&[8, 2, 8, 1])), [20, 32, 33, 30, 12]);
    assert_eq!(scaled(100, 500, 640), 128);
    assert_eq!(scaled(999, 500, 250), 499);
}

/// Every pair of neighbours on three queries: differences of all scores lie in an interval of the spread, which is reached.
#[test]
fn no_vote_moves_scores_apart_by_more_than_the_spread() {
    let made = among(&[14, 18, 20, 22, 25, 28, 31], 3, 1.0);
    let spread = made.law.spread.to_f64_up() as i64;
    let all = |n: i64| [n % 11, n / 11 % 11, n / 121 % 11];
    let mut most = 0;
    for n in 0..1331 {
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
    assert_eq!(most, spread, "no smaller one would do");
}

#[test]
fn votes_of_another_shape_and_payments_for_other_choices_are_refused() {
    let made = among(&[28, 40], 4, 50.0);
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
    let other = among(&[28, 40], 4, 1.0);
    let payment = Payment::uncharged(&other, Uncharged);
    let refused = made.run(&Secret::new(votes(&[8; 4])), payment, &mut Seeded::new(1));
    assert!(matches!(refused, Err(Error::OtherPlan)));
}

/// Where a teacher shows most of the choice: with it the winners have 20 votes and without it 18, and candidates are for 20 and 16. Their scores are 20 and 16 with it, 12 and 16 without: for an epsilon of 4 and a spread of 8 the
/// first has odds of `e^2` and of `e^-2`, which is the worst that bounded range allows.
fn judged(done: &PrivateChoice, claim: Claim) -> Verdict {
    let first =
        |votes: &Secret<Votes>, entropy: &mut Seeded| level_of(run(done, votes, entropy)) == 20;
    let (with, without) = (Secret::new(votes(&[10, 10])), Secret::new(votes(&[9, 9])));
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
    let mut made = among(&[20, 16], 2, 4.0);
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
