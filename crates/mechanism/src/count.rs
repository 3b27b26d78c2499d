//! # Count
//! **Definition.** The number of rows (after contribution bounding), plus integer noise.
//! **Requires.** Rows bounded by the same [`Contribution`] the statistic was made with.
//! **Guarantee.** That of the noise at sensitivity `k`, the most rows of one unit that count; `1` if each row is a unit.
//! **Proof.** Adding or removing a unit changes the count by the number of its rows, `0..=k`. Replacing one changes it by the
//!   difference of two such numbers. (A row may count or not, depending on its cells, so this holds for rows too.)
//! **Error.** That of the noise. The interval is cut at zero, which loses no coverage.

use whit_core::{Confidence, Entropy, L1, L2, Ratio, Relation, Secret, Sensitivity};

use crate::additive::{Additive, Noise};
use crate::{Contribution, Estimate, Release, Result};

/// How many rows there are.
#[derive(Clone, Copy, Debug)]
pub struct Count<R: Relation> {
    contribution: Contribution,
    relation: std::marker::PhantomData<R>,
}

impl<R: Relation> Count<R> {
    /// A count of rows that were bounded so.
    pub fn new(contribution: Contribution) -> Self {
        Self { contribution, relation: std::marker::PhantomData }
    }

    /// The most that one unit changes it.
    pub fn sensitivity_l1(&self) -> Sensitivity<L1, R> {
        Sensitivity::new(self.bound())
    }

    /// The same; in one dimension all norms agree.
    pub fn sensitivity_l2(&self) -> Sensitivity<L2, R> {
        Sensitivity::new(self.bound())
    }

    fn bound(&self) -> Ratio {
        Ratio::from(u64::from(self.contribution.rows_max()))
    }

    /// Marks a number of rows as secret.
    pub fn aggregate(&self, rows: u64) -> Secret<i64> {
        Secret::new(i64::try_from(rows).unwrap_or(i64::MAX))
    }

    /// Adds the noise and the error bars.
    pub fn release(
        &self,
        rows: Secret<i64>,
        noise: &Noise,
        confidence: Confidence,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Estimate>> {
        let mechanism = Additive::new(noise, self.sensitivity_l1(), self.sensitivity_l2());
        let half_width = mechanism.half_width(confidence) as f64;
        Ok(mechanism.release(rows, entropy)?.map(|noisy| {
            let answer = noisy as f64;
            Estimate { answer, low: (answer - half_width).max(0.0), high: (answer + half_width).max(0.0) }
        }))
    }
}
