//! # Classical models
//! Models whose data are summed up once, or a few times, in statistics that one example can move only so far: [`naive_bayes`],
//! [`linear_regression`], [`pca`], [`k_means`], [`decision_forest`], [`boosted_stumps`] and [`minima_perturbation`].
//!
//! A fit is made in three steps, and no data is read before the third:
//! 1. a plan is made from public numbers alone: declared bounds, classes, rounds and a [`Budget`]. It calibrates the noise and prices the one
//!    [`Event`](whit_core::Event) of the whole fit;
//! 2. somebody [pays](crate::payment) for it;
//! 3. [`on`](Classical::on) takes the data, if they have the plan's shape, and [`release`](Fit::release) uses the payment up, and gives the model as a
//!    [`Release`](whit_mechanism::Release) that carries the event.
//!
//! **Guarantee.** Each fit is `(ε, δ)`-DP for its budget, `ε`-DP where `δ` is zero, under add/remove of one example, for whoever sees the model
//! and all noisy sums that it was made from; of [`minima_perturbation`], which shows neither sums nor the noise of its objective, for whoever sees the weights. One example is all that a privacy unit has; the number of rows is private.
//! **Proof.** Each model's file shows, for every example, that what it adds to the integer sums of a round is a function of itself and of
//! releases before, and how long that vector is at most. Neighbours differ in one such vector, or in none if the example is empty. The rest is
//! [`noisy_sums`]: sums are exact, noise is added to integers, and everything after it is post-processing. ∎
//!
//! **What is never taken from data:** bounds, norms, centres, classes, and the number of rows. Values outside of what was declared are
//! clamped, which costs accuracy and no privacy. Where other libraries went wrong (sensitivities that forget a part of what is released, ranges
//! and numbers of rows taken from the data), the tests hold a twin with that fault, which must be convicted.
//!
//! ```
//! use whit_core::{Delta, Epsilon, Secret};
//! use whit_learn::classical::{Budget, Classical, Interval, NaiveBayesPlan};
//! use whit_learn::data::Dataset;
//! use whit_learn::{Payment, Uncharged};
//! use whit_mechanism::OsEntropy;
//!
//! let height = Interval::new(100.0, 220.0)?;
//! let plan = NaiveBayesPlan::new(vec![height], 2, Budget::new(Epsilon::new(2.0)?, Delta::new(1e-6)?)?)?;
//! let (mut heights, mut classes) = (vec![120.0; 1000], vec![0; 1000]);
//! heights.extend([180.0; 1000]);
//! classes.extend([1; 1000]);
//! let data = Dataset::with_classes(vec![1], heights, classes, 2).map(Secret::new).ok_or("no data set")?;
//! let payment = Payment::uncharged(&plan, Uncharged);
//! let model = plan.on(&data)?.release(payment, &mut OsEntropy::new())?;
//! assert_eq!((model.value().predict(&[118.0]), model.value().predict(&[190.0])), (0, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//! Nothing is fitted for nothing,
//! ```compile_fail,E0061
//! # use whit_core::Secret;
//! # use whit_learn::{Result, classical::{Classical, PcaPlan}, data::Dataset};
//! fn for_nothing(plan: &PcaPlan, data: &Secret<Dataset>) -> Result<()> {
//!     let _ = plan.on(data)?.release(&mut whit_mechanism::OsEntropy::new());
//!     Ok(())
//! }
//! ```
//! nor twice for one payment.
//! ```compile_fail,E0382
//! # use whit_core::Secret;
//! # use whit_learn::{Payment, Result, classical::{Classical, PcaPlan}, data::Dataset};
//! fn twice(plan: &PcaPlan, data: &Secret<Dataset>, payment: Payment) -> Result<()> {
//!     let mut entropy = whit_mechanism::OsEntropy::new();
//!     let _first = plan.on(data)?.release(payment, &mut entropy);
//!     let _second = plan.on(data)?.release(payment, &mut entropy);
//!     Ok(())
//! }
//! ```

mod any;
pub mod boosted_stumps;
mod budget;
mod card;
pub mod decision_forest;
mod decision_tree;
mod document;
mod domain;
mod eigen;
mod fit;
mod interval;
pub mod k_means;
pub mod linear_regression;
pub mod minima_perturbation;
pub mod naive_bayes;
pub mod noisy_sums;
mod objective_noise;
pub mod pca;
mod recipe;
mod residual;
mod softmax;
mod softmax_objective;

#[cfg(test)]
mod doubt;
#[cfg(test)]
mod exact;

pub use any::{AnyModel, AnyPlan, Prediction};
pub use boosted_stumps::{BoostedStumps, BoostedStumpsPlan, Boosting};
pub use budget::Budget;
pub use card::FitCard;
pub use decision_forest::{DecisionForest, DecisionForestPlan, ForestShape};
pub use document::{Document, Promise};
pub use domain::Domain;
pub use fit::{Answers, Classical, Fit, Takes, Terms};
pub use interval::Interval;
pub use k_means::{KMeans, KMeansPlan, Lloyd};
pub use linear_regression::{LinearRegression, LinearRegressionPlan};
pub use minima_perturbation::{LogisticRegression, MinimaPerturbationPlan, Penalised};
pub use naive_bayes::{NaiveBayes, NaiveBayesPlan};
pub use pca::{Origin, Pca, PcaPlan};
pub use recipe::{BudgetSection, FitRecipe, FitSummary, Kind, ModelSection};

use crate::error::{Result, within};
use crate::payment::{Priced, sealed::Sealed};

/// More coordinates than this are no statistic of a classical model.
const COORDINATES_MAX: usize = 1 << 20;

/// Matrices of more rows than this take minutes to decompose.
const MATRIX_MAX: usize = 256;
/// What would pass.
const MATRIX_RANGE: &str = "a whole number from 1 to 256";

/// Plans keep their event beside the noise that it is about.
macro_rules! priced {
    ($($plan:ty),*) => {$(
        impl Sealed for $plan {}

        impl Priced for $plan {
            fn event(&self) -> &whit_core::Event {
                self.noise.event()
            }

            fn guarantee(&self) -> Result<whit_core::Event> {
                self.noise.guarantee()
            }
        }
    )*};
}
priced!(
    BoostedStumpsPlan,
    DecisionForestPlan,
    KMeansPlan,
    LinearRegressionPlan,
    NaiveBayesPlan,
    PcaPlan
);

/// A number of things that is at least one.
fn counted(what: &'static str, given: usize, most: usize, range: &'static str) -> Result<()> {
    within(what, given as f64, (1..=most).contains(&given), range)
}
