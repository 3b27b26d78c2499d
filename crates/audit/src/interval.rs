//! Exact bounds on an unknown probability.
//!
//! **Definition.** After `k` successes in `n` trials the Clopper–Pearson lower bound \[CP34\] at level `α` is the
//!   largest `p` at which `k` or more successes would still be a surprise: `L(k) = max { p : Pr_p[X >= k] <= α }`, and
//!   `L(0) = 0`. The upper bound is its mirror image, `U(k) = min { p : Pr_p[X <= k] <= α }`, and `U(n) = 1`.
//! **Guarantee.** `Pr_p[L(X) > p] <= α` for every `p` and `n`. No limit theorem is used.
//! **Proof.** `Pr_p[X >= k]` is continuous and increasing in `p`. Let `k*` be the smallest `k` with `L(k) > p`. Then
//!   `Pr_p[L(X) > p] = Pr_p[X >= k*] <= Pr_{L(k*)}[X >= k*] <= α`.
//! **Rounding.** Outward. A `p` is accepted only if the computed tail, increased by its relative error, is at most
//!   `α`; so what is returned is never above `L(k)`, nor below `U(k)`. Bisection narrows `p` to neighbouring
//!   floats.
//! **Bracket.** `L(k) <= k/n`: when the mean `np` is the integer `k`, the median is `k` too \[KB80\], so at `p = k/n`
//!   the tail is at least `1/2 >= α`.

use crate::binomial::{Coin, TAIL_ERROR, upper_tail};
use crate::{Alpha, Error, Result};

/// The most trials that the error analysis of the tail covers.
pub const TRIALS_MAX: u64 = 1 << 32;

/// The one-sided lower bound: at most the true probability, except with probability `alpha`.
pub fn clopper_pearson_lower(successes: u64, trials: u64, alpha: Alpha) -> Result<f64> {
    check(successes, trials)?;
    if successes == 0 {
        return Ok(0.0);
    }
    let surprising =
        |p: f64| certainly_at_most(alpha, upper_tail(successes, trials, Coin::with_heads(p)));
    Ok(bisect(0.0, successes as f64 / trials as f64, surprising).0)
}

/// The one-sided upper bound: at least the true probability, except with probability `alpha`.
pub fn clopper_pearson_upper(successes: u64, trials: u64, alpha: Alpha) -> Result<f64> {
    check(successes, trials)?;
    if successes == trials {
        return Ok(1.0);
    }
    // At most k successes are at least n - k failures.
    let failures = trials - successes;
    let surprising =
        |p: f64| certainly_at_most(alpha, upper_tail(failures, trials, Coin::with_tails(p)));
    Ok(bisect(successes as f64 / trials as f64, 1.0, |p| !surprising(p)).1)
}

fn check(successes: u64, trials: u64) -> Result<()> {
    if trials > TRIALS_MAX {
        Err(Error::TooManyTrials {
            trials,
            trials_max: TRIALS_MAX,
        })
    } else if successes > trials {
        Err(Error::TooManySuccesses { successes, trials })
    } else {
        Ok(())
    }
}

/// Is a tail that was computed as `tail` at most `alpha` in truth?
pub(crate) fn certainly_at_most(alpha: Alpha, tail: f64) -> bool {
    tail * (1.0 + TAIL_ERROR) <= alpha.value()
}

