//! Runs learn, end when they are paid for, go on after a crash, and are the same on any number of threads.

#![expect(clippy::disallowed_methods, reason = "files of the tests' own")]

use tempfile::TempDir;
use whit_core::Fault;
use whit_testkit::{FailingEntropy, Seeded, SeededBits};

use super::*;
use crate::checkpoint::{Checkpoint, Place, Run};
use crate::draft::{Draft, FactorDraft, NoiseDraft, SamplerDraft};
use crate::layer::{Activation, Dropout, Function, Layer, Linear};
use crate::optimizer::Rule;
use crate::payment::Uncharged;
use crate::recipe::Recipe;
use crate::schedule::Schedule;

/// Two classes on either side of a circle: no straight line tells them apart.
fn ring(rows: u32, seed: u64) -> Dataset {
    let mut bits = SeededBits::new(seed);
    let mut coordinate = || bits.below(2001) as f32 / 1000.0 - 1.0;
    let features: Vec<f32> = (0..2 * rows).map(|_| coordinate()).collect();
    let inside = |point: &[f32]| u32::from(point[0] * point[0] + point[1] * point[1] < 0.6);
    let labels = features.chunks_exact(2).map(inside).collect();
    Dataset::with_classes(vec![2], features, labels, 2).expect("fits")
}

fn network(dropout: Option<f64>) -> Network {
    let mut layers: Vec<Box<dyn Layer>> = vec![
        Box::new(Linear::new(2, 16)),
        Box::new(Activation::new(Function::Tanh, 16)),
    ];
    layers.extend(dropout.map(|rate| -> Box<dyn Layer> { Box::new(Dropout::new(16, rate, 1)) }));
    layers.push(Box::new(Linear::new(16, 2)));
    Network::new(layers, Loss::CrossEntropy).expect("fits")
}

/// Small numbers of both signs.
fn initial(network: &Network) -> Vec<f32> {
    let mut bits = SeededBits::new(11);
    (0..network.param_len())
        .map(|_| bits.below(2001) as f32 / 1000.0 - 1.0)
        .collect()
}

fn draft(sampler: SamplerDraft, steps: u64) -> Draft {
    Draft {
        sampler,
        steps,
        clip_norm: 1.0,
        adaptive: None,
        noise: NoiseDraft::Multiplier(1.0),
        delta: 1e-5,
        relation: sampler.relation(),
        examples_public: 2000,
    }
}

fn plan(steps: u64) -> Plan {
    Plan::new(&draft(SamplerDraft::Poisson { rate: 0.1 }, steps)).expect("a plan")
}

fn method(network: &Network, steps: u64, threads: usize) -> Method {
    let rule = Rule::Sgd { momentum: 0.5 };
    let schedule = Schedule::Constant { rate: 1.0 };
    let parameters = network.param_len();
    Method {
        clipping: Clipping::Flat,
        optimizer: Optimizer::new(rule, schedule, parameters, steps).expect("in range"),
        average: Some(Average::new(0.5, parameters).expect("in range")),
        threads: NonZeroUsize::new(threads).expect("not zero"),
    }
}

fn trainer(plan: &Plan, data: Dataset, threads: usize) -> Trainer {
    let network = network(Some(0.1));
    let parameters = initial(&network);
    let method = method(&network, plan.steps(), threads);
    let payment = Payment::uncharged(plan, Uncharged);
    Trainer::new(
        plan,
        network,
        parameters,
        Secret::new(data),
        method,
        payment,
    )
    .expect("fits")
}

fn nothing(_: &Trainer) -> Result<()> {
    Ok(())
}

#[test]
fn a_run_at_a_generous_epsilon_learns() {
    let mut draft = draft(SamplerDraft::Poisson { rate: 0.1 }, 150);
    draft.noise = NoiseDraft::Epsilon(8.0);
    let plan = Plan::new(&draft).expect("a plan");
    assert!(plan.epsilon().upper() <= 8.0);
    let mut trainer = trainer(&plan, ring(2000, 1), 1);
    let public = ring(1000, 2);
    let accuracy = |trainer: &Trainer| {
        let found = trainer.evaluate(&public).expect("fits");
        found.accuracy.expect("classes")
    };
    let before = accuracy(&trainer);
    trainer.run(&mut Seeded::new(3), nothing).expect("entropy");
    let after = accuracy(&trainer);
    assert!(before < 0.7 && after > 0.88, "{before} {after}");
}

