//! White-box canaries: how much of a plan's epsilon an adversary takes who sees every release, over many trials and in a single run.
//!
//! Bounds are free of assumptions about distributions; the event is chosen on one half of the trials and judged on the other, and the guesses of a single run are made
//! by a rule that stands here, fixed before any run.

use std::num::{NonZeroU64, NonZeroUsize};
use std::sync::Mutex;

use clap::Args;
use whit_audit::{Alpha, Counts, Group, GuessRule, OneRun, Share};
use whit_core::{Bits, Delta, Entropy, Neighbours};
use whit_learn::audit::bound::best_threshold;
use whit_learn::audit::canary::Canaries;
use whit_learn::{Draft, NoiseDraft, Plan, SamplerDraft};
use whit_mechanism::{OsEntropy, crew};

use super::bar::Bar;
use crate::failure::Failure;

/// Epsilons at delta 1e-5.
const EPSILONS: [f64; 3] = [1.0, 4.0, 8.0];
const DELTA: f64 = 1e-5;
/// Canaries that are tried side by side.
const SIDE_BY_SIDE: usize = 128;
/// Trials of each world that choose the event.
const CHOOSING: usize = 8_000_000;
/// Trials of each world that one thread takes at a time.
const PIECE: usize = 1 << 17;
/// Canaries of a single run with the rule for them: about where the mean bound is largest, by a simulation with other numbers.
const SINGLE: [(usize, GuessRule); 2] = [
    (
        1000,
        GuessRule {
            highest_in: 45,
            lowest_out: 45,
        },
    ),
    (
        5000,
        GuessRule {
            highest_in: 55,
            lowest_out: 55,
        },
    ),
];
/// Single runs of each.
const RUNS: usize = 20;
/// Simulated runs for false alarms.
const SIMULATED: u32 = 1000;

/// What the command can be told.
#[derive(Args)]
pub(crate) struct Options {
    /// How many threads work
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    threads: NonZeroUsize,
    /// Trials of each world that judge
    #[arg(long, value_name = "NUMBER", default_value_t = 240_000_000)]
    trials: u64,
    /// How likely an example is in a step of a single run
    #[arg(long, value_name = "RATE", default_value_t = 0.05)]
    single_rate: f64,
    /// Steps of a single run
    #[arg(long, value_name = "NUMBER", default_value_t = 500)]
    single_steps: u64,
}

/// How often examples take part.
struct Schedule {
    rate: f64,
    steps: u64,
}

impl Schedule {
    fn plan(&self, epsilon: f64) -> Result<Plan, Failure> {
        Ok(Plan::new(&Draft {
            sampler: SamplerDraft::Poisson { rate: self.rate },
            steps: self.steps,
            clip_norm: 1.0,
            adaptive: None,
            noise: NoiseDraft::Epsilon(epsilon),
            delta: DELTA,
            relation: Neighbours::AddRemove,
            examples_public: 5000,
        })?)
    }
}

fn alpha(value: f64) -> Result<Alpha, Failure> {
    Ok(Alpha::new(value).map_err(whit_learn::Error::from)?)
}

/// All tables.
pub(crate) fn run(options: &Options) -> Result<String, Failure> {
    let mut text = white_box(options)?;
    text += &single_runs(options)?;
    text += &false_alarms()?;
    Ok(text)
}

/// How often a canary is above the threshold in so many trials with it, and without.
fn above(
    canaries: &Canaries,
    threshold: f64,
    trials: u64,
    threads: NonZeroUsize,
    bar: &mut Bar,
) -> Result<[Share; 2], Failure> {
    let pieces = trials.div_ceil(PIECE as u64);
    let found = Mutex::new(([Share { hits: 0, trials: 0 }; 2], None, bar));
    crew::each(threads.get(), 0..pieces, |_| {
        let worlds = canaries.scores_of_worlds(PIECE, &mut OsEntropy::new());
        let (all, failed, bar) = &mut *super::lock(&found);
        match worlds {
            Ok(worlds) => {
                for (share, scores) in all.iter_mut().zip(worlds) {
                    share.hits += scores.iter().filter(|score| **score > threshold).count() as u64;
                    share.trials += scores.len() as u64;
                }
            }
            Err(error) => *failed = Some(error),
        }
        bar.step(2 * PIECE as u64, "white-box canaries");
    });
    let (shares, failed, _) = found
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(shares),
    }
}

