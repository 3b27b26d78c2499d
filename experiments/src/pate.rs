//! Private labels from ensembles of teachers (PATE): teachers are trained on parts of the private data, vote on public examples, and a student learns from what an aggregator tells of their votes.
//!
//! Each ensemble has a seed of its own, by which examples reach teachers. Noise comes from the operating system. What was told is kept, and told once; votes of teachers wait beside it, marked private.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use clap::Args;
use whit_core::Secret;
use whit_learn::checkpoint::Place;
use whit_learn::data::{Audience, Dataset, load_private, load_public};
use whit_learn::pate::{Accounting, Aggregation, EnsembleRecipe, Votes, owner};
use whit_learn::{Payment, Uncharged};
use whit_mechanism::OsEntropy;

use crate::failure::Failure;
use crate::kept::{Kept, Model};
use crate::pate_beside::Beside;
use crate::{adult, folder, pate_plot};

/// What an ensemble can be told.
#[derive(Args)]
pub(crate) struct Options {
    /// A folder for the table, the plot, and what was told. Ensembles that it has already are not trained again. It also gets the votes of teachers, which are private
    #[arg(long, value_name = "FOLDER")]
    out: Option<std::path::PathBuf>,
    /// How many threads work. Results do not depend on it
    #[arg(long, value_name = "NUMBER", default_value = "2")]
    threads: std::num::NonZeroUsize,
    /// How many ensembles are trained, with seeds from 0 on
    #[arg(long, value_name = "NUMBER", default_value = "3")]
    ensembles: std::num::NonZeroU64,
}

/// One command.
pub(crate) struct Ensembles {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) folder: &'static str,
    pub(crate) files: &'static [&'static str],
    pub(crate) sources: &'static str,
    /// As `whit pate train` reads it.
    pub(crate) plan: &'static str,
    /// Where the examples come from.
    pub(crate) source: Source,
    /// The same data by noisy steps, as `whit train` reads it but for its epsilon.
    pub(crate) beside: &'static str,
    /// What the mean accuracy of students is to reach.
    pub(crate) accuracy: f64,
    /// What the mean data-dependent epsilon may be, by the conversion of the paper.
    pub(crate) epsilon: f64,
}

/// How data are read.
pub(crate) enum Source {
    /// As the plan declares them.
    Declared,
    /// The census, whose files have no line of names.
    Census,
}

/// MNIST.
pub(crate) const MNIST: Ensembles = Ensembles {
    name: "pate-mnist",
    title: "MNIST: students of 250 teachers",
    folder: "mnist",
    files: crate::mnist::FILES,
    sources: "Papernot et al. 2018, table 1: 98.5 % with 286 answers at a data-dependent epsilon of 1.97, delta 1e-5. Threshold, noise and the number of queries are theirs. \
              Learners, scaling and spreading are ours, searched for on the first 9,000 test images and their labels alone, with stand-ins for teachers that learn from these; record/pate-models.md lists it.",
    plan: r#"
[data]
path = "train-images-idx3-ubyte.gz"
label = "train-labels-idx1-ubyte.gz"
shape = [1, 28, 28]
classes = 10

[public]
path = "t10k-images-idx3-ubyte.gz"
label = "t10k-labels-idx1-ubyte.gz"
shape = [1, 28, 28]
classes = 10

[features]
kind = "scattering"

[view]
upright = true
scaling = 0.5

[teachers]
count = 250
learner = { kind = "kernel_ridge", width = 2.0, penalty = 0.01 }

[aggregator]
threshold = 200
sigma1 = 150
sigma2 = 40
queries = 640
answers_max = 286
delta = 1e-5
sanitise = { order = 12, beta = 0.03, sigma = 15 }

[student]
learner = { kind = "kernel_ridge", width = 2.0, penalty = 0.3 }
neighbours = 10
held_out = 1000
"#,
    source: Source::Declared,
    // That of mnist-scattering.
    beside: r#"
[data]
path = "train-images-idx3-ubyte.gz"
label = "train-labels-idx1-ubyte.gz"
shape = [1, 28, 28]
classes = 10
n_public = 60000

[features]
kind = "scattering"
groups = 9

[model]
kind = "logistic"

[plan]
sampler = "poisson"
rate = 0.0683
steps = 1120
clip = 0.1
delta = 1e-5

[optimizer]
kind = "sgd"
rate = 4.0
momentum = 0.9
average = 0.99
"#,
    accuracy: 0.985,
    epsilon: 1.97,
};

