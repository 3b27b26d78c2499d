//! # Who trusts the stream
//! A white-box attack on cyclic runs: all rows that are released are seen, with the bin of a *canary* that adds the same vector of norm `C` whenever it has
//! its turn, by the sampler of the plan. By Neyman and Pearson nothing tells the worlds apart better than the rows along what the canary would add to
//! them. What is measured must be below the epsilon that is claimed and close to it; twins with a flaw must be convicted.

use super::*;
use crate::draft::{Draft, FactorDraft, NoiseDraft, SamplerDraft};
use crate::payment::{Payment, Uncharged};
use crate::plan::Plan;
use whit_audit::{Alpha, Claim, HalfLine, Verdict, falsify_outputs};
use whit_core::{Bits, Delta, Epsilon};
use whit_testkit::{Seeded, long};

/// How often a true claim may be convicted. Seeds are fixed, so that this is about their choice.
const ALPHA: f64 = 1e-6;

const STEPS: u64 = 12;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Flaw {
    Nothing,
    /// The canary comes to every step, whoever's turn it is.
    NoTurns,
}

fn plan(bins: u64, steps: u64, multiplier: f64, factor: FactorDraft) -> Plan {
    plan_for(Neighbours::AddRemove, bins, steps, multiplier, factor)
}

fn plan_for(
    relation: Neighbours,
    bins: u64,
    steps: u64,
    multiplier: f64,
    factor: FactorDraft,
) -> Plan {
    Plan::new(&Draft {
        sampler: SamplerDraft::Cyclic { bins, factor },
        steps,
        clip_norm: 1.0,
        adaptive: None,
        noise: NoiseDraft::Multiplier(multiplier),
        delta: 0.1,
        relation,
        examples_public: 4,
    })
    .expect("a plan")
}

/// All rows of a stream on these sums, each as `released` gives it away.
fn rows(stream: &mut Correlated, sums: &[i64], mut released: impl FnMut(i64) -> i64) -> Vec<f64> {
    let mut seen = Vec::new();
    for &sum in sums {
        let release = |row: Secret<Vec<i64>>| {
            let row = released(row.expose()[0]);
            seen.push(row as f64);
            Ok(vec![row])
        };
        let step = stream
            .encoder
            .step(NonZeroUsize::MIN, Secret::new(vec![sum]), release);
        step.expect("fits");
    }
    seen
}

/// How much likelier one run's releases are with the canary than without it, or than with one that points the other way where examples are
/// replaced, in logarithms.
fn likelihood(plan: &Plan, canary: bool, flaw: Flaw, entropy: &mut Seeded) -> f64 {
    let elsewhere = match plan.relation() {
        Neighbours::AddRemove => 0,
        _ => -1,
    };
    let stream = || plan.correlated().expect("in range").expect("cyclic");
    let payment = Payment::uncharged(plan, Uncharged);
    // In the world without it, a canary that adds nothing has a bin as well: what an attacker would expect of one.
    let sampler = plan.sampler(1, payment);
    let mut sampler = sampler.expect("paid");
    let mut turns = Vec::new();
    for _ in 0..plan.steps() {
        let batch = sampler.draw(entropy).expect("paid");
        turns.push(flaw == Flaw::NoTurns || !batch.expose().is_empty());
    }
    let unit = plan.clip_norm() / plan.grid();
    let sums = |there: bool| -> Vec<i64> {
        let times = if there { 1 } else { elsewhere };
        let sum = |&turn: &bool| i64::from(turn) * times * unit as i64;
        turns.iter().map(sum).collect()
    };
    let [expected, others] =
        [true, false].map(|there| rows(&mut stream(), &sums(there), |row| row));
    let mut noisy = stream();
    let (scale, square) = (noisy.scale.clone(), noisy.sensitivity_square.clone());
    let noise = RoundedGaussian::new(scale, Sensitivity::<L2, AddRemove>::from_square(square));
    let seen = rows(&mut noisy, &sums(canary), |row| {
        let released = noise.release(Secret::new(vec![row]), entropy);
        released.expect("seeded").into_value()[0]
    });
    let sigma = noisy.scale.ratio().to_f64_up();
    let each = expected.iter().zip(&others).zip(&seen);
    let each = each.map(|((a, b), u)| (a - b) / sigma * (u - (a + b) / 2.0) / sigma);
    each.sum()
}

fn verdict(done: &Plan, claimed: &Plan, flaw: Flaw, trials: u64) -> Verdict {
    let [with, without] = [true, false].map(|canary| -> Vec<f64> {
        let mut entropy = Seeded::new(91 + u64::from(canary));
        let run = |_| likelihood(done, canary, flaw, &mut entropy);
        (0..trials).map(run).collect()
    });
    let claim = Claim {
        epsilon: Epsilon::new(claimed.epsilon().upper()).expect("a bound"),
        delta: Delta::new(claimed.delta().value()).expect("a slack"),
    };
    let alpha = Alpha::new(ALPHA).expect("in range");
    // Somewhat below the claimed epsilon, which would be the best place if there were any number of runs.
    let place = HalfLine::AtLeast(0.9 * claimed.epsilon().upper());
    falsify_outputs(claim, &with, &without, &[place], alpha).expect("fits")
}

