//! Falsifiers: do two neighbouring worlds differ by more than the claim allows?
//!
//! **Definition.** A mechanism is `(ε, δ)`-DP only if `Pr[M(D) ∈ S] <= e^ε Pr[M(D') ∈ S] + δ` for all neighbours
//!   and all events `S`. So for one pair and one event `ε >= ln((p - δ)/p')`. Both probabilities are estimated by
//!   running the mechanism, and replaced by exact bounds, the numerator from below and the denominator from
//!   above \[Jag20\].
//! **Requires.** Independent runs, and an event fixed before any of them: one chosen after looking proves nothing.
//!   Worst-case neighbours and a good event are the caller's art \[DWWZK18\]; a bad choice costs power, not validity.
//! **Guarantee.** `epsilon_lower` is at most the true `ε` (at the claimed `δ`) except with probability `alpha`. A
//!   true claim is convicted with at most that probability.
//! **Proof.** Each probability gets a lower and an upper Clopper–Pearson bound at `alpha/4`. By the union bound all
//!   four hold together except with probability `alpha`, and then so does every inequality drawn from them: that of
//!   the event and of its complement, from one world to the other and back. Several events share `alpha` equally.
//!   Rounding is downward.
//! **Gaussian DP.** `μ`-GDP means that no test between the worlds beats the one between `N(0,1)` and `N(μ,1)`: with
//!   false positive rate `a` and false negative rate `b`, `Φ⁻¹(1-a) - Φ⁻¹(b) <= μ` [DRS22, Nas23]. Both rates are
//!   bounded from above.
//!
//! Small `δ` cannot be tested this way: an event of probability `1e-6` is not seen in ten thousand runs. Enumerate
//! instead.

use whit_core::{Delta, Epsilon, Mu, round};

use crate::normal::quantile_upper;
use crate::{Alpha, Error, Result, clopper_pearson_lower, clopper_pearson_upper};

/// What a mechanism says of itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim {
    /// The loss that no output exceeds,
    pub epsilon: Epsilon,
    /// up to this slack.
    pub delta: Delta,
}

impl Claim {
    /// Pure differential privacy.
    pub fn pure(epsilon: Epsilon) -> Self {
        Self {
            epsilon,
            delta: Delta::ZERO,
        }
    }
}

/// What a falsifier found. An acquittal proves nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct Verdict {
    /// At most the true epsilon at the claimed delta, with the confidence below. Zero if nothing was found.
    pub epsilon_lower: f64,
    /// How often a bound made this way holds, at least.
    pub confidence: f64,
    /// Is the bound above the claim?
    pub convicted: bool,
}

/// What a falsifier of Gaussian differential privacy found. An acquittal proves nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct GdpVerdict {
    /// At most the true mu, with the confidence below. Zero if nothing was found.
    pub mu_lower: f64,
    /// How often a bound made this way holds, at least.
    pub confidence: f64,
    /// Is the bound above the claim?
    pub convicted: bool,
}

/// Runs the mechanism on each of two neighbours. Each closure says whether the output fell into the event, the same
/// for both.
pub fn falsify(
    claim: Claim,
    trials_per_world: u64,
    alpha: Alpha,
    world_one: impl FnMut() -> bool,
    world_other: impl FnMut() -> bool,
) -> Result<Verdict> {
    let pair = Pair::run(trials_per_world, alpha, world_one, world_other)?;
    Ok(verdict(claim, alpha, pair.epsilon_lower(claim.delta)))
}

/// The outputs from some point on: the events that tell apart two worlds whose outputs are shifted against each other.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum HalfLine<T> {
    /// Outputs at least as large.
    AtLeast(T),
    /// Outputs at most as large.
    AtMost(T),
}

impl<T: PartialOrd> HalfLine<T> {
    /// Is this output in the event? What cannot be compared, such as a float that is not a number, is not.
    pub fn contains(&self, output: &T) -> bool {
        match self {
            Self::AtLeast(threshold) => output >= threshold,
            Self::AtMost(threshold) => output <= threshold,
        }
    }
}

