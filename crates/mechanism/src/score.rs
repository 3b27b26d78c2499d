//! # Scores
//! What all selection mechanisms require: one whole number for each of a public number of options, and a promise about how
//! neighbours' scores differ.
//!
//! **Spread.** All their proofs use one number, `S`: for neighbours with scores `q` and `q'`, the differences `q'_i - q_i` of all
//!   options lie in an interval of length `S`. If every score moves by at most `Δ`, that interval is `[-Δ, Δ]` and `S = 2Δ`. If
//!   moreover all move the same way, it is `[0, Δ]` or `[-Δ, 0]`, and `S = Δ`. The second is called monotone. Adding a row to
//!   counts is; replacing one is not, since it takes from one count and gives to another, so there is no way to say that it is.
//!
//! Scores are integers: real ones are counted in steps of a public grid, with a sensitivity in steps. A vector that is too short
//! counts as if the smallest score stood in each missing place, and what is too long is cut. So nothing fails by what is secret.

use std::marker::PhantomData;

use whit_core::{AddRemove, Error as UnitError, Linf, Ratio, Relation, Secret, Sensitivity};

use crate::{Error, Result};

/// How many options there are, and how far neighbours' scores are apart.
#[derive(Clone, Debug)]
pub struct Scores<R: Relation> {
    options: usize,
    spread: Ratio,
    relation: PhantomData<fn() -> R>,
}

/// More options than this belong into a structured range.
const OPTIONS_MAX: u64 = 1 << 32;

impl<R: Relation> Scores<R> {
    /// Every score moves by at most the sensitivity, up or down. It must be positive: scores that never move are public.
    pub fn new(options: u64, sensitivity: &Sensitivity<Linf, R>) -> Result<Self> {
        Self::with_spread(options, sensitivity.bound() * &Ratio::from(2_u64))
    }

    fn with_spread(options: u64, spread: Ratio) -> Result<Self> {
        let out_of_range = || Error::CountOutOfRange {
            what: "the number of options",
            given: options,
            min: 1,
            max: OPTIONS_MAX,
        };
        if !(1..=OPTIONS_MAX).contains(&options) {
            return Err(out_of_range());
        }
        if spread.is_zero() {
            return Err(UnitError::OutOfDomain {
                what: "the sensitivity of the scores",
                given: "0".into(),
                domain: "a positive number",
            }
            .into());
        }
        Ok(Self {
            options: usize::try_from(options).map_err(|_| out_of_range())?,
            spread,
            relation: PhantomData,
        })
    }

    /// How many options there are.
    pub fn options(&self) -> usize {
        self.options
    }

    /// `S`, the length of the interval that holds all differences of scores.
    pub fn spread(&self) -> &Ratio {
        &self.spread
    }

    /// `ε/S`: by how much a logarithm may grow per unit of score.
    pub(crate) fn rate(&self, epsilon: &Ratio) -> Ratio {
        epsilon
            .checked_div(&self.spread)
            .expect("the spread is positive")
    }

    /// The scores, as many as there are options.
    pub(crate) fn read(&self, scores: Secret<Vec<i64>>) -> Vec<i64> {
        let mut scores = scores.expose();
        scores.resize(self.options, i64::MIN);
        scores
    }
}

impl Scores<AddRemove> {
    /// One more row moves no score down, or no score up, and none by more than the sensitivity. For counts and whatever else
    /// only grows with the data. There is no such thing for neighbours that replace a row:
    ///
    /// ```compile_fail,E0599
    /// # use whit_core::{Linf, Ratio, ReplaceOne, Sensitivity};
    /// # use whit_mechanism::Scores;
    /// let sensitivity = Sensitivity::<Linf, ReplaceOne>::new(Ratio::one());
    /// let scores = Scores::<ReplaceOne>::monotone(3, &sensitivity);
    /// ```
    pub fn monotone(options: u64, sensitivity: &Sensitivity<Linf, AddRemove>) -> Result<Self> {
        Self::with_spread(options, sensitivity.bound().clone())
    }
}

/// How far each score is below the best. No subtraction overflows: two `i64` are less than `2^64` apart.
pub(crate) fn distances(scores: &[i64]) -> impl Iterator<Item = u128> {
    let best = scores.iter().copied().max().unwrap_or(0);
    scores
        .iter()
        .map(move |&score| u128::from(best.abs_diff(score)))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use whit_core::ReplaceOne;

    /// Scores that move by at most `sensitivity`, for tests.
    pub(crate) fn any(options: u64, sensitivity: u64) -> Scores<ReplaceOne> {
        Scores::new(options, &Sensitivity::new(Ratio::from(sensitivity))).expect("options")
    }

    /// Counts, for tests.
    pub(crate) fn counts(options: u64) -> Scores<AddRemove> {
        Scores::monotone(options, &Sensitivity::new(Ratio::one())).expect("options")
    }

    pub(crate) fn ratio(numerator: u128, denominator: u128) -> Ratio {
        Ratio::new(numerator, denominator).expect("not zero")
    }

    /// The discrete Laplace distribution in floats.
    pub(crate) fn laplace_pmf(b: f64, z: i64) -> f64 {
        libm::tanh(0.5 / b) * (-(z.abs() as f64) / b).exp()
    }

    /// `Pr[Z <= z]`.
    pub(crate) fn laplace_at_most(b: f64, z: i64) -> f64 {
        let tail = |t: i64| (-(t as f64) / b).exp() / (1.0 + (-1.0 / b).exp());
        if z >= 0 { 1.0 - tail(z + 1) } else { tail(-z) }
    }

    /// All pairs of vectors that neighbours may have around a few centres: every combination of moves.
    pub(crate) fn pairs(centres: &[&[i64]], moves: &[i64]) -> Vec<(Vec<i64>, Vec<i64>)> {
        let mut pairs = Vec::new();
        for centre in centres {
            let combinations = moves.len().pow(centre.len() as u32);
            for mut code in 0..combinations {
                let moved = centre.iter().map(|score| {
                    let by = moves[code % moves.len()];
                    code /= moves.len();
                    score + by
                });
                pairs.push((centre.to_vec(), moved.collect()));
            }
        }
        pairs
    }

    #[test]
    fn spread_is_twice_the_sensitivity_unless_monotone() {
        assert_eq!(any(3, 5).spread(), &Ratio::from(10_u64));
        assert_eq!(counts(3).spread(), &Ratio::one());
        assert_eq!(any(3, 5).rate(&ratio(1, 2)), ratio(1, 20));
    }

    #[test]
    fn rejects_no_options_and_no_sensitivity() {
        let one = Sensitivity::<Linf, AddRemove>::new(Ratio::one());
        assert!(Scores::new(0, &one).is_err() && Scores::new(1 << 33, &one).is_err());
        assert!(Scores::monotone(0, &one).is_err());
        let none = Sensitivity::<Linf, AddRemove>::new(Ratio::zero());
        assert!(Scores::new(3, &none).is_err() && Scores::monotone(3, &none).is_err());
    }

    #[test]
    fn any_vector_is_read() {
        let read = |scores: &[i64]| any(3, 1).read(Secret::new(scores.to_vec()));
        assert_eq!(read(&[]), [i64::MIN; 3]);
        assert_eq!(read(&[1, 2, 3, 4]), [1, 2, 3]);
        let ends: Vec<u128> = distances(&[i64::MIN, i64::MAX]).collect();
        assert_eq!(ends, [u128::from(u64::MAX), 0]);
    }
}
