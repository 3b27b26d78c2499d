//! What must hold of every composition, on 2,000 random ones; 10,000 with `WHIT_LONG=1`.

use whit_accounting::{Bracket, Composition, Step};
use whit_core::Neighbours::{self, AddRemove, ReplaceOne};

fn cases() -> u32 {
    let long = std::env::var_os("WHIT_LONG").is_some_and(|value| value == "1");
    if long { 10_000 } else { 2_000 }
}

/// Steele and Vigna's SplitMix64: the same cases on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Even in the logarithm.
    fn between(&mut self, low: f64, high: f64) -> f64 {
        (low.ln() + (high / low).ln() * self.unit()).exp()
    }

    fn count(&mut self, low: u64, high: u64) -> u64 {
        self.between(low as f64, high as f64 + 1.0) as u64
    }
}

struct Case {
    neighbours: Neighbours,
    step: Step,
    count: u64,
    /// The same with less noise, or a higher rate.
    worse: Step,
}

fn random(random: &mut Random) -> Case {
    let factor = random.between(1.01, 1.5);
    match random.next() % 8 {
        0 => {
            let sigma = random.between(0.3, 300.0);
            let step = |sigma| Step::Gaussian {
                sigma,
                sensitivity: 1.0,
            };
            let count = random.count(1, 1_000_000);
            case(AddRemove, step(sigma), count, step(sigma / factor))
        }
        1 => {
            let scale = random.between(0.5, 50.0);
            let step = |scale| Step::Laplace {
                scale,
                sensitivity: 1.0,
            };
            case(
                AddRemove,
                step(scale),
                random.count(1, 40),
                step(scale / factor),
            )
        }
        2 => {
            let epsilon = random.between(0.001, 3.0);
            let categories = 2 + random.next() % 20;
            let step = |epsilon| Step::RandomizedResponse {
                epsilon,
                categories,
            };
            case(
                ReplaceOne,
                step(epsilon),
                random.count(1, 10_000),
                step(epsilon * factor),
            )
        }
        3 => {
            let (rate, sensitivity) = (random.between(0.01, 1.0), 1 + random.next() % 4);
            let step = |rate| Step::DiscreteLaplace { rate, sensitivity };
            case(
                AddRemove,
                step(rate),
                random.count(1, 1000),
                step(rate * factor),
            )
        }
        4 => {
            let (sigma, sensitivity) = (random.between(1.0, 30.0), 1 + random.next() % 3);
            let step = |sigma| Step::DiscreteGaussian { sigma, sensitivity };
            case(
                AddRemove,
                step(sigma),
                random.count(1, 1000),
                step(sigma / factor),
            )
        }
        5 => {
            let rate = random.between(0.001, 0.2);
            let step = |rate| Step::PoissonLaplace {
                rate,
                scale: 1.0,
                sensitivity: 1.0,
            };
            case(
                AddRemove,
                step(rate),
                random.count(1000, 100_000),
                step(rate * factor),
            )
        }
        kind => {
            let (rate, sigma) = (random.between(0.001, 0.3), random.between(0.8, 8.0));
            let step = |rate, noise_multiplier| Step::PoissonGaussian {
                rate,
                noise_multiplier,
            };
            let worse = if kind == 6 {
                step(rate, sigma / factor)
            } else {
                step(rate * factor, sigma)
            };
            case(
                AddRemove,
                step(rate, sigma),
                random.count(500, 100_000),
                worse,
            )
        }
    }
}

fn case(neighbours: Neighbours, step: Step, count: u64, worse: Step) -> Case {
    Case {
        neighbours,
        step,
        count,
        worse,
    }
}

fn epsilon(neighbours: Neighbours, steps: &[(Step, u64)], delta: f64) -> Bracket {
    let composition = Composition::new(neighbours, steps.to_vec()).expect("in range");
    composition.epsilon(delta).expect("priced").bounds
}

