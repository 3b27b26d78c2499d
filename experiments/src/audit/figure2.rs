//! Figure 2 of Jagielski, Ullman and Oprea (2020): membership inference, the plain backdoor and ClipBKD, on logistic regression and two-layer networks, over the
//! epsilon of the plan.
//!
//! Fashion-MNIST and CIFAR-10 with their first two classes, and Location-30 instead of Purchase-100, which cannot be had. Every world of a trial shares its sample and its noise:
//! the data as they are, a record left out for another one (membership inference), `k` rows with the pattern, and `k` copies of the poisoned point. Membership is inferred by the loss and by
//! the likelihood ratio, of which the threshold is chosen, and the ratio fitted, on the trials that do not judge.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use clap::{Args, ValueEnum};
use whit_audit::{Alpha, Group};
use whit_core::{Delta, Neighbours};
use whit_learn::audit::backdoor::{self, Pattern};
use whit_learn::audit::start::glorot;
use whit_learn::audit::{LockStep, Noising, Point, Trials, World, clip_bkd, scores};
use whit_learn::data::{Dataset, load_public};
use whit_learn::{Clipping, Recipe};
use whit_mechanism::{OsEntropy, crew};

use super::bar::Bar;
use super::scores::Scores;
use super::subject::{self, Numbers, PublicBits};
use super::{lock, picture};
use crate::failure::Failure;

/// Noise multipliers with the epsilon that the paper has for them.
const NOISES: [(f64, f64); 5] = [
    (5.02, 1.0),
    (2.68, 2.0),
    (1.55, 4.0),
    (1.01, 8.0),
    (0.73, 16.0),
];
const BATCH: u64 = 250;
const EPOCHS: u64 = 24;
const LEARNING_RATE: f64 = 0.15;
const ALPHA: f64 = 0.01;
/// Rows that are poisoned.
const GROUP: usize = 4;
/// Examples with the pattern that a model is asked about.
const ASKED: usize = 20;
const BLOCK: u64 = 10;
/// Attacks, in the order of their worlds and scores.
const ATTACKS: [&str; 4] = [
    "membership, loss",
    "membership, likelihood ratio",
    "backdoor",
    "ClipBKD",
];

/// What is trained on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Data {
    Fashion,
    Cifar,
    Location,
}

/// What is trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Model {
    Logistic,
    TwoLayer,
}

/// What the command can be told.
#[derive(Args)]
pub(crate) struct Options {
    /// A folder for scores. Models whose scores it has are not trained again
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// How many threads train
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    threads: NonZeroUsize,
    /// The data
    #[arg(long, value_enum)]
    data: Data,
    /// The model
    #[arg(long, value_enum)]
    model: Model,
    /// Noise multipliers: 5.02, 2.68, 1.55, 1.01, 0.73. All of them, if none is given
    #[arg(long, value_name = "MULTIPLIER", value_delimiter = ',')]
    noise: Vec<f64>,
    /// Trials of each world, half of which choose the threshold
    #[arg(long, value_name = "NUMBER", default_value_t = 1000)]
    trials: u64,
    /// Trains no more after so many minutes; the same command goes on
    #[arg(long, value_name = "MINUTES")]
    minutes: Option<f64>,
}

/// Check-ins: a class from 1 on, and 446 numbers that are 0 or 1.
fn location(folder: &Path) -> Result<Dataset, Failure> {
    let path = folder.join("bangkok");
    let malformed = || Failure::Kept { path: path.clone() };
    #[expect(clippy::disallowed_methods, reason = "a door reads files")]
    let text = std::fs::read_to_string(&path).map_err(|_| Failure::Missing {
        folder: folder.into(),
        file: "bangkok",
    })?;
    let (mut features, mut labels) = (Vec::new(), Vec::new());
    for line in text.lines().filter(|line| !line.is_empty()) {
        let mut cells = line.split(',').map(|cell| cell.trim_matches('"'));
        let class: u32 = cells
            .next()
            .and_then(|cell| cell.parse().ok())
            .ok_or_else(malformed)?;
        labels.push(class.wrapping_sub(1));
        for cell in cells {
            features.push(cell.parse::<f32>().map_err(|_| malformed())?);
        }
    }
    let width = features.len() / labels.len().max(1);
    Dataset::with_classes(vec![width], features, labels, 30).ok_or_else(malformed)
}

