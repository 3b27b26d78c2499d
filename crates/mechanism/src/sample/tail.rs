//! Tails of integer noise, from above, in integers: which threshold is passed with at most a given probability?
//!
//! **Definition.** For noise `Z` and a rational `δ > 0`, the smallest integer `τ >= 1` with `Pr[Z >= τ] <= δ`.
//! **Laplace.** `Pr[Z >= τ] = q^τ/(1+q) = 1/(e^(τ/b) + e^((τ-1)/b))` with `q = e^(-1/b)`, for `τ >= 1`. A lower bound of both
//!   exponentials gives an upper bound of the tail.
//! **Gaussian.** With `g(z) = e^(-z²/2σ²)`, `Pr[Z >= τ] = Σ_{z>=τ} g(z) / N`. Here `N = Σ g >= max(1, σ√(2π))` (the term at zero;
//!   Poisson summation). And `Σ_{z>=τ} g(z) = g(τ) S`, `S = Σ_{i>=0} e^(-(2τi + i²)/2σ²)`, whose terms fall, and whose ratios fall
//!   too. So a block of `B` terms is at most `B` times its first one, and all blocks from the `j`-th on are at most a geometric
//!   series with the ratio of the `j`-th. With `B = 1` the bound of `S` is exact to 40 bits; for `σ >= 512` blocks are about
//!   `σ/256` long, which gives away less than `τ/σ · 0.4 %` of `δ`.
//! **Exponentials.** `e^x >= (Σ_{k<=K} y^k/k!)^(2^m)` with `y = x/2^m`, every operation rounded down; hence a lower bound, whatever
//!   `K`. For `x > 4096` the bound for 4096 is one too.
//! **Proof of the threshold.** Only a `τ` whose bound was shown to be at most `δ` is returned. That it is the *smallest* such holds up
//!   to the slack of the bounds: none to speak of for Laplace (200 bits) and for `1 <= σ < 512` (`1e-8` of `δ`), up to 9 % of `δ`
//!   for `σ < 1`, where `N` exceeds its bound (most at `σ = 0.4`), and as above for large `σ`.

use dashu_int::{IBig, UBig};
use dashu_ratio::RBig;
use whit_core::{Ratio, Scale};

use super::enclosure::{floor_scaled, magnitude};

/// Fractional bits of the fixed point here.
pub(crate) const BITS: usize = 256;
/// Larger exponents are cut here: `e^4096` is beyond the reciprocal of every float.
const EXPONENT_MAX: u64 = 4096;
/// Gaussian sums are grouped so that a scale has at least this many groups.
const BLOCKS_PER_SCALE: u64 = 256;
/// Below `√(2π) 10^14 = 250662827463100.05…`.
const SQRT_TAU: (u64, u64) = (250_662_827_463_100, 100_000_000_000_000);

/// At most `e^x 2^BITS`, and within a part in `2^200` of it for `x <= 4096`. `x` must not be negative.
pub(crate) fn exp_lower(x: &RBig) -> UBig {
    let x = x.clone().min(RBig::from(EXPONENT_MAX));
    let mut halvings = 0;
    let mut y = x;
    // At most 13 rounds.
    while y > RBig::ONE {
        y /= RBig::from(2);
        halvings += 1;
    }
    let work = BITS + 64;
    let y = floor_scaled(&y, work);
    let mut term = UBig::ONE << work;
    let mut sum = term.clone();
    let mut k = 0_u32;
    // Terms fall at least like 1/k!: fewer than 80 rounds.
    while !term.is_zero() {
        k += 1;
        term = ((term * &y) >> work) / k;
        sum += &term;
    }
    for _ in 0..halvings {
        sum = (&sum * &sum) >> work;
    }
    sum >> (work - BITS)
}

/// At least `e^-x 2^BITS`.
fn exp_neg_upper(x: &RBig) -> UBig {
    divide_up(UBig::ONE << (2 * BITS), &exp_lower(x))
}

fn divide_up(value: UBig, by: &UBig) -> UBig {
    (value + by - UBig::ONE) / by
}

fn multiply_up(a: &UBig, b: &UBig) -> UBig {
    divide_up(a * b, &(UBig::ONE << BITS))
}

/// The smallest `τ >= 1` found with `Pr[Z >= τ] <= delta` for discrete Laplace noise. None if `delta` is zero or no `τ` below
/// `2^126` will do.
pub(crate) fn laplace_threshold(scale: &Scale, delta: &Ratio) -> Option<u128> {
    let b = scale.ratio().as_rbig();
    let delta = delta.as_rbig();
    smallest(floor(scale), |threshold| {
        let at = |steps: u128| exp_lower(&(RBig::from(UBig::from(steps)) / b));
        // 1 <= δ (e^(τ/b) + e^((τ-1)/b)).
        let reciprocal = at(threshold) + at(threshold - 1);
        (delta.denominator() << BITS) <= magnitude(delta) * reciprocal
    })
}

