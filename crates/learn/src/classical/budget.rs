//! What a fit may cost.

use whit_core::{Delta, Epsilon};

use crate::error::{Result, within};

/// An epsilon above zero and a delta. A delta of zero asks for pure differential privacy, by discrete Laplace noise; any other for Gaussian noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    epsilon: Epsilon,
    delta: Delta,
}

impl Budget {
    /// Refused for an epsilon of zero, at which there is nothing to learn.
    pub fn new(epsilon: Epsilon, delta: Delta) -> Result<Self> {
        let given = epsilon.value();
        within("epsilon", given, given > 0.0, "a number above 0")?;
        Ok(Self { epsilon, delta })
    }

    /// The bound on the loss.
    pub fn epsilon(self) -> Epsilon {
        self.epsilon
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
        assert!(Epsilon::new(-1.0).is_err() && Epsilon::new(f64::NAN).is_err());
    }
}
