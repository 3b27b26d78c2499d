//! Figures of papers, reached with this repository's library: one command for each experiment, five seeds in a row, the table on stdout.
//!
//! An experiment is a file with a constant of its own: what is claimed, where its numbers come from, and its plans as `whit train` reads
//! them. All else is shared: `folder` finds the data, `run` trains, `kept` remembers what was trained, `report` makes tables and `plot` makes pictures.

mod adult;
mod audit;
mod budget;
mod cifar;
mod experiment;
mod failure;
mod folder;
mod kept;
mod mnist;
mod mnist_abadi;
mod mnist_cnn;
mod mnist_tanh;
mod pate;
mod pate_beside;
mod pate_plot;
mod pate_votes;
mod plot;
mod progress;
mod report;
mod run;
mod scattering;

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use whit_core::Fault;

use crate::experiment::Experiment;
use crate::failure::Failure;

/// All of them, in the order of the list.
const EXPERIMENTS: [&Experiment; 11] = [
    &mnist_cnn::EXPERIMENT,
    &mnist_tanh::EXPERIMENT,
    &mnist_abadi::EXPERIMENT,
    &scattering::MNIST,
    &scattering::FASHION,
    &cifar::LINEAR,
    &cifar::CNN,
    &cifar::WITHOUT_PUBLIC,
    &scattering::MNIST_CURVE,
    &scattering::FASHION_CURVE,
    &cifar::CURVE,
];

/// Figures of papers, reached with whit.
///
/// Each experiment trains with true Poisson sampling, exact noise and tight accounting, once for each seed. A seed decides the
/// initial weights alone: noise and sampling come from the operating system, so that accuracies differ from run to run.
/// The table goes to stdout, and with --out to a folder together with plots. Accuracy is that on the test split, declared public.
#[derive(Parser)]
#[command(name = "whit-experiments", after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples, with WHIT_DATA set to a folder that holds mnist/train-images-idx3-ubyte.gz and its three companions\n(fashion-mnist/ for fashion-scattering, cifar-10/ from experiments/fetch-cifar-10 for the others):
  cargo run --release -p whit-experiments -- list
      What there is, what each one is to reach, and where its numbers come from.
  cargo run --release -p whit-experiments -- mnist-tanh --out results --threads 2
      Five seeds, the table, and plots in the folder results.
  cargo run --release -p whit-experiments -- mnist-cnn --seeds 1
      One seed, to see whether it works.";

#[derive(Subcommand)]
enum Command {
    /// What there is, and what each one is to reach
    List,
    /// MNIST end to end: a small CNN with ReLU, at epsilon 2.91
    MnistCnn(Options),
    /// The same network with tanh, at epsilon 2.93
    MnistTanh(Options),
    /// MNIST at epsilon 8, 2 and 0.5, beside the first paper on DP-SGD
    MnistAbadi(Options),
    /// MNIST, a linear model on scattering features, at epsilon 3
    MnistScattering(Options),
    /// Fashion-MNIST, a linear model on scattering features, at epsilon 3
    FashionScattering(Options),
    /// CIFAR-10, a linear model on scattering features, at epsilon 3
    CifarScattering(Options),
    /// CIFAR-10, a small CNN on scattering features, at epsilon 3
    CifarCnn(Options),
    /// CIFAR-10 at epsilon 2 and 8, without public data
    CifarAbadi(Options),
    /// MNIST from epsilon 0.1 to 10
    MnistCurve(Options),
    /// Fashion-MNIST from epsilon 0.1 to 10
    FashionCurve(Options),
    /// CIFAR-10 from epsilon 0.1 to 10
    CifarCurve(Options),
    /// What ClipBKD finds, by noise, clip norm and initialisation: table 2 of Jagielski, Ullman and Oprea
    AuditTable2(audit::table2::Options),
    /// What white-box canaries find at epsilon 1, 4 and 8, and in a single run at epsilon 4
    AuditCanaries(audit::canaries::Options),
    /// What answers of final models tell at epsilon 10, from worst-case initial weights
    AuditBlackBox(audit::black_box::Options),
    /// What membership inference, a backdoor and ClipBKD find: figure 2 of Jagielski, Ullman and Oprea
    AuditFigure2(audit::figure2::Options),
    /// What is lost without privacy: bits out of exact counts, and a canary out of a model
    AuditMemory(audit::memory::Options),
    /// Both ensembles of teachers: MNIST and the census
    Pate(pate::Options),
    /// MNIST, a student of 250 teachers
    PateMnist(pate::Options),
    /// The census, a student of 250 teachers
    PateAdult(pate::Options),
    /// MNIST, the votes of 250 other teachers, which are in the data
    PateVotes(pate_votes::Options),
}

/// What every experiment can be told.
#[derive(Args)]
struct Options {
    /// A folder for the table, the plots and the points of the plots. Models that it has already are not trained again
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// How many threads work. Results do not depend on it
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    threads: NonZeroUsize,
    /// How many times each model is trained, with seeds from 0 on
    #[arg(long, value_name = "NUMBER", default_value = "5")]
    seeds: NonZeroU64,
}

fn main() -> ExitCode {
    match answer(&Arguments::parse().command) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("error[{}]: {failure}", failure.code());
            eprintln!("  help: {}", failure.suggestion());
            ExitCode::FAILURE
        }
    }
}

fn answer(command: &Command) -> Result<String, Failure> {
    let (experiment, options) = match command {
        Command::List => return Ok(report::list(&EXPERIMENTS, &[&pate::MNIST, &pate::ADULT])),
        Command::Pate(options) => {
            let [digits, census] = [pate::MNIST.run(options)?, pate::ADULT.run(options)?];
            return Ok(format!("{digits}\n{census}"));
        }
        Command::PateMnist(options) => return pate::MNIST.run(options),
        Command::PateAdult(options) => return pate::ADULT.run(options),
        Command::PateVotes(options) => return pate_votes::run(options),
        Command::MnistCnn(options) => (&mnist_cnn::EXPERIMENT, options),
        Command::MnistTanh(options) => (&mnist_tanh::EXPERIMENT, options),
        Command::MnistAbadi(options) => (&mnist_abadi::EXPERIMENT, options),
        Command::MnistScattering(options) => (&scattering::MNIST, options),
        Command::FashionScattering(options) => (&scattering::FASHION, options),
        Command::CifarScattering(options) => (&cifar::LINEAR, options),
        Command::CifarCnn(options) => (&cifar::CNN, options),
        Command::CifarAbadi(options) => (&cifar::WITHOUT_PUBLIC, options),
        Command::MnistCurve(options) => (&scattering::MNIST_CURVE, options),
        Command::FashionCurve(options) => (&scattering::FASHION_CURVE, options),
        Command::CifarCurve(options) => (&cifar::CURVE, options),
        Command::AuditTable2(options) => return audit::table2::run(options),
        Command::AuditCanaries(options) => return audit::canaries::run(options),
        Command::AuditBlackBox(options) => return audit::black_box::run(options),
        Command::AuditFigure2(options) => return audit::figure2::run(options),
        Command::AuditMemory(options) => return audit::memory::run(options),
    };
    run::run(experiment, options)
}