/// The census.
pub(crate) const ADULT: Ensembles = Ensembles {
    name: "pate-adult",
    title: "Adult: students of 250 teachers",
    folder: "adult",
    files: &["adult.data.gz", "adult.test.gz"],
    sources: "Papernot et al. 2018, table 1: 83.7 % with 524 answers at a data-dependent epsilon of 1.90, delta 1e-5. Threshold, noise and the number of queries are theirs; at most 460 answers are ours, \
              since 524 cost 1.89 on average over nine ensembles of three runs, and 1.91 over those of the last. Columns, learners and scaling are ours, searched for on the first 8,281 rows of the test file and their labels alone; record/pate-models.md lists it.",
    plan: r#"
[data]
path = "adult.data.gz"
format = "csv"
label = "income"
classes = ["<=50K", ">50K"]

[public]
path = "adult.test.gz"
format = "csv"
label = "income"
classes = ["<=50K", ">50K"]

[view]
scaling = 0

[teachers]
count = 250
learner = { kind = "kernel_ridge", width = 1.0, penalty = 0.3 }

[aggregator]
threshold = 300
sigma1 = 200
sigma2 = 40
queries = 1500
answers_max = 460
delta = 1e-5
sanitise = { order = 12, beta = 0.03, sigma = 15 }

[student]
learner = { kind = "network", model = { kind = "logistic" }, epochs = 30, batch = 16, rate = 0.03 }
held_out = 8000
"#,
    source: Source::Census,
    beside: r#"
[data]
path = "adult.data.gz"
format = "csv"
label = "income"
classes = ["<=50K", ">50K"]
n_public = 32561

[model]
kind = "logistic"

[plan]
sampler = "poisson"
rate = 0.05
steps = 600
clip = 1.0
delta = 1e-5

[optimizer]
kind = "sgd"
rate = 2.0
momentum = 0.9
average = 0.99
"#,
    accuracy: 0.837,
    epsilon: 1.90,
};

/// What is kept of an ensemble, in this order.
const FIGURES: [&str; 11] = [
    "accuracy of the student",
    "answers",
    "queries tested",
    "data-dependent epsilon",
    "its order",
    "by the tighter conversion",
    "sanitised epsilon",
    "from",
    "to",
    "answers that are the truth",
    "mean share of the winner's votes",
];

/// One ensemble.
pub(crate) struct Trained {
    pub(crate) figures: Vec<f64>,
    pub(crate) seconds: f64,
}

impl Ensembles {
    fn recipe(&self, seed: u64) -> Result<EnsembleRecipe, Failure> {
        let mut recipe: EnsembleRecipe = toml::from_str(self.plan)?;
        recipe.teachers.seed = Some(seed);
        Ok(recipe)
    }

    fn public(&self, recipe: &EnsembleRecipe, folder: &Path) -> Result<Dataset, Failure> {
        Ok(match self.source {
            Source::Declared => load_public(&recipe.public, folder)?,
            Source::Census => adult::read(&folder.join("adult.test.gz"))?,
        })
    }

    fn private(&self, recipe: &EnsembleRecipe, folder: &Path) -> Result<Secret<Dataset>, Failure> {
        Ok(match self.source {
            Source::Declared => load_private(&recipe.data, folder, Audience::Owner)?,
            Source::Census => Secret::new(adult::read(&folder.join("adult.data.gz"))?),
        })
    }

