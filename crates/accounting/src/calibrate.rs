//! # Least noise for a target
//! Grants are rounded down: the noise found here never costs more than the target, by the same upper bounds that
//! [`price`](crate::price()) reports. Where the answer is not one exact division, it was priced and compared before it
//! is handed out.

use whit_core::{Delta, Epsilon, Mechanism, Probability, Ratio, Scale};

use crate::price::by_notions;
use crate::search::smallest_passing;
use crate::{Error, Result, pure};

/// Calibrated Gaussian scales are `m 2^e` with `2^23 <= m < 2^24`: within one in eight million of the best, and short
/// enough to read and to sample with.
const MANTISSA_BITS: u32 = 24;
/// How many steps of the grid lie between one power of two and the next.
const STEPS_PER_OCTAVE: u64 = 1 << (MANTISSA_BITS - 1);
/// The ends of [`Scale`]: `2^-64` and `2^96`.
const SCALE_EXPONENTS: (i32, i32) = (-64, 96);
/// Calibrated keep probabilities are multiples of `2^-53`.
const KEEP_BITS: u32 = 53;

/// The scale of discrete Laplace noise that costs exactly `epsilon`: `sensitivity_l1 / epsilon`, without any rounding.
pub fn laplace_scale(sensitivity_l1: &Ratio, epsilon: Epsilon) -> Result<Scale> {
    if sensitivity_l1.is_zero() {
        return Err(Error::NothingToProtect);
    }
    let scale = sensitivity_l1
        .checked_div(&epsilon.to_ratio())
        .ok_or(Error::ZeroTarget { what: "epsilon" })?;
    Ok(Scale::new(scale)?)
}

/// The smallest scale of discrete Gaussian noise, on a grid of 24-bit mantissas, that concentrated DP proves within `epsilon` at `delta`: on any
/// grid and for any number of coordinates. [`least_scale`] finds less for a mechanism that is known in full.
pub fn gaussian_scale(
    sensitivity_l2_square: &Ratio,
    epsilon: Epsilon,
    delta: Delta,
) -> Result<Scale> {
    if sensitivity_l2_square.is_zero() {
        return Err(Error::NothingToProtect);
    }
    if delta == Delta::ZERO {
        return Err(Error::ZeroTarget { what: "delta" });
    }
    let passes = |place: u64| {
        let priced = Scale::new(scale_at(place))
            .map_err(Error::from)
            .and_then(|scale| {
                let sensitivity_l2_square = sensitivity_l2_square.clone();
                let gaussian = Mechanism::DiscreteGaussian {
                    scale,
                    sensitivity_l2_square,
                    coordinates: 1,
                };
                by_notions(&gaussian, 0.0, delta)
            });
        priced.is_ok_and(|bound| bound.epsilon <= epsilon && bound.delta <= delta)
    };
    let (least, most) = SCALE_EXPONENTS;
    let last = u64::from(most.abs_diff(least)) * STEPS_PER_OCTAVE;
    if !passes(last) {
        return Err(Error::OutOfReach {
            epsilon: epsilon.value(),
            delta: delta.value(),
        });
    }
    let found = if passes(0) {
        0
    } else {
        smallest_passing(0, last, passes)
    };
    if !passes(found) {
        return Err(Error::Unverified {
            what: "Gaussian scale",
        });
    }
    Ok(Scale::new(scale_at(found))?)
}

/// The smallest scale seen to pass, on the same grid, from one that passes down to half of it.
pub fn least_scale(known: &Scale, mut passes: impl FnMut(&Scale) -> bool) -> Scale {
    let ratio = known.ratio().to_f64_up();
    // The place of the float; only where to look rests on it.
    let exponent = ratio.log2().floor();
    let steps = (ratio / exponent.exp2() - 1.0) * STEPS_PER_OCTAVE as f64;
    let octave = exponent - f64::from(SCALE_EXPONENTS.0);
    let place = (octave.max(0.0) as u64) * STEPS_PER_OCTAVE + steps.max(0.0) as u64;
    let scale = |place: u64| Scale::new(scale_at(place)).ok();
    let mut test = |place: u64| scale(place).is_some_and(|scale| passes(&scale));
    let lowest = place.saturating_sub(STEPS_PER_OCTAVE);
    if place == 0 || !test(place) {
        return known.clone();
    }
    let found = if test(lowest) {
        lowest
    } else {
        smallest_passing(lowest, place, test)
    };
    match scale(found) {
        Some(found) if found.ratio() < known.ratio() => found,
        _ => known.clone(),
    }
}

