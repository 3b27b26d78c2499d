//! # The file of an ensemble
//! All that `whit pate train` is told: private data, public examples, teachers, aggregator, student.
//!
//! ```toml
//! [data]                       # private, as in the plan of a training run
//! path = "train-images-idx3-ubyte.gz"
//! label = "train-labels-idx1-ubyte.gz"
//! shape = [1, 28, 28]
//! classes = 10
//!
//! [public]                     # the first of them are asked about; their own labels are never learnt from, and needed only of those that are held out
//! path = "t10k-images-idx3-ubyte.gz"
//! label = "t10k-labels-idx1-ubyte.gz"
//! shape = [1, 28, 28]
//! classes = 10
//!
//! [features]                   # may be left out, as in the plan of a training run
//! kind = "scattering"
//!
//! [view]                       # may be left out
//! upright = true               # pictures are centred and made to stand straight
//! scaling = 0.5                # by variances of public examples: 1 gives all features the same weight, 0 leaves them theirs
//!
//! [teachers]
//! count = 250
//! rule = "hash"                # or "place": which teacher learns from an example, and so what neighbours are
//! learner = { kind = "kernel_ridge", width = 2.0, penalty = 0.01 }   # linear without a width
//!
//! [aggregator]
//! threshold = 200
//! sigma1 = 150
//! sigma2 = 40
//! queries = 640
//! answers_max = 286
//! delta = 1e-5
//!
//! [student]
//! learner = { kind = "network", model = { kind = "mlp", hidden = [64] }, epochs = 20, batch = 32, rate = 0.01 }
//! neighbours = 10              # may be left out: labels spread to so many neighbours first
//! held_out = 1000              # the last public examples, by whose labels the student is judged
//! ```
//!
//! A field that is not known, or that is of no use beside the others, is refused: a plan means what it says.

use std::num::NonZeroUsize;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use whit_core::Secret;

use super::ballots::Ballots;
use super::ensemble::{Ensemble, Queries, Work};
use super::kernel::{Kernel, KernelRidge};
use super::learner::{Judge, Learn, PlainNetwork, no_dropout};
use super::partition::Rule;
use super::room::{Room, fingerprint, split};
use super::spread::Spread;
use super::student::Student;
use super::view::{Sight, View};
use super::{Aggregation, Outcome, Sanitise, Terms, Test, Votes, VotesError};
use crate::checkpoint::Run;
use crate::data::{
    Classes, Dataset, Declaration, Format, Wanted, check_apart, load_public_beside, survey_if_there,
};
use crate::error::{Error, Result, within};
use crate::features::Features;
use crate::model::Model;
use crate::recipe::public::alike;

/// What a run of an ensemble leaves beside its card: what was told, what the student says, and the student.
pub const RESULTS: [&str; 3] = ["labels.csv", "student.csv", "student.safetensors"];

/// Everything in the file of an ensemble. All of it is public.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnsembleRecipe {
    /// The name of the student.
    pub title: Option<String>,
    /// The private data.
    pub data: Declaration,
    /// Public examples.
    pub public: Declaration,
    /// What becomes of examples first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub features: Option<Features>,
    /// And what before and after it.
    #[serde(default)]
    pub view: ViewSection,
    /// Who votes.
    pub teachers: TeachersSection,
    /// What leaves.
    pub aggregator: AggregatorSection,
    /// Who learns from it.
    pub student: StudentSection,
}

/// `[view]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ViewSection {
    /// Are pictures made upright? Else not.
    pub upright: Option<bool>,
    /// The power of scaling; else 1.
    pub scaling: Option<f64>,
}

/// `[teachers]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TeachersSection {
    /// How many.
    pub count: usize,
    /// Which of them learns from an example; else by its hash.
    pub rule: Option<Rule>,
    /// The seed of that; else 0.
    pub seed: Option<u64>,
    /// What they learn by.
    pub learner: LearnerSection,
}

/// A learner in words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LearnerSection {
    /// `kernel_ridge` or `network`.
    pub kind: String,
    /// The width of a Gaussian kernel; linear without it.
    pub width: Option<f64>,
    /// The penalty of ridge regression; else 0.1.
    pub penalty: Option<f64>,
    /// The network.
    pub model: Option<Model>,
    /// How often it sees each example.
    pub epochs: Option<u32>,
    /// How many at once; else 32.
    pub batch: Option<usize>,
    /// The learning rate of the first step; else 0.01.
    pub rate: Option<f64>,
}