/// What is released is the clipped sum and the noise of the plan, to the last bit; what moves the weights is that over the expected batch.
#[test]
fn a_step_is_the_sum_and_the_noise_over_the_public_batch() {
    let plan = plan(1);
    let network = network(None);
    let parameters = initial(&network);
    let data = || ring(1900, 1);
    let schedule = Schedule::Constant { rate: 1.0 };
    let method = Method {
        optimizer: Optimizer::new(
            Rule::Sgd { momentum: 0.0 },
            schedule,
            network.param_len(),
            1,
        )
        .expect("in range"),
        average: None,
        ..method(&network, 1, 1)
    };
    // The parts, by hand, with the same coins.
    let mut entropy = Seeded::new(5);
    let payment = || Payment::uncharged(&plan, Uncharged);
    let mut sampler = plan.sampler(1900, payment()).expect("rows");
    let batch = sampler.draw(&mut entropy).expect("entropy");
    let mut bits = entropy.open().expect("entropy");
    let seeds: Vec<u64> = batch.expose().iter().map(|_| bits.word()).collect();
    let clip = Clip::flat(1.0).expect("in range");
    let sum = ClippedSum::new(&network, clip, plan.grid(), plan.batch_cap()).expect("fits");
    let rows = BatchRows {
        examples: &data(),
        rows: batch.expose(),
        seeds: &seeds,
    };
    let summed = sum
        .sum(
            &network,
            &parameters,
            rows,
            1,
            &mut Memory::default(),
            Vec::new(),
        )
        .expect("fits");
    let zeros = Secret::new(vec![0; network.param_len()]);
    let noise = plan.noise().expect("a scale");
    let noise = noise.release(batch, zeros, &mut entropy).expect("entropy");
    let expected: Vec<f32> = summed
        .sum
        .expose()
        .iter()
        .zip(noise.value())
        .zip(&parameters)
        .map(|((sum, noise), weight)| {
            let gradient = ((sum + noise) as f64 * (plan.grid() / 200.0)) as f32;
            weight - gradient
        })
        .collect();
    let start = parameters.clone();
    let data = Secret::new(data());
    let trainer = Trainer::new(&plan, network, parameters, data, method, payment());
    let mut trainer = trainer.expect("fits");
    trainer.step(&mut Seeded::new(5)).expect("entropy");
    assert_eq!(trainer.parameters(), expected);
    assert_ne!(trainer.parameters(), start);
}

#[test]
fn threads_change_no_bit() {
    let plan = plan(4);
    let run = |threads| {
        let mut trainer = trainer(&plan, ring(20_000, 1), threads);
        trainer.run(&mut Seeded::new(7), nothing).expect("entropy");
        trainer.parameters()
    };
    let alone = run(1);
    assert!(alone.iter().all(|weight| weight.is_finite()));
    assert!(run(2) == alone && run(5) == alone);
}

#[test]
fn nobody_is_a_batch_too() {
    let plan = plan(3);
    let empty = Dataset::with_classes(vec![2], Vec::new(), Vec::new(), 2).expect("no rows");
    let mut trainer = trainer(&plan, empty, 2);
    let mut seen = vec![trainer.parameters()];
    trainer
        .run(&mut Seeded::new(9), |trainer| {
            seen.push(trainer.parameters());
            Ok(())
        })
        .expect("entropy");
    assert_eq!((seen.len(), trainer.taken()), (4, 3));
    assert!(
        seen.windows(2).all(|pair| pair[0] != pair[1]),
        "noise moves"
    );
}

#[test]
fn a_run_ends_with_the_last_step_that_was_paid_for() {
    let plan = plan(2);
    let mut trainer = trainer(&plan, ring(100, 1), 1);
    let mut entropy = Seeded::new(9);
    trainer.run(&mut entropy, nothing).expect("entropy");
    let refused = trainer.step(&mut entropy).expect_err("none is left");
    assert_eq!(refused.code(), "steps_taken");
}

fn kept(plan: &Plan) -> Run {
    Run {
        plan: [7; 32],
        event: plan.event().clone(),
        steps_total: plan.steps(),
    }
}

/// The run that is kept in a folder; it is begun if it was not.
fn kept_trainer(folder: &TempDir, plan: &Plan, interval: usize) -> Trainer {
    let place = Place::open(folder.path(), kept(plan)).expect("free");
    let network = network(Some(0.1));
    if !Place::is_begun(folder.path(), &kept(plan)) {
        let payment = Payment::uncharged(plan, Uncharged);
        place.start(payment, initial(&network)).expect("writable");
    }
    let method = method(&network, plan.steps(), 1);
    let data = Secret::new(ring(2000, 1));
    let interval = NonZeroUsize::new(interval).expect("not zero");
    Trainer::kept(plan, network, data, method, place, interval).expect("fits")
}

