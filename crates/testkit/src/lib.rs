//! What only tests may have: entropy that repeats, entropy that fails, and pairs of neighbours.
//!
//! This crate is a dev-dependency everywhere. A test of the command-line program walks the dependency graph and fails if a
//! shipped binary links it.

mod entropy;
pub mod mutant;
mod neighbour;

pub use entropy::{FailingEntropy, Seeded, SeededBits};
pub use neighbour::{NeighbourPair, UnitPair};

/// Is the long form of the suites wanted (`WHIT_LONG=1`)?
pub fn long() -> bool {
    is_set("WHIT_LONG")
}

/// Are fresh seeds wanted, in the long form or alone (`WHIT_FRESH=1`)?
pub fn fresh() -> bool {
    long() || is_set("WHIT_FRESH")
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| value == "1")
}
