//! What is lost without privacy: records out of exact counts, and a canary out of a model that has learnt it by heart.

use clap::Args;
use whit_core::{AddRemove, Bits, L2, Neighbours, Ratio, Scale, Secret, Sensitivity};
use whit_learn::Clipping;
use whit_learn::audit::start::glorot;
use whit_learn::audit::{LockStep, Noising, Point, World, scores};
use whit_mechanism::{OsEntropy, RoundedGaussian};

use super::subject::{self, Numbers, PublicBits};
use crate::failure::Failure;

/// People of the reconstruction, each with one secret bit, and the counts that are asked.
const PEOPLE: usize = 128;
const COUNTS: usize = 640;
/// Candidates that a canary is ranked among: ten bits.
const CANDIDATES: usize = 1024;

/// What the command can be told.
#[derive(Args)]
pub(crate) struct Options {
    /// How often each is done, for means
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    runs: u64,
}

/// Both tables.
pub(crate) fn run(options: &Options) -> Result<String, Failure> {
    Ok(reconstruction(options)? + &exposure(options)?)
}

/// Counts of random halves of the people, with noise of this deviation, and the bits that fit them best \[DN03\]: the share that is right.
fn reconstructed(seed: u64, deviation: u64) -> Result<f64, Failure> {
    let mut bits = PublicBits(seed);
    let secret: Vec<f64> = (0..PEOPLE).map(|_| (bits.word() & 1) as f64).collect();
    let asked: Vec<Vec<f64>> = (0..COUNTS)
        .map(|_| (0..PEOPLE).map(|_| (bits.word() & 1) as f64).collect())
        .collect();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    let mut counts: Vec<i64> = asked.iter().map(|row| dot(row, &secret) as i64).collect();
    if deviation > 0 {
        let scale = Scale::new(Ratio::from(deviation)).map_err(whit_learn::Error::from)?;
        let noise = RoundedGaussian::new(scale, Sensitivity::<L2, AddRemove>::new(Ratio::one()));
        let release = noise.release(Secret::new(counts), &mut OsEntropy::new());
        counts = release.map_err(whit_learn::Error::from)?.into_value();
    }
    // Least squares by conjugate gradients: as many turns as there are people are exact but for rounding.
    let apply = |x: &[f64]| -> Vec<f64> {
        let mut out = vec![0.0; PEOPLE];
        for row in &asked {
            let along = dot(row, x);
            out.iter_mut()
                .zip(row)
                .for_each(|(out, x)| *out += along * x);
        }
        out
    };
    let mut rest = vec![0.0; PEOPLE];
    for (row, count) in asked.iter().zip(&counts) {
        rest.iter_mut()
            .zip(row)
            .for_each(|(rest, x)| *rest += *count as f64 * x);
    }
    let (mut guess, mut step) = (vec![0.0; PEOPLE], rest.clone());
    let mut square = dot(&rest, &rest);
    for _ in 0..PEOPLE {
        if square < 1e-18 {
            break;
        }
        let along = apply(&step);
        let length = square / dot(&step, &along);
        guess
            .iter_mut()
            .zip(&step)
            .for_each(|(x, s)| *x += length * s);
        rest.iter_mut()
            .zip(&along)
            .for_each(|(r, a)| *r -= length * a);
        let next = dot(&rest, &rest);
        let share = next / square;
        step.iter_mut()
            .zip(&rest)
            .for_each(|(s, r)| *s = r + share * *s);
        square = next;
    }
    let right = guess
        .iter()
        .zip(&secret)
        .filter(|(x, secret)| (**x > 0.5) == (**secret > 0.5));
    Ok(right.count() as f64 / PEOPLE as f64)
}

fn reconstruction(options: &Options) -> Result<String, Failure> {
    let mut text = format!(
        "Reconstruction: {PEOPLE} secret bits out of {COUNTS} counts of random halves, mean of {} runs\n\n| noise of a count, deviation | all counts together, mu of Gaussian DP | bits found |\n| --- | --- | --- |\n",
        options.runs
    );
    for deviation in [0, 1, 4, 16, 64] {
        let mut found = 0.0;
        for seed in 0..options.runs {
            found += reconstructed(seed, deviation)?;
        }
        // A person is in half of the counts, in all of them at worst.
        let mu = match deviation {
            0 => "∞".into(),
            deviation => format!("{:.2}", (COUNTS as f64).sqrt() / deviation as f64),
        };
        text += &format!(
            "| {deviation} | {mu} | {:.1} % |\n",
            100.0 * found / options.runs as f64
        );
    }
    Ok(text + "\n")
}

/// How a canary of random pixels ranks among candidates that were not in the data, in bits: `log2 |R| - log2 rank` [CLE+19].
fn exposure(options: &Options) -> Result<String, Failure> {
    const EXAMPLES: u64 = 300;
    let folder = crate::folder::of(std::env::var_os("WHIT_DATA"), "fashion-mnist")?;
    let all = subject::pictures(&folder)?;
    let data = subject::part(&all, 2, EXAMPLES as usize, 3).ok_or(Failure::NoTest)?;
    let layers = subject::layers(&[784, 32, 2]);
    let network = subject::network(&layers)?;
    let start = glorot(&layers, 1.0, &mut PublicBits(4));
    let mut text = format!(
        "Exposure: one canary of random pixels among {EXAMPLES} records, 400 steps of a third of them, clip norm 1; its rank by loss among {CANDIDATES} candidates (10 bits at most), mean of {} runs\n\n| noise multiplier | tight epsilon, add or remove | exposure, bits |\n| --- | --- | --- |\n",
        options.runs
    );
    for noise in [0.0, 0.5, 1.0, 4.0] {
        let numbers = Numbers {
            examples: EXAMPLES,
            batch: EXAMPLES / 3,
            steps: 400,
            clip: 1.0,
            noise,
            relation: Neighbours::AddRemove,
        };
        let plan = numbers.plan()?;
        let noising = if noise > 0.0 {
            Noising::Plan
        } else {
            Noising::Nothing
        };
        let mut exposure = 0.0;
        for run in 0..options.runs {
            let mut bits = PublicBits(1000 + run);
            // From -1 to 1: candidates have nothing in common that a model could learn in place of one of them.
            let mut candidate = || Point {
                features: (0..784)
                    .map(|_| (bits.word() >> 40) as f32 / 8_388_608.0 - 1.0)
                    .collect(),
                class: 1,
            };
            let canary = candidate();
            let others: Vec<Point> = (1..CANDIDATES).map(|_| candidate()).collect();
            let worlds = [World::adding(&data, [&canary])];
            let method = (Clipping::Flat, subject::sgd(&network, 0.5, numbers.steps)?);
            let lock_step = LockStep::new(&plan, &network, &worlds, method, noising)?;
            let model = lock_step
                .train(&start, &mut OsEntropy::new())?
                .swap_remove(0);
            let score = |point: &Point| {
                scores::negative_loss(&network, &model, std::slice::from_ref(point))
            };
            let own = score(&canary)?;
            let mut rank = 1;
            for other in &others {
                rank += u32::from(score(other)? >= own);
            }
            exposure += (CANDIDATES as f64).log2() - f64::from(rank).log2();
        }
        let epsilon = match noise {
            0.0 => "∞".into(),
            _ => format!("{:.2}", plan.epsilon().upper()),
        };
        text += &format!(
            "| {noise} | {epsilon} | {:.2} |\n",
            exposure / options.runs as f64
        );
    }
    Ok(text)
}
