//! How fast a private step is without its noise, beside our own step without privacy.
//!
//! `cargo run --release -p whit-learn --example throughput [-- MODEL [STEPS [THREADS]]]` prints, for each model, examples per second of
//! CPU time (wall time with several threads), medians of five rounds in turn.

use std::time::{Duration, Instant};

use whit_learn::clip::Clip;
use whit_learn::clipped_sum::{BatchRows, ClippedSum, Memory, non_private_sum};
use whit_learn::layer::{
    Activation, Conv2d, Flatten, Function, Layer, Linear, Pool, Pooling, Window,
};
use whit_learn::loss::Loss;
use whit_learn::network::{Examples, Network};

/// Rows of random pixels.
struct Noise {
    features: Vec<f32>,
    width: usize,
}

impl Examples for Noise {
    fn load(&self, row: u32, input: &mut [f32]) -> Option<f32> {
        let start = row as usize * self.width;
        input.copy_from_slice(&self.features[start..start + self.width]);
        Some((row % 10) as f32)
    }
}

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

fn mlp(inputs: usize) -> Vec<Box<dyn Layer>> {
    vec![
        Box::new(Linear::new(inputs, 1000)),
        Box::new(Activation::new(Function::Relu, 1000)),
        Box::new(Linear::new(1000, 10)),
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

/// What the process has spent, on any of its threads.
#[expect(clippy::disallowed_methods, reason = "the clock of the CPU is a file")]
fn cpu_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    text.split(' ')
        .next()?
        .parse()
        .ok()
        .map(Duration::from_nanos)
}

fn timed(steps: usize, threads: usize, mut step: impl FnMut()) -> f64 {
    let (clock, cpu) = (Instant::now(), cpu_time());
    (0..steps).for_each(|_| step());
    match (cpu, cpu_time()) {
        (Some(before), Some(after)) if threads == 1 => (after - before).as_secs_f64(),
        _ => clock.elapsed().as_secs_f64(),
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let only = arguments.next().unwrap_or_else(|| "all".into());
    let number = |text: Option<String>| text.and_then(|text| text.parse::<usize>().ok());
    let steps = number(arguments.next());
    let threads = number(arguments.next()).unwrap_or(1);
    let models = [
        ("mlp784", mlp(784), 600, 12),
        ("mlp60", mlp(60), 600, 50),
        (
            "lr",
            vec![Box::new(Linear::new(784, 10)) as Box<dyn Layer>],
            4096,
            25,
        ),
        ("cnn", cnn(), 256, 10),
    ];
    println!("model    batch  without privacy  private, no noise  ratio  margin");
    for (name, layers, batch, usual) in models {
        if only != "all" && only != name {
            continue;
        }
        let steps = steps.unwrap_or(usual);
        let network = Network::new(layers, Loss::CrossEntropy).expect("it fits");
        let width = network.input_len();
        let data = Noise {
            features: numbers(batch * width, 1.0),
            width,
        };
        let rows: Vec<u32> = (0..batch as u32).collect();
        let rows = BatchRows {
            examples: &data,
            rows: &rows,
            seeds: &[],
        };
        let cap = (batch + 6 * (batch as f64).sqrt() as usize) as u32;
        let clip = Clip::flat(1.0).expect("in range");
        let sum = ClippedSum::new(&network, clip, 2.0_f64.powi(-36), cap).expect("it fits");
        let mut weights = numbers(network.param_len(), 0.03);
        let (mut memory, mut gradient, mut buffer) = (Memory::default(), Vec::new(), Vec::new());
        let (mut plain, mut private) = (Vec::new(), Vec::new());
        let rate = 1e-4 / batch as f64;
        for round in 0..6 {
            let seconds = timed(steps, 1, || {
                non_private_sum(&network, &weights, rows, &mut memory, &mut gradient)
                    .expect("it fits");
                for (weight, sum) in weights.iter_mut().zip(&gradient) {
                    *weight -= rate as f32 * sum;
                }
            });
            let speed = (steps * batch) as f64 / seconds;
            if round > 0 {
                plain.push(speed);
            }
            let seconds = timed(steps, threads, || {
                let old = std::mem::take(&mut buffer);
                let summed = sum
                    .sum(&network, &weights, rows, threads, &mut memory, old)
                    .expect("it fits");
                // Without noise, since that is measured elsewhere: these are no private data.
                buffer = summed.sum.expose();
                let unit = (rate * sum.grid()) as f32;
                for (weight, &sum) in weights.iter_mut().zip(&buffer) {
                    *weight -= unit * sum as f32;
                }
            });
            if round > 0 {
                private.push((steps * batch) as f64 / seconds);
            }
        }
        let (plain, private) = (median(plain), median(private));
        let margin = sum.margin();
        println!(
            "{name:<8} {batch:>5}  {plain:>15.0}  {private:>17.0}  {:>5.3}  {margin:.4}",
            private / plain
        );
    }
}
