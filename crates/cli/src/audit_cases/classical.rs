//! Classical models, fitted to noisy sums. What is in an event is the model; the data are so large beside the noise that it shows one sum at a time.

use std::rc::Rc;

use whit::core::Secret;
use whit::{Delta, Epsilon};
use whit_learn::classical::{Budget, Classical, Interval, LinearRegressionPlan, NaiveBayesPlan};
use whit_learn::data::Dataset;
use whit_learn::{Payment, Uncharged};
use whit_trial::{Case, Claim, Cost, Draws, Share, Untried};

use super::untried;

pub(super) fn cases() -> Vec<Case> {
    vec![naive_bayes(), linear_regression()]
}

fn budget(epsilon: f64) -> Result<Budget, Untried> {
    let epsilon = Epsilon::new(epsilon).map_err(untried)?;
    Budget::new(epsilon, Delta::ZERO).map_err(untried)
}

fn interval() -> Result<Interval, Untried> {
    Interval::new(-1.0, 1.0).map_err(untried)
}

/// A fit of a plan to one of two data sets, and whether its model is in the event.
fn fits<Plan: Classical + 'static>(
    plan: Plan,
    data: [Option<Dataset>; 2],
    event: fn(&Plan::Model) -> bool,
) -> Result<Draws, Untried> {
    let plan = Rc::new(plan);
    let whole = |data: Option<Dataset>| data.ok_or_else(|| Untried::new("no such data"));
    let [likely, unlikely] = data.map(|data| whole(data).map(Secret::new));
    Ok(Draws::new(likely?, unlikely?, move |data, coins| {
        let payment = Payment::uncharged(&*plan, Uncharged);
        let fit = plan.on(data).map_err(untried)?;
        let model = fit.release(payment, coins).map_err(untried)?;
        Ok(event(model.value()))
    }))
}

/// A hundred examples of each of two classes, and one more of the first: its share is as large as the other's. With one feature an example moves the sums by 5/2, so that the difference of two counts has two Laplace
/// noises of scale `u` per row, for which `Pr[Z - Z' > 1] = e^-u (2 + u)/4`.
fn naive_bayes() -> Case {
    const EPSILON: f64 = 5.0;
    let chances = |share: Share| {
        let rate = EPSILON / share.value() / 2.5;
        [1.0 - (-rate).exp() * (2.0 + rate) / 4.0, 0.5]
    };
    let [likely, unlikely] = chances(Share::ALL);
    let claim = Claim::of(likely, unlikely, 1e-5);
    let name = format!("naive Bayes at epsilon {EPSILON}");
    Case::of("classical model", name, claim, Cost::Statistic, |share| {
        let plan = NaiveBayesPlan::new(vec![interval()?], 2, budget(EPSILON / share.value())?);
        let data = [201_u32, 200].map(|rows| {
            let classes = (0..rows).map(|row| row % 2).collect();
            Dataset::with_classes(vec![1], vec![0.5; rows as usize], classes, 2)
        });
        fits(plan.map_err(untried)?, data, |model| {
            let shares = model.shares();
            shares[0] >= shares[1]
        })
    })
    .with_chances(chances)
}

/// The corners of a square, and one example more in the middle of an edge, which moves the sum of answers by one of the 9/2 that the noise is made for: the line is above zero in the middle.
fn linear_regression() -> Case {
    const EPSILON: f64 = 4.5;
    let chances = |share: Share| {
        let rate = EPSILON / share.value() / 4.5;
        [1.0 - 0.5 * (-rate).exp(), 0.5]
    };
    let [likely, unlikely] = chances(Share::ALL);
    // What the other sums add in the middle is smaller than their noise by the number of examples.
    let claim = Claim::of(likely, unlikely, 1e-3);
    let name = format!("linear regression at epsilon {EPSILON}");
    Case::of("classical model", name, claim, Cost::Statistic, |share| {
        let (feature, answer) = (vec![interval()?], interval()?);
        let plan = LinearRegressionPlan::new(feature, answer, budget(EPSILON / share.value())?);
        let data = [1, 0].map(|more| {
            let (mut features, mut answers) = (Vec::new(), Vec::new());
            for _ in 0..250 {
                features.extend([1.0, 1.0, -1.0, -1.0]);
                answers.extend([1.0, -1.0, 1.0, -1.0]);
            }
            features.extend(vec![0.0; more]);
            answers.extend(vec![1.0; more]);
            Dataset::with_numbers(vec![1], features, answers)
        });
        fits(plan.map_err(untried)?, data, |model| {
            model.intercept() >= 0.0
        })
    })
    .with_chances(chances)
}
