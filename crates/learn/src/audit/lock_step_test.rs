use super::*;
use crate::audit::{Point, Start};
use crate::data::Dataset;
use crate::draft::{Draft, NoiseDraft, SamplerDraft};
use crate::layer::{Activation, Function, Linear};
use crate::loss::Loss;
use crate::optimizer::Rule;
use crate::schedule::Schedule;
use crate::train::{Method, Trainer};
use whit_core::Neighbours;
use whit_testkit::Seeded;

const WIDTH: usize = 20;

fn plan(rate: f64, steps: u64) -> Plan {
    Plan::new(&Draft {
        sampler: SamplerDraft::Poisson { rate },
        steps,
        clip_norm: 0.5,
        adaptive: None,
        noise: NoiseDraft::Multiplier(1.3),
        delta: 1e-5,
        relation: Neighbours::AddRemove,
        examples_public: 300,
    })
    .expect("a plan")
}

fn network() -> Network {
    let layers: Vec<Box<dyn crate::layer::Layer>> = vec![
        Box::new(Linear::new(WIDTH, 8)),
        Box::new(Activation::new(Function::Relu, 8)),
        Box::new(Linear::new(8, 2)),
    ];
    Network::new(layers, Loss::CrossEntropy).expect("fits")
}

fn rows(count: usize) -> (Vec<f32>, Vec<u32>) {
    let mut draw = crate::layer::oracle::draws(3);
    let features = (0..count * WIDTH).map(|_| draw()).collect();
    (features, (0..count as u32).map(|row| row % 2).collect())
}

fn optimizer(steps: u64, network: &Network) -> Optimizer {
    let schedule = Schedule::Constant { rate: 0.3 };
    let rule = Rule::Sgd { momentum: 0.5 };
    Optimizer::new(rule, schedule, network.param_len(), steps).expect("in range")
}

fn start(network: &Network) -> Vec<f32> {
    let mut draw = crate::layer::oracle::draws(4);
    (0..network.param_len()).map(|_| 0.1 * draw()).collect()
}

/// Three worlds, one with replaced rows and one with more, each beside a trainer of its own on a copy of its data.
#[test]
fn models_are_the_trainers_own_to_the_last_bit() {
    let (plan, network) = (plan(0.3, 40), network());
    let (features, labels) = rows(301);
    let base = Dataset::with_classes(vec![WIDTH], features.clone(), labels.clone(), 2);
    let base = base.expect("fits");
    let point = Point {
        features: vec![2.0; WIDTH],
        class: 1,
    };
    let worlds = [
        World::of(&base),
        World::replacing(&base, &[5, 17], &point),
        World::adding(&base, [&point, &point]),
    ];
    let start = start(&network);
    let lock_step = LockStep::new(
        &plan,
        &network,
        &worlds,
        (Clipping::Flat, optimizer(40, &network)),
        Noising::Plan,
    )
    .expect("fits");
    let models = lock_step
        .train(&start, &mut Seeded::new(9))
        .expect("seeded");
    for (world, model) in worlds.iter().zip(models) {
        let mut all = vec![0.0; world.rows() * WIDTH];
        let classes: Vec<u32> = all
            .chunks_exact_mut(WIDTH)
            .enumerate()
            .map(|(row, input)| world.load(row as u32, input).expect("not empty") as u32)
            .collect();
        let data = Dataset::with_classes(vec![WIDTH], all, classes, 2).expect("fits");
        let method = Method {
            clipping: Clipping::Flat,
            optimizer: optimizer(40, &network),
            average: None,
            threads: NonZeroUsize::MIN,
        };
        let payment = Payment::uncharged(&plan, Uncharged);
        let mut trainer = Trainer::new(
            &plan,
            self::network(),
            start.clone(),
            Secret::new(data),
            method,
            payment,
        )
        .expect("fits");
        trainer
            .run(&mut Seeded::new(9), |_| Ok(()))
            .expect("seeded");
        assert_eq!(trainer.parameters(), model, "{} rows", world.rows());
        assert_ne!(model, start);
    }
}

use crate::network::Examples;

/// Without noise the models of one sample are those of the clipped sums alone, and not those with it.
#[test]
fn without_noise_only_the_sample_is_left_to_chance() {
    let (plan, network) = (plan(1.0, 5), network());
    let (features, labels) = rows(50);
    let base = Dataset::with_classes(vec![WIDTH], features, labels, 2).expect("fits");
    let worlds = [World::of(&base)];
    let of = |noising| {
        let method = (Clipping::Flat, optimizer(5, &network));
        LockStep::new(&plan, &network, &worlds, method, noising).expect("fits")
    };
    let start = start(&network);
    let bare = of(Noising::Nothing);
    // Everybody takes part, so that nothing is left to chance.
    let models = [1, 2].map(|seed| bare.train(&start, &mut Seeded::new(seed)).expect("seeded"));
    assert_eq!(models[0], models[1]);
    let noisy = of(Noising::Plan);
    let models = [1, 2].map(|seed| noisy.train(&start, &mut Seeded::new(seed)).expect("seeded"));
    assert_ne!(models[0], models[1]);
}

#[test]
fn worlds_of_other_sizes_need_coins_of_their_own() {
    let network = network();
    let (features, labels) = rows(300);
    let base = Dataset::with_classes(vec![WIDTH], features, labels, 2).expect("fits");
    let point = Point::of(&base, 3).expect("a row");
    let worlds = [World::of(&base), World::adding(&base, [&point])];
    let fixed = Plan::new(&Draft {
        sampler: SamplerDraft::FixedSize { size: 30 },
        steps: 4,
        clip_norm: 1.0,
        adaptive: None,
        noise: NoiseDraft::Multiplier(1.0),
        delta: 1e-5,
        relation: Neighbours::ReplaceOne,
        examples_public: 300,
    })
    .expect("a plan");
    let method = (Clipping::Flat, optimizer(4, &network));
    assert!(LockStep::new(&fixed, &network, &worlds, method, Noising::Plan).is_err());
}

#[test]
fn random_starts_have_glorots_deviation() {
    let layers = [crate::model::LayerSpec::Linear {
        positions: 1,
        inputs: 300,
        outputs: 100,
    }];
    let mut bits = whit_testkit::SeededBits::new(1);
    let weights = Start::Glorot(2.0).weights(&layers, &mut bits);
    assert_eq!(weights.len(), 30_100);
    let square: f64 = weights[..30_000]
        .iter()
        .map(|&w| f64::from(w).powi(2))
        .sum();
    let deviation = (square / 30_000.0).sqrt();
    let expected = 2.0 * (2.0_f64 / 400.0).sqrt();
    // Six standard errors of a standard deviation.
    assert!((deviation / expected - 1.0).abs() < 6.0 / 60_000_f64.sqrt());
    assert!(weights[30_000..].iter().all(|&bias| bias == 0.0));
    let fixed = Start::Fixed(vec![1.0, 2.0]).weights(&layers, &mut bits);
    assert_eq!(fixed, [1.0, 2.0]);
}
