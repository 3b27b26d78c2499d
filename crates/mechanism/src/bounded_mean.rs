//! # Bounded mean
//! **Definition.** With the middle `m = (L+U)/2`: `m + (Σ (clamp(x_i) - m) + Z) / n`. Under replace-one with each row a unit, `n` is
//!   the public number of rows. Otherwise `n` is a noisy count of the rows that have a value, at least 1. The answer is
//!   clamped to `[L, U]`.
//! **Requires.** Rows bounded by the same [`Contribution`] the statistic was made with.
//! **Guarantee.** The composition of the noise on the centred sum and, where there is one, on the count, at these
//!   sensitivities; `w = U - L`, `k` the most rows of one unit:
//!
//! | | centred sum | count |
//! | --- | --- | --- |
//! | add/remove | `k w/2` | `k` |
//! | replace-one, up to `k` rows | `k w` | `k` |
//! | replace-one, each row a unit | `w` | public |
//!
//! **Proof.** A centred value lies in `[-w/2, w/2]`, an absent cell adds zero, which lies there too. A unit's total lies in
//!   `[-k w/2, k w/2]`: one end is at most `k w/2` from zero and the ends are `k w` apart. The count is that of
//!   [`Count`]. Division and clamping are post-processing. Fixed point counts half steps, so that `m` is exact.
//! **Error.** Each of the two noisy parts stays within its own half-width except with half the missing probability, so both do
//!   with the stated confidence, and the interval holds every quotient they allow.

use whit_core::{
    Confidence, Entropy, Event, L1, L2, Neighbours, Ratio, Relation, Secret, Sensitivity,
};

use crate::additive::{Additive, Noise};
use crate::count::NoisyCount;
use crate::{Bounds, Contribution, Count, Error, Estimate, Release, Result};

/// The mean of values in public bounds.
#[derive(Clone, Copy, Debug)]
pub struct BoundedMean<R: Relation> {
    bounds: Bounds,
    contribution: Contribution,
    relation: std::marker::PhantomData<R>,
}

/// What the data gives to a mean: the centred sum in half steps, and how many values there are.
pub struct MeanParts {
    centred: Secret<i128>,
    present: Secret<i64>,
    rows: Secret<i64>,
}

impl<R: Relation> BoundedMean<R> {
    /// A mean over rows that were bounded so.
    pub fn new(bounds: Bounds, contribution: Contribution) -> Self {
        Self {
            bounds,
            contribution,
            relation: std::marker::PhantomData,
        }
    }

    /// Is the number of rows public, so that only the sum needs noise?
    pub fn count_is_public(&self) -> bool {
        R::NEIGHBOURS == Neighbours::ReplaceOne && self.contribution == Contribution::Row
    }

    /// The most that one unit changes the centred sum, in the unit of the values.
    pub fn sum_sensitivity_l1(&self) -> Sensitivity<L1, R> {
        Sensitivity::new(&self.half_steps() * &self.half_step())
    }

    /// The same; in one dimension all norms agree.
    pub fn sum_sensitivity_l2(&self) -> Sensitivity<L2, R> {
        Sensitivity::new(&self.half_steps() * &self.half_step())
    }

    /// The count that divides the sum, when it needs noise.
    pub fn count(&self) -> Count<R> {
        Count::new(self.contribution)
    }

    fn half_step(&self) -> Ratio {
        &self.bounds.step() * &Ratio::power_of_two(-1)
    }

    fn half_steps(&self) -> Ratio {
        // A width of w steps is 2w half steps; half of it is w.
        let width = u128::from(self.bounds.width());
        let each = R::pick(width, 2 * width);
        Ratio::from(each * u128::from(self.contribution.rows_max()))
    }

    /// Centres and adds up; what is no number is absent.
    pub fn aggregate(&self, rows: impl IntoIterator<Item = f64>) -> MeanParts {
        let twice_middle = i128::from(self.bounds.lower()) + i128::from(self.bounds.upper());
        let (mut centred, mut present, mut count) = (0_i128, 0_i64, 0_i64);
        for value in rows {
            count += 1;
            if let Some(steps) = self.bounds.fix(value) {
                centred += 2 * i128::from(steps) - twice_middle;
                present += 1;
            }
        }
        MeanParts {
            centred: Secret::new(centred),
            present: Secret::new(present),
            rows: Secret::new(count),
        }
    }

