//! Runs cost what golden values say, whatever unit noise is written in; and what is not proven is refused.

use super::*;
use crate::budget::{Cost, Mode};
use crate::{Bracket, delta, epsilon, price};
use whit_core::{Delta, Epsilon, Event, Probability};

fn exact(value: f64) -> Ratio {
    Ratio::from_f64(value).expect("finite")
}

fn poisson(rate: f64) -> Sampling {
    Sampling::Poisson {
        rate: Probability::new(exact(rate)).expect("a share"),
    }
}

/// Noise of `multiplier` times a sensitivity that is no power of two.
fn run(sampling: Sampling, multiplier: f64, steps: u64) -> Mechanism {
    let sensitivity = Ratio::new(3, 7).expect("7");
    let inner = Mechanism::Gaussian {
        scale: Scale::new(&exact(multiplier) * &sensitivity).expect("in range"),
        sensitivity_l2_square: &sensitivity * &sensitivity,
    };
    Mechanism::Sampled {
        sampling,
        steps,
        inner: Box::new(inner),
    }
}

fn epsilon_at(neighbours: Neighbours, mechanism: Mechanism, delta: f64) -> Result<Bracket> {
    let delta = Delta::new(delta).expect("below one");
    epsilon(&Event::new(neighbours, mechanism), delta).map(|answer| answer.bounds)
}

fn delta_at(neighbours: Neighbours, mechanism: Mechanism, epsilon: f64) -> Bracket {
    let epsilon = Epsilon::new(epsilon).expect("in range");
    let event = Event::new(neighbours, mechanism);
    delta(&event, epsilon).expect("priced").bounds
}

fn check(found: Bracket, golden: f64, width: f64) {
    assert!(
        found.lower() <= golden * (1.0 + width) && golden * (1.0 - width) <= found.upper(),
        "{found:?} {golden}"
    );
    assert!(found.relative_width() <= width, "{found:?} {golden}");
}

use Neighbours::{AddRemove, ReplaceOne};

/// Of `vectors/accounting.json`: pub-027 to 031 and 034, and 042 to 044 under replace-one, whose noise is per norm of one unit.
#[test]
fn poisson_runs_cost_what_the_vectors_say() {
    for (rate, noise, steps, slack, golden) in [
        (0.01, 4.0, 10_000, 1e-5, 0.946_866_800_764_309_5),
        (
            0.004_266_666_666_666_667,
            1.1,
            14_062,
            1e-5,
            2.381_596_921_424_357,
        ),
        (0.001, 0.8, 60_000, 1e-5, 1.952_171_735_890_063_7),
        (0.001, 1.0, 1_000_000, 1e-6, 6.694_272_659_734_772),
        (0.01, 4.0, 10_000, 1e-10, 1.528_218_476_663_899),
        (0.01, 0.5, 1000, 1e-5, 13.360_823_985_349_713),
    ] {
        let found = epsilon_at(AddRemove, run(poisson(rate), noise, steps), slack);
        check(found.expect("priced"), golden, 1e-6);
    }
    for (rate, noise, steps, slack, golden) in [
        (0.01, 4.0, 10_000, 1e-5, 1.993_120_057_057_661_5),
        (0.005, 1.5, 5000, 1e-6, 2.148_474_333_114_479_3),
        (0.1, 3.0, 200, 1e-5, 4.074_494_201_198_391),
    ] {
        // Half of the noise per distance between neighbours, which is twice a norm.
        let found = epsilon_at(ReplaceOne, run(poisson(rate), noise / 2.0, steps), slack);
        check(found.expect("priced"), golden, 1e-6);
    }
}

