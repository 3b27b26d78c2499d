//! # Training by noisy gradients
//! The account of DP-SGD \[ACG+16\]: so many steps, each with Gaussian noise over a Poisson sample. Batches that are cut from a
//! shuffled data set are something else, and cost more: they have a mechanism of their own.

use whit_accounting::Composition;
use whit_core::Neighbours;

use super::error::{Error, Result};
use super::kind::Kind;
use super::question::Account;
use super::term::{Field, Term};

/// How often a unit is sampled.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Sampling {
    /// With this probability in each step.
    Rate(f64),
    /// So many of so many, on average.
    Batch {
        /// The expected number of units in a sample.
        batch: u64,
        /// The number of units.
        size: u64,
    },
}

/// How long it takes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Length {
    /// So many steps.
    Steps(u64),
    /// As many steps as it takes to sample each unit so often, on average; a step that is begun counts.
    Epochs(f64),
}

/// A run of training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Training {
    /// How often a unit is sampled.
    pub sampling: Sampling,
    /// The standard deviation of the noise over the clipping norm.
    pub noise_multiplier: f64,
    /// How long it takes.
    pub length: Length,
}

/// Integer orders that the first moments accountant looked at [ACG+16, Sec. 5.1]: "we compute α(λ) for λ ≤ 32".
const ORDERS: u32 = 32;

impl Training {
    /// The number of steps.
    pub fn steps(&self) -> Result<u64> {
        let epochs = match self.length {
            Length::Steps(steps) => return Ok(steps),
            Length::Epochs(epochs) => epochs,
        };
        let steps = match self.sampling {
            Sampling::Rate(rate) => epochs / rate,
            Sampling::Batch { batch, size } => epochs * size as f64 / batch as f64,
        };
        // A quotient of decimals that is whole but for rounding is meant to be whole.
        let nearest = steps.round();
        let steps = if (steps - nearest).abs() <= 4.0 * f64::EPSILON * nearest {
            nearest
        } else {
            steps.ceil()
        };
        if steps >= 1.0 && steps < (1_u64 << 53) as f64 {
            Ok(steps as u64)
        } else {
            Err(whit_accounting::Error::OutOfRange {
                step: "training",
                what: "epochs",
                found: epochs,
                range: "a number above 0 that makes from 1 to 2^53 steps",
            }
            .into())
        }
    }

    /// As an account.
    pub fn account(&self, neighbours: Neighbours) -> Result<Account> {
        let rate = match self.sampling {
            Sampling::Rate(rate) => Field::Real(rate),
            Sampling::Batch { batch: 0, .. } | Sampling::Batch { size: 0, .. } => {
                return Err(Error::WrongValue {
                    what: "batch or size".into(),
                    found: "0".into(),
                    passes: "whole numbers from 1 on",
                });
            }
            Sampling::Batch { batch, size } => Field::Quotient(batch as f64, size as f64),
        };
        let fields = [
            ("rate".to_owned(), rate),
            ("sigma".to_owned(), Field::Real(self.noise_multiplier)),
        ];
        let count = Field::Whole(self.steps()?);
        let term = Term::called("sgd", Kind::PoissonGaussian, fields, count)?;
        Ok(Account {
            terms: vec![term.counting("steps")],
            neighbours,
            group: 1,
        })
    }
}

/// What the first moments accountant says: `min_λ D_(λ+1) + ln(1/δ)/λ` over whole orders up to 32 [ACG+16, Thm 2]. A comparison
/// for figures: proven, but for a rounding of the sum, and looser than what is known today.
pub fn first_moments_accountant(composition: &Composition, delta: f64) -> Result<f64> {
    let mut least = f64::INFINITY;
    for order in 1..=ORDERS {
        let order = f64::from(order);
        let divergence = composition.renyi(order + 1.0)?.upper();
        least = least.min(divergence - delta.ln() / order);
    }
    Ok(least)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Query;

    fn training(sampling: Sampling, length: Length) -> Training {
        Training {
            sampling,
            noise_multiplier: 4.0,
            length,
        }
    }

    #[test]
    fn epochs_become_steps() {
        let batch = Sampling::Batch {
            batch: 256,
            size: 60_000,
        };
        for (sampling, epochs, steps) in [
            (batch, 60.0, 14_063),
            (batch, 0.001, 1),
            (Sampling::Rate(0.01), 100.0, 10_000),
            (Sampling::Rate(0.3), 3.0, 10),
            (Sampling::Rate(0.7), 7.0, 10),
            (Sampling::Rate(0.7), 1.0, 2),
        ] {
            let run = training(sampling, Length::Epochs(epochs));
            assert_eq!(run.steps(), Ok(steps), "{run:?}");
        }
        for epochs in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert!(training(batch, Length::Epochs(epochs)).steps().is_err());
        }
        let nobody = Sampling::Batch { batch: 1, size: 0 };
        let refused = training(nobody, Length::Steps(1)).account(Neighbours::AddRemove);
        assert!(refused.is_err());
    }

    /// [ACG+16, Sec. 5.2] has (1.26, 1e-5) for q = 0.01, σ = 4 and 100 epochs.
    #[test]
    fn the_first_accountant_is_reproduced() {
        let run = training(Sampling::Rate(0.01), Length::Steps(10_000));
        let account = run.account(Neighbours::AddRemove).expect("in range");
        let composition = account.composition().expect("in range");
        let first = first_moments_accountant(&composition, 1e-5).expect("known");
        assert!((first - 1.26).abs() < 0.005, "{first}");
        let exact = account.ask(Query::Epsilon { delta: 1e-5 }).expect("known");
        assert!(exact.upper < first);
    }
}
