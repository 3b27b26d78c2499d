//! # From noisy sums to a variance and a standard deviation
//! **Definition.** With the noisy parts of [`BoundedVariance`](crate::BoundedVariance): `Σc²/n - (Σc/n)²`, clamped to `[0, w²/4]`; `n` is at least
//!   one. Its root is the standard deviation.
//! **Guarantee.** That of the parts: all of this is post-processing.
//! **Error.** If every part is within its half-width, the interval holds the truth: quotients by a positive interval are extreme at its
//!   ends, the smallest square of an interval is at its point nearest to zero, and the root is monotone.

use whit_core::Confidence;

use crate::bounded_variance::Squares;
use crate::{Bounds, Estimate};

/// For each of so many intervals that must all hold: an equal share of what may miss.
pub(crate) fn each_of(parts: u32, all: Confidence) -> Confidence {
    let each = 1.0 - (1.0 - all.value()) / f64::from(parts);
    // One step up covers the rounding; just below one is the most that a confidence can be.
    Confidence::new(each.next_up().min(1.0_f64.next_down())).expect("between the given one and one")
}

/// Post-processing: from noisy parts to a variance. All in halves of the range, where `c/(w/2)` is in `[-1, 1]`.
pub(crate) fn variance(
    bounds: Bounds,
    sum: Estimate,
    squares: Estimate,
    count: Estimate,
) -> Estimate {
    let width = bounds.width() as f64;
    let half = 0.5 * bounds.grid().value(i128::from(bounds.width()));
    let coarse = Squares::new(bounds);
    // w²/2^s, of which Q is the floor.
    let largest = libm::ldexp(width * width, -(coarse.shift as i32));
    let mean = |sum: f64, count: f64| (sum / (count.max(1.0) * width)).clamp(-1.0, 1.0);
    let mean_square = |squares: f64, count: f64| {
        (0.5 * (coarse.largest as f64 + squares / count.max(1.0)) / largest).clamp(0.0, 1.0)
    };
    // A quotient with a positive divisor is extreme at the ends of both.
    let ends = |part: Estimate, value: &dyn Fn(f64, f64) -> f64| {
        let pairs = [
            (part.low, count.low),
            (part.low, count.high),
            (part.high, count.low),
            (part.high, count.high),
        ];
        let values = pairs.map(|(part, count)| value(part, count));
        let low = values.into_iter().fold(f64::INFINITY, f64::min);
        (low, values.into_iter().fold(f64::NEG_INFINITY, f64::max))
    };
    let (mean_low, mean_high) = ends(sum, &mean);
    let (square_low, square_high) = ends(squares, &mean_square);
    let mean_nearest = 0_f64.clamp(mean_low, mean_high);
    let mean_furthest = mean_low.abs().max(mean_high.abs());
    let scaled = |share: f64| share.clamp(0.0, 1.0) * half * half;
    let mean = mean(sum.answer, count.answer);
    Estimate {
        answer: scaled(mean_square(squares.answer, count.answer) - mean * mean),
        low: scaled(square_low - mean_furthest * mean_furthest),
        // The floor took less than one unit from each square.
        high: scaled(square_high + 1.0 / largest - mean_nearest * mean_nearest),
    }
}

/// Post-processing: the standard deviation of a variance.
pub fn standard_deviation(variance: Estimate) -> Estimate {
    Estimate {
        answer: variance.answer.max(0.0).sqrt(),
        low: variance.low.max(0.0).sqrt(),
        high: variance.high.max(0.0).sqrt(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::additive::Noise;
    use crate::doubt::{confidence, scale, seed};
    use crate::{BoundedVariance, Contribution, VarianceNoise};
    use whit_core::{AddRemove, Relation, ReplaceOne};
    use whit_testkit::Seeded;

    fn of<R: Relation>(range: (f64, f64), contribution: Contribution) -> BoundedVariance<R> {
        BoundedVariance::new(
            Bounds::new(range.0, range.1).expect("a range"),
            contribution,
        )
    }

    fn noise(sum: u128, squares: u128, count: Option<u128>) -> VarianceNoise {
        let laplace = |b| Noise::Laplace(scale(b, 1));
        VarianceNoise {
            sum: laplace(sum),
            squares: laplace(squares),
            count: count.map(laplace),
        }
    }

    #[test]
    fn answers_are_near_and_covered() {
        let mut entropy = Seeded::new(seed(602));
        let rows: Vec<f64> = (0..2050).map(|i| f64::from(i % 41) - 40.0).collect();
        let truth = 140.0;
        let (secret, public) = (
            of::<AddRemove>((-100.0, 50.0), Contribution::Row),
            of::<ReplaceOne>((-100.0, 50.0), Contribution::Row),
        );
        // ε = 1 for each: three thirds, or two halves.
        let noisy_secret = secret
            .with_noise(&noise(225, 8438, Some(3)))
            .expect("in range");
        let noisy_public = public
            .with_noise(&noise(300, 11_250, None))
            .expect("in range");
        let mut covered = [0; 2];
        for _ in 0..1000 {
            let parts = secret.aggregate(rows.iter().copied());
            let release = noisy_secret.release(parts, confidence(0.95), &mut entropy);
            let one = *release.expect("entropy").value();
            let parts = public.aggregate(rows.iter().copied());
            let release = noisy_public.release(parts, confidence(0.95), &mut entropy);
            let other = *release.expect("entropy").value();
            for (covered, estimate) in covered.iter_mut().zip([one, other]) {
                assert!((estimate.answer - truth).abs() < 300.0, "{estimate:?}");
                *covered += u32::from(estimate.low <= truth && truth <= estimate.high);
                let deviation = standard_deviation(estimate);
                assert!(deviation.low <= deviation.answer && deviation.answer <= deviation.high);
            }
        }
        assert!(
            covered.iter().all(|&covered| covered > 950),
            "{covered:?} of 1000"
        );
    }

    /// With noise that is almost never there, the fixed point gives the variance of the clamped values.
    #[test]
    fn without_noise_it_is_the_variance() {
        let mut entropy = Seeded::new(603);
        let tiny = Noise::Laplace(scale(1, 1 << 60));
        let all = VarianceNoise {
            sum: tiny.clone(),
            squares: tiny.clone(),
            count: Some(Noise::Laplace(scale(1, 64))),
        };
        for (rows, truth) in [
            (vec![0.0, 2.0, 4.0], 8.0 / 3.0),
            (vec![5.0; 7], 0.0),
            (vec![0.0, 10.0], 25.0),
            (vec![-1e9, f64::INFINITY, f64::NAN], 25.0),
            (vec![3.0], 0.0),
            (vec![], 0.0),
        ] {
            let variance = of::<AddRemove>((0.0, 10.0), Contribution::Row);
            let noisy = variance.with_noise(&all).expect("in range");
            let empty = rows.is_empty();
            let release = noisy.release(variance.aggregate(rows), confidence(0.95), &mut entropy);
            let answer = release.expect("entropy").value().answer;
            assert!((0.0..=25.0).contains(&answer));
            assert!(empty || (answer - truth).abs() < 1e-9, "{answer} {truth}");
        }
    }
}
