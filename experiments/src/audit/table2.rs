//! Table 2 of Jagielski, Ullman and Oprea (2020): how much of what DP-SGD promises ClipBKD takes, for two-layer networks on Fashion-MNIST.
//!
//! Classes 0 and 1, a random half of them (6,000), pixels between 0 and 1; a network 784-32-2; batches of 250 on average for 24 epochs, learning rate 0.15, true Poisson
//! samples. World 0 is the data as they are, in world 1 `k` rows are replaced by the poisoned point. 1,000 trials of each world: 500 choose the
//! threshold, 500 judge.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Mutex;

use clap::Args;
use whit_audit::{Alpha, Group};
use whit_core::{Delta, Entropy, Neighbours};
use whit_learn::Clipping;
use whit_learn::audit::start::glorot;
use whit_learn::audit::{LockStep, Noising, Point, Start, Trials, World, clip_bkd, corrected};
use whit_learn::data::Dataset;
use whit_learn::evaluate::evaluate;
use whit_learn::model::LayerSpec;
use whit_learn::network::Network;
use whit_mechanism::{OsEntropy, crew};

use super::bar::Bar;
use super::scores::Scores;
use super::subject::{self, Numbers, PublicBits};
use super::{lock, picture};
use crate::failure::Failure;

/// Noise multipliers with the epsilon that the paper has for them; the last one is without noise.
const NOISES: [(f64, f64); 6] = [
    (5.02, 1.0),
    (2.68, 2.0),
    (1.55, 4.0),
    (1.01, 8.0),
    (0.73, 16.0),
    (0.0, f64::INFINITY),
];
const CLIPS: [f64; 3] = [0.5, 1.0, 2.0];
/// Multiples of Glorot's standard deviation; 0 is one fixed draw for all trials.
const INITS: [f64; 4] = [0.0, 0.5, 1.0, 2.0];
const GROUPS: [u64; 4] = [1, 2, 4, 8];

/// The paper's cells, in the order of noise, initialisation and clip.
const PUBLISHED: [[[f64; 3]; 4]; 6] = [
    [
        [0.13, 0.15, 0.13],
        [0.13, 0.17, 0.13],
        [0.06, 0.12, 0.09],
        [0.01, 0.06, 0.08],
    ],
    [
        [0.33, 0.37, 0.28],
        [0.27, 0.33, 0.39],
        [0.10, 0.17, 0.27],
        [0.01, 0.06, 0.17],
    ],
    [
        [0.89, 0.75, 0.71],
        [0.28, 0.52, 0.78],
        [0.08, 0.20, 0.54],
        [0.02, 0.10, 0.18],
    ],
    [
        [1.61, 1.85, 1.90],
        [0.33, 0.55, 1.27],
        [0.07, 0.25, 0.53],
        [0.01, 0.05, 0.20],
    ],
    [
        [2.15, 2.16, 2.43],
        [0.36, 0.80, 1.39],
        [0.13, 0.27, 0.72],
        [0.02, 0.08, 0.16],
    ],
    [
        [4.54, 4.54, 4.54],
        [0.29, 0.95, 2.36],
        [0.10, 0.42, 0.79],
        [0.03, 0.09, 0.27],
    ],
];

const EXAMPLES: u64 = 6000;
const BATCH: u64 = 250;
const STEPS: u64 = 576;
const LEARNING_RATE: f64 = 0.15;
/// Trials of each world.
const TRIALS: u64 = 1000;
/// What may go wrong.
const ALPHA: f64 = 0.01;
/// Trials of each world that choose by a fit: a tenth, and no more than that many, which know mean and deviation well enough.
const FITTING_MAX: u64 = 200;
/// Trials that are trained before their scores are kept.
const BLOCK: u64 = 10;

