//! Where one person can move an answer far, but seldom does.

use std::rc::Rc;

use whit_core::{
    AddRemove, Confidence, Delta, Mechanism, Ratio, ReplaceOne, Rho, Secret, Sensitivity,
};
use whit_mechanism::{
    Bounds, Contribution, LocalSensitivity, Noise, ProposeTestRelease, SmoothGaussian,
    SmoothMedian, SmoothNoise, Smoothed, Stable, StableMode, SubsampleAggregate, TriangleCount,
};

use crate::case::{
    Case, Claim, Cost, Share, both, fine_laplace_chances, laplace_chances, scale, upper_tail,
};
use crate::quantile::inflated;
use crate::selection::laplace_tail;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for epsilon in [1.0, 2.0] {
        cases.push(propose_test_release(epsilon));
        cases.push(proposed_sensitivity(epsilon));
        cases.push(smooth_cauchy(epsilon));
        cases.push(smooth_laplace(epsilon));
        cases.push(smooth_log_normal(epsilon));
        cases.push(smooth_median(epsilon));
        cases.push(triangles(epsilon));
        cases.push(subsample_mean(epsilon));
        cases.push(subsample_median(epsilon));
    }
    for multiplier in [2.0, 3.0] {
        cases.push(smooth_gaussian(multiplier));
    }
    cases.push(stable_mode());
    cases
}

fn delta(value: f64) -> Delta {
    Delta::new(value).expect("below one")
}

fn test<R: whit_core::Relation>(epsilon: f64, share: Share) -> ProposeTestRelease<R> {
    let test = ProposeTestRelease::new(inflated(epsilon, share), delta(0.01));
    test.expect("a usual epsilon")
}

/// At the threshold, and one change below it: `Pr[Z >= 0]` against `Pr[Z >= 1]`.
fn propose_test_release(epsilon: f64) -> Case {
    let name = format!("epsilon {epsilon}");
    let claim = Claim::loss(epsilon);
    Case::new("propose, test, release", name, claim, move |share| {
        let test = Rc::new(test::<AddRemove>(epsilon, share));
        let at = test.threshold();
        both(at, at - 1, move |distance, coins| {
            let x = Secret::new(Stable::new(*distance, "told"));
            let release = test.release(x, coins);
            release.expect("the stream is open").value().is_some()
        })
    })
    .with_chances(move |share| laplace_chances(epsilon / share.value(), 1))
}

/// The same with a number that moves by what was proposed: another epsilon.
fn proposed_sensitivity(epsilon: f64) -> Case {
    let name = format!("epsilon {epsilon} and as much for the number");
    let claim = Claim::loss(2.0 * epsilon);
    Case::new("proposed sensitivity", name, claim, move |share| {
        let test = test::<AddRemove>(epsilon, share);
        let at = test.threshold();
        let proposed = Sensitivity::new(Ratio::one());
        let mechanism = Rc::new(test.with_noise(proposed, scale(1.0 / epsilon, share)));
        both((at, 1_i64), (at - 1, 0), move |(distance, value), coins| {
            let x = Secret::new(Stable::new(*distance, *value));
            let release = mechanism.release(x, coins);
            let release = release.expect("the stream is open");
            release.value().is_some_and(|number| number >= 1)
        })
    })
    .with_chances(move |share| laplace_chances(epsilon / share.value(), 1).map(|one| one * one))
}

/// Leads of three and two, both below the test's threshold.
fn stable_mode() -> Case {
    let epsilon = 1.0;
    let name = format!("epsilon {epsilon}");
    let claim = Claim::loss(epsilon);
    let test = move |share: Share| {
        let test = ProposeTestRelease::new(inflated(epsilon, share), delta(0.05));
        test.expect("a usual epsilon")
    };
    let case = Case::new("stable mode", name, claim, move |share| {
        let mode = Rc::new(StableMode::<AddRemove>::new(test(share), Contribution::Row));
        both(&b"xxx"[..], &b"xx"[..], move |rows, coins| {
            let rows = mode.aggregate(rows.iter().copied());
            let release = mode.release(rows, coins);
            release.expect("the stream is open").value().is_some()
        })
    });
    // One less than the lead is how far another mode is.
    case.with_chances(move |share| {
        let threshold = test(share).threshold() as i64;
        [2, 1].map(|distance| laplace_tail(epsilon / share.value(), threshold - distance))
    })
    .costing(Cost::Statistic)
}

