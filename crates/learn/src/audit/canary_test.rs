use super::*;
use crate::audit::bound::best_half_line;
use crate::audit::of_plan::claimed;
use crate::draft::{Draft, NoiseDraft, SamplerDraft};
use whit_audit::{Alpha, Claim, EpsilonBound, Group, Ruling};
use whit_core::Delta;
use whit_testkit::{Seeded, long};

fn draft(epsilon: f64) -> Draft {
    Draft {
        sampler: SamplerDraft::Poisson { rate: 0.5 },
        steps: 10,
        clip_norm: 1.0,
        adaptive: None,
        noise: NoiseDraft::Epsilon(epsilon),
        delta: 1e-5,
        relation: Neighbours::AddRemove,
        examples_public: 400,
    }
}

fn plan(epsilon: f64, relation: Neighbours, noise_share: f64) -> Plan {
    let mut draft = Draft {
        relation,
        ..draft(epsilon)
    };
    if noise_share < 1.0 {
        let full = Plan::new(&draft).expect("a plan").noise_multiplier();
        draft.noise = NoiseDraft::Multiplier(full * noise_share);
    }
    Plan::new(&draft).expect("a plan")
}

/// The bound of so many trials of each world, half of which choose the event.
fn measured(plan: &Plan, trials: usize, seed: u64) -> EpsilonBound {
    measured_at(plan, trials, seed, 1e-6)
}

/// The same, wrong with this probability.
fn measured_at(plan: &Plan, trials: usize, seed: u64, alpha: f64) -> EpsilonBound {
    let canaries = Canaries::new(plan, 256).expect("fits");
    let mut entropy = Seeded::new(seed);
    let outputs = canaries.worlds(trials, &mut entropy).expect("seeded");
    let (shown, held) = outputs.split();
    let alpha = Alpha::new(alpha).expect("in range");
    let delta = Delta::new(plan.delta().value()).expect("a slack");
    let event = best_half_line(&shown, delta, alpha).expect("scores");
    let bound = held.count(&event).epsilon_lower(delta, Group::ONE, alpha);
    bound.expect("counts")
}

fn claim(plan: &Plan) -> Claim {
    claimed(plan).expect("a bound")
}

fn trials() -> usize {
    if long() { 4_000_000 } else { 200_000 }
}

/// Without an assumption on distributions, at delta 1e-5: what is measured is below what is claimed, and most of it.
#[test]
fn a_canary_takes_most_of_what_is_claimed_and_no_more() {
    for (epsilon, share) in [(1.0, 0.35), (4.0, 0.5)] {
        let plan = plan(epsilon, Neighbours::AddRemove, 1.0);
        let bound = measured(&plan, trials(), 1);
        assert_ne!(bound.ruling(claim(&plan)), Ruling::Violated, "{bound:?}");
        assert!(
            bound.epsilon_lower() > share * epsilon,
            "{epsilon}: {bound:?}"
        );
    }
    let plan = plan(4.0, Neighbours::ReplaceOne, 1.0);
    let bound = measured(&plan, 2000, 2);
    assert_ne!(bound.ruling(claim(&plan)), Ruling::Violated, "{bound:?}");
}

/// At 99 % and delta 1e-5, what is measured grows with the trials: as many as seconds allow show seven tenths, and those of a long run four fifths.
#[test]
fn more_trials_measure_more_of_what_is_claimed() {
    let plan = plan(4.0, Neighbours::AddRemove, 1.0);
    let (trials, share) = if long() {
        (8_000_000, 0.8)
    } else {
        (1_200_000, 0.7)
    };
    let bound = measured_at(&plan, trials, 5, 0.01);
    assert!(bound.epsilon_lower() > share * 4.0, "{bound:?}");
    assert!(bound.epsilon_lower() <= plan.epsilon().upper(), "{bound:?}");
}