/// Takes a run up in a folder; it crashes after a step, if that is given. How many steps were taken this time, and the model.
fn take_up(
    folder: &TempDir,
    plan: &Plan,
    seed: u64,
    crash: Option<u64>,
) -> (u64, Vec<f32>, Option<[u64; 2]>) {
    let mut trainer = kept_trainer(folder, plan, 4);
    let (mut taken, mut entropy) = (0, Seeded::new(seed));
    let ended = trainer.run(&mut entropy, |_| {
        taken += 1;
        match Some(taken) == crash {
            true => Err(Error::Unbound),
            false => Ok(()),
        }
    });
    assert_eq!(ended.is_err(), crash.is_some());
    let counts = [trainer.taken(), trainer.steps_kept()];
    (taken, trainer.parameters(), ended.ok().map(|()| counts))
}

#[test]
fn a_run_that_crashed_goes_on_and_takes_no_step_twice() {
    let folder = TempDir::new().expect("a folder");
    let plan = plan(20);
    let (first, ..) = take_up(&folder, &plan, 1, Some(6));
    // Eight steps were begun, six were taken and four are kept: twelve are left.
    let (second, model, counts) = take_up(&folder, &plan, 2, None);
    assert_eq!((first, second), (6, 12));
    assert_eq!(counts.expect("it ended"), [20, 16]);
    // Once it has ended it takes no step, and gives the same model.
    let (third, same, _) = take_up(&folder, &plan, 3, None);
    assert_eq!((third, same), (0, model));
}

#[test]
fn keeping_a_run_changes_no_bit_of_it() {
    let folder = TempDir::new().expect("a folder");
    let plan = plan(10);
    let mut trainer = trainer(&plan, ring(2000, 1), 1);
    trainer.run(&mut Seeded::new(4), nothing).expect("entropy");
    let (taken, model, _) = take_up(&folder, &plan, 4, None);
    assert_eq!((taken, model), (10, trainer.parameters()));
}

/// Whoever takes single steps is counted, too; and a step that fails is lost.
#[test]
fn no_step_is_taken_before_it_is_counted() {
    let folder = TempDir::new().expect("a folder");
    let plan = plan(10);
    let mut entropy = Seeded::new(4);
    let counted = || {
        let bytes = std::fs::read_dir(folder.path()).expect("there");
        let path = bytes.map(|entry| entry.expect("listed").path());
        let path = path.filter(|path| path.extension().is_some_and(|end| end == "checkpoint"));
        let bytes = std::fs::read(path.last().expect("kept")).expect("readable");
        let read = Checkpoint::decode(&bytes, &kept(&plan)).expect("whole");
        (read.steps_begun(), read.steps_kept())
    };
    let mut trainer = kept_trainer(&folder, &plan, 3);
    assert_eq!(counted(), (0, 0));
    trainer.step(&mut entropy).expect("entropy");
    assert_eq!((counted(), trainer.steps_kept()), ((3, 0), 1));
    assert!(trainer.step(&mut FailingEntropy).is_err());
    trainer.step(&mut entropy).expect("entropy");
    trainer.step(&mut entropy).expect("entropy");
    // Three were granted, of which one failed; the fourth is of the next three.
    assert_eq!((counted(), trainer.steps_kept()), ((6, 2), 3));
    drop(trainer);
    let trainer = kept_trainer(&folder, &plan, 3);
    assert_eq!((trainer.taken(), trainer.steps_kept()), (6, 2));
}

/// How many steps this one takes before it is stopped in good order, and the counts that the next one finds.
fn stop_after(
    folder: &TempDir,
    plan: &Plan,
    steps: u64,
) -> std::result::Result<[u64; 2], &'static str> {
    let mut trainer = kept_trainer(folder, plan, 8);
    let mut entropy = Seeded::new(steps);
    for _ in 0..steps {
        trainer.step(&mut entropy).expect("entropy");
    }
    trainer.pause().expect("writable");
    drop(trainer);
    taken_up(folder, plan)
}

