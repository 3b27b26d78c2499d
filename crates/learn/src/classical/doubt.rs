//! Test instruments of the classical models: seeds, verdicts, and the search for worst neighbours.

use whit_audit::{Alpha, Claim, GdpVerdict, Verdict, falsify, falsify_gdp};
use whit_core::{Bits, Delta, Epsilon, Event, Fault, Mechanism, Mu, Secret};
use whit_testkit::{Seeded, SeededBits, fresh};

use super::noisy_sums::NoisySums;
use super::{Budget, Classical, Interval};
use crate::data::Dataset;
use crate::error::Result;
use crate::payment::{Payment, Priced, Uncharged, sealed::Sealed};

/// How often a true claim may be convicted. Seeds are fixed in ordinary runs, so that this is about their choice.
const ALPHA: f64 = 1e-6;

pub(super) fn budget(epsilon: f64, delta: f64) -> Budget {
    let epsilon = Epsilon::new(epsilon).expect("an epsilon");
    let delta = Delta::new(delta).expect("a delta");
    Budget::new(epsilon, delta).expect("above zero")
}

/// What a fit that nobody is charged for gives: the model, for the plan's event.
pub(super) fn fitted<Plan: Classical>(
    plan: &Plan,
    data: &Secret<Dataset>,
    seed: u64,
) -> Plan::Model {
    let fit = plan.on(data).expect("data of the plan's shape");
    let payment = Payment::uncharged(plan, Uncharged);
    let model = fit.release(payment, &mut seeded(seed)).expect("entropy");
    assert_eq!(model.event(), plan.event());
    model.into_value()
}

/// The code of why data are refused before anybody pays.
pub(super) fn refused(plan: &impl Classical, data: &Secret<Dataset>) -> Option<&'static str> {
    plan.on(data).err().map(|error| error.code())
}

/// Fixed in ordinary runs; fresh, and printed, under `WHIT_LONG=1` or `WHIT_FRESH=1`.
pub(super) fn seeded(of: u64) -> Seeded {
    Seeded::new(seed(of))
}

pub(super) fn seed(of: u64) -> u64 {
    if !fresh() {
        return of;
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "a test that asks for a fresh seed"
    )]
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |time| time.as_nanos() as u64);
    let seed = now ^ of.rotate_left(32);
    eprintln!("seed {seed} (for {of})");
    seed
}

/// The largest `mu` of what an event of Gaussians describes: `√(Σ Δ²/σ²)`.
pub(super) fn mu_of(event: &Event) -> f64 {
    fn square(mechanism: &Mechanism) -> f64 {
        match mechanism {
            Mechanism::Gaussian {
                scale,
                sensitivity_l2_square,
            } => sensitivity_l2_square.to_f64_up() / scale.ratio().to_f64_up().powi(2),
            Mechanism::Composition(parts) => parts.iter().map(square).sum(),
            _ => f64::INFINITY,
        }
    }
    square(event.mechanism()).sqrt()
}

/// What a broken twin does. Of each model some are possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    /// Nothing: the fit as it is.
    Nothing,
    /// A tenth too little noise.
    LessNoise,
    /// A sensitivity that forgets a part of what is released.
    Forgotten,
    /// Bounds, or a norm, that the data have and nobody has declared.
    BoundsFromData,
    /// Values outside of their bounds count as they are.
    Unclamped,
    /// Means over the rows that there are, with the noise that means over a public number of them would need.
    RowsFromData,
}

/// Budgets for which claims are doubted: with Gaussian noise, and pure. At this epsilon pure claims are told from a tenth more with the fewest trials: so
/// many are needed as `exp(ε)/ε²` says.
pub(super) const FORMS: [(f64, f64); 2] = [(6.0, 1e-6), (2.0, 0.0)];