impl Data {
    fn load(self) -> Result<Dataset, Failure> {
        let name = match self {
            Self::Fashion => "fashion-mnist",
            Self::Cifar => "cifar-10",
            Self::Location => "location30",
        };
        let folder = crate::folder::of(std::env::var_os("WHIT_DATA"), name)?;
        let (all, classes) = match self {
            Self::Fashion => (subject::pictures(&folder)?, 2),
            Self::Cifar => {
                let recipe: Recipe = crate::cifar::LINEAR.settings[0].recipe(0)?;
                (load_public(&recipe.data, &folder)?, 2)
            }
            Self::Location => (location(&folder)?, 30),
        };
        // Rows beyond the last ones are the records that take the place of others.
        let rows = if self == Self::Location { 5000 } else { 6000 };
        subject::part(&all, classes, rows, 0).ok_or(Failure::NoTest)
    }
}

/// Trains what is missing, and gives the table.
pub(crate) fn run(options: &Options) -> Result<String, Failure> {
    let data = options.data.load()?;
    let (examples, classes) = (data.rows() as u64, data.classes().unwrap_or(2));
    let widths: &[usize] = match options.model {
        Model::Logistic => &[data.width(), classes as usize],
        Model::TwoLayer => &[data.width(), 32, classes as usize],
    };
    let layers = subject::layers(widths);
    let network = subject::network(&layers)?;
    let start = glorot(&layers, 1.0, &mut PublicBits(0));
    let passes = (EPOCHS as usize, BATCH as usize, LEARNING_RATE as f32);
    let pretrained = clip_bkd::pretrain(&data, &network, &start, passes)?;
    let point = clip_bkd::point(&data, clip_bkd::NORM, (&network, &pretrained))?;
    // The record that a model of the others would find hardest is the adversary's choice; another one takes its place.
    let mut hardest = (f64::INFINITY, 0);
    for row in 0..data.rows() {
        let Some(record) = Point::of(&data, row) else {
            continue;
        };
        let found = scores::negative_loss(&network, &pretrained, &[record])?;
        if found < hardest.0 {
            hardest = (found, row);
        }
    }
    let target = Point::of(&data, hardest.1).ok_or(Failure::NoTest)?;
    let other = Point::of(&data, usize::from(hardest.1 == 0)).ok_or(Failure::NoTest)?;
    let last: Vec<u32> = (0..examples as u32).rev().collect();
    let poisoned = backdoor::points(&data, &last, Pattern::SQUARE, point.class);
    let asked = backdoor::points(
        &data,
        &(0..200).collect::<Vec<u32>>(),
        Pattern::SQUARE,
        point.class,
    );
    let asked: Vec<Point> = asked.into_iter().take(ASKED).collect();
    let first = poisoned.first().ok_or(Failure::NoTest)?;
    let worlds = [
        World::of(&data),
        World::replacing(&data, &[hardest.1 as u32], &other),
        World::replacing(&data, &last[..GROUP], first),
        World::replacing(&data, &last[..GROUP], &point),
    ];
    let noises = NOISES
        .iter()
        .filter(|(noise, _)| options.noise.is_empty() || options.noise.contains(noise));
    let mut bar = Bar::new(noises.clone().count() as u64 * options.trials * worlds.len() as u64);
    let mut text = format!(
        "{:?}, {:?}: lower bounds at 99 %, {} trials of each world, k = {GROUP} for the poisons\n\n| noise multiplier | epsilon of the paper | tight epsilon, replace one | {} |\n| --- | --- | --- | --- | --- | --- | --- |\n",
        options.data,
        options.model,
        options.trials,
        ATTACKS.join(" | ")
    );
    let mut lines: Vec<picture::Line> = ATTACKS
        .iter()
        .map(|name| ((*name).into(), Vec::new()))
        .collect();
    for &(noise, theirs) in noises {
        let numbers = Numbers {
            examples,
            batch: BATCH,
            steps: EPOCHS * examples / BATCH,
            clip: 1.0,
            noise,
            relation: Neighbours::ReplaceOne,
        };
        let plan = numbers.plan()?;
        let method = (
            Clipping::Flat,
            subject::sgd(&network, LEARNING_RATE, numbers.steps)?,
        );
        let lock_step = LockStep::new(&plan, &network, &worlds, method, Noising::Plan)?;
        let name = format!(
            "figure2-{:?}-{:?}-noise{noise}",
            options.data, options.model
        )
        .to_lowercase();
        let mut kept = Scores::open(options.out.as_deref(), &name)?;
        // Three numbers of each model: what the attacks ask.
        let trial = |trial: u64| -> whit_learn::Result<Vec<super::Scored>> {
            let models = lock_step.train(&start, &mut OsEntropy::new())?;
            let each = (0..).zip(&models).map(|(world, weights)| {
                let values = vec![
                    scores::negative_loss(&network, weights, std::slice::from_ref(&target))?,
                    scores::negative_loss(&network, weights, &asked)?,
                    scores::clip_bkd(&network, weights, &point)?,
                ];
                Ok(((trial, world), values))
            });
            each.collect()
        };
        let mut first = 0;
        while first < options.trials {
            let trials: Vec<u64> = (first..(first + BLOCK).min(options.trials)).collect();
            first += BLOCK;
            if trials.iter().all(|&trial| kept.has(trial, 3)) {
                continue;
            }
            if options
                .minutes
                .is_some_and(|minutes| bar.seconds() > 60.0 * minutes)
            {
                return Ok("not finished; the same command goes on\n".into());
            }
            let found = Mutex::new(Vec::new());
            crew::each(options.threads.get(), trials, |number| {
                lock(&found).push(trial(number))
            });
            let found = std::mem::take(&mut *lock(&found));
            let found: Vec<_> = found.into_iter().collect::<whit_learn::Result<Vec<_>>>()?;
            let mut found: Vec<_> = found.into_iter().flatten().collect();
            found.sort_by_key(|(key, _)| *key);
            bar.step(found.len() as u64, &name);
            kept.keep(found)?;
        }
        let column = |world: u64, value: usize| -> Vec<f64> {
            kept.of(world, options.trials)
                .iter()
                .map(|values| values[value])
                .collect()
        };
        let half = options.trials as usize / 2;
        // A record is in the data as they are, and not in world 1.
        let (member, not) = (column(0, 0), column(1, 0));
        let ratio = scores::likelihood_ratio(&not[..half], &member[..half]);
        let by_ratio =
            |scores: &[f64]| -> Vec<f64> { scores.iter().map(|score| ratio(*score)).collect() };
        let pairs = [
            (not.clone(), member.clone(), 1),
            (by_ratio(&not), by_ratio(&member), 1),
            (column(0, 1), column(2, 1), GROUP),
            (column(0, 2), column(3, 2), GROUP),
        ];
        text += &format!("| {noise} | {theirs} | {:.3} ", plan.epsilon().upper());
        let alpha = Alpha::new(ALPHA).map_err(whit_learn::Error::from)?;
        for ((without, with, group), line) in pairs.into_iter().zip(&mut lines) {
            let trials = Trials {
                without: &without,
                with: &with,
                choosing: half,
                group: Group::new(group as u32).map_err(whit_learn::Error::from)?,
                delta: Delta::new(1e-5).map_err(whit_learn::Error::from)?,
            };
            let found = trials.bound(alpha)?.epsilon_lower();
            line.1.push((plan.epsilon().upper(), found));
            text += &format!("| {found:.3} ");
        }
        text += "|\n";
    }
    let name = format!("audit-figure2-{:?}-{:?}", options.data, options.model).to_lowercase();
    let title = format!("{:?}, {:?}", options.data, options.model);
    picture::write(options.out.as_deref(), &name, &title, &lines)?;
    Ok(text)
}
