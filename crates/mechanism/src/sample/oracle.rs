//! A second opinion for tests: the same samplers, written down as the formulas say, in rationals, slow and without
//! precomputed digits. Its `exp` uses another series than [`enclosure`](super::enclosure).

use dashu_int::{IBig, UBig};
use dashu_ratio::RBig;
use whit_core::Bits;

/// How many bits deep samplers are enumerated.
pub(crate) fn depth() -> u32 {
    if whit_testkit::long() { 24 } else { 18 }
}

/// Fractional bits of the oracle's exponentials: deeper than any tape in the tests is read.
const BITS: usize = 512;

/// How far an oracle's exponential may be from the truth.
pub(crate) fn slack() -> RBig {
    RBig::from_parts(1.into(), UBig::ONE << (BITS - 16))
}

/// `exp(-x)` within [`slack`]: the reciprocal of the (all-positive) Taylor series of `exp(x / 2^m)`, raised to `2^m`.
pub(crate) fn exp_neg(x: &RBig) -> RBig {
    if *x > RBig::from(345) {
        // Below 2^-497. What matters is that it is not zero, so that a comparison still reads a word.
        return RBig::from_parts(1.into(), UBig::ONE << 498);
    }
    let work = BITS + 64;
    let one = UBig::ONE << work;
    let mut halvings = 0_usize;
    let mut y = x.clone();
    while y > RBig::from_parts(1.into(), UBig::from(4_u32)) {
        y /= RBig::from(2);
        halvings += 1;
    }
    let y = (y.numerator().clone().into_parts().1 << work) / y.denominator();
    let (mut sum, mut term, mut k) = (one.clone(), one.clone(), 0_u32);
    while !term.is_zero() {
        k += 1;
        term = ((term * &y) >> work) / k;
        sum += &term;
    }
    let mut value = (&one * &one) / sum;
    for _ in 0..halvings {
        value = (&value * &value) >> work;
    }
    RBig::from_parts(IBig::from(value), one)
}

/// `U < p` by reading words until the interval that `U` lies in is on one side of `p`.
pub(crate) fn bernoulli<B: Bits>(p: &RBig, bits: &mut B) -> bool {
    if p.is_zero() || *p >= RBig::ONE {
        return *p >= RBig::ONE;
    }
    let (mut low, mut width) = (RBig::ZERO, RBig::ONE);
    loop {
        width /= RBig::from(UBig::ONE << B::WIDTH as usize);
        low += &width * RBig::from(bits.word());
        if low >= *p {
            return false;
        }
        if &low + &width <= *p {
            return true;
        }
    }
}

/// The probabilities that one discrete Laplace sampler compares with, as formulas.
pub(crate) struct Laplace {
    zero: RBig,
    low: Vec<RBig>,
    high: RBig,
}

impl Laplace {
    pub(crate) fn new(scale: &RBig) -> Self {
        let mut low = Vec::new();
        let mut power = RBig::ONE;
        while power < *scale {
            let e = exp_neg(&(&power / scale));
            low.push(&e / (RBig::ONE + &e));
            power *= RBig::from(2);
        }
        let q = exp_neg(&(RBig::ONE / scale));
        Self {
            zero: (RBig::ONE - &q) / (RBig::ONE + &q),
            low,
            high: exp_neg(&(power / scale)),
        }
    }

    pub(crate) fn sample<B: Bits>(&self, bits: &mut B) -> i128 {
        if bernoulli(&self.zero, bits) {
            return 0;
        }
        let negative = bits.word() >> (B::WIDTH - 1) == 1;
        let mut magnitude = 0_i128;
        for (i, p) in self.low.iter().enumerate() {
            magnitude += i128::from(bernoulli(p, bits)) << i;
        }
        while bernoulli(&self.high, bits) {
            magnitude += 1 << self.low.len();
        }
        if negative {
            -(magnitude + 1)
        } else {
            magnitude + 1
        }
    }
}

/// The discrete Gaussian by rejection from the discrete Laplace.
pub(crate) struct Gaussian {
    proposal: Laplace,
    centre: RBig,
    twice_variance: RBig,
}

impl Gaussian {
    pub(crate) fn new(scale: &RBig) -> Self {
        let t = RBig::from(scale.floor() + IBig::ONE);
        let variance = scale * scale;
        Self {
            proposal: Laplace::new(&t),
            centre: &variance / &t,
            twice_variance: variance * RBig::from(2),
        }
    }

    pub(crate) fn sample<B: Bits>(&self, bits: &mut B) -> i128 {
        loop {
            let y = self.proposal.sample(bits);
            let distance = RBig::from(y.unsigned_abs()) - &self.centre;
            let gamma = &distance * &distance / &self.twice_variance;
            if bernoulli(&exp_neg(&gamma), bits) {
                return y;
            }
        }
    }
}

/// `exp(-|z|/scale)` over its sum: the exact discrete Laplace pmf, within a few [`slack`]s.
pub(crate) fn laplace_pmf(scale: &RBig, z: i128) -> RBig {
    let q = exp_neg(&(RBig::ONE / scale));
    let tail = exp_neg(&(RBig::from(z.unsigned_abs()) / scale));
    (RBig::ONE - &q) / (RBig::ONE + &q) * tail
}

/// The discrete Gaussian pmf for every `|z| < terms`; what lies beyond `terms` must be below [`slack`].
pub(crate) fn gaussian_pmf(scale: &RBig, terms: u64) -> Vec<RBig> {
    let twice_variance = scale * scale * RBig::from(2);
    let weights: Vec<RBig> = (0..terms)
        .map(|z| exp_neg(&(RBig::from(z) * RBig::from(z) / &twice_variance)))
        .collect();
    let total = weights
        .iter()
        .skip(1)
        .fold(weights[0].clone(), |sum, w| sum + w * RBig::from(2));
    weights.into_iter().map(|w| w / &total).collect()
}
