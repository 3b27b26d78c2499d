//! How good classical models are at the same epsilon, beside diffprivlib's.
//!
//! Run with `./bench classical`, which installs the peer; data sets are read below `WHIT_DATA`. Both sides get the same rows and the same declared bounds, and the mean of several fits is measured on rows that neither
//! was fitted to. `./bench classical adult` measures tasks whose name holds that word only, `./bench classical 10` that epsilon only. `./bench classical ours` measures without the peer.

#![expect(
    clippy::disallowed_methods,
    reason = "a benchmark reads what its peer has prepared"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use whit_core::{Delta, Epsilon, Secret};
use whit_learn::classical::{
    AnyModel, AnyPlan, BoostedStumpsPlan, Boosting, Budget, Classical, DecisionForestPlan, Domain,
    ForestShape, Interval, KMeansPlan, LinearRegressionPlan, Lloyd, MinimaPerturbationPlan,
    NaiveBayesPlan, Origin, PcaPlan, Penalised,
};
use whit_learn::data::{Audience, Classes, Dataset, Declaration, load_private, load_public};
use whit_learn::{Payment, Uncharged};
use whit_testkit::Seeded;

const EPSILONS: [f64; 3] = [0.1, 1.0, 10.0];
/// Of the column with Gaussian noise; the peer's guarantees are pure.
const DELTA: f64 = 1e-6;
const SEEDS: u64 = 5;
const CLUSTERS: usize = 8;
const COMPONENTS: usize = 3;
const BINS: usize = 32;

/// What the peer has prepared.
#[derive(Deserialize)]
struct Task {
    kind: String,
    data: String,
    bounds: Vec<[f64; 2]>,
    label: Option<Label>,
    /// For each feature that is one of so many categories.
    #[serde(default)]
    categories: Vec<Option<usize>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Label {
    Classes(u32),
    Bounds([f64; 2]),
}

/// A mean over fits.
#[derive(Clone, Copy, Deserialize)]
struct Found {
    mean: f64,
    deviation: f64,
}

fn interval(bounds: [f64; 2]) -> Interval {
    Interval::new(bounds[0], bounds[1]).expect("an interval")
}

impl Task {
    fn plan(&self, epsilon: f64, delta: f64, seed: u64) -> AnyPlan {
        let budget = Epsilon::new(epsilon).and_then(|epsilon| Ok((epsilon, Delta::new(delta)?)));
        let (epsilon, delta) = budget.expect("in range");
        let budget = Budget::new(epsilon, delta).expect("above zero");
        let features: Vec<Interval> = self.bounds.iter().map(|bounds| interval(*bounds)).collect();
        let made = match (self.kind.as_str(), &self.label) {
            ("naive_bayes", Some(Label::Classes(classes))) => {
                NaiveBayesPlan::new(features, *classes, budget).map(AnyPlan::NaiveBayes)
            }
            ("linear_regression", Some(Label::Bounds(bounds))) => {
                LinearRegressionPlan::new(features, interval(*bounds), budget)
                    .map(AnyPlan::LinearRegression)
            }
            ("k_means", _) => {
                let lloyd = Lloyd {
                    clusters: CLUSTERS,
                    rounds: 5,
                    seed,
                };
                KMeansPlan::new(features, lloyd, budget).map(AnyPlan::KMeans)
            }
            ("pca", _) => {
                let squares = features
                    .iter()
                    .map(|interval| interval.half_width().powi(2));
                let norm = squares.sum::<f64>().sqrt();
                let centre = features.iter().map(|interval| interval.middle()).collect();
                PcaPlan::new((centre, norm), COMPONENTS, Origin::Mean, budget).map(AnyPlan::Pca)
            }
            ("forest", Some(Label::Classes(classes))) => {
                let shape = ForestShape {
                    trees: 4,
                    depth: 5,
                    features_per_node: 4,
                    seed,
                };
                DecisionForestPlan::new(self.domains(), *classes, shape, budget)
                    .map(AnyPlan::Forest)
            }
            ("boosted_stumps", Some(Label::Classes(classes))) => {
                let boosting = Boosting {
                    seed,
                    ..Boosting::fitting(self.bounds.len(), budget)
                };
                BoostedStumpsPlan::new(self.domains(), *classes, boosting, budget)
                    .map(AnyPlan::BoostedStumps)
            }
            ("minima_perturbation", Some(Label::Classes(classes))) => {
                let domains = self.domains();
                let objective = Penalised::fitting(&domains, *classes, budget);
                MinimaPerturbationPlan::new(domains, *classes, objective, budget)
                    .map(|plan| AnyPlan::MinimaPerturbation(Box::new(plan)))
            }
            (other, _) => panic!("no model of kind {other}"),
        };
        made.expect("a plan")
    }

    fn domains(&self) -> Vec<Domain> {
        let domain = |(feature, bounds): (usize, &[f64; 2])| {
            let count = self.categories.get(feature).copied().flatten();
            let made = count.map_or_else(
                || Domain::numbers(interval(*bounds), BINS),
                Domain::categories,
            );
            made.expect("a domain")
        };
        self.bounds.iter().enumerate().map(domain).collect()
    }

    fn declaration(&self, name: &str, part: &str) -> Declaration {
        let mut declared = Declaration::new(format!("{name}-{part}-x.npy"));
        declared.label = Some(format!("{name}-{part}-y.npy"));
        if let Some(Label::Classes(classes)) = self.label {
            declared.classes = Some(Classes::Count(classes));
        }
        declared
    }

