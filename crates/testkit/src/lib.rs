//! What only tests may have: entropy that repeats, entropy that fails, pairs of neighbours, and a clock for benchmarks.
//!
//! This crate is a dev-dependency everywhere. A test of the command-line program walks the dependency graph and fails if a
//! shipped binary links it.

mod entropy;
pub mod mutant;
pub mod mutant_audit;
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

/// Nanoseconds that the first thread of this process has spent on a CPU, for benchmarks.
pub fn cpu_ns() -> f64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "a benchmark reads its own CPU time"
    )]
    let text =
        std::fs::read_to_string("/proc/self/schedstat").expect("Linux counts CPU time per process");
    text.split(' ')
        .next()
        .and_then(|field| field.parse().ok())
        .expect("the first field is nanoseconds")
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| value == "1")
}
