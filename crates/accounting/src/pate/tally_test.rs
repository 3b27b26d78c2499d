//! The golden run, and sums.

use super::super::golden::{close, golden, number};
use super::*;

fn run() -> (serde_json::Value, Vec<Vec<f64>>) {
    let case = golden("run").remove(0);
    let votes: Vec<Vec<f64>> = serde_json::from_value(case["votes"].clone()).expect("lists");
    (case, votes)
}

fn cost() -> Cost {
    Cost {
        test: Some(Test {
            threshold: 200.0,
            sigma: 150.0,
        }),
        sigma: 40.0,
    }
}

#[test]
fn golden_run() {
    let (case, votes) = run();
    let mut tally = Tally::new(cost());
    for counts in &votes {
        tally.expected(counts);
    }
    close(tally.answers(), number(&case, "expected_answered"));
    let best = tally.epsilon(1e-5, Conversion::Published);
    close(best.epsilon, number(&case, "epsilon"));
    assert_eq!(best.order, number(&case, "order"));
    let worst = tally.epsilon_independent(1e-5, Conversion::Published);
    close(worst.epsilon, number(&case, "epsilon_independent"));
    assert_eq!(worst.order, number(&case, "order_independent"));
    let tight = tally.epsilon(1e-5, Conversion::Tight);
    assert!(tight.epsilon < best.epsilon - 0.1, "{tight:?}");
}

#[test]
fn order_of_queries_does_not_matter_and_answers_cost() {
    let (_, votes) = run();
    let (mut one, mut other, mut none) =
        (Tally::new(cost()), Tally::new(cost()), Tally::new(cost()));
    for (i, counts) in votes.iter().enumerate() {
        one.realised(counts, i % 3 == 0);
        none.realised(counts, false);
    }
    for (i, counts) in votes.iter().enumerate().rev() {
        other.realised(counts, i % 3 == 0);
    }
    assert_eq!(one.dependent(), other.dependent());
    assert_eq!((one.answers(), none.answers()), (214.0, 0.0));
    for ((some, none), order) in one
        .dependent()
        .to_vec()
        .iter()
        .zip(none.dependent())
        .zip(orders())
    {
        assert!(
            some >= none && *some <= one.independent_at(order) * (1.0 + 1e-12),
            "{order}"
        );
    }
}

#[test]
fn without_a_test_everything_is_answered() {
    let mut tally = Tally::new(Cost {
        test: None,
        sigma: 40.0,
    });
    tally.expected(&[200.0, 50.0]);
    tally.realised(&[200.0, 50.0], true);
    assert_eq!((tally.answers(), tally.answered(&[0.0, 1.0])), (2.0, 1.0));
    close(tally.independent_at(8.0), 2.0 * 8.0 / 1600.0);
}
