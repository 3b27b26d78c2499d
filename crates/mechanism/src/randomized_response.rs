//! # Randomized response
//! **Definition.** For one of `k >= 2` categories: the true one with probability `p`, each other one with probability
//!   `(1-p)/(k-1)`. With `k = 2` this is Warner's. [War65, KOV16]
//! **Requires.** `0 < p < 1`. Each unit reports once. Neighbours replace one unit's value: that a unit reports at all is public.
//! **Guarantee.** `ε`-DP with `ε = |ln(p(k-1)/(1-p))|`, tight. Also in the local model: nobody needs to see the true value.
//! **Proof.** Every output has probability `p` or `(1-p)/(k-1)` under every input, and for two inputs `x != x'` the output `x`
//!   has one under the first and the other under the second.
//! **Sampler.** One exact Bernoulli, one exact uniform choice; both are drawn whatever the outcome.
//! **Error.** A count `c` of a category among `n` reports has the unbiased estimate `(c - n r)/(p - r)` with `r = (1-p)/(k-1)`.

use whit_core::{
    Entropy, Error as UnitError, Event, Mechanism, Neighbours, Probability, Ratio, Secret,
};

use crate::sample::{Bernoulli, uniform_below};
use crate::{Error, Release, Result};

/// Keeps the true category with a known probability, or names another one.
pub struct RandomizedResponse {
    keep: Probability,
    categories: u64,
    kept: Bernoulli,
}

/// More categories than this are no survey.
const CATEGORIES_MAX: u64 = 1 << 32;

impl RandomizedResponse {
    /// Checks `0 < keep < 1` and that there are at least two categories.
    pub fn new(keep: Probability, categories: u64) -> Result<Self> {
        if !(2..=CATEGORIES_MAX).contains(&categories) {
            let what = "the number of categories";
            return Err(Error::CountOutOfRange {
                what,
                given: categories,
                min: 2,
                max: CATEGORIES_MAX,
            });
        }
        if keep.ratio().is_zero() || *keep.ratio() == Ratio::one() {
            let given = keep.ratio().to_string();
            let domain = "a number between 0 and 1, both excluded";
            return Err(UnitError::OutOfDomain {
                what: "the probability to keep",
                given,
                domain,
            }
            .into());
        }
        let kept = Bernoulli::new(&keep);
        Ok(Self {
            keep,
            categories,
            kept,
        })
    }

    /// What an accountant needs to know.
    pub fn event(&self) -> Event {
        let mechanism = Mechanism::RandomizedResponse {
            keep: self.keep.clone(),
            categories: self.categories,
        };
        Event::new(Neighbours::ReplaceOne, mechanism)
    }

