//! `./bench audit`: every case with a million samples of each world, as it ships and with ten percent too little noise.
//!
//! What ships must be acquitted in every case. Too little noise must be convicted in each case that costs a draw; others are sampled less often, and have a line of their own: how many of them show
//! so little is told and not asked.
//!
//! Arguments: samples per world (a million), threads (all cores), and `ships` or `short` for one of the two alone.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use whit_audit::TwoStages;
use whit_trial::{Case, Cost, Effort, Share, cases, trial};

fn run_all(cases: &[Case], share: Share, effort: Effort, threads: usize) -> Vec<TwoStages> {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(vec![None; cases.len()]);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(at) else { return };
                    let finding = trial(case, share, effort).expect("the system has entropy");
                    found.lock().expect("nobody panics")[at] = Some(finding);
                }
            });
        }
    });
    let found = found.into_inner().expect("nobody panics");
    found.into_iter().flatten().collect()
}

fn main() {
    let numbers: Vec<u64> = std::env::args()
        .filter_map(|word| word.parse().ok())
        .collect();
    let samples = numbers.first().copied().unwrap_or(1_000_000);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = numbers.get(1).map_or(cores, |threads| *threads as usize);
    let (cases, effort) = (cases(), Effort::of(samples));
    println!(
        "| noise | cases | of them | samples of each world | first alarms | convicted | planned power, at least |"
    );
    println!("|---|---|---|---|---|---|---|");
    let mut wrong = Vec::new();
    let asked = |word: &str| std::env::args().any(|argument| argument == word);
    for (word, what, share) in [
        ("ships", "as it ships", 1.0),
        ("short", "ten percent too little", 1.0 / 1.1),
    ] {
        let only_other = asked(if word == "ships" { "short" } else { "ships" });
        if only_other && !asked(word) {
            continue;
        }
        let started = Instant::now();
        let found = run_all(&cases, Share::new(share), effort, threads);
        let seconds = started.elapsed().as_secs_f64();
        for (cost, which) in [
            (Cost::Draw, "draws"),
            (Cost::Statistic, "sampled less often"),
        ] {
            let own: Vec<_> = cases.iter().zip(&found).collect();
            let own = || own.iter().filter(|(case, _)| case.cost() == cost);
            let alarms = own().filter(|(_, finding)| finding.alarmed()).count();
            let convicted = own().filter(|(_, finding)| finding.convicted()).count();
            let power = own().filter_map(|(case, _)| effort.power(case, Share::new(share)));
            let power = match cost {
                Cost::Draw if share < 1.0 => format!("{:.5}", power.fold(1.0, f64::min)),
                _ => String::new(),
            };
            println!(
                "| {what} | {} | {which} | {} | {alarms} | {convicted} | {power} |",
                own().count(),
                cost.samples(samples),
            );
        }
        println!("\n{what}: {seconds:.0} s\n");
        for (case, finding) in cases.iter().zip(&found) {
            let guilty = share < 1.0;
            let asked = !guilty || case.cost() == Cost::Draw;
            if asked && finding.convicted() != guilty {
                wrong.push(format!(
                    "{what}: {}: claimed {:.4}, measured {:.4}",
                    case.name(),
                    case.claimed().value(),
                    finding.bound().epsilon_lower()
                ));
            }
        }
    }
    for line in &wrong {
        println!("\n{line}");
    }
    if !wrong.is_empty() {
        std::process::exit(1);
    }
}
