//! # What the votes of teachers cost
//! PATE [PAE+17, PSM+18]: `n` teachers, each trained on its own part of private data, vote on the class of public examples; a noisy
//! aggregator tells which class won, and with Confident-GNMax only where a noisy test finds the teachers agreeing. One private example reaches
//! one teacher, so neighbours differ in what one teacher votes: in each query one vote moves from a class to another.
//!
//! **Two kinds of numbers.** What a ledger is charged does not look at votes: it is the price of an [`Event`](whit_core::Event) of Gaussian steps, by
//! [`price()`](crate::price()), and is a proven upper bound. Everything in this module *does* look at votes. Where teachers agree, the answer
//! would almost surely be the same without any one of them, and the Rényi divergence at these votes is far below the worst case. Such a number is
//! - itself private, since it is computed from the votes: for the owner's eyes only;
//! - a reading and no promise: it holds for these votes and those next to them, in one direction of the divergence, and the number of answers that it
//!   adds up was not fixed beforehand.
//!
//! So these are estimates in plain floats. Their errors come from a few dozen roundings in logarithmic scale; they agree with the published
//! program to `1e-9` relative (`vectors/pate.json`), and no privacy rests on them.
//!
//! - [`bound`]: the probability `q` that the winner loses, and Theorem 6 with Proposition 10, which turns it into a divergence.
//! - [`Tally`]: a whole run, order by order, and its best order.
//! - [`local`]: how far one teacher can move the cost of a query (Algorithms 3 to 5).
//! - [`smooth`]: a cost whose smooth sensitivity is a theorem, so that it may be published with noise.
//! - [`release`]: what that publication costs. This one is a charge, and rounded up.

pub mod bound;
#[cfg(test)]
mod golden;
pub mod local;
pub mod release;
pub mod smooth;
mod tally;

pub use tally::{Best, Conversion, Cost, Tally, Test, orders};
