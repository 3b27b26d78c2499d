//! Statistics of a file, as `whit stats` answers them: text in, an answer out.

use whit::OsEntropy;
use whit::stats::{Plan, Request, Value};
use whit_trial::{
    Case, Claim, Cost, Draws, fine_laplace_chances, laplace_chances, mean_chances, sliver_chances,
};

use super::untried;

/// Is the answer in the event?
type Event = fn(&Value) -> bool;

/// A request as a program would write it, but for its epsilon, and a file in each world.
struct Tried {
    name: &'static str,
    epsilon: f64,
    request: &'static str,
    /// In the likelier world and in the other, at an epsilon.
    files: fn(f64) -> [String; 2],
    event: Event,
    /// Of the event, at an epsilon.
    chances: fn(f64) -> [f64; 2],
    /// What the chances leave out.
    slack: f64,
    cost: Cost,
}

impl Tried {
    /// At epsilon one, of an event that is seen in a count.
    fn new(
        name: &'static str,
        request: &'static str,
        files: fn(f64) -> [String; 2],
        event: Event,
    ) -> Self {
        Self {
            name,
            epsilon: 1.0,
            request,
            files,
            event,
            chances: |epsilon| laplace_chances(epsilon, 1),
            slack: 1e-5,
            cost: Cost::Statistic,
        }
    }
}

/// Files that are the same at every epsilon.
macro_rules! files {
    ($likely:expr, $unlikely:expr) => {
        |_| [$likely, $unlikely].map(String::from)
    };
}