/// `[aggregator]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AggregatorSection {
    /// How many votes the winner must have, with noise; without it every query is answered.
    pub threshold: Option<f64>,
    /// The noise of that test.
    pub sigma1: Option<f64>,
    /// The noise on the votes for each class.
    pub sigma2: f64,
    /// How many queries are asked at most.
    pub queries: u64,
    /// How many are answered at most.
    pub answers_max: u64,
    /// The slack of the guarantee.
    pub delta: f64,
    /// How the cost at these votes is published, if it is.
    pub sanitise: Option<SanitiseSection>,
}

/// How a cost is published.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SanitiseSection {
    /// The Rényi order.
    pub order: f64,
    /// The smoothness of the sensitivity.
    pub beta: f64,
    /// The noise, in sensitivities.
    pub sigma: f64,
}

/// `[student]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudentSection {
    /// What it learns by.
    pub learner: LearnerSection,
    /// To how many neighbours labels spread first, if they do.
    pub neighbours: Option<usize>,
    /// How much of a row's shares comes from neighbours; else 0.95.
    pub share: Option<f64>,
    /// How often it learns again from what it says itself; else once if labels spread, and never if they do not.
    pub rounds: Option<usize>,
    /// How many of the public examples, the last ones, are kept from it and judge it; else none.
    pub held_out: Option<usize>,
    /// The seed of its learner; else 0.
    pub seed: Option<u64>,
}

impl LearnerSection {
    fn learner(&self) -> Result<Box<dyn Learn>> {
        let unused = |field, given: bool| match given {
            true => Err(Error::Field {
                of: "this kind of learner",
                field,
                missing: false,
                passes: "",
            }),
            false => Ok(()),
        };
        match &self.kind[..] {
            "kernel_ridge" => {
                unused("model", self.model.is_some())?;
                unused("epochs", self.epochs.is_some())?;
                unused("batch", self.batch.is_some())?;
                unused("rate", self.rate.is_some())?;
                let kernel = match self.width {
                    Some(width) => Kernel::Gaussian { width },
                    None => Kernel::Linear,
                };
                let penalty = self.penalty.unwrap_or(0.1);
                Ok(Box::new(KernelRidge { kernel, penalty }))
            }
            "network" => {
                unused("width", self.width.is_some())?;
                unused("penalty", self.penalty.is_some())?;
                let missing = |field, passes| Error::Field {
                    of: "a network",
                    field,
                    missing: true,
                    passes,
                };
                let model = self.model.clone();
                model.as_ref().map_or(Ok(()), no_dropout)?;
                Ok(Box::new(PlainNetwork {
                    model: model.ok_or(missing("model", "model = { kind = \"logistic\" }"))?,
                    epochs: self.epochs.ok_or(missing("epochs", "epochs = 20"))?,
                    batch: self.batch.unwrap_or(32),
                    rate: self.rate.unwrap_or(0.01),
                }))
            }
            _ => Err(Error::Word {
                field: "kind",
                given: self.kind.clone(),
                passes: "\"kernel_ridge\" or \"network\" in learner",
            }),
        }
    }
}

impl AggregatorSection {
    /// The same numbers for a number of classes, under a relation.
    fn terms(&self, classes: usize, rule: Rule) -> Result<Terms> {
        let test = match (self.threshold, self.sigma1) {
            (Some(threshold), Some(sigma)) => Some(Test { threshold, sigma }),
            (None, None) => None,
            (threshold, _) => {
                return Err(Error::Field {
                    of: "a test whether teachers agree",
                    field: if threshold.is_some() {
                        "sigma1"
                    } else {
                        "threshold"
                    },
                    missing: true,
                    passes: "threshold = 200 and sigma1 = 150",
                });
            }
        };
        let delta = self.delta;
        Ok(Terms {
            test,
            sigma: self.sigma2,
            queries: self.queries,
            answers_max: self.answers_max,
            classes,
            delta,
            sanitise: self.sanitise.map(|told| told.parameters(delta)),
            neighbours: rule.neighbours(),
        })
    }
}

