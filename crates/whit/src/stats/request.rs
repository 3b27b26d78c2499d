//! What is asked.

use std::fmt;

use serde::{Deserialize, Serialize};
use whit_core::{AddRemove, Confidence, Delta, Epsilon, Neighbours, Probability, Ratio};
use whit_mechanism::{Bounds, Contribution, Grid, GridQuantile};

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
    /// Which mechanism; without one, the usual one of the statistic.
    #[serde(default)]
    pub mechanism: Option<NoiseKind>,
    /// The column to compute it on. A count without one counts rows.
    #[serde(default)]
    pub column: Option<String>,
    /// The bounds of the column's values: public ones as `[lower, upper]` or `[lower, upper, step]`, or `"auto"`.
    #[serde(default)]
    pub range: Option<Range>,
    /// The column that names whom a row belongs to. Without one, each row is a unit.
    #[serde(default)]
    pub unit: Option<String>,
    /// The most rows of one unit that are used. Given exactly when `unit` is; but distinct counts bound values instead.
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
            mechanism: None,
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
        if let Statistic::Distinct { values_per_unit } = self.statistic {
            return self.distinct_contribution(values_per_unit);
        }
        match (&self.unit, self.rows_per_unit) {
            (None, None) => Ok(Contribution::Row),
            (None, Some(_)) => Err(Error::RowsPerUnitUnused),
            (Some(unit), None) => Err(Error::RowsPerUnitMissing { unit: unit.clone() }),
            (Some(_), Some(rows_max)) => Ok(Contribution::rows_per_unit(rows_max)?),
        }
    }

    /// The columns that it is computed on.
    pub fn columns(&self) -> Vec<&str> {
        match &self.statistic {
            Statistic::Marginals { columns } => columns
                .iter()
                .map(|column| column.column.as_str())
                .collect(),
            _ => self.column.as_deref().into_iter().collect(),
        }
    }

    /// For distinct counts it is different values that a unit has few of, not rows.
    fn distinct_contribution(&self, values_per_unit: Option<u32>) -> Result<Contribution> {
        if self.rows_per_unit.is_some() {
            return Err(self.unused("number of rows per unit"));
        }
        match (&self.column, &self.unit, values_per_unit) {
            (None, None, _) => Err(self.missing("column or a unit")),
            (Some(_), Some(_), None) => Err(self.missing("number of values per unit")),
            (Some(_), Some(_), Some(values_max)) => Ok(Contribution::rows_per_unit(values_max)?),
            (_, _, Some(_)) => Err(self.unused("number of values per unit")),
            (_, _, None) => Ok(Contribution::Row),
        }
    }

    /// The mechanism, if the statistic is made with it.
    pub(crate) fn mechanism(&self) -> Result<NoiseKind> {
        let (usual, fits): (_, &[NoiseKind]) = match self.statistic {
            Statistic::Median | Statistic::Quantile { .. } if self.is_on_short_grid() => (
                NoiseKind::PermuteAndFlip,
                &[NoiseKind::PermuteAndFlip, NoiseKind::Exponential],
            ),
            Statistic::Median
            | Statistic::Quantile { .. }
            | Statistic::Mode { .. }
            | Statistic::Top { .. } => (NoiseKind::Exponential, &[NoiseKind::Exponential]),
            Statistic::Bounds => (NoiseKind::Laplace, &[NoiseKind::Laplace]),
            _ => (
                NoiseKind::Laplace,
                &[NoiseKind::Laplace, NoiseKind::Gaussian],
            ),
        };
        let mechanism = self.mechanism.unwrap_or(usual);
        if fits.contains(&mechanism) {
            return Ok(mechanism);
        }
        let statistic = self.statistic.noun();
        Err(Error::UnfitMechanism {
            statistic,
            mechanism,
        })
    }

    /// Is one quantile wanted, from few enough values?
    fn is_on_short_grid(&self) -> bool {
        let Some(Range::Given(bounds)) = self.range else {
            return false;
        };
        let share = match &self.statistic {
            Statistic::Median => Share(0.5),
            Statistic::Quantile { q } if q.len() == 1 => q[0],
            _ => return false,
        };
        // Whether it fits is the same for every relation.
        GridQuantile::<AddRemove>::fits(&share.probability(), bounds)
    }

    pub(crate) fn missing(&self, parameter: &'static str) -> Error {
        let statistic = self.statistic.noun();
        Error::Missing {
            statistic,
            parameter,
        }
    }

    pub(crate) fn unused(&self, parameter: &'static str) -> Error {
        let statistic = self.statistic.noun();
        Error::Unused {
            statistic,
            parameter,
        }
    }
}

/// Where the bounds of values come from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "RangeText", try_from = "RangeText")]
#[non_exhaustive]
pub enum Range {
    /// They are public.
    Given(Bounds),
    /// They are searched for privately, for a quarter of epsilon, and the statistic is made with the rest.
    Auto,
}

