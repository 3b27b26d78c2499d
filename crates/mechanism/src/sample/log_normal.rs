//! # Normal and log-normal reals, digit by digit
//! Made of the same parts as [`real`](super::real), and exact for the same reason.
//!
//! **Normal.** `K + F` with a sign: `K` geometric of ratio `exp(-1/2)`, taken with probability `exp(-K(K-1)/2)` (both by
//!   events of `exp(-1/2)`); `F` uniform, taken with probability `exp(-F(2K+F)/2)`, in `K+1` parts of `w = F(2K+F)/(2K+2) < 1` each;
//!   whatever fails starts anew. *Proof.* The product is `exp(-(k+f)²/2)`. [Kar16, Alg. N]
//! **Laplace log-normal.** The product of a Laplace real and `exp(σY)` for a normal `Y`. An interval of it follows from
//!   those of its parts and rigorous enclosures of `exp` at both ends, since the product of magnitudes grows with each.

use dashu_int::{IBig, UBig};
use dashu_ratio::RBig;
use whit_core::Bits;

use super::real::{Laplace, Real, Signed, Span, Uniform, exp_between, exp_neg_happens, sign};
use super::uniform_below;

/// Density `exp(-z²/2)/√(2π)`.
pub(crate) struct Normal(Signed);

impl Real for Normal {
    fn draw<B: Bits>(bits: &mut B) -> Self {
        let negative = sign(bits);
        // An event of probability exp(-1/2), from a coin.
        let half = |bits: &mut B| exp_neg_happens(bits, sign);
        'anew: loop {
            let mut whole = 0_u64;
            while half(bits) {
                whole += 1;
            }
            // Few of these happen in a row, so the first that fails comes soon, however large whole is.
            if (0..whole.saturating_mul(whole.saturating_sub(1))).any(|_| !half(bits)) {
                continue;
            }
            let mut fraction = Uniform::draw(bits);
            for _ in 0..=whole {
                let part = |bits: &mut B| {
                    // Probability F, and then (2K + F)/(2K + 2).
                    fraction.happens(bits)
                        && match uniform_below(2 * whole + 2, bits) {
                            below if below < 2 * whole => true,
                            at if at == 2 * whole => fraction.happens(bits),
                            _ => false,
                        }
                };
                if !exp_neg_happens(bits, part) {
                    continue 'anew;
                }
            }
            return Self(Signed {
                negative,
                whole,
                fraction,
            });
        }
    }

    fn refine<B: Bits>(&mut self, bits: &mut B) {
        self.0.fraction.refine(bits);
    }

    fn span(&self, width: u32) -> Span {
        self.0.span(width)
    }
}

/// `X exp(9Y/20)` for a Laplace `X` and a normal `Y`.
pub(crate) struct LaplaceLogNormal {
    laplace: Laplace,
    normal: Normal,
}

impl LaplaceLogNormal {
    /// The factor of the normal in the exponent.
    pub(crate) fn sigma() -> RBig {
        RBig::from_parts(IBig::from(9), UBig::from(20_u32))
    }
}

impl Real for LaplaceLogNormal {
    fn draw<B: Bits>(bits: &mut B) -> Self {
        Self {
            laplace: Laplace::draw(bits),
            normal: Normal::draw(bits),
        }
    }

    fn refine<B: Bits>(&mut self, bits: &mut B) {
        self.laplace.refine(bits);
        self.normal.refine(bits);
    }

    fn span(&self, width: u32) -> Span {
        let (low, high) = self.laplace.0.magnitude(width);
        let words = self.normal.0.fraction.words.len();
        let bits = words * width as usize + 64;
        let exp = |y: Option<RBig>| y.map(|y| exp_between(&(Self::sigma() * y), bits));
        let Span {
            low: y,
            high: y_high,
        } = self.normal.span(width);
        // Both ends of a normal's interval are finite.
        let (factor, factor_high) = (exp(y), exp(y_high));
        Span::signed(
            factor.map_or(RBig::ZERO, |(factor, _)| low * factor),
            factor_high.and_then(|(_, factor)| factor.map(|factor| high * factor)),
            self.laplace.0.negative,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::real::tests::{check, fits, nested, ratio};
    use super::*;
    use whit_testkit::SeededBits;

    fn normal_tail(t: f64) -> f64 {
        libm::erfc(t / std::f64::consts::SQRT_2)
    }
    fn log_normal_tail(t: f64) -> f64 {
        // The trapezoidal rule converges faster than any power here.
        let step = 1.0 / 64.0;
        let density = |y: f64| (-y * y / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
        (-640..=640)
            .map(|i| f64::from(i) * step)
            .map(|y| density(y) * (-t * (-0.45 * y).exp()).exp() * step)
            .sum()
    }

    #[test]
    fn enumeration() {
        check::<Normal, 1>(normal_tail, ratio(1, 3), 0.52);
    }

    #[test]
    fn distribution() {
        for (number, s) in [(5160, ratio(1, 2)), (5170, ratio(7, 1))] {
            fits::<Normal>("normal", normal_tail, s.clone(), (number, 60_000));
            fits::<LaplaceLogNormal>("log-normal", log_normal_tail, s, (number + 1, 15_000));
        }
    }

    #[test]
    #[should_panic(expected = "log-normal")]
    fn distribution_has_teeth() {
        let tail = |t| log_normal_tail(1.1 * t);
        fits::<LaplaceLogNormal>("log-normal", tail, ratio(7, 1), (5180, 60_000));
    }

    #[test]
    fn intervals_are_nested() {
        let mut bits = SeededBits::new(5190);
        for _ in 0..50 {
            nested::<Normal>(&mut bits);
            nested::<LaplaceLogNormal>(&mut bits);
        }
    }
}
