//! Statistics of several sums, and streams of them.

use std::rc::Rc;

use whit_core::{AddRemove, Confidence, Ratio, ReplaceOne, Secret, Sensitivity};
use whit_mechanism::contingency_table::{Column, Unknown};
use whit_mechanism::{
    BoundedMean, BoundedVariance, Bounds, Contribution, CountDistinct, Covariance, Marginals,
    Noise, Stream, VarianceNoise,
};

use crate::case::{
    Case, Claim, Cost, both, fine_laplace_chances, laplace_chances, scale, upper_tail,
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for epsilon in [1.0, 2.0] {
        cases.push(mean_added(epsilon + 1.0));
        cases.push(mean_replaced(epsilon));
        cases.push(variance(epsilon));
        cases.push(covariance(epsilon));
        cases.push(marginals(epsilon));
        cases.push(distinct_values(epsilon));
        cases.push(tree(epsilon));
    }
    for mu in [0.5, 1.0, 2.0] {
        cases.push(square_root(mu));
    }
    cases
}

fn confidence() -> Confidence {
    Confidence::new(0.95).expect("a share")
}

/// Neither row nor mean leaves `[0, 2]`. A row at its upper end adds one width to the sum above the lower end and nothing to the sum below the upper one. The event: the
/// answer is the upper end, which is to say that the second sum is not above zero and the first at least a width above it. With noise of one width over epsilon
/// on both that has probability `3/8` with the row. Without it, integrate over the second sum `-t`: below one width the first has to be `1 - t`, and beyond it anything above
/// `1 - t < 0`. Together `e^-ε (3/8 + ε/4)`, and the rest of epsilon is lost to rows that are not counted.
pub fn mean_chances(epsilon: f64) -> [f64; 2] {
    [0.375, libm::exp(-epsilon) * (0.375 + epsilon / 4.0)]
}

fn mean_added(epsilon: f64) -> Case {
    let name = format!("epsilon {epsilon}");
    // The grid is fine.
    let [likely, unlikely] = mean_chances(epsilon);
    let claim = Claim::of(likely, unlikely, 1e-5);
    let case = Case::new("bounded mean, add/remove", name, claim, move |share| {
        let bounds = Bounds::new(0.0, 2.0).expect("an interval");
        let mean = BoundedMean::<AddRemove>::new(bounds, Contribution::Row);
        let noisy = mean.with_noise(&Noise::Laplace(scale(2.0 / epsilon, share)));
        let parts = Rc::new((mean, noisy.expect("a usual scale")));
        both(&[2.0][..], &[][..], move |rows, coins| {
            let (mean, noisy) = &*parts;
            let sums = mean.aggregate(rows.iter().copied());
            let release = noisy.release(sums, confidence(), coins);
            release.expect("the stream is open").value().answer >= 2.0
        })
    });
    case.with_chances(move |share| mean_chances(epsilon / share.value()))
        .costing(Cost::Statistic)
}

/// Two rows, one of which goes from one end to the other; their number is public.
fn mean_replaced(epsilon: f64) -> Case {
    let name = format!("epsilon {epsilon}");
    let claim = Claim::loss(epsilon + 1e-5);
    Case::new("bounded mean, replace-one", name, claim, move |share| {
        let bounds = Bounds::new(0.0, 2.0).expect("an interval");
        let mean = BoundedMean::<ReplaceOne>::new(bounds, Contribution::Row);
        let noisy = mean.with_noise(&Noise::Laplace(scale(2.0 / epsilon, share)));
        let parts = Rc::new((mean, noisy.expect("a usual scale")));
        both([2.0, 1.0], [0.0, 1.0], move |rows, coins| {
            let (mean, noisy) = &*parts;
            let release = noisy.release(mean.aggregate(*rows), confidence(), coins);
            release.expect("the stream is open").value().answer >= 1.5
        })
    })
    .with_chances(move |share| fine_laplace_chances(epsilon / share.value()))
}