/// A claim, and what is done instead: noise, and the sums of a world without the canary and of one with it.
pub(super) struct Twin {
    pub(super) claimed: NoisySums,
    pub(super) done: NoisySums,
    pub(super) sums: [Vec<i128>; 2],
}

impl Twin {
    /// Of a fit with these sums: the right one, or one that is wrong about noise alone. `forgetful` has the sensitivity that forgets.
    pub(super) fn new(
        flaw: Flaw,
        claimed: &NoisySums,
        forgetful: NoisySums,
        sums: [Vec<i128>; 2],
    ) -> Self {
        let done = match flaw {
            Flaw::LessNoise => claimed.less(),
            Flaw::Forgotten => forgetful,
            _ => claimed.clone(),
        };
        Self {
            claimed: claimed.clone(),
            done,
            sums,
        }
    }

    /// Judged by trials for a bound that is off by a tenth at most, or by so many times fewer.
    fn seen(&self, seed: u64, fewer: u64) -> Seen {
        let one = self.done.one();
        let [without, with] = &self.sums;
        let off = |a: &i128, b: &i128| (a - b) as f64 / one;
        let canary: Vec<f64> = with.iter().zip(without).map(|(a, b)| off(a, b)).collect();
        let zero: Vec<f64> = without.iter().map(|sum| *sum as f64 / one).collect();
        let done = self.done.copies(COPIES);
        let trials = trials(&self.claimed, &canary) / fewer;
        judge(&self.claimed, &canary, seed, trials, |present, entropy| {
            let payment = Payment::uncharged(&Bare(&done), Uncharged);
            let sums = || Secret::new(self.sums[usize::from(present)].repeat(COPIES));
            let noisy = done.release(payment, sums, entropy);
            let noisy = noisy.expect("entropy").into_value();
            let zero = zero.iter().cycle();
            noisy.iter().zip(zero).map(|(a, b)| a - b).collect()
        })
    }
}

/// Noise of one scale is independent for each coordinate, so that one release of so many copies of the sums is as many trials, in less time.
const COPIES: usize = 64;

/// How many trials tell a claim from a tenth more, and in vain once in a million times. With Laplace noise the event has a share of `2^-k` of them for a canary of `k` coordinates.
fn trials(claimed: &NoisySums, canary: &[f64]) -> u64 {
    let coordinates = canary.iter().filter(|v| **v != 0.0).count() as u32;
    match is_pure(claimed) {
        true => 11_000 * 2_u64.pow(coordinates),
        false => 60_000,
    }
}

fn is_pure(claimed: &NoisySums) -> bool {
    claimed.terms().budget.delta() == Delta::ZERO
}

/// The claim stands for what is done, and nine tenths of it are seen.
pub(super) fn acquits(seed: u64, twin: impl Fn(Flaw, (f64, f64)) -> Twin) {
    for form in FORMS {
        let seen = twin(Flaw::Nothing, form).seen(seed, 1);
        assert!(!seen.convicted && seen.share > 0.88, "{form:?}: {seen:?}");
    }
}

/// Each of these twins is convicted, with noise of both forms.
pub(super) fn convicts(seed: u64, flaws: &[Flaw], twin: impl Fn(Flaw, (f64, f64)) -> Twin) {
    for form in FORMS {
        for flaw in flaws {
            let fewer = if *flaw == Flaw::LessNoise { 1 } else { 8 };
            let seen = twin(*flaw, form).seen(seed, fewer);
            assert!(seen.convicted, "{flaw:?} {form:?}: {seen:?}");
        }
    }
}

/// What a falsifier says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// The claim does not hold.
    pub(super) convicted: bool,
    /// The bound from below that was measured, over the claim.
    pub(super) share: f64,
}

