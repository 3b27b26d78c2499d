//! Rules against their recursions in closed form, for gradients that do not change.

use super::*;

/// A grid step and an expected batch that make 64 units a mean gradient of one half.
const UNIT: f64 = 1.0 / 128.0;
const SUMS: [i64; 3] = [64, -128, 0];
const GRADIENTS: [f64; 3] = [0.5, -1.0, 0.0];
const RATE: f64 = 0.1;

fn made(rule: Rule) -> Optimizer {
    Optimizer::new(rule, Schedule::Constant { rate: RATE }, 3, 100).expect("in range")
}

/// How far the weights have moved after so many steps, over the learning rate.
fn moved(rule: Rule, steps: u32) -> [f64; 3] {
    let mut optimizer = made(rule);
    let mut weights = [0.0_f32; 3];
    for _ in 0..steps {
        optimizer
            .step(&mut weights, &SUMS, UNIT)
            .expect("one model");
    }
    weights.map(|w| -f64::from(w) / RATE)
}

fn check(rule: Rule, steps: u32, factor: f64) {
    for (found, gradient) in moved(rule, steps).into_iter().zip(GRADIENTS) {
        let expected = factor * gradient;
        assert!(
            (found - expected).abs() < 1e-5 * (1.0 + expected.abs()),
            "{rule:?} after {steps}: {found} {expected}"
        );
    }
}

/// Plain: `t`. Momentum: `v_t = g(1-βᵗ)/(1-β)`, so all steps together are `(t - β(1-βᵗ)/(1-β))/(1-β)`; Nesterov's has `g + βv_t` for `v_t`.
#[test]
fn sgd_moves_by_geometric_sums() {
    for steps in [1, 2, 3, 10, 50] {
        let t = f64::from(steps);
        check(Rule::Sgd { momentum: 0.0 }, steps, t);
        check(Rule::Nesterov { momentum: 0.0 }, steps, t);
        for momentum in [0.5_f32, 0.9] {
            let beta = f64::from(momentum);
            let heavy = (t - beta * (1.0 - beta.powi(steps as i32)) / (1.0 - beta)) / (1.0 - beta);
            check(Rule::Sgd { momentum }, steps, heavy);
            check(Rule::Nesterov { momentum }, steps, t + beta * heavy);
        }
    }
}

/// Of a constant gradient both corrected moments are `g` and `g²`: each step is `g/(|g| + ε)`.
#[test]
fn adam_moves_by_signs() {
    let rule = Rule::Adam {
        beta1: 0.9,
        beta2: 0.999,
        epsilon: 0.25,
    };
    for steps in [1, 2, 7, 40] {
        let found = moved(rule, steps);
        for (found, g) in found.into_iter().zip(GRADIENTS) {
            let expected = f64::from(steps) * g / (g.abs() + 0.25);
            assert!(
                (found - expected).abs() < 1e-3 * (1.0 + expected.abs()),
                "{found} {expected}"
            );
        }
    }
}

/// Gradients 1 and then -1: `m = -0.01`, corrected by `1/0.19`, and `s = 1` once corrected.
#[test]
fn adam_corrects_its_moments() {
    let rule = Rule::Adam {
        beta1: 0.9,
        beta2: 0.999,
        epsilon: 1e-8,
    };
    let mut optimizer = Optimizer::new(rule, Schedule::Constant { rate: 1.0 }, 1, 2).expect("fine");
    let mut weights = [0.0_f32];
    optimizer
        .step(&mut weights, &[128], UNIT)
        .expect("one model");
    assert!((weights[0] + 1.0).abs() < 1e-5, "{weights:?}");
    optimizer
        .step(&mut weights, &[-128], UNIT)
        .expect("one model");
    let second = f64::from(weights[0]) + 1.0;
    assert!((second - 0.01 / 0.19).abs() < 1e-4, "{second}");
}

#[test]
fn the_schedule_is_followed() {
    let linear = Schedule::Linear {
        first: 1.0,
        last: 0.0,
    };
    let mut optimizer = Optimizer::new(Rule::Sgd { momentum: 0.0 }, linear, 1, 5).expect("fine");
    let mut weights = [0.0_f32];
    for moved in [1.0, 1.75, 2.25, 2.5, 2.5] {
        optimizer
            .step(&mut weights, &[128], UNIT)
            .expect("one model");
        assert_eq!(f64::from(-weights[0]), moved);
    }
    assert_eq!(optimizer.taken(), 5);
}

