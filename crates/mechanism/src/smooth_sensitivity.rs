//! # Smooth sensitivity
//! **Definition.** `S(x) = max(2^-64, max_k c_k A_k(x))`, in steps of the answer's grid, where `A_k(x)` bounds the local sensitivity
//!   of all data sets within `k` changes of `x`, `c_0 = 1`, and `c_{k+1} = r c_k` rounded *up* to 64 binary digits, for a rational
//!   `r >= exp(-β)`. With `c_k = exp(-βk)` and no floor this is the `S*` of \[NRS07\]; ours is above it, by about one part in `2^63`
//!   for each change that matters.
//! **Requires.** For all neighbours `x, x'` and all `k`: `|f(x) - f(x')| <= A_0(x)`; `A_k(x) <= A_{k+1}(x')`; `A_k(x) <= G`, the
//!   same public `G` for all. The true local sensitivity at distance `k` is such an `A_k`: a data set `k` changes from `x` is
//!   `k+1` changes from `x'`. The caller vouches for it, as for any sensitivity.
//! **Guarantee.** `S` is an upper bound and smooth, exactly and not up to rounding: `S(x) >= |f(x) - f(x')|` and
//!   `S(x) <= exp(β) S(x')`.
//! **Proof.** The first: `c_0 = 1`. The second: `c_k <= c_{k+1}/r <= exp(β) c_{k+1}` since rounding is up, so
//!   `c_k A_k(x) <= exp(β) c_{k+1} A_{k+1}(x') <= exp(β) S(x')`; and the floor is the same for both. The search for the maximum may
//!   stop at the first `k` with `c_k G <= ` the best so far or with `A_k = G`, since `c_k` does not grow: `c_k` itself has
//!   64 digits and is above `r c_k`. If `β < 2^-20` we take `S = G` at once, a constant and thus as smooth as one likes.
//!
//! The floor lets noise scales have a smallest one, and is far below any answer's resolution.

use std::cmp::Ordering;

use dashu_int::{IBig, UBig};
use dashu_ratio::RBig;
use whit_core::{Ratio, Relation};

use crate::sample::real::exp_between;

/// A statistic, evaluated on private data, with all that smooth sensitivity needs to know about it.
///
/// Whoever implements this vouches for the three requirements in the module's documentation.
pub trait LocalSensitivity<R: Relation> {
    /// The value, in steps of a public grid.
    fn value(&self) -> i128;
    /// A public bound of the local sensitivity of all data sets: the global sensitivity, in steps.
    fn global(&self) -> u64;
    /// A bound of the local sensitivity of every data set within so many changes, in steps.
    fn at_distance(&self, changes: u64) -> u64;
    /// The smooth sensitivity. Only worth replacing by something faster, with the same guarantee.
    fn smooth(&self, smoothness: &Smoothness) -> SmoothSensitivity {
        smoothness.bound(self.global(), |changes| self.at_distance(changes))
    }
}

/// How much the sensitivity may grow with each change: by a factor of at most `exp(β)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Smoothness {
    /// `r` in units of `2^-63`, from 1 to `2^63`.
    decay: u64,
}

/// `r = 1`, in the unit of `decay`.
const DECAY_ONE: u64 = 1 << 63;
/// Above this `β` is below `2^-20`, and the search might go through hundreds of millions of changes: `-ln(1 - 2^-20) > 2^-20`.
const DECAY_MAX: u64 = DECAY_ONE - (1 << 43);

impl Smoothness {
    /// The smoothness `β`, in rounded form never more than that.
    pub fn new(beta: &Ratio) -> Self {
        let (_, upper) = exp_between(&-beta.as_rbig().clone(), 128);
        Self::from_decay(&upper.expect("a negative exponent has an upper bound"))
    }

    /// The smoothness `-ln r`, with `r` rounded up. `r` must be at most one.
    pub(crate) fn from_decay(r: &RBig) -> Self {
        let units = (r * RBig::from(DECAY_ONE)).ceil();
        let decay = u64::try_from(units)
            .unwrap_or(DECAY_ONE)
            .clamp(1, DECAY_ONE);
        Self { decay }
    }

    /// `r`, at least `exp(-β)`: the factor with which changes count for less.
    pub fn decay(&self) -> Ratio {
        Ratio::new(u128::from(self.decay), u128::from(DECAY_ONE)).expect("2^63 is not zero")
    }

    /// Is it so small that only the global sensitivity is as smooth?
    pub(crate) fn is_flat(&self) -> bool {
        self.decay > DECAY_MAX
    }

