//! # From noisy moments to means and covariances
//! **Definition.** With `S_j`, `P_jk` and `n` the noisy sums of [`Covariance`](crate::Covariance), where half widths are one: the mean
//!   `m_j + h_j S_j/n` and the covariance `h_j h_k (P_jk/n - S_j S_k/n²)`, clamped to what the bounds allow; `n` is at least one.
//! **Guarantee.** That of the release: all of this is post-processing.
//! **Error.** If the parts of an answer are each within their half-width, the interval holds the truth: quotients by a positive interval
//!   and products of intervals are extreme at their ends.

use crate::covariance::Layout;
use crate::{Bounds, Estimate};

/// Noisy moments of several columns, and what follows from them.
#[derive(Clone, Debug, PartialEq)]
pub struct Moments {
    pub(crate) columns: Vec<Bounds>,
    /// In the order of the layout, where half widths are one.
    pub(crate) sums: Vec<f64>,
    /// Zero if the count is public.
    pub(crate) count_half_width: f64,
    pub(crate) half_width: f64,
}

impl Moments {
    /// How many columns there are.
    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    /// The number of rows, at least one.
    pub fn count(&self) -> f64 {
        self.sums[0].max(1.0)
    }

    /// The mean of a column. None if there is no such column.
    pub fn mean(&self, j: usize) -> Option<Estimate> {
        self.has(j).then(|| self.mean_of(j))
    }

    /// The same for a column that is there.
    pub(crate) fn mean_of(&self, j: usize) -> Estimate {
        let (middle, half) = self.middle_and_half(j);
        each(self.unit_mean(j), |mean| {
            middle + half * mean.clamp(-1.0, 1.0)
        })
    }

    /// The covariance of two columns, or the variance of one: of the rows, with the divisor `n`. None if there is no such column.
    pub fn covariance(&self, j: usize, k: usize) -> Option<Estimate> {
        (self.has(j) && self.has(k)).then(|| self.covariance_of(j, k))
    }

    fn has(&self, j: usize) -> bool {
        j < self.columns()
    }

    fn covariance_of(&self, j: usize, k: usize) -> Estimate {
        let halves = (self.middle_and_half(j).1, self.middle_and_half(k).1);
        let (product, least) = if j == k {
            (self.unit_square(j), 0.0)
        } else {
            (self.over_count(Layout(self.columns()).product(j, k)), -1.0)
        };
        let means = times(self.unit_mean(j), self.unit_mean(k), j == k);
        let difference = Estimate {
            answer: product.answer - means.answer,
            low: product.low - means.high,
            high: product.high - means.low,
        };
        each(difference, |value| {
            value.clamp(least, 1.0) * halves.0 * halves.1
        })
    }

    /// The covariance where every half width is one, not clamped.
    pub(crate) fn unit_covariance(&self, j: usize, k: usize) -> f64 {
        let product = if j == k {
            self.unit_square(j)
        } else {
            self.over_count(Layout(self.columns()).product(j, k))
        };
        product.answer - self.unit_mean(j).answer * self.unit_mean(k).answer
    }

    /// How far noise moves a mean where every half width is one, at the confidence asked for.
    pub(crate) fn unit_error(&self) -> f64 {
        self.half_width / self.count()
    }

    /// The middle and half the width of a column.
    pub(crate) fn middle_and_half(&self, j: usize) -> (f64, f64) {
        let bounds = self.columns[j];
        let value = |steps: i64| bounds.grid().value(i128::from(steps));
        let half = 0.5 * (value(bounds.upper()) - value(bounds.lower()));
        (value(bounds.lower()) + half, half)
    }

    fn unit_mean(&self, j: usize) -> Estimate {
        self.over_count(Layout(self.columns()).sum(j))
    }

    fn unit_square(&self, j: usize) -> Estimate {
        each(
            self.over_count(Layout(self.columns()).product(j, j)),
            |square| 0.5 + square,
        )
    }

    /// A noisy sum over the noisy count: a quotient with a positive divisor is extreme at the ends of both.
    fn over_count(&self, at: usize) -> Estimate {
        let (sum, count) = (self.sums[at], self.sums[0]);
        let ends = [-1.0, 1.0].map(|side| (count + side * self.count_half_width).max(1.0));
        let of = |sum: f64, fold: fn(f64, f64) -> f64| fold(sum / ends[0], sum / ends[1]);
        Estimate {
            answer: sum / self.count(),
            low: of(sum - self.half_width, f64::min),
            high: of(sum + self.half_width, f64::max),
        }
    }
}

/// A function that does not fall, of the answer and of both ends.
fn each(estimate: Estimate, rising: impl Fn(f64) -> f64) -> Estimate {
    Estimate {
        answer: rising(estimate.answer),
        low: rising(estimate.low),
        high: rising(estimate.high),
    }
}