    /// Prepares the noise. No data is needed, so the event can be paid for first. `count_noise` is needed exactly when
    /// [`count_is_public`](Self::count_is_public) is false.
    pub fn with_noise(
        &self,
        sum_noise: &Noise,
        count_noise: Option<&Noise>,
    ) -> Result<NoisyMean<R>> {
        if self.count_is_public() != count_noise.is_none() {
            return Err(Error::CountNoise {
                public: self.count_is_public(),
            });
        }
        let sum_noise = sum_noise.in_steps(&self.half_step())?;
        let half_steps = self.half_steps();
        let sum = Additive::new(
            &sum_noise,
            Sensitivity::new(half_steps.clone()),
            Sensitivity::new(half_steps),
        );
        Ok(NoisyMean {
            bounds: self.bounds,
            sum,
            count: count_noise.map(|noise| self.count().with_noise(noise)),
        })
    }
}

/// A mean with its noise, ready to release as often as its event is paid for.
pub struct NoisyMean<R: Relation> {
    bounds: Bounds,
    sum: Additive<R>,
    /// Absent when the count is public.
    count: Option<NoisyCount<R>>,
}

impl<R: Relation> NoisyMean<R> {
    /// What an accountant needs to know.
    pub fn event(&self) -> Event {
        let sum = self.sum.event_of(1);
        match &self.count {
            Some(count) => sum
                .and(count.event())
                .expect("both speak of the relation R"),
            None => sum,
        }
    }

