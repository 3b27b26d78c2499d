//! # A plan's file
//! All that `whit train` is told, in one TOML file: which data, which model, which plan, and how its sums are used.
//!
//! ```toml
//! [data]
//! path = "train-images-idx3-ubyte.gz"
//! label = "train-labels-idx1-ubyte.gz"
//! shape = [1, 28, 28]
//! classes = 10
//! n_public = 60000       # a public number of examples, never one that was counted in secret
//!
//! [test]                 # the same for data that are public: loss and accuracy are shown of these alone
//! path = "t10k-images-idx3-ubyte.gz"
//! label = "t10k-labels-idx1-ubyte.gz"
//! shape = [1, 28, 28]
//! classes = 10
//!
//! [features]             # may be left out: a fixed map that examples go through first
//! kind = "scattering"    # levels = 2, angles = 8; the network gets [81, 7, 7]
//!
//! [model]
//! kind = "cnn"
//!
//! [plan]
//! sampler = "poisson"    # or "fixed_size" (size), "balls_in_bins" (bins), "cyclic" (bins, band), "shuffled" (batches), "all"
//! rate = 0.01
//! steps = 1000
//! clip = 1.0             # of the first step, with clipping = "adaptive" (quantile, clip_rate, count_noise)
//! epsilon = 3.0          # or noise_multiplier
//! delta = 1e-5
//!
//! [optimizer]
//! kind = "sgd"           # or "nesterov", "adam"
//! rate = 0.5
//! momentum = 0.9
//! ```
//!
//! Instead of one run there may be a search, by `[search]` and `[validation]`: see [`search`](crate::search).
//!
//! A field that is not known, or that is of no use beside the others, is refused: a plan means what it says.

pub(crate) mod public;
mod search;
mod section;

use std::num::NonZeroUsize;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use whit_core::{Event, Secret};

use crate::card::Search;
use crate::checkpoint::{Place, Run};
use crate::data::{Classes, Dataset, Declaration, Inputs, load_public_beside};
use crate::error::{Error, Result};
use crate::features::Features;
use crate::loss::Loss;
use crate::model::{Architecture, Model, init};
use crate::network::Network;
use crate::onnx::{self, OnnxError};
use crate::optimizer::{Average, Optimizer};
use crate::payment::Payment;
use crate::plan::{Plan, batch_cap};
use crate::schedule::Schedule;
use crate::train::{Clipping, EXAMPLES_MAX, Method, Trainer, sum_of};
use crate::validate::NetworkError;

pub(crate) use search::PAD_MAX;
pub use search::{Score, SearchSection};
pub use section::{OptimizerSection, PlanSection};

/// Everything in a plan's file. All of it is public.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// The name of the model, for its card.
    pub title: Option<String>,
    /// How many other runs on the same data were made to choose the numbers of this one, for the card; they are not charged here.
    pub searched: Option<u64>,
    /// The private data.
    pub data: Declaration,
    /// Data that are public.
    pub test: Option<Declaration>,
    /// Data that are public, by which a search judges its runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<Declaration>,
    /// What becomes of examples before the network sees them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub features: Option<Features>,
    /// The network.
    pub model: Model,
    /// Sampler, clip, noise and steps.
    pub plan: PlanSection,
    /// What becomes of the noisy sums.
    #[serde(default)]
    pub optimizer: OptimizerSection,
    /// Which numbers are searched for, if any are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchSection>,
}

impl Recipe {
    /// The plan of one run, priced. Reads no data. Refused if a search is asked for, which is more than one run: see [`SearchPlan`](crate::SearchPlan).
    pub fn plan(&self) -> Result<Plan> {
        if self.search.is_some() {
            return Err(Error::Field {
                of: "one run",
                field: "search",
                missing: false,
                passes: "",
            });
        }
        if self.validation.is_some() {
            return Err(Error::Field {
                of: "a plan without [search]",
                field: "validation",
                missing: false,
                passes: "",
            });
        }
        Plan::new(&self.plan.draft(self.examples_public()?)?)
    }

    /// The declared number of examples, once the features fit each other.
    pub(crate) fn examples_public(&self) -> Result<u64> {
        let missing = Error::Field {
            of: "a plan",
            field: "n_public",
            missing: true,
            passes: "n_public = 60000 in [data]: a public number of examples, which sums are divided by",
        };
        let examples_public = self.data.n_public.ok_or(missing)?;
        if let Some(features) = &self.features {
            features.check()?;
        }
        Ok(examples_public)
    }