/// Judges a claim by the event that tells a canary best. `run` gives, for one trial or more, noisy sums less those of the world without the canary; `canary` is what it adds. For Gaussian noise
/// that is a half space along the canary, half way; for Laplace noise all coordinates are as far out as the canary or farther, and the loss is all of epsilon.
pub(super) fn judge(
    claimed: &NoisySums,
    canary: &[f64],
    seed: u64,
    trials: u64,
    run: impl Fn(bool, &mut Seeded) -> Vec<f64>,
) -> Seen {
    let pure = is_pure(claimed);
    let far = |noisy: &[f64]| {
        noisy
            .iter()
            .zip(canary)
            .all(|(noisy, v)| match v.total_cmp(&0.0) {
                std::cmp::Ordering::Equal => true,
                sign => (sign as i32 as f64) * (noisy - v) >= 0.0,
            })
    };
    let told = |noisy: &[f64]| {
        if pure {
            far(noisy)
        } else {
            along(noisy, canary) >= 0.5
        }
    };
    let world = |present: bool, of: u64| {
        let (mut entropy, run, told) = (seeded(of), &run, &told);
        let mut outcomes = Vec::new();
        move || {
            if outcomes.is_empty() {
                let noisy = run(present, &mut entropy);
                outcomes.extend(noisy.chunks_exact(canary.len()).map(told));
            }
            outcomes.pop().expect("at least one trial")
        }
    };
    let (one, other) = (world(true, seed), world(false, seed + 1000));
    let alpha = Alpha::new(ALPHA).expect("a level");
    if pure {
        let epsilon = claimed.terms().budget.epsilon();
        let verdict = falsify(Claim::pure(epsilon), trials, alpha, one, other);
        let verdict = verdict.expect("enough trials");
        return Seen {
            convicted: verdict.convicted,
            share: verdict.epsilon_lower / epsilon.value(),
        };
    }
    let mu = mu_of(claimed.event());
    let claim = Mu::new(mu).expect("a mu");
    let verdict = falsify_gdp(claim, trials, alpha, one, other).expect("enough trials");
    Seen {
        convicted: verdict.convicted,
        share: verdict.mu_lower / mu,
    }
}

/// Noise with its event, for whoever pays for nothing else.
pub(super) struct Bare<'a>(pub(super) &'a NoisySums);

impl Sealed for Bare<'_> {}

impl Priced for Bare<'_> {
    fn event(&self) -> &Event {
        self.0.event()
    }

    fn guarantee(&self) -> Result<Event> {
        self.0.guarantee()
    }
}

/// Numbers on a grid.
pub(super) fn in_grid(values: &[f64], bits: i32) -> Vec<i128> {
    let one = f64::from(bits).exp2();
    values.iter().map(|value| (value * one) as i128).collect()
}

/// One vector and another.
pub(super) fn plus(sums: &[i128], more: &[i128]) -> Vec<i128> {
    sums.iter().zip(more).map(|(a, b)| a + b).collect()
}

/// What no plan may do: the ends of the values that there are.
pub(super) fn spanned(values: impl Iterator<Item = f32> + Clone) -> Interval {
    let (lower, upper) = (
        values.clone().fold(f32::MAX, f32::min),
        values.fold(f32::MIN, f32::max),
    );
    Interval::new(f64::from(lower), f64::from(upper)).expect("two values")
}

/// Sensitivities as an event states them, in ones: L1 or the square of L2 of each round, and the number of sums where it is stated.
pub(super) fn stated(event: &Event, bits: i32) -> Vec<(f64, Option<u64>)> {
    let one = f64::from(bits).exp2();
    let part = |mechanism: &Mechanism| match mechanism {
        Mechanism::Gaussian {
            sensitivity_l2_square,
            ..
        } => (sensitivity_l2_square.to_f64_up() / (one * one), None),
        Mechanism::DiscreteLaplace {
            sensitivity_l1,
            coordinates,
            ..
        } => (sensitivity_l1.to_f64_up() / one, Some(*coordinates)),
        other => panic!("another event: {other:?}"),
    };
    match event.mechanism() {
        Mechanism::Composition(parts) => parts.iter().map(part).collect(),
        single => vec![part(single)],
    }
}

