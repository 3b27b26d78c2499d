//! Enclosures of `exp(-x)` in integers.
//!
//! **Definition.** For a rational `x >= 0` and a precision `n`, integers `low <= exp(-x) 2^n <= high`.
//! **Method.** Halve `x` until `y = x / 2^m <= 2^-8`, sum the alternating Taylor series of `exp(-y)` in fixed point, then
//! square `m` times, rounding `low` down and `high` up.
//! **Proof.** Work with `N = n + m + 16` fractional bits; one unit is `2^-N`. Let `y'` be `y` rounded down to units, so
//!   `0 <= y - y' < 1` unit. Term `k` is computed as `t_k = floor(t_{k-1} y' / (k 2^N))` from `t_0 = 2^N`. Against the exact
//!   `y^k/k!` its error obeys `e_k <= (e_{k-1} y + t_{k-1})/k + 1 <= e_{k-1}/256 + 2` units, hence `e_k <= 3`. The series
//!   alternates with decreasing terms, so what is left out after the first vanishing computed term `K` is below
//!   `e_K + 1 <= 4` units. The sum is therefore off by at most `3K + 4` units. Squaring an enclosure of a number in `[0,1]`
//!   with outward rounding encloses its square.

use dashu_int::UBig;
use dashu_ratio::RBig;

/// `low <= value * 2^bits <= high`, for the value and the precision it was asked for.
pub(super) struct Enclosure {
    pub(super) low: UBig,
    pub(super) high: UBig,
}

/// Encloses `exp(-x) 2^bits`. `x` must not be negative.
pub(super) fn exp_neg(x: &RBig, bits: usize) -> Enclosure {
    let one = UBig::ONE << bits;
    if x.is_zero() {
        return Enclosure {
            low: one.clone(),
            high: one,
        };
    }
    // exp(-x) < 2^-x, so from here on less than one unit is left.
    if *x >= RBig::from(bits as u64) {
        return Enclosure {
            low: UBig::ZERO,
            high: UBig::ONE,
        };
    }
    let halvings = halvings_to_small(x);
    let work_bits = bits + halvings + 16;
    let y = floor_scaled(x, work_bits - halvings);
    let (mut low, mut high) = exp_neg_small(&y, work_bits);
    for _ in 0..halvings {
        low = (&low * &low) >> work_bits;
        high = shift_up(&high * &high, work_bits);
    }
    let surplus = work_bits - bits;
    Enclosure {
        low: low >> surplus,
        high: shift_up(high, surplus).min(one),
    }
}

/// The Taylor series of `exp(-y)` for `y <= 2^-8`, as an enclosure in units of `2^-bits`.
fn exp_neg_small(y: &UBig, bits: usize) -> (UBig, UBig) {
    let one = UBig::ONE << bits;
    let (mut positive, mut negative) = (one.clone(), UBig::ZERO);
    let mut term = one.clone();
    let mut count: u32 = 0;
    // Each term is at most 1/256 of the one before: at most bits/8 + 1 rounds.
    while !term.is_zero() {
        count += 1;
        term = ((term * y) >> bits) / count;
        if count % 2 == 1 {
            negative += &term;
        } else {
            positive += &term;
        }
    }
    let error = UBig::from(3 * count + 4);
    let sum = positive - negative;
    let low = if sum > error {
        &sum - &error
    } else {
        UBig::ZERO
    };
    (low, (sum + error).min(one))
}

/// How often `x` must be halved to be at most `2^-8`.
fn halvings_to_small(x: &RBig) -> usize {
    let mut halvings = 0;
    let mut bound = RBig::from_parts(1.into(), UBig::from(256_u32));
    // x is below the precision asked for, so this takes at most 8 + log2(precision) rounds.
    while *x > bound {
        bound *= RBig::from(2);
        halvings += 1;
    }
    halvings
}

/// `floor(x 2^bits)`.
pub(super) fn floor_scaled(x: &RBig, bits: usize) -> UBig {
    (magnitude(x) << bits) / x.denominator()
}

/// The numerator of a rational that is not negative.
pub(super) fn magnitude(x: &RBig) -> UBig {
    x.numerator().clone().into_parts().1
}

/// `value / 2^bits`, rounded up.
fn shift_up(value: UBig, bits: usize) -> UBig {
    let mask = (UBig::ONE << bits) - UBig::ONE;
    (value + mask) >> bits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(numerator: u64, denominator: u64, hex_64: u64) {
        let x = RBig::from_parts(numerator.into(), denominator.into());
        for bits in [64, 65, 200, 1000] {
            let Enclosure { low, high } = exp_neg(&x, bits);
            let shift = bits - 64;
            assert_eq!(
                &low >> shift,
                UBig::from(hex_64),
                "low of exp(-{x}) at {bits} bits"
            );
            assert!(
                high >= low && (&high - &low) <= UBig::from(2_u32),
                "exp(-{x}) at {bits} bits is wide"
            );
        }
    }

    /// Digits from an independent computation (mpmath 1.3, 60 digits): `floor(exp(-x) 2^64)`.
    #[test]
    fn matches_known_digits() {
        check(1, 1, 6_786_177_901_268_885_274);
        check(1, 2, 11_188_515_852_577_165_299);
        check(1, 1000, 18_428_306_549_934_190_034);
        check(10, 1, 837_480_885_292_947);
        check(22, 7, 796_148_732_344_098_476);
    }

    #[test]
    fn zero_and_far_away_are_cheap() {
        let at = |x: RBig| exp_neg(&x, 128);
        assert_eq!(at(RBig::ZERO).low, UBig::ONE << 128);
        let far = at(RBig::from(UBig::ONE << 90));
        assert_eq!((far.low, far.high), (UBig::ZERO, UBig::ONE));
        let near = at(RBig::from_parts(1.into(), UBig::ONE << 100));
        assert!(near.low < UBig::ONE << 128 && near.high > near.low);
    }
}