/// What stands above the table: its columns are bounds for those who did not choose among them.
const BEFOREHAND: &str = "Fix beforehand, before any score is seen: one world 0, one k, one way of choosing the threshold (by half of the trials, or by a fit), and the number of trials. \
    Each number is a bound at 99 % by itself, and all of them judge by the same trials: the largest of them, or a number after more trials that were added since the first was not liked, is none. \
    The corrected column shares 1 % among the k that are there: it is a bound whichever of them is the largest, if it was fixed beforehand which are there.\n\n";

/// What the command can be told.
#[derive(Args)]
pub(crate) struct Options {
    /// A folder for scores, table and plot. Models whose scores it has are not trained again
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// How many threads train
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    threads: NonZeroUsize,
    /// The rows of the table: 5.02, 2.68, 1.55, 1.01, 0.73, 0. All of them, if none is given
    #[arg(long, value_name = "MULTIPLIER", value_delimiter = ',')]
    noise: Vec<f64>,
    /// The clip norms: 0.5, 1, 2
    #[arg(long, value_name = "NORM", value_delimiter = ',')]
    clip: Vec<f64>,
    /// The columns: multiples of Glorot's deviation, 0 for one fixed draw
    #[arg(long, value_name = "MULTIPLE", value_delimiter = ',')]
    init: Vec<f64>,
    /// How many rows are poisoned: 1, 2, 4, 8
    #[arg(long, value_name = "ROWS", value_delimiter = ',')]
    group: Vec<u64>,
    /// Trials of each world, half of which choose the threshold. To be fixed before any score is seen: more of them after a look are no audit
    #[arg(long, value_name = "NUMBER", default_value_t = TRIALS)]
    trials: u64,
    /// Trains no more after so many minutes; the same command goes on
    #[arg(long, value_name = "MINUTES")]
    minutes: Option<f64>,
    /// Trains the worlds of the published program as well, in which the rows are the same points with the other class: twice as far apart
    #[arg(long)]
    opposite: bool,
    /// Shows what is there, and trains nothing
    #[arg(long)]
    show: bool,
}

/// One cell of the table.
#[derive(Clone, Copy)]
struct Cell {
    noise: usize,
    init: usize,
    clip: usize,
}

impl Cell {
    fn name(self) -> String {
        let (noise, init, clip) = (NOISES[self.noise].0, INITS[self.init], CLIPS[self.clip]);
        format!("table2-noise{noise}-init{init}-clip{clip}")
    }
}

/// Those of the list that were asked for, or all.
fn chosen(all: &[f64], asked: &[f64]) -> Vec<usize> {
    let wanted = |&at: &usize| asked.is_empty() || asked.contains(&all[at]);
    (0..all.len()).filter(wanted).collect()
}

/// What all cells share.
struct Site {
    data: Dataset,
    layers: Vec<LayerSpec>,
    network: Network,
    fixed: Vec<f32>,
    point: Point,
    opposite: Point,
}

impl Site {
    fn new() -> Result<Self, Failure> {
        let folder = crate::folder::of(std::env::var_os("WHIT_DATA"), "fashion-mnist")?;
        let all = subject::pictures(&folder)?;
        let data = subject::part(&all, 2, EXAMPLES as usize, 0).ok_or(Failure::NoTest)?;
        let layers = subject::layers(&[784, 32, 2]);
        let network = subject::network(&layers)?;
        let fixed = glorot(&layers, 1.0, &mut PublicBits(0));
        let pretrained = clip_bkd::pretrain(
            &data,
            &network,
            &fixed,
            (24, BATCH as usize, LEARNING_RATE as f32),
        )?;
        let point = clip_bkd::point(&data, clip_bkd::NORM, (&network, &pretrained))?;
        Ok(Self {
            data,
            layers,
            network,
            fixed,
            opposite: Point {
                class: 1 - point.class,
                ..point.clone()
            },
            point,
        })
    }

    fn start(&self, init: usize) -> Start {
        match INITS[init] {
            0.0 => Start::Fixed(self.fixed.clone()),
            scale => Start::Glorot(scale),
        }
    }