/// The same for discrete Gaussian noise.
pub(crate) fn gaussian_threshold(scale: &Scale, delta: &Ratio) -> Option<u128> {
    let sigma = scale.ratio().as_rbig();
    let twice_variance = sigma * sigma * RBig::from(2);
    let root = RBig::from_parts(SQRT_TAU.0.into(), SQRT_TAU.1.into());
    let normaliser = (sigma * root).max(RBig::ONE);
    let allowed = normaliser * delta.as_rbig();
    let block = (scale.ratio().floor() / UBig::from(BLOCKS_PER_SCALE)).max(UBig::ONE);
    smallest(floor(scale), |threshold| {
        let threshold = UBig::from(threshold);
        let Some(sum) = sum_from(&threshold, &block, &twice_variance) else {
            return false;
        };
        // g(τ) S / N <= δ, with g(τ) <= 2^BITS / exp_lower.
        let exponent = RBig::from(&threshold * &threshold) / &twice_variance;
        RBig::from(sum) <= &allowed * RBig::from(exp_lower(&exponent))
    })
}

/// At least `S 2^BITS`. None if it cannot be told from an endless sum.
fn sum_from(threshold: &UBig, block: &UBig, twice_variance: &RBig) -> Option<UBig> {
    let one = UBig::ONE << BITS;
    let over = |exponent: UBig| RBig::from(IBig::from(exponent)) / twice_variance;
    let block_square = block * block;
    // Term j+1 is term j times ratio j, and ratio j+1 is ratio j times a constant.
    let mut ratio = exp_neg_upper(&over(threshold * block * 2_u32 + &block_square));
    let ratio_of_ratios = exp_neg_upper(&over(block_square * 2_u32));
    let (mut term, mut sum) = (one.clone(), UBig::ZERO);
    loop {
        if ratio >= one {
            return None;
        }
        // What is left is at most term / (1 - ratio). Terms fall like a Gaussian with 256 blocks to a scale, so a few thousand
        // rounds are enough.
        let rest = divide_up(&term << BITS, &(&one - &ratio));
        if &rest << 40 <= sum {
            return Some((sum + rest) * block);
        }
        sum += &term;
        term = multiply_up(&term, &ratio);
        ratio = multiply_up(&ratio, &ratio_of_ratios);
    }
}

