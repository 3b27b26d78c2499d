//! `[plan]` and `[optimizer]` of a plan's file: words and numbers as they were written, and what they mean.

use serde::{Deserialize, Serialize};
use whit_core::Neighbours;

use crate::draft::{AdaptiveDraft, Draft, FactorDraft, NoiseDraft, SamplerDraft};
use crate::error::{Error, Result, within};
use crate::optimizer::Rule;
use crate::schedule::Schedule;
use crate::train::Clipping;

/// The word for a clip norm that follows a quantile.
const ADAPTIVE: &str = "adaptive";

/// A promise that may fail for one in ten is none to train by. (Audits make plans of their own with larger ones.)
const DELTA_END: f64 = 0.1;

/// `[plan]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanSection {
    /// How examples are drawn; else `poisson`.
    pub sampler: Option<String>,
    /// How likely an example is in a step (`poisson`).
    pub rate: Option<f64>,
    /// How many examples a step has (`fixed_size`).
    pub size: Option<u64>,
    /// How many steps an epoch has (`balls_in_bins`, `cyclic`).
    pub bins: Option<u64>,
    /// How noise is correlated between steps, `banded` or `tree` (`cyclic`); else `banded`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mechanism: Option<String>,
    /// How many steps a release holds (`cyclic`, `banded`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub band: Option<u64>,
    /// How many steps an epoch has (`shuffled`).
    pub batches: Option<u64>,
    /// How many steps there are.
    pub steps: u64,
    /// The norm that each example's gradient is clipped to; at first, if it is adaptive.
    pub clip: f64,
    /// `flat`, `per_layer`, `automatic` or `adaptive`; else `flat`.
    pub clipping: Option<String>,
    /// The share of gradients that are to be below the norm (`adaptive`); else 0.5.
    pub quantile: Option<f64>,
    /// How fast the norm moves (`adaptive`); else 0.2.
    pub clip_rate: Option<f64>,
    /// The noise of the number of gradients below the norm (`adaptive`); else a twentieth of the expected batch.
    pub count_noise: Option<f64>,
    /// Of automatic clipping; else 0.01.
    pub gamma: Option<f64>,
    /// The noise's standard deviation over the clip norm.
    pub noise_multiplier: Option<f64>,
    /// The least noise that keeps this epsilon.
    pub epsilon: Option<f64>,
    /// The slack.
    pub delta: f64,
    /// `add_remove` or `replace_one`; else as is usual for the sampler.
    pub relation: Option<Neighbours>,
}

/// `[optimizer]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptimizerSection {
    /// `sgd`, `nesterov` or `adam`; else `sgd`.
    pub kind: Option<String>,
    /// The learning rate, of the first step if there is a schedule; else 0.1, and 0.001 for `adam`.
    pub rate: Option<f64>,
    /// `constant`, `linear` or `cosine`; else `constant`.
    pub schedule: Option<String>,
    /// The learning rate of the last step (`linear`, `cosine`); else 0.
    pub last: Option<f64>,
    /// What is left of the gradients before (`sgd`, `nesterov`); else 0, and 0.9 for `nesterov`.
    pub momentum: Option<f32>,
    /// What is left of the mean (`adam`); else 0.9.
    pub beta1: Option<f32>,
    /// What is left of the mean square (`adam`); else 0.999.
    pub beta2: Option<f32>,
    /// If given, the model is a moving average of the weights, with this much of the past left after each step.
    pub average: Option<f32>,
}

impl PlanSection {
    pub(crate) fn draft(&self, examples_public: u64) -> Result<Draft> {
        let sampler = self.sampler()?;
        self.check_relation(sampler)?;
        let noise = match (self.noise_multiplier, self.epsilon) {
            (Some(given), None) => NoiseDraft::Multiplier(given),
            (None, Some(given)) => NoiseDraft::Epsilon(given),
            (given, _) => {
                return Err(Error::Field {
                    of: if given.is_some() {
                        "a plan with `epsilon`"
                    } else {
                        "a plan without `epsilon`"
                    },
                    field: "noise_multiplier",
                    missing: given.is_none(),
                    passes: "noise_multiplier = 1.1, or epsilon = 3.0 instead",
                });
            }
        };
        let slack = self.delta > 0.0 && self.delta < DELTA_END;
        let range =
            "a number above 0 and below 0.1, and better below one over the number of examples";
        within("delta", self.delta, slack, range)?;
        Ok(Draft {
            sampler,
            steps: self.steps,
            clip_norm: self.clip,
            adaptive: self.adaptive(sampler.rate(examples_public) * examples_public as f64),
            noise,
            delta: self.delta,
            relation: self.relation.unwrap_or(sampler.relation()),
            examples_public,
        })
    }