    /// Trains what is missing of a cell, until the time is over.
    fn train(
        &self,
        cell: Cell,
        groups: &[u64],
        scores: &mut Scores,
        options: &Options,
        bar: &mut Bar,
    ) -> Result<(), Failure> {
        let (noise, clip) = (NOISES[cell.noise].0, CLIPS[cell.clip]);
        let plan = numbers(noise, clip, Neighbours::ReplaceOne).plan()?;
        let noising = if noise > 0.0 {
            Noising::Plan
        } else {
            Noising::Nothing
        };
        let last: Vec<u32> = (0..EXAMPLES as u32).rev().collect();
        let start = self.start(cell.init);
        let mut first = 0;
        while first < options.trials {
            let trials: Vec<u64> = (first..(first + BLOCK).min(options.trials)).collect();
            first += BLOCK;
            let missing = |world: &u64| trials.iter().any(|&trial| !scores.has(trial, *world));
            let numbers: Vec<u64> = groups.iter().copied().filter(missing).collect();
            if numbers.is_empty() {
                continue;
            }
            if options
                .minutes
                .is_some_and(|minutes| bar.seconds() > 60.0 * minutes)
            {
                return Ok(());
            }
            let worlds: Vec<World> = numbers
                .iter()
                .map(|&number| match number.checked_sub(opposite(0)) {
                    Some(k) => World::replacing(&self.data, &last[..k as usize], &self.opposite),
                    None => World::replacing(&self.data, &last[..number as usize], &self.point),
                })
                .collect();
            let method = (
                Clipping::Flat,
                subject::sgd(&self.network, LEARNING_RATE, STEPS)?,
            );
            let lock_step = LockStep::new(&plan, &self.network, &worlds, method, noising)?;
            let found = Mutex::new(Vec::new());
            let failed = Mutex::new(None);
            crew::each(options.threads.get(), trials.clone(), |trial| {
                match self.trial(&lock_step, &start, trial, &numbers, trial == trials[0]) {
                    Ok(scores) => lock(&found).extend(scores),
                    Err(failure) => *lock(&failed) = Some(failure),
                }
            });
            if let Some(failure) = lock(&failed).take() {
                return Err(failure);
            }
            let mut found = std::mem::take(&mut *lock(&found));
            found.sort_by_key(|(key, _)| *key);
            let count = found.len() as u64;
            scores.keep(found)?;
            bar.step(count, &cell.name());
        }
        Ok(())
    }

    /// Answers for both classes at the poisoned point and at zero; of some models, the accuracy on the data, too.
    fn trial(
        &self,
        lock_step: &LockStep,
        start: &Start,
        trial: u64,
        numbers: &[u64],
        accuracy: bool,
    ) -> Result<Vec<super::Scored>, Failure> {
        let mut entropy = OsEntropy::new();
        let mut bits = entropy.open().map_err(whit_learn::Error::from)?;
        let start = start.weights(&self.layers, &mut bits);
        let models = lock_step.train(&start, &mut entropy)?;
        let mut inputs = self.point.features.clone();
        inputs.resize(2 * inputs.len(), 0.0);
        let each = numbers.iter().zip(&models).map(|(&world, weights)| {
            let outputs = self.network.predict(weights, &inputs);
            let outputs = outputs.map_err(whit_learn::Error::from)?;
            let mut values: Vec<f64> = outputs.into_iter().map(f64::from).collect();
            if accuracy {
                let found = evaluate(&self.network, weights, &self.data)?;
                values.push(found.accuracy.unwrap_or(f64::NAN));
            }
            Ok(((trial, world), values))
        });
        each.collect()
    }
}

fn numbers(noise: f64, clip: f64, relation: Neighbours) -> Numbers {
    Numbers {
        examples: EXAMPLES,
        batch: BATCH,
        steps: STEPS,
        clip,
        noise,
        relation,
    }
}

