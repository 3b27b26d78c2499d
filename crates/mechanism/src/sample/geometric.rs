//! # Geometric
//! **Definition.** `Pr[X = k] = (1-q) q^k` for `k = 0, 1, 2, …` with `q = exp(-1/b)`, `b` any positive rational.
//! **Sampler.** The binary digits of `X` are independent: since `q^k` is the product of `q^(2^i)` over the digits `i` that are
//!   set, digit `i` is set with probability `q^(2^i) / (1 + q^(2^i)) = 1/(1 + exp(2^i/b))`. The lowest `m` digits, `2^m >= b`,
//!   are drawn so. What lies above, `floor(X / 2^m)`, is independent of them and again geometric, with ratio
//!   `exp(-2^m/b) <= 1/e`: it is counted up one by one, with fewer than 1.6 steps on average.
//! **Proof.** `Pr[X = low + 2^m high] = (1-q) q^low q^(2^m high)` is a product of a function of `low` and one of `high`, and the
//!   first is a product over the digits of `low`. Each factor, normalised, is the probability stated.

use dashu_int::UBig;
use dashu_ratio::RBig;
use whit_core::{Bits, Scale};

use super::threshold::Bernoulli;

/// An exact geometric sampler with ratio `exp(-1/scale)`.
#[derive(Clone)]
pub struct Geometric {
    low: Vec<Bernoulli>,
    high: Bernoulli,
}

impl Geometric {
    /// Computes the digits' probabilities, about `log2(scale)` of them.
    pub fn new(scale: &Scale) -> Self {
        let scale = scale.ratio().as_rbig();
        let mut power = UBig::ONE;
        let mut low = Vec::new();
        while RBig::from(power.clone()) < *scale {
            low.push(Bernoulli::logistic(RBig::from(power.clone()) / scale));
            power <<= 1;
        }
        Self {
            low,
            high: Bernoulli::exp_neg(RBig::from(power) / scale),
        }
    }

    /// Draws `X`; beyond the ends of `u128` it saturates, with probability below `exp(-2^30)`.
    #[inline]
    pub fn sample<B: Bits>(&self, bits: &mut B) -> u128 {
        let mut low = 0_u128;
        for (i, digit) in self.low.iter().enumerate() {
            low |= u128::from(digit.sample(bits)) << i;
        }
        let mut high = 0_u128;
        while self.high.sample(bits) {
            high += 1;
        }
        high.saturating_mul(1 << self.low.len()).saturating_add(low)
    }
}

#[cfg(test)]
mod tests {
    use super::super::oracle;
    use super::*;
    use whit_audit::enumerate::enumerate;
    use whit_core::Ratio;

    fn check<const W: u32>(numerator: u128, denominator: u128) {
        let ratio = Ratio::new(numerator, denominator).expect("not zero");
        let geometric = Geometric::new(&Scale::new(ratio.clone()).expect("in range"));
        let found = enumerate::<W, _>(oracle::depth(), |tape| geometric.sample(tape));
        let scale = ratio.as_rbig();
        let q = oracle::exp_neg(&(RBig::ONE / scale));
        let violations = found.violations(|&k| {
            let p = (RBig::ONE - &q) * oracle::exp_neg(&(RBig::from(k) / scale));
            (&p - oracle::slack(), p + oracle::slack())
        });
        assert!(
            violations.is_empty(),
            "width {W}, scale {ratio}: {violations:?}"
        );
    }

    #[test]
    fn enumeration() {
        for (numerator, denominator) in [(1, 1), (1, 3), (5, 2), (10, 1), (1, 1 << 20)] {
            check::<1>(numerator, denominator);
            check::<4>(numerator, denominator);
            check::<8>(numerator, denominator);
        }
    }
}