#[test]
fn a_run_that_is_stopped_in_good_order_loses_no_step() {
    let folder = TempDir::new().expect("a folder");
    let plan = plan(20);
    assert_eq!(stop_after(&folder, &plan, 0), Ok([0, 0]));
    assert_eq!(stop_after(&folder, &plan, 5), Ok([5, 5]));
    assert_eq!(stop_after(&folder, &plan, 9), Ok([14, 14]));
    let (rest, _, counts) = take_up(&folder, &plan, 2, None);
    assert_eq!((rest, counts), (6, Some([20, 20])));
    // Of epochs that were dealt out, the one that was begun is lost from there on.
    let folder = TempDir::new().expect("a folder");
    let plan = Plan::new(&draft(SamplerDraft::Shuffled { batches: 5 }, 12)).expect("a plan");
    assert_eq!(stop_after(&folder, &plan, 5), Ok([5, 5]));
    assert_eq!(stop_after(&folder, &plan, 2), Ok([10, 7]));
    let (rest, _, counts) = take_up(&folder, &plan, 2, None);
    assert_eq!((rest, counts), (2, Some([12, 9])));
    // A tree leaves a model of the steps that it has taken, and has none left.
    let folder = TempDir::new().expect("a folder");
    let tree = Plan::new(&cyclic(5, 12, FactorDraft::Tree)).expect("a plan");
    assert_eq!(stop_after(&folder, &tree, 7), Ok([12, 7]));
}

/// Whoever goes on after a pause counts what it takes from there, and a crash then loses it.
#[test]
fn a_pause_changes_no_bit_and_hides_no_step() {
    let folder = TempDir::new().expect("a folder");
    let plan = plan(20);
    let mut alone = trainer(&plan, ring(2000, 1), 1);
    alone.run(&mut Seeded::new(4), nothing).expect("entropy");
    let mut paused = kept_trainer(&folder, &plan, 8);
    let mut entropy = Seeded::new(4);
    for step in 0..20_u64 {
        paused.step(&mut entropy).expect("entropy");
        if step % 3 == 0 {
            paused.pause().expect("writable");
            assert_eq!(paused.steps_begun(), step + 1);
        } else {
            assert!(paused.steps_begun() > step);
        }
    }
    assert_eq!(paused.parameters(), alone.parameters());
    assert_eq!(
        paused.step(&mut entropy).map_err(|e| e.code()),
        Err("steps_taken")
    );
    let folder = TempDir::new().expect("a folder");
    let mut crashed = kept_trainer(&folder, &plan, 8);
    crashed.step(&mut entropy).expect("entropy");
    crashed.pause().expect("writable");
    crashed.step(&mut entropy).expect("entropy");
    drop(crashed);
    assert_eq!(taken_up(&folder, &plan), Ok([9, 1]));
}

/// Steps that were counted and not given back on disk are not taken either.
#[test]
fn a_pause_that_cannot_be_written_grants_nothing() {
    let folder = TempDir::new().expect("a folder");
    let plan = plan(20);
    let mut entropy = Seeded::new(4);
    let mut run = kept_trainer(&folder, &plan, 8);
    run.step(&mut entropy).expect("entropy");
    drop(folder);
    let refused = run.pause().expect_err("there is no folder");
    assert_eq!(refused.code(), "checkpoint_moved");
    let refused = run.step(&mut entropy).expect_err("nothing is counted");
    assert_eq!((refused.code(), run.taken()), ("checkpoint_moved", 1));
}

/// A fork has the same steps in its memory, and those that were counted are granted without a look at the disk.
#[test]
fn a_fork_of_the_process_takes_no_step() {
    let folder = TempDir::new().expect("a folder");
    let plan = plan(20);
    let mut entropy = Seeded::new(4);
    let alone = trainer(&plan, ring(20, 1), 1);
    for mut run in [kept_trainer(&folder, &plan, 8), alone] {
        run.step(&mut entropy).expect("entropy");
        // As it is found there: by another number.
        run.process ^= 1;
        let refused = run.step(&mut entropy).map_err(|error| error.code());
        assert_eq!((refused, run.taken()), (Err("other_process"), 1));
    }
}

/// The file that counts the next steps holds what was done until then; the last one is written with the last step.
#[test]
fn what_was_done_is_written_where_the_next_steps_are_counted() {
    let folder = TempDir::new().expect("a folder");
    let plan = plan(10);
    let mut run = kept_trainer(&folder, &plan, 3);
    let path = Place::file(folder.path(), &kept(&plan));
    let mut seen = Vec::new();
    run.run(&mut Seeded::new(4), |_| {
        let bytes = std::fs::read(&path).expect("kept");
        let read = Checkpoint::decode(&bytes, &kept(&plan)).expect("whole");
        seen.push((read.steps_kept(), read.steps_begun()));
        Ok(())
    })
    .expect("entropy");
    seen.dedup();
    assert_eq!(seen, [(0, 3), (3, 6), (6, 9), (10, 10)]);
}

