//! A black-box audit from worst-case initial weights, on 1,000 records of MNIST at epsilon 10, beside Annamalai and De Cristofaro (2024).
//!
//! The adversary chooses the initial weights and one record, and sees answers of the final model only. Weights are pretrained on other records, without privacy, until
//! gradients of usual records are small. Then one hidden unit is made to answer to the blank picture alone: every pixel with ink turns it off, and its answer is as wrong as can be. So the gradient of the
//! blank picture has one direction in all steps, which nothing else moves, and the answer there reads it. Every record takes part in every step, as published, so that the run is one Gaussian mechanism: the bound on its mu needs no model, and
//! the epsilon that follows from it is exact for such a run. Beside it stands the bound at delta 1e-5 that needs no model at all.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Mutex;

use clap::Args;
use whit_audit::{Alpha, Group};
use whit_core::{Delta, Neighbours};
use whit_learn::audit::start::glorot;
use whit_learn::audit::{LockStep, Noising, Point, Trials, World, clip_bkd};
use whit_learn::evaluate::evaluate;
use whit_learn::{Clipping, Draft, NoiseDraft, Plan, SamplerDraft};
use whit_mechanism::{OsEntropy, crew};

use super::bar::Bar;
use super::lock;
use super::scores::Scores;
use super::subject::{self, PublicBits};
use crate::failure::Failure;

const RECORDS: usize = 1000;
const STEPS: u64 = 100;
const EPSILON: f64 = 10.0;
const DELTA: f64 = 1e-5;
const LEARNING_RATE: f64 = 1.0;
const CLIP: f64 = 1.0;
/// The class of the blank picture, and the one that the weights give it at first.
const CLASS: usize = 9;
const WRONG: usize = 1;
/// How much the unit of the blank picture says for the wrong class, and against the other.
const PUSH: f32 = 6.0;
const PIXELS: usize = 784;
const HIDDEN: usize = 32;

/// Gives the last hidden unit to the blank picture.
fn craft(weights: &mut [f32]) {
    let unit = HIDDEN - 1;
    let (first, rest) = weights.split_at_mut(PIXELS * HIDDEN);
    first[unit * PIXELS..].fill(-1.0);
    let (biases, second) = rest.split_at_mut(HIDDEN);
    biases[unit] = 1.0;
    for (class, row) in second.chunks_exact_mut(HIDDEN).take(10).enumerate() {
        row[unit] = match class {
            WRONG => PUSH,
            CLASS => -PUSH,
            _ => 0.0,
        };
    }
}
/// Trials that are trained before their scores are kept.
const BLOCK: u64 = 20;

/// What the command can be told.
#[derive(Args)]
pub(crate) struct Options {
    /// A folder for scores. Models whose scores it has are not trained again
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// How many threads train
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    threads: NonZeroUsize,
    /// Trials of each world, half of which choose the threshold
    #[arg(long, value_name = "NUMBER", default_value_t = 1000)]
    trials: u64,
    /// Initial weights as they are drawn, for comparison
    #[arg(long)]
    average: bool,
    /// Trains no more after so many minutes; the same command goes on
    #[arg(long, value_name = "MINUTES")]
    minutes: Option<f64>,
}

