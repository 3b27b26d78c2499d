//! One plan, and one model, of whatever kind: for doors that are told by a word which.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use whit_core::{Entropy, Event};
use whit_mechanism::Release;

use super::{
    BoostedStumps, BoostedStumpsPlan, Classical, DecisionForest, DecisionForestPlan, Fit, KMeans,
    KMeansPlan, LinearRegression, LinearRegressionPlan, LogisticRegression, MinimaPerturbationPlan,
    NaiveBayes, NaiveBayesPlan, Pca, PcaPlan, Takes, Terms,
};
use crate::data::{Answer, Dataset, Example};
use crate::error::Result;
use crate::payment::{Payment, Priced, sealed::Sealed};

/// Columns of text, with all that they may hold.
type Categories = BTreeMap<String, Vec<String>>;

/// A plan of one of the kinds.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AnyPlan {
    /// Gaussian naive Bayes.
    NaiveBayes(NaiveBayesPlan),
    /// Linear regression.
    LinearRegression(LinearRegressionPlan),
    /// k-means.
    KMeans(KMeansPlan),
    /// Principal components.
    Pca(PcaPlan),
    /// A decision forest.
    Forest(DecisionForestPlan),
    /// Boosted stumps.
    BoostedStumps(BoostedStumpsPlan),
    /// Logistic regression.
    MinimaPerturbation(Box<MinimaPerturbationPlan>),
}

/// A model of one of the kinds. Public.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AnyModel {
    /// Gaussian naive Bayes.
    NaiveBayes(NaiveBayes),
    /// Linear regression.
    LinearRegression(LinearRegression),
    /// k-means.
    KMeans(KMeans),
    /// Principal components.
    Pca(Pca),
    /// A decision forest.
    Forest(DecisionForest),
    /// Boosted stumps.
    BoostedStumps(BoostedStumps),
    /// Logistic regression.
    MinimaPerturbation(LogisticRegression),
}

/// What a model says of an example.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Prediction {
    /// Its class, or the centre that it is of.
    Class(u32),
    /// Its number.
    Number(f64),
    /// Its place along the components.
    Place(Vec<f64>),
}

/// The same for every kind of plan.
macro_rules! each {
    ($any:expr, $plan:ident => $does:expr) => {
        match $any {
            AnyPlan::NaiveBayes($plan) => $does,
            AnyPlan::LinearRegression($plan) => $does,
            AnyPlan::KMeans($plan) => $does,
            AnyPlan::Pca($plan) => $does,
            AnyPlan::Forest($plan) => $does,
            AnyPlan::BoostedStumps($plan) => $does,
            AnyPlan::MinimaPerturbation($plan) => $does,
        }
    };
}

impl Sealed for AnyPlan {}

impl Priced for AnyPlan {
    fn event(&self) -> &Event {
        each!(self, plan => plan.event())
    }

    fn guarantee(&self) -> Result<Event> {
        each!(self, plan => plan.guarantee())
    }
}

impl Classical for AnyPlan {
    type Model = AnyModel;

    fn takes(&self) -> Takes {
        each!(self, plan => plan.takes())
    }

    fn terms(&self) -> Terms {
        each!(self, plan => plan.terms())
    }

    fn spend(
        fit: Fit<'_, Self>,
        payment: Payment,
        entropy: &mut impl Entropy,
    ) -> Result<Release<AnyModel>> {
        let data = fit.data();
        Ok(match fit.plan() {
            AnyPlan::NaiveBayes(plan) => {
                let model = plan.on(data)?.release(payment, entropy)?;
                model.map(AnyModel::NaiveBayes)
            }
            AnyPlan::LinearRegression(plan) => {
                let model = plan.on(data)?.release(payment, entropy)?;
                model.map(AnyModel::LinearRegression)
            }
            AnyPlan::KMeans(plan) => {
                let model = plan.on(data)?.release(payment, entropy)?;
                model.map(AnyModel::KMeans)
            }
            AnyPlan::Pca(plan) => {
                let model = plan.on(data)?.release(payment, entropy)?;
                model.map(AnyModel::Pca)
            }
            AnyPlan::Forest(plan) => {
                let model = plan.on(data)?.release(payment, entropy)?;
                model.map(AnyModel::Forest)
            }
            AnyPlan::BoostedStumps(plan) => {
                let model = plan.on(data)?.release(payment, entropy)?;
                model.map(AnyModel::BoostedStumps)
            }
            AnyPlan::MinimaPerturbation(plan) => {
                let model = plan.on(data)?.release(payment, entropy)?;
                model.map(AnyModel::MinimaPerturbation)
            }
        })
    }
}

