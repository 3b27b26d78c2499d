//! # Bounded sum
//! **Definition.** `Σ clamp(x_i, L, U)`, in fixed point, plus integer noise.
//! **Requires.** Rows bounded by the same [`Contribution`] the statistic was made with.
//! **Guarantee.** That of the noise at the sensitivity below, in steps of the grid; `k` is the most rows of one unit.
//!
//! | | add/remove | replace-one |
//! | --- | --- | --- |
//! | each row a unit | `max(|L|,|U|)` | `U - L` |
//! | up to `k` rows | `k max(|L|,|U|)` | `k (max(U,0) - min(L,0))` |
//!
//! **Proof.** A row adds a value in `[L, U]`, or nothing if its cell is absent. Add/remove: a unit adds at most `k` values, each at
//!   most `max(|L|,|U|)` in size. Replace-one, up to `k` rows: a unit's total lies in `[k min(L,0), k max(U,0)]`, whether rows are
//!   absent or not. Replace-one with exactly one row per unit: an absent cell is read as the value of the range nearest to
//!   zero, so every row adds a value in `[L, U]`. Integers do not round, and 128 bits hold `2^64` rows of 63 bits.
//! **Error.** That of the noise, for the sum of the *clamped* values.

use whit_core::{Confidence, Entropy, L1, L2, Ratio, Relation, Secret, Sensitivity};

use crate::additive::{Additive, Noise};
use crate::{Bounds, Contribution, Estimate, Release, Result};

/// The sum of values in public bounds.
#[derive(Clone, Copy, Debug)]
pub struct BoundedSum<R: Relation> {
    bounds: Bounds,
    contribution: Contribution,
    relation: std::marker::PhantomData<R>,
}

impl<R: Relation> BoundedSum<R> {
    /// A sum over rows that were bounded so.
    pub fn new(bounds: Bounds, contribution: Contribution) -> Self {
        Self { bounds, contribution, relation: std::marker::PhantomData }
    }

    /// The most that one unit changes it, in the unit of the values.
    pub fn sensitivity_l1(&self) -> Sensitivity<L1, R> {
        Sensitivity::new(&self.steps() * &self.bounds.step())
    }

    /// The same; in one dimension all norms agree.
    pub fn sensitivity_l2(&self) -> Sensitivity<L2, R> {
        Sensitivity::new(&self.steps() * &self.bounds.step())
    }

    /// The most that one unit changes it, in steps of the grid.
    fn steps(&self) -> Ratio {
        let replaced = match self.contribution {
            Contribution::Row => self.bounds.width(),
            Contribution::RowsPerUnit(_) => self.bounds.width_with_zero(),
        };
        let each = R::pick(self.bounds.reach(), replaced);
        Ratio::from(u128::from(each) * u128::from(self.contribution.rows_max()))
    }

    /// What an absent cell adds.
    fn absent(&self) -> i64 {
        let replaced = match self.contribution {
            Contribution::Row => self.bounds.nearest_to_zero(),
            Contribution::RowsPerUnit(_) => 0,
        };
        R::pick(0, replaced)
    }

    /// Clamps and adds up; what is no number is absent.
    pub fn aggregate(&self, rows: impl IntoIterator<Item = f64>) -> Secret<i128> {
        let absent = self.absent();
        Secret::new(rows.into_iter().map(|value| i128::from(self.bounds.fix(value).unwrap_or(absent))).sum())
    }

    /// The same over values that are in steps of the grid already, at the speed of memory.
    pub fn aggregate_steps(&self, rows: &[i64]) -> Secret<i128> {
        let (lower, upper) = (self.bounds.lower(), self.bounds.upper());
        // So many clamped values fit in 64 bits, so the inner loop needs no wider ones. At least two, since bounds have at
        // most 61 bits.
        let block = (i64::MAX as u64 / self.bounds.reach().max(1)).min(1 << 20) as usize;
        let sum_block = |rows: &[i64]| rows.iter().map(|&value| value.max(lower).min(upper)).sum::<i64>();
        Secret::new(rows.chunks(block).map(|rows| i128::from(sum_block(rows))).sum())
    }

    /// Adds the noise and the error bars.
    pub fn release(
        &self,
        sum: Secret<i128>,
        noise: &Noise,
        confidence: Confidence,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Estimate>> {
        let noise = noise.in_steps(&self.bounds.step())?;
        let mechanism = Additive::<R>::new(&noise, Sensitivity::new(self.steps()), Sensitivity::new(self.steps()));
        let half_width = i128::try_from(mechanism.half_width(confidence)).unwrap_or(i128::MAX);
        let grid = self.bounds.grid();
        Ok(mechanism.release(sum, entropy)?.map(|noisy| Estimate {
            answer: grid.value(noisy),
            low: grid.value(noisy.saturating_sub(half_width)),
            high: grid.value(noisy.saturating_add(half_width)),
        }))
    }
}