    /// `c_0, c_1, …`
    pub(crate) fn weights(&self) -> impl Iterator<Item = Weight> {
        let decay = self.decay;
        std::iter::successors(Some(Weight::ONE), move |weight| Some(weight.next(decay)))
    }

    /// The smooth sensitivity of a statistic with this global sensitivity and this local sensitivity at each distance.
    pub fn bound(&self, global: u64, mut at_distance: impl FnMut(u64) -> u64) -> SmoothSensitivity {
        if self.is_flat() {
            return SmoothSensitivity::of_global(global);
        }
        let mut best = Product::FLOOR;
        // At most ln(2^64 G)/β rounds: then c_k G is below the floor.
        for (changes, weight) in (0..).zip(self.weights()) {
            if weight.times(global) <= best {
                break;
            }
            let local = at_distance(changes).min(global);
            best = best.max(weight.times(local));
            if local == global {
                break;
            }
        }
        SmoothSensitivity(best.ratio())
    }
}

/// A smooth upper bound of the local sensitivity. It depends on private data, so it cannot be looked at.
pub struct SmoothSensitivity(RBig);

impl SmoothSensitivity {
    pub(crate) fn of_global(global: u64) -> Self {
        Self(RBig::from(global).max(Product::FLOOR.ratio()))
    }

    /// From a value that is smooth without the floor.
    pub(crate) fn at_least_floor(value: RBig) -> Self {
        Self(value.max(Product::FLOOR.ratio()))
    }

    /// In steps; positive.
    pub(crate) fn steps(&self) -> &RBig {
        &self.0
    }
}

/// `mantissa 2^exponent` with `2^63 <= mantissa < 2^64`.
#[derive(Clone, Copy)]
pub(crate) struct Weight {
    mantissa: u64,
    exponent: i32,
}

impl Weight {
    const ONE: Self = Self {
        mantissa: 1 << 63,
        exponent: -63,
    };

    /// Times `decay 2^-63`, rounded up.
    fn next(self, decay: u64) -> Self {
        // From 2^63 up to, but not including, 2^127.
        let product = u128::from(self.mantissa) * u128::from(decay);
        let surplus = 64 - product.leading_zeros() as i32;
        let rounded = product.div_ceil(1 << surplus);
        let exponent = self.exponent - 63 + surplus;
        match u64::try_from(rounded) {
            Ok(mantissa) => Self { mantissa, exponent },
            Err(_) => Self {
                mantissa: 1 << 63,
                exponent: exponent + 1,
            },
        }
    }

    pub(crate) fn times(self, steps: u64) -> Product {
        Product {
            value: u128::from(self.mantissa) * u128::from(steps),
            exponent: self.exponent,
        }
    }

    pub(crate) fn ratio(self) -> RBig {
        self.times(1).ratio()
    }
}

/// `value 2^exponent`, compared exactly.
#[derive(Clone, Copy)]
pub(crate) struct Product {
    value: u128,
    exponent: i32,
}

impl Product {
    /// The smallest sensitivity, `2^-64` steps.
    pub(crate) const FLOOR: Self = Self {
        value: 1,
        exponent: -64,
    };

    pub(crate) fn ratio(self) -> RBig {
        let power = UBig::ONE << self.exponent.unsigned_abs() as usize;
        let value = IBig::from(self.value);
        if self.exponent < 0 {
            RBig::from_parts(value, power)
        } else {
            RBig::from(value * IBig::from(power))
        }
    }

    /// Times a weight; a value of at most 64 bits has room for it.
    pub(crate) fn times_weight(self, weight: Weight) -> Self {
        Self {
            value: self.value * u128::from(weight.mantissa),
            exponent: self.exponent + weight.exponent,
        }
    }

    /// One above the exponent of the leading digit; `None` for zero.
    fn magnitude(self) -> Option<i32> {
        (self.value != 0).then(|| self.exponent + 128 - self.value.leading_zeros() as i32)
    }
}

impl Ord for Product {
    fn cmp(&self, other: &Self) -> Ordering {
        // Of equal magnitude, the leading digits can be aligned without loss.
        let aligned = |product: &Self| product.value << (product.value.leading_zeros() & 127);
        let by_magnitude = self.magnitude().cmp(&other.magnitude());
        by_magnitude.then_with(|| aligned(self).cmp(&aligned(other)))
    }
}

