//! Tails of the binomial distribution, with a relative error that is known.
//!
//! **Why not the incomplete beta function of a library.** `Pr[X >= k] = I_p(k, n-k+1)`, but in `statrs::beta_reg` the
//! logarithms of three gamma functions cancel, which leaves the tail wrong by `6e-6` of itself at `n = 1e9` (measured), and
//! its continued fraction stops after 140 terms without a word. A bound that must hold needs a known error.
//!
//! **How.** The first term by Loader's saddle-point form \[Loa00\],
//!   `Pr[X = k] = √(n / 2πk(n-k)) · exp(s(n) - s(k) - s(n-k) - D(k, np) - D(n-k, nq))`,
//! in which `s` is what Stirling's formula leaves out and `D(x, m) = x ln(x/m) + m - x`. Nothing large is
//! subtracted from anything large. The other terms follow by their ratios `(n-j)/(j+1) · p/q`; all are positive, so
//! nothing cancels there either, and the ratios fall, so a geometric series bounds what is not summed.
//!
//! **Error.** For `n <= 2^32` and tails above `1e-120`, with `u = 2^-53`: the products `np`, `nq` are wrong by `u`
//! relatively, which moves the two `D` by at most `2u·|k - np| <= 2e-10`, since such a `k` is within 24 standard
//! deviations; where `D` is not evaluated by its series, `k <= 1e5` and the error is below `1e-10`; a sum whose
//! mass sits `j <= √n` terms away from the first is wrong by `4u·j < 1e-10`. Altogether below [`TAIL_ERROR`]. Tests
//! compare with exact rational sums and with 40 digits.

use std::f64::consts::TAU;

/// Relative error of [`upper_tail`], with room to spare.
pub(crate) const TAIL_ERROR: f64 = 1e-9;

/// The probabilities of heads and of tails. Both, since the smaller one keeps the digits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coin {
    heads: f64,
    tails: f64,
}

impl Coin {
    /// Heads with probability `heads`, which is in `[0, 1]`.
    pub(crate) fn with_heads(heads: f64) -> Self {
        Self {
            heads,
            tails: 1.0 - heads,
        }
    }

    /// Tails with probability `tails`, which is in `[0, 1]`.
    pub(crate) fn with_tails(tails: f64) -> Self {
        Self {
            heads: 1.0 - tails,
            tails,
        }
    }
}

/// `Pr[X >= k]` for the number `X` of heads in `n` flips.
pub(crate) fn upper_tail(k: u64, n: u64, coin: Coin) -> f64 {
    if k == 0 || (coin.tails == 0.0 && k <= n) {
        return 1.0;
    }
    if k > n || coin.heads == 0.0 {
        return 0.0;
    }
    let (sum, _) = in_first_terms(k, n, coin.heads / coin.tails);
    if sum.is_infinite() {
        return 1.0;
    }
    (point(k, n, coin) * sum).min(1.0)
}

/// The tail in units of its first term, and how many terms were added up.
///
/// It is infinite where it overflows. The first term is below `1e-308` then, and lies below the mode, as the sum is at most `n` above it: what is left of it is less than `n` such terms, and the tail is 1.
fn in_first_terms(k: u64, n: u64, odds: f64) -> (f64, u64) {
    let (mut term, mut sum) = (1.0, 1.0);
    // At most n - k rounds; at most some fifty standard deviations in practice.
    for j in k..n {
        let ratio = (n - j) as f64 / (j + 1) as f64 * odds;
        term *= ratio;
        sum += term;
        // Later ratios are smaller, so that all later terms sum to at most term · ratio / (1 - ratio).
        if f64::is_infinite(sum) || term * ratio < sum * (1.0 - ratio) * f64::EPSILON {
            return (sum, j - k + 1);
        }
    }
    (sum, n - k)
}

/// How many terms are made from their neighbours before one is computed afresh: each step errs by `4u`, so that all of them together err by less than `2e-12`.
const AFRESH_EVERY: u64 = 1 << 12;
/// Terms below this are not made from each other: so small a float has few digits, and none of zero grows.
const SMALL: f64 = 1e-280;