/// Local sensitivities that are the same everywhere, so that noise is the same for both neighbours and the value moves by all of it.
const LOCAL: u64 = 1000;

struct Flat(i128);

impl LocalSensitivity<ReplaceOne> for Flat {
    fn value(&self) -> i128 {
        self.0
    }

    fn global(&self) -> u64 {
        LOCAL
    }

    fn at_distance(&self, _: u64) -> u64 {
        LOCAL
    }
}

/// `⌊f + (S/α) Z + 1/2⌋ <= 0` for `f = 0` and for `f = S`: the argument of the distribution function of `Z`.
fn arguments(alpha: f64) -> [f64; 2] {
    let half = 0.5 / LOCAL as f64;
    [half * alpha, (half - 1.0) * alpha]
}

fn flat(noise: SmoothNoise<ReplaceOne>) -> crate::Draws {
    let noise = Rc::new(noise);
    both(0, i128::from(LOCAL), move |value, coins| {
        let release = noise.release(Secret::new(Flat(*value)), coins);
        *release.expect("the stream is open").value() <= 0
    })
}

fn cauchy(epsilon: f64, share: Share) -> SmoothNoise<ReplaceOne> {
    SmoothNoise::cauchy(inflated(epsilon, share)).expect("a usual epsilon")
}

fn cauchy_alpha(epsilon: f64, share: Share) -> f64 {
    cauchy(epsilon, share).alpha().to_f64_up()
}

fn cauchy_cdf(z: f64) -> f64 {
    0.5 + libm::atan(z) / std::f64::consts::PI
}

fn smooth_cauchy(epsilon: f64) -> Case {
    let chances = move |share: Share| arguments(cauchy_alpha(epsilon, share)).map(cauchy_cdf);
    let [likely, unlikely] = chances(Share::ALL);
    let claim = Claim::of(likely, unlikely, 1e-9);
    let name = format!("epsilon {epsilon}");
    let case = Case::new("smooth sensitivity, Cauchy", name, claim, move |share| {
        flat(cauchy(epsilon, share))
    });
    case.with_chances(chances).costing(Cost::Statistic)
}

fn laplace_cdf(z: f64) -> f64 {
    if z < 0.0 {
        0.5 * libm::exp(z)
    } else {
        1.0 - 0.5 * libm::exp(-z)
    }
}

/// Of its epsilon one half goes to the shift, and the other to noise that may differ.
fn smooth_laplace(epsilon: f64) -> Case {
    let chances = move |share: Share| arguments(epsilon / share.value() / 2.0).map(laplace_cdf);
    let [likely, unlikely] = chances(Share::ALL);
    let claim = Claim::of(likely, unlikely, 1e-9);
    let name = format!("epsilon {epsilon}");
    let case = Case::new("smooth sensitivity, Laplace", name, claim, move |share| {
        let noise = SmoothNoise::laplace(inflated(epsilon, share), delta(1e-6));
        flat(noise.expect("a usual epsilon"))
    });
    case.with_chances(chances).costing(Cost::Statistic)
}

