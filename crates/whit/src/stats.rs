//! Statistics of a CSV file: from [`Request`] by way of a [`Plan`] to an [`Answer`].
//!
//! | statistic | of | noise goes to |
//! | --- | --- | --- |
//! | [`Count`](Statistic::Count) | rows, or rows whose cell in a column is not empty | the count |
//! | [`Sum`](Statistic::Sum) | a column's values, clamped to a range | the sum |
//! | [`Mean`](Statistic::Mean) | the same | the sum of distances from the middle of the range, and the count |
//! | [`Histogram`](Statistic::Histogram) | the same, in bins of equal width | each bin |
//!
//! A cell that is no number is absent: it adds nothing. Only where the number of rows is public, which is under
//! [`ReplaceOne`](whit_core::Neighbours::ReplaceOne) with rows as units, an absent cell must stand for a value: the one
//! nearest to zero in a sum, the middle of the range in a mean.
//!
//! With a unit column, the first `rows_per_unit` rows of each unit are used, in the order of the file, and rows without a
//! unit are left out.

mod answer;
mod plan;
mod request;

pub use answer::{AddedNoise, Answer, Bin, Part, Value};
pub use plan::Plan;
pub use request::{BINS_DEFAULT, NoiseKind, Request, Statistic};
