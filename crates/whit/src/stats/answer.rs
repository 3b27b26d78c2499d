//! What comes back: the released value, what it cost and whom it protects. All of it is public.

use serde::{Deserialize, Serialize};
use whit_core::{Confidence, Delta, Epsilon, Neighbours, round};

use super::measure::Outcome;
use super::{NoiseKind, Request, Statistic};

/// A released statistic. JSON: one object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Answer {
    /// The numbers.
    #[serde(flatten)]
    pub value: Value,
    /// How often an interval made this way covers the truth.
    pub confidence: Confidence,
    /// What it cost, rounded up.
    pub epsilon: Epsilon,
    /// The slack that goes with it.
    pub delta: Delta,
    /// How it was made private.
    pub mechanism: NoiseKind,
    /// Whom the guarantee protects: `row`, or the column that names the unit.
    pub unit: String,
    /// What was computed, such as `count` or `mean`.
    pub statistic: String,
    /// Of which column; none for a count of rows, and where the value names its columns.
    pub column: Option<String>,
    /// Which data sets are neighbours.
    pub relation: Neighbours,
    /// The most rows of one unit that were used, if a column names the unit.
    pub rows_per_unit: Option<u32>,
    /// The most different values of one unit that were counted; only in distinct counts of a column's values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values_per_unit: Option<u32>,
    /// The range that was searched for; only if it was `auto`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<SearchedRange>,
    /// How much noise went where.
    pub noise: Vec<AddedNoise>,
    /// Was the charge booked to a budget? Not here: who asks again must add up the charges alone.
    pub recorded: bool,
    /// The guarantee in plain words.
    pub guarantee: String,
}

/// The numbers of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Value {
    /// One number.
    Single {
        /// The answer.
        answer: f64,
        /// The lower end of its interval.
        low: f64,
        /// The upper end of its interval.
        high: f64,
    },
    /// One quantile. No interval is known without looking at the data again, but how far its rank is off is.
    Quantile {
        /// The answer.
        answer: f64,
        /// Not known.
        low: Option<f64>,
        /// Not known.
        high: Option<f64>,
        /// With the answer's confidence, no more rows than this lie between the answer and the true quantile.
        rank_error: f64,
    },
    /// Several quantiles.
    Quantiles {
        /// The quantiles, in the order of their shares.
        quantiles: Vec<QuantileAnswer>,
        /// The same as for one quantile, for all of them together.
        rank_error: f64,
    },
    /// A range that holds most values.
    Bounds {
        /// The range.
        answer: Ends,
    },
    /// The most frequent category.
    Mode {
        /// The category.
        answer: String,
        /// With the answer's confidence, no category has so many more rows.
        count_error: f64,
    },
    /// The most frequent categories.
    Top {
        /// The categories, in the order in which they were chosen.
        top: Vec<String>,
        /// With the answer's confidence, no category that was left out has so many more rows than any of these.
        count_error: f64,
    },
    /// One number per bin.
    Histogram {
        /// The bins, from low to high.
        bins: Vec<Bin>,
    },
    /// One number per combination of categories.
    Marginals {
        /// The columns.
        columns: Vec<String>,
        /// All combinations of their categories; the last column changes fastest.
        cells: Vec<Cell>,
    },
    /// Nothing, and that is all that was released.
    Nothing {
        /// Always null.
        answer: (),
        /// Why.
        reason: Reason,
    },
}

impl Value {
    /// A search that found nothing.
    pub(crate) fn no_bounds() -> Self {
        Self::Nothing {
            answer: (),
            reason: Reason::NoBoundsFound,
        }
    }
}

/// Why an answer is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// No bin of the search for bounds holds clearly more than noise: there are too few values, or epsilon is too small.
    NoBoundsFound,
}

/// One of several quantiles.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct QuantileAnswer {
    /// Its share.
    pub q: f64,
    /// The value.
    pub answer: f64,
}