impl PartialOrd for Product {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Product {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Product {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn smoothness(numerator: u128, denominator: u128) -> Smoothness {
        Smoothness::new(&Ratio::new(numerator, denominator).expect("not zero"))
    }

    #[test]
    fn decay_is_rounded_up() {
        for (numerator, denominator) in [(1, 10), (1, 2), (1, 1), (40, 1), (1, 1 << 40), (0, 1)] {
            let decay = smoothness(numerator, denominator).decay();
            let exact = (-(numerator as f64) / denominator as f64).exp();
            assert!(decay.to_f64_up() >= exact && decay.to_f64_down() <= exact + 2e-16);
            let (lower, _) = exp_between(
                &-RBig::from_parts(IBig::from(numerator), UBig::from(denominator)),
                200,
            );
            assert!(*decay.as_rbig() >= lower);
        }
    }

    /// The step of the proof: each weight is at least `r` times the one before, and never larger than it.
    #[test]
    fn weights_fall_no_faster_than_they_may() {
        for beta in [(1, 1000), (1, 10), (7, 3), (44, 1), (1, 1 << 20)] {
            let smoothness = smoothness(beta.0, beta.1);
            let decay = smoothness.decay().as_rbig().clone();
            let weights: Vec<RBig> = smoothness.weights().take(300).map(Weight::ratio).collect();
            assert_eq!(weights[0], RBig::ONE);
            let slack = RBig::ONE + RBig::from_parts(1.into(), UBig::ONE << 62);
            for pair in weights.windows(2) {
                assert!(pair[1] >= &pair[0] * &decay && pair[1] <= pair[0]);
                assert!(pair[1] <= &pair[0] * &decay * &slack);
            }
        }
    }

    #[test]
    fn stopping_early_changes_nothing() {
        // Local sensitivities that jump late, early, never.
        let shapes: [fn(u64) -> u64; 5] = [
            |k| k * k,
            |k| if k < 40 { 1 } else { 1_000_000 },
            |_| 0,
            |_| 1_000_000,
            |k| 3 + k / 7,
        ];
        for beta in [(1, 50), (1, 3), (3, 1)] {
            let smoothness = smoothness(beta.0, beta.1);
            for shape in shapes {
                let whole = (0..6000_u64)
                    .zip(smoothness.weights())
                    .map(|(k, weight)| weight.times(shape(k).min(1_000_000)))
                    .max()
                    .expect("some");
                let whole = whole.max(Product::FLOOR).ratio();
                assert_eq!(*smoothness.bound(1_000_000, shape).steps(), whole);
            }
        }
    }

    #[test]
    fn extremes_are_defined() {
        for global in [0, 1, u64::MAX] {
            for beta in [(0, 1), (1, 1 << 30), (1, 1 << 19), (64, 1)] {
                let bound = smoothness(beta.0, beta.1).bound(global, |k| k.min(5));
                assert!(*bound.steps() > RBig::ZERO);
            }
        }
        let flat = smoothness(1, 1 << 30).bound(17, |_| 0);
        assert_eq!(*flat.steps(), RBig::from(17));
    }

    proptest! {
        #[test]
        fn products_compare_as_rationals(a: u128, b: u128, x in -300_i32..80, y in -300_i32..80) {
            let (a, b) = (Product { value: a >> (a % 128), exponent: x }, Product { value: b >> (b % 128), exponent: y });
            prop_assert_eq!(a.cmp(&b), a.ratio().cmp(&b.ratio()));
        }

        /// Any family that obeys the requirement gives a bound that obeys the guarantee.
        #[test]
        fn bound_is_smooth(steps in proptest::collection::vec(0_u64..50, 1..60), shrink in 0_u64..3, beta in 1_u128..40) {
            let global = 400;
            let grow = |k: u64| steps.iter().take(k as usize + 1).sum::<u64>().min(global);
            // A neighbour of the family: A'_k anywhere from A_{k-1} to A_{k+1}.
            let neighbour = |k: u64| match shrink {
                0 => grow(k + 1),
                1 => if k == 0 { 0 } else { grow(k - 1) },
                _ => grow(k),
            };
            let smoothness = smoothness(beta, 20);
            let (one, other) = (smoothness.bound(global, grow), smoothness.bound(global, neighbour));
            let decay = smoothness.decay().as_rbig().clone();
            prop_assert!(one.steps() * &decay <= *other.steps());
            prop_assert!(other.steps() * &decay <= *one.steps());
            prop_assert!(*one.steps() >= RBig::from(grow(0)));
        }
    }
}