#[test]
fn a_place_where_nothing_was_paid_for_has_no_run() {
    let folder = TempDir::new().expect("a folder");
    let plan = plan(10);
    let place = Place::open(folder.path(), kept(&plan)).expect("free");
    let network = network(None);
    let method = method(&network, 10, 1);
    let data = Secret::new(ring(20, 1));
    let made = Trainer::kept(&plan, network, data, method, place, NonZeroUsize::MIN);
    assert_eq!(
        made.err().map(|error| error.code()),
        Some("checkpoint_not_begun")
    );
}

/// A deal of examples to steps is secret and not kept, so that such runs are kept after whole epochs only.
#[test]
fn runs_with_epochs_are_kept_after_whole_epochs() {
    let folder = TempDir::new().expect("a folder");
    let plan = Plan::new(&draft(SamplerDraft::Shuffled { batches: 5 }, 12)).expect("a plan");
    let (first, ..) = take_up(&folder, &plan, 1, Some(7));
    // Two epochs were begun, and one is kept; two steps of the third are left.
    let (second, _, counts) = take_up(&folder, &plan, 2, None);
    assert_eq!((first, second), (7, 2));
    assert_eq!(counts.expect("it ended"), [12, 7]);
    let (third, ..) = take_up(&folder, &plan, 3, None);
    assert_eq!(third, 0);
}

#[test]
fn data_that_the_network_does_not_take_are_refused() {
    let plan = plan(2);
    let refused = |data: Dataset| {
        let network = network(None);
        let (parameters, method) = (initial(&network), method(&network, 2, 1));
        let payment = Payment::uncharged(&plan, Uncharged);
        let data = Secret::new(data);
        let made = Trainer::new(&plan, network, parameters, data, method, payment);
        made.err().expect("refused").code()
    };
    let three = Dataset::with_classes(vec![3], vec![0.0; 3], vec![0], 2).expect("fits");
    assert_eq!(refused(three), "other_features");
    let classes = Dataset::with_classes(vec![2], vec![0.0; 2], vec![0], 3).expect("fits");
    assert_eq!(refused(classes), "other_answers");
    let numbers = Dataset::with_numbers(vec![2], vec![0.0; 2], vec![0.5]).expect("fits");
    assert_eq!(refused(numbers), "other_answers");
}

/// A file that is kept has the same size whatever the number of rows, and the same name.
#[test]
fn what_is_kept_does_not_know_the_number_of_rows() {
    let plan = plan(2);
    let size = |rows: u32| {
        let mut trainer = trainer(&plan, ring(rows, 1), 1);
        let mut checkpoint = Checkpoint::new(kept(&plan), Payer::Nobody, trainer.parameters());
        trainer.run(&mut Seeded::new(1), nothing).expect("entropy");
        let moving = trainer.moving.as_ref();
        kept::save(
            (&trainer.parameters, &trainer.method, moving),
            &mut checkpoint,
        );
        checkpoint.encode().len()
    };
    assert_eq!(size(10), size(1999));
}

#[test]
fn without_entropy_nothing_moves() {
    let plan = plan(2);
    let mut trainer = trainer(&plan, ring(100, 1), 1);
    let before = trainer.parameters();
    assert!(trainer.step(&mut FailingEntropy).is_err());
    assert_eq!(trainer.parameters(), before);
}

fn moving(steps: u64) -> Plan {
    let mut draft = draft(SamplerDraft::Poisson { rate: 0.1 }, steps);
    draft.clip_norm = 100.0;
    draft.adaptive = Some(crate::draft::AdaptiveDraft {
        quantile: 0.5,
        rate: 0.5,
        count_noise: 10.0,
    });
    Plan::new(&draft).expect("a plan")
}

