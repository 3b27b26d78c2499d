//! # Dominating pairs
//! A pair `(P, Q)` dominates a mechanism in one direction if, for all neighbours of that direction, the mechanism's profile
//! lies at or below `δ(ε) = E_P[(1 - e^ε Q/P)_+]`. Pairs compose by products, also where later mechanisms are chosen by
//! earlier answers [ZDW22, Thm 10]; so one profile of the product of the pairs bounds the whole composition. Under
//! add/remove each direction has pairs of its own, and the answer is the larger of the two profiles of whole compositions:
//! never a mixture of directions.
//!
//! Parameters are floats that mean exactly themselves, noise always per sensitivity. Where an event's numbers are no floats,
//! they are rounded once against and once in favour of the caller, and the two answers are the two bounds.

/// One mechanism in one direction, by its dominating pair. All pairs are stated for the neighbour relation of the composition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Pair {
    /// `N(1, σ²)` against `N(0, σ²)`: `σ` is the noise multiplier.
    Gaussian {
        /// Standard deviation over L2 sensitivity.
        sigma: f64,
    },
    /// `Laplace(1, b)` against `Laplace(0, b)`.
    Laplace {
        /// Scale over L1 sensitivity.
        scale: f64,
    },
    /// A Gaussian over a Poisson sample.
    SampledGaussian {
        /// The probability with which each unit enters the sample.
        rate: f64,
        /// Standard deviation over L2 sensitivity.
        sigma: f64,
        /// Which of the three pairs.
        change: Change,
    },
    /// Laplace noise over a Poisson sample.
    SampledLaplace {
        /// The probability with which each unit enters the sample.
        rate: f64,
        /// Scale over L1 sensitivity.
        scale: f64,
        /// Which of the three pairs.
        change: Change,
    },
}

/// How neighbours differ, as seen by a sample that a unit enters with probability `q`. Let `f_x` be the noise around `x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// `(1-q) f_0 + q f_1` against `f_0`: a unit leaves.
    Remove,
    /// `f_0` against `(1-q) f_0 + q f_1`: a unit joins.
    Add,
    /// `(1-q) f_0 + q f_1` against `(1-q) f_0 + q f_-1`: a unit changes.
    Replace,
}
