//! # The normal distribution, in brackets
//! `φ` is the density, `Φ` the distribution function, `S = 1 - Φ` the survival function and
//! `m(x) = S(x)/φ(x) = ∫_0^∞ e^(-xt-t²/2) dt` Mills' ratio. More generally
//! `I_n(x) = ∫_0^∞ t^n e^(-xt-t²/2) dt`: all are positive and falling, `I_n' = -I_(n+1)`, `I_0 = m`, and by parts
//! `I_1 = 1 - x m`, `I_(n+1) = n I_(n-1) - x I_n`.
//!
//! **How the error is bounded.** Let `u = 2^-53`.
//! 1. `m` on `[0, 12)` is `√(π/2) e^(t²) erfc(t)` at the float `t` next to `x/√2`. The relative error of `t`, `2u`,
//!    reaches `m` undiminished at most: `|x m'/m| = x I_1/I_0 = 1 - I_2/I_0 < 1`. The square is exact in two floats.
//!    `exp` is documented to err by less than one unit in the last place (`2u`), and twice that is allowed. `erfc`
//!    multiplies two such exponentials, divides once, and has a rational function of a few units in one of the
//!    exponents; eight units (`16u`) are allowed. With the roundings of sums, products and `√(π/2)` this is below
//!    `28u`.
//! 2. `m` from 12 on is `Σ_k (-1)^k (2k-1)!!/x^(2k+1)`, which encloses by turns: the remainder of the exponential
//!    series under the integral has the sign of the first term left out and is smaller. That term is below `1e-19`
//!    here, and Horner's rule, all of whose factors are in `(0, 0.4)`, adds a few `u`.
//! 3. `φ` squares exactly and takes the exponential of half the exponent, so that only the last product can underflow.
//!
//! Functions of a bracket use that they are monotone. What underflows is reported as between 0 and the smallest float.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use crate::Bracket;

/// `u`, half a unit in the last place of 1.
pub(crate) const HALF_ULP: f64 = f64::EPSILON / 2.0;
/// A relative error that [`mills`] keeps.
pub(crate) const MILLS_ERROR: f64 = 32.0 * HALF_ULP;
/// A relative error that [`bell`] and [`density_at`] keep before underflow.
pub(crate) const DENSITY_ERROR: f64 = 32.0 * HALF_ULP;
/// From here on the asymptotic series is exact to the last digit.
const SERIES_FROM: f64 = 12.0;
/// `√(π/2)` and `1/√(2π)`, each to the nearest float (mpmath 1.3.0).
const SQRT_HALF_PI: f64 = 1.253_314_137_315_500_3;
pub(crate) const FRAC_1_SQRT_2PI: f64 = 0.398_942_280_401_432_7;
/// `S(39) < 1e-331`: from here on survival is below the smallest positive float.
pub(crate) const UNDERFLOWS_FROM: f64 = 39.0;

/// `value (1 ± error)` for `value >= 0`, with room for the rounding of the end and for four products that
/// underflow, the first of which is halved by later ones.
pub(crate) fn within(value: f64, error: f64) -> Bracket {
    let lower = (value * (1.0 - error)).next_down().next_down().next_down();
    let upper = (value * (1.0 + error)).next_up().next_up().next_up();
    let lower = lower.max(0.0);
    Bracket::new(lower, upper)
}

/// `m(x)` for `x >= 0`, up to [`MILLS_ERROR`].
pub(crate) fn mills(x: f64) -> f64 {
    if x >= SERIES_FROM {
        return moment_series(0, x);
    }
    let t = x * FRAC_1_SQRT_2;
    let square = t * t;
    let rest = t.mul_add(t, -square);
    let power = libm::exp(square);
    (power + power * rest) * libm::erfc(t) * SQRT_HALF_PI
}

