//! How fast a step of private training is, beside Opacus's ghost clipping and torch without privacy.
//!
//! Run with `./bench learning`, which installs the peers. Examples per second of CPU time on one thread, ours and theirs in turn, medians of
//! fifteen rounds, and ratios are medians of those within a round: what else the machine does changes from second to second. Two threads
//! against one by the clock on the wall, once the peers have ended. A step is the sum of a batch, noise if there is any, and the
//! update of the weights; the draw of the batch is not in it on either side. `./bench learning MODEL` measures one model alone, and `./bench learning steps MODEL COUNT THREADS` takes so many
//! steps without noise, for a profiler.

mod model;
mod peer;

use std::num::NonZeroUsize;
use std::process::Command;
use std::time::Instant;

use model::{Model, Run, Step, models};
use peer::Peer;
use whit_core::{AddRemove, L2, Ratio, Scale, Secret, Sensitivity};
use whit_mechanism::{OsEntropy, RoundedGaussian};
use whit_testkit::cpu_ns;

const ROUNDS: usize = 15;
/// Nanoseconds that a round takes: many ticks of the CPU's clock.
const ROUND_NS: f64 = 2e8;

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn start(model: &Model, mode: &str) -> Option<Peer> {
    let batch = model.batch.to_string();
    Peer::start("peer_learning.py", &[model.name, &batch, mode])
}

/// Examples per second of CPU time of one round.
fn speed(run: &mut Run, kind: Step) -> f64 {
    let (start, mut examples) = (cpu_ns(), 0);
    loop {
        examples += run.step(kind, NonZeroUsize::MIN);
        let spent = cpu_ns() - start;
        if spent >= ROUND_NS {
            return examples as f64 * 1e9 / spent;
        }
    }
}

/// Nanoseconds by the clock for steps on one thread or two: a processor that was idle until then is slower at first.
const WALL_NS: u128 = 600_000_000;

/// Seconds of one step by the clock on the wall, once the threads are under way.
fn wall(run: &mut Run, kind: Step, threads: NonZeroUsize) -> f64 {
    let warm = Instant::now();
    while warm.elapsed().as_nanos() < WALL_NS / 4 {
        run.step(kind, threads);
    }
    let (start, mut steps) = (Instant::now(), 0);
    while start.elapsed().as_nanos() < WALL_NS {
        run.step(kind, threads);
        steps += 1;
    }
    start.elapsed().as_secs_f64() / f64::from(steps)
}

fn measure(model: &Model) {
    let mut run = Run::new(model, model.batch);
    let two = NonZeroUsize::new(2).expect("not zero");
    assert!(
        run.sum_bits(NonZeroUsize::MIN) == run.sum_bits(two),
        "two threads give other bits"
    );
    let mut peers = ["ghost", "plain"].map(|mode| start(model, mode));
    let mut all: [Vec<f64>; 5] = Default::default();
    // The first round warms up.
    for round in 0..=ROUNDS {
        let mut one = vec![
            speed(&mut run, Step::Private),
            speed(&mut run, Step::Clipped),
            speed(&mut run, Step::Plain),
        ];
        one.extend(
            peers
                .iter_mut()
                .map(|peer| peer.as_mut().map_or(f64::NAN, Peer::speed)),
        );
        if round > 0 {
            all.iter_mut().zip(one).for_each(|(all, x)| all.push(x));
        }
    }
    // Two threads are compared with one when no peer is there: ratios were lower beside peers that waited, why is not known.
    drop(peers);
    let [threads, threads_clipped] = [Step::Private, Step::Clipped].map(|kind| {
        let rounds = (0..ROUNDS)
            .map(|_| wall(&mut run, kind, NonZeroUsize::MIN) / wall(&mut run, kind, two));
        median(rounds.collect())
    });
    let ratio = |a: usize, b: usize| {
        let rounds = all[a].iter().zip(&all[b]);
        median(rounds.map(|(a, b)| a / b).collect())
    };
    let ratios = [ratio(0, 3), ratio(1, 3), ratio(1, 4), ratio(2, 1)];
    let [private, clipped, plain, ghost, torch] = all.map(median);
    println!(
        "| {} | {private:.0} | {clipped:.0} | {plain:.0} | {ghost:.0} | {torch:.0} | {:.2}× | {:.2}× | {:.2}× | {:.0}% | {threads:.2}× / {threads_clipped:.2}× | {:.4} |",
        model.title,
        ratios[0],
        ratios[1],
        ratios[2],
        100.0 * (ratios[3] - 1.0),
        run.margin(),
    );
}

