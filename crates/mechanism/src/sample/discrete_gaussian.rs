//! # Discrete Gaussian sampler
//! **Definition.** `Pr[Z = z] ∝ exp(-z²/(2σ²))` on the integers, for any positive rational `σ`.
//! **Sampler.** Rejection from the discrete Laplace of the integer scale `t = floor(σ) + 1`: accept `Y` with probability
//!   `exp(-γ)`, `γ = (|Y| - σ²/t)² / (2σ²)`. [CKS20, Alg. 3]
//! **Proof.** `exp(-|y|/t) exp(-γ) = exp(-y²/(2σ²)) · exp(-σ²/(2t²))`, and the last factor is the same for every `y`.
//!   Acceptance is decided by comparing a uniform real with `exp(-γ)`: first by `exp_filter`, with a margin that provably
//!   covers its error and that of `γ`; in the rare case that the uniform falls within the margin, exactly, going on from
//!   the same word ([`threshold`](super::threshold)). So the answer is always the exact one.
//! **Margin.** For `1 <= σ <= 2^60` let `2^e` be the power of two in `[16σ, 32σ)`, `a = 2^(2e)/(2σ²)` in `[128, 512)`. In units
//!   of `2^-64`: `d = ||Y| - σ²/t| 2^-e` is off by less than 1, its square (below 1, rounded down) by less than 3, `a` kept to
//!   52 bits by less than `2^12`; so `γ = a d²` is off by less than `3·512 + 2^12 + 1 < 2^13`. `exp` does not stretch
//!   differences. With the filter's own error the total is below `2^13 + 16 < 2^14`.

use dashu_base::UnsignedAbs;
use dashu_int::{IBig, UBig};
use dashu_ratio::RBig;
use whit_core::{Bits, Ratio, Scale};

use super::discrete_laplace::DiscreteLaplace;
use super::exp_filter;
use super::threshold::Bernoulli;

/// What the filter's value may be off by, in units of `2^-64`; see above.
const MARGIN: u64 = 1 << 14;
const _: () = assert!(MARGIN > (1 << 13) + exp_filter::ERROR);

/// From here on `γ > 60`, so that the first 64 digits of `exp(-γ)` are zero; used for `σ < 1`.
const SMALL_ENTRIES: u64 = 12;

/// An exact sampler of integer noise with `Pr[z] ∝ exp(-z²/(2 scale²))`.
#[derive(Clone)]
pub struct DiscreteGaussian {
    proposal: DiscreteLaplace,
    /// `σ²/t`.
    centre: RBig,
    /// `2σ²`.
    twice_variance: RBig,
    quick: Quick,
}

/// How acceptance is decided without big numbers.
#[derive(Clone)]
enum Quick {
    /// `σ < 1`: only the first few `|Y|` have any chance; their exact events.
    Few(Vec<Bernoulli>),
    /// `1 <= σ <= 2^60`: fixed point.
    Fixed {
        exponent: u32,
        centre: u64,
        factor: u64,
    },
    /// Beyond: always exact.
    Never,
}

impl DiscreteGaussian {
    /// Prepares the proposal and the fixed-point constants.
    pub fn new(scale: &Scale) -> Self {
        let sigma = scale.ratio().as_rbig();
        let t = sigma.floor() + IBig::ONE;
        let proposal_scale =
            Ratio::from_rbig(RBig::from(t.clone())).and_then(|t| Scale::new(t).ok());
        // floor(σ) + 1 leaves the range of scales only at the very end of it, where floor(σ) itself serves as well: any
        // integer t is right, t = floor(σ) + 1 is merely the quickest.
        let (t, proposal_scale) = match proposal_scale {
            Some(proposal_scale) => (RBig::from(t), proposal_scale),
            None => (sigma.clone(), scale.clone()),
        };
        let variance = sigma * sigma;
        let mut sampler = Self {
            proposal: DiscreteLaplace::new(&proposal_scale),
            centre: &variance / t,
            twice_variance: variance * RBig::from(2),
            quick: Quick::Never,
        };
        sampler.quick = sampler.prepare(sigma);
        sampler
    }