/// `I_n(x) x^(n+1)/n! = Σ_k (-1)^k (n+2k)!/(n! 2^k k! x^(2k))` for `n <= 5` and `x >= 12`, times `n!/x^(n+1)`.
/// Relative error below `16u` for `n <= 1`, `1e-14` up to `n = 5`.
fn moment_series(n: u32, x: f64) -> f64 {
    // The first term left out, over the sum: at most 1e-19 for n <= 1, 1e-15 for n <= 5.
    let terms = if x < 16.0 {
        24
    } else if x < 40.0 {
        14
    } else {
        8
    };
    let inverse = 1.0 / x;
    let z = inverse * inverse;
    let order = f64::from(n);
    let mut sum = 1.0;
    for k in (0..terms).rev() {
        let k = f64::from(k);
        let ratio = (order + 2.0 * k + 1.0) * (order + 2.0 * k + 2.0) / (2.0 * (k + 1.0));
        sum = 1.0 - ratio * z * sum;
    }
    (1..=n).fold(inverse * sum, |value, i| value * f64::from(i) * inverse)
}

/// `I_1`, `I_3` and `I_5` at `x >= 0`, with bounds of their absolute errors.
pub(crate) fn odd_moments(x: f64) -> ([f64; 3], [f64; 3]) {
    if x >= SERIES_FROM {
        let values = [1, 3, 5].map(|n| moment_series(n, x));
        return (values, values.map(|value| value * 2e-14));
    }
    // Each I_n is below I_n(0) <= 8, and each step multiplies the error by x and rounds numbers below 8 n + 8.
    let mut values = [mills(x), 0.0, 0.0, 0.0, 0.0, 0.0];
    let mut errors = [values[0] * MILLS_ERROR, 0.0, 0.0, 0.0, 0.0, 0.0];
    values[1] = 1.0 - x * values[0];
    errors[1] = x * errors[0] + 3.0 * HALF_ULP;
    for n in 1..5_u8 {
        let (i, n) = (usize::from(n), f64::from(n));
        let (kept, turned) = (n * values[i - 1], x * values[i]);
        values[i + 1] = kept - turned;
        errors[i + 1] =
            n * errors[i - 1] + x * errors[i] + 3.0 * HALF_ULP * (kept.abs() + turned.abs());
    }
    let slack = |error: f64| error * 1.01;
    (
        [values[1], values[3], values[5]],
        [slack(errors[1]), slack(errors[3]), slack(errors[5])],
    )
}

/// `φ(high + low)` as `power² × factor`, for two floats of which the second is at most a unit of the first: the caller
/// multiplies in an order that does not underflow early. [`DENSITY_ERROR`] holds for the product.
pub(crate) fn bell(high: f64, low: f64) -> (f64, f64) {
    let square = high * high;
    let rest = high.mul_add(high, -square) + 2.0 * high * low;
    (
        libm::exp(-square / 4.0),
        FRAC_1_SQRT_2PI * (1.0 - rest / 2.0),
    )
}

/// `φ(x)`, up to [`DENSITY_ERROR`] and underflow.
pub(crate) fn density_at(x: f64) -> f64 {
    if x.abs() >= UNDERFLOWS_FROM {
        return 0.0;
    }
    let (power, factor) = bell(x, 0.0);
    power * (power * factor)
}

/// `S(x)` at a float.
pub(crate) fn survival_at(x: f64) -> Bracket {
    if x >= UNDERFLOWS_FROM {
        Bracket::new(0.0, f64::from_bits(1))
    } else if x >= 0.0 {
        let (power, factor) = bell(x, 0.0);
        let value = power * (power * (factor * mills(x)));
        within(value, MILLS_ERROR + DENSITY_ERROR + 8.0 * HALF_ULP)
    } else {
        // erfc of a negative number is in [1, 2], where the error 2u of the argument counts at most half.
        within(0.5 * libm::erfc(x * FRAC_1_SQRT_2), 24.0 * HALF_ULP).clamp(0.0, 1.0)
    }
}

/// `S`, for a number in the bracket.
pub(crate) fn survival(x: Bracket) -> Bracket {
    Bracket::new(
        survival_at(x.upper()).lower(),
        survival_at(x.lower()).upper(),
    )
}

