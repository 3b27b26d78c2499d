//! The least noise at which a search keeps an epsilon.

use whit_accounting::Bracket;
use whit_core::Event;

use crate::error::Result;

/// A price this close to the target is as good as the target: prices of searches take a second.
const CLOSE: f64 = 1e-3;
/// How many prices are asked for, at most.
const PRICES: u32 = 24;
/// No step changes the noise by a larger factor.
const STRIDE: f64 = 8.0;
/// Noise is rounded up to multiples of `2^-16`: short numbers, for next to no noise.
const NOISE_UNIT: f64 = 65_536.0;

/// How often noise that has no price at all is raised before any has passed, each time to its double.
const RAISES: usize = 6;

/// Noise whose price was seen to keep the target, from a `start` that may be too little. Between noise that fails and noise that passes the next is
/// found by the chord in logarithms, as epsilon is nearly a power of the noise. Noise without a price fails: a pad may be enough for the noise of several runs and too short
/// for that of one. Why it has none is told only if nothing has passed.
pub(super) fn least<T>(
    target: f64,
    start: f64,
    priced: impl Fn(f64) -> Result<(T, Event, Bracket)>,
) -> Result<(f64, (T, Event, Bracket))> {
    let aim = target * (1.0 - 0.5 * CLOSE);
    // Noise and the epsilon that it has, which is none where there is no price.
    let mut fails: Option<(f64, f64)> = None;
    let mut passes: Option<(f64, f64)> = None;
    let mut best = None;
    let mut unpriced = Vec::new();
    let mut next = short(start);
    for _ in 0..PRICES {
        let epsilon = match priced(next) {
            Ok(found) => {
                let epsilon = found.2.upper();
                if epsilon <= target {
                    passes = Some((next, epsilon));
                    best = Some((next, found));
                }
                epsilon
            }
            Err(error) => {
                unpriced.push(error);
                f64::INFINITY
            }
        };
        if epsilon > target {
            fails = Some((next, epsilon));
        }
        let close = (target * (1.0 - CLOSE)..=target).contains(&epsilon);
        if close || (best.is_none() && unpriced.len() > RAISES) {
            break;
        }
        next = short(match (fails, passes) {
            (Some(low), Some(high)) => {
                let slope = (high.1 / low.1).ln() / (high.0 / low.0).ln();
                let chord = low.0 * ((aim / low.1).ln() / slope).exp();
                // Within the ends, and not so near to one that nothing is gained.
                let (least, most) = (
                    low.0 * (high.0 / low.0).powf(0.02),
                    low.0 * (high.0 / low.0).powf(0.98),
                );
                match chord.is_finite() {
                    true => chord.clamp(least, most),
                    false => (low.0 * high.0).sqrt(),
                }
            }
            _ if epsilon.is_infinite() => 2.0 * next,
            // Epsilon falls about as one over the noise, or faster.
            _ => next * (epsilon / aim).clamp(1.0 / STRIDE, STRIDE),
        });
        let same = |end: Option<(f64, f64)>| end.is_some_and(|(noise, _)| noise == next);
        if same(fails) || same(passes) {
            break;
        }
    }
    let what = "noise_multiplier";
    let unverified = || whit_accounting::Error::Unverified { what }.into();
    best.ok_or_else(|| unpriced.into_iter().next().unwrap_or_else(unverified))
}

fn short(noise: f64) -> f64 {
    (noise * NOISE_UNIT).ceil() / NOISE_UNIT
}