/// pub-039, 063, 064, 072, 073 and 074.
#[test]
fn other_samplers_cost_what_the_vectors_say() {
    let sampled = delta_at(AddRemove, run(poisson(0.01), 4.0, 10_000), 1.0);
    check(sampled, 4.243_484_252_480_414e-6, 1e-6);
    let bins = |bins| Sampling::BallsInBins { bins };
    check(
        delta_at(AddRemove, run(bins(2), 1.0, 2), 1.0),
        0.059_206_501_300_442_93,
        1e-4,
    );
    check(
        delta_at(AddRemove, run(bins(3), 1.0, 3), 0.8),
        0.055_090_866_935_047,
        1e-4,
    );
    let hundred = epsilon_at(AddRemove, run(bins(100), 1.0, 100), 1e-6).expect("priced");
    assert!(
        hundred.upper() <= 0.8745 && hundred.lower() >= 0.8436,
        "{hundred:?}"
    );
    let fixed = |size, of| Sampling::FixedSize { size, of };
    let found = delta_at(ReplaceOne, run(fixed(1, 10), 2.0, 1), 0.3);
    check(found, 3.840_933_426_074_664e-5, 1e-9);
    // One in a hundred is no float: the bounds are those of its two neighbours.
    let found = delta_at(ReplaceOne, run(fixed(600, 60_000), 1.0, 1), 0.5);
    check(found, 2.214_519_013_153_061_6e-7, 1e-9);
}

/// The price of noise on everybody, `Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ) = 1e-6` at `μ = 1`; and a sample of all is everybody.
#[test]
fn without_sampling_it_is_a_gaussian() {
    let all = |noise, steps| run(Sampling::All, noise, steps);
    let everybody = epsilon_at(AddRemove, all(1.0, 1), 1e-6).expect("priced");
    check(everybody, 4.886_554_1, 1e-7);
    for same in [
        all(2.0, 4),
        run(poisson(1.0), 2.0, 4),
        run(Sampling::BallsInBins { bins: 1 }, 2.0, 4),
    ] {
        check(
            epsilon_at(AddRemove, same, 1e-6).expect("priced"),
            4.886_554_1,
            1e-3,
        );
    }
    for same in [
        all(2.0, 4),
        run(poisson(1.0), 2.0, 4),
        run(Sampling::Shuffled { batches: 1 }, 2.0, 4),
        run(Sampling::FixedSize { size: 9, of: 9 }, 2.0, 4),
    ] {
        let found = epsilon_at(ReplaceOne, same, 1e-6).expect("priced");
        assert!((found.upper() - 4.886_554_1).abs() < 1e-3, "{found:?}");
    }
    let inner = Mechanism::Gaussian {
        scale: Scale::new(Ratio::from(3_u64)).expect("in range"),
        sensitivity_l2_square: Ratio::from(9_u64),
    };
    check(
        epsilon_at(ReplaceOne, inner, 1e-6).expect("priced"),
        4.886_554_1,
        1e-7,
    );
}

/// Four epochs of ten batches: a unit is in four of forty steps, and the order may be known.
#[test]
fn shuffling_is_not_priced_as_a_sample() {
    let shuffled = run(Sampling::Shuffled { batches: 10 }, 2.0, 40);
    let found = epsilon_at(ReplaceOne, shuffled, 1e-6).expect("priced");
    assert!((found.upper() - 4.886_554_1).abs() < 1e-6, "{found:?}");
    let poisson = epsilon_at(ReplaceOne, run(poisson(0.1), 2.0, 40), 1e-6).expect("priced");
    assert!(poisson.upper() < 0.8 * found.upper(), "{poisson:?}");
}

#[test]
fn an_epoch_that_was_begun_is_paid_for() {
    for (sampling, neighbours) in [
        (Sampling::BallsInBins { bins: 10 }, AddRemove),
        (Sampling::Shuffled { batches: 10 }, ReplaceOne),
    ] {
        for (steps, begun, ended) in [(1, 1, 0), (10, 1, 1), (11, 2, 1), (20, 2, 2)] {
            let mechanism = run(sampling.clone(), 1.0, steps);
            let run = Run::read(&mechanism).expect("known");
            let times = |side| run.step(neighbours, side).map_or(0, |(_, times)| times);
            let found = (times(Side::Upper), times(Side::Lower));
            assert_eq!(found, (begun, ended), "{sampling:?} {steps}");
        }
    }
}