/// The product of two intervals; of one with itself if they are the `same`, whose square is not negative.
fn times(a: Estimate, b: Estimate, same: bool) -> Estimate {
    let ends = [
        a.low * b.low,
        a.low * b.high,
        a.high * b.low,
        a.high * b.high,
    ];
    let low = ends.into_iter().fold(f64::INFINITY, f64::min);
    Estimate {
        answer: a.answer * b.answer,
        low: if same { low.max(0.0) } else { low },
        high: ends.into_iter().fold(f64::NEG_INFINITY, f64::max),
    }
}

#[cfg(test)]
mod tests {
    use crate::additive::Noise;
    use crate::doubt::{confidence, scale, seed};
    use crate::{Bounds, Contribution, Covariance};
    use whit_core::{AddRemove, ReplaceOne};
    use whit_testkit::Seeded;

    #[test]
    fn answers_are_near_and_covered() {
        let rows: Vec<[f64; 2]> = (0..3000)
            .map(|i| [f64::from(i % 10), f64::from(i % 10 * 2 + i % 3)])
            .collect();
        let columns = || {
            vec![
                Bounds::new(0.0, 10.0).expect("a range"),
                Bounds::new(0.0, 40.0).expect("a range"),
            ]
        };
        let (added, replaced) = (
            Covariance::<AddRemove>::new(columns(), Contribution::Row).expect("columns"),
            Covariance::<ReplaceOne>::new(columns(), Contribution::Row).expect("columns"),
        );
        let noise = Noise::Gaussian(scale(10, 1));
        let (noisy_added, noisy_replaced) = (
            added.with_noise(&noise).expect("in range"),
            replaced.with_noise(&noise).expect("in range"),
        );
        let mut entropy = Seeded::new(seed(643));
        // var(i mod 10) = 8.25; cov = 2 · 8.25; the third column is independent of the first.
        let truths = [(0, 0, 8.25), (0, 1, 16.5), (1, 1, 33.0 + 2.0 / 3.0)];
        let mut covered = [0_u32; 3];
        for _ in 0..300 {
            let one = noisy_added.release(added.aggregate(&rows), confidence(0.95), &mut entropy);
            let other =
                noisy_replaced.release(replaced.aggregate(&rows), confidence(0.95), &mut entropy);
            for moments in [
                one.expect("entropy").into_value(),
                other.expect("entropy").into_value(),
            ] {
                let mean = moments.mean(0).expect("two columns");
                assert!((mean.answer - 4.5).abs() < 0.2);
                for (covered, (j, k, truth)) in covered.iter_mut().zip(truths) {
                    let found = moments.covariance(j, k).expect("two columns");
                    assert!((found.answer - truth).abs() < 10.0, "{j} {k}: {found:?}");
                    assert_eq!(Some(found), moments.covariance(k, j));
                    *covered += u32::from(found.low <= truth && truth <= found.high);
                }
            }
        }
        assert!(
            covered.iter().all(|&covered| covered > 570),
            "{covered:?} of 600"
        );
    }

    #[test]
    fn odd_data_is_answered() {
        let columns = vec![Bounds::new(-1.0, 1.0).expect("a range"); 2];
        let of = Covariance::<AddRemove>::new(columns, Contribution::Row).expect("columns");
        let noisy = of
            .with_noise(&Noise::Laplace(scale(1, 1)))
            .expect("in range");
        for rows in [
            vec![],
            vec![vec![]],
            vec![vec![f64::NAN, 1.0]],
            vec![vec![1.0, f64::INFINITY, 3.0]],
        ] {
            let release =
                noisy.release(of.aggregate(rows), confidence(0.95), &mut Seeded::new(644));
            let moments = release.expect("entropy").into_value();
            let found = moments.covariance(0, 0).expect("two columns");
            assert!((0.0..=1.0).contains(&found.answer) && found.low <= found.high);
        }
        let none = Covariance::<AddRemove>::new(vec![], Contribution::Row);
        assert!(none.is_err());
    }

    #[test]
    fn columns_that_are_not_there_have_no_moments() {
        let columns = vec![Bounds::new(-1.0, 1.0).expect("a range"); 2];
        let of = Covariance::<AddRemove>::new(columns, Contribution::Row).expect("columns");
        let noisy = of
            .with_noise(&Noise::Laplace(scale(1, 1)))
            .expect("in range");
        let release = noisy.release(
            of.aggregate([[0.5, 0.5]]),
            confidence(0.95),
            &mut Seeded::new(650),
        );
        let moments = release.expect("entropy").into_value();
        assert!(moments.mean(1).is_some() && moments.covariance(1, 0).is_some());
        assert_eq!((moments.mean(2), moments.mean(usize::MAX)), (None, None));
        for (j, k) in [(0, 2), (2, 0), (2, 2), (usize::MAX, usize::MAX)] {
            assert_eq!(moments.covariance(j, k), None);
        }
    }
}
