//! # Uniform
//! **Definition.** `X` uniform on `0 .. n`.
//! **Sampler.** Draw as many bits as `n - 1` has; if the number they spell is not below `n`, draw again.
//! **Proof.** Given that it is accepted, each of the `n` numbers is equally likely. Each round accepts with probability
//!   above one half.

use whit_core::Bits;

/// A number below `bound`, each with the same probability. `bound` must be positive.
pub fn uniform_below<B: Bits>(bound: u64, bits: &mut B) -> u64 {
    assert!(bound > 0, "there is no number below zero to choose from");
    let needed = 64 - (bound - 1).leading_zeros();
    loop {
        let (mut value, mut have) = (0_u64, 0);
        while have < needed {
            // The top bits of a word that is only needed in part.
            let take = B::WIDTH.min(needed - have);
            value = (value << (take - 1) << 1) | (bits.word() >> (B::WIDTH - take));
            have += take;
        }
        if value < bound {
            return value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::oracle;
    use super::*;
    use dashu_ratio::RBig;
    use whit_audit::enumerate::enumerate;
    use whit_testkit::SeededBits;

    fn check<const W: u32>(bound: u64) {
        let found = enumerate::<W, _>(oracle::depth(), |tape| uniform_below(bound, tape));
        let each = RBig::from_parts(1.into(), bound.into());
        let violations = found.violations(|&value| {
            if value < bound {
                (each.clone(), each.clone())
            } else {
                (RBig::ZERO, RBig::ZERO)
            }
        });
        assert!(
            violations.is_empty(),
            "width {W}, bound {bound}: {violations:?}"
        );
    }

    #[test]
    fn enumeration() {
        for bound in [1, 2, 3, 5, 7, 10, 16, 17, 100] {
            check::<1>(bound);
            check::<4>(bound);
            check::<7>(bound);
        }
    }

    #[test]
    fn wide_bounds_stay_below() {
        let mut bits = SeededBits::new(7);
        for bound in [1, 2, 1 << 40, (1 << 63) + 1, u64::MAX] {
            assert!((0..1000).all(|_| uniform_below(bound, &mut bits) < bound));
        }
    }
}
