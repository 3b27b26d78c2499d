//! A quick look at `exp(-γ)`: enough digits to decide almost every comparison, and a bound on what is missing.
//!
//! **Definition.** For `γ >= 0` in units of `2^-64`, an integer within [`ERROR`] of `exp(-γ) 2^64`.
//! **Method.** `γ = i + j/256 + r` with `r < 2^-8`; `exp(-i)` and `exp(-j/256)` come from tables of exact digits, `exp(-r)` from
//!   six terms of its Taylor series.
//! **Proof.** All in units of `2^-63`. Table entries are rounded down: off by less than 1 each. The series drops terms below
//!   `r^7/7! < 2^-68` and rounds down five times, each time by less than half a unit and shrunk by `r` afterwards: off by less
//!   than 1. Two products are rounded down: off by less than 1 each. All factors are at most one, so the errors add up to
//!   less than 5 units of `2^-63`, that is 10 of `2^-64`. For `γ >= 45`, `exp(-γ) 2^64 < 1` and zero is returned.

use std::sync::OnceLock;

use dashu_ratio::RBig;

use super::enclosure;

/// Upper bound on the error, in units of `2^-64`.
pub(super) const ERROR: u64 = 16;

/// `exp(-45) 2^64 < 1`.
const INTEGER_PARTS: usize = 45;

struct Tables {
    /// `floor(exp(-i) 2^63)`.
    integer: [u64; INTEGER_PARTS],
    /// `floor(exp(-j/256) 2^63)`.
    fraction: [u64; 256],
}

fn tables() -> &'static Tables {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    TABLES.get_or_init(|| {
        // 96 bits and then down to 63: the enclosure is far narrower than one of the 33 bits dropped.
        let entry = |numerator: usize, denominator: u64| {
            let x = RBig::from_parts((numerator as u64).into(), denominator.into());
            u64::try_from(enclosure::exp_neg(&x, 96).low >> 33_usize).expect("at most 2^63")
        };
        Tables {
            integer: std::array::from_fn(|i| entry(i, 1)),
            fraction: std::array::from_fn(|j| entry(j, 256)),
        }
    })
}

/// About `exp(-γ) 2^64`, saturating at the largest word; `gamma` is `γ 2^64`.
#[inline]
pub(super) fn exp_neg(gamma: u128) -> u64 {
    let whole = (gamma >> 64) as usize;
    if whole >= INTEGER_PARTS {
        return 0;
    }
    let rest = gamma as u64;
    let tables = tables();
    let coarse = (u128::from(tables.integer[whole])
        * u128::from(tables.fraction[(rest >> 56) as usize]))
        >> 63;
    let r = rest & (u64::MAX >> 8);
    // 1 - r(1 - r/2(1 - r/3(…))): what is subtracted from one, from the inside out.
    let mut minus = r / 6;
    for n in (1..=5).rev() {
        minus = ((u128::from(r) * ((1_u128 << 64) - u128::from(minus))) >> 64) as u64 / n;
    }
    let fine = (1_u128 << 64) - u128::from(minus);
    let halves = (coarse * fine) >> 64;
    u64::try_from(halves << 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dashu_int::UBig;
    use whit_core::Bits;
    use whit_testkit::SeededBits;

    fn check(gamma: u128) {
        let x = RBig::from_parts(UBig::from(gamma).into(), UBig::ONE << 64);
        let exact = enclosure::exp_neg(&x, 64);
        let found = UBig::from(exp_neg(gamma));
        let error = UBig::from(ERROR);
        assert!(
            &found + &error >= exact.high && found <= exact.low + error,
            "exp(-{gamma} 2^-64)"
        );
    }

    #[test]
    fn stays_within_its_error() {
        let mut bits = SeededBits::new(11);
        for whole in 0..60_u128 {
            for _ in 0..200 {
                check((whole << 64) | u128::from(bits.word()));
            }
            for edge in [0, 1, (1 << 56) - 1, 1 << 56, u128::from(u64::MAX)] {
                check((whole << 64) | edge);
            }
        }
        check(u128::MAX);
    }
}