/// Neighbouring floats between `low` and `high`: the predicate holds at the first (or it is `low`) and fails at the
/// second (or it is `high`). Halves the number of floats in between, not their distance, so 62 rounds suffice for
/// any start.
pub(crate) fn bisect(low: f64, high: f64, holds: impl Fn(f64) -> bool) -> (f64, f64) {
    let (mut low, mut high) = (low.to_bits(), high.to_bits());
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if holds(f64::from_bits(middle)) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (f64::from_bits(low), f64::from_bits(high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binomial::tests::exact_tail;

    fn alpha(value: f64) -> Alpha {
        Alpha::new(value).expect("in range")
    }

    fn check_lower(successes: u64, trials: u64, level: f64, expected: f64) {
        let lower = clopper_pearson_lower(successes, trials, alpha(level)).expect("valid");
        assert!(
            (lower / expected - 1.0).abs() < 2e-9,
            "({successes}, {trials}, {level}): {expected}, got {lower}"
        );
        // Coins have two sides: the same number must come out for the failures.
        let upper = clopper_pearson_upper(trials - successes, trials, alpha(level)).expect("valid");
        assert!(
            (upper - (1.0 - expected)).abs() < 1e-10,
            "mirrored ({successes}, {trials}, {level}): {upper}"
        );
    }

    /// Reference values: 40-digit arithmetic on the sum of binomial probabilities.
    #[test]
    fn agrees_with_reference_values() {
        check_lower(99, 100, 1e-3, 0.911_373_111_296_042_4);
        check_lower(990, 1000, 1e-3, 0.976_036_187_155_311_4);
        check_lower(9900, 10_000, 1e-3, 0.986_531_159_323_806_2);
        check_lower(99_000, 100_000, 1e-3, 0.988_989_340_4);
        check_lower(60_000, 100_000, 1e-3, 0.595_201_047_294_584_5);
        check_lower(500_000, 1_000_000, 1e-12, 0.496_482_302_494_611_9);
        check_lower(999_999, 1_000_000, 1e-12, 0.999_968_900_594_850_8);
        check_lower(1, 1_000_000, 1e-12, 1.000_000_000_000_502e-18);
        check_lower(500_000_000, 1_000_000_000, 1e-12, 0.499_888_774_546_144);
        check_lower(10, 1_000_000_000, 1e-6, 1.276_818_792_794_959_4e-9);
        check_lower(1_000_000_000, 1_000_000_000, 1e-12, 0.999_999_972_368_979_3);
    }

    #[test]
    fn edges_have_closed_forms() {
        for trials in [1, 10, 1000, 1_000_000_000] {
            for level in [0.5, 1e-3, 1e-12, 1e-100] {
                let root = libm::exp(libm::log(level) / trials as f64);
                assert_eq!(clopper_pearson_lower(0, trials, alpha(level)), Ok(0.0));
                assert_eq!(clopper_pearson_upper(trials, trials, alpha(level)), Ok(1.0));
                let lower = clopper_pearson_lower(trials, trials, alpha(level)).expect("valid");
                assert!(
                    lower < root * (1.0 + 1e-15) && lower > root * (1.0 - 2e-9),
                    "{trials} {level}: {lower} {root}"
                );
                let upper = clopper_pearson_upper(0, trials, alpha(level)).expect("valid");
                let rest = -libm::expm1(libm::log(level) / trials as f64);
                assert!(
                    upper > rest * (1.0 - 1e-15) && upper < rest * (1.0 + 2e-9),
                    "{trials} {level}: {upper} {rest}"
                );
            }
        }
        assert_eq!(clopper_pearson_lower(0, 0, alpha(0.1)), Ok(0.0));
        assert_eq!(clopper_pearson_upper(0, 0, alpha(0.1)), Ok(1.0));
    }

    /// The same bound by another road: the beta quantile, with the library's incomplete beta function.
    #[test]
    fn is_a_beta_quantile() {
        for (successes, trials, level) in [
            (3, 40, 0.01),
            (17, 40, 1e-4),
            (39, 40, 0.3),
            (120, 500, 1e-6),
        ] {
            let lower = clopper_pearson_lower(successes, trials, alpha(level)).expect("valid");
            let (a, b) = (successes as f64, (trials - successes + 1) as f64);
            let tail = statrs::function::beta::beta_reg(a, b, lower);
            assert!(
                (tail / level - 1.0).abs() < 1e-7,
                "({successes}, {trials}, {level}): {tail}"
            );
        }
    }

    /// Coverage by exact summation of the binomial distribution, at every `p` of a grid and next to the bounds
    /// themselves, where coverage is worst.
    #[test]
    fn covers_at_least_as_often_as_promised() {
        for level in [0.5, 0.1, 0.01, 1e-4] {
            for trials in (1..=60).step_by(7).chain([2, 60]) {
                let bound = |successes| {
                    clopper_pearson_lower(successes, trials, alpha(level)).expect("valid")
                };
                let bounds: Vec<f64> = (0..=trials).map(bound).collect();
                let grid = (1..40).map(|step| f64::from(step) / 40.0);
                let next_to_bounds = bounds
                    .iter()
                    .map(|bound| bound.next_down())
                    .filter(|p| *p > 0.0);
                for p in grid.chain(next_to_bounds) {
                    // The bounds rise with the successes, so the outcomes whose bound misses p are an upper tail.
                    let missing = bounds
                        .iter()
                        .position(|bound| *bound > p)
                        .map_or(trials + 1, |at| at as u64);
                    let miss = exact_tail(missing, trials, p);
                    assert!(
                        miss <= level,
                        "level {level}, n {trials}, p {p}: misses {miss}"
                    );
                }
            }
        }
    }

    #[test]
    fn rejects_counts_that_are_none() {
        let too_many = Error::TooManySuccesses {
            successes: 3,
            trials: 2,
        };
        assert_eq!(
            clopper_pearson_lower(3, 2, alpha(0.1)),
            Err(too_many.clone())
        );
        assert_eq!(clopper_pearson_upper(3, 2, alpha(0.1)), Err(too_many));
        assert!(clopper_pearson_lower(0, TRIALS_MAX + 1, alpha(0.1)).is_err());
    }
}
