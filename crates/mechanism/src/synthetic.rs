//! # Synthetic data
//! **Definition.** A distribution over the cells of a [`Domain`] and a number of rows, both released. It answers any linear counting query, and
//!   synthetic rows can be drawn from it: as many as wanted, each on its own.
//! **Guarantee.** That of the release it is part of: all of this is post-processing.
//! **Sampler.** A cell has its probability cut to a multiple of `2^-62`, over the sum of these; from that, exactly. So a draw is within
//!   `2^-42` of the distribution, in total variation, for `2^20` cells.

use whit_core::{Entropy, Ratio};

use crate::Result;
use crate::sample::{Weight, Weighted};
use crate::workload::{Domain, Query, Workload};

/// A query of the workload, by its number, and the noisy count that answered it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// Which query.
    pub query: usize,
    /// How many rows it counts, with noise; may be negative.
    pub answer: i64,
}

/// A released distribution over a domain.
#[derive(Clone, Debug, PartialEq)]
pub struct Synthetic {
    pub(crate) domain: Domain,
    pub(crate) rows: u64,
    pub(crate) probabilities: Vec<f64>,
    pub(crate) measurements: Vec<Measurement>,
}

impl Synthetic {
    /// What it is a distribution over.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// How many rows the data has: the public number, or a noisy one that is at least one.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The probability of each cell.
    pub fn probabilities(&self) -> &[f64] {
        &self.probabilities
    }

    /// What was asked and answered, in order. Released too.
    pub fn measurements(&self) -> &[Measurement] {
        &self.measurements
    }

    /// About how many rows of the data a query counts.
    pub fn answer(&self, query: &Query) -> f64 {
        self.rows as f64 * query.answer(&self.probabilities)
    }

    /// The same for all queries of a workload, which must be over the same domain.
    pub fn answers(&self, workload: &Workload) -> Result<Vec<f64>> {
        let shares = workload.answers(&self.probabilities)?;
        Ok(shares.iter().map(|p| self.rows as f64 * p).collect())
    }

    /// Draws rows, as the categories of each column.
    pub fn sample(&self, rows: usize, entropy: &mut impl Entropy) -> Result<Vec<Vec<usize>>> {
        let mut bits = entropy.open()?;
        // At least one is positive: the largest of 2^20 probabilities is at least 2^-20, up to rounding.
        let parts = |p: &f64| (p * (1_u64 << 62) as f64) as u128;
        let weight = |p: &f64| Weight {
            multiplicity: parts(p),
            distance: 0,
        };
        let choice = Weighted::new(
            &Ratio::zero(),
            self.probabilities.iter().map(weight).collect(),
        );
        let row = |_| self.domain.categories(choice.sample(&mut bits));
        Ok((0..rows).map(row).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::{ALPHA, seed};
    use crate::workload::tests::domain;
    use whit_audit::g_test;
    use whit_testkit::{FailingEntropy, Seeded};

    fn synthetic() -> Synthetic {
        Synthetic {
            domain: domain(&[2, 3]),
            rows: 1000,
            probabilities: vec![0.1, 0.0, 0.3, 0.25, 0.3, 0.05],
            measurements: vec![],
        }
    }

    #[test]
    fn answers_any_query() {
        let synthetic = synthetic();
        let second = Query::cell(synthetic.domain(), &[(0, 1)]);
        assert!((synthetic.answer(&second) - 600.0).abs() < 1e-9);
        let workload = Workload::marginals(domain(&[2, 3]), &[&[1], &[]]).expect("sets");
        let expected = [350.0, 300.0, 350.0, 1000.0];
        for (found, expected) in synthetic
            .answers(&workload)
            .expect("same domain")
            .iter()
            .zip(expected)
        {
            assert!((found - expected).abs() < 1e-9);
        }
        let other = Workload::marginals(domain(&[2, 2]), &[&[1]]).expect("sets");
        assert!(synthetic.answers(&other).is_err());
    }

    #[test]
    fn rows_follow_the_distribution() {
        let synthetic = synthetic();
        let rows = synthetic
            .sample(100_000, &mut Seeded::new(seed(693)))
            .expect("entropy");
        let mut counts = vec![0; 6];
        for row in rows {
            counts[row[0] * 3 + row[1]] += 1;
        }
        let fit = g_test(&counts, synthetic.probabilities()).expect("probabilities");
        assert!(fit.p_value >= ALPHA && counts[1] == 0, "{fit:?}");
        assert!(synthetic.sample(1, &mut FailingEntropy).is_err());
        let none = synthetic.sample(0, &mut Seeded::new(1)).expect("entropy");
        assert!(none.is_empty());
    }
}