fn tried() -> Vec<Tried> {
    vec![
        Tried::new(
            "count",
            r#"{"statistic":"count"}"#,
            files!("x\n1\n2\n3\n", "x\n1\n2\n"),
            |value| single(value) >= 3.0,
        ),
        Tried {
            chances: fine_laplace_chances,
            ..Tried::new(
                "sum",
                r#"{"statistic":"sum","column":"x","range":[0,10]}"#,
                files!("x\n7\n25\n", "x\n7\n"),
                |value| single(value) >= 17.0,
            )
        },
        Tried {
            epsilon: 2.0,
            chances: mean_chances,
            ..Tried::new(
                "mean",
                r#"{"statistic":"mean","column":"x","range":[0,2]}"#,
                files!("x\n2\n", "x\n"),
                |value| single(value) >= 2.0,
            )
        },
        Tried {
            chances: fine_laplace_chances,
            ..Tried::new(
                "mean of a public number of rows",
                r#"{"statistic":"mean","column":"x","range":[0,2],"relation":"replace_one"}"#,
                files!("x,y\n2,0\n1,0\n", "x,y\n0,0\n1,0\n"),
                |value| single(value) >= 1.5,
            )
        },
        Tried {
            epsilon: 2.0,
            chances: variance_chances,
            slack: 1e-3,
            cost: Cost::Program,
            ..Tried::new(
                "variance",
                r#"{"statistic":"variance","column":"x","range":[-1,1],"relation":"replace_one"}"#,
                ends_and_middle,
                |value| single(value) >= 0.5,
            )
        },
        Tried {
            epsilon: 2.0,
            chances: variance_chances,
            slack: 1e-3,
            cost: Cost::Program,
            ..Tried::new(
                "standard deviation",
                r#"{"statistic":"stddev","column":"x","range":[-1,1],"relation":"replace_one"}"#,
                ends_and_middle,
                |value| single(value) >= 0.5_f64.sqrt(),
            )
        },
        Tried {
            chances: |epsilon| laplace_chances(epsilon / 3.0, 3),
            ..Tried::new(
                "rows of a unit",
                r#"{"statistic":"count","unit":"who","rows_per_unit":3}"#,
                files!("who\na\nb\nb\nb\nb\n", "who\na\n"),
                |value| single(value) >= 4.0,
            )
        },
        Tried::new(
            "distinct units",
            r#"{"statistic":{"distinct":{}},"unit":"who"}"#,
            files!("who\na\nb\na\nc\n", "who\na\nb\na\n"),
            |value| single(value) >= 3.0,
        ),
        Tried::new(
            "distinct values of rows",
            r#"{"statistic":{"distinct":{}},"column":"x"}"#,
            files!("x\n1\n2\n1\n", "x\n1\n1\n"),
            |value| single(value) >= 2.0,
        ),
        // Four values of a unit, of which three count.
        Tried {
            chances: |epsilon| laplace_chances(epsilon / 3.0, 3),
            ..Tried::new(
                "distinct values of units",
                r#"{"statistic":{"distinct":{"values_per_unit":3}},"column":"x","unit":"who"}"#,
                files!("who,x\na,1\nb,7\nb,8\nb,9\nb,6\n", "who,x\na,1\n"),
                |value| single(value) >= 4.0,
            )
        },
        Tried::new(
            "histogram",
            r#"{"statistic":{"histogram":{"bins":4}},"column":"x","range":[0,4]}"#,
            files!("x\n0.5\n2.5\n", "x\n0.5\n"),
            |value| matches!(value, Value::Histogram { bins } if bins[2].answer >= 1.0),
        ),
        Tried::new(
            "contingency table",
            r#"{"statistic":{"marginals":{"columns":[{"column":"s","categories":["f","m"]},{"column":"t","categories":["no","yes"]}]}}}"#,
            files!("s,t\nm,no\nf,yes\n", "s,t\nm,no\n"),
            |value| matches!(value, Value::Marginals { cells, .. } if cells[1].answer >= 1.0),
        ),
        Tried {
            chances: fine_laplace_chances,
            ..Tried::new(
                "median on a grid",
                r#"{"statistic":"median","column":"x","range":[0,1,1],"relation":"replace_one"}"#,
                files!("x,y\n0,0\n1,0\n", "x,y\n0,0\n-7,0\n"),
                |value| quantile(value) == 1.0,
            )
        },
        // A fifth of the range is below a row, and another row at the lower end makes that the place of the median.
        Tried {
            chances: sliver_chances,
            slack: 1e-4,
            ..Tried::new(
                "quantile",
                r#"{"statistic":{"quantile":{"q":[0.5]}},"column":"x","range":[0,1]}"#,
                files!("x\n0.2\n-7\n", "x\n0.2\n"),
                |value| quantile(value) < 0.2,
            )
        },
        // The second of two is found first, for half of the budget.
        Tried {
            epsilon: 2.0,
            chances: |epsilon| sliver_chances(epsilon / 2.0),
            slack: 1e-4,
            ..Tried::new(
                "two quantiles",
                r#"{"statistic":{"quantile":{"q":[0.25,0.5]}},"column":"x","range":[0,1]}"#,
                files!("x\n0.2\n-7\n", "x\n0.2\n"),
                |value| matches!(value, Value::Quantiles { quantiles, .. } if quantiles[1].answer < 0.2),
            )
        },
        Tried {
            epsilon: 2.0,
            ..Tried::new(
                "bounds",
                r#"{"statistic":"bounds","column":"x"}"#,
                as_many_as_are_found,
                |value| matches!(value, Value::Bounds { answer } if answer.low == 1.0 && answer.high == 2.0),
            )
        },
        // A row gives its category all of `e^ε`, beside another.
        Tried {
            epsilon: 2.0,
            chances: |epsilon| [epsilon.exp() / (epsilon.exp() + 1.0), 0.5],
            ..Tried::new(
                "mode",
                r#"{"statistic":{"mode":{"categories":["a","b"]}},"column":"x"}"#,
                files!("x\na\n", "x\n"),
                |value| matches!(value, Value::Mode { answer, .. } if answer == "a"),
            )
        },
        // Half of epsilon for each of two rounds: without the row a category is left out of both with probability one half.
        Tried {
            epsilon: 3.0,
            chances: |epsilon| {
                let weight = (epsilon / 2.0).exp();
                [1.0 - 3.0 / (weight + 3.0) * 2.0 / (weight + 2.0), 0.5]
            },
            ..Tried::new(
                "top",
                r#"{"statistic":{"top":{"k":2,"categories":["a","b","c","d"]}},"column":"x"}"#,
                files!("x\na\n", "x\n"),
                |value| matches!(value, Value::Top { top, .. } if top.iter().any(|name| name == "a")),
            )
        },
    ]
}

fn single(value: &Value) -> f64 {
    match value {
        Value::Single { answer, .. } => *answer,
        _ => f64::NAN,
    }
}

fn quantile(value: &Value) -> f64 {
    match value {
        Value::Quantile { answer, .. } => *answer,
        _ => f64::NAN,
    }
}

/// Rows of the variance: so many that the square of the mean hides little, and each sample takes longer.
const ROWS: usize = 200;

/// Half of the rows in the middle and a quarter at each end; one goes from an end to the middle.
fn ends_and_middle(_: f64) -> [String; 2] {
    let file = |first: &str| {
        let rows = (1..ROWS).map(|row| [",0\n1", ",0\n0", ",0\n-1", ",0\n0"][row % 4]);
        format!("x,y\n{first}{},0\n", rows.collect::<String>())
    };
    [file("1"), file("0")]
}