/// The mean of weights 1, 2, 3 with weights β², β, 1.
#[test]
fn averages_weigh_the_latest_most() {
    for decay in [0.0_f32, 0.5, 0.9] {
        let mut average = Average::new(decay, 1).expect("in range");
        assert_eq!(average.weights(), None);
        for weight in [1.0, 2.0, 3.0] {
            average.update(&[weight]).expect("one model");
        }
        let beta = f64::from(decay);
        let expected = (beta * beta + 2.0 * beta + 3.0) / (beta * beta + beta + 1.0);
        let found = f64::from(average.weights().expect("three were taken")[0]);
        assert!(
            (found - expected).abs() < 1e-6,
            "{decay}: {found} {expected}"
        );
    }
}

/// Rules that remember something.
const RULES: [Rule; 3] = [
    Rule::Sgd { momentum: 0.9 },
    Rule::Nesterov { momentum: 0.9 },
    Rule::Adam {
        beta1: 0.9,
        beta2: 0.999,
        epsilon: 1e-8,
    },
];

#[test]
fn checkpoints_go_on_where_they_were() {
    for rule in RULES {
        let mut one = made(rule);
        let mut weights = [0.0_f32; 3];
        for _ in 0..3 {
            one.step(&mut weights, &SUMS, UNIT).expect("one model");
        }
        let mut other = made(rule);
        let state = one.state().map(<[f32]>::to_vec);
        other.restore(one.taken(), state).expect("one model");
        assert_eq!(one, other);
        let mut same_weights = weights;
        one.step(&mut weights, &SUMS, UNIT).expect("one model");
        other
            .step(&mut same_weights, &SUMS, UNIT)
            .expect("one model");
        assert_eq!(weights, same_weights);
    }
    let mut average = Average::new(0.9, 2).expect("in range");
    average.update(&[1.0, 2.0]).expect("one model");
    let mut other = Average::new(0.9, 2).expect("in range");
    let (taken, sums) = average.state();
    other.restore(taken, sums.to_vec()).expect("one model");
    assert_eq!(average, other);
}

/// More weights than one thread moves at a time, and not a multiple of that.
#[test]
fn threads_move_the_same_weights() {
    let count = 2 * PIECE + 77;
    let sums: Vec<i64> = (0..count as i64)
        .map(|i| (i * 7919) % 2003 - 1001)
        .collect();
    for rule in [[Rule::Sgd { momentum: 0.0 }].as_slice(), &RULES].concat() {
        let moved = |threads: usize| {
            let schedule = Schedule::Constant { rate: 0.1 };
            let mut optimizer = Optimizer::new(rule, schedule, count, 3).expect("in range");
            let mut weights = vec![0.5; count];
            let threads = std::num::NonZeroUsize::new(threads).expect("not zero");
            for _ in 0..3 {
                let step = optimizer.step_on(threads, &mut weights, &sums, UNIT);
                step.expect("one model");
            }
            (weights, optimizer)
        };
        let one = moved(1);
        assert!(one.0.iter().any(|&w| w != 0.5));
        assert!(one == moved(2) && one == moved(5));
        // And the pieces are where they belong: the weight of a sum moves as it would alone.
        let mut alone =
            Optimizer::new(rule, Schedule::Constant { rate: 0.1 }, 1, 3).expect("in range");
        let mut weight = [0.5];
        for _ in 0..3 {
            let step = alone.step(&mut weight, &sums[PIECE + 5..][..1], UNIT);
            step.expect("one model");
        }
        assert_eq!(weight[0], one.0[PIECE + 5]);
    }
}

#[test]
fn other_models_and_bad_numbers_are_refused() {
    let mut optimizer = made(Rule::Sgd { momentum: 0.9 });
    let refused = optimizer.step(&mut [0.0; 2], &SUMS, UNIT);
    assert!(matches!(
        refused,
        Err(Error::OtherModel {
            parameters: 3,
            given: 2
        })
    ));
    assert!(optimizer.step(&mut [0.0; 3], &SUMS[..2], UNIT).is_err());
    assert_eq!(optimizer.taken(), 0);
    assert!(optimizer.restore(1, [vec![0.0; 2], vec![]]).is_err());
    let schedule = Schedule::Constant { rate: 0.1 };
    for bad in [-0.1, 1.0, f32::NAN] {
        assert!(Average::new(bad, 1).is_err());
        for rule in [
            Rule::Sgd { momentum: bad },
            Rule::Adam {
                beta1: bad,
                beta2: 0.9,
                epsilon: 1e-8,
            },
        ] {
            assert!(Optimizer::new(rule, schedule, 1, 1).is_err());
        }
    }
}