/// Whole trainings of the audited network: 6,000 examples, 576 steps of 250, Poisson samples and noise included, with noise of its own and in five worlds that
/// share it. Seconds of CPU time for each, and how many times as long Opacus takes for as many examples, in turn: with the loader that it makes for Poisson samples, as
/// its users train, and for steps alone, on a batch that is there.
fn trainings() {
    const EXAMPLES: usize = 6000;
    const STEPS: u64 = 576;
    let models = models();
    let Some(model) = models.iter().find(|model| model.name == "audit") else {
        return;
    };
    let mut peers = ["poisson", "ghost"].map(|mode| start(model, mode));
    let audited = model::Audited::new(EXAMPLES, STEPS);
    println!(
        "\n| trainings of 784-32-2, 576 steps of 250 | CPU-s each | Opacus ghost, CPU-s | ghost : ours | its steps alone, CPU-s | these : ours |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    for worlds in [1, 5] {
        let mut ours = Vec::new();
        let mut theirs: [Vec<f64>; 2] = Default::default();
        for _ in 0..ROUNDS {
            let start = cpu_ns();
            audited.train(worlds);
            ours.push((cpu_ns() - start) / 1e9 / worlds as f64);
            for (peer, theirs) in peers.iter_mut().zip(&mut theirs) {
                let speed = peer.as_mut().map_or(f64::NAN, Peer::speed);
                theirs.push((STEPS * 250) as f64 / speed);
            }
        }
        let [whole, steps] = theirs.map(|theirs| {
            let ratios = theirs.iter().zip(&ours).map(|(theirs, ours)| theirs / ours);
            format!(
                "{:.2} | {:.1}×",
                median(theirs.clone()),
                median(ratios.collect())
            )
        });
        println!(
            "| {worlds} in lock-step | {:.3} | {whole} | {steps} |",
            median(ours)
        );
    }
}

/// Megabytes: resident now, and at most so far.
fn memory_mb() -> [f64; 2] {
    #[expect(
        clippy::disallowed_methods,
        reason = "a benchmark reads its own memory use"
    )]
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux counts memory");
    ["VmRSS", "VmHWM"].map(|field| {
        let line = text.lines().find(|line| line.starts_with(field));
        let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
        kilobytes.expect("a number of kilobytes") / 1024.0
    })
}

/// In a process of its own: what steps of a batch need beyond the data, on one thread and on two.
fn memory(model: &Model, batch: usize, threads: NonZeroUsize) {
    let mut run = Run::new(model, batch);
    let [before, _] = memory_mb();
    (0..2).for_each(|_| {
        run.step(Step::Private, threads);
    });
    let [_, peak] = memory_mb();
    println!("{:.0}", peak - before);
}

fn noise_ns() -> f64 {
    let scale = Scale::new(Ratio::from(1_u64 << 36)).expect("in range");
    let noise = RoundedGaussian::new(scale, Sensitivity::<L2, AddRemove>::new(Ratio::one()));
    let draws = (0..ROUNDS).map(|_| {
        let mut values = vec![1_i64; 1_000_000];
        let start = cpu_ns();
        for _ in 0..20 {
            let release = noise.release(Secret::new(values), &mut OsEntropy::new());
            values = release.expect("entropy").into_value();
        }
        (cpu_ns() - start) / 2e7
    });
    median(draws.collect())
}

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let models = models();
    if let [what, name, batch, threads] = &arguments[..]
        && what == "memory"
    {
        let model = models.iter().find(|model| model.name == name);
        let numbers = (batch.parse(), threads.parse());
        let (Some(model), (Ok(batch), Ok(threads))) = (model, numbers) else {
            panic!("memory MODEL BATCH THREADS");
        };
        return memory(model, batch, threads);
    }
    if let [what, name, steps, threads] = &arguments[..]
        && what == "steps"
    {
        let model = models.iter().find(|model| model.name == name);
        let numbers = (steps.parse::<u32>(), threads.parse());
        let (Some(model), (Ok(steps), Ok(threads))) = (model, numbers) else {
            panic!("steps MODEL COUNT THREADS");
        };
        let mut run = Run::new(model, model.batch);
        let (start, clock) = (cpu_ns(), Instant::now());
        for _ in 0..steps {
            run.step(Step::Clipped, threads);
        }
        let [cpu, wall] = [cpu_ns() - start, clock.elapsed().as_nanos() as f64]
            .map(|nanoseconds| nanoseconds / 1e6 / f64::from(steps));
        println!("{cpu:.3} ms of CPU time, {wall:.3} ms by the clock");
        return;
    }
    let wanted = |model: &&Model| arguments.is_empty() || arguments[0] == model.name;
    println!("Examples per second of CPU time, one thread.\n");
    println!(
        "| model, batch | private, exact noise | private but for noise | our own without privacy | Opacus ghost | torch without privacy | private : ghost | but for noise : ghost | but for noise : torch | clipping and bookkeeping | two threads, with and without noise | margin |"
    );
    println!("| {}", "--- | ".repeat(12).trim_end());
    models.iter().filter(wanted).for_each(measure);
    println!("\n| model | threads | batch 256, MiB beyond the data | batch 60,000 |");
    println!("| --- | --- | --- | --- |");
    let program = std::env::current_exe().expect("this program");
    for model in models.iter().filter(wanted) {
        for threads in ["1", "2"] {
            let [small, large] = ["256", "60000"].map(|batch| {
                let arguments = ["memory", model.name, batch, threads];
                let output = Command::new(&program).args(arguments).output();
                let output = output.expect("it starts again").stdout;
                String::from_utf8_lossy(&output).trim().to_owned()
            });
            println!("| {} | {threads} | {small} | {large} |", model.name);
        }
    }
    if arguments.is_empty() || arguments[0] == "audit" {
        trainings();
    }
    println!("\nExact noise: {:.1} ns per draw.", noise_ns());
}