/// Tries several events on the same outputs of two neighbours. The events must not depend on the outputs; each of
/// them gets an equal share of `alpha`, so the verdict is worth the same as one on a single event.
pub fn falsify_outputs<T: PartialOrd>(
    claim: Claim,
    outputs_one: &[T],
    outputs_other: &[T],
    events: &[HalfLine<T>],
    alpha: Alpha,
) -> Result<Verdict> {
    if events.is_empty() {
        return Err(Error::NoEvents);
    }
    let share = alpha.split(events.len())?;
    let mut epsilon_lower: f64 = 0.0;
    for event in events {
        let count = |outputs: &[T]| {
            outputs
                .iter()
                .filter(|output| event.contains(output))
                .count() as u64
        };
        let pair = Pair {
            one: Bounds::new(count(outputs_one), outputs_one.len() as u64, share)?,
            other: Bounds::new(count(outputs_other), outputs_other.len() as u64, share)?,
        };
        epsilon_lower = epsilon_lower.max(pair.epsilon_lower(claim.delta));
    }
    Ok(verdict(claim, alpha, epsilon_lower))
}

/// As [`falsify`], for a claim of Gaussian differential privacy. Much sharper than `(ε, δ)` for Gaussian noise: the
/// best event is a half-line in the middle between the two worlds' means, where there is plenty of data.
pub fn falsify_gdp(
    claim: Mu,
    trials_per_world: u64,
    alpha: Alpha,
    world_one: impl FnMut() -> bool,
    world_other: impl FnMut() -> bool,
) -> Result<GdpVerdict> {
    let mu_lower = Pair::run(trials_per_world, alpha, world_one, world_other)?.mu_lower();
    Ok(GdpVerdict {
        mu_lower,
        confidence: alpha.confidence(),
        convicted: mu_lower > claim.value(),
    })
}

fn verdict(claim: Claim, alpha: Alpha, epsilon_lower: f64) -> Verdict {
    let convicted = epsilon_lower > claim.epsilon.value();
    Verdict {
        epsilon_lower,
        confidence: alpha.confidence(),
        convicted,
    }
}

/// Bounds on the probability of an event.
#[derive(Clone, Copy)]
struct Bounds {
    lower: f64,
    upper: f64,
}

impl Bounds {
    /// One of two worlds: with two bounds each, every bound gets a quarter of `alpha`.
    fn new(successes: u64, trials: u64, alpha: Alpha) -> Result<Self> {
        let quarter = alpha.split(4)?;
        Ok(Self {
            lower: clopper_pearson_lower(successes, trials, quarter)?,
            upper: clopper_pearson_upper(successes, trials, quarter)?,
        })
    }

    fn complement(self) -> Self {
        Self {
            lower: round::sub_down(1.0, self.upper),
            upper: round::sub_up(1.0, self.lower),
        }
    }
}

/// The same event in two worlds.
#[derive(Clone, Copy)]
struct Pair {
    one: Bounds,
    other: Bounds,
}

impl Pair {
    fn run(
        trials: u64,
        alpha: Alpha,
        mut world_one: impl FnMut() -> bool,
        mut world_other: impl FnMut() -> bool,
    ) -> Result<Self> {
        // Before the runs, so that nobody waits for them in vain.
        Bounds::new(0, trials, alpha)?;
        let successes_one = (0..trials).filter(|_| world_one()).count() as u64;
        let successes_other = (0..trials).filter(|_| world_other()).count() as u64;
        Ok(Self {
            one: Bounds::new(successes_one, trials, alpha)?,
            other: Bounds::new(successes_other, trials, alpha)?,
        })
    }

    /// Both directions, the event and its complement: all follow from the same four bounds. Never below zero.
    fn epsilon_lower(self, delta: Delta) -> f64 {
        let (one, other) = (self.one, self.other);
        let (not_one, not_other) = (one.complement(), other.complement());
        [
            (one, other),
            (other, one),
            (not_one, not_other),
            (not_other, not_one),
        ]
        .into_iter()
        .map(|(likely, unlikely)| log_ratio_lower(likely.lower, unlikely.upper, delta))
        .fold(0.0, f64::max)
    }

    /// Whichever world the event speaks for. Never below zero.
    fn mu_lower(self) -> f64 {
        [(self.one, self.other), (self.other, self.one)]
            .into_iter()
            .map(|(likely, unlikely)| {
                let (false_positive, false_negative) = (unlikely.upper, likely.complement().upper);
                // Φ⁻¹(1-a) = -Φ⁻¹(a), with the digits of a small `a` kept.
                round::sub_down(
                    -quantile_upper(false_positive),
                    quantile_upper(false_negative),
                )
            })
            .fold(0.0, f64::max)
    }
}