fn white_box(options: &Options) -> Result<String, Failure> {
    let plans = Schedule {
        rate: 0.5,
        steps: 8,
    };
    let judging = options.trials.div_ceil(CHOOSING as u64) * CHOOSING as u64;
    let mut text = format!(
        "Many trials: {judging} of each world judge, {CHOOSING} others choose the event, 99 % confidence, Poisson rate {}, {} steps, delta 1e-5\n\n| claimed epsilon | noise multiplier | measured, no model | share | event | seen with, without |\n| --- | --- | --- | --- | --- | --- |\n",
        plans.rate, plans.steps
    );
    let mut bar = Bar::new(EPSILONS.len() as u64 * judging * 2);
    for epsilon in EPSILONS {
        let plan = plans.plan(epsilon)?;
        let canaries = Canaries::new(&plan, SIDE_BY_SIDE)?;
        let (shown, _) = canaries
            .worlds(2 * CHOOSING, &mut OsEntropy::new())?
            .split();
        let times = NonZeroU64::new(judging / CHOOSING as u64).unwrap_or(NonZeroU64::MIN);
        let delta = Delta::new(DELTA).map_err(whit_learn::Error::from)?;
        let threshold = best_threshold(&shown, delta, alpha(0.01)?, times)?;
        let [with, without] = above(&canaries, threshold, judging, options.threads, &mut bar)?;
        let event = format!("score above {threshold:.3}");
        let counts = Counts::of_fixed_event(event, with, without);
        let bound = counts.epsilon_lower(delta, Group::ONE, alpha(0.01)?);
        let bound = bound.map_err(whit_learn::Error::from)?;
        let claimed = plan.epsilon().upper();
        text += &format!(
            "| {claimed:.4} | {:.4} | {:.3} | {:.1} % | {} | {}, {} |\n",
            plan.noise_multiplier(),
            bound.epsilon_lower(),
            100.0 * bound.epsilon_lower() / claimed,
            bound.evidence(),
            with.hits,
            without.hits,
        );
    }
    Ok(text + "\n")
}

fn single_runs(options: &Options) -> Result<String, Failure> {
    let plans = Schedule {
        rate: options.single_rate,
        steps: options.single_steps,
    };
    let plan = plans.plan(4.0)?;
    let mut text = format!(
        "A single run at epsilon 4, 95 % confidence, mean of {RUNS} runs, guesses fixed before, Poisson rate {}, {} steps\n\n| canaries | guesses | measured, no model, mean | least and largest | share | by the other bound, mean |\n| --- | --- | --- | --- | --- | --- |\n",
        plans.rate, plans.steps
    );
    for (count, rule) in SINGLE {
        let canaries = Canaries::new(&plan, count)?;
        let found: Mutex<Vec<Result<OneRun, whit_learn::Error>>> = Mutex::new(Vec::new());
        crew::each(options.threads.get(), 0..RUNS, |_| {
            let run = canaries.one_run(rule, &mut OsEntropy::new());
            super::lock(&found).push(run);
        });
        let delta = Delta::new(DELTA).map_err(whit_learn::Error::from)?;
        let (mut bounds, mut plain) = (Vec::new(), Vec::new());
        for run in std::mem::take(&mut *super::lock(&found)) {
            let run = run?;
            let by = |bound: whit_audit::Result<whit_audit::EpsilonBound>| {
                bound
                    .map(|bound| bound.epsilon_lower())
                    .map_err(whit_learn::Error::from)
            };
            bounds.push(by(run.epsilon_lower_by_recursion(delta, alpha(0.05)?))?);
            plain.push(by(run.epsilon_lower(delta, alpha(0.05)?))?);
        }
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let least = bounds.iter().copied().fold(f64::INFINITY, f64::min);
        let largest = bounds.iter().copied().fold(0.0, f64::max);
        text += &format!(
            "| {count} | {} | {:.3} | {least:.3}, {largest:.3} | {:.1} % | {:.3} |\n",
            rule.highest_in + rule.lowest_out,
            mean(&bounds),
            100.0 * mean(&bounds) / plan.epsilon().upper(),
            mean(&plain),
        );
    }
    Ok(text + "\n")
}

/// Canaries of randomized response, whose epsilon is exact and nowhere slack: how often a bound at 95 % is above it.
fn false_alarms() -> Result<String, Failure> {
    let mut text = String::from(
        "False alarms at 95 %: simulated runs of randomized response, whose every guess is as good as epsilon allows\n\n| epsilon | canaries, all guessed | runs | above, by recursion | above, by the other bound |\n| --- | --- | --- | --- | --- |\n",
    );
    for (epsilon, count) in [(1.0_f64, 1000_u64), (4.0, 1000), (4.0, 5000)] {
        let right = epsilon.exp() / (1.0 + epsilon.exp());
        let mut entropy = OsEntropy::new();
        let mut wrong = [0_u32; 2];
        for _ in 0..SIMULATED {
            let mut bits = entropy.open().map_err(whit_learn::Error::from)?;
            let coin = |word: u64| (word >> 11) as f64 / 9_007_199_254_740_992.0 < right;
            let hits = (0..count).filter(|_| coin(bits.word())).count() as u64;
            let run =
                OneRun::of_fixed_guesses(count, count, hits).map_err(whit_learn::Error::from)?;
            let bounds = [
                run.epsilon_lower_by_recursion(Delta::ZERO, alpha(0.05)?),
                run.epsilon_lower(Delta::ZERO, alpha(0.05)?),
            ];
            for (wrong, bound) in wrong.iter_mut().zip(bounds) {
                let bound = bound.map_err(whit_learn::Error::from)?;
                *wrong += u32::from(bound.epsilon_lower() > epsilon);
            }
        }
        text += &format!(
            "| {epsilon} | {count} | {SIMULATED} | {} | {} |\n",
            wrong[0], wrong[1]
        );
    }
    Ok(text)
}
