//! # Count
//! **Definition.** The number of rows (after contribution bounding), plus integer noise.
//! **Requires.** Rows bounded by the same [`Contribution`] the statistic was made with.
//! **Guarantee.** That of the noise at sensitivity `k`, the most rows of one unit that count; `1` if each row is a unit.
//! **Proof.** Adding or removing a unit changes the count by the number of its rows, `0..=k`. Replacing one changes it by the
//!   difference of two such numbers. (A row may count or not, depending on its cells, so this holds for rows too.)
//! **Error.** That of the noise. Answers and intervals may be negative: cutting them off would bias sums of them.

use whit_core::{Confidence, Entropy, Event, L1, L2, Ratio, Relation, Secret, Sensitivity};

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
        Self {
            contribution,
            relation: std::marker::PhantomData,
        }
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

    /// Prepares the noise. No data is needed, so the event can be paid for first.
    pub fn with_noise(&self, noise: &Noise) -> NoisyCount<R> {
        NoisyCount {
            mechanism: Additive::new(noise, self.sensitivity_l1(), self.sensitivity_l2()),
        }
    }
}

/// A count with its noise, ready to release as often as its event is paid for.
pub struct NoisyCount<R: Relation> {
    mechanism: Additive<R>,
}

impl<R: Relation> NoisyCount<R> {
    /// What an accountant needs to know.
    pub fn event(&self) -> Event {
        self.mechanism.event_of(1)
    }

    /// Adds the noise and the error bars. Spends one `event`.
    pub fn release(
        &self,
        rows: Secret<i64>,
        confidence: Confidence,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Estimate>> {
        let half_width = self.mechanism.half_width(confidence) as f64;
        Ok(self.mechanism.release(rows, entropy)?.map(|noisy| {
            let answer = noisy as f64;
            Estimate {
                answer,
                low: answer - half_width,
                high: answer + half_width,
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{confidence, judge, scale, seed};
    use whit_core::{AddRemove, ReplaceOne};
    use whit_testkit::Seeded;

    #[test]
    fn closed_form() {
        assert_eq!(
            Count::<AddRemove>::new(Contribution::Row)
                .sensitivity_l1()
                .bound(),
            &Ratio::one()
        );
        assert_eq!(
            Count::<ReplaceOne>::new(Contribution::RowsPerUnit(5))
                .sensitivity_l2()
                .square(),
            &Ratio::from(25_u64)
        );
    }

    fn seen(b: (u128, u128)) -> whit_audit::Verdict {
        let count = Count::<AddRemove>::new(Contribution::RowsPerUnit(3));
        let noisy = count.with_noise(&Noise::Laplace(scale(b.0, b.1)));
        let (mut one, mut other) = (Seeded::new(seed(261)), Seeded::new(seed(262)));
        let event = |rows: u64, entropy: &mut Seeded| {
            let release = noisy.release(count.aggregate(rows), confidence(0.95), entropy);
            release.expect("entropy").value().answer >= 103.0
        };
        judge(
            1.0,
            0.0,
            100_000,
            || event(103, &mut one),
            || event(100, &mut other),
        )
    }

    #[test]
    fn falsifier() {
        let verdict = seen((3, 1));
        assert!(
            !verdict.convicted && verdict.epsilon_lower > 0.92,
            "{verdict:?}"
        );
    }

    #[test]
    fn falsifier_has_teeth() {
        assert!(seen((27, 10)).convicted);
    }

    #[test]
    fn intervals_cover_as_often_as_they_say() {
        let count = Count::<AddRemove>::new(Contribution::Row);
        let mut entropy = Seeded::new(seed(263));
        for noise in [Noise::Laplace(scale(10, 1)), Noise::Gaussian(scale(10, 1))] {
            let noisy = count.with_noise(&noise);
            let covered = (0..20_000).filter(|_| {
                let release = noisy.release(count.aggregate(500), confidence(0.95), &mut entropy);
                let estimate = *release.expect("entropy").value();
                estimate.low <= 500.0 && 500.0 <= estimate.high
            });
            let share = covered.count() as f64 / 20_000.0;
            // Integer noise covers a little more than asked; five standard deviations below is never reached.
            assert!((0.942..0.975).contains(&share), "{share}");
        }
    }
}