impl AnyModel {
    /// Do its parts fit each other, so that it can say something of any example, and are its numbers some that a fit could have given?
    pub(super) fn is_whole(&self) -> bool {
        match self {
            Self::NaiveBayes(model) => model.is_whole(),
            Self::LinearRegression(model) => model.is_whole(),
            Self::KMeans(model) => model.is_whole(),
            Self::Pca(model) => model.is_whole(),
            Self::Forest(model) => model.is_whole(),
            Self::BoostedStumps(model) => model.is_whole(),
            Self::MinimaPerturbation(model) => model.is_whole(),
        }
    }

    /// How many features it looks at.
    pub(super) fn features(&self) -> usize {
        match self {
            Self::NaiveBayes(model) => model.features(),
            Self::LinearRegression(model) => model.features(),
            Self::KMeans(model) => model.features(),
            Self::Pca(model) => model.features(),
            Self::Forest(model) => model.features(),
            Self::BoostedStumps(model) => model.features(),
            Self::MinimaPerturbation(model) => model.features(),
        }
    }

    /// Does it look at these columns, each of them one feature or, for some kinds, as many as it has categories? Without columns there is nothing to compare.
    pub(super) fn has_columns(&self, columns: &[String], categories: &Categories) -> bool {
        let placed = matches!(
            self,
            Self::Forest(_) | Self::BoostedStumps(_) | Self::MinimaPerturbation(_)
        );
        let width = |column: &String| match categories.get(column) {
            Some(names) if !placed => names.len(),
            _ => 1,
        };
        columns.is_empty() || columns.iter().map(width).sum::<usize>() == self.features()
    }

    /// How many classes it knows; `None` if it learns none.
    pub(super) fn classes(&self) -> Option<u32> {
        match self {
            Self::NaiveBayes(model) => Some(model.classes()),
            Self::Forest(model) => Some(model.classes()),
            Self::BoostedStumps(model) => Some(model.classes()),
            Self::MinimaPerturbation(model) => Some(model.classes()),
            Self::LinearRegression(_) | Self::KMeans(_) | Self::Pca(_) => None,
        }
    }

    /// What it says of an example with these features.
    pub fn predict(&self, features: &[f32]) -> Prediction {
        match self {
            Self::NaiveBayes(model) => Prediction::Class(model.predict(features)),
            Self::LinearRegression(model) => Prediction::Number(model.predict(features)),
            Self::KMeans(model) => Prediction::Class(model.predict(features) as u32),
            Self::Pca(model) => Prediction::Place(model.transform(features)),
            Self::Forest(model) => Prediction::Class(model.predict(features)),
            Self::BoostedStumps(model) => Prediction::Class(model.predict(features)),
            Self::MinimaPerturbation(model) => Prediction::Class(model.predict(features)),
        }
    }

    /// How good it is on examples that are public: the measure of its kind, by name. Not a number where there are no examples.
    pub fn evaluate(&self, public: &Dataset) -> (&'static str, f64) {
        let rows = || (0..public.rows()).filter_map(|row| public.example(row));
        let mean = |of: &dyn Fn(Example<'_>) -> f64| {
            let total: f64 = rows().map(of).sum();
            total / rows().count() as f64
        };
        match self {
            Self::NaiveBayes(_)
            | Self::Forest(_)
            | Self::BoostedStumps(_)
            | Self::MinimaPerturbation(_) => {
                let is_right =
                    |example: Example<'_>| match (self.predict(example.features), example.answer) {
                        (Prediction::Class(said), Answer::Class(class)) => {
                            f64::from(u8::from(said == class))
                        }
                        _ => 0.0,
                    };
                ("accuracy", mean(&is_right))
            }
            Self::LinearRegression(line) => {
                let off = |example: Example<'_>| match example.answer {
                    Answer::Number(number) => {
                        (line.predict(example.features) - f64::from(number)).powi(2)
                    }
                    Answer::Class(_) => f64::NAN,
                };
                ("mean squared error", mean(&off))
            }
            Self::KMeans(model) => {
                let off = |example: Example<'_>| model.distance_square(example.features);
                ("mean squared distance to the nearest centre", mean(&off))
            }
            Self::Pca(model) => {
                let (kept, all) = rows().fold((0.0, 0.0), |(kept, all), example| {
                    let along = model.transform(example.features);
                    let along: f64 = along.iter().map(|place| place * place).sum();
                    (kept + along, all + model.distance_square(example.features))
                });
                ("share of the squares about the centre", kept / all)
            }
        }
    }
}