/// Many rows, half of them in the middle of `[-1, 1]` and a quarter at each end; one goes from an end to the middle. Squares have nine tenths of epsilon, and that is what shows: given the
/// noise on the sum, the squares have to be beyond both worlds' values. The square of the mean moves with the row as well, by so little of the noise that less than a thousandth is lost or won.
fn variance(epsilon: f64) -> Case {
    let name = format!("epsilon {epsilon}, 2000 rows");
    let claim = Claim::loss(0.9 * epsilon + 1e-3);
    let case = Case::new("bounded variance", name, claim, move |share| {
        let bounds = Bounds::new(-1.0, 1.0).expect("an interval");
        let variance = BoundedVariance::<ReplaceOne>::new(bounds, Contribution::Row);
        let noisy = variance.with_noise(&VarianceNoise {
            sum: Noise::Laplace(scale(2.0 / (0.1 * epsilon), share)),
            squares: Noise::Laplace(scale(1.0 / (0.9 * epsilon), share)),
            count: None,
        });
        let parts = Rc::new((variance, noisy.expect("a usual scale")));
        let ends: Vec<f64> = [1.0, 0.0, -1.0, 0.0].repeat(500);
        let mut moved = ends.clone();
        moved[0] = 0.0;
        both(ends, moved, move |rows, coins| {
            let (variance, noisy) = &*parts;
            let sums = variance.aggregate(rows.iter().copied());
            let release = noisy.release(sums, confidence(), coins);
            release.expect("the stream is open").value().answer >= 0.5
        })
    });
    case.costing(Cost::Statistic)
}

/// A row at the upper end of `[-1, 1]`, against none: the count is one or more, and the sum is at least as large as it. Count and sum have four fifths of what a row
/// moves, and lose that; squares, less a half, have the rest, and are not looked at. With the row one noise is above zero and the other at least as large, with probability `1/8`.
fn covariance(epsilon: f64) -> Case {
    let name = format!("epsilon {epsilon}, one column");
    let claim = Claim::loss(0.8 * epsilon + 1e-5);
    let case = Case::new("covariance", name, claim, move |share| {
        let bounds = Bounds::new(-1.0, 1.0).expect("an interval");
        let of = Covariance::<AddRemove>::new(vec![bounds], Contribution::Row);
        let of = of.expect("a column");
        let noisy = of.with_noise(&Noise::Laplace(scale(2.5 / epsilon, share)));
        let parts = Rc::new((of, noisy.expect("a usual scale")));
        both(&[[1.0]][..], &[][..], move |rows, coins| {
            let (of, noisy) = &*parts;
            let release = noisy.release(of.aggregate(*rows), confidence(), coins);
            let release = release.expect("the stream is open");
            let moments = release.value();
            let mean = moments.mean(0).expect("a column").answer;
            moments.count() > 1.0 && mean >= 1.0
        })
    });
    case.with_chances(move |share| [0.125, 0.125 * libm::exp(-0.8 * epsilon / share.value())])
        .costing(Cost::Statistic)
}

/// Three counts, each with a third of epsilon, that are all at or above what they are with the row.
fn three_times(epsilon: f64) -> [f64; 2] {
    laplace_chances(epsilon / 3.0, 1).map(|one| one * one * one)
}

/// A row that shows in three tables at once.
fn marginals(epsilon: f64) -> Case {
    let name = format!("epsilon {epsilon}, 3 tables");
    let claim = Claim::loss(epsilon);
    let case = Case::new("marginals", name, claim, move |share| {
        let column =
            |names: [&str; 2]| Column::new(names.map(String::from).to_vec(), Unknown::Drop);
        let columns = [column(["f", "m"]), column(["no", "yes"])];
        let columns = columns
            .map(|column| column.expect("two categories"))
            .to_vec();
        let sets: [&[usize]; 3] = [&[0], &[1], &[0, 1]];
        let of = Marginals::<AddRemove>::new(columns, &sets, Contribution::Row);
        let of = of.expect("three tables");
        let noisy = of.with_noise(&Noise::Laplace(scale(3.0 / epsilon, share)));
        let parts = Rc::new((of, noisy));
        both(&[["f", "yes"]][..], &[][..], move |rows, coins| {
            let (of, noisy) = &*parts;
            let release = noisy.release(of.aggregate(*rows), confidence(), coins);
            let release = release.expect("the stream is open");
            let cells: [&[usize]; 3] = [&[0], &[1], &[0, 1]];
            let mut tables = release.value().iter().zip(cells);
            tables.all(|(table, cell)| table.cell(cell).is_some_and(|cell| cell.answer >= 1.0))
        })
    });
    case.with_chances(move |share| three_times(epsilon / share.value()))
        .costing(Cost::Statistic)
}