    fn prepare(&self, sigma: &RBig) -> Quick {
        if *sigma < RBig::ONE {
            let entries = 0..SMALL_ENTRIES;
            return Quick::Few(
                entries
                    .map(|y| Bernoulli::exp_neg(self.gamma(u128::from(y))))
                    .collect(),
            );
        }
        if *sigma > RBig::from(UBig::ONE << 60) {
            return Quick::Never;
        }
        let sixteen_sigma = sigma * RBig::from(16);
        let exponent = (4..=64)
            .find(|&e| RBig::from(UBig::ONE << e) >= sixteen_sigma)
            .unwrap_or(64);
        let in_words = |value: RBig, bits: usize| {
            let scaled = (value * RBig::from(UBig::ONE << bits))
                .floor()
                .unsigned_abs();
            u64::try_from(scaled).expect("the ranges above leave room")
        };
        let factor = RBig::from(UBig::ONE << (2 * exponent)) / &self.twice_variance;
        Quick::Fixed {
            exponent: exponent as u32,
            centre: in_words(self.centre.clone(), 64 - exponent),
            factor: in_words(factor, 52),
        }
    }

    /// Draws `Z`. Saturates at the ends of `i128`.
    #[inline]
    pub fn sample<B: Bits>(&self, bits: &mut B) -> i128 {
        loop {
            let y = self.proposal.sample(bits);
            if self.accepts(y.unsigned_abs(), bits) {
                return y;
            }
        }
    }

    #[inline]
    fn accepts<B: Bits>(&self, y: u128, bits: &mut B) -> bool {
        let head = match &self.quick {
            Quick::Few(events) => match events.get(usize::try_from(y).unwrap_or(usize::MAX)) {
                Some(event) => return event.sample(bits),
                None => 0,
            },
            &Quick::Fixed {
                exponent,
                centre,
                factor,
            } => quick_head(y, exponent, centre, factor),
            Quick::Never => return self.accepts_exactly(y, None, bits),
        };
        let word = bits.word();
        let shift = 64 - B::WIDTH;
        if word < head.saturating_sub(MARGIN) >> shift {
            return true;
        }
        if word > head.saturating_add(MARGIN) >> shift {
            return false;
        }
        self.accepts_exactly(y, Some(word), bits)
    }

    #[cold]
    fn accepts_exactly<B: Bits>(&self, y: u128, word: Option<u64>, bits: &mut B) -> bool {
        let event = Bernoulli::exp_neg(self.gamma(y));
        match word {
            Some(word) => event.sample_on(word, bits),
            None => event.sample(bits),
        }
    }

    fn gamma(&self, y: u128) -> RBig {
        let distance = RBig::from(UBig::from(y)) - &self.centre;
        &distance * &distance / &self.twice_variance
    }
}

/// About `exp(-γ) 2^64`, off by at most [`MARGIN`].
#[inline]
fn quick_head(y: u128, exponent: u32, centre: u64, factor: u64) -> u64 {
    // Beyond 16σ, γ > 100.
    if y >> exponent != 0 {
        return 0;
    }
    let position = y << (64 - exponent);
    let distance = position.abs_diff(u128::from(centre)) as u64;
    let square = (u128::from(distance) * u128::from(distance)) >> 64;
    exp_filter::exp_neg((square * u128::from(factor)) >> 52)
}

#[cfg(test)]
mod tests {
    use super::super::oracle;
    use super::*;
    use whit_audit::enumerate::enumerate;
    use whit_testkit::{SeededBits, long};

    fn scale(numerator: u128, denominator: u128) -> Scale {
        Scale::new(Ratio::new(numerator, denominator).expect("not zero")).expect("in range")
    }

    fn check<const W: u32>(scale: &Scale) {
        let sampler = DiscreteGaussian::new(scale);
        let found = enumerate::<W, _>(oracle::depth(), |tape| sampler.sample(tape));
        let pmf = oracle::gaussian_pmf(scale.ratio().as_rbig(), 400);
        let violations = found.violations(|&z| {
            let p = pmf
                .get(z.unsigned_abs() as usize)
                .cloned()
                .unwrap_or(RBig::ZERO);
            (&p - oracle::slack(), p + oracle::slack())
        });
        assert!(
            violations.is_empty(),
            "width {W}, scale {scale:?}: {violations:?}"
        );
    }