/// The ends of a range.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Ends {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// A range that was searched for, and what that cost. The rest was spent on the statistic.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SearchedRange {
    /// The lower end; none if nothing was found.
    pub low: Option<f64>,
    /// The upper end; none if nothing was found.
    pub high: Option<f64>,
    /// The part of epsilon that the search had.
    pub epsilon: Epsilon,
}

/// One cell of a contingency table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Cell {
    /// One category for each column.
    pub categories: Vec<String>,
    /// How many rows have them, with noise.
    pub answer: f64,
    /// The interval around that, without what is below zero.
    pub interval: [f64; 2],
}

/// One bin of a histogram, from `low` (included) to `high` (included in the last bin only).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Bin {
    /// The lower end of the bin.
    pub low: f64,
    /// The upper end of the bin.
    pub high: f64,
    /// How many values it holds, with noise.
    pub answer: f64,
    /// The interval around that.
    pub interval: [f64; 2],
}

/// Noise of one scale.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AddedNoise {
    /// What it was added to.
    pub to: Part,
    /// Its scale, in the unit of that: `b` of Laplace, the standard deviation of Gaussian noise.
    pub scale: f64,
}

/// What noise is added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Part {
    /// A number of rows.
    Count,
    /// A sum of values, or of their distances from the middle of the range.
    Sum,
    /// The sum of the values' distances from the lower end of the range, and that from the upper end: what a mean is made of.
    Ends,
    /// A sum of squared distances from the middle of the range.
    Squares,
    /// Each bin of a histogram, or of a search for bounds.
    Bin,
    /// Each cell of a table.
    Cell,
}

impl Part {
    /// Its name in a sentence.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Count => "the count",
            Self::Sum => "the sum",
            Self::Ends => "each of two sums",
            Self::Squares => "the squares",
            Self::Bin => "each bin",
            Self::Cell => "each cell",
        }
    }
}

impl Answer {
    /// What became of cells that are no numbers, where numbers were needed. It says nothing about the data: whether there were any is not
    /// told, nor that a column holds nothing else.
    pub fn absent_cells(&self) -> Option<&'static str> {
        let statistic = self.statistic.as_str();
        // Where the number of rows is public, every row needs a value.
        let public = self.relation == Neighbours::ReplaceOne && self.rows_per_unit.is_none();
        Some(match statistic {
            "sum" if public => {
                "those that are no numbers, such as text, 1,000 or nothing, count as the number of the range that is nearest to zero"
            }
            "mean" | "variance" | "stddev" if public => {
                "those that are no numbers, such as text, 1,000 or nothing, count as the middle of the range"
            }
            "sum" | "mean" | "variance" | "stddev" | "histogram" | "median" | "quantile"
            | "bounds" => {
                "those that are no numbers, such as text, 1,000 or nothing, are left out; where all are, the answer is only noise"
            }
            _ => return None,
        })
    }

    /// Puts together what was asked, what it cost and what came out.
    pub(crate) fn new(
        request: Request,
        mechanism: NoiseKind,
        cost: Cost,
        outcome: Outcome,
    ) -> Self {
        let guarantee = guarantee(&request, cost);
        let values_per_unit = match request.statistic {
            Statistic::Distinct { values_per_unit } => values_per_unit,
            _ => None,
        };
        Self {
            value: outcome.value,
            confidence: request.confidence,
            epsilon: cost.epsilon,
            delta: cost.delta,
            mechanism,
            unit: request.unit.unwrap_or_else(|| "row".into()),
            statistic: request.statistic.to_string(),
            column: request.column,
            relation: request.relation,
            rows_per_unit: request.rows_per_unit,
            values_per_unit,
            range: outcome.range,
            noise: outcome.noise,
            recorded: false,
            guarantee,
        }
    }

    /// The charge in words, such as `epsilon 0.5, delta 1e-6`. Rounded up, by less than one in ten thousand.
    pub fn charge(&self) -> String {
        let epsilon = short_up(self.epsilon.value());
        if self.delta == Delta::ZERO {
            format!("epsilon {epsilon}")
        } else {
            format!("epsilon {epsilon}, delta {}", short_up(self.delta.value()))
        }
    }
}