impl SanitiseSection {
    /// With the usual noise on its width, and a tenth of delta.
    fn parameters(self, delta: f64) -> Sanitise {
        Sanitise {
            order: self.order,
            beta: self.beta,
            sigma: self.sigma,
            width_noise: 10.0,
            delta: 0.1 * delta,
            delta_told: delta,
            confidence: 0.95,
        }
    }
}

impl EnsembleRecipe {
    /// What leaves and what that costs, priced. The rule by which examples reach teachers decides the relation. Reads no data.
    pub fn aggregation(&self) -> Result<Aggregation> {
        let classes = self.data.classes.as_ref().map_or(0, Classes::count) as usize;
        if classes < 2 {
            return Err(VotesError::Classes { classes }.into());
        }
        // There an example's place is a matter of the others: of which units came before, or of how files are called.
        let by_others = self.data.unit.is_some() || self.data.format()? == Format::Images;
        if self.rule() == Rule::Place && by_others {
            return Err(VotesError::Places.into());
        }
        Aggregation::new(&self.aggregator.terms(classes, self.rule())?)
    }

    /// Which teacher learns from an example.
    pub fn rule(&self) -> Rule {
        self.teachers.rule.unwrap_or_default()
    }

    /// Refuses what can be refused without reading a row: by what is declared, and by the headers of public files that are there.
    pub fn check(&self, folder: &Path) -> Result<()> {
        self.aggregation()?;
        self.teachers.learner.learner()?;
        self.student()?.check_words()?;
        let count = self.teachers.count;
        let passes = (1..=100_000).contains(&count);
        within(
            "the number of teachers",
            count as f64,
            passes,
            "from 1 to 100,000",
        )?;
        if let Some(features) = &self.features {
            features.check()?;
        }
        self.data.check()?;
        let public = self.public_wanted()?;
        public.check()?;
        check_apart(&self.public, &self.data, folder)?;
        alike(&self.data, &public)?;
        survey_if_there(&public, folder)?;
        Ok(())
    }

    fn held_out(&self) -> usize {
        self.student.held_out.unwrap_or(0)
    }

    /// The public examples as they are read: where none is held out nobody looks at their labels, and there may be none.
    fn public_wanted(&self) -> Result<Declaration> {
        let mut public = self.public.clone();
        let format = public.format()?;
        // Pictures stand in folders of classes, and sheets beside a file of labels.
        if matches!(format, Format::Images | Format::Sheets) {
            return Ok(public);
        }
        if self.held_out() > 0 {
            return match public.label {
                Some(_) => Ok(public),
                None => Err(Error::Field {
                    of: "a student that public examples judge which are held out",
                    field: "label",
                    missing: true,
                    passes: "label = \"the name of a column\" in [public], or leave `held_out` out",
                }),
            };
        }
        public.wanted = Wanted::Features;
        let is_table = |format| matches!(format, Format::Csv | Format::Parquet);
        if is_table(format) && is_table(self.data.format()?) {
            // If it is there, it is no feature.
            public.label = public.label.or_else(|| self.data.label.clone());
        }
        // Names stand for labels, of which there are none.
        let classes = public.classes.as_ref().or(self.data.classes.as_ref());
        public.classes = classes.map(|classes| Classes::Count(classes.count()));
        Ok(public)
    }

    /// What a place of this run belongs to.
    pub fn run(&self, aggregation: &Aggregation) -> Run {
        aggregation.run_of(&serde_json::to_vec(self).expect("plain data"))
    }

    fn student(&self) -> Result<Taught> {
        let section = &self.student;
        let spread = section.neighbours.map(|neighbours| Spread {
            neighbours,
            share: section.share.unwrap_or(0.95),
        });
        if spread.is_none() && section.share.is_some() {
            return Err(Error::Field {
                of: "a student whose labels do not spread",
                field: "share",
                missing: false,
                passes: "",
            });
        }
        Ok(Taught {
            learner: section.learner.learner()?,
            rounds: section.rounds.unwrap_or(usize::from(spread.is_some())),
            spread,
            seed: section.seed.unwrap_or(0),
        })
    }