    #[test]
    fn enumeration() {
        for (numerator, denominator) in [(1, 1), (1, 3), (5, 2), (10, 1), (9, 10), (1, 1 << 20)] {
            let scale = scale(numerator, denominator);
            check::<1>(&scale);
            check::<4>(&scale);
            check::<6>(&scale);
            check::<8>(&scale);
        }
    }

    #[test]
    fn agrees_with_the_oracle_on_every_tape() {
        let tapes = if long() { 1_000_000 } else { 8_000 };
        for (numerator, denominator) in [(10, 1), (1, 3), (1000, 7), (1 << 40, 1)] {
            let scale = scale(numerator, denominator);
            let (fast, slow) = (
                DiscreteGaussian::new(&scale),
                oracle::Gaussian::new(scale.ratio().as_rbig()),
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

    /// The margin is generous: in truth the filter is far closer than the proof needs.
    #[test]
    fn the_margin_covers_the_filter() {
        let mut bits = SeededBits::new(3);
        for (numerator, denominator) in [
            (1, 1),
            (10, 1),
            (1000, 7),
            (31, 1),
            (33, 2),
            (1 << 40, 1),
            (1 << 60, 1),
        ] {
            let sampler = DiscreteGaussian::new(&scale(numerator, denominator));
            let &Quick::Fixed {
                exponent,
                centre,
                factor,
            } = &sampler.quick
            else {
                panic!("not fixed point")
            };
            for _ in 0..500 {
                let y = u128::from(bits.word()) >> (64 - exponent);
                let exact = super::super::enclosure::exp_neg(&sampler.gamma(y), 64);
                let head = UBig::from(quick_head(y, exponent, centre, factor));
                let margin = UBig::from(MARGIN);
                assert!(
                    &head + &margin >= exact.high && head <= exact.low + margin,
                    "{y} at {numerator}/{denominator}"
                );
            }
        }
    }

    /// Words at and around the margin, where a filter that erred would decide wrongly.
    #[test]
    fn words_near_the_margin_are_decided_exactly() {
        struct Then(u64, SeededBits);
        impl Bits for Then {
            const WIDTH: u32 = 64;
            fn word(&mut self) -> u64 {
                std::mem::replace(&mut self.0, self.1.word())
            }
        }
        for (numerator, denominator) in [
            (1, 1),
            (10, 1),
            (1000, 7),
            (33, 2),
            (1 << 40, 1),
            (1 << 60, 1),
        ] {
            let sampler = DiscreteGaussian::new(&scale(numerator, denominator));
            let sigma = (numerator / denominator) as u64;
            for y in (0..40).map(|i| u128::from(sigma) * i / 5) {
                let event = Bernoulli::exp_neg(sampler.gamma(y));
                let exact = super::super::enclosure::exp_neg(&sampler.gamma(y), 64);
                let head = u64::try_from(exact.low).unwrap_or(u64::MAX);
                for offset in [
                    0,
                    1,
                    2,
                    17,
                    MARGIN / 2,
                    MARGIN - 1,
                    MARGIN,
                    MARGIN + 1,
                    3 * MARGIN,
                ] {
                    for word in [head.saturating_add(offset), head.saturating_sub(offset)] {
                        let mut bits = Then(word, SeededBits::new(9));
                        let mut again = Then(word, SeededBits::new(9));
                        assert_eq!(
                            sampler.accepts(y, &mut bits),
                            event.sample(&mut again),
                            "{y} {word:x}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn the_ends_of_the_range_work() {
        let mut bits = SeededBits::new(5);
        for exponent in [-64, -40, 60, 61, 96] {
            let scale = Scale::new(Ratio::power_of_two(exponent)).expect("in range");
            let sampler = DiscreteGaussian::new(&scale);
            let draws: Vec<i128> = (0..200).map(|_| sampler.sample(&mut bits)).collect();
            if exponent < 0 {
                assert!(
                    draws.iter().all(|&z| z == 0),
                    "noise far below one unit never reaches one"
                );
            } else {
                let bound = 12 << exponent;
                assert!(
                    draws.iter().all(|&z| z.abs() < bound)
                        && draws.iter().any(|&z| z.abs() > 1 << (exponent - 2))
                );
            }
        }
    }
}