    fn train(&self, seed: u64, folder: &Path, options: &Options) -> Result<Trained, Failure> {
        let start = Instant::now();
        let (recipe, threads) = (self.recipe(seed)?, options.threads);
        let aggregation = recipe.aggregation()?;
        let public = self.public(&recipe, folder)?;
        let truth = classes(&public);
        let room = recipe.room_of(public, threads)?;
        let private = self.private(&recipe, folder)?;
        let out = options.out.as_ref();
        let out = out.map(|out| out.join(format!("{}-{seed}", self.name)));
        let (name, count, shown) = (self.name, recipe.teachers.count, AtomicUsize::new(0));
        let after = |_: usize| {
            let done = shown.fetch_add(1, Ordering::Relaxed) + 1;
            if done.is_multiple_of(50) || done == count {
                eprintln!("{name}, ensemble {seed}: {done} of {count} teachers have voted");
            }
        };
        let votes = recipe.votes(&room, &private, out.as_deref(), threads, &after)?;
        let outcome = match &out {
            // What was told there is told again, and nothing else.
            Some(out) => {
                let run = recipe.run(&aggregation);
                let is_begun = Place::is_begun(out, &run);
                let mut place = Place::make(out, run).map_err(whit_learn::Error::from)?;
                if !is_begun {
                    let payment = Payment::uncharged(&aggregation, Uncharged);
                    aggregation.start_in(&place, payment, room.fingerprint())?;
                }
                let public = room.fingerprint();
                aggregation.run_in(&mut place, public, &votes, &mut OsEntropy::new())?
            }
            None => {
                let payment = Payment::uncharged(&aggregation, Uncharged);
                aggregation.run(&votes, payment, &mut OsEntropy::new())?
            }
        };
        let student = recipe.teach(&room, &outcome, threads)?;
        let accuracy = room.accuracy(&*student, threads)?.unwrap_or(f64::NAN);
        // The owner's numbers. MNIST and the census are public, whatever this experiment calls them.
        let seen = owner::owner(aggregation.terms(), &votes, &outcome, Accounting::Realised);
        let seen = seen.expose();
        let told = outcome.labels.iter().zip(&truth);
        let right: Vec<bool> = told
            .filter_map(|(label, truth)| label.map(|label| label == *truth))
            .collect();
        let share = right.iter().filter(|right| **right).count() as f64 / right.len().max(1) as f64;
        let sanitised = outcome.sanitised;
        let of = |pick: fn(&whit_learn::pate::Sanitised) -> f64| {
            sanitised.as_ref().map_or(f64::NAN, pick)
        };
        let figures = vec![
            accuracy,
            outcome.answered() as f64,
            outcome.tested as f64,
            seen.published.epsilon,
            seen.published.order,
            seen.tight.epsilon,
            of(|told| told.epsilon),
            of(|told| told.low),
            of(|told| told.high),
            share,
            agreement(votes.as_ref().expose()),
        ];
        Ok(Trained {
            figures,
            seconds: start.elapsed().as_secs_f64(),
        })
    }

    /// Trains the ensembles that are not there yet, and gives the tables.
    pub(crate) fn run(&self, options: &Options) -> Result<String, Failure> {
        let folder = folder::within(std::env::var_os("WHIT_DATA"), self.folder, self.files)?;
        let mut kept = Kept::open(options.out.as_deref(), self.name)?;
        let mut trained = Vec::new();
        for seed in 0..options.ensembles.get() {
            let recipe = self.recipe(seed)?;
            let name = recipe.run(&recipe.aggregation()?).name();
            let one = match kept.model(&name, FIGURES.len()) {
                Some(model) => Trained {
                    figures: model.accuracies.clone(),
                    seconds: model.seconds,
                },
                None => {
                    let one = self.train(seed, &folder, options)?;
                    let model = Model {
                        seconds: one.seconds,
                        accuracies: one.figures.clone(),
                    };
                    kept.keep(name, model)?;
                    one
                }
            };
            eprintln!(
                "{}, ensemble {seed}: student {:.4}, data-dependent epsilon {:.3}, {:.0} s",
                self.name, one.figures[0], one.figures[3], one.seconds
            );
            trained.push(one);
            if let Some(out) = &options.out {
                self.write(out, &trained, &[])?;
            }
        }
        let mut beside = Vec::new();
        for seed in 0..options.ensembles.get() {
            beside.push(self.beside(seed, &folder, options, &mut kept)?);
            if let Some(out) = &options.out {
                self.write(out, &trained, &beside)?;
            }
        }
        self.table(&trained, &beside)
    }

