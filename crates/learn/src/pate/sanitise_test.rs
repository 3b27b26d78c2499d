//! Prices, noise and intervals of published costs.

use super::*;
use crate::pate::{Aggregation, Test};
use crate::{Payment, Uncharged};
use whit_testkit::Seeded;

const SANITISE: Sanitise = Sanitise {
    order: 10.0,
    beta: 0.02,
    sigma: 20.0,
    width_noise: 10.0,
    delta: 1e-6,
    delta_told: 1e-5,
    confidence: 0.9,
};

fn terms(sanitise: Option<Sanitise>) -> Terms {
    Terms {
        test: Some(Test {
            threshold: 150.0,
            sigma: 30.0,
        }),
        sigma: 30.0,
        queries: 40,
        answers_max: 40,
        classes: 4,
        sanitise,
        ..Terms::default()
    }
}

fn votes() -> Votes {
    let row = |i: u64| [190 - 2 * i, 8 + i, 2 + i, 0];
    Votes::from_histogram(&(0..40).flat_map(row).collect::<Vec<_>>(), 4).expect("votes")
}

#[test]
fn publishing_is_priced_and_part_of_the_event() {
    let (plain, told) = (
        Aggregation::new(&terms(None)),
        Aggregation::new(&terms(Some(SANITISE))),
    );
    let (plain, told) = (plain.expect("terms"), told.expect("terms"));
    let own = Release::new(0.02, 20.0)
        .expect("positive")
        .epsilon(Delta::new(1e-6).expect("a delta"));
    let own = own.expect("finite").value();
    assert!(
        told.epsilon() > plain.epsilon() + 0.5 * own,
        "{} {} {own}",
        told.epsilon(),
        plain.epsilon()
    );
    assert!(told.epsilon() < plain.epsilon() + own + 0.2);
    assert_ne!(plain.event().fingerprint(), told.event().fingerprint());
}

#[test]
fn parameters_out_of_range_are_refused() {
    for bad in [
        Sanitise {
            order: 1.0,
            ..SANITISE
        },
        Sanitise {
            order: 26.0,
            ..SANITISE
        },
        Sanitise {
            order: f64::NAN,
            ..SANITISE
        },
        Sanitise {
            beta: 0.0,
            ..SANITISE
        },
        Sanitise {
            sigma: 0.0,
            ..SANITISE
        },
        Sanitise {
            sigma: 1e9,
            ..SANITISE
        },
        Sanitise {
            width_noise: 0.0,
            ..SANITISE
        },
        Sanitise {
            delta: 0.0,
            ..SANITISE
        },
        Sanitise {
            confidence: 1.0,
            ..SANITISE
        },
    ] {
        assert!(Aggregation::new(&terms(Some(bad))).is_err(), "{bad:?}");
    }
}

/// By hand, at order 10: `α/(2z²)` for the width beside the divergence of the cost.
#[test]
fn both_releases_are_in_the_estimate() {
    let cost = |parameters: &Sanitise| {
        let release = Release::new(parameters.beta, parameters.sigma).expect("positive");
        release.divergence(parameters.order)
    };
    for (width_noise, width) in [(10.0, 0.05), (1.0, 5.0), (100.0, 0.0005)] {
        let parameters = Sanitise {
            width_noise,
            ..SANITISE
        };
        let found = parameters.told(0, 0).epsilon - 1e5_f64.ln() / 9.0 - cost(&parameters);
        // Two roundings of a step in 2^20, twice.
        assert!(
            (found / width - 1.0).abs() < 1e-5 && found >= width * (1.0 - 1e-12),
            "{found}"
        );
    }
}

/// All votes of nine teachers among three classes on one query, and on a second one as given.
fn universe(second: [u64; 3]) -> Vec<[[u64; 3]; 2]> {
    let all = (0..=9).flat_map(|a| (0..=9 - a).map(move |b| [a, b, 9 - a - b]));
    all.map(|first| [first, second]).collect()
}

/// One teacher votes otherwise on the first query, and perhaps on the second.
fn neighbours([first, second]: [[u64; 3]; 2]) -> Vec<[[u64; 3]; 2]> {
    let moves = [(0, 0), (0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)];
    let moved = |votes: [u64; 3]| {
        let possible = moves.iter().filter(move |(from, _)| votes[*from] > 0);
        possible.map(move |(from, to)| {
            let mut moved = votes;
            moved[*from] -= 1;
            moved[*to] += 1;
            moved
        })
    };
    let all = moved(first).flat_map(|first| moved(second).map(move |second| [first, second]));
    all.collect()
}

/// Over whole universes of votes: neighbours' widths are as far apart as the noise on them was priced for, and come close to it; what is counted twice is beyond.
#[test]
fn widths_of_neighbours_are_as_far_apart_as_was_priced() {
    for (beta, order) in [(0.02, 2.0), (0.1, 2.0), (0.7, 1.2)] {
        let sanitise = Sanitise {
            beta,
            order,
            ..SANITISE
        };
        let terms = Terms {
            test: Some(Test {
                threshold: 5.0,
                sigma: 1.0,
            }),
            sigma: 1.5,
            queries: 2,
            answers_max: 2,
            classes: 3,
            ..Terms::default()
        };
        let outcome = Outcome {
            labels: vec![Some(0), None],
            tested: 2,
            sanitised: None,
        };
        let steps = |votes: [[u64; 3]; 2]| {
            let votes = Votes::from_histogram(votes.as_flattened(), 3).expect("votes");
            sanitise.steps(sanitise.sum(&terms, &votes, &outcome).sensitivity)
        };
        let (mut worst, mut twin) = (0, 0);
        for second in [[5, 4, 0], [9, 0, 0]] {
            for votes in universe(second) {
                let here = steps(votes);
                for there in neighbours(votes).into_iter().map(&steps) {
                    worst = worst.max(here.abs_diff(there));
                    twin = twin.max((2 * here).abs_diff(2 * there));
                }
            }
        }
        assert!(worst <= STEPS_APART, "{beta}: {worst}");
        assert!(10 * worst > 9 * STEPS_APART, "{beta}: {worst}");
        assert!(twin > STEPS_APART, "{beta}: {twin}");
    }
}

