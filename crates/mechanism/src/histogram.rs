//! # Histogram over public bins
//! **Definition.** How many values fall in each of `N` bins of equal width over `[L, U]`, each count with independent integer noise.
//!   Values outside are clamped into the first or last bin; what is no number is in none. The last bin holds `U`.
//! **Requires.** Rows bounded by the same [`Contribution`] the statistic was made with. Bins are public, so empty ones are
//!   released too.
//! **Guarantee.** That of the noise on the whole vector; `k` is the most rows of one unit:
//!
//! | | L1 | L2 squared |
//! | --- | --- | --- |
//! | add/remove | `k` | `k²` |
//! | replace-one | `2k` | `2k²` |
//!
//! **Proof.** A unit adds a vector `v >= 0` with `‖v‖₁ <= k`, hence `‖v‖₂ <= k`. The difference of two such has `‖v-v'‖₁ <= 2k` and
//!   `‖v-v'‖₂² <= ‖v‖₂² + ‖v'‖₂² <= 2k²`, since their product is not negative.
//! **Error.** That of the noise, for each bin on its own.

use whit_core::{Confidence, Entropy, L1, L2, Ratio, Relation, Secret, Sensitivity};

use crate::additive::{Additive, Noise};
use crate::{Bounds, Contribution, Error, Estimate, Release, Result};

/// Counts of values in bins of equal width.
#[derive(Clone, Copy, Debug)]
pub struct Histogram<R: Relation> {
    bounds: Bounds,
    bins: u32,
    contribution: Contribution,
    relation: std::marker::PhantomData<R>,
}

/// More bins than this are no histogram.
const BINS_MAX: u32 = 1 << 24;

impl<R: Relation> Histogram<R> {
    /// A histogram of rows that were bounded so.
    pub fn new(bounds: Bounds, bins: u32, contribution: Contribution) -> Result<Self> {
        if !(1..=BINS_MAX).contains(&bins) {
            let what = "the number of bins";
            return Err(Error::CountOutOfRange { what, given: u64::from(bins), min: 1, max: u64::from(BINS_MAX) });
        }
        Ok(Self { bounds, bins, contribution, relation: std::marker::PhantomData })
    }

    /// The most that one unit changes all bins together.
    pub fn sensitivity_l1(&self) -> Sensitivity<L1, R> {
        Sensitivity::new(&self.rows_max() * &self.sides())
    }

    /// The same in L2.
    pub fn sensitivity_l2(&self) -> Sensitivity<L2, R> {
        let rows_max = self.rows_max();
        Sensitivity::from_square(&(&rows_max * &rows_max) * &self.sides())
    }

    fn rows_max(&self) -> Ratio {
        Ratio::from(u64::from(self.contribution.rows_max()))
    }

    /// How many contributions tell neighbours apart: the one that is there or not, or the old and the new one.
    fn sides(&self) -> Ratio {
        Ratio::from(R::pick(1_u64, 2))
    }

    /// The ends of bin `index`.
    pub fn edges(&self, index: u32) -> (f64, f64) {
        let grid = self.bounds.grid();
        let [lower, upper] = [self.bounds.lower(), self.bounds.upper()].map(|steps| grid.value(i128::from(steps)));
        let edge = |i: u32| if i == self.bins { upper } else { lower + (upper - lower) * (f64::from(i) / f64::from(self.bins)) };
        (edge(index), edge(index + 1))
    }

    /// Sorts values into bins, in integer arithmetic.
    pub fn aggregate(&self, rows: impl IntoIterator<Item = f64>) -> Secret<Vec<i64>> {
        let mut counts = vec![0_i64; self.bins as usize];
        let (lower, width) = (i128::from(self.bounds.lower()), i128::from(self.bounds.width()));
        for value in rows {
            if let Some(steps) = self.bounds.fix(value) {
                let index = (i128::from(steps) - lower) * i128::from(self.bins) / width;
                counts[(index as usize).min(self.bins as usize - 1)] += 1;
            }
        }
        Secret::new(counts)
    }

    /// Adds the noise and the error bars.
    pub fn release(
        &self,
        counts: Secret<Vec<i64>>,
        noise: &Noise,
        confidence: Confidence,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Vec<Estimate>>> {
        let mechanism = Additive::new(noise, self.sensitivity_l1(), self.sensitivity_l2());
        let half_width = mechanism.half_width(confidence) as f64;
        Ok(mechanism.release_vector(counts, entropy)?.map(|noisy| {
            let estimate = |answer: f64| Estimate {
                answer,
                low: (answer - half_width).max(0.0),
                high: (answer + half_width).max(0.0),
            };
            noisy.into_iter().map(|count| estimate(count as f64)).collect()
        }))
    }
}
