//! # Propose, test, release
//! **Definition.** For a statistic `f`, a proposed bound `B >= 0` and a distance `d(x) >= 0` to data that break it: draw discrete Laplace
//!   noise `Z` of scale `1/ε` and let the test pass if `d(x) + Z >= t`. If it passes, release `f(x)` plus discrete Laplace noise of scale `b`
//!   (none if `B = 0`), otherwise nothing. That nothing is released is itself a released value. \[DL09\]
//! **Requires.** For all neighbours `x, x'`: `|d(x) - d(x')| <= 1`; and `d(x) = d(x') = 0` whenever `|f(x) - f(x')| > B`. Both hold for the
//!   number of changes after which the local sensitivity first exceeds `B`. The caller vouches for them.
//! **Guarantee.** `(ε + B/b, δ)`-DP, with `t` the smallest integer for which `Pr[Z >= t] = q^t/(1+q) <= δ`, where `q = exp(-ε)`, `t >= 0`.
//! **Proof.** *If `|f(x) - f(x')| <= B`*, the test's integer is `ε`-DP and the answer, computed whether shown or not, is `B/b`-DP; both together
//!   are `(ε + B/b)`-DP by composition, and showing the answer or not is post-processing. *Otherwise* `d(x) = d(x') = 0`, so the test is
//!   passed with the same probability `Pr[Z >= t] <= δ` for both, and all other outputs are the same "nothing":
//!   `P(E) <= P'(E) + δ` for every `E`. Every pair is in one of the two cases, so the worse of both holds for all.
//!   At `t - 1` the second case has more than `δ`: the comparison with the threshold must be right to the unit.
//! **Sampler.** Exact; both noises are drawn whatever the outcome. `t` is found with rigorous enclosures of `q^t`, no float.
//! **Error.** With `d(x) >= 2t` the test fails with probability below `δ`.

use dashu_ratio::RBig;
use whit_core::{
    Bits, Delta, Entropy, Epsilon, Error as UnitError, Event, L1, Mechanism, Probability, Ratio,
    Relation, Scale, Secret, Sensitivity,
};

use crate::sample;
use crate::sample::real::exp_between;
use crate::{Error, Integer, Release, Result};

/// A value, and how many changes it is away from not being stable; changes of the relation `R`.
pub struct Stable<T, R: Relation> {
    distance: u64,
    value: T,
    relation: std::marker::PhantomData<fn() -> R>,
}

impl<T, R: Relation> Stable<T, R> {
    /// Vouches for the two requirements in the module's documentation.
    pub fn new(distance: u64, value: T) -> Self {
        Self {
            distance,
            value,
            relation: std::marker::PhantomData,
        }
    }

    #[cfg(test)]
    pub(crate) fn into_parts(self) -> (u64, T) {
        (self.distance, self.value)
    }
}

/// The test, for values that do not change at all while it passes.
pub struct ProposeTestRelease<R: Relation> {
    epsilon: Ratio,
    delta: Probability,
    threshold: u64,
    noise: sample::DiscreteLaplace,
    relation: std::marker::PhantomData<R>,
}

/// Precision of the tail: smaller ones are out of reach of any `δ` that is a positive float.
const BITS: usize = 1280;
/// Scales of the test's noise up to `2^40`: thresholds are then below `2^40 ln(2^1074) < 2^50`.
const SCALE_EXPONENT_MAX: i32 = 40;

impl<R: Relation> ProposeTestRelease<R> {
    /// Checks that `ε` is from `2^-40` to `2^64`, and `δ` positive.
    pub fn new(epsilon: Epsilon, delta: Delta) -> Result<Self> {
        let rate = epsilon.to_ratio();
        let scale = Ratio::one().checked_div(&rate);
        let scale = scale.filter(|scale| *scale <= Ratio::power_of_two(SCALE_EXPONENT_MAX));
        let Some(scale) = scale else {
            return Err(outside(
                "epsilon",
                epsilon.to_string(),
                "a number from 2^-40 to 2^64",
            ));
        };
        let noise = sample::DiscreteLaplace::new(&Scale::new(scale)?);
        let slack = Ratio::from_f64(delta.value()).filter(|slack| !slack.is_zero());
        let Some(slack) = slack else {
            let domain = "a number between 0 and 1, both excluded";
            return Err(outside("delta", delta.to_string(), domain));
        };
        let threshold = threshold(rate.as_rbig(), slack.as_rbig());
        Ok(Self {
            epsilon: rate,
            delta: Probability::new(slack)?,
            threshold,
            noise,
            relation: std::marker::PhantomData,
        })
    }

