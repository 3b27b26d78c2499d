//! Quantiles, and ranges.

use std::rc::Rc;

use whit_core::{AddRemove, Confidence, Delta, Epsilon, Probability, Ratio, ReplaceOne};
use whit_mechanism::{
    ApproximateBounds, Bounds, Contribution, Grid, GridQuantile, InterquartileRange,
    JointQuantiles, LogBins, ProposeTestRelease, Quantile, Quantiles, Success, Threshold,
};

use crate::case::{Case, Claim, Cost, Share, both, fine_laplace_chances, laplace_chances, scale};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for epsilon in [1.0, 2.0, 3.0] {
        cases.push(median(epsilon));
        cases.push(median_on_a_grid(epsilon));
        cases.push(many(epsilon));
        cases.push(joint(epsilon));
    }
    for epsilon in [1.0, 2.0] {
        cases.push(approximate_bounds(epsilon));
    }
    cases.push(interquartile_range());
    cases
}

/// The epsilon whose noise has this share of what it should have.
pub(crate) fn inflated(epsilon: f64, share: Share) -> Epsilon {
    Epsilon::new(epsilon / share.value()).expect("not negative")
}

fn half() -> Probability {
    Probability::new(Ratio::power_of_two(-1)).expect("below one")
}

/// A fifth of the range, below a row. Another row at its lower end makes it the place of the median, and all above it wrong by one; without that row all are wrong by half.
const SLIVER: f64 = 0.2;

/// The share of the sliver goes from `v` to `v/(v + (1-v) e^-ε)`.
pub fn sliver_chances(epsilon: f64) -> [f64; 2] {
    let likely = SLIVER / (SLIVER + (1.0 - SLIVER) * libm::exp(-epsilon));
    [likely, SLIVER]
}

fn sliver(epsilon: f64) -> Claim {
    let [likely, unlikely] = sliver_chances(epsilon);
    // The grid is fine, and a step of it more or less changes the sliver by a part in a million or less.
    Claim::of(likely, unlikely, 1e-4)
}

fn median(epsilon: f64) -> Case {
    let name = format!("epsilon {epsilon}");
    let claim = sliver(epsilon);
    let case = Case::new("median", name, claim, move |share| {
        let bounds = Bounds::new(0.0, 1.0).expect("an interval");
        let epsilon = inflated(epsilon, share);
        let median = Quantile::<AddRemove>::median(bounds, Contribution::Row, epsilon);
        let median = Rc::new(median);
        let (with, without) = (vec![SLIVER, f64::NEG_INFINITY], vec![SLIVER]);
        both(with, without, move |rows, coins| {
            let rows = median.aggregate(rows.iter().copied());
            let release = median.release(rows, coins);
            *release.expect("the stream is open").value() < SLIVER
        })
    });
    case.with_chances(move |share| sliver_chances(epsilon / share.value()))
        .costing(Cost::Statistic)
}

/// The same for one quantile of the joint mechanism, which numbers ties: the row itself may lie on either side.
fn joint(epsilon: f64) -> Case {
    let name = format!("epsilon {epsilon}, one share");
    let claim = sliver(epsilon);
    let case = Case::new("joint quantiles", name, claim, move |share| {
        let bounds = Bounds::new(0.0, 1.0).expect("an interval");
        let epsilon = inflated(epsilon, share);
        let joint = JointQuantiles::<AddRemove>::new(&[half()], bounds, Contribution::Row, epsilon);
        let joint = Rc::new(joint.expect("one share"));
        let (with, without) = (vec![SLIVER, f64::NEG_INFINITY], vec![SLIVER]);
        both(with, without, move |rows, coins| {
            let rows = joint.aggregate(rows.iter().copied());
            let release = joint.release(rows, coins);
            release.expect("the stream is open").value()[0] < SLIVER
        })
    });
    case.with_chances(move |share| sliver_chances(epsilon / share.value()))
        .costing(Cost::Statistic)
}

