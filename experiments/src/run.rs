//! Trains the models of an experiment, one after the other, and keeps what may be shown of them.

use std::path::Path;
use std::time::Instant;

use whit_learn::data::{Audience, Dataset, load_private};
use whit_learn::{Payment, Plan, Recipe, Uncharged};
use whit_mechanism::OsEntropy;

use crate::Options;
use crate::experiment::{Experiment, Setting};
use crate::failure::Failure;
use crate::kept::{Kept, Model};
use crate::progress::Progress;
use crate::{folder, report};

/// How often a model is evaluated in a run: the points of a line.
const POINTS: u64 = 20;

/// One model of one seed.
pub(crate) struct Trained {
    pub(crate) seed: u64,
    /// On the test split, after the steps of [`Outcome::points`].
    pub(crate) accuracies: Vec<f64>,
    /// Of the whole training, evaluations included.
    pub(crate) seconds: f64,
}

impl Trained {
    /// As it was kept.
    fn kept(seed: u64, model: &Model) -> Self {
        Self {
            seed,
            accuracies: model.accuracies.clone(),
            seconds: model.seconds,
        }
    }

    fn model(&self) -> Model {
        Model {
            seconds: self.seconds,
            accuracies: self.accuracies.clone(),
        }
    }

    /// After the last step. Never the best of several.
    pub(crate) fn accuracy(&self) -> f64 {
        self.accuracies.last().copied().unwrap_or(f64::NAN)
    }
}

/// After how many steps, and what they cost.
pub(crate) struct Point {
    pub(crate) step: u64,
    pub(crate) epsilon_upper: f64,
}

/// All models of one setting.
pub(crate) struct Outcome {
    pub(crate) setting: &'static Setting,
    pub(crate) recipe: Recipe,
    pub(crate) plan: Plan,
    pub(crate) points: Vec<Point>,
    pub(crate) trained: Vec<Trained>,
}

impl Outcome {
    fn new(setting: &'static Setting) -> Result<Self, Failure> {
        let recipe = setting.recipe(0)?;
        let plan = recipe.plan()?;
        let points = points(plan.steps())
            .map(|step| {
                let epsilon_upper = plan.epsilon_after(step)?.upper();
                Ok(Point {
                    step,
                    epsilon_upper,
                })
            })
            .collect::<Result<_, Failure>>()?;
        Ok(Self {
            setting,
            recipe,
            plan,
            points,
            trained: Vec::new(),
        })
    }

    /// The public data, as the network sees them.
    fn test(&self, folder: &Path, options: &Options) -> Result<Dataset, Failure> {
        let test = self.recipe.load_test(folder, options.threads)?;
        test.ok_or(Failure::NoTest)
    }

    /// One more model.
    fn train(
        &self,
        seed: u64,
        site: &Site<'_>,
        progress: &mut Progress,
    ) -> Result<Trained, Failure> {
        let recipe = self.setting.recipe(seed)?;
        let data = load_private(&recipe.data, site.folder, Audience::Owner)?;
        let payment = Payment::uncharged(&self.plan, Uncharged);
        let (mut trainer, _) = recipe.trainer(&self.plan, data, site.options.threads, payment)?;
        let start = Instant::now();
        let mut accuracies = Vec::new();
        trainer.run(&mut OsEntropy::new(), |trainer| {
            let step = trainer.taken();
            if self.points.iter().any(|point| point.step == step) {
                let found = trainer.evaluate(site.test)?.accuracy.unwrap_or(f64::NAN);
                accuracies.push(found);
                progress.note(found);
            }
            progress.step(seed, step, self.plan.steps());
            Ok(())
        })?;
        Ok(Trained {
            seed,
            accuracies,
            seconds: start.elapsed().as_secs_f64(),
        })
    }
}

/// What all models of a command share.
struct Site<'a> {
    folder: &'a Path,
    test: &'a Dataset,
    options: &'a Options,
}

/// The steps after which a model is evaluated: evenly many, the last one among them.
fn points(steps: u64) -> impl Iterator<Item = u64> {
    let count = POINTS.min(steps);
    (1..=count).map(move |index| index * steps / count)
}

/// Trains everything that is not there yet; what is there is written after each model, so that a long run can be stopped, and goes on where it was. Gives the tables.
pub(crate) fn run(experiment: &'static Experiment, options: &Options) -> Result<String, Failure> {
    let folder = folder::find(std::env::var_os("WHIT_DATA"), experiment)?;
    let mut kept = Kept::open(options.out.as_deref(), experiment.name)?;
    let mut outcomes = Vec::new();
    for setting in experiment.settings {
        outcomes.push(Outcome::new(setting)?);
    }
    let steps: u64 = outcomes.iter().map(|outcome| outcome.plan.steps()).sum();
    let mut progress = Progress::new(steps * options.seeds.get(), options.seeds.get());
    for index in 0..outcomes.len() {
        // Loaded for the first model that is not there.
        let mut test = None;
        for seed in 0..options.seeds.get() {
            let outcome = &outcomes[index];
            let name = outcome.setting.recipe(seed)?.run(&outcome.plan).name();
            let trained = match kept.model(&name, outcome.points.len()) {
                Some(model) => {
                    progress.skip(outcome.plan.steps());
                    Trained::kept(seed, model)
                }
                None => {
                    let site = Site {
                        folder: &folder,
                        test: match &test {
                            Some(test) => test,
                            None => test.insert(outcome.test(&folder, options)?),
                        },
                        options,
                    };
                    let trained = outcome.train(seed, &site, &mut progress)?;
                    kept.keep(name, trained.model())?;
                    progress.finished(experiment.settings[index].name, &trained);
                    trained
                }
            };
            outcomes[index].trained.push(trained);
            if let Some(out) = &options.out {
                report::write(experiment, &outcomes, out)?;
            }
        }
    }
    Ok(report::table(experiment, &outcomes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EXPERIMENTS;

    #[test]
    fn the_last_step_is_a_point() {
        let found: Vec<u64> = points(3).collect();
        assert_eq!(found, [1, 2, 3]);
        let found: Vec<u64> = points(1465).collect();
        assert_eq!((found.len(), found[0], found[19]), (20, 73, 1465));
    }

    /// What is asked of the proven upper bound, and of the networks' sizes: those of the papers.
    #[test]
    fn plans_keep_the_epsilon_they_are_named_after() {
        for experiment in EXPERIMENTS {
            for setting in experiment.settings {
                let recipe = setting.recipe(3).expect("a plan");
                assert_eq!(recipe.model.seed, Some(3));
                let named: f64 = setting
                    .name
                    .strip_prefix("epsilon ")
                    .and_then(|text| text.parse().ok())
                    .expect("named after its epsilon");
                let plan = recipe.plan().expect("a price");
                let summary = plan.summary();
                assert!(summary.epsilon_upper <= named, "{}", setting.name);
                assert_eq!(summary.delta, 1e-5);
                assert_eq!(summary.sampler, "poisson");
                assert_eq!(summary.relation, whit_core::Neighbours::AddRemove);
                let (architecture, _) = recipe
                    .architecture_declared()
                    .expect("it fits")
                    .expect("shape and classes are declared");
                let parameters = whit_learn::model::parameters(architecture.layers());
                // The one of Opacus' example, the same with two norms, the one with twice as many filters and units; linear models of grey
                // pictures and of colours, and the CNN on features.
                assert!([26_010, 26_106, 101_162, 39_700, 77_770, 36_106].contains(&parameters));
            }
        }
    }
}