/// What a cell comes to.
struct Found {
    /// The largest over `k`, each at 99 %: as published, and **not corrected**.
    published_way: f64,
    /// The `k` of it.
    group: u64,
    /// The same, corrected for the number of `k`, at delta 1e-5.
    corrected: f64,
    /// Each `k` by itself.
    each: Vec<(u64, f64)>,
    /// Each `k` by itself, where a tenth of the trials (at most [`FITTING_MAX`]) choose, as if scores were normal.
    fitted: Vec<(u64, f64)>,
    accuracy: f64,
}

/// World 0 of a pair: the data as they are, as Algorithm 4 has it; or with the same points and the other class, as the published program has it.
#[derive(Clone, Copy, PartialEq)]
enum Other {
    AsTheyAre,
    OtherClass,
}

/// Number of the world in which `k` rows are the poisoned point with the other class.
fn opposite(k: u64) -> u64 {
    100 + k
}

fn found(
    scores: &Scores,
    class: usize,
    other: Other,
    options: &Options,
) -> Result<Option<Found>, Failure> {
    // (f(x_p) - f(0)) · y_p, with y_p standing for the two classes as 1 and -1.
    let margin = |values: &[f64]| values[class] - values[1 - class];
    let score = |values: &[f64]| margin(&values[..2]) - margin(&values[2..4]);
    let world = |number: u64| -> Option<Vec<f64>> {
        let models = scores.of(number, options.trials);
        (models.len() as u64 == options.trials)
            .then(|| models.iter().map(|values| score(values)).collect())
    };
    let pair = |k: u64| -> Option<(u64, Vec<f64>, Vec<f64>)> {
        let without = match other {
            Other::AsTheyAre => world(0)?,
            Other::OtherClass => world(opposite(k))?,
        };
        Some((k, without, world(k)?))
    };
    let pairs: Vec<_> = GROUPS.iter().filter_map(|&k| pair(k)).collect();
    if pairs.is_empty() {
        return Ok(None);
    }
    let trials = |delta: f64, choosing: u64| -> Result<Vec<Trials>, Failure> {
        let each = pairs.iter().map(|(k, without, with)| {
            Ok(Trials {
                without,
                with,
                choosing: choosing as usize,
                group: Group::new(*k as u32).map_err(whit_learn::Error::from)?,
                delta: Delta::new(delta).map_err(whit_learn::Error::from)?,
            })
        });
        each.collect()
    };
    let alpha = Alpha::new(ALPHA).map_err(whit_learn::Error::from)?;
    let half = options.trials / 2;
    let fitting = (options.trials / 10).min(FITTING_MAX);
    let (mut each, mut fitted) = (Vec::new(), Vec::new());
    for ((k, ..), trials) in pairs.iter().zip(trials(0.0, half)?) {
        each.push((*k, trials.bound(alpha)?.epsilon_lower()));
    }
    for ((k, ..), trials) in pairs.iter().zip(trials(0.0, fitting)?) {
        fitted.push((*k, trials.bound_by_fit(alpha)?.epsilon_lower()));
    }
    let best = each.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
    let (group, published_way) = best.unwrap_or((0, 0.0));
    let corrected = corrected(&trials(1e-5, half)?, alpha)?.epsilon_lower();
    let numbers = std::iter::once(0).chain(pairs.iter().map(|pair| pair.0));
    let accuracies: Vec<f64> = numbers
        .flat_map(|number| scores.of(number, options.trials))
        .filter_map(|values| values.get(4).copied())
        .collect();
    Ok(Some(Found {
        published_way,
        group,
        corrected,
        each,
        fitted,
        accuracy: accuracies.iter().sum::<f64>() / accuracies.len() as f64,
    }))
}