/// Laplace noise times `exp(9/20 · normal)`. The fault has as much less noise as elsewhere, so its `ρ` is larger by the square of that.
fn smooth_log_normal(alpha: f64) -> Case {
    let noise = move |share: Share| {
        // α = √(ρ/2) exp(-3σ²/2)
        let grown = alpha / share.value() * libm::exp(1.5 * 0.45 * 0.45);
        let rho = Rho::new(2.0 * grown * grown).expect("not negative");
        SmoothNoise::<ReplaceOne>::laplace_log_normal(rho).expect("a usual rho")
    };
    // By the trapezoidal rule, which errs by less than 1e-9 for such a smooth integrand.
    let cdf = |z: f64| {
        let each = |step: i32| {
            let normal = f64::from(step) / 100.0;
            libm::exp(-normal * normal / 2.0) * laplace_cdf(z * libm::exp(-0.45 * normal))
        };
        let weight = |step: i32| libm::exp(-f64::from(step * step) / 20_000.0);
        (-900..=900).map(each).sum::<f64>() / (-900..=900).map(weight).sum::<f64>()
    };
    let chances = move |share| arguments(noise(share).alpha().to_f64_up()).map(cdf);
    let [likely, unlikely] = chances(Share::ALL);
    let claim = Claim::of(likely, unlikely, 1e-6);
    let name = format!("alpha {alpha}");
    let case = Case::new(
        "smooth sensitivity, log-normal",
        name,
        claim,
        move |share| flat(noise(share)),
    );
    case.with_chances(chances).costing(Cost::Statistic)
}

/// Answers at both ends of the range, and noise that covers it: at or below the lower end.
fn end_to_end(epsilon: f64, share: Share) -> [f64; 2] {
    [0.5, cauchy_cdf(-cauchy_alpha(epsilon, share))]
}

/// Rows at both ends, so that the medians of neighbours are at different ends and the noise covers the whole range.
fn smooth_median(epsilon: f64) -> Case {
    // The grid is fine.
    let [likely, unlikely] = end_to_end(epsilon, Share::ALL);
    let claim = Claim::of(likely, unlikely, 1e-4);
    let name = format!("epsilon {epsilon}, 5 rows");
    let case = Case::new("smooth median", name, claim, move |share| {
        let median = SmoothMedian::new(Bounds::new(0.0, 1.0).expect("an interval"));
        let parts = Rc::new((median, cauchy(epsilon, share)));
        both(0.0, 1.0, move |row, coins| {
            let (median, noise) = &*parts;
            let rows = median.aggregate([0.0, 0.0, *row, 1.0, 1.0]);
            let release = median.release(rows, noise, coins);
            *release.expect("the stream is open").value() <= 0.0
        })
    });
    case.with_chances(move |share| end_to_end(epsilon, share))
        .costing(Cost::Statistic)
}

/// Two nodes that share all ten others, joined or not: ten triangles, or none.
fn triangles(epsilon: f64) -> Case {
    const NODES: u32 = 12;
    let shared = f64::from(NODES - 2);
    let noise = move |share: Share| {
        SmoothNoise::<AddRemove>::cauchy(inflated(epsilon, share)).expect("a usual epsilon")
    };
    let chances = move |share| {
        let alpha = noise(share).alpha().to_f64_up();
        [0.5 / shared, 0.5 / shared - 1.0].map(|by| cauchy_cdf(by * alpha))
    };
    let [likely, unlikely] = chances(Share::ALL);
    let claim = Claim::of(likely, unlikely, 1e-9);
    let name = format!("epsilon {epsilon}, {NODES} nodes");
    let case = Case::new("triangles of a graph", name, claim, move |share| {
        let count = TriangleCount::new(NODES).expect("some nodes");
        let parts = Rc::new((count, noise(share)));
        both(false, true, move |joined, coins| {
            let (count, noise) = &*parts;
            let edges = (2..NODES).flat_map(|node| [(0, node), (1, node)]);
            let graph = count.aggregate(edges.chain(joined.then_some((0, 1))));
            let release = count.release(graph, noise, coins);
            *release.expect("the stream is open").value() == 0
        })
    });
    case.with_chances(chances).costing(Cost::Statistic)
}

