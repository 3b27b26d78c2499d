//! Plans of all statistics, from the request to the answer.

use super::*;
use crate::stats::{CategoryColumn, Range, Share, Statistic, Value};
use whit_core::{Confidence, Delta, Epsilon, Fault, FaultKind, Mechanism};
use whit_mechanism::Bounds;
use whit_testkit::{FailingEntropy, Seeded};

mod answers;
mod privacy;
mod refusals;

/// So much that noise is far below anything compared here.
const PLENTY: f64 = 1e9;

/// The same, as much as a search for bounds takes.
const PLENTY_AUTO: f64 = 1e6;

fn request(statistic: Statistic, epsilon: f64) -> Request {
    let mut request = Request::new(statistic, Epsilon::new(epsilon).expect("a unit"));
    let (column, range) = match request.statistic {
        Statistic::Count | Statistic::Marginals { .. } => (false, false),
        Statistic::Distinct { .. }
        | Statistic::Bounds
        | Statistic::Mode { .. }
        | Statistic::Top { .. } => (true, false),
        _ => (true, true),
    };
    request.column = column.then(|| "x".into());
    request.range = range.then(|| Bounds::new(0.0, 10.0).expect("a range").into());
    request
}

/// Those that take a range.
fn ranged() -> [Statistic; 7] {
    [
        Statistic::Sum,
        Statistic::Mean,
        Statistic::Variance,
        Statistic::Stddev,
        Statistic::Histogram { bins: 5 },
        Statistic::Median,
        quantiles(&[0.1, 0.25, 0.5, 0.9]),
    ]
}

fn statistics() -> Vec<Statistic> {
    let others = [
        Statistic::Count,
        Statistic::Bounds,
        Statistic::Mode {
            categories: categories(),
        },
        top(3),
        Statistic::Distinct {
            values_per_unit: None,
        },
        marginals(),
    ];
    ranged().into_iter().chain(others).collect()
}

fn quantiles(shares: &[f64]) -> Statistic {
    let share = |&share: &f64| Share::new(share).expect("a share");
    Statistic::Quantile {
        q: shares.iter().map(share).collect(),
    }
}

fn categories() -> Vec<String> {
    ["1", "2", "a", "b"].map(String::from).into()
}

fn top(k: u64) -> Statistic {
    let categories = categories();
    Statistic::Top { k, categories }
}

fn marginals() -> Statistic {
    let column = |column: &str, categories: &[&str]| CategoryColumn {
        column: column.into(),
        categories: categories.iter().copied().map(String::from).collect(),
    };
    Statistic::Marginals {
        columns: vec![column("x", &["1", "2", "9"]), column("who", &["a", "b"])],
    }
}

/// Bounds what one unit has: rows, or in a distinct count values.
fn with_unit(mut request: Request, at_most: u32) -> Request {
    request.unit = Some("who".into());
    match &mut request.statistic {
        Statistic::Distinct { values_per_unit } => *values_per_unit = Some(at_most),
        _ => request.rows_per_unit = Some(at_most),
    }
    request
}

fn variants(epsilon: f64, delta: f64) -> Vec<Request> {
    let mut variants = Vec::new();
    for statistic in statistics() {
        for relation in [Neighbours::AddRemove, Neighbours::ReplaceOne] {
            for at_most in [None, Some(1), Some(3)] {
                for mechanism in [None, Some(NoiseKind::Gaussian)] {
                    let mut request = request(statistic.clone(), epsilon);
                    request.relation = relation;
                    request.mechanism = mechanism;
                    if mechanism.is_some() {
                        request.delta = Delta::new(delta).expect("a unit");
                    }
                    if request.mechanism().is_err() {
                        continue;
                    }
                    if let Some(at_most) = at_most {
                        request = with_unit(request, at_most);
                    }
                    // Calibrating Gaussian noise takes time, for each of the extreme ranges.
                    let quick = mechanism.is_none() || statistic == Statistic::Variance;
                    let auto = quick && at_most != Some(1);
                    if request.range.is_some() && auto {
                        let mut auto = request.clone();
                        auto.range = Some(Range::Auto);
                        variants.push(auto);
                    }
                    // Few values, which are chosen from in another way.
                    if statistic == Statistic::Median {
                        for statistic in [Statistic::Median, quantiles(&[0.9])] {
                            let mut stepped = request.clone();
                            stepped.statistic = statistic;
                            stepped.range = Some(Range::with_step(0.0, 10.0, 1.0).expect("few"));
                            assert_eq!(stepped.mechanism(), Ok(NoiseKind::PermuteAndFlip));
                            variants.push(stepped);
                        }
                    }
                    variants.push(request);
                }
            }
        }
    }
    variants
}

fn answer(request: Request, csv: impl AsRef<[u8]>) -> Result<Answer> {
    let mut entropy = Seeded::new(7);
    Plan::new(request)?.execute(csv.as_ref(), &mut entropy)
}

fn single(request: Request, csv: &str) -> f64 {
    match answer(request, csv).expect("answered").value {
        Value::Single { answer, low, high } => {
            assert!(low <= answer && answer <= high);
            answer
        }
        Value::Quantile { answer, .. } => answer,
        other => panic!("{other:?} is not one number"),
    }
}

fn counts(request: Request, csv: &str) -> Vec<f64> {
    match answer(request, csv).expect("answered").value {
        Value::Histogram { bins } => bins.iter().map(|bin| bin.answer).collect(),
        Value::Marginals { cells, .. } => cells.iter().map(|cell| cell.answer).collect(),
        Value::Quantiles { quantiles, .. } => quantiles.iter().map(|at| at.answer).collect(),
        other => panic!("{other:?} is not many numbers"),
    }
}

/// 600 values between 3 and 60: the bins from (2, 4] to (32, 64] hold more than noise.
fn many_rows() -> String {
    let row = |i: u32| format!("{},{i}\n", 3 + i % 58);
    "x,who\n".to_owned() + &(0..600).map(row).collect::<String>()
}
