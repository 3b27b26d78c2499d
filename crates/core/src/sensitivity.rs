//! Sensitivity: the furthest that one unit can move an answer.
//!
//! The norm and the neighbour relation are in the type, so `Sensitivity<L1, AddRemove>` cannot stand where an L2 or a
//! replace-one sensitivity is needed. An L2 sensitivity is kept as its exact square: `√2` is no rational, `2` is.

use std::fmt;
use std::marker::PhantomData;

use crate::{Error, Ratio, Relation, Result, round};

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::L0 {}
    impl Sealed for super::L1 {}
    impl Sealed for super::L2 {}
    impl Sealed for super::Linf {}
}

/// A norm that distances are measured in.
pub trait Norm: sealed::Sealed + Copy + fmt::Debug + Send + Sync + 'static {
    /// Is a bound in this norm kept as its square?
    #[doc(hidden)]
    const SQUARED: bool = false;
}

/// How many coordinates change.
#[derive(Clone, Copy, Debug)]
pub struct L0;
/// The sum of the absolute changes.
#[derive(Clone, Copy, Debug)]
pub struct L1;
/// The square root of the sum of the squared changes.
#[derive(Clone, Copy, Debug)]
pub struct L2;
/// The largest absolute change.
#[derive(Clone, Copy, Debug)]
pub struct Linf;

impl Norm for L0 {}
impl Norm for L1 {}
impl Norm for L2 {
    const SQUARED: bool = true;
}
impl Norm for Linf {}

/// How far neighbours of relation `R` can be apart in norm `N`: exact, never negative, vouched for by whoever made it.
pub struct Sensitivity<N: Norm, R: Relation> {
    /// The bound itself; for `L2` its square.
    value: Ratio,
    meaning: PhantomData<fn() -> (N, R)>,
}

impl<N: Norm, R: Relation> Sensitivity<N, R> {
    /// Vouches that neighbours are never further apart than `bound`.
    pub fn new(bound: Ratio) -> Self {
        Self::from_parts(if N::SQUARED { &bound * &bound } else { bound })
    }

    /// A float bound, taken at its exact value.
    pub fn from_f64(bound: f64) -> Result<Self> {
        Ratio::from_f64(bound)
            .map(Self::new)
            .ok_or_else(|| Error::OutOfDomain {
                what: "sensitivity",
                given: bound.to_string(),
                domain: "a finite number, zero or more",
            })
    }

    fn from_parts(value: Ratio) -> Self {
        Self {
            value,
            meaning: PhantomData,
        }
    }
}

/// The norms in which a bound is kept as it is.
macro_rules! plain {
    ($($norm:ty),*) => {$(
        impl<R: Relation> Sensitivity<$norm, R> {
            /// The bound.
            pub fn bound(&self) -> &Ratio {
                &self.value
            }
        }
    )*};
}
plain!(L0, L1, Linf);

impl<R: Relation> Sensitivity<L2, R> {
    /// Vouches that the squared L2 distance of neighbours never exceeds `square`.
    pub fn from_square(square: Ratio) -> Self {
        Self::from_parts(square)
    }

    /// The squared bound, exactly.
    pub fn square(&self) -> &Ratio {
        &self.value
    }

    /// The bound as a float, rounded up.
    pub fn bound_upper(&self) -> f64 {
        round::sqrt_up(self.value.to_f64_up())
    }
}

impl<R: Relation> Sensitivity<L0, R> {
    /// L1 from the number of coordinates and the largest change in one: `‖v‖₁ <= ‖v‖₀ ‖v‖∞`.
    pub fn times_linf(&self, largest: &Sensitivity<Linf, R>) -> Sensitivity<L1, R> {
        Sensitivity::from_parts(&self.value * &largest.value)
    }

    /// L2 from the number of coordinates and the largest change in one: `‖v‖₂² <= ‖v‖₀ ‖v‖∞²`.
    pub fn sqrt_times_linf(&self, largest: &Sensitivity<Linf, R>) -> Sensitivity<L2, R> {
        Sensitivity::from_parts(&(&self.value * &largest.value) * &largest.value)
    }
}

/// Two answers side by side move by at most the sum of their L1 bounds, and for L2 by at most the root of the sum of the
/// squares: in both cases the kept values add. In the maximum norm they do not, so there is no sum there.
macro_rules! additive {
    ($($norm:ty),*) => {$(
        impl<R: Relation> std::ops::Add for Sensitivity<$norm, R> {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self::from_parts(&self.value + &other.value)
            }
        }
    )*};
}
additive!(L0, L1, L2);

impl<N: Norm, R: Relation> Clone for Sensitivity<N, R> {
    fn clone(&self) -> Self {
        Self::from_parts(self.value.clone())
    }
}

impl<N: Norm, R: Relation> fmt::Debug for Sensitivity<N, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Sensitivity<{}>({})",
            std::any::type_name::<N>()
                .rsplit("::")
                .next()
                .unwrap_or("?"),
            self.value
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AddRemove;

    #[test]
    fn l2_keeps_its_square() {
        let two = Sensitivity::<L2, AddRemove>::from_square(Ratio::from(2_u64));
        assert_eq!(two.square(), &Ratio::from(2_u64));
        assert!(two.bound_upper() >= std::f64::consts::SQRT_2);
        assert_eq!(
            Sensitivity::<L2, AddRemove>::from_f64(1.5)
                .expect("finite")
                .square(),
            &Ratio::new(9, 4).expect("4")
        );
    }

    #[test]
    fn sensitivities_side_by_side_add() {
        let one = || Sensitivity::<L2, AddRemove>::new(Ratio::one());
        assert_eq!((one() + one()).square(), &Ratio::from(2_u64));
        let three = Sensitivity::<L1, AddRemove>::new(Ratio::from(3_u64));
        assert_eq!((three.clone() + three).bound(), &Ratio::from(6_u64));
    }

    #[test]
    fn groups_times_value() {
        let groups = Sensitivity::<L0, AddRemove>::new(Ratio::from(4_u64));
        let value = Sensitivity::<Linf, AddRemove>::new(Ratio::from(3_u64));
        assert_eq!(groups.times_linf(&value).bound(), &Ratio::from(12_u64));
        assert_eq!(
            groups.sqrt_times_linf(&value).square(),
            &Ratio::from(36_u64)
        );
    }

    #[test]
    fn rejects_what_is_no_bound() {
        for bound in [f64::NAN, f64::INFINITY, -1.0] {
            assert!(Sensitivity::<L1, AddRemove>::from_f64(bound).is_err());
        }
    }
}
