//! # Randomized response
//! **Definition.** For one of `k >= 2` categories: the true one with probability `p`, each other one with probability
//!   `(1-p)/(k-1)`. With `k = 2` this is Warner's. [War65, KOV16]
//! **Requires.** `0 < p < 1`. Each unit reports once. Neighbours replace one unit's value: that a unit reports at all is public.
//! **Guarantee.** `ε`-DP with `ε = |ln(p(k-1)/(1-p))|`, tight. Also in the local model: nobody needs to see the true value.
//! **Proof.** Every output has probability `p` or `(1-p)/(k-1)` under every input, and for two inputs `x != x'` the output `x`
//!   has one under the first and the other under the second.
//! **Sampler.** One exact Bernoulli, one exact uniform choice; both are drawn whatever the outcome.
//! **Error.** A count `c` of a category among `n` reports has the unbiased estimate `(c - n r)/(p - r)` with `r = (1-p)/(k-1)`.

use whit_core::{Entropy, Error as UnitError, Event, Mechanism, Neighbours, Probability, Ratio, Secret};

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
            return Err(Error::CountOutOfRange { what, given: categories, min: 2, max: CATEGORIES_MAX });
        }
        if keep.ratio().is_zero() || *keep.ratio() == Ratio::one() {
            let given = keep.ratio().to_string();
            let domain = "a number between 0 and 1, both excluded";
            return Err(UnitError::OutOfDomain { what: "the probability to keep", given, domain }.into());
        }
        let kept = Bernoulli::new(&keep);
        Ok(Self { keep, categories, kept })
    }

    /// What an accountant needs to know.
    pub fn event(&self) -> Event {
        let mechanism = Mechanism::RandomizedResponse { keep: self.keep.clone(), categories: self.categories };
        Event::new(Neighbours::ReplaceOne, mechanism)
    }

    /// Spends one `event`. A category beyond the last counts as the last.
    pub fn release(&self, category: Secret<u64>, entropy: &mut impl Entropy) -> Result<Release<u64>> {
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
    pub fn release_bool(&self, answer: Secret<bool>, entropy: &mut impl Entropy) -> Result<Release<bool>> {
        Ok(self.release(answer.map(u64::from), entropy)?.map(|report| report == 1))
    }

    /// Unbiased estimates of how many units are in each category, from how often each was reported. Post-processing.
    pub fn estimate(&self, reported: &[u64]) -> Vec<f64> {
        let total = reported.iter().sum::<u64>() as f64;
        let keep = self.keep.ratio().to_f64_up();
        let other = (1.0 - keep) / (self.categories - 1) as f64;
        reported.iter().map(|&count| (count as f64 - total * other) / (keep - other)).collect()
    }
}
