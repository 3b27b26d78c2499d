//! # An interval for a share
//! **Definition.** Two sums `a, b >= 0`, not both zero, are known with noise: `A = a + Z₁` and `B = b + Z₂`. Wanted is an interval that holds
//!   the share `p = a/(a+b)` with probability at least `1 - β`, whatever `a` and `b` are. All of it is post-processing.
//! **Proof.**
//!   1. `(1-p) a = p b`, so `A - p (A+B) = (1-p) Z₁ - p Z₂ =: D(p)`. Let `Pr[|D(p)| > c(p)] <= β`. Then `p` lies in
//!      `S = { p : |A - p (A+B)| <= c(p) }` with probability at least `1 - β`. (Fieller's idea.)
//!   2. `c` grows with `s = |p - 1/2|`. So if `[low, high]` holds `S`, then `c <= c* = max(c(low), c(high))` on `S`, and `S` is held by
//!      `{ p : |A - p (A+B)| <= c* }` too, which is an interval. Start with `[0, 1]` and repeat: every step holds `S`.
//!   3. *Laplace*, scale `b`. `Z = ⌊E⌋ - ⌊E'⌋` with exponential `E, E'` of scale `b` has the discrete law, and is within one of `E - E'`, which
//!      has the continuous one. So `D` is within one of its continuous twin, whose tail at `bu` is, by partial fractions,
//!      `F(u) = (g(1/2+s) - g(1/2-s)) / 2s` with `g(x) = x² e^(-u/x)`. It grows with `s`: `F = ½ ∫ g'(1/2+sy) dy` over `[-1, 1]`, so
//!      `dF/ds = ½ ∫₀¹ y (g''(1/2+sy) - g''(1/2-sy)) dy`, and `g''(x) = h(u/x)` with `h(v) = e^-v (2 + 2v + v²)`, which falls, as
//!      `h' = -v² e^-v`: `g''` grows with `x`. At `s = 1/2` it is `e^-u`.
//!   4. *Gaussian*, scale `σ >= 1`. Let `f(x) = exp(-x²/2σ²)` and `N = Σ f`, the sum over all integers. For `m >= 1`,
//!      `Pr[Z >= m] <= Pr[X >= m-1]` with normal `X`: the sum from `m` on is at most the integral from `m-1` on, and `N >= σ√2π`. And
//!      `Pr[X > m] <= Pr[Z >= m]`: with `a = 1/σ² <= 1`, the integral of `f` over `[j, j+1]` is at most
//!      `f(j) (1-e^-a)/a <= f(j) (1 - a/3)` for `j >= 1`, while `N/(σ√2π) = 1 + 2 Σ exp(-2π²σ²k²) <= 1 + a/10`. Hence if `Z` and `X` are drawn
//!      by quantiles from one uniform number, `X > m` implies `Z >= m`, and `Z >= m` implies `X >= m-1`; the same holds below zero. So
//!      `|Z - X| <= 1`, and `D` is within one of a normal number of variance `σ²((1-p)² + p²)`.
//!   5. *Gaussian*, `σ < 1`. `E[e^(tZ)] <= e^(t²σ²/2)` \[CKS20\], so by Chernoff's bound `c = σ √(2 ln(2/β))` will do for every `p`.
//!
//!   No union bound over the two sums is needed: at `β = 0.05` a Laplace `c` is `2.06 b` for `p = 1/2` and `3.0 b` at the ends, while
//!   two intervals of half the probability each would need `3.69 b`.

use whit_core::Confidence;

use crate::additive::Noise;

/// More steps than are seen: each interval is a function of the one before, and by the third they hardly change.
const STEPS: u32 = 6;
/// Room for the rounding of floats, relative.
const ROOM: f64 = 1e-9;
/// Shares nearer to one half than this are read as this far, which is on the safe side; differences of floats get lost there.
const OFF_CENTRE_MIN: f64 = 1e-3;

