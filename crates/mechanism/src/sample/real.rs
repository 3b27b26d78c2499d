//! # Real noise, digit by digit
//! **Definition.** A real random variable is kept as the digits of uniforms that have been drawn so far. What is known is an
//!   interval around it; drawing on narrows the interval. `round_sum` draws until the interval decides `floor(c + sZ + 1/2)`.
//! **Guarantee.** The integer that comes out has *exactly* the distribution of the rounded real sum, for any integer `c` and
//!   rational `s > 0`. So whatever is proven of the continuous mechanism `c + sZ` holds of it: rounding is post-processing.
//! **Proof.** Think of all digits as drawn beforehand. Every decision below (a comparison, a rounding) is taken only when all
//!   reals that begin with the known digits agree on it, so it is the decision of the real numbers themselves. The streams on
//!   which a decision never falls are those where two independent uniforms are equal, a point lies on the unit circle, or
//!   `c + sZ` on the border between two integers: null sets, since all laws here have densities.
//!
//! **Event of probability `exp(-w)`**, given events of probability `w <= 1` at will: for `n = 1, 2, …` ask for `w` and for a chance
//!   of one in `n`, until one fails; happened if that was at an odd `n`. *Proof.* Beyond round `n` with probability `w^n/n!`, so
//!   odd with probability `Σ_j (w^(2j)/(2j)! - w^(2j+1)/(2j+1)!) = exp(-w)`. \[Neu51, Kar16\]
//! **Laplace.** `N + F` with a sign: try a uniform `F`; with probability `exp(-F)` take it, otherwise add one to `N` and try again.
//!   *Proof.* A try fails with probability `1 - ∫exp(-f)df = exp(-1)`, so the density at `n + f` is `exp(-n) exp(-f)`.
//! **Cauchy.** `U/V` with a sign, for a point `(U, V)` of the unit square that lies in the unit circle (others are drawn again).
//!   *Proof.* The angle is uniform on a quarter turn, and its tangent is half-Cauchy.

use std::cmp::Ordering;

use dashu_int::{IBig, UBig};
use dashu_ratio::RBig;
use whit_core::Bits;

use super::enclosure::{self, Enclosure};
use super::uniform_below;

/// An interval that holds a real; an end that is missing is infinite.
pub(crate) struct Span {
    pub(crate) low: Option<RBig>,
    pub(crate) high: Option<RBig>,
}

impl Span {
    /// The interval of `-z` if `negative`, for the interval of a `z >= 0`.
    pub(super) fn signed(low: RBig, high: Option<RBig>, negative: bool) -> Self {
        if negative {
            Self {
                low: high.map(|high| -high),
                high: Some(-low),
            }
        } else {
            Self {
                low: Some(low),
                high,
            }
        }
    }
}

/// A real random variable that is drawn as far as it was asked for.
pub(crate) trait Real: Sized {
    /// Draws what decides its shape, and no more.
    fn draw<B: Bits>(bits: &mut B) -> Self;
    /// Draws a word more of each uniform in it.
    fn refine<B: Bits>(&mut self, bits: &mut B);
    /// What is known, from words of so many bits.
    fn span(&self, width: u32) -> Span;
}

/// `floor(centre + scale Z + 1/2)`, clamped to the ends of the integers.
pub(crate) fn round_sum<Z: Real, B: Bits>(centre: i128, scale: &RBig, bits: &mut B) -> i128 {
    let half = RBig::from_parts(IBig::ONE, UBig::from(2_u32));
    let centre = RBig::from(centre) + half;
    let round = |z: RBig| (&centre + scale * z).floor();
    let narrow = |rounded: IBig| match i128::try_from(&rounded) {
        Ok(value) => value,
        Err(_) if rounded < IBig::ZERO => i128::MIN,
        Err(_) => i128::MAX,
    };
    let mut real = Z::draw(bits);
    // Each round halves the interval at least; it ends with probability one, and after one or two words nearly always.
    loop {
        let Span { low, high } = real.span(B::WIDTH);
        let low = low.map_or(i128::MIN, |low| narrow(round(low)));
        let high = high.map_or(i128::MAX, |high| narrow(round(high)));
        if low == high {
            return low;
        }
        real.refine(bits);
    }
}