/// `Pr[X >= k]`, `Pr[X >= k-1]` and so on down to `Pr[X >= 0]`, each with the relative error of [`upper_tail`], in a few operations each.
///
/// Each tail is the one before and the probability of one number more. These terms come from their neighbours, `Pr[X = j-1] = Pr[X = j] · j/(n-j+1) · q/p`, and every so
/// often, and where they are too small to be made so, from their formula. All are positive, and nothing cancels: the error of a sum is at most the largest of its terms', and that of adding up. An addition errs
/// by `u` of the sum so far, so that a tail errs by at most `u Σ_{j>=k} Pr[X >= j] / Pr[X >= k]`, in which the quotient is the mean of `X - k + 1` where `X >= k`: less than `12σ`, down to where all but `1e-9`
/// is in the tail. For `n <= 2^32` that is below `5e-11`.
pub(crate) fn falling_tails(k: u64, n: u64, coin: Coin) -> impl Iterator<Item = f64> {
    let mut tail = upper_tail(k, n, coin);
    let mut term = None;
    let (mut at, mut first) = (k, true);
    std::iter::from_fn(move || {
        if std::mem::take(&mut first) {
            return Some(tail);
        }
        // The next number is `at - 1`.
        let below = at.checked_sub(1)?;
        at = below;
        let made = match term {
            Some((known, steps)) if known > SMALL && steps < AFRESH_EVERY && coin.tails > 0.0 => {
                let ratio = (below + 1) as f64 / (n - below) as f64;
                (known * ratio * (coin.tails / coin.heads), steps + 1)
            }
            _ => (single(below, n, coin), 0),
        };
        term = Some(made);
        tail = if below == 0 {
            1.0
        } else {
            (tail + made.0).min(1.0)
        };
        Some(tail)
    })
}

/// `Pr[X = k]` for any `k <= n` and any coin.
fn single(k: u64, n: u64, coin: Coin) -> f64 {
    if coin.tails == 0.0 || coin.heads == 0.0 {
        let certain = if coin.tails == 0.0 { n } else { 0 };
        return if k == certain { 1.0 } else { 0.0 };
    }
    if k == 0 {
        let mirrored = Coin {
            heads: coin.tails,
            tails: coin.heads,
        };
        return if n == 0 { 1.0 } else { point(n, n, mirrored) };
    }
    point(k, n, coin)
}

/// `Pr[X = k]` for `1 <= k <= n` and a coin that can fall both ways.
fn point(k: u64, n: u64, coin: Coin) -> f64 {
    let (heads, flips) = (k as f64, n as f64);
    if k == n {
        let ln = if coin.tails < 0.5 {
            libm::log1p(-coin.tails)
        } else {
            libm::log(coin.heads)
        };
        return libm::exp(flips * ln);
    }
    let tails = (n - k) as f64;
    let exponent = stirling_error(n)
        - stirling_error(k)
        - stirling_error(n - k)
        - deviance(heads, flips * coin.heads)
        - deviance(tails, flips * coin.tails);
    libm::exp(exponent) * (flips / (TAU * heads * tails)).sqrt()
}

/// `x ln(x/m) + m - x`: how far `x` is from its mean `m`, never negative. Half a Poisson deviance.
///
/// Near the mean by a series in `v = (x-m)/(x+m)`, since `ln(x/m) = 2 artanh(v)`:
/// `D = (x-m)v + 2x Σ_{j>=1} v^(2j+1)/(2j+1)` \[Loa00\].
pub(crate) fn deviance(x: f64, m: f64) -> f64 {
    if x == 0.0 {
        return m;
    }
    let v = (x - m) / (x + m);
    // Beyond this the direct formula loses at most two digits.
    if v.abs() >= 0.1 {
        return x * libm::log(x / m) + m - x;
    }
    let mut power = 2.0 * x * v;
    let mut sum = (x - m) * v;
    // v² < 0.01, so that ten rounds exhaust a double.
    for j in 1..=10 {
        power *= v * v;
        sum += power / f64::from(2 * j + 1);
    }
    sum
}