/// The interval, within `[0, 1]`. The noise is that of either sum, in the unit of the sums. Each end is off by at most `5 · 2^-53` for the
/// rounding of floats: where the radius is less than `1e-5` of `a`, so that there is no room for it there, `|a|` is hardly more than the
/// total, and four roundings are relative to an end of at most one.
pub(crate) fn share_interval(noise: &Noise, confidence: Confidence, [a, b]: [i128; 2]) -> [f64; 2] {
    let miss = 1.0 - confidence.value();
    let (a, total) = (a as f64, a.saturating_add(b) as f64);
    let mut interval = [0.0, 1.0];
    for _ in 0..STEPS {
        let [low, high] = interval;
        let radius = radius(noise, miss, low).max(radius(noise, miss, high));
        let ends = if total > 0.0 {
            [(a - radius) / total, (a + radius) / total]
        } else if total < 0.0 {
            [(a + radius) / total, (a - radius) / total]
        } else {
            [0.0, 1.0]
        };
        // Ends that leave the last interval do so by rounding, or because nothing is left of it.
        interval = ends.map(|end| end.clamp(low, high));
    }
    interval
}

/// `c(p)`: what `|D(p)|` exceeds with at most the probability `miss`.
fn radius(noise: &Noise, miss: f64, share: f64) -> f64 {
    let off_centre = (share - 0.5).abs().clamp(OFF_CENTRE_MIN, 0.5);
    let (long, short) = (0.5 + off_centre, 0.5 - off_centre);
    match noise {
        Noise::Laplace(scale) => {
            let b = scale.ratio().to_f64_up();
            let most = -libm::log(miss);
            let units = first_below(miss, most, |u| laplace_tail(u, long, short));
            (1.0 + ROOM) * units * b + 1.0
        }
        Noise::Gaussian(scale) => {
            let sigma = scale.ratio().to_f64_up();
            if sigma < 1.0 {
                return (1.0 + ROOM) * sigma * libm::sqrt(2.0 * libm::log(2.0 / miss));
            }
            let deviation = sigma * libm::sqrt(long * long + short * short);
            // Beyond forty deviations no float is left of the tail.
            let units = first_below(miss, 40.0, |t| libm::erfc(t / std::f64::consts::SQRT_2));
            (1.0 + ROOM) * units * deviation + 1.0
        }
    }
}

/// `Pr[|long X - short Y| > u]` for independent Laplace numbers of scale one and positive weights that add up to one.
fn laplace_tail(u: f64, long: f64, short: f64) -> f64 {
    let g = |x: f64| {
        if x > 0.0 {
            x * x * libm::exp(-u / x)
        } else {
            0.0
        }
    };
    (g(long) - g(short)) / (long - short)
}