/// How many times a cost at the same votes is published: enough to see a tenth of its noise.
const RUNS: u32 = 8000;

/// What is published with the noise of `done`, judged by [`SANITISE`]: how far means and squares of both noises are off, each by how far it may be, and how many intervals hold the cost.
fn judged(done: &Sanitise) -> ([f64; 4], f64) {
    let aggregation = Aggregation::new(&terms(Some(SANITISE))).expect("terms");
    let votes = Secret::new(votes());
    let mut entropy = Seeded::new(951);
    let payment = Payment::uncharged(&aggregation, Uncharged);
    let outcome = aggregation.run(&votes, payment, &mut entropy);
    let sum = SANITISE.sum(
        aggregation.terms(),
        votes.as_ref().expose(),
        &outcome.expect("entropy"),
    );
    // What both releases cost themselves: the cost with its noise, and the width with a tenth of a Gaussian.
    let own = Release::new(0.02, 20.0).expect("positive").divergence(10.0) + 0.05;
    let truth = sum.cost as f64 * UNIT + own + 1e5_f64.ln() / 9.0;
    let scale = 20.0 * sum.sensitivity * UNIT;
    // A quarter of what may miss is one in 40, which a normal number passes beyond 1.96. The noise on `ln S` has a standard deviation of `βz`.
    let (reach, noise) = (1.959_964, 0.2_f64);
    let (mut cost, mut width, mut held) = ([0.0; 2], [0.0; 2], 0);
    for _ in 0..RUNS {
        let (noisy, steps) = done
            .noisy::<ReplaceOne>(sum, &mut entropy)
            .expect("entropy");
        let told = SANITISE.told(noisy, steps);
        held += u32::from(told.low <= truth && truth <= told.high);
        let z = (told.epsilon - truth) / scale;
        cost = [cost[0] + z, cost[1] + z * z];
        let wide = (told.high - told.epsilon) / (reach * scale);
        let z = (wide.ln() - reach * noise) / noise;
        width = [width[0] + z, width[1] + z * z];
    }
    let runs = f64::from(RUNS);
    // Six deviations of a mean of normal numbers, and of their squares.
    let mean = |sum: f64| (sum / runs).abs() / (6.0 / runs.sqrt());
    let squares = |sum: f64| (sum / runs - 1.0).abs() / (6.0 * (2.0 / runs).sqrt());
    let off = [
        mean(cost[0]),
        squares(cost[1]),
        mean(width[0]),
        squares(width[1]),
    ];
    (off, f64::from(held) / runs)
}

/// Intervals hold the cost as often as they say, and are as wide as the sensitivity at these votes asks for; estimates are right on average.
#[test]
fn intervals_hold_the_cost() {
    let (off, held) = judged(&SANITISE);
    assert!(off.iter().all(|off| *off < 1.0), "{off:?}");
    assert!(
        held >= 0.9 - 6.0 * (0.09 / f64::from(RUNS)).sqrt(),
        "{held}"
    );
}

/// A tenth less noise than was paid for is seen, on the cost and on the width.
#[test]
fn a_tenth_of_the_noise_is_missed() {
    let sigma = 0.9 * SANITISE.sigma;
    let width_noise = 0.9 * SANITISE.width_noise;
    let (off, _) = judged(&Sanitise { sigma, ..SANITISE });
    assert!(off[1] > 1.0 && off[3] < 1.0, "{off:?}");
    let (off, _) = judged(&Sanitise {
        width_noise,
        ..SANITISE
    });
    assert!(off[1] < 1.0 && off[3] > 1.0, "{off:?}");
}

/// What a run publishes is this, of its own votes and answers.
#[test]
fn runs_publish_the_cost_of_their_answers() {
    let aggregation = Aggregation::new(&terms(Some(SANITISE))).expect("terms");
    let votes = Secret::new(votes());
    let mut entropy = Seeded::new(952);
    let own = SANITISE.own() + 1e5_f64.ln() / 9.0;
    let mut squares = 0.0;
    for _ in 0..50 {
        let payment = Payment::uncharged(&aggregation, Uncharged);
        let outcome = aggregation.run(&votes, payment, &mut entropy);
        let outcome = outcome.expect("entropy");
        let sum = SANITISE.sum(aggregation.terms(), votes.as_ref().expose(), &outcome);
        let told = outcome.sanitised.expect("asked for");
        let z = (told.epsilon - own - sum.cost as f64 * UNIT) / (20.0 * sum.sensitivity * UNIT);
        assert!(z.abs() < 6.0, "{z}");
        squares += z * z;
    }
    // Fifty squares of normal numbers are less than this once in a billion times.
    assert!(squares > 10.0, "{squares}");
}
