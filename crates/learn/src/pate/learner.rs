//! # Learners
//! What teachers and students learn by, without any noise. A [`Learn`] turns a lesson into a [`Judge`], which gives scores to classes; both are for whoever has them in mind: a
//! teacher's judge is secret, and only its votes leave, through an aggregator.
//!
//! **Requires.** A learner is a function of its lesson, in its order, and of a public seed. It must not fail for what is in the lesson: after private examples were read nothing may. What comes here:
//! [`KernelRidge`], and any network of [`Model`] by [`PlainNetwork`].

use std::num::NonZeroUsize;

use super::kernel::{KernelModel, KernelRidge};
use super::view::Lesson;
use crate::clipped_sum::{BatchRows, Memory, non_private_sum};
use crate::error::{Error, Result, within};
use crate::loss::Loss;
use crate::model::{Architecture, Model, Tensor, init, tensors};
use crate::network::{Examples, Network};

/// Makes a judge of a lesson.
pub trait Learn: Sync {
    /// Refuses what cannot be learnt for its shape: `depth` numbers, `classes`. Called before private examples are read.
    fn check(&self, depth: usize, classes: usize) -> Result<()>;
    /// Learns. On at most so many threads, on which nothing may depend.
    fn learn(&self, lesson: Lesson, seed: u64, threads: NonZeroUsize) -> Result<Box<dyn Judge>>;
}

/// Gives scores.
pub trait Judge: Send + Sync {
    /// For each row, as many scores as there are classes.
    fn scores(&self, rows: &[f32], threads: NonZeroUsize) -> Result<Vec<f32>>;

    /// All its numbers, by name and with their shape, to write a student to a file. A teacher's are never asked for.
    fn tensors(&self) -> Vec<(String, Vec<usize>, &[f32])> {
        Vec::new()
    }
}

/// The classes with the largest scores, the first of several.
pub fn said(scores: &[f32], classes: usize) -> Vec<usize> {
    let best = |scores: &[f32]| {
        let mut best = 0;
        for (class, score) in scores.iter().enumerate() {
            if *score > scores[best] {
                best = class;
            }
        }
        best
    };
    scores.chunks_exact(classes.max(1)).map(best).collect()
}

impl Learn for KernelRidge {
    fn check(&self, _: usize, _: usize) -> Result<()> {
        Self::check(self)
    }

    fn learn(&self, lesson: Lesson, _: u64, threads: NonZeroUsize) -> Result<Box<dyn Judge>> {
        let shape = (lesson.depth, lesson.classes);
        let model = self.fit(lesson.features, &lesson.shares, shape, threads);
        Ok(Box::new(model))
    }
}

impl Judge for KernelModel {
    fn scores(&self, rows: &[f32], threads: NonZeroUsize) -> Result<Vec<f32>> {
        Ok(Self::scores(self, rows, threads))
    }

    fn tensors(&self) -> Vec<(String, Vec<usize>, &[f32])> {
        Self::tensors(self)
    }
}

/// A network, trained by Adam on shuffled batches of its lesson. A row counts for the class of its largest share.
#[derive(Clone, Debug, PartialEq)]
pub struct PlainNetwork {
    /// Which network. It gets rows of numbers, whatever they were of.
    pub model: Model,
    /// How often it sees each example.
    pub epochs: u32,
    /// How many at once.
    pub batch: usize,
    /// The learning rate of the first step, which falls to zero evenly.
    pub rate: f64,
}

/// The parameters of a network that was trained.
struct PlainModel {
    architecture: Architecture,
    network: Network,
    parameters: Vec<f32>,
}

/// Refuses dropout: nothing here draws its masks, so that it would be written and not done.
pub(super) fn no_dropout(model: &Model) -> Result<()> {
    let layers = model.layers.iter().flatten();
    let is_layer = layers.into_iter().any(|layer| layer.kind == "dropout");
    match model.dropout.is_some() || is_layer {
        true => Err(Error::Field {
            of: "a teacher or student, which learns without noise and by no chance,",
            field: "dropout",
            missing: false,
            passes: "",
        }),
        false => Ok(()),
    }
}

impl PlainNetwork {
    fn model(&self, depth: usize, classes: usize) -> Result<PlainModel> {
        no_dropout(&self.model)?;
        let architecture = self.model.architecture(&[depth], classes)?;
        let network = Network::from_specs(architecture.layers(), Loss::CrossEntropy)?;
        let parameters = init(architecture.layers(), self.model.seed.unwrap_or(0));
        Ok(PlainModel {
            architecture,
            network,
            parameters,
        })
    }
}