/// A proven price.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) epsilon: Epsilon,
    pub(crate) delta: Delta,
}

/// One sentence for people. It is the definition of differential privacy and promises no more.
fn guarantee(request: &Request, cost: Cost) -> String {
    let epsilon = cost.epsilon.value();
    let power = format!("e^{}", short_up(epsilon));
    // Beyond this the factor is no number that anybody pictures.
    let factor = if epsilon <= 16.0 {
        format!("{} ({power})", short_up(round::exp_up(epsilon)))
    } else {
        power
    };
    let slack = match cost.delta.value() {
        0.0 => String::new(),
        delta => format!(
            ", up to an extra probability of {} (delta)",
            short_up(delta)
        ),
    };
    let whose = request
        .unit
        .as_ref()
        .map(|unit| format!("rows of any one {unit}"));
    match request.relation {
        Neighbours::ReplaceOne => {
            let (what, say, them, units) = match whose {
                None => ("any one row".into(), "says", "it", "rows"),
                Some(whose) => (format!("the {whose}"), "say", "they", "units"),
            };
            format!(
                "Whatever {what} {say}, no outcome is more than {factor} times as likely as if {them} said something \
                 else{slack}. The number of {units} is taken to be public."
            )
        }
        _ => {
            let (what, are) = match whose {
                None => ("any one row".into(), "is"),
                Some(whose) => (format!("the {whose}"), "are"),
            };
            format!(
                "Whether {what} {are} in the data or not, no outcome is more than {factor} times as likely one way as \
                 the other{slack}."
            )
        }
    }
}

/// The shortest decimal number that is not below `value` and at most one in ten thousand above it.
pub(crate) fn short_up(value: f64) -> String {
    for digits in 0..17 {
        let text = format!("{value:.digits$e}");
        for candidate in [text.clone(), bumped(&text, digits)] {
            let Ok(number) = candidate.parse::<f64>() else {
                continue;
            };
            if number.is_finite() && number >= value && number <= value * (1.0 + 1e-4) {
                let plain = number == 0.0 || (1e-3..1e6).contains(&number);
                return if plain {
                    number.to_string()
                } else {
                    format!("{number:e}")
                };
            }
        }
    }
    value.to_string()
}

