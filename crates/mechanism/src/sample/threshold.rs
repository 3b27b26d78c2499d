//! # Bernoulli by comparison
//! **Definition.** With `U` uniform on `[0,1)`, the event `U < p` has probability `p`.
//! **Sampler.** The words of a stream are the digits of `U` in base `2^WIDTH`. They are compared with the digits of `p` until
//!   one differs. The first 64 bits of `p` are computed once; more only when `U` agrees with all of them, which happens
//!   with probability `2^-64`, and then exactly, however deep the tie goes.
//! **Proof.** Let the first differing digit be the `k`-th. If the digit of `U` is smaller, `U < p`; if it is larger,
//!   `U >= p`, since `p` is less than one unit of the `k`-th digit above its own first `k` digits. The digits of `p` are
//!   certain: a rational's come from integer division, and the others from enclosures tightened until both ends agree.
//!   That ends, because `exp` of a rational other than zero is irrational, and so are rational functions of it used here.
//!   All streams on which the comparison never ends have probability zero together.

use dashu_int::UBig;
use dashu_ratio::RBig;
use whit_core::{Bits, Probability};

use super::enclosure::{self, Enclosure};

/// A probability that can be computed to any number of digits. `x` is positive everywhere.
#[derive(Clone)]
enum Real {
    /// A rational in `(0, 1)`.
    Rational(RBig),
    /// `exp(-x)`.
    ExpNeg(RBig),
    /// `1 / (1 + exp(x))`.
    Logistic(RBig),
    /// `tanh(x/2) = (1 - exp(-x)) / (1 + exp(-x))`.
    TanhHalf(RBig),
}

impl Real {
    /// `floor(p 2^bits)`, certain.
    fn prefix(&self, bits: usize) -> UBig {
        let mut guard = 32;
        loop {
            let Enclosure { low, high } = self.enclose(bits + guard);
            // p < 1, so its digits are at most all ones; without this a p within 2^-1000 of one would need 1000 of them.
            let largest = (UBig::ONE << (bits + guard)) - UBig::ONE;
            let (low, high) = (low >> guard, high.min(largest) >> guard);
            if low == high {
                return low;
            }
            // The enclosure straddles a digit boundary, with probability about 2^-guard: tighten it.
            guard *= 2;
        }
    }

    fn enclose(&self, bits: usize) -> Enclosure {
        let one = || UBig::ONE << bits;
        match self {
            Self::Rational(p) => {
                let floor = enclosure::floor_scaled(p, bits);
                Enclosure {
                    low: floor.clone(),
                    high: floor,
                }
            }
            Self::ExpNeg(x) => enclosure::exp_neg(x, bits),
            Self::Logistic(x) => {
                // With e = exp(-x), p = e/(1+e) grows with e.
                let e = enclosure::exp_neg(x, bits);
                let at = |e: UBig| (e.clone() << bits, one() + e);
                let ((low, low_by), (high, high_by)) = (at(e.low), at(e.high));
                Enclosure {
                    low: low / low_by,
                    high: divide_up(high, high_by),
                }
            }
            Self::TanhHalf(x) => {
                // With e = exp(-x), p = (1-e)/(1+e) falls with e.
                let e = enclosure::exp_neg(x, bits);
                let at = |e: UBig| ((one() - &e) << bits, one() + e);
                let ((low, low_by), (high, high_by)) = (at(e.high), at(e.low));
                Enclosure {
                    low: low / low_by,
                    high: divide_up(high, high_by),
                }
            }
        }
    }

    /// Is `prefix 2^-bits` the whole of `p`?
    fn ends_with(&self, prefix: &UBig, bits: usize) -> bool {
        match self {
            Self::Rational(p) => enclosure::magnitude(p) << bits == prefix * p.denominator(),
            Self::ExpNeg(_) | Self::Logistic(_) | Self::TanhHalf(_) => false,
        }
    }
}

fn divide_up(value: UBig, by: UBig) -> UBig {
    let nudged = value + &by - UBig::ONE;
    nudged / by
}

/// An event with an exactly known probability.
#[derive(Clone)]
pub struct Bernoulli(Kind);

#[derive(Clone)]
enum Kind {
    Never,
    Always,
    /// With the first 64 bits of the probability.
    Sometimes {
        head: u64,
        p: Real,
    },
}

impl Bernoulli {
    /// Probability `p`.
    pub fn new(p: &Probability) -> Self {
        let p = p.ratio().as_rbig().clone();
        if p.is_zero() {
            Self(Kind::Never)
        } else if p.is_one() {
            Self(Kind::Always)
        } else {
            Self::sometimes(Real::Rational(p))
        }
    }

    /// Probability `exp(-x)` for a rational `x >= 0`.
    pub(crate) fn exp_neg(x: RBig) -> Self {
        if x.is_zero() {
            Self(Kind::Always)
        } else {
            Self::sometimes(Real::ExpNeg(x))
        }
    }

    /// Probability `1/(1 + exp(x))` for a rational `x > 0`.
    pub(crate) fn logistic(x: RBig) -> Self {
        Self::sometimes(Real::Logistic(x))
    }

    /// Probability `tanh(x/2)` for a rational `x > 0`.
    pub(crate) fn tanh_half(x: RBig) -> Self {
        Self::sometimes(Real::TanhHalf(x))
    }

    fn sometimes(p: Real) -> Self {
        let head = u64::try_from(p.prefix(64)).expect("p < 1, so 64 bits hold its first 64 digits");
        Self(Kind::Sometimes { head, p })
    }