/// From a norm that clips nobody it comes down to where about half of the gradients are clipped, and stays there.
#[test]
fn a_clip_norm_that_moves_finds_its_quantile() {
    let plan = moving(120);
    let mut trainer = trainer(&plan, ring(2000, 1), 1);
    let mut norms = Vec::new();
    let ran = trainer.run(&mut Seeded::new(6), |trainer| {
        norms.push(trainer.moving.as_ref().map_or(0.0, AdaptiveQuantile::norm));
        Ok(())
    });
    assert_eq!(ran, Ok(()));
    let last = norms[119];
    assert!(norms[0] > 50.0 && last < 5.0 && last > 0.01, "{norms:?}");
    assert_eq!(
        trainer.sum.grid(),
        plan.grid_of(norms[118]).expect("in range")
    );
}

/// The largest batches that pass at a norm of 1.5 cannot be summed at 1.3: whether a step could be taken was a function of what was released. They are refused for all norms or for none.
#[test]
fn a_clip_norm_that_moves_can_be_summed_wherever_it_comes_to() {
    let made = |rate: f64| {
        let text = format!(
            "[data]\npath = 'x.npy'\nlabel = 'y.npy'\nshape = [600]\nclasses = 2\nn_public = 30000000\n\
             [model]\nkind = 'mlp'\nhidden = [600]\n\
             [plan]\nrate = {rate}\nsteps = 6\nclip = 1.5\nclipping = 'adaptive'\nquantile = 0.1\nclip_rate = 1.0\n\
             noise_multiplier = 1.0\ndelta = 1e-9\n"
        );
        let recipe: Recipe = toml::from_str(&text).expect("a plan");
        let plan = recipe.plan().expect("a price");
        let checked = recipe.check(&plan, &[600]);
        (recipe, plan, checked)
    };
    let (_, _, refused) = made(1.0);
    let passes = match refused.map(drop) {
        Err(Error::BatchRounding { passes, .. }) => passes,
        other => panic!("{other:?}"),
    };
    let (recipe, plan, checked) = made(passes as f64 / 3e7);
    let network = Network::from_specs(checked.expect("passes").layers(), Loss::CrossEntropy);
    let network = network.expect("fits");
    let sum = sum_of(&plan, &network, Clipping::Flat, plan.batch_cap()).expect("passes");
    let powers = (-29..=29).map(|exponent| 2.0_f64.powi(exponent));
    let near = powers.flat_map(|norm| [norm.next_down(), norm, norm.next_up(), 1.3 * norm]);
    for norm in near.chain([1e-9, 1e9]) {
        let (clip, grid) = (Clip::flat(norm).expect("in range"), plan.grid_of(norm));
        let grid = grid.expect("in range");
        let moved = sum.with_clip(&network, clip.clone(), grid);
        let moved = moved.unwrap_or_else(|error| panic!("{norm:e}: {error}"));
        assert_eq!((moved.norm_upper(), moved.grid()), (norm, grid));
        // The margin is that of the worst norm, and so enough for this one, but for the last bit of the one that is computed here.
        let own = ClippedSum::new(&network, clip, grid, plan.batch_cap()).expect("passes");
        assert!(moved.margin() <= own.margin().next_up(), "{norm:e}");
        assert!(moved.margin() > own.margin() - 1e-3, "{norm:e}");
    }
    // A few examples, so that the norm falls.
    let data = Dataset::with_classes(vec![600], vec![0.1; 2400], vec![0, 1, 0, 1], 2);
    let data = Secret::new(data.expect("fits"));
    let payment = Payment::uncharged(&plan, Uncharged);
    let (mut trainer, _) = recipe
        .trainer(&plan, data, NonZeroUsize::MIN, payment)
        .expect("fits");
    assert_eq!(trainer.run(&mut Seeded::new(12), nothing), Ok(()));
    let last = trainer.moving.map_or(1.5, |moving| moving.norm());
    assert!(last < 0.7, "{last}");
}

#[test]
fn a_clip_norm_that_moves_is_kept() {
    let folder = TempDir::new().expect("a folder");
    let plan = moving(10);
    let norm = |trainer: &Trainer| trainer.moving.as_ref().map(AdaptiveQuantile::norm);
    let mut first = kept_trainer(&folder, &plan, 2);
    let mut entropy = Seeded::new(5);
    for _ in 0..4 {
        first.step(&mut entropy).expect("entropy");
    }
    let (fourth, model) = (norm(&first), first.parameters());
    // The fifth step writes what the fourth was.
    first.step(&mut entropy).expect("entropy");
    assert_ne!(norm(&first), fourth);
    drop(first);
    let again = kept_trainer(&folder, &plan, 2);
    assert_eq!((norm(&again), again.parameters()), (fourth, model));
    assert_eq!((again.taken(), again.steps_kept()), (6, 4));
}