/// The same number of digits, one more in the last place.
fn bumped(text: &str, digits: usize) -> String {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let mantissa = mantissa.replace('.', "").parse::<u64>().unwrap_or(0) + 1;
    let exponent = exponent.parse::<i64>().unwrap_or(0) - digits as i64;
    format!("{mantissa}e{exponent}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_core::{Event, Mechanism};

    fn check(value: f64, expected: &str) {
        assert_eq!(short_up(value), expected);
        let shown: f64 = expected.parse().expect("a number");
        assert!(shown >= value);
    }

    #[test]
    fn costs_are_shown_short_and_never_low() {
        check(0.0, "0");
        check(1.0, "1");
        check(1.1, "1.1");
        check(0.999_999_98, "1");
        check(1.0 / 3.0, "0.33334");
        check(0.1 + 0.2, "0.30001");
        check(1e-6, "1e-6");
        check(1.000_000_1e-6, "1.0001e-6");
        check(123_456.0, "123460");
        check(5e-324, "5e-324");
        check(f64::MAX, &format!("{:e}", f64::MAX));
        check(1.0_f64.exp(), "2.7183");
        check(10.0_f64.exp(), "22027");
    }

    fn sentence(unit: Option<&str>, relation: Neighbours, delta: f64) -> String {
        let mut request = Request::new(Statistic::Count, Epsilon::new(1.0).expect("positive"));
        request.unit = unit.map(String::from);
        request.relation = relation;
        guarantee(
            &request,
            Cost {
                epsilon: request.epsilon,
                delta: Delta::new(delta).expect("below one"),
            },
        )
    }

    #[test]
    fn guarantee_names_whom_it_protects() {
        assert_eq!(
            sentence(None, Neighbours::AddRemove, 0.0),
            "Whether any one row is in the data or not, no outcome is more than 2.7183 (e^1) times as likely one way as the other."
        );
        assert_eq!(
            sentence(Some("name"), Neighbours::AddRemove, 1e-6),
            "Whether the rows of any one name are in the data or not, no outcome is more than 2.7183 (e^1) times as likely \
             one way as the other, up to an extra probability of 1e-6 (delta)."
        );
        assert_eq!(
            sentence(None, Neighbours::ReplaceOne, 0.0),
            "Whatever any one row says, no outcome is more than 2.7183 (e^1) times as likely as if it said something else. \
             The number of rows is taken to be public."
        );
    }

    #[test]
    fn every_value_reads_as_written() {
        let check = |value: Value, expected: &str| {
            let text = serde_json::to_string(&value).expect("plain data");
            assert_eq!(text, expected);
            assert_eq!(
                serde_json::from_str::<Value>(&text).expect("own text"),
                value
            );
        };
        let (answer, rank_error, count_error) = (5.0, 2.5, 3.0);
        check(
            Value::Quantile {
                answer,
                low: None,
                high: None,
                rank_error,
            },
            r#"{"answer":5.0,"low":null,"high":null,"rank_error":2.5}"#,
        );
        check(
            Value::Quantiles {
                quantiles: vec![QuantileAnswer { q: 0.5, answer }],
                rank_error,
            },
            r#"{"quantiles":[{"q":0.5,"answer":5.0}],"rank_error":2.5}"#,
        );
        let (low, high) = (-1.0, 1.0);
        check(
            Value::Bounds {
                answer: Ends { low, high },
            },
            r#"{"answer":{"low":-1.0,"high":1.0}}"#,
        );
        check(
            Value::no_bounds(),
            r#"{"answer":null,"reason":"no_bounds_found"}"#,
        );
        check(
            Value::Mode {
                answer: "a".into(),
                count_error,
            },
            r#"{"answer":"a","count_error":3.0}"#,
        );
        check(
            Value::Top {
                top: vec!["a".into()],
                count_error,
            },
            r#"{"top":["a"],"count_error":3.0}"#,
        );
        let cell = Cell {
            categories: vec!["x".into()],
            answer,
            interval: [0.0, 9.0],
        };
        check(
            Value::Marginals {
                columns: vec!["a".into()],
                cells: vec![cell],
            },
            r#"{"columns":["a"],"cells":[{"categories":["x"],"answer":5.0,"interval":[0.0,9.0]}]}"#,
        );
    }

    #[test]
    fn json_has_the_promised_keys_in_order() {
        let request = Request::new(Statistic::Count, Epsilon::new(1.0).expect("positive"));
        let cost = Cost {
            epsilon: request.epsilon,
            delta: Delta::ZERO,
        };
        let value = Value::Single {
            answer: 3.0,
            low: 0.0,
            high: 6.0,
        };
        let noise = vec![AddedNoise {
            to: Part::Count,
            scale: 1.0,
        }];
        let outcome = Outcome {
            event: Event::new(Neighbours::AddRemove, Mechanism::Composition(Vec::new())),
            value,
            noise,
            range: None,
        };
        let answer = Answer::new(request, NoiseKind::Laplace, cost, outcome);
        let text = serde_json::to_string(&answer).expect("plain data");
        assert!(
            text.starts_with(
                r#"{"answer":3.0,"low":0.0,"high":6.0,"confidence":0.95,"epsilon":1.0,"delta":0.0,"mechanism":"laplace","unit":"row","statistic":"count","column":null,"relation":"add_remove","rows_per_unit":null,"noise":[{"to":"count","scale":1.0}],"recorded":false,"guarantee":"#
            ),
            "{text}"
        );
        assert_eq!(
            serde_json::from_str::<Answer>(&text).expect("own text"),
            answer
        );
    }
}
