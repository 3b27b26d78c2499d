//! Gaussian noise. The event is the outputs from the middle of the two inputs on, of which both probabilities are known.

use std::rc::Rc;

use whit_core::{AddRemove, L2, Ratio, Secret, Sensitivity};
use whit_mechanism::{DiscreteGaussian, Gaussian, Grid, RoundedGaussian};

use crate::Draws;
use crate::case::{Case, Claim, Share, both, scale, upper_tail};

/// Distances of the inputs, in standard deviations.
const MUS: [f64; 7] = [0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0];

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for mu in MUS {
        for distance in [3_i64, 15, 63] {
            cases.push(discrete(mu, distance));
            cases.push(constant_time(mu, distance));
        }
        for distance in [65_i64, 1025] {
            cases.push(rounded(mu, distance));
        }
        for distance in [1.0, 64.0] {
            cases.push(on_a_grid(mu, distance));
        }
    }
    cases
}

fn sensitivity(distance: i64) -> Sensitivity<L2, AddRemove> {
    Sensitivity::new(Ratio::from(distance.unsigned_abs()))
}

/// The first integer above the middle of `0` and an odd distance.
fn middle(distance: i64) -> i64 {
    distance / 2 + 1
}

/// `Pr[d + Z >= t]` and `Pr[Z >= t]` of the discrete Gaussian, by summing its weights.
pub(crate) fn discrete_chances(mu: f64, distance: i64) -> [f64; 2] {
    let sigma = distance as f64 / mu;
    let last = (12.0 * sigma) as i64 + distance;
    let weight = |z: i64| libm::exp(-((z * z) as f64) / (2.0 * sigma * sigma));
    let tail = |from: i64| (from..=last).rev().map(weight).sum::<f64>();
    let (at, all) = (middle(distance), tail(-last));
    [at - distance, at].map(|from| tail(from) / all)
}

/// The loss of that event.
pub(crate) fn discrete_loss(mu: f64, distance: i64) -> f64 {
    let [likely, unlikely] = discrete_chances(mu, distance);
    libm::log(likely / unlikely)
}

fn shifted(noise: DiscreteGaussian<AddRemove>, distance: i64) -> Draws {
    let (noise, at) = (Rc::new(noise), middle(distance));
    both(distance, 0, move |x, coins| {
        let release = noise.release(Secret::new(*x), coins);
        *release.expect("the stream is open").value() >= at
    })
}

fn discrete(mu: f64, distance: i64) -> Case {
    let name = format!("mu {mu}, distance {distance}");
    let loss = Claim::loss(discrete_loss(mu, distance));
    Case::new("discrete Gaussian", name, loss, move |share| {
        let noise =
            DiscreteGaussian::new(scale(distance as f64 / mu, share), sensitivity(distance));
        shifted(noise, distance)
    })
    .with_chances(move |share| discrete_chances(mu / share.value(), distance))
}

fn constant_time(mu: f64, distance: i64) -> Case {
    let name = format!("mu {mu}, distance {distance}");
    let loss = Claim::loss(discrete_loss(mu, distance));
    Case::new(
        "discrete Gaussian in constant time",
        name,
        loss,
        move |share| {
            let noise = DiscreteGaussian::constant_time(
                scale(distance as f64 / mu, share),
                sensitivity(distance),
            );
            shifted(noise.expect("up to 256 steps"), distance)
        },
    )
    .with_chances(move |share| discrete_chances(mu / share.value(), distance))
}

/// `ln(Φ((d - t + 1/2)/σ)/Φ((1/2 - t)/σ))`: a real Gaussian, rounded to the nearest integer.
fn rounded(mu: f64, distance: i64) -> Case {
    let name = format!("mu {mu}, distance {distance}");
    let (sigma, at) = (distance as f64 / mu, middle(distance));
    let chances = move |share: Share| {
        [at - distance, at].map(|from| upper_tail((from as f64 - 0.5) / (sigma * share.value())))
    };
    let [likely, unlikely] = chances(Share::ALL);
    let loss = libm::log(likely / unlikely);
    Case::new("rounded Gaussian", name, Claim::loss(loss), move |share| {
        let noise = RoundedGaussian::new(scale(sigma, share), sensitivity(distance));
        let noise = Rc::new(noise);
        both(distance, 0, move |x, coins| {
            let release = noise.release(Secret::new(vec![*x]), coins);
            release.expect("the stream is open").value()[0] >= at
        })
    })
    .with_chances(chances)
}

/// Real values on a fine grid: `ln(Φ(μ/2)/Φ(-μ/2))`, up to what one step of the grid changes, `2^-20` of the scale or less.
fn on_a_grid(mu: f64, distance: f64) -> Case {
    let name = format!("mu {mu}, distance {distance}");
    let chances = move |share: Share| [-0.5, 0.5].map(|from| upper_tail(from * mu / share.value()));
    let [likely, unlikely] = chances(Share::ALL);
    let loss = libm::log(likely / unlikely);
    Case::new(
        "Gaussian on a grid",
        name,
        Claim::loss(loss + 1e-5),
        move |share| {
            let honest = scale(distance / mu, Share::ALL);
            let grid = Grid::for_scale(&honest);
            let sensitivity = Sensitivity::from_f64(distance).expect("positive");
            let noise =
                Gaussian::<AddRemove>::new(&scale(distance / mu, share), &sensitivity, 1, grid);
            let noise = Rc::new(noise.expect("the grid was made for such a scale"));
            both(distance, 0.0, move |x, coins| {
                let release = noise.release(Secret::new(*x), coins);
                *release.expect("the stream is open").value() >= distance / 2.0
            })
        },
    )
    .with_chances(chances)
}
