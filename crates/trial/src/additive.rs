//! Laplace noise and its kin. The event is the outputs from the larger input on, of which the loss is `Δ/b`, exactly.

use std::rc::Rc;

use whit_core::{AddRemove, Probability, Ratio, Secret, Sensitivity};
use whit_mechanism::{DiscreteLaplace, Geometric, Grid, Laplace, OsEntropy, RandomizedResponse};

use crate::case::{
    Case, Claim, EPSILONS, Share, both, fine_laplace_chances, laplace_chances, scale,
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for epsilon in EPSILONS {
        for distance in [1_i64, 3, 10, 100] {
            cases.push(discrete_laplace(epsilon, distance));
            cases.push(constant_time(epsilon, distance));
        }
        cases.push(discrete_laplace(epsilon, 1000));
        for count_max in [1, 5, 50] {
            cases.push(geometric(epsilon, count_max));
        }
        for distance in [0.5, 1.0, 4.0, 1000.0] {
            cases.push(laplace(epsilon, distance));
        }
        // Of many categories each is said seldom, and small losses would take more samples.
        let categories_max = if epsilon < 0.5 { 3 } else { 20 };
        for categories in [2, 3, 5, 10, 20] {
            if categories <= categories_max {
                cases.push(randomized_response(epsilon, categories));
            }
        }
    }
    for epsilon in [0.5, 1.0, 2.0] {
        cases.push(fresh_keys(epsilon));
    }
    cases
}

fn sensitivity(distance: i64) -> Sensitivity<whit_core::L1, AddRemove> {
    Sensitivity::new(Ratio::from(distance.unsigned_abs()))
}

fn discrete_laplace(epsilon: f64, distance: i64) -> Case {
    let name = format!("epsilon {epsilon}, distance {distance}");
    Case::new(
        "discrete Laplace",
        name,
        Claim::loss(epsilon),
        move |share| {
            let noise = DiscreteLaplace::new(
                scale(distance as f64 / epsilon, share),
                sensitivity(distance),
            );
            shifted(noise, distance)
        },
    )
    .with_chances(move |share| shifted_chances(epsilon, distance, share))
}

/// In units of the noise, each of which costs a part of epsilon.
fn shifted_chances(epsilon: f64, distance: i64, share: Share) -> [f64; 2] {
    laplace_chances(epsilon / share.value() / distance as f64, distance)
}

fn constant_time(epsilon: f64, distance: i64) -> Case {
    let name = format!("epsilon {epsilon}, distance {distance}");
    Case::new(
        "discrete Laplace in constant time",
        name,
        Claim::loss(epsilon),
        move |share| {
            let noise = DiscreteLaplace::constant_time(
                scale(distance as f64 / epsilon, share),
                sensitivity(distance),
            );
            shifted(noise, distance)
        },
    )
    .with_chances(move |share| shifted_chances(epsilon, distance, share))
}

fn shifted(noise: DiscreteLaplace<AddRemove>, distance: i64) -> crate::Draws {
    let noise = Rc::new(noise);
    both(distance, 0, move |x, coins| {
        let release = noise.release(Secret::new(*x), coins);
        *release.expect("the stream is open").value() >= distance
    })
}

/// A key of its own for each release, as in a shipped program.
fn fresh_keys(epsilon: f64) -> Case {
    let name = format!("epsilon {epsilon}");
    Case::new(
        "discrete Laplace with a key for each release",
        name,
        Claim::loss(epsilon),
        move |share| {
            let noise = Rc::new(DiscreteLaplace::new(
                scale(1.0 / epsilon, share),
                sensitivity(1),
            ));
            both(1_i64, 0, move |x, _| {
                let release = noise.release(Secret::new(*x), &mut OsEntropy::new());
                *release.expect("the system has entropy").value() >= 1
            })
        },
    )
    .with_chances(move |share| shifted_chances(epsilon, 1, share))
}

/// Clamped to `0..=count_max`: the event lies within.
fn geometric(epsilon: f64, count_max: u32) -> Case {
    let name = format!("epsilon {epsilon}, counts up to {count_max}");
    Case::new("geometric", name, Claim::loss(epsilon), move |share| {
        let noise = Rc::new(Geometric::new(
            scale(1.0 / epsilon, share),
            sensitivity(1),
            count_max,
        ));
        both(1_i64, 0, move |x, coins| {
            let release = noise.release(Secret::new(*x), coins);
            *release.expect("the stream is open").value() >= 1
        })
    })
    .with_chances(move |share| shifted_chances(epsilon, 1, share))
}

/// Real values on a grid. Both inputs lie on it, so that rounding moves neither.
fn laplace(epsilon: f64, distance: f64) -> Case {
    let name = format!("epsilon {epsilon}, distance {distance}");
    Case::new(
        "Laplace on a grid",
        name,
        Claim::loss(epsilon),
        move |share| {
            let sensitivity = Sensitivity::from_f64(distance).expect("positive");
            let honest = scale(distance / epsilon, Share::ALL);
            let grid = Grid::for_scale(&honest);
            let noise =
                Laplace::<AddRemove>::new(&scale(distance / epsilon, share), &sensitivity, 1, grid);
            let noise = Rc::new(noise.expect("the grid was made for such a scale"));
            both(distance, 0.0, move |x, coins| {
                let release = noise.release(Secret::new(*x), coins);
                *release.expect("the stream is open").value() >= distance
            })
        },
    )
    .with_chances(move |share| fine_laplace_chances(epsilon / share.value()))
}

/// Keeps the answer with probability `e^ε/(e^ε + k - 1)`. The fault multiplies epsilon by the inverse of the share, as less noise does
/// elsewhere.
fn randomized_response(epsilon: f64, categories: u64) -> Case {
    let odds = move |share: Share| libm::exp(epsilon / share.value());
    let others = (categories - 1) as f64;
    let name = format!("epsilon {epsilon}, {categories} categories");
    Case::new(
        "randomized response",
        name,
        Claim::loss(epsilon),
        move |share| {
            let keep = odds(share) / (odds(share) + others);
            let keep = Ratio::from_f64(keep)
                .map(Probability::new)
                .and_then(Result::ok);
            let mechanism = RandomizedResponse::new(keep.expect("a probability"), categories);
            let mechanism = Rc::new(mechanism.expect("two categories or more"));
            both(0_u64, 1, move |x, coins| {
                let release = mechanism.release(Secret::new(*x), coins);
                *release.expect("the stream is open").value() == 0
            })
        },
    )
    .with_chances(move |share| [odds(share), 1.0].map(|weight| weight / (odds(share) + others)))
}