    /// Spends one `event`. A category beyond the last counts as the last.
    pub fn release(
        &self,
        category: Secret<u64>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<u64>> {
        let mut bits = entropy.open()?;
        let category = category.expose().min(self.categories - 1);
        let keeps = self.kept.sample(&mut bits);
        // The others, numbered without the true one.
        let other = uniform_below(self.categories - 1, &mut bits);
        let other = other + u64::from(other >= category);
        let report = if keeps { category } else { other };
        Ok(Release::new(report, self.event()))
    }

    /// The answer to a yes-or-no question. Only for two categories: `false` is 0 and `true` is 1.
    pub fn release_bool(
        &self,
        answer: Secret<bool>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<bool>> {
        Ok(self
            .release(answer.map(u64::from), entropy)?
            .map(|report| report == 1))
    }

    /// Unbiased estimates of how many units are in each category, from how often each was reported. Post-processing.
    pub fn estimate(&self, reported: &[u64]) -> Vec<f64> {
        let total = reported.iter().sum::<u64>() as f64;
        let keep = self.keep.ratio().to_f64_up();
        let other = (1.0 - keep) / (self.categories - 1) as f64;
        reported
            .iter()
            .map(|&count| (count as f64 - total * other) / (keep - other))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{self, TapeEntropy, judge, seed};
    use dashu_ratio::RBig;
    use whit_audit::{enumerate, g_test};
    use whit_testkit::Seeded;

    fn mechanism(keep: (u128, u128), categories: u64) -> RandomizedResponse {
        let keep =
            Probability::new(Ratio::new(keep.0, keep.1).expect("not zero")).expect("at most one");
        RandomizedResponse::new(keep, categories).expect("a survey")
    }

    #[test]
    fn closed_form() {
        let event = mechanism((3, 4), 2).event();
        assert_eq!(event.neighbours(), Neighbours::ReplaceOne);
        assert!(matches!(
            event.mechanism(),
            Mechanism::RandomizedResponse { categories: 2, .. }
        ));
        let estimate = mechanism((3, 4), 2).estimate(&[30, 70]);
        // (c - n/4) / (1/2).
        assert_eq!(estimate, [10.0, 90.0]);
    }

    #[test]
    fn enumeration_of_every_category() {
        for (keep, categories) in [((3, 4), 2), ((1, 2), 3), ((2, 5), 5)] {
            let mechanism = mechanism(keep, categories);
            let keep = RBig::from_parts(keep.0.into(), keep.1.into());
            let other = (RBig::ONE - &keep) / RBig::from(categories - 1);
            for truth in 0..categories {
                let found = enumerate::<1, u64>(18, |tape| {
                    *mechanism
                        .release(Secret::new(truth), &mut TapeEntropy(Some(tape)))
                        .expect("one release")
                        .value()
                });
                let violations = found.violations(|&report| {
                    let p = if report == truth {
                        keep.clone()
                    } else {
                        other.clone()
                    };
                    if report < categories {
                        (p.clone(), p)
                    } else {
                        (RBig::ZERO, RBig::ZERO)
                    }
                });
                assert!(violations.is_empty(), "{violations:?}");
            }
        }
    }

    #[test]
    fn distribution() {
        let mut entropy = Seeded::new(seed(231));
        let mechanism = mechanism((2, 5), 7);
        let mut counts = [0_u64; 7];
        for _ in 0..200_000 {
            counts[*mechanism
                .release(Secret::new(6), &mut entropy)
                .expect("entropy")
                .value() as usize] += 1;
        }
        let p_value = g_test(&counts, &[0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.4])
            .expect("probabilities")
            .p_value;
        assert!(p_value >= doubt::ALPHA, "p = {p_value:e}");
    }

    /// A claim of ln 3 against a survey that keeps the truth with the given probability.
    fn seen(keep: (u128, u128)) -> whit_audit::Verdict {
        let mechanism = mechanism(keep, 2);
        let (mut one, mut other) = (Seeded::new(seed(232)), Seeded::new(seed(233)));
        let event = |answer, entropy: &mut Seeded| {
            *mechanism
                .release_bool(Secret::new(answer), entropy)
                .expect("entropy")
                .value()
        };
        judge(
            3_f64.ln(),
            0.0,
            100_000,
            || event(true, &mut one),
            || event(false, &mut other),
        )
    }

    #[test]
    fn falsifier() {
        let verdict = seen((3, 4));
        assert!(
            !verdict.convicted && verdict.epsilon_lower > 1.03,
            "{verdict:?}"
        );
    }

    #[test]
    fn falsifier_has_teeth() {
        // e^(1.1 ln 3) / (1 + e^(1.1 ln 3)) = 0.770: a tenth too much epsilon.
        assert!(seen((770, 1000)).convicted);
    }

    #[test]
    fn rejects_what_is_no_survey() {
        let keep = |numerator, denominator| {
            Probability::new(Ratio::new(numerator, denominator).expect("not zero"))
                .expect("a probability")
        };
        assert!(RandomizedResponse::new(keep(1, 1), 2).is_err());
        assert!(RandomizedResponse::new(keep(0, 1), 2).is_err());
        assert!(RandomizedResponse::new(keep(1, 2), 1).is_err());
    }

    #[test]
    fn a_category_beyond_the_last_counts_as_the_last() {
        let mut entropy = Seeded::new(234);
        let mechanism = mechanism((999_999, 1_000_000), 4);
        assert_eq!(
            *mechanism
                .release(Secret::new(u64::MAX), &mut entropy)
                .expect("entropy")
                .value(),
            3
        );
    }
}
