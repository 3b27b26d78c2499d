//! What is asked.

use std::fmt;

use serde::{Deserialize, Serialize};
use whit_core::{Confidence, Delta, Epsilon, Neighbours};
use whit_mechanism::{Bounds, Contribution};

use crate::{Error, Result};

/// One statistic of one file, and what it may cost. In JSON all but `statistic` and `epsilon` may be left out:
///
/// ```
/// use whit::stats::Request;
///
/// let json = r#"{"statistic":"mean","epsilon":0.5,"column":"age","range":[0,120]}"#;
/// assert_eq!(serde_json::from_str::<Request>(json)?.confidence.value(), 0.95);
/// let json = r#"{"statistic":{"histogram":{"bins":12}},"epsilon":0.5,"column":"age","range":[0,120]}"#;
/// assert!(serde_json::from_str::<Request>(json).is_ok());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Request {
    /// What to compute.
    pub statistic: Statistic,
    /// The most epsilon it may cost.
    pub epsilon: Epsilon,
    /// The most delta it may cost: above zero for Gaussian noise, zero for Laplace noise.
    #[serde(default = "no_delta")]
    pub delta: Delta,
    /// Which noise.
    #[serde(default)]
    pub mechanism: NoiseKind,
    /// The column to compute it on. A count without one counts rows.
    #[serde(default)]
    pub column: Option<String>,
    /// The public bounds of the column's values.
    #[serde(default, with = "range")]
    pub range: Option<Bounds>,
    /// The column that names whom a row belongs to. Without one, each row is a unit.
    #[serde(default)]
    pub unit: Option<String>,
    /// The most rows of one unit that are used. Given exactly when `unit` is.
    #[serde(default)]
    pub rows_per_unit: Option<u32>,
    /// Which data sets are neighbours.
    #[serde(default = "add_remove")]
    pub relation: Neighbours,
    /// How often the interval covers the truth.
    #[serde(default = "ninety_five_percent")]
    pub confidence: Confidence,
}

impl Request {
    /// The statistic at this price, with everything else as a newcomer would leave it.
    pub fn new(statistic: Statistic, epsilon: Epsilon) -> Self {
        Self {
            statistic,
            epsilon,
            delta: no_delta(),
            mechanism: NoiseKind::default(),
            column: None,
            range: None,
            unit: None,
            rows_per_unit: None,
            relation: add_remove(),
            confidence: ninety_five_percent(),
        }
    }

    /// How rows belong to units.
    pub(crate) fn contribution(&self) -> Result<Contribution> {
        match (&self.unit, self.rows_per_unit) {
            (None, None) => Ok(Contribution::Row),
            (None, Some(_)) => Err(Error::RowsPerUnitUnused),
            (Some(unit), None) => Err(Error::RowsPerUnitMissing { unit: unit.clone() }),
            (Some(_), Some(rows_max)) => Ok(Contribution::rows_per_unit(rows_max)?),
        }
    }
}

/// What to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Statistic {
    /// How many rows there are, or how many have a cell that is not empty.
    Count,
    /// The sum of the values.
    Sum,
    /// The mean of the values.
    Mean,
    /// How many values fall in each of so many bins of equal width.
    Histogram {
        /// The number of bins.
        #[serde(default = "bins_default")]
        bins: u32,
    },
}

impl Statistic {
    /// Its name.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Sum => "sum",
            Self::Mean => "mean",
            Self::Histogram { .. } => "histogram",
        }
    }
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Which noise is added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NoiseKind {
    /// Discrete Laplace: no delta.
    #[default]
    Laplace,
    /// Discrete Gaussian: thinner tails, needs a delta. Better than Laplace when many answers are given, or many bins can
    /// be moved by one unit.
    Gaussian,
}

impl fmt::Display for NoiseKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Laplace => "laplace",
            Self::Gaussian => "gaussian",
        })
    }
}

/// How many bins a histogram has if nobody says: enough to see a shape, few enough to read.
pub const BINS_DEFAULT: u32 = 10;

const fn bins_default() -> u32 {
    BINS_DEFAULT
}

const fn no_delta() -> Delta {
    Delta::ZERO
}

const fn add_remove() -> Neighbours {
    Neighbours::AddRemove
}

fn ninety_five_percent() -> Confidence {
    Confidence::new(0.95).expect("0.95 lies between 0 and 1")
}

/// A range is `[lower, upper]` in JSON.
mod range {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use whit_mechanism::Bounds;

    pub(super) fn serialize<S: Serializer>(
        range: &Option<Bounds>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let ends = |range: &Bounds| {
            [range.lower(), range.upper()].map(|steps| range.grid().value(i128::from(steps)))
        };
        range.as_ref().map(ends).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Bounds>, D::Error> {
        let ends = Option::<[f64; 2]>::deserialize(deserializer)?;
        ends.map(|[lower, upper]| Bounds::new(lower, upper))
            .transpose()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_as_written() {
        let mut request = Request::new(
            Statistic::Histogram { bins: 7 },
            Epsilon::new(0.1).expect("positive"),
        );
        request.column = Some("age".into());
        request.range = Some(Bounds::new(-5.0, 120.0).expect("a range"));
        request.unit = Some("name".into());
        request.rows_per_unit = Some(3);
        request.relation = Neighbours::ReplaceOne;
        request.mechanism = NoiseKind::Gaussian;
        request.delta = Delta::new(1e-6).expect("below one");
        let text = serde_json::to_string(&request).expect("plain data");
        assert_eq!(
            serde_json::from_str::<Request>(&text).expect("own text"),
            request
        );
    }

    #[test]
    fn json_leaves_out_what_is_usual() {
        let request: Request =
            serde_json::from_str(r#"{"statistic":"count","epsilon":1}"#).expect("complete");
        assert_eq!(
            request,
            Request::new(Statistic::Count, Epsilon::new(1.0).expect("positive"))
        );
        let histogram = serde_json::from_str::<Statistic>(r#"{"histogram":{}}"#).expect("complete");
        assert_eq!(histogram, Statistic::Histogram { bins: BINS_DEFAULT });
    }

    #[test]
    fn json_is_checked_like_text() {
        for text in [
            r#"{"statistic":"count"}"#,
            r#"{"epsilon":1}"#,
            r#"{"statistic":"count","epsilon":-1}"#,
            r#"{"statistic":"count","epsilon":1e400}"#,
            r#"{"statistic":"count","epsilon":"1"}"#,
            r#"{"statistic":"median","epsilon":1}"#,
            r#"{"statistic":"count","epsilon":1,"seed":7}"#,
            r#"{"statistic":"count","epsilon":1,"epsilon":2}"#,
            r#"{"statistic":"count","epsilon":1,"delta":1}"#,
            r#"{"statistic":"count","epsilon":1,"confidence":1}"#,
            r#"{"statistic":"sum","epsilon":1,"column":"a","range":[5,1]}"#,
            r#"{"statistic":"sum","epsilon":1,"column":"a","range":[5]}"#,
        ] {
            assert!(
                serde_json::from_str::<Request>(text).is_err(),
                "{text} was read"
            );
        }
    }
}