/// Where a falling tail is at most `miss`, from above; it is so at `high`.
fn first_below(miss: f64, mut high: f64, tail: impl Fn(f64) -> f64) -> f64 {
    let mut low = 0.0;
    // Fifty halvings leave less than the room for rounding.
    for _ in 0..50 {
        let middle = 0.5 * (low + high);
        if tail(middle) > miss {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::additive::Additive;
    use crate::doubt::{confidence, scale, seed};
    use whit_core::{AddRemove, Ratio, Secret, Sensitivity};
    use whit_testkit::Seeded;

    #[test]
    fn closed_form() {
        let laplace = |share| (radius(&Noise::Laplace(scale(1000, 1)), 0.05, share) - 1.0) / 1000.0;
        // At an end `e^-u`, in the middle `(1 + u) e^-2u`.
        assert!((laplace(0.0) + 0.05_f64.ln()).abs() < 1e-6);
        let u = laplace(0.5);
        assert!(((1.0 + u) * (-2.0 * u).exp() - 0.05).abs() < 1e-5, "{u}");
        let gaussian =
            |share| (radius(&Noise::Gaussian(scale(1000, 1)), 0.05, share) - 1.0) / 1000.0;
        assert!((gaussian(1.0) - 1.959_964).abs() < 1e-5);
        assert!((gaussian(0.5) - 1.959_964 / 2_f64.sqrt()).abs() < 1e-5);
        for noise in [Noise::Laplace(scale(7, 2)), Noise::Gaussian(scale(7, 2))] {
            let radii: Vec<f64> = (0..=50)
                .map(|i| radius(&noise, 0.01, 0.5 + 0.01 * f64::from(i)))
                .collect();
            assert!(radii.windows(2).all(|pair| pair[0] <= pair[1]), "{radii:?}");
            let mirrored = radius(&noise, 0.01, 0.25) - radius(&noise, 0.01, 0.75);
            assert!(mirrored.abs() < 1e-9);
        }
    }

    /// The coupling of step 4, on tails: the discrete one lies between two of the continuous one.
    #[test]
    fn discrete_gaussian_tails_lie_between_continuous_ones() {
        for sigma in [1.0_f64, 1.3, 2.0, 5.0, 17.0] {
            let f = |x: f64| (-x * x / (2.0 * sigma * sigma)).exp();
            let last = (12.0 * sigma).ceil() as i64;
            let total: f64 = (-last..=last).map(|z| f(z as f64)).sum();
            for m in 1..=(6.0 * sigma) as i64 {
                let tail: f64 = (m..=last).rev().map(|z| f(z as f64)).sum::<f64>() / total;
                let normal = |x: i64| 0.5 * libm::erfc(x as f64 / (sigma * 2_f64.sqrt()));
                assert!(normal(m) <= tail && tail <= normal(m - 1), "{sigma} {m}");
            }
        }
    }

    /// How often the share is held, and how wide the interval is on average.
    fn held(noise: &Noise, sums: [i128; 2], of: f64) -> (f64, f64) {
        let one = || Ratio::one();
        let mechanism =
            Additive::<AddRemove>::new(noise, Sensitivity::new(one()), Sensitivity::new(one()));
        let mut entropy = Seeded::new(seed(291));
        let share = sums[0] as f64 / (sums[0] + sums[1]) as f64;
        let (mut held, mut width) = (0, 0.0);
        let runs = 4000;
        for _ in 0..runs {
            let release = mechanism.release_vector(Secret::new(sums.to_vec()), &mut entropy);
            let noisy = release.expect("entropy").into_value();
            let [low, high] = share_interval(noise, confidence(of), [noisy[0], noisy[1]]);
            assert!(0.0 <= low && low <= high && high <= 1.0, "{low} {high}");
            held += u32::from(low <= share && share <= high);
            width += (high - low) / f64::from(runs);
        }
        (f64::from(held) / f64::from(runs), width)
    }

    /// Large and small sums, ends and middle, fine and coarse noise: never less often than asked, by six standard deviations.
    #[test]
    fn shares_are_held_as_often_as_asked() {
        for noise in [
            Noise::Laplace(scale(1000, 1)),
            Noise::Laplace(scale(1, 2)),
            Noise::Gaussian(scale(1000, 1)),
            Noise::Gaussian(scale(3, 2)),
            Noise::Gaussian(scale(1, 3)),
        ] {
            for sums in [
                [50_000, 50_000],
                [1_000_000, 0],
                [0, 9000],
                [2000, 1000],
                [300, 500],
                [3, 2],
                [1, 0],
            ] {
                for of in [0.5, 0.95] {
                    let (share, _) = held(&noise, sums, of);
                    let least = of - 6.0 * (of * (1.0 - of) / 4000.0).sqrt();
                    assert!(share >= least, "{noise:?} {sums:?}: {share} of {of}");
                }
            }
        }
    }

    /// Where noise is small the interval is no wider than it must be, and far narrower than two intervals put together.
    #[test]
    fn intervals_are_tight() {
        let laplace = Noise::Laplace(scale(1000, 1));
        let (share, width) = held(&laplace, [500_000, 500_000], 0.95);
        assert!(share < 0.97, "{share}");
        assert!((width / (2.0 * 2.06 * 1e-3) - 1.0).abs() < 0.02, "{width}");
        let gaussian = Noise::Gaussian(scale(1000, 1));
        let (share, width) = held(&gaussian, [500_000, 500_000], 0.95);
        assert!(share < 0.97, "{share}");
        assert!((width / (2.0 * 1.386 * 1e-3) - 1.0).abs() < 0.02, "{width}");
    }

    #[test]
    fn nothing_is_nonsense() {
        let noise = Noise::Laplace(scale(1, 1));
        for a in [i128::MIN, -1, 0, 1, i128::MAX] {
            for b in [i128::MIN, -1, 0, 1, i128::MAX] {
                let [low, high] = share_interval(&noise, confidence(0.999_999), [a, b]);
                assert!(
                    0.0 <= low && low <= high && high <= 1.0,
                    "{a} {b}: {low} {high}"
                );
            }
        }
        assert_eq!(share_interval(&noise, confidence(0.5), [0, 0]), [0.0, 1.0]);
    }
}
