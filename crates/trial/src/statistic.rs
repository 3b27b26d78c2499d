//! Whole statistics: rows in, an answer with error bars out. What a row can move is the statistic's own business.

use std::rc::Rc;

use whit_core::{AddRemove, Confidence, Relation, ReplaceOne};
use whit_mechanism::{BoundedSum, Bounds, Contribution, Count, CountDistinct, Histogram, Noise};

use crate::case::{Case, Claim, EPSILONS, both, fine_laplace_chances, laplace_chances, scale};
use crate::gaussian::{discrete_chances, discrete_loss};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for epsilon in EPSILONS {
        cases.push(count(epsilon));
        cases.push(gaussian_count(epsilon));
        cases.push(rows_of_a_unit(epsilon));
        cases.push(count_distinct(epsilon));
        cases.push(sum_of::<AddRemove>(
            "bounded sum, add/remove",
            epsilon,
            (&[7.0, 25.0], &[7.0]),
            10.0,
        ));
        cases.push(sum_of::<ReplaceOne>(
            "bounded sum, replace-one",
            epsilon,
            (&[7.0, 25.0], &[7.0, -3.0]),
            10.0,
        ));
        cases.push(histogram(epsilon));
    }
    cases
}

fn confidence() -> Confidence {
    Confidence::new(0.95).expect("a share")
}

/// Three rows against two.
fn count(epsilon: f64) -> Case {
    Case::new(
        "count",
        format!("epsilon {epsilon}"),
        Claim::loss(epsilon),
        move |share| {
            let count = Count::<AddRemove>::new(Contribution::Row);
            let noisy = count.with_noise(&Noise::Laplace(scale(1.0 / epsilon, share)));
            let parts = Rc::new((count, noisy));
            both(3_u64, 2, move |rows, coins| {
                let (count, noisy) = &*parts;
                let release = noisy.release(count.aggregate(*rows), confidence(), coins);
                release.expect("the stream is open").value().answer >= 3.0
            })
        },
    )
    .with_chances(move |share| laplace_chances(epsilon / share.value(), 1))
}

/// The same with Gaussian noise of scale `1/μ`.
fn gaussian_count(mu: f64) -> Case {
    let claim = Claim::loss(discrete_loss(mu, 1));
    Case::new(
        "count with Gaussian noise",
        format!("mu {mu}"),
        claim,
        move |share| {
            let count = Count::<AddRemove>::new(Contribution::Row);
            let noisy = count.with_noise(&Noise::Gaussian(scale(1.0 / mu, share)));
            let parts = Rc::new((count, noisy));
            both(3_u64, 2, move |rows, coins| {
                let (count, noisy) = &*parts;
                let release = noisy.release(count.aggregate(*rows), confidence(), coins);
                release.expect("the stream is open").value().answer >= 3.0
            })
        },
    )
    .with_chances(move |share| discrete_chances(mu / share.value(), 1))
}

/// A unit with five rows, of which all are counted.
fn rows_of_a_unit(epsilon: f64) -> Case {
    let name = format!("epsilon {epsilon}, five rows of a unit");
    Case::new("count", name, Claim::loss(epsilon), move |share| {
        let five = Contribution::rows_per_unit(5).expect("few rows");
        let count = Count::<AddRemove>::new(five);
        let noisy = count.with_noise(&Noise::Laplace(scale(5.0 / epsilon, share)));
        let parts = Rc::new((count, noisy));
        both(12_u64, 7, move |rows, coins| {
            let (count, noisy) = &*parts;
            let release = noisy.release(count.aggregate(*rows), confidence(), coins);
            release.expect("the stream is open").value().answer >= 12.0
        })
    })
    .with_chances(move |share| laplace_chances(epsilon / share.value() / 5.0, 5))
}

/// A unit that nobody else is like.
fn count_distinct(epsilon: f64) -> Case {
    let name = format!("epsilon {epsilon}");
    Case::new("count distinct", name, Claim::loss(epsilon), move |share| {
        let count = CountDistinct::<AddRemove>::units();
        let noisy = count.with_noise(&Noise::Laplace(scale(1.0 / epsilon, share)));
        let parts = Rc::new((count, noisy));
        both(
            vec!["a", "b", "a", "c"],
            vec!["a", "b", "a"],
            move |rows, coins| {
                let (count, noisy) = &*parts;
                let release = noisy.release(count.aggregate_units(rows), confidence(), coins);
                release.expect("the stream is open").value().answer >= 3.0
            },
        )
    })
    .with_chances(move |share| laplace_chances(epsilon / share.value(), 1))
}

/// Values beyond the bounds of `[0, 10]` on both sides: what a clamp leaves moves the sum by ten.
fn sum_of<R: Relation>(
    family: &'static str,
    epsilon: f64,
    neighbours: (&'static [f64], &'static [f64]),
    moves: f64,
) -> Case {
    Case::new(
        family,
        format!("epsilon {epsilon}"),
        Claim::loss(epsilon),
        move |share| {
            let bounds = Bounds::new(0.0, 10.0).expect("an interval");
            let sum = BoundedSum::<R>::new(bounds, Contribution::Row);
            let noisy = sum.with_noise(&Noise::Laplace(scale(moves / epsilon, share)));
            let parts = Rc::new((sum, noisy.expect("a usual scale")));
            both(neighbours.0, neighbours.1, move |rows, coins| {
                let (sum, noisy) = &*parts;
                let rows = sum.aggregate(rows.iter().copied());
                let release = noisy.release(rows, confidence(), coins);
                release.expect("the stream is open").value().answer >= 17.0
            })
        },
    )
    .with_chances(move |share| fine_laplace_chances(epsilon / share.value()))
}

/// The third of four bins has one row more.
fn histogram(epsilon: f64) -> Case {
    let name = format!("epsilon {epsilon}, 4 bins");
    Case::new("histogram", name, Claim::loss(epsilon), move |share| {
        let bounds = Bounds::new(0.0, 4.0).expect("an interval");
        let histogram = Histogram::<AddRemove>::new(bounds, 4, Contribution::Row);
        let histogram = histogram.expect("four bins");
        let noisy = histogram.with_noise(&Noise::Laplace(scale(1.0 / epsilon, share)));
        let parts = Rc::new((histogram, noisy));
        both(&[0.5, 2.5][..], &[0.5][..], move |rows, coins| {
            let (histogram, noisy) = &*parts;
            let counts = histogram.aggregate(rows.iter().copied());
            let release = noisy.release(counts, confidence(), coins);
            release.expect("the stream is open").value()[2].answer >= 1.0
        })
    })
    .with_chances(move |share| laplace_chances(epsilon / share.value(), 1))
}