    /// The accuracy of noisy steps at the same guarantee.
    fn beside(
        &self,
        seed: u64,
        folder: &Path,
        options: &Options,
        kept: &mut Kept,
    ) -> Result<f64, Failure> {
        let beside = Beside {
            plan: self.beside,
            epsilon: self.guarantee().ok_or(Failure::NoTest)?,
            seed,
            threads: options.threads,
        };
        let recipe = beside.recipe()?;
        let name = recipe.run(&recipe.plan()?).name();
        if let Some(model) = kept.model(&name, 1) {
            return Ok(model.accuracies[0]);
        }
        let start = Instant::now();
        let ensembles = self.recipe(0)?;
        let public = self.public(&ensembles, folder)?;
        let private = self.private(&ensembles, folder)?;
        let held_out = ensembles.student.held_out.unwrap_or(0);
        let accuracy = beside.accuracy(private, &public, held_out)?;
        let model = Model {
            seconds: start.elapsed().as_secs_f64(),
            accuracies: vec![accuracy],
        };
        kept.keep(name, model)?;
        eprintln!("{}, noisy steps, seed {seed}: {accuracy:.4}", self.name);
        Ok(accuracy)
    }

    fn table(&self, trained: &[Trained], beside: &[f64]) -> Result<String, Failure> {
        let aggregation = self.recipe(0)?.aggregation()?;
        let plain = Aggregation::new(&whit_learn::pate::Terms {
            sanitise: None,
            ..*aggregation.terms()
        })?;
        let mean = |figure: usize| {
            let sum: f64 = trained.iter().map(|one| one.figures[figure]).sum();
            sum / trained.len().max(1) as f64
        };
        let word = |met: bool| if met { "yes" } else { "no" };
        let mut text = format!("## {}\n\n{}\n\n", self.title, self.sources);
        text += "| what | mean | asked | reached |\n| --- | --- | --- | --- |\n";
        text += &format!(
            "| student, on examples that nobody was asked about or taught with | {:.2} % | at least {:.1} % | {} |\n",
            100.0 * mean(0),
            100.0 * self.accuracy,
            word(mean(0) >= self.accuracy - 1e-12)
        );
        text += &format!(
            "| data-dependent epsilon at delta 1e-5: the owner's, and no guarantee | {:.3} | at most {:.2} | {} |\n",
            mean(3),
            self.epsilon,
            word(mean(3) <= self.epsilon)
        );
        text += &format!(
            "| guarantee, which is charged: epsilon at delta 1e-5 | {:.3} | | |\n| guarantee with the sanitised epsilon | {:.3} | | |\n\n",
            round_up(plain.epsilon()),
            round_up(aggregation.epsilon())
        );
        if !beside.is_empty() {
            let all: Vec<String> = beside
                .iter()
                .map(|one| format!("{:.2}", 100.0 * one))
                .collect();
            text += &format!(
                "Noisy steps (DP-SGD) on the same data, at epsilon {:.3}, on the same held-out examples: {:.2} % ({} %).\n\n",
                round_up(plain.epsilon()),
                100.0 * beside.iter().sum::<f64>() / beside.len() as f64,
                all.join(", ")
            );
        }
        text += &format!(
            "| ensemble | {} | seconds |\n|{}\n",
            FIGURES.join(" | "),
            " --- |".repeat(FIGURES.len() + 2)
        );
        for (seed, one) in trained.iter().enumerate() {
            let figures: Vec<String> = one.figures.iter().map(|figure| shown(*figure)).collect();
            text += &format!(
                "| {seed} | {} | {:.0} |\n",
                figures.join(" | "),
                one.seconds
            );
        }
        Ok(text)
    }