#[test]
fn a_clip_norm_that_moves_is_that_of_the_whole_gradient() {
    let plan = moving(10);
    let network = network(None);
    let method = Method {
        clipping: Clipping::PerLayer,
        ..method(&network, 10, 1)
    };
    let (parameters, data) = (initial(&network), Secret::new(ring(20, 1)));
    let payment = Payment::uncharged(&plan, Uncharged);
    let made = Trainer::new(&plan, network, parameters, data, method, payment);
    assert_eq!(
        made.err().map(|error| error.code()),
        Some("plan_field_unused")
    );
}

fn cyclic(bins: u64, steps: u64, factor: FactorDraft) -> Draft {
    draft(SamplerDraft::Cyclic { bins, factor }, steps)
}

const BANDED: FactorDraft = FactorDraft::Banded { band: 8 };

#[test]
fn cyclic_runs_learn_and_threads_change_no_bit() {
    for factor in [BANDED, FactorDraft::Tree] {
        let mut draft = cyclic(10, 100, factor);
        draft.noise = NoiseDraft::Epsilon(20.0);
        let plan = Plan::new(&draft).expect("a plan");
        let public = ring(1000, 2);
        let models = [1, 2].map(|threads| {
            let mut trainer = trainer(&plan, ring(2000, 1), threads);
            trainer.run(&mut Seeded::new(3), nothing).expect("entropy");
            let found = trainer.evaluate(&public).expect("fits").accuracy;
            assert!(found.expect("classes") > 0.85, "{factor:?}: {found:?}");
            trainer.parameters()
        });
        assert_eq!(models[0], models[1]);
    }
}

/// However rarely somebody wants a run to be kept, it is at its end.
#[test]
fn an_interval_beyond_the_run_is_the_run() {
    let shuffled = |batches| Plan::new(&draft(SamplerDraft::Shuffled { batches }, 12));
    let tree = Plan::new(&cyclic(5, 12, FactorDraft::Tree));
    for plan in [shuffled(7), shuffled(8), tree] {
        let (folder, plan) = (TempDir::new().expect("a folder"), plan.expect("a plan"));
        let mut run = kept_trainer(&folder, &plan, usize::MAX);
        run.step(&mut Seeded::new(4)).expect("entropy");
        assert_eq!(run.steps_begun(), 12);
    }
}

/// Sums of steps before are secret and not kept: a run goes on after whole epochs, with turns drawn anew; a tree does not go on.
#[test]
fn cyclic_runs_are_kept_after_whole_epochs() {
    let folder = TempDir::new().expect("a folder");
    let plan = Plan::new(&cyclic(5, 12, BANDED)).expect("a plan");
    let (first, ..) = take_up(&folder, &plan, 1, Some(7));
    let (second, _, counts) = take_up(&folder, &plan, 2, None);
    assert_eq!((first, second), (7, 2));
    assert_eq!(counts.expect("it ended"), [12, 7]);
    let folder = TempDir::new().expect("a folder");
    let tree = Plan::new(&cyclic(5, 12, FactorDraft::Tree)).expect("a plan");
    let (first, ..) = take_up(&folder, &tree, 1, Some(7));
    assert_eq!(first, 7);
    assert_eq!(taken_up(&folder, &tree), Err("checkpoint_lost"));
}

/// The code of the refusal to go on with a run, if it is refused.
fn taken_up(folder: &TempDir, plan: &Plan) -> std::result::Result<[u64; 2], &'static str> {
    let place = Place::open(folder.path(), kept(plan)).expect("free");
    let network = network(Some(0.1));
    let method = method(&network, plan.steps(), 1);
    let data = Secret::new(ring(2000, 1));
    let made = Trainer::kept(plan, network, data, method, place, NonZeroUsize::MIN);
    let counts = made.map(|trainer| [trainer.taken(), trainer.steps_kept()]);
    counts.map_err(|error| error.code())
}