impl Range {
    /// Public bounds of values that are multiples of a public step, such as one for whole numbers; others are rounded to it. The
    /// step must be a power of two.
    pub fn with_step(lower: f64, upper: f64, step: f64) -> whit_mechanism::Result<Self> {
        let exponent = step.log2().round();
        if step.is_finite() && step > 0.0 && 2_f64.powf(exponent) == step {
            // Exponents of floats are small.
            return Ok(Bounds::on_grid(lower, upper, Grid::new(exponent as i32)?)?.into());
        }
        Err(whit_core::Error::OutOfDomain {
            what: "the step of the range",
            given: step.to_string(),
            domain: "a power of two, such as 1, 0.5 or 8",
        }
        .into())
    }
}

impl From<Bounds> for Range {
    fn from(bounds: Bounds) -> Self {
        Self::Given(bounds)
    }
}

/// A range in JSON.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum RangeText {
    Given([f64; 2]),
    Stepped([f64; 3]),
    Auto(Auto),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Auto {
    Auto,
}

impl From<Range> for RangeText {
    fn from(range: Range) -> Self {
        match range {
            Range::Given(bounds) => {
                let value = |steps: i64| bounds.grid().value(i128::from(steps));
                let [lower, upper] = [bounds.lower(), bounds.upper()].map(value);
                if Bounds::new(lower, upper) == Ok(bounds) {
                    Self::Given([lower, upper])
                } else {
                    Self::Stepped([lower, upper, value(1)])
                }
            }
            Range::Auto => Self::Auto(Auto::Auto),
        }
    }
}

impl TryFrom<RangeText> for Range {
    type Error = whit_mechanism::Error;
    fn try_from(text: RangeText) -> std::result::Result<Self, Self::Error> {
        Ok(match text {
            RangeText::Given([lower, upper]) => Self::Given(Bounds::new(lower, upper)?),
            RangeText::Stepped([lower, upper, step]) => Self::with_step(lower, upper, step)?,
            RangeText::Auto(Auto::Auto) => Self::Auto,
        })
    }
}

/// What to compute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Statistic {
    /// How many rows there are, or how many have a cell that is not empty.
    Count,
    /// The sum of the values.
    Sum,
    /// The mean of the values.
    Mean,
    /// The variance of the values: of these rows, divisor `n`.
    Variance,
    /// The standard deviation of the values: the root of the variance.
    Stddev,
    /// How many values fall in each of so many bins of equal width.
    Histogram {
        /// The number of bins.
        #[serde(default = "bins_default")]
        bins: u32,
    },
    /// A value with half of all values on either side.
    Median,
    /// Values below which given shares of all values lie.
    Quantile {
        /// The shares, growing.
        q: Vec<Share>,
    },
    /// A range that holds most values, between powers of two.
    Bounds,
    /// The most frequent of the given categories.
    Mode {
        /// The public list. Other values are left out.
        categories: Vec<String>,
    },
    /// The most frequent of the given categories, the most frequent first.
    Top {
        /// How many of them.
        k: u64,
        /// The public list. Other values are left out.
        categories: Vec<String>,
    },
    /// How many different units there are, or how many different values a column has.
    Distinct {
        /// The most different values of one unit that count. Given exactly when both a column and a unit are.
        #[serde(default)]
        values_per_unit: Option<u32>,
    },
    /// How many rows there are with each combination of the categories of some columns.
    Marginals {
        /// The columns.
        columns: Vec<CategoryColumn>,
    },
}

/// A column and the public list of its categories. Rows with another value are left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CategoryColumn {
    /// Its name.
    pub column: String,
    /// What stands in it.
    pub categories: Vec<String>,
}

/// A share of all values, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Share(f64);

impl Share {
    /// Checks that it is one.
    pub fn new(share: f64) -> Result<Self> {
        if (0.0..=1.0).contains(&share) {
            return Ok(Self(share + 0.0));
        }
        Err(whit_core::Error::OutOfDomain {
            what: "share",
            given: share.to_string(),
            domain: "a number from 0 to 1",
        }
        .into())
    }

    /// The number.
    pub const fn value(self) -> f64 {
        self.0
    }

    /// The number that was meant: 0.1 is one in ten and not the float next to it.
    pub(crate) fn probability(self) -> Probability {
        let text = self.0.to_string();
        let decimals = text.split_once('.').map_or("", |(_, decimals)| decimals);
        let meant = || {
            let numerator = text.replace('.', "").parse().ok()?;
            let denominator = 10_u128.checked_pow(decimals.len().try_into().ok()?)?;
            Ratio::new(numerator, denominator).ok()
        };
        // What is too long to be read as a decimal is taken at its exact value.
        let ratio = meant().or_else(|| Ratio::from_f64(self.0));
        let ratio = ratio.expect("a share is finite and not negative");
        Probability::new(ratio).expect("a share is at most one")
    }
}

impl TryFrom<f64> for Share {
    type Error = Error;
    fn try_from(share: f64) -> Result<Self> {
        Self::new(share)
    }
}

impl From<Share> for f64 {
    fn from(share: Share) -> f64 {
        share.0
    }
}