    /// The network for data of this shape, as they are loaded, with these classes, and what it makes small.
    pub fn architecture(
        &self,
        shape: &[usize],
        classes: Option<u32>,
    ) -> Result<(Architecture, Loss)> {
        let (outputs, loss) = match classes {
            Some(count) => (count as usize, Loss::CrossEntropy),
            None => (1, Loss::Squared),
        };
        let architecture = match &self.features {
            Some(features) => self.model.architecture(&features.shape(shape)?, outputs)?,
            None => self.model.architecture(shape, outputs)?,
        };
        Ok((architecture, loss))
    }

    /// The data of `[test]`, as the network sees them, once it is checked that they are [not the private ones](crate::data::check_apart). `folder` is the plan's.
    pub fn load_test(&self, folder: &Path, threads: NonZeroUsize) -> Result<Option<Dataset>> {
        let Some(test) = &self.test else {
            return Ok(None);
        };
        let loaded = load_public_beside(test, &self.data, folder)?;
        self.prepared(loaded, threads).map(Some)
    }

    /// What the network sees of data as they were loaded: [`Self::trainer`] does that with the private ones, and whoever evaluates must do it with
    /// those of `[test]`.
    pub fn prepared(&self, data: Dataset, threads: NonZeroUsize) -> Result<Dataset> {
        match &self.features {
            Some(features) => features.of(data, threads),
            None => Ok(data),
        }
    }

    /// The same, as far as it is declared: `None` if the data would have to be opened.
    pub fn architecture_declared(&self) -> Result<Option<(Architecture, Loss)>> {
        self.data.check()?;
        match &self.data.shape {
            Some(shape) => {
                let classes = self.data.classes.as_ref().map(Classes::count);
                self.architecture(shape, classes).map(Some)
            }
            None => Ok(None),
        }
    }

    /// The run on these data, before its first step, and the network that it trains. Nobody keeps it.
    pub fn trainer(
        &self,
        plan: &Plan,
        data: Secret<Dataset>,
        threads: NonZeroUsize,
        payment: Payment,
    ) -> Result<(Trainer, Architecture)> {
        let (data, architecture, network) = self.network(data, threads)?;
        let method = self.method(network.param_len(), threads)?;
        let parameters = self.initial(&architecture);
        let trainer = Trainer::new(plan, network, parameters, data, method, payment)?;
        Ok((trainer, architecture))
    }

    /// The run that was begun in a place, and the network that it trains.
    pub fn trainer_kept(
        &self,
        plan: &Plan,
        data: Secret<Dataset>,
        threads: NonZeroUsize,
        place: Place,
        interval: NonZeroUsize,
    ) -> Result<(Trainer, Architecture)> {
        let (data, architecture, network) = self.network(data, threads)?;
        let method = self.method(network.param_len(), threads)?;
        let trainer = Trainer::kept(plan, network, data, method, place, interval)?;
        Ok((trainer, architecture))
    }

    pub(crate) fn network(
        &self,
        data: Secret<Dataset>,
        threads: NonZeroUsize,
    ) -> Result<(Secret<Dataset>, Architecture, Network)> {
        // Shape and classes are public, and features fail by their shape alone.
        let data = data.expose();
        let (architecture, loss) = self.architecture(data.shape(), data.classes())?;
        let network = Network::from_specs(architecture.layers(), loss)?;
        let data = self.prepared(data, threads)?;
        Ok((Secret::new(data), architecture, network))
    }

    /// A network of this architecture, for the loss that goes with the declared classes.
    pub(crate) fn network_of(&self, architecture: &Architecture) -> Result<Network> {
        let loss = match &self.data.classes {
            Some(_) => Loss::CrossEntropy,
            None => Loss::Squared,
        };
        Ok(Network::from_specs(architecture.layers(), loss)?)
    }

    /// The model as ONNX. Refused if examples go through a map that the file would not hold: it would seem to take them as they are.
    pub fn onnx(
        &self,
        architecture: &Architecture,
        parameters: &[f32],
        inputs: &Inputs,
        notes: &[(&str, &str)],
    ) -> std::result::Result<Vec<u8>, OnnxError> {
        match &self.features {
            Some(_) => Err(OnnxError::Features),
            None => onnx::write(architecture, parameters, Some(inputs), notes),
        }
    }

    /// The parameters before the first step, from the plan's seed.
    pub fn initial(&self, architecture: &Architecture) -> Vec<f32> {
        init(architecture.layers(), self.model.seed.unwrap_or(0))
    }