    /// `t`: the test passes from here on.
    pub fn threshold(&self) -> u64 {
        self.threshold
    }

    /// What an accountant needs to know of one release of a stable value.
    pub fn event(&self) -> Event {
        self.event_with(&Ratio::zero())
    }

    fn event_with(&self, answer: &Ratio) -> Event {
        let mechanism = Mechanism::Approximate {
            epsilon: &self.epsilon + answer,
            delta: self.delta.clone(),
        };
        Event::new(R::NEIGHBOURS, mechanism)
    }

    fn passes(&self, distance: u64, bits: &mut impl Bits) -> bool {
        let noisy = i128::from(distance).saturating_add(self.noise.sample(bits));
        noisy >= i128::from(self.threshold)
    }

    /// Shows a value of any kind if the test passes: `B = 0`, so neighbours on which it differs must both have distance zero.
    /// Spends one `event`.
    pub fn release<T>(
        &self,
        x: Secret<Stable<T, R>>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Option<T>>> {
        let mut bits = entropy.open()?;
        let Stable {
            distance, value, ..
        } = x.expose();
        let shown = self.passes(distance, &mut bits).then_some(value);
        Ok(Release::new(shown, self.event()))
    }

    /// The test for numbers that change by at most `proposed` while it passes, and noise of this scale on them.
    pub fn with_noise(self, proposed: Sensitivity<L1, R>, scale: Scale) -> ProposedSensitivity<R> {
        let loss = proposed.bound().checked_div(scale.ratio());
        ProposedSensitivity {
            answer: loss.expect("a scale is positive"),
            noise: sample::DiscreteLaplace::new(&scale),
            test: self,
        }
    }
}

/// The test together with noise for a proposed sensitivity.
pub struct ProposedSensitivity<R: Relation> {
    test: ProposeTestRelease<R>,
    /// `B/b`.
    answer: Ratio,
    noise: sample::DiscreteLaplace,
}

impl<R: Relation> ProposedSensitivity<R> {
    /// What an accountant needs to know.
    pub fn event(&self) -> Event {
        self.test.event_with(&self.answer)
    }