/// `ln(n!) - ln(√(2πn) (n/e)^n)` for `n >= 1`.
fn stirling_error(n: u64) -> f64 {
    let x = n as f64;
    if n < 16 {
        // 15! and all before it are exact in a double.
        let factorial: f64 = (1..=n).map(|factor| factor as f64).product();
        return libm::log(factorial) - (x + 0.5) * libm::log(x) + x - 0.5 * libm::log(TAU);
    }
    // The series [DLMF, 5.11.1]. It is enveloping: the first term left out, 691/(360360 n^11) < 2e-16, bounds the
    // error.
    let y = 1.0 / (x * x);
    (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y * (1.0 / 1680.0 - y / 1188.0)))) / x
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use dashu_int::{IBig, UBig};
    use dashu_ratio::RBig;

    /// Of four billion flips: a sum that overflows is not gone on with, and the tail is certain.
    #[test]
    fn a_tail_that_overflows_is_certain_at_once() {
        let (n, coin) = (1 << 32, Coin::with_heads(0.5));
        let (sum, terms) = in_first_terms(1, n, 1.0);
        assert!(sum.is_infinite() && terms < 100, "{sum} {terms}");
        assert_eq!(upper_tail(1, n, coin), 1.0);
        // Forty standard deviations below the mean.
        let (_, terms) = in_first_terms((n / 2) - 40 * (1 << 15), n, 1.0);
        assert!(terms < 50 * (1 << 15), "{terms}");
    }

    /// The tail as an exact rational, by summing all terms over the common denominator.
    pub(crate) fn exact_tail(k: u64, n: u64, p: f64) -> f64 {
        let p = RBig::try_from(p).expect("finite");
        let heads: UBig = p.numerator().clone().try_into().expect("not negative");
        let whole = p.denominator().clone();
        let tails = &whole - &heads;
        let mut choose = UBig::ONE;
        let mut sum = UBig::ZERO;
        for j in 0..=n {
            if j >= k {
                sum += &choose * heads.pow(j as usize) * tails.pow((n - j) as usize);
            }
            choose = choose * UBig::from(n - j) / UBig::from(j + 1);
        }
        RBig::from_parts(IBig::from(sum), whole.pow(n as usize))
            .to_f64()
            .value()
    }

    fn check(k: u64, n: u64, p: f64, expected: f64) {
        let tail = upper_tail(k, n, Coin::with_heads(p));
        let error = (tail / expected - 1.0).abs();
        assert!(
            error < TAIL_ERROR / 10.0,
            "Pr[Bin({n}, {p}) >= {k}] is {expected:e}, got {tail:e}"
        );
    }

    #[test]
    fn agrees_with_exact_rational_sums() {
        for n in [1, 2, 5, 17, 60] {
            for p in [1e-9, 0.01, 0.3, 0.5, 0.875, 0.99] {
                for k in 1..=n {
                    let expected = exact_tail(k, n, p);
                    if expected > 1e-120 {
                        check(k, n, p, expected);
                    }
                }
            }
        }
        for (k, p) in [
            (10, 0.001),
            (160, 0.1),
            (300, 0.25),
            (400, 0.5),
            (399, 0.99),
        ] {
            check(k, 400, p, exact_tail(k, 400, p));
        }
    }

    /// Reference values: 40-digit arithmetic on the same sum.
    #[test]
    fn agrees_with_references_where_sums_are_long() {
        check(300_000, 1_000_000, 0.2975, 2.337_783_259_451_688_5e-8);
        check(500_003_000, 1_000_000_000, 0.5, 0.424_770_136_837_871_7);
        check(500_100_000, 1_000_000_000, 0.5, 1.270_074_179_877_283_4e-10);
        check(1000, 1_000_000_000, 5e-7, 3.297_860_544_984_108e-86);
        check(
            999_999_990,
            1_000_000_000,
            0.999_999_98,
            0.010_811_718_306_251_015,
        );
    }

    #[test]
    fn falling_tails_are_the_single_ones() {
        for (k, n, p) in [
            (5, 5, 0.5),
            (60, 60, 0.01),
            (400, 400, 0.5),
            (1000, 1000, 1e-9),
            (30_000, 40_000, 0.5),
            (9_990, 10_000, 0.99),
            (7, 7, 1.0),
            (7, 7, 0.0),
        ] {
            let coin = Coin::with_heads(p);
            let tails: Vec<f64> = falling_tails(k, n, coin).collect();
            assert_eq!(tails.len() as u64, k + 1);
            for (tail, at) in tails.iter().zip((0..=k).rev()) {
                let single = upper_tail(at, n, coin);
                let near = (tail - single).abs() <= 1e-10 * single;
                assert!(
                    near || single < 1e-250,
                    "{at} of {n} at {p}: {single:e} {tail:e}"
                );
            }
        }
    }

    #[test]
    fn certain_and_impossible_outcomes_are_exact() {
        assert_eq!(upper_tail(0, 7, Coin::with_heads(0.0)), 1.0);
        assert_eq!(upper_tail(1, 7, Coin::with_heads(0.0)), 0.0);
        assert_eq!(upper_tail(7, 7, Coin::with_heads(1.0)), 1.0);
        assert_eq!(upper_tail(8, 7, Coin::with_heads(0.5)), 0.0);
    }
}