#[test]
fn answers_are_monotone_and_narrow() {
    let mut source = Random(1);
    let (mut wide, mut infinite) = (0, 0);
    let cases = cases();
    for number in 0..cases {
        let Case {
            neighbours,
            step,
            count,
            worse,
        } = random(&mut source);
        let delta = 10_f64.powf(-1.0 - 19.0 * source.unit());
        let found = epsilon(neighbours, &[(step.clone(), count)], delta);
        let told = format!("{number}: {step:?} x {count} at {delta:e}: {found:?}");
        assert!(!found.lower().is_nan() && !found.upper().is_nan(), "{told}");
        assert!(
            found.lower() <= found.upper() && found.lower() >= 0.0,
            "{told}"
        );
        if !found.upper().is_finite() {
            infinite += 1;
            continue;
        }
        if found.relative_width() > 1e-6 {
            wide += 1;
        }
        // Each of these costs at least as much, so its upper end is at or above our lower end.
        let more_steps = epsilon(neighbours, &[(step.clone(), count + 1 + count / 3)], delta);
        assert!(
            more_steps.upper() >= found.lower(),
            "steps: {told} {more_steps:?}"
        );
        let less_noise = epsilon(neighbours, &[(worse, count)], delta);
        assert!(
            less_noise.upper() >= found.lower(),
            "noise: {told} {less_noise:?}"
        );
        let less_delta = epsilon(neighbours, &[(step.clone(), count)], delta / 3.0);
        assert!(
            less_delta.upper() >= found.lower(),
            "delta: {told} {less_delta:?}"
        );
        // Narrow brackets also keep their middles in order.
        for (name, other) in [
            ("steps", more_steps),
            ("noise", less_noise),
            ("delta", less_delta),
        ] {
            let room = found.upper() - found.lower() + other.upper() - other.lower();
            assert!(
                other.estimate() >= found.estimate() - room,
                "{name}: {told} {other:?}"
            );
        }
    }
    assert!(wide <= cases / 50, "{wide} of {cases} are wider than 1e-6");
    assert_eq!(infinite, 0, "all of these have an epsilon");
}

#[test]
fn order_does_not_matter() {
    let mut source = Random(2);
    for _ in 0..200 {
        let mut parts: Vec<(Step, u64)> = Vec::new();
        while parts.len() < 3 {
            let next = random(&mut source);
            let smooth = matches!(
                next.step,
                Step::Gaussian { .. } | Step::PoissonGaussian { .. }
            );
            if smooth {
                parts.push((next.step, next.count));
            }
        }
        let forward = epsilon(AddRemove, &parts, 1e-6);
        parts.reverse();
        let backward = epsilon(AddRemove, &parts, 1e-6);
        assert!(
            forward.lower() <= backward.upper() && backward.lower() <= forward.upper(),
            "{parts:?}: {forward:?} {backward:?}"
        );
        assert!(forward.relative_width() < 1e-6, "{parts:?}: {forward:?}");
    }
}

/// Randomized response after `k` steps by its definition, with binomial probabilities from logarithms: good to about 1e-11.
#[test]
fn never_below_the_binomial_sum() {
    let mut source = Random(3);
    for _ in 0..500 {
        let (epsilon0, count) = (source.between(0.01, 2.0), source.count(1, 400));
        let mean = 1.0 / (1.0 + (-epsilon0).exp());
        let target = epsilon0 * (count as f64) * source.unit();
        let mut ln_choose = 0.0_f64;
        let mut truth = 0.0;
        for kept in 0..=count {
            if kept > 0 {
                ln_choose += ((count - kept + 1) as f64 / kept as f64).ln();
            }
            let loss = epsilon0 * (2.0 * kept as f64 - count as f64);
            if loss > target {
                let ln =
                    ln_choose + kept as f64 * mean.ln() + (count - kept) as f64 * (-mean).ln_1p();
                truth += ln.exp() * -(target - loss).exp_m1();
            }
        }
        let step = Step::RandomizedResponse {
            epsilon: epsilon0,
            categories: 2,
        };
        let composition = Composition::new(ReplaceOne, [(step, count)]).expect("in range");
        let found = composition.delta(target).expect("priced").bounds;
        assert!(
            found.upper() >= truth * (1.0 - 1e-9),
            "{epsilon0} {count} {target}: {found:?} {truth}"
        );
        assert!(
            found.lower() <= truth * (1.0 + 1e-9),
            "{epsilon0} {count} {target}: {found:?} {truth}"
        );
    }
}