/// The smallest positive integer that passes, where all beyond one that passes do so too. It is looked for around `start`.
fn smallest(start: u128, passes: impl Fn(u128) -> bool) -> Option<u128> {
    // Above `low` and at most at `high`, which always passes: at most 126 rounds each.
    let (mut low, mut high) = (0, start.max(1));
    while !passes(high) {
        low = high;
        high = high.checked_mul(2).filter(|&high| high < 1 << 126)?;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if passes(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

/// A scale as a place to start from.
fn floor(scale: &Scale) -> u128 {
    u128::try_from(scale.ratio().floor()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::super::oracle;
    use super::*;

    fn scale(numerator: u128, denominator: u128) -> Scale {
        Scale::new(Ratio::new(numerator, denominator).expect("not zero")).expect("in range")
    }

    fn delta(value: f64) -> Ratio {
        Ratio::from_f64(value).expect("positive")
    }

    #[test]
    fn exponentials_are_below_and_close() {
        for (numerator, denominator) in [(0, 1), (1, 1), (1, 1000), (22, 7), (100, 1), (300, 1)] {
            let x = RBig::from_parts(IBig::from(numerator as u32), UBig::from(denominator as u32));
            let reciprocal = RBig::ONE / oracle::exp_neg(&x);
            let found = RBig::from_parts(exp_lower(&x).into(), UBig::ONE << BITS);
            let slack = &reciprocal / RBig::from(UBig::ONE << 60);
            assert!(found <= reciprocal, "e^{x} from below");
            assert!(&reciprocal - found < slack, "e^{x} is far below");
        }
        assert_eq!(exp_lower(&RBig::ZERO), UBig::ONE << BITS);
        assert_eq!(
            exp_lower(&RBig::from(1 << 30)),
            exp_lower(&RBig::from(EXPONENT_MAX))
        );
    }

    /// Against the second opinion's exact tails: the threshold passes, and the one below does not.
    #[test]
    fn laplace_thresholds_are_smallest() {
        for b in [(1, 3), (1, 1), (5, 2), (40, 1)] {
            for d in [0.4, 1e-2, 1e-5, 1e-10] {
                let found = laplace_threshold(&scale(b.0, b.1), &delta(d)).expect("small");
                let b = b.0 as f64 / b.1 as f64;
                let tail = |t: f64| (-t / b).exp() / (1.0 + (-1.0 / b).exp());
                assert!(tail(found as f64) <= d * (1.0 + 1e-12), "{b} {d}: {found}");
                assert!(
                    found == 1 || tail(found as f64 - 1.0) > d,
                    "{b} {d}: {found}"
                );
            }
        }
    }

    #[test]
    fn gaussian_thresholds_are_smallest() {
        for sigma in [(1, 2), (1, 1), (5, 2), (20, 1)] {
            let scale = scale(sigma.0, sigma.1);
            let reach = 12 * sigma.0 as u64 / sigma.1 as u64 + 12;
            let pmf = oracle::gaussian_pmf(scale.ratio().as_rbig(), reach);
            let tail = |t: usize| pmf[t..].iter().fold(RBig::ZERO, |sum, p| sum + p);
            for d in [0.2, 1e-2, 1e-5, 1e-10] {
                let d = delta(d);
                let found = gaussian_threshold(&scale, &d).expect("small") as usize;
                assert!(tail(found) <= *d.as_rbig());
                assert!(found == 1 || tail(found - 1) > *d.as_rbig(), "{sigma:?}");
            }
        }
    }

    /// `S`, term by term, from below: what is left out only makes it smaller.
    fn sum_exactly(threshold: u64, twice_variance: &RBig) -> RBig {
        let term = |i: u64| {
            let exponent = RBig::from(2 * threshold * i + i * i) / twice_variance;
            (exponent < RBig::from(100)).then(|| oracle::exp_neg(&exponent) - oracle::slack())
        };
        let terms = (0..).map_while(term);
        terms.fold(RBig::ZERO, |sum, term| sum + term)
    }

    /// The bound of the Gaussian sum is above it, rest included, and within `2^-39` of it where blocks are single terms. A rest that is half as
    /// long as it should be leaves the bound below the truth.
    #[test]
    fn gaussian_sums_are_bounded_from_above_and_close() {
        for (numerator, denominator) in [(1, 3), (1, 1), (5, 2), (20, 1)] {
            let sigma = RBig::from_parts(IBig::from(numerator), UBig::from(denominator as u32));
            let twice_variance = &sigma * &sigma * RBig::from(2);
            for threshold in [1_u64, 2, 5, 40] {
                let truth = sum_exactly(threshold, &twice_variance);
                let bound = sum_from(&UBig::from(threshold), &UBig::ONE, &twice_variance);
                let bound = RBig::from_parts(bound.expect("ratios fall").into(), UBig::ONE << BITS);
                assert!(bound >= truth, "{sigma} {threshold}: below the truth");
                let close = &truth / RBig::from(UBig::ONE << 39);
                assert!(bound - &truth <= close, "{sigma} {threshold}: far above");
                // Blocks of three terms: still above.
                let blocks = sum_from(&UBig::from(threshold), &UBig::from(3_u32), &twice_variance);
                let blocks = blocks.expect("ratios fall");
                assert!(RBig::from_parts(blocks.into(), UBig::ONE << BITS) >= truth);
            }
        }
    }

    /// For large scales the answer is that of the normal distribution, give or take the blocks.
    #[test]
    fn large_scales_are_close_to_continuous_ones() {
        for exponent in [9, 12, 30, 60] {
            let sigma = 2_f64.powi(exponent);
            for (d, quantile) in [(1e-3, 3.0902), (1e-6, 4.7534), (1e-12, 7.0345)] {
                let found = gaussian_threshold(&scale(1 << exponent, 1), &delta(d)).expect("some");
                let found = found as f64 / sigma;
                assert!(
                    found > quantile - 1e-4 && found < quantile + 5e-3 + 1.0 / sigma,
                    "{exponent} {d}: {found}"
                );
            }
        }
        assert_eq!(gaussian_threshold(&scale(1, 1), &Ratio::zero()), None);
        assert_eq!(laplace_threshold(&scale(1, 1), &Ratio::zero()), None);
        let smallest = delta(5e-324);
        assert!(laplace_threshold(&scale(1 << 90, 1), &smallest).is_some());
        assert!(gaussian_threshold(&scale(1 << 90, 1), &smallest).is_some());
        assert_eq!(gaussian_threshold(&scale(1, 1 << 60), &smallest), Some(1));
    }
}