    fn ours(&self, data: &Secret<Dataset>, test: &Dataset, epsilon: f64, delta: f64) -> Found {
        let fit = |seed: u64| {
            let plan = self.plan(epsilon, delta, seed);
            let payment = Payment::uncharged(&plan, Uncharged);
            let fit = plan.on(data).expect("the plan's shape");
            let model = fit
                .release(payment, &mut Seeded::new(1000 + seed))
                .expect("paid");
            measure(model.value(), test)
        };
        let each: Vec<f64> = (0..SEEDS).map(fit).collect();
        let mean = each.iter().sum::<f64>() / SEEDS as f64;
        let square = each.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (SEEDS - 1) as f64;
        Found {
            mean,
            deviation: square.sqrt(),
        }
    }

    /// Is more better?
    fn is_share(&self) -> bool {
        !matches!(self.kind.as_str(), "linear_regression" | "k_means")
    }
}

/// The share of the variance about the mean that components hold; else what the model says of itself.
fn measure(model: &AnyModel, test: &Dataset) -> f64 {
    let AnyModel::Pca(pca) = model else {
        return model.evaluate(test).1;
    };
    let rows = || (0..test.rows()).filter_map(|row| test.example(row));
    let (count, width) = (rows().count() as f64, test.width());
    let mut mean = vec![0.0; width];
    for row in rows() {
        for (mean, x) in mean.iter_mut().zip(row.features) {
            *mean += f64::from(*x) / count;
        }
    }
    let (mut kept, mut all) = (0.0, 0.0);
    for row in rows() {
        let off: Vec<f64> = row
            .features
            .iter()
            .zip(&mean)
            .map(|(x, mean)| f64::from(*x) - mean)
            .collect();
        all += off.iter().map(|x| x * x).sum::<f64>();
        for component in pca.components() {
            kept += component
                .iter()
                .zip(&off)
                .map(|(v, x)| v * x)
                .sum::<f64>()
                .powi(2);
        }
    }
    kept / all
}

/// A line that the peer prints.
fn peer(words: &[&str]) -> Option<String> {
    let python = std::env::var_os("WHIT_PEER_PYTHON")?;
    let script = format!("{}/benches/peer_classical.py", env!("CARGO_MANIFEST_DIR"));
    let ran = Command::new(python)
        .arg(script)
        .args(words)
        .env("OMP_NUM_THREADS", "1")
        .output();
    let ran = ran.expect("the peer's Python starts");
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    Some(String::from_utf8(ran.stdout).expect("text"))
}

fn shown(found: Option<Found>) -> String {
    found.map_or("-".into(), |Found { mean, deviation }| {
        format!("{mean:.4} ± {deviation:.4}")
    })
}

fn run(folder: &Path, name: &str, epsilons: &[f64], with_peer: bool) {
    let text = std::fs::read_to_string(folder.join(format!("{name}.json"))).expect("prepared");
    let task: Task = serde_json::from_str(&text).expect("a task");
    let data =
        load_private(&task.declaration(name, "train"), folder, Audience::Owner).expect("prepared");
    let test = load_public(&task.declaration(name, "test"), folder).expect("prepared");
    let place = folder.display().to_string();
    let plain = peer(&["plain", &place, name]).filter(|_| with_peer);
    let plain = plain.map_or("-".into(), |text| {
        format!("{:.4}", text.trim().parse::<f64>().unwrap_or(f64::NAN))
    });
    for &epsilon in epsilons {
        let [pure, gaussian] = [0.0, DELTA].map(|delta| task.ours(&data, &test, epsilon, delta));
        let seeds = SEEDS.to_string();
        let theirs = with_peer
            .then(|| peer(&["run", &place, name, &epsilon.to_string(), &seeds]))
            .flatten();
        // The peer has no such model if it says nothing.
        let theirs: Option<Found> =
            theirs.and_then(|text| serde_json::from_str(&text).expect("numbers"));
        let verdict = theirs.map_or("", |theirs| {
            let ahead = if task.is_share() {
                pure.mean - theirs.mean
            } else {
                theirs.mean - pure.mean
            };
            let noise =
                (pure.deviation.powi(2) + theirs.deviation.powi(2)).sqrt() / (SEEDS as f64).sqrt();
            match ahead {
                ahead if ahead > 2.0 * noise => "better",
                ahead if ahead < -2.0 * noise => "worse",
                _ => "the same",
            }
        });
        let (kind, set) = (task.kind.replace('_', " "), &task.data);
        let (ours, theirs) = (shown(Some(pure)), shown(theirs));
        println!(
            "| {kind} | {set} | {epsilon} | {ours} | {theirs} | {verdict} | {} | {plain} |",
            shown(Some(gaussian))
        );
    }
}

fn main() {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with("--"))
        .collect();
    let with_peer = !words.iter().any(|word| word == "ours");
    let numbers: Vec<f64> = words.iter().flat_map(|word| word.parse()).collect();
    let epsilons = EPSILONS.iter().copied();
    let epsilons: Vec<f64> = epsilons
        .filter(|epsilon| numbers.is_empty() || numbers.contains(epsilon))
        .collect();
    let only: Vec<&String> = words
        .iter()
        .filter(|word| *word != "ours" && word.parse::<f64>().is_err())
        .collect();
    let folder =
        PathBuf::from(std::env::var_os("WHIT_PEER_DATA").expect("./bench classical says where"));
    if !folder.join("tasks.json").exists() {
        let place = folder.display().to_string();
        assert!(
            peer(&["prepare", &place]).is_some(),
            "the peer prepares the data"
        );
    }
    let text = std::fs::read_to_string(folder.join("tasks.json")).expect("prepared");
    let names: Vec<String> = serde_json::from_str(&text).expect("names");
    println!(
        "| model | data | ε | whit, δ = 0 | diffprivlib | whit is | whit, δ = 1e-6 | without privacy |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for name in names {
        if only.iter().all(|word| name.contains(word.as_str())) {
            run(&folder, &name, &epsilons, with_peer);
        }
    }
}