impl Learn for PlainNetwork {
    fn check(&self, depth: usize, classes: usize) -> Result<()> {
        let count = |what, value: f64| {
            let passes = (1.0..=1e6).contains(&value);
            within(what, value, passes, "from 1 to a million")
        };
        count("the number of epochs", self.epochs.into())?;
        count("the size of batches", self.batch as f64)?;
        let passes = self.rate > 0.0 && self.rate < 1e3;
        within(
            "the learning rate",
            self.rate,
            passes,
            "above 0, and below 1000",
        )?;
        self.model(depth, classes).map(drop)
    }

    fn learn(&self, lesson: Lesson, seed: u64, _: NonZeroUsize) -> Result<Box<dyn Judge>> {
        let mut model = self.model(lesson.depth, lesson.classes)?;
        let (network, parameters) = (&model.network, &mut model.parameters);
        let count = lesson.features.len() / lesson.depth.max(1);
        let mut rows: Vec<u32> = (0..count as u32).collect();
        let batches = count.div_ceil(self.batch.max(1));
        let steps = (batches * self.epochs as usize).max(1);
        let mut adam = Adam::new(parameters.len());
        let (mut memory, mut gradient) = (Memory::default(), Vec::new());
        let mut coins = Coins(seed);
        for step in 0..steps {
            if rows.is_empty() {
                break;
            }
            let at = step % batches.max(1);
            if at == 0 {
                coins.shuffle(&mut rows);
            }
            let end = ((at + 1) * self.batch).min(rows.len());
            let batch = &rows[at * self.batch..end];
            let batch = BatchRows {
                examples: &lesson,
                rows: batch,
                seeds: &[],
            };
            non_private_sum(network, parameters, batch, &mut memory, &mut gradient)?;
            let rate = self.rate * (1.0 - step as f64 / steps as f64);
            let share = 1.0 / (end - at * self.batch) as f32;
            adam.step(parameters, &gradient, share, rate as f32);
        }
        Ok(Box::new(model))
    }
}

impl Judge for PlainModel {
    fn scores(&self, rows: &[f32], _: NonZeroUsize) -> Result<Vec<f32>> {
        Ok(self.network.predict(&self.parameters, rows)?)
    }

    fn tensors(&self) -> Vec<(String, Vec<usize>, &[f32])> {
        let floats =
            |tensor: &Tensor| &self.parameters[tensor.offset..tensor.offset + tensor.len()];
        let each = tensors(self.architecture.layers()).into_iter();
        each.map(|tensor| (tensor.name.clone(), tensor.shape.clone(), floats(&tensor)))
            .collect()
    }
}

impl Examples for Lesson {
    fn load(&self, row: u32, input: &mut [f32]) -> Option<f32> {
        let row = row as usize;
        let features = self
            .features
            .get(row * self.depth..(row + 1) * self.depth)?;
        let shares = self
            .shares
            .get(row * self.classes..(row + 1) * self.classes)?;
        let class = *said(shares, self.classes).first()?;
        if features.len() != input.len() || shares[class] <= 0.0 {
            return None;
        }
        input.copy_from_slice(features);
        Some(class as f32)
    }
}

/// Adam with its usual constants [KB15].
struct Adam {
    mean: Vec<f32>,
    square: Vec<f32>,
    taken: i32,
}

impl Adam {
    const BETA: [f32; 2] = [0.9, 0.999];

    fn new(parameters: usize) -> Self {
        Self {
            mean: vec![0.0; parameters],
            square: vec![0.0; parameters],
            taken: 0,
        }
    }

    /// `share` turns the sum of a batch into its mean.
    fn step(&mut self, parameters: &mut [f32], gradient: &[f32], share: f32, rate: f32) {
        self.taken += 1;
        let [b, c] = Self::BETA;
        let rest = [b, c].map(|beta| 1.0 - beta.powi(self.taken));
        let each = parameters.iter_mut().zip(gradient);
        for ((p, g), (mean, square)) in each.zip(self.mean.iter_mut().zip(&mut self.square)) {
            let g = g * share;
            *mean = b * *mean + (1.0 - b) * g;
            *square = c * *square + (1.0 - c) * g * g;
            *p -= rate * (*mean / rest[0]) / ((*square / rest[1]).sqrt() + 1e-8);
        }
    }
}

/// Coins by a public seed, for orders that nobody has to be kept from knowing (SplitMix64). Never for noise.
pub(super) struct Coins(pub(super) u64);

impl Coins {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.word() % (last as u64 + 1);
            items.swap(last, other as usize);
        }
    }
}