#[test]
fn relations_without_a_theorem_are_refused() {
    for (sampling, neighbours) in [
        (Sampling::FixedSize { size: 1, of: 10 }, AddRemove),
        (Sampling::Shuffled { batches: 10 }, AddRemove),
        (Sampling::BallsInBins { bins: 10 }, ReplaceOne),
    ] {
        let part = Mechanism::Composition(vec![run(sampling, 1.0, 10)]);
        let close = Mechanism::Close {
            inner: Box::new(part),
            total_variation: Probability::new(Ratio::power_of_two(-90)).expect("a share"),
        };
        let event = Event::new(neighbours, close);
        let slack = Delta::new(1e-5).expect("below one");
        assert!(matches!(price(&event, slack), Err(Error::Mismatch { .. })));
        let half = Epsilon::new(0.5).expect("in range");
        assert!(matches!(delta(&event, half), Err(Error::Mismatch { .. })));
        for mode in [Mode::Pure, Mode::Zcdp] {
            let cost = Cost::of(&event, mode, slack);
            assert!(matches!(cost, Err(Error::Mismatch { .. })), "{cost:?}");
        }
    }
}

#[test]
fn what_cannot_be_is_refused_and_what_is_not_known_too() {
    let at = |mechanism| epsilon_at(ReplaceOne, mechanism, 1e-5);
    for sampling in [
        Sampling::FixedSize { size: 11, of: 10 },
        Sampling::FixedSize { size: 0, of: 0 },
        Sampling::Shuffled { batches: 0 },
    ] {
        assert!(matches!(
            at(run(sampling, 1.0, 1)),
            Err(Error::OutOfRange { .. })
        ));
    }
    let bins = run(Sampling::BallsInBins { bins: 0 }, 1.0, 1);
    let found = epsilon_at(AddRemove, bins, 1e-5);
    assert!(matches!(found, Err(Error::OutOfRange { .. })));
    let nested = Mechanism::Sampled {
        sampling: Sampling::All,
        steps: 2,
        inner: Box::new(run(poisson(0.5), 1.0, 2)),
    };
    let pure = Mechanism::Sampled {
        sampling: poisson(0.5),
        steps: 2,
        inner: Box::new(Mechanism::Pure {
            epsilon: Ratio::one(),
        }),
    };
    for unknown in [nested, pure] {
        assert!(matches!(at(unknown), Err(Error::UnknownMechanism { .. })));
    }
}

/// However large its numbers are, an event has an upper bound or none.
#[test]
fn hostile_numbers_are_priced_from_above_or_not_at_all() {
    for sampling in [poisson(1e-300), poisson(0.999_999), Sampling::All] {
        for (noise, steps) in [
            (1.0, u64::MAX),
            (1e-6, 1000),
            (1e9, 1 << 53),
            (1e9, u64::MAX),
        ] {
            for neighbours in [AddRemove, ReplaceOne] {
                let Ok(found) = epsilon_at(neighbours, run(sampling.clone(), noise, steps), 1e-6)
                else {
                    continue;
                };
                assert!(found.lower() <= found.upper());
                // Without sampling, n Gaussians are one with noise √n smaller, whose loss is at least so large.
                let mu = (steps as f64).sqrt() / noise;
                if sampling == Sampling::All && mu > 10.0 {
                    assert!(found.upper() >= mu * mu / 2.0, "{noise} {steps}: {found:?}");
                }
            }
        }
    }
    let huge = Mechanism::Sampled {
        sampling: Sampling::All,
        steps: 1,
        inner: Box::new(Mechanism::Gaussian {
            scale: Scale::new(Ratio::one()).expect("in range"),
            sensitivity_l2_square: Ratio::power_of_two(5000),
        }),
    };
    assert!(epsilon_at(AddRemove, huge, 1e-6).is_err());
}

