//! Votes of teachers, as `whit pate` aggregates them: a test whether they agree, and the class that is told.

use std::rc::Rc;

use whit::core::Secret;
use whit_learn::pate::{Aggregation, Terms, Test, Votes};
use whit_learn::{Payment, Uncharged};
use whit_trial::{Case, Claim, Cost, Draws, Share, upper_tail};

use super::untried;

pub(super) fn cases() -> Vec<Case> {
    [0.5, 1.0, 2.0].map(confident).into()
}

/// One of twelve teachers changes his mind: the largest count is half a vote above the threshold or below it, and the classes are two votes apart, or not at all. The event: the first class is told.
fn confident(sigma: f64) -> Case {
    let chances = move |share: Share| {
        let sigma = sigma * share.value();
        let (test, tell) = (0.5 / sigma, std::f64::consts::SQRT_2 / sigma);
        [
            upper_tail(-test) * upper_tail(-tell),
            upper_tail(test) * 0.5,
        ]
    };
    let [likely, unlikely] = chances(Share::ALL);
    let claim = Claim::of(likely, unlikely, 1e-6);
    let name = format!("sigma {sigma}");
    Case::of(
        "votes of teachers",
        name,
        claim,
        Cost::Statistic,
        move |share| {
            let sigma = sigma * share.value();
            let terms = Terms {
                test: Some(Test {
                    threshold: 6.5,
                    sigma,
                }),
                sigma,
                ..Terms::default()
            };
            let aggregation = Rc::new(Aggregation::new(&terms).map_err(untried)?);
            let votes = |counts: [u64; 2]| Votes::from_histogram(&counts, 2).map_err(untried);
            let [likely, unlikely] = [[7, 5], [6, 6]].map(|counts| votes(counts).map(Secret::new));
            Ok(Draws::new(likely?, unlikely?, move |votes, coins| {
                let payment = Payment::uncharged(&*aggregation, Uncharged);
                let outcome = aggregation.run(votes, payment, coins).map_err(untried)?;
                Ok(outcome.labels == [Some(0)])
            }))
        },
    )
    .with_chances(chances)
}
