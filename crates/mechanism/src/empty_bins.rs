//! # What empty bins stay below
//! **Definition.** Of `n` empty bins with independent discrete Laplace noise `Z` of scale `a`, none is above `t` with probability
//!   `(1 - Pr[Z > t])^n`, where `Pr[Z > t] = exp(-(t+1)/a)/(1 + exp(-1/a))` for an integer `t >= 0`. The threshold for a success
//!   probability `c` is the smallest `t >= 0` for which this is at least `c`. A bin passes if its noisy count is *above* it.
//! **Continuous noise** has `Pr[Z > t] = exp(-t/a)/2`, hence `t = -a ln(2 - 2c^(1/n))`. The seed prints it without the sign and with
//!   the base in place of the number of bins; an older documentation has `n - 1` in place of `n`. Discrete noise is at an
//!   integer with positive probability, so the continuous value is sometimes one too small for it.
//! **Privacy.** All of this is computed from public numbers. Floats may enter; they are rounded towards a larger threshold.

use whit_core::{Confidence, Ratio, Scale, round};

/// How the threshold follows from the probability that no empty bin passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Threshold {
    /// The smallest integer that is enough for the discrete noise that is added. This is what holds.
    Discrete,
    /// `-a ln(2 - 2c^(1/n))` for `n` bins, as if the noise were continuous.
    Laplace,
    /// The older form, with `n - 1` in place of `n`.
    LaplaceOneBinLess,
}

impl Threshold {
    /// The threshold for so many bins and noise of this scale; never below zero, so that an empty bin needs noise to pass.
    pub fn value(self, bins: u64, noise: &Scale, success: Confidence) -> f64 {
        let continuous = |bins: u64| {
            // 1 - c^(1/n), without losing digits where c is close to one.
            let miss = -libm::expm1(libm::log(success.value()) / bins.max(1) as f64);
            (-noise.ratio().to_f64_up() * libm::log(2.0 * miss)).max(0.0)
        };
        match self {
            Self::Discrete => discrete_threshold(bins, noise, success) as f64,
            Self::Laplace => continuous(bins),
            Self::LaplaceOneBinLess => continuous(bins.saturating_sub(1)),
        }
    }

    /// A count is above the threshold if and only if it is above its integer part.
    pub(crate) fn integer(self, bins: u64, noise: &Scale, success: Confidence) -> i128 {
        match self {
            Self::Discrete => discrete_threshold(bins, noise, success),
            Self::Laplace | Self::LaplaceOneBinLess => {
                self.value(bins, noise, success).floor() as i128
            }
        }
    }
}

/// A bound that no threshold reaches: noise has scales up to `2^96`, and `exp(-2^14)` is no float.
const THRESHOLD_LOG2_MAX: u32 = 110;

