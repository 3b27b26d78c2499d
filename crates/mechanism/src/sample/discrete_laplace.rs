//! # Discrete Laplace sampler
//! **Definition.** `Pr[Z = z] ∝ exp(-|z|/b)` on the integers, for any positive rational `b`.
//! **Sampler.** With `q = exp(-1/b)`: zero with probability `(1-q)/(1+q) = tanh(1/(2b))`; otherwise a fair sign and one plus a
//!   geometric of ratio `q`.
//! **Proof.** For `z != 0` this gives `2q/(1+q) · 1/2 · (1-q) q^(|z|-1) = (1-q)/(1+q) q^|z|`, as it should, and the
//!   probabilities sum to one. No draw is rejected.

use whit_core::{Bits, Scale};

use super::geometric::Geometric;
use super::threshold::Bernoulli;

/// An exact sampler of integer noise with `Pr[z] ∝ exp(-|z|/scale)`.
#[derive(Clone)]
pub struct DiscreteLaplace {
    zero: Bernoulli,
    beyond: Geometric,
}

impl DiscreteLaplace {
    /// Prepares the digits it will compare with.
    pub fn new(scale: &Scale) -> Self {
        let rate = scale.ratio().as_rbig().clone();
        let zero = Bernoulli::tanh_half(dashu_ratio::RBig::ONE / rate);
        Self {
            zero,
            beyond: Geometric::new(scale),
        }
    }

    /// Draws `Z`. Saturates at the ends of `i128`.
    #[inline]
    pub fn sample<B: Bits>(&self, bits: &mut B) -> i128 {
        if self.zero.sample(bits) {
            return 0;
        }
        let negative = bits.word() >> (B::WIDTH - 1) == 1;
        let magnitude = i128::try_from(self.beyond.sample(bits))
            .unwrap_or(i128::MAX)
            .saturating_add(1);
        if negative { -magnitude } else { magnitude }
    }
}

#[cfg(test)]
mod tests {
    use super::super::oracle;
    use super::*;
    use dashu_ratio::RBig;
    use whit_audit::enumerate::enumerate;
    use whit_core::Ratio;
    use whit_testkit::{SeededBits, long};

    fn scale(numerator: u128, denominator: u128) -> Scale {
        Scale::new(Ratio::new(numerator, denominator).expect("not zero")).expect("in range")
    }

    fn check<const W: u32>(scale: &Scale) {
        let sampler = DiscreteLaplace::new(scale);
        let found = enumerate::<W, _>(oracle::depth(), |tape| sampler.sample(tape));
        let violations = found.violations(|&z| {
            let p = oracle::laplace_pmf(scale.ratio().as_rbig(), z);
            (&p - oracle::slack(), p + oracle::slack())
        });
        assert!(
            violations.is_empty(),
            "width {W}, scale {scale:?}: {violations:?}"
        );
    }

    #[test]
    fn enumeration() {
        for (numerator, denominator) in [(1, 1), (1, 3), (5, 2), (10, 1), (1000, 7), (1, 1 << 20)] {
            let scale = scale(numerator, denominator);
            check::<1>(&scale);
            check::<4>(&scale);
            check::<6>(&scale);
            check::<8>(&scale);
        }
    }

    #[test]
    fn agrees_with_the_oracle_on_every_tape() {
        let tapes = if long() { 1_000_000 } else { 20_000 };
        for (numerator, denominator) in [(10, 1), (1, 3), (1000, 7), (1 << 40, 1)] {
            let scale = scale(numerator, denominator);
            let (fast, slow) = (
                DiscreteLaplace::new(&scale),
                oracle::Laplace::new(scale.ratio().as_rbig()),
            );
            for seed in 0..tapes / 4 {
                let (z, again) = (
                    fast.sample(&mut SeededBits::new(seed)),
                    slow.sample(&mut SeededBits::new(seed)),
                );
                assert_eq!(z, again, "tape {seed} at scale {scale:?}");
            }
        }
    }

    #[test]
    fn a_pmf_sums_to_one() {
        let scale = RBig::from(10);
        let sum = (-2000..=2000).fold(RBig::ZERO, |sum, z| sum + oracle::laplace_pmf(&scale, z));
        assert!(
            sum < RBig::ONE
                && sum > RBig::ONE - RBig::from_parts(1.into(), (dashu_int::UBig::ONE) << 200)
        );
    }
}