/// `Φ`, for a number in the bracket.
pub(crate) fn cdf(x: Bracket) -> Bracket {
    survival(-x)
}

/// `φ`, for a number in the bracket.
pub(crate) fn density(x: Bracket) -> Bracket {
    let at = |x: f64| within(density_at(x), DENSITY_ERROR);
    let ends = at(x.lower()).hull(at(x.upper()));
    if x.holds(0.0) {
        ends.hull(Bracket::new(ends.lower(), FRAC_1_SQRT_2PI.next_up()))
    } else {
        ends
    }
}

/// `m`, for a number in the bracket; infinite where that overflows.
pub(crate) fn mills_ratio(x: Bracket) -> Bracket {
    let at = |x: f64| {
        if x >= 0.0 {
            within(mills(x), MILLS_ERROR)
        } else {
            let density = density(Bracket::exact(x));
            if density.lower() > 0.0 {
                survival_at(x) / density
            } else {
                // 1/(2 φ(x)) with φ(-38.5) < 1e-322.
                Bracket::new(1e300, f64::INFINITY)
            }
        }
    };
    Bracket::new(at(x.upper()).lower(), at(x.lower()).upper())
}

/// `ln S`, for a number in the bracket, also far beyond where `S` underflows.
pub(crate) fn ln_survival(x: Bracket) -> Bracket {
    let at = |x: f64| {
        if x <= 0.0 {
            (-survival_at(-x)).ln_1p()
        } else {
            let x = Bracket::exact(x);
            let half_square = x * x * Bracket::exact(0.5);
            let root = Bracket::new(FRAC_1_SQRT_2PI.next_down(), FRAC_1_SQRT_2PI.next_up());
            (mills_ratio(x) * root).ln() - half_square
        }
    };
    Bracket::new(at(x.upper()).lower(), at(x.lower()).upper())
}

/// The `x` with `S(x) = s`, for a number `0 < s < 1` in the bracket; infinite at the ends.
pub(crate) fn survival_quantile(s: Bracket) -> Bracket {
    Bracket::new(
        quantile_end(s.upper()).lower(),
        quantile_end(s.lower()).upper(),
    )
}

/// The `x` with `Φ(x) = p`, for a number in the bracket.
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the upper tail is what is asked for")
)]
pub(crate) fn quantile(p: Bracket) -> Bracket {
    -survival_quantile(p)
}

fn quantile_end(s: f64) -> Bracket {
    if s <= 0.0 {
        return Bracket::exact(f64::INFINITY);
    }
    if s >= 1.0 {
        return Bracket::exact(f64::NEG_INFINITY);
    }
    if s > 0.5 {
        // The difference is exact.
        return -quantile_end(1.0 - s);
    }
    let place = quantile_guess(s);
    // Newton's rule has left a few units; the truth is enclosed by looking.
    let mut step = place.max(1e-300) * f64::EPSILON + 1e-16 * mills(place);
    let (mut lower, mut upper) = (f64::NAN, f64::NAN);
    // Doubling from a unit passes every float before the bound is reached.
    for _ in 0..1100 {
        if lower.is_nan() && survival_at(place - step).lower() >= s {
            lower = place - step;
        }
        if upper.is_nan() && survival_at(place + step).upper() <= s {
            upper = place + step;
        }
        if !lower.is_nan() && !upper.is_nan() {
            // Below the smallest float survival is only known to be positive.
            return Bracket::new(lower, upper);
        }
        step *= 2.0;
    }
    Bracket::new(
        if lower.is_nan() { 0.0 } else { lower },
        if upper.is_nan() { f64::INFINITY } else { upper },
    )
}

/// About where `S` is `s <= 1/2`.
pub(crate) fn quantile_guess(s: f64) -> f64 {
    quantile_of_ln(libm::log(s))
}

