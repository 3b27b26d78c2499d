//! The models of the benchmark, and one step of each.

use std::num::NonZeroUsize;

use whit_core::{AddRemove, L2, Neighbours, Ratio, Scale, Sensitivity};
use whit_learn::audit::{LockStep, Noising, World};
use whit_learn::clip::Clip;
use whit_learn::clipped_sum::{BatchRows, ClippedSum, Memory, non_private_sum};
use whit_learn::data::Dataset;
use whit_learn::layer::{
    Activation, Conv2d, Flatten, Function, Layer, Linear, Pool, Pooling, Window,
};
use whit_learn::loss::Loss;
use whit_learn::network::{Examples, Network};
use whit_learn::optimizer::{Optimizer, Rule};
use whit_learn::schedule::Schedule;
use whit_learn::{Clipping, Draft, NoiseDraft, Plan, SamplerDraft};
use whit_mechanism::{OsEntropy, RoundedGaussian};

/// A model and the batch that it is compared at.
pub(crate) struct Model {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) batch: usize,
    layers: fn() -> Vec<Box<dyn Layer>>,
}

pub(crate) fn models() -> [Model; 5] {
    let model = |name, title, batch, layers| Model {
        name,
        title,
        batch,
        layers,
    };
    [
        model("mlp784", "MLP 784-1000-10, 600", 600, || mlp(784)),
        model("mlp60", "MLP 60-1000-10, 600", 600, || mlp(60)),
        model(
            "logistic",
            "logistic regression 784-10, 4,096",
            4096,
            || vec![Box::new(Linear::new(784, 10))],
        ),
        model("cnn", "MNIST CNN, 256", 256, cnn),
        model("audit", "audited network 784-32-2, 250", 250, audited),
    ]
}

fn mlp(inputs: usize) -> Vec<Box<dyn Layer>> {
    vec![
        Box::new(Linear::new(inputs, 1000)),
        Box::new(Activation::new(Function::Relu, 1000)),
        Box::new(Linear::new(1000, 10)),
    ]
}

/// That of the audits of training: thousands of them are trained.
fn audited() -> Vec<Box<dyn Layer>> {
    vec![
        Box::new(Linear::new(784, 32)),
        Box::new(Activation::new(Function::Relu, 32)),
        Box::new(Linear::new(32, 2)),
    ]
}

fn cnn() -> Vec<Box<dyn Layer>> {
    let window = |side, channels, kernel, stride, padding| Window {
        height: side,
        width: side,
        channels,
        kernel,
        stride,
        padding,
    };
    let relu = |len| Activation::new(Function::Relu, len);
    vec![
        Box::new(Conv2d::new(window(28, 1, 8, 2, 3), 16)),
        Box::new(relu(14 * 14 * 16)),
        Box::new(Pool::new(window(14, 16, 2, 1, 0), Pooling::Max)),
        Box::new(Conv2d::new(window(13, 16, 4, 2, 0), 32)),
        Box::new(relu(5 * 5 * 32)),
        Box::new(Pool::new(window(5, 32, 2, 1, 0), Pooling::Max)),
        Box::new(Flatten::new(32, 16)),
        Box::new(Linear::new(512, 32)),
        Box::new(relu(32)),
        Box::new(Linear::new(32, 10)),
    ]
}

/// Numbers between `-size` and `size`, always the same.
fn numbers(count: usize, size: f32) -> Vec<f32> {
    let mut state = 1_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 40) as f32 / 8_388_608.0 - 1.0
    };
    (0..count).map(|_| size * next()).collect()
}

/// Random pixels; rows beyond the last start again.
struct Pixels {
    floats: Vec<f32>,
    width: usize,
    classes: u32,
}

/// Rows of the data, at most.
const ROWS_MAX: usize = 4096;

impl Examples for Pixels {
    fn load(&self, row: u32, input: &mut [f32]) -> Option<f32> {
        let start = row as usize * self.width % self.floats.len();
        input.copy_from_slice(&self.floats[start..start + self.width]);
        Some((row % self.classes) as f32)
    }
}

/// What a step does.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    /// Clipped sum, exact noise, update.
    Private,
    /// The same without noise, which is not private.
    Clipped,
    /// The plain sum of gradients, and the update.
    Plain,
}

/// A model in training.
pub(crate) struct Run {
    network: Network,
    sum: ClippedSum,
    noise: RoundedGaussian<AddRemove>,
    data: Pixels,
    rows: Vec<u32>,
    weights: Vec<f32>,
    optimizer: Optimizer,
    memory: Memory,
    gradient: Vec<f32>,
    buffer: Vec<i64>,
}

/// Small: what is learned does not matter here.
const RATE: f64 = 1e-4;

/// `2^-36` of the clip norm, which is 1.
const GRID_BITS: i32 = 36;