/// `ln((likely - δ)/unlikely)`, rounded down; nothing follows unless the numerator is positive.
fn log_ratio_lower(likely: f64, unlikely: f64, delta: Delta) -> f64 {
    let excess = round::sub_down(likely, delta.value());
    if excess <= 0.0 {
        return f64::NEG_INFINITY;
    }
    round::ln_down(round::div_down(excess, unlikely))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binomial::{Coin, upper_tail};
    use crate::{normal, trials_for};
    use whit_core::Bits;
    use whit_testkit::SeededBits;

    fn alpha(value: f64) -> Alpha {
        Alpha::new(value).expect("in range")
    }

    fn pure(epsilon: f64) -> Claim {
        Claim::pure(Epsilon::new(epsilon).expect("not negative"))
    }

    /// A coin that falls on heads with probability `p`, up to `2^-53`.
    fn coin(seed: u64, p: f64) -> impl FnMut() -> bool {
        let mut bits = SeededBits::new(seed);
        let threshold = (p * 2_f64.powi(53)) as u64;
        move || bits.word() >> 11 < threshold
    }

    /// Randomized response that is exactly `epsilon`-DP, in both worlds. The event: it says yes.
    fn respond(claim: Claim, epsilon: f64, trials: u64, level: Alpha, seed: u64) -> Verdict {
        let truth = 1.0 / (1.0 + (-epsilon).exp());
        falsify(
            claim,
            trials,
            level,
            coin(2 * seed, truth),
            coin(2 * seed + 1, 1.0 - truth),
        )
        .expect("valid")
    }

    #[test]
    fn honest_randomized_response_is_acquitted() {
        let (runs, level) = (2000, 1e-3);
        let convictions = (0..runs)
            .filter(|seed| respond(pure(1.0), 1.0, 1000, alpha(level), *seed).convicted)
            .count();
        // More than this many would come by chance less than once in a million.
        let chance = upper_tail(convictions as u64, runs, Coin::with_heads(level));
        assert!(chance > 1e-6, "{convictions} of {runs}");
    }

    #[test]
    fn ten_percent_too_much_epsilon_is_convicted() {
        let level = alpha(1e-6);
        let epsilon = Epsilon::new(1.0).expect("positive");
        let trials = 2 * trials_for(epsilon, 1.1, level, 0.999).expect("valid");
        for seed in 0..50 {
            let verdict = respond(pure(1.0), 1.1, trials, level, 7000 + seed);
            assert!(
                verdict.convicted && verdict.epsilon_lower < 1.1,
                "seed {seed}: {verdict:?}"
            );
            let honest = respond(pure(1.0), 1.0, trials, level, 8000 + seed);
            assert!(
                !honest.convicted && honest.epsilon_lower > 0.9,
                "seed {seed}: {honest:?}"
            );
        }
    }

    #[test]
    fn direction_and_side_of_the_event_do_not_matter() {
        // Only the first world says no, one time in ten: the evidence is in the complement of yes.
        let (always, mostly) = (|| true, coin(1, 0.9));
        let forth = falsify(pure(1.0), 10_000, alpha(1e-6), always, mostly).expect("valid");
        let back = falsify(pure(1.0), 10_000, alpha(1e-6), coin(1, 0.9), always).expect("valid");
        assert_eq!(forth, back);
        assert!(forth.convicted && forth.epsilon_lower > 4.0, "{forth:?}");
    }

    #[test]
    fn delta_excuses_what_it_covers() {
        let judge = |delta: f64| {
            let claim = Claim {
                epsilon: Epsilon::ZERO,
                delta: Delta::new(delta).expect("below one"),
            };
            falsify(claim, 100_000, alpha(1e-6), coin(5, 0.06), coin(6, 0.01))
                .expect("valid")
                .convicted
        };
        assert!(judge(0.0) && judge(0.04));
        assert!(!judge(0.05) && !judge(0.5));
    }

    #[test]
    fn bound_has_its_closed_form() {
        let verdict = falsify(pure(3.0), 100, alpha(0.04), || true, || false).expect("valid");
        // All of 100 and none of 100, at one percent each: the bounds are r = 0.01^(1/100) and 1 - r.
        let root = 0.01_f64.powf(0.01);
        assert!(
            (verdict.epsilon_lower - (root / (1.0 - root)).ln()).abs() < 1e-7,
            "{verdict:?}"
        );
        assert_eq!((verdict.convicted, verdict.confidence), (true, 0.96));
    }

    #[test]
    fn no_runs_prove_nothing() {
        let verdict = falsify(pure(0.0), 0, alpha(0.1), || true, || false).expect("valid");
        assert_eq!((verdict.epsilon_lower, verdict.convicted), (0.0, false));
        let verdict = falsify_gdp(
            Mu::new(0.0).expect("zero"),
            0,
            alpha(0.1),
            || true,
            || false,
        )
        .expect("valid");
        assert_eq!((verdict.mu_lower, verdict.convicted), (0.0, false));
        assert!(
            falsify(
                pure(0.0),
                u64::MAX,
                alpha(0.1),
                || unreachable!("refused before"),
                || false
            )
            .is_err()
        );
    }

    /// Integers with two-sided geometric noise of ratio `e^-epsilon`, by inversion of two geometric ones. Test data
    /// only.
    fn noisy(seed: u64, x: i128, epsilon: f64, count: usize) -> Vec<i128> {
        let mut bits = SeededBits::new(seed);
        let mut geometric = || {
            let uniform = ((bits.word() >> 11) as f64 + 0.5) * 2_f64.powi(-53);
            (uniform.ln() / -epsilon) as i128
        };
        (0..count).map(|_| x + geometric() - geometric()).collect()
    }

    #[test]
    fn several_events_share_the_level() {
        let events: Vec<_> = (-3..=4).map(HalfLine::AtLeast).collect();
        let judge = |epsilon: f64| {
            let (one, other) = (noisy(1, 1, epsilon, 100_000), noisy(2, 0, epsilon, 100_000));
            falsify_outputs(pure(1.0), &one, &other, &events, alpha(1e-6)).expect("valid")
        };
        let (honest, twin) = (judge(1.0), judge(1.1));
        assert!(
            !honest.convicted && honest.epsilon_lower > 0.95,
            "{honest:?}"
        );
        assert!(twin.convicted && twin.epsilon_lower < 1.1, "{twin:?}");
        let none = falsify_outputs(pure(1.0), &[1], &[2], &[], alpha(1e-6));
        assert_eq!(none, Err(Error::NoEvents));
    }

    #[test]
    fn half_lines_are_closed_and_exclude_what_is_no_number() {
        assert!(HalfLine::AtLeast(3).contains(&3) && !HalfLine::AtLeast(3).contains(&2));
        assert!(HalfLine::AtMost(3.0).contains(&3.0) && !HalfLine::AtMost(3.0).contains(&f64::NAN));
    }

    /// The half-line in the middle between `N(0,1)` and `N(mu,1)`.
    fn gaussian(claim: f64, mu: f64, trials: u64, level: f64, seed: u64) -> GdpVerdict {
        let (one, other) = (
            normal::distribution(mu / 2.0),
            normal::distribution(-mu / 2.0),
        );
        let claim = Mu::new(claim).expect("not negative");
        falsify_gdp(
            claim,
            trials,
            alpha(level),
            coin(2 * seed, one),
            coin(2 * seed + 1, other),
        )
        .expect("valid")
    }

    #[test]
    fn honest_gaussian_is_acquitted() {
        let runs = 500;
        let convictions = (0..runs)
            .filter(|seed| gaussian(1.0, 1.0, 1000, 1e-2, *seed).convicted)
            .count();
        let chance = upper_tail(convictions as u64, runs, Coin::with_heads(1e-2));
        assert!(chance > 1e-6, "{convictions} of {runs}");
    }

    #[test]
    fn gaussian_with_ten_percent_too_little_noise_is_convicted() {
        // About 13,400 runs suffice a z-test at 1e-3; exact bounds at 1e-6 want about three times as many.
        for seed in 0..50 {
            let twin = gaussian(1.0, 1.0 / 0.9, 45_000, 1e-6, 900 + seed);
            assert!(
                twin.convicted && twin.mu_lower < 1.0 / 0.9,
                "seed {seed}: {twin:?}"
            );
            let honest = gaussian(1.0, 1.0, 45_000, 1e-6, 990 + seed);
            assert!(
                !honest.convicted && honest.mu_lower > 0.9,
                "seed {seed}: {honest:?}"
            );
        }
    }

    #[test]
    fn gaussian_event_may_speak_for_either_world() {
        let claim = Mu::new(1.0).expect("positive");
        let forth = falsify_gdp(claim, 1000, alpha(0.01), || true, || false).expect("valid");
        let back = falsify_gdp(claim, 1000, alpha(0.01), || false, || true).expect("valid");
        assert_eq!(forth, back);
        assert!(forth.convicted, "{forth:?}");
    }
}