/// A twin that adds half of the noise is convicted at the claim of the whole.
#[test]
fn half_of_the_noise_is_convicted() {
    for epsilon in [1.0, 4.0] {
        let claimed = plan(epsilon, Neighbours::AddRemove, 1.0);
        let twin = plan(epsilon, Neighbours::AddRemove, 0.5);
        let bound = measured(&twin, 200_000, 3);
        assert_eq!(bound.ruling(claim(&claimed)), Ruling::Violated, "{bound:?}");
    }
}

/// Runs of plans whose samplers deal with everybody at once are one trial each: one canary, and so many runs as end.
#[test]
fn a_plan_whose_runs_are_one_trial_each_has_one_canary() {
    let fixed = |examples: u64| {
        let draft = Draft {
            sampler: SamplerDraft::FixedSize { size: 10 },
            relation: Neighbours::ReplaceOne,
            examples_public: examples,
            ..draft(4.0)
        };
        Plan::new(&draft).expect("a plan")
    };
    for examples in [60, 5000] {
        let plan = fixed(examples);
        let canaries = Canaries::side_by_side(&plan).expect("fits");
        assert_eq!((canaries.count, canaries.trials_of_a_run()), (1, 1));
        assert_eq!(canaries.rows, examples as usize);
        let worlds = canaries.scores_of_worlds(5, &mut Seeded::new(1));
        assert_eq!(worlds.expect("seeded")[0].len(), 5);
    }
    // More canaries than examples are told as that, and a small plan has fewer.
    let refused = Canaries::new(&fixed(60), 61).err();
    assert!(matches!(
        refused,
        Some(Error::OutOfRange { given: 61.0, .. })
    ));
    let small = Draft {
        relation: Neighbours::ReplaceOne,
        examples_public: 100,
        ..draft(4.0)
    };
    let small = Plan::new(&small).expect("a plan");
    assert_eq!(Canaries::side_by_side(&small).expect("fits").count, 100);
}

/// Canaries of one run do not know of each other: each has the mean and the deviation of its own Gaussian, and pairs are uncorrelated.
#[test]
fn canaries_of_one_run_are_independent_trials() {
    let plan = plan(4.0, Neighbours::AddRemove, 1.0);
    let canaries = Canaries::new(&plan, 64).expect("fits");
    let mut entropy = Seeded::new(4);
    let runs = 2000;
    let mut products = 0.0;
    let mut squares = 0.0;
    let mut sums = 0.0;
    for run in 0..runs {
        // Every other one is in: what the others are must not matter.
        let is_in: Vec<bool> = (0..64).map(|i| (i + run) % 2 == 0).collect();
        let scores = canaries.scores(&is_in, &mut entropy).expect("seeded");
        let out: Vec<f64> = (0..64).filter(|i| !is_in[*i]).map(|i| scores[i]).collect();
        sums += out.iter().sum::<f64>();
        squares += out.iter().map(|x| x * x).sum::<f64>();
        products += out.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>();
    }
    let count = f64::from(runs) * 32.0;
    let (mean, variance) = (sums / count, squares / count - (sums / count).powi(2));
    let covariance = products / (f64::from(runs) * 31.0) - mean * mean;
    // Six standard errors of a covariance of uncorrelated numbers.
    assert!(
        covariance.abs() < 6.0 * variance / count.sqrt(),
        "{covariance} {variance}"
    );
}

#[test]
fn one_run_finds_a_part_of_what_is_claimed() {
    let plan = plan(4.0, Neighbours::AddRemove, 1.0);
    let canaries = Canaries::new(&plan, 1000).expect("fits");
    let rule = GuessRule {
        highest_in: 50,
        lowest_out: 50,
    };
    let run = canaries.one_run(rule, &mut Seeded::new(5)).expect("seeded");
    let delta = Delta::new(1e-5).expect("a slack");
    let bound = run.epsilon_lower(delta, Alpha::new(0.05).expect("in range"));
    let bound = bound.expect("counts").epsilon_lower();
    assert!(bound > 0.5 && bound < 4.0, "{bound}");
}