/// The scales of the grid in rising order, from `2^-64` at 0 on.
fn scale_at(place: u64) -> Ratio {
    let octave = i32::try_from(place / STEPS_PER_OCTAVE).expect("the grid has 160 octaves");
    let mantissa = Ratio::from(STEPS_PER_OCTAVE + place % STEPS_PER_OCTAVE);
    let exponent = SCALE_EXPONENTS.0 + octave + 1 - MANTISSA_BITS as i32;
    &mantissa * &Ratio::power_of_two(exponent)
}

/// The largest keep probability, on a grid of `2^-53`, with which randomized response costs at most `epsilon`; exactly
/// `1/categories`, which costs nothing, if no larger one on the grid does.
pub fn randomized_response_keep(epsilon: Epsilon, categories: u64) -> Result<Probability> {
    if categories < 2 {
        return Err(Error::TooFewCategories { categories });
    }
    let whole = 1_u64 << KEEP_BITS;
    let keep_at = |lies: u64| {
        let keep = Ratio::new(u128::from(whole - lies), u128::from(whole))?;
        Probability::new(keep)
    };
    let passes = |keep: &Probability| {
        let response = Mechanism::RandomizedResponse {
            keep: keep.clone(),
            categories,
        };
        pure::epsilon(&response).is_ok_and(|found| found <= epsilon)
    };
    // Counted from the top: the price falls as the share of lies grows up to 1 - 1/categories.
    let lies_most = whole - whole.div_ceil(categories);
    let lies = smallest_passing(0, lies_most, |lies| {
        keep_at(lies).is_ok_and(|keep| passes(&keep))
    });
    let keep = keep_at(lies)?;
    if passes(&keep) {
        return Ok(keep);
    }
    let uniform = Probability::new(Ratio::new(1, u128::from(categories))?)?;
    if !passes(&uniform) {
        return Err(Error::Unverified {
            what: "keep probability",
        });
    }
    Ok(uniform)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zcdp;
    use whit_core::Rho;

    fn ratio(numerator: u128, denominator: u128) -> Ratio {
        Ratio::new(numerator, denominator).expect("the denominator is positive")
    }

    fn epsilon(value: f64) -> Epsilon {
        Epsilon::new(value).expect("finite and not negative")
    }

    fn delta(value: f64) -> Delta {
        Delta::new(value).expect("below one")
    }

    fn laplace_price(scale: Scale, sensitivity_l1: Ratio) -> Epsilon {
        let laplace = Mechanism::DiscreteLaplace {
            scale,
            sensitivity_l1,
            coordinates: 1,
        };
        pure::epsilon(&laplace).expect("pure")
    }

    fn gaussian_rho(scale: Ratio, sensitivity_l2_square: &Ratio) -> Rho {
        zcdp::rho(&Mechanism::DiscreteGaussian {
            scale: Scale::new(scale).expect("in range"),
            sensitivity_l2_square: sensitivity_l2_square.clone(),
            coordinates: 1,
        })
        .expect("finite")
    }

    #[test]
    fn laplace_is_exact() {
        for (sensitivity, target) in [((1, 1), 0.5), ((3, 1), 0.1), ((7, 3), 1e-6), ((1, 1), 30.0)]
        {
            let sensitivity = ratio(sensitivity.0, sensitivity.1);
            let scale = laplace_scale(&sensitivity, epsilon(target)).expect("in range");
            assert_eq!(scale.ratio() * &epsilon(target).to_ratio(), sensitivity);
            assert_eq!(laplace_price(scale, sensitivity), epsilon(target));
        }
    }

    #[test]
    fn gaussian_is_least_on_its_grid() {
        for (square, target, slack) in [
            (1, 1.0, 1e-6),
            (2, 0.1, 1e-9),
            (1, 10.0, 1e-5),
            (100, 1.0, 1e-12),
            (1, 0.0, 1e-3),
        ] {
            let square = ratio(square, 1);
            let scale = gaussian_scale(&square, epsilon(target), delta(slack)).expect("in reach");
            let costs = |scale: Ratio| {
                let rho = gaussian_rho(scale, &square);
                zcdp::epsilon(rho, delta(slack)).expect("finite")
            };
            assert!(costs(scale.ratio().clone()) <= epsilon(target));
            let less = scale.ratio() * &ratio((1 << 24) - 3, 1 << 24);
            assert!(
                costs(less) > epsilon(target),
                "{target}: {scale:?} is not the least"
            );
        }
    }

    /// For ε = 1 and δ = 1e-6 the exact analysis of [BW18, Thm 8] needs σ = 4.22467… (mpmath), ours a few percent more.
    #[test]
    fn gaussian_is_near_the_analytic_one() {
        let scale = gaussian_scale(&Ratio::one(), epsilon(1.0), delta(1e-6)).expect("in reach");
        let sigma = scale.ratio().to_f64_up();
        assert!((4.224_67..4.6).contains(&sigma), "{sigma}");
    }

    #[test]
    fn gaussian_scales_have_short_mantissas() {
        let scale = gaussian_scale(&ratio(5, 7), epsilon(0.3), delta(1e-7)).expect("in reach");
        let sigma = scale.ratio().to_f64_up();
        assert_eq!(
            Ratio::from_f64(sigma).as_ref(),
            Some(scale.ratio()),
            "a float holds it"
        );
        assert_eq!(f64::from(sigma as f32), sigma, "and a 24-bit one, too");
    }

    #[test]
    fn the_grid_runs_from_end_to_end() {
        assert_eq!(scale_at(0), Ratio::power_of_two(-64));
        assert_eq!(scale_at(160 * STEPS_PER_OCTAVE), Ratio::power_of_two(96));
        let (last, next) = (scale_at(STEPS_PER_OCTAVE - 1), scale_at(STEPS_PER_OCTAVE));
        assert!(last < next && next == Ratio::power_of_two(-63));
    }

    #[test]
    fn gaussian_ends_are_named() {
        let out_of_reach = gaussian_scale(&Ratio::power_of_two(200), epsilon(0.1), delta(1e-9));
        assert!(matches!(out_of_reach, Err(Error::OutOfReach { .. })));
        let tiny = gaussian_scale(&Ratio::power_of_two(-200), epsilon(1.0), delta(1e-9));
        assert_eq!(tiny.expect("in reach").ratio(), &Ratio::power_of_two(-64));
    }

    #[test]
    fn response_is_the_largest_on_its_grid() {
        for categories in [2, 3, 10, 1000] {
            for target in [1e-9, 0.1, 1.0, 3.0_f64.ln(), 8.0, 30.0] {
                let keep = randomized_response_keep(epsilon(target), categories).expect("exists");
                let price = |keep: Ratio| {
                    let keep = Probability::new(keep).expect("at most one");
                    pure::epsilon(&Mechanism::RandomizedResponse { keep, categories })
                };
                assert!(price(keep.ratio().clone()).expect("finite") <= epsilon(target));
                let more = keep.ratio() + &Ratio::power_of_two(-53);
                assert!(
                    price(more).is_ok_and(|found| found > epsilon(target)),
                    "{target}"
                );
                let truth = target.exp() / (target.exp() + categories as f64 - 1.0);
                assert!(
                    (keep.ratio().to_f64_up() - truth).abs() < 1e-15,
                    "{target} {categories}"
                );
            }
        }
    }

    #[test]
    fn response_without_budget_is_uniform() {
        for categories in [2, 3, 1 << 20, u64::MAX] {
            let keep = randomized_response_keep(Epsilon::ZERO, categories).expect("uniform");
            assert_eq!(keep.ratio(), &ratio(1, u128::from(categories)));
        }
        let keep = randomized_response_keep(epsilon(1e300), 2).expect("exists");
        assert!(keep.ratio() < &Ratio::one(), "a lie stays possible");
    }

    #[test]
    fn hopeless_targets_are_invalid() {
        let nothing = Err(Error::NothingToProtect);
        assert_eq!(laplace_scale(&Ratio::zero(), epsilon(1.0)), nothing);
        assert_eq!(
            gaussian_scale(&Ratio::zero(), epsilon(1.0), delta(1e-6)),
            nothing
        );
        let zero = laplace_scale(&Ratio::one(), Epsilon::ZERO);
        assert_eq!(zero, Err(Error::ZeroTarget { what: "epsilon" }));
        let zero = gaussian_scale(&Ratio::one(), epsilon(1.0), Delta::ZERO);
        assert_eq!(zero, Err(Error::ZeroTarget { what: "delta" }));
        for categories in [0, 1] {
            let few = randomized_response_keep(epsilon(1.0), categories);
            assert_eq!(few, Err(Error::TooFewCategories { categories }));
        }
        assert!(matches!(
            laplace_scale(&Ratio::one(), epsilon(1e-300)),
            Err(Error::Unit(_))
        ));
    }
}
