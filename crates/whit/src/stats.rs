//! Statistics of a CSV file: from [`Request`] by way of a [`Plan`] to an [`Answer`].
//!
//! | statistic | of | made private by |
//! | --- | --- | --- |
//! | [`Count`](Statistic::Count) | rows, or rows whose cell in a column is not empty | noise on the count |
//! | [`Sum`](Statistic::Sum) | a column's values, clamped to a range | noise on the sum |
//! | [`Mean`](Statistic::Mean) | the same | noise on the sum of distances from the middle of the range, and on the count |
//! | [`Variance`](Statistic::Variance), [`Stddev`](Statistic::Stddev) | the same | noise on these two and on the sum of squares |
//! | [`Histogram`](Statistic::Histogram) | the same, in bins of equal width | noise on each bin |
//! | [`Median`](Statistic::Median), [`Quantile`](Statistic::Quantile) | the same, in order | a choice by rank |
//! | [`Bounds`](Statistic::Bounds) | a column's values | noise on the counts of bins that double |
//! | [`Mode`](Statistic::Mode), [`Top`](Statistic::Top) | categories of a public list | a choice by count |
//! | [`Distinct`](Statistic::Distinct) | units, or a column's values | noise on the count |
//! | [`Marginals`](Statistic::Marginals) | combinations of categories of public lists | noise on each cell |
//!
//! A range that is not known can be [`Auto`](Range::Auto): a quarter of epsilon is spent on a search for bounds, and the rest on
//! the statistic with the bounds that were found. If none are found, that is the answer, and the whole charge is due.
//!
//! A cell that is no number is absent: it adds nothing. Only where the number of rows is public, which is under
//! [`ReplaceOne`](whit_core::Neighbours::ReplaceOne) with rows as units, an absent cell must stand for a value: the one
//! nearest to zero in a sum, the middle of the range in a mean or a variance.
//!
//! With a unit column, the first `rows_per_unit` rows of each unit are used, in the order of the file, and rows without a
//! unit are left out. A distinct count uses all rows of a unit, and of these the first few different values.

mod answer;
mod input;
mod measure;
mod plan;
mod request;
mod target;

pub(crate) use answer::short_up;
pub use answer::{
    AddedNoise, Answer, Bin, Cell, Ends, Part, QuantileAnswer, Reason, SearchedRange, Value,
};
pub use plan::Plan;
pub use request::{BINS_DEFAULT, CategoryColumn, NoiseKind, Range, Request, Share, Statistic};