/// One unit with three values that nobody else has, of which all are counted.
fn distinct_values(epsilon: f64) -> Case {
    let name = format!("epsilon {epsilon}, three values of a unit");
    let claim = Claim::loss(epsilon);
    Case::new("count distinct values", name, claim, move |share| {
        let count = CountDistinct::<AddRemove>::values(3).expect("three values");
        let noisy = count.with_noise(&Noise::Laplace(scale(3.0 / epsilon, share)));
        let parts = Rc::new((count, noisy));
        let rows: Vec<(u8, u8)> = vec![(1, 1), (2, 7), (2, 8), (2, 9), (2, 9)];
        let without = rows[..1].to_vec();
        both(rows, without, move |rows, coins| {
            let (count, noisy) = &*parts;
            let counted = count.aggregate(rows.iter().copied());
            let release = noisy.release(counted, confidence(), coins);
            release.expect("the stream is open").value().answer >= 4.0
        })
    })
    .with_chances(move |share| laplace_chances(epsilon / share.value() / 3.0, 3))
    .costing(Cost::Statistic)
}

fn stream() -> Stream<AddRemove> {
    let change = Sensitivity::new(Ratio::one());
    Stream::new(4, 1, change).expect("four steps")
}

/// The first of four numbers is in three blocks, and the answers at steps 1, 2 and 4 show each of them.
fn tree(epsilon: f64) -> Case {
    let name = format!("epsilon {epsilon}, 4 steps");
    let claim = Claim::loss(epsilon);
    let case = Case::new("continual count by a tree", name, claim, move |share| {
        let noise = Noise::Laplace(scale(3.0 / epsilon, share));
        let stream = Rc::new(stream());
        both(1_i64, 0, move |first, coins| {
            let mut counter = stream.tree(&noise);
            let answers = [*first, 0, 0, 0].map(|x| {
                let answer = counter.step(Secret::new(x), coins);
                answer.expect("the stream is open").into_value()
            });
            answers[0] >= 1.0 && answers[1] >= 1.0 && answers[3] >= 1.0
        })
    });
    case.with_chances(move |share| three_times(epsilon / share.value()))
        .costing(Cost::Statistic)
}

/// The root's coefficients.
const ROOT: [f64; 4] = [1.0, 0.5, 0.375, 0.3125];

/// Released is `Rx + z`, and the answers are `A R^-1` times that; so `R` times their differences gives it back. The first number moves it by the first column of
/// `R`, and the best test is linear along that.
fn square_root(mu: f64) -> Case {
    let norm = ROOT.iter().map(|r| r * r).sum::<f64>().sqrt();
    // The library rounds the coefficients, far below this.
    let name = format!("mu {mu}, 4 steps");
    let claim = Claim::of(upper_tail(-mu / 2.0), upper_tail(mu / 2.0), 1e-4);
    let case = Case::new("continual count by a root", name, claim, move |share| {
        let noise = Noise::Gaussian(scale(norm / mu, share));
        let stream = Rc::new(stream());
        both(1_i64, 0, move |first, coins| {
            let mut counter = stream.square_root(&noise).expect("four steps");
            let mut before = 0.0;
            let differences = [*first, 0, 0, 0].map(|x| {
                let answer = counter.step(Secret::new(x), coins);
                let answer = answer.expect("the stream is open").into_value();
                let difference = answer - before;
                before = answer;
                difference
            });
            let released =
                |at: usize| -> f64 { (0..=at).map(|k| ROOT[k] * differences[at - k]).sum() };
            let along: f64 = (0..4).map(|at| ROOT[at] * released(at)).sum();
            along >= 0.5 * norm * norm
        })
    });
    case.with_chances(move |share| [-0.5, 0.5].map(|half| upper_tail(half * mu / share.value())))
        .costing(Cost::Statistic)
}