    /// Loads the public examples, once it is checked that they are not the private ones, and sees them.
    pub fn room(&self, folder: &Path, threads: NonZeroUsize) -> Result<Room> {
        let public = load_public_beside(&self.public_wanted()?, &self.data, folder)?;
        self.room_of(public, threads)
    }

    /// The same for public examples that were loaded already.
    pub fn room_of(&self, public: Dataset, threads: NonZeroUsize) -> Result<Room> {
        let classes = super::learner::classes(public.classes())?;
        let held = self.held_out();
        let asked = usize::try_from(self.aggregator.queries).unwrap_or(usize::MAX);
        let rows = public.rows();
        if rows.saturating_sub(held) < asked {
            return Err(VotesError::TooFew {
                declared: self.aggregator.queries,
                found: rows.saturating_sub(held),
            }
            .into());
        }
        let fingerprint = fingerprint(&public, rows - held);
        let [open, kept] = split(&public, rows - held)?;
        let sight = Sight {
            upright: self.view.upright.unwrap_or(false),
            features: self.features.clone(),
            power: self.view.scaling.unwrap_or(1.0),
        };
        let (view, rows) = View::new(sight, &open, threads)?;
        let every: Vec<usize> = (0..held).collect();
        let held = view.lesson(&kept, &every, threads)?;
        let truth = super::learner::said(&held.shares, classes);
        self.student()?.check(view.depth(), classes)?;
        self.teachers
            .learner
            .learner()?
            .check(view.depth(), classes)?;
        Ok(Room {
            fingerprint,
            view,
            classes,
            rows,
            held: held.features,
            truth,
        })
    }

    /// Trains the teachers and lets them vote. `out` is the run's folder, in which votes wait, if there is one.
    pub fn votes(
        &self,
        room: &Room,
        data: &Secret<Dataset>,
        out: Option<&Path>,
        threads: NonZeroUsize,
        after: &(dyn Fn(usize) + Sync),
    ) -> Result<Secret<Votes>> {
        let learner = self.teachers.learner.learner()?;
        let ensemble = Ensemble {
            teachers: self.teachers.count,
            rule: self.rule(),
            seed: self.teachers.seed.unwrap_or(0),
            view: &room.view,
            learner: &*learner,
        };
        let asked = usize::try_from(self.aggregator.queries).unwrap_or(usize::MAX);
        let queries = &room.rows[..(asked * room.view.depth()).min(room.rows.len())];
        let words = serde_json::to_vec(&self.teachers).expect("plain data");
        let ballots = match out {
            Some(out) => {
                let (run, words) = (self.run(&self.aggregation()?), Sha256::digest(words));
                Some(Ballots::open(out, &run, words.into(), queries)?)
            }
            None => None,
        };
        let work = Work {
            threads,
            ballots: ballots.as_ref(),
            after,
        };
        ensemble.votes(data, Queries { rows: queries }, work)
    }

    /// The student that learns from what was told.
    pub fn teach(
        &self,
        room: &Room,
        outcome: &Outcome,
        threads: NonZeroUsize,
    ) -> Result<Box<dyn Judge>> {
        let mut labels = outcome.labels.clone();
        labels.resize(room.rows(), None);
        let taught = self.student()?;
        let depth = room.view.depth();
        taught
            .student()
            .learn(&room.rows, depth, &labels, room.classes, threads)
    }
}

/// A student with its learner.
struct Taught {
    learner: Box<dyn Learn>,
    spread: Option<Spread>,
    rounds: usize,
    seed: u64,
}

impl Taught {
    fn student(&self) -> Student<'_> {
        Student {
            learner: &*self.learner,
            spread: self.spread,
            rounds: self.rounds,
            seed: self.seed,
        }
    }

    fn check(&self, depth: usize, classes: usize) -> Result<()> {
        self.student().check(depth, classes)
    }

    fn check_words(&self) -> Result<()> {
        let rounds = self.rounds as f64;
        within(
            "the number of rounds",
            rounds,
            self.rounds <= 100,
            "at most 100",
        )?;
        self.spread.map_or(Ok(()), |spread| spread.check())
    }
}

#[cfg(test)]
#[path = "recipe_test.rs"]
mod tests;