    /// Adds the noise and the error bars. Spends one `event`.
    pub fn release(
        &self,
        parts: MeanParts,
        confidence: Confidence,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Estimate>> {
        // Each of two noisy parts may miss with half the probability.
        let confidence = match self.count {
            Some(_) => confidence.for_each_of_two(),
            None => confidence,
        };
        let quotient = Quotient {
            bounds: self.bounds,
            sum_half_width: self.sum.half_width(confidence) as f64,
        };
        let parts = self.release_parts(parts, confidence, entropy)?;
        Ok(parts.map(|(sum, count)| quotient.estimate(sum as f64, count)))
    }

    /// All that touches the data: the noisy centred sum in half steps, and the count, noisy unless it is public.
    fn release_parts(
        &self,
        parts: MeanParts,
        confidence: Confidence,
        entropy: &mut impl Entropy,
    ) -> Result<Release<(i128, Estimate)>> {
        let sum = self.sum.release(parts.centred, entropy)?;
        let Some(count) = &self.count else {
            // The number of rows is the same for all neighbours: it may leave without noise.
            let rows = parts.rows.expose() as f64;
            let public = Estimate {
                answer: rows,
                low: rows,
                high: rows,
            };
            return Ok(sum.map(|sum| (sum, public)));
        };
        Ok(sum.and(count.release(parts.present, confidence, entropy)?)?)
    }
}

/// Post-processing: from a noisy sum and a count to a mean.
struct Quotient {
    bounds: Bounds,
    sum_half_width: f64,
}

impl Quotient {
    fn estimate(&self, sum: f64, count: Estimate) -> Estimate {
        let grid = self.bounds.grid();
        let [lower, upper] =
            [self.bounds.lower(), self.bounds.upper()].map(|steps| grid.value(i128::from(steps)));
        let half_step = 0.5 * grid.value(1);
        let mean = |sum: f64, count: f64| {
            (lower + 0.5 * (upper - lower) + sum * half_step / count.max(1.0)).clamp(lower, upper)
        };
        let (sum_low, sum_high) = (sum - self.sum_half_width, sum + self.sum_half_width);
        // A quotient with a positive divisor is extreme at the ends of both.
        let ends = [
            (sum_low, count.low),
            (sum_low, count.high),
            (sum_high, count.low),
            (sum_high, count.high),
        ];
        let ends = ends.map(|(sum, count)| mean(sum, count));
        Estimate {
            answer: mean(sum, count.answer),
            low: ends.into_iter().fold(upper, f64::min),
            high: ends.into_iter().fold(lower, f64::max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{confidence, judge, scale, seed};
    use whit_core::{AddRemove, ReplaceOne};
    use whit_testkit::{NeighbourPair, Seeded, SeededBits, UnitPair};

    fn mean<R: Relation>(contribution: Contribution) -> BoundedMean<R> {
        BoundedMean::new(Bounds::new(-100.0, 50.0).expect("a range"), contribution)
    }

    #[test]
    fn closed_form() {
        let bound = |sensitivity: Ratio| sensitivity.to_f64_up();
        let unit = Contribution::RowsPerUnit(3);
        assert_eq!(
            bound(
                mean::<AddRemove>(Contribution::Row)
                    .sum_sensitivity_l1()
                    .bound()
                    .clone()
            ),
            75.0
        );
        assert_eq!(
            bound(mean::<AddRemove>(unit).sum_sensitivity_l1().bound().clone()),
            225.0
        );
        assert_eq!(
            bound(
                mean::<ReplaceOne>(Contribution::Row)
                    .sum_sensitivity_l1()
                    .bound()
                    .clone()
            ),
            150.0
        );
        assert_eq!(
            bound(
                mean::<ReplaceOne>(unit)
                    .sum_sensitivity_l2()
                    .square()
                    .clone()
            ),
            450.0 * 450.0
        );
        assert!(mean::<ReplaceOne>(Contribution::Row).count_is_public());
        assert!(
            !mean::<ReplaceOne>(unit).count_is_public()
                && !mean::<AddRemove>(Contribution::Row).count_is_public()
        );
    }

    fn record_and_replay<R: Relation>(pair: impl Fn(&mut SeededBits) -> NeighbourPair) {
        let mut bits = SeededBits::new(seed(281));
        let mean = mean::<R>(Contribution::Row);
        let bound = i128::try_from(mean.half_steps().floor()).expect("small");
        for _ in 0..200 {
            let NeighbourPair { one, other } = pair(&mut bits);
            let (a, b) = (mean.aggregate(one.clone()), mean.aggregate(other.clone()));
            assert!(
                (a.centred.expose() - b.centred.expose()).abs() <= bound,
                "{one:?} {other:?}"
            );
            assert!((a.present.expose() - b.present.expose()).abs() <= 1);
            assert!(
                !mean.count_is_public() || a.rows.expose() == b.rows.expose(),
                "a public count differs"
            );
        }
    }

    #[test]
    fn neighbours_stay_within_the_sensitivity() {
        record_and_replay::<AddRemove>(NeighbourPair::add_remove);
        record_and_replay::<ReplaceOne>(NeighbourPair::replace_one);
    }

    #[test]
    fn answers_are_near_and_covered() {
        let mut entropy = Seeded::new(seed(282));
        let rows: Vec<f64> = (0..2000).map(|i| f64::from(i % 41) - 20.0).collect();
        let truth = rows.iter().sum::<f64>() / rows.len() as f64;
        let secret = mean::<AddRemove>(Contribution::Row);
        let public = mean::<ReplaceOne>(Contribution::Row);
        // ε = 1 for each: half and half, or all of it on the sum.
        let laplace = |b| Noise::Laplace(scale(b, 1));
        let noisy_secret = secret
            .with_noise(&laplace(150), Some(&laplace(2)))
            .expect("in range");
        let noisy_public = public.with_noise(&laplace(150), None).expect("in range");
        let mut covered = [0; 2];
        for _ in 0..2000 {
            let parts = secret.aggregate(rows.iter().copied());
            let estimate = *noisy_secret
                .release(parts, confidence(0.95), &mut entropy)
                .expect("entropy")
                .value();
            assert!((estimate.answer - truth).abs() < 2.0);
            covered[0] += u32::from(estimate.low <= truth && truth <= estimate.high);
            let parts = public.aggregate(rows.iter().copied());
            let estimate = *noisy_public
                .release(parts, confidence(0.95), &mut entropy)
                .expect("entropy")
                .value();
            covered[1] += u32::from(estimate.low <= truth && truth <= estimate.high);
        }
        assert!(
            covered.iter().all(|&covered| covered > 1850),
            "{covered:?} of 2000"
        );
    }

    #[test]
    fn no_rows_and_one_row_are_answered() {
        let mut entropy = Seeded::new(283);
        let noise = Noise::Laplace(scale(1, 1));
        for rows in [vec![], vec![7.0], vec![f64::NAN]] {
            let mean = mean::<AddRemove>(Contribution::Row);
            let noisy = mean.with_noise(&noise, Some(&noise)).expect("in range");
            let release =
                noisy.release(mean.aggregate(rows.clone()), confidence(0.95), &mut entropy);
            let estimate = *release.expect("entropy").value();
            assert!((-100.0..=50.0).contains(&estimate.answer) && estimate.low <= estimate.high);
            let public = BoundedMean::<ReplaceOne>::new(
                Bounds::new(-100.0, 50.0).expect("a range"),
                Contribution::Row,
            );
            let noisy = public.with_noise(&noise, None).expect("in range");
            assert!(
                noisy
                    .release(public.aggregate(rows), confidence(0.95), &mut entropy)
                    .is_ok()
            );
        }
    }

    #[test]
    fn refuses_the_wrong_number_of_noises() {
        let noise = Noise::Laplace(scale(1, 1));
        let (secret, public) = (
            mean::<AddRemove>(Contribution::Row),
            mean::<ReplaceOne>(Contribution::Row),
        );
        assert!(secret.with_noise(&noise, None).is_err());
        assert!(public.with_noise(&noise, Some(&noise)).is_err());
    }

    /// Both parts at once, where all of ε shows: a row at the end of the range moves the sum and the count by all they can.
    fn seen(sum_scale: (u128, u128), count_scale: (u128, u128)) -> whit_audit::Verdict {
        let mean = BoundedMean::<AddRemove>::new(
            Bounds::new(0.0, 2.0).expect("a range"),
            Contribution::Row,
        );
        let laplace = |b: (u128, u128)| Noise::Laplace(scale(b.0, b.1));
        let noisy = mean
            .with_noise(&laplace(sum_scale), Some(&laplace(count_scale)))
            .expect("in range");
        let (mut one, mut other) = (Seeded::new(seed(285)), Seeded::new(seed(286)));
        let width = i128::from(mean.bounds.width());
        let event = |rows: &[f64], entropy: &mut Seeded| {
            let parts = mean.aggregate(rows.iter().copied());
            let release = noisy.release_parts(parts, confidence(0.95), entropy);
            let (sum, count) = release.expect("entropy").into_value();
            sum >= width && count.answer >= 1.0
        };
        judge(
            1.0,
            0.0,
            200_000,
            || event(&[2.0], &mut one),
            || event(&[], &mut other),
        )
    }

    #[test]
    fn falsifier() {
        let verdict = seen((2, 1), (2, 1));
        assert!(
            !verdict.convicted && verdict.epsilon_lower > 0.93,
            "{verdict:?}"
        );
    }

    #[test]
    fn falsifier_has_teeth() {
        assert!(seen((9, 5), (9, 5)).convicted, "a tenth too little noise");
        assert!(
            seen((1, 1), (2, 1)).convicted,
            "all of the budget on the sum"
        );
        assert!(
            seen((2, 1), (1, 1)).convicted,
            "all of the budget on the count"
        );
        assert!(
            seen((2, 1), (1, 1 << 20)).convicted,
            "a count without noise"
        );
    }

    /// Replace-one with a public count: a row moves from one end of the range to the other.
    fn seen_replaced(sum_scale: (u128, u128)) -> whit_audit::Verdict {
        let mean = BoundedMean::<ReplaceOne>::new(
            Bounds::new(0.0, 2.0).expect("a range"),
            Contribution::Row,
        );
        let noise = Noise::Laplace(scale(sum_scale.0, sum_scale.1));
        let noisy = mean.with_noise(&noise, None).expect("in range");
        let (mut one, mut other) = (Seeded::new(seed(287)), Seeded::new(seed(288)));
        let width = i128::from(mean.bounds.width());
        let event = |row: f64, entropy: &mut Seeded| {
            let release =
                noisy.release_parts(mean.aggregate([row, 1.0]), confidence(0.95), entropy);
            let (sum, count) = release.expect("entropy").into_value();
            assert_eq!(count.answer, 2.0);
            sum >= width
        };
        judge(
            1.0,
            0.0,
            100_000,
            || event(2.0, &mut one),
            || event(0.0, &mut other),
        )
    }

    #[test]
    fn falsifier_of_a_public_count() {
        let verdict = seen_replaced((2, 1));
        assert!(
            !verdict.convicted && verdict.epsilon_lower > 0.93,
            "{verdict:?}"
        );
        assert!(seen_replaced((9, 5)).convicted);
    }

    fn replay_units<R: Relation>(pair: impl Fn(&mut SeededBits) -> UnitPair) {
        let mut bits = SeededBits::new(seed(289));
        for rows_max in [1, 3] {
            let contribution = Contribution::RowsPerUnit(rows_max);
            let mean = mean::<R>(contribution);
            let bound = i128::try_from(mean.half_steps().floor()).expect("small");
            for _ in 0..200 {
                let UnitPair { one, other } = pair(&mut bits);
                let (a, b) = (
                    mean.aggregate(contribution.bound(one)),
                    mean.aggregate(contribution.bound(other)),
                );
                assert!((a.centred.expose() - b.centred.expose()).abs() <= bound);
                assert!((a.present.expose() - b.present.expose()).abs() <= i64::from(rows_max));
            }
        }
    }

    #[test]
    fn units_stay_within_the_sensitivity() {
        replay_units::<AddRemove>(UnitPair::add_remove);
        replay_units::<ReplaceOne>(UnitPair::replace_one);
    }
}