    /// `floor(p 2^128)`, for samplers that stop there. One is rounded down to `2^128 - 1`.
    pub(super) fn first_128_bits(&self) -> u128 {
        match &self.0 {
            Kind::Never => 0,
            Kind::Always => u128::MAX,
            Kind::Sometimes { p, .. } => {
                u128::try_from(p.prefix(128)).expect("p < 1, so 128 bits hold it")
            }
        }
    }

    /// Does the event happen?
    #[inline]
    pub fn sample<B: Bits>(&self, bits: &mut B) -> bool {
        let Kind::Sometimes { head, .. } = &self.0 else {
            return matches!(self.0, Kind::Always);
        };
        let word = bits.word();
        let digit = head >> (64 - B::WIDTH);
        if word != digit {
            return word < digit;
        }
        self.sample_on(word, bits)
    }

    /// Goes on after the first word of `U` was drawn by somebody else, who could not decide by it.
    #[cold]
    pub(super) fn sample_on<B: Bits>(&self, first: u64, bits: &mut B) -> bool {
        let Kind::Sometimes { head, p } = &self.0 else {
            return matches!(self.0, Kind::Always);
        };
        let width = B::WIDTH as usize;
        let mut drawn = UBig::from(first);
        let mut drawn_bits = width;
        loop {
            let digits = if drawn_bits <= 64 {
                UBig::from(head >> (64 - drawn_bits))
            } else {
                p.prefix(drawn_bits)
            };
            if drawn != digits {
                return drawn < digits;
            }
            if p.ends_with(&digits, drawn_bits) {
                // U has reached p exactly, so it is not below p, whatever follows.
                return false;
            }
            drawn = (drawn << width) + UBig::from(bits.word());
            drawn_bits += width;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::oracle;
    use super::*;
    use whit_audit::enumerate::enumerate;
    use whit_core::Ratio;
    use whit_testkit::SeededBits;

    fn ratio(numerator: u128, denominator: u128) -> RBig {
        Ratio::new(numerator, denominator)
            .expect("not zero")
            .as_rbig()
            .clone()
    }

    fn rational(numerator: u128, denominator: u128) -> Bernoulli {
        let ratio = Ratio::new(numerator, denominator).expect("not zero");
        Bernoulli::new(&Probability::new(ratio).expect("at most one"))
    }

    /// Every bit string up to the depth: the masses must enclose the exact probability.
    fn check<const W: u32>(event: &Bernoulli, p: &RBig, slack: &RBig) {
        let found = enumerate::<W, _>(oracle::depth(), |tape| event.sample(tape));
        let violations = found.violations(|&happened| {
            let p = if happened { p.clone() } else { RBig::ONE - p };
            (&p - slack, p + slack)
        });
        assert!(violations.is_empty(), "width {W}: {violations:?}");
    }

    fn check_all_widths(event: &Bernoulli, p: &RBig, slack: &RBig) {
        check::<1>(event, p, slack);
        check::<4>(event, p, slack);
        check::<5>(event, p, slack);
        check::<8>(event, p, slack);
    }

    #[test]
    fn enumeration_of_rationals() {
        for (numerator, denominator) in [
            (1, 2),
            (1, 3),
            (2, 3),
            (255, 256),
            (1, 1 << 20),
            (123_456, 1_000_003),
        ] {
            check_all_widths(
                &rational(numerator, denominator),
                &ratio(numerator, denominator),
                &RBig::ZERO,
            );
        }
    }

    #[test]
    fn enumeration_of_exponentials() {
        let slack = oracle::slack();
        for (numerator, denominator) in [(1, 1), (1, 1000), (7, 3), (20, 1), (1, 1 << 30)] {
            let x = ratio(numerator, denominator);
            let e = oracle::exp_neg(&x);
            check_all_widths(&Bernoulli::exp_neg(x.clone()), &e, &slack);
            check_all_widths(
                &Bernoulli::logistic(x.clone()),
                &(&e / (RBig::ONE + &e)),
                &slack,
            );
            check_all_widths(
                &Bernoulli::tanh_half(x),
                &((RBig::ONE - &e) / (RBig::ONE + &e)),
                &slack,
            );
        }
    }

    #[test]
    fn certain_events_need_no_bits() {
        let mut bits = SeededBits::new(1);
        assert!((0..100).all(|_| rational(1, 1).sample(&mut bits)));
        assert!((0..100).all(|_| !rational(0, 1).sample(&mut bits)));
        assert!(Bernoulli::exp_neg(RBig::ZERO).sample(&mut bits));
    }

    /// A stream that agrees with 1/3 for a hundred words and then falls below it, or rises above it.
    struct Stubborn {
        left: u32,
        then: u64,
    }

    impl Bits for Stubborn {
        const WIDTH: u32 = 64;
        fn word(&mut self) -> u64 {
            if self.left == 0 {
                return self.then;
            }
            self.left -= 1;
            0x5555_5555_5555_5555
        }
    }

    #[test]
    fn deep_ties_are_decided_exactly() {
        let third = rational(1, 3);
        assert!(third.sample(&mut Stubborn {
            left: 100,
            then: 0x5555_5555_5555_5554
        }));
        assert!(!third.sample(&mut Stubborn {
            left: 100,
            then: 0x5555_5555_5555_5556
        }));
    }

    #[test]
    fn a_probability_that_has_ended_is_not_above_the_stream() {
        struct Half(bool);
        impl Bits for Half {
            const WIDTH: u32 = 64;
            fn word(&mut self) -> u64 {
                assert!(
                    std::mem::replace(&mut self.0, false),
                    "the first word decides"
                );
                1 << 63
            }
        }
        assert!(!rational(1, 2).sample(&mut Half(true)));
    }
}