/// Trains what is missing, and says what was found.
pub(crate) fn run(options: &Options) -> Result<String, Failure> {
    let folder = crate::folder::of(std::env::var_os("WHIT_DATA"), "mnist")?;
    let all = subject::pictures(&folder)?;
    let both = subject::part(&all, 10, 2 * RECORDS, 1).ok_or(Failure::NoTest)?;
    // The adversary's own records, and those that are protected.
    let [own, data] = [0, RECORDS].map(|first| subject::rows(&both, first..first + RECORDS));
    let (own, data) = (own.ok_or(Failure::NoTest)?, data.ok_or(Failure::NoTest)?);
    let layers = subject::layers(&[PIXELS, HIDDEN, 10]);
    let network = subject::network(&layers)?;
    let mut start = glorot(&layers, 1.0, &mut PublicBits(2));
    if !options.average {
        start = clip_bkd::pretrain(&own, &network, &start, (200, 50, 0.1))?;
        craft(&mut start);
    }
    let accuracy = evaluate(&network, &start, &data)?
        .accuracy
        .unwrap_or(f64::NAN);
    let blank = Point {
        features: vec![0.0; PIXELS],
        class: CLASS as u32,
    };
    let plan = Plan::new(&Draft {
        sampler: SamplerDraft::All,
        steps: STEPS,
        clip_norm: CLIP,
        adaptive: None,
        noise: NoiseDraft::Epsilon(EPSILON),
        delta: DELTA,
        relation: Neighbours::AddRemove,
        examples_public: RECORDS as u64,
    })?;
    let worlds = [World::of(&data), World::adding(&data, [&blank])];
    let method = || -> Result<_, Failure> {
        Ok((
            Clipping::Flat,
            subject::sgd(&network, LEARNING_RATE, STEPS)?,
        ))
    };
    let lock_step = LockStep::new(&plan, &network, &worlds, method()?, Noising::Plan)?;
    let name = if options.average {
        "black-box-average"
    } else {
        "black-box-worst"
    };
    let mut scores = Scores::open(options.out.as_deref(), name)?;
    let mut bar = Bar::new(2 * options.trials);
    let mut first = 0;
    while first < options.trials {
        let trials: Vec<u64> = (first..(first + BLOCK).min(options.trials)).collect();
        first += BLOCK;
        if trials
            .iter()
            .all(|&trial| scores.has(trial, 0) && scores.has(trial, 1))
        {
            continue;
        }
        if options
            .minutes
            .is_some_and(|minutes| bar.seconds() > 60.0 * minutes)
        {
            return Ok("not finished; the same command goes on\n".into());
        }
        let found = Mutex::new(Vec::new());
        let failed = Mutex::new(None);
        crew::each(options.threads.get(), trials, |trial| {
            let models = lock_step.train(&start, &mut OsEntropy::new());
            let scored = models.and_then(|models| {
                let score = |weights: &Vec<f32>| {
                    let outputs = network.predict(weights, &blank.features)?;
                    Ok(f64::from(outputs[CLASS]) - f64::from(outputs[WRONG]))
                };
                models
                    .iter()
                    .map(score)
                    .collect::<whit_learn::Result<Vec<f64>>>()
            });
            match scored {
                Ok(scored) => {
                    let each = (0..).zip(scored);
                    let each = each.map(|(world, score)| ((trial, world), vec![score]));
                    lock(&found).extend(each);
                }
                Err(error) => *lock(&failed) = Some(error),
            }
        });
        if let Some(error) = lock(&failed).take() {
            return Err(error.into());
        }
        let found = std::mem::take(&mut *lock(&found));
        bar.step(found.len() as u64, name);
        scores.keep(found)?;
    }
    let world = |number: u64| -> Vec<f64> {
        let models = scores.of(number, options.trials);
        models.iter().map(|values| values[0]).collect()
    };
    let (without, with) = (world(0), world(1));
    let delta = Delta::new(DELTA).map_err(whit_learn::Error::from)?;
    let trials = Trials {
        without: &without,
        with: &with,
        choosing: options.trials as usize / 2,
        group: Group::ONE,
        delta,
    };
    let mut text = format!(
        "{} initial weights, accuracy {:.1} % on the records at first; noise multiplier {:.3}, claimed epsilon {:.3}\n\n| confidence | mu at least, no model | epsilon of a Gaussian run with that mu | epsilon at least, no model |\n| --- | --- | --- | --- |\n",
        if options.average {
            "Usual"
        } else {
            "Worst-case"
        },
        100.0 * accuracy,
        plan.noise_multiplier(),
        plan.epsilon().upper(),
    );
    for level in [0.05, 0.01] {
        let alpha = Alpha::new(level).map_err(whit_learn::Error::from)?;
        let mu = trials.mu_bound(alpha)?;
        text += &format!(
            "| {:.0} % | {:.3} | {:.3} | {:.3} |\n",
            100.0 * (1.0 - level),
            mu.mu_lower(),
            mu.epsilon_if_gaussian(delta).epsilon_lower(),
            trials.bound(alpha)?.epsilon_lower(),
        );
    }
    Ok(text)
}