#[test]
fn nothing_costs_nothing() {
    let still = Mechanism::Sampled {
        sampling: Sampling::All,
        steps: 5,
        inner: Box::new(Mechanism::Gaussian {
            scale: Scale::new(Ratio::one()).expect("in range"),
            sensitivity_l2_square: Ratio::zero(),
        }),
    };
    let nobody = Sampling::FixedSize { size: 0, of: 10 };
    for nothing in [
        still,
        run(poisson(0.0), 1.0, 10),
        run(Sampling::All, 1.0, 0),
        run(nobody, 1.0, 10),
    ] {
        assert_eq!(epsilon_at(ReplaceOne, nothing, 0.0), Ok(Bracket::ZERO));
    }
}

/// What is charged is what was shown: for every sampler, also over many epochs, where a notion without amplification says twenty times as much.
#[test]
fn prices_are_the_upper_bounds() {
    for (neighbours, mechanism) in [
        (AddRemove, run(poisson(0.01), 1.0, 500)),
        (ReplaceOne, run(poisson(0.01), 1.0, 500)),
        (
            ReplaceOne,
            run(Sampling::FixedSize { size: 1, of: 64 }, 1.0, 500),
        ),
        (
            ReplaceOne,
            run(Sampling::Shuffled { batches: 64 }, 1.0, 500),
        ),
        (
            AddRemove,
            run(Sampling::BallsInBins { bins: 234 }, 1.1, 14_040),
        ),
    ] {
        let event = Event::new(neighbours, mechanism);
        let slack = Delta::new(1e-5).expect("below one");
        let paid = price(&event, slack).expect("priced").epsilon.value();
        let shown = epsilon(&event, slack).expect("priced").bounds.upper();
        assert_eq!(paid, shown, "{event:?}");
    }
}

/// One engine call: a run beside another answer costs less than the sum, and equal runs are counted together.
#[test]
fn runs_compose_with_other_answers() {
    let slack = Delta::new(1e-5).expect("below one");
    let training = run(poisson(0.01), 1.0, 500);
    let count = Mechanism::Pure {
        epsilon: Ratio::new(1, 10).expect("10"),
    };
    let priced = |parts| {
        let event = Event::new(AddRemove, Mechanism::Composition(parts));
        price(&event, slack).expect("priced").epsilon.value()
    };
    let alone = priced(vec![training.clone()]);
    let with = priced(vec![training.clone(), count]);
    assert!(alone < with && with < alone + 0.1, "{alone} {with}");
    let twice = priced(vec![training.clone(), training]);
    let whole = priced(vec![run(poisson(0.01), 1.0, 1000)]);
    assert_eq!(twice, whole);
}

/// `ρ = nΔ²/(2σ²)`: what a budget in zCDP is charged, without amplification.
#[test]
fn concentrated_loss_counts_the_steps_of_one_unit() {
    let rho = |sampling, steps| {
        crate::zcdp::rho(&run(sampling, 2.0, steps))
            .expect("finite")
            .value()
    };
    assert_eq!(rho(poisson(0.01), 80), 10.0);
    assert_eq!(rho(Sampling::BallsInBins { bins: 10 }, 80), 1.0);
    assert_eq!(rho(Sampling::Shuffled { batches: 10 }, 81), 1.125);
    assert_eq!(rho(Sampling::FixedSize { size: 1, of: 10 }, 8), 1.0);
    assert_eq!(rho(poisson(0.0), 80), 0.0);
}

#[test]
fn roots_are_exact_where_they_can_be() {
    for root in [1.0, 1.1, 0.3, 4.0, 1e-150, 1e150, 5e-324] {
        let square = exact_square(root).expect("finite");
        if root > 1e-100 {
            assert_eq!((root_down(&square), root_up(&square)), (root, root));
        }
        let more = &square + &(&square * &Ratio::power_of_two(-200));
        assert!(exact_square(root_down(&more)).expect("finite") <= more);
        assert!(exact_square(root_up(&more)).expect("finite") >= more);
    }
    let two = Ratio::from(2_u64);
    assert_eq!(root_down(&two).next_up(), root_up(&two));
    let beyond = Ratio::power_of_two(3000);
    assert!(root_down(&beyond) <= f64::MAX && root_up(&beyond) == f64::INFINITY);
    assert_eq!(
        (root_down(&Ratio::zero()), root_up(&Ratio::zero())),
        (0.0, 0.0)
    );
}