    /// Samplers of which each has neighbours under one relation only.
    fn check_relation(&self, sampler: SamplerDraft) -> Result<()> {
        let of = match sampler {
            SamplerDraft::FixedSize { .. } => "fixed_size sampling",
            SamplerDraft::Shuffled { .. } => "shuffled sampling",
            SamplerDraft::BallsInBins { .. } => "balls_in_bins sampling",
            _ => return Ok(()),
        };
        let word = |relation: Neighbours| match relation {
            Neighbours::AddRemove => "add_remove",
            _ => "replace_one",
        };
        match self.relation {
            Some(given) if given != sampler.relation() => Err(Error::Relation {
                of,
                given: word(given),
                passes: word(sampler.relation()),
            }),
            _ => Ok(()),
        }
    }

    /// The kind of clipping, if it is not the usual one.
    pub fn clipping_word(&self) -> Option<&str> {
        self.clipping.as_deref().filter(|word| *word != "flat")
    }

    /// How the norm moves, if it does.
    fn adaptive(&self, expected_batch: f64) -> Option<AdaptiveDraft> {
        (self.clipping.as_deref() == Some(ADAPTIVE)).then(|| AdaptiveDraft {
            quantile: self.quantile.unwrap_or(0.5),
            rate: self.clip_rate.unwrap_or(0.2),
            count_noise: self.count_noise.unwrap_or(expected_batch / 20.0),
        })
    }

    pub(super) fn sampler(&self) -> Result<SamplerDraft> {
        let word = self.sampler.as_deref().unwrap_or("poisson");
        let (of, takes): (_, &[_]) = match word {
            "poisson" => ("poisson sampling", &["rate"]),
            "fixed_size" => ("fixed_size sampling", &["size"]),
            "balls_in_bins" => ("balls_in_bins sampling", &["bins"]),
            "cyclic" => self.cyclic()?,
            "shuffled" => ("shuffled sampling", &["batches"]),
            "all" => ("a plan in which everybody takes part in each step", &[]),
            unknown => {
                return Err(Error::Word {
                    field: "sampler",
                    given: unknown.into(),
                    passes: "\"poisson\", \"fixed_size\", \"balls_in_bins\", \"cyclic\", \"shuffled\" or \"all\"",
                });
            }
        };
        let given = [
            ("rate", self.rate.is_some(), "rate = 0.01"),
            ("size", self.size.is_some(), "size = 600"),
            ("bins", self.bins.is_some(), "bins = 100"),
            ("batches", self.batches.is_some(), "batches = 100"),
            ("mechanism", self.mechanism.is_some(), ""),
            ("band", self.band.is_some(), "band = 32"),
        ];
        only(of, takes, &given)?;
        for (field, given, passes) in given {
            // A mechanism may be left out.
            if takes.contains(&field) && !given && field != "mechanism" {
                return Err(Error::Field {
                    of,
                    field,
                    missing: true,
                    passes,
                });
            }
        }
        let count = |given: Option<u64>| given.unwrap_or_default();
        Ok(match word {
            "poisson" => SamplerDraft::Poisson {
                rate: self.rate.unwrap_or_default(),
            },
            "fixed_size" => SamplerDraft::FixedSize {
                size: count(self.size),
            },
            "balls_in_bins" => SamplerDraft::BallsInBins {
                bins: count(self.bins),
            },
            "cyclic" => SamplerDraft::Cyclic {
                bins: count(self.bins),
                factor: match takes.contains(&"band") {
                    true => FactorDraft::Banded {
                        band: count(self.band),
                    },
                    false => FactorDraft::Tree,
                },
            },
            "shuffled" => SamplerDraft::Shuffled {
                batches: count(self.batches),
            },
            _ => SamplerDraft::All,
        })
    }