/// Sum and squares have half of epsilon each: their noises have scales `4/ε` and `2/ε`. Squares have to be above a half of the rows by as much as the square of the mean hides; the row takes one from the squares, and one
/// from the sum. Over the noise of the sum, by the midpoint rule.
fn variance_chances(epsilon: f64) -> [f64; 2] {
    let (sum, squares) = (4.0 / epsilon, 2.0 / epsilon);
    let step = sum / 100.0;
    let of = |moved: f64| -> f64 {
        let each = |at: i32| {
            let noise = (f64::from(at) + 0.5) * step;
            let hidden = (noise - moved).powi(2) / ROWS as f64;
            step / (2.0 * sum)
                * (-noise.abs() / sum).exp()
                * 0.5
                * (-(hidden + moved) / squares).exp()
        };
        (-4000..4000).map(each).sum()
    };
    [of(0.0), of(1.0)]
}

/// So many rows of one bin that it passes if its noise is not below zero, and one row less. A bin passes above a threshold `t` that none of 112 empty ones passes with probability 99.9 %, and then is alone:
/// `(1 - q^(t+1)/(1+q))^112 >= 0.999`.
fn as_many_as_are_found(epsilon: f64) -> [String; 2] {
    let q = (-epsilon).exp();
    let alone = |above: i32| (112.0 * (-q.powi(above) / (1.0 + q)).ln_1p()).exp() >= 0.999;
    let rows = (1..100).find(|above| alone(*above)).unwrap_or(100);
    [rows, rows - 1].map(|rows| format!("x\n{}", "1.5\n".repeat(rows as usize)))
}

pub(super) fn cases() -> Vec<Case> {
    tried().into_iter().map(case).collect()
}

fn case(tried: Tried) -> Case {
    let Tried {
        name,
        epsilon,
        request,
        files,
        event,
        chances,
        slack,
        cost,
    } = tried;
    let name = format!("{name} at epsilon {epsilon}");
    let [likely, unlikely] = chances(epsilon);
    let claim = Claim::of(likely, unlikely, slack);
    Case::of("statistic of a file", name, claim, cost, move |share| {
        let epsilon = epsilon / share.value();
        let mut request: serde_json::Value = serde_json::from_str(request).map_err(untried)?;
        request["epsilon"] = epsilon.into();
        let request: Request = serde_json::from_value(request).map_err(untried)?;
        let [likely, unlikely] = files(epsilon);
        Ok(Draws::new(likely, unlikely, move |file, _| {
            let plan = Plan::new(request.clone()).map_err(untried)?;
            let answer = plan.execute(file.as_bytes(), &mut OsEntropy::new());
            Ok(event(&answer.map_err(untried)?.value))
        }))
    })
    .with_chances(move |share| chances(epsilon / share.value()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit_cases::NOT_TRIED;
    use std::collections::BTreeSet;
    use whit::stats::{NoiseKind, Statistic};

    /// The words of an enumeration, as its reader knows them: what it offers in place of a word that is none.
    fn words_of<T: serde::de::DeserializeOwned>() -> BTreeSet<String> {
        let refused = serde_json::from_str::<T>("\"\"").err().expect("no word");
        let refused = refused.to_string();
        let (_, offered) = refused.split_once("expected one of").expect("a list");
        let quoted = offered.split('`').skip(1).step_by(2);
        quoted.map(String::from).collect()
    }

    /// A statistic that is added without a case is found here. So is a mechanism, without a case or an excuse by name.
    #[test]
    fn every_statistic_is_tried_and_every_mechanism_is_or_says_why_not() {
        let requests = tried().into_iter().map(|tried| {
            let mut request: serde_json::Value =
                serde_json::from_str(tried.request).expect("an object");
            request["epsilon"] = 1.into();
            serde_json::from_value::<Request>(request).expect("a request")
        });
        let (mut statistics, mut mechanisms) = (BTreeSet::new(), BTreeSet::new());
        for request in requests {
            let text = serde_json::to_value(&request.statistic).expect("plain data");
            let word = match &text {
                serde_json::Value::Object(fields) => fields.keys().next().cloned(),
                word => word.as_str().map(String::from),
            };
            statistics.insert(word.expect("a name"));
            let plan = Plan::new(request).expect("nothing speaks against it");
            let answer = plan.execute(&b"x,y,s,t,who\n"[..], &mut OsEntropy::new());
            let mechanism = serde_json::to_value(answer.expect("an answer").mechanism);
            let mechanism = mechanism.expect("plain data");
            mechanisms.extend(mechanism.as_str().map(String::from));
        }
        let all = words_of::<Statistic>();
        assert!(all.len() >= 13 && all.contains("count"), "{all:?}");
        assert_eq!(statistics, all);
        let excused = "gaussian";
        assert!(NOT_TRIED.iter().any(|line| line.contains("Gaussian noise")));
        assert!(mechanisms.insert(excused.into()), "a case and an excuse");
        assert_eq!(mechanisms, words_of::<NoiseKind>());
    }
}