/// A uniform on `[0, 1)`: its digits in base `2^WIDTH`.
#[derive(Default)]
pub(super) struct Uniform {
    pub(super) words: Vec<u64>,
}

impl Uniform {
    pub(super) fn draw<B: Bits>(bits: &mut B) -> Self {
        Self {
            words: vec![bits.word()],
        }
    }

    pub(super) fn refine<B: Bits>(&mut self, bits: &mut B) {
        self.words.push(bits.word());
    }

    /// Is a fresh uniform below this one? An event of probability `U`.
    pub(super) fn happens<B: Bits>(&mut self, bits: &mut B) -> bool {
        let mut at = 0;
        loop {
            let fresh = bits.word();
            if at == self.words.len() {
                self.refine(bits);
            }
            match fresh.cmp(&self.words[at]) {
                Ordering::Less => return true,
                Ordering::Greater => return false,
                Ordering::Equal => at += 1,
            }
        }
    }

    /// `(v, k)` with `v <= U 2^k < v + 1`, from words of so many bits.
    fn digits(&self, width: u32) -> (UBig, usize) {
        let value = self.words.iter().fold(UBig::ZERO, |value, &word| {
            (value << width as usize) + UBig::from(word)
        });
        (value, self.words.len() * width as usize)
    }
}

/// An event of probability `exp(-w)`, from one of probability `w`.
pub(super) fn exp_neg_happens<B: Bits>(bits: &mut B, mut w: impl FnMut(&mut B) -> bool) -> bool {
    let mut n = 1;
    while w(bits) && uniform_below(n, bits) == 0 {
        n += 1;
    }
    n % 2 == 1
}

pub(super) fn sign<B: Bits>(bits: &mut B) -> bool {
    bits.word() >> (B::WIDTH - 1) == 1
}

/// An integer part, a fraction and a sign.
pub(super) struct Signed {
    pub(super) negative: bool,
    pub(super) whole: u64,
    pub(super) fraction: Uniform,
}

impl Signed {
    pub(super) fn magnitude(&self, width: u32) -> (RBig, RBig) {
        let (digits, bits) = self.fraction.digits(width);
        let low = (UBig::from(self.whole) << bits) + digits;
        let unit = UBig::ONE << bits;
        let high = low.clone() + UBig::ONE;
        (
            RBig::from_parts(low.into(), unit.clone()),
            RBig::from_parts(high.into(), unit),
        )
    }

    pub(super) fn span(&self, width: u32) -> Span {
        let (low, high) = self.magnitude(width);
        Span::signed(low, Some(high), self.negative)
    }
}

/// Density `exp(-|z|)/2`.
pub(crate) struct Laplace(pub(super) Signed);

impl Real for Laplace {
    fn draw<B: Bits>(bits: &mut B) -> Self {
        let negative = sign(bits);
        let mut whole = 0;
        loop {
            let mut fraction = Uniform::draw(bits);
            if exp_neg_happens(bits, |bits| fraction.happens(bits)) {
                return Self(Signed {
                    negative,
                    whole,
                    fraction,
                });
            }
            whole += 1;
        }
    }

    fn refine<B: Bits>(&mut self, bits: &mut B) {
        self.0.fraction.refine(bits);
    }

    fn span(&self, width: u32) -> Span {
        self.0.span(width)
    }
}

/// Density `1/(π(1+z²))`.
pub(crate) struct Cauchy {
    negative: bool,
    over: Uniform,
    under: Uniform,
}

impl Real for Cauchy {
    fn draw<B: Bits>(bits: &mut B) -> Self {
        let negative = sign(bits);
        // A point of the square lies in the circle with probability π/4.
        loop {
            let mut point = Self {
                negative,
                over: Uniform::draw(bits),
                under: Uniform::draw(bits),
            };
            loop {
                let ((over, places), (under, _)) =
                    (point.over.digits(B::WIDTH), point.under.digits(B::WIDTH));
                let one = UBig::ONE << (2 * places);
                if &over * &over + &under * &under >= one {
                    break;
                }
                let (over, under) = (over + UBig::ONE, under + UBig::ONE);
                if &over * &over + &under * &under <= one {
                    return point;
                }
                point.refine(bits);
            }
        }
    }

