//! Votes of other teachers on the same images: 250 teachers by kernel ridge regression on the pixels, each of the next 240 training images of MNIST, as they are in the data and not trained here. They agree less than ours, as those of the paper do.
//!
//! No student learns from it: it shows what the aggregator answers, how much of that is right and what it costs, with the noise of the paper. Every draw is a run of its own, that an owner would pay for.

use std::io::Read;
use std::path::Path;

use clap::Args;
use flate2::read::MultiGzDecoder;
use whit_core::{Neighbours, Secret};
use whit_learn::pate::{Accounting, Aggregation, Terms, Test, Votes, owner};
use whit_learn::{Payment, Uncharged};
use whit_mechanism::OsEntropy;

use crate::failure::Failure;
use crate::folder;

/// What can be told.
#[derive(Args)]
pub(crate) struct Options {
    /// How often the queries are asked, with fresh noise
    #[arg(long, value_name = "NUMBER", default_value = "20")]
    draws: std::num::NonZeroU32,
}

const TEACHERS: usize = 250;
/// The first of the test images.
const QUERIES: usize = 640;
const IMAGES: usize = 10_000;
const CLASSES: usize = 10;

const FOLDER: &str = "pate-regenerated-mnist250";
const VOTES: &str = "votes_250x10000_u8.gz";
const LABELS: &str = "t10k-labels-idx1-ubyte.gz";
/// Magic and count.
const HEADER: usize = 8;

/// Papernot et al. 2018, table 1, MNIST. Training image `k` went to teacher `k / 240`: for images that are replaced and never added.
const TERMS: Terms = Terms {
    test: Some(Test {
        threshold: 200.0,
        sigma: 150.0,
    }),
    sigma: 40.0,
    queries: QUERIES as u64,
    answers_max: 286,
    classes: CLASSES,
    delta: 1e-5,
    sanitise: None,
    neighbours: Neighbours::ReplaceOne,
};

/// What a draw shows, in this order.
const FIGURES: [&str; 6] = [
    "answers",
    "queries tested",
    "answers that are the truth, %",
    "data-dependent epsilon",
    "its order",
    "by the tighter conversion",
];

/// The table.
pub(crate) fn run(options: &Options) -> Result<String, Failure> {
    let root = || std::env::var_os("WHIT_DATA");
    let votes = unpacked(&folder::within(root(), FOLDER, &[VOTES])?.join(VOTES))?;
    let labels = unpacked(&folder::within(root(), "mnist", &[LABELS])?.join(LABELS))?;
    let asked = |teacher: &[u8]| teacher[..QUERIES].iter().copied().map(u32::from).collect();
    let cast: Vec<Vec<u32>> = votes
        .chunks_exact(IMAGES)
        .take(TEACHERS)
        .map(asked)
        .collect();
    let votes = Votes::from_votes(&cast.concat(), QUERIES, CLASSES);
    let votes = Secret::new(votes.map_err(whit_learn::Error::from)?);
    let truth = labels.get(HEADER..).unwrap_or_default();
    let mut drawn = Vec::new();
    for _ in 0..options.draws.get() {
        drawn.push(draw(&votes, truth)?);
    }
    table(&votes, &drawn)
}

fn unpacked(path: &Path) -> Result<Vec<u8>, Failure> {
    let unread = |error: std::io::Error| Failure::Unread {
        path: path.into(),
        why: error.to_string(),
    };
    #[expect(clippy::disallowed_methods, reason = "a door opens files")]
    let file = std::fs::File::open(path).map_err(unread)?;
    let mut bytes = Vec::new();
    MultiGzDecoder::new(file)
        .read_to_end(&mut bytes)
        .map_err(unread)?;
    Ok(bytes)
}

fn draw(votes: &Secret<Votes>, truth: &[u8]) -> Result<[f64; FIGURES.len()], Failure> {
    let aggregation = Aggregation::new(&TERMS)?;
    let payment = Payment::uncharged(&aggregation, Uncharged);
    let outcome = aggregation.run(votes, payment, &mut OsEntropy::new())?;
    // The owner's numbers. MNIST is public, whatever this experiment calls it.
    let seen = owner::owner(&TERMS, votes, &outcome, Accounting::Realised).expose();
    let told = outcome.labels.iter().zip(truth);
    let right = told.filter(|(label, truth)| **label == Some(usize::from(**truth)));
    Ok([
        outcome.answered() as f64,
        outcome.tested as f64,
        100.0 * right.count() as f64 / outcome.answered().max(1) as f64,
        seen.published.epsilon,
        seen.published.order,
        seen.tight.epsilon,
    ])
}

fn table(votes: &Secret<Votes>, drawn: &[[f64; FIGURES.len()]]) -> Result<String, Failure> {
    let aggregation = Aggregation::new(&TERMS)?;
    let payment = Payment::uncharged(&aggregation, Uncharged);
    let outcome = aggregation.run(votes, payment, &mut OsEntropy::new())?;
    let all = owner::owner(&TERMS, votes, &outcome, Accounting::Expected).expose();
    let mut text = format!(
        "## MNIST: votes of {TEACHERS} other teachers\n\n{} draws of noise, {QUERIES} queries, at most {} answers, threshold 200, `σ₁ = 150`, `σ₂ = 40`. Guarantee, which is charged: epsilon {:.3} at delta 1e-5.\n\
         Without the cap, all queries by the probability that they are answered, as published tables count: {:.2} answers, data-dependent epsilon {:.4} at order {}; in the worst case of as many, {:.4}.\n\n\
         | what | mean | lowest | highest |\n| --- | --- | --- | --- |\n",
        drawn.len(),
        TERMS.answers_max,
        (aggregation.epsilon() * 1000.0).ceil() / 1000.0,
        all.expected_answered,
        all.published.epsilon,
        all.published.order,
        all.independent.epsilon,
    );
    for (place, name) in FIGURES.iter().enumerate() {
        let column = || drawn.iter().map(|one| one[place]);
        let mean = column().sum::<f64>() / drawn.len().max(1) as f64;
        text += &format!(
            "| {name} | {mean:.3} | {:.3} | {:.3} |\n",
            column().fold(f64::INFINITY, f64::min),
            column().fold(f64::NEG_INFINITY, f64::max),
        );
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_judged_by_their_labels() {
        let sure = [[250_u64, 0, 0, 0, 0, 0, 0, 0, 0, 0]; QUERIES].concat();
        let votes = Secret::new(Votes::from_histogram(&sure, CLASSES).expect("votes"));
        let [answers, tested, right, ..] = draw(&votes, &[0; QUERIES]).expect("entropy");
        assert!(answers <= 286.0 && answers <= tested && tested <= 640.0);
        assert!(right > 99.0, "250 votes under noise of 40: {right}");
        let [.., wrong, _, _, _] = draw(&votes, &[7; QUERIES]).expect("entropy");
        assert!(wrong < 1.0, "{wrong}");
        let text = table(&votes, &[[1.0; 6], [3.0; 6]]).expect("a price");
        assert!(
            text.contains("| answers | 2.000 | 1.000 | 3.000 |"),
            "{text}"
        );
    }
}
