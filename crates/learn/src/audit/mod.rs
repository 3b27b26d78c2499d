//! Attacks on training: how much of what a plan promises an adversary can take.
//!
//! An audit trains many models in two or more *worlds*, data sets that differ in a few known examples, boils each model down to one number, and
//! asks how well that number tells the worlds apart. What it finds is a lower bound on epsilon, with a confidence; that it is below the
//! upper bound of the plan is what a sound trainer must show, and how near it comes is what an attack is worth.
//!
//! - [`world`]: data sets that differ in a few examples, without copies of the rest.
//! - [`lock_step`]: trains the same plan in all worlds at once, with the trainer's own sums, noise and optimizer.
//! - [`start`]: initial weights, fixed or drawn anew for each trial.
//! - [`clip_bkd`]: the clipping-aware backdoor \[Jag20, Alg. 4\]; [`backdoor`]: the plain one \[Jag20, Alg. 3\].
//! - [`scores`]: what a model is boiled down to, such as its loss on an example or the answer at a poisoned point.
//! - [`bound`]: from scores to a lower bound: an event is chosen on some trials and judged on others.
//! - [`canary`]: white-box canaries, whose gradient is the same vector in every step: one over many runs, or many in one run.
//! - [`of_plan`]: both on a plan of somebody's own.
//!
//! **What an audit shows is private.** Scores are functions of the data with no noise but that of the models; thousands of models of one data
//! set cost thousands of times what one does. A report of an audit is for the owner of the data, or made on data that are public.

pub mod backdoor;
pub mod bound;
pub mod canary;
pub mod clip_bkd;
pub mod lock_step;
pub mod of_plan;
pub mod scores;
pub mod start;
pub mod world;

pub use bound::{Trials, corrected};
pub use lock_step::{LockStep, Noising};
pub use start::Start;
pub use world::{Point, World};