/// The initial weights are no model that a whole epsilon was spent on.
#[test]
fn a_run_of_which_nothing_is_left_is_no_model() {
    for plan in [
        plan(4),
        Plan::new(&draft(SamplerDraft::Shuffled { batches: 5 }, 5)).expect("a plan"),
        Plan::new(&cyclic(5, 5, BANDED)).expect("a plan"),
        Plan::new(&cyclic(5, 12, FactorDraft::Tree)).expect("a plan"),
    ] {
        let folder = TempDir::new().expect("a folder");
        let (first, ..) = take_up(&folder, &plan, 1, Some(2));
        assert_eq!(first, 2);
        assert_eq!(taken_up(&folder, &plan), Err("checkpoint_lost"));
    }
    // Where one step is left to take, or one is kept, there is something to go on with.
    let folder = TempDir::new().expect("a folder");
    take_up(&folder, &plan(5), 1, Some(2));
    assert_eq!(taken_up(&folder, &plan(5)), Ok([4, 0]));
    let folder = TempDir::new().expect("a folder");
    take_up(&folder, &plan(4), 1, None);
    assert_eq!(taken_up(&folder, &plan(4)), Ok([4, 4]));
}

/// Other turns with the same event and as many steps: bins of 4 and of 5 have three turns of independent noise each.
#[test]
fn a_cyclic_run_goes_on_with_its_own_turns() {
    let folder = TempDir::new().expect("a folder");
    let [four, five] = [4, 5].map(|bins| {
        let factor = FactorDraft::Banded { band: 1 };
        Plan::new(&cyclic(bins, 12, factor)).expect("a plan")
    });
    assert_eq!(four.event(), five.event());
    take_up(&folder, &four, 1, Some(2));
    let place = Place::open(folder.path(), kept(&five)).expect("free");
    let network = network(Some(0.1));
    let method = method(&network, 12, 1);
    let data = Secret::new(ring(2000, 1));
    let other = Trainer::kept(&five, network, data, method, place, NonZeroUsize::MIN);
    let code = other.err().map(|error| error.code());
    assert_eq!(code, Some("checkpoint_other_plan"));
}

/// The steps of a cyclic run by hand, with the same coins: turns of the plan's sampler, sums through its stream, and the unit of what that releases.
#[test]
fn cyclic_steps_are_the_sums_through_the_stream() {
    for factor in [FactorDraft::Banded { band: 3 }, FactorDraft::Tree] {
        let plan = Plan::new(&cyclic(2, 5, factor)).expect("a plan");
        let network = network(None);
        let (data, mut weights) = (ring(100, 1), initial(&network));
        let rule = Rule::Sgd { momentum: 0.0 };
        let schedule = Schedule::Constant { rate: 1.0 };
        let optimizer = Optimizer::new(rule, schedule, network.param_len(), 5);
        let method = Method {
            optimizer: optimizer.expect("in range"),
            average: None,
            ..method(&network, 5, 1)
        };
        let payment = || Payment::uncharged(&plan, Uncharged);
        let clip = Clip::flat(1.0).expect("in range");
        let sum = ClippedSum::new(&network, clip, plan.grid(), plan.batch_cap()).expect("fits");
        let mut sampler = plan.sampler(100, payment()).expect("rows");
        let mut stream = plan.correlated().expect("in range").expect("cyclic");
        let (mut entropy, mut memory) = (Seeded::new(5), Memory::default());
        let (mut wanted, mut turns) = (Vec::new(), Vec::new());
        for _ in 0..5 {
            let batch = sampler.draw(&mut entropy).expect("entropy");
            turns.push(batch.expose().to_vec());
            let mut bits = entropy.open().expect("entropy");
            let seeds: Vec<u64> = batch.expose().iter().map(|_| bits.word()).collect();
            let rows = BatchRows {
                examples: &data,
                rows: batch.expose(),
                seeds: &seeds,
            };
            let summed = sum.sum(&network, &weights, rows, 1, &mut memory, Vec::new());
            let summed = summed.expect("fits").sum;
            let step = stream.release_on(NonZeroUsize::MIN, batch, summed, &mut entropy);
            for (weight, value) in weights.iter_mut().zip(step.expect("entropy")) {
                *weight -= (value as f64 * (plan.release_unit() / 1000.0)) as f32;
            }
            wanted.push(weights.clone());
        }
        assert!(
            turns[0] == turns[2] && turns[1] == turns[3] && turns[0].len() + turns[1].len() == 100
        );
        let parameters = initial(&network);
        let trainer = Trainer::new(
            &plan,
            network,
            parameters,
            Secret::new(data),
            method,
            payment(),
        );
        let (mut trainer, mut found) = (trainer.expect("fits"), Vec::new());
        let seen = |trainer: &Trainer| {
            found.push(trainer.parameters());
            Ok(())
        };
        trainer.run(&mut Seeded::new(5), seen).expect("entropy");
        assert_eq!(found, wanted);
    }
}
