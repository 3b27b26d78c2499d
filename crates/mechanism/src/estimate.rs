//! An answer with its error bars.

/// A released number and an interval around it. All three come from the noisy value and public parameters alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The answer.
    pub answer: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}