/// Two points and a row that is replaced: the median moves from one to the other.
fn median_on_a_grid(epsilon: f64) -> Case {
    let name = format!("epsilon {epsilon}, 2 points");
    let claim = Claim::loss(epsilon);
    let case = Case::new("median on a grid", name, claim, move |share| {
        let bounds = Bounds::on_grid(0.0, 1.0, Grid::new(0).expect("whole numbers"));
        let bounds = bounds.expect("an interval");
        let epsilon = inflated(epsilon, share);
        let median = GridQuantile::<ReplaceOne>::new(&half(), bounds, Contribution::Row, epsilon);
        let median = Rc::new(median.expect("a short grid"));
        both([0.0, 1.0], [0.0, -7.0], move |rows, coins| {
            let release = median.release(median.aggregate(*rows), coins);
            *release.expect("the stream is open").value() == 1.0
        })
    });
    // As good as the other point, or worse by what a row can do to it.
    case.with_chances(move |share| fine_laplace_chances(epsilon / share.value()))
        .costing(Cost::Statistic)
}

/// Two shares, of which the second is found first, by half of the budget: so much is claimed of it.
fn many(level: f64) -> Case {
    let name = format!("epsilon {level} for the first level");
    let claim = sliver(level);
    let case = Case::new("many quantiles", name, claim, move |share| {
        let bounds = Bounds::new(0.0, 1.0).expect("an interval");
        let quarter = Probability::new(Ratio::power_of_two(-2)).expect("below one");
        let epsilon = inflated(2.0 * level, share);
        let both_shares = [quarter, half()];
        let quantiles =
            Quantiles::<AddRemove>::new(&both_shares, bounds, Contribution::Row, epsilon);
        let quantiles = Rc::new(quantiles.expect("they grow"));
        let (with, without) = (vec![SLIVER, f64::NEG_INFINITY], vec![SLIVER]);
        both(with, without, move |rows, coins| {
            let rows = quantiles.aggregate(rows.iter().copied());
            let release = quantiles.release(rows, coins);
            release.expect("the stream is open").value()[1] < SLIVER
        })
    });
    case.with_chances(move |share| sliver_chances(level / share.value()))
        .costing(Cost::Statistic)
}

/// A row that changes its sign: one of two bins loses it and the other gains it. At a threshold of zero the first passes and the other does not.
fn approximate_bounds(epsilon: f64) -> Case {
    let name = format!("epsilon {epsilon}, 2 bins");
    let claim = Claim::loss(epsilon);
    let case = Case::new("approximate bounds", name, claim, move |share| {
        let bins = LogBins::new(1.0, 1).expect("two bins");
        let search = ApproximateBounds::<ReplaceOne>::new(bins, Contribution::Row);
        let seldom = Confidence::new(1e-3).expect("a share");
        let noise = scale(2.0 / epsilon, share);
        let noisy = search.with_noise(noise, Threshold::Discrete, Success::exactly(seldom));
        let parts = Rc::new((search, noisy));
        both(0.5, -0.5, move |row, coins| {
            let (search, noisy) = &*parts;
            let release = noisy.release(search.aggregate([*row]), coins);
            let release = release.expect("the stream is open");
            let found = release.value().map(|range| (range.lower, range.upper));
            found == Some((0.0, 1.0))
        })
    });
    let both_bins = move |share: Share| laplace_chances(epsilon / share.value() / 2.0, 1);
    case.with_chances(move |share| both_bins(share).map(|one| one * one))
        .costing(Cost::Statistic)
}

/// Nine equal rows, and one of them moved: one of the two tests tells the narrowest interval, and is `ε`-DP by itself.
fn interquartile_range() -> Case {
    let epsilon = 1.0;
    let name = format!("epsilon {epsilon} for one test");
    let claim = Claim::loss(epsilon);
    let case = Case::new("interquartile range", name, claim, move |share| {
        let bounds = Bounds::new(0.0, 16.0).expect("an interval");
        let delta = Delta::new(0.05).expect("below one");
        let test = ProposeTestRelease::new(inflated(epsilon, share), delta);
        let range = InterquartileRange::new(bounds, test.expect("a usual epsilon"));
        let (range, step) = (Rc::new(range), bounds.grid().value(1));
        let mut moved = [7.0; 9];
        moved[8] = 9.0;
        both([7.0; 9], moved, move |rows, coins| {
            let release = range.release(range.aggregate(*rows), coins);
            let release = release.expect("the stream is open");
            release.value().is_some_and(|spread| spread.high == step)
        })
    });
    case.costing(Cost::Statistic)
}