    /// What a cyclic sampler takes, by how its noise is correlated.
    fn cyclic(&self) -> Result<(&'static str, &'static [&'static str])> {
        match self.mechanism.as_deref() {
            None | Some("banded") => Ok((
                "cyclic sampling with banded noise",
                &["bins", "mechanism", "band"],
            )),
            Some("tree") => Ok(("cyclic sampling with a tree", &["bins", "mechanism"])),
            Some(unknown) => Err(Error::Word {
                field: "mechanism",
                given: unknown.into(),
                passes: "\"banded\" or \"tree\"",
            }),
        }
    }

    pub(super) fn clipping(&self) -> Result<Clipping> {
        let word = self.clipping.as_deref().unwrap_or("flat");
        let clipping = match word {
            "automatic" => Clipping::Automatic {
                gamma: self.gamma.unwrap_or(0.01),
            },
            // The norm moves, and what it is in a step holds for the whole gradient.
            "flat" | ADAPTIVE => Clipping::Flat,
            "per_layer" => Clipping::PerLayer,
            unknown => {
                return Err(Error::Word {
                    field: "clipping",
                    given: unknown.into(),
                    passes: "\"flat\", \"per_layer\", \"automatic\" or \"adaptive\"",
                });
            }
        };
        let takes: &[_] = match word {
            "automatic" => &["gamma"],
            ADAPTIVE => &["quantile", "clip_rate", "count_noise"],
            _ => &[],
        };
        let given = [
            ("gamma", self.gamma.is_some(), ""),
            ("quantile", self.quantile.is_some(), ""),
            ("clip_rate", self.clip_rate.is_some(), ""),
            ("count_noise", self.count_noise.is_some(), ""),
        ];
        only("this clipping", takes, &given)?;
        Ok(clipping)
    }
}

impl OptimizerSection {
    pub(super) fn rule(&self) -> Result<Rule> {
        let (rule, takes): (_, &[_]) = match self.kind.as_deref().unwrap_or("sgd") {
            "sgd" => (
                Rule::Sgd {
                    momentum: self.momentum.unwrap_or(0.0),
                },
                &["momentum"],
            ),
            "nesterov" => (
                Rule::Nesterov {
                    momentum: self.momentum.unwrap_or(0.9),
                },
                &["momentum"],
            ),
            "adam" => (
                Rule::Adam {
                    beta1: self.beta1.unwrap_or(0.9),
                    beta2: self.beta2.unwrap_or(0.999),
                    epsilon: 1e-8,
                },
                &["beta1", "beta2"],
            ),
            unknown => {
                return Err(Error::Word {
                    field: "kind",
                    given: unknown.into(),
                    passes: "\"sgd\", \"nesterov\" or \"adam\", in [optimizer]",
                });
            }
        };
        let given = [
            ("momentum", self.momentum.is_some(), ""),
            ("beta1", self.beta1.is_some(), ""),
            ("beta2", self.beta2.is_some(), ""),
        ];
        only("this optimizer", takes, &given)?;
        Ok(rule)
    }

    pub(super) fn schedule(&self) -> Result<Schedule> {
        let usual = match self.kind.as_deref() {
            Some("adam") => 0.001,
            _ => 0.1,
        };
        let (first, last) = (self.rate.unwrap_or(usual), self.last.unwrap_or(0.0));
        match self.schedule.as_deref().unwrap_or("constant") {
            "constant" => {
                let given = [("last", self.last.is_some(), "")];
                only("a constant schedule", &[], &given)?;
                Ok(Schedule::Constant { rate: first })
            }
            "linear" => Ok(Schedule::Linear { first, last }),
            "cosine" => Ok(Schedule::Cosine { first, last }),
            unknown => Err(Error::Word {
                field: "schedule",
                given: unknown.into(),
                passes: "\"constant\", \"linear\" or \"cosine\"",
            }),
        }
    }
}

/// Refuses a field that is given and not among those that are taken.
fn only(
    of: &'static str,
    takes: &[&str],
    given: &[(&'static str, bool, &'static str)],
) -> Result<()> {
    match given
        .iter()
        .find(|(field, given, _)| *given && !takes.contains(field))
    {
        Some(&(field, _, passes)) => Err(Error::Field {
            of,
            field,
            missing: false,
            passes,
        }),
        None => Ok(()),
    }
}