#[test]
fn every_delta_has_an_answer() {
    let steps = [
        (
            AddRemove,
            Step::Gaussian {
                sigma: 20.0,
                sensitivity: 1.0,
            },
            512,
        ),
        (
            AddRemove,
            Step::Laplace {
                scale: 20.0,
                sensitivity: 1.0,
            },
            512,
        ),
        (
            AddRemove,
            Step::PoissonGaussian {
                rate: 0.01,
                noise_multiplier: 4.0,
            },
            10_000,
        ),
        (
            ReplaceOne,
            Step::RandomizedResponse {
                epsilon: 0.1,
                categories: 3,
            },
            500,
        ),
        (
            AddRemove,
            Step::DiscreteGaussian {
                sigma: 10.0,
                sensitivity: 1,
            },
            100,
        ),
    ];
    for (neighbours, step, count) in steps {
        let mut last = 0.0;
        for exponent in [-1, -3, -10, -30, -100, -200, -300] {
            let found = epsilon(neighbours, &[(step.clone(), count)], 10_f64.powi(exponent));
            assert!(
                found.upper().is_finite() && found.relative_width() < 1e-6,
                "{step:?} 1e{exponent}: {found:?}"
            );
            assert!(found.upper() >= last, "{step:?} 1e{exponent}: {found:?}");
            last = found.lower();
        }
    }
    let pure = Step::Laplace {
        scale: 20.0,
        sensitivity: 1.0,
    };
    let found = epsilon(AddRemove, &[(pure, 512)], 0.0);
    assert!(
        found.holds(25.6) && found.relative_width() < 1e-14,
        "{found:?}"
    );
    // More than is there: (0.1, 1e-8) a hundred times has infinite losses of 1e-6.
    let leaky = Step::Approximate {
        epsilon: 0.1,
        delta: 1e-8,
    };
    assert_eq!(
        epsilon(ReplaceOne, &[(leaky, 100)], 1e-10),
        Bracket::exact(f64::INFINITY)
    );
}

/// Poisson accounting of shuffled batches would be far below what they are proven to leak [CGK+24].
#[test]
fn shuffled_batches_are_never_priced_as_poisson() {
    for (noise_multiplier, batches, poisson, shuffled) in [
        (0.4, 1_000, 7.014, 13.21),
        (0.5, 1_000, 3.239, 9.997),
        (0.5, 10_000, 1.177, 9.991),
        (0.7, 1_000, 0.610, 6.529),
        (1.0, 1_000, 0.155, 2.882),
        (1.0, 100, 0.718, 4.063),
    ] {
        let sampled = Step::PoissonGaussian {
            rate: 1.0 / batches as f64,
            noise_multiplier,
        };
        let found = epsilon(AddRemove, &[(sampled, batches)], 1e-5);
        // The published column is an upper bound on a grid, a little above the truth.
        assert!(
            found.upper() <= poisson + 1e-3 && found.lower() >= 0.95 * poisson,
            "{found:?} {poisson}"
        );
        let step = Step::ShuffledBatches {
            batches,
            noise_multiplier,
            epochs: 1,
        };
        let refused = Composition::new(AddRemove, [(step.clone(), 1)]);
        assert!(refused.is_err(), "the relation does not fit the sampler");
        let price = epsilon(ReplaceOne, &[(step, 1)], 1e-5);
        assert!(price.lower() >= shuffled - 0.01, "{price:?} {shuffled}");
        assert!(price.upper() > found.upper());
    }
}
