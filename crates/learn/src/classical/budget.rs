//! What a fit may cost.

use whit_core::{Delta, Epsilon};

use crate::error::{Result, within};

/// The accountant proves prices down to this delta. Shares of one that is far below are rounded to zero, which would ask for other noise.
pub(super) const DELTA_MIN: f64 = 1e-300;

/// Which noise a budget asks for, and so by which length examples are shortened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoiseKind {
    /// Discrete Laplace noise, which is pure, for lengths in L1.
    Laplace,
    /// Rounded Gaussian noise, which needs a delta, for lengths in L2.
    Gaussian,
}

/// An epsilon above zero and a delta. A delta of zero asks for pure differential privacy, by discrete Laplace noise; any other for Gaussian noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    epsilon: Epsilon,
    delta: Delta,
}

impl Budget {
    /// Refused for an epsilon of zero, at which there is nothing to learn, and for a delta that is not zero and smaller than what is proven.
    pub fn new(epsilon: Epsilon, delta: Delta) -> Result<Self> {
        let given = epsilon.value();
        within("epsilon", given, given > 0.0, "a number above 0")?;
        let passes = delta == Delta::ZERO || delta.value() >= DELTA_MIN;
        within("delta", delta.value(), passes, "0, or at least 1e-300")?;
        Ok(Self { epsilon, delta })
    }

    /// The bound on the loss.
    pub fn epsilon(self) -> Epsilon {
        self.epsilon
    }

    /// Asked in one place, so that no two parts of a fit answer it in different ways.
    pub(super) fn noise(self) -> NoiseKind {
        match self.delta == Delta::ZERO {
            true => NoiseKind::Laplace,
            false => NoiseKind::Gaussian,
        }
    }

    /// The slack; zero for pure differential privacy.
    pub fn delta(self) -> Delta {
        self.delta
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_core::Fault;

    #[test]
    fn rejects_an_epsilon_of_nothing() {
        let refused = Budget::new(Epsilon::ZERO, Delta::ZERO).expect_err("nothing");
        assert_eq!(refused.suggestion(), "give epsilon as a number above 0");
        for delta in [5e-324, 1e-323, 2.6e-318, 0.99e-300] {
            let delta = Delta::new(delta).expect("a delta");
            let one = Epsilon::new(1.0).expect("an epsilon");
            let refused = Budget::new(one, delta).expect_err("below what is proven");
            assert_eq!(refused.suggestion(), "give delta as 0, or at least 1e-300");
        }
        assert!(Epsilon::new(-1.0).is_err() && Epsilon::new(f64::NAN).is_err());
    }
}
