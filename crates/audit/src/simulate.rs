//! Worlds of which the truth is known, for tests of bounds.

use whit_core::Bits;
use whit_testkit::{SeededBits, long};

use crate::binomial::{Coin, upper_tail};
use crate::world::{Counts, Event, Outputs, World};

/// A coin that falls on heads with probability `p`, up to `2^-53`.
pub(crate) fn coin(seed: u64, p: f64) -> impl FnMut() -> bool {
    let mut bits = SeededBits::new(seed);
    let threshold = (p * 2_f64.powi(53)) as u64;
    move || bits.word() >> 11 < threshold
}

/// Randomized response that is exactly `epsilon`-DP, asked `trials` times in each world.
pub(crate) fn respond(epsilon: f64, trials: u64, seed: u64) -> Counts {
    let truth = 1.0 / (1.0 + (-epsilon).exp());
    let (one, other) = (coin(2 * seed, truth), coin(2 * seed + 1, 1.0 - truth));
    let yes = Event::new("yes", World::One, |said: &bool| *said);
    Outputs::run(trials as usize, one, other).hold().count(&yes)
}

/// Normal draws, by Box and Muller. Test data only.
pub(crate) fn normal(seed: u64) -> impl FnMut() -> f64 {
    let mut bits = SeededBits::new(seed);
    let mut uniform = move || ((bits.word() >> 11) as f64 + 0.5) * 2_f64.powi(-53);
    move || (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos()
}

/// Fails if a bound at this level is too large more often than that, so clearly that chance would show it less than once in a
/// million times. Seeds are fixed; the long form looks twenty times as often.
pub(crate) fn assert_false_alarms(level: f64, mut alarm: impl FnMut(u64) -> bool) {
    let runs = if long() { 40_000 } else { 2000 };
    let alarms = (0..runs).filter(|seed| alarm(1_000_000 + seed)).count() as u64;
    let chance = upper_tail(alarms, runs, Coin::with_heads(level));
    assert!(chance > 1e-6, "{alarms} of {runs} at level {level}");
}
