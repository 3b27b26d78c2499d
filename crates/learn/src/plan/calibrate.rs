//! The least noise that keeps an epsilon.

use whit_accounting::target::{Target, least_noise};
use whit_accounting::{Bracket, composition};
use whit_core::{Delta, Event};

use crate::error::Result;

/// Calibrated noise is rounded up to multiples of `2^-24`: short numbers, for next to no noise.
const NOISE_UNIT: f64 = 16_777_216.0;
/// Noise that no scale holds.
const OUT_OF_REACH: whit_accounting::Error = whit_accounting::Error::NoEngine {
    what: "noise beyond all scales",
};
/// How many prices are asked for until one keeps the target: noise is raised by a millionth at first, and by twice as big a share each time, by 4.2 times itself at last and 81 times in all. Where two engines answer for delta and
/// for epsilon, as for samples of fixed size, the one that is asked here may be coarser.
const RAISE: f64 = 1e-6;
const RAISES: u32 = 24;
/// A price this close to the target is as good as the target, and so is noise to the least that passes.
const NEAR: f64 = 1e-5;
/// How often less noise is tried.
const TRIES: u32 = 30;

/// Where a price takes seconds, one that is within this share of the target is near enough, and so many are asked for at most. No step
/// changes the noise by more than a factor of 16.
const CLOSE: f64 = 1e-4;
const PRICES: u32 = 24;
const STRIDE: f64 = 2.772_588_722_239_781;

/// An event and its epsilon.
pub(crate) type Found = (Event, Bracket);

/// The least noise whose price keeps the target, a short number. Whatever the searches do, the noise that is answered with was priced
/// itself, and its price keeps the target.
pub(crate) fn calibrate(
    epsilon: f64,
    delta: Delta,
    of: impl Fn(f64) -> Result<Event>,
    priced: impl Fn(f64) -> Result<Found>,
) -> Result<(f64, Found)> {
    let compose = |multiplier: f64| match of(multiplier) {
        Ok(event) => composition(&event),
        Err(_) => Err(OUT_OF_REACH),
    };
    let found = least_noise(compose, Target::new(epsilon, delta.value())?)?;
    let mut multiplier = short(found.bounds.upper());
    let (mut fails, mut raise) = (0.0, RAISE);
    for _ in 0..RAISES {
        let price = priced(multiplier)?;
        if price.1.upper() <= epsilon {
            let best = (multiplier, price);
            return Ok(match fails > 0.0 {
                true => narrowed(epsilon, fails, best, priced),
                false => best,
            });
        }
        fails = multiplier;
        multiplier = short(multiplier * (1.0 + raise));
        raise *= 2.0;
    }
    let what = "noise_multiplier";
    Err(whit_accounting::Error::Unverified { what }.into())
}

/// Less noise than what was found, if its price leaves room. The search asks how large delta is at the target's epsilon, and where losses
/// are bounded (removing an example from `n` Poisson samples of rate `q` has no loss above `n ln(1/(1-q))`) that is
/// answered by a coarser engine than how large epsilon is at the target's delta. So that is asked here, by halving what is not known. Only for
/// samplers that are priced in no time.
pub(super) fn lower(
    epsilon: f64,
    best: (f64, Found),
    priced: impl Fn(f64) -> Result<Found>,
) -> (f64, Found) {
    narrowed(epsilon, 0.0, best, priced)
}

/// The same, where noise is known that is not enough; 0 if none is.
fn narrowed(
    epsilon: f64,
    mut fails: f64,
    mut best: (f64, Found),
    priced: impl Fn(f64) -> Result<Found>,
) -> (f64, Found) {
    // Downward by growing steps at first, since what was found is hardly ever far off.
    let mut step: f64 = 1.0 / 64.0;
    for _ in 0..TRIES {
        let known = best.1.1.upper() >= epsilon * (1.0 - NEAR) || best.0 <= fails * (1.0 + NEAR);
        if known {
            break;
        }
        let next = if fails > 0.0 {
            0.5 * (fails + best.0)
        } else {
            step *= 2.0;
            best.0 * (1.0 - step.min(0.5))
        };
        let next = short(next);
        if next >= best.0 {
            break;
        }
        match priced(next) {
            Ok(price) if price.1.upper() <= epsilon => best = (next, price),
            // Noise without a price is no noise to answer with.
            _ => fails = next,
        }
    }
    best
}

/// The same for samplers whose price takes seconds: as few prices as possible, and a little more noise than the least. Epsilon is nearly a
/// power of the noise, so the secant rule in logarithms finds it; every noise that is tried and keeps the target is an answer.
pub(super) fn by_price(
    epsilon: f64,
    priced: impl Fn(f64) -> Result<Found>,
) -> Result<(f64, Found)> {
    // Just below the target, so that what is found keeps it.
    let aim = (epsilon * (1.0 - 0.5 * CLOSE)).ln();
    let mut best: Option<(f64, Found)> = None;
    let mut before: Option<(f64, f64)> = None;
    let mut multiplier = 1.0_f64;
    for _ in 0..PRICES {
        let price = priced(multiplier)?;
        let found = price.1.upper();
        if found <= epsilon && best.as_ref().is_none_or(|best| multiplier < best.0) {
            best = Some((multiplier, price));
        }
        if (1.0 - CLOSE..=1.0).contains(&(found / epsilon)) {
            break;
        }
        let here = (multiplier.ln(), found.ln());
        // Twice the noise is half the epsilon, until two prices say otherwise.
        let slope = before.map_or(-1.0, |(x, y)| (here.1 - y) / (here.0 - x));
        let slope = if slope < -0.1 { slope } else { -1.0 };
        before = Some(here);
        let step = ((aim - here.1) / slope).clamp(-STRIDE, STRIDE);
        multiplier = short((here.0 + step).exp());
    }
    let what = "noise_multiplier";
    best.ok_or_else(|| whit_accounting::Error::Unverified { what }.into())
}

fn short(multiplier: f64) -> f64 {
    (multiplier * NOISE_UNIT).ceil() / NOISE_UNIT
}
