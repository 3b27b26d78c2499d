//! `whit pate`: what the votes of teachers tell, and which noise to choose for them.

use clap::{Args, Subcommand};
use whit::Failure;

use crate::{Format, pate_aggregate, pate_plan, pate_train};

/// Labels from the votes of teachers that were trained on private data (PATE).
///
/// Split private data into parts and train a teacher on each, as you like and without noise: one example reaches one teacher. Let all of them label public
/// examples. What leaves is the class with most votes, with noise, and with a threshold only where the teachers agree; a student that learns from these labels is as private as they are.
///
/// `whit pate plan` finds noise and threshold for an epsilon, on simulated or public votes, or by private ones for a price. `whit pate train` does all of it from a plan: it deals private data out, trains teachers, and a student from what they tell. `whit pate aggregate` turns the votes
/// of your own teachers into labels.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Aggregate(Box<pate_aggregate::Arguments>),
    Plan(Box<pate_plan::Arguments>),
    Train(Box<pate_train::Arguments>),
}

/// What is told; `unwritten` is set if a file could not be written that was to hold it, too.
pub(crate) fn run(
    arguments: Arguments,
    format: Format,
    unwritten: &mut Option<Failure>,
) -> Result<String, Failure> {
    match arguments.command {
        Command::Aggregate(arguments) => pate_aggregate::run(*arguments, format, unwritten),
        Command::Plan(arguments) => pate_plan::run(&arguments, format),
        Command::Train(arguments) => pate_train::run(&arguments, format),
    }
}