/// The smallest `t >= 0` that floats can prove to be enough.
fn discrete_threshold(bins: u64, noise: &Scale, success: Confidence) -> i128 {
    let enough = |t: i128| all_below_lower(bins, noise, t) >= round::ln_up(success.value());
    let (mut low, mut high) = (0, 1_i128 << THRESHOLD_LOG2_MAX);
    while low < high {
        let middle = (low + high) / 2;
        if enough(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// The logarithm of the probability that noise stays at or below `t >= 0` in all of so many bins, rounded down.
fn all_below_lower(bins: u64, noise: &Scale, t: i128) -> f64 {
    let over = |numerator: u128| {
        Ratio::from(numerator)
            .checked_div(noise.ratio())
            .expect("a scale is positive")
    };
    let numerator = round::exp_up(-over(t.unsigned_abs() + 1).to_f64_down());
    let denominator = round::add_down(1.0, round::exp_down(-over(1).to_f64_up()));
    let tail = round::div_up(numerator, denominator);
    // libm's logarithms err by less than one unit in the last place.
    let each = libm::log1p(-tail).next_down().next_down();
    round::mul_down(each, bins as f64)
}

/// How sure to be that no empty bin passes: at first, and at the least.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Success {
    first: Confidence,
    last: Confidence,
}

impl Success {
    /// So sure, and no less.
    pub fn exactly(success: Confidence) -> Self {
        Self {
            first: success,
            last: success,
        }
    }

    /// If no bin passes, less and less sure, as long as it is at least this sure.
    pub fn relaxed_to(self, last: Confidence) -> Self {
        Self { last, ..self }
    }

    /// The probabilities to try: what may fail grows by a factor of ten. At most some 20 of them, since floats below one stop
    /// at `1 - 2^-53`.
    pub(crate) fn steps(self) -> impl Iterator<Item = Confidence> {
        let first_miss = 1.0 - self.first.value();
        let relaxed = (1..)
            .map(move |power| first_miss * libm::pow(10.0, f64::from(power)))
            .take_while(move |miss| *miss <= 1.0 - self.last.value())
            .filter_map(|miss| Confidence::new(1.0 - miss).ok());
        std::iter::once(self.first).chain(relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{confidence, scale};

    #[test]
    fn closed_form() {
        let value = |form: Threshold, a: u128| form.value(8, &scale(a, 1), confidence(0.9));
        let digits = |form, a| format!("{:.4}", value(form, a));
        assert_eq!(digits(Threshold::LaplaceOneBinLess, 1), "3.5106");
        assert_eq!(digits(Threshold::Laplace, 1), "3.6432");
        // Proportional to the scale of the noise.
        assert_eq!(digits(Threshold::Laplace, 5), "18.2162");
        // Discrete noise reaches 4 with e^-4/(1+1/e) = 0.0134, more than the 0.0131 that eight bins allow each.
        assert_eq!(value(Threshold::Discrete, 1), 4.0);
        // Where half of all noise may pass, the formulas go below zero.
        assert_eq!(
            Threshold::Laplace.value(2, &scale(9, 1), confidence(0.01)),
            0.0
        );
        let one = Threshold::LaplaceOneBinLess.value(1, &scale(9, 1), confidence(0.9));
        assert_eq!(format!("{one:.4}"), "14.4849");
    }

    #[test]
    fn what_may_fail_grows_tenfold_up_to_the_limit() {
        let steps = |first, last| {
            let success = Success::exactly(confidence(first)).relaxed_to(confidence(last));
            success.steps().count()
        };
        assert_eq!(
            (steps(1.0 - 1e-9, 0.5), steps(0.9, 0.95), steps(0.9, 0.9)),
            (9, 1, 1)
        );
        assert_eq!(steps(1.0_f64.next_down(), 1e-300), 16);
    }

    /// The threshold against the formula, in plain floats: it is enough, and one less is not.
    #[test]
    fn discrete_threshold_is_the_smallest() {
        let all_below = |bins: u64, a: f64, t: f64| {
            let tail = (-(t + 1.0) / a).exp() / (1.0 + (-1.0 / a).exp());
            ((-tail).ln_1p() * bins as f64).exp()
        };
        for bins in [2, 8, 64, 4000] {
            for a in [(1, 7), (1, 1), (5, 2), (1000, 3)] {
                for c in [0.5, 0.9, 0.999, 1.0 - 1e-9] {
                    let noise = scale(a.0, a.1);
                    let t = discrete_threshold(bins, &noise, confidence(c)) as f64;
                    let a = a.0 as f64 / a.1 as f64;
                    assert!(all_below(bins, a, t) >= c, "{bins} {a} {c}: {t}");
                    assert!(
                        t == 0.0 || all_below(bins, a, t - 1.0) < c,
                        "{bins} {a} {c}: {t}"
                    );
                }
            }
        }
        let widest = scale(1 << 96, 1);
        let t = discrete_threshold(8, &widest, confidence(0.9)) as f64;
        let continuous = Threshold::Laplace.value(8, &widest, confidence(0.9));
        assert!((t / continuous - 1.0).abs() < 1e-9);
    }
}