/// Bounds that differ by `e^-0.1`, and values as far apart as the narrower allows: how likely less than `-wide` deviations are.
fn smooth_gaussian(multiplier: f64) -> Case {
    let (wide, narrow) = (100_000.0, 100_000.0 * libm::exp(-0.1));
    let far = multiplier * wide;
    let chances = move |share: Share| {
        let times = multiplier * share.value();
        [far / (times * wide), (far + narrow) / (times * narrow)].map(upper_tail)
    };
    let [likely, unlikely] = chances(Share::ALL);
    let claim = Claim::of(likely, unlikely, 1e-3);
    let name = format!("multiplier {multiplier}");
    let case = Case::new("smooth Gaussian", name, claim, move |share| {
        let times = Ratio::from_f64(multiplier * share.value()).expect("finite");
        // What it costs is stated by whoever proved it, and has no part in what is drawn.
        let cost = Mechanism::Composition(Vec::new());
        let mechanism = Rc::new(SmoothGaussian::<ReplaceOne>::new(times, cost));
        both((0_i64, wide), (narrow as i64, narrow), move |x, coins| {
            let smoothed = Smoothed {
                value: x.0,
                sensitivity: x.1,
            };
            let release = mechanism.release(Secret::new(smoothed), coins);
            (*release.expect("the stream is open").value() as f64) < -far
        })
    });
    case.with_chances(chances).costing(Cost::Statistic)
}

fn blocks<R: whit_core::Relation>() -> SubsampleAggregate<R> {
    let bounds = Bounds::new(0.0, 10.0).expect("an interval");
    SubsampleAggregate::new(bounds, 5).expect("some blocks")
}

/// A unit of three rows, and a function that jumps from end to end with one of them: the mean of five blocks moves by a fifth of the range.
fn subsample_mean(epsilon: f64) -> Case {
    let name = format!("epsilon {epsilon}, 5 blocks");
    let claim = Claim::loss(epsilon + 1e-5);
    let case = Case::new("subsample and aggregate, mean", name, claim, move |share| {
        let aggregate = blocks::<AddRemove>();
        let noisy = aggregate.with_noise(&Noise::Laplace(scale(2.0 / epsilon, share)));
        let parts = Rc::new((aggregate, noisy.expect("a usual scale")));
        both(3_usize, 0, move |rows, coins| {
            let (aggregate, noisy) = &*parts;
            let rows = vec![(0_u8, ()); *rows];
            let dealt = aggregate
                .partition(rows, coins)
                .expect("the stream is open");
            let values = aggregate.evaluate(dealt, |rows: &[()]| 10.0 * rows.len() as f64);
            let confidence = Confidence::new(0.95).expect("a share");
            let release = noisy.release(values, confidence, coins);
            release.expect("the stream is open").value().answer >= 2.0
        })
    });
    case.with_chances(move |share| fine_laplace_chances(epsilon / share.value()))
        .costing(Cost::Statistic)
}

/// One block: the function's value is the median, and a row moves it across the whole range.
fn subsample_median(epsilon: f64) -> Case {
    let [likely, unlikely] = end_to_end(epsilon, Share::ALL);
    let claim = Claim::of(likely, unlikely, 1e-4);
    let name = format!("epsilon {epsilon}, one block");
    let case = Case::new(
        "subsample and aggregate, median",
        name,
        claim,
        move |share| {
            let bounds = Bounds::new(0.0, 10.0).expect("an interval");
            let aggregate = SubsampleAggregate::<ReplaceOne>::new(bounds, 1).expect("a block");
            let parts = Rc::new((aggregate, cauchy(epsilon, share)));
            both(0.0, 10.0, move |row, coins| {
                let (aggregate, noise) = &*parts;
                let dealt = aggregate.partition([(0_u8, *row)], coins);
                let dealt = dealt.expect("the stream is open");
                let values = aggregate.evaluate(dealt, |rows: &[f64]| rows.iter().sum());
                let release = aggregate.median(values, noise, coins);
                *release.expect("the stream is open").value() <= 0.0
            })
        },
    );
    case.with_chances(move |share| end_to_end(epsilon, share))
        .costing(Cost::Statistic)
}
