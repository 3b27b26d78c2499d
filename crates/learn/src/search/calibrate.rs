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

/// Noise whose price was seen to keep the target, from a `start` that may be too little. Between noise that fails and noise that passes the next is
/// found by the chord in logarithms, as epsilon is nearly a power of the noise.
pub(super) fn least<T>(
    target: f64,
    start: f64,
    priced: impl Fn(f64) -> Result<(T, Event, Bracket)>,
) -> Result<(f64, (T, Event, Bracket))> {
    let aim = target * (1.0 - 0.5 * CLOSE);
    // Noise and the epsilon that it has.
    let mut fails: Option<(f64, f64)> = None;
    let mut passes: Option<(f64, f64)> = None;
    let mut best = None;
    let mut next = short(start);
    for _ in 0..PRICES {
        let found = priced(next)?;
        let epsilon = found.2.upper();
        let close = epsilon >= target * (1.0 - CLOSE);
        if epsilon <= target {
            passes = Some((next, epsilon));
            best = Some((next, found));
            if close {
                break;
            }
        } else {
            fails = Some((next, epsilon));
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
            // Epsilon falls about as one over the noise, or faster.
            _ => next * (epsilon / aim).clamp(1.0 / STRIDE, STRIDE),
        });
        let same = |end: Option<(f64, f64)>| end.is_some_and(|(noise, _)| noise == next);
        if same(fails) || same(passes) {
            break;
        }
    }
    let what = "noise_multiplier";
    best.ok_or(whit_accounting::Error::Unverified { what }.into())
}

fn short(noise: f64) -> f64 {
    (noise * NOISE_UNIT).ceil() / NOISE_UNIT
}