/// About where `ln S` is `ln <= -ln 2`, by Newton's rule on `ln S`, whose slope is `-1/m`; also where `S` underflows.
pub(crate) fn quantile_of_ln(ln: f64) -> f64 {
    let ln_root = 0.5 * libm::log(2.0 * PI);
    // S(x) is about e^(-x²/2)/(1 + x √(2π)/2 …): the start is within a tenth, and six steps square that away.
    let far = (-2.0 * (ln + std::f64::consts::LN_2)).max(0.0).sqrt();
    let mut x = (far - libm::log1p(far * 0.8) / (far + 1.0)).max(0.0);
    for _ in 0..8 {
        let m = mills(x);
        let excess = libm::log(m) - 0.5 * x * x - ln_root - ln;
        let next = (x + m * excess).max(0.0);
        if (next - x).abs() <= 1e-15 * x {
            return next;
        }
        x = next;
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `x`, `S(x)`, `m(x)`, `ln S(x)`, by mpmath 1.3.0 with 50 digits.
    const TRUTH: [(f64, f64, f64, f64); 19] = [
        (
            -30.0,
            1.0,
            6.785_889_613_061_119e195,
            -4.906_713_927_148_187e-198,
        ),
        (
            -5.0,
            0.999_999_713_348_428_1,
            6.726_216_367_228_793e5,
            -2.866_516_129_637_636e-7,
        ),
        (
            -0.5,
            0.691_462_461_274_013_1,
            1.964_017_495_357_993_9,
            -0.368_946_415_288_656_4,
        ),
        (0.0, 0.5, 1.253_314_137_315_500_3, -std::f64::consts::LN_2),
        (
            1e-10,
            0.499_999_999_960_105_75,
            1.253_314_137_215_500_3,
            -0.693_147_180_639_733_8,
        ),
        (
            0.7,
            0.241_963_652_223_073_03,
            0.774_893_848_779_390_6,
            -1.418_967_761_531_531_5,
        ),
        (
            1.3,
            0.096_800_484_585_610_33,
            0.564_867_128_969_616_1,
            -2.335_103_278_662_442_5,
        ),
        (
            2.0,
            0.022_750_131_948_179_21,
            0.421_369_229_288_054_5,
            -3.783_184_333_682_032,
        ),
        (
            5.0,
            2.866_515_718_791_939e-7,
            0.192_808_104_715_315_76,
            -15.064_998_393_988_725,
        ),
        (
            8.4,
            2.232_393_197_288_043_7e-17,
            0.117_427_535_472_501_32,
            -38.340_872_388_235_19,
        ),
        (
            11.99,
            2.004_525_837_372_423e-33,
            0.082_834_387_743_478_14,
            -75.289_900_526_101_73,
        ),
        (
            12.0,
            1.776_482_112_077_679e-33,
            0.082_766_286_501_369_18,
            -75.410_673_001_568_8,
        ),
        (
            12.01,
            1.574_225_269_441_113_7e-33,
            0.082_698_296_413_602_82,
            -75.531_544_809_963_01,
        ),
        (
            15.99,
            7.501_550_411_768_219e-58,
            0.062_297_303_308_553_2,
            -131.534_825_672_907_26,
        ),
        (
            16.0,
            6.388_754_400_538_087e-58,
            0.062_258_665_995_026_2,
            -131.695_396_073_759_7,
        ),
        (
            25.0,
            3.056_696_706_382_561e-138,
            0.039_936_304_769_535_594,
            -316.639_408_008_020_27,
        ),
        (
            38.0,
            2.885_428_35e-316,
            0.026_297_602_974_252_963,
            -726.557_216_018_820_1,
        ),
        (39.5, 0.0, 0.025_300_260_898_379_886, -784.720_879_104_317_5),
        (100000.0, 0.0, 9.999_999_999e-6, -5.000_000_012_431_864e9),
    ];

    #[test]
    fn brackets_hold_the_truth_and_are_narrow() {
        for (x, tail, ratio, ln) in TRUTH {
            let x = Bracket::exact(x);
            let check = |found: Bracket, truth: f64, width: f64| {
                assert!(found.holds(truth), "{x:?}: {found:?} {truth}");
                assert!(found.relative_width() <= width, "{x:?}: {found:?}");
            };
            check(survival(x), tail, if tail > 1e-300 { 3e-14 } else { 1.0 });
            check(cdf(-x), tail, if tail > 1e-300 { 3e-14 } else { 1.0 });
            check(mills_ratio(x), ratio, 3e-14);
            check(ln_survival(x), ln, 3e-14);
            if tail > 1e-300 {
                assert!((density(x) * mills_ratio(x)).holds(tail));
            }
        }
    }

    #[test]
    fn quantiles_undo_survival() {
        for (x, tail, ..) in TRUTH {
            if tail > 1e-300 && tail < 1.0 {
                assert!(
                    survival_quantile(survival(Bracket::exact(x))).holds(x),
                    "{x}"
                );
                assert!(quantile(cdf(Bracket::exact(-x))).holds(-x), "{x}");
            }
        }
        // By mpmath, as above.
        for (s, truth) in [
            (1e-300, 37.047_096_299_361_2),
            (1e-20, 9.262_340_089_798_407),
            (0.01, 2.326_347_874_040_841),
            (0.4, 0.253_347_103_135_799_7),
        ] {
            let found = survival_quantile(Bracket::exact(s));
            assert!(found.holds(truth), "{s}: {found:?}");
            assert!(found.relative_width() < 1e-13, "{s}: {found:?}");
        }
    }

    #[test]
    fn ends_are_honest() {
        let smallest = f64::from_bits(1);
        assert_eq!(survival(Bracket::exact(1e300)), Bracket::new(0.0, smallest));
        assert!(survival(Bracket::exact(-1e300)).holds(1.0));
        assert_eq!(survival(Bracket::exact(f64::NEG_INFINITY)).upper(), 1.0);
        assert_eq!(
            survival_quantile(Bracket::exact(0.0)).lower(),
            f64::INFINITY
        );
        assert_eq!(quantile(Bracket::exact(0.0)).upper(), f64::NEG_INFINITY);
        for s in [smallest, 1e-310, 0.5, 1.0 - f64::EPSILON] {
            let found = survival_quantile(Bracket::exact(s));
            assert!(
                found.lower() < found.upper() && found.lower().is_finite(),
                "{s} {found:?}"
            );
        }
        assert!(survival_quantile(Bracket::exact(smallest)).holds(38.467_405_617_144_34));
        assert!(mills_ratio(Bracket::exact(-100.0)).upper() == f64::INFINITY);
        assert!(density(Bracket::new(-1.0, 2.0)).holds(0.398_942_280_401_432_7));
    }

    /// Both ways to compute them, next to where they meet; the moments also against Simpson's rule.
    #[test]
    fn moments_agree() {
        let ([one, three, five], errors) = odd_moments(12.0_f64.next_down());
        for ((n, value), error) in [(1, one), (3, three), (5, five)].into_iter().zip(errors) {
            assert!(
                (value - moment_series(n, 12.0)).abs() <= 1.1 * error + 1e-15,
                "{n}"
            );
        }
        for x in [0.0, 0.3, 2.0, 7.0, 20.0] {
            let (values, errors) = odd_moments(x);
            for ((n, value), error) in [1, 3, 5].into_iter().zip(values).zip(errors) {
                let steps = 40_000;
                let width = 20.0 / f64::from(steps);
                let mut sum = 0.0;
                for i in 0..=steps {
                    let t = f64::from(i) * width;
                    let weight = if i == 0 || i == steps {
                        1.0
                    } else {
                        f64::from(2 + 2 * (i % 2))
                    };
                    sum += weight * t.powi(n) * (-x * t - t * t / 2.0).exp();
                }
                let truth = sum * width / 3.0;
                assert!(
                    (value - truth).abs() <= error + 1e-9 * truth,
                    "{x} {n}: {value} {truth}"
                );
            }
        }
    }
}