impl Statistic {
    /// Its name.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Sum => "sum",
            Self::Mean => "mean",
            Self::Variance => "variance",
            Self::Stddev => "stddev",
            Self::Histogram { .. } => "histogram",
            Self::Median => "median",
            Self::Quantile { .. } => "quantile",
            Self::Bounds => "bounds",
            Self::Mode { .. } => "mode",
            Self::Top { .. } => "top",
            Self::Distinct { .. } => "distinct",
            Self::Marginals { .. } => "marginals",
        }
    }

    /// Its name in a sentence, behind "a".
    const fn noun(&self) -> &'static str {
        match self {
            Self::Stddev => "standard deviation",
            Self::Bounds => "search for bounds",
            Self::Top { .. } => "list of the most frequent categories",
            Self::Distinct { .. } => "distinct count",
            Self::Marginals { .. } => "contingency table",
            other => other.word(),
        }
    }
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// How an answer is made private.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NoiseKind {
    /// Discrete Laplace noise: no delta.
    Laplace,
    /// Discrete Gaussian noise: thinner tails, needs a delta. Better than Laplace when many answers are given, or many bins can
    /// be moved by one unit.
    Gaussian,
    /// The exponential mechanism, which chooses: for quantiles and for the most frequent categories. No delta.
    Exponential,
    /// Permute and flip, which chooses better: for one quantile of values with a step. No delta.
    PermuteAndFlip,
}

impl fmt::Display for NoiseKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Laplace => "laplace",
            Self::Gaussian => "gaussian",
            Self::Exponential => "exponential",
            Self::PermuteAndFlip => "permute-and-flip",
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
        request.range = Some(Bounds::new(-5.0, 120.0).expect("a range").into());
        request.unit = Some("name".into());
        request.rows_per_unit = Some(3);
        request.relation = Neighbours::ReplaceOne;
        request.mechanism = Some(NoiseKind::Gaussian);
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
    fn every_statistic_has_its_json() {
        let check = |text: &str, word: &str| {
            let text = format!(r#"{{"statistic":{text},"epsilon":1,"range":"auto"}}"#);
            let request = serde_json::from_str::<Request>(&text).expect("complete");
            assert_eq!(
                (request.statistic.word(), request.range),
                (word, Some(Range::Auto))
            );
            let again = serde_json::to_string(&request).expect("plain data");
            assert_eq!(
                serde_json::from_str::<Request>(&again).expect("own text"),
                request
            );
        };
        for word in [
            "count", "sum", "mean", "variance", "stddev", "median", "bounds",
        ] {
            check(&format!("{word:?}"), word);
        }
        check(r#"{"quantile":{"q":[0.25,0.5]}}"#, "quantile");
        check(r#"{"mode":{"categories":["a","b"]}}"#, "mode");
        check(r#"{"top":{"k":1,"categories":["a","b"]}}"#, "top");
        check(r#"{"distinct":{}}"#, "distinct");
        check(r#"{"distinct":{"values_per_unit":3}}"#, "distinct");
        check(
            r#"{"marginals":{"columns":[{"column":"a","categories":["x"]}]}}"#,
            "marginals",
        );
    }

    #[test]
    fn ranges_keep_their_step() {
        let read = |text: &str| serde_json::from_str::<Range>(text);
        for text in [
            "[0.0,120.0]",
            "[0.0,120.0,1.0]",
            "[-2.0,2.0,0.25]",
            "\"auto\"",
        ] {
            let range = read(text).expect("a range");
            assert_eq!(serde_json::to_string(&range).expect("plain data"), text);
        }
        for text in [
            "[0,120,0]",
            "[0,120,-1]",
            "[0,120,0.1]",
            "[0,120,3]",
            "[0,1,1e300]",
            "[0,1e30,1]",
            "[0,120,1,1]",
            "[120]",
        ] {
            assert!(read(text).is_err(), "{text} passed");
        }
    }

    #[test]
    fn shares_are_the_decimals_that_were_meant() {
        let check = |share: f64, numerator, denominator| {
            let share = Share::new(share).expect("a share").probability();
            assert_eq!(
                *share.ratio(),
                Ratio::new(numerator, denominator).expect("positive")
            );
        };
        check(0.0, 0, 1);
        check(1.0, 1, 1);
        check(0.1, 1, 10);
        check(0.975, 975, 1000);
        check(1.0 / 3.0, 3_333_333_333_333_333, 10_000_000_000_000_000);
        let tiny = Share::new(1e-300).expect("a share").probability();
        assert_eq!(tiny.ratio().to_f64_up(), 1e-300);
        for share in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert!(Share::new(share).is_err());
        }
    }

    #[test]
    fn json_is_checked_like_text() {
        for text in [
            r#"{"statistic":"count"}"#,
            r#"{"epsilon":1}"#,
            r#"{"statistic":"count","epsilon":-1}"#,
            r#"{"statistic":"count","epsilon":1e400}"#,
            r#"{"statistic":"count","epsilon":"1"}"#,
            r#"{"statistic":"maximum","epsilon":1}"#,
            r#"{"statistic":{"quantile":{"q":[2]}},"epsilon":1}"#,
            r#"{"statistic":"sum","epsilon":1,"column":"a","range":"automatic"}"#,
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