/// The longest that one example was seen to be, among so many tries: neighbours differ in it alone.
pub(super) fn longest(
    tries: usize,
    bits: i32,
    mut neighbours: impl FnMut() -> [Secret<Vec<i128>>; 2],
) -> (f64, f64) {
    (0..tries).fold((0.0, 0.0), |worst: (f64, f64), _| {
        let [with, without] = neighbours().map(Secret::expose);
        let apart = with.iter().zip(&without).map(|(a, b)| a - b).collect();
        let found = lengths(Secret::new(apart), bits);
        (worst.0.max(found.0), worst.1.max(found.1))
    })
}

/// Judges a claim of Gaussian differential privacy by a number that is about one where the canary is, and zero where it is not.
pub(super) fn two_worlds(
    mu: f64,
    seed: u64,
    mut run: impl FnMut(bool, &mut Seeded) -> f64,
) -> GdpVerdict {
    const TRIALS: usize = 50_000;
    let mut world = |present: bool, of: u64| {
        let mut entropy = seeded(of);
        let seen = (0..TRIALS).map(|_| run(present, &mut entropy) >= 0.5);
        seen.collect::<Vec<bool>>().into_iter()
    };
    let [mut one, mut other] = [world(true, seed), world(false, seed + 1000)];
    let next = |outcome: Option<bool>| outcome.expect("one for each trial");
    let claim = Mu::new(mu).expect("a mu");
    let alpha = Alpha::new(ALPHA).expect("a level");
    let (one, other) = (|| next(one.next()), || next(other.next()));
    falsify_gdp(claim, TRIALS as u64, alpha, one, other).expect("enough trials")
}

/// Judges a claim of pure differential privacy.
pub(super) fn judge_pure(
    epsilon: f64,
    trials: u64,
    world_one: impl FnMut() -> bool,
    world_other: impl FnMut() -> bool,
) -> Verdict {
    let claim = Claim::pure(Epsilon::new(epsilon).expect("an epsilon"));
    let alpha = Alpha::new(ALPHA).expect("a level");
    falsify(claim, trials, alpha, world_one, world_other).expect("enough trials")
}

/// The two lengths of what one example adds, in ones: L1 and the square of L2.
pub(super) fn lengths(sums: Secret<Vec<i128>>, bits: i32) -> (f64, f64) {
    let one = f64::from(bits).exp2();
    let sums = sums.expose();
    let sums = sums.iter().map(|sum| sum.unsigned_abs() as f64 / one);
    sums.fold((0.0, 0.0), |(l1, l2), sum| (l1 + sum, l2 + sum * sum))
}

/// The product of noisy sums with what the canary adds, over the square of the latter: about one if it is there, and zero if not.
pub(super) fn along(noisy: &[f64], canary: &[f64]) -> f64 {
    let product: f64 = noisy.iter().zip(canary).map(|(noisy, v)| noisy * v).sum();
    product / canary.iter().map(|v| v * v).sum::<f64>()
}

/// Features for the search: ends of the interval -1 to 1 and beyond, nonsense, and numbers within.
pub(super) fn nasty(bits: &mut SeededBits, features: usize) -> Vec<f32> {
    let mut value = || match bits.below(8) {
        0 | 1 => 1.0,
        2 | 3 => -1.0,
        4 => 1e30,
        5 => 0.0,
        _ => bits.below(4001) as f32 / 1000.0 - 2.0,
    };
    (0..features).map(|_| value()).collect()
}

/// A number that is nearly normal: the sum of twelve uniform ones.
pub(super) fn nearly_normal(bits: &mut SeededBits) -> f64 {
    let uniform = |bits: &mut SeededBits| (bits.word() >> 11) as f64 / (1_u64 << 53) as f64;
    (0..12).map(|_| uniform(bits)).sum::<f64>() - 6.0
}