    fn refine<B: Bits>(&mut self, bits: &mut B) {
        self.over.refine(bits);
        self.under.refine(bits);
    }

    fn span(&self, width: u32) -> Span {
        let ((over, _), (under, _)) = (self.over.digits(width), self.under.digits(width));
        let low = RBig::from_parts(over.clone().into(), under.clone() + UBig::ONE);
        let high = (!under.is_zero()).then(|| RBig::from_parts((over + UBig::ONE).into(), under));
        Span::signed(low, high, self.negative)
    }
}

/// Rationals on both sides of `exp(x)`, within `2^-bits` of it or of its reciprocal. The upper one is missing where so few bits
/// tell nothing.
pub(crate) fn exp_between(x: &RBig, bits: usize) -> (RBig, Option<RBig>) {
    let one = UBig::ONE << bits;
    let over = |value: UBig, by: UBig| RBig::from_parts(value.into(), by);
    if *x <= RBig::ZERO {
        let Enclosure { low, high } = enclosure::exp_neg(&-x.clone(), bits);
        return (over(low, one.clone()), Some(over(high, one)));
    }
    let Enclosure { low, high } = enclosure::exp_neg(x, bits);
    // The enclosure's upper end is never zero.
    let upper = (!low.is_zero()).then(|| over(one.clone(), low));
    (over(one, high), upper)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::oracle;
    use super::*;
    use crate::doubt::{ALPHA, seed};
    use whit_audit::{Cells, enumerate};
    use whit_testkit::SeededBits;

    pub(crate) fn ratio(numerator: i64, denominator: u64) -> RBig {
        RBig::from_parts(numerator.into(), denominator.into())
    }

    /// `Pr[|Z| > t]`, as floats.
    fn laplace_tail(t: f64) -> f64 {
        (-t).exp()
    }
    fn cauchy_tail(t: f64) -> f64 {
        std::f64::consts::FRAC_2_PI * (1.0 / t).atan()
    }

    /// `Pr[round(sZ) = k]` from the tail.
    fn cell(tail: impl Fn(f64) -> f64, s: f64, k: i128) -> f64 {
        let at = |edge: f64| tail((edge / s).max(0.0));
        match k {
            0 => 1.0 - at(0.5),
            k => (at(k.abs() as f64 - 0.5) - at(k.abs() as f64 + 0.5)) / 2.0,
        }
    }

    /// Every bit string up to the depth, against the formulas within `1e-12`.
    pub(crate) fn check<Z: Real, const W: u32>(
        tail: impl Fn(f64) -> f64,
        s: RBig,
        unresolved_max: f64,
    ) {
        let found = enumerate::<W, i128>(oracle::depth().min(20), |tape| {
            round_sum::<Z, _>(0, &s, tape).clamp(-50, 50)
        });
        let share = found.unresolved() as f64 / 2_f64.powi(found.bits() as i32);
        assert!(share < unresolved_max, "{share} of the paths did not end");
        let s = s.to_f64().value();
        let violations = found.violations(|&k| {
            let p = if k.abs() == 50 {
                tail(49.5 / s) / 2.0
            } else {
                cell(&tail, s, k)
            };
            let exact = |p: f64| RBig::try_from(p).expect("finite");
            (exact(p - 1e-12), exact(p + 1e-12))
        });
        assert!(violations.is_empty(), "{violations:?}");
    }

    #[test]
    fn enumeration() {
        for s in [ratio(1, 1), ratio(1, 3), ratio(5, 2)] {
            check::<Laplace, 1>(laplace_tail, s.clone(), 0.22);
            check::<Laplace, 3>(laplace_tail, s.clone(), 0.47);
            check::<Cauchy, 1>(cauchy_tail, s.clone(), 0.32);
            check::<Cauchy, 3>(cauchy_tail, s, 0.53);
        }
    }

    pub(crate) fn fits<Z: Real>(what: &str, tail: impl Fn(f64) -> f64, s: RBig, of: (u64, u64)) {
        let mut bits = SeededBits::new(seed(of.0));
        let float = s.to_f64().value();
        let reach = 40;
        let cells = Cells::tally(
            2 * reach + 1,
            (0..of.1).map(|_| {
                usize::try_from(round_sum::<Z, _>(reach as i128, &s, &mut bits))
                    .unwrap_or(usize::MAX)
            }),
        );
        let reach = reach as i128;
        let expected: Vec<f64> = (-reach..=reach).map(|k| cell(&tail, float, k)).collect();
        let p = cells.g_test(&expected).expect("probabilities").p_value;
        assert!(p >= ALPHA, "{what} at {float}: p = {p:e}");
    }

    #[test]
    fn distribution() {
        let many = 60_000;
        for (number, s) in [(5100, ratio(1, 2)), (5110, ratio(7, 1))] {
            fits::<Laplace>("laplace", laplace_tail, s.clone(), (number, many));
            fits::<Cauchy>("cauchy", cauchy_tail, s.clone(), (number + 1, many));
        }
    }

    /// The test above sees a scale that is off by a tenth.
    #[test]
    #[should_panic(expected = "cauchy")]
    fn distribution_has_teeth() {
        fits::<Cauchy>(
            "cauchy",
            |t| cauchy_tail(1.1 * t),
            ratio(7, 1),
            (5130, 100_000),
        );
    }

    /// Refining changes what is known, never what was known before: intervals are nested.
    pub(crate) fn nested<Z: Real>(bits: &mut SeededBits) {
        let mut real = Z::draw(bits);
        let mut before = real.span(64);
        for _ in 0..4 {
            real.refine(bits);
            let after = real.span(64);
            assert!(before.low <= after.low || before.low.is_none());
            assert!(before.high.is_none() || (after.high.is_some() && after.high <= before.high));
            before = after;
        }
        let width = before.high.expect("finite") - before.low.expect("finite");
        assert!(width < RBig::from_parts(1.into(), UBig::ONE << 100));
    }

    #[test]
    fn intervals_are_nested() {
        let mut bits = SeededBits::new(5140);
        for _ in 0..50 {
            nested::<Laplace>(&mut bits);
            nested::<Cauchy>(&mut bits);
        }
    }

    #[test]
    fn extremes_saturate() {
        let mut bits = SeededBits::new(5150);
        for centre in [i128::MIN, 0, i128::MAX] {
            for scale in [
                RBig::from(UBig::ONE << 900),
                RBig::from_parts(1.into(), UBig::ONE << 900),
            ] {
                for _ in 0..50 {
                    let _ = round_sum::<Cauchy, _>(centre, &scale, &mut bits);
                    let _ = round_sum::<Laplace, _>(centre, &scale, &mut bits);
                }
            }
        }
        let tiny = RBig::from_parts(1.into(), UBig::ONE << 900);
        assert_eq!(round_sum::<Laplace, _>(7, &tiny, &mut bits), 7);
    }

    /// Digits from an independent computation: e and 1/e to 20 places.
    #[test]
    fn exponentials_are_enclosed() {
        let digits = |text: &str| text.parse::<RBig>().expect("a fraction");
        let e = digits("271828182845904523536/100000000000000000000");
        let unit = digits("1/100000000000000000000");
        let (low, high) = exp_between(&RBig::ONE, 200);
        assert!(low <= &e + &unit && high.expect("known") >= e);
        let (low, high) = exp_between(&RBig::from(-1), 200);
        assert!(low <= (RBig::ONE / &e) && high.expect("known") >= RBig::ONE / (e + unit));
        assert_eq!(exp_between(&RBig::ZERO, 10), (RBig::ONE, Some(RBig::ONE)));
        assert!(exp_between(&RBig::from(1000), 64).1.is_none());
    }
}