    /// The noisy number, if the test passes. Spends one `event`. Saturates at the ends of the integers.
    pub fn release<T: Integer>(
        &self,
        x: Secret<Stable<T, R>>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Option<T>>> {
        let mut bits = entropy.open()?;
        let Stable {
            distance, value, ..
        } = x.expose();
        let passes = self.test.passes(distance, &mut bits);
        let noise = self.noise.sample(&mut bits);
        let noisy = T::narrow(value.widen().saturating_add(noise));
        Ok(Release::new(passes.then_some(noisy), self.event()))
    }
}

fn outside(what: &'static str, given: String, domain: &'static str) -> Error {
    let error = UnitError::OutOfDomain {
        what,
        given,
        domain,
    };
    error.into()
}

/// The smallest `t >= 0` for which an upper bound of `exp(-εt)/(1 + exp(-ε))` is at most `δ`.
fn threshold(epsilon: &RBig, delta: &RBig) -> u64 {
    let upper = |t: u64| {
        let (_, upper) = exp_between(&-(epsilon * RBig::from(t)), BITS);
        upper.expect("a negative exponent has an upper bound")
    };
    let (lower, _) = exp_between(&-epsilon.clone(), BITS);
    let allowed = delta * (RBig::ONE + lower);
    let passes = |t: u64| upper(t) <= allowed;
    if passes(0) {
        return 0;
    }
    // Below 2^50, as said above.
    let mut high = 1_u64;
    while !passes(high) {
        high *= 2;
    }
    let mut low = high / 2;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if passes(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{TapeEntropy, judge, scale, seed};
    use whit_audit::enumerate;
    use whit_core::AddRemove;
    use whit_testkit::{FailingEntropy, Seeded};

    fn test(epsilon: f64, delta: f64) -> ProposeTestRelease<AddRemove> {
        let (epsilon, delta) = (Epsilon::new(epsilon), Delta::new(delta));
        ProposeTestRelease::new(epsilon.expect("one"), delta.expect("one")).expect("in range")
    }

    /// `Pr[Z >= t]` of the discrete Laplace with ratio `q = e^{-ε}`, summed term by term from the other side.
    fn tail(epsilon: f64, t: u64) -> f64 {
        let q = (-epsilon).exp();
        let pmf = |z: u64| (1.0 - q) / (1.0 + q) * q.powi(z as i32);
        0.5 + pmf(0) / 2.0 - (0..t).map(pmf).sum::<f64>()
    }

    #[test]
    fn closed_form() {
        for (epsilon, delta, expected) in [
            (1.0, 0.05, 3),
            (1.0, 0.07, 3),
            (1.0, 0.098, 3),
            (1.0, 0.099, 2),
            (1.0, 1e-6, 14),
            (0.1, 1e-6, 132),
            (3.0, 0.4, 1),
            (1.0, 0.8, 0),
            (40.0, 1e-3, 1),
        ] {
            let t = test(epsilon, delta).threshold();
            assert_eq!(t, expected, "{epsilon} {delta}");
            assert!(tail(epsilon, t) <= delta);
            assert!(t == 0 || tail(epsilon, t - 1) > delta, "one less would do");
        }
        // The continuous formula ln(1/δ)/ε of the textbooks, for scale.
        assert_eq!(test(0.01, 1e-9).threshold(), 2004);
        assert!(test(2_f64.powi(-40), 5e-324).threshold() < 1 << 50);
        let with_noise =
            test(1.0, 0.05).with_noise(Sensitivity::new(Ratio::from(3_u64)), scale(4, 1));
        let (epsilon, delta) = match with_noise.event().mechanism() {
            Mechanism::Approximate { epsilon, delta } => (epsilon.clone(), delta.clone()),
            _ => panic!("another event"),
        };
        assert_eq!(epsilon, Ratio::new(7, 4).expect("4"));
        assert_eq!(delta.ratio().to_f64_up(), 0.05);
    }

    type Output = Option<i64>;

    fn with_threshold(threshold: u64) -> ProposeTestRelease<AddRemove> {
        ProposeTestRelease {
            threshold,
            ..test(1.0, 0.05)
        }
    }

    /// Neighbours at distance zero whose values have nothing in common: every tape of the whole mechanism.
    #[test]
    fn enumeration_of_unstable_neighbours() {
        let run = |threshold: u64, value: i64| {
            let mechanism = with_threshold(threshold);
            enumerate::<1, Output>(18, |tape| {
                let x = Secret::new(Stable::new(0, value));
                let release = mechanism.release(x, &mut TapeEntropy(Some(tape)));
                release.expect("one release").into_value()
            })
        };
        let zero = Epsilon::new(0.0).expect("zero");
        // q³/(1+q) = 0.0364 at the right threshold.
        let right = test(1.0, 0.05).threshold();
        let (one, other) = (run(right, 0), run(right, 90));
        assert!(one.hockey_stick_upper(&other, zero) <= 0.05);
        assert!(one.hockey_stick_lower(&other, zero) > 0.03);
        // q²/(1+q) = 0.0989 one below: the twin that compares with >= where it should with >, or rounds down. A larger
        // epsilon does not save it.
        let (one, other) = (run(right - 1, 0), run(right - 1, 90));
        for epsilon in [0.0, 2.0] {
            let epsilon = Epsilon::new(epsilon).expect("one");
            assert!(one.hockey_stick_lower(&other, epsilon) > 0.05);
        }
    }

    /// The probability of each output with the bound 1 proposed and both scales one.
    fn formula(distance: u64, value: i64, output: Output) -> f64 {
        let passes = match 3_u64.checked_sub(distance) {
            Some(missing) => tail(1.0, missing),
            None => 1.0 - tail(1.0, distance - 2),
        };
        let q = (-1_f64).exp();
        let pmf = |y: i64| (1.0 - q) / (1.0 + q) * q.powi((y - value).abs() as i32);
        output.map_or(1.0 - passes, |y| passes * pmf(y))
    }

    #[test]
    fn enumeration_follows_the_formula() {
        let mechanism = || test(1.0, 0.05).with_noise(Sensitivity::new(Ratio::one()), scale(1, 1));
        for distance in [0, 2, 3, 5] {
            let mechanism = mechanism();
            let found = enumerate::<1, Output>(18, |tape| {
                let x = Secret::new(Stable::new(distance, 7_i64));
                let release = mechanism.release(x, &mut TapeEntropy(Some(tape)));
                release.expect("one release").into_value()
            });
            let violations = found.violations(|&output| {
                let p = formula(distance, 7, output);
                let exact = |p: f64| RBig::try_from(p).expect("finite");
                (exact(p - 1e-12), exact(p + 1e-12))
            });
            assert!(violations.is_empty(), "{violations:?}");
        }
    }

    /// All outputs of stable neighbours: at most `2ε`, and no less where few releases become many.
    #[test]
    fn stable_neighbours_lose_both_losses_and_no_more() {
        let loss = |one: (u64, i64), other: (u64, i64)| {
            let outputs = (-30..30).map(Some).chain([None]);
            let ratio = |y| {
                (formula(one.0, one.1, y) / formula(other.0, other.1, y))
                    .ln()
                    .abs()
            };
            outputs.map(ratio).fold(0.0, f64::max)
        };
        for distance in 0..20 {
            for (next, value) in [(distance, 1), (distance + 1, 1), (distance + 1, -1)] {
                assert!(loss((distance, 0), (next, value)) <= 2.0 + 1e-9);
            }
        }
        assert!(loss((0, 0), (1, 1)) > 2.0 - 1e-9);
        // Twins: a distance that moves by two for one change, and a proposed bound that does not hold.
        assert!(loss((0, 0), (2, 1)) > 2.5);
        assert!(loss((9, 0), (9, 3)) > 2.5);
    }

    /// The passing of the test alone, drawn: neighbours at distances one apart, below the threshold.
    fn seen(noise_epsilon: f64) -> whit_audit::Verdict {
        let mechanism = ProposeTestRelease {
            threshold: 4,
            ..test(noise_epsilon, 0.05)
        };
        let (mut one, mut other) = (Seeded::new(seed(5501)), Seeded::new(seed(5502)));
        let event = |distance: u64, entropy: &mut Seeded| {
            let x = Secret::new(Stable::new(distance, "the value"));
            mechanism
                .release(x, entropy)
                .expect("entropy")
                .into_value()
                .is_some()
        };
        judge(
            1.0,
            0.0,
            200_000,
            || event(3, &mut one),
            || event(2, &mut other),
        )
    }

    #[test]
    fn falsifier() {
        let verdict = seen(1.0);
        assert!(
            !verdict.convicted && verdict.epsilon_lower > 0.91,
            "{verdict:?}"
        );
    }

    #[test]
    fn falsifier_has_teeth() {
        assert!(seen(1.12).convicted, "noise a tenth too small");
    }

    #[test]
    fn extremes_are_defined() {
        let mut entropy = Seeded::new(seed(5503));
        for (distance, value) in [(0, i64::MIN), (u64::MAX, i64::MAX), (u64::MAX, i64::MIN)] {
            let mechanism = test(1.0, 1e-9).with_noise(Sensitivity::new(Ratio::one()), scale(1, 1));
            let x = Secret::new(Stable::new(distance, value));
            let release = mechanism.release(x, &mut entropy).expect("entropy");
            assert_eq!(release.value().is_some(), distance > 0);
        }
        let x = Secret::new(Stable::new(0, ()));
        assert!(test(1.0, 0.1).release(x, &mut FailingEntropy).is_err());
        for (epsilon, delta) in [(0.0, 0.1), (1e-13, 0.1), (1e20, 0.1), (1.0, 0.0)] {
            let (epsilon, delta) = (Epsilon::new(epsilon), Delta::new(delta));
            let refused =
                ProposeTestRelease::<AddRemove>::new(epsilon.expect("one"), delta.expect("one"));
            assert!(refused.is_err());
        }
    }
}