    fn write(&self, out: &Path, trained: &[Trained], beside: &[f64]) -> Result<(), Failure> {
        let plot = pate_plot::over_epsilon(self, trained);
        for (ending, text) in [
            (".md", Some(self.table(trained, beside)?)),
            ("-epsilon.svg", plot),
        ] {
            let path = out.join(format!("{}{ending}", self.name));
            let unwritable = |why: &dyn std::fmt::Display| Failure::Unwritable {
                path: path.clone(),
                why: why.to_string(),
            };
            let text = text.ok_or_else(|| unwritable(&"it could not be drawn"))?;
            #[expect(clippy::disallowed_methods, reason = "a door writes files")]
            std::fs::write(&path, text).map_err(|error| unwritable(&error))?;
        }
        Ok(())
    }

    /// The guarantee without a sanitised epsilon.
    pub(crate) fn guarantee(&self) -> Option<f64> {
        let terms = *self.recipe(0).ok()?.aggregation().ok()?.terms();
        let plain = whit_learn::pate::Terms {
            sanitise: None,
            ..terms
        };
        Aggregation::new(&plain).ok().map(|made| made.epsilon())
    }
}

fn round_up(value: f64) -> f64 {
    (value * 1000.0).ceil() / 1000.0
}

fn shown(figure: f64) -> String {
    match figure.fract() == 0.0 {
        true => format!("{figure}"),
        false => format!("{figure:.4}"),
    }
}

/// The labels that are known of public examples, to say afterwards how many answers were right.
fn classes(data: &Dataset) -> Vec<usize> {
    let class = |row| match data.example(row).map(|example| example.answer) {
        Some(whit_learn::data::Answer::Class(class)) => class as usize,
        _ => usize::MAX,
    };
    (0..data.rows()).map(class).collect()
}

/// The mean share of teachers that vote for the winner.
fn agreement(votes: &Votes) -> f64 {
    let most = |query| votes.counts(query).iter().copied().max().unwrap_or(0) as f64;
    let sum: f64 = (0..votes.queries()).map(most).sum();
    sum / votes.queries().max(1) as f64 / votes.teachers().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cap, the queries and the rows that judge are those that were asked for; the guarantee does not look at data.
    #[test]
    fn plans_are_those_of_the_paper() {
        for (experiment, queries, answers, teachers) in
            [(&MNIST, 640, 286, 250), (&ADULT, 1500, 460, 250)]
        {
            let recipe = experiment.recipe(2).expect("a plan");
            let aggregation = recipe.aggregation().expect("a price");
            let terms = aggregation.terms();
            assert_eq!(
                (terms.queries, terms.answers_max, terms.delta),
                (queries, answers, 1e-5)
            );
            assert_eq!(
                (recipe.teachers.count, recipe.teachers.seed),
                (teachers, Some(2))
            );
            assert_eq!(terms.neighbours, whit_core::Neighbours::AddRemove);
            assert!(
                experiment
                    .guarantee()
                    .is_some_and(|epsilon| epsilon < aggregation.epsilon())
            );
        }
        assert_eq!(
            MNIST.recipe(0).expect("a plan").student.held_out,
            Some(1000)
        );
    }

    #[test]
    fn tables_say_what_was_reached() {
        let mut figures = vec![0.99; FIGURES.len()];
        figures[3] = 3.0;
        let one = Trained {
            figures,
            seconds: 1.0,
        };
        let text = MNIST.table(&[one], &[0.985]).expect("a price");
        assert!(text.contains("99.00 % | at least 98.5 % | yes"), "{text}");
        assert!(text.contains("3.000 | at most 1.97 | no"), "{text}");
        assert!(text.contains("98.50 % (98.50 %)"), "{text}");
    }
}