/// Refuses data without classes, or with one.
pub(super) fn classes(classes: Option<u32>) -> Result<usize> {
    match classes {
        Some(count) if count >= 2 => Ok(count as usize),
        _ => Err(Error::Votes(super::VotesError::Classes {
            classes: classes.unwrap_or_default() as usize,
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::super::kernel::Kernel;
    use super::*;
    use whit_core::Fault;

    const ONE: NonZeroUsize = NonZeroUsize::MIN;

    /// Two rings, which no line parts.
    fn rings(count: usize) -> Lesson {
        let mut lesson = Lesson {
            depth: 2,
            classes: 2,
            ..Lesson::default()
        };
        for i in 0..count {
            let (angle, outer) = (i as f32 * 2.4, i % 2);
            let radius = if outer == 1 { 2.0 } else { 0.7 };
            lesson
                .features
                .extend([radius * angle.cos(), radius * angle.sin()]);
            lesson.shares.extend([1.0 - outer as f32, outer as f32]);
        }
        lesson
    }

    fn accuracy(judge: &dyn Judge, lesson: &Lesson) -> f64 {
        let scores = judge.scores(&lesson.features, ONE).expect("fits");
        let (said, truth) = (said(&scores, 2), said(&lesson.shares, 2));
        let right = said.iter().zip(&truth).filter(|(a, b)| a == b).count();
        right as f64 / truth.len() as f64
    }

    fn mlp() -> PlainNetwork {
        PlainNetwork {
            model: toml::from_str("kind = 'mlp'\nhidden = [16]").expect("a model"),
            epochs: 60,
            batch: 16,
            rate: 0.02,
        }
    }

    fn gaussian() -> KernelRidge {
        KernelRidge {
            kernel: Kernel::Gaussian { width: 0.5 },
            penalty: 0.01,
        }
    }

    #[test]
    fn learners_part_what_they_can() {
        let (lesson, fresh) = (rings(80), rings(200));
        let linear = KernelRidge {
            kernel: Kernel::Linear,
            ..gaussian()
        };
        let curved: [(&dyn Learn, bool); 3] =
            [(&gaussian(), true), (&mlp(), true), (&linear, false)];
        for (learner, parts) in curved {
            learner.check(2, 2).expect("fits");
            let judge = learner.learn(lesson.clone(), 3, ONE).expect("fits");
            let found = accuracy(&*judge, &fresh);
            assert_eq!(found > 0.95, parts, "{found}");
        }
    }

    /// What comes out is a function of the lesson: the same again, on any number of threads.
    #[test]
    fn the_same_lesson_teaches_the_same() {
        let two = NonZeroUsize::new(2).expect("two");
        for learner in [&gaussian() as &dyn Learn, &mlp()] {
            let scores = |threads| {
                let judge = learner.learn(rings(150), 3, threads).expect("fits");
                judge.scores(&rings(99).features, threads).expect("fits")
            };
            assert_eq!(scores(ONE), scores(two));
        }
    }

    #[test]
    fn an_empty_lesson_teaches_something_and_what_cannot_be_is_refused() {
        for learner in [&gaussian() as &dyn Learn, &mlp()] {
            let empty = Lesson {
                depth: 2,
                classes: 2,
                ..Lesson::default()
            };
            let judge = learner.learn(empty, 0, ONE).expect("nothing fails");
            let scores = judge.scores(&[1.0, 2.0, 3.0, 4.0], ONE).expect("fits");
            assert_eq!(scores.len(), 4);
        }
        for bad in [0.0, -1.0, f64::NAN] {
            let ridge = KernelRidge {
                penalty: bad,
                ..gaussian()
            };
            let wide = KernelRidge {
                kernel: Kernel::Gaussian { width: bad },
                ..gaussian()
            };
            let net = PlainNetwork { rate: bad, ..mlp() };
            assert!(ridge.check().is_err() && wide.check().is_err() && net.check(2, 2).is_err());
        }
        for text in [
            "kind = 'mlp'\nhidden = [4]\ndropout = 0.5",
            "kind = 'layers'\nlayers = [{ kind = 'dropout', rate = 0.5 }, { kind = 'linear', outputs = 2 }]",
        ] {
            let net = PlainNetwork {
                model: toml::from_str(text).expect("a model"),
                ..mlp()
            };
            let refused = net.check(2, 2).map_err(|error| error.code());
            assert_eq!(refused, Err("plan_field_unused"), "{text}");
        }
        assert!(classes(Some(1)).is_err() && classes(None).is_err() && classes(Some(2)).is_ok());
    }

    #[test]
    fn the_first_of_the_largest_is_said() {
        assert_eq!(said(&[1.0, 3.0, 3.0, f32::NAN, 0.0, -1.0], 3), [1, 0]);
    }
}
