//! How often a mechanism is run when only the best of its runs is released, as far as an accountant needs to know.
//!
//! The number of runs is drawn before the first of them, by coins that do not look at the data, and nobody learns it: what it was says how
//! much the best run was chosen, and no theorem here pays for that. How it is drawn lowers the price, so it stands in the event.

use serde::{Deserialize, Serialize};

use crate::{Probability, Ratio};

/// How the number `K` of runs of a [`Mechanism::BestOf`](crate::Mechanism::BestOf) is drawn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Repeats {
    /// `Pr[K = k] ∝ (1-γ)^k Π (l+η)/(l+1)` over `l` from 0 to below `k`, for `k` from one on; for `η = 0` that is `(1-γ)^k/k`. At `η = 1`
    /// it is geometric, and at `γ = 1` it is one.
    TruncatedNegativeBinomial {
        /// `1 + η`, above zero.
        eta_plus_one: Ratio,
        /// `γ`, above zero.
        gamma: Probability,
    },
    /// `Pr[K = k] = e^(-mean) mean^k / k!`, zero runs included. Without a run something is released that does not depend on data.
    Poisson {
        /// The mean, above zero.
        mean: Ratio,
    },
}