    /// Refuses what can be refused by what is public about the data, so that nobody pays for it, and gives the network for examples of
    /// this shape.
    pub fn check(&self, plan: &Plan, shape: &[usize]) -> Result<Architecture> {
        self.check_examples()?;
        if let Some(test) = &self.test {
            test.check()?;
            if let (Some(features), Some(shape)) = (&self.features, &test.shape) {
                features.shape(shape)?;
            }
        }
        let method = self.method(0, NonZeroUsize::MIN)?;
        let classes = self.data.classes.as_ref().map(Classes::count);
        let (architecture, loss) = self.architecture(shape, classes)?;
        let network = Network::from_specs(architecture.layers(), loss)?;
        self.check_rounding(plan, &network, method.clipping)?;
        plan.check_memory(network.param_len())?;
        if plan.correlated()?.is_none() {
            plan.noise()?;
        }
        Ok(architecture)
    }

    /// Refuses batches that are too large to be summed in floats, and says which would not be; for all norms, where the clip norm moves.
    pub(crate) fn check_rounding(
        &self,
        plan: &Plan,
        network: &Network,
        clipping: Clipping,
    ) -> Result<()> {
        let sum = |cap| sum_of(plan, network, clipping, cap);
        let (cap, share) = match sum(plan.batch_cap()) {
            Err(Error::Network(NetworkError::Rounding { cap, share })) => (cap, share),
            made => return made.map(drop),
        };
        // Between a batch that passes and one that does not, by halves.
        let (mut passes, mut fails) = (0, plan.expected_batch() as u64);
        while fails - passes > 1 {
            let middle = passes.midpoint(fails);
            match sum(batch_cap(middle as f64)) {
                Ok(_) => passes = middle,
                Err(_) => fails = middle,
            }
        }
        Err(Error::BatchRounding {
            expected: plan.expected_batch(),
            cap,
            share,
            passes,
            examples_public: self.data.n_public.unwrap_or_default(),
            sampler: plan.summary().sampler,
        })
    }

    /// Refuses a declared number of examples that would be refused once they are read.
    fn check_examples(&self) -> Result<()> {
        let most = EXAMPLES_MAX;
        match self.data.n_public.is_some_and(|rows| rows > most.into()) {
            true => Err(Error::TooManyExamples { most }),
            false => Ok(()),
        }
    }

    /// Clipping and optimizer for a model of so many parameters.
    pub fn method(&self, parameters: usize, threads: NonZeroUsize) -> Result<Method> {
        let steps = self.plan.steps;
        let (rule, schedule) = (self.optimizer.rule()?, self.optimizer.schedule()?);
        let average = self.optimizer.average;
        Ok(Method {
            clipping: self.plan.clipping()?,
            optimizer: Optimizer::new(rule, schedule, parameters, steps)?,
            average: average
                .map(|decay| Average::new(decay, parameters))
                .transpose()?,
            threads,
        })
    }

    /// How many floats a checkpoint of a model of so many parameters holds: those, and what the optimizer keeps for each.
    pub fn floats_kept(&self, parameters: usize) -> Result<usize> {
        let method = self.method(parameters, NonZeroUsize::MIN)?;
        let average = method.average.as_ref();
        let average = average.map_or(0, |average| average.state().1.len());
        let [first, second] = method.optimizer.state().map(<[f32]>::len);
        Ok(parameters + first + second + average)
    }

    /// What a checkpoint of this run belongs to: every word of the plan, and its event.
    pub fn run(&self, plan: &Plan) -> Run {
        self.run_of(plan.event(), plan.steps())
    }

    pub(crate) fn run_of(&self, event: &Event, steps_total: u64) -> Run {
        let text = serde_json::to_vec(self).expect("plain data");
        Run {
            plan: Sha256::digest(text).into(),
            event: event.clone(),
            steps_total,
        }
    }

    /// The optimizer in words, for the card.
    pub fn optimizer_words(&self) -> String {
        let word = |given: &Option<String>, otherwise: &str| match given {
            Some(word) => word.clone(),
            None => otherwise.into(),
        };
        let mut words = word(&self.optimizer.kind, "sgd");
        if let Ok(schedule) = self.optimizer.schedule() {
            words += &match schedule {
                Schedule::Constant { rate } => format!(", learning rate {rate}"),
                Schedule::Linear { first, last } | Schedule::Cosine { first, last } => {
                    let kind = word(&self.optimizer.schedule, "");
                    format!(", learning rate {first} to {last} ({kind})")
                }
            };
        }
        if let Some(momentum) = self.optimizer.momentum {
            words += &format!(", momentum {momentum}");
        }
        if let Some(decay) = self.optimizer.average {
            words += &format!(", weights averaged with decay {decay}");
        }
        words
    }

    /// How the numbers were chosen, for the card.
    pub fn search(&self) -> Search {
        match self.searched {
            None => Search::NotDeclared,
            Some(0) => Search::None,
            Some(runs) => Search::NotCharged { runs },
        }
    }
}

#[cfg(test)]
#[path = "recipe_test.rs"]
mod tests;