impl Run {
    pub(crate) fn new(model: &Model, batch: usize) -> Self {
        let network = Network::new((model.layers)(), Loss::CrossEntropy).expect("it fits");
        let width = network.input_len();
        let cap = batch + 6 * (batch as f64).sqrt() as usize;
        let clip = Clip::flat(1.0).expect("in range");
        let grid = 2.0_f64.powi(-GRID_BITS);
        let steps = 1_u64 << GRID_BITS;
        // A noise multiplier of 1.1.
        let scale = Scale::new(Ratio::from(steps / 10 * 11)).expect("in range");
        let sensitivity = Sensitivity::<L2, AddRemove>::new(Ratio::from(steps));
        Self {
            sum: ClippedSum::new(&network, clip, grid, cap as u32).expect("it fits"),
            noise: RoundedGaussian::new(scale, sensitivity),
            data: Pixels {
                floats: numbers(batch.min(ROWS_MAX) * width, 1.0),
                width,
                classes: network.output_len() as u32,
            },
            rows: (0..batch as u32).collect(),
            weights: numbers(network.param_len(), 0.03),
            optimizer: Optimizer::new(
                Rule::Sgd { momentum: 0.0 },
                Schedule::Constant { rate: RATE },
                network.param_len(),
                u64::MAX,
            )
            .expect("in range"),
            memory: Memory::default(),
            gradient: Vec::new(),
            buffer: Vec::new(),
            network,
        }
    }

    /// What is left of the clip norm.
    pub(crate) fn margin(&self) -> f64 {
        self.sum.margin()
    }

    /// The bits of a sum.
    pub(crate) fn sum_bits(&mut self, threads: NonZeroUsize) -> Vec<i64> {
        self.summed(threads, Vec::new())
    }

    /// The sum of the batch, exposed: these are no private data.
    fn summed(&mut self, threads: NonZeroUsize, buffer: Vec<i64>) -> Vec<i64> {
        let batch = BatchRows {
            examples: &self.data,
            rows: &self.rows,
            seeds: &[],
        };
        let (network, threads) = (&self.network, threads.get());
        let summed = self.sum.sum(
            network,
            &self.weights,
            batch,
            threads,
            &mut self.memory,
            buffer,
        );
        summed.expect("it fits").sum.expose()
    }

    /// Takes a step and says how many examples were in it.
    pub(crate) fn step(&mut self, kind: Step, threads: NonZeroUsize) -> usize {
        whit_mechanism::crew::awake(threads.get(), || self.step_awake(kind, threads))
    }

    fn step_awake(&mut self, kind: Step, threads: NonZeroUsize) -> usize {
        let examples = self.rows.len();
        let rate = RATE as f32 / examples as f32;
        if matches!(kind, Step::Plain) {
            let batch = BatchRows {
                examples: &self.data,
                rows: &self.rows,
                seeds: &[],
            };
            let (weights, gradient) = (&mut self.weights, &mut self.gradient);
            non_private_sum(&self.network, weights, batch, &mut self.memory, gradient)
                .expect("it fits");
            for (weight, slope) in weights.iter_mut().zip(gradient) {
                *weight -= rate * *slope;
            }
            return examples;
        }
        let buffer = std::mem::take(&mut self.buffer);
        let mut sum = self.summed(threads, buffer);
        if matches!(kind, Step::Private) {
            let secret = whit_core::Secret::new(sum);
            let release = self
                .noise
                .release_on(threads, secret, &mut OsEntropy::new());
            sum = release.expect("entropy").into_value();
        }
        let unit = self.sum.grid() / examples as f64;
        let update = self
            .optimizer
            .step_on(threads, &mut self.weights, &sum, unit);
        update.expect("as many sums as weights");
        self.buffer = sum;
        examples
    }
}

/// The audited network with its data and plan, for whole trainings.
pub(crate) struct Audited {
    plan: Plan,
    network: Network,
    data: Dataset,
    start: Vec<f32>,
}

impl Audited {
    pub(crate) fn new(examples: usize, steps: u64) -> Self {
        let network = Network::new(audited(), Loss::CrossEntropy).expect("it fits");
        let labels = (0..examples as u32).map(|row| row % 2).collect();
        let features = numbers(examples * network.input_len(), 1.0);
        let shape = vec![network.input_len()];
        let draft = Draft {
            sampler: SamplerDraft::Poisson {
                rate: 250.0 / examples as f64,
            },
            steps,
            clip_norm: 1.0,
            adaptive: None,
            noise: NoiseDraft::Multiplier(1.01),
            delta: 1e-5,
            relation: Neighbours::ReplaceOne,
            examples_public: examples as u64,
        };
        Self {
            plan: Plan::new(&draft).expect("a plan"),
            start: numbers(network.param_len(), 0.03),
            data: Dataset::with_classes(shape, features, labels, 2).expect("it fits"),
            network,
        }
    }

    /// Trains in so many worlds at once.
    pub(crate) fn train(&self, worlds: usize) {
        let worlds = vec![World::of(&self.data); worlds];
        let (rule, schedule) = (
            Rule::Sgd { momentum: 0.0 },
            Schedule::Constant { rate: 0.15 },
        );
        let steps = self.plan.steps();
        let optimizer = Optimizer::new(rule, schedule, self.network.param_len(), steps);
        let method = (Clipping::Flat, optimizer.expect("in range"));
        let lock_step = LockStep::new(&self.plan, &self.network, &worlds, method, Noising::Plan);
        let models = lock_step
            .expect("it fits")
            .train(&self.start, &mut OsEntropy::new());
        assert!(models.expect("entropy")[0] != self.start);
    }
}
