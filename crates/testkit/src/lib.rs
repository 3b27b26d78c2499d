//! What only tests may have: entropy that repeats, entropy that fails, and pairs of neighbours.
//!
//! This crate is a dev-dependency everywhere. A test of the command-line program walks the dependency graph and fails if a
//! shipped binary links it.

mod entropy;
mod neighbour;

pub use entropy::{FailingEntropy, Seeded, SeededBits};
pub use neighbour::NeighbourPair;

/// Is the long form of the suites wanted (`WHIT_LONG=1`)?
pub fn long() -> bool {
    std::env::var_os("WHIT_LONG").is_some_and(|value| value == "1")
}