/// Trains what is missing, and gives the table of what is there.
pub(crate) fn run(options: &Options) -> Result<String, Failure> {
    let site = Site::new()?;
    let mut groups = vec![0];
    let wanted = |k: &u64| options.group.is_empty() || options.group.contains(k);
    groups.extend(GROUPS.iter().filter(|k| wanted(k)));
    if options.opposite {
        groups.extend(GROUPS.iter().filter(|k| wanted(k)).map(|&k| opposite(k)));
    }
    let noises = chosen(&NOISES.map(|(noise, _)| noise), &options.noise);
    let (inits, clips) = (chosen(&INITS, &options.init), chosen(&CLIPS, &options.clip));
    let mut cells = Vec::new();
    for &noise in &noises {
        for &init in &inits {
            cells.extend(clips.iter().map(|&clip| Cell { noise, init, clip }));
        }
    }
    let mut bar = Bar::new(cells.len() as u64 * groups.len() as u64 * options.trials);
    let mut text = String::from(BEFOREHAND);
    text.push_str(
        "| noise multiplier | initialisation | clip | world 0 | paper's cell | largest over k, as published (not corrected) | at k | corrected, 99 %, delta 1e-5 | each k | each k, by a fit of a tenth of the trials (at most 200) | training accuracy | epsilon of the paper | tight epsilon, replace one | tight epsilon, add or remove |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    let mut lines: Vec<picture::Line> = Vec::new();
    for cell in cells {
        let mut scores = Scores::open(options.out.as_deref(), &cell.name())?;
        if !options.show {
            let start = bar.seconds();
            site.train(cell, &groups, &mut scores, options, &mut bar)?;
            bar.say(&format!("{}: {:.0} s", cell.name(), bar.seconds() - start));
        }
        let (noise, theirs) = NOISES[cell.noise];
        let tight = |relation| -> Result<String, Failure> {
            if noise == 0.0 {
                return Ok("∞".into());
            }
            let plan = numbers(noise, CLIPS[cell.clip], relation).plan()?;
            Ok(format!("{:.3}", plan.epsilon().upper()))
        };
        for (other, words) in [
            (Other::AsTheyAre, "as they are"),
            (Other::OtherClass, "other class"),
        ] {
            let Some(found) = found(&scores, site.point.class as usize, other, options)? else {
                continue;
            };
            if noise > 0.0 {
                let plan = numbers(noise, CLIPS[cell.clip], Neighbours::ReplaceOne).plan()?;
                let name = format!(
                    "clip {}, {}, world 0 {words}",
                    CLIPS[cell.clip],
                    match INITS[cell.init] {
                        0.0 => "fixed start".into(),
                        scale => format!("start {scale} σ"),
                    },
                );
                let point = (plan.epsilon().upper(), found.published_way);
                match lines.iter_mut().find(|(other, _)| *other == name) {
                    Some((_, points)) => points.push(point),
                    None => lines.push((name, vec![point])),
                }
            }
            let listed = |each: &[(u64, f64)]| {
                let each = each.iter().map(|(k, epsilon)| format!("{k}: {epsilon:.2}"));
                each.collect::<Vec<_>>().join(", ")
            };
            text += &format!(
                "| {noise} | {} | {} | {words} | {:.2} | {:.2} | {} | {:.2} | {} | {} | {:.1} % | {theirs} | {} | {} |\n",
                match INITS[cell.init] {
                    0.0 => "fixed".into(),
                    scale => format!("{scale} σ"),
                },
                CLIPS[cell.clip],
                PUBLISHED[cell.noise][cell.init][cell.clip],
                found.published_way,
                found.group,
                found.corrected,
                listed(&found.each),
                listed(&found.fitted),
                100.0 * found.accuracy,
                tight(Neighbours::ReplaceOne)?,
                tight(Neighbours::AddRemove)?,
            );
        }
    }
    let title = "ClipBKD on Fashion-MNIST, largest over k (not corrected)";
    picture::write(options.out.as_deref(), "audit-table2", title, &lines)?;
    Ok(text)
}
