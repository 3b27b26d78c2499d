//! What additive mechanisms share: integers in, noise on top, integers out.

use whit_core::{
    Bits, Confidence, Entropy, Event, L1, L2, Ratio, Relation, Scale, Secret, Sensitivity,
};

use crate::{DiscreteGaussian, DiscreteLaplace, Release, Result};

mod sealed {
    pub trait Sealed {}
    impl Sealed for i64 {}
    impl Sealed for i128 {}
}

/// The integers that noise is added to. Sums are clamped to the ends of the type, which is post-processing; wide integers to
/// `±2^126`, before and after. (Noise itself is cut off beyond `2^127`, and so far out that the clamp hides it: a value within
/// `±2^126` plus such noise is at the end either way.)
pub trait Integer: sealed::Sealed + Copy {
    /// As the widest integer.
    fn widen(self) -> i128;
    /// Back, clamped to the ends.
    fn narrow(wide: i128) -> Self;
}

impl Integer for i64 {
    fn widen(self) -> i128 {
        i128::from(self)
    }
    fn narrow(wide: i128) -> Self {
        wide.clamp(i128::from(Self::MIN), i128::from(Self::MAX)) as Self
    }
}

/// The ends of wide integers.
const WIDE: i128 = 1 << 126;

impl Integer for i128 {
    fn widen(self) -> i128 {
        self.clamp(-WIDE, WIDE)
    }
    fn narrow(wide: i128) -> Self {
        wide.clamp(-WIDE, WIDE)
    }
}

/// A sampler of integer noise.
pub(crate) trait Draw {
    fn draw<B: Bits>(&self, bits: &mut B) -> i128;
}

/// Adds one independent draw to each value, all from one fresh stream.
pub(crate) fn perturb<T: Integer>(
    values: Secret<Vec<T>>,
    noise: &impl Draw,
    entropy: &mut impl Entropy,
) -> Result<Vec<T>> {
    let mut bits = entropy.open()?;
    let mut values = values.expose();
    for value in &mut values {
        *value = T::narrow(value.widen().saturating_add(noise.draw(&mut bits)));
    }
    Ok(values)
}

/// Which noise, and how much, in the unit of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Noise {
    /// Discrete Laplace noise of scale `b`.
    Laplace(Scale),
    /// Discrete Gaussian noise of scale `σ`.
    Gaussian(Scale),
}

impl Noise {
    /// The same noise, counted in steps of a grid.
    pub(crate) fn in_steps(&self, step: &Ratio) -> Result<Self> {
        let steps = |scale: &Scale| {
            let ratio = scale
                .ratio()
                .checked_div(step)
                .expect("a grid's step is positive");
            Scale::new(ratio)
        };
        Ok(match self {
            Self::Laplace(scale) => Self::Laplace(steps(scale)?),
            Self::Gaussian(scale) => Self::Gaussian(steps(scale)?),
        })
    }
}

/// One of the two additive mechanisms, chosen at run time.
pub enum Additive<R: Relation> {
    /// Discrete Laplace, for an L1 sensitivity.
    Laplace(DiscreteLaplace<R>),
    /// Discrete Gaussian, for an L2 sensitivity.
    Gaussian(DiscreteGaussian<R>),
}

impl<R: Relation> Additive<R> {
    /// Takes the sensitivity that the noise needs. Both speak of the same integers.
    pub fn new(noise: &Noise, l1: Sensitivity<L1, R>, l2: Sensitivity<L2, R>) -> Self {
        match noise {
            Noise::Laplace(scale) => Self::Laplace(DiscreteLaplace::new(scale.clone(), l1)),
            Noise::Gaussian(scale) => Self::Gaussian(DiscreteGaussian::new(scale.clone(), l2)),
        }
    }

    /// What an accountant needs to know.
    pub fn event_of(&self, coordinates: u64) -> Event {
        match self {
            Self::Laplace(mechanism) => mechanism.event_of(coordinates),
            Self::Gaussian(mechanism) => mechanism.event_of(coordinates),
        }
    }

    /// Releases one integer.
    pub fn release<T: Integer>(
        &self,
        x: Secret<T>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<T>> {
        match self {
            Self::Laplace(mechanism) => mechanism.release(x, entropy),
            Self::Gaussian(mechanism) => mechanism.release(x, entropy),
        }
    }

    /// Releases a vector whose length is public.
    pub fn release_vector<T: Integer>(
        &self,
        x: Secret<Vec<T>>,
        entropy: &mut impl Entropy,
    ) -> Result<Release<Vec<T>>> {
        match self {
            Self::Laplace(mechanism) => mechanism.release_vector(x, entropy),
            Self::Gaussian(mechanism) => mechanism.release_vector(x, entropy),
        }
    }

    /// The smallest `t` with `Pr[|noise| <= t] >= confidence`.
    pub fn half_width(&self, confidence: Confidence) -> u128 {
        match self {
            Self::Laplace(mechanism) => mechanism.half_width(confidence),
            Self::Gaussian(mechanism) => mechanism.half_width(confidence),
        }
    }
}

/// The smallest `q` with `Pr[|X| > q] <= miss` for a standard normal `X`, up to the rounding of floats.
pub(crate) fn normal_half_width(miss: f64) -> f64 {
    // Beyond forty deviations no float is left of the tail, and 200 halvings leave nothing between two floats.
    let (mut low, mut high) = (0.0_f64, 40.0);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if libm::erfc(middle / std::f64::consts::SQRT_2) > miss {
            low = middle
        } else {
            high = middle
        }
    }
    high
}

/// The one value of a vector of one.
pub(crate) fn only<T: Copy>(values: Vec<T>) -> T {
    *values.first().expect("one value went in, so one comes out")
}
