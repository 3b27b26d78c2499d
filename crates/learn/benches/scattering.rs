//! How fast pictures are scattered, beside kymatio.
//!
//! Run with `./bench scattering`, which installs the peer. Pictures per second of CPU time on one thread, ours and theirs in turn, medians of
//! nine rounds; the ratio is the median of those within a round, to the fastest of the peer's backends and batches in that round: what else the machine does
//! changes from second to second. Two threads against one by the clock on the wall. `./bench scattering ours` measures without the peer.

mod peer;

use std::num::NonZeroUsize;
use std::time::Instant;

use peer::Peer;
use whit_learn::Scattering;
use whit_testkit::cpu_ns;

const ROUNDS: usize = 9;
/// Nanoseconds that a round of ours takes: many ticks of the CPU's clock.
const ROUND_NS: f64 = 3e8;
/// Pictures that are transformed in one call.
const PICTURES: usize = 1000;
/// The peer's ways: memory that fits a cache is what it gains by smaller batches, and calls what it loses.
const PEERS: [(&str, usize); 4] = [
    ("numpy", 64),
    ("numpy", 256),
    ("torch", 256),
    ("torch", 1000),
];

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn start(side: usize, planes: usize, (frontend, batch): (&str, usize)) -> Option<Peer> {
    // A picture in colours is as much work as its planes.
    let [side, planes, batch] = [side, planes, batch / planes].map(|x| x.to_string());
    Peer::start("peer_scattering.py", &[&side, &planes, frontend, &batch])
}

struct Ours {
    scattering: Scattering,
    images: Vec<f32>,
    out: Vec<f32>,
}

impl Ours {
    fn new(side: usize, planes: usize) -> Self {
        let scattering = Scattering::new(side, side, 2, 8).expect("in range");
        let features: usize = scattering.output_shape().iter().product();
        let pixel = |at: usize| ((at * 7919) % 1009) as f32 / 1009.0;
        Self {
            scattering,
            images: (0..PICTURES * planes * side * side).map(pixel).collect(),
            out: vec![0.0; PICTURES * planes * features],
        }
    }

    fn run(&mut self, threads: NonZeroUsize) {
        self.scattering
            .transform_on(threads, &self.images, &mut self.out)
            .expect("whole pictures");
    }

    /// Pictures per second of CPU time.
    fn speed(&mut self) -> f64 {
        let (start, mut pictures) = (cpu_ns(), 0);
        loop {
            self.run(NonZeroUsize::MIN);
            pictures += PICTURES;
            let spent = cpu_ns() - start;
            if spent >= ROUND_NS {
                return pictures as f64 * 1e9 / spent;
            }
        }
    }

    /// Seconds of one call by the clock on the wall.
    fn wall(&mut self, threads: NonZeroUsize) -> f64 {
        let start = Instant::now();
        (0..3).for_each(|_| self.run(threads));
        start.elapsed().as_secs_f64() / 3.0
    }
}

fn measure(title: &str, side: usize, planes: usize, with_peer: bool) {
    let mut ours = Ours::new(side, planes);
    let mut peers: Vec<Peer> = PEERS
        .iter()
        .filter(|_| with_peer)
        .filter_map(|&peer| start(side, planes, peer))
        .collect();
    let two = NonZeroUsize::new(2).expect("not zero");
    let mut all: [Vec<f64>; 4] = Default::default();
    let mut each: Vec<Vec<f64>> = peers.iter().map(|_| Vec::new()).collect();
    // The first round warms up.
    for round in 0..=ROUNDS {
        let speed = ours.speed();
        let speeds: Vec<f64> = peers.iter_mut().map(Peer::speed).collect();
        let best = speeds.iter().copied().fold(f64::NAN, f64::max);
        let threads = ours.wall(NonZeroUsize::MIN) / ours.wall(two);
        if round > 0 {
            let one = [speed, best, speed / best, threads];
            all.iter_mut().zip(one).for_each(|(all, x)| all.push(x));
            each.iter_mut()
                .zip(speeds)
                .for_each(|(each, x)| each.push(x));
        }
    }
    let [speed, best, ratio, threads] = all.map(median);
    let [ours, theirs] = [speed, best].map(|speed| 1000.0 / speed);
    println!("| {title} | {ours:.4} | {theirs:.3} | {ratio:.1}× | {threads:.2}× |");
    for ((frontend, batch), speeds) in PEERS.iter().zip(each) {
        let seconds = 1000.0 / median(speeds);
        eprintln!(
            "{title}: {frontend}, batches of {} planes: {seconds:.3} s",
            batch
        );
    }
}

fn main() {
    let with_peer = !std::env::args().any(|argument| argument == "ours");
    println!("Seconds of CPU time for 1,000 pictures, J = 2 and L = 8, one thread.\n");
    println!("| pictures | ours | kymatio's fastest | ratio | two threads, by the clock |");
    println!("| --- | --- | --- | --- | --- |");
    measure("28x28", 28, 1, with_peer);
    measure("3x32x32", 32, 3, with_peer);
}