fn trials() -> u64 {
    if long() { 500_000 } else { 20_000 }
}

const BANDED: FactorDraft = FactorDraft::Banded { band: 3 };

#[test]
fn what_is_measured_is_below_what_is_claimed_and_close_to_it() {
    for (factor, bins, multiplier) in [
        (BANDED, 3, 1.8),
        (FactorDraft::Banded { band: 5 }, 2, 2.8),
        (FactorDraft::Tree, 3, 4.0),
    ] {
        let plan = plan(bins, STEPS, multiplier, factor);
        let verdict = verdict(&plan, &plan, Flaw::Nothing, trials());
        let claimed = plan.epsilon().upper();
        assert!(!verdict.convicted, "{verdict:?} above {claimed}");
        let share = verdict.epsilon_lower / claimed;
        assert!(
            share >= 0.75,
            "{factor:?}: {} of {claimed}",
            verdict.epsilon_lower
        );
    }
}

/// A claim for examples that are removed says too little of examples that are replaced.
#[test]
fn replaced_examples_are_within_their_claim_and_convict_that_of_removed_ones() {
    for (factor, multiplier) in [(BANDED, 3.6), (FactorDraft::Tree, 8.0)] {
        let replaced = plan_for(Neighbours::ReplaceOne, 3, STEPS, multiplier, factor);
        let own = verdict(&replaced, &replaced, Flaw::Nothing, trials());
        let claimed = replaced.epsilon().upper();
        assert!(!own.convicted, "{own:?} above {claimed}");
        assert!(own.epsilon_lower >= 0.75 * claimed, "{own:?} of {claimed}");
        let removed = plan(3, STEPS, multiplier, factor);
        let other = verdict(&replaced, &removed, Flaw::Nothing, trials() / 10);
        assert!(other.convicted, "{other:?}");
    }
}

/// A claim that counts one turn of each example, where there are four.
#[test]
fn turns_that_nobody_pays_for_are_convicted() {
    for (factor, multiplier) in [(BANDED, 1.8), (FactorDraft::Tree, 4.0)] {
        let once = plan(3, 3, multiplier, factor);
        let done = plan(3, STEPS, multiplier, factor);
        let verdict = verdict(&done, &once, Flaw::Nothing, trials() / 10);
        assert!(verdict.convicted, "{verdict:?}");
    }
}

/// A claim that adds up columns as if they did not meet, where they do: six turns, two steps apart, and a band of six.
#[test]
fn columns_that_meet_and_are_priced_apart_are_convicted() {
    let factor = FactorDraft::Banded { band: 6 };
    let apart = plan(6, 36, 2.8, factor);
    let done = plan(2, STEPS, 2.8, factor);
    assert_eq!(
        apart.summary().cyclic.map(|cyclic| cyclic.participations),
        Some(6)
    );
    let verdict = verdict(&done, &apart, Flaw::Nothing, trials() / 2);
    assert!(verdict.convicted, "{verdict:?}");
}

#[test]
fn a_sampler_that_does_not_keep_turns_is_convicted() {
    for (factor, multiplier) in [(BANDED, 1.8), (FactorDraft::Tree, 4.0)] {
        let plan = plan(3, STEPS, multiplier, factor);
        let verdict = verdict(&plan, &plan, Flaw::NoTurns, trials() / 10);
        assert!(verdict.convicted, "{verdict:?}");
    }
}

/// What is doubted above is what a run does: the same rows and the same estimates from the same entropy.
#[test]
fn the_rows_that_are_doubted_are_the_streams_own() {
    for factor in [BANDED, FactorDraft::Tree] {
        let plan = plan(3, STEPS, 1.5, factor);
        let stream = || plan.correlated().expect("in range").expect("cyclic");
        let payment = Payment::uncharged(&plan, Uncharged);
        let mut sampler = plan.sampler(1, payment).expect("paid");
        let (mut own, mut doubted) = (stream(), stream());
        let (mut one, mut other) = (Seeded::new(3), Seeded::new(3));
        let mut bits = Seeded::new(5).open().expect("seeded");
        let (scale, square) = (own.scale.clone(), own.sensitivity_square.clone());
        let noise = RoundedGaussian::new(scale, Sensitivity::<L2, AddRemove>::from_square(square));
        for _ in 0..STEPS {
            let batch = sampler.draw(&mut Seeded::new(2)).expect("paid");
            let sum = bits.word() as i64 >> 24;
            let row = |row: Secret<Vec<i64>>| Ok(noise.release(row, &mut other)?.into_value());
            let wanted = doubted
                .encoder
                .step(NonZeroUsize::MIN, Secret::new(vec![sum]), row);
            let found = own.release_on(NonZeroUsize::MIN, batch, Secret::new(vec![sum]), &mut one);
            assert_eq!(found.expect("seeded"), wanted.expect("seeded"));
        }
    }
}
